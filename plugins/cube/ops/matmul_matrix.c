/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul_matrix.c - products of f16 and bf16 by cooperative matrices, where
 * the device has them.
 */
#include "product.h"

#include "../splits.h"
#include "../texts.h"

enum {
    SIDE = 16, /* of a matrix */
    VECTOR = 8 /* elements of 16 bytes */
};

static const struct cube_program matrix_program = {
    .name = "matmul_matrix",
    .text = cube_text_matmul_matrix,
    .buffers = {CUBE_PRODUCT_BUFFERS(CUBE_PAIRS)},
    .params = {CUBE_PRODUCT_PARAMS},
    .shared = {{"tile_a", "uvec4",
                "STAGES * (A_ALONG_K != 0 ? TILE_M * (TILE_K / 8 + 1)"
                " : TILE_K * (TILE_M / 8 + 1))"},
               {"tile_b", "uvec4",
                "STAGES * (B_ALONG_K != 0 ? TILE_N * (TILE_K / 8 + 1)"
                " : TILE_K * (TILE_N / 8 + 1))"},
               {"sums", "float", "GROUP_SIZE / SUBGROUP_SIZE * 256"}},
    .constants = {"RANK", "TILE_M", "TILE_N", "TILE_K", "SUB_M", "SUB_N",
                  "STAGES", "A_ALONG_K", "B_ALONG_K", "MATRIX_DTYPE"},
    .flags = CUBE_SPACES | CUBE_SUBGROUPS | CUBE_MATRICES,
};

/* Tiles of a and b at a time: with two the next one is put while others still
 * multiply. */
static int32_t stages_of(struct cube_tiling tiling)
{
    return tiling.m * tiling.n > 128 * 128 ? 1 : 2;
}

static uint32_t subgroups_of(struct cube_tiling tiling)
{
    return (uint32_t)(tiling.m / tiling.part * (tiling.n / tiling.part));
}

/* Shared memory of a group, rows of tiles being a vector longer. */
static uint32_t bytes_of(struct cube_tiling tiling)
{
    const int32_t across = tiling.k * (tiling.m + tiling.n + 2 * VECTOR);
    const int32_t along = (tiling.k + VECTOR) * (tiling.m + tiling.n);

    return (uint32_t)(2 * stages_of(tiling) *
                      (along > across ? along : across)) +
           subgroups_of(tiling) * SIDE * SIDE * 4;
}

int cube_matrices_take(const struct cube_device *device,
                       const struct cube_product *product)
{
    const uint32_t dtype = product->views[0]->dtype;

    return (device->limits.matrices & HOB_DTYPE_BIT(dtype)) != 0 &&
           product->views[1]->dtype == dtype && product->dtype != HOB_DTYPE_F64;
}

struct cube_tiling cube_matrices_tiling(const struct cube_device *device,
                                        const struct cube_product *product)
{
    static const struct cube_tiling tilings[] = {
        {128, 256, 32, 64}, {128, 128, 32, 64}, {64, 64, 32, 32}};
    const struct cube_limits *limits = &device->limits;
    uint32_t i = 0;

    for (; i < 2; i++) {
        const struct cube_tiling *tiling = &tilings[i];
        const int64_t tiles = cube_divide_up(product->m, tiling->m) *
                              cube_divide_up(product->n, tiling->n) *
                              product->batch.count;

        if (bytes_of(*tiling) <= limits->shared_bytes &&
            subgroups_of(*tiling) * limits->subgroup_size <=
                limits->group_size &&
            product->m > tiling->m / 2 && product->n > tiling->n / 2 &&
            tiles >= cube_processors(device))
            break;
    }
    return tilings[i];
}

/* Of results only whole vectors are stored. */
static uint32_t result_width(const struct cube_product *product)
{
    uint32_t width = VECTOR;

    while (width > 1 && (product->out_column != 1 || product->n % width))
        width /= 2;
    return width;
}

hob_status cube_matrices_run(struct cube_device *device, struct hob_call *call,
                             const struct cube_product *product,
                             struct cube_tiling tiling)
{
    const struct cube_reading a = cube_product_reading(product, 0, VECTOR);
    const struct cube_reading b = cube_product_reading(product, 1, VECTOR);
    const int64_t tiles_m = cube_divide_up(product->m, tiling.m);
    const int64_t tiles_n = cube_divide_up(product->n, tiling.n);
    const int64_t items =
        tiles_m * tiles_n * product->splits * product->batch.count;
    struct cube_job job;

    cube_job_init(&job, device, call, &matrix_program);
    job.variant.group_size =
        subgroups_of(tiling) * device->limits.subgroup_size;
    cube_product_buffers(&job, product);
    /* Bits go to the matrices as they are. */
    job.variant.dtypes[1] = job.variant.dtypes[2] = HOB_DTYPE_U16;
    job.variant.widths[0] = (uint8_t)result_width(product);
    job.variant.widths[1] = (uint8_t)a.width;
    job.variant.widths[2] = (uint8_t)b.width;
    cube_job_constant(&job, (int32_t)product->batch.rank);
    cube_job_constant(&job, tiling.m);
    cube_job_constant(&job, tiling.n);
    cube_job_constant(&job, tiling.k);
    cube_job_constant(&job, tiling.part);
    cube_job_constant(&job, tiling.part);
    cube_job_constant(&job, stages_of(tiling));
    cube_job_constant(&job, a.along_k);
    cube_job_constant(&job, b.along_k);
    cube_job_constant(&job, (int32_t)product->views[0]->dtype);
    cube_product_params(&job, product, tiles_m, tiles_n, items);
    return cube_job_run(&job, items);
}
