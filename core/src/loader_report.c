/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader_report.c - what was found where, and why it is as it is (REP-2).
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_internal.h"

#include <stdlib.h>
#include <string.h>

void hob__loader_searched(const struct hob__loader *loader,
                          hob__searched_fn *visit, void *context)
{
    uint32_t i;

    for (i = 0; i < loader->searched_count; i++) {
        if (!visit(context, &loader->searched[i]))
            return;
    }
}

void hob__loader_notes(const struct hob__loader *loader, hob__note_fn *visit,
                       void *context)
{
    uint32_t i;

    for (i = 0; i < loader->env.note_count; i++) {
        const struct hob__env_note *one = &loader->env.notes[i];
        const struct hob__note note = {one->variable, one->reason, one->detail};

        if (!visit(context, &note))
            return;
    }
    for (i = 0; i < loader->conf.note_count; i++) {
        const struct hob__conf_note *one = &loader->conf.notes[i];
        const struct hob__note note = {one->path, one->reason, one->detail};

        if (!visit(context, &note))
            return;
    }
}

static bool is_asked_for(const struct hob__candidate *candidate, const char *id)
{
    const char *selector =
        candidate->manifest ? hob__manifest_selector_name(candidate->manifest)
                            : NULL;

    return (candidate->id && !strcmp(candidate->id, id)) ||
           (selector && !strcmp(selector, id));
}

static void append_record(const struct hob__candidate *candidate,
                          struct hob__text *text)
{
    hob__record_format(hob__candidate_record(candidate), text);
    hob__text_puts(text, "\n");
}

/* The options of a decorator, as they stand in braces. */
static void append_options(const struct hob__candidate *candidate,
                           struct hob__text *text)
{
    const struct hob__manifest *manifest = candidate->manifest;

    for (uint32_t i = 0; manifest && manifest->kind == HOB__KIND_DECORATOR &&
                         i < manifest->decorator.option_count;
         i++) {
        const struct hob__manifest_option *one =
            &manifest->decorator.options[i];

        hob__text_printf(text, "  option %s", one->name);
        for (uint32_t k = 0; k < one->values.count; k++)
            hob__text_printf(text, "%s%s", k ? "|" : "=", one->values.items[k]);
        if (one->initial)
            hob__text_printf(text, ", %s if not given", one->initial);
        hob__text_printf(text, "%s%s\n", one->doc ? ": " : "",
                         one->doc ? one->doc : "");
    }
}

/* A plugin that declares the op NAME, usable or not; NULL if none does. */
static const struct hob__candidate *
find_declarer(const struct hob__loader *loader, const char *name)
{
    for (uint32_t i = 0; i < loader->count; i++)
        if (loader->candidates[i].manifest &&
            hob__manifest_find_op(loader->candidates[i].manifest, name))
            return &loader->candidates[i];
    return NULL;
}

/* The folders of the system and those of the build may be the same. */
static bool is_repeated(const struct hob__loader *loader, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (!strcmp(loader->searched[i].path, loader->searched[index].path))
            return true;
    return false;
}

static void append_searched(const struct hob__loader *loader,
                            struct hob__text *text)
{
    uint32_t i;

    hob__text_puts(text, "searched:\n");
    for (i = 0; i < loader->searched_count; i++) {
        const struct hob__searched *one = &loader->searched[i];

        if (is_repeated(loader, i))
            continue;
        hob__text_printf(text, "  %s (%s)", one->path,
                         hob__rule_name(one->rule));
        if (one->reason)
            hob__text_printf(text, ": %s", hob__reason_text(one->reason));
        else
            hob__text_printf(text, ": %u found", (unsigned)one->found);
        hob__text_puts(text, "\n");
    }
}

/* A manifest that could not be read may be the one that is missed. */
static void append_unread(const struct hob__loader *loader,
                          struct hob__text *text)
{
    uint32_t i;

    for (i = 0; i < loader->count; i++) {
        if (!loader->candidates[i].id)
            append_record(&loader->candidates[i], text);
    }
}

/* The id or selector that a person most likely meant by NAME, or NULL. */
static const char *nearest_plugin(const struct hob__loader *loader,
                                  const char *name)
{
    const char **names = calloc(2 * (size_t)loader->count + 1, sizeof(*names));
    const char *nearest = NULL;
    size_t known = 0;

    for (uint32_t i = 0; names && i < loader->count; i++) {
        const struct hob__candidate *one = &loader->candidates[i];
        const char *selector =
            one->manifest ? hob__manifest_selector_name(one->manifest) : NULL;

        if (one->id)
            names[known++] = one->id;
        if (selector)
            names[known++] = selector;
    }
    if (names)
        nearest = hob__nearest_name(name, names, known);
    free(names);
    return nearest;
}

static hob_status give(struct hob__text *text, char **out_text)
{
    *out_text = hob__text_take(text);
    return *out_text ? HOB_OK : HOB_ERR_MEMORY;
}

hob_status hob__loader_why(const struct hob__loader *loader, const char *id,
                           char **out_text)
{
    const struct hob__candidate *declarer;
    struct hob__text text = HOB__TEXT_INIT;
    const char *nearest;
    bool any = false;
    uint32_t i;

    for (i = 0; i < loader->count; i++) {
        if (!is_asked_for(&loader->candidates[i], id))
            continue;
        any = true;
        append_record(&loader->candidates[i], &text);
        append_options(&loader->candidates[i], &text);
    }
    declarer = any ? NULL : find_declarer(loader, id);
    if (declarer) {
        hob__text_printf(&text, "%s is no plugin but an op of %s\n", id,
                         declarer->id);
        append_record(declarer, &text);
    } else if (!any) {
        nearest = nearest_plugin(loader, id);
        hob__text_printf(&text, "%s: no manifest names it%s%s%s\n", id,
                         nearest ? "; did you mean \"" : "",
                         nearest ? nearest : "", nearest ? "\"?" : "");
        append_unread(loader, &text);
        append_searched(loader, &text);
    }
    return give(&text, out_text);
}

hob_status hob__loader_summary(const struct hob__loader *loader,
                               char **out_text)
{
    struct hob__text text = HOB__TEXT_INIT;
    uint32_t i, usable = 0;

    for (i = 0; i < loader->count; i++)
        usable += hob__candidate_usable(&loader->candidates[i]);
    hob__text_printf(&text,
                     usable ? "%u usable of %u plugins\n"
                            : "no usable plugin (%u of %u)\n",
                     (unsigned)usable, (unsigned)loader->count);
    for (i = 0; i < loader->count; i++) {
        if (!hob__candidate_usable(&loader->candidates[i]))
            append_record(&loader->candidates[i], &text);
    }
    if (!loader->count)
        append_searched(loader, &text);
    return give(&text, out_text);
}
