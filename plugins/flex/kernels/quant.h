/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.h - the numbers of codes, in f32.
 */
#ifndef FLEX_QUANT_KERNELS_H
#define FLEX_QUANT_KERNELS_H

#include <stdint.h>

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

/* OUT = the numbers of N codes from FIRST on, each times its factor. */
typedef void (*flex_quant_decode_fn)(const struct flex_quant_codes *codes,
                                     float *out);

void flex_quant_decode_base(const struct flex_quant_codes *codes, float *out);
void flex_quant_decode_v2(const struct flex_quant_codes *codes, float *out);
void flex_quant_decode_v3(const struct flex_quant_codes *codes, float *out);
void flex_quant_decode_v4(const struct flex_quant_codes *codes, float *out);

#endif
