/* SPDX-License-Identifier: Apache-2.0 */
/* conv_product.h - the products that convolutions and their gradients are. */
#ifndef CCU_CONV_PRODUCT_H
#define CCU_CONV_PRODUCT_H

#include "conv_launch.h"

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

#endif
