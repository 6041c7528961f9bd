/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One elementwise kernel: OP is its name, EXPR its value in terms of A, B and
 * C, of type R. FIRST is the type of A, where it is not T.
 */
#ifndef FIRST
#define FIRST T
#endif

static int64_t SUFFIX(OP)(void *out, const void *in_a, const void *in_b,
                          const void *in_c, int64_t n)
{
    R *o = out;
    const FIRST *a = in_a;
    const T *b = in_b;
    const T *c = in_c;

    (void)b;
    (void)c;
#pragma omp simd
    for (int64_t i = 0; i < n; i++)
        o[i] = (R)(EXPR);
    return -1;
}

#undef FIRST
#undef OP
#undef EXPR
