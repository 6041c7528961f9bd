/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample_isa.h - the kernels of sample.h for one instruction set. Included by
 * sample_base.c, sample_v2.c, sample_v3.c and sample_v4.c with TABLE defined.
 */
#include "sample.h"

#include "math_f32.h"

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
#include "sample_tmpl.h"
#undef TYPE
#undef NAME
#undef MADD

#define TYPE double
#define NAME(x) f64_##x
#define MADD(a, b, c) madd_f64(a, b, c)
#include "sample_tmpl.h"
#undef TYPE
#undef NAME
#undef MADD

const struct flex_sample_kernels TABLE[FLEX_SAMPLE_COUNT_] = {
    [FLEX_SAMPLE_F32] = {.blend = f32_blend, .pick = f32_pick},
    [FLEX_SAMPLE_F64] = {.blend = f64_blend, .pick = f64_pick},
};
