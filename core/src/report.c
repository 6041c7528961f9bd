/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - what a runtime tells about plugins, devices and ops.
 */
#include "dispatch.h"
#include "error.h"
#include "runtime.h"
#include "text.h"

#include <hob/scope.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "0.1.0"
#endif

const char *hob_version(void)
{
    return PACKAGE_VERSION;
}

/* ---- plugins ---- */

void hob_runtime_report(hob_runtime *runtime,
                        int (*visit)(void *context,
                                     const struct hob_plugin_record *record),
                        void *context)
{
    uint32_t count = hob__loader_count(runtime->loader);
    int stop = 0;

    for (uint32_t i = 0; i < count && !stop; i++) {
        const struct hob__candidate *candidate =
            hob__loader_get(runtime->loader, i);
        const struct hob__record *from = hob__candidate_record(candidate);
        const struct hob__manifest *manifest = candidate->manifest;
        struct hob_plugin_record record;

        memset(&record, 0, sizeof(record));
        record.id = from->id;
        record.version = manifest ? manifest->version : NULL;
        record.kind = manifest ? hob__plugin_kind_name(manifest->kind) : NULL;
        record.manifest = from->path;
        record.manifest_real = from->real_path;
        record.library = from->library ? from->library : candidate->library;
        record.rule = hob__rule_name(from->rule);
        record.state = hob__state_name(from->state);
        record.reason = hob__reason_name(from->reason);
        record.severity =
            hob__severity_name(hob__reason_severity(from->reason));
        record.detail = from->detail;
        record.hint = from->hint;
        record.time_ns = from->time_ns;
        record.selector =
            manifest ? hob__manifest_selector_name(manifest) : NULL;
        stop = visit(context, &record);
    }
}

struct searched_visit {
    int (*visit)(void *context, const char *rule, const char *path,
                 const char *outcome);
    void *context;
};

static bool visit_searched(void *context, const struct hob__searched *searched)
{
    const struct searched_visit *to = context;
    char outcome[64];

    if (searched->reason == HOB__REASON_OK)
        snprintf(outcome, sizeof(outcome), "%" PRIu32 " found",
                 searched->found);
    else
        snprintf(outcome, sizeof(outcome), "%s",
                 hob__reason_name(searched->reason));
    return !to->visit(to->context, hob__rule_name(searched->rule),
                      searched->path, outcome);
}

void hob_runtime_searched(hob_runtime *runtime,
                          int (*visit)(void *context, const char *rule,
                                       const char *path, const char *outcome),
                          void *context)
{
    struct searched_visit to = {visit, context};

    hob__loader_searched(runtime->loader, visit_searched, &to);
}

/* ---- devices ---- */

/* Set ERROR to what the plugin says when device ORDINAL, which there is not or
 * which it cannot describe, is opened all the same. FALLBACK where it says
 * nothing. */
static void ask_why(hob_runtime *runtime, const struct hob_backend *backend,
                    void *instance, uint32_t ordinal, const char *fallback,
                    hob_error *error)
{
    char *message = NULL;
    void *device = NULL;
    hob_status status =
        backend->device_open(instance, ordinal, NULL, &device, &message);

    if (!status && device)
        backend->device_close(device);
    hob_error_set(error, status ? status : HOB_ERR_DEVICE, "%s",
                  message ? message : fallback);
    if (message)
        runtime->host.mem_free(&runtime->host, message);
}

static int visit_backend(hob_runtime *runtime,
                         const struct hob__candidate *candidate,
                         int (*visit)(void *context,
                                      const struct hob_device_record *record),
                         void *context)
{
    const struct hob__manifest *manifest = candidate->manifest;
    const struct hob__instance *instance = NULL;
    const struct hob_backend *backend;
    struct hob_device_record record;
    hob_error error = HOB_ERROR_INIT;
    uint32_t count = 0;
    int stop = 0;
    hob_status status;

    memset(&record, 0, sizeof(record));
    record.plugin = manifest->id;
    record.spec = manifest->backend.selector;
    status = hob__runtime_instance(runtime, candidate, &instance, &error);
    if (!status) {
        backend = instance->plugin->table.backend;
        status = backend->device_count(instance->instance, &count);
        if (status)
            hob_error_set(&error, status, "its devices cannot be counted: %s",
                          hob_status_name(status));
    }
    if (status || !count) {
        if (!status)
            ask_why(runtime, backend, instance->instance, 0,
                    "the plugin found no device", &error);
        record.problem = hob__error_text(&error);
        stop = visit(context, &record);
        hob_error_release(&error);
        return stop;
    }
    for (uint32_t i = 0; i < count && !stop; i++) {
        struct hob_device_info info;
        char spec[128];

        memset(&info, 0, sizeof(info));
        if (backend->device_info)
            status = backend->device_info(instance->instance, i, &info);
        snprintf(spec, sizeof(spec), "%s:%" PRIu32, manifest->backend.selector,
                 i);
        record.spec = i || count > 1 ? spec : manifest->backend.selector;
        record.hardware = status ? NULL : info.name;
        record.memory_bytes = info.memory_bytes;
        if (status)
            ask_why(runtime, backend, instance->instance, i,
                    hob_status_name(status), &error);
        record.problem = status ? hob__error_text(&error) : NULL;
        stop = visit(context, &record);
        hob_error_release(&error);
    }
    return stop;
}

/* Visit the backends of PRIORITY. Returns nonzero to stop; *OUT_NEXT is the
 * next lower priority that there is, INT32_MIN if there is none. */
static int visit_priority(hob_runtime *runtime, int32_t priority,
                          int (*visit)(void *context,
                                       const struct hob_device_record *record),
                          void *context, int32_t *out_next)
{
    uint32_t count = hob__loader_count(runtime->loader);
    int stop = 0;

    *out_next = INT32_MIN;
    for (uint32_t i = 0; i < count && !stop; i++) {
        const struct hob__candidate *candidate =
            hob__loader_get(runtime->loader, i);

        if (!hob__candidate_usable(candidate) ||
            candidate->manifest->kind != HOB__KIND_BACKEND)
            continue;
        if (candidate->priority < priority && candidate->priority > *out_next)
            *out_next = candidate->priority;
        if (candidate->priority == priority)
            stop = visit_backend(runtime, candidate, visit, context);
    }
    return stop;
}

void hob_runtime_devices(hob_runtime *runtime,
                         int (*visit)(void *context,
                                      const struct hob_device_record *record),
                         void *context)
{
    int32_t priority = INT32_MAX, next;

    while (priority > INT32_MIN &&
           !visit_priority(runtime, priority, visit, context, &next))
        priority = next;
}

/* ---- ops ---- */

static void list_selectors(const struct hob__op *op, struct hob__text *text)
{
    if (!op->manifest) {
        hob__text_puts(text, "*");
        return;
    }
    for (uint32_t i = 0; i < op->manifest->selector_count; i++)
        hob__text_printf(text, "%s%s", i ? "," : "",
                         op->manifest->selectors[i].name);
}

static const char *fuse_name(uint8_t fuse)
{
    static const char *const names[] = {"opaque", "elementwise", "reduce",
                                        "view", "inline"};

    return fuse < sizeof(names) / sizeof(names[0]) ? names[fuse] : "?";
}

void hob_runtime_ops(hob_runtime *runtime,
                     int (*visit)(void *context,
                                  const struct hob_op_record *record),
                     void *context)
{
    const struct hob__registry *registry = &runtime->registry;
    int stop = 0;

    for (uint32_t id = 1; id < registry->op_count && !stop; id++) {
        const struct hob__op *op = &registry->ops[id];
        struct hob__text selectors = HOB__TEXT_INIT;
        struct hob_op_record record;

        if (!op->decl)
            continue;
        list_selectors(op, &selectors);
        memset(&record, 0, sizeof(record));
        record.name = op->name;
        record.signature = op->decl->signature;
        record.flat = op->flat;
        record.doc = op->decl->doc;
        record.family = op->decl->family;
        record.fuse = fuse_name(op->fuse);
        record.id = id;
        record.has_body =
            op->manifest ? op->manifest->has_body : op->decl->body != NULL;
        record.selectors = selectors.data ? selectors.data : "";
        stop = visit(context, &record);
        hob__text_release(&selectors);
    }
}

/* A plugin that declares op NAME and cannot be used; NULL if there is none. */
static const struct hob__candidate *find_unusable(const hob_runtime *runtime,
                                                  const char *name)
{
    for (uint32_t i = 0; i < hob__loader_count(runtime->loader); i++) {
        const struct hob__candidate *candidate =
            hob__loader_get(runtime->loader, i);

        if (candidate->manifest && !hob__candidate_usable(candidate) &&
            hob__manifest_find_op(candidate->manifest, name))
            return candidate;
    }
    return NULL;
}

/* Whether some op has the namespace of NAME, of SIZE bytes with its dot. */
static bool has_namespace(const struct hob__registry *registry,
                          const char *name, size_t size)
{
    for (uint32_t id = 1; id < registry->op_count; id++)
        if (!strncmp(registry->ops[id].name, name, size))
            return true;
    return false;
}

hob_status hob__op_missing(const hob_runtime *runtime, const char *name,
                           hob_error *error)
{
    const struct hob__candidate *owner = find_unusable(runtime, name);
    const struct hob__record *record =
        owner ? hob__candidate_record(owner) : NULL;
    const char *dot = strchr(name, '.');
    const char *nearest;

    if (record && record->reason == HOB__REASON_DISABLED_CONFIG)
        return hob_error_set(error, HOB_ERR_NOT_FOUND,
                             "the op \"%s\" is of the plugin %s, which the "
                             "configuration disables: hob enable %s",
                             name, owner->id, owner->id);
    if (record)
        return hob_error_set(error, HOB_ERR_NOT_FOUND,
                             "the op \"%s\" is of the plugin %s, which cannot "
                             "be used: %s: %s; see hob why %s",
                             name, owner->id, hob__reason_name(record->reason),
                             hob__reason_text(record->reason), owner->id);
    nearest = hob__registry_nearest(&runtime->registry, name);
    if (dot && !nearest &&
        !has_namespace(&runtime->registry, name, (size_t)(dot - name) + 1))
        return hob_error_set(error, HOB_ERR_NOT_FOUND,
                             "there is no op \"%s\", for no extension \"%.*s\" "
                             "was found: hob install adds one, and hob plugins "
                             "lists those that are here",
                             name, (int)(dot - name), name);
    return hob_error_set(error, HOB_ERR_NOT_FOUND,
                         "there is no op \"%s\"%s%s%s hob ops lists them all",
                         name, nearest ? "; did you mean \"" : ":",
                         nearest ? nearest : "", nearest ? "\"?" : "");
}

hob_status hob_op_find(hob_runtime *runtime, const char *name, uint32_t *out_id,
                       hob_error *error)
{
    const struct hob__op *op = hob__registry_find(&runtime->registry, name);

    *out_id = op ? op->id : 0;
    return op ? HOB_OK : hob__op_missing(runtime, name, error);
}

const char *hob_op_signature(hob_runtime *runtime, uint32_t op)
{
    const struct hob__registry *registry = &runtime->registry;

    return op < registry->op_count && registry->ops[op].decl
               ? registry->ops[op].flat
               : NULL;
}

hob_status hob_call_op(hob_scope *scope, uint32_t op, const hob_value *args,
                       uint32_t arg_count, hob_tensor **out,
                       uint32_t out_capacity, uint32_t *out_count)
{
    return hob__call(scope, op, args, arg_count, out, out_capacity, out_count,
                     NULL, 0);
}
