/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_few.h"

#include "../cube.h"
#include "../lowest.h"
#include "../splits.h"
#include "../texts.h"

enum {
    GROUP_SIZE = 128,
    /* Sums of a square of places of x, and taps that it meets. */
    OUTS_MOST = 16,
    SIDES_MOST = 49,
    CHANNELS_MOST = 4,
    CHUNK_MOST = 16, /* channels of the gradient, of which weights are shared */
    SHARED_MOST = 16 * 1024,
    /* Of so many channels, sums of few places are for more invocations. */
    LONG_SUM = 256
};

static const struct cube_program few_program = {
    .name = "conv_few",
    .text = cube_text_conv_few,
    .buffers = {{"out", CUBE_WRITTEN}, {"weight", 0}, {"grad", 0}},
    .params = {{"images", CUBE_INDEX, 0},
               {"channels", CUBE_INDEX, 0},
               {"planes", CUBE_INDEX, 0},
               {"sizes", CUBE_INDEX, 2},
               {"plane", CUBE_INDEX, 2},
               {"squares", CUBE_INDEX, 2},
               {"weight_first", CUBE_INDEX, 0},
               {"to_weight", CUBE_INDEX, 4},
               {"grad_first", CUBE_INDEX, 0},
               {"to_grad", CUBE_INDEX, 4},
               {"groups_each", CUBE_INDEX, 0},
               {"items", CUBE_INDEX, 0}},
    .shared = {{"weights", "QUAD", "WEIGHTS"}},
    .constants = {"CHANNELS", "STEP_Y", "STEP_X", "TAPS_Y", "TAPS_X", "PAD_Y",
                  "PAD_X", "APART_Y", "APART_X", "ROWS", "CHUNK", "WEIGHTS"},
    .symbols = {"ACCUM", "QUAD"},
};

/* How many places of the gradient a square meets along AXIS. */
static int64_t side_of(const struct cube_conv *conv, uint32_t axis,
                       int64_t taps)
{
    const int64_t step = conv->step[axis], pad = conv->padding[axis];
    const int64_t least = pad - (taps - 1) * conv->dilation[axis];
    const int64_t first =
        least > 0 ? cube_divide_up(least, step) : -(-least / step);

    return (step - 1 + pad) / step - first + 1;
}

/* How the work of a convolution CONV is parted. */
struct parts {
    int64_t rows;         /* of places that an invocation does */
    int64_t chunk, quads; /* channels at a time, weights of each by four */
    int64_t squares[2];   /* of places of x, along both axes */
    int64_t channels;     /* of the gradient, in a group of CONV */
    int64_t groups;       /* of invocations, for each such group */
};

/* 0 where the kernel has too few registers, or too much to add up. */
static int find_parts(const struct cube_device *device,
                      const struct cube_conv *conv,
                      const struct hob_view *weight, const struct hob_view *out,
                      struct parts *parts)
{
    const int64_t outs = weight->shape[1] <= CHANNELS_MOST &&
                                 conv->step[0] <= OUTS_MOST &&
                                 conv->step[1] <= OUTS_MOST
                             ? weight->shape[1] * conv->step[0] * conv->step[1]
                             : OUTS_MOST + 1;
    const int64_t quad_bytes = weight->dtype == HOB_DTYPE_F64 ? 32 : 16;
    int64_t quads;

    if (outs < 1 || outs > OUTS_MOST || weight->shape[2] > SIDES_MOST ||
        weight->shape[3] > SIDES_MOST)
        return 0;
    quads =
        side_of(conv, 0, weight->shape[2]) * side_of(conv, 1, weight->shape[3]);
    if (quads < 1 || quads > SIDES_MOST)
        return 0;
    parts->quads = quads * cube_divide_up(outs, 4);
    parts->channels = weight->shape[0] / conv->groups;
    parts->chunk = CHUNK_MOST;
    while (parts->chunk > 1 &&
           (parts->chunk / 2 >= parts->channels ||
            parts->chunk * parts->quads * quad_bytes > SHARED_MOST))
        parts->chunk /= 2;
    parts->rows = outs <= 4 ? 8 : 4;
    parts->squares[0] = cube_divide_up(
        cube_divide_up(out->shape[2], conv->step[0]), parts->rows);
    parts->squares[1] = cube_divide_up(out->shape[3], conv->step[1]);
    parts->groups = cube_divide_up(
        out->shape[0] * parts->squares[0] * parts->squares[1], GROUP_SIZE);
    return parts->channels <= LONG_SUM ||
           parts->groups * conv->groups >= cube_processors(device);
}

hob_status cube_conv_few(struct cube_device *device, struct hob_call *call,
                         const struct cube_conv *conv)
{
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *grad = hob_arg_view(call, 2);
    const struct hob_view *out = hob_ret_view(call, 0);
    const int is_double = weight->dtype == HOB_DTYPE_F64;
    struct parts parts;
    struct cube_job job;

    if (!find_parts(device, conv, weight, out, &parts))
        return HOB_ERR_UNSUPPORTED;
    cube_job_init(&job, device, call, &few_program);
    job.variant.group_size = GROUP_SIZE;
    cube_job_view(&job, out);
    cube_job_lowest(&job, weight);
    cube_job_lowest(&job, grad);
    cube_job_constant(&job, (int32_t)weight->shape[1]);
    for (uint32_t i = 0; i < 2; i++)
        cube_job_constant(&job, (int32_t)conv->step[i]);
    for (uint32_t i = 0; i < 2; i++)
        cube_job_constant(&job, (int32_t)weight->shape[2 + i]);
    for (uint32_t i = 0; i < 2; i++)
        cube_job_constant(&job, (int32_t)conv->padding[i]);
    for (uint32_t i = 0; i < 2; i++)
        cube_job_constant(&job, (int32_t)conv->dilation[i]);
    cube_job_constant(&job, (int32_t)parts.rows);
    cube_job_constant(&job, (int32_t)parts.chunk);
    cube_job_constant(&job, (int32_t)(parts.chunk * parts.quads));
    cube_job_symbol(&job, is_double ? "double" : "float");
    cube_job_symbol(&job, is_double ? "dvec4" : "vec4");
    cube_job_i64(&job, out->shape[0]);
    cube_job_i64(&job, parts.channels);
    cube_job_i64(&job, out->shape[1]);
    cube_job_i64s(&job, &out->shape[2], 2);
    cube_job_i64s(&job, &grad->shape[2], 2);
    cube_job_i64s(&job, parts.squares, 2);
    cube_job_i64(&job, cube_lowest(weight, NULL));
    cube_job_i64s(&job, weight->strides, 4);
    cube_job_i64(&job, cube_lowest(grad, NULL));
    cube_job_i64s(&job, grad->strides, 4);
    cube_job_i64(&job, parts.groups);
    cube_job_i64(&job, parts.groups * conv->groups);
    cube_job_reach(&job, parts.groups * conv->groups * GROUP_SIZE);
    return cube_job_run(&job, parts.groups * conv->groups);
}
