/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - from the uniform call to a typed body and back.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ITEMS = 1 + 2 * HOB_MAX_PARAMS + HOB_MAX_RESULTS + 3 };

static void add_item(char **items, uint32_t *count, struct hob__text *item)
{
    if (*count < MAX_ITEMS)
        items[(*count)++] = hob__text_take(item);
    else
        hob__text_release(item);
}

/* "STORAGE hob_status NAME(scope, call, LAST)", as all of them begin. */
static void glue_head(struct hob__text *out, const char *storage,
                      const char *name, const char *last)
{
    struct hob__text head = HOB__TEXT_INIT;
    char scope[] = "hob_scope *scope", call[] = "const struct hob_call *call";
    char *items[3] = {scope, call, strdup(last)};
    char *text;

    hob__text_printf(&head, "%s hob_status %s(", storage, name);
    text = hob__text_take(&head);
    gen_wrapped(out, text ? text : "?", items, 3, ")\n{\n");
    free(items[2]);
    free(text);
}

/* Locals for the structs, and for what is no tensor among the results. */
static void locals(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;

    for (uint32_t i = 0; i < signature->item_count; i++) {
        char *type;

        if (!signature->items[i].def)
            continue;
        type = gen_type_name(op->prefix, signature->items[i].def);
        hob__text_printf(out, "    struct %s %s;\n", type ? type : "?",
                         op->item_names[i]);
        free(type);
    }
    for (uint32_t i = 0; i < signature->result_item_count; i++) {
        const struct hob__item *item = &signature->result_items[i];
        char *type;

        if (item->def) {
            type = gen_type_name(op->prefix, item->def);
            hob__text_printf(out, "    struct %s %s;\n", type ? type : "?",
                             op->out_names[i]);
            free(type);
        } else if (item->is_plain) {
            gen_member(out, &signature->plains[item->first_plain],
                       op->out_names[i],
                       op->plains[item->first_plain].enum_name, 1, GEN_PROGRAM);
        }
    }
}

static void clear_structs(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;

    for (uint32_t i = 0; i < signature->item_count; i++) {
        if (signature->items[i].def)
            hob__text_printf(out, "    memset(&%s, 0, sizeof(%s));\n",
                             op->item_names[i], op->item_names[i]);
    }
    for (uint32_t i = 0; i < signature->result_item_count; i++) {
        if (signature->result_items[i].def)
            hob__text_printf(out, "    memset(&%s, 0, sizeof(%s));\n",
                             op->out_names[i], op->out_names[i]);
    }
}

/* "    [if (CONDITION)] PATH = SOURCE's payload;" */
static void fill(struct hob__text *out, const char *condition, const char *item,
                 const struct gen_place *place, const struct hob__param *param,
                 const char *source)
{
    const char *margin = condition ? "        " : "    ";

    if (condition)
        hob__text_printf(out, "    if (%s)%s\n", condition,
                         gen_has_count(param) ? " {" : "");
    hob__text_puts(out, margin);
    gen_path(out, item, ".", place);
    hob__text_puts(out, " = ");
    gen_payload(out, param, place->enum_name, source);
    hob__text_puts(out, ";\n");
    if (!gen_has_count(param))
        return;
    hob__text_puts(out, margin);
    gen_path(out, item, ".", place);
    hob__text_printf(out, "_count = %s.count;\n%s", source,
                     condition ? "    }\n" : "");
}

static void fill_structs(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;
    struct hob__text condition = HOB__TEXT_INIT;
    char source[32], *text;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct gen_place *place = &op->params[i];

        if (!*place->tail)
            continue;
        (void)snprintf(source, sizeof(source), "args[%" PRIu32 "]", i);
        text = gen_param_condition(&condition, op, i, ".")
                   ? hob__text_take(&condition)
                   : NULL;
        fill(out, text, op->item_names[place->item], place,
             &signature->params[i], source);
        free(text);
    }
    for (uint32_t i = 0; i < signature->plain_count; i++) {
        const struct gen_place *place = &op->plains[i];
        const struct hob__param *plain = &signature->plains[i];

        (void)snprintf(source, sizeof(source), "call->plains[%" PRIu32 "]", i);
        text = gen_result_condition(&condition, op, plain->tag_param,
                                    plain->variant, ".")
                   ? hob__text_take(&condition)
                   : NULL;
        fill(out, text, op->out_names[place->item], place, plain, source);
        free(text);
    }
}

/* What the body gets for parameter ITEM. */
static void pass_param(char **items, uint32_t *count, const struct gen_op *op,
                       uint32_t index)
{
    const struct hob__item *written = &op->signature.items[index];
    const struct hob__param *param = &op->signature.params[written->first];
    struct hob__text item = HOB__TEXT_INIT;
    char source[32];

    if (written->def) {
        hob__text_printf(&item, "&%s", op->item_names[index]);
        add_item(items, count, &item);
        return;
    }
    (void)snprintf(source, sizeof(source), "args[%u]", written->first);
    gen_payload(&item, param, op->params[written->first].enum_name, source);
    add_item(items, count, &item);
    if (gen_has_count(param)) {
        hob__text_printf(&item, "%s.count", source);
        add_item(items, count, &item);
    }
}

static void pass_outs(char **items, uint32_t *count, const struct gen_op *op)
{
    struct hob__text item = HOB__TEXT_INIT;

    if (gen_returns_list(op)) {
        hob__text_puts(&item, "rets");
        add_item(items, count, &item);
        hob__text_puts(&item, "call->ret_count");
        add_item(items, count, &item);
        return;
    }
    for (uint32_t i = 0; i < op->signature.result_item_count; i++) {
        const struct hob__item *written = &op->signature.result_items[i];

        if (written->def || written->is_plain)
            hob__text_printf(&item, "&%s", op->out_names[i]);
        else
            hob__text_printf(&item, "&rets[%u]", written->first);
        add_item(items, count, &item);
    }
}

/* After the body: its plain results are as they were, its tensors go out. */
static void take_results(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;
    struct hob__text condition = HOB__TEXT_INIT;
    char *text;

    for (uint32_t i = 0; i < signature->plain_count; i++) {
        const struct gen_place *place = &op->plains[i];
        const struct hob__param *plain = &signature->plains[i];
        struct hob__text path = HOB__TEXT_INIT;

        gen_path(&path, op->out_names[place->item], ".", place);
        text = hob__text_take(&path);
        hob__text_puts(out, "    if (!status");
        if (gen_result_condition(&condition, op, plain->tag_param,
                                 plain->variant, ".")) {
            char *when = hob__text_take(&condition);

            hob__text_printf(out, " && %s", when ? when : "?");
            free(when);
        }
        hob__text_printf(out,
                         ")\n        status = keep_plain(scope, call, %" PRIu32
                         ", \"%s\",\n                            ",
                         i,
                         plain->name ? plain->name
                         : text      ? text
                                     : "?");
        gen_value(out, plain, text ? text : "?");
        hob__text_puts(out, ");\n");
        free(text);
    }
    hob__text_puts(out, "    if (status)\n        return status;\n");
    for (uint32_t i = 0; i < signature->result_count; i++) {
        const struct gen_place *place = &op->rets[i];
        const struct hob__result *result = &signature->results[i];

        if (!*place->tail)
            continue;
        hob__text_printf(out, "    rets[%" PRIu32 "] = ", i);
        if (gen_result_condition(out, op, result->tag_plain, result->variant,
                                 "."))
            hob__text_puts(out, "\n                  ? ");
        gen_path(out, op->out_names[place->item], ".", place);
        hob__text_puts(out, result->tag_plain == HOB__NO_TAG
                                ? ";\n"
                                : "\n                  : NULL;\n");
    }
}

void gen_body_glue(struct hob__text *out, const struct gen_op *op,
                   const char *storage, const char *glue, const char *body)
{
    char *items[MAX_ITEMS];
    uint32_t count = 0;
    struct hob__text item = HOB__TEXT_INIT, start = HOB__TEXT_INIT;
    bool one = gen_returns_tensor(op, GEN_BODY), typed = false;
    char *text;

    for (uint32_t i = 0; i < op->signature.result_item_count; i++)
        typed = typed || op->signature.result_items[i].def ||
                op->signature.result_items[i].is_plain;
    glue_head(out, storage, glue, "hob_tensor **rets");
    if (op->signature.param_count)
        hob__text_puts(out, "    const hob_value *args = call->args;\n");
    locals(out, op);
    if (typed)
        hob__text_puts(out, "    hob_status status;\n");
    if (op->signature.param_count || typed)
        hob__text_puts(out, "\n");
    if (!op->signature.param_count && !op->signature.plain_count && !one &&
        !gen_returns_list(op))
        hob__text_puts(out, "    (void)call;\n");
    if (!op->signature.result_count)
        hob__text_puts(out, "    (void)rets;\n");
    clear_structs(out, op);
    fill_structs(out, op);
    hob__text_puts(&item, "scope");
    add_item(items, &count, &item);
    for (uint32_t i = 0; i < op->signature.item_count; i++)
        pass_param(items, &count, op, i);
    if (!one)
        pass_outs(items, &count, op);
    hob__text_printf(&start, "    %s %s(",
                     one     ? "rets[0] ="
                     : typed ? "status ="
                             : "return",
                     body);
    text = hob__text_take(&start);
    gen_wrapped(out, text ? text : "?", items, count, ");\n");
    free(text);
    for (uint32_t i = 0; i < count; i++)
        free(items[i]);
    if (typed) {
        take_results(out, op);
        hob__text_puts(out, "    return HOB_OK;\n");
    } else if (one) {
        hob__text_printf(out,
                         "    return %sfinish_body(scope, call, rets[0]);\n",
                         op->signature.results[0].flags & HOB__PARAM_OPTIONAL
                             ? "!rets[0] ? HOB_OK : "
                             : "");
    }
    hob__text_puts(out, "}\n\n");
}

/* ---- what these functions share ---- */

static void finish_helper(struct hob__text *out, const char *storage)
{
    hob__text_puts(out, "/* The status of a body that returned RESULT. */\n");
    glue_head(out, storage, "finish_body", "hob_tensor *result");
    hob__text_puts(
        out, "    const struct hob_host *host = hob_scope_host(scope);\n"
             "    hob_status st;\n"
             "\n"
             "    if (!result) {\n"
             "        (void)host->scope_fail(scope, HOB_ERR_INTERNAL,\n"
             "                               \"%s: its body returned NULL\",\n"
             "                               call->op_name);\n"
             "        return HOB_ERR_INTERNAL;\n"
             "    }\n"
             "    if (!host->tensor_is_error(result))\n"
             "        return HOB_OK;\n"
             "    st = host->scope_status(scope);\n"
             "    return st ? st : HOB_ERR_INTERNAL;\n"
             "}\n\n");
}

static void plain_helper(struct hob__text *out, const char *storage)
{
    hob__text_printf(
        out,
        "/* What infer said of a plain result holds: a body reads it only. */\n"
        "%s hob_status keep_plain(hob_scope *scope, const struct hob_call "
        "*call,\n"
        "                             uint32_t index, const char *name,\n"
        "                             hob_value now)\n"
        "{\n"
        "    const hob_value *was = &call->plains[index];\n"
        "\n"
        "    /* No dtype is an absent value. */\n"
        "    if ((now.tag == was->tag || was->tag == HOB_TAG_DTYPE) &&\n"
        "        (!was->tag || now.u.u64 == was->u.u64))\n"
        "        return HOB_OK;\n"
        "    if (now.tag == HOB_TAG_F64 || was->tag == HOB_TAG_F64)\n"
        "        (void)hob_scope_host(scope)->scope_fail(\n"
        "            scope, HOB_ERR_INTERNAL,\n"
        "            \"%%s: its body changed the result %%s from %%g to %%g; "
        "infer \"\n"
        "            \"alone sets it\",\n"
        "            call->op_name, name, was->tag ? was->u.f64 : 0.0,\n"
        "            now.tag ? now.u.f64 : 0.0);\n"
        "    else\n"
        "        (void)hob_scope_host(scope)->scope_fail(\n"
        "            scope, HOB_ERR_INTERNAL,\n"
        "            \"%%s: its body changed the result %%s from %%lld to "
        "%%lld; infer \"\n"
        "            \"alone sets it\",\n"
        "            call->op_name, name, (long long)was->u.i64,\n"
        "            (long long)now.u.i64);\n"
        "    return HOB_ERR_INTERNAL;\n"
        "}\n\n",
        storage);
}

void gen_body_helpers(struct hob__text *out, const struct gen_op *ops,
                      uint32_t count, const char *storage)
{
    bool has_tensor = false, has_plain = false;

    for (uint32_t i = 0; i < count; i++) {
        if (!ops[i].body)
            continue;
        has_tensor = has_tensor || gen_returns_tensor(&ops[i], GEN_BODY);
        has_plain = has_plain || ops[i].signature.plain_count;
    }
    if (has_tensor)
        finish_helper(out, storage);
    if (has_plain)
        plain_helper(out, storage);
}
