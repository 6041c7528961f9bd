/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_densify.c - vision.densify: each variant, its gradient, what is refused.
 */
#include "test.h"

#include <string.h>

enum { ROWS = 3, COLUMNS = 5, COUNT = ROWS * COLUMNS, VALUES = 7 };

static const int64_t full[2] = {ROWS, COLUMNS};
static const double values[VALUES] = {1, 2, 4, 8, 16, 32, 64};
/* Position 14 comes three times, 0 twice. */
static const int64_t positions[VALUES] = {14, 0, 3, 14, 0, 14, 7};

/* Where the values go by hand; also what their gradient is gathered by. */
static void scatter(double *out)
{
    memset(out, 0, COUNT * sizeof(*out));
    for (int i = 0; i < VALUES; i++)
        out[positions[i]] += values[i];
}

/* The positions as [k], or as rows of two indices. */
static hob_tensor *indices(struct context *context, hob_device *device,
                           int as_rows, hob_dtype dtype)
{
    int64_t rows[2 * VALUES];
    const int64_t flat[1] = {VALUES}, shape[2] = {VALUES, 2};

    for (int i = 0; i < VALUES; i++) {
        rows[2 * i] = positions[i] / COLUMNS;
        rows[2 * i + 1] = positions[i] % COLUMNS;
    }
    return hob_cast(
        context->scope,
        as_rows ? hob_from_i64(context->scope, device, rows, shape, 2)
                : hob_from_i64(context->scope, device, positions, flat, 1),
        dtype);
}

static void test_variants(struct context *context, hob_dtype dtype)
{
    static const hob_dtype integers[] = {HOB_DTYPE_I64, HOB_DTYPE_I32,
                                         HOB_DTYPE_U8, HOB_DTYPE_I8};
    const int64_t k = VALUES;
    double wanted[COUNT], zeros[COUNT] = {0};
    hob_scope *scope = context->scope;
    hob_device *flex = context->flex;
    struct vision_operand operand = {.variant = VISION_OPERAND_SPARSE};
    hob_tensor *like;

    scatter(wanted);
    like = hob_mul_scalar(scope, tensor(context, flex, dtype, wanted, full, 2),
                          hob_f64(-3));
    operand.u.sparse.values = tensor(context, flex, dtype, values, &k, 1);
    for (int i = 0; i < 8; i++) {
        operand.u.sparse.indices =
            indices(context, flex, i & 1, integers[i / 2]);
        check_elements(context, "sparse", vision_densify(scope, &operand, like),
                       wanted, COUNT, 0);
    }
    operand.variant = VISION_OPERAND_DENSE;
    operand.u.dense = tensor(context, flex, dtype, wanted, full, 2);
    check_elements(context, "dense", vision_densify(scope, &operand, like),
                   wanted, COUNT, 0);
    operand.variant = VISION_OPERAND_EMPTY;
    check_elements(context, "empty", vision_densify(scope, &operand, like),
                   zeros, COUNT, 0);
}

/* Ranks 0 and 3, no values, no elements. */
static void test_shapes(struct context *context)
{
    static const double cube[2 * 3 * 2] = {0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 5};
    static const double two[2] = {3, 5};
    static const int64_t rows[6] = {0, 2, 0, 1, 2, 1};
    const int64_t shape[3] = {2, 3, 2}, by_row[2] = {2, 3}, count = 2;
    const int64_t none = 0, no_columns[2] = {2, 0}, zero[2] = {0, 0};
    const double sum = 8;
    hob_scope *scope = context->scope;
    hob_device *flex = context->flex;
    struct vision_operand operand = {.variant = VISION_OPERAND_SPARSE};

    operand.u.sparse.values =
        tensor(context, flex, HOB_DTYPE_F32, two, &count, 1);
    operand.u.sparse.indices = hob_from_i64(scope, flex, rows, by_row, 2);
    check_elements(
        context, "cube",
        vision_densify(scope, &operand,
                       hob_zeros(scope, shape, 3, flex, HOB_DTYPE_F32)),
        cube, 12, 0);
    operand.u.sparse.indices =
        hob_zeros(scope, no_columns, 2, flex, HOB_DTYPE_I64);
    check_elements(
        context, "rank 0",
        vision_densify(scope, &operand,
                       hob_zeros(scope, NULL, 0, flex, HOB_DTYPE_F32)),
        &sum, 1, 0);
    operand.u.sparse.indices = hob_from_i64(scope, flex, zero, &count, 1);
    check_elements(
        context, "rank 0, positions",
        vision_densify(scope, &operand,
                       hob_zeros(scope, NULL, 0, flex, HOB_DTYPE_F32)),
        &sum, 1, 0);
    operand.u.sparse.values = hob_zeros(scope, &none, 1, flex, HOB_DTYPE_F32);
    operand.u.sparse.indices = hob_zeros(scope, &none, 1, flex, HOB_DTYPE_I64);
    check_elements(
        context, "no elements",
        vision_densify(scope, &operand,
                       hob_zeros(scope, &none, 1, flex, HOB_DTYPE_F32)),
        NULL, 0, 0);
    check_elements(
        context, "no values",
        vision_densify(scope, &operand,
                       hob_zeros(scope, NULL, 0, flex, HOB_DTYPE_F32)),
        (double[]){0}, 1, 0);
}

static void test_gradients(struct context *context)
{
    double weights[COUNT], wanted[VALUES];
    const int64_t k = VALUES;
    hob_scope *scope = context->scope;
    hob_device *device = context->tracking;
    struct vision_operand operand = {.variant = VISION_OPERAND_SPARSE};
    hob_tensor *factor, *like, *leaf;

    for (int i = 0; i < COUNT; i++)
        weights[i] = i - 6;
    for (int i = 0; i < VALUES; i++)
        wanted[i] = weights[positions[i]];
    factor = tensor(context, device, HOB_DTYPE_F32, weights, full, 2);
    /* It is tracked, but its elements do not matter. */
    like = hob_require_grad(scope,
                            hob_zeros(scope, full, 2, device, HOB_DTYPE_F32));
    leaf = operand.u.sparse.values = hob_require_grad(
        scope, tensor(context, device, HOB_DTYPE_F32, values, &k, 1));
    for (int i = 0; i < 2; i++) {
        operand.u.sparse.indices = indices(context, device, i, HOB_DTYPE_I64);
        check_gradient(
            context, "values",
            hob_mul(scope, factor, vision_densify(scope, &operand, like)), leaf,
            wanted, VALUES, 0);
    }
    operand.variant = VISION_OPERAND_DENSE;
    leaf = operand.u.dense = hob_require_grad(
        scope, tensor(context, device, HOB_DTYPE_F32, weights, full, 2));
    check_gradient(
        context, "dense",
        hob_mul(scope, factor, vision_densify(scope, &operand, like)), leaf,
        weights, COUNT, 0);
    operand.variant = VISION_OPERAND_EMPTY;
    check(context, !hob_is_tracked(vision_densify(scope, &operand, like)),
          "zeros are tracked");
}

static void refuse(struct context *context, struct vision_operand *operand,
                   hob_status status, const char *part)
{
    hob_tensor *like =
        hob_zeros(context->scope, full, 2, context->flex, HOB_DTYPE_F32);

    (void)vision_densify(context->scope, operand, like);
    check_fails(context, status, part);
}

static void test_refusals(struct context *context)
{
    hob_scope *scope = context->scope;
    hob_device *flex = context->flex;
    const int64_t one = 1, two = 2, row[2] = {1, 2}, wide[2] = {1, 3};
    const int64_t outside[][2] = {{0, COLUMNS}, {-1, 0}, {ROWS, 0}, {0, -1}};
    const int64_t past[] = {COUNT, -1};
    struct vision_operand operand = {.variant = VISION_OPERAND_DENSE};
    hob_tensor *value = hob_ones(scope, &one, 1, flex, HOB_DTYPE_F32);

    operand.u.dense = value;
    refuse(context, &operand, HOB_ERR_SHAPE, "operand.Dense must have");
    operand.variant = VISION_OPERAND_SPARSE;
    operand.u.sparse.values = value;
    for (int i = 0; i < 4; i++) {
        operand.u.sparse.indices =
            hob_from_i64(scope, flex, outside[i], row, 2);
        refuse(context, &operand, HOB_ERR_RANGE, "15");
    }
    for (int i = 0; i < 2; i++) {
        operand.u.sparse.indices = hob_from_i64(scope, flex, &past[i], &one, 1);
        refuse(context, &operand, HOB_ERR_RANGE, i ? "-1" : "15");
    }
    operand.u.sparse.indices = hob_zeros(scope, wide, 2, flex, HOB_DTYPE_I64);
    refuse(context, &operand, HOB_ERR_SHAPE, "3 columns, it must have 2");
    operand.u.sparse.indices = hob_zeros(scope, &two, 1, flex, HOB_DTYPE_I64);
    refuse(context, &operand, HOB_ERR_SHAPE, "must be [1] or [1, 2]");
    operand.u.sparse.indices = hob_zeros(scope, NULL, 0, flex, HOB_DTYPE_I64);
    refuse(context, &operand, HOB_ERR_SHAPE, "operand.Sparse.indices must be");
    operand.u.sparse.indices = NULL;
    refuse(context, &operand, HOB_ERR_ARGUMENT,
           "operand.Sparse.indices is missing");
    operand.variant = VISION_OPERAND_EMPTY;
    (void)vision_densify(scope, &operand, NULL);
    check_fails(context, HOB_ERR_ARGUMENT, "like is missing");
}

void test_densify(struct context *context)
{
    test_variants(context, HOB_DTYPE_F32);
    test_variants(context, HOB_DTYPE_F64);
    test_variants(context, HOB_DTYPE_F16);
    test_variants(context, HOB_DTYPE_BF16);
    test_shapes(context);
    test_gradients(context);
    test_refusals(context);
}
