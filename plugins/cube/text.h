/* SPDX-License-Identifier: Apache-2.0 */
/* text.h - text that grows as it is written. */
#ifndef CUBE_TEXT_H
#define CUBE_TEXT_H

#include <hob/common.h>

#include <stdint.h>

struct cube_text {
    char *data; /* NUL-terminated; NULL at first */
    uint64_t bytes;
    uint64_t room;
    int is_bad; /* there was no memory: what was written is of no use */
};

void cube_text_add(struct cube_text *text, const char *more);
void cube_text_addf(struct cube_text *text, const char *format, ...)
    HOB_PRINTF(2, 3);

#endif
