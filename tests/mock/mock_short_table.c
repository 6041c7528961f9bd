/* SPDX-License-Identifier: Apache-2.0 */
/* Its table ends before the first version does. */
#include "mock.h"

static const struct hob_backend backend = {
    MOCK_BACKEND_INIT,
};

static const struct hob_plugin table = {
    .magic = HOB_PLUGIN_MAGIC,
    .struct_size = 24,
    .abi_major = HOB_ABI_MAJOR,
    .abi_minor_built = HOB_ABI_MINOR,
    .abi_minor_required = HOB_ABI_MINOR,
    .id = "mock",
    .version = "1.0.0",
    .backend = &backend,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
