/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a member that a newer host table would have. */
#define MUTANT_ENTRY 1
#include "mutant_table.h"

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    const volatile uint64_t *words =
        (const volatile uint64_t *)(const void *)host;

    return words[sizeof(*host) / sizeof(*words) + 1] == 42 ? NULL : &table;
}
