/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_phase.h - the attributes of convolutions, and where places of x meet
 * taps. Index 0 is the height, 1 the width.
 */
#ifndef CUBE_CONV_PHASE_H
#define CUBE_CONV_PHASE_H

#include "runtime.h"

struct cube_conv {
    int64_t step[2], padding[2], dilation[2];
    int64_t groups;
};

/* Those of CALL, of conv2d or one of its gradients. */
void cube_conv_init(struct cube_conv *conv, const struct hob_call *call);

/* The taps that places of x of one remainder meet along an axis: every STEPth
 * from FIRST on. Tap number t of them meets place q + START + t PACE of the
 * result, where the place in x is remainder + q stride. */
struct cube_conv_phase {
    int64_t first, step, count;
    int64_t start, pace; /* PACE is below 0 */
    int64_t places;      /* how many q */
};

/* Of remainder REST of IN places along AXIS, of TAPS taps. */
struct cube_conv_phase cube_conv_phase_of(const struct cube_conv *conv,
                                          uint32_t axis, int64_t rest,
                                          int64_t in, int64_t taps);

#endif
