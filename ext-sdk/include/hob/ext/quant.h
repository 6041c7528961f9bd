/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob/ext/quant.h - how a quantized tensor lies in memory.
 *
 * A quantized tensor has the dtype HOB_DTYPE_QUANT and a scheme: a word that
 * says all else about its format, in the member scheme of its view and of its
 * metadata. Its one storage holds, always row-major and one after the other:
 *
 *   codes    8, 4 or 2 bits each, in row-major order without gaps between
 *            rows; those that share a byte begin at its low bits
 *   scales   f32, f16 or bf16: one for the tensor, or one for each block,
 *            row-major by the places of the blocks. A block has a size along
 *            each dimension; the last one along it may be shorter. A tensor
 *            of rank 0 is a row of one element.
 *   global   one f32, where the scheme has it
 *
 * An element is its code, a number, times (scale times global), whose product
 * is rounded to f32. The offsets of the parts follow from scheme and shape:
 * hob_quant_layout_of(). Strides of such a view say nothing.
 */
#ifndef HOB_EXT_QUANT_H
#define HOB_EXT_QUANT_H

#include <hob/types.h>

#include <string.h>

HOB_BEGIN_DECLS

/* What a code stands for. Numbers are part of the ABI; an op's enumerators
 * have the same order, from 0. */
enum hob_quant_value {
    HOB_QUANT_Q8S = 1,  /* integers -127..127 */
    HOB_QUANT_Q8F = 2,  /* -128..127 */
    HOB_QUANT_Q4S = 3,  /* -7..7 */
    HOB_QUANT_Q4F = 4,  /* -8..7 */
    HOB_QUANT_Q2S = 5,  /* -1..1 */
    HOB_QUANT_Q2F = 6,  /* -2..1 */
    HOB_QUANT_E4M3 = 7, /* floats of 8 bits up to 448, without infinities */
    HOB_QUANT_E5M2 = 8, /* up to 57344; infinities are never written */
    HOB_QUANT_E2M1 = 9, /* of 4 bits up to 6, without NaN and infinities */
    HOB_QUANT_VALUE_COUNT_
};

/* The longest block along the last dimension alone; and where blocks have
 * sizes along several: how many, and the greatest that is not all of one. */
enum {
    HOB_QUANT_BLOCK_MAX = (1 << 20) - 1,
    HOB_QUANT_BLOCK_DIMS = 5,
    HOB_QUANT_BLOCK_POWER_MAX = 1 << 14
};

/* The format of one value. */
struct hob_quant_format {
    const char *name;
    uint8_t bits;
    uint8_t mantissa; /* bits of it; 0: integers */
    uint8_t bias;     /* of the exponent */
    uint8_t nan;      /* the code of NaN; 0: there is none */
    float low, high;  /* the range that codes are clamped to */
};

static inline const struct hob_quant_format *hob_quant_format_of(uint32_t value)
{
    static const struct hob_quant_format formats[] = {
        {"none", 0, 0, 0, 0, 0, 0},
        {"q8s", 8, 0, 0, 0, -127, 127},
        {"q8f", 8, 0, 0, 0, -128, 127},
        {"q4s", 4, 0, 0, 0, -7, 7},
        {"q4f", 4, 0, 0, 0, -8, 7},
        {"q2s", 2, 0, 0, 0, -1, 1},
        {"q2f", 2, 0, 0, 0, -2, 1},
        {"e4m3", 8, 3, 7, 0x7f, -448, 448},
        {"e5m2", 8, 2, 15, 0x7f, -57344, 57344},
        {"e2m1", 4, 1, 1, 0, -6, 6}};

    return &formats[value < HOB_QUANT_VALUE_COUNT_ ? value : 0];
}

/* ---- the scheme ---- */

/*
 * Bits 0-3 value, 4-7 dtype of the scales, 8 global, 9 propagate, 10 several,
 * 12-31 the blocks; 0 there: one scale for the tensor. Without several they
 * are the elements of a block, which lies along the last dimension. With it
 * they are five numbers of 4 bits, those of the last dimension lowest: the
 * logarithm to the base 2 of the size along it, or 15 for all of it.
 */
enum {
    HOB_QUANT_GLOBAL = 1 << 8,
    HOB_QUANT_PROPAGATE = 1 << 9,
    HOB_QUANT_SEVERAL = 1 << 10
};

/* BLOCKS is from hob_quant_blocks(), or 0. */
static inline uint32_t hob_quant_scheme(uint32_t value, uint32_t scale_dtype,
                                        uint32_t flags, uint32_t blocks)
{
    return value | scale_dtype << 4 | flags | blocks;
}

static inline uint32_t hob_quant_value_of(uint32_t scheme)
{
    return scheme & 15;
}

static inline uint32_t hob_quant_scale_dtype(uint32_t scheme)
{
    return scheme >> 4 & 15;
}

static inline int hob_quant_is_blocked(uint32_t scheme)
{
    return scheme >> 12 != 0;
}

/* The size of a block along the dimension that is INDEX before the last; 0:
 * all of it. */
static inline int64_t hob_quant_block_along(uint32_t scheme, uint32_t index)
{
    uint32_t power;

    if (!(scheme & HOB_QUANT_SEVERAL))
        return index && scheme >> 12 ? 1 : scheme >> 12;
    power = index < HOB_QUANT_BLOCK_DIMS ? scheme >> (12 + 4 * index) & 15 : 0;
    return power == 15 ? 0 : (int64_t)1 << power;
}

/*
 * The part of a scheme for blocks of BLOCK, sizes along the last COUNT
 * dimensions, where 0 is all of one; no size means one scale. Answers 0 where
 * none says that: along several dimensions, sizes are powers of 2, or not
 * below the dimension's in SHAPE, if that is given.
 */
static inline int hob_quant_blocks(const int64_t *block, const int64_t *shape,
                                   uint32_t count, uint32_t *out_blocks)
{
    uint32_t blocks = HOB_QUANT_SEVERAL;

    *out_blocks = 0;
    while (count > 1 && *block == 1) {
        block++;
        shape = shape ? shape + 1 : NULL;
        count--;
    }
    if (count == 1 && *block) {
        *out_blocks = (uint32_t)*block << 12;
        return *block > 0 && *block <= HOB_QUANT_BLOCK_MAX;
    }
    if (count > HOB_QUANT_BLOCK_DIMS)
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t power = block[i] ? 0 : 15;

        while (power < 14 && (int64_t)1 << power < block[i])
            power++;
        if (block[i] && (int64_t)1 << power != block[i]) {
            if (!shape || block[i] < shape[i])
                return 0;
            power = 15;
        }
        blocks |= power << (12 + 4 * (count - 1 - i));
    }
    *out_blocks = count ? blocks : 0;
    return 1;
}

/* The opposite: sizes along the last dimensions, and how many. */
static inline uint32_t hob_quant_block_list(uint32_t scheme,
                                            int64_t block[HOB_QUANT_BLOCK_DIMS])
{
    uint32_t count = scheme & HOB_QUANT_SEVERAL ? HOB_QUANT_BLOCK_DIMS : 1;

    while (count > 1 && hob_quant_block_along(scheme, count - 1) == 1)
        count--;
    for (uint32_t i = 0; i < count; i++)
        block[i] = hob_quant_block_along(scheme, count - 1 - i);
    return hob_quant_is_blocked(scheme) ? count : 0;
}

/* Whether SCHEME is one. */
static inline int hob_quant_is_sound(uint32_t scheme)
{
    uint32_t dtype = hob_quant_scale_dtype(scheme);

    return hob_quant_format_of(hob_quant_value_of(scheme))->bits &&
           (dtype == HOB_DTYPE_F32 || dtype == HOB_DTYPE_F16 ||
            dtype == HOB_DTYPE_BF16);
}

/* ---- the layout ---- */

/* Dimensions that blocks do not tell apart count as one. */
struct hob_quant_layout {
    int64_t count; /* elements */
    uint32_t rank; /* 1 or more */
    uint32_t reserved;
    int64_t sizes[HOB_MAX_RANK];
    int64_t block[HOB_MAX_RANK]; /* 1 .. size, or 0 for size 0 */
    int64_t scale_count;
    int64_t scales_at; /* offsets in bytes; codes are at 0 */
    int64_t global_at;
    int64_t bytes; /* of all parts */
};

/* The size of a block of SCHEME along dimension INDEX of RANK, which has SIZE
 * elements. */
static inline int64_t hob_quant_block_in(uint32_t scheme, uint32_t rank,
                                         uint32_t index, int64_t size)
{
    int64_t block = hob_quant_block_along(scheme, rank - 1 - index);

    return block && block < size ? block : size;
}

/* How many blocks of BLOCK elements SIZE elements make. */
static inline int64_t hob_quant_block_count(int64_t size, int64_t block)
{
    return block ? size / block + (size % block != 0) : 0;
}

/* One more dimension, behind those of LAYOUT. */
static inline void hob_quant_layout_add(struct hob_quant_layout *layout,
                                        int64_t size, int64_t block)
{
    uint32_t last = layout->rank - 1;
    int is_whole = block == size;

    if (layout->rank && size &&
        (is_whole || layout->sizes[last] == 1 ||
         (layout->block[last] == 1 && size % block == 0))) {
        layout->sizes[last] *= size;
        layout->block[last] *= block;
        return;
    }
    last = layout->rank++;
    layout->sizes[last] = size;
    layout->block[last] = block;
}

/* Describe a tensor of SCHEME and SHAPE, whose sizes are not negative; 0 if
 * SCHEME is none or the bytes overflow. */
static inline int hob_quant_layout_of(uint32_t scheme, uint32_t rank,
                                      const int64_t *shape,
                                      struct hob_quant_layout *out)
{
    const int64_t limit = INT64_MAX / 16; /* leaves room for scales */
    int64_t bits = hob_quant_format_of(hob_quant_value_of(scheme))->bits;
    int64_t size = hob_dtype_size(hob_quant_scale_dtype(scheme));
    int empty = 0;

    memset(out, 0, sizeof(*out));
    if (!hob_quant_is_sound(scheme))
        return 0;
    out->count = 1;
    for (uint32_t i = 0; i < rank; i++)
        empty |= shape[i] == 0;
    for (uint32_t i = 0; i < rank && !empty; i++) {
        if (shape[i] > limit / out->count)
            return 0;
        out->count *= shape[i];
    }
    if (empty)
        out->count = 0;
    for (uint32_t i = 0; i < rank && !empty; i++)
        hob_quant_layout_add(out, shape[i],
                             hob_quant_block_in(scheme, rank, i, shape[i]));
    if (!out->rank)
        hob_quant_layout_add(out, out->count, out->count);
    out->scale_count = out->count || !hob_quant_is_blocked(scheme);
    for (uint32_t i = 0; i < out->rank && out->count; i++)
        out->scale_count *= hob_quant_block_count(out->sizes[i], out->block[i]);
    /* Not (count * bits + 7) / 8, which may overflow. */
    out->scales_at = out->count / 8 * bits + (out->count % 8 * bits + 7) / 8;
    out->scales_at = (out->scales_at + 15) / 16 * 16;
    out->global_at = (out->scales_at + out->scale_count * size + 3) / 4 * 4;
    out->bytes = out->global_at + (scheme & HOB_QUANT_GLOBAL ? 4 : 0);
    return 1;
}

/* The index of the scale of element INDEX; *OUT_RUN is how many elements from
 * there on have the same one. */
static inline int64_t hob_quant_scale_at(const struct hob_quant_layout *layout,
                                         int64_t index, int64_t *out_run)
{
    int64_t scale = 0, stride = 1;

    *out_run = 0;
    for (uint32_t i = layout->rank; i-- > 0;) {
        int64_t size = layout->sizes[i], block = layout->block[i];
        int64_t place = index % size;

        index /= size;
        scale += place / block * stride;
        stride *= hob_quant_block_count(size, block);
        if (i + 1 == layout->rank) {
            *out_run = block - place % block;
            if (*out_run > size - place)
                *out_run = size - place;
        }
    }
    return scale;
}

/* ---- codes ---- */

/* Code INDEX of CODES, BITS wide, in the low bits. */
static inline uint32_t hob_quant_code_get(const uint8_t *codes, uint32_t bits,
                                          int64_t index)
{
    int64_t at = index * bits;

    return (uint32_t)codes[at >> 3] >> (at & 7) & ((1u << bits) - 1);
}

/* The number that CODE stands for. */
static inline float hob_quant_decode(const struct hob_quant_format *format,
                                     uint32_t code)
{
    uint32_t sign = 1u << (format->bits - 1);
    uint32_t magnitude = code & (sign - 1);
    uint32_t bits;
    float number;

    if (!format->mantissa)
        return (float)((int32_t)(code ^ sign) - (int32_t)sign);
    if (format->nan == 0x7f && format->mantissa == 2 && magnitude >= 0x7c)
        bits = 0x7f800000u | (magnitude & 3u) << 21; /* as IEEE 754 says */
    else if (format->nan == 0x7f && magnitude == 0x7f)
        bits = 0x7fc00000u;
    else if (magnitude >> format->mantissa)
        bits = (magnitude << (23 - format->mantissa)) +
               ((127u - format->bias) << 23);
    else { /* subnormal: a multiple of the least number */
        uint32_t unit = (128u - format->bias - format->mantissa) << 23;

        memcpy(&number, &unit, sizeof(number));
        number *= (float)magnitude;
        return code & sign ? -number : number;
    }
    memcpy(&number, &bits, sizeof(number));
    return code & sign ? -number : number;
}

/* The nearest integer, ties to even, of a number of magnitude below 2^51. */
static inline double hob_quant_round(double x)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52 */

    return x + shift - shift;
}

/*
 * The code of X: the nearest number of the format, ties to the even code. What
 * is beyond the range, infinities too, becomes its end; NaN becomes NaN where
 * the format has one, else 0.
 */
static inline uint32_t hob_quant_encode(const struct hob_quant_format *format,
                                        double x)
{
    uint32_t sign = 1u << (format->bits - 1);
    double magnitude, least;
    uint64_t bits;
    int64_t exponent;
    uint32_t code;

    if (x != x)
        return format->nan;
    x = x < (double)format->low ? (double)format->low : x;
    x = x > (double)format->high ? (double)format->high : x;
    if (!format->mantissa)
        return (uint32_t)(int32_t)hob_quant_round(x) & (sign | (sign - 1));
    memcpy(&bits, &x, sizeof(bits));
    code = bits >> 63 ? sign : 0; /* of -0 too */
    bits &= UINT64_MAX >> 1;
    memcpy(&magnitude, &bits, sizeof(magnitude));
    exponent = (int64_t)(bits >> 52) - 1023;
    if (exponent < 1 - format->bias)
        exponent = 1 - format->bias;
    /* In units of the last place, a carry runs into the exponent by itself. */
    bits = (uint64_t)(1023 + format->mantissa - exponent) << 52;
    memcpy(&least, &bits, sizeof(least));
    return code + (uint32_t)hob_quant_round(magnitude * least) +
           ((uint32_t)(exponent + format->bias - 1) << format->mantissa);
}

HOB_END_DECLS

#endif
