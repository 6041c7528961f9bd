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

static hob_status read_block(struct hob_call *call, uint32_t index,
                             uint32_t *out)
{
    int64_t block = hob__attr_i64(call, index);

    *out = (uint32_t)block;
    if (block >= 0 && block <= HOB_QUANT_BLOCK_MAX)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_RANGE,
                            "%s: block is %" PRId64
                            "; it must be the elements of a block, 1..%d, or "
                            "0 for one scale for the tensor",
                            call->op_name, block, HOB_QUANT_BLOCK_MAX);
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
static void scales_shape(const struct hob_meta *meta,
                         const struct hob_quant_layout *layout, uint32_t *rank,
                         int64_t *shape)
{
    *rank = 0;
    if (!hob_quant_block(meta->scheme))
        return;
    for (uint32_t i = 0; i < meta->rank; i++)
        shape[(*rank)++] =
            i + 1 < meta->rank ? meta->shape[i] : layout->row_blocks;
}

/* SCALES must be one for the tensor (rank 0, or one element), or one a block.
 */
static hob_status check_scales(struct hob_call *call,
                               const struct hob_meta *meta,
                               const struct hob_quant_layout *layout,
                               const struct hob_view *scales)
{
    struct hob_meta want = *meta;
    uint32_t rank;
    int same;

    scales_shape(meta, layout, &rank, want.shape);
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
    uint32_t block;
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
        st = read_block(call, 4, &block);
    if (st)
        return st;
    if (call->args[5].u.i64)
        flags |= HOB_QUANT_PROPAGATE;
    st = describe(call, x,
                  hob_quant_scheme((uint32_t)call->args[3].u.i64 + 1,
                                   scales->dtype, flags, block),
                  out, &layout);
    return st ? st : check_scales(call, out, &layout, scales);
}

/* (x, value, block, scale_dtype, global_scale, propagation, calibration) */
hob_status hob__infer_quantize_dynamic(struct hob_call *call,
                                       struct hob_meta *out)
{
    uint32_t dtype = (uint32_t)call->args[3].u.i64;
    uint32_t flags = (call->args[4].u.i64 ? HOB_QUANT_GLOBAL : 0) |
                     (call->args[5].u.i64 ? HOB_QUANT_PROPAGATE : 0);
    struct hob_quant_layout layout;
    uint32_t block;
    hob_status st = check_scale_dtype(call, dtype);

    if (!st)
        st = read_block(call, 2, &block);
    if (st)
        return st;
    return describe(call, hob_arg_view(call, 0),
                    hob_quant_scheme((uint32_t)call->args[1].u.i64 + 1, dtype,
                                     flags, block),
                    out, &layout);
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
    scales_shape(&meta, &layout, &rank, out[0].shape);
    out[0].rank = (uint8_t)rank;
    out[0].dtype = (uint8_t)hob_quant_scale_dtype(x->scheme);
    if (x->scheme & HOB_QUANT_GLOBAL)
        out[1].dtype = HOB_DTYPE_F32;
    return hob__infer_check(call, &out[0]);
}
