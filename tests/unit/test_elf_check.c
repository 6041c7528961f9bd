/* SPDX-License-Identifier: Apache-2.0 */
/* Libraries are looked into before the system maps them (SEC-3). */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "elf_check.h"
#include "ldcache.h"
#include "loader_fixture.h"
#include "hob_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loader_fixture fix;
static unsigned char image[1 << 20];
static size_t image_size;

static void setup(void)
{
    FILE *file = fopen(fixture_mock_path("mock_backend"), "rb");

    fixture_setup(&fix);
    ck_assert_ptr_nonnull(file);
    image_size = fread(image, 1, sizeof(image), file);
    (void)fclose(file);
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

static hob_status check_image(enum hob__reason *out_reason, hob_error *error)
{
    hob_status st;
    int fd;

    fixture_write_bytes(&fix, "x.so", image, image_size);
    fd = fix.os.open_read(fix.os.self, fixture_path(&fix, "x.so"));
    st = hob__library_check(&fix.os, fd, image_size, "x.so", out_reason, error);
    fix.os.close(fix.os.self, fd);
    return st;
}

static void expect(enum hob__reason wanted, const char *message)
{
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason;

    ck_assert_int_eq(check_image(&reason, &error), HOB_ERR_PLUGIN);
    ck_assert_str_eq(hob__reason_name(reason), hob__reason_name(wanted));
    ck_assert_msg(strstr(error.message, message), "got \"%s\"", error.message);
    hob_error_release(&error);
}

START_TEST(test_elf_check_accepts_a_library)
{
    enum hob__reason reason;

    ck_assert_int_eq(check_image(&reason, NULL), HOB_OK);
    ck_assert_int_eq(reason, HOB__REASON_OK);
}
END_TEST

static const struct damage {
    size_t offset;
    unsigned char value;
    enum hob__reason reason;
    const char *message;
} damages[] = {
    {0, 'x', HOB__REASON_LIBRARY_FORMAT, "not an ELF file"},
    {4, 1, HOB__REASON_LIBRARY_ARCH, "not a 64-bit library"},
    {5, 2, HOB__REASON_LIBRARY_ARCH, "not a little-endian library"},
    {16, 1, HOB__REASON_LIBRARY_FORMAT, "not a shared library"},
    {18, 0x28, HOB__REASON_LIBRARY_ARCH, "ELF machine 40, this is linux-"},
    {46, 0xff, HOB__REASON_LIBRARY_FORMAT, "lie outside the file"},
    {58, 1, HOB__REASON_LIBRARY_FORMAT, "wrong size of section headers"},
};

START_TEST(test_elf_check_refuses)
{
    image[damages[_i].offset] = damages[_i].value;
    expect(damages[_i].reason, damages[_i].message);
}
END_TEST

START_TEST(test_elf_check_short_file)
{
    image_size = 63;
    expect(HOB__REASON_LIBRARY_FORMAT, "too short");
}
END_TEST

/* No length may lead outside; the verdict itself does not matter. */
START_TEST(test_elf_check_survives_any_cut_and_damage)
{
    enum hob__reason reason;
    size_t i, whole = image_size;

    for (i = 64; i < whole; i += 97) {
        image_size = i;
        (void)!check_image(&reason, NULL);
    }
    image_size = whole;
    srand(7);
    for (i = 0; i < 300; i++) {
        size_t at = (size_t)rand() % image_size;
        unsigned char old = image[at];

        image[at] = (unsigned char)rand();
        (void)!check_image(&reason, NULL);
        image[at] = old;
    }
}
END_TEST

static const char *missing;

/* All but MISSING: the image may itself have been built with a sanitizer. */
static bool other_symbols(void *self, const char *name)
{
    (void)self;
    return strcmp(name, missing) != 0;
}

static bool all_symbols(void *self, const char *name)
{
    (void)self;
    (void)name;
    return true;
}

/* Put NAME over an undefined symbol's name in the string table. */
static void plant(const char *name)
{
    static const char old[] = "__cxa_finalize";
    size_t i, length = strlen(name) + 1;

    ck_assert_uint_le(length, sizeof(old));
    for (i = 0; i + sizeof(old) < image_size; i++) {
        if (!memcmp(image + i, old, sizeof(old)))
            memcpy(image + i, name, length);
    }
}

START_TEST(test_elf_check_sanitizer)
{
    static const char *const names[] = {"__asan_init", "__tsan_init",
                                        "__msan_init"};
    enum hob__reason reason;

    plant(names[_i]);
    missing = names[_i];
    fix.os.has_symbol = other_symbols;
    expect(HOB__REASON_SANITIZER, names[_i]);
    fix.os.has_symbol = all_symbols;
    ck_assert_int_eq(check_image(&reason, NULL), HOB_OK);
}
END_TEST

static bool exports(const char *name)
{
    bool found = false;
    int fd;

    fixture_write_bytes(&fix, "x.so", image, image_size);
    fd = fix.os.open_read(fix.os.self, fixture_path(&fix, "x.so"));
    ck_assert_int_eq(hob__library_exports(&fix.os, fd, image_size, "x.so", name,
                                          &found, NULL),
                     HOB_OK);
    fix.os.close(fix.os.self, fd);
    return found;
}

START_TEST(test_elf_check_exports)
{
    ck_assert(exports("hob_plugin_entry"));
    ck_assert(!exports("hob_plugin_entry_"));
    ck_assert(!exports("plugin_entry"));
    /* What it needs is not what it offers. */
    ck_assert(!exports("__cxa_finalize"));
    /* Without section headers nobody can tell before it is opened. */
    memset(image + 40, 0, 8);
    ck_assert(exports("anything"));
    fix.os.triple = "windows-x86_64";
    ck_assert(exports("anything"));
}
END_TEST

START_TEST(test_elf_check_windows_library)
{
    memset(image, 0, 256);
    image_size = 256;
    fix.os.triple = "windows-x86_64";
    expect(HOB__REASON_LIBRARY_FORMAT, "not a PE file");
    memcpy(image, "MZ", 2);
    image[60] = 128;
    memcpy(image + 128, "PE\0\0\x64\xaa", 6);
    expect(HOB__REASON_LIBRARY_ARCH, "another machine");
    image[133] = 0x86;
    expect(HOB__REASON_LIBRARY_FORMAT, "a program, not a library");
    image[128 + 23] = 0x20;
    ck_assert_int_eq(check_image(&(enum hob__reason){0}, NULL), HOB_OK);
}
END_TEST

START_TEST(test_elf_check_mach_o_library)
{
    fix.os.triple = "macos-aarch64";
    expect(HOB__REASON_LIBRARY_FORMAT, "not a Mach-O file");
    memcpy(image, "\xcf\xfa\xed\xfe\x07\0\0\x01\0\0\0\0\x06\0\0\0", 16);
    expect(HOB__REASON_LIBRARY_ARCH, "another machine");
    image[4] = 0x0c;
    ck_assert_int_eq(check_image(&(enum hob__reason){0}, NULL), HOB_OK);
    image[12] = 2;
    expect(HOB__REASON_LIBRARY_FORMAT, "not a dynamic library");
}
END_TEST

START_TEST(test_elf_check_ldcache)
{
    const struct hob__strings none = {NULL, 0};
    struct hob__ldcache cache = {NULL, 0, false};

    ck_assert(hob__ldcache_has(&cache, &fix.os, &none, "libc.so.6"));
    ck_assert(!hob__ldcache_has(&cache, &fix.os, &none, "libmoon.so.6"));
    ck_assert(!hob__ldcache_has(&cache, &fix.os, &none, "/libmoon.so.6"));
    ck_assert(hob__ldcache_has(&cache, &fix.os, &none,
                               fixture_mock_path("mock_backend")));
    hob__ldcache_release(&cache);
}
END_TEST

/* A cache file of the old and of the new layout, and damaged ones. */
START_TEST(test_elf_check_ldcache_layouts)
{
    static const char magic[] = "glibc-ld.so.cache1.1";
    const struct hob__strings none = {NULL, 0};
    struct hob__ldcache cache = {NULL, 256, true};
    const uint32_t count = 1, flags = 0x0303, key = 72;

    cache.data = calloc(1, cache.size);
    ck_assert_ptr_nonnull(cache.data);
    fix.os.triple = "linux-x86_64-gnu";
    memcpy(cache.data, magic, 20);
    memcpy(cache.data + 20, &count, 4);
    memcpy(cache.data + 48, &flags, 4);
    memcpy(cache.data + 52, &key, 4);
    memcpy(cache.data + 72, "libmoon.so.6", 13);
    ck_assert(hob__ldcache_has(&cache, &fix.os, &none, "libmoon.so.6"));
    ck_assert(!hob__ldcache_has(&cache, &fix.os, &none, "libmoon.so"));
    memset(cache.data + 20, 0xff, 4);
    ck_assert(!hob__ldcache_has(&cache, &fix.os, &none, "libmoon.so.6"));
    memcpy(cache.data + 20, &count, 4);
    memset(cache.data + 52, 0xff, 4);
    ck_assert(!hob__ldcache_has(&cache, &fix.os, &none, "libmoon.so.6"));
    memcpy(cache.data + 52, &key, 4);
    memmove(cache.data + 64, cache.data, 128);
    memset(cache.data, 0, 64);
    memcpy(cache.data, "ld.so-1.7.0", 11);
    ck_assert(hob__ldcache_has(&cache, &fix.os, &none, "libmoon.so.6"));
    hob__ldcache_release(&cache);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("elf_check");
    TCase *tc = tcase_create("elf_check");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_elf_check_accepts_a_library);
    tcase_add_loop_test(tc, test_elf_check_refuses, 0,
                        sizeof(damages) / sizeof(damages[0]));
    tcase_add_test(tc, test_elf_check_short_file);
    tcase_add_test(tc, test_elf_check_survives_any_cut_and_damage);
    tcase_add_loop_test(tc, test_elf_check_sanitizer, 0, 3);
    tcase_add_test(tc, test_elf_check_exports);
    tcase_add_test(tc, test_elf_check_windows_library);
    tcase_add_test(tc, test_elf_check_mach_o_library);
    tcase_add_test(tc, test_elf_check_ldcache);
    tcase_add_test(tc, test_elf_check_ldcache_layouts);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
