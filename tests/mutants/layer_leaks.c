/* SPDX-License-Identifier: Apache-2.0 */
/* A decorator that forgets memory in each call. */
#include "mutant_layer.h"

static int32_t layer_call(void *layer, struct hob_call *call,
                          const struct hob_op_impl *impl,
                          hob_status *out_status)
{
    volatile char *note = malloc(16);

    (void)layer;
    (void)call;
    (void)impl;
    (void)out_status;
    if (note)
        note[0] = 1;
    return HOB_LAYER_PASS;
}
