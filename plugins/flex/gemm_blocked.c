/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_blocked.c - the matrix product on flex's own kernels.
 *
 * As in "Anatomy of High-Performance Matrix Multiplication" (Goto and van de
 * Geijn 2008), with all of A and B packed first, in parallel, as far as the
 * scratch limit allows; then the tiles of C are independent. A tile task runs
 * through the whole depth, so its block of C stays in the second-level cache,
 * and each element is summed in one fixed order.
 */
#include "gemm.h"

#include <string.h>

enum {
    /* Bytes of packed A and B in one pass, about. */
    PACK_LIMIT_BYTES = 64 << 20,
    /* Products up to this many bytes packed use the stack. */
    STACK_BYTES = 16 << 10,
    /* Panels of A and of B in a tile task, at most: with 14 rows, 320 deep,
     * f32, 215 KB of A and 640 KB of B. */
    TASK_PANELS_A = 24,
    TASK_PANELS_B = 8,
    /* A task is worth handing to a thread from about 4 us on. */
    TASK_FLOPS = 1 << 19,
    /* Small products are cut into at least so many tasks if that holds. */
    TASKS_WANTED = 16,
    /* Bytes that one piece of packing moves, at least. */
    PACK_PIECE_BYTES = 64 << 10
};

struct blocked {
    const struct flex_gemm *gemm;
    const struct flex_gemm_kernels *kernels;
    enum flex_gemm_layout layout; /* of the panels of A */
    int64_t height;               /* of a panel of A */
    int64_t panels_a, panels_b;
    int64_t task_a, task_b;  /* panels in a task */
    int64_t tasks_b;         /* tasks side by side */
    int64_t first_k, last_k; /* of the pass */
    char *packed_a, *packed_b;
    int64_t panel_a_bytes, panel_b_bytes; /* of one panel, one block deep */
};

static int64_t divide_up(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Where panel PANEL at depth block BLOCK of the pass is packed. */
static char *packed_a_at(const struct blocked *job, int64_t block,
                         int64_t panel)
{
    return job->packed_a + (block * job->panels_a + panel) * job->panel_a_bytes;
}

static char *packed_b_at(const struct blocked *job, int64_t block,
                         int64_t panel)
{
    return job->packed_b + (block * job->panels_b + panel) * job->panel_b_bytes;
}

/* Copy one element of 4 or 8 bytes. */
static inline void copy_element(char *out, const char *in, int32_t size)
{
    if (size == 4)
        memcpy(out, in, 4);
    else
        memcpy(out, in, 8);
}

/* COUNT x DEPTH elements (ROW apart, COLUMN apart) as rows of ROW_OUT. */
static void pack_a_rows(const struct blocked *job, const char *in, int64_t rows,
                        int64_t depth, char *out)
{
    const struct flex_gemm *gemm = job->gemm;
    const int32_t size = job->kernels->size;
    const int64_t stride_bytes = (int64_t)job->kernels->a_stride * size;

    for (int64_t i = 0; i < job->height; i++) {
        char *to = out + i * stride_bytes;
        const char *from = in + i * gemm->a_row * size;
        if (i >= rows) /* their sums are not stored, but NaNs are slow */
            memset(to, 0, (size_t)(depth * size));
        else if (gemm->a_column == 1)
            memcpy(to, from, (size_t)(depth * size));
        else
            for (int64_t k = 0; k < depth; k++)
                copy_element(to + k * size, from + k * gemm->a_column * size,
                             size);
    }
}

/* The same column by column, for a transposed A. */
static void pack_a_columns(const struct blocked *job, const char *in,
                           int64_t rows, int64_t depth, char *out)
{
    const int32_t size = job->kernels->size;
    const int64_t height_bytes = job->height * size;
    const int64_t in_bytes = job->gemm->a_column * size;

    for (int64_t k = 0; k < depth; k++) {
        memcpy(out, in, (size_t)(rows * size));
        if (rows < job->height)
            memset(out + rows * size, 0, (size_t)(height_bytes - rows * size));
        out += height_bytes;
        in += in_bytes;
    }
}

static void pack_a(const struct blocked *job, int64_t panel)
{
    const struct flex_gemm *gemm = job->gemm;
    const int32_t size = job->kernels->size;
    const int64_t first = panel * job->height;
    const int64_t rows = least(job->height, gemm->m - first);
    int64_t block = 0;

    for (int64_t k = job->first_k; k < job->last_k; block++) {
        int64_t depth = least(job->kernels->depth, job->last_k - k);
        const char *in = (const char *)gemm->a +
                         (first * gemm->a_row + k * gemm->a_column) * size;
        char *out = packed_a_at(job, block, panel);
        if (job->layout == FLEX_GEMM_COLUMNS)
            pack_a_columns(job, in, rows, depth, out);
        else
            pack_a_rows(job, in, rows, depth, out);
        k += depth;
    }
}

/* B with neither stride 1. */
static void pack_b_strided(const struct blocked *job, const char *in,
                           int64_t columns, int64_t depth, char *out)
{
    const int32_t size = job->kernels->size;
    const int64_t width = job->kernels->width;

    memset(out, 0, (size_t)(depth * width * size));
    for (int64_t k = 0; k < depth; k++)
        for (int64_t j = 0; j < columns; j++)
            copy_element(out + (k * width + j) * size,
                         in + (k * job->gemm->b_row + j * job->gemm->b_column) *
                                  size,
                         size);
}

static void pack_b(const struct blocked *job, int64_t panel)
{
    const struct flex_gemm *gemm = job->gemm;
    const struct flex_gemm_kernels *kernels = job->kernels;
    const int64_t first = panel * kernels->width;
    const int64_t columns = least(kernels->width, gemm->n - first);
    int64_t block = 0;

    for (int64_t k = job->first_k; k < job->last_k; block++) {
        int64_t depth = least(kernels->depth, job->last_k - k);
        const char *in =
            (const char *)gemm->b +
            (k * gemm->b_row + first * gemm->b_column) * kernels->size;
        char *out = packed_b_at(job, block, panel);
        if (gemm->b_column == 1)
            kernels->pack_rows(depth, columns, in, gemm->b_row, out);
        else if (gemm->b_row == 1)
            kernels->pack_columns(depth, columns, in, gemm->b_column, out);
        else
            pack_b_strided(job, in, columns, depth, out);
        k += depth;
    }
}

static void pack_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct blocked *job = context;

    (void)worker;
    for (int64_t i = first; i < last; i++) {
        if (i < job->panels_b)
            pack_b(job, i);
        else
            pack_a(job, i - job->panels_b);
    }
}

/* All tiles of panels A0 .. A1 - 1 by B0 .. B1 - 1 at one depth block. */
static void run_block(const struct blocked *job, int64_t block, int64_t depth,
                      int is_first, int is_last, const int64_t range[4])
{
    const struct flex_gemm *gemm = job->gemm;
    const struct flex_gemm_kernels *kernels = job->kernels;
    const flex_gemm_kernel_fn tile_fn =
        kernels->tile[job->layout][job->height - 1];
    struct flex_gemm_tile tile = {
        .c_stride = gemm->ldc,
        .accumulate = !is_first || gemm->beta != 0,
        .relu = is_last && gemm->relu,
        .scaled = gemm->alpha != 1,
        .alpha = gemm->alpha,
    };

    for (int64_t j = range[2]; j < range[3]; j++) {
        int64_t column = j * kernels->width;
        const char *b = packed_b_at(job, block, j);

        tile.columns = (int32_t)least(kernels->width, gemm->n - column);
        tile.bias = is_last && gemm->bias
                        ? (const char *)gemm->bias + column * kernels->size
                        : NULL;
        for (int64_t i = range[0]; i < range[1]; i++) {
            int64_t row = i * job->height;
            tile.rows = (int32_t)least(job->height, gemm->m - row);
            tile.c =
                (char *)gemm->c + (row * gemm->ldc + column) * kernels->size;
            tile_fn(depth, packed_a_at(job, block, i), b, &tile);
        }
    }
}

static void run_task(const struct blocked *job, int64_t task)
{
    const struct flex_gemm *gemm = job->gemm;
    const int64_t a = task / job->tasks_b * job->task_a;
    const int64_t b = task % job->tasks_b * job->task_b;
    const int64_t range[4] = {a, least(a + job->task_a, job->panels_a), b,
                              least(b + job->task_b, job->panels_b)};
    int64_t block = 0;
    int64_t k = job->first_k;

    do { /* once even if the depth is 0: C is still to be written */
        int64_t depth = least(job->kernels->depth, job->last_k - k);
        run_block(job, block++, depth, k == 0, k + depth == gemm->k, range);
        k += depth;
    } while (k < job->last_k);
    if (gemm->epilogue && job->last_k == gemm->k) {
        int64_t row = range[0] * job->height;
        int64_t column = range[2] * job->kernels->width;
        gemm->epilogue(
            gemm->epilogue_context,
            (char *)gemm->c + (row * gemm->ldc + column) * job->kernels->size,
            row, least(range[1] * job->height, gemm->m) - row, column,
            least(range[3] * job->kernels->width, gemm->n) - column, gemm->ldc);
    }
}

static void task_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    (void)worker;
    for (int64_t i = first; i < last; i++)
        run_task(context, i);
}

/* Cut C into tasks: large ones for the caches' sake, but several. */
static void plan_tasks(struct blocked *job)
{
    const double panel_flops =
        2.0 * (double)job->height * job->kernels->width * (double)job->gemm->k;

    job->task_a = least(TASK_PANELS_A, job->panels_a);
    job->task_b = least(TASK_PANELS_B, job->panels_b);
    for (;;) {
        int64_t tasks = divide_up(job->panels_a, job->task_a) *
                        divide_up(job->panels_b, job->task_b);
        double flops = panel_flops * (double)job->task_a * (double)job->task_b;
        if (tasks >= TASKS_WANTED || flops < 2.0 * TASK_FLOPS)
            break;
        if (job->task_b * job->kernels->width > job->task_a * job->height &&
            job->task_b > 1)
            job->task_b = divide_up(job->task_b, 2);
        else if (job->task_a > 1)
            job->task_a = divide_up(job->task_a, 2);
        else
            break;
    }
    /* Equal shares: no small rest at the edge. */
    job->task_a =
        divide_up(job->panels_a, divide_up(job->panels_a, job->task_a));
    job->task_b =
        divide_up(job->panels_b, divide_up(job->panels_b, job->task_b));
    job->tasks_b = divide_up(job->panels_b, job->task_b);
}

/* Panels of equal height, so that few rows are computed for nothing. */
static void plan_panels(struct blocked *job)
{
    const struct flex_gemm *gemm = job->gemm;
    const struct flex_gemm_kernels *kernels = job->kernels;

    job->layout = gemm->a_row == 1 && gemm->a_column != 1 ? FLEX_GEMM_COLUMNS
                                                          : FLEX_GEMM_ROWS;
    job->panels_a = divide_up(gemm->m, kernels->height);
    job->height = divide_up(gemm->m, job->panels_a);
    job->panels_a = divide_up(gemm->m, job->height);
    job->panels_b = divide_up(gemm->n, kernels->width);
    job->panel_a_bytes =
        (int64_t)FLEX_ALIGN *
        divide_up(job->height * kernels->a_stride * kernels->size, FLEX_ALIGN);
    job->panel_b_bytes =
        (int64_t)kernels->depth * kernels->width * kernels->size;
    if (gemm->k < kernels->depth) { /* rows keep their constant stride */
        job->panel_b_bytes = gemm->k * kernels->width * kernels->size;
        if (job->layout == FLEX_GEMM_COLUMNS)
            job->panel_a_bytes =
                (int64_t)FLEX_ALIGN *
                divide_up(job->height * gemm->k * kernels->size, FLEX_ALIGN);
    }
}

static void run_pass(struct flex_device *device, struct blocked *job)
{
    const int64_t blocks =
        divide_up(job->last_k - job->first_k, job->kernels->depth);
    const int64_t panel_bytes =
        (job->panel_a_bytes + job->panel_b_bytes) / 2 * (blocks + !blocks) + 1;
    const int64_t tasks = divide_up(job->panels_a, job->task_a) * job->tasks_b;
    const double flops = 2.0 * (double)job->gemm->m * (double)job->gemm->n *
                         (double)(job->last_k - job->first_k);
    /* Whole products below the threshold stay on one thread. */
    const int64_t grain = flops < 2.0 * TASK_FLOPS ? tasks : 1;
    const int64_t pack_count = job->panels_a + job->panels_b;

    flex_parallel(device, pack_count,
                  grain == 1 ? divide_up(PACK_PIECE_BYTES, panel_bytes)
                             : pack_count,
                  pack_range, job);
    flex_parallel(device, tasks, grain, task_range, job);
}

hob_status flex_gemm_blocked(struct flex_device *device,
                             const struct flex_gemm *gemm)
{
    struct blocked job = {
        .gemm = gemm,
        .kernels = &device->blas->kernels[flex_gemm_type_of(gemm->dtype)]};
    _Alignas(FLEX_ALIGN) char stack[STACK_BYTES];
    char *scratch = stack;
    int64_t block_bytes, blocks, total_bytes;

    plan_panels(&job);
    plan_tasks(&job);
    /* Cannot overflow: no larger than twice the operands plus a panel. */
    block_bytes =
        job.panels_a * job.panel_a_bytes + job.panels_b * job.panel_b_bytes;
    blocks = least(divide_up(gemm->k, job.kernels->depth),
                   1 + PACK_LIMIT_BYTES / (block_bytes + 1));
    total_bytes = block_bytes * blocks;
    if (total_bytes > STACK_BYTES) {
        scratch = flex_scratch_take(device, (uint64_t)total_bytes);
        if (!scratch)
            return HOB_ERR_MEMORY;
    }
    job.packed_b = scratch;
    job.packed_a = scratch + blocks * job.panels_b * job.panel_b_bytes;
    do {
        job.last_k = least(gemm->k, job.first_k + blocks * job.kernels->depth);
        run_pass(device, &job);
        job.first_k = job.last_k;
    } while (job.first_k < gemm->k);
    if (scratch != stack)
        flex_scratch_give(device, scratch, (uint64_t)total_bytes);
    return HOB_OK;
}
