/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arithmetic.c - rules of arithmetic, where and mask_fill.
 *
 * Gradients may have the broadcast shape: the walk sums them back.
 */
#include "rules.h"

/* The value of a scalar argument. */
static double number(const hob_value *value)
{
    switch (value->tag) {
    case HOB_TAG_F64:
        return value->u.f64;
    case HOB_TAG_U64:
        return (double)value->u.u64;
    default:
        return (double)value->u.i64;
    }
}

/* TENSOR, but zero where MASK is true. */
static hob_tensor *zero_where(hob_scope *scope, hob_tensor *tensor,
                              hob_tensor *mask)
{
    return hob_mask_fill(scope, tensor, mask, hob_f64(0));
}

static hob_status add(hob_scope *scope, const struct hob_grad_call *call)
{
    (void)scope;
    call->out_grads[0] = call->grads[0];
    call->out_grads[1] = call->grads[0];
    return HOB_OK;
}

static hob_status sub(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = call->grads[0];
    if (call->needs_grad[1])
        call->out_grads[1] = hob_neg(scope, call->grads[0]);
    return HOB_OK;
}

static hob_status mul(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];

    if (call->needs_grad[0])
        call->out_grads[0] = hob_mul(scope, grad, call->inputs[1]);
    if (call->needs_grad[1])
        call->out_grads[1] = hob_mul(scope, grad, call->inputs[0]);
    return HOB_OK;
}

/* d(l / r) = dl / r - l / r^2 dr */
static hob_status divide(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *rhs = call->inputs[1];
    hob_tensor *part = hob_div(scope, call->grads[0], rhs);

    if (call->needs_grad[0])
        call->out_grads[0] = part;
    if (call->needs_grad[1])
        call->out_grads[1] = hob_neg(
            scope, hob_mul(scope, part, hob_div(scope, call->inputs[0], rhs)));
    return HOB_OK;
}

/* l - floor(l / r) r, where floor is constant */
static hob_status remainder_rule(hob_scope *scope,
                                 const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];

    call->out_grads[0] = grad;
    if (call->needs_grad[1]) {
        hob_tensor *times =
            hob_floor(scope, hob_div(scope, call->inputs[0], call->inputs[1]));

        call->out_grads[1] = hob_neg(scope, hob_mul(scope, grad, times));
    }
    return HOB_OK;
}

/*
 * dl: r l^(r-1), which is 0 where r is 0, also for l = 0.
 * dr: l^r ln l, which is 0 where l is 0 and r >= 0, and NaN for l < 0.
 */
static hob_status power(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];
    hob_tensor *lhs = call->inputs[0];
    hob_tensor *rhs = call->inputs[1];

    if (call->needs_grad[0]) {
        hob_tensor *slope = hob_mul(
            scope, rhs,
            hob_pow(scope, lhs, hob_sub_scalar(scope, rhs, hob_f64(1))));

        call->out_grads[0] = hob_mul(
            scope, grad,
            zero_where(scope, slope, hob_equal_scalar(scope, rhs, hob_f64(0))));
    }
    if (call->needs_grad[1]) {
        hob_tensor *flat =
            hob_logical_and(scope, hob_equal_scalar(scope, lhs, hob_f64(0)),
                            hob_greater_equal_scalar(scope, rhs, hob_f64(0)));
        hob_tensor *slope =
            hob_mul(scope, hob_pow(scope, lhs, rhs), hob_log(scope, lhs));

        call->out_grads[1] =
            hob_mul(scope, grad, zero_where(scope, slope, flat));
    }
    return HOB_OK;
}

/*
 * Each side where it wins; where they are equal, half to each, which is the
 * mean of the one-sided slopes. NaN wins.
 */
static void share_extreme(hob_scope *scope, const struct hob_grad_call *call,
                          hob_tensor *rhs_wins, hob_tensor *lhs_wins)
{
    hob_tensor *grad = call->grads[0];
    hob_tensor *tie = hob_equal(scope, call->inputs[0], call->inputs[1]);
    hob_tensor *half =
        hob_where(scope, tie, hob_mul_scalar(scope, grad, hob_f64(0.5)), grad);

    if (call->needs_grad[0])
        call->out_grads[0] = zero_where(scope, half, rhs_wins);
    if (call->needs_grad[1])
        call->out_grads[1] = zero_where(scope, half, lhs_wins);
}

static hob_status maximum(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *lhs = call->inputs[0];
    hob_tensor *rhs = call->inputs[1];

    share_extreme(scope, call, hob_less(scope, lhs, rhs),
                  hob_less(scope, rhs, lhs));
    return HOB_OK;
}

static hob_status minimum(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *lhs = call->inputs[0];
    hob_tensor *rhs = call->inputs[1];

    share_extreme(scope, call, hob_greater(scope, lhs, rhs),
                  hob_greater(scope, rhs, lhs));
    return HOB_OK;
}

/* The angle of (x, y) = (rhs, lhs): (x dy - y dx) / (x^2 + y^2) */
static hob_status atan2_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *y = call->inputs[0];
    hob_tensor *x = call->inputs[1];
    hob_tensor *part =
        hob_div(scope, call->grads[0],
                hob_add(scope, hob_square(scope, x), hob_square(scope, y)));

    if (call->needs_grad[0])
        call->out_grads[0] = hob_mul(scope, part, x);
    if (call->needs_grad[1])
        call->out_grads[1] = hob_neg(scope, hob_mul(scope, part, y));
    return HOB_OK;
}

/* Each side over the result; 0 at the origin, where there is no slope. */
static hob_status hypot_rule(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *out = call->rets[0];
    hob_tensor *origin = hob_equal_scalar(scope, out, hob_f64(0));

    for (uint32_t i = 0; i < 2; i++) {
        hob_tensor *slope;

        if (!call->needs_grad[i])
            continue;
        slope = zero_where(scope, hob_div(scope, call->inputs[i], out), origin);
        call->out_grads[i] = hob_mul(scope, call->grads[0], slope);
    }
    return HOB_OK;
}

/* ---- with a scalar ---- */

static hob_status same(hob_scope *scope, const struct hob_grad_call *call)
{
    (void)scope;
    call->out_grads[0] = call->grads[0];
    return HOB_OK;
}

static hob_status mul_scalar(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_mul_scalar(scope, call->grads[0], call->args[1]);
    return HOB_OK;
}

static hob_status div_scalar(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_div_scalar(scope, call->grads[0], call->args[1]);
    return HOB_OK;
}

static hob_status rsub_scalar(hob_scope *scope,
                              const struct hob_grad_call *call)
{
    call->out_grads[0] = hob_neg(scope, call->grads[0]);
    return HOB_OK;
}

static hob_status pow_scalar(hob_scope *scope, const struct hob_grad_call *call)
{
    double power_value = number(&call->args[1]);
    hob_tensor *grad = call->grads[0];

    if (power_value == 0) {
        call->out_grads[0] = ad_zeros(scope, &call->input_metas[0], grad);
        return HOB_OK;
    }
    call->out_grads[0] = hob_mul(
        scope, hob_mul_scalar(scope, grad, hob_f64(power_value)),
        hob_pow_scalar(scope, call->inputs[0], hob_f64(power_value - 1)));
    return HOB_OK;
}

/* 1 where x is within the bounds, both included. */
static hob_status clamp(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];

    if (call->args[1].tag != HOB_TAG_ABSENT)
        grad =
            zero_where(scope, grad,
                       hob_less_scalar(scope, call->inputs[0], call->args[1]));
    if (call->args[2].tag != HOB_TAG_ABSENT)
        grad = zero_where(
            scope, grad,
            hob_greater_scalar(scope, call->inputs[0], call->args[2]));
    call->out_grads[0] = grad;
    return HOB_OK;
}

/* ---- choices ---- */

static hob_status where(hob_scope *scope, const struct hob_grad_call *call)
{
    hob_tensor *grad = call->grads[0];
    hob_tensor *condition = call->inputs[0];

    if (call->needs_grad[1])
        call->out_grads[1] =
            zero_where(scope, grad, hob_logical_not(scope, condition));
    if (call->needs_grad[2])
        call->out_grads[2] = zero_where(scope, grad, condition);
    return HOB_OK;
}

static hob_status mask_fill(hob_scope *scope, const struct hob_grad_call *call)
{
    call->out_grads[0] = zero_where(scope, call->grads[0], call->inputs[1]);
    return HOB_OK;
}

/* Each side's gradient needs the other side; or both; or its own. */
static const uint32_t other_side[HOB_MAX_PARAMS] = {2, 1};
static const uint32_t divide_needs[HOB_MAX_PARAMS] = {2, 3};
static const uint32_t rhs_needs_both[HOB_MAX_PARAMS] = {0, 3};
static const uint32_t both_need_both[HOB_MAX_PARAMS] = {3, 3};
static const uint32_t own_side[HOB_MAX_PARAMS] = {1, 2};

#define HEAD .struct_size = sizeof(struct hob_backward)
#define CHEAP HEAD, .flags = HOB_BACKWARD_MEMORY_BOUND

static const struct ad_rule rules[] = {
    {HOB_OP_ADD, {CHEAP, .backward = add}},
    {HOB_OP_SUB, {CHEAP, .backward = sub}},
    {HOB_OP_MUL,
     {CHEAP, .save_args = 3, .save_if = other_side, .backward = mul}},
    {HOB_OP_DIV,
     {CHEAP, .save_args = 3, .save_if = divide_needs, .backward = divide}},
    {HOB_OP_REMAINDER,
     {CHEAP, .save_args = 3, .save_if = rhs_needs_both,
      .backward = remainder_rule}},
    {HOB_OP_POW,
     {CHEAP, .save_args = 3, .save_if = both_need_both, .backward = power}},
    {HOB_OP_MAXIMUM, {CHEAP, .save_args = 3, .backward = maximum}},
    {HOB_OP_MINIMUM, {CHEAP, .save_args = 3, .backward = minimum}},
    {HOB_OP_ATAN2, {CHEAP, .save_args = 3, .backward = atan2_rule}},
    {HOB_OP_HYPOT,
     {HEAD, .save_args = 3, .save_rets = 1, .save_if = own_side,
      .backward = hypot_rule}},
    {HOB_OP_ADD_SCALAR, {CHEAP, .backward = same}},
    {HOB_OP_SUB_SCALAR, {CHEAP, .backward = same}},
    {HOB_OP_MUL_SCALAR, {CHEAP, .backward = mul_scalar}},
    {HOB_OP_DIV_SCALAR, {CHEAP, .backward = div_scalar}},
    {HOB_OP_REMAINDER_SCALAR, {CHEAP, .backward = same}},
    {HOB_OP_POW_SCALAR, {CHEAP, .save_args = 1, .backward = pow_scalar}},
    {HOB_OP_RSUB_SCALAR, {CHEAP, .backward = rsub_scalar}},
    {HOB_OP_CLAMP, {CHEAP, .save_args = 1, .backward = clamp}},
    {HOB_OP_WHERE, {HEAD, .save_args = 1, .backward = where}},
    {HOB_OP_MASK_FILL, {HEAD, .save_args = 2, .backward = mask_fill}},
};

#undef CHEAP
#undef HEAD

const struct ad_family ad_rules_arithmetic = {rules,
                                              sizeof(rules) / sizeof(rules[0])};
