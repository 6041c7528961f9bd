/* SPDX-License-Identifier: Apache-2.0 */
#include "flex.h"

#include "options.h"

#include <hob/ext/fusion.h>
#include <hob/ext/message.h>

#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

/* ---- the machine ---- */

static uint64_t physical_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

/* The size of a cache as the C library knows it, else FALLBACK. */
static uint64_t cache_size(int name, uint64_t fallback)
{
    long bytes = name >= 0 ? sysconf(name) : 0;

    return bytes > 0 ? (uint64_t)bytes : fallback;
}

/* The third level that the first processor has a share in, 0 if unknown. The C
 * library counts those of the whole machine on some processors. */
static uint64_t l3_of_system(void)
{
    FILE *file = fopen("/sys/devices/system/cpu/cpu0/cache/index3/size", "re");
    unsigned long kib = 0;

    if (!file)
        return 0;
    if (fscanf(file, "%luK", &kib) != 1)
        kib = 0;
    fclose(file);
    return (uint64_t)kib << 10;
}

static void measure_caches(struct flex_device *device)
{
    int l2 = -1, l3 = -1;

#ifdef _SC_LEVEL2_CACHE_SIZE
    l2 = _SC_LEVEL2_CACHE_SIZE;
#endif
#ifdef _SC_LEVEL3_CACHE_SIZE
    l3 = _SC_LEVEL3_CACHE_SIZE;
#endif
    device->l2_bytes = cache_size(l2, UINT64_C(512) << 10);
    device->l3_bytes = l3_of_system();
    if (!device->l3_bytes)
        device->l3_bytes = cache_size(l3, UINT64_C(8) << 20);
}

/* The processor's own name, as in "AMD EPYC 9654": CPUID leaves 0x80000002 to
 * 0x80000004 hold 48 characters. */
static void cpu_name(char *out, size_t size)
{
    const char *start = "CPU";
#if defined(__x86_64__) || defined(__i386__)
    unsigned int words[13] = {0};
    int known = 1;

    for (unsigned int i = 0; i < 3; i++)
        known &= __get_cpuid(0x80000002u + i, &words[4 * i], &words[4 * i + 1],
                             &words[4 * i + 2], &words[4 * i + 3]);
    start = (const char *)words;
    while (*start == ' ')
        start++;
    if (!known || !*start)
        start = "CPU";
#endif
    snprintf(out, size, "%s", start);
}

/* ---- options ---- */

/* Choose DEVICE's kernels: the level called NAME, or the best if it is "". */
static hob_status choose_kernels(struct flex_device *device, const char *name,
                                 char **out_message)
{
    static const char *const levels[FLEX_ISA_COUNT_] = {"base", "v2", "v3",
                                                        "v4"};

    device->kernels = NULL;
    if (!name[0])
        device->kernels = flex_kernels_best();
    for (uint32_t i = 0; i < FLEX_ISA_COUNT_ && name[0]; i++) {
        if (strcmp(name, levels[i]) != 0)
            continue;
        device->kernels = flex_kernels_find(i);
        if (!device->kernels)
            return hob_say(device->host, out_message, HOB_ERR_DEVICE,
                           "flex: this processor or this build lacks the "
                           "instruction set \"%s\"; use \"%s\" or leave the "
                           "option \"isa\" out",
                           name, flex_kernels_best()->name);
    }
    if (!device->kernels)
        return hob_say(device->host, out_message, HOB_ERR_ARGUMENT,
                       "flex: option \"isa\" is \"%s\"; it must be \"base\", "
                       "\"v2\", \"v3\" or \"v4\"",
                       name);
    device->isa = device->kernels->isa;
    return HOB_OK;
}

/* ---- the interface flex.compute ---- */

/* The caller may know less of a gemm than we do, or more. */
static hob_status compute_gemm(void *instance, const struct flex_gemm *gemm)
{
    const size_t least = offsetof(struct flex_gemm, bias); /* of version 1 */
    struct flex_gemm known;

    if (gemm->struct_size < least)
        return HOB_ERR_ARGUMENT;
    memset(&known, 0, sizeof(known));
    memcpy(&known, gemm,
           gemm->struct_size < sizeof(known) ? gemm->struct_size
                                             : sizeof(known));
    known.struct_size = sizeof(known);
    return flex_gemm(instance, &known);
}

static void *compute_scratch_take(void *instance, uint64_t bytes)
{
    return flex_scratch_take(instance, bytes);
}

static void compute_scratch_give(void *instance, void *memory, uint64_t bytes)
{
    flex_scratch_give(instance, memory, bytes);
}

static const char *compute_isa(void *instance)
{
    return ((struct flex_device *)instance)->kernels->name;
}

static const struct flex_compute compute = {
    .struct_size = sizeof(compute),
    .version = FLEX_COMPUTE_VERSION,
    .gemm = compute_gemm,
    .scratch_take = compute_scratch_take,
    .scratch_give = compute_scratch_give,
    .isa = compute_isa,
};

/* ---- public ---- */

hob_status flex_device_open(void *instance, uint32_t ordinal,
                            const char *options, void **out_device,
                            char **out_message)
{
    struct flex_instance *flex = instance;
    struct flex_options parsed;
    struct flex_device *device = NULL;
    char reason[160];
    hob_status status;

    *out_device = NULL;
    *out_message = NULL;
    /* An idle program may keep a quarter of the memory for reuse. */
    parsed.cache_bytes = physical_bytes() / 4;
    parsed.isa[0] = '\0';
    parsed.gemm = FLEX_GEMM_AUTO;
    parsed.threads = 0;
    if (ordinal != 0)
        return hob_say(flex->host, out_message, HOB_ERR_DEVICE,
                       "flex: there is no device %u; the CPU is device 0",
                       (unsigned)ordinal);
    if (options &&
        !flex_options_parse(options, &parsed, reason, sizeof(reason)))
        return hob_say(flex->host, out_message, HOB_ERR_ARGUMENT, "flex: %s",
                       reason);
    device = flex->host->mem_alloc(flex->host, sizeof(*device));
    if (!device)
        return HOB_ERR_MEMORY;
    memset(device, 0, sizeof(*device));
    device->host = flex->host;
    device->gemm = parsed.gemm;
    if (parsed.threads < flex->host->thread_count(flex->host))
        device->threads = (uint32_t)parsed.threads;
    measure_caches(device);
    status = choose_kernels(device, parsed.isa, out_message);
    if (status)
        goto fail;
    device->memory = flex_memory_new(parsed.cache_bytes);
    if (!device->memory) {
        status = HOB_ERR_MEMORY;
        goto fail;
    }
    status = flex_blas_open(device);
    if (status)
        goto fail;
    *out_device = device;
    return HOB_OK;
fail:
    flex_memory_free(device->memory);
    flex->host->mem_free(flex->host, device);
    return status;
}

void flex_device_close(void *opened)
{
    struct flex_device *device = opened;

    flex_blas_close(device);
    flex_memory_free(device->memory);
    device->host->mem_free(device->host, device);
}

hob_status flex_device_count(void *instance, uint32_t *out_count)
{
    (void)instance;
    *out_count = 1;
    return HOB_OK;
}

hob_status flex_device_info(void *instance, uint32_t ordinal,
                            struct hob_device_info *out)
{
    (void)instance;
    memset(out, 0, sizeof(*out));
    if (ordinal != 0)
        return HOB_ERR_DEVICE;
    cpu_name(out->name, sizeof(out->name));
    out->memory_bytes = physical_bytes();
    return HOB_OK;
}

const void *flex_device_interface(void *device, const char *name,
                                  uint32_t version)
{
    (void)device;
    if (version == FLEX_COMPUTE_VERSION && strcmp(name, FLEX_COMPUTE_NAME) == 0)
        return &compute;
    if (version == HOB_FUSED_COMPUTE_VERSION &&
        strcmp(name, HOB_FUSED_COMPUTE) == 0)
        return &flex_fused_compute;
    return NULL;
}
