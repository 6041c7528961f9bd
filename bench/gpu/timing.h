/* SPDX-License-Identifier: Apache-2.0 */
/* timing.h - how long calls on a device take, one after the other. */
#ifndef TIMING_H
#define TIMING_H

#include <hob/hob.h>

double timing_now(void); /* seconds, of a clock that does not jump */

/*
 * Median seconds of one RUN(scope, WORK), each in a scope of its own within
 * ROOT: as many as take a fiftieth of a second are asked for and then waited
 * for on DEVICE, nine times. *OUT_HOST, unless it is NULL, is the part that the
 * host was busy asking. Negative if a run fails.
 */
double timing_of(hob_scope *root, hob_device *device,
                 hob_status (*run)(hob_scope *scope, void *work), void *work,
                 double *out_host);

#endif
