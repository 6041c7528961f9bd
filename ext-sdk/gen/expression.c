/* SPDX-License-Identifier: Apache-2.0 */
#include "cursor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Brackets and prefixes nest at most this deep: the parser recurses. */
enum { MAX_DEPTH = 64 };

/* A part that was parsed: its kind and its C. KIND 0: there was a failure. */
struct part {
    enum gen_kind kind;
    const struct hob__param *enumeration;
    char *c;
};

static const char *kind_name(enum gen_kind kind)
{
    static const char *const names[] = {"nothing", "an integer",
                                        "true or false", "an f64", "an enum"};

    return names[kind];
}

static struct part nothing(void)
{
    struct part part = {(enum gen_kind)0, NULL, NULL};

    return part;
}

/* A part with the C that FORMAT makes. */
static struct part made(struct gen_cursor *c, enum gen_kind kind,
                        const char *format, ...) HOB_PRINTF(3, 4);

static struct part made(struct gen_cursor *c, enum gen_kind kind,
                        const char *format, ...)
{
    struct hob__text text = HOB__TEXT_INIT;
    struct part part = nothing();
    va_list args;

    va_start(args, format);
    hob__text_vprintf(&text, format, args);
    va_end(args);
    part.kind = kind;
    part.c = hob__text_take(&text);
    if (!part.c) {
        c->no_memory = true;
        gen_scan_fail(c, c->at, "out of memory");
    }
    return part;
}

/* ---- names ---- */

static struct part parse_or(struct gen_cursor *c);

/* name '[' integer ']' */
static struct part indexed(struct gen_cursor *c, size_t at, const char *name)
{
    const struct hob__param *param;
    int64_t index = 0;
    int number;

    param = gen_scan_param(c, at, name, &number);
    if (param && !gen_has_sizes(param))
        gen_scan_fail(c, at, "%s has no dimensions and no items", name);
    if (!gen_scan_index(c, &index))
        gen_scan_fail(
            c, c->at,
            "an integer expected; a slice stands alone in a shape only");
    gen_scan_expect(c, "]", "after the index");
    if (c->failed)
        return nothing();
    return made(c, GEN_INT, "hob_infer_size(&in, %d, \"%s\", %" PRId64 ")",
                number, name, index);
}

/* rank(x), count(x), len(xs), has(p) */
static struct part of_param(struct gen_cursor *c, const char *function)
{
    char name[GEN_NAME_BYTES + 1];
    const struct hob__param *param = NULL;
    size_t at = (gen_scan_peek(c), c->at);
    int number = 0;

    if (gen_scan_name(c, name))
        param = gen_scan_param(c, at, name, &number);
    else
        gen_scan_fail(c, at, "the name of a parameter expected");
    gen_scan_expect(c, ")", "after the name");
    if (!param || c->failed)
        return nothing();
    if (!strcmp(function, "has")) {
        if (!(param->flags & HOB__PARAM_OPTIONAL))
            gen_scan_fail(c, at, "%s is always there", name);
        return made(c, GEN_BOOL, "hob_infer_has(&in, %d)", number);
    }
    if (!strcmp(function, "len")) {
        if (!gen_has_count(param))
            gen_scan_fail(c, at, "%s is no list", name);
        return made(c, GEN_INT, "hob_infer_rank(&in, %d, \"%s\")", number,
                    name);
    }
    if (param->type != HOB__TYPE_TENSOR)
        gen_scan_fail(c, at, "%s is no tensor", name);
    return made(c, GEN_INT, "hob_infer_%s(&in, %d, \"%s\")", function, number,
                name);
}

static bool same_kind(struct gen_cursor *c, size_t at, const struct part *a,
                      const struct part *b)
{
    if (c->failed)
        return false;
    if (a->kind == b->kind && a->enumeration == b->enumeration)
        return true;
    gen_scan_fail(c, at, "%s here and %s there do not go together",
                  kind_name(a->kind), kind_name(b->kind));
    return false;
}

static bool is_kind(struct gen_cursor *c, size_t at, const struct part *part,
                    enum gen_kind kind)
{
    if (!c->failed && kind == GEN_INT && part->kind == GEN_F64)
        gen_scan_fail(c, at,
                      "%s expected, this is %s: arithmetic is for integers; "
                      "compute others in a function of your own, \"infer\": "
                      "\"function\"",
                      kind_name(kind), kind_name(part->kind));
    else if (!c->failed && part->kind != kind)
        gen_scan_fail(c, at, "%s expected, this is %s", kind_name(kind),
                      kind_name(part->kind));
    return !c->failed;
}

/* if(condition, a, b); only the one that is chosen is computed. */
static struct part choice(struct gen_cursor *c)
{
    const struct hob__param *enumeration = c->enumeration;
    size_t at = (gen_scan_peek(c), c->at), at_b;
    struct part when, a = nothing(), b = nothing(), result = nothing();

    c->enumeration = NULL;
    when = parse_or(c);
    c->enumeration = enumeration;
    (void)is_kind(c, at, &when, GEN_BOOL);
    gen_scan_expect(c, ",", "after the condition");
    if (!c->failed)
        a = parse_or(c);
    gen_scan_expect(c, ",", "after the first value");
    at_b = (gen_scan_peek(c), c->at);
    if (!c->failed)
        b = parse_or(c);
    gen_scan_expect(c, ")", "after the second value");
    if (same_kind(c, at_b, &a, &b)) {
        result = made(c, a.kind, "(%s ? %s : %s)", when.c, a.c, b.c);
        result.enumeration = a.enumeration;
    }
    free(when.c);
    free(a.c);
    free(b.c);
    return result;
}

/* min(a, b), max(a, b), ceil_div(a, b) */
static struct part of_two(struct gen_cursor *c, const char *function)
{
    size_t at = (gen_scan_peek(c), c->at), at_b;
    struct part a = parse_or(c), b = nothing(), result = nothing();

    (void)is_kind(c, at, &a, GEN_INT);
    gen_scan_expect(c, ",", "after the first number");
    at_b = (gen_scan_peek(c), c->at);
    if (!c->failed)
        b = parse_or(c);
    if (!c->failed)
        (void)is_kind(c, at_b, &b, GEN_INT);
    gen_scan_expect(c, ")", "after the second number");
    if (!c->failed)
        result = made(c, GEN_INT, "hob_infer_%s(%s%s, %s)", function,
                      !strcmp(function, "ceil_div") ? "&in, " : "", a.c, b.c);
    free(a.c);
    free(b.c);
    return result;
}

static struct part function(struct gen_cursor *c, size_t at, const char *name)
{
    static const char *const of_params[] = {"rank", "count", "len", "has"};
    static const char *const of_twos[] = {"min", "max", "ceil_div"};

    for (size_t i = 0; i < GEN_COUNT_OF(of_params); i++)
        if (!strcmp(of_params[i], name))
            return of_param(c, name);
    for (size_t i = 0; i < GEN_COUNT_OF(of_twos); i++)
        if (!strcmp(of_twos[i], name))
            return of_two(c, name);
    if (!strcmp(name, "if"))
        return choice(c);
    gen_scan_fail(
        c, at,
        "there is no function %s: there are rank count len has if min max "
        "ceil_div, and broadcast as a whole shape",
        name);
    return nothing();
}

static void fail_enumerator(struct gen_cursor *c, size_t at, const char *name)
{
    struct hob__text known = HOB__TEXT_INIT;

    for (uint32_t i = 0; i < c->enumeration->enumerator_count; i++)
        hob__text_printf(&known, "%s%s", i ? " " : "",
                         c->enumeration->enumerators[i]);
    gen_scan_fail(c, at, "there is no enumerator %s: there are %s", name,
                  known.data ? known.data : "none");
    hob__text_release(&known);
}

/* An attribute by its name, a "let" or an enumerator. */
static struct part plain_name(struct gen_cursor *c, size_t at, const char *name)
{
    const struct hob__param *param;
    struct part part;
    int number;

    for (uint32_t i = 0; i < c->names->let_count; i++) {
        if (!strcmp(c->names->lets[i].name, name))
            return made(c, c->names->lets[i].kind, "let_%s", name);
    }
    for (uint32_t i = 0; c->enumeration && i < c->enumeration->enumerator_count;
         i++) {
        if (strcmp(c->enumeration->enumerators[i], name) != 0)
            continue;
        part = made(c, GEN_ENUM, "INT64_C(%" PRIu32 ")", i);
        part.enumeration = c->enumeration;
        return part;
    }
    if (c->enumeration && gen_find_param(c->names->op, name) < 0) {
        fail_enumerator(c, at, name);
        return nothing();
    }
    param = gen_scan_param(c, at, name, &number);
    if (!param)
        return nothing();
    switch (param->type) {
    case HOB__TYPE_I64:
        return made(c, GEN_INT, "hob_infer_i64(&in, %d, \"%s\")", number, name);
    case HOB__TYPE_BOOL:
        return made(c, GEN_BOOL, "(hob_infer_i64(&in, %d, \"%s\") != 0)",
                    number, name);
    case HOB__TYPE_F64:
        return made(c, GEN_F64, "hob_infer_f64(&in, %d, \"%s\")", number, name);
    case HOB__TYPE_ENUM:
        part =
            made(c, GEN_ENUM, "hob_infer_i64(&in, %d, \"%s\")", number, name);
        part.enumeration = param;
        return part;
    default:
        gen_scan_fail(
            c, at,
            gen_has_sizes(param)
                ? "%s is no number: %s[0] is its first size, rank(%s), "
                  "count(%s) and len(%s) are others"
                : "%s is no number that shapes can depend on",
            name, name, name, name, name);
        return nothing();
    }
}

/* Whether TEXT, LENGTH long, is a number as defaults have them. */
static bool is_f64(const char *text, size_t length)
{
    struct hob__signature signature;
    struct hob__text whole = HOB__TEXT_INIT;
    const char *message;
    char *copy;
    int column;
    bool ok;

    hob__text_printf(&whole, "(x: f64 = %.*s) -> f32", (int)length, text);
    copy = hob__text_take(&whole);
    ok = copy && !hob__signature_parse(copy, &signature, &column, &message);
    free(copy);
    if (ok)
        hob__signature_release(&signature);
    return ok;
}

static struct part number(struct gen_cursor *c)
{
    size_t from = c->at, length;
    const char *text = c->text;
    int64_t integer = 0;

    if (!gen_scan_integer(c, &integer))
        return nothing();
    if (!strchr(".eE", text[c->at]) || !text[c->at])
        return made(c, GEN_INT, "INT64_C(%" PRId64 ")", integer);
    if (text[c->at] == '.')
        c->at++;
    while (gen_scan_is_digit(text[c->at]))
        c->at++;
    if (text[c->at] == 'e' || text[c->at] == 'E') {
        c->at++;
        c->at += text[c->at] == '-' || text[c->at] == '+';
        while (gen_scan_is_digit(text[c->at]))
            c->at++;
    }
    length = c->at - from;
    if (!is_f64(text + from, length)) {
        gen_scan_fail(c, from, "this is no number, or it is out of range");
        return nothing();
    }
    return made(c, GEN_F64, "%.*s", (int)length, text + from);
}

static struct part primary(struct gen_cursor *c)
{
    char name[GEN_NAME_BYTES + 1];
    size_t at = (gen_scan_peek(c), c->at);
    struct part part;

    if (gen_scan_accept(c, "(")) {
        part = parse_or(c);
        gen_scan_expect(c, ")", "to close the bracket");
        return part;
    }
    if (gen_scan_is_digit(gen_scan_peek(c)))
        return number(c);
    if (gen_scan_word(c, "true"))
        return made(c, GEN_BOOL, "1");
    if (gen_scan_word(c, "false"))
        return made(c, GEN_BOOL, "0");
    if (!gen_scan_name(c, name)) {
        gen_scan_fail(c, at,
                      c->text[at] ? "a number or a name expected"
                                  : "the expression ends too early");
        return nothing();
    }
    if (gen_scan_accept(c, "["))
        return indexed(c, at, name);
    if (gen_scan_accept(c, "("))
        return function(c, at, name);
    return plain_name(c, at, name);
}

static struct part factor(struct gen_cursor *c)
{
    size_t at = (gen_scan_peek(c), c->at);
    struct part part, result = nothing();

    if (c->depth++ >= MAX_DEPTH) {
        gen_scan_fail(c, at, "brackets nest more than %d deep", MAX_DEPTH);
        return nothing();
    }
    if (!gen_scan_accept(c, "-")) {
        part = primary(c);
        c->depth--;
        return part;
    }
    part = factor(c);
    c->depth--;
    if (part.kind == GEN_F64)
        result = made(c, GEN_F64, "(-%s)", part.c);
    else if (is_kind(c, at, &part, GEN_INT))
        result = made(c, GEN_INT, "hob_infer_sub(&in, 0, %s)", part.c);
    free(part.c);
    return result;
}

/* LEFT and what stands behind the operator, as one checked call. */
static struct part arithmetic(struct gen_cursor *c, size_t at, struct part left,
                              const char *name,
                              struct part (*next)(struct gen_cursor *))
{
    size_t at_right = (gen_scan_peek(c), c->at);
    struct part right = nothing(), result = nothing();

    if (is_kind(c, at, &left, GEN_INT))
        right = next(c);
    if (is_kind(c, at_right, &right, GEN_INT))
        result = made(c, GEN_INT, "hob_infer_%s(&in, %s, %s)", name, left.c,
                      right.c);
    free(left.c);
    free(right.c);
    return result;
}

static struct part term(struct gen_cursor *c)
{
    size_t at = (gen_scan_peek(c), c->at);
    struct part part = factor(c);

    while (!c->failed) {
        if (gen_scan_accept(c, "*"))
            part = arithmetic(c, at, part, "mul", factor);
        else if (gen_scan_accept(c, "/"))
            part = arithmetic(c, at, part, "div", factor);
        else if (gen_scan_accept(c, "%"))
            part = arithmetic(c, at, part, "mod", factor);
        else
            break;
    }
    return part;
}

static struct part sum(struct gen_cursor *c)
{
    size_t at = (gen_scan_peek(c), c->at);
    struct part part = term(c);

    while (!c->failed) {
        if (gen_scan_accept(c, "+"))
            part = arithmetic(c, at, part, "add", term);
        else if (gen_scan_accept(c, "-"))
            part = arithmetic(c, at, part, "sub", term);
        else
            break;
    }
    return part;
}

static struct part comparison(struct gen_cursor *c)
{
    /* Longer ones first. */
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};
    struct part left = sum(c), right = nothing(), result = nothing();
    const struct hob__param *enumeration = c->enumeration;
    const char *sign = NULL;
    size_t at, at_right;

    at = (gen_scan_peek(c), c->at);
    for (size_t i = 0; i < GEN_COUNT_OF(signs) && !sign; i++)
        sign = !c->failed && gen_scan_accept(c, signs[i]) ? signs[i] : NULL;
    if (!sign && !c->failed && gen_scan_accept(c, "="))
        gen_scan_fail(c, at, "\"==\" compares");
    if (!sign)
        return left;
    at_right = (gen_scan_peek(c), c->at);
    c->enumeration = left.enumeration;
    right = sum(c);
    c->enumeration = enumeration;
    if (same_kind(c, at_right, &left, &right)) {
        if (sign[0] != '=' && sign[0] != '!' && left.kind != GEN_INT &&
            left.kind != GEN_F64)
            gen_scan_fail(c, at, "only numbers are smaller or greater");
        result = made(c, GEN_BOOL, "(%s %s %s)", left.c, sign, right.c);
    }
    free(left.c);
    free(right.c);
    return result;
}

static struct part negation(struct gen_cursor *c)
{
    size_t at = (gen_scan_peek(c), c->at);
    struct part part, result = nothing();

    if (!gen_scan_word(c, "not"))
        return comparison(c);
    if (c->depth++ >= MAX_DEPTH) {
        gen_scan_fail(c, at, "brackets nest more than %d deep", MAX_DEPTH);
        return nothing();
    }
    at = (gen_scan_peek(c), c->at);
    part = negation(c);
    c->depth--;
    if (is_kind(c, at, &part, GEN_BOOL))
        result = made(c, GEN_BOOL, "(!%s)", part.c);
    free(part.c);
    return result;
}

/* LEFT WORD right WORD right .., joined with SIGN of C. */
static struct part logic(struct gen_cursor *c, const char *word,
                         const char *sign,
                         struct part (*next)(struct gen_cursor *))
{
    size_t at = (gen_scan_peek(c), c->at);
    struct part part = next(c);

    while (!c->failed && gen_scan_word(c, word)) {
        size_t at_right = (gen_scan_peek(c), c->at);
        struct part right = nothing(), both = nothing();

        if (is_kind(c, at, &part, GEN_BOOL))
            right = next(c);
        if (is_kind(c, at_right, &right, GEN_BOOL))
            both = made(c, GEN_BOOL, "(%s %s %s)", part.c, sign, right.c);
        free(part.c);
        free(right.c);
        part = both;
    }
    return part;
}

static struct part parse_and(struct gen_cursor *c)
{
    return logic(c, "and", "&&", negation);
}

static struct part parse_or(struct gen_cursor *c)
{
    return logic(c, "or", "||", parse_and);
}

hob_status gen_expression(const struct gen_names *names,
                          const struct hob__json_value *value,
                          enum gen_kind wanted,
                          const struct hob__param *enumeration,
                          enum gen_kind *out_kind, char **out_c,
                          hob_error *error)
{
    struct gen_cursor c;
    struct part part;
    hob_status st = gen_scan_start(&c, names, value, error);

    if (st)
        return st;
    c.enumeration = enumeration;
    part = parse_or(&c);
    if (!c.failed && wanted == GEN_F64 && part.kind == GEN_INT)
        part.kind = GEN_F64; /* C converts it */
    if (!c.failed && !wanted && part.kind == GEN_ENUM)
        gen_scan_fail(&c, 0, "an enum cannot be kept: compare it");
    if (!c.failed && wanted)
        (void)is_kind(&c, 0, &part, wanted);
    if (!c.failed && part.kind == GEN_ENUM && part.enumeration != enumeration)
        gen_scan_fail(&c, 0, "this is another enum's");
    st = gen_scan_finish(&c, value, error);
    if (st) {
        free(part.c);
        return st;
    }
    *out_kind = part.kind;
    *out_c = part.c;
    return HOB_OK;
}
