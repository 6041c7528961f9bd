/* SPDX-License-Identifier: Apache-2.0 */
/* What strict JSON is, and where the errors are said to be (MAN-2). */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "json.h"
#include "hob_check.h"

#include <stdlib.h>
#include <string.h>

static const struct hob__json_limits limits = HOB__JSON_MANIFEST_LIMITS;

static const struct bad_text {
    const char *text;
    enum hob__reason reason;
    const char *message;
} bad_texts[] = {
    {"{} x", HOB__REASON_JSON_SYNTAX, "f:1:4: text after the value"},
    {"[1,]", HOB__REASON_JSON_SYNTAX, "f:1:4: value expected"},
    {"{\"a\":1,}", HOB__REASON_JSON_SYNTAX, "key in double quotes expected"},
    {"// c\n{}", HOB__REASON_JSON_SYNTAX, "f:1:1: value expected"},
    {"{\"a\" 1}", HOB__REASON_JSON_SYNTAX, "':' expected"},
    {"[1 2]", HOB__REASON_JSON_SYNTAX, "',' or ']' expected"},
    {"{\"a\":1 \"b\":2}", HOB__REASON_JSON_SYNTAX, "',' or '}' expected"},
    {"[1", HOB__REASON_JSON_SYNTAX, "',' or ']' expected"},
    {"", HOB__REASON_JSON_SYNTAX, "value expected before the end"},
    {"\"a", HOB__REASON_JSON_SYNTAX, "unterminated string"},
    {"[01]", HOB__REASON_JSON_SYNTAX, "leading zero"},
    {"[1.]", HOB__REASON_JSON_SYNTAX, "digit expected after the point"},
    {"[-]", HOB__REASON_JSON_SYNTAX, "digit expected"},
    {"[+1]", HOB__REASON_JSON_SYNTAX, "value expected"},
    {"[.5]", HOB__REASON_JSON_SYNTAX, "value expected"},
    {"[1e]", HOB__REASON_JSON_SYNTAX, "digit expected in the exponent"},
    {"[NaN]", HOB__REASON_JSON_SYNTAX, "value expected"},
    {"[nul]", HOB__REASON_JSON_SYNTAX, "value expected"},
    {"[1e999]", HOB__REASON_JSON_SYNTAX, "f:1:2: /0: number out of range"},
    {"[11111111111111111111111111111111111111111111111111111111111111111]",
     HOB__REASON_JSON_SYNTAX, "more than 63 characters"},
    {"[\"a\nb\"]", HOB__REASON_JSON_SYNTAX, "control character"},
    {"[\"\\x\"]", HOB__REASON_JSON_SYNTAX, "unknown escape"},
    {"[\"\\u12\"]", HOB__REASON_JSON_SYNTAX, "four hexadecimal digits"},
    {"[\"\\u0000\"]", HOB__REASON_JSON_SYNTAX, "\\u0000 is not allowed"},
    {"[\v1]", HOB__REASON_JSON_SYNTAX, "value expected"},
    {"[\"\\ud800\"]", HOB__REASON_JSON_ENCODING, "lone high surrogate"},
    {"[\"\\ud800\\u0041\"]", HOB__REASON_JSON_ENCODING, "lone high"},
    {"[\"\\udc00\"]", HOB__REASON_JSON_ENCODING, "lone low surrogate"},
    {"[\"\xc0\x80\"]", HOB__REASON_JSON_ENCODING, "invalid UTF-8"},
    {"[\"\xed\xa0\x80\"]", HOB__REASON_JSON_ENCODING, "invalid UTF-8"},
    {"[\"\xf4\x90\x80\x80\"]", HOB__REASON_JSON_ENCODING, "invalid UTF-8"},
    {"[\"\xe2\x82\"]", HOB__REASON_JSON_ENCODING, "invalid UTF-8"},
    {"\xef\xbb\xbf\xef\xbb\xbf{}", HOB__REASON_JSON_SYNTAX, "value expected"},
    {"{\"a\":1,\n \"b\":{\"c\":1, \"\\u0063\":2}}",
     HOB__REASON_JSON_DUPLICATE_KEY, "f:2:14: /b/c: this key stands twice"},
    {"[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]", HOB__REASON_JSON_DEPTH,
     "nested too deeply"},
    {"{\"a\":[1,{\"b/c~\":[x]}]}", HOB__REASON_JSON_SYNTAX,
     "f:1:18: /a/1/b~1c~0: value expected"},
};

START_TEST(test_json_scan_refuses)
{
    const struct bad_text *bad = &bad_texts[_i];
    struct hob__json_doc *doc = NULL;
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason;

    ck_assert_int_eq(hob__json_parse("f", bad->text, strlen(bad->text), &limits,
                                     &doc, &reason, &error),
                     HOB_ERR_FORMAT);
    ck_assert_ptr_null(doc);
    ck_assert_msg(strstr(error.message, bad->message), "%s: got \"%s\"",
                  bad->text, error.message);
    ck_assert_str_eq(hob__reason_name(reason), hob__reason_name(bad->reason));
    hob_error_release(&error);
}
END_TEST

START_TEST(test_json_scan_refuses_nul_and_size)
{
    const struct hob__json_limits small = {8, 4};
    struct hob__json_doc *doc = NULL;
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason;

    ck_assert_int_eq(
        hob__json_parse("f", "{\"a\0\":1}", 8, &limits, &doc, &reason, NULL),
        HOB_ERR_FORMAT);
    ck_assert_int_eq(
        hob__json_parse("f", "[1,2,3,4]", 9, &small, &doc, &reason, &error),
        HOB_ERR_FORMAT);
    ck_assert_int_eq(reason, HOB__REASON_TOO_BIG);
    ck_assert_str_eq(error.message, "f: 9 bytes, at most 8 are allowed");
    hob_error_release(&error);
}
END_TEST

static struct hob__json_doc *parse(const char *text)
{
    struct hob__json_doc *doc = NULL;
    hob_error error = HOB_ERROR_INIT;

    ck_assert_msg(
        !hob__json_parse("f", text, strlen(text), &limits, &doc, NULL, &error),
        "%s", error.message);
    return doc;
}

START_TEST(test_json_scan_reads_values)
{
    struct hob__json_doc *doc = parse(
        "\xef\xbb\xbf{ \"s\": \"a\\u00e9\\ud83d\\ude00\", \"b\": [true, null],"
        " \"d\": 2.5e3, \"e\": {} }");
    const struct hob__json_value *root = hob__json_root(doc), *list;
    const char *string = NULL;
    double number = 0;
    bool flag = false;

    ck_assert_uint_eq(root->count, 4);
    ck_assert_int_eq(
        hob__json_string(doc, hob__json_member(doc, root, "s"), &string, NULL),
        HOB_OK);
    ck_assert_str_eq(string, "a\xc3\xa9\xf0\x9f\x98\x80");
    list = hob__json_member(doc, root, "b");
    ck_assert_int_eq(
        hob__json_bool(doc, hob__json_first(doc, list), &flag, NULL), HOB_OK);
    ck_assert(flag);
    ck_assert_int_eq(
        hob__json_double(doc, hob__json_member(doc, root, "d"), &number, NULL),
        HOB_OK);
    ck_assert(number == 2500);
    ck_assert_ptr_null(hob__json_member(doc, root, "S"));
    ck_assert_str_eq(hob__json_key(doc, list), "b");
    ck_assert_ptr_null(hob__json_key(doc, hob__json_first(doc, list)));
    hob__json_free(doc);
}
END_TEST

START_TEST(test_json_scan_keeps_64_bit_integers_exact)
{
    struct hob__json_doc *doc =
        parse("[9007199254740993, -9223372036854775808, 18446744073709551615, "
              "18446744073709551616, 1.0, -1]");
    const struct hob__json_value *v = hob__json_first(doc, hob__json_root(doc));
    hob_error error = HOB_ERROR_INIT;
    uint64_t u = 0;
    int64_t i = 0;

    ck_assert(!hob__json_int(doc, v, INT64_MIN, INT64_MAX, &i, NULL));
    ck_assert_int_eq(i, INT64_C(9007199254740993));
    v = hob__json_next(doc, v);
    ck_assert(!hob__json_int(doc, v, INT64_MIN, INT64_MAX, &i, NULL));
    ck_assert(i == INT64_MIN);
    v = hob__json_next(doc, v);
    ck_assert(!hob__json_uint(doc, v, UINT64_MAX, &u, NULL));
    ck_assert(u == UINT64_MAX);
    ck_assert_int_eq(hob__json_int(doc, v, INT64_MIN, INT64_MAX, &i, NULL),
                     HOB_ERR_FORMAT);
    v = hob__json_next(doc, v);
    ck_assert_int_eq(hob__json_uint(doc, v, UINT64_MAX, &u, NULL),
                     HOB_ERR_FORMAT);
    v = hob__json_next(doc, v);
    ck_assert_int_eq(hob__json_int(doc, v, 0, 9, &i, &error), HOB_ERR_FORMAT);
    ck_assert_str_eq(error.message, "f:1:86: /4: integer expected, found 1.0");
    v = hob__json_next(doc, v);
    ck_assert_int_eq(hob__json_int(doc, v, 0, 9, &i, &error), HOB_ERR_FORMAT);
    ck_assert_str_eq(error.message, "f:1:91: /5: -1 is not in 0..9");
    hob_error_release(&error);
    hob__json_free(doc);
}
END_TEST

START_TEST(test_json_scan_names_what_stands_there)
{
    struct hob__json_doc *doc = parse("{\"a\":\n  [1]}");
    const struct hob__json_value *a =
        hob__json_member(doc, hob__json_root(doc), "a");
    hob_error error = HOB_ERROR_INIT;
    const char *string;
    char *pointer;

    ck_assert_int_eq(hob__json_string(doc, a, &string, &error), HOB_ERR_FORMAT);
    ck_assert_str_eq(error.message, "f:2:3: /a: string expected, found array");
    pointer = hob__json_pointer(doc, hob__json_first(doc, a));
    ck_assert_str_eq(pointer, "/a/0");
    free(pointer);
    hob_error_release(&error);
    hob__json_free(doc);
    hob__json_free(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("json_scan");
    TCase *tc = tcase_create("json");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, test_json_scan_refuses, 0,
                        sizeof(bad_texts) / sizeof(bad_texts[0]));
    tcase_add_test(tc, test_json_scan_refuses_nul_and_size);
    tcase_add_test(tc, test_json_scan_reads_values);
    tcase_add_test(tc, test_json_scan_keeps_64_bit_integers_exact);
    tcase_add_test(tc, test_json_scan_names_what_stands_there);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
