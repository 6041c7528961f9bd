/* SPDX-License-Identifier: Apache-2.0 */
/*
 * selectors.c - selectors that an op lists and nothing here has tried, with
 * the reason: a report without findings must not pass for more than it is.
 */
#include "check.h"

#include "loader.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct reason {
    const struct hob__loader *loader;
    const char *selector;
    struct hob__text text; /* of all devices */
};

/* Whether the backend that SPEC names, as in "cube-cuda:1", has SELECTOR or is
 * of that family. */
static int is_of(const struct hob__loader *loader, const char *spec,
                 const char *selector)
{
    const struct hob__candidate *candidate;
    char name[CHECK_NAME];

    (void)snprintf(name, sizeof(name), "%.*s", (int)strcspn(spec, ":{("), spec);
    if (!strcmp(name, selector))
        return 1;
    candidate = hob__loader_find(loader, HOB__KIND_BACKEND, name);
    return candidate && candidate->manifest->backend.family &&
           !strcmp(candidate->manifest->backend.family, selector);
}

static int is_tried(const struct check_child *child,
                    const struct hob__loader *loader, const char *op,
                    const char *selector)
{
    const struct check_shared *shared = child->shared;

    for (uint32_t i = 0; i < shared->job_count; i++)
        if (!strcmp(child->target->ops[shared->jobs[i].op].name, op) &&
            is_of(loader, shared->jobs[i].device, selector))
            return 1;
    return 0;
}

static int visit_problem(void *context, const struct hob_device_record *record)
{
    struct reason *reason = context;

    if (!is_of(reason->loader, record->spec, reason->selector))
        return 0;
    hob__text_printf(&reason->text, "; %s%s%s", record->spec,
                     record->problem ? ": " : " is left out",
                     record->problem ? record->problem : "");
    return 0;
}

static void note(struct check_child *child, hob_runtime *runtime,
                 const char *op, const char *selector)
{
    struct reason reason = {runtime->loader, selector, HOB__TEXT_INIT};
    char *text;

    hob_runtime_devices(runtime, visit_problem, &reason);
    text = hob__text_take(&reason.text);
    check_note(child, "%s: %s is not checked: %s", op, selector,
               text && *text ? text + 2 : "no plugin here serves it");
    free(text);
}

void check_selectors(struct check_child *child, hob_runtime *runtime)
{
    const struct hob__candidate *candidate =
        hob__loader_find_id(runtime->loader, child->target->id);
    const struct hob__manifest *manifest = candidate->manifest;

    for (uint32_t i = 0; i < manifest->op_count; i++) {
        const struct hob__manifest_op *op = &manifest->ops[i];

        for (uint32_t k = 0; k < op->selector_count; k++) {
            const struct hob__manifest_selector *one = &op->selectors[k];

            if (check_is_wanted(child->options, op->full_name) &&
                strcmp(one->name, "*") != 0 &&
                !hob__loader_find(runtime->loader, HOB__KIND_DECORATOR,
                                  one->name) &&
                hob__loader_condition(runtime->loader, candidate, one) &&
                !is_tried(child, runtime->loader, op->full_name, one->name))
                note(child, runtime, op->full_name, one->name);
        }
    }
}
