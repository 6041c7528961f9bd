/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nn.c - bodies of losses, norms and optimizer steps.
 */
#include "bodies.h"
#include "util.h"

#include <string.h>

#include <math.h>

/* TARGETS [batch] as positions [batch, 1], in a dtype that indexes. */
static hob_tensor *target_column(hob_scope *scope, hob_tensor *targets)
{
    int64_t shape[2];
    hob_dtype dtype = hob_tensor_dtype(targets);

    shape[0] = hob_tensor_shape(targets)[0];
    shape[1] = 1;
    if (dtype != HOB_DTYPE_I32 && dtype != HOB_DTYPE_I64)
        targets = hob_cast(scope, targets, HOB_DTYPE_I64);
    return hob_reshape(scope, targets, shape, 2);
}

hob_tensor *hob__body_cross_entropy(hob_scope *scope, hob_tensor *logits,
                                    hob_tensor *targets)
{
    hob_tensor *logs = hob_log_softmax(scope, hob__part_up(scope, logits), 1);
    hob_tensor *picked =
        hob_gather(scope, logs, target_column(scope, targets), 1);

    return hob__part_down(scope, hob_neg(scope, hob_mean(scope, picked)),
                          hob_tensor_dtype(logits));
}

hob_tensor *hob__body_cross_entropy_backward(hob_scope *scope,
                                             hob_tensor *logits,
                                             hob_tensor *targets,
                                             hob_tensor *grad)
{
    int64_t batch = hob_tensor_shape(logits)[0], column[2];
    hob_tensor *y = hob_softmax(scope, hob__part_up(scope, logits), 1);
    hob_tensor *scale = hob__part_item(scope, hob__part_up(scope, grad));
    hob_tensor *less_one;

    column[0] = batch;
    column[1] = 1;
    less_one = hob__part_full(scope, y, column, 2, hob_i64(-1));
    y = hob_scatter_add(scope, y, target_column(scope, targets), less_one, 1);
    /* Of an empty batch there is nothing to scale. */
    scale = hob_div_scalar(scope, scale, hob_i64(batch ? batch : 1));
    return hob__part_down(scope, hob_mul(scope, y, scale),
                          hob_tensor_dtype(logits));
}

/* (x - mean) / sqrt(variance + epsilon) * weight + bias, in f32 or wider. */
static hob_tensor *normalize(hob_scope *scope, hob_tensor *centred,
                             hob_tensor *variance, double epsilon,
                             hob_tensor *weight, hob_tensor *bias)
{
    hob_tensor *y = hob_div(
        scope, centred,
        hob_sqrt(scope, hob_add_scalar(scope, variance, hob_f64(epsilon))));

    if (weight)
        y = hob_mul(scope, y, hob__part_up(scope, weight));
    if (bias)
        y = hob_add(scope, y, hob__part_up(scope, bias));
    return y;
}

hob_tensor *hob__body_layer_norm(hob_scope *scope, hob_tensor *x,
                                 hob_tensor *weight, hob_tensor *bias,
                                 double epsilon)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *centred = hob_sub(scope, v, hob_mean_dim(scope, v, -1));
    hob_tensor *variance =
        hob_mean_dim(scope, hob_mul(scope, centred, centred), -1);

    return hob__part_down(
        scope, normalize(scope, centred, variance, epsilon, weight, bias),
        hob_tensor_dtype(x));
}

/* A vector [c] as [c, 1, ..], which broadcasts along x's dimension 1. */
static hob_tensor *channel(hob_scope *scope, hob_tensor *x, hob_tensor *vector)
{
    int64_t shape[HOB_MAX_RANK] = {0, 1, 1, 1, 1, 1, 1, 1};

    if (!vector)
        return NULL;
    shape[0] = hob_tensor_shape(vector)[0];
    return hob_reshape(scope, hob__part_up(scope, vector), shape,
                       (uint32_t)hob_tensor_rank(x) - 1);
}

hob_tensor *hob__body_batch_norm(hob_scope *scope, hob_tensor *x,
                                 hob_tensor *weight, hob_tensor *bias,
                                 hob_tensor *mean, hob_tensor *variance,
                                 double epsilon)
{
    hob_tensor *centred =
        hob_sub(scope, hob__part_up(scope, x), channel(scope, x, mean));
    hob_tensor *y =
        normalize(scope, centred, channel(scope, x, variance), epsilon,
                  channel(scope, x, weight), channel(scope, x, bias));

    return hob__part_down(scope, y, hob_tensor_dtype(x));
}

/* X summed over all but its dimension 1. */
static hob_tensor *sum_of_channel(hob_scope *scope, hob_tensor *x)
{
    const int64_t *shape = hob_tensor_shape(x);
    const uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t planes[3];

    planes[0] = shape[0];
    planes[1] = shape[1];
    planes[2] = hob__part_product(shape + 2, rank - 2);
    x = hob_sum_dim(scope, hob_reshape(scope, x, planes, 3), 2);
    return hob_reshape(scope, hob_sum_dim(scope, x, 0), planes + 1, 1);
}

hob_status hob__body_batch_norm_backward(hob_scope *scope, hob_tensor *x,
                                         hob_tensor *mean, hob_tensor *scale,
                                         hob_tensor *grad, hob_tensor **out_d_x,
                                         hob_tensor **out_total,
                                         hob_tensor **out_moment)
{
    hob_dtype dtype = hob_tensor_dtype(x);
    hob_tensor *g = hob__part_up(scope, grad);
    hob_tensor *centred =
        hob_sub(scope, hob__part_up(scope, x), channel(scope, x, mean));

    *out_d_x = hob__part_down(
        scope, hob_mul(scope, g, channel(scope, x, scale)), dtype);
    *out_total = hob__part_down(scope, sum_of_channel(scope, g), dtype);
    *out_moment = hob__part_down(
        scope, sum_of_channel(scope, hob_mul(scope, g, centred)), dtype);
    return HOB_OK;
}

/* Channels and places of a group are one row of [n * groups, ..]. */
hob_tensor *hob__body_group_norm(hob_scope *scope, hob_tensor *x,
                                 int64_t groups, hob_tensor *weight,
                                 hob_tensor *bias, double epsilon)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t shape[HOB_MAX_RANK], rows[2];
    hob_tensor *v = hob__part_up(scope, x), *centred, *variance, *y;

    memcpy(shape, hob_tensor_shape(x), rank * sizeof(shape[0]));
    if (shape[1] == 0) /* whatever the groups are, they have nothing */
        groups = 1;
    rows[0] = shape[0] * groups;
    rows[1] = hob__part_product(shape + 1, rank - 1) / groups;
    v = hob_reshape(scope, v, rows, 2);
    centred = hob_sub(scope, v, hob_mean_dim(scope, v, -1));
    variance = hob_mean_dim(scope, hob_mul(scope, centred, centred), -1);
    y = normalize(scope, centred, variance, epsilon, NULL, NULL);
    y = hob_reshape(scope, y, shape, rank);
    if (weight)
        y = hob_mul(scope, y, channel(scope, x, weight));
    if (bias)
        y = hob_add(scope, y, channel(scope, x, bias));
    return hob__part_down(scope, y, hob_tensor_dtype(x));
}

/* x / sqrt(mean(x^2) + epsilon): Zhang and Sennrich, arXiv:1910.07467. */
hob_tensor *hob__body_rms_norm(hob_scope *scope, hob_tensor *x,
                               hob_tensor *weight, double epsilon)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *y =
        normalize(scope, v, hob_mean_dim(scope, hob_mul(scope, v, v), -1),
                  epsilon, weight ? hob__part_up(scope, weight) : NULL, NULL);

    return hob__part_down(scope, y, hob_tensor_dtype(x));
}

/* X summed over all but its last dimension. */
static hob_tensor *sum_of_rows(hob_scope *scope, hob_tensor *x)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t shape[2];

    shape[0] = hob__part_product(hob_tensor_shape(x), rank - 1);
    shape[1] = hob_tensor_shape(x)[rank - 1];
    x = hob_sum_dim(scope, hob_reshape(scope, x, shape, 2), 0);
    return hob_reshape(scope, x, shape + 1, 1);
}

/*
 * With n = (x - mean) r, r = 1 / sqrt(var + epsilon) and h = grad * weight,
 * means over the last dimension:
 *     dx = r (h - mean(h) - n mean(h n)),  dweight = grad n,  dbias = grad
 * The mean of x, and that of h, is there only if IS_CENTRED.
 */
static void norm_backward(hob_scope *scope, hob_tensor *x, hob_tensor *weight,
                          hob_tensor *grad, double epsilon, int is_centred,
                          hob_tensor **out_x, hob_tensor **out_weight)
{
    hob_dtype dtype = hob_tensor_dtype(x);
    hob_tensor *v = hob__part_up(scope, x), *g = hob__part_up(scope, grad);
    hob_tensor *h = weight ? hob_mul(scope, g, hob__part_up(scope, weight)) : g;
    hob_tensor *inverse, *normal, *part;

    if (is_centred)
        v = hob_sub(scope, v, hob_mean_dim(scope, v, -1));
    inverse = hob_mean_dim(scope, hob_square(scope, v), -1);
    inverse = hob_recip(
        scope,
        hob_sqrt(scope, hob_add_scalar(scope, inverse, hob_f64(epsilon))));
    normal = hob_mul(scope, v, inverse);
    part = hob_mean_dim(scope, hob_mul(scope, h, normal), -1);
    part = hob_mul(scope, normal, part);
    if (is_centred)
        part = hob_add(scope, part, hob_mean_dim(scope, h, -1));
    *out_x = hob__part_down(
        scope, hob_mul(scope, hob_sub(scope, h, part), inverse), dtype);
    *out_weight = hob__part_down(
        scope, sum_of_rows(scope, hob_mul(scope, g, normal)), dtype);
}

hob_status hob__body_layer_norm_backward(hob_scope *scope, hob_tensor *x,
                                         hob_tensor *weight, hob_tensor *grad,
                                         double epsilon, hob_tensor **out_d_x,
                                         hob_tensor **out_d_weight,
                                         hob_tensor **out_d_bias)
{
    norm_backward(scope, x, weight, grad, epsilon, 1, out_d_x, out_d_weight);
    *out_d_bias =
        hob__part_down(scope, sum_of_rows(scope, hob__part_up(scope, grad)),
                       hob_tensor_dtype(x));
    return HOB_OK;
}

hob_status hob__body_rms_norm_backward(hob_scope *scope, hob_tensor *x,
                                       hob_tensor *weight, hob_tensor *grad,
                                       double epsilon, hob_tensor **out_d_x,
                                       hob_tensor **out_d_weight)
{
    norm_backward(scope, x, weight, grad, epsilon, 0, out_d_x, out_d_weight);
    return HOB_OK;
}

/* Each norm is at least epsilon; dim stays with size 1. */
hob_tensor *hob__body_cosine_similarity(hob_scope *scope, hob_tensor *lhs,
                                        hob_tensor *rhs, int64_t dim,
                                        double epsilon)
{
    hob_tensor *a = hob__part_up(scope, lhs), *b = hob__part_up(scope, rhs);
    hob_tensor *norms = hob_mul(
        scope,
        hob_clamp(
            scope,
            hob_sqrt(scope, hob_sum_dim(scope, hob_mul(scope, a, a), dim)),
            hob_f64(epsilon), hob_none()),
        hob_clamp(
            scope,
            hob_sqrt(scope, hob_sum_dim(scope, hob_mul(scope, b, b), dim)),
            hob_f64(epsilon), hob_none()));

    return hob__part_down(
        scope,
        hob_div(scope, hob_sum_dim(scope, hob_mul(scope, a, b), dim), norms),
        hob_tensor_dtype(lhs));
}

/* x * a + y * b; times 1 is nothing to do. */
static hob_tensor *blend(hob_scope *scope, hob_tensor *x, double a,
                         hob_tensor *y, double b)
{
    return hob_add(scope, a == 1 ? x : hob_mul_scalar(scope, x, hob_f64(a)),
                   hob_mul_scalar(scope, y, hob_f64(b)));
}

hob_tensor *hob__body_sgd_step(hob_scope *scope, hob_tensor *param,
                               hob_tensor *grad, double lr, double weight_decay)
{
    hob_tensor *next =
        blend(scope, hob__part_up(scope, param), 1 - lr * weight_decay,
              hob__part_up(scope, grad), -lr);

    return hob__part_down(scope, next, hob_tensor_dtype(param));
}

/* Element INDEX of NOW as a single number of DTYPE. */
static hob_tensor *number_of(hob_scope *scope, hob_tensor *now, int64_t index,
                             hob_dtype dtype)
{
    const int64_t end = index + 1;
    hob_tensor *one = hob_slice(scope, now, &index, 1, &end, 1, NULL, 0);

    return hob_cast(scope, hob_reshape(scope, one, NULL, 0), dtype);
}

/* 1 / (1 - beta^step). The difference is 2 t / (1 + t) with t = tanh(z / 2) and
 * z = -step log beta, in which nothing cancels. */
static hob_tensor *correction(hob_scope *scope, hob_tensor *step, double beta)
{
    hob_tensor *t =
        hob_tanh(scope, hob_mul_scalar(scope, step, hob_f64(-log(beta) / 2)));

    return hob_div(scope, hob_add_scalar(scope, t, hob_f64(1)),
                   hob_mul_scalar(scope, t, hob_f64(2)));
}

/* What a step adds to PARAM, with the step's number and the rate in NOW. */
static hob_tensor *adam_change(hob_scope *scope, hob_tensor *now,
                               hob_tensor *param, hob_tensor *m, hob_tensor *v,
                               double beta1, double beta2, double epsilon,
                               double weight_decay)
{
    const hob_dtype dtype = hob_tensor_dtype(param);
    hob_tensor *step = number_of(scope, now, 0, dtype);
    hob_tensor *rate = number_of(scope, now, 1, dtype);
    hob_tensor *change;

    m = hob_mul(scope, m, correction(scope, step, beta1));
    v = hob_mul(scope, v, correction(scope, step, beta2));
    change = hob_div(
        scope, m, hob_add_scalar(scope, hob_sqrt(scope, v), hob_f64(epsilon)));
    change = hob_add(scope, change,
                     hob_mul_scalar(scope, param, hob_f64(weight_decay)));
    return hob_neg(scope, hob_mul(scope, change, rate));
}

hob_status hob__body_adam_step(hob_scope *scope, hob_tensor *param,
                               hob_tensor *grad, hob_tensor *m, hob_tensor *v,
                               int64_t step, double lr, double beta1,
                               double beta2, double epsilon,
                               double weight_decay, hob_tensor *now,
                               hob_tensor **out_0, hob_tensor **out_1,
                               hob_tensor **out_2)
{
    hob_dtype dtype = hob_tensor_dtype(param);
    hob_tensor *p = hob__part_up(scope, param);
    hob_tensor *g = hob__part_up(scope, grad);
    double scale1 = 1 / (1 - pow(beta1, (double)step));
    double scale2 = 1 / (1 - pow(beta2, (double)step));
    hob_tensor *change;

    m = blend(scope, hob__part_up(scope, m), beta1, g, 1 - beta1);
    v = blend(scope, hob__part_up(scope, v), beta2, hob_mul(scope, g, g),
              1 - beta2);
    if (now) {
        change = adam_change(scope, now, p, m, v, beta1, beta2, epsilon,
                             weight_decay);
        p = hob_add(scope, p, change);
    } else {
        change = hob_sqrt(scope, hob_mul_scalar(scope, v, hob_f64(scale2)));
        change = hob_div(scope, hob_mul_scalar(scope, m, hob_f64(scale1)),
                         hob_add_scalar(scope, change, hob_f64(epsilon)));
        p = blend(scope, p, 1 - lr * weight_decay, change, -lr);
    }
    *out_0 = hob__part_down(scope, p, dtype);
    *out_1 = hob__part_down(scope, m, dtype);
    *out_2 = hob__part_down(scope, v, dtype);
    return hob_scope_host(scope)->scope_status(scope);
}
