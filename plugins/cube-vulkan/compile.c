/* SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"

#include "device.h"
#include "glslang_table.h"

#include <hob/ext/message.h>

#include <glslang/build_info.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_OF(x) #x
#define NUMBER(x) TEXT_OF(x)

static const char library_name[] = "hob-glslang.so";

static const char glslang_version[] = NUMBER(GLSLANG_VERSION_MAJOR) "." NUMBER(
    GLSLANG_VERSION_MINOR) "." NUMBER(GLSLANG_VERSION_PATCH);

#undef NUMBER
#undef TEXT_OF

void cvk_compile_identify(struct cvk_device *device)
{
    const struct cube_float_controls *controls = &device->physical->controls;

    /* SPIR-V is for every device that promises the same about numbers. */
    snprintf(device->identity, sizeof(device->identity),
             "glslang %s, SPIR-V 1.5, Vulkan 1.2, NaN %" PRIu32
             ", denormals %" PRIu32 ", nearest even %" PRIu32,
             glslang_version, controls->nan_preserve, controls->denorm_preserve,
             controls->nearest_even);
}

const char *cvk_compile_identity(struct cube_device *device)
{
    return ((struct cvk_device *)device)->identity;
}

/* The folder that this plugin's own code was loaded from, and the library's
 * name; 0 where it is not known or too long. */
static int path_beside(char *path, size_t size)
{
    Dl_info info;
    const char *slash;
    int length;

    if (!dladdr((const void *)library_name, &info) || !info.dli_fname)
        return 0;
    slash = strrchr(info.dli_fname, '/');
    if (!slash)
        return 0;
    length = snprintf(path, size, "%.*s%s", (int)(slash + 1 - info.dli_fname),
                      info.dli_fname, library_name);
    return length > 0 && (size_t)length < size;
}

/* Open the library. It is never closed: its code registers what runs when the
 * process ends. */
static const struct cvk_glslang *open_library(const char *path,
                                              char reason[CVK_REASON])
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    const struct cvk_glslang *table =
        library ? dlsym(library, CVK_GLSLANG_SYMBOL) : NULL;

    if (!table)
        snprintf(reason, CVK_REASON,
                 "the compiler of kernels cannot be opened (%s); it belongs "
                 "beside the plugin: install Hob again",
                 dlerror());
    else if (table->version != CVK_GLSLANG_VERSION ||
             table->struct_size < sizeof(*table))
        snprintf(reason, CVK_REASON,
                 "%s is of another version of Hob: install Hob again", path);
    else if (!table->begin())
        snprintf(reason, CVK_REASON, "glslang cannot be started");
    else
        return table;
    if (library)
        dlclose(library);
    return NULL;
}

static const struct cvk_glslang *open_once(struct cvk_instance *instance,
                                           char reason[CVK_REASON])
{
    const struct cvk_glslang *table;
    char path[PATH_MAX];

    pthread_mutex_lock(&instance->lock);
    if (!instance->compiler) {
        if (instance->compiler_path)
            table = open_library(instance->compiler_path, reason);
        else if (path_beside(path, sizeof(path)))
            table = open_library(path, reason);
        else
            table = open_library(library_name, reason);
        instance->compiler = table;
    }
    table = instance->compiler;
    pthread_mutex_unlock(&instance->lock);
    return table;
}

/* Mark RESULT's module as the dialect has it, into memory of HOST's. */
static hob_status finish(const struct cvk_device *device,
                         const struct cvk_glslang_result *result,
                         void **out_binary, uint64_t *out_bytes)
{
    const struct hob_host *host = device->cube.host;
    uint64_t count = 0;
    uint32_t *words =
        cube_spirv_exact(result->words, result->bytes / sizeof(*words),
                         &device->physical->controls, &count);

    if (words)
        *out_binary = host->mem_alloc(host, count * sizeof(*words));
    if (*out_binary) {
        *out_bytes = count * sizeof(*words);
        memcpy(*out_binary, words, (size_t)*out_bytes);
    }
    free(words);
    return *out_binary ? HOB_OK : HOB_ERR_MEMORY;
}

hob_status cvk_compile(struct cube_device *opened,
                       const struct cube_source *source, void **out_binary,
                       uint64_t *out_bytes, char **out_message)
{
    struct cvk_device *device = (struct cvk_device *)opened;
    const struct hob_host *host = opened->host;
    struct cvk_glslang_result result;
    const struct cvk_glslang *glslang;
    char reason[CVK_REASON];
    hob_status status;

    *out_binary = NULL;
    *out_bytes = 0;
    glslang = open_once(device->instance, reason);
    if (!glslang)
        return hob_say(host, out_message, HOB_ERR_DEVICE, "%s: %s",
                       device->name, reason);
    if (glslang->compile(source->text, &result))
        status = finish(device, &result, out_binary, out_bytes);
    else
        status = hob_say(
            host, out_message, HOB_ERR_INTERNAL,
            "%s: kernel %s cannot be compiled: %s", device->name, source->name,
            result.messages ? result.messages : "glslang does not say why");
    glslang->release(&result);
    return status;
}
