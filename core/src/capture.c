/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.c - captures: their state, when a step is recorded and when it is
 * replayed. How it is called is in capture_step.c.
 */
#include "capture.h"

#include "dispatch.h"
#include "error.h"
#include "scope.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        hob__kind_drop_recording(capture, kind);
    return status;
}

/* Say why a run is no replay. */
static void say(hob_capture *capture, const char *reason)
{
    snprintf(capture->reason, sizeof(capture->reason), "%s", reason);
}

/* Whether a layer of DEVICE runs ops in groups of its own, which the calls of
 * kernels do not show. */
static int puts_off(const hob_device *device)
{
    for (int32_t k = 1; k <= device->depth; k++)
        if (device->at[k]->decorator->settle)
            return 1;
    return 0;
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

/* The elements of TENSOR, to be handed from step to step. */
static hob_status share_state(struct hob__operand *operand, hob_tensor *tensor,
                              hob_error *error)
{
    hob_tensor *source = NULL;
    hob_status status = hob__contiguous(tensor, &source, error);

    if (status)
        return status;
    operand->slot = hob__tensor_share(source, source->device->at[0], 0);
    hob__tensor_unref(source);
    return operand->slot
               ? HOB_OK
               : hob_error_set(error, HOB_ERR_MEMORY, "capture: no memory");
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
            status = capture->interface ? make_slot(capture, operand, error)
                                        : share_state(operand, state[i], error);
        if (!status) {
            capture->state_count = i + 1;
            if (capture->interface)
                status = hob__capture_put(capture, operand, state[i], error);
        }
    }
    return status;
}

static hob_status open_capture(hob_device *device, hob_step_fn fn,
                               void *context, hob_tensor *const *state,
                               uint32_t state_count, uint32_t is_checked,
                               hob_capture **out_capture, hob_error *error)
{
    const struct hob_capture_interface *interface =
        find_interface(device->at[0]);
    hob_capture *capture;
    hob_status status;

    *out_capture = NULL;
    if (!interface && !is_checked)
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
    capture->is_checked = is_checked;
    if (is_checked)
        say(capture, "it has not run yet");
    hob_device_ref(device);
    status = fill_state(capture, state, state_count, error);
    if (status)
        hob_capture_close(capture);
    else
        *out_capture = capture;
    return status;
}

hob_status hob_capture_open(hob_device *device, hob_step_fn fn, void *context,
                            hob_tensor *const *state, uint32_t state_count,
                            hob_capture **out_capture, hob_error *error)
{
    return open_capture(device, fn, context, state, state_count, 0, out_capture,
                        error);
}

hob_status hob_capture_open_checked(hob_device *device, hob_step_fn fn,
                                    void *context, hob_tensor *const *state,
                                    uint32_t state_count,
                                    hob_capture **out_capture, hob_error *error)
{
    return open_capture(device, fn, context, state, state_count, 1, out_capture,
                        error);
}

const char *hob_capture_reason(const hob_capture *capture)
{
    return capture->reason[0] ? capture->reason : NULL;
}

/* What a run is given, and what it has made: references. */
struct run {
    hob_scope *scope;
    hob_capture *capture;
    hob_tensor *const *inputs;
    uint32_t input_count;
    hob_tensor **made;
    uint32_t out_count;
};

static hob_status run_as_it_is(const struct run *run, hob_error *error)
{
    return hob__capture_call(run->capture, run->scope, run->inputs,
                             run->input_count, run->made, run->out_count,
                             error);
}

/*
 * Try to have KIND's recording replayed, making it first if there is none: 1
 * if that was done and STATUS is what came of it; 0 if the step is to be run as
 * it is, for which the reason is said.
 */
static int try_replay(const struct run *run, struct hob__kind *kind,
                      hob_status *out_status, hob_error *error)
{
    enum { MOST_MISSES = 3 };
    hob_capture *capture = run->capture;
    hob_error why = HOB_ERROR_INIT;
    const int is_new = !kind->graph;
    hob_status status =
        is_new ? record(capture, kind, run->scope, &why)
               : hob__capture_follow(capture, kind, run->scope, &why);

    if (!status) {
        kind->misses = is_new ? kind->misses : 0;
        *out_status = replay(capture, kind, run->inputs, run->made, error);
        hob_error_release(&why);
        return 1;
    }
    say(capture, hob__error_text(&why));
    hob_error_release(&why);
    hob__kind_drop_recording(capture, kind);
    /* Whoever changes something each time is not to pay for a recording each
     * time. */
    kind->gives_up = (is_new && status == HOB_ERR_UNSUPPORTED) ||
                     ++kind->misses == MOST_MISSES;
    memcpy(kind->reason, capture->reason, sizeof(kind->reason));
    return 0;
}

static hob_status run_checked(const struct run *run, hob_error *error)
{
    hob_capture *capture = run->capture;
    struct hob__kind *kind = NULL;
    hob_status status = HOB_OK;
    int is_replay = 0;

    if (!capture->interface || puts_off(capture->device)) {
        say(capture, capture->interface ? "a layer of the device puts ops off"
                                        : "the device cannot record");
        return run_as_it_is(run, error);
    }
    kind = hob__kind_find(capture, run->scope, run->inputs, run->input_count,
                          run->out_count);
    if (!kind)
        return hob_error_set(error, HOB_ERR_MEMORY, "capture: no memory");
    if (!kind->has_run)
        say(capture, "it is the first of its kind");
    else if (kind->gives_up)
        say(capture, kind->reason);
    else
        is_replay = try_replay(run, kind, &status, error);
    if (!is_replay)
        status = run_as_it_is(run, error);
    else
        capture->reason[0] = '\0';
    kind->has_run |= !status;
    hob__kind_drop_oldest(capture);
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
    if (capture->is_checked)
        return run_checked(
            &(struct run){scope, capture, inputs, input_count, made, out_count},
            error);
    kind = hob__kind_find(capture, scope, inputs, input_count, out_count);
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
    hob__kind_drop_oldest(capture);
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
    if (!capture->interface) {
        tensor = hob__tensor_share(capture->state[index].slot,
                                   capture->state[index].device, 0);
        status = tensor ? HOB_OK
                        : hob_error_set(&error, HOB_ERR_MEMORY,
                                        "capture: no memory");
    } else
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
        hob__kind_free(capture, kind);
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
