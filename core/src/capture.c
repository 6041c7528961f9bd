/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.c - captures: their state, what is recorded for which inputs, and
 * replays. How a step is called and recorded is in capture_step.c.
 */
#include "capture.h"

#include "dispatch.h"
#include "error.h"
#include "scope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- operands ---- */

hob_status hob__operand_init(struct hob__operand *operand,
                             const hob_tensor *tensor, hob_device *device)
{
    memset(operand, 0, sizeof(*operand));
    operand->device = device;
    operand->meta = hob__tensor_meta(tensor);
    return hob__meta_bytes(&operand->meta, &operand->bytes);
}

int hob__operand_is_like(const struct hob__operand *operand,
                         const hob_tensor *tensor)
{
    const struct hob_view *view = &tensor->view;

    return view->dtype == operand->meta.dtype &&
           view->rank == operand->meta.rank &&
           view->scheme == operand->meta.scheme &&
           !memcmp(view->shape, operand->meta.shape,
                   view->rank * sizeof(view->shape[0]));
}

hob_status hob__capture_copy(const hob_capture *capture, void *to,
                             const void *from, uint64_t bytes)
{
    const hob_device *base = capture->device->at[0];

    return bytes ? base->backend->copy(base->instance, to, base->instance, from,
                                       bytes)
                 : HOB_OK;
}

hob_status hob__capture_put(const hob_capture *capture,
                            const struct hob__operand *operand,
                            hob_tensor *tensor, hob_error *error)
{
    hob_tensor *source = NULL;
    hob_status status = hob__contiguous(tensor, &source, error);

    if (status)
        return status;
    if (source->view.data != operand->slot->view.data)
        status = hob__capture_copy(capture, operand->slot->view.data,
                                   source->view.data, operand->bytes);
    hob__tensor_unref(source);
    return status ? hob_error_set(error, status,
                                  "capture: copying %" PRIu64
                                  " bytes on %s failed",
                                  operand->bytes, capture->device->at[0]->name)
                  : HOB_OK;
}

hob_status hob__capture_take(const hob_capture *capture, hob_device *device,
                             const struct hob__operand *operand,
                             const void *data, hob_tensor **out_tensor,
                             hob_error *error)
{
    hob_status status =
        hob__tensor_alloc(device, &operand->meta, operand->bytes, out_tensor);

    if (status)
        return hob_error_set(error, status,
                             "capture: no memory on %s for a copy of %" PRIu64
                             " bytes",
                             device->at[0]->name, operand->bytes);
    status = hob__capture_copy(capture, (*out_tensor)->view.data, data,
                               operand->bytes);
    if (!status)
        return HOB_OK;
    hob__tensor_unref(*out_tensor);
    *out_tensor = NULL;
    return hob_error_set(error, status,
                         "capture: copying %" PRIu64 " bytes on %s failed",
                         operand->bytes, device->at[0]->name);
}

/* Give OPERAND a place of its own. */
static hob_status make_slot(const hob_capture *capture,
                            struct hob__operand *operand, hob_error *error)
{
    hob_status status = hob__tensor_alloc(
        capture->device->at[0], &operand->meta, operand->bytes, &operand->slot);

    return status
               ? hob_error_set(error, status,
                               "capture: no memory on %s for %" PRIu64 " bytes",
                               capture->device->at[0]->name, operand->bytes)
               : HOB_OK;
}

/* TENSOR, WHAT number INDEX, is alive and on the base of CAPTURE. */
static hob_status check_tensor(const hob_capture *capture, const char *what,
                               uint32_t index, const hob_tensor *tensor,
                               hob_error *error)
{
    hob_status status = hob__tensor_check(tensor, error);

    if (status)
        return status;
    if (tensor->device->at[0] != capture->device->at[0])
        return hob_error_set(error, HOB_ERR_DEVICE,
                             "capture: %s %" PRIu32
                             " is on %s, the capture on %s: bring it over with "
                             "hob_to_device()",
                             what, index, tensor->device->name,
                             capture->device->name);
    return HOB_OK;
}

/* ---- kinds of inputs ---- */

static void drop_recording(const hob_capture *capture, struct hob__kind *kind)
{
    if (kind->graph)
        capture->interface->graph_free(capture->device->at[0]->instance,
                                       kind->graph);
    kind->graph = NULL;
    hob__recording_release(&kind->recording);
    for (uint32_t i = 0; i < kind->input_count; i++) {
        hob__tensor_unref(kind->inputs[i].slot);
        hob__tensor_unref(kind->inputs[i].last);
        kind->inputs[i].slot = kind->inputs[i].last = NULL;
    }
}

static void kind_free(const hob_capture *capture, struct hob__kind *kind)
{
    drop_recording(capture, kind);
    free(kind->inputs);
    free(kind->outs);
    free(kind);
}

static int is_kind(const struct hob__kind *kind, const hob_scope *scope,
                   hob_tensor *const *inputs, uint32_t input_count,
                   uint32_t out_count)
{
    if (kind->level != scope->level || kind->input_count != input_count ||
        kind->out_count != out_count)
        return 0;
    for (uint32_t i = 0; i < input_count; i++)
        if (kind->inputs[i].device != inputs[i]->device ||
            !hob__operand_is_like(&kind->inputs[i], inputs[i]))
            return 0;
    return 1;
}

static struct hob__kind *kind_new(const hob_scope *scope,
                                  hob_tensor *const *inputs,
                                  uint32_t input_count, uint32_t out_count)
{
    struct hob__kind *kind = calloc(1, sizeof(*kind));
    hob_status status = HOB_OK;

    if (!kind)
        return NULL;
    kind->level = scope->level;
    kind->input_count = input_count;
    kind->out_count = out_count;
    kind->inputs = calloc(input_count + 1u, sizeof(*kind->inputs));
    kind->outs = calloc(out_count + 1u, sizeof(*kind->outs));
    for (uint32_t i = 0; i < input_count && kind->inputs && !status; i++)
        status =
            hob__operand_init(&kind->inputs[i], inputs[i], inputs[i]->device);
    if (kind->inputs && kind->outs && !status)
        return kind;
    free(kind->inputs);
    free(kind->outs);
    free(kind);
    return NULL;
}

/* The kind of INPUTS, first in the list from now on. */
static struct hob__kind *find_kind(hob_capture *capture, const hob_scope *scope,
                                   hob_tensor *const *inputs,
                                   uint32_t input_count, uint32_t out_count)
{
    struct hob__kind **link = &capture->kinds, *kind;

    for (; *link; link = &(*link)->next)
        if (is_kind(*link, scope, inputs, input_count, out_count))
            break;
    kind = *link;
    if (kind) {
        *link = kind->next;
    } else {
        kind = kind_new(scope, inputs, input_count, out_count);
        if (!kind)
            return NULL;
    }
    kind->next = capture->kinds;
    capture->kinds = kind;
    return kind;
}

/* Give up what was not used for longest. */
static void drop_oldest(hob_capture *capture)
{
    struct hob__kind **link = &capture->kinds;
    uint32_t count = 0;

    for (; *link && count < HOB_CAPTURE_KINDS; link = &(*link)->next)
        count++;
    while (*link) {
        struct hob__kind *old = *link;

        *link = old->next;
        kind_free(capture, old);
    }
}

/* ---- replays ---- */

/* Hand over a plugin's MESSAGE, freeing it. */
static hob_status take_message(const hob_capture *capture, hob_status status,
                               char *message, hob_error *error)
{
    hob_error_set(error, status, "capture: %s",
                  message ? message : hob_status_name(status));
    if (message)
        capture->runtime->host.mem_free(&capture->runtime->host, message);
    return status;
}

static hob_status take_results(const hob_capture *capture,
                               const struct hob__kind *kind, hob_tensor **out,
                               hob_error *error)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < kind->out_count && !status; i++)
        status =
            hob__capture_take(capture, kind->outs[i].device, &kind->outs[i],
                              kind->outs[i].data, &out[i], error);
    return status;
}

/* Whether INPUT is the very elements that OPERAND's slot has. They are held,
 * so nobody has written over them. */
static int is_there(const struct hob__operand *operand, const hob_tensor *input)
{
    const hob_tensor *last = operand->last;

    return last && last->view.storage &&
           last->view.storage == input->view.storage &&
           last->view.data == input->view.data &&
           !memcmp(last->view.strides, input->view.strides,
                   input->view.rank * sizeof(input->view.strides[0]));
}

/* Bring INPUT to OPERAND's slot. */
static hob_status put_input(const hob_capture *capture,
                            struct hob__operand *operand, hob_tensor *input,
                            hob_error *error)
{
    hob_status status;

    if (is_there(operand, input))
        return HOB_OK;
    hob__tensor_unref(operand->last);
    operand->last = NULL;
    status = hob__capture_put(capture, operand, input, error);
    /* Without memory for a handle it is copied again next time. */
    if (!status)
        operand->last = hob__tensor_share(input, capture->device->at[0], 0);
    return status;
}

static hob_status replay(const hob_capture *capture,
                         const struct hob__kind *kind,
                         hob_tensor *const *inputs, hob_tensor **out,
                         hob_error *error)
{
    char *message = NULL;
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < kind->input_count && !status; i++)
        status = put_input(capture, &kind->inputs[i], inputs[i], error);
    if (status)
        return status;
    status = capture->interface->replay(capture->device->at[0]->instance,
                                        kind->graph, &message);
    if (status)
        return take_message(capture, status, message, error);
    return take_results(capture, kind, out, error);
}

static hob_status record(hob_capture *capture, struct hob__kind *kind,
                         hob_scope *scope, hob_error *error)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < kind->input_count && !status; i++)
        status = make_slot(capture, &kind->inputs[i], error);
    if (!status)
        status = hob__capture_record(capture, kind, scope, error);
    if (status)
        drop_recording(capture, kind);
    return status;
}

/* ---- public ---- */

static const struct hob_capture_interface *find_interface(hob_device *base)
{
    const struct hob_backend *backend = base->backend;
    const struct hob_capture_interface *interface =
        backend->interface && backend->copy
            ? backend->interface(base->instance, HOB_CAPTURE_INTERFACE,
                                 HOB_CAPTURE_INTERFACE_VERSION)
            : NULL;

    /* A shorter one lacks functions that are called. */
    return interface &&
                   interface->struct_size >=
                       offsetof(struct hob_capture_interface, graph_free) +
                           sizeof(interface->graph_free)
               ? interface
               : NULL;
}

static hob_status fill_state(hob_capture *capture, hob_tensor *const *state,
                             uint32_t count, hob_error *error)
{
    hob_status status = HOB_OK;

    capture->state = calloc(count + 1u, sizeof(*capture->state));
    if (!capture->state)
        return hob_error_set(error, HOB_ERR_MEMORY, "capture: no memory");
    for (uint32_t i = 0; i < count && !status; i++) {
        struct hob__operand *operand = &capture->state[i];

        status = check_tensor(capture, "state", i, state[i], error);
        if (!status)
            status = hob__operand_init(operand, state[i], state[i]->device);
        if (!status)
            status = make_slot(capture, operand, error);
        if (!status) {
            capture->state_count = i + 1;
            status = hob__capture_put(capture, operand, state[i], error);
        }
    }
    return status;
}

hob_status hob_capture_open(hob_device *device, hob_step_fn fn, void *context,
                            hob_tensor *const *state, uint32_t state_count,
                            hob_capture **out_capture, hob_error *error)
{
    const struct hob_capture_interface *interface =
        find_interface(device->at[0]);
    hob_capture *capture;
    hob_status status;

    *out_capture = NULL;
    if (!interface)
        return hob_error_set(
            error, HOB_ERR_UNSUPPORTED,
            "capture: %s offers no interface \"%s\": steps cannot be recorded "
            "there, call the function itself",
            device->at[0]->name, HOB_CAPTURE_INTERFACE);
    capture = calloc(1, sizeof(*capture));
    if (!capture)
        return hob_error_set(error, HOB_ERR_MEMORY, "capture: no memory");
    capture->runtime = device->runtime;
    capture->device = device;
    capture->interface = interface;
    capture->fn = fn;
    capture->context = context;
    hob_device_ref(device);
    status = fill_state(capture, state, state_count, error);
    if (status)
        hob_capture_close(capture);
    else
        *out_capture = capture;
    return status;
}

/* One step: MADE gets references. */
static hob_status run(hob_scope *scope, hob_capture *capture,
                      hob_tensor *const *inputs, uint32_t input_count,
                      hob_tensor **made, uint32_t out_count, hob_error *error)
{
    struct hob__kind *kind;
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < input_count && !status; i++)
        status = check_tensor(capture, "input", i, inputs[i], error);
    if (status)
        return status;
    kind = find_kind(capture, scope, inputs, input_count, out_count);
    if (!kind)
        return hob_error_set(error, HOB_ERR_MEMORY, "capture: no memory");
    if (kind->has_run) {
        if (!kind->graph)
            status = record(capture, kind, scope, error);
        if (!status)
            status = replay(capture, kind, inputs, made, error);
    } else {
        status = hob__capture_call(capture, scope, inputs, input_count, made,
                                   out_count, error);
        kind->has_run = !status;
    }
    drop_oldest(capture);
    return status;
}

hob_status hob_capture_run(hob_scope *scope, hob_capture *capture,
                           hob_tensor *const *inputs, uint32_t input_count,
                           hob_tensor **out, uint32_t out_count,
                           hob_error *error)
{
    hob_tensor **made;
    hob_status status;

    for (uint32_t i = 0; i < out_count; i++)
        out[i] = NULL;
    if (capture->is_running || hob__recording_here(capture->runtime))
        return hob_error_set(error, HOB_ERR_STATE,
                             "capture: a step cannot run a capture");
    made = calloc(out_count + 1u, sizeof(hob_tensor *));
    if (!made)
        return hob_error_set(error, HOB_ERR_MEMORY, "capture: no memory");
    capture->is_running = 1;
    status = run(scope, capture, inputs, input_count, made, out_count, error);
    capture->is_running = 0;
    for (uint32_t i = 0; i < out_count; i++) {
        if (!status && hob__scope_adopt(scope, made[i]))
            status = hob_error_set(error, HOB_ERR_MEMORY, "capture: no memory");
        else if (status)
            hob__tensor_unref(made[i]);
    }
    for (uint32_t i = 0; i < out_count && !status; i++)
        out[i] = made[i];
    free(made);
    return status;
}

hob_tensor *hob_capture_state(hob_scope *scope, hob_capture *capture,
                              uint32_t index)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *tensor = NULL;
    hob_status status;

    if (index >= capture->state_count)
        return hob__scope_fail(scope, HOB_ERR_ARGUMENT,
                               "capture: there is no state %" PRIu32
                               ", it has %" PRIu32,
                               index, capture->state_count);
    status = hob__capture_take(
        capture, capture->state[index].device, &capture->state[index],
        capture->state[index].slot->view.data, &tensor, &error);
    if (!status && hob__scope_adopt(scope, tensor))
        status = hob_error_set(&error, HOB_ERR_MEMORY, "capture: no memory");
    if (status)
        tensor = hob__scope_fail(scope, status, "%s", hob__error_text(&error));
    hob_error_release(&error);
    return tensor;
}

void hob_capture_forget(hob_capture *capture)
{
    while (capture->kinds) {
        struct hob__kind *kind = capture->kinds;

        capture->kinds = kind->next;
        kind_free(capture, kind);
    }
}

void hob_capture_close(hob_capture *capture)
{
    if (!capture)
        return;
    hob_capture_forget(capture);
    for (uint32_t i = 0; i < capture->state_count; i++)
        hob__tensor_unref(capture->state[i].slot);
    free(capture->state);
    hob_device_unref(capture->device);
    free(capture);
}
