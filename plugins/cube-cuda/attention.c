/* SPDX-License-Identifier: Apache-2.0 */
#include "attention.h"

#include "attention_backward.h"
#include "attention_pass.h"
#include "texts.h"

#include <cube/cube.h>

#include <string.h>

static const char forward_op[] = "attention";
static const char backward_op[] = "attention_backward";

static const struct cube_program forward_program = {
    .name = "attention_sm90",
    .text = cube_text_attention_sm90,
    .libraries = {cube_text_attention_params, cube_text_sm90,
                  cube_text_attention_batch},
    .constants = {"WIDTH", "KEYS", "STAGES", "IS_CAUSAL", "MASK", "EACH"},
    .symbols = {"ELEMENT"},
    .flags = CUBE_TIED,
    .language = CUBE_ONLY_CUDA,
};

/* Rows that a processor walks through, in blocks of BLOCK one after another. */
static int64_t rows_in_turn(const struct ccu_attention *job, int64_t block)
{
    const int64_t processors = job->device->cube.limits.processors;
    const int64_t blocks =
        cube_divide_up(job->rows[ATTENTION_QUERY], block) * job->batches;

    return cube_divide_up(blocks, processors) * block;
}

/* A third warpgroup makes rows of 64 faster by a seventh, unless smaller blocks
 * fill the processors better. */
static int32_t forward_block(const struct ccu_attention *job)
{
    return job->width == 64 &&
                   (job->is_causal ||
                    7 * rows_in_turn(job, 192) <= 8 * rows_in_turn(job, 128))
               ? 192
               : 128;
}

static hob_status run_forward(struct ccu_attention *job,
                              const struct hob_call *call, char **out_message)
{
    const struct ccu_pass pass = {
        .program = &forward_program,
        .operands =
            1 << ATTENTION_QUERY | 1 << ATTENTION_KEY | 1 << ATTENTION_VALUE,
        .rows = ATTENTION_QUERY,
        .block = forward_block(job),
        .tile = 128,
        .stages = 2,
        .each = 1,
        /* Blocks of unlike length are better handed out as groups come free. */
        .is_persistent = !job->is_causal,
    };
    const struct ccu_extent all = {0, job->batches, 0,
                                   job->rows[ATTENTION_QUERY]};

    job->params.results[0] = hob_ret_view(call, 0)->data;
    job->params.lse = hob_ret_view(call, 1)->data;
    return ccu_attention_pass(job, call->op_name, &pass, &all, out_message);
}

/* ---- entries ---- */

static int take_forward(struct ccu_attention *job, void *device,
                        const struct hob_call *call)
{
    return ccu_attention_take(job, device, call, NULL, 5);
}

static int take_backward(struct ccu_attention *job, void *device,
                         const struct hob_call *call)
{
    const struct hob_view *lse = hob_arg_view(call, 5);
    const struct hob_view *delta = hob_arg_view(call, 6);

    return lse->dtype == HOB_DTYPE_F32 && delta->dtype == HOB_DTYPE_F32 &&
           cube_is_contiguous(lse) && cube_is_contiguous(delta) &&
           !cube_arg_i64(call, 11) &&
           ccu_attention_take(job, device, call, hob_arg_view(call, 7), 8);
}

static hob_status prepare_portable(void *device, const struct hob_call *call,
                                   struct hob_prepare *out, const char *op)
{
    const struct hob_entry *entry = cube_entry_find(op);

    return entry->prepare ? entry->prepare(device, call, out) : HOB_OK;
}

static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    struct ccu_attention job;

    return take_forward(&job, device, call)
               ? HOB_OK
               : prepare_portable(device, call, out, forward_op);
}

static hob_status prepare_backward(void *device, const struct hob_call *call,
                                   struct hob_prepare *out)
{
    struct ccu_attention job;

    if (!take_backward(&job, device, call))
        return prepare_portable(device, call, out, backward_op);
    out->workspace_bytes = ccu_attention_backward_bytes(&job);
    return HOB_OK;
}

static hob_status attention(void *opened, struct hob_call *call)
{
    struct ccu_device *device = opened;
    struct ccu_attention job;
    char *message = NULL;
    hob_status status;

    if (!take_forward(&job, device, call))
        return cube_entry_find(forward_op)->execute(device, call);
    status = run_forward(&job, call, &message);
    return status ? cube_fail(&device->cube, call, status, message) : HOB_OK;
}

static hob_status attention_backward(void *opened, struct hob_call *call)
{
    struct ccu_device *device = opened;
    struct ccu_attention job;
    char *message = NULL;
    hob_status status;

    if (!take_backward(&job, device, call))
        return cube_entry_find(backward_op)->execute(device, call);
    status = ccu_attention_backward(&job, call, &message);
    return status ? cube_fail(&device->cube, call, status, message) : HOB_OK;
}

void ccu_attention_install(struct hob_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(entries[i].op, forward_op)) {
            entries[i].prepare = prepare;
            entries[i].execute = attention;
        } else if (!strcmp(entries[i].op, backward_op)) {
            entries[i].prepare = prepare_backward;
            entries[i].execute = attention_backward;
        }
}
