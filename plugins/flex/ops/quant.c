/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.c - quantized tensors, as hob/ext/quant.h lays them out.
 *
 * Blocks of FLEX_BLOCK elements go through f64, in which quotients of f32
 * are rounded once and products of a code and a scale are exact. FLEX_BLOCK
 * codes fill whole bytes in every format, so threads share none.
 */
#include "quant.h"

#include "../convert.h"

#include <inttypes.h>
#include <math.h>

void flex_quant_init(struct flex_quant *quant, const struct hob_view *view)
{
    quant->scheme = view->scheme;
    quant->format = hob_quant_format_of(hob_quant_value_of(view->scheme));
    quant->bits = quant->format->bits;
    hob_quant_layout_of(view->scheme, view->rank, view->shape, &quant->layout);
    quant->codes = view->data;
    quant->scales = (char *)view->data + quant->layout.scales_at;
    quant->global = view->scheme & HOB_QUANT_GLOBAL
                        ? (char *)view->data + quant->layout.global_at
                        : NULL;
    for (uint32_t i = 0; quant->format->mantissa && i < 1u << quant->bits; i++)
        quant->numbers[i] = hob_quant_decode(quant->format, i);
}

static float read_scale(uint32_t dtype, const char *scales, int64_t index)
{
    uint16_t half;
    float number;

    if (dtype == HOB_DTYPE_F32) {
        memcpy(&number, scales + index * 4, 4);
        return number;
    }
    memcpy(&half, scales + index * 2, 2);
    return dtype == HOB_DTYPE_F16 ? flex_f32_of_f16(half)
                                  : flex_f32_of_bf16(half);
}

static float global_of(const struct flex_quant *quant)
{
    float number = 1;

    if (quant->global)
        memcpy(&number, quant->global, 4);
    return number;
}

/* What the codes of scale INDEX are multiplied by. */
static float factor_at(const struct flex_quant *quant, int64_t index)
{
    float scale =
        read_scale(hob_quant_scale_dtype(quant->scheme), quant->scales, index);

    return quant->global ? scale * global_of(quant) : scale;
}

/* What the codes of N elements from FIRST on are multiplied by, one each. */
static void expand_factors(const struct flex_quant *quant, int64_t first,
                           int64_t n, float *factors)
{
    const uint32_t last = quant->layout.rank - 1;
    const int64_t row = quant->layout.sizes[last];
    const int64_t block = quant->layout.block[last];
    int64_t length;

    for (int64_t i = 0; i < n;) {
        int64_t scale = hob_quant_scale_at(&quant->layout, first + i, &length);
        const int64_t left = row - (first + i) % row;
        const int64_t end = left < n - i ? i + left : n; /* of the row */

        for (; i < end; i += length, length = block) {
            const float factor = factor_at(quant, scale++);

            length = length < end - i ? length : end - i;
            for (int64_t k = i; k < i + length; k++)
                factors[k] = factor;
        }
    }
}

const struct flex_quant_kernels *
flex_quant_kernels_of(const struct flex_device *device)
{
    return FLEX_BY_ISA(device->isa, &flex_quant_kernels);
}

/* The factors of COUNT scales from INDEX on. */
static void factors_of(const struct flex_quant *quant, int64_t index,
                       int64_t count, float *factors)
{
    const float global = global_of(quant);
    const uint32_t dtype = hob_quant_scale_dtype(quant->scheme);

    if (dtype == HOB_DTYPE_F32)
        memcpy(factors, quant->scales + index * 4, (size_t)count * 4);
    for (int64_t i = 0; i < count && dtype != HOB_DTYPE_F32; i++)
        factors[i] = read_scale(dtype, quant->scales, index + i);
    for (int64_t i = 0; i < count && quant->global; i++)
        factors[i] *= global;
}

void flex_quant_part(const struct flex_quant *quant, int64_t first, int64_t n,
                     float factors[FLEX_QUANT_RUN],
                     struct flex_quant_codes *out)
{
    const uint32_t last = quant->layout.rank - 1;
    const int64_t row = quant->layout.sizes[last];
    const int64_t left = row - first % row;
    int64_t scale;

    out->codes = quant->codes;
    out->bits = quant->bits;
    out->numbers = quant->format->mantissa ? quant->numbers : NULL;
    out->first = first;
    out->n = n < left ? n : left;
    out->n = out->n < FLEX_QUANT_RUN ? out->n : FLEX_QUANT_RUN;
    out->block = quant->layout.block[last];
    out->factors = factors;
    scale = hob_quant_scale_at(&quant->layout, first, &out->head);
    factors_of(quant, scale,
               out->n <= out->head
                   ? 1
                   : 1 + hob_quant_block_count(out->n - out->head, out->block),
               factors);
}

/* N numbers from FIRST on, into one of both. */
static void decode(const struct flex_device *device,
                   const struct flex_quant *quant, int64_t first, int64_t n,
                   float *out, double *out_f64)
{
    const struct flex_quant_kernels *kernels = flex_quant_kernels_of(device);
    float factors[FLEX_QUANT_RUN];
    struct flex_quant_codes part;

    for (int64_t i = 0; i < n; i += part.n) {
        flex_quant_part(quant, first + i, n - i, factors, &part);
        if (out)
            kernels->decode(&part, out + i);
        else
            kernels->decode_f64(&part, out_f64 + i);
    }
}

void flex_quant_decode(const struct flex_device *device,
                       const struct flex_quant *quant, int64_t first, int64_t n,
                       float *out)
{
    decode(device, quant, first, n, out, NULL);
}

/* N codes, one a byte, from element FIRST on, which begins a byte. */
static void pack(const struct flex_quant *quant, int64_t first, int64_t n,
                 const uint8_t *codes)
{
    uint32_t bits = quant->bits;
    uint32_t per_byte = 8 / bits;
    uint8_t *out = quant->codes + first / per_byte;

    if (bits == 8) {
        memcpy(out, codes, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i += per_byte) {
        uint32_t byte = 0;

        for (uint32_t k = 0; k < per_byte && i + k < n; k++)
            byte |= (uint32_t)codes[i + k] << (k * bits);
        *out++ = (uint8_t)byte;
    }
}

static void unpack(const struct flex_quant *quant, int64_t first, int64_t n,
                   uint8_t *codes)
{
    uint32_t bits = quant->bits;
    uint32_t per_byte = 8 / bits;
    const uint8_t *in = quant->codes + first / per_byte;
    uint32_t mask = (1u << bits) - 1;

    if (bits == 8) {
        memcpy(codes, in, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i += per_byte, in++)
        for (uint32_t k = 0; k < per_byte && i + k < n; k++)
            codes[i + k] = (uint8_t)(*in >> (k * bits) & mask);
}

/* ---- quantize ---- */

struct quant_run {
    const struct flex_device *device;
    struct flex_quant quant;
    struct flex_loop loop; /* of the floats or the i8 */
    flex_cast_fn cast;     /* between them and f64 */
};

static void quantize_piece(void *context, int64_t first, int64_t last,
                           uint32_t worker)
{
    const struct quant_run *run = context;
    _Alignas(FLEX_ALIGN) unsigned char raw[FLEX_BLOCK * 8];
    _Alignas(FLEX_ALIGN) double x[FLEX_BLOCK];
    _Alignas(FLEX_ALIGN) float factors[FLEX_BLOCK];
    _Alignas(FLEX_ALIGN) uint8_t codes[FLEX_BLOCK];

    (void)worker;
    for (int64_t block = first; block < last; block++) {
        int64_t at = block * FLEX_BLOCK;
        int64_t left = run->quant.layout.count - at;
        int64_t n = left < FLEX_BLOCK ? left : FLEX_BLOCK;

        run->cast(x, flex_loop_fetch(&run->loop, at, n, raw), n);
        expand_factors(&run->quant, at, n, factors);
        flex_quant_kernels_of(run->device)
            ->encode(
                &(struct flex_quant_numbers){x, factors, n, run->quant.format},
                codes);
        pack(&run->quant, at, n, codes);
    }
}

/* How many blocks of FLEX_BLOCK there are, and how many make a piece. */
static int64_t blocks_of(const struct flex_quant *quant)
{
    return (quant->layout.count + FLEX_BLOCK - 1) / FLEX_BLOCK;
}

enum { PIECE_BLOCKS = FLEX_GRAIN_DEAR / FLEX_BLOCK };

hob_status flex_quant_check(struct hob_call *call,
                            const struct flex_quant *quant)
{
    uint32_t dtype = hob_quant_scale_dtype(quant->scheme);
    float number = global_of(quant);

    if (!(number >= 0 && number < INFINITY))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: global_scale is %g; it must be finite "
                                "and not negative",
                                call->op_name, (double)number);
    for (int64_t i = 0; i < quant->layout.scale_count; i++) {
        number = read_scale(dtype, quant->scales, i);
        if (number >= 0 && number < INFINITY && factor_at(quant, i) < INFINITY)
            continue;
        return call->host->fail(
            call, HOB_ERR_RANGE,
            "%s: scale %" PRId64 " is %g%s; it must be finite and not "
            "negative: choose scales of a wider dtype, or smaller elements",
            call->op_name, i, (double)number,
            quant->global ? " (times the global scale)" : "");
    }
    return HOB_OK;
}

/* Copy the scales that were given into the tensor; each must be usable. */
static hob_status take_scales(struct hob_call *call,
                              const struct flex_quant *quant)
{
    const struct hob_view *global = hob_arg_view(call, 2);
    struct flex_loop loop;

    flex_loop_init(&loop, hob_arg_view(call, 1));
    if (quant->layout.scale_count) /* else only the global one is there */
        flex_loop_gather(&loop, 0, quant->layout.scale_count, quant->scales);
    if (global)
        memcpy(quant->global, global->data, 4);
    return flex_quant_check(call, quant);
}

void flex_quant_encode(const struct flex_device *device,
                       const struct flex_quant *quant, const struct hob_view *x)
{
    struct quant_run run;

    run.device = device;
    run.quant = *quant;
    flex_loop_init(&run.loop, x);
    run.cast = device->kernels->cast[HOB_DTYPE_F64][x->dtype];
    flex_parallel(device, blocks_of(quant), PIECE_BLOCKS, quantize_piece, &run);
}

static hob_status execute_quantize(void *opened, struct hob_call *call)
{
    struct flex_quant quant;
    hob_status st;

    flex_quant_init(&quant, hob_ret_view(call, 0));
    st = take_scales(call, &quant);
    if (!st)
        flex_quant_encode(opened, &quant, hob_arg_view(call, 0));
    return st;
}

/* ---- dequantize ---- */

static void dequantize_piece(void *context, int64_t first, int64_t last,
                             uint32_t worker)
{
    const struct quant_run *run = context;
    _Alignas(FLEX_ALIGN) double x[FLEX_BLOCK];

    (void)worker;
    for (int64_t block = first; block < last; block++) {
        int64_t at = block * FLEX_BLOCK;
        int64_t left = run->quant.layout.count - at;
        int64_t n = left < FLEX_BLOCK ? left : FLEX_BLOCK;
        char *out = run->loop.data + at * run->loop.size;

        if (!run->cast) { /* f32; other types are rounded once */
            decode(run->device, &run->quant, at, n, (float *)(void *)out, NULL);
            continue;
        }
        decode(run->device, &run->quant, at, n, NULL, x);
        run->cast(out, x, n);
    }
}

static hob_status execute_dequantize(void *opened, struct hob_call *call)
{
    struct flex_device *device = opened;
    const struct hob_view *out = hob_ret_view(call, 0);
    struct quant_run run;

    flex_quant_init(&run.quant, hob_arg_view(call, 0));
    flex_loop_init(&run.loop, out);
    run.device = device;
    run.cast = out->dtype == HOB_DTYPE_F32
                   ? NULL
                   : device->kernels->cast[out->dtype][HOB_DTYPE_F64];
    flex_parallel(device, blocks_of(&run.quant), PIECE_BLOCKS, dequantize_piece,
                  &run);
    return HOB_OK;
}

/* ---- the parts ---- */

static void values_piece(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct quant_run *run = context;
    uint32_t bits = run->quant.bits;
    /* Integers of less than 8 bits get their sign back; floats do not. */
    uint32_t sign = run->quant.format->mantissa ? 0 : 1u << (bits - 1);

    (void)worker;
    for (int64_t block = first; block < last; block++) {
        int64_t at = block * FLEX_BLOCK;
        int64_t left = run->quant.layout.count - at;
        int64_t n = left < FLEX_BLOCK ? left : FLEX_BLOCK;
        uint8_t *out = (uint8_t *)run->loop.data + at;

        unpack(&run->quant, at, n, out);
        for (int64_t i = 0; i < n; i++)
            out[i] = (uint8_t)((out[i] ^ sign) - sign);
    }
}

static hob_status execute_values(void *opened, struct hob_call *call)
{
    struct quant_run run;

    flex_quant_init(&run.quant, hob_arg_view(call, 0));
    flex_loop_init(&run.loop, hob_ret_view(call, 0));
    flex_parallel(opened, blocks_of(&run.quant), PIECE_BLOCKS, values_piece,
                  &run);
    return HOB_OK;
}

static hob_status execute_scales(void *opened, struct hob_call *call)
{
    const struct hob_view *scales = hob_ret_view(call, 0);
    struct flex_quant quant;

    (void)opened;
    flex_quant_init(&quant, hob_arg_view(call, 0));
    if (quant.layout.scale_count)
        memcpy(scales->data, quant.scales,
               (size_t)quant.layout.scale_count *
                   hob_dtype_size(scales->dtype));
    if (quant.global)
        memcpy(hob_ret_view(call, 1)->data, quant.global, 4);
    return HOB_OK;
}

/* The first code of CODES that the format does not have; N if there is none. */
static int64_t find_alien(const struct hob_quant_format *format,
                          const int8_t *codes, int64_t n)
{
    int low =
        format->mantissa ? (format->bits == 8 ? -128 : 0) : (int)format->low;
    int high =
        format->mantissa ? (format->bits == 8 ? 127 : 15) : (int)format->high;
    int64_t i = 0;

    while (i < n && codes[i] >= low && codes[i] <= high)
        i++;
    return i;
}

static hob_status execute_from(void *opened, struct hob_call *call)
{
    unsigned char raw[FLEX_BLOCK];
    uint8_t codes[FLEX_BLOCK];
    struct flex_quant quant;
    struct flex_loop loop;
    hob_status st;
    uint8_t mask;

    (void)opened;
    flex_quant_init(&quant, hob_ret_view(call, 0));
    mask = (uint8_t)((1u << quant.bits) - 1);
    st = take_scales(call, &quant);
    flex_loop_init(&loop, hob_arg_view(call, 0));
    for (int64_t at = 0; at < quant.layout.count && !st; at += FLEX_BLOCK) {
        int64_t left = quant.layout.count - at;
        int64_t n = left < FLEX_BLOCK ? left : FLEX_BLOCK;
        const int8_t *in = flex_loop_fetch(&loop, at, n, raw);
        int64_t alien = find_alien(quant.format, in, n);

        if (alien < n)
            st = call->host->fail(call, HOB_ERR_RANGE,
                                  "%s: value %" PRId64 " is %d, which is no "
                                  "code of %s",
                                  call->op_name, at + alien, in[alien],
                                  quant.format->name);
        for (int64_t i = 0; i < n; i++)
            codes[i] = (uint8_t)((uint8_t)in[i] & mask);
        pack(&quant, at, n, codes);
    }
    return st;
}

enum { QUANT = HOB_DTYPE_BIT(HOB_DTYPE_QUANT) };

/* Those that are multiplied in f32; f64 has the body. */
static const uint32_t matmul_masks[] = {HOB_DTYPE_BIT(HOB_DTYPE_F32) |
                                            HOB_DTYPE_BIT(HOB_DTYPE_F16) |
                                            HOB_DTYPE_BIT(HOB_DTYPE_BF16),
                                        QUANT};

/* What scales can be, and the global one. */
enum {
    SCALES = HOB_DTYPE_BIT(HOB_DTYPE_F32) | HOB_DTYPE_BIT(HOB_DTYPE_F16) |
             HOB_DTYPE_BIT(HOB_DTYPE_BF16),
    GLOBAL = HOB_DTYPE_BIT(HOB_DTYPE_F32)
};

static const uint32_t quant_mask[] = {QUANT};
static const uint32_t float_masks[] = {HOB_MASK_FLOAT, SCALES, GLOBAL};
static const uint32_t code_masks[] = {HOB_DTYPE_BIT(HOB_DTYPE_I8), SCALES,
                                      GLOBAL};

static const struct hob_entry entries[] = {
    {
        .op = "quantize",
        .signature = "(x: Float, scales: Num, global_scale: Any?, value: "
                     "enum(q8s, q8f, q4s, q4f, q2s, q2f, e4m3, e5m2, e2m1) = "
                     "q8s, block: [i64] = [], propagation: enum(inhibit, "
                     "propagate) = inhibit) -> Quantized",
        .dtypes = float_masks,
        .dtype_count = 3,
        .execute = execute_quantize,
    },
    {
        .op = "quantize_dynamic",
        .signature = "(x: Float, value: enum(q8s, q8f, q4s, q4f, q2s, q2f, "
                     "e4m3, e5m2, e2m1) = q8s, block: [i64] = [], scale_dtype: "
                     "dtype = f32, global_scale: bool = false, propagation: "
                     "enum(inhibit, propagate) = inhibit, calibration: "
                     "enum(minmax, absmean) = minmax) -> Quantized",
        .dtypes = float_masks,
        .dtype_count = 1,
        .prepare = flex_quantize_dynamic_prepare,
        .execute = flex_quantize_dynamic,
    },
    {
        .op = "dequantize",
        .signature = "(x: Quantized, dtype: dtype = f32) -> dtype",
        .dtypes = quant_mask,
        .dtype_count = 1,
        .execute = execute_dequantize,
    },
    {
        .op = "quantized_values",
        .signature = "(x: Quantized) -> Int",
        .dtypes = quant_mask,
        .dtype_count = 1,
        .execute = execute_values,
    },
    {
        .op = "quantized_scales",
        .signature = "(x: Quantized) -> (scales: Float, global_scale: Float?)",
        .dtypes = quant_mask,
        .dtype_count = 1,
        .execute = execute_scales,
    },
    {
        .op = "quantized_from",
        .signature = "(values: Int, scales: Num, global_scale: Any?, value: "
                     "enum(q8s, q8f, q4s, q4f, q2s, q2f, e4m3, e5m2, e2m1) = "
                     "q8s, block: [i64] = [], propagation: enum(inhibit, "
                     "propagate) = inhibit) -> Quantized",
        .dtypes = code_masks,
        .dtype_count = 3,
        .execute = execute_from,
    },
    {
        .op = "matmul_quantized",
        .signature = "(x: Float, weight: Quantized, transpose: bool = false) "
                     "-> x",
        .dtypes = matmul_masks,
        .dtype_count = 2,
        .execute = flex_quant_matmul,
    },
};

const struct flex_entries flex_quant_entries = {
    .entries = entries,
    .count = sizeof(entries) / sizeof(entries[0]),
};
