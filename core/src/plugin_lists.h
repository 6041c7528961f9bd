/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_lists.h - the lists behind a plugin's tables, copied and checked.
 *
 * An entry, an op or an implementation may be shorter or longer than this
 * core's: the table that holds the list says how long each is. Copies are as
 * this core knows them: the rest zero (NEG-5).
 */
#ifndef HOB__PLUGIN_LISTS_H
#define HOB__PLUGIN_LISTS_H

#include "arena.h"
#include "reasons.h"

#include <hob/ext/plugin.h>
#include <hob/status.h>

/* One check of one plugin. */
struct hob__plugin_checking {
    const char *path;          /* of the library, for messages */
    struct hob__arena *copies; /* lives as long as the plugin */
    enum hob__reason *out_reason;
    hob_error *error;
};

/* Refuse the plugin because MEMBER is NULL. */
hob_status hob__plugin_lacks(const struct hob__plugin_checking *checking,
                             const char *member);
/* Refuse it because WHAT has SIZE bytes where LEAST are needed. */
hob_status hob__plugin_too_short(const struct hob__plugin_checking *checking,
                                 const char *what, uint32_t size,
                                 uint32_t least);

/* Replace BACKEND's entries by checked copies. */
HOB_MUST_CHECK hob_status hob__plugin_copy_entries(
    const struct hob__plugin_checking *checking, struct hob_backend *backend);

/* Replace EXTENSION's ops, and all that they point at, by checked copies. */
HOB_MUST_CHECK hob_status
hob__plugin_copy_ops(const struct hob__plugin_checking *checking,
                     struct hob_extension *extension);

#endif
