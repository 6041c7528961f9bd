/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - elements from one layout to another. */
#ifndef CUBE_OPS_COPY_H
#define CUBE_OPS_COPY_H

#include "../cube.h"

/* FROM's elements, broadcast to TO's shape, to TO, which is row-major. Both
 * have one dtype. */
hob_status cube_copy(struct cube_device *device, struct hob_call *call,
                     const struct hob_view *to, const struct hob_view *from);

#endif
