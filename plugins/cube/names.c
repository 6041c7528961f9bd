/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include <string.h>

enum { HALF = CUBE_NAMES / 2 };

void cube_names_clear(struct cube_names *names)
{
    names->used = 0;
    names->text[0] = '\0';
}

void cube_names_add(struct cube_names *names, const char *name)
{
    size_t length = strlen(name);

    if (length > HALF - 3)
        length = HALF - 3;
    if (names->used + length + 3 > CUBE_NAMES) {
        names->used -= HALF;
        memmove(names->text, names->text + HALF, names->used);
    }
    if (names->used) {
        memcpy(names->text + names->used, ", ", 2);
        names->used += 2;
    }
    memcpy(names->text + names->used, name, length);
    names->used += (uint32_t)length;
    names->text[names->used] = '\0';
}
