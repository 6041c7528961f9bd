/* SPDX-License-Identifier: Apache-2.0 */
/*
 * route.c - how an op runs at a layer: the precedence of DESIGN section 6.
 *
 * Of all kernels whose selector matches a base, the most specific selector
 * wins (the backend's own name before its family before "*"), then the
 * plugin's priority, then the backend's own entry or the declarer's. What
 * loses is logged. Nothing here is on a hot path: a device keeps its routes.
 */
#include "registry.h"

#include "error.h"
#include "runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How specific a selector is; 0 does not match. */
enum { MATCH_NONE, MATCH_ANY, MATCH_FAMILY, MATCH_EXACT };

static int match(const hob_device *layer, const char *selector)
{
    if (!strcmp(selector, layer->selector))
        return MATCH_EXACT;
    if (layer->family && !strcmp(selector, layer->family))
        return MATCH_FAMILY;
    return strcmp(selector, "*") ? MATCH_NONE : MATCH_ANY;
}

/* Whether extension op OP lists LAYER, with a condition that holds. */
static int lists(const hob_device *layer, const struct hob__op *op)
{
    for (uint32_t i = 0; i < op->manifest->selector_count; i++) {
        const struct hob__manifest_selector *selector =
            &op->manifest->selectors[i];

        if (match(layer, selector->name) &&
            hob__loader_condition(layer->runtime->loader, op->candidate,
                                  selector))
            return 1;
    }
    return 0;
}

/* ---- choosing ---- */

/* The best so far for one route. */
struct choice {
    const struct hob_entry *entry;
    const struct hob_op_impl *impl;
    const struct hob_extension_op *table; /* of an extension; else NULL */
    void *instance;
    const char *plugin;
    int match;
    int32_t priority;
    int is_home;     /* the backend itself, or the declarer of the op */
    uint16_t params; /* that the kernel knows */
};

static int is_better(const struct choice *a, const struct choice *b)
{
    if (a->match != b->match)
        return a->match > b->match;
    if (a->priority != b->priority)
        return a->priority > b->priority;
    return a->is_home > b->is_home;
}

static void consider(const hob_device *layer, const struct hob__op *op,
                     struct choice *best, const struct choice *other)
{
    const struct choice *loser = other;
    struct choice previous = *best;

    if (!best->plugin || is_better(other, best)) {
        *best = *other;
        loser = &previous;
    }
    if (loser->plugin)
        hob__log_write(hob__loader_log(layer->runtime->loader),
                       HOB__SEVERITY_DEBUG, "dispatch",
                       "SHADOWED: %s's %s for %s: %s's comes first",
                       loser->plugin, op->name, layer->selector, best->plugin);
}

int hob__op_fits(const hob_runtime *runtime, const struct hob__op *op,
                 const char *plugin, const char *signature,
                 uint16_t *out_params)
{
    struct hob__signature have;
    const char *message = NULL;
    char why[160];
    int column = 0;
    int fit = 0;

    *out_params = op->signature.param_count;
    if (!strcmp(signature, op->flat))
        return 1;
    if (hob__signature_parse(signature, &have, &column, &message)) {
        (void)snprintf(why, sizeof(why), "column %d: %s", column, message);
    } else {
        *out_params = have.param_count;
        fit = hob__signature_compatible(&op->signature, &have);
        if (!fit)
            hob__signature_difference(&op->signature, &have, why, sizeof(why));
        hob__signature_release(&have);
    }
    if (!fit)
        hob__log_write(hob__loader_log(runtime->loader), HOB__SEVERITY_ERROR,
                       "dispatch",
                       "SIGNATURE(%s): the entry of %s is for \"%s\", the op "
                       "is \"%s\" (%s): not used",
                       op->name, plugin, signature, op->flat, why);
    return fit;
}

static void consider_backend(hob_device *layer, const struct hob__op *op,
                             struct choice *best)
{
    const struct hob_backend *backend = layer->backend;
    const char *plugin = layer->plugin->manifest->id;

    for (uint32_t i = 0; i < backend->entry_count; i++) {
        const struct hob_entry *entry = &backend->entries[i];
        struct choice choice = {entry,
                                NULL,
                                NULL,
                                layer->instance,
                                plugin,
                                MATCH_EXACT,
                                layer->plugin->candidate->priority,
                                1,
                                0};

        if (!strcmp(entry->op, op->name) &&
            hob__op_fits(layer->runtime, op, plugin, entry->signature,
                         &choice.params))
            consider(layer, op, best, &choice);
    }
}

static void consider_impls(hob_device *layer, const struct hob__op *op,
                           const struct hob_extension_op *table,
                           const struct hob__instance *instance,
                           struct choice *best)
{
    const char *plugin = instance->plugin->manifest->id;
    int is_base = !layer->decorator;

    for (uint32_t i = 0; i < table->impl_count; i++) {
        const struct hob_op_impl *impl = &table->impls[i];
        struct choice choice = {impl->entry,
                                impl,
                                table,
                                instance->instance,
                                plugin,
                                match(layer, impl->selector),
                                instance->plugin->candidate->priority,
                                instance->plugin->candidate == op->candidate,
                                0};

        if (!choice.match || (is_base && !impl->entry) ||
            (!is_base && !impl->backward && !impl->layer))
            continue;
        if (!is_base || hob__op_fits(layer->runtime, op, plugin,
                                     impl->entry->signature, &choice.params))
            consider(layer, op, best, &choice);
    }
}

const struct hob_extension_op *
hob__find_table(const struct hob_extension_op *tables, uint32_t count,
                const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(tables[i].name, name))
            return &tables[i];
    return NULL;
}

/* Kernels that other extensions bring for OP ("implements"). One that cannot
 * be loaded has its record; the others still serve (P3). */
static void consider_others(hob_device *layer, const struct hob__op *op,
                            struct choice *best)
{
    hob_runtime *runtime = layer->runtime;

    for (uint32_t i = 0; i < hob__loader_count(runtime->loader); i++) {
        const struct hob__candidate *candidate =
            hob__loader_get(runtime->loader, i);
        const struct hob__manifest *manifest = candidate->manifest;
        const struct hob__instance *instance;
        const struct hob_extension_op *table;

        if (!manifest || !hob__candidate_usable(candidate))
            continue;
        for (uint32_t k = 0; k < manifest->implements_count; k++) {
            if (strcmp(manifest->implements[k].op, op->name) ||
                !match(layer, manifest->implements[k].selector))
                continue;
            if (hob__runtime_instance(runtime, candidate, &instance, NULL))
                break;
            table = hob__find_table(
                instance->plugin->extension.implements,
                instance->plugin->extension.implements_count, op->name);
            if (table)
                consider_impls(layer, op, table, instance, best);
            break;
        }
    }
}

/* ---- extension libraries ---- */

hob_status hob__op_load(hob_runtime *runtime, const struct hob__op *op,
                        hob_error *error)
{
    const struct hob__instance *instance = NULL;
    const struct hob_extension *extension;
    hob_status status;

    if (!op->candidate || atomic_load(&op->table))
        return HOB_OK;
    status = hob__runtime_instance(runtime, op->candidate, &instance, error);
    if (status)
        return status;
    /* The loader has checked that the table holds what the manifest says;
     * the registry's ops are const only for their readers. */
    extension = &instance->plugin->extension;
    atomic_store(
        &((struct hob__op *)(uintptr_t)op)->table,
        hob__find_table(extension->ops, extension->op_count, op->name));
    return HOB_OK;
}

/* ---- routes ---- */

static hob_body_fn body_at(const hob_device *layer, const struct hob__op *op,
                           const struct hob_extension_op *table)
{
    if (!op->is_extension)
        return op->decl->body;
    return table && lists(layer, op) ? table->body : NULL;
}

static void resolve(hob_device *layer, const struct hob__op *op,
                    struct hob__route *route)
{
    struct choice best;
    hob_error why = HOB_ERROR_INIT;
    const struct hob__instance *instance = NULL;
    const struct hob_extension_op *table;

    memset(&best, 0, sizeof(best));
    route->status = hob__op_load(layer->runtime, op, &why);
    if (!route->status && op->candidate)
        route->status = hob__runtime_instance(layer->runtime, op->candidate,
                                              &instance, &why);
    if (route->status) {
        route->message = strdup(hob__error_text(&why));
        goto out;
    }
    table = atomic_load(&op->table);
    if (!layer->decorator)
        consider_backend(layer, op, &best);
    if (table && lists(layer, op))
        consider_impls(layer, op, table, instance, &best);
    consider_others(layer, op, &best);
    route->entry = layer->decorator ? NULL : best.entry;
    route->impl = layer->decorator ? best.impl : NULL;
    route->entry_instance = best.instance;
    route->params = best.params;
    if (best.table) {
        route->consumes = best.table->consumes;
        route->aliases = best.table->aliases;
        route->alias_count = best.table->alias_count;
    }
    /* Who computes in host memory looks at the elements. */
    if (!layer->decorator &&
        !(layer->backend->flags & HOB_BACKEND_HOST_MEMORY))
        route->range = hob__range_rule(op->id);
    route->body = body_at(layer, op, table);
    route->fuse = op->is_extension && !lists(layer, op) ? HOB_FUSE_UNLISTED
                                                        : op->fuse;
out:
    hob_error_release(&why);
}

/* A failure that says nothing of the next attempt, as for the loader. */
static int may_pass(hob_status status)
{
    return status == HOB_ERR_MEMORY || status == HOB_ERR_REENTRANT ||
           status == HOB_ERR_FORKED;
}

struct hob__route *hob__route_find(hob_device *layer, const struct hob__op *op)
{
    struct hob__registry *registry = &layer->runtime->registry;
    struct hob__route *none = NULL;
    struct hob__route *route = calloc(1, sizeof(*route));

    if (!route)
        return &registry->no_memory;
    resolve(layer, op, route);
    if (route->status && !route->message) {
        free(route);
        return &registry->no_memory;
    }
    pthread_mutex_lock(&registry->lock);
    route->next = registry->routes;
    registry->routes = route;
    pthread_mutex_unlock(&registry->lock);
    if (may_pass(route->status))
        return route;
    /* Of two threads that worked it out the first one's counts. */
    if (!atomic_compare_exchange_strong(&layer->routes[op->id], &none, route))
        return none;
    return route;
}

void hob__route_put(hob_device *device, const struct hob__op *op,
                    struct hob__route *route)
{
    atomic_store(&device->routes[op->id], route);
    hob__known_forget(&device->runtime->known);
}
