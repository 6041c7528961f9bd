/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise kernels of float type T; M(name) is the C library's function of
 * that type, V(name) the one for vectors where there is one. */
#define NEGATIVE(x) ((x) < 0)

static inline T SUFFIX(remainder_of)(T a, T b)
{
    T r = M(fmod)(a, b);

    if (r == 0)
        return M(copysign)(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
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
#define OP remainder
#define EXPR SUFFIX(remainder_of)(a[i], b[i])
#include "map_loop.h"
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
