/* SPDX-License-Identifier: Apache-2.0 */
#include "sample.h"

const struct flex_sample_kernels *
flex_sample_kernels(const struct flex_device *device, uint32_t dtype)
{
    static const struct flex_sample_kernels *const tables[FLEX_ISA_COUNT_] = {
        [FLEX_ISA_BASE] = flex_sample_kernels_base,
#if defined(__x86_64__)
        [FLEX_ISA_V2] = flex_sample_kernels_v2,
        [FLEX_ISA_V3] = flex_sample_kernels_v3,
        [FLEX_ISA_V4] = flex_sample_kernels_v4,
#endif
    };
    const struct flex_sample_kernels *table =
        tables[device->isa] ? tables[device->isa] : flex_sample_kernels_base;

    return &table[dtype == HOB_DTYPE_F64 ? FLEX_SAMPLE_F64 : FLEX_SAMPLE_F32];
}
