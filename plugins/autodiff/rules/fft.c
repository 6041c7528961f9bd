/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c - rules of the real Fourier transforms: each one's gradient is the
 * other one.
 *
 * With t = 1 for the first and, of an even length n, the middle coefficient,
 * and 2 for the others, irfft is y_j = 1/n sum_k t_k (re_k cos - im_k sin) and
 * rfft re_k = sum_j x_j cos, im_k = -sum_j x_j sin, the angles being 2 pi j k /
 * n.
 */
#include "rules.h"

/* X in f32 where it is a half: what is n times smaller must not vanish. */
static hob_tensor *widened(hob_scope *scope, hob_tensor *x)
{
    hob_dtype dtype = hob_tensor_dtype(x);

    return dtype == HOB_DTYPE_F16 || dtype == HOB_DTYPE_BF16
               ? hob_cast(scope, x, HOB_DTYPE_F32)
               : x;
}

/* X cut or filled with zeros to the size that META has along AXIS, in META's
 * dtype. */
static hob_tensor *fitted(hob_scope *scope, hob_tensor *x,
                          const struct hob_meta *meta, uint32_t axis)
{
    int64_t padding[2 * HOB_MAX_RANK] = {0};
    uint32_t pair = meta->rank - 1u - axis;

    padding[2 * pair + 1] = meta->shape[axis] - hob_tensor_shape(x)[axis];
    if (padding[2 * pair + 1])
        x = hob_pad(scope, x, padding, 2 * (pair + 1), HOB_PAD_MODE_CONSTANT,
                    hob_i64(0));
    return hob_tensor_dtype(x) == (hob_dtype)meta->dtype
               ? x
               : hob_cast(scope, x, (hob_dtype)meta->dtype);
}

/* t of a transform of LENGTH, as a tensor that broadcasts along AXIS of X. */
static hob_tensor *twins(hob_scope *scope, hob_tensor *x, uint32_t axis,
                         int64_t length)
{
    hob_device *device = hob_scope_host(scope)->tensor_device(x);
    uint32_t rank = (uint32_t)hob_tensor_rank(x) - axis;
    int64_t shape[HOB_MAX_RANK];
    hob_tensor *k =
        hob_arange(scope, 0, length / 2 + 1, 1, device, HOB_DTYPE_I64);
    hob_tensor *two = hob_logical_and(
        scope, hob_greater_scalar(scope, k, hob_i64(0)),
        hob_not_equal_scalar(scope, hob_mul_scalar(scope, k, hob_i64(2)),
                             hob_i64(length)));

    for (uint32_t i = 0; i < rank; i++)
        shape[i] = 1;
    shape[0] = length / 2 + 1;
    return hob_reshape(scope,
                       hob_add_scalar(scope,
                                      hob_cast(scope, two, hob_tensor_dtype(x)),
                                      hob_i64(1)),
                       shape, (int32_t)rank);
}

static hob_status rfft(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    const hob_value *n = &call->args[2];
    uint32_t axis = (uint32_t)ad_dim(call->args[1].u.i64, meta->rank);
    int64_t length = n->tag == HOB_TAG_ABSENT ? meta->shape[axis] : n->u.i64;
    hob_tensor *parts[2], *t;

    for (int i = 0; i < 2; i++)
        parts[i] =
            widened(scope, call->grads[i] ? call->grads[i]
                                          : ad_zeros(scope, &call->ret_metas[i],
                                                     call->grads[!i]));
    t = twins(scope, parts[0], axis, length);
    call->out_grads[0] =
        fitted(scope,
               hob_mul_scalar(scope,
                              hob_irfft(scope, hob_div(scope, parts[0], t),
                                        hob_div(scope, parts[1], t),
                                        (int64_t)axis, hob_i64(length)),
                              hob_i64(length)),
               meta, axis);
    return HOB_OK;
}

static hob_status irfft(hob_scope *scope, const struct hob_grad_call *call)
{
    const struct hob_meta *meta = &call->input_metas[0];
    uint32_t axis = (uint32_t)ad_dim(call->args[2].u.i64, meta->rank);
    int64_t length = call->ret_metas[0].shape[axis];
    hob_tensor *grad = widened(scope, call->grads[0]);
    hob_tensor *t = hob_div_scalar(scope, twins(scope, grad, axis, length),
                                   hob_i64(length));
    hob_tensor *parts[2];

    (void)hob_rfft(scope, grad, (int64_t)axis, hob_i64(length), &parts[0],
                   &parts[1]);
    for (int i = 0; i < 2; i++)
        if (call->needs_grad[i])
            call->out_grads[i] = fitted(scope, hob_mul(scope, parts[i], t),
                                        &call->input_metas[i], axis);
    return HOB_OK;
}

#define HEAD .struct_size = sizeof(struct hob_backward)

static const struct ad_rule rules[] = {
    {HOB_OP_IRFFT, {HEAD, .backward = irfft}},
    {HOB_OP_RFFT, {HEAD, .backward = rfft}},
};

#undef HEAD

const struct ad_family ad_rules_fft = {rules, sizeof(rules) / sizeof(rules[0])};
