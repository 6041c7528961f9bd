/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diagnose.c - the panic of an op that no listed backend supplies.
 *
 * It names the op and its extension, the routing tensor, each selector that
 * the op lists and why it does not serve here, and what to do.
 */
#include "dispatch.h"

#include "error.h"
#include "runtime.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

/* The tensor that chose the base: the first Float one, else the first. */
static const hob_tensor *routing_tensor(const struct hob_call *call,
                                        uint32_t *out_param)
{
    const hob_tensor *first = NULL;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];
        const hob_tensor *tensor =
            value->tag == HOB_TAG_TENSOR    ? value->u.tensor
            : value->tag == HOB_TAG_TENSORS ? value->u.tensors[0]
                                            : NULL;

        if (!tensor)
            continue;
        if (!first) {
            first = tensor;
            *out_param = i;
        }
        if (HOB_MASK_FLOAT & HOB_DTYPE_BIT(tensor->view.dtype)) {
            *out_param = i;
            return tensor;
        }
    }
    return first;
}

static void tell_routing(const struct hob_call *call, struct hob__text *text)
{
    char meta_text[HOB__META_TEXT];
    uint32_t param = 0;
    const hob_tensor *tensor = routing_tensor(call, &param);
    struct hob_meta meta;

    if (!tensor) {
        hob__text_printf(text, "  device    %s\n", call->device->name);
        return;
    }
    meta = hob__tensor_meta(tensor);
    hob__text_printf(text, "  routed by %s: %s on %s\n",
                     call->core->op->signature.params[param].name,
                     hob__meta_text(&meta, meta_text, sizeof(meta_text)),
                     call->device->name);
}

/* Whether SELECTOR names another runtime of BASE's family, as cube-cuda does
 * for cube-vulkan; *OUT_RUNTIME is which. */
static int is_other_runtime(struct hob__loader *loader, const hob_device *base,
                            const char *selector, const char **out_runtime)
{
    const struct hob__candidate *usable =
        hob__loader_find(loader, HOB__KIND_BACKEND, selector);
    const struct hob__candidate *candidate =
        usable ? usable : hob__loader_find_id(loader, selector);
    const struct hob__manifest_backend *other =
        candidate && candidate->manifest &&
                candidate->manifest->kind == HOB__KIND_BACKEND
            ? &candidate->manifest->backend
            : NULL;

    if (!other || !other->runtime || !other->family || !base->family ||
        strcmp(other->family, base->family) != 0 ||
        !base->plugin->manifest->backend.runtime)
        return 0;
    *out_runtime = other->runtime;
    return strcmp(other->runtime, base->plugin->manifest->backend.runtime) != 0;
}

/* Whether SELECTOR is the family of a usable backend. */
static int is_family(const struct hob__loader *loader, const char *selector)
{
    for (uint32_t i = 0; i < hob__loader_count(loader); i++) {
        const struct hob__candidate *candidate = hob__loader_get(loader, i);
        const struct hob__manifest *manifest = candidate->manifest;

        if (manifest && manifest->kind == HOB__KIND_BACKEND &&
            manifest->backend.family && hob__candidate_usable(candidate) &&
            !strcmp(manifest->backend.family, selector))
            return 1;
    }
    return 0;
}

/* Why SELECTOR does not serve the base of CALL. */
static void tell_selector(const struct hob_call *call,
                          const struct hob__manifest_selector *selector,
                          struct hob__text *text)
{
    struct hob__loader *loader = call->core->runtime->loader;
    const hob_device *base = call->device->at[0];
    const struct hob__op *op = call->core->op;
    const struct hob__candidate *candidate;
    const char *runtime = NULL;

    hob__text_printf(text, "  lists     %s: ", selector->name);
    if (!hob__loader_condition(loader, op->candidate, selector)) {
        hob__text_printf(text, "its condition %s:%s is false\n",
                         selector->when == HOB__WHEN_FEATURE ? "feature"
                                                             : "plugin",
                         selector->when_name ? selector->when_name : "");
        return;
    }
    if (hob__loader_find(loader, HOB__KIND_DECORATOR, selector->name)) {
        hob__text_puts(text, "a decorator, which computes nothing itself\n");
        return;
    }
    if (is_other_runtime(loader, base, selector->name, &runtime)) {
        hob__text_printf(text,
                         "a kernel for the %s runtime of %s, the tensors are "
                         "on its %s runtime\n",
                         runtime, base->family,
                         base->plugin->manifest->backend.runtime);
        return;
    }
    candidate = hob__loader_find(loader, HOB__KIND_BACKEND, selector->name);
    if (candidate) {
        hob__text_printf(text, "another backend, the tensors are on %s\n",
                         base->selector);
        return;
    }
    if (is_family(loader, selector->name)) {
        hob__text_printf(text, "a family of backends, the tensors are on %s\n",
                         base->selector);
        return;
    }
    candidate = hob__loader_find_id(loader, selector->name);
    if (candidate) {
        const struct hob__record *record = hob__candidate_record(candidate);

        hob__text_printf(text, "%s (%s%s%s)\n", hob__state_name(record->state),
                         hob__reason_name(record->reason),
                         record->detail ? ": " : "",
                         record->detail ? record->detail : "");
        return;
    }
    hob__text_puts(text, "not installed\n");
}

/* What would help: the condition that keeps the op from this very backend, or
 * another backend. */
static void tell_to_do(const struct hob_call *call, struct hob__text *text)
{
    const struct hob__op *op = call->core->op;
    const hob_device *device = call->device->at[0];
    const char *base = device->selector, *runtime = NULL;
    int is_other = 0;

    for (uint32_t i = 0; i < op->manifest->selector_count; i++) {
        const struct hob__manifest_selector *selector =
            &op->manifest->selectors[i];

        is_other |= is_other_runtime(call->core->runtime->loader, device,
                                     selector->name, &runtime);
        if (strcmp(selector->name, base) != 0 || !selector->when_name)
            continue;
        if (selector->when == HOB__WHEN_FEATURE)
            hob__text_printf(text,
                             "  to do     set the feature %s of plugin %s to "
                             "true in hob.json",
                             selector->when_name, op->candidate->manifest->id);
        else
            hob__text_printf(text, "  to do     install the plugin %s",
                             selector->when_name);
        return;
    }
    hob__text_printf(text,
                     "  to do     bring the tensors to a listed backend with "
                     "hob_to_device(), install one of them, or install an "
                     "extension that implements %s for %s",
                     op->name, base);
    if (is_other)
        hob__text_printf(text, " or, in portable code, for %s", device->family);
}

static void tell_extension(const struct hob_call *call, struct hob__text *text)
{
    const struct hob__op *op = call->core->op;
    const struct hob__manifest_op *manifest = op->manifest;

    hob__text_printf(text, "extension %s %s does not supply it for %s\n",
                     op->candidate->manifest->id,
                     op->candidate->manifest->version,
                     call->device->at[0]->selector);
    tell_routing(call, text);
    for (uint32_t i = 0; i < manifest->selector_count; i++)
        tell_selector(call, &manifest->selectors[i], text);
    tell_to_do(call, text);
}

static void tell_builtin(const struct hob_call *call, struct hob__text *text)
{
    const hob_device *base = call->device->at[0];

    hob__text_printf(text,
                     "%s supplies no kernel for it and the op has no default "
                     "body\n",
                     base->selector);
    tell_routing(call, text);
    hob__text_printf(text,
                     "  to do     use a backend that has it (hob ops %s), or "
                     "install an extension that implements it for %s",
                     call->op_name, base->selector);
}

hob_status hob__diagnose_unlisted(struct hob_call *call,
                                  const struct hob__route *route)
{
    struct hob__text text = HOB__TEXT_INIT;
    char *message;

    (void)route;
    if (call->core->op->is_extension)
        tell_extension(call, &text);
    else
        tell_builtin(call, &text);
    message = hob__text_take(&text);
    hob__call_fail(call, HOB_ERR_UNSUPPORTED, "%s",
                   message ? message : "no backend supplies it");
    free(message);
    return HOB_ERR_UNSUPPORTED;
}
