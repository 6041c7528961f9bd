/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant.c - scales from the elements themselves.
 */
#include "bodies.h"
#include "util.h"

#include <hob/ext/quant.h>

#include <math.h>

/* ROWS x LENGTH as ROWS x BLOCKS x BLOCK, filled up with zeros. */
static hob_tensor *cut(hob_scope *scope, hob_tensor *x, int64_t rows,
                       int64_t length, int64_t block, int64_t blocks)
{
    const int64_t flat[] = {rows, length};
    const int64_t shape[] = {rows, blocks, block};
    const int64_t fill[] = {0, blocks * block - length};

    x = hob_reshape(scope, x, flat, 2);
    if (fill[1])
        x = hob_pad(scope, x, fill, 2, HOB_PAD_MODE_CONSTANT, hob_none());
    return hob_reshape(scope, x, shape, 3);
}

/* The greatest magnitude of each block, or the mean of its magnitudes. */
static hob_tensor *by_block(hob_scope *scope, hob_tensor *x, int is_mean,
                            const struct hob_quant_layout *layout,
                            int64_t block)
{
    int64_t rows = layout->count / layout->row;
    hob_tensor *parts =
        cut(scope, x, rows, layout->row, block, layout->row_blocks);
    hob_tensor *sizes;

    if (!is_mean)
        return hob_max_dim(scope, parts, 2);
    sizes = hob__part_full(scope, x, &layout->row, 1, hob_f64(1));
    sizes = cut(scope, sizes, 1, layout->row, block, layout->row_blocks);
    return hob_div(scope, hob_sum_dim(scope, parts, 2),
                   hob_sum_dim(scope, sizes, 2));
}

/* SCALES relative to the greatest of them; a block of zeros keeps 0. */
static hob_tensor *relative(hob_scope *scope, hob_tensor *scales,
                            hob_tensor *global)
{
    hob_tensor *is_zero = hob_equal_scalar(scope, scales, hob_i64(0));

    return hob_mask_fill(scope, hob_div(scope, scales, global), is_zero,
                         hob_i64(0));
}

hob_tensor *
hob__body_quantize_dynamic(hob_scope *scope, hob_tensor *x,
                           enum hob_quantize_dynamic_value value, int64_t block,
                           hob_dtype scale_dtype, int global_scale,
                           enum hob_quantize_dynamic_propagation propagation,
                           enum hob_quantize_dynamic_calibration calibration)
{
    const struct hob_quant_format *format =
        hob_quant_format_of((uint32_t)value + 1);
    int is_mean = calibration == HOB_QUANTIZE_DYNAMIC_CALIBRATION_ABSMEAN;
    struct hob_quant_layout layout;
    int64_t shape[HOB_MAX_RANK];
    uint32_t rank = block ? (uint32_t)hob_tensor_rank(x) : 0;
    hob_tensor *wide = hob__part_up(scope, x);
    hob_tensor *global = NULL;
    hob_tensor *scales;
    hob_tensor *odd;

    hob_quant_layout_of(
        hob_quant_scheme((uint32_t)value + 1, (uint32_t)scale_dtype, 0,
                         (uint32_t)block),
        (uint32_t)hob_tensor_rank(x), hob_tensor_shape(x), &layout);
    for (uint32_t i = 0; i < rank; i++)
        shape[i] = i + 1 < rank ? hob_tensor_shape(x)[i] : layout.row_blocks;
    if (!layout.count) {
        scales = hob_cast(scope,
                          hob__part_full(scope, wide, shape, rank, hob_i64(0)),
                          HOB_DTYPE_F32);
    } else {
        wide = hob_abs(scope, wide);
        odd = hob_logical_not(scope,
                              hob_less_scalar(scope, wide, hob_f64(INFINITY)));
        wide = hob_mask_fill(scope, wide, odd, hob_i64(0));
        if (block)
            scales = by_block(scope, wide, is_mean, &layout, block);
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
                        (enum hob_quantize_value)value, block,
                        propagation ==
                                HOB_QUANTIZE_DYNAMIC_PROPAGATION_PROPAGATE
                            ? HOB_QUANTIZE_PROPAGATION_PROPAGATE
                            : HOB_QUANTIZE_PROPAGATION_INHIBIT);
}
