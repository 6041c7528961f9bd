/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include <hob/ext/options.h>

#include <stdio.h>

/* Which products OpenBLAS computes, if it is there. */
static int read_gemm(const struct hob_option *option, uint32_t *out)
{
    static const char *const names[] = {"auto", "own", "openblas"};

    for (uint32_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (hob_option_is(option, names[i])) {
            *out = i;
            return 1;
        }
    return 0;
}

/* Take OPTION; 0 if it must be something else, then REASON says what. */
static int read_option(const struct hob_option *option,
                       struct flex_options *options, char *reason,
                       size_t reason_size)
{
    const char *wanted;
    int is_good;

    if (hob_option_is_named(option, "isa")) {
        is_good = hob_option_text(option, options->isa, sizeof(options->isa));
        wanted = "\"base\", \"v2\", \"v3\" or \"v4\"";
    } else if (hob_option_is_named(option, "cache_bytes")) {
        is_good = hob_option_count(option, UINT64_MAX, &options->cache_bytes);
        wanted = "a whole number of bytes";
    } else if (hob_option_is_named(option, "threads")) {
        is_good = hob_option_count(option, UINT64_MAX, &options->threads);
        wanted = "a whole number; 0 stands for all that the host has";
    } else if (hob_option_is_named(option, "gemm")) {
        is_good = read_gemm(option, &options->gemm);
        wanted = "\"auto\", \"own\" or \"openblas\"";
    } else {
        snprintf(reason, reason_size,
                 "unknown option \"%.*s\"; there are \"isa\", \"gemm\", "
                 "\"threads\" and \"cache_bytes\"",
                 (int)option->name_size, option->name);
        return 0;
    }
    if (!is_good)
        snprintf(reason, reason_size, "option \"%.*s\" must be %s",
                 (int)option->name_size, option->name, wanted);
    return is_good;
}

int flex_options_parse(const char *text, struct flex_options *options,
                       char *reason, size_t reason_size)
{
    struct hob_options all = hob_options_of(text);
    struct hob_option option;

    while (hob_option_next(&all, &option))
        if (!read_option(&option, options, reason, reason_size))
            return 0;
    if (all.problem[0])
        snprintf(reason, reason_size, "%s", all.problem);
    return !all.problem[0];
}
