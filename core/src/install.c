/* SPDX-License-Identifier: Apache-2.0 */
/*
 * install.c - putting a plugin into a data folder, and taking it away.
 *
 * A plugin comes as a folder, a manifest or a package. In a package the files
 * have the names PACKAGE/manifest.json and so on, which is what messages say.
 *
 * The manifest goes to DATA/hob/plugins.d/ID.json, the library that suits this
 * machine to DATA/hob/lib/ID/. In the manifest only "library" is rewritten.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "install.h"

#include "elf_check.h"
#include "error.h"
#include "json.h"
#include "loader_internal.h"
#include "manifest_read.h"
#include "package.h"
#include "paths.h"
#include "schema.h"
#include "sha256.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MANIFEST_MAX = 1 << 20, COPY_CHUNK = 1 << 16 };

/* One installation or removal. */
struct job {
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

static hob_status no_memory(const struct job *job)
{
    return hob_error_set(job->error, HOB_ERR_MEMORY, "install: out of memory");
}

/* The data folder for WHERE; root has to say which it means. */
static hob_status choose_dir(struct job *job, const char *system_dir,
                             uint32_t where)
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

static hob_status begin(struct job *job, const struct hob_os_ops *os,
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

static void end(struct job *job)
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
static hob_status set_paths(struct job *job, const char *id)
{
    struct hob__arena *arena = &job->loader.arena;

    job->manifest_path =
        hob__arena_printf(arena, "%s/hob/plugins.d/%s.json", job->data_dir, id);
    job->library_dir =
        hob__arena_printf(arena, "%s/hob/lib/%s", job->data_dir, id);
    return job->manifest_path && job->library_dir ? HOB_OK : no_memory(job);
}

/* The text of the manifest in the package PATH. */
static hob_status read_package(struct job *job, const char *path)
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
        return no_memory(job);
    job->size = (size_t)file->size;
    n = job->os->read(job->os->self, job->package->fd, job->text, job->size,
                      file->offset);
    return n == (int64_t)job->size
               ? HOB_OK
               : hob__path_fail(path, n < 0 ? (int)n : -EIO, job->error);
}

/* The index of a package and its manifest say the same. */
static hob_status check_package(const struct job *job)
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
static hob_status parse_manifest(struct job *job, const char *name,
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
    return st ? st : set_paths(job, job->found.manifest->id);
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

static hob_status read_manifest(struct job *job, const char *path)
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
    return name && real ? parse_manifest(job, name, real) : no_memory(job);
}

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
static hob_status check_implements(const struct job *job)
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
            return no_memory(job);
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

static hob_status check_manifest(struct job *job)
{
    const struct hob__found *found = &job->found;
    const char *slash;

    if (hob__select(&job->loader, &job->found, 1))
        return no_memory(job);
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
    return job->library_path ? check_implements(job) : no_memory(job);
}

static hob_status check_hash(const struct job *job)
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
static hob_status open_packed(struct job *job, uint64_t *out_size)
{
    const char *library = job->found.candidate.library;
    char *dir =
        hob__path_dir(&job->loader.arena, job->found.candidate.real_path);
    const struct hob__package_file *file = NULL;

    job->library_real = strdup(library);
    if (!dir || !job->library_real)
        return no_memory(job);
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

static hob_status open_library(struct job *job, uint64_t *out_size)
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

static hob_status check_library(struct job *job)
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

static hob_status make_dirs(const struct job *job, const char *dir)
{
    int code = hob__make_dirs(job->os, dir);

    return code ? hob__path_fail(dir, code, job->error) : HOB_OK;
}

/* From here to end() nobody else installs or removes in the data folder: two
 * at once could leave a manifest without its library. */
static hob_status lock_folder(struct job *job)
{
    struct hob__arena *arena = &job->loader.arena;
    const char *dir = hob__arena_printf(arena, "%s/hob", job->data_dir);
    int code = dir ? hob__lock_dir(job->os, arena, dir, &job->lock) : -ENOMEM;

    return code ? hob__path_fail(dir ? dir : job->data_dir, code, job->error)
                : HOB_OK;
}

/* Copy the library to the new file OUT; what was checked is what is copied. */
static int copy_library(const struct job *job, int out)
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
static hob_status write_aside(struct job *job, const char *path,
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
        return no_memory(job);
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
static hob_status rewrite(const struct job *job, struct hob__text *out_text)
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
    st = path.failed || out_text->failed ? no_memory(job) : HOB_OK;
    hob__text_release(&path);
    hob__json_free(doc);
    return st;
}

/* Rename both into place, the library first (see Installing). */
static hob_status put_in_place(const struct job *job, const char *library,
                               const char *manifest)
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

static hob_status write_all(struct job *job)
{
    const struct hob_os_ops *os = job->os;
    struct hob__text text = HOB__TEXT_INIT;
    const char *library = NULL, *manifest = NULL;
    char *parent = hob__path_dir(&job->loader.arena, job->manifest_path);
    hob_status st = parent ? rewrite(job, &text) : no_memory(job);

    if (!st)
        st = lock_folder(job);
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

/* Whether PATH, a place that discovery looked at, is DIR or names the manifest
 * in it. */
static bool is_place(const struct job *job, const char *path, const char *dir)
{
    const struct hob_os_ops *os = job->os;
    struct hob_os_stat stat, home;

    if (!strcmp(path, dir) || !strcmp(path, job->manifest_path))
        return true;
    return hob__path_is_absolute(os, path) &&
           !os->path_stat(os->self, path, true, &stat) &&
           !os->path_stat(os->self, dir, true, &home) &&
           stat.device == home.device && stat.inode == home.inode;
}

/* Whether HOB_PLUGIN_PATH keeps discovery from looking where the manifest goes
 * to. */
static hob_status find_hidden(struct job *job, bool *out_hidden)
{
    const struct hob__loader_options options = {.data_dir = job->data_dir};
    struct hob__discovery discovery = {.os = job->os,
                                       .env = &job->loader.env,
                                       .options = &options,
                                       .trust = &job->loader.trust,
                                       .arena = &job->loader.arena};
    const char *dir = hob__path_dir(discovery.arena, job->manifest_path);
    hob_status st = HOB_OK;

    *out_hidden = false;
    if (!job->loader.env.plugin_path)
        return HOB_OK;
    if (!dir || hob__discover_places(&discovery))
        st = no_memory(job);
    *out_hidden = !st;
    for (uint32_t i = 0; i < discovery.searched_count; i++)
        if (dir && is_place(job, discovery.searched[i].path, dir))
            *out_hidden = false;
    hob__discovery_release(&discovery);
    return st;
}

/* DISABLED_BY: the config file that switches it off, or NULL. */
static hob_status describe(const struct job *job, const char *id,
                           const char *disabled_by, bool is_hidden,
                           char **out_json)
{
    const struct hob__manifest *manifest = job->found.manifest;
    struct hob__text text = HOB__TEXT_INIT;

    hob__text_puts(&text, "{\"id\": ");
    hob__text_json(&text, id);
    hob__text_puts(&text, ", \"version\": ");
    if (manifest)
        hob__text_json(&text, manifest->version);
    else
        hob__text_puts(&text, "null");
    hob__text_puts(&text, ", \"kind\": ");
    if (manifest)
        hob__text_json(&text, hob__plugin_kind_name(manifest->kind));
    else
        hob__text_puts(&text, "null");
    hob__text_puts(&text, ", \"manifest\": ");
    hob__text_json(&text, job->manifest_path);
    hob__text_puts(&text, ", \"library\": ");
    hob__text_json(&text,
                   job->library_path ? job->library_path : job->library_dir);
    if (disabled_by) {
        hob__text_puts(&text, ", \"disabled_by\": ");
        hob__text_json(&text, disabled_by);
    }
    if (is_hidden)
        hob__text_puts(&text, ", \"hidden_by\": \"HOB_PLUGIN_PATH\"");
    hob__text_puts(&text, "}");
    *out_json = hob__text_take(&text);
    return *out_json ? HOB_OK : no_memory(job);
}

hob_status hob__install(const struct hob_os_ops *os, const char *data_dir,
                        const char *path, uint32_t where, char **out_json,
                        hob_error *error)
{
    struct job job;
    char *json = NULL, *disabled_by = NULL;
    bool is_hidden = false;
    hob_status st = begin(&job, os, data_dir, where, error);

    if (out_json)
        *out_json = NULL;
    if (!st)
        st = read_manifest(&job, path);
    if (!st)
        st = check_manifest(&job);
    if (!st)
        st = check_library(&job);
    if (!st)
        st = hob__disabled_by(os, NULL, job.found.manifest->id, &disabled_by,
                              error);
    if (!st)
        st = find_hidden(&job, &is_hidden);
    if (!st)
        st = describe(&job, job.found.manifest->id, disabled_by, is_hidden,
                      &json);
    if (!st)
        st = write_all(&job);
    end(&job);
    free(disabled_by);
    if (!st && out_json)
        *out_json = json;
    else
        free(json);
    return st;
}

/* Remove what lies in the library folder, then the folder. */
static hob_status remove_libraries(struct job *job)
{
    const struct hob_os_ops *os = job->os;
    struct hob__arena *arena = &job->loader.arena;
    const char *name = NULL;
    void *dir = NULL;
    int code = os->open_dir(os->self, job->library_dir, &dir);

    if (code)
        return code == -ENOENT
                   ? HOB_OK
                   : hob__path_fail(job->library_dir, code, job->error);
    while (!code && !os->read_dir(os->self, dir, &name) && name) {
        const char *path;

        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        path = hob__path_join(arena, job->library_dir, name);
        code = path ? os->remove(os->self, path) : -ENOMEM;
    }
    os->close_dir(os->self, dir);
    if (!code)
        code = os->remove(os->self, job->library_dir);
    return code ? hob__path_fail(job->library_dir, code, job->error) : HOB_OK;
}

static hob_status not_installed(const struct job *job, const char *id)
{
    return hob_error_set(job->error, HOB_ERR_NOT_FOUND,
                         "%s is not installed: there is no %s", id,
                         job->manifest_path);
}

static hob_status check_installed(struct job *job, const char *id)
{
    struct hob_os_stat stat;
    hob_status st;

    if (!hob__is_id(id, 2))
        return hob_error_set(job->error, HOB_ERR_ARGUMENT,
                             "\"%s\" is no id of a plugin", id);
    st = set_paths(job, id);
    if (!st &&
        job->os->path_stat(job->os->self, job->manifest_path, false, &stat))
        st = not_installed(job, id);
    return st;
}

/*
 * What the manifest of ID says, as far as it can be read: a damaged plugin can
 * be removed too. One that says it is another does not speak for ID, and its
 * paths are not those that are removed.
 */
static hob_status ask_manifest(struct job *job, const char *id)
{
    hob_error *error = job->error;
    hob_status st;

    job->error = NULL;
    st = read_manifest(job, job->manifest_path);
    job->error = error;
    if (st == HOB_ERR_MEMORY)
        return no_memory(job);
    if (st || strcmp(job->found.manifest->id, id) != 0) {
        hob__manifest_free(job->found.manifest);
        job->found.manifest = NULL;
    }
    return set_paths(job, id);
}

hob_status hob__remove(const struct hob_os_ops *os, const char *data_dir,
                       const char *id, uint32_t where, char **out_json,
                       hob_error *error)
{
    struct job job;
    char *json = NULL;
    int code;
    hob_status st = begin(&job, os, data_dir, where, error);

    if (out_json)
        *out_json = NULL;
    if (!st)
        st = check_installed(&job, id);
    if (!st)
        st = lock_folder(&job);
    if (!st)
        st = ask_manifest(&job, id);
    if (!st)
        st = describe(&job, id, NULL, false, &json);
    if (!st) {
        code = job.os->remove(job.os->self, job.manifest_path);
        st = code == -ENOENT ? not_installed(&job, id)
             : code ? hob__path_fail(job.manifest_path, code, job.error)
                    : remove_libraries(&job);
    }
    end(&job);
    if (!st && out_json)
        *out_json = json;
    else
        free(json);
    return st;
}

hob_status hob_install(const char *path, uint32_t where, char **out_json,
                       hob_error *error)
{
    return hob__install(NULL, NULL, path, where, out_json, error);
}

hob_status hob_remove(const char *id, uint32_t where, char **out_json,
                      hob_error *error)
{
    return hob__remove(NULL, NULL, id, where, out_json, error);
}
