/* SPDX-License-Identifier: Apache-2.0 */
/* conv_launch.h - launches of the kernels of convolutions; of products what
 * they have in common. */
#ifndef CCU_CONV_LAUNCH_H
#define CCU_CONV_LAUNCH_H

#include "conv_job.h"

#include <cube/cube.h>

enum {
    CCU_CONV_CHUNK = 64, /* channels */
    CCU_CONV_PARTS = 3   /* at most */
};

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
/* The parts of a gradient of weights added up. */
hob_status ccu_conv_finish(struct ccu_conv_run *run,
                           const struct conv_finish_params *job);

/* ---- products ---- */

extern const struct cube_program ccu_conv_product_program,
    ccu_conv_pairs_program, ccu_conv_weight_program;

/* How a product is cut. */
struct ccu_conv_tiling {
    int32_t rows, columns, stages;
    int32_t blocks; /* on a processor */
};

/* PLANES in boxes of ROWS along their second dimension. The context is current;
 * the driver's answer, here and below. */
int ccu_conv_map_boxes(const struct ccu_conv_run *run,
                       const struct ccu_planes *planes, int32_t rows,
                       struct ccu_tensor_map *out);
/* Each part of PLANES as JOB's taps meet them, so many PLACES at once. */
int ccu_conv_map_places(const struct ccu_conv_run *run,
                        const struct conv_params *job,
                        const struct ccu_planes *planes, int32_t places,
                        struct ccu_tensor_map *out);
/* Launch VARIANT for TASKS tiles of TILING, unless making the maps had another
 * RESULT than 0. */
hob_status ccu_conv_launch_product(struct ccu_conv_run *run,
                                   struct cube_variant *variant,
                                   struct cube_launch *job, int tasks,
                                   const struct ccu_conv_tiling *tiling,
                                   int result);

#endif
