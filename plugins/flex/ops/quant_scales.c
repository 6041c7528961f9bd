/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant_scales.c - scales from the greatest magnitudes, in one walk over the
 * elements where the body of quantize_dynamic takes several. Equal to it.
 */
#include "quant.h"

#include "../convert.h"

#include <math.h>
#include <string.h>

/*
 * A piece of the walk is some rows, all that share blocks, by some columns,
 * whole blocks of them: no other piece has its scales. Where one scale covers
 * all, a piece is FLEX_BLOCK elements and has a maximum of its own.
 */
struct scan {
    const struct flex_quant *quant;
    struct flex_loop loop;
    flex_cast_fn cast; /* to f64 */
    int64_t row;       /* elements */
    int64_t rows;      /* of a piece, at most */
    int64_t columns;   /* of a piece, at most */
    int64_t tiles;     /* pieces side by side */
    int64_t pieces;
    int is_single;
    double *most; /* one a scale, or a piece */
};

static void scan_init(struct scan *scan, const struct flex_quant *quant)
{
    const struct hob_quant_layout *layout = &quant->layout;
    const uint32_t last = layout->rank - 1;
    const int64_t block = layout->block[last];
    int64_t rows = 1;

    scan->quant = quant;
    scan->row = layout->sizes[last];
    scan->is_single = !last && block == scan->row;
    scan->columns = block < FLEX_BLOCK && block && !scan->is_single
                        ? FLEX_BLOCK / block * block
                        : block;
    if (scan->is_single)
        scan->columns = FLEX_BLOCK;
    scan->rows = last ? layout->block[0] : 1;
    for (uint32_t i = 0; i < last; i++) {
        rows *= layout->sizes[i];
        scan->rows *= i ? layout->sizes[i] : 1;
    }
    scan->tiles = hob_quant_block_count(scan->row, scan->columns);
    scan->pieces = hob_quant_block_count(rows, scan->rows) * scan->tiles;
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

/* N elements of a row, FIRST in all. */
static void scan_row(const struct scan *scan, const double *x, int64_t first,
                     int64_t n)
{
    const struct hob_quant_layout *layout = &scan->quant->layout;
    const int64_t block = layout->block[layout->rank - 1];
    int64_t length;
    double *most = scan->most + hob_quant_scale_at(layout, first, &length);

    if (block == 1) {
        for (int64_t i = 0; i < n; i++) {
            double magnitude = fabs(x[i]);

            magnitude = magnitude < INFINITY ? magnitude : 0;
            most[i] = magnitude > most[i] ? magnitude : most[i];
        }
        return;
    }
    for (int64_t i = 0; i < n; i += length, length = block) {
        length = length < n - i ? length : n - i;
        *most = greatest(x + i, length, *most);
        most++;
    }
}

static void scan_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct scan *scan = context;
    const int64_t count = scan->quant->layout.count;
    _Alignas(FLEX_ALIGN) unsigned char raw[FLEX_BLOCK * 8];
    _Alignas(FLEX_ALIGN) double x[FLEX_BLOCK];

    (void)worker;
    for (int64_t piece = first; piece < last; piece++) {
        const int64_t row = piece / scan->tiles * scan->rows;
        const int64_t column = piece % scan->tiles * scan->columns;
        const int64_t room = scan->row - column;
        const int64_t width = room < scan->columns ? room : scan->columns;

        for (int64_t i = row; i < row + scan->rows; i++)
            for (int64_t c = column; c < column + width; c += FLEX_BLOCK) {
                const int64_t left = column + width - c;
                const int64_t n = left < FLEX_BLOCK ? left : FLEX_BLOCK;
                const int64_t at = i * scan->row + c;

                if (at >= count) /* the last rows may be fewer */
                    break;
                scan->cast(x, flex_loop_fetch(&scan->loop, at, n, raw), n);
                if (scan->is_single)
                    scan->most[piece] = greatest(x, n, 0);
                else
                    scan_row(scan, x, at, n);
            }
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

static int64_t maxima_of(const struct scan *scan)
{
    return scan->is_single ? scan->pieces : scan->quant->layout.scale_count;
}

hob_status flex_quantize_dynamic_prepare(void *opened,
                                         const struct hob_call *call,
                                         struct hob_prepare *out)
{
    const struct hob_meta *meta = call->metas;
    struct flex_quant quant = {.scheme = meta->scheme};
    struct scan scan;

    (void)opened;
    if (call->args[6].u.i64) /* means: the body */
        return HOB_ERR_UNSUPPORTED;
    hob_quant_layout_of(meta->scheme, meta->rank, meta->shape, &quant.layout);
    scan_init(&scan, &quant);
    /* At least one, as a tensor without elements may have a scale. */
    out->workspace_bytes = ((uint64_t)maxima_of(&scan) + 1) * sizeof(double);
    return HOB_OK;
}

hob_status flex_quantize_dynamic(void *opened, struct hob_call *call)
{
    struct flex_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    struct flex_quant quant;
    struct scan scan;
    hob_status st;

    flex_quant_init(&quant, hob_ret_view(call, 0));
    scan_init(&scan, &quant);
    scan.cast = device->kernels->cast[HOB_DTYPE_F64][x->dtype];
    scan.most = call->workspace;
    memset(scan.most, 0, ((size_t)maxima_of(&scan) + 1) * sizeof(double));
    flex_loop_init(&scan.loop, x);
    flex_parallel(device, scan.pieces,
                  1 + FLEX_GRAIN_DEAR / (1 + scan.rows * scan.columns),
                  scan_piece, &scan);
    for (int64_t i = 1; i < scan.pieces && scan.is_single; i++)
        scan.most[0] = fmax(scan.most[0], scan.most[i]);
    put_scales(&quant, x->dtype, scan.most, quant.layout.scale_count);
    st = flex_quant_check(call, &quant);
    if (!st)
        flex_quant_encode(device, &quant, x);
    return st;
}
