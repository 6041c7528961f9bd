/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_load.c - opening plugins on several threads (LOAD-2 to LOAD-6).
 *
 * The loader's mutex guards phases and memory and is held for moments only,
 * never across dlopen, entry or any call of a plugin. Who comes second waits
 * on the slot's condition, that is for that plugin alone.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "error.h"
#include "loader_internal.h"

#include <stdlib.h>
#include <string.h>

const struct hob__record *
hob__candidate_record(const struct hob__candidate *candidate)
{
    return atomic_load_explicit(&candidate->slot->record, memory_order_acquire);
}

bool hob__candidate_usable(const struct hob__candidate *candidate)
{
    enum hob__state state = hob__candidate_record(candidate)->state;

    return state == HOB__STATE_DISCOVERED || state == HOB__STATE_LOADED;
}

const struct hob__plugin *
hob__candidate_plugin(const struct hob__candidate *candidate)
{
    return atomic_load_explicit(&candidate->slot->plugin, memory_order_acquire);
}

void hob__loader_step(const struct hob__candidate *candidate, const char *step)
{
    atomic_store(&candidate->slot->step, step);
}

const char *hob__loader_strdup(struct hob__loader *loader, const char *text)
{
    const char *copy;

    (void)pthread_mutex_lock(&loader->mutex);
    copy = hob__arena_strdup(&loader->arena, text);
    (void)pthread_mutex_unlock(&loader->mutex);
    return copy;
}

hob_status hob__loader_trust(struct hob__loader *loader,
                             const struct hob__candidate *candidate,
                             const char *path, const char **out_fault)
{
    hob_status st;

    (void)pthread_mutex_lock(&loader->mutex);
    st = hob__trust_check(&loader->trust, path, candidate->slot->search_root,
                          out_fault);
    (void)pthread_mutex_unlock(&loader->mutex);
    return st;
}

/* Without memory for a new record the old one stays. */
static void set_record_locked(struct hob__loader *loader,
                              const struct hob__candidate *candidate,
                              enum hob__state state, enum hob__reason reason,
                              const char *detail)
{
    const struct hob__record *old = hob__candidate_record(candidate);
    struct hob__record *record =
        hob__arena_alloc(&loader->arena, sizeof(*record));

    if (!record)
        return;
    *record = *old;
    record->state = state;
    record->reason = reason;
    record->detail = detail ? hob__arena_strdup(&loader->arena, detail) : NULL;
    record->hint = hob__reason_hint(reason);
    record->time_ns = loader->os->now_ns(loader->os->self);
    atomic_store_explicit(&candidate->slot->record, record,
                          memory_order_release);
}

void hob__loader_refuse(struct hob__loader *loader,
                        const struct hob__candidate *candidate,
                        enum hob__state state, enum hob__reason reason,
                        const char *detail)
{
    (void)pthread_mutex_lock(&loader->mutex);
    set_record_locked(loader, candidate, state, reason, detail);
    (void)pthread_mutex_unlock(&loader->mutex);
}

hob_status hob__loader_check_fork(const struct hob__loader *loader,
                                  hob_error *error)
{
    if (loader->os->process(loader->os->self) == loader->process)
        return HOB_OK;
    return hob_error_set(error, HOB_ERR_FORKED, "%s. %s",
                         hob__reason_text(HOB__REASON_FORKED),
                         hob__reason_hint(HOB__REASON_FORKED));
}

bool hob__loader_running(const struct hob__loader *loader, const char **out_id,
                         const char **out_phase)
{
    uint64_t self = loader->os->thread(loader->os->self);
    uint32_t i;

    for (i = 0; i < loader->count; i++) {
        const char *step = atomic_load(&loader->slots[i].step);

        if (step && atomic_load(&loader->slots[i].thread) == self) {
            *out_id = loader->candidates[i].id;
            *out_phase = step;
            return true;
        }
    }
    return false;
}

/* One line that says all that the record does. */
static hob_status fail_as_recorded(const struct hob__candidate *candidate,
                                   hob_error *error)
{
    struct hob__text text = HOB__TEXT_INIT;

    hob__record_format(hob__candidate_record(candidate), &text);
    (void)hob_error_set(error, HOB_ERR_PLUGIN, "plugin %s",
                        text.data ? text.data : candidate->path);
    hob__text_release(&text);
    return HOB_ERR_PLUGIN;
}

/* Is this thread inside an entry of this loader's? Then remember that. */
static bool is_reentrant_locked(struct hob__loader *loader, hob_error *error)
{
    uint64_t self = loader->os->thread(loader->os->self);
    uint32_t i;

    for (i = 0; i < loader->count; i++) {
        struct hob__load_slot *slot = &loader->slots[i];

        if (slot->phase == HOB__LOAD_RUNNING &&
            atomic_load(&slot->thread) == self) {
            slot->was_reentered = true;
            (void)hob_error_set(error, HOB_ERR_REENTRANT,
                                "plugin %s: %s (step %s)",
                                loader->candidates[i].id,
                                hob__reason_text(HOB__REASON_REENTRANT),
                                atomic_load(&slot->step));
            return true;
        }
    }
    return false;
}

/*
 * Wait until nobody loads SLOT, and take it on if nobody has. *OUT_MINE: this
 * thread is to load it.
 */
static hob_status claim(struct hob__loader *loader, struct hob__load_slot *slot,
                        bool *out_mine, hob_error *error)
{
    hob_status st = HOB_OK;

    (void)pthread_mutex_lock(&loader->mutex);
    if (is_reentrant_locked(loader, error))
        st = HOB_ERR_REENTRANT;
    while (!st && slot->phase == HOB__LOAD_RUNNING)
        (void)pthread_cond_wait(&slot->changed, &loader->mutex);
    *out_mine = !st && slot->phase == HOB__LOAD_IDLE;
    if (*out_mine) {
        slot->phase = HOB__LOAD_RUNNING;
        slot->was_reentered = false;
        atomic_store(&slot->thread, loader->os->thread(loader->os->self));
        atomic_store(&slot->step, "start");
    }
    (void)pthread_mutex_unlock(&loader->mutex);
    return st;
}

static void publish_locked(struct hob__loader *loader,
                           const struct hob__candidate *candidate,
                           const struct hob__plugin *plugin, const char *notes)
{
    struct hob__load_slot *slot = candidate->slot;
    enum hob__reason reason = HOB__REASON_OK;

    if (slot->was_reentered)
        reason = HOB__REASON_REENTRANT;
    else if (notes)
        reason = HOB__REASON_VERSION_MISMATCH;
    set_record_locked(loader, candidate, HOB__STATE_LOADED, reason, notes);
    atomic_store_explicit(&slot->plugin, plugin, memory_order_release);
}

/* The load has ended: record how, and wake who waits. */
static void settle(struct hob__loader *loader,
                   const struct hob__candidate *candidate,
                   const struct hob__plugin *plugin, hob_status status,
                   enum hob__reason reason, const char *notes,
                   const char *message)
{
    struct hob__load_slot *slot = candidate->slot;

    (void)pthread_mutex_lock(&loader->mutex);
    if (!status) {
        slot->phase = HOB__LOAD_DONE;
        publish_locked(loader, candidate, plugin, notes);
    } else if (status == HOB_ERR_MEMORY) {
        slot->phase = HOB__LOAD_IDLE; /* it may work another time */
    } else {
        slot->phase = HOB__LOAD_FAILED;
        set_record_locked(loader, candidate, HOB__STATE_REFUSED, reason,
                          message);
    }
    atomic_store(&slot->step, NULL);
    atomic_store(&slot->thread, 0);
    (void)pthread_cond_broadcast(&slot->changed);
    (void)pthread_mutex_unlock(&loader->mutex);
}

static void log_loaded(struct hob__loader *loader,
                       const struct hob__candidate *candidate)
{
    const struct hob__record *record = hob__candidate_record(candidate);
    enum hob__severity severity = hob__reason_severity(record->reason);
    struct hob__text text = HOB__TEXT_INIT;

    if (severity > HOB__SEVERITY_WARN)
        severity = HOB__SEVERITY_WARN;
    if (!hob__log_wants(loader->log, severity, "loader"))
        return;
    hob__record_format(record, &text);
    hob__log_write(loader->log, severity, "loader", "%s",
                   text.data ? text.data : candidate->path);
    hob__text_release(&text);
}

static struct hob__plugin *new_plugin(struct hob__loader *loader)
{
    struct hob__plugin *plugin;

    (void)pthread_mutex_lock(&loader->mutex);
    plugin = hob__arena_alloc(&loader->arena, sizeof(*plugin));
    (void)pthread_mutex_unlock(&loader->mutex);
    return plugin;
}

/* This thread has claimed CANDIDATE. */
static hob_status load(struct hob__loader *loader,
                       const struct hob__candidate *candidate,
                       const struct hob_host *host, hob_error *error)
{
    struct hob__plugin *plugin = new_plugin(loader);
    struct hob__text notes = HOB__TEXT_INIT;
    enum hob__reason reason = HOB__REASON_OK;
    hob_error own = HOB_ERROR_INIT;
    hob_status st = HOB_ERR_MEMORY;

    if (plugin)
        st = hob__library_load(loader, candidate, host, plugin, &notes, &reason,
                               &own);
    if (st)
        hob__plugin_release(plugin);
    settle(loader, candidate, plugin, st, reason, notes.data,
           hob__error_text(&own));
    if (st == HOB_ERR_MEMORY)
        (void)hob_error_set(error, st, "plugin %s: out of memory",
                            candidate->id);
    else
        log_loaded(loader, candidate);
    hob__text_release(&notes);
    hob_error_release(&own);
    return st;
}

/* A loaded plugin in a forked child: only if it says that it can. */
static hob_status check_child(const struct hob__loader *loader,
                              const struct hob__plugin *plugin,
                              hob_error *error)
{
    if (plugin && plugin->table.after_fork_child)
        return HOB_OK;
    return hob__loader_check_fork(loader, error);
}

hob_status hob__loader_load(struct hob__loader *loader,
                            const struct hob__candidate *candidate,
                            const struct hob_host *host,
                            const struct hob__plugin **out_plugin,
                            hob_error *error)
{
    const struct hob__plugin *plugin = hob__candidate_plugin(candidate);
    bool mine = false;
    hob_status st;

    *out_plugin = NULL;
    st = check_child(loader, plugin, error);
    if (st)
        return st;
    if (!plugin) {
        if (!hob__candidate_usable(candidate))
            return fail_as_recorded(candidate, error);
        st = claim(loader, candidate->slot, &mine, error);
        if (!st && mine)
            st = load(loader, candidate, host, error);
        if (st == HOB_ERR_REENTRANT || st == HOB_ERR_MEMORY)
            return st;
        plugin = hob__candidate_plugin(candidate);
    }
    if (!plugin || !hob__candidate_usable(candidate))
        return fail_as_recorded(candidate, error);
    *out_plugin = plugin;
    return HOB_OK;
}
