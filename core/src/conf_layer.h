/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf_layer.h - what one config file says, before it counts.
 *
 * A text is first read into a layer, which touches nothing but the arena;
 * then the layer is applied. So a malformed file changes nothing.
 */
#ifndef HOB__CONF_LAYER_H
#define HOB__CONF_LAYER_H

#include "conf.h"
#include "manifest_read.h"

/* Which top-level keys of a layer are set, and which of them are locked. */
struct hob__conf_layer {
    struct hob__conf values; /* its arena is not used */
    bool has_device, has_enabled, has_disabled, has_only;
    bool lock_device, lock_lists, lock_log, lock_cache_dir, lock_all;
};

struct hob__conf_merging {
    struct hob__reader reader;
    struct hob__conf *conf;
    const char *path;
    bool is_system;
    struct hob__conf_layer layer;
};

/* ---- conf_layer.c ---- */

hob_status hob__conf_no_memory(struct hob__conf_merging *merge);
/* Grow an array in the arena by one element at powers of two. */
void *hob__conf_grown(struct hob__arena *arena, void *items, uint32_t count,
                      size_t size);
/* Note REASON and TEXT, NULL without memory, for VALUE. */
hob_status hob__conf_note(struct hob__conf_merging *merge,
                          const struct hob__json_value *value,
                          enum hob__reason reason, const char *text);
/* Read the text that MERGE's reader has into its layer. */
hob_status hob__conf_read(struct hob__conf_merging *merge);

#endif
