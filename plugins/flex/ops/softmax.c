/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax.c - softmax, log_softmax and their gradients along one dimension.
 */
#include "rows.h"

/* One result row from one or two argument rows. */
struct softmax {
    struct flex_rows out, a, b;
    void (*one)(void *out, const void *a, int64_t n);
    void (*two)(void *out, const void *a, const void *b, int64_t n);
};

static void softmax_row(const struct flex_rows_job *job, int64_t row,
                        char *buffers)
{
    const struct softmax *s = job->context;
    void *target = flex_rows_target(&s->out, row, buffers);
    const void *a = flex_rows_get(&s->a, row, buffers);

    if (s->one)
        s->one(target, a, s->out.n);
    else
        s->two(target, a, flex_rows_get(&s->b, row, buffers), s->out.n);
    flex_rows_put(&s->out, row, buffers);
}

static hob_status run(struct hob_call *call, struct flex_device *device,
                      struct softmax *s)
{
    struct flex_rows_job job = {
        .device = device, .fn = softmax_row, .context = s};

    if (s->out.n == 0)
        return HOB_OK;
    flex_rows_reserve(&job, &s->out);
    flex_rows_reserve(&job, &s->a);
    if (s->two)
        flex_rows_reserve(&job, &s->b);
    if (flex_rows_run(&job, s->out.outer.count, s->out.n))
        return call->host->fail(call, HOB_ERR_MEMORY,
                                "%s: no memory for rows of %lld elements",
                                call->op_name, (long long)s->out.n);
    return HOB_OK;
}

static hob_status forward(struct flex_device *device, struct hob_call *call,
                          int is_log)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const uint32_t dim = flex_dim(flex_arg_i64(call, 1), x->rank);
    const struct flex_row_kernels *kernels = flex_row_kernels(device, x->dtype);
    struct softmax s = {.one =
                            is_log ? kernels->log_softmax : kernels->softmax};

    flex_rows_init(&s.out, device, hob_ret_view(call, 0), dim);
    flex_rows_past(&s.out, hob_ret_view(call, 0), &x, 1);
    flex_rows_init(&s.a, device, x, dim);
    return run(call, device, &s);
}

static hob_status backward(struct flex_device *device, struct hob_call *call,
                           int is_log)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    const struct hob_view *const in[] = {hob_arg_view(call, 0),
                                         hob_arg_view(call, 1)};
    const uint32_t dim = flex_dim(flex_arg_i64(call, 2), out->rank);
    const struct flex_row_kernels *kernels =
        flex_row_kernels(device, out->dtype);
    struct softmax s = {.two = is_log ? kernels->log_softmax_backward
                                      : kernels->softmax_backward};

    flex_rows_init(&s.out, device, out, dim);
    flex_rows_past(&s.out, out, in, 2);
    flex_rows_broadcast(&s.a, device, in[0], out, dim);
    flex_rows_broadcast(&s.b, device, in[1], out, dim);
    return run(call, device, &s);
}

static hob_status softmax(void *device, struct hob_call *call)
{
    return forward(device, call, 0);
}

static hob_status log_softmax(void *device, struct hob_call *call)
{
    return forward(device, call, 1);
}

static hob_status softmax_backward(void *device, struct hob_call *call)
{
    return backward(device, call, 0);
}

static hob_status log_softmax_backward(void *device, struct hob_call *call)
{
    return backward(device, call, 1);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "softmax",
        .signature = "(x: Float, dim: i64) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = softmax,
    },
    {
        .op = "log_softmax",
        .signature = "(x: Float, dim: i64) -> x",
        .dtypes = masks,
        .dtype_count = 1,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = log_softmax,
    },
    {
        .op = "softmax_backward",
        .signature = "(output: Float, grad: Float, dim: i64) -> grad",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = softmax_backward,
    },
    {
        .op = "log_softmax_backward",
        .signature = "(output: Float, grad: Float, dim: i64) -> grad",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = log_softmax_backward,
    },
};

const struct flex_entries flex_softmax_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
