/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "ceilings.h"

#include "suite.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    THREADS_MAX = 256,
    CHAINS = 12, /* independent sums: latency 4 times 2 units, and some */
    FMA_ROUNDS = 1 << 15,
    DRAM_BYTES = 1 << 27, /* of each array, all threads together */
    HUGE_BYTES = 1 << 21, /* a huge page */
    RUN = 4096,           /* floats that are read one after the other */
    ROUNDS = 7            /* of which the best counts */
};

/* What one thread works on: TO = FROM * 0.999, or a sum, or multiply-adds. */
struct part {
    float *to;
    const float *from;
    int64_t count; /* of floats, a multiple of 64 */
    int64_t repeats;
    float sink[16]; /* what nobody reads, so that it is computed */
};
typedef void (*part_fn)(struct part *part);

/* ---- the loops ---- */

#if defined(__x86_64__)
/* The chains must live in registers, or it is the store buffer that is
 * measured. */
#define UNROLLED _Pragma("GCC unroll 32")
#define TARGET __attribute__((target("avx512f")))
#define NAME(x) x##_v4
#define FLOATS __m512
#define LANES 16
#define SET _mm512_set1_ps
#define LOAD _mm512_loadu_ps
#define STORE _mm512_storeu_ps
#define STREAM _mm512_stream_ps
#define ADD _mm512_add_ps
#define MUL _mm512_mul_ps
#define DIV _mm512_div_ps
#define ROOT _mm512_sqrt_ps
#define FMA _mm512_fmadd_ps
#include "ceilings_tmpl.h"

#define TARGET __attribute__((target("avx2,fma")))
#define NAME(x) x##_v3
#define FLOATS __m256
#define LANES 8
#define SET _mm256_set1_ps
#define LOAD _mm256_loadu_ps
#define STORE _mm256_storeu_ps
#define STREAM _mm256_stream_ps
#define ADD _mm256_add_ps
#define MUL _mm256_mul_ps
#define DIV _mm256_div_ps
#define ROOT _mm256_sqrt_ps
#define FMA _mm256_fmadd_ps
#include "ceilings_tmpl.h"
#endif

static void scale_plain(struct part *part)
{
    for (int64_t r = 0; r < part->repeats; r++)
        for (int64_t i = 0; i < part->count; i++)
            part->to[i] = part->from[i] * 0.999f;
}

static void sum_plain(struct part *part)
{
    for (int64_t r = 0; r < part->repeats; r++) {
        float sums[16] = {0};

        for (int64_t i = 0; i < part->count; i += 16)
            for (int j = 0; j < 16; j++)
                sums[j] += part->from[i + j];
        for (int j = 0; j < 16; j++)
            part->sink[j] += sums[j];
    }
}

/* The widest first; that of this machine which is fastest counts, for 512-bit
 * vectors may lower the clock below their worth. */
struct loops {
    int lanes; /* floats of a vector */
    part_fn fma, root, sum, scale, stream;
};

static int list_loops(struct loops *out)
{
    int count = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        out[count++] =
            (struct loops){16, fma_v4, root_v4, sum_v4, scale_v4, stream_v4};
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        out[count++] =
            (struct loops){8, fma_v3, root_v3, sum_v3, scale_v3, stream_v3};
#endif
    if (!count)
        out[count++] =
            (struct loops){1, NULL, NULL, sum_plain, scale_plain, NULL};
    return count;
}

/* ---- threads ---- */

struct runner {
    pthread_barrier_t *barrier;
    int number; /* of the thread, from 0 */
    part_fn fn;
    struct part part;
    uint64_t begins[ROUNDS], ends[ROUNDS];
};

/* Stay on the processor NUMBER of those that this process may use: threads that
 * wake together are else put on one, and take turns there. Best effort. */
static void stay_on(int number)
{
    cpu_set_t all, one;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(all), &all))
        return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && !number--)
            CPU_SET(cpu, &one);
    if (CPU_COUNT(&one))
        (void)sched_setaffinity(0, sizeof(one), &one);
}

static void *run_part(void *context)
{
    struct runner *runner = context;

    stay_on(runner->number);
    for (int i = 0; i < ROUNDS; i++) {
        (void)pthread_barrier_wait(runner->barrier);
        runner->begins[i] = bench_now_ns();
        runner->fn(&runner->part);
        runner->ends[i] = bench_now_ns();
    }
    return NULL;
}

/* From the first thread's begin to the last one's end. */
static double round_ns(const struct runner *runners, int threads, int round)
{
    uint64_t begin = runners[0].begins[round], end = runners[0].ends[round];

    for (int i = 1; i < threads; i++) {
        if (runners[i].begins[round] < begin)
            begin = runners[i].begins[round];
        if (runners[i].ends[round] > end)
            end = runners[i].ends[round];
    }
    return (double)(end - begin);
}

/* The best time of FN over PART, of which each thread has its own share of
 * COUNT floats; 0 on failure. */
static double best_ns(part_fn fn, const struct part *whole, int threads)
{
    struct runner *runners = calloc((size_t)threads, sizeof(*runners));
    pthread_t ids[THREADS_MAX];
    pthread_barrier_t barrier;
    double best = 0;
    int started = 0;

    if (!runners)
        return 0;
    (void)pthread_barrier_init(&barrier, NULL, (unsigned)threads);
    for (int i = 0; i < threads; i++) {
        runners[i].barrier = &barrier;
        runners[i].number = i;
        runners[i].fn = fn;
        runners[i].part = *whole;
        runners[i].part.to = whole->to + i * whole->count;
        runners[i].part.from = whole->from + i * whole->count;
        started += !pthread_create(&ids[i], NULL, run_part, &runners[i]);
    }
    /* Without its thread a barrier never opens. */
    if (started < threads)
        abort();
    for (int i = 0; i < threads; i++)
        (void)pthread_join(ids[i], NULL);
    for (int i = 0; i < ROUNDS; i++)
        if (!i || round_ns(runners, threads, i) < best)
            best = round_ns(runners, threads, i);
    (void)pthread_barrier_destroy(&barrier);
    free(runners);
    return best;
}

/* Bytes a nanosecond where each of THREADS threads has BYTES in each array and
 * goes over them REPEATS times; ARRAYS are counted. */
static double bandwidth(part_fn fn, struct part part, int threads, double bytes,
                        int64_t repeats, int arrays)
{
    double ns;

    if (!fn)
        return 0;
    part.count = (int64_t)(bytes / sizeof(float)) / 64 * 64;
    part.repeats = repeats;
    ns = best_ns(fn, &part, threads);
    return ns > 0 ? (double)part.count * (double)sizeof(float) * arrays *
                        threads * (double)repeats / ns
                  : 0;
}

static double flops(part_fn fn, struct part part, int threads, int lanes)
{
    double ns;

    if (!fn)
        return 0;
    part.count = 0;
    part.repeats = 32;
    ns = best_ns(fn, &part, threads);
    return ns > 0 ? 32.0 * FMA_ROUNDS * CHAINS * 2 * lanes * threads / ns : 0;
}

static void keep_best(double *best, double value)
{
    if (value > *best)
        *best = value;
}

static void read_speeds(struct bench_speeds *out, const struct part *part,
                        int threads, double dram_bytes)
{
    struct loops loops[3];
    const int count = list_loops(loops);
    const double share = dram_bytes / threads;
    const double l2 = bench_cache_bytes(2) / 4;
    const double l3 = bench_cache_bytes(3) / 8 / threads;

    for (int i = 0; i < count; i++) {
        const struct loops *l = &loops[i];

        keep_best(&out->fma, flops(l->fma, *part, threads, l->lanes));
        /* Of what is read and written, a root is 8 bytes. */
        keep_best(&out->root,
                  bandwidth(l->root, *part, threads, 8192, 2000, 2) / 8);
        keep_best(&out->dram_read,
                  bandwidth(l->sum, *part, threads, share, 1, 1));
        keep_best(&out->dram_copy,
                  bandwidth(l->scale, *part, threads, share, 1, 2));
        keep_best(&out->dram_store,
                  bandwidth(l->stream, *part, threads, share, 1, 2));
        keep_best(&out->l2, bandwidth(l->scale, *part, threads, l2, 200, 2));
        keep_best(&out->l3, bandwidth(l->scale, *part, threads, l3, 10, 2));
    }
}

/* All threads can do what one can, whoever else was busy meanwhile. */
static void at_least(struct bench_speeds *all, const struct bench_speeds *one)
{
    keep_best(&all->fma, one->fma);
    keep_best(&all->root, one->root);
    keep_best(&all->dram_read, one->dram_read);
    keep_best(&all->dram_copy, one->dram_copy);
    keep_best(&all->dram_store, one->dram_store);
    keep_best(&all->l3, one->l3);
    keep_best(&all->l2, one->l2);
}

/* ---- libgomp ---- */

static void nothing(void *context)
{
    (void)context;
}

/* An empty parallel region, back to back, so that its threads spin. */
static double read_handoff(int threads)
{
    void *library = dlopen("libgomp.so.1", RTLD_NOW | RTLD_LOCAL);
    void (*parallel)(void (*)(void *), void *, unsigned, unsigned) = NULL;
    double best = 0;

    if (library)
        *(void **)&parallel = dlsym(library, "GOMP_parallel");
    for (int round = 0; parallel && round < 20; round++) {
        uint64_t begin = bench_now_ns();
        double ns;

        for (int i = 0; i < 500; i++)
            parallel(nothing, NULL, (unsigned)threads, 0);
        ns = (double)(bench_now_ns() - begin) / 500;
        if (!round || ns < best)
            best = ns;
    }
    return best; /* never closed: its threads are still there */
}

/* ---- public ---- */

double bench_cache_bytes(int level)
{
    static const double usual[] = {0, 32768, 1 << 20, 32 << 20};
    char path[80];
    FILE *file;
    long kib = 0;

    /* sysconf tells the whole of a machine's, this what one processor has. */
    (void)snprintf(path, sizeof(path),
                   "/sys/devices/system/cpu/cpu0/cache/index%d/size", level);
    file = fopen(path, "r");
    if (file) {
        if (fscanf(file, "%ldK", &kib) != 1)
            kib = 0;
        (void)fclose(file);
    }
    return kib > 0 ? 1024.0 * (double)kib : usual[level];
}

void bench_ceilings_read(struct bench_ceilings *out, int is_tiny)
{
    const double bytes = is_tiny ? 1 << 20 : DRAM_BYTES;
    struct part part = {0};
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const size_t room = DRAM_BYTES + HUGE_BYTES;

    memset(out, 0, sizeof(*out));
    out->threads = processors < 1             ? 1
                   : processors > THREADS_MAX ? THREADS_MAX
                                              : (int)processors;
    if (is_tiny)
        return;
    part.to = aligned_alloc(HUGE_BYTES, room);
    part.from = aligned_alloc(HUGE_BYTES, room);
    if (part.to && part.from) {
        /* As large tensors have them: a third faster to read. */
        (void)madvise(part.to, room, MADV_HUGEPAGE);
        (void)madvise((float *)(uintptr_t)part.from, room, MADV_HUGEPAGE);
        memset(part.to, 0, room);
        for (size_t i = 0; i < room / sizeof(float); i++)
            ((float *)(uintptr_t)part.from)[i] = 1e-3f * (float)(i % 1000);
        read_speeds(&out->one, &part, 1, bytes);
        if (out->threads > 1)
            read_speeds(&out->all, &part, out->threads, bytes);
        at_least(&out->all, &out->one);
    }
    free(part.to);
    free((float *)(uintptr_t)part.from);
    out->handoff_ns = read_handoff(out->threads);
}

double bench_limit_ns(const struct bench_ceilings *ceilings,
                      const struct bench_case *c, int threads,
                      const char **out_what)
{
    const struct bench_speeds *s =
        threads > 1 ? &ceilings->all : &ceilings->one;
    const double copy =
        s->dram_store > s->dram_copy ? s->dram_store : s->dram_copy;
    double speed, compute = 0, memory = 0;
    const char *level;

    if (c->bytes > 0.75 * bench_cache_bytes(3)) {
        speed = c->is_read ? s->dram_read : copy;
        level = c->is_read ? "memory, read" : "memory";
    } else if (c->bytes > 0.75 * bench_cache_bytes(2) * threads) {
        speed = s->l3;
        level = "L3";
    } else {
        speed = s->l2;
        level = "L2";
    }
    if (c->flops > 0 && s->fma > 0)
        compute = c->flops / (s->fma * (c->is_bf16 ? 2 : 1));
    if (c->bytes > 0 && speed > 0)
        memory = c->bytes / speed;
    if (c->roots > 0 && s->root > 0) {
        *out_what = "multiply-adds, roots";
        return compute + c->roots / s->root + c->floor_ns;
    }
    *out_what = compute > memory ? "multiply-adds"
                : memory > 0     ? level
                                 : "call";
    return (compute > memory ? compute : memory) + c->floor_ns;
}
