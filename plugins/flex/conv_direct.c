/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_direct.c - convolution with one input channel a group (depthwise), and
 * the gradient of its weight: rows of results are sums of weighted rows of the
 * strip, a vector at a time. A task is a plane of one sample; its memory is a
 * strip of some rows.
 */
#include "conv.h"

#include <string.h>

enum {
    /* Positions of a strip, about: it stays in the first-level cache. */
    POSITIONS = 4096,
    /* More taps or more results from one channel are for conv_gemm.c. */
    TAPS = 64,
    OUT_CHANNELS = 4
};

struct direct {
    const struct flex_conv *conv;
    struct flex_conv_boxes boxes;
    struct flex_conv_strip strip;
    int64_t taps;
    int64_t *offsets; /* of each tap in the strip */
    char *weights;    /* [groups * out_channels, taps] */
    int scattered;    /* results do not lie in order */
    int64_t strip_bytes, task_bytes;
    const char *grad; /* of the weight's gradient */
    char *sums;       /* [batch, channels, taps] in double */
    int32_t failed;   /* set from any thread */
};

int flex_conv_is_direct(const struct flex_conv *conv)
{
    return conv->in_channels == 1 && conv->out_channels <= OUT_CHANNELS &&
           flex_conv_taps(conv) <= TAPS;
}

/* The first result of slice Z of BOX in the plane at PLANE. */
static char *slice_at(const struct flex_conv *conv,
                      const struct flex_conv_box *box, int64_t plane, int64_t z,
                      int64_t y, char *base)
{
    const struct flex_conv_axis *axis = conv->axis;
    int64_t at = plane * axis[0].out + axis[0].place +
                 (box->first[1] + z) * axis[0].spread;

    at =
        at * axis[1].out + axis[1].place + (box->first[2] + y) * axis[1].spread;
    at = at * axis[2].out + axis[2].place + box->first[3] * axis[2].spread;
    return base + at * conv->size;
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

/* Results of output channel CHANNEL in BOX. */
static void sum_box(const struct direct *direct,
                    const struct flex_conv_box *box, int64_t channel,
                    const char *strip, char *results)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t plane =
        box->first[0] * conv->groups * conv->out_channels + channel;
    struct flex_conv_direct job = {
        .weights = direct->weights + channel * direct->taps * conv->size,
        .offsets = direct->offsets,
        .taps = direct->taps,
        .rows = box->count[2],
        .columns = box->count[3],
        .strip_row = direct->strip.row * conv->axis[1].step,
        .bias = conv->bias ? number_at(conv, conv->bias, channel) : 0};

    for (int64_t z = 0; z < box->count[1]; z++) {
        job.strip =
            strip + z * conv->axis[0].step * direct->strip.slice * conv->size;
        job.out = direct->scattered
                      ? results
                      : slice_at(conv, box, plane, z, 0, conv->out);
        conv->kernels->direct(&job);
        for (int64_t y = 0; y < job.rows && direct->scattered; y++)
            conv->kernels->spread(job.columns,
                                  results + y * job.columns * conv->size,
                                  conv->axis[2].spread,
                                  slice_at(conv, box, plane, z, y, conv->out));
    }
}

static void weigh_box(const struct direct *direct,
                      const struct flex_conv_box *box, int64_t channel,
                      const char *strip, double *sums)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t plane =
        box->first[0] * conv->groups * conv->out_channels + channel;
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
            slice_at(conv, box, plane, z, 0, (char *)(uintptr_t)direct->grad),
            sums);
    }
}

/* A task is one input plane of one sample. */
static void run_task(const struct direct *direct, int64_t index, char *scratch)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t group = index % conv->groups;
    const int64_t sample = index / conv->groups;
    double *sums = (double *)(void *)direct->sums;
    struct flex_conv_box box;

    if (sums)
        sums += index * conv->out_channels * direct->taps;
    for (int64_t i = 0; i < direct->boxes.count; i++) {
        flex_conv_box(&direct->boxes, i, sample, &box);
        flex_conv_strip_fill(&direct->strip, conv, &box, group, group + 1,
                             scratch);
        for (int64_t c = 0; c < conv->out_channels; c++) {
            const int64_t channel = group * conv->out_channels + c;
            if (sums)
                weigh_box(direct, &box, channel, scratch,
                          sums + c * direct->taps);
            else
                sum_box(direct, &box, channel, scratch,
                        scratch + direct->strip_bytes);
        }
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
        run_task(direct, i, scratch);
    flex_scratch_give(device, scratch, (uint64_t)direct->task_bytes);
}

static hob_status plan(struct direct *direct)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t size = conv->size;
    hob_status st;

    flex_conv_cut(&direct->boxes, conv, 0, POSITIONS, 1);
    st = flex_conv_strip_init(&direct->strip, conv, direct->boxes.take, 1);
    direct->strip_bytes =
        flex_divide_up(direct->strip.elements * size, FLEX_ALIGN) * FLEX_ALIGN;
    direct->task_bytes = direct->strip_bytes + FLEX_ALIGN;
    if (direct->scattered)
        direct->task_bytes += direct->boxes.positions * size;
    return st;
}

static void run(struct direct *direct)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t work =
        flex_conv_positions(conv) * conv->out_channels * (direct->taps + 2);

    flex_parallel(conv->device, conv->batch * conv->groups,
                  1 + 4 * FLEX_GRAIN_CHEAP / (work + 1), task_range, direct);
}

/* The weights, taps in the order in which the strip's offsets are listed. */
static void list_weights(const struct direct *direct)
{
    const struct flex_conv *conv = direct->conv;
    const struct flex_conv_axis *axis = conv->axis;
    char *out = direct->weights;

    for (int64_t c = 0; c < conv->groups * conv->out_channels; c++) {
        const int64_t from = c / conv->out_channels * conv->weight_group +
                             c % conv->out_channels * conv->weight_out +
                             axis[0].weight_first + axis[1].weight_first +
                             axis[2].weight_first;
        for (int64_t z = 0; z < axis[0].taps; z++)
            for (int64_t y = 0; y < axis[1].taps; y++)
                for (int64_t x = 0; x < axis[2].taps; x++) {
                    const int64_t at = from + z * axis[0].weight_pace +
                                       y * axis[1].weight_pace +
                                       x * axis[2].weight_pace;
                    memcpy(out, conv->weight + at * conv->size,
                           (size_t)conv->size);
                    out += conv->size;
                }
    }
}

hob_status flex_conv_direct(const struct flex_conv *conv)
{
    struct direct direct = {.conv = conv,
                            .taps = flex_conv_taps(conv),
                            .scattered = !flex_conv_in_order(conv)};
    const uint64_t bytes =
        (uint64_t)(direct.taps *
                   (8 + conv->size * conv->groups * conv->out_channels)) +
        1;

    if (flex_conv_positions(conv) * conv->batch == 0)
        return HOB_OK;
    if (plan(&direct))
        return HOB_ERR_MEMORY;
    direct.offsets = flex_scratch_take(conv->device, bytes);
    if (!direct.offsets)
        return HOB_ERR_MEMORY;
    direct.weights = (char *)(direct.offsets + direct.taps);
    flex_conv_strip_taps(&direct.strip, conv, direct.offsets);
    list_weights(&direct);
    run(&direct);
    flex_scratch_give(conv->device, direct.offsets, bytes);
    return direct.failed ? HOB_ERR_MEMORY : HOB_OK;
}

/* OUT = the sums of all samples, in their order. */
static void add_samples(const struct direct *direct, char *out)
{
    const struct flex_conv *conv = direct->conv;
    const int64_t count = conv->groups * conv->out_channels * direct->taps;
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
    struct direct direct = {
        .conv = conv, .taps = flex_conv_taps(conv), .grad = grad};
    const int64_t sums =
        conv->batch * conv->groups * conv->out_channels * direct.taps;
    const uint64_t bytes = (uint64_t)(8 * (direct.taps + sums)) + 1;

    if (flex_conv_positions(conv) > 0 && plan(&direct))
        return HOB_ERR_MEMORY;
    direct.offsets = flex_scratch_take(conv->device, bytes);
    if (!direct.offsets)
        return HOB_ERR_MEMORY;
    direct.sums = (char *)(direct.offsets + direct.taps);
    memset(direct.sums, 0, (size_t)(8 * sums));
    if (flex_conv_positions(conv) > 0) {
        flex_conv_strip_taps(&direct.strip, conv, direct.offsets);
        run(&direct);
    }
    add_samples(&direct, out);
    flex_scratch_give(conv->device, direct.offsets, bytes);
    return direct.failed ? HOB_ERR_MEMORY : HOB_OK;
}
