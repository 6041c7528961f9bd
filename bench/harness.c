/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum {
    WARM_NS = 50000000,
    SAMPLE_NS = 10000000,
    SAMPLES_MAX = 1000,
    CHAINS = 12, /* independent sums: latency 4 times 2 units, and some */
    FMA_ROUNDS = 1 << 16,
    COPY_BYTES = 1 << 28
};

uint64_t bench_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Run until warm; return how many runs take about SAMPLE_NS. */
static uint64_t warm_up(bench_fn fn, void *context, uint64_t repeats)
{
    uint64_t begin = bench_now_ns();
    uint64_t once = repeats ? repeats : 1;
    uint64_t last;

    do {
        uint64_t start = bench_now_ns();

        fn(context, once);
        last = bench_now_ns() - start;
        if (!repeats && last < SAMPLE_NS / 2)
            once *= 2;
    } while (bench_now_ns() - begin < WARM_NS ||
             (!repeats && last < SAMPLE_NS / 2));
    return once;
}

struct bench_result bench_run(bench_fn fn, void *context, uint64_t repeats,
                              uint32_t samples)
{
    double times[SAMPLES_MAX];
    struct bench_result result;

    if (!samples)
        samples = BENCH_SAMPLES;
    if (samples > SAMPLES_MAX)
        samples = SAMPLES_MAX;
    repeats = warm_up(fn, context, repeats);
    for (uint32_t i = 0; i < samples; i++) {
        uint64_t start = bench_now_ns();

        fn(context, repeats);
        times[i] = (double)(bench_now_ns() - start) / (double)repeats;
    }
    qsort(times, samples, sizeof(times[0]), compare_doubles);
    result.median_ns = times[samples / 2];
    result.min_ns = times[0];
    return result;
}

void bench_print(const char *name, struct bench_result result, const char *unit,
                 const char *note)
{
    double scale = strcmp(unit, "ms") == 0   ? 1e6
                   : strcmp(unit, "us") == 0 ? 1e3
                                             : 1;

    printf("result\t%s\t%.1f\t%.1f\t%s\t%s\n", name, result.median_ns / scale,
           result.min_ns / scale, unit, note ? note : "");
    (void)fflush(stdout);
}

/* ---- ceilings ---- */

/* Where results go that nobody reads, so that they are computed. */
struct sink {
    float numbers[16];
    char *from;
    char *to;
};

#if defined(__x86_64__)
/* The chains must live in registers, or it is the store buffer that is
 * measured. */
#define UNROLLED _Pragma("GCC unroll 32")
__attribute__((target("avx512f"))) static void fma_v4(void *context,
                                                      uint64_t repeats)
{
    struct sink *sink = context;
    __m512 sums[CHAINS];
    __m512 factor = _mm512_set1_ps(0.999f);
    __m512 term = _mm512_loadu_ps(sink->numbers);

    for (int i = 0; i < CHAINS; i++)
        sums[i] = _mm512_set1_ps((float)i);
    /* clang-format off */
    for (uint64_t round = 0; round < repeats * FMA_ROUNDS; round++)
        UNROLLED
        for (int i = 0; i < CHAINS; i++)
            sums[i] = _mm512_fmadd_ps(sums[i], factor, term);
    /* clang-format on */
    for (int i = 1; i < CHAINS; i++)
        sums[0] = _mm512_add_ps(sums[0], sums[i]);
    _mm512_storeu_ps(sink->numbers, sums[0]);
}

__attribute__((target("avx2,fma"))) static void fma_v3(void *context,
                                                       uint64_t repeats)
{
    struct sink *sink = context;
    __m256 sums[CHAINS];
    __m256 factor = _mm256_set1_ps(0.999f);
    __m256 term = _mm256_loadu_ps(sink->numbers);

    for (int i = 0; i < CHAINS; i++)
        sums[i] = _mm256_set1_ps((float)i);
    /* clang-format off */
    for (uint64_t round = 0; round < repeats * FMA_ROUNDS; round++)
        UNROLLED
        for (int i = 0; i < CHAINS; i++)
            sums[i] = _mm256_fmadd_ps(sums[i], factor, term);
    /* clang-format on */
    for (int i = 1; i < CHAINS; i++)
        sums[0] = _mm256_add_ps(sums[0], sums[i]);
    _mm256_storeu_ps(sink->numbers, sums[0]);
}
#endif

static void print_fma(struct sink *sink)
{
    double best = 0;
#if defined(__x86_64__)
    double floats = (double)FMA_ROUNDS * CHAINS * 2;

    /* Both, for 512-bit vectors may lower the clock below their worth. */
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        best = floats * 8 / bench_run(fma_v3, sink, 0, 0).min_ns;
    if (__builtin_cpu_supports("avx512f")) {
        double wide = floats * 16 / bench_run(fma_v4, sink, 0, 0).min_ns;

        best = wide > best ? wide : best;
    }
#endif
    if (best > 0)
        printf("ceiling\tmultiply-add, one core\t%.0f\tGFLOP/s\n", best);
}

static void copy_once(void *context, uint64_t repeats)
{
    struct sink *sink = context;

    for (uint64_t i = 0; i < repeats; i++) {
        memcpy(sink->to, sink->from, COPY_BYTES);
        sink->numbers[0] += (float)sink->to[i % COPY_BYTES];
    }
}

void bench_print_ceilings(void)
{
    struct sink sink = {.numbers = {0.001f}};

    print_fma(&sink);
    sink.from = malloc(COPY_BYTES);
    sink.to = malloc(COPY_BYTES);
    if (sink.from && sink.to) {
        memset(sink.from, 1, COPY_BYTES);
        memset(sink.to, 2, COPY_BYTES);
        printf("ceiling\tcopy of memory, one core\t%.1f\tGB/s\n",
               2.0 * COPY_BYTES / bench_run(copy_once, &sink, 1, 0).min_ns);
    }
    free(sink.from);
    free(sink.to);
    (void)fflush(stdout);
}
