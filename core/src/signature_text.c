/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature_text.c - signatures compared and written out.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "signature.h"

#include "text.h"

#include <stdio.h>
#include <string.h>

/* ---- equality ---- */

static int same_type(const struct hob__param *a, const struct hob__param *b)
{
    if (a->type != b->type || a->mask != b->mask ||
        a->enumerator_count != b->enumerator_count)
        return 0;
    if (a->type == HOB__TYPE_NAMED && strcmp(a->kind, b->kind) != 0)
        return 0;
    for (uint32_t i = 0; i < a->enumerator_count; i++) {
        if (strcmp(a->enumerators[i], b->enumerators[i]) != 0)
            return 0;
    }
    return 1;
}

/* Defaults may differ: the core fills in those of the op's declaration. */
static int same_param(const struct hob__param *a, const struct hob__param *b)
{
    return !strcmp(a->name, b->name) && same_type(a, b) &&
           !((a->flags ^ b->flags) & HOB__PARAM_OPTIONAL);
}

static int same_result(const struct hob__result *a, const struct hob__result *b)
{
    return a->source == b->source && a->param == b->param &&
           a->dtype == b->dtype && a->is_list == b->is_list &&
           !((a->flags ^ b->flags) & (HOB__PARAM_OPTIONAL | HOB__PARAM_HIDDEN));
}

void hob__signature_difference(const struct hob__signature *want,
                               const struct hob__signature *have, char *text,
                               size_t size)
{
    for (uint32_t i = 0; i < want->param_count || i < have->param_count; i++) {
        const struct hob__param *a = &want->params[i], *b = &have->params[i];

        if (i >= want->param_count) {
            (void)snprintf(text, size, "%s is not declared", b->name);
            return;
        }
        if (i >= have->param_count &&
            !(a->flags & (HOB__PARAM_OPTIONAL | HOB__PARAM_DEFAULT))) {
            (void)snprintf(text, size, "%s is missing", a->name);
            return;
        }
        if (i < have->param_count && strcmp(a->name, b->name) != 0) {
            (void)snprintf(text, size, "%s stands where %s is declared",
                           b->name, a->name);
            return;
        }
        if (i < have->param_count && !same_param(a, b)) {
            (void)snprintf(text, size, "%s is declared with another type",
                           a->name);
            return;
        }
    }
    (void)snprintf(text, size, "the results are declared otherwise");
}

int hob__signature_compatible(const struct hob__signature *want,
                              const struct hob__signature *have)
{
    if (have->param_count > want->param_count ||
        have->result_count != want->result_count ||
        have->plain_count != want->plain_count)
        return 0;
    for (uint32_t i = 0; i < want->param_count; i++) {
        const struct hob__param *param = &want->params[i];

        if (i < have->param_count) {
            if (!same_param(param, &have->params[i]))
                return 0;
        } else if (!(param->flags &
                     (HOB__PARAM_OPTIONAL | HOB__PARAM_DEFAULT))) {
            return 0;
        }
    }
    for (uint32_t i = 0; i < want->result_count; i++) {
        if (!same_result(&want->results[i], &have->results[i]))
            return 0;
    }
    for (uint32_t i = 0; i < want->plain_count; i++) {
        if (!same_type(&want->plains[i], &have->plains[i]))
            return 0;
    }
    return 1;
}

int hob__signature_serves(const struct hob__signature *want, const char *text,
                          char *why, size_t size)
{
    struct hob__signature have;
    const char *message = "";
    int column = 0, serves;

    if (hob__signature_parse(text, &have, &column, &message)) {
        (void)snprintf(why, size, "column %d: %s", column, message);
        return 0;
    }
    serves = hob__signature_compatible(want, &have);
    if (!serves)
        hob__signature_difference(want, &have, why, size);
    hob__signature_release(&have);
    return serves;
}

/* ---- flat text ---- */

static void put_type(struct hob__text *out, const struct hob__param *param)
{
    static const char *const names[] = {
        [HOB__TYPE_SCALAR] = "scalar", [HOB__TYPE_F64] = "f64",
        [HOB__TYPE_I64] = "i64",       [HOB__TYPE_BOOL] = "bool",
        [HOB__TYPE_STR] = "str",       [HOB__TYPE_DTYPE] = "dtype",
        [HOB__TYPE_SHAPE] = "shape",   [HOB__TYPE_DEVICE] = "device"};

    if (param->type == HOB__TYPE_TENSOR || param->type == HOB__TYPE_NAMED) {
        hob__text_puts(out, param->kind);
    } else if (param->type == HOB__TYPE_TENSORS) {
        hob__text_printf(out, "[%s]", param->kind);
    } else if (param->type == HOB__TYPE_I64S || param->type == HOB__TYPE_F64S) {
        hob__text_puts(out, param->type == HOB__TYPE_I64S ? "[i64]" : "[f64]");
    } else if (param->type == HOB__TYPE_ENUM) {
        for (uint32_t i = 0; i < param->enumerator_count; i++)
            hob__text_printf(out, "%s%s", i ? ", " : "enum(",
                             param->enumerators[i]);
        hob__text_puts(out, ")");
    } else {
        hob__text_puts(out, names[param->type]);
    }
    if (param->flags & HOB__PARAM_OPTIONAL)
        hob__text_puts(out, "?");
}

static void put_result(struct hob__text *out, const struct hob__result *result)
{
    if (result->name)
        hob__text_printf(out, "%s: ", result->name);
    hob__text_puts(out, result->text);
    if (result->flags & HOB__PARAM_OPTIONAL)
        hob__text_puts(out, "?");
}

static void put_plain(struct hob__text *out, const struct hob__param *plain)
{
    if (plain->name)
        hob__text_printf(out, "%s: ", plain->name);
    hob__text_puts(out, "value(");
    put_type(out, plain);
    hob__text_puts(out, ")");
}

/* Tensors first, then the plain ones. */
char *hob__signature_text(const struct hob__signature *signature)
{
    struct hob__text out = HOB__TEXT_INIT;
    uint32_t results = signature->result_count;
    uint32_t count = results + signature->plain_count;

    hob__text_puts(&out, "(");
    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];

        hob__text_printf(&out, "%s%s: ", i ? ", " : "", param->name);
        put_type(&out, param);
        if (param->default_text)
            hob__text_printf(&out, " = %s", param->default_text);
    }
    hob__text_puts(&out, ") -> ");
    if (results == 1 && signature->results[0].is_list) {
        hob__text_printf(&out, "[%s]", signature->results[0].text);
        return hob__text_take(&out);
    }
    hob__text_puts(&out, count > 1 ? "(" : "");
    for (uint32_t i = 0; i < count; i++) {
        hob__text_puts(&out, i ? ", " : "");
        if (i < results)
            put_result(&out, &signature->results[i]);
        else
            put_plain(&out, &signature->plains[i - results]);
    }
    hob__text_puts(&out, count > 1 ? ")" : "");
    return hob__text_take(&out);
}
