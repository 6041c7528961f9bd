/* SPDX-License-Identifier: Apache-2.0 */
/* The body has a constant in f32, whatever x is. */
#include "mutant.h"

static hob_status body(hob_scope *scope, const struct hob_call *call,
                       hob_tensor **out)
{
    hob_tensor *x = call->args[0].u.tensor;
    hob_tensor *two =
        hob_full(scope, NULL, 0, hob_f64(2), call->device, HOB_DTYPE_F32);

    out[0] = hob_mul(scope, x, two);
    return hob_scope_host(scope)->scope_status(scope);
}

#define MUTANT_BODY body
#define MUTANT_IMPLS 0
#include "mutant_table.h"
