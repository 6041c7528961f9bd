/* SPDX-License-Identifier: Apache-2.0 */
/* options.h - the options of a device; the manifest documents them. */
#ifndef CCU_OPTIONS_H
#define CCU_OPTIONS_H

#include <cube/options.h>

struct ccu_options {
    char nvrtc_dir[CUBE_PATH]; /* where NVRTC lies; "": where it usually does */
    uint32_t is_blocking;      /* each launch is waited for */
};

#endif
