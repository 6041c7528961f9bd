/* SPDX-License-Identifier: Apache-2.0 */
#include "linear.h"

#include "device.h"
#include "product.h"

#include <cube/compute.h>
#include <hob/ext/cube.h>

#include <string.h>

/* ---- products ---- */

/* The numbers are the same. */
_Static_assert((int)HOB_CUBE_BIAS == (int)CCU_BIAS &&
                   (int)HOB_CUBE_RELU == (int)CCU_RELU &&
                   (int)HOB_CUBE_GELU_TANH == (int)CCU_GELU_TANH &&
                   (int)HOB_CUBE_SUM_B == (int)CCU_SUM_B &&
                   (int)HOB_CUBE_KEEP == (int)CCU_KEEP &&
                   (int)HOB_CUBE_RELU_SLOPE == (int)CCU_RELU_SLOPE &&
                   (int)HOB_CUBE_GELU_TANH_SLOPE == (int)CCU_GELU_TANH_SLOPE &&
                   (int)HOB_CUBE_SUM_C == (int)CCU_SUM_C,
               "enum ccu_epilogue is enum hob_cube_epilogue");

/* GEMM for cuBLASLt; 0 where that does not take it. */
static int product_init(struct ccu_product *product,
                        const struct hob_cube_gemm *gemm)
{
    memset(product, 0, sizeof(*product));
    product->dtype = gemm->c->dtype;
    product->epilogue = gemm->epilogue;
    product->m = gemm->c->shape[0];
    product->n = gemm->c->shape[1];
    product->k = gemm->a->shape[1];
    product->count = 1;
    product->a = ccu_matrix_of(gemm->a);
    product->b = ccu_matrix_of(gemm->b);
    product->c = gemm->c->data;
    product->c_batch = product->m * product->n;
    product->bias = gemm->bias ? gemm->bias->data : NULL;
    if (gemm->epilogue & CCU_WITH_AUX) {
        product->aux = gemm->aux->data;
        product->aux_stride = gemm->aux->strides[0];
        if (gemm->aux->dtype == HOB_DTYPE_U8) /* eight bits a byte */
            product->aux_stride *= 8;
    }
    return ccu_blas_takes_dtype(product->dtype) &&
           ccu_blas_takes(&product->a, product->m, product->k) &&
           ccu_blas_takes(&product->b, product->k, product->n);
}

hob_status ccu_gemm(struct cube_device *opened, const char *name,
                    const struct hob_cube_gemm *gemm, char **out_message)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    struct ccu_product product;
    hob_status status;
    int is_pushed;

    if (!product_init(&product, gemm))
        return HOB_ERR_UNSUPPORTED;
    status = ccu_begin(device, name, &is_pushed, out_message);
    if (!status) {
        status = ccu_blas_multiply(device, &product, out_message);
        status = ccu_end(device, is_pushed, status, out_message);
    }
    return status;
}

/* ---- the op linear ---- */

/* What CALL of linear is as a product. */
struct linear {
    struct hob_view x, out; /* as matrices */
    struct hob_cube_gemm gemm;
};

/* Before it is run CALL has no result yet: DATA is where it will lie. */
static int linear_init(struct linear *linear, const struct hob_call *call,
                       void *data)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *weight = hob_arg_view(call, 1);
    const struct hob_view *bias =
        cube_arg_absent(call, 2) ? NULL : hob_arg_view(call, 2);
    struct hob_cube_gemm *gemm = &linear->gemm;

    if (weight->rank != 2 || !cube_as_matrix(x, &linear->x) ||
        (bias && bias->strides[0] != 1 && bias->shape[0] != 1))
        return 0;
    linear->out = linear->x;
    linear->out.data = data;
    linear->out.shape[1] = weight->shape[1];
    linear->out.strides[0] = weight->shape[1];
    linear->out.strides[1] = 1;
    gemm->struct_size = sizeof(*gemm);
    gemm->epilogue = bias ? HOB_CUBE_BIAS : 0;
    gemm->a = &linear->x;
    gemm->b = weight;
    gemm->c = &linear->out;
    gemm->bias = bias;
    return linear->x.shape[0] > 0 && linear->x.shape[1] > 0 &&
           weight->shape[1] > 0;
}

static hob_status prepare(void *opened, const struct hob_call *call,
                          struct hob_prepare *out)
{
    struct ccu_device *device = opened;
    struct ccu_product product;
    struct linear linear;
    int is_pushed, has;

    (void)out;
    /* Results are as aligned as cuBLASLt can make use of. */
    if (!linear_init(&linear, call, NULL) ||
        !product_init(&product, &linear.gemm))
        return HOB_ERR_UNSUPPORTED;
    is_pushed = ccu_enter(device);
    has = ccu_blas_has(device, &product);
    ccu_leave(device, is_pushed);
    return has ? HOB_OK : HOB_ERR_UNSUPPORTED;
}

static hob_status linear(void *device, struct hob_call *call)
{
    struct linear linear;
    char *message = NULL;
    hob_status status;

    (void)linear_init(&linear, call, hob_ret_view(call, 0)->data);
    status = ccu_gemm(device, call->op_name, &linear.gemm, &message);
    return status && status != HOB_ERR_UNSUPPORTED
               ? cube_fail(device, call, status, message)
               : status;
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "linear",
        .signature = "(x: Float, weight: Float, bias: Float?) -> x",
        .dtypes = masks,
        .dtype_count = 3,
        .prepare = prepare,
        .execute = linear,
    },
};

const struct cube_entries ccu_linear_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
