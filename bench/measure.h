/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - the ways of a case, checked and then timed in turn.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include "peers.h"

#include <stdint.h>

struct bench_case;

enum { MEASURE_WAYS = 16, MEASURE_SAMPLES = 101 };

enum measure_state {
    MEASURE_OK = 0,
    MEASURE_NONE,  /* not there on this machine */
    MEASURE_WRONG, /* its result is not the reference's */
    MEASURE_ERROR
};

struct measure_way {
    char who[48];
    int is_base;
    int is_busy;
    enum measure_state state;
    char message[320]; /* of what is not OK */
    double median_ns;  /* of one run; 0: not timed */
    double min_ns;
    int samples;
    double error;        /* greatest, of the tolerance's scale */
    int64_t peak_bytes;  /* beyond the inputs; -1: not known */
    int64_t allocations; /* of one run; -1: not known */
};

/* A case on some number of threads. The first way is Hob's. */
struct measure_row {
    const struct bench_case *c;
    int threads;
    const struct measure_row *one; /* the same on one thread; NULL: none */
    struct measure_way ways[MEASURE_WAYS];
    int way_count;
};

struct measure_options {
    const char *program; /* of this suite, to be started again */
    const char *peer;    /* the path of peer.py */
    const char *python;
    const char *count_calls; /* the path of count_calls.so; NULL: none */
    char folder[200];        /* for files, private */
    double seconds;          /* for the samples of each way of a row */
    int is_smoke;            /* results are checked, nothing is timed */
    struct bench_peer peers[PEER_COUNT];
};

/* How long that may take, in seconds. */
double measure_estimate(const struct measure_options *options,
                        const struct bench_case *c, int threads);

/* Check and time ROW->c on ROW->threads threads. */
void measure_row(struct measure_options *options, struct measure_row *row);

/* End the peers. */
void measure_end(struct measure_options *options);

#endif
