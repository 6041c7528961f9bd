/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant_scales.c - scales from the greatest magnitudes, in one walk over the
 * elements where the body of quantize_dynamic takes several. Equal to it.
 */
#include "quant.h"

#include "../convert.h"

#include <math.h>

/* Elements that give one maximum: a block of the scheme, or where one scale
 * covers all FLEX_BLOCK of them. */
struct scan {
    const struct flex_quant *quant;
    struct flex_loop loop;
    flex_cast_fn cast; /* to f64 */
    int64_t block;     /* 0: one scale */
    double *most;      /* one a group */
};

static void group_range(const struct scan *scan, int64_t group, int64_t *first,
                        int64_t *count)
{
    const struct hob_quant_layout *layout = &scan->quant->layout;
    int64_t column = group * FLEX_BLOCK;
    int64_t end = layout->count;
    int64_t length = FLEX_BLOCK;

    *first = 0;
    if (scan->block) {
        *first = group / layout->row_blocks * layout->row;
        column = group % layout->row_blocks * scan->block;
        end = layout->row;
        length = scan->block;
    }
    *count = end - column < length ? end - column : length;
    *first += column;
}

/* The greatest finite magnitude of X, or MOST. In lanes, for vectors. */
static double greatest(const double *x, int64_t n, double most)
{
    enum { LANES = 8 };
    double lanes[LANES] = {0};
    int64_t i = 0;

    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) {
            double magnitude = fabs(x[i + k]);

            magnitude = magnitude < INFINITY ? magnitude : 0;
            lanes[k] = magnitude > lanes[k] ? magnitude : lanes[k];
        }
    for (; i < n; i++)
        if (fabs(x[i]) > most && fabs(x[i]) < INFINITY)
            most = fabs(x[i]);
    for (int k = 0; k < LANES; k++)
        most = fmax(most, lanes[k]);
    return most;
}

static void scan_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct scan *scan = context;
    _Alignas(FLEX_ALIGN) unsigned char raw[FLEX_BLOCK * 8];
    _Alignas(FLEX_ALIGN) double x[FLEX_BLOCK];

    (void)worker;
    for (int64_t group = first; group < last; group++) {
        double most = 0;
        int64_t at, left;

        group_range(scan, group, &at, &left);
        while (left > 0) {
            int64_t n = left < FLEX_BLOCK ? left : FLEX_BLOCK;

            scan->cast(x, flex_loop_fetch(&scan->loop, at, n, raw), n);
            most = greatest(x, n, most);
            at += n;
            left -= n;
        }
        scan->most[group] = most;
    }
}

/* MOST by half the width of the range, rounded as the body rounds. */
static float scale_of(const struct flex_quant *quant, uint32_t dtype,
                      double most)
{
    float half = (quant->format->high - quant->format->low) / 2;

    return dtype == HOB_DTYPE_F64 ? (float)(most / (double)half)
                                  : (float)most / half;
}

static void store_scale(uint32_t dtype, char *scales, int64_t index,
                        float scale)
{
    uint16_t bits;

    if (dtype == HOB_DTYPE_F32) {
        memcpy(scales + index * 4, &scale, 4);
        return;
    }
    bits = dtype == HOB_DTYPE_F16 ? flex_f16_of_f32(scale)
                                  : flex_bf16_of_f32(scale);
    memcpy(scales + index * 2, &bits, 2);
}

/* Make scales of the COUNT maxima and put them into the tensor. */
static void put_scales(const struct flex_quant *quant, uint32_t dtype,
                       const double *most, int64_t count)
{
    uint32_t scale_dtype = hob_quant_scale_dtype(quant->scheme);
    float global = 1;
    float scale;

    if (quant->global) {
        global = 0;
        for (int64_t i = 0; i < count; i++) {
            scale = scale_of(quant, dtype, most[i]);
            global = scale > global ? scale : global;
        }
        memcpy(quant->global, &global, 4);
    }
    for (int64_t i = 0; i < count; i++) {
        scale = scale_of(quant, dtype, most[i]);
        if (quant->global)
            scale = scale == 0 ? 0 : scale / global;
        store_scale(scale_dtype, quant->scales, i, scale);
    }
}

static int64_t groups_of(const struct hob_quant_layout *layout, int64_t block)
{
    return block ? layout->scale_count
                 : (layout->count + FLEX_BLOCK - 1) / FLEX_BLOCK;
}

hob_status flex_quantize_dynamic_prepare(void *opened,
                                         const struct hob_call *call,
                                         struct hob_prepare *out)
{
    const struct hob_meta *meta = call->metas;
    struct hob_quant_layout layout;

    (void)opened;
    if (call->args[6].u.i64) /* means: the body */
        return HOB_ERR_UNSUPPORTED;
    hob_quant_layout_of(meta->scheme, meta->rank, meta->shape, &layout);
    /* At least one, as a tensor without elements may have a scale. */
    out->workspace_bytes =
        ((uint64_t)groups_of(&layout, hob_quant_block(meta->scheme)) + 1) *
        sizeof(double);
    return HOB_OK;
}

hob_status flex_quantize_dynamic(void *opened, struct hob_call *call)
{
    struct flex_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    struct flex_quant quant;
    struct scan scan;
    int64_t groups, length;
    hob_status st;

    flex_quant_init(&quant, hob_ret_view(call, 0));
    scan.quant = &quant;
    scan.cast = device->kernels->cast[HOB_DTYPE_F64][x->dtype];
    scan.block = hob_quant_block(quant.scheme);
    scan.most = call->workspace;
    scan.most[0] = 0;
    flex_loop_init(&scan.loop, x);
    groups = groups_of(&quant.layout, scan.block);
    length = scan.block && scan.block < FLEX_BLOCK ? scan.block : FLEX_BLOCK;
    flex_parallel(device, groups, FLEX_GRAIN_DEAR / length, scan_piece, &scan);
    if (!scan.block)
        for (int64_t i = 1; i < groups; i++)
            scan.most[0] = fmax(scan.most[0], scan.most[i]);
    put_scales(&quant, x->dtype, scan.most, quant.layout.scale_count);
    st = flex_quant_check(call, &quant);
    if (!st)
        flex_quant_encode(device, &quant, x);
    return st;
}
