/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor.h - the words of which expressions and shapes are made; what
 * expression.c and shape.c share.
 */
#ifndef GEN_CURSOR_H
#define GEN_CURSOR_H

#include "expression.h"

enum { GEN_NAME_BYTES = 255 };

/* Where the parser stands; the first failure stays. */
struct gen_cursor {
    const struct gen_names *names;
    const char *text;
    size_t at;
    int depth;
    const struct hob__param *enumeration; /* whose enumerators may stand here */
    bool failed;
    bool no_memory;
    size_t error_at;
    char message[320];
};

/* Begin at the string VALUE. */
hob_status gen_scan_start(struct gen_cursor *c, const struct gen_names *names,
                          const struct hob__json_value *value,
                          hob_error *error);
/* Nothing may follow; then say what failed, if anything did. */
hob_status gen_scan_finish(struct gen_cursor *c,
                           const struct hob__json_value *value,
                           hob_error *error);
void gen_scan_fail(struct gen_cursor *c, size_t at, const char *format, ...)
    HOB_PRINTF(3, 4);

bool gen_scan_is_digit(char c);
/* The next character that is no blank. */
char gen_scan_peek(struct gen_cursor *c);
/* Take PUNCTUATION, or WORD and not a longer one, if it stands next. */
bool gen_scan_accept(struct gen_cursor *c, const char *punctuation);
bool gen_scan_word(struct gen_cursor *c, const char *word);
/* Take PUNCTUATION, or fail: "'PUNCTUATION' expected WHERE". */
void gen_scan_expect(struct gen_cursor *c, const char *punctuation,
                     const char *where);
/* Take a flat name such as "operand.Sparse.values". */
bool gen_scan_name(struct gen_cursor *c, char name[GEN_NAME_BYTES + 1]);
/* Take a non-negative integer, or one that may be negative. */
bool gen_scan_integer(struct gen_cursor *c, int64_t *out);
bool gen_scan_index(struct gen_cursor *c, int64_t *out);

/* The parameter NAME, which stands at AT, or NULL with a failure. */
const struct hob__param *gen_scan_param(struct gen_cursor *c, size_t at,
                                        const char *name, int *out_index);
/* Whether PARAM[0] is a number: tensors, shapes and [i64]. */
bool gen_has_sizes(const struct hob__param *param);

#endif
