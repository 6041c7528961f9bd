/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <hob/ext/options.h>

#include <stdio.h>
#include <string.h>

/* Kernels are written there: a relative path would depend on the program's
 * folder. */
static int read_folder(const struct hob_option *given, char *out)
{
    return hob_option_text(given, out, CUBE_PATH) && (out[0] == '/' || !out[0]);
}

static int read_number(const struct hob_option *given, uint32_t *out)
{
    uint64_t number;

    if (!hob_option_count(given, 999999999, &number))
        return 0;
    *out = (uint32_t)number;
    return 1;
}

static int read_truth(const struct hob_option *given, uint32_t *out)
{
    *out = (uint32_t)hob_option_is(given, "yes");
    return *out || hob_option_is(given, "no");
}

/* GIVEN to OPTION's value; 0, and in *OUT_WANTED what it must be. */
static int read_value(const struct hob_option *given,
                      const struct cube_option *option, const char **out_wanted)
{
    switch (option->kind) {
    case CUBE_OPTION_FOLDER:
        *out_wanted = "the absolute path of a folder";
        return read_folder(given, option->value);
    case CUBE_OPTION_NUMBER:
        *out_wanted = "a number of at most 9 digits";
        return read_number(given, option->value);
    default:
        *out_wanted = "\"yes\" or \"no\"";
        return read_truth(given, option->value);
    }
}

static void tell_unknown(const struct hob_option *given,
                         const struct cube_option *options, uint32_t count,
                         char *reason, size_t reason_size)
{
    snprintf(reason, reason_size, "unknown option \"%.*s\"; there are",
             (int)given->name_size, given->name);
    for (uint32_t i = 0; i < count; i++) {
        const size_t used = strlen(reason);

        snprintf(reason + used, reason_size - used, "%s \"%s\"", i ? "," : "",
                 options[i].name);
    }
}

static int read_option(const struct hob_option *given,
                       const struct cube_option *options, uint32_t count,
                       char *reason, size_t reason_size)
{
    const char *wanted;

    for (uint32_t i = 0; i < count; i++) {
        if (!hob_option_is_named(given, options[i].name))
            continue;
        if (read_value(given, &options[i], &wanted))
            return 1;
        snprintf(reason, reason_size, "option \"%s\" must be %s",
                 options[i].name, wanted);
        return 0;
    }
    tell_unknown(given, options, count, reason, reason_size);
    return 0;
}

int cube_options_parse(const char *text, const struct cube_option *options,
                       uint32_t count, char *reason, size_t reason_size)
{
    struct hob_options all = hob_options_of(text);
    struct hob_option given;

    while (hob_option_next(&all, &given))
        if (!read_option(&given, options, count, reason, reason_size))
            return 0;
    if (all.problem[0])
        snprintf(reason, reason_size, "%s", all.problem);
    return !all.problem[0];
}
