/* SPDX-License-Identifier: Apache-2.0 */
/*
 * activation.c - bodies of the activations and of their gradients.
 */
#include "bodies.h"
#include "util.h"

#include <math.h>

static const double sqrt_half = 0.70710678118654752440;
static const double inverse_sqrt_two_pi = 0.39894228040143267794;

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
 * second term goes to 0 at infinity. */
hob_tensor *hob__body_gelu_backward(hob_scope *scope, hob_tensor *x,
                                    hob_tensor *grad)
{
    hob_tensor *v = hob__part_up(scope, x);
    hob_tensor *g = hob__part_up(scope, grad);
    hob_tensor *square = hob_mul(scope, v, v);
    hob_tensor *density = hob_mul_scalar(
        scope, hob_exp(scope, hob_mul_scalar(scope, square, hob_f64(-0.5))),
        hob_f64(inverse_sqrt_two_pi));
    hob_tensor *term = hob_mask_fill(scope, hob_mul(scope, v, density),
                                     hob_is_inf(scope, v), hob_i64(0));
    hob_tensor *slope = hob_add(scope, normal_cdf(scope, v), term);

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
