/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_memory.c - where the results of a kernel lie: over an argument that
 * nobody wants any more, or in memory of their own.
 */
#include "base.h"
#include "range.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int same_shape(const struct hob_view *view, const struct hob_meta *meta)
{
    if (view->dtype != meta->dtype || view->rank != meta->rank ||
        view->scheme != meta->scheme)
        return 0;
    return !memcmp(view->shape, meta->shape, meta->rank * sizeof(int64_t));
}

static int shares_storage(const struct hob_call *call, uint32_t index)
{
    const struct hob_storage *storage =
        call->args[index].u.tensor->view.storage;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];

        if (i == index)
            continue;
        if (value->tag == HOB_TAG_TENSOR &&
            value->u.tensor->view.storage == storage)
            return 1;
        if (value->tag == HOB_TAG_TENSORS)
            for (uint32_t k = 0; k < value->count; k++)
                if (value->u.tensors[k]->view.storage == storage)
                    return 1;
    }
    return 0;
}

int hob__is_ours(const struct hob_call *call, uint32_t index)
{
    const hob_value *value = &call->args[index];
    const hob_tensor *tensor = value->u.tensor;
    struct hob_storage *storage;

    if (value->tag != HOB_TAG_TENSOR || !(value->flags & HOB_VALUE_MOVE) ||
        !tensor->view.storage || (tensor->view.flags & HOB_VIEW_READ_ONLY))
        return 0;
    storage = tensor->view.storage;
    return atomic_load_explicit(&tensor->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&storage->refs, memory_order_acquire) == 1 &&
           hob__storage_is_ours(storage) && !shares_storage(call, index);
}

/* Whether result META may be written over argument INDEX: ours, and the same
 * elements. */
static int can_reuse(const struct hob_call *call, uint32_t index,
                     const struct hob_meta *meta)
{
    return index < call->arg_count && hob__is_ours(call, index) &&
           hob__is_contiguous(call->args[index].u.tensor) &&
           same_shape(&call->args[index].u.tensor->view, meta);
}

/* The argument whose memory result INDEX may take, or -1. */
static int reusable_argument(const struct hob_call *call,
                             const struct hob__route *route, uint32_t index)
{
    const struct hob__op *op = call->core->op;

    if (!call->core->may_reuse || !(route->entry->flags & HOB_ENTRY_IN_PLACE))
        return -1;
    for (uint32_t i = 0; i < route->alias_count; i++)
        if (route->aliases[i][0] == index &&
            can_reuse(call, route->aliases[i][1], &call->metas[index]))
            return route->aliases[i][1];
    for (uint32_t i = 0; i < op->decl->alias_count; i++)
        if (op->decl->aliases[i].result == index &&
            can_reuse(call, op->decl->aliases[i].param, &call->metas[index]))
            return op->decl->aliases[i].param;
    if (op->fuse != HOB__FUSE_ELEMENTWISE || index)
        return -1;
    for (uint32_t i = 0; i < call->arg_count; i++)
        if (can_reuse(call, i, &call->metas[index]))
            return (int)i;
    return -1;
}

static hob_status no_result_memory(struct hob_call *call, hob_status status,
                                   const struct hob_meta *meta)
{
    const hob_device *base = call->device->at[0];
    char text[HOB__META_TEXT], what[HOB__META_TEXT + 16];
    char refusal[HOB__REFUSAL_TEXT];
    uint64_t bytes = 0;

    if (hob__meta_bytes(meta, &bytes))
        return hob__call_fail(call, HOB_ERR_SHAPE,
                              "a result %s is larger than any memory",
                              hob__meta_text(meta, text, sizeof(text)));
    snprintf(what, sizeof(what), "the result %s",
             hob__meta_text(meta, text, sizeof(text)));
    return hob__call_fail(call, status, "%s",
                          hob__storage_refusal(base, what, bytes, refusal));
}

hob_status hob__allocate_results(struct hob_call *call,
                                 const struct hob__route *route)
{
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob_meta *meta = &call->metas[i];
        hob_tensor *tensor = NULL;
        hob_status status = HOB_OK;
        int reuse;

        if (!hob__is_due(call, i))
            continue;
        reuse = reusable_argument(call, route, i);
        if (reuse >= 0) {
            const struct hob_view *view = &call->args[reuse].u.tensor->view;

            tensor = hob__tensor_blank(call->device, meta);
            if (tensor) {
                hob__storage_ref(view->storage);
                tensor->view.storage = view->storage;
                tensor->view.data = view->data;
                view->storage->range = HOB__RANGE_UNKNOWN;
            } else {
                status = HOB_ERR_MEMORY;
            }
        } else {
            status = hob__tensor_alloc(call->device, meta,
                                       call->core->expected[i].bytes, &tensor);
        }
        if (status)
            return no_result_memory(call, status, meta);
        hob__tensor_set_form(tensor, call->core->expected[i].form);
        call->rets[i].u.tensor = tensor;
    }
    return HOB_OK;
}

hob_status hob__call_result(struct hob_call *call, uint32_t index,
                            const struct hob_meta *meta)
{
    hob_tensor *tensor = NULL;
    uint64_t bytes = 0;
    hob_status status;

    if (index >= call->ret_count || call->rets[index].u.tensor)
        return hob__call_fail(call, HOB_ERR_PLUGIN,
                              "the kernel asked for result %" PRIu32
                              " twice, or there is none: a bug of its author",
                              index);
    if (!hob__meta_is_sound(meta))
        return hob__call_fail(call, HOB_ERR_PLUGIN,
                              "the kernel asked for result %" PRIu32
                              " with the rank %u and the dtype number %u: a "
                              "bug of its author",
                              index, (unsigned)meta->rank,
                              (unsigned)meta->dtype);
    status = hob__meta_bytes(meta, &bytes);
    if (!status)
        status = hob__tensor_alloc(call->device, meta, bytes, &tensor);
    if (status)
        return no_result_memory(call, status, meta);
    call->rets[index].u.tensor = tensor;
    return HOB_OK;
}
