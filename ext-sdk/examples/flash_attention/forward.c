/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forward.c - flash.attention on flex.
 *
 * As in "FlashAttention" (Dao and others 2022) with the softmax of "Online
 * normalizer calculation for softmax" (Milakov and Gimelshein 2018): keys and
 * values pass by in blocks, and what was summed before is scaled whenever a
 * greater score turns up. Of the scores there is one panel a thread. A panel
 * is computed as a whole: one query alone costs as much as `lanes` of them.
 */
#include "job.h"

#include <math.h>
#include <string.h>

/* log2(e): the kernels' weights are powers of 2. */
static const double log2_e = 1.4426950408889634;

/* A thread's part of the workspace. */
struct forward {
    char *q, *out; /* panels, lanes of FLASH_BLOCK queries each */
    void *k, *v;   /* blocks */
    void *scores;  /* a panel, one row a key */
    char *max, *sum;
    void *factors;
};

/* Lay the parts of worker WORKER out; returns the bytes of each worker's. */
static int64_t lay_out(const struct flash_job *job, uint32_t worker,
                       struct forward *out)
{
    const int64_t lanes = job->kernels->lanes;
    struct flash_cursor at = {job->kernels->size, 0, flash_part(job, worker)};

    out->q = flash_take(&at, FLASH_BLOCK * job->d);
    out->out = flash_take(&at, FLASH_BLOCK * job->d_v_room);
    out->k = flash_take(&at, FLASH_BLOCK * job->d_room);
    out->v = flash_take(&at, FLASH_BLOCK * job->d_v_room);
    out->scores = flash_take(&at, FLASH_BLOCK * lanes);
    out->max = flash_take(&at, FLASH_BLOCK);
    out->sum = flash_take(&at, FLASH_BLOCK);
    out->factors = flash_take(&at, lanes);
    return at.used;
}

/* The queries FIRST .. FIRST + QUERIES - 1, a panel, and a block of keys. */
static void step(const struct flash_job *job, const struct forward *part,
                 int64_t batch, int64_t first, int64_t queries, int64_t panel,
                 int64_t key, int64_t keys)
{
    const struct flash_kernels *kernels = job->kernels;
    const int64_t lanes = kernels->lanes, size = kernels->size;
    char *max = part->max + panel * lanes * size;
    char *sum = part->sum + panel * lanes * size;

    kernels->multiply(part->scores, part->k, job->d_room, keys, job->d,
                      part->q + panel * lanes * job->d * size);
    flash_hide_keys(job, batch, part->scores, key, keys, first, queries);
    kernels->softmax_step(part->scores, keys, max, sum, part->factors);
    kernels->multiply_turned(part->out + panel * lanes * job->d_v_room * size,
                             part->v, job->d_v_room, job->d_v, keys,
                             part->scores, part->factors);
}

static void finish(const struct flash_job *job, const struct forward *part,
                   int64_t batch, int64_t first, int64_t queries, int64_t panel)
{
    const int64_t lanes = job->kernels->lanes, size = job->kernels->size;
    const struct flash_matrix out =
        flash_matrix_at(job, &job->out, batch, first);
    uint8_t dead[FLASH_BLOCK];

    for (int64_t i = 0; i < queries; i++) {
        const double sum = flash_get(job, part->sum, panel * lanes + i);

        /* Without dead, a sum of 0 is a row of -inf: NaN as in a softmax. */
        dead[i] = sum == 0 && flash_query_is_dead(job, batch, first + i);
        flash_put(job, part->factors, i, 1 / sum);
    }
    job->kernels->store_panel(&out,
                              part->out + panel * lanes * job->d_v_room * size,
                              queries, job->d_v, part->factors, dead);
}

static void run_block(const struct flash_job *job, const struct forward *part,
                      int64_t batch, int64_t first)
{
    const struct flash_kernels *kernels = job->kernels;
    const int64_t lanes = kernels->lanes;
    const int64_t queries = flash_least(FLASH_BLOCK, job->s_q - first);
    const int64_t panel_bytes = lanes * kernels->size;

    memset(part->out, 0, (size_t)(FLASH_BLOCK * job->d_v_room * kernels->size));
    for (int64_t i = 0; i < FLASH_BLOCK; i++) {
        flash_put(job, part->max, i, -INFINITY);
        flash_put(job, part->sum, i, 0);
    }
    for (int64_t i = 0; i < queries; i += lanes) {
        const struct flash_matrix q =
            flash_matrix_at(job, &job->q, batch, first + i);

        kernels->load_panel(part->q + i / lanes * job->d * panel_bytes, &q,
                            flash_least(lanes, queries - i), job->d,
                            job->scale * log2_e);
    }
    for (int64_t key = 0; key < job->s_k; key += FLASH_BLOCK) {
        const int64_t keys = flash_least(FLASH_BLOCK, job->s_k - key);
        const struct flash_matrix k = flash_matrix_at(job, &job->k, batch, key);
        const struct flash_matrix v = flash_matrix_at(job, &job->v, batch, key);
        int skips;

        kernels->load_block(part->v, job->d_v_room, &v, keys, job->d_v, 1);
        /* A weight of 0 makes NaN of an infinite value: then skip nothing. */
        skips = job->causal && key + keys - 1 > first + job->offset &&
                kernels->is_finite(part->v, job->d_v_room, keys);
        if (skips && key > first + queries - 1 + job->offset)
            continue;
        kernels->load_block(part->k, job->d_room, &k, keys, job->d, 1);
        for (int64_t i = 0; i < queries; i += lanes) {
            const int64_t count = flash_least(lanes, queries - i);
            const int64_t last = first + i + count - 1;
            const int64_t seen =
                skips ? flash_least(keys, last + job->offset + 1 - key) : keys;

            if (seen > 0)
                step(job, part, batch, first + i, count, i / lanes, key, seen);
        }
    }
    for (int64_t i = 0; i < queries; i += lanes)
        finish(job, part, batch, first + i, flash_least(lanes, queries - i),
               i / lanes);
}

static void run_range(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    const struct flash_job *job = context;
    const int64_t blocks = flash_blocks(job->s_q);
    struct forward part;

    (void)lay_out(job, worker, &part);
    /* The last block first: with causal it is the longest. */
    for (int64_t task = first; task < last; task++)
        run_block(job, &part, task / blocks,
                  (blocks - 1 - task % blocks) * FLASH_BLOCK);
}

/* What CALL needs, before it has workspace. */
static hob_status plan(const struct hob_call *call, struct flash_job *job)
{
    hob_status st = flash_job_open(call, &flash_attention_places, job);
    struct forward part;

    if (!st)
        job->worker_bytes = lay_out(job, 0, &part);
    return st;
}

hob_status flash_attention_flex_prepare(void *device,
                                        const struct hob_call *call,
                                        struct hob_prepare *out)
{
    struct flash_job job;
    hob_status st = plan(call, &job);

    (void)device;
    if (!st)
        out->workspace_bytes =
            (uint64_t)job.worker_bytes * call->host->thread_count(call->host);
    return st;
}

hob_status flash_attention_flex(void *device, struct hob_call *call)
{
    struct flash_job job;
    hob_status st = plan(call, &job);

    (void)device;
    if (st)
        return st;
    flash_job_start(call, &job);
    call->host->parallel_for(call->host, job.batches * flash_blocks(job.s_q), 1,
                             run_range, &job);
    return HOB_OK;
}
