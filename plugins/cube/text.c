/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for MORE bytes and the NUL. */
static int text_grow(struct cube_text *text, uint64_t more)
{
    uint64_t room = text->room ? text->room : 16384;
    char *data;

    if (text->is_bad)
        return 0;
    if (text->bytes + more + 1 <= text->room)
        return 1;
    while (room < text->bytes + more + 1)
        room *= 2;
    data = realloc(text->data, (size_t)room);
    if (!data) {
        text->is_bad = 1;
        return 0;
    }
    text->data = data;
    text->room = room;
    return 1;
}

void cube_text_add(struct cube_text *text, const char *more)
{
    size_t bytes = strlen(more);

    if (!text_grow(text, bytes))
        return;
    memcpy(text->data + text->bytes, more, bytes + 1);
    text->bytes += bytes;
}

void cube_text_addf(struct cube_text *text, const char *format, ...)
{
    va_list args;
    int bytes;

    va_start(args, format);
    bytes = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (bytes < 0 || !text_grow(text, (uint64_t)bytes))
        return;
    va_start(args, format);
    vsnprintf(text->data + text->bytes, (size_t)bytes + 1, format, args);
    va_end(args);
    text->bytes += (uint64_t)bytes;
}
