/* SPDX-License-Identifier: Apache-2.0 */
#include "conv_point.h"

#include "product.h"

#include <cube/conv_phase.h>
#include <cube/cube.h>
#include <cube/launch.h>
#include <cube/splits.h>

#include <string.h>

/* The most elements of parts of a gradient of weights. */
#define PARTS_MOST (INT64_C(1) << 26)

static const struct hob_view *tensor_of(const struct hob_call *call,
                                        uint32_t index)
{
    return call->args[index].tag == HOB_TAG_I64S ? NULL
                                                 : hob_arg_view(call, index);
}

/* VIEW's planes: a matrix [channel, place] for each image; 0 where they are
 * none. */
static int planes_of(const struct hob_view *view, struct ccu_matrix *out)
{
    const int64_t plane = view->shape[2] * view->shape[3];

    /* Halves are read by eight; odd planes are for our own kernel. */
    if ((view->strides[3] != 1 && view->shape[3] != 1) ||
        (view->strides[2] != view->shape[3] && view->shape[2] != 1) ||
        view->strides[0] < 0 ||
        (hob_dtype_size(view->dtype) == 2 && plane % 8 != 0))
        return 0;
    *out =
        (struct ccu_matrix){view->data, view->strides[1], 1, view->strides[0]};
    if (view->shape[1] == 1)
        out->row = plane;
    return ccu_blas_takes(out, view->shape[1], plane);
}

/* Weights [m, c, 1, 1] as a matrix. */
static struct ccu_matrix weights_of(const struct hob_view *view)
{
    struct hob_view matrix = *view;

    matrix.rank = 2;
    matrix.shape[0] = view->shape[0];
    return ccu_matrix_of(&matrix);
}

static struct ccu_matrix turned(const struct ccu_matrix *matrix)
{
    return (struct ccu_matrix){matrix->data, matrix->column, matrix->row,
                               matrix->batch};
}

/* Whether CALL has single taps that meet each place, and something to do. */
static int is_point(const struct hob_call *call)
{
    const struct hob_view *weight = tensor_of(call, 1);
    const int64_t *taps = (weight ? weight->shape : call->args[1].u.i64s) + 2;
    struct cube_conv of;

    cube_conv_init(&of, call);
    for (uint32_t i = 0; i < 2; i++)
        if (taps[i] != 1 || of.step[i] != 1 || of.padding[i] != 0)
            return 0;
    for (uint32_t i = 0; i < 3; i++) {
        const struct hob_view *view = tensor_of(call, i);

        if (view && hob_view_count(view) == 0)
            return 0;
    }
    return of.groups == 1;
}

/* The gradient of weights is made of a part for each image, which halves would
 * round. */
static int set_weight_product(struct ccu_product *product,
                              const struct hob_view *x,
                              const struct hob_view *grad)
{
    struct ccu_matrix planes;

    if (hob_dtype_size(x->dtype) == 2 || !planes_of(x, &planes) ||
        !planes_of(grad, &product->a))
        return 0;
    product->b = turned(&planes);
    product->m = grad->shape[1];
    product->n = x->shape[1];
    product->k = x->shape[2] * x->shape[3];
    product->c_batch = product->m * product->n;
    return product->count <= PARTS_MOST / product->c_batch;
}

/* Fill PRODUCT but for the result; 0 where CALL is not for cuBLASLt. */
static int product_init(struct ccu_product *product,
                        const struct ccu_device *device,
                        const struct hob_call *call)
{
    const struct hob_meta *out = &call->metas[0];
    const struct hob_view *x = tensor_of(call, 0);
    const struct hob_view *weight = tensor_of(call, 1);
    const struct hob_view *planes = x && weight ? x : hob_arg_view(call, 2);
    struct ccu_matrix matrix;

    memset(product, 0, sizeof(*product));
    if (!device->options.has_blas || !ccu_blas_takes_dtype(out->dtype) ||
        !is_point(call))
        return 0;
    product->dtype = out->dtype;
    product->count = planes->shape[0];
    if (!weight)
        return set_weight_product(product, x, planes);
    /* A bias of rows is none of cuBLASLt's. */
    if (x && hob_arg_view(call, 2))
        return 0;
    matrix = weights_of(weight);
    product->a = x ? matrix : turned(&matrix);
    product->m = out->shape[1];
    product->k = planes->shape[1];
    product->n = out->shape[2] * out->shape[3];
    product->c_batch = product->m * product->n;
    return planes_of(planes, &product->b) &&
           ccu_blas_takes(&product->a, product->m, product->k);
}

int ccu_point_takes(struct ccu_device *device, const struct hob_call *call)
{
    struct ccu_product product;

    return product_init(&product, device, call);
}

static hob_status multiply(struct ccu_device *device, struct hob_call *call,
                           const struct ccu_product *product)
{
    char *message = NULL;
    int is_pushed;
    hob_status status = ccu_begin(device, call->op_name, &is_pushed, &message);

    if (!status) {
        status = ccu_blas_multiply(device, product, &message);
        status = ccu_end(device, is_pushed, status, &message);
    }
    return status && status != HOB_ERR_UNSUPPORTED
               ? cube_fail(&device->cube, call, status, message)
               : status;
}

hob_status ccu_point_run(struct ccu_device *device, struct hob_call *call)
{
    struct cube_device *cube = &device->cube;
    struct ccu_product product;
    struct cube_parts parts;
    hob_status status;

    if (!product_init(&product, device, call))
        return HOB_ERR_UNSUPPORTED;
    product.c = hob_ret_view(call, 0)->data;
    if (tensor_of(call, 1) || product.count == 1)
        return multiply(device, call, &product);
    status = cube_parts_take(&parts, cube, call, hob_ret_view(call, 0),
                             product.dtype, product.count);
    if (status)
        return status;
    product.c = parts.data;
    return cube_parts_add(&parts, cube, call, multiply(device, call, &product));
}
