/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The quantized kernels of the reference backend, written from the text of
 * hob/ext/quant.h with nothing of its code but the layout of a scheme: a code
 * is found by trying all of them, its bits are moved one by one.
 */
#include "reference_backend.h"
#include "reference_numbers.h"
#include "reference_places.h"

#include <hob/ext/quant.h>

#include <math.h>

/* Bits, bits of mantissa, exponent bias, and the codes of magnitudes that are
 * numbers; for integers the least and the greatest. By enum hob_quant_value. */
static const struct format {
    int bits, mantissa, bias, low, high;
} formats[HOB_QUANT_VALUE_COUNT_] = {
    {0, 0, 0, 0, 0},  {8, 0, 0, -127, 127}, {8, 0, 0, -128, 127},
    {4, 0, 0, -7, 7}, {4, 0, 0, -8, 7},     {2, 0, 0, -1, 1},
    {2, 0, 0, -2, 1}, {8, 3, 7, 0, 126},    {8, 2, 15, 0, 123},
    {4, 1, 1, 0, 7},
};

struct packed {
    struct format format;
    const struct hob_view *view;
    unsigned char *bytes;
    int64_t count, scale_count;
    int64_t block[HOB_MAX_RANK]; /* along each dimension */
    struct hob_view scales;      /* of rank 1 */
    struct hob_view global;
};

/* The block along the dimension that is FROM_LAST from the last, of SIZE. */
static int64_t block_of(const struct hob_view *view, uint32_t from_last,
                        int64_t size)
{
    uint32_t word = view->scheme >> 12, power;
    int64_t block = from_last ? 1 : word;

    if (!word)
        return size;
    if (view->scheme >> 10 & 1) {
        power = from_last < 5 ? word >> (4 * from_last) & 15 : 0;
        block = power == 15 ? size : (int64_t)1 << power;
    }
    return block < size ? block : size;
}

static int64_t blocks_in(int64_t size, int64_t block)
{
    return (size + block - 1) / block;
}

static struct packed unwrap(const struct hob_view *view)
{
    struct packed p = {.view = view, .bytes = view->data};
    int64_t at;

    p.format = formats[view->scheme & 15];
    p.count = hob_view_count(view);
    p.scale_count = 1;
    for (uint32_t i = 0; i < view->rank; i++) {
        p.block[i] = block_of(view, view->rank - 1 - i, view->shape[i]);
        if (p.count)
            p.scale_count *= blocks_in(view->shape[i], p.block[i]);
    }
    if (!p.count && view->scheme >> 12)
        p.scale_count = 0;
    at = ((p.count * p.format.bits + 7) / 8 + 15) / 16 * 16;
    p.scales.data = p.bytes + at;
    p.scales.dtype = view->scheme >> 4 & 15;
    at += p.scale_count * hob_dtype_size(p.scales.dtype);
    p.global.data = p.bytes + (at + 3) / 4 * 4;
    p.global.dtype = HOB_DTYPE_F32;
    return p;
}

static int has_global(const struct packed *p)
{
    return (p->view->scheme >> 8 & 1) != 0;
}

/* What element FLAT's code is multiplied by. */
static double factor_of(const struct packed *p, int64_t flat)
{
    int64_t at = 0, stride = 1;
    float scale;

    for (uint32_t i = p->view->rank; i-- > 0; flat /= p->view->shape[i]) {
        at += flat % p->view->shape[i] / p->block[i] * stride;
        stride *= blocks_in(p->view->shape[i], p->block[i]);
    }
    scale = (float)number_load(&p->scales, at).f;

    return has_global(p) ? (double)(scale * (float)number_load(&p->global, 0).f)
                         : (double)scale;
}

static int code_load(const struct packed *p, int64_t flat)
{
    int code = 0;

    for (int b = 0; b < p->format.bits; b++) {
        int64_t bit = flat * p->format.bits + b;

        code |= (p->bytes[bit / 8] >> (bit % 8) & 1) << b;
    }
    /* Integers are two's complement. */
    if (!p->format.mantissa && code >> (p->format.bits - 1))
        code -= 1 << p->format.bits;
    return code;
}

static void code_store(const struct packed *p, int64_t flat, int code)
{
    for (int b = 0; b < p->format.bits; b++) {
        int64_t bit = flat * p->format.bits + b;
        unsigned mask = 1u << (bit % 8);

        p->bytes[bit / 8] =
            (unsigned char)((p->bytes[bit / 8] & ~mask) |
                            ((unsigned)code >> b & 1 ? mask : 0));
    }
}

/* The number of a float's MAGNITUDE code. */
static double magnitude_of(const struct format *format, int magnitude)
{
    int exponent = magnitude >> format->mantissa;
    int fraction = magnitude & ((1 << format->mantissa) - 1);

    if (!exponent)
        return ldexp(fraction, 1 - format->bias - format->mantissa);
    return ldexp(fraction + (1 << format->mantissa),
                 exponent - format->bias - format->mantissa);
}

static double number_of(const struct format *format, int code)
{
    int sign = 1 << (format->bits - 1);
    int magnitude = code & (sign - 1);
    double number;

    if (!format->mantissa)
        return code;
    if (magnitude > format->high) /* e5m2 has infinities, which nothing makes */
        number = format->mantissa == 2 && magnitude == 124 ? INFINITY : NAN;
    else
        number = magnitude_of(format, magnitude);
    return code & sign ? -number : number;
}

/* The nearest code by trying them all, ties to even. */
static int nearest_code(const struct format *format, double x)
{
    int best = format->low;
    double target = format->mantissa ? fabs(x) : x;

    if (isnan(x))
        return format->mantissa && format->bits == 8 ? 127 : 0;
    for (int code = format->low; code <= format->high; code++) {
        double number = format->mantissa ? magnitude_of(format, code) : code;
        double best_number =
            format->mantissa ? magnitude_of(format, best) : best;
        double far = fabs(number - target);
        double best_far = fabs(best_number - target);

        if (isinf(target))
            best = target > 0 ? format->high : format->low;
        else if (far < best_far || (far == best_far && code % 2 == 0))
            best = code;
    }
    if (format->mantissa && signbit(x))
        best |= 1 << (format->bits - 1);
    return best;
}

static hob_status take_scales(struct hob_call *call, const struct packed *p)
{
    const struct hob_view *scales = hob_arg_view(call, 1);

    for (int64_t i = 0; i < p->scale_count; i++) {
        struct number scale = number_load(scales, place_flat(scales, i));

        number_store(&p->scales, i, scale);
        if (!(scale.f >= 0 && scale.f < INFINITY))
            return call->host->fail(call, HOB_ERR_RANGE, "bad scale");
    }
    if (has_global(p))
        number_store(&p->global, 0, number_load(hob_arg_view(call, 2), 0));
    return HOB_OK;
}

hob_status reference_quantize(void *device, struct hob_call *call)
{
    struct packed p = unwrap(hob_ret_view(call, 0));
    const struct hob_view *x = hob_arg_view(call, 0);
    hob_status st = take_scales(call, &p);

    (void)device;
    for (int64_t i = 0; i < p.count && !st; i++) {
        struct number number = number_load(x, place_flat(x, i));
        double factor = factor_of(&p, i);

        if (!is_float(x->dtype)) /* quantized_from: codes as they are */
            code_store(&p, i, (int)(int64_t)number.u);
        else
            code_store(
                &p, i,
                factor == 0 ? 0 : nearest_code(&p.format, number.f / factor));
    }
    return st;
}

hob_status reference_dequantize(void *device, struct hob_call *call)
{
    struct packed p = unwrap(hob_arg_view(call, 0));
    const struct hob_view *out = hob_ret_view(call, 0);

    (void)device;
    for (int64_t i = 0; i < p.count; i++) {
        struct number number = {
            number_of(&p.format, code_load(&p, i)) * factor_of(&p, i), 0};

        number_store(out, i, number);
    }
    return HOB_OK;
}

hob_status reference_quantized_values(void *device, struct hob_call *call)
{
    struct packed p = unwrap(hob_arg_view(call, 0));

    (void)device;
    for (int64_t i = 0; i < p.count; i++) {
        struct number number = {0, (uint64_t)(int64_t)code_load(&p, i)};

        number_store(hob_ret_view(call, 0), i, number);
    }
    return HOB_OK;
}

hob_status reference_quantized_scales(void *device, struct hob_call *call)
{
    struct packed p = unwrap(hob_arg_view(call, 0));

    (void)device;
    for (int64_t i = 0; i < p.scale_count; i++)
        number_store(hob_ret_view(call, 0), i, number_load(&p.scales, i));
    if (has_global(&p))
        number_store(hob_ret_view(call, 1), 0, number_load(&p.global, 0));
    return HOB_OK;
}
