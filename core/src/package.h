/* SPDX-License-Identifier: Apache-2.0 */
/*
 * package.h - a plugin in one file: what hob-sdk pack writes and hob install
 * reads.
 *
 * A package is a plain ustar archive, so "tar tf" lists it. It holds, in this
 * order, the index hob-package.json, which names every other file with its
 * size and SHA-256, then manifest.json, then the libraries sorted by path.
 * Nothing else of it is free: headers have mode 0644, no times and no owners,
 * and a reader makes each one from the index and compares. So a link, an
 * absolute path, a second member of one name or a byte too many cannot even be
 * said. GNU tar writes the same bytes with --format=ustar --mode=644
 * --mtime=@0 --owner=0 --group=0 --numeric-owner -b 1.
 */
#ifndef HOB__PACKAGE_H
#define HOB__PACKAGE_H

#include "arena.h"
#include "os.h"

#include <hob/status.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOB__PACKAGE_INDEX "hob-package.json"
#define HOB__PACKAGE_MANIFEST "manifest.json"
#define HOB__PACKAGE_SUFFIX ".hobx"

enum {
    HOB__PACKAGE_BLOCK = 512, /* headers, and what files are padded to */
    HOB__PACKAGE_END = 1024,  /* zeros after the last file */
    HOB__PACKAGE_FILES_MAX = 64,
    HOB__PACKAGE_PATH_MAX = 99
};

/* What eleven octal digits can say. */
#define HOB__PACKAGE_SIZE_MAX ((UINT64_C(1) << 33) - 1)

struct hob__package_file {
    const char *path;
    uint64_t size;
    uint64_t offset; /* of its content in the package */
    char sha256[65];
};

/* A package that was checked through and through; immutable. */
struct hob__package {
    const char *path;
    const char *id;
    const char *version;
    const char *platform;            /* as in "linux-x86_64-gnu" */
    struct hob__package_file *files; /* the first is the manifest */
    uint32_t count;
    const struct hob_os_ops *os; /* borrowed, outlives this */
    int fd;
    struct hob__arena arena;
};

/* One file of a package, for functions that take OS and FD: only reading
 * works, and asking for symbols. Lives no longer than its package. */
struct hob__package_view {
    struct hob_os_ops os;
    const struct hob_os_ops *outer;
    uint64_t offset;
    uint64_t size;
};

/* Return what is wrong with PATH in a package ("is absolute"), or NULL. */
const char *hob__package_path_fault(const char *path);

/* Write the header of member PATH, which is one without a fault. */
void hob__package_header(const char *path, uint64_t size,
                         unsigned char out_header[HOB__PACKAGE_BLOCK]);

/* How many zeros follow SIZE bytes of a file. */
uint64_t hob__package_padding(uint64_t size);

/* Return the text of the index of PACKAGE, of which all but offsets is set;
 * the caller frees it. NULL without memory. */
char *hob__package_index(const struct hob__package *package);

/* Say whether PATH looks like a package: by its name or its first member. */
bool hob__package_is(const struct hob_os_ops *os, const char *path);

/*
 * Open the package PATH and check all of it, each hash too. On success
 * *OUT_PACKAGE ends with hob__package_close(). Fails with HOB_ERR_IO,
 * HOB_ERR_MEMORY, and HOB_ERR_FORMAT if it is not what hob-sdk pack writes.
 */
HOB_MUST_CHECK hob_status hob__package_open(const struct hob_os_ops *os,
                                            const char *path,
                                            struct hob__package **out_package,
                                            hob_error *error);

/* Accepts NULL. */
void hob__package_close(struct hob__package *package);

/* Return the file PATH of PACKAGE, or NULL. */
const struct hob__package_file *
hob__package_find(const struct hob__package *package, const char *path);

/* Make OUT_VIEW one of FILE; pass &OUT_VIEW->os and any FD. */
void hob__package_view(const struct hob__package *package,
                       const struct hob__package_file *file,
                       struct hob__package_view *out_view);

#endif
