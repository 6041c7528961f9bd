/* SPDX-License-Identifier: Apache-2.0 */
/* Records, reasons, reports and the log (REP-1 to REP-4). */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_fixture.h"
#include "hob_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DATA "usr/share/hob/plugins.d/"

static struct loader_fixture fix;

static void setup(void)
{
    fixture_setup(&fix);
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

START_TEST(test_record_every_reason_has_its_words)
{
    int i, j;

    for (i = 0; i < HOB__REASON_COUNT_; i++) {
        enum hob__reason reason = (enum hob__reason)i;

        ck_assert_int_gt((int)strlen(hob__reason_name(reason)), 1);
        ck_assert_int_gt((int)strlen(hob__reason_text(reason)), 8);
        ck_assert_ptr_nonnull(hob__reason_hint(reason));
        ck_assert_ptr_nonnull(hob__severity_name(hob__reason_severity(reason)));
        for (j = 0; j < i; j++)
            ck_assert_str_ne(hob__reason_name(reason),
                             hob__reason_name((enum hob__reason)j));
    }
    ck_assert_str_eq(hob__reason_name(HOB__REASON_COUNT_), "UNKNOWN");
    for (i = 0; i < HOB__STATE_COUNT_; i++)
        ck_assert_ptr_nonnull(hob__state_name((enum hob__state)i));
    ck_assert_str_eq(hob__rule_name(HOB__RULE_CORE), "DISC-4");
    ck_assert_str_eq(hob__rule_name(HOB__RULE_NONE), "-");
}
END_TEST

/* Codes that the runtime and hob doctor put into records. */
static const struct later {
    enum hob__reason reason;
    const char *text;
} laters[] = {
    {HOB__REASON_FAILED_INIT, "it was loaded but could not start"},
    {HOB__REASON_PROBE_CRASH, "its entry crashed"},
    {HOB__REASON_PROBE_TIMEOUT, "its entry did not return in time"},
    {HOB__REASON_FORKED, "this process is a fork of the one"},
};

START_TEST(test_record_of_the_runtime)
{
    char *text = NULL;

    fixture_backend(&fix, DATA "m.json", "mock", "m.so", "");
    fixture_open(&fix);
    hob__loader_refuse(fix.loader, hob__loader_get(fix.loader, 0),
                       HOB__STATE_FAILED_INIT, laters[_i].reason, "detail 7");
    ck_assert_int_eq(hob__loader_why(fix.loader, "mock", &text), HOB_OK);
    ck_assert_ptr_nonnull(strstr(text, hob__reason_name(laters[_i].reason)));
    ck_assert_ptr_nonnull(strstr(text, laters[_i].text));
    ck_assert_ptr_nonnull(strstr(text, "detail 7"));
    free(text);
}
END_TEST

START_TEST(test_record_format)
{
    const struct hob__record record = {"mock",           "/d/m.json",
                                       "/d/m.json",      NULL,
                                       HOB__RULE_CORE,   HOB__STATE_REFUSED,
                                       HOB__REASON_SELF, "/d/m.so",
                                       "Do this.",       0};
    const struct hob__record plain = {NULL,
                                      "/d/m.json",
                                      "/d/m.json",
                                      NULL,
                                      HOB__RULE_USER_DATA,
                                      HOB__STATE_DISCOVERED,
                                      HOB__REASON_OK,
                                      NULL,
                                      "",
                                      0};
    struct hob__text text = HOB__TEXT_INIT;

    hob__record_format(&record, &text);
    ck_assert_str_eq(text.data,
                     "mock: REFUSED SELF: its library is Hob or the program "
                     "itself: /d/m.so [/d/m.json, DISC-4] Do this.");
    hob__text_release(&text);
    hob__record_format(&plain, &text);
    ck_assert_str_eq(text.data, "/d/m.json: DISCOVERED [/d/m.json, DISC-7]");
    hob__text_release(&text);
}
END_TEST

START_TEST(test_record_of_each_and_texts)
{
    char *text = NULL, *at;

    fixture_backend(&fix, DATA "a.json", "one", "m.so", "");
    fixture_write(&fix, DATA "b.json", "{}");
    fixture_backend(&fix, DATA "c.json", "three", "m.so",
                    ", \"requires\": {\"host\": [\"moon\"]}");
    fixture_open(&fix);
    for (uint32_t i = 0; i < 3; i++) {
        ck_assert_ptr_nonnull(fixture_record(&fix, i)->hint);
        ck_assert_uint_gt(fixture_record(&fix, i)->time_ns, 0);
    }
    ck_assert_int_eq(hob__loader_why(fix.loader, "three", &text), HOB_OK);
    ck_assert_ptr_nonnull(strstr(text, "three: REFUSED REQUIRES_HOST"));
    ck_assert_ptr_null(strstr(text, "searched"));
    free(text);
    /* An unread manifest may be the missing one, so it is shown. */
    ck_assert_int_eq(hob__loader_why(fix.loader, "gone", &text), HOB_OK);
    ck_assert_ptr_nonnull(strstr(text, "gone: no manifest names it"));
    ck_assert_ptr_nonnull(strstr(text, "b.json: REFUSED MANIFEST_FIELD"));
    ck_assert_ptr_nonnull(strstr(text, "plugins.d (DISC-8): 3 found"));
    free(text);
    ck_assert_int_eq(hob__loader_summary(fix.loader, &text), HOB_OK);
    ck_assert_ptr_nonnull(strstr(text, "1 usable of 3 plugins"));
    free(text);
    /* A folder that two rules name is one folder. */
    fixture_setenv(&fix, "XDG_DATA_DIRS", fixture_path(&fix, "data"));
    fixture_open(&fix);
    ck_assert_int_eq(hob__loader_why(fix.loader, "gone", &text), HOB_OK);
    at = strstr(text, "/data/hob/plugins.d (");
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_null(strstr(at + 1, "/data/hob/plugins.d ("));
    free(text);
}
END_TEST

/* Case 65: nothing loads, and the user learns why. */
START_TEST(test_record_case_65_summary_of_nothing)
{
    char *text = NULL;

    fixture_backend(&fix, DATA "c.json", "three", "m.so",
                    ", \"requires\": {\"host\": [\"moon\"]}");
    fixture_open(&fix);
    ck_assert_ptr_nonnull(strstr(fix.log, "error loader: no usable plugin"));
    ck_assert_int_eq(hob__loader_summary(fix.loader, &text), HOB_OK);
    ck_assert_ptr_nonnull(strstr(text, "no usable plugin (0 of 1)"));
    ck_assert_ptr_nonnull(strstr(text, "REQUIRES_HOST"));
    free(text);
}
END_TEST

/* Case 20: no message is cut. */
START_TEST(test_record_case_20_long_texts_are_whole)
{
    char *more = malloc(20000);
    size_t prefix;

    ck_assert_ptr_nonnull(more);
    prefix = (size_t)snprintf(more, 20000, ", \"requires\": {\"host\": [\"");
    memset(more + prefix, 'm', 15000);
    (void)snprintf(more + prefix + 15000, 100, "END\"]}");
    fixture_backend(&fix, DATA "m.json", "mock", "m.so", more);
    fixture_open(&fix);
    ck_assert_uint_eq(strlen(fixture_record(&fix, 0)->detail), 15003);
    free(more);
}
END_TEST

/* REP-3: silence by default, an error for what was asked for. */
START_TEST(test_record_silence_unless_critical)
{
    fixture_backend(&fix, DATA "m.json", "mock", "m.so",
                    ", \"requires\": {\"host\": [\"moon\"]}");
    fixture_write(&fix, DATA "n.json", "{");
    fixture_backend(&fix, DATA "o.json", "good", "m.so", "");
    fixture_open(&fix);
    ck_assert_msg(!fix.log, "%s", fix.log);
    fix.options.config_json = "{\"plugins\": {\"mock\": {\"critical\": true}}}";
    fixture_open(&fix);
    ck_assert_ptr_nonnull(strstr(fix.log, "error loader: mock: REFUSED"));
}
END_TEST

START_TEST(test_record_log_filters)
{
    struct hob__log_options options = {
        .filter = "loader=debug,plugin:x=off,warn", .filter_name = "HOB_LOG"};
    struct hob__log *log = NULL;

    options.sink = fix.options.log_sink;
    options.context = &fix;
    ck_assert_int_eq(hob__log_new(&fix.os, &options, &log, NULL), HOB_OK);
    ck_assert(hob__log_wants(log, HOB__SEVERITY_DEBUG, "loader"));
    ck_assert(!hob__log_wants(log, HOB__SEVERITY_ERROR, "plugin:x"));
    ck_assert(hob__log_wants(log, HOB__SEVERITY_WARN, "other"));
    ck_assert(!hob__log_wants(log, HOB__SEVERITY_INFO, "other"));
    hob__log_free(log);
    options.filter = "loader=loud";
    options.format = "xml";
    ck_assert_int_eq(hob__log_new(&fix.os, &options, &log, NULL), HOB_OK);
    ck_assert_ptr_nonnull(
        strstr(fix.log, "HOB_LOG: \"loader=loud\" is not understood"));
    ck_assert_ptr_nonnull(strstr(fix.log, "\"xml\" is neither text nor json"));
    hob__log_free(log);
    hob__log_free(NULL);
}
END_TEST

START_TEST(test_record_log_file_as_json)
{
    struct hob__log_options options = {.format = "json"};
    struct hob__log *log = NULL;
    char line[512] = "";
    FILE *file;

    options.file = fixture_path(&fix, "hob.log");
    ck_assert_int_eq(hob__log_new(&fix.os, &options, &log, NULL), HOB_OK);
    hob__log_write(log, HOB__SEVERITY_ERROR, "loader", "a \"%s\"\n", "b");
    hob__log_free(log);
    file = fopen(fixture_path(&fix, "hob.log"), "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    (void)fclose(file);
    ck_assert_ptr_nonnull(strstr(line, "\"level\":\"error\",\"module\":"
                                       "\"loader\",\"message\":\"a \\\"b\\\""
                                       "\\n\"}\n"));
}
END_TEST

START_TEST(test_record_nearest_names_and_patterns)
{
    static const char *const names[] = {"HOB_LOG", "HOB_LOG_FILE",
                                        "HOB_DEVICE"};

    ck_assert_str_eq(hob__nearest_name("HOB_DEVCIE", names, 3), "HOB_DEVICE");
    ck_assert_str_eq(hob__nearest_name("hob_log", names, 3), "HOB_LOG");
    ck_assert_ptr_null(hob__nearest_name("XYZ_ANYTHING", names, 3));
    ck_assert(hob__pattern_matches("cube-*", "cube-cuda"));
    ck_assert(hob__pattern_matches("*a*a", "aaa"));
    ck_assert(hob__pattern_matches("*", ""));
    ck_assert(!hob__pattern_matches("cube", "cube-cuda"));
    ck_assert(!hob__pattern_matches("", "a"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("record");
    TCase *tc = tcase_create("record");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_record_every_reason_has_its_words);
    tcase_add_loop_test(tc, test_record_of_the_runtime, 0,
                        sizeof(laters) / sizeof(laters[0]));
    tcase_add_test(tc, test_record_format);
    tcase_add_test(tc, test_record_of_each_and_texts);
    tcase_add_test(tc, test_record_case_65_summary_of_nothing);
    tcase_add_test(tc, test_record_case_20_long_texts_are_whole);
    tcase_add_test(tc, test_record_silence_unless_critical);
    tcase_add_test(tc, test_record_log_filters);
    tcase_add_test(tc, test_record_log_file_as_json);
    tcase_add_test(tc, test_record_nearest_names_and_patterns);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
