/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.c - every tag and every constant that is written for an extension
 * must have a name of its own.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* One name, and what of the manifest it comes from. Tags of structs and enums
 * are apart from all other names, in C++ as well where "struct" is written. */
struct name {
    char *text;
    bool is_tag;
    uint32_t number; /* in the order of the manifest */
    const struct hob__json_value *place;
    const char *of; /* borrowed: an op's or a type's name */
};

struct names {
    const struct gen_schema *schema;
    struct name *items;
    uint32_t count;
    bool failed;
};

/* Take TEXT, a name that comes from PLACE. */
static void add(struct names *names, bool is_tag, struct hob__text *text,
                const struct hob__json_value *place, const char *of)
{
    struct name *grown =
        realloc(names->items, (names->count + (size_t)1) * sizeof(*grown));

    if (grown)
        names->items = grown;
    names->failed = names->failed || !grown;
    if (!grown) {
        hob__text_release(text);
        return;
    }
    grown[names->count].text = hob__text_take(text);
    names->failed = names->failed || !grown[names->count].text;
    grown[names->count].is_tag = is_tag;
    grown[names->count].number = names->count;
    grown[names->count].place = place;
    grown[names->count++].of = of;
}

/* The tag "PREFIX" of "enum PREFIX" and its constants, as gen_enum() writes
 * them. */
static void add_enum(struct names *names, const char *tag,
                     const struct hob__param *param,
                     const struct hob__json_value *place, const char *of)
{
    struct hob__text text = HOB__TEXT_INIT;

    hob__text_puts(&text, tag ? tag : "");
    add(names, true, &text, place, of);
    for (uint32_t i = 0; i < param->enumerator_count; i++) {
        gen_upper(&text, tag ? tag : "");
        hob__text_puts(&text, "_");
        gen_upper(&text, param->enumerators[i]);
        add(names, false, &text, place, of);
    }
}

static void add_type(struct names *names, const struct hob__type_def *def,
                     const struct hob__json_value *place)
{
    const char *prefix = names->schema->prefix;
    struct hob__text text = HOB__TEXT_INIT;
    char *name = gen_type_name(prefix, def);

    hob__text_puts(&text, name ? name : "");
    add(names, true, &text, place, def->name);
    free(name);
    if (def->is_enum) {
        name = gen_variant_enum(prefix, def);
        hob__text_puts(&text, name ? name : "");
        add(names, true, &text, place, def->name);
        free(name);
    }
    for (uint32_t i = 0; i < def->variant_count; i++) {
        const struct hob__variant *variant = &def->variants[i];

        if (def->is_enum) {
            gen_enumerator(&text, prefix, def, i);
            add(names, false, &text, place, def->name);
        }
        for (uint32_t k = 0; k < variant->field_count; k++) {
            if (variant->fields[k].type != HOB__TYPE_ENUM)
                continue;
            name = gen_field_enum(prefix, def, variant, &variant->fields[k]);
            add_enum(names, name, &variant->fields[k], place, def->name);
            free(name);
        }
    }
}

/* "VISION_NMS_ARG_" and the flat NAME, or its NUMBER. */
static void add_index(struct names *names, const struct gen_op *op,
                      const char *what, const char *flat_name, uint32_t number)
{
    struct hob__text text = HOB__TEXT_INIT;

    gen_upper(&text, op->c_name);
    hob__text_puts(&text, what);
    if (flat_name)
        gen_constant(&text, flat_name[0] == '_' ? flat_name + 1 : flat_name);
    else
        hob__text_printf(&text, "%" PRIu32, number);
    add(names, false, &text, op->place, op->full_name);
}

/* BASE and TAIL, of a function or a table. */
static void add_function(struct names *names, const struct gen_op *op,
                         const char *base, const char *tail)
{
    struct hob__text text = HOB__TEXT_INIT;

    hob__text_printf(&text, "%s%s", base, tail);
    add(names, false, &text, op->place, op->full_name);
}

static void add_impls(struct names *names, const struct gen_op *op)
{
    static const char *const kernel_tails[] = {"", "_prepare", "_entry",
                                               "_dtypes"};
    static const char *const backward_tails[] = {"_backward", "_gradient",
                                                 "_save_if"};

    for (uint32_t i = 0; i < op->impl_count; i++) {
        const struct gen_impl *impl = &op->impls[i];
        char *name = gen_impl_name(op, impl, "");

        for (size_t k = 0; k < 4 && impl->kernel; k++)
            add_function(names, op, name ? name : "", kernel_tails[k]);
        for (size_t k = 0; k < 3 && impl->backward; k++)
            add_function(names, op, op->c_name, backward_tails[k]);
        if (impl->layer)
            add_function(names, op, name ? name : "", "_layer");
        free(name);
    }
}

static void add_functions(struct names *names, const struct gen_op *op)
{
    static const char *const tails[] = {"",        "_body",       "_body_glue",
                                        "_infer",  "_infer_glue", "_impls",
                                        "_unpack", "_aliases"};

    for (size_t k = 0; k < GEN_COUNT_OF(tails); k++)
        add_function(names, op, op->c_name, tails[k]);
    add_impls(names, op);
}

/* The tables and functions of the whole, which no op may be called like. */
static void add_plugin(struct names *names)
{
    static const char *const tails[] = {"_ops",    "_implements", "_extension",
                                        "_plugin", "_open",       "_close"};
    const struct gen_source *source = names->schema->sources[0];

    for (size_t k = 0; k < GEN_COUNT_OF(tails); k++) {
        struct hob__text text = HOB__TEXT_INIT;

        hob__text_printf(&text, "%s%s", names->schema->prefix, tails[k]);
        add(names, false, &text, hob__json_root(source->doc),
            "the table of the plugin");
    }
}

static void add_op(struct names *names, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;
    struct hob__text text = HOB__TEXT_INIT;

    for (uint32_t i = 0; i < signature->item_count; i++) {
        uint32_t first = signature->items[i].first;

        if (!signature->items[i].def &&
            signature->params[first].type == HOB__TYPE_ENUM)
            add_enum(names, op->params[first].enum_name,
                     &signature->params[first], op->place, op->full_name);
    }
    for (uint32_t i = 0; i < signature->plain_count; i++)
        if (!*op->plains[i].tail && signature->plains[i].type == HOB__TYPE_ENUM)
            add_enum(names, op->plains[i].enum_name, &signature->plains[i],
                     op->place, op->full_name);
    hob__text_printf(&text, "%s_call", op->c_name);
    add(names, true, &text, op->place, op->full_name);
    for (uint32_t i = 0; i < signature->param_count; i++) {
        add_index(names, op, "_ARG_", signature->params[i].name, 0);
        if (signature->params[i].mask)
            add_index(names, op, "_IN_", signature->params[i].name, 0);
    }
    for (uint32_t i = 0; i < signature->result_count; i++)
        add_index(names, op, "_RET_", signature->results[i].name,
                  op->rets[i].item);
    for (uint32_t i = 0; i < signature->plain_count; i++)
        add_index(names, op, "_PLAIN_", signature->plains[i].name,
                  op->plains[i].item);
}

/* Of two equal names the one that stands later in the text comes second. */
static int compare(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    if (!order)
        order = (int)x->is_tag - (int)y->is_tag;
    return order ? order : (x->number > y->number) - (x->number < y->number);
}

static hob_status find_double(const struct names *names, hob_error *error)
{
    const struct gen_source *source = names->schema->sources[0];

    for (uint32_t i = 1; i < names->count; i++) {
        const struct name *a = &names->items[i - 1], *b = &names->items[i];

        if (a->is_tag != b->is_tag || strcmp(a->text, b->text) != 0)
            continue;
        return gen_fail(source, b->place, error,
                        "%s gets the name %s in C, and %s%s too: rename one "
                        "of them",
                        b->of, b->text,
                        a->of == b->of ? "something else of " : "", a->of);
    }
    return HOB_OK;
}

/* Two fields of one struct: "new" is new_ in C, and "x" may be a list, with
 * x_count beside it. */
static hob_status check_fields(const struct gen_schema *schema,
                               const struct hob__variant *variant,
                               const struct hob__json_value *place,
                               hob_error *error)
{
    bool clash = false;

    for (uint32_t k = 0; k < variant->field_count; k++) {
        for (uint32_t j = 0; j < variant->field_count; j++) {
            const struct hob__param *a = &variant->fields[k];
            const struct hob__param *b = &variant->fields[j];
            char *x = a->name ? gen_c_name(a->name) : NULL;
            char *y = b->name ? gen_c_name(b->name) : NULL;
            size_t length = x ? strlen(x) : 0;

            if (k != j && x && y)
                clash = !strcmp(x, y) ||
                        (gen_has_count(a) && !strncmp(x, y, length) &&
                         !strcmp(y + length, "_count"));
            free(x);
            free(y);
            if (clash)
                return gen_fail(schema->sources[0], place, error,
                                "fields \"%s\" and \"%s\" get one name in C; "
                                "rename one of them",
                                a->name, b->name);
        }
    }
    return HOB_OK;
}

/* Two members of one union: "New" and "New_" are both new_. */
static hob_status check_members(const struct gen_schema *schema,
                                const struct hob__type_def *def,
                                const struct hob__json_value *place,
                                hob_error *error)
{
    hob_status st = HOB_OK;

    for (uint32_t i = 0; i < def->variant_count && !st; i++) {
        st = check_fields(schema, &def->variants[i], place, error);
        for (uint32_t k = 0; k < i && def->is_enum && !st; k++) {
            char *a = gen_member_name(&def->variants[k]);
            char *b = gen_member_name(&def->variants[i]);

            if (a && b && !strcmp(a, b))
                st = gen_fail(schema->sources[0], place, error,
                              "variants \"%s\" and \"%s\" get one name in C; "
                              "rename one of them",
                              def->variants[k].name, def->variants[i].name);
            free(a);
            free(b);
        }
    }
    return st;
}

/* ---- the members of the struct that kernels get ---- */

struct member {
    const char *name;
    bool has_count;
};

/* Whether A's "NAME_count" is B. */
static bool is_count_of(const struct member *a, const struct member *b)
{
    size_t length = strlen(a->name);

    return a->has_count && !strncmp(a->name, b->name, length) &&
           !strcmp(b->name + length, "_count");
}

/* "boxes: Boxes" and "boxes_coords: Float" meet in struct .._call. */
static hob_status check_call_struct(const struct gen_op *op, hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    struct member all[HOB_MAX_PARAMS + 2 * HOB_MAX_RESULTS];
    uint32_t count = 0;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        all[count].has_count = gen_has_count(&signature->params[i]);
        all[count++].name = op->params[i].member;
    }
    for (uint32_t i = 0; i < signature->result_count; i++) {
        all[count].has_count = signature->results[i].is_list;
        all[count++].name = op->rets[i].member;
    }
    for (uint32_t i = 0; i < signature->plain_count; i++) {
        all[count].has_count = false;
        all[count++].name = op->plains[i].member;
    }
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < count; k++) {
            if (i != k && (!strcmp(all[i].name, all[k].name) ||
                           is_count_of(&all[i], &all[k])))
                return gen_fail(
                    op->source,
                    hob__json_member(op->source->doc, op->place, "signature"),
                    error,
                    "two parameters, results or fields get the name %s in "
                    "struct %s_call; rename one of them",
                    all[k].name, op->c_name);
        }
    }
    return HOB_OK;
}

/* ---- the parameters of functions ---- */

/* Whether a function, table or constant of NAMES, sorted, is called TEXT. */
static const struct name *find_name(const struct names *names, const char *text)
{
    uint32_t low = 0, high = names->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (strcmp(names->items[middle].text, text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < names->count && !strcmp(names->items[low].text, text)) {
        if (!names->items[low].is_tag)
            return &names->items[low];
        low++;
    }
    return NULL;
}

/* A parameter hides what is called like it from the function that needs it. */
static hob_status check_params(const struct names *names,
                               const struct gen_op *op, hob_error *error)
{
    const struct hob__signature *signature = &op->signature;
    uint32_t count = signature->item_count + signature->result_item_count;

    for (uint32_t i = 0; i < count; i++) {
        const char *text = i < signature->item_count
                               ? op->item_names[i]
                               : op->out_names[i - signature->item_count];
        const struct name *other = find_name(names, text);

        if (other)
            return gen_fail(
                op->source,
                hob__json_member(op->source->doc, op->place, "signature"),
                error,
                "a parameter or result gets the name %s in C, and something "
                "of %s too; rename one of them",
                text, other->of);
    }
    return HOB_OK;
}

hob_status gen_check_names(const struct gen_schema *schema, hob_error *error)
{
    const struct hob__json_doc *doc = schema->sources[0]->doc;
    const struct hob__json_value *map =
        hob__json_member(doc, hob__json_root(doc), "types");
    struct names names = {schema, NULL, 0, false};
    hob_status st = HOB_OK;

    for (uint32_t i = 0; i < schema->types.count && !st; i++) {
        const struct hob__type_def *def = schema->types.defs[i];
        const struct hob__json_value *place =
            hob__json_member(doc, map, def->name);

        add_type(&names, def, place);
        st = check_members(schema, def, place, error);
    }
    add_plugin(&names);
    for (uint32_t i = 0; i < schema->op_count; i++) {
        add_op(&names, &schema->ops[i]);
        add_functions(&names, &schema->ops[i]);
    }
    for (uint32_t i = 0; i < schema->implements_count; i++)
        add_impls(&names, &schema->implements[i]);
    for (uint32_t i = 0; i < schema->op_count && !st; i++)
        st = check_call_struct(&schema->ops[i], error);
    for (uint32_t i = 0; i < schema->implements_count && !st; i++)
        st = check_call_struct(&schema->implements[i], error);
    if (!st && names.failed)
        st = gen_no_memory(error);
    if (!st && names.count)
        qsort(names.items, names.count, sizeof(*names.items), compare);
    if (!st)
        st = find_double(&names, error);
    for (uint32_t i = 0; i < schema->op_count && !st; i++)
        st = check_params(&names, &schema->ops[i], error);
    for (uint32_t i = 0; i < names.count; i++)
        free(names.items[i].text);
    free(names.items);
    return st;
}
