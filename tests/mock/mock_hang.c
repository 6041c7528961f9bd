/* SPDX-License-Identifier: Apache-2.0 */
/* Its entry never returns; never called in the tests' own process. */
#include "mock.h"

#include <unistd.h>

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    for (;;)
        (void)pause();
}
