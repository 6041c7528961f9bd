/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unary.c - rules of functions of one float tensor, and of cast.
 */
#include "rules.h"

#include <math.h>

static hob_status pass_on(hob_scope *scope, const struct hob_grad_call *call)
{
    (void)scope;
    call->out_grads[0] = call->grads[0];
    return HOB_OK;
}

/* A step function: flat wherever it has a slope. */
static hob_status flat(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = ad_zeros(scope, &call->input_metas[0], call->grads[0]);
    return HOB_OK;
}

/* Set the gradient to the result's gradient times SLOPE. */
static hob_status times(hob_scope *scope, const struct hob_grad_call *call,
                        hob_tensor *slope)
{
    call->out_grads[0] = hob_mul(scope, ad_last_grad(scope, call), slope);
    return HOB_OK;
}

/* The same over DIVISOR. */
static hob_status over(hob_scope *scope, const struct hob_grad_call *call,
                       hob_tensor *divisor)
{
    call->out_grads[0] = hob_div(scope, ad_last_grad(scope, call), divisor);
    return HOB_OK;
}

/* 1 - x^2 */
static hob_tensor *one_less_square(hob_scope *scope, hob_tensor *x)
{
    return hob_rsub_scalar(scope, hob_square(scope, x), hob_f64(1));
}

static hob_status neg(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_neg(scope, call->grads[0]);
    return HOB_OK;
}

/* sign(x), so 0 at 0 */
static hob_status abs_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(scope, call, hob_sign(scope, call->inputs[0]));
}

static hob_status square(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(scope, call,
                 hob_mul_scalar(scope, call->inputs[0], hob_f64(2)));
}

/* -1 / x^2, from the result */
static hob_status recip(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(scope, call, hob_neg(scope, hob_square(scope, call->rets[0])));
}

static hob_status sqrt_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return over(scope, call, hob_mul_scalar(scope, call->rets[0], hob_f64(2)));
}

static hob_status exp_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(scope, call, call->rets[0]);
}

static hob_status log_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return over(scope, call, call->inputs[0]);
}

static hob_status log1p_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return over(scope, call,
                hob_add_scalar(scope, call->inputs[0], hob_f64(1)));
}

/* 2 / sqrt(pi) exp(-x^2) */
static hob_status erf_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *bell =
        hob_exp(scope, hob_neg(scope, hob_square(scope, call->inputs[0])));

    return times(scope, call, hob_mul_scalar(scope, bell, hob_f64(M_2_SQRTPI)));
}

static hob_status tanh_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(scope, call, one_less_square(scope, call->rets[0]));
}

static hob_status sin_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(scope, call, hob_cos(scope, call->inputs[0]));
}

static hob_status cos_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(scope, call, hob_neg(scope, hob_sin(scope, call->inputs[0])));
}

/* 1 + tan^2 */
static hob_status tan_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(
        scope, call,
        hob_add_scalar(scope, hob_square(scope, call->rets[0]), hob_f64(1)));
}

static hob_status sinh_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(scope, call, hob_cosh(scope, call->inputs[0]));
}

static hob_status cosh_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return times(scope, call, hob_sinh(scope, call->inputs[0]));
}

static hob_status asin_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return over(scope, call,
                hob_sqrt(scope, one_less_square(scope, call->inputs[0])));
}

static hob_status acos_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *root = hob_sqrt(scope, one_less_square(scope, call->inputs[0]));

    return over(scope, call, hob_neg(scope, root));
}

static hob_status atan_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return over(
        scope, call,
        hob_add_scalar(scope, hob_square(scope, call->inputs[0]), hob_f64(1)));
}

/* 1 / sqrt(x^2 + 1) */
static hob_status asinh_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *squared = hob_square(scope, call->inputs[0]);

    return over(scope, call,
                hob_sqrt(scope, hob_add_scalar(scope, squared, hob_f64(1))));
}

/* 1 / sqrt(x^2 - 1) */
static hob_status acosh_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *squared = hob_square(scope, call->inputs[0]);

    return over(scope, call,
                hob_sqrt(scope, hob_sub_scalar(scope, squared, hob_f64(1))));
}

static hob_status atanh_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    return over(scope, call, one_less_square(scope, call->inputs[0]));
}

static hob_status cast(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] =
        hob_cast(scope, call->grads[0], (hob_dtype)call->input_metas[0].dtype);
    return HOB_OK;
}

#define HEAD .struct_size = sizeof(struct hob_backward)
#define CHEAP HEAD, .flags = HOB_BACKWARD_MEMORY_BOUND
#define FROM_X CHEAP, .save_args = 1
#define FROM_RESULT CHEAP, .save_rets = 1

static const struct ad_rule rules[] = {
    {HOB_OP_NEG, {CHEAP, .backward = neg}},
    {HOB_OP_ABS, {FROM_X, .backward = abs_rule}},
    {HOB_OP_SIGN, {CHEAP, .backward = flat}},
    {HOB_OP_SQUARE, {FROM_X, .backward = square}},
    {HOB_OP_RECIP, {FROM_RESULT, .backward = recip}},
    {HOB_OP_SQRT, {FROM_RESULT, .backward = sqrt_rule}},
    {HOB_OP_EXP, {FROM_RESULT, .backward = exp_rule}},
    {HOB_OP_LOG, {FROM_X, .backward = log_rule}},
    {HOB_OP_LOG1P, {FROM_X, .backward = log1p_rule}},
    {HOB_OP_ERF, {FROM_X, .backward = erf_rule}},
    {HOB_OP_TANH, {FROM_RESULT, .backward = tanh_rule}},
    {HOB_OP_SIN, {FROM_X, .backward = sin_rule}},
    {HOB_OP_COS, {FROM_X, .backward = cos_rule}},
    {HOB_OP_TAN, {FROM_RESULT, .backward = tan_rule}},
    {HOB_OP_SINH, {FROM_X, .backward = sinh_rule}},
    {HOB_OP_COSH, {FROM_X, .backward = cosh_rule}},
    {HOB_OP_ASIN, {FROM_X, .backward = asin_rule}},
    {HOB_OP_ACOS, {FROM_X, .backward = acos_rule}},
    {HOB_OP_ATAN, {FROM_X, .backward = atan_rule}},
    {HOB_OP_ASINH, {FROM_X, .backward = asinh_rule}},
    {HOB_OP_ACOSH, {FROM_X, .backward = acosh_rule}},
    {HOB_OP_ATANH, {FROM_X, .backward = atanh_rule}},
    {HOB_OP_FLOOR, {CHEAP, .backward = flat}},
    {HOB_OP_CEIL, {CHEAP, .backward = flat}},
    {HOB_OP_ROUND, {CHEAP, .backward = flat}},
    {HOB_OP_TRUNC, {CHEAP, .backward = flat}},
    {HOB_OP_CAST, {HEAD, .backward = cast}},
    {HOB_OP_CONTIGUOUS, {CHEAP, .backward = pass_on}},
};

#undef FROM_RESULT
#undef FROM_X
#undef CHEAP
#undef HEAD

const struct ad_family ad_rules_unary = {rules,
                                         sizeof(rules) / sizeof(rules[0])};
