/* SPDX-License-Identifier: Apache-2.0 */
/*
 * declare.c - the C declarations of parameters, members and functions.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

bool gen_has_count(const struct hob__param *param)
{
    return param->type == HOB__TYPE_TENSORS || param->type == HOB__TYPE_SHAPE ||
           param->type == HOB__TYPE_I64S || param->type == HOB__TYPE_F64S;
}

bool gen_is_optional(const struct hob__param *param)
{
    return (param->flags & HOB__PARAM_OPTIONAL) &&
           !(param->flags & HOB__PARAM_NEEDED);
}

/* An optional number has no spare value: it travels as a tagged one. */
bool gen_is_tagged(const struct hob__param *param)
{
    return param->type == HOB__TYPE_SCALAR ||
           (gen_is_optional(param) &&
            (param->type == HOB__TYPE_F64 || param->type == HOB__TYPE_I64 ||
             param->type == HOB__TYPE_BOOL));
}

/* The type of PARAM, ready to be followed by a name. */
static void c_type(struct hob__text *out, const struct hob__param *param,
                   const char *enum_name, enum gen_member kind)
{
    static const char *const types[] = {[HOB__TYPE_TENSOR] = "hob_tensor *",
                                        [HOB__TYPE_TENSORS] =
                                            "hob_tensor *const *",
                                        [HOB__TYPE_SCALAR] = "hob_scalar ",
                                        [HOB__TYPE_F64] = "double ",
                                        [HOB__TYPE_I64] = "int64_t ",
                                        [HOB__TYPE_BOOL] = "int ",
                                        [HOB__TYPE_STR] = "const char *",
                                        [HOB__TYPE_DTYPE] = "hob_dtype ",
                                        [HOB__TYPE_SHAPE] = "const int64_t *",
                                        [HOB__TYPE_I64S] = "const int64_t *",
                                        [HOB__TYPE_F64S] = "const double *",
                                        [HOB__TYPE_DEVICE] = "hob_device *"};
    uint8_t type = gen_is_tagged(param) ? HOB__TYPE_SCALAR : param->type;

    if (type == HOB__TYPE_ENUM)
        hob__text_printf(out, "enum %s ", enum_name ? enum_name : "?");
    else if (type == HOB__TYPE_TENSOR && kind == GEN_INPUT)
        hob__text_puts(out, "const struct hob_view *");
    else if (type == HOB__TYPE_TENSOR && kind == GEN_OUTPUT)
        hob__text_puts(out, "struct hob_view *");
    else
        hob__text_puts(out, types[type]);
}

void gen_member(struct hob__text *out, const struct hob__param *param,
                const char *name, const char *enum_name, uint32_t depth,
                enum gen_member kind)
{
    hob__text_printf(out, "%*s", (int)(4 * depth), "");
    c_type(out, param, enum_name, kind);
    hob__text_printf(out, "%s;\n", name);
    if (gen_has_count(param))
        hob__text_printf(out, "%*suint32_t %s_count;\n", (int)(4 * depth), "",
                         name);
}

void gen_enums(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;
    struct hob__text of = HOB__TEXT_INIT;
    char *text;

    for (uint32_t i = 0; i < signature->item_count; i++) {
        const struct hob__param *param =
            &signature->params[signature->items[i].first];

        if (signature->items[i].def || param->type != HOB__TYPE_ENUM)
            continue;
        hob__text_printf(&of, "%s of %s", param->name, op->full_name);
        text = hob__text_take(&of);
        gen_enum(out, op->params[signature->items[i].first].enum_name,
                 text ? text : "?", param);
        free(text);
    }
    for (uint32_t i = 0; i < signature->plain_count; i++) {
        const struct gen_place *place = &op->plains[i];

        if (*place->tail || signature->plains[i].type != HOB__TYPE_ENUM)
            continue;
        hob__text_printf(&of, "A result of %s", op->full_name);
        text = hob__text_take(&of);
        gen_enum(out, place->enum_name, text ? text : "?",
                 &signature->plains[i]);
        free(text);
    }
}

bool gen_returns_list(const struct gen_op *op)
{
    return op->signature.result_count == 1 && op->signature.results[0].is_list;
}

bool gen_is_hidden(const struct gen_op *op, uint32_t index, enum gen_side side)
{
    const struct hob__item *item = &op->signature.result_items[index];

    return side == GEN_CALLER && item->name && item->name[0] == '_';
}

bool gen_returns_tensor(const struct gen_op *op, enum gen_side side)
{
    uint32_t tensors = 0;

    for (uint32_t i = 0; i < op->signature.result_item_count; i++) {
        const struct hob__item *item = &op->signature.result_items[i];

        if (gen_is_hidden(op, i, side))
            continue;
        if (item->is_plain || item->def)
            return false;
        tensors++;
    }
    return tensors == 1 && !gen_returns_list(op);
}

enum { MAX_ITEMS = 1 + 2 * HOB_MAX_PARAMS + HOB_MAX_RESULTS + 3 };

static void add_item(char **items, uint32_t *count, struct hob__text *item)
{
    if (*count < MAX_ITEMS)
        items[(*count)++] = hob__text_take(item);
    else
        hob__text_release(item);
}

static void add_params(char **items, uint32_t *count, const struct gen_op *op,
                       enum gen_side side)
{
    struct hob__text item = HOB__TEXT_INIT;

    for (uint32_t i = 0; i < op->signature.item_count; i++) {
        const struct hob__item *written = &op->signature.items[i];
        const struct hob__param *param = &op->signature.params[written->first];
        char *type;

        if (written->def) {
            type = gen_type_name(op->prefix, written->def);
            hob__text_printf(&item, "const struct %s *%s", type ? type : "?",
                             op->item_names[i]);
            add_item(items, count, &item);
            free(type);
            continue;
        }
        if (side == GEN_CALLER && (param->flags & HOB__PARAM_HIDDEN))
            continue;
        c_type(&item, param, op->params[written->first].enum_name, GEN_PROGRAM);
        hob__text_puts(&item, op->item_names[i]);
        add_item(items, count, &item);
        if (!gen_has_count(param))
            continue;
        hob__text_printf(&item, "uint32_t %s_count", op->item_names[i]);
        add_item(items, count, &item);
    }
}

static void add_list_out(char **items, uint32_t *count, enum gen_side side)
{
    struct hob__text item = HOB__TEXT_INIT;

    hob__text_puts(&item, "hob_tensor **out");
    add_item(items, count, &item);
    hob__text_puts(&item, side == GEN_CALLER ? "uint32_t capacity"
                                             : "uint32_t out_count");
    add_item(items, count, &item);
    if (side == GEN_CALLER) {
        hob__text_puts(&item, "uint32_t *out_count");
        add_item(items, count, &item);
    }
}

static void add_outs(char **items, uint32_t *count, const struct gen_op *op,
                     enum gen_side side)
{
    struct hob__text item = HOB__TEXT_INIT;

    for (uint32_t i = 0; i < op->signature.result_item_count; i++) {
        const struct hob__item *written = &op->signature.result_items[i];
        uint32_t plain = written->first_plain;
        char *type;

        if (gen_is_hidden(op, i, side))
            continue;
        if (written->def) {
            type = gen_type_name(op->prefix, written->def);
            hob__text_printf(&item, "struct %s *", type ? type : "?");
            free(type);
        } else if (written->is_plain) {
            c_type(&item, &op->signature.plains[plain],
                   op->plains[plain].enum_name, GEN_PROGRAM);
            hob__text_puts(&item, "*");
        } else {
            hob__text_puts(&item, "hob_tensor **");
        }
        hob__text_puts(&item, op->out_names[i]);
        add_item(items, count, &item);
    }
}

void gen_prototype(struct hob__text *out, const struct gen_op *op,
                   enum gen_side side, const char *head, const char *name,
                   const char *tail)
{
    char *items[MAX_ITEMS];
    uint32_t count = 0;
    struct hob__text item = HOB__TEXT_INIT, start = HOB__TEXT_INIT;
    bool one = gen_returns_tensor(op, side);
    char *text;

    hob__text_puts(&item, "hob_scope *scope");
    add_item(items, &count, &item);
    add_params(items, &count, op, side);
    if (gen_returns_list(op))
        add_list_out(items, &count, side);
    else if (!one)
        add_outs(items, &count, op, side);
    hob__text_printf(&start, "%s%s%s(", head,
                     one ? "hob_tensor *" : "hob_status ", name);
    text = hob__text_take(&start);
    gen_wrapped(out, text ? text : "?", items, count, tail);
    free(text);
    for (uint32_t i = 0; i < count; i++)
        free(items[i]);
}
