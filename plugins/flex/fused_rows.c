/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_rows.c - values of rows: read, spread over the elements of a block, got
 * from accumulators, stored.
 */
#include "fused.h"

#include <math.h>
#include <string.h>

void fused_rows_load(struct fused_thread *thread, int64_t first, int64_t count)
{
    const struct fused_job *job = thread->job;

    for (uint32_t i = 0; i < job->plan->input_count; i++) {
        const struct fused_job_input *in = &job->in[i];
        char stored[FUSED_COLUMNS * sizeof(uint16_t)];

        if (!in->is_row)
            continue;
        flex_loop_gather(&in->loop, first, count,
                         in->load ? stored : (char *)thread->at[i]);
        if (in->load)
            in->load(thread->at[i], stored, count);
    }
}

void fused_rows_store(struct fused_thread *thread, int64_t first, int64_t count)
{
    const struct fused_job *job = thread->job;

    for (uint32_t i = 0; i < job->plan->output_count; i++) {
        const struct fused_output *planned = &job->plan->outputs[i];
        const struct fused_job_output *out = &job->out[i];
        char narrow[FUSED_COLUMNS * sizeof(uint16_t)];
        const void *from = thread->at[planned->value];

        if (!planned->is_row)
            continue;
        if (out->store) {
            out->store(narrow, from, count);
            from = narrow;
        }
        flex_loop_scatter(&out->loop, first, count, from);
    }
}

#define T uint32_t
#define SUFFIX(name) name##_32
#include "fused_expand_tmpl.h"
#define T uint64_t
#define SUFFIX(name) name##_64
#include "fused_expand_tmpl.h"

/* Each of COUNT values of SIZE bytes N times. */
static void expand_rows(char *out, const char *in, int64_t count, int64_t n,
                        uint32_t size)
{
    if (size == 4)
        expand_32(out, in, count, n);
    else if (size == 8)
        expand_64(out, in, count, n);
    else
        for (int64_t r = 0; r < count; r++)
            flex_copy_strided(out + r * n * size, 1, in + r * size, 0, n, size);
}

/* PLACES times the values of COUNT rows, each INNER times. */
static void expand_block(char *out, const char *in, int64_t count,
                         int64_t inner, int64_t places, uint32_t size)
{
    const int64_t bytes = count * inner * size;

    if (inner == 1)
        memcpy(out, in, (size_t)bytes);
    else
        expand_rows(out, in, count, inner, size);
    for (int64_t k = 1; k < places; k++)
        memcpy(out + k * bytes, out, (size_t)bytes);
}

void fused_rows_expand(struct fused_thread *thread, uint32_t first,
                       uint32_t end, int64_t at, int64_t count)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;

    for (uint32_t i = first; i < end; i++) {
        const struct fused_value *value = &plan->values[plan->expanded[i]];
        char *from = (char *)thread->at[value->of] + at * value->size;
        char *slot = thread->arena + value->offset * (uint64_t)job->block;

        if (job->places == 1 &&
            (job->inner == 1 || (job->group <= 1 && !value->is_used)))
            slot = from;
        else if (job->group > 1 || job->places > 1)
            expand_block(slot, from, count, job->inner, job->places,
                         value->size);
        else
            flex_copy_strided(slot, 1, from, 0,
                              flex_least(job->inner, job->block), value->size);
        thread->at[plan->expanded[i]] = slot;
    }
}

void fused_pass_begin(struct fused_thread *thread, uint32_t p, int64_t count)
{
    const struct fused_pass *pass = &thread->job->plan->passes[p];

    fused_instructions(thread, pass->row_first, pass->row_end, count, NULL);
    fused_rows_expand(thread, pass->expanded_first, pass->expanded_end, 0,
                      count);
}

void fused_pass_end(struct fused_thread *thread, uint32_t p, int64_t at,
                    int64_t count)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;

    for (uint32_t i = 0; i < plan->fold_count; i++) {
        const struct fused_fold *fold = &plan->folds[i];
        char *acc = thread->rows + fold->offset * (uint64_t)job->pitch +
                    at * fold->is.acc_size;
        char narrow[FUSED_COLUMNS * sizeof(uint16_t)];
        void *out = thread->at[fold->out];

        if (fold->pass != p)
            continue;
        for (int64_t r = 0; r < count && job->n == 0; r++) {
            union flex_cell none;

            flex_reduction_identity(&fold->is, &none);
            if (fold->is.mean)
                none.f64 = NAN;
            memcpy(acc + r * fold->is.acc_size, &none, fold->is.acc_size);
        }
        flex_reduction_finish(&fold->is, fold->half ? narrow : out, acc, count,
                              job->n);
        if (fold->half)
            job->device->kernels->load_f32[fold->half](out, narrow, count);
    }
}
