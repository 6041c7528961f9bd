/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that crashes or hangs is found out in a child (LOAD-7). */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_fixture.h"
#include "hob_check.h"

#include <stdlib.h>
#include <string.h>

static struct loader_fixture fix;
static const struct hob_host host = {.struct_size = sizeof(host)};

static void setup(void)
{
    fixture_setup(&fix);
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

static const struct probed {
    const char *name;
    hob_status status;
    enum hob__reason reason;
    const char *message; /* or NULL */
} probes[] = {
    {"mock_backend", HOB_OK, HOB__REASON_OK, NULL},
    {"mock_bad_magic", HOB_ERR_PLUGIN, HOB__REASON_OK, "no magic number"},
    {"mock_crash", HOB_ERR_PLUGIN, HOB__REASON_PROBE_CRASH,
     "its entry crashed: signal 6"},
    {"mock_hang", HOB_ERR_PLUGIN, HOB__REASON_PROBE_TIMEOUT,
     "its entry did not return in time: after 300 ms"},
};

START_TEST(test_probe_finds_out)
{
    const struct probed *probed = &probes[_i];
    const struct hob__candidate *candidate;
    hob_error error = HOB_ERROR_INIT;
    hob_status st;

    fixture_backend(&fix, "usr/share/hob/plugins.d/m.json", "mock",
                    fixture_mock_path(probed->name), "");
    fixture_setenv(&fix, "HOB_PLUGIN_TRUST", "off");
    fixture_open(&fix);
    candidate = hob__loader_get(fix.loader, 0);
    st = hob__loader_probe(
        fix.loader, candidate, &host,
        probed->reason == HOB__REASON_PROBE_TIMEOUT ? 300 : 20000, &error);
    ck_assert_msg(st == probed->status, "%s: %s", probed->name,
                  error.message ? error.message : "");
    ck_assert_str_eq(hob__reason_name(fixture_record(&fix, 0)->reason),
                     hob__reason_name(probed->reason));
    if (probed->message)
        ck_assert_msg(strstr(error.message, probed->message), "got \"%s\"",
                      error.message);
    /* Nothing was loaded in this process. */
    ck_assert_int_eq(fix.dl_open_count, 0);
    ck_assert_ptr_null(hob__candidate_plugin(candidate));
    if (probed->reason) {
        ck_assert_int_eq(
            hob__loader_probe(fix.loader, candidate, &host, 1, &error),
            HOB_ERR_PLUGIN);
        ck_assert_ptr_nonnull(strstr(error.message, "REFUSED PROBE_"));
    }
    hob_error_release(&error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("probe");
    TCase *tc = tcase_create("probe");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_probe_finds_out, 0,
                        sizeof(probes) / sizeof(probes[0]));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
