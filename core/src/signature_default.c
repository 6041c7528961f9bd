/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature_default.c - the defaults of parameters.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "signature_scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* The length of the number at TEXT: RFC 8259's form, inf or nan; 0 if none. */
static size_t number_length(const char *text, int *out_is_integer)
{
    size_t n = text[0] == '-';

    *out_is_integer = 0;
    if (!strncmp(text + n, "inf", 3) || !strncmp(text + n, "nan", 3))
        return hob__scan_is_word(text[n + 3]) ? 0 : n + 3;
    if (!hob__scan_is_digit(text[n]))
        return 0;
    *out_is_integer = 1;
    while (hob__scan_is_digit(text[n]))
        n++;
    if (text[n] == '.' && hob__scan_is_digit(text[n + 1])) {
        *out_is_integer = 0;
        for (n++; hob__scan_is_digit(text[n]);)
            n++;
    }
    if (text[n] == 'e' || text[n] == 'E') {
        size_t sign = text[n + 1] == '-' || text[n + 1] == '+';

        if (!hob__scan_is_digit(text[n + 1 + sign]))
            return 0;
        *out_is_integer = 0;
        for (n += 1 + sign; hob__scan_is_digit(text[n]);)
            n++;
    }
    return hob__scan_is_word(text[n]) || text[n] == '.' ? 0 : n;
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

static hob_status parse_number(struct hob__cursor *c, uint8_t type,
                               hob_value *out)
{
    int is_integer, ok;
    double number = 0;
    size_t length;

    (void)hob__scan_peek(c);
    length = number_length(c->text + c->at, &is_integer);
    if (!length)
        return hob__scan_fail(c, c->at, "a number expected");
    if (type == HOB__TYPE_I64 && !is_integer)
        return hob__scan_fail(c, c->at, "an integer expected");
    if (is_integer && type != HOB__TYPE_F64) {
        ok = read_integer(c->text + c->at, length, type == HOB__TYPE_SCALAR,
                          out);
    } else {
        ok = read_f64(c->text + c->at, length, &number);
        *out = hob_f64(number);
    }
    if (!ok)
        return hob__scan_fail(c, c->at, "this number is out of range");
    c->at += length;
    return HOB_OK;
}

/* [1, 2]: the numbers are allocated, and freed with the signature. */
static hob_status parse_numbers(struct hob__cursor *c, uint8_t type,
                                hob_value *out)
{
    int64_t *numbers = NULL; /* or the bits of doubles: eight bytes both */
    uint32_t count = 0;
    hob_status st = hob__scan_expect(c, "[", "a list such as [1, 2] expected");

    if (!st && hob__scan_accept(c, "]"))
        goto made;
    while (!st) {
        hob_value item;
        int64_t *grown;

        st = parse_number(c, type, &item);
        if (st)
            break;
        grown = realloc(numbers, (count + (size_t)1) * sizeof(*grown));
        if (!grown) {
            st = hob__scan_no_memory(c);
            break;
        }
        numbers = grown;
        memcpy(&numbers[count++], &item.u, sizeof(*numbers));
        if (!hob__scan_accept(c, ",")) {
            st = hob__scan_expect(c, "]", "',' or ']' expected in the list");
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
static hob_status parse_string(struct hob__cursor *c, hob_value *out)
{
    size_t at = (hob__scan_peek(c), c->at), n = 0;
    const char *p = c->text + at;
    char *copy;

    if (*p++ != '"')
        return hob__scan_fail(c, at, "a string such as \"none\" expected");
    copy = malloc(strlen(p) + 1);
    if (!copy)
        return hob__scan_no_memory(c);
    for (; *p && *p != '"'; p++) {
        char plain = *p;

        if (plain == '\\') {
            p++;
            plain = *p == 'n' ? '\n' : *p == 't' ? '\t' : *p;
            if (!*p || !strchr("\"\\nt", *p)) {
                free(copy);
                return hob__scan_fail(c, (size_t)(p - c->text),
                                      "there are \\\" \\\\ \\n and \\t only");
            }
        }
        copy[n++] = plain;
    }
    if (!*p) {
        free(copy);
        return hob__scan_fail(c, at, "this string has no end");
    }
    copy[n] = '\0';
    c->at = (size_t)(p + 1 - c->text);
    *out = hob_value_make(HOB_TAG_STR, (uint32_t)n);
    out->u.str = copy;
    return HOB_OK;
}

/* true and false, a dtype or an enumerator of PARAM. */
static hob_status parse_name(struct hob__cursor *c,
                             const struct hob__param *param, hob_value *out)
{
    size_t at = (hob__scan_peek(c), c->at);
    const char *message = "no such enumerator";
    int found = 0;
    char *word;
    hob_status st = hob__scan_word(c, 0, &word, "a name expected");

    if (st)
        return st;
    if (param->type == HOB__TYPE_BOOL || param->type == HOB__TYPE_SCALAR) {
        found = !strcmp(word, "true") || !strcmp(word, "false");
        *out = hob_bool(!strcmp(word, "true"));
        message = "true or false expected";
    } else if (param->type == HOB__TYPE_DTYPE) {
        uint32_t dtype = hob__scan_dtype(word);

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
    return found ? HOB_OK : hob__scan_fail(c, at, message);
}

hob_status hob__scan_value(struct hob__cursor *c,
                           const struct hob__param *param, hob_value *out)
{
    char next = hob__scan_peek(c);
    int ignored;

    switch (param->type) {
    case HOB__TYPE_SCALAR:
        /* "inf" and "nan" are words too, but numbers. */
        if (hob__scan_is_alpha(next) &&
            !number_length(c->text + c->at, &ignored))
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
        return hob__scan_fail(c, c->at,
                              "a tensor has no default; make it optional "
                              "with '?'");
    default:
        return hob__scan_fail(c, c->at,
                              "a parameter of this type has no default");
    }
}

hob_status hob__scan_default(struct hob__cursor *c, struct hob__param *param)
{
    size_t from;
    hob_status st;

    if (!hob__scan_accept(c, "="))
        return HOB_OK;
    if (param->flags & HOB__PARAM_OPTIONAL)
        return hob__scan_fail(c, c->at - 1,
                              "an optional parameter ('?') has no "
                              "default: it is absent instead");
    (void)hob__scan_peek(c);
    from = c->at;
    st = hob__scan_value(c, param, &param->value);
    if (st)
        return st;
    param->flags |= HOB__PARAM_DEFAULT;
    param->default_text = malloc(c->at - from + 1);
    if (!param->default_text)
        return hob__scan_no_memory(c);
    memcpy(param->default_text, c->text + from, c->at - from);
    param->default_text[c->at - from] = '\0';
    return HOB_OK;
}
