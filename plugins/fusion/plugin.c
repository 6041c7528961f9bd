/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.c - the decorator "fusion": entry, tables, layers.
 */
#include "plan.h"

#include <hob/ext/message.h>
#include <hob/ext/options.h>

#include <stdlib.h>
#include <string.h>

struct instance {
    const struct hob_host *host;
};

static hob_status plugin_open(const struct hob_host *host, const char *options,
                              void **out_instance, char **out_message)
{
    struct instance *instance = malloc(sizeof(*instance));

    (void)options; /* the layers read theirs */
    *out_instance = instance;
    if (!instance)
        return hob_say(host, out_message, HOB_ERR_MEMORY, "fusion: no memory");
    instance->host = host;
    return HOB_OK;
}

static void plugin_close(void *instance)
{
    free(instance);
}

/* No tensor is left, so no node is. */
static void layer_close(void *opaque)
{
    struct fu_layer *layer = (struct fu_layer *)opaque;

    while (layer->windows) { /* they use kernels */
        struct fu_window *window = layer->windows;

        layer->windows = window->next;
        fu_window_free(window);
    }
    fu_kernels_free(layer->kernels);
    free(layer->patterns);
    fu_kinds_release(layer);
    fu_pool_release(&layer->pool);
    fu_lock_release(&layer->lock);
    free(layer);
}

/* As the manifest says; what nobody sets is not among the options. */
enum { DEPTH_DEFAULT = 500, BYTES_DEFAULT = 1 << 30 };

/* The number that the option NAME of TEXT is; ABSENT if it is not there, and
 * more than MOST if it is none up to that. */
static uint64_t number_option(const char *text, const char *name, uint64_t most,
                              uint64_t absent)
{
    struct hob_options options = hob_options_of(text);
    struct hob_option option;
    uint64_t number;

    while (hob_option_next(&options, &option))
        if (hob_option_is_named(&option, name))
            return hob_option_count(&option, most, &number) ? number : most + 1;
    return absent;
}

/* What the base below LAYER offers. */
static hob_status find_fused(struct fu_layer *layer)
{
    const struct hob_host *host = layer->host;
    const struct hob_fused_compute *fused =
        host->interface(layer->below, HOB_FUSED_COMPUTE,
                        HOB_FUSED_COMPUTE_VERSION, &layer->fused_instance);

    if (!fused)
        return HOB_OK;
    layer->kernels = fu_kernels_new(layer);
    layer->fused = fused;
    return layer->kernels ? HOB_OK : HOB_ERR_MEMORY;
}

/* Note which ops PATTERN is made of. */
static void note_ops(struct fu_layer *layer, const struct hob_pattern *pattern)
{
    for (uint32_t i = 0; i < pattern->with; i++) {
        const struct hob_pattern_node *node = fu_pattern_node(pattern, i);
        const uint32_t at = node->op % FU_PATTERN_OPS;

        if (node->kind == HOB_PATTERN_OP)
            layer->pattern_ops[at / 64] |= UINT64_C(1) << (at % 64);
    }
}

/* Registered optimisations, the largest first. */
static hob_status find_patterns(struct fu_layer *layer)
{
    const struct hob_host *host = layer->host;
    uint32_t count = 0;

    while (host->pattern(host, count))
        count++;
    if (!count)
        return HOB_OK;
    layer->patterns = malloc(count * sizeof(*layer->patterns));
    if (!layer->patterns)
        return HOB_ERR_MEMORY;
    for (uint32_t i = 0; i < count; i++) {
        layer->patterns[i] = host->pattern(host, i);
        note_ops(layer, layer->patterns[i]);
    }
    layer->pattern_count = count;
    return HOB_OK;
}

static hob_status layer_open(void *opaque, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message)
{
    const struct hob_host *host = ((struct instance *)opaque)->host;
    const uint64_t depth =
        number_option(options, "depth", INT32_MAX, DEPTH_DEFAULT);
    const uint64_t bytes =
        number_option(options, "bytes", INT64_MAX / 2, BYTES_DEFAULT);
    struct fu_layer *layer;
    hob_status status = HOB_OK;

    *out_layer = NULL;
    if (depth > INT32_MAX)
        return hob_say(host, out_message, HOB_ERR_ARGUMENT,
                       "fusion: depth is a number of ops, as in "
                       "fusion{depth=500}, or 0 for no limit");
    if (bytes > INT64_MAX / 2)
        return hob_say(host, out_message, HOB_ERR_ARGUMENT,
                       "fusion: bytes is a number of them, as in "
                       "fusion{bytes=1000000000}, or 0 for no limit");
    layer = calloc(1, sizeof(*layer));
    if (!layer)
        return hob_say(host, out_message, HOB_ERR_MEMORY,
                       "fusion: no memory for a layer");
    layer->host = host;
    layer->below = below;
    layer->level = level;
    layer->depth_limit = (uint32_t)depth;
    layer->held_limit = bytes;
    fu_lock_init(&layer->lock);
    fu_pool_init(&layer->pool);
    status = find_patterns(layer);
    if (!status && level == 1)
        status = find_fused(layer);
    if (status) {
        layer_close(layer);
        return hob_say(host, out_message, status,
                       "fusion: no memory for a layer");
    }
    *out_layer = layer;
    return HOB_OK;
}

static void *state_retain(void *opaque, void *word)
{
    struct fu_layer *layer = (struct fu_layer *)opaque;
    struct fu_value *value = fu_value_of(word);

    fu_lock(&layer->lock);
    /* Where the handle was filled just now its word is settled, or nobody
     * waits for the value any more: there is nothing to wait for. */
    if (!fu_is_settled(word) && value->handles) {
        value->handles++;
        value->node->refs++;
        atomic_store_explicit(&value->handle, NULL, memory_order_relaxed);
    } else {
        word = NULL;
    }
    fu_unlock(&layer->lock);
    return word;
}

static void states_release(void *layer, void *const *words, uint32_t count)
{
    fu_handles_end((struct fu_layer *)layer, words, count);
}

static const void *interface(void *layer, const char *name, uint32_t version)
{
    (void)layer;
    return !strcmp(name, HOB_FUSION_INSPECT) &&
                   version == HOB_FUSION_INSPECT_VERSION
               ? &fu_inspect
               : NULL;
}

static const struct hob_decorator decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .layer_open = layer_open,
    .layer_close = layer_close,
    .call = fu_call,
    .state_retain = state_retain,
    .interface = interface,
    .settle = fu_settle,
    .flush = fu_flush,
    .states_release = states_release,
    .again = fu_again,
};

static const struct hob_plugin plugin = {
    HOB_PLUGIN_INIT_HEAD, .id = "fusion",        .version = "0.1.0",
    .open = plugin_open,  .close = plugin_close, .decorator = &decorator,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}
