/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery_places.c - where manifests are looked for (DISC-2 to DISC-9).
 *
 * Never: the current folder, the program's folder, PATH, folders in folders.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_internal.h"
#include "paths.h"

#include <stdlib.h>
#include <string.h>

#ifndef HOB_PREFIX
#define HOB_PREFIX "/usr/local"
#endif
#ifndef HOB_SYSCONFDIR
#define HOB_SYSCONFDIR HOB_PREFIX "/etc"
#endif
#ifndef HOB_DATADIR
#define HOB_DATADIR HOB_PREFIX "/share"
#endif

const char *hob__default_prefix(void)
{
    return HOB_PREFIX;
}

const char *hob__default_sysconf_dir(void)
{
    return HOB_SYSCONFDIR;
}

const char *hob__default_data_dir(void)
{
    return HOB_DATADIR;
}

/* Read BASE/hob/plugins.d, or BASE/MIDDLE/hob/plugins.d. */
static hob_status read_below(struct hob__discovery *discovery,
                             enum hob__rule rule, const char *base,
                             const char *middle, bool is_user)
{
    const char *dir = base;

    if (middle)
        dir = hob__path_join(discovery->arena, dir, middle);
    if (dir)
        dir = hob__path_join(discovery->arena, dir, "hob/plugins.d");
    if (!dir)
        return HOB_ERR_MEMORY;
    return hob__discover_dir(discovery, rule, dir, false, is_user);
}

static hob_status read_each(struct hob__discovery *discovery,
                            enum hob__rule rule,
                            const struct hob__strings *bases)
{
    uint32_t i;
    hob_status st = HOB_OK;

    for (i = 0; i < bases->count && !st; i++)
        st = read_below(discovery, rule, bases->items[i], NULL, false);
    return st;
}

/* A list of paths in a variable. *OUT_ANY: at least one of them is there. */
static hob_status read_list(struct hob__discovery *discovery,
                            enum hob__rule rule, const char *list,
                            bool *out_any)
{
    struct hob__strings items;
    uint32_t i;
    hob_status st = hob__env_split(discovery->arena, list,
                                   discovery->os->path_list_separator, &items);

    *out_any = false;
    for (i = 0; !st && i < items.count; i++) {
        const char *path = items.items[i];

        if (!hob__path_is_absolute(discovery->os, path)) {
            st = hob__discover_note(discovery, rule, path,
                                    HOB__REASON_ENV_RELATIVE, NULL);
            continue;
        }
        st = hob__discover_path(discovery, rule, path);
        if (!st && discovery->searched[discovery->searched_count - 1].reason !=
                       HOB__REASON_PATH_MISSING)
            *out_any = true;
    }
    return st;
}

/* From <prefix>/lib or <prefix>/lib/<triplet> to <prefix>. */
static char *prefix_of(struct hob__arena *arena, const char *dir)
{
    const char *slash = strrchr(dir, '/');
    size_t length = slash ? (size_t)(slash - dir) : 0;
    size_t up = length;

    while (up > 0 && dir[up - 1] != '/')
        up--;
    if (up > 0 && length - up == 3 && !strncmp(dir + up, "lib", 3))
        length = up - 1;
    return length ? hob__arena_strndup(arena, dir, length)
                  : hob__arena_strdup(arena, "/");
}

/* The folder in which libhob lies; NULL for a static core. */
static const char *core_dir(struct hob__discovery *discovery)
{
    const struct hob_os_ops *os = discovery->os;
    char *self = NULL, *program = NULL;
    const char *dir = NULL;

    if (!discovery->options->core_is_static &&
        !os->self_path(os->self, &self)) {
        /* Code in the program's own file: its folder says nothing (DISC-9). */
        if (os->program_path(os->self, &program) || strcmp(self, program) != 0)
            dir = hob__path_dir(discovery->arena, self);
    }
    free(self);
    free(program);
    return dir;
}

/* DISC-4: beside the core. */
static hob_status read_core(struct hob__discovery *discovery)
{
    const char *prefix = discovery->options->prefix;
    const char *dir = core_dir(discovery);
    hob_status st = HOB_OK;

    if (dir)
        st = read_below(discovery, HOB__RULE_CORE, dir, NULL, false);
    if (!prefix)
        prefix = dir ? prefix_of(discovery->arena, dir) : hob__default_prefix();
    if (!prefix)
        return HOB_ERR_MEMORY;
    return st ? st
              : read_below(discovery, HOB__RULE_CORE, prefix, "share", false);
}

static hob_status read_user(struct hob__discovery *discovery,
                            enum hob__rule rule, const char *base,
                            const char *name)
{
    if (base)
        return read_below(discovery, rule, base, NULL, true);
    return hob__discover_note(discovery, rule, name,
                              discovery->env->is_elevated
                                  ? HOB__REASON_ENV_IGNORED
                                  : HOB__REASON_HOME_UNSET,
                              NULL);
}

static hob_status read_defaults(struct hob__discovery *discovery)
{
    const struct hob__env *env = discovery->env;
    const struct hob__loader_options *options = discovery->options;
    const char *sysconf_dir = options->sysconf_dir ? options->sysconf_dir
                                                   : hob__default_sysconf_dir();
    const char *data_dir =
        options->data_dir ? options->data_dir : hob__default_data_dir();
    hob_status st = read_core(discovery);

    if (!st)
        st = read_user(discovery, HOB__RULE_USER_CONFIG, env->xdg_config_home,
                       "(user configuration)");
    if (!st)
        st = read_each(discovery, HOB__RULE_SYSTEM_CONFIG,
                       &env->xdg_config_dirs);
    if (!st)
        st = read_below(discovery, HOB__RULE_SYSTEM_CONFIG, sysconf_dir, NULL,
                        false);
    if (!st)
        st = read_user(discovery, HOB__RULE_USER_DATA, env->xdg_data_home,
                       "(user data)");
    if (!st)
        st = read_each(discovery, HOB__RULE_SYSTEM_DATA, &env->xdg_data_dirs);
    return st ? st
              : read_below(discovery, HOB__RULE_SYSTEM_DATA, data_dir, NULL,
                           false);
}

hob_status hob__discover_places(struct hob__discovery *discovery)
{
    const struct hob__env *env = discovery->env;
    bool is_replaced = false, any = false;
    hob_status st = HOB_OK;

    if (env->plugin_path)
        st = read_list(discovery, HOB__RULE_PLUGIN_PATH, env->plugin_path,
                       &is_replaced);
    if (!st && env->add_plugin_path)
        st = read_list(discovery, HOB__RULE_ADD_PLUGIN_PATH,
                       env->add_plugin_path, &any);
    /* A path whose elements are all missing hides nothing: a sandbox inherits
     * the host's variables but not its files. */
    return st || is_replaced ? st : read_defaults(discovery);
}
