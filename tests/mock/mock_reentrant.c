/* SPDX-License-Identifier: Apache-2.0 */
/* Its entry calls back into the host, where the test's function loads it. */
#include "mock.h"

static const struct hob_backend backend = {
    MOCK_BACKEND_INIT,
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "mock",
    .version = "1.0.0",
    .backend = &backend,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    if (host && host->op_id)
        (void)host->op_id(NULL, NULL);
    return &table;
}
