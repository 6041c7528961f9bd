/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.h - codes to numbers, and back.
 */
#ifndef FLEX_QUANT_KERNELS_H
#define FLEX_QUANT_KERNELS_H

#include <hob/ext/quant.h>

/* The most elements of one call. */
enum { FLEX_QUANT_RUN = 1024 };

/* Some codes of a row: HEAD elements that end a block, then whole blocks, the
 * last of which may be cut. */
struct flex_quant_codes {
    const uint8_t *codes; /* of the tensor */
    uint32_t bits;
    const float *numbers; /* one for each code; NULL: integers */
    int64_t first, n;
    int64_t head, block;
    const float *factors; /* one a block */
};

/* N numbers, and what their codes are multiplied by, one each. */
struct flex_quant_numbers {
    const double *x;
    const float *factors;
    int64_t n;
    const struct hob_quant_format *format;
};

struct flex_quant_kernels {
    /* OUT = the numbers of the codes, each times its factor. */
    void (*decode)(const struct flex_quant_codes *codes, float *out);
    void (*decode_f64)(const struct flex_quant_codes *codes, double *out);
    /* SUMS[i] += number i by X; integers only. */
    void (*add)(const struct flex_quant_codes *codes, float x, float *sums);
    /* OUT = the codes, as hob_quant_encode() has them; 0 for the factor 0. */
    void (*encode)(const struct flex_quant_numbers *numbers, uint8_t *out);
};

extern const struct flex_quant_kernels flex_quant_kernels_base;
extern const struct flex_quant_kernels flex_quant_kernels_v2;
extern const struct flex_quant_kernels flex_quant_kernels_v3;
extern const struct flex_quant_kernels flex_quant_kernels_v4;

#endif
