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

#include "error.h"
#include "install_job.h"
#include "paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Whether PATH, a place that discovery looked at, is DIR or names the manifest
 * in it. */
static bool is_place(const struct hob__install_job *job, const char *path,
                     const char *dir)
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
static hob_status find_hidden(struct hob__install_job *job, bool *out_hidden)
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
        st = hob__install_no_memory(job);
    *out_hidden = !st;
    for (uint32_t i = 0; i < discovery.searched_count; i++)
        if (dir && is_place(job, discovery.searched[i].path, dir))
            *out_hidden = false;
    hob__discovery_release(&discovery);
    return st;
}

/* DISABLED_BY: the config file that switches it off, or NULL. */
static hob_status describe(const struct hob__install_job *job, const char *id,
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
    return *out_json ? HOB_OK : hob__install_no_memory(job);
}

hob_status hob__install(const struct hob_os_ops *os, const char *data_dir,
                        const char *path, uint32_t where, char **out_json,
                        hob_error *error)
{
    struct hob__install_job job;
    char *json = NULL, *disabled_by = NULL;
    bool is_hidden = false;
    hob_status st = hob__install_begin(&job, os, data_dir, where, error);

    if (out_json)
        *out_json = NULL;
    if (!st)
        st = hob__install_read(&job, path);
    if (!st)
        st = hob__install_check_manifest(&job);
    if (!st)
        st = hob__install_check_library(&job);
    if (!st)
        st = hob__disabled_by(os, NULL, job.found.manifest->id, &disabled_by,
                              error);
    if (!st)
        st = find_hidden(&job, &is_hidden);
    if (!st)
        st = describe(&job, job.found.manifest->id, disabled_by, is_hidden,
                      &json);
    if (!st)
        st = hob__install_write(&job);
    hob__install_end(&job);
    free(disabled_by);
    if (!st && out_json)
        *out_json = json;
    else
        free(json);
    return st;
}

/* Remove what lies in the library folder, then the folder. Of a link, which
 * somebody else has made, only the link. */
static hob_status remove_libraries(struct hob__install_job *job)
{
    const struct hob_os_ops *os = job->os;
    struct hob__arena *arena = &job->loader.arena;
    struct hob_os_stat stat;
    const char *name = NULL;
    void *dir = NULL;
    int code = os->path_stat(os->self, job->library_dir, false, &stat);

    if (!code && stat.type == HOB_OS_SYMLINK) {
        code = os->remove(os->self, job->library_dir);
        return code ? hob__path_fail(job->library_dir, code, job->error)
                    : HOB_OK;
    }
    if (!code)
        code = os->open_dir(os->self, job->library_dir, &dir);
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

static hob_status not_installed(const struct hob__install_job *job,
                                const char *id)
{
    return hob_error_set(job->error, HOB_ERR_NOT_FOUND,
                         "%s is not installed: there is no %s", id,
                         job->manifest_path);
}

static hob_status check_installed(struct hob__install_job *job, const char *id)
{
    struct hob_os_stat stat;
    hob_status st;

    if (!hob__is_id(id, 2))
        return hob_error_set(job->error, HOB_ERR_ARGUMENT,
                             "\"%s\" is no id of a plugin", id);
    st = hob__install_set_paths(job, id);
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
static hob_status ask_manifest(struct hob__install_job *job, const char *id)
{
    hob_error *error = job->error;
    hob_status st;

    job->error = NULL;
    st = hob__install_read(job, job->manifest_path);
    job->error = error;
    if (st == HOB_ERR_MEMORY)
        return hob__install_no_memory(job);
    if (st || strcmp(job->found.manifest->id, id) != 0) {
        hob__manifest_free(job->found.manifest);
        job->found.manifest = NULL;
    }
    return hob__install_set_paths(job, id);
}

hob_status hob__remove(const struct hob_os_ops *os, const char *data_dir,
                       const char *id, uint32_t where, char **out_json,
                       hob_error *error)
{
    struct hob__install_job job;
    char *json = NULL;
    int code;
    hob_status st = hob__install_begin(&job, os, data_dir, where, error);

    if (out_json)
        *out_json = NULL;
    if (!st)
        st = check_installed(&job, id);
    if (!st)
        st = hob__install_lock(&job);
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
    hob__install_end(&job);
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
