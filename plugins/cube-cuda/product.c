/* SPDX-License-Identifier: Apache-2.0 */
#include "product.h"

#include "device.h"

#include <cube/cube.h>
#include <cube/launch.h>

#include <string.h>

/* Batches in more than one dimension are products one after the other, up to
 * so many. */
enum { MOST_PRODUCTS = 64 };

static hob_status portable(void *device, struct hob_call *call)
{
    return cube_matmul_entries.entries[0].execute(device, call);
}

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

/* The batch of CALL as one loop; operands 0 and 1 are the arguments. */
static void batch_init(struct cube_space *batch, const struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);

    cube_space_init(batch, out->rank - 2u, out->shape);
    for (uint32_t i = 0; i < 2; i++) {
        struct hob_view outer = *hob_arg_view(call, i);

        outer.rank = (uint8_t)(outer.rank - 2);
        cube_space_add(batch, &outer);
    }
    cube_space_collapse(batch);
}

/* Fill PRODUCT, for the innermost dimension of BATCH; 0 where it is not for
 * cuBLASLt. */
static int product_init(struct ccu_product *product,
                        const struct cube_space *batch,
                        const struct hob_call *call)
{
    const struct hob_view *lhs = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    const uint32_t last = batch->rank - 1;

    product->dtype = out->dtype;
    product->m = out->shape[out->rank - 2];
    product->n = out->shape[out->rank - 1];
    product->k = lhs->shape[lhs->rank - 1];
    product->count = batch->rank ? batch->sizes[last] : 1;
    product->a = ccu_matrix_of(lhs);
    product->b = ccu_matrix_of(hob_arg_view(call, 1));
    product->c = out->data;
    product->c_batch = product->m * product->n;
    if (batch->rank) {
        product->a.batch = batch->strides[0][last];
        product->b.batch = batch->strides[1][last];
    }
    return product->k > 0 && ccu_blas_takes_dtype(out->dtype) &&
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

static hob_status matmul(void *opened, struct hob_call *call)
{
    struct ccu_device *device = opened;
    struct ccu_product first, product;
    struct cube_space batch;
    char *message = NULL;
    hob_status status = HOB_ERR_UNSUPPORTED;
    int64_t outer;
    int is_pushed;

    if (hob_view_count(hob_ret_view(call, 0)) == 0)
        return HOB_OK;
    memset(&first, 0, sizeof(first));
    batch_init(&batch, call);
    if (!product_init(&first, &batch, call))
        return portable(device, call);
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
        return portable(device, call);
    if (!status)
        return HOB_OK;
fail:
    return cube_fail(&device->cube, call, status, message);
}

void ccu_matmul_install(struct hob_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(entries[i].op, "matmul"))
            entries[i].execute = matmul;
}
