/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen.h - hob-sdk gen: what its files share.
 *
 * A schema is read (schema.c; of an extension extension.c, selector.c,
 * implementation.c, flat.c, infer.c with expression.c), checked as a whole
 * (check.c, names.c) and written out: the public header (header.c, types.c),
 * the core's table (table.c), an extension's glue (glue.c, body.c, kernels.c)
 * and the reference page (page.c). place.c knows where each flat parameter
 * stands in C, declare.c and value.c make pieces of C, emit.c text. All errors
 * carry the place in the JSON text. The program runs on the building machine,
 * links nothing of libhob and keeps no state outside struct gen_schema.
 */
#ifndef GEN_H
#define GEN_H

#include "json.h"
#include "signature.h"
#include "text.h"
#include "type_defs.h"

#include <stdio.h>

#define GEN_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* The names of enum hob__fuse, in its order. */
enum { GEN_FUSE_COUNT = 5, GEN_FUSE_VIEW = 3, GEN_FUSE_INLINE = 4 };
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
    bool keep;
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

/* Where a flat parameter or result stands in C. */
struct gen_place {
    uint8_t item;    /* which parameter or result, as written */
    char *tail;      /* in there: "coords", "u.sparse.values"; "": all of it */
    char *member;    /* for kernels: "boxes_coords", "operand.u.dense" */
    char *enum_name; /* enums: "vision_operand_variant" */
    const struct hob__type_def *def; /* the enum whose variant it is, or NULL */
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
    char *flat_text;                  /* the signature that the tables carry */
    const char *prefix;               /* the schema's */
    char *item_names[HOB_MAX_PARAMS]; /* of C parameters, no keyword */
    char *out_names[HOB_MAX_RESULTS]; /* and of C results */
    struct gen_place params[HOB_MAX_PARAMS];
    struct gen_place rets[HOB_MAX_RESULTS];
    struct gen_place plains[HOB_MAX_RESULTS];
    const char *infer; /* NULL where dynamic and not given */
    const char *doc;
    uint8_t fuse;
    uint8_t quantized; /* index in gen_quantized_names */
    bool body;
    bool dynamic;
    bool random;
    bool infer_function;                        /* the author's own */
    const struct hob__json_value *infer_object; /* expressions, or NULL */
    char *infer_code;                           /* and what they become */
    uint32_t consumes;                          /* bits of parameters */
    uint8_t alias_count;
    struct gen_alias aliases[HOB_MAX_RESULTS];
    const struct hob__json_value *uses; /* an array, or NULL */
    struct gen_impl *impls;
    uint32_t impl_count;
};

struct gen_schema {
    bool is_extension;
    const struct gen_source *support; /* one of them, for the page; or NULL */
    struct gen_source **sources;      /* owned, also by pointer */
    uint32_t source_count;
    struct gen_op *ops;
    uint32_t op_count;
    struct gen_op *implements; /* kernels for ops declared elsewhere */
    uint32_t implements_count;

    /* Extensions only. */
    struct hob__types types;
    bool instance; /* the author opens and closes one */
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
    const char *support; /* with markdown: what "hob ops --support" printed */
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

/* Refuse keys of OBJECT that are not in KNOWN; "x-" keys may always stand, and
 * "$schema", which is for editors. */
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
hob_status gen_read_signature(const struct gen_schema *schema,
                              struct gen_op *op, bool is_own, hob_error *error);
/* The families in the folder DIR, sorted by file name, ops sorted by id. */
hob_status gen_read_builtin(struct gen_schema *schema, const char *dir,
                            hob_error *error);
struct gen_op *gen_add_op(struct gen_op **ops, uint32_t *count);
bool gen_is_lower_name(const char *name);
void gen_schema_release(struct gen_schema *schema);

/* ---- extension.c ---- */

hob_status gen_read_extension(struct gen_schema *schema, const char *path,
                              hob_error *error);

/* ---- implementation.c: what the author supplies for a selector ---- */

/* The fields of OBJECT, whose keys were checked, into IMPL. */
hob_status gen_read_impl(const struct gen_op *op,
                         const struct hob__json_value *object,
                         struct gen_impl *impl, hob_error *error);
/* "implementations" of OP. */
hob_status gen_read_impls(struct gen_op *op, hob_error *error);

/* ---- selector.c: "backends", fusion, ops without a tensor ---- */

hob_status gen_check_selector(const struct gen_source *source,
                              const struct hob__json_value *place,
                              const char *name, hob_error *error);
/* What "backends", "fuse" and "implementations" say together. */
hob_status gen_check_backends(const struct gen_op *op, hob_error *error);

/* ---- flat.c: flat parameters and results by name ---- */

/* Bits of the parameters that VALUE, a name, means, tensors all of them: a
 * flat one, or all tensor fields of a struct or an enum. */
hob_status gen_tensor_params(const struct gen_op *op,
                             const struct hob__json_value *value,
                             const char *name, uint32_t *out_bits,
                             hob_error *error);
/* The same for a result, by name or by number. */
hob_status gen_tensor_results(const struct gen_op *op,
                              const struct hob__json_value *value,
                              uint32_t *out_bits, hob_error *error);
/* "aliases" and "consumes". */
hob_status gen_read_memory(struct gen_op *op, hob_error *error);

/* ---- infer.c ---- */

/* Read op->infer_object into op->infer_code. */
hob_status gen_read_infer_object(struct gen_op *op, hob_error *error);
/* The infer function that it becomes. */
void gen_infer_glue(struct hob__text *out, const struct gen_op *op);

/* ---- names.c: what is written must have names of its own in C ---- */

hob_status gen_check_names(const struct gen_schema *schema, hob_error *error);

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

/* The expression TEXT, wrapped at 80 columns; MARGIN spaces before each line.
 */
void gen_flow(struct hob__text *out, uint32_t margin, const char *text);
void gen_aliases(struct hob__text *out, const struct gen_op *op);
/* "demo_square_flex" and TAIL, of OP's implementation for a selector. */
char *gen_impl_name(const struct gen_op *op, const struct gen_impl *impl,
                    const char *tail);

/* ---- types.c: the types of an extension ---- */

/* "boxes.coords" as "BOXES_COORDS", "operand.RowMajor" as
 * "OPERAND_ROW_MAJOR". */
void gen_constant(struct hob__text *out, const char *flat_name);
/* "vision_row_pair"; the caller frees it, as those of all these. */
char *gen_type_name(const char *prefix, const struct hob__type_def *def);
char *gen_variant_enum(const char *prefix, const struct hob__type_def *def);
/* The enum of a field enum(..), "vision_boxes_mode". */
char *gen_field_enum(const char *prefix, const struct hob__type_def *def,
                     const struct hob__variant *variant,
                     const struct hob__param *field);
/* A variant's member in the union. */
char *gen_member_name(const struct hob__variant *variant);
/* "VISION_OPERAND_DENSE" of variant number VARIANT. */
void gen_enumerator(struct hob__text *out, const char *prefix,
                    const struct hob__type_def *def, uint32_t variant);
/* enum NAME for a parameter enum(..); OF is for its comment. */
void gen_enum(struct hob__text *out, const char *name, const char *of,
              const struct hob__param *param);
/* Declare the fields of DEF called NAME for a kernel. */
void gen_view_members(struct hob__text *out, const char *prefix,
                      const struct hob__type_def *def, const char *name,
                      uint32_t depth, bool is_output);
void gen_types(struct hob__text *out, const struct gen_schema *schema);

/* ---- place.c ---- */

/* Whether generated code or a language has the name already. */
bool gen_is_taken(const char *name);
char *gen_c_name(const char *name);
hob_status gen_place(struct gen_op *op, hob_error *error);
void gen_place_release(struct gen_op *op);
/* "boxes->coords", with ARROW between ITEM and what is in it. */
void gen_path(struct hob__text *out, const char *item, const char *arrow,
              const struct gen_place *place);

/* ---- declare.c: C declarations ---- */

bool gen_has_count(const struct hob__param *param);
/* Whether a caller may leave it out; what is of a variant is there with it. */
bool gen_is_optional(const struct hob__param *param);
/* Whether it travels as a hob_scalar. */
bool gen_is_tagged(const struct hob__param *param);
/* A member NAME of a struct, for a program or for a kernel. */
enum gen_member { GEN_PROGRAM, GEN_INPUT, GEN_OUTPUT };
void gen_member(struct hob__text *out, const struct hob__param *param,
                const char *name, const char *enum_name, uint32_t depth,
                enum gen_member kind);
/* The enums that stand in OP's own signature. */
void gen_enums(struct hob__text *out, const struct gen_op *op);

/* The C parameters of OP: scope, its visible ones, its outs. */
enum gen_side {
    GEN_CALLER, /* a wrapper's: what is hidden is left out */
    GEN_BODY    /* a body's: all of them */
};
void gen_prototype(struct hob__text *out, const struct gen_op *op,
                   enum gen_side side, const char *head, const char *name,
                   const char *tail);
/* Whether result item INDEX is kept from SIDE. */
bool gen_is_hidden(const struct gen_op *op, uint32_t index, enum gen_side side);
/* Whether the results are one list, or one tensor, which is returned. */
bool gen_returns_list(const struct gen_op *op);
bool gen_returns_tensor(const struct gen_op *op, enum gen_side side);

/* ---- value.c: C expressions ---- */

/* The hob_value of PARAM, which C reaches as PATH. */
void gen_value(struct hob__text *out, const struct hob__param *param,
               const char *path);
/* The payload of SOURCE, a hob_value such as "args[2]", as PARAM's C type. */
void gen_payload(struct hob__text *out, const struct hob__param *param,
                 const char *enum_name, const char *source);
/* "operand->variant == VISION_OPERAND_SPARSE", all that must hold for flat
 * parameter INDEX to be there, each NAME of an item followed by ARROW; false
 * and nothing if it always is. */
bool gen_param_condition(struct hob__text *out, const struct gen_op *op,
                         uint32_t index, const char *arrow);
/* The same for what belongs to variant VARIANT of plain result TAG. */
bool gen_result_condition(struct hob__text *out, const struct gen_op *op,
                          uint8_t tag, uint8_t variant, const char *arrow);

/* ---- body.c: from the uniform call to a typed body ---- */

/* A function GLUE that unpacks a call into the typed body BODY. */
void gen_body_glue(struct hob__text *out, const struct gen_op *op,
                   const char *storage, const char *glue, const char *body);
/* The helpers that such functions of OPS share. */
void gen_body_helpers(struct hob__text *out, const struct gen_op *ops,
                      uint32_t count, const char *storage);

/* ---- kernels.c: what kernels and backwards read a call with ---- */

void gen_indices(struct hob__text *out, const struct gen_op *op);
void gen_unpack(struct hob__text *out, const struct gen_op *op);

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
