/* SPDX-License-Identifier: Apache-2.0 */
/* attention_job.c - see attention.h. */
#include "attention.h"

#include <math.h>
#include <string.h>

/* More than fits into memory, and little enough that no size overflows. */
#define SIZE_LIMIT (INT64_C(1) << 40)

static const double log2_e = 1.4426950408889634;

static const struct flex_attention_kernels *kernels_of(uint32_t isa,
                                                       uint32_t dtype)
{
    const struct flex_attention_kernels *table =
        FLEX_BY_ISA(isa, flex_attention_kernels);

    return &table[dtype == HOB_DTYPE_F64];
}

void flex_attention_operand(const struct attention *job,
                            const struct hob_view *view,
                            struct attention_operand *out)
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

void flex_attention_init(struct attention *out, struct flex_device *device,
                         const struct hob_call *call, uint32_t scale,
                         uint32_t softcap, uint32_t causal)
{
    const struct hob_view *q = hob_arg_view(call, 0);
    const struct hob_view *k = hob_arg_view(call, 1);
    const struct hob_view *v = hob_arg_view(call, 2);

    memset(out, 0, sizeof(*out));
    out->device = device;
    out->kernels = kernels_of(device->isa, q->dtype);
    out->lead_rank = q->rank - 2u;
    out->batches = 1;
    for (uint32_t i = 0; i < out->lead_rank; i++) {
        out->lead_shape[i] = q->shape[i];
        out->batches *= q->shape[i];
    }
    out->s = q->shape[q->rank - 2];
    out->t = k->shape[k->rank - 2];
    out->d = q->shape[q->rank - 1];
    out->e = v->shape[v->rank - 1];
    out->d_room = flex_round_up(out->d, out->kernels->tile);
    out->e_room = flex_round_up(out->e, out->kernels->tile);
    out->offset = out->t - out->s;
    out->causal = call->args[causal].u.i64 != 0;
    out->hides = out->causal || !flex_arg_absent(call, 3);
    out->scale = !flex_arg_absent(call, scale) ? flex_arg_f64(call, scale)
                 : out->d                      ? 1 / sqrt((double)out->d)
                                               : 1;
    out->cap = flex_arg_absent(call, softcap) ? 0 : flex_arg_f64(call, softcap);
    out->factor = out->cap != 0 ? out->scale / out->cap : out->scale * log2_e;
    flex_attention_operand(out, q, &out->query);
    flex_attention_operand(out, k, &out->key);
    flex_attention_operand(out, v, &out->value);
    flex_attention_operand(out, hob_arg_view(call, 3), &out->mask);
    flex_attention_operand(out, hob_arg_view(call, 4), &out->bias);
}

struct flex_matrix flex_attention_at(const struct attention *job,
                                     const struct attention_operand *operand,
                                     int64_t batch, int64_t row, int64_t column)
{
    struct flex_matrix matrix = operand->first;
    int64_t offset = row * matrix.row + column * matrix.column;

    for (uint32_t i = job->lead_rank; i-- > 0;) {
        offset += batch % job->lead_shape[i] * operand->lead[i];
        batch /= job->lead_shape[i];
    }
    matrix.data += offset * (int64_t)hob_dtype_size(matrix.dtype);
    return matrix;
}

hob_status flex_attention_fits(const struct hob_call *call, uint32_t softcap)
{
    for (uint32_t i = 0; i < 3; i++) {
        const struct hob_view *view = hob_arg_view(call, i);

        if (hob_view_count(view) > SIZE_LIMIT ||
            view->shape[view->rank - 1] > SIZE_LIMIT ||
            view->shape[view->rank - 2] > SIZE_LIMIT)
            return HOB_ERR_UNSUPPORTED;
    }
    /* A cap of 0 is a division by 0, which is the body's to do. */
    return !flex_arg_absent(call, softcap) && flex_arg_f64(call, softcap) == 0
               ? HOB_ERR_UNSUPPORTED
               : HOB_OK;
}

void flex_attention_scores(const struct attention *job,
                           const struct attention_place *place, void *scores,
                           void *spare, void *slopes)
{
    const struct flex_attention_kernels *kernels = job->kernels;
    struct flex_matrix from;

    if (job->cap != 0)
        kernels->cap(scores, slopes, place->keys, job->cap * log2_e);
    if (job->bias.first.data) {
        from = flex_attention_at(job, &job->bias, place->batch, place->query,
                                 place->key);
        kernels->load_panel(spare, &from, place->queries, place->keys, log2_e);
        kernels->add(scores, spare, place->keys);
    }
    if (job->mask.first.data) {
        from = flex_attention_at(job, &job->mask, place->batch, place->query,
                                 place->key);
        kernels->hide(scores, place->keys, place->queries,
                      (const uint8_t *)from.data, from.column, from.row);
    }
    /* Hidden from queries before key - offset. */
    if (job->causal &&
        place->key + place->keys - 1 > place->query + job->offset)
        kernels->hide_stairs(scores, place->keys,
                             place->key - job->offset - place->query);
}
