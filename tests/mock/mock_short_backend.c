/* SPDX-License-Identifier: Apache-2.0 */
/* Its backend table ends before the first version does. */
#include "mock.h"

static const struct hob_backend backend = {
    .struct_size = 16,
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "mock",
    .version = "1.0.0",
    .backend = &backend,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
