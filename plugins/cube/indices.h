/* SPDX-License-Identifier: Apache-2.0 */
/* indices.h - index tensors whose elements only the device can check. */
#ifndef CUBE_INDICES_H
#define CUBE_INDICES_H

#include "flag.h"
#include "launch.h"

/* Fail CALL: element NUMBER, row-major, of INDICES is not in 0 .. SIZE - 1. It
 * is read for the message, so this waits. */
hob_status cube_indices_fail(struct cube_device *device, struct hob_call *call,
                             const struct hob_view *indices, int64_t number,
                             int64_t size);

/*
 * The flag of a kernel that reports such an element of argument ARG of CALL and
 * skips it: idle where all are known to be good. It is given back by end, with
 * the launch's status.
 */
hob_status cube_indices_flag(struct cube_flag *flag, struct cube_device *device,
                             struct hob_call *call, uint32_t arg, int64_t size);
/*
 * Look for such an element in all of INDICES, which are those of argument ARG,
 * while other work goes on: begin, launch what skips bad indices, end with its
 * status. The latter waits, unless all are known to be good.
 */
hob_status cube_indices_begin(struct cube_flag *flag,
                              struct cube_device *device, struct hob_call *call,
                              uint32_t arg, const struct hob_view *indices,
                              int64_t size);
hob_status cube_indices_end(struct cube_flag *flag, struct cube_device *device,
                            struct hob_call *call, hob_status st,
                            const struct hob_view *indices, int64_t size);

#endif
