/* SPDX-License-Identifier: Apache-2.0 */
/* One of its kernels has no function. */
#include "mock.h"

static const struct hob_entry entries[] = {
    {.op = "add", .signature = "(lhs: Num, rhs: Num) -> lhs"},
};

static const struct hob_backend backend = {
    MOCK_BACKEND_INIT,
    .entries = entries,
    .entry_count = 1,
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
