/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_nms - vision.nms, an extension, beside the plain loop over the boxes
 * that were kept (C21, G11): boxes all over a picture, crowded ones, and sizes
 * from 2 to 400. Both must keep the same boxes.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "harness.h"

#include <hob/hob.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct picture {
    const char *name;
    int64_t count;
    double extent; /* of the picture, both ways */
    double least;  /* sides of the boxes */
    double most;
    double threshold;
    int has_peer; /* the loop ends before long */
} pictures[] = {
    {"sparse", 1000, 1000, 15, 45, 0.5, 1},
    {"crowded", 1000, 100, 30, 90, 0.5, 1},
    {"sparse", 10000, 3000, 15, 45, 0.5, 1},
    {"crowded", 10000, 300, 30, 90, 0.5, 1},
    {"crowded, 0.9", 10000, 300, 30, 90, 0.9, 1},
    {"sparse", 100000, 10000, 15, 45, 0.5, 0},
    {"crowded", 100000, 1000, 30, 90, 0.5, 0},
    {"crowded, 0.9", 100000, 1000, 30, 90, 0.9, 0},
    {"all sizes", 100000, 10000, 2, 400, 0.5, 0},
};

struct bench {
    hob_scope *root;
    hob_device *device;
    const struct picture *picture;
    float *coords;
    float *scores;
    float *areas;
    int64_t *order;
    int64_t *kept;
    int64_t kept_count;
    hob_value args[5];
    hob_error error;
};

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

static int overlap(const struct bench *bench, int64_t i, int64_t j)
{
    const float *a = bench->coords + 4 * i, *b = bench->coords + 4 * j;
    float left = a[0] > b[0] ? a[0] : b[0];
    float right = a[2] < b[2] ? a[2] : b[2];
    float top = a[1] > b[1] ? a[1] : b[1];
    float bottom = a[3] < b[3] ? a[3] : b[3];
    float both;

    if (right <= left || bottom <= top)
        return 0;
    both = (right - left) * (bottom - top);
    return both > (float)bench->picture->threshold *
                      ((bench->areas[i] + bench->areas[j]) - both);
}

static void plain(struct bench *bench)
{
    int64_t count = bench->picture->count;
    struct ranked *ranked = malloc((size_t)count * sizeof(*ranked));

    if (!ranked)
        abort();
    for (int64_t i = 0; i < count; i++) {
        const float *box = bench->coords + 4 * i;

        bench->areas[i] = (box[2] - box[0]) * (box[3] - box[1]);
        ranked[i].score = bench->scores[i];
        ranked[i].slot = i;
    }
    qsort(ranked, (size_t)count, sizeof(*ranked), by_score);
    bench->kept_count = 0;
    for (int64_t i = 0; i < count; i++) {
        int64_t slot = ranked[i].slot, j = 0;

        while (j < bench->kept_count && !overlap(bench, bench->kept[j], slot))
            j++;
        if (j == bench->kept_count)
            bench->kept[bench->kept_count++] = slot;
    }
    free(ranked);
}

static void run_plain(void *context, uint64_t repeats)
{
    for (uint64_t i = 0; i < repeats; i++)
        plain(context);
}

/* ---- the op ---- */

/* By its name: no header of the extension is needed. OUT has the results
 * coords, scores, valid and the slot that each came from. */
static hob_status call(struct bench *bench, hob_scope *scope, hob_tensor **out)
{
    struct hob_op_ref ref = {"vision.nms", 0};
    const uint32_t op = hob_op_resolve(scope, &ref);
    uint32_t count;
    hob_value plain;

    if (op == UINT32_MAX)
        return hob_error_set(&bench->error, HOB_ERR_NOT_FOUND,
                             "the extension vision is not there: build "
                             "ext-sdk/examples/vision and name its folder in "
                             "HOB_ADD_PLUGIN_PATH");
    (void)hob_scope_host(scope)->callv(scope, op, bench->args, 5, out, 4,
                                       &count, &plain, 1);
    return hob_scope_error(scope, &bench->error);
}

static void run(void *context, uint64_t repeats)
{
    struct bench *bench = context;
    hob_tensor *out[4];

    for (uint64_t i = 0; i < repeats && !bench->error.status; i++) {
        hob_scope *scope = hob_scope_child(bench->root);

        (void)call(bench, scope, out);
        hob_scope_close(scope);
    }
}

/* Whether the op keeps what the plain loop has kept. */
static hob_status compare(struct bench *bench, hob_scope *scope)
{
    int64_t count = bench->picture->count;
    hob_tensor *out[4];
    hob_status st = call(bench, scope, out);

    if (!st)
        st = hob_read_i64(out[3], bench->order, count, &bench->error);
    for (int64_t i = 0; !st && i < count; i++)
        if (bench->order[i] != (i < bench->kept_count ? bench->kept[i] : -1))
            st = hob_error_set(&bench->error, HOB_ERR_INTERNAL,
                               "other boxes are kept than by the loop");
    return st;
}

static void fill(struct bench *bench)
{
    const struct picture *picture = bench->picture;

    srand48(7);
    for (int64_t i = 0; i < picture->count; i++) {
        float *box = bench->coords + 4 * i;
        /* Small ones are more frequent. */
        double part = drand48();
        double side =
            picture->least + (picture->most - picture->least) * part * part;

        box[0] = (float)(drand48() * picture->extent);
        box[1] = (float)(drand48() * picture->extent);
        box[2] = box[0] + (float)side;
        box[3] = box[1] + (float)(side * (0.7 + 0.6 * drand48()));
        bench->scores[i] = (float)drand48();
    }
}

static hob_status measure(struct bench *bench)
{
    const struct picture *picture = bench->picture;
    hob_scope *scope = hob_scope_child(bench->root);
    int64_t count = picture->count, shape[2] = {count, 4};
    struct bench_result result;
    char name[96], note[96] = "";
    hob_status st = HOB_OK;

    fill(bench);
    bench->args[0] = hob_value_tensor(
        hob_from_f32(scope, bench->device, bench->coords, shape, 2));
    bench->args[1] = hob_value_tensor(
        hob_from_f32(scope, bench->device, bench->scores, &count, 1));
    bench->args[2] =
        hob_value_tensor(hob_from_i64(scope, bench->device, &count, NULL, 0));
    bench->args[3] = hob_i64(count);
    bench->args[4] = hob_f64(picture->threshold);
    snprintf(name, sizeof(name), "nms, %s, %lld boxes", picture->name,
             (long long)count);
    if (picture->has_peer) {
        result = bench_run(run_plain, bench, count > 1000, 3);
        snprintf(note, sizeof(note), "%lld kept", (long long)bench->kept_count);
        st = compare(bench, scope);
        strncat(name, ", plain loop", sizeof(name) - strlen(name) - 1);
        if (!st)
            bench_print(name, result, "ms", note);
        *strrchr(name, ',') = '\0';
    }
    if (!st)
        result = bench_run(run, bench, 0, 0);
    st = st ? st : bench->error.status;
    if (!st)
        bench_print(name, result, "ms", *note ? note : NULL);
    hob_scope_close(scope);
    return st;
}

int main(void)
{
    enum { MOST = 100000 };
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    struct bench bench = {.error = HOB_ERROR_INIT};
    hob_runtime *runtime = NULL;
    hob_status st;

    bench.coords = malloc(4 * MOST * sizeof(*bench.coords));
    bench.scores = malloc(MOST * sizeof(*bench.scores));
    bench.areas = malloc(MOST * sizeof(*bench.areas));
    bench.order = malloc(MOST * sizeof(*bench.order));
    bench.kept = malloc(MOST * sizeof(*bench.kept));
    options.policy = HOB_POLICY_REPORT;
    st = !bench.coords || !bench.scores || !bench.areas || !bench.order ||
                 !bench.kept
             ? hob_error_set(&bench.error, HOB_ERR_MEMORY, "no memory")
             : hob_runtime_open(&options, &runtime, &bench.error);
    if (!st)
        st = hob_device_open(runtime, "flex", &bench.device, &bench.error);
    if (!st)
        bench.root = hob_scope_open(runtime);
    for (size_t i = 0; !st && i < sizeof(pictures) / sizeof(pictures[0]); i++) {
        bench.picture = &pictures[i];
        st = measure(&bench);
    }
    if (st)
        fprintf(stderr, "bench_nms: %s: %s\n", hob_status_name(st),
                bench.error.message ? bench.error.message : "");
    hob_scope_close(bench.root);
    hob_device_unref(bench.device);
    hob_error_release(&bench.error);
    if (hob_runtime_close(runtime, &bench.error))
        fprintf(stderr, "bench_nms: %s\n", bench.error.message);
    hob_error_release(&bench.error);
    free(bench.coords);
    free(bench.scores);
    free(bench.areas);
    free(bench.order);
    free(bench.kept);
    return st != HOB_OK;
}
