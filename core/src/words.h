/* SPDX-License-Identifier: Apache-2.0 */
/*
 * words.h - calls as words of 64 bits that are equal for calls that are alike:
 * dtypes, shapes, strides and attributes of all arguments. With has_places they
 * also say which elements the tensors have.
 */
#ifndef HOB__WORDS_H
#define HOB__WORDS_H

#include "tensor.h"

struct hob__words {
    size_t count;
    uint64_t *to; /* or NULL: they are only counted */
    /* Those to be compared with, ROOM of them; or NULL. */
    const uint64_t *like;
    size_t room;
    int differ;
    int has_places;
};

static inline void hob__words_put(struct hob__words *words, uint64_t word)
{
    if (words->to)
        words->to[words->count] = word;
    if (words->like &&
        (words->count >= words->room || words->like[words->count] != word))
        words->differ = 1;
    words->count++;
}

void hob__words_put_tensor(struct hob__words *words, const hob_tensor *tensor);
/* All arguments of CALL. */
void hob__words_put_call(struct hob__words *words, const struct hob_call *call);

#endif
