/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install_check.c - whether a plugin that is to be installed could serve here.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "install_job.h"

#include "elf_check.h"
#include "error.h"
#include "paths.h"
#include "schema.h"
#include "sha256.h"

#include <string.h>

/* What may be missing now and come later is no reason to refuse. */
static bool may_come_later(enum hob__reason reason)
{
    return reason == HOB__REASON_OK || reason == HOB__REASON_NEEDS_MISSING ||
           reason == HOB__REASON_REQUIRES_PLUGIN ||
           reason == HOB__REASON_REQUIRES_INTERFACE ||
           reason == HOB__REASON_REQUIRES_FILE;
}

static const struct hob__op_decl *find_builtin(const char *name)
{
    for (uint32_t i = 0; i < hob__builtin_op_count; i++)
        if (!strcmp(hob__builtin_ops[i].name, name))
            return &hob__builtin_ops[i];
    return NULL;
}

/* A kernel for a built-in op that could never be used; other ops may not be
 * installed yet. */
static hob_status check_implements(const struct hob__install_job *job)
{
    const struct hob__manifest *manifest = job->found.manifest;
    hob_status st = HOB_OK;

    for (uint32_t i = 0; i < manifest->implements_count && !st; i++) {
        const struct hob__manifest_implements *one = &manifest->implements[i];
        const struct hob__op_decl *op = find_builtin(one->op);
        struct hob__signature want;
        const char *message;
        char why[160];
        int column;

        if (!op || !one->signature)
            continue;
        st = hob__signature_parse(op->signature, &want, &column, &message);
        if (st)
            return hob__install_no_memory(job);
        if (!hob__signature_serves(&want, one->signature, why, sizeof(why)))
            st = hob_error_set(job->error, HOB_ERR_PLUGIN,
                               "%s, line %u: SIGNATURE: \"%s\" of "
                               "\"implements\", the op is %s%s: %s",
                               job->found.candidate.path,
                               (unsigned)one->place.line, one->signature,
                               op->name, op->signature, why);
        hob__signature_release(&want);
    }
    return st;
}

hob_status hob__install_check_manifest(struct hob__install_job *job)
{
    const struct hob__found *found = &job->found;
    const char *slash;

    if (hob__select(&job->loader, &job->found, 1))
        return hob__install_no_memory(job);
    if (!may_come_later(found->reason))
        return hob_error_set(
            job->error, HOB_ERR_PLUGIN, "%s: %s: %s%s%s", found->candidate.path,
            hob__reason_name(found->reason), hob__reason_text(found->reason),
            found->detail ? ": " : "", found->detail ? found->detail : "");
    if (!strncmp(found->candidate.library, "system:", 7))
        return hob_error_set(job->error, HOB_ERR_PLUGIN,
                             "%s: its library is the system's own (%s): there "
                             "is nothing to install",
                             found->candidate.path, found->candidate.library);
    slash = strrchr(found->candidate.library, '/');
    job->library_name = slash ? slash + 1 : found->candidate.library;
    job->library_path =
        hob__path_join(&job->loader.arena, job->library_dir, job->library_name);
    return job->library_path ? check_implements(job)
                             : hob__install_no_memory(job);
}

static hob_status check_hash(const struct hob__install_job *job)
{
    const char *wanted = job->found.candidate.sha256;
    char hex[65];
    int code =
        wanted ? hob__sha256_file(job->library_os, job->library_fd, hex) : 0;

    if (code)
        return hob__path_fail(job->library_real, code, job->error);
    if (!wanted || !strcmp(wanted, hex))
        return HOB_OK;
    return hob_error_set(job->error, HOB_ERR_PLUGIN,
                         "%s: its SHA-256 is %s, it should be %s",
                         job->library_real, hex, wanted);
}

/* The library in the package: what follows PACKAGE/ in its path. */
static hob_status open_packed(struct hob__install_job *job, uint64_t *out_size)
{
    const char *library = job->found.candidate.library;
    char *dir =
        hob__path_dir(&job->loader.arena, job->found.candidate.real_path);
    const struct hob__package_file *file = NULL;

    job->library_real = strdup(library);
    if (!dir || !job->library_real)
        return hob__install_no_memory(job);
    if (!strncmp(library, dir, strlen(dir)) && library[strlen(dir)] == '/')
        file = hob__package_find(job->package, library + strlen(dir) + 1);
    if (!file)
        return hob_error_set(job->error, HOB_ERR_PLUGIN,
                             "%s: its library %s is not in the package",
                             job->found.candidate.path, library);
    hob__package_view(job->package, file, &job->view);
    job->library_os = &job->view.os;
    job->library_fd = job->package->fd;
    job->library_sha256 = file->sha256;
    *out_size = file->size;
    return HOB_OK;
}

static hob_status open_library(struct hob__install_job *job, uint64_t *out_size)
{
    const struct hob_os_ops *os = job->os;
    struct hob_os_stat stat = {0};
    const char *library = job->found.candidate.library;
    int code = os->real_path(os->self, library, &job->library_real);

    if (code)
        return hob__path_fail(library, code, job->error);
    job->library_os = os;
    job->library_fd = os->open_read(os->self, job->library_real);
    if (job->library_fd < 0)
        return hob__path_fail(library, job->library_fd, job->error);
    code = os->file_stat(os->self, job->library_fd, &stat);
    if (code || stat.type != HOB_OS_REGULAR)
        return hob_error_set(job->error, HOB_ERR_PLUGIN,
                             "%s: not a regular file", library);
    job->library_sha256 = job->found.candidate.sha256;
    *out_size = stat.size;
    return HOB_OK;
}

hob_status hob__install_check_library(struct hob__install_job *job)
{
    enum hob__reason reason;
    bool exports = false;
    uint64_t size = 0;
    hob_status st =
        job->package ? open_packed(job, &size) : open_library(job, &size);

    if (!st)
        st = hob__library_check(job->library_os, job->library_fd, size,
                                job->library_real, &reason, job->error);
    if (!st)
        st = hob__library_exports(job->library_os, job->library_fd, size,
                                  job->library_real, "hob_plugin_entry",
                                  &exports, job->error);
    if (!st && !exports)
        st = hob_error_set(job->error, HOB_ERR_PLUGIN,
                           "%s: does not export hob_plugin_entry: it is no "
                           "plugin",
                           job->library_real);
    return st ? st : check_hash(job);
}
