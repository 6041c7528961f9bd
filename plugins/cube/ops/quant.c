/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.c - quantized tensors, as hob/ext/quant.h lays them out. Numbers go
 * through f64 where the device has it: quotients are then rounded once, and
 * products of a code and a scale are exact.
 */
#include "../cube.h"
#include "../flag.h"
#include "../move.h"
#include "../texts.h"

#include <hob/ext/quant.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Constant number 1 is BLOCK_RANK. */
#define BLOCK_PARAMS                                                           \
    {"block_sizes", CUBE_INDEX, CUBE_LENGTH(1)},                               \
        {"blocks", CUBE_INDEX, CUBE_LENGTH(1)},                                \
    {                                                                          \
        "block_counts", CUBE_INDEX, CUBE_LENGTH(1)                             \
    }
#define FORMAT_CONSTANTS "CODE_BITS", "MANTISSA", "BIAS", "NAN_CODE"

#define ENCODE(name_, flags_)                                                  \
    {                                                                          \
        .name = name_, .text = cube_text_quant_encode,                         \
        .buffers = {{"out", CUBE_WRITTEN},                                     \
                    {"x", 0},                                                  \
                    {"scales", 0},                                             \
                    {"global", 0}},                                            \
        .params = {{"count", CUBE_INDEX, 0},                                   \
                   {"words", CUBE_INDEX, 0},                                   \
                   CUBE_SPACE_PARAMS,                                          \
                   CUBE_OPERAND_PARAMS("x"),                                   \
                   BLOCK_PARAMS,                                               \
                   {"low_number", CUBE_F32, 0},                                \
                   {"high_number", CUBE_F32, 0}},                              \
        .constants = {"RANK", "BLOCK_RANK", FORMAT_CONSTANTS, "HAS_GLOBAL",    \
                      "EXACT", "PACKING"},                                     \
        .symbols = {"NUMBER"},                                                 \
        .flags = CUBE_SPACES | CUBE_MATHS | (flags_),                          \
    }
static const struct cube_program encode_program = ENCODE("quant_encode", 0);
static const struct cube_program exact_encode_program =
    ENCODE("quant_encode_exact", CUBE_USES_F64);
#undef ENCODE

static const struct cube_program pack_program = {
    .name = "quant_pack",
    .text = cube_text_quant_encode,
    .buffers = {{"out", CUBE_WRITTEN},
                {"x", 0},
                {"bad", CUBE_WRITTEN | CUBE_ATOMIC}},
    .params = {{"count", CUBE_INDEX, 0},
               {"words", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("x"),
               {"low_code", CUBE_I32, 0},
               {"high_code", CUBE_I32, 0}},
    .constants = {"RANK", "CODE_BITS", "PACKING"},
    .flags = CUBE_SPACES,
};

#define DECODE(name_, flags_)                                                  \
    {                                                                          \
        .name = name_, .text = cube_text_quant_decode,                         \
        .buffers = {{"out", CUBE_WRITTEN},                                     \
                    {"codes", 0},                                              \
                    {"scales", 0},                                             \
                    {"global", 0}},                                            \
        .params = {{"count", CUBE_INDEX, 0},                                   \
                   {"words", CUBE_INDEX, 0},                                   \
                   BLOCK_PARAMS},                                              \
        .constants = {"CODES", "BLOCK_RANK", FORMAT_CONSTANTS, "HAS_GLOBAL"},  \
        .symbols = {"NUMBER"}, .flags = (flags_),                              \
    }
static const struct cube_program decode_program = DECODE("quant_decode", 0);
static const struct cube_program exact_decode_program =
    DECODE("quant_decode_exact", CUBE_USES_F64);
#undef DECODE

static const struct cube_program check_program = {
    .name = "quant_check",
    .text = cube_text_quant_check,
    .buffers = {{"scales", 0}, {"global", 0}, {"bad", CUBE_WRITTEN | CUBE_ATOMIC}},
    .params = {{"count", CUBE_INDEX, 0}},
    .constants = {"HAS_GLOBAL"},
};

/* A quantized tensor taken apart. */
struct quant {
    const struct hob_quant_format *format;
    struct hob_quant_layout layout;
    uint32_t scale_dtype;
    int64_t words; /* of 32 bits, of codes */
    char *codes, *scales, *global; /* the last may be NULL */
};

static void quant_init(struct quant *quant, const struct hob_view *view)
{
    const uint32_t scheme = view->scheme;
    char *data = view->data;

    hob_quant_layout_of(scheme, view->rank, view->shape, &quant->layout);
    quant->format = hob_quant_format_of(hob_quant_value_of(scheme));
    quant->scale_dtype = hob_quant_scale_dtype(scheme);
    /* The codes end on a multiple of 16 bytes. */
    quant->words = (quant->layout.count + 32 / quant->format->bits - 1) /
                   (32 / quant->format->bits);
    quant->codes = data;
    quant->scales = data + quant->layout.scales_at;
    quant->global =
        scheme & HOB_QUANT_GLOBAL ? data + quant->layout.global_at : NULL;
}

static void add_scales(struct cube_job *job, const struct quant *quant)
{
    if (quant->layout.scale_count)
        cube_job_memory(job, quant->scales, quant->scale_dtype,
                        quant->layout.scale_count);
    else /* is not read */
        cube_job_memory(job, quant->codes, quant->scale_dtype, 0);
    if (quant->global)
        cube_job_memory(job, quant->global, HOB_DTYPE_F32, 1);
    else
        cube_job_absent(job);
}

static void add_blocks(struct cube_job *job, const struct quant *quant)
{
    const struct hob_quant_layout *layout = &quant->layout;

    cube_job_reach(job, layout->count);
    cube_job_i64s(job, layout->sizes, layout->rank);
    cube_job_i64s(job, layout->block, layout->rank);
    for (uint32_t i = 0; i < layout->rank; i++)
        cube_job_i64(job, hob_quant_block_count(layout->sizes[i],
                                                layout->block[i]));
}

static void add_format(struct cube_job *job, const struct quant *quant)
{
    const struct hob_quant_format *format = quant->format;

    cube_job_constant(job, format->bits);
    cube_job_constant(job, format->mantissa);
    cube_job_constant(job, format->bias);
    cube_job_constant(job, format->nan);
    cube_job_constant(job, quant->global != NULL);
}

/* ---- scales ---- */

/* VIEW's elements, row-major, from DATA on. */
static hob_status put(struct cube_device *device, struct hob_call *call,
                      void *data, const struct hob_view *view)
{
    struct hob_view out = *view;
    int64_t stride = 1;

    out.data = data;
    for (uint32_t i = out.rank; i-- > 0;) {
        out.strides[i] = stride;
        stride *= out.shape[i];
    }
    return cube_move(device, call, &out, view);
}

static hob_status launch_check(struct cube_device *device,
                               struct hob_call *call, const struct quant *quant,
                               const struct cube_flag *flag)
{
    const int64_t count = quant->layout.scale_count;
    struct cube_job job;

    cube_job_init(&job, device, call, &check_program);
    add_scales(&job, quant);
    cube_job_memory(&job, flag->data, HOB_DTYPE_U32, 1);
    cube_job_i64(&job, count);
    cube_job_constant(&job, quant->global != NULL);
    return cube_job_run(&job, cube_groups(device, count + 1, CUBE_GROUP_SIZE));
}

/* The float at DATA, of DTYPE. Waits. */
static hob_status read_float(struct cube_device *device, struct hob_call *call,
                             const void *data, uint32_t dtype, double *out)
{
    const uint32_t size = hob_dtype_size(dtype);
    uint32_t bits = 0, exponent;
    uint16_t half;
    float number;
    hob_status st;

    st = device->runtime->download(device, size == 4 ? (void *)&bits : &half,
                                   data, size);
    if (st)
        return cube_fail(device, call, st, NULL);
    if (dtype == HOB_DTYPE_F16) {
        exponent = half >> 10 & 31;
        *out = exponent == 31 ? (half & 0x3ff ? (double)NAN : (double)INFINITY)
               : exponent     ? ldexp(0x400 | (half & 0x3ff), (int)exponent - 25)
                              : ldexp(half & 0x3ff, -24);
        if (half >> 15)
            *out = -*out;
        return HOB_OK;
    }
    if (dtype == HOB_DTYPE_BF16)
        bits = (uint32_t)half << 16;
    memcpy(&number, &bits, sizeof(number));
    *out = (double)number;
    return HOB_OK;
}

/* Fail CALL for what the check has found. */
static hob_status fail_scale(struct cube_device *device, struct hob_call *call,
                             const struct quant *quant, uint32_t bad)
{
    const uint32_t size = hob_dtype_size(quant->scale_dtype);
    const int64_t index = (int64_t)bad - 1;
    double number = 0;
    hob_status st = read_float(
        device, call, bad ? quant->scales + index * size : quant->global,
        bad ? quant->scale_dtype : HOB_DTYPE_F32, &number);

    if (st)
        return st;
    if (!bad)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: global_scale is %g; it must be finite "
                                "and not negative",
                                call->op_name, number);
    return call->host->fail(
        call, HOB_ERR_RANGE,
        "%s: scale %" PRId64 " is %g%s; it must be finite and not negative: "
        "choose scales of a wider dtype, or smaller elements",
        call->op_name, index, number,
        quant->global ? " (times the global scale)" : "");
}

/* Copy the scales that were given into the tensor and begin to look at them. */
static hob_status take_scales(struct cube_device *device, struct hob_call *call,
                              const struct quant *quant, struct cube_flag *flag)
{
    const struct hob_view *global = hob_arg_view(call, 2);
    hob_status st = HOB_OK;

    if (quant->layout.scale_count) /* else only the global one is there */
        st = put(device, call, quant->scales, hob_arg_view(call, 1));
    if (!st && global)
        st = put(device, call, quant->global, global);
    if (!st)
        st = cube_flag_begin(flag, device, call);
    return st;
}

/* ---- quantize, quantized_from ---- */

static void source_init(struct cube_space *source, const struct hob_view *x)
{
    cube_space_init(source, x->rank, x->shape);
    cube_space_add(source, x);
    cube_space_collapse(source);
}

/* As it lies, if that is row-major. */
static void add_source(struct cube_job *job, struct cube_space *source)
{
    if (cube_space_is_dense(source, 0))
        source->rank = 0;
    cube_job_space(job, source);
    cube_job_strides(job, source, 0);
}

static hob_status encode(struct cube_device *device, struct hob_call *call,
                         const struct quant *quant)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const int is_exact = device->limits.has_f64 != 0;
    struct cube_space source;
    struct cube_job job;

    source_init(&source, x);
    cube_job_init(&job, device, call,
                  is_exact ? &exact_encode_program : &encode_program);
    cube_job_memory(&job, quant->codes, HOB_DTYPE_U32, quant->words);
    cube_job_operand(&job, &source, 0);
    add_scales(&job, quant);
    cube_job_i64(&job, quant->layout.count);
    cube_job_i64(&job, quant->words);
    add_source(&job, &source);
    add_blocks(&job, quant);
    cube_job_f64(&job, (double)quant->format->low);
    cube_job_f64(&job, (double)quant->format->high);
    cube_job_constant(&job, (int32_t)source.rank);
    cube_job_constant(&job, (int32_t)quant->layout.rank);
    add_format(&job, quant);
    cube_job_constant(&job, is_exact);
    cube_job_constant(&job, 0);
    cube_job_symbol(&job, is_exact ? "double" : "float");
    return cube_job_run(&job,
                        cube_groups(device, quant->words, CUBE_GROUP_SIZE));
}

static hob_status quantize(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    struct cube_flag flag;
    struct quant quant;
    uint32_t bad;
    hob_status st;

    quant_init(&quant, hob_ret_view(call, 0));
    st = take_scales(device, call, &quant, &flag);
    if (st)
        return st;
    st = launch_check(device, call, &quant, &flag);
    if (!st && quant.words)
        st = encode(device, call, &quant);
    st = cube_flag_end(&flag, device, call, st, &bad);
    return st || bad == CUBE_FLAG_NONE ? st
                                       : fail_scale(device, call, &quant, bad);
}

static hob_status pack(struct cube_device *device, struct hob_call *call,
                       const struct quant *quant, const struct cube_flag *flag)
{
    const struct hob_quant_format *format = quant->format;
    const int is_float = format->mantissa != 0, is_wide = format->bits == 8;
    struct cube_space source;
    struct cube_job job;

    source_init(&source, hob_arg_view(call, 0));
    cube_job_init(&job, device, call, &pack_program);
    cube_job_memory(&job, quant->codes, HOB_DTYPE_U32, quant->words);
    cube_job_operand(&job, &source, 0);
    cube_job_memory(&job, flag->data, HOB_DTYPE_U32, 1);
    cube_job_i64(&job, quant->layout.count);
    cube_job_i64(&job, quant->words);
    add_source(&job, &source);
    cube_job_i64(&job, !is_float ? (int64_t)format->low : is_wide ? -128 : 0);
    cube_job_i64(&job, !is_float ? (int64_t)format->high : is_wide ? 127 : 15);
    cube_job_constant(&job, (int32_t)source.rank);
    cube_job_constant(&job, format->bits);
    cube_job_constant(&job, 1);
    return cube_job_run(&job,
                        cube_groups(device, quant->words, CUBE_GROUP_SIZE));
}

/* Fail CALL for element NUMBER of the codes that were given. */
static hob_status fail_code(struct cube_device *device, struct hob_call *call,
                            const struct quant *quant, uint32_t number)
{
    const struct hob_view *values = hob_arg_view(call, 0);
    int64_t rest = number, offset = 0;
    int8_t code = 0;
    hob_status st;

    for (uint32_t i = values->rank; i-- > 0;) {
        offset += rest % values->shape[i] * values->strides[i];
        rest /= values->shape[i];
    }
    st = device->runtime->download(
        device, &code, (const char *)values->data + offset, sizeof(code));
    if (st)
        return cube_fail(device, call, st, NULL);
    return call->host->fail(call, HOB_ERR_RANGE,
                            "%s: value %" PRIu32 " is %d, which is no code "
                            "of %s",
                            call->op_name, number, code, quant->format->name);
}

static hob_status quantized_from(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    struct cube_flag flag;
    struct quant quant;
    uint32_t bad;
    hob_status st;

    quant_init(&quant, hob_ret_view(call, 0));
    st = take_scales(device, call, &quant, &flag);
    if (st)
        return st;
    st = launch_check(device, call, &quant, &flag);
    st = cube_flag_end(&flag, device, call, st, &bad);
    if (!st && bad != CUBE_FLAG_NONE)
        return fail_scale(device, call, &quant, bad);
    if (st || !quant.words)
        return st;
    st = cube_flag_begin(&flag, device, call);
    if (st)
        return st;
    st = pack(device, call, &quant, &flag);
    st = cube_flag_end(&flag, device, call, st, &bad);
    return st || bad == CUBE_FLAG_NONE ? st
                                       : fail_code(device, call, &quant, bad);
}

/* ---- dequantize, the parts ---- */

static hob_status decode(struct cube_device *device, struct hob_call *call,
                         int is_codes)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    /* In f32 the product is rounded once anyway. */
    const int is_exact = !is_codes && out->dtype != HOB_DTYPE_F32 &&
                         device->limits.has_f64;
    struct quant quant;
    struct cube_job job;

    quant_init(&quant, hob_arg_view(call, 0));
    cube_job_init(&job, device, call,
                  is_exact ? &exact_decode_program : &decode_program);
    cube_job_memory(&job, out->data, out->dtype, quant.layout.count);
    cube_job_memory(&job, quant.codes, HOB_DTYPE_U32, quant.words);
    if (is_codes) {
        cube_job_absent(&job);
        cube_job_absent(&job);
    } else {
        add_scales(&job, &quant);
    }
    cube_job_i64(&job, quant.layout.count);
    cube_job_i64(&job, quant.words);
    add_blocks(&job, &quant);
    cube_job_constant(&job, is_codes);
    cube_job_constant(&job, (int32_t)quant.layout.rank);
    add_format(&job, &quant);
    cube_job_symbol(&job, is_exact ? "double" : "float");
    return cube_job_run(&job,
                        cube_groups(device, quant.words, CUBE_GROUP_SIZE));
}

static hob_status dequantize(void *device, struct hob_call *call)
{
    return decode(device, call, 0);
}

static hob_status quantized_values(void *device, struct hob_call *call)
{
    return decode(device, call, 1);
}

static hob_status quantized_scales(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct hob_view *scales = hob_ret_view(call, 0);
    struct hob_view from = *scales;
    struct quant quant;
    hob_status st = HOB_OK;

    quant_init(&quant, hob_arg_view(call, 0));
    from.data = quant.scales;
    if (quant.layout.scale_count)
        st = put(device, call, scales->data, &from);
    if (!st && quant.global) {
        from = *hob_ret_view(call, 1);
        from.data = quant.global;
        st = put(device, call, hob_ret_view(call, 1)->data, &from);
    }
    return st;
}

/* ---- the table ---- */

enum {
    QUANT = HOB_DTYPE_BIT(HOB_DTYPE_QUANT),
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
        .execute = quantize,
    },
    {
        .op = "dequantize",
        .signature = "(x: Quantized, dtype: dtype = f32) -> dtype",
        .dtypes = quant_mask,
        .dtype_count = 1,
        .execute = dequantize,
    },
    {
        .op = "quantized_values",
        .signature = "(x: Quantized) -> Int",
        .dtypes = quant_mask,
        .dtype_count = 1,
        .execute = quantized_values,
    },
    {
        .op = "quantized_scales",
        .signature = "(x: Quantized) -> (scales: Float, global_scale: Float?)",
        .dtypes = quant_mask,
        .dtype_count = 1,
        .execute = quantized_scales,
    },
    {
        .op = "quantized_from",
        .signature = "(values: Int, scales: Num, global_scale: Any?, value: "
                     "enum(q8s, q8f, q4s, q4f, q2s, q2f, e4m3, e5m2, e2m1) = "
                     "q8s, block: [i64] = [], propagation: enum(inhibit, "
                     "propagate) = inhibit) -> Quantized",
        .dtypes = code_masks,
        .dtype_count = 3,
        .execute = quantized_from,
    },
};

const struct cube_entries cube_quant_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
