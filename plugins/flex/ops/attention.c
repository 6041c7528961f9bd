/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - attention in memory that does not grow with the square of the
 * sequence.
 *
 * As in "FlashAttention" (Dao and others 2022) with the softmax of "Online
 * normalizer calculation for softmax" (Milakov and Gimelshein 2018): keys and
 * values pass by in blocks, and what was summed before is scaled whenever a
 * greater score turns up. Of the scores there is one panel a thread. A panel
 * is computed as a whole: one query alone costs as much as `lanes` of them.
 */
#include "attention.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const double ln_2 = 0.6931471805599453;

struct forward {
    struct attention job;
    struct attention_operand out, lse;
};

/* What a task works in. */
struct part {
    char *query, *out; /* panels, lanes of FLEX_ATTENTION_BLOCK queries each */
    void *key, *value; /* blocks */
    void *scores, *spare; /* panels, one row a key */
    char *max, *sum;
    void *factors;
};

/* Lay the parts out in MEMORY (NULL: only count); returns the bytes. */
static uint64_t lay_out(const struct attention *job, char *memory,
                        struct part *out)
{
    const int64_t lanes = job->kernels->lanes, block = FLEX_ATTENTION_BLOCK;
    struct attention_cursor at = {job->kernels->size, 0, memory};

    out->query = flex_attention_cut(&at, block * job->d);
    out->out = flex_attention_cut(&at, block * job->e_room);
    out->key = flex_attention_cut(&at, block * job->d_room);
    out->value = flex_attention_cut(&at, block * job->e_room);
    out->scores = flex_attention_cut(&at, block * lanes);
    out->spare = flex_attention_cut(&at, block * lanes);
    out->max = flex_attention_cut(&at, block);
    out->sum = flex_attention_cut(&at, block);
    out->factors = flex_attention_cut(&at, lanes);
    return at.used;
}

/* One panel of queries, the PANEL-th of its block, and a block of keys. */
static void step(const struct attention *job, const struct part *part,
                 const struct attention_place *place, int64_t panel)
{
    const struct flex_attention_kernels *kernels = job->kernels;
    const int64_t bytes = kernels->lanes * kernels->size;

    kernels->multiply(part->scores, part->key, job->d_room, place->keys, job->d,
                      part->query + panel * job->d * bytes);
    flex_attention_scores(job, place, part->scores, part->spare, NULL);
    kernels->softmax_step(part->scores, place->keys, part->max + panel * bytes,
                          part->sum + panel * bytes, part->factors);
    kernels->multiply_turned(part->out + panel * job->e_room * bytes,
                             part->value, job->e_room, job->e, place->keys,
                             part->scores, part->factors);
}

static double log_of(const struct attention *job, double x)
{
    return job->kernels->size == 8 ? log(x) : (double)logf((float)x);
}

/* Divide by the sums, and store. A sum of 0 means that all keys are hidden,
 * which gives 0, or that all scores are -inf: NaN, as in a softmax. */
static void finish(const struct forward *run, const struct part *part,
                   int64_t batch, int64_t first, int64_t queries, int64_t panel)
{
    const struct attention *job = &run->job;
    const int64_t lanes = job->kernels->lanes, size = job->kernels->size;
    const struct flex_matrix out =
        flex_attention_at(job, &run->out, batch, first, 0);
    const struct flex_matrix lse =
        flex_attention_at(job, &run->lse, batch, first, 0);

    for (int64_t i = 0; i < queries; i++) {
        const double sum =
            flex_attention_get(job, part->sum, panel * lanes + i);
        const double max =
            flex_attention_get(job, part->max, panel * lanes + i);
        const int empty = sum == 0 && (job->hides || job->t == 0);

        flex_attention_put(job, lse.data, i * lse.row,
                           sum == 0 && !empty ? (double)NAN
                                              : max * ln_2 + log_of(job, sum));
        flex_attention_put(job, part->factors, i, empty ? 1 : 1 / sum);
    }
    job->kernels->store_panel(&out,
                              part->out + panel * lanes * job->e_room * size,
                              queries, job->e, part->factors);
}

static void start(const struct attention *job, const struct part *part,
                  int64_t batch, int64_t first, int64_t queries)
{
    const struct flex_attention_kernels *kernels = job->kernels;
    const int64_t lanes = kernels->lanes;

    memset(part->out, 0,
           (size_t)(FLEX_ATTENTION_BLOCK * job->e_room * kernels->size));
    for (int64_t i = 0; i < FLEX_ATTENTION_BLOCK; i++) {
        flex_attention_put(job, part->max, i, -(double)INFINITY);
        flex_attention_put(job, part->sum, i, 0);
    }
    for (int64_t i = 0; i < queries; i += lanes) {
        const struct flex_matrix query =
            flex_attention_at(job, &job->query, batch, first + i, 0);

        kernels->load_panel(part->query + i * job->d * kernels->size, &query,
                            flex_least(lanes, queries - i), job->d,
                            job->factor);
    }
}

static void run_block(const struct forward *run, const struct part *part,
                      int64_t batch, int64_t first)
{
    const struct attention *job = &run->job;
    const struct flex_attention_kernels *kernels = job->kernels;
    const int64_t lanes = kernels->lanes;
    const int64_t queries = flex_least(FLEX_ATTENTION_BLOCK, job->s - first);

    start(job, part, batch, first, queries);
    for (int64_t key = 0; key < job->t; key += FLEX_ATTENTION_BLOCK) {
        const int64_t keys = flex_least(FLEX_ATTENTION_BLOCK, job->t - key);
        const struct flex_matrix k =
            flex_attention_at(job, &job->key, batch, key, 0);
        const struct flex_matrix v =
            flex_attention_at(job, &job->value, batch, key, 0);
        int skips;

        kernels->load_block(part->value, job->e_room, &v, keys, job->e, 1);
        /* A weight of 0 makes NaN of an infinite value: then skip nothing. */
        skips = job->causal && key + keys - 1 > first + job->offset &&
                kernels->is_finite(part->value, job->e_room, keys);
        if (skips && key > first + queries - 1 + job->offset)
            continue;
        kernels->load_block(part->key, job->d_room, &k, keys, job->d, 1);
        for (int64_t i = 0; i < queries; i += lanes) {
            const int64_t count = flex_least(lanes, queries - i);
            const int64_t last = first + i + count - 1;
            const struct attention_place place = {
                batch, first + i, count, key,
                skips ? flex_least(keys, last + job->offset + 1 - key) : keys};

            if (place.keys > 0)
                step(job, part, &place, i / lanes);
        }
    }
    for (int64_t i = 0; i < queries; i += lanes)
        finish(run, part, batch, first + i, flex_least(lanes, queries - i),
               i / lanes);
}

static void run_range(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    struct forward *run = context;
    struct attention *job = &run->job;
    const int64_t blocks =
        (job->s + FLEX_ATTENTION_BLOCK - 1) / FLEX_ATTENTION_BLOCK;
    struct part part;
    const uint64_t bytes = lay_out(job, NULL, &part);
    char *memory = flex_scratch_take(job->device, bytes);

    (void)worker;
    if (!memory) {
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    (void)lay_out(job, memory, &part);
    /* The last block first: with causal it is the longest. */
    for (int64_t task = first; task < last; task++)
        run_block(run, &part, task / blocks,
                  (blocks - 1 - task % blocks) * FLEX_ATTENTION_BLOCK);
    flex_scratch_give(job->device, memory, bytes);
}

static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return flex_attention_fits(call, 6);
}

static hob_status attention(void *device, struct hob_call *call)
{
    struct forward run;
    struct attention *job = &run.job;

    flex_attention_init(job, device, call, 5, 6, 7);
    flex_attention_operand(job, hob_ret_view(call, 0), &run.out);
    flex_attention_operand(job, hob_ret_view(call, 1), &run.lse);
    flex_parallel(device,
                  job->batches * ((job->s + FLEX_ATTENTION_BLOCK - 1) /
                                  FLEX_ATTENTION_BLOCK),
                  1, run_range, &run);
    if (job->failed)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for blocks of rows of %" PRId64
                                " and %" PRId64 " elements",
                                call->op_name, job->d, job->e);
    return HOB_OK;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_BOOL, HOB_MASK_FLOAT};

/* lse and delta are what is computed in, which infer sees to. */
static const uint32_t backward_masks[] = {
    HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_BOOL,
    HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "attention",
        .signature = "(query: Float, key: Float, value: Float, mask: Bool?, "
                     "bias: Float?, scale: f64?, softcap: f64?, "
                     "causal: bool = false) -> (query, _lse: Float)",
        .dtypes = masks,
        .dtype_count = 5,
        .prepare = prepare,
        .execute = attention,
    },
    {
        .op = "attention_backward",
        .signature = "(query: Float, key: Float, value: Float, mask: Bool?, "
                     "bias: Float?, lse: Num, delta: Num, grad: Float, "
                     "scale: f64?, softcap: f64?, causal: bool = false, "
                     "bias_grad: bool = false) -> (d_query: query, "
                     "d_key: query, d_value: query, d_bias: query?)",
        .dtypes = backward_masks,
        .dtype_count = 8,
        .prepare = flex_attention_backward_prepare,
        .execute = flex_attention_backward,
    },
};

const struct flex_entries flex_attention_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
