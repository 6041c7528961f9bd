/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_run.c - the blocks of a run on the host's threads, in one of four
 * ways: elements alone; rows, some or one or a part of one at a time; columns,
 * rows that lie side by side; and, in fused_shared.c, rows that all share.
 */
#include "fused.h"

#include "move.h"

/* ---- elements ---- */

void fused_blocks(struct fused_thread *thread, const struct fused_pass *pass,
                  int64_t first, int64_t last, struct fused_rows_part *part)
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
            fused_kept(thread, job->kept ? first : first % job->n);
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
    struct fused_rows_part part = {.rows = 1};

    fused_blocks(thread, &thread->job->plan->passes[0], first, last, &part);
}

static void elements_piece(void *context, int64_t first, int64_t last,
                           uint32_t worker)
{
    struct fused_job *job = context;
    const struct fused_pass *pass = &job->plan->passes[0];
    struct fused_rows_part part = {.rows = 1};
    struct fused_thread thread;

    (void)worker;
    if (fused_thread_begin(&thread, job, NULL))
        return;
    while (first < last && job->skips) {
        const int64_t n = flex_least(last - first, job->part);

        begin_part(&thread, first, n);
        fused_blocks(&thread, pass, first, first + n, &part);
        end_part(&thread, n);
        first += n;
    }
    fused_blocks(&thread, pass, first, last, &part);
    fused_thread_end(&thread);
}

/* ---- rows ---- */

/* Bring near where N elements from FIRST on will be stored, while other things
 * are done with what they follow from: of stores alone few wait at a time. */
static void expect_outputs(const struct fused_job *job, int64_t first,
                           int64_t n)
{
    enum { MOST = 16 << 10 }; /* bytes: more would push out what is near */

    for (uint32_t i = 0; i < job->plan->output_count; i++) {
        const struct flex_loop *loop = &job->out[i].loop;
        const int64_t size = loop->size;

        if (job->out[i].is_far && n * size <= MOST)
            flex_move_kernels(job->device)
                ->expect(loop->data + first * size, n * size);
    }
}

/* COUNT rows from FIRST on, in one block. */
static void run_group(struct fused_thread *thread, int64_t first, int64_t count)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;
    const struct fused_rows_part part = {
        .row = job->n, .rows = count, .at = first};
    const int64_t at = first * job->n, n = count * job->n;
    uint32_t inputs = 0;

    for (uint32_t p = 0; p < plan->pass_count; p++)
        inputs |= plan->passes[p].inputs;
    expect_outputs(job, at, n);
    if (n)
        fused_fetch(thread, inputs, at, n);
    for (uint32_t p = 0; p < plan->pass_count; p++) {
        const struct fused_pass *pass = &plan->passes[p];

        fused_pass_begin(thread, p, count);
        if (n) {
            fused_targets(thread, pass, at, n);
            fused_instructions(thread, pass->first, pass->end, n, &part);
            fused_store(thread, pass, at, n);
        }
        fused_pass_end(thread, p, 0, count);
    }
}

/* Row INDEX, block by block in each pass. */
static void run_row(struct fused_thread *thread, int64_t index)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;

    for (uint32_t p = 0; p < plan->pass_count; p++) {
        struct fused_rows_part part = {.rows = 1};

        fused_pass_begin(thread, p, 1);
        fused_blocks(thread, &plan->passes[p], index * job->n,
                     (index + 1) * job->n, &part);
        fused_pass_end(thread, p, 0, 1);
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

        fused_rows_load(&thread, i, count);
        if (job->group)
            run_group(&thread, i, count);
        else
            run_row(&thread, i);
        fused_pass_begin(&thread, job->plan->pass_count, count);
        fused_rows_store(&thread, i, count);
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
        struct fused_rows_part part = {.row = 1, .rows = count};

        fused_pass_begin(thread, p, count);
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
        fused_pass_end(thread, p, 0, count);
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

        fused_rows_load(&thread, i, count);
        run_strip(&thread, i, count);
        fused_pass_begin(&thread, job->plan->pass_count, count);
        fused_rows_store(&thread, i, count);
    }
    fused_thread_end(&thread);
}

/* ---- all ---- */

static int is_vector(const struct fused_job_input *in)
{
    return in->walk == FUSED_VECTOR || in->walk == FUSED_CHANNELS;
}

/* Vectors of halves that are the same everywhere are converted once. */
static hob_status take_vectors(struct fused_job *job)
{
    for (uint32_t i = 0; i < job->plan->input_count; i++) {
        struct fused_job_input *in = &job->in[i];

        if (!is_vector(in) || !in->load)
            continue;
        in->vector = flex_scratch_take(job->device,
                                       (uint64_t)in->length * sizeof(float));
        if (!in->vector)
            return HOB_ERR_MEMORY;
        in->load(in->vector, in->loop.data, in->length);
    }
    return HOB_OK;
}

static void give_vectors(struct fused_job *job)
{
    for (uint32_t i = 0; i < job->plan->input_count; i++) {
        struct fused_job_input *in = &job->in[i];

        if (is_vector(in) && in->vector != in->loop.data)
            flex_scratch_give(job->device, in->vector,
                              (uint64_t)in->length * sizeof(float));
    }
}

static hob_status run(struct fused_job *job)
{
    const int64_t piece = FUSED_PIECE / (1 + job->plan->cost);

    if (job->way == FUSED_BY_ALL)
        return fused_run_shared(job);
    if (job->way == FUSED_BY_COLUMNS) {
        flex_parallel(job->device, job->rows, job->group, columns_piece, job);
    } else if (job->way == FUSED_BY_ROWS) {
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
