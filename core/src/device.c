/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - specs, and the stacks that they name.
 *
 *   spec    := base | layer '(' spec ')'
 *   base    := selector [ ':' ordinal ]
 *   layer   := selector [ options ]
 *   options := '{' name '=' value { ',' name '=' value } '}'
 */
#include "device.h"

#include "error.h"
#include "runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One layer of a parsed spec; the texts point into the spec. */
struct part {
    const char *name;
    size_t name_size;
    const char *options; /* between the braces */
    size_t options_size;
    uint32_t ordinal;
};

struct spec {
    struct part parts[HOB_MAX_LEVELS + 1]; /* top first; the last is the base */
    uint32_t count;
};

/* ---- parsing ---- */

static hob_status malformed(const char *spec, const char *at, const char *what,
                            hob_error *error)
{
    return hob_error_set(error, HOB_ERR_ARGUMENT,
                         "device \"%s\": %s at character %td: write it as in "
                         "\"autodiff{checkpoint=balanced}(flex)\" or "
                         "\"cube-cuda:1\"",
                         spec, what, at - spec + 1);
}

static int is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
}

static const char *skip_spaces(const char *at)
{
    while (*at == ' ')
        at++;
    return at;
}

static hob_status parse_ordinal(const char *spec, const char **at,
                                struct part *part, hob_error *error)
{
    uint64_t number = 0;
    const char *start = ++*at;

    for (; **at >= '0' && **at <= '9' && number <= UINT16_MAX; ++*at)
        number = number * 10 + (uint64_t)(**at - '0');
    if (*at == start || number > UINT16_MAX)
        return malformed(spec, start, "expected the number of a device",
                         error);
    part->ordinal = (uint32_t)number;
    return HOB_OK;
}

static hob_status parse_part(const char *spec, const char **at,
                             struct part *part, hob_error *error)
{
    memset(part, 0, sizeof(*part));
    *at = skip_spaces(*at);
    part->name = *at;
    while (is_name_char(**at))
        ++*at;
    part->name_size = (size_t)(*at - part->name);
    if (!part->name_size)
        return malformed(spec, *at, "expected a name", error);
    if (**at == '{') {
        part->options = ++*at;
        *at = strchr(*at, '}');
        if (!*at)
            return malformed(spec, part->options, "\"{\" is never closed",
                             error);
        part->options_size = (size_t)(*at - part->options);
        ++*at;
    }
    if (**at == ':')
        return parse_ordinal(spec, at, part, error);
    *at = skip_spaces(*at);
    return HOB_OK;
}

static hob_status parse_spec(const char *text, struct spec *out,
                             hob_error *error)
{
    const char *at = text;
    uint32_t open = 0;
    hob_status status;

    out->count = 0;
    for (;;) {
        if (out->count > HOB_MAX_LEVELS)
            return malformed(text, at, "more layers than are allowed", error);
        status = parse_part(text, &at, &out->parts[out->count++], error);
        if (status)
            return status;
        at = skip_spaces(at);
        if (*at != '(')
            break;
        open++;
        at++;
    }
    for (; open; open--) {
        at = skip_spaces(at);
        if (*at != ')')
            return malformed(text, at, "expected \")\"", error);
        at++;
    }
    at = skip_spaces(at);
    return *at ? malformed(text, at, "unexpected text", error) : HOB_OK;
}

/* ---- options ---- */

static void append_json_string(FILE *stream, const char *text, size_t size)
{
    fputc('"', stream);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '"' || text[i] == '\\')
            fputc('\\', stream);
        fputc(text[i], stream);
    }
    fputc('"', stream);
}

/* The value of option NAME in the braces of PART, or NULL. */
static const char *given_option(const struct part *part, const char *name,
                                size_t name_size, size_t *out_size)
{
    const char *at = part->options;
    const char *end = at ? at + part->options_size : at;

    while (at && at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at));

        if (equals && (size_t)(equals - at) == name_size &&
            !memcmp(at, name, name_size)) {
            *out_size = (size_t)(stop - equals - 1);
            return equals + 1;
        }
        at = stop + 1;
    }
    return NULL;
}

/* The options of PART as a JSON object: the config's, then the spec's. NULL
 * if there are none; the caller frees it. Values are strings. */
static char *options_json(const hob_runtime *runtime, const char *id,
                          const struct part *part)
{
    const struct hob__conf_plugin *conf =
        hob__conf_find(hob__loader_conf(runtime->loader), id);
    const char *at = part->options;
    const char *end = at ? at + part->options_size : at;
    char *text = NULL;
    size_t size = 0;
    uint32_t written = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    fputc('{', stream);
    for (uint32_t i = 0; conf && i < conf->option_count; i++) {
        const struct hob__conf_setting *setting = &conf->options[i];
        size_t ignored;

        if (given_option(part, setting->name, strlen(setting->name), &ignored))
            continue;
        fputs(written++ ? "," : "", stream);
        append_json_string(stream, setting->name, strlen(setting->name));
        fputc(':', stream);
        append_json_string(stream, setting->value, strlen(setting->value));
    }
    while (at && at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const char *stop = comma ? comma : end;
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        const char *name_end = equals ? equals : stop;

        fputs(written++ ? "," : "", stream);
        append_json_string(stream, at, (size_t)(name_end - at));
        fputc(':', stream);
        append_json_string(stream, equals ? equals + 1 : "",
                           equals ? (size_t)(stop - equals - 1) : 0);
        at = stop + 1;
    }
    fputc('}', stream);
    if (fclose(stream) || !written) {
        free(text);
        return NULL;
    }
    return text;
}

/* ---- interning ---- */

static hob_device *find_device_locked(const hob_runtime *runtime,
                                      const char *name)
{
    for (hob_device *device = runtime->devices; device; device = device->next)
        if (!strcmp(device->name, name))
            return device;
    return NULL;
}

static char *canonical_name(const struct part *part, const hob_device *below)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    fprintf(stream, "%.*s", (int)part->name_size, part->name);
    if (part->options_size)
        fprintf(stream, "{%.*s}", (int)part->options_size, part->options);
    if (below)
        fprintf(stream, "(%s)", below->name);
    else if (part->ordinal)
        fprintf(stream, ":%" PRIu32, part->ordinal);
    if (fclose(stream)) {
        free(text);
        return NULL;
    }
    return text;
}

static hob_status not_served(const hob_runtime *runtime,
                             enum hob__plugin_kind kind, const char *selector,
                             hob_error *error)
{
    char *why = NULL;
    hob_status status;

    if (hob__loader_why(runtime->loader, selector, &why))
        why = NULL;
    status = hob_error_set(error, HOB_ERR_DEVICE,
                           "no %s plugin serves \"%s\": %s",
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
        if (!status && device->ordinal >= count)
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

static hob_status device_new(hob_runtime *runtime, char *name,
                             const struct part *part, hob_device *below,
                             const char *selector,
                             const struct hob__candidate *candidate,
                             hob_device **out_device, hob_error *error)
{
    const struct hob__instance *instance = NULL;
    hob_device *device = calloc(1, sizeof(*device));
    const struct hob__manifest *manifest = candidate->manifest;
    hob_status status;

    *out_device = NULL;
    if (!device) {
        free(name);
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a device");
    }
    atomic_init(&device->refs, 0);
    device->runtime = runtime;
    device->name = name;
    device->ordinal = part->ordinal;
    device->routes =
        calloc(runtime->registry.op_count, sizeof(*device->routes));
    set_layers(device, below);
    status = device->routes
                 ? hob__runtime_instance(runtime, candidate, &instance, error)
                 : hob_error_set(error, HOB_ERR_MEMORY,
                                 "no memory for a device");
    if (!status) {
        device->plugin = instance->plugin;
        device->decorator = below ? instance->plugin->table.decorator : NULL;
        device->backend =
            below ? below->backend : instance->plugin->table.backend;
        device->selector = hob__manifest_selector_name(manifest);
        device->family = below ? NULL : manifest->backend.family;
        device->unlisted = manifest->decorator.unlisted;
        device->options = options_json(runtime, manifest->id, part);
        status = open_instance(device, selector, instance, error);
    }
    if (status) {
        device->instance = NULL;
        hob__device_free(device);
        return status;
    }
    *out_device = device;
    return HOB_OK;
}

/* Find or make the device of PART on BELOW. The runtime's lock is not held
 * while plugin code runs; of two threads the second finds the first's. */
static hob_status open_part(hob_runtime *runtime, const struct part *part,
                            hob_device *below, hob_device **out_device,
                            hob_error *error)
{
    enum hob__plugin_kind kind =
        below ? HOB__KIND_DECORATOR : HOB__KIND_BACKEND;
    char *selector = strndup(part->name, part->name_size);
    char *name = canonical_name(part, below);
    const struct hob__candidate *candidate;
    hob_device *device = NULL;
    hob_device *other;
    hob_status status = HOB_OK;

    *out_device = NULL;
    if (!selector || !name) {
        status = hob_error_set(error, HOB_ERR_MEMORY, "no memory for a device");
        free(name);
        goto out;
    }
    pthread_mutex_lock(&runtime->lock);
    *out_device = find_device_locked(runtime, name);
    pthread_mutex_unlock(&runtime->lock);
    if (*out_device) {
        free(name);
        goto out;
    }
    candidate = hob__loader_find(runtime->loader, kind, selector);
    if (!candidate) {
        free(name);
        status = not_served(runtime, kind, selector, error);
        goto out;
    }
    status = device_new(runtime, name, part, below, selector, candidate,
                        &device, error);
    if (status)
        goto out;
    pthread_mutex_lock(&runtime->lock);
    other = find_device_locked(runtime, device->name);
    if (!other) {
        device->next = runtime->devices;
        runtime->devices = device;
    }
    pthread_mutex_unlock(&runtime->lock);
    if (other)
        hob__device_free(device);
    *out_device = other ? other : device;
out:
    free(selector);
    return status;
}

static hob_status open_spec(hob_runtime *runtime, const char *text,
                            hob_device **out_device, hob_error *error)
{
    struct spec spec;
    hob_device *device = NULL;
    hob_status status = parse_spec(text, &spec, error);

    for (uint32_t i = spec.count; i-- && !status;) {
        if (spec.parts[i].ordinal && i + 1 < spec.count)
            status = hob_error_set(error, HOB_ERR_ARGUMENT,
                                   "device \"%s\": a number belongs to the "
                                   "base, as in \"autodiff(cube-cuda:1)\"",
                                   text);
        else
            status = open_part(runtime, &spec.parts[i], device, &device,
                               error);
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
    hob_status status = HOB_OK;

    if (base->backend->sync)
        status = base->backend->sync(base->instance);
    if (status)
        hob_error_set(error, status, "work on %s failed: %s", base->name,
                      hob_status_name(status));
    return status;
}
