/* SPDX-License-Identifier: Apache-2.0 */
/*
 * large.c - G19: tensors of more than 2^31 elements on one device: large DEVICE.
 *
 * Each op is compared with itself on the last part of its operand, where
 * 32-bit offsets would have gone wrong, then timed beside the same op on a
 * tensor of half the elements, which they reach. It takes 35 GiB.
 */
#include "timing.h"

#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* 2^31 + 98303 elements. */
enum { ROWS = 65538, COLUMNS = 32769, TIMES = 3, SIDE = 256, BATCH = 32770 };

static hob_runtime *runtime;
static hob_device *device;
static int failures;

typedef hob_tensor *(*op_fn)(hob_scope *scope, hob_tensor *x);

/* The last COUNT along DIM of X. */
static hob_tensor *last(hob_scope *scope, hob_tensor *x, int dim, int64_t count)
{
    const int64_t *shape = hob_tensor_shape(x);
    int64_t starts[3] = {0, 0, 0}, ends[3], steps[3] = {1, 1, 1};
    const uint32_t rank = (uint32_t)hob_tensor_rank(x);

    for (uint32_t i = 0; i < rank; i++)
        ends[i] = shape[i];
    starts[dim] = shape[dim] - count;
    return hob_slice(scope, x, starts, rank, ends, rank, steps, rank);
}

static hob_tensor *add(hob_scope *scope, hob_tensor *x)
{
    return hob_add(scope, x, x);
}

static hob_tensor *sum_rows(hob_scope *scope, hob_tensor *x)
{
    return hob_sum_dim(scope, x, 1);
}

static hob_tensor *sum_columns(hob_scope *scope, hob_tensor *x)
{
    return hob_sum_dim(scope, x, 0);
}

static hob_tensor *softmax(hob_scope *scope, hob_tensor *x)
{
    return hob_softmax(scope, x, 1);
}

static hob_tensor *select_last(hob_scope *scope, hob_tensor *x)
{
    const int64_t rows = hob_tensor_shape(x)[0], count = rows < 4 ? rows : 4;
    int32_t places[4];

    for (int i = 0; i < count; i++)
        places[i] = (int32_t)(rows - count + i);
    return hob_select(scope, x,
                      hob_from_i32(scope, device, places, &count, 1), 0);
}

static hob_tensor *product(hob_scope *scope, hob_tensor *x)
{
    return hob_matmul(scope, x, last(scope, x, 0, 1));
}

/* Whether A equals B, which are of one shape, nearly. */
static int is_near(hob_scope *scope, hob_tensor *a, hob_tensor *b)
{
    double off = NAN, most = NAN;

    if (hob_item(hob_max(scope, hob_abs(scope, hob_sub(scope, a, b))), &off,
                 NULL) ||
        hob_item(hob_max(scope, hob_abs(scope, b)), &most, NULL))
        return 0;
    return off <= 1e-5 * most && most > 0;
}

static double seconds(hob_tensor *x, op_fn op)
{
    double begin = 0;

    for (int i = 0; i <= TIMES; i++) {
        hob_scope *scope = hob_scope_open(runtime);

        if (i == 1)
            begin = timing_now();
        op(scope, x);
        hob_scope_close(scope);
        if ((!i || i == TIMES) && hob_device_sync(device, NULL))
            return -1;
    }
    return (timing_now() - begin) / TIMES;
}

/* Rows that lie last, or with COLUMN columns, give the last results. */
static void check(const char *name, hob_tensor *x, op_fn op, int dim)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *whole = op(scope, x), *part = last(scope, x, dim, 4);
    const int kept = hob_tensor_rank(whole) > dim ? dim : 0;
    hob_error error = HOB_ERROR_INIT;
    double all, half;
    int good;

    part = op == product ? hob_matmul(scope, part, last(scope, x, 0, 1))
                         : op(scope, part);
    good = is_near(scope, last(scope, whole, kept, 4), part);
    if (hob_scope_error(scope, &error))
        printf("%s\n", error.message);
    hob_error_release(&error);
    hob_scope_close(scope);
    (void)!hob_device_trim(device, NULL);
    scope = hob_scope_open(runtime);
    all = seconds(x, op);
    half = seconds(last(scope, x, 0, hob_tensor_shape(x)[0] / 2 - 1), op);
    hob_scope_close(scope);
    (void)!hob_device_trim(device, NULL);
    printf("G19 %-20s %s %8.3f ms, per element %.2f of that of half as many\n",
           name, good ? "right" : "WRONG", 1e3 * all, all / 2 / half);
    fflush(stdout);
    failures += !good;
}

int main(int argc, char **argv)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    const int64_t shape[2] = {ROWS, COLUMNS}, cubes[3] = {BATCH, SIDE, SIDE};
    hob_error error = HOB_ERROR_INIT;
    hob_scope *scope;
    hob_tensor *x;

    options.policy = HOB_POLICY_REPORT;
    if (argc != 2 || hob_runtime_open(&options, &runtime, &error) ||
        hob_device_open(runtime, argv[1], &device, &error)) {
        fprintf(stderr, "%s\n", argc != 2 ? "usage: large DEVICE"
                                          : error.message);
        return 2;
    }
    scope = hob_scope_open(runtime);
    x = hob_random_uniform(scope, shape, 2, -1, 1, device, HOB_DTYPE_F32);
    check("add", x, add, 0);
    check("sum along rows", x, sum_rows, 0);
    check("sum along columns", x, sum_columns, 1);
    check("select of rows", x, select_last, 0);
    check("softmax", x, softmax, 0);
    hob_scope_close(scope);
    (void)!hob_device_trim(device, NULL);
    scope = hob_scope_open(runtime);
    x = hob_random_uniform(scope, cubes, 3, -1, 1, device, HOB_DTYPE_F32);
    check("products", x, product, 0);
    hob_scope_close(scope);
    hob_device_unref(device);
    (void)!hob_runtime_close(runtime, NULL);
    return failures != 0;
}
