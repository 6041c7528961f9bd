/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_pack.c - hob-sdk pack: a plugin as one file.
 *
 * The manifest and every library that it names for this platform are checked
 * first; then the package is written aside and renamed. While the files are
 * copied their hashes are compared with those of the index.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "tool.h"

#include "elf_check.h"
#include "file_write.h"
#include "gen.h"
#include "manifest.h"
#include "package.h"
#include "paths.h"
#include "sha256.h"

#include <stdlib.h>
#include <string.h>

enum { MANIFEST_MAX = 1 << 20, CHUNK = 1 << 16 };

struct packing {
    const struct hob_os_ops *os;
    struct hob__arena arena;
    const char *manifest_path;
    const char *folder; /* in which the manifest lies */
    char *text;         /* owned: the manifest */
    size_t size;
    struct hob__manifest *manifest; /* owned */
    struct hob__package package;    /* what will be written */
    hob_error *error;
};

static hob_status no_memory(const struct packing *packing)
{
    return hob_error_set(packing->error, HOB_ERR_MEMORY, "out of memory");
}

/* PATH is the manifest, or the folder with just one. */
static hob_status find_manifest(struct packing *packing, const char *path)
{
    const struct hob_os_ops *os = packing->os;
    struct hob_os_stat stat = {0};
    int code = os->path_stat(os->self, path, true, &stat);

    packing->manifest_path = path;
    if (code)
        return hob__path_fail(path, code, packing->error);
    if (stat.type != HOB_OS_DIRECTORY)
        return HOB_OK;
    return hob__folder_manifest(os, &packing->arena, path,
                                &packing->manifest_path, packing->error);
}

/* What the generator checks of an extension, with its messages. */
static hob_status check_schema(const struct packing *packing)
{
    struct gen_schema schema;
    hob_status st;

    memset(&schema, 0, sizeof(schema));
    schema.is_extension = true;
    st = gen_read_extension(&schema, packing->manifest_path, packing->error);
    if (!st)
        st = gen_check(&schema, packing->error);
    gen_schema_release(&schema);
    return st;
}

static hob_status read_manifest(struct packing *packing)
{
    struct hob_os_stat stat = {0};
    enum hob__reason reason;
    hob_status st = hob__file_read(packing->os, packing->manifest_path,
                                   MANIFEST_MAX, &packing->text, &packing->size,
                                   &stat, &reason, packing->error);

    if (!st)
        st = hob__manifest_parse(packing->manifest_path, packing->text,
                                 packing->size, false, &packing->manifest,
                                 &reason, packing->error);
    if (!st && packing->manifest->kind == HOB__KIND_EXTENSION)
        st = check_schema(packing);
    packing->folder = hob__path_dir(&packing->arena, packing->manifest_path);
    return st || packing->folder ? st : no_memory(packing);
}

static hob_status check_library(const struct packing *packing, int fd,
                                uint64_t size, const char *path)
{
    const struct hob_os_ops *os = packing->os;
    enum hob__reason reason;
    bool exports = false;
    hob_status st =
        hob__library_check(os, fd, size, path, &reason, packing->error);

    if (!st)
        st = hob__library_exports(os, fd, size, path, "hob_plugin_entry",
                                  &exports, packing->error);
    if (!st && !exports)
        st = hob_error_set(packing->error, HOB_ERR_PLUGIN,
                           "%s: does not export hob_plugin_entry: it is no "
                           "plugin, or was linked without plugin.syms",
                           path);
    return st;
}

/* Check the library of VARIANT and fill FILE. */
static hob_status add_library(struct packing *packing,
                              const struct hob__manifest_variant *variant,
                              struct hob__package_file *file)
{
    const struct hob_os_ops *os = packing->os;
    const char *path =
        hob__path_join(&packing->arena, packing->folder, variant->path);
    const char *wanted =
        variant->sha256 ? variant->sha256 : packing->manifest->sha256;
    struct hob_os_stat stat = {0};
    int fd, code;
    hob_status st = HOB_OK;

    if (!path)
        return no_memory(packing);
    file->path = variant->path;
    fd = os->open_read(os->self, path);
    if (fd < 0)
        return hob__path_fail(path, fd, packing->error);
    code = os->file_stat(os->self, fd, &stat);
    file->size = stat.size;
    if (!code &&
        (stat.type != HOB_OS_REGULAR || stat.size > HOB__PACKAGE_SIZE_MAX))
        st = hob_error_set(packing->error, HOB_ERR_PLUGIN,
                           "%s: not a regular file of less than 8 GiB", path);
    if (!code && !st)
        st = check_library(packing, fd, stat.size, path);
    if (!code && !st)
        code = hob__sha256_file(os, fd, file->sha256);
    os->close(os->self, fd);
    if (code)
        return hob__path_fail(path, code, packing->error);
    if (!st && wanted && strcmp(wanted, file->sha256) != 0)
        st = hob_error_set(packing->error, HOB_ERR_PLUGIN,
                           "%s: its SHA-256 is %s, the manifest says %s", path,
                           file->sha256, wanted);
    return st;
}

static bool is_listed(const struct hob__package *package, const char *path)
{
    for (uint32_t i = 0; i < package->count; i++) {
        if (!strcmp(package->files[i].path, path))
            return true;
    }
    return false;
}

static hob_status check_path(const struct packing *packing, const char *path)
{
    const char *fault = hob__package_path_fault(path);

    if (!fault && (!strcmp(path, HOB__PACKAGE_MANIFEST) ||
                   !strcmp(path, HOB__PACKAGE_INDEX)))
        fault = "is the name of another file in the package";
    return fault ? hob_error_set(packing->error, HOB_ERR_PLUGIN,
                                 "%s: the path of the library, \"%s\", %s; in "
                                 "a package it lies beside or below the "
                                 "manifest",
                                 packing->manifest_path, path, fault)
                 : HOB_OK;
}

static hob_status add_libraries(struct packing *packing)
{
    struct hob__package *package = &packing->package;
    const struct hob__manifest_target *target =
        hob__manifest_target(packing->manifest, package->platform);
    hob_status st = HOB_OK;

    if (!target)
        return hob_error_set(packing->error, HOB_ERR_PLUGIN,
                             "%s: /library: nothing for %s",
                             packing->manifest_path, package->platform);
    if (target->variant_count >= HOB__PACKAGE_FILES_MAX)
        return hob_error_set(packing->error, HOB_ERR_PLUGIN,
                             "%s: /library: a package holds %d files at most",
                             packing->manifest_path, HOB__PACKAGE_FILES_MAX);
    for (uint32_t i = 0; i < target->variant_count && !st; i++) {
        const struct hob__manifest_variant *variant = &target->variants[i];

        st = check_path(packing, variant->path);
        if (!st && !is_listed(package, variant->path))
            st = add_library(packing, variant,
                             &package->files[package->count++]);
    }
    return st;
}

static int compare_files(const void *a, const void *b)
{
    const struct hob__package_file *left = a, *right = b;

    return strcmp(left->path, right->path);
}

static hob_status list_files(struct packing *packing)
{
    struct hob__package *package = &packing->package;
    struct hob__sha256 sha;
    hob_status st;

    package->id = packing->manifest->id;
    package->version = packing->manifest->version;
    package->platform = packing->os->triple;
    package->files = hob__arena_array(&packing->arena, HOB__PACKAGE_FILES_MAX,
                                      sizeof(*package->files));
    if (!package->files)
        return no_memory(packing);
    package->files[0].path = HOB__PACKAGE_MANIFEST;
    package->files[0].size = packing->size;
    hob__sha256_init(&sha);
    hob__sha256_update(&sha, packing->text, packing->size);
    hob__sha256_hex(&sha, package->files[0].sha256);
    package->count = 1;
    st = add_libraries(packing);
    qsort(package->files + 1, package->count - 1, sizeof(*package->files),
          compare_files);
    return st;
}

/* ---- writing ---- */

static hob_status put_header(struct hob__file_write *out, const char *path,
                             uint64_t size, hob_error *error)
{
    unsigned char header[HOB__PACKAGE_BLOCK];

    hob__package_header(path, size, header);
    return hob__file_write_put(out, header, sizeof(header), error);
}

static hob_status put_padding(struct hob__file_write *out, uint64_t size,
                              hob_error *error)
{
    static const unsigned char zeros[HOB__PACKAGE_BLOCK];

    return hob__file_write_put(out, zeros, hob__package_padding(size), error);
}

static hob_status put_text(struct hob__file_write *out, const char *path,
                           const char *text, size_t size, hob_error *error)
{
    hob_status st = put_header(out, path, size, error);

    if (!st)
        st = hob__file_write_put(out, text, size, error);
    return st ? st : put_padding(out, size, error);
}

static hob_status put_library(const struct packing *packing,
                              struct hob__file_write *out,
                              const struct hob__package_file *file,
                              const char *path)
{
    const struct hob_os_ops *os = packing->os;
    unsigned char *chunk = malloc(CHUNK);
    struct hob__sha256 sha;
    uint64_t offset = 0;
    char hex[65];
    int64_t n = 0;
    int fd = os->open_read(os->self, path);
    hob_status st = chunk ? HOB_OK : no_memory(packing);

    hob__sha256_init(&sha);
    if (!st && fd < 0)
        st = hob__path_fail(path, fd, packing->error);
    if (!st)
        st = put_header(out, file->path, file->size, packing->error);
    while (!st && (n = os->read(os->self, fd, chunk, CHUNK, offset)) > 0) {
        hob__sha256_update(&sha, chunk, (size_t)n);
        st = hob__file_write_put(out, chunk, (uint64_t)n, packing->error);
        offset += (uint64_t)n;
    }
    if (!st && n < 0)
        st = hob__path_fail(path, (int)n, packing->error);
    hob__sha256_hex(&sha, hex);
    if (!st && strcmp(hex, file->sha256) != 0)
        st = hob_error_set(packing->error, HOB_ERR_IO,
                           "%s: changed while it was packed", path);
    if (!st)
        st = put_padding(out, file->size, packing->error);
    if (fd >= 0)
        os->close(os->self, fd);
    free(chunk);
    return st;
}

static hob_status put_all(struct packing *packing, struct hob__file_write *out,
                          const char *index)
{
    static const unsigned char end[HOB__PACKAGE_END];
    const struct hob__package *package = &packing->package;
    hob_status st =
        put_text(out, HOB__PACKAGE_INDEX, index, strlen(index), packing->error);

    if (!st)
        st = put_text(out, HOB__PACKAGE_MANIFEST, packing->text, packing->size,
                      packing->error);
    for (uint32_t i = 1; i < package->count && !st; i++) {
        const char *path = hob__path_join(&packing->arena, packing->folder,
                                          package->files[i].path);

        st = path ? put_library(packing, out, &package->files[i], path)
                  : no_memory(packing);
    }
    return st ? st : hob__file_write_put(out, end, sizeof(end), packing->error);
}

static hob_status write_package(struct packing *packing, const char *path)
{
    struct hob__file_write *out = NULL;
    char *index = hob__package_index(&packing->package);
    hob_status st = index ? hob__file_write_open(path, &out, packing->error)
                          : no_memory(packing);

    if (!st)
        st = put_all(packing, out, index);
    free(index);
    if (!st)
        return hob__file_write_commit(out, packing->error);
    hob__file_write_abort(out);
    return st;
}

static int pack(const char *path, const char *out_path)
{
    hob_error error = HOB_ERROR_INIT;
    struct packing packing;
    hob_status st;

    memset(&packing, 0, sizeof(packing));
    packing.os = hob__os();
    packing.error = &error;
    st = find_manifest(&packing, path);
    if (!st)
        st = read_manifest(&packing);
    if (!st)
        st = list_files(&packing);
    if (!st && !out_path)
        out_path =
            hob__arena_printf(&packing.arena, "%s-%s-%s%s", packing.package.id,
                              packing.package.version, packing.package.platform,
                              HOB__PACKAGE_SUFFIX);
    if (!st)
        st = out_path ? write_package(&packing, out_path) : no_memory(&packing);
    if (!st && printf("%s\n", out_path) < 0)
        st = hob_error_set(&error, HOB_ERR_IO, "cannot write the output");
    hob__manifest_free(packing.manifest);
    free(packing.text);
    hob__arena_release(&packing.arena);
    return st ? tool_failed(&error) : TOOL_DONE;
}

int tool_pack(int argc, char **argv)
{
    const char *path = NULL, *out_path = NULL;

    for (int i = 0; i < argc; i++) {
        if (!strcmp(argv[i], "-o")) {
            if (++i == argc)
                return tool_usage_error("no file after ", "-o");
            out_path = argv[i];
        } else if (argv[i][0] == '-' || path) {
            return tool_usage_error("unknown argument ", argv[i]);
        } else {
            path = argv[i];
        }
    }
    return pack(path ? path : ".", out_path);
}
