/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.c - scales from the elements themselves.
 */
#include "bodies.h"
#include "util.h"

#include <hob/ext/quant.h>

#include <math.h>

/* X of SHAPE with the maxima or sums of the blocks along AXIS, BLOCK elements
 * each; SHAPE follows. What is filled up counts as 0. */
static hob_tensor *along(hob_scope *scope, hob_tensor *x, int is_sum,
                         int64_t *shape, uint32_t rank, uint32_t axis,
                         int64_t block)
{
    const int64_t blocks = hob_quant_block_count(shape[axis], block);
    const int64_t fill = blocks * block - shape[axis];
    int64_t parts[] = {1, blocks, block, 1};
    int64_t padding[] = {0, 0, 0, fill};

    for (uint32_t i = 0; i < rank; i++)
        parts[i < axis ? 0 : 3] *= i == axis ? 1 : shape[i];
    shape[axis] = blocks;
    if (fill) {
        const int64_t flat[] = {parts[0], blocks * block - fill, parts[3]};

        x = hob_pad(scope, hob_reshape(scope, x, flat, 3), padding, 4,
                    HOB_PAD_MODE_CONSTANT, hob_none());
    }
    x = hob_reshape(scope, x, parts, 4);
    x = is_sum ? hob_sum_dim(scope, x, 2) : hob_max_dim(scope, x, 2);
    return hob_reshape(scope, x, shape, rank);
}

static hob_tensor *by_block(hob_scope *scope, hob_tensor *x, int is_sum,
                            const struct hob_quant_layout *layout)
{
    int64_t shape[HOB_MAX_RANK];
    uint32_t rank = layout->rank;

    memcpy(shape, layout->sizes, sizeof(shape));
    x = hob_reshape(scope, x, shape, rank);
    for (uint32_t i = rank; i-- > 0;)
        if (layout->block[i] > 1)
            x = along(scope, x, is_sum, shape, rank, i, layout->block[i]);
    return x;
}

/* The greatest magnitude of each block, or the mean of its magnitudes. */
static hob_tensor *of_blocks(hob_scope *scope, hob_tensor *x, int is_mean,
                             const struct hob_quant_layout *layout)
{
    hob_tensor *ones;

    if (!is_mean)
        return by_block(scope, x, 0, layout);
    ones = hob__part_full(scope, x, layout->sizes, layout->rank, hob_f64(1));
    return hob_div(scope, by_block(scope, x, 1, layout),
                   by_block(scope, ones, 1, layout));
}

hob_tensor *hob__body_matmul_quantized(hob_scope *scope, hob_tensor *x,
                                       hob_tensor *weight, int transpose)
{
    weight = hob_dequantize(scope, weight, hob_tensor_dtype(x));
    if (transpose)
        weight = hob_swap_dims(scope, weight, 0, 1);
    return hob_linear(scope, x, weight, NULL);
}

/* SCALES relative to the greatest of them; a block of zeros keeps 0. */
static hob_tensor *relative(hob_scope *scope, hob_tensor *scales,
                            hob_tensor *global)
{
    hob_tensor *is_zero = hob_equal_scalar(scope, scales, hob_i64(0));

    return hob_mask_fill(scope, hob_div(scope, scales, global), is_zero,
                         hob_i64(0));
}

hob_tensor *hob__body_quantize_dynamic(
    hob_scope *scope, hob_tensor *x, enum hob_quantize_dynamic_value value,
    const int64_t *block, uint32_t block_count, hob_dtype scale_dtype,
    int global_scale, enum hob_quantize_dynamic_propagation propagation,
    enum hob_quantize_dynamic_calibration calibration)
{
    const struct hob_quant_format *format =
        hob_quant_format_of((uint32_t)value + 1);
    int is_mean = calibration == HOB_QUANTIZE_DYNAMIC_CALIBRATION_ABSMEAN;
    struct hob_quant_layout layout;
    int64_t shape[HOB_MAX_RANK];
    uint32_t rank = (uint32_t)hob_tensor_rank(x), scheme, blocks;
    hob_tensor *wide = hob__part_up(scope, x);
    hob_tensor *global = NULL;
    hob_tensor *scales;
    hob_tensor *odd;

    (void)hob_quant_blocks(
        block, rank ? hob_tensor_shape(x) + rank - block_count : NULL,
        block_count, &blocks); /* as inferred */
    scheme =
        hob_quant_scheme((uint32_t)value + 1, (uint32_t)scale_dtype, 0, blocks);
    hob_quant_layout_of(scheme, rank, hob_tensor_shape(x), &layout);
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = hob_quant_block_count(
            hob_tensor_shape(x)[i],
            hob_quant_block_in(scheme, rank, i, hob_tensor_shape(x)[i]));
    rank = hob_quant_is_blocked(scheme) ? rank : 0;
    if (!layout.count) {
        scales = hob_cast(scope,
                          hob__part_full(scope, wide, shape, rank, hob_i64(0)),
                          HOB_DTYPE_F32);
    } else {
        wide = hob_abs(scope, wide);
        odd = hob_logical_not(scope,
                              hob_less_scalar(scope, wide, hob_f64(INFINITY)));
        wide = hob_mask_fill(scope, wide, odd, hob_i64(0));
        if (hob_quant_is_blocked(scheme))
            scales = of_blocks(scope, wide, is_mean, &layout);
        else
            scales = is_mean ? hob_mean(scope, wide) : hob_max(scope, wide);
        scales = hob_div_scalar(scope, scales,
                                hob_f64((format->high - format->low) / 2.0));
        scales = hob_reshape(scope, scales, shape, rank);
        scales = hob_cast(scope, scales, HOB_DTYPE_F32);
    }
    if (global_scale) {
        global = layout.scale_count
                     ? hob_max(scope, scales)
                     : hob__part_full(scope, scales, NULL, 0, hob_i64(0));
        scales = relative(scope, scales, global);
    }
    return hob_quantize(scope, x, hob_cast(scope, scales, scale_dtype), global,
                        (enum hob_quantize_value)value, block, block_count,
                        propagation ==
                                HOB_QUANTIZE_DYNAMIC_PROPAGATION_PROPAGATE
                            ? HOB_QUANTIZE_PROPAGATION_PROPAGATE
                            : HOB_QUANTIZE_PROPAGATION_INHIBIT);
}
