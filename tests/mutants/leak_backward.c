/* SPDX-License-Identifier: Apache-2.0 */
/* The backward holds a gradient for ever. */
#include "mutant.h"

static hob_status hold(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_status status = mutant_backward(scope, call);

    if (!status && call->out_grads[0])
        call->host->tensor_ref(call->out_grads[0]);
    return status;
}

#define MUTANT_BACKWARD hold
#include "mutant_table.h"
