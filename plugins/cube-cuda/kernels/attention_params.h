/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_params.h - what the kernels of attention for compute capability 9.0
 * are told beside the maps of their tensors. It is C for the host and text for
 * the kernels.
 */
#ifndef ATTENTION_PARAMS_H
#define ATTENTION_PARAMS_H

/* Operands, in the order of the maps. */
enum {
    ATTENTION_QUERY,
    ATTENTION_KEY,
    ATTENTION_VALUE,
    ATTENTION_GRAD,
    ATTENTION_MAPS
};
/* Leading dimensions of a tensor, the batch; sizes of 1 come first. */
enum { ATTENTION_LEAD = 3 };
/* All that a group can have. */
enum { ATTENTION_SHARED_BYTES = 227 * 1024 };

struct attention_params {
    int queries, keys;
    int offset; /* causal: query i sees keys up to i + offset */
    int blocks; /* that the rows of a batch entry are cut into */
    int tasks;  /* blocks of all batch entries that a launch is about */
    int first;  /* of these entries */
    int key, key_end; /* backward: what a launch is about of the keys */
    int lead[ATTENTION_LEAD];
    int moves;   /* bit ATTENTION_LEAD operand + axis: its data depend on it */
    float scale; /* of the scores */
    void *results[3]; /* forward one; d_query, d_key, d_value */
    float *lse;
    const float *delta;
    float *known; /* lse and delta, see attention_known_sm90.cu */
    void *slopes; /* see attention_slopes.cu */
    float *sums;  /* what keys before KEY add to d_query; NULL: all are there */
    const unsigned char *mask; /* with strides in elements */
    long long mask_row, mask_column, mask_lead[ATTENTION_LEAD];
};

#endif
