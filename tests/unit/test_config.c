/* SPDX-License-Identifier: Apache-2.0 */
/* hob.json: what is merged, what wins, what is locked. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_fixture.h"
#include "hob_check.h"

#include <stdlib.h>
#include <string.h>

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

static const struct hob__conf *conf(void)
{
    return hob__loader_conf(fix.loader);
}

static bool find_note(void *context, const struct hob__note *note)
{
    const struct hob__note *wanted = context;

    if (note->reason != wanted->reason || !strstr(note->detail, wanted->detail))
        return true;
    ((struct hob__note *)context)->where = note->where;
    return false;
}

static void expect_note(enum hob__reason reason, const char *detail)
{
    struct hob__note wanted = {NULL, reason, detail};

    hob__loader_notes(fix.loader, find_note, &wanted);
    ck_assert_msg(wanted.where != NULL, "no note %s with \"%s\"",
                  hob__reason_name(reason), detail);
}

START_TEST(test_config_later_files_win)
{
    uint32_t count = 0;
    const char *const *devices;
    char *text = NULL;

    fixture_write(
        &fix, "etc/hob/hob.json",
        "{\"device\": \"a\", \"log\": \"warn\", \"plugins\": {\"flex\""
        ": {\"options\": {\"threads\": 4, \"blas\": \"none\"}}}}");
    fixture_write(&fix, "etc/xdg/hob/hob.json", "{\"device\": \"b\"}");
    fixture_write(&fix, "home/.config/hob/hob.json",
                  "{\"device\": \"c\", \"plugins\": {\"flex\": {\"options\": "
                  "{\"threads\": 8}, \"features\": {\"x\": true}}}}");
    fixture_write(&fix, "own.json", "{\"device\": [\"d\", \"e\"]}");
    fixture_setenv(&fix, "HOB_CONFIG", fixture_path(&fix, "own.json"));
    fixture_open(&fix);
    devices = hob__loader_devices(fix.loader, &count);
    ck_assert_uint_eq(count, 2);
    ck_assert_str_eq(devices[0], "d");
    ck_assert_str_eq(conf()->log, "warn");
    ck_assert_int_eq(hob__conf_options_json(conf(), "flex", &text), HOB_OK);
    ck_assert_str_eq(text, "{\"threads\":8,\"blas\":\"none\"}");
    free(text);
    ck_assert_uint_eq(conf()->files.count, 4);
    fix.options.config_json = "{\"device\": \"f\"}";
    fixture_open(&fix);
    ck_assert_str_eq(hob__loader_devices(fix.loader, &count)[0], "f");
    fixture_setenv(&fix, "HOB_DEVICE", "g");
    fixture_open(&fix);
    ck_assert_str_eq(hob__loader_devices(fix.loader, &count)[0], "g");
    fix.options.device = "h";
    fixture_open(&fix);
    ck_assert_str_eq(hob__loader_devices(fix.loader, &count)[0], "h");
}
END_TEST

START_TEST(test_config_options_as_json)
{
    char *text = NULL;

    fix.options.config_json = "{\"plugins\": {\"flex\": {\"options\": "
                              "{\"threads\": 4, \"s\": \"a\\\"b\"}}}}";
    fixture_open(&fix);
    ck_assert_int_eq(hob__conf_options_json(conf(), "flex", &text), HOB_OK);
    ck_assert_str_eq(text, "{\"threads\":4,\"s\":\"a\\\"b\"}");
    free(text);
    ck_assert_int_eq(hob__conf_options_json(conf(), "gone", &text), HOB_OK);
    ck_assert_str_eq(text, "{}");
    free(text);
}
END_TEST

START_TEST(test_config_locked_cannot_be_overridden)
{
    fixture_write(
        &fix, "etc/hob/hob.json",
        "{\"device\": {\"value\": \"a\", \"locked\": true}, \"plugins\":"
        " {\"disabled\": [\"x*\"], \"locked\": true, \"mock\": "
        "{\"enabled\": false, \"locked\": true}}}");
    fixture_write(
        &fix, "home/.config/hob/hob.json",
        "{\"device\": \"c\", \"plugins\": {\"disabled\": [], \"mock\": "
        "{\"enabled\": true}}}");
    fixture_backend(&fix, DATA "m.json", "mock", "m.so", "");
    fixture_backend(&fix, DATA "x.json", "xx", "m.so", "");
    fixture_open(&fix);
    ck_assert_str_eq(conf()->devices.items[0], "a");
    ck_assert_int_eq(fixture_record(&fix, 0)->reason,
                     HOB__REASON_DISABLED_CONFIG);
    ck_assert_int_eq(fixture_record(&fix, 1)->reason,
                     HOB__REASON_DISABLED_CONFIG);
    expect_note(HOB__REASON_CONFIG_LOCKED, "\"device\"");
    expect_note(HOB__REASON_CONFIG_LOCKED, "\"plugins.disabled\"");
    expect_note(HOB__REASON_CONFIG_LOCKED, "\"mock\"");
}
END_TEST

/* With a list nobody would miss the one that cannot be read. */
START_TEST(test_config_devices_are_read)
{
    uint32_t count = 0;

    fixture_write(&fix, "etc/hob/hob.json",
                  "{\"device\": [\"flex\",\n\"autodiff(flex\"]}");
    fixture_open(&fix);
    expect_note(HOB__REASON_CONFIG_VALUE, "hob.json:2:1: device "
                                          "\"autodiff(flex\": expected \")\"");
    hob__loader_devices(fix.loader, &count);
    ck_assert_uint_eq(count, 2);
}
END_TEST

START_TEST(test_config_cache_dir_is_absolute)
{
    fixture_write(&fix, "etc/hob/hob.json", "{\"cache_dir\": \"/var/c\"}");
    fixture_write(&fix, "home/.config/hob/hob.json", "{\"cache_dir\": \"c\"}");
    fixture_open(&fix);
    expect_note(HOB__REASON_CONFIG_VALUE,
                "\"cache_dir\" must be an absolute path, not \"c\"");
    ck_assert_str_eq(conf()->cache_dir, "/var/c");
}
END_TEST

/* What is wrong is named by where it stands. */
START_TEST(test_config_log_is_blamed)
{
    fixture_write(&fix, "etc/hob/hob.json", "{\"log\": \"loud\"}");
    fixture_open(&fix);
    ck_assert_ptr_nonnull(
        strstr(fix.log, "the config's \"log\": \"loud\" is not understood"));
    ck_assert_ptr_null(strstr(fix.log, "HOB_LOG"));
    fixture_setenv(&fix, "HOB_LOG", "louder");
    fixture_open(&fix);
    ck_assert_ptr_nonnull(
        strstr(fix.log, "HOB_LOG: \"louder\" is not understood"));
}
END_TEST

START_TEST(test_config_lock_all_of_a_file)
{
    fixture_write(&fix, "etc/hob/hob.json",
                  "{\"locked\": true, \"log\": \"off\"}");
    fix.options.config_json = "{\"log\": \"debug\", \"device\": \"a\", "
                              "\"locked\": true}";
    fixture_open(&fix);
    ck_assert_str_eq(conf()->log, "off");
    ck_assert_str_eq(conf()->devices.items[0], "a");
    expect_note(HOB__REASON_CONFIG_KEY, "counts only in system files");
}
END_TEST

START_TEST(test_config_unknown_keys_get_a_suggestion)
{
    fix.options.config_json = "{\"devcie\": 1, \"x-own\": 2, \"plugins\": "
                              "{\"disable\": [], \"mock\": {\"prioriti\": 1}}}";
    fixture_open(&fix);
    expect_note(HOB__REASON_CONFIG_KEY,
                "(options):1:12: unknown key \"devcie\": did you mean "
                "\"device\"?");
    expect_note(HOB__REASON_CONFIG_KEY, "did you mean \"disabled\"?");
    expect_note(HOB__REASON_CONFIG_KEY, "did you mean \"priority\"?");
}
END_TEST

START_TEST(test_config_chooses_plugins)
{
    fixture_backend(&fix, DATA "a.json", "mock-a", "m.so", "");
    fixture_backend(&fix, DATA "b.json", "mock-b", "m.so", "");
    fixture_backend(&fix, DATA "c.json", "other", "m.so", "");
    fix.options.config_json =
        "{\"plugins\": {\"disabled\": [\"mock-*\"], \"enabled\": [\"mock-b\"], "
        "\"only\": [\"mock*\", \"zzz\"], \"mock-b\": {\"priority\": 7, "
        "\"critical\": true}}}";
    fixture_open(&fix);
    ck_assert_int_eq(fixture_record(&fix, 0)->reason,
                     HOB__REASON_DISABLED_CONFIG);
    ck_assert_int_eq(fixture_record(&fix, 1)->reason, HOB__REASON_OK);
    ck_assert_int_eq(fixture_record(&fix, 2)->reason, HOB__REASON_NOT_SELECTED);
    ck_assert_int_eq(hob__loader_get(fix.loader, 1)->priority, 7);
    ck_assert(hob__loader_get(fix.loader, 1)->critical);
    expect_note(HOB__REASON_PATTERN_UNUSED, "\"zzz\"");
}
END_TEST

START_TEST(test_config_pins)
{
    fixture_backend(&fix, DATA "a.json", "mock-a", "m.so", "");
    fixture_backend(&fix, DATA "b.json", "mock-b", "m.so", "");
    fixture_backend(&fix, DATA "c.json", "mock-c", "m.so", "");
    fix.options.config_json =
        "{\"plugins\": {\"mock-a\": {\"pin\": \"1.0.0\"}, \"mock-b\": "
        "{\"pin\": "
        "\"2.0.0\"}, \"mock-c\": {\"pin\": \"sha256:abcd\"}}}";
    fixture_open(&fix);
    ck_assert_int_eq(fixture_record(&fix, 0)->reason, HOB__REASON_OK);
    ck_assert_int_eq(fixture_record(&fix, 1)->reason, HOB__REASON_PIN_MISMATCH);
    ck_assert_str_eq(fixture_record(&fix, 1)->detail,
                     "pinned to 2.0.0, this is 1.0.0");
    ck_assert_str_eq(hob__loader_get(fix.loader, 2)->sha256, "abcd");
}
END_TEST

START_TEST(test_config_features_and_conditions)
{
    static const char text[] =
        "{\"manifest_version\":1,\"id\":\"demo\",\"version\":\"1.0.0\","
        "\"kind\":\"extension\",\"abi\":{\"major\":0,\"required_minor\":2},"
        "\"library\":\"d.so\",\"namespace\":\"demo\",\"features\":{\"cuda\":"
        "true,"
        "\"extra\":false},\"ops\":[{\"op\":\"f\",\"signature\":\"(x: Float) -> "
        "x"
        "\",\"backends\":[{\"selector\":\"a\",\"when\":\"feature:cuda\"},"
        "{\"selector\":\"b\",\"when\":\"feature:extra\"},"
        "{\"selector\":\"c\",\"when\":\"plugin:mock\"},"
        "{\"selector\":\"d\",\"when\":\"plugin:gone\"},\"e\"]}]}";
    static const bool plain[] = {true, false, true, false, true};
    static const bool changed[] = {false, true, true, false, true};
    const struct hob__candidate *demo;
    uint32_t i;

    fixture_write(&fix, DATA "d.json", text);
    fixture_backend(&fix, DATA "m.json", "mock", "m.so", "");
    fixture_open(&fix);
    demo = hob__loader_find_id(fix.loader, "demo");
    for (i = 0; i < 5; i++)
        ck_assert_int_eq(
            hob__loader_condition(fix.loader, demo,
                                  &demo->manifest->ops[0].selectors[i]),
            plain[i]);
    fix.options.config_json = "{\"plugins\": {\"demo\": {\"features\": "
                              "{\"cuda\": false, \"extra\": true}}}}";
    fixture_open(&fix);
    demo = hob__loader_find_id(fix.loader, "demo");
    for (i = 0; i < 5; i++)
        ck_assert_int_eq(
            hob__loader_condition(fix.loader, demo,
                                  &demo->manifest->ops[0].selectors[i]),
            changed[i]);
    ck_assert(!hob__candidate_feature(demo, "none"));
}
END_TEST

static const struct bad_config {
    const char *text;
    const char *message;
} bad_configs[] = {
    {"[]", "(options):1:1: object expected, found array"},
    {"{\"device\": 1}", "/device: array expected, found number"},
    {"{\"device\": [1]}", "/device/0: string expected, found number"},
    {"{\"plugins\": []}", "/plugins: object expected"},
    {"{\"plugins\": {\"a b\": {}}}", "\"a b\" is no id of a plugin"},
    {"{\"plugins\": {\"mock\": {\"enabled\": 1}}}",
     "/plugins/mock/enabled: true or false expected"},
    {"{\"plugins\": {\"mock\": {\"features\": {\"x\": 1}}}}",
     "/plugins/mock/features/x: true or false expected"},
    {"{\"device\": {\"locked\": true}}", "/device: \"value\" is missing"},
    {"{\"log\": \"\"}", "/log: the string is empty"},
    {"{\"a\":", "value expected before the end"},
};

START_TEST(test_config_named_must_be_right)
{
    hob_error error = HOB_ERROR_INIT;

    fix.options.config_json = bad_configs[_i].text;
    ck_assert_int_eq(
        hob__loader_open(&fix.options, &fix.os, &fix.loader, &error),
        HOB_ERR_CONFIG);
    ck_assert_int_eq(error.status, HOB_ERR_CONFIG);
    ck_assert_ptr_null(fix.loader);
    ck_assert_msg(strstr(error.message, bad_configs[_i].message), "got \"%s\"",
                  error.message);
    hob_error_release(&error);
}
END_TEST

START_TEST(test_config_variable_must_be_right)
{
    static const char *const values[][2] = {
        {"hob.json", "HOB_CONFIG: \"hob.json\" is not an absolute path"},
        {"/nowhere/hob.json", "/nowhere/hob.json: no such file or folder"}};
    hob_error error = HOB_ERROR_INIT;

    fixture_setenv(&fix, "HOB_CONFIG", values[_i][0]);
    ck_assert_int_eq(
        hob__loader_open(&fix.options, &fix.os, &fix.loader, &error),
        HOB_ERR_CONFIG);
    ck_assert_msg(strstr(error.message, values[_i][1]), "got \"%s\"",
                  error.message);
    hob_error_release(&error);
}
END_TEST

/* A file that nobody named is noted; half of it is not taken. */
START_TEST(test_config_broken_default_file_is_noted)
{
    fixture_write(&fix, "etc/xdg/hob/hob.json",
                  "{\"device\": \"a\", \"log\": 1}");
    fixture_open(&fix);
    ck_assert_uint_eq(conf()->devices.count, 0);
    expect_note(HOB__REASON_CONFIG_SYNTAX, "/log: string expected");
    ck_assert_ptr_nonnull(strstr(fix.log, "error loader: "));
}
END_TEST

START_TEST(test_config_user_file_is_off_when_elevated)
{
    fix.is_elevated = true;
    fixture_write(&fix, "home/.config/hob/hob.json", "{\"device\": \"a\"}");
    fixture_setenv(&fix, "HOB_CONFIG", "/nowhere");
    fixture_open(&fix);
    ck_assert_uint_eq(conf()->devices.count, 0);
    expect_note(HOB__REASON_ENV_IGNORED, "/nowhere");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("config");
    TCase *tc = tcase_create("config");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_config_later_files_win);
    tcase_add_test(tc, test_config_options_as_json);
    tcase_add_test(tc, test_config_locked_cannot_be_overridden);
    tcase_add_test(tc, test_config_lock_all_of_a_file);
    tcase_add_test(tc, test_config_devices_are_read);
    tcase_add_test(tc, test_config_cache_dir_is_absolute);
    tcase_add_test(tc, test_config_log_is_blamed);
    tcase_add_test(tc, test_config_unknown_keys_get_a_suggestion);
    tcase_add_test(tc, test_config_chooses_plugins);
    tcase_add_test(tc, test_config_pins);
    tcase_add_test(tc, test_config_features_and_conditions);
    tcase_add_loop_test(tc, test_config_named_must_be_right, 0,
                        sizeof(bad_configs) / sizeof(bad_configs[0]));
    tcase_add_loop_test(tc, test_config_variable_must_be_right, 0, 2);
    tcase_add_test(tc, test_config_broken_default_file_is_noted);
    tcase_add_test(tc, test_config_user_file_is_off_when_elevated);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
