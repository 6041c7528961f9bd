/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.c - opening the library: what changes, what its table says, whether
 * the loader takes it, and which of its ops can be tried on which device.
 */
#include "check.h"

#include "pattern.h"

#include "elf_check.h"
#include "error.h"
#include "loader_internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fenv.h>
#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

extern char **environ;

enum { SIGNALS = 65, WHY = 300 };

/* ---- the process, before and after ---- */

struct process {
    void (*handlers[SIGNALS])(int);
    uint64_t environment; /* a hash */
    char *folder;
    char locale[64];
    mode_t mask;
    uint32_t threads, files;
    int rounding;
    uint32_t control;
};

static uint32_t count_entries(const char *dir)
{
    DIR *folder = opendir(dir);
    uint32_t count = 0;

    while (folder && readdir(folder))
        count++;
    if (folder)
        (void)closedir(folder);
    return count;
}

static void look(struct process *process)
{
    memset(process, 0, sizeof(*process));
    for (int i = 1; i < SIGNALS; i++) {
        struct sigaction action;

        if (!sigaction(i, NULL, &action))
            process->handlers[i] = action.sa_handler;
    }
    for (char **one = environ; one && *one; one++)
        for (const char *at = *one; *at; at++)
            process->environment =
                process->environment * 31 + (unsigned char)*at;
    process->folder = getcwd(NULL, 0);
    (void)snprintf(process->locale, sizeof(process->locale), "%s",
                   setlocale(LC_ALL, NULL));
    process->mask = umask(0);
    (void)umask(process->mask);
    process->threads = count_entries("/proc/self/task");
    process->files = count_entries("/proc/self/fd");
    process->rounding = fegetround();
#if defined(__x86_64__)
    process->control = _mm_getcsr() & ~UINT32_C(0x3f); /* without flags */
#endif
}

static void compare(struct check_child *child, const struct process *a,
                    const struct process *b)
{
    for (int i = 1; i < SIGNALS; i++)
        if (a->handlers[i] != b->handlers[i]) {
            check_found(child, CHECK_SIDE_EFFECT,
                        "it set the handler of signal %d", i);
            break;
        }
    if (a->environment != b->environment)
        check_found(child, CHECK_SIDE_EFFECT, "it changed the environment");
    if (a->folder && b->folder && strcmp(a->folder, b->folder) != 0)
        check_found(child, CHECK_SIDE_EFFECT, "it changed the folder to %s",
                    b->folder);
    if (strcmp(a->locale, b->locale) != 0)
        check_found(child, CHECK_SIDE_EFFECT, "it changed the locale to %s",
                    b->locale);
    if (a->mask != b->mask)
        check_found(child, CHECK_SIDE_EFFECT, "it changed the umask");
    if (a->threads != b->threads)
        check_found(child, CHECK_SIDE_EFFECT, "there are %u threads more",
                    b->threads - a->threads);
    if (a->files != b->files)
        check_found(child, CHECK_SIDE_EFFECT, "it left files open");
    if (a->rounding != b->rounding || a->control != b->control)
        check_found(child, CHECK_FAST_MATH,
                    "the control register is %#x, was %#x",
                    (unsigned)b->control, (unsigned)a->control);
}

/* Open the library as the loader does. */
static void *open_watched(struct check_child *child)
{
    struct process before, after;
    void *handle;

    look(&before);
    handle = dlopen(child->target->library, RTLD_NOW | RTLD_LOCAL);
    look(&after);
    if (!handle)
        check_found(child, CHECK_LOAD, "DLOPEN: %s: %s", dlerror(),
                    hob__reason_hint(HOB__REASON_DLOPEN));
    else
        compare(child, &before, &after);
    free(before.folder);
    free(after.folder);
    return handle;
}

/* ---- the entry and its table ---- */

/* A copy of HOST that ends where an inaccessible page begins. */
static struct hob_host *fenced_host(struct check_memory *memory,
                                    const struct hob_host *host)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t room = (sizeof(*host) + page - 1) / page * page;
    char *map = mmap(NULL, room + 16 * page, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *data;

    if (map == MAP_FAILED || mprotect(map + room, 16 * page, PROT_NONE))
        return NULL;
    data = map + room - sizeof(*host);
    memcpy(data, host, sizeof(*host));
    memory->blocks[0].data = data;
    memory->blocks[0].bytes = sizeof(*host);
    memory->blocks[0].map = map;
    memory->blocks[0].map_bytes = room + 16 * page;
    memory->block_end = 1;
    return (struct hob_host *)(void *)data;
}

static void check_size(struct check_child *child, const char *table,
                       uint32_t have, size_t want)
{
    if (have != want)
        check_found(child, CHECK_TABLE_SIZE,
                    "%s_size is %" PRIu32 ", in ABI %d.%d it is %zu", table,
                    have, HOB_ABI_MAJOR, HOB_ABI_MINOR, want);
}

static void check_op_sizes(struct check_child *child,
                           const struct hob_extension *extension)
{
    check_size(child, "hob_extension.op", extension->op_size,
               sizeof(struct hob_extension_op));
    check_size(child, "hob_extension.impl", extension->impl_size,
               sizeof(struct hob_op_impl));
    check_size(child, "hob_extension.entry", extension->entry_size,
               sizeof(struct hob_entry));
    if (extension->op_size != sizeof(struct hob_extension_op) ||
        extension->impl_size != sizeof(struct hob_op_impl))
        return;
    for (uint32_t i = 0; i < extension->op_count; i++) {
        const struct hob_extension_op *op = &extension->ops[i];

        for (uint32_t k = 0; k < op->impl_count; k++)
            if (op->impls[k].backward)
                check_size(child, "hob_backward.struct",
                           op->impls[k].backward->struct_size,
                           sizeof(struct hob_backward));
    }
}

static void check_sizes(struct check_child *child,
                        const struct hob_plugin *table)
{
    /* An older or newer table has other sizes; the loader judges those. */
    if (table->magic != HOB_PLUGIN_MAGIC || table->abi_major != HOB_ABI_MAJOR ||
        table->abi_minor_built != HOB_ABI_MINOR)
        return;
    check_size(child, "hob_plugin.struct", table->struct_size,
               sizeof(struct hob_plugin));
    if (table->backend) {
        check_size(child, "hob_backend.struct", table->backend->struct_size,
                   sizeof(struct hob_backend));
        check_size(child, "hob_backend.entry", table->backend->entry_size,
                   sizeof(struct hob_entry));
    }
    if (table->decorator)
        check_size(child, "hob_decorator.struct", table->decorator->struct_size,
                   sizeof(struct hob_decorator));
    if (!table->extension)
        return;
    check_size(child, "hob_extension.struct", table->extension->struct_size,
               sizeof(struct hob_extension));
    if (table->extension->struct_size >= sizeof(struct hob_extension))
        check_op_sizes(child, table->extension);
}

/* Call the entry of HANDLE twice. */
static void check_entry_of(struct check_child *child, void *handle,
                           const hob_runtime *runtime)
{
    struct check_memory *memory = calloc(1, sizeof(*memory));
    hob_plugin_entry_fn entry = NULL;
    const struct hob_plugin *table;
    struct hob_plugin copy;
    struct hob_host *host;
    void *symbol = dlsym(handle, "hob_plugin_entry");

    host = memory ? fenced_host(memory, &runtime->host) : NULL;
    if (!symbol || !host)
        return; /* the loader says NO_ENTRY */
    memcpy(&entry, &symbol, sizeof(entry));
    check_memory_watch(memory, child->shared);
    table = entry(host);
    if (!table)
        return; /* the loader says NO_TABLE */
    memcpy(&copy, table, sizeof(copy));
    check_sizes(child, table);
    if (entry(host) != table)
        check_found(child, CHECK_ENTRY, "the second call returned another");
    else if (memcmp(&copy, table, sizeof(copy)) != 0)
        check_found(child, CHECK_ENTRY, "the second call changed the table");
    /* MEMORY stays: the handler of faults looks into it. */
}

/* ---- loading ---- */

/* Look at the file before dlopen, as the loader does (SEC-3). */
static int file_is_sound(struct check_child *child)
{
    const struct hob_os_ops *os = hob__os();
    const char *path = child->target->library;
    enum hob__reason reason = HOB__REASON_LIBRARY_MISSING;
    hob_error error = HOB_ERROR_INIT;
    struct hob_os_stat file;
    int fd = os->open_read(os->self, path);
    int sound = fd >= 0 && !os->file_stat(os->self, fd, &file) &&
                !hob__library_check(os, fd, file.size, path, &reason, &error);

    if (!sound && reason != HOB__REASON_SANITIZER) /* elf.c has told that */
        check_found(child, CHECK_LOAD, "%s: %s: %s", hob__reason_name(reason),
                    fd < 0 ? "it cannot be opened" : hob__error_text(&error),
                    hob__reason_hint(reason));
    if (fd >= 0)
        os->close(os->self, fd);
    hob_error_release(&error);
    return sound;
}

static enum check_code code_of(enum hob__reason reason)
{
    if (reason == HOB__REASON_NO_IMPLEMENTATION)
        return CHECK_NO_IMPLEMENTATION;
    if (reason == HOB__REASON_SIGNATURE || reason == HOB__REASON_ID_MISMATCH ||
        reason == HOB__REASON_KIND_MISMATCH)
        return CHECK_MANIFEST;
    return CHECK_LOAD;
}

/* The loader asks for what is listed and holds today; a condition may hold
 * tomorrow. */
static void check_conditions(struct check_child *child,
                             const struct hob__plugin *plugin)
{
    const struct hob__manifest *manifest = plugin->manifest;
    const struct hob_extension *table = &plugin->extension;

    for (uint32_t i = 0; i < manifest->op_count; i++)
        for (uint32_t k = 0; k < table->op_count; k++) {
            const struct hob__manifest_op *op = &manifest->ops[i];

            if (strcmp(table->ops[k].name, op->full_name) != 0)
                continue;
            for (uint32_t s = 0; s < op->selector_count; s++)
                if (op->selectors[s].when != HOB__WHEN_ALWAYS &&
                    !hob__extension_serves(op, &table->ops[k],
                                           op->selectors[s].name))
                    check_found(child, CHECK_NO_IMPLEMENTATION,
                                "op %s has nothing for %s, which it lists "
                                "where %s is there",
                                op->full_name, op->selectors[s].name,
                                op->selectors[s].when_name);
        }
}

/* A kernel for an op of somebody else's that the runtime would not use. */
static void check_signature(struct check_child *child, const struct hob__op *op,
                            const struct hob_op_impl *impl)
{
    char why[160];

    if (!impl->entry || !strcmp(impl->entry->signature, op->flat) ||
        hob__signature_serves(&op->signature, impl->entry->signature, why,
                              sizeof(why)))
        return;
    check_found(child, CHECK_MANIFEST,
                "SIGNATURE: the kernel for %s is written for \"%s\", the op is "
                "\"%s\": %s",
                op->name, impl->entry->signature, op->flat, why);
}

static void check_signatures(struct check_child *child, hob_runtime *runtime,
                             const struct hob__plugin *plugin)
{
    const struct hob_extension *table = &plugin->extension;

    for (uint32_t i = 0; i < table->implements_count; i++) {
        const struct hob_extension_op *one = &table->implements[i];
        const struct hob__op *op =
            hob__registry_find(&runtime->registry, one->name);

        for (uint32_t k = 0; op && k < one->impl_count; k++)
            check_signature(child, op, &one->impls[k]);
    }
}

static int load(struct check_child *child, hob_runtime *runtime)
{
    const struct hob__candidate *candidate =
        hob__loader_find_id(runtime->loader, child->target->id);
    const struct hob__instance *instance = NULL;
    const struct hob__record *record;
    hob_error error = HOB_ERROR_INIT;
    hob_status status;

    if (!candidate)
        return 0;
    status = hob__runtime_instance(runtime, candidate, &instance, &error);
    record = hob__candidate_record(candidate);
    if (status)
        check_found(child, code_of(record->reason), "%s: %s: %s",
                    hob__reason_name(record->reason), hob__error_text(&error),
                    hob__reason_hint(record->reason));
    else if (strcmp(instance->plugin->table.version, child->target->version) !=
             0)
        check_found(child, CHECK_MANIFEST,
                    "the library's version is %s, the manifest's %s",
                    instance->plugin->table.version, child->target->version);
    hob_error_release(&error);
    if (!status) {
        check_conditions(child, instance->plugin);
        check_signatures(child, runtime, instance->plugin);
    }
    return !status;
}

/* ---- jobs ---- */

/* Whether the target has a kernel for op NAME that LAYER may use. */
static int implements(const struct hob__candidate *candidate, const char *name,
                      const hob_device *layer)
{
    const struct hob__manifest *manifest = candidate->manifest;

    for (uint32_t i = 0; i < manifest->implements_count; i++) {
        const char *selector = manifest->implements[i].selector;

        if (!strcmp(manifest->implements[i].op, name) &&
            (!strcmp(selector, "*") || !strcmp(selector, layer->selector) ||
             (layer->family && !strcmp(selector, layer->family))))
            return 1;
    }
    return 0;
}

int check_is_wanted(const struct check_options *options, const char *name)
{
    const char *wanted = options->op;
    const char *dot = strrchr(name, '.');

    return !wanted || !strcmp(wanted, name) ||
           (dot && !strcmp(wanted, dot + 1));
}

static int has_signature(const struct hob__op *op,
                         const struct hob_entry *entry)
{
    char why[160];
    int serves = !strcmp(entry->signature, op->flat) ||
                 hob__signature_serves(&op->signature, entry->signature, why,
                                       sizeof(why));

    return serves;
}

/* Say so if CANDIDATE's kernel for OP, which somebody else declares, is never
 * asked on BASE: ROUTE has another's. */
static void note_unused(struct check_child *child,
                        const struct hob__candidate *candidate,
                        const struct hob__op *op, const hob_device *base,
                        const struct hob__route *route)
{
    const struct hob__plugin *plugin = hob__candidate_plugin(candidate);

    for (uint32_t i = 0; plugin && i < plugin->extension.implements_count;
         i++) {
        const struct hob_extension_op *one = &plugin->extension.implements[i];

        for (uint32_t k = 0;
             !strcmp(one->name, op->name) && k < one->impl_count; k++)
            if (!one->impls[k].entry || one->impls[k].entry == route->entry ||
                !has_signature(op, one->impls[k].entry))
                return;
    }
    check_note(child,
               "%s: %s has a kernel of its own, so yours is used only if "
               "\"priority\" in the manifest is above 0",
               op->name, base->selector);
}

/* List what can be tried on DEVICE. */
static void add_jobs(struct check_child *child, hob_device *device,
                     uint8_t *tried)
{
    hob_device *base = device->at[0];
    hob_runtime *runtime = device->runtime;
    struct check_shared *shared = child->shared;
    const struct hob__candidate *candidate =
        hob__loader_find_id(runtime->loader, child->target->id);

    for (uint32_t i = 0; i < child->target->op_count; i++) {
        const struct check_op *one = &child->target->ops[i];
        const struct hob__op *op =
            hob__registry_find(&runtime->registry, one->name);
        const struct hob__route *route = op ? hob__route_get(base, op) : NULL;
        struct check_job *job = &shared->jobs[shared->job_count];

        if (!route || !check_is_wanted(child->options, one->name))
            continue;
        if (route->status)
            check_found(child, CHECK_LOAD, "%s: %s", one->name, route->message);
        if (route->status || (!route->entry && !route->body) ||
            (!op->is_extension && !one->is_foreign && !route->entry) ||
            (one->is_foreign && !implements(candidate, one->name, base)) ||
            shared->job_count == CHECK_JOBS_MAX)
            continue;
        if (one->is_foreign)
            note_unused(child, candidate, op, base, route);
        tried[i] = 1;
        job->op = i;
        (void)snprintf(job->device, sizeof(job->device), "%s", device->name);
        shared->job_count++;
    }
}

struct visit {
    struct check_child *child;
    hob_runtime *runtime;
    uint8_t *tried;
};

static void try_device(struct visit *visit, const char *spec, int is_asked)
{
    const char *layer = visit->child->target->layer;
    hob_device *device = NULL;
    hob_error error = HOB_ERROR_INIT;
    char stack[2 * CHECK_NAME];

    if (layer && !strchr(spec, '(')) {
        (void)snprintf(stack, sizeof(stack), "%s(%s)", layer, spec);
        spec = stack;
    }
    if (!hob_device_open(visit->runtime, spec, &device, &error))
        add_jobs(visit->child, layer ? device : device->at[0], visit->tried);
    if (error.message && is_asked) {
        visit->child->shared->device_failed = 1;
        check_note(visit->child, "%s cannot be opened: %s", spec,
                   hob__error_text(&error));
    } else if (error.message && layer) {
        check_found(visit->child, CHECK_LOAD, "%s cannot be opened: %s", spec,
                    hob__error_text(&error));
    }
    hob_error_release(&error);
    hob_device_unref(device);
}

static int visit_device(void *context, const struct hob_device_record *record)
{
    if (!record->problem)
        try_device(context, record->spec, 0);
    return 0;
}

/* A pattern that the core cannot read it leaves out. */
static void read_patterns(struct check_child *child, hob_runtime *runtime)
{
    const struct hob__candidate *candidate =
        hob__loader_find_id(runtime->loader, child->target->id);
    const struct hob__manifest *manifest =
        candidate ? candidate->manifest : NULL;

    for (uint32_t i = 0; manifest && i < manifest->pattern_count; i++) {
        struct hob_pattern *pattern;
        hob_error error = HOB_ERROR_INIT;
        hob_status status =
            hob__pattern_read(&runtime->registry, manifest->patterns[i].replace,
                              manifest->patterns[i].with, &pattern, &error);

        if (status == HOB_ERR_NOT_FOUND)
            check_note(child, "%s", hob__error_text(&error));
        else if (status)
            check_found(child, CHECK_MANIFEST, "line %d, column %d: %s",
                        manifest->patterns[i].place.line,
                        manifest->patterns[i].place.column,
                        hob__error_text(&error));
        hob__pattern_free(pattern);
        hob_error_release(&error);
    }
}

static void list_jobs(struct check_child *child, hob_runtime *runtime)
{
    const struct check_options *options = child->options;
    const struct check_target *target = child->target;
    uint8_t *tried = calloc(target->op_count + 1u, 1);
    struct visit visit = {child, runtime, tried};

    if (!tried)
        return;
    for (uint32_t i = 0; i < options->device_count; i++)
        try_device(&visit, options->devices[i], 1);
    if (!options->device_count)
        hob_runtime_devices(runtime, visit_device, &visit);
    for (uint32_t i = 0; i < target->op_count; i++)
        if (!tried[i] && check_is_wanted(child->options, target->ops[i].name))
            check_note(child, "%s is not checked: no device here serves it",
                       target->ops[i].name);
    free(tried);
    check_selectors(child, runtime);
    read_patterns(child, runtime);
}

void check_load(struct check_child *child)
{
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime = NULL;
    void *handle = file_is_sound(child) ? open_watched(child) : NULL;

    child->shared->job_count = 0;
    if (handle && check_runtime_open(child, &runtime, &error))
        check_note(child, "%s", hob__error_text(&error));
    hob_error_release(&error);
    if (!runtime)
        return;
    check_entry_of(child, handle, runtime);
    if (load(child, runtime))
        list_jobs(child, runtime);
    if (hob_runtime_close(runtime, &error))
        check_found(child, CHECK_LEAK, "%s", hob__error_text(&error));
    hob_error_release(&error);
}
