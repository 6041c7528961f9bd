/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_isa.h - the attention kernels of one instruction set. Included by
 * attention_<isa>.c with TABLE, VECTOR_BYTES and TILE: TILE times two sums, two
 * vectors and a factor fit the registers.
 */
#include "attention.h"

#include "math_f32.h"
#include "math_f64.h"

#include <hob/types.h>

#include <math.h>
#include <string.h>

/* Elements that are converted or turned at a time. */
enum { PIECE = 64 };

/* ln(2)^i / i!, the Taylor series of 2^x: on |x| <= 1/2 its rest is below
 * half a unit after 8 terms in f32, after 14 in f64. */
static const double exp2_series[] = {
    1.0,
    0.6931471805599453,
    0.2402265069591007,
    0.055504108664821576,
    0.009618129107628477,
    0.0013333558146428441,
    0.00015403530393381606,
    1.5252733804059838e-05,
    1.3215486790144305e-06,
    1.0178086009239696e-07,
    7.054911620801121e-09,
    4.44553827187081e-10,
    2.5678435993488196e-11,
    1.3691488853904124e-12,
};

#define TYPE float
#define BITS int32_t
#define NAME(x) f32_##x
#define TANH(x) tanh_f32(x)
#define MAGIC (0x1.8p23f + 127)
#define SHIFT 23
#define LOWEST -126
#define HIGHEST 128
#define DEGREE 7
#include "attention_tmpl.h"
#undef TYPE
#undef BITS
#undef NAME
#undef TANH
#undef MAGIC
#undef SHIFT
#undef LOWEST
#undef HIGHEST
#undef DEGREE

#define TYPE double
#define BITS int64_t
#define NAME(x) f64_##x
#define TANH(x) tanh_f64(x)
#define MAGIC (0x1.8p52 + 1023)
#define SHIFT 52
#define LOWEST -1022
#define HIGHEST 1024
#define DEGREE 13
#include "attention_tmpl.h"
#undef TYPE
#undef BITS
#undef NAME
#undef TANH
#undef MAGIC
#undef SHIFT
#undef LOWEST
#undef HIGHEST
#undef DEGREE

#define ENTRY(t)                                                               \
    {                                                                          \
        .lanes = t##_lanes, .tile = TILE, .size = t##_size,                    \
        .load_block = t##_load_block, .store_block = t##_store_block,          \
        .load_panel = t##_load_panel, .store_panel = t##_store_panel,          \
        .is_finite = t##_is_finite, .multiply = t##_multiply,                  \
        .multiply_add = t##_multiply_add,                                      \
        .multiply_turned = t##_multiply_turned, .cap = t##_cap,                \
        .add = t##_add, .scale = t##_scale, .hide = t##_hide,                  \
        .hide_stairs = t##_hide_stairs, .softmax_step = t##_softmax_step,      \
        .weigh = t##_weigh,                                                    \
    }

const struct flex_attention_kernels TABLE[2] = {ENTRY(f32), ENTRY(f64)};

#undef ENTRY
