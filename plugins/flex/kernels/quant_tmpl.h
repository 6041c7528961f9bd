/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant_tmpl.h - the numbers of codes, for one instruction set. Included by
 * quant_base.c, quant_v2.c and so on with DECODE defined, the function's name.
 */
#include "quant.h"

/* Codes of 8 / PER bits that share BYTES bytes, one a byte; SIGN is the highest
 * bit of integers, 0 for floats. */
static inline void unpack(const int per, const int sign,
                          const uint8_t *restrict in, int64_t bytes,
                          int8_t *restrict out)
{
    const int bits = 8 / per, mask = (1 << bits) - 1;

    for (int64_t i = 0; i < bytes; i++)
        for (int k = 0; k < per; k++)
            out[i * per + k] =
                (int8_t)((((in[i] >> (k * bits)) & mask) ^ sign) - sign);
}

/* N elements of a block. */
static inline void scale(const int8_t *restrict in, int64_t n, float factor,
                         float *restrict out)
{
    enum { STEP = 32 }; /* a constant, for vectors without a remainder */
    int64_t i = 0;

    for (; i + STEP <= n; i += STEP)
        for (int k = 0; k < STEP; k++)
            out[i + k] = (float)in[i + k] * factor;
    for (; i < n; i++)
        out[i] = (float)in[i] * factor;
}

static void decode_integers(const struct flex_quant_codes *codes,
                            const int8_t *restrict in, float *restrict out)
{
    const float *restrict factors = codes->factors;
    int64_t length = codes->head;

    if (codes->block == 1) {
        for (int64_t i = 0; i < codes->n; i++)
            out[i] = (float)in[i] * factors[i];
        return;
    }
    for (int64_t i = 0; i < codes->n; i += length, length = codes->block) {
        const int64_t left = codes->n - i;

        scale(in + i, length < left ? length : left, *factors++, out + i);
    }
}

static void decode_floats(const struct flex_quant_codes *codes,
                          const uint8_t *restrict in, float *restrict out)
{
    const float *restrict factors = codes->factors;
    const float *restrict numbers = codes->numbers;
    int64_t length = codes->head;

    for (int64_t i = 0; i < codes->n; i += length, length = codes->block) {
        const int64_t left = codes->n - i;
        const int64_t end = i + (length < left ? length : left);
        const float factor = *factors++;

        for (int64_t k = i; k < end; k++)
            out[k] = numbers[in[k]] * factor;
    }
}

void DECODE(const struct flex_quant_codes *codes, float *out)
{
    int8_t unpacked[FLEX_QUANT_RUN + 8];
    const int64_t per = 8 / codes->bits, lead = codes->first % per;
    const int64_t bytes = (lead + codes->n + per - 1) / per;
    const uint8_t *at = codes->codes + codes->first / per;
    const int8_t *in = (const int8_t *)at;

    if (codes->bits < 8)
        in = unpacked + lead;
    if (codes->bits == 4 && codes->numbers)
        unpack(2, 0, at, bytes, unpacked);
    else if (codes->bits == 4)
        unpack(2, 8, at, bytes, unpacked);
    else if (codes->bits == 2)
        unpack(4, 2, at, bytes, unpacked);
    if (codes->numbers)
        decode_floats(codes, (const uint8_t *)in, out);
    else
        decode_integers(codes, in, out);
}
