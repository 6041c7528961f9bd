/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moves.c - last use: who may be written over, and who becomes a tombstone.
 */
#include "boundary.h"

static int appears_once(const struct hob_call *call, const hob_tensor *tensor)
{
    int seen = 0;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];

        if (value->tag == HOB_TAG_TENSOR)
            seen += value->u.tensor == tensor;
        else if (value->tag == HOB_TAG_TENSORS && value->u.tensors)
            for (uint32_t k = 0; k < value->count; k++)
                seen += value->u.tensors[k] == tensor;
    }
    return seen == 1;
}

/* Whether this is TENSOR's last use, as was said. A tombstone stays what it
 * is: it tells of the call that took it. */
static int is_last_use(const struct hob_call *call, const hob_tensor *tensor)
{
    return !(tensor->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED)) &&
           atomic_load_explicit(&tensor->refs, memory_order_acquire) == 1 &&
           appears_once(call, tensor);
}

/* Only its one holder sets the flag: with more, the flags are just read. */
static void forget_last_use(hob_tensor *tensor)
{
    if (tensor && (tensor->flags & HOB__TENSOR_LAST_USE))
        atomic_fetch_and(&tensor->flags, ~(uint32_t)HOB__TENSOR_LAST_USE);
}

static void settle_list(struct hob_call *call, uint32_t index)
{
    const hob_value *value = &call->args[index];

    for (uint32_t k = 0; k < value->count; k++) {
        hob_tensor *tensor = value->u.tensors[k];

        if (!tensor || !(tensor->flags & HOB__TENSOR_LAST_USE) ||
            !is_last_use(call, tensor))
            continue;
        hob__tensor_flag(tensor, HOB__TENSOR_TAKEN);
        tensor->moved_call = (uintptr_t)call->core;
        call->core->moved |= UINT32_C(1) << index;
    }
}

/*
 * Decide, for each argument that was said to be used for the last time,
 * whether that holds. The arguments may be those of a call that fails, so
 * they need not be as the signature says.
 */
void hob__settle_moves(struct hob_call *call)
{
    for (uint32_t i = 0; i < call->arg_count; i++) {
        hob_value *value = &call->args[i];
        hob_tensor *tensor = value->u.tensor;

        if (value->tag == HOB_TAG_TENSORS && value->u.tensors)
            settle_list(call, i);
        if (value->tag != HOB_TAG_TENSOR || !tensor ||
            !((value->flags & HOB_VALUE_MOVE) ||
              (tensor->flags & HOB__TENSOR_LAST_USE)))
            continue;
        value->flags &= (uint8_t)~HOB_VALUE_MOVE;
        if (is_last_use(call, tensor)) {
            value->flags |= HOB_VALUE_MOVE;
            call->core->moved |= UINT32_C(1) << i;
            call->core->may_reuse = 1;
        }
    }
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];

        if (value->tag == HOB_TAG_TENSOR)
            forget_last_use(value->u.tensor);
        else if (value->tag == HOB_TAG_TENSORS && value->u.tensors)
            for (uint32_t k = 0; k < value->count; k++)
                forget_last_use(value->u.tensors[k]);
    }
}

static int is_taken_by(const hob_tensor *tensor, const struct hob_call *call)
{
    return tensor && (tensor->flags & HOB__TENSOR_TAKEN) &&
           tensor->moved_call == (uintptr_t)call->core;
}

/* The moved arguments become tombstones, whatever came of CALL. */
void hob__bury_moved(struct hob_call *call)
{
    for (uint32_t i = 0; call->core->moved; i++, call->core->moved >>= 1) {
        const hob_value *value = &call->args[i];

        if (!(call->core->moved & 1))
            continue;
        if (value->tag == HOB_TAG_TENSOR)
            hob__tensor_bury(value->u.tensor, call->op, call->core->index);
        else
            for (uint32_t k = 0; k < value->count; k++)
                if (is_taken_by(value->u.tensors[k], call))
                    hob__tensor_bury(value->u.tensors[k], call->op,
                                     call->core->index);
    }
}
