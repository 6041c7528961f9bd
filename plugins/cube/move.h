/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move.h - elements moved as they are, whatever they mean; vectors of several
 * along the last dimension of a space.
 */
#ifndef CUBE_MOVE_H
#define CUBE_MOVE_H

#include "space.h"

/* The unsigned dtype of SIZE bytes: elements of it are moved bit by bit. */
uint32_t cube_bits_dtype(uint32_t size);

/* Whether operand INDEX of a collapsed space can be read or written WIDTH
 * elements at a time along the last dimension. */
int cube_space_takes(const struct cube_space *space, uint32_t index,
                     uint32_t width);
/* Let the last dimension, of a size that WIDTH divides, count vectors. */
void cube_space_widen(struct cube_space *space, uint32_t width);

/* Copy IN, broadcast, to OUT, of the same dtype; both in any layout. They do
 * not overlap. */
hob_status cube_move(struct cube_device *device, struct hob_call *call,
                     const struct hob_view *out, const struct hob_view *in);

#endif
