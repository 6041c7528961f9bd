/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a library, as the linker's cache, and as a version: no size or
 * offset in them leads outside.
 */
#include "elf_check.h"
#include "ldcache.h"
#include "semver.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *data;
    size_t size;
};

static int64_t read_bytes(void *self, int fd, void *buffer, size_t size,
                          uint64_t offset)
{
    const struct bytes *bytes = self;
    size_t left = offset < bytes->size ? bytes->size - (size_t)offset : 0;

    (void)fd;
    if (size > left)
        size = left;
    if (size)
        memcpy(buffer, bytes->data + offset, size);
    return (int64_t)size;
}

static bool no_symbol(void *self, const char *name)
{
    (void)self;
    return name[0] == '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const triples[] = {"linux-x86_64-gnu", "windows-x86_64",
                                          "macos-aarch64"};
    const struct hob__strings none = {NULL, 0};
    struct bytes bytes = {data, size};
    struct hob_os_ops os = *hob__os();
    struct hob__ldcache cache = {NULL, size, true};
    struct hob__semver version;
    enum hob__reason reason;
    char *copy = malloc(size + 1);
    size_t i;

    if (!copy)
        return 0;
    os.self = &bytes;
    os.read = read_bytes;
    os.has_symbol = no_symbol;
    for (i = 0; i < 3; i++) {
        os.triple = triples[i];
        if (hob__library_check(&os, 0, size, "f", &reason, NULL) && !reason)
            abort();
    }
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    if (hob__semver_parse(copy, &version) &&
        hob__semver_compare(&version, &version))
        abort();
    /* The cache owns its bytes and must not look behind them. */
    cache.data = malloc(size ? size : 1);
    if (cache.data && size)
        memcpy(cache.data, data, size);
    (void)hob__ldcache_has(&cache, &os, &none, "libmoon.so.1");
    hob__ldcache_release(&cache);
    free(copy);
    return 0;
}
