/* SPDX-License-Identifier: Apache-2.0 */
/*
 * findings.h - what hob doctor has to say, line by line.
 */
#ifndef TOOLS_DOCTOR_FINDINGS_H
#define TOOLS_DOCTOR_FINDINGS_H

#include <hob/common.h>

#include <cjson/cJSON.h>

enum standing {
    FINE,
    NOTE,   /* it works, but not as it could, or not as one might think */
    PROBLEM /* something that is there cannot be used */
};

struct findings {
    cJSON *list; /* owned: {"standing", "about", "found", "do"} each */
    uint32_t problem_count;
};

void findings_init(struct findings *findings);
void findings_release(struct findings *findings);

/* Add that ABOUT is as FORMAT says; ADVICE, what to do, may be NULL. */
void findings_add(struct findings *findings, enum standing standing,
                  const char *about, const char *advice, const char *format,
                  ...) HOB_PRINTF(5, 6);

/* Print them for people, advice on lines of its own. */
void findings_print(const struct findings *findings);

#endif
