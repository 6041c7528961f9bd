/* SPDX-License-Identifier: Apache-2.0 */
/*
 * header.c - the typed, inline functions over the uniform call.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* How many arguments a wrapper passes: hidden ones come last and stay out. */
static uint32_t visible_count(const struct gen_op *op)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < op->signature.param_count; i++)
        count += !(op->signature.params[i].flags & HOB__PARAM_HIDDEN);
    return count;
}

/* "        args[3] = .."; what belongs to another variant is absent. */
static void pack_all(struct hob__text *out, const struct gen_op *op,
                     const char *margin)
{
    for (uint32_t i = 0; i < visible_count(op); i++) {
        const struct hob__param *param = &op->signature.params[i];
        const struct gen_place *place = &op->params[i];
        struct hob__text path = HOB__TEXT_INIT;
        bool conditional;
        char *text;

        hob__text_printf(out, "%sargs[%" PRIu32 "] = ", margin, i);
        conditional = gen_param_condition(out, op, i, "->");
        if (conditional)
            hob__text_printf(out, "\n%s              ? ", margin);
        gen_path(&path, op->item_names[place->item], "->", place);
        text = hob__text_take(&path);
        gen_value(out, param, text ? text : "?");
        free(text);
        if (conditional)
            hob__text_printf(out, "\n%s              : hob_none()", margin);
        hob__text_puts(out, ";\n");
    }
}

/* The call itself, behind HEAD; MORE is what follows the arguments. */
static void call(struct hob__text *out, const struct gen_op *op,
                 const char *head, const char *number, const char *more)
{
    char scope[] = "scope", none[] = "NULL", args[] = "args", count[16];
    char *items[5] = {scope, strdup(number), none, count, strdup(more)};
    uint32_t arg_count = visible_count(op);

    (void)snprintf(count, sizeof(count), "%" PRIu32, arg_count);
    if (arg_count)
        items[2] = args;
    gen_wrapped(out, head, items, *more ? 5 : 4, ");\n");
    free(items[1]);
    free(items[4]);
}

/* Whether host->call1 does: one tensor and nothing besides. */
static bool is_call1(const struct gen_op *op)
{
    return op->signature.result_count == 1 && !op->signature.plain_count &&
           gen_returns_tensor(op, GEN_CALLER);
}

static void call_any(struct hob__text *out, const struct gen_op *op,
                     const char *number, const char *margin)
{
    uint32_t results = op->signature.result_count;
    uint32_t plains = op->signature.plain_count;
    struct hob__text head = HOB__TEXT_INIT;
    char more[96], *text;

    if (is_call1(op))
        hob__text_printf(&head, "%sreturn hob_scope_host(scope)->call1(",
                         margin);
    else if (gen_returns_list(op))
        hob__text_printf(&head, "%sreturn hob_scope_host(scope)->calln(",
                         margin);
    else
        hob__text_printf(&head, "%s%shob_scope_host(scope)->call%s(", margin,
                         gen_returns_tensor(op, GEN_CALLER) ? "(void)"
                                                            : "status = ",
                         plains ? "v" : "n");
    *more = '\0';
    if (gen_returns_list(op))
        (void)snprintf(more, sizeof(more), "out, capacity, out_count");
    else if (plains)
        (void)snprintf(more, sizeof(more),
                       "%s, %" PRIu32 ", &ret_count, plains, %" PRIu32,
                       results ? "rets" : "NULL", results, plains);
    else if (!is_call1(op))
        (void)snprintf(more, sizeof(more), "rets, %" PRIu32 ", &ret_count",
                       results);
    text = hob__text_take(&head);
    call(out, op, text ? text : "?", number, more);
    free(text);
}

/* Write what was called for to the caller's outs. */
static void give(struct hob__text *out, const struct gen_op *op)
{
    const struct hob__signature *signature = &op->signature;

    /* The plain ones first: a variant says which tensors there are. */
    for (uint32_t i = 0; i < signature->plain_count; i++) {
        const struct gen_place *place = &op->plains[i];
        const struct hob__param *plain = &signature->plains[i];
        struct hob__text condition = HOB__TEXT_INIT;
        char source[32], *text;

        if (gen_result_condition(&condition, op, plain->tag_param,
                                 plain->variant, "->")) {
            text = hob__text_take(&condition);
            hob__text_printf(out, "    if (%s)\n    ", text ? text : "?");
            free(text);
        }
        (void)snprintf(source, sizeof(source), "plains[%" PRIu32 "]", i);
        hob__text_puts(out, *place->tail ? "    " : "    *");
        gen_path(out, op->out_names[place->item], "->", place);
        hob__text_puts(out, " = ");
        gen_payload(out, plain, place->enum_name, source);
        hob__text_puts(out, ";\n");
    }
    for (uint32_t i = 0; i < signature->result_count; i++) {
        const struct gen_place *place = &op->rets[i];
        const struct hob__result *result = &signature->results[i];
        struct hob__text condition = HOB__TEXT_INIT;
        char *text;

        if (gen_is_hidden(op, place->item, GEN_CALLER))
            continue;
        if (gen_result_condition(&condition, op, result->tag_plain,
                                 result->variant, "->")) {
            text = hob__text_take(&condition);
            hob__text_printf(out, "    if (%s)\n    ", text ? text : "?");
            free(text);
        }
        hob__text_puts(out, *place->tail ? "    " : "    *");
        gen_path(out, op->out_names[place->item], "->", place);
        hob__text_printf(out, " = rets[%" PRIu32 "];\n", i);
    }
    hob__text_puts(out, "    return status;\n");
}

/* The number of what may be missing before the call: the op, a struct. */
static uint32_t fail_count(const struct gen_op *op, bool is_extension)
{
    uint32_t count = is_extension;

    for (uint32_t i = 0; i < op->signature.item_count; i++)
        count += op->signature.items[i].def != NULL;
    return count;
}

/* "if (CONDITION) {", then the failure, as the rest of the function needs
 * it: returned, or in error. */
static void fail(struct hob__text *out, const struct gen_op *op,
                 const char *condition, const char *status, const char *text)
{
    bool list = gen_returns_list(op);

    hob__text_printf(out,
                     "    if (%s) {\n        %shob_scope_host(scope)->"
                     "scope_fail(\n            scope, %s,\n            "
                     "%s);\n",
                     condition,
                     is_call1(op) ? "return "
                     : list       ? "(void)"
                                  : "error = ",
                     status, text);
    if (list)
        hob__text_printf(out, "        *out_count = 0;\n        return %s;\n",
                         status);
    else if (!is_call1(op) && !gen_returns_tensor(op, GEN_CALLER))
        hob__text_printf(out, "        status = %s;\n", status);
    hob__text_puts(out, "    }\n");
}

/* Say who is missing: the extension, or the struct of a parameter. */
static void fail_all(struct hob__text *out, const struct gen_op *op,
                     const struct gen_schema *schema)
{
    struct hob__text text = HOB__TEXT_INIT;
    bool has_error = !is_call1(op) && !gen_returns_list(op);
    char *line;

    if (schema->is_extension) {
        hob__text_printf(&text,
                         "\"%s: no such op; install the extension \"\n"
                         "            \"%s, or ask 'hob plugins' why it was "
                         "refused\"",
                         op->full_name, schema->id);
        line = hob__text_take(&text);
        fail(out, op, "op == UINT32_MAX", "HOB_ERR_NOT_FOUND",
             line ? line : "?");
        free(line);
    }
    for (uint32_t i = 0; i < op->signature.item_count; i++) {
        char *condition;

        if (!op->signature.items[i].def)
            continue;
        hob__text_printf(&text, "%s!%s", has_error ? "!error && " : "",
                         op->item_names[i]);
        condition = hob__text_take(&text);
        hob__text_printf(&text, "\"%s: %s is NULL, not a struct\"",
                         op->full_name, op->signature.items[i].name);
        line = hob__text_take(&text);
        fail(out, op, condition ? condition : "?", "HOB_ERR_ARGUMENT",
             line ? line : "?");
        free(condition);
        free(line);
    }
}

static void locals(struct hob__text *out, const struct gen_op *op,
                   bool is_extension)
{
    uint32_t args = visible_count(op), results = op->signature.result_count;
    uint32_t plains = op->signature.plain_count;
    bool several = !is_call1(op) && !gen_returns_list(op);

    if (is_extension)
        hob__text_printf(out,
                         "    static struct hob_op_ref ref = {\"%s\", 0};\n"
                         "    uint32_t op = hob_op_resolve(scope, &ref);\n",
                         op->full_name);
    if (args)
        hob__text_printf(out, "    hob_value args[%" PRIu32 "];\n", args);
    if (several && results) {
        hob__text_printf(out, "    hob_tensor *rets[%" PRIu32 "] = {", results);
        for (uint32_t i = 0; i < results; i++)
            hob__text_printf(out, "%sNULL", i ? ", " : "");
        hob__text_puts(out, "};\n");
    }
    if (plains)
        hob__text_printf(out, "    hob_value plains[%" PRIu32 "];\n", plains);
    if (several) {
        hob__text_puts(out, "    uint32_t ret_count = 0;\n");
        if (fail_count(op, is_extension))
            hob__text_puts(out, "    hob_tensor *error = NULL;\n");
        if (!gen_returns_tensor(op, GEN_CALLER))
            hob__text_puts(out, "    hob_status status = HOB_OK;\n");
    }
    if (args || several || is_extension)
        hob__text_puts(out, "\n");
    for (uint32_t i = 0; i < plains; i++)
        hob__text_printf(out, "    plains[%" PRIu32 "] = hob_none();\n", i);
}

/* Once ERROR is known not to be there: the call. Else all results are it. */
static void guarded_call(struct hob__text *out, const struct gen_op *op,
                         const char *number)
{
    uint32_t results = op->signature.result_count;

    hob__text_puts(out, "    if (!error) {\n");
    pack_all(out, op, "        ");
    call_any(out, op, number, "        ");
    hob__text_puts(out, results ? "    } else {\n" : "    }\n");
    for (uint32_t i = 0; i < results; i++)
        hob__text_printf(out, "        rets[%" PRIu32 "] = error;\n", i);
    if (results)
        hob__text_puts(out, "    }\n");
}

static void give_or_return(struct hob__text *out, const struct gen_op *op)
{
    if (is_call1(op) || gen_returns_list(op))
        return;
    if (!gen_returns_tensor(op, GEN_CALLER)) {
        give(out, op);
        return;
    }
    for (uint32_t i = 0; i < op->signature.result_count; i++) {
        if (!gen_is_hidden(op, op->rets[i].item, GEN_CALLER))
            hob__text_printf(out, "    return rets[%" PRIu32 "];\n", i);
    }
}

static void wrapper(struct hob__text *out, const struct gen_op *op,
                    const struct gen_schema *schema)
{
    struct hob__text number = HOB__TEXT_INIT;
    char *text;

    gen_enums(out, op);
    gen_comment(out, op->doc, op->signature_text);
    gen_prototype(out, op, GEN_CALLER, "static inline ", op->c_name, ")\n");
    hob__text_puts(out, "{\n");
    locals(out, op, schema->is_extension);
    fail_all(out, op, schema);
    if (schema->is_extension) {
        hob__text_puts(&number, "op");
    } else {
        hob__text_puts(&number, "HOB_OP_");
        gen_upper(&number, op->name);
    }
    text = hob__text_take(&number);
    if (is_call1(op) || gen_returns_list(op) ||
        !fail_count(op, schema->is_extension)) {
        pack_all(out, op, "    ");
        call_any(out, op, text ? text : "?", "    ");
    } else {
        guarded_call(out, op, text ? text : "?");
    }
    give_or_return(out, op);
    free(text);
    hob__text_puts(out, "}\n\n");
}

void gen_header_builtin(struct hob__text *out, const struct gen_schema *schema)
{
    hob__text_puts(
        out,
        "/* SPDX-License-Identifier: Apache-2.0 */\n"
        "/*\n"
        " * hob/ops.h - the operations.\n"
        " * Generated by hob-sdk from core/ops/; do not edit.\n"
        " *\n"
        " * Each function calls one op in SCOPE and returns its result, owned "
        "by SCOPE,\n"
        " * or SCOPE's error tensor. Ops with several results return a status "
        "and\n"
        " * write the results to out_0, out_1, ...; all of them are error "
        "tensors if\n"
        " * it is not HOB_OK. The line below a description is the op's "
        "signature: \"?\"\n"
        " * marks what may be absent (NULL, hob_none()); HOB_DTYPE_NONE takes "
        "a dtype's\n"
        " * default. Tensors are borrowed unless they were moved.\n"
        " */\n"
        "#ifndef HOB_OPS_H\n"
        "#define HOB_OPS_H\n"
        "\n"
        "#include <hob/host.h>\n"
        "\n"
        "HOB_BEGIN_DECLS\n"
        "\n"
        "/* The numbers of the built-in ops. Part of the ABI: they only grow. "
        "*/\n"
        "enum hob_op {\n");
    for (uint32_t i = 0; i < schema->op_count; i++) {
        hob__text_puts(out, "    HOB_OP_");
        gen_upper(out, schema->ops[i].name);
        hob__text_printf(out, " = %" PRIu32 ",\n", schema->ops[i].id);
    }
    hob__text_puts(out, "    HOB_OP_COUNT_\n};\n\n");
    for (uint32_t i = 0; i < schema->op_count; i++)
        wrapper(out, &schema->ops[i], schema);
    hob__text_puts(out, "HOB_END_DECLS\n\n#endif\n");
}

void gen_header_extension(struct hob__text *out,
                          const struct gen_schema *schema)
{
    struct hob__text upper = HOB__TEXT_INIT;
    char *guard;

    gen_upper(&upper, schema->prefix);
    guard = hob__text_take(&upper);
    hob__text_printf(
        out,
        "/*\n"
        " * The ops of the extension %s.\n"
        " * Generated by hob-sdk from its manifest; do not edit.\n"
        " *\n"
        " * Each function calls one op in SCOPE and returns its result, owned "
        "by SCOPE,\n"
        " * or SCOPE's error tensor; see hob/ops.h.\n"
        " */\n"
        "#ifndef %s_OPS_H\n"
        "#define %s_OPS_H\n"
        "\n"
        "#include <hob/host.h>\n"
        "\n"
        "HOB_BEGIN_DECLS\n"
        "\n",
        schema->id, guard ? guard : "?", guard ? guard : "?");
    free(guard);
    gen_types(out, schema);
    for (uint32_t i = 0; i < schema->op_count; i++)
        wrapper(out, &schema->ops[i], schema);
    hob__text_puts(out, "HOB_END_DECLS\n\n#endif\n");
}
