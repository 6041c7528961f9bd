/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where it reads, and where it says why it cannot. */
struct reader {
    const char *at;
    char *reason;
    size_t reason_size;
};

static void skip_blanks(struct reader *reader)
{
    reader->at += strspn(reader->at, " \t\r\n");
}

/* Read a string into OUT; 0 if there is none or it does not fit. Of escapes
 * only those of a path are known: quote, slash, backslash. */
static int read_string(struct reader *reader, char *out, size_t size)
{
    const char *p = reader->at;
    size_t length = 0;

    if (*p != '"')
        return 0;
    for (p++; *p && *p != '"'; p++) {
        if (*p == '\\' && p[1] != '"' && p[1] != '\\' && p[1] != '/')
            return 0;
        p += *p == '\\';
        if (length + 1 >= size)
            return 0;
        out[length++] = *p;
    }
    out[length] = '\0';
    if (*p != '"')
        return 0;
    reader->at = p + 1;
    return 1;
}

/* Kernels are written there: a relative path would depend on the program's
 * folder. */
static int read_folder(struct reader *reader, const struct cube_option *option)
{
    char *out = option->value;

    if (read_string(reader, out, CUBE_PATH) && (out[0] == '/' || !out[0]))
        return 1;
    snprintf(reader->reason, reader->reason_size,
             "option \"%s\" must be the absolute path of a folder",
             option->name);
    return 0;
}

static int read_number(struct reader *reader, const struct cube_option *option)
{
    uint32_t *out = option->value;
    char digits[10];

    if (read_string(reader, digits, sizeof(digits)) && digits[0] &&
        strspn(digits, "0123456789") == strlen(digits)) {
        *out = (uint32_t)strtoul(digits, NULL, 10);
        return 1;
    }
    snprintf(reader->reason, reader->reason_size,
             "option \"%s\" must be a number of at most 9 digits",
             option->name);
    return 0;
}

static int read_truth(struct reader *reader, const struct cube_option *option)
{
    uint32_t *out = option->value;
    char word[8];

    if (read_string(reader, word, sizeof(word)) &&
        (!strcmp(word, "yes") || !strcmp(word, "no"))) {
        *out = word[0] == 'y';
        return 1;
    }
    snprintf(reader->reason, reader->reason_size,
             "option \"%s\" must be \"yes\" or \"no\"", option->name);
    return 0;
}

static int unknown(struct reader *reader, const char *name,
                   const struct cube_option *options, uint32_t count)
{
    size_t used;

    snprintf(reader->reason, reader->reason_size,
             "unknown option \"%s\"; there are", name);
    for (uint32_t i = 0; i < count; i++) {
        used = strlen(reader->reason);
        snprintf(reader->reason + used, reader->reason_size - used,
                 "%s \"%s\"", i ? "," : "", options[i].name);
    }
    return 0;
}

static int read_value(struct reader *reader, const struct cube_option *option)
{
    switch (option->kind) {
    case CUBE_OPTION_FOLDER:
        return read_folder(reader, option);
    case CUBE_OPTION_NUMBER:
        return read_number(reader, option);
    default:
        return read_truth(reader, option);
    }
}

static int read_member(struct reader *reader, const struct cube_option *options,
                       uint32_t count)
{
    char name[32];

    if (!read_string(reader, name, sizeof(name))) {
        snprintf(reader->reason, reader->reason_size,
                 "options are malformed at \"%.20s\"", reader->at);
        return 0;
    }
    skip_blanks(reader);
    if (*reader->at != ':') {
        snprintf(reader->reason, reader->reason_size,
                 "no \":\" after option \"%s\"", name);
        return 0;
    }
    reader->at++;
    skip_blanks(reader);
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(name, options[i].name))
            return read_value(reader, &options[i]);
    return unknown(reader, name, options, count);
}

int cube_options_parse(const char *text, const struct cube_option *options,
                       uint32_t count, char *reason, size_t reason_size)
{
    struct reader reader = {text, reason, reason_size};

    snprintf(reason, reason_size, "options are not a JSON object");
    skip_blanks(&reader);
    if (*reader.at++ != '{')
        return 0;
    skip_blanks(&reader);
    while (*reader.at != '}') {
        if (!read_member(&reader, options, count))
            return 0;
        skip_blanks(&reader);
        if (*reader.at == ',')
            reader.at++;
        else if (*reader.at != '}')
            return 0;
        skip_blanks(&reader);
    }
    reader.at++;
    skip_blanks(&reader);
    return !*reader.at;
}
