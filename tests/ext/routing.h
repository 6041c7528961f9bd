/* SPDX-License-Identifier: Apache-2.0 */
/*
 * routing.h - an extension whose ops show where a call went.
 *
 * Linked into its tests as a static plugin; routing.json is its manifest.
 */
#ifndef ROUTING_H
#define ROUTING_H

#include <hob/ext/plugin.h>

#include <stdatomic.h>
#include <stdint.h>

enum { ROUTE_WATCHED = 8 };

/* What the kernels and backwards of the extension did; the tests' own, so it
 * may be file-scope. */
struct route_counts {
    atomic_int reference;   /* kernels that ran on the backend reference */
    atomic_int flex;        /* and on flex */
    atomic_int input_count; /* of route.watch in its backward */
    atomic_int needs_gradient[ROUTE_WATCHED];
    atomic_int saved_count; /* tensors that route.mul_pair got back */
};
extern struct route_counts route_counts;

const struct hob_plugin *route_entry(const struct hob_host *host);

#endif
