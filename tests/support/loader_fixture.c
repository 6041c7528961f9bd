/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_fixture.h"
#include "hob_check.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *fake_get_env(void *self, const char *name)
{
    const struct loader_fixture *fixture = self;
    size_t length = strlen(name);
    int i;

    for (i = 0; i < FIXTURE_ENV_MAX; i++) {
        if (fixture->env[i] && !strncmp(fixture->env[i], name, length) &&
            fixture->env[i][length] == '=')
            return strdup(fixture->env[i] + length + 1);
    }
    return NULL;
}

static char *fake_list_env(void *self, uint32_t index)
{
    const struct loader_fixture *fixture = self;

    return index < FIXTURE_ENV_MAX && fixture->env[index]
               ? strdup(fixture->env[index])
               : NULL;
}

static int count_open(void *self, const char *path)
{
    struct loader_fixture *fixture = self;
    int fd = hob__os()->open_read(NULL, path);

    fixture->open_count += fd >= 0;
    return fd;
}

static int count_create(void *self, const char *path, enum hob_os_create how,
                        uint32_t mode)
{
    struct loader_fixture *fixture = self;
    int fd = hob__os()->create(NULL, path, how, mode);

    fixture->open_count += fd >= 0;
    return fd;
}

static void count_close(void *self, int fd)
{
    struct loader_fixture *fixture = self;

    fixture->open_count--;
    hob__os()->close(NULL, fd);
}

static int count_open_dir(void *self, const char *path, void **out_dir)
{
    struct loader_fixture *fixture = self;
    int code = hob__os()->open_dir(NULL, path, out_dir);

    fixture->open_count += !code;
    return code;
}

static void count_close_dir(void *self, void *dir)
{
    struct loader_fixture *fixture = self;

    fixture->open_count--;
    hob__os()->close_dir(NULL, dir);
}

static void *count_dl_open(void *self, const char *path, char **out_message)
{
    struct loader_fixture *fixture = self;
    void *handle;

    /* Both would open the program itself. No ck_assert: it allocates, and
     * tests make that fail. */
    if (!path || !*path)
        abort();
    handle = hob__os()->dl_open(NULL, path, out_message);
    fixture->dl_open_count++;
    fixture->library_count += handle != NULL;
    return handle;
}

static void count_dl_close(void *self, void *handle)
{
    struct loader_fixture *fixture = self;

    fixture->library_count--;
    hob__os()->dl_close(NULL, handle);
}

static bool fake_is_elevated(void *self)
{
    return ((const struct loader_fixture *)self)->is_elevated;
}

static uint32_t fake_user(void *self)
{
    return ((const struct loader_fixture *)self)->user;
}

static int64_t fake_process(void *self)
{
    const struct loader_fixture *fixture = self;

    return fixture->process ? fixture->process : hob__os()->process(NULL);
}

static void collect_log(void *context, enum hob__severity severity,
                        const char *module, const char *message)
{
    struct loader_fixture *fixture = context;
    size_t old = fixture->log ? strlen(fixture->log) : 0;
    size_t size = old + strlen(module) + strlen(message) + 16;
    char *log = realloc(fixture->log, size);

    if (!log)
        return;
    fixture->log = log;
    (void)snprintf(log + old, size - old, "%s %s: %s\n",
                   hob__severity_name(severity), module, message);
}

void fixture_setenv(struct loader_fixture *fixture, const char *name,
                    const char *value)
{
    size_t length = strlen(name), size = length + strlen(value) + 2;
    int i;

    for (i = 0; i < FIXTURE_ENV_MAX - 1 && fixture->env[i]; i++) {
        if (!strncmp(fixture->env[i], name, length) &&
            fixture->env[i][length] == '=')
            break;
    }
    free(fixture->env[i]);
    fixture->env[i] = malloc(size);
    ck_assert_ptr_nonnull(fixture->env[i]);
    (void)snprintf(fixture->env[i], size, "%s=%s", name, value);
}

static char *keep(struct loader_fixture *fixture, const char *path)
{
    char *copy = strdup(fixture_path(fixture, path));

    ck_assert_ptr_nonnull(copy);
    return copy;
}

void fixture_setup(struct loader_fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    (void)snprintf(fixture->root, sizeof(fixture->root), "/tmp/hob-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(fixture->root));
    fixture->user = (uint32_t)geteuid();
    fixture->os = *hob__os();
    fixture->os.self = fixture;
    fixture->os.get_env = fake_get_env;
    fixture->os.list_env = fake_list_env;
    fixture->os.open_read = count_open;
    fixture->os.create = count_create;
    fixture->os.close = count_close;
    fixture->os.open_dir = count_open_dir;
    fixture->os.close_dir = count_close_dir;
    fixture->os.dl_open = count_dl_open;
    fixture->os.dl_close = count_dl_close;
    fixture->os.is_elevated = fake_is_elevated;
    fixture->os.user = fake_user;
    fixture->os.process = fake_process;
    fixture->options.prefix = keep(fixture, "prefix");
    fixture->options.sysconf_dir = keep(fixture, "etc");
    fixture->options.data_dir = keep(fixture, "data");
    fixture->options.core_is_static = true;
    fixture->options.log_sink = collect_log;
    fixture->options.log_context = fixture;
    fixture_setenv(fixture, "HOME", fixture_path(fixture, "home"));
    fixture_setenv(fixture, "XDG_CONFIG_DIRS",
                   fixture_path(fixture, "etc/xdg"));
    fixture_setenv(fixture, "XDG_DATA_DIRS",
                   fixture_path(fixture, "usr/share"));
}

static int remove_one(const char *path, const struct stat *st, int type,
                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void fixture_teardown(struct loader_fixture *fixture)
{
    int i;

    hob__loader_close(fixture->loader);
    fixture->loader = NULL;
    ck_assert_msg(fixture->open_count == 0, "%d files are still open",
                  fixture->open_count);
    free((char *)(uintptr_t)fixture->options.prefix);
    free((char *)(uintptr_t)fixture->options.sysconf_dir);
    free((char *)(uintptr_t)fixture->options.data_dir);
    for (i = 0; i < FIXTURE_ENV_MAX; i++)
        free(fixture->env[i]);
    free(fixture->log);
    (void)nftw(fixture->root, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Tests run one a process, so a ring of static buffers is enough. */
char *fixture_path(const struct loader_fixture *fixture, const char *path)
{
    static char buffers[4][1024];
    static unsigned next;
    char *buffer = buffers[next++ % 4];

    (void)snprintf(buffer, sizeof(buffers[0]), "%s/%s", fixture->root, path);
    return buffer;
}

static void make_parents(const char *path)
{
    char copy[1024];
    char *p;

    (void)snprintf(copy, sizeof(copy), "%s", path);
    for (p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
        *p = '\0';
        (void)mkdir(copy, 0755);
        *p = '/';
    }
}

void fixture_write_bytes(struct loader_fixture *fixture, const char *path,
                         const void *data, size_t size)
{
    const char *full = fixture_path(fixture, path);
    FILE *file;

    make_parents(full);
    file = fopen(full, "wb");
    ck_assert_msg(file != NULL, "%s cannot be written", full);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(full, 0644), 0);
}

void fixture_write(struct loader_fixture *fixture, const char *path,
                   const char *text)
{
    fixture_write_bytes(fixture, path, text, strlen(text));
}

void fixture_make_dir(struct loader_fixture *fixture, const char *path)
{
    const char *full = fixture_path(fixture, path);

    make_parents(full);
    ck_assert_int_eq(mkdir(full, 0755), 0);
}

char *fixture_mock_path(const char *name)
{
    static char path[4096];
    const char *dir = getenv("HOB_TEST_MOCK_DIR");
    const char *build = getenv("HOB_TEST_BUILDDIR");
    char wanted[4096];

    (void)snprintf(wanted, sizeof(wanted), "%s%s/%s.so",
                   dir     ? dir
                   : build ? build
                           : ".",
                   dir ? "" : "/mock/.libs", name);
    ck_assert_msg(realpath(wanted, path) != NULL, "%s is not built", wanted);
    return path;
}

void fixture_mock(struct loader_fixture *fixture, const char *path,
                  const char *name)
{
    FILE *file = fopen(fixture_mock_path(name), "rb");
    char *data = malloc(1 << 20);
    size_t size;

    ck_assert(file && data);
    size = fread(data, 1, 1 << 20, file);
    (void)fclose(file);
    fixture_write_bytes(fixture, path, data, size);
    free(data);
}

char *fixture_manifest(const char *id, const char *library, const char *more)
{
    size_t size = 512 + strlen(id) + strlen(library) + strlen(more);
    char *text = malloc(size);

    ck_assert_ptr_nonnull(text);
    (void)snprintf(text, size,
                   "{\"manifest_version\": 1, \"id\": \"%s\", "
                   "\"version\": \"1.0.0\", \"kind\": \"backend\", "
                   "\"abi\": {\"major\": %d, \"required_minor\": %d, "
                   "\"built_minor\": %d}, \"library\": \"%s\", "
                   "\"backend\": {\"selector\": \"%s\"}%s}\n",
                   id, HOB_ABI_MAJOR, HOB_ABI_MINOR, HOB_ABI_MINOR, library, id,
                   more);
    return text;
}

void fixture_backend(struct loader_fixture *fixture, const char *path,
                     const char *id, const char *library, const char *more)
{
    char *text = fixture_manifest(id, library, more);

    fixture_write(fixture, path, text);
    free(text);
}

struct hob__loader *fixture_open(struct loader_fixture *fixture)
{
    hob_error error = HOB_ERROR_INIT;
    hob_status st;

    hob__loader_close(fixture->loader);
    st = hob__loader_open(&fixture->options, &fixture->os, &fixture->loader,
                          &error);
    ck_assert_msg(st == HOB_OK, "%s: %s", hob_status_name(st),
                  error.message ? error.message : "");
    return fixture->loader;
}

const struct hob__record *fixture_record(struct loader_fixture *fixture,
                                         uint32_t index)
{
    const struct hob__candidate *candidate =
        hob__loader_get(fixture->loader, index);

    ck_assert_msg(candidate != NULL, "there is no candidate %u",
                  (unsigned)index);
    return hob__candidate_record(candidate);
}
