/* SPDX-License-Identifier: Apache-2.0 */
/*
 * util.h - what the default bodies share.
 *
 * A body runs its op as a composition of others in SCOPE, which owns what is
 * made. It sees no elements, and works on every backend that has the
 * primitives of docs/PRIMITIVES.md. A failed op returns an error tensor whose
 * rank is 0: sizes are read from a body's own arguments only.
 */
#ifndef HOB__BODIES_UTIL_H
#define HOB__BODIES_UTIL_H

#include <hob/ops.h>

/* VALUE with X's dtype and device, rank 0: it broadcasts against X. */
hob_tensor *hob__part_constant(hob_scope *scope, hob_tensor *x,
                               hob_scalar value);

/* SHAPE full of VALUE with X's dtype and device. */
hob_tensor *hob__part_full(hob_scope *scope, hob_tensor *x,
                           const int64_t *shape, uint32_t rank,
                           hob_scalar value);

/* X in f32 if it is f16 or bf16, which are stored but not computed in. */
hob_tensor *hob__part_up(hob_scope *scope, hob_tensor *x);
/* Y in DTYPE, that of the argument which hob__part_up() took. */
hob_tensor *hob__part_down(hob_scope *scope, hob_tensor *y, hob_dtype dtype);

/* X's elements as [count]; and the one element of [1] with rank 0. */
hob_tensor *hob__part_flat(hob_scope *scope, hob_tensor *x);
hob_tensor *hob__part_item(hob_scope *scope, hob_tensor *x);

/* X under another handle, for a body whose result is its argument. */
hob_tensor *hob__part_same(hob_scope *scope, hob_tensor *x);

/* X from START to END along AXIS, the other dimensions whole. */
hob_tensor *hob__part_range(hob_scope *scope, hob_tensor *x, uint32_t axis,
                            int64_t start, int64_t end);

/* The P-th root of X, which is not negative. At 0, where its slope is
 * infinite, the gradient is that of X: 0 where X has none, never NaN. */
hob_tensor *hob__part_root(hob_scope *scope, hob_tensor *x, double p);

/* DIM, which may be negative, as an index; the infer function checked it. */
uint32_t hob__part_axis(const hob_tensor *x, int64_t dim);

/* The dtype for indices below COUNT. */
hob_dtype hob__part_index_dtype(int64_t count);

/* Whether DTYPE lies in MASK (HOB_MASK_...). */
int hob__part_is(hob_dtype dtype, uint32_t mask);

/* The product of COUNT sizes; 1 for none. */
int64_t hob__part_product(const int64_t *sizes, uint32_t count);

#endif
