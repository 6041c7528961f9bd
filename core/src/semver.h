/* SPDX-License-Identifier: Apache-2.0 */
/*
 * semver.h - versions of plugins, as semver.org 2.0.0 defines them.
 */
#ifndef HOB__SEMVER_H
#define HOB__SEMVER_H

#include <stdbool.h>
#include <stdint.h>

/* PRERELEASE points into the parsed text and is not NUL-terminated. */
struct hob__semver {
    uint32_t major;
    uint32_t minor;
    uint32_t patch;
    const char *prerelease; /* borrowed, the text outlives it; or NULL */
    uint32_t prerelease_length;
};

/* Parse TEXT; false if it is no semantic version. */
bool hob__semver_parse(const char *text, struct hob__semver *out_version);

/* Return less than, equal to or more than 0, by semver's precedence. */
int hob__semver_compare(const struct hob__semver *a,
                        const struct hob__semver *b);

/*
 * Say whether VERSION lies in RANGE: comparisons separated by blanks, all of
 * which must hold (">=1.2 <2", "=1.0.3", "1.0.3"), or "*". Missing numbers
 * count as 0. *OUT_VALID is false if RANGE cannot be read.
 */
bool hob__semver_in_range(const struct hob__semver *version, const char *range,
                          bool *out_valid);

#endif
