/* SPDX-License-Identifier: Apache-2.0 */
#include "expression.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Brackets and prefixes nest at most this deep: the parser recurses. */
enum { MAX_DEPTH = 64, NAME_MAX_BYTES = 255 };

/* Where the parser stands; the first failure stays. */
struct cursor {
    const struct gen_names *names;
    const char *text;
    size_t at;
    int depth;
    const struct hob__param *enumeration; /* whose enumerators may stand here */
    bool failed;
    bool no_memory;
    size_t error_at;
    char message[320];
};

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

static void fail(struct cursor *c, size_t at, const char *format, ...)
    HOB_PRINTF(3, 4);

static void fail(struct cursor *c, size_t at, const char *format, ...)
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

static struct part nothing(void)
{
    struct part part = {(enum gen_kind)0, NULL, NULL};

    return part;
}

/* A part with the C that FORMAT makes. */
static struct part made(struct cursor *c, enum gen_kind kind,
                        const char *format, ...) HOB_PRINTF(3, 4);

static struct part made(struct cursor *c, enum gen_kind kind,
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
        fail(c, c->at, "out of memory");
    }
    return part;
}

/* ---- words ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static char peek(struct cursor *c)
{
    while (c->text[c->at] == ' ')
        c->at++;
    return c->text[c->at];
}

static bool accept(struct cursor *c, const char *punctuation)
{
    size_t length = strlen(punctuation);

    (void)peek(c);
    if (strncmp(c->text + c->at, punctuation, length) != 0)
        return false;
    c->at += length;
    return true;
}

/* Take the word WORD, not a longer one that begins so. */
static bool accept_word(struct cursor *c, const char *word)
{
    size_t at = c->at;
    char next;

    if (!accept(c, word))
        return false;
    next = c->text[c->at];
    if (!is_letter(next) && !is_digit(next) && next != '.')
        return true;
    c->at = at;
    return false;
}

static void expect(struct cursor *c, const char *punctuation, const char *where)
{
    if (!accept(c, punctuation))
        fail(c, c->at, "'%s' expected %s", punctuation, where);
}

/* A flat name such as "operand.Sparse.values". */
static bool take_name(struct cursor *c, char name[NAME_MAX_BYTES + 1])
{
    size_t length = 0;
    const char *from;

    (void)peek(c);
    from = c->text + c->at;
    if (!is_letter(*from))
        return false;
    while (is_letter(from[length]) || is_digit(from[length]) ||
           (from[length] == '.' && is_letter(from[length + 1])))
        length++;
    if (length > NAME_MAX_BYTES) {
        fail(c, c->at, "a name of more than %d characters", NAME_MAX_BYTES);
        return false;
    }
    memcpy(name, from, length);
    name[length] = '\0';
    c->at += length;
    return true;
}

/* A non-negative integer. */
static bool take_integer(struct cursor *c, int64_t *out)
{
    size_t from = (peek(c), c->at);
    uint64_t number = 0;

    if (!is_digit(c->text[from]))
        return false;
    for (; is_digit(c->text[c->at]); c->at++) {
        uint64_t digit = (uint64_t)(c->text[c->at] - '0');

        if (number > (INT64_MAX - digit) / 10) {
            fail(c, from, "this integer is out of range");
            return false;
        }
        number = number * 10 + digit;
    }
    *out = (int64_t)number;
    return true;
}

/* An index or the end of a slice: an integer that may be negative. */
static bool take_index(struct cursor *c, int64_t *out)
{
    bool negative = accept(c, "-");

    if (!take_integer(c, out)) {
        if (negative)
            fail(c, c->at, "an integer expected");
        return false;
    }
    *out = negative ? -*out : *out;
    return true;
}

/* ---- names ---- */

int gen_find_param(const struct gen_op *op, const char *name)
{
    for (int i = 0; i < op->signature.param_count; i++) {
        if (!strcmp(op->signature.params[i].name, name))
            return i;
    }
    return -1;
}

static bool has_sizes(const struct hob__param *param)
{
    return param->type == HOB__TYPE_TENSOR || param->type == HOB__TYPE_SHAPE ||
           param->type == HOB__TYPE_I64S;
}

/* The parameter NAME at AT, or NULL with a failure. */
static const struct hob__param *find(struct cursor *c, size_t at,
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
    fail(c, at, "there is no parameter and no \"let\" called %s%s%s%s", name,
         meant ? "; " : "", meant ? meant : "", meant ? " is meant?" : "");
    return NULL;
}

static struct part parse_or(struct cursor *c);

/* name '[' integer ']' */
static struct part indexed(struct cursor *c, size_t at, const char *name)
{
    const struct hob__param *param;
    int64_t index = 0;
    int number;

    param = find(c, at, name, &number);
    if (param && !has_sizes(param))
        fail(c, at, "%s has no dimensions and no items", name);
    if (!take_index(c, &index))
        fail(c, c->at,
             "an integer expected; a slice stands alone in a shape only");
    expect(c, "]", "after the index");
    if (c->failed)
        return nothing();
    return made(c, GEN_INT, "hob_infer_size(&in, %d, \"%s\", %" PRId64 ")",
                number, name, index);
}

/* rank(x), count(x), len(xs), has(p) */
static struct part of_param(struct cursor *c, const char *function)
{
    char name[NAME_MAX_BYTES + 1];
    const struct hob__param *param = NULL;
    size_t at = (peek(c), c->at);
    int number = 0;

    if (take_name(c, name))
        param = find(c, at, name, &number);
    else
        fail(c, at, "the name of a parameter expected");
    expect(c, ")", "after the name");
    if (!param || c->failed)
        return nothing();
    if (!strcmp(function, "has")) {
        if (!(param->flags & HOB__PARAM_OPTIONAL))
            fail(c, at, "%s is always there", name);
        return made(c, GEN_BOOL, "hob_infer_has(&in, %d)", number);
    }
    if (!strcmp(function, "len")) {
        if (!gen_has_count(param))
            fail(c, at, "%s is no list", name);
        return made(c, GEN_INT, "hob_infer_rank(&in, %d, \"%s\")", number,
                    name);
    }
    if (param->type != HOB__TYPE_TENSOR)
        fail(c, at, "%s is no tensor", name);
    return made(c, GEN_INT, "hob_infer_%s(&in, %d, \"%s\")", function, number,
                name);
}

static bool same_kind(struct cursor *c, size_t at, const struct part *a,
                      const struct part *b)
{
    if (c->failed)
        return false;
    if (a->kind == b->kind && a->enumeration == b->enumeration)
        return true;
    fail(c, at, "%s here and %s there do not go together", kind_name(a->kind),
         kind_name(b->kind));
    return false;
}

static bool is_kind(struct cursor *c, size_t at, const struct part *part,
                    enum gen_kind kind)
{
    if (!c->failed && part->kind != kind)
        fail(c, at, "%s expected, this is %s", kind_name(kind),
             kind_name(part->kind));
    return !c->failed;
}

/* if(condition, a, b); only the one that is chosen is computed. */
static struct part choice(struct cursor *c)
{
    const struct hob__param *enumeration = c->enumeration;
    size_t at = (peek(c), c->at), at_b;
    struct part when, a = nothing(), b = nothing(), result = nothing();

    c->enumeration = NULL;
    when = parse_or(c);
    c->enumeration = enumeration;
    (void)is_kind(c, at, &when, GEN_BOOL);
    expect(c, ",", "after the condition");
    if (!c->failed)
        a = parse_or(c);
    expect(c, ",", "after the first value");
    at_b = (peek(c), c->at);
    if (!c->failed)
        b = parse_or(c);
    expect(c, ")", "after the second value");
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
static struct part of_two(struct cursor *c, const char *function)
{
    size_t at = (peek(c), c->at), at_b;
    struct part a = parse_or(c), b = nothing(), result = nothing();

    (void)is_kind(c, at, &a, GEN_INT);
    expect(c, ",", "after the first number");
    at_b = (peek(c), c->at);
    if (!c->failed)
        b = parse_or(c);
    if (!c->failed)
        (void)is_kind(c, at_b, &b, GEN_INT);
    expect(c, ")", "after the second number");
    if (!c->failed)
        result = made(c, GEN_INT, "hob_infer_%s(%s%s, %s)", function,
                      !strcmp(function, "ceil_div") ? "&in, " : "", a.c, b.c);
    free(a.c);
    free(b.c);
    return result;
}

static struct part function(struct cursor *c, size_t at, const char *name)
{
    static const char *const of_params[] = {"rank", "count", "len", "has"};
    static const char *const of_twos[] = {"min", "max", "ceil_div"};

    for (size_t i = 0; i < sizeof(of_params) / sizeof(of_params[0]); i++)
        if (!strcmp(of_params[i], name))
            return of_param(c, name);
    for (size_t i = 0; i < sizeof(of_twos) / sizeof(of_twos[0]); i++)
        if (!strcmp(of_twos[i], name))
            return of_two(c, name);
    if (!strcmp(name, "if"))
        return choice(c);
    fail(c, at,
         "there is no function %s: there are rank count len has if min max "
         "ceil_div, and broadcast as a whole shape",
         name);
    return nothing();
}

/* An attribute by its name, a "let" or an enumerator. */
static struct part plain_name(struct cursor *c, size_t at, const char *name)
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
    param = find(c, at, name, &number);
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
        fail(c, at,
             has_sizes(param)
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

static struct part number(struct cursor *c)
{
    size_t from = c->at, length;
    const char *text = c->text;
    int64_t integer = 0;

    if (!take_integer(c, &integer))
        return nothing();
    if (!strchr(".eE", text[c->at]) || !text[c->at])
        return made(c, GEN_INT, "INT64_C(%" PRId64 ")", integer);
    if (text[c->at] == '.')
        c->at++;
    while (is_digit(text[c->at]))
        c->at++;
    if (text[c->at] == 'e' || text[c->at] == 'E') {
        c->at++;
        c->at += text[c->at] == '-' || text[c->at] == '+';
        while (is_digit(text[c->at]))
            c->at++;
    }
    length = c->at - from;
    if (!is_f64(text + from, length)) {
        fail(c, from, "this is no number, or it is out of range");
        return nothing();
    }
    return made(c, GEN_F64, "%.*s", (int)length, text + from);
}

static struct part primary(struct cursor *c)
{
    char name[NAME_MAX_BYTES + 1];
    size_t at = (peek(c), c->at);
    struct part part;

    if (accept(c, "(")) {
        part = parse_or(c);
        expect(c, ")", "to close the bracket");
        return part;
    }
    if (is_digit(peek(c)))
        return number(c);
    if (accept_word(c, "true"))
        return made(c, GEN_BOOL, "1");
    if (accept_word(c, "false"))
        return made(c, GEN_BOOL, "0");
    if (!take_name(c, name)) {
        fail(c, at,
             c->text[at] ? "a number or a name expected"
                         : "the expression ends too early");
        return nothing();
    }
    if (accept(c, "["))
        return indexed(c, at, name);
    if (accept(c, "("))
        return function(c, at, name);
    return plain_name(c, at, name);
}

static struct part factor(struct cursor *c)
{
    size_t at = (peek(c), c->at);
    struct part part, result = nothing();

    if (c->depth++ >= MAX_DEPTH) {
        fail(c, at, "brackets nest more than %d deep", MAX_DEPTH);
        return nothing();
    }
    if (!accept(c, "-")) {
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
static struct part arithmetic(struct cursor *c, size_t at, struct part left,
                              const char *name,
                              struct part (*next)(struct cursor *))
{
    size_t at_right = (peek(c), c->at);
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

static struct part term(struct cursor *c)
{
    size_t at = (peek(c), c->at);
    struct part part = factor(c);

    while (!c->failed) {
        if (accept(c, "*"))
            part = arithmetic(c, at, part, "mul", factor);
        else if (accept(c, "/"))
            part = arithmetic(c, at, part, "div", factor);
        else if (accept(c, "%"))
            part = arithmetic(c, at, part, "mod", factor);
        else
            break;
    }
    return part;
}

static struct part sum(struct cursor *c)
{
    size_t at = (peek(c), c->at);
    struct part part = term(c);

    while (!c->failed) {
        if (accept(c, "+"))
            part = arithmetic(c, at, part, "add", term);
        else if (accept(c, "-"))
            part = arithmetic(c, at, part, "sub", term);
        else
            break;
    }
    return part;
}

static struct part comparison(struct cursor *c)
{
    /* Longer ones first. */
    static const char *const signs[] = {"==", "!=", "<=", ">=", "<", ">"};
    struct part left = sum(c), right = nothing(), result = nothing();
    const struct hob__param *enumeration = c->enumeration;
    const char *sign = NULL;
    size_t at, at_right;

    at = (peek(c), c->at);
    for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]) && !sign; i++)
        sign = !c->failed && accept(c, signs[i]) ? signs[i] : NULL;
    if (!sign)
        return left;
    at_right = (peek(c), c->at);
    c->enumeration = left.enumeration;
    right = sum(c);
    c->enumeration = enumeration;
    if (same_kind(c, at_right, &left, &right)) {
        if (sign[0] != '=' && sign[0] != '!' && left.kind != GEN_INT &&
            left.kind != GEN_F64)
            fail(c, at, "only numbers are smaller or greater");
        result = made(c, GEN_BOOL, "(%s %s %s)", left.c, sign, right.c);
    }
    free(left.c);
    free(right.c);
    return result;
}

static struct part negation(struct cursor *c)
{
    size_t at = (peek(c), c->at);
    struct part part, result = nothing();

    if (!accept_word(c, "not"))
        return comparison(c);
    if (c->depth++ >= MAX_DEPTH) {
        fail(c, at, "brackets nest more than %d deep", MAX_DEPTH);
        return nothing();
    }
    at = (peek(c), c->at);
    part = negation(c);
    c->depth--;
    if (is_kind(c, at, &part, GEN_BOOL))
        result = made(c, GEN_BOOL, "(!%s)", part.c);
    free(part.c);
    return result;
}

/* LEFT WORD right WORD right .., joined with SIGN of C. */
static struct part logic(struct cursor *c, const char *word, const char *sign,
                         struct part (*next)(struct cursor *))
{
    size_t at = (peek(c), c->at);
    struct part part = next(c);

    while (!c->failed && accept_word(c, word)) {
        size_t at_right = (peek(c), c->at);
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

static struct part parse_and(struct cursor *c)
{
    return logic(c, "and", "&&", negation);
}

static struct part parse_or(struct cursor *c)
{
    return logic(c, "or", "||", parse_and);
}

/* ---- the module's functions ---- */

static hob_status start(struct cursor *c, const struct gen_names *names,
                        const struct hob__json_value *value, hob_error *error)
{
    memset(c, 0, sizeof(*c));
    c->names = names;
    return hob__json_string(names->op->source->doc, value, &c->text, error);
}

/* Nothing may follow; then say what failed, if anything did. */
static hob_status finish(struct cursor *c, const struct hob__json_value *value,
                         hob_error *error)
{
    if (!c->failed && peek(c))
        fail(c, c->at, "nothing expected here: an operator is missing?");
    if (c->no_memory)
        return gen_no_memory(error);
    return c->failed ? gen_fail_inside(c->names->op->source, value,
                                       (int)c->error_at + 1, error, c->message)
                     : HOB_OK;
}

hob_status gen_expression(const struct gen_names *names,
                          const struct hob__json_value *value,
                          enum gen_kind wanted,
                          const struct hob__param *enumeration,
                          enum gen_kind *out_kind, char **out_c,
                          hob_error *error)
{
    struct cursor c;
    struct part part;
    hob_status st = start(&c, names, value, error);

    if (st)
        return st;
    c.enumeration = enumeration;
    part = parse_or(&c);
    if (!c.failed && wanted == GEN_F64 && part.kind == GEN_INT)
        part.kind = GEN_F64; /* C converts it */
    if (!c.failed && !wanted && part.kind == GEN_ENUM)
        fail(&c, 0, "an enum cannot be kept: compare it");
    if (!c.failed && wanted)
        (void)is_kind(&c, 0, &part, wanted);
    if (!c.failed && part.kind == GEN_ENUM && part.enumeration != enumeration)
        fail(&c, 0, "this is another enum's");
    st = finish(&c, value, error);
    if (st) {
        free(part.c);
        return st;
    }
    *out_kind = part.kind;
    *out_c = part.c;
    return HOB_OK;
}

/* "x[1:]", "x[:-1]", "x[:]": whether it is one; then it is taken. */
static bool slice(struct cursor *c, uint32_t result, struct hob__text *out)
{
    char name[NAME_MAX_BYTES + 1];
    const struct hob__param *param;
    int64_t first = 0, last = INT64_MAX;
    size_t at = (peek(c), c->at);
    int index;

    if (!strchr(c->text, ':'))
        return false;
    if (!take_name(c, name)) {
        fail(c, at, "the name of a parameter expected before a slice");
        return true;
    }
    param = find(c, at, name, &index);
    if (param && !has_sizes(param))
        fail(c, at, "%s has no dimensions and no items", name);
    expect(c, "[", "before a slice");
    (void)take_index(c, &first);
    expect(c, ":", "in a slice, which is a shape's item alone");
    (void)take_index(c, &last);
    expect(c, "]", "after a slice");
    hob__text_printf(out,
                     "    hob_infer_splice(&in, &out[%" PRIu32
                     "], %d, \"%s\", %" PRId64 ", ",
                     result, index, name, first);
    if (last == INT64_MAX)
        hob__text_puts(out, "INT64_MAX);\n");
    else
        hob__text_printf(out, "%" PRId64 ");\n", last);
    return true;
}

hob_status gen_shape_item(const struct gen_names *names,
                          const struct hob__json_value *value, uint32_t result,
                          struct hob__text *out, hob_error *error)
{
    const struct hob__json_doc *doc = names->op->source->doc;
    enum gen_kind kind;
    struct cursor c;
    char *text = NULL;
    int64_t size = 0;
    hob_status st;

    if (value->type == HOB__JSON_NUMBER) {
        st = hob__json_int(doc, value, 0, INT64_MAX, &size, error);
        hob__text_printf(out,
                         "    hob_infer_push(&in, &out[%" PRIu32 "], \"%" PRId64
                         "\", INT64_C(%" PRId64 "));\n",
                         result, size, size);
        return st;
    }
    st = start(&c, names, value, error);
    if (st)
        return st;
    if (slice(&c, result, out))
        return finish(&c, value, error);
    st = gen_expression(names, value, GEN_INT, NULL, &kind, &text, error);
    if (st)
        return st;
    hob__text_printf(out, "    hob_infer_push(&in, &out[%" PRIu32 "], ",
                     result);
    gen_c_string(out, c.text);
    hob__text_printf(out, ",\n                   %s);\n", text);
    free(text);
    return HOB_OK;
}

/* The tensors in broadcast(..), one after the other. */
static void broadcast(struct cursor *c, uint32_t result, struct hob__text *out)
{
    char name[NAME_MAX_BYTES + 1];
    int index;

    do {
        size_t at = (peek(c), c->at);
        const struct hob__param *param = NULL;

        if (take_name(c, name))
            param = find(c, at, name, &index);
        else
            fail(c, at, "the name of a tensor parameter expected");
        if (param && param->type != HOB__TYPE_TENSOR)
            fail(c, at, "%s is no tensor", name);
        if (!c->failed)
            hob__text_printf(out,
                             "    hob_infer_broadcast(&in, &out[%" PRIu32
                             "], %d, \"%s\");\n",
                             result, index, name);
    } while (!c->failed && accept(c, ","));
    expect(c, ")", "after the tensors");
}

hob_status gen_shape_string(const struct gen_names *names,
                            const struct hob__json_value *value,
                            uint32_t result, struct hob__text *out,
                            hob_error *error)
{
    char name[NAME_MAX_BYTES + 1];
    const struct hob__param *param;
    struct cursor c;
    size_t at;
    int index;
    hob_status st = start(&c, names, value, error);

    if (st)
        return st;
    at = (peek(&c), c.at);
    if (!take_name(&c, name)) {
        fail(&c, at,
             "a parameter, broadcast(a, b) or an array of sizes expected");
    } else if (!strcmp(name, "broadcast") && accept(&c, "(")) {
        broadcast(&c, result, out);
    } else {
        param = find(&c, at, name, &index);
        if (param && !has_sizes(param))
            fail(&c, at, "%s has no shape: write an array of sizes", name);
        if (!c.failed && peek(&c))
            fail(&c, c.at, "a shape of one dimension is an array of one");
        hob__text_printf(out,
                         "    hob_infer_splice(&in, &out[%" PRIu32
                         "], %d, \"%s\", 0, INT64_MAX);\n",
                         result, index, name);
    }
    return finish(&c, value, error);
}
