/* SPDX-License-Identifier: Apache-2.0 */
/* Needs a higher minor than this Hob has: refused before any call. */
#include "mock.h"

static const struct hob_backend backend = {
    MOCK_BACKEND_INIT,
};

static const struct hob_plugin table = {
    .magic = HOB_PLUGIN_MAGIC,
    .struct_size = sizeof(struct hob_plugin),
    .abi_major = HOB_ABI_MAJOR,
    .abi_minor_built = HOB_ABI_MINOR + 1,
    .abi_minor_required = HOB_ABI_MINOR + 1,
    .id = "mock",
    .version = "1.0.0",
    .backend = &backend,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
