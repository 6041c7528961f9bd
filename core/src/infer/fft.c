/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fft.c - real Fourier transforms of any length.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>

/* The length of the transform: argument INDEX, else FALLBACK. */
static hob_status read_length(struct hob_call *call, uint32_t index,
                              int64_t fallback, int64_t *out)
{
    *out = call->args[index].tag == HOB_TAG_ABSENT ? fallback
                                                   : hob__attr_i64(call, index);
    if (*out >= 1 && *out <= INT32_MAX)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_RANGE,
                            "%s: the length n is %" PRId64
                            "; it must be in 1..%d",
                            call->op_name, *out, INT32_MAX);
}

hob_status hob__infer_rfft(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    uint32_t axis;
    int64_t n;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 1), x, 0, &axis);

    if (!st)
        st = read_length(call, 2, x->shape[axis], &n);
    for (uint32_t i = 0; i < 2 && !st; i++) {
        hob__meta_copy_shape(&out[i], x);
        out[i].shape[axis] = n / 2 + 1;
        st = hob__infer_check(call, &out[i]);
    }
    return st;
}

hob_status hob__infer_irfft(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *re = hob_arg_view(call, 0);
    uint32_t axis;
    int64_t n;
    hob_status st =
        hob__infer_axis(call, "dim", hob__attr_i64(call, 2), re, 0, &axis);

    if (st)
        return st;
    hob__meta_copy_shape(out, re);
    st = hob__infer_equal(call, "im", hob_arg_view(call, 1), "re", out);
    if (!st)
        st = read_length(call, 3, 2 * (re->shape[axis] - 1), &n);
    if (st)
        return st;
    out->shape[axis] = n;
    return hob__infer_check(call, out);
}
