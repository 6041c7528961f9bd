/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flag.h - one number by which a kernel reports what only it can see.
 *
 * The flag is a buffer of one u32 that is CUBE_FLAG_NONE at first; kernels
 * lower it with ATOMIC_MIN(flag, 0, uint(i)) to the first element that is bad.
 * That is seldom, so flags are in memory of the host that the device reaches:
 * nothing is copied. Reading one waits for the device; of a recording it is
 * read after each replay.
 */
#ifndef CUBE_FLAG_H
#define CUBE_FLAG_H

#include "runtime.h"

#define CUBE_FLAG_NONE UINT32_C(0xffffffff)

/* Of a device: as many calls can have one at a time, others wait. A call has
 * one at most. One more is for kernels that find nothing, as is known. */
enum { CUBE_FLAGS = 64, CUBE_FLAG_BYTES = (CUBE_FLAGS + 1) * 4 };

struct cube_flag {
    void *data; /* of the device; for cube_job_memory(.., HOB_DTYPE_U32, 1) */
    uint32_t *host; /* the same for the host; NULL: this call reads none, but
                       who replays a recording does */
    uint32_t number;
    uint32_t is_idle; /* there is nothing to report */
};

hob_status cube_flag_begin(struct cube_flag *flag, struct cube_device *device,
                           struct hob_call *call);
/* The same for what is known to be good. */
hob_status cube_flag_begin_idle(struct cube_flag *flag,
                                struct cube_device *device,
                                struct hob_call *call);
/* Wait, say in OUT_VALUE what the flag is now, and give it back. With ST, the
 * launch's status, other than HOB_OK that is returned, and the value is
 * CUBE_FLAG_NONE. */
hob_status cube_flag_end(struct cube_flag *flag, struct cube_device *device,
                         struct hob_call *call, hob_status st,
                         uint32_t *out_value);

#endif
