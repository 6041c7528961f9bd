/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementwise_reference.h - what each elementwise op is, one element at a
 * time, in long double and in 64-bit integers.
 */
#ifndef ELEMENTWISE_REFERENCE_H
#define ELEMENTWISE_REFERENCE_H

#include <stdint.h>

struct reference {
    const char *op;
    const char *kinds; /* an argument each: x tensor, b bool tensor, s scalar */
    uint32_t arity;
    uint32_t mask; /* dtypes of x */
    int no_zeros;  /* bit i: argument i must not be 0 where it is an integer */
    double ulps;   /* allowed in f32; f64 4, f16 and bf16 1 (one rounding of
                      an f32 result); -1: a sum that cancels, see the test */
    const char *base; /* the op that it is a form of, or NULL */
};

/* NULL if there is none. */
const struct reference *reference_find(const char *op);
/* The value for float arguments, X[0] .. X[2] in the op's order. */
long double reference_float(const struct reference *reference,
                            const long double *x);
/* The same in double, for loops over many values of f32. */
double reference_float_quick(const struct reference *reference,
                             const long double *x);
/* The bits of the result, of DTYPE or bool, for arguments BITS (sign-extended)
 * that are NUMBERS. */
uint64_t reference_int(const struct reference *reference, uint32_t dtype,
                       const long double *numbers, const uint64_t *bits);

#endif
