/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discovery.c - reads manifests; which folders is discovery_places.c's.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "error.h"
#include "loader_internal.h"
#include "paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIR_ENTRIES_MAX = 1024, MANIFEST_MAX = 1 << 20 };

static hob_status add_found(struct hob__discovery *discovery,
                            struct hob__found **out_found)
{
    struct hob__found *found;

    if (discovery->count == discovery->capacity) {
        uint32_t capacity = discovery->capacity ? 2 * discovery->capacity : 32;

        found = realloc(discovery->found, capacity * sizeof(*found));
        if (!found)
            return HOB_ERR_MEMORY;
        discovery->found = found;
        discovery->capacity = capacity;
    }
    *out_found = &discovery->found[discovery->count++];
    memset(*out_found, 0, sizeof(**out_found));
    if (discovery->searched_count) {
        (*out_found)->candidate.search_index = discovery->searched_count - 1;
        discovery->searched[discovery->searched_count - 1].found++;
    }
    return HOB_OK;
}

hob_status hob__discover_note(struct hob__discovery *discovery,
                              enum hob__rule rule, const char *path,
                              enum hob__reason reason, const char *detail)
{
    struct hob__searched *searched;
    const char *copy = hob__arena_strdup(discovery->arena, path);

    if (discovery->searched_count == discovery->searched_capacity) {
        uint32_t capacity = 2 * discovery->searched_capacity + 16;

        searched =
            hob__arena_array(discovery->arena, capacity, sizeof(*searched));
        if (!searched)
            return HOB_ERR_MEMORY;
        if (discovery->searched_count)
            memcpy(searched, discovery->searched,
                   discovery->searched_count * sizeof(*searched));
        discovery->searched = searched;
        discovery->searched_capacity = capacity;
    }
    if (!copy)
        return HOB_ERR_MEMORY;
    discovery->searched[discovery->searched_count++] =
        (struct hob__searched){rule, copy, reason, detail, 0};
    return HOB_OK;
}

static hob_status refuse(struct hob__discovery *discovery,
                         struct hob__found *found, enum hob__reason reason,
                         const char *detail)
{
    found->state = HOB__STATE_REFUSED;
    found->reason = reason;
    found->detail = hob__arena_strdup(discovery->arena, detail);
    return found->detail ? HOB_OK : HOB_ERR_MEMORY;
}

/* Has this very file been found before? Then say so. */
static bool is_repeat(struct hob__discovery *discovery,
                      struct hob__found *found)
{
    uint32_t i;

    for (i = 0; i + 1 < discovery->count; i++) {
        const struct hob__found *other = &discovery->found[i];

        if (other->inode && other->inode == found->inode &&
            other->device == found->device) {
            found->state = HOB__STATE_SHADOWED;
            found->reason = HOB__REASON_SAME_FILE;
            found->detail = other->candidate.path;
            found->candidate.id = other->candidate.id;
            return true;
        }
    }
    return false;
}

static hob_status check_trust(struct hob__discovery *discovery,
                              struct hob__found *found)
{
    const char *fault = NULL;
    hob_status st;

    if (discovery->env->trust == HOB__TRUST_OFF)
        return HOB_OK;
    st = hob__trust_check(discovery->trust, found->candidate.real_path,
                          found->search_root, &fault);
    if (st || !fault)
        return st;
    if (discovery->env->trust == HOB__TRUST_STRICT)
        return refuse(discovery, found, HOB__REASON_UNTRUSTED, fault);
    found->warning = fault;
    return HOB_OK;
}

static hob_status parse(struct hob__discovery *discovery,
                        struct hob__found *found, const char *data, size_t size,
                        bool is_static)
{
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason = HOB__REASON_OK;
    hob_status st =
        hob__manifest_parse(found->candidate.path, data, size, is_static,
                            &found->manifest, &reason, &error);

    if (!st) {
        found->candidate.manifest = found->manifest;
        found->candidate.id = found->manifest->id;
        found->candidate.priority =
            found->manifest->kind == HOB__KIND_BACKEND &&
                    !found->manifest->priority
                ? found->manifest->backend.priority
                : found->manifest->priority;
    } else if (st != HOB_ERR_MEMORY) {
        st = refuse(discovery, found, reason, hob__error_text(&error));
    }
    hob_error_release(&error);
    return st;
}

/* Read the manifest of FOUND, whose path is set, as far as it goes. */
static hob_status read_manifest(struct hob__discovery *discovery,
                                struct hob__found *found)
{
    struct hob__candidate *candidate = &found->candidate;
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason = HOB__REASON_OK;
    struct hob_os_stat stat = {0};
    size_t size = 0;
    char *data = NULL;
    hob_status st = hob__file_read(discovery->os, candidate->path, MANIFEST_MAX,
                                   &data, &size, &stat, &reason, &error);

    if (st && st != HOB_ERR_MEMORY)
        st = refuse(discovery, found, reason, hob__error_text(&error));
    hob_error_release(&error);
    if (!data)
        return st;
    found->device = stat.device;
    found->inode = stat.inode;
    if (!is_repeat(discovery, found)) {
        st = check_trust(discovery, found);
        if (!st && found->state != HOB__STATE_REFUSED)
            st = parse(discovery, found, data, size, false);
    }
    free(data);
    return st;
}

/*
 * The real path of PATH, which is file NAME in the folder whose real path is
 * ROOT, or any file if NAME is NULL. A file that is no link needs no realpath,
 * which asks the system once for every folder above it.
 */
static const char *real_path_of(struct hob__discovery *discovery,
                                const char *path, const char *root,
                                const char *name)
{
    const struct hob_os_ops *os = discovery->os;
    struct hob_os_stat stat;

    if (name && root && !os->path_stat(os->self, path, false, &stat) &&
        stat.type != HOB_OS_SYMLINK)
        return hob__path_join(discovery->arena, root, name);
    return hob__path_real(os, discovery->arena, path);
}

static hob_status add_file(struct hob__discovery *discovery,
                           enum hob__rule rule, const char *path,
                           const char *search_root, const char *name)
{
    struct hob__found *found;
    hob_status st = add_found(discovery, &found);

    if (st)
        return st;
    found->candidate.rule = rule;
    found->candidate.path = hob__arena_strdup(discovery->arena, path);
    found->search_root = search_root;
    if (!found->candidate.path)
        return HOB_ERR_MEMORY;
    found->candidate.real_path =
        real_path_of(discovery, path, search_root, name);
    if (!found->candidate.real_path)
        found->candidate.real_path = found->candidate.path;
    return read_manifest(discovery, found);
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static bool is_manifest_name(const char *name)
{
    size_t length = strlen(name);

    return name[0] != '.' && length > 5 && !strcmp(name + length - 5, ".json");
}

/* List the manifests in DIR, sorted by byte value (DISC-10). */
static hob_status list_dir(struct hob__discovery *discovery, void *dir,
                           struct hob__strings *out_names, bool *out_too_large)
{
    const struct hob_os_ops *os = discovery->os;
    const char *name = NULL;
    uint32_t entries = 0;

    *out_too_large = false;
    out_names->count = 0;
    out_names->items =
        hob__arena_array(discovery->arena, DIR_ENTRIES_MAX, sizeof(char *));
    if (!out_names->items)
        return HOB_ERR_MEMORY;
    while (!os->read_dir(os->self, dir, &name) && name) {
        if (!strcmp(name, ".") || !strcmp(name, ".."))
            continue;
        if (++entries > DIR_ENTRIES_MAX) {
            *out_too_large = true;
            return HOB_OK;
        }
        if (!is_manifest_name(name))
            continue;
        name = hob__arena_strdup(discovery->arena, name);
        if (!name)
            return HOB_ERR_MEMORY;
        out_names->items[out_names->count++] = name;
    }
    qsort(out_names->items, out_names->count, sizeof(char *), compare_names);
    return HOB_OK;
}

static hob_status remember_dir(struct hob__discovery *discovery,
                               const struct hob_os_stat *stat,
                               bool *out_repeated)
{
    struct hob_os_stat *dirs;
    uint32_t i, capacity;

    *out_repeated = true;
    for (i = 0; i < discovery->dir_count; i++) {
        if (discovery->dirs[i].device == stat->device &&
            discovery->dirs[i].inode == stat->inode)
            return HOB_OK;
    }
    *out_repeated = false;
    if (discovery->dir_count == discovery->dir_capacity) {
        capacity = 2 * discovery->dir_capacity + 8;
        dirs = realloc(discovery->dirs, capacity * sizeof(*dirs));
        if (!dirs)
            return HOB_ERR_MEMORY;
        discovery->dirs = dirs;
        discovery->dir_capacity = capacity;
    }
    discovery->dirs[discovery->dir_count++] = *stat;
    return HOB_OK;
}

/* Root does not take plugins from a user's folder (SEC-1). */
static bool is_foreign(const struct hob__discovery *discovery,
                       const struct hob_os_stat *stat, bool is_user)
{
    return is_user && discovery->env->is_root && stat->owner != 0;
}

static hob_status read_dir(struct hob__discovery *discovery, void *handle,
                           enum hob__rule rule, const char *dir, bool is_user)
{
    const struct hob_os_ops *os = discovery->os;
    struct hob__strings names = {NULL, 0};
    struct hob_os_stat stat = {0};
    bool repeated = false, too_large = false;
    const char *root;
    uint32_t i;
    hob_status st;

    if (os->dir_stat(os->self, handle, &stat))
        return hob__discover_note(discovery, rule, dir,
                                  HOB__REASON_DIR_UNREADABLE, NULL);
    if (is_foreign(discovery, &stat, is_user))
        return hob__discover_note(discovery, rule, dir,
                                  HOB__REASON_DIR_UNTRUSTED, NULL);
    st = remember_dir(discovery, &stat, &repeated);
    if (!st && !repeated)
        st = list_dir(discovery, handle, &names, &too_large);
    if (st)
        return st;
    if (repeated || too_large)
        return hob__discover_note(discovery, rule, dir,
                                  repeated ? HOB__REASON_DIR_REPEATED
                                           : HOB__REASON_DIR_TOO_LARGE,
                                  NULL);
    st = hob__discover_note(discovery, rule, dir, HOB__REASON_OK, NULL);
    root = names.count ? hob__path_real(os, discovery->arena, dir) : NULL;
    for (i = 0; i < names.count && !st; i++) {
        char *path = hob__path_join(discovery->arena, dir, names.items[i]);

        st = path ? add_file(discovery, rule, path, root, names.items[i])
                  : HOB_ERR_MEMORY;
    }
    return st;
}

hob_status hob__discover_dir(struct hob__discovery *discovery,
                             enum hob__rule rule, const char *dir,
                             bool is_named, bool is_user)
{
    const struct hob_os_ops *os = discovery->os;
    char buffer[64];
    void *handle = NULL;
    int code = os->open_dir(os->self, dir, &handle);
    bool is_missing = code == -ENOENT || code == -ENOTDIR;
    enum hob__reason reason = HOB__REASON_DIR_UNREADABLE;
    const char *detail;
    hob_status st;

    if (!code) {
        st = read_dir(discovery, handle, rule, dir, is_user);
        os->close_dir(os->self, handle);
        return st;
    }
    if (is_missing)
        reason = is_named ? HOB__REASON_PATH_MISSING : HOB__REASON_DIR_MISSING;
    detail = hob__arena_strdup(discovery->arena,
                               hob__os_error(code, buffer, sizeof(buffer)));
    return detail ? hob__discover_note(discovery, rule, dir, reason, detail)
                  : HOB_ERR_MEMORY;
}

hob_status hob__discover_path(struct hob__discovery *discovery,
                              enum hob__rule rule, const char *path)
{
    struct hob_os_stat stat = {0};
    const char *real, *root;
    hob_status st;

    if (!is_manifest_name(path) ||
        (!discovery->os->path_stat(discovery->os->self, path, true, &stat) &&
         stat.type == HOB_OS_DIRECTORY))
        return hob__discover_dir(discovery, rule, path, true, false);
    real = hob__path_real(discovery->os, discovery->arena, path);
    if (!real)
        return hob__discover_note(discovery, rule, path,
                                  HOB__REASON_PATH_MISSING, NULL);
    root = hob__path_dir(discovery->arena, real);
    if (!root)
        return HOB_ERR_MEMORY;
    st = hob__discover_note(discovery, rule, path, HOB__REASON_OK, NULL);
    return st ? st : add_file(discovery, rule, path, root, NULL);
}

static hob_status add_static(struct hob__discovery *discovery,
                             const struct hob__loader_static *one,
                             uint32_t index)
{
    struct hob__found *found;
    hob_status st = add_found(discovery, &found);

    if (st)
        return st;
    found->candidate.rule = HOB__RULE_APPLICATION;
    found->candidate.entry = one->entry;
    found->candidate.path =
        one->name
            ? hob__arena_printf(discovery->arena, "static:%s", one->name)
            : hob__arena_printf(discovery->arena, "static:%u", (unsigned)index);
    found->candidate.real_path = found->candidate.path;
    if (!found->candidate.path)
        return HOB_ERR_MEMORY;
    return parse(discovery, found, one->manifest, one->manifest_size,
                 one->entry != NULL);
}

/* DISC-1: what the application names. It works in elevated processes too. */
static hob_status discover_application(struct hob__discovery *discovery,
                                       hob_error *error)
{
    const struct hob__loader_options *options = discovery->options;
    const char *const *lists[] = {options->manifests, options->directories};
    uint32_t counts[] = {options->manifest_count, options->directory_count};
    uint32_t i, j;
    hob_status st = HOB_OK;

    for (j = 0; j < 2; j++) {
        for (i = 0; i < counts[j] && !st; i++) {
            if (!hob__path_is_absolute(discovery->os, lists[j][i]))
                return hob_error_set(error, HOB_ERR_ARGUMENT,
                                     "plugin path \"%s\" is not absolute",
                                     lists[j][i]);
            st = hob__discover_path(discovery, HOB__RULE_APPLICATION,
                                    lists[j][i]);
        }
    }
    if (!st && options->static_count)
        st = hob__discover_note(discovery, HOB__RULE_APPLICATION, "(linked in)",
                                HOB__REASON_OK, NULL);
    for (i = 0; i < options->static_count && !st; i++)
        st = add_static(discovery, &options->statics[i], i);
    return st;
}

hob_status hob__discover(struct hob__discovery *discovery, hob_error *error)
{
    hob_status st = discover_application(discovery, error);

    if (!st && !discovery->options->exclusive)
        st = hob__discover_places(discovery);
    if (st == HOB_ERR_MEMORY)
        (void)hob_error_set(error, st, "discovery: out of memory");
    return st;
}

void hob__discovery_release(struct hob__discovery *discovery)
{
    uint32_t i;

    for (i = 0; i < discovery->count; i++)
        hob__manifest_free(discovery->found[i].manifest);
    free(discovery->found);
    free(discovery->dirs);
    discovery->found = NULL;
    discovery->dirs = NULL;
    discovery->count = discovery->dir_count = 0;
}
