/* SPDX-License-Identifier: Apache-2.0 */
/*
 * again.h - a call that a layer puts off as it did one like it.
 *
 * All that the boundary and the walk would find out is known then, and the
 * layer needs to hear no more than which call it is like and what it reads.
 */
#ifndef HOB__AGAIN_H
#define HOB__AGAIN_H

#include "known.h"
#include "scope.h"

/*
 * SCOPE calls OP with ARGS, which is like a call of which KNOWN and RESULTS are
 * known. Whether a layer has put it off; then its results are in OUT, and
 * SCOPE's. Else nothing has happened.
 */
int hob__again(hob_scope *scope, const struct hob__op *op,
               const hob_value *args, uint32_t arg_count,
               const struct hob__known_call *known,
               const struct hob__results *results, hob_tensor **out);

#endif
