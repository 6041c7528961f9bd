/* SPDX-License-Identifier: Apache-2.0 */
/*
 * output_end.h - the end of a tool that prints results.
 */
#ifndef HOB__OUTPUT_END_H
#define HOB__OUTPUT_END_H

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The exit code of a tool called WHO that would end with CODE: FAILED if not
 * all of its standard output arrived, as on a full disk, which is told. */
static inline int hob__output_end(const char *who, int code, int failed)
{
    int is_lost = ferror(stdout);

    errno = 0;
    is_lost |= fflush(stdout) != 0;
    if (!is_lost)
        return code;
    fprintf(stderr, "%s: cannot write all of the output%s%s\n", who,
            errno ? ": " : "", errno ? strerror(errno) : "");
    return code ? code : failed;
}

#endif
