/* SPDX-License-Identifier: Apache-2.0 */
/*
 * detect.c - the kernel of vision.detect: bright blobs of a picture.
 *
 * One walk joins each bright pixel with those above and left of it, the next
 * numbers the blobs and measures them. The result _labels is the memory for
 * both: -1 where it is dark, else first the number of a pixel of the same blob
 * that comes no later, its own for the blob's first; then the blob's number;
 * and at last its slot, -1 where it has none.
 */
#define VISION_PROTOTYPES_ONLY
#include "vision_glue.h"

#include "element.h"
#include "order.h"

#include <hob/ext/kernel.h>

#include <string.h>

struct blob {
    double sum; /* of its pixels; then their mean, rounded to a score */
    int64_t pixels;
    int64_t x1, y1, x2, y2;
    int64_t slot;
};

/* Blobs touch at corners at most, so every second pixel may be one. */
static int64_t most_blobs(const struct hob_view *image)
{
    return (hob_view_count(image) + 1) / 2;
}

hob_status vision_detect_flex_prepare(void *device, const struct hob_call *call,
                                      struct hob_prepare *out)
{
    const struct hob_view *image = hob_arg_view(call, VISION_DETECT_ARG_IMAGE);

    (void)device;
    if (hob_view_count(image) > INT64_C(1) << 50)
        return HOB_ERR_MEMORY; /* and no overflow below */
    out->workspace_bytes =
        (uint64_t)most_blobs(image) *
        (sizeof(struct blob) + 2 * sizeof(struct vision_scored));
    return HOB_OK;
}

/* The first pixel of the blob of PIXEL; those on the way there are led to
 * the one after the next, so that ways stay short. */
static int64_t first_of(int64_t *labels, int64_t pixel)
{
    while (labels[pixel] != pixel) {
        labels[pixel] = labels[labels[pixel]];
        pixel = labels[pixel];
    }
    return pixel;
}

static void join(int64_t *labels, int64_t a, int64_t b)
{
    a = first_of(labels, a);
    b = first_of(labels, b);
    labels[a > b ? a : b] = a < b ? a : b;
}

static void join_all(const struct hob_view *image, double threshold,
                     int64_t *labels)
{
    int64_t width = image->shape[1];

    for (int64_t y = 0; y < image->shape[0]; y++)
        for (int64_t x = 0; x < width; x++) {
            int64_t pixel = y * width + x;

            labels[pixel] = -1;
            if (!(vision_load(image, hob_offset2(image, y, x)) > threshold))
                continue;
            labels[pixel] = pixel;
            if (x > 0 && labels[pixel - 1] >= 0)
                join(labels, pixel, pixel - 1);
            if (y > 0 && labels[pixel - width] >= 0)
                join(labels, pixel, pixel - width);
        }
}

static void add_pixel(struct blob *blob, int64_t x, int64_t y, double bright)
{
    blob->sum += bright;
    blob->pixels++;
    blob->x1 = x < blob->x1 ? x : blob->x1;
    blob->x2 = x + 1 > blob->x2 ? x + 1 : blob->x2;
    blob->y2 = y + 1; /* rows come in order */
}

/* Number the blobs in the order of their first pixels; how many there are. */
static int64_t measure(const struct hob_view *image, int64_t *labels,
                       struct blob *blobs)
{
    int64_t width = image->shape[1], count = 0;

    for (int64_t y = 0; y < image->shape[0]; y++)
        for (int64_t x = 0; x < width; x++) {
            int64_t pixel = y * width + x, other = labels[pixel];

            if (other < 0)
                continue;
            if (other == pixel) {
                blobs[count] = (struct blob){
                    .x1 = x, .y1 = y, .x2 = x + 1, .y2 = y + 1, .slot = -1};
                labels[pixel] = count++;
            } else {
                /* It comes before, so it has its blob's number already. */
                labels[pixel] = labels[other];
            }
            add_pixel(&blobs[labels[pixel]], x, y,
                      vision_load(image, hob_offset2(image, y, x)));
        }
    return count;
}

/* Slot SLOT gets BLOB. Results are the core's own memory, so contiguous. */
static void write_slot(const struct vision_detect_call *args, int64_t slot,
                       const struct blob *blob)
{
    const struct hob_view *coords = args->out_boxes_coords;

    vision_store(args->out_boxes_scores, slot, blob->sum);
    vision_store(coords, 4 * slot, (double)blob->x1);
    vision_store(coords, 4 * slot + 1, (double)blob->y1);
    vision_store(coords, 4 * slot + 2, (double)blob->x2);
    vision_store(coords, 4 * slot + 3, (double)blob->y2);
}

hob_status vision_detect_flex(void *device, struct hob_call *call)
{
    struct vision_detect_call args;
    struct vision_scored *scored, *spare;
    struct blob *blobs = (struct blob *)call->workspace;
    int64_t *labels, count;

    (void)device;
    vision_detect_unpack(call, &args);
    labels = (int64_t *)args.out_labels->data;
    scored = (struct vision_scored *)(void *)(blobs + most_blobs(args.image));
    spare = scored + most_blobs(args.image);
    join_all(args.image, args.threshold, labels);
    count = measure(args.image, labels, blobs);
    for (int64_t i = 0; i < count; i++) {
        blobs[i].sum = vision_round(args.out_boxes_scores,
                                    blobs[i].sum / (double)blobs[i].pixels);
        scored[i].key = vision_key(blobs[i].sum);
        scored[i].index = i;
    }
    vision_sort(scored, spare, count);
    vision_zero(args.out_boxes_coords);
    vision_zero(args.out_boxes_scores);
    vision_store_int(args.out_boxes_valid,
                     count < args.max_boxes ? count : args.max_boxes);
    for (int64_t i = 0; i < count && i < args.max_boxes; i++) {
        blobs[scored[i].index].slot = i;
        write_slot(&args, i, &blobs[scored[i].index]);
    }
    for (int64_t i = 0; i < hob_view_count(args.image); i++)
        if (labels[i] >= 0)
            labels[i] = blobs[labels[i]].slot;
    return HOB_OK;
}
