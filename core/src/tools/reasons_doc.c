/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reasons_doc.c - prints docs/reasons.md from reasons.def (REP-4).
 *
 *   cc -I.. reasons_doc.c ../reasons.c && ./a.out > docs/reasons.md
 */
#include "reasons.h"

#include <stdio.h>

int main(void)
{
    int i;

    printf("# Reason codes\n\n"
           "Made from `core/src/reasons.def`; do not edit.\n\n"
           "Every candidate file ends in one recorded state with one of these "
           "codes; so does every\nplace that was searched. `hob plugins` and "
           "`hob why ID` show them.\n\n"
           "| code | severity | meaning | what to do |\n|---|---|---|---|\n");
    for (i = 0; i < HOB__REASON_COUNT_; i++) {
        enum hob__reason reason = (enum hob__reason)i;

        printf("| `%s` | %s | %s | %s |\n", hob__reason_name(reason),
               hob__severity_name(hob__reason_severity(reason)),
               hob__reason_text(reason), hob__reason_hint(reason));
    }
    return 0;
}
