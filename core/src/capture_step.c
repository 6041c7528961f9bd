/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_step.c - one call of a step's function: as it is, recorded, or
 * compared with what was recorded.
 */
#include "capture.h"

#include "dispatch.h"
#include "error.h"
#include "lazy.h"
#include "scope.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One call: new state first among what is made, then results. */
struct step_call {
    hob_capture *capture;
    hob_scope *scope; /* of the step; what is listed below is its own */
    struct hob_scope_frame frame;
    hob_tensor **made;  /* as the function set them */
    hob_tensor **ready; /* row-major, not in memory that is written next */
    uint32_t out_count;
    hob_tensor **state;
};

static hob_status no_memory(hob_error *error)
{
    return hob_error_set(error, HOB_ERR_MEMORY, "capture: no memory");
}

/* Let the step own TENSOR, which may be NULL without memory. */
static hob_status own(const struct step_call *call, hob_tensor *tensor,
                      hob_error *error)
{
    return tensor && !hob__scope_adopt(call->scope, tensor) ? HOB_OK
                                                            : no_memory(error);
}

/* ---- the function ---- */

static hob_status check_made(const struct step_call *call, uint32_t index,
                             hob_error *error)
{
    const hob_capture *capture = call->capture;
    const uint32_t count = capture->state_count;
    const char *what = index < count ? "new state" : "result";
    const uint32_t number = index < count ? index : index - count;
    const hob_tensor *made = call->made[index];
    char text[2][HOB__META_TEXT];
    struct hob_meta meta;
    hob_status status;

    if (!made)
        return hob_error_set(error, HOB_ERR_ARGUMENT,
                             "capture: the step made no %s %" PRIu32, what,
                             number);
    status = hob__tensor_check(made, error);
    if (status)
        return status;
    if (made->device->at[0] != capture->device->at[0])
        return hob_error_set(error, HOB_ERR_DEVICE,
                             "capture: %s %" PRIu32 " is on %s, the capture on "
                             "%s",
                             what, number, made->device->name,
                             capture->device->name);
    if (index >= count || hob__operand_is_like(&capture->state[index], made))
        return HOB_OK;
    meta = hob__tensor_meta(made);
    return hob_error_set(
        error, HOB_ERR_SHAPE,
        "capture: new state %" PRIu32 " is %s, the state is %s", number,
        hob__meta_text(&meta, text[0], sizeof(text[0])),
        hob__meta_text(&capture->state[index].meta, text[1], sizeof(text[1])));
}

static hob_status call_function(const struct step_call *call,
                                hob_tensor *const *inputs, uint32_t input_count,
                                hob_error *error)
{
    hob_capture *capture = call->capture;
    struct hob_step step = {.struct_size = sizeof(step),
                            .state_count = capture->state_count,
                            .input_count = input_count,
                            .out_count = call->out_count,
                            .state = call->state,
                            .inputs = inputs,
                            .new_state = call->made,
                            .out = call->made + capture->state_count};
    hob_status status = capture->fn(call->scope, capture->context, &step);
    const struct hob__failure *why = call->scope->failure;

    if (why && why->op)
        return hob_error_set(error, why->status, "capture: in the step, %s: %s",
                             why->op, why->message);
    if (why)
        return hob_error_set(error, why->status, "capture: in the step: %s",
                             why->message);
    if (status)
        return hob_error_set(error, status,
                             "capture: the step failed without a message");
    for (uint32_t i = 0; i < capture->state_count + call->out_count && !status;
         i++)
        status = check_made(call, i, error);
    return status;
}

/* ---- what it made ---- */

/* Whether TENSOR lies in the slot of a state. */
static int is_in_state(const hob_capture *capture, const hob_tensor *tensor)
{
    for (uint32_t i = 0; i < capture->state_count && tensor->view.storage; i++)
        if (capture->state[i].slot->view.data == tensor->view.storage->data)
            return 1;
    return 0;
}

/* Slots are written to next: what lies there, and not where it belongs, is
 * copied first. */
static hob_status make_ready(struct step_call *call, uint32_t index,
                             hob_error *error)
{
    const hob_capture *capture = call->capture;
    struct hob__operand operand;
    hob_tensor *tensor = NULL;
    hob_status status = hob__contiguous(call->made[index], &tensor, error);

    if (!status)
        status = own(call, tensor, error);
    if (status)
        return status;
    call->ready[index] = tensor;
    if (!capture->interface || !is_in_state(capture, tensor) ||
        (index < capture->state_count &&
         tensor->view.data == capture->state[index].slot->view.data))
        return HOB_OK;
    status = hob__operand_init(&operand, tensor, tensor->device);
    if (!status)
        status =
            hob__capture_take(capture, capture->device->at[0], &operand,
                              tensor->view.data, &call->ready[index], error);
    return status ? status : own(call, call->ready[index], error);
}

/* Where nothing is recorded the new state takes the place of the old one. */
static hob_status hand_on_state(const struct step_call *call, hob_error *error)
{
    const hob_capture *capture = call->capture;
    hob_tensor **next = call->state; /* those are of no more use */

    for (uint32_t i = 0; i < capture->state_count; i++) {
        next[i] = hob__tensor_share(call->ready[i], capture->device->at[0], 0);
        if (next[i])
            continue;
        while (i-- > 0)
            hob__tensor_unref(next[i]);
        return no_memory(error);
    }
    for (uint32_t i = 0; i < capture->state_count; i++) {
        hob__tensor_unref(capture->state[i].slot);
        capture->state[i].slot = next[i];
    }
    return HOB_OK;
}

static hob_status keep_state(struct step_call *call, hob_error *error)
{
    const hob_capture *capture = call->capture;
    const uint32_t count = capture->state_count + call->out_count;
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < count && !status; i++)
        status = make_ready(call, i, error);
    if (!status && !capture->interface)
        return hand_on_state(call, error);
    for (uint32_t i = 0; i < capture->state_count && !status; i++)
        status = hob__capture_put(capture, &capture->state[i], call->ready[i],
                                  error);
    return status;
}

/* ---- around a call ---- */

static hob_status begin(struct step_call *call, hob_capture *capture,
                        hob_scope *scope, uint32_t out_count, hob_error *error)
{
    const size_t made = (size_t)capture->state_count + out_count;

    call->capture = capture;
    call->out_count = out_count;
    call->scope = hob__scope_enter(scope, &call->frame, -1);
    call->made =
        calloc(2 * made + capture->state_count + 1u, sizeof(*call->made));
    if (!call->made)
        return no_memory(error);
    call->ready = call->made + made;
    call->state = call->ready + made;
    return HOB_OK;
}

static void end(struct step_call *call)
{
    while (call->scope->child) /* that the program has left open */
        hob_scope_close(call->scope->child);
    hob__scope_leave(call->scope);
    free(call->made);
}

/* A result that outlives the step: its elements alone. */
static hob_status share_results(const struct step_call *call, hob_tensor **out,
                                hob_error *error)
{
    for (uint32_t i = 0; i < call->out_count; i++) {
        const uint32_t index = call->capture->state_count + i;

        out[i] =
            hob__tensor_share(call->ready[index], call->made[index]->device, 0);
        if (!out[i])
            return no_memory(error);
    }
    return HOB_OK;
}

hob_status hob__capture_call(hob_capture *capture, hob_scope *scope,
                             hob_tensor *const *inputs, uint32_t input_count,
                             hob_tensor **out, uint32_t out_count,
                             hob_error *error)
{
    struct step_call call;
    hob_status status = begin(&call, capture, scope, out_count, error);

    /* The slot keeps its elements: a step that fails must change nothing. */
    for (uint32_t i = 0; i < capture->state_count && !status; i++) {
        call.state[i] = hob__tensor_share(capture->state[i].slot,
                                          capture->state[i].device, 0);
        status = own(&call, call.state[i], error);
    }
    /* Held, so that a move of an input takes nothing from the caller. */
    for (uint32_t i = 0; i < input_count; i++)
        hob__tensor_ref(inputs[i]);
    if (!status)
        status = call_function(&call, inputs, input_count, error);
    if (!status)
        status = keep_state(&call, error);
    if (!status)
        status = share_results(&call, out, error);
    end(&call);
    for (uint32_t i = 0; i < input_count; i++)
        hob__tensor_unref(inputs[i]);
    return status;
}

/* ---- recording ---- */

/* Handles for the step on memory of the capture. */
static hob_status lend(const struct step_call *call,
                       struct hob__operand *operands, uint32_t count,
                       int may_write, hob_tensor **out, hob_error *error)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < count && !status; i++) {
        operands[i].refs = atomic_load(&operands[i].slot->refs);
        out[i] = hob__recording_lend(operands[i].device, operands[i].slot,
                                     may_write);
        status = own(call, out[i], error);
    }
    return status;
}

/* Where the results lie, in memory that stays the recording's. */
static hob_status note_results(const struct step_call *call,
                               struct hob__kind *kind)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < call->out_count && !status; i++) {
        const uint32_t index = call->capture->state_count + i;

        status = hob__operand_init(&kind->outs[i], call->ready[index],
                                   call->made[index]->device);
        kind->outs[i].data = call->ready[index]->view.data;
    }
    return status;
}

/* Call the function with loans; a script is written or compared until it has
 * made all that it makes. */
static hob_status call_with_loans(struct step_call *call,
                                  struct hob__kind *kind, hob_error *error)
{
    hob_capture *capture = call->capture;
    struct hob__script *script = &kind->recording.script;
    hob_tensor **inputs = calloc(kind->input_count + 1u, sizeof(hob_tensor *));
    hob_status status = inputs ? HOB_OK : no_memory(error);

    if (!status)
        status = lend(call, capture->state, capture->state_count, 1,
                      call->state, error);
    if (!status)
        status = lend(call, kind->inputs, kind->input_count, 0, inputs, error);
    if (!status)
        status = call_function(call, inputs, kind->input_count, error);
    if (!status && script->use &&
        hob__script_made(script, call->made,
                         capture->state_count + call->out_count))
        status = no_memory(error);
    free(inputs);
    return status;
}

static hob_status run_recorded(hob_capture *capture, struct hob__kind *kind,
                               hob_scope *scope, hob_error *error)
{
    struct hob__script *script = &kind->recording.script;
    struct step_call call;
    hob_status status = begin(&call, capture, scope, kind->out_count, error);

    if (!status && capture->is_checked &&
        hob__script_begin(script, HOB__SCRIPT_WRITE))
        status = no_memory(error);
    if (!status)
        status = call_with_loans(&call, kind, error);
    (void)hob__script_end(script);
    if (!status)
        status = keep_state(&call, error);
    if (!status)
        status = note_results(&call, kind);
    end(&call);
    return status;
}

/* The handles that the step was lent are gone. */
static hob_status check_loans(const struct hob__operand *operands,
                              uint32_t count, const char *what,
                              hob_error *error)
{
    for (uint32_t i = 0; i < count; i++)
        if (atomic_load(&operands[i].slot->refs) > operands[i].refs)
            return hob_error_set(
                error, HOB_ERR_UNSUPPORTED,
                "capture: the step has kept %s %" PRIu32
                " beyond its end: its elements change with each replay; "
                "return what is needed as a result",
                what, i);
    return HOB_OK;
}

/* The message of a step that the backend would not record. */
static hob_status say_refused(const hob_capture *capture, char *message,
                              hob_error *error)
{
    const struct hob_host *host = &capture->runtime->host;
    hob_error why = HOB_ERROR_INIT;

    hob_error_set(&why, HOB_ERR_UNSUPPORTED, "%s",
                  error && error->message ? error->message : "capture");
    hob_error_set(error, HOB_ERR_UNSUPPORTED, "%s: %s", hob__error_text(&why),
                  message);
    hob_error_release(&why);
    host->mem_free(host, message);
    return HOB_ERR_UNSUPPORTED;
}

/* From here on this thread's work is KIND's, and none is done. */
static hob_status begin_recording(hob_capture *capture, struct hob__kind *kind,
                                  hob_error *error)
{
    char *message = NULL;
    hob_status status;

    kind->recording.base = capture->device->at[0];
    hob__recording_begin(capture->runtime, &kind->recording);
    status =
        capture->interface->begin(capture->device->at[0]->instance, &message);
    if (!status)
        return HOB_OK;
    hob__recording_end(capture->runtime);
    hob_error_set(error, status, "capture: %s",
                  message ? message : hob_status_name(status));
    if (message)
        capture->runtime->host.mem_free(&capture->runtime->host, message);
    return status;
}

hob_status hob__capture_record(hob_capture *capture, struct hob__kind *kind,
                               hob_scope *scope, hob_error *error)
{
    void *device = capture->device->at[0]->instance;
    char *message = NULL;
    hob_error own_error = HOB_ERROR_INIT;
    hob_status status, ended;

    /* What was put off before the step is not a part of it. */
    status = hob__flush_device(capture->device, error);
    if (!status)
        status = begin_recording(capture, kind, error);
    if (status)
        return status;
    if (!error)
        error = &own_error;
    status = run_recorded(capture, kind, scope, error);
    if (!status)
        status =
            check_loans(capture->state, capture->state_count, "state", error);
    if (!status)
        status = check_loans(kind->inputs, kind->input_count, "input", error);
    ended = capture->interface->end(device, !status, &kind->graph, &message);
    hob__recording_end(capture->runtime);
    if (ended && message)
        status = say_refused(capture, message, error);
    else if (ended && !status)
        status = hob_error_set(error, ended, "capture: recording failed");
    hob_error_release(&own_error);
    return status;
}

static hob_status run_followed(hob_capture *capture, struct hob__kind *kind,
                               hob_scope *scope, hob_error *error)
{
    struct hob__script *script = &kind->recording.script;
    struct step_call call;
    hob_status status = begin(&call, capture, scope, kind->out_count, error);

    if (!status && hob__script_begin(script, HOB__SCRIPT_FOLLOW))
        status = no_memory(error);
    if (!status)
        status = call_with_loans(&call, kind, error);
    end(&call);
    if (hob__script_end(script) && !status)
        status = hob_error_set(error, HOB_ERR_STATE,
                               "capture: the step has left tensors behind");
    if (!status && script->differs)
        status = hob_error_set(error, HOB_ERR_STATE,
                               "capture: the step is not what was recorded");
    return status;
}

hob_status hob__capture_follow(hob_capture *capture, struct hob__kind *kind,
                               hob_scope *scope, hob_error *error)
{
    void *device = capture->device->at[0]->instance, *graph;
    char *message = NULL;
    hob_status status = begin_recording(capture, kind, error), ended;

    if (status)
        return status;
    status = run_followed(capture, kind, scope, error);
    if (!status)
        status =
            check_loans(capture->state, capture->state_count, "state", error);
    if (!status)
        status = check_loans(kind->inputs, kind->input_count, "input", error);
    ended = capture->interface->end(device, 0, &graph, &message);
    hob__recording_end(capture->runtime);
    if (ended && message)
        status = say_refused(capture, message, error);
    return status ? status : ended;
}
