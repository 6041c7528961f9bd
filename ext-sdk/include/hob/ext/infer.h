/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/infer.h - what the expressions of a manifest's "infer" become.
 *
 * hob-sdk gen writes an infer function of calls to these; an infer function
 * by hand may use them as well:
 *
 *     struct hob_infer in = {call, HOB_OK};
 *
 *     out[0].rank = 0;
 *     hob_infer_splice(&in, &out[0], 0, "x", 0, -1);
 *     hob_infer_push(&in, &out[0], "x[-1] + 1",
 *                    hob_infer_add(&in, hob_infer_size(&in, 0, "x", -1), 1));
 *     return in.status;
 *
 * - The first failure stays, with its message on the call; what is computed
 *   after it is 0.
 * - Integers are int64_t; a result that does not fit is a failure.
 * - ARG is the number of a flat argument, NAME its name for messages.
 * - Dimension -1 is the last one.
 */
#ifndef HOB_EXT_INFER_H
#define HOB_EXT_INFER_H

#include <hob/ext/plugin.h>

#include <stdio.h>

HOB_BEGIN_DECLS

/* Starts as {call, HOB_OK}. */
struct hob_infer {
    struct hob_call *call;
    hob_status status;
};

/* ---- integers ---- */

static inline int64_t hob_infer_overflow(struct hob_infer *in, const char *what,
                                         int64_t a, int64_t b)
{
    if (!in->status)
        in->status = in->call->host->fail(in->call, HOB_ERR_SHAPE,
                                          "%lld %s %lld is out of range",
                                          (long long)a, what, (long long)b);
    return 0;
}

static inline int64_t hob_infer_add(struct hob_infer *in, int64_t a, int64_t b)
{
    if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b))
        return hob_infer_overflow(in, "+", a, b);
    return a + b;
}

static inline int64_t hob_infer_sub(struct hob_infer *in, int64_t a, int64_t b)
{
    if ((b < 0 && a > INT64_MAX + b) || (b > 0 && a < INT64_MIN + b))
        return hob_infer_overflow(in, "-", a, b);
    return a - b;
}

static inline int64_t hob_infer_mul(struct hob_infer *in, int64_t a, int64_t b)
{
    if (a && b &&
        ((a == -1 && b == INT64_MIN) || (b == -1 && a == INT64_MIN) ||
         (a != -1 && b != -1 &&
          (a > 0 ? (b > 0 ? a > INT64_MAX / b : b < INT64_MIN / a)
                 : (b > 0 ? a < INT64_MIN / b : b < INT64_MAX / a)))))
        return hob_infer_overflow(in, "*", a, b);
    return a * b;
}

/* The quotient rounded down; the remainder that goes with it, which has B's
 * sign; the quotient rounded up. */
static inline int64_t hob_infer_div(struct hob_infer *in, int64_t a, int64_t b)
{
    if (!b || (b == -1 && a == INT64_MIN))
        return hob_infer_overflow(in, "/", a, b);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static inline int64_t hob_infer_mod(struct hob_infer *in, int64_t a, int64_t b)
{
    int64_t rest;

    if (!b)
        return hob_infer_overflow(in, "%", a, b);
    rest = b == -1 ? 0 : a % b;
    return rest && (rest < 0) != (b < 0) ? rest + b : rest;
}

static inline int64_t hob_infer_ceil_div(struct hob_infer *in, int64_t a,
                                         int64_t b)
{
    if (!b || (b == -1 && a == INT64_MIN))
        return hob_infer_overflow(in, "/", a, b);
    return a / b + (a % b != 0 && (a < 0) == (b < 0));
}

static inline int64_t hob_infer_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t hob_infer_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- arguments ---- */

static inline int hob_infer_has(const struct hob_infer *in, uint32_t arg)
{
    return in->call->args[arg].tag != HOB_TAG_ABSENT;
}

/* Argument ARG, which must be there; NULL after a failure. */
static inline const hob_value *hob_infer_value(struct hob_infer *in,
                                               uint32_t arg, const char *name)
{
    if (in->status)
        return NULL;
    if (hob_infer_has(in, arg))
        return &in->call->args[arg];
    in->status = in->call->host->fail(
        in->call, HOB_ERR_ARGUMENT,
        "argument %s is absent, and the shapes of the results depend on it",
        name);
    return NULL;
}

/* An i64, bool or enum argument. */
static inline int64_t hob_infer_i64(struct hob_infer *in, uint32_t arg,
                                    const char *name)
{
    const hob_value *value = hob_infer_value(in, arg, name);

    return value ? value->u.i64 : 0;
}

static inline double hob_infer_f64(struct hob_infer *in, uint32_t arg,
                                   const char *name)
{
    const hob_value *value = hob_infer_value(in, arg, name);

    return value ? value->u.f64 : 0;
}

/* The sizes of a tensor, or the numbers of a shape or an [i64], and how many
 * there are. */
static inline const int64_t *hob_infer_sizes(struct hob_infer *in, uint32_t arg,
                                             const char *name,
                                             int64_t *out_count)
{
    const hob_value *value = hob_infer_value(in, arg, name);
    const struct hob_view *view;

    *out_count = 0;
    if (!value)
        return NULL;
    if (value->tag == HOB_TAG_I64S) {
        *out_count = value->count;
        return value->u.i64s;
    }
    view = hob_tensor_view(value->u.tensor);
    *out_count = view->rank;
    return view->shape;
}

/* The rank of a tensor, or the length of a list. */
static inline int64_t hob_infer_rank(struct hob_infer *in, uint32_t arg,
                                     const char *name)
{
    const hob_value *value = hob_infer_value(in, arg, name);

    if (!value)
        return 0;
    return value->tag == HOB_TAG_TENSOR ? hob_tensor_view(value->u.tensor)->rank
                                        : (int64_t)value->count;
}

/* name[INDEX]: a size of a tensor, or an item of a shape or an [i64]. */
static inline int64_t hob_infer_size(struct hob_infer *in, uint32_t arg,
                                     const char *name, int64_t index)
{
    int64_t count;
    const int64_t *sizes = hob_infer_sizes(in, arg, name, &count);
    int64_t at = index < 0 ? index + count : index;

    if (in->status)
        return 0;
    if (at >= 0 && at < count)
        return sizes[at];
    in->status = in->call->host->fail(
        in->call, HOB_ERR_SHAPE, "there is no %s[%lld]: %s has %lld %s", name,
        (long long)index, name, (long long)count,
        in->call->args[arg].tag == HOB_TAG_TENSOR ? "dimensions" : "items");
    return 0;
}

/* The number of elements of a tensor. */
static inline int64_t hob_infer_count(struct hob_infer *in, uint32_t arg,
                                      const char *name)
{
    const hob_value *value = hob_infer_value(in, arg, name);

    return value ? hob_view_count(hob_tensor_view(value->u.tensor)) : 0;
}

/* The dtype of a tensor, of the first of a list, or of a dtype argument. */
static inline uint8_t hob_infer_dtype(struct hob_infer *in, uint32_t arg,
                                      const char *name)
{
    const hob_value *value = hob_infer_value(in, arg, name);

    if (!value)
        return HOB_DTYPE_NONE;
    if (value->tag == HOB_TAG_TENSOR)
        return hob_tensor_view(value->u.tensor)->dtype;
    if (value->tag != HOB_TAG_TENSORS)
        return (uint8_t)value->u.i64;
    return value->count ? hob_tensor_view(value->u.tensors[0])->dtype
                        : (uint8_t)HOB_DTYPE_NONE;
}

/* ---- conditions and shapes ---- */

/* The shapes of the tensors of a call, as in "[2,3], [4], -". */
static inline void hob_infer_shapes(const struct hob_call *call, char *text,
                                    size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t i = 0; i < call->arg_count && used + 48 < size; i++) {
        const hob_value *arg = &call->args[i];
        const struct hob_view *view;

        if (arg->tag != HOB_TAG_TENSOR)
            continue;
        view = hob_tensor_view(arg->u.tensor);
        used +=
            (size_t)snprintf(text + used, size - used, "%s[", used ? ", " : "");
        for (uint32_t d = 0; d < view->rank && used + 32 < size; d++)
            used += (size_t)snprintf(text + used, size - used, "%s%lld",
                                     d ? "," : "", (long long)view->shape[d]);
        used += (size_t)snprintf(text + used, size - used, "]");
    }
}

static inline void hob_infer_where(struct hob_infer *in, int holds,
                                   const char *message)
{
    char shapes[256];

    if (in->status || holds)
        return;
    hob_infer_shapes(in->call, shapes, sizeof(shapes));
    in->status = in->call->host->fail(
        in->call, HOB_ERR_SHAPE, shapes[0] ? "%s; the shapes are %s" : "%s%s",
        message, shapes);
}

/* One more dimension of OUT; TEXT is how its size was computed. */
static inline void hob_infer_push(struct hob_infer *in, struct hob_meta *out,
                                  const char *text, int64_t size)
{
    if (in->status)
        return;
    if (size < 0)
        in->status = in->call->host->fail(in->call, HOB_ERR_SHAPE,
                                          "%s is %lld, no size of a dimension",
                                          text, (long long)size);
    else if (out->rank == HOB_MAX_RANK)
        in->status = in->call->host->fail(
            in->call, HOB_ERR_SHAPE,
            "a result would have more than %d dimensions", (int)HOB_MAX_RANK);
    else
        out->shape[out->rank++] = size;
}

/* name[FIRST:LAST]: those dimensions of ARG, or items, one after the other.
 * Negative ends count from the last; INT64_MAX is the end. */
static inline void hob_infer_splice(struct hob_infer *in, struct hob_meta *out,
                                    uint32_t arg, const char *name,
                                    int64_t first, int64_t last)
{
    int64_t count;
    const int64_t *sizes = hob_infer_sizes(in, arg, name, &count);

    if (in->status)
        return;
    first += first < 0 ? count : 0;
    last = last == INT64_MAX ? count : last < 0 ? last + count : last;
    if (first < 0 || last > count || first > last) {
        in->status = in->call->host->fail(
            in->call, HOB_ERR_SHAPE,
            "%s[%lld:%lld] is asked for, but %s has %lld %s", name,
            (long long)first, (long long)last, name, (long long)count,
            in->call->args[arg].tag == HOB_TAG_TENSOR ? "dimensions" : "items");
        return;
    }
    for (int64_t i = first; i < last; i++)
        hob_infer_push(in, out, name, sizes[i]);
}

/* Broadcast OUT with tensor ARG; one that is absent changes nothing. */
static inline void hob_infer_broadcast(struct hob_infer *in,
                                       struct hob_meta *out, uint32_t arg,
                                       const char *name)
{
    const struct hob_view *view = hob_arg_view(in->call, arg);
    int64_t shape[HOB_MAX_RANK];
    uint32_t rank;

    if (in->status || !view)
        return;
    rank = view->rank > out->rank ? view->rank : out->rank;
    for (uint32_t i = 0; i < rank; i++) { /* from the last dimension */
        int64_t a = i < out->rank ? out->shape[out->rank - 1 - i] : 1;
        int64_t b = i < view->rank ? view->shape[view->rank - 1 - i] : 1;

        if (a != b && a != 1 && b != 1) {
            in->status = in->call->host->fail(
                in->call, HOB_ERR_SHAPE,
                "%s does not broadcast: %lld and %lld in dimension -%u", name,
                (long long)a, (long long)b, (unsigned)i + 1);
            return;
        }
        shape[rank - 1 - i] = a == 1 ? b : a;
    }
    out->rank = (uint8_t)rank;
    for (uint32_t i = 0; i < rank; i++)
        out->shape[i] = shape[i];
}

HOB_END_DECLS

#endif
