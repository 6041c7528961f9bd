/* SPDX-License-Identifier: Apache-2.0 */
/*
 * emit.c - pieces of C that several outputs share.
 */
#include "gen.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 80 };

void gen_upper(struct hob__text *out, const char *name)
{
    for (; *name; name++) {
        char c = *name;

        if (c >= 'a' && c <= 'z')
            c = (char)(c - 'a' + 'A');
        hob__text_append(out, &c, 1);
    }
}

char *gen_c_word(const char *name)
{
    char *word = strdup(name);

    for (char *p = word; p && *p; p++) {
        if (*p == '-' || *p == '.')
            *p = '_';
        if (*p == '*')
            *p = 'x';
    }
    return word;
}

void gen_c_string(struct hob__text *out, const char *string)
{
    char before = '\0';

    hob__text_puts(out, "\"");
    for (; *string; before = *string++) {
        unsigned char c = (unsigned char)*string;

        /* "?\?": no trigraphs. */
        if (c == '"' || c == '\\' || (c == '?' && before == '?'))
            hob__text_printf(out, "\\%c", c);
        else if (c == '\n')
            hob__text_puts(out, "\\n");
        else if (c < 0x20 || c == 0x7f)
            hob__text_printf(out, "\\%03o", c);
        else
            hob__text_append(out, string, 1);
    }
    hob__text_puts(out, "\"");
}

/* One word of a comment; what would end it is taken apart. */
static void comment_word(struct hob__text *out, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        hob__text_append(out, word + i, 1);
        if (i + 1 < length && ((word[i] == '*' && word[i + 1] == '/') ||
                               (word[i] == '/' && word[i + 1] == '*')))
            hob__text_puts(out, " ");
    }
}

static void comment_lines(struct hob__text *out, const char *text)
{
    size_t column = 0;

    while (*text) {
        size_t length = strcspn(text, " \n\t");

        if (length && column && column + 1 + length > LINE_WIDTH) {
            hob__text_puts(out, "\n");
            column = 0;
        }
        if (length) {
            hob__text_puts(out, column ? " " : " * ");
            comment_word(out, text, length);
            column += (column ? 1 : 3) + length;
        }
        text += length;
        text += *text != '\0';
    }
    hob__text_puts(out, "\n");
}

void gen_comment(struct hob__text *out, const char *text, const char *last_line)
{
    hob__text_puts(out, "/*\n");
    comment_lines(out, text);
    if (last_line) {
        hob__text_puts(out, " *\n");
        comment_lines(out, last_line);
    }
    hob__text_puts(out, " */\n");
}

void gen_wrapped(struct hob__text *out, const char *head, char *const *items,
                 uint32_t count, const char *tail)
{
    size_t start = strlen(head), column = start, longest = 0;
    bool hang;

    for (uint32_t i = 0; i < count; i++) {
        size_t length = items[i] ? strlen(items[i]) + 2 : 0;

        longest = length > longest ? length : longest;
    }
    /* Below the bracket if that is possible, else four spaces in. */
    hang = start + longest > LINE_WIDTH;
    hob__text_puts(out, head);
    if (hang) {
        hob__text_puts(out, "\n    ");
        start = column = 4;
    }
    for (uint32_t i = 0; i < count; i++) {
        const char *item = items[i] ? items[i] : "?";
        bool is_last = i + 1 == count;
        size_t length = strlen(item) + (is_last ? strlen(tail) : 1);

        if (i && column + 1 + length > LINE_WIDTH) {
            hob__text_printf(out, "\n%*s", (int)start, "");
            column = start;
        } else if (i) {
            hob__text_puts(out, " ");
            column++;
        }
        hob__text_printf(out, "%s%s", item, is_last ? "" : ",");
        column += length;
    }
    hob__text_puts(out, tail);
}

void gen_enum_name(struct hob__text *out, const struct gen_op *op,
                   uint32_t index)
{
    hob__text_printf(out, "%s_%s", op->c_name,
                     op->signature.params[index].name);
}

/* "DEMO_PAD_MODE_" of the parameter's enumerators. */
static void enumerator_prefix(struct hob__text *out, const struct gen_op *op,
                              uint32_t index)
{
    gen_upper(out, op->c_name);
    hob__text_puts(out, "_");
    gen_upper(out, op->signature.params[index].name);
    hob__text_puts(out, "_");
}

void gen_enums(struct hob__text *out, const struct gen_op *op)
{
    for (uint32_t i = 0; i < op->signature.param_count; i++) {
        const struct hob__param *param = &op->signature.params[i];

        if (param->type != HOB__TYPE_ENUM)
            continue;
        hob__text_printf(out, "/* %s of %s. */\nenum ", param->name,
                         op->full_name);
        gen_enum_name(out, op, i);
        hob__text_puts(out, " {\n");
        if (param->flags & HOB__PARAM_OPTIONAL) {
            hob__text_puts(out, "    ");
            enumerator_prefix(out, op, i);
            hob__text_puts(out, "ABSENT_ = -1,\n");
        }
        for (uint32_t k = 0; k < param->enumerator_count; k++) {
            hob__text_puts(out, "    ");
            enumerator_prefix(out, op, i);
            gen_upper(out, param->enumerators[k]);
            hob__text_printf(out, " = %" PRIu32 "%s\n", k,
                             k + 1 < param->enumerator_count ? "," : "");
        }
        hob__text_puts(out, "};\n\n");
    }
}

/* ---- the C types of parameters ---- */

/* An optional number has no spare value: it travels as a tagged one. */
static bool is_tagged(const struct hob__param *param)
{
    return param->type == HOB__TYPE_SCALAR ||
           ((param->flags & HOB__PARAM_OPTIONAL) &&
            (param->type == HOB__TYPE_F64 || param->type == HOB__TYPE_I64 ||
             param->type == HOB__TYPE_BOOL));
}

static void param_declaration(struct hob__text *out, const struct gen_op *op,
                              uint32_t index)
{
    const struct hob__param *param = &op->signature.params[index];
    const char *name = op->arg_names[index], *type = "?";

    switch (is_tagged(param) ? HOB__TYPE_SCALAR : param->type) {
    case HOB__TYPE_TENSOR:
        type = "hob_tensor *";
        break;
    case HOB__TYPE_TENSORS:
        type = "hob_tensor *const *";
        break;
    case HOB__TYPE_SCALAR:
        type = "hob_scalar ";
        break;
    case HOB__TYPE_F64:
        type = "double ";
        break;
    case HOB__TYPE_I64:
        type = "int64_t ";
        break;
    case HOB__TYPE_BOOL:
        type = "int ";
        break;
    case HOB__TYPE_STR:
        type = "const char *";
        break;
    case HOB__TYPE_DTYPE:
        type = "hob_dtype ";
        break;
    case HOB__TYPE_SHAPE:
    case HOB__TYPE_I64S:
        type = "const int64_t *";
        break;
    case HOB__TYPE_F64S:
        type = "const double *";
        break;
    case HOB__TYPE_DEVICE:
        type = "hob_device *";
        break;
    default:
        hob__text_puts(out, "enum ");
        gen_enum_name(out, op, index);
        type = " ";
        break;
    }
    hob__text_printf(out, "%s%s", type, name);
}

static bool has_count(const struct hob__param *param)
{
    return param->type == HOB__TYPE_TENSORS || param->type == HOB__TYPE_SHAPE ||
           param->type == HOB__TYPE_I64S || param->type == HOB__TYPE_F64S;
}

bool gen_returns_list(const struct gen_op *op)
{
    return op->signature.results[0].is_list;
}

bool gen_returns_tensor(const struct gen_op *op)
{
    return op->signature.result_count == 1 && !gen_returns_list(op);
}

enum { MAX_ITEMS = 1 + 2 * HOB_MAX_PARAMS + HOB_MAX_RESULTS + 3 };

static void add_item(char **items, uint32_t *count, struct hob__text *item)
{
    if (*count < MAX_ITEMS)
        items[(*count)++] = hob__text_take(item);
    else
        hob__text_release(item);
}

static void add_outs(char **items, uint32_t *count, const struct gen_op *op,
                     enum gen_side side)
{
    struct hob__text item = HOB__TEXT_INIT;

    if (gen_returns_list(op)) {
        hob__text_puts(&item, "hob_tensor **out");
        add_item(items, count, &item);
        hob__text_puts(&item, side == GEN_CALLER ? "uint32_t capacity"
                                                 : "uint32_t out_count");
        add_item(items, count, &item);
        if (side == GEN_CALLER) {
            hob__text_puts(&item, "uint32_t *out_count");
            add_item(items, count, &item);
        }
        return;
    }
    for (uint32_t i = 0; i < op->signature.result_count; i++) {
        hob__text_printf(&item, "hob_tensor **out_%" PRIu32, i);
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
    char *text;

    hob__text_puts(&item, "hob_scope *scope");
    add_item(items, &count, &item);
    for (uint32_t i = 0; i < op->signature.param_count; i++) {
        const struct hob__param *param = &op->signature.params[i];

        if (side == GEN_CALLER && (param->flags & HOB__PARAM_HIDDEN))
            continue;
        param_declaration(&item, op, i);
        add_item(items, &count, &item);
        if (!has_count(param))
            continue;
        hob__text_printf(&item, "uint32_t %s_count", op->arg_names[i]);
        add_item(items, &count, &item);
    }
    if (!gen_returns_tensor(op))
        add_outs(items, &count, op, side);
    hob__text_printf(&start, "%s%s%s(", head,
                     gen_returns_tensor(op) ? "hob_tensor *" : "hob_status ",
                     name);
    text = hob__text_take(&start);
    gen_wrapped(out, text ? text : "?", items, count, tail);
    free(text);
    for (uint32_t i = 0; i < count; i++)
        free(items[i]);
}

/* ---- from the uniform call to a typed body ---- */

static void unpack(char **items, uint32_t *count, const struct gen_op *op,
                   uint32_t i)
{
    const struct hob__param *param = &op->signature.params[i];
    struct hob__text item = HOB__TEXT_INIT;

    switch (is_tagged(param) ? HOB__TYPE_SCALAR : param->type) {
    case HOB__TYPE_TENSOR:
        hob__text_printf(&item, "args[%" PRIu32 "].u.tensor", i);
        break;
    case HOB__TYPE_TENSORS:
        hob__text_printf(&item, "args[%" PRIu32 "].u.tensors", i);
        break;
    case HOB__TYPE_SCALAR:
        hob__text_printf(&item, "args[%" PRIu32 "]", i);
        break;
    case HOB__TYPE_F64:
        hob__text_printf(&item, "args[%" PRIu32 "].u.f64", i);
        break;
    case HOB__TYPE_I64:
        hob__text_printf(&item, "args[%" PRIu32 "].u.i64", i);
        break;
    case HOB__TYPE_BOOL:
        hob__text_printf(&item, "args[%" PRIu32 "].u.i64 != 0", i);
        break;
    case HOB__TYPE_STR:
        hob__text_printf(&item, "args[%" PRIu32 "].u.str", i);
        break;
    case HOB__TYPE_DTYPE:
        hob__text_printf(&item, "(hob_dtype)args[%" PRIu32 "].u.i64", i);
        break;
    case HOB__TYPE_SHAPE:
    case HOB__TYPE_I64S:
        hob__text_printf(&item, "args[%" PRIu32 "].u.i64s", i);
        break;
    case HOB__TYPE_F64S:
        hob__text_printf(&item, "args[%" PRIu32 "].u.f64s", i);
        break;
    case HOB__TYPE_DEVICE:
        hob__text_printf(&item, "args[%" PRIu32 "].u.device", i);
        break;
    default:
        hob__text_puts(&item, "(enum ");
        gen_enum_name(&item, op, i);
        hob__text_puts(&item, ")");
        if (param->flags & HOB__PARAM_OPTIONAL)
            hob__text_printf(
                &item, "(args[%" PRIu32 "].tag ? args[%" PRIu32 "].u.i64 : -1)",
                i, i);
        else
            hob__text_printf(&item, "args[%" PRIu32 "].u.i64", i);
        break;
    }
    add_item(items, count, &item);
    if (has_count(param)) {
        hob__text_printf(&item, "args[%" PRIu32 "].count", i);
        add_item(items, count, &item);
    }
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

void gen_body_helper(struct hob__text *out, const char *storage)
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

void gen_body_glue(struct hob__text *out, const struct gen_op *op,
                   const char *storage, const char *glue, const char *body)
{
    char *items[MAX_ITEMS];
    uint32_t count = 0;
    struct hob__text item = HOB__TEXT_INIT, start = HOB__TEXT_INIT;
    bool one = gen_returns_tensor(op);
    char *text;

    glue_head(out, storage, glue, "hob_tensor **out");
    if (op->signature.param_count)
        hob__text_puts(out, "    const hob_value *args = call->args;\n\n");
    hob__text_puts(&item, "scope");
    add_item(items, &count, &item);
    for (uint32_t i = 0; i < op->signature.param_count; i++)
        unpack(items, &count, op, i);
    if (gen_returns_list(op)) {
        hob__text_puts(&item, "out");
        add_item(items, &count, &item);
        hob__text_puts(&item, "call->ret_count");
        add_item(items, &count, &item);
    }
    for (uint32_t i = 0;
         !one && !gen_returns_list(op) && i < op->signature.result_count; i++) {
        hob__text_printf(&item, "&out[%" PRIu32 "]", i);
        add_item(items, &count, &item);
    }
    hob__text_printf(&start, "    %s %s(", one ? "out[0] =" : "return", body);
    text = hob__text_take(&start);
    gen_wrapped(out, text ? text : "?", items, count, ");\n");
    free(text);
    for (uint32_t i = 0; i < count; i++)
        free(items[i]);
    if (one)
        hob__text_puts(out, "    return finish_body(scope, call, out[0]);\n");
    hob__text_puts(out, "}\n\n");
}

void gen_aliases(struct hob__text *out, const struct gen_op *op)
{
    hob__text_puts(out, "{");
    for (uint32_t i = 0; i < op->alias_count; i++)
        hob__text_printf(out, "%s{%u, %u}", i ? ", " : "",
                         op->aliases[i].result, op->aliases[i].param);
    hob__text_puts(out, "}");
}
