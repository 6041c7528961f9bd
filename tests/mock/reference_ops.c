/* SPDX-License-Identifier: Apache-2.0 */
#include "reference_backend.h"
#include "reference_numbers.h"
#include "reference_places.h"

#include <hob/ops.h>
#include <hob/philox.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- creation ---- */

hob_status reference_full(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct number value = number_scalar(&call->args[1], out->dtype);
    int64_t count = hob_view_count(out);

    (void)device;
    for (int64_t i = 0; i < count; i++)
        number_store(out, i, value);
    return HOB_OK;
}

hob_status reference_arange(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    uint64_t start = call->args[0].u.u64, step = call->args[2].u.u64;

    (void)device;
    for (int64_t i = 0; i < out->shape[0]; i++) {
        struct number value = {0, start + (uint64_t)i * step};
        number_store(out, i, number_cast(value, HOB_DTYPE_I64, out->dtype));
    }
    return HOB_OK;
}

/* Uniform draws of floats and Bernoulli draws, as docs/RANDOM.md has them;
 * normal ones from two words each, which is another stream than theirs. */
hob_status reference_random(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    uint64_t seed = call->args[call->arg_count - 2].u.u64;
    uint64_t offset = call->args[call->arg_count - 1].u.u64;
    double a = call->args[1].u.f64, b = call->args[2].u.f64;
    int wide =
        out->dtype == HOB_DTYPE_F64 && call->op != HOB_OP_RANDOM_BERNOULLI;
    int64_t count = hob_view_count(out);

    (void)device;
    for (int64_t i = 0; i < count; i++) {
        int64_t each = wide ? 2 : 4, at = i % each * (4 / each);
        uint32_t words[4];
        struct number value = {0, 0};
        double u, v;
        hob_philox_block(seed, offset + (uint64_t)(i / each), words);
        u = wide ? hob_philox_f64(words[at], words[at + 1])
                 : (double)hob_philox_f32(words[at]);
        v = (double)words[(at + 2) % 4] * 0x1p-32;
        if (call->op == HOB_OP_RANDOM_BERNOULLI)
            value.f = (double)words[at] * 0x1p-32 < a;
        else if (call->op == HOB_OP_RANDOM_UNIFORM)
            value.f = a + u * (b - a);
        else
            value.f = a + b * sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
        number_store(out, i, number_cast(value, HOB_DTYPE_F64, out->dtype));
    }
    return HOB_OK;
}

/* ---- along a dimension ---- */

/* The offset of element AT of line LINE along AXIS. */
static int64_t line_offset(const struct hob_view *view, uint32_t axis,
                           int64_t line, int64_t at)
{
    int64_t offset = at * view->strides[axis];

    for (uint32_t i = view->rank; i-- > 0;) {
        if (i == axis)
            continue;
        offset += line % view->shape[i] * view->strides[i];
        line /= view->shape[i];
    }
    return offset;
}

static int64_t line_count(const struct hob_view *view, uint32_t axis)
{
    int64_t count = 1;

    for (uint32_t i = 0; i < view->rank; i++)
        count *= i == axis ? 1 : view->shape[i];
    return count;
}

/* sum_dim, prod_dim, cumsum, cumprod. */
hob_status reference_fold(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    uint32_t axis = place_axis(x, call->args[1].u.i64);
    int adds = call->op == HOB_OP_SUM_DIM || call->op == HOB_OP_CUMSUM;
    int runs = call->op == HOB_OP_CUMSUM || call->op == HOB_OP_CUMPROD;
    int64_t lines = line_count(x, axis);

    (void)device;
    for (int64_t line = 0; line < lines; line++) {
        struct number total = {adds ? 0 : 1, adds ? 0 : 1};
        for (int64_t i = 0; i < x->shape[axis]; i++) {
            struct number y = number_load(x, line_offset(x, axis, line, i));
            total.f = adds ? total.f + y.f : total.f * y.f;
            total.u = adds ? total.u + y.u : total.u * y.u;
            if (runs)
                number_store(out, line_offset(out, axis, line, i), total);
        }
        if (!runs)
            number_store(out, line_offset(out, axis, line, 0), total);
    }
    return HOB_OK;
}

hob_status reference_argmax(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    uint32_t axis = place_axis(x, call->args[1].u.i64);
    int64_t lines = line_count(x, axis);

    (void)device;
    for (int64_t line = 0; line < lines; line++) {
        struct number most = number_load(x, line_offset(x, axis, line, 0));
        struct number best = {0, 0};
        for (int64_t i = 1; i < x->shape[axis] && !isnan(most.f); i++) {
            struct number y = number_load(x, line_offset(x, axis, line, i));
            /* Greater, or the first NaN. */
            if (isnan(y.f) || number_compare(y, most, x->dtype) == 1) {
                most = y;
                best.u = (uint64_t)i;
            }
        }
        number_store(out, line_offset(out, axis, line, 0), best);
    }
    return HOB_OK;
}

/* Whether A comes before B: NaN last when ascending, first otherwise. */
static int comes_before(struct number a, struct number b, uint32_t dtype,
                        int descending)
{
    if (isnan(a.f) || isnan(b.f))
        return descending ? isnan(a.f) && !isnan(b.f)
                          : !isnan(a.f) && isnan(b.f);
    return number_compare(a, b, dtype) == (descending ? 1 : -1);
}

/* By insertion, which keeps the order of equal elements. */
hob_status reference_sort(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *values = hob_ret_view(call, 0);
    const struct hob_view *indices = hob_ret_view(call, 1);
    uint32_t axis = place_axis(x, call->args[1].u.i64);
    int descending = call->args[2].u.i64 != 0;
    int64_t lines = line_count(x, axis);

    (void)device;
    for (int64_t line = 0; line < lines; line++)
        for (int64_t i = 0; i < x->shape[axis]; i++) {
            struct number y = number_load(x, line_offset(x, axis, line, i));
            struct number from = {0, (uint64_t)i};
            int64_t at = i;
            for (; at > 0; at--) {
                int64_t back = line_offset(values, axis, line, at - 1);
                struct number z = number_load(values, back);
                if (!comes_before(y, z, x->dtype, descending))
                    break;
                number_store(values, line_offset(values, axis, line, at), z);
                back = line_offset(indices, axis, line, at - 1);
                number_store(indices, line_offset(indices, axis, line, at),
                             number_load(indices, back));
            }
            number_store(values, line_offset(values, axis, line, at), y);
            number_store(indices, line_offset(indices, axis, line, at), from);
        }
    return HOB_OK;
}

/* ---- products ---- */

hob_status reference_matmul(void *device, struct hob_call *call)
{
    const struct hob_view *lhs = hob_arg_view(call, 0);
    const struct hob_view *rhs = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    uint32_t row = lhs->rank - 2u, column = rhs->rank - 1u;
    int64_t count = hob_view_count(out), index[HOB_MAX_RANK];

    (void)device;
    for (int64_t i = 0; i < count; i++) {
        int64_t a = 0, b = 0;
        struct number total = {0, 0};
        place_index(out, i, index);
        for (uint32_t k = 0; k < row; k++)
            if (lhs->shape[k] != 1)
                a += index[out->rank - lhs->rank + k] * lhs->strides[k];
        for (uint32_t k = 0; k + 1 < column; k++)
            if (rhs->shape[k] != 1)
                b += index[out->rank - rhs->rank + k] * rhs->strides[k];
        a += index[out->rank - 2] * lhs->strides[row];
        b += index[out->rank - 1] * rhs->strides[column];
        for (int64_t k = 0; k < lhs->shape[row + 1]; k++) {
            struct number x = number_load(lhs, a + k * lhs->strides[row + 1]);
            struct number y =
                number_load(rhs, b + k * rhs->strides[column - 1]);
            total.f += x.f * y.f;
            total.u += x.u * y.u;
        }
        number_store(out, i, total);
    }
    return HOB_OK;
}

/* ---- positions ---- */

static void copy_elements(const struct hob_view *from,
                          const struct hob_view *to)
{
    int64_t count = hob_view_count(to);

    for (int64_t i = 0; i < count; i++)
        number_store(to, place_flat(to, i),
                     number_load(from, place_flat(from, i)));
}

/* Position AT of a slice of SIZE elements, by the rules of slice's text. */
static int64_t slice_position(const struct hob_call *call, uint32_t axis,
                              int64_t size, int64_t at)
{
    int64_t low, high, step = 1;

    if (axis >= call->args[2].count)
        return at;
    low = call->args[2].u.i64s[axis];
    high = call->args[3].u.i64s[axis];
    if (call->args[4].tag == HOB_TAG_I64S && call->args[4].count)
        step = call->args[4].u.i64s[axis];
    if (low < 0)
        low += size;
    if (high < 0)
        high += size;
    if (low < 0)
        low = 0;
    if (high > size)
        high = size;
    return (step > 0 ? low : high - 1) + at * step;
}

hob_status reference_slice_assign(void *device, struct hob_call *call)
{
    const struct hob_view *value = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    int64_t count = hob_view_count(value), index[HOB_MAX_RANK];

    (void)device;
    copy_elements(hob_arg_view(call, 0), out);
    for (int64_t i = 0; i < count; i++) {
        place_index(value, i, index);
        for (uint32_t k = 0; k < out->rank; k++)
            index[k] = slice_position(call, k, out->shape[k], index[k]);
        number_store(out, place_offset(out, index, out->rank),
                     number_load(value, place_flat(value, i)));
    }
    return HOB_OK;
}

/*
 * Put the position that INDICES hold at INDEX into its place AXIS. Negative
 * ones do not count from the end.
 */
static hob_status follow(struct hob_call *call, const struct hob_view *indices,
                         uint32_t axis, int64_t size, int64_t *index)
{
    int64_t offset = 0, at;

    for (uint32_t i = 0; i < indices->rank; i++)
        offset += index[i] * indices->strides[i];
    at = (int64_t)number_load(indices, offset).u;
    if (at < 0 || at >= size)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: index %lld is not below %lld",
                                call->op_name, (long long)at, (long long)size);
    index[axis] = at;
    return HOB_OK;
}

hob_status reference_gather(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *indices = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    uint32_t axis = place_axis(x, call->args[2].u.i64);
    int64_t count = hob_view_count(out), index[HOB_MAX_RANK];

    (void)device;
    for (int64_t i = 0; i < count; i++) {
        hob_status st;
        int64_t offset = 0;
        place_index(out, i, index);
        st = follow(call, indices, axis, x->shape[axis], index);
        if (st)
            return st;
        for (uint32_t k = 0; k < x->rank; k++)
            offset += index[k] * x->strides[k];
        number_store(out, place_flat(out, i), number_load(x, offset));
    }
    return HOB_OK;
}

/* In double and rounded once an addition, as a loop in the dtype would. */
hob_status reference_scatter_add(void *device, struct hob_call *call)
{
    const struct hob_view *indices = hob_arg_view(call, 1);
    const struct hob_view *value = hob_arg_view(call, 2);
    const struct hob_view *out = hob_ret_view(call, 0);
    uint32_t axis = place_axis(out, call->args[3].u.i64);
    int64_t count = hob_view_count(value), index[HOB_MAX_RANK];

    (void)device;
    copy_elements(hob_arg_view(call, 0), out);
    for (int64_t i = 0; i < count; i++) {
        struct number x, y = number_load(value, place_flat(value, i));
        int64_t offset = 0;
        hob_status st;
        place_index(value, i, index);
        st = follow(call, indices, axis, out->shape[axis], index);
        if (st)
            return st;
        for (uint32_t k = 0; k < out->rank; k++)
            offset += index[k] * out->strides[k];
        x = number_load(out, offset);
        x.f += y.f;
        x.u += y.u;
        number_store(out, offset, x);
    }
    return HOB_OK;
}

hob_status reference_mask_select(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *mask = hob_arg_view(call, 1);
    const struct hob_view *out;
    int64_t count = hob_view_count(x), chosen = 0, index[HOB_MAX_RANK];
    struct hob_meta meta;
    hob_status st;

    (void)device;
    for (int64_t i = 0; i < count; i++) {
        place_index(x, i, index);
        chosen += number_load(mask, place_offset(mask, index, x->rank)).u != 0;
    }
    memset(&meta, 0, sizeof(meta));
    meta.dtype = x->dtype;
    meta.rank = 1;
    meta.shape[0] = chosen;
    st = call->host->result(call, 0, &meta);
    if (st)
        return st;
    out = hob_ret_view(call, 0);
    chosen = 0;
    for (int64_t i = 0; i < count; i++) {
        place_index(x, i, index);
        if (number_load(mask, place_offset(mask, index, x->rank)).u)
            number_store(out, chosen++,
                         number_load(x, place_offset(x, index, x->rank)));
    }
    return HOB_OK;
}
