/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_cut.c - how many elements and rows a block of a run has, and where it
 * ends. All of it follows from sizes and strides, so results do not depend on
 * threads.
 */
#include "fused.h"

#include "move.h"

enum {
    ROW_BLOCK = 4096,   /* elements of a block that is rows */
    APART_LEAST = 1024, /* of a run of what lies apart: shorter ones are copied,
                           as short blocks wait for memory one by one */
    ROWS_AREA = 8 << 10, /* bytes for values of rows */
    COLUMNS_AREA = 36 << 10,
    /* Of rows that threads share: a piece has FOLDED rows at most, whose
     * accumulators stay near, and adds up from ADDED_LEAST elements, or its
     * accumulators would be too many, to ADDED_MOST, or its error would grow.
     */
    LONG_PIECE = 1 << 15,
    FOLDED = 4096,
    LANES = 128, /* elements of a row's part that are added apart at most */
    ADDED_LEAST = 128,
    ADDED_MOST = 4096,
    PIECES_MANY = 64 /* without cutting rows */
};

/* Elements of a block whose slots, BYTES for each, stay near; MOST at most. */
static int64_t near_block(uint64_t bytes, int64_t most)
{
    int64_t block = bytes ? (int64_t)(FUSED_NEAR / bytes) : most;

    block -= block % FUSED_BLOCK_LEAST;
    return flex_clamp(block, FUSED_BLOCK_LEAST, most);
}

/* Blocks end where a run of an operand does, so that it need not be copied, or
 * where a short row that repeats does, so that its copy serves again. */
static void choose_ends(struct fused_job *job, const struct flex_loop *loop,
                        int is_input)
{
    const int64_t inner = loop->rank ? loop->shape[loop->rank - 1] : 0;
    int64_t least = FLEX_RUN_LEAST;

    if (loop->rank < 2)
        return;
    if (is_input && loop->strides[loop->rank - 1] &&
        (loop->rank > 2 || loop->strides[0]))
        least = APART_LEAST;
    if (inner < FLEX_RUN_LEAST && loop->rank == 2 && loop->strides[0] == 0 &&
        is_input && !job->plan->fold_count)
        job->period = inner;
    else if (inner >= least && (job->row == 0 || inner < job->row))
        job->row = inner;
}

/* Rows of N elements: some in a block, or a row in some blocks. */
static void init_rows(struct fused_job *job)
{
    const struct fused_plan *plan = job->plan;
    const uint64_t bytes = job->slot_bytes + plan->kept_bytes;
    const int64_t room =
        plan->row_bytes ? ROWS_AREA / plan->row_bytes : FUSED_GROUP;
    const int64_t most = near_block(bytes, ROW_BLOCK);

    job->group = 0;
    if (plan->is_along && job->n > most) { /* init_blocks() looks for room */
        job->group = 1;
        job->block = flex_round_up(job->n, FUSED_BLOCK_LEAST);
    } else if (job->n <= most) {
        job->group = job->n ? most / job->n : FUSED_GROUP;
        job->group = flex_least(job->group, flex_least(room, FUSED_GROUP));
        job->group = flex_clamp(job->group, 1, job->rows);
        job->block = flex_round_up(job->group * (job->n ? job->n : 1),
                                   FUSED_BLOCK_LEAST);
    } else {
        job->block = near_block(job->slot_bytes, ROW_BLOCK);
    }
    job->pitch = flex_round_up(job->group ? job->group : 1, 8);
}

/* Rows whose elements are far apart, but near those of the next row: blocks
 * are elements with the same place in some rows, or some such places of all. */
static void init_columns(struct fused_job *job)
{
    const struct fused_plan *plan = job->plan;
    const int64_t most = near_block(job->slot_bytes, ROW_BLOCK);
    const int64_t room =
        plan->row_bytes ? COLUMNS_AREA / plan->row_bytes : FUSED_COLUMNS;

    job->group = flex_least(flex_least(FUSED_COLUMNS, room),
                            flex_least(most, job->rows));
    job->places = 1;
    if (job->group == job->rows)
        job->places = flex_clamp(most / job->rows, 1, job->n);
    job->block = flex_round_up(job->group * job->places, FUSED_BLOCK_LEAST);
    job->pitch = flex_round_up(job->group, 8);
}

/* Rows that all threads share: blocks are as many rows as there is room for,
 * of all of them some outer parts, or parts of one row. */
static void init_shared(struct fused_job *job)
{
    const int64_t most = near_block(job->slot_bytes, ROW_BLOCK);
    const int64_t piece = FUSED_PIECE / (1 + job->plan->cost);
    int64_t room, others;

    if (job->inner <= LANES)
        job->lanes = job->inner;
    job->block = most;
    if (job->inner <= most) {
        const int64_t fit =
            flex_least(flex_least(most / job->inner, FUSED_COLUMNS), job->side);

        job->group = flex_divide_up(job->side, flex_divide_up(job->side, fit));
        if (job->inner == 1) /* lines of the cache as a whole */
            job->group = flex_least(flex_round_up(job->group, 16), fit);
        if (job->group == job->side)
            job->places =
                flex_clamp(most / (job->side * job->inner), 1, job->outer);
        job->block = flex_round_up(job->group * job->places * job->inner,
                                   FUSED_BLOCK_LEAST);
    }
    room = flex_clamp(piece / job->inner, job->group ? job->group : 1,
                      FOLDED / job->lanes);
    if (job->group)
        room -= room % job->group;
    job->piece.rows = flex_least(job->side, room);
    job->piece.inner =
        job->group ? job->inner : flex_least(job->inner, LONG_PIECE);
    others = job->batches * flex_divide_up(job->side, job->piece.rows) *
             flex_divide_up(job->inner, job->piece.inner);
    job->piece.outer = flex_clamp(
        others < PIECES_MANY ? piece / (job->piece.rows * job->piece.inner)
                             : ADDED_MOST,
        flex_divide_up(ADDED_LEAST * job->lanes, job->piece.inner), ADDED_MOST);
    job->piece.outer = flex_least(job->piece.outer, job->outer);
    job->pitch = flex_round_up(job->rows, 8);
}

static hob_status init_blocks(struct fused_job *job)
{
    const struct fused_plan *plan = job->plan;
    const uint64_t rows_bytes =
        job->way == FUSED_BY_ALL ? 0 : plan->row_bytes * (uint64_t)job->pitch;
    uint64_t kept;

    job->kept_pitch = job->way == FUSED_BY_ALL       ? job->count
                      : job->way == FUSED_BY_COLUMNS ? job->group * job->n
                      : job->group                   ? job->block
                                                     : job->n;
    job->kept_pitch = flex_round_up(job->kept_pitch, FUSED_BLOCK_LEAST);
    kept = plan->kept_bytes * (uint64_t)job->kept_pitch;
    job->kept_at = (uint64_t)job->slot_bytes * (uint64_t)job->block;
    job->arena = job->kept_at + rows_bytes;
    /* Whole rows may be longer, as long as they stay near. */
    if (job->arena > (plan->is_along ? fused_most_arena(job->device)
                                     : (uint64_t)FUSED_ARENA))
        return HOB_ERR_UNSUPPORTED;
    job->kept_bytes = 0;
    if (job->way == FUSED_BY_ALL || job->arena + kept > FUSED_ARENA)
        job->kept_bytes = kept;
    else
        job->arena += kept;
    job->arena = (uint64_t)flex_round_up((int64_t)job->arena, FLEX_ALIGN);
    job->rows_at = job->arena - rows_bytes;
    /* Filled slots are for values of rows too. */
    job->limit = flex_least(job->block, job->n ? job->count : job->rows);
    return HOB_OK;
}

/* So many elements that their copies stay near, yet whole lines of an operand
 * whose rows are columns of the space; and no more than PART_MOST. */
static int64_t part_of(const struct fused_job *job)
{
    enum { PART = 1 << 15, PART_MOST = 1 << 17, LINE = 16 };
    int64_t inner = 1;

    for (uint32_t i = 0; i < job->plan->input_count; i++)
        if (job->in[i].skips) {
            const struct flex_loop *loop = &job->in[i].loop;

            if (loop->shape[loop->rank - 1] > inner)
                inner = loop->shape[loop->rank - 1];
        }
    if (inner > PART_MOST / LINE)
        return PART_MOST;
    inner *= LINE;
    return inner > PART ? inner : PART - PART % inner;
}

/* Whether each block reads but one element of input IN. */
static int is_single(const struct fused_job *job,
                     const struct fused_job_input *in)
{
    const struct flex_loop *loop = &in->loop;
    const uint32_t inner = loop->rank - 1;

    if (in->walk == FUSED_UNIFORM)
        return 1;
    if (in->skips)
        return 0;
    if (in->walk == FUSED_DENSE || job->n == 0 || loop->strides[inner] != 0)
        return 0;
    if (job->way == FUSED_BY_COLUMNS || job->outer > 1)
        return 0;
    if (job->group)
        return job->group == 1 && loop->shape[inner] % job->n == 0;
    return job->row && loop->shape[inner] % job->row == 0;
}

hob_status fused_job_cut(struct fused_job *job)
{
    const struct fused_plan *plan = job->plan;
    hob_status st;

    if (job->way == FUSED_BY_COLUMNS)
        init_columns(job);
    else if (job->way == FUSED_BY_ALL)
        init_shared(job);
    else if (job->way == FUSED_BY_ROWS)
        init_rows(job);
    else
        job->block = near_block(job->slot_bytes, ROW_BLOCK);
    st = init_blocks(job);
    if (st)
        return st;
    for (uint32_t i = 0; i < plan->input_count && !job->group; i++)
        if (!job->in[i].is_row && job->in[i].walk == FUSED_STRIDED &&
            !job->in[i].skips)
            choose_ends(job, &job->in[i].loop, 1);
    for (uint32_t i = 0; i < plan->output_count && !job->group; i++)
        if (!plan->outputs[i].is_row && !job->out[i].is_dense)
            choose_ends(job, &job->out[i].loop, 0);
    if (job->period >= job->block)
        job->period = 0;
    for (uint32_t i = 0; i < plan->input_count; i++)
        job->in[i].is_single =
            !job->in[i].is_row && is_single(job, &job->in[i]);
    if (job->skips)
        job->part = part_of(job);
    return HOB_OK;
}
