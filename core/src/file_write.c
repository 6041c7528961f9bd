/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "file_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* write() takes at most 0x7ffff000 bytes; smaller calls can be interrupted. */
enum { WRITE_MAX = 1 << 26, NAME_TRIES = 100 };

struct hob__file_write {
    char *path;   /* as given, for messages */
    char *target; /* the file to replace, links resolved */
    char *temporary;
    char *folder; /* of both */
    int file;     /* -1 before it is open */
    uint64_t written;
};

static hob_status fail(const struct hob__file_write *writer, int code,
                       hob_error *error)
{
    return hob_error_set(error, HOB_ERR_IO, "%s: cannot write: %s",
                         writer->path, strerror(code));
}

static hob_status no_memory(const char *path, hob_error *error)
{
    return hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
}

/* Find the file that PATH stands for; EXISTS says whether MODE is its own. */
static hob_status resolve(struct hob__file_write *writer, bool *out_exists,
                          mode_t *out_mode, hob_error *error)
{
    struct stat info;
    const char *slash;

    *out_exists = stat(writer->path, &info) == 0;
    if (!*out_exists && errno != ENOENT)
        return fail(writer, errno, error);
    if (*out_exists && !S_ISREG(info.st_mode))
        return hob_error_set(
            error, HOB_ERR_IO, "%s: cannot write: %s", writer->path,
            S_ISDIR(info.st_mode) ? "it is a folder" : "not a regular file");
    if (*out_exists)
        *out_mode = info.st_mode & 0777;
    writer->target =
        *out_exists ? realpath(writer->path, NULL) : strdup(writer->path);
    if (!writer->target)
        return errno == ENOMEM ? no_memory(writer->path, error)
                               : fail(writer, errno, error);
    slash = strrchr(writer->target, '/');
    if (slash)
        writer->folder =
            strndup(writer->target, (size_t)(slash - writer->target) + 1);
    else
        writer->folder = strdup("./");
    return writer->folder ? HOB_OK : no_memory(writer->path, error);
}

/* Open a file that did not exist, called after the target and this process. */
static hob_status create(struct hob__file_write *writer, hob_error *error)
{
    const char *name = strrchr(writer->target, '/');
    int code = EEXIST;

    name = name ? name + 1 : writer->target;
    for (int i = 0; i < NAME_TRIES && code == EEXIST; i++) {
        int length;

        free(writer->temporary);
        /* A long name is cut, so that the suffix does not make it too long. */
        length = asprintf(&writer->temporary, "%s.%.200s.%ld-%d.tmp",
                          writer->folder, name, (long)getpid(), i);
        if (length < 0) {
            writer->temporary = NULL;
            return no_memory(writer->path, error);
        }
        writer->file = open(writer->temporary,
                            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        code = writer->file < 0 ? errno : 0;
    }
    if (!code)
        return HOB_OK;
    free(writer->temporary); /* not ours to remove */
    writer->temporary = NULL;
    return fail(writer, code, error);
}

/* Make a rename in FOLDER last. Not every file system can; that is no harm. */
static void sync_folder(const char *folder)
{
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (file < 0)
        return;
    (void)fsync(file);
    (void)close(file);
}

static void writer_free(struct hob__file_write *writer)
{
    free(writer->path);
    free(writer->target);
    free(writer->temporary);
    free(writer->folder);
    free(writer);
}

hob_status hob__file_write_open(const char *path,
                                struct hob__file_write **out_write,
                                hob_error *error)
{
    struct hob__file_write *writer = calloc(1, sizeof(*writer));
    bool exists = false;
    mode_t mode = 0;
    hob_status st = HOB_OK;

    *out_write = NULL;
    if (!writer)
        return no_memory(path, error);
    writer->file = -1;
    writer->path = strdup(path);
    if (!writer->path) {
        free(writer);
        return no_memory(path, error);
    }
    st = resolve(writer, &exists, &mode, error);
    if (!st)
        st = create(writer, error);
    /* Not all file systems have permissions: then there are none to keep. */
    if (!st && exists)
        (void)fchmod(writer->file, mode);
    if (st) {
        hob__file_write_abort(writer);
        return st;
    }
    *out_write = writer;
    return HOB_OK;
}

hob_status hob__file_write_put(struct hob__file_write *writer, const void *data,
                               uint64_t bytes, hob_error *error)
{
    const unsigned char *rest = data;

    while (bytes) {
        size_t size = bytes < WRITE_MAX ? (size_t)bytes : WRITE_MAX;
        ssize_t done = write(writer->file, rest, size);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return hob_error_set(error, HOB_ERR_IO,
                                 "%s: cannot write after %" PRIu64 " bytes: %s",
                                 writer->path, writer->written,
                                 strerror(errno));
        rest += done;
        bytes -= (uint64_t)done;
        writer->written += (uint64_t)done;
    }
    return HOB_OK;
}

hob_status hob__file_write_commit(struct hob__file_write *writer,
                                  hob_error *error)
{
    hob_status st = HOB_OK;
    int file = writer->file;

    if (fsync(file))
        st = fail(writer, errno, error);
    writer->file = -1;
    /* NFS reports a full disk here. */
    if (close(file) && !st)
        st = fail(writer, errno, error);
    if (!st && rename(writer->temporary, writer->target))
        st = fail(writer, errno, error);
    if (st) {
        hob__file_write_abort(writer);
        return st;
    }
    sync_folder(writer->folder);
    writer_free(writer);
    return HOB_OK;
}

void hob__file_write_abort(struct hob__file_write *writer)
{
    if (!writer)
        return;
    if (writer->file >= 0)
        (void)close(writer->file);
    if (writer->temporary)
        (void)unlink(writer->temporary);
    writer_free(writer);
}
