/* SPDX-License-Identifier: Apache-2.0 */
#include "attention_job.h"

#include <cube/cube.h>

#include <math.h>
#include <string.h>

enum { VECTOR = 8 /* elements to which rows are aligned */ };

/* More than anybody has, and little enough that no index overflows: rows,
 * strides, rows of all batch entries. */
#define ROWS_MOST (INT64_C(1) << 30)
#define STRIDE_MOST (INT64_C(1) << 38)
#define ALL_MOST (INT64_C(1) << 34)

static int64_t step_of(const struct hob_view *view, uint32_t back)
{
    return view->rank < back || view->shape[view->rank - back] == 1
               ? 0
               : view->strides[view->rank - back];
}

/* VIEW without its last two dimensions. */
static struct hob_view outer_of(const struct hob_view *view)
{
    struct hob_view outer = *view;

    outer.rank = view->rank > 2 ? (uint8_t)(view->rank - 2) : 0;
    return outer;
}

/* Lay the batch out; 0 where it has too many dimensions. */
static int take_lead(struct ccu_attention *job, const struct hob_view *query)
{
    struct attention_params *params = &job->params;
    struct hob_view outer;
    struct cube_space space;
    uint32_t skipped;

    cube_space_init(&space, query->rank - 2u, query->shape);
    for (uint32_t i = 0; i < job->maps; i++) {
        outer = outer_of(job->views[i]);
        cube_space_add(&space, &outer);
    }
    outer = outer_of(job->mask ? job->mask : query);
    cube_space_add(&space, &outer);
    cube_space_collapse(&space);
    if (space.rank > ATTENTION_LEAD || space.count < 1 ||
        space.count > ROWS_MOST)
        return 0;
    job->batches = space.count;
    skipped = ATTENTION_LEAD - space.rank;
    for (uint32_t k = 0; k < skipped; k++)
        params->lead[k] = 1;
    for (uint32_t k = 0; k < space.rank; k++) {
        params->lead[skipped + k] = (int)space.sizes[k];
        params->mask_lead[skipped + k] = space.strides[job->maps][k];
        for (uint32_t i = 0; i < job->maps; i++) {
            job->strides[i][skipped + k] = space.strides[i][k];
            if (space.strides[i][k])
                params->moves |= 1 << (ATTENTION_LEAD * i + skipped + k);
        }
    }
    return 1;
}

static int is_stride(int64_t stride)
{
    return stride % VECTOR == 0 && stride >= 0 && stride < STRIDE_MOST;
}

/* Whether operand INDEX lies as copies of boxes want it. */
static int take_operand(struct ccu_attention *job, uint32_t index)
{
    const struct hob_view *view = job->views[index];
    const uint32_t rank = view->rank;

    job->rows[index] = view->shape[rank - 2];
    job->row_strides[index] =
        view->shape[rank - 2] == 1 ? job->width : view->strides[rank - 2];
    for (int k = 0; k < ATTENTION_LEAD; k++)
        if (!is_stride(job->strides[index][k]))
            return 0;
    return view->dtype == job->views[0]->dtype &&
           view->shape[rank - 1] == job->width &&
           view->strides[rank - 1] == 1 && is_stride(job->row_strides[index]) &&
           job->row_strides[index] > 0 && job->rows[index] >= 1 &&
           job->rows[index] <= ROWS_MOST && (uintptr_t)view->data % 16 == 0;
}

/* How the mask is read; see attention_batch.cu. */
static int32_t mask_kind_of(const struct ccu_attention *job)
{
    const struct attention_params *params = &job->params;
    uint64_t odd;

    if (!job->mask)
        return 0;
    odd = (uint64_t)(uintptr_t)job->mask->data | (uint64_t)params->keys |
          (uint64_t)params->mask_row;
    for (int k = 0; k < ATTENTION_LEAD; k++)
        odd |= (uint64_t)params->mask_lead[k];
    return params->mask_column == 1 && odd % 2 == 0 ? 2 : 1;
}

/* A few queries of many keys would leave most of the device without work. */
static int is_thin(const struct ccu_attention *job)
{
    return job->params.queries <= 8 && job->params.keys >= 1024 &&
           job->batches * 2 < job->device->physical->processors;
}

static int is_ours(struct ccu_device *device)
{
    return device->physical->major == 9 && device->physical->minor == 0 &&
           device->physical->shared_most >= ATTENTION_SHARED_BYTES &&
           device->driver->tensor_map && ccu_compiler_is_from(device, 12);
}

static void take_mask(struct ccu_attention *job)
{
    struct attention_params *params = &job->params;

    if (job->mask) {
        params->mask = job->mask->data;
        params->mask_row = step_of(job->mask, 2);
        params->mask_column = step_of(job->mask, 1);
    }
    job->mask_kind = mask_kind_of(job);
}

int ccu_attention_take(struct ccu_attention *job, struct ccu_device *device,
                       const struct hob_call *call, const struct hob_view *grad,
                       uint32_t first)
{
    const struct hob_view *query = hob_arg_view(call, 0);
    struct attention_params *params = &job->params;
    double scale;

    memset(job, 0, sizeof(*job));
    if (!is_ours(device) ||
        (query->dtype != HOB_DTYPE_F16 && query->dtype != HOB_DTYPE_BF16) ||
        hob_arg_view(call, 4) || !cube_arg_absent(call, first + 1))
        return 0;
    job->device = device;
    job->mask = hob_arg_view(call, 3);
    job->width = query->shape[query->rank - 1];
    job->is_causal = cube_arg_i64(call, first + 2) != 0;
    job->maps = grad ? 4 : 3;
    for (uint32_t i = 0; i < 3; i++)
        job->views[i] = hob_arg_view(call, i);
    job->views[ATTENTION_GRAD] = grad;
    if ((job->width != 64 && job->width != 128) || !take_lead(job, query))
        return 0;
    for (uint32_t i = 0; i < job->maps; i++)
        if (!take_operand(job, i))
            return 0;
    scale = cube_arg_absent(call, first) ? 1 / sqrt((double)job->width)
                                         : cube_arg_f64(call, first);
    params->queries = (int)job->rows[ATTENTION_QUERY];
    params->keys = (int)job->rows[ATTENTION_KEY];
    params->offset = params->keys - params->queries;
    params->scale = (float)scale;
    take_mask(job);
    /* The greatest score is looked for before it is scaled. */
    return scale > 1e-30 && scale < 1e30 && !is_thin(job) &&
           job->batches * (job->rows[0] + job->rows[1]) <= ALL_MOST;
}
