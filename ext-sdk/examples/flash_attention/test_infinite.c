/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_infinite.c - numbers that are infinite or NaN, and where they go.
 */
#include "test.h"

#include "flash_attention.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* More keys than a block has, so that whole blocks are hidden; enough queries
 * for two tasks of the gradient to share a batch entry. */
enum { LONG = 600 };

enum place { IN_Q, IN_K, IN_V };

/* NUMBER stands in row ROW of one argument; the result's rows FIRST .. LAST
 * are NaN, all others as if it were 0. */
static const struct poison {
    const char *name;
    struct problem problem;
    enum place place;
    int64_t row;
    double number;
    int64_t first, last;
} poisons[] = {
    {"NaN query", {"", 1, 5, 9, 4, 3, NO_MASK, 0, 0, 0}, IN_Q, 2, NAN, 2, 2},
    {"NaN key, seen",
     {"", 1, 5, 9, 4, 3, NO_MASK, 0, 0, 0},
     IN_K,
     2,
     NAN,
     0,
     4},
    {"NaN key, hidden in part",
     {"", 1, LONG, LONG, 4, 3, NO_MASK, 1, 0, 0},
     IN_K,
     290,
     NAN,
     290,
     LONG - 1},
    {"NaN value, hidden in part: 0 times NaN",
     {"", 1, LONG, LONG, 4, 3, NO_MASK, 1, 0, 0},
     IN_V,
     290,
     NAN,
     0,
     LONG - 1},
    {"infinite value, hidden in part: 0 times infinity",
     {"", 1, LONG, LONG, 4, 3, NO_MASK, 1, 0, 0},
     IN_V,
     290,
     INFINITY,
     0,
     289},
    {"NaN value, but no keys for the first queries",
     {"", 1, LONG, 10, 4, 3, NO_MASK, 1, 0, 0},
     IN_V,
     9,
     NAN,
     LONG - 10,
     LONG - 1},
};

/* The row's first element is NUMBER, which is in column 0 of out for v. */
static void test_poison(struct lab *lab, hob_device *device,
                        const struct poison *poison, hob_dtype dtype,
                        double tolerance)
{
    const struct problem *p = &poison->problem;
    hob_scope *scope = hob_scope_open(lab->runtime);
    const int a = poison->place == IN_Q ? Q : poison->place == IN_K ? K : V;
    const int64_t columns = a == V ? p->d_v : p->d;
    const int64_t at = poison->row * columns;
    hob_tensor *args[ARGUMENTS + 1];
    struct values values;

    if (values_make(p, &values)) {
        lab_count(lab, 1, "no memory");
        return;
    }
    values.at[a][at] = 0;
    attend(p, &values);
    values.at[a][at] = poison->number;
    for (int64_t i = 0; i < p->s_q; i++) {
        double *row = values.out + i * p->d_v;

        if (a == V && isinf(poison->number) && i > poison->last)
            row[0] = poison->number;
        if (i < poison->first || i > poison->last)
            continue;
        for (int64_t c = 0; c < (a == V ? 1 : p->d_v); c++)
            row[c] = NAN;
    }
    make_arguments(scope, device, dtype, p, &values, 0, args);
    lab_count(lab,
              differs("out", call(scope, p, args), values.out, values.out_count,
                      tolerance),
              "%s, %s", poison->name, hob_dtype_name(dtype));
    values_free(&values);
    hob_scope_close(scope);
}

/* Attention of built-in ops, causal. */
static hob_tensor *plain(hob_scope *scope, hob_tensor *const *args)
{
    const int64_t s = hob_tensor_shape(args[Q])[1];
    hob_device *device = hob_tensor_device(args[Q]);
    hob_tensor *keys = hob_arange(scope, 0, s, 1, device, HOB_DTYPE_I32);
    hob_tensor *scores =
        hob_matmul(scope, hob_mul_scalar(scope, args[Q], hob_f64(0.5)),
                   hob_swap_dims(scope, args[K], 1, 2));

    scores = hob_mask_fill(
        scope, scores,
        hob_greater(scope, keys,
                    hob_reshape(scope, keys, (int64_t[]){s, 1}, 2)),
        hob_f64(-INFINITY));
    return hob_matmul(scope, hob_softmax(scope, scores, 2), args[V]);
}

/* Result and gradients of flash.attention, or of plain() if IS_PLAIN, one
 * after the other. PLACE says where NUMBER stands: 0, 1, 2 at ROW of q, k, v,
 * 3 in the gradient of that row of the result. */
static int run_poisoned(struct lab *lab, hob_device *device, int is_plain,
                        int place, int row, double number, double *out)
{
    static const struct problem p = {"", 1, LONG, LONG, 4, 4, NO_MASK, 1, 0, 0};
    enum { COUNT = LONG * 4 };
    hob_scope *scope = hob_scope_open(lab->runtime);
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    hob_tensor *args[ARGUMENTS + 1], *y, *w, *grad;
    double weights[COUNT];
    struct values values;
    int failed = values_make(&p, &values);

    for (int i = 0; i < COUNT; i++)
        weights[i] = 1 + i % 3;
    if (place < 3)
        values.at[place][row * 4] = number;
    else
        weights[row * 4] = number;
    make_arguments(scope, device, HOB_DTYPE_F64, &p, &values, 0, args);
    for (int a = 0; a < ARGUMENTS; a++)
        args[a] = hob_require_grad(scope, args[a]);
    y = is_plain ? plain(scope, args) : call(scope, &p, args);
    w = hob_from_f64(scope, device, weights, hob_tensor_shape(y), 3);
    failed = failed || hob_read_f64(y, out, COUNT, &error) ||
             hob_backward(scope, hob_mul(scope, y, w), 0, &grads, &error);
    for (int a = 0; a < ARGUMENTS && !failed; a++)
        failed = hob_grad(scope, args[a], grads, &grad, &error) ||
                 hob_read_f64(grad, out + (a + 1) * COUNT, COUNT, &error);
    if (error.message)
        printf("%s\n", error.message);
    values_free(&values);
    hob_grads_free(grads);
    hob_error_release(&error);
    hob_scope_close(scope);
    return failed;
}

/* NaN and infinity reach the same results and gradients as they do in plain
 * attention, blocks that are hidden or not. An infinite query or gradient does
 * not: what the gradient is then depends on the order of its sums. */
static void test_poisoned_gradients(struct lab *lab)
{
    static const char *const names[4] = {"q", "k", "v", "the gradient"};
    enum { COUNT = 4 * LONG * 4 };
    hob_device *device = lab_device(lab, "autodiff(flex)");
    double *wanted = calloc(COUNT, sizeof(double));
    double *got = calloc(COUNT, sizeof(double));

    for (int i = 0; i < 12 && device && wanted && got; i++) {
        const double number = i < 8 ? NAN : INFINITY;
        const int place = i < 8 ? i / 2 : i / 2 - 3;
        const int row = i % 2 ? 290 : 20;
        int failed = run_poisoned(lab, device, 1, place, row, number, wanted) ||
                     run_poisoned(lab, device, 0, place, row, number, got);

        for (int j = 0; j < COUNT && !failed; j++) {
            failed =
                got[j] != wanted[j] && !(isnan(got[j]) && isnan(wanted[j])) &&
                !(fabs(got[j] - wanted[j]) <= 1e-12 * (1 + fabs(wanted[j])));
            if (failed)
                printf("%c of row %d, column %d is %g, not %g\n",
                       "oqkv"[j / (COUNT / 4)], j / 4 % LONG, j % 4, got[j],
                       wanted[j]);
        }
        lab_count(lab, failed, "%g in row %d of %s, with gradients", number,
                  row, names[place]);
    }
    free(got);
    free(wanted);
    hob_device_unref(device);
}

/* Rows of scores with -inf and inf, one query each. */
static void test_infinite_scores(struct lab *lab, hob_device *device)
{
    static const struct {
        const char *name;
        double q, k[3];
        uint8_t mask[3];
        double wanted; /* of values 1, 2, 4 */
    } rows[] = {
        {"one -inf", 1, {0, -INFINITY, 0}, {0, 0, 0}, 2.5},
        {"all -inf", 1, {-INFINITY, -INFINITY, -INFINITY}, {0, 0, 0}, NAN},
        {"all hidden", 1, {0, -INFINITY, 0}, {1, 1, 1}, 0},
        {"-inf, the others hidden", 1, {0, -INFINITY, 0}, {1, 0, 1}, NAN},
        {"inf", 1, {0, INFINITY, 0}, {0, 0, 0}, NAN},
        {"inf hidden", 1, {0, INFINITY, 0}, {0, 1, 0}, 2.5},
        {"far below", 1, {0, -1e30, 0}, {0, 0, 0}, 2.5},
        {"far above", 1, {0, 1e30, 0}, {0, 0, 0}, 2},
    };
    const double v[3] = {1, 2, 4};

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hob_scope *scope = hob_scope_open(lab->runtime);
        hob_tensor *k =
            hob_from_f64(scope, device, rows[i].k, (int64_t[]){3, 1}, 2);
        hob_tensor *mask = hob_from_data(scope, device, HOB_DTYPE_BOOL,
                                         rows[i].mask, (int64_t[]){1, 3}, 2);
        hob_tensor *out = flash_attention(
            scope,
            hob_from_f64(scope, device, &rows[i].q, (int64_t[]){1, 1}, 2), k,
            hob_from_f64(scope, device, v, (int64_t[]){3, 1}, 2), mask,
            hob_none(), 0);

        lab_count(lab, differs("out", out, &rows[i].wanted, 1, 1e-14),
                  "scores with %s", rows[i].name);
        hob_scope_close(scope);
    }
}

/* A product of two elements is beyond f16. */
static void test_large_f16(struct lab *lab, hob_device *device)
{
    const double q[2] = {1000, 1000}, k[4] = {1000, 1000, 999, 1000};
    const double v[2] = {3, 5}, wanted = 3;
    hob_scope *scope = hob_scope_open(lab->runtime);
    hob_tensor *tensors[3] = {
        hob_from_f64(scope, device, q, (int64_t[]){1, 2}, 2),
        hob_from_f64(scope, device, k, (int64_t[]){2, 2}, 2),
        hob_from_f64(scope, device, v, (int64_t[]){2, 1}, 2)};

    for (int i = 0; i < 3; i++)
        tensors[i] = hob_cast(scope, tensors[i], HOB_DTYPE_F16);
    lab_count(lab,
              differs("out",
                      flash_attention(scope, tensors[0], tensors[1], tensors[2],
                                      NULL, hob_none(), 0),
                      &wanted, 1, 0),
              "f16 whose scores are beyond f16");
    hob_scope_close(scope);
}

/* No gradient comes to, or from, a query without keys, whatever stands there:
 * its own gradient is NaN here, and the values are infinite. */
static void test_dead_gradients(struct lab *lab, hob_dtype dtype)
{
    hob_device *device = lab_device(lab, "autodiff(flex)");
    hob_scope *scope = hob_scope_open(lab->runtime);
    const struct problem p = {"", 1, 4, 3, 2, 2, FULL_MASK, 0, 0, 0};
    const double w[8] = {1, 1, 1, 1, 1, 1, NAN, INFINITY};
    const double zeros[8] = {0};
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    hob_tensor *args[ARGUMENTS + 1], *out, *grad;
    struct values values;
    int failed = values_make(&p, &values);

    /* Row 3 is dead; row 2 gets no gradient, and sees nothing else. */
    values.at[V][0] = INFINITY;
    for (int i = 0; i < 12; i++)
        values.mask[i] = 1;
    make_arguments(scope, device, dtype, &p, &values, 0, args);
    for (int a = 0; a < ARGUMENTS; a++)
        args[a] = hob_require_grad(scope, args[a]);
    out = call(scope, &p, args);
    failed |= differs("out", hob_detach(scope, out), zeros, 8, 0);
    out = hob_mul(scope, out,
                  hob_cast(scope,
                           hob_from_f64(scope, device, w, (int64_t[]){4, 2}, 2),
                           dtype));
    failed |= hob_backward(scope, out, 0, &grads, &error) != 0;
    for (int a = 0; a < ARGUMENTS && !failed; a++)
        failed = hob_grad(scope, args[a], grads, &grad, &error) || !grad ||
                 differs("gradient", grad, zeros, values.counts[a], 0);
    lab_count(lab, failed, "gradients where all is hidden, %s",
              hob_dtype_name(dtype));
    values_free(&values);
    hob_grads_free(grads);
    hob_error_release(&error);
    hob_scope_close(scope);
    hob_device_unref(device);
}

void test_infinite(struct lab *lab)
{
    hob_device *device = lab_device(lab, lab->gpu ? lab->gpu : "flex");

    if (!device)
        return;
    for (size_t i = 0; i < sizeof(poisons) / sizeof(poisons[0]); i++) {
        if (!lab->gpu)
            test_poison(lab, device, &poisons[i], HOB_DTYPE_F64, 1e-13);
        test_poison(lab, device, &poisons[i], HOB_DTYPE_F32, 1e-6);
        test_poison(lab, device, &poisons[i], HOB_DTYPE_BF16, 5e-3);
    }
    test_infinite_scores(lab, device);
    test_large_f16(lab, device);
    hob_device_unref(device);
    if (lab->gpu)
        return;
    test_dead_gradients(lab, HOB_DTYPE_F64);
    test_dead_gradients(lab, HOB_DTYPE_F32);
    test_poisoned_gradients(lab);
}
