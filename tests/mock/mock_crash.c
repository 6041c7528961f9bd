/* SPDX-License-Identifier: Apache-2.0 */
/* Its entry crashes; never called in the tests' own process. */
#include "mock.h"

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    abort();
}
