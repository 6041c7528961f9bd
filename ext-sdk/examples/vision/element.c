/* SPDX-License-Identifier: Apache-2.0 */
#include "element.h"

#include <math.h>
#include <string.h>

/* A 16-bit float of FRACTION bits, whose least normal number is 2^LEAST. */
struct half_format {
    int fraction;
    int least;
    uint32_t infinity;
};

static const struct half_format f16 = {10, -14, 0x7c00};
static const struct half_format bf16 = {7, -126, 0x7f80};

static double from_half(uint32_t bits, const struct half_format *format)
{
    uint32_t one = 1u << format->fraction;
    uint32_t magnitude = bits & 0x7fff;
    uint32_t exponent = magnitude >> format->fraction;
    double number;

    if (magnitude > format->infinity)
        return NAN;
    if (magnitude == format->infinity)
        number = INFINITY;
    else if (!exponent) /* subnormal */
        number = ldexp(magnitude, format->least - format->fraction);
    else
        number = ldexp(one | (magnitude & (one - 1)),
                       format->least - format->fraction + (int)exponent - 1);
    return bits & 0x8000 ? -number : number;
}

static uint16_t to_half(double number, const struct half_format *format)
{
    uint32_t sign = signbit(number) ? 0x8000 : 0, bits;
    int exponent;
    double units;

    if (isnan(number))
        return (uint16_t)(sign | format->infinity |
                          1u << (format->fraction - 1));
    number = fabs(number);
    if (number == 0)
        return (uint16_t)sign;
    if (isinf(number))
        return (uint16_t)(sign | format->infinity);
    (void)frexp(number, &exponent);
    exponent = exponent - 1 < format->least ? format->least : exponent - 1;
    if (exponent > 127)
        return (uint16_t)(sign | format->infinity);
    /* Units of the last place, a whole number below 2^(fraction + 1), or just
     * that after rounding up: then the sum carries into the exponent. */
    units = nearbyint(ldexp(number, format->fraction - exponent));
    bits = (uint32_t)(exponent - format->least) << format->fraction;
    bits += (uint32_t)units;
    return (uint16_t)(sign |
                      (bits < format->infinity ? bits : format->infinity));
}

static char *address(const struct hob_view *view, int64_t offset)
{
    return (char *)view->data +
           offset * (int64_t)hob_dtype_size((hob_dtype)view->dtype);
}

double vision_load_half(const struct hob_view *view, int64_t offset)
{
    return from_half(((const uint16_t *)view->data)[offset],
                     view->dtype == HOB_DTYPE_F16 ? &f16 : &bf16);
}

void vision_store(const struct hob_view *view, int64_t offset, double number)
{
    void *at = address(view, offset);

    switch (view->dtype) {
    case HOB_DTYPE_F64:
        *(double *)at = number;
        break;
    case HOB_DTYPE_F32:
        *(float *)at = (float)number;
        break;
    case HOB_DTYPE_F16:
        *(uint16_t *)at = to_half(number, &f16);
        break;
    default:
        *(uint16_t *)at = to_half(number, &bf16);
    }
}

double vision_round(const struct hob_view *view, double number)
{
    double memory;
    struct hob_view one = {.data = &memory, .dtype = view->dtype};

    vision_store(&one, 0, number);
    return vision_load(&one, 0);
}

void vision_store_int(const struct hob_view *view, int64_t number)
{
    /* The same bits, signed or not. */
    switch (hob_dtype_size((hob_dtype)view->dtype)) {
    case 8:
        *(uint64_t *)view->data = (uint64_t)number;
        break;
    case 4:
        *(uint32_t *)view->data = (uint32_t)number;
        break;
    case 2:
        *(uint16_t *)view->data = (uint16_t)number;
        break;
    default:
        *(uint8_t *)view->data = (uint8_t)number;
    }
}

void vision_zero(const struct hob_view *view)
{
    size_t size = (size_t)hob_view_count(view) * hob_dtype_size(view->dtype);

    if (size) /* without elements there need be no memory */
        memset(view->data, 0, size);
}

void vision_copy(const struct hob_view *to, int64_t to_at,
                 const struct hob_view *from, int64_t at)
{
    memcpy(address(to, to_at), address(from, at),
           hob_dtype_size((hob_dtype)from->dtype));
}
