/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the loader is failed in turn (T8): the answer is
 * HOB_ERR_MEMORY, nothing stays open, nothing leaks, and with memory again all
 * works. Under valgrind, where each takes a hundred times as long, it is every
 * seventh. Linked with -Wl,--wrap for malloc and its kin, so the loader itself
 * knows nothing of this test.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "error.h"
#include "install.h"
#include "loader_fixture.h"
#include "package_builder.h"
#include "paths.h"
#include "static_plugins.h"
#include "hob_check.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many allocations still succeed; negative: all. check runs each test in
 * a process of its own. */
static long budget = -1;
static bool has_failed;
/* From one failure to the next: HOB_TEST_STEP, or 1. */
static long step = 1;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
char *__real_realpath(const char *path, char *resolved);
cJSON *__real_cJSON_ParseWithLengthOpts(const char *text, size_t size,
                                        const char **end, cJSON_bool strict);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_realpath(const char *path, char *resolved);
cJSON *__wrap_cJSON_ParseWithLengthOpts(const char *text, size_t size,
                                        const char **end, cJSON_bool strict);

static bool spend(void)
{
    if (budget < 0)
        return true;
    if (budget > 0) {
        budget--;
        return true;
    }
    has_failed = true;
    errno = ENOMEM;
    return false;
}

void *__wrap_malloc(size_t size)
{
    return spend() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return spend() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
    return spend() ? __real_realloc(old, size) : NULL;
}

char *__wrap_strdup(const char *text)
{
    return spend() ? __real_strdup(text) : NULL;
}

char *__wrap_realpath(const char *path, char *resolved)
{
    return spend() ? __real_realpath(path, resolved) : NULL;
}

cJSON *__wrap_cJSON_ParseWithLengthOpts(const char *text, size_t size,
                                        const char **end, cJSON_bool strict)
{
    return spend() ? __real_cJSON_ParseWithLengthOpts(text, size, end, strict)
                   : NULL;
}

#define DATA "usr/share/hob/plugins.d/"

static struct loader_fixture fix;
static const struct hob_host host = {.struct_size = sizeof(host)};

static void setup(void)
{
    fixture_setup(&fix);
    fixture_setenv(&fix, "HOB_ADD_PLUGIN_PATH", fixture_path(&fix, "add"));
    fixture_setenv(&fix, "HOB_UNKNOWN", "1");
    fixture_setenv(&fix, "HOB_PLUGINS_DISABLE", "zz*");
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_write(&fix, "etc/hob/hob.json",
                  "{\"device\": [\"a\"], \"plugins\": {\"disabled\": [\"x\"], "
                  "\"mock\": {\"options\": {\"t\": 1}, \"locked\": true}}, "
                  "\"odd\": 1}");
    fixture_write(&fix, "home/.config/hob/hob.json",
                  "{\"plugins\": {\"mock\": {\"options\": {\"t\": 2}}}}");
    fixture_mock(&fix, DATA "m.so", "mock_backend");
    fixture_backend(&fix, DATA "a.json", "mock", "m.so",
                    ", \"odd\": 1, \"requires\": {\"plugins\": "
                    "{\"deco\": \"*\"}}, \"env\": [\"HOB_MOCK\"]");
    fixture_backend(&fix, DATA "b.json", "mock", "m.so", "");
    fixture_write(&fix, DATA "c.json", "{\"id\": ");
    fixture_write(&fix, DATA "d.json",
                  "{\"manifest_version\":1,\"id\":\"deco\",\"version\":"
                  "\"1.0.0\",\"kind\":\"decorator\",\"abi\":{\"major\":0,"
                  "\"required_minor\":2},\"library\":{\"linux\":[{\"path\":"
                  "\"d.so\",\"cpu\":[]}]},\"decorator\":{\"selector\":\"deco\","
                  "\"options\":{\"c\":[\"a\",\"b\"]}},\"unlisted\":\"pass\"}");
    fixture_write(&fix, DATA "e.json",
                  "{\"manifest_version\":1,\"id\":\"demo\",\"version\":"
                  "\"1.0.0\",\"kind\":\"extension\",\"abi\":{\"major\":0,"
                  "\"required_minor\":2},\"library\":\"e.so\",\"namespace\":"
                  "\"demo\",\"features\":{\"f\":true},\"types\":{\"T\":{}},"
                  "\"ops\":[{\"op\":\"f\",\"signature\":\"(x: Float) -> x\","
                  "\"backends\":[\"a\",{\"selector\":\"b\",\"when\":"
                  "\"feature:f\"}]}],\"implements\":[{\"op\":\"o\","
                  "\"selector\":\"s\"}]}");
}

static void teardown(void)
{
    budget = -1;
    fixture_teardown(&fix);
}

START_TEST(test_alloc_failure_open)
{
    struct hob__loader *loader;
    long i;
    hob_status st;

    for (i = 0;; i += step) {
        hob_error error = HOB_ERROR_INIT;

        has_failed = false;
        budget = i;
        st = hob__loader_open(&fix.options, &fix.os, &loader, &error);
        budget = -1;
        ck_assert_int_eq(fix.open_count, 0);
        if (!has_failed) {
            ck_assert_int_eq(st, HOB_OK);
            ck_assert_uint_eq(hob__loader_count(loader), 5);
            hob__loader_close(loader);
            break;
        }
        /* A message or a log line can be lost without harm, and a path whose
         * realpath fails is refused; all else is HOB_ERR_MEMORY. */
        if (st) {
            ck_assert_int_eq(st, HOB_ERR_MEMORY);
            ck_assert_ptr_null(loader);
            ck_assert_ptr_nonnull(hob__error_text(&error));
        } else {
            hob__loader_close(loader);
        }
        hob_error_release(&error);
    }
    ck_assert_int_gt(i, 50);
}
END_TEST

START_TEST(test_alloc_failure_load)
{
    const struct hob__plugin *plugin;
    hob_status st;
    long i;

    fixture_open(&fix);
    for (i = 0;; i += step) {
        hob_error error = HOB_ERROR_INIT;

        has_failed = false;
        budget = i;
        st = hob__loader_load(fix.loader, hob__loader_get(fix.loader, 0), &host,
                              &plugin, &error);
        budget = -1;
        ck_assert_int_eq(fix.open_count, 0);
        ck_assert_int_eq(fix.library_count, st ? 0 : 1);
        if (!st) {
            ck_assert_ptr_nonnull(plugin);
            break;
        }
        ck_assert_ptr_null(plugin);
        ck_assert_msg(st == HOB_ERR_MEMORY, "%ld: %s", i,
                      hob__error_text(&error));
        hob_error_release(&error);
        /* It stays DISCOVERED, so the next attempt is a new one. */
        ck_assert(hob__candidate_usable(hob__loader_get(fix.loader, 0)));
    }
    ck_assert_int_gt(i, 2);
}
END_TEST

/* The plugin of the folder "src" as "src.hobx". */
static void pack_source(void)
{
    static const char *const paths[] = {"manifest.json", "m.so"};
    char *manifest = fixture_manifest("mock", "m.so", "");
    char *library = malloc(1 << 20);
    FILE *file = fopen(fixture_path(&fix, "src/m.so"), "rb");
    const void *contents[2] = {manifest, library};
    struct built_package built;
    size_t sizes[2];

    ck_assert_ptr_nonnull(file);
    sizes[0] = strlen(manifest);
    sizes[1] = fread(library, 1, 1 << 20, file);
    (void)fclose(file);
    built = build_package("mock", "1.0.0", fix.os.triple, 2, paths, contents,
                          sizes, NULL);
    fixture_write_bytes(&fix, "src.hobx", built.data, built.size);
    free(built.data);
    free(library);
    free(manifest);
}

START_TEST(test_alloc_failure_install)
{
    char *json;
    hob_status st;
    long i;

    fixture_mock(&fix, "src/m.so", "mock_backend");
    fixture_backend(&fix, "src/m.json", "mock", "m.so", "");
    pack_source();
    for (i = 0;; i += step) {
        hob_error error = HOB_ERROR_INIT;

        has_failed = false;
        budget = i;
        st = hob__install(&fix.os, NULL,
                          fixture_path(&fix, _i ? "src.hobx" : "src"),
                          HOB_INSTALL_USER, &json, &error);
        budget = -1;
        ck_assert_int_eq(fix.open_count, 0);
        if (!st)
            break;
        ck_assert_ptr_null(json);
        hob_error_release(&error);
    }
    ck_assert_ptr_nonnull(json);
    free(json);
    ck_assert_int_gt(i, 10);
}
END_TEST

START_TEST(test_alloc_failure_enable)
{
    const char *path = fixture_path(&fix, "home/.config/hob/hob.json");
    char *json, *text;
    size_t size;
    hob_status st;
    long i;

    for (i = 0;; i += step) {
        struct hob_os_stat stat;
        enum hob__reason reason;

        has_failed = false;
        budget = i;
        st = hob__set_enabled(&fix.os, fix.options.sysconf_dir, "deco",
                              HOB_INSTALL_USER, false, &json, NULL);
        budget = -1;
        ck_assert_int_eq(fix.open_count, 0);
        ck_assert_int_eq(hob__file_read(&fix.os, path, 1 << 20, &text, &size,
                                        &stat, &reason, NULL),
                         HOB_OK);
        if (!st)
            break;
        ck_assert(has_failed);
        ck_assert_ptr_null(json);
        free(text);
    }
    ck_assert_ptr_nonnull(json);
    text[size - 1] = '\0';
    ck_assert_ptr_nonnull(strstr(text, "\"deco\": {\"enabled\": false}"));
    free(text);
    free(json);
    ck_assert_int_gt(i, 20);
}
END_TEST

START_TEST(test_alloc_failure_reports)
{
    char *text;
    long i;

    fixture_open(&fix);
    for (i = 0;; i += step) {
        hob_status st;

        budget = i;
        st = hob__loader_summary(fix.loader, &text);
        if (!st)
            free(text);
        budget = i;
        st = st ? st : hob__loader_why(fix.loader, "gone", &text);
        budget = -1;
        if (!st)
            break;
        ck_assert_int_eq(st, HOB_ERR_MEMORY);
        ck_assert_ptr_null(text);
    }
    free(text);
}
END_TEST

/* ---- the runtime ---- */

static uint32_t told;

static void on_panic(void *context, hob_status status, const char *op,
                     const char *message)
{
    (void)context;
    (void)op;
    /* No assertions here: they need memory. */
    told += status == HOB_ERR_MEMORY && message;
}

static hob_status open_runtime(hob_runtime **out_runtime, hob_error *error)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.on_panic = on_panic;
    options.exclusive = 1;
    options.static_plugins = test_static_plugins;
    options.static_plugin_count = test_static_plugin_count;
    options.threads = 1;
    options.debug = 1; /* every handle an allocation */
    return hob_runtime_open(&options, out_runtime, error);
}

START_TEST(test_alloc_failure_runtime)
{
    hob_runtime *runtime;

    for (long i = 0;; i += step) {
        hob_error error = HOB_ERROR_INIT;
        hob_status st;

        has_failed = false;
        budget = i;
        st = open_runtime(&runtime, &error);
        budget = -1;
        if (st)
            ck_assert_ptr_null(runtime);
        hob_error_release(&error);
        ck_assert_int_eq(hob_runtime_close(runtime, NULL), HOB_OK);
        if (!has_failed)
            break;
    }
}
END_TEST

/* Memory that was short when an op was first called is not short for ever. */
START_TEST(test_alloc_failure_of_a_route_passes)
{
    for (long i = 0;; i += step) {
        struct hob_op_ref twice = {"t.double", 0};
        hob_runtime *runtime = NULL;
        hob_device *device = NULL;
        hob_scope *scope;
        hob_value arg;
        hob_tensor *y;
        uint32_t op;

        ck_assert_int_eq(open_runtime(&runtime, NULL), HOB_OK);
        ck_assert_int_eq(hob_device_open(runtime, "calc", &device, NULL),
                         HOB_OK);
        scope = hob_scope_open(runtime);
        op = hob_op_resolve(scope, &twice);
        arg = hob_value_tensor(hob_ones(scope, NULL, 0, device, HOB_DTYPE_F32));
        has_failed = false;
        budget = i;
        (void)hob_scope_host(scope)->call1(scope, op, &arg, 1);
        budget = -1;
        hob_scope_clear_error(scope);
        y = hob_scope_host(scope)->call1(scope, op, &arg, 1);
        ck_assert_msg(!hob_tensor_status(y, NULL), "after %ld allocations", i);
        hob_scope_close(scope);
        hob_device_unref(device);
        ck_assert_int_eq(hob_runtime_close(runtime, NULL), HOB_OK);
        if (!has_failed)
            break;
    }
}
END_TEST

/* The policy is told of a failure that there is no memory to describe. */
START_TEST(test_alloc_failure_is_told)
{
    hob_runtime *runtime = NULL;
    hob_device *device = NULL;
    hob_scope *scope;
    hob_tensor *x;

    ck_assert_int_eq(open_runtime(&runtime, NULL), HOB_OK);
    ck_assert_int_eq(hob_device_open(runtime, "calc", &device, NULL), HOB_OK);
    for (long i = 0; i < 8; i++) {
        scope = hob_scope_open(runtime);
        x = hob_ones(scope, NULL, 0, device, HOB_DTYPE_F32);
        told = 0;
        has_failed = false;
        budget = i;
        x = hob_add(scope, x, x);
        budget = -1;
        ck_assert_uint_eq(told, has_failed);
        ck_assert_int_eq(hob_scope_error(scope, NULL),
                         has_failed ? HOB_ERR_MEMORY : HOB_OK);
        ck_assert_int_eq(hob_tensor_status(x, NULL),
                         has_failed ? HOB_ERR_MEMORY : HOB_OK);
        /* What is forgotten stays what it was. */
        budget = 0;
        hob_scope_clear_error(scope);
        budget = -1;
        ck_assert_int_eq(hob_scope_error(scope, NULL), HOB_OK);
        ck_assert_int_eq(hob_tensor_status(x, NULL),
                         has_failed ? HOB_ERR_MEMORY : HOB_OK);
        hob_scope_close(scope);
    }
    hob_device_unref(device);
    ck_assert_int_eq(hob_runtime_close(runtime, NULL), HOB_OK);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("alloc_failure");
    TCase *tc = tcase_create("alloc_failure");
    SRunner *runner;
    const char *text = getenv("HOB_TEST_STEP");
    int failed;

    if (text && atol(text) > 0)
        step = atol(text);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_test(tc, test_alloc_failure_open);
    tcase_add_test(tc, test_alloc_failure_load);
    tcase_add_loop_test(tc, test_alloc_failure_install, 0, 2);
    tcase_add_test(tc, test_alloc_failure_enable);
    tcase_add_test(tc, test_alloc_failure_reports);
    tcase_add_test(tc, test_alloc_failure_runtime);
    tcase_add_test(tc, test_alloc_failure_of_a_route_passes);
    tcase_add_test(tc, test_alloc_failure_is_told);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
