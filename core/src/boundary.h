/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boundary.h - the parts of the boundary: what boundary.c calls in order.
 */
#ifndef HOB__BOUNDARY_H
#define HOB__BOUNDARY_H

#include "dispatch.h"

/* bind.c: fill in CALL's arguments from ARGS and the defaults; check that
 * each has the type that the signature says. All are filled in on failure
 * too, because what is moved is consumed then as well. */
hob_status hob__bind(struct hob_call *call, const hob_value *args,
                     uint32_t arg_count);

/* bind.c: a scalar takes the dtype of its tensor; it must fit. */
hob_status hob__check_scalars(struct hob_call *call);

/* bind.c: the dtype that VALUE, a tensor, a list or a dtype, stands for. */
uint32_t hob__value_dtype(const hob_value *value);

/*
 * moves.c: decide, for each argument that was said to be used for the last
 * time, whether that holds. The arguments may be those of a call that fails,
 * so they need not be as the signature says.
 */
void hob__settle_moves(struct hob_call *call);

/*
 * quantized.c: run CALL, of which some argument is quantized where the op does
 * not take it so: as other calls. OUT has room for CAPACITY results, which
 * call->scope owns then; call->ret_count says how many they are.
 */
hob_status hob__call_quantized(struct hob_call *call, hob_tensor **out,
                               uint32_t capacity);

/*
 * quantized_views.c: the op of CALL has moved the codes of its first argument
 * to OUT; where it has several results, *FIRST was 0 at the first of them.
 * The argument has blocks and SCALES. Put those of OUT into *OUT_SCALES and
 * its blocks, as part of a scheme, into *OUT_BLOCKS; 0 if there are none.
 */
int hob__quantized_move(hob_scope *scope, const struct hob_call *call,
                        hob_tensor *scales, const struct hob_view *out,
                        int64_t *first, hob_tensor **out_scales,
                        uint32_t *out_blocks);

/* For host->foresee, see hob/host.h. */
hob_status hob__foresee(hob_device *device, uint32_t op, const hob_value *args,
                        uint32_t arg_count, const struct hob_meta *metas,
                        struct hob_meta *out);

/* moves.c: the moved arguments become tombstones, whatever came of CALL. */
void hob__bury_moved(struct hob_call *call);

#endif
