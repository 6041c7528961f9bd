/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inspect.c - "fusion.inspect": what a layer did.
 */
#include "fusion.h"

static void report(void *opaque, struct hob_fusion_stats *out)
{
    struct fu_layer *layer = (struct fu_layer *)opaque;
    struct hob_fused_stats stats = {.struct_size = sizeof(stats)};
    const uint32_t size = out->struct_size;

    fu_lock(&layer->lock);
    *out = layer->counts;
    fu_unlock(&layer->lock);
    out->struct_size = size;
    if (!layer->fused)
        return;
    fu_kernels_count(layer->kernels, &out->programs, &out->program_hits);
    if (layer->fused->stats)
        layer->fused->stats(layer->fused_instance, &stats);
    out->compiled = stats.compiled;
    out->disk_hits = stats.disk_hits;
    out->compile_ns = stats.compile_ns;
    out->not_ready = stats.not_ready;
}

static void watch(void *opaque, hob_fusion_watch_fn fn, void *context)
{
    struct fu_layer *layer = (struct fu_layer *)opaque;

    fu_lock(&layer->lock);
    layer->watch = fn;
    layer->watch_context = context;
    fu_unlock(&layer->lock);
}

const struct hob_fusion_inspect fu_inspect = {
    .struct_size = sizeof(fu_inspect),
    .version = HOB_FUSION_INSPECT_VERSION,
    .report = report,
    .watch = watch,
};
