/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "manifest.h"

#include "manifest_read.h"

#include <hob/host.h>

#include <stdlib.h>
#include <string.h>

/* How many bytes of TRIPLE the target names; 0: it does not match. */
static size_t match_length(const struct hob__manifest_target *target,
                           const char *triple)
{
    size_t length;

    if (!target->triple)
        return 1;
    length = strlen(target->triple);
    if (strncmp(triple, target->triple, length) != 0 ||
        (triple[length] != '\0' && triple[length] != '-'))
        return 0;
    return length;
}

static hob_status read_version(struct hob__reader *reader,
                               const struct hob__json_value *root)
{
    const struct hob__json_value *value = NULL;
    int64_t version = 0;
    hob_status st = hob__reader_need(reader, root, "manifest_version", &value);

    if (st)
        return st;
    st = hob__json_int(reader->doc, value, 1, INT32_MAX, &version,
                       reader->error);
    if (st == HOB_ERR_FORMAT)
        reader->reason = HOB__REASON_MANIFEST_FIELD;
    if (!st && version != 1)
        st = hob__reader_fail(reader, value, HOB__REASON_MANIFEST_VERSION,
                              "manifest_version %d, this Hob reads 1",
                              (int)version);
    return st;
}

static hob_status read_kind(struct hob__reader *reader,
                            const struct hob__json_value *root)
{
    const char *name = NULL;
    int kind;
    hob_status st = hob__reader_string(reader, root, "kind", true, &name);

    if (st)
        return st;
    for (kind = HOB__KIND_BACKEND; kind <= HOB__KIND_EXTENSION; kind++) {
        if (!strcmp(hob__plugin_kind_name((enum hob__plugin_kind)kind), name)) {
            reader->manifest->kind = (enum hob__plugin_kind)kind;
            return HOB_OK;
        }
    }
    return hob__reader_fail(reader, hob__json_member(reader->doc, root, "kind"),
                            HOB__REASON_MANIFEST_FIELD,
                            "backend, decorator or extension expected, found "
                            "\"%s\"",
                            name);
}

static hob_status read_identity(struct hob__reader *reader,
                                const struct hob__json_value *root)
{
    struct hob__manifest *manifest = reader->manifest;
    hob_status st = hob__reader_string(reader, root, "id", true, &manifest->id);

    if (!st && !hob__is_id(manifest->id, 2))
        st = hob__reader_fail(reader, hob__json_member(reader->doc, root, "id"),
                              HOB__REASON_MANIFEST_FIELD,
                              "\"%s\" is no id: 2 to 64 of a-z 0-9 . _ -, "
                              "first a letter or digit",
                              manifest->id);
    if (!st)
        st = hob__reader_string(reader, root, "version", true,
                                &manifest->version);
    if (!st && !hob__semver_parse(manifest->version, &manifest->semver))
        st = hob__reader_fail(
            reader, hob__json_member(reader->doc, root, "version"),
            HOB__REASON_MANIFEST_FIELD,
            "\"%s\" is no semantic version: write 1.0.0", manifest->version);
    return st ? st : read_kind(reader, root);
}

static hob_status read_abi(struct hob__reader *reader,
                           const struct hob__json_value *root)
{
    static const char *const known[] = {"major", "required_minor",
                                        "built_minor", NULL};
    struct hob__manifest_abi *abi = &reader->manifest->abi;
    const struct hob__json_value *object = NULL, *unused = NULL;
    int32_t major = 0, required = 0, built;
    hob_status st = HOB_OK;

    object = hob__json_member(reader->doc, root, "abi");
    if (!object)
        st =
            hob__reader_fail(reader, root, HOB__REASON_MANIFEST_FIELD,
                             "\"abi\" is missing: add \"abi\": {\"major\": %d, "
                             "\"required_minor\": %d},",
                             HOB_ABI_MAJOR, HOB_ABI_MINOR);

    if (!st)
        st = hob__reader_expect(reader, object, HOB__JSON_OBJECT);
    if (!st)
        st = hob__reader_need(reader, object, "major", &unused);
    if (!st)
        st = hob__reader_int(reader, object, "major", 0, UINT16_MAX, &major);
    if (!st)
        st = hob__reader_need(reader, object, "required_minor", &unused);
    if (!st)
        st = hob__reader_int(reader, object, "required_minor", 0, UINT16_MAX,
                             &required);
    built = required;
    if (!st)
        st = hob__reader_int(reader, object, "built_minor", 0, UINT16_MAX,
                             &built);
    if (!st && built < required)
        st = hob__reader_fail(reader, object, HOB__REASON_MANIFEST_FIELD,
                              "required_minor %d is above built_minor %d",
                              (int)required, (int)built);
    abi->major = (uint32_t)major;
    abi->required_minor = (uint32_t)required;
    abi->built_minor = (uint32_t)built;
    return st ? st : hob__reader_note_unknown(reader, object, known);
}

static hob_status read_kind_part(struct hob__reader *reader,
                                 const struct hob__json_value *root)
{
    switch (reader->manifest->kind) {
    case HOB__KIND_BACKEND:
        return hob__reader_backend(reader, root);
    case HOB__KIND_DECORATOR:
        return hob__reader_decorator(reader, root);
    case HOB__KIND_EXTENSION:
        return hob__reader_extension(reader, root);
    }
    return HOB_OK;
}

static hob_status read_optional(struct hob__reader *reader,
                                const struct hob__json_value *root)
{
    struct hob__manifest *manifest = reader->manifest;
    const struct {
        const char *key;
        struct hob__strings *list;
    } lists[] = {{"conflicts", &manifest->conflicts},
                 {"capabilities", &manifest->capabilities},
                 {"runtime_files", &manifest->runtime_files},
                 {"env", &manifest->env}};
    const struct {
        const char *key;
        const char **text;
    } texts[] = {{"name", &manifest->name},
                 {"vendor", &manifest->vendor},
                 {"license", &manifest->license},
                 {"url", &manifest->url},
                 {"description", &manifest->description}};
    hob_status st = hob__reader_int(reader, root, "priority", -1000, 1000,
                                    &manifest->priority);
    size_t i;

    for (i = 0; i < sizeof(lists) / sizeof(lists[0]) && !st; i++)
        st = hob__reader_strings(reader, root, lists[i].key, lists[i].list);
    for (i = 0; i < sizeof(texts) / sizeof(texts[0]) && !st; i++)
        st = hob__reader_string(reader, root, texts[i].key, false,
                                texts[i].text);
    return st ? st : hob__reader_sha256(reader, root, &manifest->sha256);
}

static hob_status read_library(struct hob__reader *reader,
                               const struct hob__json_value *root,
                               bool is_static)
{
    const struct hob__json_value *library =
        hob__json_member(reader->doc, root, "library");

    if (library)
        return hob__reader_library(reader, library);
    return is_static ? HOB_OK
                     : hob__reader_need(reader, root, "library", &library);
}

static hob_status read_all(struct hob__reader *reader, bool is_static)
{
    static const char *const known[] = {"manifest_version",
                                        "id",
                                        "version",
                                        "kind",
                                        "abi",
                                        "library",
                                        "backend",
                                        "decorator",
                                        "namespace",
                                        "ops",
                                        "types",
                                        "features",
                                        "instance",
                                        "implements",
                                        "patterns",
                                        "unlisted",
                                        "requires",
                                        "conflicts",
                                        "priority",
                                        "env",
                                        "capabilities",
                                        "runtime_files",
                                        "sha256",
                                        "name",
                                        "vendor",
                                        "license",
                                        "url",
                                        "description",
                                        "$schema",
                                        NULL};
    const struct hob__json_value *root = hob__json_root(reader->doc);
    hob_status st = hob__reader_expect(reader, root, HOB__JSON_OBJECT);

    if (!st)
        st = read_version(reader, root);
    if (!st)
        st = read_identity(reader, root);
    if (!st)
        st = read_abi(reader, root);
    if (!st)
        st = read_library(reader, root, is_static);
    if (!st)
        st = hob__reader_requires(reader, root);
    if (!st)
        st = read_kind_part(reader, root);
    if (!st)
        st = hob__reader_implements(reader, root);
    if (!st)
        st = hob__reader_patterns(reader, root);
    if (!st)
        st = read_optional(reader, root);
    return st ? st : hob__reader_note_unknown(reader, root, known);
}

hob_status hob__manifest_parse(const char *path, const void *text, size_t size,
                               bool is_static,
                               struct hob__manifest **out_manifest,
                               enum hob__reason *out_reason, hob_error *error)
{
    static const struct hob__json_limits limits = HOB__JSON_MANIFEST_LIMITS;
    struct hob__reader reader = {NULL, NULL, NULL, HOB__REASON_OK, error};
    struct hob__json_doc *doc = NULL;
    hob_status st;

    *out_manifest = NULL;
    *out_reason = HOB__REASON_OK;
    st = hob__json_parse(path, text, size, &limits, &doc, out_reason, error);
    if (st)
        return st;
    reader.doc = doc;
    reader.manifest = calloc(1, sizeof(*reader.manifest));
    if (reader.manifest) {
        reader.arena = &reader.manifest->arena;
        st = read_all(&reader, is_static);
    } else {
        st = hob__reader_no_memory(&reader);
    }
    hob__json_free(doc);
    if (st) {
        hob__manifest_free(reader.manifest);
        *out_reason = reader.reason;
        return st;
    }
    *out_manifest = reader.manifest;
    return HOB_OK;
}

void hob__manifest_free(struct hob__manifest *manifest)
{
    if (!manifest)
        return;
    hob__types_release(&manifest->types);
    hob__arena_release(&manifest->arena);
    free(manifest);
}

const char *hob__plugin_kind_name(enum hob__plugin_kind kind)
{
    static const char *const names[] = {"backend", "decorator", "extension"};

    return names[kind];
}

const char *hob__manifest_selector_name(const struct hob__manifest *manifest)
{
    if (manifest->kind == HOB__KIND_BACKEND)
        return manifest->backend.selector;
    if (manifest->kind == HOB__KIND_DECORATOR)
        return manifest->decorator.selector;
    return NULL;
}

const struct hob__manifest_op *
hob__manifest_find_op(const struct hob__manifest *manifest, const char *name)
{
    uint32_t i;

    for (i = 0; i < manifest->op_count; i++) {
        if (!strcmp(manifest->ops[i].name, name) ||
            !strcmp(manifest->ops[i].full_name, name))
            return &manifest->ops[i];
    }
    return NULL;
}

const struct hob__manifest_target *
hob__manifest_target(const struct hob__manifest *manifest, const char *triple)
{
    const struct hob__manifest_target *best = NULL;
    size_t best_length = 0;
    uint32_t i;

    for (i = 0; i < manifest->target_count; i++) {
        size_t length = match_length(&manifest->targets[i], triple);

        if (length > best_length) {
            best_length = length;
            best = &manifest->targets[i];
        }
    }
    return best;
}
