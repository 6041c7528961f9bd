/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install_job.c - where an installation goes, and the manifest it is about.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "install_job.h"

#include "error.h"
#include "paths.h"

#include <hob/install.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MANIFEST_MAX = 1 << 20 };

hob_status hob__install_no_memory(const struct hob__install_job *job)
{
    return hob_error_set(job->error, HOB_ERR_MEMORY, "install: out of memory");
}

/* The data folder for WHERE; root has to say which it means. */
static hob_status choose_dir(struct hob__install_job *job,
                             const char *system_dir, uint32_t where)
{
    const struct hob__env *env = &job->loader.env;

    if (where == HOB_INSTALL_DEFAULT && env->is_root)
        return hob_error_set(job->error, HOB_ERR_ARGUMENT,
                             "root has to choose: --user or --system");
    if (where > HOB_INSTALL_SYSTEM)
        return hob_error_set(job->error, HOB_ERR_ARGUMENT,
                             "install: no place has the number %" PRIu32,
                             where);
    if (where == HOB_INSTALL_SYSTEM)
        job->data_dir = system_dir ? system_dir : hob__default_data_dir();
    else
        job->data_dir = env->xdg_data_home;
    if (!job->data_dir)
        return hob_error_set(job->error, HOB_ERR_IO,
                             "no folder for user plugins: neither HOME nor "
                             "XDG_DATA_HOME is an absolute path");
    return HOB_OK;
}

hob_status hob__install_begin(struct hob__install_job *job,
                              const struct hob_os_ops *os,
                              const char *system_dir, uint32_t where,
                              hob_error *error)
{
    hob_status st;

    memset(job, 0, sizeof(*job));
    job->lock = -1;
    job->library_fd = -1;
    job->os = job->loader.os = os ? os : hob__os();
    job->error = error;
    hob__trust_init(&job->loader.trust, job->os);
    st = hob__env_read(job->os, &job->loader.env, error);
    return st ? st : choose_dir(job, system_dir, where);
}

void hob__install_end(struct hob__install_job *job)
{
    if (job->lock >= 0)
        job->os->close(job->os->self, job->lock);
    if (job->library_fd >= 0 && !job->package)
        job->os->close(job->os->self, job->library_fd);
    hob__package_close(job->package);
    hob__manifest_free(job->found.manifest);
    hob__ldcache_release(&job->loader.ldcache);
    hob__trust_release(&job->loader.trust);
    hob__env_release(&job->loader.env);
    hob__arena_release(&job->loader.arena);
    free(job->library_real);
    free(job->text);
}

/* Where a plugin with ID lies. */
hob_status hob__install_set_paths(struct hob__install_job *job, const char *id)
{
    struct hob__arena *arena = &job->loader.arena;

    job->manifest_path =
        hob__arena_printf(arena, "%s/hob/plugins.d/%s.json", job->data_dir, id);
    job->library_dir =
        hob__arena_printf(arena, "%s/hob/lib/%s", job->data_dir, id);
    return job->manifest_path && job->library_dir ? HOB_OK
                                                  : hob__install_no_memory(job);
}

/* The text of the manifest in the package PATH. */
static hob_status read_package(struct hob__install_job *job, const char *path)
{
    const struct hob__package_file *file;
    hob_status st = hob__package_open(job->os, path, &job->package, job->error);
    int64_t n;

    if (st)
        return st;
    if (strcmp(job->package->platform, job->os->triple) != 0)
        return hob_error_set(job->error, HOB_ERR_PLUGIN,
                             "%s: it is for %s, this is %s", path,
                             job->package->platform, job->os->triple);
    file = &job->package->files[0];
    if (file->size > MANIFEST_MAX)
        return hob_error_set(job->error, HOB_ERR_FORMAT,
                             "%s/%s: more than 1 MiB", path, file->path);
    job->text = malloc((size_t)file->size + 1);
    if (!job->text)
        return hob__install_no_memory(job);
    job->size = (size_t)file->size;
    n = job->os->read(job->os->self, job->package->fd, job->text, job->size,
                      file->offset);
    return n == (int64_t)job->size
               ? HOB_OK
               : hob__path_fail(path, n < 0 ? (int)n : -EIO, job->error);
}

/* The index of a package and its manifest say the same. */
static hob_status check_package(const struct hob__install_job *job)
{
    const struct hob__package *package = job->package;
    const struct hob__manifest *manifest = job->found.manifest;

    if (!strcmp(package->id, manifest->id) &&
        !strcmp(package->version, manifest->version))
        return HOB_OK;
    return hob_error_set(job->error, HOB_ERR_FORMAT,
                         "%s: its index is that of %s %s, its manifest that "
                         "of %s %s",
                         package->path, package->id, package->version,
                         manifest->id, manifest->version);
}

/* Read and parse the manifest called NAME; REAL is its path without links. */
static hob_status parse_manifest(struct hob__install_job *job, const char *name,
                                 const char *real)
{
    enum hob__reason reason;
    hob_status st =
        hob__manifest_parse(name, job->text, job->size, false,
                            &job->found.manifest, &reason, job->error);

    if (st)
        return st;
    job->found.candidate.id = job->found.manifest->id;
    job->found.candidate.manifest = job->found.manifest;
    job->found.candidate.path = name;
    job->found.candidate.real_path = real;
    if (job->package)
        st = check_package(job);
    return st ? st : hob__install_set_paths(job, job->found.manifest->id);
}

static bool is_library_name(const char *path)
{
    static const char *const ends[] = {".so", ".dll", ".dylib"};
    size_t length = strlen(path);

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        size_t size = strlen(ends[i]);

        if (length > size && !strcmp(path + length - size, ends[i]))
            return true;
    }
    return false;
}

hob_status hob__install_read(struct hob__install_job *job, const char *path)
{
    struct hob__arena *arena = &job->loader.arena;
    struct hob_os_stat stat = {0};
    const char *name, *real;
    enum hob__reason reason;
    hob_status st = HOB_OK;
    bool is_dir = !job->os->path_stat(job->os->self, path, true, &stat) &&
                  stat.type == HOB_OS_DIRECTORY;

    if (is_dir)
        st = hob__folder_manifest(job->os, arena, path, &path, job->error);
    if (st)
        return st;
    if (is_library_name(path))
        return hob_error_set(job->error, HOB_ERR_ARGUMENT,
                             "%s: this is a library: give its folder, or its "
                             "manifest",
                             path);
    name = hob__arena_strdup(arena, path);
    real = hob__path_real(job->os, arena, path);
    if (!is_dir && hob__package_is(job->os, path)) {
        st = read_package(job, path);
        name = hob__path_join(arena, path, HOB__PACKAGE_MANIFEST);
        real = real ? hob__path_join(arena, real, HOB__PACKAGE_MANIFEST) : NULL;
    } else {
        st = hob__file_read(job->os, path, MANIFEST_MAX, &job->text, &job->size,
                            &stat, &reason, job->error);
    }
    if (st)
        return st;
    job->found.inode = stat.inode ? stat.inode : 1;
    if (!real) /* as in a folder that was removed */
        return hob_error_set(job->error, HOB_ERR_IO,
                             "%s: its full path cannot be found out", path);
    return name ? parse_manifest(job, name, real) : hob__install_no_memory(job);
}

/* From here to hob__install_end() nobody else installs or removes in the data
 * folder: two at once could leave a manifest without its library. */
hob_status hob__install_lock(struct hob__install_job *job)
{
    struct hob__arena *arena = &job->loader.arena;
    const char *dir = hob__arena_printf(arena, "%s/hob", job->data_dir);

    return dir ? hob__lock_dir(job->os, arena, dir, &job->lock, job->error)
               : hob__install_no_memory(job);
}
