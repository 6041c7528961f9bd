/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_check.c - hob-sdk check: hand over to hob-sdk-check.
 *
 * The checker opens plugins, so it needs libhob, which this program must not
 * link: it runs while libhob is built.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "tool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef HOB_LIBEXECDIR
#define HOB_LIBEXECDIR "/usr/libexec/hob"
#endif

int tool_check(int argc, char **argv)
{
    /* The first two are for build trees. */
    static const char *const beside[] = {"hob-sdk-check", "check/hob-sdk-check",
                                         "../libexec/hob/hob-sdk-check", NULL};
    static const char compiled[] = HOB_LIBEXECDIR "/hob-sdk-check";
    char *program = tool_find(beside, compiled), **args;

    if (!program) {
        (void)fprintf(stderr,
                      "hob-sdk: hob-sdk-check is not installed: neither beside "
                      "this program, nor in ../libexec/hob, nor %s\n",
                      compiled);
        return TOOL_BAD_INPUT;
    }
    args = calloc((size_t)argc + 2, sizeof(*args));
    if (args) {
        args[0] = program;
        if (argc)
            memcpy(args + 1, argv, (size_t)argc * sizeof(*args));
        (void)execv(program, args);
    }
    (void)fprintf(stderr, "hob-sdk: %s: %s\n", program, strerror(errno));
    free(args);
    free(program);
    return TOOL_BAD_INPUT;
}
