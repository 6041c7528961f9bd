/* SPDX-License-Identifier: Apache-2.0 */
#include "resize.h"

#include <math.h>
#include <string.h>

/* The elements that one result reads; of a window there may be any number. */
struct reading {
    int64_t first; /* may lie before the first element, or behind the last */
    int64_t count;
    double weights[6]; /* of a filter's taps */
    double weight;     /* of each of a window's */
};

static int64_t most_taps(const struct flex_resize_rule *rule)
{
    switch (rule->mode) {
    case FLEX_RESIZE_BILINEAR:
        return 2;
    case FLEX_RESIZE_BICUBIC:
        return 4;
    case FLEX_RESIZE_LANCZOS3:
        return 6;
    case FLEX_RESIZE_AVERAGE: /* a window may begin and end within elements */
        return (rule->in - 1) / rule->out + 2;
    default:
        return 1;
    }
}

/*
 * The element at or before the place of result I, and how far behind it that
 * is, in [0, 1). Places are fractions, so the split is exact.
 */
static int64_t place(const struct flex_resize_rule *rule, int64_t i,
                     double *out_behind)
{
    const int64_t in = rule->in, out = rule->out;
    int64_t factor = in, start = 0, den = out, num, whole;

    if (rule->mode == FLEX_RESIZE_NEAREST_EXACT) { /* (i + 1/2) in / out */
        factor = 2 * in;
        start = in;
        den = 2 * out;
    } else if (rule->mode != FLEX_RESIZE_NEAREST && rule->align_corners) {
        factor = in - 1; /* i (in - 1) / (out - 1) */
        den = out > 1 ? out - 1 : 1;
    } else if (rule->mode != FLEX_RESIZE_NEAREST) {
        factor = 2 * in; /* (i + 1/2) in / out - 1/2 */
        start = in - out;
        den = 2 * out;
    }
    num = i * factor + start;
    if (rule->mode == FLEX_RESIZE_BILINEAR && num < 0)
        num = 0;                   /* nothing before the first */
    whole = (num + den) / den - 1; /* downwards: num > -den */
    *out_behind = (double)(num - whole * den) / (double)den;
    return whole;
}

/* At whole distances the sine would be of the rounding of pi: an element there
 * would be read by a weight of no meaning, be it infinite. */
static double lanczos3(double d)
{
    const double pi = 3.14159265358979323846;

    if (d == rint(d))
        return d == 0;
    return sin(pi * d) * sin(pi * d / 3) / (pi * d * (pi * d / 3));
}

/* Keys's filter with a = -3/4 (IEEE Trans. ASSP 29(6), 1981). */
static void cubic(double t, double *weights)
{
    const double a = -0.75;

    weights[0] = ((a * t - 2 * a) * t + a) * t;
    weights[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    weights[2] = ((-(a + 2) * t + 2 * a + 3) * t - a) * t;
    weights[3] = (-a * t + a) * t * t;
}

/* Lanczos leaves out what is not there; the other weights sum up to 1. */
static void lanczos(const struct flex_resize_rule *rule, double t,
                    struct reading *reading)
{
    double sum = 0;

    for (int k = 0; k < 6; k++) {
        const int64_t at = reading->first + k;

        reading->weights[k] =
            at >= 0 && at < rule->in ? lanczos3(t + 2 - k) : 0;
        sum += reading->weights[k];
    }
    for (int k = 0; k < 6; k++)
        reading->weights[k] /= sum;
}

static void read_rule(const struct flex_resize_rule *rule, int64_t i,
                      struct reading *out)
{
    double t;

    out->count = most_taps(rule);
    if (rule->mode == FLEX_RESIZE_AVERAGE) {
        out->first = i * rule->in / rule->out;
        out->count =
            ((i + 1) * rule->in + rule->out - 1) / rule->out - out->first;
        out->weight = 1 / (double)out->count;
        return;
    }
    out->first = place(rule, i, &t);
    switch (rule->mode) {
    case FLEX_RESIZE_BILINEAR:
        out->weights[0] = 1 - t;
        out->weights[1] = t;
        break;
    case FLEX_RESIZE_BICUBIC:
        out->first -= 1;
        cubic(t, out->weights);
        break;
    case FLEX_RESIZE_LANCZOS3:
        out->first -= 2;
        lanczos(rule, t, out);
        break;
    default:
        out->weights[0] = 1;
        break;
    }
}

/* What lies outside is the edge. */
static int64_t element(const struct flex_resize_rule *rule,
                       const struct reading *reading, int64_t k)
{
    const int64_t at = reading->first + k;

    return at < 0 ? 0 : at >= rule->in ? rule->in - 1 : at;
}

static double weight(const struct flex_resize_rule *rule,
                     const struct reading *reading, int64_t k)
{
    return rule->mode == FLEX_RESIZE_AVERAGE ? reading->weight
                                             : reading->weights[k];
}

/* What result I reads, with the taps that meet at the edge as one: infinite
 * gradients by weights of either sign would be no number, where what counts is
 * the weights' sum. */
static void read_joined(const struct flex_resize_rule *rule, int64_t i,
                        struct reading *out)
{
    read_rule(rule, i, out);
    if (rule->mode == FLEX_RESIZE_AVERAGE)
        return;
    for (int64_t k = 0; k + 1 < out->count; k++)
        if (element(rule, out, k) == element(rule, out, k + 1)) {
            out->weights[k + 1] += out->weights[k];
            out->weights[k] = 0;
        }
}

/* The most results that read one element, in COUNTS of RULE's elements. */
static int64_t most_readers(const struct flex_resize_rule *rule,
                            int64_t *counts)
{
    int64_t most = 0;

    memset(counts, 0, (size_t)rule->in * sizeof(*counts));
    for (int64_t i = 0; i < rule->out; i++) {
        struct reading reading;

        read_joined(rule, i, &reading);
        for (int64_t k = 0; k < reading.count; k++)
            if (weight(rule, &reading, k) != 0) {
                int64_t *count = &counts[element(rule, &reading, k)];

                *count += 1;
                most = *count > most ? *count : most;
            }
    }
    return most;
}

static void put(struct flex_resize_axis *axis, int64_t slot, int64_t at,
                double value)
{
    axis->at[slot] = (int32_t)at;
    if (axis->size == 8)
        ((double *)axis->weights)[slot] = value;
    else
        ((float *)axis->weights)[slot] = (float)value;
}

static void fill(struct flex_resize_axis *axis,
                 const struct flex_resize_rule *rule, int64_t *counts)
{
    for (int64_t i = 0; i < rule->out; i++) {
        struct reading reading;

        if (counts)
            read_joined(rule, i, &reading);
        else
            read_rule(rule, i, &reading);
        for (int64_t k = 0; k < reading.count; k++) {
            const int64_t at = element(rule, &reading, k);
            const double value = weight(rule, &reading, k);

            if (!counts)
                put(axis, k * axis->out + i, at, value);
            else if (value != 0)
                put(axis, counts[at]++ * axis->out + at, i, value);
        }
    }
}

/* How far the elements of one result lie apart. */
static void measure(struct flex_resize_axis *axis)
{
    axis->is_same = axis->in == axis->out;
    axis->span = 1;
    for (int64_t i = 0; i < axis->out; i++) {
        int32_t low = INT32_MAX, high = 0;

        for (int64_t k = 0; k < axis->taps; k++) {
            const int64_t slot = k * axis->out + i;
            const double value = axis->size == 8
                                     ? ((double *)axis->weights)[slot]
                                     : (double)((float *)axis->weights)[slot];

            if (value == 0)
                continue;
            low = axis->at[slot] < low ? axis->at[slot] : low;
            high = axis->at[slot] > high ? axis->at[slot] : high;
            axis->is_same &= value == 1 && axis->at[slot] == i;
        }
        axis->is_same &= low == i;
        if (low <= high && high - low + 1 > axis->span)
            axis->span = high - low + 1;
    }
}

hob_status flex_resize_axis_make(struct flex_device *device,
                                 const struct flex_resize_rule *rule,
                                 int is_transposed, uint32_t size,
                                 struct flex_resize_axis *out)
{
    const uint64_t count_bytes = (uint64_t)rule->in * sizeof(int64_t);
    int64_t *counts = NULL;
    int64_t slots;

    *out = (struct flex_resize_axis){.size = size};
    if (is_transposed) {
        counts = flex_scratch_take(device, count_bytes);
        if (!counts)
            return HOB_ERR_MEMORY;
        out->in = rule->out;
        out->out = rule->in;
        out->taps = most_readers(rule, counts);
        memset(counts, 0, (size_t)count_bytes);
    } else {
        out->in = rule->in;
        out->out = rule->out;
        out->taps = most_taps(rule);
    }
    slots = (out->taps * out->out + 1) / 2 * 2; /* weights stay aligned */
    out->bytes = (uint64_t)slots * (sizeof(*out->at) + size);
    out->at = flex_scratch_take(device, out->bytes);
    if (out->at) {
        memset(out->at, 0, (size_t)out->bytes);
        out->weights = out->at + slots;
        fill(out, rule, counts);
        measure(out);
    }
    flex_scratch_give(device, counts, count_bytes);
    return out->at ? HOB_OK : HOB_ERR_MEMORY;
}

void flex_resize_axis_release(struct flex_device *device,
                              struct flex_resize_axis *axis)
{
    flex_scratch_give(device, axis->at, axis->bytes);
    axis->at = NULL;
}
