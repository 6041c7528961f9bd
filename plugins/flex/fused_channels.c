/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_channels.c - group_norm in a program. A row is a group of channels; its
 * weight and bias have a number for each channel, which is read where it lies
 * and never spread over the elements.
 */
#include "fused.h"

#include "ops/group_norm.h"
#include "rows.h"

/* A vector that repeats, of which each number is for some elements. */
enum fused_walk fused_channels_walk(struct fused_job_input *input)
{
    const struct flex_loop *loop = &input->loop;
    const int is_spread = loop->rank > 1 && !loop->strides[loop->rank - 1];
    const uint32_t at = loop->rank - 1u - (uint32_t)is_spread;

    if (!loop->rank || at > 1 || loop->strides[at] != 1 ||
        (at && loop->strides[0]))
        return (enum fused_walk)input->walk;
    input->length = loop->shape[at];
    input->places = is_spread ? loop->shape[at + 1] : 1;
    return FUSED_CHANNELS;
}

/* What VALUE has for row INDEX, of N elements, of a block. */
static struct flex_channels channels_of(const struct fused_thread *thread,
                                        uint16_t value, int64_t index,
                                        const struct fused_rows_part *part)
{
    const struct fused_job *job = thread->job;
    const int64_t size =
        value == FUSED_NO_VALUE ? 0 : (int64_t)job->plan->values[value].size;
    const struct fused_job_input *in =
        value < job->plan->input_count ? &job->in[value] : NULL;
    struct flex_channels numbers = {NULL, part->row};

    if (value == FUSED_NO_VALUE)
        return numbers;
    if (job->plan->values[value].kind == FUSED_ROW) {
        numbers.data = (char *)thread->at[value] + index * size;
    } else if (in && in->walk == FUSED_UNIFORM) {
        numbers.data = thread->at[value];
    } else if (in && in->walk == FUSED_CHANNELS) {
        const int64_t first = (part->at + index) * part->row / in->places;

        numbers.data = (char *)in->vector + first % in->length * size;
        numbers.places = in->places;
    } else { /* a number for each element */
        numbers.data = (char *)thread->at[value] + index * part->row * size;
        numbers.places = 1;
    }
    return numbers;
}

void fused_channels_run(struct fused_thread *thread,
                        const struct fused_instruction *made, int64_t n,
                        const struct fused_rows_part *part)
{
    const struct fused_job *job = thread->job;
    const struct fused_value *out = &job->plan->values[made->out];
    const double *epsilon = thread->at[made->number];
    const int64_t bytes = part->row * out->size;

    for (int64_t i = 0; i < n / part->row; i++)
        flex_group_norm_row(
            flex_row_kernels(job->device, out->dtype), out->size,
            (char *)thread->at[made->out] + i * bytes,
            (char *)thread->at[made->args[0]] + i * bytes,
            channels_of(thread, made->args[1], i, part),
            channels_of(thread, made->args[2], i, part), *epsilon, part->row);
}
