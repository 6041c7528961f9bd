/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lab.c - a runtime with one op on one device.
 *
 * A device keeps for each op how it runs there (its route); the lab exchanges
 * that for one without the kernel, or without the body, or for a probe after
 * which only infer has run.
 */
#include "check.h"

#include "error.h"
#include "plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void stay_silent(void *context, hob_status status, const char *op,
                        const char *message)
{
    (void)context;
    (void)status;
    (void)op;
    (void)message;
}

hob_status check_runtime_open(const struct check_child *child,
                              hob_runtime **out_runtime, hob_error *error)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    uint32_t count = child->options->path_count;
    const char **paths = calloc(count + 1, sizeof(*paths));
    hob_status status;

    *out_runtime = NULL;
    if (!paths)
        return hob_error_set(error, HOB_ERR_MEMORY, "out of memory");
    paths[0] = child->target->manifest;
    for (uint32_t i = 0; i < count; i++)
        paths[i + 1] = child->options->paths[i];
    options.policy = HOB_POLICY_REPORT;
    options.on_panic = stay_silent;
    options.plugin_paths = paths;
    options.plugin_path_count = count + 1;
    options.threads = 2;
    options.debug = 1; /* every tensor has a block of its own, so a fence */
    options.config = "{\"log\": \"off\"}";
    status = hob_runtime_open(&options, out_runtime, error);
    free(paths);
    return status;
}

/* ---- routes ---- */

static hob_status probe_execute(void *device, struct hob_call *call)
{
    struct hob_meta meta = {.dtype = HOB_DTYPE_F32};
    hob_status status = HOB_OK;

    (void)device;
    for (uint32_t i = 0;
         (call->flags & HOB_CALL_DYNAMIC) && i < call->ret_count && !status;
         i++)
        status = call->host->result(call, i, &meta);
    return status;
}

void check_force(struct check_lab *lab, enum check_force force)
{
    hob__route_put(lab->base, lab->op, &lab->forced[force]);
}

static void make_routes(struct check_lab *lab)
{
    for (uint32_t i = 0; i < CHECK_FORCE_COUNT_; i++) {
        lab->forced[i] = lab->route;
        memset(&lab->forced[i].kept, 0, sizeof(lab->forced[i].kept));
    }
    lab->forced[CHECK_BODY].entry = NULL;
    lab->forced[CHECK_KERNEL].body = NULL;
    lab->forced[CHECK_PROBE].entry = &lab->probe;
    lab->forced[CHECK_PROBE].body = NULL;
    lab->forced[CHECK_PROBE].params = lab->op->signature.param_count;
}

/* The kernel of the target for an op that somebody else declares. */
static void take_foreign(struct check_lab *lab, const char *selector)
{
    const struct hob__candidate *candidate =
        hob__loader_find_id(lab->runtime->loader, lab->child->target->id);
    const struct hob__instance *instance = NULL;
    const struct hob_extension *table;

    if (!candidate ||
        hob__runtime_instance(lab->runtime, candidate, &instance, NULL))
        return;
    table = &instance->plugin->extension;
    for (uint32_t i = 0; i < table->implements_count; i++) {
        const struct hob_extension_op *op = &table->implements[i];

        for (uint32_t k = 0;
             !strcmp(op->name, lab->op->name) && k < op->impl_count; k++)
            if (op->impls[k].entry &&
                (!strcmp(op->impls[k].selector, selector) ||
                 !strcmp(op->impls[k].selector, "*"))) {
                lab->route.entry = op->impls[k].entry;
                lab->route.entry_instance = instance->instance;
                (void)hob__op_fits(
                    lab->runtime, lab->op, lab->child->target->id,
                    op->impls[k].entry->signature, &lab->route.params);
                lab->route.consumes = op->consumes;
                lab->route.alias_count = op->alias_count;
                lab->route.aliases = op->aliases;
            }
    }
}

/* ---- life cycle ---- */

static hob_status open_base(struct check_lab *lab, const char *device,
                            hob_error *error)
{
    const struct check_op *op = lab->child->op;
    const struct hob__route *route;
    hob_status status =
        hob_device_open(lab->runtime, device, &lab->device, error);

    if (status)
        return status;
    lab->base = lab->device->at[0];
    lab->op = hob__registry_find(&lab->runtime->registry, op->name);
    if (!lab->op)
        return hob_error_set(error, HOB_ERR_NOT_FOUND, "no op %s", op->name);
    route = hob__route_get(lab->base, lab->op);
    if (route->status)
        return hob_error_set(error, route->status, "%s", route->message);
    lab->route = *route;
    if (op->is_foreign)
        take_foreign(lab, lab->base->selector);
    return HOB_OK;
}

static void watch_heap(struct check_lab *lab)
{
    const struct hob__candidate *candidate =
        hob__loader_find_id(lab->runtime->loader, lab->child->target->id);
    const struct hob__plugin *plugin =
        candidate ? hob__candidate_plugin(candidate) : NULL;

    if (plugin && plugin->handle)
        check_heap_install(lab->memory, plugin->handle);
}

hob_status check_lab_open(struct check_child *child, struct check_lab *lab,
                          const char *device)
{
    hob_error error = HOB_ERROR_INIT;
    hob_status status;

    memset(lab, 0, sizeof(*lab));
    lab->child = child;
    lab->hints = &child->op->hints;
    lab->memory = calloc(1, sizeof(*lab->memory));
    status = lab->memory ? check_runtime_open(child, &lab->runtime, &error)
                         : HOB_ERR_MEMORY;
    if (!status)
        status = open_base(lab, device, &error);
    if (status) {
        check_found(child, CHECK_LOAD, "%s cannot be run on %s: %s",
                    child->op->name, device, hob__error_text(&error));
        hob_error_release(&error);
        return status;
    }
    lab->probe.op = lab->op->name;
    lab->probe.signature = lab->op->flat;
    lab->probe.execute = probe_execute;
    check_memory_install(lab->memory, lab->base, &lab->backend, child->shared);
    watch_heap(lab);
    make_routes(lab);
    check_force(lab, CHECK_AS_ROUTED);
    return HOB_OK;
}

void check_lab_close(struct check_lab *lab)
{
    hob_error error = HOB_ERROR_INIT;

    for (uint32_t i = 0; i < CHECK_FORCE_COUNT_; i++)
        hob__prepared_clear(&lab->forced[i].kept);
    hob_device_unref(lab->device);
    if (lab->runtime && hob_runtime_close(lab->runtime, &error))
        check_found(lab->child, CHECK_LEAK, "%s", hob__error_text(&error));
    hob_error_release(&error);
    /* Kept: the replaced functions may still be called by what stays open. */
}

hob_device *check_lab_device(struct check_lab *lab, const char *device)
{
    hob_device *opened = NULL;
    hob_error error = HOB_ERROR_INIT;

    if (hob_device_open(lab->runtime, device, &opened, &error))
        check_note(lab->child, "%s: not checked on %s: %s", lab->op->name,
                   device, hob__error_text(&error));
    hob_error_release(&error);
    return opened;
}
