/* SPDX-License-Identifier: Apache-2.0 */
#include "driver.h"

#include "blas.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char driver_library[] = "libcuda.so.1";

/* A library of the toolkit: one name a major version, newest first. */
struct toolkit_library {
    const char *what;
    const char *names[4];
    const char *option;
};

static const struct toolkit_library nvrtc_library = {
    "the compiler of kernels",
    {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"},
    "nvrtc_dir"};
static const struct toolkit_library cublas_library = {
    "the library of matrix products",
    {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11",
     "libcublasLt.so"},
    "cublas_dir"};

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
                 "NVIDIA's driver lacks %s; it must be of version 470 "        \
                 "(CUDA 11.4) or later",                                       \
                 #name);                                                       \
        return 0;                                                              \
    }
#define CCU_LATER(member, name, parameters)                                    \
    out->member = (int(*) parameters)find_in(library, find, #name);
#include "symbols.def"
    return 1;
}

/* Try all names of LIBRARY in FOLDER, or as the system finds them. */
static void *open_names(const struct toolkit_library *library,
                        const char *folder)
{
    char path[PATH_MAX];
    void *opened = NULL;

    for (int i = 0; i < 4 && !opened; i++) {
        const int length = snprintf(path, sizeof(path), "%s%s%s", folder,
                                    folder[0] ? "/" : "", library->names[i]);

        if (length > 0 && (size_t)length < sizeof(path))
            opened = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    }
    return opened;
}

/* FOLDER alone if it is given: who asks for one version gets no other. */
static void *open_toolkit(const struct toolkit_library *library,
                          const char *folder, char reason[CCU_REASON])
{
    void *opened = open_names(library, folder);

    if (!opened && !folder[0])
        opened = open_names(library, "/usr/local/cuda/lib64");
    if (!opened)
        snprintf(reason, CCU_REASON,
                 "%s, %s, is not %s%s; install it with the CUDA toolkit, or "
                 "say where it is with the option \"%s\"",
                 library->what, library->names[0],
                 folder[0] ? "in " : "found", folder, library->option);
    return opened;
}

#define CCU_TOOLKIT(member, name, parameters)                                  \
    out->member = (int(*) parameters)find_in(library, find, #name);            \
    if (!out->member) {                                                        \
        snprintf(reason, CCU_REASON,                                           \
                 "%s lacks %s; it must be of CUDA 11.2 or later", what,        \
                 #name);                                                       \
        return 0;                                                              \
    }

int ccu_nvrtc_open(struct ccu_nvrtc *out, ccu_find_fn find, const char *folder,
                   char reason[CCU_REASON])
{
    static const char what[] = "NVRTC";
    void *library = find ? NULL : open_toolkit(&nvrtc_library, folder, reason);

    memset(out, 0, sizeof(*out));
    if (!find && !library)
        return 0;
#define CCU_NVRTC CCU_TOOLKIT
#include "symbols.def"
    return 1;
}

int ccu_cublas_open(struct ccu_cublas *out, ccu_find_fn find,
                    const char *folder, char reason[CCU_REASON])
{
    static const char what[] = "cuBLASLt";
    void *library = find ? NULL : open_toolkit(&cublas_library, folder, reason);

    memset(out, 0, sizeof(*out));
    if (!find && !library)
        return 0;
#define CCU_CUBLAS CCU_TOOLKIT
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
