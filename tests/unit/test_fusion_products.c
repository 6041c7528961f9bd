/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products that groups finish: the same bits as op by op, for sizes of every
 * way in which flex multiplies, whatever comes after; that it is one kernel,
 * and that it is none where somebody wants the product.
 */
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *devices[2]; /* op by op, and put off */
static hob_error error;

static struct {
    int groups, singles;
    char name[128], single[128];
    uint64_t saved;
} seen;

static void watch(void *context, const struct hob_fusion_event *event)
{
    (void)context;
    if (!event->is_group) {
        seen.singles++;
        snprintf(seen.single, sizeof(seen.single), "%s", event->name);
        return;
    }
    seen.groups++;
    seen.saved = event->saved_bytes;
    snprintf(seen.name, sizeof(seen.name), "%s", event->name);
}

static void setup(void)
{
    struct hob_runtime_options options = test_options();

    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(test_device_open(runtime, "flex", &devices[0], &error));
    ck_assert_hob_ok(
        test_device_open(runtime, "fusion(flex)", &devices[1], &error));
    ck_assert_hob_ok(hob_fusion_watch(devices[1], watch, NULL, &error));
    scope = hob_scope_open(runtime);
    memset(&seen, 0, sizeof(seen));
}

static void teardown(void)
{
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    hob_scope_close(scope);
    hob_device_unref(devices[0]);
    hob_device_unref(devices[1]);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* A matrix on DEVICE, the same on all. */
static hob_tensor *numbers(hob_device *device, hob_dtype dtype, int64_t rows,
                           int64_t columns, uint64_t seed)
{
    const int64_t count = rows * columns;
    double *data = malloc((size_t)count * sizeof(*data) + 1);
    hob_tensor *tensor;

    ck_assert_ptr_nonnull(data);
    seed = seed * 2 + 1;
    for (int64_t i = 0; i < count; i++)
        data[i] = op_random(&seed);
    tensor = hob_cast(
        scope, hob_from_f64(scope, device, data, (int64_t[]){rows, columns}, 2),
        dtype);
    free(data);
    ck_assert_hob_ok(hob_eval(&tensor, 1, &error));
    return tensor;
}

struct operands {
    hob_tensor *x, *w, *bias, *other; /* [m, k], [k, n], [1, n], [m, n] */
};

/* What is done to the product; all of it is moved on. */
typedef hob_tensor *finish_fn(hob_tensor *product, const struct operands *o);

static hob_tensor *relu(hob_tensor *product, const struct operands *o)
{
    (void)o;
    return hob_relu(scope, hob_move(scope, product));
}

static hob_tensor *bias_relu(hob_tensor *product, const struct operands *o)
{
    return relu(hob_add(scope, hob_move(scope, product), o->bias), o);
}

static hob_tensor *bias_alone(hob_tensor *product, const struct operands *o)
{
    return hob_add(scope, o->bias, hob_move(scope, product));
}

static hob_tensor *gelu(hob_tensor *product, const struct operands *o)
{
    hob_tensor *sum = hob_add(scope, hob_move(scope, product), o->bias);

    return hob_gelu(scope, hob_move(scope, sum));
}

static hob_tensor *scaled_residual(hob_tensor *product,
                                   const struct operands *o)
{
    hob_tensor *scaled =
        hob_mul_scalar(scope, hob_move(scope, product), hob_f64(0.125));

    return hob_add(scope, hob_move(scope, scaled), o->other);
}

/* It reads the product twice. */
static hob_tensor *swish(hob_tensor *product, const struct operands *o)
{
    hob_tensor *gate = hob_sigmoid(scope, product);

    (void)o;
    return hob_mul(scope, hob_move(scope, product), hob_move(scope, gate));
}

/* As rules of gradients do it that serve all ranks: here the shape is the same
 * again. */
static hob_tensor *gradient(hob_tensor *product, const struct operands *o)
{
    const int64_t shape[] = {hob_tensor_shape(product)[0],
                             hob_tensor_shape(product)[1]};
    hob_tensor *grad = hob_reshape(scope, hob_move(scope, product), shape, 2);

    return hob_relu_backward(scope, o->other, hob_move(scope, grad));
}

static const struct finish {
    finish_fn *run;
    const char *name;
} finishes[] = {
    {relu, "matmul+relu"},
    {bias_relu, "matmul+add+relu"},
    {bias_alone, "matmul+add"},
    {gelu, "matmul+add+gelu"},
    {scaled_residual, "matmul+mul_scalar+add"},
    {swish, "matmul+sigmoid+mul"},
    {gradient, "matmul+relu_backward"},
};

/* Small, one row, few rows by a large matrix, blocked with odd edges, deep. */
static const struct size {
    int64_t m, n, k;
} sizes[] = {{1, 1, 1},     {3, 5, 7},      {33, 17, 40},   {1, 600, 300},
             {4, 700, 513}, {130, 97, 260}, {257, 300, 70}, {65, 40, 900}};

enum {
    FINISHES = sizeof(finishes) / sizeof(finishes[0]),
    SIZES = sizeof(sizes) / sizeof(sizes[0])
};

static struct operands operands(hob_device *device, hob_dtype dtype,
                                const struct size *size, int turned)
{
    struct operands o;

    o.x = turned & 1
              ? hob_swap_dims(scope,
                              numbers(device, dtype, size->k, size->m, 1), 0, 1)
              : numbers(device, dtype, size->m, size->k, 1);
    o.w = turned & 2
              ? hob_swap_dims(scope,
                              numbers(device, dtype, size->n, size->k, 2), 0, 1)
              : numbers(device, dtype, size->k, size->n, 2);
    o.bias = numbers(device, dtype, 1, size->n, 3);
    o.other = numbers(device, dtype, size->m, size->n, 4);
    return o;
}

/* The bits on flex. A library of products may add up in another order with an
 * epilogue than without: each sum has up to 900 products of numbers below 8. */
static void expect_same(hob_tensor *a, hob_tensor *b, const char *what)
{
    const int64_t count = hob_tensor_count(a);
    const double most = test_device_is_flex()                  ? 0
                        : hob_tensor_dtype(a) == HOB_DTYPE_F64 ? 1e-10
                                                               : 1e-3;
    double *x = malloc((size_t)count * 2 * sizeof(*x) + 1), *y = x + count;

    ck_assert_ptr_nonnull(x);
    ck_assert_int_eq(hob_tensor_count(b), count);
    ck_assert_hob_ok(hob_read_f64(a, x, (uint64_t)count, &error));
    ck_assert_hob_ok(hob_read_f64(b, y, (uint64_t)count, &error));
    for (int64_t i = 0; i < count; i++)
        if (!(isnan(x[i]) ? isnan(y[i])
                          : x[i] == y[i] || fabs(x[i] - y[i]) <= most))
            ck_abort_msg("%s: element %d is %.17g, not %.17g", what, (int)i,
                         y[i], x[i]);
    free(x);
}

START_TEST(test_fusion_products_are_the_same_bits)
{
    const struct finish *finish = &finishes[_i % FINISHES];
    const struct size *size = &sizes[_i / FINISHES];

    for (int turned = 0; turned < 4; turned++)
        for (hob_dtype dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_F32; dtype++) {
            hob_tensor *results[2];

            for (int d = 0; d < 2; d++) {
                struct operands o = operands(devices[d], dtype, size, turned);
                hob_tensor *product = hob_matmul(scope, o.x, o.w);

                memset(&seen, 0, sizeof(seen));
                results[d] = finish->run(product, &o);
                ck_assert_hob_ok(hob_eval(&results[d], 1, &error));
            }
            if (test_device_is_flex())
                ck_assert_str_eq(seen.name, finish->name);
            ck_assert_int_le(seen.groups, 1);
            ck_assert(!test_device_is_flex() || seen.groups == 1);
            if (test_device_is_flex())
                ck_assert_uint_ge(seen.saved,
                                  2u * (uint64_t)(size->m * size->n) *
                                      hob_dtype_size(dtype));
            expect_same(results[0], results[1], finish->name);
        }
}
END_TEST

/* Leading dimensions are rows; a bias of the op itself comes first. */
START_TEST(test_fusion_products_of_linear)
{
    hob_tensor *results[2];

    for (int d = 0; d < 2; d++) {
        hob_tensor *x = hob_reshape(
            scope, numbers(devices[d], HOB_DTYPE_F32, 6 * 11, 33, 1),
            (int64_t[]){6, 11, 33}, 3);
        hob_tensor *w = numbers(devices[d], HOB_DTYPE_F32, 33, 50, 2);
        hob_tensor *b =
            hob_reshape(scope, numbers(devices[d], HOB_DTYPE_F32, 1, 50, 3),
                        (int64_t[]){50}, 1);
        hob_tensor *h = hob_linear(scope, x, w, b);

        h = hob_tanh(scope, hob_move(scope, h));
        results[d] = hob_mul_scalar(scope, hob_move(scope, h), hob_f64(3));
        ck_assert_hob_ok(hob_eval(&results[d], 1, &error));
    }
    if (test_device_is_flex())
        ck_assert_str_eq(seen.name, "linear+tanh+mul_scalar");
    expect_same(results[0], results[1], "linear");
}
END_TEST

/* relu keeps NaN, wherever it is done. */
START_TEST(test_fusion_products_keep_nan)
{
    hob_tensor *results[2];

    for (int d = 0; d < 2; d++) {
        double data[64 * 48];
        hob_tensor *x, *w = numbers(devices[d], HOB_DTYPE_F32, 48, 80, 2);

        for (int i = 0; i < 64 * 48; i++)
            data[i] = i % 7 - 3;
        data[5 * 48 + 3] = NAN;
        data[9 * 48 + 1] = INFINITY;
        data[9 * 48 + 2] = -INFINITY;
        x = hob_cast(
            scope,
            hob_from_f64(scope, devices[d], data, (int64_t[]){64, 48}, 2),
            HOB_DTYPE_F32);
        ck_assert_hob_ok(hob_eval(&x, 1, &error));
        results[d] = relu(hob_matmul(scope, x, w), NULL);
        ck_assert_hob_ok(hob_eval(&results[d], 1, &error));
    }
    expect_same(results[0], results[1], "NaN");
}
END_TEST

/* Batches are other matrices: the op runs, then the rest over it. That is so
 * each time, and the plan stays. */
START_TEST(test_fusion_products_of_batches)
{
    enum { TIMES = 10 };
    struct hob_fusion_stats before = HOB_FUSION_STATS_INIT, after = before;
    hob_tensor *results[1 + TIMES];

    ck_assert_hob_ok(hob_fusion_report(devices[1], &before, &error));
    for (int i = 0; i <= TIMES; i++) {
        hob_device *device = devices[i > 0];
        hob_tensor *x =
            hob_reshape(scope, numbers(device, HOB_DTYPE_F32, 4 * 9, 20, 1),
                        (int64_t[]){4, 9, 20}, 3);
        hob_tensor *w =
            hob_reshape(scope, numbers(device, HOB_DTYPE_F32, 4 * 20, 13, 2),
                        (int64_t[]){4, 20, 13}, 3);
        hob_tensor *h;

        ck_assert_hob_ok(hob_eval((hob_tensor *[]){x, w}, 2, &error));
        h = hob_square(scope, hob_matmul(scope, x, w));
        memset(&seen, 0, sizeof(seen));
        results[i] = hob_neg(scope, h);
        ck_assert_hob_ok(hob_eval(&results[i], 1, &error));
        if (i && test_device_is_flex()) {
            ck_assert_str_eq(seen.single, "matmul");
            ck_assert_str_eq(seen.name, "square+neg");
        }
        expect_same(results[0], results[i], "a batch");
    }
    ck_assert_hob_ok(hob_fusion_report(devices[1], &after, &error));
    ck_assert_uint_ge(after.plan_hits - before.plan_hits, TIMES - 1);
}
END_TEST

/* x is read by the product to the end, so nothing may be written over it, even
 * where its last use is in the group. */
START_TEST(test_fusion_products_keep_what_they_read)
{
    hob_tensor *results[2];

    for (int d = 0; d < 2; d++) {
        hob_tensor *x = numbers(devices[d], HOB_DTYPE_F32, 200, 200, 1);
        hob_tensor *w = numbers(devices[d], HOB_DTYPE_F32, 200, 200, 2);
        hob_tensor *h = hob_matmul(scope, x, w);
        hob_tensor *sum = hob_add(scope, hob_move(scope, h), x);
        hob_tensor *twice = hob_mul(scope, hob_move(scope, x), sum);

        memset(&seen, 0, sizeof(seen));
        results[d] = hob_add(scope, hob_move(scope, twice), sum);
        ck_assert_hob_ok(hob_eval(&results[d], 1, &error));
    }
    expect_same(results[0], results[1], "over what is read");
}
END_TEST

/* Somebody wants the product: it is one of its own. */
START_TEST(test_fusion_products_that_are_wanted)
{
    struct operands o = operands(devices[1], HOB_DTYPE_F32, &sizes[2], 0);
    hob_tensor *product = hob_matmul(scope, o.x, o.w);
    hob_tensor *y = hob_relu(scope, hob_add(scope, product, o.bias));

    memset(&seen, 0, sizeof(seen));
    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert(!test_device_is_flex() || !strcmp(seen.single, "matmul"));
    ck_assert(!test_device_is_flex() || !strcmp(seen.name, "add+relu"));
}
END_TEST

/* Another op reads it: not a step, so it must be there. */
START_TEST(test_fusion_products_that_are_read)
{
    hob_tensor *results[2], *sorted[2];

    for (int d = 0; d < 2; d++) {
        struct operands o = operands(devices[d], HOB_DTYPE_F32, &sizes[2], 0);
        hob_tensor *product = hob_matmul(scope, o.x, o.w);

        sorted[d] = hob_sort(scope, product, 1, 0);
        results[d] = hob_relu(scope, hob_move(scope, product));
        ck_assert_hob_ok(
            hob_eval((hob_tensor *[]){results[d], sorted[d]}, 2, &error));
    }
    expect_same(results[0], results[1], "relu");
    expect_same(sorted[0], sorted[1], "sort");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion products");
    TCase *tc = tcase_create("fusion products");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_fusion_products_are_the_same_bits, 0,
                        FINISHES * SIZES);
    tcase_add_test(tc, test_fusion_products_of_linear);
    tcase_add_test(tc, test_fusion_products_keep_nan);
    tcase_add_test(tc, test_fusion_products_of_batches);
    tcase_add_test(tc, test_fusion_products_keep_what_they_read);
    tcase_add_test(tc, test_fusion_products_that_are_wanted);
    tcase_add_test(tc, test_fusion_products_that_are_read);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
