/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of a device; README.md documents them. */
#ifndef CVK_OPTIONS_H
#define CVK_OPTIONS_H

#include <cube/options.h>

struct cvk_options {
    char cache_dir[CUBE_PATH]; /* of compiled kernels; "": the usual place */
    uint32_t cache_limit;      /* of all of them, in MiB; 0: none */
    char dump_dir[CUBE_PATH];  /* for texts of kernels; "": none are written */
    uint32_t is_validating;    /* with the Khronos validation layer */
};

#endif
