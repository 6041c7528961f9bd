/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* The line called NAME of /proc/self/status, in bytes; 0 if there is none. */
static int64_t status_bytes(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    char line[128];
    long long kib = 0;

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), ": %lld", &kib) == 1)
            break;
    if (file)
        (void)fclose(file);
    return 1024 * (int64_t)kib;
}

void bench_memory_begin(struct bench_memory *out)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");

    if (file) {
        (void)fputs("5", file); /* the peak is now what is in use */
        (void)fclose(file);
    }
    out->all = status_bytes("VmRSS");
    out->files = status_bytes("RssFile");
}

int64_t bench_memory_peak(const struct bench_memory *before)
{
    const int64_t libraries = status_bytes("RssFile") - before->files;
    const int64_t peak = status_bytes("VmHWM") - before->all - libraries;

    return peak > 0 ? peak : 0;
}

int64_t bench_allocations(void)
{
    int64_t (*count)(void) = NULL;

    *(void **)&count = dlsym(RTLD_DEFAULT, "bench_count_calls");
    return count ? count() : -1;
}
