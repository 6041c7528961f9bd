/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - what the core knows of an op.
 *
 * A struct hob__op_decl is what the generator writes into ops_table.c for a
 * built-in op; for an extension op the registry fills one from the manifest
 * and the library's table. The signature text is parsed into a struct
 * hob__signature by signature.c, which the generator shares: one parser, one
 * grammar, for built-in and extension ops alike.
 */
#ifndef HOB__SCHEMA_H
#define HOB__SCHEMA_H

#include <hob/ext/plugin.h>

#include "signature.h"

enum hob__fuse {
    HOB__FUSE_OPAQUE = 0,
    HOB__FUSE_ELEMENTWISE,
    HOB__FUSE_REDUCE,
    HOB__FUSE_VIEW,
    HOB__FUSE_INLINE
};

/* What becomes of float results where an argument was quantized and had to be
 * dequantized for the op; see quantized.c. */
enum hob__quantized {
    HOB__QUANTIZED_PROPAGATE = 0, /* quantized again if the scheme says so */
    HOB__QUANTIZED_KEEP,          /* always quantized again */
    HOB__QUANTIZED_VIEW,          /* the op moves elements only: likewise */
    HOB__QUANTIZED_NEVER          /* floats */
};

enum hob__op_flags {
    HOB__OP_DYNAMIC = 1, /* result sizes depend on data */
    HOB__OP_RANDOM = 2   /* the last two parameters are _seed and _offset */
};

/*
 * For ops that are views: describe OUT over the elements of IN, the op's
 * first argument. OUT has the inferred dtype, rank and shape; the function
 * sets strides and data. Answers HOB_ERR_UNSUPPORTED, without a message,
 * where no strides express it: the core then copies IN first.
 */
typedef hob_status (*hob__view_fn)(struct hob_call *call,
                                   const struct hob_view *in,
                                   struct hob_view *out);

/* Result RESULT may use the memory of parameter PARAM, if that was moved. */
struct hob__alias {
    uint8_t result;
    uint8_t param;
};

struct hob__op_decl {
    const char *name;
    const char *family;
    uint32_t id;
    uint8_t fuse;  /* enum hob__fuse */
    uint8_t flags; /* enum hob__op_flags */
    uint8_t alias_count;
    uint8_t quantized;     /* enum hob__quantized */
    const char *signature; /* as written */
    const char *doc;
    hob_infer_fn infer;
    hob__view_fn view; /* for HOB__FUSE_VIEW */
    hob_body_fn body;  /* NULL: no default body */
    struct hob__alias aliases[HOB_MAX_RESULTS];
};

/* The generated table: the built-in ops, by number less one. */
extern const struct hob__op_decl hob__builtin_ops[];
extern const uint32_t hob__builtin_op_count;

/* The standard inference function called NAME; NULL if there is none. */
hob_infer_fn hob__infer_find(const char *name);

#endif
