/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selection.c - which of the found candidates serve, and why the others do
 * not. The order of the checks is the order of the reasons that a user sees:
 * what somebody wanted, then what the machine is, then what others need.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_internal.h"
#include "paths.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

typedef hob_status check_fn(struct hob__loader *loader,
                            struct hob__found *found);

hob_status hob__found_set(struct hob__loader *loader, struct hob__found *found,
                          enum hob__state state, enum hob__reason reason,
                          const char *format, ...)
{
    va_list args;

    found->state = state;
    found->reason = reason;
    if (!format)
        return HOB_OK;
    va_start(args, format);
    found->detail = hob__arena_vprintf(&loader->arena, format, args);
    va_end(args);
    return found->detail ? HOB_OK : HOB_ERR_MEMORY;
}

static bool any_matches(const struct hob__strings *patterns, const char *id)
{
    uint32_t i;

    for (i = 0; i < patterns->count; i++) {
        if (hob__pattern_matches(patterns->items[i], id))
            return true;
    }
    return false;
}

/* Environment first, then the config; what names one id beats a pattern. */
enum hob__reason hob__enabled_reason(const struct hob__env *env,
                                     const struct hob__conf *conf,
                                     const char *id)
{
    const struct hob__conf_plugin *own = hob__conf_find(conf, id);
    enum hob__tristate enabled = own ? own->enabled : HOB__UNSET;
    const struct hob__strings *only =
        env->only.count ? &env->only : &conf->only;

    if (any_matches(&env->disable, id))
        return HOB__REASON_DISABLED_ENV;
    if (only->count && !any_matches(only, id))
        return HOB__REASON_NOT_SELECTED;
    if (enabled == HOB__NO ||
        (enabled == HOB__UNSET && any_matches(&conf->disabled, id) &&
         !any_matches(&conf->enabled, id)))
        return HOB__REASON_DISABLED_CONFIG;
    return HOB__REASON_OK;
}

static hob_status check_enabled(struct hob__loader *loader,
                                struct hob__found *found)
{
    enum hob__reason reason =
        hob__enabled_reason(&loader->env, &loader->conf, found->candidate.id);

    if (!reason)
        return HOB_OK;
    return hob__found_set(loader, found, HOB__STATE_DISABLED, reason, NULL);
}

static hob_status check_abi(struct hob__loader *loader,
                            struct hob__found *found)
{
    const struct hob__plugin_host host = {HOB_ABI_MAJOR, HOB_ABI_MINOR, 0};
    const struct hob__manifest_abi *abi = &found->manifest->abi;
    enum hob__reason reason;

    hob__abi_check(&host, abi->major, abi->required_minor, abi->built_minor,
                   &reason);
    if (!reason)
        return HOB_OK;
    return hob__found_set(loader, found, HOB__STATE_REFUSED, reason,
                          "the plugin is made for ABI %" PRIu32 ".%" PRIu32
                          ", this Hob has %d.%d",
                          abi->major, abi->required_minor, HOB_ABI_MAJOR,
                          HOB_ABI_MINOR);
}

/* A pin is a version, or a hash that the library must have at loading. */
static hob_status check_pin(struct hob__loader *loader,
                            struct hob__found *found)
{
    const struct hob__conf_plugin *conf = found->candidate.conf;
    const char *pin = conf ? conf->pin : NULL;
    bool is_hash = pin && (!strncmp(pin, "sha256:", 7) || strlen(pin) == 64);

    if (!pin)
        return HOB_OK;
    if (is_hash) {
        pin += strncmp(pin, "sha256:", 7) ? 0 : 7;
        if (found->candidate.sha256 && strcmp(found->candidate.sha256, pin))
            return hob__found_set(loader, found, HOB__STATE_REFUSED,
                                  HOB__REASON_PIN_MISMATCH,
                                  "pinned to %s, the manifest says %s", pin,
                                  found->candidate.sha256);
        found->candidate.sha256 = pin;
        return HOB_OK;
    }
    if (!strcmp(pin, found->manifest->version))
        return HOB_OK;
    return hob__found_set(loader, found, HOB__STATE_REFUSED,
                          HOB__REASON_PIN_MISMATCH, "pinned to %s, this is %s",
                          pin, found->manifest->version);
}

static hob_status check_machine(struct hob__loader *loader,
                                struct hob__found *found)
{
    const struct hob__manifest *manifest = found->manifest;
    const struct hob__strings *needs = &manifest->backend.needs;
    const char *lacks = hob__cpu_lacks(loader->os, &manifest->needs.cpu);
    uint32_t i;

    if (lacks)
        return hob__found_set(loader, found, HOB__STATE_NOT_APPLICABLE,
                              HOB__REASON_CPU_FEATURE, "%s", lacks);
    for (i = 0; i < needs->count; i++) {
        if (!hob__ldcache_has(&loader->ldcache, loader->os,
                              &loader->env.library_path, needs->items[i]))
            return hob__found_set(loader, found, HOB__STATE_NOT_APPLICABLE,
                                  HOB__REASON_NEEDS_MISSING, "%s",
                                  needs->items[i]);
    }
    return HOB_OK;
}

static bool has_file(struct hob__loader *loader, const struct hob__found *found,
                     const char *path, hob_status *out_status)
{
    struct hob_os_stat stat;
    char *dir = NULL;

    *out_status = HOB_OK;
    if (!hob__path_is_absolute(loader->os, path)) {
        dir = hob__path_dir(&loader->arena, found->candidate.real_path);
        path = dir ? hob__path_join(&loader->arena, dir, path) : NULL;
        if (!path) {
            *out_status = HOB_ERR_MEMORY;
            return false;
        }
    }
    return !loader->os->path_stat(loader->os->self, path, true, &stat);
}

/* requires.host and requires.files; this Hob has no optional features yet. */
static hob_status check_requires(struct hob__loader *loader,
                                 struct hob__found *found)
{
    const struct hob__manifest_requires *needs = &found->manifest->needs;
    hob_status st = HOB_OK;
    uint32_t i;

    if (needs->host.count)
        return hob__found_set(loader, found, HOB__STATE_REFUSED,
                              HOB__REASON_REQUIRES_HOST, "%s",
                              needs->host.items[0]);
    for (i = 0; i < needs->files.count && !st; i++) {
        if (!has_file(loader, found, needs->files.items[i], &st) && !st)
            return hob__found_set(loader, found, HOB__STATE_NOT_APPLICABLE,
                                  HOB__REASON_REQUIRES_FILE, "%s",
                                  needs->files.items[i]);
    }
    return st;
}

static bool serves(const struct hob__found *found)
{
    return found->state == HOB__STATE_DISCOVERED;
}

/* Only one that serves hides a later one: a broken copy hides nothing (P3). */
static hob_status check_shadow(struct hob__loader *loader,
                               struct hob__found *all, uint32_t index)
{
    uint32_t i;

    for (i = 0; i < index; i++) {
        if (serves(&all[i]) &&
            !strcmp(all[i].candidate.id, all[index].candidate.id))
            return hob__found_set(loader, &all[index], HOB__STATE_SHADOWED,
                                  HOB__REASON_SHADOWED, "by %s",
                                  all[i].candidate.path);
    }
    return HOB_OK;
}

/* The op that both declare, or NULL. */
static const char *common_op(const struct hob__manifest *a,
                             const struct hob__manifest *b)
{
    uint32_t i, j;

    if (!a->name_space || !b->name_space ||
        strcmp(a->name_space, b->name_space))
        return NULL;
    for (i = 0; i < a->op_count; i++) {
        for (j = 0; j < b->op_count; j++) {
            if (!strcmp(a->ops[i].full_name, b->ops[j].full_name))
                return a->ops[i].full_name;
        }
    }
    return NULL;
}

/* An op has one author: who comes later with it is refused whole. */
static hob_status check_ops(struct hob__loader *loader, struct hob__found *all,
                            uint32_t index)
{
    uint32_t i;

    for (i = 0; i < index; i++) {
        const char *op = serves(&all[i])
                             ? common_op(all[index].manifest, all[i].manifest)
                             : NULL;

        if (op)
            return hob__found_set(loader, &all[index], HOB__STATE_REFUSED,
                                  HOB__REASON_OP_TAKEN, "%s is declared by %s",
                                  op, all[i].candidate.id);
    }
    return HOB_OK;
}

static bool lists(const struct hob__strings *list, const char *id)
{
    uint32_t i;

    for (i = 0; i < list->count; i++) {
        if (!strcmp(list->items[i], id))
            return true;
    }
    return false;
}

/* Either side may declare it; the one that was found first stays. */
static hob_status check_conflicts(struct hob__loader *loader,
                                  struct hob__found *all, uint32_t index)
{
    struct hob__found *found = &all[index];
    uint32_t i;

    for (i = 0; i < index; i++) {
        if (serves(&all[i]) &&
            (lists(&found->manifest->conflicts, all[i].candidate.id) ||
             lists(&all[i].manifest->conflicts, found->candidate.id)))
            return hob__found_set(loader, found, HOB__STATE_REFUSED,
                                  HOB__REASON_CONFLICT, "with %s",
                                  all[i].candidate.id);
    }
    return HOB_OK;
}

static bool has_plugin(const struct hob__found *all, uint32_t count,
                       const struct hob__manifest_dependency *plugin)
{
    bool valid;
    uint32_t i;

    for (i = 0; i < count; i++) {
        if (serves(&all[i]) && !strcmp(all[i].candidate.id, plugin->id) &&
            hob__semver_in_range(&all[i].manifest->semver, plugin->range,
                                 &valid))
            return true;
    }
    return false;
}

/* A plugin offers an interface by the capability "NAME/VERSION". */
static bool has_interface(const struct hob__found *all, uint32_t count,
                          const struct hob__manifest_interface *interface)
{
    char version[16];
    size_t length = strlen(interface->name);
    uint32_t i, j;

    (void)snprintf(version, sizeof(version), "/%" PRIu32, interface->version);
    for (i = 0; i < count; i++) {
        const struct hob__strings *list;

        if (!serves(&all[i]))
            continue;
        list = &all[i].manifest->capabilities;
        for (j = 0; j < list->count; j++) {
            if (!strncmp(list->items[j], interface->name, length) &&
                !strcmp(list->items[j] + length, version))
                return true;
        }
    }
    return false;
}

static hob_status check_others(struct hob__loader *loader,
                               struct hob__found *all, uint32_t count,
                               struct hob__found *found)
{
    const struct hob__manifest_requires *needs = &found->manifest->needs;
    uint32_t i;

    for (i = 0; i < needs->plugin_count; i++) {
        if (!has_plugin(all, count, &needs->plugins[i]))
            return hob__found_set(
                loader, found, HOB__STATE_REFUSED, HOB__REASON_REQUIRES_PLUGIN,
                "%s %s", needs->plugins[i].id, needs->plugins[i].range);
    }
    for (i = 0; i < needs->interface_count; i++) {
        if (!has_interface(all, count, &needs->interfaces[i]))
            return hob__found_set(
                loader, found, HOB__STATE_REFUSED,
                HOB__REASON_REQUIRES_INTERFACE, "%s version %" PRIu32,
                needs->interfaces[i].name, needs->interfaces[i].version);
    }
    return HOB_OK;
}

/* One refusal can cause others, so go on until nothing changes. */
static hob_status check_dependencies(struct hob__loader *loader,
                                     struct hob__found *all, uint32_t count)
{
    bool changed = true;
    hob_status st = HOB_OK;
    uint32_t i;

    while (changed && !st) {
        changed = false;
        for (i = 0; i < count && !st; i++) {
            if (!serves(&all[i]))
                continue;
            st = check_others(loader, all, count, &all[i]);
            changed = changed || !serves(&all[i]);
        }
    }
    return st;
}

static hob_status check_alone(struct hob__loader *loader,
                              struct hob__found *found)
{
    static check_fn *const checks[] = {check_enabled,       check_abi,
                                       hob__select_library, check_pin,
                                       check_machine,       check_requires};
    hob_status st = HOB_OK;
    size_t i;

    found->candidate.conf = hob__conf_find(&loader->conf, found->candidate.id);
    if (found->candidate.conf) {
        found->candidate.critical = found->candidate.conf->critical == HOB__YES;
        if (found->candidate.conf->has_priority)
            found->candidate.priority = found->candidate.conf->priority;
    }
    for (i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        if (serves(found) && !st)
            st = checks[i](loader, found);
    }
    return st;
}

static hob_status note_unused(struct hob__loader *loader,
                              const struct hob__strings *patterns,
                              const struct hob__found *all, uint32_t count,
                              const char *where)
{
    hob_status st = HOB_OK;
    uint32_t i, j;

    for (i = 0; i < patterns->count && !st; i++) {
        const char *pattern = patterns->items[i];

        for (j = 0; j < count; j++) {
            if (all[j].candidate.id &&
                hob__pattern_matches(pattern, all[j].candidate.id))
                break;
        }
        if (j == count)
            st = hob__env_add_note(
                &loader->env, where, HOB__REASON_PATTERN_UNUSED,
                hob__arena_printf(&loader->arena, "\"%s\"", pattern));
    }
    return st;
}

hob_status hob__select(struct hob__loader *loader, struct hob__found *found,
                       uint32_t count)
{
    static hob_status (*const among[])(struct hob__loader *,
                                       struct hob__found *, uint32_t) = {
        check_shadow, check_ops, check_conflicts};
    hob_status st = HOB_OK;
    uint32_t i;
    size_t j;

    for (i = 0; i < count && !st; i++) {
        if (found[i].manifest)
            st = check_alone(loader, &found[i]);
    }
    /* Before they could hide others, and again when others were hidden. */
    if (!st)
        st = check_dependencies(loader, found, count);
    for (i = 0; i < count && !st; i++) {
        for (j = 0; j < sizeof(among) / sizeof(among[0]); j++) {
            if (!st && found[i].manifest && serves(&found[i]))
                st = among[j](loader, found, i);
        }
    }
    if (!st)
        st = check_dependencies(loader, found, count);
    for (i = 0; i < count && !st; i++) {
        /* It serves, but with a remark. */
        if (serves(&found[i]) && found[i].warning)
            st = hob__found_set(loader, &found[i], HOB__STATE_DISCOVERED,
                                HOB__REASON_UNTRUSTED, "%s", found[i].warning);
    }
    if (!st)
        st = note_unused(loader, &loader->env.disable, found, count,
                         "HOB_PLUGINS_DISABLE");
    if (!st)
        st = note_unused(loader, &loader->env.only, found, count,
                         "HOB_PLUGINS_ONLY");
    if (!st)
        st = note_unused(loader, &loader->conf.only, found, count,
                         "plugins.only");
    return st ? st
              : note_unused(loader, &loader->conf.disabled, found, count,
                            "plugins.disabled");
}
