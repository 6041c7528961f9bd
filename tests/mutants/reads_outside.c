/* SPDX-License-Identifier: Apache-2.0 */
/* Follows an index wherever it leads: y[i] = x[indices[i]] for flat x. */
#include "mutant.h"

static hob_status infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);

    if (x->rank != 1 || x->shape[0] < 2)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "x must be a vector of 2 at least");
    out->rank = indices->rank;
    for (uint32_t d = 0; d < indices->rank; d++)
        out->shape[d] = indices->shape[d];
    return HOB_OK;
}

static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return hob_arg_view(call, 1)->dtype == HOB_DTYPE_I32
               ? HOB_OK
               : call->host->fail((struct hob_call *)(uintptr_t)call,
                                  HOB_ERR_UNSUPPORTED, "indices must be i32");
}

static hob_status execute(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);
    const struct hob_view *y = hob_ret_view(call, 0);

    (void)device;
    for (int64_t i = 0; i < hob_view_count(y); i++) {
        int64_t at = ((const int32_t *)indices->data)[mutant_place(indices, i)];
        int64_t place = at * x->strides[0];

        mutant_put(y, i,
                   x->dtype == HOB_DTYPE_F64 ? ((const double *)x->data)[place]
                                             : ((const float *)x->data)[place]);
    }
    return HOB_OK;
}

#define MUTANT_SIGNATURE "(x: Float, indices: Int) -> x"
#define MUTANT_INFER infer
#define MUTANT_PREPARE prepare
#define MUTANT_EXECUTE execute
#define MUTANT_BODY NULL
#define MUTANT_IMPLS 1
#include "mutant_table.h"
