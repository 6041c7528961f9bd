/* SPDX-License-Identifier: Apache-2.0 */
/*
 * harness.h - how every benchmark measures.
 *
 * A case runs untimed until it is warm, then in samples of REPEATS runs each.
 * Median and minimum of at least 20 samples are told. Times are the wall
 * clock's. What this machine can do at most (ceilings) is measured in the same
 * run, for it moves by a third from hour to hour.
 *
 * Output is one line a result, fields separated by tabs:
 *   result  NAME  MEDIAN  MIN  UNIT  NOTE
 *   ceiling NAME  VALUE   UNIT
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stdint.h>

enum { BENCH_SAMPLES = 21 };

struct bench_result {
    double median_ns; /* of one run */
    double min_ns;
};

/* Do the measured thing REPEATS times. */
typedef void (*bench_fn)(void *context, uint64_t repeats);

/* Nanoseconds of a clock that only goes forward. */
uint64_t bench_now_ns(void);

/*
 * Measure FN in SAMPLES samples (0: BENCH_SAMPLES) of REPEATS runs; 0 repeats
 * means as many as take about 10 ms.
 */
struct bench_result bench_run(bench_fn fn, void *context, uint64_t repeats,
                              uint32_t samples);

/* Print a result; UNIT is "ns", "us" or "ms", NOTE may be NULL. */
void bench_print(const char *name, struct bench_result result, const char *unit,
                 const char *note);

/*
 * Print the ceilings: multiply-adds of one core in GFLOP/s (the widest
 * vectors that it has), and copying of memory beyond all caches in GB/s, read
 * and written bytes both counted.
 */
void bench_print_ceilings(void);

#endif
