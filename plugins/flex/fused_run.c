/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_run.c - the blocks of a run on the host's threads, in one of four
 * ways: elements alone; rows, some or one or a part of one at a time; columns,
 * rows that lie side by side; and a few long rows, each of whose passes is
 * shared by all threads.
 */
#include "fused.h"

#include "move.h"

#include <math.h>
#include <string.h>

enum {
    PIECE_COST = 1 << 17, /* of a piece, in elements of an add */
    LONG_PIECE = 1 << 15
};

/* ---- elements ---- */

/* Elements FIRST .. LAST - 1 through one pass, by blocks. */
static void run_blocks(struct fused_thread *thread,
                       const struct fused_pass *pass, int64_t first,
                       int64_t last, struct fused_rows_part *part)
{
    const struct fused_job *job = thread->job;
    const int64_t most =
        job->period ? job->block - job->block % job->period : job->block;

    while (first < last) {
        int64_t n = flex_least(last - first, most);

        if (job->row)
            n = flex_least(n, job->row - first % job->row);
        part->row = n;
        fused_fetch(thread, pass->inputs, first, n);
        if (job->plan->kept_bytes)
            fused_kept(thread, first % job->n);
        fused_targets(thread, pass, first, n);
        fused_instructions(thread, pass->first, pass->end, n, part);
        fused_store(thread, pass, first, n);
        part->joins = 1;
        first += n;
    }
}

/* Bring N elements from FIRST on of the inputs that skip together; without
 * memory for it they are fetched by blocks. */
static void begin_part(struct fused_thread *thread, int64_t first, int64_t n)
{
    const struct fused_job *job = thread->job;

    thread->part_at = first;
    for (uint32_t i = 0; i < job->plan->input_count; i++) {
        const struct flex_loop *loop = &job->in[i].loop;

        if (!job->in[i].skips)
            continue;
        thread->part[i] =
            flex_scratch_take(job->device, (uint64_t)n * loop->size);
        if (thread->part[i])
            flex_move_range(job->device, loop, first, n, thread->part[i]);
    }
}

static void end_part(struct fused_thread *thread, int64_t n)
{
    const struct fused_job *job = thread->job;

    for (uint32_t i = 0; i < job->plan->input_count; i++) {
        if (thread->part[i])
            flex_scratch_give(job->device, thread->part[i],
                              (uint64_t)n * job->in[i].loop.size);
        thread->part[i] = NULL;
    }
}

void fused_elements(struct fused_thread *thread, int64_t first, int64_t last)
{
    struct fused_rows_part part = {0, 0};

    run_blocks(thread, &thread->job->plan->passes[0], first, last, &part);
}

static void elements_piece(void *context, int64_t first, int64_t last,
                           uint32_t worker)
{
    struct fused_job *job = context;
    const struct fused_pass *pass = &job->plan->passes[0];
    struct fused_rows_part part = {0, 0};
    struct fused_thread thread;

    (void)worker;
    if (fused_thread_begin(&thread, job, NULL))
        return;
    while (first < last && job->skips) {
        const int64_t n = flex_least(last - first, job->part);

        begin_part(&thread, first, n);
        run_blocks(&thread, pass, first, first + n, &part);
        end_part(&thread, n);
        first += n;
    }
    run_blocks(&thread, pass, first, last, &part);
    fused_thread_end(&thread);
}

/* ---- rows ---- */

/* COUNT elements of ROW operand from row FIRST on to its value, or back. */
static void load_rows(struct fused_thread *thread, int64_t first, int64_t count)
{
    const struct fused_job *job = thread->job;

    for (uint32_t i = 0; i < job->plan->input_count; i++) {
        const struct fused_job_input *in = &job->in[i];
        char stored[FUSED_COLUMNS * sizeof(uint16_t)];

        if (!in->is_row)
            continue;
        flex_loop_gather(&in->loop, first, count,
                         in->load ? stored : (char *)thread->at[i]);
        if (in->load)
            in->load(thread->at[i], stored, count);
    }
}

static void store_rows(struct fused_thread *thread, int64_t first,
                       int64_t count)
{
    const struct fused_job *job = thread->job;

    for (uint32_t i = 0; i < job->plan->output_count; i++) {
        const struct fused_output *planned = &job->plan->outputs[i];
        const struct fused_job_output *out = &job->out[i];
        char narrow[FUSED_COLUMNS * sizeof(uint16_t)];
        const void *from = thread->at[planned->value];

        if (!planned->is_row)
            continue;
        if (out->store) {
            out->store(narrow, from, count);
            from = narrow;
        }
        flex_loop_scatter(&out->loop, first, count, from);
    }
}

#define T uint32_t
#define SUFFIX(name) name##_32
#include "fused_expand_tmpl.h"
#define T uint64_t
#define SUFFIX(name) name##_64
#include "fused_expand_tmpl.h"

/* Each of COUNT values of SIZE bytes N times. */
static void expand_rows(char *out, const char *in, int64_t count, int64_t n,
                        uint32_t size)
{
    if (size == 4)
        expand_32(out, in, count, n);
    else if (size == 8)
        expand_64(out, in, count, n);
    else
        for (int64_t r = 0; r < count; r++)
            flex_copy_strided(out + r * n * size, 1, in + r * size, 0, n, size);
}

/* Values of COUNT rows, those FIRST .. END - 1 of plan->expanded, for each
 * element of a block of theirs. */
static void expand(struct fused_thread *thread, uint32_t first, uint32_t end,
                   int64_t count)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;

    for (uint32_t i = first; i < end; i++) {
        const struct fused_value *value = &plan->values[plan->expanded[i]];
        const char *from = thread->at[value->of];
        char *slot = thread->arena + value->offset * (uint64_t)job->block;

        if (job->is_columns && job->places == 1) {
            slot = thread->at[value->of];
        } else if (job->is_columns) {
            for (int64_t k = 0; k < job->places; k++)
                memcpy(slot + k * count * value->size, from,
                       (size_t)(count * value->size));
        } else if (job->group > 1) {
            expand_rows(slot, from, count, job->n, value->size);
        } else if (value->is_used) {
            flex_copy_strided(slot, 1, from, 0, flex_least(job->n, job->block),
                              value->size);
        } else {
            slot = thread->at[value->of];
        }
        thread->at[plan->expanded[i]] = slot;
    }
}

/* What pass P begins with: values of COUNT rows. */
static void begin_pass(struct fused_thread *thread, uint32_t p, int64_t count)
{
    const struct fused_pass *pass = &thread->job->plan->passes[p];

    fused_instructions(thread, pass->row_first, pass->row_end, count, NULL);
    expand(thread, pass->expanded_first, pass->expanded_end, count);
}

/* What the folds of pass P have of COUNT rows as their results. */
static void end_pass(struct fused_thread *thread, uint32_t p, int64_t count)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;

    for (uint32_t i = 0; i < plan->fold_count; i++) {
        const struct fused_fold *fold = &plan->folds[i];
        char *acc = thread->rows + fold->offset * (uint64_t)job->pitch;
        char narrow[FUSED_COLUMNS * sizeof(uint16_t)];
        void *out = thread->at[fold->out];

        if (fold->pass != p)
            continue;
        for (int64_t r = 0; r < count && job->n == 0; r++) {
            union flex_cell none;

            flex_reduction_identity(&fold->is, &none);
            if (fold->is.mean)
                none.f64 = NAN;
            memcpy(acc + r * fold->is.acc_size, &none, fold->is.acc_size);
        }
        flex_reduction_finish(&fold->is, fold->half ? narrow : out, acc, count,
                              job->n);
        if (fold->half)
            job->device->kernels->load_f32[fold->half](out, narrow, count);
    }
}

/* COUNT rows from FIRST on, in one block. */
static void run_group(struct fused_thread *thread, int64_t first, int64_t count)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;
    const struct fused_rows_part part = {job->n, 0};
    const int64_t at = first * job->n, n = count * job->n;
    uint32_t inputs = 0;

    for (uint32_t p = 0; p < plan->pass_count; p++)
        inputs |= plan->passes[p].inputs;
    if (n)
        fused_fetch(thread, inputs, at, n);
    for (uint32_t p = 0; p < plan->pass_count; p++) {
        const struct fused_pass *pass = &plan->passes[p];

        begin_pass(thread, p, count);
        if (n) {
            fused_targets(thread, pass, at, n);
            fused_instructions(thread, pass->first, pass->end, n, &part);
            fused_store(thread, pass, at, n);
        }
        end_pass(thread, p, count);
    }
}

/* Row INDEX, block by block in each pass. */
static void run_row(struct fused_thread *thread, int64_t index)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;
    struct fused_rows_part part;

    for (uint32_t p = 0; p < plan->pass_count; p++) {
        begin_pass(thread, p, 1);
        part.joins = 0;
        run_blocks(thread, &plan->passes[p], index * job->n,
                   (index + 1) * job->n, &part);
        end_pass(thread, p, 1);
    }
}

static void rows_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    struct fused_job *job = context;
    const int64_t group = job->group ? job->group : 1;
    struct fused_thread thread;

    (void)worker;
    if (fused_thread_begin(&thread, job, NULL))
        return;
    for (int64_t i = first; i < last; i += group) {
        const int64_t count = flex_least(group, last - i);

        load_rows(&thread, i, count);
        if (job->group)
            run_group(&thread, i, count);
        else
            run_row(&thread, i);
        begin_pass(&thread, job->plan->pass_count, count);
        store_rows(&thread, i, count);
    }
    fused_thread_end(&thread);
}

/* ---- columns ---- */

/* COUNT rows from FIRST on, some places of all of them in a block. */
static void run_strip(struct fused_thread *thread, int64_t first, int64_t count)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;

    for (uint32_t p = 0; p < plan->pass_count; p++) {
        const struct fused_pass *pass = &plan->passes[p];
        struct fused_rows_part part = {count, 0};

        begin_pass(thread, p, count);
        for (int64_t k = 0; k < job->n; k += job->places) {
            const int64_t n = flex_least(job->places, job->n - k) * count;
            const int64_t at = k * job->rows + first;

            fused_fetch(thread, pass->inputs, at, n);
            if (plan->kept_bytes)
                fused_kept(thread, k * count);
            fused_targets(thread, pass, at, n);
            fused_instructions(thread, pass->first, pass->end, n, &part);
            fused_store(thread, pass, at, n);
            part.joins = 1;
        }
        end_pass(thread, p, count);
    }
}

static void columns_piece(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    struct fused_job *job = context;
    struct fused_thread thread;

    (void)worker;
    if (fused_thread_begin(&thread, job, NULL))
        return;
    for (int64_t i = first; i < last; i += job->group) {
        const int64_t count = flex_least(job->group, last - i);

        load_rows(&thread, i, count);
        run_strip(&thread, i, count);
        begin_pass(&thread, job->plan->pass_count, count);
        store_rows(&thread, i, count);
    }
    fused_thread_end(&thread);
}

/* ---- long rows ---- */

/* A pass over all rows: a piece's accumulators are joined when all are done,
 * and the rows' values lie in the caller's arena. */
struct long_rows {
    struct fused_job *job;
    char *rows;
    union flex_cell *partials; /* of each piece, of each fold */
    int64_t pieces;            /* of a row */
    uint32_t p;
};

static void long_piece(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct long_rows *all = context;
    struct fused_job *job = all->job;
    const struct fused_plan *plan = job->plan;
    const struct fused_pass *pass = &plan->passes[all->p];
    struct fused_thread thread;

    (void)worker;
    if (fused_thread_begin(&thread, job, all->rows))
        return;
    for (int64_t i = first; i < last; i++) {
        const int64_t row = i / all->pieces;
        const int64_t begin = i % all->pieces * LONG_PIECE;
        const int64_t end = flex_least(begin + LONG_PIECE, job->n);
        struct fused_rows_part part = {0, 0};

        thread.partials = all->partials + i * plan->fold_count;
        for (uint32_t v = 0; v < plan->value_count; v++)
            if (plan->values[v].kind == FUSED_ROW)
                thread.at[v] = all->rows +
                               plan->values[v].offset * (uint64_t)job->pitch +
                               row * plan->values[v].size;
        expand(&thread, 0, pass->expanded_end, 1); /* earlier passes' too */
        run_blocks(&thread, pass, row * job->n + begin, row * job->n + end,
                   &part);
    }
    fused_thread_end(&thread);
}

/* The accumulators of pass P's folds from those of the pieces, in order. */
static void join_partials(const struct long_rows *all)
{
    const struct fused_job *job = all->job;
    const struct fused_plan *plan = job->plan;

    for (uint32_t f = 0; f < plan->fold_count; f++) {
        const struct flex_reduction *is = &plan->folds[f].is;
        char *acc = all->rows + plan->folds[f].offset * (uint64_t)job->pitch;

        if (plan->folds[f].pass != all->p)
            continue;
        for (int64_t r = 0; r < job->rows; r++, acc += is->acc_size) {
            const union flex_cell *own =
                all->partials + r * all->pieces * plan->fold_count + f;

            memcpy(acc, own, is->acc_size);
            for (int64_t i = 1; i < all->pieces; i++)
                is->combine(acc, own + i * plan->fold_count, 0, 1, 1);
        }
    }
}

static hob_status run_long(struct fused_job *job)
{
    const struct fused_plan *plan = job->plan;
    struct long_rows all = {.job = job};
    struct fused_thread thread;
    uint64_t bytes;
    hob_status st;

    all.pieces = flex_divide_up(job->n, LONG_PIECE);
    bytes = (uint64_t)(all.pieces * job->rows) * plan->fold_count *
            sizeof(union flex_cell);
    st = fused_thread_begin(&thread, job, NULL);
    if (st)
        return st;
    all.rows = thread.rows;
    all.partials = flex_scratch_take(job->device, bytes);
    if (!all.partials) {
        fused_thread_end(&thread);
        return HOB_ERR_MEMORY;
    }
    load_rows(&thread, 0, job->rows);
    for (all.p = 0; all.p < plan->pass_count; all.p++) {
        const struct fused_pass *pass = &plan->passes[all.p];

        fused_instructions(&thread, pass->row_first, pass->row_end, job->rows,
                           NULL);
        flex_parallel(job->device, all.pieces * job->rows, 1, long_piece, &all);
        join_partials(&all);
        end_pass(&thread, all.p, job->rows);
    }
    begin_pass(&thread, plan->pass_count, job->rows);
    store_rows(&thread, 0, job->rows);
    flex_scratch_give(job->device, all.partials, bytes);
    fused_thread_end(&thread);
    return HOB_OK;
}

/* ---- all ---- */

/* Rows of halves that are the same everywhere are converted once. */
static hob_status take_vectors(struct fused_job *job)
{
    for (uint32_t i = 0; i < job->plan->input_count; i++) {
        struct fused_job_input *in = &job->in[i];

        if (in->walk != FUSED_VECTOR || !in->load)
            continue;
        in->vector =
            flex_scratch_take(job->device, (uint64_t)job->n * sizeof(float));
        if (!in->vector)
            return HOB_ERR_MEMORY;
        in->load(in->vector, in->loop.data, job->n);
    }
    return HOB_OK;
}

static void give_vectors(struct fused_job *job)
{
    for (uint32_t i = 0; i < job->plan->input_count; i++) {
        struct fused_job_input *in = &job->in[i];

        if (in->walk == FUSED_VECTOR && in->vector != in->loop.data)
            flex_scratch_give(job->device, in->vector,
                              (uint64_t)job->n * sizeof(float));
    }
}

static hob_status run(struct fused_job *job)
{
    const int64_t piece = PIECE_COST / (1 + job->plan->cost);

    if (job->is_long)
        return run_long(job);
    if (job->is_columns) {
        flex_parallel(job->device, job->rows, job->group, columns_piece, job);
    } else if (job->has_rows) {
        const int64_t group = job->group ? job->group : 1;
        const int64_t rows = piece / (job->n ? job->n : 1);

        flex_parallel(job->device, job->rows,
                      flex_round_up(rows ? rows : 1, group), rows_piece, job);
    } else {
        flex_parallel(job->device, job->count,
                      job->skips ? job->part : flex_round_up(piece, job->block),
                      elements_piece, job);
    }
    return job->failed ? HOB_ERR_MEMORY : HOB_OK;
}

hob_status fused_run(struct fused_job *job)
{
    hob_status st = take_vectors(job);

    if (!st)
        st = run(job);
    give_vectors(job);
    return st;
}
