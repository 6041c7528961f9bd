/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cases.h - the tables of the files in this folder, for registry.c.
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
extern const struct bench_family bench_matmul;
extern const struct bench_family bench_nms;
extern const struct bench_family bench_opening;
extern const struct bench_family bench_reduce;
extern const struct bench_family bench_threads;
extern const struct bench_family bench_training;

#endif
