/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_kinds.c - the tensors of captures, and kinds of inputs.
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

/* ---- kinds of inputs ---- */

void hob__kind_drop_recording(const hob_capture *capture,
                              struct hob__kind *kind)
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

void hob__kind_free(const hob_capture *capture, struct hob__kind *kind)
{
    hob__kind_drop_recording(capture, kind);
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

struct hob__kind *hob__kind_find(hob_capture *capture, const hob_scope *scope,
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

void hob__kind_drop_oldest(hob_capture *capture)
{
    struct hob__kind **link = &capture->kinds;
    uint32_t count = 0;

    for (; *link && count < HOB_CAPTURE_KINDS; link = &(*link)->next)
        count++;
    while (*link) {
        struct hob__kind *old = *link;

        *link = old->next;
        hob__kind_free(capture, old);
    }
}
