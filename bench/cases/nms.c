/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nms.c - C21: vision.nms, an extension, beside the plain loop over the boxes
 * that were kept. Both must keep the same boxes in the same order: the result
 * is the slot that each came from, -1 beyond the last.
 *
 * n: 0 the extent of the picture, 1 and 2 the least and greatest side of a
 * box. x: the threshold. The inputs are the boxes [count, 4] and scores.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <stdlib.h>

enum { EXTENT, LEAST, MOST };

/* ---- boxes: from four random numbers of 0 to 1 each ---- */

static void make_boxes(const struct bench_case *c, const struct bench_array *in)
{
    for (int64_t i = 0; i < in[1].count; i++) {
        float *box = (float *)in[0].data + 4 * i;
        const float tall = 0.7f + 0.6f * box[3];
        /* Small ones are more frequent. */
        const float side = (float)c->n[LEAST] +
                           (float)(c->n[MOST] - c->n[LEAST]) * box[2] * box[2];

        box[0] *= (float)c->n[EXTENT];
        box[1] *= (float)c->n[EXTENT];
        box[2] = box[0] + side;
        box[3] = box[1] + side * tall;
    }
}

/* ---- Hob ---- */

/* By its name: no header of the extension is needed. */
static hob_tensor *nms(hob_scope *scope, hob_tensor *const *in,
                       const struct bench_case *c)
{
    struct hob_op_ref ref = {"vision.nms", 0};
    const struct hob_host *host = hob_scope_host(scope);
    const uint32_t op = hob_op_resolve(scope, &ref);
    const int64_t count = c->out_count;
    hob_tensor *valid = hob_full(scope, NULL, 0, hob_i64(count),
                                 hob_tensor_device(in[0]), HOB_DTYPE_I64);
    const hob_value args[] = {hob_value_tensor(in[0]), hob_value_tensor(in[1]),
                              hob_value_tensor(valid), hob_i64(count),
                              hob_f64(c->x)};
    hob_tensor *out[4]; /* coords, scores, valid, the slots */
    hob_value plain;
    uint32_t out_count;

    if (op == UINT32_MAX)
        return host->scope_fail(scope, HOB_ERR_NOT_FOUND,
                                "the op vision.nms is not there");
    if (host->callv(scope, op, args, 5, out, 4, &out_count, &plain, 1))
        return valid;
    return out[3];
}

/* ---- the plain loop ---- */

struct ranked {
    float score;
    int64_t slot;
};

static int by_score(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->slot < y->slot ? -1 : 1;
}

static float area(const float *box)
{
    return (box[2] - box[0]) * (box[3] - box[1]);
}

static int overlap(const float *a, const float *b, float threshold)
{
    const float left = a[0] > b[0] ? a[0] : b[0];
    const float right = a[2] < b[2] ? a[2] : b[2];
    const float top = a[1] > b[1] ? a[1] : b[1];
    const float bottom = a[3] < b[3] ? a[3] : b[3];
    float both;

    if (right <= left || bottom <= top)
        return 0;
    both = (right - left) * (bottom - top);
    return both > threshold * ((area(a) + area(b)) - both);
}

static void nms_loop(const struct bench_case *c, const struct bench_array *in,
                     float *out)
{
    const float *boxes = bench_f32(&in[0]);
    const int64_t count = c->out_count;
    struct ranked *ranked = malloc((size_t)count * sizeof(*ranked));
    int64_t *kept = malloc((size_t)count * sizeof(*kept));
    int64_t kept_count = 0;

    if (!ranked || !kept)
        abort(); /* of a benchmark */
    for (int64_t i = 0; i < count; i++) {
        ranked[i].score = bench_f32(&in[1])[i];
        ranked[i].slot = i;
    }
    qsort(ranked, (size_t)count, sizeof(*ranked), by_score);
    for (int64_t i = 0; i < count; i++) {
        const int64_t slot = ranked[i].slot;
        int64_t j = 0;

        while (j < kept_count &&
               !overlap(boxes + 4 * kept[j], boxes + 4 * slot, (float)c->x))
            j++;
        if (j == kept_count)
            kept[kept_count++] = slot;
    }
    for (int64_t i = 0; i < count; i++)
        out[i] = i < kept_count ? (float)kept[i] : -1;
    free(ranked);
    free(kept);
}

static void nms_all(const struct bench_case *c, const struct bench_array *in,
                    double *out)
{
    float *slots = malloc((size_t)c->out_count * sizeof(*slots));

    if (!slots)
        abort();
    nms_loop(c, in, slots);
    for (int64_t i = 0; i < c->out_count; i++)
        out[i] = (double)slots[i];
    free(slots);
}

/* ---- the table ---- */

#define F32 HOB_DTYPE_F32
#define PICTURE(label, count, extent, least, most, threshold)                  \
    {                                                                          \
        .id = "C21", .name = label ", " #count " boxes",                       \
        .in = {{F32, {count, 4}, 0, 1}, {F32, {count}, 0, 1}},                 \
        .n = {extent, least, most}, .x = threshold, .fill = make_boxes,        \
        .hob = nms, .loop = nms_loop, .all = nms_all, .is_exact = 1,           \
        .out_count = count, .target = {.peer = 3},                             \
        .note =                                                                \
            "an extension; torchvision is not packaged, so the plain loop "    \
            "is what it is compared with"                                      \
    }

static const struct bench_case cases[] = {
    PICTURE("sparse", 1000, 1000, 15, 45, 0.5),
    PICTURE("crowded", 1000, 100, 30, 90, 0.5),
    PICTURE("sparse", 10000, 3000, 15, 45, 0.5),
    PICTURE("crowded", 10000, 300, 30, 90, 0.5),
    PICTURE("crowded, threshold 0.9", 10000, 300, 30, 90, 0.9),
};

const struct bench_family bench_nms = {cases, sizeof(cases) / sizeof(cases[0])};
