/* SPDX-License-Identifier: Apache-2.0 */
/* timing.h - what the programs of this folder share: how long calls on a device
 * take, one after the other; how far off results are; which cases run. */
#ifndef TIMING_H
#define TIMING_H

#include <hob/hob.h>

double timing_now(void); /* seconds, of a clock that does not jump */

/* Of COUNT of SAMPLES, an odd number; they are sorted. */
double timing_median(double *samples, int count);

/*
 * Median seconds of one RUN(scope, WORK), each in a scope of its own within
 * ROOT: as many as take a fiftieth of a second are asked for and then waited
 * for on DEVICE, nine times. *OUT_HOST, unless it is NULL, is the part that the
 * host was busy asking. Negative if a run fails.
 */
double timing_of(hob_scope *root, hob_device *device,
                 hob_status (*run)(hob_scope *scope, void *work), void *work,
                 double *out_host);

/* The norm of the difference of RESULTS[0] and RESULTS[1] by that of the
 * latter; negative, and told, if they cannot be read or differ in number. */
double timing_difference(hob_tensor *const results[2]);

/* Whether NAME has one of ARGV's words from 2 on in it, or there are none. */
int timing_is_asked_for(const char *name, int argc, char **argv);

/*
 * What main() returns of a program that is called as USAGE says and compares
 * DEVICES: the one that ARGV names, as it is and under fusion, both below what
 * AROUND says: "%s" is nothing. RUN is given a scope of both, and returns
 * nonzero if something failed.
 */
int timing_with_fusion(const char *usage, const char *around, int argc,
                       char **argv,
                       int (*run)(hob_scope *root, hob_device *const devices[2],
                                  int argc, char **argv));

#endif
