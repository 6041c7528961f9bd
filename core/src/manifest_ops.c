/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest_ops.c - what an extension declares: ops, types, features, and
 * implementations of other people's ops.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "manifest_read.h"

#include <stdlib.h>
#include <string.h>

/* Split "feature:cuda" or "plugin:cube-cuda". */
static hob_status read_condition(struct hob__reader *reader,
                                 const struct hob__json_value *value,
                                 struct hob__manifest_selector *selector)
{
    const char *text = NULL;
    hob_status st = hob__reader_copy(reader, value, &text);

    if (st)
        return st;
    if (!strncmp(text, "feature:", 8) && text[8]) {
        selector->when = HOB__WHEN_FEATURE;
        selector->when_name = text + 8;
    } else if (!strncmp(text, "plugin:", 7) && text[7]) {
        selector->when = HOB__WHEN_PLUGIN;
        selector->when_name = text + 7;
    } else {
        st = hob__reader_fail(reader, value, HOB__REASON_MANIFEST_FIELD,
                              "\"%s\" is no condition: write feature:NAME or "
                              "plugin:ID",
                              text);
    }
    return st;
}

/* A string, or {"selector": ..., "when": ...}. */
static hob_status read_selector(struct hob__reader *reader,
                                const struct hob__json_value *value,
                                struct hob__manifest_selector *selector)
{
    static const char *const known[] = {"selector", "when", NULL};
    const struct hob__json_value *when;
    hob_status st;

    hob__json_place(reader->doc, value, &selector->place.line,
                    &selector->place.column);
    if (value->type == HOB__JSON_STRING) {
        st = hob__reader_copy(reader, value, &selector->name);
    } else {
        st = hob__reader_expect(reader, value, HOB__JSON_OBJECT);
        if (!st)
            st = hob__reader_string(reader, value, "selector", true,
                                    &selector->name);
        when = hob__json_member(reader->doc, value, "when");
        if (!st && when)
            st = read_condition(reader, when, selector);
        if (!st)
            st = hob__reader_note_unknown(reader, value, known);
    }
    if (!st && strcmp(selector->name, "*") != 0 &&
        !hob__is_id(selector->name, 1))
        st = hob__reader_fail(reader, value, HOB__REASON_MANIFEST_FIELD,
                              "\"%s\" is no selector", selector->name);
    return st;
}

static hob_status read_selectors(struct hob__reader *reader,
                                 const struct hob__json_value *object,
                                 struct hob__manifest_op *op)
{
    const struct hob__json_value *list = NULL, *item;
    hob_status st = hob__reader_need(reader, object, "backends", &list);

    if (!st)
        st = hob__reader_expect(reader, list, HOB__JSON_ARRAY);
    if (st)
        return st;
    if (!list->count)
        return hob__reader_fail(reader, list, HOB__REASON_MANIFEST_FIELD,
                                "the op lists no backend: it can run nowhere");
    op->selectors =
        hob__arena_array(reader->arena, list->count, sizeof(*op->selectors));
    if (!op->selectors)
        return hob__reader_no_memory(reader);
    for (item = hob__json_first(reader->doc, list); item && !st;
         item = hob__json_next(reader->doc, item))
        st = read_selector(reader, item, &op->selectors[op->selector_count++]);
    return st;
}

static hob_status read_op_name(struct hob__reader *reader,
                               const struct hob__json_value *object,
                               struct hob__manifest_op *op)
{
    const char *space = reader->manifest->name_space;
    hob_status st = hob__reader_string(reader, object, "op", true, &op->name);

    if (st)
        return st;
    if (!hob__is_word(op->name))
        return hob__reader_fail(
            reader, hob__json_member(reader->doc, object, "op"),
            HOB__REASON_MANIFEST_FIELD,
            "\"%s\" is no name of an op: use a-z 0-9 _", op->name);
    op->full_name =
        space ? hob__arena_printf(reader->arena, "%s.%s", space, op->name)
              : op->name;
    return op->full_name ? HOB_OK : hob__reader_no_memory(reader);
}

static hob_status read_fuse(struct hob__reader *reader,
                            const struct hob__json_value *object,
                            struct hob__manifest_op *op)
{
    static const char *const names[] = {"elementwise", "reduce", "view",
                                        "inline",      "opaque", NULL};
    unsigned i = 0;
    hob_status st =
        hob__reader_string(reader, object, "fuse", false, &op->fuse);

    if (st || !op->fuse)
        return st;
    while (names[i] && strcmp(names[i], op->fuse) != 0)
        i++;
    if (!names[i])
        st = hob__reader_fail(
            reader, hob__json_member(reader->doc, object, "fuse"),
            HOB__REASON_MANIFEST_FIELD, "\"%s\" is no fusion rule", op->fuse);
    return st;
}

static hob_status read_quantized(struct hob__reader *reader,
                                 const struct hob__json_value *object,
                                 struct hob__manifest_op *op)
{
    /* By enum hob__quantized. */
    static const char *const names[] = {"propagate", "keep", "view", "never",
                                        NULL};
    const char *name = names[0];
    hob_status st =
        hob__reader_string(reader, object, "quantized", false, &name);

    if (st)
        return st;
    while (names[op->quantized] && strcmp(names[op->quantized], name) != 0)
        op->quantized++;
    if (!names[op->quantized])
        st = hob__reader_fail(
            reader, hob__json_member(reader->doc, object, "quantized"),
            HOB__REASON_MANIFEST_FIELD,
            "\"%s\" is no rule for quantized arguments: there are propagate, "
            "keep, view and never",
            name);
    return st;
}

/* A name; expressions have become a function of the library. */
static hob_status read_infer(struct hob__reader *reader,
                             const struct hob__json_value *object,
                             struct hob__manifest_op *op)
{
    const struct hob__json_value *infer =
        hob__json_member(reader->doc, object, "infer");

    if (infer && infer->type == HOB__JSON_OBJECT) {
        op->infer = "function";
        return HOB_OK;
    }
    return hob__reader_string(reader, object, "infer", false, &op->infer);
}

/* The fields that are plain text or flags. */
static hob_status read_op_fields(struct hob__reader *reader,
                                 const struct hob__json_value *object,
                                 struct hob__manifest_op *op)
{
    hob_status st =
        hob__reader_string(reader, object, "signature", true, &op->signature);

    op->deterministic = true;
    op->capture = true;
    if (!st)
        st = read_infer(reader, object, op);
    if (!st)
        st = hob__reader_string(reader, object, "doc", false, &op->doc);
    if (!st)
        st = hob__reader_strings(reader, object, "uses", &op->uses);
    if (!st)
        st = hob__reader_bool(reader, object, "dynamic", &op->dynamic);
    if (!st)
        st = hob__reader_bool(reader, object, "deterministic",
                              &op->deterministic);
    if (!st)
        st = hob__reader_bool(reader, object, "capture", &op->capture);
    if (!st)
        st = hob__reader_bool(reader, object, "random", &op->random);
    if (!st)
        st = read_quantized(reader, object, op);
    return st ? st : hob__reader_signature(reader, object, op);
}

/* "body" is a flag, or the name of the C function. */
static hob_status read_body(struct hob__reader *reader,
                            const struct hob__json_value *object,
                            struct hob__manifest_op *op)
{
    const struct hob__json_value *body =
        hob__json_member(reader->doc, object, "body");

    if (body && body->type == HOB__JSON_STRING) {
        op->has_body = true;
        return HOB_OK;
    }
    return hob__reader_bool(reader, object, "body", &op->has_body);
}

static hob_status read_op(struct hob__reader *reader,
                          const struct hob__json_value *object,
                          struct hob__manifest_op *op)
{
    /* "implementations", "aliases" and "consumes" are for the generator: the
     * library's table has what comes of them. */
    static const char *const known[] = {"op",       "signature",
                                        "infer",    "body",
                                        "uses",     "fuse",
                                        "doc",      "aliases",
                                        "dynamic",  "deterministic",
                                        "backends", "capture",
                                        "consumes", "implementations",
                                        "random",   "quantized",
                                        NULL};
    hob_status st = hob__reader_expect(reader, object, HOB__JSON_OBJECT);

    if (st)
        return st;
    hob__json_place(reader->doc, object, &op->place.line, &op->place.column);
    st = read_op_name(reader, object, op);
    if (!st)
        st = read_op_fields(reader, object, op);
    if (!st)
        st = read_body(reader, object, op);
    if (!st)
        st = read_fuse(reader, object, op);
    if (!st)
        st = read_selectors(reader, object, op);
    return st ? st : hob__reader_note_unknown(reader, object, known);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Refuse an op that is declared twice; sorted, so n log n. */
static hob_status check_op_names(struct hob__reader *reader,
                                 const struct hob__json_value *list)
{
    const struct hob__manifest *manifest = reader->manifest;
    const char **names =
        hob__arena_array(reader->arena, manifest->op_count, sizeof(*names));
    uint32_t i;

    if (!names)
        return hob__reader_no_memory(reader);
    for (i = 0; i < manifest->op_count; i++)
        names[i] = manifest->ops[i].name;
    qsort(names, manifest->op_count, sizeof(*names), compare_names);
    for (i = 1; i < manifest->op_count; i++) {
        if (!strcmp(names[i - 1], names[i]))
            return hob__reader_fail(reader, list, HOB__REASON_MANIFEST_FIELD,
                                    "op \"%s\" is declared twice", names[i]);
    }
    return HOB_OK;
}

static hob_status read_ops(struct hob__reader *reader,
                           const struct hob__json_value *list)
{
    struct hob__manifest *manifest = reader->manifest;
    const struct hob__json_value *item;
    hob_status st = hob__reader_expect(reader, list, HOB__JSON_ARRAY);

    if (st || !list || !list->count)
        return st;
    if (!manifest->name_space)
        return hob__reader_fail(reader, list, HOB__REASON_MANIFEST_FIELD,
                                "ops need a \"namespace\"");
    manifest->ops =
        hob__arena_array(reader->arena, list->count, sizeof(*manifest->ops));
    if (!manifest->ops)
        return hob__reader_no_memory(reader);
    for (item = hob__json_first(reader->doc, list); item && !st;
         item = hob__json_next(reader->doc, item))
        st = read_op(reader, item, &manifest->ops[manifest->op_count++]);
    return st ? st : check_op_names(reader, list);
}

static hob_status read_types(struct hob__reader *reader,
                             const struct hob__json_value *map)
{
    hob_status st = hob__types_read(reader->doc, map, &reader->manifest->types,
                                    reader->error);

    if (st == HOB_ERR_MEMORY)
        return hob__reader_no_memory(reader);
    if (st)
        reader->reason = HOB__REASON_MANIFEST_FIELD;
    return st;
}

static hob_status read_features(struct hob__reader *reader,
                                const struct hob__json_value *map)
{
    struct hob__manifest *manifest = reader->manifest;
    const struct hob__json_value *member;
    hob_status st = hob__reader_expect(reader, map, HOB__JSON_OBJECT);

    if (st || !map)
        return st;
    manifest->features = hob__arena_array(reader->arena, map->count,
                                          sizeof(*manifest->features));
    if (!manifest->features)
        return hob__reader_no_memory(reader);
    for (member = hob__json_first(reader->doc, map); member && !st;
         member = hob__json_next(reader->doc, member)) {
        struct hob__manifest_feature *feature =
            &manifest->features[manifest->feature_count++];

        feature->name = hob__arena_strdup(reader->arena,
                                          hob__json_key(reader->doc, member));
        st = feature->name ? hob__reader_bool(reader, map, feature->name,
                                              &feature->enabled)
                           : hob__reader_no_memory(reader);
    }
    return st;
}

/* A condition on a feature that is not declared can never be meant. */
static hob_status check_features(struct hob__reader *reader,
                                 const struct hob__json_value *list)
{
    const struct hob__manifest *manifest = reader->manifest;
    uint32_t i, j, k;

    for (i = 0; i < manifest->op_count; i++) {
        const struct hob__manifest_op *op = &manifest->ops[i];

        for (j = 0; j < op->selector_count; j++) {
            const char *name = op->selectors[j].when_name;

            if (op->selectors[j].when != HOB__WHEN_FEATURE)
                continue;
            for (k = 0; k < manifest->feature_count; k++) {
                if (!strcmp(manifest->features[k].name, name))
                    break;
            }
            if (k == manifest->feature_count)
                return hob__reader_fail(reader, list,
                                        HOB__REASON_MANIFEST_FIELD,
                                        "op \"%s\": feature \"%s\" is not "
                                        "declared in \"features\"",
                                        op->name, name);
        }
    }
    return HOB_OK;
}

hob_status hob__reader_extension(struct hob__reader *reader,
                                 const struct hob__json_value *root)
{
    struct hob__manifest *manifest = reader->manifest;
    const struct hob__json_value *ops =
        hob__json_member(reader->doc, root, "ops");
    hob_status st = hob__reader_string(reader, root, "namespace", false,
                                       &manifest->name_space);

    if (!st && manifest->name_space && !hob__is_word(manifest->name_space))
        st = hob__reader_fail(
            reader, hob__json_member(reader->doc, root, "namespace"),
            HOB__REASON_MANIFEST_FIELD, "\"%s\" is no namespace: use a-z 0-9 _",
            manifest->name_space);
    if (!st)
        st = read_types(reader, hob__json_member(reader->doc, root, "types"));
    if (!st)
        st = read_ops(reader, ops);
    if (!st)
        st = read_features(reader,
                           hob__json_member(reader->doc, root, "features"));
    return st ? st : check_features(reader, ops);
}

hob_status hob__reader_implements(struct hob__reader *reader,
                                  const struct hob__json_value *root)
{
    struct hob__manifest *manifest = reader->manifest;
    const struct hob__json_value *item,
        *list = hob__json_member(reader->doc, root, "implements");
    hob_status st = hob__reader_expect(reader, list, HOB__JSON_ARRAY);

    if (st || !list)
        return st;
    manifest->implements = hob__arena_array(reader->arena, list->count,
                                            sizeof(*manifest->implements));
    if (!manifest->implements)
        return hob__reader_no_memory(reader);
    for (item = hob__json_first(reader->doc, list); item && !st;
         item = hob__json_next(reader->doc, item)) {
        struct hob__manifest_implements *one =
            &manifest->implements[manifest->implements_count++];

        hob__json_place(reader->doc, item, &one->place.line,
                        &one->place.column);
        st = hob__reader_expect(reader, item, HOB__JSON_OBJECT);
        if (!st)
            st = hob__reader_string(reader, item, "op", true, &one->op);
        if (!st)
            st = hob__reader_string(reader, item, "selector", true,
                                    &one->selector);
        if (!st)
            st = hob__reader_string(reader, item, "signature", false,
                                    &one->signature);
    }
    return st;
}
