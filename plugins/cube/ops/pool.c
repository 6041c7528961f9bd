/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c - max, average and adaptive average pooling, and their gradients.
 */
#include "../cube.h"
#include "../indices.h"
#include "../lowest.h"
#include "../texts.h"

#include <hob/ext/window.h>

#include <inttypes.h>

/* As pool.cube has them. */
enum pool_op {
    POOL_MAX = 1,
    POOL_MAX_INDEX,
    POOL_MEAN,
    POOL_MEAN_BACK,
    POOL_ADAPTIVE,
    POOL_ADAPTIVE_BACK
};

enum { SLOTS = 4096 };

static const struct cube_program pool_program = {
    .name = "pool",
    .text = cube_text_pool,
    .buffers = {{"out", CUBE_WRITTEN}, {"x", 0}, {"places", CUBE_WRITTEN}},
    .params = {{"count", CUBE_INDEX, 0},
               {"x_size", CUBE_INDEX, 2},
               {"out_size", CUBE_INDEX, 2},
               {"x_row", CUBE_INDEX, 0},
               {"x_column", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("x"),
               {"size", CUBE_INDEX, CUBE_LENGTH(3)},
               {"step", CUBE_INDEX, CUBE_LENGTH(3)},
               {"padding", CUBE_INDEX, CUBE_LENGTH(3)},
               {"dilation", CUBE_INDEX, CUBE_LENGTH(4)}},
    .constants = {"RANK", "POOL_OP", "COUNT_PADDING", "HAS_WINDOWS",
                  "HAS_DILATION"},
    .symbols = {"INFINITE"},
    .flags = CUBE_SPACES | CUBE_MATHS,
};

static const struct cube_program add_program = {
    .name = "pool_add",
    .text = cube_text_pool_add,
    .buffers = {{"out", CUBE_WRITTEN},
                {"grad", 0},
                {"indices", 0},
                {"flag", CUBE_WRITTEN | CUBE_ATOMIC}},
    .params = {{"planes", CUBE_INDEX, 0},
               {"windows", CUBE_INDEX, 0},
               {"width", CUBE_INDEX, 0},
               {"out_plane", CUBE_INDEX, 0},
               {"grad_row", CUBE_INDEX, 0},
               {"grad_column", CUBE_INDEX, 0},
               {"indices_row", CUBE_INDEX, 0},
               {"indices_column", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("grad"),
               CUBE_OPERAND_PARAMS("indices")},
    .shared = {{"owner", "uint", "SLOTS"}, {"left", "uint", "2"}},
    .constants = {"RANK", "SLOTS"},
    .flags = CUBE_SPACES,
};

/* Sums in f32 rounded to halves: the "sum" of one part. */
static const struct cube_program round_program = {
    .name = "pool_round",
    .text = cube_text_matmul_sum,
    .buffers = {{"out", CUBE_WRITTEN}, {"part", 0}},
    .params = {{"count", CUBE_INDEX, 0}, {"splits", CUBE_INDEX, 0}},
};

struct windows {
    int64_t size[2], step[2], padding[2], dilation[2];
};

/* VIEW's planes, its last two dimensions, apart from it. */
static struct hob_view outer_of(const struct hob_view *view)
{
    struct hob_view outer = *view;

    outer.rank = (uint8_t)(outer.rank - 2);
    return outer;
}

/* kernel_size, stride, padding from argument FIRST on. */
static void read_windows(struct windows *w, const struct hob_call *call,
                         uint32_t first)
{
    static const int64_t ones[2] = {1, 1}, zeros[2] = {0, 0};

    hob_window_pair(call, first, ones, w->size);
    hob_window_pair(call, first + 1, w->size, w->step);
    hob_window_pair(call, first + 2, zeros, w->padding);
    w->dilation[0] = w->dilation[1] = 1;
}

/* Run OP from X [.., rows, columns] to result 0, whose planes are its last two
 * dimensions as well; W is NULL for adaptive pooling. */
static hob_status run_pool(struct cube_device *device, struct hob_call *call,
                           enum pool_op op, const struct hob_view *x,
                           const struct hob_view *out, const struct windows *w,
                           int count_padding)
{
    const int64_t count = hob_view_count(out);
    const int64_t *x_size = x->shape + x->rank - 2;
    const int64_t *out_size = out->shape + out->rank - 2;
    const struct hob_view outer = outer_of(x);
    struct cube_space space;
    struct cube_job job;

    if (count == 0)
        return HOB_OK;
    cube_space_init(&space, outer.rank, outer.shape);
    cube_space_add(&space, &outer);
    cube_space_collapse(&space);
    cube_job_init(&job, device, call, &pool_program);
    cube_job_memory(&job, out->data, out->dtype, count);
    cube_job_lowest(&job, x);
    if (op == POOL_MAX_INDEX)
        cube_job_memory(&job, hob_ret_view(call, 1)->data,
                        hob_ret_view(call, 1)->dtype, count);
    else
        cube_job_absent(&job);
    cube_job_constant(&job, (int32_t)space.rank);
    cube_job_constant(&job, (int32_t)op);
    cube_job_constant(&job, count_padding);
    cube_job_constant(&job, w ? 2 : 0);
    cube_job_constant(&job, op <= POOL_MAX_INDEX ? 2 : 0);
    cube_job_symbol(&job, x->dtype == HOB_DTYPE_F64 ? "INF_F64" : "INF_F32");
    cube_job_i64(&job, count);
    cube_job_i64s(&job, x_size, 2);
    cube_job_i64s(&job, out_size, 2);
    cube_job_i64(&job, x->strides[x->rank - 2]);
    cube_job_i64(&job, x->strides[x->rank - 1]);
    cube_job_space(&job, &space);
    cube_job_i64(&job, cube_lowest(x, NULL));
    cube_job_i64s(&job, space.strides[0], space.rank);
    if (w) {
        cube_job_i64s(&job, w->size, 2);
        cube_job_i64s(&job, w->step, 2);
        cube_job_i64s(&job, w->padding, 2);
        if (op <= POOL_MAX_INDEX)
            cube_job_i64s(&job, w->dilation, 2);
    }
    for (uint32_t i = 0; i < 2; i++) {
        const int64_t longer =
            x_size[i] > out_size[i] ? x_size[i] : out_size[i];

        if (w)
            cube_job_reach(&job, (longer + 1) * w->step[i] +
                                     2 * w->padding[i] +
                                     w->size[i] * w->dilation[i]);
        else
            cube_job_reach(&job, (x_size[i] + 1) * (out_size[i] + 1));
    }
    if (w)
        cube_job_reach(&job, w->size[0] * w->size[1]);
    cube_job_reach(&job, x_size[0] * x_size[1]);
    return cube_job_run(&job, cube_groups(device, count, CUBE_GROUP_SIZE));
}

static hob_status run_max(struct cube_device *device, struct hob_call *call,
                          enum pool_op op)
{
    static const int64_t ones[2] = {1, 1};
    struct windows w;

    read_windows(&w, call, 1);
    hob_window_pair(call, 4, ones, w.dilation);
    return run_pool(device, call, op, hob_arg_view(call, 0),
                    hob_ret_view(call, 0), &w, 0);
}

static hob_status max_pool2d(void *device, struct hob_call *call)
{
    return run_max(device, call, POOL_MAX);
}

static hob_status max_pool2d_with_indices(void *device, struct hob_call *call)
{
    return run_max(device, call, POOL_MAX_INDEX);
}

static hob_status avg_pool2d(void *device, struct hob_call *call)
{
    struct windows w;

    read_windows(&w, call, 1);
    return run_pool(device, call, POOL_MEAN, hob_arg_view(call, 0),
                    hob_ret_view(call, 0), &w, cube_arg_i64(call, 4) != 0);
}

static hob_status avg_pool2d_backward(void *device, struct hob_call *call)
{
    struct windows w;

    read_windows(&w, call, 2);
    return run_pool(device, call, POOL_MEAN_BACK, hob_arg_view(call, 1),
                    hob_ret_view(call, 0), &w, cube_arg_i64(call, 5) != 0);
}

/* ---- adaptive pooling ---- */

/* VIEW with a second dimension to pool, of one row. */
static struct hob_view with_rows(const struct hob_view *view)
{
    const uint32_t last = view->rank - 1u;
    struct hob_view y = *view;

    y.rank++;
    y.shape[last + 1] = view->shape[last];
    y.strides[last + 1] = view->strides[last];
    y.shape[last] = 1;
    y.strides[last] = 0;
    return y;
}

static hob_status run_adaptive(struct cube_device *device,
                               struct hob_call *call, enum pool_op op)
{
    struct hob_view x = *hob_arg_view(call, 0);
    struct hob_view out = *hob_ret_view(call, 0);

    if (call->args[1].count == 1) {
        x = with_rows(&x);
        out = with_rows(&out);
    }
    return run_pool(device, call, op, &x, &out, NULL, 0);
}

static hob_status adaptive_avg_pool(void *device, struct hob_call *call)
{
    return run_adaptive(device, call, POOL_ADAPTIVE);
}

static hob_status adaptive_avg_pool_backward(void *device,
                                             struct hob_call *call)
{
    return run_adaptive(device, call, POOL_ADAPTIVE_BACK);
}

/* Three dimensions are left to the body. */
static hob_status adaptive_prepare(void *device, const struct hob_call *call,
                                   struct hob_prepare *out)
{
    const uint32_t count = call->args[1].count;

    (void)device;
    (void)out;
    return count == 2 ||
                   (count == 1 && hob_arg_view(call, 0)->rank < HOB_MAX_RANK)
               ? HOB_OK
               : HOB_ERR_UNSUPPORTED;
}

/* ---- the gradient of max ---- */

static hob_status launch_add(struct cube_device *device, struct hob_call *call,
                             void *sums, uint32_t dtype,
                             const struct cube_flag *flag)
{
    const struct hob_view *grad = hob_arg_view(call, 1);
    const struct hob_view *indices = hob_arg_view(call, 2);
    const struct hob_view *out = hob_ret_view(call, 0);
    const struct hob_view outer = outer_of(grad), places = outer_of(indices);
    struct cube_space space;
    struct cube_job job;

    cube_space_init(&space, 2, out->shape);
    cube_space_add(&space, &outer);
    cube_space_add(&space, &places);
    cube_space_collapse(&space);
    cube_job_init(&job, device, call, &add_program);
    cube_job_memory(&job, sums, dtype, hob_view_count(out));
    cube_job_lowest(&job, grad);
    cube_job_lowest(&job, indices);
    cube_job_memory(&job, flag->data, HOB_DTYPE_U32, 1);
    cube_job_constant(&job, (int32_t)space.rank);
    cube_job_constant(&job, SLOTS);
    cube_job_i64(&job, space.count);
    cube_job_i64(&job, grad->shape[2] * grad->shape[3]);
    cube_job_i64(&job, grad->shape[3]);
    cube_job_i64(&job, out->shape[2] * out->shape[3]);
    cube_job_i64(&job, grad->strides[2]);
    cube_job_i64(&job, grad->strides[3]);
    cube_job_i64(&job, indices->strides[2]);
    cube_job_i64(&job, indices->strides[3]);
    cube_job_space(&job, &space);
    cube_job_i64(&job, cube_lowest(grad, NULL));
    cube_job_i64s(&job, space.strides[0], space.rank);
    cube_job_i64(&job, cube_lowest(indices, NULL));
    cube_job_i64s(&job, space.strides[1], space.rank);
    cube_job_reach(&job, space.count * grad->shape[2] * grad->shape[3] +
                             CUBE_GROUP_SIZE);
    return cube_job_run(&job, space.count);
}

static hob_status round_sums(struct cube_device *device, struct hob_call *call,
                             const void *sums)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const int64_t count = hob_view_count(out);
    struct cube_job job;

    cube_job_init(&job, device, call, &round_program);
    cube_job_memory(&job, out->data, out->dtype, count);
    cube_job_memory(&job, sums, HOB_DTYPE_F32, count);
    cube_job_i64(&job, count);
    cube_job_i64(&job, 1);
    return cube_job_run(&job, cube_groups(device, count, CUBE_GROUP_SIZE));
}

/* Halves are summed in f32, in memory of their own. */
static hob_status max_pool2d_backward(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct cube_runtime *runtime = device->runtime;
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint64_t bytes = (uint64_t)hob_view_count(out) * sizeof(float);
    const int is_half = hob_dtype_size(out->dtype) == 2;
    struct cube_flag flag;
    void *sums = out->data;
    uint32_t bad;
    hob_status st;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    if (is_half) {
        st = runtime->alloc(device, bytes, &sums);
        if (st)
            return call->host->fail(call, st, "%s: no memory for sums in f32",
                                    call->op_name);
    }
    st = cube_indices_flag(&flag, device, call, 2,
                           out->shape[2] * out->shape[3]);
    if (!st) {
        st = launch_add(device, call, sums,
                        is_half ? HOB_DTYPE_F32 : out->dtype, &flag);
        if (!st && is_half)
            st = round_sums(device, call, sums);
        st = cube_flag_end(&flag, device, call, st, &bad);
        if (!st && bad != CUBE_FLAG_NONE)
            st = cube_indices_fail(device, call, hob_arg_view(call, 2), bad,
                                   out->shape[2] * out->shape[3]);
    }
    if (is_half)
        runtime->free(device, sums, bytes);
    return st;
}

/* ---- entries ---- */

static const uint32_t x_masks[] = {HOB_MASK_FLOAT};
static const uint32_t index_masks[] = {HOB_MASK_FLOAT, HOB_MASK_INT};

#define ENTRY(name, text, masks, preparation)                                  \
    {                                                                          \
        .op = #name, .signature = text, .dtypes = masks,                       \
        .dtype_count = sizeof(masks) / sizeof(masks[0]),                       \
        .prepare = preparation, .execute = name,                               \
    }

static const struct hob_entry entries[] = {
    ENTRY(max_pool2d,
          "(x: Float, kernel_size: [i64], stride: [i64], padding: [i64], "
          "dilation: [i64], ceil_mode: bool = false) -> x",
          x_masks, NULL),
    ENTRY(max_pool2d_with_indices,
          "(x: Float, kernel_size: [i64], stride: [i64], padding: [i64], "
          "dilation: [i64], ceil_mode: bool = false, "
          "index_dtype: dtype = i32) -> (x, index_dtype)",
          x_masks, NULL),
    ENTRY(max_pool2d_backward,
          "(x_shape: shape, grad: Float, indices: Int) -> grad", index_masks,
          NULL),
    ENTRY(avg_pool2d,
          "(x: Float, kernel_size: [i64], stride: [i64], padding: [i64], "
          "count_include_pad: bool = true, ceil_mode: bool = false) -> x",
          x_masks, NULL),
    ENTRY(avg_pool2d_backward,
          "(x_shape: shape, grad: Float, kernel_size: [i64], stride: [i64], "
          "padding: [i64], count_include_pad: bool = true, "
          "ceil_mode: bool = false) -> grad",
          x_masks, NULL),
    ENTRY(adaptive_avg_pool, "(x: Float, output_size: [i64]) -> x", x_masks,
          adaptive_prepare),
    ENTRY(adaptive_avg_pool_backward,
          "(grad: Float, input_size: [i64]) -> grad", x_masks,
          adaptive_prepare),
};
#undef ENTRY

const struct cube_entries cube_pool_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
