/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference_backend.h - a backend with the primitives of docs/PRIMITIVES.md
 * and nothing else, each a plain loop over single elements in double or
 * 64-bit integers. Every other op runs as its body on it: an independent
 * truth for the kernels of real backends and for the bodies.
 *
 * Link it in and give it to hob_runtime_open() as a static plugin; its device
 * is "reference".
 */
#ifndef REFERENCE_BACKEND_H
#define REFERENCE_BACKEND_H

#include <hob/ext/plugin.h>

/* The manifest, JSON text. */
extern const char *const reference_backend_manifest;

const struct hob_plugin *
hob_plugin_entry_reference(const struct hob_host *host);

/* The kernels: reference_elementwise.c, reference_ops.c, reference_quant.c. */
hob_status reference_elementwise(void *device, struct hob_call *call);
hob_status reference_where(void *device, struct hob_call *call);
hob_status reference_copy(void *device, struct hob_call *call);
hob_status reference_full(void *device, struct hob_call *call);
hob_status reference_arange(void *device, struct hob_call *call);
hob_status reference_random(void *device, struct hob_call *call);
hob_status reference_fold(void *device, struct hob_call *call);
hob_status reference_argmax(void *device, struct hob_call *call);
hob_status reference_matmul(void *device, struct hob_call *call);
hob_status reference_slice_assign(void *device, struct hob_call *call);
hob_status reference_gather(void *device, struct hob_call *call);
hob_status reference_scatter_add(void *device, struct hob_call *call);
hob_status reference_mask_select(void *device, struct hob_call *call);
hob_status reference_sort(void *device, struct hob_call *call);
hob_status reference_quantize(void *device, struct hob_call *call);
hob_status reference_dequantize(void *device, struct hob_call *call);
hob_status reference_quantized_values(void *device, struct hob_call *call);
hob_status reference_quantized_scales(void *device, struct hob_call *call);

#endif
