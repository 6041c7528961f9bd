/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.c - what kernels, infer functions and backwards read a call with:
 * the numbers of flat arguments and results, and the call unpacked.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void enum_line(struct hob__text *out, const struct gen_op *op,
                      const char *what, const char *flat_name, uint32_t index)
{
    hob__text_puts(out, "    ");
    gen_upper(out, op->c_name);
    hob__text_puts(out, what);
    gen_constant(out, flat_name[0] == '_' ? flat_name + 1 : flat_name);
    hob__text_printf(out, " = %" PRIu32 ",\n", index);
}

/* The flat name of a result; one without a name is its number. */
static void result_line(struct hob__text *out, const struct gen_op *op,
                        const char *what, const char *name,
                        const struct gen_place *place, uint32_t index)
{
    char number[16];

    (void)snprintf(number, sizeof(number), "%u", place->item);
    enum_line(out, op, what, name ? name : number, index);
}

/* Where parameter INDEX's tensors begin among a backward's inputs, unless a
 * list stands before it. */
static bool input_slot(const struct gen_op *op, uint32_t index,
                       uint32_t *out_slot)
{
    *out_slot = 0;
    for (uint32_t i = 0; i < index; i++) {
        if (op->signature.params[i].type == HOB__TYPE_TENSORS)
            return false;
        *out_slot += op->signature.params[i].mask != 0;
    }
    return true;
}

static void input_function(struct hob__text *out, const struct gen_op *op,
                           const char *flat_name)
{
    struct hob__text word = HOB__TEXT_INIT, lower = HOB__TEXT_INIT;
    char *constant;

    gen_constant(&word, flat_name);
    constant = hob__text_take(&word);
    for (const char *p = constant; p && *p; p++) {
        char c = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;

        hob__text_append(&lower, &c, 1);
    }
    hob__text_printf(out, "static inline uint32_t %s_in_%s(", op->c_name,
                     lower.data ? lower.data : "?");
    hob__text_puts(out, "const struct hob_grad_call *call)\n{\n"
                        "    return hob_grad_slot(call, ");
    gen_upper(out, op->c_name);
    hob__text_printf(out, "_ARG_%s);\n}\n\n", constant ? constant : "?");
    hob__text_release(&lower);
    free(constant);
}

static bool has_backward(const struct gen_op *op)
{
    for (uint32_t i = 0; i < op->impl_count; i++) {
        if (op->impls[i].backward)
            return true;
    }
    return false;
}

static void input_indices(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;
    uint32_t slot, count = 0;

    for (uint32_t i = 0; i < signature->param_count; i++)
        count += signature->params[i].mask && input_slot(op, i, &slot);
    if (count)
        hob__text_printf(out, "/* Tensors of %s in its backward. */\nenum {\n",
                         op->full_name);
    for (uint32_t i = 0; i < signature->param_count; i++) {
        if (signature->params[i].mask && input_slot(op, i, &slot))
            enum_line(out, op, "_IN_", signature->params[i].name, slot);
    }
    hob__text_puts(out, count ? "};\n\n" : "");
    for (uint32_t i = 0; i < signature->param_count; i++) {
        if (signature->params[i].mask && !input_slot(op, i, &slot))
            input_function(out, op, signature->params[i].name);
    }
}

void gen_indices(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;

    hob__text_printf(out,
                     "/* Arguments and results of %s in a call. */\n"
                     "enum {\n",
                     op->full_name);
    for (uint32_t i = 0; i < signature->param_count; i++)
        enum_line(out, op, "_ARG_", signature->params[i].name, i);
    for (uint32_t i = 0; i < signature->result_count; i++)
        result_line(out, op, "_RET_", signature->results[i].name, &op->rets[i],
                    i);
    for (uint32_t i = 0; i < signature->plain_count; i++)
        result_line(out, op, "_PLAIN_", signature->plains[i].name,
                    &op->plains[i], i);
    hob__text_puts(out, "};\n\n");
    if (has_backward(op))
        input_indices(out, op);
}

/* ---- the call unpacked ---- */

static void struct_members(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;

    for (uint32_t i = 0; i < signature->item_count; i++) {
        const struct hob__item *item = &signature->items[i];

        if (item->def)
            gen_view_members(out, op->prefix, item->def, op->item_names[i], 1,
                             false);
        else
            gen_member(out, &signature->params[item->first], op->item_names[i],
                       op->params[item->first].enum_name, 1, GEN_INPUT);
    }
    if (gen_returns_list(op)) {
        hob__text_puts(out, "    const hob_value *out; /* tensors */\n"
                            "    uint32_t out_count;\n");
        return;
    }
    for (uint32_t i = 0; i < signature->result_item_count; i++) {
        const struct hob__item *item = &signature->result_items[i];

        if (item->def)
            gen_view_members(out, op->prefix, item->def, op->out_names[i], 1,
                             true);
        else if (item->is_plain)
            gen_member(out, &signature->plains[item->first_plain],
                       op->out_names[i],
                       op->plains[item->first_plain].enum_name, 1, GEN_OUTPUT);
        else
            hob__text_printf(out, "    struct hob_view *%s;\n",
                             op->out_names[i]);
    }
}

/* "    [if (CONDITION)] out->MEMBER = ..", taken from SOURCE or a view. */
static void take(struct hob__text *out, const char *condition,
                 const char *member, const char *expression, bool has_count,
                 const char *source)
{
    const char *margin = condition ? "        " : "    ";

    if (condition)
        hob__text_printf(out, "    if (%s)%s\n", condition,
                         has_count ? " {" : "");
    hob__text_printf(out, "%sout->%s = %s;\n", margin, member, expression);
    if (has_count)
        hob__text_printf(out, "%sout->%s_count = %s.count;\n%s", margin, member,
                         source, condition ? "    }\n" : "");
}

/* The condition under which what belongs to VARIANT of a tag is there; the
 * tag stands at out->MEMBER. Chains of nested enums are joined with &&. */
static void tag_condition(struct hob__text *out, const struct gen_op *op,
                          const struct hob__param *params,
                          const struct gen_place *places, uint8_t tag,
                          uint8_t variant)
{
    if (params[tag].tag_param != HOB__NO_TAG) {
        tag_condition(out, op, params, places, params[tag].tag_param,
                      params[tag].variant);
        hob__text_puts(out, " && ");
    }
    hob__text_printf(out, "out->%s == ", places[tag].member);
    gen_enumerator(out, op->prefix, places[tag].def, variant);
}

static char *condition_of(const struct gen_op *op,
                          const struct hob__param *params,
                          const struct gen_place *places, uint8_t tag,
                          uint8_t variant)
{
    struct hob__text text = HOB__TEXT_INIT;

    if (tag == HOB__NO_TAG)
        return NULL;
    tag_condition(&text, op, params, places, tag, variant);
    return hob__text_take(&text);
}

static void take_param(struct hob__text *out, const struct hob__param *param,
                       const struct gen_place *place, const char *source,
                       const char *view, char *condition)
{
    struct hob__text text = HOB__TEXT_INIT;
    char *expression;

    if (param->type == HOB__TYPE_TENSOR)
        hob__text_puts(&text, view);
    else
        gen_payload(&text, param, place->enum_name, source);
    expression = hob__text_take(&text);
    take(out, condition, place->member, expression ? expression : "?",
         gen_has_count(param), source);
    free(expression);
    free(condition);
}

static void take_all(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;
    char source[40], view[48];

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];

        (void)snprintf(source, sizeof(source), "call->args[%" PRIu32 "]", i);
        (void)snprintf(view, sizeof(view), "hob_arg_view(call, %" PRIu32 ")",
                       i);
        take_param(out, param, &op->params[i], source, view,
                   condition_of(op, signature->params, op->params,
                                param->tag_param, param->variant));
    }
    for (uint32_t i = 0; i < signature->plain_count; i++) {
        const struct hob__param *plain = &signature->plains[i];

        (void)snprintf(source, sizeof(source), "call->plains[%" PRIu32 "]", i);
        take_param(out, plain, &op->plains[i], source, "",
                   condition_of(op, signature->plains, op->plains,
                                plain->tag_param, plain->variant));
    }
    if (gen_returns_list(op)) {
        hob__text_puts(out, "    out->out = call->rets;\n"
                            "    out->out_count = call->ret_count;\n");
        return;
    }
    for (uint32_t i = 0; i < signature->result_count; i++) {
        const struct hob__result *result = &signature->results[i];
        char *condition = condition_of(op, signature->plains, op->plains,
                                       result->tag_plain, result->variant);

        (void)snprintf(view, sizeof(view), "hob_ret_view(call, %" PRIu32 ")",
                       i);
        take(out, condition, op->rets[i].member, view, false, "");
        free(condition);
    }
}

void gen_unpack(struct hob__text *out, const struct gen_op *op)
{
    struct hob__text head = HOB__TEXT_INIT, last = HOB__TEXT_INIT;
    char call[] = "const struct hob_call *call";
    char *items[2] = {call, NULL}, *text;

    hob__text_printf(out,
                     "/* A call of %s, for its kernels. */\n"
                     "struct %s_call {\n",
                     op->full_name, op->c_name);
    struct_members(out, op);
    hob__text_puts(out, "};\n\n");
    hob__text_printf(&last, "struct %s_call *out", op->c_name);
    items[1] = hob__text_take(&last);
    hob__text_printf(&head, "static inline void %s_unpack(", op->c_name);
    text = hob__text_take(&head);
    gen_wrapped(out, text ? text : "?", items, 2, ")\n{\n");
    free(text);
    free(items[1]);
    hob__text_puts(out, "    memset(out, 0, sizeof(*out));\n");
    take_all(out, op);
    hob__text_puts(out, "}\n\n");
}
