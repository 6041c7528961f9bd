/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_winograd.c - convolution by 3 x 3 taps as in "Fast Algorithms for
 * Convolutional Neural Networks" (Lavin and Gray 2015): results are computed
 * in tiles of 2 x 2 by 16 products where 36 are due.
 *
 * The weights are transformed once. A task is a box of tiles: it transforms
 * the input under them, then, for one panel of output channels after the
 * other, makes 16 products of matrices and transforms their sums to results.
 *
 * An infinity or NaN in a tile reaches all its results, which it should not:
 * if there is a result that is not finite, all is computed again without
 * transforms.
 */
#include "conv.h"

#include <math.h>
#include <string.h>

enum {
    POINTS = 16,
    TAPS = 9,
    /* Fewer channels, or panels of tiles (by halves), do not pay for the
     * transforms. */
    IN_CHANNELS_LEAST = 8,
    OUT_CHANNELS_LEAST = 16,
    HALF_PANELS_LEAST = 3,
    /* Bytes of the transformed weights. */
    WEIGHT_BYTES_MOST = 128 << 20,
    /* Bytes of the transformed input of a task, about, and its panels. */
    INPUT_BYTES = 384 << 10,
    PANELS_MOST = 4,
    /* Tasks are made smaller while they are fewer. One is worth handing to a
     * thread from about 4 us on. */
    TASKS_WANTED = 16,
    TASK_FLOPS = 1 << 19,
    /* Tiles of one sample below which boxes may hold several samples. */
    SMALL_PLANE = 128
};

struct winograd {
    const struct flex_conv *conv;
    struct flex_conv tiles; /* the same, a tile a position */
    struct flex_conv_boxes boxes;
    struct flex_conv_strip strip;
    int64_t samples;        /* of the batch that boxes count: 1 or all */
    int64_t height, panels; /* of the transformed weights of a group */
    int64_t point_weights;  /* elements between the points of a panel */
    float *weights;         /* [groups, panels, POINTS, channels, height] */
    int64_t width;
    int64_t panels_box; /* of tiles */
    int64_t offsets[POINTS];
    /* Bytes of the parts of a task's scratch. */
    int64_t strip_bytes, gather_bytes, input_bytes, sum_bytes, result_bytes;
    int32_t failed, not_finite; /* set from any thread */
};

int flex_conv_is_winograd(const struct flex_conv *conv)
{
    const struct flex_conv_axis *axis = conv->axis;

    if (!conv->kernels->winograd_input || !flex_conv_in_order(conv) ||
        axis[0].taps != 1 || axis[0].in != 1 || axis[0].positions != 1 ||
        axis[0].first != 0 || conv->in_channels < IN_CHANNELS_LEAST ||
        conv->out_channels < OUT_CHANNELS_LEAST)
        return 0;
    for (int i = 1; i < 3; i++)
        if (axis[i].taps != 3 || axis[i].step != 1 || axis[i].spread != 1 ||
            (axis[i].pace != 1 && axis[i].pace != -1))
            return 0;
    if (conv->groups * conv->in_channels * conv->out_channels >
        WEIGHT_BYTES_MOST / (4 * POINTS))
        return 0;
    return 2 * conv->batch * flex_divide_up(axis[1].positions, 2) *
               flex_divide_up(axis[2].positions, 2) >=
           HALF_PANELS_LEAST * conv->gemm->width;
}

static float *panel_weights(const struct winograd *job, int64_t group,
                            int64_t panel)
{
    return job->weights +
           (group * job->panels + panel) * POINTS * job->point_weights;
}

/* The elements of a tile that tap I of 9 meets first: taps may run backward. */
static int64_t tap_offset(const struct flex_conv *conv, int i)
{
    const struct flex_conv_axis *axis = conv->axis;
    const int64_t y = axis[1].pace > 0 ? i / 3 : 2 - i / 3;
    const int64_t x = axis[2].pace > 0 ? i % 3 : 2 - i % 3;

    return axis[0].weight_first + axis[1].weight_first +
           y * axis[1].weight_pace + axis[2].weight_first +
           x * axis[2].weight_pace;
}

static void weight_range(void *context, int64_t from, int64_t to,
                         uint32_t worker)
{
    const struct winograd *job = context;
    const struct flex_conv *conv = job->conv;
    float taps[TAPS][FLEX_WINOGRAD_LANES] = {{0}};

    (void)worker;
    for (int64_t i = from; i < to; i++) {
        const int64_t group = i / job->panels;
        const int64_t first = i % job->panels * job->height;
        const int64_t rows =
            flex_least(job->height, conv->out_channels - first);
        const float *in = (const float *)(const void *)conv->weight +
                          group * conv->weight_group + first * conv->weight_out;
        float *out = panel_weights(job, group, i % job->panels);

        memset(taps, 0, sizeof(taps));
        for (int64_t c = 0; c < conv->in_channels; c++) {
            for (int t = 0; t < TAPS; t++) {
                const float *tap = in + tap_offset(conv, t);
                for (int64_t j = 0; j < rows; j++)
                    taps[t][j] = tap[j * conv->weight_out];
            }
            conv->kernels->winograd_weight(taps, out, job->point_weights);
            in += conv->weight_in;
            out += job->height;
        }
    }
}

struct task {
    const struct winograd *job;
    struct flex_conv_box box; /* of tiles */
    int64_t group;
    float *input, *sums, *result, *check;
};

/* Where panel PANEL of tiles is transformed: [POINTS, channels, width]. */
static float *panel_input(const struct task *task, int64_t panel)
{
    return task->input +
           panel * POINTS * task->job->conv->in_channels * task->job->width;
}

static void transform_input(const struct task *task, char *strip, float *gather)
{
    const struct winograd *job = task->job;
    const struct flex_conv *conv = job->conv;
    const int64_t tiles = flex_conv_box_positions(&task->box);
    const int64_t base = task->group * conv->in_channels;
    struct flex_conv_pieces pieces[PANELS_MOST];

    for (int64_t p = 0; p * job->width < tiles; p++)
        flex_conv_strip_pieces(
            &job->strip, &job->tiles, &task->box, p * job->width,
            flex_least(job->width, tiles - p * job->width), &pieces[p]);
    for (int64_t c = 0; c < conv->in_channels; c++) {
        flex_conv_strip_fill(&job->strip, &job->tiles, &task->box, base + c,
                             base + c + 1, strip);
        for (int64_t p = 0; p * job->width < tiles; p++) {
            conv->kernels->pack(POINTS, job->offsets, strip, &pieces[p],
                                gather);
            conv->kernels->winograd_input(gather,
                                          panel_input(task, p) + c * job->width,
                                          conv->in_channels * job->width);
        }
    }
}

/* A row of results, often too short for a call of memcpy. */
static void copy_row(float *out, const float *in, int64_t count)
{
    if (count > 32) {
        memcpy(out, in, (size_t)count * sizeof(float));
    } else if (count < 4) {
        for (int64_t i = 0; i < count; i++)
            out[i] = in[i];
    } else { /* the last four overlap the ones before */
        for (int64_t i = 0; i + 4 < count; i += 4)
            memcpy(out + i, in + i, 4 * sizeof(float));
        memcpy(out + count - 4, in + count - 4, 4 * sizeof(float));
    }
}

/* Copy the results of tiles FROM .. FROM + COUNT - 1 of the box. */
static void store_results(const struct task *task, int64_t channel,
                          int64_t from, int64_t count)
{
    const struct winograd *job = task->job;
    const struct flex_conv *conv = job->conv;
    const int64_t height = conv->axis[1].out, width = conv->axis[2].out;
    const int64_t *sizes = task->box.count;
    const float *in = task->result;

    while (count > 0) {
        const int64_t x = from % sizes[3];
        const int64_t y = 2 * (task->box.first[2] + from / sizes[3] % sizes[2]);
        const int64_t n = task->box.first[0] + from / (sizes[3] * sizes[2]);
        const int64_t length = flex_least(sizes[3] - x, count);
        const int64_t at = 2 * (task->box.first[3] + x);
        const int64_t columns = flex_least(2 * length, width - at);
        float *out =
            (float *)(void *)conv->out +
            ((n * conv->groups * conv->out_channels + channel) * height + y) *
                width +
            at;

        copy_row(out, in, columns);
        if (y + 1 < height)
            copy_row(out + width, in + 2 * job->width, columns);
        in += 2 * length;
        from += length;
        count -= length;
    }
}

/* One panel of output channels by one of tiles. */
static void run_panel(const struct task *task, int64_t channels, int64_t tiles)
{
    const struct winograd *job = task->job;
    const struct flex_conv *conv = job->conv;
    const int64_t first = channels * job->height;
    const int64_t rows = flex_least(job->height, conv->out_channels - first);
    const int64_t point = job->height * job->width;
    const float *weights = panel_weights(job, task->group, channels);
    const float *input = panel_input(task, tiles);
    const float *bias = (const float *)(const void *)conv->bias;
    const flex_gemm_kernel_fn tile_fn =
        conv->gemm->tile[FLEX_GEMM_COLUMNS][rows - 1];
    struct flex_gemm_tile tile = {.c_stride = job->width,
                                  .a_stride = job->height,
                                  .b_stride = job->width,
                                  .columns = (int32_t)job->width,
                                  .alpha = 1};

    for (int p = 0; p < POINTS; p++)
        for (int64_t k = 0; k < conv->in_channels; k += conv->gemm->depth) {
            tile.c = task->sums + p * point;
            tile.accumulate = k > 0;
            tile.plain = k == 0;
            tile.next =
                weights + (p + 1 < POINTS ? p + 1 : 0) * job->point_weights;
            tile_fn(flex_least(conv->gemm->depth, conv->in_channels - k),
                    weights + p * job->point_weights + k * job->height,
                    input + (p * conv->in_channels + k) * job->width, &tile);
        }
    for (int64_t i = 0; i < rows; i++) {
        const int64_t channel = task->group * conv->out_channels + first + i;
        conv->kernels->winograd_output(task->sums + i * job->width, point,
                                       bias ? (double)bias[channel] : 0,
                                       task->result,
                                       task->check + tiles * job->width);
        store_results(
            task, channel, tiles * job->width,
            flex_least(job->width, flex_conv_box_positions(&task->box) -
                                       tiles * job->width));
    }
}

/* Returns nonzero if all results are finite. */
static int run_task(const struct winograd *job, int64_t index, char *scratch)
{
    const struct flex_conv *conv = job->conv;
    const int64_t sample = index / job->boxes.count / conv->groups;
    struct task task = {.job = job,
                        .group = index / job->boxes.count % conv->groups};
    char *gather = scratch + job->strip_bytes;
    int64_t tiles, panels;
    float check = 0;

    flex_conv_box(&job->boxes, index % job->boxes.count, sample * job->samples,
                  &task.box);
    tiles = flex_conv_box_positions(&task.box);
    panels = flex_divide_up(tiles, job->width);
    task.input = (float *)(void *)(gather + job->gather_bytes);
    task.sums = task.input + job->input_bytes / 4;
    task.result = task.sums + job->sum_bytes / 4;
    task.check = task.result + job->result_bytes / 4;
    memset(task.check, 0, (size_t)(panels * job->width) * sizeof(float));
    transform_input(&task, scratch, (float *)(void *)gather);
    for (int64_t i = 0; i < job->panels; i++)
        for (int64_t p = 0; p < panels; p++)
            run_panel(&task, i, p);
    for (int64_t i = 0; i < tiles; i++)
        check += task.check[i];
    return check == 0;
}

static int64_t scratch_bytes(const struct winograd *job)
{
    return job->strip_bytes + job->gather_bytes + job->input_bytes +
           job->sum_bytes + job->result_bytes +
           flex_aligned(job->panels_box * job->width * 4);
}

static void task_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct winograd *job = context;
    struct flex_device *device = job->conv->device;
    const uint64_t bytes = (uint64_t)scratch_bytes(job);
    char *scratch = flex_scratch_take(device, bytes);

    (void)worker;
    if (!scratch) {
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = first; i < last; i++)
        if (!run_task(job, i, scratch))
            __atomic_store_n(&job->not_finite, 1, __ATOMIC_RELAXED);
    flex_scratch_give(device, scratch, bytes);
}

/* Describe the tiles: windows of 4 x 4 elements, 2 apart. */
static void make_tiles(struct winograd *job)
{
    job->tiles = *job->conv;
    for (int i = 1; i < 3; i++) {
        struct flex_conv_axis *axis = &job->tiles.axis[i];
        axis->first = flex_least(axis->first, axis->first + 2 * axis->pace);
        axis->pace = 1;
        axis->taps = 4;
        axis->step = 2;
        axis->positions = axis->out = flex_divide_up(axis->positions, 2);
    }
}

static hob_status plan(struct winograd *job)
{
    const struct flex_conv *conv = job->conv;
    const int64_t plane = flex_conv_positions(&job->tiles);
    const int64_t panel_bytes = POINTS * conv->in_channels * job->width * 4;
    const int several = plane < SMALL_PLANE && plane % job->width != 0;
    int64_t want = flex_clamp(INPUT_BYTES / panel_bytes, 1, PANELS_MOST);

    job->samples = several ? conv->batch : 1;
    for (;; want--) {
        flex_conv_cut(&job->boxes, &job->tiles, several, want * job->width,
                      job->width);
        if (want == 1 ||
            job->boxes.count * conv->groups * conv->batch / job->samples >=
                TASKS_WANTED)
            break;
    }
    job->panels_box = flex_divide_up(job->boxes.positions, job->width);
    job->panels = flex_divide_up(conv->out_channels, conv->gemm->height);
    job->height = flex_divide_up(conv->out_channels, job->panels);
    job->panels = flex_divide_up(conv->out_channels, job->height);
    /* Whole vectors are written. */
    job->point_weights = conv->in_channels * job->height + FLEX_WINOGRAD_LANES;

    if (flex_conv_strip_init(&job->strip, &job->tiles, job->boxes.take, 1))
        return HOB_ERR_MEMORY;
    flex_conv_strip_taps(&job->strip, &job->tiles, job->offsets);
    job->strip_bytes = flex_aligned(job->strip.elements * 4);
    job->gather_bytes =
        flex_aligned((POINTS * job->width + FLEX_CONV_SLACK) * 4);
    job->input_bytes = job->panels_box * panel_bytes;
    job->sum_bytes = POINTS * job->height * job->width * 4;
    job->result_bytes = 4 * job->width * 4;
    return HOB_OK;
}

hob_status flex_conv_winograd(const struct flex_conv *conv)
{
    struct winograd job = {.conv = conv, .width = conv->gemm->width};
    int64_t packs, tasks;
    uint64_t bytes;
    double flops;

    if (flex_conv_positions(conv) * conv->batch == 0)
        return HOB_OK;
    make_tiles(&job);
    if (plan(&job))
        return HOB_ERR_MEMORY;
    packs = conv->groups * job.panels;
    bytes = (uint64_t)(packs * POINTS * job.point_weights * 4);
    job.weights = flex_scratch_take(conv->device, bytes);
    if (!job.weights)
        return HOB_ERR_MEMORY;
    tasks = job.boxes.count * conv->groups * conv->batch / job.samples;
    flex_parallel(conv->device, packs,
                  1 + FLEX_GRAIN_DEAR / (conv->in_channels * job.height),
                  weight_range, &job);
    flops = 2.0 * POINTS * (double)(conv->in_channels * conv->out_channels) *
            (double)(conv->groups * conv->batch) *
            (double)flex_conv_positions(&job.tiles);
    flex_parallel(conv->device, tasks,
                  1 + (int64_t)(TASK_FLOPS * (double)tasks / flops), task_range,
                  &job);
    flex_scratch_give(conv->device, job.weights, bytes);
    if (job.not_finite && !job.failed)
        return flex_conv_gemm(conv);
    return job.failed ? HOB_ERR_MEMORY : HOB_OK;
}
