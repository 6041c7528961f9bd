/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature.h - the signature of an op, parsed.
 *
 * Stands alone: the core and the generator both compile signature.c, which
 * needs nothing but the C library and hob/types.h.
 *
 *   signature := '(' [ param { ',' param } ] ')' '->' result
 *   param     := name ':' type [ '?' ] [ '=' default ]
 *   type      := kind | '[' kind ']' | 'scalar' | 'f64' | 'i64' | 'bool'
 *              | 'str' | 'dtype' | 'shape' | 'device' | '[i64]' | '[f64]'
 *              | 'enum(' name { ',' name } ')' | TypeName
 *   kind      := 'Float' | 'Int' | 'Bool' | 'Quantized' | 'Num' | 'Any'
 *   result    := item | '(' item { ',' item } ')' | '[' item ']'
 *   item      := name of a tensor param (its dtype) | name of a dtype param
 *              | dtype name | 'Bool' (dtype bool) | kind (infer sets dtype)
 *
 * A parameter whose name begins with '_' is hidden: the core fills it in.
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
    HOB__PARAM_HIDDEN = 4
};

struct hob__param {
    char *name;
    uint8_t type;  /* enum hob__type */
    uint8_t flags; /* enum hob__param_flags */
    uint16_t enumerator_count;
    uint32_t mask;    /* tensors: the dtypes of the kind (HOB_MASK_*) */
    const char *kind; /* tensors: "Float" ...; named types: the name */
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
    uint8_t is_list; /* -> [T]: the infer function gives the count */
    char *text;      /* as written, as in "x" or "Bool" */
};

struct hob__signature {
    uint16_t param_count;
    uint16_t result_count;
    uint16_t required_count; /* leading parameters that a caller must give */
    uint16_t tensor_count;   /* parameters that are tensors or lists */
    struct hob__param params[HOB_MAX_PARAMS];
    struct hob__result results[HOB_MAX_RESULTS];
};

/*
 * Parse TEXT. On failure *OUT_COLUMN (from 1) and *OUT_MESSAGE (static text)
 * say where and what; nothing is kept. Release what was parsed with
 * hob__signature_release().
 */
hob_status hob__signature_parse(const char *text, struct hob__signature *out,
                                int *out_column, const char **out_message);
void hob__signature_release(struct hob__signature *signature);

/*
 * Whether a kernel written for HAVE serves an op declared as WANT: equal, or
 * HAVE lacks only trailing parameters of WANT that have defaults or are
 * optional.
 */
int hob__signature_compatible(const struct hob__signature *want,
                              const struct hob__signature *have);

#endif
