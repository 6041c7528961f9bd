/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "type_defs.h"

#include "text.h"

#include <stdlib.h>
#include <string.h>

static const char no_memory_text[] = "out of memory";

static hob_status no_memory(hob_error *error)
{
    return hob_error_set(error, HOB_ERR_MEMORY, "no memory for the types");
}

/* ---- reading ---- */

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

static void release_def(struct hob__type_def *def)
{
    for (uint32_t i = 0; i < def->variant_count; i++) {
        struct hob__variant *variant = &def->variants[i];

        for (uint32_t k = 0; k < variant->field_count; k++)
            hob__param_release(&variant->fields[k]);
        free(variant->fields);
        free(variant->name);
    }
    free(def->variants);
    free(def->name);
    free(def->doc);
    free(def);
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
        if (st)
            release_def(def);
        else
            out->defs[out->count++] = def;
    }
    return st;
}

void hob__types_release(struct hob__types *types)
{
    for (uint32_t i = 0; i < types->count; i++)
        release_def(types->defs[i]);
    free(types->defs);
    memset(types, 0, sizeof(*types));
}

/* ---- lying flat ---- */

/* Where the fields of a type go, and the variant that they belong to. */
struct place {
    struct hob__signature *signature;
    bool is_result;
    uint8_t tag; /* HOB__NO_TAG outside variants */
    uint8_t variant;
};

static const char *add_def(const struct place *place, const char *name,
                           const struct hob__type_def *def);

/* "PREFIX.NAME", or the one that is there; allocated. */
static char *join(const char *prefix, const char *name)
{
    struct hob__text text = HOB__TEXT_INIT;
    bool both = prefix && *prefix && name && *name;

    hob__text_printf(&text, "%s%s%s", prefix ? prefix : "", both ? "." : "",
                     name ? name : "");
    return hob__text_take(&text);
}

static const char *add_enumerator(struct hob__param *to, const char *name)
{
    char **grown = realloc(to->enumerators,
                           (to->enumerator_count + (size_t)1) * sizeof(*grown));

    if (!grown)
        return no_memory_text;
    to->enumerators = grown;
    grown[to->enumerator_count] = strdup(name);
    if (!grown[to->enumerator_count])
        return no_memory_text;
    to->enumerator_count++;
    return NULL;
}

/* What stands in a variant is there with it alone. */
static uint8_t flags_at(const struct place *place, uint8_t flags)
{
    if (place->tag == HOB__NO_TAG)
        return flags;
    return (uint8_t)((flags & HOB__PARAM_OPTIONAL ? 0 : HOB__PARAM_NEEDED) |
                     HOB__PARAM_OPTIONAL);
}

/* Two fields can come to the same name: "a.b" of one, and of another. */
static bool is_taken(const struct place *place, const char *name)
{
    const struct hob__signature *s = place->signature;

    for (uint32_t i = 0; !place->is_result && i < s->param_count; i++)
        if (!strcmp(s->params[i].name, name))
            return true;
    for (uint32_t i = 0; place->is_result && i < s->result_count; i++)
        if (s->results[i].name && !strcmp(s->results[i].name, name))
            return true;
    for (uint32_t i = 0; place->is_result && i < s->plain_count; i++)
        if (s->plains[i].name && !strcmp(s->plains[i].name, name))
            return true;
    return false;
}

static const char taken_text[] =
    "two fields get one name: rename a parameter, a result or a field";

/* The next parameter, or the next plain result. NAME is taken over. */
static const char *add_param(const struct place *place, char *name,
                             uint8_t type, uint8_t flags,
                             struct hob__param **out)
{
    struct hob__signature *signature = place->signature;
    uint16_t *count =
        place->is_result ? &signature->plain_count : &signature->param_count;
    uint32_t most = place->is_result ? HOB_MAX_RESULTS : HOB_MAX_PARAMS;
    struct hob__param *param;

    if (!name)
        return no_memory_text;
    if (is_taken(place, name)) {
        free(name);
        return taken_text;
    }
    if (*count == most) {
        free(name);
        return place->is_result
                   ? "more than 16 plain results, the fields of types counted"
                   : "more than 32 parameters, the fields of types counted";
    }
    param = place->is_result ? &signature->plains[*count]
                             : &signature->params[*count];
    param->name = name;
    param->type = type;
    param->flags = flags_at(place, flags);
    param->tag_param = place->tag;
    param->variant = place->variant;
    ++*count;
    if (!place->is_result) {
        if (!(param->flags & HOB__PARAM_OPTIONAL))
            signature->required_count = signature->param_count;
        signature->tensor_count +=
            type == HOB__TYPE_TENSOR || type == HOB__TYPE_TENSORS;
    }
    *out = param;
    return NULL;
}

static const char *add_result(const struct place *place, char *name,
                              const struct hob__param *field)
{
    struct hob__signature *signature = place->signature;
    struct hob__result *result;

    if (!name)
        return no_memory_text;
    if (is_taken(place, name)) {
        free(name);
        return taken_text;
    }
    if (signature->result_count == HOB_MAX_RESULTS) {
        free(name);
        return "more than 16 results, the fields of types counted";
    }
    result = &signature->results[signature->result_count++];
    result->name = name;
    result->source =
        field->mask == HOB_MASK_BOOL ? HOB__RESULT_DTYPE : HOB__RESULT_INFERRED;
    result->dtype = field->mask == HOB_MASK_BOOL ? HOB_DTYPE_BOOL : 0;
    result->flags = flags_at(place, field->flags);
    result->tag_plain = place->tag;
    result->variant = place->variant;
    result->text = strdup(field->kind);
    return result->text ? NULL : no_memory_text;
}

static const char *add_plain(const struct place *place, char *name,
                             const struct hob__param *field)
{
    struct hob__param *param;
    const char *message;

    if (place->is_result && field->type != HOB__TYPE_F64 &&
        field->type != HOB__TYPE_I64 && field->type != HOB__TYPE_BOOL &&
        field->type != HOB__TYPE_DTYPE && field->type != HOB__TYPE_ENUM) {
        free(name);
        return "a result of this type has a field that cannot be returned: "
               "there only f64, i64, bool, dtype and enum(..) stand beside "
               "single tensors";
    }
    message = add_param(place, name, field->type, field->flags, &param);
    if (message)
        return message;
    param->mask = field->mask;
    param->kind = field->kind;
    for (uint32_t i = 0; i < field->enumerator_count && !message; i++)
        message = add_enumerator(param, field->enumerators[i]);
    return message;
}

static const char *add_fields(const struct place *place, const char *prefix,
                              const struct hob__variant *variant)
{
    const char *message = NULL;

    for (uint32_t i = 0; i < variant->field_count && !message; i++) {
        const struct hob__param *field = &variant->fields[i];
        char *name = join(prefix, field->name);

        if (field->def) {
            message = name ? add_def(place, name, field->def) : no_memory_text;
            free(name);
        } else if (place->is_result && field->type == HOB__TYPE_TENSOR) {
            message = add_result(place, name, field);
        } else {
            message = add_plain(place, name, field);
        }
    }
    return message;
}

static const char *add_enum(const struct place *place, const char *name,
                            const struct hob__type_def *def)
{
    struct place inside = *place;
    const char *message;
    struct hob__param *tag;

    message = add_param(place, strdup(*name ? name : "variant"), HOB__TYPE_ENUM,
                        0, &tag);
    for (uint32_t i = 0; i < def->variant_count && !message; i++)
        message = add_enumerator(tag, def->variants[i].name);
    if (message)
        return message;
    inside.tag = (uint8_t)((place->is_result ? place->signature->plain_count
                                             : place->signature->param_count) -
                           1);
    for (uint32_t i = 0; i < def->variant_count && !message; i++) {
        char *prefix = join(name, def->variants[i].name);

        inside.variant = (uint8_t)i;
        message = prefix ? add_fields(&inside, prefix, &def->variants[i])
                         : no_memory_text;
        free(prefix);
    }
    return message;
}

static const char *add_def(const struct place *place, const char *name,
                           const struct hob__type_def *def)
{
    return def->is_enum ? add_enum(place, name, def)
                        : add_fields(place, name, def->variants);
}

const char *hob__type_add_params(struct hob__signature *signature,
                                 const char *name,
                                 const struct hob__type_def *def)
{
    struct place place = {signature, false, HOB__NO_TAG, 0};

    return add_def(&place, name, def);
}

const char *hob__type_add_results(struct hob__signature *signature,
                                  const char *name,
                                  const struct hob__type_def *def)
{
    struct place place = {signature, true, HOB__NO_TAG, 0};

    return add_def(&place, name, def);
}
