/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All links, for whoever includes this: THREE, OF, TWO and ONE are the files to
 * include for each link with two operands, both single; with two of which one
 * is; with one, and none. LINK is its name after FLEX_LINK_, EXPR the vector
 * that it makes of accumulator A and operands X and Y. Sums and products are functions so that no compiler contracts them.
 */
#define LINK LOAD
#define EXPR(a, x) (x)
#include TWO
#define LINK ADD
#define EXPR(a, x) ((a) + (x))
#include TWO
#define LINK SUB
#define EXPR(a, x) ((a) - (x))
#include TWO
#define LINK RSUB
#define EXPR(a, x) ((x) - (a))
#include TWO
#define LINK MUL
#define EXPR(a, x) ((a) * (x))
#include TWO
#define LINK DIV
#define EXPR(a, x) ((a) / (x))
#include TWO
#define LINK RDIV
#define EXPR(a, x) ((x) / (a))
#include TWO
/* NaN wins. */
#define LINK MAX
#define EXPR(a, x) NAME(pick)((a > x) | (a != a), a, x)
#include TWO
#define LINK RMAX
#define EXPR(a, x) NAME(pick)((x > a) | (x != x), x, a)
#include TWO
#define LINK MIN
#define EXPR(a, x) NAME(pick)((a < x) | (a != a), a, x)
#include TWO
#define LINK RMIN
#define EXPR(a, x) NAME(pick)((x < a) | (x != x), x, a)
#include TWO
/* NaN stays: no number is above or below. */
#define LINK UPPER
#define EXPR(a, x) NAME(pick)(a > x, x, a)
#include TWO
#define LINK LOWER
#define EXPR(a, x) NAME(pick)(a < x, x, a)
#include TWO
#define LINK GATE
#define EXPR(a, x) NAME(drop)(a <= 0, x)
#include TWO
#define LINK RGATE
#define EXPR(a, x) NAME(drop)(x <= 0, a)
#include TWO
#define LINK LEAK
#define EXPR(a, x) NAME(pick)(a < 0, (a) * (x), a)
#include TWO
#define LINK RLEAK
#define EXPR(a, x) NAME(pick)(x < 0, (x) * (a), x)
#include TWO
#define LINK ADD_RELU
#define EXPR(a, x) NAME(relu)(NAME(sum)(a, x))
#include TWO
#define LINK SUB_RELU
#define EXPR(a, x) NAME(relu)((a) - (x))
#include TWO
#define LINK MUL_RELU
#define EXPR(a, x) NAME(relu)(NAME(product)(a, x))
#include TWO
#define LINK RELU_MUL
#define EXPR(a, x) NAME(product)(NAME(relu)(a), x)
#include TWO

#define LINK MUL_ADD
#define EXPR(a, x, y) NAME(sum)(NAME(product)(a, x), y)
#include THREE
#define LINK MUL_SUB
#define EXPR(a, x, y) (NAME(product)(a, x) - (y))
#include THREE
#define LINK ADD_MUL
#define EXPR(a, x, y) NAME(product)(NAME(sum)(a, x), y)
#include THREE
#define LINK SUB_MUL
#define EXPR(a, x, y) NAME(product)((a) - (x), y)
#include THREE
#define LINK SUB_DIV
#define EXPR(a, x, y) (((a) - (x)) / (y))
#include THREE
#define LINK DIV_ADD
#define EXPR(a, x, y) NAME(sum)((a) / (x), y)
#include THREE

#define LINK ADD_OF_MUL
#define EXPR(a, x, y) NAME(sum)(a, NAME(product)(x, y))
#include OF
#define LINK SUB_OF_MUL
#define EXPR(a, x, y) ((a) - NAME(product)(x, y))
#include OF
#define LINK RSUB_OF_MUL
#define EXPR(a, x, y) (NAME(product)(x, y) - (a))
#include OF
#define LINK MUL_OF_ADD
#define EXPR(a, x, y) NAME(product)(a, NAME(sum)(x, y))
#include OF
#define LINK MUL_OF_SUB
#define EXPR(a, x, y) NAME(product)(a, (x) - (y))
#include OF
#define LINK MUL_OF_MUL
#define EXPR(a, x, y) NAME(product)(a, NAME(product)(x, y))
#include OF

#define LINK NEG
#define EXPR(a) (-(a))
#include ONE
#define LINK ABS
#define EXPR(a) NAME(magnitude)(a)
#include ONE
#define LINK SQUARE
#define EXPR(a) ((a) * (a))
#include ONE
#define LINK RECIP
#define EXPR(a) (1 / (a))
#include ONE
#define LINK SQRT
#define EXPR(a) NAME(root)(a)
#include ONE
#define LINK RELU
#define EXPR(a) NAME(relu)(a)
#include ONE
#define LINK ROUND_F16
#define EXPR(a) NAME(round_f16)(a)
#include ONE
#define LINK ROUND_BF16
#define EXPR(a) NAME(round_bf16)(a)
#include ONE

#undef THREE
#undef OF
#undef TWO
#undef ONE
