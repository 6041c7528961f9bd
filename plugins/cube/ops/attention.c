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

static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    struct attention attention;

    (void)out;
    cube_attention_init(&attention, device, call, NULL, 5);
    /* A cap of 0 is a division by 0, which is the body's to do. */
    return !cube_attention_fits(&attention, WEIGH) || is_thin(&attention) ||
                   (!cube_arg_absent(call, 6) && attention.cap == 0)
               ? HOB_ERR_UNSUPPORTED
               : HOB_OK;
}

static hob_status prepare_backward(void *device, const struct hob_call *call,
                                   struct hob_prepare *out)
{
    struct attention attention;

    (void)out;
    cube_attention_init(&attention, device, call, hob_arg_view(call, 7), 8);
    for (int mode = D_QUERY; mode <= D_VALUE; mode++)
        if (!cube_attention_fits(&attention, (enum attention_mode)mode))
            return HOB_ERR_UNSUPPORTED;
    return is_thin(&attention) || !cube_is_contiguous(hob_arg_view(call, 5)) ||
                   !cube_is_contiguous(hob_arg_view(call, 6)) ||
                   (!cube_arg_absent(call, 9) && attention.cap == 0)
               ? HOB_ERR_UNSUPPORTED
               : HOB_OK;
}

static hob_status attention(void *device, struct hob_call *call)
{
    struct attention attention;

    cube_attention_init(&attention, device, call, NULL, 5);
    attention.call = call;
    attention.lse = hob_ret_view(call, 1);
    return cube_attention_run(&attention, WEIGH, hob_ret_view(call, 0));
}

static hob_status attention_backward(void *device, struct hob_call *call)
{
    struct attention attention;
    hob_status st;

    cube_attention_init(&attention, device, call, hob_arg_view(call, 7), 8);
    attention.call = call;
    attention.lse = hob_arg_view(call, 5);
    attention.delta = hob_arg_view(call, 6);
    if (cube_arg_i64(call, 11))
        attention.slopes = hob_ret_view(call, 3);
    st = cube_attention_run(&attention, D_QUERY, hob_ret_view(call, 0));
    if (!st)
        st = cube_attention_run(&attention, D_KEY, hob_ret_view(call, 1));
    return st ? st
              : cube_attention_run(&attention, D_VALUE, hob_ret_view(call, 2));
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
        .execute = attention_backward,
    },
};

const struct cube_entries cube_attention_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
