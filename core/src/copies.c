/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copies.c - row-major copies of arguments, which live for one call.
 */
#include "base.h"

#include "runtime.h"

#include <hob/ops.h>

#include <stdlib.h>

hob_status hob__copy_contiguous(struct hob_call *call, hob_tensor *tensor,
                                hob_tensor **out_copy)
{
    hob_runtime *runtime = tensor->device->runtime;
    hob_device *base = tensor->device->at[0];
    const struct hob__op *op = &runtime->registry.ops[HOB_OP_CONTIGUOUS];
    struct hob__route *route = hob__route_get(base, op);
    struct hob_call_state state = *call->core;
    struct hob_meta meta = hob__tensor_meta(tensor);
    hob_value arg = hob_value_tensor(tensor);
    hob_value ret = hob_value_make(HOB_TAG_TENSOR, 1);
    struct hob__expected expected = {0, 0};
    struct hob_call copy = *call;
    hob_status status;

    *out_copy = NULL;
    state.moved = 0;
    state.may_reuse = 0;
    state.expected = &expected;
    status = hob__meta_bytes(&meta, &expected.bytes);
    if (status)
        return hob__call_fail(call, status,
                              "a row-major copy is larger than any memory");
    /* One that wants row-major arguments itself would come back here. */
    if (!route->entry || (route->entry->flags & HOB_ENTRY_CONTIGUOUS))
        return hob__call_fail(call, HOB_ERR_PLUGIN,
                              "%s cannot copy strided tensors: it supplies no "
                              "kernel for contiguous that takes them, which "
                              "every backend must",
                              base->name);
    state.op = op;
    copy.op = HOB_OP_CONTIGUOUS;
    copy.op_name = op->name;
    copy.flags = 0;
    copy.device = base;
    copy.args = &arg;
    copy.arg_count = 1;
    copy.rets = &ret;
    copy.ret_count = 1;
    copy.metas = &meta;
    copy.plain_count = 0;
    copy.workspace = NULL;
    copy.prepared = NULL;
    copy.core = &state;
    status = hob__run_entry(&copy, route);
    *out_copy = ret.u.tensor;
    return status;
}

static hob_status replace_list(struct hob_call *call, uint32_t index,
                               struct hob__temporaries *temporaries)
{
    const hob_value *value = &temporaries->saved[index];
    hob_tensor **list = calloc(value->count, sizeof(*list));
    hob_status status = list ? HOB_OK : HOB_ERR_MEMORY;

    temporaries->lists[index] = list;
    for (uint32_t k = 0; k < value->count && !status; k++) {
        hob_tensor *tensor = value->u.tensors[k];

        if (hob__is_contiguous(tensor)) {
            hob__tensor_ref(tensor);
            list[k] = tensor;
        } else {
            status = hob__copy_contiguous(call, tensor, &list[k]);
        }
    }
    call->args[index].u.tensors = list;
    return status;
}

static int needs_copy(const hob_value *value)
{
    if (value->tag == HOB_TAG_TENSOR)
        return !hob__is_contiguous(value->u.tensor);
    if (value->tag == HOB_TAG_TENSORS)
        for (uint32_t k = 0; k < value->count; k++)
            if (!hob__is_contiguous(value->u.tensors[k]))
                return 1;
    return 0;
}

hob_status hob__make_contiguous(struct hob_call *call,
                                struct hob__temporaries *temporaries)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < call->arg_count && !status; i++) {
        if (!needs_copy(&call->args[i]))
            continue;
        temporaries->saved[i] = call->args[i];
        temporaries->copies[i] = NULL;
        temporaries->lists[i] = NULL;
        temporaries->used |= UINT32_C(1) << i;
        if (call->args[i].tag == HOB_TAG_TENSORS) {
            status = replace_list(call, i, temporaries);
        } else {
            status = hob__copy_contiguous(call, call->args[i].u.tensor,
                                          &temporaries->copies[i]);
            call->args[i] = hob_value_tensor(temporaries->copies[i]);
            call->args[i].flags |= HOB_VALUE_MOVE; /* nobody else has it */
            call->core->may_reuse = 1;
        }
    }
    return status;
}

void hob__drop_temporaries(struct hob_call *call,
                           struct hob__temporaries *temporaries)
{
    for (uint32_t i = 0; temporaries->used; i++, temporaries->used >>= 1) {
        if (!(temporaries->used & 1))
            continue;
        call->args[i] = temporaries->saved[i];
        hob__tensor_unref(temporaries->copies[i]);
        for (uint32_t k = 0;
             temporaries->lists[i] && k < temporaries->saved[i].count; k++)
            hob__tensor_unref(temporaries->lists[i][k]);
        free(temporaries->lists[i]);
    }
}
