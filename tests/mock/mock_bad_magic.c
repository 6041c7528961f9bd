/* SPDX-License-Identifier: Apache-2.0 */
/* Its table does not begin with the magic number. */
#include "mock.h"

static const struct hob_backend backend = {
    MOCK_BACKEND_INIT,
};

static const struct hob_plugin table = {
    .magic = UINT64_C(0x1234),
    .struct_size = sizeof(struct hob_plugin),
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
