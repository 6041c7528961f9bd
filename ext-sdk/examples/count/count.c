/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count.c - a decorator that counts the calls that pass through it and says the
 * sum when its layer closes, or with loud=yes each of them.
 */
#include <hob/ext/plugin.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Calls come on any thread, several at once. */
struct layer {
    atomic_ulong calls;
    int is_loud;
};

/* OPTIONS has all that the manifest declares, as {"loud":"yes"}. */
static hob_status layer_open(void *instance, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message)
{
    struct layer *layer = calloc(1, sizeof(*layer));

    (void)instance;
    (void)below;
    (void)level;
    (void)out_message; /* NULL: the status says all */
    if (!layer)
        return HOB_ERR_MEMORY;
    layer->is_loud = strstr(options, "\"loud\":\"yes\"") != NULL;
    *out_layer = layer;
    return HOB_OK;
}

static void layer_close(void *data)
{
    struct layer *layer = data;

    fprintf(stderr, "count: %lu calls\n", atomic_load(&layer->calls));
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
        fprintf(stderr, "count: %s\n", call->op_name);
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
    .decorator = &decorator,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}
