/* SPDX-License-Identifier: Apache-2.0 */
/* Files that others could have changed (SEC-1, SEC-2). */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_fixture.h"
#include "hob_check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DIR_ "usr/share/hob/plugins.d"
#define DATA DIR_ "/"

static struct loader_fixture fix;
static const struct hob_host host = {.struct_size = sizeof(host)};

static void setup(void)
{
    fixture_setup(&fix);
    fixture_mock(&fix, DATA "m.so", "mock_backend");
    fixture_backend(&fix, DATA "m.json", "mock", "m.so", "");
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

static void expect(const char *trust, enum hob__state state,
                   enum hob__reason reason, const char *detail)
{
    const struct hob__record *record;

    fixture_setenv(&fix, "HOB_PLUGIN_TRUST", trust);
    fixture_open(&fix);
    record = fixture_record(&fix, 0);
    ck_assert_msg(record->state == state && record->reason == reason,
                  "%s: %s %s: %s", trust, hob__state_name(record->state),
                  hob__reason_name(record->reason),
                  record->detail ? record->detail : "");
    if (detail)
        ck_assert_msg(strstr(record->detail, detail), "got \"%s\"",
                      record->detail);
}

static void expect_untrusted(const char *detail)
{
    expect("strict", HOB__STATE_REFUSED, HOB__REASON_UNTRUSTED, detail);
    expect("warn", HOB__STATE_DISCOVERED, HOB__REASON_UNTRUSTED, detail);
    expect("off", HOB__STATE_DISCOVERED, HOB__REASON_OK, NULL);
}

START_TEST(test_trust_ordinary_files)
{
    expect("strict", HOB__STATE_DISCOVERED, HOB__REASON_OK, NULL);
}
END_TEST

START_TEST(test_trust_writable_manifest)
{
    (void)chmod(fixture_path(&fix, DATA "m.json"), 0666);
    expect_untrusted("m.json is writable by others");
}
END_TEST

START_TEST(test_trust_writable_folder)
{
    (void)chmod(fixture_path(&fix, DIR_), 0777);
    expect_untrusted("plugins.d is writable by others");
    (void)chmod(fixture_path(&fix, DIR_), 01777);
    expect("strict", HOB__STATE_DISCOVERED, HOB__REASON_OK, NULL);
}
END_TEST

static int foreign_stat(void *self, const char *path, bool follow,
                        struct hob_os_stat *out_stat)
{
    int code = hob__os()->path_stat(self, path, follow, out_stat);

    if (strstr(path, "m.json"))
        out_stat->owner = 4242;
    return code;
}

START_TEST(test_trust_foreign_owner)
{
    fix.os.path_stat = foreign_stat;
    expect_untrusted("m.json is owned by user 4242");
}
END_TEST

START_TEST(test_trust_library)
{
    const struct hob__plugin *plugin = NULL;
    hob_error error = HOB_ERROR_INIT;

    (void)chmod(fixture_path(&fix, DATA "m.so"), 0666);
    fixture_setenv(&fix, "HOB_PLUGIN_TRUST", "strict");
    fixture_open(&fix);
    ck_assert_int_eq(hob__loader_load(fix.loader,
                                      hob__loader_get(fix.loader, 0), &host,
                                      &plugin, &error),
                     HOB_ERR_PLUGIN);
    ck_assert_int_eq(fixture_record(&fix, 0)->reason, HOB__REASON_UNTRUSTED);
    ck_assert_ptr_nonnull(strstr(error.message, "m.so is writable by others"));
    ck_assert_int_eq(fix.dl_open_count, 0);
    hob_error_release(&error);
    fixture_setenv(&fix, "HOB_PLUGIN_TRUST", "warn");
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_open(&fix);
    ck_assert_int_eq(hob__loader_load(fix.loader,
                                      hob__loader_get(fix.loader, 0), &host,
                                      &plugin, NULL),
                     HOB_OK);
    ck_assert_ptr_nonnull(strstr(fix.log, "m.so is writable by others"));
}
END_TEST

static bool find_ignored(void *context, const struct hob__note *note)
{
    if (!strcmp(note->where, "HOB_PLUGIN_TRUST") &&
        note->reason == *(enum hob__reason *)context)
        *(enum hob__reason *)context = HOB__REASON_OK;
    return true;
}

/* "off" is a user's wish; an elevated process does not follow it. */
START_TEST(test_trust_off_is_ignored_when_elevated)
{
    enum hob__reason reason = HOB__REASON_ENV_IGNORED;

    fix.is_elevated = true;
    (void)chmod(fixture_path(&fix, DIR_), 0777);
    fixture_setenv(&fix, "HOB_PLUGIN_TRUST", "off");
    fixture_write(&fix, "data/hob/plugins.d/m.json", "{}");
    (void)chmod(fixture_path(&fix, "data/hob/plugins.d/m.json"), 0666);
    fixture_open(&fix);
    ck_assert_int_eq(fixture_record(&fix, 0)->reason, HOB__REASON_UNTRUSTED);
    hob__loader_notes(fix.loader, find_ignored, &reason);
    ck_assert_int_eq(reason, HOB__REASON_OK);
}
END_TEST

START_TEST(test_trust_unknown_value_is_noted)
{
    enum hob__reason reason = HOB__REASON_ENV_VALUE;

    fixture_setenv(&fix, "HOB_PLUGIN_TRUST", "maybe");
    fixture_open(&fix);
    hob__loader_notes(fix.loader, find_ignored, &reason);
    ck_assert_int_eq(reason, HOB__REASON_OK);
}
END_TEST

static int foreign_dir(void *self, void *dir, struct hob_os_stat *out_stat)
{
    int code = hob__os()->dir_stat(self, dir, out_stat);

    out_stat->owner = 4242;
    return code;
}

static bool find_dir(void *context, const struct hob__searched *searched)
{
    *(int *)context += searched->reason == HOB__REASON_DIR_UNTRUSTED;
    return true;
}

/* SEC-1: plain root does not search a user's folders. */
START_TEST(test_trust_root_and_a_users_folder)
{
    int count = 0;

    fix.user = 0;
    fix.os.dir_stat = foreign_dir;
    fixture_backend(&fix, "home/.config/hob/plugins.d/m.json", "mine", "m.so",
                    "");
    fixture_open(&fix);
    hob__loader_searched(fix.loader, find_dir, &count);
    ck_assert_int_eq(count, 1);
    ck_assert_ptr_null(hob__loader_find_id(fix.loader, "mine"));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("trust");
    TCase *tc = tcase_create("trust");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_trust_ordinary_files);
    tcase_add_test(tc, test_trust_writable_manifest);
    tcase_add_test(tc, test_trust_writable_folder);
    tcase_add_test(tc, test_trust_foreign_owner);
    tcase_add_test(tc, test_trust_library);
    tcase_add_test(tc, test_trust_off_is_ignored_when_elevated);
    tcase_add_test(tc, test_trust_unknown_value_is_noted);
    tcase_add_test(tc, test_trust_root_and_a_users_folder);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
