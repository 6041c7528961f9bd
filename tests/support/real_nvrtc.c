/* SPDX-License-Identifier: Apache-2.0 */
#include "real_nvrtc.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * NVRTC opens its builtins by their name alone, and has no RUNPATH: a copy in a
 * folder of its own, as a wheel has, finds them only if they are there already.
 */
static void open_builtins(const char *nvrtc)
{
    const char *slash = strrchr(nvrtc, '/');
    char pattern[4096];
    glob_t found;

    if (!slash ||
        snprintf(pattern, sizeof(pattern), "%.*s/libnvrtc-builtins.so.*",
                 (int)(slash - nvrtc), nvrtc) >= (int)sizeof(pattern))
        return;
    if (!glob(pattern, 0, NULL, &found)) {
        for (size_t i = 0; i < found.gl_pathc; i++)
            (void)dlopen(found.gl_pathv[i], RTLD_NOW);
        globfree(&found);
    }
}

void *real_nvrtc_open(void)
{
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                        "libnvrtc.so"};
    const char *own = getenv("HOB_TEST_NVRTC");
    void *library = own ? dlopen(own, RTLD_NOW) : NULL;

    if (library)
        open_builtins(own);
    for (int i = 0; i < 3 && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    return library;
}
