/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type_defs.c - types in a signature, laid flat.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "type_defs.h"

#include <stdlib.h>
#include <string.h>

static const char no_memory_text[] = "out of memory";

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

void hob__types_release(struct hob__types *types)
{
    for (uint32_t i = 0; i < types->count; i++)
        release_def(types->defs[i]);
    free(types->defs);
    memset(types, 0, sizeof(*types));
}

/* Where the fields of a type go, and the variant that they belong to. */
struct place {
    struct hob__signature *signature;
    bool is_result;
    uint8_t tag; /* HOB__NO_TAG outside variants */
    uint8_t variant;
    uint8_t depth; /* of types in types */
};

/* Deeper types are a mistake; the walk recurses. */
enum { MAX_DEPTH = 16 };

static const char *add_def(const struct place *place, const char *name,
                           const struct hob__type_def *def);

/* "PREFIX.NAME", or the one that is there; allocated. */
static char *join(const char *prefix, const char *name)
{
    size_t head = prefix ? strlen(prefix) : 0;
    size_t tail = name ? strlen(name) : 0;
    char *text = calloc(1, head + tail + 2);

    if (!text)
        return NULL;
    if (head)
        memcpy(text, prefix, head);
    if (head && tail)
        text[head++] = '.';
    if (tail)
        memcpy(text + head, name, tail);
    return text;
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
    struct place inside = *place;

    if (inside.depth++ == MAX_DEPTH)
        return "types lie in types more than 16 deep";
    return def->is_enum ? add_enum(&inside, name, def)
                        : add_fields(&inside, name, def->variants);
}

const char *hob__type_add_params(struct hob__signature *signature,
                                 const char *name,
                                 const struct hob__type_def *def)
{
    struct place place = {signature, false, HOB__NO_TAG, 0, 0};

    return add_def(&place, name, def);
}

const char *hob__type_add_results(struct hob__signature *signature,
                                  const char *name,
                                  const struct hob__type_def *def)
{
    struct place place = {signature, true, HOB__NO_TAG, 0, 0};

    return add_def(&place, name, def);
}
