/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.h - an opened plugin: its tables, copied and checked.
 *
 * The tables, and the entries, ops and implementations behind them, are the
 * host's copies: as long as both sides know them, the rest zero, so code reads
 * any member that this core knows (NEG-5). Strings and masks stay in the
 * plugin's own constant memory.
 */
#ifndef HOB__PLUGIN_H
#define HOB__PLUGIN_H

#include "arena.h"
#include "manifest.h"
#include "os.h"
#include "text.h"

#include <hob/ext/plugin.h>
#include <hob/status.h>

typedef const struct hob_plugin *hob__entry_fn(const struct hob_host *host);

struct hob__candidate;

/* Borrowed from the loader, immutable. */
struct hob__plugin {
    const struct hob__candidate *candidate;
    const struct hob__manifest *manifest;
    const char *path;           /* real path of the library, or "static:ID" */
    struct hob_plugin table;    /* backend, decorator, extension: see below */
    struct hob_backend backend; /* valid if table.backend is set, which */
    struct hob_decorator decorator; /* then points here; likewise the others */
    struct hob_extension extension;
    void *handle;             /* NULL when linked in */
    struct hob__arena copies; /* what the tables point at */
};

/* What a plugin's table is checked against. Tests make older and newer ones. */
struct hob__plugin_host {
    uint32_t abi_major;
    uint32_t abi_minor;
    uint32_t sanitizers; /* HOB_SANITIZER_...: what this process runs */
};

/* What this core is. */
struct hob__plugin_host hob__plugin_host_self(const struct hob_os_ops *os);

/*
 * Compare an ABI, of a manifest or a table, with HOST's: *OUT_REASON is OK,
 * MAJOR or MINOR. Majors must be equal. While they are 0 the minor that the
 * plugin was built with must be HOST's; from 1 on the one that it requires
 * must not be above HOST's.
 */
void hob__abi_check(const struct hob__plugin_host *host, uint32_t major,
                    uint32_t minor_required, uint32_t minor_built,
                    enum hob__reason *out_reason);

/*
 * Check TABLE, which the entry of the library at PATH returned (NULL is
 * refused), in the order of NEG-4 and copy it into OUT_PLUGIN, whose manifest
 * must be set. NOTES collects what is odd but no failure (one line each).
 * On success OUT_PLUGIN is to be released. On failure *OUT_REASON is the code
 * and OUT_PLUGIN's tables are zero; HOB_ERR_MEMORY says nothing about TABLE.
 */
HOB_MUST_CHECK hob_status hob__plugin_check(
    const struct hob_plugin *table, const char *path,
    const struct hob__plugin_host *host, struct hob__plugin *out_plugin,
    struct hob__text *notes, enum hob__reason *out_reason, hob_error *error);

/* Free the copies; the tables are zero then. Accepts NULL. */
void hob__plugin_release(struct hob__plugin *plugin);

#endif
