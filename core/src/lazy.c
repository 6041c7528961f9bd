/* SPDX-License-Identifier: Apache-2.0 */
#include "lazy.h"

#include "dispatch.h"
#include "error.h"
#include "runtime.h"
#include "scope.h"
#include "sized.h"

#include <hob/ext/fusion.h>

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* ---- settling ---- */

static hob_status not_settled(const hob_device *layer, hob_status status,
                              hob_error *error)
{
    return hob_error_set(error, status,
                         "%s could not compute a result that it had put off: "
                         "%s",
                         layer->selector, hob_status_name(status));
}

hob_status hob__tensor_settle(hob_tensor *tensor, int32_t level,
                              hob_error *error)
{
    hob_status status;

    if (hob__tensor_lazy(tensor) <= level)
        return HOB_OK;
    status = hob__lazy_check_fork(tensor->device->runtime, error);
    for (int32_t at; !status && (at = hob__tensor_lazy(tensor)) > level;) {
        const hob_device *layer = tensor->device->at[at];

        status = layer->decorator->settle(layer->instance, &tensor, 1);
        if (status)
            return not_settled(layer, status, error);
    }
    return status;
}

static hob_status settle_argument(struct hob_call *call, hob_tensor *tensor,
                                  int32_t level)
{
    hob_error why = HOB_ERROR_INIT;
    hob_status status;

    if (hob__tensor_lazy(tensor) <= level)
        return HOB_OK;
    status = hob__tensor_settle(tensor, level, &why);
    if (status)
        hob__call_fail(call, status, "%s", hob__error_text(&why));
    hob_error_release(&why);
    if (!status && (tensor->flags & HOB__TENSOR_ERROR)) {
        call->core->cause = tensor->failure;
        status = tensor->failure ? tensor->failure->status : HOB_ERR_MEMORY;
    }
    return status;
}

hob_status hob__settle_arguments(struct hob_call *call, int32_t level)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < call->arg_count && !status; i++) {
        const hob_value *value = &call->args[i];

        if (value->tag == HOB_TAG_TENSOR)
            status = settle_argument(call, value->u.tensor, level);
        else if (value->tag == HOB_TAG_TENSORS)
            for (uint32_t k = 0; k < value->count && !status; k++)
                status = settle_argument(call, value->u.tensors[k], level);
    }
    return status;
}

/* ---- flushing ---- */

void hob__flush_scope(hob_runtime *runtime, const hob_scope *scope)
{
    const hob_device *device =
        atomic_load_explicit(&runtime->lazy_devices, memory_order_acquire);

    if (!device || hob__lazy_check_fork(runtime, NULL))
        return;
    /* What fails is told there, and by whoever uses the results. */
    for (; device; device = device->next_lazy)
        (void)device->decorator->flush(device->instance, scope);
}

hob_status hob__flush_device(const hob_device *device, hob_error *error)
{
    for (int32_t k = device->depth; k > 0; k--) {
        const hob_device *layer = device->at[k];
        hob_status status;

        if (!layer->decorator->flush)
            continue;
        status = hob__lazy_check_fork(device->runtime, error);
        if (status)
            return status;
        status = layer->decorator->flush(layer->instance, NULL);
        if (status)
            return not_settled(layer, status, error);
    }
    return HOB_OK;
}

/* ---- the host table ---- */

hob_status hob__defer(struct hob_call *call, uint32_t index, void *state)
{
    hob_tensor *tensor = hob__tensor_waiting(call->device, &call->metas[index],
                                             call->level, state);

    call->rets[index].u.tensor = tensor;
    if (!tensor)
        return HOB_ERR_MEMORY;
    hob__tensor_set_form(tensor, call->core->expected[index].form);
    return HOB_OK;
}

/* Whether SOURCE is what TENSOR was said to be. */
static int is_as_said(const hob_tensor *tensor, const hob_tensor *source)
{
    const struct hob_view *a = &tensor->view;
    const struct hob_view *b = &source->view;

    return a->dtype == b->dtype && a->rank == b->rank &&
           a->scheme == b->scheme &&
           !memcmp(a->shape, b->shape, a->rank * sizeof(a->shape[0]));
}

static void fill_failure(hob_tensor *tensor, struct hob__failure *failure)
{
    tensor->failure = failure;
    atomic_fetch_or(&tensor->flags, HOB__TENSOR_ERROR);
}

hob_status hob__fill(hob_tensor *tensor, int32_t level, void *state,
                     hob_tensor *source)
{
    int32_t lazy = 0;

    if (hob__tensor_lazy(tensor) != level)
        return HOB_ERR_STATE;
    if (source->flags & HOB__TENSOR_ERROR) {
        if (source->failure)
            hob__failure_ref(source->failure);
        fill_failure(tensor, source->failure);
    } else if (!is_as_said(tensor, source)) {
        return HOB_ERR_INTERNAL;
    } else {
        lazy = hob__tensor_take(tensor, source, level - 1);
    }
    hob__tensor_set_state(tensor, level, state);
    atomic_store_explicit(&tensor->lazy, (uint32_t)lazy, memory_order_release);
    return HOB_OK;
}

void hob__call_origin(const struct hob_call *call, struct hob_call_origin *out)
{
    const uint32_t size = out->struct_size;
    const struct hob_call_origin origin = {
        .struct_size = size,
        .fuse =
            hob__route_get(call->device->at[call->level], call->core->op)->fuse,
        .scope = hob__scope_of_program(call->scope),
        .index = call->core->index,
        .kind = call->core->kind};

    if (size < sizeof(origin))
        memcpy(out, &origin, size);
    else
        *out = origin;
}

hob_tensor *hob__tensor_new(hob_device *device, const struct hob_meta *meta,
                            hob_tensor *over)
{
    hob_tensor *tensor = NULL;
    uint64_t bytes = 0;

    if (!over)
        return hob__meta_bytes(meta, &bytes) ||
                       hob__tensor_alloc(device, meta, bytes, &tensor)
                   ? NULL
                   : tensor;
    tensor = hob__tensor_blank(device, meta);
    if (!tensor)
        return NULL;
    hob__storage_ref(over->view.storage);
    tensor->view.storage = over->view.storage;
    tensor->view.data = over->view.data;
    over->view.storage->range = HOB__RANGE_UNKNOWN;
    return tensor;
}

int32_t hob__is_last(hob_tensor *const *tensors, uint32_t count)
{
    struct hob_storage *storage = count ? tensors[0]->view.storage : NULL;

    if (!storage || !hob__storage_is_ours(storage) ||
        atomic_load_explicit(&storage->refs, memory_order_acquire) != count)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        if (tensors[i]->view.storage != storage ||
            (tensors[i]->view.flags & HOB_VIEW_READ_ONLY) ||
            atomic_load_explicit(&tensors[i]->refs, memory_order_acquire) != 1)
            return 0;
    return 1;
}

/* The scope that it was made in holds one reference. */
int32_t hob__is_held(const hob_tensor *tensor)
{
    return atomic_load_explicit(&tensor->refs, memory_order_relaxed) > 1;
}

const void *hob__heir(const void *closing, const hob_tensor *tensor)
{
    const hob_scope *at = ((const hob_scope *)closing)->parent;
    uint32_t index;

    if (hob__is_held(tensor))
        return NULL;
    while (at && at->parent && !hob__scope_is_marked(at, tensor, &index))
        at = at->parent;
    return at && at->parent ? at : NULL;
}

hob_status hob__replay(hob_scope *scope, uint64_t index, uint32_t op,
                       const hob_value *args, uint32_t arg_count,
                       hob_tensor **out, uint32_t out_capacity,
                       uint32_t *out_count, hob_value *plains,
                       uint32_t plain_capacity)
{
    scope->calls = index - 1;
    return hob__call(scope, op, args, arg_count, out, out_capacity, out_count,
                     plains, plain_capacity);
}

/* ---- public ---- */

static const struct hob_fusion_inspect *
find_inspect(hob_device *device, void **out_layer, hob_error *error)
{
    const struct hob_host *host = &device->runtime->host;
    const struct hob_fusion_inspect *inspect = host->interface(
        device, HOB_FUSION_INSPECT, HOB_FUSION_INSPECT_VERSION, out_layer);

    if (!inspect)
        hob_error_set(error, HOB_ERR_DEVICE,
                      "there is no fusion in %s: open the device as "
                      "\"fusion(%s)\"",
                      device->name, device->name);
    return inspect;
}

hob_status hob_fusion_report(hob_device *device, struct hob_fusion_stats *out,
                             hob_error *error)
{
    struct hob_fusion_stats report = HOB_FUSION_STATS_INIT;
    void *layer;
    const struct hob_fusion_inspect *inspect =
        find_inspect(device, &layer, error);

    if (!inspect)
        return HOB_ERR_DEVICE;
    if (out->struct_size < offsetof(struct hob_fusion_stats, recorded))
        return hob_error_set(error, HOB_ERR_ARGUMENT,
                             "report of %s: struct_size is %" PRIu32
                             "; begin with HOB_FUSION_STATS_INIT",
                             device->name, out->struct_size);
    inspect->report(layer, &report);
    hob__give_sized(out, &report, sizeof(report));
    return HOB_OK;
}

hob_status hob_fusion_watch(hob_device *device, hob_fusion_watch_fn fn,
                            void *context, hob_error *error)
{
    void *layer;
    const struct hob_fusion_inspect *inspect =
        find_inspect(device, &layer, error);

    if (!inspect)
        return HOB_ERR_DEVICE;
    inspect->watch(layer, fn, context);
    return HOB_OK;
}

hob_status hob_eval(hob_tensor *const *tensors, uint32_t count,
                    hob_error *error)
{
    hob_tensor **waiting = count ? malloc(count * sizeof(hob_tensor *)) : NULL;
    hob_status status = HOB_OK;

    if (count && !waiting)
        return hob_error_set(error, HOB_ERR_MEMORY,
                             "eval: no memory for a list of tensors");
    for (uint32_t first = 0; first < count && !status;) {
        const hob_device *layer;
        int32_t level = hob__tensor_lazy(tensors[first]);
        uint32_t found = 0;

        if (!level) {
            first++;
            continue;
        }
        status = hob__lazy_check_fork(tensors[first]->device->runtime, error);
        if (status)
            break;
        layer = tensors[first]->device->at[level];
        for (uint32_t i = first; i < count; i++)
            if (hob__tensor_lazy(tensors[i]) == level &&
                tensors[i]->device->at[level] == layer)
                waiting[found++] = tensors[i];
        status = layer->decorator->settle(layer->instance, waiting, found);
        if (status)
            status = not_settled(layer, status, error);
    }
    free(waiting);
    for (uint32_t i = 0; i < count && !status; i++)
        status = hob__tensor_check(tensors[i], error);
    return status;
}

void hob__eval(hob_tensor *const *tensors, uint32_t count)
{
    hob_error error = HOB_ERROR_INIT;

    /* The tensors say what failed. */
    if (hob_eval(tensors, count, &error))
        hob_error_release(&error);
}
