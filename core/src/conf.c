/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf.c - merging config files: what was read of one is applied to what the
 * files before it said.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "conf_layer.h"

#include "text.h"

#include <string.h>

/* Say that KEY was not taken, because an earlier file locks it. */
static hob_status note_locked(struct hob__conf_merging *merge, const char *key)
{
    return hob__conf_note(
        merge, hob__json_root(merge->reader.doc), HOB__REASON_CONFIG_LOCKED,
        hob__arena_printf(&merge->conf->arena, "\"%s\"", key));
}

static hob_status apply_settings(struct hob__conf_merging *merge,
                                 const struct hob__conf_setting *from,
                                 uint32_t from_count,
                                 struct hob__conf_setting **into,
                                 uint32_t *into_count)
{
    uint32_t i, j;

    for (i = 0; i < from_count; i++) {
        for (j = 0; j < *into_count; j++) {
            if (!strcmp((*into)[j].name, from[i].name))
                break;
        }
        if (j == *into_count) {
            struct hob__conf_setting *bigger = hob__conf_grown(
                &merge->conf->arena, *into, *into_count, sizeof(*bigger));

            if (!bigger)
                return hob__conf_no_memory(merge);
            *into = bigger;
            ++*into_count;
        }
        (*into)[j] = from[i];
    }
    return HOB_OK;
}

static struct hob__conf_plugin *find_or_add(struct hob__conf_merging *merge,
                                            const char *id)
{
    struct hob__conf *conf = merge->conf;
    struct hob__conf_plugin *plugins;
    uint32_t i;

    for (i = 0; i < conf->plugin_count; i++) {
        if (!strcmp(conf->plugins[i].id, id))
            return &conf->plugins[i];
    }
    plugins = hob__conf_grown(&conf->arena, conf->plugins, conf->plugin_count,
                              sizeof(*plugins));
    if (!plugins)
        return NULL;
    conf->plugins = plugins;
    plugins[conf->plugin_count].id = id;
    return &plugins[conf->plugin_count++];
}

static hob_status apply_plugin(struct hob__conf_merging *merge,
                               const struct hob__conf_plugin *from)
{
    struct hob__conf_plugin *into = find_or_add(merge, from->id);
    hob_status st;

    if (!into)
        return hob__conf_no_memory(merge);
    if (into->locked)
        return note_locked(merge, from->id);
    if (from->enabled != HOB__UNSET)
        into->enabled = from->enabled;
    if (from->critical != HOB__UNSET)
        into->critical = from->critical;
    if (from->has_priority) {
        into->has_priority = true;
        into->priority = from->priority;
    }
    if (from->pin)
        into->pin = from->pin;
    into->locked = from->locked || merge->layer.lock_all;
    st = apply_settings(merge, from->options, from->option_count,
                        &into->options, &into->option_count);
    return st ? st
              : apply_settings(merge, from->features, from->feature_count,
                               &into->features, &into->feature_count);
}

static hob_status apply_strings(struct hob__conf_merging *merge,
                                const char *key, bool is_set,
                                const struct hob__strings *from,
                                struct hob__strings *into, bool locked)
{
    if (!is_set)
        return HOB_OK;
    if (locked)
        return note_locked(merge, key);
    *into = *from;
    return HOB_OK;
}

static hob_status apply_text(struct hob__conf_merging *merge, const char *key,
                             const char *from, const char **into, bool locked)
{
    if (!from)
        return HOB_OK;
    if (locked)
        return note_locked(merge, key);
    *into = from;
    return HOB_OK;
}

static void apply_locks(struct hob__conf_merging *merge)
{
    const struct hob__conf_layer *layer = &merge->layer;
    struct hob__conf *conf = merge->conf;
    bool has_lists =
        layer->has_enabled || layer->has_disabled || layer->has_only;

    conf->locked_device |=
        layer->lock_device || (layer->lock_all && layer->has_device);
    conf->locked_lists |= layer->lock_lists || (layer->lock_all && has_lists);
    conf->locked_log |=
        layer->lock_log || (layer->lock_all && layer->values.log);
    conf->locked_cache_dir |=
        layer->lock_cache_dir || (layer->lock_all && layer->values.cache_dir);
}

static hob_status apply_layer(struct hob__conf_merging *merge)
{
    const struct hob__conf_layer *layer = &merge->layer;
    const struct hob__conf *values = &layer->values;
    struct hob__conf *conf = merge->conf;
    uint32_t i;
    hob_status st =
        apply_strings(merge, "device", layer->has_device, &values->devices,
                      &conf->devices, conf->locked_device);

    if (!st)
        st =
            apply_strings(merge, "plugins.enabled", layer->has_enabled,
                          &values->enabled, &conf->enabled, conf->locked_lists);
    if (!st)
        st = apply_strings(merge, "plugins.disabled", layer->has_disabled,
                           &values->disabled, &conf->disabled,
                           conf->locked_lists);
    if (!st)
        st = apply_strings(merge, "plugins.only", layer->has_only,
                           &values->only, &conf->only, conf->locked_lists);
    if (!st)
        st =
            apply_text(merge, "log", values->log, &conf->log, conf->locked_log);
    if (!st)
        st = apply_text(merge, "cache_dir", values->cache_dir, &conf->cache_dir,
                        conf->locked_cache_dir);
    for (i = 0; i < values->plugin_count && !st; i++)
        st = apply_plugin(merge, &values->plugins[i]);
    if (!st)
        apply_locks(merge);
    return st;
}

static hob_status add_file(struct hob__conf_merging *merge)
{
    struct hob__strings *files = &merge->conf->files;
    const char **items = hob__conf_grown(&merge->conf->arena, files->items,
                                         files->count, sizeof(char *));

    if (!items)
        return hob__conf_no_memory(merge);
    files->items = items;
    files->items[files->count++] = merge->path;
    return HOB_OK;
}

void hob__conf_init(struct hob__conf *conf, const struct hob_os_ops *os)
{
    memset(conf, 0, sizeof(*conf));
    conf->os = os;
}

void hob__conf_release(struct hob__conf *conf)
{
    hob__arena_release(&conf->arena);
    memset(conf, 0, sizeof(*conf));
}

hob_status hob__conf_merge(struct hob__conf *conf, const char *path,
                           const void *text, size_t size, bool is_system,
                           hob_error *error)
{
    static const struct hob__json_limits limits = HOB__JSON_MANIFEST_LIMITS;
    struct hob__json_doc *doc = NULL;
    struct hob__conf_merging merge;
    hob_status st;

    memset(&merge, 0, sizeof(merge));
    merge.conf = conf;
    merge.is_system = is_system;
    merge.reader.arena = &conf->arena;
    merge.reader.error = error;
    merge.path = hob__arena_strdup(&conf->arena, path);
    st = merge.path
             ? hob__json_parse(path, text, size, &limits, &doc, NULL, error)
             : hob__conf_no_memory(&merge);
    if (!st) {
        merge.reader.doc = doc;
        st = hob__conf_read(&merge);
    }
    if (!st)
        st = apply_layer(&merge);
    if (!st)
        st = add_file(&merge);
    hob__json_free(doc);
    if (st != HOB_ERR_FORMAT)
        return st;
    if (error)
        error->status = HOB_ERR_CONFIG;
    return HOB_ERR_CONFIG;
}

const struct hob__conf_plugin *hob__conf_find(const struct hob__conf *conf,
                                              const char *id)
{
    uint32_t i;

    for (i = 0; i < conf->plugin_count; i++) {
        if (!strcmp(conf->plugins[i].id, id))
            return &conf->plugins[i];
    }
    return NULL;
}

hob_status hob__conf_options_json(const struct hob__conf *conf, const char *id,
                                  char **out_text)
{
    const struct hob__conf_plugin *plugin = hob__conf_find(conf, id);
    struct hob__text text = HOB__TEXT_INIT;
    uint32_t i;

    hob__text_puts(&text, "{");
    for (i = 0; plugin && i < plugin->option_count; i++) {
        hob__text_puts(&text, i ? "," : "");
        hob__text_json(&text, plugin->options[i].name);
        hob__text_printf(&text, ":%s", plugin->options[i].json);
    }
    hob__text_puts(&text, "}");
    *out_text = hob__text_take(&text);
    return *out_text ? HOB_OK : HOB_ERR_MEMORY;
}
