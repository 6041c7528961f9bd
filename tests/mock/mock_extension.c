/* SPDX-License-Identifier: Apache-2.0 */
/* An extension that keeps every rule: its op has a body. */
#include "mock.h"

static const struct hob_extension_op ops[] = {
    {
        .name = "demo.square",
        .signature = "(x: Float) -> x",
        .body = mock_body,
    },
};

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD,
    .op_count = 1,
    .ops = ops,
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
