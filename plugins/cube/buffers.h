/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers.h - the part of a kernel's text that knows how elements are stored:
 * the names and functions behind LOAD, STORE and their like.
 */
#ifndef CUBE_BUFFERS_H
#define CUBE_BUFFERS_H

#include "dialect.h"
#include "text.h"

/* Numbers of dtypes and kinds, and the macros that take a buffer's name. */
void cube_dtype_names(struct cube_text *text);
/* VALUE_x, DTYPE_x, KIND_x, BITS_x and WIDTH_x of buffer INDEX. */
void cube_buffer_names(struct cube_text *text,
                       const struct cube_variant *variant, uint32_t index);
/* What LOAD(x, i), STORE(x, i, v) and so on call. */
void cube_buffer_functions(struct cube_text *text,
                           const struct cube_variant *variant, uint32_t index);
/* round_to_f16() and so on: what a value is after it was stored as DTYPE and
 * loaded. */
void cube_round_function(struct cube_text *text, uint32_t dtype);

#endif
