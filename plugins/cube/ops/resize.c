/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resize.c - interpolate and its gradient: planes resized along one axis, then
 * along the other, the one first that leaves less to keep between them.
 */
#include "../cube.h"
#include "../texts.h"

#include <inttypes.h>

/* As the op numbers them and resize.cube has them. */
enum resize_mode { NEAREST, NEAREST_EXACT, BILINEAR, BICUBIC, LANCZOS3 };

static const struct cube_program program = {
    .name = "resize",
    .text = cube_text_resize,
    .buffers = {{"out", CUBE_WRITTEN}, {"x", 0}},
    .params = {{"count", CUBE_INDEX, 0},
               {"inner", CUBE_INDEX, 0},
               {"in_size", CUBE_INDEX, 0},
               {"out_size", CUBE_INDEX, 0},
               {"factor", CUBE_INDEX, 0},
               {"start", CUBE_INDEX, 0},
               {"den", CUBE_INDEX, 0}},
    .constants = {"MODE", "BACK"},
    .symbols = {"ACCUM"},
    .flags = CUBE_MATHS,
};

struct resize {
    struct cube_device *device;
    struct hob_call *call;
    int64_t planes;
    int64_t in[2], out[2]; /* height, width: before and after resizing */
    enum resize_mode mode;
    int align_corners, is_backward;
};

/* Planes between the two launches, of SIZES. */
struct stage {
    const void *data;
    uint32_t dtype;
    int64_t sizes[2];
};

/* The place of result i, (i factor + start) / den, of an axis of IN resized to
 * OUT. */
static void find_places(const struct resize *r, int64_t in, int64_t out,
                        int64_t *factor, int64_t *start, int64_t *den)
{
    *factor = in;
    *start = 0;
    *den = out;
    if (r->mode == NEAREST_EXACT) { /* (i + 1/2) in / out */
        *factor = 2 * in;
        *start = in;
        *den = 2 * out;
    } else if (r->mode != NEAREST && r->align_corners) {
        *factor = in - 1; /* i (in - 1) / (out - 1) */
        *den = out > 1 ? out - 1 : 1;
    } else if (r->mode != NEAREST) { /* (i + 1/2) in / out - 1/2 */
        *factor = 2 * in;
        *start = in - out;
        *den = 2 * out;
    }
}

/* From X along AXIS to OUT of OUT_DTYPE, whose sizes are set. */
static hob_status launch(const struct resize *r, const struct stage *x,
                         uint32_t axis, struct stage *out)
{
    const int64_t in = r->in[axis], after = r->out[axis];
    const int64_t inner = axis ? 1 : x->sizes[1];
    const int64_t longer = in > after ? in : after;
    int64_t count, factor, start, den;
    struct cube_job job;

    out->sizes[axis] = r->is_backward ? in : after;
    out->sizes[1 - axis] = x->sizes[1 - axis];
    count = r->planes * out->sizes[0] * out->sizes[1];
    find_places(r, in, after, &factor, &start, &den);
    cube_job_init(&job, r->device, r->call, &program);
    cube_job_memory(&job, out->data, out->dtype, count);
    cube_job_memory(&job, x->data, x->dtype,
                    r->planes * x->sizes[0] * x->sizes[1]);
    cube_job_i64(&job, count);
    cube_job_i64(&job, inner);
    cube_job_i64(&job, in);
    cube_job_i64(&job, after);
    cube_job_i64(&job, factor);
    cube_job_i64(&job, start);
    cube_job_i64(&job, den);
    /* Numerators of places, some taps beyond either end. */
    cube_job_reach(&job, 2 * (longer + 16) * (longer + 16));
    cube_job_constant(&job, (int32_t)r->mode);
    cube_job_constant(&job, r->is_backward);
    cube_job_symbol(&job, x->dtype == HOB_DTYPE_F64 ? "double" : "float");
    return cube_job_run(&job, cube_groups(r->device, count, CUBE_GROUP_SIZE));
}

static hob_status run(struct resize *r)
{
    struct cube_device *device = r->device;
    const struct hob_view *x = hob_arg_view(r->call, 0);
    const struct hob_view *result = hob_ret_view(r->call, 0);
    const int64_t *before = x->shape + 2, *after = result->shape + 2;
    const uint32_t first = after[0] * before[1] > before[0] * after[1];
    struct stage from = {.data = x->data, .dtype = x->dtype};
    struct stage to = {.data = result->data, .dtype = result->dtype};
    struct stage between = {.dtype = HOB_DTYPE_F32};
    uint64_t bytes;
    void *memory = NULL;
    hob_status st;

    for (uint32_t i = 0; i < 2; i++) {
        from.sizes[i] = before[i];
        r->in[i] = r->is_backward ? after[i] : before[i];
        r->out[i] = r->is_backward ? before[i] : after[i];
    }
    r->planes = x->shape[0] * x->shape[1];
    if (hob_view_count(result) == 0)
        return HOB_OK;
    if (x->dtype == HOB_DTYPE_F64)
        between.dtype = HOB_DTYPE_F64;
    bytes = (uint64_t)(r->planes * after[first] * before[1 - first]) *
            hob_dtype_size((hob_dtype)between.dtype);
    st = device->runtime->alloc(device, bytes, &memory);
    if (st)
        return r->call->host->fail(r->call, st,
                                   "%s: no memory for %" PRIu64
                                   " bytes resized along one axis",
                                   r->call->op_name, bytes);
    between.data = memory;
    st = launch(r, &from, first, &between);
    if (!st)
        st = launch(r, &between, 1 - first, &to);
    device->runtime->free(device, memory, bytes);
    return st;
}

static hob_status interpolate(void *device, struct hob_call *call)
{
    struct resize r = {.device = device,
                       .call = call,
                       .mode = (enum resize_mode)cube_arg_i64(call, 2),
                       .align_corners = cube_arg_i64(call, 3) != 0};

    return run(&r);
}

static hob_status interpolate_backward(void *device, struct hob_call *call)
{
    struct resize r = {.device = device,
                       .call = call,
                       .mode = (enum resize_mode)cube_arg_i64(call, 2),
                       .align_corners = cube_arg_i64(call, 3) != 0,
                       .is_backward = 1};

    return run(&r);
}

/* ---- entries ---- */

/* Gradients of no results are the body's. */
static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return hob_view_count(hob_arg_view(call, 0)) ? HOB_OK : HOB_ERR_UNSUPPORTED;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "interpolate",
        .signature =
            "(x: Float, output_size: [i64], mode: enum(nearest, nearest_exact, "
            "bilinear, bicubic, lanczos3) = nearest, align_corners: bool = "
            "true) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .flags = HOB_ENTRY_CONTIGUOUS,
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
        .flags = HOB_ENTRY_CONTIGUOUS,
        .prepare = prepare,
        .execute = interpolate_backward,
    },
};

const struct cube_entries cube_resize_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
