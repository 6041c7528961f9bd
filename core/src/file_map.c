/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct hob__file_map {
    atomic_uint refs;
    void *data; /* NULL for an empty file, which cannot be mapped */
    uint64_t size;
};

static hob_status fail(const char *path, const char *verb, int code,
                       hob_error *error)
{
    return hob_error_set(error, code == ENOENT ? HOB_ERR_NOT_FOUND : HOB_ERR_IO,
                         "%s: cannot %s: %s", path, verb, strerror(code));
}

static hob_status map_file(int file, const char *path,
                           struct hob__file_map *map, hob_error *error)
{
    struct stat info;

    if (fstat(file, &info))
        return fail(path, "read", errno, error);
    if (!S_ISREG(info.st_mode))
        return hob_error_set(error, HOB_ERR_IO,
                             "%s: cannot read: not a regular file", path);
    map->size = (uint64_t)info.st_size;
    if (!map->size)
        return HOB_OK;
    map->data = mmap(NULL, (size_t)map->size, PROT_READ, MAP_PRIVATE, file, 0);
    if (map->data == MAP_FAILED) {
        map->data = NULL;
        return fail(path, "map", errno, error);
    }
    return HOB_OK;
}

hob_status hob__file_map_open(const char *path, struct hob__file_map **out_map,
                              hob_error *error)
{
    /* Not to wait for the writer of a FIFO, which is refused below. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct hob__file_map *map = NULL;
    hob_status st;

    *out_map = NULL;
    if (file < 0)
        return fail(path, "open", errno, error);
    map = calloc(1, sizeof(*map));
    if (!map) {
        st = hob_error_set(error, HOB_ERR_MEMORY, "%s: out of memory", path);
        goto out;
    }
    atomic_init(&map->refs, 1);
    st = map_file(file, path, map, error);
    if (st)
        goto out;
    *out_map = map;
    map = NULL;

out:
    hob__file_map_unref(map);
    (void)close(file);
    return st;
}

void hob__file_map_ref(struct hob__file_map *map)
{
    atomic_fetch_add_explicit(&map->refs, 1, memory_order_relaxed);
}

void hob__file_map_unref(struct hob__file_map *map)
{
    if (!map ||
        atomic_fetch_sub_explicit(&map->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (map->data)
        (void)munmap(map->data, (size_t)map->size);
    free(map);
}

const unsigned char *hob__file_map_data(const struct hob__file_map *map)
{
    return map->data;
}

uint64_t hob__file_map_size(const struct hob__file_map *map)
{
    return map->size;
}
