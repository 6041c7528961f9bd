/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.h - what attention and attention_backward share: a call's operands,
 * and the scores of a block of keys and a panel of queries.
 *
 * Tasks depend on sizes only, and each element of a result is computed in one
 * task in a fixed order, so results do not depend on the number of threads.
 */
#ifndef FLEX_ATTENTION_H
#define FLEX_ATTENTION_H

#include "../flex.h"
#include "../kernels/attention.h"

/* A tensor [.., rows, columns]; stride 0 where a dimension is repeated. */
struct attention_operand {
    struct flex_matrix first; /* data NULL: absent */
    int64_t lead[HOB_MAX_RANK];
};

struct attention {
    struct flex_device *device;
    const struct flex_attention_kernels *kernels;
    struct attention_operand query, key, value, mask, bias;
    int64_t lead_shape[HOB_MAX_RANK];
    uint32_t lead_rank;
    int64_t batches; /* the product of lead_shape */
    int64_t s, t, d, e;
    int64_t d_room, e_room; /* d and e up to a multiple of a tile */
    int64_t offset;         /* causal: key j > query i + offset is hidden */
    int causal, hides;      /* hides: causal, or there is a mask */
    double scale;           /* of query key^T */
    double factor;          /* by which queries are loaded */
    double cap;             /* 0: none */
    int32_t failed;         /* no memory, set from any thread */
};

/* What the first five arguments of CALL and SCALE, SOFTCAP, CAUSAL mean. */
void flex_attention_init(struct attention *out, struct flex_device *device,
                         const struct hob_call *call, uint32_t scale,
                         uint32_t softcap, uint32_t causal);
/* VIEW as [lead_shape .., rows, columns]; NULL: absent. */
void flex_attention_operand(const struct attention *job,
                            const struct hob_view *view,
                            struct attention_operand *out);
/* OPERAND of batch entry BATCH from (ROW, COLUMN) on. */
struct flex_matrix flex_attention_at(const struct attention *job,
                                     const struct attention_operand *operand,
                                     int64_t batch, int64_t row,
                                     int64_t column);
/* HOB_ERR_UNSUPPORTED, for the body, where sizes might overflow. */
hob_status flex_attention_fits(const struct hob_call *call, uint32_t softcap);

/* Some queries and keys of a batch entry. */
struct attention_place {
    int64_t batch;
    int64_t query, queries; /* at most lanes */
    int64_t key, keys;      /* at most FLEX_ATTENTION_BLOCK */
};

/* SCORES, a panel with a row for each key, hold query key^T times job->factor:
 * cap them, add the bias, hide what is hidden. SPARE is a panel to work in,
 * SLOPES (or NULL) receives what the cap makes of a change. */
void flex_attention_scores(const struct attention *job,
                           const struct attention_place *place, void *scores,
                           void *spare, void *slopes);

/* Memory that is cut into 64-byte aligned pieces, or, where there is none yet,
 * only counted. */
struct attention_cursor {
    int64_t size;  /* of an element */
    uint64_t used; /* bytes */
    char *memory;
};

static inline void *flex_attention_cut(struct attention_cursor *cursor,
                                       int64_t elements)
{
    char *cut = cursor->memory ? cursor->memory + cursor->used : NULL;

    cursor->used += (uint64_t)(elements * cursor->size + FLEX_ALIGN - 1) /
                    FLEX_ALIGN * FLEX_ALIGN;
    return cut;
}

static inline double flex_attention_get(const struct attention *job,
                                        const void *array, int64_t index)
{
    return job->kernels->size == 8 ? ((const double *)array)[index]
                                   : (double)((const float *)array)[index];
}

static inline void flex_attention_put(const struct attention *job, void *array,
                                      int64_t index, double value)
{
    if (job->kernels->size == 8)
        ((double *)array)[index] = value;
    else
        ((float *)array)[index] = (float)value;
}

/* attention_backward.c */
hob_status flex_attention_backward_prepare(void *device,
                                           const struct hob_call *call,
                                           struct hob_prepare *out);
hob_status flex_attention_backward(void *device, struct hob_call *call);

#endif
