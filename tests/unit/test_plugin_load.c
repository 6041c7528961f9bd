/* SPDX-License-Identifier: Apache-2.0 */
/* Opening plugins: every mock breaks one rule, the message says which. Plugins
 * of other versions are in test_negotiation.c. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_fixture.h"
#include "sha256.h"
#include "hob_check.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DATA "usr/share/hob/plugins.d/"
#define ABI "\"abi\":{\"major\":0,\"required_minor\":2}"

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

static hob_status load(const struct hob__plugin **out_plugin, hob_error *error)
{
    const struct hob__candidate *candidate = hob__loader_get(fix.loader, 0);

    ck_assert_ptr_nonnull(candidate);
    return hob__loader_load(fix.loader, candidate, &host, out_plugin, error);
}

/* Write a manifest of KIND for mock library NAME, copied beside it. */
static void place(const char *kind, const char *name)
{
    char text[2048], library[128];

    (void)snprintf(library, sizeof(library), DATA "%s.so", name);
    fixture_mock(&fix, library, name);
    (void)snprintf(
        text, sizeof(text),
        "{\"manifest_version\":1,\"id\":\"mock\",\"version\":\"1.0.0\","
        "\"kind\":\"%s\"," ABI ",\"library\":\"%s.so\",%s}",
        kind, name,
        *kind == 'b'   ? "\"backend\":{\"selector\":\"mock\"}"
        : *kind == 'd' ? "\"decorator\":{\"selector\":\"mock\"},"
                         "\"unlisted\":\"pass\""
                       : "\"namespace\":\"demo\",\"ops\":[{\"op\":\"square\","
                         "\"signature\":\"(x: Float) -> x\",\"infer\":\"same\","
                         "\"backends\":[\"flex\",{\"selector\":\"cube-x\","
                         "\"when\":\"plugin:cube-x\"}]}]");
    fixture_write(&fix, DATA "m.json", text);
}

static const struct good {
    const char *kind;
    const char *name;
} goods[] = {
    {"backend", "mock_backend"},
    {"backend", "mock_part_may"},
    {"decorator", "mock_decorator"},
    {"extension", "mock_extension"},
};

START_TEST(test_plugin_load_good)
{
    const struct hob__plugin *plugin = NULL, *again = NULL;
    const struct hob__record *record;
    hob_error error = HOB_ERROR_INIT;
    hob_status st;

    place(goods[_i].kind, goods[_i].name);
    fixture_open(&fix);
    st = load(&plugin, &error);
    ck_assert_msg(!st, "%s", error.message);
    record = fixture_record(&fix, 0);
    ck_assert_int_eq(record->state, HOB__STATE_LOADED);
    ck_assert_int_eq(record->reason, HOB__REASON_OK);
    ck_assert_int_eq(load(&again, NULL), HOB_OK);
    ck_assert_ptr_eq(plugin, again);
    ck_assert_int_eq(fix.dl_open_count, 1);
    ck_assert_ptr_eq(hob__candidate_plugin(hob__loader_get(fix.loader, 0)),
                     plugin);
    ck_assert_ptr_nonnull(plugin->table.open);
    ck_assert_ptr_nonnull(plugin->table.close);
    if (plugin->table.backend) {
        ck_assert_ptr_eq(plugin->table.backend, &plugin->backend);
        ck_assert_int_eq(plugin->backend.sync(NULL), HOB_OK);
        ck_assert_int_eq(plugin->backend.device_info(NULL, 0, NULL),
                         HOB_ERR_UNSUPPORTED);
        ck_assert_ptr_null(plugin->backend.interface(NULL, "x", 1));
    }
    /* LOAD-6: it stays open. */
    hob__loader_close(fix.loader);
    fix.loader = NULL;
    ck_assert_int_eq(fix.library_count, 1);
}
END_TEST

static const struct bad_plugin {
    const char *kind;
    const char *name;
    enum hob__reason reason;
    const char *message;
} bad_plugins[] = {
    {"backend", "mock_no_entry", HOB__REASON_NO_ENTRY, "no hob_plugin_entry"},
    {"backend", "mock_null_table", HOB__REASON_NO_TABLE,
     "hob_plugin_entry returned NULL"},
    {"backend", "mock_bad_magic", HOB__REASON_MAGIC, "no magic number"},
    {"backend", "mock_future_major", HOB__REASON_MAJOR, "made for ABI 99.2"},
    {"backend", "mock_future_minor", HOB__REASON_MINOR,
     "made for ABI 0.3 (needs 0.3), this Hob has 0.2"},
    {"backend", "mock_short_table", HOB__REASON_SIZE,
     "the plugin table has 24 bytes, at least"},
    {"backend", "mock_short_backend", HOB__REASON_SIZE,
     "the backend table has 16 bytes, at least"},
    {"backend", "mock_sanitizer", HOB__REASON_SANITIZER,
     "built with a sanitizer"},
    {"backend", "mock_wrong_id", HOB__REASON_ID_MISMATCH,
     "the library says \"another\", the manifest \"mock\""},
    {"backend", "mock_no_id", HOB__REASON_REQUIRED_FN, "member id is NULL"},
    {"backend", "mock_no_alloc", HOB__REASON_REQUIRED_FN,
     "member backend.alloc is NULL"},
    {"backend", "mock_no_execute", HOB__REASON_REQUIRED_FN,
     "member backend.entries[0].execute is NULL"},
    {"decorator", "mock_no_call", HOB__REASON_REQUIRED_FN,
     "member decorator.call is NULL"},
    {"extension", "mock_no_signature", HOB__REASON_REQUIRED_FN,
     "member extension.ops[0].signature is NULL"},
    {"backend", "mock_part_must", HOB__REASON_UNKNOWN_PART,
     "the part \"acme.quantum\" must be understood"},
    {"backend", "mock_wrong_kind", HOB__REASON_KIND_MISMATCH,
     "the manifest says backend, the table has none"},
    {"extension", "mock_signature", HOB__REASON_SIGNATURE,
     "op demo.square: its signature differs from the manifest's: (x: Int)"},
    {"extension", "mock_no_impl", HOB__REASON_NO_IMPLEMENTATION,
     "op demo.square: no body and no implementation for flex"},
    {"extension", "mock_missing_op", HOB__REASON_NO_IMPLEMENTATION,
     "op demo.square: it is in the manifest but not in the table"},
};

START_TEST(test_plugin_load_refuses)
{
    const struct bad_plugin *bad = &bad_plugins[_i];
    const struct hob__plugin *plugin = (void *)1;
    const struct hob__record *record;
    hob_error error = HOB_ERROR_INIT, again = HOB_ERROR_INIT;

    place(bad->kind, bad->name);
    fixture_open(&fix);
    ck_assert_int_eq(load(&plugin, &error), HOB_ERR_PLUGIN);
    ck_assert_ptr_null(plugin);
    ck_assert_msg(strstr(error.message, bad->message), "%s: got \"%s\"",
                  bad->name, error.message);
    record = fixture_record(&fix, 0);
    ck_assert_int_eq(record->state, HOB__STATE_REFUSED);
    ck_assert_str_eq(hob__reason_name(record->reason),
                     hob__reason_name(bad->reason));
    ck_assert_ptr_nonnull(strstr(error.message, hob__reason_text(bad->reason)));
    /* LOAD-4: nothing stays open; the same words again, no new attempt. */
    ck_assert_int_eq(fix.library_count, 0);
    ck_assert_int_eq(fix.open_count, 0);
    ck_assert_int_eq(load(&plugin, &again), HOB_ERR_PLUGIN);
    ck_assert_str_eq(error.message, again.message);
    ck_assert_int_eq(fix.dl_open_count, 1);
    ck_assert(!hob__candidate_usable(hob__loader_get(fix.loader, 0)));
    hob_error_release(&error);
    hob_error_release(&again);
}
END_TEST

START_TEST(test_plugin_load_wrong_version_warns)
{
    const struct hob__plugin *plugin = NULL;
    const struct hob__record *record;

    place("backend", "mock_wrong_version");
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_open(&fix);
    ck_assert_int_eq(load(&plugin, NULL), HOB_OK);
    record = fixture_record(&fix, 0);
    ck_assert_int_eq(record->state, HOB__STATE_LOADED);
    ck_assert_int_eq(record->reason, HOB__REASON_VERSION_MISMATCH);
    ck_assert_str_eq(record->detail,
                     "the library says 2.0.0, the manifest 1.0.0");
    ck_assert_ptr_nonnull(strstr(fix.log, "VERSION_MISMATCH"));
}
END_TEST

/* Load what the manifest with LIBRARY names; expect REASON and MESSAGE. */
static void refuse_library(const char *library, const char *more,
                           enum hob__reason reason, const char *message)
{
    const struct hob__plugin *plugin = NULL;
    hob_error error = HOB_ERROR_INIT;
    int open_before = fix.library_count;

    fixture_backend(&fix, DATA "m.json", "mock", library, more);
    fixture_open(&fix);
    ck_assert_int_eq(load(&plugin, &error), HOB_ERR_PLUGIN);
    ck_assert_str_eq(hob__reason_name(fixture_record(&fix, 0)->reason),
                     hob__reason_name(reason));
    ck_assert_msg(strstr(error.message, message), "got \"%s\"", error.message);
    ck_assert_int_eq(fix.library_count, open_before);
    hob_error_release(&error);
}

START_TEST(test_plugin_load_checks_the_file_first)
{
    refuse_library("gone.so", "", HOB__REASON_LIBRARY_MISSING,
                   "gone.so: no such file or folder");
    fixture_make_dir(&fix, DATA "dir.so");
    refuse_library("dir.so", "", HOB__REASON_LIBRARY_NOT_REGULAR,
                   "not a regular file");
    fixture_write(&fix, DATA "text.so",
                  "a text of more than the sixty-four bytes that the header "
                  "of a library has");
    refuse_library("text.so", "", HOB__REASON_LIBRARY_FORMAT,
                   "not an ELF file");
    fixture_write(&fix, DATA "empty.so", "");
    refuse_library("empty.so", "", HOB__REASON_LIBRARY_FORMAT, "too short");
    ck_assert_int_eq(fix.dl_open_count, 0);
    refuse_library("system:libmoon-of-hob.so.7", "", HOB__REASON_DLOPEN,
                   "libmoon-of-hob.so.7");
}
END_TEST

START_TEST(test_plugin_load_checks_the_hash)
{
    const struct hob__plugin *plugin = NULL;
    char hex[65], more[128];
    int fd;

    fixture_mock(&fix, DATA "m.so", "mock_backend");
    fd = hob__os()->open_read(NULL, fixture_path(&fix, DATA "m.so"));
    ck_assert_int_eq(hob__sha256_file(hob__os(), fd, hex), 0);
    hob__os()->close(NULL, fd);
    (void)snprintf(more, sizeof(more), ", \"sha256\": \"%s\"", hex);
    fixture_backend(&fix, DATA "m.json", "mock", "m.so", more);
    fixture_open(&fix);
    ck_assert_int_eq(load(&plugin, NULL), HOB_OK);
    more[15] = more[15] == '0' ? '1' : '0';
    refuse_library("m.so", more, HOB__REASON_HASH_MISMATCH, "its SHA-256 is");
}
END_TEST

/* SEC-5 and case 1: never resolve into ourselves. */
START_TEST(test_plugin_load_refuses_itself)
{
    char *self = NULL;

    ck_assert_int_eq(hob__os()->program_path(NULL, &self), 0);
    refuse_library(self, "", HOB__REASON_SELF, "Hob or the program itself");
    ck_assert_int_eq(fix.dl_open_count, 0);
    free(self);
}
END_TEST

static int changed_stat(void *self, const char *path, bool follow,
                        struct hob_os_stat *out_stat)
{
    struct loader_fixture *fixture = self;
    int code = hob__os()->path_stat(NULL, path, follow, out_stat);

    /* After dlopen the file is another one. */
    if (fixture->dl_open_count && strstr(path, "m.so"))
        out_stat->inode++;
    return code;
}

START_TEST(test_plugin_load_notices_a_replaced_file)
{
    fix.os.path_stat = changed_stat;
    fixture_mock(&fix, DATA "m.so", "mock_backend");
    refuse_library("m.so", "", HOB__REASON_LIBRARY_CHANGED,
                   "another file stands at this path");
}
END_TEST

static void *forbidden_open(void *self, const char *path, char **out_message)
{
    (void)self;
    (void)path;
    *out_message = strdup("m.so: failed to map segment from shared object");
    return NULL;
}

/* Case 69. */
START_TEST(test_plugin_load_case_69_policy)
{
    fix.os.dl_open = forbidden_open;
    fixture_mock(&fix, DATA "m.so", "mock_backend");
    refuse_library("m.so", "", HOB__REASON_OS_POLICY, "failed to map segment");
}
END_TEST

static const struct hob_plugin *null_entry(const struct hob_host *own)
{
    (void)own;
    return NULL;
}

/* P6: what is linked in goes through the same checks. */
START_TEST(test_plugin_load_linked_in)
{
    const struct hob__plugin *plugin = NULL;
    hob_error error = HOB_ERROR_INIT;
    char *text = fixture_manifest("mock", "unused.so", "");
    struct hob__loader_static one = {text, strlen(text), "mock", null_entry};

    fix.options.statics = &one;
    fix.options.static_count = 1;
    fixture_open(&fix);
    ck_assert_int_eq(load(&plugin, &error), HOB_ERR_PLUGIN);
    ck_assert_ptr_nonnull(strstr(error.message, "static:mock: "
                                                "hob_plugin_entry returned"));
    ck_assert_int_eq(fix.dl_open_count, 0);
    hob_error_release(&error);
    free(text);
}
END_TEST

/* What the entry of mock_reentrant gets as an answer (a checked test forks a
 * process for itself, so this is no shared state). */
static hob_status reentrant_answer;
static const char *running_id, *running_step;

static uint32_t call_back(hob_scope *scope, struct hob_op_ref *ref)
{
    const struct hob__plugin *plugin = NULL;

    (void)scope;
    (void)ref;
    (void)hob__loader_running(fix.loader, &running_id, &running_step);
    reentrant_answer = load(&plugin, NULL);
    return 0;
}

/* Case 44 and LOAD-3. */
START_TEST(test_plugin_load_case_44_reentrant)
{
    const struct hob_host caller = {.struct_size = sizeof(caller),
                                    .op_id = call_back};
    const struct hob__plugin *plugin = NULL;
    const char *id, *step;

    place("backend", "mock_reentrant");
    fixture_open(&fix);
    ck_assert_int_eq(hob__loader_load(fix.loader,
                                      hob__loader_get(fix.loader, 0), &caller,
                                      &plugin, NULL),
                     HOB_OK);
    ck_assert_int_eq(reentrant_answer, HOB_ERR_REENTRANT);
    ck_assert_str_eq(running_id, "mock");
    ck_assert_str_eq(running_step, "entry");
    ck_assert(!hob__loader_running(fix.loader, &id, &step));
    ck_assert_int_eq(fixture_record(&fix, 0)->reason, HOB__REASON_REENTRANT);
}
END_TEST

enum { THREADS = 8 };

static void *load_in_thread(void *result)
{
    const struct hob__plugin **out_plugin = result;

    (void)load(out_plugin, NULL);
    return NULL;
}

/* LOAD-2: whoever comes second waits and gets the same plugin. */
START_TEST(test_plugin_load_from_many_threads)
{
    const struct hob__plugin *plugins[THREADS] = {NULL};
    pthread_t threads[THREADS];
    int i;

    place("backend", "mock_slow");
    fixture_open(&fix);
    for (i = 0; i < THREADS; i++)
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, load_in_thread, &plugins[i]), 0);
    for (i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    for (i = 0; i < THREADS; i++)
        ck_assert_ptr_eq(plugins[i], plugins[0]);
    ck_assert_ptr_nonnull(plugins[0]);
    ck_assert_int_eq(fix.dl_open_count, 1);
}
END_TEST

/* Can both twins be in one process whose names are seen by all? */
static int twins_seen_by_all(void)
{
    int status = 0;
    pid_t child = fork();

    if (!child) {
        (void)dlopen(fixture_mock_path("mock_twin_1"), RTLD_NOW | RTLD_GLOBAL);
        (void)dlopen(fixture_mock_path("mock_twin_2"), RTLD_NOW | RTLD_GLOBAL);
        _exit(0);
    }
    ck_assert_int_gt(child, 0);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return status;
}

/* Cases 49 and 50, LOAD-1: two plugins export the same names, one of them a
 * list in which nothing may stand twice. Each sees its own, in either order. */
START_TEST(test_plugin_load_case_49_50_same_names)
{
    const struct hob__plugin *plugins[2] = {NULL};
    hob_error error = HOB_ERROR_INIT;
    int status = twins_seen_by_all();

    ck_assert_msg(WIFSIGNALED(status), "the twins do not disturb each other");
    fixture_mock(&fix, DATA "twin_1.so", "mock_twin_1");
    fixture_mock(&fix, DATA "twin_2.so", "mock_twin_2");
    fixture_backend(&fix, DATA "1.json", "twin-1", "twin_1.so", "");
    fixture_backend(&fix, DATA "2.json", "twin-2", "twin_2.so", "");
    fixture_open(&fix);
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t which = _i ? 1 - i : i;

        ck_assert_msg(!hob__loader_load(fix.loader,
                                        hob__loader_get(fix.loader, which),
                                        &host, &plugins[which], &error),
                      "%s", error.message);
    }
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t answer = 0;

        ck_assert_int_eq(plugins[i]->backend.device_count(NULL, &answer),
                         HOB_OK);
        ck_assert_uint_eq(answer, 10 * (i + 1) + 1);
    }
}
END_TEST

/* Case 46 and LOAD-5. */
START_TEST(test_plugin_load_case_46_fork)
{
    const struct hob__plugin *plugin = NULL;
    hob_error error = HOB_ERROR_INIT;

    place("backend", _i ? "mock_fork" : "mock_backend");
    fixture_open(&fix);
    ck_assert_int_eq(load(&plugin, NULL), HOB_OK);
    fix.process = 1; /* as if this were a child */
    ck_assert_int_eq(load(&plugin, &error), _i ? HOB_OK : HOB_ERR_FORKED);
    if (!_i)
        ck_assert_ptr_nonnull(strstr(error.message, "spawn"));
    ck_assert_int_eq(hob__loader_check_fork(fix.loader, NULL), HOB_ERR_FORKED);
    fix.process = 0;
    hob_error_release(&error);
}
END_TEST

START_TEST(test_plugin_load_failed_init_is_final)
{
    const struct hob__plugin *plugin = NULL;
    hob_error error = HOB_ERROR_INIT;

    place("backend", "mock_backend");
    fixture_open(&fix);
    ck_assert_int_eq(load(&plugin, NULL), HOB_OK);
    hob__loader_refuse(fix.loader, hob__loader_get(fix.loader, 0),
                       HOB__STATE_FAILED_INIT, HOB__REASON_FAILED_INIT,
                       "no device");
    ck_assert_int_eq(load(&plugin, &error), HOB_ERR_PLUGIN);
    ck_assert_ptr_nonnull(strstr(error.message, "FAILED_INIT: it was loaded "
                                                "but could not start: no "
                                                "device"));
    hob_error_release(&error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("plugin_load");
    TCase *tc = tcase_create("plugin_load");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_plugin_load_good, 0,
                        sizeof(goods) / sizeof(goods[0]));
    tcase_add_loop_test(tc, test_plugin_load_refuses, 0,
                        sizeof(bad_plugins) / sizeof(bad_plugins[0]));
    tcase_add_test(tc, test_plugin_load_wrong_version_warns);
    tcase_add_test(tc, test_plugin_load_checks_the_file_first);
    tcase_add_test(tc, test_plugin_load_checks_the_hash);
    tcase_add_test(tc, test_plugin_load_refuses_itself);
    tcase_add_test(tc, test_plugin_load_notices_a_replaced_file);
    tcase_add_test(tc, test_plugin_load_case_69_policy);
    tcase_add_test(tc, test_plugin_load_linked_in);
    tcase_add_test(tc, test_plugin_load_case_44_reentrant);
    tcase_add_test(tc, test_plugin_load_from_many_threads);
    tcase_add_loop_test(tc, test_plugin_load_case_49_50_same_names, 0, 2);
    tcase_add_loop_test(tc, test_plugin_load_case_46_fork, 0, 2);
    tcase_add_test(tc, test_plugin_load_failed_init_is_final);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
