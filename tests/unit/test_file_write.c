/* SPDX-License-Identifier: Apache-2.0 */
#include "file_map.h"
#include "file_write.h"

#include "hob_check.h"
#include "tmp_dir.h"

#include <signal.h>
#include <sys/resource.h>

static struct tmp_dir dir;
static hob_error error;

static void setup(void)
{
    tmp_dir_make(&dir);
    ck_assert(dir.path[0]);
}

static void teardown(void)
{
    tmp_dir_remove(&dir);
    hob_error_release(&error);
}

/* PATH's content is TEXT. */
static void has(const char *path, const char *text)
{
    struct hob__file_map *map;

    ck_assert_hob_ok(hob__file_map_open(path, &map, &error));
    ck_assert_uint_eq(hob__file_map_size(map), strlen(text));
    if (*text)
        ck_assert_mem_eq(hob__file_map_data(map), text, strlen(text));
    hob__file_map_unref(map);
}

static hob_status write_text(const char *path, const char *text)
{
    struct hob__file_write *writer;
    hob_status st = hob__file_write_open(path, &writer, &error);

    if (st)
        return st;
    st = hob__file_write_put(writer, text, strlen(text), &error);
    if (st) {
        hob__file_write_abort(writer);
        return st;
    }
    return hob__file_write_commit(writer, &error);
}

START_TEST(test_file_write_makes_and_replaces)
{
    const char *path = tmp_path(&dir, "a");

    ck_assert_hob_ok(write_text(path, ""));
    has(path, "");
    ck_assert_hob_ok(write_text(path, "one"));
    has(path, "one");
    ck_assert_hob_ok(write_text(path, "two and more"));
    has(path, "two and more");
    ck_assert_int_eq(tmp_dir_count(&dir), 1);
}
END_TEST

START_TEST(test_file_write_abort_leaves_the_old_file)
{
    const char *path = tmp_path(&dir, "a");
    struct hob__file_write *writer;

    ck_assert_hob_ok(write_text(path, "old"));
    ck_assert_hob_ok(hob__file_write_open(path, &writer, &error));
    ck_assert_hob_ok(hob__file_write_put(writer, "new", 3, &error));
    has(path, "old");
    ck_assert_int_eq(tmp_dir_count(&dir), 2);
    hob__file_write_abort(writer);
    has(path, "old");
    ck_assert_int_eq(tmp_dir_count(&dir), 1);
    hob__file_write_abort(NULL);
}
END_TEST

START_TEST(test_file_write_two_writers_last_commit_wins)
{
    const char *path = tmp_path(&dir, "a");
    struct hob__file_write *first;
    struct hob__file_write *second;

    ck_assert_hob_ok(hob__file_write_open(path, &first, &error));
    ck_assert_hob_ok(hob__file_write_open(path, &second, &error));
    ck_assert_hob_ok(hob__file_write_put(first, "1", 1, &error));
    ck_assert_hob_ok(hob__file_write_put(second, "22", 2, &error));
    ck_assert_hob_ok(hob__file_write_commit(second, &error));
    has(path, "22");
    ck_assert_hob_ok(hob__file_write_commit(first, &error));
    has(path, "1");
    ck_assert_int_eq(tmp_dir_count(&dir), 1);
}
END_TEST

START_TEST(test_file_write_keeps_permissions_and_links)
{
    char target[600];
    struct stat info;

    (void)snprintf(target, sizeof(target), "%s", tmp_path(&dir, "target"));
    ck_assert_hob_ok(write_text(target, "old"));
    ck_assert_int_eq(chmod(target, 0640), 0);
    ck_assert_int_eq(symlink("target", tmp_path(&dir, "link")), 0);
    ck_assert_hob_ok(write_text(tmp_path(&dir, "link"), "new"));
    has(target, "new");
    ck_assert_int_eq(lstat(tmp_path(&dir, "link"), &info), 0);
    ck_assert(S_ISLNK(info.st_mode));
    ck_assert_int_eq(stat(target, &info), 0);
    ck_assert_uint_eq(info.st_mode & 0777, 0640);
}
END_TEST

START_TEST(test_file_write_takes_a_name_of_255_bytes)
{
    char name[256];

    memset(name, 'n', 255);
    name[255] = '\0';
    ck_assert_hob_ok(write_text(tmp_path(&dir, name), "x"));
    has(tmp_path(&dir, name), "x");
}
END_TEST

START_TEST(test_file_write_rejects_what_is_no_file)
{
    ck_assert_hob_fails(write_text(dir.path, "x"), HOB_ERR_IO,
                        "it is a folder");
    ck_assert_hob_fails(write_text("/dev/null", "x"), HOB_ERR_IO,
                        "/dev/null: cannot write: not a regular file");
    ck_assert_hob_fails(write_text(tmp_path(&dir, "no/such/folder"), "x"),
                        HOB_ERR_IO, "No such file or directory");
    ck_assert_hob_fails(write_text("", "x"), HOB_ERR_IO, "cannot write");
    ck_assert_int_eq(tmp_dir_count(&dir), 0);
}
END_TEST

START_TEST(test_file_write_in_a_read_only_folder)
{
    if (geteuid() == 0)
        return; /* root may write everywhere */
    ck_assert_int_eq(chmod(dir.path, 0500), 0);
    ck_assert_hob_fails(write_text(tmp_path(&dir, "a"), "x"), HOB_ERR_IO,
                        "Permission denied");
    ck_assert_int_eq(tmp_dir_count(&dir), 0);
}
END_TEST

/* A file that cannot grow stands for a disk that is full. */
START_TEST(test_file_write_without_room)
{
    struct rlimit before;
    struct rlimit limit;
    const char *path = tmp_path(&dir, "a");
    struct hob__file_write *writer;
    char data[2000] = {0};
    hob_status st;

    ck_assert_hob_ok(write_text(path, "old"));
    (void)signal(SIGXFSZ, SIG_IGN);
    ck_assert_hob_ok(hob__file_write_open(path, &writer, &error));
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 1000;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    st = hob__file_write_put(writer, data, sizeof(data), &error);
    /* check's own file for messages must be able to grow again. */
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_hob_fails(st, HOB_ERR_IO,
                        "cannot write after 1000 bytes: File too large");
    hob__file_write_abort(writer);
    has(path, "old");
    ck_assert_int_eq(tmp_dir_count(&dir), 1);
}
END_TEST

START_TEST(test_file_map_rejects)
{
    struct hob__file_map *map = (void *)1;

    ck_assert_hob_fails(
        hob__file_map_open(tmp_path(&dir, "none"), &map, &error),
        HOB_ERR_NOT_FOUND, "No such file");
    ck_assert_ptr_null(map);
    ck_assert_hob_fails(hob__file_map_open(dir.path, &map, &error), HOB_ERR_IO,
                        "not a regular file");
    ck_assert_int_eq(mkfifo(tmp_path(&dir, "fifo"), 0600), 0);
    ck_assert_hob_fails(
        hob__file_map_open(tmp_path(&dir, "fifo"), &map, &error), HOB_ERR_IO,
        "not a regular file");
    hob__file_map_unref(NULL);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("file_write");
    TCase *tc = tcase_create("file_write");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_file_write_makes_and_replaces);
    tcase_add_test(tc, test_file_write_abort_leaves_the_old_file);
    tcase_add_test(tc, test_file_write_two_writers_last_commit_wins);
    tcase_add_test(tc, test_file_write_keeps_permissions_and_links);
    tcase_add_test(tc, test_file_write_takes_a_name_of_255_bytes);
    tcase_add_test(tc, test_file_write_rejects_what_is_no_file);
    tcase_add_test(tc, test_file_write_in_a_read_only_folder);
    tcase_add_test(tc, test_file_write_without_room);
    tcase_add_test(tc, test_file_map_rejects);
    return hob_check_main(suite);
}
