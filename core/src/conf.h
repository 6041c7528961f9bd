/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conf.h - the merged configuration (hob.json).
 *
 * Files are merged in order, later wins, except where an earlier system file
 * says "locked". A config is immutable once the loader is open.
 */
#ifndef HOB__CONF_H
#define HOB__CONF_H

#include "arena.h"
#include "manifest.h"

#include <hob/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hob__tristate { HOB__UNSET, HOB__NO, HOB__YES };

/* One plugin's option or feature: what the config gives. */
struct hob__conf_setting {
    const char *name;
    const char *value; /* options: as text; features: "true" or "false" */
    const char *json;  /* the same as JSON: a string with its quotes */
};

/* What the config says about one plugin id. */
struct hob__conf_plugin {
    const char *id;
    enum hob__tristate enabled;
    enum hob__tristate critical;
    bool has_priority;
    int32_t priority;
    const char *pin; /* version, "sha256:..." or 64 hex digits; or NULL */
    struct hob__conf_setting *options;
    uint32_t option_count;
    struct hob__conf_setting *features;
    uint32_t feature_count;
    bool locked;
};

/* A message about a config file that is no failure. */
struct hob__conf_note {
    const char *path;
    enum hob__reason reason;
    const char *detail;
};

struct hob__conf {
    const struct hob_os_ops *os; /* whose paths those in it are */
    struct hob__strings devices; /* to try in this order */
    struct hob__strings enabled; /* patterns of ids */
    struct hob__strings disabled;
    struct hob__strings only; /* count 0: no restriction */
    struct hob__conf_plugin *plugins;
    uint32_t plugin_count;
    const char *log;           /* as HOB_LOG, or NULL */
    const char *cache_dir;     /* absolute, or NULL */
    struct hob__strings files; /* that were merged, in order */
    struct hob__conf_note *notes;
    uint32_t note_count;
    bool locked_device; /* the merge's own, likewise below */
    bool locked_lists;
    bool locked_log;
    bool locked_cache_dir;
    struct hob__arena arena; /* everything above lives here */
};

void hob__conf_init(struct hob__conf *conf, const struct hob_os_ops *os);
void hob__conf_release(struct hob__conf *conf);

/*
 * Merge SIZE bytes of JSON at TEXT into CONF. PATH is for messages.
 * IS_SYSTEM: "locked" is obeyed only in system files. Either the whole text is
 * merged or nothing. Fails with HOB_ERR_CONFIG, naming file, line and column,
 * and HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__conf_merge(struct hob__conf *conf,
                                          const char *path, const void *text,
                                          size_t size, bool is_system,
                                          hob_error *error);

/* Return what CONF says about ID, or NULL. */
const struct hob__conf_plugin *hob__conf_find(const struct hob__conf *conf,
                                              const char *id);

/* Put ID's options as a JSON object into *OUT_TEXT ("{}" without any), which
 * the caller frees. Fails with HOB_ERR_MEMORY. */
HOB_MUST_CHECK hob_status hob__conf_options_json(const struct hob__conf *conf,
                                                 const char *id,
                                                 char **out_text);

#endif
