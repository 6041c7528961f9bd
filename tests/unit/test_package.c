/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of packages: it takes what hob-sdk pack writes, and nothing else.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "hob_check.h"

#include "loader_fixture.h"
#include "package.h"
#include "package_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loader_fixture fix;

static const char manifest[] = "{\"id\": \"x\"}";
static const char library[700] = "seven hundred bytes, most of them zero";
static const char *const good_paths[] = {"manifest.json", "lib/a.so", "z.so"};
static const void *const good_contents[] = {manifest, library, ""};
static const size_t good_sizes[] = {sizeof(manifest) - 1, sizeof(library), 0};

static struct built_package good(void)
{
    return build_package("acme.scale", "1.2.3", "linux-x86_64-gnu", 3,
                         good_paths, good_contents, good_sizes, NULL);
}

static void setup(void)
{
    fixture_setup(&fix);
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

/* Write DATA as a file and open it. */
static hob_status open_bytes(const void *data, size_t size,
                             struct hob__package **out_package,
                             hob_error *error)
{
    fixture_write_bytes(&fix, "p.hobx", data, size);
    return hob__package_open(&fix.os, fixture_path(&fix, "p.hobx"), out_package,
                             error);
}

static void expect_refused(const void *data, size_t size, const char *message)
{
    struct hob__package *package = (void *)1;
    hob_error error = HOB_ERROR_INIT;
    hob_status st = open_bytes(data, size, &package, &error);

    ck_assert_int_eq(st, HOB_ERR_FORMAT);
    ck_assert_ptr_null(package);
    ck_assert_msg(strstr(error.message, message) != NULL,
                  "\"%s\" expected in \"%s\"", message, error.message);
    ck_assert_msg(strstr(error.message, "p.hobx") != NULL, "%s", error.message);
    ck_assert_int_eq(fix.open_count, 0);
    hob_error_release(&error);
}

START_TEST(test_package_reads_what_was_written)
{
    struct built_package built = good();
    struct hob__package *package = NULL;
    struct hob__package_view view;
    char bytes[1024];
    hob_error error = HOB_ERROR_INIT;
    hob_status st = open_bytes(built.data, built.size, &package, &error);

    ck_assert_msg(!st, "%s", error.message);
    ck_assert_str_eq(package->id, "acme.scale");
    ck_assert_str_eq(package->version, "1.2.3");
    ck_assert_str_eq(package->platform, "linux-x86_64-gnu");
    ck_assert_uint_eq(package->count, 3);
    ck_assert_ptr_null(hob__package_find(package, "a.so"));
    hob__package_view(package, hob__package_find(package, "lib/a.so"), &view);
    /* A file of a package ends where it ends. */
    ck_assert_int_eq(view.os.read(view.os.self, package->fd, bytes, 1024, 0),
                     700);
    ck_assert_mem_eq(bytes, library, 700);
    ck_assert_int_eq(view.os.read(view.os.self, package->fd, bytes, 9, 695), 5);
    ck_assert_int_eq(view.os.read(view.os.self, package->fd, bytes, 9, 700), 0);
    ck_assert_int_eq(
        view.os.read(view.os.self, package->fd, bytes, 9, UINT64_MAX), 0);
    hob__package_view(package, hob__package_find(package, "z.so"), &view);
    ck_assert_int_eq(view.os.read(view.os.self, package->fd, bytes, 9, 0), 0);
    hob__package_close(package);
    hob__package_close(NULL);
    ck_assert_int_eq(fix.open_count, 0);
    free(built.data);
}
END_TEST

/* A package in memory: thousands are opened. */
static int64_t read_memory(void *self, int fd, void *buffer, size_t size,
                           uint64_t offset)
{
    const struct built_package *built = self;
    size_t left = offset < built->size ? built->size - (size_t)offset : 0;

    (void)fd;
    size = size < left ? size : left;
    memcpy(buffer, built->data + (built->size - left), size);
    return (int64_t)size;
}

static int stat_memory(void *self, int fd, struct hob_os_stat *out_stat)
{
    const struct built_package *built = self;

    (void)fd;
    memset(out_stat, 0, sizeof(*out_stat));
    out_stat->type = HOB_OS_REGULAR;
    out_stat->size = built->size;
    return 0;
}

static int open_memory(void *self, const char *path)
{
    (void)self;
    (void)path;
    return 7;
}

static void close_memory(void *self, int fd)
{
    (void)self;
    ck_assert_int_eq(fd, 7);
}

/* No byte of it can be another one, and none can be missing. */
START_TEST(test_package_refuses_every_change)
{
    struct built_package built = good();
    const size_t whole = built.size;
    struct hob__package *package = NULL;
    struct hob_os_ops os = fix.os;

    os.self = &built;
    os.open_read = open_memory;
    os.read = read_memory;
    os.file_stat = stat_memory;
    os.close = close_memory;
    ck_assert_int_eq(hob__package_open(&os, "p", &package, NULL), HOB_OK);
    hob__package_close(package);
    for (size_t i = 0; i < whole; i++) {
        built.data[i] ^= 0xff;
        ck_assert_msg(hob__package_open(&os, "p", &package, NULL) ==
                          HOB_ERR_FORMAT,
                      "byte %zu was changed", i);
        built.data[i] ^= 0xff;
        built.size = i;
        ck_assert_msg(hob__package_open(&os, "p", &package, NULL) ==
                          HOB_ERR_FORMAT,
                      "cut after byte %zu", i);
        built.size = whole;
    }
    free(built.data);
}
END_TEST

static const struct bad_path {
    const char *path;
    const char *message;
} bad_paths[] = {
    {"/etc/passwd", "the path \"/etc/passwd\" is absolute"},
    {"../x.so", "leads out of its folder"},
    {"a/../../x.so", "leads out of its folder"},
    {"a/..", "leads out of its folder"},
    {"./x.so", "an empty part or \".\""},
    {"a//x.so", "an empty part or \".\""},
    {"a/", "an empty part or \".\""},
    {"", "is empty"},
    {"C:\\x.dll", "none of A-Z"},
    {"a b", "none of A-Z"},
    {"system:x", "none of A-Z"},
    {"\xc3\xa4.so", "none of A-Z"},
    {"lib/a.so", "there twice, or out of order"},
    {"a.so", "there twice, or out of order"},
    {"manifest.json", "the first file is manifest.json, and no other"},
    {"hob-package.json", "there twice, or out of order"},
    {"x123456789x123456789x123456789x123456789x123456789x123456789x123456789"
     "x123456789x123456789x123456789",
     "is longer than 99 bytes"},
};

START_TEST(test_package_refuses_paths)
{
    const struct bad_path *bad = &bad_paths[_i];
    struct hob__package_file files[3];
    struct hob__package package;
    struct built_package built;
    char *index;

    memset(&package, 0, sizeof(package));
    memset(files, 0, sizeof(files));
    package.id = package.version = package.platform = "x";
    package.files = files;
    package.count = 3;
    for (int i = 0; i < 3; i++) {
        files[i].path = i < 2 ? good_paths[i] : bad->path;
        files[i].size = good_sizes[i];
        memset(files[i].sha256, '0', 64);
    }
    /* The index decides, before a file is looked at. */
    index = hob__package_index(&package);
    built = build_package("x", "x", "x", 3, good_paths, good_contents,
                          good_sizes, index);
    free(index);
    expect_refused(built.data, built.size, bad->message);
    free(built.data);
}
END_TEST

#define INDEX_HEAD                                                             \
    "{\"hob_package\": 1, \"id\": \"a\", \"version\": \"b\", \"platform\": "   \
    "\"c\", \"files\": "
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"

static const struct bad_index {
    const char *index;
    const char *message;
} bad_indexes[] = {
    {"", "p.hobx/hob-package.json:1:1: "},
    {"[]", "object expected"},
    {"{}", "\"hob_package\" is missing"},
    {"{\"hob_package\": 2}", "a package of format 2, this Hob reads 1"},
    {"{\"hob_package\": 1}", "\"id\" is missing"},
    {INDEX_HEAD "[]}", "1 to 64 files expected"},
    {INDEX_HEAD "{}}", "1 to 64 files expected"},
    {INDEX_HEAD "[{}], \"more\": 1}", "nothing else"},
    {INDEX_HEAD "[7]}", "object expected"},
    {INDEX_HEAD "[{\"path\": \"manifest.json\", \"size\": 1}]}",
     "\"sha256\" is missing"},
    {INDEX_HEAD "[{\"path\": \"manifest.json\", \"size\": 1, \"sha256\": "
                "\"" ZEROS "\", \"mode\": 4}]}",
     "nothing else"},
    {INDEX_HEAD "[{\"path\": \"manifest.json\", \"size\": -1, \"sha256\": "
                "\"" ZEROS "\"}]}",
     "/files/0/size: "},
    {INDEX_HEAD "[{\"path\": \"manifest.json\", \"size\": 8589934592, "
                "\"sha256\": \"" ZEROS "\"}]}",
     "/files/0/size: "},
    {INDEX_HEAD "[{\"path\": \"manifest.json\", \"size\": 8589934591, "
                "\"sha256\": \"" ZEROS "\"}]}",
     "manifest.json has not the size that the index says"},
    {INDEX_HEAD "[{\"path\": \"manifest.json\", \"size\": 11, \"sha256\": "
                "\"A" ZEROS "\"}]}",
     "sha256 is 64 of 0-9 a-f"},
    {INDEX_HEAD "[{\"path\": \"manifest.json\", \"size\": 11, \"sha256\": "
                "\"" ZEROS "\"}]}",
     "manifest.json is damaged: its SHA-256 is "},
    {INDEX_HEAD "[{\"path\": \"x.so\", \"size\": 11, \"sha256\": "
                "\"" ZEROS "\"}]}",
     "the first file is manifest.json"},
};

START_TEST(test_package_refuses_indexes)
{
    const struct bad_index *bad = &bad_indexes[_i];
    struct built_package built = build_package(
        "a", "b", "c", 1, good_paths, good_contents, good_sizes, bad->index);

    expect_refused(built.data, built.size, bad->message);
    free(built.data);
}
END_TEST

/* Give the header at OFFSET the sum that it should have. */
static void fix_sum(unsigned char *header)
{
    unsigned sum = 0;
    char text[8];

    memset(header + 148, ' ', 8);
    for (int i = 0; i < HOB__PACKAGE_BLOCK; i++)
        sum += header[i];
    (void)snprintf(text, sizeof(text), "%06o", sum);
    memcpy(header + 148, text, 7);
}

/* Headers that tar would take: the offset in the second member's header, what
 * stands there, and what the message says. */
static const struct bad_header {
    size_t at;
    const char *bytes;
    size_t length;
    const char *message;
} bad_headers[] = {
    {156, "2", 1, "manifest.json is no plain file but a link"},
    {156, "1", 1, "manifest.json is no plain file but a link"},
    {156, "5", 1, "manifest.json is no plain file but a link"},
    {0, "../../.bashrc", 14, "stands \"../../.bashrc\""},
    {0, "/etc/x\0\0\0\0\0\0\0", 13, "stands \"/etc/x\""},
    {0, "\033[2Jx", 6, "stands \"?[2Jx\""},
    {124, "77777777777", 11, "manifest.json has not the size"},
    {136, "00000000001", 11, "is not as hob-sdk pack writes it"},
    {100, "0004755", 7, "is not as hob-sdk pack writes it"},
    {345, "../..", 5, "is not as hob-sdk pack writes it"},
};

START_TEST(test_package_refuses_headers)
{
    const struct bad_header *bad = &bad_headers[_i];
    struct built_package built = good();
    unsigned char *header = built.data + HOB__PACKAGE_BLOCK;

    while (memcmp(header, "manifest.json", 14) != 0)
        header += HOB__PACKAGE_BLOCK;
    memcpy(header + bad->at, bad->bytes, bad->length);
    fix_sum(header);
    expect_refused(built.data, built.size, bad->message);
    free(built.data);
}
END_TEST

START_TEST(test_package_refuses_other_files)
{
    static const unsigned char zeros[4 * HOB__PACKAGE_BLOCK];
    struct built_package built = good();
    struct hob__package *package = NULL;
    hob_error error = HOB_ERROR_INIT;

    expect_refused("", 0, "it ends inside of hob-package.json");
    expect_refused(zeros, sizeof(zeros), "does not begin with hob-package");
    expect_refused(manifest, sizeof(manifest) - 1, "it ends inside of");
    built_add(&built, zeros, 512);
    expect_refused(built.data, built.size, "512 bytes follow its end");
    memcpy(built.data + 124, "00000000008", 11);
    expect_refused(built.data, built.size, "is no octal number");
    memcpy(built.data + 124, "77777777777", 11);
    expect_refused(built.data, built.size, "has more than 1 MiB");
    free(built.data);
    ck_assert_int_eq(hob__package_open(&fix.os, fixture_path(&fix, "gone"),
                                       &package, &error),
                     HOB_ERR_IO);
    ck_assert_ptr_nonnull(strstr(error.message, "no such file"));
    hob_error_release(&error);
    ck_assert_int_eq(hob__package_open(&fix.os, fix.root, &package, &error),
                     HOB_ERR_FORMAT);
    ck_assert_ptr_nonnull(strstr(error.message, "not a regular file"));
    hob_error_release(&error);
    ck_assert_int_eq(fix.open_count, 0);
}
END_TEST

START_TEST(test_package_is_known_by_name_or_content)
{
    struct built_package built = good();

    fixture_write_bytes(&fix, "noname", built.data, built.size);
    fixture_write(&fix, "empty.hobx", "");
    fixture_write(&fix, "m.json", manifest);
    ck_assert(hob__package_is(&fix.os, fixture_path(&fix, "noname")));
    ck_assert(hob__package_is(&fix.os, fixture_path(&fix, "empty.hobx")));
    ck_assert(!hob__package_is(&fix.os, fixture_path(&fix, "m.json")));
    ck_assert(!hob__package_is(&fix.os, fixture_path(&fix, "gone")));
    free(built.data);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("package");
    TCase *tc = tcase_create("package");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_package_reads_what_was_written);
    tcase_add_test(tc, test_package_refuses_every_change);
    tcase_add_loop_test(tc, test_package_refuses_paths, 0,
                        sizeof(bad_paths) / sizeof(bad_paths[0]));
    tcase_add_loop_test(tc, test_package_refuses_indexes, 0,
                        sizeof(bad_indexes) / sizeof(bad_indexes[0]));
    tcase_add_loop_test(tc, test_package_refuses_headers, 0,
                        sizeof(bad_headers) / sizeof(bad_headers[0]));
    tcase_add_test(tc, test_package_refuses_other_files);
    tcase_add_test(tc, test_package_is_known_by_name_or_content);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
