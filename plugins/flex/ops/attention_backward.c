/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_backward.c - the gradients of attention.
 *
 * Scores are computed again, block by block, and become weights at once by
 * means of lse. With p the weights, g the gradient and w the slopes of the
 * scores:
 *
 *   d_value = p^T g,  w = p (g value^T - delta) = d_bias
 *   d_query = w key scale,  d_key = w^T query scale
 *
 * A task is a range of queries of one batch entry; keys and values lie
 * converted in its memory, beside the sums of d_key and d_value. Where there
 * are few batch entries, several tasks share one: their sums are added up in
 * the order of the queries afterwards.
 */
#include "attention.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Tasks to have, if there are that many, and queries to a task at least. */
enum { TASKS = 16, QUERIES_LEAST = 256 };

static const double log2_e = 1.4426950408889634;

struct backward {
    struct attention job;
    struct attention_operand lse, delta, grad;
    struct attention_operand d_query, d_key, d_value, d_bias;
    int64_t t_room;         /* t up to a multiple of a tile */
    int64_t d_wide, e_wide; /* d and e up to a multiple of lanes */
    int64_t splits;         /* tasks of a batch entry */
    int64_t split;          /* queries of each but the last */
    char *sums;             /* of each task: d_key, then d_value */
    uint64_t sums_bytes;    /* of one task */
};

/* What a task works in. Wide rows lie in column panels: t_room or lanes rows
 * of lanes columns each, one panel after the other. */
struct part {
    void *key, *value;            /* blocks of all keys */
    void *query, *grad;           /* panels, one row an element of d, of e */
    char *query_rows, *grad_rows; /* column panels, a row a query */
    void *d_query;                /* a panel */
    void *scores, *slopes, *spare, *cap_slopes; /* panels, a row a key */
    void *lse, *delta;
};

static uint64_t lay_out(const struct backward *run, char *memory,
                        struct part *out)
{
    const struct attention *job = &run->job;
    const int64_t lanes = job->kernels->lanes;
    const int64_t panel = FLEX_ATTENTION_BLOCK * lanes;
    struct attention_cursor at = {job->kernels->size, 0, memory};

    out->key = flex_attention_cut(&at, run->t_room * job->d_room);
    out->value = flex_attention_cut(&at, run->t_room * job->e_room);
    out->query = flex_attention_cut(&at, lanes * job->d);
    out->grad = flex_attention_cut(&at, lanes * job->e);
    out->query_rows = flex_attention_cut(&at, lanes * run->d_wide);
    out->grad_rows = flex_attention_cut(&at, lanes * run->e_wide);
    out->d_query = flex_attention_cut(&at, lanes * job->d_room);
    out->scores = flex_attention_cut(&at, panel);
    out->slopes = flex_attention_cut(&at, panel);
    out->spare = flex_attention_cut(&at, panel);
    out->cap_slopes = flex_attention_cut(&at, panel);
    out->lse = flex_attention_cut(&at, lanes);
    out->delta = flex_attention_cut(&at, lanes);
    return at.used;
}

/* Where the sums of TASK lie: d_key, then d_value. */
static char *sums_of(const struct backward *run, int64_t task)
{
    return run->sums + (uint64_t)task * run->sums_bytes;
}

static uint64_t d_key_bytes(const struct backward *run)
{
    return (uint64_t)(run->t_room * run->d_wide * run->job.kernels->size);
}

/* COUNT rows of OPERAND, WIDTH elements each, as column panels. */
static void load_rows(const struct attention *job,
                      const struct attention_operand *operand, int64_t batch,
                      int64_t row, int64_t count, int64_t width, double factor,
                      char *out)
{
    const int64_t lanes = job->kernels->lanes;

    for (int64_t c = 0; c < width; c += lanes) {
        const struct flex_matrix from =
            flex_attention_at(job, operand, batch, row, c);

        job->kernels->load_block(out + c * lanes * job->kernels->size, lanes,
                                 &from, count, flex_least(lanes, width - c),
                                 factor);
    }
}

/* Panels of the queries of PLACE, and what is known of each. */
static void load_queries(const struct backward *run, const struct part *part,
                         const struct attention_place *place)
{
    const struct attention *job = &run->job;
    const struct flex_attention_kernels *kernels = job->kernels;
    const int64_t first = place->query, count = place->queries;
    const struct flex_matrix lse =
        flex_attention_at(job, &run->lse, place->batch, first, 0);
    const struct flex_matrix delta =
        flex_attention_at(job, &run->delta, place->batch, first, 0);
    struct flex_matrix from =
        flex_attention_at(job, &job->query, place->batch, first, 0);

    kernels->load_panel(part->query, &from, count, job->d, job->factor);
    from = flex_attention_at(job, &run->grad, place->batch, first, 0);
    kernels->load_panel(part->grad, &from, count, job->e, 1);
    load_rows(job, &job->query, place->batch, first, count, job->d, job->scale,
              part->query_rows);
    load_rows(job, &run->grad, place->batch, first, count, job->e, 1,
              part->grad_rows);
    for (int64_t i = 0; i < kernels->lanes; i++) {
        const double known =
            i < count ? flex_attention_get(job, lse.data, i * lse.row) : 0;

        /* Of a row that is hidden as a whole all weights are 0. */
        flex_attention_put(
            job, part->lse, i,
            job->hides && known == -(double)INFINITY ? 0 : known * log2_e);
        flex_attention_put(
            job, part->delta, i,
            i < count ? flex_attention_get(job, delta.data, i * delta.row) : 0);
    }
    memset(part->d_query, 0,
           (size_t)(kernels->lanes * job->d_room * kernels->size));
}

/* SUMS, column panels of WIDTH, += the panel WEIGHTS times ROWS. */
static void add_product(const struct backward *run, char *sums, int64_t width,
                        const struct attention_place *place,
                        const void *weights, const char *rows)
{
    const struct flex_attention_kernels *kernels = run->job.kernels;
    const int64_t lanes = kernels->lanes, size = kernels->size;

    for (int64_t c = 0; c < width; c += lanes)
        kernels->multiply_add(
            sums + (c * run->t_room + place->key * lanes) * size, weights,
            lanes, place->keys, place->queries, rows + c * lanes * size);
}

/* A panel of queries and a block of keys. */
static void step(const struct backward *run, const struct part *part,
                 const struct attention_place *place, char *sums)
{
    const struct attention *job = &run->job;
    const struct flex_attention_kernels *kernels = job->kernels;
    const char *key =
        (const char *)part->key + place->key * job->d_room * kernels->size;
    const char *value =
        (const char *)part->value + place->key * job->e_room * kernels->size;

    kernels->multiply(part->scores, key, job->d_room, place->keys, job->d,
                      part->query);
    kernels->multiply(part->slopes, value, job->e_room, place->keys, job->e,
                      part->grad);
    flex_attention_scores(job, place, part->scores, part->spare,
                          job->cap != 0 ? part->cap_slopes : NULL);
    kernels->weigh(part->scores, part->slopes, place->keys, part->lse,
                   part->delta);
    if (run->d_bias.first.data) {
        const struct flex_matrix to = flex_attention_at(
            job, &run->d_bias, place->batch, place->query, place->key);

        kernels->store_panel(&to, part->slopes, place->queries, place->keys,
                             NULL);
    }
    if (job->cap != 0)
        kernels->scale(part->slopes, part->cap_slopes, place->keys);
    kernels->multiply_turned(part->d_query, key, job->d_room, job->d,
                             place->keys, part->slopes, NULL);
    add_product(run, sums, job->d, place, part->slopes, part->query_rows);
    add_product(run, sums + d_key_bytes(run), job->e, place, part->scores,
                part->grad_rows);
}

/* Keys from which the queries of PLACE see nothing on, of which the products
 * are 0: known only where keys and values are finite and no slope is wanted. */
static int64_t keys_seen(const struct backward *run,
                         const struct attention_place *place, int is_finite)
{
    const struct attention *job = &run->job;
    const int64_t last = place->query + place->queries - 1;

    if (!job->causal || !is_finite || run->d_bias.first.data)
        return job->t;
    return flex_least(job->t, last + job->offset + 1);
}

static void run_task(const struct backward *run, const struct part *part,
                     int64_t task)
{
    const struct attention *job = &run->job;
    const struct flex_attention_kernels *kernels = job->kernels;
    const int64_t batch = task / run->splits;
    const int64_t first = task % run->splits * run->split;
    const int64_t end = flex_least(first + run->split, job->s);
    const struct flex_matrix key =
        flex_attention_at(job, &job->key, batch, 0, 0);
    const struct flex_matrix value =
        flex_attention_at(job, &job->value, batch, 0, 0);
    char *sums = sums_of(run, task);
    int is_finite;

    kernels->load_block(part->key, job->d_room, &key, job->t, job->d, 1);
    kernels->load_block(part->value, job->e_room, &value, job->t, job->e, 1);
    is_finite =
        !job->causal || (kernels->is_finite(part->key, job->d_room, job->t) &&
                         kernels->is_finite(part->value, job->e_room, job->t));
    memset(sums, 0, (size_t)run->sums_bytes);
    for (int64_t i = first; i < end; i += kernels->lanes) {
        struct attention_place place = {
            batch, i, flex_least(kernels->lanes, end - i), 0, 0};
        const struct flex_matrix to =
            flex_attention_at(job, &run->d_query, batch, i, 0);
        int64_t seen;

        load_queries(run, part, &place);
        seen = keys_seen(run, &place, is_finite);
        for (; place.key < seen; place.key += FLEX_ATTENTION_BLOCK) {
            place.keys = flex_least(FLEX_ATTENTION_BLOCK, seen - place.key);
            step(run, part, &place, sums);
        }
        for (int64_t j = 0; j < kernels->lanes; j++)
            flex_attention_put(job, part->lse, j, job->scale);
        kernels->store_panel(&to, part->d_query, place.queries, job->d,
                             part->lse);
    }
}

static void run_range(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    struct backward *run = context;
    struct attention *job = &run->job;
    struct part part;
    const uint64_t bytes = lay_out(run, NULL, &part);
    char *memory = flex_scratch_take(job->device, bytes);

    (void)worker;
    if (!memory) {
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    (void)lay_out(run, memory, &part);
    for (int64_t task = first; task < last; task++)
        run_task(run, &part, task);
    flex_scratch_give(job->device, memory, bytes);
}

/* Store column panels SUMS of WIDTH to OPERAND. */
static void store_sums(const struct backward *run, const char *sums,
                       const struct attention_operand *operand, int64_t batch,
                       int64_t width)
{
    const struct attention *job = &run->job;
    const int64_t lanes = job->kernels->lanes;

    for (int64_t c = 0; c < width; c += lanes) {
        const struct flex_matrix to =
            flex_attention_at(job, operand, batch, 0, c);

        job->kernels->store_block(
            &to, sums + c * run->t_room * job->kernels->size, lanes, job->t,
            flex_least(lanes, width - c), 1);
    }
}

/* Add up the sums of batch entries FIRST .. LAST - 1 and store them. */
static void collect_range(void *context, int64_t first, int64_t last,
                          uint32_t worker)
{
    const struct backward *run = context;
    const struct flex_attention_kernels *kernels = run->job.kernels;
    const int64_t rows =
        (int64_t)run->sums_bytes / (kernels->lanes * kernels->size);

    (void)worker;
    for (int64_t batch = first; batch < last; batch++) {
        char *sums = sums_of(run, batch * run->splits);

        for (int64_t i = 1; i < run->splits; i++)
            kernels->add(sums, sums_of(run, batch * run->splits + i), rows);
        store_sums(run, sums, &run->d_key, batch, run->job.d);
        store_sums(run, sums + d_key_bytes(run), &run->d_value, batch,
                   run->job.e);
    }
}

static void init(struct backward *run, struct flex_device *device,
                 const struct hob_call *call)
{
    struct attention *job = &run->job;
    int64_t splits;

    memset(run, 0, sizeof(*run));
    flex_attention_init(job, device, call, 8, 9, 10);
    flex_attention_operand(job, hob_arg_view(call, 5), &run->lse);
    flex_attention_operand(job, hob_arg_view(call, 6), &run->delta);
    flex_attention_operand(job, hob_arg_view(call, 7), &run->grad);
    flex_attention_operand(job, hob_ret_view(call, 0), &run->d_query);
    flex_attention_operand(job, hob_ret_view(call, 1), &run->d_key);
    flex_attention_operand(job, hob_ret_view(call, 2), &run->d_value);
    if (call->args[11].u.i64)
        flex_attention_operand(job, hob_ret_view(call, 3), &run->d_bias);
    run->t_room = flex_round_up(job->t, job->kernels->tile);
    run->d_wide = flex_round_up(job->d, job->kernels->lanes);
    run->e_wide = flex_round_up(job->e, job->kernels->lanes);
    splits = job->batches ? TASKS / job->batches : 0;
    splits = flex_least(splits, job->s / QUERIES_LEAST);
    splits = splits < 1 ? 1 : splits;
    run->split =
        flex_round_up((job->s + splits - 1) / splits, job->kernels->lanes);
    run->splits = run->split ? (job->s + run->split - 1) / run->split : 1;
    run->sums_bytes = (uint64_t)(run->t_room * (run->d_wide + run->e_wide) *
                                 job->kernels->size);
}

hob_status flex_attention_backward_prepare(void *device,
                                           const struct hob_call *call,
                                           struct hob_prepare *out)
{
    (void)device;
    (void)out;
    return flex_attention_fits(call, 9);
}

hob_status flex_attention_backward(void *device, struct hob_call *call)
{
    struct backward run;
    struct attention *job = &run.job;
    uint64_t bytes;

    init(&run, device, call);
    if (job->batches == 0)
        return HOB_OK;
    bytes = (uint64_t)(job->batches * run.splits) * run.sums_bytes;
    run.sums = flex_scratch_take(device, bytes);
    if (run.sums) {
        flex_parallel(device, job->batches * run.splits, 1, run_range, &run);
        if (!job->failed)
            flex_parallel(device, job->batches, 1, collect_range, &run);
    }
    flex_scratch_give(device, run.sums, bytes);
    if (!run.sums || job->failed)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for %" PRId64 " keys with rows "
                                "of %" PRId64 " and %" PRId64 " elements",
                                call->op_name, job->t, job->d, job->e);
    return HOB_OK;
}
