/* SPDX-License-Identifier: Apache-2.0 */
#include "conv.h"

#include "conv_product.h"
#include "conv_point.h"

#include <cube/cube.h>
#include <cube/launch.h>

#include <string.h>

enum {
    ALIGNMENT = 256, /* of what is packed */
    PAIRS_MOST = 100 /* paddings and taps with strides of 2 */
};

static const char forward_op[] = "conv2d";
static const char x_op[] = "conv2d_x_backward";
static const char weight_op[] = "conv2d_weight_backward";

/* ---- memory to work in ---- */

struct work {
    void *data;
    uint64_t bytes;
};

static uint64_t padded(uint64_t bytes)
{
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

/* Room for COUNT PLANES and, after them, for MORE bytes at *OUT_MORE. */
static hob_status work_take(struct work *work, struct ccu_device *device,
                            struct ccu_planes *const *planes, uint32_t count,
                            uint64_t more, void **out_more)
{
    char *at;
    hob_status status;

    work->bytes = padded(more);
    for (uint32_t i = 0; i < count; i++)
        work->bytes += padded(planes[i]->bytes);
    status = ccu_device_alloc(device, work->bytes, &work->data);
    if (status)
        return status;
    at = work->data;
    for (uint32_t i = 0; i < count; i++)
        if (planes[i]->bytes) {
            planes[i]->pack.to = at;
            at += padded(planes[i]->bytes);
        }
    if (out_more)
        *out_more = at;
    return HOB_OK;
}

/* ---- by tiles ---- */

static void result_init(struct conv_params *params, const struct hob_view *out)
{
    params->result = out->data;
    params->rows = (int)out->shape[1];
    params->out_image = out->shape[1] * out->shape[2] * out->shape[3];
    params->out_row = out->shape[2] * out->shape[3];
    params->out_step[0] = out->shape[3];
    params->out_step[1] = 1;
}

static hob_status run_forward(struct ccu_conv_run *run,
                              const struct ccu_conv *conv,
                              const struct hob_call *call)
{
    const struct hob_view *bias = hob_arg_view(call, 2);
    struct ccu_planes x, weight, *const packed[] = {&x, &weight};
    struct conv_params params = {0};
    struct work work;
    hob_status status;

    ccu_planes_of_x(&x, conv, hob_arg_view(call, 0));
    ccu_planes_of_weight(&weight, hob_arg_view(call, 1), 0, &x);
    ccu_conv_meet_x(&params, conv, &x);
    result_init(&params, hob_ret_view(call, 0));
    if (bias) {
        params.bias = bias->data;
        params.bias_step = bias->strides[0];
    }
    status = work_take(&work, run->device, packed, 2, 0, NULL);
    if (status)
        return status;
    status = ccu_conv_pack(run, packed, 2);
    if (!status)
        status = ccu_conv_multiply(run, &params, &weight, &x);
    ccu_device_free(run->device, work.data, work.bytes);
    return status;
}

/* PARAMS for the places of x that leave REST; their neighbours leave others. */
static void phase_init(struct conv_params *params, const struct ccu_conv *conv,
                       const struct hob_view *out, const int64_t rest[2])
{
    const int64_t *step = conv->of.step;

    memset(params, 0, sizeof(*params));
    result_init(params, out);
    params->out_first = rest[0] * out->shape[3] + rest[1];
    params->out_step[0] *= step[0];
    params->out_step[1] *= step[1];
    ccu_conv_meet_grad(params, conv, rest);
}

/* Whether four products are one launch: with one place more, copies by im2col
 * still take what they meet. */
static int are_pairs(const struct ccu_conv *conv)
{
    for (uint32_t i = 0; i < 2; i++)
        if (conv->of.step[i] != 2 || conv->of.padding[i] > PAIRS_MOST ||
            conv->of.dilation[i] * conv->weight[2 + i] > PAIRS_MOST)
            return 0;
    return 1;
}

static hob_status run_pairs(struct ccu_conv_run *run,
                            const struct ccu_conv *conv,
                            const struct hob_view *out,
                            const struct ccu_planes *weight,
                            const struct ccu_planes *grad)
{
    struct conv_pairs jobs;

    for (int64_t i = 0; i < 4; i++) {
        const int64_t rest[2] = {i / 2, i % 2};

        phase_init(&jobs.of[i], conv, out, rest);
        memcpy(jobs.of[i].sizes, jobs.of[0].sizes, sizeof(jobs.of[i].sizes));
    }
    return ccu_conv_multiply_pairs(run, &jobs, weight, grad);
}

/* One product for each remainder of places of x modulo the stride: those of one
 * meet the same taps. */
static hob_status run_phases(struct ccu_conv_run *run,
                             const struct ccu_conv *conv,
                             const struct hob_view *out,
                             const struct ccu_planes *weight,
                             const struct ccu_planes *grad)
{
    const int64_t *step = conv->of.step;
    struct conv_params params;
    hob_status status = HOB_OK;

    if (are_pairs(conv))
        return run_pairs(run, conv, out, weight, grad);
    for (int64_t y = 0; y < step[0] && y < out->shape[2] && !status; y++)
        for (int64_t x = 0; x < step[1] && x < out->shape[3] && !status; x++) {
            const int64_t rest[2] = {y, x};

            phase_init(&params, conv, out, rest);
            status = ccu_conv_multiply(run, &params, weight, grad);
        }
    return status;
}

static hob_status run_x(struct ccu_conv_run *run, const struct ccu_conv *conv,
                        const struct hob_call *call)
{
    struct ccu_planes grad, weight, *const packed[] = {&grad, &weight};
    struct work work;
    hob_status status;

    ccu_planes_of_grad(&grad, conv, hob_arg_view(call, 2));
    ccu_planes_of_weight(&weight, hob_arg_view(call, 1), 1, &grad);
    status = work_take(&work, run->device, packed, 2, 0, NULL);
    if (status)
        return status;
    status = ccu_conv_pack(run, packed, 2);
    if (!status)
        status = run_phases(run, conv, hob_ret_view(call, 0), &weight, &grad);
    ccu_device_free(run->device, work.data, work.bytes);
    return status;
}

static void finish_init(struct conv_finish_params *finish,
                        const struct conv_params *params,
                        const struct ccu_planes *x, const struct hob_view *out)
{
    const int row = params->taps[1] * params->chunks * 64;

    memset(finish, 0, sizeof(*finish));
    finish->result = out->data;
    finish->splits = params->splits;
    finish->rows = params->rows;
    finish->channels = (int)out->shape[1];
    finish->taps[0] = (int)out->shape[2];
    finish->taps[1] = (int)out->shape[3];
    finish->column[0] = row;
    finish->column[1] = x->is_wide ? x->pack.pitch : params->chunks * 64;
    finish->columns = (long long)params->taps[0] * row;
    finish->count = hob_view_count(out);
}

static hob_status run_weight(struct ccu_conv_run *run,
                             const struct ccu_conv *conv,
                             const struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    struct ccu_planes x, grad, *const packed[] = {&x, &grad};
    struct conv_params params = {.rows = (int)out->shape[0]};
    struct conv_finish_params finish;
    struct work work;
    uint64_t bytes;
    hob_status status;

    if (ccu_conv_is_point(conv) &&
        ccu_planes_of_points(&x, hob_arg_view(call, 0)) &&
        ccu_planes_of_points(&grad, hob_arg_view(call, 2))) {
        params.image_steps = (int)cube_divide_up((int64_t)x.sizes[0], 64);
    } else {
        ccu_planes_of_x(&x, conv, hob_arg_view(call, 0));
        ccu_planes_of_grad(&grad, conv, hob_arg_view(call, 2));
    }
    ccu_conv_meet_x(&params, conv, &x);
    ccu_conv_split(run, &params);
    finish_init(&finish, &params, &x, out);
    bytes = (uint64_t)(params.splits * (int64_t)params.rows * finish.columns) *
            sizeof(float);
    status = work_take(&work, run->device, packed, 2, bytes, &params.result);
    if (status)
        return status;
    finish.parts = params.result;
    status = ccu_conv_pack(run, packed, 2);
    if (!status)
        status = ccu_conv_multiply_weight(run, &params, &grad, &x);
    if (!status)
        status = ccu_conv_finish(run, &finish);
    ccu_device_free(run->device, work.data, work.bytes);
    return status;
}

/* ---- entries ---- */

static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    const struct hob_entry *entry = cube_entry_find(call->op_name);
    struct ccu_conv conv;

    return ccu_point_takes(device, call) || ccu_conv_take(&conv, device, call)
               ? HOB_OK
               : entry->prepare(device, call, out);
}

static hob_status execute(struct ccu_device *device, struct hob_call *call,
                          hob_status (*run)(struct ccu_conv_run *run,
                                            const struct ccu_conv *conv,
                                            const struct hob_call *call))
{
    struct ccu_conv_run state = {.device = device, .op_name = call->op_name};
    struct ccu_conv conv;
    hob_status status;

    if (hob_view_count(hob_ret_view(call, 0)) == 0)
        return HOB_OK;
    status = ccu_point_run(device, call);
    if (status != HOB_ERR_UNSUPPORTED)
        return status;
    if (!ccu_conv_take(&conv, device, call))
        return cube_entry_find(call->op_name)->execute(device, call);
    state.dtype = conv.dtype;
    state.parts = conv.parts;
    status = run(&state, &conv, call);
    return status ? cube_fail(&device->cube, call, status, state.message)
                  : HOB_OK;
}

static hob_status conv2d(void *device, struct hob_call *call)
{
    return execute(device, call, run_forward);
}

static hob_status conv2d_x_backward(void *device, struct hob_call *call)
{
    return execute(device, call, run_x);
}

static hob_status conv2d_weight_backward(void *device, struct hob_call *call)
{
    return execute(device, call, run_weight);
}

void ccu_conv_install(struct hob_entry *entries, uint32_t count)
{
    static const struct {
        const char *op;
        hob_status (*execute)(void *device, struct hob_call *call);
    } own[] = {{forward_op, conv2d},
               {x_op, conv2d_x_backward},
               {weight_op, conv2d_weight_backward}};

    for (uint32_t i = 0; i < count; i++)
        for (uint32_t k = 0; k < sizeof(own) / sizeof(own[0]); k++)
            if (!strcmp(entries[i].op, own[k].op)) {
                entries[i].prepare = prepare;
                entries[i].execute = own[k].execute;
            }
}
