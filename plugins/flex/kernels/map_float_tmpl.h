/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise kernels of float type T; M(name) is the C library's function of
 * that type, V(name) the one for vectors where there is one. */
#define NEGATIVE(x) ((x) < 0)

/* The remainder by B of which R is that of fmod. */
static inline T SUFFIX(with_sign_of)(T r, T b)
{
    T moved = (r < 0) != (b < 0) ? r + b : r;

    return r == 0 ? M(copysign)(0, b) : moved;
}

static inline T SUFFIX(remainder_of)(T a, T b)
{
    T r = M(fmod)(a, b);

    return SUFFIX(with_sign_of)(r, b);
}

#define R T
#define OP add
#define EXPR a[i] + b[i]
#include "map_loop.h"
#define OP sub
#define EXPR a[i] - b[i]
#include "map_loop.h"
#define OP mul
#define EXPR a[i] * b[i]
#include "map_loop.h"
#define OP div
#define EXPR a[i] / b[i]
#include "map_loop.h"

/* PIECE remainders of f32 by their quotients in f64, where those are less than
 * 2^28: then a - q b is exact. One unit too much in q is made good by the sign.
 * Nonzero if all are. */
enum { SUFFIX(remainder_piece) = 64 };

static inline int SUFFIX(quick_remainders)(T *out, const T *a, const T *b)
{
    int good = 1;

#pragma omp simd reduction(& : good)
    for (int i = 0; i < SUFFIX(remainder_piece); i++) {
        double x = (double)a[i], y = (double)b[i];
        double quotient = x / y;
        int near = (fabs(quotient) < 0x1p28) & (fabs(y) < (double)INFINITY);
        double q = (double)(int32_t)(near ? quotient : 0);

        out[i] = SUFFIX(with_sign_of)((T)(x - q * y), b[i]);
        good &= near;
    }
    return good;
}

static int64_t SUFFIX(remainder)(void *out, const void *in_a, const void *in_b,
                                 const void *in_c, int64_t n)
{
    enum { PIECE = SUFFIX(remainder_piece) };
    T *o = out, piece[PIECE];
    const T *a = in_a, *b = in_b;
    int64_t i = 0;

    (void)in_c;
    while (i < n) {
        const int64_t end = n - i < PIECE ? n : i + PIECE;

        if (sizeof(T) == sizeof(float) && end - i == PIECE &&
            SUFFIX(quick_remainders)(piece, a + i, b + i)) {
            memcpy(o + i, piece, sizeof(piece));
            i = end;
        }
        for (; i < end; i++)
            o[i] = SUFFIX(remainder_of)(a[i], b[i]);
    }
    return -1;
}

#define OP pow
#define EXPR V(pow)(a[i], b[i])
#include "map_loop.h"
/* NaN if either is NaN. */
#define OP maximum
#define EXPR ((a[i] > b[i]) | (a[i] != a[i])) ? a[i] : b[i]
#include "map_loop.h"
#define OP minimum
#define EXPR ((a[i] < b[i]) | (a[i] != a[i])) ? a[i] : b[i]
#include "map_loop.h"
#define OP atan2
#define EXPR V(atan2)(a[i], b[i])
#include "map_loop.h"
#define OP hypot
#define EXPR V(hypot)(a[i], b[i])
#include "map_loop.h"
#define OP neg
#define EXPR -a[i]
#include "map_loop.h"
#define OP abs
#define EXPR M(fabs)(a[i])
#include "map_loop.h"
#define OP square
#define EXPR a[i] * a[i]
#include "map_loop.h"
#define OP recip
#define EXPR 1 / a[i]
#include "map_loop.h"
#define OP recip_square
#define EXPR 1 / (a[i] * a[i])
#include "map_loop.h"
#define OP sqrt
#define EXPR M(sqrt)(a[i])
#include "map_loop.h"
#define OP exp
#define EXPR V(exp)(a[i])
#include "map_loop.h"
#define OP log
#define EXPR V(log)(a[i])
#include "map_loop.h"
#define OP log1p
#define EXPR V(log1p)(a[i])
#include "map_loop.h"
#define OP erf
#define EXPR V(erf)(a[i])
#include "map_loop.h"
#define OP tanh
#define EXPR V(tanh)(a[i])
#include "map_loop.h"
#define OP sinh
#define EXPR V(sinh)(a[i])
#include "map_loop.h"
#define OP cosh
#define EXPR V(cosh)(a[i])
#include "map_loop.h"
#define OP asin
#define EXPR V(asin)(a[i])
#include "map_loop.h"
#define OP acos
#define EXPR V(acos)(a[i])
#include "map_loop.h"
#define OP atan
#define EXPR V(atan)(a[i])
#include "map_loop.h"
#define OP asinh
#define EXPR V(asinh)(a[i])
#include "map_loop.h"
#define OP acosh
#define EXPR V(acosh)(a[i])
#include "map_loop.h"
#define OP atanh
#define EXPR V(atanh)(a[i])
#include "map_loop.h"
#define OP floor
#define EXPR M(floor)(a[i])
#include "map_loop.h"
#define OP ceil
#define EXPR M(ceil)(a[i])
#include "map_loop.h"
#define OP round
#define EXPR M(rint)(a[i])
#include "map_loop.h"
#define OP trunc
#define EXPR M(trunc)(a[i])
#include "map_loop.h"
#define OP relu
#define EXPR a[i] <= 0 ? 0 : a[i]
#include "map_loop.h"
#define OP gelu
#define EXPR V(gelu)(a[i])
#include "map_loop.h"
#define OP sigmoid
#define EXPR V(sigmoid)(a[i])
#include "map_loop.h"
/* a is the output, b the gradient; NaN lets it through. */
#define OP relu_backward
#define EXPR a[i] <= 0 ? 0 : b[i]
#include "map_loop.h"
#define OP gelu_backward
#define EXPR V(gelu_slope)(a[i]) * b[i]
#include "map_loop.h"
#define OP sigmoid_backward
#define EXPR b[i] * (a[i] * (1 - a[i]))
#include "map_loop.h"
#include "map_activation_tmpl.h"
#undef R

#define R uint8_t
#define OP is_nan
#define EXPR a[i] != a[i]
#include "map_loop.h"
#define OP is_inf
#define EXPR M(fabs)(a[i]) == INFINITY
#include "map_loop.h"
#undef R

#include "map_common_tmpl.h"

#undef T
#undef M
#undef V
#undef NEGATIVE
#undef SUFFIX
