/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader.c - opening a loader, and finding candidates in it.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "error.h"
#include "loader_internal.h"

#include <stdlib.h>
#include <string.h>

static hob_status read_devices(struct hob__loader *loader, const char *option)
{
    const char *one = option ? option : loader->env.device;

    if (!one) {
        loader->devices = loader->conf.devices;
        return HOB_OK;
    }
    loader->devices.items = hob__arena_array(&loader->arena, 1, sizeof(char *));
    one = hob__arena_strdup(&loader->arena, one);
    if (!loader->devices.items || !one)
        return HOB_ERR_MEMORY;
    loader->devices.items[0] = one;
    loader->devices.count = 1;
    return HOB_OK;
}

static hob_status open_log(struct hob__loader *loader,
                           const struct hob__loader_options *options,
                           hob_error *error)
{
    struct hob__log_options wanted = {.format = NULL};

    wanted.filter = loader->env.log ? loader->env.log : loader->conf.log;
    wanted.filter_name = loader->env.log ? "HOB_LOG" : "the config's \"log\"";
    wanted.format = loader->env.log_format;
    wanted.file = loader->env.log_file;
    wanted.sink = options->log_sink;
    wanted.context = options->log_context;
    return hob__log_new(loader->os, &wanted, &loader->log, error);
}

/* The first record of a candidate; the others come in loader_load.c. */
static const struct hob__record *first_record(struct hob__loader *loader,
                                              const struct hob__found *found)
{
    const struct hob__candidate *candidate = &found->candidate;
    struct hob__record *record =
        hob__arena_alloc(&loader->arena, sizeof(*record));

    if (!record)
        return NULL;
    record->id = candidate->id;
    record->path = candidate->path;
    record->real_path = candidate->real_path;
    record->library = candidate->library;
    record->rule = candidate->rule;
    record->state = found->state;
    record->reason = found->reason;
    record->detail = found->detail;
    record->hint = hob__reason_hint(found->reason);
    record->time_ns = loader->os->now_ns(loader->os->self);
    return record;
}

/* Fix the arrays; the manifests go over to the slots. */
static hob_status take_found(struct hob__loader *loader,
                             struct hob__found *found, uint32_t count)
{
    uint32_t i;

    loader->candidates =
        hob__arena_array(&loader->arena, count, sizeof(*loader->candidates));
    /* Not from the arena: slots need their own end. */
    loader->slots = calloc(count ? count : 1, sizeof(*loader->slots));
    if (!loader->candidates || !loader->slots)
        return HOB_ERR_MEMORY;
    for (i = 0; i < count; i++) {
        struct hob__load_slot *slot = &loader->slots[i];
        const struct hob__record *record = first_record(loader, &found[i]);

        if (!record || pthread_cond_init(&slot->changed, NULL))
            return HOB_ERR_MEMORY;
        loader->count = i + 1;
        atomic_init(&slot->record, record);
        atomic_init(&slot->plugin, NULL);
        atomic_init(&slot->thread, 0);
        atomic_init(&slot->step, NULL);
        slot->manifest = found[i].manifest;
        found[i].manifest = NULL;
        slot->search_root = found[i].search_root;
        loader->candidates[i] = found[i].candidate;
        loader->candidates[i].slot = slot;
    }
    return HOB_OK;
}

static hob_status discover(struct hob__loader *loader,
                           const struct hob__loader_options *options,
                           hob_error *error)
{
    struct hob__discovery discovery;
    hob_status st;

    memset(&discovery, 0, sizeof(discovery));
    discovery.os = loader->os;
    discovery.env = &loader->env;
    discovery.options = options;
    discovery.trust = &loader->trust;
    discovery.arena = &loader->arena;
    st = hob__discover(&discovery, error);
    if (!st)
        st = hob__select(loader, discovery.found, discovery.count);
    if (!st)
        st = take_found(loader, discovery.found, discovery.count);
    loader->searched = discovery.searched;
    loader->searched_count = discovery.searched_count;
    hob__discovery_release(&discovery);
    if (st == HOB_ERR_MEMORY)
        (void)hob_error_set(error, st, "loader: out of memory");
    return st;
}

/* Variables that a manifest says its plugin reads are not unknown. */
static hob_status note_environment(struct hob__loader *loader)
{
    const char **others;
    uint32_t i, j, count = 0;

    for (i = 0; i < loader->count; i++) {
        if (loader->slots[i].manifest)
            count += loader->slots[i].manifest->env.count;
    }
    others = hob__arena_array(&loader->arena, count, sizeof(*others));
    if (!others)
        return HOB_ERR_MEMORY;
    count = 0;
    for (i = 0; i < loader->count; i++) {
        const struct hob__manifest *manifest = loader->slots[i].manifest;

        for (j = 0; manifest && j < manifest->env.count; j++)
            others[count++] = manifest->env.items[j];
    }
    return hob__env_note_unknown(loader->os, &loader->env, others, count);
}

static bool log_note(void *context, const struct hob__note *note)
{
    struct hob__log *log = context;

    hob__log_write(log, hob__reason_severity(note->reason), "loader",
                   "%s: %s: %s", note->where, hob__reason_text(note->reason),
                   note->detail);
    return true;
}

static bool log_searched(void *context, const struct hob__searched *searched)
{
    struct hob__log *log = context;

    hob__log_write(log, hob__reason_severity(searched->reason), "loader",
                   "searched %s (%s): %u found%s%s", searched->path,
                   hob__rule_name(searched->rule), (unsigned)searched->found,
                   searched->reason ? ": " : "",
                   searched->reason ? hob__reason_text(searched->reason) : "");
    return true;
}

/* REP-3: a refusal is an error only where somebody asked for the plugin. */
static void log_candidate(struct hob__loader *loader,
                          const struct hob__candidate *candidate)
{
    const struct hob__record *record = hob__candidate_record(candidate);
    enum hob__severity severity = hob__reason_severity(record->reason);
    struct hob__text text = HOB__TEXT_INIT;
    uint32_t i;

    if (candidate->critical && !hob__candidate_usable(candidate))
        severity = HOB__SEVERITY_ERROR;
    else if (severity > HOB__SEVERITY_WARN)
        severity = HOB__SEVERITY_WARN;
    if (hob__log_wants(loader->log, severity, "loader")) {
        hob__record_format(record, &text);
        hob__log_write(loader->log, severity, "loader", "%s",
                       text.data ? text.data : "out of memory");
        hob__text_release(&text);
    }
    for (i = 0; candidate->manifest && i < candidate->manifest->notes.count;
         i++)
        hob__log_write(loader->log, HOB__SEVERITY_DEBUG, "loader", "%s:%s",
                       candidate->path, candidate->manifest->notes.items[i]);
}

/* REP-3: with nothing left to work with, say once why. */
static void log_nothing_usable(struct hob__loader *loader)
{
    char *text = NULL;
    uint32_t i;

    for (i = 0; i < loader->count; i++) {
        if (hob__candidate_usable(&loader->candidates[i]))
            return;
    }
    if (!hob__log_wants(loader->log, HOB__SEVERITY_ERROR, "loader") ||
        hob__loader_summary(loader, &text))
        return;
    hob__log_write(loader->log, HOB__SEVERITY_ERROR, "loader", "%s", text);
    free(text);
}

static hob_status open_loader(struct hob__loader *loader,
                              const struct hob__loader_options *options,
                              hob_error *error)
{
    hob_status st = hob__env_read(loader->os, &loader->env, error);
    uint32_t i;

    if (!st)
        st = hob__conf_read_files(loader, options, error);
    if (!st)
        st = open_log(loader, options, error);
    if (!st)
        st = discover(loader, options, error);
    if (st)
        return st;
    st = note_environment(loader);
    if (!st)
        st = read_devices(loader, options->device);
    if (st)
        return hob_error_set(error, st, "loader: out of memory");
    hob__loader_notes(loader, log_note, loader->log);
    hob__loader_searched(loader, log_searched, loader->log);
    for (i = 0; i < loader->count; i++)
        log_candidate(loader, &loader->candidates[i]);
    log_nothing_usable(loader);
    return HOB_OK;
}

hob_status hob__loader_open(const struct hob__loader_options *options,
                            const struct hob_os_ops *os,
                            struct hob__loader **out_loader, hob_error *error)
{
    static const struct hob__loader_options none;
    struct hob__loader *loader = calloc(1, sizeof(*loader));
    hob_status st;

    *out_loader = NULL;
    if (!loader || pthread_mutex_init(&loader->mutex, NULL)) {
        free(loader);
        return hob_error_set(error, HOB_ERR_MEMORY, "loader: out of memory");
    }
    loader->os = os ? os : hob__os();
    loader->process = loader->os->process(loader->os->self);
    hob__conf_init(&loader->conf, loader->os);
    hob__trust_init(&loader->trust, loader->os);
    st = open_loader(loader, options ? options : &none, error);
    if (st) {
        hob__loader_close(loader);
        return st;
    }
    *out_loader = loader;
    return HOB_OK;
}

void hob__loader_close(struct hob__loader *loader)
{
    uint32_t i;

    if (!loader)
        return;
    for (i = 0; i < loader->count; i++) {
        /* Its readers are gone; it is const only for them. */
        hob__plugin_release((struct hob__plugin *)(uintptr_t)atomic_load(
            &loader->slots[i].plugin));
        hob__manifest_free(loader->slots[i].manifest);
        (void)pthread_cond_destroy(&loader->slots[i].changed);
    }
    free(loader->slots);
    hob__log_free(loader->log);
    hob__ldcache_release(&loader->ldcache);
    hob__trust_release(&loader->trust);
    hob__conf_release(&loader->conf);
    hob__env_release(&loader->env);
    hob__arena_release(&loader->arena);
    (void)pthread_mutex_destroy(&loader->mutex);
    free(loader);
}

uint32_t hob__loader_count(const struct hob__loader *loader)
{
    return loader->count;
}

const struct hob__candidate *hob__loader_get(const struct hob__loader *loader,
                                             uint32_t index)
{
    return index < loader->count ? &loader->candidates[index] : NULL;
}

const struct hob__candidate *hob__loader_find(const struct hob__loader *loader,
                                              enum hob__plugin_kind kind,
                                              const char *selector)
{
    const struct hob__candidate *best = NULL;
    uint32_t i;

    for (i = 0; i < loader->count; i++) {
        const struct hob__candidate *one = &loader->candidates[i];
        const char *own;

        if (!hob__candidate_usable(one) || one->manifest->kind != kind)
            continue;
        own = hob__manifest_selector_name(one->manifest);
        if (own && !strcmp(own, selector) &&
            (!best || one->priority > best->priority))
            best = one;
    }
    return best;
}

const struct hob__candidate *
hob__loader_find_id(const struct hob__loader *loader, const char *id)
{
    const struct hob__candidate *first = NULL;
    uint32_t i;

    for (i = 0; i < loader->count; i++) {
        const struct hob__candidate *one = &loader->candidates[i];

        if (!one->id || strcmp(one->id, id) != 0)
            continue;
        if (hob__candidate_usable(one))
            return one;
        if (!first)
            first = one;
    }
    return first;
}

bool hob__candidate_feature(const struct hob__candidate *candidate,
                            const char *feature)
{
    const struct hob__manifest *manifest = candidate->manifest;
    const struct hob__conf_plugin *conf = candidate->conf;
    uint32_t i;

    for (i = 0; conf && i < conf->feature_count; i++) {
        if (!strcmp(conf->features[i].name, feature))
            return !strcmp(conf->features[i].value, "true");
    }
    for (i = 0; manifest && i < manifest->feature_count; i++) {
        if (!strcmp(manifest->features[i].name, feature))
            return manifest->features[i].enabled;
    }
    return false;
}

bool hob__loader_condition(const struct hob__loader *loader,
                           const struct hob__candidate *candidate,
                           const struct hob__manifest_selector *selector)
{
    const struct hob__candidate *other;

    switch (selector->when) {
    case HOB__WHEN_ALWAYS:
        return true;
    case HOB__WHEN_FEATURE:
        return hob__candidate_feature(candidate, selector->when_name);
    case HOB__WHEN_PLUGIN:
        other = hob__loader_find_id(loader, selector->when_name);
        return other && hob__candidate_usable(other);
    }
    return false;
}

const struct hob__conf *hob__loader_conf(const struct hob__loader *loader)
{
    return &loader->conf;
}

const char *const *hob__loader_devices(const struct hob__loader *loader,
                                       uint32_t *out_count)
{
    *out_count = loader->devices.count;
    return loader->devices.items;
}

struct hob__log *hob__loader_log(struct hob__loader *loader)
{
    return loader->log;
}
