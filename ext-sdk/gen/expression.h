/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.h - the expressions of "infer", checked and made C.
 *
 *   expr   := or;  or := and { 'or' and };  and := not { 'and' not }
 *   not    := 'not' not | sum [ ('==' '!=' '<' '<=' '>' '>=') sum ]
 *   sum    := term { ('+' '-') term };  term := factor { ('*' '/' '%') factor }
 *   factor := '-' factor | '(' expr ')' | number | 'true' | 'false'
 *           | name | name '[' integer ']' | function '(' .. ')' | enumerator
 *
 * A name is a parameter's flat one or a "let"'s. An enumerator may stand where
 * an enum is compared or wanted. The C text refers to "in", a struct
 * hob_infer, and to "let_NAME".
 */
#ifndef GEN_EXPRESSION_H
#define GEN_EXPRESSION_H

#include "gen.h"

enum gen_kind { GEN_INT = 1, GEN_BOOL, GEN_F64, GEN_ENUM };

/* Something that "let" names. */
struct gen_let {
    const char *name;
    enum gen_kind kind;
};

/* What expressions of one op know. */
struct gen_names {
    const struct gen_op *op;
    const struct gen_let *lets;
    uint32_t let_count;
};

/* Number of flat parameter NAME, or -1. */
int gen_find_param(const struct gen_op *op, const char *name);

/*
 * The expression in the string VALUE, of kind WANTED, 0 for any but an enum;
 * ENUMERATION says which enum, if that is wanted. The caller frees *OUT_C.
 */
hob_status gen_expression(const struct gen_names *names,
                          const struct hob__json_value *value,
                          enum gen_kind wanted,
                          const struct hob__param *enumeration,
                          enum gen_kind *out_kind, char **out_c,
                          hob_error *error);

/*
 * One item of a shape: an integer, an expression or a slice of a parameter,
 * as statements that append to "out[RESULT]".
 */
hob_status gen_shape_item(const struct gen_names *names,
                          const struct hob__json_value *value, uint32_t result,
                          struct hob__text *out, hob_error *error);
/* A whole shape in one string: a parameter, or broadcast(a, b, ..). */
hob_status gen_shape_string(const struct gen_names *names,
                            const struct hob__json_value *value,
                            uint32_t result, struct hob__text *out,
                            hob_error *error);

#endif
