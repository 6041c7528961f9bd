/* SPDX-License-Identifier: Apache-2.0 */
/*
 * panic.c - the one place where Hob prints and aborts, if the policy says so.
 */
#include "runtime.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static char *diagnostic(const struct hob__failure *failure)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);

    if (!stream)
        return NULL;
    if (failure->op)
        fprintf(stream, "%s (call %" PRIu64 "): %s", failure->op, failure->call,
                failure->message);
    else
        fprintf(stream, "%s", failure->message);
    if (fclose(stream)) {
        free(text);
        return NULL;
    }
    return text;
}

void hob__panic(hob_runtime *runtime, const struct hob__failure *failure)
{
    char *text = diagnostic(failure);
    const char *message = text ? text : failure->message;

    if (runtime->on_panic)
        runtime->on_panic(runtime->on_panic_context, failure->status,
                          failure->op, message);
    else if (runtime->policy == HOB_POLICY_PANIC)
        fprintf(stderr, "hob: panic: %s\n", message);
    free(text);
    if (runtime->policy == HOB_POLICY_PANIC)
        abort();
}
