/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape_backend.h - the reference backend with the interface "capture": what is
 * recorded is a list of calls with their arguments, and a replay makes them.
 * Its memory is not the host's, as on a GPU. Sums, differences and products
 * may be computed in place.
 */
#ifndef TAPE_BACKEND_H
#define TAPE_BACKEND_H

#include <hob/ext/plugin.h>

/* The manifest, JSON text; the device is "tape". */
extern const char *const tape_backend_manifest;

const struct hob_plugin *hob_plugin_entry_tape(const struct hob_host *host);

/* What all devices have done since the start. */
struct tape_counts {
    int64_t calls; /* of kernels, outside of replays */
    int64_t replays;
    int64_t copies;   /* on the device, outside of replays */
    int64_t recorded; /* calls and copies in the latest recording */
    int64_t graphs;   /* that live */
    int64_t blocks;   /* of memory that is taken, or a graph's */
};
struct tape_counts tape_counts(void);

#endif
