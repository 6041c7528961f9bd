/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward.c - flash.attention_grad on flex.
 *
 * Scores and weights are computed again, block by block, twice. First by
 * blocks of queries: dq, with the softmax of forward.c, and what is known of
 * each query then, its greatest score and its sum. Then by blocks of keys: dk
 * and dv. So each task owns the results that it adds to. With p the weights,
 * g the gradient and o the result of attention:
 *
 *   dv = p^T g,  ds = p (g v^T - delta),  delta = sum(g o)
 *   dq = ds k scale,  dk = ds^T q scale
 */
#include "job.h"

#include <math.h>
#include <string.h>

/* log2(e), by which queries are loaded, and its inverse. */
static const double log2_e = 1.4426950408889634;
static const double ln_2 = 0.6931471805599453;

/* A thread's part of the workspace. "Own" is what a task computes gradients
 * for, queries or keys, in panels; the others pass by in blocks. */
struct backward {
    char *own_a, *own_b;     /* q and g, or k and v */
    char *sum_a, *sum_b;     /* dq, or dk and dv */
    void *block_a, *block_b; /* k and v, or q and g */
    void *scores, *slopes;   /* panels, one row one of the others */
    char *max, *sum, *delta;
    void *factors;
};

static int64_t lay_out(const struct flash_job *job, uint32_t worker,
                       struct backward *out)
{
    const int64_t lanes = job->kernels->lanes;
    struct flash_cursor at = {job->kernels->size, 0, flash_part(job, worker)};

    out->own_a = flash_take(&at, FLASH_BLOCK * job->d);
    out->own_b = flash_take(&at, FLASH_BLOCK * job->d_v);
    out->sum_a = flash_take(&at, FLASH_BLOCK * job->d_room);
    out->sum_b = flash_take(&at, FLASH_BLOCK * job->d_v_room);
    out->block_a = flash_take(&at, FLASH_BLOCK * job->d_room);
    out->block_b = flash_take(&at, FLASH_BLOCK * job->d_v_room);
    out->scores = flash_take(&at, FLASH_BLOCK * lanes);
    out->slopes = flash_take(&at, FLASH_BLOCK * lanes);
    out->max = flash_take(&at, FLASH_BLOCK);
    out->sum = flash_take(&at, FLASH_BLOCK);
    out->delta = flash_take(&at, FLASH_BLOCK);
    out->factors = flash_take(&at, lanes);
    return at.used;
}

/* Load panel PANEL of OPERAND: COUNT rows from ROW on. */
static void load_panel(const struct flash_job *job,
                       const struct flash_operand *operand, int64_t batch,
                       int64_t row, int64_t count, int64_t columns,
                       double factor, int64_t panel, char *panels)
{
    const struct flash_matrix from = flash_matrix_at(job, operand, batch, row);
    const int64_t bytes = columns * job->kernels->lanes * job->kernels->size;

    job->kernels->load_panel(panels + panel * bytes, &from, count, columns,
                             factor);
}

/* ---- by blocks of queries ---- */

static void query_step(const struct flash_job *job, const struct backward *part,
                       int64_t batch, int64_t first, int64_t queries,
                       int64_t panel, int64_t key, int64_t keys)
{
    const struct flash_kernels *kernels = job->kernels;
    const int64_t bytes = kernels->lanes * kernels->size;
    char *max = part->max + panel * bytes, *sum = part->sum + panel * bytes;

    kernels->multiply(part->scores, part->block_a, job->d_room, keys, job->d,
                      part->own_a + panel * job->d * bytes);
    kernels->multiply(part->slopes, part->block_b, job->d_v_room, keys,
                      job->d_v, part->own_b + panel * job->d_v * bytes);
    flash_hide_keys(job, batch, part->scores, key, keys, first, queries);
    kernels->softmax_step(part->scores, keys, max, sum, part->factors);
    kernels->score_slopes(part->scores, part->slopes, keys,
                          part->delta + panel * bytes);
    kernels->multiply_turned(part->sum_a + panel * job->d_room * bytes,
                             part->block_a, job->d_room, job->d, keys,
                             part->scores, part->factors);
}

/* Store dq and what phase two needs of the queries. */
static void finish_queries(const struct flash_job *job,
                           const struct backward *part, int64_t batch,
                           int64_t first, int64_t queries, int64_t panel)
{
    const int64_t lanes = job->kernels->lanes, size = job->kernels->size;
    const int64_t place = batch * job->s_q + first;
    const struct flash_matrix dq = flash_matrix_at(job, &job->dq, batch, first);

    for (int64_t i = 0; i < queries; i++) {
        const double sum = flash_get(job, part->sum, panel * lanes + i);
        const double max = flash_get(job, part->max, panel * lanes + i);
        const int dead = sum == 0 && flash_query_is_dead(job, batch, first + i);

        /* Where all scores are -inf but not hidden, weights are NaN. */
        flash_put(job, job->max, place + i, sum == 0 ? 0 : max);
        flash_put(job, job->inverse, place + i,
                  dead       ? 0
                  : sum == 0 ? (double)NAN
                             : 1 / sum);
        flash_put(job, job->delta, place + i,
                  dead ? 0 : flash_get(job, part->delta, panel * lanes + i));
        flash_put(job, part->factors, i, job->scale / sum);
        job->dead[place + i] = (uint8_t)dead;
    }
    job->kernels->store_panel(
        &dq, part->sum_a + panel * lanes * job->d_room * size, queries, job->d,
        part->factors, job->dead + place);
}

static void start_queries(const struct flash_job *job,
                          const struct backward *part, int64_t batch,
                          int64_t first, int64_t queries)
{
    const struct flash_matrix g =
        flash_matrix_at(job, &job->grad, batch, first);
    const struct flash_matrix out =
        flash_matrix_at(job, &job->out, batch, first);
    const int64_t lanes = job->kernels->lanes;

    memset(part->sum_a, 0,
           (size_t)(FLASH_BLOCK * job->d_room * job->kernels->size));
    for (int64_t i = 0; i < FLASH_BLOCK; i++) {
        flash_put(job, part->max, i, -INFINITY);
        flash_put(job, part->sum, i, 0);
        flash_put(job, part->delta, i,
                  i < queries ? job->kernels->row_dot(&g, &out, i, job->d_v)
                              : 0);
    }
    for (int64_t i = 0; i < queries; i += lanes) {
        const int64_t count = flash_least(lanes, queries - i);

        load_panel(job, &job->q, batch, first + i, count, job->d,
                   job->scale * log2_e, i / lanes, part->own_a);
        load_panel(job, &job->grad, batch, first + i, count, job->d_v, 1,
                   i / lanes, part->own_b);
    }
}

static void run_queries(const struct flash_job *job,
                        const struct backward *part, int64_t batch,
                        int64_t first)
{
    const struct flash_kernels *kernels = job->kernels;
    const int64_t lanes = kernels->lanes;
    const int64_t queries = flash_least(FLASH_BLOCK, job->s_q - first);

    start_queries(job, part, batch, first, queries);
    for (int64_t key = 0; key < job->s_k; key += FLASH_BLOCK) {
        const int64_t keys = flash_least(FLASH_BLOCK, job->s_k - key);
        const struct flash_matrix k = flash_matrix_at(job, &job->k, batch, key);
        const struct flash_matrix v = flash_matrix_at(job, &job->v, batch, key);
        int skips;

        kernels->load_block(part->block_a, job->d_room, &k, keys, job->d, 1);
        /* A slope of 0 makes NaN of an infinite key: then skip nothing. */
        skips = job->causal && key + keys - 1 > first + job->offset &&
                kernels->is_finite(part->block_a, job->d_room, keys);
        if (skips && key > first + queries - 1 + job->offset)
            continue;
        kernels->load_block(part->block_b, job->d_v_room, &v, keys, job->d_v,
                            1);
        for (int64_t i = 0; i < queries; i += lanes) {
            const int64_t count = flash_least(lanes, queries - i);
            const int64_t last = first + i + count - 1;
            const int64_t seen =
                skips ? flash_least(keys, last + job->offset + 1 - key) : keys;

            if (seen > 0)
                query_step(job, part, batch, first + i, count, i / lanes, key,
                           seen);
        }
    }
    for (int64_t i = 0; i < queries; i += lanes)
        finish_queries(job, part, batch, first + i,
                       flash_least(lanes, queries - i), i / lanes);
}

static void query_range(void *context, int64_t first, int64_t last,
                        uint32_t worker)
{
    const struct flash_job *job = context;
    const int64_t blocks = flash_blocks(job->s_q);
    struct backward part;

    (void)lay_out(job, worker, &part);
    for (int64_t task = first; task < last; task++)
        run_queries(job, &part, task / blocks,
                    (blocks - 1 - task % blocks) * FLASH_BLOCK);
}

/* ---- by blocks of keys ---- */

/* The queries SKIP .. QUERIES - 1 of a block, and a panel of keys. */
static void key_step(const struct flash_job *job, const struct backward *part,
                     int64_t batch, int64_t query, int64_t queries,
                     int64_t skip, int64_t panel, int64_t key, int64_t keys)
{
    const struct flash_kernels *kernels = job->kernels;
    const int64_t size = kernels->size, bytes = kernels->lanes * size;
    const int64_t place = (batch * job->s_q + query + skip) * size;
    const char *q = (char *)part->block_a + skip * job->d_room * size;
    const char *g = (char *)part->block_b + skip * job->d_v_room * size;

    queries -= skip;
    kernels->multiply(part->scores, q, job->d_room, queries, job->d,
                      part->own_a + panel * job->d * bytes);
    kernels->multiply(part->slopes, g, job->d_v_room, queries, job->d_v,
                      part->own_b + panel * job->d_v * bytes);
    flash_hide_queries(job, batch, part->scores, query + skip, queries, key,
                       keys);
    kernels->weigh_rows(part->scores, part->slopes, queries, job->max + place,
                        job->inverse + place, job->delta + place);
    kernels->multiply_turned(part->sum_a + panel * job->d_room * bytes, q,
                             job->d_room, job->d, queries, part->slopes, NULL);
    kernels->multiply_turned(part->sum_b + panel * job->d_v_room * bytes, g,
                             job->d_v_room, job->d_v, queries, part->scores,
                             NULL);
}

static void finish_keys(const struct flash_job *job,
                        const struct backward *part, int64_t batch,
                        int64_t first, int64_t keys, int64_t panel)
{
    const int64_t bytes = job->kernels->lanes * job->kernels->size;
    const struct flash_matrix dk = flash_matrix_at(job, &job->dk, batch, first);
    const struct flash_matrix dv = flash_matrix_at(job, &job->dv, batch, first);

    /* The queries were loaded with scale and log2(e). */
    for (int64_t i = 0; i < keys; i++)
        flash_put(job, part->factors, i, ln_2);
    job->kernels->store_panel(&dk, part->sum_a + panel * job->d_room * bytes,
                              keys, job->d, part->factors, NULL);
    for (int64_t i = 0; i < keys; i++)
        flash_put(job, part->factors, i, 1);
    job->kernels->store_panel(&dv, part->sum_b + panel * job->d_v_room * bytes,
                              keys, job->d_v, part->factors, NULL);
}

/* Load a block of queries and their gradients; none where a query is dead. */
static void load_queries(const struct flash_job *job,
                         const struct backward *part, int64_t batch,
                         int64_t query, int64_t queries)
{
    const struct flash_matrix q = flash_matrix_at(job, &job->q, batch, query);
    const struct flash_matrix g =
        flash_matrix_at(job, &job->grad, batch, query);
    const int64_t row_bytes = job->d_v_room * job->kernels->size;

    job->kernels->load_block(part->block_a, job->d_room, &q, queries, job->d,
                             job->scale * log2_e);
    job->kernels->load_block(part->block_b, job->d_v_room, &g, queries,
                             job->d_v, 1);
    for (int64_t i = 0; i < queries; i++)
        if (job->dead[batch * job->s_q + query + i])
            memset((char *)part->block_b + i * row_bytes, 0, (size_t)row_bytes);
}

static void run_keys(const struct flash_job *job, const struct backward *part,
                     int64_t batch, int64_t first)
{
    const struct flash_kernels *kernels = job->kernels;
    const int64_t lanes = kernels->lanes;
    const int64_t keys = flash_least(FLASH_BLOCK, job->s_k - first);

    memset(part->sum_a, 0, (size_t)(FLASH_BLOCK * job->d_room * kernels->size));
    memset(part->sum_b, 0,
           (size_t)(FLASH_BLOCK * job->d_v_room * kernels->size));
    for (int64_t i = 0; i < keys; i += lanes) {
        const int64_t count = flash_least(lanes, keys - i);

        load_panel(job, &job->k, batch, first + i, count, job->d, 1, i / lanes,
                   part->own_a);
        load_panel(job, &job->v, batch, first + i, count, job->d_v, 1,
                   i / lanes, part->own_b);
    }
    for (int64_t query = 0; query < job->s_q; query += FLASH_BLOCK) {
        const int64_t queries = flash_least(FLASH_BLOCK, job->s_q - query);
        int skips;

        load_queries(job, part, batch, query, queries);
        skips = job->causal && first + keys - 1 > query + job->offset &&
                kernels->is_finite(part->block_a, job->d_room, queries) &&
                kernels->is_finite(part->block_b, job->d_v_room, queries);
        for (int64_t i = 0; i < keys; i += lanes) {
            /* The first query that sees a key of the panel. */
            const int64_t seen = first + i - job->offset - query;
            const int64_t skip =
                skips && seen > 0 ? seen / kernels->tile * kernels->tile : 0;

            if (skip < queries)
                key_step(job, part, batch, query, queries, skip, i / lanes,
                         first + i, flash_least(lanes, keys - i));
        }
    }
    for (int64_t i = 0; i < keys; i += lanes)
        finish_keys(job, part, batch, first + i, flash_least(lanes, keys - i),
                    i / lanes);
}

static void key_range(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    const struct flash_job *job = context;
    const int64_t blocks = flash_blocks(job->s_k);
    struct backward part;

    (void)lay_out(job, worker, &part);
    for (int64_t task = first; task < last; task++)
        run_keys(job, &part, task / blocks, task % blocks * FLASH_BLOCK);
}

/* ---- the op ---- */

/* What CALL needs, before it has workspace; *OUT_BYTES in all. */
static hob_status plan(const struct hob_call *call, struct flash_job *job,
                       uint64_t *out_bytes)
{
    const uint32_t threads = call->host->thread_count(call->host);
    hob_status st = flash_job_open(call, &flash_attention_grad_places, job);
    struct backward part;

    if (st)
        return st;
    job->worker_bytes = lay_out(job, 0, &part);
    /* Three numbers and a byte for each query. */
    *out_bytes = (uint64_t)job->worker_bytes * threads +
                 (uint64_t)(job->batches * job->s_q) *
                     (uint64_t)(3 * job->kernels->size + 1);
    return HOB_OK;
}

hob_status flash_attention_grad_flex_prepare(void *device,
                                             const struct hob_call *call,
                                             struct hob_prepare *out)
{
    struct flash_job job;

    (void)device;
    return plan(call, &job, &out->workspace_bytes);
}

hob_status flash_attention_grad_flex(void *device, struct hob_call *call)
{
    const struct hob_host *host = call->host;
    struct flash_job job;
    uint64_t bytes;
    int64_t numbers;
    hob_status st = plan(call, &job, &bytes);

    (void)device;
    if (st)
        return st;
    numbers = job.batches * job.s_q * job.kernels->size;
    flash_job_start(call, &job);
    job.max = job.workers + job.worker_bytes * host->thread_count(host);
    job.inverse = job.max + numbers;
    job.delta = job.inverse + numbers;
    job.dead = (uint8_t *)job.delta + numbers;
    host->parallel_for(host, job.batches * flash_blocks(job.s_q), 1,
                       query_range, &job);
    host->parallel_for(host, job.batches * flash_blocks(job.s_k), 1, key_range,
                       &job);
    return HOB_OK;
}
