/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - attention and attention_backward, whose memory does not grow
 * with the square of the sequence. f64 is left to the bodies: nobody trains in
 * it, and its registers would be twice as many.
 */
#include "attention.h"

#include "../splits.h"

/* A few queries of many keys are one long walk for each group: where that
 * leaves most of the device without work, products that split their sums are
 * faster, and the scores are few. */
enum { QUERIES_FEW = 8, KEYS_MANY = 1024 };

static int is_thin(const struct attention *attention)
{
    return attention->queries <= QUERIES_FEW && attention->keys >= KEYS_MANY &&
           attention->batch.count * 2 < cube_processors(attention->device);
}

/* A cap of 0 is a division by 0, which is the body's to do. */
static int takes(struct cube_device *device, const struct hob_call *call,
                 int is_backward)
{
    const struct attention_options options =
        cube_attention_options(call, is_backward);
    const struct hob_view *views[OPERANDS];
    struct attention attention;

    cube_attention_operands(call, is_backward, views);
    cube_attention_init(&attention, device, NULL, views, &options);
    return cube_attention_fits(&attention, is_backward ? SLOPES : WEIGH) &&
           !is_thin(&attention) &&
           (options.cap != 0 || cube_arg_absent(call, is_backward ? 9 : 6));
}

static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    (void)out;
    return takes(device, call, 0) ? HOB_OK : HOB_ERR_UNSUPPORTED;
}

static hob_status prepare_backward(void *device, const struct hob_call *call,
                                   struct hob_prepare *out)
{
    (void)out;
    return cube_is_contiguous(hob_arg_view(call, 5)) &&
                   cube_is_contiguous(hob_arg_view(call, 6)) &&
                   takes(device, call, 1)
               ? HOB_OK
               : HOB_ERR_UNSUPPORTED;
}

static hob_status attention(void *device, struct hob_call *call)
{
    const struct attention_options options = cube_attention_options(call, 0);
    const struct hob_view *views[OPERANDS];
    struct attention attention;

    cube_attention_operands(call, 0, views);
    cube_attention_init(&attention, device, call, views, &options);
    attention.lse = hob_ret_view(call, 1);
    return cube_attention_run(&attention, WEIGH, hob_ret_view(call, 0));
}

#define SINGLE HOB_DTYPE_BIT(HOB_DTYPE_F32)
#define REAL                                                                   \
    (SINGLE | HOB_DTYPE_BIT(HOB_DTYPE_F16) | HOB_DTYPE_BIT(HOB_DTYPE_BF16))

static const uint32_t masks[] = {REAL, REAL, REAL, HOB_MASK_BOOL, REAL};

/* f16 and bf16 could not hold lse. */
static const uint32_t backward_masks[] = {
    REAL, REAL, REAL, HOB_MASK_BOOL, REAL, SINGLE, SINGLE, REAL};

#undef REAL
#undef SINGLE

static const uint32_t delta_masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "attention",
        .signature = "(query: Float, key: Float, value: Float, mask: Bool?, "
                     "bias: Float?, scale: f64?, softcap: f64?, "
                     "causal: bool = false) -> (query, _lse: Float)",
        .dtypes = masks,
        .dtype_count = 5,
        .prepare = prepare,
        .execute = attention,
    },
    {
        .op = "attention_backward",
        .signature = "(query: Float, key: Float, value: Float, mask: Bool?, "
                     "bias: Float?, lse: Num, delta: Num, grad: Float, "
                     "scale: f64?, softcap: f64?, causal: bool = false, "
                     "bias_grad: bool = false) -> (d_query: query, "
                     "d_key: query, d_value: query, d_bias: query?)",
        .dtypes = backward_masks,
        .dtype_count = 8,
        .prepare = prepare_backward,
        .execute = cube_attention_backward,
    },
    {
        .op = "attention_delta",
        .signature = "(output: Float, grad: Float) -> (delta: output)",
        .dtypes = delta_masks,
        .dtype_count = 2,
        .execute = cube_attention_delta,
    },
};

const struct cube_entries cube_attention_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
