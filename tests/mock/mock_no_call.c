/* SPDX-License-Identifier: Apache-2.0 */
/* Its decorator lacks a required member. */
#include "mock.h"

static hob_status layer_open(void *instance, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message)
{
    (void)instance;
    (void)below;
    (void)level;
    (void)options;
    (void)out_message;
    *out_layer = NULL;
    return HOB_OK;
}

static void layer_close(void *layer)
{
    (void)layer;
}

static const struct hob_decorator decorator = {
    .struct_size = sizeof(struct hob_decorator),
    .layer_open = layer_open,
    .layer_close = layer_close,
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "mock",
    .version = "1.0.0",
    .decorator = &decorator,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
