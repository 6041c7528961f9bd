/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_shared.c - rows whose passes all threads share: a few long ones, and
 * such as do not lie in one piece, as the columns of a matrix.
 *
 * A pass is cut into pieces: so many outer parts of so many rows of a batch, of
 * each so many elements. A piece has accumulators of its own, which are joined
 * in order when all are done; so results depend on sizes and strides alone. The
 * rows' values are common to all threads. Before each pass, and after the last
 * one, what follows for rows is computed some of them at a time.
 */
#include "fused.h"

#include <string.h>

struct shared {
    struct fused_job *job;
    char *rows;                /* values and accumulators of all rows */
    union flex_cell *partials; /* of each piece of a row, each fold, each row */
    int64_t outer, inner;      /* pieces of a row */
    int64_t cells;             /* of a piece of all rows */
    int64_t strips;            /* pieces of a batch's rows, side by side */
    uint32_t p;
};

/* ---- a pass ---- */

/* What a thread adds up: of each dimension of the order from where to where. */
struct piece {
    int64_t batch;
    int64_t outer, outer_end;
    int64_t row, row_end;
    int64_t inner, inner_end;
};

/* Number INDEX of all pieces; returns which of those of its rows it is. */
static int64_t find_piece(const struct shared *all, int64_t index,
                          struct piece *out)
{
    const struct fused_job *job = all->job;
    const int64_t part = index / (job->batches * all->strips);

    index %= job->batches * all->strips;
    out->batch = index / all->strips;
    out->row = index % all->strips * job->piece.rows;
    out->row_end = flex_least(out->row + job->piece.rows, job->side);
    out->outer = part / all->inner * job->piece.outer;
    out->outer_end = flex_least(out->outer + job->piece.outer, job->outer);
    out->inner = part % all->inner * job->piece.inner;
    out->inner_end = flex_least(out->inner + job->piece.inner, job->inner);
    return part;
}

/* The number of the first element of row ROW of BATCH in outer part OUTER. */
static int64_t number_of(const struct fused_job *job, int64_t batch,
                         int64_t outer, int64_t row)
{
    return ((batch * job->outer + outer) * job->side + row) * job->inner;
}

/* In blocks that have all of some rows' parts. */
static void run_groups(struct fused_thread *thread,
                       const struct fused_pass *pass, const struct piece *piece)
{
    const struct fused_job *job = thread->job;
    const int64_t own = piece->batch * job->side;
    const int is_all = job->group == job->side;

    if (is_all)
        fused_rows_expand(thread, 0, pass->expanded_end, own, job->side);
    for (int64_t o = piece->outer; o < piece->outer_end; o += job->places) {
        const int64_t places = flex_least(job->places, piece->outer_end - o);

        for (int64_t r = piece->row; r < piece->row_end; r += job->group) {
            const int64_t count = flex_least(job->group, piece->row_end - r);
            const int64_t first = number_of(job, piece->batch, o, r);
            const int64_t n = places * count * job->inner;
            const struct fused_rows_part part = {.row = job->inner / job->lanes,
                                                 .rows = count * job->lanes,
                                                 .first =
                                                     (own + r) * job->lanes,
                                                 .joins = o > piece->outer};

            if (!is_all)
                fused_rows_expand(thread, 0, pass->expanded_end, own + r,
                                  count);
            fused_fetch(thread, pass->inputs, first, n);
            if (job->kept)
                fused_kept(thread, first);
            fused_targets(thread, pass, first, n);
            fused_instructions(thread, pass->first, pass->end, n, &part);
            fused_store(thread, pass, first, n);
        }
    }
}

/* In blocks that have a part of one row's. */
static void run_parts(struct fused_thread *thread,
                      const struct fused_pass *pass, const struct piece *piece)
{
    const struct fused_job *job = thread->job;

    for (int64_t o = piece->outer; o < piece->outer_end; o++)
        for (int64_t r = piece->row; r < piece->row_end; r++) {
            const int64_t first = number_of(job, piece->batch, o, r);
            const int64_t row = piece->batch * job->side + r;
            struct fused_rows_part part = {
                .rows = 1, .first = row, .joins = o > piece->outer};

            fused_rows_expand(thread, 0, pass->expanded_end, row, 1);
            fused_blocks(thread, pass, first + piece->inner,
                         first + piece->inner_end, &part);
        }
}

static void pass_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct shared *all = context;
    struct fused_job *job = all->job;
    const struct fused_pass *pass = &job->plan->passes[all->p];
    struct fused_thread thread;

    (void)worker;
    if (fused_thread_begin(&thread, job, all->rows))
        return;
    for (int64_t i = first; i < last; i++) {
        struct piece piece;
        const int64_t part = find_piece(all, i, &piece);

        thread.partials = all->partials + part * all->cells;
        if (job->group)
            run_groups(&thread, pass, &piece);
        else
            run_parts(&thread, pass, &piece);
    }
    fused_thread_end(&thread);
}

/* ---- rows ---- */

/* The accumulators of pass P's folds of COUNT rows from FIRST on, from those of
 * the pieces, in order; they are written to. */
static void join_partials(const struct shared *all, uint32_t p, int64_t first,
                          int64_t count)
{
    const struct fused_job *job = all->job;
    const struct fused_plan *plan = job->plan;
    const int64_t pieces = all->outer * all->inner;

    for (uint32_t f = 0; f < plan->fold_count; f++) {
        const struct flex_reduction *is = &plan->folds[f].is;
        const int64_t lanes = job->lanes, size = is->acc_size;
        const int64_t step = all->cells * (int64_t)sizeof(union flex_cell);
        char *acc = all->rows + plan->folds[f].offset * (uint64_t)job->pitch +
                    first * size;
        char *own = (char *)(all->partials + f * job->pitch * lanes) +
                    first * lanes * size;

        if (plan->folds[f].pass != p)
            continue;
        for (int64_t i = 1; i < pieces; i++)
            is->combine(own, own + i * step, 0, 1, count * lanes);
        if (lanes == 1)
            memcpy(acc, own, (size_t)(count * size));
        for (int64_t i = 0; i < count && lanes > 1; i++)
            is->join(acc + i * size, own + i * lanes * size, lanes);
    }
}

/* Rows FIRST .. LAST - 1 between two passes. */
static void rows_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct shared *all = context;
    struct fused_job *job = all->job;
    const struct fused_plan *plan = job->plan;
    const struct fused_pass *pass = &plan->passes[all->p];
    const int64_t most = flex_least(job->block, FUSED_COLUMNS);
    struct fused_thread thread;

    (void)worker;
    if (fused_thread_begin(&thread, job, all->rows))
        return;
    for (int64_t count; first < last; first += count) {
        count = flex_least(most, last - first);
        for (uint32_t v = 0; v < plan->value_count; v++)
            if (plan->values[v].kind == FUSED_ROW)
                thread.at[v] = all->rows +
                               plan->values[v].offset * (uint64_t)job->pitch +
                               first * plan->values[v].size;
        if (all->p == 0) {
            fused_rows_load(&thread, first, count);
        } else {
            join_partials(all, all->p - 1, first, count);
            fused_pass_end(&thread, all->p - 1, first, count);
        }
        fused_instructions(&thread, pass->row_first, pass->row_end, count,
                           NULL);
        if (all->p == plan->pass_count)
            fused_rows_store(&thread, first, count);
    }
    fused_thread_end(&thread);
}

/* ---- all ---- */

/* Whether the first pass needs values of rows. */
static int has_rows_first(const struct fused_job *job)
{
    for (uint32_t i = 0; i < job->plan->input_count; i++)
        if (job->in[i].is_row)
            return 1;
    return 0;
}

/* All passes, with what is kept where it is to lie. */
static hob_status run_passes(struct fused_job *job)
{
    const struct fused_plan *plan = job->plan;
    const int64_t piece = job->piece.outer * job->piece.rows * job->piece.inner;
    const int64_t grain = flex_divide_up(FUSED_PIECE / (1 + plan->cost), piece);
    const uint64_t rows_bytes = plan->row_bytes * (uint64_t)job->pitch;
    struct shared all = {.job = job};
    union flex_cell few[512];
    char *memory = (char *)few;
    uint64_t bytes;

    all.outer = flex_divide_up(job->outer, job->piece.outer);
    all.inner = flex_divide_up(job->inner, job->piece.inner);
    all.strips = flex_divide_up(job->side, job->piece.rows);
    all.cells = plan->fold_count * job->pitch * job->lanes;
    bytes = rows_bytes + (uint64_t)(all.outer * all.inner * all.cells) *
                             sizeof(union flex_cell);
    if (bytes > sizeof(few))
        memory = flex_scratch_take(job->device, bytes);
    if (!memory)
        return HOB_ERR_MEMORY;
    all.rows = memory;
    all.partials = (union flex_cell *)(void *)(memory + rows_bytes);
    for (;; all.p++) {
        if (all.p || has_rows_first(job))
            flex_parallel(job->device, job->rows, FUSED_COLUMNS, rows_piece,
                          &all);
        if (all.p == plan->pass_count)
            break;
        flex_parallel(job->device,
                      all.outer * all.inner * all.strips * job->batches, grain,
                      pass_piece, &all);
    }
    if (memory != (char *)few)
        flex_scratch_give(job->device, memory, bytes);
    return job->failed ? HOB_ERR_MEMORY : HOB_OK;
}

hob_status fused_run_shared(struct fused_job *job)
{
    hob_status st;

    if (job->kept_bytes) {
        job->kept = flex_scratch_take(job->device, job->kept_bytes);
        if (!job->kept)
            return HOB_ERR_MEMORY;
    }
    st = run_passes(job);
    if (job->kept)
        flex_scratch_give(job->device, job->kept, job->kept_bytes);
    return st;
}
