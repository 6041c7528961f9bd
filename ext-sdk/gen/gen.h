/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen.h - hob-sdk gen: what its files share.
 *
 * A schema is read (schema.c, extension.c), checked as a whole (check.c) and
 * written out (header.c, table.c, glue.c, page.c). All errors carry the place
 * in the JSON text. The program runs on the building machine, links nothing
 * of libhob and keeps no state outside struct gen_schema.
 */
#ifndef GEN_H
#define GEN_H

#include "json.h"
#include "signature.h"
#include "text.h"

#include <stdio.h>

/* The names of enum hob__fuse, in its order. */
enum { GEN_FUSE_COUNT = 5, GEN_FUSE_VIEW = 3 };
extern const char *const gen_fuse_names[GEN_FUSE_COUNT];

/* The names of enum hob__quantized, in its order. */
enum { GEN_QUANTIZED_COUNT = 4, GEN_QUANTIZED_KEEP = 1, GEN_QUANTIZED_VIEW };
extern const char *const gen_quantized_names[GEN_QUANTIZED_COUNT];

/* One file that was read. */
struct gen_source {
    char *path;                /* as given, for messages */
    struct hob__json_doc *doc; /* strings of the schema live in here */
};

/* What an extension's author supplies for one selector. */
struct gen_impl {
    const char *selector;
    const struct hob__json_value *place;
    bool kernel;
    bool prepare;
    bool layer;
    bool backward;
    bool contiguous;
    bool in_place;
    bool recompute;
    bool has_save_for;
    uint32_t dtype_count; /* one mask a tensor parameter */
    uint32_t dtypes[HOB_MAX_PARAMS];
    uint32_t save_args; /* bits as in struct hob_backward */
    uint32_t save_rets;
    uint32_t save_for[HOB_MAX_PARAMS];
};

struct gen_alias {
    uint8_t result;
    uint8_t param;
};

struct gen_op {
    const struct gen_source *source;
    const struct hob__json_value *place;
    const char *name;   /* as written */
    const char *family; /* built-in ops */
    char *full_name;    /* "demo.square"; "add" */
    char *c_name;       /* of the wrapper: "demo_square"; "hob_add" */
    uint32_t id;
    const char *signature_text;
    struct hob__signature signature;
    char *arg_names[HOB_MAX_PARAMS]; /* of C parameters, no keyword */
    const char *infer;               /* NULL where dynamic and not given */
    const char *doc;
    uint8_t fuse;
    uint8_t quantized; /* index in gen_quantized_names */
    bool body;
    bool dynamic;
    bool random;
    bool infer_function; /* the author's own */
    uint8_t alias_count;
    struct gen_alias aliases[HOB_MAX_RESULTS];
    const struct hob__json_value *uses; /* an array, or NULL */
    struct gen_impl *impls;
    uint32_t impl_count;
};

struct gen_schema {
    bool is_extension;
    struct gen_source **sources; /* owned, also by pointer */
    uint32_t source_count;
    struct gen_op *ops;
    uint32_t op_count;
    struct gen_op *implements; /* kernels for ops declared elsewhere */
    uint32_t implements_count;

    /* Extensions only. */
    const char *id;
    const char *version;
    const char *name_space;
    char *prefix; /* of every C name: "demo" */
};

/* What the command line asks for; NULL: not wanted. */
struct gen_options {
    const char *ops_dir;
    const char *manifest;
    const char *header;
    const char *table;
    const char *bodies;
    const char *infer;
    const char *glue;
    const char *markdown;
};

/* ---- source.c ---- */

/* Read and parse the file PATH into a new source of SCHEMA. */
hob_status gen_source_open(struct gen_schema *schema, const char *path,
                           struct gen_source **out_source, hob_error *error);

/* "PATH:LINE:COLUMN: POINTER: message" for VALUE of SOURCE. */
hob_status gen_fail(const struct gen_source *source,
                    const struct hob__json_value *value, hob_error *error,
                    const char *format, ...) HOB_PRINTF(4, 5);
/* The same for character COLUMN (from 1) of the string VALUE. */
hob_status gen_fail_inside(const struct gen_source *source,
                           const struct hob__json_value *value, int column,
                           hob_error *error, const char *message);
hob_status gen_no_memory(hob_error *error);

/* Refuse keys of OBJECT that are not in KNOWN; "x-" keys may always stand. */
hob_status gen_check_keys(const struct gen_source *source,
                          const struct hob__json_value *object,
                          const char *const *known, size_t known_count,
                          hob_error *error);

/* Typed members. A missing one is an error if REQUIRED, else *OUT stays. */
hob_status gen_get_string(const struct gen_source *source,
                          const struct hob__json_value *object, const char *key,
                          bool required, const char **out_string,
                          hob_error *error);
hob_status gen_get_bool(const struct gen_source *source,
                        const struct hob__json_value *object, const char *key,
                        bool *out_bool, hob_error *error);
hob_status gen_get_member(const struct gen_source *source,
                          const struct hob__json_value *object, const char *key,
                          enum hob__json_type type, bool required,
                          const struct hob__json_value **out_value,
                          hob_error *error);

/* Write TEXT to PATH, aside first, then renamed; a file that holds it already
 * stays untouched. TEXT is emptied. */
hob_status gen_write(const char *path, struct hob__text *text,
                     hob_error *error);

/* ---- schema.c ---- */

/* Read the common part of an op; OP was zeroed. */
hob_status gen_read_op(struct gen_schema *schema,
                       const struct gen_source *source,
                       const struct hob__json_value *object, struct gen_op *op,
                       hob_error *error);
/* Parse OP's signature and check that its names can stand in C. */
hob_status gen_read_signature(struct gen_op *op, hob_error *error);
/* The families in the folder DIR, sorted by file name, ops sorted by id. */
hob_status gen_read_builtin(struct gen_schema *schema, const char *dir,
                            hob_error *error);
struct gen_op *gen_add_op(struct gen_op **ops, uint32_t *count);
bool gen_is_lower_name(const char *name);
void gen_schema_release(struct gen_schema *schema);

/* ---- extension.c ---- */

hob_status gen_read_extension(struct gen_schema *schema, const char *path,
                              hob_error *error);

/* ---- check.c: what only the whole schema shows ---- */

hob_status gen_check(const struct gen_schema *schema, hob_error *error);

/* ---- emit.c: pieces of C ---- */

void gen_upper(struct hob__text *out, const char *name);
/* NAME with what cannot stand in a C name as '_'. */
char *gen_c_word(const char *name);
void gen_c_string(struct hob__text *out, const char *string);
/* A comment of whole sentences, wrapped; INDENT spaces before. */
void gen_comment(struct hob__text *out, const char *text,
                 const char *last_line);
/* "HEAD(item, item, ...)" wrapped at 80 columns below the bracket. */
void gen_wrapped(struct hob__text *out, const char *head, char *const *items,
                 uint32_t count, const char *tail);

/* The C parameters of OP: scope, its visible ones, its outs. */
enum gen_side {
    GEN_CALLER, /* a wrapper's: hidden parameters are left out */
    GEN_BODY    /* a body's: all of them */
};
void gen_prototype(struct hob__text *out, const struct gen_op *op,
                   enum gen_side side, const char *head, const char *name,
                   const char *tail);
/* Where a list of results is one, and whether there are several. */
bool gen_returns_list(const struct gen_op *op);
bool gen_returns_tensor(const struct gen_op *op);
/* The name of the C enum of parameter INDEX, as in "demo_pad_mode". */
void gen_enum_name(struct hob__text *out, const struct gen_op *op,
                   uint32_t index);
void gen_enums(struct hob__text *out, const struct gen_op *op);
/* A function GLUE that unpacks a call into the typed body BODY. */
void gen_body_glue(struct hob__text *out, const struct gen_op *op,
                   const char *storage, const char *glue, const char *body);
/* The helper that such functions share. */
void gen_body_helper(struct hob__text *out, const char *storage);
void gen_aliases(struct hob__text *out, const struct gen_op *op);

/* ---- header.c, table.c, glue.c, page.c: the outputs ---- */

void gen_header_builtin(struct hob__text *out, const struct gen_schema *schema);
void gen_header_extension(struct hob__text *out,
                          const struct gen_schema *schema);
void gen_table(struct hob__text *out, const struct gen_schema *schema);
void gen_bodies(struct hob__text *out, const struct gen_schema *schema);
void gen_infer(struct hob__text *out, const struct gen_schema *schema);
void gen_page(struct hob__text *out, const struct gen_schema *schema);
/* HEADER: the name under which the glue includes the public header. */
void gen_glue(struct hob__text *out, const struct gen_schema *schema,
              const char *header);

#endif
