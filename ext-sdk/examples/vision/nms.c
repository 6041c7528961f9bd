/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nms.c - the kernel of vision.nms: read the boxes in order of their scores,
 * let greedy.c choose, copy what it chose.
 */
#define VISION_PROTOTYPES_ONLY
#include "vision_glue.h"

#include "element.h"
#include "greedy.h"
#include "order.h"

#include <hob/ext/kernel.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* f16 and bf16 are compared in f32. */
static uint32_t real_size(const struct hob_view *coords)
{
    return coords->dtype == HOB_DTYPE_F64 ? sizeof(double) : sizeof(float);
}

/* The next part of the workspace; only counted where BASE is NULL. */
static void *take(char *base, uint64_t *used, uint64_t count, uint64_t size)
{
    uint64_t at = *used;

    *used += (count * size + 63) / 64 * 64;
    return base ? base + at : NULL;
}

/* Lay out the memory for COUNT boxes at BASE, or only say how much it is. */
static uint64_t lay_out(char *base, int64_t count, uint32_t real,
                        struct vision_greedy *greedy,
                        struct vision_scored **out_scored,
                        struct vision_scored **out_spare)
{
    uint64_t used = 0, n = (uint64_t)count;

    memset(greedy, 0, sizeof(*greedy));
    for (greedy->table_size = 16; greedy->table_size < 2 * count;)
        greedy->table_size *= 2;
    *out_scored =
        (struct vision_scored *)take(base, &used, n, sizeof(**out_scored));
    *out_spare =
        (struct vision_scored *)take(base, &used, n, sizeof(**out_spare));
    for (int i = 0; i < 5; i++) {
        greedy->boxes[i] = take(base, &used, n, real);
        greedy->cells_boxes[i] = take(base, &used, n, real);
    }
    greedy->cell_of = (int64_t *)take(base, &used, n, sizeof(int64_t));
    greedy->out_kept = (int64_t *)take(base, &used, n, sizeof(int64_t));
    greedy->cells =
        (struct vision_cell *)take(base, &used, n, sizeof(struct vision_cell));
    greedy->levels = (struct vision_level *)take(base, &used, VISION_LEVELS,
                                                 sizeof(struct vision_level));
    greedy->table = (int64_t *)take(base, &used, (uint64_t)greedy->table_size,
                                    sizeof(int64_t));
    return used;
}

hob_status vision_nms_flex_prepare(void *device, const struct hob_call *call,
                                   struct hob_prepare *out)
{
    const struct hob_view *coords =
        hob_arg_view(call, VISION_NMS_ARG_BOXES_COORDS);
    struct vision_scored *scored, *spare;
    struct vision_greedy greedy;

    (void)device;
    /* About 200 bytes a box: no overflow below this, and no such memory. */
    if (coords->shape[0] > INT64_C(1) << 50)
        return HOB_ERR_MEMORY;
    out->workspace_bytes = lay_out(NULL, coords->shape[0], real_size(coords),
                                   &greedy, &scored, &spare);
    return HOB_OK;
}

/* Whether box I takes part; its key for sorting if so. */
static int read_score(const struct vision_nms_call *args, int64_t i,
                      uint64_t *out_key)
{
    const struct hob_view *coords = args->boxes_coords;
    double score =
        vision_load(args->boxes_scores, hob_offset1(args->boxes_scores, i));

    if (isnan(score))
        return 0;
    for (int j = 0; j < 4; j++)
        if (!isfinite(vision_load(coords, hob_offset2(coords, i, j))))
            return 0;
    *out_key = vision_key(score);
    return 1;
}

/* The COUNT boxes of SCORED, in that order, as GREEDY wants them. */
static void read_boxes(const struct hob_view *coords,
                       const struct vision_scored *scored,
                       struct vision_greedy *greedy)
{
    for (int64_t i = 0; i < greedy->count; i++) {
        for (int j = 0; j < 4; j++) {
            double x =
                vision_load(coords, hob_offset2(coords, scored[i].index, j));

            if (coords->dtype == HOB_DTYPE_F64)
                ((double *)greedy->boxes[j])[i] = x;
            else
                ((float *)greedy->boxes[j])[i] = (float)x;
        }
    }
}

/* KEPT boxes, those of SCORED at greedy->out_kept, then zeros. Results are
 * the core's own memory, so contiguous. */
static void write_results(const struct vision_nms_call *args,
                          const struct vision_scored *scored,
                          const struct vision_greedy *greedy, int64_t kept)
{
    const struct hob_view *coords = args->boxes_coords;
    int64_t *from = (int64_t *)args->out_from->data;

    vision_zero(args->out_boxes_coords);
    vision_zero(args->out_boxes_scores);
    for (int64_t i = 0; i < coords->shape[0]; i++)
        from[i] = -1;
    for (int64_t i = 0; i < kept; i++) {
        int64_t slot = scored[greedy->out_kept[i]].index;

        from[i] = slot;
        vision_copy(args->out_boxes_scores, i, args->boxes_scores,
                    hob_offset1(args->boxes_scores, slot));
        for (int j = 0; j < 4; j++)
            vision_copy(args->out_boxes_coords, 4 * i + j, coords,
                        hob_offset2(coords, slot, j));
    }
    vision_store_int(args->out_boxes_valid, kept);
}

hob_status vision_nms_flex(void *device, struct hob_call *call)
{
    struct vision_nms_call args;
    struct vision_scored *scored, *spare;
    struct vision_greedy greedy;
    int64_t count, valid, kept;

    (void)device;
    vision_nms_unpack(call, &args);
    count = args.boxes_coords->shape[0];
    valid = hob_int_at(args.boxes_valid, 0);
    if (valid < 0 || valid > count)
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "boxes.valid is %" PRId64
                                ", it must be 0 to boxes.count, which is "
                                "%" PRId64,
                                valid, count);
    if (!(args.iou_threshold >= 0 && args.iou_threshold <= 1))
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "iou_threshold is %g, it must be 0 to 1",
                                args.iou_threshold);
    (void)lay_out((char *)call->workspace, count, real_size(args.boxes_coords),
                  &greedy, &scored, &spare);
    for (int64_t i = 0; i < valid; i++) {
        scored[greedy.count].index = i;
        greedy.count += read_score(&args, i, &scored[greedy.count].key);
    }
    vision_sort(scored, spare, greedy.count);
    read_boxes(args.boxes_coords, scored, &greedy);
    greedy.threshold = args.iou_threshold;
    kept = args.boxes_coords->dtype == HOB_DTYPE_F64
               ? vision_greedy_f64(&greedy)
               : vision_greedy_f32(&greedy);
    write_results(&args, scored, &greedy, kept);
    return HOB_OK;
}
