/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_block.c - one block of a run: operands brought near, instructions,
 * results stored.
 */
#include "fused.h"

#include "move.h"
#include "ops/map.h"
#include "rows.h"

#include <string.h>

/* ---- a thread ---- */

/* COUNT elements equal to the one at FROM. */
static void fill(void *out, const void *from, int64_t count, uint32_t size)
{
    flex_copy_strided(out, 1, from, 0, count, size);
}

/* Inputs that are the same everywhere. */
static void begin_uniform(struct fused_thread *thread, uint32_t i)
{
    const struct fused_job *job = thread->job;
    const struct fused_job_input *in = &job->in[i];
    const struct fused_value *value = &job->plan->values[i];
    char *slot = thread->arena + in->offset * (uint64_t)job->block;
    uint64_t element;

    if (!value->is_used && !in->load) {
        thread->at[i] = in->loop.data;
        return;
    }
    if (in->load)
        in->load(&element, in->loop.data, 1);
    else
        memcpy(&element, in->loop.data, value->size);
    fill(slot, &element, value->is_used ? job->limit : 1, value->size);
    thread->at[i] = slot;
}

static void begin_values(struct fused_thread *thread)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;

    for (uint32_t i = 0; i < plan->value_count; i++) {
        const struct fused_value *value = &plan->values[i];
        char *slot = thread->arena + value->offset * (uint64_t)job->block;

        switch (value->kind) {
        case FUSED_CELL:
            thread->at[i] = (void *)(uintptr_t)&job->cells[value->of];
            break;
        case FUSED_FILLED:
            fill(slot, &job->cells[value->of], job->limit, value->size);
            thread->at[i] = slot;
            break;
        case FUSED_ROW:
            thread->at[i] = thread->rows + value->offset * (uint64_t)job->pitch;
            break;
        case FUSED_KEPT:
            thread->at[i] =
                thread->kept + value->offset * (uint64_t)job->kept_pitch;
            break;
        default:
            thread->at[i] = slot;
            break;
        }
    }
    for (uint32_t i = 0; i < plan->input_count; i++) {
        thread->keys[i] = -1;
        thread->part[i] = NULL;
        if (job->in[i].walk == FUSED_VECTOR)
            thread->at[i] = job->in[i].vector;
        if (!job->in[i].is_row && job->in[i].walk == FUSED_UNIFORM &&
            job->count)
            begin_uniform(thread, i);
    }
}

static void give_arena(struct fused_thread *thread)
{
    if (thread->arena != thread->own)
        flex_scratch_give(thread->job->device, thread->arena,
                          thread->job->arena);
}

hob_status fused_thread_begin(struct fused_thread *thread,
                              struct fused_job *job, char *rows)
{
    thread->job = job;
    thread->partials = NULL;
    thread->arena = thread->own;
    if (job->arena > FUSED_OWN)
        thread->arena = flex_scratch_take(job->device, job->arena);
    if (!thread->arena) {
        __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
        return HOB_ERR_MEMORY;
    }
    thread->rows = rows ? rows : thread->arena + job->rows_at;
    thread->kept = job->kept ? job->kept : thread->arena + job->kept_at;
    thread->kept_bytes = job->kept ? 0 : job->kept_bytes;
    if (thread->kept_bytes) {
        thread->kept = flex_scratch_take(job->device, thread->kept_bytes);
        if (!thread->kept) {
            give_arena(thread);
            __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
            return HOB_ERR_MEMORY;
        }
    }
    begin_values(thread);
    return HOB_OK;
}

void fused_thread_end(struct fused_thread *thread)
{
    give_arena(thread);
    if (thread->kept_bytes)
        flex_scratch_give(thread->job->device, thread->kept,
                          thread->kept_bytes);
    for (uint32_t i = 0; i < thread->job->plan->output_count; i++)
        if (thread->job->out[i].is_past) {
            flex_move_kernels(thread->job->device)->fence();
            break;
        }
}

void fused_kept(struct fused_thread *thread, int64_t at)
{
    const struct fused_job *job = thread->job;
    const struct fused_plan *plan = job->plan;

    for (uint32_t i = plan->input_count; i < plan->register_count; i++) {
        const struct fused_value *value = &plan->values[i];

        if (value->kind == FUSED_KEPT)
            thread->at[i] = thread->kept +
                            value->offset * (uint64_t)job->kept_pitch +
                            at * value->size;
    }
}

/* ---- inputs ---- */

/* One of several: N elements as stored, copied to BUFFER if they must be. */
static void *fetch_strided(struct fused_thread *thread, uint32_t i,
                           int64_t first, int64_t n, void *buffer)
{
    const struct flex_loop *loop = &thread->job->in[i].loop;
    int64_t key;

    if (thread->job->in[i].is_single)
        return loop->data + flex_loop_offset(loop, first) * (int64_t)loop->size;
    key = flex_loop_repeat_key(loop, first, n);
    if (key >= 0 && key == thread->keys[i] && n <= thread->held[i])
        return buffer;
    thread->keys[i] = -1;
    if (flex_loop_fetch(loop, first, n, buffer) != buffer)
        return loop->data + flex_loop_offset(loop, first) * (int64_t)loop->size;
    thread->keys[i] = key;
    thread->held[i] = n;
    return buffer;
}

static void fetch(struct fused_thread *thread, uint32_t i, int64_t first,
                  int64_t n)
{
    const struct fused_job *job = thread->job;
    const struct fused_job_input *in = &job->in[i];
    const struct fused_value *value = &job->plan->values[i];
    char *slot = thread->arena + in->offset * (uint64_t)job->block;
    char *stored =
        in->load ? thread->arena + in->stored * (uint64_t)job->block : slot;
    void *data;

    if (in->walk == FUSED_UNIFORM || in->walk == FUSED_VECTOR ||
        in->walk == FUSED_CHANNELS)
        return;
    if (thread->part[i])
        data = thread->part[i] +
               (first - thread->part_at) * (int64_t)in->loop.size;
    else if (in->walk == FUSED_DENSE)
        data = in->loop.data + first * (int64_t)in->loop.size;
    else
        data = fetch_strided(thread, i, first, n, stored);
    if (in->load)
        in->load(slot, data, in->is_single ? 1 : n);
    if (in->is_single && value->is_used) {
        uint64_t element;

        memcpy(&element, in->load ? (void *)slot : data, value->size);
        fill(slot, &element, n, value->size);
        data = slot;
    }
    thread->at[i] = in->load ? slot : data;
}

void fused_fetch(struct fused_thread *thread, uint32_t inputs, int64_t first,
                 int64_t n)
{
    for (uint32_t i = 0; inputs; i++, inputs >>= 1)
        if (inputs & 1)
            fetch(thread, i, first, n);
}

/* ---- instructions ---- */

/* What MADE has given, as halves have it. */
static void round_halves(struct fused_thread *thread,
                         const struct fused_instruction *made, int64_t n)
{
    const struct fused_job *job = thread->job;
    const struct flex_kernels *kernels = job->device->kernels;
    void *out = thread->at[made->out];
    char *narrow =
        thread->arena + job->plan->narrow_offset * (uint64_t)job->block;

    if (!made->round)
        return;
    kernels->store_f32[made->round](narrow, out, n);
    kernels->load_f32[made->round](out, narrow, n);
}

static void run_map(struct fused_thread *thread,
                    const struct fused_instruction *made, int64_t n)
{
    const struct flex_kernels *kernels = thread->job->device->kernels;
    const struct fused_plan *plan = thread->job->plan;
    void *const *at = thread->at;
    const void *args[3];
    flex_map_fn map = made->fn.map;

    for (int i = 0; i < 3; i++)
        args[i] = made->args[i] == FUSED_NO_VALUE ? NULL : at[made->args[i]];
    if (made->is_power) {
        const struct fused_value *exponent = &plan->values[made->args[1]];

        map = kernels->map[flex_power_map(thread->job->powers[exponent->of])]
                          [exponent->dtype];
    }
    map(at[made->out], args[0], args[1], args[2], n);
    round_halves(thread, made, n);
}

/* Row by row; a weight or bias that is the same for all of them lies there
 * once. */
static void run_along(struct fused_thread *thread,
                      const struct fused_instruction *made, int64_t n,
                      int64_t row)
{
    const struct fused_job *job = thread->job;
    const struct flex_row_kernels *kernels =
        flex_row_kernels(job->device, job->plan->values[made->out].dtype);
    const double *number =
        made->number == FUSED_NO_VALUE ? NULL : thread->at[made->number];
    char *out = thread->at[made->out];
    const char *args[3];
    int64_t steps[3];

    for (int i = 0; i < 3; i++) {
        const uint16_t value = made->args[i];
        const int is_input = value < job->plan->input_count;

        args[i] = value == FUSED_NO_VALUE ? NULL : thread->at[value];
        steps[i] = value == FUSED_NO_VALUE ||
                           (is_input && job->in[value].walk == FUSED_VECTOR)
                       ? 0
                       : row * job->plan->values[value].size;
    }
    for (int64_t i = 0; i < n / row; i++)
        made->fn.along(kernels, out + i * steps[0], args[0] + i * steps[0],
                       args[1] ? args[1] + i * steps[1] : NULL,
                       args[2] ? args[2] + i * steps[2] : NULL, number, row);
}

static void run_cast(struct fused_thread *thread,
                     const struct fused_instruction *made, int64_t n)
{
    const struct fused_job *job = thread->job;
    void *out = thread->at[made->out];
    const void *in = thread->at[made->args[0]];
    char *narrow =
        thread->arena + job->plan->narrow_offset * (uint64_t)job->block;

    if (!made->round) {
        made->fn.cast(out, in, n);
        return;
    }
    made->fn.cast(narrow, in, n);
    job->device->kernels->load_f32[made->round](out, narrow, n);
}

void fused_instructions(struct fused_thread *thread, uint32_t first,
                        uint32_t end, int64_t n,
                        const struct fused_rows_part *part)
{
    const struct fused_job *job = thread->job;

    for (uint32_t i = first; i < end; i++) {
        const struct fused_instruction *made = &job->plan->instructions[i];

        switch (made->kind) {
        case FUSED_DO_MAP:
            run_map(thread, made, n);
            break;
        case FUSED_DO_CAST:
            run_cast(thread, made, n);
            break;
        case FUSED_DO_FOLD:
            fused_fold_block(thread, made, n, part);
            break;
        case FUSED_DO_ALONG:
            if (made->fn.along)
                run_along(thread, made, n, part->row);
            else
                fused_channels_run(thread, made, n, part);
            round_halves(thread, made, n);
            break;
        default:
            made->fn.chain(&job->links[made->first], made->count, thread->at,
                           n);
            break;
        }
    }
}

/* ---- outputs ---- */

/* Where N elements of OUT from FIRST on lie, if they do one after the other. */
static char *contiguous(const struct fused_job_output *out, int64_t first,
                        int64_t n)
{
    const struct flex_loop *loop = &out->loop;
    const uint32_t inner = loop->rank - 1;

    if (out->is_dense)
        return loop->data + first * (int64_t)loop->size;
    if (loop->strides[inner] != 1 ||
        first % loop->shape[inner] + n > loop->shape[inner])
        return NULL;
    return loop->data + flex_loop_offset(loop, first) * (int64_t)loop->size;
}

void fused_targets(struct fused_thread *thread, const struct fused_pass *pass,
                   int64_t first, int64_t n)
{
    const struct fused_job *job = thread->job;

    for (uint32_t i = 0; pass->outputs >> i; i++) {
        const uint32_t value = job->plan->outputs[i].value;
        char *target = NULL;

        if (!(pass->outputs >> i & 1) || !job->out[i].is_direct)
            continue;
        target = contiguous(&job->out[i], first, n);
        thread->at[value] =
            target ? target
                   : thread->arena +
                         job->plan->values[value].offset * (uint64_t)job->block;
    }
}

static void store_block(struct fused_thread *thread,
                        const struct fused_job_output *out, const void *from,
                        int64_t first, int64_t n)
{
    const struct fused_job *job = thread->job;
    const struct flex_move_kernels *moves = flex_move_kernels(job->device);
    char *target = contiguous(out, first, n);
    char *narrow =
        thread->arena + job->plan->narrow_offset * (uint64_t)job->block;

    if (target == from)
        return;
    if (out->store) {
        const int here = target && !out->is_past;

        out->store(here ? target : narrow, from, n);
        if (here)
            return;
        from = narrow;
    }
    if (!target)
        flex_loop_scatter(&out->loop, first, n, from);
    else if (out->is_past)
        moves->stream(target, from, n * (int64_t)out->loop.size);
    else
        memcpy(target, from, (size_t)n * out->loop.size);
}

void fused_store(struct fused_thread *thread, const struct fused_pass *pass,
                 int64_t first, int64_t n)
{
    const struct fused_job *job = thread->job;

    for (uint32_t i = 0; pass->outputs >> i; i++)
        if (pass->outputs >> i & 1)
            store_block(thread, &job->out[i],
                        thread->at[job->plan->outputs[i].value], first, n);
}
