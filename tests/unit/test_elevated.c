/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loader in a process that the system itself calls elevated (SEC-1;
 * cases 17 and 24). This program copies itself, makes the copy setuid or
 * setgid, and runs it as another user; the copy prints what it found. Only
 * root can do that, on a file system and in a process that allow it.
 */
#include "../support/hob_check.h"
#include "loader_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, OTHER_USER = 65534, OUTPUT_MAX = 8192 };

static struct loader_fixture fix;

/* ---- the copy: argv is PROGRAM --inside FOLDER ---- */

static void print_log(void *context, enum hob__severity severity,
                      const char *module, const char *message)
{
    (void)context;
    (void)severity;
    (void)module;
    (void)printf("%s\n", message);
}

static int inside(const char *root)
{
    char app[300], prefix[300], sysconf[300], data[300];
    const char *directories[1] = {app};
    struct hob__loader_options options = {.directories = directories,
                                          .directory_count = 1,
                                          .prefix = prefix,
                                          .sysconf_dir = sysconf,
                                          .data_dir = data,
                                          .core_is_static = true,
                                          .log_sink = print_log};
    struct hob__loader *loader = NULL;
    hob_error error = HOB_ERROR_INIT;
    hob_status st;

    (void)snprintf(app, sizeof(app), "%s/app", root);
    (void)snprintf(prefix, sizeof(prefix), "%s/prefix", root);
    (void)snprintf(sysconf, sizeof(sysconf), "%s/etc", root);
    (void)snprintf(data, sizeof(data), "%s/data", root);
    (void)printf("elevated %d\n", hob__os()->is_elevated(hob__os()->self));
    st = hob__loader_open(&options, hob__os(), &loader, &error);
    if (st)
        (void)printf("not opened: %s\n", error.message);
    for (uint32_t i = 0; !st && i < hob__loader_count(loader); i++) {
        const struct hob__candidate *one = hob__loader_get(loader, i);

        (void)printf("%s %s\n", one->id,
                     hob__state_name(hob__candidate_record(one)->state));
    }
    hob__loader_close(loader);
    hob_error_release(&error);
    return st ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- the test ---- */

static void setup(void)
{
    fixture_setup(&fix);
    ck_assert_int_eq(chmod(fix.root, 0755), 0);
    fixture_backend(&fix, "app/m.json", "app", "m.so", "");
    fixture_backend(&fix, "path/m.json", "path", "m.so", "");
    fixture_backend(&fix, "home/.config/hob/plugins.d/m.json", "home", "m.so",
                    "");
    fixture_backend(&fix, "xdg/hob/plugins.d/m.json", "xdg", "m.so", "");
    fixture_backend(&fix, "data/hob/plugins.d/m.json", "compiled", "m.so", "");
    fixture_write(&fix, "config.json",
                  "{\"plugins\": {\"disabled\": [\"compiled\"]}}");
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

/* Copy this program to TO with MODE. */
static void copy_self(const char *to, mode_t mode)
{
    int in = open("/proc/self/exe", O_RDONLY);
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0755);
    char buffer[65536];
    ssize_t size;

    ck_assert_int_ge(in, 0);
    ck_assert_int_ge(out, 0);
    while ((size = read(in, buffer, sizeof(buffer))) > 0)
        ck_assert_int_eq(write(out, buffer, (size_t)size), size);
    ck_assert_int_eq(size, 0);
    (void)close(in);
    ck_assert_int_eq(close(out), 0);
    ck_assert_int_eq(chown(to, 0, 0), 0);
    ck_assert_int_eq(chmod(to, mode), 0);
}

static char *variable(const char *name, const char *path)
{
    static char buffers[8][400];
    static unsigned next;
    char *buffer = buffers[next++ % 8];

    (void)snprintf(buffer, sizeof(buffers[0]), "%s=%s", name,
                   fixture_path(&fix, path));
    return buffer;
}

/* In the child: become USER and run PROGRAM. */
static void run_as(const char *program, uid_t user, int output)
{
    char *const argv[] = {(char *)(uintptr_t)program, "--inside", fix.root,
                          NULL};
    char *const envp[] = {variable("HOB_ADD_PLUGIN_PATH", "path"),
                          variable("HOB_CONFIG", "config.json"),
                          variable("HOME", "home"),
                          variable("XDG_DATA_DIRS", "xdg"),
                          variable("XDG_CONFIG_DIRS", "etc/xdg"),
                          "HOB_LOG=loader=warn",
                          NULL};

    if (dup2(output, 1) < 0 || dup2(output, 2) < 0)
        _exit(100);
    if (user && (setgroups(0, NULL) || setgid(user) || setuid(user)))
        _exit(101);
    (void)execve(program, argv, envp);
    _exit(102);
}

static const char *output_of(const char *program, uid_t user)
{
    static char text[OUTPUT_MAX];
    size_t length = 0;
    ssize_t size;
    int ends[2], status = 0;
    pid_t child;

    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (!child)
        run_as(program, user, ends[1]);
    ck_assert_int_gt(child, 0);
    (void)close(ends[1]);
    while ((size = read(ends[0], text + length, sizeof(text) - 1 - length)) > 0)
        length += (size_t)size;
    text[length] = '\0';
    (void)close(ends[0]);
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "exit status %d: %s", WEXITSTATUS(status), text);
    return text;
}

static const struct row {
    mode_t mode;
    uid_t user;
    bool elevated;
} rows[] = {
    {0755, OTHER_USER, false}, {04755, OTHER_USER, true},
    {02755, OTHER_USER, true}, {06755, OTHER_USER, true},
    {04755, 0, false}, /* root gains nothing */
};

static void has(const char *text, const char *part, bool want)
{
    ck_assert_msg((strstr(text, part) != NULL) == want, "%s\"%s\" in:\n%s",
                  want ? "no " : "", part, text);
}

/* How often is PART in TEXT? */
static int times(const char *text, const char *part)
{
    int count = 0;

    for (text = strstr(text, part); text; text = strstr(text + 1, part))
        count++;
    return count;
}

START_TEST(test_elevated_in_earnest)
{
    const struct row *row = &rows[_i];
    const bool is_plain = !row->elevated;
    char copy[300];
    const char *text;

    (void)snprintf(copy, sizeof(copy), "%s", fixture_path(&fix, "copy"));
    copy_self(copy, row->mode);
    text = output_of(copy, row->user);
    has(text, row->elevated ? "elevated 1\n" : "elevated 0\n", true);
    /* What the application names works always. */
    has(text, "app DISCOVERED\n", true);
    /* What the user names does so only in a plain process. */
    has(text, "path DISCOVERED\n", is_plain);
    has(text, "home DISCOVERED\n", is_plain);
    has(text, "xdg DISCOVERED\n", is_plain);
    has(text, "compiled DISABLED\n", is_plain);
    has(text, "compiled DISCOVERED\n", row->elevated);
    ck_assert_int_eq(times(text, "HOB_ADD_PLUGIN_PATH: ignored"),
                     row->elevated);
    ck_assert_int_eq(times(text, "HOB_CONFIG: ignored"), row->elevated);
}
END_TEST

/* Why can this not be tried here? NULL: it can. */
static const char *why_not(void)
{
    struct statvfs fs;

    if (geteuid() != 0 || getuid() != 0)
        return "only root can make a setuid program of root's";
    if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
        return "this process may gain no privileges (no_new_privs)";
    if (statvfs("/tmp", &fs) || (fs.f_flag & ST_NOSUID))
        return "setuid has no effect on the file system of /tmp";
    return NULL;
}

int main(int argc, char **argv)
{
    Suite *suite;
    TCase *tc;

    if (argc == 3 && !strcmp(argv[1], "--inside")) {
        int status = inside(argv[2]);

        (void)fflush(stdout);
        _exit(status); /* a sanitizer may not look for leaks when elevated */
    }
    if (why_not()) {
        printf("skipped: %s\n", why_not());
        return SKIPPED;
    }
    suite = suite_create("elevated");
    tc = tcase_create("elevated");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_elevated_in_earnest, 0,
                        sizeof(rows) / sizeof(rows[0]));
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
