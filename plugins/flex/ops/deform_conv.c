/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deform_conv.c - deformable convolution (Zhu et al., arXiv:1811.11168) and
 * its gradients: columns of what the moved taps read, times the weight.
 *
 * Where a tap reads is found for a block of windows at a time, once for all
 * channels that share the offsets.
 */
#include "../sample.h"
#include "../wide.h"
#include "../window.h"

#include <inttypes.h>
#include <string.h>

enum {
    BLOCK = 256, /* windows at a time */
    CORNERS = 4,
    CHUNK = 2 * BLOCK, /* windows whose columns are in memory */
    PARTS = 8          /* shares of the samples in the weight's gradient */
};

enum { X, OFFSET, WEIGHT, MASK, GRAD, ARGS };

struct deform {
    struct flex_device *device;
    const struct flex_sample_kernels *kernels;
    struct flex_window window;
    struct flex_sample_plane plane;
    const char *args[ARGS]; /* by number; NULL for no mask, and so on */
    const char *bias;
    char *out;                                /* of the forward call */
    char *d_x, *d_offset, *d_weight, *d_mask; /* d_weight: one for each part */
    int64_t n, c, area, out_channels;
    int64_t taps, windows;
    int64_t weight_groups, offset_groups;
    int64_t chunks, parts;
    uint32_t dtype; /* computed in */
    uint32_t size;
    int32_t failed;
};

struct tables {
    _Alignas(64) int32_t at[CORNERS * BLOCK];
    _Alignas(64) double weights[CORNERS * BLOCK]; /* of the computing type */
    _Alignas(64) double slopes[2][CORNERS * BLOCK];
    _Alignas(64) double places[2][BLOCK]; /* rows, columns */
    _Alignas(64) double read[BLOCK];
    _Alignas(64) double sums[3][BLOCK]; /* for y, x, mask */
    struct flex_sample_places out;
};

static void tables_init(struct tables *t, int with_slopes)
{
    t->out.at = t->at;
    t->out.weights = t->weights;
    t->out.slopes[0] = with_slopes ? t->slopes[0] : NULL;
    t->out.slopes[1] = with_slopes ? t->slopes[1] : NULL;
    t->out.stride = BLOCK;
}

static void store(const struct deform *d, void *out, int64_t i, double value)
{
    if (d->size == 8)
        ((double *)out)[i] = value;
    else
        ((float *)out)[i] = (float)value;
}

/* Bytes from the start of OFFSET (its y is AXIS 0) or of MASK to window FIRST
 * of TAP of GROUP. */
static int64_t offset_at(const struct deform *d, int64_t n, int64_t group,
                         int64_t tap, int axis, int64_t first)
{
    const int64_t plane =
        ((n * d->offset_groups + group) * d->taps + tap) * 2 + axis;

    return (plane * d->windows + first) * d->size;
}

static int64_t mask_at(const struct deform *d, int64_t n, int64_t group,
                       int64_t tap, int64_t first)
{
    const int64_t plane = (n * d->offset_groups + group) * d->taps + tap;

    return (plane * d->windows + first) * d->size;
}

static const char *plane_at(const struct deform *d, int64_t n, int64_t c)
{
    return d->args[X] + (n * d->c + c) * d->area * d->size;
}

/* Where TAP reads in COUNT windows from FIRST on. */
static void find(const struct deform *d, struct tables *t, int64_t n,
                 int64_t group, int64_t tap, int64_t first, int64_t count)
{
    const struct flex_window *w = &d->window;
    const int64_t of_tap[2] = {tap / w->size[1], tap % w->size[1]};
    int64_t of_window[2] = {first / w->out[1], first % w->out[1]};

    for (int64_t i = 0; i < count; i++) {
        for (int axis = 0; axis < 2; axis++)
            store(d, t->places[axis], i,
                  (double)(of_window[axis] * w->stride[axis] -
                           w->padding[axis] +
                           of_tap[axis] * w->dilation[axis]));
        if (++of_window[1] == w->out[1]) {
            of_window[1] = 0;
            of_window[0]++;
        }
    }
    for (int axis = 0; axis < 2; axis++)
        d->kernels->add(
            t->places[axis], t->places[axis],
            d->args[OFFSET] + offset_at(d, n, group, tap, axis, first), count);
    d->kernels->corners(&t->out, &d->plane, t->places[0], t->places[1], count);
}

/* The weights become those of masked elements. */
static void weigh_by_mask(const struct deform *d, struct tables *t, int64_t n,
                          int64_t group, int64_t tap, int64_t first,
                          int64_t count)
{
    if (!d->args[MASK])
        return;
    for (int k = 0; k < CORNERS; k++)
        d->kernels->scale((char *)t->weights + (int64_t)k * BLOCK * d->size,
                          d->args[MASK] + mask_at(d, n, group, tap, first),
                          count);
}

/* COLUMNS [c * taps, windows FIRST .. LAST - 1] of sample N. */
static void fill_columns(const struct deform *d, struct tables *t, int64_t n,
                         int64_t first, int64_t last, char *columns)
{
    const int64_t channels = d->c / d->offset_groups, width = last - first;

    for (int64_t i = 0; i < d->offset_groups * d->taps; i++) {
        const int64_t group = i / d->taps, tap = i % d->taps;

        for (int64_t at = first; at < last; at += BLOCK) {
            const int64_t count = last - at < BLOCK ? last - at : BLOCK;

            find(d, t, n, group, tap, at, count);
            weigh_by_mask(d, t, n, group, tap, at, count);
            for (int64_t c = group * channels; c < (group + 1) * channels; c++)
                d->kernels->pick(
                    columns +
                        ((c * d->taps + tap) * width + at - first) * d->size,
                    plane_at(d, n, c), t->at, t->weights, BLOCK, CORNERS,
                    count);
        }
    }
}

static void multiply(struct deform *d, struct flex_gemm *gemm)
{
    gemm->struct_size = sizeof(*gemm);
    gemm->dtype = d->dtype;
    gemm->alpha = 1;
    if (flex_gemm(d->device, gemm))
        __atomic_store_n(&d->failed, 1, __ATOMIC_RELAXED);
}

static int64_t rows_of_group(const struct deform *d)
{
    return d->c / d->weight_groups * d->taps;
}

/* Row CHANNEL of sample N's result or its gradient from window FIRST on. */
static int64_t result_at(const struct deform *d, int64_t n, int64_t channel,
                         int64_t first)
{
    return ((n * d->out_channels + channel) * d->windows + first) * d->size;
}

static void add_bias(const struct deform *d, int64_t n, int64_t first,
                     int64_t last)
{
    for (int64_t c = 0; c < d->out_channels; c++) {
        char *row = d->out + result_at(d, n, c, first);
        const double value =
            d->size == 8 ? ((const double *)(const void *)d->bias)[c]
                         : (double)((const float *)(const void *)d->bias)[c];

        for (int64_t i = 0; i < last - first; i++)
            store(d, row, i, value);
    }
}

static uint64_t column_bytes(const struct deform *d)
{
    return (uint64_t)(d->c * d->taps * CHUNK * d->size);
}

static void forward_range(void *context, int64_t from, int64_t to,
                          uint32_t worker)
{
    struct deform *d = context;
    char *columns = flex_scratch_take(d->device, column_bytes(d));
    const int64_t rows = rows_of_group(d);
    const int64_t outs = d->out_channels / d->weight_groups;
    struct tables t;

    (void)worker;
    if (!columns) {
        __atomic_store_n(&d->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    tables_init(&t, 0);
    for (int64_t i = from; i < to; i++) {
        const int64_t n = i / d->chunks, first = i % d->chunks * CHUNK;
        const int64_t last =
            d->windows - first < CHUNK ? d->windows : first + CHUNK;

        fill_columns(d, &t, n, first, last, columns);
        if (d->bias)
            add_bias(d, n, first, last);
        for (int64_t g = 0; g < d->weight_groups; g++) {
            struct flex_gemm gemm = {
                .m = outs,
                .n = last - first,
                .k = rows,
                .a = d->args[WEIGHT] + g * outs * rows * d->size,
                .a_row = rows,
                .a_column = 1,
                .b = columns + g * rows * (last - first) * d->size,
                .b_row = last - first,
                .b_column = 1,
                .c = d->out + result_at(d, n, g * outs, first),
                .ldc = d->windows,
                .beta = d->bias ? 1 : 0};

            multiply(d, &gemm);
        }
    }
    flex_scratch_give(d->device, columns, column_bytes(d));
}

/* ---- gradients ---- */

/* The weight's gradient, summed in PART: grad times the columns turned. */
static void add_weight(struct deform *d, int64_t part, int64_t n, int64_t first,
                       int64_t width, const char *columns)
{
    const int64_t rows = rows_of_group(d);
    const int64_t outs = d->out_channels / d->weight_groups;

    for (int64_t g = 0; g < d->weight_groups; g++) {
        struct flex_gemm gemm = {
            .m = outs,
            .n = rows,
            .k = width,
            .a = d->args[GRAD] + result_at(d, n, g * outs, first),
            .a_row = d->windows,
            .a_column = 1,
            .b = columns + g * rows * width * d->size,
            .b_row = 1,
            .b_column = width,
            .c = d->d_weight +
                 (part * d->out_channels + g * outs) * rows * d->size,
            .ldc = rows,
            .beta = 1};

        multiply(d, &gemm);
    }
}

/* The columns' gradient: the weight turned times grad. */
static void fill_gradients(struct deform *d, int64_t n, int64_t first,
                           int64_t width, char *columns)
{
    const int64_t rows = rows_of_group(d);
    const int64_t outs = d->out_channels / d->weight_groups;

    for (int64_t g = 0; g < d->weight_groups; g++) {
        struct flex_gemm gemm = {
            .m = rows,
            .n = width,
            .k = outs,
            .a = d->args[WEIGHT] + g * outs * rows * d->size,
            .a_row = 1,
            .a_column = rows,
            .b = d->args[GRAD] + result_at(d, n, g * outs, first),
            .b_row = d->windows,
            .b_column = 1,
            .c = columns + g * rows * width * d->size,
            .ldc = width};

        multiply(d, &gemm);
    }
}

/* From the gradients GRADS of COUNT elements that a tap has read, one row a
 * channel and STRIDE bytes apart: those of their places and of the mask, and
 * SUMS for the planes they were read from. */
static void lead_back(const struct deform *d, struct tables *t, int64_t n,
                      int64_t group, int64_t tap, int64_t first, int64_t count,
                      const char *grads, int64_t stride, double *sums)
{
    const int64_t channels = d->c / d->offset_groups;
    const int64_t c0 = group * channels;

    find(d, t, n, group, tap, first, count);
    memset(t->sums, 0, sizeof(t->sums));
    for (int64_t c = 0; c < channels; c++)
        for (int k = 0; k < (d->d_mask ? 3 : 2); k++) {
            d->kernels->pick(t->read, plane_at(d, n, c0 + c), t->at,
                             k < 2 ? t->slopes[k] : t->weights, BLOCK, CORNERS,
                             count);
            d->kernels->add_products(t->sums[k], t->read, grads + c * stride,
                                     count);
        }
    weigh_by_mask(d, t, n, group, tap, first, count);
    for (int64_t c = 0; c < channels; c++)
        d->kernels->put(sums + (c0 + c) * d->area, grads + c * stride, t->at,
                        t->weights, BLOCK, CORNERS, count);
    for (int axis = 0; axis < 2; axis++) {
        char *out = d->d_offset + offset_at(d, n, group, tap, axis, first);

        d->kernels->round(out, 1, t->sums[axis], count);
        if (d->args[MASK])
            d->kernels->scale(
                out, d->args[MASK] + mask_at(d, n, group, tap, first), count);
    }
    if (d->d_mask)
        d->kernels->round(d->d_mask + mask_at(d, n, group, tap, first), 1,
                          t->sums[2], count);
}

/* All of sample N, its weight's part in PART. SUMS are of x's planes. */
static void sample_back(struct deform *d, struct tables *t, int64_t part,
                        int64_t n, char *columns, double *sums)
{
    const int64_t channels = d->c / d->offset_groups;

    memset(sums, 0, (size_t)(d->c * d->area) * sizeof(*sums));
    for (int64_t first = 0; first < d->windows; first += CHUNK) {
        const int64_t width =
            d->windows - first < CHUNK ? d->windows - first : CHUNK;

        fill_columns(d, t, n, first, first + width, columns);
        add_weight(d, part, n, first, width, columns);
        fill_gradients(d, n, first, width, columns);
        for (int64_t i = 0; i < d->offset_groups * d->taps; i++)
            for (int64_t at = 0; at < width; at += BLOCK) {
                const int64_t row =
                    i / d->taps * channels * d->taps + i % d->taps;

                lead_back(d, t, n, i / d->taps, i % d->taps, first + at,
                          width - at < BLOCK ? width - at : BLOCK,
                          columns + (row * width + at) * d->size,
                          d->taps * width * d->size, sums);
            }
    }
    d->kernels->round(d->d_x + n * d->c * d->area * d->size, 1, sums,
                      d->c * d->area);
}

static void backward_range(void *context, int64_t from, int64_t to,
                           uint32_t worker)
{
    struct deform *d = context;
    const uint64_t sum_bytes = (uint64_t)(d->c * d->area) * sizeof(double);
    char *columns = flex_scratch_take(d->device, column_bytes(d) + sum_bytes);
    struct tables t;

    (void)worker;
    if (!columns) {
        __atomic_store_n(&d->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    tables_init(&t, 1);
    for (int64_t part = from; part < to; part++)
        for (int64_t n = part * d->n / d->parts;
             n < (part + 1) * d->n / d->parts; n++)
            sample_back(d, &t, part, n, columns,
                        (double *)(void *)(columns + column_bytes(d)));
    flex_scratch_give(d->device, columns, column_bytes(d) + sum_bytes);
}

/* ---- calls ---- */

/* RESULT has the shape of deform_conv2d's; the lists begin at argument
 * LISTS. */
static void deform_init(struct deform *d, struct flex_device *device,
                        const struct hob_call *call,
                        const struct hob_view *result, uint32_t lists)
{
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 2);

    *d = (struct deform){.device = device,
                         .kernels = flex_sample_kernels(device, x->dtype),
                         .plane = {.size = {x->shape[2], x->shape[3]}},
                         .n = x->shape[0],
                         .c = x->shape[1],
                         .area = x->shape[2] * x->shape[3],
                         .out_channels = weight->shape[0],
                         .taps = weight->shape[2] * weight->shape[3],
                         .windows = result->shape[2] * result->shape[3],
                         .weight_groups = flex_arg_i64(call, lists + 3),
                         .offset_groups = flex_arg_i64(call, lists + 4),
                         .dtype = x->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64
                                                            : HOB_DTYPE_F32,
                         .size = x->dtype == HOB_DTYPE_F64 ? 8 : 4};
    hob_window_pair(call, lists, ones, d->window.stride);
    hob_window_pair(call, lists + 1, zeros, d->window.padding);
    hob_window_pair(call, lists + 2, ones, d->window.dilation);
    for (int i = 0; i < 2; i++) {
        d->window.size[i] = weight->shape[2 + i];
        d->window.in[i] = x->shape[2 + i];
        d->window.out[i] = result->shape[2 + i];
    }
    d->chunks = (d->windows + CHUNK - 1) / CHUNK;
    d->parts = d->n < PARTS ? d->n : PARTS;
}

static hob_status no_memory(struct hob_call *call)
{
    return call->host->fail(
        call, HOB_ERR_MEMORY,
        "%s: no memory for the columns of x, %" PRId64 " elements",
        call->op_name, hob_view_count(hob_arg_view(call, 0)));
}

/* Read arguments 0 .. COUNT - 1, absent ones as NULL. */
static hob_status read_args(struct flex_device *device,
                            const struct hob_call *call, uint32_t count,
                            struct flex_wide *wide, const char **out)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct hob_view *view = hob_arg_view(call, i);

        if (view && flex_wide_read(device, view, &wide[i]))
            return HOB_ERR_MEMORY;
        out[i] = view ? wide[i].data : NULL;
    }
    return HOB_OK;
}

static void release(struct flex_device *device, struct flex_wide *wide,
                    uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        flex_wide_release(device, &wide[i]);
}

static hob_status deform_conv2d(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct flex_wide wide[ARGS] = {{0}}, result = {0};
    struct deform d;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    deform_init(&d, device, call, out, 5);
    st = read_args(device, call, ARGS, wide, d.args);
    d.bias = d.args[GRAD]; /* where the forward call has it */
    if (!st)
        st = flex_wide_begin(device, out, &result);
    if (!st) {
        d.out = result.data;
        flex_parallel(device, d.n * d.chunks, 1, forward_range, &d);
        flex_wide_finish(device, out, &result);
    }
    release(device, wide, ARGS);
    flex_wide_release(device, &result);
    return st || d.failed ? no_memory(call) : HOB_OK;
}

/* The parts of the weight's gradient in order: the same for any threads. */
static void run_backward(struct deform *d, char *weight, int64_t count)
{
    memset(d->d_weight, 0, (size_t)(d->parts * count * d->size));
    flex_parallel(d->device, d->parts, 1, backward_range, d);
    memset(weight, 0, (size_t)(count * d->size));
    for (int64_t i = 0; i < d->parts; i++)
        d->kernels->add(weight, weight, d->d_weight + i * count * d->size,
                        count);
}

static hob_status deform_conv2d_backward(void *device, struct hob_call *call)
{
    const struct hob_view *grad = hob_arg_view(call, GRAD);
    const uint32_t rets = hob_arg_view(call, MASK) ? 4 : 3;
    const int64_t weights = hob_view_count(hob_arg_view(call, WEIGHT));
    struct flex_wide wide[ARGS] = {{0}}, results[4] = {{0}};
    struct deform d;
    uint64_t bytes;
    hob_status st;

    deform_init(&d, device, call, grad, 5);
    bytes = (uint64_t)(d.parts * weights * d.size) + FLEX_ALIGN;
    d.d_weight = flex_scratch_take(device, bytes);
    st = d.d_weight ? read_args(device, call, ARGS, wide, d.args)
                    : HOB_ERR_MEMORY;
    for (uint32_t i = 0; i < rets && !st; i++)
        st = flex_wide_begin(device, hob_ret_view(call, i), &results[i]);
    if (!st) {
        d.d_x = results[0].data;
        d.d_offset = results[1].data;
        d.d_mask = rets == 4 ? results[3].data : NULL;
        run_backward(&d, results[2].data, weights);
        for (uint32_t i = 0; i < rets; i++)
            flex_wide_finish(device, hob_ret_view(call, i), &results[i]);
    }
    flex_scratch_give(device, d.d_weight, bytes);
    release(device, wide, ARGS);
    release(device, results, rets);
    return st || d.failed ? no_memory(call) : HOB_OK;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "deform_conv2d",
        .signature =
            "(x: Float, offset: Float, weight: Float, mask: Float?, "
            "bias: Float?, stride: [i64], padding: [i64], dilation: [i64], "
            "weight_groups: i64 = 1, offset_groups: i64 = 1) -> x",
        .dtypes = masks,
        .dtype_count = 5,
        .prepare = flex_sample_prepare,
        .execute = deform_conv2d,
    },
    {
        .op = "deform_conv2d_backward",
        .signature =
            "(x: Float, offset: Float, weight: Float, mask: Float?, "
            "grad: Float, stride: [i64], padding: [i64], dilation: [i64], "
            "weight_groups: i64 = 1, offset_groups: i64 = 1) -> "
            "(d_x: x, d_offset: x, d_weight: x, d_mask: x?)",
        .dtypes = masks,
        .dtype_count = 5,
        .prepare = flex_sample_prepare,
        .execute = deform_conv2d_backward,
    },
};

const struct flex_entries flex_deform_conv_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
