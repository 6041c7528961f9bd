/* SPDX-License-Identifier: Apache-2.0 */
/*
 * verdict.h - a row's times against its peers, limit and targets.
 */
#ifndef BENCH_VERDICT_H
#define BENCH_VERDICT_H

#include "ceilings.h"
#include "measure.h"

enum { VERDICT_TARGETS = 8 };

enum verdict_unit { VERDICT_RATIO, VERDICT_NS, VERDICT_BYTES };

/* At least a ratio; at most a time or a number of bytes. */
struct verdict_target {
    const char *what; /* it is of, or above; may be "" */
    const char *who;  /* if what names a peer; else NULL */
    enum verdict_unit unit;
    double wanted;
    double got;
    int is_known; /* 0: what it is compared with is not there */
    int is_met;
};

/*
 * Medians are compared. 0 where there is nothing to compare with. On all
 * threads a peer may be faster with one: then that is what it has to be
 * compared with.
 */
struct verdict {
    const struct measure_way *peer; /* the fastest; NULL: none */
    int peer_threads;
    const struct measure_way *base; /* NULL: none */
    double of_peer;                 /* its time by Hob's */
    double limit_ns;
    const char *limit; /* what it is that limits */
    double of_limit;
    struct verdict_target targets[VERDICT_TARGETS];
    int target_count;
};

void verdict_of(const struct bench_ceilings *ceilings,
                const struct measure_row *row, struct verdict *out);

/* "met", "missed", "no target", or why there is none. */
const char *verdict_word(const struct measure_row *row,
                         const struct verdict *verdict);

#endif
