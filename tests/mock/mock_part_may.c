/* SPDX-License-Identifier: Apache-2.0 */
/* Its table has a part that nobody has to know. */
#include "mock.h"

static const struct hob_backend backend = {
    MOCK_BACKEND_INIT,
};

static const struct hob_plugin_part may = {
    .struct_size = sizeof(struct hob_plugin_part),
    .name = "acme.profiler",
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD, .id = "mock",  .version = "1.0.0",
    .backend = &backend,  .parts = &may,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
