/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transfer.c - hob_to_device().
 *
 * Within one base, lifting and stripping decorators shares the elements.
 * Between bases the elements are copied, by the backend if both are its own and
 * it can, else by way of host memory.
 */
#include "dispatch.h"
#include "error.h"
#include "host_data.h"
#include "lazy.h"
#include "runtime.h"
#include "scope.h"

#include <hob/tensor.h>

#include <inttypes.h>
#include <stdlib.h>

/* Whether the levels of A and B are the same up to LEVEL. */
static int32_t common_levels(const hob_device *a, const hob_device *b)
{
    int32_t level = 0;

    while (level < a->depth && level < b->depth &&
           a->at[level + 1] == b->at[level + 1])
        level++;
    return level;
}

static hob_tensor *adopt(hob_scope *scope, hob_tensor *tensor)
{
    if (tensor && !hob__scope_adopt(scope, tensor))
        return tensor;
    return hob__scope_fail(scope, HOB_ERR_MEMORY,
                           "to_device: no memory for a tensor handle");
}

/* By the backend, where both are devices of one that can. */
static hob_status copy_directly(hob_tensor *tensor, hob_device *device,
                                const struct hob_meta *meta, uint64_t bytes,
                                hob_tensor **out_tensor, hob_error *error)
{
    const hob_device *to = device->at[0], *from = tensor->device->at[0];
    hob_tensor *source = NULL, *result = NULL;
    hob_status status;

    if (!bytes || to->plugin != from->plugin || !to->backend->copy)
        return HOB_ERR_UNSUPPORTED;
    status = hob__contiguous(tensor, &source, error);
    if (status)
        return status;
    status = hob__tensor_alloc(device, meta, bytes, &result);
    if (!status)
        status = to->backend->copy(to->instance, result->view.data,
                                   from->instance, source->view.data, bytes);
    if (!status)
        result->view.storage->range = source->view.storage->range;
    hob__tensor_unref(source);
    if (!status) {
        *out_tensor = result;
        return HOB_OK;
    }
    hob__tensor_unref(result);
    return status == HOB_ERR_UNSUPPORTED
               ? status
               : hob_error_set(error, status,
                               "copying %" PRIu64 " bytes from %s to %s failed",
                               bytes, from->name, to->name);
}

static hob_status copy_by_host(hob_scope *scope, hob_tensor *tensor,
                               hob_device *device, const struct hob_meta *meta,
                               uint64_t bytes, hob_tensor **out_tensor,
                               hob_error *error)
{
    void *buffer = bytes ? malloc(bytes) : NULL;
    hob_status status = bytes && !buffer ? HOB_ERR_MEMORY : HOB_OK;

    if (!status)
        status = hob__tensor_download(tensor, buffer, bytes, error);
    if (!status)
        status =
            hob__elements_put(scope, device, meta, buffer, out_tensor, error);
    free(buffer);
    return status;
}

static hob_tensor *copy_over(hob_scope *scope, hob_tensor *tensor,
                             hob_device *device)
{
    struct hob_meta meta = hob__tensor_meta(tensor);
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *result = NULL;
    uint64_t bytes = 0;
    hob_status status = hob__meta_bytes(&meta, &bytes);

    if (!status) {
        status = copy_directly(tensor, device, &meta, bytes, &result, &error);
        if (!status)
            return adopt(scope, result);
    }
    if (status == HOB_ERR_UNSUPPORTED)
        status =
            copy_by_host(scope, tensor, device, &meta, bytes, &result, &error);
    if (status)
        result = hob__scope_fail(scope, status, "to_device: %s",
                                 error.message ? error.message
                                               : "no memory for the copy");
    hob_error_release(&error);
    return result;
}

/* Only what no layer above LEVELS has put off has its state and elements:
 * NULL, or what to answer instead of the result. */
static hob_tensor *settle(hob_scope *scope, hob_tensor *tensor, int32_t levels)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *failed = NULL;

    if (hob__tensor_settle(tensor, levels, &error))
        failed = hob__scope_fail(scope, error.status, "to_device: %s",
                                 hob__error_text(&error));
    else if (tensor->flags & HOB__TENSOR_ERROR)
        failed = hob__scope_pass(scope, tensor);
    hob_error_release(&error);
    return failed;
}

/* TENSOR's elements with another stack on the same base. */
static hob_tensor *share(hob_scope *scope, hob_tensor *tensor,
                         hob_device *device)
{
    int32_t levels = common_levels(tensor->device, device);
    hob_tensor *failed = settle(scope, tensor, levels);

    return failed ? failed
                  : adopt(scope, hob__tensor_share(tensor, device, levels));
}

hob_tensor *hob_to_device(hob_scope *scope, hob_tensor *tensor,
                          hob_device *device)
{
    hob_tensor *failed;

    if (tensor->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED))
        return hob__scope_pass(scope, tensor);
    if (!device)
        return hob__scope_fail(scope, HOB_ERR_ARGUMENT,
                               "to_device: no device is given: that of an "
                               "error tensor is NULL");
    if (device->at[0] == tensor->device->at[0])
        return share(scope, tensor, device);
    failed = settle(scope, tensor, 0);
    if (failed)
        return failed;
    /* A copy between bases is no op yet, so it has no gradient: say so rather
     * than lose one. */
    if (hob__tensor_has_state(tensor))
        return hob__scope_fail(
            scope, HOB_ERR_UNSUPPORTED,
            "to_device: a tracked tensor cannot go from %s to %s yet: "
            "hob_detach() it first",
            tensor->device->name, device->name);
    return copy_over(scope, tensor, device);
}
