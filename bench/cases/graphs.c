/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graphs.c - what is recorded for gradients: C27 a long chain of tiny ops,
 * C28 the memory of many layers, kept or computed again.
 *
 * The first input is tracked, the result its gradient; the reference is the
 * same in float64. n: 0 ops or layers, 1 layers of a segment; 0: no segments.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"
#include "memory.h"

#include <math.h>
#include <string.h>

enum { DEPTH, SEGMENT };

/* The gradient of the sum of OUT to LEAF, owned by SCOPE, with its elements. */
static hob_tensor *gradient(hob_scope *scope, hob_scope *inside,
                            hob_tensor *out, hob_tensor *leaf)
{
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    hob_tensor *grad = NULL;
    hob_status st = hob_backward(inside, out, 0, &grads, &error);

    if (!st)
        st = hob_grad(scope, leaf, grads, &grad, &error);
    if (!st) /* or what is put off would end with its scope, never computed */
        st = hob_eval(&grad, 1, &error);
    if (st)
        grad =
            hob_scope_host(scope)->scope_fail(scope, st, "%s", error.message);
    hob_grads_free(grads);
    hob_error_release(&error);
    return grad;
}

static hob_tensor *chain(hob_scope *scope, hob_tensor *const *in,
                         const struct bench_case *c)
{
    hob_scope *inside = hob_scope_child(scope);
    hob_tensor *h = in[0], *grad;

    for (int64_t i = 0; i < c->n[DEPTH] / 2; i++) {
        h = hob_mul_scalar(inside, h, hob_f64(0.999));
        h = hob_add_scalar(inside, h, hob_f64(0.001));
    }
    grad = gradient(scope, inside, h, in[0]);
    hob_scope_close(inside);
    return grad;
}

/* COUNT layers; IN are the weight, what goes in, the bias. */
static hob_tensor *some_layers(hob_scope *scope, hob_tensor *const *in,
                               int64_t count)
{
    hob_tensor *h = in[1], *kept = NULL;

    for (int64_t i = 0; i < count; i++) {
        /* Nothing but the graph may hold what a layer makes. */
        hob_scope *layer = hob_scope_child(scope);
        hob_tensor *next =
            hob_gelu(layer, hob_add(layer, hob_matmul(layer, h, in[0]), in[2]));

        hob_assign(scope, &kept, next);
        h = kept;
        hob_scope_close(layer);
    }
    return h;
}

/* As many as CONTEXT, a bench_case, says. */
static hob_status segment(hob_scope *scope, void *context,
                          hob_tensor *const *in, uint32_t in_count,
                          hob_tensor **out, uint32_t out_count)
{
    const struct bench_case *c = context;

    (void)in_count;
    (void)out_count;
    out[0] = some_layers(scope, in, c->n[SEGMENT]);
    return HOB_OK;
}

static hob_tensor *in_segments(hob_scope *scope, hob_tensor *const *in,
                               const struct bench_case *c)
{
    hob_tensor *now[3] = {in[0], in[1], in[2]}, *kept = NULL;

    for (int64_t i = 0; i < c->n[DEPTH]; i += c->n[SEGMENT]) {
        hob_scope *own = hob_scope_child(scope);
        hob_tensor *out = NULL;

        (void)hob_checkpoint(own, segment, (void *)(uintptr_t)c, NULL, now, 3,
                             &out, 1);
        hob_assign(scope, &kept, out);
        now[1] = kept;
        hob_scope_close(own);
    }
    return now[1];
}

static hob_tensor *layers(hob_scope *scope, hob_tensor *const *in,
                          const struct bench_case *c)
{
    hob_scope *inside = hob_scope_child(scope);
    hob_tensor *end = c->n[SEGMENT] ? in_segments(inside, in, c)
                                    : some_layers(inside, in, c->n[DEPTH]);
    hob_tensor *grad = gradient(scope, inside, end, in[0]);

    hob_scope_close(inside);
    return grad;
}

/* ---- references ---- */

static hob_status in_f64(struct bench_job *job, double *out)
{
    hob_runtime *runtime = NULL;
    hob_device *device = NULL;
    hob_scope *scope = NULL;
    hob_tensor *in[BENCH_INPUTS] = {NULL}, *result;
    hob_status st = bench_open(job, "autodiff(flex)", &runtime, &device);

    if (st)
        goto out;
    scope = hob_scope_open(runtime);
    for (int i = 0; i < bench_input_count(job->c); i++)
        in[i] = hob_cast(scope,
                         hob_from_f32(scope, device, job->in[i].data,
                                      job->c->in[i].shape,
                                      bench_rank(&job->c->in[i])),
                         HOB_DTYPE_F64);
    in[0] = hob_require_grad(scope, in[0]);
    result = job->c->program.hob(scope, in, job->c);
    st = hob_read_f64(result, out, job->c->out_count, &job->error);

out:
    hob_scope_close(scope);
    hob_device_unref(device);
    if (hob_runtime_close(runtime, NULL) && !st)
        st = HOB_ERR_BUSY;
    return st;
}

static void gradient_f64(const struct bench_case *c,
                         const struct bench_array *in, double *out)
{
    struct bench_job job = {.c = c, .threads = 1};

    memcpy(job.in, in, sizeof(job.in));
    if (in_f64(&job, out))
        for (int64_t i = 0; i < c->out_count; i++)
            out[i] = INFINITY; /* equals no result */
    hob_error_release(&job.error);
}

/* 0.999 for every second op. */
static double chain_at(const struct bench_case *c, const struct bench_array *in,
                       int64_t at)
{
    (void)in;
    (void)at;
    return pow(0.999, (double)(c->n[DEPTH] / 2));
}

/* ---- growth: a chain's own memory must not stay ---- */

static hob_tensor *many_chains(hob_scope *scope, hob_tensor *const *in,
                               const struct bench_case *c)
{
    enum { WARM = 20, CHAINS = 1000 };
    const struct bench_case one = {.n = {c->n[DEPTH]}};
    struct bench_memory before;
    hob_tensor *grad = in[0];

    for (int i = 0; i < WARM + CHAINS; i++) {
        hob_scope *inside = hob_scope_child(scope);

        if (i == WARM)
            bench_memory_begin(&before);
        grad = chain(inside, in, &one);
        if (i + 1 == WARM + CHAINS)
            grad = hob_keep(scope, grad);
        hob_scope_close(inside);
    }
    if (bench_memory_peak(&before) > 1 << 20)
        return hob_scope_host(scope)->scope_fail(
            scope, HOB_ERR_MEMORY, "memory has grown by %.1f MB",
            (double)bench_memory_peak(&before) / 1e6);
    return grad;
}

/* ---- the table ---- */

#define F32 HOB_DTYPE_F32
#define CHAIN(depth)                                                           \
    .in = {{F32, {1}, 0, 1}}, .n = {depth},                                    \
    .program = {.hob = chain, .device = "autodiff(flex)", .is_tracked = 1},    \
    .torch_setup = "run = nn.chain(a, n[0])", .torch = "run()",                \
    .is_training = 1, .at = chain_at, .tolerance = 1e-4, .out_count = 1,       \
    .is_serial = 1

/* A layer's activations [512, 256] are 0.5 MiB. A layer keeps the input of gelu
 * and that of the product, or one of them. What is kept at a time: those of all
 * layers; or what goes into each segment and those of one. 4 more are in work,
 * or 6 where an input is computed again. */
#define LAYERS(label, spec, size, checkpointed, kept)                          \
    {                                                                          \
        .id = "C28", .name = label,                                            \
        .in = {{F32, {256, 256}, -0.15, 0.15},                                 \
               {F32, {512, 256}, 0, 0},                                        \
               {F32, {256}, -0.15, 0.15}},                                     \
        .n = {64, size},                                                       \
        .program = {.hob = layers, .device = spec, .is_tracked = 1},           \
        .torch_setup = "run = nn.deep(b, a, c, n[0], " checkpointed ")",       \
        .torch = "run()", .is_training = 1, .all = gradient_f64,               \
        .tolerance = 1e-3, .out_count = 256 * 256,                             \
        .flops = 64 * 6.0 * 512 * 256 * 256, .run_seconds = 0.15,              \
        .target = {.peak_bytes = 1.05 * (kept)*524288},                        \
        .note = "the target is for memory: 1.05 of what must be kept"          \
    }

static const struct bench_case cases[] = {
    {.id = "C27",
     .name = "chain of 1000 ops, forward and backward",
     CHAIN(1000),
     .target = {.peer = 8}},
    {.id = "C27",
     .name = "1000 chains of 1000 ops, no growth",
     .in = {{F32, {1}, 0, 1}},
     .n = {1000},
     .program = {.hob = many_chains,
                 .device = "autodiff(flex)",
                 .is_tracked = 1},
     .at = chain_at,
     .tolerance = 1e-4,
     .out_count = 1,
     .is_serial = 1,
     .is_once = 1,
     .run_seconds = 0.4,
     .note = "it fails if memory grows over a million ops"},

    LAYERS("64 layers, all kept", "autodiff(flex)", 0, "False", 64 * 2 + 4),
    LAYERS("64 layers, computed again", "autodiff{checkpoint=balanced}(flex)",
           0, "False", 64 * 1 + 6),
    LAYERS("64 layers, segments of 8", "autodiff(flex)", 8, "True",
           8 + 8 * 2 + 4),
    LAYERS("64 layers, segments of 8, computed again",
           "autodiff{checkpoint=balanced}(flex)", 8, "True", 8 + 8 * 1 + 6),
    LAYERS("64 layers, all kept, fusion", "autodiff(fusion(flex))", 0, "False",
           64 * 2 + 4),
    LAYERS("64 layers, computed again, fusion",
           "autodiff{checkpoint=balanced}(fusion(flex))", 0, "False",
           64 * 1 + 6),
    LAYERS("64 layers, segments of 8, fusion", "autodiff(fusion(flex))", 8,
           "True", 8 + 8 * 2 + 4),
    LAYERS("64 layers, segments of 8, computed again, fusion",
           "autodiff{checkpoint=balanced}(fusion(flex))", 8, "True",
           8 + 8 * 1 + 6),
    {.id = "C28",
     .name = "4 layers of 16, computed again",
     .in = {{F32, {16, 16}, -0.5, 0.5},
            {F32, {8, 16}, 0, 0},
            {F32, {16}, -0.5, 0.5}},
     .n = {4},
     .program = {.hob = layers,
                 .device = "autodiff{checkpoint=balanced}(flex)",
                 .is_tracked = 1},
     .all = gradient_f64,
     .tolerance = 1e-4,
     .out_count = 16 * 16,
     .is_smoke_only = 1},
    {.id = "C28",
     .name = "6 layers of 16, segments of 2",
     .in = {{F32, {16, 16}, -0.5, 0.5},
            {F32, {8, 16}, 0, 0},
            {F32, {16}, -0.5, 0.5}},
     .n = {6, 2},
     .program = {.hob = layers, .device = "autodiff(flex)", .is_tracked = 1},
     .all = gradient_f64,
     .tolerance = 1e-4,
     .out_count = 16 * 16,
     .is_smoke_only = 1},
};

const struct bench_family bench_graphs = {cases,
                                          sizeof(cases) / sizeof(cases[0])};
