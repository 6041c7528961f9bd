/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elementwise kernels of integer type T. U is the unsigned type of its width,
 * W the type to compute in: unsigned and at least 32 bits, so that overflow
 * wraps and never meets the promotion to int. SIGNED is 1 or 0,
 * NEGATIVE(x) is x < 0 where there are negative numbers.
 */
#define R T
#define OP add
#define EXPR (W) a[i] + (W)b[i]
#include "map_loop.h"
#define OP sub
#define EXPR (W) a[i] - (W)b[i]
#include "map_loop.h"
#define OP mul
#define EXPR (W) a[i] * (W)b[i]
#include "map_loop.h"
#define OP maximum
#define EXPR a[i] > b[i] ? a[i] : b[i]
#include "map_loop.h"
#define OP minimum
#define EXPR a[i] < b[i] ? a[i] : b[i]
#include "map_loop.h"
#define OP neg
#define EXPR (W)0 - (W)a[i]
#include "map_loop.h"
#define OP abs
#define EXPR NEGATIVE(a[i]) ? (W)0 - (W)a[i] : (W)a[i]
#include "map_loop.h"
#define OP square
#define EXPR (W) a[i] * (W)a[i]
#include "map_loop.h"
#define OP and
#define EXPR a[i] & b[i]
#include "map_loop.h"
#define OP or
#define EXPR a[i] | b[i]
#include "map_loop.h"
#define OP xor
#define EXPR a[i] ^ b[i]
#include "map_loop.h"
#define OP not
#define EXPR ~a[i]
#include "map_loop.h"
/* Amounts count modulo the width. */
#define OP left_shift
#define EXPR (W) a[i] << ((W)b[i] & (sizeof(T) * 8 - 1))
#include "map_loop.h"
#define OP right_shift
#define EXPR a[i] >> ((W)b[i] & (sizeof(T) * 8 - 1))
#include "map_loop.h"
#undef R

/* Toward zero; the least integer over -1 wraps to itself. */
static int64_t SUFFIX(div)(void *out, const void *in_a, const void *in_b,
                           const void *in_c, int64_t n)
{
    T *o = out;
    const T *a = in_a;
    const T *b = in_b;

    (void)in_c;
    for (int64_t i = 0; i < n; i++) {
        if (b[i] == 0)
            return i;
        o[i] = (T)(SIGNED && b[i] == (T)-1 ? (T)((W)0 - (W)a[i])
                                           : (T)(a[i] / b[i]));
    }
    return -1;
}

/* With the sign of the divisor. */
static int64_t SUFFIX(remainder)(void *out, const void *in_a, const void *in_b,
                                 const void *in_c, int64_t n)
{
    T *o = out;
    const T *a = in_a;
    const T *b = in_b;

    (void)in_c;
    for (int64_t i = 0; i < n; i++) {
        T divisor = b[i], r;

        if (divisor == 0)
            return i;
        r = (T)(SIGNED && divisor == (T)-1 ? 0 : a[i] % divisor);
        if (r != 0 && NEGATIVE(r) != NEGATIVE(divisor))
            r = (T)(r + divisor);
        o[i] = r;
    }
    return -1;
}

/* Exact modulo 2^width. A negative exponent gives the quotient 1 / x^n, which
 * is a division by zero where x is 0. */
static int64_t SUFFIX(pow)(void *out, const void *in_a, const void *in_b,
                           const void *in_c, int64_t n)
{
    T *o = out;
    const T *a = in_a;
    const T *b = in_b;

    (void)in_c;
    for (int64_t i = 0; i < n; i++) {
        T x = a[i];
        T exponent = b[i];
        W power = 1, base = (W)x;

        if (NEGATIVE(exponent)) {
            if (x == 0)
                return i;
            o[i] = x == 1 ? 1 : x == (T)-1 ? (T)((exponent & 1) ? -1 : 1) : 0;
            continue;
        }
        for (U left = (U)exponent; left; left = (U)(left >> 1)) {
            if (left & 1)
                power *= base;
            base *= base;
        }
        o[i] = (T)power;
    }
    return -1;
}

#include "map_common_tmpl.h"

#undef T
#undef U
#undef W
#undef SIGNED
#undef NEGATIVE
#undef SUFFIX
