/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_files.c - which config files are merged, in which order.
 *
 * Later wins: sysconfdir, $XDG_CONFIG_DIRS (the first in the list is the most
 * important, so it comes last), the user's, HOB_CONFIG, the application's. A
 * file that nobody named is not needed; if it is broken, it is noted and the
 * others count. One that was named must be right.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "error.h"
#include "loader_internal.h"
#include "paths.h"

#include <stdlib.h>
#include <string.h>

enum { CONFIG_MAX = 1 << 20 };

static hob_status note_broken(struct hob__loader *loader, const char *path,
                              const char *message)
{
    const char *where = hob__arena_strdup(&loader->arena, path);

    if (!where)
        return HOB_ERR_MEMORY;
    return hob__env_add_note(&loader->env, where, HOB__REASON_CONFIG_SYNTAX,
                             hob__arena_strdup(&loader->arena, message));
}

/* Root does not take a config from another user (SEC-1). */
static bool is_foreign(const struct hob__loader *loader,
                       const struct hob_os_stat *stat)
{
    return loader->env.is_root && stat->owner != 0;
}

static hob_status merge_file(struct hob__loader *loader, const char *path,
                             bool is_system, bool is_named, hob_error *error)
{
    hob_error own = HOB_ERROR_INIT;
    enum hob__reason reason = HOB__REASON_OK;
    struct hob_os_stat stat = {0};
    size_t size = 0;
    char *data = NULL;
    hob_status st;

    if (!is_named && loader->os->path_stat(loader->os->self, path, true, &stat))
        return HOB_OK;
    st = hob__file_read(loader->os, path, CONFIG_MAX, &data, &size, &stat,
                        &reason, &own);
    if (!st && !is_system && !is_named && is_foreign(loader, &stat))
        st =
            hob_error_set(&own, HOB_ERR_CONFIG,
                          "%s: root does not read another user's config", path);
    if (!st)
        st = hob__conf_merge(&loader->conf, path, data, size, is_system, &own);
    free(data);
    if (st == HOB_ERR_MEMORY)
        (void)hob_error_set(error, st, "%s: out of memory", path);
    else if (st && is_named)
        st = hob_error_set(error, HOB_ERR_CONFIG, "config: %s",
                           hob__error_text(&own));
    else if (st)
        st = note_broken(loader, path, hob__error_text(&own));
    hob_error_release(&own);
    return st;
}

static hob_status merge_below(struct hob__loader *loader, const char *dir,
                              bool is_system, hob_error *error)
{
    const char *path = hob__path_join(&loader->arena, dir, "hob/hob.json");

    if (!path)
        return hob_error_set(error, HOB_ERR_MEMORY, "config: out of memory");
    return merge_file(loader, path, is_system, false, error);
}

static hob_status merge_named(struct hob__loader *loader, hob_error *error)
{
    const char *path = loader->env.config;

    if (!path)
        return HOB_OK;
    if (!hob__path_is_absolute(loader->os, path))
        return hob_error_set(error, HOB_ERR_CONFIG,
                             "HOB_CONFIG: \"%s\" is not an absolute path",
                             path);
    return merge_file(loader, path, false, true, error);
}

hob_status hob__conf_read_files(struct hob__loader *loader,
                                const struct hob__loader_options *options,
                                hob_error *error)
{
    const struct hob__strings *dirs = &loader->env.xdg_config_dirs;
    uint32_t i;
    hob_status st =
        merge_below(loader,
                    options->sysconf_dir ? options->sysconf_dir
                                         : hob__default_sysconf_dir(),
                    true, error);

    for (i = dirs->count; i > 0 && !st; i--)
        st = merge_below(loader, dirs->items[i - 1], true, error);
    if (!st && loader->env.xdg_config_home)
        st = merge_below(loader, loader->env.xdg_config_home, false, error);
    if (!st)
        st = merge_named(loader, error);
    if (!st && options->config_json)
        st = hob__conf_merge(&loader->conf, "(options)", options->config_json,
                             strlen(options->config_json), false, error);
    return st;
}
