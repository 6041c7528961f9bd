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

/* bind.c: a scalar of CALL takes the dtype of its tensor; it must fit. */
hob_status hob__fit_scalars(struct hob_call *call);

static inline hob_status hob__check_scalars(struct hob_call *call)
{
    return call->core->op->scalar_like == HOB__NO_PARTNER
               ? HOB_OK
               : hob__fit_scalars(call);
}

/* bind.c: the dtype that VALUE, a tensor, a list or a dtype, stands for. */
uint32_t hob__value_dtype(const hob_value *value);

/* arguments.c: look at the tensors of CALL, which is bound: none may be an
 * error or gone, each must be of a dtype that its parameter takes, and the
 * device that they have in common is the call's. */
hob_status hob__see_tensors(struct hob_call *call);

/* arguments.c: whether TENSOR's dtype is one for parameter INDEX, beside those
 * of the parameters before it. */
hob_status hob__check_dtype(struct hob_call *call, uint32_t index,
                            const hob_tensor *tensor);

/* arguments.c: the device of CALL, which has no tensors. */
hob_status hob__place(struct hob_call *call);

/*
 * Where the results of a call are described. There is room for what any
 * signature can name; a list may need more.
 */
struct hob__results {
    hob_value rets[HOB_MAX_RESULTS];
    struct hob_meta metas[HOB_MAX_RESULTS];
    struct hob__expected expected[HOB_MAX_RESULTS];
    hob_value plains[HOB_MAX_RESULTS];
    void *heap; /* NULL: the arrays above were enough */
};

/* None is there yet. */
static inline void hob__blank_rets(struct hob_call *call)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        call->rets[i] = hob_value_make(HOB_TAG_TENSOR, 1);
}

/* results.c: fill in the metadata of CALL's results, which are described in
 * RESULTS, and their sizes. */
hob_status hob__infer(struct hob_call *call, struct hob__results *results);

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

/* foresee.c: for host->foresee, see hob/host.h. */
hob_status hob__foresee(hob_device *device, uint32_t op, const hob_value *args,
                        uint32_t arg_count, const struct hob_meta *metas,
                        struct hob_meta *out);

/* moves.c: the moved arguments become tombstones, whatever came of CALL. */
void hob__bury_moved(struct hob_call *call);

#endif
