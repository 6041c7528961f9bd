/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package_builder.h - packages for tests, good ones and others.
 */
#ifndef HOB_TEST_PACKAGE_BUILDER_H
#define HOB_TEST_PACKAGE_BUILDER_H

#include "package.h"
#include "sha256.h"

#include <stdlib.h>
#include <string.h>

struct built_package {
    unsigned char *data; /* owned */
    size_t size;
};

static inline void built_add(struct built_package *built, const void *data,
                             size_t size)
{
    built->data = realloc(built->data, built->size + size + 1);
    memcpy(built->data + built->size, data, size);
    built->size += size;
}

/* A member with its header and padding. */
static inline void built_member(struct built_package *built, const char *path,
                                const void *data, size_t size)
{
    static const unsigned char zeros[HOB__PACKAGE_BLOCK];
    unsigned char header[HOB__PACKAGE_BLOCK];

    hob__package_header(path, size, header);
    built_add(built, header, sizeof(header));
    built_add(built, data, size);
    built_add(built, zeros, (size_t)hob__package_padding(size));
}

/*
 * The package of COUNT files, the first of which is the manifest. INDEX stands
 * for the index if it is not NULL.
 */
static inline struct built_package
build_package(const char *id, const char *version, const char *platform,
              uint32_t count, const char *const *paths,
              const void *const *contents, const size_t *sizes,
              const char *index)
{
    static const unsigned char end[HOB__PACKAGE_END];
    struct built_package built = {NULL, 0};
    struct hob__package package;
    struct hob__package_file files[8];
    char *text;

    memset(&package, 0, sizeof(package));
    memset(files, 0, sizeof(files));
    package.id = id;
    package.version = version;
    package.platform = platform;
    package.files = files;
    package.count = count;
    for (uint32_t i = 0; i < count; i++) {
        struct hob__sha256 sha;

        files[i].path = paths[i];
        files[i].size = sizes[i];
        hob__sha256_init(&sha);
        hob__sha256_update(&sha, contents[i], sizes[i]);
        hob__sha256_hex(&sha, files[i].sha256);
    }
    text = hob__package_index(&package);
    if (!index)
        index = text;
    built_member(&built, HOB__PACKAGE_INDEX, index, strlen(index));
    for (uint32_t i = 0; i < count; i++)
        built_member(&built, paths[i], contents[i], sizes[i]);
    built_add(&built, end, sizeof(end));
    free(text);
    return built;
}

#endif
