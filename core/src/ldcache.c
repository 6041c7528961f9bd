/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "ldcache.h"

#include "paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * The cache of glibc since 2.2: a header of 48 bytes, entries of 24 (flags,
 * name, path, each 4 bytes, then what the kernel and CPU must be), strings.
 * Offsets count from the header, which older layouts put behind their own.
 */
enum {
    CACHE_MAX = 64 << 20,
    HEADER_SIZE = 48,
    ENTRY_SIZE = 24,
    MAGIC_SIZE = 20,
    PATH_SIZE = 4096
};

static const char cache_magic[] = "glibc-ld.so.cache1.1";

static uint32_t get32(const char *data)
{
    uint32_t value;

    memcpy(&value, data, sizeof(value));
    return value;
}

static void read_cache(struct hob__ldcache *cache, const struct hob_os_ops *os)
{
    struct hob_os_stat st;
    enum hob__reason reason;

    cache->is_read = true;
    /* Without a cache the default folders still count. */
    if (hob__file_read(os, "/etc/ld.so.cache", CACHE_MAX, &cache->data,
                       &cache->size, &st, &reason, NULL))
        cache->data = NULL;
}

/* The new header's start: at once, or behind an old table. */
static const char *find_header(const struct hob__ldcache *cache)
{
    const char *data = cache->data, *end = data + cache->size;

    for (; end - data >= HEADER_SIZE; data += 4) {
        if (!memcmp(data, cache_magic, MAGIC_SIZE))
            return data;
        if (data == cache->data && memcmp(data, "ld.so-1.7.0", 11) != 0)
            break;
    }
    return NULL;
}

/* Flags: the low byte 3 is libc6, the second the architecture. */
static uint32_t wanted_flags(const struct hob_os_ops *os)
{
    if (strstr(os->triple, "x86_64"))
        return 0x0303;
    if (strstr(os->triple, "aarch64"))
        return 0x0a03;
    return 0;
}

static bool is_in_cache(const struct hob__ldcache *cache,
                        const struct hob_os_ops *os, const char *name)
{
    const char *header = cache->data ? find_header(cache) : NULL;
    size_t length = strlen(name) + 1, size, i, count;
    uint32_t wanted = wanted_flags(os);

    if (!header)
        return false;
    size = cache->size - (size_t)(header - cache->data);
    count = get32(header + MAGIC_SIZE);
    if (count > (size - HEADER_SIZE) / ENTRY_SIZE)
        return false;
    for (i = 0; i < count; i++) {
        const char *entry = header + HEADER_SIZE + i * ENTRY_SIZE;
        uint32_t key = get32(entry + 4);

        if ((!wanted || get32(entry) == wanted) && key < size &&
            length <= size - key && !memcmp(header + key, name, length))
            return true;
    }
    return false;
}

static bool is_file(const struct hob_os_ops *os, const char *dir,
                    const char *name)
{
    char path[PATH_SIZE];
    struct hob_os_stat st;
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);

    /* Longer ones the system cannot open either. */
    return n > 0 && n < PATH_SIZE &&
           !os->path_stat(os->self, path, true, &st) &&
           st.type == HOB_OS_REGULAR;
}

static bool is_in_defaults(const struct hob_os_ops *os, const char *name)
{
    static const char *const dirs[] = {
        "/lib64",
        "/usr/lib64",
        "/lib",
        "/usr/lib",
        "/lib/x86_64-linux-gnu",
        "/usr/lib/x86_64-linux-gnu",
        "/lib/aarch64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
    };
    size_t i;

    for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
        const char *other =
            strstr(os->triple, "x86_64") ? "/aarch64-" : "/x86_64-";

        if (!strstr(dirs[i], other) && is_file(os, dirs[i], name))
            return true;
    }
    return false;
}

bool hob__ldcache_has(struct hob__ldcache *cache, const struct hob_os_ops *os,
                      const struct hob__strings *library_path, const char *name)
{
    struct hob_os_stat st;
    uint32_t i;

    if (hob__path_is_absolute(os, name))
        return !os->path_stat(os->self, name, true, &st) &&
               st.type == HOB_OS_REGULAR;
    for (i = 0; i < library_path->count; i++) {
        if (is_file(os, library_path->items[i], name))
            return true;
    }
    if (!cache->is_read)
        read_cache(cache, os);
    return is_in_cache(cache, os, name) || is_in_defaults(os, name);
}

void hob__ldcache_release(struct hob__ldcache *cache)
{
    free(cache->data);
    memset(cache, 0, sizeof(*cache));
}
