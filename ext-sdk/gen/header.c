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

/* The expression that makes parameter I a value. */
static void pack(struct hob__text *out, const struct gen_op *op, uint32_t i)
{
    const struct hob__param *param = &op->signature.params[i];
    const char *name = op->arg_names[i];
    bool optional = param->flags & HOB__PARAM_OPTIONAL;

    switch (param->type) {
    case HOB__TYPE_TENSOR:
        hob__text_printf(out, "hob_value_tensor(%s)", name);
        break;
    case HOB__TYPE_TENSORS:
        hob__text_printf(out, "hob_value_tensors(%s, %s_count)", name, name);
        break;
    case HOB__TYPE_F64:
        hob__text_printf(out, optional ? "%s" : "hob_f64(%s)", name);
        break;
    case HOB__TYPE_I64:
        hob__text_printf(out, optional ? "%s" : "hob_i64(%s)", name);
        break;
    case HOB__TYPE_BOOL:
        hob__text_printf(out, optional ? "%s" : "hob_bool(%s)", name);
        break;
    case HOB__TYPE_STR:
        hob__text_printf(out, "hob_value_str(%s)", name);
        break;
    case HOB__TYPE_DTYPE:
        hob__text_printf(out, "hob_value_dtype((uint32_t)%s)", name);
        break;
    case HOB__TYPE_SHAPE:
    case HOB__TYPE_I64S:
        hob__text_printf(out, "hob_value_i64s(%s, %s_count)", name, name);
        break;
    case HOB__TYPE_F64S:
        hob__text_printf(out, "hob_value_f64s(%s, %s_count)", name, name);
        break;
    case HOB__TYPE_DEVICE:
        hob__text_printf(out, "hob_value_device(%s)", name);
        break;
    case HOB__TYPE_ENUM:
        hob__text_printf(out, "hob_value_enum((int64_t)%s)", name);
        break;
    default:
        hob__text_puts(out, name);
        break;
    }
}

static void pack_all(struct hob__text *out, const struct gen_op *op)
{
    for (uint32_t i = 0; i < visible_count(op); i++) {
        const struct hob__param *param = &op->signature.params[i];
        uint8_t type = param->type;
        const char *name = op->arg_names[i];

        hob__text_printf(out, "    args[%" PRIu32 "] = ", i);
        /* An absent list is NULL, an absent enumerator -1. */
        if ((param->flags & HOB__PARAM_OPTIONAL) &&
            (type == HOB__TYPE_TENSORS || type == HOB__TYPE_SHAPE ||
             type == HOB__TYPE_I64S || type == HOB__TYPE_F64S))
            hob__text_printf(out, "!%s ? hob_none() : ", name);
        else if ((param->flags & HOB__PARAM_OPTIONAL) && type == HOB__TYPE_ENUM)
            hob__text_printf(out, "(int)%s < 0 ? hob_none() : ", name);
        pack(out, op, i);
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

static void call_any(struct hob__text *out, const struct gen_op *op,
                     const char *number)
{
    uint32_t results = op->signature.result_count;
    char more[64];

    if (gen_returns_tensor(op)) {
        call(out, op, "    return hob_scope_host(scope)->call1(", number, "");
        return;
    }
    if (gen_returns_list(op)) {
        call(out, op, "    return hob_scope_host(scope)->calln(", number,
             "out, capacity, out_count");
        return;
    }
    (void)snprintf(more, sizeof(more), "out, %" PRIu32 ", &out_count", results);
    call(out, op, "    status = hob_scope_host(scope)->calln(", number, more);
    for (uint32_t i = 0; i < results; i++)
        hob__text_printf(out, "    *out_%" PRIu32 " = out[%" PRIu32 "];\n", i,
                         i);
    hob__text_puts(out, "    return status;\n");
}

/* Extension ops: say who is missing. Results are then the error tensor. */
static void call_unknown(struct hob__text *out, const struct gen_op *op,
                         const struct gen_schema *schema)
{
    bool list = gen_returns_list(op), one = gen_returns_tensor(op);

    hob__text_puts(out, "    if (op == UINT32_MAX) {\n        ");
    if (one)
        hob__text_puts(out, "return ");
    else if (list)
        hob__text_puts(out, "(void)");
    else
        hob__text_puts(out, "*out_0 = ");
    hob__text_printf(out,
                     "hob_scope_host(scope)->scope_fail(\n"
                     "            scope, HOB_ERR_NOT_FOUND,\n"
                     "            \"%s: no such op; install the extension \"\n"
                     "            \"%s, or ask 'hob plugins' why it was "
                     "refused\");\n",
                     op->full_name, schema->id);
    for (uint32_t i = 1; !one && !list && i < op->signature.result_count; i++)
        hob__text_printf(out, "        *out_%" PRIu32 " = *out_0;\n", i);
    if (list)
        hob__text_puts(out, "        *out_count = 0;\n");
    if (!one)
        hob__text_puts(out, "        return HOB_ERR_NOT_FOUND;\n");
    hob__text_puts(out, "    }\n");
}

static void locals(struct hob__text *out, const struct gen_op *op,
                   bool is_extension)
{
    uint32_t args = visible_count(op), results = op->signature.result_count;
    bool several = !gen_returns_tensor(op) && !gen_returns_list(op);

    if (is_extension)
        hob__text_printf(out,
                         "    static struct hob_op_ref ref = {\"%s\", 0};\n"
                         "    uint32_t op = hob_op_resolve(scope, &ref);\n",
                         op->full_name);
    if (args)
        hob__text_printf(out, "    hob_value args[%" PRIu32 "];\n", args);
    if (several) {
        hob__text_printf(out, "    hob_tensor *out[%" PRIu32 "] = {", results);
        for (uint32_t i = 0; i < results; i++)
            hob__text_printf(out, "%sNULL", i ? ", " : "");
        hob__text_puts(out, "};\n    uint32_t out_count = 0;\n"
                            "    hob_status status;\n");
    }
    if (args || several || is_extension)
        hob__text_puts(out, "\n");
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
    if (schema->is_extension) {
        call_unknown(out, op, schema);
        hob__text_puts(&number, "op");
    } else {
        hob__text_puts(&number, "HOB_OP_");
        gen_upper(&number, op->name);
    }
    text = hob__text_take(&number);
    pack_all(out, op);
    call_any(out, op, text ? text : "?");
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
    for (uint32_t i = 0; i < schema->op_count; i++)
        wrapper(out, &schema->ops[i], schema);
    hob__text_puts(out, "HOB_END_DECLS\n\n#endif\n");
}
