/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "signature.h"

#include "type_defs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Names longer than this are a mistake, not a name. */
enum { NAME_MAX_BYTES = 63 };

/* Where the parser stands. The first failure stays. */
struct cursor {
    const char *text;
    const struct hob__types *types; /* NULL: no types are known */
    size_t at;
    size_t error_at;
    const char *message; /* static; NULL: no failure yet */
    hob_status status;
    int in_tuple; /* there are several results */
};

static const struct {
    const char *name;
    uint32_t mask;
} kinds[] = {
    {"Float", HOB_MASK_FLOAT}, {"Int", HOB_MASK_INT},
    {"Bool", HOB_MASK_BOOL},   {"Quantized", HOB_DTYPE_BIT(HOB_DTYPE_QUANT)},
    {"Num", HOB_MASK_NUM},     {"Any", HOB_MASK_ANY}};

static const struct {
    const char *name;
    uint8_t type; /* enum hob__type */
} attributes[] = {{"scalar", HOB__TYPE_SCALAR}, {"f64", HOB__TYPE_F64},
                  {"i64", HOB__TYPE_I64},       {"bool", HOB__TYPE_BOOL},
                  {"str", HOB__TYPE_STR},       {"dtype", HOB__TYPE_DTYPE},
                  {"shape", HOB__TYPE_SHAPE},   {"device", HOB__TYPE_DEVICE}};

enum {
    KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]),
    ATTRIBUTE_COUNT = sizeof(attributes) / sizeof(attributes[0])
};

/* ---- characters and words; the C locale's, whatever the program's is ---- */

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int is_alpha(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int is_word(char c)
{
    return is_alpha(c) || is_digit(c) || c == '_';
}

static hob_status fail_at(struct cursor *c, size_t at, const char *message)
{
    if (!c->message) {
        c->error_at = at;
        c->message = message;
        c->status = HOB_ERR_FORMAT;
    }
    return c->status;
}

static hob_status fail_memory(struct cursor *c)
{
    (void)fail_at(c, c->at, "out of memory");
    c->status = HOB_ERR_MEMORY;
    return c->status;
}

static char peek(struct cursor *c)
{
    while (c->text[c->at] == ' ' || c->text[c->at] == '\t' ||
           c->text[c->at] == '\n')
        c->at++;
    return c->text[c->at];
}

/* Take PUNCTUATION if it stands next. */
static int accept(struct cursor *c, const char *punctuation)
{
    size_t length = strlen(punctuation);

    (void)peek(c);
    if (strncmp(c->text + c->at, punctuation, length) != 0)
        return 0;
    c->at += length;
    return 1;
}

static hob_status expect(struct cursor *c, const char *punctuation,
                         const char *message)
{
    return accept(c, punctuation) ? HOB_OK : fail_at(c, c->at, message);
}

/* A word that starts with a letter or '_'; the caller frees *OUT_WORD. */
static hob_status take_word(struct cursor *c, char **out_word,
                            const char *message)
{
    char first = peek(c);
    size_t from = c->at, length = 0;

    *out_word = NULL;
    if (!is_alpha(first) && first != '_')
        return fail_at(c, from, message);
    while (is_word(c->text[from + length]))
        length++;
    if (length > NAME_MAX_BYTES)
        return fail_at(c, from, "a name of more than 63 characters");
    *out_word = malloc(length + 1);
    if (!*out_word)
        return fail_memory(c);
    memcpy(*out_word, c->text + from, length);
    (*out_word)[length] = '\0';
    c->at += length;
    return HOB_OK;
}

/* Words with dots between them, as flat signatures have. */
static hob_status take_name(struct cursor *c, char **out_name,
                            const char *message)
{
    hob_status st = take_word(c, out_name, message);

    while (!st && c->text[c->at] == '.' && is_alpha(c->text[c->at + 1])) {
        char *head = *out_name, *tail;
        size_t length = strlen(head);
        char *grown;

        c->at++;
        st = take_word(c, &tail, message);
        grown = st ? NULL : realloc(head, length + strlen(tail) + 2);
        if (!st && !grown)
            st = fail_memory(c);
        if (grown) {
            grown[length] = '.';
            memcpy(grown + length + 1, tail, strlen(tail) + 1);
            *out_name = grown;
        }
        free(tail);
    }
    if (st) {
        free(*out_name);
        *out_name = NULL;
    }
    return st;
}

static int find_kind(const char *word)
{
    for (int i = 0; i < KIND_COUNT; i++) {
        if (!strcmp(kinds[i].name, word))
            return i;
    }
    return -1;
}

static uint32_t find_dtype(const char *word)
{
    for (uint32_t i = 1; i < HOB_DTYPE_COUNT_; i++) {
        if (!strcmp(hob_dtype_name(i), word))
            return i;
    }
    return HOB_DTYPE_NONE;
}

/* ---- types ---- */

static hob_status add_enumerator(struct cursor *c, struct hob__param *param,
                                 size_t at, char *name)
{
    uint32_t count = param->enumerator_count;
    char **grown;

    for (uint32_t i = 0; i < count; i++) {
        if (!strcmp(param->enumerators[i], name)) {
            free(name);
            return fail_at(c, at, "this enumerator stands twice");
        }
    }
    grown = realloc(param->enumerators, (count + 1) * sizeof(*grown));
    if (!grown || count == UINT16_MAX) {
        free(name);
        param->enumerators = grown ? grown : param->enumerators;
        return fail_memory(c);
    }
    grown[count] = name;
    param->enumerators = grown;
    param->enumerator_count = (uint16_t)(count + 1);
    return HOB_OK;
}

static hob_status parse_enumerators(struct cursor *c, struct hob__param *param)
{
    hob_status st = expect(c, "(", "'(' expected after enum");

    param->type = HOB__TYPE_ENUM;
    while (!st) {
        char *name;
        size_t at = (peek(c), c->at);

        st = take_word(c, &name, "the name of an enumerator expected");
        if (!st)
            st = add_enumerator(c, param, at, name);
        if (!st && !accept(c, ","))
            return expect(c, ")", "',' or ')' expected in enum");
    }
    return st;
}

/* Set the type that WORD names; takes ownership of WORD. */
static hob_status set_type(struct cursor *c, struct hob__param *param,
                           size_t at, char *word)
{
    int kind = find_kind(word);
    hob_status st = HOB_OK;

    param->type = 0;
    if (kind >= 0) {
        param->type = HOB__TYPE_TENSOR;
        param->kind = kinds[kind].name;
        param->mask = kinds[kind].mask;
    }
    for (int i = 0; i < ATTRIBUTE_COUNT && !param->type; i++) {
        if (!strcmp(attributes[i].name, word))
            param->type = attributes[i].type;
    }
    if (!param->type && !strcmp(word, "enum")) {
        st = parse_enumerators(c, param);
    } else if (!param->type && word[0] >= 'A' && word[0] <= 'Z') {
        param->type = HOB__TYPE_NAMED;
        param->kind = word;
        return HOB_OK;
    } else if (!param->type) {
        st = fail_at(c, at,
                     "no such type; there are Float Int Bool Quantized Num "
                     "Any, [T] of them, scalar f64 i64 bool str dtype shape "
                     "device [i64] [f64] enum(..) and the types of an "
                     "extension, which begin with a capital");
    }
    free(word);
    return st;
}

/* The type between '[' and ']' becomes the list of it. */
static hob_status make_list(struct cursor *c, struct hob__param *param,
                            size_t at)
{
    if (param->type == HOB__TYPE_TENSOR)
        param->type = HOB__TYPE_TENSORS;
    else if (param->type == HOB__TYPE_I64)
        param->type = HOB__TYPE_I64S;
    else if (param->type == HOB__TYPE_F64)
        param->type = HOB__TYPE_F64S;
    else
        return fail_at(c, at, "only tensors, i64 and f64 come in lists");
    return expect(c, "]", "']' expected");
}

static hob_status parse_type(struct cursor *c, struct hob__param *param)
{
    int is_list = accept(c, "[");
    size_t at = (peek(c), c->at);
    char *word;
    hob_status st = take_word(c, &word, "a type expected");

    if (!st)
        st = set_type(c, param, at, word);
    if (!st && is_list)
        st = make_list(c, param, at);
    if (!st && accept(c, "?"))
        param->flags |= HOB__PARAM_OPTIONAL;
    return st;
}

/* ---- defaults ---- */

/* The length of the number at TEXT: RFC 8259's form, inf or nan; 0 if none. */
static size_t number_length(const char *text, int *out_is_integer)
{
    size_t n = text[0] == '-';

    *out_is_integer = 0;
    if (!strncmp(text + n, "inf", 3) || !strncmp(text + n, "nan", 3))
        return is_word(text[n + 3]) ? 0 : n + 3;
    if (!is_digit(text[n]))
        return 0;
    *out_is_integer = 1;
    while (is_digit(text[n]))
        n++;
    if (text[n] == '.' && is_digit(text[n + 1])) {
        *out_is_integer = 0;
        for (n++; is_digit(text[n]);)
            n++;
    }
    if (text[n] == 'e' || text[n] == 'E') {
        size_t sign = text[n + 1] == '-' || text[n + 1] == '+';

        if (!is_digit(text[n + 1 + sign]))
            return 0;
        *out_is_integer = 0;
        for (n += 1 + sign; is_digit(text[n]);)
            n++;
    }
    return is_word(text[n]) || text[n] == '.' ? 0 : n;
}

/*
 * strtod() reads the decimal point of the program's locale, a signature is
 * the same everywhere: ask how 0.5 is printed and put that point in.
 */
static int read_f64(const char *text, size_t length, double *out)
{
    char half[32], copy[128];
    size_t n = 0, point;
    char *end;

    if (snprintf(half, sizeof(half), "%.1f", 0.5) < 3)
        return 0;
    point = strlen(half) - 2; /* between "0" and "5" */
    if (length + point >= sizeof(copy))
        return 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.') {
            memcpy(copy + n, half + 1, point);
            n += point;
        } else {
            copy[n++] = text[i];
        }
    }
    copy[n] = '\0';
    *out = strtod(copy, &end);
    return end == copy + n && (!isinf(*out) || strstr(copy, "inf"));
}

/* An integer of int64_t or, if UNSIGNED_TOO, of uint64_t. */
static int read_integer(const char *text, size_t length, int unsigned_too,
                        hob_value *out)
{
    int negative = text[0] == '-';
    uint64_t magnitude = 0;

    for (size_t i = (size_t)negative; i < length; i++) {
        uint64_t digit = (uint64_t)(text[i] - '0');

        if (magnitude > (UINT64_MAX - digit) / 10)
            return 0;
        magnitude = magnitude * 10 + digit;
    }
    if (magnitude <= (uint64_t)INT64_MAX)
        *out = hob_i64(negative ? -(int64_t)magnitude : (int64_t)magnitude);
    else if (negative && magnitude == (uint64_t)INT64_MAX + 1)
        *out = hob_i64(INT64_MIN);
    else if (!negative && unsigned_too)
        *out = hob_u64(magnitude);
    else
        return 0;
    return 1;
}

static hob_status parse_number(struct cursor *c, uint8_t type, hob_value *out)
{
    int is_integer, ok;
    double number = 0;
    size_t length;

    (void)peek(c);
    length = number_length(c->text + c->at, &is_integer);
    if (!length)
        return fail_at(c, c->at, "a number expected");
    if (type == HOB__TYPE_I64 && !is_integer)
        return fail_at(c, c->at, "an integer expected");
    if (is_integer && type != HOB__TYPE_F64) {
        ok = read_integer(c->text + c->at, length, type == HOB__TYPE_SCALAR,
                          out);
    } else {
        ok = read_f64(c->text + c->at, length, &number);
        *out = hob_f64(number);
    }
    if (!ok)
        return fail_at(c, c->at, "this number is out of range");
    c->at += length;
    return HOB_OK;
}

/* [1, 2]: the numbers are allocated, and freed with the signature. */
static hob_status parse_numbers(struct cursor *c, uint8_t type, hob_value *out)
{
    int64_t *numbers = NULL; /* or the bits of doubles: eight bytes both */
    uint32_t count = 0;
    hob_status st = expect(c, "[", "a list such as [1, 2] expected");

    if (!st && accept(c, "]"))
        goto made;
    while (!st) {
        hob_value item;
        int64_t *grown;

        st = parse_number(c, type, &item);
        if (st)
            break;
        grown = realloc(numbers, (count + (size_t)1) * sizeof(*grown));
        if (!grown) {
            st = fail_memory(c);
            break;
        }
        numbers = grown;
        memcpy(&numbers[count++], &item.u, sizeof(*numbers));
        if (!accept(c, ",")) {
            st = expect(c, "]", "',' or ']' expected in the list");
            break;
        }
    }
    if (st) {
        free(numbers);
        return st;
    }
made:
    *out = hob_value_make(type == HOB__TYPE_F64 ? HOB_TAG_F64S : HOB_TAG_I64S,
                          count);
    out->u.i64s = numbers;
    return HOB_OK;
}

/* "text" with \" \\ \n \t; allocated, freed with the signature. */
static hob_status parse_string(struct cursor *c, hob_value *out)
{
    size_t at = (peek(c), c->at), n = 0;
    const char *p = c->text + at;
    char *copy;

    if (*p++ != '"')
        return fail_at(c, at, "a string such as \"none\" expected");
    copy = malloc(strlen(p) + 1);
    if (!copy)
        return fail_memory(c);
    for (; *p && *p != '"'; p++) {
        char plain = *p;

        if (plain == '\\') {
            p++;
            plain = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
            if (!*p || !strchr("\"\\nt", *p)) {
                free(copy);
                return fail_at(c, (size_t)(p - c->text),
                               "there are \\\" \\\\ \\n and \\t only");
            }
        }
        copy[n++] = plain;
    }
    if (!*p) {
        free(copy);
        return fail_at(c, at, "this string has no end");
    }
    copy[n] = '\0';
    c->at = (size_t)(p + 1 - c->text);
    *out = hob_value_make(HOB_TAG_STR, (uint32_t)n);
    out->u.str = copy;
    return HOB_OK;
}

/* true and false, a dtype or an enumerator of PARAM. */
static hob_status parse_name(struct cursor *c, const struct hob__param *param,
                             hob_value *out)
{
    size_t at = (peek(c), c->at);
    const char *message = "no such enumerator";
    int found = 0;
    char *word;
    hob_status st = take_word(c, &word, "a name expected");

    if (st)
        return st;
    if (param->type == HOB__TYPE_BOOL || param->type == HOB__TYPE_SCALAR) {
        found = !strcmp(word, "true") || !strcmp(word, "false");
        *out = hob_bool(!strcmp(word, "true"));
        message = "true or false expected";
    } else if (param->type == HOB__TYPE_DTYPE) {
        uint32_t dtype = find_dtype(word);

        found = dtype != HOB_DTYPE_NONE;
        *out = hob_value_dtype(dtype);
        message = "no such dtype";
    } else {
        for (uint32_t i = 0; i < param->enumerator_count && !found; i++) {
            found = !strcmp(param->enumerators[i], word);
            *out = hob_value_enum(i);
        }
    }
    free(word);
    return found ? HOB_OK : fail_at(c, at, message);
}

static hob_status parse_value(struct cursor *c, const struct hob__param *param,
                              hob_value *out)
{
    char next = peek(c);
    int ignored;

    switch (param->type) {
    case HOB__TYPE_SCALAR:
        /* "inf" and "nan" are words too, but numbers. */
        if (is_alpha(next) && !number_length(c->text + c->at, &ignored))
            return parse_name(c, param, out);
        return parse_number(c, HOB__TYPE_SCALAR, out);
    case HOB__TYPE_F64:
    case HOB__TYPE_I64:
        return parse_number(c, param->type, out);
    case HOB__TYPE_I64S:
    case HOB__TYPE_SHAPE:
        return parse_numbers(c, HOB__TYPE_I64, out);
    case HOB__TYPE_F64S:
        return parse_numbers(c, HOB__TYPE_F64, out);
    case HOB__TYPE_STR:
        return parse_string(c, out);
    case HOB__TYPE_BOOL:
    case HOB__TYPE_DTYPE:
    case HOB__TYPE_ENUM:
        return parse_name(c, param, out);
    case HOB__TYPE_TENSOR:
    case HOB__TYPE_TENSORS:
        return fail_at(c, c->at,
                       "a tensor has no default; make it optional "
                       "with '?'");
    default:
        return fail_at(c, c->at, "a parameter of this type has no default");
    }
}

static hob_status parse_default(struct cursor *c, struct hob__param *param)
{
    size_t from;
    hob_status st;

    if (!accept(c, "="))
        return HOB_OK;
    if (param->flags & HOB__PARAM_OPTIONAL)
        return fail_at(c, c->at - 1,
                       "an optional parameter ('?') has no "
                       "default: it is absent instead");
    (void)peek(c);
    from = c->at;
    st = parse_value(c, param, &param->value);
    if (st)
        return st;
    param->flags |= HOB__PARAM_DEFAULT;
    param->default_text = malloc(c->at - from + 1);
    if (!param->default_text)
        return fail_memory(c);
    memcpy(param->default_text, c->text + from, c->at - from);
    param->default_text[c->at - from] = '\0';
    return HOB_OK;
}

/* ---- parameters and results ---- */

static int find_param(const struct hob__signature *signature, const char *name)
{
    for (int i = 0; i < signature->param_count; i++) {
        if (!strcmp(signature->params[i].name, name))
            return i;
    }
    return -1;
}

static const struct hob__item *find_item(const struct hob__signature *out,
                                         const char *name)
{
    for (uint32_t i = 0; i < out->item_count; i++)
        if (!strcmp(out->items[i].name, name))
            return &out->items[i];
    return NULL;
}

/* What the core fills in comes last and may be left out by the caller. */
static hob_status check_hidden(struct cursor *c, size_t at,
                               const struct hob__signature *signature,
                               struct hob__param *param)
{
    uint32_t count = signature->param_count;

    if (param->name[0] == '_') {
        param->flags |= HOB__PARAM_HIDDEN;
        if (!(param->flags & (HOB__PARAM_OPTIONAL | HOB__PARAM_DEFAULT)))
            return fail_at(c, at,
                           "a hidden parameter must be optional or "
                           "have a default");
    } else if (count &&
               (signature->params[count - 1].flags & HOB__PARAM_HIDDEN)) {
        return fail_at(c, at, "only hidden parameters may follow a hidden one");
    }
    return HOB_OK;
}

/* An item was written; what it stands for begins at FIRST. */
static struct hob__item *add_item(struct hob__item *items, uint16_t *count,
                                  uint32_t first)
{
    struct hob__item *item = &items[(*count)++];

    memset(item, 0, sizeof(*item));
    item->first = (uint8_t)first;
    return item;
}

/* The definition of the type called NAME, or NULL with a failure. */
static const struct hob__type_def *find_def(struct cursor *c, size_t at,
                                            const char *name)
{
    for (uint32_t i = 0; c->types && i < c->types->count; i++)
        if (!strcmp(c->types->defs[i]->name, name))
            return c->types->defs[i];
    (void)fail_at(c, at,
                  "no such type: Float Int Bool Quantized Num Any are the "
                  "kinds of tensors, and \"types\" of the manifest declares "
                  "others");
    return NULL;
}

static hob_status type_failed(struct cursor *c, size_t at, const char *message)
{
    if (!strcmp(message, "out of memory"))
        return fail_memory(c);
    return fail_at(c, at, message);
}

/* Parameter NAME of the type that PARAM names: its fields instead of it. */
static hob_status add_typed(struct cursor *c, size_t at,
                            struct hob__signature *out, char *name,
                            const struct hob__param *param)
{
    const struct hob__type_def *def = find_def(c, at, param->kind);
    const char *message = NULL;
    struct hob__item *item;

    if (def && param->flags)
        (void)fail_at(c, at,
                      "an argument of an extension type is always there: for "
                      "an optional one use an enum with a variant that is "
                      "null");
    if (def && name[0] == '_')
        (void)fail_at(c, at, "a hidden parameter cannot be of such a type");
    if (def && !c->message) {
        item = add_item(out->items, &out->item_count, out->param_count);
        item->name = name;
        item->def = def;
        message = hob__type_add_params(out, name, def);
        if (message)
            return type_failed(c, at, message);
        return HOB_OK;
    }
    free(name);
    return c->status;
}

static hob_status parse_param(struct cursor *c, struct hob__signature *out)
{
    size_t at = (peek(c), c->at), type_at;
    struct hob__param *param;
    char *name;
    hob_status st;

    if (out->param_count == HOB_MAX_PARAMS || out->item_count == HOB_MAX_PARAMS)
        return fail_at(c, at, "more than 32 parameters");
    st = take_name(c, &name, "the name of a parameter expected");
    if (st)
        return st;
    if (find_item(out, name) || find_param(out, name) >= 0) {
        free(name);
        return fail_at(c, at, "a parameter of this name stands before");
    }
    /* From here hob__signature_release() knows it. */
    param = &out->params[out->param_count];
    param->name = name;
    param->tag_param = HOB__NO_TAG;
    st = expect(c, ":", "':' and a type expected");
    type_at = (peek(c), c->at);
    if (!st)
        st = parse_type(c, param);
    if (!st && param->type == HOB__TYPE_NAMED) {
        struct hob__param named = *param;

        memset(param, 0, sizeof(*param));
        st = add_typed(c, type_at, out, name, &named);
        named.name = NULL;
        hob__param_release(&named);
        return st;
    }
    if (!st)
        st = parse_default(c, param);
    if (!st)
        st = check_hidden(c, at, out, param);
    add_item(out->items, &out->item_count, out->param_count)->name =
        param->name;
    out->param_count++;
    if (st)
        return st;
    if (param->type == HOB__TYPE_TENSOR || param->type == HOB__TYPE_TENSORS)
        out->tensor_count++;
    if (!(param->flags & (HOB__PARAM_OPTIONAL | HOB__PARAM_DEFAULT)))
        out->required_count = out->param_count;
    return HOB_OK;
}

static hob_status parse_params(struct cursor *c, struct hob__signature *out)
{
    hob_status st = expect(c, "(", "'(' expected");

    if (!st && accept(c, ")"))
        return HOB_OK;
    while (!st) {
        st = parse_param(c, out);
        if (!st && !accept(c, ","))
            return expect(c, ")", "',' or ')' expected");
    }
    return st;
}

static hob_status resolve_result(struct cursor *c, size_t at,
                                 const struct hob__signature *signature,
                                 struct hob__result *result)
{
    int index = find_param(signature, result->text);
    const struct hob__param *param =
        index >= 0 ? &signature->params[index] : NULL;

    if (param && (param->flags & (HOB__PARAM_OPTIONAL | HOB__PARAM_HIDDEN)))
        return fail_at(c, at,
                       "a result takes its dtype from a parameter that "
                       "is always there");
    if (param) {
        result->param = (uint8_t)index;
        if (param->type == HOB__TYPE_TENSOR || param->type == HOB__TYPE_TENSORS)
            result->source = HOB__RESULT_PARAM;
        else if (param->type == HOB__TYPE_DTYPE)
            result->source = HOB__RESULT_ATTRIBUTE;
        else
            return fail_at(c, at,
                           "a result is named after a tensor or a dtype "
                           "parameter, and this is neither: is its type spelt "
                           "right?");
        return HOB_OK;
    }
    result->dtype = (uint8_t)find_dtype(result->text);
    if (!strcmp(result->text, "Bool"))
        result->dtype = HOB_DTYPE_BOOL;
    if (result->dtype)
        result->source = HOB__RESULT_DTYPE;
    else if (find_kind(result->text) >= 0)
        result->source = HOB__RESULT_INFERRED;
    else
        return fail_at(c, at, "no parameter, dtype or kind of this name");
    return HOB_OK;
}

static int has_result_name(const struct hob__signature *out, const char *name)
{
    for (uint32_t i = 0; i < out->result_count; i++)
        if (out->results[i].name && !strcmp(out->results[i].name, name))
            return 1;
    for (uint32_t i = 0; i < out->plain_count; i++)
        if (out->plains[i].name && !strcmp(out->plains[i].name, name))
            return 1;
    return 0;
}

/* A tensor: TEXT, which is taken over, says what its dtype is. */
static hob_status add_tensor_result(struct cursor *c, size_t at,
                                    struct hob__signature *out, char *text,
                                    int is_list)
{
    struct hob__result *result = &out->results[out->result_count];

    if (out->result_count == HOB_MAX_RESULTS ||
        out->result_item_count == HOB_MAX_RESULTS) {
        free(text);
        return fail_at(c, at, "more than 16 results");
    }
    (void)add_item(out->result_items, &out->result_item_count,
                   out->result_count);
    result->text = text;
    result->tag_plain = HOB__NO_TAG;
    result->is_list = (uint8_t)is_list;
    out->result_count++;
    if (accept(c, "?"))
        result->flags |= HOB__PARAM_OPTIONAL;
    return resolve_result(c, at, out, result);
}

/* What stands in value(..): a number or the like beside the tensors. */
static hob_status add_plain_result(struct cursor *c, size_t at,
                                   struct hob__signature *out)
{
    struct hob__param *plain = &out->plains[out->plain_count];
    struct hob__item *item;
    hob_status st = expect(c, "(", "'(' expected after value");

    if (st)
        return st;
    if (out->plain_count == HOB_MAX_RESULTS ||
        out->result_item_count == HOB_MAX_RESULTS)
        return fail_at(c, at, "more than 16 plain results");
    item =
        add_item(out->result_items, &out->result_item_count, out->result_count);
    item->is_plain = 1;
    item->first_plain = (uint8_t)out->plain_count++;
    plain->tag_param = HOB__NO_TAG;
    st = parse_type(c, plain);
    if (!st && plain->type != HOB__TYPE_F64 && plain->type != HOB__TYPE_I64 &&
        plain->type != HOB__TYPE_BOOL && plain->type != HOB__TYPE_DTYPE &&
        plain->type != HOB__TYPE_ENUM)
        st = fail_at(c, at,
                     "a plain result is value(f64), value(i64), value(bool), "
                     "value(dtype) or value(enum(..))");
    return st ? st : expect(c, ")", "')' expected after the type");
}

/*
 * The fields of a type: "boxes.coords" if it has the name "boxes", else
 * "0.coords" of several results and "coords" if it is all there is. NAME is
 * taken over.
 */
static hob_status add_typed_result(struct cursor *c, size_t at,
                                   struct hob__signature *out, char *name,
                                   const char *type)
{
    const struct hob__type_def *def = find_def(c, at, type);
    struct hob__item *item;
    const char *message;
    char number[16];

    (void)snprintf(number, sizeof(number), "%u",
                   (unsigned)out->result_item_count);
    if (!def || out->result_item_count == HOB_MAX_RESULTS) {
        free(name);
        return fail_at(c, at, "more than 16 results");
    }
    item =
        add_item(out->result_items, &out->result_item_count, out->result_count);
    item->first_plain = (uint8_t)out->plain_count;
    item->name = name;
    item->def = def;
    message = hob__type_add_results(out,
                                    name          ? name
                                    : c->in_tuple ? number
                                                  : "",
                                    def);
    return message ? type_failed(c, at, message) : HOB_OK;
}

/* Give the item that was written last the NAME, which is taken over. */
static hob_status name_result(struct cursor *c, size_t at,
                              struct hob__signature *out, char *name)
{
    struct hob__item *item = &out->result_items[out->result_item_count - 1];

    if (has_result_name(out, name)) {
        free(name);
        return fail_at(c, at, "a result of this name stands before");
    }
    item->name = name;
    if (item->is_plain)
        out->plains[item->first_plain].name = name;
    else
        out->results[item->first].name = name;
    if (name[0] == '_' && item->is_plain)
        return fail_at(c, at, "a plain result cannot be hidden");
    if (name[0] == '_')
        out->results[item->first].flags |= HOB__PARAM_HIDDEN;
    return HOB_OK;
}

static hob_status parse_item(struct cursor *c, struct hob__signature *out,
                             int is_list)
{
    size_t at = (peek(c), c->at), type_at = at;
    char *name = NULL, *text;
    hob_status st = take_name(c, &text, "a result expected");

    if (!st && !is_list && accept(c, ":")) {
        name = text;
        type_at = (peek(c), c->at);
        st = take_word(c, &text, "a result expected");
        if (st)
            free(name);
    }
    if (st)
        return st;
    if (!is_list && !strcmp(text, "value") && peek(c) == '(') {
        free(text);
        st = add_plain_result(c, type_at, out);
    } else if (text[0] >= 'A' && text[0] <= 'Z' && find_kind(text) < 0 &&
               find_param(out, text) < 0) {
        st = is_list ? fail_at(c, at, "a list of results holds tensors")
                     : add_typed_result(c, type_at, out, name, text);
        free(text);
        return st;
    } else {
        st = add_tensor_result(c, type_at, out, text, is_list);
    }
    if (!name)
        return st;
    if (!st)
        return name_result(c, at, out, name);
    free(name);
    return st;
}

/* Whether what follows '(' has a comma of its own: several results. */
static int is_tuple(const struct cursor *c)
{
    int depth = 0;

    for (size_t i = c->at; c->text[i] && depth >= 0; i++) {
        depth += c->text[i] == '(';
        depth -= c->text[i] == ')';
        if (c->text[i] == ',' && !depth)
            return 1;
    }
    return 0;
}

static hob_status parse_results(struct cursor *c, struct hob__signature *out)
{
    hob_status st = expect(c, "->", "'->' and the results expected");

    if (st)
        return st;
    if (accept(c, "[")) {
        st = parse_item(c, out, 1);
        return st ? st : expect(c, "]", "']' expected");
    }
    if (!accept(c, "("))
        return parse_item(c, out, 0);
    c->in_tuple = is_tuple(c);
    while (!st) {
        st = parse_item(c, out, 0);
        if (!st && !accept(c, ","))
            return expect(c, ")", "',' or ')' expected after a result");
    }
    return st;
}

/* ---- the module's functions ---- */

void hob__param_release(struct hob__param *param)
{
    for (uint32_t i = 0; i < param->enumerator_count; i++)
        free(param->enumerators[i]);
    free(param->enumerators);
    if (param->type == HOB__TYPE_NAMED)
        free((void *)(uintptr_t)param->kind);
    if (param->value.tag == HOB_TAG_STR)
        free((void *)(uintptr_t)param->value.u.str);
    if (param->value.tag == HOB_TAG_I64S || param->value.tag == HOB_TAG_F64S)
        free((void *)(uintptr_t)param->value.u.i64s);
    free(param->default_text);
    free(param->name);
    memset(param, 0, sizeof(*param));
}

/* Say where and what, as the functions of this module do. */
static hob_status finish(const struct cursor *c, hob_status st, int *out_column,
                         const char **out_message)
{
    *out_column = st ? (int)c->error_at + 1 : 0;
    *out_message = st ? c->message : NULL;
    return st;
}

hob_status hob__signature_parse_with(const char *text,
                                     const struct hob__types *types,
                                     struct hob__signature *out,
                                     int *out_column, const char **out_message)
{
    struct cursor c = {text, types, 0, 0, NULL, HOB_OK, 0};
    hob_status st;

    memset(out, 0, sizeof(*out));
    st = parse_params(&c, out);
    if (!st)
        st = parse_results(&c, out);
    if (!st && peek(&c))
        st = fail_at(&c, c.at, "nothing expected after the results");
    if (st)
        hob__signature_release(out);
    return finish(&c, st, out_column, out_message);
}

hob_status hob__signature_parse(const char *text, struct hob__signature *out,
                                int *out_column, const char **out_message)
{
    return hob__signature_parse_with(text, NULL, out, out_column, out_message);
}

hob_status hob__signature_parse_type(const char *text, struct hob__param *out,
                                     int *out_column, const char **out_message)
{
    struct cursor c = {text, NULL, 0, 0, NULL, HOB_OK, 0};
    hob_status st;

    memset(out, 0, sizeof(*out));
    out->tag_param = HOB__NO_TAG;
    st = parse_type(&c, out);
    if (!st && peek(&c))
        st = fail_at(&c, c.at, "nothing expected after the type");
    if (st)
        hob__param_release(out);
    return finish(&c, st, out_column, out_message);
}

void hob__signature_release(struct hob__signature *signature)
{
    /* A plain item has its parameter's or result's name; a type its own. */
    for (uint32_t i = 0; i < signature->item_count; i++)
        if (signature->items[i].def)
            free((void *)(uintptr_t)signature->items[i].name);
    for (uint32_t i = 0; i < signature->result_item_count; i++)
        if (signature->result_items[i].def)
            free((void *)(uintptr_t)signature->result_items[i].name);
    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
        if (signature->params[i].name)
            hob__param_release(&signature->params[i]);
    for (uint32_t i = 0; i < signature->result_count; i++) {
        free(signature->results[i].text);
        free(signature->results[i].name);
    }
    for (uint32_t i = 0; i < signature->plain_count; i++)
        hob__param_release(&signature->plains[i]);
    memset(signature, 0, sizeof(*signature));
}
