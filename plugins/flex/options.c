/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The core hands on what its own parser accepted, so this reads just enough:
 * an object of strings without escapes and of whole numbers. */
static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
        p++;
    return p;
}

/* Read a string into OUT; NULL if there is none or it does not fit. */
static const char *read_string(const char *p, char *out, size_t size)
{
    size_t length = 0;

    if (*p != '"')
        return NULL;
    for (p++; *p && *p != '"'; p++) {
        if (*p == '\\' || length + 1 >= size)
            return NULL;
        out[length++] = *p;
    }
    out[length] = '\0';
    return *p == '"' ? p + 1 : NULL;
}

/* A number, or one in quotes: the options of a device's name are texts. */
static const char *read_count(const char *p, uint64_t *out)
{
    int is_quoted = *p == '"';
    char *end = NULL;

    p += is_quoted;
    if (*p < '0' || *p > '9')
        return NULL;
    errno = 0;
    *out = strtoull(p, &end, 10);
    if (errno || *end == '.' || *end == 'e' || *end == 'E' ||
        (is_quoted && *end != '"'))
        return NULL;
    return end + is_quoted;
}

/* Which products OpenBLAS computes, if it is there. */
static const char *read_gemm(const char *p, uint32_t *out)
{
    static const char *const names[] = {"auto", "own", "openblas"};
    char name[16];
    const char *after = read_string(p, name, sizeof(name));

    for (uint32_t i = 0; after && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(names[i], name) == 0) {
            *out = i;
            return after;
        }
    return NULL;
}

static const char *read_member(const char *p, struct flex_options *options,
                               char *reason, size_t reason_size)
{
    char key[32];
    const char *after = read_string(p, key, sizeof(key));

    if (!after) {
        snprintf(reason, reason_size, "options are malformed at \"%.20s\"", p);
        return NULL;
    }
    p = skip_blanks(after);
    if (*p++ != ':') {
        snprintf(reason, reason_size, "no \":\" after option \"%s\"", key);
        return NULL;
    }
    p = skip_blanks(p);
    if (strcmp(key, "isa") == 0) {
        after = read_string(p, options->isa, sizeof(options->isa));
        if (!after)
            snprintf(reason, reason_size,
                     "option \"isa\" must be \"base\", \"v2\", \"v3\" or "
                     "\"v4\"");
    } else if (strcmp(key, "cache_bytes") == 0) {
        after = read_count(p, &options->cache_bytes);
        if (!after)
            snprintf(reason, reason_size,
                     "option \"cache_bytes\" must be a whole number of bytes");
    } else if (strcmp(key, "threads") == 0) {
        after = read_count(p, &options->threads);
        if (!after)
            snprintf(reason, reason_size,
                     "option \"threads\" must be a whole number; 0 stands for "
                     "all that the host has");
    } else if (strcmp(key, "gemm") == 0) {
        after = read_gemm(p, &options->gemm);
        if (!after)
            snprintf(reason, reason_size,
                     "option \"gemm\" must be \"auto\", \"own\" or "
                     "\"openblas\"");
    } else {
        after = NULL;
        snprintf(reason, reason_size,
                 "unknown option \"%s\"; there are \"isa\", \"gemm\", "
                 "\"threads\" and \"cache_bytes\"",
                 key);
    }
    return after;
}

int flex_options_parse(const char *text, struct flex_options *options,
                       char *reason, size_t reason_size)
{
    const char *p = skip_blanks(text);

    snprintf(reason, reason_size, "options are not a JSON object");
    if (*p++ != '{')
        return 0;
    p = skip_blanks(p);
    while (*p != '}') {
        p = read_member(p, options, reason, reason_size);
        if (!p)
            return 0;
        p = skip_blanks(p);
        if (*p == ',')
            p = skip_blanks(p + 1);
        else if (*p != '}')
            return 0;
    }
    return *skip_blanks(p + 1) == '\0';
}
