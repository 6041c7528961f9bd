/* SPDX-License-Identifier: Apache-2.0 */
#include "cursor.h"

#include <string.h>

void gen_scan_fail(struct gen_cursor *c, size_t at, const char *format, ...)
{
    va_list args;

    if (c->failed)
        return;
    c->failed = true;
    c->error_at = at;
    va_start(args, format);
    (void)vsnprintf(c->message, sizeof(c->message), format, args);
    va_end(args);
}

bool gen_scan_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

char gen_scan_peek(struct gen_cursor *c)
{
    while (c->text[c->at] == ' ')
        c->at++;
    return c->text[c->at];
}

bool gen_scan_accept(struct gen_cursor *c, const char *punctuation)
{
    size_t length = strlen(punctuation);

    (void)gen_scan_peek(c);
    if (strncmp(c->text + c->at, punctuation, length) != 0)
        return false;
    c->at += length;
    return true;
}

bool gen_scan_word(struct gen_cursor *c, const char *word)
{
    size_t at = c->at;
    char next;

    if (!gen_scan_accept(c, word))
        return false;
    next = c->text[c->at];
    if (!is_letter(next) && !gen_scan_is_digit(next) && next != '.')
        return true;
    c->at = at;
    return false;
}

void gen_scan_expect(struct gen_cursor *c, const char *punctuation,
                     const char *where)
{
    if (!gen_scan_accept(c, punctuation))
        gen_scan_fail(c, c->at, "'%s' expected %s", punctuation, where);
}

bool gen_scan_name(struct gen_cursor *c, char name[GEN_NAME_BYTES + 1])
{
    size_t length = 0;
    const char *from;

    (void)gen_scan_peek(c);
    from = c->text + c->at;
    if (!is_letter(*from))
        return false;
    while (is_letter(from[length]) || gen_scan_is_digit(from[length]) ||
           (from[length] == '.' && is_letter(from[length + 1])))
        length++;
    if (length > GEN_NAME_BYTES) {
        gen_scan_fail(c, c->at, "a name of more than %d characters",
                      GEN_NAME_BYTES);
        return false;
    }
    memcpy(name, from, length);
    name[length] = '\0';
    c->at += length;
    return true;
}

bool gen_scan_integer(struct gen_cursor *c, int64_t *out)
{
    size_t from = (gen_scan_peek(c), c->at);
    uint64_t number = 0;

    if (!gen_scan_is_digit(c->text[from]))
        return false;
    for (; gen_scan_is_digit(c->text[c->at]); c->at++) {
        uint64_t digit = (uint64_t)(c->text[c->at] - '0');

        if (number > (INT64_MAX - digit) / 10) {
            gen_scan_fail(c, from, "this integer is out of range");
            return false;
        }
        number = number * 10 + digit;
    }
    *out = (int64_t)number;
    return true;
}

bool gen_scan_index(struct gen_cursor *c, int64_t *out)
{
    bool negative = gen_scan_accept(c, "-");

    if (!gen_scan_integer(c, out)) {
        if (negative)
            gen_scan_fail(c, c->at, "an integer expected");
        return false;
    }
    *out = negative ? -*out : *out;
    return true;
}

int gen_find_param(const struct gen_op *op, const char *name)
{
    for (int i = 0; i < op->signature.param_count; i++) {
        if (!strcmp(op->signature.params[i].name, name))
            return i;
    }
    return -1;
}

bool gen_has_sizes(const struct hob__param *param)
{
    return param->type == HOB__TYPE_TENSOR || param->type == HOB__TYPE_SHAPE ||
           param->type == HOB__TYPE_I64S;
}

const struct hob__param *gen_scan_param(struct gen_cursor *c, size_t at,
                                        const char *name, int *out_index)
{
    const struct hob__signature *signature = &c->names->op->signature;
    const char *near[HOB_MAX_PARAMS];
    const char *meant;

    *out_index = gen_find_param(c->names->op, name);
    if (*out_index >= 0)
        return &signature->params[*out_index];
    for (uint32_t i = 0; i < signature->param_count; i++)
        near[i] = signature->params[i].name;
    meant = hob__nearest_name(name, near, signature->param_count);
    gen_scan_fail(c, at, "there is no parameter and no \"let\" called %s%s%s%s",
                  name, meant ? "; " : "", meant ? meant : "",
                  meant ? " is meant?" : "");
    return NULL;
}

hob_status gen_scan_start(struct gen_cursor *c, const struct gen_names *names,
                          const struct hob__json_value *value, hob_error *error)
{
    memset(c, 0, sizeof(*c));
    c->names = names;
    return hob__json_string(names->op->source->doc, value, &c->text, error);
}

hob_status gen_scan_finish(struct gen_cursor *c,
                           const struct hob__json_value *value,
                           hob_error *error)
{
    if (!c->failed && gen_scan_peek(c))
        gen_scan_fail(c, c->at,
                      "nothing expected here: an operator is missing?");
    if (c->no_memory)
        return gen_no_memory(error);
    return c->failed ? gen_fail_inside(c->names->op->source, value,
                                       (int)c->error_at + 1, error, c->message)
                     : HOB_OK;
}
