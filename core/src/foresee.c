/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foresee.c - what a call would give, with tensors of which nothing is known
 * but their metadata.
 */
#include "base.h"
#include "boundary.h"

#include "error.h"
#include "runtime.h"

#include <string.h>

/* A tensor like META that has no elements: inference looks at its view. */
static void imagine(hob_tensor *tensor, const struct hob_meta *meta)
{
    struct hob_view *view = &tensor->view;
    int64_t stride = 1;

    memset(view, 0, sizeof(*view));
    view->dtype = meta->dtype;
    view->rank = meta->rank;
    view->scheme = meta->scheme;
    view->flags = HOB_VIEW_CONTIGUOUS;
    for (uint32_t k = meta->rank; k--;) {
        view->shape[k] = meta->shape[k];
        view->strides[k] = stride;
        stride *= meta->shape[k];
    }
}

/* Bind ARGS with tensors of TENSORS in place of what METAS tell of. */
static hob_status imagine_args(struct hob_call *call, const hob_value *args,
                               uint32_t arg_count, hob_tensor *tensors,
                               const struct hob_meta *metas)
{
    hob_value bound[HOB_MAX_PARAMS];
    hob_status status;

    if (arg_count > HOB_MAX_PARAMS)
        return HOB_ERR_ARGUMENT;
    for (uint32_t i = 0; i < arg_count; i++) {
        bound[i] = args[i];
        if (args[i].tag == HOB_TAG_TENSORS)
            return HOB_ERR_UNSUPPORTED;
        if (args[i].tag != HOB_TAG_TENSOR)
            continue;
        imagine(&tensors[i], metas++);
        bound[i].u.tensor = &tensors[i];
        bound[i].flags = 0;
    }
    status = hob__bind(call, bound, arg_count);
    for (uint32_t i = 0; i < call->arg_count && !status; i++)
        if (call->args[i].tag == HOB_TAG_TENSOR)
            status = hob__check_dtype(call, i, call->args[i].u.tensor);
    return status;
}

hob_status hob__foresee(hob_device *device, uint32_t id, const hob_value *args,
                        uint32_t arg_count, const struct hob_meta *metas,
                        struct hob_meta *out)
{
    hob_device *base = device->at[0];
    const struct hob__registry *registry = &device->runtime->registry;
    const struct hob__op *op = &registry->ops[id];
    const struct hob__route *route;
    hob_tensor tensors[HOB_MAX_PARAMS];
    hob_value values[HOB_MAX_PARAMS];
    hob_error error = HOB_ERROR_INIT;
    struct hob__results results = {.heap = NULL};
    struct hob_call_state state = {.op = op,
                                   .runtime = device->runtime,
                                   .error = &error,
                                   .expected = results.expected};
    struct hob_call call = {.host = &device->runtime->host,
                            .op = id,
                            .device = base,
                            .arg_count = op->signature.param_count,
                            .ret_count = op->signature.result_count,
                            .args = values,
                            .rets = results.rets,
                            .metas = results.metas,
                            .plains = results.plains,
                            .plain_count = op->signature.plain_count,
                            .op_name = op->name,
                            .core = &state};
    hob_status status;

    if (op->signature.result_count != 1 || op->signature.results[0].is_list ||
        (op->flags & HOB__OP_DYNAMIC))
        return HOB_ERR_UNSUPPORTED;
    hob__blank_rets(&call);
    status = imagine_args(&call, args, arg_count, tensors, metas);
    if (!status && state.quantized)
        status = HOB_ERR_UNSUPPORTED;
    if (!status)
        status = hob__check_scalars(&call);
    if (!status)
        status = hob__infer(&call, &results);
    if (!status) {
        *out = results.metas[0];
        route = hob__route_get(base, op);
        if (route->status || !route->entry ||
            !hob__kernel_serves(&call, route, NULL))
            status = HOB_ERR_UNSUPPORTED;
    }
    hob_error_release(&error);
    return status;
}
