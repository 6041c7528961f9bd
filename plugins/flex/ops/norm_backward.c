/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm_backward.c - the gradients of layer_norm and rms_norm in one walk over
 * x and grad.
 *
 * A task is a range of rows with sums of its own for weight and bias, in f64.
 * Ranges depend on the shape only, and the sums of tasks are added up in their
 * order, so results do not depend on the number of threads.
 */
#include "norm_backward.h"

#include "rows.h"

#include <inttypes.h>
#include <string.h>

/* Tasks to have if there are that many rows, and elements that the sums of all
 * may have together. */
enum { TASKS = 16, SUMS_MOST = 1 << 22 };

struct backward {
    struct flex_device *device;
    const struct flex_row_kernels *kernels;
    struct flex_rows x, grad, out;
    void *weight; /* of the computing type, ones where there is none */
    double epsilon;
    int is_centred;
    int64_t rows, n;
    int64_t split; /* rows of a task */
    uint64_t buffer_bytes;
    double *sums;   /* of each task: n for weight, then n for bias */
    int32_t failed; /* no memory, set from any thread */
};

static void run_range(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    struct backward *run = context;
    char *buffers = flex_scratch_take(run->device, run->buffer_bytes);

    (void)worker;
    if (!buffers) {
        __atomic_store_n(&run->failed, 1, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t task = first; task < last; task++) {
        double *sums = run->sums + task * 2 * run->n;
        int64_t end = (task + 1) * run->split;

        end = end < run->rows ? end : run->rows;
        memset(sums, 0, (size_t)run->n * 2 * sizeof(*sums));
        for (int64_t row = task * run->split; row < end; row++) {
            void *target = flex_rows_target(&run->out, row, buffers);
            const void *x = flex_rows_get(&run->x, row, buffers);
            const void *grad = flex_rows_get(&run->grad, row, buffers);

            run->kernels->norm_backward(target, sums, sums + run->n, x, grad,
                                        run->weight, run->epsilon,
                                        run->is_centred, run->n);
            flex_rows_put(&run->out, row, buffers);
        }
    }
    flex_scratch_give(run->device, buffers, run->buffer_bytes);
}

/* The sums of all tasks to vectors OUT_WEIGHT and, if there is one, OUT_BIAS.
 */
static void store_sums(const struct backward *run, int64_t tasks,
                       const struct hob_view *out_weight,
                       const struct hob_view *out_bias)
{
    for (int64_t i = 0; i < 2 * run->n; i++) {
        const int64_t at = i % run->n;
        struct hob_view element = *out_weight;
        double sum = 0;

        if (i >= run->n) {
            if (!out_bias)
                return;
            element = *out_bias;
        }
        for (int64_t task = 0; task < tasks; task++)
            sum += run->sums[task * 2 * run->n + i];
        element.data =
            (char *)element.data +
            at * element.strides[0] * (int64_t)hob_dtype_size(element.dtype);
        flex_float_store(&element, sum);
    }
}

/* WEIGHT as a vector of the computing type; ones if it is NULL. */
static void *weight_take(struct backward *run, const struct hob_view *weight,
                         uint64_t *out_bytes)
{
    const uint32_t size = run->x.size;
    void *ones;

    if (weight)
        return flex_vector_take(run->device, weight, out_bytes);
    *out_bytes = (uint64_t)run->n * size;
    ones = flex_scratch_take(run->device, *out_bytes);
    for (int64_t i = 0; ones && i < run->n; i++) {
        if (size == 8)
            ((double *)ones)[i] = 1;
        else
            ((float *)ones)[i] = 1;
    }
    return ones;
}

static hob_status norm_backward(struct flex_device *device,
                                struct hob_call *call, int is_centred)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t dim = x->rank - 1u;
    struct backward run = {.device = device,
                           .kernels = flex_row_kernels(device, x->dtype),
                           .epsilon = flex_arg_f64(call, 3),
                           .is_centred = is_centred,
                           .n = x->shape[dim]};
    struct flex_rows_job job = {.device = device};
    uint64_t bytes = 0, sum_bytes;
    int64_t tasks;
    hob_status st = HOB_OK;

    if (run.n == 0)
        return HOB_OK;
    flex_rows_init(&run.x, device, x, dim);
    flex_rows_init(&run.grad, device, hob_arg_view(call, 2), dim);
    flex_rows_init(&run.out, device, out, dim);
    flex_rows_reserve(&job, &run.x);
    flex_rows_reserve(&job, &run.grad);
    flex_rows_reserve(&job, &run.out);
    run.buffer_bytes = job.buffer_bytes;
    run.rows = run.x.outer.count;
    tasks = SUMS_MOST / (2 * run.n) + 1;
    tasks = tasks < TASKS ? tasks : TASKS;
    run.split = ((run.rows + tasks - 1) / tasks + FLEX_ROWS_GROUP - 1) /
                FLEX_ROWS_GROUP * FLEX_ROWS_GROUP;
    tasks = run.split ? (run.rows + run.split - 1) / run.split : 0;
    sum_bytes = (uint64_t)tasks * 2 * (uint64_t)run.n * sizeof(*run.sums);
    run.sums = flex_scratch_take(device, sum_bytes);
    run.weight = weight_take(&run, hob_arg_view(call, 1), &bytes);
    if (run.sums && run.weight)
        flex_parallel(device, tasks, 1, run_range, &run);
    if (!run.sums || !run.weight || run.failed)
        st = call->host->fail(call, HOB_ERR_MEMORY,
                              "%s: no memory for rows of %" PRId64 " elements",
                              call->op_name, run.n);
    else
        store_sums(&run, tasks, hob_ret_view(call, 1),
                   is_centred ? hob_ret_view(call, 2) : NULL);
    flex_scratch_give(device, run.sums, sum_bytes);
    flex_scratch_give(device, run.weight, bytes);
    return st;
}

hob_status flex_layer_norm_backward(void *device, struct hob_call *call)
{
    return norm_backward(device, call, 1);
}

hob_status flex_rms_norm_backward(void *device, struct hob_call *call)
{
    return norm_backward(device, call, 0);
}
