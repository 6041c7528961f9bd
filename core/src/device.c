/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - the stacks that specs name, made once and kept.
 */
#include "device.h"

#include "device_spec.h"
#include "error.h"
#include "lazy.h"
#include "runtime.h"
#include "sized.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- interning ---- */

static hob_device *find_device_locked(const hob_runtime *runtime,
                                      const char *name)
{
    for (hob_device *device = runtime->devices; device; device = device->next)
        if (!strcmp(device->name, name))
            return device;
    return NULL;
}

/* The canonical name and the options of PART on BELOW. */
static hob_status describe(const hob_runtime *runtime,
                           const struct hob__spec_part *part,
                           const struct hob__manifest *manifest,
                           const hob_device *below, char **out_name,
                           char **out_options, hob_error *error)
{
    struct hob__text name = HOB__TEXT_INIT;
    struct hob__text json = HOB__TEXT_INIT;
    hob_status status;

    *out_name = NULL;
    *out_options = NULL;
    hob__text_append(&name, part->name, part->name_size);
    status = hob__spec_options(
        part, hob__conf_find(hob__loader_conf(runtime->loader), manifest->id),
        manifest, &json, &name, error);
    if (!status) {
        if (below)
            hob__text_printf(&name, "(%s)", below->name);
        else if (part->ordinal)
            hob__text_printf(&name, ":%" PRIu32, part->ordinal);
        *out_name = hob__text_take(&name);
        *out_options = hob__text_take(&json);
        if (!*out_name || !*out_options)
            status =
                hob_error_set(error, HOB_ERR_MEMORY, "no memory for a device");
    }
    hob__text_release(&name);
    hob__text_release(&json);
    if (status) {
        free(*out_name);
        free(*out_options);
    }
    return status;
}

/* SELECTOR is that of a plugin of the other kind: say where it stands. */
static hob_status misplaced(enum hob__plugin_kind kind, const char *selector,
                            hob_error *error)
{
    if (kind == HOB__KIND_BACKEND)
        return hob_error_set(error, HOB_ERR_DEVICE,
                             "no backend plugin serves \"%s\": it is a "
                             "decorator and stands around a device, as in "
                             "\"%s(flex)\"",
                             selector, selector);
    return hob_error_set(error, HOB_ERR_DEVICE,
                         "no decorator plugin serves \"%s\": it is a backend "
                         "and stands innermost, as in \"autodiff(%s)\"",
                         selector, selector);
}

/* The selector, of any kind, that SELECTOR was most likely to be. */
static const char *nearest_selector(const hob_runtime *runtime,
                                    const char *selector)
{
    uint32_t count = hob__loader_count(runtime->loader), known = 0;
    const char **names = calloc(count + 1u, sizeof(*names));
    const char *nearest = NULL;

    for (uint32_t i = 0; names && i < count; i++) {
        const struct hob__candidate *one = hob__loader_get(runtime->loader, i);
        const char *name =
            one->manifest ? hob__manifest_selector_name(one->manifest) : NULL;

        if (name)
            names[known++] = name;
    }
    if (names)
        nearest = hob__nearest_name(selector, names, known);
    free(names);
    return nearest && strcmp(nearest, selector) != 0 ? nearest : NULL;
}

static hob_status not_served(const hob_runtime *runtime,
                             enum hob__plugin_kind kind, const char *selector,
                             hob_error *error)
{
    enum hob__plugin_kind other =
        kind == HOB__KIND_BACKEND ? HOB__KIND_DECORATOR : HOB__KIND_BACKEND;
    const char *nearest;
    char *why = NULL;
    size_t length;
    hob_status status;

    if (hob__loader_find(runtime->loader, other, selector))
        return misplaced(kind, selector, error);
    nearest = nearest_selector(runtime, selector);
    if (nearest)
        return hob_error_set(error, HOB_ERR_DEVICE,
                             "no %s plugin serves \"%s\": did you mean \"%s\"?",
                             hob__plugin_kind_name(kind), selector, nearest);
    if (hob__loader_why(runtime->loader, selector, &why))
        why = NULL;
    length = why ? strlen(why) : 0;
    if (length && why[length - 1] == '\n')
        why[length - 1] = '\0'; /* a message is not a line */
    status =
        hob_error_set(error, HOB_ERR_DEVICE, "no %s plugin serves \"%s\": %s",
                      hob__plugin_kind_name(kind), selector,
                      why ? why : "run hob plugins to see what was found");
    free(why);
    return status;
}

/* Call the plugin: open the device or layer behind DEVICE. */
static hob_status open_instance(hob_device *device, const char *selector,
                                const struct hob__instance *instance,
                                hob_error *error)
{
    hob_runtime *runtime = device->runtime;
    char *message = NULL;
    uint32_t count = 0;
    hob_status status = HOB_OK;

    if (device->decorator) {
        status = device->decorator->layer_open(
            instance->instance, device->at[device->depth - 1], device->depth,
            device->options, &device->instance, &message);
    } else {
        status = device->backend->device_count(instance->instance, &count);
        /* Where there is no device at all, the plugin says why. */
        if (!status && count && device->ordinal >= count)
            return hob_error_set(error, HOB_ERR_DEVICE,
                                 "there is no device %s:%" PRIu32
                                 ": %s has %" PRIu32 " (counted from 0)",
                                 selector, device->ordinal, selector, count);
        if (!status)
            status = device->backend->device_open(
                instance->instance, device->ordinal, device->options,
                &device->instance, &message);
    }
    if (status)
        hob_error_set(error, status, "device %s cannot be opened: %s",
                      device->name,
                      message ? message : hob_status_name(status));
    if (message)
        runtime->host.mem_free(&runtime->host, message);
    return status;
}

static void set_layers(hob_device *device, hob_device *below)
{
    device->depth = below ? below->depth + 1 : 0;
    for (int32_t k = 0; below && k <= below->depth; k++)
        device->at[k] = below->at[k];
    device->at[device->depth] = device;
}

/* Make DEVICE, whose name and options are set, out of CANDIDATE. */
static hob_status fill_device(hob_device *device, hob_device *below,
                              const struct hob__candidate *candidate,
                              hob_error *error)
{
    const struct hob__manifest *manifest = candidate->manifest;
    const struct hob__instance *instance = NULL;
    hob_status status;

    device->routes =
        calloc(device->runtime->registry.op_count, sizeof(*device->routes));
    if (!device->routes)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a device");
    set_layers(device, below);
    status =
        hob__runtime_instance(device->runtime, candidate, &instance, error);
    if (status)
        return status;
    device->plugin = instance->plugin;
    device->decorator = below ? instance->plugin->table.decorator : NULL;
    device->backend = below ? below->backend : instance->plugin->table.backend;
    device->selector = hob__manifest_selector_name(manifest);
    device->family = below ? NULL : manifest->backend.family;
    device->unlisted = manifest->decorator.unlisted;
    device->needs_state = device->decorator && (device->decorator->flags &
                                                HOB_DECORATOR_NEEDS_STATE) != 0;
    device->has_again =
        device->decorator && (device->decorator->again || below->has_again);
    status = open_instance(device, device->selector, instance, error);
    if (status)
        device->instance = NULL;
    return status;
}

/* Take over NAME and OPTIONS; on failure too. */
static hob_status device_new(hob_runtime *runtime, char *name, char *options,
                             uint32_t ordinal, hob_device *below,
                             const struct hob__candidate *candidate,
                             hob_device **out_device, hob_error *error)
{
    hob_device *device = calloc(1, sizeof(*device));
    hob_status status;

    *out_device = NULL;
    if (!device) {
        free(name);
        free(options);
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a device");
    }
    atomic_init(&device->refs, 0);
    device->runtime = runtime;
    device->name = name;
    device->options = options;
    device->ordinal = ordinal;
    status = fill_device(device, below, candidate, error);
    if (status)
        hob__device_free(device);
    else
        *out_device = device;
    return status;
}

/* Of two threads that made the same device the first one's is kept. */
static hob_device *intern(hob_runtime *runtime, hob_device *device)
{
    hob_device *other;

    pthread_mutex_lock(&runtime->lock);
    other = find_device_locked(runtime, device->name);
    if (!other) {
        device->next = runtime->devices;
        runtime->devices = device;
        if (device->decorator && device->decorator->flush) {
            device->next_lazy = atomic_load(&runtime->lazy_devices);
            atomic_store(&runtime->lazy_devices, device);
        }
    }
    pthread_mutex_unlock(&runtime->lock);
    if (!other)
        return device;
    hob__device_free(device);
    return other;
}

/* Find or make the device of PART on BELOW. The runtime's lock is not held
 * while plugin code runs. */
static hob_status open_part(hob_runtime *runtime,
                            const struct hob__spec_part *part,
                            hob_device *below, hob_device **out_device,
                            hob_error *error)
{
    enum hob__plugin_kind kind =
        below ? HOB__KIND_DECORATOR : HOB__KIND_BACKEND;
    char *selector = strndup(part->name, part->name_size);
    const struct hob__candidate *candidate =
        selector ? hob__loader_find(runtime->loader, kind, selector) : NULL;
    hob_device *device = NULL;
    char *options = NULL;
    char *name = NULL;
    hob_status status;

    *out_device = NULL;
    if (!selector)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a device");
    status = candidate ? describe(runtime, part, candidate->manifest, below,
                                  &name, &options, error)
                       : not_served(runtime, kind, selector, error);
    free(selector);
    if (status)
        return status;
    pthread_mutex_lock(&runtime->lock);
    *out_device = find_device_locked(runtime, name);
    pthread_mutex_unlock(&runtime->lock);
    if (*out_device) {
        free(name);
        free(options);
        return HOB_OK;
    }
    status = device_new(runtime, name, options, part->ordinal, below, candidate,
                        &device, error);
    if (!status)
        *out_device = intern(runtime, device);
    return status;
}

static hob_status open_spec(hob_runtime *runtime, const char *text,
                            hob_device **out_device, hob_error *error)
{
    struct hob__spec spec;
    hob_device *device = NULL;
    hob_status status = hob__spec_parse(text, &spec, error);

    for (uint32_t i = spec.count; i-- && !status;) {
        if (spec.parts[i].ordinal && i + 1 < spec.count)
            status = hob_error_set(error, HOB_ERR_ARGUMENT,
                                   "device \"%s\": a number belongs to the "
                                   "base, as in \"autodiff(cube-cuda:1)\"",
                                   text);
        else
            status = open_part(runtime, &spec.parts[i], device, &device, error);
    }
    *out_device = status ? NULL : device;
    return status;
}

/* Try a list of specs: the first that opens wins. */
static hob_status open_default(hob_runtime *runtime, hob_device **out_device,
                               hob_error *error)
{
    uint32_t count = 0;
    const char *const *specs = hob__loader_devices(runtime->loader, &count);
    hob_error why = HOB_ERROR_INIT;
    char *reasons = NULL;
    size_t size = 0;
    FILE *stream;
    hob_status status = HOB_ERR_DEVICE;

    if (!count)
        return hob_error_set(error, HOB_ERR_DEVICE,
                             "no device is named: set \"device\" in hob.json "
                             "or HOB_DEVICE, as in HOB_DEVICE=flex");
    stream = open_memstream(&reasons, &size);
    for (uint32_t i = 0; i < count && status; i++) {
        status = open_spec(runtime, specs[i], out_device, &why);
        if (status && stream)
            fprintf(stream, "%s%s", i ? "; " : "", hob__error_text(&why));
        hob_error_release(&why);
    }
    if (stream && fclose(stream))
        reasons = NULL;
    if (status)
        hob_error_set(error, status, "%s",
                      reasons ? reasons : "no device could be opened");
    free(reasons);
    return status;
}

void hob__device_free(hob_device *device)
{
    /* What its kernels prepared goes first: it is the device's. */
    for (uint32_t id = 0;
         device->routes && id < device->runtime->registry.op_count; id++)
        if (device->routes[id])
            hob__prepared_clear(&device->routes[id]->kept);
    if (device->instance) {
        if (device->decorator)
            device->decorator->layer_close(device->instance);
        else
            device->backend->device_close(device->instance);
    }
    free(device->options);
    free(device->name);
    free((void *)device->routes);
    free(device);
}

hob_device *hob__device_join(hob_device *a, hob_device *b)
{
    if (a->depth < b->depth)
        return b->at[a->depth] == a ? b : NULL;
    return a->at[b->depth] == b ? a : NULL;
}

/* ---- public ---- */

hob_status hob_device_open(hob_runtime *runtime, const char *spec,
                           hob_device **out_device, hob_error *error)
{
    hob_status status = hob__loader_check_fork(runtime->loader, error);

    *out_device = NULL;
    if (status)
        return status;
    status = spec && *spec ? open_spec(runtime, spec, out_device, error)
                           : open_default(runtime, out_device, error);
    if (!status)
        hob_device_ref(*out_device);
    return status;
}

void hob_device_ref(hob_device *device)
{
    atomic_fetch_add(&device->refs, 1);
}

void hob_device_unref(hob_device *device)
{
    if (device)
        atomic_fetch_sub(&device->refs, 1);
}

const char *hob_device_name(const hob_device *device)
{
    return device->name;
}

hob_runtime *hob_device_runtime(const hob_device *device)
{
    return device->runtime;
}

hob_device *hob_device_below(const hob_device *device)
{
    return device->depth ? device->at[device->depth - 1] : NULL;
}

hob_status hob_device_sync(hob_device *device, hob_error *error)
{
    const hob_device *base = device->at[0];
    hob_status status = hob__flush_device(device, error);

    if (status)
        return status;
    if (base->backend->sync)
        status = base->backend->sync(base->instance);
    if (status)
        hob_error_set(error, status, "work on %s failed: %s", base->name,
                      hob_status_name(status));
    return status;
}

hob_status hob_device_memory(hob_device *device, struct hob_memory_stats *out,
                             hob_error *error)
{
    const hob_device *base = device->at[0];
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    const uint32_t size = out->struct_size;

    if (size < offsetof(struct hob_memory_stats, in_use_bytes))
        return hob_error_set(error, HOB_ERR_ARGUMENT,
                             "memory of %s: struct_size is %" PRIu32
                             "; begin with HOB_MEMORY_STATS_INIT",
                             base->name, size);
    if (!base->backend->memory_stats)
        return hob_error_set(error, HOB_ERR_UNSUPPORTED,
                             "%s keeps no account of its memory", base->name);
    base->backend->memory_stats(base->instance, &stats);
    hob__give_sized(out, &stats, sizeof(stats));
    return HOB_OK;
}

hob_status hob_device_reset_peak(hob_device *device, hob_error *error)
{
    const hob_device *base = device->at[0];

    if (!base->backend->memory_reset_peak)
        return hob_error_set(error, HOB_ERR_UNSUPPORTED,
                             "%s keeps no peak of its memory", base->name);
    base->backend->memory_reset_peak(base->instance);
    return HOB_OK;
}

hob_status hob_device_trim(hob_device *device, hob_error *error)
{
    const hob_device *base = device->at[0];

    if (!base->backend->memory_trim)
        return hob_error_set(error, HOB_ERR_UNSUPPORTED,
                             "%s keeps no free memory", base->name);
    base->backend->memory_trim(base->instance);
    return HOB_OK;
}
