/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "plugin.h"

#include "plugin_lists.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* What every version of a table has: up to its last required member. */
enum {
    PLUGIN_SIZE_MIN = offsetof(struct hob_plugin, parts),
    BACKEND_SIZE_MIN = offsetof(struct hob_backend, sync),
    DECORATOR_SIZE_MIN = offsetof(struct hob_decorator, state_release),
    EXTENSION_SIZE_MIN = offsetof(struct hob_extension, implements)
};

/* Stand in for what a plugin leaves out, so that callers test nothing. */
static hob_status stub_open(const struct hob_host *host, const char *options,
                            void **out_instance, char **out_message)
{
    (void)host;
    (void)options;
    (void)out_message;
    *out_instance = NULL;
    return HOB_OK;
}

static void stub_close(void *instance)
{
    (void)instance;
}

static hob_status stub_device_info(void *instance, uint32_t ordinal,
                                   struct hob_device_info *out)
{
    (void)instance;
    (void)ordinal;
    (void)out;
    return HOB_ERR_UNSUPPORTED;
}

static hob_status stub_sync(void *device)
{
    (void)device;
    return HOB_OK;
}

static const void *stub_interface(void *object, const char *name,
                                  uint32_t version)
{
    (void)object;
    (void)name;
    (void)version;
    return NULL;
}

static void stub_state_release(void *layer, void *state)
{
    (void)layer;
    (void)state;
}

static void *stub_state_retain(void *layer, void *state)
{
    (void)layer;
    return state;
}

static hob_status refuse(const struct hob__plugin_checking *check,
                         enum hob__reason reason, const char *what)
{
    *check->out_reason = reason;
    return hob_error_set(check->error, HOB_ERR_PLUGIN, "%s: %s", check->path,
                         what);
}

/* Copy what both sides know of SOURCE; the rest of TARGET is zero (NEG-5). */
static hob_status copy_table(const struct hob__plugin_checking *check,
                             const char *name, const void *source, void *target,
                             uint32_t target_size, uint32_t least)
{
    uint32_t size;

    memcpy(&size, source, sizeof(size));
    memset(target, 0, target_size);
    if (size < least)
        return hob__plugin_too_short(check, name, size, least);
    memcpy(target, source, size < target_size ? size : target_size);
    return HOB_OK;
}

struct hob__plugin_host hob__plugin_host_self(const struct hob_os_ops *os)
{
    struct hob__plugin_host host = {HOB_ABI_MAJOR, HOB_ABI_MINOR, 0};

    if (os->has_symbol(os->self, "__asan_init"))
        host.sanitizers |= HOB_SANITIZER_ADDRESS;
    if (os->has_symbol(os->self, "__tsan_init"))
        host.sanitizers |= HOB_SANITIZER_THREAD;
    return host;
}

void hob__abi_check(const struct hob__plugin_host *host, uint32_t major,
                    uint32_t minor_required, uint32_t minor_built,
                    enum hob__reason *out_reason)
{
    *out_reason = HOB__REASON_OK;
    if (major != host->abi_major)
        *out_reason = HOB__REASON_MAJOR;
    else if (minor_required > host->abi_minor ||
             (major == 0 && minor_built != host->abi_minor))
        *out_reason = HOB__REASON_MINOR;
}

/* The first members, which every version has at the same place. */
static hob_status check_head(const struct hob__plugin_checking *check,
                             const struct hob_plugin *table,
                             const struct hob__plugin_host *host)
{
    if (table->magic != HOB_PLUGIN_MAGIC)
        return refuse(check, HOB__REASON_MAGIC, "no magic number");
    hob__abi_check(host, table->abi_major, table->abi_minor_required,
                   table->abi_minor_built, check->out_reason);
    if (*check->out_reason != HOB__REASON_OK)
        return hob_error_set(check->error, HOB_ERR_PLUGIN,
                             "%s: made for ABI %u.%u (needs %u.%u), this Hob "
                             "has %" PRIu32 ".%" PRIu32,
                             check->path, table->abi_major,
                             table->abi_minor_built, table->abi_major,
                             table->abi_minor_required, host->abi_major,
                             host->abi_minor);
    if (table->struct_size < PLUGIN_SIZE_MIN)
        return hob__plugin_too_short(check, "the plugin table",
                                     table->struct_size, PLUGIN_SIZE_MIN);
    if (table->sanitizers & ~host->sanitizers)
        return refuse(check, HOB__REASON_SANITIZER,
                      "built with a sanitizer that this process lacks");
    return HOB_OK;
}

static hob_status check_identity(const struct hob__plugin_checking *check,
                                 const struct hob_plugin *table,
                                 const struct hob__manifest *manifest,
                                 struct hob__text *notes)
{
    if (!table->id || !table->version)
        return hob__plugin_lacks(check, table->id ? "version" : "id");
    if (strcmp(table->id, manifest->id) != 0) {
        *check->out_reason = HOB__REASON_ID_MISMATCH;
        return hob_error_set(check->error, HOB_ERR_PLUGIN,
                             "%s: the library says \"%s\", the manifest "
                             "\"%s\"",
                             check->path, table->id, manifest->id);
    }
    if (strcmp(table->version, manifest->version) != 0)
        hob__text_printf(notes, "the library says %s, the manifest %s",
                         table->version, manifest->version);
    return HOB_OK;
}

static hob_status check_backend(const struct hob__plugin_checking *check,
                                struct hob__plugin *plugin)
{
    struct hob_backend *backend = &plugin->backend;
    hob_status st =
        copy_table(check, "the backend table", plugin->table.backend, backend,
                   sizeof(*backend), BACKEND_SIZE_MIN);

    if (st)
        return st;
    plugin->table.backend = backend;
    if (!backend->device_count)
        return hob__plugin_lacks(check, "backend.device_count");
    if (!backend->device_open)
        return hob__plugin_lacks(check, "backend.device_open");
    if (!backend->device_close)
        return hob__plugin_lacks(check, "backend.device_close");
    if (!backend->alloc)
        return hob__plugin_lacks(check, "backend.alloc");
    if (!backend->free)
        return hob__plugin_lacks(check, "backend.free");
    if (!backend->upload)
        return hob__plugin_lacks(check, "backend.upload");
    if (!backend->download)
        return hob__plugin_lacks(check, "backend.download");
    if (!backend->device_info)
        backend->device_info = stub_device_info;
    if (!backend->sync)
        backend->sync = stub_sync;
    if (!backend->interface)
        backend->interface = stub_interface;
    return hob__plugin_copy_entries(check, backend);
}

static hob_status check_decorator(const struct hob__plugin_checking *check,
                                  struct hob__plugin *plugin)
{
    struct hob_decorator *decorator = &plugin->decorator;
    hob_status st =
        copy_table(check, "the decorator table", plugin->table.decorator,
                   decorator, sizeof(*decorator), DECORATOR_SIZE_MIN);

    if (st)
        return st;
    plugin->table.decorator = decorator;
    if (!decorator->layer_open)
        return hob__plugin_lacks(check, "decorator.layer_open");
    if (!decorator->layer_close)
        return hob__plugin_lacks(check, "decorator.layer_close");
    if (!decorator->call)
        return hob__plugin_lacks(check, "decorator.call");
    if (!decorator->state_release)
        decorator->state_release = stub_state_release;
    if (!decorator->state_retain)
        decorator->state_retain = stub_state_retain;
    if (!decorator->interface)
        decorator->interface = stub_interface;
    return HOB_OK;
}

static hob_status check_extension(const struct hob__plugin_checking *check,
                                  struct hob__plugin *plugin)
{
    struct hob_extension *extension = &plugin->extension;
    hob_status st =
        copy_table(check, "the extension table", plugin->table.extension,
                   extension, sizeof(*extension), EXTENSION_SIZE_MIN);

    if (st)
        return st;
    plugin->table.extension = extension;
    return hob__plugin_copy_ops(check, extension);
}

/* Parts that this core does not know, which today are all (NEG-7). The walk is
 * bounded, since a list that a plugin built wrongly may be a ring. */
static hob_status check_parts(const struct hob__plugin_checking *check,
                              const struct hob_plugin_part *part)
{
    enum { PARTS_MAX = 64 };
    uint32_t i;

    for (i = 0; part; part = part->next, i++) {
        if (i == PARTS_MAX)
            return refuse(check, HOB__REASON_UNKNOWN_PART,
                          "the list of parts does not end");
        if (!(part->flags & HOB_PART_MUST))
            continue;
        *check->out_reason = HOB__REASON_UNKNOWN_PART;
        return hob_error_set(check->error, HOB_ERR_PLUGIN,
                             "%s: the part \"%s\" must be understood",
                             check->path, part->name ? part->name : "");
    }
    return HOB_OK;
}

/* The table must be what the manifest's kind says; it may be more. */
static hob_status check_kind(const struct hob__plugin_checking *check,
                             const struct hob__plugin *plugin)
{
    static const char *const texts[] = {
        "the manifest says backend, the table has none",
        "the manifest says decorator, the table has none",
        "the manifest says extension, the table has none"};
    const void *const tables[] = {plugin->table.backend,
                                  plugin->table.decorator,
                                  plugin->table.extension};

    if (tables[plugin->manifest->kind])
        return HOB_OK;
    return refuse(check, HOB__REASON_KIND_MISMATCH,
                  texts[plugin->manifest->kind]);
}

static hob_status check_tables(const struct hob__plugin_checking *check,
                               struct hob__plugin *plugin)
{
    hob_status st = check_kind(check, plugin);

    if (!plugin->table.open)
        plugin->table.open = stub_open;
    if (!plugin->table.close)
        plugin->table.close = stub_close;
    if (!st && plugin->table.backend)
        st = check_backend(check, plugin);
    if (!st && plugin->table.decorator)
        st = check_decorator(check, plugin);
    if (!st && plugin->table.extension)
        st = check_extension(check, plugin);
    return st;
}

hob_status hob__plugin_check(const struct hob_plugin *table, const char *path,
                             const struct hob__plugin_host *host,
                             struct hob__plugin *out_plugin,
                             struct hob__text *notes,
                             enum hob__reason *out_reason, hob_error *error)
{
    const struct hob__plugin_checking check = {path, &out_plugin->copies,
                                               out_reason, error};
    hob_status st;

    *out_reason = HOB__REASON_OK;
    if (!table)
        return refuse(&check, HOB__REASON_NO_TABLE,
                      "hob_plugin_entry returned NULL");
    st = check_head(&check, table, host);
    if (st)
        return st;
    memset(&out_plugin->table, 0, sizeof(out_plugin->table));
    memcpy(&out_plugin->table, table,
           table->struct_size < sizeof(out_plugin->table)
               ? table->struct_size
               : sizeof(out_plugin->table));
    st =
        check_identity(&check, &out_plugin->table, out_plugin->manifest, notes);
    if (!st)
        st = check_parts(&check, out_plugin->table.parts);
    if (!st)
        st = check_tables(&check, out_plugin);
    if (st)
        hob__plugin_release(out_plugin);
    return st;
}

void hob__plugin_release(struct hob__plugin *plugin)
{
    if (!plugin)
        return;
    hob__arena_release(&plugin->copies);
    memset(&plugin->table, 0, sizeof(plugin->table));
    memset(&plugin->backend, 0, sizeof(plugin->backend));
    memset(&plugin->decorator, 0, sizeof(plugin->decorator));
    memset(&plugin->extension, 0, sizeof(plugin->extension));
}
