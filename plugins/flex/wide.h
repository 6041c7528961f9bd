/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.h - whole float tensors as contiguous memory of the type they are
 * computed in: f64 for f64, else f32.
 */
#ifndef FLEX_WIDE_H
#define FLEX_WIDE_H

#include "flex.h"

struct flex_wide {
    void *data;
    uint64_t bytes; /* of scratch; 0 if data is the view's own memory */
};

/* VIEW's elements; a copy only where needed. HOB_ERR_MEMORY without scratch. */
hob_status flex_wide_read(struct flex_device *device,
                          const struct hob_view *view, struct flex_wide *out);
/* Memory to compute the contiguous result VIEW in; its content undefined. */
hob_status flex_wide_begin(struct flex_device *device,
                           const struct hob_view *view, struct flex_wide *out);
/* Round WIDE to VIEW's dtype, if it is not VIEW's own memory. */
void flex_wide_finish(struct flex_device *device, const struct hob_view *view,
                      const struct flex_wide *wide);
/* Accepts one that was zeroed. */
void flex_wide_release(struct flex_device *device, struct flex_wide *wide);

#endif
