/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include <stdint.h>
#include <stdlib.h>

enum { FIRST_CAPACITY = 16 };

/* Fibonacci hashing: addresses differ in their middle bits. */
static size_t home_of(const struct ad_map *map, const void *key)
{
    uint64_t hash = (uint64_t)(uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15);

    return (size_t)(hash >> 32) & (map->capacity - 1);
}

static size_t find(const struct ad_map *map, const void *key)
{
    size_t at = home_of(map, key);

    while (map->entries[at].key && map->entries[at].key != key)
        at = (at + 1) & (map->capacity - 1);
    return at;
}

static int grow(struct ad_map *map)
{
    struct ad_map old = *map;
    size_t capacity = old.capacity ? old.capacity * 2 : FIRST_CAPACITY;
    struct ad_map_entry *entries = calloc(capacity, sizeof(*entries));

    if (!entries)
        return 1;
    map->entries = entries;
    map->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.entries[i].key)
            map->entries[find(map, old.entries[i].key)] = old.entries[i];
    free(old.entries);
    return 0;
}

void ad_map_release(struct ad_map *map)
{
    free(map->entries);
    map->entries = NULL;
    map->capacity = 0;
    map->count = 0;
}

void *ad_map_get(const struct ad_map *map, const void *key)
{
    return map->count ? map->entries[find(map, key)].value : NULL;
}

int ad_map_put(struct ad_map *map, const void *key, void *value)
{
    size_t at;

    /* At most two thirds full. */
    if ((map->count + 1) * 3 > map->capacity * 2 && grow(map))
        return 1;
    at = find(map, key);
    map->entries[at].key = key;
    map->entries[at].value = value;
    map->count++;
    return 0;
}

void *ad_map_take(struct ad_map *map, const void *key)
{
    size_t mask = map->capacity - 1;
    size_t hole, at;
    void *value;

    if (!map->count)
        return NULL;
    hole = find(map, key);
    if (!map->entries[hole].key)
        return NULL;
    value = map->entries[hole].value;
    map->count--;
    /* Move back what probed past the hole, so that no marks are needed. */
    for (at = (hole + 1) & mask; map->entries[at].key; at = (at + 1) & mask) {
        size_t home = home_of(map, map->entries[at].key);

        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        map->entries[hole] = map->entries[at];
        hole = at;
    }
    map->entries[hole].key = NULL;
    map->entries[hole].value = NULL;
    return value;
}
