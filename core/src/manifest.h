/* SPDX-License-Identifier: Apache-2.0 */
/*
 * manifest.h - the parsed form of a plugin's manifest.
 *
 * A manifest says everything that the core must know before it opens a
 * library. Parsing runs no plugin code and touches no other file. A parsed
 * manifest is immutable; any number of threads may read it.
 *
 * - Strings are NUL-terminated UTF-8 without inner NUL, owned by the manifest.
 * - Lists are a pointer and a count; an absent list has the count 0.
 * - An absent optional string is NULL.
 */
#ifndef HOB__MANIFEST_H
#define HOB__MANIFEST_H

#include "arena.h"
#include "reasons.h"
#include "semver.h"
#include "type_defs.h"

#include <hob/status.h>

#include <stdbool.h>
#include <stdint.h>

enum hob__plugin_kind {
    HOB__KIND_BACKEND,
    HOB__KIND_DECORATOR,
    HOB__KIND_EXTENSION
};

/* What a decorator does with an op that does not list it. */
enum hob__unlisted {
    HOB__UNLISTED_PASS,    /* hand it down whole */
    HOB__UNLISTED_BARRIER, /* evaluate the inputs, then call below */
    HOB__UNLISTED_REFUSE   /* panic when it would have to act */
};

struct hob__strings {
    const char **items;
    uint32_t count;
};

/* A place in the manifest, for messages; line and column start at 1. */
struct hob__place {
    uint32_t line;
    uint32_t column;
};

struct hob__manifest_abi {
    uint32_t major;
    uint32_t required_minor;
    uint32_t built_minor; /* required_minor where it is not given */
};

/* One build of the library. */
struct hob__manifest_variant {
    const char *path;        /* as written; see MAN-4 */
    struct hob__strings cpu; /* features it needs, as in "avx512f" */
    const char *sha256;      /* lower-case hex, or NULL */
};

/* The builds for one platform. TRIPLE is NULL where it is not restricted. */
struct hob__manifest_target {
    const char *triple;
    struct hob__manifest_variant *variants;
    uint32_t variant_count;
};

struct hob__manifest_backend {
    const char *selector;
    const char *family;        /* or NULL: no family */
    const char *runtime;       /* or NULL: its selector says it all */
    struct hob__strings needs; /* libraries without which it cannot work */
    int32_t priority;
};

struct hob__manifest_option {
    const char *name;
    struct hob__strings values; /* what it may be; empty: any string */
    const char *initial;        /* the default: the first value, or NULL */
    const char *doc;
};

struct hob__manifest_decorator {
    const char *selector;
    struct hob__manifest_option *options;
    uint32_t option_count;
    enum hob__unlisted unlisted;
};

enum hob__condition {
    HOB__WHEN_ALWAYS,
    HOB__WHEN_FEATURE, /* "feature:NAME": the extension's feature is on */
    HOB__WHEN_PLUGIN   /* "plugin:ID": that plugin is usable */
};

/* One element of an op's "backends". */
struct hob__manifest_selector {
    const char *name; /* a backend, a family, a decorator or "*" */
    enum hob__condition when;
    const char *when_name; /* NULL for HOB__WHEN_ALWAYS */
    struct hob__place place;
};

/* One element of "ops". */
struct hob__manifest_op {
    const char *name;      /* as written, without the namespace: "square" */
    const char *full_name; /* "demo.square"; the bare name without namespace */
    const char *signature; /* as written: "(boxes: Boxes) -> x" */
    const char *flat;      /* without type names; else the same */
    const char *infer;     /* name of the inference rule, or NULL; "function"
                              stands for expressions too */
    const char *fuse;      /* elementwise reduce view inline opaque, or NULL */
    const char *doc;       /* or NULL */
    uint8_t quantized;     /* enum hob__quantized */
    struct hob__strings uses; /* the ops that its body calls */
    bool has_body;
    bool dynamic;       /* result sizes depend on data; no infer needed */
    bool deterministic; /* default true */
    bool capture;       /* may be captured and replayed; default true */
    bool random;        /* its last two parameters are _seed and _offset */
    struct hob__manifest_selector *selectors;
    uint32_t selector_count;
    struct hob__place place;
};

struct hob__manifest_feature {
    const char *name;
    bool enabled; /* the default; the config may say otherwise */
};

struct hob__manifest_implements {
    const char *op; /* full name of an op declared elsewhere */
    const char *selector;
    const char *signature; /* what the kernel is written for; NULL: not said */
    struct hob__place place;
};

/* One element of "patterns", as it is written; pattern.h reads it. */
struct hob__manifest_pattern {
    const char *replace;
    const char *with;
    struct hob__place place;
};

struct hob__manifest_interface {
    const char *name;
    uint32_t version;
};

struct hob__manifest_dependency {
    const char *id;
    const char *range; /* as written: ">=1.2 <2"; NULL: any version */
};

/* Every key here had to be understood. */
struct hob__manifest_requires {
    struct hob__strings host; /* feature names of the host */
    struct hob__manifest_interface *interfaces;
    uint32_t interface_count;
    struct hob__manifest_dependency *plugins;
    uint32_t plugin_count;
    struct hob__strings cpu;
    struct hob__strings files;
};

struct hob__manifest {
    const char *id;
    const char *version; /* as written */
    struct hob__semver semver;
    enum hob__plugin_kind kind;
    struct hob__manifest_abi abi;

    struct hob__manifest_target *targets; /* "library" */
    uint32_t target_count;

    struct hob__manifest_backend backend;     /* if kind says so */
    struct hob__manifest_decorator decorator; /* if kind says so */

    const char *name_space; /* extension: the prefix of its ops, or NULL */
    struct hob__manifest_op *ops;
    uint32_t op_count;
    struct hob__types types; /* has memory of its own */
    struct hob__manifest_feature *features;
    uint32_t feature_count;
    struct hob__manifest_implements *implements;
    uint32_t implements_count;
    struct hob__manifest_pattern *patterns;
    uint32_t pattern_count;

    struct hob__manifest_requires needs; /* "requires" */
    struct hob__strings conflicts;       /* ids not to load together */
    int32_t priority;                    /* -1000..1000, default 0 */
    struct hob__strings capabilities;
    struct hob__strings runtime_files; /* what it will open later */
    struct hob__strings env;           /* variables that it reads */
    const char *sha256;                /* of the library, or NULL */

    const char *name; /* for display; each may be NULL */
    const char *vendor;
    const char *license;
    const char *url;
    const char *description;

    struct hob__strings notes; /* unknown keys and the like: debug records */
    struct hob__arena arena;   /* everything else lives here */
};

/*
 * Parse SIZE bytes at TEXT. PATH is only used in messages. IS_STATIC: the
 * plugin is linked in, so "library" is not needed.
 *
 * On success *OUT_MANIFEST is the caller's, who ends it with
 * hob__manifest_free(). On failure it is NULL, *OUT_REASON says which rule
 * was broken (HOB__REASON_OK only if memory ran out) and ERROR where: file,
 * line, column and JSON pointer. Fails with HOB_ERR_FORMAT, HOB_ERR_MEMORY.
 */
HOB_MUST_CHECK hob_status
hob__manifest_parse(const char *path, const void *text, size_t size,
                    bool is_static, struct hob__manifest **out_manifest,
                    enum hob__reason *out_reason, hob_error *error);

/* Free MANIFEST. Accepts NULL. */
void hob__manifest_free(struct hob__manifest *manifest);

/* Return "backend", "decorator" or "extension". */
const char *hob__plugin_kind_name(enum hob__plugin_kind kind);

/* Return the selector that devices name, or NULL for an extension. */
const char *hob__manifest_selector_name(const struct hob__manifest *manifest);

/* Return the op whose bare or full name is NAME, or NULL. */
const struct hob__manifest_op *
hob__manifest_find_op(const struct hob__manifest *manifest, const char *name);

/* Return the builds for platform TRIPLE, the most specific, or NULL. */
const struct hob__manifest_target *
hob__manifest_target(const struct hob__manifest *manifest, const char *triple);

#endif
