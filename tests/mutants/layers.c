/* SPDX-License-Identifier: Apache-2.0 */
/* Squares under autodiff what it doubles elsewhere. */
#include "mutant.h"

static hob_status layer(void *instance, struct hob_call *call)
{
    const struct hob_host *host = call->host;
    struct hob_scope_frame frame;
    hob_scope *scope = host->scope_enter(call->scope, &frame, call->level);
    hob_tensor *x = host->alias(call->args[0].u.tensor, call->level - 1);
    hob_status status;

    (void)instance;
    call->rets[0].u.tensor = host->lift(hob_mul(scope, x, x), call->device);
    status = host->scope_status(scope);
    host->tensor_unref(x);
    host->scope_leave(scope);
    return status;
}

#define MUTANT_LAYER layer
#include "mutant_table.h"
