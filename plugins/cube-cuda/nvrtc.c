/* SPDX-License-Identifier: Apache-2.0 */
#include "nvrtc.h"

#include "device.h"

#include <hob/ext/message.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void open_library(struct ccu_device *device)
{
    struct ccu_compiler *compiler = &device->compiler;

    compiler->is_open = (uint32_t)ccu_nvrtc_open(
        &compiler->nvrtc, device->instance->find, device->options.nvrtc_dir,
        compiler->library.problem);
    if (compiler->is_open &&
        compiler->nvrtc.version(&compiler->major, &compiler->minor))
        compiler->major = compiler->minor = 0;
}

hob_status ccu_compiler_init(struct ccu_device *device)
{
    return ccu_library_init(&device->compiler.library, device, open_library);
}

void ccu_compiler_release(struct ccu_device *device)
{
    ccu_library_release(&device->compiler.library);
}

const char *ccu_compile_identity(struct cube_device *opened)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    struct ccu_compiler *compiler = &device->compiler;

    pthread_mutex_lock(&compiler->library.lock);
    ccu_library_wait_locked(&compiler->library);
    if (!device->identity[0])
        snprintf(device->identity, sizeof(device->identity),
                 "nvrtc %d.%d, sm_%d%d", compiler->major, compiler->minor,
                 device->physical->major, device->physical->minor);
    pthread_mutex_unlock(&compiler->library.lock);
    return device->identity;
}

int ccu_compiler_is_from(struct ccu_device *device, int major)
{
    ccu_library_wait(&device->compiler.library);
    return device->compiler.is_open && device->compiler.major >= major;
}

/* PROGRAM's messages as this call's. */
static hob_status say_log(struct ccu_device *device,
                          struct _nvrtcProgram *program,
                          const struct cube_source *source, int result,
                          char **out_message)
{
    const struct ccu_nvrtc *nvrtc = &device->compiler.nvrtc;
    const struct hob_host *host = device->cube.host;
    size_t bytes = 0;
    char *log = NULL;
    hob_status status;

    if (!nvrtc->log_size(program, &bytes) && bytes)
        log = host->mem_alloc(host, bytes);
    if (log && nvrtc->log(program, log))
        log[0] = '\0';
    status = hob_say(host, out_message, HOB_ERR_INTERNAL,
                     "%s: kernel %s cannot be compiled (NVRTC %d): %s",
                     device->name, source->name, result,
                     log && log[0] ? log : "NVRTC does not say why");
    host->mem_free(host, log);
    return status;
}

/* PROGRAM's machine code as memory of the host's. */
static hob_status take_cubin(struct ccu_device *device,
                             struct _nvrtcProgram *program, void **out_binary,
                             uint64_t *out_bytes)
{
    const struct ccu_nvrtc *nvrtc = &device->compiler.nvrtc;
    const struct hob_host *host = device->cube.host;
    size_t bytes = 0;

    if (nvrtc->cubin_size(program, &bytes) || !bytes)
        return HOB_ERR_INTERNAL;
    *out_binary = host->mem_alloc(host, bytes);
    if (!*out_binary)
        return HOB_ERR_MEMORY;
    if (nvrtc->cubin(program, *out_binary)) {
        host->mem_free(host, *out_binary);
        *out_binary = NULL;
        return HOB_ERR_INTERNAL;
    }
    *out_bytes = bytes;
    return HOB_OK;
}

/*
 * Compile PROGRAM; NVRTC's answer. Its own cache is left out, as there is one
 * on disk already: looking for what is not there took 20 to 200 ms of a
 * kernel's first compilation. So are the parts of CUDA that texts of the
 * dialect, which wait by themselves, cannot use.
 */
static int compile(struct ccu_device *device, struct _nvrtcProgram *program,
                   const struct cube_source *source)
{
    enum { INVALID_OPTION = 5, NEEDED = 3 };
    struct ccu_compiler *compiler = &device->compiler;
    char architecture[40];
    const char *const options[] = {architecture, "--fmad=false", "--std=c++14",
                                   "--no-cache", "--minimal"};
    int result = INVALID_OPTION;

    snprintf(architecture, sizeof(architecture), "--gpu-architecture=sm_%d%d%s",
             device->physical->major, device->physical->minor,
             source->is_tied ? "a" : "");
    if (!atomic_load(&compiler->is_old))
        result = compiler->nvrtc.compile(
            program, NEEDED + 1 + (source->waits != 0), options);
    if (result != INVALID_OPTION)
        return result;
    atomic_store(&compiler->is_old, 1);
    return compiler->nvrtc.compile(program, NEEDED, options);
}

hob_status ccu_compile(struct cube_device *opened,
                       const struct cube_source *source, void **out_binary,
                       uint64_t *out_bytes, char **out_message)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    const struct ccu_nvrtc *nvrtc = &device->compiler.nvrtc;
    struct _nvrtcProgram *program = NULL;
    hob_status status;
    int result;

    *out_binary = NULL;
    *out_bytes = 0;
    ccu_library_wait(&device->compiler.library);
    if (!device->compiler.is_open)
        return hob_say(opened->host, out_message, HOB_ERR_DEVICE, "%s: %s",
                       device->name, device->compiler.library.problem);
    result = nvrtc->create(&program, source->text, source->name, 0, NULL, NULL);
    if (result)
        return hob_say(opened->host, out_message, HOB_ERR_MEMORY,
                       "%s: NVRTC cannot take kernel %s (NVRTC %d)",
                       device->name, source->name, result);
    result = compile(device, program, source);
    status = result ? say_log(device, program, source, result, out_message)
                    : take_cubin(device, program, out_binary, out_bytes);
    (void)nvrtc->destroy(&program);
    return status;
}
