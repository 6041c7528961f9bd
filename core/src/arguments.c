/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.c - the tensors of a call: errors, moves, kinds, dtypes, and the
 * device that they bring the call to.
 */
#include "boundary.h"

#include "error.h"

#include <inttypes.h>
#include <string.h>

/* ---- tensors ---- */

/* A short name of parameter INDEX's tensor, as in "rhs: f32[2,3] on flex". */
static const char *tensor_text(const hob_tensor *tensor, char *text,
                               size_t size)
{
    struct hob_meta meta = hob__tensor_meta(tensor);

    return hob__meta_text(&meta, text, size);
}

static hob_status mixed_devices(struct hob_call *call, uint32_t index,
                                const hob_tensor *tensor)
{
    const struct hob__signature *signature = &call->core->op->signature;
    const hob_device *a = call->device;
    const hob_device *b = tensor->device;
    const char *first = signature->params[call->core->device_param].name;
    const char *second = signature->params[index].name;

    if (a->runtime != b->runtime)
        return hob__call_fail(call, HOB_ERR_DEVICE,
                              "arguments %s and %s belong to two runtimes: "
                              "read one and make it again in the other",
                              first, second);
    if (a->at[0] == b->at[0])
        return hob__call_fail(
            call, HOB_ERR_DEVICE,
            "argument %s is on %s and argument %s on %s: neither stack "
            "contains the other, layers with different options cannot be "
            "joined; bring one over with hob_to_device()",
            first, a->name, second, b->name);
    return hob__call_fail(call, HOB_ERR_DEVICE,
                          "argument %s is on %s and argument %s on %s: "
                          "nothing moves by itself; bring one over with "
                          "hob_to_device()",
                          first, a->name, second, b->name);
}

/* The first parameter of the kind of INDEX that is there before it. */
static uint32_t partner_of(const struct hob_call *call, uint32_t index)
{
    const struct hob__op *op = call->core->op;
    uint32_t other = op->partner[index];

    if (other == HOB__NO_PARTNER || call->args[other].tag != HOB_TAG_ABSENT)
        return other;
    for (uint32_t i = other + 1; i < index; i++)
        if ((call->args[i].tag == HOB_TAG_TENSOR ||
             call->args[i].tag == HOB_TAG_TENSORS) &&
            op->signature.params[i].mask == op->signature.params[index].mask)
            return i;
    return HOB__NO_PARTNER;
}

hob_status hob__check_dtype(struct hob_call *call, uint32_t index,
                            const hob_tensor *tensor)
{
    const struct hob__op *op = call->core->op;
    const struct hob__param *param = &op->signature.params[index];
    const hob_tensor *partner;
    uint32_t other = partner_of(call, index);
    char text[HOB__META_TEXT];
    char other_text[HOB__META_TEXT];

    if (!(param->mask & HOB_DTYPE_BIT(tensor->view.dtype))) {
        if (tensor->view.dtype == HOB_DTYPE_QUANT) {
            call->core->quantized = 1; /* it will be dequantized */
            return HOB_OK;
        }
        return hob__call_fail(
            call, HOB_ERR_DTYPE, "argument %s is %s, it must be %s: use %s",
            param->name, tensor_text(tensor, text, sizeof(text)), param->kind,
            param->mask == HOB_DTYPE_BIT(HOB_DTYPE_QUANT)
                ? "hob_quantize_dynamic()"
                : "hob_cast()");
    }
    if (other == HOB__NO_PARTNER || call->core->quantized)
        return HOB_OK;
    partner = call->args[other].tag == HOB_TAG_TENSORS
                  ? call->args[other].u.tensors[0]
                  : call->args[other].u.tensor;
    if (partner->view.dtype == tensor->view.dtype)
        return HOB_OK;
    return hob__call_fail(
        call, HOB_ERR_DTYPE,
        "argument %s is %s and argument %s is %s: there is no implicit "
        "promotion; cast one with hob_cast(scope, %s, HOB_DTYPE_...)",
        op->signature.params[other].name,
        tensor_text(partner, other_text, sizeof(other_text)), param->name,
        tensor_text(tensor, text, sizeof(text)), param->name);
}

/* An argument that carries a failure: the call ends with the same one. */
static hob_status dead_tensor(struct hob_call *call, const char *name,
                              hob_tensor *tensor)
{
    hob_error why = HOB_ERROR_INIT;
    hob_status status;

    if (tensor->flags & HOB__TENSOR_ERROR) {
        call->core->cause = tensor->failure;
        return tensor->failure ? tensor->failure->status : HOB_ERR_MEMORY;
    }
    status = hob__tensor_check(tensor, &why);
    hob__call_fail(call, status, "argument %s cannot be used: %s", name,
                   hob__error_text(&why));
    hob_error_release(&why);
    return status;
}

static hob_status see_tensor(struct hob_call *call, uint32_t index,
                             hob_tensor *tensor)
{
    hob_device *joined;

    if (tensor->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED))
        return dead_tensor(call, call->core->op->signature.params[index].name,
                           tensor);
    if (!call->device) {
        call->device = tensor->device;
        call->core->device_param = (uint8_t)index;
    } else if (call->device != tensor->device) {
        joined = hob__device_join(call->device, tensor->device);
        if (!joined)
            return mixed_devices(call, index, tensor);
        if (call->device != joined)
            call->core->device_param = (uint8_t)index;
        call->device = joined;
    }
    return hob__check_dtype(call, index, tensor);
}

hob_status hob__see_tensors(struct hob_call *call)
{
    hob_status status = HOB_OK;
    uint32_t any_last_use = 0;
    uint32_t levels = 0;

    for (uint32_t i = 0; i < call->arg_count && !status; i++) {
        const hob_value *value = &call->args[i];

        if (value->tag == HOB_TAG_TENSOR) {
            any_last_use |= (value->flags & HOB_VALUE_MOVE) |
                            (value->u.tensor->flags & HOB__TENSOR_LAST_USE);
            levels |= hob__tensor_levels(value->u.tensor);
            status = see_tensor(call, i, value->u.tensor);
        } else if (value->tag == HOB_TAG_TENSORS) {
            for (uint32_t k = 0; k < value->count && !status; k++) {
                if (!value->u.tensors[k])
                    status = hob__call_fail(
                        call, HOB_ERR_ARGUMENT,
                        "item %" PRIu32 " of argument %s is NULL", k,
                        call->core->op->signature.params[i].name);
                else
                    status = see_tensor(call, i, value->u.tensors[k]);
                if (value->u.tensors[k]) {
                    any_last_use |=
                        value->u.tensors[k]->flags & HOB__TENSOR_LAST_USE;
                    levels |= hob__tensor_levels(value->u.tensors[k]);
                }
                /* Items share one dtype. */
                if (!status && k && !call->core->quantized &&
                    value->u.tensors[k]->view.dtype !=
                        value->u.tensors[0]->view.dtype)
                    status = hob__call_fail(
                        call, HOB_ERR_DTYPE,
                        "item %" PRIu32 " of argument %s is %s, item 0 is "
                        "%s: cast one with hob_cast()",
                        k, call->core->op->signature.params[i].name,
                        hob_dtype_name(value->u.tensors[k]->view.dtype),
                        hob_dtype_name(value->u.tensors[0]->view.dtype));
            }
        }
    }
    call->core->levels = levels;
    /* After a failure there may be moves among what was not looked at. */
    if (any_last_use || status)
        hob__settle_moves(call);
    return status;
}

/* ---- the device of a call without tensors ---- */

hob_status hob__place(struct hob_call *call)
{
    const struct hob__op *op = call->core->op;
    const struct hob__manifest_op *manifest = op->manifest;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (call->args[i].tag != HOB_TAG_DEVICE)
            continue;
        call->device = call->args[i].u.device;
        if (call->device->runtime != call->core->runtime)
            return hob__call_fail(call, HOB_ERR_DEVICE,
                                  "device %s belongs to another runtime",
                                  call->device->name);
        return HOB_OK;
    }
    if (manifest && manifest->selector_count == 1 &&
        strcmp(manifest->selectors[0].name, "*")) {
        hob_error why = HOB_ERROR_INIT;
        hob_status status =
            hob_device_open(call->core->runtime, manifest->selectors[0].name,
                            &call->device, &why);

        if (status)
            hob__call_fail(call, status, "%s", hob__error_text(&why));
        hob_error_release(&why);
        if (!status) /* it lives as long as the runtime */
            hob_device_unref(call->device);
        return status;
    }
    return hob__call_fail(call, HOB_ERR_ARGUMENT,
                          "no tensor input to select a backend from: give it "
                          "a tensor or a device");
}
