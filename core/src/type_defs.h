/* SPDX-License-Identifier: Apache-2.0 */
/*
 * type_defs.h - the struct and enum types that an extension declares.
 *
 *   "types": {
 *     "Boxes": {"struct": {"coords": "Float", "count": "i64"}},
 *     "Operand": {"enum": {"Dense": "Float",
 *                          "Sparse": {"values": "Float", "indices": "Int"},
 *                          "Empty": null}}}
 *
 * A field has a type as in a signature; "[T]" and "?" may be written. It may
 * be a type that is declared before it, so no type can contain itself. A
 * variant has no field, one without a name, or named ones. Both the core and
 * the generator read types with this module.
 */
#ifndef HOB__TYPE_DEFS_H
#define HOB__TYPE_DEFS_H

#include "signature.h"

#include <stdbool.h>

struct hob__json_doc;
struct hob__json_value;

/* The fields of a struct, or of one variant of an enum. */
struct hob__variant {
    char *name; /* NULL: a struct's only one */
    uint32_t field_count;
    struct hob__param *fields; /* one without a name: the variant's only */
};

struct hob__type_def {
    char *name;
    char *doc; /* NULL if there is none */
    bool is_enum;
    uint32_t variant_count;
    struct hob__variant *variants;
};

struct hob__types {
    uint32_t count;
    struct hob__type_def **defs; /* in the order of declaration */
};

/* Read the object MAP (NULL: there are no types) into *OUT, which is to be
 * released whether this fails or not. */
HOB_MUST_CHECK hob_status hob__types_read(const struct hob__json_doc *doc,
                                          const struct hob__json_value *map,
                                          struct hob__types *out,
                                          hob_error *error);
void hob__types_release(struct hob__types *types);

/*
 * Append the fields of DEF, called NAME, to SIGNATURE's parameters, or to its
 * results and plain results. NULL if all went well, else what is wrong: a
 * static text, "out of memory" among them.
 */
const char *hob__type_add_params(struct hob__signature *signature,
                                 const char *name,
                                 const struct hob__type_def *def);
const char *hob__type_add_results(struct hob__signature *signature,
                                  const char *name,
                                  const struct hob__type_def *def);

#endif
