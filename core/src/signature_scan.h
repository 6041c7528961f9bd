/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signature_scan.h - what the files that parse signatures share.
 *
 * signature_scan.c has the cursor and the words, signature.c the types and
 * parameters, signature_default.c their defaults, signature_result.c what
 * stands behind the arrow.
 */
#ifndef HOB__SIGNATURE_SCAN_H
#define HOB__SIGNATURE_SCAN_H

#include "signature.h"

/* Where the parser stands. The first failure stays. */
struct hob__cursor {
    const char *text;
    const struct hob__types *types; /* NULL: no types are known */
    size_t at;
    size_t error_at;
    const char *message; /* static; NULL: no failure yet */
    hob_status status;
    int in_tuple; /* there are several results */
};

int hob__scan_is_digit(char c);
int hob__scan_is_alpha(char c);
int hob__scan_is_word(char c); /* a letter, a digit or '_' */

/* Note a failure at character AT; both return the cursor's status. */
hob_status hob__scan_fail(struct hob__cursor *c, size_t at,
                          const char *message);
hob_status hob__scan_no_memory(struct hob__cursor *c);
/* The same for MESSAGE of type_defs.h, which may be "out of memory". */
hob_status hob__scan_type_failed(struct hob__cursor *c, size_t at,
                                 const char *message);

/* The next character that is no blank. */
char hob__scan_peek(struct hob__cursor *c);
/* Take PUNCTUATION if it stands next, or fail with MESSAGE. */
int hob__scan_accept(struct hob__cursor *c, const char *punctuation);
hob_status hob__scan_expect(struct hob__cursor *c, const char *punctuation,
                            const char *message);
/* Take a word that starts with a letter or '_', or a number if that may be;
 * the caller frees it. */
hob_status hob__scan_word(struct hob__cursor *c, int may_be_number,
                          char **out_word, const char *message);
/* The same for words with dots between them, as flat signatures have. */
hob_status hob__scan_name(struct hob__cursor *c, int may_be_number,
                          char **out_name, const char *message);

/* The kind called WORD, with its mask of dtypes; NULL if there is none. */
const char *hob__scan_kind(const char *word, uint32_t *out_mask);
uint32_t hob__scan_dtype(const char *word);
/* The definition of the type called NAME, or NULL with a failure. */
/* The message where NAME is no type: a kind that is near, or all of them. */
const char *hob__scan_no_type(const char *name);

const struct hob__type_def *hob__scan_def(struct hob__cursor *c, size_t at,
                                          const char *name);

int hob__scan_find_param(const struct hob__signature *signature,
                         const char *name);
/* An item was written; what it stands for begins at FIRST. */
struct hob__item *hob__scan_add_item(struct hob__item *items, uint16_t *count,
                                     uint32_t first);

hob_status hob__scan_type(struct hob__cursor *c, struct hob__param *param);
/* A value such as PARAM may have, into *OUT; see hob__value_release(). */
hob_status hob__scan_value(struct hob__cursor *c,
                           const struct hob__param *param, hob_value *out);
/* "= .." of PARAM, if it stands next. */
hob_status hob__scan_default(struct hob__cursor *c, struct hob__param *param);
/* "-> .." */
hob_status hob__scan_results(struct hob__cursor *c, struct hob__signature *out);

#endif
