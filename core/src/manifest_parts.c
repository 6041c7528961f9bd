/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_parts.c - library, backend, decorator and requires.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "manifest_read.h"

#include <string.h>

static hob_status read_variant(struct hob__reader *reader,
                               const struct hob__json_value *value,
                               struct hob__manifest_variant *variant)
{
    static const char *const known[] = {"path", "cpu", "sha256", NULL};
    const struct hob__json_value *path = NULL;
    hob_status st = hob__reader_expect(reader, value, HOB__JSON_OBJECT);

    if (!st)
        st = hob__reader_need(reader, value, "path", &path);
    if (!st)
        st = hob__reader_path(reader, path, &variant->path);
    if (!st)
        st = hob__reader_strings(reader, value, "cpu", &variant->cpu);
    if (!st)
        st = hob__reader_sha256(reader, value, &variant->sha256);
    if (!st)
        st = hob__reader_note_unknown(reader, value, known);
    return st;
}

/* One platform: a path, or a list of variants. */
static hob_status read_target(struct hob__reader *reader,
                              const struct hob__json_value *value,
                              struct hob__manifest_target *target)
{
    const struct hob__json_value *item;
    bool is_path = value->type == HOB__JSON_STRING;
    hob_status st = HOB_OK;

    if (!is_path && value->type != HOB__JSON_ARRAY)
        return hob__reader_fail(reader, value, HOB__REASON_MANIFEST_FIELD,
                                "path or array of variants expected");
    if (!is_path && !value->count)
        return hob__reader_fail(reader, value, HOB__REASON_MANIFEST_FIELD,
                                "the array of variants is empty");
    target->variants = hob__arena_array(
        reader->arena, is_path ? 1 : value->count, sizeof(*target->variants));
    if (!target->variants)
        return hob__reader_no_memory(reader);
    if (is_path) {
        target->variant_count = 1;
        return hob__reader_path(reader, value, &target->variants[0].path);
    }
    for (item = hob__json_first(reader->doc, value); item && !st;
         item = hob__json_next(reader->doc, item))
        st = read_variant(reader, item,
                          &target->variants[target->variant_count++]);
    return st;
}

hob_status hob__reader_library(struct hob__reader *reader,
                               const struct hob__json_value *value)
{
    struct hob__manifest *manifest = reader->manifest;
    const struct hob__json_value *member;
    bool by_triple = value->type == HOB__JSON_OBJECT;
    hob_status st = HOB_OK;

    if (!by_triple && value->type != HOB__JSON_STRING)
        return hob__reader_fail(reader, value, HOB__REASON_MANIFEST_FIELD,
                                "path or object by platform expected");
    manifest->targets =
        hob__arena_array(reader->arena, by_triple ? value->count : 1,
                         sizeof(*manifest->targets));
    if (!manifest->targets)
        return hob__reader_no_memory(reader);
    if (!by_triple) {
        manifest->target_count = 1;
        return read_target(reader, value, &manifest->targets[0]);
    }
    for (member = hob__json_first(reader->doc, value); member && !st;
         member = hob__json_next(reader->doc, member)) {
        struct hob__manifest_target *target =
            &manifest->targets[manifest->target_count++];

        target->triple = hob__arena_strdup(reader->arena,
                                           hob__json_key(reader->doc, member));
        st = target->triple ? read_target(reader, member, target)
                            : hob__reader_no_memory(reader);
    }
    return st;
}

static hob_status read_selector(struct hob__reader *reader,
                                const struct hob__json_value *object,
                                const char **out_selector)
{
    hob_status st =
        hob__reader_string(reader, object, "selector", true, out_selector);

    if (!st && !hob__is_id(*out_selector, 1))
        st = hob__reader_fail(
            reader, hob__json_member(reader->doc, object, "selector"),
            HOB__REASON_MANIFEST_FIELD,
            "\"%s\" is no selector: use a-z 0-9 . _ -", *out_selector);
    return st;
}

hob_status hob__reader_backend(struct hob__reader *reader,
                               const struct hob__json_value *root)
{
    static const char *const known[] = {"selector", "family",   "runtime",
                                        "needs",    "priority", NULL};
    struct hob__manifest_backend *backend = &reader->manifest->backend;
    const struct hob__json_value *object = NULL;
    hob_status st = hob__reader_need(reader, root, "backend", &object);

    if (!st)
        st = hob__reader_expect(reader, object, HOB__JSON_OBJECT);
    if (!st)
        st = read_selector(reader, object, &backend->selector);
    if (!st)
        st = hob__reader_string(reader, object, "family", false,
                                &backend->family);
    if (!st)
        st = hob__reader_string(reader, object, "runtime", false,
                                &backend->runtime);
    if (!st)
        st = hob__reader_strings(reader, object, "needs", &backend->needs);
    if (!st)
        st = hob__reader_int(reader, object, "priority", -1000, 1000,
                             &backend->priority);
    if (!st)
        st = hob__reader_note_unknown(reader, object, known);
    return st;
}

/* An option: the array of its values, or an object. */
static hob_status read_option(struct hob__reader *reader,
                              const struct hob__json_value *value,
                              const struct hob__json_value *options,
                              struct hob__manifest_option *option)
{
    static const char *const known[] = {"values", "default", "doc", NULL};
    const char *key = hob__json_key(reader->doc, value);
    hob_status st = HOB_OK;

    option->name = hob__arena_strdup(reader->arena, key);
    if (!option->name)
        return hob__reader_no_memory(reader);
    if (value->type == HOB__JSON_ARRAY) {
        st = hob__reader_strings(reader, options, key, &option->values);
    } else {
        st = hob__reader_expect(reader, value, HOB__JSON_OBJECT);
        if (!st)
            st = hob__reader_strings(reader, value, "values", &option->values);
        if (!st)
            st = hob__reader_string(reader, value, "default", false,
                                    &option->initial);
        if (!st)
            st = hob__reader_string(reader, value, "doc", false, &option->doc);
        if (!st)
            st = hob__reader_note_unknown(reader, value, known);
    }
    if (!st && !option->initial && option->values.count)
        option->initial = option->values.items[0];
    return st;
}

static hob_status read_options(struct hob__reader *reader,
                               const struct hob__json_value *options,
                               struct hob__manifest_decorator *decorator)
{
    const struct hob__json_value *member;
    hob_status st = hob__reader_expect(reader, options, HOB__JSON_OBJECT);

    if (st || !options)
        return st;
    decorator->options = hob__arena_array(reader->arena, options->count,
                                          sizeof(*decorator->options));
    if (!decorator->options)
        return hob__reader_no_memory(reader);
    for (member = hob__json_first(reader->doc, options); member && !st;
         member = hob__json_next(reader->doc, member))
        st = read_option(reader, member, options,
                         &decorator->options[decorator->option_count++]);
    return st;
}

static hob_status read_unlisted(struct hob__reader *reader,
                                const struct hob__json_value *root,
                                enum hob__unlisted *out_unlisted)
{
    static const char *const names[] = {"pass", "barrier", "refuse"};
    const char *name = NULL;
    unsigned i;
    hob_status st = hob__reader_string(reader, root, "unlisted", true, &name);

    if (st)
        return st;
    for (i = 0; i < 3; i++) {
        if (!strcmp(names[i], name)) {
            *out_unlisted = (enum hob__unlisted)i;
            return HOB_OK;
        }
    }
    return hob__reader_fail(
        reader, hob__json_member(reader->doc, root, "unlisted"),
        HOB__REASON_MANIFEST_FIELD,
        "pass, barrier or refuse expected, found \"%s\"", name);
}

hob_status hob__reader_decorator(struct hob__reader *reader,
                                 const struct hob__json_value *root)
{
    static const char *const known[] = {"selector", "options", NULL};
    struct hob__manifest_decorator *decorator = &reader->manifest->decorator;
    const struct hob__json_value *object = NULL;
    hob_status st = hob__reader_need(reader, root, "decorator", &object);

    if (!st)
        st = hob__reader_expect(reader, object, HOB__JSON_OBJECT);
    if (!st)
        st = read_selector(reader, object, &decorator->selector);
    if (!st)
        st = read_options(reader,
                          hob__json_member(reader->doc, object, "options"),
                          decorator);
    if (!st)
        st = read_unlisted(reader, root, &decorator->unlisted);
    if (!st)
        st = hob__reader_note_unknown(reader, object, known);
    return st;
}

static hob_status read_interfaces(struct hob__reader *reader,
                                  const struct hob__json_value *map)
{
    struct hob__manifest_requires *needs = &reader->manifest->needs;
    const struct hob__json_value *member;
    hob_status st = hob__reader_expect(reader, map, HOB__JSON_OBJECT);

    if (st)
        return st;
    needs->interfaces =
        hob__arena_array(reader->arena, map->count, sizeof(*needs->interfaces));
    if (!needs->interfaces)
        return hob__reader_no_memory(reader);
    for (member = hob__json_first(reader->doc, map); member && !st;
         member = hob__json_next(reader->doc, member)) {
        const char *key = hob__json_key(reader->doc, member);
        int32_t version = 0;

        st = hob__reader_int(reader, map, key, 0, INT32_MAX, &version);
        needs->interfaces[needs->interface_count].name =
            hob__arena_strdup(reader->arena, key);
        if (!st && !needs->interfaces[needs->interface_count].name)
            st = hob__reader_no_memory(reader);
        needs->interfaces[needs->interface_count++].version = (uint32_t)version;
    }
    return st;
}

static hob_status read_plugins(struct hob__reader *reader,
                               const struct hob__json_value *map)
{
    struct hob__manifest_requires *needs = &reader->manifest->needs;
    const struct hob__json_value *member;
    const struct hob__semver zero = {0};
    hob_status st = hob__reader_expect(reader, map, HOB__JSON_OBJECT);

    if (st)
        return st;
    needs->plugins =
        hob__arena_array(reader->arena, map->count, sizeof(*needs->plugins));
    if (!needs->plugins)
        return hob__reader_no_memory(reader);
    for (member = hob__json_first(reader->doc, map); member && !st;
         member = hob__json_next(reader->doc, member)) {
        struct hob__manifest_dependency *plugin =
            &needs->plugins[needs->plugin_count++];
        bool valid = true;

        st = hob__reader_copy(reader, member, &plugin->range);
        plugin->id = hob__arena_strdup(reader->arena,
                                       hob__json_key(reader->doc, member));
        if (!st && !plugin->id)
            st = hob__reader_no_memory(reader);
        if (!st)
            (void)hob__semver_in_range(&zero, plugin->range, &valid);
        if (!valid)
            st = hob__reader_fail(reader, member, HOB__REASON_MANIFEST_FIELD,
                                  "\"%s\" is no range of versions: write "
                                  "\">=1.2 <2\"",
                                  plugin->range);
    }
    return st;
}

hob_status hob__reader_requires(struct hob__reader *reader,
                                const struct hob__json_value *root)
{
    struct hob__manifest_requires *needs = &reader->manifest->needs;
    const struct hob__json_value *object =
        hob__json_member(reader->doc, root, "requires");
    const struct hob__json_value *member;
    hob_status st = hob__reader_expect(reader, object, HOB__JSON_OBJECT);

    if (st || !object)
        return st;
    for (member = hob__json_first(reader->doc, object); member && !st;
         member = hob__json_next(reader->doc, member)) {
        const char *key = hob__json_key(reader->doc, member);

        if (!strcmp(key, "host"))
            st = hob__reader_strings(reader, object, key, &needs->host);
        else if (!strcmp(key, "interfaces"))
            st = read_interfaces(reader, member);
        else if (!strcmp(key, "plugins"))
            st = read_plugins(reader, member);
        else if (!strcmp(key, "cpu"))
            st = hob__reader_strings(reader, object, key, &needs->cpu);
        else if (!strcmp(key, "files"))
            st = hob__reader_strings(reader, object, key, &needs->files);
        else
            st = hob__reader_fail(reader, member, HOB__REASON_REQUIRES_UNKNOWN,
                                  "unknown requirement \"%s\"", key);
    }
    return st;
}

hob_status hob__reader_patterns(struct hob__reader *reader,
                                const struct hob__json_value *root)
{
    static const char *const known[] = {"replace", "with", NULL};
    struct hob__manifest *manifest = reader->manifest;
    const struct hob__json_value *item,
        *list = hob__json_member(reader->doc, root, "patterns");
    hob_status st = hob__reader_expect(reader, list, HOB__JSON_ARRAY);

    if (st || !list)
        return st;
    manifest->patterns = hob__arena_array(reader->arena, list->count,
                                          sizeof(*manifest->patterns));
    if (!manifest->patterns)
        return hob__reader_no_memory(reader);
    for (item = hob__json_first(reader->doc, list); item && !st;
         item = hob__json_next(reader->doc, item)) {
        struct hob__manifest_pattern *one =
            &manifest->patterns[manifest->pattern_count++];

        hob__json_place(reader->doc, item, &one->place.line,
                        &one->place.column);
        st = hob__reader_expect(reader, item, HOB__JSON_OBJECT);
        if (!st)
            st = hob__reader_string(reader, item, "replace", true,
                                    &one->replace);
        if (!st)
            st = hob__reader_string(reader, item, "with", true, &one->with);
        if (!st)
            st = hob__reader_note_unknown(reader, item, known);
    }
    return st;
}
