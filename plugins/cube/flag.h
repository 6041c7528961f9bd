/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flag.h - one number by which a kernel reports what only it can see.
 *
 * The flag is a buffer of one u32 that is CUBE_FLAG_NONE at first; kernels
 * lower it with ATOMIC_MIN(flag, 0, uint(i)) to the first element that is bad.
 * Reading it waits for the device; of a recording it is read after each replay.
 * Where all elements are known to be good the flag is there for the kernel, and
 * nobody reads it.
 */
#ifndef CUBE_FLAG_H
#define CUBE_FLAG_H

#include "runtime.h"

#define CUBE_FLAG_NONE UINT32_C(0xffffffff)

struct cube_flag {
    void *data; /* of the device; for cube_job_memory(.., HOB_DTYPE_U32, 1) */
    uint32_t is_later; /* it belongs to a recording, which reads it */
    uint32_t is_idle;  /* there is nothing to report */
};

hob_status cube_flag_begin(struct cube_flag *flag, struct cube_device *device,
                           struct hob_call *call);
/* The same for what is known to be good. */
hob_status cube_flag_begin_idle(struct cube_flag *flag,
                                struct cube_device *device,
                                struct hob_call *call);
/* Wait, say in OUT_VALUE what the flag is now, and give it back. With ST, the
 * launch's status, other than HOB_OK only the latter; ST is returned. An idle
 * one is not waited for. */
hob_status cube_flag_end(struct cube_flag *flag, struct cube_device *device,
                         struct hob_call *call, hob_status st,
                         uint32_t *out_value);

#endif
