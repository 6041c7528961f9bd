/* SPDX-License-Identifier: Apache-2.0 */
#include "product.h"

#include "device.h"

#include <cube/cube.h>
#include <cube/ops/matmul.h>

#include <string.h>

/* Batches in more than one dimension are products one after the other, up to
 * so many. */
enum { MOST_PRODUCTS = 64 };

struct ccu_matrix ccu_matrix_of(const struct hob_view *view)
{
    const int64_t rows = view->shape[view->rank - 2];
    const int64_t columns = view->shape[view->rank - 1];
    struct ccu_matrix matrix = {view->data, view->strides[view->rank - 2],
                                view->strides[view->rank - 1], 0};

    if (columns == 1 && (matrix.row >= 1 || rows == 1))
        matrix.column = 1;
    if (rows == 1 && matrix.column == 1)
        matrix.row = columns;
    return matrix;
}

/* LHS by RHS to OUT. */
struct views {
    const struct hob_view *lhs, *rhs, *out;
};

/* The batch of VIEWS as one loop; operands are lhs and rhs. */
static void batch_init(struct cube_space *batch, const struct views *views)
{
    const struct hob_view *out = views->out;

    cube_space_init(batch, out->rank - 2u, out->shape);
    for (uint32_t i = 0; i < 2; i++) {
        struct hob_view outer = i ? *views->rhs : *views->lhs;

        outer.rank = (uint8_t)(outer.rank - 2);
        cube_space_add(batch, &outer);
    }
    cube_space_collapse(batch);
}

/* Fill PRODUCT, for the innermost dimension of BATCH; 0 where it is not for
 * cuBLASLt. */
static int product_init(struct ccu_product *product,
                        const struct cube_space *batch,
                        const struct views *views)
{
    const struct hob_view *lhs = views->lhs, *out = views->out;
    const uint32_t last = batch->rank - 1;

    product->dtype = out->dtype;
    product->m = out->shape[out->rank - 2];
    product->n = out->shape[out->rank - 1];
    product->k = lhs->shape[lhs->rank - 1];
    product->count = batch->rank ? batch->sizes[last] : 1;
    product->a = ccu_matrix_of(lhs);
    product->b = ccu_matrix_of(views->rhs);
    product->c = out->data;
    product->c_batch = product->m * product->n;
    if (batch->rank) {
        product->a.batch = batch->strides[0][last];
        product->b.batch = batch->strides[1][last];
    }
    return product->k > 0 && ccu_blas_takes_dtype(out->dtype) &&
           lhs->dtype == out->dtype && views->rhs->dtype == out->dtype &&
           product->a.batch >= 0 && product->b.batch >= 0 &&
           batch->count / product->count <= MOST_PRODUCTS &&
           ccu_blas_takes(&product->a, product->m, product->k) &&
           ccu_blas_takes(&product->b, product->k, product->n);
}

/* Let PRODUCT's operands be those of place AT of BATCH's outer dimensions. */
static void move_to(struct ccu_product *product, const struct cube_space *batch,
                    const struct ccu_product *first, int64_t at)
{
    const int64_t size = hob_dtype_size(product->dtype);
    int64_t a = 0, b = 0, rest = at;

    for (uint32_t i = batch->rank - 1; i-- > 0;) {
        const int64_t place = rest % batch->sizes[i];

        rest /= batch->sizes[i];
        a += place * batch->strides[0][i];
        b += place * batch->strides[1][i];
    }
    product->a.data = (const char *)first->a.data + a * size;
    product->b.data = (const char *)first->b.data + b * size;
    product->c =
        (char *)first->c + at * first->count * first->c_batch * size;
}

hob_status ccu_matmul(struct cube_device *opened, struct hob_call *call,
                      const struct hob_view *lhs, const struct hob_view *rhs,
                      const struct hob_view *out)
{
    struct ccu_device *device = (struct ccu_device *)opened;
    const struct views views = {lhs, rhs, out};
    struct ccu_product first, product;
    struct cube_space batch;
    char *message = NULL;
    hob_status status = HOB_ERR_UNSUPPORTED;
    int64_t outer;
    int is_pushed;

    if (hob_view_count(out) == 0)
        return HOB_OK;
    memset(&first, 0, sizeof(first));
    batch_init(&batch, &views);
    if (!product_init(&first, &batch, &views))
        return cube_matmul_portable(opened, call, lhs, rhs, out);
    product = first;
    outer = batch.rank ? batch.count / first.count : 1;
    status = ccu_begin(device, call->op_name, &is_pushed, &message);
    if (status)
        goto fail;
    for (int64_t i = 0; i < outer; i++) {
        if (outer > 1)
            move_to(&product, &batch, &first, i);
        status = ccu_blas_multiply(device, &product, &message);
        if (status)
            break;
    }
    status = ccu_end(device, is_pushed, status, &message);
    if (status == HOB_ERR_UNSUPPORTED)
        return cube_matmul_portable(opened, call, lhs, rhs, out);
    if (!status)
        return HOB_OK;
fail:
    return cube_fail(&device->cube, call, status, message);
}
