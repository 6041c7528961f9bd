/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op_support.c - who computes an op, and how: for people, not for calls.
 */
#include "error.h"
#include "runtime.h"
#include "text.h"

#include <hob/runtime.h>

#include <stdlib.h>
#include <string.h>

/* Whether SELECTOR, of an extension, means the plugin of CANDIDATE. */
static int means(const struct hob__candidate *candidate, const char *selector)
{
    const struct hob__manifest *manifest = candidate->manifest;

    if (!strcmp(selector, "*") ||
        !strcmp(selector, hob__manifest_selector_name(manifest)))
        return 1;
    return manifest->kind == HOB__KIND_BACKEND && manifest->backend.family &&
           !strcmp(selector, manifest->backend.family);
}

/* Built-in ops list everything. */
static int is_listed(const hob_runtime *runtime, const struct hob__op *op,
                     const struct hob__candidate *candidate)
{
    if (!op->manifest)
        return 1;
    for (uint32_t i = 0; i < op->manifest->selector_count; i++)
        if (means(candidate, op->manifest->selectors[i].name) &&
            hob__loader_condition(runtime->loader, op->candidate,
                                  &op->manifest->selectors[i]))
            return 1;
    return 0;
}

/* What TABLE, which may be NULL, has for CANDIDATE; NULL if nothing. */
static const struct hob_op_impl *
find_impl(const struct hob_extension_op *table,
          const struct hob__candidate *candidate)
{
    const int is_backend = candidate->manifest->kind == HOB__KIND_BACKEND;

    for (uint32_t i = 0; table && i < table->impl_count; i++) {
        const struct hob_op_impl *impl = &table->impls[i];

        if (means(candidate, impl->selector) &&
            (is_backend ? impl->entry != NULL : impl->backward || impl->layer))
            return impl;
    }
    return NULL;
}

/* What extension OTHER brings for OP, which somebody else declares. */
static const struct hob_op_impl *
find_foreign(hob_runtime *runtime, const struct hob__op *op,
             const struct hob__candidate *other,
             const struct hob__candidate *candidate)
{
    const struct hob__manifest *manifest = other->manifest;
    const struct hob__instance *instance = NULL;
    const struct hob_extension *extension;
    uint16_t known;
    const struct hob_op_impl *impl;
    uint32_t i = 0;

    while (i < manifest->implements_count &&
           (strcmp(manifest->implements[i].op, op->name) != 0 ||
            !means(candidate, manifest->implements[i].selector)))
        i++;
    if (i == manifest->implements_count ||
        hob__runtime_instance(runtime, other, &instance, NULL))
        return NULL;
    extension = &instance->plugin->extension;
    impl = find_impl(hob__find_table(extension->implements,
                                     extension->implements_count, op->name),
                     candidate);
    return impl && (!impl->entry ||
                    hob__op_fits(runtime, op, manifest->id,
                                 impl->entry->signature, &known))
               ? impl
               : NULL;
}

/* What any extension has of OP for CANDIDATE, the op's own first. */
static const struct hob_op_impl *
find_any(hob_runtime *runtime, const struct hob__op *op,
         const struct hob__candidate *candidate)
{
    const struct hob_op_impl *impl =
        is_listed(runtime, op, candidate)
            ? find_impl(atomic_load(&op->table), candidate)
            : NULL;

    for (uint32_t i = 0; i < hob__loader_count(runtime->loader) && !impl; i++) {
        const struct hob__candidate *other =
            hob__loader_get(runtime->loader, i);

        if (other->manifest && hob__candidate_usable(other))
            impl = find_foreign(runtime, op, other, candidate);
    }
    return impl;
}

/* Which of several is called, route.c decides; to tell that there is one, any
 * will do. */
static const struct hob_entry *find_entry(hob_runtime *runtime,
                                          const struct hob__op *op,
                                          const struct hob__candidate *c,
                                          const struct hob__plugin *plugin)
{
    const struct hob_op_impl *impl;

    for (uint32_t i = 0; i < plugin->backend.entry_count; i++)
        if (!strcmp(plugin->backend.entries[i].op, op->name))
            return &plugin->backend.entries[i];
    impl = find_any(runtime, op, c);
    return impl ? impl->entry : NULL;
}

static int is_dynamic(const struct hob__op *op)
{
    return (op->flags & HOB__OP_DYNAMIC) != 0;
}

static int has_body(const struct hob__op *op)
{
    return op->manifest ? op->manifest->has_body : op->decl->body != NULL;
}

/* The dtypes of the first tensor, or of all that the signature allows. */
static void put_dtypes(struct hob__text *out, const struct hob__op *op,
                       const struct hob_entry *entry)
{
    uint32_t mask = 0;

    for (uint32_t i = 0; !mask && i < op->signature.param_count; i++)
        mask = op->signature.params[i].mask;
    if (entry->dtype_count)
        mask = entry->dtypes[0];
    for (uint32_t d = HOB_DTYPE_F64; d < HOB_DTYPE_COUNT_; d++)
        if (mask & HOB_DTYPE_BIT(d))
            hob__text_printf(out, "%s%s", out->length ? " " : "",
                             hob_dtype_name(d));
}

/* The kernel that comes before those of others: the backend's, or the one of
 * the op's own extension. */
static const struct hob_entry *own_entry(const struct hob__op *op,
                                         const struct hob__candidate *candidate,
                                         const struct hob__plugin *plugin)
{
    const struct hob_op_impl *impl =
        find_impl(atomic_load(&op->table), candidate);

    for (uint32_t i = 0; i < plugin->backend.entry_count; i++)
        if (!strcmp(plugin->backend.entries[i].op, op->name))
            return &plugin->backend.entries[i];
    return impl ? impl->entry : NULL;
}

/* Whether the kernel that CANDIDATE brings for OP of BACKEND is used: "" if so,
 * else why not. The rules are those of route.c. */
static const char *why_unused(const struct hob__op *op,
                              const struct hob__candidate *candidate,
                              const struct hob__manifest_implements *one,
                              const struct hob__candidate *backend,
                              const struct hob_entry *own)
{
    int exact =
        !strcmp(one->selector, hob__manifest_selector_name(backend->manifest));
    const char *reason = "";
    char why[160];

    if (one->signature && !hob__signature_serves(&op->signature, one->signature,
                                                 why, sizeof(why)))
        reason = ", not used: its signature differs";
    else if (own && (!exact || candidate->priority <= backend->priority))
        reason = ", not used: the backend's own comes first, unless "
                 "\"priority\" says otherwise";
    return reason;
}

/* Tell of the kernels for OP on BACKEND that other extensions bring. */
static int
visit_others(hob_runtime *runtime, const struct hob__op *op,
             const struct hob__candidate *backend, const struct hob_entry *own,
             int (*visit)(void *context, const struct hob_op_support *support),
             void *context)
{
    int stop = 0;

    for (uint32_t i = 0; i < hob__loader_count(runtime->loader) && !stop; i++) {
        const struct hob__candidate *one = hob__loader_get(runtime->loader, i);
        const struct hob__manifest *manifest = one->manifest;

        if (!manifest || !hob__candidate_usable(one))
            continue;
        for (uint32_t k = 0; k < manifest->implements_count && !stop; k++) {
            const struct hob__manifest_implements *item =
                &manifest->implements[k];
            struct hob_op_support support = {
                hob__manifest_selector_name(backend->manifest), NULL, "", 1};
            struct hob__text how = HOB__TEXT_INIT;

            if (strcmp(item->op, op->name) || !means(backend, item->selector))
                continue;
            hob__text_printf(&how, "kernel of %s%s", manifest->id,
                             why_unused(op, one, item, backend, own));
            support.how = how.data ? how.data : "kernel of another plugin";
            stop = visit(context, &support);
            hob__text_release(&how);
        }
    }
    return stop;
}

static const char *on_backend(hob_runtime *runtime, const struct hob__op *op,
                              const struct hob__candidate *candidate,
                              const struct hob__plugin *plugin,
                              struct hob__text *dtypes)
{
    const struct hob_entry *entry;

    if (op->decl->view)
        return "view";
    entry = find_entry(runtime, op, candidate, plugin);
    if (entry)
        put_dtypes(dtypes, op, entry);
    if (entry)
        return "kernel";
    if (!is_listed(runtime, op, candidate))
        return "not listed";
    return has_body(op) ? "body" : "none";
}

static const char *on_decorator(hob_runtime *runtime, const struct hob__op *op,
                                const struct hob__candidate *candidate,
                                const struct hob__instance *instance)
{
    const struct hob_decorator *decorator = &instance->plugin->decorator;

    if (find_any(runtime, op, candidate) ||
        (decorator->has_rule &&
         decorator->has_rule(instance->instance, op->id)))
        return "rule";
    if (candidate->manifest->decorator.unlisted == HOB__UNLISTED_PASS)
        return "passes on";
    if (!is_listed(runtime, op, candidate))
        return "not listed";
    if (decorator->settle)
        return is_dynamic(op) ? "runs at once" : "puts off";
    return has_body(op) ? "body" : "none";
}

static int visit_candidate(hob_runtime *runtime, const struct hob__op *op,
                           const struct hob__candidate *candidate,
                           int (*visit)(void *context,
                                        const struct hob_op_support *support),
                           void *context)
{
    const struct hob__instance *instance = NULL;
    struct hob__text dtypes = HOB__TEXT_INIT;
    struct hob_op_support support;
    int stop;

    memset(&support, 0, sizeof(support));
    support.selector = hob__manifest_selector_name(candidate->manifest);
    support.is_backend = candidate->manifest->kind == HOB__KIND_BACKEND;
    if (hob__runtime_instance(runtime, candidate, &instance, NULL))
        support.how = "cannot be opened";
    else if (support.is_backend)
        support.how =
            on_backend(runtime, op, candidate, instance->plugin, &dtypes);
    else
        support.how = on_decorator(runtime, op, candidate, instance);
    support.dtypes = dtypes.data ? dtypes.data : "";
    stop = visit(context, &support);
    hob__text_release(&dtypes);
    if (!stop && support.is_backend && instance)
        stop = visit_others(runtime, op, candidate,
                            own_entry(op, candidate, instance->plugin), visit,
                            context);
    return stop;
}

hob_status hob_runtime_op_support(
    hob_runtime *runtime, uint32_t id,
    int (*visit)(void *context, const struct hob_op_support *support),
    void *context, hob_error *error)
{
    const struct hob__registry *registry = &runtime->registry;
    hob_status status;

    if (id >= registry->op_count || !registry->ops[id].decl)
        return hob_error_set(error, HOB_ERR_NOT_FOUND,
                             "there is no op with the number %u", (unsigned)id);
    status = hob__op_load(runtime, &registry->ops[id], error);
    for (uint32_t i = 0; i < hob__loader_count(runtime->loader) && !status;
         i++) {
        const struct hob__candidate *candidate =
            hob__loader_get(runtime->loader, i);

        if (hob__candidate_usable(candidate) && candidate->manifest &&
            candidate->manifest->kind != HOB__KIND_EXTENSION &&
            visit_candidate(runtime, &registry->ops[id], candidate, visit,
                            context))
            break;
    }
    return status;
}
