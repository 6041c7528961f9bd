/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - a hash map from addresses to addresses.
 *
 * Open addressing with linear probing; keys are not NULL. Not thread-safe.
 */
#ifndef HOB_AUTODIFF_MAP_H
#define HOB_AUTODIFF_MAP_H

#include <hob/common.h>

struct ad_map_entry {
    const void *key; /* NULL: free */
    void *value;
};

struct ad_map {
    struct ad_map_entry *entries;
    size_t capacity; /* 0 or a power of two */
    size_t count;
};

/* Start as {0}; entries are the caller's to free before. */
void ad_map_release(struct ad_map *map);

/* The value of KEY, NULL if there is none. */
void *ad_map_get(const struct ad_map *map, const void *key);

/* Add KEY, which is not there yet. Nonzero without memory. */
int ad_map_put(struct ad_map *map, const void *key, void *value);

/* Take KEY out and return its value, NULL if there was none. */
void *ad_map_take(struct ad_map *map, const void *key);

#endif
