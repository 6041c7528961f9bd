/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "measure.h"

#include "reference.h"
#include "suite.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SAMPLE_NS = 2000000, /* of short work: that many runs */
    SAMPLES = 25,        /* if the time allows */
    SAMPLES_LEAST = 5,
    SAMPLES_LONG = 3, /* of runs that are longer than */
    LONG_NS = 200000000,
    WARM_NS = 30000000,
    READY_SECONDS = 120,
    RUN_SECONDS = 60
};

/* A way at work. */
struct runner {
    struct measure_way *way;
    struct bench_process own;
    struct bench_process *process; /* own, or a peer's */
    double samples[MEASURE_SAMPLES];
    double spent_ns;
    uint64_t repeats;
};

static void fail(struct measure_way *way, enum measure_state state,
                 const char *message)
{
    way->state = state;
    (void)snprintf(way->message, sizeof(way->message), "%.300s", message);
}

/* ---- talking ---- */

/* Hear the line that ends a way's start, and check its result. */
static void hear_ready(const struct bench_case *c, struct runner *runner,
                       const struct reference *reference, const char *path)
{
    struct measure_way *way = runner->way;
    char line[400];
    long pid = 0;
    int64_t count = 0;

    if (!bench_process_hear(runner->process, line, sizeof(line),
                            READY_SECONDS)) {
        fail(way, MEASURE_ERROR, "it died, or no answer came");
        bench_process_end(runner->process);
        return;
    }
    if (sscanf(line, "ready %ld %" SCNd64 " %" SCNd64 " %" SCNd64, &pid, &count,
               &way->peak_bytes, &way->allocations) == 4) {
        runner->process->working = (pid_t)pid;
        /* A base may do something else than the case. */
        if (!reference || !reference->count || way->is_base)
            return;
        if (count != c->out_count)
            fail(way, MEASURE_WRONG, "wrong number of elements");
        else
            way->state = reference_compare(c, reference, path, &way->error,
                                           way->message, sizeof(way->message));
        return;
    }
    if (strncmp(line, "none ", 5) == 0)
        fail(way, MEASURE_NONE, line + 5);
    else
        fail(way, MEASURE_ERROR,
             strncmp(line, "error ", 6) == 0 ? line + 6 : line);
}

static void start_own(struct measure_options *options, struct measure_row *row,
                      struct runner *runner, const char *preload,
                      const char *path)
{
    char who[48], number[24], threads[24];
    const char *kernel_set = "";
    const char *argv[] = {options->program, "--way", number, who, NULL,
                          threads,          path,    NULL};
    const char *environment[] = {preload, NULL};
    char *colon;

    /* "OpenBLAS Haswell" is the way OpenBLAS with that kernel set. */
    (void)snprintf(who, sizeof(who), "%s", runner->way->who);
    colon = strncmp(who, "OpenBLAS ", 9) == 0 && row->c->blas ? who + 8 : NULL;
    if (colon) {
        *colon = '\0';
        kernel_set = strcmp(colon + 1, "auto") == 0 ? "" : colon + 1;
    }
    argv[4] = kernel_set;
    (void)snprintf(number, sizeof(number), "%zu", bench_case_number(row->c));
    (void)snprintf(threads, sizeof(threads), "%d", row->threads);
    runner->process = &runner->own;
    if (!bench_process_start(&runner->own, argv, environment))
        fail(runner->way, MEASURE_ERROR, "no process can be started");
}

static void start_python(struct measure_options *options,
                         struct measure_row *row, struct runner *runner,
                         struct bench_peer *peer, const char *work,
                         const char *path)
{
    char *text;

    if (!peer_start(peer, options->python, options->peer)) {
        fail(runner->way, MEASURE_NONE, "not installed");
        return;
    }
    text = peer_describe(row->c, row->threads, work, options->folder, path);
    runner->process = &peer->process;
    if (!text || !bench_process_say(&peer->process, text))
        fail(runner->way, MEASURE_ERROR, "it ended");
    free(text);
}

/* ---- who takes part ---- */

static struct measure_way *add_way(struct measure_row *row, const char *who)
{
    struct measure_way *way = &row->ways[row->way_count];

    if (row->way_count == MEASURE_WAYS)
        return &row->ways[MEASURE_WAYS - 1];
    row->way_count++;
    (void)snprintf(way->who, sizeof(way->who), "%s", who);
    way->peak_bytes = way->allocations = -1;
    way->is_busy = row->c->is_busy;
    return way;
}

/* OpenBLAS by itself, and each of its kernel sets that runs here. */
static void add_blas(struct measure_row *row)
{
    (void)add_way(row, "OpenBLAS auto");
#if defined(__x86_64__)
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return;
    (void)add_way(row, "OpenBLAS Haswell");
    (void)add_way(row, "OpenBLAS Zen");
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        (void)add_way(row, "OpenBLAS Cooperlake");
#endif
}

static void list_ways(struct measure_row *row)
{
    const struct bench_case *c = row->c;

    row->way_count = 0;
    memset(row->ways, 0, sizeof(row->ways));
    (void)add_way(row, "hob");
    for (int i = 0; i < BENCH_WAYS && c->ways[i].who; i++) {
        struct measure_way *way = add_way(row, c->ways[i].who);

        way->is_base = c->ways[i].is_base;
        way->is_busy = c->is_busy && !way->is_base;
    }
    if (c->blas)
        add_blas(row);
    if (c->loop && row->threads == 1)
        (void)add_way(row, "C loop");
    if (c->numexpr)
        (void)add_way(row, "numexpr");
    if (c->torch) {
        (void)add_way(row, "torch");
        (void)add_way(row, "torch tuned");
    }
}

static void start(struct measure_options *options, struct measure_row *row,
                  struct runner *runner, const char *path)
{
    const char *who = runner->way->who;

    if (strcmp(who, "torch") == 0)
        start_python(options, row, runner, &options->peers[PEER_TORCH],
                     row->c->torch, path);
    else if (strcmp(who, "torch tuned") == 0)
        start_python(options, row, runner, &options->peers[PEER_TORCH_TUNED],
                     row->c->torch, path);
    else if (strcmp(who, "numexpr") == 0)
        start_python(options, row, runner, &options->peers[PEER_NUMEXPR],
                     row->c->numexpr, path);
    else
        start_own(options, row, runner, NULL, path);
}

static void stop(struct runner *runner)
{
    if (!runner->process)
        return;
    bench_process_resume(runner->process);
    if (runner->process == &runner->own) {
        bench_process_end(&runner->own);
    } else if (runner->process->working != runner->process->pid) {
        (void)bench_process_say(runner->process, "end");
        runner->process->working = runner->process->pid;
    }
    runner->process = NULL;
}

/* ---- timing ---- */

/* One sample; the time of a run, or 0 on failure. */
static double take(struct runner *runner)
{
    char line[400];
    uint64_t ns = 0;

    (void)snprintf(line, sizeof(line), "run %" PRIu64, runner->repeats);
    bench_process_resume(runner->process);
    if (!bench_process_say(runner->process, line) ||
        !bench_process_hear(runner->process, line, sizeof(line), RUN_SECONDS)) {
        fail(runner->way, MEASURE_ERROR, "it died, or no answer came");
        bench_process_end(runner->process);
        return 0;
    }
    bench_process_pause(runner->process);
    if (sscanf(line, "time %" SCNu64, &ns) != 1) {
        fail(runner->way, MEASURE_ERROR, line);
        return 0;
    }
    runner->spent_ns += (double)ns;
    return (double)(ns ? ns : 1) / (double)runner->repeats;
}

/* Run until warm, and find how many runs a sample has. */
static void calibrate(const struct bench_case *c, struct runner *runner)
{
    double once = 0;

    runner->repeats = 1;
    while (!runner->way->state) {
        double all;

        once = take(runner);
        all = once * (double)runner->repeats;
        if (c->is_once)
            break;
        if (all < SAMPLE_NS)
            runner->repeats *= all > 0 && SAMPLE_NS / all < 2 ? 2
                               : all > SAMPLE_NS / 64.0
                                   ? (uint64_t)(SAMPLE_NS / all) + 1
                                   : 16;
        else if (runner->spent_ns >= WARM_NS)
            break;
    }
    runner->spent_ns = 0;
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void summarize(struct runner *runner)
{
    struct measure_way *way = runner->way;

    if (way->state || !way->samples)
        return;
    qsort(runner->samples, (size_t)way->samples, sizeof(double),
          compare_doubles);
    way->median_ns = runner->samples[way->samples / 2];
    way->min_ns = runner->samples[0];
}

/* A process that computes and does nothing else, stopped. */
static pid_t start_busy(void)
{
    const pid_t pid = fork();
    volatile double x = 1;

    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            x = x * 0.999 + 0.001;
    }
    if (pid > 0)
        (void)kill(pid, SIGSTOP);
    return pid;
}

static int has_enough(const struct runner *runner, double allowed_ns)
{
    const int samples = runner->way->samples;
    const int is_long =
        samples > 0 && runner->spent_ns / samples > (double)LONG_NS;

    return runner->spent_ns > allowed_ns &&
           samples >= (is_long ? SAMPLES_LONG : SAMPLES_LEAST);
}

static void take_turns(const struct measure_options *options,
                       const struct bench_case *c, struct runner *runners,
                       int count)
{
    const double allowed_ns = 1e9 * options->seconds;
    pid_t busy = 0;

    for (int i = 0; i < count; i++)
        if (!runners[i].way->state)
            calibrate(c, &runners[i]);
    for (int sample = 0; sample < SAMPLES; sample++)
        for (int i = 0; i < count; i++) {
            struct runner *runner = &runners[i];
            double ns;

            if (runner->way->state || has_enough(runner, allowed_ns))
                continue;
            if (runner->way->is_busy && !busy)
                busy = start_busy();
            if (runner->way->is_busy && busy > 0)
                (void)kill(busy, SIGCONT);
            ns = take(runner);
            if (busy > 0)
                (void)kill(busy, SIGSTOP);
            if (!runner->way->state)
                runner->samples[runner->way->samples++] = ns;
        }
    for (int i = 0; i < count; i++)
        summarize(&runners[i]);
    if (busy > 0) {
        (void)kill(busy, SIGKILL);
        (void)waitpid(busy, NULL, 0);
    }
}

/* The allocations of a run, in a process of its own, for counting costs. */
static void count_allocations(struct measure_options *options,
                              struct measure_row *row, const char *path)
{
    static const struct {
        const char *who;
        int peer;
    } counted[] = {{"hob", -1}, {"torch", PEER_TORCH_COUNTED}};
    char preload[300];

    if (!options->count_calls)
        return;
    (void)snprintf(preload, sizeof(preload), "LD_PRELOAD=%s",
                   options->count_calls);
    for (int i = 0; i < row->way_count; i++)
        for (size_t k = 0; k < sizeof(counted) / sizeof(counted[0]); k++) {
            struct measure_way way = row->ways[i];
            struct runner runner = {.way = &way};

            if (strcmp(way.who, counted[k].who) != 0 || way.state)
                continue;
            if (counted[k].peer < 0)
                start_own(options, row, &runner, preload, path);
            else
                start_python(options, row, &runner,
                             &options->peers[counted[k].peer], row->c->torch,
                             path);
            if (!way.state)
                hear_ready(row->c, &runner, NULL, path);
            if (!way.state)
                row->ways[i].allocations = way.allocations;
            stop(&runner);
        }
}

/* ---- public ---- */

static int write_inputs(const struct measure_options *options,
                        const struct bench_array *in, int count)
{
    int ok = 1;

    for (int i = 0; i < count; i++) {
        const size_t size = bench_size(in[i].input->dtype);
        const size_t items = (size_t)in[i].count;
        char path[240];
        FILE *file;

        (void)snprintf(path, sizeof(path), "%s/in%d", options->folder, i);
        file = fopen(path, "w");
        ok &= file && fwrite(in[i].data, size, items, file) == items;
        if (file && fclose(file))
            ok = 0;
    }
    return ok;
}

double measure_estimate(const struct measure_options *options,
                        const struct bench_case *c, int threads)
{
    const double startup = 0.2; /* of a process, and its first runs */
    struct measure_row row = {.c = c, .threads = threads};
    double each = options->is_smoke ? 0 : options->seconds;

    list_ways(&row);
    /* What starts it and warms it up are four runs more. */
    if (each > 0 && each < (SAMPLES_LONG + 4) * c->run_seconds)
        each = (SAMPLES_LONG + 4) * c->run_seconds;
    return row.way_count * (each + startup);
}

void measure_row(struct measure_options *options, struct measure_row *row)
{
    const struct bench_case *c = row->c;
    struct bench_array in[BENCH_INPUTS];
    struct reference reference = {NULL, NULL, 0, 0};
    struct runner runners[MEASURE_WAYS];
    char path[240];

    memset(runners, 0, sizeof(runners));
    list_ways(row);
    (void)snprintf(path, sizeof(path), "%s/out", options->folder);
    if (!bench_make_inputs(c, in) || !reference_make(c, in, &reference) ||
        ((c->torch || c->numexpr) &&
         !write_inputs(options, in, bench_input_count(c)))) {
        fail(&row->ways[0], MEASURE_ERROR, "no memory, or no room for files");
        reference_free(&reference);
        return;
    }
    bench_free_inputs(in, bench_input_count(c));
    for (int i = 0; i < row->way_count && !row->ways[0].state; i++) {
        runners[i].way = &row->ways[i];
        start(options, row, &runners[i], path);
        if (!row->ways[i].state)
            hear_ready(c, &runners[i], &reference, path);
        if (!row->ways[i].state)
            bench_process_pause(runners[i].process);
    }
    reference_free(&reference);
    /* What computes something else is not faster, it is wrong. */
    if (!row->ways[0].state && !options->is_smoke)
        take_turns(options, c, runners, row->way_count);
    for (int i = 0; i < row->way_count; i++)
        stop(&runners[i]);
    if (!row->ways[0].state && !options->is_smoke)
        count_allocations(options, row, path);
}

void measure_end(struct measure_options *options)
{
    for (int i = 0; i < PEER_COUNT; i++)
        bench_process_end(&options->peers[i].process);
}
