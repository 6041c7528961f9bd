/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_weight.c - the gradient of a convolution's weight as matrix products
 * whose first factor exists one panel at a time.
 *
 * Gradient [taps of all channels, out channels] = columns [taps, positions] by
 * the result's gradient [positions, out channels], summed over boxes of
 * positions. A task is a share of the boxes, by the size of the batch alone,
 * and a range of input channels; it sums in its own memory, and the shares are
 * added in their order. All of that takes SUM_BYTES at most, or the size of
 * the weight.
 */
#include "conv.h"

#include <string.h>

enum {
    /* The most shares that the boxes are summed in, and their memory. */
    SHARES = 8,
    SUM_BYTES = 32 << 20,
    /* Channels are cut into ranges while tasks are fewer, but not below
     * these, since each range packs the gradient again. */
    TASKS_WANTED = 8,
    CHANNELS_LEAST = 16,
    /* Bytes of a strip, about. */
    STRIP_BYTES = 256 << 10,
    /* A task is worth handing to a thread from about 4 us on. */
    TASK_FLOPS = 1 << 19
};

struct gradient {
    const struct flex_conv *conv;
    const char *grad;
    char *out;
    struct flex_conv_boxes boxes;
    struct flex_conv_strip strip;
    int64_t taps, deep; /* deep: taps of all channels of a group */
    int64_t *offsets;   /* of each tap in the strip */
    int64_t shares, ranges;
    int64_t range_channels, strip_channels;
    int64_t height;              /* of a panel of columns */
    int64_t row_stride;          /* elements between its rows */
    int64_t panels, out_columns; /* of the gradient, in a group; padded */
    char *sums;                  /* [shares, groups, deep, out_columns] */
    /* Bytes of the parts of a task's scratch. */
    int64_t strip_bytes, columns_bytes, panel_bytes, task_bytes;
    int32_t failed; /* set from any thread */
};

/* Panel PANEL of the result's gradient in BOX: positions by out channels. */
static void pack_grad(const struct gradient *job,
                      const struct flex_conv_box *box, int64_t group,
                      int64_t panel, char *out)
{
    const struct flex_conv *conv = job->conv;
    const struct flex_conv_axis *axis = conv->axis;
    const int64_t width = conv->gemm->width;
    const int64_t channels = conv->groups * conv->out_channels;
    const int64_t plane = flex_conv_out_plane(conv);
    const int64_t first = group * conv->out_channels + panel * width;
    const int64_t count = flex_least(width, conv->out_channels - panel * width);
    const int64_t positions = box->count[1] * box->count[2] * box->count[3];
    const int64_t at =
        (box->first[1] * axis[1].out + box->first[2]) * axis[2].out +
        box->first[3];

    for (int64_t n = 0; n < box->count[0]; n++)
        conv->gemm->pack_columns(
            positions, count,
            job->grad +
                (((box->first[0] + n) * channels + first) * plane + at) *
                    conv->size,
            plane, out + n * positions * width * conv->size);
}

struct task {
    struct flex_conv_box box;
    int64_t group, first_channel, last_channel;
    char *strip, *columns, *panels;
    char *sums; /* of the group */
    int is_first;
};

/* Add the products of the strip of channels FIRST .. LAST - 1. */
static void add_channels(const struct gradient *job, const struct task *task,
                         int64_t first, int64_t last)
{
    const struct flex_conv *conv = job->conv;
    const int64_t width = conv->gemm->width;
    const int64_t depth = flex_conv_box_positions(&task->box);
    const int64_t base = task->group * conv->in_channels;
    const int64_t end = last * job->taps;
    struct flex_conv_lines lines = {
        .columns = task->box.count[3],
        .count = {task->box.count[0], task->box.count[1], task->box.count[2]},
        .step = {job->strip.sample, job->strip.slice * conv->axis[0].step,
                 job->strip.row * conv->axis[1].step}};
    struct flex_gemm_tile tile = {.c_stride = job->out_columns,
                                  .a_stride = job->row_stride,
                                  .b_stride = width,
                                  .columns = (int32_t)width,
                                  .plain = task->is_first,
                                  .accumulate = !task->is_first,
                                  .alpha = 1};
    int64_t rows[FLEX_GEMM_HEIGHT_MAX];

    flex_conv_strip_fill(&job->strip, conv, &task->box, base + first,
                         base + last, task->strip);
    for (int64_t k = first * job->taps; k < end; k += job->height) {
        const int64_t height = flex_least(job->height, end - k);

        for (int64_t i = 0; i < height; i++)
            rows[i] = ((k + i) / job->taps - first) * job->strip.channel +
                      job->offsets[(k + i) % job->taps];
        conv->kernels->lines(&lines, height, rows, task->strip, task->columns,
                             job->row_stride);
        for (int64_t j = 0; j < job->panels; j++) {
            tile.c =
                task->sums + (k * job->out_columns + j * width) * conv->size;
            tile.next = task->panels +
                        (j + 1 < job->panels ? j + 1 : 0) * job->panel_bytes;
            conv->gemm->tile[FLEX_GEMM_ROWS][height - 1](
                depth, task->columns, task->panels + j * job->panel_bytes,
                &tile);
        }
    }
}

/* Task: a share, a group and a range of channels, the range fastest. */
static void run_task(const struct gradient *job, int64_t index, char *scratch)
{
    const struct flex_conv *conv = job->conv;
    const int64_t share = index / job->ranges / conv->groups;
    const int64_t range = index % job->ranges;
    const int64_t first = share * job->boxes.count / job->shares;
    const int64_t last = (share + 1) * job->boxes.count / job->shares;
    struct task task = {
        .group = index / job->ranges % conv->groups,
        .first_channel = range * job->range_channels,
        .last_channel =
            flex_least((range + 1) * job->range_channels, conv->in_channels),
        .strip = scratch,
        .columns = scratch + job->strip_bytes,
        .panels = scratch + job->strip_bytes + job->columns_bytes};

    task.sums = job->sums + (share * conv->groups + task.group) * job->deep *
                                job->out_columns * conv->size;
    for (int64_t i = first; i < last; i++) {
        flex_conv_box(&job->boxes, i, 0, &task.box);
        task.is_first = i == first;
        for (int64_t j = 0; j < job->panels; j++)
            pack_grad(job, &task.box, task.group, j,
                      task.panels + j * job->panel_bytes);
        for (int64_t c = task.first_channel; c < task.last_channel;
             c += job->strip_channels)
            add_channels(
                job, &task, c,
                flex_least(c + job->strip_channels, task.last_channel));
    }
}

static void task_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct gradient *job = context;
    struct flex_device *device = job->conv->device;
    char *scratch = flex_scratch_take(device, (uint64_t)job->task_bytes);

    (void)worker;
    if (!scratch) {
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = first; i < last; i++)
        run_task(job, i, scratch);
    flex_scratch_give(device, scratch, (uint64_t)job->task_bytes);
}

/* Add the shares and turn them: blocks of out channels of a group. */
static void turn_range(void *context, int64_t from, int64_t to, uint32_t worker)
{
    const struct gradient *job = context;
    const struct flex_conv *conv = job->conv;
    const int64_t blocks = flex_divide_up(conv->out_channels, FLEX_CONV_TURN);
    const int64_t share = conv->groups * job->deep * job->out_columns;

    (void)worker;
    for (int64_t i = from; i < to; i++) {
        const int64_t group = i / blocks;
        const int64_t first = i % blocks * FLEX_CONV_TURN;
        const char *in =
            job->sums +
            (group * job->deep * job->out_columns + first) * conv->size;
        char *out = job->out + (group * conv->out_channels + first) *
                                   job->deep * conv->size;

        for (int64_t k = 0; k < job->deep; k += FLEX_CONV_TURN)
            conv->kernels->turn(
                flex_least(FLEX_CONV_TURN, job->deep - k),
                flex_least(FLEX_CONV_TURN, conv->out_channels - first),
                job->shares, in + k * job->out_columns * conv->size,
                job->out_columns, share, out + k * conv->size, job->deep);
    }
}

static hob_status plan(struct gradient *job)
{
    const struct flex_conv *conv = job->conv;
    const struct flex_gemm_kernels *gemm = conv->gemm;
    const int64_t sum_bytes =
        conv->groups * job->deep * job->out_columns * conv->size;
    int64_t channel_bytes;

    /* Lines must not be cut in a way that a panel of columns cannot hold. */
    flex_conv_cut(&job->boxes, conv, 1, gemm->depth, 1);
    job->shares = flex_clamp(
        flex_least(SUM_BYTES / sum_bytes, job->boxes.count), 1, SHARES);
    job->ranges =
        flex_clamp(flex_divide_up(TASKS_WANTED, job->shares * conv->groups), 1,
                   flex_divide_up(conv->in_channels, CHANNELS_LEAST));
    job->range_channels = flex_divide_up(conv->in_channels, job->ranges);
    job->ranges = flex_divide_up(conv->in_channels, job->range_channels);

    if (flex_conv_strip_init(&job->strip, conv, job->boxes.take, 1))
        return HOB_ERR_MEMORY;
    channel_bytes = job->strip.elements * conv->size;
    job->strip_channels =
        flex_clamp(STRIP_BYTES / channel_bytes, 1, job->range_channels);
    if (flex_conv_strip_init(&job->strip, conv, job->boxes.take,
                             job->strip_channels))
        return HOB_ERR_MEMORY;
    job->height = gemm->height;
    job->strip_bytes = flex_aligned(job->strip.elements * conv->size);
    job->row_stride = flex_conv_row_stride(gemm->depth, conv->size);
    job->columns_bytes = flex_aligned(
        (job->height * job->row_stride + FLEX_CONV_SLACK) * conv->size);
    job->panel_bytes =
        flex_aligned(job->boxes.positions * gemm->width * conv->size);
    job->task_bytes =
        job->strip_bytes + job->columns_bytes + job->panels * job->panel_bytes;
    return HOB_OK;
}

hob_status flex_conv_weight(const struct flex_conv *conv, const char *grad,
                            char *out)
{
    struct gradient job = {
        .conv = conv,
        .grad = grad,
        .out = out,
        .taps = flex_conv_taps(conv),
        .panels = flex_divide_up(conv->out_channels, conv->gemm->width)};
    const double products = (double)conv->batch *
                            (double)flex_conv_positions(conv) *
                            (double)conv->out_channels * (double)conv->groups;
    int64_t sum_bytes, total_bytes, tasks;

    job.deep = conv->in_channels * job.taps;
    job.out_columns = job.panels * conv->gemm->width;
    if (job.deep * conv->out_channels * conv->groups == 0)
        return HOB_OK;
    if (conv->batch * flex_conv_positions(conv) == 0) {
        memset(out, 0,
               (size_t)(conv->groups * conv->out_channels * job.deep *
                        conv->size));
        return HOB_OK;
    }
    if (plan(&job))
        return HOB_ERR_MEMORY;
    sum_bytes = flex_aligned(job.shares * conv->groups * job.deep *
                             job.out_columns * conv->size);
    total_bytes = sum_bytes + 8 * job.taps;
    job.sums = flex_scratch_take(conv->device, (uint64_t)total_bytes);
    if (!job.sums)
        return HOB_ERR_MEMORY;
    job.offsets = (int64_t *)(void *)(job.sums + sum_bytes);
    flex_conv_strip_taps(&job.strip, conv, job.offsets);
    tasks = job.shares * conv->groups * job.ranges;
    flex_parallel(conv->device, tasks,
                  1 + (int64_t)(TASK_FLOPS * (double)tasks /
                                (2 * products * (double)job.deep)),
                  task_range, &job);
    if (!job.failed)
        flex_parallel(
            conv->device,
            conv->groups * flex_divide_up(conv->out_channels, FLEX_CONV_TURN),
            1 + FLEX_GRAIN_CHEAP / (FLEX_CONV_TURN * job.deep * job.shares),
            turn_range, &job);
    flex_scratch_give(conv->device, job.sums, (uint64_t)total_bytes);
    return job.failed ? HOB_ERR_MEMORY : HOB_OK;
}
