/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases.h - the tables of the files in this folder, for registry.c, and the
 * way that some of them share.
 */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include "suite.h"

extern const struct bench_family bench_attention;
extern const struct bench_family bench_calls;
extern const struct bench_family bench_conv;
extern const struct bench_family bench_elementwise;
extern const struct bench_family bench_graphs;
extern const struct bench_family bench_layout;
extern const struct bench_family bench_lazy;
extern const struct bench_family bench_matmul;
extern const struct bench_family bench_nms;
extern const struct bench_family bench_opening;
extern const struct bench_family bench_reduce;
extern const struct bench_family bench_threads;
extern const struct bench_family bench_training;

/* torch_add.c: an add of one element by PyTorch from C++. */
hob_status bench_torch_add_open(struct bench_job *job);
hob_status bench_torch_add_check(struct bench_job *job, double *out);
void bench_torch_add_run(struct bench_job *job, uint64_t repeats);
void bench_torch_add_close(struct bench_job *job);
#define BENCH_TORCH_ADD                                                        \
    .who = "torch C++", .open = bench_torch_add_open,                          \
    .check = bench_torch_add_check, .run = bench_torch_add_run,                \
    .close = bench_torch_add_close

/* fused.c: the chain of C8 as one program of flex. */
hob_status bench_fused_open(struct bench_job *job);
hob_status bench_fused_check(struct bench_job *job, double *out);
void bench_fused_run(struct bench_job *job, uint64_t repeats);
void bench_fused_close(struct bench_job *job);
#define BENCH_FUSED                                                            \
    .open = bench_fused_open, .check = bench_fused_check,                      \
    .run = bench_fused_run, .close = bench_fused_close

#endif
