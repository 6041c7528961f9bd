/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_cuda_parts.h"

#include <cube-cuda/blas.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cublasLtContext {
    int unused;
};

static int fake_blas_create(struct cublasLtContext **handle)
{
    IN_CONTEXT("cublasLtCreate");
    *handle = malloc(sizeof(**handle));
    fake_cuda.handles++;
    return 0;
}

static int fake_blas_destroy(struct cublasLtContext *handle)
{
    free(handle);
    fake_cuda.handles--;
    return 0;
}

static int new_object(void **out, const char *name)
{
    FAULT(name);
    *out = calloc(1, sizeof(struct fake_blas_object));
    fake_cuda.layouts++;
    return 0;
}

static int free_object(void *object)
{
    free(object);
    fake_cuda.layouts--;
    return 0;
}

static int fake_desc_create(void **desc, int compute_type, int scale_type)
{
    (void)scale_type;
    if (compute_type != 68 && compute_type != 70 && compute_type != 77)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    return new_object(desc, "cublasLtMatmulDescCreate");
}

static int fake_desc_set(void *desc, int attribute, const void *value,
                         size_t bytes)
{
    struct fake_blas_object *object = desc;
    int turned;

    FAULT("cublasLtMatmulDescSetAttribute");
    if (attribute == 7 && bytes == sizeof(object->epilogue)) {
        memcpy(&object->epilogue, value, bytes);
        return 0;
    }
    if (attribute == 8 && bytes == sizeof(object->bias)) {
        memcpy(&object->bias, value, bytes);
        return 0;
    }
    if (attribute == 11 && bytes == sizeof(object->aux)) {
        memcpy(&object->aux, value, bytes);
        return 0;
    }
    if (attribute == 12 && bytes == sizeof(object->aux_stride)) {
        memcpy(&object->aux_stride, value, bytes);
        return 0;
    }
    if (bytes != sizeof(turned) || (attribute != 3 && attribute != 4))
        return 7;
    memcpy(&turned, value, sizeof(turned));
    object->turned[attribute - 3] = turned;
    return 0;
}

static int fake_layout_create(void **layout, int type, uint64_t rows,
                              uint64_t columns, int64_t stride)
{
    const int result = new_object(layout, "cublasLtMatrixLayoutCreate");
    struct fake_blas_object *object = *layout;

    if (result)
        return result;
    if (stride < (int64_t)rows)
        return 7;
    object->type = type;
    object->rows = (int64_t)rows;
    object->columns = (int64_t)columns;
    object->stride = stride;
    object->count = 1;
    return 0;
}

static int fake_layout_set(void *layout, int attribute, const void *value,
                           size_t bytes)
{
    struct fake_blas_object *object = layout;

    FAULT("cublasLtMatrixLayoutSetAttribute");
    if (attribute == 5 && bytes == sizeof(object->count))
        memcpy(&object->count, value, bytes);
    else if (attribute == 6 && bytes == sizeof(object->batch))
        memcpy(&object->batch, value, bytes);
    else
        return 7;
    return 0;
}

static int fake_preference_create(void **preference)
{
    return new_object(preference, "cublasLtMatmulPreferenceCreate");
}

static int fake_preference_set(void *preference, int attribute,
                               const void *value, size_t bytes)
{
    uint64_t workspace;

    (void)preference;
    FAULT("cublasLtMatmulPreferenceSetAttribute");
    if (attribute == 1 && bytes == sizeof(workspace)) {
        memcpy(&workspace, value, bytes);
        fake_cuda.workspace_bytes = workspace;
    }
    return bytes == (attribute == 1 ? 8u : 4u) ? 0 : 7;
}

static int fake_heuristic(struct cublasLtContext *handle, void *desc, void *a,
                          void *b, void *c, void *d, void *preference,
                          int wanted, void *results, int *found)
{
    (void)handle;
    (void)desc;
    (void)a;
    (void)b;
    (void)d;
    (void)c;
    (void)preference;
    FAULT("cublasLtMatmulAlgoGetHeuristic");
    fake_cuda.heuristics++;
    memset(results, 0, 96 * (size_t)wanted);
    *found = !fake_cuda.has_no_kernel;
    return 0;
}

static double element(const void *data, const struct fake_blas_object *layout,
                      int turned, int64_t batch, int64_t row, int64_t column)
{
    const int64_t at =
        batch * layout->batch + (turned ? row * layout->stride + column
                                        : column * layout->stride + row);

    return layout->type == 1 ? ((const double *)data)[at]
                             : (double)((const float *)data)[at];
}

static double number_at(const void *data, int type, int64_t at)
{
    return type == 1 ? ((const double *)data)[at]
                     : (double)((const float *)data)[at];
}

static void store(void *data, int type, int64_t at, double value)
{
    if (type == 1)
        ((double *)data)[at] = value;
    else
        ((float *)data)[at] = (float)value;
}

/* CUBLASLT_EPILOGUE_.. are made of these. */
enum {
    RELU = 2,
    BIAS = 4,
    D_RELU = 8,
    BGRAD = 16,
    GELU = 32,
    D_GELU = 64,
    AUX = 128,
    BGRADA = 256
};

/* Whether the library takes DESC's epilogue for a result of ROWS. */
static int epilogue_is_known(const struct fake_blas_object *desc, int64_t rows)
{
    static const int known[] = {0,
                                1,
                                RELU,
                                RELU | AUX,
                                BIAS,
                                RELU | BIAS,
                                GELU | BIAS,
                                RELU | AUX | BIAS,
                                GELU,
                                GELU | AUX,
                                GELU | AUX | BIAS,
                                D_RELU | AUX,
                                D_RELU | AUX | BGRAD,
                                D_GELU | AUX,
                                D_GELU | AUX | BGRAD,
                                BGRADA};
    const int least = desc->epilogue & (RELU | D_RELU) ? 128 : 8;

    if ((desc->epilogue & AUX) && desc->epilogue < BGRADA &&
        (!desc->aux || desc->aux_stride < rows || desc->aux_stride % least))
        return 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (desc->epilogue == known[i])
            return 1;
    return 0;
}

static double gelu(double x, double *out_slope)
{
    const double c = sqrt(2 / acos(-1));
    const double t = tanh(c * (x + 0.044715 * x * x * x));

    *out_slope =
        (1 + t) / 2 + x / 2 * (1 - t * t) * c * (1 + 3 * 0.044715 * x * x);
    return x / 2 * (1 + t);
}

static void set_bit(unsigned char *bits, int64_t at, int is_set)
{
    bits[at / 8] = (unsigned char)((bits[at / 8] & ~(1u << at % 8)) |
                                   (unsigned)is_set << at % 8);
}

/* The documented meaning of an epilogue, for X at ROW and COLUMN of d. */
static double finish(const struct fake_product *product, int64_t row,
                     int64_t column, double x)
{
    const struct fake_blas_object *desc = &product->desc;
    const int epilogue = desc->epilogue >= BGRADA ? 0 : desc->epilogue;
    const int64_t at = column * desc->aux_stride + row;
    const int type = product->to.type;
    double slope;

    if (epilogue & BIAS)
        x += number_at(desc->bias, type, row);
    if ((epilogue & RELU) && (epilogue & AUX))
        set_bit(desc->aux, at, x >= 0);
    if ((epilogue & GELU) && (epilogue & AUX))
        store(desc->aux, type, at, x);
    if ((epilogue & RELU) && x < 0)
        x = 0;
    if (epilogue & GELU)
        x = gelu(x, &slope);
    if (epilogue & D_RELU)
        x *= ((const unsigned char *)desc->aux)[at / 8] >> at % 8 & 1;
    if (epilogue & D_GELU) {
        (void)gelu(number_at(desc->aux, type, at), &slope);
        x *= slope;
    }
    return x;
}

/* .._BGRAD: the sums of d's rows. */
static void sum_result(const struct fake_product *product)
{
    const struct fake_blas_object *to = &product->to;

    for (int64_t i = 0; i < to->rows; i++) {
        double sum = 0;

        for (int64_t j = 0; j < to->columns; j++)
            sum += number_at(product->d, to->type, j * to->stride + i);
        store(product->desc.bias, to->type, i, sum);
    }
}

/* BGRADA: the sum of a along the inner dimension. */
static void sum_rows(const struct fake_product *product, int64_t inner)
{
    for (int64_t i = 0; i < product->to.rows; i++) {
        double sum = 0;

        for (int64_t k = 0; k < inner; k++)
            sum += element(product->a, &product->left, product->desc.turned[0],
                           0, i, k);
        store(product->desc.bias, product->to.type, i, sum);
    }
}

void fake_multiply(const struct fake_product *product)
{
    const struct fake_blas_object *to = &product->to;
    const int *turned = product->desc.turned;
    const int64_t inner =
        turned[0] ? product->left.rows : product->left.columns;

    fake_cuda.products++;
    for (int64_t batch = 0; batch < to->count; batch++)
        for (int64_t i = 0; i < to->rows; i++)
            for (int64_t j = 0; j < to->columns; j++) {
                const int64_t at = batch * to->batch + j * to->stride + i;
                double sum = 0;

                for (int64_t k = 0; k < inner; k++)
                    sum += element(product->a, &product->left, turned[0], batch,
                                   i, k) *
                           element(product->b, &product->right, turned[1],
                                   batch, k, j);
                store(product->d, to->type, at, finish(product, i, j, sum));
            }
    if (product->desc.epilogue == BGRADA)
        sum_rows(product, inner);
    else if (product->desc.epilogue & BGRAD)
        sum_result(product);
}

static int fake_matmul(struct cublasLtContext *handle, void *desc,
                       const void *alpha, const void *a, void *a_layout,
                       const void *b, void *b_layout, const void *beta,
                       const void *c, void *c_layout, void *d, void *d_layout,
                       const void *algorithm, void *workspace,
                       size_t workspace_bytes, struct CUstream_st *stream)
{
    struct fake_work work = {.kind = FAKE_PRODUCT};
    struct fake_product *product = &work.product;

    (void)handle;
    (void)alpha;
    (void)beta;
    (void)c;
    (void)c_layout;
    (void)algorithm;
    IN_CONTEXT("cublasLtMatmul");
    if (workspace_bytes && !workspace)
        return 7;
    memcpy(&product->desc, desc, sizeof(product->desc));
    memcpy(&product->left, a_layout, sizeof(product->left));
    memcpy(&product->right, b_layout, sizeof(product->right));
    memcpy(&product->to, d_layout, sizeof(product->to));
    if (!epilogue_is_known(&product->desc, product->to.rows))
        return 7;
    product->a = a;
    product->b = b;
    product->d = d;
    return fake_do(stream, &work);
}

ccu_any_fn fake_cublas_find(const char *name)
{
    const struct ccu_cublas cublas = {
        .create = fake_blas_create,
        .destroy = fake_blas_destroy,
        .desc_create = fake_desc_create,
        .desc_destroy = free_object,
        .desc_set = fake_desc_set,
        .layout_create = fake_layout_create,
        .layout_destroy = free_object,
        .layout_set = fake_layout_set,
        .preference_create = fake_preference_create,
        .preference_destroy = free_object,
        .preference_set = fake_preference_set,
        .heuristic = fake_heuristic,
        .matmul = fake_matmul,
    };

#define CCU_CUBLAS(member, symbol, parameters)                                 \
    if (!strcmp(name, #symbol))                                                \
        return (ccu_any_fn)cublas.member;
#include <cube-cuda/symbols.def>
    return NULL;
}
