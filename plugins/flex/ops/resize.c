/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - interpolate, adaptive_avg_pool and their gradients: planes
 * resized along both axes, each by sums of few elements.
 *
 * What makes a plane higher resizes its rows first, each once, and keeps those
 * that the next result still needs; else the rows are blended first.
 */
#include "resize.h"

#include "../sample.h"
#include "../wide.h"

#include <inttypes.h>

enum { AHEAD_BYTES = 2048 };

struct resize {
    struct flex_device *device;
    const struct flex_sample_kernels *kernels;
    struct flex_resize_axis axes[2]; /* of the height, of the width */
    const char *in;
    char *out;
    int64_t planes;
    int64_t band; /* rows of results that are made in one go */
    int64_t bands;
    int64_t line; /* elements of a row that is kept */
    int is_wide_first;
    int64_t slots;           /* rows that are kept */
    int64_t in_bytes, ahead; /* of all planes; how far to read ahead */
    uint64_t scratch_bytes;
    uint32_t size; /* of an element */
    int32_t failed;
};

/* What one piece of the work has for itself. */
struct bench {
    const void **rows;
    void *weights;
    int64_t *held; /* which row a slot holds, -1 for none */
    char *lines;   /* slots of them */
};

static struct bench lay_bench(const struct resize *r, char *memory)
{
    const int64_t taps = r->axes[0].taps + 1;
    struct bench bench;

    bench.rows = (const void **)(void *)memory;
    bench.weights = memory + taps * 8;
    bench.held = (int64_t *)(void *)(memory + taps * 16);
    bench.lines = memory + taps * 16 + r->slots * 8;
    return bench;
}

/* Row ROW of PLANE. It and what little is done with it are too short for the
 * processor to see that later rows follow: they are asked for here. */
static const char *row_of(const struct resize *r, int64_t plane, int64_t row)
{
    const int64_t bytes = r->axes[1].in * r->size;
    const int64_t at = (plane * r->axes[0].in + row) * bytes;
    const int64_t first = at + r->ahead, last = first + bytes;

    for (int64_t i = first; i < last && i < r->in_bytes; i += 64)
        __builtin_prefetch(r->in + i);
    return r->in + at;
}

/* Row ROW of PLANE with the result's width. */
static const void *wide_row(const struct resize *r, struct bench *bench,
                            int64_t plane, int64_t row)
{
    const struct flex_resize_axis *w = &r->axes[1];
    const int64_t slot = row % r->slots;
    char *line = bench->lines + slot * r->line * r->size;

    if (w->is_same)
        return row_of(r, plane, row);
    if (bench->held[slot] != row) {
        r->kernels->pick(line, row_of(r, plane, row), w->at, w->weights, w->out,
                         w->taps, w->out);
        bench->held[slot] = row;
    }
    return line;
}

/* The rows that result Y blends and their weights; returns their number. */
static int64_t find_rows(const struct resize *r, struct bench *bench,
                         int64_t plane, int64_t y)
{
    const struct flex_resize_axis *h = &r->axes[0];
    int64_t count = 0;

    for (int64_t k = 0; k < h->taps; k++) {
        const int64_t slot = k * h->out + y, row = h->at[slot];
        double value;

        if (r->size == 8) {
            value = ((const double *)h->weights)[slot];
            ((double *)bench->weights)[count] = value;
        } else {
            value = (double)((const float *)h->weights)[slot];
            ((float *)bench->weights)[count] = (float)value;
        }
        if (value == 0)
            continue;
        bench->rows[count++] = r->is_wide_first ? wide_row(r, bench, plane, row)
                                                : row_of(r, plane, row);
    }
    return count;
}

static void make_band(const struct resize *r, struct bench *bench,
                      int64_t plane, int64_t first, int64_t last)
{
    const struct flex_resize_axis *h = &r->axes[0], *w = &r->axes[1];
    const int is_blended = r->is_wide_first || w->is_same;

    for (int64_t i = 0; i < r->slots; i++)
        bench->held[i] = -1;
    for (int64_t y = first; y < last; y++) {
        const int64_t count = find_rows(r, bench, plane, y);
        char *out = r->out + (plane * h->out + y) * w->out * r->size;

        if (is_blended) {
            r->kernels->blend(out, bench->rows, bench->weights, count, w->out);
            continue;
        }
        if (!h->is_same)
            r->kernels->blend(bench->lines, bench->rows, bench->weights, count,
                              w->in);
        r->kernels->pick(out, h->is_same ? bench->rows[0] : bench->lines, w->at,
                         w->weights, w->out, w->taps, w->out);
    }
}

static void resize_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    struct resize *r = context;
    char *memory = flex_scratch_take(r->device, r->scratch_bytes);
    struct bench bench;

    (void)worker;
    if (!memory) {
        __atomic_store_n(&r->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    bench = lay_bench(r, memory);
    for (int64_t i = first; i < last; i++) {
        const int64_t from = i % r->bands * r->band, to = from + r->band;

        make_band(r, &bench, i / r->bands, from,
                  to < r->axes[0].out ? to : r->axes[0].out);
    }
    flex_scratch_give(r->device, memory, r->scratch_bytes);
}

/* How the work is split, and what a piece needs: by sizes alone. */
static int64_t plan(struct resize *r)
{
    const struct flex_resize_axis *h = &r->axes[0], *w = &r->axes[1];
    const int64_t row_work =
        w->out * (h->taps + w->taps) + h->taps * w->in * (h->out < h->in);
    int64_t most = FLEX_GRAIN_DEAR * 4 / (row_work + 1) + 1;

    r->is_wide_first = h->out > h->in;
    r->line = r->is_wide_first ? w->out : w->in;
    r->slots = r->is_wide_first ? h->span : 1;
    r->ahead = w->in * r->size;
    r->ahead *= 1 + AHEAD_BYTES / r->ahead;
    /* A band begins with rows that the one before has made too. */
    most = most < 8 * h->span && r->is_wide_first ? 8 * h->span : most;
    r->band = most < h->out ? most : h->out;
    r->bands = (h->out + r->band - 1) / r->band;
    r->scratch_bytes =
        (uint64_t)((h->taps + 1) * 16 + r->slots * (8 + r->line * r->size));
    return FLEX_GRAIN_DEAR * 4 / (row_work * r->band + 1) + 1;
}

/* X's planes, which OUT has too, resized by RULES for height and width. */
static hob_status resize(struct flex_device *device, struct hob_call *call,
                         const struct flex_resize_rule *rules,
                         int is_transposed)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct resize r = {.device = device,
                       .kernels = flex_sample_kernels(device, x->dtype),
                       .size = x->dtype == HOB_DTYPE_F64 ? 8 : 4};
    struct flex_wide source = {0}, result = {0};
    hob_status st = HOB_OK;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    for (uint32_t i = 0; i < 2 && !st; i++)
        st = flex_resize_axis_make(device, &rules[i], is_transposed, r.size,
                                   &r.axes[i]);
    if (!st)
        st = flex_wide_read(device, x, &source);
    if (!st)
        st = flex_wide_begin(device, out, &result);
    if (!st) {
        const int64_t grain = plan(&r);

        r.in_bytes = hob_view_count(x) * r.size;
        r.planes = hob_view_count(out) / r.axes[0].out / r.axes[1].out;
        r.in = source.data;
        r.out = result.data;
        flex_parallel(device, r.planes * r.bands, grain, resize_range, &r);
        flex_wide_finish(device, out, &result);
    }
    flex_wide_release(device, &source);
    flex_wide_release(device, &result);
    for (uint32_t i = 0; i < 2; i++)
        flex_resize_axis_release(device, &r.axes[i]);
    if (st || r.failed)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for a result of %" PRId64
                                " elements",
                                call->op_name, hob_view_count(out));
    return HOB_OK;
}

/* Between LOW, whose planes the op makes or made smaller or larger to HIGH. */
static hob_status interpolate_with(void *device, struct hob_call *call,
                                   const struct hob_view *in,
                                   const struct hob_view *out, int is_backward)
{
    struct flex_resize_rule rules[2];

    for (uint32_t i = 0; i < 2; i++)
        rules[i] = (struct flex_resize_rule){
            .mode = (enum flex_resize_mode)flex_arg_i64(call, 2),
            .align_corners = flex_arg_i64(call, 3) != 0,
            .in = in->shape[2 + i],
            .out = out->shape[2 + i]};
    return resize(device, call, rules, is_backward);
}

static hob_status interpolate(void *device, struct hob_call *call)
{
    return interpolate_with(device, call, hob_arg_view(call, 0),
                            hob_ret_view(call, 0), 0);
}

static hob_status interpolate_backward(void *device, struct hob_call *call)
{
    return interpolate_with(device, call, hob_ret_view(call, 0),
                            hob_arg_view(call, 0), 1);
}

/* One or two pooled dimensions; what is not pooled is a plane of its own. */
static hob_status pool_with(void *device, struct hob_call *call,
                            const struct hob_view *in,
                            const struct hob_view *out, int is_backward)
{
    const uint32_t count = call->args[1].count;
    struct flex_resize_rule rules[2] = {
        {.mode = FLEX_RESIZE_AVERAGE, .in = 1, .out = 1},
        {.mode = FLEX_RESIZE_AVERAGE}};

    for (uint32_t i = 2 - count; i < 2; i++) {
        rules[i].mode = FLEX_RESIZE_AVERAGE;
        rules[i].in = in->shape[in->rank - 2 + i];
        rules[i].out = out->shape[in->rank - 2 + i];
        if (!rules[i].out || !rules[i].in)
            return HOB_OK; /* nothing is made, by infer's rules */
    }
    return resize(device, call, rules, is_backward);
}

static hob_status adaptive_avg_pool(void *device, struct hob_call *call)
{
    return pool_with(device, call, hob_arg_view(call, 0), hob_ret_view(call, 0),
                     0);
}

static hob_status adaptive_avg_pool_backward(void *device,
                                             struct hob_call *call)
{
    return pool_with(device, call, hob_ret_view(call, 0), hob_arg_view(call, 0),
                     1);
}

/* Positions along an axis are 32-bit; three dimensions are the body's. */
static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const hob_value *sizes = &call->args[1];

    (void)device;
    (void)out;
    if (sizes->count > 2 || x->rank < sizes->count)
        return HOB_ERR_UNSUPPORTED;
    for (uint32_t i = 0; i < sizes->count; i++) {
        const int64_t size = x->shape[x->rank - sizes->count + i];

        if (size > INT32_MAX || sizes->u.i64s[i] > INT32_MAX || !size ||
            !sizes->u.i64s[i])
            return HOB_ERR_UNSUPPORTED;
    }
    return HOB_OK;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "interpolate",
        .signature =
            "(x: Float, output_size: [i64], mode: enum(nearest, nearest_exact, "
            "bilinear, bicubic, lanczos3) = nearest, "
            "align_corners: bool = true) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .prepare = prepare,
        .execute = interpolate,
    },
    {
        .op = "interpolate_backward",
        .signature = "(grad: Float, input_size: [i64], mode: enum(nearest, "
                     "nearest_exact, bilinear, bicubic, lanczos3) = nearest, "
                     "align_corners: bool = true) -> grad",
        .dtypes = masks,
        .dtype_count = 1,
        .prepare = prepare,
        .execute = interpolate_backward,
    },
    {
        .op = "adaptive_avg_pool",
        .signature = "(x: Float, output_size: [i64]) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .prepare = prepare,
        .execute = adaptive_avg_pool,
    },
    {
        .op = "adaptive_avg_pool_backward",
        .signature = "(grad: Float, input_size: [i64]) -> grad",
        .dtypes = masks,
        .dtype_count = 1,
        .prepare = prepare,
        .execute = adaptive_avg_pool_backward,
    },
};

const struct flex_entries flex_resize_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
