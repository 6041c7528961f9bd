/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c - im2col and col2im, plane by plane: a row of windows of one tap
 * is a piece of a row of the plane.
 */
#include "../rows.h"
#include "../wide.h"
#include "../window.h"

#include <inttypes.h>
#include <string.h>

struct columns {
    struct flex_device *device;
    const struct flex_row_kernels *kernels;
    struct flex_window window;
    const char *in;
    char *out;
    int64_t area, taps, windows; /* of a plane */
    uint32_t size;
};

/* Where tap (KY, KX) of window row Y meets a plane: its first element of
 * windows FIRST .. LAST - 1; returns 0 if it lies outside. */
static int meet(const struct columns *c, int64_t ky, int64_t kx, int64_t y,
                int64_t *out_at, int64_t *out_first, int64_t *out_last)
{
    const struct flex_window *w = &c->window;
    const int64_t row = y * w->stride[0] + ky * w->dilation[0] - w->padding[0];

    *out_first = *out_last = 0;
    if (row < 0 || row >= w->in[0])
        return 0;
    flex_window_valid(w, 1, kx, out_first, out_last);
    *out_at = row * w->in[1] + *out_first * w->stride[1] + kx * w->dilation[1] -
              w->padding[1];
    return *out_first < *out_last;
}

static void im2col_plane(const struct columns *c, const char *plane, char *out)
{
    const struct flex_window *w = &c->window;
    const int64_t size = c->size;

    for (int64_t tap = 0; tap < c->taps; tap++)
        for (int64_t y = 0; y < w->out[0]; y++, out += w->out[1] * size) {
            int64_t at, first, last;

            if (!meet(c, tap / w->size[1], tap % w->size[1], y, &at, &first,
                      &last))
                first = last = w->out[1];
            memset(out, 0, (size_t)(first * size));
            if (first < last)
                flex_copy_strided(out + first * size, 1, plane + at * size,
                                  w->stride[1], last - first, c->size);
            memset(out + last * size, 0, (size_t)((w->out[1] - last) * size));
        }
}

static void add_strided(const struct columns *c, char *plane, const char *in,
                        int64_t count)
{
    const int64_t stride = c->window.stride[1];

    if (stride == 1)
        c->kernels->add(plane, in, count);
    else if (c->size == 8)
        for (int64_t i = 0; i < count; i++)
            ((double *)(void *)plane)[i * stride] +=
                ((const double *)(const void *)in)[i];
    else
        for (int64_t i = 0; i < count; i++)
            ((float *)(void *)plane)[i * stride] +=
                ((const float *)(const void *)in)[i];
}

static void col2im_plane(const struct columns *c, const char *in, char *plane)
{
    const struct flex_window *w = &c->window;
    const int64_t size = c->size;

    memset(plane, 0, (size_t)(c->area * size));
    for (int64_t tap = 0; tap < c->taps; tap++)
        for (int64_t y = 0; y < w->out[0]; y++, in += w->out[1] * size) {
            int64_t at, first, last;

            if (meet(c, tap / w->size[1], tap % w->size[1], y, &at, &first,
                     &last))
                add_strided(c, plane + at * size, in + first * size,
                            last - first);
        }
}

static void im2col_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct columns *c = context;

    (void)worker;
    for (int64_t i = first; i < last; i++)
        im2col_plane(c, c->in + i * c->area * c->size,
                     c->out + i * c->taps * c->windows * c->size);
}

static void col2im_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct columns *c = context;

    (void)worker;
    for (int64_t i = first; i < last; i++)
        col2im_plane(c, c->in + i * c->taps * c->windows * c->size,
                     c->out + i * c->area * c->size);
}

/* Over planes of SIZES; the attributes begin at argument FIRST. */
static void columns_init(struct columns *c, struct flex_device *device,
                         const struct hob_call *call, uint32_t first,
                         const int64_t *sizes, uint32_t dtype)
{
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};
    struct flex_window *w = &c->window;

    *c = (struct columns){.device = device,
                          .kernels = flex_row_kernels(device, dtype),
                          .area = sizes[0] * sizes[1]};
    hob_window_pair(call, first, ones, w->size);
    hob_window_pair(call, first + 1, ones, w->stride);
    hob_window_pair(call, first + 2, zeros, w->padding);
    hob_window_pair(call, first + 3, ones, w->dilation);
    for (int i = 0; i < 2; i++) {
        w->in[i] = sizes[i];
        w->out[i] = hob_window_count(
            sizes[i], hob_window_extent(w->size[i], w->dilation[i]),
            w->stride[i], w->padding[i]);
    }
    c->taps = w->size[0] * w->size[1];
    c->windows = w->out[0] * w->out[1];
}

static hob_status no_memory(struct hob_call *call)
{
    return call->host->fail(call, HOB_ERR_MEMORY,
                            "%s: no memory for a copy of %" PRId64 " elements",
                            call->op_name,
                            hob_view_count(hob_arg_view(call, 0)));
}

static int64_t grain(const struct columns *c)
{
    return FLEX_GRAIN_CHEAP / (c->taps * c->windows + c->area + 1) + 1;
}

/* x is contiguous: elements are only moved, of any dtype. */
static hob_status im2col(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct columns c;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    columns_init(&c, device, call, 1, x->shape + 2, x->dtype);
    c.size = hob_dtype_size(x->dtype);
    c.in = x->data;
    c.out = out->data;
    flex_parallel(device, x->shape[0] * x->shape[1], grain(&c), im2col_range,
                  &c);
    return HOB_OK;
}

static hob_status col2im(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct flex_wide source = {0}, result = {0};
    struct columns c;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    columns_init(&c, device, call, 2, out->shape + 2, x->dtype);
    c.size = flex_row_size(x->dtype);
    st = flex_wide_read(device, x, &source);
    if (!st)
        st = flex_wide_begin(device, out, &result);
    if (!st) {
        c.in = source.data;
        c.out = result.data;
        flex_parallel(device, out->shape[0] * out->shape[1], grain(&c),
                      col2im_range, &c);
        flex_wide_finish(device, out, &result);
    }
    flex_wide_release(device, &source);
    flex_wide_release(device, &result);
    return st ? no_memory(call) : HOB_OK;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "im2col",
        .signature = "(x: Float, kernel_size: [i64], stride: [i64], "
                     "padding: [i64], dilation: [i64]) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .flags = HOB_ENTRY_CONTIGUOUS,
        .execute = im2col,
    },
    {
        .op = "col2im",
        .signature = "(x: Float, output_size: [i64], kernel_size: [i64], "
                     "stride: [i64], padding: [i64], dilation: [i64]) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .execute = col2im,
    },
};

const struct flex_entries flex_columns_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
