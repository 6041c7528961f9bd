/* SPDX-License-Identifier: Apache-2.0 */
#include "signature.h"

#include "hob_check.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parse what must parse. */
static void parse(const char *text, struct hob__signature *out)
{
    const char *message;
    int column;
    hob_status st = hob__signature_parse(text, out, &column, &message);

    ck_assert_msg(!st, "%s: column %d: %s", text, column,
                  message ? message : "-");
    ck_assert_ptr_null(message);
}

START_TEST(test_signature_reads_tensors)
{
    struct hob__signature s;

    parse("(x: Float, y: [Any], z: Int?) -> x", &s);
    ck_assert_uint_eq(s.param_count, 3);
    ck_assert_uint_eq(s.tensor_count, 3);
    ck_assert_uint_eq(s.required_count, 2);
    ck_assert_uint_eq(s.result_count, 1);
    ck_assert_str_eq(s.params[0].name, "x");
    ck_assert_uint_eq(s.params[0].type, HOB__TYPE_TENSOR);
    ck_assert_uint_eq(s.params[0].mask, HOB_MASK_FLOAT);
    ck_assert_str_eq(s.params[0].kind, "Float");
    ck_assert_uint_eq(s.params[1].type, HOB__TYPE_TENSORS);
    ck_assert_uint_eq(s.params[1].mask, HOB_MASK_ANY);
    ck_assert_uint_eq(s.params[2].flags, HOB__PARAM_OPTIONAL);
    ck_assert_uint_eq(s.results[0].source, HOB__RESULT_PARAM);
    ck_assert_uint_eq(s.results[0].param, 0);
    ck_assert_str_eq(s.results[0].text, "x");
    hob__signature_release(&s);
    ck_assert_uint_eq(s.param_count, 0);
}
END_TEST

static const struct type_case {
    const char *type;
    int expected;
} types[] = {
    {"Float", HOB__TYPE_TENSOR},  {"Int", HOB__TYPE_TENSOR},
    {"Bool", HOB__TYPE_TENSOR},   {"Quantized", HOB__TYPE_TENSOR},
    {"Num", HOB__TYPE_TENSOR},    {"Any", HOB__TYPE_TENSOR},
    {"[Num]", HOB__TYPE_TENSORS}, {"scalar", HOB__TYPE_SCALAR},
    {"f64", HOB__TYPE_F64},       {"i64", HOB__TYPE_I64},
    {"bool", HOB__TYPE_BOOL},     {"str", HOB__TYPE_STR},
    {"dtype", HOB__TYPE_DTYPE},   {"shape", HOB__TYPE_SHAPE},
    {"device", HOB__TYPE_DEVICE}, {"[i64]", HOB__TYPE_I64S},
    {"[ f64 ]", HOB__TYPE_F64S},  {"enum(a, b)", HOB__TYPE_ENUM},
};

START_TEST(test_signature_knows_every_type)
{
    struct hob__signature s;
    char text[64];

    (void)snprintf(text, sizeof(text), "(p: %s) -> f32", types[_i].type);
    parse(text, &s);
    ck_assert_uint_eq(s.params[0].type, types[_i].expected);
    ck_assert_uint_eq(s.required_count, 1);
    hob__signature_release(&s);
    (void)snprintf(text, sizeof(text), "(p: %s?) -> f32", types[_i].type);
    parse(text, &s);
    ck_assert_uint_eq(s.params[0].flags, HOB__PARAM_OPTIONAL);
    ck_assert_uint_eq(s.required_count, 0);
    hob__signature_release(&s);
}
END_TEST

START_TEST(test_signature_reads_defaults)
{
    struct hob__signature s;
    const struct hob__param *p;

    parse("(a: i64 = -3, b: f64 = 1e-8, c: bool = true, d: dtype = bf16, "
          "e: [i64] = [1, -2], f: [f64] = [], g: str = \"a \\\"b\\\"\\n\", "
          "h: enum(x, y) = y, i: scalar = 0.5, j: scalar = 7, "
          "k: scalar = 18446744073709551615, l: scalar = false, "
          "m: shape = [2, 3], n: f64 = -inf, o: scalar = nan) -> f32",
          &s);
    p = s.params;
    ck_assert_uint_eq(s.required_count, 0);
    ck_assert_int_eq(p[0].value.u.i64, -3);
    ck_assert_double_eq(p[1].value.u.f64, 1e-8);
    ck_assert_str_eq(p[1].default_text, "1e-8");
    ck_assert_uint_eq(p[2].value.tag, HOB_TAG_BOOL);
    ck_assert_int_eq(p[2].value.u.i64, 1);
    ck_assert_uint_eq(p[3].value.tag, HOB_TAG_DTYPE);
    ck_assert_int_eq(p[3].value.u.i64, HOB_DTYPE_BF16);
    ck_assert_uint_eq(p[4].value.count, 2);
    ck_assert_int_eq(p[4].value.u.i64s[1], -2);
    ck_assert_uint_eq(p[5].value.tag, HOB_TAG_F64S);
    ck_assert_uint_eq(p[5].value.count, 0);
    ck_assert_str_eq(p[6].value.u.str, "a \"b\"\n");
    ck_assert_uint_eq(p[6].value.count, 6);
    ck_assert_uint_eq(p[7].value.tag, HOB_TAG_ENUM);
    ck_assert_int_eq(p[7].value.u.i64, 1);
    ck_assert_uint_eq(p[8].value.tag, HOB_TAG_F64);
    ck_assert_double_eq(p[8].value.u.f64, 0.5);
    ck_assert_uint_eq(p[9].value.tag, HOB_TAG_I64);
    ck_assert_uint_eq(p[10].value.tag, HOB_TAG_U64);
    ck_assert_uint_eq(p[10].value.u.u64, UINT64_MAX);
    ck_assert_uint_eq(p[11].value.tag, HOB_TAG_BOOL);
    ck_assert_uint_eq(p[12].value.tag, HOB_TAG_I64S);
    ck_assert_int_eq(p[12].value.u.i64s[1], 3);
    ck_assert(isinf(p[13].value.u.f64) && p[13].value.u.f64 < 0);
    ck_assert(isnan(p[14].value.u.f64));
    hob__signature_release(&s);
}
END_TEST

START_TEST(test_signature_counts_up_to_the_last_required)
{
    struct hob__signature s;

    parse("(start: i64, step: i64 = 1, device: device, dtype: dtype = i32, "
          "_seed: i64?) -> dtype",
          &s);
    ck_assert_uint_eq(s.required_count, 3);
    ck_assert_uint_eq(s.tensor_count, 0);
    ck_assert_uint_eq(s.params[4].flags,
                      HOB__PARAM_HIDDEN | HOB__PARAM_OPTIONAL);
    ck_assert_uint_eq(s.results[0].source, HOB__RESULT_ATTRIBUTE);
    ck_assert_uint_eq(s.results[0].param, 3);
    hob__signature_release(&s);
}
END_TEST

START_TEST(test_signature_reads_results)
{
    struct hob__signature s;

    parse("()->(f32,Bool,Float,i64)", &s);
    ck_assert_uint_eq(s.result_count, 4);
    ck_assert_uint_eq(s.results[0].source, HOB__RESULT_DTYPE);
    ck_assert_uint_eq(s.results[0].dtype, HOB_DTYPE_F32);
    ck_assert_uint_eq(s.results[1].source, HOB__RESULT_DTYPE);
    ck_assert_uint_eq(s.results[1].dtype, HOB_DTYPE_BOOL);
    ck_assert_uint_eq(s.results[2].source, HOB__RESULT_INFERRED);
    ck_assert_uint_eq(s.results[3].dtype, HOB_DTYPE_I64);
    hob__signature_release(&s);
    parse("(x: [Float]) -> [x]", &s);
    ck_assert_uint_eq(s.result_count, 1);
    ck_assert_uint_eq(s.results[0].is_list, 1);
    ck_assert_uint_eq(s.results[0].source, HOB__RESULT_PARAM);
    hob__signature_release(&s);
}
END_TEST

START_TEST(test_signature_reads_named_results)
{
    struct hob__signature s;

    parse("(x: Float, dt: dtype) -> (values: x, x?, at: dt, n: value(i64), "
          "value(enum(a, b)?), _lse: f32)",
          &s);
    ck_assert_uint_eq(s.result_count, 4);
    ck_assert_uint_eq(s.plain_count, 2);
    ck_assert_uint_eq(s.result_item_count, 6);
    ck_assert_str_eq(s.results[0].name, "values");
    ck_assert_ptr_null(s.results[1].name);
    ck_assert_uint_eq(s.results[1].flags, HOB__PARAM_OPTIONAL);
    ck_assert_uint_eq(s.results[2].source, HOB__RESULT_ATTRIBUTE);
    ck_assert_uint_eq(s.results[3].flags, HOB__PARAM_HIDDEN);
    ck_assert_uint_eq(s.results[3].tag_plain, HOB__NO_TAG);
    ck_assert_str_eq(s.plains[0].name, "n");
    ck_assert_uint_eq(s.plains[0].type, HOB__TYPE_I64);
    ck_assert_uint_eq(s.plains[1].type, HOB__TYPE_ENUM);
    ck_assert_uint_eq(s.plains[1].flags, HOB__PARAM_OPTIONAL);
    ck_assert_uint_eq(s.result_items[3].is_plain, 1);
    ck_assert_uint_eq(s.result_items[5].first, 3);
    hob__signature_release(&s);
}
END_TEST

static const char *const flat_texts[] = {
    "(x: Float, n: i64 = -3, s: str = \"a, b\", _seed: i64?) -> x",
    "(xs: [Any], e: enum(a, b) = b, d: device?) -> [xs]",
    "(boxes.coords: Float, operand: enum(Dense, Empty), operand.Dense: Float?) "
    "-> boxes.coords",
    "(a.x: Float) -> (0.coords: Float, 1.coords: Float?, first: a.x, _h: f32, "
    "0.count: value(i64), 2: value(enum(A, B)), value(f64?))",
    "() -> value(bool)",
};

/* What is written out is read as the same signature. */
START_TEST(test_signature_writes_flat_texts)
{
    struct hob__signature s, again;
    char *text;

    parse(flat_texts[_i], &s);
    text = hob__signature_text(&s);
    ck_assert_str_eq(text, flat_texts[_i]);
    parse(text, &again);
    ck_assert(hob__signature_compatible(&s, &again));
    ck_assert_uint_eq(s.required_count, again.required_count);
    hob__signature_release(&s);
    hob__signature_release(&again);
    free(text);
}
END_TEST

START_TEST(test_signature_ignores_the_locale)
{
    static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8",
                                         "fr_FR.UTF-8", "de_DE"};
    struct hob__signature s;

    /* Without such a locale this holds all the same. */
    for (size_t i = 0; i < sizeof(commas) / sizeof(commas[0]); i++) {
        if (setlocale(LC_ALL, commas[i]))
            break;
    }
    parse("(p: f64 = 0.25, q: f64 = 1.5e3) -> f32", &s);
    ck_assert_double_eq(s.params[0].value.u.f64, 0.25);
    ck_assert_double_eq(s.params[1].value.u.f64, 1500.0);
    hob__signature_release(&s);
}
END_TEST

#define LONG_NAME                                                              \
    "a123456789012345678901234567890123456789012345678901234567890123456789"
#define P4(a) a "1: i64, " a "2: i64, " a "3: i64, " a "4: i64"
#define P16(a) P4(a "a") ", " P4(a "b") ", " P4(a "c") ", " P4(a "d")
#define R8 "f32, f32, f32, f32, f32, f32, f32, f32"

static const struct bad {
    const char *text;
    int column;
    const char *message; /* part of it */
} bad_texts[] = {
    {"", 1, "'(' expected"},
    {"x", 1, "'(' expected"},
    {"(", 2, "name of a parameter"},
    {"(1: i64) -> f32", 2, "name of a parameter"},
    {"(x) -> x", 3, "':' and a type"},
    {"(x: ) -> x", 5, "a type expected"},
    {"(x: float) -> x", 5, "no such type"},
    {"(x: [scalar]) -> f32", 6, "only tensors"},
    {"(x: [Config]) -> f32", 6, "only tensors"},
    {"(x: [Float) -> x", 11, "']' expected"},
    {"(x: Float y: Float) -> x", 11, "',' or ')'"},
    {"(x: Float, x: Int) -> x", 12, "stands before"},
    {"(x: Float", 10, "',' or ')'"},
    {"(x: Float) x", 12, "'->'"},
    {"(x: Float) ->", 14, "a result expected"},
    {"(x: Float) -> y", 15, "no parameter, dtype or kind"},
    {"(x: Float) -> ()", 16, "a result expected"},
    {"(x: Float) -> (x", 17, "',' or ')'"},
    {"(x: Float) -> [x", 17, "']' expected"},
    {"(x: Float) -> [[x]]", 16, "a result expected"},
    {"(x: Float) -> x, x", 16, "nothing expected"},
    {"(x: Float?) -> x", 16, "always there"},
    {"(n: i64) -> n", 13, "tensor or a dtype"},
    {"(x: Float = 1) -> x", 13, "no default"},
    {"(d: device = 1) -> f32", 14, "no default"},
    {"(c: Config) -> f32", 5, "\"types\" of the manifest"},
    {"(n: i64? = 1) -> f32", 10, "absent instead"},
    {"(n: i64 = 1.5) -> f32", 11, "an integer"},
    {"(n: i64 = 9223372036854775808) -> f32", 11, "out of range"},
    {"(n: i64 = one) -> f32", 11, "a number"},
    {"(n: i64 = 1x) -> f32", 11, "a number"},
    {"(f: f64 = 1.) -> f32", 11, "a number"},
    {"(f: f64 = 1e999) -> f32", 11, "out of range"},
    {"(b: bool = 1) -> f32", 12, "a name"},
    {"(b: bool = yes) -> f32", 12, "true or false"},
    {"(d: dtype = f31) -> f32", 13, "no such dtype"},
    {"(e: enum(a, b) = c) -> f32", 18, "no such enumerator"},
    {"(e: enum(a, a)) -> f32", 13, "stands twice"},
    {"(e: enum()) -> f32", 10, "enumerator expected"},
    {"(e: enum) -> f32", 9, "'(' expected after enum"},
    {"(s: str = none) -> f32", 11, "a string"},
    {"(s: str = \"none) -> f32", 11, "no end"},
    {"(s: str = \"\\q\") -> f32", 13, "only"},
    {"(l: [i64] = 1) -> f32", 13, "a list"},
    {"(l: [i64] = [1 2]) -> f32", 16, "',' or ']'"},
    {"(l: [i64] = [1, 2.5]) -> f32", 17, "an integer"},
    {"(_s: i64) -> f32", 2, "hidden parameter must"},
    {"(_s: i64?, x: Float) -> x", 12, "may follow a hidden"},
    {"(" LONG_NAME ": i64) -> f32", 2, "more than 63"},
    {"(" P16("a") ", " P16("b") ", e: i64) -> f32", 322, "more than 32"},
    {"() -> (" R8 ", " R8 ", f32)", 88, "more than 16"},
    {"() -> (value(f64), value(i64)", 30, "',' or ')'"},
    {"() -> value", 7, "no parameter, dtype or kind"},
    {"() -> value(str)", 7, "a plain result is"},
    {"() -> value(Float)", 7, "a plain result is"},
    {"() -> value(i64 = 1)", 17, "')' expected"},
    {"() -> _n: value(i64)", 7, "plain result cannot be hidden"},
    {"() -> (a: f32, a: f32)", 16, "stands before"},
    {"() -> (a: f32, a: value(i64))", 16, "stands before"},
    {"() -> a: ", 10, "a result expected"},
    {"() -> Boxes", 7, "no such type"},
    {"(x: Float) -> [x?]", 17, "']' expected"},
    {"(x: Float) -> [Boxes]", 16, "holds tensors"},
    {"(x: Float) -> x = 1", 17, "nothing expected"},
    {"(x: Float) -> x \xc3\xa4", 17, "nothing expected"},
};

START_TEST(test_signature_says_where_it_is_wrong)
{
    const struct bad *bad = &bad_texts[_i];
    struct hob__signature s;
    const char *message = NULL;
    int column = 0;

    memset(&s, 0xff, sizeof(s));
    ck_assert_int_eq(hob__signature_parse(bad->text, &s, &column, &message),
                     HOB_ERR_FORMAT);
    ck_assert_msg(message && strstr(message, bad->message), "%s: \"%s\"",
                  bad->text, message ? message : "-");
    ck_assert_msg(column == bad->column, "%s: column %d, not %d", bad->text,
                  column, bad->column);
    ck_assert_uint_eq(s.param_count, 0);
    ck_assert_uint_eq(s.result_count, 0);
}
END_TEST

/* Every prefix of a rich signature is refused, and nothing leaks. */
START_TEST(test_signature_refuses_every_prefix)
{
    static const char text[] =
        "(a: [Any], b: str = \"x\", c: [i64] = [1, 2], e: enum(p, q) = q, "
        "f: i64?) -> (a, first: Bool?, value(enum(p, q)), _h: f32)";
    char prefix[sizeof(text)];

    for (size_t length = 0; length + 1 < sizeof(text); length++) {
        struct hob__signature s;
        const char *message;
        int column;

        memcpy(prefix, text, length);
        prefix[length] = '\0';
        ck_assert_int_eq(hob__signature_parse(prefix, &s, &column, &message),
                         HOB_ERR_FORMAT);
        ck_assert_int_ge(column, 1);
        ck_assert_int_le(column, (int)length + 1);
    }
}
END_TEST

static const struct pair {
    const char *want;
    const char *have;
    int compatible;
} pairs[] = {
    {"(x: Float) -> x", "(x:Float)->x", 1},
    {"(x: Float, n: i64 = 1) -> x", "(x: Float) -> x", 1},
    {"(x: Float, y: Float?) -> x", "(x: Float) -> x", 1},
    {"(x: Float, n: i64 = 1, _s: i64?) -> x", "(x: Float, n: i64 = 2) -> x", 1},
    {"(x: Float, n: i64) -> x", "(x: Float) -> x", 0},
    {"(x: Float) -> x", "(x: Float, n: i64 = 1) -> x", 0},
    {"(x: Float) -> x", "(y: Float) -> y", 0},
    {"(x: Float) -> x", "(x: Num) -> x", 0},
    {"(x: Float?) -> f32", "(x: Float) -> f32", 0},
    {"(x: Float) -> x", "(x: Float) -> f32", 0},
    {"(x: Float) -> x", "(x: Float) -> [x]", 0},
    {"(x: Float) -> x", "(x: Float) -> (x, x)", 0},
    {"(e: enum(a, b)) -> f32", "(e: enum(a, b)) -> f32", 1},
    {"(e: enum(a, b)) -> f32", "(e: enum(a, c)) -> f32", 0},
    {"(e: enum(a, b)) -> f32", "(e: enum(a)) -> f32", 0},
    {"(x: Float) -> x?", "(x: Float) -> x", 0},
    {"(x: Float) -> (x, _l: f32)", "(x: Float) -> (x, _l: f32)", 1},
    {"(x: Float) -> (x, _l: f32)", "(x: Float) -> (x, l: f32)", 0},
    {"(x: Float) -> (x, value(i64))", "(x: Float) -> (x, value(i64))", 1},
    {"(x: Float) -> (x, value(i64))", "(x: Float) -> (x, value(f64))", 0},
    {"(x: Float) -> (x, value(i64))", "(x: Float) -> x", 0},
};

START_TEST(test_signature_says_what_differs)
{
    static const struct {
        const char *have, *why;
    } cases[] = {
        {"(x: Float, b: f64 = 1) -> x", "b stands where beta is declared"},
        {"(x: Float, beta: i64 = 1) -> x",
         "beta is declared with another type"},
        {"(x: Num, beta: f64 = 1) -> x", "x is declared with another type"},
        {"(x: Float, beta: f64 = 1, k: i64) -> x", "k is not declared"},
        {"() -> f32", "x is missing"},
        {"(x: Float, beta: f64 = 1) -> (x, x)",
         "the results are declared otherwise"},
        {"(x: Float, beta: f46) -> x", "column "}};
    struct hob__signature want;
    char why[160];

    parse("(x: Float, beta: f64 = 1) -> x", &want);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ck_assert(
            !hob__signature_serves(&want, cases[i].have, why, sizeof(why)));
        ck_assert_msg(strstr(why, cases[i].why) != NULL, "%s: %s",
                      cases[i].have, why);
    }
    ck_assert(
        hob__signature_serves(&want, "(x: Float) -> x", why, sizeof(why)));
    hob__signature_release(&want);
}
END_TEST

START_TEST(test_signature_compares)
{
    char why[160] = "";
    struct hob__signature want, have;

    parse(pairs[_i].want, &want);
    parse(pairs[_i].have, &have);
    ck_assert_msg(hob__signature_compatible(&want, &have) ==
                      pairs[_i].compatible,
                  "%s with %s", pairs[_i].want, pairs[_i].have);
    ck_assert_int_eq(
        hob__signature_serves(&want, pairs[_i].have, why, sizeof(why)),
        pairs[_i].compatible);
    ck_assert(pairs[_i].compatible ? !*why : *why);
    hob__signature_release(&want);
    hob__signature_release(&have);
}
END_TEST

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof((array)[0])))

int main(void)
{
    Suite *suite = suite_create("signature");
    TCase *tc = tcase_create("signature");

    suite_add_tcase(suite, tc);
    tcase_add_test(tc, test_signature_reads_tensors);
    tcase_add_loop_test(tc, test_signature_knows_every_type, 0,
                        COUNT_OF(types));
    tcase_add_test(tc, test_signature_reads_defaults);
    tcase_add_test(tc, test_signature_counts_up_to_the_last_required);
    tcase_add_test(tc, test_signature_reads_results);
    tcase_add_test(tc, test_signature_reads_named_results);
    tcase_add_loop_test(tc, test_signature_writes_flat_texts, 0,
                        COUNT_OF(flat_texts));
    tcase_add_test(tc, test_signature_ignores_the_locale);
    tcase_add_test(tc, test_signature_says_what_differs);
    tcase_add_loop_test(tc, test_signature_says_where_it_is_wrong, 0,
                        COUNT_OF(bad_texts));
    tcase_add_test(tc, test_signature_refuses_every_prefix);
    tcase_add_loop_test(tc, test_signature_compares, 0, COUNT_OF(pairs));
    return hob_check_main(suite);
}
