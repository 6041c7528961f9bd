/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loss.c - cross_entropy and its gradient.
 */
#include "index.h"
#include "rows.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct loss {
    struct flex_rows logits, out;
    const int64_t *targets; /* checked */
    const struct flex_row_kernels *kernels;
    double *losses; /* one a row; forward only */
    double scale;   /* backward only */
};

static void loss_row(const struct flex_rows_job *job, int64_t row,
                     char *buffers)
{
    const struct loss *loss = job->context;
    const void *x = flex_rows_get(&loss->logits, row, buffers);

    loss->losses[row] =
        loss->kernels->cross_entropy(x, loss->logits.n, loss->targets[row]);
}

static void grad_row(const struct flex_rows_job *job, int64_t row,
                     char *buffers)
{
    const struct loss *loss = job->context;
    const void *x = flex_rows_get(&loss->logits, row, buffers);
    void *target = flex_rows_target(&loss->out, row, buffers);

    loss->kernels->cross_entropy_backward(target, x, loss->logits.n,
                                          loss->targets[row], loss->scale);
    flex_rows_put(&loss->out, row, buffers);
}

/* Both ops: the targets are read and checked first, then rows run. */
static hob_status run(struct hob_call *call, struct flex_device *device,
                      struct loss *loss, int is_backward)
{
    const struct hob_view *logits = hob_arg_view(call, 0);
    const struct hob_view *targets = hob_arg_view(call, 1);
    const int64_t batch = logits->shape[0];
    const uint64_t bytes = (uint64_t)batch * 16;
    struct flex_rows_job job = {.device = device,
                                .fn = is_backward ? grad_row : loss_row,
                                .context = loss};
    int64_t *scratch = flex_scratch_take(device, bytes);
    struct flex_loop loop;
    double sum = 0;
    int64_t bad;
    hob_status st = HOB_OK;

    if (!scratch)
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for a batch of %" PRId64,
                                call->op_name, batch);
    flex_loop_init(&loop, targets);
    bad = flex_index_read(device, &loop, targets->dtype, 0, batch,
                          logits->shape[1], scratch);
    if (bad >= 0) {
        st = call->host->fail(call, HOB_ERR_RANGE,
                              "%s: target %" PRId64 " of row %" PRId64
                              " is not one of the %" PRId64
                              " classes 0..%" PRId64,
                              call->op_name, scratch[bad], bad,
                              logits->shape[1], logits->shape[1] - 1);
        goto out;
    }
    flex_rows_init(&loss->logits, device, logits, 1);
    loss->kernels = flex_row_kernels(device, logits->dtype);
    loss->targets = scratch;
    loss->losses = (double *)(void *)(scratch + batch);
    flex_rows_reserve(&job, &loss->logits);
    if (is_backward)
        flex_rows_reserve(&job, &loss->out);
    st = flex_rows_run(&job, batch, loss->logits.n);
    if (st) {
        st = call->host->fail(call, st, "%s: no memory for rows of %" PRId64,
                              call->op_name, loss->logits.n);
        goto out;
    }
    if (!is_backward) { /* in row order: the same for any thread count */
        for (int64_t i = 0; i < batch; i++)
            sum += loss->losses[i];
        flex_float_store(hob_ret_view(call, 0),
                         batch ? sum / (double)batch : (double)NAN);
    }
out:
    flex_scratch_give(device, scratch, bytes);
    return st;
}

static hob_status cross_entropy(void *device, struct hob_call *call)
{
    struct loss loss = {0};

    return run(call, device, &loss, 0);
}

static hob_status cross_entropy_backward(void *device, struct hob_call *call)
{
    const int64_t batch = hob_arg_view(call, 0)->shape[0];
    struct loss loss = {.scale = flex_float_load(hob_arg_view(call, 2)) /
                                 (double)(batch ? batch : 1)};

    flex_rows_init(&loss.out, device, hob_ret_view(call, 0), 1);
    return run(call, device, &loss, 1);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_INT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "cross_entropy",
        .signature = "(logits: Float, targets: Int) -> logits",
        .dtypes = masks,
        .dtype_count = 2,
        .execute = cross_entropy,
    },
    {
        .op = "cross_entropy_backward",
        .signature = "(logits: Float, targets: Int, grad: Float) -> logits",
        .dtypes = masks,
        .dtype_count = 3,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = cross_entropy_backward,
    },
};

const struct flex_entries flex_loss_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};
