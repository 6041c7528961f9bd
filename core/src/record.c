/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "record.h"

#include <string.h>

const char *hob__state_name(enum hob__state state)
{
    static const char *const names[HOB__STATE_COUNT_] = {
        [HOB__STATE_DISCOVERED] = "DISCOVERED",
        [HOB__STATE_SHADOWED] = "SHADOWED",
        [HOB__STATE_DISABLED] = "DISABLED",
        [HOB__STATE_SKIPPED] = "SKIPPED",
        [HOB__STATE_NOT_APPLICABLE] = "NOT_APPLICABLE",
        [HOB__STATE_REFUSED] = "REFUSED",
        [HOB__STATE_LOADED] = "LOADED",
        [HOB__STATE_FAILED_INIT] = "FAILED_INIT",
    };

    return (unsigned)state < HOB__STATE_COUNT_ ? names[state] : "UNKNOWN";
}

const char *hob__rule_name(enum hob__rule rule)
{
    static const char *const names[] = {"-",      "DISC-1", "DISC-2",
                                        "DISC-3", "DISC-4", "DISC-5",
                                        "DISC-6", "DISC-7", "DISC-8"};

    return (unsigned)rule < sizeof(names) / sizeof(names[0]) ? names[rule]
                                                             : "-";
}

void hob__record_format(const struct hob__record *record,
                        struct hob__text *text)
{
    hob__text_printf(text, "%s: %s", record->id ? record->id : record->path,
                     hob__state_name(record->state));
    if (record->reason != HOB__REASON_OK) {
        const char *reason = hob__reason_name(record->reason);

        /* Some states have one reason only, of the same name. */
        if (strcmp(reason, hob__state_name(record->state)) != 0)
            hob__text_printf(text, " %s", reason);
        hob__text_printf(text, ": %s", hob__reason_text(record->reason));
    }
    if (record->detail)
        hob__text_printf(text, ": %s", record->detail);
    hob__text_printf(text, " [%s, %s]", record->path,
                     hob__rule_name(record->rule));
    if (*record->hint)
        hob__text_printf(text, " %s", record->hint);
}
