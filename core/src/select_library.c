/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select_library.c - which build of a plugin's library suits this machine.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "loader_internal.h"
#include "paths.h"

#include <string.h>

const char *hob__cpu_lacks(const struct hob_os_ops *os,
                           const struct hob__strings *features)
{
    uint32_t i;

    for (i = 0; i < features->count; i++) {
        if (os->has_cpu(os->self, features->items[i]) != 1)
            return features->items[i];
    }
    return NULL;
}

/* The variant that asks the most of the CPU and gets it; the first of equals.
 */
static const struct hob__manifest_variant *
best_variant(const struct hob_os_ops *os,
             const struct hob__manifest_target *target, const char **out_lacks)
{
    const struct hob__manifest_variant *best = NULL;
    uint32_t i;

    *out_lacks = NULL;
    for (i = 0; i < target->variant_count; i++) {
        const struct hob__manifest_variant *variant = &target->variants[i];
        const char *lacks = hob__cpu_lacks(os, &variant->cpu);

        if (lacks)
            *out_lacks = lacks;
        else if (!best || variant->cpu.count > best->cpu.count)
            best = variant;
    }
    return best;
}

/* MAN-4: relative to the manifest's real folder, never to ours. */
static hob_status resolve(struct hob__loader *loader, struct hob__found *found,
                          const char *path)
{
    struct hob__candidate *candidate = &found->candidate;
    char *dir;

    if (!strncmp(path, "system:", 7) ||
        hob__path_is_absolute(loader->os, path)) {
        candidate->library = hob__arena_strdup(&loader->arena, path);
        return candidate->library ? HOB_OK : HOB_ERR_MEMORY;
    }
    if (!found->inode)
        return hob__found_set(loader, found, HOB__STATE_REFUSED,
                              HOB__REASON_BAD_PATH,
                              "%s: a manifest in memory needs an absolute "
                              "path",
                              path);
    dir = hob__path_dir(&loader->arena, candidate->real_path);
    if (dir)
        candidate->library = hob__path_join(&loader->arena, dir, path);
    return candidate->library ? HOB_OK : HOB_ERR_MEMORY;
}

hob_status hob__select_library(struct hob__loader *loader,
                               struct hob__found *found)
{
    const struct hob__manifest *manifest = found->manifest;
    const struct hob__manifest_target *target;
    const struct hob__manifest_variant *variant;
    const char *lacks = NULL;

    if (found->candidate.entry)
        return HOB_OK;
    target = hob__manifest_target(manifest, loader->os->triple);
    if (!target)
        return hob__found_set(loader, found, HOB__STATE_SKIPPED,
                              HOB__REASON_NOT_FOR_THIS_PLATFORM, "this is %s",
                              loader->os->triple);
    variant = best_variant(loader->os, target, &lacks);
    if (!variant)
        return hob__found_set(loader, found, HOB__STATE_NOT_APPLICABLE,
                              HOB__REASON_CPU_FEATURE, "%s", lacks);
    found->candidate.sha256 =
        variant->sha256 ? variant->sha256 : manifest->sha256;
    return resolve(loader, found, variant->path);
}
