/* SPDX-License-Identifier: Apache-2.0 */
/* attention_pass.h - launches of the kernels of attention. */
#ifndef CCU_ATTENTION_PASS_H
#define CCU_ATTENTION_PASS_H

#include "attention_job.h"

#include <cube/cube.h>

/* A kernel, and how it is cut. All have the constants WIDTH, TILE, STAGES,
 * IS_CAUSAL, MASK, EACH and the symbol ELEMENT; they are given maps of some
 * operands, then the parameters. */
struct ccu_pass {
    const struct cube_program *program;
    uint32_t operands;     /* a bit for each that is mapped */
    uint32_t rows;         /* the operand of whose rows are the blocks */
    int32_t block, tile;   /* rows that stay, rows that pass by */
    int32_t stages;        /* of the ring of tiles */
    int32_t each;          /* times 64 rows of a warpgroup */
    uint32_t group_size;   /* 0: warpgroups for a block, one for copies */
    int32_t is_persistent; /* no more groups than processors */
};

/* What a launch is about: COUNT entries of the batch from FIRST on, and of
 * each the rows from ROW to END - 1. */
struct ccu_extent {
    int64_t first, count, row, end;
};

/* Launch PASS on EXTENT of JOB. Sets what of JOB's parameters depends on
 * that. */
hob_status ccu_attention_pass(struct ccu_attention *job, const char *op_name,
                              const struct ccu_pass *pass,
                              const struct ccu_extent *extent,
                              char **out_message);

#endif
