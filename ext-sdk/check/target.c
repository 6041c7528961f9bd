/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target.c - from what the user names to a manifest and a library.
 */
#include "check.h"

#include "schema.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { MANIFEST_MAX = 1 << 20 };

/* The text of file PATH; NULL if it cannot be read or is no manifest's size. */
static char *read_file(const char *path, size_t *out_size)
{
    FILE *file = fopen(path, "rbe");
    char *text = malloc(MANIFEST_MAX + 1);
    size_t size = 0;

    if (file && text)
        size = fread(text, 1, MANIFEST_MAX + 1, file);
    if (file)
        (void)fclose(file);
    if (!file || !text || !size || size > MANIFEST_MAX) {
        free(text);
        return NULL;
    }
    *out_size = size;
    return text;
}

static int ends_in_json(const char *name)
{
    size_t size = strlen(name);

    return size > 5 && !strcmp(name + size - 5, ".json");
}

/* Open a loader that sees manifest PATH and nothing else. */
static struct hob__loader *open_alone(const char *path, hob_error *error)
{
    struct hob__loader_options options;
    struct hob__loader *loader = NULL;

    memset(&options, 0, sizeof(options));
    options.manifests = &path;
    options.manifest_count = 1;
    options.exclusive = true;
    options.config_json = "{\"log\": \"off\"}";
    return hob__loader_open(&options, NULL, &loader, error) ? NULL : loader;
}

/* Whether the manifest PATH names the library LIBRARY, a real path. */
static int names_library(const char *path, const char *library)
{
    struct hob__loader *loader = open_alone(path, NULL);
    const struct hob__candidate *candidate =
        loader && hob__loader_count(loader) ? hob__loader_get(loader, 0) : NULL;
    char *real = candidate && candidate->library
                     ? realpath(candidate->library, NULL)
                     : NULL;
    int same = real && !strcmp(real, library);

    free(real);
    hob__loader_close(loader);
    return same;
}

/* Whether the JSON file PATH is meant as a manifest at all. */
static int is_manifest(const char *path)
{
    size_t size = 0;
    char *text = read_file(path, &size);
    int found = text && memmem(text, size, "\"manifest_version\"", 18);

    free(text);
    return found;
}

/*
 * The manifest in folder DIR: the one for LIBRARY, or, where that is NULL, the
 * only one. The caller frees it.
 */
static char *find_manifest(const char *dir, const char *library,
                           hob_error *error)
{
    DIR *folder = opendir(dir);
    struct dirent *entry;
    char *found = NULL;
    uint32_t count = 0;

    while (folder && (entry = readdir(folder))) {
        char *path = NULL;

        if (!ends_in_json(entry->d_name) ||
            asprintf(&path, "%s/%s", dir, entry->d_name) < 0)
            continue;
        if (is_manifest(path) && (!library || names_library(path, library))) {
            count++;
            free(found);
            found = path;
        } else {
            free(path);
        }
    }
    if (folder)
        (void)closedir(folder);
    if (count == 1)
        return found;
    free(found);
    if (library)
        (void)hob_error_set(error, HOB_ERR_ARGUMENT,
                            "%s: %s of the manifests in %s names it: give the "
                            "manifest instead",
                            library, count ? "more than one" : "none", dir);
    else
        (void)hob_error_set(error, HOB_ERR_ARGUMENT,
                            "%s: %u manifests in this folder: give one", dir,
                            count);
    return NULL;
}

static char *resolve(const char *path, hob_error *error)
{
    struct stat stat_of;
    char *real = realpath(path, NULL), *dir, *slash, *manifest;

    if (!real || stat(real, &stat_of)) {
        (void)hob_error_set(error, HOB_ERR_ARGUMENT, "%s: %s", path,
                            strerror(errno));
        free(real);
        return NULL;
    }
    if (ends_in_json(real))
        return real;
    if (S_ISDIR(stat_of.st_mode)) {
        manifest = find_manifest(real, NULL, error);
        free(real);
        return manifest;
    }
    dir = strdup(real);
    slash = dir ? strrchr(dir, '/') : NULL;
    if (slash)
        *slash = '\0';
    manifest = dir ? find_manifest(*dir ? dir : "/", real, error) : NULL;
    free(dir);
    free(real);
    return manifest;
}

/* ---- what the manifest says ---- */

static hob_status add_op(struct check_target *target, const char *name,
                         int is_foreign, int is_free)
{
    struct check_op *op = &target->ops[target->op_count];

    op->name = strdup(name);
    op->is_foreign = is_foreign;
    op->is_free = is_free;
    target->op_count += op->name != NULL;
    return op->name ? HOB_OK : HOB_ERR_MEMORY;
}

/* Ops of all sorts: several arguments, lists of them, several results,
 * integers among them, attributes, random numbers. */
static const char *const decorated_ops[] = {
    "add",    "relu",    "matmul", "linear",
    "where",  "sum_dim", "cumsum", "max_dim_with_indices",
    "gather", "softmax", "cat",    "cast",
    "greater"};

/* What the checker calls to prove a plugin of KIND: the built-in op DECL? */
static int is_tried(enum hob__plugin_kind kind, const struct hob__op_decl *decl)
{
    for (uint32_t i = 0; i < sizeof(decorated_ops) / sizeof(decorated_ops[0]) &&
                         kind == HOB__KIND_DECORATOR;
         i++)
        if (!strcmp(decorated_ops[i], decl->name))
            return 1;
    return kind == HOB__KIND_BACKEND;
}

static hob_status read_ops(struct check_target *target,
                           const struct hob__manifest *manifest)
{
    hob_status status = HOB_OK;
    uint32_t builtin =
        manifest->kind == HOB__KIND_EXTENSION ? 0 : hob__builtin_op_count;

    target->ops =
        calloc(manifest->op_count + manifest->implements_count + builtin + 1u,
               sizeof(*target->ops));
    if (!target->ops)
        return HOB_ERR_MEMORY;
    /* A backend is proven by the built-in ops that it has kernels for, a
     * decorator by some of them. */
    for (uint32_t i = 0; i < builtin && !status; i++)
        if (is_tried(manifest->kind, &hob__builtin_ops[i]))
            status = add_op(target, hob__builtin_ops[i].name, 0,
                            (hob__builtin_ops[i].flags & HOB__OP_RANDOM) != 0);
    for (uint32_t i = 0; i < manifest->op_count && !status; i++)
        status = add_op(target, manifest->ops[i].full_name, 0,
                        !manifest->ops[i].deterministic);
    for (uint32_t i = 0; i < manifest->implements_count && !status; i++)
        status = add_op(target, manifest->implements[i].op, 1, 0);
    return status;
}

static hob_status read_candidate(struct check_target *target,
                                 const struct hob__candidate *candidate,
                                 struct check_report *report, hob_error *error)
{
    const struct hob__record *record = hob__candidate_record(candidate);
    const struct hob__manifest *manifest = candidate->manifest;
    char text[800];

    if (manifest) {
        target->id = strdup(manifest->id);
        target->version = strdup(manifest->version);
        if (manifest->kind == HOB__KIND_DECORATOR)
            target->layer = strdup(hob__manifest_selector_name(manifest));
        if (!target->id || !target->version ||
            (manifest->kind == HOB__KIND_DECORATOR && !target->layer) ||
            read_ops(target, manifest))
            return hob_error_set(error, HOB_ERR_MEMORY, "out of memory");
    }
    if (hob__candidate_usable(candidate)) {
        target->library =
            candidate->library ? realpath(candidate->library, NULL) : NULL;
        if (target->library)
            return HOB_OK;
        (void)snprintf(text, sizeof(text), "%s: %s: %s: %s",
                       hob__reason_name(HOB__REASON_LIBRARY_MISSING),
                       candidate->library ? candidate->library : "no library",
                       strerror(errno),
                       hob__reason_hint(HOB__REASON_LIBRARY_MISSING));
        check_add(report, CHECK_LOAD, "", "", "manifest", "", text);
        return HOB_OK;
    }
    (void)snprintf(text, sizeof(text), "%s: %s%s%s%s%s",
                   hob__reason_name(record->reason),
                   hob__reason_text(record->reason), record->detail ? ": " : "",
                   record->detail ? record->detail : "",
                   *record->hint ? ": " : "", record->hint);
    check_add(report, manifest ? CHECK_LOAD : CHECK_MANIFEST, "", "",
              "manifest", "", text);
    return HOB_OK;
}

hob_status check_target_open(const char *path, struct check_target *target,
                             struct check_report *report, hob_error *error)
{
    struct hob__loader *loader = NULL;
    hob_status status;
    size_t size = 0;
    char *text;

    memset(target, 0, sizeof(*target));
    target->manifest = resolve(path, error);
    if (!target->manifest)
        return HOB_ERR_ARGUMENT;
    loader = open_alone(target->manifest, error);
    if (!loader || !hob__loader_count(loader)) {
        hob__loader_close(loader);
        if (!loader)
            return HOB_ERR_ARGUMENT;
        return hob_error_set(error, HOB_ERR_ARGUMENT,
                             "%s: no manifest was found", target->manifest);
    }
    status = read_candidate(target, hob__loader_get(loader, 0), report, error);
    hob__loader_close(loader);
    text = status ? NULL : read_file(target->manifest, &size);
    if (text)
        check_hints_read(target, text, size, report);
    free(text);
    return status;
}

void check_target_release(struct check_target *target)
{
    for (uint32_t i = 0; i < target->op_count; i++)
        free(target->ops[i].name);
    free(target->ops);
    free(target->manifest);
    free(target->library);
    free(target->id);
    free(target->version);
    free(target->layer);
    memset(target, 0, sizeof(*target));
}
