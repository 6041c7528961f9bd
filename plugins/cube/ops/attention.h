/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.h - attention and its gradients as launches of one kernel.
 *
 * Forward, a group keeps some queries, and keys pass by; so it is for d_query.
 * For d_key and d_value it is the other way round. Each of the gradients makes
 * the scores anew: three products more than if d_query were added up across
 * groups, but no memory for that, no atomic sums, and results that repeat bit
 * by bit.
 */
#ifndef CUBE_ATTENTION_H
#define CUBE_ATTENTION_H

#include "../cube.h"

/* As attention.cube counts them. */
enum attention_mode { WEIGH = 1, D_QUERY, D_KEY, D_VALUE };

/* Operands that are broadcast, in the order of the kernel's buffers. */
enum { Q, K, V, GRAD, MASK, BIAS, OPERANDS };

struct attention {
    struct cube_device *device;
    struct hob_call *call;
    const struct hob_view *views[OPERANDS]; /* NULL: absent */
    const struct hob_view *lse, *delta;     /* row-major */
    const struct hob_view *slopes;          /* of the bias; NULL: not wanted */
    struct cube_space batch;                /* leading dimensions */
    int64_t row_steps[OPERANDS], column_steps[OPERANDS];
    int64_t queries, keys, d, e;
    double scale, cap; /* cap 0: none */
    int causal;
    /* Of the launch in work. */
    enum attention_mode mode;
    const struct hob_view *out;
};

/* The first five arguments of CALL, GRAD, which may be NULL, and the attributes
 * scale, softcap, causal from argument FIRST on. */
void cube_attention_init(struct attention *out, struct cube_device *device,
                         const struct hob_call *call,
                         const struct hob_view *grad, uint32_t first);
/* Whether there are tiles for MODE. */
int cube_attention_fits(struct attention *attention, enum attention_mode mode);
/* MODE's result into OUT. */
hob_status cube_attention_run(struct attention *attention,
                              enum attention_mode mode,
                              const struct hob_view *out);

#endif
