/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a package, and as an index with what follows it: what is taken
 * is what the same index would be written as, byte for byte, and its files
 * lie inside.
 */
#include "package.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct bytes {
    const uint8_t *data;
    size_t size;
};

static int open_bytes(void *self, const char *path)
{
    (void)self;
    return path[0] ? 7 : -1;
}

static int64_t read_bytes(void *self, int fd, void *buffer, size_t size,
                          uint64_t offset)
{
    const struct bytes *bytes = self;
    size_t left = offset < bytes->size ? bytes->size - (size_t)offset : 0;

    if (fd != 7)
        abort();
    if (size > left)
        size = left;
    if (size)
        memcpy(buffer, bytes->data + offset, size);
    return (int64_t)size;
}

static int stat_bytes(void *self, int fd, struct hob_os_stat *out_stat)
{
    const struct bytes *bytes = self;

    (void)fd;
    memset(out_stat, 0, sizeof(*out_stat));
    out_stat->type = HOB_OS_REGULAR;
    out_stat->size = bytes->size;
    return 0;
}

static void close_bytes(void *self, int fd)
{
    (void)self;
    if (fd != 7)
        abort();
}

static void check_file(const struct hob__package *package, uint32_t index,
                       const struct bytes *bytes, uint64_t *end)
{
    const struct hob__package_file *file = &package->files[index];
    unsigned char header[HOB__PACKAGE_BLOCK];

    if (hob__package_path_fault(file->path) ||
        hob__package_find(package, file->path) != file ||
        file->offset > bytes->size || file->size > bytes->size - file->offset)
        abort();
    hob__package_header(file->path, file->size, header);
    if (file->offset < *end + HOB__PACKAGE_BLOCK ||
        memcmp(bytes->data + file->offset - HOB__PACKAGE_BLOCK, header,
               sizeof(header)) != 0)
        abort();
    *end = file->offset + file->size + hob__package_padding(file->size);
}

static void try_bytes(const uint8_t *data, size_t size)
{
    struct bytes bytes = {data, size};
    struct hob_os_ops os;
    struct hob__package *package = NULL;
    hob_error error = HOB_ERROR_INIT;
    uint64_t end = 0;

    memset(&os, 0, sizeof(os));
    os.self = &bytes;
    os.open_read = open_bytes;
    os.read = read_bytes;
    os.file_stat = stat_bytes;
    os.close = close_bytes;
    os.triple = "linux-x86_64-gnu";
    if (hob__package_open(&os, "f", &package, &error)) {
        if (package || !error.message)
            abort();
        hob_error_release(&error);
        return;
    }
    for (uint32_t i = 0; i < package->count; i++)
        check_file(package, i, &bytes, &end);
    if (end + HOB__PACKAGE_END != size)
        abort();
    hob__package_close(package);
}

/* The index ends with a NUL or the input; its header is made. */
static void try_index(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t length = nul ? (size_t)(nul - data) : size;
    size_t padding = (size_t)hob__package_padding(length);
    size_t rest = nul ? size - length - 1 : 0;
    size_t whole = HOB__PACKAGE_BLOCK + length + padding + rest;
    uint8_t *built = calloc(1, whole);

    if (!built)
        return;
    hob__package_header(HOB__PACKAGE_INDEX, length, built);
    if (length)
        memcpy(built + HOB__PACKAGE_BLOCK, data, length);
    if (rest)
        memcpy(built + HOB__PACKAGE_BLOCK + length + padding, nul + 1, rest);
    try_bytes(built, whole);
    free(built);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_bytes(data, size);
    try_index(data, size);
    return 0;
}
