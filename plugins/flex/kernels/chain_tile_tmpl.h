/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All links on one tile of VECTORS vectors, from element I on. LOAD and STORE
 * move a vector, or its first REST elements. TILE is the function's name.
 */
static inline __attribute__((always_inline)) void
TILE(const struct flex_link *links, int64_t count, void *const *at,
           int64_t i, size_t rest)
{
    NAME(vector) v[VECTORS] = {{0}};

    (void)rest;
    for (int64_t k = 0; k < count; k++) {
        TYPE *x = (TYPE *)at[links[k].value] + (links[k].is_single ? 0 : i);

        switch (2 * links[k].link + links[k].is_single) {
        case 2 * FLEX_LINK_STORE:
#pragma GCC unroll 8
            for (int j = 0; j < VECTORS; j++)
                STORE(x + j * LANES, v[j]);
            break;
        case 2 * FLEX_LINK_PAST:
#pragma GCC unroll 8
            for (int j = 0; j < VECTORS; j++)
                PAST(x + j * LANES, v[j]);
            break;
#define LINK FLEX_LINK_LOAD
#define EXPR(a, x) (x)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_ADD
#define EXPR(a, x) ((a) + (x))
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_SUB
#define EXPR(a, x) ((a) - (x))
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_RSUB
#define EXPR(a, x) ((x) - (a))
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_MUL
#define EXPR(a, x) ((a) * (x))
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_DIV
#define EXPR(a, x) ((a) / (x))
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_RDIV
#define EXPR(a, x) ((x) / (a))
#include "chain_link_tmpl.h"
/* NaN wins. */
#define LINK FLEX_LINK_MAX
#define EXPR(a, x) NAME(pick)((a > x) | (a != a), a, x)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_RMAX
#define EXPR(a, x) NAME(pick)((x > a) | (x != x), x, a)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_MIN
#define EXPR(a, x) NAME(pick)((a < x) | (a != a), a, x)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_RMIN
#define EXPR(a, x) NAME(pick)((x < a) | (x != x), x, a)
#include "chain_link_tmpl.h"
/* NaN stays: no number is above or below. */
#define LINK FLEX_LINK_UPPER
#define EXPR(a, x) NAME(pick)(a > x, x, a)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_LOWER
#define EXPR(a, x) NAME(pick)(a < x, x, a)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_GATE
#define EXPR(a, x) NAME(drop)(a <= 0, x)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_RGATE
#define EXPR(a, x) NAME(drop)(x <= 0, a)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_LEAK
#define EXPR(a, x) NAME(pick)(a < 0, a *x, a)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_RLEAK
#define EXPR(a, x) NAME(pick)(x < 0, x *a, x)
#include "chain_link_tmpl.h"
#define LINK FLEX_LINK_NEG
#define EXPR(a) (-(a))
#include "chain_one_tmpl.h"
#define LINK FLEX_LINK_ABS
#define EXPR(a) NAME(magnitude)(a)
#include "chain_one_tmpl.h"
#define LINK FLEX_LINK_SQUARE
#define EXPR(a) ((a) * (a))
#include "chain_one_tmpl.h"
#define LINK FLEX_LINK_RECIP
#define EXPR(a) (1 / (a))
#include "chain_one_tmpl.h"
#define LINK FLEX_LINK_SQRT
#define EXPR(a) NAME(root)(a)
#include "chain_one_tmpl.h"
#define LINK FLEX_LINK_RELU
#define EXPR(a) NAME(drop)(a <= 0, a)
#include "chain_one_tmpl.h"
#define LINK FLEX_LINK_ROUND_F16
#define EXPR(a) NAME(round_f16)(a)
#include "chain_one_tmpl.h"
#define LINK FLEX_LINK_ROUND_BF16
#define EXPR(a) NAME(round_bf16)(a)
#include "chain_one_tmpl.h"
        default:
            break;
        }
    }
}

#undef VECTORS
#undef LOAD
#undef STORE
#undef PAST
#undef TILE
