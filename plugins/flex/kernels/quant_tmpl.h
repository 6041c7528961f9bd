/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant_tmpl.h - quant.h for one instruction set. Included by quant_base.c,
 * quant_v2.c and so on with TABLE defined, the name of their table.
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

/* The codes of integers, or of floats, one a byte; maybe in UNPACKED. */
static inline const int8_t *integers(const struct flex_quant_codes *codes,
                                     int8_t *unpacked)
{
    const int64_t per = 8 / codes->bits, lead = codes->first % per;
    const int64_t bytes = (lead + codes->n + per - 1) / per;
    const uint8_t *at = codes->codes + codes->first / per;

    if (codes->bits == 8)
        return (const int8_t *)at;
    if (codes->bits == 4 && codes->numbers)
        unpack(2, 0, at, bytes, unpacked);
    else if (codes->bits == 4)
        unpack(2, 8, at, bytes, unpacked);
    else
        unpack(4, 2, at, bytes, unpacked);
    return unpacked + lead;
}

#define TYPE float
#define NAME(x) f32_##x
#include "quant_decode_tmpl.h"

#define TYPE double
#define NAME(x) f64_##x
#include "quant_decode_tmpl.h"

/* In constant steps, for vectors without a remainder. Numbers first: a factor
 * by x may overflow where the code is 0. */
static void add(const struct flex_quant_codes *codes, float x,
                float *restrict sums)
{
    int8_t unpacked[FLEX_QUANT_RUN + 8];
    const int8_t *restrict in = integers(codes, unpacked);
    const float *restrict factors = codes->factors;
    enum { STEP = 32 };
    int64_t length = codes->head, end;

    if (codes->block == 1) {
        for (int64_t i = 0; i < codes->n; i++)
            sums[i] += (float)in[i] * factors[i] * x;
        return;
    }
    for (int64_t i = 0; i < codes->n; i = end, length = codes->block) {
        const float factor = *factors++;

        end = length < codes->n - i ? i + length : codes->n;
        for (; i + STEP <= end; i += STEP)
            for (int k = 0; k < STEP; k++)
                sums[i + k] += (float)in[i + k] * factor * x;
        for (; i < end; i++)
            sums[i] += (float)in[i] * factor * x;
    }
}

static void encode(const struct flex_quant_numbers *numbers,
                   uint8_t *restrict out)
{
    const double *restrict x = numbers->x;
    const float *restrict factors = numbers->factors;
    const struct hob_quant_format *format = numbers->format;
    const double low = (double)format->low, high = (double)format->high;
    const int32_t mask = (1 << format->bits) - 1;

    if (format->mantissa) {
        for (int64_t i = 0; i < numbers->n; i++) {
            const uint32_t code =
                hob_quant_encode(format, x[i] / (double)factors[i]);

            out[i] = factors[i] == 0 ? 0 : (uint8_t)code;
        }
        return;
    }
    for (int64_t i = 0; i < numbers->n; i++) {
        double code = x[i] / (double)factors[i];

        code = code == code && factors[i] != 0 ? code : 0;
        code = code < low ? low : code;
        code = code > high ? high : code;
        out[i] = (uint8_t)((int32_t)hob_quant_round(code) & mask);
    }
}

const struct flex_quant_kernels TABLE = {f32_decode, f64_decode, add, encode};
