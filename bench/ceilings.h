/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceilings.h - what this machine can do at most.
 *
 * Measured in the run whose results are judged by it, for the speed of memory
 * moves by a third from hour to hour. Bandwidths count read and written bytes.
 */
#ifndef BENCH_CEILINGS_H
#define BENCH_CEILINGS_H

struct bench_case;

/* Of some threads together. Flops and bytes a nanosecond; 0: not known. */
struct bench_speeds {
    double fma;        /* f32 multiply-adds, two flops each */
    double root;       /* f32 square roots, each with a division */
    double dram_read;  /* sums of memory beyond all caches */
    double dram_copy;  /* scaled copies of it with ordinary stores */
    double dram_store; /* the same with non-temporal stores */
    double l3, l2;     /* scaled copies within the cache */
};

struct bench_ceilings {
    int threads; /* of the machine */
    struct bench_speeds one;
    struct bench_speeds all;
    double handoff_ns; /* of libgomp: an empty parallel region; 0: not there */
};

/* Bytes of the data cache of LEVEL that the first processor uses. */
double bench_cache_bytes(int level);

/* Measure. A tiny run takes no time and tells nothing of the machine. */
void bench_ceilings_read(struct bench_ceilings *out, int is_tiny);

/*
 * The least time that case C can take on THREADS threads, in nanoseconds; 0 if
 * it states none. *OUT_WHAT names the bound.
 */
double bench_limit_ns(const struct bench_ceilings *ceilings,
                      const struct bench_case *c, int threads,
                      const char **out_what);

#endif
