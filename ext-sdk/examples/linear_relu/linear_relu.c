/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_relu.c - relu(x @ w + b) as one op.
 *
 * On flex the matrix product adds the bias and clips while a block of the
 * result is still in cache. GPUs do the same in linear_relu.cube, one text for
 * all of them; every other backend runs the body. The gradient is written by
 * hand: it needs the result's sign only, so nothing between product and relu is
 * kept.
 */
#include "linear_relu_glue.h"

#include <hob/ext/cube.h>
#include <hob/ext/flex.h>

hob_tensor *nn_linear_relu_body(hob_scope *scope, hob_tensor *x, hob_tensor *w,
                                hob_tensor *b)
{
    return hob_relu(scope, hob_linear(scope, x, w, b));
}

/* The rows of X: all dimensions but the last. */
static int64_t row_count(const struct hob_view *x)
{
    int64_t rows = 1;

    for (uint32_t i = 0; i + 1 < x->rank; i++)
        rows *= x->shape[i];
    return rows;
}

/* The manifest asks for contiguous arguments, f32 or f64; infer has checked
 * the shapes. Leading dimensions of x are rows. */
hob_status nn_linear_relu_flex(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *w = hob_arg_view(call, 1);
    const struct hob_view *b = hob_arg_view(call, 2);
    const struct hob_view *y = hob_ret_view(call, 0);
    const struct flex_compute *flex;
    struct flex_gemm gemm = {.struct_size = sizeof(gemm)};
    void *instance = NULL;
    hob_status st;

    (void)device;
    flex = call->host->interface(call->device, FLEX_COMPUTE_NAME,
                                 FLEX_COMPUTE_VERSION, &instance);
    if (!flex)
        return call->host->fail(call, HOB_ERR_PLUGIN,
                                "nn.linear_relu: flex has no interface "
                                "%s version %d",
                                FLEX_COMPUTE_NAME, FLEX_COMPUTE_VERSION);
    gemm.dtype = x->dtype;
    gemm.k = w->shape[0];
    gemm.n = w->shape[1];
    gemm.m = row_count(x);
    gemm.a = x->data;
    gemm.a_row = gemm.k;
    gemm.a_column = 1;
    gemm.b = w->data;
    gemm.b_row = gemm.n;
    gemm.b_column = 1;
    gemm.c = y->data;
    gemm.ldc = gemm.n;
    gemm.alpha = 1;
    gemm.bias = b->data;
    gemm.relu = 1;
    st = flex->gemm(instance, &gemm);
    if (st)
        return call->host->fail(call, st,
                                "nn.linear_relu: the product of "
                                "x and w failed on flex");
    return HOB_OK;
}

/* ---- GPUs ---- */

/* The file as a string; the Makefile makes it. */
static const char gpu_text[] =
#include "linear_relu.cube.inc"
    ;

/* 16 by 16 invocations, as linear_relu.cube has them. */
enum { TILE = 64, EACH = 4, DEPTH = 16, GROUP = 256 };

static const struct hob_cube_kernel gpu_kernel = {
    HOB_CUBE_KERNEL_INIT_HEAD,
    .name = "linear_relu",
    .code = gpu_text,
    .buffers = {{"y", HOB_CUBE_WRITTEN, 0},
                {"x", 0, 0},
                {"w", 0, 0},
                {"b", 0, 0}},
    .params = {{"rows", HOB_CUBE_INDEX, 0},
               {"columns", HOB_CUBE_INDEX, 0},
               {"inner", HOB_CUBE_INDEX, 0}},
    .shared = {{"tile_x", "VALUE_x", "DEPTH * (TILE + 1)"},
               {"tile_w", "VALUE_w", "DEPTH * (TILE + 1)"}},
    .constants = {"TILE", "EACH", "DEPTH"},
};

/* By the runtime's library, where it has one. */
static hob_status by_library(const struct hob_cube_compute *cube,
                             void *instance, struct hob_call *call)
{
    const struct hob_view *w = hob_arg_view(call, 1);
    struct hob_view x = *hob_arg_view(call, 0), y = *hob_ret_view(call, 0);
    const struct hob_cube_gemm gemm = {HOB_CUBE_GEMM_INIT_HEAD,
                                       .epilogue =
                                           HOB_CUBE_BIAS | HOB_CUBE_RELU,
                                       .a = &x,
                                       .b = w,
                                       .c = &y,
                                       .bias = hob_arg_view(call, 2)};

    /* No size of y is 0, w may still have no rows. */
    if (!w->shape[0])
        return HOB_ERR_UNSUPPORTED;
    x.shape[0] = y.shape[0] = row_count(&x);
    x.shape[1] = x.strides[0] = w->shape[0];
    y.shape[1] = y.strides[0] = w->shape[1];
    x.strides[1] = y.strides[1] = 1;
    x.rank = y.rank = 2;
    return hob_cube_gemm_run(cube, instance, call, &gemm);
}

/* Any float dtype: the dialect computes f16 and bf16 in f32. */
hob_status nn_linear_relu_cube(void *device, struct hob_call *call)
{
    static const int32_t constants[] = {TILE, EACH, DEPTH};
    const struct hob_view *const views[] = {
        hob_ret_view(call, 0), hob_arg_view(call, 0), hob_arg_view(call, 1),
        hob_arg_view(call, 2)};
    const int64_t rows = row_count(views[1]), inner = views[2]->shape[0],
                  columns = views[2]->shape[1];
    const hob_value numbers[] = {hob_i64(rows), hob_i64(columns),
                                 hob_i64(inner)};
    void *instance = NULL;
    const struct hob_cube_compute *cube = hob_cube_find(call, &instance);
    const struct hob_cube_launch launch = {
        HOB_CUBE_LAUNCH_INIT_HEAD,
        .kernel = &gpu_kernel,
        .group_size = GROUP,
        .groups = ((rows + TILE - 1) / TILE) * ((columns + TILE - 1) / TILE),
        .views = views,
        .view_count = 4,
        .numbers = numbers,
        .number_count = 3,
        .constants = constants,
        .constant_count = 3,
    };

    hob_status st;

    (void)device;
    if (!cube)
        return HOB_ERR_PLUGIN;
    st = by_library(cube, instance, call);
    return st == HOB_ERR_UNSUPPORTED ? cube->launch(instance, call, &launch)
                                     : st;
}

/* ---- the gradient ---- */

/* TENSOR [.., columns] as a matrix of COLUMNS columns. */
static hob_tensor *as_matrix(hob_scope *scope, hob_tensor *tensor,
                             int64_t columns)
{
    int64_t shape[2] = {1, columns};

    for (int32_t i = 0; i + 1 < hob_tensor_rank(tensor); i++)
        shape[0] *= hob_tensor_shape(tensor)[i];
    return hob_tensor_rank(tensor) == 2 ? tensor
                                        : hob_reshape(scope, tensor, shape, 2);
}

/*
 * With g = grad where the result is above 0: dx = g w^T, dw = x^T g, and db is
 * g summed over all rows, which the caller does for a gradient of the
 * broadcast shape.
 */
hob_status nn_linear_relu_backward(hob_scope *scope,
                                   const struct hob_grad_call *call)
{
    const int64_t *w_shape = call->input_metas[1].shape;
    hob_tensor *g;

    if (!call->grads[0])
        return HOB_OK;
    g = hob_relu_backward(scope, call->rets[0], call->grads[0]);
    if (call->needs_grad[0])
        call->out_grads[0] =
            hob_reshape(scope,
                        hob_matmul(scope, as_matrix(scope, g, w_shape[1]),
                                   hob_swap_dims(scope, call->inputs[1], 0, 1)),
                        call->input_metas[0].shape, call->input_metas[0].rank);
    if (call->needs_grad[1]) {
        hob_tensor *x = as_matrix(scope, call->inputs[0], w_shape[0]);

        call->out_grads[1] = hob_matmul(scope, hob_swap_dims(scope, x, 0, 1),
                                        as_matrix(scope, g, w_shape[1]));
    }
    if (call->needs_grad[2])
        call->out_grads[2] = g;
    return hob_scope_host(scope)->scope_status(scope);
}
