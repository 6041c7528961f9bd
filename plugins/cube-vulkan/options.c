/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <stdio.h>
#include <string.h>

/* The core hands on what its own parser accepted, so this reads just enough:
 * an object of strings. */
static const char *skip_blanks(const char *p)
{
    while (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r')
        p++;
    return p;
}

/* Read a string into OUT; NULL if there is none or it does not fit. Of escapes
 * only those of a path are known: quote, slash, backslash. */
static const char *read_string(const char *p, char *out, size_t size)
{
    size_t length = 0;

    if (*p != '"')
        return NULL;
    for (p++; *p && *p != '"'; p++) {
        if (*p == '\\' && p[1] != '"' && p[1] != '\\' && p[1] != '/')
            return NULL;
        p += *p == '\\';
        if (length + 1 >= size)
            return NULL;
        out[length++] = *p;
    }
    out[length] = '\0';
    return *p == '"' ? p + 1 : NULL;
}

/* Kernels are written there: a relative path would depend on the program's
 * folder. */
static const char *read_folder(const char *p, const char *key, char *out,
                               char *reason, size_t reason_size)
{
    const char *after = read_string(p, out, CVK_PATH);

    if (after && (out[0] == '/' || out[0] == '\0'))
        return after;
    snprintf(reason, reason_size,
             "option \"%s\" must be the absolute path of a folder", key);
    return NULL;
}

static const char *read_truth(const char *p, const char *key, uint32_t *out,
                              char *reason, size_t reason_size)
{
    char word[8];
    const char *after = read_string(p, word, sizeof(word));

    if (after && (!strcmp(word, "yes") || !strcmp(word, "no"))) {
        *out = word[0] == 'y';
        return after;
    }
    snprintf(reason, reason_size, "option \"%s\" must be \"yes\" or \"no\"",
             key);
    return NULL;
}

static const char *read_value(const char *p, const char *key,
                              struct cvk_options *options, char *reason,
                              size_t reason_size)
{
    if (strcmp(key, "cache_dir") == 0)
        return read_folder(p, key, options->cache_dir, reason, reason_size);
    if (strcmp(key, "dump_dir") == 0)
        return read_folder(p, key, options->dump_dir, reason, reason_size);
    if (strcmp(key, "validation") == 0)
        return read_truth(p, key, &options->is_validating, reason, reason_size);
    snprintf(reason, reason_size,
             "unknown option \"%s\"; there are \"cache_dir\", \"dump_dir\" and "
             "\"validation\"",
             key);
    return NULL;
}

static const char *read_member(const char *p, struct cvk_options *options,
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
    return read_value(skip_blanks(p), key, options, reason, reason_size);
}

int cvk_options_parse(const char *text, struct cvk_options *options,
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
