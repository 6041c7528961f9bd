/* SPDX-License-Identifier: Apache-2.0 */
#include "reasons.h"

#include <stddef.h>

static const struct reason {
    const char *name;
    const char *text;
    const char *hint;
    enum hob__severity severity;
} reasons[] = {
#define HOB__REASON(code, level, what, todo)                                   \
    {#code, what, todo, HOB__SEVERITY_##level},
#include "reasons.def"
#undef HOB__REASON
};

static const struct reason *find(enum hob__reason reason)
{
    static const struct reason unknown = {"UNKNOWN", "no such reason code", "",
                                          HOB__SEVERITY_ERROR};

    return (unsigned)reason < HOB__REASON_COUNT_ ? &reasons[reason] : &unknown;
}

const char *hob__reason_name(enum hob__reason reason)
{
    return find(reason)->name;
}

const char *hob__reason_text(enum hob__reason reason)
{
    return find(reason)->text;
}

const char *hob__reason_hint(enum hob__reason reason)
{
    return find(reason)->hint;
}

enum hob__severity hob__reason_severity(enum hob__reason reason)
{
    return find(reason)->severity;
}

const char *hob__severity_name(enum hob__severity severity)
{
    static const char *const names[] = {"debug", "info", "warn", "error"};

    return (unsigned)severity < sizeof(names) / sizeof(names[0])
               ? names[severity]
               : "error";
}
