/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "env.h"

#include "paths.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

static const char *const known_names[] = {
    "HOB_PLUGIN_PATH",  "HOB_ADD_PLUGIN_PATH",
    "HOB_CONFIG",       "HOB_PLUGINS_DISABLE",
    "HOB_PLUGINS_ONLY", "HOB_PLUGIN_TRUST",
    "HOB_LOG",          "HOB_LOG_FORMAT",
    "HOB_LOG_FILE",     "HOB_DEVICE"};

enum { KNOWN_COUNT = sizeof(known_names) / sizeof(known_names[0]) };

hob_status hob__env_add_note(struct hob__env *env, const char *variable,
                             enum hob__reason reason, const char *detail)
{
    struct hob__env_note *notes;

    if (env->note_count == env->note_capacity) {
        uint32_t capacity = env->note_capacity ? 2 * env->note_capacity : 8;

        notes = hob__arena_array(&env->arena, capacity, sizeof(*notes));
        if (!notes)
            return HOB_ERR_MEMORY;
        if (env->note_count)
            memcpy(notes, env->notes, env->note_count * sizeof(*notes));
        env->notes = notes;
        env->note_capacity = capacity;
    }
    if (!detail)
        return HOB_ERR_MEMORY;
    env->notes[env->note_count++] =
        (struct hob__env_note){variable, reason, detail};
    return HOB_OK;
}

/* Copy the variable NAME; an empty one counts as unset. */
static hob_status read_one(const struct hob_os_ops *os, struct hob__env *env,
                           const char *name, const char **out_value)
{
    char *value = os->get_env(os->self, name);
    hob_status st = HOB_OK;

    *out_value = NULL;
    if (value && *value) {
        *out_value = hob__arena_strdup(&env->arena, value);
        st = *out_value ? HOB_OK : HOB_ERR_MEMORY;
    }
    free(value);
    return st;
}

/* The path class: ignored when elevated, with one note. */
static hob_status read_path(const struct hob_os_ops *os, struct hob__env *env,
                            const char *name, const char **out_value)
{
    hob_status st = read_one(os, env, name, out_value);

    if (st || !*out_value || !env->is_elevated)
        return st;
    st = hob__env_add_note(env, name, HOB__REASON_ENV_IGNORED, *out_value);
    *out_value = NULL;
    return st;
}

/* As XDG says: a path that is not absolute counts as unset. */
static hob_status read_absolute(const struct hob_os_ops *os,
                                struct hob__env *env, const char *name,
                                const char **out_value)
{
    hob_status st = read_one(os, env, name, out_value);

    if (!st && *out_value && !hob__path_is_absolute(os, *out_value))
        *out_value = NULL;
    return st;
}

hob_status hob__env_split(struct hob__arena *arena, const char *list,
                          char separator, struct hob__strings *out_items)
{
    size_t most = 1, length = 0;
    bool quoted = false;
    const char *p;
    char *item;

    memset(out_items, 0, sizeof(*out_items));
    for (p = list; *p; p++)
        most += *p == separator;
    out_items->items = hob__arena_array(arena, most, sizeof(char *));
    /* All elements with their NULs are no longer than the list with its. */
    item = hob__arena_alloc(arena, (size_t)(p - list) + 1);
    if (!out_items->items || !item)
        return HOB_ERR_MEMORY;
    for (p = list;; p++) {
        if (*p == '"') {
            quoted = !quoted;
        } else if (*p && (*p != separator || quoted)) {
            item[length++] = *p;
        } else {
            item[length] = '\0';
            if (length)
                out_items->items[out_items->count++] = item;
            item += length + (length > 0);
            length = 0;
            if (!*p)
                return HOB_OK;
        }
    }
}

/* Ids are separated by commas, blanks or the path separator. */
static hob_status read_patterns(const struct hob_os_ops *os,
                                struct hob__env *env, const char *name,
                                struct hob__strings *out_items)
{
    const char *value = NULL;
    char *list, *p;
    hob_status st = read_one(os, env, name, &value);

    if (st || !value)
        return st;
    list = hob__arena_strdup(&env->arena, value);
    if (!list)
        return HOB_ERR_MEMORY;
    for (p = list; *p; p++) {
        if (*p == ' ' || *p == ':' || *p == ';')
            *p = ',';
    }
    return hob__env_split(&env->arena, list, ',', out_items);
}

static hob_status read_trust(const struct hob_os_ops *os, struct hob__env *env)
{
    static const char name[] = "HOB_PLUGIN_TRUST";
    bool is_strict = env->is_elevated || env->is_root;
    const char *value = NULL;
    hob_status st = read_one(os, env, name, &value);

    env->trust = is_strict ? HOB__TRUST_STRICT : HOB__TRUST_WARN;
    if (st || !value)
        return st;
    if (!strcmp(value, "strict"))
        env->trust = HOB__TRUST_STRICT;
    else if (env->is_elevated)
        st = hob__env_add_note(env, name, HOB__REASON_ENV_IGNORED, value);
    else if (!strcmp(value, "off"))
        env->trust = HOB__TRUST_OFF;
    else if (!strcmp(value, "warn"))
        env->trust = HOB__TRUST_WARN;
    else
        st = hob__env_add_note(env, name, HOB__REASON_ENV_VALUE,
                               hob__arena_printf(&env->arena,
                                                 "\"%s\": strict, warn or "
                                                 "off expected",
                                                 value));
    return st;
}

/* $NAME, else $HOME/DEFAULT; NULL when user folders are off. */
static hob_status read_home(const struct hob_os_ops *os, struct hob__env *env,
                            const char *name, const char *initial,
                            const char **out_value)
{
    hob_status st = read_absolute(os, env, name, out_value);

    if (st || *out_value || !env->home)
        return st;
    *out_value = hob__path_join(&env->arena, env->home, initial);
    return *out_value ? HOB_OK : HOB_ERR_MEMORY;
}

static hob_status read_dirs(const struct hob_os_ops *os, struct hob__env *env,
                            const char *name, const char *initial,
                            struct hob__strings *out_items)
{
    const char *value = NULL;
    uint32_t i, kept = 0;
    hob_status st = read_one(os, env, name, &value);

    /* An elevated process takes the defaults: the list is the user's. */
    if (!st)
        st = hob__env_split(&env->arena,
                            value && !env->is_elevated ? value : initial,
                            os->path_list_separator, out_items);
    for (i = 0; !st && i < out_items->count; i++) {
        if (hob__path_is_absolute(os, out_items->items[i]))
            out_items->items[kept++] = out_items->items[i];
    }
    if (!st)
        out_items->count = kept;
    return st;
}

static hob_status read_xdg(const struct hob_os_ops *os, struct hob__env *env)
{
    bool is_windows = os->path_list_separator == ';';
    hob_status st = HOB_OK;

    if (is_windows) {
        if (!env->is_elevated)
            st = read_absolute(os, env, "LOCALAPPDATA", &env->xdg_data_home);
        return st ? st
                  : read_dirs(os, env, "PROGRAMDATA", "", &env->xdg_data_dirs);
    }
    if (!env->is_elevated) {
        st = read_absolute(os, env, "HOME", &env->home);
        if (!st)
            st = read_home(os, env, "XDG_CONFIG_HOME", ".config",
                           &env->xdg_config_home);
        if (!st)
            st = read_home(os, env, "XDG_DATA_HOME", ".local/share",
                           &env->xdg_data_home);
    }
    if (!st)
        st = read_dirs(os, env, "XDG_CONFIG_DIRS", "/etc/xdg",
                       &env->xdg_config_dirs);
    if (!st)
        st = read_dirs(os, env, "XDG_DATA_DIRS", "/usr/local/share:/usr/share",
                       &env->xdg_data_dirs);
    if (!st && !env->is_elevated)
        st = read_dirs(os, env, "LD_LIBRARY_PATH", "", &env->library_path);
    return st;
}

static hob_status read_all(const struct hob_os_ops *os, struct hob__env *env)
{
    hob_status st = read_path(os, env, "HOB_PLUGIN_PATH", &env->plugin_path);

    if (!st)
        st = read_path(os, env, "HOB_ADD_PLUGIN_PATH", &env->add_plugin_path);
    if (!st)
        st = read_path(os, env, "HOB_CONFIG", &env->config);
    if (!st)
        st = read_path(os, env, "HOB_LOG_FILE", &env->log_file);
    if (!st)
        st = read_one(os, env, "HOB_LOG", &env->log);
    if (!st)
        st = read_one(os, env, "HOB_LOG_FORMAT", &env->log_format);
    if (!st)
        st = read_one(os, env, "HOB_DEVICE", &env->device);
    if (!st)
        st = read_patterns(os, env, "HOB_PLUGINS_DISABLE", &env->disable);
    if (!st)
        st = read_patterns(os, env, "HOB_PLUGINS_ONLY", &env->only);
    if (!st)
        st = read_trust(os, env);
    return st ? st : read_xdg(os, env);
}

hob_status hob__env_read(const struct hob_os_ops *os, struct hob__env *out_env,
                         hob_error *error)
{
    hob_status st;

    memset(out_env, 0, sizeof(*out_env));
    out_env->is_elevated = os->is_elevated(os->self);
    out_env->is_root = os->user(os->self) == 0;
    st = read_all(os, out_env);
    if (st)
        (void)hob_error_set(error, st, "environment: out of memory");
    return st;
}

static bool is_among(const char *name, size_t length, const char *const *names,
                     uint32_t count)
{
    uint32_t i;

    for (i = 0; i < count; i++) {
        if (strlen(names[i]) == length && !strncmp(names[i], name, length))
            return true;
    }
    return false;
}

/* LINE is "NAME=value"; note NAME if nobody knows it. */
static hob_status note_if_unknown(struct hob__env *env, const char *line,
                                  const char *const *others, uint32_t count)
{
    const char *end = strchr(line, '='), *near;
    char *name;

    if (!end || strncmp(line, "HOB_", 4) != 0 ||
        !strncmp(line, "HOB_TEST_", 9) ||
        is_among(line, (size_t)(end - line), known_names, KNOWN_COUNT) ||
        is_among(line, (size_t)(end - line), others, count))
        return HOB_OK;
    name = hob__arena_strndup(&env->arena, line, (size_t)(end - line));
    if (!name)
        return HOB_ERR_MEMORY;
    near = hob__nearest_name(name, known_names, KNOWN_COUNT);
    return hob__env_add_note(
        env, name, HOB__REASON_ENV_UNKNOWN,
        near ? hob__arena_printf(&env->arena, "did you mean %s?", near)
             : "Hob reads no variable of that name");
}

hob_status hob__env_note_unknown(const struct hob_os_ops *os,
                                 struct hob__env *env,
                                 const char *const *others, uint32_t count)
{
    char *line;
    uint32_t i;
    hob_status st = HOB_OK;

    for (i = 0; !st && (line = os->list_env(os->self, i)) != NULL; i++) {
        st = note_if_unknown(env, line, others, count);
        free(line);
    }
    return st;
}

void hob__env_release(struct hob__env *env)
{
    hob__arena_release(&env->arena);
    memset(env, 0, sizeof(*env));
}
