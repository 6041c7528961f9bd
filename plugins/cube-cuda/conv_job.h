/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_job.h - convolutions as the kernels for compute capability 9.0 take
 * them: operands with channels last, and where the taps meet them.
 */
#ifndef CCU_CONV_JOB_H
#define CCU_CONV_JOB_H

#include "device.h"
#include "kernels/conv_params.h"

#include <cube/conv_phase.h>

/* A convolution of x [n, c, h, w] with weights [m, c, kh, kw]. */
struct ccu_conv {
    struct cube_conv of;
    uint32_t dtype;
    int32_t parts; /* of bf16 that make a number; 1: it is a half */
    const int64_t *x, *weight, *out; /* shapes */
};

/* An operand with channels last. */
struct ccu_planes {
    struct conv_pack pack;
    uint64_t bytes;      /* of what is packed; 0: it lies so already */
    uint64_t sizes[4];   /* as copies see them: channels, x, y, image; of rows
                            channels, rows, parts */
    uint64_t strides[3]; /* between x, y, image, in bytes */
    int32_t chunks;      /* of 64 channels */
    int32_t is_wide;     /* a row of taps is so many more channels of a place */
    int32_t parts;       /* as in struct ccu_conv */
};

/*
 * Fill in CONV of CALL, conv2d or one of its gradients. Returns 0 where the
 * call is for the portable kernels.
 */
int ccu_conv_take(struct ccu_conv *conv, struct ccu_device *device,
                  const struct hob_call *call);

/* VIEW, x of CONV, with rows of taps as channels where that is less work. */
void ccu_planes_of_x(struct ccu_planes *planes, const struct ccu_conv *conv,
                     const struct hob_view *view);
/* VIEW, a gradient of the result. */
void ccu_planes_of_grad(struct ccu_planes *planes, const struct ccu_conv *conv,
                        const struct hob_view *view);
/* VIEW of planes [image, channel, place] as they are, for single taps that meet
 * each place. Returns 0 where they do not lie so. */
int ccu_planes_of_points(struct ccu_planes *planes,
                         const struct hob_view *view);
/* Whether CONV has such taps. */
int ccu_conv_is_point(const struct ccu_conv *conv);
/* VIEW, weights, as rows along axis ROW, 0 or 1, of taps of channels along the
 * other one, to be multiplied by PLANES. */
void ccu_planes_of_weight(struct ccu_planes *weight,
                          const struct hob_view *view, uint32_t row,
                          const struct ccu_planes *planes);

/* What of PARAMS says which places of PLANES, made of x, meet the taps. */
void ccu_conv_meet_x(struct conv_params *params, const struct ccu_conv *conv,
                     const struct ccu_planes *planes);
/* The same of a gradient's, for the places of x that leave REST. */
void ccu_conv_meet_grad(struct conv_params *params, const struct ccu_conv *conv,
                        const int64_t rest[2]);

#endif
