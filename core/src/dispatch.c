/* SPDX-License-Identifier: Apache-2.0 */
#include "dispatch.h"

#include "error.h"
#include "lazy.h"
#include "runtime.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

hob_status hob__call_fail(struct hob_call *call, hob_status status,
                          const char *format, ...)
{
    va_list args;

    va_start(args, format);
    hob__error_setv(call->core->error, status, format, args);
    va_end(args);
    return status;
}

void hob__drop_rets(struct hob_call *call)
{
    for (uint32_t i = 0; i < call->ret_count; i++) {
        hob__tensor_unref(call->rets[i].u.tensor);
        call->rets[i].u.tensor = NULL;
    }
}

/* ---- bodies ---- */

/* The body made other metadata than was inferred: a bug in the op. */
static hob_status check_metas(struct hob_call *call)
{
    char made_text[HOB__META_TEXT];
    char want_text[HOB__META_TEXT];

    if (call->flags & HOB_CALL_DYNAMIC)
        return HOB_OK;
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob_meta *want = &call->metas[i];
        struct hob_meta made;
        int differs;

        if (!call->rets[i].u.tensor)
            continue;
        made = hob__tensor_meta(call->rets[i].u.tensor);
        differs = made.dtype != want->dtype || made.rank != want->rank ||
                  made.scheme != want->scheme;

        for (uint32_t k = 0; k < made.rank && !differs; k++)
            differs = made.shape[k] != want->shape[k];
        if (differs)
            return hob__call_fail(
                call, HOB_ERR_PLUGIN,
                "its body made result %" PRIu32 " as %s, inferred was %s: "
                "a bug of whoever declares the op",
                i, hob__meta_text(&made, made_text, sizeof(made_text)),
                hob__meta_text(want, want_text, sizeof(want_text)));
    }
    return HOB_OK;
}

static hob_status body_failed(struct hob_call *call, const hob_scope *scope,
                              hob_status status)
{
    hob_error why = HOB_ERROR_INIT;
    hob_status first = hob_scope_error(scope, &why);

    if (first)
        status = hob__call_fail(call, first, "in its body, %s",
                                hob__error_text(&why));
    else
        hob__call_fail(call, status, "its body failed without a message");
    hob_error_release(&why);
    return status;
}

/* What a body returns as result INDEX must be alive and of the call's stack. */
static hob_status check_made(struct hob_call *call, uint32_t index,
                             const hob_tensor *tensor)
{
    hob_error why = HOB_ERROR_INIT;
    hob_status status = hob__tensor_check(tensor, &why);

    if (status)
        status =
            hob__call_fail(call, HOB_ERR_PLUGIN,
                           "its body's result %" PRIu32 " cannot be used: %s",
                           index, hob__error_text(&why));
    else if (hob__device_join(call->device, tensor->device) != call->device)
        status = hob__call_fail(
            call, HOB_ERR_PLUGIN,
            "its body made result %" PRIu32 " on %s, the call is on %s", index,
            tensor->device->name, call->device->name);
    hob_error_release(&why);
    return status;
}

/* Whether argument VALUE is TENSOR, or has it in its list. */
static int holds(const hob_value *value, const hob_tensor *tensor)
{
    if (value->tag == HOB_TAG_TENSOR)
        return value->u.tensor == tensor;
    for (uint32_t i = 0; value->tag == HOB_TAG_TENSORS && i < value->count; i++)
        if (value->u.tensors[i] == tensor)
            return 1;
    return 0;
}

/* Results of a body belong to its scope: take them over as the call's. A
 * body may return an argument as it is, which gets a handle of its own. */
static hob_status take_results(struct hob_call *call, hob_tensor **made)
{
    for (uint32_t i = 0; i < call->ret_count; i++) {
        hob_tensor *tensor = made[i];
        int is_argument = 0;
        hob_status status;

        if (!tensor) /* absent, as inferred */
            continue;
        status = check_made(call, i, tensor);
        if (status)
            return status;
        for (uint32_t k = 0; k < call->arg_count; k++)
            is_argument |= holds(&call->args[k], tensor);
        if (is_argument || tensor->device != call->device) {
            int32_t levels = tensor->device->depth;

            tensor = hob__tensor_share(tensor, call->device, levels);
            if (!tensor)
                return hob__call_fail(call, HOB_ERR_MEMORY,
                                      "no memory for a tensor handle");
        } else {
            hob__tensor_ref(tensor);
        }
        call->rets[i].u.tensor = tensor;
    }
    return HOB_OK;
}

/* Hold or let go what CALL only borrows, so that a body's hob_move() of an
 * argument takes nothing that its caller has not given. */
static void hold_borrowed(const struct hob_call *call, int hold)
{
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];
        hob_tensor *const *tensors =
            value->tag == HOB_TAG_TENSORS ? value->u.tensors : &value->u.tensor;
        uint32_t count = value->tag == HOB_TAG_TENSORS ? value->count : 1;

        if ((value->tag != HOB_TAG_TENSOR && value->tag != HOB_TAG_TENSORS) ||
            (value->flags & HOB_VALUE_MOVE))
            continue;
        for (uint32_t k = 0; k < count; k++)
            if (hold)
                hob__tensor_ref(tensors[k]);
            else
                hob__tensor_unref(tensors[k]);
    }
}

hob_status hob__run_body(struct hob_call *call, hob_body_fn body, int32_t level)
{
    struct hob_scope_frame frame;
    hob_scope *scope = hob__scope_enter(call->scope, &frame, level);
    hob_tensor *few[HOB_MAX_RESULTS] = {NULL};
    hob_tensor **made = few;
    hob_status status;

    hold_borrowed(call, 1);
    if (call->ret_count > HOB_MAX_RESULTS) { /* a list */
        made = calloc(call->ret_count, sizeof(hob_tensor *));
        if (!made) {
            status = hob__call_fail(call, HOB_ERR_MEMORY,
                                    "no memory for a list of %u results",
                                    (unsigned)call->ret_count);
            goto out;
        }
    }
    status = body(scope, call, made);
    if (status || scope->failure) {
        status = body_failed(call, scope, status);
        goto out;
    }
    for (uint32_t i = 0; i < call->ret_count; i++)
        if (!made[i] != !hob__is_due(call, i)) {
            status =
                hob__call_fail(call, HOB_ERR_PLUGIN,
                               made[i] ? "its body returned result %" PRIu32
                                         ", which is absent by its inference"
                                       : "its body returned no result %" PRIu32,
                               i);
            goto out;
        }
    status = take_results(call, made);
    if (!status)
        status = check_metas(call);
out:
    if (status)
        hob__drop_rets(call);
    hob__scope_leave(scope);
    hold_borrowed(call, 0);
    if (made != few)
        free(made);
    return status;
}

/* ---- the walk ---- */

/* The levels of which a tensor of CALL may carry a state word, as bits. */
static uint32_t levels_of(const struct hob_call *call)
{
    uint32_t levels = 0;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];

        if (value->tag == HOB_TAG_TENSOR)
            levels |= hob__tensor_levels(value->u.tensor);
        else if (value->tag == HOB_TAG_TENSORS)
            for (uint32_t k = 0; k < value->count; k++)
                levels |= hob__tensor_levels(value->u.tensors[k]);
    }
    return levels;
}

/* The layer of CALL's level may have put other arguments in. */
static void see_again(struct hob_call *call)
{
    if (call->level <= 1) /* there are no layers below */
        return;
    if (!hob__is_as_given(call))
        call->core->kind = 0;
    call->core->levels = levels_of(call);
}

hob_status hob__walk_below(struct hob_call *call)
{
    hob_status status = HOB_OK;

    if (call->device->at[call->level]->decorator->settle)
        status = hob__settle_arguments(call, call->level - 1);
    see_again(call);
    return status ? status : hob__walk(call, call->level - 1);
}

/* A layer has something to do for CALL but no rule for it. */
static hob_status no_rule(struct hob_call *call, const hob_device *layer,
                          const struct hob__route *route)
{
    if (route->body)
        return hob__run_body(call, route->body, call->level);
    if (layer->unlisted == HOB__UNLISTED_PASS ||
        layer->unlisted == HOB__UNLISTED_BARRIER)
        return hob__walk_below(call);
    return hob__call_fail(
        call, HOB_ERR_UNSUPPORTED,
        "%s on %s has no rule for it, and the op has no body%s that it could "
        "use; supply one in an extension%s",
        layer->selector, call->device->name,
        call->core->op->is_extension ? " listed for this layer" : "",
        !strcmp(layer->selector, "autodiff")
            ? ", or call it on hob_detach()ed tensors"
            : "");
}

/* LAYER says that it has handled CALL. */
static inline hob_status check_handled(struct hob_call *call,
                                       const hob_device *layer)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        if (!call->rets[i].u.tensor && hob__is_due(call, i))
            return hob__call_fail(call, HOB_ERR_PLUGIN,
                                  "%s handled it but set no result %" PRIu32
                                  ": a bug of its author",
                                  layer->selector, i);
    return HOB_OK;
}

/* The first level from LEVEL down whose layer may have something to do for
 * CALL; 0 is the base. An idle layer costs no more than this. An extension may
 * have a function of its own for any layer, so its ops pass none by. */
static inline int32_t busy_level(const struct hob_call *call, int32_t level)
{
    if (call->core->op->is_extension)
        return level;
    while (level > 0 && call->device->at[level]->needs_state &&
           !(call->core->levels >> (level - 1) & 1))
        level--;
    return level;
}

hob_status hob__walk(struct hob_call *call, int32_t level)
{
    int32_t entered = call->level;
    hob_status status = HOB_OK;

    for (level = busy_level(call, level); level > 0;
         level = busy_level(call, level - 1)) {
        hob_device *layer = call->device->at[level];
        const struct hob__route *route = hob__route_get(layer, call->core->op);
        int32_t verdict;

        call->level = level;
        call->core->served = 0; /* it may put other tensors in */
        if (route->status) {
            status = hob__call_fail(call, route->status, "%s", route->message);
            goto out;
        }
        if (route->impl && route->impl->layer) {
            status = route->impl->layer(route->entry_instance, call);
            if (!status)
                status = check_handled(call, layer);
            goto out;
        }
        verdict =
            layer->decorator->call(layer->instance, call, route->impl, &status);
        if (verdict == HOB_LAYER_DONE) {
            if (!status)
                status = check_handled(call, layer);
            goto out;
        }
        if (verdict != HOB_LAYER_PASS) {
            status = no_rule(call, layer, route);
            goto out;
        }
        if (layer->decorator->settle)
            status = hob__settle_arguments(call, level - 1);
        if (status)
            goto out;
        see_again(call);
    }
    call->level = 0;
    status = hob__base(call);
out:
    if (status)
        hob__drop_rets(call);
    call->level = entered;
    return status;
}
