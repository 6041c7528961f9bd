/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_nms.c - vision.nms against a plain greedy loop over all pairs.
 *
 * Where coordinates are small integers and the threshold is a binary fraction,
 * every step is exact in f32 as in f64, so the loop in double is the truth for
 * all dtypes; elsewhere it takes the steps of the op's definition in its
 * precision. Kept boxes are compared slot by slot: that is, the indices are.
 */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4000 };

/* One set of boxes and what is asked. */
struct boxes {
    double coords[4 * MOST];
    double scores[MOST];
    int64_t count;
    int64_t valid;
    double threshold;
};

/* ---- the reference ---- */

struct rank {
    double score;
    int64_t slot;
};

static int by_score(const void *a, const void *b)
{
    const struct rank *x = (const struct rank *)a, *y = (const struct rank *)b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->slot < y->slot ? -1 : 1;
}

/* X in f64, or rounded to f32. */
static double step(double x, int single)
{
    return single ? (double)(float)x : x;
}

static double area_of(const double *box, int single)
{
    double width = step(box[2] - box[0], single);
    double height = step(box[3] - box[1], single);
    double area = step(width * height, single);
    double least = single ? 0x1p-100 : 0x1p-1000;

    return width > 0 && height > 0 && area >= least && !isinf(area) ? area : 0;
}

static int is_above(const double *a, const double *b, double threshold,
                    int single)
{
    double width = step(fmin(a[2], b[2]) - fmax(a[0], b[0]), single);
    double height = step(fmin(a[3], b[3]) - fmax(a[1], b[1]), single);
    double both, rest;

    if (!(area_of(a, single) > 0 && area_of(b, single) > 0))
        return 0;
    both = step(fmax(width, 0) * fmax(height, 0), single);
    rest = step(step(area_of(a, single) + area_of(b, single), single) - both,
                single);
    return both > step(step(threshold, single) * rest, single);
}

/* The slots that are kept, in order; how many. */
static int64_t reference(const struct boxes *boxes, int single, int64_t *kept)
{
    static struct rank ranks[MOST];
    int64_t live = 0, count = 0;

    for (int64_t i = 0; i < boxes->valid; i++) {
        const double *box = boxes->coords + 4 * i;

        if (isnan(boxes->scores[i]) || !isfinite(box[0]) || !isfinite(box[1]) ||
            !isfinite(box[2]) || !isfinite(box[3]))
            continue;
        ranks[live].score = boxes->scores[i];
        ranks[live++].slot = i;
    }
    qsort(ranks, (size_t)live, sizeof(ranks[0]), by_score);
    for (int64_t i = 0; i < live; i++) {
        const double *box = boxes->coords + 4 * ranks[i].slot;
        int64_t j = 0;

        while (j < count && !is_above(boxes->coords + 4 * kept[j], box,
                                      boxes->threshold, single))
            j++;
        if (j == count)
            kept[count++] = ranks[i].slot;
    }
    return count;
}

/* ---- the op ---- */

/* BOXES on DEVICE; in a layout with strides if ODD. */
static struct vision_boxes upload(struct context *context, hob_device *device,
                                  const struct boxes *boxes, hob_dtype dtype,
                                  int odd)
{
    static double turned[4 * MOST], spread[2 * MOST];
    int64_t n = boxes->count, shape[2] = {n, 4}, across[2] = {4, n};
    int64_t pairs[2] = {n, 2}, low[2] = {0, 1}, steps[2] = {1, 1};
    hob_scope *scope = context->scope;
    struct vision_boxes out;

    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < 4; j++)
            turned[j * n + i] = boxes->coords[4 * i + j];
        spread[2 * i] = NAN;
        spread[2 * i + 1] = boxes->scores[i];
    }
    out.count = n;
    out.valid = hob_from_i64(scope, device, &boxes->valid, NULL, 0);
    out.coords = tensor(context, device, dtype, boxes->coords, shape, 2);
    out.scores = tensor(context, device, dtype, boxes->scores, &n, 1);
    if (!odd)
        return out;
    out.valid = hob_cast(scope, out.valid, HOB_DTYPE_I16);
    out.coords = hob_swap_dims(
        scope, tensor(context, device, dtype, turned, across, 2), 0, 1);
    out.scores = hob_reshape(
        scope,
        hob_slice(scope, tensor(context, device, dtype, spread, pairs, 2), low,
                  2, pairs, 2, steps, 2),
        &n, 1);
    return out;
}

/* The dtype's own rounding of the coordinates and scores. */
static void round_to(struct context *context, struct boxes *boxes,
                     hob_dtype dtype)
{
    int64_t coords = 4 * boxes->count;

    fetch(context,
          tensor(context, context->flex, dtype, boxes->coords, &coords, 1),
          boxes->coords, coords);
    fetch(
        context,
        tensor(context, context->flex, dtype, boxes->scores, &boxes->count, 1),
        boxes->scores, boxes->count);
}

static void compare(struct context *context, const char *name,
                    const struct boxes *boxes, hob_dtype dtype, int odd)
{
    static int64_t kept[MOST];
    static double coords[4 * MOST], scores[MOST];
    struct vision_boxes in = upload(context, context->flex, boxes, dtype, odd);
    struct vision_boxes out;
    int64_t count = reference(boxes, dtype != HOB_DTYPE_F64, kept);
    double valid = (double)count;
    char what[128];

    memset(coords, 0, sizeof(coords));
    memset(scores, 0, sizeof(scores));
    for (int64_t i = 0; i < count; i++) {
        memcpy(coords + 4 * i, boxes->coords + 4 * kept[i],
               4 * sizeof(coords[0]));
        scores[i] = boxes->scores[kept[i]];
    }
    (void)vision_nms(context->scope, &in, boxes->threshold, &out);
    (void)snprintf(what, sizeof(what), "nms, %s, %s, %lld boxes above %g", name,
                   hob_dtype_name(dtype), (long long)boxes->count,
                   boxes->threshold);
    check_elements(context, what, out.valid, &valid, 1, 0);
    check_elements(context, what, out.coords, coords, 4 * boxes->count, 0);
    check_elements(context, what, out.scores, scores, boxes->count, 0);
    check(context, out.count == boxes->count, "%s: count", what);
    check(context,
          hob_tensor_dtype(out.valid) == hob_tensor_dtype(in.valid) &&
              hob_tensor_dtype(out.coords) == dtype,
          "%s: dtypes", what);
}

/* ---- the cases ---- */

/* Boxes of sides 1 .. SIDE whose corners are in 0 .. EXTENT - 1; scores of
 * SCORES different values. */
static void fill(struct boxes *boxes, struct numbers *numbers, int64_t extent,
                 int64_t side, int64_t scores)
{
    for (int64_t i = 0; i < boxes->count; i++) {
        double *box = boxes->coords + 4 * i;

        box[0] = (double)number(numbers, extent);
        box[1] = (double)number(numbers, extent);
        box[2] = box[0] + 1 + (double)number(numbers, side);
        box[3] = box[1] + 1 + (double)number(numbers, side);
        boxes->scores[i] = (double)number(numbers, scores) / 16;
    }
}

static const struct {
    const char *name;
    int64_t extent;
    int64_t side;
} pictures[] = {{"sparse", 200, 4},
                {"crowded", 60, 30},
                {"all sizes", 120, 100},
                {"piled", 2, 6}};
enum { PICTURES = sizeof(pictures) / sizeof(pictures[0]) };

static const hob_dtype dtypes[4] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                    HOB_DTYPE_BF16};

/* Exact in every dtype, with many equal scores and exact ties of IoU. */
static void test_integers(struct context *context, struct boxes *boxes)
{
    static const int64_t counts[] = {0, 1, 2, 3, 17, 64, 65, 129, 1001};
    static const double thresholds[] = {0, 0.25, 0.5, 0.75, 1};
    struct numbers numbers = {17};

    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++)
        for (size_t p = 0; p < PICTURES; p++)
            for (size_t t = 0; t < 5; t++) {
                boxes->count = boxes->valid = counts[c];
                boxes->threshold = thresholds[t];
                if (t & 1)
                    boxes->valid = counts[c] * 3 / 4;
                fill(boxes, &numbers, pictures[p].extent, pictures[p].side,
                     t == 2 ? 5 : 200);
                compare(context, pictures[p].name, boxes,
                        dtypes[(c + p + t) % 4], (int)(t == 3));
            }
}

/* Any numbers, near zero and far from it, tiny and huge. */
static void test_fractions(struct context *context, struct boxes *boxes)
{
    /* The last ones have areas around the least and the greatest. */
    static const double scales[2][6] = {
        {1, 1e-3, 0x1p-47, 0x1p-54, 0x1p55, 0x1p60},
        {1, 1e-3, 0x1p-490, 0x1p-506, 0x1p500, 0x1p508}};
    static const double thresholds[] = {0, 1e-7, 0.01, 0.3, 0.5, 0.7, 0.95};
    struct numbers numbers = {23};

    for (int s = 0; s < 6; s++)
        for (size_t t = 0; t < sizeof(thresholds) / sizeof(thresholds[0]); t++)
            for (int d = 0; d < 2; d++) {
                boxes->count = boxes->valid = 700;
                boxes->threshold = thresholds[t];
                fill(boxes, &numbers, t & 1 ? 2000 : 300, s & 1 ? 90 : 40, 500);
                for (int64_t i = 0; i < 4 * boxes->count; i++)
                    boxes->coords[i] =
                        scales[d][s] * (boxes->coords[i] +
                                        (double)number(&numbers, 1000) / 1999 -
                                        (t & 2 ? 150 : 0));
                round_to(context, boxes, dtypes[d]);
                compare(context, "fractions", boxes, dtypes[d], 0);
            }
}

/* Boxes that are none, in between. */
static void test_degenerate(struct context *context, struct boxes *boxes)
{
    static const double odd[] = {NAN,  INFINITY, -INFINITY,
                                 -0.0, 0x1p126,  -0x1p126};
    struct numbers numbers = {5};

    for (int round = 0; round < 8; round++) {
        boxes->count = 300;
        boxes->valid = 290;
        boxes->threshold = round & 1 ? 0 : 0.5;
        fill(boxes, &numbers, 40, 20, 9);
        for (int64_t i = 0; i < boxes->count; i++) {
            double *box = boxes->coords + 4 * i, swap = box[0];

            switch (number(&numbers, 12)) {
            case 0: /* inverted in one direction */
                box[0] = box[2];
                box[2] = swap;
                break;
            case 1: /* in both: the product of its sides is positive */
                box[2] = box[0] - 3;
                box[3] = box[1] - 3;
                break;
            case 2: /* without area */
                box[2] = box[0];
                break;
            case 3:
                box[number(&numbers, 4)] = odd[number(&numbers, 6)];
                break;
            case 4:
                boxes->scores[i] = odd[number(&numbers, 6)];
                break;
            }
        }
        compare(context, "degenerate", boxes, dtypes[round & 3 ? 0 : 1], 0);
    }
}

/*
 * 1e5 boxes, two at each place of a lattice, the better one anywhere among
 * the two: the answer is known without comparing all pairs. Fewer on a GPU,
 * which may be the CPU in disguise: there the time is quadratic.
 */
static void test_many(struct context *context)
{
    enum { WIDTH = 223 };
    const int64_t places = context->is_gpu ? 1500 : 50000;
    const int64_t count = 2 * places, shape[2] = {count, 4};
    float *coords = (float *)malloc(4 * (size_t)count * sizeof(*coords));
    float *scores = (float *)malloc((size_t)count * sizeof(*scores));
    double *first = (double *)malloc((size_t)places * sizeof(*first));
    double *got = (double *)malloc((size_t)count * sizeof(*got));
    struct vision_boxes in, out;
    double valid = (double)places;
    int64_t wrong = 0;

    if (!coords || !scores || !first || !got) {
        check(context, 0, "no memory");
        goto out;
    }
    for (int64_t i = 0; i < count; i++) {
        int64_t place = i % places;
        float x = (float)(place % WIDTH * 24), y = (float)(place / WIDTH * 24);
        int better = (i >= places) == (place % 3 == 0);

        /* The other one covers 16 * 15 of 16 * 16. */
        memcpy(coords + 4 * i,
               ((float[]){x, y + (float)!better, x + 16, y + 16}),
               4 * sizeof(*coords));
        scores[i] = (float)(better ? count + place : place);
        if (better)
            first[places - 1 - place] = (double)scores[i];
    }
    in.count = count;
    in.valid = hob_from_i64(context->scope, context->flex, &count, NULL, 0);
    in.coords = hob_from_f32(context->scope, context->flex, coords, shape, 2);
    in.scores = hob_from_f32(context->scope, context->flex, scores, &count, 1);
    (void)vision_nms(context->scope, &in, 0.5, &out);
    check_elements(context, "many", out.valid, &valid, 1, 0);
    fetch(context, out.scores, got, count);
    for (int64_t i = 0; i < count; i++)
        wrong += got[i] != (i < places ? first[i] : 0);
    check(context, !wrong, "%lld slots are wrong", (long long)wrong);
out:
    free(got);
    free(coords);
    free(scores);
    free(first);
}

/* A gradient reaches the slots that were kept, and no other; whatever it is
 * for rows without a box, NaN here, goes nowhere. */
static void test_gradients(struct context *context)
{
    static const struct boxes boxes = {.coords = {0,  0, 4, 4, 10, 10, 14,
                                                  14, 0, 0, 4, 5,  20, 0,
                                                  24, 4, 0, 0, 9,  9},
                                       .scores = {1, 2, 3, 4, 9},
                                       .count = 5,
                                       .valid = 4,
                                       .threshold = 0.5};
    /* Kept are 3, 2, 1. */
    static const double weights[20] = {1,   2,   3,   4,   5,   6,   7,
                                       8,   9,   10,  11,  12,  NAN, NAN,
                                       NAN, NAN, NAN, NAN, NAN, NAN};
    static const double coords[20] = {0, 0, 0, 0, 9, 10, 11, 12, 5, 6,
                                      7, 8, 1, 2, 3, 4,  0,  0,  0, 0};
    static const double factors[5] = {-1, -2, -3, NAN, NAN};
    static const double scores[5] = {0, -3, -2, -1, 0};
    static const int64_t shape[2] = {5, 4};
    hob_scope *scope = context->scope;

    for (int d = 0; d < 4; d++) {
        struct vision_boxes in =
            upload(context, context->tracking, &boxes, dtypes[d], 0);
        struct vision_boxes out;

        in.coords = hob_require_grad(scope, in.coords);
        in.scores = hob_require_grad(scope, in.scores);
        (void)vision_nms(scope, &in, boxes.threshold, &out);
        check_gradient(context, "coords",
                       hob_mul(scope, out.coords,
                               tensor(context, context->tracking, dtypes[d],
                                      weights, shape, 2)),
                       in.coords, coords, 20, 0);
        check_gradient(context, "scores",
                       hob_mul(scope, out.scores,
                               tensor(context, context->tracking, dtypes[d],
                                      factors, shape, 1)),
                       in.scores, scores, 5, 0);
    }
}

/* One tracked field beside plain ones. */
static void test_constants(struct context *context)
{
    static const struct boxes boxes = {.coords = {0, 0, 4, 4, 0, 0, 4, 4},
                                       .scores = {1, 2},
                                       .count = 2,
                                       .valid = 2,
                                       .threshold = 0.5};
    static const double wanted[2] = {0, 1};
    struct vision_boxes in =
        upload(context, context->flex, &boxes, HOB_DTYPE_F32, 0);
    struct vision_boxes out;

    in.scores = hob_require_grad(
        context->scope,
        hob_to_device(context->scope, in.scores, context->tracking));
    (void)vision_nms(context->scope, &in, boxes.threshold, &out);
    check_gradient(context, "scores beside constants", out.scores, in.scores,
                   wanted, 2, 0);
}

static void test_refusals(struct context *context, struct boxes *boxes)
{
    struct numbers numbers = {3};
    struct vision_boxes good, bad, out;
    const int64_t wide[2] = {2, 6}, two = 2, minus = -1, seven = 7;
    hob_scope *scope = context->scope;

    boxes->count = boxes->valid = 3;
    fill(boxes, &numbers, 9, 9, 9);
    good = upload(context, context->flex, boxes, HOB_DTYPE_F32, 0);
    for (int i = 0; i < 4; i++) {
        static const double thresholds[] = {-0.1, 1.5, NAN, INFINITY};

        (void)vision_nms(scope, &good, thresholds[i], &out);
        check_fails(context, HOB_ERR_ARGUMENT, "iou_threshold is ");
    }
    bad = good;
    bad.valid = hob_from_i64(scope, context->flex, &minus, NULL, 0);
    (void)vision_nms(scope, &bad, 0.5, &out);
    check_fails(context, HOB_ERR_ARGUMENT, "boxes.valid is -1");
    bad.valid = hob_from_i64(scope, context->flex, &seven, NULL, 0);
    (void)vision_nms(scope, &bad, 0.5, &out);
    check_fails(context, HOB_ERR_ARGUMENT, "which is 3");
    bad = good;
    bad.count = 4;
    (void)vision_nms(scope, &bad, 0.5, &out);
    check_fails(context, HOB_ERR_SHAPE, "boxes.count");
    check(context, out.count == 0, "after a failure count is not 0");
    bad = good;
    bad.coords = hob_reshape(scope, good.coords, wide, 2);
    (void)vision_nms(scope, &bad, 0.5, &out);
    check_fails(context, HOB_ERR_SHAPE, "boxes.coords must be");
    bad = good;
    bad.scores = hob_zeros(scope, &two, 1, context->flex, HOB_DTYPE_F32);
    (void)vision_nms(scope, &bad, 0.5, &out);
    check_fails(context, HOB_ERR_SHAPE, "boxes.scores must be");
    bad.scores = hob_cast(scope, good.scores, HOB_DTYPE_F64);
    (void)vision_nms(scope, &bad, 0.5, &out);
    check_fails(context, HOB_ERR_DTYPE, "boxes.scores");
    bad = good;
    bad.valid = NULL;
    (void)vision_nms(scope, &bad, 0.5, &out);
    check_fails(context, HOB_ERR_ARGUMENT, "boxes.valid is missing");
    (void)vision_nms(scope, NULL, 0.5, &out);
    check_fails(context, HOB_ERR_ARGUMENT, "boxes is NULL");
}

void test_nms(struct context *context)
{
    static struct boxes boxes;

    test_integers(context, &boxes);
    test_fractions(context, &boxes);
    test_degenerate(context, &boxes);
    test_many(context);
    test_gradients(context);
    test_constants(context);
    test_refusals(context, &boxes);
}
