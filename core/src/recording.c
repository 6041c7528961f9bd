/* SPDX-License-Identifier: Apache-2.0 */
#include "recording.h"

#include "dispatch.h"

#include <stdlib.h>

void hob__recording_begin(hob_runtime *runtime,
                          struct hob__recording *recording)
{
    pthread_mutex_lock(&runtime->record_lock);
    runtime->recording = recording;
    atomic_store_explicit(&runtime->recorder, (uintptr_t)pthread_self(),
                          memory_order_relaxed);
}

void hob__recording_end(hob_runtime *runtime)
{
    atomic_store_explicit(&runtime->recorder, 0, memory_order_relaxed);
    runtime->recording = NULL;
    pthread_mutex_unlock(&runtime->record_lock);
}

void hob__recording_release(struct hob__recording *recording)
{
    hob__script_release(&recording->script);
    for (uint32_t i = 0; i < recording->held_count; i++)
        hob__tensor_unref(recording->held[i]);
    free(recording->held);
    recording->held = NULL;
    recording->held_count = recording->held_room = 0;
}

/* ---- what a step reads from before ---- */

static int is_held(const struct hob__recording *recording,
                   const struct hob_storage *storage)
{
    for (uint32_t i = 0; i < recording->held_count; i++)
        if (recording->held[i]->view.storage == storage)
            return 1;
    return 0;
}

static hob_status hold(struct hob__recording *recording, hob_tensor *tensor)
{
    struct hob_storage *storage = tensor->view.storage;
    const uint32_t room = recording->held_room ? 2 * recording->held_room : 16;
    hob_tensor **held;

    if (!storage ||
        (atomic_load_explicit(&storage->flags, memory_order_relaxed) &
         HOB__STORAGE_RECORDED) ||
        is_held(recording, storage))
        return HOB_OK;
    if (recording->held_count == recording->held_room) {
        held = realloc(recording->held, room * sizeof(*held));
        if (!held)
            return HOB_ERR_MEMORY;
        recording->held = held;
        recording->held_room = room;
    }
    tensor = hob__tensor_share(tensor, recording->base, 0);
    if (!tensor)
        return HOB_ERR_MEMORY;
    recording->held[recording->held_count++] = tensor;
    return HOB_OK;
}

static hob_status hold_arguments(struct hob__recording *recording,
                                 struct hob_call *call)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < call->arg_count && !status; i++) {
        const hob_value *value = &call->args[i];

        if (value->tag == HOB_TAG_TENSOR)
            status = hold(recording, value->u.tensor);
        else if (value->tag == HOB_TAG_TENSORS)
            for (uint32_t k = 0; k < value->count && !status; k++)
                status = hold(recording, value->u.tensors[k]);
    }
    return status ? hob__call_fail(call, status, "no memory to record it")
                  : HOB_OK;
}

/* ---- what is not the same in a replay ---- */

/* Whether the core is to draw CALL's random numbers. */
static int draws(const struct hob_call *call)
{
    return (call->core->op->flags & HOB__OP_RANDOM) &&
           (call->args[call->arg_count - 2].tag == HOB_TAG_ABSENT ||
            call->args[call->arg_count - 1].tag == HOB_TAG_ABSENT);
}

hob_status hob__recording_see(struct hob_call *call)
{
    struct hob__recording *recording = hob__recording_here(call->core->runtime);
    const struct hob__op *op = call->core->op;

    if (call->device->at[0] != recording->base)
        return hob__call_fail(call, HOB_ERR_UNSUPPORTED,
                              "the step is recorded on %s, this op is on %s: "
                              "a replay would do without it",
                              recording->base->name, call->device->name);
    if (draws(call))
        return hob__call_fail(call, HOB_ERR_UNSUPPORTED,
                              "every replay would draw the same numbers: draw "
                              "them before the step and make them an input");
    if (op->flags & HOB__OP_DYNAMIC)
        return hob__call_fail(call, HOB_ERR_UNSUPPORTED,
                              "the sizes of its results depend on data, a "
                              "recording has them fixed");
    if (op->manifest && !op->manifest->capture)
        return hob__call_fail(call, HOB_ERR_UNSUPPORTED,
                              "its manifest says \"capture\": false");
    /* What is compared is held already, or another. */
    return recording->script.use == HOB__SCRIPT_FOLLOW
               ? HOB_OK
               : hold_arguments(recording, call);
}

/* ---- memory of the capture ---- */

static void end_loan(void *owner)
{
    hob__tensor_unref(owner);
}

hob_tensor *hob__recording_lend(hob_device *device, hob_tensor *owner,
                                int may_write)
{
    struct hob_meta meta = hob__tensor_meta(owner);
    hob_tensor *tensor = hob__tensor_blank(device, &meta);

    if (!tensor || !owner->view.storage)
        return tensor;
    hob__tensor_ref(owner);
    /* Replays find other elements there. */
    owner->view.storage->range = HOB__RANGE_UNKNOWN;
    hob__tensor_wrap(tensor, owner->view.data, owner->view.storage->bytes,
                     HOB__STORAGE_RECORDED |
                         (may_write ? HOB__STORAGE_LENT : 0u),
                     end_loan, owner);
    return tensor;
}
