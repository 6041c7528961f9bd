/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul.c - matmul: operands go to the kernels with their strides, so a
 * transposed one costs nothing.
 *
 * Three kernels: tiles, for what is large both ways; rows, where one operand
 * has few rows and the other is read once; and the sum of splits, where the
 * result has too few tiles for the device and the inner dimension is long. How
 * a product is split depends on its sizes and on the device's processors, never
 * on what else runs, so results repeat bit by bit on one kind of device.
 */
#include "matmul.h"
#include "product.h"

#include "../lowest.h"
#include "../splits.h"
#include "../texts.h"

enum {
    /* A product of at most so many rows is bound by reading the other side. */
    FEW_ROWS = 8,
    ROWS_LANES = 32,
    ROWS_GROUP = 256,
    ROWS_WIDTH = 8,
    TILE_WIDTH = 4
};

/* ---- kernels ---- */

static const struct cube_program tiles_program = {
    .name = "matmul",
    .text = cube_text_matmul,
    .buffers = {CUBE_PRODUCT_BUFFERS(0)},
    .params = {CUBE_PRODUCT_PARAMS},
    .shared = {{"tile_a", "QUAD", "2 * TILE_K * TILE_M / 4"},
               {"tile_b", "QUAD", "2 * TILE_K * TILE_N / 4"}},
    .constants = {"RANK", "TILE_M", "TILE_N", "TILE_K", "THREAD_M", "THREAD_N",
                  "A_ALONG_K", "B_ALONG_K"},
    .symbols = {"ACCUM", "QUAD"},
    .flags = CUBE_SPACES | CUBE_TILES,
};

static const struct cube_program rows_program = {
    .name = "matmul_rows",
    .text = cube_text_matmul_rows,
    .buffers = {CUBE_PRODUCT_BUFFERS(0)},
    .params = {CUBE_PRODUCT_PARAMS},
    .shared = {{"partial", "ACCUM", "GROUP_SIZE"}},
    .constants = {"RANK", "ROWS", "ALONG_K"},
    .symbols = {"ACCUM"},
    .flags = CUBE_SPACES | CUBE_TILES,
};

/* Sums of DTYPE: halves in f32, integers modulo 2^32 or 2^64. */
static const struct accum {
    uint8_t dtype;
    const char *type, *quad;
} accums[] = {
    {HOB_DTYPE_F64, "double", "dvec4"},
    {HOB_DTYPE_F32, "float", "vec4"},
    {HOB_DTYPE_U64, "u64", "u64vec4"},
    {HOB_DTYPE_U32, "uint", "uvec4"},
};

static const struct accum *accum_of(uint32_t dtype)
{
    const int is_float = (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) != 0;
    const int is_wide = hob_dtype_size(dtype) == 8;

    return &accums[(is_float ? 0 : 2) + !is_wide];
}

/* ---- how operands are read ---- */

/* Whether OPERAND can be read WIDTH elements at a time along a dimension of
 * SIZE, ACROSS being the other stride of its matrix. */
static int is_vector(const struct cube_product *product, uint32_t operand,
                     int64_t size, int64_t across, uint32_t width)
{
    const struct cube_space *batch = &product->batch;
    const struct hob_view *view = product->views[operand];
    const uint64_t bytes = (uint64_t)width * hob_dtype_size(view->dtype);

    if (size % width || across % width ||
        (uint64_t)(uintptr_t)view->data % bytes ||
        cube_lowest(view, NULL) % width)
        return 0;
    for (uint32_t i = 0; i < batch->rank; i++)
        if (batch->strides[operand][i] % width)
            return 0;
    return 1;
}

struct cube_reading cube_product_reading(const struct cube_product *product,
                                         uint32_t operand, uint32_t most)
{
    const int64_t other = operand ? product->n : product->m;
    const int64_t step_k = operand ? product->rows[1] : product->columns[0];
    const int64_t step_other =
        operand ? product->columns[1] : product->rows[0];
    const uint32_t fits = 16 / hob_dtype_size(product->views[operand]->dtype);
    struct cube_reading reading = {0, fits < most ? fits : most};

    reading.along_k = step_other != 1 && (step_k == 1 || step_other == 0 ||
                                          (step_k && step_k < step_other));
    while (reading.width > 1 &&
           !((reading.along_k ? step_k : step_other) == 1 &&
             is_vector(product, operand, reading.along_k ? product->k : other,
                       reading.along_k ? step_other : step_k, reading.width)))
        reading.width /= 2;
    return reading;
}

/* ---- launches ---- */

void cube_product_params(struct cube_job *job,
                         const struct cube_product *product, int64_t tiles_m,
                         int64_t tiles_n, int64_t items)
{
    cube_job_space(job, &product->batch);
    for (uint32_t i = 0; i < 2; i++) {
        cube_job_i64(job, cube_lowest(product->views[i], NULL));
        cube_job_i64s(job, product->batch.strides[i], product->batch.rank);
    }
    cube_job_i64(job, product->m);
    cube_job_i64(job, product->n);
    cube_job_i64(job, product->k);
    for (uint32_t i = 0; i < 2; i++) {
        cube_job_i64(job, product->rows[i]);
        cube_job_i64(job, product->columns[i]);
    }
    cube_job_i64(job, product->out_row);
    cube_job_i64(job, product->out_column);
    cube_job_i64(job, product->out_batch);
    cube_job_i64(job, product->out_split);
    cube_job_i64(job, product->splits);
    cube_job_i64(job, product->split_k);
    cube_job_i64(job, tiles_m);
    cube_job_i64(job, tiles_n);
    cube_job_i64(job, items);
    cube_job_reach(job, items);
    cube_job_reach(job, product->k + product->split_k);
}

void cube_product_buffers(struct cube_job *job,
                          const struct cube_product *product)
{
    cube_job_memory(job, product->out, product->out_dtype,
                    product->batch.count * product->m * product->n *
                        product->splits);
    for (uint32_t i = 0; i < 2; i++)
        cube_job_lowest(job, product->views[i]);
}

/* The largest tiles that are mostly full and enough for the device. */
static struct cube_tiling tiling_of(const struct cube_device *device,
                                    const struct cube_product *product)
{
    static const struct cube_tiling tilings[] = {
        {128, 128, 8, 8}, {64, 64, 16, 4}, {32, 32, 32, 4}};
    const uint32_t size = hob_dtype_size(accum_of(product->dtype)->dtype);
    uint32_t i = 0;

    for (; i < 2; i++) {
        const int64_t side = tilings[i].m;
        const int64_t bytes = 4 * side * tilings[i].k * size;
        const int64_t tiles = cube_divide_up(product->m, side) *
                              cube_divide_up(product->n, side) *
                              product->batch.count;

        if (bytes <= device->limits.shared_bytes && product->m > side / 2 &&
            product->n > side / 2 && tiles >= cube_processors(device))
            break;
    }
    return tilings[i];
}

static hob_status run_tiles(struct cube_device *device, struct hob_call *call,
                            const struct cube_product *product,
                            struct cube_tiling tiling)
{
    const struct accum *accum = accum_of(product->dtype);
    const struct cube_reading a = cube_product_reading(product, 0, TILE_WIDTH);
    const struct cube_reading b = cube_product_reading(product, 1, TILE_WIDTH);
    const int64_t tiles_m = cube_divide_up(product->m, tiling.m);
    const int64_t tiles_n = cube_divide_up(product->n, tiling.m);
    const int64_t items =
        tiles_m * tiles_n * product->splits * product->batch.count;
    const int is_vector_out =
        product->out_column == 1 && product->n % TILE_WIDTH == 0;
    struct cube_job job;

    cube_job_init(&job, device, call, &tiles_program);
    job.variant.group_size =
        (uint32_t)(tiling.m / tiling.part) * (uint32_t)(tiling.m / tiling.part);
    cube_product_buffers(&job, product);
    job.variant.widths[0] = is_vector_out ? TILE_WIDTH : 1;
    job.variant.widths[1] = (uint8_t)a.width;
    job.variant.widths[2] = (uint8_t)b.width;
    cube_job_constant(&job, (int32_t)product->batch.rank);
    cube_job_constant(&job, tiling.m);
    cube_job_constant(&job, tiling.m);
    cube_job_constant(&job, tiling.k);
    cube_job_constant(&job, tiling.part);
    cube_job_constant(&job, tiling.part);
    cube_job_constant(&job, a.along_k);
    cube_job_constant(&job, b.along_k);
    cube_job_symbol(&job, accum->type);
    cube_job_symbol(&job, accum->quad);
    cube_product_params(&job, product, tiles_m, tiles_n, items);
    return cube_job_run(&job, items);
}

/* Columns of a group of the kernel for few rows. */
static int64_t rows_columns(struct cube_reading b)
{
    return b.along_k ? ROWS_GROUP / ROWS_LANES
                     : ROWS_LANES * (int64_t)b.width;
}

static hob_status run_rows(struct cube_device *device, struct hob_call *call,
                           const struct cube_product *product,
                           struct cube_tiling tiling)
{
    const struct cube_reading b = cube_product_reading(product, 1, ROWS_WIDTH);
    const int32_t rows = product->m <= 1   ? 1
                         : product->m <= 2 ? 2
                         : product->m <= 4 ? 4
                                           : 8;
    const int64_t tiles_n = cube_divide_up(product->n, tiling.n);
    const int64_t items = tiles_n * product->splits * product->batch.count;
    struct cube_job job;

    cube_job_init(&job, device, call, &rows_program);
    job.variant.group_size = ROWS_GROUP;
    cube_product_buffers(&job, product);
    job.variant.widths[2] = (uint8_t)b.width;
    cube_job_constant(&job, (int32_t)product->batch.rank);
    cube_job_constant(&job, rows);
    cube_job_constant(&job, b.along_k);
    cube_job_symbol(&job, accum_of(product->dtype)->type);
    cube_product_params(&job, product, 1, tiles_n, items);
    return cube_job_run(&job, items);
}

/* ---- a product ---- */

static void swap(int64_t *x, int64_t *y)
{
    const int64_t was = *x;

    *x = *y;
    *y = was;
}

/* The transposed product: B's transpose by A's. */
static void transpose(struct cube_product *product)
{
    struct cube_space *batch = &product->batch;
    const struct hob_view *view = product->views[0];

    product->views[0] = product->views[1];
    product->views[1] = view;
    swap(&product->m, &product->n);
    swap(&product->rows[0], &product->columns[1]);
    swap(&product->columns[0], &product->rows[1]);
    swap(&product->out_row, &product->out_column);
    for (uint32_t i = 0; i < batch->rank; i++)
        swap(&batch->strides[0][i], &batch->strides[1][i]);
}

/* Batches of A by one B whose rows follow each other: one tall product. */
static void fold_rows(struct cube_product *product)
{
    struct cube_space *batch = &product->batch;

    while (batch->rank > 0) {
        const uint32_t last = batch->rank - 1;
        const int64_t stride = batch->strides[0][last];

        if (batch->strides[1][last] != 0 ||
            (product->m != 1 && stride != product->m * product->rows[0]))
            return;
        if (product->m == 1)
            product->rows[0] = stride;
        product->m *= batch->sizes[last];
        batch->count /= batch->sizes[last];
        batch->rank--;
    }
}

/* Fill PRODUCT for LHS @ RHS into OUT, which has elements. The core has made
 * vectors into matrices. */
static void product_init(struct cube_product *product,
                         const struct hob_view *lhs, const struct hob_view *rhs,
                         const struct hob_view *out)
{
    const struct hob_view *views[] = {lhs, rhs};

    cube_space_init(&product->batch, out->rank - 2u, out->shape);
    for (uint32_t i = 0; i < 2; i++) {
        struct hob_view outer = *views[i];

        outer.rank = (uint8_t)(outer.rank - 2);
        cube_space_add(&product->batch, &outer);
        product->views[i] = views[i];
        product->rows[i] = views[i]->strides[views[i]->rank - 2];
        product->columns[i] = views[i]->strides[views[i]->rank - 1];
    }
    cube_space_collapse(&product->batch);
    product->m = out->shape[out->rank - 2];
    product->n = out->shape[out->rank - 1];
    product->k = lhs->shape[lhs->rank - 1];
    fold_rows(product);
    product->out = out->data;
    product->dtype = out->dtype;
    product->out_dtype = out->dtype;
    product->out_row = product->n;
    product->out_column = 1;
    product->out_batch = product->m * product->n;
}

/* The kernel of PRODUCT, and its tiles. */
struct plan {
    hob_status (*run)(struct cube_device *device, struct hob_call *call,
                      const struct cube_product *product,
                      struct cube_tiling tiling);
    struct cube_tiling tiling;
};

static struct plan plan_of(const struct cube_device *device,
                           const struct cube_product *product)
{
    struct plan plan = {run_rows, {1, 0, ROWS_LANES * ROWS_WIDTH, 0}};

    if (product->m <= FEW_ROWS) {
        plan.tiling.m = (int32_t)product->m;
        plan.tiling.n =
            (int32_t)rows_columns(cube_product_reading(product, 1, ROWS_WIDTH));
    } else if (cube_matrices_take(device, product)) {
        plan.run = cube_matrices_run;
        plan.tiling = cube_matrices_tiling(device, product);
    } else {
        plan.run = run_tiles;
        plan.tiling = tiling_of(device, product);
    }
    return plan;
}

/* The splits of PRODUCT into memory of their own, then their sum. */
static hob_status run_splits(struct cube_device *device, struct hob_call *call,
                             struct cube_product *product,
                             const struct plan *plan,
                             const struct hob_view *out)
{
    struct cube_parts parts;
    hob_status st;

    product->out_dtype = accum_of(product->dtype)->dtype;
    st = cube_parts_take(&parts, device, call, out, product->out_dtype,
                         product->splits);
    if (st)
        return st;
    product->out = parts.data;
    product->out_split = parts.count;
    return cube_parts_add(&parts, device, call,
                          plan->run(device, call, product, plan->tiling));
}

hob_status cube_matmul_portable(struct cube_device *device,
                                struct hob_call *call,
                                const struct hob_view *lhs,
                                const struct hob_view *rhs,
                                const struct hob_view *out)
{
    struct cube_product product = {.splits = 1};
    struct plan plan;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    product_init(&product, lhs, rhs, out);
    if (product.n <= FEW_ROWS && product.n < product.m)
        transpose(&product);
    plan = plan_of(device, &product);
    cube_split(device,
               cube_divide_up(product.m, plan.tiling.m) *
                   cube_divide_up(product.n, plan.tiling.n) *
                   product.batch.count,
               product.k, plan.tiling.k, &product.splits, &product.split_k);
    return product.splits > 1 ? run_splits(device, call, &product, &plan, out)
                              : plan.run(device, call, &product, plan.tiling);
}

hob_status cube_matmul(struct cube_device *device, struct hob_call *call,
                       const struct hob_view *lhs, const struct hob_view *rhs,
                       const struct hob_view *out)
{
    return device->runtime->matmul
               ? device->runtime->matmul(device, call, lhs, rhs, out)
               : cube_matmul_portable(device, call, lhs, rhs, out);
}

static hob_status matmul(void *device, struct hob_call *call)
{
    return cube_matmul(device, call, hob_arg_view(call, 0),
                       hob_arg_view(call, 1), hob_ret_view(call, 0));
}

static const uint32_t num_masks[] = {HOB_MASK_NUM, HOB_MASK_NUM};

static const struct hob_entry entries[] = {
    {
        .op = "matmul",
        .signature = "(lhs: Num, rhs: Num) -> lhs",
        .dtypes = num_masks,
        .dtype_count = 2,
        .execute = matmul,
    },
};

const struct cube_entries cube_matmul_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
