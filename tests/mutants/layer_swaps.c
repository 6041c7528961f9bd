/* SPDX-License-Identifier: Apache-2.0 */
/* A decorator that turns one comparison around. */
#include "mutant_layer.h"

static int32_t layer_call(void *layer, struct hob_call *call,
                          const struct hob_op_impl *impl,
                          hob_status *out_status)
{
    (void)layer;
    (void)impl;
    (void)out_status;
    if (!strcmp(call->op_name, "greater")) {
        hob_value first = call->args[0];

        call->args[0] = call->args[1];
        call->args[1] = first;
    }
    return HOB_LAYER_PASS;
}
