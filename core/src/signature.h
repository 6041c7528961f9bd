/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.h - the signature of an op, parsed.
 *
 * The core and the generator both compile signature.c, signature_text.c and
 * type_defs.c.
 *
 *   signature := '(' [ param { ',' param } ] ')' '->' results
 *   param     := name ':' type [ '?' ] [ '=' default ]
 *   type      := kind | '[' kind ']' | 'scalar' | 'f64' | 'i64' | 'bool'
 *              | 'str' | 'dtype' | 'shape' | 'device' | '[i64]' | '[f64]'
 *              | 'enum(' name { ',' name } ')' | TypeName
 *   kind      := 'Float' | 'Int' | 'Bool' | 'Quantized' | 'Num' | 'Any'
 *   results   := result | '(' result { ',' result } ')' | '[' item ']'
 *   result    := [ name ':' ] ( item [ '?' ] | 'value' '(' plain ')' )
 *              | TypeName
 *   item      := name of a tensor param (its dtype) | name of a dtype param
 *              | dtype name | 'Bool' (dtype bool) | kind (infer sets dtype)
 *   plain     := 'f64' | 'i64' | 'bool' | 'dtype' | 'enum(..)', with '?'
 *
 * A parameter or result whose name begins with '_' is hidden: the core fills
 * the parameter in, wrappers keep the result from their callers.
 *
 * Values of extension types (type_defs.h) lie FLAT in the arrays below: a
 * struct is its fields, "boxes.coords", "boxes.count"; an enum is an
 * enumerator with the enum's own name and the fields of all its variants,
 * "operand.Sparse.values", which are there if the enumerator says so. A
 * signature's flat text has dots in its names; it is what plugins carry.
 */
#ifndef HOB__SIGNATURE_H
#define HOB__SIGNATURE_H

#include <hob/types.h>

enum hob__type {
    HOB__TYPE_TENSOR = 1,
    HOB__TYPE_TENSORS, /* [T] */
    HOB__TYPE_SCALAR,
    HOB__TYPE_F64,
    HOB__TYPE_I64,
    HOB__TYPE_BOOL,
    HOB__TYPE_STR,
    HOB__TYPE_DTYPE,
    HOB__TYPE_SHAPE,
    HOB__TYPE_DEVICE,
    HOB__TYPE_I64S,
    HOB__TYPE_F64S,
    HOB__TYPE_ENUM,
    HOB__TYPE_NAMED /* a struct or enum of the extension */
};

enum hob__param_flags {
    HOB__PARAM_OPTIONAL = 1, /* T?; may be absent */
    HOB__PARAM_DEFAULT = 2,  /* has a default */
    HOB__PARAM_HIDDEN = 4,
    HOB__PARAM_NEEDED = 8 /* of a variant: absent only if the variant is */
};

/* The tag_param of what belongs to no variant. */
enum { HOB__NO_TAG = 0xff };

struct hob__type_def; /* type_defs.h */
struct hob__types;

struct hob__param {
    char *name;
    uint8_t type;      /* enum hob__type */
    uint8_t flags;     /* enum hob__param_flags */
    uint8_t tag_param; /* the enumerator that says whether this is there */
    uint8_t variant;   /* its value then */
    uint16_t enumerator_count;
    uint32_t mask;    /* tensors: the dtypes of the kind (HOB_MASK_*) */
    const char *kind; /* tensors: "Float" ...; named types: the name */
    const struct hob__type_def *def; /* named types, once resolved */
    char **enumerators;
    hob_value value;    /* the default, if HOB__PARAM_DEFAULT */
    char *default_text; /* as written; NULL if none */
};

enum hob__result_source {
    HOB__RESULT_PARAM = 1, /* the dtype of tensor parameter `param` */
    HOB__RESULT_ATTRIBUTE, /* the value of dtype parameter `param` */
    HOB__RESULT_DTYPE,     /* always `dtype` */
    HOB__RESULT_INFERRED   /* the infer function sets it */
};

struct hob__result {
    uint8_t source; /* enum hob__result_source */
    uint8_t param;
    uint8_t dtype;
    uint8_t is_list;   /* -> [T]: the infer function gives the count */
    uint8_t flags;     /* enum hob__param_flags */
    uint8_t tag_plain; /* as tag_param, among the plain results */
    uint8_t variant;
    char *text; /* as written, as in "x" or "Bool" */
    char *name; /* NULL if it has none */
};

/* A parameter or result as it was written: one of the flat arrays', or the
 * fields of a type, which begin at FIRST. */
struct hob__item {
    const char *name;                /* NULL: a result without a name */
    const struct hob__type_def *def; /* NULL: not of an extension type */
    uint8_t first;                   /* of params, or of results */
    uint8_t first_plain;             /* results: of plains */
    uint8_t is_plain;                /* results: plains[first_plain] */
    uint8_t reserved;
};

struct hob__signature {
    uint16_t param_count;
    uint16_t result_count;
    uint16_t required_count; /* leading parameters that a caller must give */
    uint16_t tensor_count;   /* parameters that are tensors or lists */
    uint16_t plain_count;    /* results that are no tensors */
    uint16_t item_count;
    uint16_t result_item_count;
    /* As many as there are, but at least one result; in one block, which
     * begins with the parameters. */
    struct hob__param *params;
    struct hob__result *results;
    struct hob__param *plains;
    struct hob__item *items;
    struct hob__item *result_items;
};

/*
 * Parse TEXT, in which the type names are those of TYPES (NULL: there are
 * none, and a name is an error). TYPES must outlive *OUT. On failure
 * *OUT_COLUMN (from 1) and *OUT_MESSAGE (static text) say where and what;
 * nothing is kept. Release what was parsed with hob__signature_release().
 */
hob_status hob__signature_parse_with(const char *text,
                                     const struct hob__types *types,
                                     struct hob__signature *out,
                                     int *out_column, const char **out_message);
/* The same for a flat text: without type names. */
hob_status hob__signature_parse(const char *text, struct hob__signature *out,
                                int *out_column, const char **out_message);
void hob__signature_release(struct hob__signature *signature);

/* Parse TEXT, a type alone as in "Float?", into *OUT, which has no name. A
 * type name stays unresolved. Release it with hob__param_release(). */
hob_status hob__signature_parse_type(const char *text, struct hob__param *out,
                                     int *out_column, const char **out_message);
void hob__param_release(struct hob__param *param);
/* Free the text or list of a VALUE that was read from a text. */
void hob__value_release(const hob_value *value);

/* SIGNATURE as flat text, without the defaults that the caller may leave out
 * being lost; NULL without memory. The caller frees it. */
char *hob__signature_text(const struct hob__signature *signature);

/*
 * Whether a kernel written for HAVE serves an op declared as WANT: equal, or
 * HAVE lacks only trailing parameters of WANT that have defaults or are
 * optional.
 */
int hob__signature_compatible(const struct hob__signature *want,
                              const struct hob__signature *have);

/* Where they are not compatible, what differs first: "b stands where beta is
 * declared". */
void hob__signature_difference(const struct hob__signature *want,
                               const struct hob__signature *have, char *text,
                               size_t size);

/* Whether a kernel written for the flat TEXT serves WANT; if not, WHY says what
 * differs first. */
int hob__signature_serves(const struct hob__signature *want, const char *text,
                          char *why, size_t size);

#endif
