/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.h - what quant.c, quant_matmul.c and quant_scales.c share.
 */
#ifndef FLEX_OPS_QUANT_H
#define FLEX_OPS_QUANT_H

#include "../flex.h"
#include "../kernels/quant.h"

#include <hob/ext/quant.h>

/* A quantized tensor taken apart. */
struct flex_quant {
    const struct hob_quant_format *format;
    struct hob_quant_layout layout;
    uint32_t scheme;
    uint32_t bits;
    uint8_t *codes;
    char *scales;
    char *global;       /* one f32, or NULL */
    float numbers[256]; /* by code, if they are floats */
};

void flex_quant_init(struct flex_quant *quant, const struct hob_view *view);

const struct flex_quant_kernels *
flex_quant_kernels_of(const struct flex_device *device);

/* Describe the codes from FIRST on, N or what there is of them in a row and in
 * a call of the kernels. Their factors go into FACTORS. */
void flex_quant_part(const struct flex_quant *quant, int64_t first, int64_t n,
                     float factors[FLEX_QUANT_RUN],
                     struct flex_quant_codes *out);

/* N numbers from FIRST on into OUT. */
void flex_quant_decode(const struct flex_device *device,
                       const struct flex_quant *quant, int64_t first, int64_t n,
                       float *out);

/* Fail CALL unless all scales are finite and not negative. */
hob_status flex_quant_check(struct hob_call *call,
                            const struct flex_quant *quant);

/* Write the codes of X with the scales that are there. */
void flex_quant_encode(const struct flex_device *device,
                       const struct flex_quant *quant,
                       const struct hob_view *x);

/* ---- quant_matmul.c ---- */

hob_status flex_quant_matmul(void *opened, struct hob_call *call);

/* ---- quant_scales.c: the entry of quantize_dynamic ---- */

hob_status flex_quantize_dynamic_prepare(void *opened,
                                         const struct hob_call *call,
                                         struct hob_prepare *out);
hob_status flex_quantize_dynamic(void *opened, struct hob_call *call);

#endif
