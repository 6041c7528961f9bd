/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.h - attention and its gradients as launches of one kernel.
 *
 * A group keeps some queries, and keys pass by. Of the gradients it makes that
 * of the queries alone; weights and slopes of the scores go to memory on the
 * way, and two plain products make the gradients of keys and values of them.
 * Results repeat bit by bit, since nothing is added up across groups. The
 * other designs weighed: each gradient makes the scores anew, which takes three
 * products of eight more; sums across groups by atomics, which do not repeat.
 */
#ifndef CUBE_ATTENTION_H
#define CUBE_ATTENTION_H

#include "../cube.h"

/* As attention.cube counts them. */
enum attention_mode { WEIGH = 1, SLOPES };

/* Operands that are broadcast, in the order of the kernel's buffers. */
enum { Q, K, V, GRAD, MASK, BIAS, OPERANDS };

/* What a call says beside its operands. */
struct attention_options {
    double scale, cap; /* cap 0: none */
    int64_t ahead;     /* causal: query i sees keys up to i + ahead */
    int causal;
};

struct attention {
    struct cube_device *device;
    struct hob_call *call;
    const struct hob_view *views[OPERANDS]; /* NULL: absent */
    const struct hob_view *lse, *delta;     /* row-major */
    const struct hob_view *slopes;          /* of the bias; NULL: not wanted */
    /* SLOPES: weights and slopes in f32, times scale, of rows of ROW_SIZE. */
    void *p, *w;
    int64_t row_size;
    struct cube_space batch;                /* leading dimensions */
    int64_t row_steps[OPERANDS], column_steps[OPERANDS];
    int64_t queries, keys, d, e;
    struct attention_options options;
    /* Of the launch in work. */
    enum attention_mode mode;
    const struct hob_view *out;
};

/* The operands of CALL, a forward or a backward one; NULL: absent. */
void cube_attention_operands(const struct hob_call *call, int is_backward,
                             const struct hob_view *out[OPERANDS]);
/* The attributes of CALL. */
struct attention_options cube_attention_options(const struct hob_call *call,
                                                int is_backward);
void cube_attention_init(struct attention *out, struct cube_device *device,
                         struct hob_call *call,
                         const struct hob_view *const views[OPERANDS],
                         const struct attention_options *options);
/* Whether there are tiles for MODE. */
int cube_attention_fits(struct attention *attention, enum attention_mode mode);
/* MODE's result into OUT. */
hob_status cube_attention_run(struct attention *attention,
                              enum attention_mode mode,
                              const struct hob_view *out);

/* attention_backward and attention_delta of CALL. */
hob_status cube_attention_backward(void *device, struct hob_call *call);
hob_status cube_attention_delta(void *device, struct hob_call *call);

#endif
