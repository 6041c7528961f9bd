/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rules.h - the backward rules of the built-in ops, by family.
 *
 * A rule runs one level below the layer that recorded the op and calls ops
 * like any program does, so a second autodiff below records it in turn.
 */
#ifndef HOB_AUTODIFF_RULES_H
#define HOB_AUTODIFF_RULES_H

#include <hob/ext/plugin.h>
#include <hob/ops.h>

/* One past the highest number of a built-in op that can have a rule. */
enum { AD_OP_LIMIT = HOB_OP_COUNT_ };

struct ad_rule {
    uint32_t op;
    struct hob_backward backward;
};

struct ad_family {
    const struct ad_rule *rules;
    uint32_t count;
};

extern const struct ad_family ad_rules_activation;
extern const struct ad_family ad_rules_arithmetic;
extern const struct ad_family ad_rules_attention;
extern const struct ad_family ad_rules_conv;
extern const struct ad_family ad_rules_fft;
extern const struct ad_family ad_rules_index;
extern const struct ad_family ad_rules_linalg;
extern const struct ad_family ad_rules_norm;
extern const struct ad_family ad_rules_reduce;
extern const struct ad_family ad_rules_sample;
extern const struct ad_family ad_rules_shape;
extern const struct ad_family ad_rules_sort;
extern const struct ad_family ad_rules_unary;

/* Enter the rules of all families into TABLE, by op number. */
void ad_rules_fill(const struct hob_backward *table[AD_OP_LIMIT]);

/* ---- what rules have in common ---- */

/* DIM of a tensor of RANK, counted from the front. */
static inline int64_t ad_dim(int64_t dim, uint32_t rank)
{
    return dim < 0 ? dim + (int64_t)rank : dim;
}

/* The number of elements that META describes. */
static inline int64_t ad_count(const struct hob_meta *meta)
{
    int64_t count = 1;

    for (uint32_t i = 0; i < meta->rank; i++)
        count *= meta->shape[i];
    return count;
}

/*
 * The gradient of the only result, for the last time: nobody but the walk has
 * it then, unless another input got the same, so what is made of it can be
 * written over it.
 */
static inline hob_tensor *ad_last_grad(hob_scope *scope,
                                       const struct hob_grad_call *call)
{
    return hob_move(scope, call->grads[0]);
}

/* Nonzero if TENSOR's shape is META's. */
int ad_same_shape(const hob_tensor *tensor, const struct hob_meta *meta);

/* A tensor of META filled with zeros, on the device of LIKE. */
hob_tensor *ad_zeros(hob_scope *scope, const struct hob_meta *meta,
                     hob_tensor *like);

/* TENSOR's elements in META's shape. */
hob_tensor *ad_reshape(hob_scope *scope, hob_tensor *tensor,
                       const struct hob_meta *meta);

/* TENSOR broadcast to META's shape. */
hob_tensor *ad_expand(hob_scope *scope, hob_tensor *tensor,
                      const struct hob_meta *meta);

/* FIRST up to LAST of TENSOR along DIM, the other dimensions whole. */
hob_tensor *ad_narrow(hob_scope *scope, hob_tensor *tensor, int64_t dim,
                      int64_t first, int64_t last);

/* Swap the last two dimensions of TENSOR. */
hob_tensor *ad_transpose(hob_scope *scope, hob_tensor *tensor);

/*
 * Sum GRAD over the dimensions in which META was broadcast to it, so that it
 * has META's shape. GRAD itself if there are none.
 */
hob_tensor *ad_sum_to(hob_scope *scope, hob_tensor *grad,
                      const struct hob_meta *meta);

#endif
