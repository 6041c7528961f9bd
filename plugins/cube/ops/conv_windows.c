/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_windows.c - see conv_windows.h.
 *
 * forward: weight [out, in taps] by windows of x [in taps, places];
 * x_backward: weight [in, out taps] by windows of the gradient;
 * weight_backward: gradient [out, image places] by windows of x, turned;
 *
 * of which the former two are products for each image. What another layout has
 * to be made for is small but for the gradient, which is read once.
 */
#include "conv_windows.h"

#include "../cube.h"
#include "../lowest.h"
#include "../move.h"
#include "../texts.h"
#include "copy.h"
#include "map.h"
#include "matmul.h"

enum {
    /* Channels that fill half of the least tile. */
    CHANNELS_LEAST = 32,
    VECTOR = 8 /* elements of 16 bytes */
};

/* Windows at a time: half a GiB. */
#define WINDOWS_MOST (INT64_C(1) << 28)

static const struct cube_program windows_program = {
    .name = "conv_windows",
    .text = cube_text_conv_windows,
    .buffers = {{"out", CUBE_WRITTEN}, {"x", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               {"x_first", CUBE_INDEX, 0},
               {"x_steps", CUBE_INDEX, 4},
               {"plane", CUBE_INDEX, 2},
               {"columns", CUBE_INDEX, 0},
               {"taps", CUBE_INDEX, 2},
               {"steps", CUBE_INDEX, 2},
               {"paces", CUBE_INDEX, 2},
               {"starts", CUBE_INDEX, 2},
               {"image_step", CUBE_INDEX, 0},
               {"row_step", CUBE_INDEX, 0}},
    .constants = {"RANK"},
    .flags = CUBE_SPACES,
};

/* Windows of IMAGES of X, and where they lie: place o along an axis meets with
 * tap t what is at o STEPS + t PACES + STARTS. */
struct windows {
    struct hob_view x;
    int64_t images, taps[2], places[2];
    int64_t steps[2], paces[2], starts[2];
    int64_t image_step, row_step;
    void *data;
};

static int64_t places_of(const struct windows *windows)
{
    return windows->places[0] * windows->places[1];
}

static int64_t rows_of(const struct windows *windows)
{
    return windows->x.shape[1] * windows->taps[0] * windows->taps[1];
}

static uint64_t bytes_of(const struct windows *windows)
{
    return (uint64_t)(windows->images * rows_of(windows) * places_of(windows)) *
           2;
}

static hob_status write_windows(struct cube_device *device,
                                struct hob_call *call,
                                const struct windows *windows)
{
    const uint32_t dtype = cube_bits_dtype(2);
    const int64_t places = places_of(windows);
    struct hob_view x = windows->x;
    uint32_t width = VECTOR;
    struct cube_space space;
    struct cube_job job;

    while (places % width || windows->row_step % width ||
           windows->image_step % width)
        width /= 2;
    cube_space_init(&space, 5,
                    (const int64_t[]){windows->images, x.shape[1],
                                      windows->taps[0], windows->taps[1],
                                      places / width});
    x.dtype = (uint8_t)dtype;
    x.shape[0] = windows->images;
    cube_job_init(&job, device, call, &windows_program);
    cube_job_memory(&job, windows->data, dtype,
                    (int64_t)(bytes_of(windows) / 2));
    cube_job_lowest(&job, &x);
    job.variant.widths[0] = (uint8_t)width;
    cube_job_constant(&job, (int32_t)space.rank);
    cube_job_i64(&job, space.count);
    cube_job_space(&job, &space);
    cube_job_i64(&job, cube_lowest(&x, NULL));
    cube_job_i64s(&job, x.strides, 4);
    cube_job_i64s(&job, x.shape + 2, 2);
    cube_job_i64(&job, windows->places[1]);
    cube_job_i64s(&job, windows->taps, 2);
    cube_job_i64s(&job, windows->steps, 2);
    cube_job_i64s(&job, windows->paces, 2);
    cube_job_i64s(&job, windows->starts, 2);
    cube_job_i64(&job, windows->image_step);
    cube_job_i64(&job, windows->row_step);
    return cube_job_run(&job,
                        cube_groups(device, space.count, CUBE_GROUP_SIZE));
}

/* A row-major view of DTYPE at DATA. */
static struct hob_view view_of(void *data, uint8_t dtype, uint8_t rank,
                               const int64_t *shape)
{
    struct hob_view view = {.data = data, .dtype = dtype, .rank = rank};
    int64_t stride = 1;

    for (uint32_t i = rank; i-- > 0;) {
        view.shape[i] = shape[i];
        view.strides[i] = stride;
        stride *= shape[i];
    }
    return view;
}

/* VIEW's dimensions 0 and 1 in each other's place. */
static struct hob_view turned(const struct hob_view *view)
{
    struct hob_view out = *view;

    out.shape[0] = view->shape[1];
    out.shape[1] = view->shape[0];
    out.strides[0] = view->strides[1];
    out.strides[1] = view->strides[0];
    return out;
}

/* Whether FACTOR, of M rows, and WINDOWS are matrices that subgroups multiply,
 * and large enough to gain by it. */
static int is_for_matrices(const struct cube_device *device,
                           const struct cube_conv *conv,
                           const struct hob_view *factor, int64_t m,
                           const struct windows *windows)
{
    return (device->limits.matrices & HOB_DTYPE_BIT(factor->dtype)) != 0 &&
           windows->x.dtype == factor->dtype && conv->groups == 1 &&
           m >= CHANNELS_LEAST && rows_of(windows) >= CHANNELS_LEAST &&
           rows_of(windows) <= WINDOWS_MOST / places_of(windows);
}

/* Whether planes of x, as they lie, are the windows. */
static int are_planes(const struct windows *windows)
{
    const struct hob_view *x = &windows->x;

    for (uint32_t i = 0; i < 2; i++)
        if (windows->taps[i] != 1 || windows->steps[i] != 1 ||
            windows->starts[i] != 0 || windows->places[i] != x->shape[2 + i])
            return 0;
    return x->strides[3] == 1 && x->strides[2] == x->shape[3];
}

/* FACTOR, of four dimensions, as a row-major matrix of ROWS rows, at DATA;
 * then the products with the windows of as many images at a time as have room,
 * into OUT [image, row, place]. */
static hob_status multiply_images(struct cube_device *device,
                                  struct hob_call *call,
                                  struct windows *windows,
                                  const struct hob_view *factor,
                                  const struct hob_view *out)
{
    const struct cube_runtime *runtime = device->runtime;
    const int64_t k = rows_of(windows), n = places_of(windows);
    const int64_t m = factor->shape[0], images = out->shape[0];
    const int64_t most = WINDOWS_MOST / (k * n);
    const uint64_t factor_bytes = (uint64_t)(m * k) * 2;
    const uint64_t first = (factor_bytes + 255) / 256 * 256;
    const int is_plain = are_planes(windows);
    struct hob_view lhs, rhs, part;
    uint64_t bytes;
    char *memory;
    hob_status st;

    windows->images = is_plain || images < most ? images : most;
    windows->row_step = n;
    windows->image_step = k * n;
    bytes = first + (is_plain ? 0 : bytes_of(windows));
    st = runtime->alloc(device, bytes, (void **)(void *)&memory);
    if (st)
        return cube_fail(device, call, st, NULL);
    windows->data = memory + first;
    lhs = view_of(memory, factor->dtype, 4, factor->shape);
    st = cube_copy(device, call, &lhs, factor);
    lhs = view_of(memory, factor->dtype, 2, (const int64_t[]){m, k});
    for (int64_t i = 0; i < images && !st; i += windows->images) {
        if (windows->images > images - i)
            windows->images = images - i;
        rhs = view_of(windows->data, factor->dtype, 3,
                      (const int64_t[]){windows->images, k, n});
        if (is_plain) {
            rhs.data = windows->x.data;
            rhs.strides[0] = windows->x.strides[0];
            rhs.strides[1] = windows->x.strides[1];
        } else {
            st = write_windows(device, call, windows);
        }
        part = view_of((char *)out->data + 2 * i * m * n, out->dtype, 3,
                       (const int64_t[]){windows->images, m, n});
        if (!st)
            st = cube_matmul_portable(device, call, &lhs, &rhs, &part);
        windows->x.data = (char *)windows->x.data +
                          2 * windows->images * windows->x.strides[0];
    }
    runtime->free(device, memory, bytes);
    return st;
}

hob_status cube_conv_windows(struct cube_device *device, struct hob_call *call,
                             const struct cube_conv *conv)
{
    static const struct cube_map add = {.function = "map_add"};
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *bias = hob_arg_view(call, 2);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct windows windows = {.x = *hob_arg_view(call, 0)};
    struct hob_view across;
    hob_status st;

    for (uint32_t i = 0; i < 2; i++) {
        windows.taps[i] = weight->shape[2 + i];
        windows.places[i] = out->shape[2 + i];
        windows.steps[i] = conv->step[i];
        windows.paces[i] = conv->dilation[i];
        windows.starts[i] = -conv->padding[i];
    }
    if (!is_for_matrices(device, conv, weight, weight->shape[0], &windows))
        return HOB_ERR_UNSUPPORTED;
    st = multiply_images(device, call, &windows, weight, out);
    if (st || !bias)
        return st;
    across = *bias;
    across.rank = 3;
    across.shape[1] = across.shape[2] = 1;
    across.strides[1] = across.strides[2] = 0;
    return cube_map_run(device, call, &add, out,
                        (const struct cube_operand[]){
                            cube_operand_view(out), cube_operand_view(&across)},
                        2);
}

hob_status cube_conv_windows_x(struct cube_device *device,
                               struct hob_call *call,
                               const struct cube_conv *conv)
{
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    struct windows windows = {.x = *hob_arg_view(call, 2)};
    struct hob_view factor = turned(weight);

    for (uint32_t i = 0; i < 2; i++) {
        windows.taps[i] = weight->shape[2 + i];
        windows.places[i] = out->shape[2 + i];
        windows.steps[i] = 1;
        windows.paces[i] = -conv->dilation[i];
        windows.starts[i] = conv->padding[i];
    }
    if (conv->step[0] != 1 || conv->step[1] != 1 ||
        !is_for_matrices(device, conv, weight, weight->shape[1], &windows))
        return HOB_ERR_UNSUPPORTED;
    return multiply_images(device, call, &windows, &factor, out);
}

hob_status cube_conv_windows_weight(struct cube_device *device,
                                    struct hob_call *call,
                                    const struct cube_conv *conv)
{
    const struct cube_runtime *runtime = device->runtime;
    const struct hob_view *grad = hob_arg_view(call, 2);
    const struct hob_view *out = hob_ret_view(call, 0);
    const struct hob_view grads = turned(grad);
    struct windows windows = {.x = *hob_arg_view(call, 0)};
    const int64_t m = out->shape[0];
    struct hob_view lhs, rhs, result;
    uint64_t first, bytes;
    int64_t k, n;
    char *memory;
    hob_status st;

    windows.images = windows.x.shape[0];
    for (uint32_t i = 0; i < 2; i++) {
        windows.taps[i] = out->shape[2 + i];
        windows.places[i] = grad->shape[2 + i];
        windows.steps[i] = conv->step[i];
        windows.paces[i] = conv->dilation[i];
        windows.starts[i] = -conv->padding[i];
    }
    k = windows.images * places_of(&windows);
    n = rows_of(&windows);
    if (k == 0 || n > WINDOWS_MOST / k ||
        !is_for_matrices(device, conv, grad, m, &windows))
        return HOB_ERR_UNSUPPORTED;
    windows.image_step = places_of(&windows);
    windows.row_step = k;
    first = ((uint64_t)(m * k) * 2 + 255) / 256 * 256;
    bytes = first + bytes_of(&windows);
    st = runtime->alloc(device, bytes, (void **)(void *)&memory);
    if (st)
        return cube_fail(device, call, st, NULL);
    windows.data = memory + first;
    st = write_windows(device, call, &windows);
    lhs = view_of(memory, out->dtype, 4, grads.shape);
    if (!st)
        st = cube_copy(device, call, &lhs, &grads);
    lhs = view_of(memory, out->dtype, 2, (const int64_t[]){m, k});
    rhs = view_of(windows.data, out->dtype, 2, (const int64_t[]){n, k});
    rhs = turned(&rhs);
    result = view_of(out->data, out->dtype, 2, (const int64_t[]){m, n});
    if (!st)
        st = cube_matmul_portable(device, call, &lhs, &rhs, &result);
    runtime->free(device, memory, bytes);
    return st;
}
