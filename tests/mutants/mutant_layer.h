/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mutant_layer.h - the table of a decorator; each mutant writes layer_call().
 */
#ifndef HOB_TEST_MUTANT_LAYER_H
#define HOB_TEST_MUTANT_LAYER_H

#include <hob/ext/plugin.h>

#include <stdlib.h>
#include <string.h>

static int32_t layer_call(void *layer, struct hob_call *call,
                          const struct hob_op_impl *impl,
                          hob_status *out_status);

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
    .call = layer_call,
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "mutant",
    .version = "1.0.0",
    .decorator = &decorator,
};

HOB_EXPORT const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}

#endif
