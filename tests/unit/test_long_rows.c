/* SPDX-License-Identifier: Apache-2.0 */
/*
 * softmax, norms and cross entropy of rows that are longer than what a GPU's
 * group keeps, of lengths beside the edges of its chunks and of what a cluster
 * of groups keeps, with infinite elements and NaN. The truth is a loop in f64.
 */
#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum op { SOFTMAX, LOG_SOFTMAX, LAYER_NORM, RMS_NORM, OPS };

static const char *const names[] = {"softmax", "log_softmax", "layer_norm",
                                    "rms_norm"};

static const int64_t lengths[] = {32772, 40960, 40964,  50001,
                                  65536, 98312, 262144, 262148};

enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), ROWS = 4 };

static const double epsilon = 1e-5;

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

static double total(const double *x, int64_t n, double less, int power)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += power == 1 ? x[i] - less : (x[i] - less) * (x[i] - less);
    return sum;
}

static void reference(enum op op, const double *x, int64_t n, double *out)
{
    double centre = op == RMS_NORM ? 0 : x[0], scale = 0;

    if (op == LAYER_NORM)
        centre = total(x, n, 0, 1) / (double)n;
    if (op >= LAYER_NORM) {
        scale = 1 / sqrt(total(x, n, centre, 2) / (double)n + epsilon);
        for (int64_t i = 0; i < n; i++)
            out[i] = (x[i] - centre) * scale;
        return;
    }
    for (int64_t i = 0; i < n; i++)
        centre = isnan(x[i]) || x[i] > centre ? x[i] : centre;
    for (int64_t i = 0; i < n; i++)
        scale += exp(x[i] - centre);
    for (int64_t i = 0; i < n; i++)
        out[i] = op == SOFTMAX ? exp(x[i] - centre) / scale
                               : x[i] - centre - log(scale);
}

static hob_tensor *compute(enum op op, hob_tensor *x)
{
    switch (op) {
    case SOFTMAX:
        return hob_softmax(f.scope, x, 1);
    case LOG_SOFTMAX:
        return hob_log_softmax(f.scope, x, 1);
    case LAYER_NORM:
        return hob_layer_norm(f.scope, x, NULL, NULL, epsilon);
    default:
        return hob_rms_norm(f.scope, x, NULL, epsilon);
    }
}

/* Row 0 is plain; in 1 a few far from each other are all that matters; 2 has
 * elements that are nothing and 3 one that is NaN, both for softmax alone. */
static void fill(double *x, int64_t n, enum op op)
{
    uint64_t state = 3;

    for (int64_t i = 0; i < ROWS * n; i++)
        x[i] = floor(op_random(&state) * 64) / 16;
    for (int64_t i = n + n / 9; i < 2 * n; i += n / 3)
        x[i] = 64 + (double)(i % 5);
    if (op >= LAYER_NORM)
        return;
    for (int64_t i = 0; i < n - n / 8; i++)
        x[2 * n + i] = -(double)INFINITY;
    x[4 * n - 1] = NAN;
}

static void check(enum op op, hob_dtype dtype, int64_t n)
{
    const int64_t shape[] = {ROWS, n};
    double *x = calloc((size_t)(ROWS * n), sizeof(*x));
    double *y = calloc((size_t)(ROWS * n), sizeof(*y));
    hob_tensor *got;
    char text[64];

    ck_assert(x && y);
    fill(x, n, op);
    for (int64_t i = 0; i < ROWS; i++)
        reference(op, x + i * n, n, y + i * n);
    snprintf(text, sizeof(text), "%s %s of %d", names[op],
             hob_dtype_name(dtype), (int)n);
    got = compute(op, op_tensor(&f, dtype, x, shape, 2));
    if (op == SOFTMAX) { /* which is small where there are many */
        for (int64_t i = 0; i < ROWS * n; i++)
            y[i] *= (double)n;
        got = hob_mul_scalar(f.scope, hob_cast(f.scope, got, HOB_DTYPE_F32),
                             hob_f64((double)n));
    }
    op_check(&f, text, got, y, ROWS * n,
             dtype == HOB_DTYPE_F32 ? 2e-5 : 1.0 / 128);
    free(x);
    free(y);
}

/* The loss, and the gradient times as many as make it no small number. */
static void check_entropy(hob_dtype dtype, int64_t n)
{
    const int64_t shape[] = {ROWS, n};
    const double targets[ROWS] = {0, (double)n - 1, (double)(n / 2), 17};
    const double slope = (double)(ROWS * n);
    double *x = calloc((size_t)(ROWS * n), sizeof(*x));
    double *y = calloc((size_t)(ROWS * n), sizeof(*y));
    hob_tensor *logits, *labels;
    double loss = 0;

    ck_assert(x && y);
    fill(x, n, LAYER_NORM);
    for (int64_t r = 0; r < ROWS; r++) {
        const int64_t target = r * n + (int64_t)targets[r];

        reference(LOG_SOFTMAX, x + r * n, n, y + r * n);
        loss -= y[target] / ROWS;
        for (int64_t i = r * n; i < (r + 1) * n; i++)
            y[i] = (exp(y[i]) - (i == target)) * slope / ROWS;
    }
    logits = op_tensor(&f, dtype, x, shape, 2);
    labels = op_vector(&f, HOB_DTYPE_I64, targets, ROWS);
    op_check(&f, "cross_entropy", hob_cross_entropy(f.scope, logits, labels),
             &loss, 1, dtype == HOB_DTYPE_F32 ? 2e-5 : 1.0 / 128);
    op_check(&f, "cross_entropy_backward",
             hob_cross_entropy_backward(f.scope, logits, labels,
                                        op_tensor(&f, dtype, &slope, NULL, 0)),
             y, ROWS * n, dtype == HOB_DTYPE_F32 ? 3e-5 : 1.0 / 64);
    free(x);
    free(y);
}

START_TEST(test_long_rows)
{
    op_fixture_open(&f, 1);
    if (!f.device)
        return;
    for (int op = 0; op < OPS; op++) {
        check((enum op)op, HOB_DTYPE_F32, lengths[_i]);
        check((enum op)op, HOB_DTYPE_BF16, lengths[_i]);
    }
    check_entropy(HOB_DTYPE_F32, lengths[_i]);
    check_entropy(HOB_DTYPE_BF16, lengths[_i]);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("long_rows");
    TCase *tc = tcase_create("device");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_long_rows, 0, LENGTHS);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
