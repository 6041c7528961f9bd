/* SPDX-License-Identifier: Apache-2.0 */
/*
 * splits.h - products whose sum is long and whose result is small: the sum is
 * split, so that there is work for the whole device, into parts of the result,
 * which a second launch adds up in order.
 *
 * How often depends on sizes and on the device's processors, never on what
 * else runs.
 */
#ifndef CUBE_SPLITS_H
#define CUBE_SPLITS_H

#include "launch.h"

/* The processors of DEVICE, or what one of unknown size is taken to have. */
int64_t cube_processors(const struct cube_device *device);

/* Into how many multiples of STEP, and how long ones, a sum of LENGTH is split
 * where the result has TILES tiles. */
void cube_split(const struct cube_device *device, int64_t tiles, int64_t length,
                int64_t step, int64_t *out_splits, int64_t *out_split_length);

/* SPLITS times OUT, a row-major result, in DTYPE, one after the other. */
struct cube_parts {
    const struct hob_view *out;
    void *data;
    int64_t count; /* elements of one */
    int64_t splits;
    uint32_t dtype;
};

/* Take memory for PARTS; on failure the call has a message. */
hob_status cube_parts_take(struct cube_parts *parts, struct cube_device *device,
                           struct hob_call *call, const struct hob_view *out,
                           uint32_t dtype, int64_t splits);
/* After the launches that made them, which said STATUS: add them up into the
 * result, unless that failed, and give their memory back. */
hob_status cube_parts_add(const struct cube_parts *parts,
                          struct cube_device *device, struct hob_call *call,
                          hob_status status);

#endif
