/* SPDX-License-Identifier: Apache-2.0 */
/* Its entry takes a while, so that threads meet in it. */
#include "mock.h"

#include <time.h>

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
    const struct timespec wait = {0, 20000000};

    (void)host;
    (void)nanosleep(&wait, NULL);
    return &table;
}
