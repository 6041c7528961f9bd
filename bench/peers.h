/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peers.h - the peers in Python: processes of peer.py, one a library, each
 * kept from case to case.
 */
#ifndef BENCH_PEERS_H
#define BENCH_PEERS_H

#include "process.h"

struct bench_case;

enum {
    PEER_TORCH,
    PEER_TORCH_TUNED,   /* see peer.py */
    PEER_TORCH_COUNTED, /* its allocations; it is not timed */
    PEER_NUMEXPR,
    PEER_COUNT
};

struct bench_peer {
    const char *who;     /* "torch tuned" */
    const char *library; /* what peer.py is told */
    const char *environment[8];
    char preload[300];
    struct bench_process process;
    char version[96]; /* once it has been started */
    char missing[200];
};

/* SCRIPT is the path of peer.py; NULL: none is wanted. COUNT_CALLS that of
 * count_calls.so or NULL. */
void peers_init(struct bench_peer *peers, const char *script,
                const char *count_calls);

/* Start PEER unless it runs; 0 if it is not there, as peer->missing says. */
int peer_start(struct bench_peer *peer, const char *python, const char *script);

/*
 * C as a line for peer.py, with inputs in FOLDER and the result in OUT_PATH;
 * WORK is c->torch or c->numexpr. The caller frees it.
 */
char *peer_describe(const struct bench_case *c, int threads, const char *work,
                    const char *folder, const char *out_path);

#endif
