/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.c - im2col and col2im: an invocation for each element of the result,
 * so what several windows have is added up in the order of their elements.
 */
#include "../cube.h"
#include "../move.h"
#include "../texts.h"

#include <hob/ext/window.h>

static const struct cube_program program = {
    .name = "columns",
    .text = cube_text_columns,
    .buffers = {{"out", CUBE_WRITTEN}, {"x", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               {"plane", CUBE_INDEX, 2},
               {"windows", CUBE_INDEX, 2},
               {"window", CUBE_INDEX, 2},
               {"stride", CUBE_INDEX, 2},
               {"padding", CUBE_INDEX, 2},
               {"dilation", CUBE_INDEX, 2}},
    .constants = {"RANK", "BACK"},
    .symbols = {"ACCUM"},
    .flags = CUBE_SPACES,
};

/* Height and width. */
struct columns {
    int64_t planes, plane[2], windows[2];
    int64_t kernel[2], stride[2], padding[2], dilation[2];
};

/* Over PLANES of SIZES; the attributes begin at argument FIRST. */
static void columns_init(struct columns *c, const struct hob_call *call,
                         uint32_t first, int64_t planes, const int64_t *sizes)
{
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};

    c->planes = planes;
    hob_window_pair(call, first, ones, c->kernel);
    hob_window_pair(call, first + 1, ones, c->stride);
    hob_window_pair(call, first + 2, zeros, c->padding);
    hob_window_pair(call, first + 3, ones, c->dilation);
    for (uint32_t i = 0; i < 2; i++) {
        c->plane[i] = sizes[i];
        c->windows[i] = hob_window_count(
            sizes[i], hob_window_extent(c->kernel[i], c->dilation[i]),
            c->stride[i], c->padding[i]);
    }
}

static hob_status run(struct cube_device *device, struct hob_call *call,
                      const struct columns *c, int is_back)
{
    const int64_t taps[] = {c->planes, c->kernel[0], c->kernel[1],
                            c->windows[0], c->windows[1]};
    const int64_t planes[] = {c->planes, c->plane[0], c->plane[1]};
    const int64_t *pairs[] = {c->plane,  c->windows, c->kernel,
                              c->stride, c->padding, c->dilation};
    struct hob_view out = *hob_ret_view(call, 0), x = *hob_arg_view(call, 0);
    struct cube_space space;
    struct cube_job job;

    if (is_back)
        cube_space_init(&space, 3, planes);
    else { /* elements are moved as they are */
        cube_space_init(&space, 5, taps);
        out.dtype = x.dtype =
            (uint8_t)cube_bits_dtype(hob_dtype_size(out.dtype));
    }
    cube_job_init(&job, device, call, &program);
    cube_job_view(&job, &out);
    cube_job_view(&job, &x);
    cube_job_i64(&job, space.count);
    cube_job_space(&job, &space);
    for (uint32_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        cube_job_i64s(&job, pairs[i], 2);
    for (uint32_t i = 0; i < 2; i++) {
        /* Places, some of them beyond either end. */
        cube_job_reach(&job, 2 * (c->plane[i] + 2 * c->padding[i]));
        cube_job_reach(&job, 2 * (c->stride[i] + c->dilation[i]));
    }
    cube_job_constant(&job, (int32_t)space.rank);
    cube_job_constant(&job, is_back);
    cube_job_symbol(&job, out.dtype == HOB_DTYPE_F64 ? "double" : "float");
    return cube_job_run(&job,
                        cube_groups(device, space.count, CUBE_GROUP_SIZE));
}

static hob_status im2col(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct columns c;

    columns_init(&c, call, 1, x->shape[0] * x->shape[1], x->shape + 2);
    return run(device, call, &c, 0);
}

static hob_status col2im(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct columns c;

    columns_init(&c, call, 2, out->shape[0] * out->shape[1], out->shape + 2);
    return run(device, call, &c, 1);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT};

#define ENTRY(name, text)                                                      \
    {                                                                          \
        .op = #name, .signature = text, .dtypes = masks, .dtype_count = 1,     \
        .flags = HOB_ENTRY_CONTIGUOUS, .execute = name,                        \
    }

static const struct hob_entry entries[] = {
    ENTRY(im2col, "(x: Float, kernel_size: [i64], stride: [i64], padding: "
                  "[i64], dilation: [i64]) -> x"),
    ENTRY(col2im, "(x: Float, output_size: [i64], kernel_size: [i64], stride: "
                  "[i64], padding: [i64], dilation: [i64]) -> x"),
};
#undef ENTRY

const struct cube_entries cube_columns_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
