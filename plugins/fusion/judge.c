/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - what becomes of a call: it is recorded, passed by or taken apart.
 */
#include "fusion.h"

#include <hob/ops.h>

/* Whether CALL, of an op that is declared inline, is better taken as it is: a
 * program can have it as a step, or nothing is fused here at all. */
static int is_taken_whole(const struct fu_layer *layer,
                          const struct hob_call *call)
{
    struct hob_fused_step step = {
        .op = (uint16_t)call->op,
        .dtype = call->metas[0].dtype,
        .args = {HOB_FUSED_NONE, HOB_FUSED_NONE, HOB_FUSED_NONE}};
    uint8_t dtypes[3];
    uint32_t count = 0;

    if (!layer->fused || call->op == HOB_OP_SGD_STEP) /* see body.c */
        return 1;
    if (call->op > UINT16_MAX || call->ret_count != 1)
        return 0;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *arg = &call->args[i];

        if (arg->tag == HOB_TAG_ENUM)
            step.variant = (uint16_t)arg->u.i64;
        if (arg->tag == HOB_TAG_F64)
            step.scalar_count++;
        if (arg->tag != HOB_TAG_TENSOR)
            continue;
        if (count == 2)
            return 0;
        dtypes[count] = (uint8_t)hob_tensor_dtype(arg->u.tensor);
        step.args[count] = (uint8_t)count;
        count++;
    }
    /* Those that broadcast in their own way are not alike step by step. */
    if (!count || (count > 1 && call->op != HOB_OP_ACTIVATION_BACKWARD))
        return 0;
    return layer->fused->supports(layer->fused_instance, &step, dtypes);
}

/* Whether CALL has a result at all: a list of results may be empty. */
static int has_result(const struct hob_call *call)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        if (call->metas[i].dtype != HOB_DTYPE_NONE)
            return 1;
    return 0;
}

/* Whether CALL is a view of what is there: that moves nothing, and is made as
 * soon as it is noted. A reshape may have to copy. */
static int is_view_of_elements(const struct fu_layer *layer,
                               const struct hob_call *call)
{
    for (uint32_t i = 0; i < call->arg_count; i++)
        if (call->args[i].tag == HOB_TAG_TENSORS ||
            (call->args[i].tag == HOB_TAG_TENSOR &&
             (fu_waits_for(layer, call->args[i].u.tensor) ||
              hob_tensor_dtype(call->args[i].u.tensor) == HOB_DTYPE_QUANT)))
            return 0;
    return call->op != HOB_OP_RESHAPE;
}

/* The same if none like it was recorded, and it is no view. */
static int32_t judge(const struct fu_layer *layer, const struct hob_call *call,
                     uint32_t fuse)
{
    if (!has_result(call))
        return HOB_LAYER_PASS;
    return fuse == HOB_FUSE_UNLISTED ||
                   (fuse == HOB_FUSE_INLINE && !is_taken_whole(layer, call))
               ? HOB_LAYER_NO_RULE
               : HOB_LAYER_DONE;
}

int32_t fu_judge(const struct fu_layer *layer, const struct hob_call *call,
                 const struct hob_call_origin *origin)
{
    const int32_t verdict = fu_kind_is_known(layer, origin->kind)
                                ? HOB_LAYER_DONE
                                : judge(layer, call, origin->fuse);

    return verdict == HOB_LAYER_DONE && origin->fuse == HOB_FUSE_VIEW &&
                   is_view_of_elements(layer, call)
               ? HOB_LAYER_PASS
               : verdict;
}
