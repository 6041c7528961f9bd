/* SPDX-License-Identifier: Apache-2.0 */
/*
 * place.c - where each flat parameter and result of an op stands in C.
 *
 * A signature lists the fields of structs and enums flat, in the order that
 * core/src/type_defs.c gives them. The walk here takes the same order and
 * notes for each how a program and a kernel reach it.
 */
#include "gen.h"

#include <stdlib.h>
#include <string.h>

/*
 * Words that no C or C++ parameter may have, the names that the generated
 * functions use themselves, and macros, some of which only GNU dialects have.
 * A parameter of such a name gets a '_' behind it. "ret" could be a list, with
 * ret_count beside it.
 */
static const char taken_words[] =
    " alignas alignof and and_eq args asm auto bitand bitor bool break "
    "call capacity case catch char class co_await co_return co_yield "
    "compl concept const consteval constexpr constinit continue decltype "
    "default delete do double else enum EOF errno error explicit export "
    "extern false finish_body float for friend goto host if INFINITY "
    "inline int keep_plain linux long memset mutable namespace NAN new "
    "noexcept not not_eq NULL nullptr op operator or or_eq out out_count "
    "plains private protected public ref register requires restrict "
    "ret ret_count rets return scope short signed sizeof static static_assert "
    "status stderr stdin stdout struct switch template this thread_local "
    "throw true try typedef typeid typename typeof typeof_unqual union "
    "unix unsigned using virtual void volatile while xor xor_eq ";

/* Types end in _t, what Hob declares begins with its name. */
bool gen_is_taken(const char *name)
{
    size_t length = strlen(name);
    const char *at = taken_words;

    if (!strncmp(name, "hob_", 4) || !strncmp(name, "HOB_", 4) ||
        (length > 2 && !strcmp(name + length - 2, "_t")))
        return true;
    while (length && (at = strstr(at, name)) != NULL) {
        if (at[-1] == ' ' && at[length] == ' ')
            return true;
        at += length;
    }
    return false;
}

/* NAME as a parameter or member in C. */
char *gen_c_name(const char *name)
{
    struct hob__text text = HOB__TEXT_INIT;
    char *c_name;

    hob__text_printf(&text, "%s%s", name, gen_is_taken(name) ? "_" : "");
    c_name = hob__text_take(&text);
    for (char *p = c_name; p && *p; p++)
        *p = *p == '.' ? '_' : *p;
    return c_name;
}

/* One walk through the types of a signature. */
struct walk {
    struct gen_op *op;
    bool is_result;
    uint8_t item;
    uint32_t param; /* the next of each kind */
    uint32_t result;
    uint32_t plain;
};

static struct gen_place *next_place(struct walk *walk, bool is_tensor)
{
    struct gen_op *op = walk->op;

    if (!walk->is_result)
        return &op->params[walk->param++];
    return is_tensor ? &op->rets[walk->result++] : &op->plains[walk->plain++];
}

/* "A", then SEPARATOR between two that are not empty, then "B". */
static char *join(const char *a, const char *separator, const char *b)
{
    struct hob__text text = HOB__TEXT_INIT;

    hob__text_printf(&text, "%s%s%s", a, *a && *b ? separator : "", b);
    return hob__text_take(&text);
}

/* Note where the next flat one stands; false without memory. */
static bool put(struct walk *walk, bool is_tensor, const char *tail,
                const char *member, char *enum_name,
                const struct hob__type_def *def)
{
    struct gen_place *place = next_place(walk, is_tensor);

    place->item = walk->item;
    place->tail = strdup(tail);
    place->member = strdup(member);
    place->enum_name = enum_name;
    place->def = def;
    return place->tail && place->member;
}

static bool walk_def(struct walk *walk, const struct hob__type_def *def,
                     const char *tail, const char *member,
                     const char *separator);

/* FIELD at TAIL, for kernels at MEMBER. */
static bool walk_field(struct walk *walk, const struct hob__type_def *def,
                       const struct hob__variant *variant,
                       const struct hob__param *field, const char *tail,
                       const char *member, const char *separator)
{
    if (field->def)
        return walk_def(walk, field->def, tail, member, separator);
    return put(walk, field->type == HOB__TYPE_TENSOR, tail, member,
               field->type == HOB__TYPE_ENUM
                   ? gen_field_enum(walk->op->prefix, def, variant, field)
                   : NULL,
               NULL);
}

static bool walk_fields(struct walk *walk, const struct hob__type_def *def,
                        const struct hob__variant *variant, const char *tail,
                        const char *member, const char *separator)
{
    bool ok = true;

    for (uint32_t i = 0; i < variant->field_count && ok; i++) {
        const struct hob__param *field = &variant->fields[i];
        char *name = gen_c_name(field->name);
        char *inside = name ? join(tail, ".", name) : NULL;
        char *flat = name ? join(member, separator, name) : NULL;

        ok = inside && flat &&
             walk_field(walk, def, variant, field, inside, flat, "_");
        free(name);
        free(inside);
        free(flat);
    }
    return ok;
}

/* The fields of one variant of an enum at TAIL. */
static bool walk_variant(struct walk *walk, const struct hob__type_def *def,
                         const struct hob__variant *variant, const char *tail,
                         const char *member)
{
    char *name = gen_member_name(variant);
    char *u = name ? join("u", ".", name) : NULL;
    char *inside = u ? join(tail, ".", u) : NULL;
    char *flat = u ? join(member, ".", u) : NULL;
    bool ok = inside && flat;

    if (ok && variant->field_count == 1 && !variant->fields[0].name) {
        /* A list has two members, so it stands in a struct. */
        if (gen_has_count(&variant->fields[0])) {
            char *list = join(inside, ".", "items");
            char *flat_list = join(flat, ".", "items");

            ok = list && flat_list &&
                 walk_field(walk, def, variant, variant->fields, list,
                            flat_list, ".");
            free(list);
            free(flat_list);
        } else {
            ok = walk_field(walk, def, variant, variant->fields, inside, flat,
                            ".");
        }
    } else if (ok) {
        ok = walk_fields(walk, def, variant, inside, flat, ".");
    }
    free(name);
    free(u);
    free(inside);
    free(flat);
    return ok;
}

static bool walk_def(struct walk *walk, const struct hob__type_def *def,
                     const char *tail, const char *member,
                     const char *separator)
{
    char *inside, *flat;
    bool ok;

    if (!def->is_enum)
        return walk_fields(walk, def, def->variants, tail, member, separator);
    inside = join(tail, ".", "variant");
    flat = join(member, ".", "variant");
    ok = inside && flat &&
         put(walk, false, inside, flat, gen_variant_enum(walk->op->prefix, def),
             def);
    free(inside);
    free(flat);
    for (uint32_t i = 0; i < def->variant_count && ok; i++)
        ok = walk_variant(walk, def, &def->variants[i], tail, member);
    return ok;
}

/* "demo_pad_mode" of an enum(..) that stands in the signature itself. */
static char *own_enum(const struct gen_op *op, const struct hob__param *param,
                      const char *name)
{
    return param->type == HOB__TYPE_ENUM ? join(op->c_name, "_", name) : NULL;
}

static bool place_params(struct walk *walk)
{
    struct gen_op *op = walk->op;
    bool ok = true;

    for (uint32_t i = 0; i < op->signature.item_count && ok; i++) {
        const struct hob__item *item = &op->signature.items[i];
        const struct hob__param *param = &op->signature.params[item->first];

        walk->item = (uint8_t)i;
        op->item_names[i] = gen_c_name(item->name);
        ok = op->item_names[i] != NULL;
        if (ok && item->def)
            ok = walk_def(walk, item->def, "", op->item_names[i], "_");
        else if (ok)
            ok = put(walk, false, "", op->item_names[i],
                     own_enum(op, param, param->name), NULL);
    }
    return ok;
}

/*
 * "out_NAME", else "out_0", "out_1" and so on; a struct, enum or list that is
 * all there is, and what a kernel writes there, "out".
 */
static char *out_name(const struct gen_op *op, uint32_t index)
{
    char *name;

    const struct hob__item *item = &op->signature.result_items[index];
    struct hob__text text = HOB__TEXT_INIT;

    if (item->name)
        hob__text_printf(&text, "out_%s",
                         item->name[0] == '_' ? item->name + 1 : item->name);
    else if (op->signature.result_item_count == 1 && !item->is_plain)
        hob__text_puts(&text, "out");
    else
        hob__text_printf(&text, "out_%u", (unsigned)index);
    name = hob__text_take(&text);
    for (char *p = name; p && *p; p++)
        *p = *p == '.' ? '_' : *p;
    return name;
}

static bool place_results(struct walk *walk)
{
    struct gen_op *op = walk->op;
    bool ok = true;

    for (uint32_t i = 0; i < op->signature.result_item_count && ok; i++) {
        const struct hob__item *item = &op->signature.result_items[i];

        walk->item = (uint8_t)i;
        op->out_names[i] = out_name(op, i);
        ok = op->out_names[i] != NULL;
        if (ok && item->def)
            ok = walk_def(walk, item->def, "", op->out_names[i], "_");
        else if (ok && item->is_plain)
            ok = put(walk, false, "", op->out_names[i],
                     own_enum(op, &op->signature.plains[item->first_plain],
                              item->name ? item->name : op->out_names[i]),
                     NULL);
        else if (ok)
            ok = put(walk, true, "", op->out_names[i], NULL, NULL);
    }
    return ok;
}

hob_status gen_place(struct gen_op *op, hob_error *error)
{
    struct walk walk = {op, false, 0, 0, 0, 0};

    if (!place_params(&walk))
        return gen_no_memory(error);
    walk.is_result = true;
    if (!place_results(&walk))
        return gen_no_memory(error);
    /* Both walks must agree, or every index is wrong. */
    if (walk.param != op->signature.param_count ||
        walk.result != op->signature.result_count ||
        walk.plain != op->signature.plain_count)
        return gen_fail(op->source, op->place, error,
                        "internal error: flat parameters or results do not "
                        "match the signature");
    return HOB_OK;
}

static void release(struct gen_place *places, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        free(places[i].tail);
        free(places[i].member);
        free(places[i].enum_name);
    }
}

void gen_place_release(struct gen_op *op)
{
    release(op->params, HOB_MAX_PARAMS);
    release(op->rets, HOB_MAX_RESULTS);
    release(op->plains, HOB_MAX_RESULTS);
    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
        free(op->item_names[i]);
    for (uint32_t i = 0; i < HOB_MAX_RESULTS; i++)
        free(op->out_names[i]);
}

void gen_path(struct hob__text *out, const char *item, const char *arrow,
              const struct gen_place *place)
{
    hob__text_printf(out, "%s%s%s", item, *place->tail ? arrow : "",
                     place->tail);
}
