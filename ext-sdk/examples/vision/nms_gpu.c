/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nms_gpu.c - vision.nms on GPUs: nms.cube, one launch after the other.
 *
 * Ranks are counted, so sorting takes the square of the boxes in comparisons,
 * which many invocations share, eight for each box. Then block after block of
 * boxes, in order of their scores, is settled by one workgroup and thins out
 * all later blocks. Nothing but boxes.valid is read back.
 */
#define VISION_PROTOTYPES_ONLY
#include "vision_glue.h"

#include <hob/ext/cube.h>
#include <hob/ext/kernel.h>

#include <inttypes.h>

/* The file as a string; the Makefile makes it. */
static const char text[] =
#include "nms.cube.inc"
    ;

/* As in nms.cube. */
enum { STEP_CLEAR, STEP_SORT, STEP_BLOCK, STEP_SPREAD, STEP_WRITE };
enum { GROUP = 256, OWN = 32 };

enum {
    COORDS,
    SCORES,
    BOXES,
    SLOTS,
    STATE,
    FOUND,
    OUT_COORDS,
    OUT_SCORES,
    OUT_VALID,
    OUT_FROM,
    BUFFERS
};

static const struct hob_cube_kernel kernel = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .name = "vision_nms",
    .code = text,
    .buffers = {[COORDS] = {"coords", 0, 0},
                [SCORES] = {"scores", 0, 0},
                [BOXES] = {"boxes", HOB_CUBE_WRITTEN, 0},
                [SLOTS] = {"slots", HOB_CUBE_WRITTEN, 0},
                [STATE] = {"state", HOB_CUBE_WRITTEN, 0},
                [FOUND] = {"found", HOB_CUBE_WRITTEN | HOB_CUBE_ATOMIC, 0},
                [OUT_COORDS] = {"out_coords", HOB_CUBE_WRITTEN, 0},
                [OUT_SCORES] = {"out_scores", HOB_CUBE_WRITTEN, 0},
                [OUT_VALID] = {"out_valid", HOB_CUBE_WRITTEN, 0},
                [OUT_FROM] = {"out_from", HOB_CUBE_WRITTEN, 0}},
    .params = {{"count", HOB_CUBE_INDEX, 0},
               {"valid", HOB_CUBE_INDEX, 0},
               {"block", HOB_CUBE_INDEX, 0},
               {"threshold", HOB_CUBE_VALUE_OF(BOXES), 0},
               {"least_area", HOB_CUBE_VALUE_OF(BOXES), 0}},
    .shared = {{"all_boxes", "VALUE_boxes", "5 * GROUP_SIZE"},
               {"all_scores", "VALUE_scores", "GROUP_SIZE"},
               {"all_kept", "int", "GROUP_SIZE"}},
    .constants = {"STEP"},
};

/* ---- memory between the launches ---- */

struct layout {
    uint64_t boxes, slots, state, found; /* bytes from the beginning */
    uint64_t bytes;
};

/* f16 and bf16 are compared in f32. */
static uint32_t real_of(const struct hob_view *coords)
{
    return coords->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
}

static uint64_t take(uint64_t *used, uint64_t bytes)
{
    const uint64_t at = *used;

    *used += (bytes + 63) / 64 * 64;
    return at;
}

static struct layout lay_out(const struct hob_view *coords)
{
    const uint64_t count = (uint64_t)coords->shape[0];
    struct layout out = {0};

    out.boxes = take(&out.bytes, 5 * count * hob_dtype_size(real_of(coords)));
    out.slots = take(&out.bytes, count * sizeof(uint32_t));
    out.state = take(&out.bytes, 2 * count * sizeof(uint32_t));
    out.found = take(&out.bytes, sizeof(uint32_t));
    return out;
}

hob_status vision_nms_cube_prepare(void *device, const struct hob_call *call,
                                   struct hob_prepare *out)
{
    const struct hob_view *coords =
        hob_arg_view(call, VISION_NMS_ARG_BOXES_COORDS);

    (void)device;
    if (coords->shape[0] > INT32_MAX)
        return HOB_ERR_MEMORY;
    out->workspace_bytes = lay_out(coords).bytes;
    return HOB_OK;
}

/* ---- the steps ---- */

/* A call on its device. */
struct run {
    const struct hob_cube_compute *cube;
    void *instance;
    struct hob_call *call;
    const struct hob_view *views[BUFFERS];
    struct hob_view memory[FOUND - BOXES + 1]; /* of the workspace */
    int64_t count, valid;
    double threshold;
};

static void set_views(struct run *run, const struct vision_nms_call *args)
{
    const struct layout layout = lay_out(args->boxes_coords);
    char *base = run->call->workspace;

    run->memory[BOXES - BOXES] = hob_cube_view(
        base + layout.boxes, real_of(args->boxes_coords), 5 * run->count);
    run->memory[SLOTS - BOXES] =
        hob_cube_view(base + layout.slots, HOB_DTYPE_U32, run->count);
    run->memory[STATE - BOXES] =
        hob_cube_view(base + layout.state, HOB_DTYPE_U32, 2 * run->count);
    run->memory[FOUND - BOXES] =
        hob_cube_view(base + layout.found, HOB_DTYPE_U32, 1);
    for (int i = BOXES; i <= FOUND; i++)
        run->views[i] = &run->memory[i - BOXES];
    run->views[COORDS] = args->boxes_coords;
    run->views[SCORES] = args->boxes_scores;
    run->views[OUT_COORDS] = args->out_boxes_coords;
    run->views[OUT_SCORES] = args->out_boxes_scores;
    run->views[OUT_VALID] = args->out_boxes_valid;
    run->views[OUT_FROM] = args->out_from;
}

static hob_status launch(const struct run *run, int32_t step, int64_t block,
                         int64_t groups)
{
    const double least_area =
        run->memory[0].dtype == HOB_DTYPE_F64 ? 0x1p-1000 : 0x1p-100;
    const hob_value numbers[] = {hob_i64(run->count), hob_i64(run->valid),
                                 hob_i64(block), hob_f64(run->threshold),
                                 hob_f64(least_area)};
    const struct hob_cube_launch launch = {
        HOB_CUBE_LAUNCH_INIT_HEAD, .kernel = &kernel,   .group_size = GROUP,
        .groups = groups,          .views = run->views, .view_count = BUFFERS,
        .numbers = numbers,        .number_count = 5,   .constants = &step,
        .constant_count = 1,
    };

    return run->cube->launch(run->instance, run->call, &launch);
}

static hob_status run_steps(const struct run *run)
{
    const int64_t blocks = (run->valid + GROUP - 1) / GROUP;
    hob_status st =
        launch(run, STEP_CLEAR, 0,
               run->cube->groups(run->instance, run->count + 1, GROUP));

    if (!st)
        st = launch(run, STEP_SORT, 0, (run->valid + OWN - 1) / OWN);
    for (int64_t block = 0; block < blocks && !st; block++) {
        st = launch(run, STEP_BLOCK, block, 1);
        if (!st)
            st = launch(run, STEP_SPREAD, block, blocks - block - 1);
    }
    return st ? st : launch(run, STEP_WRITE, 0, 1);
}

/* boxes.valid, which is on the device. */
static hob_status read_valid(struct run *run, const struct hob_view *view)
{
    struct hob_view one = *view;
    int64_t memory = 0;
    hob_status st = run->cube->read(run->instance, &memory, view->data,
                                    hob_dtype_size(view->dtype));

    if (st)
        return run->call->host->fail(run->call, st,
                                     "boxes.valid cannot be read");
    one.data = &memory;
    run->valid = hob_int_at(&one, 0);
    if (run->valid < 0 || run->valid > run->count)
        return run->call->host->fail(
            run->call, HOB_ERR_ARGUMENT,
            "boxes.valid is %" PRId64
            ", it must be 0 to boxes.count, which is %" PRId64,
            run->valid, run->count);
    return HOB_OK;
}

hob_status vision_nms_cube(void *device, struct hob_call *call)
{
    struct vision_nms_call args;
    struct run run = {.call = call};
    hob_status st;

    (void)device;
    vision_nms_unpack(call, &args);
    run.cube = hob_cube_find(call, &run.instance);
    if (!run.cube)
        return HOB_ERR_PLUGIN;
    run.count = args.boxes_coords->shape[0];
    run.threshold = args.iou_threshold;
    st = read_valid(&run, args.boxes_valid);
    if (st)
        return st;
    if (!(args.iou_threshold >= 0 && args.iou_threshold <= 1))
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "iou_threshold is %g, it must be 0 to 1",
                                args.iou_threshold);
    set_views(&run, &args);
    return run_steps(&run);
}
