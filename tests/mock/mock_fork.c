/* SPDX-License-Identifier: Apache-2.0 */
/* A backend that works in a forked child. */
#include "mock.h"

static void after_fork_child(void *instance)
{
    (void)instance;
}

static const struct hob_backend backend = {
    MOCK_BACKEND_INIT,
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD, .id = "mock",
    .version = "1.0.0",   .after_fork_child = after_fork_child,
    .backend = &backend,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
