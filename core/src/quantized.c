/* SPDX-License-Identifier: Apache-2.0 */
/*
 * quantized.c - ops that know nothing of quantized tensors, called on them.
 *
 * One rule for all of them: dequantize, call the op, and quantize its float
 * results again with the scheme of the first quantized argument, if the op's
 * declaration ("quantized") or that scheme says so. An op that only moves
 * elements is called on the codes instead where the scales can follow
 * (quantized_views.c): then no element changes. All are calls of their own, in
 * a scope of this one, so layers see ordinary ops.
 */
#include "boundary.h"

#include "error.h"

#include <hob/ext/quant.h>
#include <hob/ops.h>

#include <stdlib.h>
#include <string.h>

struct rewrite {
    hob_scope *scope; /* of the calls that are made instead */
    hob_value args[HOB_MAX_PARAMS];
    hob_tensor **lists[HOB_MAX_PARAMS]; /* owned; NULL where not replaced */
    hob_tensor *first;                  /* the first that is dequantized */
    uint32_t count;                     /* of those */
};

static int is_float(const hob_tensor *tensor)
{
    return (HOB_DTYPE_BIT(tensor->view.dtype) & HOB_MASK_FLOAT) != 0;
}

/* Whether parameter INDEX, given TENSOR, needs it dequantized. */
static int is_foreign(const struct hob_call *call, uint32_t index,
                      const hob_tensor *tensor)
{
    return tensor->view.dtype == HOB_DTYPE_QUANT &&
           !(call->core->op->signature.params[index].mask &
             HOB_DTYPE_BIT(HOB_DTYPE_QUANT));
}

/* The tensors of an argument, and how many. */
static hob_tensor *const *tensors_of(const hob_value *value, uint32_t *count)
{
    *count = value->tag == HOB_TAG_TENSOR    ? 1
             : value->tag == HOB_TAG_TENSORS ? value->count
                                             : 0;
    return value->tag == HOB_TAG_TENSORS ? value->u.tensors : &value->u.tensor;
}

/* Count what must be dequantized. The other operands are of one dtype, that
 * of the first float; without any it is f32. */
static hob_dtype look(const struct hob_call *call, struct rewrite *rewrite)
{
    hob_dtype dtype = HOB_DTYPE_NONE;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        uint32_t count;
        hob_tensor *const *tensors = tensors_of(&call->args[i], &count);

        for (uint32_t k = 0; k < count; k++) {
            if (is_foreign(call, i, tensors[k])) {
                if (!rewrite->first)
                    rewrite->first = tensors[k];
                rewrite->count++;
            } else if (is_float(tensors[k]) && !dtype) {
                dtype = (hob_dtype)tensors[k]->view.dtype;
            }
        }
    }
    return dtype ? dtype : HOB_DTYPE_F32;
}

/* The arguments for the calls: those of CALL, borrowed, with what is foreign
 * in DTYPE, or its codes where DTYPE is HOB_DTYPE_NONE. */
static hob_status replace(const struct hob_call *call, hob_dtype dtype,
                          struct rewrite *rewrite)
{
    for (uint32_t i = 0; i < call->arg_count; i++) {
        hob_value *value = &rewrite->args[i];
        uint32_t count;
        hob_tensor *const *tensors;
        int any = 0;

        *value = call->args[i];
        value->flags &= (uint8_t)~HOB_VALUE_MOVE;
        tensors = tensors_of(value, &count);
        for (uint32_t k = 0; k < count; k++)
            any |= is_foreign(call, i, tensors[k]);
        if (!any)
            continue;
        if (value->tag == HOB_TAG_TENSOR) {
            value->u.tensor =
                dtype ? hob_dequantize(rewrite->scope, tensors[0], dtype)
                      : hob_quantized_values(rewrite->scope, tensors[0]);
            continue;
        }
        rewrite->lists[i] = calloc(count, sizeof(hob_tensor *));
        if (!rewrite->lists[i])
            return HOB_ERR_MEMORY;
        for (uint32_t k = 0; k < count; k++)
            rewrite->lists[i][k] =
                is_foreign(call, i, tensors[k])
                    ? hob_dequantize(rewrite->scope, tensors[k], dtype)
                    : tensors[k];
        value->u.tensors = rewrite->lists[i];
    }
    return HOB_OK;
}

/* Whether the op can move the codes of its first argument as they are. */
static int moves_codes(const struct hob_call *call,
                       const struct rewrite *rewrite)
{
    return call->core->op->decl->quantized == HOB__QUANTIZED_VIEW &&
           rewrite->count == 1 && call->args[0].tag == HOB_TAG_TENSOR &&
           call->args[0].u.tensor == rewrite->first &&
           call->core->op->signature.params[0].mask &
               HOB_DTYPE_BIT(HOB_DTYPE_I8);
}

static int is_requantized(const struct hob_call *call, uint32_t scheme)
{
    switch (call->core->op->decl->quantized) {
    case HOB__QUANTIZED_KEEP:
    case HOB__QUANTIZED_VIEW:
        return 1;
    case HOB__QUANTIZED_NEVER:
        return 0;
    default:
        return (scheme & HOB_QUANT_PROPAGATE) != 0;
    }
}

/* The sizes of blocks of SCHEME along the last dimensions of X, which may have
 * fewer than them; of rank 0 it is a row of one element. */
static const int64_t *blocks_of(const hob_tensor *x, uint32_t scheme,
                                int64_t list[HOB_QUANT_BLOCK_DIMS],
                                uint32_t *out_count)
{
    const uint32_t count = hob_quant_block_list(scheme, list);
    const uint32_t rank = x->view.rank ? x->view.rank : 1;

    *out_count = count < rank ? count : rank;
    return list + (count - *out_count);
}

static hob_tensor *quantize_like(hob_scope *scope, hob_tensor *x,
                                 uint32_t scheme)
{
    uint32_t value = hob_quant_value_of(scheme) - 1;
    int propagate = (scheme & HOB_QUANT_PROPAGATE) != 0;
    int64_t list[HOB_QUANT_BLOCK_DIMS];
    uint32_t count;
    const int64_t *block = blocks_of(x, scheme, list, &count);

    return hob_quantize_dynamic(
        scope, x, (enum hob_quantize_dynamic_value)value, block, count,
        (hob_dtype)hob_quant_scale_dtype(scheme),
        (scheme & HOB_QUANT_GLOBAL) != 0,
        propagate ? HOB_QUANTIZE_DYNAMIC_PROPAGATION_PROPAGATE
                  : HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
        HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
}

/* CODES with SCALES, GLOBAL or NULL, and BLOCKS of a scheme, else as SCHEME
 * says. */
static hob_tensor *join(hob_scope *scope, hob_tensor *codes, hob_tensor *scales,
                        hob_tensor *global, uint32_t scheme, uint32_t blocks)
{
    uint32_t value = hob_quant_value_of(scheme) - 1;
    int64_t list[HOB_QUANT_BLOCK_DIMS];
    uint32_t count;
    const int64_t *block = blocks_of(codes, blocks, list, &count);

    return hob_quantized_from(scope, codes, scales, global,
                              (enum hob_quantized_from_value)value, block,
                              count,
                              (scheme & HOB_QUANT_PROPAGATE)
                                  ? HOB_QUANTIZED_FROM_PROPAGATION_PROPAGATE
                                  : HOB_QUANTIZED_FROM_PROPAGATION_INHIBIT);
}

/* The COUNT results of the op on the codes get their scales; 0 if one cannot
 * have them. */
static int give_scales(const struct hob_call *call, hob_scope *scope,
                       hob_tensor **out, uint32_t count)
{
    hob_tensor *x = call->args[0].u.tensor, *scales = NULL, *global = NULL;
    const uint32_t scheme = x->view.scheme;
    int64_t first = 0;
    uint32_t blocks = 0;

    if (hob_quantized_scales(scope, x, &scales, &global))
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        hob_tensor *moved = scales;

        if (hob_quant_is_blocked(scheme) &&
            !hob__quantized_move(scope, call, scales, &out[i]->view, &first,
                                 &moved, &blocks))
            return 0;
        out[i] = join(scope, out[i], moved, global, scheme, blocks);
    }
    return 1;
}

/* What a call within this one said becomes what this one says. */
static hob_status pass_on(struct hob_call *call, const hob_scope *scope)
{
    const struct hob__failure *failure = scope->failure;

    if (!failure)
        return hob__call_fail(call, HOB_ERR_MEMORY,
                              "no memory to dequantize its arguments");
    if (failure->op && strcmp(failure->op, call->op_name) != 0)
        return hob__call_fail(call, failure->status, "in %s: %s", failure->op,
                              failure->message);
    return hob__call_fail(call, failure->status, "%s", failure->message);
}

/* Let the scope of CALL own its COUNT results, too. */
static hob_status hand_out(struct hob_call *call, hob_tensor *const *out,
                           uint32_t count)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < count && !status; i++) {
        if (!out[i])
            continue;
        hob__tensor_ref(out[i]);
        status = hob__scope_adopt(call->scope, out[i]);
    }
    if (status)
        return hob__call_fail(call, status, "no memory for the scope's list");
    call->ret_count = (uint16_t)count;
    return HOB_OK;
}

static int is_matrix(const hob_tensor *x)
{
    return x->view.rank == 2;
}

/* X times WEIGHT, if that is what a product can take by panels, else NULL. */
static hob_tensor *by_panels(hob_scope *scope, hob_tensor *x,
                             hob_tensor *weight, int is_turned)
{
    if (!is_matrix(weight) || !x->view.rank || !is_float(x) ||
        x->view.shape[x->view.rank - 1] != weight->view.shape[is_turned])
        return NULL;
    return hob_matmul_quantized(scope, x, weight, is_turned);
}

/*
 * A product with a quantized matrix does not make floats of all of it. Of two
 * the right one is kept; a left one is the right one of the transposed
 * product. NULL: it is none, or has to go the way of all ops.
 */
static hob_tensor *product(const struct hob_call *call,
                           const struct rewrite *rewrite)
{
    hob_scope *scope = rewrite->scope;
    hob_tensor *x = call->args[0].u.tensor, *weight, *y, *bias;

    if (call->op != HOB_OP_MATMUL && call->op != HOB_OP_LINEAR)
        return NULL;
    weight = call->args[1].u.tensor;
    if (call->op == HOB_OP_LINEAR) {
        bias =
            call->args[2].tag == HOB_TAG_TENSOR ? call->args[2].u.tensor : NULL;
        if (rewrite->count != 1 || rewrite->first != weight)
            return NULL;
        y = by_panels(scope, x, weight, 0);
        return y && bias ? hob_add(scope, y, bias) : y;
    }
    if (x->view.rank < 2 || weight->view.rank < 2)
        return NULL;
    if (rewrite->first == weight && rewrite->count == 1)
        return by_panels(scope, x, weight, 0);
    if (rewrite->count == 2 && is_matrix(weight))
        return by_panels(scope, hob_dequantize(scope, x, HOB_DTYPE_F32), weight,
                         0);
    if (rewrite->count != 1 || !is_matrix(weight))
        return NULL;
    y = by_panels(scope, hob_swap_dims(scope, weight, 0, 1), x, 1);
    return y ? hob_swap_dims(scope, y, 0, 1) : NULL;
}

/* The op on dequantized arguments; its results quantized again where the
 * rules say so. */
static hob_status call_on_floats(const struct hob_call *call, hob_dtype dtype,
                                 struct rewrite *rewrite, hob_tensor **out,
                                 uint32_t capacity, uint32_t *count)
{
    hob_status status = HOB_OK;

    *count = 1;
    out[0] = product(call, rewrite);
    if (!out[0])
        status = replace(call, dtype, rewrite);
    if (!out[0] && !status)
        status =
            hob__call(rewrite->scope, call->op, rewrite->args, call->arg_count,
                      out, capacity, count, call->plains, call->plain_count);
    for (uint32_t i = 0; i < *count && !status; i++) {
        uint32_t scheme = rewrite->first->view.scheme;

        if (!rewrite->scope->failure && out[i] && is_float(out[i]) &&
            is_requantized(call, scheme))
            out[i] = quantize_like(rewrite->scope, out[i], scheme);
    }
    return status;
}

/* The op on the codes of its one quantized argument; 0 if scales cannot
 * follow. */
static int call_on_codes(const struct hob_call *call, struct rewrite *rewrite,
                         hob_tensor **out, uint32_t capacity, uint32_t *count)
{
    return !replace(call, HOB_DTYPE_NONE, rewrite) &&
           !hob__call(rewrite->scope, call->op, rewrite->args, call->arg_count,
                      out, capacity, count, call->plains, call->plain_count) &&
           !rewrite->scope->failure &&
           give_scales(call, rewrite->scope, out, *count);
}

hob_status hob__call_quantized(struct hob_call *call, hob_tensor **out,
                               uint32_t capacity)
{
    struct hob_scope_frame frame;
    struct rewrite rewrite;
    hob_scope *scope =
        hob__scope_enter(call->scope, &frame, call->scope->level);
    hob_status status = HOB_OK;
    uint32_t count = 0;
    hob_dtype dtype;

    memset(&rewrite, 0, sizeof(rewrite));
    rewrite.scope = scope;
    dtype = look(call, &rewrite);
    if (!moves_codes(call, &rewrite) ||
        (!call_on_codes(call, &rewrite, out, capacity, &count) &&
         !scope->failure))
        status = call_on_floats(call, dtype, &rewrite, out, capacity, &count);
    if (status || scope->failure)
        status = pass_on(call, scope);
    if (!status)
        status = hand_out(call, out, count);
    for (uint32_t i = 0; i < call->arg_count; i++)
        free(rewrite.lists[i]);
    hob__scope_leave(scope);
    return status;
}
