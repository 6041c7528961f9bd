/* SPDX-License-Identifier: Apache-2.0 */
/* The manifest says backend, the table is an extension. */
#include "mock.h"

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD,
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "mock",
    .version = "1.0.0",
    .extension = &extension,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
