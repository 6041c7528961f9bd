/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.h - many cheap elementwise steps in one go, values in registers.
 *
 * A chain is a list of *links* that are run one after the other on a tile of
 * eight vectors, the accumulator, then on the next tile. Each does what the
 * kernel of its op does, with the same roundings; some do two such steps. A
 * link may begin with a load and end with a store of its own.
 */
#ifndef FLEX_CHAIN_H
#define FLEX_CHAIN_H

#include <stdint.h>

/* acc = f(acc, x); x is an operand. R: with the two exchanged. */
enum flex_link_kind {
    FLEX_LINK_NONE,
    FLEX_LINK_LOAD,  /* x */
    FLEX_LINK_STORE, /* x = acc */
    FLEX_LINK_PAST,  /* the same past the caches, where x is aligned */
    FLEX_LINK_ADD,
    FLEX_LINK_SUB,
    FLEX_LINK_RSUB,
    FLEX_LINK_MUL,
    FLEX_LINK_DIV,
    FLEX_LINK_RDIV,
    FLEX_LINK_MAX, /* maximum, minimum of acc and x */
    FLEX_LINK_RMAX,
    FLEX_LINK_MIN,
    FLEX_LINK_RMIN,
    FLEX_LINK_UPPER, /* clamp's bounds: NaN stays */
    FLEX_LINK_LOWER,
    FLEX_LINK_GATE, /* relu_backward of output acc and gradient x */
    FLEX_LINK_RGATE,
    FLEX_LINK_LEAK, /* leaky_relu of acc with slope x */
    FLEX_LINK_RLEAK,
    /* Two steps: with another operand, both single; */
    FLEX_LINK_MUL_ADD,
    FLEX_LINK_MUL_SUB,
    FLEX_LINK_ADD_MUL,
    FLEX_LINK_SUB_MUL,
    FLEX_LINK_SUB_DIV,
    FLEX_LINK_DIV_ADD,
    /* or relu before or after. */
    FLEX_LINK_ADD_RELU,
    FLEX_LINK_SUB_RELU,
    FLEX_LINK_MUL_RELU,
    FLEX_LINK_RELU_MUL,
    /* One step, whose operand is x after a step of its own with another, single
     * operand: acc + x * y. X is in full even where it is single. */
    FLEX_LINK_ADD_OF_MUL,
    FLEX_LINK_SUB_OF_MUL,
    FLEX_LINK_RSUB_OF_MUL,
    FLEX_LINK_MUL_OF_ADD,
    FLEX_LINK_MUL_OF_SUB,
    FLEX_LINK_MUL_OF_MUL,
    FLEX_LINK_ONE, /* from here on there is no x */
    FLEX_LINK_NEG = FLEX_LINK_ONE,
    FLEX_LINK_ABS,
    FLEX_LINK_SQUARE,
    FLEX_LINK_RECIP,
    FLEX_LINK_SQRT,
    FLEX_LINK_RELU,
    FLEX_LINK_ROUND_F16,
    FLEX_LINK_ROUND_BF16,
    FLEX_LINK_COUNT_
};

enum flex_link_moves {
    FLEX_LINK_TAKES = 1, /* acc = from before it */
    FLEX_LINK_GIVES = 2, /* to = acc after it */
    FLEX_LINK_MOVES = 4  /* how many kinds there are */
};

struct flex_link {
    uint8_t link;      /* enum flex_link_kind */
    uint8_t is_single; /* x is one element for all */
    uint8_t moves;     /* enum flex_link_moves */
    uint8_t reserved;
    /* Places of the table: of x, of the other operand of two, and where
     * acc comes from and goes to. */
    uint16_t value, second, from, to;
};

enum { FLEX_CHAIN_MOST = 320 }; /* links of one chain: 5 a step */

/* Run COUNT links on N elements each; AT is the table of operands. */
typedef void (*flex_chain_fn)(const struct flex_link *links, int64_t count,
                              void *const *at, int64_t n);

struct flex_chain_kernels {
    flex_chain_fn f32, f64;
};

extern const struct flex_chain_kernels flex_chain_base;
extern const struct flex_chain_kernels flex_chain_v2;
extern const struct flex_chain_kernels flex_chain_v3;
extern const struct flex_chain_kernels flex_chain_v4;

#endif
