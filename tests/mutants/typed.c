/* SPDX-License-Identifier: Apache-2.0 */
/*
 * typed.c - keeps every rule with extension types: an enum of tensors, a
 * struct with a plain field, results that are absent, plain, or a list.
 * Nothing may be found.
 */
#include "mutant.h"

enum { TAG, DENSE, VALUES, INDICES, LIKE };
enum { IS_DENSE, IS_SPARSE, IS_EMPTY };

static hob_status copy_meta(const struct hob_view *view, struct hob_meta *out)
{
    out->dtype = view->dtype;
    out->rank = view->rank;
    for (uint32_t d = 0; d < view->rank; d++)
        out->shape[d] = view->shape[d];
    return HOB_OK;
}

static hob_status densify_infer(struct hob_call *call, struct hob_meta *out)
{
    static const uint32_t from[] = {DENSE, VALUES, LIKE};
    const struct hob_view *view =
        hob_arg_view(call, from[call->args[TAG].u.i64]);
    const struct hob_view *indices = hob_arg_view(call, INDICES);

    if (!view)
        return call->host->fail(call, HOB_ERR_ARGUMENT,
                                "an empty operand needs like");
    if (indices && (indices->rank != 1 || view->rank != 1 ||
                    indices->shape[0] != view->shape[0]))
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "values and indices must be vectors alike");
    return copy_meta(view, out);
}

static hob_status densify_body(hob_scope *scope, const struct hob_call *call,
                               hob_tensor **out)
{
    const hob_value *args = call->args;
    hob_tensor *values = args[VALUES].u.tensor;

    if (args[TAG].u.i64 == IS_DENSE)
        out[0] = hob_neg(scope, args[DENSE].u.tensor);
    else if (args[TAG].u.i64 == IS_SPARSE)
        out[0] =
            hob_scatter_add(scope, hob_mul_scalar(scope, values, hob_f64(0)),
                            args[INDICES].u.tensor, values, 0);
    else
        out[0] = hob_mul_scalar(scope, args[LIKE].u.tensor, hob_f64(0));
    return hob_scope_host(scope)->scope_status(scope);
}

static hob_status mul_pair_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *y = hob_arg_view(call, 1);

    if (x->rank != y->rank)
        return call->host->fail(call, HOB_ERR_SHAPE, "x and y must be alike");
    for (uint32_t d = 0; d < x->rank; d++)
        if (x->shape[d] != y->shape[d])
            return call->host->fail(call, HOB_ERR_SHAPE,
                                    "x and y must be alike");
    call->plains[0].u.i64 = call->args[2].u.i64;
    return copy_meta(x, out);
}

static hob_status mul_pair_body(hob_scope *scope, const struct hob_call *call,
                                hob_tensor **out)
{
    out[0] = hob_mul(scope, call->args[0].u.tensor, call->args[1].u.tensor);
    return hob_scope_host(scope)->scope_status(scope);
}

static hob_status classify_infer(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    call->plains[0].u.i64 = x->rank == 1   ? IS_DENSE
                            : x->rank == 2 ? IS_SPARSE
                                           : IS_EMPTY;
    if (x->rank == 1)
        return copy_meta(x, &out[0]);
    if (x->rank != 2)
        return HOB_OK;
    (void)copy_meta(x, &out[1]);
    (void)copy_meta(x, &out[2]);
    out[2].dtype = HOB_DTYPE_I64;
    return HOB_OK;
}

static hob_status classify_body(hob_scope *scope, const struct hob_call *call,
                                hob_tensor **out)
{
    hob_tensor *x = call->args[0].u.tensor;

    if (call->plains[0].u.i64 == IS_DENSE)
        out[0] = hob_neg(scope, x);
    if (call->plains[0].u.i64 == IS_SPARSE) {
        out[1] = hob_mul(scope, x, x);
        out[2] = hob_cast(scope, hob_greater_scalar(scope, x, hob_f64(0)),
                          HOB_DTYPE_I64);
    }
    return hob_scope_host(scope)->scope_status(scope);
}

static hob_status pieces_infer(struct hob_call *call, struct hob_meta *out)
{
    int64_t n = call->args[1].u.i64;

    if (n < 1 || n > HOB_MAX_RESULTS)
        return call->host->fail(call, HOB_ERR_RANGE, "n must be 1 to 16");
    if (!out) {
        call->ret_count = (uint16_t)n;
        return HOB_OK;
    }
    for (int64_t i = 0; i < n; i++)
        (void)copy_meta(hob_arg_view(call, 0), &out[i]);
    return HOB_OK;
}

static hob_status pieces_body(hob_scope *scope, const struct hob_call *call,
                              hob_tensor **out)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        out[i] =
            hob_mul_scalar(scope, call->args[0].u.tensor, hob_f64(i + 1.0));
    return hob_scope_host(scope)->scope_status(scope);
}

static const struct hob_extension_op ops[] = {
    {.name = "m.densify",
     .signature = "(operand: enum(Dense, Sparse, Empty), operand.Dense: "
                  "Float?, operand.Sparse.values: Float?, "
                  "operand.Sparse.indices: Int?, like: Float?) -> Float",
     .infer = densify_infer,
     .body = densify_body},
    {.name = "m.mul_pair",
     .signature = "(pair.x: Float, pair.y: Float, pair.n: i64) -> (Float, n: "
                  "value(i64))",
     .infer = mul_pair_infer,
     .body = mul_pair_body},
    {.name = "m.classify",
     .signature = "(x: Float) -> (Dense: Float?, Sparse.values: Float?, "
                  "Sparse.indices: Int?, variant: value(enum(Dense, Sparse, "
                  "Empty)))",
     .infer = classify_infer,
     .body = classify_body},
    {.name = "m.pieces",
     .signature = "(x: Float, n: i64) -> [x]",
     .infer = pieces_infer,
     .body = pieces_body}};

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD, .op_count = sizeof(ops) / sizeof(ops[0]),
    .ops = ops};

static const struct hob_plugin table = {HOB_PLUGIN_INIT_HEAD, .id = "mutant",
                                        .version = "1.0.0",
                                        .extension = &extension};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
