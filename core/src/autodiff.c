/* SPDX-License-Identifier: Apache-2.0 */
/*
 * autodiff.c - thin calls to the interface "autodiff.backward" of the topmost
 * layer that has one. The core itself knows nothing of gradients.
 */
#include <hob/autodiff.h>

#include "error.h"
#include "lazy.h"
#include "runtime.h"
#include "scope.h"

#include <hob/ext/autodiff.h>

#include <stdlib.h>

struct hob_grads {
    hob_runtime *runtime;
    const struct hob_autodiff_interface *interface;
    void *layer;
    void *grads;
};

/* Version 1 of the interface: all functions up to grads_free. */
enum {
    INTERFACE_SIZE_MIN = offsetof(struct hob_autodiff_interface, grads_free) +
                         sizeof(void (*)(void))
};

static const struct hob_autodiff_interface *find(hob_device *device,
                                                 void **out_layer)
{
    const struct hob_host *host = &device->runtime->host;
    const struct hob_autodiff_interface *interface =
        host->interface(device, HOB_AUTODIFF_INTERFACE,
                        HOB_AUTODIFF_INTERFACE_VERSION, out_layer);

    /* A shorter one lacks functions that are called below. */
    return interface && interface->struct_size >= INTERFACE_SIZE_MIN ? interface : NULL;
}

/* The level of LAYER in DEVICE; 0 if it has none such. */
static int32_t level_of(const hob_device *device, const void *layer)
{
    int32_t level = device->depth;

    while (level > 0 && device->at[level]->instance != layer)
        level--;
    return level;
}

/* Check TENSOR and find its topmost autodiff. */
static hob_status find_for(const char *what, hob_tensor *tensor,
                           const struct hob_autodiff_interface **out_interface,
                           void **out_layer, hob_error *error)
{
    hob_status status = hob__tensor_check(tensor, error);

    if (status)
        return status;
    *out_interface = find(tensor->device, out_layer);
    if (*out_interface) /* layers above it may have put the tensor off */
        status = hob__tensor_settle(
            tensor, level_of(tensor->device, *out_layer), error);
    if (*out_interface && !status)
        status = hob__tensor_check(tensor, error);
    if (*out_interface)
        return status;
    return hob_error_set(error, HOB_ERR_DEVICE,
                         "%s: there is no autodiff in %s: open the device as "
                         "\"autodiff(%s)\"",
                         what, tensor->device->name, tensor->device->name);
}

/* The error of a call by its scope: as the plugin put it there, else STATUS. */
static hob_tensor *fail_in(hob_scope *scope, const char *what,
                           hob_status status, hob_error *error)
{
    hob_tensor *tensor;

    if (!error->status && scope->failure)
        return hob__scope_failure(scope, NULL);
    tensor = hob__scope_fail(scope, status, "%s",
                             error->message ? error->message : what);
    hob_error_release(error);
    return tensor;
}

typedef hob_status (*unary_fn)(void *layer, hob_scope *scope,
                               hob_tensor *tensor, hob_tensor **out);

enum unary { REQUIRE_GRAD, DETACH, INNER };

static hob_tensor *unary(const char *what, enum unary which, hob_scope *scope,
                         hob_tensor *tensor)
{
    const struct hob_autodiff_interface *interface = NULL;
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *out = NULL;
    void *layer = NULL;
    unary_fn fn;
    hob_status status;

    if (tensor->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED))
        return hob__scope_pass(scope, tensor);
    status = find_for(what, tensor, &interface, &layer, &error);
    if (status)
        return fail_in(scope, what, status, &error);
    fn = which == REQUIRE_GRAD ? interface->require_grad
         : which == DETACH     ? interface->detach
                               : interface->inner;
    status = fn(layer, scope, tensor, &out);
    return status ? fail_in(scope, what, status, &error) : out;
}

hob_tensor *hob_require_grad(hob_scope *scope, hob_tensor *tensor)
{
    return unary("require_grad", REQUIRE_GRAD, scope, tensor);
}

hob_tensor *hob_detach(hob_scope *scope, hob_tensor *tensor)
{
    return unary("detach", DETACH, scope, tensor);
}

hob_tensor *hob_inner(hob_scope *scope, hob_tensor *tensor)
{
    return unary("inner", INNER, scope, tensor);
}

int hob_is_tracked(const hob_tensor *tensor)
{
    const struct hob_autodiff_interface *interface;
    void *layer = NULL;

    if (tensor->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED))
        return 0;
    interface = find(tensor->device, &layer);
    /* Whether it is tracked is known once it has been computed. */
    if (interface && hob__tensor_settle((hob_tensor *)(uintptr_t)tensor,
                                        level_of(tensor->device, layer), NULL))
        return 0;
    return interface && interface->is_tracked(layer, tensor);
}

/* Hand over a plugin's MESSAGE, freeing it. */
static hob_status take_message(hob_runtime *runtime, const char *what,
                               hob_status status, char *message,
                               const hob_scope *scope, hob_error *error)
{
    if (message && scope->failure)
        hob_error_set(error, status, "%s: %s (%s)", what,
                      scope->failure->message, message);
    else if (message)
        hob_error_set(error, status, "%s: %s", what, message);
    else if (scope->failure)
        hob_error_set(error, status, "%s: %s", what, scope->failure->message);
    else
        hob_error_set(error, status, "%s: %s", what, hob_status_name(status));
    if (message)
        runtime->host.mem_free(&runtime->host, message);
    return status;
}

hob_status hob_backward(hob_scope *scope, hob_tensor *tensor, uint32_t flags,
                        hob_grads **out_grads, hob_error *error)
{
    const struct hob_autodiff_interface *interface = NULL;
    struct hob_scope_frame frame;
    hob_scope *inner;
    hob_grads *grads;
    char *message = NULL;
    void *layer = NULL;
    hob_status status = find_for("backward", tensor, &interface, &layer, error);

    *out_grads = NULL;
    if (status)
        return status;
    grads = calloc(1, sizeof(*grads));
    if (!grads)
        return hob_error_set(error, HOB_ERR_MEMORY, "backward: no memory");
    inner = hob__scope_enter(scope, &frame, -1);
    status = interface->backward(layer, inner, tensor, flags, &grads->grads,
                                 &message);
    if (status) {
        status = take_message(scope->runtime, "backward", status, message,
                              inner, error);
        free(grads);
    } else {
        grads->runtime = scope->runtime;
        grads->interface = interface;
        grads->layer = layer;
        atomic_fetch_add(&scope->runtime->live_grads, 1);
        *out_grads = grads;
    }
    hob__scope_leave(inner);
    return status;
}

hob_status hob_grad(hob_scope *scope, hob_tensor *leaf, const hob_grads *grads,
                    hob_tensor **out_grad, hob_error *error)
{
    char *message = NULL;
    hob_status status = hob__tensor_check(leaf, error);

    *out_grad = NULL;
    if (status)
        return status;
    /* Only of such tensors is a state word that layer's to read. */
    if (!level_of(leaf->device, grads->layer))
        return hob_error_set(error, HOB_ERR_ARGUMENT,
                             "grad: the tensor is on %s, the gradients are "
                             "of another autodiff",
                             leaf->device->name);
    status = hob__tensor_settle(leaf, level_of(leaf->device, grads->layer),
                                error);
    if (!status)
        status = hob__tensor_check(leaf, error);
    if (status)
        return status;
    status = grads->interface->grad(grads->layer, scope, leaf, grads->grads,
                                    out_grad, &message);
    return status ? take_message(scope->runtime, "grad", status, message, scope,
                                 error)
                  : HOB_OK;
}

void hob_grads_free(hob_grads *grads)
{
    if (!grads)
        return;
    grads->interface->grads_free(grads->layer, grads->grads);
    atomic_fetch_sub(&grads->runtime->live_grads, 1);
    free(grads);
}

hob_scope *hob_no_grad(hob_scope *parent, hob_device *device)
{
    hob_scope *scope = hob_scope_child(parent);

    for (int32_t k = device ? device->depth : 0; scope && k > 0; k--) {
        const hob_device *layer = device->at[k];

        if (!layer->decorator->interface ||
            !layer->decorator->interface(layer->instance,
                                         HOB_AUTODIFF_INTERFACE,
                                         HOB_AUTODIFF_INTERFACE_VERSION))
            continue;
        if (scope->level > k - 1)
            scope->level = k - 1;
        break;
    }
    return scope;
}
