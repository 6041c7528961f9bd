/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of a device, from JSON. */
#ifndef CVK_OPTIONS_H
#define CVK_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

enum { CVK_PATH = 1024 };

struct cvk_options {
    char cache_dir[CVK_PATH]; /* of compiled kernels; "": the usual place */
    char dump_dir[CVK_PATH];  /* for texts of kernels; "": none are written */
    uint32_t is_validating;   /* with the Khronos validation layer */
};

/* Read TEXT, a flat JSON object, over the defaults in OPTIONS. Returns 0 and
 * says why in REASON where it is malformed or a key is unknown. */
int cvk_options_parse(const char *text, struct cvk_options *options,
                      char *reason, size_t reason_size);

#endif
