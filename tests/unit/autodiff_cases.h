/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autodiff_cases.h - one row a rule of test_autodiff_rules.c, or more where
 * broadcasting or an attribute makes another path.
 */
#ifndef AUTODIFF_CASES_H
#define AUTODIFF_CASES_H

#include <hob/hob.h>

#include "autodiff_cases_composed.h"

#include <math.h>

enum { MAX_IN = 5, MAX_COUNT = 64 };

struct input {
    double low, high;
    int32_t rank; /* of shape; -1: there is no such input */
    int64_t shape[5];
};

typedef hob_tensor *(*case_fn)(hob_scope *s, hob_tensor *const *in);
typedef hob_tensor *(*unary_fn)(hob_scope *s, hob_tensor *x);
typedef hob_tensor *(*binary_fn)(hob_scope *s, hob_tensor *a, hob_tensor *b);

struct row {
    const char *name;
    unary_fn unary;
    binary_fn binary;
    case_fn fn;
    struct input in[MAX_IN + 1]; /* closed by one of rank -1 */
};

/* ---- the functions of cases that need attributes or indices ---- */

static hob_tensor *ints(hob_scope *s, hob_tensor *like, const int64_t *data,
                        const int64_t *shape, int32_t rank)
{
    return hob_from_i64(s, hob_tensor_device(like), data, shape, rank);
}

static hob_tensor *mask_of(hob_scope *s, hob_tensor *like, const int64_t *data,
                           const int64_t *shape, int32_t rank)
{
    return hob_cast(s, ints(s, like, data, shape, rank), HOB_DTYPE_BOOL);
}

static hob_tensor *f_add_scalar(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_add_scalar(s, in[0], hob_f64(2)));
}

static hob_tensor *f_sub_scalar(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_sub_scalar(s, in[0], hob_i64(2)));
}

static hob_tensor *f_mul_scalar(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_mul_scalar(s, in[0], hob_f64(-1.5)));
}

static hob_tensor *f_div_scalar(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_div_scalar(s, in[0], hob_f64(-1.5)));
}

static hob_tensor *f_remainder_scalar(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_remainder_scalar(s, in[0], hob_f64(0.7)));
}

static hob_tensor *f_rsub_scalar(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_rsub_scalar(s, in[0], hob_f64(3)));
}

static hob_tensor *f_pow_scalar(hob_scope *s, hob_tensor *const *in)
{
    return hob_pow_scalar(s, in[0], hob_f64(2.5));
}

static hob_tensor *f_pow_scalar_3(hob_scope *s, hob_tensor *const *in)
{
    return hob_pow_scalar(s, in[0], hob_i64(3));
}

static hob_tensor *f_pow_scalar_0(hob_scope *s, hob_tensor *const *in)
{
    return hob_pow_scalar(s, in[0], hob_i64(0));
}

static hob_tensor *f_clamp(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_clamp(s, in[0], hob_f64(-0.5), hob_f64(0.5)));
}

static hob_tensor *f_clamp_low(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_clamp(s, in[0], hob_f64(-0.5), hob_none()));
}

static hob_tensor *f_where(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *mask =
        mask_of(s, in[0], (const int64_t[]){1, 0, 1}, (const int64_t[]){3}, 1);

    return hob_square(s, hob_where(s, mask, in[0], in[1]));
}

static hob_tensor *f_mask_fill(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *mask =
        mask_of(s, in[0], (const int64_t[]){1, 0}, (const int64_t[]){2, 1}, 2);

    return hob_square(s, hob_mask_fill(s, in[0], mask, hob_f64(9)));
}

static hob_tensor *f_cast(hob_scope *s, hob_tensor *const *in)
{
    /* To f64 itself: f32 would drown the differences. */
    return hob_square(s, hob_cast(s, in[0], HOB_DTYPE_F64));
}

static hob_tensor *f_contiguous(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_contiguous(s, hob_swap_dims(s, in[0], 0, 1)));
}

static hob_tensor *f_sum(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_sum(s, in[0]));
}

static hob_tensor *f_sum_dim(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_sum_dim(s, in[0], -2));
}

static hob_tensor *f_mean(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_mean(s, in[0]));
}

static hob_tensor *f_mean_dim(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_mean_dim(s, in[0], 1));
}

static hob_tensor *f_prod_dim(hob_scope *s, hob_tensor *const *in)
{
    return hob_prod_dim(s, in[0], -1);
}

static hob_tensor *f_max_dim(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_max_dim(s, in[0], 1));
}

static hob_tensor *f_min_dim(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_min_dim(s, in[0], 0));
}

static hob_tensor *f_max(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_max(s, in[0]));
}

static hob_tensor *f_min(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_min(s, in[0]));
}

static hob_tensor *f_max_dim_with_indices(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *values, *indices;

    (void)hob_max_dim_with_indices(s, in[0], 1, HOB_DTYPE_NONE, &values,
                                   &indices);
    return hob_square(s, values);
}

static hob_tensor *f_min_dim_with_indices(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *values, *indices;

    (void)hob_min_dim_with_indices(s, in[0], -1, HOB_DTYPE_I64, &values,
                                   &indices);
    return hob_square(s, values);
}

static hob_tensor *f_cumsum(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_cumsum(s, in[0], 0));
}

static hob_tensor *f_cumprod(hob_scope *s, hob_tensor *const *in)
{
    return hob_cumprod(s, in[0], 1);
}

static hob_tensor *f_cummax(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_cummax(s, in[0], 1));
}

static hob_tensor *f_cummin(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_cummin(s, in[0], -2));
}

static hob_tensor *f_median(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_median(s, in[0]));
}

static hob_tensor *f_median_dim(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_median_dim(s, in[0], 1));
}

static hob_tensor *f_median_dim_with_indices(hob_scope *s,
                                             hob_tensor *const *in)
{
    hob_tensor *values, *indices;

    (void)hob_median_dim_with_indices(s, in[0], 0, HOB_DTYPE_I64, &values,
                                      &indices);
    return hob_square(s, values);
}

static hob_tensor *f_var(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_var(s, in[0], 1));
}

static hob_tensor *f_var_dim(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_var_dim(s, in[0], -1, 0));
}

static hob_tensor *f_std(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_std(s, in[0], 0));
}

static hob_tensor *f_std_dim(hob_scope *s, hob_tensor *const *in)
{
    return hob_exp(s, hob_std_dim(s, in[0], 1, 1));
}

static hob_tensor *f_norm(hob_scope *s, hob_tensor *const *in)
{
    return hob_exp(s, hob_norm(s, in[0], 2));
}

/* Each kind of norm, joined. */
static hob_tensor *f_norm_dim(hob_scope *s, hob_tensor *const *in)
{
    static const double powers[] = {0, 1, 2, 3, INFINITY, -INFINITY, -2, 0.5};
    hob_tensor *norms[8];

    for (int i = 0; i < 8; i++)
        norms[i] = hob_norm_dim(s, in[0], 1, powers[i]);
    return hob_square(s, hob_cat(s, norms, 8, 1));
}

static hob_tensor *f_det(hob_scope *s, hob_tensor *const *in)
{
    return hob_det(s, in[0]);
}

/* Gradients go through all that depends on the elements. */
static hob_tensor *f_lu(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *p, *l, *u;
    hob_tensor *both[2];

    (void)hob_lu(s, in[0], &p, &l, &u);
    both[0] = hob_reshape(s, l, (const int64_t[]){-1}, 1);
    both[1] = hob_reshape(s, hob_square(s, u), (const int64_t[]){-1}, 1);
    return hob_cat(s, both, 2, 0);
}

static hob_tensor *qr_parts(hob_scope *s, hob_tensor *x, int reduced)
{
    hob_tensor *q, *r;
    hob_tensor *both[2];

    (void)hob_qr(s, x, reduced, &q, &r);
    both[0] = hob_reshape(s, q, (const int64_t[]){-1}, 1);
    both[1] = hob_reshape(s, hob_square(s, r), (const int64_t[]){-1}, 1);
    return hob_cat(s, both, 2, 0);
}

static hob_tensor *f_qr(hob_scope *s, hob_tensor *const *in)
{
    return qr_parts(s, in[0], 1);
}

static hob_tensor *f_qr_complete(hob_scope *s, hob_tensor *const *in)
{
    return qr_parts(s, in[0], 0);
}

static hob_tensor *f_linear(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_linear(s, in[0], in[1], in[2]));
}

static hob_tensor *f_reshape(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_reshape(s, hob_swap_dims(s, in[0], 0, 1),
                                     (const int64_t[]){3, -1}, 2));
}

static hob_tensor *f_permute(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_permute(s, in[0], (const int64_t[]){2, 0, -2}, 3));
}

static hob_tensor *f_swap_dims(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_swap_dims(s, in[0], 0, -1));
}

static hob_tensor *f_slice(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_slice(s, in[0], (const int64_t[]){0, 1}, 2,
                                   (const int64_t[]){9, -1}, 2,
                                   (const int64_t[]){2, -2}, 2));
}

static hob_tensor *f_expand(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_expand(s, in[0], (const int64_t[]){2, 3, 4}, 3));
}

static hob_tensor *f_flip(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_flip(s, in[0], (const int64_t[]){-1, 0}, 2));
}

static hob_tensor *f_squeeze(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_squeeze(s, in[0], (const int64_t[]){1}, 1));
}

static hob_tensor *f_unsqueeze(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_unsqueeze(s, in[0], -1));
}

static hob_tensor *f_unfold(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_unfold(s, in[0], 1, 3, 2));
}

static hob_tensor *f_cat(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *list[3] = {in[0], in[1], in[0]};

    return hob_square(s, hob_cat(s, list, 3, -1));
}

static hob_tensor *f_stack(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_stack(s, in, 2, 1));
}

static hob_tensor *f_repeat_dim(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_repeat_dim(s, in[0], 1, 3));
}

static hob_tensor *f_slice_assign(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s,
                      hob_slice_assign(s, in[0], in[1], (const int64_t[]){0, 1},
                                       2, (const int64_t[]){2, 4}, 2,
                                       (const int64_t[]){1, -2}, 2));
}

static hob_tensor *f_gather(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at = ints(s, in[0], (const int64_t[]){0, 3, 3, 1, 2, 2},
                          (const int64_t[]){2, 3}, 2);

    return hob_square(s, hob_gather(s, in[0], at, 1));
}

static hob_tensor *f_scatter_add(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at = ints(s, in[0], (const int64_t[]){0, 3, 3, 1, 2, 2},
                          (const int64_t[]){2, 3}, 2);

    return hob_square(s, hob_scatter_add(s, in[0], at, in[1], 1));
}

/* Every update, joined: [x, scattered ...]. Place 3 of the first row and place
 * 2 of the second are met twice. */
static hob_tensor *f_scatter(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at = ints(s, in[0], (const int64_t[]){0, 3, 3, 1, 2, 2},
                          (const int64_t[]){2, 3}, 2);
    hob_tensor *all[5];

    for (int update = 0; update < 5; update++)
        all[update] = hob_scatter(s, in[0], at, in[1], 1,
                                  (enum hob_scatter_update)update);
    return hob_square(s, hob_stack(s, all, 5, 0));
}

static hob_tensor *f_select_assign(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at =
        ints(s, in[0], (const int64_t[]){2, 0, 2}, (const int64_t[]){3}, 1);
    hob_tensor *all[5];

    for (int update = 0; update < 5; update++)
        all[update] = hob_select_assign(s, in[0], at, in[1], -1,
                                        (enum hob_select_assign_update)update);
    return hob_square(s, hob_stack(s, all, 5, 0));
}

static hob_tensor *f_gather_nd(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at = ints(s, in[0], (const int64_t[]){1, 0, 0, 2, 1, 0},
                          (const int64_t[]){3, 2}, 2);

    return hob_square(s, hob_gather_nd(s, in[0], at));
}

static hob_tensor *f_scatter_nd(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at = ints(s, in[0], (const int64_t[]){1, 0, 0, 2, 1, 0},
                          (const int64_t[]){3, 2}, 2);
    hob_tensor *all[5];

    for (int update = 0; update < 5; update++)
        all[update] = hob_scatter_nd(s, in[0], at, in[1],
                                     (enum hob_scatter_nd_update)update);
    return hob_square(s, hob_stack(s, all, 5, 0));
}

static hob_tensor *f_select(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at =
        ints(s, in[0], (const int64_t[]){2, 0, 2}, (const int64_t[]){3}, 1);

    return hob_square(s, hob_select(s, in[0], at, -1));
}

static hob_tensor *f_select_add(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at =
        ints(s, in[0], (const int64_t[]){2, 0, 2}, (const int64_t[]){3}, 1);

    return hob_square(s, hob_select_add(s, in[0], at, in[1], 1));
}

static hob_tensor *f_mask_select(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *mask =
        mask_of(s, in[0], (const int64_t[]){0, 1, 1}, (const int64_t[]){3}, 1);

    return hob_square(s, hob_mask_select(s, in[0], mask));
}

static hob_tensor *f_embedding(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at = ints(s, in[0], (const int64_t[]){3, 0, 3, 1},
                          (const int64_t[]){2, 2}, 2);

    return hob_square(s, hob_embedding(s, in[0], at));
}

static hob_tensor *f_embedding_backward(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at = ints(s, in[0], (const int64_t[]){3, 0, 3, 1},
                          (const int64_t[]){2, 2}, 2);

    return hob_square(s, hob_embedding_backward(s, in[0], at, in[1]));
}

static hob_tensor *f_sort(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_sort(s, in[0], 1, 1));
}

static hob_tensor *f_sort_with_indices(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *values, *indices;

    (void)hob_sort_with_indices(s, in[0], 0, 0, HOB_DTYPE_NONE, &values,
                                &indices);
    return hob_square(s, values);
}

static hob_tensor *f_topk(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_topk(s, in[0], 2, -1));
}

static hob_tensor *f_topk_with_indices(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *values, *indices;

    (void)hob_topk_with_indices(s, in[0], 2, -1, HOB_DTYPE_I64, &values,
                                &indices);
    return hob_square(s, values);
}

static hob_tensor *f_softmax(hob_scope *s, hob_tensor *const *in)
{
    return hob_softmax(s, in[0], -1);
}

static hob_tensor *f_log_softmax(hob_scope *s, hob_tensor *const *in)
{
    return hob_log_softmax(s, in[0], 0);
}

static hob_tensor *f_softmax_backward(hob_scope *s, hob_tensor *const *in)
{
    return hob_softmax_backward(s, in[0], in[1], 1);
}

static hob_tensor *f_log_softmax_backward(hob_scope *s, hob_tensor *const *in)
{
    return hob_log_softmax_backward(s, in[0], in[1], 1);
}

static hob_tensor *f_cross_entropy(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *at =
        ints(s, in[0], (const int64_t[]){1, 3, 0}, (const int64_t[]){3}, 1);

    return hob_cross_entropy(s, in[0], at);
}

static hob_tensor *f_conv2d(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_conv2d(s, in[0], in[1], in[2],
                                    (const int64_t[]){2, 1}, 2,
                                    (const int64_t[]){1, 0}, 2,
                                    (const int64_t[]){1, 2}, 2, 2));
}

static hob_tensor *f_conv2d_plain(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(
        s, hob_conv2d(s, in[0], in[1], NULL, NULL, 0, NULL, 0, NULL, 0, 1));
}

static hob_tensor *f_max_pool2d(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s,
                      hob_max_pool2d(s, in[0], (const int64_t[]){2, 3}, 2,
                                     (const int64_t[]){1}, 1,
                                     (const int64_t[]){1, 0}, 2, NULL, 0, 1));
}

static hob_tensor *f_max_pool2d_with_indices(hob_scope *s,
                                             hob_tensor *const *in)
{
    hob_tensor *values, *indices;

    (void)hob_max_pool2d_with_indices(s, in[0], (const int64_t[]){2}, 1, NULL,
                                      0, NULL, 0, NULL, 0, 0, HOB_DTYPE_NONE,
                                      &values, &indices);
    return hob_square(s, values);
}

static hob_tensor *f_avg_pool2d(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_avg_pool2d(s, in[0], (const int64_t[]){2, 3}, 2,
                                        (const int64_t[]){1, 2}, 2,
                                        (const int64_t[]){1}, 1, 0, 1));
}

static hob_tensor *f_layer_norm(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_layer_norm(s, in[0], in[1], in[2], 1e-3));
}

static hob_tensor *f_layer_norm_bare(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_layer_norm(s, in[0], NULL, NULL, 1e-3));
}

static hob_tensor *f_batch_norm(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(
        s, hob_batch_norm(s, in[0], in[1], in[2], in[3], in[4], 1e-3));
}

static hob_tensor *f_batch_norm_bare(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s,
                      hob_batch_norm(s, in[0], NULL, NULL, in[1], in[2], 1e-3));
}

static hob_tensor *f_adam_step(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *param, *m, *v;

    (void)hob_adam_step(s, in[0], in[1], in[2], in[3], 3, 0.1, 0.9, 0.99, 1e-8,
                        0.01, NULL, &param, &m, &v);
    return hob_mul(s, param, hob_add(s, m, v));
}

static hob_tensor *f_split(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *parts[3];
    uint32_t count = 0;

    (void)hob_split(s, in[0], 2, 1, parts, 3, &count);
    return weigh_parts(s, parts, count);
}

static hob_tensor *f_split_sizes(hob_scope *s, hob_tensor *const *in)
{
    const int64_t sizes[3] = {1, 0, 4};
    hob_tensor *parts[3];
    uint32_t count = 0;

    (void)hob_split_sizes(s, in[0], sizes, 3, 1, parts, 3, &count);
    return weigh_parts(s, parts, count);
}

static hob_tensor *f_chunk(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *parts[2];
    uint32_t count = 0;

    (void)hob_chunk(s, in[0], 2, -1, parts, 2, &count);
    return weigh_parts(s, parts, count);
}

/* One part that nobody reads, whose gradient is missing. */
static hob_tensor *f_split_some(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *parts[3];
    uint32_t count = 0;

    (void)hob_split(s, in[0], 2, 1, parts, 3, &count);
    return hob_mul(s, parts[0], hob_square(s, parts[1]));
}

static hob_tensor *f_sgd_step(hob_scope *s, hob_tensor *const *in)
{
    return hob_square(s, hob_sgd_step(s, in[0], in[1], 0.1, 0.01));
}

/* A tensor used twice, through views and broadcasts, joined again. */
static hob_tensor *f_diamond(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *a = hob_sin(s, in[0]);
    hob_tensor *b = hob_mul(s, a, hob_exp(s, hob_swap_dims(s, a, 0, 1)));

    return hob_add(s, hob_matmul(s, b, a), hob_mul(s, b, b));
}

/* ---- the table ---- */

#define NO_IN                                                                  \
    {                                                                          \
        0, 0, -1,                                                              \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }
#define M(low, high, ...)                                                      \
    {                                                                          \
        low, high, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t),         \
        {                                                                      \
            __VA_ARGS__                                                        \
        }                                                                      \
    }
#define SCALAR(low, high)                                                      \
    {                                                                          \
        low, high, 0,                                                          \
        {                                                                      \
            0                                                                  \
        }                                                                      \
    }
#define U(op, low, high)                                                       \
    {                                                                          \
#op, hob_##op, NULL, NULL,                                             \
        {                                                                      \
            M(low, high, 2, 3), NO_IN                                          \
        }                                                                      \
    }
#define B(op, ...)                                                             \
    {                                                                          \
#op, NULL, hob_##op, NULL,                                             \
        {                                                                      \
            __VA_ARGS__, NO_IN                                                 \
        }                                                                      \
    }
#define F(op, ...)                                                             \
    {                                                                          \
#op, NULL, NULL, f_##op,                                               \
        {                                                                      \
            __VA_ARGS__, NO_IN                                                 \
        }                                                                      \
    }

static const struct row rows[] = {
    U(neg, -2, 2),
    U(abs, -2, 2),
    U(sign, -2, 2),
    U(square, -2, 2),
    U(recip, 0.5, 2),
    U(sqrt, 0.5, 2),
    U(exp, -1, 1),
    U(log, 0.5, 2),
    U(log1p, -0.5, 1),
    U(erf, -1, 1),
    U(tanh, -1, 1),
    U(sin, -2, 2),
    U(cos, -2, 2),
    U(tan, -1, 1),
    U(sinh, -1, 1),
    U(cosh, -1, 1),
    U(asin, -0.7, 0.7),
    U(acos, -0.7, 0.7),
    U(atan, -2, 2),
    U(asinh, -2, 2),
    U(acosh, 1.5, 3),
    U(atanh, -0.7, 0.7),
    U(floor, 0.1, 0.9),
    U(ceil, 0.1, 0.9),
    U(round, 0.1, 0.4),
    U(trunc, 0.1, 0.9),
    U(relu, -2, 2),
    U(gelu, -2, 2),
    U(sigmoid, -2, 2),
    U(prod, 0.5, 2),
    B(add, M(-1, 1, 2, 3), M(-1, 1, 2, 3)),
    B(add, M(-1, 1, 2, 1), M(-1, 1, 4, 1, 3)),
    B(add, M(-1, 1, 2, 3), SCALAR(-1, 1)),
    B(sub, M(-1, 1, 3), M(-1, 1, 2, 2, 3)),
    B(mul, M(-1, 1, 2, 3), M(-1, 1, 2, 3)),
    B(mul, M(-1, 1, 2, 1, 3), M(-1, 1, 2, 1)),
    B(div, M(-1, 1, 2, 3), M(0.5, 2, 3)),
    B(remainder, M(0.1, 0.9, 2, 3), M(1.1, 1.5, 3)),
    B(remainder, M(2.5, 2.9, 2), M(1, 1.2, 2)),
    B(pow, M(0.5, 2, 2, 3), M(-2, 2, 3)),
    B(maximum, M(-1, 1, 2, 3), M(-1, 1, 3)),
    B(minimum, M(-1, 1, 2, 3), M(-1, 1, 2, 1)),
    B(atan2, M(0.5, 2, 2, 3), M(-2, -0.5, 3)),
    B(hypot, M(0.5, 2, 2, 3), M(-2, -0.5, 3)),
    B(matmul, M(-1, 1, 2, 3), M(-1, 1, 3, 4)),
    B(matmul, M(-1, 1, 2, 2, 3), M(-1, 1, 3, 4)),
    B(matmul, M(-1, 1, 2, 3), M(-1, 1, 2, 3, 2)),
    B(matmul, M(-1, 1, 2, 1, 2, 3), M(-1, 1, 3, 3, 2)),
    B(relu_backward, M(0.1, 1, 2, 3), M(-1, 1, 2, 3)),
    B(gelu_backward, M(-1, 1, 2, 3), M(-1, 1, 2, 3)),
    B(sigmoid_backward, M(0.1, 1, 2, 3), M(-1, 1, 2, 3)),
    F(add_scalar, M(-1, 1, 3)),
    F(sub_scalar, M(-1, 1, 3)),
    F(mul_scalar, M(-1, 1, 3)),
    F(div_scalar, M(-1, 1, 3)),
    F(remainder_scalar, M(0.8, 1.3, 3)),
    F(rsub_scalar, M(-1, 1, 3)),
    F(pow_scalar, M(0.5, 2, 3)),
    F(pow_scalar_3, M(-1, 1, 3)),
    F(pow_scalar_0, M(-1, 1, 3)),
    F(clamp, M(-1, 1, 7)),
    F(clamp_low, M(-1, 1, 7)),
    F(where, M(-1, 1, 2, 3), M(-1, 1, 2, 1)),
    F(mask_fill, M(-1, 1, 2, 3)),
    F(mask_fill, M(-1, 1, 3)),
    F(cast, M(-1, 1, 3)),
    F(contiguous, M(-1, 1, 2, 3)),
    F(sum, M(-1, 1, 2, 3)),
    F(sum, SCALAR(-1, 1)),
    F(sum_dim, M(-1, 1, 2, 3)),
    F(mean, M(-1, 1, 2, 3)),
    F(mean_dim, M(-1, 1, 2, 3, 2)),
    F(prod_dim, M(-1, 1, 2, 5)),
    F(prod_dim, M(0, 0, 2, 3)),
    F(prod_dim, M(0.5, 1, 3, 1)),
    F(max_dim, M(-1, 1, 2, 5)),
    F(min_dim, M(-1, 1, 3, 2)),
    F(max, M(-1, 1, 3, 3)),
    F(min, M(-1, 1, 3, 3)),
    F(max_dim_with_indices, M(-1, 1, 2, 5)),
    F(min_dim_with_indices, M(-1, 1, 2, 5)),
    F(cumsum, M(-1, 1, 4, 2)),
    F(cumprod, M(-1, 1, 2, 7)),
    F(cumprod, M(0, 0, 2, 3)),
    F(cumprod, M(-1, 1, 2, 1)),
    F(cummax, M(-1, 1, 2, 7)),
    F(cummin, M(-1, 1, 5, 2)),
    F(median, M(-1, 1, 2, 3)),
    F(median_dim, M(-1, 1, 2, 5)),
    F(median_dim_with_indices, M(-1, 1, 4, 3)),
    F(var, M(-1, 1, 2, 3)),
    F(var_dim, M(-1, 1, 2, 5)),
    F(std, M(-1, 1, 2, 3)),
    F(std_dim, M(-1, 1, 2, 4, 2)),
    F(norm, M(-1, 1, 2, 3)),
    F(norm_dim, M(0.3, 1, 2, 3)),
    F(det, M(-1, 1, 3, 3)),
    F(det, M(-1, 1, 2, 2, 4, 4)),
    F(det, M(0, 0, 1, 2, 2)),
    F(det, M(0.5, 0.5, 2, 2)),
    F(det, M(1, 1, 3, 3)),
    F(det, M(-1, 1, 1, 1)),
    F(lu, M(-1, 1, 3, 3)),
    F(lu, M(-1, 1, 2, 4, 2)),
    F(lu, M(-1, 1, 2, 4)),
    F(qr, M(-1, 1, 3, 3)),
    F(qr, M(-1, 1, 2, 4, 2)),
    F(qr, M(-1, 1, 2, 4)),
    F(qr_complete, M(-1, 1, 4, 2)),
    F(linear, M(-1, 1, 4, 3), M(-1, 1, 3, 2), M(-1, 1, 2)),
    F(linear, M(-1, 1, 2, 2, 3), M(-1, 1, 3, 2), M(-1, 1, 2)),
    F(linear, M(-1, 1, 3), M(-1, 1, 3, 2), M(-1, 1, 2)),
    F(reshape, M(-1, 1, 2, 3)),
    F(permute, M(-1, 1, 2, 3, 2)),
    F(swap_dims, M(-1, 1, 2, 3, 2)),
    F(slice, M(-1, 1, 3, 6)),
    F(expand, M(-1, 1, 3, 1)),
    F(flip, M(-1, 1, 2, 3)),
    F(squeeze, M(-1, 1, 2, 1, 3)),
    F(unsqueeze, M(-1, 1, 2, 3)),
    F(unfold, M(-1, 1, 2, 7)),
    F(unfold, M(-1, 1, 2, 6, 2)),
    F(cat, M(-1, 1, 2, 3), M(-1, 1, 2, 1)),
    F(stack, M(-1, 1, 2, 3), M(-1, 1, 2, 3)),
    F(repeat_dim, M(-1, 1, 2, 2)),
    F(slice_assign, M(-1, 1, 3, 5), M(-1, 1, 2, 2)),
    F(gather, M(-1, 1, 2, 4)),
    F(scatter_add, M(-1, 1, 2, 4), M(-1, 1, 2, 3)),
    F(scatter, M(0.5, 2, 2, 4), M(-2, 2, 2, 3)),
    F(scatter, M(0, 0, 2, 4), M(-2, 2, 2, 3)),
    F(select, M(-1, 1, 2, 3)),
    F(select_assign, M(-2, 2, 2, 3), M(-2, 2, 2, 3)),
    F(gather_nd, M(-1, 1, 2, 3, 2)),
    F(scatter_nd, M(-2, 2, 2, 3, 2), M(-2, 2, 3, 2)),
    F(select_add, M(-1, 1, 2, 3), M(-1, 1, 2, 3)),
    F(mask_select, M(-1, 1, 2, 3)),
    F(embedding, M(-1, 1, 4, 2)),
    F(embedding_backward, M(-1, 1, 4, 2), M(-1, 1, 2, 2, 2)),
    F(sort, M(-1, 1, 2, 4)),
    F(sort_with_indices, M(-1, 1, 4, 2)),
    F(topk, M(-1, 1, 2, 4)),
    F(topk_with_indices, M(-1, 1, 2, 4)),
    F(softmax, M(-1, 1, 2, 4)),
    F(log_softmax, M(-1, 1, 3, 2)),
    F(softmax_backward, M(0.1, 1, 2, 3), M(-1, 1, 2, 3)),
    F(log_softmax_backward, M(-1, -0.1, 2, 3), M(-1, 1, 2, 3)),
    F(cross_entropy, M(-1, 1, 3, 4)),
    F(conv2d, M(-1, 1, 1, 2, 4, 4), M(-1, 1, 4, 1, 2, 2), M(-1, 1, 4)),
    F(conv2d_plain, M(-1, 1, 2, 2, 3, 3), M(-1, 1, 2, 2, 2, 2)),
    F(max_pool2d, M(-1, 1, 1, 2, 4, 5)),
    F(max_pool2d_with_indices, M(-1, 1, 1, 2, 4, 4)),
    F(avg_pool2d, M(-1, 1, 1, 2, 4, 5)),
    F(layer_norm, M(-1, 1, 2, 4), M(0.5, 1, 4), M(-1, 1, 4)),
    F(layer_norm_bare, M(-1, 1, 2, 4)),
    F(batch_norm, M(-1, 1, 2, 3, 2), M(0.5, 1, 3), M(-1, 1, 3), M(-1, 1, 3),
      M(0.5, 1, 3)),
    F(batch_norm, M(-1, 1, 1, 2, 4, 4), M(0.5, 1, 2), M(-1, 1, 2), M(-1, 1, 2),
      M(0.5, 1, 2)),
    F(batch_norm_bare, M(-1, 1, 2, 3, 2), M(-1, 1, 3), M(0.5, 1, 3)),
    F(sgd_step, M(-1, 1, 3), M(-1, 1, 3)),
    F(adam_step, M(-1, 1, 3), M(-1, 1, 3), M(-1, 1, 3), M(0.5, 1, 3)),
    F(split, M(-1, 1, 2, 5)),
    F(split_some, M(-1, 1, 2, 5)),
    F(split_sizes, M(-1, 1, 2, 5)),
    F(chunk, M(-1, 1, 2, 3)),
    F(meshgrid, M(-1, 1, 2), M(-1, 1, 3)),
    F(meshgrid_stack, M(-1, 1, 2), M(-1, 1, 3)),
    F(max_pool1d, M(-1, 1, 1, 2, 6)),
    F(max_pool1d_with_indices, M(-1, 1, 2, 1, 7)),
    F(avg_pool1d, M(-1, 1, 2, 1, 6)),
    F(repeat, M(-1, 1, 2, 2)),
    F(roll, M(-1, 1, 2, 5)),
    F(move_dims, M(-1, 1, 2, 3, 2)),
    F(pad, M(-1, 1, 2, 3)),
    F(pad_reflect, M(-1, 1, 2, 3)),
    F(pad_edge, M(-1, 1, 2, 3)),
    F(diagonal, M(-1, 1, 2, 3, 3)),
    U(trace, -1, 1),
    F(triu, M(-1, 1, 3, 3)),
    F(tril, M(-1, 1, 3, 2)),
    F(cross, M(-1, 1, 2, 3), M(-1, 1, 3)),
    F(cov, M(-1, 1, 2, 4)),
    F(sum_dims, M(-1, 1, 2, 2, 3)),
    F(mean_dims, M(-1, 1, 2, 2, 3)),
    F(max_dims, M(-1, 1, 2, 2, 3)),
    F(min_dims, M(-1, 1, 2, 3)),
    F(conv1d, M(-1, 1, 1, 4, 5), M(-1, 1, 2, 2, 3), M(-1, 1, 2)),
    F(conv3d, M(-1, 1, 1, 2, 3, 3, 3), M(-1, 1, 2, 2, 2, 2, 2), M(-1, 1, 2)),
    F(conv3d_groups, M(-1, 1, 2, 2, 4, 1, 3), M(-1, 1, 2, 1, 2, 1, 2)),
    F(conv_transpose1d, M(-1, 1, 1, 2, 3), M(-1, 1, 2, 2, 3), M(-1, 1, 2)),
    F(conv_transpose2d, M(-1, 1, 1, 2, 3, 2), M(-1, 1, 2, 1, 2, 2),
      M(-1, 1, 2)),
    F(conv_transpose3d, M(-1, 1, 1, 2, 2, 2, 2), M(-1, 1, 2, 1, 2, 2, 2)),
    F(deform_conv2d, M(-1, 1, 1, 2, 3, 3), M(0.1, 0.4, 1, 8, 2, 2),
      M(-1, 1, 2, 2, 2, 2), M(0.5, 1, 1, 4, 2, 2), M(-1, 1, 2)),
    F(deform_conv2d_backward, M(-1, 1, 1, 2, 3, 3), M(0.1, 0.4, 1, 8, 2, 2),
      M(-1, 1, 2, 2, 2, 2), M(0.5, 1, 1, 4, 2, 2), M(-1, 1, 1, 2, 2, 2)),
    F(adaptive_avg_pool, M(-1, 1, 2, 3, 5)),
    F(adaptive_avg_pool_backward, M(-1, 1, 2, 3, 4)),
    F(im2col, M(-1, 1, 1, 2, 2, 3)),
    F(col2im, M(-1, 1, 1, 8, 6)),
    F(interpolate, M(-1, 1, 1, 2, 3, 4)),
    F(interpolate_bilinear, M(-1, 1, 1, 2, 3, 4)),
    F(interpolate_bicubic, M(-1, 1, 1, 2, 3, 4)),
    F(interpolate_lanczos3, M(-1, 1, 1, 1, 3, 4)),
    F(interpolate_backward, M(-1, 1, 1, 2, 3, 4)),
    F(grid_sample, M(-1, 1, 1, 2, 3, 3), M(0.1, 0.9, 1, 2, 2, 2)),
    F(grid_sample_reflection, M(-1, 1, 1, 2, 3, 3), M(1.4, 1.6, 1, 2, 2, 2)),
    F(grid_sample_backward, M(-1, 1, 1, 2, 3, 3), M(0.1, 0.9, 1, 2, 2, 2),
      M(-1, 1, 1, 2, 2, 2)),
    F(affine_grid, M(-1, 1, 2, 2, 3)),
    F(attention, M(-1, 1, 2, 3, 2), M(-1, 1, 2, 4, 2), M(-1, 1, 2, 4, 3)),
    F(attention_bias, M(-1, 1, 3, 2), M(-1, 1, 2, 2), M(-1, 1, 2, 2),
      M(-1, 1, 3, 2)),
    F(ctc_loss, M(-1, 1, 4, 2, 3)),
    F(ctc_loss_backward, M(-1, 1, 4, 2, 3), M(0.5, 1, 2)),
    U(silu, -2, 2),
    F(softplus, M(-2, 2, 2, 3)),
    U(log_sigmoid, -2, 2),
    F(leaky_relu, M(-2, 2, 2, 3)),
    B(prelu, M(-2, 2, 2, 3), M(0.1, 0.5, 3)),
    F(elu, M(-2, 2, 2, 3)),
    F(celu, M(-2, 2, 2, 3)),
    U(selu, -2, 2),
    F(hard_sigmoid, M(-2, 2, 2, 3)),
    U(hard_swish, -2, 2),
    U(mish, -2, 2),
    U(softsign, 0.1, 2),
    F(glu, M(-1, 1, 2, 4)),
    F(activation_backward, M(-2, 2, 2, 3), M(0.5, 1, 2, 3)),
    F(softmin, M(-1, 1, 2, 3)),
    F(quiet_softmax, M(-1, 1, 3, 2)),
    F(group_norm, M(-1, 1, 2, 4, 2), M(0.5, 1, 4), M(-1, 1, 4)),
    F(rms_norm, M(-1, 1, 2, 4), M(0.5, 1, 4)),
    F(cosine_similarity, M(0.5, 2, 2, 3), M(0.5, 2, 2, 3)),
    F(rfft, M(-1, 1, 5, 2)),
    F(rfft_cut, M(-1, 1, 2, 5)),
    F(irfft, M(-1, 1, 2, 3), M(-1, 1, 2, 3)),
    F(irfft_even, M(-1, 1, 3, 2), M(-1, 1, 3, 2)),
    F(diamond, M(-1, 1, 3, 3)),
};

#undef F
#undef B
#undef U
#undef SCALAR
#undef M
#undef NO_IN

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

#endif
