/* SPDX-License-Identifier: Apache-2.0 */
/*
 * form.h - metadata as one number.
 *
 * Tensors of a runtime with the same form have the same dtype, rank, scheme and
 * shape: a word to compare and to keep where all of those would be many. Of
 * different forms nothing follows, because what is not used for long is
 * forgotten and gets another number; no number is ever given again.
 */
#ifndef HOB__FORM_H
#define HOB__FORM_H

#include "known_table.h"
#include "tensor.h"

/* The form of META, never 0. */
uint64_t hob__form_of(struct hob__known *known, const struct hob_meta *meta);

/* TENSOR, which has none yet, gets one. */
uint64_t hob__form_give(struct hob__known *known, hob_tensor *tensor);

#endif
