/* SPDX-License-Identifier: Apache-2.0 */
/* Its entry returns no table. */
#include "mock.h"

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return NULL;
}
