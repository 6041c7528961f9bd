/* SPDX-License-Identifier: Apache-2.0 */
/* scan.h - running sums and their like, for ops that need them on the way. */
#ifndef CUBE_SCAN_H
#define CUBE_SCAN_H

#include "launch.h"

enum cube_scan { CUBE_SCAN_SUM, CUBE_SCAN_PROD, CUBE_SCAN_MAX, CUBE_SCAN_MIN };

/*
 * OUT, of the shape and dtype of X, gets what X comes to along DIM up to each
 * place. OUT may be X. How it is cut depends on the sizes alone. Halves run in
 * f32, integers modulo 2^width.
 */
hob_status cube_scan_run(struct cube_device *device, struct hob_call *call,
                         enum cube_scan scan, const struct hob_view *out,
                         const struct hob_view *x, uint32_t dim);

#endif
