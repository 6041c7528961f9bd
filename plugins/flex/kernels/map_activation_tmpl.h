/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Activations of float type T, and the gradients B at the places A. C (of
 * hard_sigmoid B too) is an attribute, the same for all elements.
 */
#define OP silu
#define EXPR a[i] * V(sigmoid)(a[i])
#include "map_loop.h"

static inline T SUFFIX(silu_slope)(T x)
{
    T s = V(sigmoid)(x);

    return s * (1 + x * (1 - s));
}
#define OP silu_backward
#define EXPR b[i] * SUFFIX(silu_slope)(a[i])
#include "map_loop.h"

/*
 * With e = e^x and n = e (e + 2), tanh(log(1 + e)) is n / (n + 2): one
 * exponential. Above MISH_MOST that is 1, and n^2 would overflow an f32.
 */
enum { SUFFIX(mish_most) = sizeof(T) == 8 ? 40 : 20 };

static inline T SUFFIX(mish_of)(T x)
{
    T e = V(exp)(x > SUFFIX(mish_most) ? SUFFIX(mish_most) : x);
    T n = e * (e + 2);

    return x * (n / (n + 2));
}
#define OP mish
#define EXPR SUFFIX(mish_of)(a[i])
#include "map_loop.h"

static inline T SUFFIX(mish_slope)(T x)
{
    T low = x > SUFFIX(mish_most) ? SUFFIX(mish_most) : x;
    T e = V(exp)(low);
    T n = e * (e + 2);
    T q = 1 / (n + 2);

    return n * q + low * 4 * (e * q) * ((1 + e) * q);
}
#define OP mish_backward
#define EXPR b[i] * SUFFIX(mish_slope)(a[i])
#include "map_loop.h"

/* log(1 + e^x) */
static inline T SUFFIX(softplus_of)(T x)
{
    return (x < 0 ? 0 : x) + V(log1p_unit)(V(exp)(-M(fabs)(x)));
}
#define OP softplus
#define EXPR SUFFIX(softplus_of)(a[i] * b[i]) / b[i]
#include "map_loop.h"
#define OP softplus_backward
#define EXPR b[i] * V(sigmoid)(a[i] * c[i])
#include "map_loop.h"

#define OP log_sigmoid
#define EXPR (a[i] > 0 ? 0 : a[i]) - V(log1p_unit)(V(exp)(-M(fabs)(a[i])))
#include "map_loop.h"
#define OP log_sigmoid_backward
#define EXPR b[i] * V(sigmoid)(-a[i])
#include "map_loop.h"

#define OP elu
#define EXPR a[i] < 0 ? b[i] * V(expm1)(a[i]) : a[i]
#include "map_loop.h"
#define OP elu_backward
#define EXPR a[i] < 0 ? b[i] * (c[i] * V(exp)(a[i])) : b[i]
#include "map_loop.h"

#define OP celu
#define EXPR a[i] < 0 ? b[i] * V(expm1)(a[i] / b[i]) : a[i]
#include "map_loop.h"
#define OP celu_backward
#define EXPR a[i] < 0 ? b[i] * V(exp)(a[i] / c[i]) : b[i]
#include "map_loop.h"

/* The constants of Klambauer et al., arXiv:1706.02515; the first is theirs of
 * both, the second the slope above 0. */
#define SELU_LOW ((T)1.7580993408473766)
#define SELU_HIGH ((T)1.0507009873554804934)
#define OP selu
#define EXPR a[i] < 0 ? SELU_LOW *V(expm1)(a[i]) : SELU_HIGH *a[i]
#include "map_loop.h"
#define OP selu_backward
#define EXPR b[i] * (a[i] < 0 ? SELU_LOW * V(exp)(a[i]) : SELU_HIGH)
#include "map_loop.h"
#undef SELU_LOW
#undef SELU_HIGH

#define OP glu
#define EXPR a[i] * V(sigmoid)(b[i])
#include "map_loop.h"

#define OP softsign
#define EXPR a[i] / (1 + M(fabs)(a[i]))
#include "map_loop.h"
#define OP softsign_backward
#define EXPR b[i] / ((1 + M(fabs)(a[i])) * (1 + M(fabs)(a[i])))
#include "map_loop.h"

/* prelu too: b is a slope for each element. */
#define OP leaky_relu
#define EXPR a[i] < 0 ? a[i] * b[i] : a[i]
#include "map_loop.h"
#define OP leaky_relu_backward
#define EXPR a[i] < 0 ? b[i] * c[i] : b[i]
#include "map_loop.h"

static inline T SUFFIX(clipped)(T x, T most)
{
    T low = x > most ? most : x;

    return low < 0 ? 0 : low; /* NaN stays */
}
#define OP hard_sigmoid
#define EXPR SUFFIX(clipped)(a[i] * b[i] + c[i], 1)
#include "map_loop.h"

#define OP hard_swish
#define EXPR a[i] * SUFFIX(clipped)(a[i] + 3, 6) / 6
#include "map_loop.h"
#define OP hard_swish_backward
#define EXPR                                                                   \
    b[i] * (a[i] < -3 ? 0 : a[i] > 3 ? 1 : a[i] * (T)(1.0 / 3) + (T)0.5)
#include "map_loop.h"
