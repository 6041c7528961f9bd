/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view.h - strides and the flags that follow from them.
 *
 * view.c also has the view functions of the ops that need no kernel, which
 * infer.h declares. They are of type hob__view_fn (schema.h): OUT has dtype,
 * rank and shape as inferred; its strides, data and flags are computed from
 * IN's. The storage is the core's affair. Arguments are as the infer function
 * accepted them.
 */
#ifndef HOB__VIEW_H
#define HOB__VIEW_H

#include <hob/ext/plugin.h>

/*
 * Compute VIEW's CONTIGUOUS and INJECTIVE flags from shape and strides; other
 * flags stay. The strides of a contiguous view become the row-major ones in
 * dimensions of size 1 too, so that kernels need not treat those apart.
 * INJECTIVE is certain where set; a view with interleaved but disjoint
 * windows may lack it.
 */
void hob__view_set_flags(struct hob_view *view);

#endif
