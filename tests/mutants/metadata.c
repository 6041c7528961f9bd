/* SPDX-License-Identifier: Apache-2.0 */
/* The body makes a row more than infer says. */
#include "mutant.h"

static hob_status body(hob_scope *scope, const struct hob_call *call,
                       hob_tensor **out)
{
    out[0] = hob_unsqueeze(scope, call->args[0].u.tensor, 0);
    return hob_scope_host(scope)->scope_status(scope);
}

#define MUTANT_BODY body
#define MUTANT_IMPLS 0
#include "mutant_table.h"
