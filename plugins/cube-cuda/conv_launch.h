/* SPDX-License-Identifier: Apache-2.0 */
/* conv_launch.h - launches of the kernels of convolutions. */
#ifndef CCU_CONV_LAUNCH_H
#define CCU_CONV_LAUNCH_H

#include "conv_job.h"

/* For one call. */
struct ccu_conv_run {
    struct ccu_device *device;
    const char *op_name;
    uint32_t dtype;
    int32_t parts; /* as in struct ccu_conv */
    char *message; /* of what failed, if there is memory for it */
};

/* Bring what must be packed of PLANES, COUNT of them, at most CONV_OPERANDS. */
hob_status ccu_conv_pack(struct ccu_conv_run *run,
                         struct ccu_planes *const *planes, uint32_t count);
/* The product of ROWS, weights, and PLANES as JOB says. */
hob_status ccu_conv_multiply(struct ccu_conv_run *run, struct conv_params *job,
                             const struct ccu_planes *rows,
                             const struct ccu_planes *planes);
/* The products of JOBS, which have the places of the first. */
hob_status ccu_conv_multiply_pairs(struct ccu_conv_run *run,
                                   struct conv_pairs *jobs,
                                   const struct ccu_planes *rows,
                                   const struct ccu_planes *planes);
/* How the gradient of weights is split: fills in JOB. */
void ccu_conv_split(const struct ccu_conv_run *run, struct conv_params *job);
/* Its parts, of gradients ROWS and PLANES. */
hob_status ccu_conv_multiply_weight(struct ccu_conv_run *run,
                                    struct conv_params *job,
                                    const struct ccu_planes *rows,
                                    const struct ccu_planes *planes);
/* And the parts added up. */
hob_status ccu_conv_finish(struct ccu_conv_run *run,
                           const struct conv_finish_params *job);

#endif
