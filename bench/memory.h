/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.h - how much memory this process takes, and how often it asks.
 */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stdint.h>

/* Bytes of physical memory in use. */
struct bench_memory {
    int64_t all;
    int64_t files; /* of these, libraries and the like */
};

/* Begin anew with the peak; remember what is in use. */
void bench_memory_begin(struct bench_memory *out);

/* The peak since then beyond what was in use, libraries not counted; 0 where
 * the system does not tell. */
int64_t bench_memory_peak(const struct bench_memory *before);

/* Calls to malloc and its like, and to mmap, so far in this process; -1 unless
 * count_calls.so is preloaded. */
int64_t bench_allocations(void);

#endif
