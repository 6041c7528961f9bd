/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char driver_library[] = "libcuda.so.1";

/* One name a major version of the toolkit, newest first. */
static const char *const nvrtc_libraries[] = {
    "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
enum { NVRTC_LIBRARIES = sizeof(nvrtc_libraries) / sizeof(nvrtc_libraries[0]) };

static ccu_any_fn find_in(void *library, ccu_find_fn find, const char *name)
{
    ccu_any_fn function = NULL;
    void *symbol;

    if (find)
        return find(name);
    symbol = dlsym(library, name);
    memcpy(&function, &symbol, sizeof(function)); /* as POSIX has it */
    return function;
}

int ccu_driver_open(struct ccu_driver *out, ccu_find_fn find,
                    char reason[CCU_REASON])
{
    void *library = find ? NULL : dlopen(driver_library, RTLD_NOW | RTLD_LOCAL);

    memset(out, 0, sizeof(*out));
    if (!find && !library) {
        snprintf(reason, CCU_REASON,
                 "%s cannot be opened (%s); it belongs to NVIDIA's driver: "
                 "install that (on Debian: libcuda1 and nvidia-driver)",
                 driver_library, dlerror());
        return 0;
    }
#define CCU_DRIVER(member, name, parameters)                                   \
    out->member = (int(*) parameters)find_in(library, find, #name);            \
    if (!out->member) {                                                        \
        snprintf(reason, CCU_REASON,                                           \
                 "NVIDIA's driver lacks %s; it must be of version 450 "        \
                 "(CUDA 11.2) or later",                                       \
                 #name);                                                       \
        return 0;                                                              \
    }
#include "symbols.def"
    return 1;
}

/* Try all names of the library in FOLDER, or as the system finds them. */
static void *open_nvrtc_in(const char *folder)
{
    char path[PATH_MAX];
    void *library = NULL;

    for (int i = 0; i < NVRTC_LIBRARIES && !library; i++) {
        const int length =
            snprintf(path, sizeof(path), "%s%s%s", folder,
                     folder[0] ? "/" : "", nvrtc_libraries[i]);

        if (length > 0 && (size_t)length < sizeof(path))
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return library;
}

/* FOLDER alone if it is given: who asks for one version gets no other. */
static void *open_nvrtc(const char *folder)
{
    void *library = open_nvrtc_in(folder);

    if (!library && !folder[0])
        library = open_nvrtc_in("/usr/local/cuda/lib64");
    return library;
}

int ccu_nvrtc_open(struct ccu_nvrtc *out, ccu_find_fn find, const char *folder,
                   char reason[CCU_REASON])
{
    void *library = find ? NULL : open_nvrtc(folder);

    memset(out, 0, sizeof(*out));
    if (!find && !library) {
        snprintf(reason, CCU_REASON,
                 "the compiler of kernels, %s, is not %s%s; install the CUDA "
                 "toolkit's NVRTC, or say where it is with the option "
                 "\"nvrtc_dir\"",
                 nvrtc_libraries[0], folder[0] ? "in " : "found",
                 folder);
        return 0;
    }
#define CCU_NVRTC(member, name, parameters)                                    \
    out->member = (int(*) parameters)find_in(library, find, #name);            \
    if (!out->member) {                                                        \
        snprintf(reason, CCU_REASON,                                           \
                 "NVRTC lacks %s; it must be of CUDA 11.2 or later", #name);   \
        return 0;                                                              \
    }
#include "symbols.def"
    return 1;
}

void ccu_result_text(const struct ccu_driver *driver, int result, char *out,
                     size_t size)
{
    const char *name = NULL, *text = NULL;

    if (driver->error_name(result, &name))
        name = NULL;
    if (driver->error_text(result, &text))
        text = NULL;
    if (name)
        snprintf(out, size, "%s%s%s", name, text ? ": " : "", text ? text : "");
    else
        snprintf(out, size, "error %d of CUDA", result);
}
