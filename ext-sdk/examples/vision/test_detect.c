/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_detect.c - vision.detect against a flood fill in double.
 */
#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PIXELS = 3000, MOST_SLOTS = 1600 };

struct picture {
    double pixels[MOST_PIXELS];
    int64_t height, width;
    double threshold;
};

/* What is found: a row a blob, and each pixel's blob. */
struct found {
    double coords[4 * MOST_SLOTS];
    double scores[MOST_SLOTS];
    int64_t sizes[MOST_SLOTS];
    int64_t count;
    int64_t blob_of[MOST_PIXELS]; /* -1: dark */
};

/* Fill the blob of pixel START; every pixel enters the stack once. */
static void flood(const struct picture *picture, struct found *found,
                  int64_t start, hob_dtype dtype, struct context *context)
{
    static const int around[4][2] = {{0, 1}, {0, -1}, {1, 0}, {-1, 0}};
    static int64_t stack[MOST_PIXELS];
    int64_t blob = found->count++, depth = 0;
    double *box = found->coords + 4 * blob, sum = 0;

    box[0] = box[1] = INFINITY;
    box[2] = box[3] = 0;
    found->sizes[blob] = 0;
    stack[depth++] = start;
    found->blob_of[start] = blob;
    while (depth) {
        int64_t pixel = stack[--depth];
        int64_t y = pixel / picture->width, x = pixel % picture->width;

        sum += picture->pixels[pixel];
        found->sizes[blob]++;
        box[0] = fmin(box[0], (double)x);
        box[1] = fmin(box[1], (double)y);
        box[2] = fmax(box[2], (double)(x + 1));
        box[3] = fmax(box[3], (double)(y + 1));
        for (int i = 0; i < 4; i++) {
            int64_t v = y + around[i][0], u = x + around[i][1];
            int64_t next = v * picture->width + u;

            if (v < 0 || v >= picture->height || u < 0 || u >= picture->width ||
                found->blob_of[next] >= 0 ||
                !(picture->pixels[next] > picture->threshold))
                continue;
            found->blob_of[next] = blob;
            stack[depth++] = next;
        }
    }
    /* Pixels are multiples of 1/64, so the sum is exact in any order; the
     * one rounding to DTYPE is the library's. */
    sum /= (double)found->sizes[blob];
    fetch(context, tensor(context, context->flex, dtype, &sum, NULL, 0),
          &found->scores[blob], 1);
}

static void find(const struct picture *picture, struct found *found,
                 hob_dtype dtype, struct context *context)
{
    int64_t count = picture->height * picture->width;

    found->count = 0;
    for (int64_t i = 0; i < count; i++)
        found->blob_of[i] = -1;
    for (int64_t i = 0; i < count; i++)
        if (found->blob_of[i] < 0 && picture->pixels[i] > picture->threshold)
            flood(picture, found, i, dtype, context);
}

/* The blobs of FOUND as detect orders them, SLOTS at most; each blob's slot
 * is left in SLOT_OF, -1 for none. How many slots are used. */
static int64_t order(const struct found *found, int64_t slots, double *coords,
                     double *scores, int64_t *slot_of)
{
    int64_t used = 0;

    for (int64_t i = 0; i < found->count; i++)
        slot_of[i] = -1;
    memset(coords, 0, (size_t)slots * 4 * sizeof(*coords));
    memset(scores, 0, (size_t)slots * sizeof(*scores));
    for (; used < slots; used++) {
        int64_t best = -1;

        for (int64_t i = 0; i < found->count; i++)
            if (slot_of[i] < 0 &&
                (best < 0 || found->scores[i] > found->scores[best]))
                best = i;
        if (best < 0)
            break;
        slot_of[best] = used;
        memcpy(coords + 4 * used, found->coords + 4 * best,
               4 * sizeof(*coords));
        scores[used] = found->scores[best];
    }
    return used;
}

/* A picture whose pixels are multiples of 1/64 from 0 to 1, BRIGHT of 100 of
 * them above one half; some NaN. */
static void draw(struct picture *picture, struct numbers *numbers, int bright)
{
    for (int64_t i = 0; i < picture->height * picture->width; i++) {
        int64_t above = number(numbers, 100) < bright;

        picture->pixels[i] =
            (double)(number(numbers, 32) + 1 + 32 * above) / 64;
        if (!above && !number(numbers, 9))
            picture->pixels[i] = number(numbers, 2) ? NAN : -INFINITY;
    }
}

static hob_tensor *upload(struct context *context, hob_device *device,
                          const struct picture *picture, hob_dtype dtype,
                          int turned)
{
    static double pixels[MOST_PIXELS];
    int64_t height = picture->height, width = picture->width;

    if (!turned)
        return tensor(context, device, dtype, picture->pixels,
                      (int64_t[]){height, width}, 2);
    for (int64_t y = 0; y < height; y++)
        for (int64_t x = 0; x < width; x++)
            pixels[x * height + y] = picture->pixels[y * width + x];
    return hob_swap_dims(
        context->scope,
        tensor(context, device, dtype, pixels, (int64_t[]){width, height}, 2),
        0, 1);
}

static void compare(struct context *context, const struct picture *picture,
                    int64_t slots, hob_dtype dtype, int turned)
{
    static struct found found;
    static double coords[4 * MOST_SLOTS], scores[MOST_SLOTS];
    static int64_t slot_of[MOST_SLOTS];
    struct vision_boxes boxes;
    char what[128];
    double valid;

    find(picture, &found, dtype, context);
    valid = (double)order(&found, slots, coords, scores, slot_of);
    (void)vision_detect(context->scope,
                        upload(context, context->flex, picture, dtype, turned),
                        picture->threshold, slots, &boxes);
    (void)snprintf(what, sizeof(what), "detect, %s [%lld, %lld], %lld slots",
                   hob_dtype_name(dtype), (long long)picture->height,
                   (long long)picture->width, (long long)slots);
    check_elements(context, what, boxes.valid, &valid, 1, 0);
    check_elements(context, what, boxes.coords, coords, 4 * slots, 0);
    check_elements(context, what, boxes.scores, scores, slots, 0);
    check(context, boxes.count == slots, "%s: count", what);
}

/* The mean's gradient by hand, and by differences of the op itself. */
static void check_slopes(struct context *context, struct picture *picture,
                         int64_t slots)
{
    static struct found found;
    static double coords[4 * MOST_SLOTS], scores[MOST_SLOTS];
    static double wanted[MOST_PIXELS];
    static int64_t slot_of[MOST_SLOTS];
    int64_t count = picture->height * picture->width;
    struct vision_boxes boxes;
    hob_scope *scope = context->scope;
    hob_tensor *image = hob_require_grad(
        scope, upload(context, context->tracking, picture, HOB_DTYPE_F64, 0));

    find(picture, &found, HOB_DTYPE_F64, context);
    (void)order(&found, slots, coords, scores, slot_of);
    for (int64_t i = 0; i < count; i++) {
        int64_t blob = found.blob_of[i];

        wanted[i] =
            blob >= 0 && slot_of[blob] >= 0
                ? (double)(slot_of[blob] + 1) / (double)found.sizes[blob]
                : 0;
    }
    (void)vision_detect(scope, image, picture->threshold, slots, &boxes);
    for (int64_t i = 0; i < slots; i++)
        scores[i] = (double)(i + 1);
    check_gradient(context, "detect",
                   hob_mul(scope, boxes.scores,
                           tensor(context, context->tracking, HOB_DTYPE_F64,
                                  scores, &slots, 1)),
                   image, wanted, count, 1e-15);
    check_gradient(context, "coords of detect", boxes.coords, image, NULL, 0,
                   0);
}

static void check_difference(struct context *context, struct picture *picture)
{
    const double step = 1.0 / 1024;
    hob_tensor *image =
        hob_require_grad(context->scope, upload(context, context->tracking,
                                                picture, HOB_DTYPE_F64, 0));
    static double slopes[MOST_PIXELS];
    int64_t count = picture->height * picture->width;
    struct vision_boxes boxes;

    for (int64_t i = 0; i < count; i++) {
        double moved = picture->pixels[i], sums[2];

        for (int side = 0; side < 2; side++) {
            picture->pixels[i] = moved + (side ? step : -step);
            (void)vision_detect(
                context->scope,
                upload(context, context->flex, picture, HOB_DTYPE_F64, 0),
                picture->threshold, 20, &boxes);
            fetch(context, hob_sum(context->scope, boxes.scores), &sums[side],
                  1);
        }
        picture->pixels[i] = moved;
        slopes[i] = (sums[1] - sums[0]) / (2 * step);
    }
    (void)vision_detect(context->scope, image, picture->threshold, 20, &boxes);
    check_gradient(context, "detect by differences", boxes.scores, image,
                   slopes, count, 1e-9);
}

/*
 * What detect returns is what nms takes, gradients included. A bright frame
 * around a brighter dot: their boxes have an IoU of 4/36, so the frame goes
 * where more is too much.
 */
static void check_chain(struct context *context)
{
    enum { SIDE = 6, PIXELS = SIDE * SIDE, SLOTS = 5 };
    static const double thresholds[] = {0.1, 0.5};
    static struct picture picture = {.height = SIDE, .width = SIDE};
    hob_scope *scope = context->scope;
    struct vision_boxes found, left;
    hob_tensor *image;

    for (int t = 0; t < 2; t++) {
        double slopes[PIXELS] = {0}, scores[SLOTS] = {1};

        for (int i = 0; i < PIXELS; i++) {
            int x = i % SIDE, y = i / SIDE;
            int is_dot = (x == 2 || x == 3) && (y == 2 || y == 3);
            int is_frame = x == 0 || y == 0 || x == SIDE - 1 || y == SIDE - 1;

            picture.pixels[i] = is_dot ? 1 : is_frame ? 0.75 : 0;
            if (is_dot)
                slopes[i] = 1.0 / 4;
            else if (is_frame && t)
                slopes[i] = 1.0 / (4 * (SIDE - 1));
        }
        if (t)
            scores[1] = 0.75;
        image = hob_require_grad(scope, upload(context, context->tracking,
                                               &picture, HOB_DTYPE_F64, 0));
        (void)vision_detect(scope, image, 0.5, SLOTS, &found);
        (void)vision_nms(scope, &found, thresholds[t], &left);
        check_elements(context, "chain", hob_detach(scope, left.scores), scores,
                       SLOTS, 0);
        check(context, left.count == SLOTS, "chain: count");
        check_gradient(context, "chain", left.scores, image, slopes, PIXELS,
                       1e-15);
    }
}

void test_detect(struct context *context)
{
    static const int64_t sizes[][2] = {{1, 1}, {1, 9},   {7, 1},   {0, 5},
                                       {5, 0}, {13, 17}, {31, 64}, {3, 40}};
    static const int64_t slots[] = {0, 1, 3, 64, 1600};
    static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64,
                                       HOB_DTYPE_F16, HOB_DTYPE_BF16};
    static struct picture picture;
    struct numbers numbers = {11};
    struct vision_boxes boxes;
    hob_scope *scope = context->scope;
    hob_tensor *line;

    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (int bright = 0; bright <= 100; bright += 25) {
            picture.height = sizes[s][0];
            picture.width = sizes[s][1];
            picture.threshold = 0.5;
            draw(&picture, &numbers, bright);
            compare(context, &picture, slots[(s + (size_t)bright / 25) % 5],
                    dtypes[number(&numbers, 4)], bright == 50);
            check_slopes(context, &picture, 1 + number(&numbers, 9));
        }
    picture.height = 5;
    picture.width = 7;
    draw(&picture, &numbers, 40);
    for (int64_t i = 0; i < 35; i++) /* no step across the threshold */
        picture.pixels[i] =
            isfinite(picture.pixels[i])
                ? picture.pixels[i] + (picture.pixels[i] > 0.5 ? 1 : -1) / 8.0
                : 0;
    check_difference(context, &picture);
    check_chain(context);
    line = hob_zeros(scope, (int64_t[]){4}, 1, context->flex, HOB_DTYPE_F32);
    (void)vision_detect(scope, line, 0.5, 4, &boxes);
    check_fails(context, HOB_ERR_SHAPE, "image must be [height, width]");
    (void)vision_detect(scope, hob_unsqueeze(scope, line, 0), 0.5, -1, &boxes);
    check_fails(context, HOB_ERR_SHAPE, "max_boxes must not be negative");
    (void)vision_detect(scope, NULL, 0.5, 4, &boxes);
    check_fails(context, HOB_ERR_ARGUMENT, "image is missing");
}
