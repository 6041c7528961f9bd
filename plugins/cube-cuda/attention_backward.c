/* SPDX-License-Identifier: Apache-2.0 */
#include "attention_backward.h"

#include "attention_pass.h"
#include "texts.h"

#include <cube/cube.h>

#define COMMON                                                                 \
    .libraries = {cube_text_attention_params, cube_text_sm90,                  \
                  cube_text_attention_batch, cube_text_attention_slopes},      \
    .constants = {"WIDTH", "TILE", "STAGES", "IS_CAUSAL", "MASK", "EACH"},     \
    .symbols = {"ELEMENT"}, .flags = CUBE_TIED, .language = CUBE_ONLY_CUDA

static const struct cube_program known_program = {
    .name = "attention_known_sm90",
    .text = cube_text_attention_known_sm90,
    COMMON,
};

static const struct cube_program keys_program = {
    .name = "attention_keys_sm90",
    .text = cube_text_attention_keys_sm90,
    COMMON,
};

static const struct cube_program queries_program = {
    .name = "attention_queries_sm90",
    .text = cube_text_attention_queries_sm90,
    COMMON,
};

#undef COMMON

enum {
    TILE = 64, /* as UNIT in attention_slopes.cu */
    KEYS_BLOCK = 128,
    QUERIES_BLOCK = 256,
    ALIGNMENT = 256
};

/* Bytes of slopes that are kept at a time, unless that is less than a block of
 * keys for each processor. */
#define SLOPES_MOST (INT64_C(1) << 30)

/* The workspace: what is known of queries, the slopes of some entries of the
 * batch at a time or, where those of one are too many, of some of its blocks of
 * keys, then with sums of what these add to the gradient of queries. */
struct space {
    int64_t known_bytes, slope_bytes, sum_bytes;
    int64_t entries, keys; /* at a time */
};

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t align(int64_t bytes)
{
    return cube_divide_up(bytes, ALIGNMENT) * ALIGNMENT;
}

/* Entries at a time, MOST or fewer, of BLOCKS blocks each: as many as leave the
 * fewest processors idle. */
static int64_t entries_of(const struct ccu_attention *job, int64_t most,
                          int64_t blocks)
{
    const int64_t processors = job->device->cube.limits.processors;
    int64_t least = INT64_MAX, entries = most;

    for (int64_t n = most; n >= 1 && 2 * n > most; n--) {
        const int64_t rounds =
            job->batches / n * cube_divide_up(n * blocks, processors) +
            cube_divide_up(job->batches % n * blocks, processors);

        if (rounds < least) {
            least = rounds;
            entries = n;
        }
    }
    return entries;
}

static struct space space_of(const struct ccu_attention *job)
{
    const int64_t queries = job->rows[ATTENTION_QUERY];
    const int64_t keys = job->rows[ATTENTION_KEY];
    const int64_t padded = cube_divide_up(queries, TILE) * TILE;
    const int64_t block_bytes = padded * KEYS_BLOCK * 2;
    const int64_t blocks = cube_divide_up(keys, KEYS_BLOCK);
    int64_t room = job->device->cube.limits.processors * block_bytes;
    struct space out = {.entries = 1, .keys = keys};

    if (room < SLOPES_MOST)
        room = SLOPES_MOST;
    out.known_bytes = align(job->batches * padded * 8);
    if (blocks * block_bytes <= room) {
        const int64_t most = room / (blocks * block_bytes);

        out.entries =
            entries_of(job, most < job->batches ? most : job->batches, blocks);
        out.slope_bytes = out.entries * blocks * block_bytes;
    } else {
        out.keys = room / block_bytes * KEYS_BLOCK;
        out.slope_bytes = out.keys / KEYS_BLOCK * block_bytes;
        out.sum_bytes = queries * job->width * 4;
    }
    return out;
}

static hob_status run_known(struct ccu_attention *job,
                            const struct hob_call *call, char **out_message)
{
    static const struct ccu_pass pass = {
        .program = &known_program,
        .rows = ATTENTION_QUERY,
        .block = TILE,
        .tile = TILE,
        .stages = 1,
        .each = 1,
        .group_size = 256,
    };
    const struct ccu_extent all = {0, job->batches, 0,
                                   job->rows[ATTENTION_QUERY]};

    return ccu_attention_pass(job, call->op_name, &pass, &all, out_message);
}

/* The gradients of KEYS and of their values. */
static hob_status run_keys(struct ccu_attention *job,
                           const struct hob_call *call,
                           const struct ccu_extent *keys, char **out_message)
{
    static const struct ccu_pass pass = {
        .program = &keys_program,
        .operands = 1 << ATTENTION_QUERY | 1 << ATTENTION_KEY |
                    1 << ATTENTION_VALUE | 1 << ATTENTION_GRAD,
        .rows = ATTENTION_KEY,
        .block = KEYS_BLOCK,
        .tile = TILE,
        .stages = 3,
        .each = 1,
        .is_persistent = 1,
    };

    job->params.key = (int)keys->row;
    job->params.key_end = (int)keys->end;
    return ccu_attention_pass(job, call->op_name, &pass, keys, out_message);
}

/* The share of those keys in the gradient of queries. */
static hob_status run_queries(struct ccu_attention *job,
                              const struct hob_call *call,
                              const struct ccu_extent *keys, char **out_message)
{
    const struct ccu_pass pass = {
        .program = &queries_program,
        .operands = 1 << ATTENTION_KEY,
        .rows = ATTENTION_QUERY,
        .block = QUERIES_BLOCK,
        .tile = TILE,
        .stages = 4,
        .each = 2,
        .is_persistent = !job->is_causal,
    };
    const struct ccu_extent queries = {keys->first, keys->count, 0,
                                       job->rows[ATTENTION_QUERY]};

    return ccu_attention_pass(job, call->op_name, &pass, &queries, out_message);
}

uint64_t ccu_attention_backward_bytes(const struct ccu_attention *job)
{
    const struct space space = space_of(job);

    return (uint64_t)(space.known_bytes + space.slope_bytes + space.sum_bytes);
}

hob_status ccu_attention_backward(struct ccu_attention *job,
                                  const struct hob_call *call,
                                  char **out_message)
{
    const struct space space = space_of(job);
    char *memory = call->workspace;
    hob_status status;

    for (uint32_t i = 0; i < 3; i++)
        job->params.results[i] = hob_ret_view(call, i)->data;
    job->params.lse = hob_arg_view(call, 5)->data;
    job->params.delta = hob_arg_view(call, 6)->data;
    job->params.known = (float *)(void *)memory;
    job->params.slopes = memory + space.known_bytes;
    job->params.sums =
        (float *)(void *)(memory + space.known_bytes + space.slope_bytes);
    status = run_known(job, call, out_message);
    for (int64_t i = 0; i < job->batches && !status; i += space.entries)
        for (int64_t k = 0; k < job->rows[ATTENTION_KEY] && !status;
             k += space.keys) {
            const struct ccu_extent keys = {
                i, least(space.entries, job->batches - i), k,
                least(job->rows[ATTENTION_KEY], k + space.keys)};

            status = run_keys(job, call, &keys, out_message);
            if (!status)
                status = run_queries(job, call, &keys, out_message);
        }
    return status;
}
