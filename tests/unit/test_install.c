/* SPDX-License-Identifier: Apache-2.0 */
/* Installing and removing plugins. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "install.h"
#include "loader_fixture.h"
#include "package_builder.h"
#include "hob_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct loader_fixture fix;
static const struct hob_host host = {.struct_size = sizeof(host)};

static void setup(void)
{
    fixture_setup(&fix);
    fixture_setenv(&fix, "XDG_DATA_HOME", fixture_path(&fix, "user"));
    fixture_mock(&fix, "src/lib/m.so", "mock_backend");
    fixture_backend(&fix, "src/plugin.json", "mock", "lib/m.so",
                    ", \"vendor\": \"me\"");
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

static bool exists(const char *path)
{
    return access(fixture_path(&fix, path), F_OK) == 0;
}

static hob_status install(const char *path, uint32_t where, char **out_json,
                          hob_error *error)
{
    return hob__install(&fix.os, fixture_path(&fix, "data"),
                        fixture_path(&fix, path), where, out_json, error);
}

START_TEST(test_install_for_the_user_and_load)
{
    const struct hob__plugin *plugin = NULL;
    hob_error error = HOB_ERROR_INIT;
    char *json = NULL;
    hob_status st = install(_i ? "src/plugin.json" : "src", HOB_INSTALL_USER,
                            &json, &error);

    ck_assert_msg(!st, "%s", error.message);
    ck_assert_ptr_nonnull(strstr(json, "\"id\": \"mock\""));
    ck_assert_ptr_nonnull(strstr(json, "user/hob/lib/mock/m.so"));
    free(json);
    ck_assert(exists("user/hob/plugins.d/mock.json"));
    ck_assert(exists("user/hob/lib/mock/m.so"));
    /* A second time replaces it. */
    ck_assert_int_eq(install("src", HOB_INSTALL_USER, NULL, NULL), HOB_OK);
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 1);
    ck_assert_int_eq(hob__loader_load(fix.loader,
                                      hob__loader_get(fix.loader, 0), &host,
                                      &plugin, NULL),
                     HOB_OK);
    ck_assert_str_eq(plugin->manifest->vendor, "me");
    ck_assert_ptr_nonnull(strstr(plugin->path, "user/hob/lib/mock/m.so"));
    ck_assert_int_eq(
        hob__remove(&fix.os, NULL, "mock", HOB_INSTALL_USER, NULL, NULL),
        HOB_OK);
    ck_assert(!exists("user/hob/plugins.d/mock.json"));
    ck_assert(!exists("user/hob/lib/mock"));
    ck_assert_int_eq(
        hob__remove(&fix.os, NULL, "mock", HOB_INSTALL_USER, NULL, &error),
        HOB_ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(error.message, "mock is not installed"));
    hob_error_release(&error);
}
END_TEST

START_TEST(test_install_for_the_system)
{
    ck_assert_int_eq(install("src", HOB_INSTALL_SYSTEM, NULL, NULL), HOB_OK);
    ck_assert(exists("data/hob/plugins.d/mock.json"));
    ck_assert(exists("data/hob/lib/mock/m.so"));
    ck_assert_int_eq(hob__remove(&fix.os, fixture_path(&fix, "data"), "mock",
                                 HOB_INSTALL_SYSTEM, NULL, NULL),
                     HOB_OK);
    ck_assert(!exists("data/hob/plugins.d/mock.json"));
}
END_TEST

START_TEST(test_install_root_has_to_choose)
{
    hob_error error = HOB_ERROR_INIT;

    fix.user = 0;
    ck_assert_int_eq(install("src", HOB_INSTALL_DEFAULT, NULL, &error),
                     HOB_ERR_ARGUMENT);
    ck_assert_str_eq(error.message, "root has to choose: --user or --system");
    hob_error_release(&error);
    fix.user = 1000;
    ck_assert_int_eq(install("src", HOB_INSTALL_DEFAULT, NULL, NULL), HOB_OK);
}
END_TEST

static const struct bad_source {
    const char *library; /* content of lib/m.so, or NULL: leave it */
    const char *more;
    const char *path;
    hob_status status;
    const char *message;
} bad_sources[] = {
    {"x", "", "src", HOB_ERR_PLUGIN, "too short for a shared library"},
    {NULL, ", \"requires\": {\"host\": [\"moon\"]}", "src", HOB_ERR_PLUGIN,
     "REQUIRES_HOST: it requires a feature that this Hob lacks: moon"},
    {NULL, ", \"priority\": 5000", "src", HOB_ERR_FORMAT, "/priority: 5000"},
    {NULL, "", "src/lib", HOB_ERR_NOT_FOUND, "no manifest (*.json)"},
    {NULL, "", "gone", HOB_ERR_IO, "no such file or folder"},
    {NULL,
     ", \"sha256\": \"0000000000000000000000000000000000000000000000000"
     "000000000000000\"",
     "src", HOB_ERR_PLUGIN, "its SHA-256 is"},
};

START_TEST(test_install_checks_first)
{
    const struct bad_source *bad = &bad_sources[_i];
    hob_error error = HOB_ERROR_INIT;

    if (bad->library)
        fixture_write(&fix, "src/lib/m.so", bad->library);
    fixture_backend(&fix, "src/plugin.json", "mock", "lib/m.so", bad->more);
    ck_assert_int_eq(install(bad->path, HOB_INSTALL_USER, NULL, &error),
                     bad->status);
    ck_assert_msg(strstr(error.message, bad->message), "got \"%s\"",
                  error.message);
    ck_assert(!exists("user"));
    ck_assert_int_eq(fix.open_count, 0);
    hob_error_release(&error);
}
END_TEST

static int no_rename(void *self, const char *from, const char *to)
{
    if (strstr(to, ".json"))
        return -ENOSPC;
    return hob__os()->rename(self, from, to);
}

static int64_t no_write(void *self, int fd, const void *buffer, size_t size)
{
    (void)self;
    (void)fd;
    (void)buffer;
    (void)size;
    return -ENOSPC;
}

/* A full disk at any step leaves nothing behind. */
START_TEST(test_install_undoes_what_it_did)
{
    hob_error error = HOB_ERROR_INIT;

    if (_i)
        fix.os.rename = no_rename;
    else
        fix.os.write = no_write;
    ck_assert_int_eq(install("src", HOB_INSTALL_USER, NULL, &error),
                     HOB_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "no space left"));
    ck_assert(!exists("user/hob/plugins.d/mock.json"));
    ck_assert(!exists("user/hob/lib/mock/m.so"));
    ck_assert_int_eq(rmdir(fixture_path(&fix, "user/hob/lib/mock")), 0);
    ck_assert_int_eq(rmdir(fixture_path(&fix, "user/hob/plugins.d")), 0);
    hob_error_release(&error);
}
END_TEST

START_TEST(test_install_keeps_a_given_hash)
{
    hob_error error = HOB_ERROR_INIT;
    const struct hob__plugin *plugin = NULL;
    char more[256], *start;

    /* Learn the hash from the refusal. */
    fixture_backend(&fix, "src/plugin.json", "mock", "lib/m.so",
                    bad_sources[5].more);
    ck_assert_int_eq(install("src", HOB_INSTALL_USER, NULL, &error),
                     HOB_ERR_PLUGIN);
    start = strstr(error.message, "SHA-256 is ") + 11;
    (void)snprintf(more, sizeof(more), ", \"sha256\": \"%.64s\"", start);
    hob_error_release(&error);
    fixture_backend(&fix, "src/plugin.json", "mock", "lib/m.so", more);
    ck_assert_int_eq(install("src", HOB_INSTALL_USER, NULL, NULL), HOB_OK);
    fixture_open(&fix);
    ck_assert_ptr_nonnull(hob__loader_get(fix.loader, 0)->sha256);
    ck_assert_int_eq(hob__loader_load(fix.loader,
                                      hob__loader_get(fix.loader, 0), &host,
                                      &plugin, NULL),
                     HOB_OK);
}
END_TEST

START_TEST(test_install_remove_takes_ids_only)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_int_eq(
        hob__remove(&fix.os, NULL, "../x", HOB_INSTALL_USER, NULL, &error),
        HOB_ERR_ARGUMENT);
    ck_assert_ptr_nonnull(strstr(error.message, "is no id"));
    hob_error_release(&error);
}
END_TEST

/* Where somebody has put a link for the folder, what it names stays. */
START_TEST(test_install_remove_follows_no_link)
{
    ck_assert_int_eq(install("src", HOB_INSTALL_USER, NULL, NULL), HOB_OK);
    ck_assert(!rename(fixture_path(&fix, "user/hob/lib/mock"),
                      fixture_path(&fix, "elsewhere")));
    ck_assert(!symlink(fixture_path(&fix, "elsewhere"),
                       fixture_path(&fix, "user/hob/lib/mock")));
    ck_assert_int_eq(
        hob__remove(&fix.os, NULL, "mock", HOB_INSTALL_USER, NULL, NULL),
        HOB_OK);
    ck_assert(!exists("user/hob/plugins.d/mock.json"));
    ck_assert(!exists("user/hob/lib/mock"));
    ck_assert(exists("elsewhere/m.so"));
}
END_TEST

/* A lock that is no file is told by its name, and nobody waits for it. */
START_TEST(test_install_refuses_other_locks)
{
    const char *path = fixture_path(&fix, "user/hob/.lock");
    hob_error error = HOB_ERROR_INIT;

    ck_assert_int_eq(install("src", HOB_INSTALL_USER, NULL, NULL), HOB_OK);
    ck_assert(!unlink(path));
    ck_assert(!(_i ? symlink("/dev/null", path) : mkfifo(path, 0600)));
    ck_assert_int_eq(install("src", HOB_INSTALL_USER, NULL, &error),
                     HOB_ERR_IO);
    ck_assert_msg(strstr(error.message, "user/hob/.lock: "), "%s",
                  error.message);
    hob_error_release(&error);
}
END_TEST

/* A damaged plugin goes as well, and takes no other with it. */
START_TEST(test_install_remove_needs_no_manifest)
{
    static const char *const texts[] = {"", "{", "{\"id\": 1}"};
    char *other = fixture_manifest("other", "../lib/mock/m.so", "");
    const char *text = _i < 3 ? texts[_i] : other;
    hob_error error = HOB_ERROR_INIT;
    char *json = NULL;
    hob_status st;

    ck_assert_int_eq(install("src", HOB_INSTALL_USER, NULL, NULL), HOB_OK);
    fixture_write(&fix, "user/hob/plugins.d/other.json", "kept");
    fixture_write(&fix, "user/hob/lib/other/o.so", "kept");
    fixture_write(&fix, "user/hob/plugins.d/mock.json", text);
    st = hob__remove(&fix.os, NULL, "mock", HOB_INSTALL_USER, &json, &error);
    ck_assert_msg(!st, "%s", error.message);
    ck_assert_ptr_nonnull(strstr(json, "\"id\": \"mock\", \"version\": null"));
    ck_assert(!exists("user/hob/plugins.d/mock.json"));
    ck_assert(!exists("user/hob/lib/mock"));
    ck_assert(exists("user/hob/plugins.d/other.json"));
    ck_assert(exists("user/hob/lib/other/o.so"));
    free(json);
    free(other);
}
END_TEST

/* ---- packages ---- */

static char *read_mock(size_t *out_size)
{
    FILE *file = fopen(fixture_path(&fix, "src/lib/m.so"), "rb");
    char *data = malloc(1 << 20);

    ck_assert_ptr_nonnull(file);
    *out_size = fread(data, 1, 1 << 20, file);
    ck_assert_uint_lt(*out_size, 1 << 20);
    (void)fclose(file);
    return data;
}

/* Write "p.hobx" whose index says ID and PLATFORM, whose manifest is that of
 * "mock" with LIBRARY, and which holds the mock as "lib/m.so", of SIZE bytes
 * if that is not 0. */
static void write_package(const char *id, const char *platform,
                          const char *library, size_t size)
{
    static const char *const paths[] = {"manifest.json", "lib/m.so"};
    char *manifest = fixture_manifest("mock", library, "");
    size_t sizes[2];
    const void *contents[2];
    struct built_package built;

    contents[0] = manifest;
    sizes[0] = strlen(manifest);
    contents[1] = read_mock(&sizes[1]);
    if (size)
        sizes[1] = size;
    built =
        build_package(id, "1.0.0", platform, 2, paths, contents, sizes, NULL);
    fixture_write_bytes(&fix, "p.hobx", built.data, built.size);
    free(built.data);
    free((void *)contents[1]);
    free(manifest);
}

START_TEST(test_install_a_package)
{
    const struct hob__plugin *plugin = NULL;
    hob_error error = HOB_ERROR_INIT;
    char *json = NULL;
    hob_status st;

    write_package("mock", fix.os.triple, "lib/m.so", 0);
    st = install("p.hobx", HOB_INSTALL_USER, &json, &error);
    ck_assert_msg(!st, "%s", error.message);
    ck_assert_ptr_nonnull(strstr(json, "user/hob/lib/mock/m.so"));
    free(json);
    ck_assert_int_eq(fix.open_count, 0);
    fixture_open(&fix);
    ck_assert_int_eq(hob__loader_load(fix.loader,
                                      hob__loader_get(fix.loader, 0), &host,
                                      &plugin, NULL),
                     HOB_OK);
    ck_assert_ptr_nonnull(strstr(plugin->path, "user/hob/lib/mock/m.so"));
}
END_TEST

static const struct bad_package {
    const char *id;
    const char *platform; /* NULL: this one */
    const char *library;
    size_t size; /* of the library; 0: all of it */
    hob_status status;
    const char *message;
} bad_packages[] = {
    {"other", NULL, "lib/m.so", 0, HOB_ERR_FORMAT,
     "its index is that of other 1.0.0, its manifest that of mock 1.0.0"},
    {"mock", "windows-x86_64", "lib/m.so", 0, HOB_ERR_PLUGIN,
     "p.hobx: it is for windows-x86_64, this is linux"},
    {"mock", NULL, "lib/n.so", 0, HOB_ERR_PLUGIN, "is not in the package"},
    {"mock", NULL, "/lib/m.so", 0, HOB_ERR_PLUGIN, "is not in the package"},
    {"mock", NULL, "../lib/m.so", 0, HOB_ERR_PLUGIN, "is not in the package"},
    {"mock", NULL, "manifest.json", 0, HOB_ERR_PLUGIN,
     "p.hobx/manifest.json: not an ELF file"},
    {"mock", NULL, "lib/m.so", 30, HOB_ERR_PLUGIN,
     "p.hobx/lib/m.so: too short for a shared library"},
    {"mock", NULL, "lib/m.so", 900, HOB_ERR_PLUGIN, "p.hobx/lib/m.so: damaged"},
};

START_TEST(test_install_checks_packages_first)
{
    const struct bad_package *bad = &bad_packages[_i];
    hob_error error = HOB_ERROR_INIT;

    write_package(bad->id, bad->platform ? bad->platform : fix.os.triple,
                  bad->library, bad->size);
    ck_assert_int_eq(install("p.hobx", HOB_INSTALL_USER, NULL, &error),
                     bad->status);
    ck_assert_msg(strstr(error.message, bad->message), "got \"%s\"",
                  error.message);
    ck_assert(!exists("user"));
    ck_assert_int_eq(fix.open_count, 0);
    hob_error_release(&error);
}
END_TEST

START_TEST(test_install_a_package_undoes_what_it_did)
{
    hob_error error = HOB_ERROR_INIT;

    write_package("mock", fix.os.triple, "lib/m.so", 0);
    if (_i)
        fix.os.rename = no_rename;
    else
        fix.os.write = no_write;
    ck_assert_int_eq(install("p.hobx", HOB_INSTALL_USER, NULL, &error),
                     HOB_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "no space left"));
    ck_assert_int_eq(rmdir(fixture_path(&fix, "user/hob/lib/mock")), 0);
    ck_assert_int_eq(rmdir(fixture_path(&fix, "user/hob/plugins.d")), 0);
    ck_assert_int_eq(fix.open_count, 0);
    hob_error_release(&error);
}
END_TEST

static struct hob_os_ops whole_os; /* the fixture's, before it was changed */

/* Somebody exchanges the package between the check and the copy. */
static int create_and_change(void *self, const char *path,
                             enum hob_os_create how, uint32_t mode)
{
    if (strstr(path, "m.so.new")) {
        FILE *file = fopen(fixture_path(&fix, "p.hobx"), "r+b");

        ck_assert_ptr_nonnull(file);
        ck_assert_int_eq(fseek(file, -2000, SEEK_END), 0);
        ck_assert_int_eq(fputc('!', file), '!');
        (void)fclose(file);
    }
    return whole_os.create(self, path, how, mode);
}

START_TEST(test_install_copies_what_it_checked)
{
    hob_error error = HOB_ERROR_INIT;

    write_package("mock", fix.os.triple, "lib/m.so", 0);
    whole_os = fix.os;
    fix.os.create = create_and_change;
    ck_assert_int_eq(install("p.hobx", HOB_INSTALL_USER, NULL, &error),
                     HOB_ERR_IO);
    ck_assert(!exists("user/hob/plugins.d/mock.json"));
    ck_assert_int_eq(rmdir(fixture_path(&fix, "user/hob/lib/mock")), 0);
    hob_error_release(&error);
}
END_TEST

START_TEST(test_install_takes_plugins_only)
{
    hob_error error = HOB_ERROR_INIT;

    fixture_mock(&fix, "src/lib/m.so", "mock_no_entry");
    ck_assert_int_eq(install("src", HOB_INSTALL_USER, NULL, &error),
                     HOB_ERR_PLUGIN);
    ck_assert_ptr_nonnull(strstr(error.message, "does not export"));
    ck_assert(!exists("user"));
    hob_error_release(&error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("install");
    TCase *tc = tcase_create("install");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_install_for_the_user_and_load, 0, 2);
    tcase_add_test(tc, test_install_for_the_system);
    tcase_add_test(tc, test_install_root_has_to_choose);
    tcase_add_loop_test(tc, test_install_checks_first, 0,
                        sizeof(bad_sources) / sizeof(bad_sources[0]));
    tcase_add_loop_test(tc, test_install_undoes_what_it_did, 0, 2);
    tcase_add_test(tc, test_install_keeps_a_given_hash);
    tcase_add_test(tc, test_install_remove_takes_ids_only);
    tcase_add_test(tc, test_install_remove_follows_no_link);
    tcase_add_loop_test(tc, test_install_refuses_other_locks, 0, 2);
    tcase_add_loop_test(tc, test_install_remove_needs_no_manifest, 0, 4);
    tcase_add_test(tc, test_install_a_package);
    tcase_add_loop_test(tc, test_install_checks_packages_first, 0,
                        sizeof(bad_packages) / sizeof(bad_packages[0]));
    tcase_add_loop_test(tc, test_install_a_package_undoes_what_it_did, 0, 2);
    tcase_add_test(tc, test_install_copies_what_it_checked);
    tcase_add_test(tc, test_install_takes_plugins_only);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
