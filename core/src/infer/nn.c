/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nn.c - losses, norms and optimizer steps.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>

/* Fail unless argument INDEX, if given, is [SIZE]. */
static hob_status check_vector(struct hob_call *call, uint32_t index,
                               const char *name, int64_t size)
{
    const struct hob_view *view = hob_arg_view(call, index);

    if (!view || (view->rank == 1 && view->shape[0] == size))
        return HOB_OK;
    return call->host->fail(
        call, HOB_ERR_SHAPE,
        "%s: x is %s, so %s must be [%" PRId64 "]; it is %s", call->op_name,
        hob__view_text(hob_arg_view(call, 0)).text, name, size,
        hob__view_text(view).text);
}

static hob_status check_targets(struct hob_call *call)
{
    const struct hob_view *logits = hob_arg_view(call, 0);
    const struct hob_view *targets = hob_arg_view(call, 1);
    hob_status st = hob__infer_rank(call, 0, "logits", 2, "[batch, classes]");

    if (st)
        return st;
    if (targets->rank != 1 || targets->shape[0] != logits->shape[0])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: logits is %s, so targets must be [%" PRId64
                                "]; it is %s",
                                call->op_name, hob__view_text(logits).text,
                                logits->shape[0], hob__view_text(targets).text);
    if (logits->shape[0] && !logits->shape[1])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: logits is %s: there are no classes",
                                call->op_name, hob__view_text(logits).text);
    return HOB_OK;
}

hob_status hob__infer_cross_entropy(struct hob_call *call, struct hob_meta *out)
{
    out->rank = 0;
    return check_targets(call);
}

hob_status hob__infer_same_logits(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *grad = hob_arg_view(call, 2);
    hob_status st = check_targets(call);

    if (st)
        return st;
    if (hob_view_count(grad) != 1)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: grad is %s; it must have one element",
                                call->op_name, hob__view_text(grad).text);
    hob__meta_copy_shape(out, hob_arg_view(call, 0));
    return HOB_OK;
}

hob_status hob__infer_layer_norm(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st;

    if (x->rank < 1)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s; it must have at least 1 "
                                "dimension",
                                call->op_name, hob__view_text(x).text);
    st = check_vector(call, 1, "weight", x->shape[x->rank - 1]);
    if (st)
        return st;
    hob__meta_copy_shape(out, x);
    return check_vector(call, 2, "bias", x->shape[x->rank - 1]);
}

hob_status hob__infer_batch_norm(struct hob_call *call, struct hob_meta *out)
{
    static const char *const names[] = {"weight", "bias", "mean", "variance"};
    const struct hob_view *x = hob_arg_view(call, 0);

    if (x->rank < 2)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s; it must have at least 2 "
                                "dimensions, [n, c, ..]",
                                call->op_name, hob__view_text(x).text);
    for (uint32_t i = 0; i < 4; i++) {
        hob_status st = check_vector(call, i + 1, names[i], x->shape[1]);
        if (st)
            return st;
    }
    hob__meta_copy_shape(out, x);
    return HOB_OK;
}

hob_status hob__infer_group_norm(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    int64_t groups = hob__attr_i64(call, 1);
    hob_status st;

    if (x->rank < 2 || groups < 1 || x->shape[1] % groups)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s and groups is %" PRId64
                                "; x must be [n, c, ..] with groups dividing c",
                                call->op_name, hob__view_text(x).text, groups);
    st = check_vector(call, 2, "weight", x->shape[1]);
    if (st)
        return st;
    hob__meta_copy_shape(out, x);
    return check_vector(call, 3, "bias", x->shape[1]);
}

hob_status hob__infer_rms_norm(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    if (x->rank < 1)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s; it must have at least 1 "
                                "dimension",
                                call->op_name, hob__view_text(x).text);
    hob__meta_copy_shape(out, x);
    return check_vector(call, 1, "weight", x->shape[x->rank - 1]);
}

/* x, weight, grad; RESULTS are d_x and then vectors. */
static hob_status infer_norm_backward(struct hob_call *call,
                                      struct hob_meta *out, uint32_t results)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st = hob__infer_rms_norm(call, out);

    if (!st)
        st = hob__infer_equal(call, "grad", hob_arg_view(call, 2), "x", out);
    for (uint32_t i = 1; !st && i < results; i++) {
        out[i].rank = 1;
        out[i].shape[0] = x->shape[x->rank - 1];
    }
    return st;
}

hob_status hob__infer_layer_norm_backward(struct hob_call *call,
                                          struct hob_meta *out)
{
    return infer_norm_backward(call, out, 3);
}

hob_status hob__infer_rms_norm_backward(struct hob_call *call,
                                        struct hob_meta *out)
{
    return infer_norm_backward(call, out, 2);
}

hob_status hob__infer_batch_norm_backward(struct hob_call *call,
                                          struct hob_meta *out)
{
    static const char *const names[] = {"mean", "scale"};
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st = HOB_OK;

    if (x->rank < 2)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s; it must have at least 2 "
                                "dimensions, [n, c, ..]",
                                call->op_name, hob__view_text(x).text);
    hob__meta_copy_shape(out, x);
    for (uint32_t i = 0; !st && i < 2; i++)
        st = check_vector(call, i + 1, names[i], x->shape[1]);
    if (!st)
        st = hob__infer_equal(call, "grad", hob_arg_view(call, 3), "x", out);
    for (uint32_t i = 1; !st && i < 3; i++) {
        out[i].rank = 1;
        out[i].shape[0] = x->shape[1];
    }
    return st;
}

hob_status hob__infer_similarity(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 2), x, 0, &axis);

    if (st)
        return st;
    hob__meta_copy_shape(out, x);
    st = hob__infer_equal(call, "rhs", hob_arg_view(call, 1), "lhs", out);
    out->shape[axis] = 1;
    return st;
}

/* One slope, or one a channel. */
hob_status hob__infer_prelu(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *slope = hob_arg_view(call, 1);
    int64_t channels = x->rank > 1 ? x->shape[1] : 1;

    if (slope->rank > 1 ||
        (hob_view_count(slope) != 1 && hob_view_count(slope) != channels))
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s and slope is %s; give one slope, "
                                "or one for each of the %" PRId64 " channels",
                                call->op_name, hob__view_text(x).text,
                                hob__view_text(slope).text, channels);
    hob__meta_copy_shape(out, x);
    return HOB_OK;
}

hob_status hob__infer_glu(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t axis;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 1), x, 0, &axis);

    if (st)
        return st;
    if (x->shape[axis] % 2)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: dimension %u of %s is odd, it must be "
                                "halved",
                                call->op_name, (unsigned)axis,
                                hob__view_text(x).text);
    hob__meta_copy_shape(out, x);
    out->shape[axis] /= 2;
    return HOB_OK;
}

hob_status hob__infer_sgd_step(struct hob_call *call, struct hob_meta *out)
{
    hob__meta_copy_shape(out, hob_arg_view(call, 0));
    return hob__infer_equal(call, "grad", hob_arg_view(call, 1), "param", out);
}

hob_status hob__infer_adam_step(struct hob_call *call, struct hob_meta *out)
{
    static const char *const names[] = {"param", "grad", "m", "v"};
    int64_t step = hob__attr_i64(call, 4);

    for (uint32_t i = 0; i < call->ret_count; i++)
        hob__meta_copy_shape(&out[i], hob_arg_view(call, 0));
    for (uint32_t i = 1; i < 4; i++) {
        hob_status st = hob__infer_equal(call, names[i], hob_arg_view(call, i),
                                         "param", out);
        if (st)
            return st;
    }
    if (call->args[10].tag == HOB_TAG_TENSOR) {
        const struct hob_view *now = hob_arg_view(call, 10);

        if (now->dtype != HOB_DTYPE_F32 && now->dtype != HOB_DTYPE_F64)
            return call->host->fail(call, HOB_ERR_DTYPE,
                                    "%s: now is %s; it must be f32 or f64",
                                    call->op_name, hob_dtype_name(now->dtype));
        if (now->rank != 1 || now->shape[0] != 2)
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: now has %" PRId64
                " elements in %u dimensions; it must be [step, lr]",
                call->op_name, hob_view_count(now), (unsigned)now->rank);
    } else if (step < 1)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: step is %" PRId64 "; it counts from 1",
                                call->op_name, step);
    /* From 1 on the correction of the moments divides by 0. */
    for (uint32_t i = 6; i < 8; i++) {
        double beta = call->args[i].u.f64;
        if (!(beta >= 0 && beta < 1))
            return call->host->fail(call, HOB_ERR_RANGE,
                                    "%s: beta%u is %g; it must be in [0, 1)",
                                    call->op_name, (unsigned)i - 5, beta);
    }
    return HOB_OK;
}
