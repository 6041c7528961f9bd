/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h - what became of a candidate (REP-1).
 *
 * A record is immutable. A change of state is a new record.
 */
#ifndef HOB__RECORD_H
#define HOB__RECORD_H

#include "reasons.h"
#include "text.h"

#include <stdint.h>

enum hob__state {
    HOB__STATE_DISCOVERED,     /* readable, chosen, not opened yet */
    HOB__STATE_SHADOWED,       /* an earlier one has its id */
    HOB__STATE_DISABLED,       /* config or environment say no */
    HOB__STATE_SKIPPED,        /* for another platform */
    HOB__STATE_NOT_APPLICABLE, /* what it needs is not on this machine */
    HOB__STATE_REFUSED,        /* it breaks a rule */
    HOB__STATE_LOADED,
    HOB__STATE_FAILED_INIT, /* loaded, but its own start failed */
    HOB__STATE_COUNT_
};

/* The numbers are those of the DISC rules; MISSED is no rule. */
enum hob__rule {
    HOB__RULE_NONE = 0,
    HOB__RULE_APPLICATION = 1,
    HOB__RULE_PLUGIN_PATH = 2,
    HOB__RULE_ADD_PLUGIN_PATH = 3,
    HOB__RULE_CORE = 4,
    HOB__RULE_USER_CONFIG = 5,
    HOB__RULE_SYSTEM_CONFIG = 6,
    HOB__RULE_USER_DATA = 7,
    HOB__RULE_SYSTEM_DATA = 8
};

/* All strings are borrowed from the loader. */
struct hob__record {
    const char *id;        /* or NULL: the manifest could not be read */
    const char *path;      /* of the manifest, as found */
    const char *real_path; /* after realpath */
    const char *library;   /* or NULL: not chosen yet */
    enum hob__rule rule;
    enum hob__state state;
    enum hob__reason reason;
    const char *detail; /* path, errno, dlerror, line:column; or NULL */
    const char *hint;   /* never NULL, may be "" */
    uint64_t time_ns;   /* since the epoch, when the record was made */
};

/* Return the state as users see it: "NOT_APPLICABLE". Never NULL. */
const char *hob__state_name(enum hob__state state);

/* Return "DISC-4", or "-" for none. Never NULL. */
const char *hob__rule_name(enum hob__rule rule);

/* Append RECORD in one line: id, state, reason, text, detail, path, hint. */
void hob__record_format(const struct hob__record *record,
                        struct hob__text *text);

#endif
