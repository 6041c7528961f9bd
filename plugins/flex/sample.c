/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"

const struct flex_sample_kernels *
flex_sample_kernels(const struct flex_device *device, uint32_t dtype)
{
    const struct flex_sample_kernels *table =
        FLEX_BY_ISA(device->isa, flex_sample_kernels);

    return &table[dtype == HOB_DTYPE_F64 ? FLEX_SAMPLE_F64 : FLEX_SAMPLE_F32];
}

hob_status flex_sample_prepare(void *device, const struct hob_call *call,
                               struct hob_prepare *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int64_t side = x->dtype == HOB_DTYPE_F64 ? INT32_MAX : 1 << 24;

    (void)device;
    (void)out;
    return !x->shape[2] || !x->shape[3] || x->shape[2] > side ||
                   x->shape[3] > side || x->shape[3] > INT32_MAX / x->shape[2]
               ? HOB_ERR_UNSUPPORTED
               : HOB_OK;
}
