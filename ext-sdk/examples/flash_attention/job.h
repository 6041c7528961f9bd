/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job.h - one call on flex: its operands, and how it is cut into tasks.
 *
 * A task is some queries of one batch entry. Tasks depend on sizes only, and
 * each element of a result is computed in a fixed order: results do not depend
 * on the number of threads.
 */
#ifndef FLASH_JOB_H
#define FLASH_JOB_H

#define FLASH_PROTOTYPES_ONLY
#include "flash_attention_glue.h"
#include "kernels.h"

/* Queries and keys in a block: with 64 columns of f32, a block of keys takes
 * 32 KB, and a panel with its scores stays in the first-level cache. */
enum { FLASH_BLOCK = 128 };

/* A tensor [.., rows, columns], its leading dimensions broadcast. */
struct flash_operand {
    struct flash_matrix first;
    int64_t lead[HOB_MAX_RANK]; /* strides; 0 where broadcast */
};

struct flash_job {
    const struct flash_kernels *kernels;
    struct flash_operand q, k, v, mask; /* mask.first.data NULL: none */
    struct flash_operand out;           /* the result, or attention_grad's */
    struct flash_operand grad, dq, dk, dv;
    int64_t lead_shape[HOB_MAX_RANK];
    uint32_t lead_rank;
    int causal;
    int64_t batches; /* the product of lead_shape */
    int64_t s_q, s_k, d, d_v;
    int64_t d_room, d_v_room; /* strides of blocks: multiples of a tile */
    int64_t offset;           /* causal: key j > query i + offset is hidden */
    double scale;
    /* Workspace: a part for each worker, then what attention_grad adds up. */
    int64_t worker_bytes;
    char *workers;
};

/* What the arguments of an op are called by position. */
struct flash_places {
    uint32_t out, grad, mask, scale, causal; /* q, k, v are 0, 1, 2 */
};
extern const struct flash_places flash_attention_places;
extern const struct flash_places flash_attention_grad_places;

/* Describe CALL, whose shapes infer has checked. HOB_ERR_UNSUPPORTED where the
 * body is to run: flex offers too little, or rows are too long. */
hob_status flash_job_open(const struct hob_call *call,
                          const struct flash_places *places,
                          struct flash_job *out);
/* The rest of it, when there are results and workspace. */
void flash_job_start(struct hob_call *call, struct flash_job *job);

/* The scale of CALL: its argument or 1/sqrt(d). */
double flash_scale(const hob_value *scale, int64_t d);

/* Memory that is cut into 64-byte aligned pieces, or, where there is none yet,
 * only counted. */
struct flash_cursor {
    int64_t size; /* of an element */
    int64_t used; /* bytes */
    char *memory;
};
void *flash_take(struct flash_cursor *cursor, int64_t elements);

/* OPERAND of batch entry BATCH from row ROW on. */
struct flash_matrix flash_matrix_at(const struct flash_job *job,
                                    const struct flash_operand *operand,
                                    int64_t batch, int64_t row);

/* Nonzero if every key is hidden from query QUERY. */
int flash_query_is_dead(const struct flash_job *job, int64_t batch,
                        int64_t query);

/* Hide what is hidden among SCORES of the keys KEY .. KEY + KEYS - 1 (rows)
 * and queries from QUERY on (QUERIES columns). */
void flash_hide_keys(const struct flash_job *job, int64_t batch, void *scores,
                     int64_t key, int64_t keys, int64_t query, int64_t queries);

static inline double flash_get(const struct flash_job *job, const void *array,
                               int64_t index)
{
    return job->kernels->size == 8 ? ((const double *)array)[index]
                                   : ((const float *)array)[index];
}

static inline void flash_put(const struct flash_job *job, void *array,
                             int64_t index, double value)
{
    if (job->kernels->size == 8)
        ((double *)array)[index] = value;
    else
        ((float *)array)[index] = (float)value;
}

/* WORKER's part of the workspace; NULL while there is none. */
static inline char *flash_part(const struct flash_job *job, uint32_t worker)
{
    return job->workers ? job->workers + worker * job->worker_bytes : NULL;
}

static inline int64_t flash_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t flash_round_up(int64_t count, int64_t multiple)
{
    return (count + multiple - 1) / multiple * multiple;
}

/* Blocks of FLASH_BLOCK in COUNT. */
static inline int64_t flash_blocks(int64_t count)
{
    return count / FLASH_BLOCK + (count % FLASH_BLOCK != 0);
}

#endif
