/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - the ops that a device was asked for last, for the message if it is
 * lost. Each launch adds one, so nothing is formatted.
 */
#ifndef CUBE_NAMES_H
#define CUBE_NAMES_H

#include <stdint.h>

enum { CUBE_NAMES = 256 };

struct cube_names {
    uint32_t used;
    char text[CUBE_NAMES]; /* "add, mul", with a zero after USED bytes */
};

void cube_names_clear(struct cube_names *names);
/* The newest matter most: where there is no room the oldest are dropped. */
void cube_names_add(struct cube_names *names, const char *name);

#endif
