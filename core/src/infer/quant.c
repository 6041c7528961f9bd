/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.c - quantized tensors: formats, scales, blocks.
 */
#include "infer.h"
#include "util.h"

#include <hob/ext/quant.h>

#include <inttypes.h>

/* The metadata of a tensor of X's shape with a scheme, checked. */
static hob_status describe(struct hob_call *call, const struct hob_view *x,
                           uint32_t scheme, struct hob_meta *out,
                           struct hob_quant_layout *layout)
{
    hob__meta_copy_shape(out, x);
    out->dtype = HOB_DTYPE_QUANT;
    out->scheme = scheme;
    if (hob_quant_layout_of(scheme, out->rank, out->shape, layout))
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: %s has more elements than can be addressed",
                            call->op_name, hob__view_text(x).text);
}

/* The blocks of X's scheme from attribute INDEX: sizes along the last
 * dimensions. */
static hob_status read_block(struct hob_call *call, uint32_t index,
                             const struct hob_view *x, uint32_t *out)
{
    uint32_t count;
    const int64_t *block = hob__attr_list(call, index, &count);

    if (count > (x->rank ? x->rank : 1)) /* rank 0: a row of one element */
        return call->host->fail(
            call, HOB_ERR_SHAPE, "%s: block %s has more dimensions than %s",
            call->op_name, hob__list_text(block, count).text,
            hob__view_text(x).text);
    if (hob_quant_blocks(block, x->rank ? x->shape + x->rank - count : NULL,
                         count, out))
        return HOB_OK;
    return call->host->fail(
        call, HOB_ERR_RANGE,
        "%s: block is %s; it must be the size of a block along the last "
        "dimension, 1..%d, or sizes along the last dimensions, at most %d: "
        "powers of 2 up to %d, or 0 for all of one. Without any, one scale "
        "covers the tensor",
        call->op_name, hob__list_text(block, count).text, HOB_QUANT_BLOCK_MAX,
        HOB_QUANT_BLOCK_DIMS, HOB_QUANT_BLOCK_POWER_MAX);
}

static hob_status check_scale_dtype(struct hob_call *call, uint32_t dtype)
{
    if (dtype == HOB_DTYPE_F32 || dtype == HOB_DTYPE_F16 ||
        dtype == HOB_DTYPE_BF16)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_DTYPE,
                            "%s: scales cannot be %s; they are f32, f16 or "
                            "bf16",
                            call->op_name, hob_dtype_name(dtype));
}

/* The shape of the scales of META. */
static void scales_shape(const struct hob_meta *meta, uint32_t *rank,
                         int64_t *shape)
{
    *rank = hob_quant_is_blocked(meta->scheme) ? meta->rank : 0;
    for (uint32_t i = 0; i < *rank; i++)
        shape[i] = hob_quant_block_count(
            meta->shape[i],
            hob_quant_block_in(meta->scheme, meta->rank, i, meta->shape[i]));
}

/* SCALES must be one for the tensor (rank 0, or one element), or one a block.
 */
static hob_status check_scales(struct hob_call *call,
                               const struct hob_meta *meta,
                               const struct hob_view *scales)
{
    struct hob_meta want = *meta;
    uint32_t rank;
    int same;

    scales_shape(meta, &rank, want.shape);
    same = rank == scales->rank;
    for (uint32_t i = 0; i < rank && same; i++)
        same = want.shape[i] == scales->shape[i];
    if (same || (!rank && scales->rank == 1 && scales->shape[0] == 1))
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "%s: scales are %s; for %s they must have the "
                            "shape %s",
                            call->op_name, hob__view_text(scales).text,
                            hob__infer_meta_text(meta).text,
                            hob__list_text(want.shape, rank).text);
}

/* (x or values, scales, global_scale, value, block, propagation) */
hob_status hob__infer_quantize(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *scales = hob_arg_view(call, 1);
    const struct hob_view *global = hob_arg_view(call, 2);
    struct hob_quant_layout layout;
    uint32_t flags = global ? HOB_QUANT_GLOBAL : 0;
    uint32_t blocks;
    hob_status st = check_scale_dtype(call, scales->dtype);

    if (!st && (HOB_DTYPE_BIT(x->dtype) & HOB_MASK_INT) &&
        x->dtype != HOB_DTYPE_I8)
        st = call->host->fail(call, HOB_ERR_DTYPE,
                              "%s: values are %s; codes are i8: use hob_cast()",
                              call->op_name, hob__view_text(x).text);
    if (!st && global &&
        (global->dtype != HOB_DTYPE_F32 || hob_view_count(global) != 1))
        st = call->host->fail(call, HOB_ERR_SHAPE,
                              "%s: global_scale is %s; it must be one f32",
                              call->op_name, hob__view_text(global).text);
    if (!st)
        st = read_block(call, 4, x, &blocks);
    if (st)
        return st;
    if (call->args[5].u.i64)
        flags |= HOB_QUANT_PROPAGATE;
    st = describe(call, x,
                  hob_quant_scheme((uint32_t)call->args[3].u.i64 + 1,
                                   scales->dtype, flags, blocks),
                  out, &layout);
    return st ? st : check_scales(call, out, scales);
}

/* (x, value, block, scale_dtype, global_scale, propagation, calibration) */
hob_status hob__infer_quantize_dynamic(struct hob_call *call,
                                       struct hob_meta *out)
{
    uint32_t dtype = (uint32_t)call->args[3].u.i64;
    uint32_t flags = (call->args[4].u.i64 ? HOB_QUANT_GLOBAL : 0) |
                     (call->args[5].u.i64 ? HOB_QUANT_PROPAGATE : 0);
    struct hob_quant_layout layout;
    uint32_t blocks;
    hob_status st = check_scale_dtype(call, dtype);

    if (!st)
        st = read_block(call, 2, hob_arg_view(call, 0), &blocks);
    if (st)
        return st;
    return describe(call, hob_arg_view(call, 0),
                    hob_quant_scheme((uint32_t)call->args[1].u.i64 + 1, dtype,
                                     flags, blocks),
                    out, &layout);
}

/* (x, weight, transpose) */
hob_status hob__infer_matmul_quantized(struct hob_call *call,
                                       struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 1);
    const int turned = call->args[2].u.i64 != 0;
    hob_status st = hob__infer_rank(call, 1, "weight", 2, "[in, out]");

    if (st)
        return st;
    if (x->rank < 1 || x->shape[x->rank - 1] != weight->shape[turned])
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: inner sizes differ: x is %s, weight is %s; x's last must "
            "equal weight's %s",
            call->op_name, hob__view_text(x).text, hob__view_text(weight).text,
            turned ? "second (with transpose, weight is [out, in])"
                   : "first (weight is [in, out])");
    hob__meta_copy_shape(out, x);
    out->shape[x->rank - 1] = weight->shape[!turned];
    return hob__infer_check(call, out);
}

hob_status hob__infer_dequantize(struct hob_call *call, struct hob_meta *out)
{
    hob__meta_copy_shape(out, hob_arg_view(call, 0));
    if (!(HOB_DTYPE_BIT(out->dtype) & HOB_MASK_FLOAT))
        return call->host->fail(call, HOB_ERR_DTYPE,
                                "%s: dtype is %s; it must be a float: cast the "
                                "result",
                                call->op_name, hob_dtype_name(out->dtype));
    return hob__infer_check(call, out);
}

hob_status hob__infer_quantized_values(struct hob_call *call,
                                       struct hob_meta *out)
{
    hob__meta_copy_shape(out, hob_arg_view(call, 0));
    out->dtype = HOB_DTYPE_I8;
    return hob__infer_check(call, out);
}

hob_status hob__infer_quantized_scales(struct hob_call *call,
                                       struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    struct hob_quant_layout layout;
    struct hob_meta meta = {0};
    uint32_t rank = 0;
    hob_status st = describe(call, x, x->scheme, &meta, &layout);

    if (st)
        return st;
    scales_shape(&meta, &rank, out[0].shape);
    out[0].rank = (uint8_t)rank;
    out[0].dtype = (uint8_t)hob_quant_scale_dtype(x->scheme);
    if (x->scheme & HOB_QUANT_GLOBAL)
        out[1].dtype = HOB_DTYPE_F32;
    return hob__infer_check(call, &out[0]);
}
