/* SPDX-License-Identifier: Apache-2.0 */
/* What hob-sdk new makes of its templates. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "template.h"
#include "hob_check.h"

#include <stdlib.h>
#include <string.h>

static const struct template_value values[] = {
    {"NAME", "acme.scale"}, {"OP_2", "scale"}, {"YES", "1"}, {"NO", ""}};

enum { VALUE_COUNT = sizeof(values) / sizeof(values[0]) };

static const struct good {
    const char *text;
    const char *wanted;
} goods[] = {
    {"", ""},
    {"plain\n", "plain\n"},
    {"no newline", "no newline"},
    {"@NAME@", "acme.scale"},
    {"a @NAME@@OP_2@ b @NO@c\n", "a acme.scalescale b c\n"},
    /* What make and mail addresses need. */
    {"$@ @ @@ @@NAME@@ a@b.c @name@ @NAME", "$@ @ @@ @acme.scale@ a@b.c @name@ "
                                            "@NAME"},
    {"@NAME @NAME@\n@\n", "@NAME acme.scale\n@\n"},
    {"@if YES\na\n@end\nb\n", "a\nb\n"},
    {"@if NO\n@NOTHING@\n@end\nb\n", "b\n"},
    {"@if !NO\na\n@else\nb\n@end\n", "a\n"},
    {"@if !YES\na\n@else\nb\n@end\n", "b\n"},
    {"@if YES\n1\n@if NO\n2\n@else\n3\n@end\n4\n@else\n5\n@end", "1\n3\n4\n"},
    {"@if NO\n1\n@if YES\n2\n@else\n3\n@end\n4\n@else\n5\n@end", "5\n"},
    /* Only a whole line is a part's border. */
    {" @if YES\n@ends\n@end.\n", " @if YES\n@ends\n@end.\n"},
};

START_TEST(test_template_expands)
{
    const struct good *good = &goods[_i];
    struct hob__text out = HOB__TEXT_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_status st = template_expand("t", good->text, strlen(good->text), values,
                                    VALUE_COUNT, &out, &error);

    ck_assert_msg(!st, "%s", error.message);
    ck_assert_uint_eq(out.length, strlen(good->wanted));
    ck_assert_msg(!memcmp(out.data ? out.data : "", good->wanted, out.length),
                  "got \"%s\"", out.data);
    hob__text_release(&out);
}
END_TEST

static const struct bad {
    const char *text;
    const char *message;
} bads[] = {
    {"a\n@NOTHING@\n", "t:2: there is no value NOTHING"},
    {"@if NOTHING\n", "t:1: there is no value NOTHING"},
    {"@if !\n", "t:1: there is no value !"},
    {"\n\n@end\n", "t:3: no part begins before this @end"},
    {"@else\n", "t:1: no part begins before this @else"},
    {"@if YES\na\n", "t:2: a part has no @end"},
    {"@if YES\n@else\n@else\n@end\n", "t:3: a second @else"},
    {"@if YES\n@if YES\n@if YES\n@if YES\n@if YES\n@if YES\n@if YES\n"
     "@if YES\n@if YES\n@if YES\n@if YES\n@if YES\n@if YES\n@if YES\n"
     "@if YES\n@if YES\n@if YES\n",
     "t:17: too many parts within parts"},
};

START_TEST(test_template_refuses)
{
    const struct bad *bad = &bads[_i];
    struct hob__text out = HOB__TEXT_INIT;
    hob_error error = HOB_ERROR_INIT;

    ck_assert_int_eq(template_expand("t", bad->text, strlen(bad->text), values,
                                     VALUE_COUNT, &out, &error),
                     HOB_ERR_FORMAT);
    ck_assert_str_eq(error.message, bad->message);
    hob_error_release(&error);
    hob__text_release(&out);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("template");
    TCase *tc = tcase_create("template");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, test_template_expands, 0,
                        sizeof(goods) / sizeof(goods[0]));
    tcase_add_loop_test(tc, test_template_refuses, 0,
                        sizeof(bads) / sizeof(bads[0]));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
