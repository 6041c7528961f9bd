/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install_write.c - copies a plugin that was checked to where it is found. Both
 * files are whole on the disk before either has its name.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "install_job.h"

#include "error.h"
#include "json.h"
#include "paths.h"
#include "sha256.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { COPY_CHUNK = 1 << 16 };

static hob_status make_dirs(const struct hob__install_job *job, const char *dir)
{
    int code = hob__make_dirs(job->os, dir);

    return code ? hob__path_fail(dir, code, job->error) : HOB_OK;
}

/* Copy the library to the new file OUT; what was checked is what is copied. */
static int copy_library(const struct hob__install_job *job, int out)
{
    const struct hob_os_ops *from = job->library_os, *to = job->os;
    char *chunk = malloc(COPY_CHUNK), hex[65];
    struct hob__sha256 sha;
    uint64_t offset = 0;
    int64_t n;

    if (!chunk)
        return -ENOMEM;
    hob__sha256_init(&sha);
    while ((n = from->read(from->self, job->library_fd, chunk, COPY_CHUNK,
                           offset)) > 0) {
        offset += (uint64_t)n;
        hob__sha256_update(&sha, chunk, (size_t)n);
        n = to->write(to->self, out, chunk, (size_t)n);
        if (n < 0)
            break;
    }
    free(chunk);
    hob__sha256_hex(&sha, hex);
    if (n < 0)
        return (int)n;
    /* Somebody writes to it just now. */
    return job->library_sha256 && strcmp(hex, job->library_sha256) ? -EBUSY : 0;
}

/* Write a file aside, whole and on the disk: SIZE bytes of DATA, or the
 * library if DATA is NULL. *OUT_ASIDE is its name. */
static hob_status write_aside(struct hob__install_job *job, const char *path,
                              const char *data, size_t size, uint32_t mode,
                              const char **out_aside)
{
    const struct hob_os_ops *os = job->os;
    struct hob__arena *arena = &job->loader.arena;
    const char *aside = hob__arena_printf(arena, "%s.new-%" PRId64, path,
                                          os->process(os->self));
    int64_t n;
    int out, code;

    if (!aside)
        return hob__install_no_memory(job);
    out = os->create(os->self, aside, HOB_OS_CREATE_NEW, mode);
    if (out == -EEXIST) {
        /* Left behind by a process of that number that was killed. */
        (void)os->remove(os->self, aside);
        out = os->create(os->self, aside, HOB_OS_CREATE_NEW, mode);
    }
    if (out < 0)
        return hob__path_fail(aside, out, job->error);
    n = data ? os->write(os->self, out, data, size) : copy_library(job, out);
    code = n < 0 ? (int)n : os->sync(os->self, out);
    os->close(os->self, out);
    if (!code) {
        *out_aside = aside;
        return HOB_OK;
    }
    (void)os->remove(os->self, aside);
    return code == -EBUSY ? hob_error_set(job->error, HOB_ERR_IO,
                                          "%s: it changed while it was copied",
                                          job->library_real)
                          : hob__path_fail(aside, code, job->error);
}

/* The manifest with "library" as it is after the installation. */
static hob_status rewrite(const struct hob__install_job *job,
                          struct hob__text *out_text)
{
    static const struct hob__json_limits limits = HOB__JSON_MANIFEST_LIMITS;
    const struct hob__candidate *candidate = &job->found.candidate;
    struct hob__text path = HOB__TEXT_INIT;
    struct hob__json_doc *doc = NULL;
    const struct hob__json_value *library;
    hob_status st = hob__json_parse(candidate->path, job->text, job->size,
                                    &limits, &doc, NULL, job->error);

    if (st)
        return st;
    library = hob__json_member(doc, hob__json_root(doc), "library");
    hob__text_append(out_text, job->text, library->offset);
    hob__text_printf(&path, "../lib/%s/%s", candidate->id, job->library_name);
    if (candidate->sha256)
        hob__text_printf(out_text, "{\"%s\": [{\"path\": ", job->os->triple);
    hob__text_json(out_text, path.data ? path.data : "");
    if (candidate->sha256)
        hob__text_printf(out_text, ", \"sha256\": \"%s\"}]}",
                         candidate->sha256);
    hob__text_append(out_text, job->text + library->offset + library->length,
                     job->size - library->offset - library->length);
    st = path.failed || out_text->failed ? hob__install_no_memory(job) : HOB_OK;
    hob__text_release(&path);
    hob__json_free(doc);
    return st;
}

/* Rename both into place, the library first (see Installing). */
static hob_status put_in_place(const struct hob__install_job *job,
                               const char *library, const char *manifest)
{
    const struct hob_os_ops *os = job->os;
    struct hob_os_stat stat;
    bool is_new = os->path_stat(os->self, job->library_path, false, &stat) != 0;
    int code = os->rename(os->self, library, job->library_path);

    if (code)
        return hob__path_fail(job->library_path, code, job->error);
    code = os->rename(os->self, manifest, job->manifest_path);
    if (!code)
        return HOB_OK;
    if (is_new)
        (void)os->remove(os->self, job->library_path);
    return hob__path_fail(job->manifest_path, code, job->error);
}

hob_status hob__install_write(struct hob__install_job *job)
{
    const struct hob_os_ops *os = job->os;
    struct hob__text text = HOB__TEXT_INIT;
    const char *library = NULL, *manifest = NULL;
    char *parent = hob__path_dir(&job->loader.arena, job->manifest_path);
    hob_status st = parent ? rewrite(job, &text) : hob__install_no_memory(job);

    if (!st)
        st = hob__install_lock(job);
    if (!st)
        st = make_dirs(job, job->library_dir);
    if (!st)
        st = make_dirs(job, parent);
    if (!st)
        st = write_aside(job, job->library_path, NULL, 0, 0755, &library);
    if (!st)
        st = write_aside(job, job->manifest_path, text.data, text.length, 0644,
                         &manifest);
    if (!st)
        st = put_in_place(job, library, manifest);
    if (st && library)
        (void)os->remove(os->self, library);
    if (st && manifest)
        (void)os->remove(os->self, manifest);
    hob__text_release(&text);
    return st;
}
