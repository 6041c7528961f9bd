/* SPDX-License-Identifier: Apache-2.0 */
/* Where manifests are found, in which order, and what becomes of them. */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_fixture.h"
#include "hob_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static struct loader_fixture fix;

#define DATA "usr/share/hob/plugins.d/"

static void setup(void)
{
    fixture_setup(&fix);
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

static void expect(uint32_t index, enum hob__state state,
                   enum hob__reason reason)
{
    const struct hob__record *record = fixture_record(&fix, index);

    ck_assert_msg(
        record->state == state && record->reason == reason, "%s: %s %s (%s)",
        record->path, hob__state_name(record->state),
        hob__reason_name(record->reason), record->detail ? record->detail : "");
}

static void expect_detail(uint32_t index, const char *part)
{
    const struct hob__record *record = fixture_record(&fix, index);

    ck_assert_msg(record->detail && strstr(record->detail, part),
                  "%s: \"%s\" is not in \"%s\"", record->path, part,
                  record->detail ? record->detail : "(none)");
}

static bool log_has(const char *part)
{
    return fix.log && strstr(fix.log, part);
}

START_TEST(test_discovery_follows_the_order)
{
    static const struct place {
        const char *path;
        enum hob__rule rule;
    } places[] = {
        {"app/m.json", HOB__RULE_APPLICATION},
        {"add/m.json", HOB__RULE_ADD_PLUGIN_PATH},
        {"prefix/share/hob/plugins.d/m.json", HOB__RULE_CORE},
        {"home/.config/hob/plugins.d/m.json", HOB__RULE_USER_CONFIG},
        {"etc/xdg/hob/plugins.d/m.json", HOB__RULE_SYSTEM_CONFIG},
        {"etc/hob/plugins.d/m.json", HOB__RULE_SYSTEM_CONFIG},
        {"home/.local/share/hob/plugins.d/m.json", HOB__RULE_USER_DATA},
        {"usr/share/hob/plugins.d/m.json", HOB__RULE_SYSTEM_DATA},
        {"data/hob/plugins.d/m.json", HOB__RULE_SYSTEM_DATA},
    };
    const char *manifest;
    uint32_t i, count = sizeof(places) / sizeof(places[0]);

    for (i = 0; i < count; i++)
        fixture_backend(&fix, places[i].path, "mock", "mock.so", "");
    manifest = fixture_path(&fix, "app/m.json");
    fix.options.manifests = &manifest;
    fix.options.manifest_count = 1;
    fixture_setenv(&fix, "HOB_ADD_PLUGIN_PATH", fixture_path(&fix, "add"));
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), count);
    for (i = 0; i < count; i++) {
        const struct hob__record *record = fixture_record(&fix, i);

        ck_assert_int_eq(record->rule, places[i].rule);
        ck_assert_ptr_nonnull(strstr(record->path, places[i].path));
        expect(i, i ? HOB__STATE_SHADOWED : HOB__STATE_DISCOVERED,
               i ? HOB__REASON_SHADOWED : HOB__REASON_OK);
    }
    expect_detail(1, "app/m.json");
    ck_assert_int_eq(fix.dl_open_count, 0);
}
END_TEST

START_TEST(test_discovery_application_can_be_exclusive)
{
    const char *dir;

    fixture_backend(&fix, "app/m.json", "mine", "m.so", "");
    fixture_backend(&fix, DATA "m.json", "theirs", "m.so", "");
    dir = fixture_path(&fix, "app");
    fix.options.directories = &dir;
    fix.options.directory_count = 1;
    fix.options.exclusive = true;
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 1);
    ck_assert_str_eq(fixture_record(&fix, 0)->id, "mine");
}
END_TEST

START_TEST(test_discovery_application_path_must_be_absolute)
{
    static const char *const relative[] = {"plugins"};
    hob_error error = HOB_ERROR_INIT;

    fix.options.directories = relative;
    fix.options.directory_count = 1;
    ck_assert_int_eq(
        hob__loader_open(&fix.options, &fix.os, &fix.loader, &error),
        HOB_ERR_ARGUMENT);
    ck_assert_str_eq(error.message, "plugin path \"plugins\" is not absolute");
    ck_assert_ptr_null(fix.loader);
    hob_error_release(&error);
}
END_TEST

START_TEST(test_discovery_plugin_path_replaces_the_defaults)
{
    char list[2048];

    fixture_backend(&fix, "a:b/m.json", "first", "m.so", "");
    fixture_backend(&fix, "c/n.json", "second", "m.so", "");
    fixture_backend(&fix, "c/o.json", "third", "m.so", "");
    fixture_backend(&fix, DATA "m.json", "theirs", "m.so", "");
    (void)snprintf(list, sizeof(list), "\"%s\"::%s:relative",
                   fixture_path(&fix, "a:b"), fixture_path(&fix, "c/o.json"));
    fixture_setenv(&fix, "HOB_PLUGIN_PATH", list);
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 2);
    ck_assert_str_eq(fixture_record(&fix, 0)->id, "first");
    ck_assert_str_eq(fixture_record(&fix, 1)->id, "third");
}
END_TEST

struct seen {
    enum hob__reason reason;
    const char *path;
    int count;
};

static bool count_reason(void *context, const struct hob__searched *searched)
{
    struct seen *seen = context;

    if (searched->reason == seen->reason &&
        (!seen->path || strstr(searched->path, seen->path)))
        seen->count++;
    return true;
}

static int searched_with(enum hob__reason reason, const char *path)
{
    struct seen seen = {reason, path, 0};

    hob__loader_searched(fix.loader, count_reason, &seen);
    return seen.count;
}

START_TEST(test_discovery_relative_element_is_refused)
{
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_setenv(&fix, "HOB_ADD_PLUGIN_PATH", "plugins");
    fixture_open(&fix);
    ck_assert_int_eq(searched_with(HOB__REASON_ENV_RELATIVE, "plugins"), 1);
    ck_assert(log_has("a relative path is refused"));
}
END_TEST

/* Cases 28 and 29: the sandbox has the host's variables, not its files. */
START_TEST(test_discovery_case_29_missing_path_falls_through)
{
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_setenv(&fix, "HOB_PLUGIN_PATH", "/nowhere/hob");
    fixture_backend(&fix, DATA "m.json", "mock", "m.so", "");
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 1);
    ck_assert_int_eq(searched_with(HOB__REASON_PATH_MISSING, "/nowhere"), 1);
    ck_assert(log_has("the path names nothing"));
}
END_TEST

static int closed_dir(void *self, const char *path, void **out_dir)
{
    (void)self;
    *out_dir = NULL;
    return strstr(path, "usr/share") ? -EACCES : -ENOENT;
}

START_TEST(test_discovery_unreadable_folder)
{
    fix.os.open_dir = closed_dir;
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_open(&fix);
    ck_assert_int_eq(searched_with(HOB__REASON_DIR_UNREADABLE, "usr/share"), 1);
    ck_assert(log_has("the folder cannot be read"));
}
END_TEST

START_TEST(test_discovery_missing_default_is_only_debug)
{
    fixture_backend(&fix, DATA "z.json", "good", "m.so", "");
    fixture_setenv(&fix, "HOB_LOG", "loader=info");
    fixture_open(&fix);
    ck_assert_int_gt(searched_with(HOB__REASON_DIR_MISSING, NULL), 3);
    ck_assert_msg(!fix.log, "%s", fix.log);
}
END_TEST

START_TEST(test_discovery_without_home)
{
    fixture_setenv(&fix, "HOME", "");
    fixture_open(&fix);
    ck_assert_int_eq(searched_with(HOB__REASON_HOME_UNSET, NULL), 2);
}
END_TEST

/* Case 30: XDG_DATA_DIRS without the system's folders. */
START_TEST(test_discovery_case_30_compiled_in_dirs_always_count)
{
    fixture_setenv(&fix, "XDG_DATA_DIRS", fixture_path(&fix, "elsewhere"));
    fixture_backend(&fix, "data/hob/plugins.d/m.json", "mock", "m.so", "");
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 1);
}
END_TEST

START_TEST(test_discovery_lists_json_sorted)
{
    static const char *const names[] = {"B.json", "a.json", "10-z.json",
                                        "aa.json"};
    static const char *const order[] = {"10-z.json", "B.json", "a.json",
                                        "aa.json"};
    char path[64], id[16];
    uint32_t i;

    for (i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof(path), DATA "%s", names[i]);
        (void)snprintf(id, sizeof(id), "mock%u", (unsigned)i);
        fixture_backend(&fix, path, id, "m.so", "");
    }
    fixture_write(&fix, DATA ".hidden.json", "{}");
    fixture_write(&fix, DATA "readme.txt", "{}");
    fixture_write(&fix, DATA "sub/m.json", "{}");
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 4);
    for (i = 0; i < 4; i++)
        ck_assert_ptr_nonnull(strstr(fixture_record(&fix, i)->path, order[i]));
}
END_TEST

START_TEST(test_discovery_refuses_a_huge_folder)
{
    char path[64];
    int i;

    for (i = 0; i <= 1024; i++) {
        (void)snprintf(path, sizeof(path), DATA "%04d.json", i);
        fixture_write(&fix, path, "{}");
    }
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 0);
    ck_assert_int_eq(searched_with(HOB__REASON_DIR_TOO_LARGE, NULL), 1);
}
END_TEST

/* Case 6: "//", repeated entries, links: the file is what counts. */
START_TEST(test_discovery_case_6_same_file_by_identity)
{
    char list[2048];

    fixture_backend(&fix, "a/m.json", "mock", "m.so", "");
    ck_assert_int_eq(
        symlink(fixture_path(&fix, "a/m.json"), fixture_path(&fix, "a/n.json")),
        0);
    ck_assert_int_eq(symlink(fixture_path(&fix, "a"), fixture_path(&fix, "b")),
                     0);
    (void)snprintf(list, sizeof(list), "%s/:%s:%s", fixture_path(&fix, "a"),
                   fixture_path(&fix, "/a"), fixture_path(&fix, "b"));
    fixture_setenv(&fix, "HOB_PLUGIN_PATH", list);
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 2);
    expect(0, HOB__STATE_DISCOVERED, HOB__REASON_OK);
    expect(1, HOB__STATE_SHADOWED, HOB__REASON_SAME_FILE);
    ck_assert_int_eq(searched_with(HOB__REASON_DIR_REPEATED, NULL), 2);
}
END_TEST

/* Case 10: one bad file never changes what becomes of the others. */
START_TEST(test_discovery_case_10_bad_files_hide_nothing)
{
    fixture_write(&fix, DATA "a.json", "[]");
    fixture_write(&fix, DATA "b.json", "");
    fixture_write(&fix, DATA "c.json", "{");
    ck_assert_int_eq(mkfifo(fixture_path(&fix, DATA "d.json"), 0644), 0);
    fixture_make_dir(&fix, DATA "e.json");
    ck_assert_int_eq(symlink("/nowhere", fixture_path(&fix, DATA "f.json")), 0);
    fixture_write(&fix, DATA "g.json", "{}");
    ck_assert_int_eq(truncate(fixture_path(&fix, DATA "g.json"), 1LL << 33), 0);
    fixture_write(&fix, DATA "h.json", "{\"a\":1,\"a\":2}");
    fixture_write(&fix, DATA "i.json", "{\"a\":\"\xff\"}");
    fixture_write(&fix, DATA "j.json", "[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]");
    fixture_backend(&fix, DATA "z.json", "mock", "m.so", "");
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 11);
    expect(0, HOB__STATE_REFUSED, HOB__REASON_MANIFEST_FIELD);
    expect(1, HOB__STATE_REFUSED, HOB__REASON_TOO_SMALL);
    expect_detail(1, "the file is empty");
    expect(2, HOB__STATE_REFUSED, HOB__REASON_TOO_SMALL);
    expect(3, HOB__STATE_REFUSED, HOB__REASON_NOT_REGULAR);
    expect_detail(3, "d.json: not a regular file");
    expect(4, HOB__STATE_REFUSED, HOB__REASON_NOT_REGULAR);
    expect(5, HOB__STATE_REFUSED, HOB__REASON_UNREADABLE);
    expect_detail(5, "no such file or folder");
    expect(6, HOB__STATE_REFUSED, HOB__REASON_TOO_BIG);
    expect_detail(6, "at most 1048576");
    expect(7, HOB__STATE_REFUSED, HOB__REASON_JSON_DUPLICATE_KEY);
    expect(8, HOB__STATE_REFUSED, HOB__REASON_JSON_ENCODING);
    expect(9, HOB__STATE_REFUSED, HOB__REASON_JSON_DEPTH);
    expect(10, HOB__STATE_DISCOVERED, HOB__REASON_OK);
    ck_assert_int_eq(fix.open_count, 0);
}
END_TEST

static int64_t shrinking_read(void *self, int fd, void *buffer, size_t size,
                              uint64_t offset)
{
    int64_t n = hob__os()->read(self, fd, buffer, size, offset);

    return n > 4 ? n - 4 : n;
}

START_TEST(test_discovery_notices_a_change_during_the_read)
{
    fix.os.read = shrinking_read;
    fixture_backend(&fix, DATA "m.json", "mock", "m.so", "");
    fixture_open(&fix);
    expect(0, HOB__STATE_REFUSED, HOB__REASON_CHANGED_DURING_READ);
    expect_detail(0, "its length changed while it was read");
}
END_TEST

/* P4, case 2: the current folder changes nothing. */
START_TEST(test_discovery_case_2_current_folder_does_not_matter)
{
    char first[4096];
    const struct hob__candidate *candidate;

    fixture_backend(&fix, DATA "m.json", "mock", "lib/m.so", "");
    fixture_open(&fix);
    (void)snprintf(first, sizeof(first), "%s",
                   hob__loader_get(fix.loader, 0)->library);
    ck_assert_int_eq(chdir("/"), 0);
    fixture_open(&fix);
    candidate = hob__loader_get(fix.loader, 0);
    ck_assert_str_eq(candidate->library, first);
    ck_assert_str_eq(candidate->library, fixture_path(&fix, DATA "lib/m.so"));
}
END_TEST

START_TEST(test_discovery_paths_with_all_kinds_of_letters)
{
    char path[256];

    (void)snprintf(path, sizeof(path),
                   "\xd0\xb0\xd0\xb1 \xe6\xbc\xa2 \xf0\x9f\x98\x80/m.json");
    fixture_backend(&fix, path, "mock", "m.so", "");
    fixture_setenv(&fix, "HOB_PLUGIN_PATH", fixture_path(&fix, path));
    fixture_open(&fix);
    expect(0, HOB__STATE_DISCOVERED, HOB__REASON_OK);
}
END_TEST

/* Case 13: another platform's manifest is no error. */
START_TEST(test_discovery_case_13_other_platform_is_skipped)
{
    char *text = fixture_manifest("mock", "@", "");
    char *at = strstr(text, "\"@\"");
    char whole[2048];

    (void)snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(at - text), text,
                   "{\"windows-x86_64\": \"m.dll\"}", at + 3);
    free(text);
    fixture_write(&fix, DATA "m.json", whole);
    fixture_backend(&fix, DATA "z.json", "good", "m.so", "");
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_open(&fix);
    expect(0, HOB__STATE_SKIPPED, HOB__REASON_NOT_FOR_THIS_PLATFORM);
    expect_detail(0, fix.os.triple);
    ck_assert_msg(!fix.log, "%s", fix.log);
}
END_TEST

static int no_avx512(void *self, const char *feature)
{
    (void)self;
    return !strcmp(feature, "avx512f") ? 0 : !strcmp(feature, "avx2") ? 1 : -1;
}

START_TEST(test_discovery_picks_the_best_variant)
{
    char *text = fixture_manifest("mock", "@", "");
    char *at = strstr(text, "\"@\"");
    char whole[2048];

    (void)snprintf(whole, sizeof(whole), "%.*s%s%s", (int)(at - text), text,
                   "{\"linux\": \"any.so\", \"linux-x86_64\": ["
                   "{\"path\": \"plain.so\"},"
                   "{\"path\": \"512.so\", \"cpu\": [\"avx2\", \"avx512f\"]},"
                   "{\"path\": \"avx2.so\", \"cpu\": [\"avx2\"]},"
                   "{\"path\": \"odd.so\", \"cpu\": [\"avx2\", \"sse9\"]}]}",
                   at + 3);
    free(text);
    fix.os.has_cpu = no_avx512;
    fix.os.triple = "linux-x86_64-gnu";
    fixture_write(&fix, DATA "m.json", whole);
    fixture_open(&fix);
    ck_assert_ptr_nonnull(
        strstr(hob__loader_get(fix.loader, 0)->library, "/avx2.so"));
    fix.os.triple = "linux-aarch64-gnu";
    fixture_open(&fix);
    ck_assert_ptr_nonnull(
        strstr(hob__loader_get(fix.loader, 0)->library, "/any.so"));
}
END_TEST

static const struct refusal {
    const char *more; /* members of the manifest */
    const char *name; /* a variable, or NULL */
    const char *value;
    enum hob__state state;
    enum hob__reason reason;
    const char *detail; /* or NULL */
} refusals[] = {
    {"", "HOB_PLUGINS_DISABLE", "x,mo*", HOB__STATE_DISABLED,
     HOB__REASON_DISABLED_ENV, NULL},
    {"", "HOB_PLUGINS_ONLY", "other", HOB__STATE_DISABLED,
     HOB__REASON_NOT_SELECTED, NULL},
    {", \"requires\": {\"cpu\": [\"sse9\"]}", NULL, NULL,
     HOB__STATE_NOT_APPLICABLE, HOB__REASON_CPU_FEATURE, "sse9"},
    {", \"requires\": {\"host\": [\"moon\"]}", NULL, NULL, HOB__STATE_REFUSED,
     HOB__REASON_REQUIRES_HOST, "moon"},
    {", \"requires\": {\"files\": [\"gone.bin\"]}", NULL, NULL,
     HOB__STATE_NOT_APPLICABLE, HOB__REASON_REQUIRES_FILE, "gone.bin"},
    {", \"requires\": {\"plugins\": {\"other\": \">=1.0\"}}", NULL, NULL,
     HOB__STATE_REFUSED, HOB__REASON_REQUIRES_PLUGIN, "other >=1.0"},
    {", \"requires\": {\"interfaces\": {\"flex.compute\": 7}}", NULL, NULL,
     HOB__STATE_REFUSED, HOB__REASON_REQUIRES_INTERFACE,
     "flex.compute version 7"},
    {", \"requires\": {\"moon\": 1}", NULL, NULL, HOB__STATE_REFUSED,
     HOB__REASON_REQUIRES_UNKNOWN, "unknown requirement"},
    {", \"abi\": 1", NULL, NULL, HOB__STATE_REFUSED,
     HOB__REASON_JSON_DUPLICATE_KEY, "/abi"},
};

START_TEST(test_discovery_says_why_not)
{
    const struct refusal *r = &refusals[_i];

    fixture_backend(&fix, DATA "m.json", "mock", "m.so", r->more);
    if (r->name)
        fixture_setenv(&fix, r->name, r->value);
    fixture_open(&fix);
    expect(0, r->state, r->reason);
    if (r->detail)
        expect_detail(0, r->detail);
    ck_assert(!hob__candidate_usable(hob__loader_get(fix.loader, 0)));
    ck_assert_ptr_null(hob__loader_find(fix.loader, HOB__KIND_BACKEND, "mock"));
}
END_TEST

START_TEST(test_discovery_refuses_other_abis_before_dlopen)
{
    static const char text[] =
        "{\"manifest_version\":1,\"id\":\"mock\",\"version\":\"1.0.0\","
        "\"kind\":\"backend\",\"library\":\"m.so\",\"backend\":{\"selector\":"
        "\"mock\"},\"abi\":{\"major\":%s,\"required_minor\":%s}}";
    char whole[1024];

    (void)snprintf(whole, sizeof(whole), text, "7", "0");
    fixture_write(&fix, DATA "a.json", whole);
    (void)snprintf(whole, sizeof(whole), text, "0", "999");
    fixture_write(&fix, DATA "b.json", whole);
    fixture_open(&fix);
    expect(0, HOB__STATE_REFUSED, HOB__REASON_MAJOR);
    expect_detail(0, "made for ABI 7.0, this Hob has");
    expect(1, HOB__STATE_REFUSED, HOB__REASON_MINOR);
    expect_detail(1, "made for ABI 0.999");
}
END_TEST

/* Case 33: a driver plugin without its hardware is quiet and cheap. */
START_TEST(test_discovery_case_33_needs)
{
    char *text = fixture_manifest("mock", "m.so", "");
    char *at = strstr(text, "\"selector\"");
    char whole[2048];

    (void)snprintf(whole, sizeof(whole),
                   "%.*s\"needs\": [\"libc.so.6\", \"libmoon.so.1\"], %s",
                   (int)(at - text), text, at);
    free(text);
    fixture_write(&fix, DATA "m.json", whole);
    fixture_backend(&fix, DATA "z.json", "good", "m.so", "");
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_open(&fix);
    expect(0, HOB__STATE_NOT_APPLICABLE, HOB__REASON_NEEDS_MISSING);
    expect_detail(0, "libmoon.so.1");
    ck_assert_int_eq(fix.dl_open_count, 0);
    ck_assert_msg(!fix.log, "%s", fix.log);
    fixture_write(&fix, "lib/libmoon.so.1", "x");
    fixture_setenv(&fix, "LD_LIBRARY_PATH", fixture_path(&fix, "lib"));
    fixture_open(&fix);
    expect(0, HOB__STATE_DISCOVERED, HOB__REASON_OK);
}
END_TEST

START_TEST(test_discovery_conflicts_and_dependencies)
{
    fixture_backend(&fix, DATA "a.json", "first", "m.so", "");
    fixture_backend(&fix, DATA "b.json", "second", "m.so",
                    ", \"conflicts\": [\"first\"]");
    fixture_backend(&fix, DATA "c.json", "third", "m.so",
                    ", \"requires\": {\"plugins\": {\"second\": \"*\"}}");
    fixture_backend(&fix, DATA "d.json", "fourth", "m.so",
                    ", \"requires\": {\"plugins\": {\"first\": \">=1 <2\"}, "
                    "\"interfaces\": {\"x.y\": 2}}");
    fixture_backend(&fix, DATA "e.json", "fifth", "m.so",
                    ", \"capabilities\": [\"x.y/2\"]");
    fixture_open(&fix);
    expect(0, HOB__STATE_DISCOVERED, HOB__REASON_OK);
    expect(1, HOB__STATE_REFUSED, HOB__REASON_CONFLICT);
    expect_detail(1, "with first");
    expect(2, HOB__STATE_REFUSED, HOB__REASON_REQUIRES_PLUGIN);
    expect(3, HOB__STATE_DISCOVERED, HOB__REASON_OK);
    expect(4, HOB__STATE_DISCOVERED, HOB__REASON_OK);
}
END_TEST

/* P3: a refused copy does not hide a good one. */
START_TEST(test_discovery_refused_copy_shadows_nothing)
{
    fixture_backend(&fix, "home/.config/hob/plugins.d/m.json", "mock", "m.so",
                    ", \"requires\": {\"host\": [\"moon\"]}");
    fixture_backend(&fix, DATA "m.json", "mock", "m.so", "");
    fixture_open(&fix);
    expect(0, HOB__STATE_REFUSED, HOB__REASON_REQUIRES_HOST);
    expect(1, HOB__STATE_DISCOVERED, HOB__REASON_OK);
    ck_assert_ptr_eq(hob__loader_find_id(fix.loader, "mock"),
                     hob__loader_get(fix.loader, 1));
}
END_TEST

/* P3: nor does one that is refused for what it requires of others. */
START_TEST(test_discovery_unmet_dependency_hides_nothing)
{
    fixture_backend(&fix, DATA "a.json", "mock", "m.so",
                    ", \"requires\": {\"plugins\": {\"moon\": \"*\"}}");
    fixture_backend(&fix, DATA "b.json", "jealous", "m.so",
                    ", \"conflicts\": [\"mock\"], \"requires\": "
                    "{\"interfaces\": {\"x.y\": 2}}");
    fixture_backend(&fix, DATA "c.json", "mock", "m.so", "");
    fixture_open(&fix);
    expect(0, HOB__STATE_REFUSED, HOB__REASON_REQUIRES_PLUGIN);
    expect(1, HOB__STATE_REFUSED, HOB__REASON_REQUIRES_INTERFACE);
    expect(2, HOB__STATE_DISCOVERED, HOB__REASON_OK);
}
END_TEST

static void write_extension(const char *path, const char *id, const char *space,
                            const char *op, const char *more)
{
    char whole[1024];

    (void)snprintf(whole, sizeof(whole),
                   "{\"manifest_version\":1,\"id\":\"%s\",\"version\":"
                   "\"1.0.0\",\"kind\":\"extension\",\"abi\":{\"major\":0,"
                   "\"required_minor\":2},\"library\":\"m.so\","
                   "\"namespace\":\"%s\",\"ops\":[{\"op\":\"%s\","
                   "\"signature\":\"(x: Any) -> x\",\"infer\":\"same\","
                   "\"body\":true,\"backends\":[\"mock\"]}]%s}",
                   id, space, op, more);
    fixture_write(&fix, path, whole);
}

/* Whose op is taken conflicts with nobody either. */
START_TEST(test_discovery_an_op_has_one_author)
{
    fixture_backend(&fix, DATA "m.json", "mock", "m.so", "");
    write_extension(DATA "a.json", "first", "demo", "square", "");
    write_extension(DATA "b.json", "second", "demo", "square",
                    ", \"conflicts\": [\"mock\"]");
    write_extension(DATA "c.json", "third", "demo", "cube", "");
    write_extension(DATA "d.json", "fourth", "other", "square", "");
    fixture_open(&fix);
    expect(0, HOB__STATE_DISCOVERED, HOB__REASON_OK);
    expect(1, HOB__STATE_REFUSED, HOB__REASON_OP_TAKEN);
    expect_detail(1, "demo.square is declared by first");
    expect(2, HOB__STATE_DISCOVERED, HOB__REASON_OK);
    expect(3, HOB__STATE_DISCOVERED, HOB__REASON_OK);
    expect(4, HOB__STATE_DISCOVERED, HOB__REASON_OK);
}
END_TEST

START_TEST(test_discovery_priority_decides_between_ids)
{
    fixture_backend(&fix, DATA "a.json", "mock", "m.so", "");
    fixture_write(&fix, DATA "b.json",
                  "{\"manifest_version\":1,\"id\":\"better\",\"version\":"
                  "\"1.0.0\",\"kind\":\"backend\",\"abi\":{\"major\":0,"
                  "\"required_minor\":2},\"library\":\"m.so\",\"backend\":"
                  "{\"selector\":\"mock\",\"priority\":5}}");
    fixture_open(&fix);
    ck_assert_str_eq(
        hob__loader_find(fix.loader, HOB__KIND_BACKEND, "mock")->id, "better");
    ck_assert_ptr_null(
        hob__loader_find(fix.loader, HOB__KIND_DECORATOR, "mock"));
}
END_TEST

/* Cases 17 and 24: elevated; one message for each ignored variable. */
START_TEST(test_discovery_case_24_elevated)
{
    const char *dir;
    const char *first;

    fix.is_elevated = true;
    fixture_backend(&fix, "app/m.json", "mine", "m.so", "");
    fixture_backend(&fix, "home/.config/hob/plugins.d/m.json", "theirs", "m.so",
                    "");
    fixture_backend(&fix, "path/m.json", "path", "m.so", "");
    dir = fixture_path(&fix, "app");
    fix.options.directories = &dir;
    fix.options.directory_count = 1;
    fixture_setenv(&fix, "HOB_PLUGIN_PATH", fixture_path(&fix, "path"));
    fixture_setenv(&fix, "HOB_PLUGINS_DISABLE", "nothing");
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 1);
    expect(0, HOB__STATE_DISCOVERED, HOB__REASON_OK);
    first = strstr(fix.log, "HOB_PLUGIN_PATH: ignored");
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(strstr(first + 1, "HOB_PLUGIN_PATH: ignored"));
    ck_assert(log_has("the pattern matches no plugin"));
}
END_TEST

START_TEST(test_discovery_unknown_variable_gets_a_suggestion)
{
    fixture_setenv(&fix, "HOB_LOG", "loader=warn");
    fixture_setenv(&fix, "HOB_PLUGIN_PATHS", "/x");
    fixture_setenv(&fix, "HOB_TEST_ANYTHING", "1");
    fixture_setenv(&fix, "HOB_MOCK_THREADS", "1");
    fixture_backend(&fix, DATA "m.json", "mock", "m.so",
                    ", \"env\": [\"HOB_MOCK_THREADS\"]");
    fixture_open(&fix);
    ck_assert(log_has("HOB_PLUGIN_PATHS: no such variable: did you mean "
                      "HOB_PLUGIN_PATH?"));
    ck_assert(log_has(hob__reason_text(HOB__REASON_ENV_UNKNOWN)));
    ck_assert(!log_has("HOB_TEST_ANYTHING"));
    ck_assert(!log_has("HOB_MOCK_THREADS"));
}
END_TEST

START_TEST(test_discovery_reports_memory_manifests)
{
    char *text = fixture_manifest("linked", "m.so", "");
    struct hob__loader_static one = {text, strlen(text), "linked", NULL};

    fix.options.statics = &one;
    fix.options.static_count = 1;
    fixture_open(&fix);
    expect(0, HOB__STATE_REFUSED, HOB__REASON_BAD_PATH);
    expect_detail(0, "needs an absolute path");
    ck_assert_str_eq(fixture_record(&fix, 0)->path, "static:linked");
    free(text);
}
END_TEST

static int lib_path(void *self, char **out_path)
{
    (void)self;
    *out_path =
        strdup(fixture_path(&fix, "opt/lib/x86_64-linux-gnu/libhob.so"));
    return *out_path ? 0 : -1;
}

/* Case 16: plugins beside libhob are found wherever it was moved to. */
START_TEST(test_discovery_case_16_beside_the_core)
{
    fixture_backend(&fix, "opt/lib/x86_64-linux-gnu/hob/plugins.d/m.json",
                    "near", "m.so", "");
    fixture_backend(&fix, "opt/share/hob/plugins.d/m.json", "shared", "m.so",
                    "");
    fix.os.self_path = lib_path;
    fix.options.core_is_static = false;
    free((char *)(uintptr_t)fix.options.prefix);
    fix.options.prefix = NULL;
    fixture_open(&fix);
    ck_assert_uint_eq(hob__loader_count(fix.loader), 2);
    ck_assert_str_eq(fixture_record(&fix, 0)->id, "near");
    ck_assert_str_eq(fixture_record(&fix, 1)->id, "shared");
    ck_assert_int_eq(fixture_record(&fix, 1)->rule, HOB__RULE_CORE);
}
END_TEST

/* Case 68: what the manifest says is what is opened. */
START_TEST(test_discovery_case_68_no_suffix_is_added)
{
    static const char *const names[] = {"plugin", "x.dylib", "libx.so.1"};
    const char *library;

    fixture_backend(&fix, DATA "m.json", "mock", names[_i], "");
    fixture_open(&fix);
    library = hob__loader_get(fix.loader, 0)->library;
    ck_assert_str_eq(strrchr(library, '/') + 1, names[_i]);
}
END_TEST

static int count_getenv(const char *path)
{
    FILE *file = fopen(path, "r");
    char line[4096];
    int count = 0;

    while (file && fgets(line, sizeof(line), file))
        count += strstr(line, "getenv(") && !strstr(line, "getenv()");
    if (file)
        (void)fclose(file);
    return count;
}

/* Case 22: one getter for the environment in the whole tree. */
START_TEST(test_discovery_case_22_one_getenv)
{
    static const char *const dirs[] = {"core/src", "plugins/flex",
                                       "plugins/autodiff"};
    const char *source = getenv("HOB_TEST_SRCDIR"), *name;
    char path[4096], file[8192];
    int count = 0, files = 0;
    size_t i;

    for (i = 0; i < 3; i++) {
        void *dir = NULL;

        (void)snprintf(path, sizeof(path), "%s/../%s", source ? source : ".",
                       dirs[i]);
        ck_assert_msg(!hob__os()->open_dir(NULL, path, &dir), "%s", path);
        while (!hob__os()->read_dir(NULL, dir, &name) && name) {
            if (strlen(name) < 3 || strcmp(name + strlen(name) - 2, ".c"))
                continue;
            (void)snprintf(file, sizeof(file), "%s/%s", path, name);
            count += count_getenv(file);
            files++;
        }
        hob__os()->close_dir(NULL, dir);
    }
    ck_assert_int_gt(files, 30);
    ck_assert_int_eq(count, 1);
}
END_TEST

/* The budget: 200 manifests of about 1 KB. The time is printed, not judged:
 * a loaded machine must not fail the test. */
START_TEST(test_discovery_lists_200_manifests)
{
    struct timespec start, end;
    char path[64], id[16], more[800];
    double ms;
    int i;

    memset(more, ' ', sizeof(more));
    more[sizeof(more) - 1] = '\0';
    for (i = 0; i < 200; i++) {
        (void)snprintf(path, sizeof(path), DATA "%03d.json", i);
        (void)snprintf(id, sizeof(id), "mock%03d", i);
        fixture_backend(&fix, path, id, "m.so", more);
    }
    (void)clock_gettime(CLOCK_MONOTONIC, &start);
    fixture_open(&fix);
    (void)clock_gettime(CLOCK_MONOTONIC, &end);
    ms = (double)(end.tv_sec - start.tv_sec) * 1e3 +
         (double)(end.tv_nsec - start.tv_nsec) / 1e6;
    ck_assert_uint_eq(hob__loader_count(fix.loader), 200);
    ck_assert_int_eq(fix.dl_open_count, 0);
    printf("200 manifests: %.2f ms\n", ms);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("discovery");
    TCase *tc = tcase_create("discovery");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_discovery_follows_the_order);
    tcase_add_test(tc, test_discovery_application_can_be_exclusive);
    tcase_add_test(tc, test_discovery_application_path_must_be_absolute);
    tcase_add_test(tc, test_discovery_plugin_path_replaces_the_defaults);
    tcase_add_test(tc, test_discovery_relative_element_is_refused);
    tcase_add_test(tc, test_discovery_case_29_missing_path_falls_through);
    tcase_add_test(tc, test_discovery_unreadable_folder);
    tcase_add_test(tc, test_discovery_missing_default_is_only_debug);
    tcase_add_test(tc, test_discovery_without_home);
    tcase_add_test(tc, test_discovery_case_30_compiled_in_dirs_always_count);
    tcase_add_test(tc, test_discovery_lists_json_sorted);
    tcase_add_test(tc, test_discovery_refuses_a_huge_folder);
    tcase_add_test(tc, test_discovery_case_6_same_file_by_identity);
    tcase_add_test(tc, test_discovery_case_10_bad_files_hide_nothing);
    tcase_add_test(tc, test_discovery_notices_a_change_during_the_read);
    tcase_add_test(tc, test_discovery_case_2_current_folder_does_not_matter);
    tcase_add_test(tc, test_discovery_paths_with_all_kinds_of_letters);
    tcase_add_test(tc, test_discovery_case_13_other_platform_is_skipped);
    tcase_add_test(tc, test_discovery_picks_the_best_variant);
    tcase_add_loop_test(tc, test_discovery_says_why_not, 0,
                        sizeof(refusals) / sizeof(refusals[0]));
    tcase_add_test(tc, test_discovery_refuses_other_abis_before_dlopen);
    tcase_add_test(tc, test_discovery_case_33_needs);
    tcase_add_test(tc, test_discovery_conflicts_and_dependencies);
    tcase_add_test(tc, test_discovery_refused_copy_shadows_nothing);
    tcase_add_test(tc, test_discovery_unmet_dependency_hides_nothing);
    tcase_add_test(tc, test_discovery_an_op_has_one_author);
    tcase_add_test(tc, test_discovery_priority_decides_between_ids);
    tcase_add_test(tc, test_discovery_case_24_elevated);
    tcase_add_test(tc, test_discovery_unknown_variable_gets_a_suggestion);
    tcase_add_test(tc, test_discovery_reports_memory_manifests);
    tcase_add_test(tc, test_discovery_case_16_beside_the_core);
    tcase_add_loop_test(tc, test_discovery_case_68_no_suffix_is_added, 0, 3);
    tcase_add_test(tc, test_discovery_case_22_one_getenv);
    tcase_add_test(tc, test_discovery_lists_200_manifests);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
