/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_direct.c - convolution with few channels on a side: rows of results are
 * sums of weighted rows of the strip, some vectors of a few planes at a time,
 * without columns. And the gradient of the weight with few output channels.
 */
#include "conv.h"

#include <string.h>

enum {
    HEIGHT = FLEX_CONV_DIRECT_HEIGHT,
    /* Positions of a box, about, and elements of a strip. */
    POSITIONS = 4096,
    STRIP = 32 << 10,
    /* Panels of columns pay with more output channels than these, and so many
     * taps of all channels: the more, the fuller the vectors of a row are. */
    CHANNELS_FEW = 16,
    TAPS_FEW = 80,
    TAPS_FEW_FULL = 160,
    /* Of all channels: they are summed one after the other, and longer sums
     * would lose more than the blocks of conv_gemm.c do. */
    TAPS_MOST = 1280,
    /* Of the gradient of the weight. */
    WEIGHT_TAPS_MOST = 64,
    WEIGHT_BYTES_MOST = 32 << 20
};

struct direct {
    const struct flex_conv *conv;
    struct flex_conv_boxes boxes;
    struct flex_conv_strip strip;
    int64_t taps, deep; /* deep: taps of all channels of a group */
    int64_t *offsets;   /* of each of these in the strip */
    char *weights;      /* by HEIGHT channels or what is left: [deep, height] */
    int scattered;      /* results do not lie in order */
    int64_t strip_bytes, task_bytes;
    const char *grad; /* of the weight's gradient */
    char *sums;       /* [batch, groups * out_channels, deep] in double */
    int32_t failed;   /* set from any thread */
};

int flex_conv_is_direct(const struct flex_conv *conv)
{
    const int64_t columns = conv->axis[2].positions;
    const int64_t taps = flex_conv_taps(conv);
    const int64_t deep = conv->in_channels * taps;
    const int64_t lanes =
        conv->kernels->lanes * flex_divide_up(columns, conv->kernels->lanes);

    if (deep == 0 || deep > TAPS_MOST)
        return 0;
    if (conv->out_channels <= HEIGHT)
        return 1;
    if (taps == 1 || 4 * columns < 3 * lanes)
        return 0;
    return conv->out_channels <= CHANNELS_FEW ||
           deep <= (16 * columns < 15 * lanes ? TAPS_FEW : TAPS_FEW_FULL);
}

/* Sums of every sample, in doubles. */
static int64_t sum_bytes(const struct flex_conv *conv)
{
    return 8 * conv->batch * conv->groups * conv->out_channels *
           conv->in_channels * flex_conv_taps(conv);
}

int flex_conv_is_direct_weight(const struct flex_conv *conv)
{
    return conv->out_channels <= HEIGHT &&
           flex_conv_taps(conv) <= WEIGHT_TAPS_MOST &&
           sum_bytes(conv) <= WEIGHT_BYTES_MOST;
}

static double number_at(const struct flex_conv *conv, const char *list,
                        int64_t index)
{
    float single;
    double value;

    if (conv->size == 4) {
        memcpy(&single, list + 4 * index, 4);
        return (double)single;
    }
    memcpy(&value, list + 8 * index, 8);
    return value;
}

/* Results of COUNT output channels from CHANNEL on, in BOX. */
static void sum_box(const struct direct *direct,
                    const struct flex_conv_box *box, int64_t channel,
                    int64_t count, const char *strip, char *results)
{
    const struct flex_conv *conv = direct->conv;
    struct flex_conv_direct job = {
        .weights = direct->weights + channel * direct->deep * conv->size,
        .offsets = direct->offsets,
        .taps = direct->deep,
        .height = count,
        .rows = box->count[2],
        .columns = box->count[3],
        .strip_row = direct->strip.row * conv->axis[1].step,
        .plane = direct->scattered ? direct->boxes.positions
                                   : flex_conv_out_plane(conv)};

    for (int64_t j = 0; j < count && conv->bias; j++)
        job.bias[j] = number_at(conv, conv->bias, channel + j);
    for (int64_t z = 0; z < box->count[1]; z++) {
        job.strip =
            strip + z * conv->axis[0].step * direct->strip.slice * conv->size;
        job.out =
            direct->scattered
                ? results
                : conv->out +
                      flex_conv_place(conv, box, channel, 0, z, 0) * conv->size;
        conv->kernels->direct(&job);
        for (int64_t i = 0; i < count * job.rows && direct->scattered; i++) {
            const int64_t j = i / job.rows, y = i % job.rows;
            conv->kernels->spread(
                job.columns,
                results + (j * job.plane + y * job.columns) * conv->size,
                conv->axis[2].spread,
                conv->out + flex_conv_place(conv, box, channel + j, 0, z, y) *
                                conv->size);
        }
    }
}

static void weigh_box(const struct direct *direct,
                      const struct flex_conv_box *box, int64_t channel,
                      const char *strip, double *sums)
{
    const struct flex_conv *conv = direct->conv;
    struct flex_conv_direct job = {.offsets = direct->offsets,
                                   .taps = direct->taps,
                                   .rows = box->count[2],
                                   .columns = box->count[3],
                                   .strip_row =
                                       direct->strip.row * conv->axis[1].step};

    for (int64_t z = 0; z < box->count[1]; z++) {
        job.strip =
            strip + z * conv->axis[0].step * direct->strip.slice * conv->size;
        conv->kernels->direct_weight(
            &job,
            direct->grad +
                flex_conv_place(conv, box, channel, 0, z, 0) * conv->size,
            sums);
    }
}

/* A box of one group. */
static void sum_task(const struct direct *direct, int64_t index, char *scratch)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t group = index / direct->boxes.count % conv->groups;
    const int64_t sample = index / direct->boxes.count / conv->groups;
    const int64_t end = (group + 1) * conv->out_channels;
    struct flex_conv_box box;

    flex_conv_box(&direct->boxes, index % direct->boxes.count, sample, &box);
    flex_conv_strip_fill(&direct->strip, conv, &box, group * conv->in_channels,
                         (group + 1) * conv->in_channels, scratch);
    for (int64_t c = group * conv->out_channels; c < end; c += HEIGHT)
        sum_box(direct, &box, c, flex_least(HEIGHT, end - c), scratch,
                scratch + direct->strip_bytes);
}

/* A group of one sample. */
static void weigh_task(const struct direct *direct, int64_t index,
                       char *scratch)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t first = index % conv->groups * conv->in_channels;
    double *sums = (double *)(void *)direct->sums +
                   index * conv->out_channels * direct->deep;
    struct flex_conv_box box;

    for (int64_t i = 0; i < direct->boxes.count * conv->in_channels; i++) {
        const int64_t channel = i % conv->in_channels;

        flex_conv_box(&direct->boxes, i / conv->in_channels,
                      index / conv->groups, &box);
        flex_conv_strip_fill(&direct->strip, conv, &box, first + channel,
                             first + channel + 1, scratch);
        for (int64_t c = 0; c < conv->out_channels; c++)
            weigh_box(direct, &box,
                      index % conv->groups * conv->out_channels + c, scratch,
                      sums + c * direct->deep + channel * direct->taps);
    }
}

static void task_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct direct *direct = context;
    struct flex_device *device = direct->conv->device;
    char *scratch = flex_scratch_take(device, (uint64_t)direct->task_bytes);

    (void)worker;
    if (!scratch) {
        __atomic_store_n(&direct->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t i = first; i < last; i++)
        if (direct->sums)
            weigh_task(direct, i, scratch);
        else
            sum_task(direct, i, scratch);
    flex_scratch_give(device, scratch, (uint64_t)direct->task_bytes);
}

/* The strip has CHANNELS channels at a time. */
static hob_status plan(struct direct *direct, int64_t channels)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t size = conv->size;

    flex_conv_cut(&direct->boxes, conv, 0,
                  flex_clamp(STRIP / channels, 64, POSITIONS), 1);
    if (flex_conv_strip_init(&direct->strip, conv, direct->boxes.take,
                             channels))
        return HOB_ERR_MEMORY;
    direct->strip_bytes = flex_aligned(direct->strip.elements * size);
    direct->task_bytes = direct->strip_bytes + FLEX_ALIGN;
    if (direct->scattered)
        direct->task_bytes += HEIGHT * direct->boxes.positions * size;
    return HOB_OK;
}

static void run(struct direct *direct)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t boxes = direct->sums ? 1 : direct->boxes.count;
    const int64_t work = flex_conv_positions(conv) / boxes *
                         conv->out_channels * (direct->deep + 2);

    flex_parallel(conv->device, conv->batch * conv->groups * boxes,
                  1 + 4 * FLEX_GRAIN_CHEAP / (work + 1), task_range, direct);
}

/* The offsets of all taps of all channels in the strip. */
static void list_offsets(const struct direct *direct)
{
    flex_conv_strip_taps(&direct->strip, direct->conv, direct->offsets);
    for (int64_t i = direct->taps; i < direct->deep; i++)
        direct->offsets[i] =
            direct->offsets[i - direct->taps] + direct->strip.channel;
}

/* The weights, taps in the order of their offsets; TAPS has room for those of
 * a channel. */
static void list_weights(const struct direct *direct, int64_t *taps)
{
    const struct flex_conv *conv = direct->conv;
    char *out = direct->weights;

    flex_conv_weight_taps(conv, taps);
    for (int64_t i = 0; i < conv->groups * conv->out_channels;) {
        const int64_t first = i % conv->out_channels;
        const int64_t height = flex_least(HEIGHT, conv->out_channels - first);
        const int64_t from = i / conv->out_channels * conv->weight_group +
                             first * conv->weight_out;

        for (int64_t k = 0; k < direct->deep; k++)
            for (int64_t j = 0; j < height; j++) {
                const int64_t at = from + j * conv->weight_out +
                                   k / direct->taps * conv->weight_in +
                                   taps[k % direct->taps];
                memcpy(out, conv->weight + at * conv->size, (size_t)conv->size);
                out += conv->size;
            }
        i += height;
    }
}

hob_status flex_conv_direct(const struct flex_conv *conv)
{
    struct direct direct = {.conv = conv,
                            .taps = flex_conv_taps(conv),
                            .deep = conv->in_channels * flex_conv_taps(conv),
                            .scattered = !flex_conv_in_order(conv)};
    const uint64_t bytes =
        (uint64_t)(direct.deep *
                   (8 + conv->size * conv->groups * conv->out_channels)) +
        1;

    if (flex_conv_positions(conv) * conv->batch == 0)
        return HOB_OK;
    if (plan(&direct, conv->in_channels))
        return HOB_ERR_MEMORY;
    direct.offsets = flex_scratch_take(conv->device, bytes);
    if (!direct.offsets)
        return HOB_ERR_MEMORY;
    direct.weights = (char *)(direct.offsets + direct.deep);
    list_weights(&direct, direct.offsets); /* there for the time being */
    list_offsets(&direct);
    run(&direct);
    flex_scratch_give(conv->device, direct.offsets, bytes);
    return direct.failed ? HOB_ERR_MEMORY : HOB_OK;
}

/* OUT = the sums of all samples, in their order. */
static void add_samples(const struct direct *direct, char *out)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t count = conv->groups * conv->out_channels * direct->deep;
    const double *sums = (const double *)(const void *)direct->sums;

    for (int64_t i = 0; i < count; i++) {
        double total = 0;
        float single;
        for (int64_t n = 0; n < conv->batch; n++)
            total += sums[n * count + i];
        single = (float)total;
        if (conv->size == 4)
            memcpy(out + 4 * i, &single, 4);
        else
            memcpy(out + 8 * i, &total, 8);
    }
}

hob_status flex_conv_direct_weight(const struct flex_conv *conv,
                                   const char *grad, char *out)
{
    struct direct direct = {.conv = conv,
                            .taps = flex_conv_taps(conv),
                            .deep = conv->in_channels * flex_conv_taps(conv),
                            .grad = grad};
    const int64_t sums = sum_bytes(conv);
    const uint64_t bytes = (uint64_t)(8 * direct.taps + sums) + 1;

    if (flex_conv_positions(conv) > 0 && plan(&direct, 1))
        return HOB_ERR_MEMORY;
    direct.offsets = flex_scratch_take(conv->device, bytes);
    if (!direct.offsets)
        return HOB_ERR_MEMORY;
    direct.sums = (char *)(direct.offsets + direct.taps);
    memset(direct.sums, 0, (size_t)sums);
    if (flex_conv_positions(conv) > 0) {
        flex_conv_strip_taps(&direct.strip, conv, direct.offsets);
        run(&direct);
    }
    add_samples(&direct, out);
    flex_scratch_give(conv->device, direct.offsets, bytes);
    return direct.failed ? HOB_ERR_MEMORY : HOB_OK;
}
