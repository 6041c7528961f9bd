/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.c - the decorator "autodiff": entry and tables.
 */
#include "layer.h"

#include <hob/ext/autodiff.h>

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
        return ad_message(host, out_message, HOB_ERR_MEMORY,
                          "autodiff: no memory");
    instance->host = host;
    return HOB_OK;
}

static void plugin_close(void *instance)
{
    free(instance);
}

/* There is nothing here that a fork could break: no threads, no devices. */
static void after_fork_child(void *instance)
{
    (void)instance;
}

static void layer_close(void *instance)
{
    struct ad_layer *layer = (struct ad_layer *)instance;

    ad_pool_release(layer->pool);
    free(layer->pool);
    free(layer);
}

static hob_status layer_open(void *instance, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message)
{
    const struct hob_host *host = ((struct instance *)instance)->host;
    struct ad_layer *layer = malloc(sizeof(*layer));
    struct ad_pool *pool = malloc(sizeof(*pool));
    hob_status status;

    *out_layer = NULL;
    if (!layer || !pool) {
        free(layer);
        free(pool);
        return ad_message(host, out_message, HOB_ERR_MEMORY,
                          "autodiff: no memory for a layer");
    }
    ad_pool_init(pool);
    layer->pool = pool;
    layer->host = host;
    layer->below = below;
    layer->level = level;
    layer->balanced = 0;
    ad_rules_fill(layer->rules);
    status = ad_options_read(layer, options, out_message);
    if (status)
        layer_close(layer);
    else
        *out_layer = layer;
    return status;
}

static void state_release(void *layer, void *state)
{
    ad_node_release_handle(((struct ad_layer *)layer)->host,
                           ((struct ad_slot *)state)->node);
}

static void *state_retain(void *layer, void *state)
{
    (void)layer;
    ad_node_retain_handle(((struct ad_slot *)state)->node);
    return state;
}

static const void *interface(void *layer, const char *name, uint32_t version)
{
    (void)layer;
    if (strcmp(name, HOB_AUTODIFF_INTERFACE) == 0 &&
        version == HOB_AUTODIFF_INTERFACE_VERSION)
        return &ad_interface;
    return NULL;
}

static int32_t has_rule(void *instance, uint32_t op)
{
    const struct hob_backward *rules[AD_OP_LIMIT] = {NULL};

    (void)instance;
    ad_rules_fill(rules);
    return op < AD_OP_LIMIT && rules[op] != NULL;
}

static const struct hob_decorator decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .flags = HOB_DECORATOR_NEEDS_STATE,
    .layer_open = layer_open,
    .layer_close = layer_close,
    .call = ad_call,
    .state_release = state_release,
    .state_retain = state_retain,
    .interface = interface,
    .has_rule = has_rule,
};

static const struct hob_plugin plugin = {
    HOB_PLUGIN_INIT_HEAD,    .id = "autodiff",
    .version = "0.1.0",      .open = plugin_open,
    .close = plugin_close,   .after_fork_child = after_fork_child,
    .decorator = &decorator,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}
