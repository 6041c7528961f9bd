/* SPDX-License-Identifier: Apache-2.0 */
/* product.h - programs that begin with a product. */
#ifndef CUBE_FUSE_PRODUCT_H
#define CUBE_FUSE_PRODUCT_H

#include "plan.h"

struct cube_device;

/* As run_product of struct hob_fused_compute: by the runtime's library, where
 * that has all of PROGRAM as an epilogue. */
hob_status fuse_product_run(struct cube_device *device,
                            const struct fuse_program *program,
                            const struct hob_fused_run *run,
                            const struct hob_fused_product *product,
                            char **out_message);

#endif
