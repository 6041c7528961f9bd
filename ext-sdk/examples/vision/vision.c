/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vision.c - the tables, the gradients, and vision.densify.
 *
 * The kernels of detect and nms are in detect.c and nms.c. There is no body
 * of either: which pixels hang together, and which boxes are kept, follows
 * from chains of decisions whose length depends on the elements, and a body
 * is a fixed number of ops. So they run where there is a kernel, and densify,
 * which is a body, runs everywhere.
 */
#include "vision_glue.h"

#include <inttypes.h>

/* ---- gradients ---- */

static hob_tensor *zeros_on(hob_scope *scope, hob_tensor *where,
                            hob_dtype dtype, const int64_t *shape,
                            uint32_t rank)
{
    return hob_zeros(scope, shape, rank,
                     hob_scope_host(scope)->tensor_device(where), dtype);
}

/* The mean over a blob hands 1 / pixels of its gradient to each of them. */
hob_status vision_detect_backward(hob_scope *scope,
                                  const struct hob_grad_call *call)
{
    const struct hob_meta *image = &call->input_metas[VISION_DETECT_IN_IMAGE];
    hob_tensor *labels = call->rets[VISION_DETECT_RET_LABELS];
    hob_tensor *grad = call->grads[VISION_DETECT_RET_BOXES_SCORES];
    const int64_t slots =
        call->ret_metas[VISION_DETECT_RET_BOXES_SCORES].shape[0];
    /* Not 1 / pixels of a large blob in 8 bits. */
    hob_dtype dtype =
        image->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    int64_t count = image->shape[0] * image->shape[1];
    hob_tensor *dark, *slot, *pixels, *each;

    if (!grad || !slots) /* coords do not move with a pixel */
        return HOB_OK;
    labels = hob_reshape(scope, labels, &count, 1);
    dark = hob_less_scalar(scope, labels, hob_i64(0));
    slot = hob_mask_fill(scope, labels, dark, hob_i64(0));
    pixels = hob_select_add(
        scope, zeros_on(scope, labels, HOB_DTYPE_I64, &slots, 1), slot,
        hob_cast(scope, hob_logical_not(scope, dark), HOB_DTYPE_I64), 0);
    pixels = hob_clamp(scope, pixels, hob_i64(1), hob_none());
    each = hob_div(scope, hob_cast(scope, grad, dtype),
                   hob_cast(scope, pixels, dtype));
    each = hob_mask_fill(scope, hob_select(scope, each, slot, 0), dark,
                         hob_f64(0));
    each = hob_reshape(scope, each, image->shape, 2);
    call->out_grads[VISION_DETECT_IN_IMAGE] =
        hob_cast(scope, each, (hob_dtype)image->dtype);
    return hob_scope_host(scope)->scope_status(scope);
}

/*
 * GRAD, one row a slot of the result, as rows of the slots that these came
 * FROM. No slot comes twice, so nothing adds up. FREE says which rows hold no
 * box: whatever their gradient is, NaN perhaps, it must not reach slot 0.
 */
static hob_tensor *give_back(hob_scope *scope, hob_tensor *grad,
                             hob_tensor *from, hob_tensor *free)
{
    const int64_t *shape = hob_tensor_shape(grad);
    uint32_t rank = (uint32_t)hob_tensor_rank(grad);
    hob_tensor *zeros =
        zeros_on(scope, grad, hob_tensor_dtype(grad), shape, rank);

    if (rank == 2)
        free = hob_expand(scope, hob_unsqueeze(scope, free, 1), shape, rank);
    return hob_select_add(scope, zeros, from,
                          hob_mask_fill(scope, grad, free, hob_f64(0)), 0);
}

hob_status vision_nms_backward(hob_scope *scope,
                               const struct hob_grad_call *call)
{
    hob_tensor *from = call->rets[VISION_NMS_RET_FROM];
    hob_tensor *coords = call->grads[VISION_NMS_RET_BOXES_COORDS];
    hob_tensor *scores = call->grads[VISION_NMS_RET_BOXES_SCORES];
    hob_tensor *free;

    if (!call->ret_metas[VISION_NMS_RET_FROM].shape[0])
        return HOB_OK;
    free = hob_less_scalar(scope, from, hob_i64(0));
    from = hob_mask_fill(scope, from, free, hob_i64(0));
    if (coords && call->needs_grad[VISION_NMS_IN_BOXES_COORDS])
        call->out_grads[VISION_NMS_IN_BOXES_COORDS] =
            give_back(scope, coords, from, free);
    if (scores && call->needs_grad[VISION_NMS_IN_BOXES_SCORES])
        call->out_grads[VISION_NMS_IN_BOXES_SCORES] =
            give_back(scope, scores, from, free);
    return hob_scope_host(scope)->scope_status(scope);
}

/* ---- densify ---- */

static hob_status check_dense(struct hob_call *call, const struct hob_view *x,
                              const struct hob_view *like)
{
    int same = x->rank == like->rank;

    for (uint32_t i = 0; same && i < like->rank; i++)
        same = x->shape[i] == like->shape[i];
    if (same)
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_SHAPE,
                            "operand.Dense must have the shape of like");
}

static hob_status check_sparse(struct hob_call *call,
                               const struct hob_view *values,
                               const struct hob_view *indices,
                               const struct hob_view *like)
{
    if (values->rank != 1)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "operand.Sparse.values has rank %d, it must "
                                "have 1",
                                values->rank);
    if ((indices->rank != 1 && indices->rank != 2) ||
        indices->shape[0] != values->shape[0])
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "operand.Sparse.indices must be [%" PRId64
                                "] or [%" PRId64 ", %d]: one for each value",
                                values->shape[0], values->shape[0], like->rank);
    if (indices->rank == 2 && indices->shape[1] != like->rank)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "operand.Sparse.indices has %" PRId64
                                " columns, it must have %d: like has rank %d",
                                indices->shape[1], like->rank, like->rank);
    return HOB_OK;
}

hob_status vision_densify_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *like = hob_arg_view(call, VISION_DENSIFY_ARG_LIKE);
    hob_status status = HOB_OK;

    switch (call->args[VISION_DENSIFY_ARG_OPERAND].u.i64) {
    case VISION_OPERAND_DENSE:
        status = check_dense(
            call, hob_arg_view(call, VISION_DENSIFY_ARG_OPERAND_DENSE), like);
        break;
    case VISION_OPERAND_SPARSE:
        status = check_sparse(
            call, hob_arg_view(call, VISION_DENSIFY_ARG_OPERAND_SPARSE_VALUES),
            hob_arg_view(call, VISION_DENSIFY_ARG_OPERAND_SPARSE_INDICES),
            like);
        break;
    }
    out->rank = like->rank;
    for (uint32_t i = 0; i < like->rank; i++)
        out->shape[i] = like->shape[i];
    return status;
}

/*
 * Rows of INDICES [k, rank] as positions in LIKE's elements, row-major. One
 * with an index that is outside becomes the first position outside, so that
 * it is refused rather than taken for another row's.
 */
static hob_tensor *positions_of(hob_scope *scope, hob_tensor *indices,
                                hob_tensor *like)
{
    static const int64_t every[2] = {1, 1};
    const int64_t *sizes = hob_tensor_shape(like);
    int64_t k = hob_tensor_shape(indices)[0], step = 1;
    hob_tensor *position, *outside;

    /* Rank 0 has one element, and nothing to say which. */
    position = zeros_on(scope, like, HOB_DTYPE_I64, &k, 1);
    outside = zeros_on(scope, like, HOB_DTYPE_BOOL, &k, 1);
    for (int32_t i = hob_tensor_rank(like) - 1; i >= 0; i--) {
        const int64_t starts[2] = {0, i}, ends[2] = {k, i + 1};
        hob_tensor *index =
            hob_slice(scope, indices, starts, 2, ends, 2, every, 2);

        index = hob_reshape(scope, index, &k, 1);
        outside = hob_logical_or(scope, outside,
                                 hob_less_scalar(scope, index, hob_i64(0)));
        outside = hob_logical_or(
            scope, outside,
            hob_greater_equal_scalar(scope, index, hob_i64(sizes[i])));
        position = hob_add(scope, position,
                           hob_mul_scalar(scope, index, hob_i64(step)));
        step *= sizes[i];
    }
    return hob_mask_fill(scope, position, outside, hob_i64(step));
}

hob_tensor *vision_densify_body(hob_scope *scope,
                                const struct vision_operand *operand,
                                hob_tensor *like)
{
    hob_dtype dtype = hob_tensor_dtype(like);
    /* Many values may be added in one place: not in 11 or 8 bits. */
    hob_dtype sum = dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    const int64_t *shape = hob_tensor_shape(like);
    uint32_t rank = (uint32_t)hob_tensor_rank(like);
    int64_t count = hob_tensor_count(like);
    hob_tensor *at, *full;

    if (operand->variant == VISION_OPERAND_DENSE)
        return operand->u.dense;
    if (operand->variant == VISION_OPERAND_EMPTY)
        return zeros_on(scope, like, dtype, shape, rank);
    at = hob_cast(scope, operand->u.sparse.indices, HOB_DTYPE_I64);
    if (hob_tensor_rank(operand->u.sparse.indices) == 2)
        at = positions_of(scope, at, like);
    full = hob_select_add(scope, zeros_on(scope, like, sum, &count, 1), at,
                          hob_cast(scope, operand->u.sparse.values, sum), 0);
    return hob_reshape(scope, hob_cast(scope, full, dtype), shape, rank);
}
