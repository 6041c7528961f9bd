/* SPDX-License-Identifier: Apache-2.0 */
/* Its table has a part that has to be understood, after one that has not. */
#include "mock.h"

static const struct hob_backend backend = {
    MOCK_BACKEND_INIT,
};

static const struct hob_plugin_part must = {
    .struct_size = sizeof(struct hob_plugin_part),
    .flags = HOB_PART_MUST,
    .name = "acme.quantum",
};

static const struct hob_plugin_part may = {
    .struct_size = sizeof(struct hob_plugin_part),
    .name = "acme.profiler",
    .next = &must,
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
