/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_blocked.c - the matrix product on flex's own kernels.
 *
 * As in "Anatomy of High-Performance Matrix Multiplication" (Goto and van de
 * Geijn 2008), with all of A and B packed first, in parallel, as far as the
 * scratch limit allows; then the tiles of C are independent. Operands that are
 * small enough are not packed at all. A tile task runs through the whole depth,
 * so each element is summed in one fixed order.
 */
#include "gemm.h"

#include <string.h>

enum {
    /* Bytes of packed A and B in one pass, about. */
    PACK_LIMIT_BYTES = 64 << 20,
    /* Products up to this many bytes packed use the stack. */
    STACK_BYTES = 32 << 10,
    /* No larger B is read where it lies. */
    DIRECT_BYTES = 2 << 20,
    /* A result up to so large is in the caches anyway. */
    NEAR_BYTES = 128 << 10,
    /* Panels of B in a task, at most. */
    TASK_PANELS_B = 32,
    /* A task is worth handing to a thread from about 2 us on (AVX-512), but
     * only where there are four: a sleeping thread takes 6 us to wake. */
    TASK_FLOPS = 1 << 19,
    /* Small products are cut into at least so many tasks if that holds. */
    TASKS_WANTED = 16,
    /* Of a task's block of C where C has no memory, and the flops that an
     * epilogue is taken for, for each element of it. */
    OWN_BYTES = 32 << 10,
    OWN_COLUMNS = 256, /* that such a block has, rather than more rows */
    OWN_FLOPS = 64,
    /* Bytes that one piece of packing moves, at least. */
    PACK_PIECE_BYTES = 64 << 10,
    /* Panels that are packed side by side, and rows of each in turn: so much
     * of each row of the source is read at once. */
    PACK_PANELS = 8,
    PACK_ROWS = 16
};

struct blocked {
    const struct flex_gemm *gemm;
    const struct flex_gemm_kernels *kernels;
    enum flex_gemm_layout layout; /* of the panels of A */
    int64_t height; /* of the first `tall` panels of A; the others have one
                     * row less */
    int64_t tall;
    int64_t panels_a, panels_b;
    int64_t direct_a, direct_b; /* the first so many panels are not packed */
    int64_t depth;              /* of a block, the last one perhaps less */
    int64_t task_a, task_b;     /* panels in a task */
    int64_t tasks_b;            /* tasks side by side */
    int fetches_reads;          /* of the epilogue: tasks are whole rows */
    int64_t first_k, last_k;    /* of the pass */
    struct flex_device *device;
    int32_t failed; /* set from any thread: no memory */
    char *packed_a, *packed_b;
    int64_t a_stride;                     /* elements between packed rows */
    int64_t panel_a_bytes, panel_b_bytes; /* of one panel, one block deep */
};

/* A panel of an operand at one depth block, and its stride. */
struct panel {
    const char *at;
    int64_t stride;
};

/* The first row of panel INDEX of A. */
static int64_t row_of(const struct blocked *job, int64_t index)
{
    return index * job->height - (index > job->tall ? index - job->tall : 0);
}

/* Where panel INDEX at depth block BLOCK of the pass is packed. */
static char *packed_a_at(const struct blocked *job, int64_t block,
                         int64_t index)
{
    return job->packed_a +
           (block * (job->panels_a - job->direct_a) + index - job->direct_a) *
               job->panel_a_bytes;
}

static char *packed_b_at(const struct blocked *job, int64_t block,
                         int64_t index)
{
    return job->packed_b +
           (block * (job->panels_b - job->direct_b) + index - job->direct_b) *
               job->panel_b_bytes;
}

/* Where elements of panel INDEX lie in the operand, from depth K on. */
static const char *source_a_at(const struct blocked *job, int64_t k,
                               int64_t index)
{
    const struct flex_gemm *gemm = job->gemm;

    return (const char *)gemm->a +
           (row_of(job, index) * gemm->a_row + k * gemm->a_column) *
               job->kernels->size;
}

static const char *source_b_at(const struct blocked *job, int64_t k,
                               int64_t index)
{
    const struct flex_gemm *gemm = job->gemm;

    return (const char *)gemm->b +
           (k * gemm->b_row + index * job->kernels->width * gemm->b_column) *
               job->kernels->size;
}

/* The panel INDEX of A, of ROWS rows, at BLOCK, which begins at K. */
static struct panel panel_a(const struct blocked *job, int64_t block, int64_t k,
                            int64_t index, int64_t rows)
{
    const struct flex_gemm *gemm = job->gemm;
    const int is_rows = job->layout == FLEX_GEMM_ROWS;

    if (index < job->direct_a)
        return (struct panel){source_a_at(job, k, index),
                              is_rows ? gemm->a_row : gemm->a_column};
    return (struct panel){packed_a_at(job, block, index),
                          is_rows ? job->a_stride : rows};
}

static struct panel panel_b(const struct blocked *job, int64_t block, int64_t k,
                            int64_t index)
{
    if (index < job->direct_b)
        return (struct panel){source_b_at(job, k, index), job->gemm->b_row};
    return (struct panel){packed_b_at(job, block, index), job->kernels->width};
}

/* Copy one element of 4 or 8 bytes. */
static inline void copy_element(char *out, const char *in, int32_t size)
{
    if (size == 4)
        memcpy(out, in, 4);
    else
        memcpy(out, in, 8);
}

/* ROWS x DEPTH elements of A as rows, a_stride apart. */
static void pack_a_rows(const struct blocked *job, const char *in, int64_t rows,
                        int64_t depth, char *out)
{
    const struct flex_gemm *gemm = job->gemm;
    const int32_t size = job->kernels->size;

    for (int64_t i = 0; i < rows; i++) {
        char *to = out + i * job->a_stride * size;
        const char *from = in + i * gemm->a_row * size;
        if (gemm->a_column == 1)
            memcpy(to, from, (size_t)(depth * size));
        else
            for (int64_t k = 0; k < depth; k++)
                copy_element(to + k * size, from + k * gemm->a_column * size,
                             size);
    }
}

/* DEPTH rows of panel INDEX from row K of the block on, which begins at
 * FIRST_K and is packed at OUT. */
static void pack_a(const struct blocked *job, int64_t index, int64_t first_k,
                   int64_t k, int64_t depth, char *out)
{
    const int32_t size = job->kernels->size;
    const int64_t rows = row_of(job, index + 1) - row_of(job, index);
    const char *in = source_a_at(job, first_k + k, index);

    if (job->layout == FLEX_GEMM_COLUMNS)
        job->kernels->pack_close(depth, rows, in, job->gemm->a_column,
                                 out + k * rows * size);
    else
        pack_a_rows(job, in, rows, depth, out + k * size);
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

static void pack_b(const struct blocked *job, int64_t index, int64_t first_k,
                   int64_t k, int64_t depth, char *out)
{
    const struct flex_gemm *gemm = job->gemm;
    const struct flex_gemm_kernels *kernels = job->kernels;
    const int64_t columns =
        flex_least(kernels->width, gemm->n - index * kernels->width);
    const char *in = source_b_at(job, first_k + k, index);

    out += k * kernels->width * kernels->size;
    if (gemm->b_column == 1)
        kernels->pack_rows(depth, columns, in, gemm->b_row, out);
    else if (gemm->b_row == 1)
        kernels->pack_columns(depth, columns, in, gemm->b_column, out);
    else
        pack_b_strided(job, in, columns, depth, out);
}

/* Pack panels FIRST .. LAST - 1 of A or B, side by side. */
static void pack_panels(const struct blocked *job, int is_a, int64_t first,
                        int64_t last)
{
    const int is_wide =
        is_a ? job->layout == FLEX_GEMM_COLUMNS : job->gemm->b_column == 1;
    const int64_t rows = is_wide ? PACK_ROWS : job->depth; /* in turn */
    int64_t block = 0;

    for (int64_t k = job->first_k; k < job->last_k; k += job->depth, block++) {
        const int64_t depth = flex_least(job->depth, job->last_k - k);
        for (int64_t l = 0; l < depth; l += rows)
            for (int64_t i = first; i < last; i++) {
                if (is_a)
                    pack_a(job, i, k, l, flex_least(rows, depth - l),
                           packed_a_at(job, block, i));
                else
                    pack_b(job, i, k, l, flex_least(rows, depth - l),
                           packed_b_at(job, block, i));
            }
    }
}

/* The panels that are packed are counted from 0: those of B, then of A. */
static void pack_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct blocked *job = context;
    const int64_t count_b = job->panels_b - job->direct_b;

    (void)worker;
    while (first < last) {
        const int is_a = first >= count_b;
        const int64_t end = flex_least(first + PACK_PANELS,
                                       is_a ? last : flex_least(last, count_b));
        const int64_t offset = is_a ? job->direct_a - count_b : job->direct_b;
        pack_panels(job, is_a, first + offset, end + offset);
        first = end;
    }
}

/* A task's block of C, from its first element on. */
struct target {
    char *c;
    int64_t ldc;
    int64_t row, column; /* that it begins at */
    /* What the epilogue reads of the array READ: its part for the block, of
     * which so many bytes are on their way. */
    int64_t read_bytes, fetched_bytes;
    uint32_t read;
};

/* What to fetch next of what the epilogue reads, by a tile of DEPTH steps;
 * NULL: all is on its way. */
static const char *next_read(const struct blocked *job, struct target *target,
                             int64_t depth)
{
    const char *at;

    if (!job->fetches_reads || target->read == FLEX_EPILOGUE_READS ||
        !job->gemm->reads[target->read])
        return NULL;
    at = (const char *)job->gemm->reads[target->read] +
         target->row * job->gemm->n * job->kernels->size +
         target->fetched_bytes;
    target->fetched_bytes += depth * FLEX_ALIGN;
    if (target->fetched_bytes >= target->read_bytes) {
        target->fetched_bytes = 0;
        target->read++;
    }
    return at;
}

/*
 * All tiles of panels RANGE[0] .. RANGE[1] - 1 of A by RANGE[2] .. RANGE[3] - 1
 * of B at depth block BLOCK, which begins at K. What comes next is fetched
 * meanwhile: each panel of A at first, then the next panel of B in parts.
 */
static void run_block(const struct blocked *job, int64_t block, int64_t k,
                      const int64_t range[4], struct target *target)
{
    const struct flex_gemm *gemm = job->gemm;
    const struct flex_gemm_kernels *kernels = job->kernels;
    const int64_t depth = flex_least(job->depth, job->last_k - k);
    struct flex_gemm_tile tile = {
        .c_stride = target->ldc,
        .fetch = gemm->c && gemm->m * gemm->n * kernels->size > NEAR_BYTES,
        .accumulate = k > 0 || gemm->beta != 0,
        .relu = gemm->relu && k + depth == gemm->k,
        .scaled = gemm->alpha != 1,
        .alpha = gemm->alpha,
    };

    tile.plain = !tile.accumulate && !tile.relu && !tile.scaled && !gemm->bias;
    for (int64_t j = range[2]; j < range[3]; j++) {
        const int64_t column = j * kernels->width;
        const struct panel b = panel_b(job, block, k, j);
        const char *next_b =
            j + 1 < range[3] ? panel_b(job, block, k, j + 1).at : b.at;

        const flex_gemm_kernel_fn *const tiles =
            gemm->n - column <= kernels->width / 2
                ? kernels->narrow[job->layout]
                : kernels->tile[job->layout];

        tile.b_stride = b.stride;
        tile.columns = (int32_t)flex_least(kernels->width, gemm->n - column);
        tile.bias = gemm->bias && k + depth == gemm->k
                        ? (const char *)gemm->bias + column * kernels->size
                        : NULL;
        for (int64_t i = range[0]; i < range[1]; i++) {
            const int64_t row = row_of(job, i);
            const int64_t rows = row_of(job, i + 1) - row;
            const struct panel a = panel_a(job, block, k, i, rows);
            const int64_t done = (i - range[0]) * depth * FLEX_ALIGN;

            tile.a_stride = a.stride;
            tile.c = target->c + ((row - target->row) * target->ldc + column -
                                  target->column) *
                                     kernels->size;
            tile.next = NULL;
            if (j == range[2] && i + 1 < range[1])
                tile.next = panel_a(job, block, k, i + 1, 0).at;
            else if (k + depth == gemm->k)
                tile.next = next_read(job, target, depth);
            if (!tile.next)
                tile.next = done < job->panel_b_bytes ? next_b + done : a.at;
            tiles[rows - 1](depth, a.at, b.at, &tile);
        }
    }
}

/* OWN is memory for the block if C has none. */
static void run_task(const struct blocked *job, int64_t task, char *own)
{
    const struct flex_gemm *gemm = job->gemm;
    const int64_t a = task / job->tasks_b * job->task_a;
    const int64_t b = task % job->tasks_b * job->task_b;
    const int64_t range[4] = {a, flex_least(a + job->task_a, job->panels_a), b,
                              flex_least(b + job->task_b, job->panels_b)};
    const int64_t row = row_of(job, range[0]);
    const int64_t column = range[2] * job->kernels->width;
    const int64_t columns =
        flex_least(range[3] * job->kernels->width, gemm->n) - column;
    struct target target = {
        .c = own, .ldc = columns, .row = row, .column = column};
    int64_t block = 0;
    int64_t k = job->first_k;

    target.read_bytes =
        (row_of(job, range[1]) - row) * gemm->n * (int64_t)job->kernels->size;
    if (gemm->c) {
        target.c =
            (char *)gemm->c + (row * gemm->ldc + column) * job->kernels->size;
        target.ldc = gemm->ldc;
    }
    do { /* once even if the depth is 0: C is still to be written */
        run_block(job, block++, k, range, &target);
        k += job->depth;
    } while (k < job->last_k);
    if (gemm->epilogue && job->last_k == gemm->k)
        gemm->epilogue(gemm->epilogue_context, target.c, row,
                       row_of(job, range[1]) - row, column, columns,
                       target.ldc);
}

static void task_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct blocked *job = context;
    char *own = NULL;

    (void)worker;
    if (!job->gemm->c) {
        own = flex_scratch_take(job->device, OWN_BYTES);
        if (!own) {
            __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
            return;
        }
    }
    for (int64_t i = first; i < last; i++)
        run_task(job, i, own);
    if (own)
        flex_scratch_give(job->device, own, OWN_BYTES);
}

/* Let the block of a task have room in OWN_BYTES: one tile always has. */
static void shrink_tasks(struct blocked *job)
{
    const struct flex_gemm_kernels *kernels = job->kernels;

    while (job->task_a * job->height * job->task_b * kernels->width *
               kernels->size >
           OWN_BYTES) {
        int64_t *side =
            job->task_b > 1 && (job->task_b * kernels->width > OWN_COLUMNS ||
                                job->task_a == 1)
                ? &job->task_b
                : &job->task_a;

        *side = flex_divide_up(*side, 2);
    }
}

static int is_alone(const struct flex_device *device)
{
    return device->threads == 1 ||
           device->host->thread_count(device->host) == 1;
}

/* Cut C into tasks: large ones for the caches' sake, but several. A task's
 * block of A stays in the L2, through which its panels of B pass. */
static void plan_tasks(struct blocked *job, const struct flex_device *device)
{
    const uint64_t l2_bytes = device->l2_bytes;
    const double panel_flops =
        2.0 * (double)job->height * job->kernels->width * (double)job->gemm->k;
    /* Rows that follow each other are one run for the epilogue, which takes
     * as long for each that it begins as for some 100 elements. */
    const int is_whole = job->gemm->epilogue != NULL;

    job->task_a = flex_least(job->panels_a, 1 + (int64_t)(l2_bytes / 2) /
                                                    (job->panel_a_bytes + 1));
    job->task_b = flex_least(TASK_PANELS_B, job->panels_b);
    for (;;) {
        int64_t tasks = flex_divide_up(job->panels_a, job->task_a) *
                        flex_divide_up(job->panels_b, job->task_b);
        double flops = panel_flops * (double)job->task_a * (double)job->task_b;
        if (tasks >= TASKS_WANTED || flops < 2.0 * TASK_FLOPS)
            break;
        if (job->task_b > 1 &&
            (job->task_a == 1 ||
             (job->task_b * job->kernels->width > job->task_a * job->height &&
              !(is_whole && job->task_b == job->panels_b))))
            job->task_b = flex_divide_up(job->task_b, 2);
        else if (job->task_a > 1)
            job->task_a = flex_divide_up(job->task_a, 2);
        else
            break;
    }
    if (!job->gemm->c)
        shrink_tasks(job);
    /* Equal shares: no small rest at the edge. */
    job->task_a = flex_divide_up(job->panels_a,
                                 flex_divide_up(job->panels_a, job->task_a));
    job->task_b = flex_divide_up(job->panels_b,
                                 flex_divide_up(job->panels_b, job->task_b));
    job->tasks_b = flex_divide_up(job->panels_b, job->task_b);
    /* B is fetched meanwhile if it is not in the L2 anyway. Among threads, what
     * another one wrote last would come twice: to be read, then to be written
     * (a step of Adam took 5 to 10 % longer). */
    job->fetches_reads =
        job->gemm->reads[0] && job->tasks_b == 1 && is_alone(device) &&
        (uint64_t)(job->panels_b * job->panel_b_bytes) <= l2_bytes / 4;
}

/* Panels of A of equal height, or one less, so that no row is computed for
 * nothing, and blocks of equal depth. */
static void plan_panels(struct blocked *job)
{
    const struct flex_gemm *gemm = job->gemm;
    const struct flex_gemm_kernels *kernels = job->kernels;
    const int64_t size = kernels->size;
    const int64_t a_bytes = gemm->m * gemm->k * size;
    const int64_t b_bytes = gemm->n * gemm->k * size;

    job->layout = gemm->a_row == 1 && gemm->a_column != 1 ? FLEX_GEMM_COLUMNS
                                                          : FLEX_GEMM_ROWS;
    job->panels_a = flex_divide_up(gemm->m, kernels->height);
    job->height = flex_divide_up(gemm->m, job->panels_a);
    job->tall = gemm->m - job->panels_a * (job->height - 1);
    job->panels_b = flex_divide_up(gemm->n, kernels->width);
    if (gemm->a_column == 1
            ? a_bytes <= kernels->direct_a
            : gemm->a_row == 1 && a_bytes <= kernels->direct_columns)
        job->direct_a = job->panels_a;
    if (gemm->b_column == 1 && b_bytes <= DIRECT_BYTES &&
        b_bytes * job->panels_a <= kernels->direct_b)
        job->direct_b = gemm->n / kernels->width +
                        (gemm->n % kernels->width == kernels->width / 2);
    job->depth = flex_divide_up(
        gemm->k, gemm->k ? flex_divide_up(gemm->k, kernels->depth) : 1);
    job->depth += !job->depth;
    /* An odd number of lines, so that rows share no sets of the caches. */
    job->a_stride =
        (flex_divide_up(job->depth * size, FLEX_ALIGN) | 1) * FLEX_ALIGN / size;
    job->panel_a_bytes =
        job->layout == FLEX_GEMM_ROWS
            ? job->height * job->a_stride * size
            : FLEX_ALIGN *
                  flex_divide_up(job->height * job->depth * size, FLEX_ALIGN);
    job->panel_b_bytes = job->depth * kernels->width * size;
}

static void run_pass(struct flex_device *device, struct blocked *job)
{
    const int64_t blocks =
        flex_divide_up(job->last_k - job->first_k, job->depth);
    const int64_t panel_bytes =
        (job->panel_a_bytes + job->panel_b_bytes) / 2 * (blocks + !blocks) + 1;
    const int64_t tasks =
        flex_divide_up(job->panels_a, job->task_a) * job->tasks_b;
    const double flops = (double)job->gemm->m * (double)job->gemm->n *
                         (2.0 * (double)(job->last_k - job->first_k) +
                          (job->gemm->c ? 0 : OWN_FLOPS));
    /* Whole products below the threshold stay on one thread. */
    const int64_t grain = flops < 4.0 * TASK_FLOPS ? tasks : 1;
    const int64_t pack_count =
        job->panels_a - job->direct_a + job->panels_b - job->direct_b;

    flex_parallel(device, pack_count,
                  grain == 1 ? flex_divide_up(PACK_PIECE_BYTES, panel_bytes)
                             : pack_count,
                  pack_range, job);
    flex_parallel(device, tasks, grain, task_range, job);
}

hob_status flex_gemm_blocked(struct flex_device *device,
                             const struct flex_gemm *gemm)
{
    struct blocked job = {
        .gemm = gemm,
        .device = device,
        .kernels = &device->blas->kernels[flex_gemm_type_of(gemm->dtype)]};
    _Alignas(FLEX_ALIGN) char stack[STACK_BYTES];
    char *scratch = stack;
    int64_t bytes_a, bytes_b, blocks, total_bytes;

    plan_panels(&job);
    plan_tasks(&job, device);
    /* Cannot overflow: no larger than twice the operands plus a panel. */
    bytes_a = (job.panels_a - job.direct_a) * job.panel_a_bytes;
    bytes_b = (job.panels_b - job.direct_b) * job.panel_b_bytes;
    blocks = flex_least(flex_divide_up(gemm->k, job.depth),
                        1 + PACK_LIMIT_BYTES / (bytes_a + bytes_b + 1));
    if (!gemm->c && blocks * job.depth < gemm->k)
        return flex_gemm_in_scratch(device, gemm, flex_gemm_blocked);
    total_bytes = (bytes_a + bytes_b) * blocks;
    if (total_bytes > STACK_BYTES) {
        scratch = flex_scratch_take(device, (uint64_t)total_bytes);
        if (!scratch)
            return HOB_ERR_MEMORY;
    }
    job.packed_b = scratch;
    job.packed_a = scratch + blocks * bytes_b;
    do {
        job.last_k = flex_least(gemm->k, job.first_k + blocks * job.depth);
        run_pass(device, &job);
        job.first_k = job.last_k;
    } while (job.first_k < gemm->k);
    if (scratch != stack)
        flex_scratch_give(device, scratch, (uint64_t)total_bytes);
    return job.failed ? HOB_ERR_MEMORY : HOB_OK;
}
