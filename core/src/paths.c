/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool hob__path_is_absolute(const struct hob_os_ops *os, const char *path)
{
    if (os->path_list_separator == ':')
        return path[0] == '/';
    if ((path[0] == '\\' || path[0] == '/') && path[1] == path[0])
        return true;
    return is_letter(path[0]) && path[1] == ':' &&
           (path[2] == '\\' || path[2] == '/');
}

char *hob__path_join(struct hob__arena *arena, const char *dir,
                     const char *name)
{
    size_t length = strlen(dir);
    const char *slash = length && dir[length - 1] == '/' ? "" : "/";

    return hob__arena_printf(arena, "%s%s%s", dir, slash, name);
}

char *hob__path_dir(struct hob__arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');

    if (!slash)
        return hob__arena_strdup(arena, ".");
    if (slash == path)
        return hob__arena_strdup(arena, "/");
    return hob__arena_strndup(arena, path, (size_t)(slash - path));
}

bool hob__path_is_below(const char *path, const char *dir)
{
    size_t length = strlen(dir);

    if (strncmp(path, dir, length) != 0)
        return false;
    return path[length] == '\0' || path[length] == '/' ||
           (length && dir[length - 1] == '/');
}

const char *hob__path_real(const struct hob_os_ops *os,
                           struct hob__arena *arena, const char *path)
{
    char *real = NULL;
    const char *copy;

    if (os->real_path(os->self, path, &real) || !real)
        return NULL;
    copy = hob__arena_strdup(arena, real);
    free(real);
    return copy;
}

const char *hob__os_error(int code, char *buffer, size_t size)
{
    /* Those that a user meets, in words that do not depend on the locale. */
    switch (-code) {
    case ENOENT:
        return "no such file or folder";
    case EACCES:
    case EPERM:
        return "permission denied";
    case ENOTDIR:
        return "a part of the path is no folder";
    case EISDIR:
        return "it is a folder";
    case ELOOP:
        return "too many symbolic links";
    case ENXIO:
        return "is no file, and nobody reads it";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case ENOSPC:
        return "no space left";
    case EROFS:
        return "the file system is read-only";
    case EEXIST:
        return "it exists already";
    case ENOMEM:
        return "out of memory";
    default:
        (void)snprintf(buffer, size, "error %d of the system", -code);
        return buffer;
    }
}

hob_status hob__path_fail(const char *path, int code, hob_error *error)
{
    char buffer[64];

    return hob_error_set(error, HOB_ERR_IO, "%s: %s", path,
                         hob__os_error(code, buffer, sizeof(buffer)));
}

static hob_status fail(hob_error *error, enum hob__reason *out_reason,
                       enum hob__reason reason, const char *path,
                       const char *what)
{
    *out_reason = reason;
    return hob_error_set(error, HOB_ERR_IO, "%s: %s", path, what);
}

/* Read the open file and make sure that its length is still SIZE. */
static hob_status read_open(const struct hob_os_ops *os, int fd,
                            const char *path, size_t size, char **out_data,
                            enum hob__reason *out_reason, hob_error *error)
{
    char *data = malloc(size + 1);
    char buffer[64];
    int64_t n;

    if (!data)
        return hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
    /* One byte more than there should be: a file that grew shows. */
    n = os->read(os->self, fd, data, size + 1, 0);
    if (n == (int64_t)size) {
        data[size] = '\0';
        *out_data = data;
        return HOB_OK;
    }
    free(data);
    if (n < 0)
        return fail(error, out_reason, HOB__REASON_UNREADABLE, path,
                    hob__os_error((int)n, buffer, sizeof(buffer)));
    return fail(error, out_reason, HOB__REASON_CHANGED_DURING_READ, path,
                "its length changed while it was read");
}

static hob_status check_stat(const struct hob_os_stat *st, const char *path,
                             size_t max_size, enum hob__reason *out_reason,
                             hob_error *error)
{
    if (st->type != HOB_OS_REGULAR)
        return fail(error, out_reason, HOB__REASON_NOT_REGULAR, path,
                    "not a regular file");
    if (st->size < 2)
        return fail(error, out_reason, HOB__REASON_TOO_SMALL, path,
                    st->size ? "only 1 byte long" : "the file is empty");
    if (st->size <= max_size)
        return HOB_OK;
    *out_reason = HOB__REASON_TOO_BIG;
    return hob_error_set(error, HOB_ERR_IO, "%s: %llu bytes, at most %llu",
                         path, (unsigned long long)st->size,
                         (unsigned long long)max_size);
}

hob_status hob__file_read(const struct hob_os_ops *os, const char *path,
                          size_t max_size, char **out_data, size_t *out_size,
                          struct hob_os_stat *out_stat,
                          enum hob__reason *out_reason, hob_error *error)
{
    char buffer[64];
    int fd = os->open_read(os->self, path), code;
    hob_status st;

    *out_data = NULL;
    *out_size = 0;
    *out_reason = HOB__REASON_OK;
    if (fd < 0)
        return fail(error, out_reason, HOB__REASON_UNREADABLE, path,
                    hob__os_error(fd, buffer, sizeof(buffer)));
    code = os->file_stat(os->self, fd, out_stat);
    if (code)
        st = fail(error, out_reason, HOB__REASON_UNREADABLE, path,
                  hob__os_error(code, buffer, sizeof(buffer)));
    else
        st = check_stat(out_stat, path, max_size, out_reason, error);
    if (!st)
        st = read_open(os, fd, path, (size_t)out_stat->size, out_data,
                       out_reason, error);
    if (!st)
        *out_size = (size_t)out_stat->size;
    os->close(os->self, fd);
    return st;
}

static bool is_manifest_name(const char *name)
{
    size_t length = strlen(name);

    return name[0] != '.' && length > 5 && !strcmp(name + length - 5, ".json");
}

hob_status hob__folder_manifest(const struct hob_os_ops *os,
                                struct hob__arena *arena, const char *path,
                                const char **out_path, hob_error *error)
{
    const char *name = NULL, *found = NULL;
    void *dir = NULL;
    int code = os->open_dir(os->self, path, &dir), count = 0;

    if (code)
        return hob__path_fail(path, code, error);
    while (!os->read_dir(os->self, dir, &name) && name) {
        if (!is_manifest_name(name))
            continue;
        found = hob__path_join(arena, path, name);
        count++;
    }
    os->close_dir(os->self, dir);
    if (count != 1)
        return hob_error_set(error, HOB_ERR_NOT_FOUND,
                             count ? "%s: more than one *.json: name the "
                                     "manifest itself"
                                   : "%s: no manifest (*.json) in this folder",
                             path);
    if (!found)
        return hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
    *out_path = found;
    return HOB_OK;
}

int hob__make_dirs(const struct hob_os_ops *os, const char *dir)
{
    char *path = strdup(dir), *slash;
    int code = 0;

    if (!path)
        return -ENOMEM;
    for (slash = strchr(path + 1, '/'); !code; slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        code = os->make_dir(os->self, path, 0755);
        code = code == -EEXIST ? 0 : code;
        if (!slash)
            break;
        *slash = '/';
    }
    free(path);
    return code;
}

hob_status hob__lock_dir(const struct hob_os_ops *os, struct hob__arena *arena,
                         const char *dir, int *out_fd, hob_error *error)
{
    const char *path = hob__path_join(arena, dir, ".lock");
    int code = path ? hob__make_dirs(os, dir) : -ENOMEM;

    *out_fd = -1;
    if (code)
        return hob__path_fail(dir, code, error);
    code = os->create(os->self, path, HOB_OS_CREATE_APPEND, 0644);
    if (code < 0)
        return hob__path_fail(path, code, error);
    *out_fd = code;
    code = os->lock(os->self, *out_fd);
    if (!code)
        return HOB_OK;
    os->close(os->self, *out_fd);
    *out_fd = -1;
    return hob__path_fail(path, code, error);
}
