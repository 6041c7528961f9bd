/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward.c - flash.attention_grad on flex.
 *
 * Scores are computed again, once, a panel of queries by all keys at a time:
 * such a row of panels grows with the number of keys only. With p the weights,
 * g the gradient and o the result of attention:
 *
 *   dv = p^T g,  ds = p (g v^T - delta),  delta = sum(g o)
 *   dq = ds k scale,  dk = ds^T q scale
 *
 * A task is a range of queries of one batch entry; keys and values lie
 * converted in its thread's memory. It sums up dk and dv for all keys. Where
 * there are few batch entries, several tasks share one: their sums are added up
 * in the order of the queries afterwards.
 */
#include "job.h"

#include <math.h>
#include <string.h>

/* Tasks to have, if there are that many, and queries to a task at least. */
enum { TASKS = 16, QUERIES_LEAST = 256 };

/* log2(e), by which queries are loaded. */
static const double log2_e = 1.4426950408889634;

struct backward {
    struct flash_job job;
    int64_t t_room;           /* keys up to a multiple of a tile */
    int64_t d_wide, d_v_wide; /* columns up to a multiple of lanes */
    int64_t splits;           /* tasks of a batch entry */
    int64_t split;            /* queries of each but the last */
    int64_t sums_bytes;       /* of a task */
    char *sums;               /* of each task: dk, then dv, see below */
};

/* A thread's part of the workspace. Sums and rows of queries lie in column
 * panels: lanes columns of all rows, one panel after the other. */
struct part {
    char *key, *value;            /* blocks of all keys */
    char *query, *grad;           /* panels, one row a column of q, of g */
    char *query_rows, *grad_rows; /* column panels */
    char *d_query;                /* a panel */
    char *weights;                /* a panel, one row a key: of all keys */
    char *slopes;                 /* the same, of a block of them */
    char *max, *sum, *delta;
    void *factors;
};

static int64_t lay_out(const struct backward *run, uint32_t worker,
                       struct part *out)
{
    const struct flash_job *job = &run->job;
    const int64_t lanes = job->kernels->lanes;
    struct flash_cursor at = {job->kernels->size, 0, flash_part(job, worker)};

    out->key = flash_take(&at, run->t_room * job->d_room);
    out->value = flash_take(&at, run->t_room * job->d_v_room);
    out->query = flash_take(&at, lanes * job->d);
    out->grad = flash_take(&at, lanes * job->d_v);
    out->query_rows = flash_take(&at, lanes * run->d_wide);
    out->grad_rows = flash_take(&at, lanes * run->d_v_wide);
    out->d_query = flash_take(&at, lanes * job->d_room);
    out->weights = flash_take(&at, lanes * run->t_room);
    out->slopes = flash_take(&at, lanes * FLASH_BLOCK);
    out->max = flash_take(&at, lanes);
    out->sum = flash_take(&at, lanes);
    out->delta = flash_take(&at, lanes);
    out->factors = flash_take(&at, lanes);
    return at.used;
}

/* Some queries of a batch entry, at most lanes of them. */
struct place {
    int64_t batch, query, queries;
    int64_t seen;     /* keys from which on they see nothing */
    uint8_t dead[64]; /* all keys are hidden */
};

/* The rows of PLACE of OPERAND, WIDTH columns, as column panels. */
static void load_rows(const struct flash_job *job,
                      const struct flash_operand *operand,
                      const struct place *place, int64_t width, double factor,
                      char *out)
{
    const int64_t lanes = job->kernels->lanes, size = job->kernels->size;
    struct flash_matrix from =
        flash_matrix_at(job, operand, place->batch, place->query);
    const int64_t step =
        lanes * from.column * (int64_t)hob_dtype_size(from.dtype);

    for (int64_t c = 0; c < width; c += lanes, from.data += step)
        job->kernels->load_block(out + c * lanes * size, lanes, &from,
                                 place->queries, flash_least(lanes, width - c),
                                 factor);
}

/* Nothing flows through what is dead: its gradient becomes 0. */
static void clear_dead(const struct backward *run, const struct part *part,
                       const struct place *place)
{
    const struct flash_job *job = &run->job;
    const int64_t lanes = job->kernels->lanes;

    for (int64_t i = 0; i < place->queries; i++) {
        if (!place->dead[i])
            continue;
        flash_put(job, part->delta, i, 0);
        for (int64_t c = 0; c < job->d_v; c++)
            flash_put(job, part->grad, c * lanes + i, 0);
        for (int64_t c = 0; c < run->d_v_wide; c++)
            flash_put(job, part->grad_rows,
                      c / lanes * lanes * lanes + i * lanes + c % lanes, 0);
    }
}

static void load_queries(const struct backward *run, const struct part *part,
                         const struct place *place)
{
    const struct flash_job *job = &run->job;
    const struct flash_kernels *kernels = job->kernels;
    const struct flash_matrix q =
        flash_matrix_at(job, &job->q, place->batch, place->query);
    const struct flash_matrix g =
        flash_matrix_at(job, &job->grad, place->batch, place->query);
    const struct flash_matrix out =
        flash_matrix_at(job, &job->out, place->batch, place->query);

    kernels->load_panel(part->query, &q, place->queries, job->d,
                        job->scale * log2_e);
    kernels->load_panel(part->grad, &g, place->queries, job->d_v, 1);
    load_rows(job, &job->q, place, job->d, job->scale, part->query_rows);
    load_rows(job, &job->grad, place, job->d_v, 1, part->grad_rows);
    for (int64_t i = 0; i < kernels->lanes; i++) {
        flash_put(job, part->max, i, -INFINITY);
        flash_put(job, part->sum, i, 0);
        flash_put(job, part->delta, i,
                  i < place->queries ? kernels->row_dot(&g, &out, i, job->d_v)
                                     : 0);
    }
    memset(part->d_query, 0,
           (size_t)(kernels->lanes * job->d_room * kernels->size));
}

/* The weights of all keys that PLACE sees, and factors, by which to multiply
 * them for their sum to be 1. */
static void weigh(const struct backward *run, const struct part *part,
                  struct place *place)
{
    const struct flash_job *job = &run->job;
    const struct flash_kernels *kernels = job->kernels;
    const int64_t bytes = kernels->lanes * kernels->size;
    const int64_t seen = place->seen;

    for (int64_t key = 0; key < seen; key += FLASH_BLOCK) {
        const int64_t keys = flash_least(FLASH_BLOCK, seen - key);
        char *scores = part->weights + key * bytes;

        kernels->multiply(scores, part->key + key * job->d_room * kernels->size,
                          job->d_room, keys, job->d, part->query);
        flash_hide_keys(job, place->batch, scores, key, keys, place->query,
                        place->queries);
    }
    kernels->softmax_step(part->weights, seen, part->max, part->sum,
                          part->factors);
    for (int64_t i = 0; i < kernels->lanes; i++) {
        const double sum = flash_get(job, part->sum, i);

        if (i < place->queries)
            place->dead[i] = sum == 0 && flash_query_is_dead(job, place->batch,
                                                             place->query + i);
        /* Where all scores are -inf but not hidden, weights are NaN. */
        flash_put(job, part->factors, i,
                  i >= place->queries || place->dead[i] ? 0
                  : sum == 0                            ? (double)NAN
                                                        : 1 / sum);
    }
}

/* SUMS, column panels of WIDTH, += the panel WEIGHTS of KEYS keys from KEY on,
 * times ROWS. */
static void add_product(const struct backward *run, char *sums, int64_t width,
                        int64_t key, int64_t keys, const void *weights,
                        const char *rows, int64_t queries)
{
    const struct flash_kernels *kernels = run->job.kernels;
    const int64_t lanes = kernels->lanes, size = kernels->size;

    for (int64_t c = 0; c < width; c += lanes)
        kernels->multiply_add(sums + (c * run->t_room + key * lanes) * size,
                              weights, lanes, keys, queries,
                              rows + c * lanes * size);
}

/* What KEYS keys from KEY on add to all three gradients. */
static void step(const struct backward *run, const struct part *part,
                 const struct place *place, int64_t key, int64_t keys,
                 char *d_key, char *d_value)
{
    const struct flash_job *job = &run->job;
    const struct flash_kernels *kernels = job->kernels;
    char *weights = part->weights + key * kernels->lanes * kernels->size;

    kernels->multiply(part->slopes,
                      part->value + key * job->d_v_room * kernels->size,
                      job->d_v_room, keys, job->d_v, part->grad);
    kernels->slopes(weights, part->slopes, keys, part->factors, part->delta);
    kernels->multiply_turned(part->d_query,
                             part->key + key * job->d_room * kernels->size,
                             job->d_room, job->d, keys, part->slopes, NULL);
    add_product(run, d_key, job->d, key, keys, part->slopes, part->query_rows,
                place->queries);
    add_product(run, d_value, job->d_v, key, keys, weights, part->grad_rows,
                place->queries);
}

/* SUMS, column panels of WIDTH, to the rows of OPERAND. */
static void store_sums(const struct backward *run, const char *sums,
                       const struct flash_operand *operand, int64_t batch,
                       int64_t width)
{
    const struct flash_job *job = &run->job;
    const int64_t lanes = job->kernels->lanes;
    struct flash_matrix to = flash_matrix_at(job, operand, batch, 0);
    const int64_t step = lanes * to.column * (int64_t)hob_dtype_size(to.dtype);

    for (int64_t c = 0; c < width; c += lanes, to.data += step)
        job->kernels->store_block(
            &to, sums + c * run->t_room * job->kernels->size, lanes, job->s_k,
            flash_least(lanes, width - c));
}

static int64_t d_key_bytes(const struct backward *run)
{
    return run->t_room * run->d_wide * run->job.kernels->size;
}

static void store_both(const struct backward *run, const char *sums,
                       int64_t batch)
{
    store_sums(run, sums, &run->job.dk, batch, run->job.d);
    store_sums(run, sums + d_key_bytes(run), &run->job.dv, batch, run->job.d_v);
}

/* The queries of PLACE, with all keys. */
static void run_panel(const struct backward *run, const struct part *part,
                      struct place *place, int skips, char *sums)
{
    const struct flash_job *job = &run->job;
    const struct flash_kernels *kernels = job->kernels;
    const int64_t last = place->query + place->queries - 1 + job->offset;
    const struct flash_matrix dq =
        flash_matrix_at(job, &job->dq, place->batch, place->query);

    load_queries(run, part, place);
    place->seen = job->s_k;
    if (skips && kernels->is_finite(part->query, kernels->lanes, job->d) &&
        kernels->is_finite(part->grad, kernels->lanes, job->d_v))
        place->seen = last < 0 ? 0 : flash_least(job->s_k, last + 1);
    weigh(run, part, place);
    clear_dead(run, part, place);
    for (int64_t key = 0; key < place->seen; key += FLASH_BLOCK)
        step(run, part, place, key, flash_least(FLASH_BLOCK, place->seen - key),
             sums, sums + d_key_bytes(run));
    for (int64_t i = 0; i < place->queries; i++)
        flash_put(job, part->factors, i, job->scale);
    kernels->store_panel(&dq, part->d_query, place->queries, job->d,
                         part->factors, place->dead);
}

static void run_task(const struct backward *run, const struct part *part,
                     int64_t task)
{
    const struct flash_job *job = &run->job;
    const struct flash_kernels *kernels = job->kernels;
    const int64_t batch = task / run->splits;
    const int64_t first = task % run->splits * run->split;
    const int64_t end = flash_least(first + run->split, job->s_q);
    const struct flash_matrix k = flash_matrix_at(job, &job->k, batch, 0);
    const struct flash_matrix v = flash_matrix_at(job, &job->v, batch, 0);
    char *sums = run->sums + task * run->sums_bytes;
    int skips;

    kernels->load_block(part->key, job->d_room, &k, job->s_k, job->d, 1);
    kernels->load_block(part->value, job->d_v_room, &v, job->s_k, job->d_v, 1);
    /* A weight of 0 makes NaN of what is infinite: then skip nothing. */
    skips = job->causal &&
            kernels->is_finite(part->key, job->d_room, job->s_k) &&
            kernels->is_finite(part->value, job->d_v_room, job->s_k);
    memset(sums, 0, (size_t)run->sums_bytes);
    for (int64_t i = first; i < end; i += kernels->lanes) {
        struct place place = {.batch = batch,
                              .query = i,
                              .queries = flash_least(kernels->lanes, end - i)};

        run_panel(run, part, &place, skips, sums);
    }
    if (run->splits == 1)
        store_both(run, sums, batch);
}

static void task_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct backward *run = context;
    struct part part;

    (void)lay_out(run, worker, &part);
    for (int64_t task = first; task < last; task++)
        run_task(run, &part, task);
}

/* Add up the sums of batch entries FIRST .. LAST - 1 and store them. */
static void collect_range(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    const struct backward *run = context;
    const struct flash_kernels *kernels = run->job.kernels;
    const int64_t rows = run->sums_bytes / (kernels->lanes * kernels->size);

    (void)worker;
    for (int64_t batch = first; batch < last; batch++) {
        char *sums = run->sums + batch * run->splits * run->sums_bytes;

        for (int64_t i = 1; i < run->splits; i++)
            kernels->add(sums, sums + i * run->sums_bytes, rows);
        store_both(run, sums, batch);
    }
}

/* ---- the op ---- */

/* What CALL needs, before it has workspace; *OUT_BYTES in all. */
static hob_status plan(const struct hob_call *call, struct backward *run,
                       uint64_t *out_bytes)
{
    const uint32_t threads = call->host->thread_count(call->host);
    struct flash_job *job = &run->job;
    hob_status st = flash_job_open(call, &flash_attention_grad_places, job);
    struct part part;
    int64_t lanes;

    if (st)
        return st;
    lanes = job->kernels->lanes;
    run->t_room = flash_round_up(job->s_k, job->kernels->tile);
    run->d_wide = flash_round_up(job->d, lanes);
    run->d_v_wide = flash_round_up(job->d_v, lanes);
    run->splits = job->batches ? TASKS / job->batches : 0;
    run->splits = flash_least(run->splits, job->s_q / QUERIES_LEAST);
    run->splits = run->splits < 1 ? 1 : run->splits;
    run->split =
        flash_round_up((job->s_q + run->splits - 1) / run->splits, lanes);
    if (run->split)
        run->splits = (job->s_q + run->split - 1) / run->split;
    run->sums_bytes =
        run->t_room * (run->d_wide + run->d_v_wide) * job->kernels->size;
    job->worker_bytes = lay_out(run, 0, &part);
    *out_bytes =
        (uint64_t)job->worker_bytes * threads +
        (uint64_t)(job->batches * run->splits) * (uint64_t)run->sums_bytes;
    return HOB_OK;
}

hob_status flash_attention_grad_flex_prepare(void *device,
                                             const struct hob_call *call,
                                             struct hob_prepare *out)
{
    struct backward run = {.sums = NULL};

    (void)device;
    return plan(call, &run, &out->workspace_bytes);
}

hob_status flash_attention_grad_flex(void *device, struct hob_call *call)
{
    const struct hob_host *host = call->host;
    struct backward run = {.sums = NULL};
    struct flash_job *job = &run.job;
    uint64_t bytes;
    hob_status st = plan(call, &run, &bytes);

    (void)device;
    if (st)
        return st;
    flash_job_start(call, job);
    run.sums = job->workers + job->worker_bytes * host->thread_count(host);
    host->parallel_for(host, job->batches * run.splits, 1, task_range, &run);
    if (run.splits > 1)
        host->parallel_for(host, job->batches, 1, collect_range, &run);
    return HOB_OK;
}
