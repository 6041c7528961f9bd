/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample.c - ops that read between the elements, attention and CTC.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>
#include <string.h>

/* X, called NAME, with its height and width replaced by SIZES. */
static hob_status resized(struct hob_call *call, const char *name,
                          const char *sizes, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t count;
    const int64_t *size = hob__attr_list(call, 1, &count);
    hob_status st = hob__infer_rank(call, 0, name, 4, "[n, c, h, w]");

    if (st)
        return st;
    if (count != 2 || size[0] < 1 || size[1] < 1 || size[0] > INT32_MAX ||
        size[1] > INT32_MAX)
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "%s: %s is %s; give a height and a width of at "
                                "least 1",
                                call->op_name, sizes,
                                hob__list_text(size, count).text);
    if (!x->shape[2] || !x->shape[3])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: %s is %s: there is nothing to read from",
                                call->op_name, name, hob__view_text(x).text);
    hob__meta_copy_shape(out, x);
    out->shape[2] = size[0];
    out->shape[3] = size[1];
    return hob__infer_check(call, out);
}

hob_status hob__infer_interpolate(struct hob_call *call, struct hob_meta *out)
{
    return resized(call, "x", "output_size", out);
}

hob_status hob__infer_interpolate_backward(struct hob_call *call,
                                           struct hob_meta *out)
{
    return resized(call, "grad", "input_size", out);
}

hob_status hob__infer_grid_sample(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *grid = hob_arg_view(call, 1);
    hob_status st = hob__infer_rank(call, 0, "x", 4, "[n, c, h, w]");

    if (!st)
        st = hob__infer_rank(call, 1, "grid", 4, "[n, h, w, 2]");
    if (st)
        return st;
    if (grid->shape[0] != x->shape[0] || grid->shape[3] != 2)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: x is %s and grid is %s; grid must be [%" PRId64 ", h, w, 2]",
            call->op_name, hob__view_text(x).text, hob__view_text(grid).text,
            x->shape[0]);
    if (!x->shape[2] || !x->shape[3])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: x is %s: there is nothing to read from",
                                call->op_name, hob__view_text(x).text);
    out->rank = 4;
    out->shape[0] = x->shape[0];
    out->shape[1] = x->shape[1];
    out->shape[2] = grid->shape[1];
    out->shape[3] = grid->shape[2];
    return hob__infer_check(call, out);
}

hob_status hob__infer_grid_sample_backward(struct hob_call *call,
                                           struct hob_meta *out)
{
    struct hob_meta result = out[0];
    hob_status st = hob__infer_grid_sample(call, &result);

    if (!st)
        st = hob__infer_equal(call, "grad", hob_arg_view(call, 2),
                              "grid_sample's result", &result);
    for (uint32_t i = 0; i < 2 && !st; i++)
        hob__meta_copy_shape(&out[i], hob_arg_view(call, i));
    return st;
}

hob_status hob__infer_affine_grid(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *theta = hob_arg_view(call, 0);
    uint32_t count;
    const int64_t *size = hob__attr_list(call, 1, &count);
    hob_status st = hob__infer_rank(call, 0, "theta", 3, "[n, 2, 3]");

    if (st)
        return st;
    if (theta->shape[1] != 2 || theta->shape[2] != 3 || count != 4 ||
        size[0] != theta->shape[0] || size[2] < 0 || size[3] < 0)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: theta is %s and size is %s; they must be "
                                "[n, 2, 3] and [n, c, h, w]",
                                call->op_name, hob__view_text(theta).text,
                                hob__list_text(size, count).text);
    out->rank = 4;
    out->shape[0] = size[0];
    out->shape[1] = size[2];
    out->shape[2] = size[3];
    out->shape[3] = 2;
    return hob__infer_check(call, out);
}

/* ---- attention ---- */

static hob_status misfit(struct hob_call *call, const char *name, uint32_t arg,
                         const char *what)
{
    return call->host->fail(
        call, HOB_ERR_SHAPE,
        "%s: query is %s, key is %s, value is %s; %s, %s, %s", call->op_name,
        hob__view_text(hob_arg_view(call, 0)).text,
        hob__view_text(hob_arg_view(call, 1)).text,
        hob__view_text(hob_arg_view(call, 2)).text, name,
        hob__view_text(hob_arg_view(call, arg)).text, what);
}

/* query [.., s, d], key [.., t, d], value [.., t, e]; mask and bias broadcast
 * to SCORES, [.., s, t]. */
static hob_status check_attention(struct hob_call *call,
                                  struct hob_meta *scores)
{
    const struct hob_view *q = hob_arg_view(call, 0);
    const struct hob_view *k = hob_arg_view(call, 1);
    const struct hob_view *v = hob_arg_view(call, 2);
    uint32_t where;

    if (q->rank < 2)
        return misfit(call, "query", 0, "needs two dimensions or more");
    if (k->rank != q->rank ||
        memcmp(k->shape, q->shape, (q->rank - 2) * sizeof(q->shape[0])) != 0 ||
        k->shape[k->rank - 1] != q->shape[q->rank - 1])
        return misfit(call, "key", 1,
                      "must be query but for its length, the dimension before "
                      "the last");
    if (v->rank != q->rank ||
        memcmp(v->shape, k->shape, (q->rank - 1) * sizeof(q->shape[0])) != 0)
        return misfit(call, "value", 2,
                      "must be key but for the last dimension");
    hob__meta_copy_shape(scores, q);
    scores->dtype = q->dtype;
    scores->shape[q->rank - 1] = k->shape[k->rank - 2];
    for (uint32_t i = 3; i < 5; i++) {
        const struct hob_view *view = hob_arg_view(call, i);
        struct hob_meta both = *scores;

        if (!view)
            continue;
        if (!hob__broadcast(&both, view->shape, view->rank, &where) ||
            both.rank != scores->rank ||
            memcmp(both.shape, scores->shape,
                   scores->rank * sizeof(scores->shape[0])) != 0)
            return misfit(call, i == 3 ? "mask" : "bias", i,
                          "must broadcast to [.., length of query, length of "
                          "key]");
    }
    return HOB_OK;
}

/* Of a row's logarithm and its like: in f16 they would miss by a percent. */
static uint32_t wide_dtype(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
}

hob_status hob__infer_attention(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *q = hob_arg_view(call, 0);
    const struct hob_view *v = hob_arg_view(call, 2);
    struct hob_meta scores = {0};
    hob_status st = check_attention(call, &scores);

    if (st)
        return st;
    hob__meta_copy_shape(&out[0], q);
    out[0].shape[q->rank - 1] = v->shape[v->rank - 1];
    hob__meta_copy_shape(&out[1], q);
    out[1].shape[q->rank - 1] = 1;
    out[1].dtype = (uint8_t)wide_dtype(q->dtype);
    st = hob__infer_check(call, &out[0]);
    return st ? st : hob__infer_check(call, &out[1]);
}

/* Argument INDEX, called NAME, has a number for each row of ROW. */
static hob_status check_known(struct hob_call *call, uint32_t index,
                              const char *name, const struct hob_meta *row)
{
    const struct hob_view *view = hob_arg_view(call, index);
    const uint32_t dtype = wide_dtype(row->dtype);

    if (view->dtype != dtype)
        return call->host->fail(
            call, HOB_ERR_DTYPE, "%s: %s is %s and query is %s; %s must be %s",
            call->op_name, name, hob_dtype_name(view->dtype),
            hob_dtype_name(row->dtype), name, hob_dtype_name(dtype));
    return hob__infer_equal(call, name, view,
                            "query with a last dimension of 1", row);
}

hob_status hob__infer_attention_backward(struct hob_call *call,
                                         struct hob_meta *out)
{
    const struct hob_view *q = hob_arg_view(call, 0);
    const struct hob_view *v = hob_arg_view(call, 2);
    struct hob_meta scores = {0}, row = {0};
    hob_status st = check_attention(call, &scores);

    if (st)
        return st;
    row = scores;
    row.shape[q->rank - 1] = 1;
    st = check_known(call, 5, "lse", &row);
    if (!st)
        st = check_known(call, 6, "delta", &row);
    row.shape[q->rank - 1] = v->shape[v->rank - 1];
    if (!st)
        st = hob__infer_equal(call, "grad", hob_arg_view(call, 7),
                              "query with the last dimension of value", &row);
    if (st)
        return st;
    for (uint32_t i = 0; i < 3; i++)
        hob__meta_copy_shape(&out[i], hob_arg_view(call, i));
    out[3].dtype = HOB_DTYPE_NONE;
    if (call->args[11].u.i64) {
        out[3] = scores;
        return hob__infer_check(call, &out[3]);
    }
    return HOB_OK;
}

hob_status hob__infer_attention_delta(struct hob_call *call,
                                      struct hob_meta *out)
{
    const struct hob_view *output = hob_arg_view(call, 0);
    hob_status st;

    if (output->rank < 1)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: output is %s, which has no rows",
                                call->op_name, hob__view_text(output).text);
    hob__meta_copy_shape(out, output);
    st = hob__infer_equal(call, "grad", hob_arg_view(call, 1), "output", out);
    if (st)
        return st;
    out->shape[output->rank - 1] = 1;
    out->dtype = (uint8_t)wide_dtype(output->dtype);
    return hob__infer_check(call, out);
}

/* ---- CTC ---- */

static hob_status ctc_batch(struct hob_call *call, uint32_t blank_arg,
                            struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *targets = hob_arg_view(call, 1);
    int64_t blank = hob__attr_i64(call, blank_arg);
    hob_status st =
        hob__infer_rank(call, 0, "log_probs", 3, "[steps, batch, classes]");

    if (!st)
        st = hob__infer_rank(call, 1, "targets", 2, "[batch, length]");
    if (st)
        return st;
    for (uint32_t i = 1; i < 4; i++)
        if (hob_arg_view(call, i)->rank != (i == 1 ? 2 : 1) ||
            hob_arg_view(call, i)->shape[0] != x->shape[1])
            return call->host->fail(
                call, HOB_ERR_SHAPE,
                "%s: log_probs is %s, targets is %s, the lengths are %s and "
                "%s; the batch must have one size in all of them",
                call->op_name, hob__view_text(x).text,
                hob__view_text(targets).text,
                hob__view_text(hob_arg_view(call, 2)).text,
                hob__view_text(hob_arg_view(call, 3)).text);
    if (blank < 0 || blank >= x->shape[2])
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: blank is %" PRId64
                                "; it must be one of the %" PRId64 " classes",
                                call->op_name, blank, x->shape[2]);
    if (!x->shape[0])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: log_probs is %s: there are no steps",
                                call->op_name, hob__view_text(x).text);
    out->rank = 1;
    out->shape[0] = x->shape[1];
    return HOB_OK;
}

hob_status hob__infer_ctc_loss(struct hob_call *call, struct hob_meta *out)
{
    return ctc_batch(call, 4, out);
}

hob_status hob__infer_ctc_loss_backward(struct hob_call *call,
                                        struct hob_meta *out)
{
    struct hob_meta batch = *out;
    hob_status st = ctc_batch(call, 5, &batch);

    if (!st)
        st = hob__infer_equal(call, "grad", hob_arg_view(call, 4),
                              "ctc_loss's result", &batch);
    if (!st)
        hob__meta_copy_shape(out, hob_arg_view(call, 0));
    return st;
}

/* ---- deformable convolution ---- */

static hob_status check_size(struct hob_call *call, const char *name,
                             const struct hob_view *view, int64_t channels,
                             const struct hob_meta *out)
{
    if (view->rank == 4 && view->shape[0] == out->shape[0] &&
        view->shape[1] == channels && view->shape[2] == out->shape[2] &&
        view->shape[3] == out->shape[3])
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: %s is %s; it must be [%" PRId64 ", %" PRId64
                            ", %" PRId64 ", %" PRId64 "]",
                            call->op_name, name, hob__view_text(view).text,
                            out->shape[0], channels, out->shape[2],
                            out->shape[3]);
}

/* As conv2d, with two offsets and a weight in the mask for every tap. */
static hob_status deformed(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *w = hob_arg_view(call, 2);
    int64_t groups = hob__attr_i64(call, 8), offsets = hob__attr_i64(call, 9);
    int64_t taps;
    hob_status st = hob__infer_rank(call, 0, "x", 4, "[n, c, h, w]");

    if (!st)
        st = hob__infer_rank(call, 2, "weight", 4, "[out, c / groups, kh, kw]");
    if (st)
        return st;
    if (groups < 1 || offsets < 1 || x->shape[1] % groups ||
        w->shape[0] % groups || x->shape[1] % offsets ||
        x->shape[1] / groups != w->shape[1])
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: x is %s and weight is %s; weight_groups %" PRId64
            " must divide the channels, offset_groups %" PRId64
            " those of x, and weight's second size is x's divided by its "
            "groups",
            call->op_name, hob__view_text(x).text, hob__view_text(w).text,
            groups, offsets);
    out->rank = 4;
    out->shape[0] = x->shape[0];
    out->shape[1] = w->shape[0];
    for (uint32_t i = 0; i < 2; i++) {
        int64_t numbers[3];

        for (uint32_t k = 0; k < 3; k++) { /* stride, padding, dilation */
            uint32_t count;
            const int64_t *list = hob__attr_list(call, 5 + k, &count);

            numbers[k] = !count ? (k != 1) : list[count == 1 ? 0 : i];
            if (count > 2 || numbers[k] < (k != 1) || numbers[k] > INT32_MAX)
                return call->host->fail(
                    call, HOB_ERR_ARGUMENT,
                    "%s: stride, padding and dilation are one or two numbers, "
                    "of at least 1, padding 0; one of them is %s",
                    call->op_name, hob__list_text(list, count).text);
        }
        out->shape[2 + i] = x->shape[2 + i] + 2 * numbers[1] -
                            numbers[2] * (w->shape[2 + i] - 1) - 1;
        if (w->shape[2 + i] < 1 || w->shape[2 + i] > INT32_MAX ||
            out->shape[2 + i] < 0)
            return call->host->fail(call, HOB_ERR_SHAPE,
                                    "%s: a window of weight %s does not fit x "
                                    "%s with padding %" PRId64,
                                    call->op_name, hob__view_text(w).text,
                                    hob__view_text(x).text, numbers[1]);
        out->shape[2 + i] = out->shape[2 + i] / numbers[0] + 1;
    }
    taps = w->shape[2] * w->shape[3];
    st = check_size(call, "offset", hob_arg_view(call, 1), 2 * offsets * taps,
                    out);
    if (!st && hob_arg_view(call, 3))
        st = check_size(call, "mask", hob_arg_view(call, 3), offsets * taps,
                        out);
    return st ? st : hob__infer_check(call, out);
}

hob_status hob__infer_deform_conv2d(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *bias = hob_arg_view(call, 4);
    hob_status st = deformed(call, out);

    if (!st && bias && (bias->rank != 1 || bias->shape[0] != out->shape[1]))
        st = call->host->fail(
            call, HOB_ERR_SHAPE, "%s: bias is %s; it must be [%" PRId64 "]",
            call->op_name, hob__view_text(bias).text, out->shape[1]);
    return st;
}

hob_status hob__infer_deform_conv2d_backward(struct hob_call *call,
                                             struct hob_meta *out)
{
    struct hob_meta result = out[0];
    hob_status st = deformed(call, &result);

    if (!st)
        st = hob__infer_equal(call, "grad", hob_arg_view(call, 4),
                              "deform_conv2d's result", &result);
    for (uint32_t i = 0; i < 4 && !st; i++) {
        const struct hob_view *view = hob_arg_view(call, i);

        out[i].dtype = view ? view->dtype : HOB_DTYPE_NONE;
        if (view)
            hob__meta_copy_shape(&out[i], view);
    }
    return st;
}
