/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - see job.h. */
#include "job.h"

#include <hob/ext/flex.h>

#include <math.h>
#include <string.h>

/* More than fits into memory, and little enough that no size overflows. */
#define COLUMNS_MAX (INT64_C(1) << 36)
#define ROWS_MAX (INT64_C(1) << 56) /* in all of a tensor */

const struct flash_places flash_attention_places = {
    .mask = 3, .scale = 4, .causal = 5};
const struct flash_places flash_attention_grad_places = {
    .out = 3, .grad = 4, .mask = 5, .scale = 6, .causal = 7};

double flash_scale(const hob_value *scale, int64_t d)
{
    if (scale->tag != HOB_TAG_ABSENT)
        return scale->u.f64;
    return d ? 1 / sqrt((double)d) : 1;
}

/* VIEW as [lead_shape.., rows, columns]; dimensions of size 1 repeat. */
static void set_operand(const struct flash_job *job,
                        const struct hob_view *view, struct flash_operand *out)
{
    const uint32_t rank = job->lead_rank + 2;

    memset(out, 0, sizeof(*out));
    if (!view)
        return;
    out->first.data = view->data;
    out->first.dtype = view->dtype;
    for (uint32_t i = 0; i < view->rank; i++) {
        const int64_t stride = view->shape[i] == 1 ? 0 : view->strides[i];
        const uint32_t axis = rank - view->rank + i;

        if (axis == rank - 1)
            out->first.column = stride;
        else if (axis == rank - 2)
            out->first.row = stride;
        else
            out->lead[axis] = stride;
    }
}

/* COUNT times all of SIZES; more than ROWS_MAX where it is more. */
static int64_t count_rows(int64_t count, const int64_t *sizes, uint32_t rank)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (count && sizes[i] > ROWS_MAX / count)
            return ROWS_MAX + 1;
        count *= sizes[i];
    }
    return count;
}

hob_status flash_job_open(const struct hob_call *call,
                          const struct flash_places *places,
                          struct flash_job *out)
{
    const struct hob_view *q = hob_arg_view(call, 0);
    const struct hob_view *k = hob_arg_view(call, 1);
    const struct hob_view *v = hob_arg_view(call, 2);
    const struct hob_meta *meta = &call->metas[0];
    const struct flex_compute *flex;
    void *instance = NULL;

    memset(out, 0, sizeof(*out));
    flex = call->host->interface(call->device, FLEX_COMPUTE_NAME,
                                 FLEX_COMPUTE_VERSION, &instance);
    if (!flex)
        return HOB_ERR_UNSUPPORTED;
    out->kernels = flash_kernels_find(flex->isa(instance), q->dtype);
    out->lead_rank = meta->rank - 2u;
    for (uint32_t i = 0; i < out->lead_rank; i++)
        out->lead_shape[i] = meta->shape[i];
    out->batches = count_rows(1, out->lead_shape, out->lead_rank);
    out->s_q = q->shape[q->rank - 2];
    out->s_k = k->shape[k->rank - 2];
    out->d = q->shape[q->rank - 1];
    out->d_v = v->shape[v->rank - 1];
    if (out->d > COLUMNS_MAX || out->d_v > COLUMNS_MAX ||
        count_rows(out->batches, &out->s_q, 1) > ROWS_MAX ||
        count_rows(out->batches, &out->s_k, 1) > ROWS_MAX)
        return HOB_ERR_UNSUPPORTED;
    out->d_room = flash_round_up(out->d, out->kernels->tile);
    out->d_v_room = flash_round_up(out->d_v, out->kernels->tile);
    out->offset = out->s_k - out->s_q;
    out->causal = call->args[places->causal].u.i64 != 0;
    out->scale = flash_scale(&call->args[places->scale], out->d);
    set_operand(out, q, &out->q);
    set_operand(out, k, &out->k);
    set_operand(out, v, &out->v);
    set_operand(out, hob_arg_view(call, places->mask), &out->mask);
    if (places->grad) {
        set_operand(out, hob_arg_view(call, places->out), &out->out);
        set_operand(out, hob_arg_view(call, places->grad), &out->grad);
    }
    return HOB_OK;
}

void flash_job_start(struct hob_call *call, struct flash_job *job)
{
    struct flash_operand *const grads[3] = {&job->dq, &job->dk, &job->dv};

    job->workers = call->workspace;
    if (call->ret_count == 1)
        set_operand(job, hob_ret_view(call, 0), &job->out);
    else
        for (uint32_t i = 0; i < 3; i++)
            set_operand(job, hob_ret_view(call, i), grads[i]);
}

void *flash_take(struct flash_cursor *cursor, int64_t elements)
{
    char *taken = cursor->memory ? cursor->memory + cursor->used : NULL;

    cursor->used += (elements * cursor->size + 63) / 64 * 64;
    return taken;
}

struct flash_matrix flash_matrix_at(const struct flash_job *job,
                                    const struct flash_operand *operand,
                                    int64_t batch, int64_t row)
{
    struct flash_matrix matrix = operand->first;
    int64_t offset = row * matrix.row;

    for (uint32_t i = job->lead_rank; i-- > 0;) {
        offset += batch % job->lead_shape[i] * operand->lead[i];
        batch /= job->lead_shape[i];
    }
    matrix.data += offset * (int64_t)hob_dtype_size(matrix.dtype);
    return matrix;
}

int flash_query_is_dead(const struct flash_job *job, int64_t batch,
                        int64_t query)
{
    const struct flash_matrix mask =
        flash_matrix_at(job, &job->mask, batch, query);
    const int64_t keys =
        job->causal ? flash_least(job->s_k, query + job->offset + 1) : job->s_k;

    for (int64_t j = 0; j < keys; j++)
        if (!job->mask.first.data || !mask.data[j * mask.column])
            return 0;
    return 1;
}

/* The bytes of MASK from column KEY on. */
static const uint8_t *mask_at(const struct flash_matrix *mask, int64_t key)
{
    return (const uint8_t *)mask->data + key * mask->column;
}

void flash_hide_keys(const struct flash_job *job, int64_t batch, void *scores,
                     int64_t key, int64_t keys, int64_t query, int64_t queries)
{
    if (job->mask.first.data) {
        const struct flash_matrix mask =
            flash_matrix_at(job, &job->mask, batch, query);

        job->kernels->hide(scores, keys, queries, mask_at(&mask, key),
                           mask.column, mask.row);
    }
    /* Hidden from queries before key - offset. */
    if (job->causal && key + keys - 1 > query + job->offset)
        job->kernels->hide_stairs(scores, keys, key - job->offset - query);
}
