/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activation.c - bodies of the activations and of their gradients.
 */
#include "bodies.h"
#include "util.h"

#include <math.h>

static const double sqrt_half = 0.70710678118654752440;
static const double inverse_sqrt_two_pi = 0.39894228040143267794;
/* The constants of selu: Klambauer et al., arXiv:1706.02515. */
static const double selu_alpha = 1.6732632423543772848;
static const double selu_scale = 1.0507009873554804934;

hob_tensor *hob__body_relu(hob_scope *scope, hob_tensor *x)
{
    return hob_mask_fill(scope, x, hob_less_equal_scalar(scope, x, hob_i64(0)),
                         hob_i64(0));
}

hob_tensor *hob__body_relu_backward(hob_scope *scope, hob_tensor *output,
                                    hob_tensor *grad)
{
    return hob_mask_fill(scope, grad,
                         hob_less_equal_scalar(scope, output, hob_i64(0)),
                         hob_i64(0));
}

/* (1 + erf(x / sqrt(2))) / 2, the normal distribution. */
static hob_tensor *normal_cdf(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *y =
        hob_erf(scope, hob_mul_scalar(scope, x, hob_f64(sqrt_half)));

    return hob_mul_scalar(scope, hob_add_scalar(scope, y, hob_i64(1)),
                          hob_f64(0.5));
}

/* The limit at -inf is -0, where the product would be inf times 0. */
hob_tensor *hob__body_gelu(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *least = hob_equal_scalar(scope, v, hob_f64(-INFINITY));
    hob_tensor *y = hob_mul(scope, v, normal_cdf(scope, v));

    y = hob_mask_fill(scope, y, least, hob_f64(-0.0));
    return hob__part_down(scope, y, hob_tensor_dtype(x));
}

/* With the density p of the normal distribution P: P(x) + x p(x), of which the
 * second term is 0 far out, and so are its derivatives. */
hob_tensor *hob__body_gelu_backward(hob_scope *scope, hob_tensor *x,
                                    hob_tensor *grad)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *g = hob__part_up(scope, grad);
    hob_tensor *near = hob_clamp(scope, v, hob_f64(-40), hob_f64(40));
    hob_tensor *square = hob_mul(scope, near, near);
    hob_tensor *density = hob_mul_scalar(
        scope, hob_exp(scope, hob_mul_scalar(scope, square, hob_f64(-0.5))),
        hob_f64(inverse_sqrt_two_pi));
    hob_tensor *slope =
        hob_add(scope, normal_cdf(scope, v), hob_mul(scope, near, density));

    return hob__part_down(scope, hob_mul(scope, g, slope), hob_tensor_dtype(x));
}

/* exp(-|x|) never overflows; the two sides share the denominator. */
hob_tensor *hob__body_sigmoid(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *e = hob_exp(scope, hob_neg(scope, hob_abs(scope, v)));
    hob_tensor *one = hob__part_constant(scope, v, hob_i64(1));
    hob_tensor *above =
        hob_where(scope, hob_less_scalar(scope, v, hob_i64(0)), e, one);

    return hob__part_down(scope, hob_div(scope, above, hob_add(scope, e, one)),
                          hob_tensor_dtype(x));
}

hob_tensor *hob__body_sigmoid_backward(hob_scope *scope, hob_tensor *output,
                                       hob_tensor *grad)
{
    hob_tensor *y = hob__part_up(scope, output);
    hob_tensor *g = hob__part_up(scope, grad);
    hob_tensor *slope =
        hob_mul(scope, y, hob_rsub_scalar(scope, y, hob_i64(1)));

    return hob__part_down(scope, hob_mul(scope, g, slope),
                          hob_tensor_dtype(grad));
}

/* x less its maximum along DIM; X where there is no element to compare. */
static hob_tensor *shifted(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    if (hob_tensor_count(x) == 0)
        return x;
    return hob_sub(scope, x, hob_max_dim(scope, x, dim));
}

hob_tensor *hob__body_softmax(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    hob_tensor *e = hob_exp(scope, shifted(scope, hob__part_up(scope, x), dim));

    return hob__part_down(scope, hob_div(scope, e, hob_sum_dim(scope, e, dim)),
                          hob_tensor_dtype(x));
}

hob_tensor *hob__body_log_softmax(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    hob_tensor *v = shifted(scope, hob__part_up(scope, x), dim);
    hob_tensor *total = hob_sum_dim(scope, hob_exp(scope, v), dim);

    return hob__part_down(scope, hob_sub(scope, v, hob_log(scope, total)),
                          hob_tensor_dtype(x));
}

hob_tensor *hob__body_softmax_backward(hob_scope *scope, hob_tensor *output,
                                       hob_tensor *grad, int64_t dim)
{
    hob_tensor *y = hob__part_up(scope, output);
    hob_tensor *g = hob__part_up(scope, grad);
    hob_tensor *inner = hob_sum_dim(scope, hob_mul(scope, y, g), dim);

    return hob__part_down(scope, hob_mul(scope, y, hob_sub(scope, g, inner)),
                          hob_tensor_dtype(grad));
}

hob_tensor *hob__body_log_softmax_backward(hob_scope *scope, hob_tensor *output,
                                           hob_tensor *grad, int64_t dim)
{
    hob_tensor *y = hob__part_up(scope, output);
    hob_tensor *g = hob__part_up(scope, grad);
    hob_tensor *total = hob_sum_dim(scope, g, dim);

    return hob__part_down(
        scope, hob_sub(scope, g, hob_mul(scope, hob_exp(scope, y), total)),
        hob_tensor_dtype(grad));
}

/* ---- compositions ---- */

/* log(1 + e^-|x|), which the stable forms of softplus and its kin share. */
static hob_tensor *log_tail(hob_scope *scope, hob_tensor *x)
{
    return hob_log1p(scope, hob_exp(scope, hob_neg(scope, hob_abs(scope, x))));
}

hob_tensor *hob__body_silu(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);

    return hob__part_down(scope, hob_mul(scope, v, hob_sigmoid(scope, v)),
                          hob_tensor_dtype(x));
}

hob_tensor *hob__body_softplus(hob_scope *scope, hob_tensor *x, double beta)
{
    hob_tensor *v =
        hob_mul_scalar(scope, hob__part_up(scope, x), hob_f64(beta));
    hob_tensor *y = hob_add(scope, hob_relu(scope, v), log_tail(scope, v));

    return hob__part_down(scope, hob_div_scalar(scope, y, hob_f64(beta)),
                          hob_tensor_dtype(x));
}

hob_tensor *hob__body_log_sigmoid(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);

    return hob__part_down(scope,
                          hob_sub(scope,
                                  hob_clamp(scope, v, hob_none(), hob_i64(0)),
                                  log_tail(scope, v)),
                          hob_tensor_dtype(x));
}

/* x where it is at least 0, else OTHER. */
static hob_tensor *below_zero(hob_scope *scope, hob_tensor *x,
                              hob_tensor *other)
{
    return hob_where(scope, hob_less_scalar(scope, x, hob_i64(0)), other, x);
}

hob_tensor *hob__body_leaky_relu(hob_scope *scope, hob_tensor *x, double slope)
{
    hob_tensor *v = hob__part_up(scope, x);

    v = below_zero(scope, v, hob_mul_scalar(scope, v, hob_f64(slope)));
    return hob__part_down(scope, v, hob_tensor_dtype(x));
}

/* One slope for all, or one for each channel of x [n, c, ..]. */
hob_tensor *hob__body_prelu(hob_scope *scope, hob_tensor *x, hob_tensor *slope)
{
    int32_t rank = hob_tensor_rank(x);
    int64_t shape[HOB_MAX_RANK];

    for (int32_t i = 0; i < rank; i++)
        shape[i] = 1;
    if (rank > 1)
        shape[1] = hob_tensor_count(slope);
    return below_zero(
        scope, x,
        hob_mul(scope, x, hob_reshape(scope, slope, shape, (uint32_t)rank)));
}

/* SCALE times x above 0, and alpha (e^(x / divisor) - 1) below. */
static hob_tensor *exponential(hob_scope *scope, hob_tensor *x, double alpha,
                               double divisor, double scale)
{
    hob_tensor *v = hob__part_up(scope, x);
    /* What is above 0 is not exponentiated: it could overflow. */
    hob_tensor *low = hob_clamp(scope, v, hob_none(), hob_i64(0));
    hob_tensor *y;

    if (divisor != 1)
        low = hob_div_scalar(scope, low, hob_f64(divisor));
    low = hob_mul_scalar(
        scope, hob_add_scalar(scope, hob_exp(scope, low), hob_i64(-1)),
        hob_f64(alpha));
    y = below_zero(scope, v, low);
    if (scale != 1)
        y = hob_mul_scalar(scope, y, hob_f64(scale));
    return hob__part_down(scope, y, hob_tensor_dtype(x));
}

hob_tensor *hob__body_elu(hob_scope *scope, hob_tensor *x, double alpha)
{
    return exponential(scope, x, alpha, 1, 1);
}

hob_tensor *hob__body_celu(hob_scope *scope, hob_tensor *x, double alpha)
{
    return exponential(scope, x, alpha, alpha, 1);
}

hob_tensor *hob__body_selu(hob_scope *scope, hob_tensor *x)
{
    return exponential(scope, x, selu_alpha, 1, selu_scale);
}

hob_tensor *hob__body_hard_sigmoid(hob_scope *scope, hob_tensor *x,
                                   double alpha, double beta)
{
    hob_tensor *v =
        hob_mul_scalar(scope, hob__part_up(scope, x), hob_f64(alpha));

    v = hob_clamp(scope, hob_add_scalar(scope, v, hob_f64(beta)), hob_i64(0),
                  hob_i64(1));
    return hob__part_down(scope, v, hob_tensor_dtype(x));
}

hob_tensor *hob__body_hard_swish(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *gate = hob_clamp(scope, hob_add_scalar(scope, v, hob_i64(3)),
                                 hob_i64(0), hob_i64(6));

    return hob__part_down(
        scope, hob_div_scalar(scope, hob_mul(scope, v, gate), hob_i64(6)),
        hob_tensor_dtype(x));
}

hob_tensor *hob__body_mish(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *v = hob__part_up(scope, x);

    return hob__part_down(
        scope, hob_mul(scope, v, hob_tanh(scope, hob_softplus(scope, v, 1))),
        hob_tensor_dtype(x));
}

hob_tensor *hob__body_softsign(hob_scope *scope, hob_tensor *x)
{
    return hob_div(scope, x,
                   hob_add_scalar(scope, hob_abs(scope, x), hob_i64(1)));
}

/* The first half along DIM times the sigmoid of the second. */
hob_tensor *hob__body_glu(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    hob_tensor *halves[2] = {NULL, NULL};
    uint32_t count;

    /* A failure shows in the halves: both are the error tensor. */
    (void)hob_chunk(scope, x, 2, dim, halves, 2, &count);
    if (count < 2) /* no elements to halve */
        return halves[0];
    return hob_mul(scope, halves[0], hob_sigmoid(scope, halves[1]));
}

hob_tensor *hob__body_softmin(hob_scope *scope, hob_tensor *x, int64_t dim)
{
    return hob_softmax(scope, hob_neg(scope, x), dim);
}

/* exp(x) / (1 + sum exp(x)): a softmax over one more element, a 0. */
hob_tensor *hob__body_quiet_softmax(hob_scope *scope, hob_tensor *x,
                                    int64_t dim)
{
    hob_tensor *v = hob__part_up(scope, x), *peak, *e, *sum;

    if (hob_tensor_count(x) == 0)
        return hob__part_same(scope, x);
    peak = hob_clamp(scope, hob_max_dim(scope, v, dim), hob_i64(0), hob_none());
    e = hob_exp(scope, hob_sub(scope, v, peak));
    sum = hob_add(scope, hob_sum_dim(scope, e, dim),
                  hob_exp(scope, hob_neg(scope, peak)));
    return hob__part_down(scope, hob_div(scope, e, sum), hob_tensor_dtype(x));
}

/* ---- the slopes of the compositions ---- */

/* X as a factor of what is 0 far out, where infinity would make it NaN. */
static hob_tensor *near_zero(hob_scope *scope, hob_tensor *x)
{
    return hob_clamp(scope, x, hob_f64(-800), hob_f64(800));
}

/* s + x s (1 - s) = s (1 + x (1 - s)), s the sigmoid. */
static hob_tensor *silu_slope(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *s = hob_sigmoid(scope, x);
    hob_tensor *y = hob_mul(scope, near_zero(scope, x),
                            hob_rsub_scalar(scope, s, hob_i64(1)));

    return hob_mul(scope, s, hob_add_scalar(scope, y, hob_i64(1)));
}

/* t + x s (1 - t^2), t = tanh(softplus(x)). */
static hob_tensor *mish_slope(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *t = hob_tanh(scope, hob_softplus(scope, x, 1));
    hob_tensor *y = hob_mul(
        scope, hob_mul(scope, near_zero(scope, x), hob_sigmoid(scope, x)),
        hob_rsub_scalar(scope, hob_mul(scope, t, t), hob_i64(1)));

    return hob_add(scope, t, y);
}

/* SCALE e^(x / DIVISOR) below 0, ABOVE elsewhere. */
static hob_tensor *exponential_slope(hob_scope *scope, hob_tensor *x,
                                     double scale, double divisor, double above)
{
    hob_tensor *y = hob_clamp(scope, x, hob_none(), hob_i64(0));

    if (divisor != 1)
        y = hob_div_scalar(scope, y, hob_f64(divisor));
    y = hob_mul_scalar(scope, hob_exp(scope, y), hob_f64(scale));
    return hob_where(scope, hob_less_scalar(scope, x, hob_i64(0)), y,
                     hob__part_constant(scope, x, hob_f64(above)));
}

/* 0 below -3, 1 above 3, x / 3 + 1/2 between. */
static hob_tensor *hard_swish_slope(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *y = hob_add_scalar(
        scope, hob_mul_scalar(scope, x, hob_f64(1.0 / 3)), hob_f64(0.5));

    y = hob_where(scope, hob_less_scalar(scope, x, hob_i64(-3)),
                  hob__part_constant(scope, x, hob_i64(0)), y);
    return hob_where(scope, hob_greater_scalar(scope, x, hob_i64(3)),
                     hob__part_constant(scope, x, hob_i64(1)), y);
}

/* (1 / (1 + |x|))^2: the square of a large divisor would overflow. */
static hob_tensor *softsign_slope(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *y =
        hob_recip(scope, hob_add_scalar(scope, hob_abs(scope, x), hob_i64(1)));

    return hob_mul(scope, y, y);
}

static hob_tensor *slope_of(hob_scope *scope, hob_tensor *x,
                            enum hob_activation_backward_kind kind,
                            double alpha)
{
    switch (kind) {
    case HOB_ACTIVATION_BACKWARD_KIND_SILU:
        return silu_slope(scope, x);
    case HOB_ACTIVATION_BACKWARD_KIND_MISH:
        return mish_slope(scope, x);
    case HOB_ACTIVATION_BACKWARD_KIND_SOFTPLUS:
        return hob_sigmoid(scope, hob_mul_scalar(scope, x, hob_f64(alpha)));
    case HOB_ACTIVATION_BACKWARD_KIND_LOG_SIGMOID:
        return hob_sigmoid(scope, hob_neg(scope, x));
    case HOB_ACTIVATION_BACKWARD_KIND_SOFTSIGN:
        return softsign_slope(scope, x);
    case HOB_ACTIVATION_BACKWARD_KIND_LEAKY_RELU:
        return hob_where(scope, hob_less_scalar(scope, x, hob_i64(0)),
                         hob__part_constant(scope, x, hob_f64(alpha)),
                         hob__part_constant(scope, x, hob_i64(1)));
    case HOB_ACTIVATION_BACKWARD_KIND_ELU:
        return exponential_slope(scope, x, alpha, 1, 1);
    case HOB_ACTIVATION_BACKWARD_KIND_CELU:
        return exponential_slope(scope, x, 1, alpha, 1);
    case HOB_ACTIVATION_BACKWARD_KIND_SELU:
        return exponential_slope(scope, x, selu_scale * selu_alpha, 1,
                                 selu_scale);
    default: /* hard_swish */
        return hard_swish_slope(scope, x);
    }
}

hob_tensor *
hob__body_activation_backward(hob_scope *scope, hob_tensor *x, hob_tensor *grad,
                              enum hob_activation_backward_kind kind,
                              double alpha)
{
    hob_tensor *slope = slope_of(scope, hob__part_up(scope, x), kind, alpha);

    return hob__part_down(scope,
                          hob_mul(scope, hob__part_up(scope, grad), slope),
                          hob_tensor_dtype(x));
}
