/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.c - C29: beside a busy process; C30: what threads cost.
 *
 * n as in matmul.c for products; else 0 the number of elements.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

/* ---- work ---- */

static hob_tensor *matmul(hob_scope *scope, hob_tensor *const *in,
                          const struct bench_case *c)
{
    (void)c;
    return hob_matmul(scope, in[0], in[1]);
}

static void sgemm(const struct bench_case *c, const struct bench_blas *blas,
                  const struct bench_array *in, float *out)
{
    enum { ROW_MAJOR = 101, PLAIN = 111 }; /* of CBLAS */
    const int m = (int)c->n[0], n = (int)c->n[1], k = (int)c->n[2];

    blas->sgemm(ROW_MAJOR, PLAIN, PLAIN, m, n, k, 1, bench_f32(&in[0]), k,
                bench_f32(&in[1]), n, 0, out, n);
}

static double matmul_at(const struct bench_case *c,
                        const struct bench_array *in, int64_t at)
{
    const int64_t n = c->n[1], k = c->n[2];
    double sum = 0;

    for (int64_t p = 0; p < k; p++)
        sum += bench_get(&in[0], at / n * k + p) *
               bench_get(&in[1], p * n + at % n);
    return sum;
}

static hob_tensor *add(hob_scope *scope, hob_tensor *const *in,
                       const struct bench_case *c)
{
    (void)c;
    return hob_add(scope, in[0], in[1]);
}

static double add_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t i)
{
    (void)c;
    return bench_get(&in[0], i) + bench_get(&in[1], i);
}

static hob_tensor *exponential(hob_scope *scope, hob_tensor *const *in,
                               const struct bench_case *c)
{
    (void)c;
    return hob_exp(scope, in[0]);
}

static double exp_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t i)
{
    (void)c;
    return exp(bench_get(&in[0], i));
}

/* ---- parallel regions ---- */

struct region {
    hob_runtime *runtime;
    hob_device *device;
    hob_scope *scope;
    void (*gomp)(void (*fn)(void *), void *context, unsigned threads,
                 unsigned flags);
    uint32_t parts; /* that have run, of the last region */
};

static hob_status hob_region_open(struct bench_job *job)
{
    struct region *region = calloc(1, sizeof(*region));
    hob_status st;

    job->state = region;
    if (!region)
        return HOB_ERR_MEMORY;
    st = bench_open(job, "flex", &region->runtime, &region->device);
    if (!st)
        region->scope = hob_scope_open(region->runtime);
    return st;
}

static void hob_region_close(struct bench_job *job)
{
    struct region *region = job->state;

    if (!region)
        return;
    hob_scope_close(region->scope);
    hob_device_unref(region->device);
    if (hob_runtime_close(region->runtime, NULL))
        job->error.status = HOB_ERR_BUSY;
    free(region);
}

static void count_part(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct region *region = context;

    (void)worker;
    (void)__atomic_fetch_add(&region->parts, (uint32_t)(last - first),
                             __ATOMIC_RELAXED);
}

/* As many parts as there are threads. */
static void hob_region_run(struct bench_job *job, uint64_t repeats)
{
    struct region *region = job->state;
    const struct hob_host *host = hob_scope_host(region->scope);

    for (uint64_t i = 0; i < repeats; i++) {
        region->parts = 0;
        host->parallel_for(host, job->threads, 1, count_part, region);
    }
}

static hob_status region_check(struct bench_job *job, double *out)
{
    const struct region *region = job->state;

    job->way->run(job, 1);
    *out = region->parts >= (uint32_t)job->threads;
    return HOB_OK;
}

static hob_status gomp_open(struct bench_job *job)
{
    struct region *region = calloc(1, sizeof(*region));
    void *library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);

    job->state = region;
    if (!region)
        return HOB_ERR_MEMORY;
    if (library)
        *(void **)&region->gomp = dlsym(library, "GOMP_parallel");
    return region->gomp ? HOB_OK
                        : hob_error_set(&job->error, HOB_ERR_UNSUPPORTED,
                                        "libgomp.so.1 is not there");
}

static void count_thread(void *context)
{
    count_part(context, 0, 1, 0);
}

static void gomp_run(struct bench_job *job, uint64_t repeats)
{
    struct region *region = job->state;

    for (uint64_t i = 0; i < repeats; i++) {
        region->parts = 0;
        region->gomp(count_thread, region, (unsigned)job->threads, 0);
    }
}

static void gomp_close(struct bench_job *job)
{
    free(job->state); /* the library stays: it has threads */
}

static double one_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t i)
{
    (void)c;
    (void)in;
    (void)i;
    return 1;
}

/* ---- several callers: each has a scope, and takes exp of its own input ----
 */

enum { CALLERS = 2 };

struct caller {
    hob_scope *scope;
    hob_tensor *x;
    uint64_t repeats;
    pthread_t id;
};

struct callers {
    hob_runtime *runtime;
    hob_device *device;
    struct caller one[CALLERS];
};

static hob_status callers_open(struct bench_job *job)
{
    struct callers *callers = calloc(1, sizeof(*callers));
    hob_status st;

    job->state = callers;
    if (!callers)
        return HOB_ERR_MEMORY;
    st = bench_open(job, "flex", &callers->runtime, &callers->device);
    for (int i = 0; i < CALLERS && !st; i++) {
        struct caller *caller = &callers->one[i];

        caller->scope = hob_scope_open(callers->runtime);
        caller->x =
            hob_from_f32(caller->scope, callers->device, bench_f32(&job->in[0]),
                         job->c->in[0].shape, bench_rank(&job->c->in[0]));
        st = hob_scope_error(caller->scope, &job->error);
    }
    return st;
}

static void callers_close(struct bench_job *job)
{
    struct callers *callers = job->state;

    if (!callers)
        return;
    for (int i = 0; i < CALLERS; i++)
        hob_scope_close(callers->one[i].scope);
    hob_device_unref(callers->device);
    if (hob_runtime_close(callers->runtime, NULL))
        job->error.status = HOB_ERR_BUSY;
    free(callers);
}

static void *call(void *context)
{
    struct caller *caller = context;

    for (uint64_t i = 0; i < caller->repeats; i++) {
        hob_scope *scope = hob_scope_child(caller->scope);

        (void)hob_exp(scope, caller->x);
        hob_scope_close(scope);
    }
    return NULL;
}

/* All callers at once. */
static void callers_run(struct bench_job *job, uint64_t repeats)
{
    struct callers *callers = job->state;
    int started = 0;

    while (started < CALLERS) {
        struct caller *caller = &callers->one[started];

        caller->repeats = repeats;
        if (pthread_create(&caller->id, NULL, call, caller))
            break;
        started++;
    }
    if (started < CALLERS)
        (void)hob_error_set(&job->error, HOB_ERR_MEMORY, "no more threads");
    while (started)
        (void)pthread_join(callers->one[--started].id, NULL);
}

/* One after the other. */
static void in_turn_run(struct bench_job *job, uint64_t repeats)
{
    struct callers *callers = job->state;

    for (int i = 0; i < CALLERS; i++) {
        callers->one[i].repeats = repeats;
        (void)call(&callers->one[i]);
    }
}

/* What the last caller gets while the others are at work. */
static hob_status callers_check(struct bench_job *job, double *out)
{
    struct callers *callers = job->state;
    struct caller *last = &callers->one[CALLERS - 1];
    struct caller *first = &callers->one[0];
    hob_status st;

    first->repeats = 10;
    if (pthread_create(&first->id, NULL, call, first))
        return hob_error_set(&job->error, HOB_ERR_MEMORY, "no more threads");
    st = hob_read_f64(hob_exp(last->scope, last->x), out, job->c->out_count,
                      &job->error);
    (void)pthread_join(first->id, NULL);
    return st;
}

/* ---- the table ---- */

#define F32 HOB_DTYPE_F32
#define ONE_THREAD(function)                                                   \
    .ways = {{.who = "1 thread", .hob = function, .threads = 1, .is_base = 1}}
/* Not slower than 1 thread, but for what two samples differ by. */
#define NO_LOSS(label, size, function, reference, inputs)                      \
    {                                                                          \
        .id = "C30", .name = label " " #size, inputs(size), .hob = function,   \
        ONE_THREAD(function), .at = reference, .out_count = size,              \
        .is_threads_only = 1, .target = {                                      \
            .base = 0.95                                                       \
        }                                                                      \
    }
/* Not slower than the same calls one after the other. */
#define CALLERS_AT_ONCE(size)                                                  \
    {                                                                          \
        .id = "C30", .name = "2 callers at once, exp " #size " each",          \
        .in = {{F32, {size}, 0, 0}},                                           \
        .program = {.open = callers_open,                                      \
                    .check = callers_check,                                    \
                    .run = callers_run,                                        \
                    .close = callers_close},                                   \
        .ways = {{.who = "one after the other",                                \
                  .open = callers_open,                                        \
                  .run = in_turn_run,                                          \
                  .close = callers_close,                                      \
                  .is_base = 1}},                                              \
        .at = exp_at, .out_count = size, .is_threads_only = 1, .target = {     \
            .base = 0.95                                                       \
        }                                                                      \
    }
#define TWO(size) .in = {{F32, {size}, 0, 0}, {F32, {size}, 0, 0}}
#define ONE(size) .in = {{F32, {size}, 0, 0}}

static const struct bench_case cases[] = {
    {.id = "C29",
     .name = "matmul 1024, beside a busy process",
     .in = {{F32, {1024, 1024}, 0, 0}, {F32, {1024, 1024}, 0, 0}},
     .n = {1024, 1024, 1024},
     .hob = matmul,
     .ways = {{.who = "hob, idle machine", .hob = matmul, .is_base = 1}},
     .blas = sgemm,
     .at = matmul_at,
     .out_count = 1024 * 1024,
     .flops = 2.0 * 1024 * 1024 * 1024,
     .is_busy = 1,
     .is_threads_only = 1,
     .target = {.base = 0.6, .of = {{"OpenBLAS", 1}}},
     .note = "the busy process takes one thread's time"},
    {.id = "C29",
     .name = "exp 1e7, beside a busy process",
     .in = {{F32, {10000000}, 0, 0}},
     .hob = exponential,
     .ways = {{.who = "hob, idle machine", .hob = exponential, .is_base = 1}},
     .torch = "torch.exp(a)",
     .at = exp_at,
     .out_count = 10000000,
     .bytes = 8e7,
     .is_busy = 1,
     .is_threads_only = 1,
     .target = {.base = 0.6}},
    {.id = "C29",
     .name = "exp 1000, beside a busy process",
     .in = {{F32, {1000}, 0, 0}},
     .hob = exponential,
     .at = exp_at,
     .out_count = 1000,
     .is_smoke_only = 1},

    {.id = "C30",
     .name = "parallel regions, back to back",
     .program = {.open = hob_region_open,
                 .check = region_check,
                 .run = hob_region_run,
                 .close = hob_region_close},
     .ways = {{.who = "libgomp",
               .open = gomp_open,
               .check = region_check,
               .run = gomp_run,
               .close = gomp_close}},
     .at = one_at,
     .is_exact = 1,
     .out_count = 1,
     .is_threads_only = 1,
     .target = {.ns = 300, .peer = 1}},
    CALLERS_AT_ONCE(1000),
    CALLERS_AT_ONCE(100000),
    NO_LOSS("add", 1000, add, add_at, TWO),
    NO_LOSS("add", 10000, add, add_at, TWO),
    NO_LOSS("add", 100000, add, add_at, TWO),
    NO_LOSS("add", 1000000, add, add_at, TWO),
    NO_LOSS("add", 10000000, add, add_at, TWO),
    NO_LOSS("exp", 1000, exponential, exp_at, ONE),
    NO_LOSS("exp", 10000, exponential, exp_at, ONE),
    NO_LOSS("exp", 100000, exponential, exp_at, ONE),
    NO_LOSS("exp", 1000000, exponential, exp_at, ONE),
    NO_LOSS("exp", 10000000, exponential, exp_at, ONE),
};

const struct bench_family bench_threads = {cases,
                                           sizeof(cases) / sizeof(cases[0])};
