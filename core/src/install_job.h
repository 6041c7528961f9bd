/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install_job.h - one installation or removal, step by step: begin, read,
 * check, lock, write, end.
 */
#ifndef HOB__INSTALL_JOB_H
#define HOB__INSTALL_JOB_H

#include "loader_internal.h"
#include "manifest_read.h"
#include "package.h"

struct hob__install_job {
    struct hob__loader loader; /* only what hob__select() needs of one */
    struct hob__found found;
    const struct hob_os_ops *os;
    const char *data_dir;
    const char *manifest_path; /* where it goes */
    const char *library_dir;
    const char *library_path;
    const char *library_name;
    char *library_real; /* owned: where it comes from */
    int library_fd;     /* -1: not open; in a package the package's own */
    const struct hob_os_ops *library_os; /* reads it */
    const char *library_sha256;          /* what it must be, or NULL */
    char *text;                          /* owned: the manifest as it is */
    size_t size;
    struct hob__package *package; /* owned; NULL: a folder or a manifest */
    struct hob__package_view view;
    int lock; /* of the data folder's plugins; -1: not held */
    hob_error *error;
};

/* Set JOB up for the data folder that WHERE means; SYSTEM_DIR as DATA_DIR of
 * hob__install(). End with hob__install_end() either way. */
HOB_MUST_CHECK hob_status hob__install_begin(struct hob__install_job *job,
                                             const struct hob_os_ops *os,
                                             const char *system_dir,
                                             uint32_t where, hob_error *error);
void hob__install_end(struct hob__install_job *job);

/* Fail for want of memory. */
hob_status hob__install_no_memory(const struct hob__install_job *job);

/* Set where a plugin with ID lies. */
HOB_MUST_CHECK hob_status hob__install_set_paths(struct hob__install_job *job,
                                                 const char *id);

/* Read the manifest that PATH, a folder, manifest or package, means. */
HOB_MUST_CHECK hob_status hob__install_read(struct hob__install_job *job,
                                            const char *path);

/* Refuse a manifest, then a library, that could never serve here
 * (install_check.c). The library stays open. */
HOB_MUST_CHECK hob_status
hob__install_check_manifest(struct hob__install_job *job);
HOB_MUST_CHECK hob_status
hob__install_check_library(struct hob__install_job *job);

/* From here to the end nobody else installs or removes in the data folder: two
 * at once could leave a manifest without its library. */
HOB_MUST_CHECK hob_status hob__install_lock(struct hob__install_job *job);

/* Lock, and put both files in place (install_write.c). On failure the data
 * folder has what it had. */
HOB_MUST_CHECK hob_status hob__install_write(struct hob__install_job *job);

#endif
