/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reasons.h - why a candidate is where it is.
 *
 * The codes, their severity, text and hint stand in reasons.def, once. The
 * enum, the lookups here and docs/reasons.md are generated from it.
 */
#ifndef HOB__REASONS_H
#define HOB__REASONS_H

enum hob__severity {
    HOB__SEVERITY_DEBUG,
    HOB__SEVERITY_INFO,
    HOB__SEVERITY_WARN,
    HOB__SEVERITY_ERROR
};

enum hob__reason {
#define HOB__REASON(code, severity, text, hint) HOB__REASON_##code,
#include "reasons.def"
#undef HOB__REASON
    HOB__REASON_COUNT_
};

/* Return the code as users see it: "NOT_REGULAR". Never NULL. */
const char *hob__reason_name(enum hob__reason reason);

/* Return one sentence: what the code means. Never NULL. */
const char *hob__reason_text(enum hob__reason reason);

/* Return one sentence: what to do about it; "" where there is nothing. */
const char *hob__reason_hint(enum hob__reason reason);

enum hob__severity hob__reason_severity(enum hob__reason reason);

/* Return "debug", "info", "warn" or "error". */
const char *hob__severity_name(enum hob__severity severity);

#endif
