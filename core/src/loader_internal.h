/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_internal.h - what the loader's own files share.
 *
 * discovery.c finds candidates, selection.c decides which of them serve,
 * library.c opens one, loader.c holds it all together.
 */
#ifndef HOB__LOADER_INTERNAL_H
#define HOB__LOADER_INTERNAL_H

#include "env.h"
#include "ldcache.h"
#include "loader.h"
#include "trust.h"

#include <pthread.h>
#include <stdatomic.h>

enum hob__load_phase {
    HOB__LOAD_IDLE,
    HOB__LOAD_RUNNING, /* a thread is opening it */
    HOB__LOAD_DONE,
    HOB__LOAD_FAILED
};

/*
 * What changes about a candidate. The record is exchanged whole; PLUGIN is set
 * once. THREAD and STEP are atomic so that a crash handler may read them. The
 * rest is guarded by the loader's mutex.
 */
struct hob__load_slot {
    _Atomic(const struct hob__record *) record;
    _Atomic(const struct hob__plugin *) plugin;
    _Atomic(uint64_t) thread;   /* while RUNNING: who */
    _Atomic(const char *) step; /* while RUNNING: "dlopen"; else NULL */
    enum hob__load_phase phase;
    pthread_cond_t changed;         /* PHASE is no longer RUNNING */
    hob_status status;              /* when FAILED */
    const char *message;            /* when FAILED; NULL: read the record */
    bool was_reentered;             /* its entry called back into the loader */
    struct hob__manifest *manifest; /* owned, or NULL */
    const char *search_root;        /* trust is checked up to here, or NULL */
};

struct hob__loader {
    const struct hob_os_ops *os; /* borrowed, outlives this */
    int64_t process;             /* whose this is */
    struct hob__env env;
    struct hob__conf conf;
    struct hob__log *log;
    struct hob__ldcache ldcache;
    struct hob__strings devices;

    struct hob__candidate *candidates; /* fixed once open */
    struct hob__load_slot *slots;      /* one each, same order */
    uint32_t count;
    struct hob__searched *searched;
    uint32_t searched_count;

    pthread_mutex_t mutex; /* guards what follows; never held in a plugin */
    struct hob__trust trust;
    struct hob__arena arena;
};

/* A file that was found, before the arrays are fixed. */
struct hob__found {
    struct hob__candidate candidate;
    struct hob__manifest *manifest; /* owned until the loader takes it */
    const char *search_root;
    uint64_t device, inode; /* of the manifest; inode 0 when linked in */
    enum hob__state state;
    enum hob__reason reason;
    const char *detail;
    const char *warning; /* a fault that is no refusal, or NULL */
};

struct hob__discovery {
    const struct hob_os_ops *os;
    const struct hob__env *env;
    const struct hob__loader_options *options;
    struct hob__trust *trust;
    struct hob__arena *arena; /* the loader's */
    struct hob__found *found; /* owned */
    uint32_t count;
    uint32_t capacity;
    struct hob__searched *searched; /* in the arena */
    uint32_t searched_count;
    uint32_t searched_capacity;
    struct hob_os_stat *dirs; /* owned: folders that were read */
    uint32_t dir_count;
    uint32_t dir_capacity;
};

/*
 * Find and read all manifests (DISC-1 to DISC-11) into DISCOVERY, whose first
 * five members are set. End with hob__discovery_release() either way. Fails
 * with HOB_ERR_MEMORY, HOB_ERR_ARGUMENT.
 */
HOB_MUST_CHECK hob_status hob__discover(struct hob__discovery *discovery,
                                        hob_error *error);

/* Free what DISCOVERY owns, manifests that nobody took included. */
void hob__discovery_release(struct hob__discovery *discovery);

/* The places of DISC-2 to DISC-8, in discovery_places.c. Fails with
 * HOB_ERR_MEMORY. */
HOB_MUST_CHECK hob_status
hob__discover_places(struct hob__discovery *discovery);

/* Read the folder DIR. IS_NAMED: somebody asked for it by name. IS_USER: it is
 * a user's own. */
hob_status hob__discover_dir(struct hob__discovery *discovery,
                             enum hob__rule rule, const char *dir,
                             bool is_named, bool is_user);

/* Read the manifest PATH, or the folder PATH, whichever it is. */
hob_status hob__discover_path(struct hob__discovery *discovery,
                              enum hob__rule rule, const char *path);

/* Note a place that was not searched, or how it went. */
hob_status hob__discover_note(struct hob__discovery *discovery,
                              enum hob__rule rule, const char *path,
                              enum hob__reason reason, const char *detail);

/* Decide which of LOADER's found candidates serve (selection.c). */
HOB_MUST_CHECK hob_status hob__select(struct hob__loader *loader,
                                      struct hob__found *found, uint32_t count);

/* Say why ENV and CONF switch plugin ID off; OK: it is on (selection.c). */
enum hob__reason hob__enabled_reason(const struct hob__env *env,
                                     const struct hob__conf *conf,
                                     const char *id);

/* Read the config files and options into LOADER->conf (conf_files.c). */
HOB_MUST_CHECK hob_status hob__conf_read_files(
    struct hob__loader *loader, const struct hob__loader_options *options,
    hob_error *error);

/* Choose FOUND's library for this platform and CPU, or say why there is none
 * (select_library.c). */
HOB_MUST_CHECK hob_status hob__select_library(struct hob__loader *loader,
                                              struct hob__found *found);

/* Set what became of FOUND; DETAIL is formatted, NULL for none. */
hob_status hob__found_set(struct hob__loader *loader, struct hob__found *found,
                          enum hob__state state, enum hob__reason reason,
                          const char *format, ...) HOB_PRINTF(5, 6);

/* The first of FEATURES that the CPU lacks, or NULL. */
const char *hob__cpu_lacks(const struct hob_os_ops *os,
                           const struct hob__strings *features);

/*
 * Open CANDIDATE's library, call its entry, check its table, fill PLUGIN
 * (library.c). No lock is held. NOTES collects what is odd but no failure. On
 * failure nothing stays open.
 */
HOB_MUST_CHECK hob_status hob__library_load(
    struct hob__loader *loader, const struct hob__candidate *candidate,
    const struct hob_host *host, struct hob__plugin *plugin,
    struct hob__text *notes, enum hob__reason *out_reason, hob_error *error);

/* Whether OP, declared as DECLARED, has something for SELECTOR. A body serves
 * every one; without it each needs its own. */
bool hob__extension_serves(const struct hob__manifest_op *declared,
                           const struct hob_extension_op *op,
                           const char *selector);

/* MAN-5: every selector that holds has an implementation or a body. */
HOB_MUST_CHECK hob_status hob__extension_check(const struct hob__loader *loader,
                                               const struct hob__plugin *plugin,
                                               enum hob__reason *out_reason,
                                               hob_error *error);

/* Look at real path PATH of CANDIDATE's library under the trust rules;
 * *OUT_FAULT as in trust.h. Takes the loader's lock. */
HOB_MUST_CHECK hob_status hob__loader_trust(
    struct hob__loader *loader, const struct hob__candidate *candidate,
    const char *path, const char **out_fault);

/* Make STEP the running step of CANDIDATE ("dlopen"). */
void hob__loader_step(const struct hob__candidate *candidate, const char *step);

/* Copy into the loader's memory, under its lock. */
const char *hob__loader_strdup(struct hob__loader *loader, const char *text);

/* The compiled-in folders. */
const char *hob__default_prefix(void);
const char *hob__default_sysconf_dir(void);
const char *hob__default_data_dir(void);

#endif
