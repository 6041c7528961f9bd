/* SPDX-License-Identifier: Apache-2.0 */
/* Switching plugins off and on in the config. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "conf_edit.h"
#include "install.h"
#include "loader_fixture.h"
#include "hob_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct loader_fixture fix;

static const char user_file[] = "user/hob/hob.json";
static const char system_file[] = "etc/hob/hob.json";

static void setup(void)
{
    fixture_setup(&fix);
    fixture_setenv(&fix, "XDG_CONFIG_HOME", fixture_path(&fix, "user"));
    fixture_setenv(&fix, "XDG_CONFIG_DIRS", fixture_path(&fix, "dirs"));
    fixture_setenv(&fix, "HOB_ADD_PLUGIN_PATH", fixture_path(&fix, "plugins"));
    fixture_mock(&fix, "plugins/m.so", "mock_backend");
    fixture_backend(&fix, "plugins/m.json", "acme.mock", "m.so", "");
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

static hob_status set(const char *id, uint32_t where, bool enabled,
                      char **out_json, hob_error *error)
{
    return hob__set_enabled(&fix.os, fixture_path(&fix, "etc"), id, where,
                            enabled, out_json, error);
}

static char *read_file(const char *path)
{
    static char text[4096];
    FILE *file = fopen(fixture_path(&fix, path), "rb");
    size_t size;

    if (!file)
        return NULL;
    size = fread(text, 1, sizeof(text) - 1, file);
    (void)fclose(file);
    text[size] = '\0';
    return text;
}

/* The plugin's state as a runtime would see it. */
static const char *state(void)
{
    const struct hob__record *record;

    hob__loader_close(fix.loader);
    fix.loader = NULL;
    fixture_open(&fix);
    record = fixture_record(&fix, 0);
    return hob__state_name(record->state);
}

static void expect(const char *id, uint32_t where, bool enabled,
                   const char *json_part)
{
    hob_error error = HOB_ERROR_INIT;
    char *json = NULL;
    hob_status st = set(id, where, enabled, &json, &error);

    ck_assert_msg(!st, "%s", error.message);
    ck_assert_msg(strstr(json, json_part) != NULL, "\"%s\" expected in %s",
                  json_part, json);
    free(json);
    ck_assert_int_eq(fix.open_count, 0);
}

static void expect_failure(const char *id, uint32_t where, bool enabled,
                           hob_status status, const char *message)
{
    hob_error error = HOB_ERROR_INIT;
    char *json = (char *)1;

    ck_assert_int_eq(set(id, where, enabled, &json, &error), status);
    ck_assert_ptr_null(json);
    ck_assert_msg(strstr(error.message, message) != NULL,
                  "\"%s\" expected in \"%s\"", message, error.message);
    ck_assert_int_eq(fix.open_count, 0);
    hob_error_release(&error);
}

START_TEST(test_enable_off_and_on)
{
    uint32_t where = _i ? HOB_INSTALL_SYSTEM : HOB_INSTALL_USER;
    const char *file = _i ? system_file : user_file;

    ck_assert_str_eq(state(), "DISCOVERED");
    expect("acme.mock", where, true, "\"changed\": false");
    ck_assert_ptr_null(read_file(file));
    expect("acme.mock", where, false, "\"changed\": true");
    ck_assert_str_eq(read_file(file),
                     "{\n  \"plugins\": {\"acme.mock\": {\"enabled\": "
                     "false}}\n}\n");
    ck_assert_str_eq(state(), "DISABLED");
    expect("acme.mock", where, false, "\"changed\": false");
    expect("acme.mock", where, true, file);
    ck_assert_str_eq(state(), "DISCOVERED");
}
END_TEST

static const struct edit_case {
    const char *before;
    const char *after; /* with the plugin "p" switched off */
} edit_cases[] = {
    {"{}", "{\"plugins\": {\"p\": {\"enabled\": false}}}"},
    {"{ }\n", "{\"plugins\": {\"p\": {\"enabled\": false}} }\n"},
    {"{\"a\":1}", "{\"a\":1, \"plugins\": {\"p\": {\"enabled\": false}}}"},
    {"{\"a\":1,\"b\":2}",
     "{\"a\":1,\"b\":2, \"plugins\": {\"p\": {\"enabled\": false}}}"},
    {"{\r\n\t\"a\": [1]\r\n}",
     "{\r\n\t\"a\": [1],\r\n\t\"plugins\": {\"p\": {\"enabled\": "
     "false}}\r\n}"},
    {"\xef\xbb\xbf{\"a\": \"}\"}",
     "\xef\xbb\xbf{\"a\": \"}\", \"plugins\": {\"p\": {\"enabled\": "
     "false}}}"},
    {"{\"plugins\": {}}", "{\"plugins\": {\"p\": {\"enabled\": false}}}"},
    {"{\"plugins\":{\n    \"q\": {}\n  }\n, \"z\": 0}",
     "{\"plugins\":{\n    \"q\": {},\n    \"p\": {\"enabled\": false}\n  }\n, "
     "\"z\": 0}"},
    {"{\"plugins\": {\"p\": {}}}",
     "{\"plugins\": {\"p\": {\"enabled\": false}}}"},
    {"{\"plugins\": {\"p\": {\"priority\": 3} } }",
     "{\"plugins\": {\"p\": {\"priority\": 3, \"enabled\": false} } }"},
    {"{\"plugins\": {\"p\": {\"enabled\" :true , \"pin\": \"1.0.0\"}}}",
     "{\"plugins\": {\"p\": {\"enabled\" :false , \"pin\": \"1.0.0\"}}}"},
    {"{\"\\u0070lugins\": {\"p\": {\"enabled\":true}}}",
     "{\"\\u0070lugins\": {\"p\": {\"enabled\":false}}}"},
    {"{\"plugins\": {\"disabled\": [\"q\"]}}",
     "{\"plugins\": {\"disabled\": [\"q\"], \"p\": {\"enabled\": false}}}"},
};

START_TEST(test_enable_keeps_the_rest)
{
    const struct edit_case *edit = &edit_cases[_i];
    struct hob__text text = HOB__TEXT_INIT;

    ck_assert_int_eq(hob__conf_edit_enabled("f", edit->before,
                                            strlen(edit->before), "p", false,
                                            &text, NULL),
                     HOB_OK);
    ck_assert_uint_eq(text.length, strlen(edit->after));
    ck_assert_mem_eq(text.data, edit->after, text.length);
    hob__text_release(&text);
}
END_TEST

/* One id beats a pattern, so the list stays as the user wrote it. */
START_TEST(test_enable_beats_the_list)
{
    static const char before[] = "{\"plugins\": {\"disabled\": [\"acme.*\"]}}";

    fixture_write(&fix, user_file, before);
    ck_assert_str_eq(state(), "DISABLED");
    expect("acme.mock", HOB_INSTALL_USER, false, "\"changed\": false");
    ck_assert_str_eq(read_file(user_file), before);
    expect("acme.mock", HOB_INSTALL_USER, true, "\"changed\": true");
    ck_assert_str_eq(state(), "DISCOVERED");
}
END_TEST

/* What the system disables the user may enable, if it is not locked. */
START_TEST(test_enable_files_before_it)
{
    fixture_write(&fix, system_file,
                  "{\"plugins\": {\"acme.mock\": {\"enabled\": false}}}");
    expect("acme.mock", HOB_INSTALL_USER, false, "\"changed\": false");
    expect("acme.mock", HOB_INSTALL_USER, true, "\"changed\": true");
    ck_assert_str_eq(state(), "DISCOVERED");
    fixture_write(&fix, system_file,
                  "{\"plugins\": {\"acme.mock\": {\"enabled\": false, "
                  "\"locked\": true}}}");
    expect_failure("acme.mock", HOB_INSTALL_USER, true, HOB_ERR_CONFIG,
                   "a system file before it locks");
    fixture_write(&fix, system_file, "{\"plugins\": {\"only\": [\"flex\"]}}");
    expect_failure("acme.mock", HOB_INSTALL_USER, true, HOB_ERR_CONFIG,
                   "acme.mock is not among them");
    /* A broken file counts as little as for a runtime. */
    fixture_write(&fix, system_file, "{");
    expect("acme.mock", HOB_INSTALL_USER, false, "\"changed\": true");
}
END_TEST

START_TEST(test_enable_says_what_counts_more)
{
    const char *last = fixture_path(&fix, "last.json");

    fixture_write(&fix, user_file,
                  "{\"plugins\": {\"acme.mock\": {\"enabled\": false}}}");
    expect("acme.mock", HOB_INSTALL_SYSTEM, false, "\"overridden_by\": null");
    expect("acme.mock", HOB_INSTALL_SYSTEM, true, user_file);
    fixture_setenv(&fix, "HOB_CONFIG", last);
    fixture_write(&fix, "last.json",
                  "{\"plugins\": {\"acme.mock\": {\"enabled\": true}}}");
    expect("acme.mock", HOB_INSTALL_USER, false, "last.json\"}");
    fixture_write(&fix, "last.json", "{}");
    expect("acme.mock", HOB_INSTALL_USER, false, "\"overridden_by\": null");
    fixture_setenv(&fix, "HOB_PLUGINS_DISABLE", "acme*");
    expect("acme.mock", HOB_INSTALL_USER, true,
           "\"overridden_by\": \"HOB_PLUGINS_DISABLE\"");
    fixture_setenv(&fix, "HOB_PLUGINS_DISABLE", "");
    fixture_setenv(&fix, "HOB_PLUGINS_ONLY", "flex");
    expect("acme.mock", HOB_INSTALL_USER, true,
           "\"overridden_by\": \"HOB_PLUGINS_ONLY\"");
}
END_TEST

static const struct bad_text {
    const char *text;
    hob_status status;
    const char *message;
} bad_texts[] = {
    {"{\n  \"plugins\": {,}\n}", HOB_ERR_CONFIG, "hob.json:2:15: "},
    {"[]", HOB_ERR_CONFIG, "object expected"},
    {"{\"plugins\": 7}", HOB_ERR_CONFIG, "/plugins: object expected"},
    {"{\"plugins\": {\"acme.mock\": {\"enabled\": 1}}}", HOB_ERR_CONFIG,
     "/plugins/acme.mock/enabled"},
    {"", HOB_ERR_IO, "the file is empty"},
};

START_TEST(test_enable_leaves_broken_files_alone)
{
    const struct bad_text *bad = &bad_texts[_i];

    fixture_write(&fix, user_file, bad->text);
    expect_failure("acme.mock", HOB_INSTALL_USER, false, bad->status,
                   bad->message);
    ck_assert_str_eq(read_file(user_file), bad->text);
}
END_TEST

START_TEST(test_enable_names)
{
    expect_failure("acme.mok", HOB_INSTALL_USER, false, HOB_ERR_NOT_FOUND,
                   "did you mean \"acme.mock\"?");
    /* As devices call it. */
    fixture_backend(&fix, "plugins/m.json", "acme.backend", "m.so", "");
    expect_failure("zzz", HOB_INSTALL_USER, false, HOB_ERR_NOT_FOUND,
                   "no plugin has the id \"zzz\"; hob plugins --all lists");
    ck_assert_ptr_null(read_file(user_file));
    fix.user = 0;
    expect_failure("acme.backend", HOB_INSTALL_DEFAULT, false, HOB_ERR_ARGUMENT,
                   "root has to choose");
    expect_failure("acme.backend", 9, false, HOB_ERR_ARGUMENT,
                   "no place has the number 9");
}
END_TEST

/* A link into a folder of dotfiles stays one, and the file keeps its mode. */
START_TEST(test_enable_keeps_links_and_modes)
{
    struct stat info;

    fixture_write(&fix, "dotfiles/hob.json", "{}");
    fixture_make_dir(&fix, "user/hob");
    ck_assert_int_eq(chmod(fixture_path(&fix, "dotfiles/hob.json"), 0600), 0);
    ck_assert_int_eq(symlink(fixture_path(&fix, "dotfiles/hob.json"),
                             fixture_path(&fix, user_file)),
                     0);
    expect("acme.mock", HOB_INSTALL_USER, false, "\"changed\": true");
    ck_assert_int_eq(lstat(fixture_path(&fix, user_file), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(stat(fixture_path(&fix, user_file), &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0600);
    ck_assert_ptr_nonnull(strstr(read_file("dotfiles/hob.json"), "false"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("enable");
    TCase *tc = tcase_create("enable");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_enable_off_and_on, 0, 2);
    tcase_add_loop_test(tc, test_enable_keeps_the_rest, 0,
                        sizeof(edit_cases) / sizeof(edit_cases[0]));
    tcase_add_test(tc, test_enable_beats_the_list);
    tcase_add_test(tc, test_enable_files_before_it);
    tcase_add_test(tc, test_enable_says_what_counts_more);
    tcase_add_loop_test(tc, test_enable_leaves_broken_files_alone, 0,
                        sizeof(bad_texts) / sizeof(bad_texts[0]));
    tcase_add_test(tc, test_enable_names);
    tcase_add_test(tc, test_enable_keeps_links_and_modes);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
