/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "way.h"

#include "memory.h"
#include "suite.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Hob: one function of the case ---- */

/* Tiny results of several calls stay until their scope ends. */
enum { TINY = 64, CALLS_A_SCOPE = 256 };

struct hob_state {
    bench_hob_fn fn;
    hob_runtime *runtime;
    hob_device *device;
    hob_scope *root;
    hob_tensor *args[BENCH_SETS][BENCH_INPUTS];
    int sets, turn;
    uint64_t calls_a_scope;
};

static hob_status hob_way_open(struct bench_job *job)
{
    const struct bench_case *c = job->c;
    const char *device = job->way->device ? job->way->device : c->device;
    struct hob_state *state = calloc(1, sizeof(*state));
    hob_status st;

    job->state = state;
    if (!state)
        return HOB_ERR_MEMORY;
    state->fn = job->way->hob;
    state->sets = bench_sets(c);
    state->calls_a_scope = c->out_count <= TINY && c->bytes <= 4096 &&
                                   c->flops <= 4096 && !c->is_once
                               ? CALLS_A_SCOPE
                               : 1;
    st = bench_open(job, device ? device : "flex", &state->runtime,
                    &state->device);
    if (st)
        return st;
    state->root = hob_scope_open(state->runtime);
    for (int s = 0; s < state->sets; s++)
        for (int i = 0; i < job->in_count; i++)
            state->args[s][i] = hob_from_data(
                state->root, state->device, c->in[i].dtype, job->in[i].data,
                c->in[i].shape, bench_rank(&c->in[i]));
    for (int s = 0; s < state->sets && job->way->is_tracked; s++)
        state->args[s][0] = hob_require_grad(state->root, state->args[s][0]);
    return hob_scope_error(state->root, &job->error);
}

static hob_status hob_way_check(struct bench_job *job, double *out)
{
    struct hob_state *state = job->state;
    hob_scope *scope = hob_scope_child(state->root);
    hob_tensor *result = state->fn(scope, state->args[0], job->c);
    hob_status st = hob_scope_error(scope, &job->error);

    if (!st && hob_tensor_count(result) != job->c->out_count)
        st = hob_error_set(&job->error, HOB_ERR_SHAPE,
                           "%" PRId64 " elements instead of %" PRId64,
                           hob_tensor_count(result), job->c->out_count);
    if (!st)
        st = hob_read_f64(result, out, job->c->out_count, &job->error);
    hob_scope_close(scope);
    return st;
}

static void hob_way_run(struct bench_job *job, uint64_t repeats)
{
    struct hob_state *state = job->state;

    while (repeats) {
        hob_scope *scope = hob_scope_child(state->root);
        uint64_t calls =
            repeats < state->calls_a_scope ? repeats : state->calls_a_scope;

        for (uint64_t i = 0; i < calls; i++) {
            (void)state->fn(scope, state->args[state->turn], job->c);
            state->turn = (state->turn + 1) % state->sets;
        }
        hob_scope_close(scope);
        repeats -= calls;
    }
}

static void hob_way_close(struct bench_job *job)
{
    struct hob_state *state = job->state;

    if (!state)
        return;
    hob_scope_close(state->root);
    hob_device_unref(state->device);
    if (hob_runtime_close(state->runtime, &job->error))
        fprintf(stderr, "%s: %s\n", job->c->name, job->error.message);
    free(state);
}

/* ---- host arrays: plain loops and OpenBLAS ---- */

struct array_state {
    void *library;
    struct bench_blas blas;
    float *out;
};

static hob_status array_open(struct bench_job *job)
{
    struct array_state *state = calloc(1, sizeof(*state));
    const size_t bytes = (size_t)job->c->out_count * sizeof(float);

    job->state = state;
    if (state)
        state->out = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!state || !state->out)
        return HOB_ERR_MEMORY;
    memset(state->out, 0, bytes);
    return HOB_OK;
}

static hob_status blas_check(struct bench_job *job, double *out)
{
    const struct array_state *state = job->state;

    job->c->blas(job->c, &state->blas, job->in, state->out);
    for (int64_t i = 0; i < job->c->out_count; i++)
        out[i] = (double)state->out[i];
    return HOB_OK;
}

static void loop_run(struct bench_job *job, uint64_t repeats)
{
    const struct array_state *state = job->state;

    for (uint64_t i = 0; i < repeats; i++)
        job->c->loop(job->c, job->in, state->out);
}

static hob_status loop_check(struct bench_job *job, double *out)
{
    const struct array_state *state = job->state;

    job->c->loop(job->c, job->in, state->out);
    for (int64_t i = 0; i < job->c->out_count; i++)
        out[i] = (double)state->out[i];
    return HOB_OK;
}

static hob_status blas_open(struct bench_job *job)
{
    struct array_state *state;
    void (*set_threads)(int) = NULL;
    hob_status st = array_open(job);

    if (st)
        return st;
    state = job->state;
    /* Read when the library is opened, which nobody has done before. */
    if (job->kernel_set)
        (void)setenv("OPENBLAS_CORETYPE", job->kernel_set, 1);
    state->library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!state->library)
        return hob_error_set(&job->error, HOB_ERR_UNSUPPORTED, "%s", dlerror());
    *(void **)&state->blas.sgemm = dlsym(state->library, "cblas_sgemm");
    *(void **)&state->blas.sgemv = dlsym(state->library, "cblas_sgemv");
    *(void **)&set_threads = dlsym(state->library, "openblas_set_num_threads");
    if (!state->blas.sgemm || !state->blas.sgemv || !set_threads)
        return hob_error_set(&job->error, HOB_ERR_UNSUPPORTED,
                             "libopenblas.so.0 lacks a function");
    set_threads(job->threads);
    return HOB_OK;
}

static void blas_run(struct bench_job *job, uint64_t repeats)
{
    const struct array_state *state = job->state;

    for (uint64_t i = 0; i < repeats; i++)
        job->c->blas(job->c, &state->blas, job->in, state->out);
}

static void array_close(struct bench_job *job)
{
    struct array_state *state = job->state;

    if (state)
        free(state->out);
    free(state); /* the library stays: it has threads */
}

static const struct bench_way loop_way = {.who = "C loop",
                                          .open = array_open,
                                          .check = loop_check,
                                          .run = loop_run,
                                          .close = array_close};
static const struct bench_way blas_way = {.who = "OpenBLAS",
                                          .open = blas_open,
                                          .check = blas_check,
                                          .run = blas_run,
                                          .close = array_close};

/* ---- the protocol ---- */

/* The way called WHO of C; 0 if it has none. */
static int find_way(const struct bench_case *c, const char *who,
                    struct bench_way *out)
{
    int i = 0;

    if (strcmp(who, "C loop") == 0 && c->loop) {
        *out = loop_way;
        return 1;
    }
    if (strcmp(who, "OpenBLAS") == 0 && c->blas) {
        *out = blas_way;
        return 1;
    }
    while (i < BENCH_WAYS && c->ways[i].who && strcmp(who, c->ways[i].who) != 0)
        i++;
    if (strcmp(who, "hob") == 0)
        *out = c->program;
    else if (i < BENCH_WAYS && c->ways[i].who)
        *out = c->ways[i];
    else
        return 0;
    if (!out->run && !out->hob)
        out->hob = c->hob;
    if (out->hob) {
        out->open = hob_way_open;
        out->check = hob_way_check;
        out->run = hob_way_run;
        out->close = hob_way_close;
    }
    return 1;
}

/* Compute the result and write it. */
static hob_status check(struct bench_job *job, const struct bench_way *way,
                        const char *out_path)
{
    const size_t count = (size_t)job->c->out_count;
    double *out;
    FILE *file;
    hob_status st;

    if (!way->check || !count) {
        way->run(job, 1);
        return job->error.status;
    }
    out = calloc(count, sizeof(*out));
    if (!out)
        return HOB_ERR_MEMORY;
    st = way->check(job, out);
    file = st ? NULL : fopen(out_path, "w");
    if (!st && (!file || fwrite(out, sizeof(*out), count, file) != count))
        st = hob_error_set(&job->error, HOB_ERR_IO, "%s: cannot be written",
                           out_path);
    if (file && fclose(file) && !st)
        st = hob_error_set(&job->error, HOB_ERR_IO, "%s: cannot be written",
                           out_path);
    free(out);
    return st;
}

/* The first run, with its memory, and a later one, whose allocations count. */
static hob_status start(struct bench_job *job, const struct bench_way *way,
                        const char *out_path, int64_t *out_peak,
                        int64_t *out_allocations)
{
    struct bench_memory before;
    hob_status st = way->open ? way->open(job) : HOB_OK;

    if (st)
        return st;
    bench_memory_begin(&before);
    way->run(job, 1);
    *out_peak = bench_memory_peak(&before);
    st = job->error.status;
    if (!st)
        st = check(job, way, out_path);
    *out_allocations = bench_allocations();
    if (!st && *out_allocations >= 0) {
        way->run(job, 1);
        *out_allocations = bench_allocations() - *out_allocations;
    }
    return st ? st : job->error.status;
}

static void answer(struct bench_job *job, const struct bench_way *way)
{
    char line[64];

    while (fgets(line, sizeof(line), stdin)) {
        uint64_t repeats, begin, ns;

        if (sscanf(line, "run %" SCNu64, &repeats) != 1)
            return;
        begin = bench_now_ns();
        way->run(job, repeats);
        ns = bench_now_ns() - begin;
        if (job->error.status)
            printf("error %s\n", job->error.message);
        else
            printf("time %" PRIu64 "\n", ns);
        (void)fflush(stdout);
    }
}

int bench_way_serve(const struct bench_case *c, const char *who,
                    const char *kernel_set, int threads, const char *out_path)
{
    struct bench_way way;
    struct bench_job job = {.c = c, .way = &way, .threads = threads};
    int64_t peak = 0, allocations = -1;
    hob_status st;

    if (!find_way(c, who, &way)) {
        printf("none %s has no way called %s\n", c->id, who);
        return 1;
    }
    if (way.threads)
        job.threads = way.threads;
    job.kernel_set = kernel_set && *kernel_set ? kernel_set : NULL;
    job.in_count = bench_input_count(c);
    st = bench_make_inputs(c, job.in) ? HOB_OK : HOB_ERR_MEMORY;
    if (!st)
        st = start(&job, &way, out_path, &peak, &allocations);
    if (st) {
        printf("%s %s\n",
               st == HOB_ERR_UNSUPPORTED || st == HOB_ERR_NOT_FOUND ? "none"
                                                                    : "error",
               job.error.message ? job.error.message : hob_status_name(st));
    } else {
        printf("ready %ld %" PRId64 " %" PRId64 " %" PRId64 "\n",
               (long)getpid(), c->out_count, peak, allocations);
    }
    (void)fflush(stdout);
    if (!st)
        answer(&job, &way);
    if (way.close)
        way.close(&job);
    bench_free_inputs(job.in, job.in_count);
    hob_error_release(&job.error);
    return st != HOB_OK;
}
