/* SPDX-License-Identifier: Apache-2.0 */
/*
 * options.h - the options of a runtime's device, from JSON.
 *
 * The core has parsed what the program wrote, so this reads just enough: a
 * flat object of strings. It is here that names and values are checked.
 */
#ifndef CUBE_OPTIONS_H
#define CUBE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

enum { CUBE_PATH = 1024 };

enum cube_option_kind {
    CUBE_OPTION_FOLDER, /* char[CUBE_PATH]: an absolute path, or "" */
    CUBE_OPTION_NUMBER, /* uint32_t: a decimal number, as text */
    CUBE_OPTION_TRUTH   /* uint32_t: "yes" or "no" */
};

/* One option that there is. */
struct cube_option {
    const char *name;
    uint32_t kind; /* enum cube_option_kind */
    void *value;   /* set where TEXT has it */
};

/* Read TEXT into the values of COUNT options. Returns 0 and says why in REASON
 * where it is malformed or a name is unknown. */
int cube_options_parse(const char *text, const struct cube_option *options,
                       uint32_t count, char *reason, size_t reason_size);

#endif
