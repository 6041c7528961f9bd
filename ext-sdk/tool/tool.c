/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.c - what the sub-commands of hob-sdk share.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "tool.h"

#include "os.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int tool_usage_error(const char *what, const char *name)
{
    (void)fprintf(stderr, "hob-sdk: %s%s\nTry 'hob-sdk --help'.\n", what, name);
    return TOOL_USAGE;
}

int tool_failed(hob_error *error)
{
    (void)fprintf(stderr, "%s\n",
                  error->message ? error->message : "out of memory");
    hob_error_release(error);
    return TOOL_BAD_INPUT;
}

char *tool_find(const char *const *beside, const char *compiled)
{
    const struct hob_os_ops *os = hob__os();
    char *program = NULL, *found = NULL, *slash;

    if (os->program_path(os->self, &program))
        program = NULL;
    slash = program ? strrchr(program, '/') : NULL;
    for (size_t i = 0; slash && beside[i] && !found; i++) {
        struct hob__text text = HOB__TEXT_INIT;

        hob__text_append(&text, program, (size_t)(slash + 1 - program));
        hob__text_puts(&text, beside[i]);
        found = hob__text_take(&text);
        if (found && access(found, F_OK)) {
            free(found);
            found = NULL;
        }
    }
    free(program);
    if (!found && !access(compiled, F_OK))
        found = strdup(compiled);
    return found;
}
