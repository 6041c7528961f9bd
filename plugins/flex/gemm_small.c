/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_small.c - products that one thread computes in microseconds.
 *
 * To plan panels, tasks and scratch as gemm_blocked.c does takes as long as a
 * product of 16 x 16 x 16. Here the tiles are walked as they come: operands are
 * read where they lie, and of B only a panel that no kernel can read in place
 * is packed, on the stack. Sums run in the same order, so the result is the
 * same to the bit.
 */
#include "gemm.h"

enum {
    /* Multiply-adds that are not worth a second thread (gemm_blocked.c). */
    SMALL_FLOPS = 1 << 20,
    /* Of a strip of C. */
    STRIP_BYTES = 32 << 10,
    /* Of one panel of B. */
    PACKED_BYTES = 32 << 10,
    /* No side is longer, so that a product of two sides cannot overflow. */
    SIDE_MAX = 1 << 15
};

int flex_gemm_is_small(const struct flex_gemm *gemm,
                       const struct flex_gemm_kernels *kernels)
{
    if (gemm->m > SIDE_MAX || gemm->n > SIDE_MAX || gemm->k < 1 ||
        gemm->k > kernels->depth ||
        gemm->k * kernels->width * kernels->size > PACKED_BYTES)
        return 0;
    return gemm->m * gemm->n * gemm->k < SMALL_FLOPS &&
           (gemm->a_column == 1 || gemm->a_row == 1) &&
           (gemm->b_column == 1 || gemm->b_row == 1);
}

/* All rows of A by the panel of B at B; TILE knows the columns. */
static void run_panel(const struct flex_gemm *gemm,
                      const struct flex_gemm_kernels *kernels, const char *b,
                      struct flex_gemm_tile *tile)
{
    const int is_columns = gemm->a_row == 1 && gemm->a_column != 1;
    const flex_gemm_kernel_fn *const tiles = tile->columns <= kernels->width / 2
                                                 ? kernels->narrow[is_columns]
                                                 : kernels->tile[is_columns];
    const int64_t a_step = gemm->a_row * kernels->size;
    const int64_t c_step = gemm->ldc * kernels->size;
    const int32_t rows = (int32_t)gemm->m; /* SIDE_MAX */
    /* Panels of equal height, or one row less. */
    const int32_t panels = (rows + kernels->height - 1) / kernels->height;
    int32_t height = (rows + panels - 1) / panels;
    const int32_t tall = rows - panels * (height - 1);
    const char *a = gemm->a;

    tile->a_stride = is_columns ? gemm->a_column : gemm->a_row;
    for (int32_t i = 0; i < panels; i++) {
        const char *after;

        height -= i == tall;
        after = a + height * a_step;
        tile->next = i + 1 < panels ? after : b;
        tiles[height - 1](gemm->k, a, b, tile);
        a = after;
        tile->c = (char *)tile->c + height * c_step;
    }
}

void flex_gemm_small(const struct flex_gemm *gemm,
                     const struct flex_gemm_kernels *kernels)
{
    _Alignas(FLEX_ALIGN) char packed[PACKED_BYTES];
    const int32_t size = kernels->size;
    const int32_t width = kernels->width;
    struct flex_gemm_tile tile = {
        .c_stride = gemm->ldc,
        .accumulate = gemm->beta != 0,
        .relu = gemm->relu,
        .scaled = gemm->alpha != 1,
        .alpha = gemm->alpha,
    };

    tile.plain = !tile.accumulate && !tile.relu && !tile.scaled && !gemm->bias;
    for (int64_t j = 0; j < gemm->n; j += width) {
        const char *b = (const char *)gemm->b + j * gemm->b_column * size;

        tile.columns = (int32_t)flex_least(width, gemm->n - j);
        tile.b_stride = gemm->b_row;
        if (gemm->b_column != 1 ||
            (tile.columns != width && tile.columns != width / 2)) {
            if (gemm->b_column == 1)
                kernels->pack_rows(gemm->k, tile.columns, b, gemm->b_row,
                                   packed);
            else
                kernels->pack_columns(gemm->k, tile.columns, b, gemm->b_column,
                                      packed);
            b = packed;
            tile.b_stride = width;
        }
        tile.c = (char *)gemm->c + j * size;
        tile.bias = gemm->bias ? (const char *)gemm->bias + j * size : NULL;
        run_panel(gemm, kernels, b, &tile);
    }
    if (gemm->epilogue)
        gemm->epilogue(gemm->epilogue_context, gemm->c, 0, gemm->m, 0, gemm->n,
                       gemm->ldc);
}

/* ---- a C without memory ---- */

/* Some rows of it at a time. */
struct strips {
    const struct flex_gemm *gemm;
    const struct flex_gemm_kernels *kernels;
    int64_t rows; /* of a strip */
};

static int64_t strip_rows(const struct flex_gemm *gemm,
                          const struct flex_gemm_kernels *kernels)
{
    return STRIP_BYTES / (gemm->n * kernels->size);
}

static void strip_range(void *context, int64_t first, int64_t last,
                        uint32_t worker)
{
    _Alignas(FLEX_ALIGN) char block[STRIP_BYTES];
    const struct strips *strips = context;
    const struct flex_gemm *gemm = strips->gemm;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i * strips->rows;
        struct flex_gemm strip = *gemm;

        strip.m = flex_least(strips->rows, gemm->m - row);
        strip.a =
            (const char *)gemm->a + row * gemm->a_row * strips->kernels->size;
        strip.c = block;
        strip.ldc = gemm->n;
        strip.epilogue = NULL;
        flex_gemm_small(&strip, strips->kernels);
        gemm->epilogue(gemm->epilogue_context, block, row, strip.m, 0, gemm->n,
                       gemm->n);
    }
}

int flex_gemm_has_strips(const struct flex_gemm *gemm,
                         const struct flex_gemm_kernels *kernels)
{
    return flex_gemm_is_small(gemm, kernels) && strip_rows(gemm, kernels) > 0;
}

void flex_gemm_strips(struct flex_device *device, const struct flex_gemm *gemm,
                      const struct flex_gemm_kernels *kernels)
{
    struct strips strips = {gemm, kernels, strip_rows(gemm, kernels)};

    /* Two strips are what an epilogue such as Adam's takes some us for. */
    flex_parallel(device, flex_divide_up(gemm->m, strips.rows), 2, strip_range,
                  &strips);
}
