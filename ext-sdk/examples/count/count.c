/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - a decorator that counts the calls that pass through it and says the
 * sum when its layer closes, or with loud=yes each of them. It says so in Hob's
 * log, for the streams are the program's: HOB_LOG=plugin:acme.count=info.
 */
#include <hob/ext/plugin.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SEVERITY_INFO = 1 };

/* Calls come on any thread, several at once. */
struct layer {
    const struct hob_host *host;
    atomic_ulong calls;
    int is_loud;
};

/* All that layers need of the plugin is the host, so that is the instance. */
static hob_status plugin_open(const struct hob_host *host, const char *options,
                              void **out_instance, char **out_message)
{
    (void)options; /* the layers read theirs */
    (void)out_message;
    *out_instance = (void *)host;
    return HOB_OK;
}

/* OPTIONS has all that the manifest declares, as {"loud":"yes"}. */
static hob_status layer_open(void *instance, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message)
{
    struct layer *layer = calloc(1, sizeof(*layer));

    (void)below;
    (void)level;
    (void)out_message; /* NULL: the status says all */
    if (!layer)
        return HOB_ERR_MEMORY;
    layer->host = instance;
    layer->is_loud = strstr(options, "\"loud\":\"yes\"") != NULL;
    *out_layer = layer;
    return HOB_OK;
}

static void layer_close(void *data)
{
    struct layer *layer = data;

    layer->host->log_write(layer->host, SEVERITY_INFO, "%lu calls",
                           atomic_load(&layer->calls));
    free(layer);
}

static int32_t layer_call(void *data, struct hob_call *call,
                          const struct hob_op_impl *impl,
                          hob_status *out_status)
{
    struct layer *layer = data;

    (void)impl;
    atomic_fetch_add(&layer->calls, 1);
    if (layer->is_loud)
        layer->host->log_write(layer->host, SEVERITY_INFO, "%s", call->op_name);
    *out_status = HOB_OK;
    return HOB_LAYER_PASS;
}

static const struct hob_decorator decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .layer_open = layer_open,
    .layer_close = layer_close,
    .call = layer_call,
};

static const struct hob_plugin plugin = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "acme.count",
    .version = "0.1.0",
    .open = plugin_open,
    .decorator = &decorator,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}
