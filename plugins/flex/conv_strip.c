/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_strip.c - boxes of positions, and the strips of input under them.
 */
#include "conv.h"

#include <string.h>

/* Elements of a strip; only dilations far above all use ask for more. */
enum { ELEMENTS_MOST = 1 << 30 };

const struct flex_conv_kernels *
flex_conv_kernels(const struct flex_device *device)
{
    return FLEX_BY_ISA(device->isa, flex_conv_kernels);
}

/* How many of SIZE, at most WANT, a box takes if every INNER positions come
 * together: as few panels as possible, then as few boxes. */
static int64_t take_of(int64_t size, int64_t want, int64_t inner, int64_t width)
{
    int64_t best = 1, best_panels = INT64_MAX;

    want = flex_clamp(want, 1, size);
    for (int64_t boxes = flex_divide_up(size, want);; boxes++) {
        const int64_t take = flex_divide_up(size, boxes);
        const int64_t rest = size - take * (boxes - 1);
        const int64_t panels =
            (boxes - 1) * flex_divide_up(take * inner, width) +
            flex_divide_up(rest * inner, width);

        if (take < 1 || 2 * take < want || rest < 1)
            break;
        if (panels < best_panels) {
            best = take;
            best_panels = panels;
        }
        if (take == 1)
            break;
    }
    return best_panels == INT64_MAX ? want : best;
}

void flex_conv_cut(struct flex_conv_boxes *boxes, const struct flex_conv *conv,
                   int samples, int64_t want, int64_t width)
{
    int64_t inner = 1;

    boxes->grid[0] = samples ? conv->batch : 1;
    for (int i = 0; i < 3; i++)
        boxes->grid[1 + i] = conv->axis[i].positions;
    boxes->count = boxes->positions = 1;
    for (int i = 3; i >= 0; i--) {
        const int64_t size = boxes->grid[i];

        boxes->take[i] = want > 1 ? take_of(size, want, inner, width) : 1;
        want = boxes->take[i] < size ? 1 : want / size;
        inner *= boxes->take[i];
        boxes->boxes[i] = flex_divide_up(size, boxes->take[i]);
        boxes->count *= boxes->boxes[i];
    }
    boxes->positions = inner;
}

void flex_conv_box(const struct flex_conv_boxes *boxes, int64_t index,
                   int64_t sample, struct flex_conv_box *out)
{
    for (int i = 3; i >= 0; i--) {
        out->first[i] = index % boxes->boxes[i] * boxes->take[i];
        out->count[i] =
            flex_least(boxes->take[i], boxes->grid[i] - out->first[i]);
        index /= boxes->boxes[i];
    }
    out->first[0] += sample;
}

/* The last input element that position 0 takes, less the first. */
static int64_t span(const struct flex_conv_axis *axis)
{
    const int64_t reach = (axis->taps - 1) * axis->pace;

    return reach < 0 ? -reach : reach;
}

hob_status flex_conv_strip_init(struct flex_conv_strip *strip,
                                const struct flex_conv *conv,
                                const int64_t count[4], int64_t channels)
{
    int64_t extent[3];
    int failed;

    for (int i = 0; i < 3; i++) {
        const struct flex_conv_axis *axis = &conv->axis[i];
        const int64_t last = axis->first + (axis->taps - 1) * axis->pace;

        strip->low[i] = flex_least(axis->first, last);
        extent[i] = (count[1 + i] - 1) * axis->step + span(axis) + 1;
    }
    strip->remainder = flex_divide_up(extent[2], conv->axis[2].step);
    strip->row = strip->remainder * flex_least(extent[2], conv->axis[2].step);
    failed = __builtin_mul_overflow(strip->row, extent[1], &strip->slice);
    failed |= __builtin_mul_overflow(strip->slice, extent[0], &strip->channel);
    failed |= __builtin_mul_overflow(strip->channel, channels, &strip->sample);
    failed |= __builtin_mul_overflow(strip->sample, count[0], &strip->elements);
    if (failed || strip->elements > ELEMENTS_MOST)
        return HOB_ERR_MEMORY;
    strip->elements += FLEX_CONV_SLACK;
    return HOB_OK;
}

void flex_conv_strip_taps(const struct flex_conv_strip *strip,
                          const struct flex_conv *conv, int64_t *offsets)
{
    const struct flex_conv_axis *axis = conv->axis;
    int64_t at[3];

    for (int64_t z = 0; z < axis[0].taps; z++)
        for (int64_t y = 0; y < axis[1].taps; y++)
            for (int64_t x = 0; x < axis[2].taps; x++) {
                const int64_t tap[3] = {z, y, x};
                for (int i = 0; i < 3; i++)
                    at[i] =
                        axis[i].first + tap[i] * axis[i].pace - strip->low[i];
                *offsets++ = at[0] * strip->slice + at[1] * strip->row +
                             at[2] % axis[2].step * strip->remainder +
                             at[2] / axis[2].step;
            }
}

void flex_conv_weight_taps(const struct flex_conv *conv, int64_t *offsets)
{
    const struct flex_conv_axis *axis = conv->axis;

    for (int64_t z = 0; z < axis[0].taps; z++)
        for (int64_t y = 0; y < axis[1].taps; y++)
            for (int64_t x = 0; x < axis[2].taps; x++)
                *offsets++ = axis[0].weight_first + z * axis[0].weight_pace +
                             axis[1].weight_first + y * axis[1].weight_pace +
                             axis[2].weight_first + x * axis[2].weight_pace;
}

int64_t flex_conv_place(const struct flex_conv *conv,
                        const struct flex_conv_box *box, int64_t channel,
                        int64_t n, int64_t z, int64_t y)
{
    const struct flex_conv_axis *axis = conv->axis;
    int64_t at =
        (box->first[0] + n) * conv->groups * conv->out_channels + channel;

    at =
        at * axis[0].out + axis[0].place + (box->first[1] + z) * axis[0].spread;
    at =
        at * axis[1].out + axis[1].place + (box->first[2] + y) * axis[1].spread;
    return at * axis[2].out + axis[2].place + box->first[3] * axis[2].spread;
}

/* ROWS rows of a slice; the first is at input row IN, element AT of it. */
static void fill_rows(const struct flex_conv_strip *strip,
                      const struct flex_conv *conv, const char *in,
                      int64_t rows, int64_t at, char *out)
{
    const struct flex_conv_axis *axis = &conv->axis[2];
    const int64_t count = strip->remainder;
    struct flex_conv_pad job = {.rows = rows,
                                .step = axis->step,
                                .in_row = axis->in,
                                .out_row = strip->row};

    for (int64_t i = 0; i < strip->row / count; i++, at++) {
        /* Element at + q * step lies inside for q in before .. last - 1. */
        int64_t last = at < axis->in ? (axis->in - 1 - at) / axis->step + 1 : 0;

        job.before =
            at >= 0 ? 0 : flex_least(count, flex_divide_up(-at, axis->step));
        last = flex_clamp(last, job.before, count);
        job.count = last - job.before;
        job.behind = count - last;
        conv->kernels->pad(
            &job,
            job.count ? in + (at + job.before * axis->step) * conv->size : in,
            out + i * count * conv->size);
    }
}

/* One slice (all of its rows) from input slice IN; AT of height and width. */
static void fill_slice(const struct flex_conv_strip *strip,
                       const struct flex_conv *conv, const char *in,
                       const int64_t at[2], char *out)
{
    const struct flex_conv_axis *axis = conv->axis;
    const int64_t row_bytes = strip->row * conv->size;
    const int64_t rows = strip->slice / strip->row;
    const int64_t before = flex_clamp(-at[0], 0, rows);
    const int64_t last = flex_clamp(axis[1].in - at[0], before, rows);

    memset(out, 0, (size_t)(before * row_bytes));
    if (last > before)
        fill_rows(strip, conv, in + (at[0] + before) * axis[2].in * conv->size,
                  last - before, at[1], out + before * row_bytes);
    memset(out + last * row_bytes, 0, (size_t)((rows - last) * row_bytes));
}

void flex_conv_strip_fill(const struct flex_conv_strip *strip,
                          const struct flex_conv *conv,
                          const struct flex_conv_box *box, int64_t first,
                          int64_t last, char *out)
{
    const struct flex_conv_axis *axis = conv->axis;
    const int64_t channels = conv->groups * conv->in_channels;
    const int64_t slice_bytes = strip->slice * conv->size;
    const int64_t in_bytes = axis[1].in * axis[2].in * conv->size;
    const int64_t slices = strip->channel / strip->slice;
    const int64_t z = box->first[1] * axis[0].step + strip->low[0];
    const int64_t at[2] = {box->first[2] * axis[1].step + strip->low[1],
                           box->first[3] * axis[2].step + strip->low[2]};

    for (int64_t n = 0; n < box->count[0]; n++)
        for (int64_t c = first; c < last; c++) {
            const char *plane =
                conv->in +
                ((box->first[0] + n) * channels + c) * axis[0].in * in_bytes;
            char *to =
                out +
                (n * strip->sample + (c - first) * strip->channel) * conv->size;
            for (int64_t i = z; i < z + slices; i++, to += slice_bytes) {
                if (i < 0 || i >= axis[0].in)
                    memset(to, 0, (size_t)slice_bytes);
                else
                    fill_slice(strip, conv, plane + i * in_bytes, at, to);
            }
        }
}

void flex_conv_strip_pieces(const struct flex_conv_strip *strip,
                            const struct flex_conv *conv,
                            const struct flex_conv_box *box, int64_t from,
                            int64_t count, struct flex_conv_pieces *out)
{
    const int64_t *sizes = box->count;
    int64_t done = 0;

    out->count = 0;
    while (done < count) {
        const int64_t x = from % sizes[3];
        const int64_t y = from / sizes[3] % sizes[2];
        const int64_t z = from / (sizes[3] * sizes[2]) % sizes[1];
        const int64_t n = from / (sizes[3] * sizes[2] * sizes[1]);
        const int64_t length = flex_least(sizes[3] - x, count - done);

        out->column[out->count] = (int32_t)done;
        out->offset[out->count++] = n * strip->sample +
                                    z * conv->axis[0].step * strip->slice +
                                    y * conv->axis[1].step * strip->row + x;
        done += length;
        from += length;
    }
    out->column[out->count] = (int32_t)done;
}
