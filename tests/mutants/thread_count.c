/* SPDX-License-Identifier: Apache-2.0 */
/* Adds up in as many parts as there are threads. */
#include "mutant.h"

static hob_status infer(struct hob_call *call, struct hob_meta *out)
{
    (void)call;
    out->rank = 0;
    return HOB_OK;
}

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t count = hob_view_count(x);
    int64_t parts = call->host->thread_count(call->host);
    float total = 0;

    (void)device;
    for (int64_t p = 0; p < parts; p++) {
        volatile float sum = 0;

        for (int64_t i = p * count / parts; i < (p + 1) * count / parts; i++)
            sum += (float)mutant_get(x, i);
        total += sum;
    }
    mutant_put(hob_ret_view(call, 0), 0, (double)total);
    return HOB_OK;
}

#define MUTANT_INFER infer
#define MUTANT_EXECUTE execute
#define MUTANT_BODY NULL
#define MUTANT_IMPLS 1
#include "mutant_table.h"
