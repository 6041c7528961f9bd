/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enable.c - switching a plugin off and on in hob.json.
 *
 * What is set is "enabled" of the one plugin, not the list "disabled": a list
 * replaces that of the files before it, so adding to the user's would switch
 * on what the system's switches off.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "install.h"

#include "conf_edit.h"
#include "error.h"
#include "file_write.h"
#include "loader_internal.h"
#include "paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MAX = 1 << 20 };

/* A config file, in the order in which they are merged. */
struct layer {
    const char *path;
    bool is_system;
};

struct change {
    const struct hob_os_ops *os;
    struct hob__loader *loader; /* owned: what is installed */
    struct hob__arena arena;
    const char *id;
    bool enabled; /* wanted */
    const char *sysconf_dir;
    struct layer *layers;
    uint32_t layer_count;
    uint32_t target; /* the layer that is changed */
    char *text;      /* owned: of that file; NULL: there is none */
    size_t size;
    int lock;
    hob_error *error;
};

static hob_status no_memory(const struct change *change)
{
    return hob_error_set(change->error, HOB_ERR_MEMORY,
                         "config: out of memory");
}

static const char *target_path(const struct change *change)
{
    return change->layers[change->target].path;
}

static void drop_message(void *context, enum hob__severity severity,
                         const char *module, const char *message)
{
    (void)context;
    (void)severity;
    (void)module;
    (void)message;
}

/* ---- where ---- */

static hob_status add_layer(struct change *change, const char *dir,
                            bool is_system)
{
    const char *path = hob__path_join(&change->arena, dir, "hob/hob.json");

    change->layers[change->layer_count++] = (struct layer){path, is_system};
    return path ? HOB_OK : no_memory(change);
}

/* The files of hob__conf_read_files(), in its order. */
static hob_status find_layers(struct change *change, uint32_t where)
{
    const struct hob__env *env = &change->loader->env;
    const struct hob__strings *dirs = &env->xdg_config_dirs;
    hob_status st;

    change->layers = hob__arena_array(&change->arena, (size_t)dirs->count + 3,
                                      sizeof(*change->layers));
    st = change->layers ? add_layer(change, change->sysconf_dir, true)
                        : no_memory(change);
    for (uint32_t i = dirs->count; i > 0 && !st; i--)
        st = add_layer(change, dirs->items[i - 1], true);
    if (!st && where != HOB_INSTALL_SYSTEM) {
        if (!env->xdg_config_home)
            return hob_error_set(change->error, HOB_ERR_IO,
                                 "no folder for the user's config: neither "
                                 "HOME nor XDG_CONFIG_HOME is an absolute "
                                 "path");
        change->target = change->layer_count;
    }
    if (!st && env->xdg_config_home)
        st = add_layer(change, env->xdg_config_home, false);
    if (!st && env->config)
        change->layers[change->layer_count++] =
            (struct layer){env->config, false};
    return st;
}

static hob_status open_loader(struct change *change, uint32_t where)
{
    struct hob__loader_options options = {.log_sink = drop_message};
    hob_status st;

    options.sysconf_dir = change->sysconf_dir;
    st = hob__loader_open(&options, change->os, &change->loader, change->error);
    if (!st && where == HOB_INSTALL_DEFAULT && change->loader->env.is_root)
        st = hob_error_set(change->error, HOB_ERR_ARGUMENT,
                           "root has to choose: --user or --system");
    if (!st && where > HOB_INSTALL_SYSTEM)
        st = hob_error_set(change->error, HOB_ERR_ARGUMENT,
                           "config: no place has the number %u",
                           (unsigned)where);
    return st;
}

/* ---- what ---- */

/* The plugin's id, if somebody named its selector; else the nearest. */
static const char *meant(struct change *change)
{
    uint32_t count = hob__loader_count(change->loader), id_count = 0;
    const char **ids = hob__arena_array(&change->arena, count, sizeof(*ids));

    for (uint32_t i = 0; i < count && ids; i++) {
        const struct hob__candidate *one = hob__loader_get(change->loader, i);
        const char *selector =
            one->manifest ? hob__manifest_selector_name(one->manifest) : NULL;

        if (selector && !strcmp(selector, change->id))
            return one->id;
        if (one->id)
            ids[id_count++] = one->id;
    }
    return ids ? hob__nearest_name(change->id, ids, id_count) : NULL;
}

static hob_status check_id(struct change *change)
{
    const char *other;

    if (hob__loader_find_id(change->loader, change->id))
        return HOB_OK;
    other = meant(change);
    if (other)
        return hob_error_set(change->error, HOB_ERR_NOT_FOUND,
                             "no plugin has the id \"%s\": did you mean "
                             "\"%s\"?",
                             change->id, other);
    return hob_error_set(change->error, HOB_ERR_NOT_FOUND,
                         "no plugin has the id \"%s\"; hob plugins --all "
                         "lists them",
                         change->id);
}

/* Read the file that is to be changed, and refuse what cannot be parsed. */
static hob_status read_target(struct change *change)
{
    const struct layer *layer = &change->layers[change->target];
    const struct hob_os_ops *os = change->os;
    struct hob_os_stat stat = {0};
    enum hob__reason reason;
    struct hob__conf conf;
    hob_status st;

    if (os->path_stat(os->self, layer->path, true, &stat) == -ENOENT)
        return HOB_OK;
    st = hob__file_read(os, layer->path, CONFIG_MAX, &change->text,
                        &change->size, &stat, &reason, change->error);
    if (!st && !layer->is_system && change->loader->env.is_root &&
        stat.owner != 0)
        st = hob_error_set(change->error, HOB_ERR_CONFIG,
                           "%s: root does not change another user's config",
                           layer->path);
    hob__conf_init(&conf, os);
    if (!st)
        st = hob__conf_merge(&conf, layer->path, change->text, change->size,
                             layer->is_system, change->error);
    hob__conf_release(&conf);
    return st;
}

/* Merge layer INDEX; as for a runtime, a broken one is left out. */
static hob_status merge_layer(struct change *change, struct hob__conf *conf,
                              uint32_t index)
{
    const struct layer *layer = &change->layers[index];
    struct hob_os_stat stat = {0};
    enum hob__reason reason;
    size_t size = 0;
    char *text = NULL;
    hob_status st = hob__file_read(change->os, layer->path, CONFIG_MAX, &text,
                                   &size, &stat, &reason, NULL);

    if (!st)
        st = hob__conf_merge(conf, layer->path, text, size, layer->is_system,
                             NULL);
    free(text);
    return st == HOB_ERR_MEMORY ? no_memory(change) : HOB_OK;
}

/* Why the plugin is off if TEXT is the changed file's and the first COUNT
 * layers are merged; ENV is NULL: whatever the environment says. */
static hob_status evaluate(struct change *change, const char *text, size_t size,
                           uint32_t count, const struct hob__env *env,
                           enum hob__reason *out_reason)
{
    static const struct hob__env none;
    struct hob__conf conf;
    hob_status st = HOB_OK;

    hob__conf_init(&conf, change->os);
    for (uint32_t i = 0; i < count && !st; i++) {
        const struct layer *layer = &change->layers[i];

        if (i != change->target)
            st = merge_layer(change, &conf, i);
        else if (text)
            st = hob__conf_merge(&conf, layer->path, text, size,
                                 layer->is_system, change->error);
    }
    *out_reason = hob__enabled_reason(env ? env : &none, &conf, change->id);
    hob__conf_release(&conf);
    return st;
}

/* ---- how ---- */

/* After the edit it would be as before, for REASON. */
static hob_status refuse(const struct change *change, enum hob__reason reason)
{
    if (change->enabled && reason == HOB__REASON_NOT_SELECTED)
        return hob_error_set(change->error, HOB_ERR_CONFIG,
                             "%s: plugins.only lists the plugins that may "
                             "load, here or in a file before it, and %s is "
                             "not among them: add it there",
                             target_path(change), change->id);
    return hob_error_set(change->error, HOB_ERR_CONFIG,
                         "%s: a system file before it locks what it says about "
                         "%s: nothing was changed",
                         target_path(change), change->id);
}

static hob_status write_target(const struct change *change,
                               const struct hob__text *text)
{
    struct hob__file_write *out = NULL;
    hob_status st =
        hob__file_write_open(target_path(change), &out, change->error);

    if (!st)
        st = hob__file_write_put(out, text->data, text->length, change->error);
    if (!st)
        return hob__file_write_commit(out, change->error);
    hob__file_write_abort(out);
    return st;
}

static hob_status lock_target(struct change *change)
{
    const char *dir = hob__path_dir(&change->arena, target_path(change));

    return dir ? hob__lock_dir(change->os, &change->arena, dir, &change->lock,
                               change->error)
               : hob_error_set(change->error, HOB_ERR_MEMORY,
                               "config: out of memory");
}

/* Change the file's text; nothing is written where it would change nothing. */
static hob_status edit_target(struct change *change)
{
    struct hob__text text = HOB__TEXT_INIT;
    uint32_t count = change->target + 1;
    enum hob__reason reason = HOB__REASON_OK;
    hob_status st = hob__conf_edit_enabled(
        target_path(change), change->text, change->size, change->id,
        change->enabled, &text, change->error);

    if (!st)
        st = evaluate(change, text.data, text.length, count, NULL, &reason);
    if (!st && !reason != change->enabled)
        st = refuse(change, reason);
    if (!st)
        st = write_target(change, &text);
    if (!st) {
        free(change->text);
        change->size = text.length;
        change->text = hob__text_take(&text);
    }
    hob__text_release(&text);
    return st;
}

/* What comes later and has it the other way: a file or a variable, or NULL. */
static hob_status find_override(struct change *change, const char **out_name)
{
    const struct hob__env *env = &change->loader->env;
    enum hob__reason reason;
    bool was = change->enabled;
    hob_status st = HOB_OK;

    *out_name = NULL;
    for (uint32_t i = change->target + 1; i < change->layer_count && !st; i++) {
        st = evaluate(change, change->text, change->size, i + 1, NULL, &reason);
        if (!st && !reason != was) {
            was = !was;
            *out_name = was == change->enabled ? NULL : change->layers[i].path;
        }
    }
    if (st)
        return st;
    st = evaluate(change, change->text, change->size, change->layer_count, env,
                  &reason);
    if (!st && reason == HOB__REASON_DISABLED_ENV && change->enabled)
        *out_name = "HOB_PLUGINS_DISABLE";
    else if (!st && reason == HOB__REASON_NOT_SELECTED && change->enabled &&
             env->only.count)
        *out_name = "HOB_PLUGINS_ONLY";
    return st;
}

static hob_status describe(const struct change *change, bool changed,
                           const char *override, char **out_json)
{
    struct hob__text text = HOB__TEXT_INIT;

    hob__text_puts(&text, "{\"id\": ");
    hob__text_json(&text, change->id);
    hob__text_printf(&text, ", \"enabled\": %s, \"changed\": %s, \"file\": ",
                     change->enabled ? "true" : "false",
                     changed ? "true" : "false");
    hob__text_json(&text, target_path(change));
    hob__text_puts(&text, ", \"overridden_by\": ");
    if (override)
        hob__text_json(&text, override);
    else
        hob__text_puts(&text, "null");
    hob__text_puts(&text, "}");
    *out_json = hob__text_take(&text);
    return *out_json ? HOB_OK : no_memory(change);
}

static hob_status set_enabled(struct change *change, uint32_t where,
                              char **out_json)
{
    enum hob__reason reason = HOB__REASON_OK;
    const char *override = NULL;
    bool changed = false;
    hob_status st = open_loader(change, where);

    if (!st)
        st = find_layers(change, where);
    if (!st)
        st = check_id(change);
    if (!st)
        st = lock_target(change);
    if (!st)
        st = read_target(change);
    if (!st)
        st = evaluate(change, change->text, change->size, change->target + 1,
                      NULL, &reason);
    changed = !reason != change->enabled;
    if (!st && changed)
        st = edit_target(change);
    if (!st)
        st = find_override(change, &override);
    return st ? st : describe(change, changed, override, out_json);
}

hob_status hob__set_enabled(const struct hob_os_ops *os,
                            const char *sysconf_dir, const char *id,
                            uint32_t where, bool enabled, char **out_json,
                            hob_error *error)
{
    struct change change;
    char *json = NULL;
    hob_status st;

    memset(&change, 0, sizeof(change));
    change.os = os ? os : hob__os();
    change.sysconf_dir = sysconf_dir ? sysconf_dir : hob__default_sysconf_dir();
    change.id = id;
    change.enabled = enabled;
    change.lock = -1;
    change.error = error;
    if (out_json)
        *out_json = NULL;
    st = set_enabled(&change, where, &json);
    if (change.lock >= 0)
        change.os->close(change.os->self, change.lock);
    hob__loader_close(change.loader);
    hob__arena_release(&change.arena);
    free(change.text);
    if (!st && out_json)
        *out_json = json;
    else
        free(json);
    return st;
}

hob_status hob__disabled_by(const struct hob_os_ops *os,
                            const char *sysconf_dir, const char *id,
                            char **out_file, hob_error *error)
{
    enum hob__reason reason = HOB__REASON_OK;
    const char *file = NULL;
    struct change change;
    hob_status st;

    memset(&change, 0, sizeof(change));
    change.os = os ? os : hob__os();
    change.sysconf_dir = sysconf_dir ? sysconf_dir : hob__default_sysconf_dir();
    change.id = id;
    change.lock = -1;
    change.error = error;
    *out_file = NULL;
    st = open_loader(&change, HOB_INSTALL_SYSTEM);
    if (!st)
        st = find_layers(&change, HOB_INSTALL_SYSTEM);
    change.target = UINT32_MAX; /* nothing is changed */
    for (uint32_t i = 0; i < change.layer_count && !st; i++) {
        st = evaluate(&change, NULL, 0, i + 1, NULL, &reason);
        if (!reason)
            file = NULL;
        else if (!file)
            file = change.layers[i].path;
    }
    if (!st && file && !(*out_file = strdup(file)))
        st = no_memory(&change);
    hob__loader_close(change.loader);
    hob__arena_release(&change.arena);
    return st;
}

hob_status hob_enable(const char *id, uint32_t where, char **out_json,
                      hob_error *error)
{
    return hob__set_enabled(NULL, NULL, id, where, true, out_json, error);
}

hob_status hob_disable(const char *id, uint32_t where, char **out_json,
                       hob_error *error)
{
    return hob__set_enabled(NULL, NULL, id, where, false, out_json, error);
}
