/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type_defs_read.c - "types" of a manifest.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "type_defs.h"

#include "json.h"

#include <stdlib.h>
#include <string.h>

static hob_status no_memory(hob_error *error)
{
    return hob_error_set(error, HOB_ERR_MEMORY, "no memory for the types");
}

/* "coords", "Sparse": a letter, then letters, digits, '_'; the first letter
 * tells the two apart. */
static bool is_name(const char *name, bool capital)
{
    const char *first =
        capital ? "ABCDEFGHIJKLMNOPQRSTUVWXYZ" : "abcdefghijklmnopqrstuvwxyz";
    size_t length = strlen(name);

    return length && length <= 63 && strchr(first, name[0]) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_"
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == length;
}

static const struct hob__type_def *find(const struct hob__types *types,
                                        const char *name)
{
    for (uint32_t i = 0; i < types->count; i++)
        if (!strcmp(types->defs[i]->name, name))
            return types->defs[i];
    return NULL;
}

static hob_status read_field_type(const struct hob__json_doc *doc,
                                  const struct hob__json_value *value,
                                  const struct hob__types *types,
                                  struct hob__param *field, hob_error *error)
{
    const char *text = NULL, *message;
    int column;
    hob_status st = hob__json_string(doc, value, &text, error);

    if (st)
        return st;
    st = hob__signature_parse_type(text, field, &column, &message);
    if (st == HOB_ERR_MEMORY)
        return no_memory(error);
    if (st)
        return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                              "\"%s\", column %d: %s", text, column, message);
    if (field->type == HOB__TYPE_DEVICE)
        return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                              "a field cannot be a device: make it a "
                              "parameter of the op");
    if (field->type != HOB__TYPE_NAMED)
        return HOB_OK;
    if (field->flags & HOB__PARAM_OPTIONAL)
        return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                              "a field of type %s cannot be optional: use an "
                              "enum with a variant that is null",
                              field->kind);
    field->def = find(types, field->kind);
    return field->def ? HOB_OK
                      : hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                                       "no type %s is declared before this "
                                       "one",
                                       field->kind);
}

/* The members of OBJECT, named fields, become VARIANT's. */
static hob_status read_fields(const struct hob__json_doc *doc,
                              const struct hob__json_value *object,
                              const struct hob__types *types,
                              struct hob__variant *variant, hob_error *error)
{
    const struct hob__json_value *member;
    hob_status st = hob__json_expect(doc, object, HOB__JSON_OBJECT, error);

    if (st)
        return st;
    if (!object->count)
        return hob__json_fail(doc, object, error, HOB_ERR_FORMAT,
                              "no fields: write null for a variant without "
                              "any; a struct has at least one");
    variant->fields = calloc(object->count, sizeof(*variant->fields));
    if (!variant->fields)
        return no_memory(error);
    for (member = hob__json_first(doc, object); member && !st;
         member = hob__json_next(doc, member)) {
        const char *name = hob__json_key(doc, member);
        struct hob__param *field = &variant->fields[variant->field_count++];

        if (!is_name(name, false))
            return hob__json_fail(doc, member, error, HOB_ERR_FORMAT,
                                  "\"%s\" is no name of a field: a small "
                                  "letter, then letters, digits and '_', at "
                                  "most 63",
                                  name);
        st = read_field_type(doc, member, types, field, error);
        if (!st && !(field->name = strdup(name)))
            st = no_memory(error);
    }
    return st;
}

static hob_status read_variant(const struct hob__json_doc *doc,
                               const struct hob__json_value *value,
                               const struct hob__types *types,
                               struct hob__variant *variant, hob_error *error)
{
    const char *name = hob__json_key(doc, value);

    if (!is_name(name, true))
        return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                              "\"%s\" is no name of a variant: a capital "
                              "letter, then letters, digits and '_', at most "
                              "63",
                              name);
    variant->name = strdup(name);
    if (!variant->name)
        return no_memory(error);
    if (value->type == HOB__JSON_NULL)
        return HOB_OK;
    if (value->type != HOB__JSON_STRING)
        return read_fields(doc, value, types, variant, error);
    variant->fields = calloc(1, sizeof(*variant->fields));
    if (!variant->fields)
        return no_memory(error);
    variant->field_count = 1;
    return read_field_type(doc, value, types, variant->fields, error);
}

static hob_status read_enum(const struct hob__json_doc *doc,
                            const struct hob__json_value *object,
                            const struct hob__types *types,
                            struct hob__type_def *def, hob_error *error)
{
    const struct hob__json_value *member;
    hob_status st = hob__json_expect(doc, object, HOB__JSON_OBJECT, error);

    if (st)
        return st;
    if (!object->count || object->count > 255)
        return hob__json_fail(doc, object, error, HOB_ERR_FORMAT,
                              "an enum has 1 to 255 variants");
    def->is_enum = true;
    def->variants = calloc(object->count, sizeof(*def->variants));
    if (!def->variants)
        return no_memory(error);
    for (member = hob__json_first(doc, object); member && !st;
         member = hob__json_next(doc, member))
        st = read_variant(doc, member, types,
                          &def->variants[def->variant_count++], error);
    return st;
}

static hob_status read_struct(const struct hob__json_doc *doc,
                              const struct hob__json_value *object,
                              const struct hob__types *types,
                              struct hob__type_def *def, hob_error *error)
{
    def->variants = calloc(1, sizeof(*def->variants));
    if (!def->variants)
        return no_memory(error);
    def->variant_count = 1;
    return read_fields(doc, object, types, def->variants, error);
}

/* Float, Int and so on. */
static bool is_kind(const char *name)
{
    struct hob__param type;
    const char *message;
    int column;
    bool is_tensor;

    if (hob__signature_parse_type(name, &type, &column, &message))
        return false;
    is_tensor = type.type == HOB__TYPE_TENSOR;
    hob__param_release(&type);
    return is_tensor;
}

static hob_status read_def(const struct hob__json_doc *doc,
                           const struct hob__json_value *value,
                           const struct hob__types *types,
                           struct hob__type_def *def, hob_error *error)
{
    const char *name = hob__json_key(doc, value), *text = NULL;
    const struct hob__json_value *fields, *variants, *doc_text, *member;
    hob_status st = hob__json_expect(doc, value, HOB__JSON_OBJECT, error);

    if (st)
        return st;
    if (!is_name(name, true))
        return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                              "\"%s\" is no name of a type: a capital letter, "
                              "then letters, digits and '_', at most 63",
                              name);
    if (is_kind(name))
        return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                              "%s is a kind of tensors: take another name",
                              name);
    def->name = strdup(name);
    if (!def->name)
        return no_memory(error);
    for (member = hob__json_first(doc, value); member;
         member = hob__json_next(doc, member)) {
        const char *key = hob__json_key(doc, member);

        if (strcmp(key, "struct") && strcmp(key, "enum") &&
            strcmp(key, "doc") && strncmp(key, "x-", 2))
            return hob__json_fail(doc, member, error, HOB_ERR_FORMAT,
                                  "unknown key \"%s\"; a type has struct or "
                                  "enum, and doc",
                                  key);
    }
    doc_text = hob__json_member(doc, value, "doc");
    if (doc_text)
        st = hob__json_string(doc, doc_text, &text, error);
    if (!st && text && !(def->doc = strdup(text)))
        st = no_memory(error);
    if (st)
        return st;
    fields = hob__json_member(doc, value, "struct");
    variants = hob__json_member(doc, value, "enum");
    if (!fields == !variants)
        return hob__json_fail(doc, value, error, HOB_ERR_FORMAT,
                              "a type is either {\"struct\": {field: type, "
                              "..}} or {\"enum\": {variant: fields, ..}}");
    return fields ? read_struct(doc, fields, types, def, error)
                  : read_enum(doc, variants, types, def, error);
}

hob_status hob__types_read(const struct hob__json_doc *doc,
                           const struct hob__json_value *map,
                           struct hob__types *out, hob_error *error)
{
    const struct hob__json_value *member;
    hob_status st = HOB_OK;

    memset(out, 0, sizeof(*out));
    if (!map)
        return HOB_OK;
    st = hob__json_expect(doc, map, HOB__JSON_OBJECT, error);
    if (st || !map->count)
        return st;
    out->defs = calloc(map->count, sizeof(struct hob__type_def *));
    if (!out->defs)
        return no_memory(error);
    for (member = hob__json_first(doc, map); member && !st;
         member = hob__json_next(doc, member)) {
        struct hob__type_def *def = calloc(1, sizeof(*def));

        if (!def)
            return no_memory(error);
        st = read_def(doc, member, out, def, error);
        /* Known from here on, not to itself. */
        out->defs[out->count++] = def;
    }
    return st;
}
