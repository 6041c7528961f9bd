/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.h - finds plugins, says what became of each, opens them when needed.
 *
 * - Opening a loader reads manifests and config; it opens no library.
 * - Candidates are sorted and immutable; only their record changes, by an
 *   atomic exchange of an immutable struct, so readers need no lock.
 * - Every candidate file has exactly one record with a reason code (P2).
 * - Any thread may call any function; two threads that load one plugin wait
 *   for that plugin alone, and no lock is held while plugin code runs.
 * - A loaded library is never closed again (LOAD-6); one that was refused is.
 */
#ifndef HOB__LOADER_H
#define HOB__LOADER_H

#include "conf.h"
#include "log.h"
#include "manifest.h"
#include "os.h"
#include "plugin.h"
#include "record.h"

#include <hob/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* types */

struct hob__loader; /* opaque; one a runtime */

/* A plugin that is linked in, or whose manifest the application holds. */
struct hob__loader_static {
    const char *manifest; /* JSON text */
    size_t manifest_size; /* in bytes, without a NUL */
    const char *name;     /* for messages in place of a path, or NULL */
    hob__entry_fn *entry; /* NULL: the manifest's "library" is opened */
};

/*
 * What the application asks for. All zero is the ordinary search. Borrowed
 * only while hob__loader_open() runs.
 */
struct hob__loader_options {
    const char *const *manifests; /* absolute files, searched first */
    uint32_t manifest_count;
    const char *const *directories; /* absolute, searched next */
    uint32_t directory_count;
    const struct hob__loader_static *statics;
    uint32_t static_count;
    bool exclusive;          /* nothing but the above (DISC-1) */
    const char *config_json; /* merged last into the config, or NULL */
    const char *device;      /* wins over HOB_DEVICE and the config, or NULL */
    const char *prefix;      /* NULL: as compiled in; likewise below */
    const char *sysconf_dir;
    const char *data_dir;
    bool core_is_static;   /* libhob's address is the program's (DISC-4) */
    hob__log_fn *log_sink; /* NULL: standard error */
    void *log_context;
};

/* One file or one linked-in manifest that might be a plugin. */
struct hob__candidate {
    const char *id;        /* NULL if the manifest could not be read */
    const char *path;      /* as found; "static:ID" for linked-in ones */
    const char *real_path; /* after realpath; PATH if that failed */
    enum hob__rule rule;   /* which rule found it */
    uint32_t search_index; /* which searched place found it */
    const struct hob__manifest *manifest; /* NULL if it was refused unread */
    hob__entry_fn *entry;                 /* linked in: its entry, else NULL */
    int32_t priority; /* the manifest's, or what the config says */
    bool critical;    /* the config: refusal is an error (P3) */
    const struct hob__conf_plugin *conf; /* what the config says, or NULL */
    const char *library;         /* path of the chosen library, or NULL; as
                                    "system:NAME" the system searches */
    const char *sha256;          /* what the library must hash to, or NULL */
    struct hob__load_slot *slot; /* the loader's own: record and plugin */
};

/* A place that was searched. */
struct hob__searched {
    enum hob__rule rule;
    const char *path;
    enum hob__reason reason; /* OK, DIR_MISSING, DIR_TOO_LARGE, ... */
    const char *detail;      /* or NULL */
    uint32_t found;          /* candidates from here */
};

/* life cycle */

/*
 * Read environment, config and manifests. OS is NULL for the real system and
 * must outlive the loader otherwise. A plugin that cannot be used is no
 * failure: it is a record. Fails with HOB_ERR_MEMORY, HOB_ERR_ARGUMENT (an
 * option is wrong), HOB_ERR_CONFIG (a config that was asked for by name is
 * malformed). On success *OUT_LOADER ends with hob__loader_close().
 */
HOB_MUST_CHECK hob_status hob__loader_open(
    const struct hob__loader_options *options, const struct hob_os_ops *os,
    struct hob__loader **out_loader, hob_error *error);

/*
 * Free LOADER and its records. Plugins must be shut down before; their code
 * stays mapped. Accepts NULL.
 */
void hob__loader_close(struct hob__loader *loader);

/* use: candidates in order of search, usable or not */

uint32_t hob__loader_count(const struct hob__loader *loader);
const struct hob__candidate *hob__loader_get(const struct hob__loader *loader,
                                             uint32_t index);

/* Return CANDIDATE's record of this moment; valid until the loader closes. */
const struct hob__record *
hob__candidate_record(const struct hob__candidate *candidate);

/*
 * Say whether CANDIDATE can serve: DISCOVERED or LOADED. A SHADOWED, DISABLED
 * or refused one cannot.
 */
bool hob__candidate_usable(const struct hob__candidate *candidate);

/*
 * Return the usable candidate of KIND with SELECTOR. Among several the highest
 * priority wins, then the first found. NULL if there is none.
 */
const struct hob__candidate *hob__loader_find(const struct hob__loader *loader,
                                              enum hob__plugin_kind kind,
                                              const char *selector);

/* Return the usable candidate with ID; else the first with ID; else NULL. */
const struct hob__candidate *
hob__loader_find_id(const struct hob__loader *loader, const char *id);

/* Say whether FEATURE of CANDIDATE is on: the config, else its default. */
bool hob__candidate_feature(const struct hob__candidate *candidate,
                            const char *feature);

/*
 * Say whether the condition of SELECTOR, of CANDIDATE's manifest, holds.
 * "plugin:ID" holds if that plugin is usable; nothing is loaded for it.
 */
bool hob__loader_condition(const struct hob__loader *loader,
                           const struct hob__candidate *candidate,
                           const struct hob__manifest_selector *selector);

/*
 * Open CANDIDATE's library if it is not open, call its entry with HOST and
 * check its table. *OUT_PLUGIN is borrowed from the loader. A plugin that was
 * refused before is refused again with the same text, without a new attempt.
 * Fails with HOB_ERR_PLUGIN, HOB_ERR_REENTRANT (called from that plugin's
 * entry), HOB_ERR_FORKED, HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__loader_load(
    struct hob__loader *loader, const struct hob__candidate *candidate,
    const struct hob_host *host, const struct hob__plugin **out_plugin,
    hob_error *error);

/*
 * Load CANDIDATE in a child process that may take TIMEOUT_MS (LOAD-7): a plugin
 * whose entry crashes or hangs is found out without harm. Its record then says
 * PROBE_CRASH or PROBE_TIMEOUT and it is not loaded here either. Fails with
 * HOB_ERR_PLUGIN, whose message is the child's; HOB_ERR_IO if there is no
 * child.
 */
HOB_MUST_CHECK hob_status hob__loader_probe(
    struct hob__loader *loader, const struct hob__candidate *candidate,
    const struct hob_host *host, uint32_t timeout_ms, hob_error *error);

/* Return CANDIDATE's plugin if it is loaded, else NULL; never loads. */
const struct hob__plugin *
hob__candidate_plugin(const struct hob__candidate *candidate);

/*
 * The runtime found later that CANDIDATE does not serve (its open failed, an
 * op signature is wrong): its record becomes STATE with REASON and DETAIL.
 */
void hob__loader_refuse(struct hob__loader *loader,
                        const struct hob__candidate *candidate,
                        enum hob__state state, enum hob__reason reason,
                        const char *detail);

/* Return HOB_OK, or HOB_ERR_FORKED if this process is a fork (LOAD-5). */
hob_status hob__loader_check_fork(const struct hob__loader *loader,
                                  hob_error *error);

/* use: config and log */

const struct hob__conf *hob__loader_conf(const struct hob__loader *loader);

/*
 * The devices to try in order: options, else HOB_DEVICE, else the config.
 * *OUT_COUNT may be 0.
 */
const char *const *hob__loader_devices(const struct hob__loader *loader,
                                       uint32_t *out_count);

struct hob__log *hob__loader_log(struct hob__loader *loader);

/* A remark about environment or config that is no failure. */
struct hob__note {
    const char *where; /* a variable's name or a config file */
    enum hob__reason reason;
    const char *detail;
};

/* use: reports; a visitor returns false to stop */

typedef bool hob__searched_fn(void *context,
                              const struct hob__searched *searched);

typedef bool hob__note_fn(void *context, const struct hob__note *note);

void hob__loader_notes(const struct hob__loader *loader, hob__note_fn *visit,
                       void *context);
void hob__loader_searched(const struct hob__loader *loader,
                          hob__searched_fn *visit, void *context);

/*
 * Put into *OUT_TEXT why plugin ID, or the plugin with selector ID, is where
 * it is: all its records, and where was searched if there is none. The text is
 * the caller's, who frees it with free(). Fails with HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status hob__loader_why(const struct hob__loader *loader,
                                          const char *id, char **out_text);

/* One text with every refused candidate: "no usable plugin" (REP-3). */
HOB_MUST_CHECK hob_status hob__loader_summary(const struct hob__loader *loader,
                                              char **out_text);

/*
 * Which plugin and phase the calling thread runs now (LOAD-3), for a crash
 * handler: "cube-cuda" and "entry". False if none.
 */
bool hob__loader_running(const struct hob__loader *loader, const char **out_id,
                         const char **out_phase);

#endif
