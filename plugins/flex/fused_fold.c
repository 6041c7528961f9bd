/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_fold.c - a block's elements to the accumulators of its rows.
 */
#include "fused.h"

#include <string.h>

enum {
    FEW = 64,  /* columns: some places of fewer are added side by side */
    WIDE = 512 /* columns that then are */
};

static int has_identity(const struct flex_reduction *is)
{
    return is->kind != FLEX_FOLD_MAX && is->kind != FLEX_FOLD_MIN;
}

/* COUNT accumulators from what IN has first, or from nothing; the rows of it
 * that are used up. */
static int64_t start(const struct flex_reduction *is, void *acc, const void *in,
                     int64_t count)
{
    union flex_cell none;

    if (!has_identity(is)) { /* of one size, then */
        memcpy(acc, in, (size_t)(count * is->acc_size));
        return 1;
    }
    flex_reduction_identity(is, &none);
    flex_copy_strided(acc, 1, &none, 0, count, is->acc_size);
    return 0;
}

/* PLACES rows of COUNT columns, few, to accumulators of these; 0 if that is not
 * worth it. SIZE: of an element. */
static int fold_few(const struct flex_reduction *is, void *acc, const char *in,
                    int64_t places, int64_t count, int64_t size)
{
    const int64_t side =
        flex_round_up(flex_divide_up(FEW, flex_least(count, FEW)), 8);
    const int64_t width = side * count;
    union flex_cell wide[WIDE];
    int64_t done = 0;

    if (count >= FEW || places < 2 * side)
        return 0;
    done = start(is, wide, in, width);
    is->rows(wide, in + done * width * size, width, places / side - done,
             width);
    is->combine(wide, (char *)wide + count * is->acc_size, count, side - 1,
                count);
    done = places / side * side;
    is->rows(wide, in + done * count * size, count, places - done, count);
    memcpy(acc, wide, (size_t)(count * is->acc_size));
    return 1;
}

/* N elements, the same places of part->rows rows one after the other. */
static void fold_columns(const struct flex_reduction *is, char *acc,
                         const char *in, int64_t n, int64_t size,
                         const struct fused_rows_part *part)
{
    const int64_t places = n / part->rows;
    union flex_cell few[FEW];
    int64_t done = 0;

    if (fold_few(is, part->joins ? (char *)few : acc, in, places, part->rows,
                 size)) {
        if (part->joins)
            is->combine(acc, few, 0, 1, part->rows);
        return;
    }
    if (!part->joins)
        done = start(is, acc, in, part->rows);
    if (places > done)
        is->rows(acc, in + done * part->rows * size, part->rows, places - done,
                 part->rows);
}

/* N elements, parts of rows. */
static void fold_rows(const struct flex_reduction *is, char *acc,
                      const char *in, int64_t n, int64_t size,
                      const struct fused_rows_part *part)
{
    for (int64_t i = 0; i < n / part->row; i++, in += part->row * size) {
        char *own = acc + i % part->rows * is->acc_size;
        union flex_cell cell;

        if (!part->joins && i < part->rows) {
            is->fold(own, in, part->row);
            continue;
        }
        is->fold(&cell, in, part->row);
        is->combine(own, &cell, 0, 1, 1);
    }
}

void fused_fold_block(struct fused_thread *thread,
                      const struct fused_instruction *made, int64_t n,
                      const struct fused_rows_part *part)
{
    const struct fused_job *job = thread->job;
    const struct fused_fold *fold = &job->plan->folds[made->fold];
    const uint32_t size = job->plan->values[made->args[0]].size;
    const char *in = thread->at[made->args[0]];
    char *acc = thread->rows + fold->offset * (uint64_t)job->pitch;

    if (thread->partials)
        acc =
            (char *)(thread->partials + made->fold * job->pitch * job->lanes) +
            part->first * fold->is.acc_size;
    if (job->way == FUSED_BY_COLUMNS || job->lanes == job->inner)
        fold_columns(&fold->is, acc, in, n, size, part);
    else
        fold_rows(&fold->is, acc, in, n, size, part);
}
