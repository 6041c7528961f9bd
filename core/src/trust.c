/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "trust.h"

#include "paths.h"

#include <inttypes.h>
#include <string.h>

struct hob__trust_dir {
    const char *path;
    const char *fault; /* NULL: trusted */
};

void hob__trust_init(struct hob__trust *trust, const struct hob_os_ops *os)
{
    memset(trust, 0, sizeof(*trust));
    trust->os = os;
    trust->user = os->user(os->self);
}

void hob__trust_release(struct hob__trust *trust)
{
    hob__arena_release(&trust->arena);
    memset(trust, 0, sizeof(*trust));
}

static hob_status say(struct hob__trust *trust, const char **out_fault,
                      const char *path, const char *what)
{
    *out_fault = hob__arena_printf(&trust->arena, "%s %s", path, what);
    return *out_fault ? HOB_OK : HOB_ERR_MEMORY;
}

static hob_status check_one(struct hob__trust *trust, const char *path,
                            const char **out_fault)
{
    struct hob_os_stat st;
    char buffer[64];
    int code = trust->os->path_stat(trust->os->self, path, false, &st);

    *out_fault = NULL;
    if (code)
        return say(trust, out_fault, path,
                   hob__os_error(code, buffer, sizeof(buffer)));
    if (st.owner != 0 && st.owner != trust->user) {
        *out_fault = hob__arena_printf(
            &trust->arena, "%s is owned by user %" PRIu32, path, st.owner);
        return *out_fault ? HOB_OK : HOB_ERR_MEMORY;
    }
    if (st.writable_by_others && !(st.type == HOB_OS_DIRECTORY && st.sticky))
        return say(trust, out_fault, path, "is writable by others");
    return HOB_OK;
}

/* Look at folder PATH, or remember what was seen there. */
static hob_status check_dir(struct hob__trust *trust, const char *path,
                            const char **out_fault)
{
    struct hob__trust_dir *dirs;
    uint32_t i, capacity;
    hob_status st;

    /* The last one first: files come folder by folder. */
    for (i = trust->dir_count; i > 0; i--) {
        if (!strcmp(trust->dirs[i - 1].path, path)) {
            *out_fault = trust->dirs[i - 1].fault;
            return HOB_OK;
        }
    }
    st = check_one(trust, path, out_fault);
    if (st)
        return st;
    if (trust->dir_count == trust->dir_capacity) {
        capacity = trust->dir_capacity ? 2 * trust->dir_capacity : 16;
        dirs = hob__arena_array(&trust->arena, capacity, sizeof(*dirs));
        if (!dirs)
            return HOB_ERR_MEMORY;
        if (trust->dir_count)
            memcpy(dirs, trust->dirs, trust->dir_count * sizeof(*dirs));
        trust->dirs = dirs;
        trust->dir_capacity = capacity;
    }
    path = hob__arena_strdup(&trust->arena, path);
    if (!path)
        return HOB_ERR_MEMORY;
    trust->dirs[trust->dir_count++] = (struct hob__trust_dir){path, *out_fault};
    return HOB_OK;
}

hob_status hob__trust_check(struct hob__trust *trust, const char *path,
                            const char *root, const char **out_fault)
{
    bool is_below = root && hob__path_is_below(path, root);
    char *dir, *slash;
    hob_status st = check_one(trust, path, out_fault);

    if (st || *out_fault)
        return st;
    dir = hob__arena_strdup(&trust->arena, path);
    if (!dir)
        return HOB_ERR_MEMORY;
    while ((slash = strrchr(dir, '/')) != NULL) {
        /* Keep the slash of "/" itself, where the walk ends. */
        slash[slash == dir] = '\0';
        st = check_dir(trust, dir, out_fault);
        if (st || *out_fault || slash == dir ||
            (is_below && !strcmp(dir, root)))
            break;
    }
    return st;
}
