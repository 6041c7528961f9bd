/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "conf_layer.h"

#include "device_spec.h"
#include "error.h"
#include "paths.h"
#include "text.h"

#include <string.h>

hob_status hob__conf_no_memory(struct hob__conf_merging *merge)
{
    return hob__reader_no_memory(&merge->reader);
}

void *hob__conf_grown(struct hob__arena *arena, void *items, uint32_t count,
                      size_t size)
{
    void *bigger;

    if (count & (count - 1))
        return items;
    bigger = hob__arena_array(arena, count ? 2 * (size_t)count : 1, size);
    if (bigger && count)
        memcpy(bigger, items, count * size);
    return bigger;
}

hob_status hob__conf_note(struct hob__conf_merging *merge,
                          const struct hob__json_value *value,
                          enum hob__reason reason, const char *text)
{
    struct hob__conf *conf = merge->conf;
    struct hob__conf_note *notes = hob__conf_grown(
        &conf->arena, conf->notes, conf->note_count, sizeof(*notes));
    uint32_t line, column;
    const char *detail;

    hob__json_place(merge->reader.doc, value, &line, &column);
    detail = text ? hob__arena_printf(&conf->arena, "%s:%u:%u: %s", merge->path,
                                      (unsigned)line, (unsigned)column, text)
                  : NULL;
    if (!notes || !detail)
        return hob__conf_no_memory(merge);
    conf->notes = notes;
    conf->notes[conf->note_count++] =
        (struct hob__conf_note){merge->path, reason, detail};
    return HOB_OK;
}

static hob_status note_unknown(struct hob__conf_merging *merge,
                               const struct hob__json_value *member,
                               const char *const *known, size_t count)
{
    const char *key = hob__json_key(merge->reader.doc, member);
    const char *near = hob__nearest_name(key, known, count);

    if (!strncmp(key, "x-", 2) || !strcmp(key, "$schema"))
        return HOB_OK;
    return hob__conf_note(
        merge, member, HOB__REASON_CONFIG_KEY,
        hob__arena_printf(&merge->conf->arena,
                          near ? "unknown key \"%s\": did you mean "
                                 "\"%s\"?"
                               : "unknown key \"%s\"",
                          key, near));
}

/* "locked" counts only in system files. */
static hob_status read_locked(struct hob__conf_merging *merge,
                              const struct hob__json_value *object,
                              bool *out_locked)
{
    const struct hob__json_value *value =
        hob__json_member(merge->reader.doc, object, "locked");
    bool locked = false;
    hob_status st = hob__reader_bool(&merge->reader, object, "locked", &locked);

    if (st || !value)
        return st;
    if (!merge->is_system)
        return hob__conf_note(merge, value, HOB__REASON_CONFIG_KEY,
                              "\"locked\" counts only in system files");
    *out_locked = *out_locked || locked;
    return HOB_OK;
}

/* Any key may be written {"value": ..., "locked": true}. */
static hob_status
unwrap(struct hob__conf_merging *merge, const struct hob__json_value *object,
       const struct hob__json_value **value, const char **out_key,
       const struct hob__json_value **out_object, bool *out_locked)
{
    hob_status st;

    *out_key = hob__json_key(merge->reader.doc, *value);
    *out_object = object;
    if ((*value)->type != HOB__JSON_OBJECT)
        return HOB_OK;
    *out_object = *value;
    *out_key = "value";
    st = read_locked(merge, *value, out_locked);
    return st ? st
              : hob__reader_need(&merge->reader, *out_object, "value", value);
}

/* The first that opens wins, so one that cannot be read would not be missed. */
static hob_status note_device(struct hob__conf_merging *merge,
                              const struct hob__json_value *value,
                              const char *text)
{
    hob_error error = HOB_ERROR_INIT;
    struct hob__spec spec;
    hob_status st = HOB_OK;

    if (hob__spec_parse(text, &spec, &error))
        st = hob__conf_note(merge, value, HOB__REASON_CONFIG_VALUE,
                            hob__error_text(&error));
    hob_error_release(&error);
    return st;
}

static hob_status read_device(struct hob__conf_merging *merge,
                              const struct hob__json_value *root,
                              const struct hob__json_value *value)
{
    struct hob__conf_layer *layer = &merge->layer;
    struct hob__strings *devices = &layer->values.devices;
    const struct hob__json_value *object;
    const char *key;
    hob_status st =
        unwrap(merge, root, &value, &key, &object, &layer->lock_device);

    layer->has_device = true;
    if (st)
        return st;
    if (value->type != HOB__JSON_STRING) {
        st = hob__reader_strings(&merge->reader, object, key, devices);
        value = st ? NULL : hob__json_first(merge->reader.doc, value);
    } else {
        devices->items =
            hob__arena_array(merge->reader.arena, 1, sizeof(char *));
        if (!devices->items)
            return hob__conf_no_memory(merge);
        devices->count = 1;
        st = hob__reader_copy(&merge->reader, value, &devices->items[0]);
    }
    for (uint32_t i = 0; i < devices->count && !st; i++) {
        st = note_device(merge, value, devices->items[i]);
        value = hob__json_next(merge->reader.doc, value);
    }
    return st;
}

static hob_status read_text(struct hob__conf_merging *merge,
                            const struct hob__json_value *root,
                            const struct hob__json_value *value,
                            const char **out_text, bool *out_locked)
{
    const struct hob__json_value *object;
    const char *key;
    hob_status st = unwrap(merge, root, &value, &key, &object, out_locked);

    return st ? st : hob__reader_copy(&merge->reader, value, out_text);
}

/* A relative one would be another folder for each process, so it is none. */
static hob_status read_cache_dir(struct hob__conf_merging *merge,
                                 const struct hob__json_value *root,
                                 const struct hob__json_value *value)
{
    struct hob__conf_layer *layer = &merge->layer;
    const char *path = NULL;
    hob_status st =
        read_text(merge, root, value, &path, &layer->lock_cache_dir);

    if (st || !path)
        return st;
    if (hob__path_is_absolute(merge->conf->os, path)) {
        layer->values.cache_dir = path;
        return HOB_OK;
    }
    return hob__conf_note(
        merge, value, HOB__REASON_CONFIG_VALUE,
        hob__arena_printf(&merge->conf->arena,
                          "\"cache_dir\" must be an absolute path, "
                          "not \"%s\"",
                          path));
}

static hob_status read_setting(struct hob__conf_merging *merge,
                               const struct hob__json_value *value,
                               struct hob__conf_setting *setting)
{
    struct hob__arena *arena = merge->reader.arena;
    size_t length;
    const char *text = hob__json_text(merge->reader.doc, value, &length);
    hob_status st = HOB_OK;

    setting->name =
        hob__arena_strdup(arena, hob__json_key(merge->reader.doc, value));
    setting->json = hob__arena_strndup(arena, text, length);
    if (value->type == HOB__JSON_STRING) {
        st = hob__json_string(merge->reader.doc, value, &text,
                              merge->reader.error);
        length = st ? 0 : strlen(text);
    }
    setting->value = hob__arena_strndup(arena, text, length);
    if (!setting->name || !setting->json || !setting->value)
        return hob__conf_no_memory(merge);
    return st;
}

static hob_status read_settings(struct hob__conf_merging *merge,
                                const struct hob__json_value *map,
                                bool only_bool,
                                struct hob__conf_setting **out_settings,
                                uint32_t *out_count)
{
    const struct hob__json_value *member;
    hob_status st = hob__reader_expect(&merge->reader, map, HOB__JSON_OBJECT);

    if (st)
        return st;
    *out_settings = hob__arena_array(merge->reader.arena, map->count,
                                     sizeof(**out_settings));
    if (!*out_settings)
        return hob__conf_no_memory(merge);
    for (member = hob__json_first(merge->reader.doc, map); member && !st;
         member = hob__json_next(merge->reader.doc, member)) {
        if (only_bool)
            st = hob__reader_expect(&merge->reader, member, HOB__JSON_BOOL);
        if (!st)
            st = read_setting(merge, member, &(*out_settings)[(*out_count)++]);
    }
    return st;
}

static hob_status read_tristate(struct hob__conf_merging *merge,
                                const struct hob__json_value *object,
                                const char *key, enum hob__tristate *out_state)
{
    bool value = false;
    hob_status st = hob__reader_bool(&merge->reader, object, key, &value);

    if (!st)
        *out_state = value ? HOB__YES : HOB__NO;
    return st;
}

static hob_status read_plugin_member(struct hob__conf_merging *merge,
                                     const struct hob__json_value *object,
                                     const struct hob__json_value *member,
                                     struct hob__conf_plugin *plugin)
{
    static const char *const known[] = {"enabled", "priority", "critical",
                                        "pin",     "options",  "features",
                                        "locked"};
    struct hob__reader *reader = &merge->reader;
    const char *key = hob__json_key(reader->doc, member);

    if (!strcmp(key, "enabled"))
        return read_tristate(merge, object, key, &plugin->enabled);
    if (!strcmp(key, "critical"))
        return read_tristate(merge, object, key, &plugin->critical);
    if (!strcmp(key, "priority")) {
        plugin->has_priority = true;
        return hob__reader_int(reader, object, key, -1000, 1000,
                               &plugin->priority);
    }
    if (!strcmp(key, "pin"))
        return hob__reader_copy(reader, member, &plugin->pin);
    if (!strcmp(key, "options"))
        return read_settings(merge, member, false, &plugin->options,
                             &plugin->option_count);
    if (!strcmp(key, "features"))
        return read_settings(merge, member, true, &plugin->features,
                             &plugin->feature_count);
    if (!strcmp(key, "locked"))
        return read_locked(merge, object, &plugin->locked);
    return note_unknown(merge, member, known, sizeof(known) / sizeof(known[0]));
}

static hob_status read_plugin(struct hob__conf_merging *merge,
                              const struct hob__json_value *object)
{
    struct hob__conf *values = &merge->layer.values;
    struct hob__conf_plugin *plugin;
    const struct hob__json_value *member;
    const char *id = hob__json_key(merge->reader.doc, object);
    hob_status st = HOB_OK;

    if (!hob__is_id(id, 2))
        return hob__reader_fail(&merge->reader, object,
                                HOB__REASON_CONFIG_SYNTAX,
                                "\"%s\" is no id of a plugin", id);
    plugin = hob__conf_grown(merge->reader.arena, values->plugins,
                             values->plugin_count, sizeof(*plugin));
    if (!plugin)
        return hob__conf_no_memory(merge);
    values->plugins = plugin;
    plugin += values->plugin_count++;
    plugin->id = hob__arena_strdup(merge->reader.arena, id);
    if (!plugin->id)
        return hob__conf_no_memory(merge);
    for (member = hob__json_first(merge->reader.doc, object); member && !st;
         member = hob__json_next(merge->reader.doc, member))
        st = read_plugin_member(merge, object, member, plugin);
    return st;
}

static hob_status read_plugins_member(struct hob__conf_merging *merge,
                                      const struct hob__json_value *object,
                                      const struct hob__json_value *member)
{
    static const char *const known[] = {"enabled", "disabled", "only",
                                        "locked"};
    struct hob__conf_layer *layer = &merge->layer;
    struct hob__reader *reader = &merge->reader;
    const char *key = hob__json_key(reader->doc, member);

    if (member->type == HOB__JSON_OBJECT)
        return read_plugin(merge, member);
    if (!strcmp(key, "enabled")) {
        layer->has_enabled = true;
        return hob__reader_strings(reader, object, key, &layer->values.enabled);
    }
    if (!strcmp(key, "disabled")) {
        layer->has_disabled = true;
        return hob__reader_strings(reader, object, key,
                                   &layer->values.disabled);
    }
    if (!strcmp(key, "only")) {
        layer->has_only = true;
        return hob__reader_strings(reader, object, key, &layer->values.only);
    }
    if (!strcmp(key, "locked"))
        return read_locked(merge, object, &layer->lock_lists);
    return note_unknown(merge, member, known, sizeof(known) / sizeof(known[0]));
}

static hob_status read_plugins(struct hob__conf_merging *merge,
                               const struct hob__json_value *object)
{
    const struct hob__json_value *member;
    hob_status st =
        hob__reader_expect(&merge->reader, object, HOB__JSON_OBJECT);

    for (member = st ? NULL : hob__json_first(merge->reader.doc, object);
         member && !st; member = hob__json_next(merge->reader.doc, member))
        st = read_plugins_member(merge, object, member);
    return st;
}

static hob_status read_member(struct hob__conf_merging *merge,
                              const struct hob__json_value *root,
                              const struct hob__json_value *member)
{
    static const char *const known[] = {"device", "plugins", "log", "cache_dir",
                                        "locked"};
    struct hob__conf_layer *layer = &merge->layer;
    const char *key = hob__json_key(merge->reader.doc, member);

    if (!strcmp(key, "device"))
        return read_device(merge, root, member);
    if (!strcmp(key, "plugins"))
        return read_plugins(merge, member);
    if (!strcmp(key, "log"))
        return read_text(merge, root, member, &layer->values.log,
                         &layer->lock_log);
    if (!strcmp(key, "cache_dir"))
        return read_cache_dir(merge, root, member);
    if (!strcmp(key, "locked"))
        return read_locked(merge, root, &layer->lock_all);
    return note_unknown(merge, member, known, sizeof(known) / sizeof(known[0]));
}

hob_status hob__conf_read(struct hob__conf_merging *merge)
{
    const struct hob__json_value *root = hob__json_root(merge->reader.doc);
    const struct hob__json_value *member;
    hob_status st = hob__reader_expect(&merge->reader, root, HOB__JSON_OBJECT);

    for (member = st ? NULL : hob__json_first(merge->reader.doc, root);
         member && !st; member = hob__json_next(merge->reader.doc, member))
        st = read_member(merge, root, member);
    return st;
}
