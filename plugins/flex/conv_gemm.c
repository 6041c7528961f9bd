/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_gemm.c - convolution as a matrix product whose second factor exists
 * one panel at a time.
 *
 * Results [out channels, positions] = weights [out channels, taps of all
 * channels] by columns [taps, positions]. The weights are packed once. A task
 * is a box of positions: for each block of the depth it copies the strip of
 * input that the box takes, then makes panel after panel of columns from it
 * and multiplies each by all weights while it is in the first-level cache. So
 * a task's memory is a strip, a panel and, where results do not lie in order,
 * their block: some hundred KiB whatever the sizes are.
 */
#include "conv.h"

#include <string.h>

enum {
    /* Positions of a task: halves down to two panels while tasks are few. */
    POSITIONS = 448,
    TASKS_WANTED = 16,
    /* A task is worth handing to a thread from about 4 us on. */
    TASK_FLOPS = 1 << 19,
    /* Positions of one sample below which boxes may hold several. */
    SMALL_PLANE = 448,
    PACK_PIECE_BYTES = 64 << 10
};

struct product {
    const struct flex_conv *conv;
    struct flex_conv_boxes boxes;
    struct flex_conv_strip strip;
    int64_t samples;    /* of the batch that boxes count themselves: 1 or all */
    int64_t taps, deep; /* deep: taps of all channels */
    int ones; /* the last block ends with a row of ones, weighed by the bias */
    int64_t depth, blocks;  /* of the product, cut into equal blocks */
    int64_t channels_block; /* channels that a block may touch, at most */
    int64_t height, panels; /* of the packed weights */
    int64_t row_stride;     /* elements between their rows */
    int64_t panel_bytes;
    char *packed;
    int64_t *offsets, *weight_offsets; /* of each tap */
    int64_t panels_box;                /* panels of columns in a box, at most */
    int pointwise;                     /* columns are the input as it is */
    int scattered;                     /* results do not lie in order */
    /* Bytes of the parts of a task's scratch. */
    int64_t strip_bytes, column_bytes, result_bytes, task_bytes;
    int32_t failed; /* set from any thread */
};

static char *packed_at(const struct product *job, int64_t group, int64_t block,
                       int64_t panel)
{
    return job->packed + ((group * job->blocks + block) * job->panels + panel) *
                             job->panel_bytes;
}

/* Taps in block BLOCK, and whether it has the row of ones behind them. */
static int64_t depth_of(const struct product *job, int64_t block)
{
    return flex_least(job->depth, job->deep - block * job->depth);
}

static int has_ones(const struct product *job, int64_t block)
{
    return job->ones && block == job->blocks - 1;
}

static void fill_ones(const struct product *job, char *out, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (job->conv->size == 4)
            ((float *)(void *)out)[i] = 1;
        else
            ((double *)(void *)out)[i] = 1;
}

/* Row I of a panel: taps FIRST .. FIRST + DEPTH - 1 of the weights at IN. */
static void pack_row(const struct product *job, const char *in, int64_t first,
                     int64_t depth, char *out)
{
    const struct flex_conv *conv = job->conv;
    int64_t c = first / job->taps, t = first % job->taps;

    if (job->weight_offsets[job->taps - 1] == job->taps - 1 &&
        conv->weight_in == job->taps) { /* they lie in order */
        memcpy(out, in + first * conv->size, (size_t)(depth * conv->size));
        return;
    }
    while (depth > 0) {
        const char *from = in + c * conv->weight_in * conv->size;
        for (; t < job->taps && depth > 0; t++, depth--) {
            const char *tap = from + job->weight_offsets[t] * conv->size;
            if (conv->size == 4)
                memcpy(out, tap, 4);
            else
                memcpy(out, tap, 8);
            out += conv->size;
        }
        t = 0;
        c++;
    }
}

static void pack_range(void *context, int64_t from, int64_t to, uint32_t worker)
{
    const struct product *job = context;
    const struct flex_conv *conv = job->conv;
    const int64_t row_bytes = job->row_stride * conv->size;

    (void)worker;
    for (int64_t i = from; i < to; i++) {
        const int64_t panel = i % job->panels;
        const int64_t block = i / job->panels % job->blocks;
        const int64_t group = i / job->panels / job->blocks;
        const int64_t depth = depth_of(job, block);
        char *out = packed_at(job, group, block, panel);

        for (int64_t j = 0; j < job->height; j++, out += row_bytes) {
            const int64_t channel = panel * job->height + j;
            if (channel >= conv->out_channels) {
                /* Their sums are not stored, but NaNs are slow. */
                memset(out, 0, (size_t)row_bytes);
                continue;
            }
            if (depth > 0)
                pack_row(job,
                         conv->weight + (group * conv->weight_group +
                                         channel * conv->weight_out) *
                                            conv->size,
                         block * job->depth, depth, out);
            if (has_ones(job, block) && conv->bias)
                memcpy(out + depth * conv->size,
                       conv->bias +
                           (group * conv->out_channels + channel) * conv->size,
                       (size_t)conv->size);
            else /* no taps at all */
                memset(out + depth * conv->size, 0, (size_t)conv->size);
        }
    }
}

/* Put the results of a box, rows LDC apart, where they belong. */
static void scatter(const struct product *job, const struct flex_conv_box *box,
                    int64_t group, const char *from, int64_t ldc)
{
    const struct flex_conv *conv = job->conv;
    const int64_t spread = conv->axis[2].spread;

    for (int64_t c = 0; c < conv->out_channels; c++) {
        const char *row = from + c * ldc * conv->size;
        const int64_t channel = group * conv->out_channels + c;

        for (int64_t n = 0; n < box->count[0]; n++)
            for (int64_t z = 0; z < box->count[1]; z++)
                for (int64_t y = 0; y < box->count[2]; y++) {
                    char *out = conv->out +
                                flex_conv_place(conv, box, channel, n, z, y) *
                                    conv->size;
                    if (spread == 1)
                        memcpy(out, row, (size_t)(box->count[3] * conv->size));
                    else
                        conv->kernels->spread(box->count[3], row, spread, out);
                    row += box->count[3] * conv->size;
                }
    }
}

/* One panel of columns: positions FROM .. FROM + COUNT - 1 of BOX. */
static void make_columns(const struct product *job,
                         const struct flex_conv_box *box, int64_t group,
                         int64_t from, int64_t count, int64_t first,
                         int64_t depth, const int64_t *rows, const char *strip,
                         char *columns)
{
    const struct flex_conv *conv = job->conv;
    struct flex_conv_pieces pieces;

    if (job->pointwise) {
        const int64_t plane = flex_conv_in_plane(conv);
        const int64_t channel =
            (box->first[0] * conv->groups + group) * conv->in_channels + first;
        conv->gemm->pack_rows(
            depth, count,
            conv->in + (channel * plane + box->first[3] + from) * conv->size,
            plane, columns);
        return;
    }
    flex_conv_strip_pieces(&job->strip, conv, box, from, count, &pieces);
    conv->kernels->pack(depth, rows, strip, &pieces, columns);
}

struct task {
    struct flex_conv_box box;
    int64_t group;
    char *strip, *columns;
    int64_t *rows; /* of a block: each one's offset in the strip */
    char *out;     /* of the first channel of the group at the first position */
    int64_t ldc;
};

static void run_block(const struct product *job, const struct task *task,
                      int64_t block)
{
    const struct flex_conv *conv = job->conv;
    const int64_t first = block * job->depth;
    const int64_t depth = depth_of(job, block);
    const int64_t positions = flex_conv_box_positions(&task->box);
    const int64_t width = conv->gemm->width;
    const int ones = has_ones(job, block);
    struct flex_gemm_tile tile = {.c_stride = task->ldc,
                                  .a_stride = job->row_stride,
                                  .b_stride = width,
                                  .plain = block == 0,
                                  .accumulate = block > 0,
                                  .alpha = 1};

    if (!job->pointwise && depth > 0) {
        const int64_t base = task->group * conv->in_channels;
        const int64_t channel = first / job->taps;

        flex_conv_strip_fill(&job->strip, conv, &task->box, base + channel,
                             base + flex_divide_up(first + depth, job->taps),
                             task->strip);
        for (int64_t k = 0; k < depth; k++)
            task->rows[k] =
                ((first + k) / job->taps - channel) * job->strip.channel +
                job->offsets[(first + k) % job->taps];
    }
    for (int64_t from = 0; from < positions; from += width) {
        tile.columns = (int32_t)flex_least(width, positions - from);
        if (depth > 0)
            make_columns(job, &task->box, task->group, from, tile.columns,
                         first, depth, task->rows, task->strip, task->columns);
        if (ones)
            fill_ones(job, task->columns + depth * width * conv->size, width);
        for (int64_t i = 0; i < job->panels; i++) {
            const int64_t row = i * job->height;
            const int64_t rows =
                flex_least(job->height, conv->out_channels - row);

            tile.c = task->out + (row * task->ldc + from) * conv->size;
            tile.next = packed_at(job, task->group, block,
                                  i + 1 < job->panels ? i + 1 : 0);
            conv->gemm->tile[FLEX_GEMM_ROWS][rows - 1](
                depth + ones, packed_at(job, task->group, block, i),
                task->columns, &tile);
        }
    }
}

static void run_task(const struct product *job, int64_t index, char *scratch)
{
    const struct flex_conv *conv = job->conv;
    const int64_t box = index % job->boxes.count;
    const int64_t sample = index / job->boxes.count / conv->groups;
    struct task task = {.group = index / job->boxes.count % conv->groups};
    const int64_t channel = task.group * conv->out_channels;
    char *results = scratch + job->strip_bytes + job->column_bytes;

    flex_conv_box(&job->boxes, box, sample * job->samples, &task.box);
    task.strip = scratch;
    task.columns = scratch + job->strip_bytes;
    task.rows = (int64_t *)(void *)(results + job->result_bytes);
    task.out = job->scattered ? results
                              : conv->out + flex_conv_place(conv, &task.box,
                                                            channel, 0, 0, 0) *
                                                conv->size;
    task.ldc = job->scattered ? job->panels_box * conv->gemm->width
                              : flex_conv_out_plane(conv);
    for (int64_t i = 0; i < job->blocks; i++)
        run_block(job, &task, i);
    if (job->scattered)
        scatter(job, &task.box, task.group, results, task.ldc);
}

static void task_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct product *job = context;
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

/* A convolution by one tap a channel, without strides and padding, takes the
 * planes as they are, as one row each. */
static int flatten(struct flex_conv *conv)
{
    for (int i = 0; i < 3; i++) {
        const struct flex_conv_axis *axis = &conv->axis[i];
        if (axis->taps != 1 || axis->step != 1 || axis->first != 0 ||
            axis->in != axis->positions || axis->out != axis->positions)
            return 0;
    }
    conv->axis[2].in = conv->axis[2].positions = conv->axis[2].out =
        flex_conv_positions(conv);
    for (int i = 0; i < 2; i++)
        conv->axis[i].in = conv->axis[i].positions = conv->axis[i].out = 1;
    return 1;
}

static hob_status plan(struct product *job)
{
    const struct flex_conv *conv = job->conv;
    const int64_t width = conv->gemm->width;
    const double flops = 2.0 * (double)flex_conv_positions(conv) *
                         (double)conv->out_channels * (double)job->deep;
    const int several = flex_conv_positions(conv) < SMALL_PLANE / 2 &&
                        flex_conv_positions(conv) % width != 0;
    int64_t want = POSITIONS;

    job->samples = several ? conv->batch : 1;
    for (;; want /= 2) {
        int64_t tasks;
        flex_conv_cut(&job->boxes, conv, several, want, width);
        tasks = job->boxes.count * conv->groups * conv->batch / job->samples;
        if (tasks >= TASKS_WANTED || want < 4 * width ||
            flops * (double)(conv->groups * conv->batch) <
                2.0 * TASK_FLOPS * (double)tasks)
            break;
    }
    job->scattered = !flex_conv_in_order(conv) || job->boxes.take[0] > 1;
    job->pointwise = job->pointwise && !several;
    job->panels_box = flex_divide_up(job->boxes.positions, width);

    job->blocks =
        flex_clamp(flex_divide_up(job->deep, conv->gemm->depth), 1, INT64_MAX);
    job->depth = flex_divide_up(job->deep, job->blocks);
    job->ones = conv->bias || job->deep == 0;
    job->channels_block =
        job->taps ? flex_least(conv->in_channels,
                               flex_divide_up(job->depth, job->taps) + 1)
                  : 0;
    job->panels = flex_divide_up(conv->out_channels, conv->gemm->height);
    job->height = flex_divide_up(conv->out_channels, job->panels);
    job->panels = flex_divide_up(conv->out_channels, job->height);
    job->row_stride = flex_conv_row_stride(job->depth + 1, conv->size);
    job->panel_bytes = flex_aligned(job->height * job->row_stride * conv->size);

    if (!job->pointwise && job->deep > 0) {
        if (flex_conv_strip_init(&job->strip, conv, job->boxes.take,
                                 job->channels_block))
            return HOB_ERR_MEMORY;
        job->strip_bytes = flex_aligned(job->strip.elements * conv->size);
    }
    job->column_bytes =
        flex_aligned(((job->depth + 1) * width + FLEX_CONV_SLACK) * conv->size);
    if (job->scattered)
        job->result_bytes = flex_aligned(conv->out_channels * job->panels_box *
                                         width * conv->size);
    job->task_bytes = job->strip_bytes + job->column_bytes + job->result_bytes +
                      8 * job->depth + FLEX_ALIGN;
    return HOB_OK;
}

hob_status flex_conv_gemm(const struct flex_conv *given)
{
    struct flex_conv conv = *given;
    struct flex_device *device = conv.device;
    struct product job = {.conv = &conv, .taps = flex_conv_taps(&conv)};
    int64_t packs, tasks, packed_bytes, total_bytes;
    double flops;
    char *shared;

    if (flex_conv_positions(&conv) * conv.batch * conv.out_channels == 0)
        return HOB_OK;
    job.deep = conv.in_channels * job.taps;
    job.pointwise = flatten(&conv);
    if (plan(&job))
        return HOB_ERR_MEMORY;
    packs = conv.groups * job.blocks * job.panels;
    packed_bytes = packs * job.panel_bytes;
    total_bytes = packed_bytes + 16 * job.taps + FLEX_ALIGN;
    shared = flex_scratch_take(device, (uint64_t)total_bytes);
    if (!shared)
        return HOB_ERR_MEMORY;
    job.packed = shared;
    job.offsets = (int64_t *)(void *)(shared + packed_bytes);
    job.weight_offsets = job.offsets + job.taps;
    flex_conv_weight_taps(&conv, job.weight_offsets);
    if (!job.pointwise && job.deep > 0)
        flex_conv_strip_taps(&job.strip, &conv, job.offsets);

    tasks = job.boxes.count * conv.groups * conv.batch / job.samples;
    flops = 2.0 * (double)(conv.groups * conv.batch) *
            (double)(flex_conv_positions(&conv) * conv.out_channels) *
            (double)(job.deep + 1);
    flex_parallel(device, packs, 1 + PACK_PIECE_BYTES / (job.panel_bytes + 1),
                  pack_range, &job);
    /* Tasks of a few microseconds are taken several at a time. */
    flex_parallel(device, tasks,
                  1 + (int64_t)(TASK_FLOPS * (double)tasks / flops), task_range,
                  &job);
    flex_scratch_give(device, shared, (uint64_t)total_bytes);
    return job.failed ? HOB_ERR_MEMORY : HOB_OK;
}
