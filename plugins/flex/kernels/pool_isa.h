/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_isa.h - pooling for one instruction set. Included by pool_base.c
 * (whatever the compiler assumes) and _v2.c, _v3.c, _v4.c, with VECTOR_BYTES
 * and TABLE defined.
 */
#include "pool.h"

#include <math.h>
#include <string.h>

#define TYPE float
#define BITS int32_t
#define LANES (VECTOR_BYTES / 4)
#define NARROW_LANES 4
#define NAME(x) f32_##x
#include "pool_tmpl.h"

#define TYPE double
#define BITS int64_t
#define LANES (VECTOR_BYTES / 8)
#define NARROW_LANES 2
#define NAME(x) f64_##x
#include "pool_tmpl.h"

#define TYPE_ENTRY(t)                                                          \
    {                                                                          \
        .max = t##_max, .max_index = t##_max_index, .mean = t##_mean,          \
        .mean_back = t##_mean_back, .max_back = t##_max_back,                  \
    }

const struct flex_pool_kernels TABLE[FLEX_POOL_TYPE_COUNT_] = {
    [FLEX_POOL_F32] = TYPE_ENTRY(f32),
    [FLEX_POOL_F64] = TYPE_ENTRY(f64),
};

#undef TYPE_ENTRY
