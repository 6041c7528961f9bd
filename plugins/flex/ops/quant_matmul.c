/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quant_matmul.c - x times a quantized matrix, of which only a panel at a time
 * is f32.
 *
 * A piece of work owns some columns of the result. It turns the codes that
 * meet them into a panel that stays in its processor's cache, some depth at a
 * time, and adds the product with it. Every element is decoded once.
 */
#include "quant.h"

#include "../gemm.h"

#include <string.h>

/* Elements of a panel, and its depth: square, but for dot products with few
 * rows, whose sums are finished once a panel. */
enum { PANEL = 1 << 16, SIDE = 256, LONG_SIDE = 1024, COLUMNS_LEAST = 32 };
/* Rows that are asked for ahead of time. */
enum { AHEAD = 6 };

struct product {
    struct flex_device *device;
    struct flex_quant quant;
    int64_t m, n, k;
    int64_t depth, columns; /* of a panel */
    int is_turned;          /* the matrix lies as [n, k] */
    const float *x;         /* [m, k] */
    float *out;             /* [m, n] */
    int32_t failed;         /* set from any thread */
};

/* Load the codes of N elements from FIRST on into cache: no processor foresees
 * the steps between parts of rows. */
static void ask_for(const struct product *product, int64_t first, int64_t n)
{
    enum { LINE = 64 };
    const int64_t bits = product->quant.bits;

    for (int64_t i = 0; i < n; i += LINE * 8 / bits)
        __builtin_prefetch(product->quant.codes + (first + i) * bits / 8);
}

/* ROWS rows of LENGTH elements of the matrix, whose rows have ROW, from
 * element FIRST on into PANEL, whose rows follow each other. */
static void decode_rows(const struct product *product, int64_t first,
                        int64_t rows, int64_t length, int64_t row, float *panel)
{
    for (int64_t i = 0; i < rows; i++) {
        if (i + AHEAD < rows)
            ask_for(product, first + (i + AHEAD) * row, length);
        flex_quant_decode(product->device, &product->quant, first + i * row,
                          length, panel + i * length);
    }
}

static void columns_range(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    struct product *product = context;
    const uint64_t bytes = sizeof(float) * PANEL;
    float *panel = flex_scratch_take(product->device, bytes);
    struct flex_gemm gemm = {.struct_size = sizeof(gemm),
                             .dtype = HOB_DTYPE_F32,
                             .m = product->m,
                             .a_row = product->k,
                             .a_column = 1,
                             .ldc = product->n,
                             .alpha = 1};
    hob_status st = panel ? HOB_OK : HOB_ERR_MEMORY;

    (void)worker;
    for (int64_t tile = first; tile < last && !st; tile++) {
        const int64_t at = tile * product->columns;
        const int64_t left = product->n - at;

        gemm.n = left < product->columns ? left : product->columns;
        gemm.c = product->out + at;
        for (int64_t k = 0; k < product->k && !st; k += product->depth) {
            gemm.k = product->k - k < product->depth ? product->k - k
                                                     : product->depth;
            gemm.a = product->x + k;
            gemm.b = panel;
            gemm.beta = k > 0;
            if (product->is_turned) {
                decode_rows(product, at * product->k + k, gemm.n, gemm.k,
                            product->k, panel);
                gemm.b_row = 1;
                gemm.b_column = gemm.k;
            } else {
                decode_rows(product, k * product->n + at, gemm.k, gemm.n,
                            product->n, panel);
                gemm.b_row = gemm.n;
                gemm.b_column = 1;
            }
            st = flex_gemm(product->device, &gemm);
        }
    }
    if (st)
        __atomic_store_n(&product->failed, 1, __ATOMIC_RELAXED);
    if (panel)
        flex_scratch_give(product->device, panel, bytes);
}

/* Elements AT .. AT + COLUMNS - 1 of a vector by the matrix [k, n]. Sums of
 * SOME_ROWS meet in a second one, so that many do not lose. */
static void add_rows(const struct product *product, int64_t at, int64_t columns)
{
    enum { SOME_ROWS = 256 };
    float part_sums[LONG_SIDE];
    double sums[LONG_SIDE];
    const struct flex_quant_kernels *kernels =
        flex_quant_kernels_of(product->device);
    float *out = product->out + at;
    float factors[FLEX_QUANT_RUN];
    struct flex_quant_codes part;

    memset(sums, 0, (size_t)columns * sizeof(double));
    memset(part_sums, 0, (size_t)columns * sizeof(float));
    for (int64_t k = 0; k < product->k; k++) {
        if (k + AHEAD < product->k)
            ask_for(product, (k + AHEAD) * product->n + at, columns);
        for (int64_t i = 0; i < columns; i += part.n) {
            flex_quant_part(&product->quant, k * product->n + at + i,
                            columns - i, factors, &part);
            kernels->add(&part, product->x[k], part_sums + i);
        }
        if (k % SOME_ROWS < SOME_ROWS - 1 && k < product->k - 1)
            continue;
        for (int64_t i = 0; i < columns; i++)
            sums[i] += (double)part_sums[i];
        memset(part_sums, 0, (size_t)columns * sizeof(float));
    }
    for (int64_t i = 0; i < columns; i++)
        out[i] = (float)sums[i];
}

/* A vector by rows of integers goes without a panel: its numbers would be read
 * but once. */
static void vector_range(void *context, int64_t first, int64_t last,
                         uint32_t worker)
{
    const struct product *product = context;

    (void)worker;
    for (int64_t tile = first; tile < last; tile++) {
        const int64_t at = tile * product->columns;
        const int64_t left = product->n - at;
        const int64_t columns =
            left < product->columns ? left : product->columns;

        add_rows(product, at, columns);
    }
}

static void multiply(struct product *product)
{
    const int is_vector = product->m == 1 && !product->is_turned &&
                          !product->quant.format->mantissa;
    int64_t columns = is_vector ? LONG_SIDE
                      : product->is_turned && product->m <= FLEX_SKINNY_ROWS
                          ? PANEL / LONG_SIDE
                          : SIDE;

    product->depth = PANEL / columns;
    /* A narrow matrix is cut finer, so that threads have their share. */
    while (columns > COLUMNS_LEAST && product->n < 8 * columns)
        columns /= 2;
    product->columns = columns;
    flex_parallel(product->device, (product->n + columns - 1) / columns,
                  1 + FLEX_GRAIN_DEAR / (1 + product->k * columns),
                  is_vector ? vector_range : columns_range, product);
}

/* X as f32 without gaps. */
struct copy {
    struct flex_loop loop;
    flex_cast_fn load; /* NULL: it is f32 */
    float *out;
};

static void copy_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct copy *copy = context;
    _Alignas(FLEX_ALIGN) unsigned char raw[FLEX_BLOCK * 8];

    (void)worker;
    for (int64_t at = first; at < last; at += FLEX_BLOCK) {
        const int64_t n = last - at < FLEX_BLOCK ? last - at : FLEX_BLOCK;

        if (copy->load)
            copy->load(copy->out + at, flex_loop_fetch(&copy->loop, at, n, raw),
                       n);
        else
            flex_loop_gather(&copy->loop, at, n, copy->out + at);
    }
}

static const float *copy_x(struct flex_device *device, const struct hob_view *x,
                           float *out)
{
    struct copy copy = {.out = out};

    flex_loop_init(&copy.loop, x);
    if (x->dtype != HOB_DTYPE_F32)
        copy.load = device->kernels->load_f32[x->dtype];
    flex_parallel(device, copy.loop.count, FLEX_GRAIN_CHEAP, copy_range, &copy);
    return out;
}

hob_status flex_quant_matmul(void *opened, struct hob_call *call)
{
    struct flex_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *out = hob_ret_view(call, 0);
    const int is_plain = x->dtype == HOB_DTYPE_F32;
    struct product product = {.device = device,
                              .is_turned = flex_arg_i64(call, 2) != 0};
    const int64_t count = hob_view_count(out);
    int64_t x_floats, out_floats;
    float *scratch;
    uint64_t bytes;

    if (!count)
        return HOB_OK;
    product.k = x->shape[x->rank - 1];
    product.n = out->shape[out->rank - 1];
    product.m = count / product.n;
    if (!product.k) {
        memset(out->data, 0, (size_t)count * hob_dtype_size(out->dtype));
        return HOB_OK;
    }
    flex_quant_init(&product.quant, weight);
    x_floats = is_plain && flex_is_contiguous(x) ? 0 : product.m * product.k;
    out_floats = is_plain ? 0 : count;
    bytes = sizeof(float) * (uint64_t)(x_floats + out_floats) + 1;
    scratch = flex_scratch_take(device, bytes);
    if (!scratch)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for a copy of x", call->op_name);
    product.x = x_floats ? copy_x(device, x, scratch) : x->data;
    product.out = is_plain ? out->data : scratch + x_floats;
    multiply(&product);
    if (!is_plain)
        device->kernels->store_f32[out->dtype](out->data, product.out, count);
    flex_scratch_give(device, scratch, bytes);
    if (product.failed)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for a panel of %d elements",
                                call->op_name, PANEL);
    return HOB_OK;
}
