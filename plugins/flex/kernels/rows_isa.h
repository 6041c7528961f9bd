/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_isa.h - the row kernels of one instruction set. Included by
 * rows_base.c, rows_v2.c, rows_v3.c and rows_v4.c with TABLE defined.
 */
#include "rows.h"

#include "math_f32.h"
#include "math_f64.h"

#include <float.h>
#include <stddef.h>
#include <string.h>

/* Sums in a reduction: vectors of LANES, one of AVX-512 in f32, and CHAINS of
 * them, as an addition takes some cycles to be ready for the next. */
enum { LANES = 16, CHAINS = 4, SIDE = LANES * CHAINS };

/* Elements that are summed in their own type. */
enum { PIECE = 8192 };

/* What a sum is over. */
enum term { TERM_PLAIN, TERM_PRODUCT, TERM_MOMENT };

#define TYPE float
#define NAME(x) f32_##x
#define EXP(x) exp_f32(x)
#define SQRT(x) __builtin_sqrtf(x)
#include "rows_tmpl.h"

#define TYPE double
#define NAME(x) f64_##x
#define EXP(x) exp_f64(x)
#define SQRT(x) __builtin_sqrt(x)
#include "rows_tmpl.h"

#include "rows_adam.h"

#define TYPE_ENTRY(t)                                                          \
    {                                                                          \
        .softmax = t##_softmax, .log_softmax = t##_log_softmax,                \
        .softmax_backward = t##_softmax_backward,                              \
        .log_softmax_backward = t##_log_softmax_backward,                      \
        .cross_entropy = t##_cross_entropy,                                    \
        .cross_entropy_backward = t##_cross_entropy_backward,                  \
        .layer_norm = t##_layer_norm, .rms_norm = t##_rms_norm,                \
        .moments = t##_moments, .norm_backward = t##_norm_backward,            \
        .affine = t##_affine, .adam = t##_best_adam, .sgd = t##_sgd,                \
        .add_scaled = t##_add_scaled, .add = t##_add, .max = t##_max,          \
        .dot = t##_dot,                                                        \
    }

const struct flex_row_kernels TABLE[FLEX_ROW_COUNT_] = {
    [FLEX_ROW_F32] = TYPE_ENTRY(f32),
    [FLEX_ROW_F64] = TYPE_ENTRY(f64),
};

#undef TYPE_ENTRY
