/* SPDX-License-Identifier: Apache-2.0 */
/* Another table each time. */
#define MUTANT_ENTRY 1
#include "mutant_table.h"

static struct hob_plugin tables[2];

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    static int calls;
    struct hob_plugin *mine = &tables[calls++ % 2];

    (void)host;
    *mine = table;
    return mine;
}
