/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_isa.h - the kernels of sample.h for one instruction set. Included by
 * sample_base.c, sample_v2.c, sample_v3.c and sample_v4.c with TABLE defined.
 */
#include "sample.h"

#include "math_f32.h"

#include <stddef.h>
#include <string.h>

/* Terms of a sum from which on it runs in f64; columns at a time then. */
enum { MANY = 32, PIECE = 256 };

static inline double madd_f64(double a, double b, double c)
{
#ifdef __FMA__
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

#define TYPE float
#define NAME(x) f32_##x
#define MADD(a, b, c) madd(a, b, c)
#define FLOOR(x) __builtin_floorf(x)
#define RINT(x) __builtin_rintf(x)
#define FABS(x) __builtin_fabsf(x)
#include "sample_tmpl.h"
#undef TYPE
#undef NAME
#undef MADD
#undef FLOOR
#undef RINT
#undef FABS

#define TYPE double
#define NAME(x) f64_##x
#define MADD(a, b, c) madd_f64(a, b, c)
#define FLOOR(x) __builtin_floor(x)
#define RINT(x) __builtin_rint(x)
#define FABS(x) __builtin_fabs(x)
#include "sample_tmpl.h"
#undef TYPE
#undef NAME
#undef MADD
#undef FLOOR
#undef RINT
#undef FABS

#define TYPE_ENTRY(t)                                                          \
    {                                                                          \
        .blend = t##_blend, .pick = t##_pick, .put = t##_put,                  \
        .places = t##_places, .corners = t##_corners, .lines = t##_lines,      \
        .scale = t##_scale, .add = t##_add, .add_products = t##_add_products,  \
        .round = t##_round,                                                    \
    }

const struct flex_sample_kernels TABLE[FLEX_SAMPLE_COUNT_] = {
    [FLEX_SAMPLE_F32] = TYPE_ENTRY(f32),
    [FLEX_SAMPLE_F64] = TYPE_ENTRY(f64),
};

#undef TYPE_ENTRY
