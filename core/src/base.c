/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.c - the last hop: a view, a kernel, or the body.
 *
 * This and what base.h lists are the only places that know of storage. A call
 * arrives validated and inferred; what leaves are handles that carry the whole
 * stack of its device.
 */
#include "base.h"

#include "error.h"
#include "known.h"
#include "lazy.h"
#include "runtime.h"
#include "view.h"

#include <hob/ops.h>

#include <string.h>

/* ---- views ---- */

static hob_status try_view(struct hob_call *call, hob_tensor *source,
                           hob_tensor **out_tensor)
{
    hob_tensor *tensor = hob__tensor_blank(call->device, &call->metas[0]);
    hob_status status;

    *out_tensor = NULL;
    if (!tensor)
        return hob__call_fail(call, HOB_ERR_MEMORY,
                              "no memory for a tensor handle");
    tensor->view.data = source->view.data;
    status = call->core->op->decl->view(call, &source->view, &tensor->view);
    if (status) {
        tensor->view.data = NULL;
        hob__tensor_unref(tensor);
        return status;
    }
    tensor->view.flags |= source->view.flags & HOB_VIEW_READ_ONLY;
    hob__storage_ref(source->view.storage);
    tensor->view.storage = source->view.storage;
    hob__tensor_set_form(tensor, call->core->expected[0].form);
    *out_tensor = tensor;
    return HOB_OK;
}

static hob_status run_view(struct hob_call *call)
{
    hob_tensor *source = call->args[0].u.tensor;
    hob_tensor *copy = NULL;
    hob_status status = try_view(call, source, &call->rets[0].u.tensor);

    if (status != HOB_ERR_UNSUPPORTED)
        return status;
    status = hob__copy_contiguous(call, source, &copy);
    if (!status)
        status = try_view(call, copy, &call->rets[0].u.tensor);
    hob__tensor_unref(copy);
    return status;
}

static hob_status share_argument(struct hob_call *call)
{
    hob_tensor *tensor =
        hob__tensor_share(call->args[0].u.tensor, call->device, 0);

    call->rets[0].u.tensor = tensor;
    return tensor ? HOB_OK
                  : hob__call_fail(call, HOB_ERR_MEMORY,
                                   "no memory for a tensor handle");
}

/* ---- the hop ---- */

/* "f64 f32" of MASK into TEXT. */
static const char *mask_text(uint32_t mask, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t d = HOB_DTYPE_F64; d < HOB_DTYPE_COUNT_; d++) {
        const char *name = hob_dtype_name(d);

        if ((mask & HOB_DTYPE_BIT(d)) && used + strlen(name) + 2 < size) {
            if (used)
                text[used++] = ' ';
            memcpy(text + used, name, strlen(name) + 1);
            used += strlen(name);
        }
    }
    return text;
}

static hob_status wrong_dtype(struct hob_call *call,
                              const struct hob_entry *entry)
{
    const struct hob__signature *signature = &call->core->op->signature;
    char text[128];
    uint32_t tensor = 0;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];
        const hob_tensor *seen;

        if (signature->params[i].type != HOB__TYPE_TENSOR &&
            signature->params[i].type != HOB__TYPE_TENSORS)
            continue;
        if (value->tag != HOB_TAG_ABSENT && tensor < entry->dtype_count) {
            seen = value->tag == HOB_TAG_TENSOR ? value->u.tensor
                                                : value->u.tensors[0];
            if (!(entry->dtypes[tensor] & HOB_DTYPE_BIT(seen->view.dtype)))
                return hob__call_fail(
                    call, HOB_ERR_DTYPE,
                    "%s computes %s for %s, not %s (argument %s): cast with "
                    "hob_cast()",
                    call->device->at[0]->name, call->op_name,
                    mask_text(entry->dtypes[tensor], text, sizeof(text)),
                    hob_dtype_name(seen->view.dtype),
                    signature->params[i].name);
        }
        tensor++;
    }
    return hob__call_fail(call, HOB_ERR_UNSUPPORTED,
                          "%s does not compute %s for these arguments",
                          call->device->at[0]->name, call->op_name);
}

/* The kernel may turn down what it was said to serve: then the body. */
static hob_status run_kernel(struct hob_call *call, struct hob__route *route)
{
    hob_status status = hob__run_entry(call, route);

    if (status != HOB_ERR_UNSUPPORTED || !route->body)
        return status;
    hob_error_release(call->core->error);
    return hob__run_body(call, route->body, 0);
}

hob_status hob__base(struct hob_call *call)
{
    const struct hob__op *op = call->core->op;
    struct hob__route *route;
    int unknown;

    if (op->decl->view)
        return run_view(call);
    if (op->id == HOB_OP_CONTIGUOUS &&
        hob__is_contiguous(call->args[0].u.tensor))
        return share_argument(call);
    route = hob__route_get(call->device->at[0], op);
    if (route->status)
        return hob__call_fail(call, route->status, "%s", route->message);
    if (!route->entry)
        return route->body ? hob__run_body(call, route->body, 0)
                           : hob__diagnose_unlisted(call, route);
    if (call->core->served == HOB__SERVED ||
        hob__kernel_serves(call, route, &unknown))
        return run_kernel(call, route);
    if (route->body)
        return hob__run_body(call, route->body, 0);
    if (unknown >= 0)
        return hob__call_fail(
            call, HOB_ERR_UNSUPPORTED,
            "the kernel on %s does not know %s, which has come later: leave "
            "it at its default, or install a newer version of the plugin",
            call->device->at[0]->name, op->signature.params[unknown].name);
    return wrong_dtype(call, route->entry);
}

hob_status hob__contiguous(hob_tensor *tensor, hob_tensor **out_tensor,
                           hob_error *error)
{
    struct hob_call_state state;
    struct hob_call call;
    hob_error why = HOB_ERROR_INIT;
    hob_status status;

    *out_tensor = NULL;
    status = hob__tensor_settle(tensor, 0, error);
    if (!status)
        status = hob__tensor_check(tensor, error);
    if (status)
        return status;
    if (hob__is_contiguous(tensor)) {
        hob__tensor_ref(tensor);
        *out_tensor = tensor;
        return HOB_OK;
    }
    memset(&state, 0, sizeof(state));
    memset(&call, 0, sizeof(call));
    state.runtime = tensor->device->runtime;
    state.error = &why;
    call.host = &state.runtime->host;
    call.core = &state;
    call.device = tensor->device;
    status = hob__copy_contiguous(&call, tensor, out_tensor);
    if (status)
        hob_error_set(error, status, "%s", hob__error_text(&why));
    hob_error_release(&why);
    return status;
}
