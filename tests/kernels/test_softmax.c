/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows: softmax, cross entropy, norms, against f64. Tolerances are a few
 * units of the dtype's last place: sums of up to 200 terms in f32.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

static const uint32_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                  HOB_DTYPE_BF16};

static double tolerance_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-14
           : dtype == HOB_DTYPE_F32 ? 4e-6
           : dtype == HOB_DTYPE_F16 ? 1e-3
                                    : 8e-3;
}

static const int64_t shapes[][3] = {{1, 1, 1},  {3, 5, 7}, {2, 200, 3},
                                    {4, 3, 33}, {2, 0, 3}, {1, 17, 130}};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* A row along DIM: its first element and the step, in a dense tensor. */
static void row_of(const int64_t *shape, uint32_t dim, int64_t row,
                   int64_t *out_first, int64_t *out_step)
{
    int64_t step = 1;

    for (uint32_t i = dim + 1; i < 3; i++)
        step *= shape[i];
    *out_step = step;
    *out_first = row / step * step * shape[dim] + row % step;
}

static void softmax_row(double *out, const double *x, int64_t n, int64_t step,
                        int is_log)
{
    double shift = -(double)INFINITY, sum = 0;

    for (int64_t i = 0; i < n; i++)
        shift = x[i * step] > shift ? x[i * step] : shift;
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i * step] - shift);
    for (int64_t i = 0; i < n; i++)
        out[i * step] = is_log ? x[i * step] - shift - log(sum)
                               : exp(x[i * step] - shift) / sum;
}

static void backward_row(double *out, const double *y, const double *g,
                         int64_t n, int64_t step, int is_log)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += is_log ? g[i * step] : g[i * step] * y[i * step];
    for (int64_t i = 0; i < n; i++)
        out[i * step] = is_log ? g[i * step] - exp(y[i * step]) * sum
                               : y[i * step] * (g[i * step] - sum);
}

static void check_softmax(struct lab *lab, const int64_t *shape, int64_t dim,
                          uint32_t dtype, enum lab_layout layout, int is_log)
{
    const uint32_t axis = (uint32_t)(dim < 0 ? dim + 3 : dim);
    const int64_t count = shape[0] * shape[1] * shape[2];
    struct lab_tensor x, g;
    struct fake_call call, back;
    double *in, *grad, *y, *wanted = calloc((size_t)count + 1, 8);
    int64_t first, step;

    lab_tensor_init(lab, &x, dtype, 3, shape, layout, -5, 5);
    lab_tensor_init(lab, &g, dtype, 3, shape, layout, -2, 2);
    in = lab_dense(&x.view);
    grad = lab_dense(&g.view);
    fake_call_init(&call, &lab->host, is_log ? "log_softmax" : "softmax");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_i64(dim));
    fake_call_result(&call, dtype, 3, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_softmax_entries), HOB_OK);
    for (int64_t r = 0; r < (count ? count / shape[axis] : 0); r++) {
        row_of(shape, axis, r, &first, &step);
        softmax_row(wanted + first, in + first, shape[axis], step, is_log);
    }
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(lab_near(lab_get_at(&call.results[0].view, i), wanted[i],
                               tolerance_of(dtype)),
                      "%s %s dim %d: %g, not %g", call.call.op_name,
                      hob_dtype_name(dtype), (int)dim,
                      lab_get_at(&call.results[0].view, i), wanted[i]);
    y = lab_dense(&call.results[0].view);
    fake_call_init(&back, &lab->host,
                   is_log ? "log_softmax_backward" : "softmax_backward");
    fake_call_view(&back, &call.results[0].view);
    fake_call_view(&back, &g.view);
    fake_call_value(&back, hob_i64(dim));
    fake_call_result(&back, dtype, 3, shape);
    ck_assert_int_eq(lab_run(lab, &back, &flex_softmax_entries), HOB_OK);
    for (int64_t r = 0; r < (count ? count / shape[axis] : 0); r++) {
        row_of(shape, axis, r, &first, &step);
        backward_row(wanted + first, y + first, grad + first, shape[axis], step,
                     is_log);
    }
    for (int64_t i = 0; i < count; i++)
        ck_assert(lab_near(lab_get_at(&back.results[0].view, i), wanted[i],
                           tolerance_of(dtype) * 10));
    free(in);
    free(grad);
    free(y);
    free(wanted);
    fake_call_release(&call);
    fake_call_release(&back);
    lab_tensor_release(&x);
    lab_tensor_release(&g);
}

START_TEST(test_softmax_equals_f64)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 2, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++)
            for (int64_t dim = -1; dim < 3; dim++)
                for (int is_log = 0; is_log < 2; is_log++) {
                    /* 0: results go past the caches. */
                    lab.device->l3_bytes = (_i + is_log) & 1 ? 0 : 1 << 23;
                    check_softmax(&lab, shapes[_i], dim, dtypes[d],
                                  (enum lab_layout)((_i + d + dim + 1) %
                                                    LAB_LAYOUT_COUNT_),
                                  is_log);
                }
        lab_close(&lab);
    }
}
END_TEST

/* Shifted by the maximum; -inf is probability 0, a row of -inf is NaN. */
START_TEST(test_softmax_extremes)
{
    const float inf = (float)INFINITY;
    float rows[4][3] = {{1000, 1000, -1000},
                        {-inf, 0, 0},
                        {-inf, -inf, -inf},
                        {0, (float)NAN, 0}};
    const double wanted[4][3] = {{0.5, 0.5, 0},
                                 {0, 0.5, 0.5},
                                 {(double)NAN, (double)NAN, (double)NAN},
                                 {(double)NAN, (double)NAN, (double)NAN}};
    struct lab lab;
    struct lab_tensor x;
    struct fake_call call;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 2, (int64_t[]){4, 3},
                    LAB_CONTIGUOUS, 0, 0);
    memcpy(x.view.data, rows, sizeof(rows));
    fake_call_init(&call, &lab.host, "softmax");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_i64(1));
    fake_call_result_in_place(&call, 0);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_softmax_entries), HOB_OK);
    for (int64_t i = 0; i < 12; i++)
        ck_assert(lab_near(lab_get_at(&x.view, i), wanted[i / 3][i % 3], 1e-7));
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_close(&lab);
}
END_TEST

START_TEST(test_cross_entropy_equals_f64)
{
    static const int64_t sizes[][2] = {{1, 1}, {5, 10}, {128, 10}, {3, 200}};
    const int64_t batch = sizes[_i][0], classes = sizes[_i][1];

    for (int d = 0; d < 4; d++) {
        struct lab lab;
        struct lab_tensor logits, targets, grad;
        struct fake_call call, back;
        double *x, loss = 0;

        ck_assert(lab_open(&lab, 3, NULL));
        lab_tensor_init(&lab, &logits, dtypes[d], 2, sizes[_i],
                        (enum lab_layout)((d + _i) % LAB_LAYOUT_COUNT_), -6, 6);
        lab_tensor_init(&lab, &targets,
                        d % 2 ? HOB_DTYPE_I64 : HOB_DTYPE_U8 - (uint32_t)d * 3,
                        1, &batch, d % 2 ? LAB_REVERSED : LAB_GAPS, 0,
                        classes - 1 < 127 ? classes - 1 : 127);
        lab_tensor_init(&lab, &grad, dtypes[d], 0, NULL, LAB_CONTIGUOUS, 3, 3);
        x = lab_dense(&logits.view);
        fake_call_init(&call, &lab.host, "cross_entropy");
        fake_call_view(&call, &logits.view);
        fake_call_view(&call, &targets.view);
        fake_call_result(&call, dtypes[d], 0, NULL);
        ck_assert_int_eq(lab_run(&lab, &call, &flex_loss_entries), HOB_OK);
        fake_call_init(&back, &lab.host, "cross_entropy_backward");
        fake_call_view(&back, &logits.view);
        fake_call_view(&back, &targets.view);
        fake_call_view(&back, &grad.view);
        fake_call_result(&back, dtypes[d], 2, sizes[_i]);
        ck_assert_int_eq(lab_run(&lab, &back, &flex_loss_entries), HOB_OK);
        for (int64_t r = 0; r < batch; r++) {
            int64_t target = (int64_t)lab_get_at(&targets.view, r);
            double sum = 0;
            for (int64_t i = 0; i < classes; i++)
                sum += exp(x[r * classes + i]);
            loss += log(sum) - x[r * classes + target];
            for (int64_t i = 0; i < classes; i++)
                ck_assert(
                    lab_near(lab_get_at(&back.results[0].view, r * classes + i),
                             (exp(x[r * classes + i]) / sum - (i == target)) *
                                 3 / (double)batch,
                             tolerance_of(dtypes[d])));
        }
        ck_assert(lab_near(lab_get_at(&call.results[0].view, 0),
                           loss / (double)batch, tolerance_of(dtypes[d])));
        free(x);
        fake_call_release(&call);
        fake_call_release(&back);
        lab_tensor_release(&logits);
        lab_tensor_release(&targets);
        lab_tensor_release(&grad);
        lab_close(&lab);
    }
}
END_TEST

START_TEST(test_cross_entropy_names_bad_target)
{
    static const double bad[] = {4, -1};
    struct lab lab;
    struct lab_tensor logits, targets;
    struct fake_call call;
    const int64_t batch = 6;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &logits, HOB_DTYPE_F32, 2, (int64_t[]){6, 4},
                    LAB_CONTIGUOUS, 0, 1);
    lab_tensor_init(&lab, &targets, HOB_DTYPE_I32, 1, &batch, LAB_CONTIGUOUS, 0,
                    3);
    lab_set_at(&targets.view, 5, bad[_i]);
    fake_call_init(&call, &lab.host, "cross_entropy");
    fake_call_view(&call, &logits.view);
    fake_call_view(&call, &targets.view);
    fake_call_result(&call, HOB_DTYPE_F32, 0, NULL);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_loss_entries), HOB_ERR_RANGE);
    ck_assert_ptr_nonnull(strstr(lab.host.message, _i ? "target -1 of row 5"
                                                      : "target 4 of row 5"));
    fake_call_release(&call);
    lab_tensor_release(&logits);
    lab_tensor_release(&targets);
    lab_close(&lab);
}
END_TEST

START_TEST(test_cross_entropy_of_nothing_is_nan)
{
    struct lab lab;
    struct lab_tensor logits, targets;
    struct fake_call call;
    const int64_t batch = 0;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &logits, HOB_DTYPE_F32, 2, (int64_t[]){0, 4},
                    LAB_CONTIGUOUS, 0, 1);
    lab_tensor_init(&lab, &targets, HOB_DTYPE_I32, 1, &batch, LAB_CONTIGUOUS, 0,
                    3);
    fake_call_init(&call, &lab.host, "cross_entropy");
    fake_call_view(&call, &logits.view);
    fake_call_view(&call, &targets.view);
    fake_call_result(&call, HOB_DTYPE_F32, 0, NULL);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_loss_entries), HOB_OK);
    ck_assert(isnan(lab_get_at(&call.results[0].view, 0)));
    fake_call_release(&call);
    lab_tensor_release(&logits);
    lab_tensor_release(&targets);
    lab_close(&lab);
}
END_TEST

/* Squares that overflow divide what is finite to 0, as in the body and in what
 * fusion makes of it. */
START_TEST(test_layer_norm_of_huge_numbers)
{
    const int64_t shape[2] = {1, 37};

    for (int d = 0; d < 2; d++) {
        struct lab lab;
        struct lab_tensor x;
        struct fake_call call;

        ck_assert(lab_open(&lab, 1, NULL));
        lab_tensor_init(&lab, &x, dtypes[d], 2, shape, LAB_CONTIGUOUS, -1, 1);
        lab_set_at(&x.view, 5, d ? 1e300 : 1e37);
        fake_call_init(&call, &lab.host, "layer_norm");
        fake_call_view(&call, &x.view);
        fake_call_value(&call, hob_none());
        fake_call_value(&call, hob_none());
        fake_call_value(&call, hob_f64(1e-5));
        fake_call_result(&call, dtypes[d], 2, shape);
        ck_assert_int_eq(lab_run(&lab, &call, &flex_norm_entries), HOB_OK);
        for (int64_t i = 0; i < shape[1]; i++)
            ck_assert_double_eq(lab_get_at(&call.results[0].view, i), 0);
        fake_call_release(&call);
        lab_tensor_release(&x);
        lab_close(&lab);
    }
}
END_TEST

/* Rows mean + i / 1000 (CASES: the variance by E[x^2] - E[x]^2 fails). */
START_TEST(test_layer_norm_of_large_means)
{
    static const double means[] = {0, 1e2, 1e3, 1e4};
    const int64_t n = 101;

    for (int d = 0; d < 2; d++) {
        struct lab lab;
        struct lab_tensor x, w, b;
        struct fake_call call;

        ck_assert(lab_open(&lab, 2, NULL));
        if (_i == 2)
            lab.device->l3_bytes = 0; /* results go past the caches */
        lab_tensor_init(&lab, &x, dtypes[d], 2, (int64_t[]){4, n},
                        LAB_CONTIGUOUS, 0, 0);
        lab_tensor_init(&lab, &w, dtypes[d], 1, &n, LAB_GAPS, -3, 3);
        lab_tensor_init(&lab, &b, dtypes[d], 1, &n, LAB_REVERSED, -3, 3);
        for (int64_t i = 0; i < 4 * n; i++)
            lab_set_at(&x.view, i, means[i / n] + (double)(i % n) * 1e-3);
        fake_call_init(&call, &lab.host, "layer_norm");
        fake_call_view(&call, &x.view);
        if (_i & 1)
            fake_call_view(&call, &w.view);
        else
            fake_call_value(&call, hob_none());
        if (_i & 2)
            fake_call_view(&call, &b.view);
        else
            fake_call_value(&call, hob_none());
        fake_call_value(&call, hob_f64(1e-5));
        fake_call_result(&call, dtypes[d], 2, (int64_t[]){4, n});
        ck_assert_int_eq(lab_run(&lab, &call, &flex_norm_entries), HOB_OK);
        for (int64_t r = 0; r < 4; r++) {
            double mean = 0, variance = 0;
            for (int64_t i = 0; i < n; i++)
                mean += lab_get_at(&x.view, r * n + i) / (double)n;
            for (int64_t i = 0; i < n; i++)
                variance +=
                    pow(lab_get_at(&x.view, r * n + i) - mean, 2) / (double)n;
            for (int64_t i = 0; i < n; i++) {
                double wanted = (lab_get_at(&x.view, r * n + i) - mean) /
                                sqrt(variance + 1e-5);
                if (_i & 1)
                    wanted *= lab_get_at(&w.view, i);
                if (_i & 2)
                    wanted += lab_get_at(&b.view, i);
                /* In f64 the naive mean of 1e4 is off by 1e-12, over a
                 * deviation of 0.03. */
                ck_assert_msg(
                    lab_near(lab_get_at(&call.results[0].view, r * n + i),
                             wanted, d ? 1e-9 : 2e-6),
                    "%s, mean %g: %.9g, not %.9g", hob_dtype_name(dtypes[d]),
                    means[r], lab_get_at(&call.results[0].view, r * n + i),
                    wanted);
            }
        }
        fake_call_release(&call);
        lab_tensor_release(&x);
        lab_tensor_release(&w);
        lab_tensor_release(&b);
        lab_close(&lab);
    }
}
END_TEST

START_TEST(test_batch_norm_equals_f64)
{
    static const int64_t x_shapes[][4] = {
        {5, 7}, {3, 4, 6}, {2, 3, 5, 9}, {0, 3, 2, 2}};
    static const uint32_t ranks[] = {2, 3, 4, 4};
    const int64_t *shape = x_shapes[_i];
    int64_t inner = 1;

    for (uint32_t i = 2; i < ranks[_i]; i++)
        inner *= shape[i];
    for (int d = 0; d < 4; d++)
        for (int layout = 0; layout < LAB_LAYOUT_COUNT_; layout++) {
            struct lab lab;
            struct lab_tensor x, v[4];
            struct fake_call call;

            ck_assert(lab_open(&lab, 2, NULL));
            lab_tensor_init(&lab, &x, dtypes[d], ranks[_i], shape,
                            (enum lab_layout)layout, -9, 9);
            fake_call_init(&call, &lab.host, "batch_norm");
            fake_call_view(&call, &x.view);
            for (int i = 0; i < 4; i++) {
                lab_tensor_init(&lab, &v[i], dtypes[d], 1, shape + 1,
                                LAB_REVERSED, i == 3 ? 1 : -3, 4);
                if (i == 1 && layout == 2)
                    fake_call_value(&call, hob_none());
                else
                    fake_call_view(&call, &v[i].view);
            }
            fake_call_value(&call, hob_f64(1e-3));
            fake_call_result(&call, dtypes[d], ranks[_i], shape);
            ck_assert_int_eq(lab_run(&lab, &call, &flex_norm_entries), HOB_OK);
            for (int64_t i = 0; i < hob_view_count(&x.view); i++) {
                int64_t c = i / inner % shape[1];
                double wanted =
                    (lab_get_at(&x.view, i) - lab_get_at(&v[2].view, c)) /
                    sqrt(lab_get_at(&v[3].view, c) + 1e-3) *
                    lab_get_at(&v[0].view, c);
                if (layout != 2)
                    wanted += lab_get_at(&v[1].view, c);
                ck_assert(lab_near(lab_get_at(&call.results[0].view, i), wanted,
                                   tolerance_of(dtypes[d])));
            }
            fake_call_release(&call);
            lab_tensor_release(&x);
            for (int i = 0; i < 4; i++)
                lab_tensor_release(&v[i]);
            lab_close(&lab);
        }
}
END_TEST

/* Planes of one block, of several, and none. */
START_TEST(test_batch_norm_backward_equals_f64)
{
    static const int64_t x_shapes[][4] = {
        {3, 4, 4, 5}, {2, 3, 5, 9}, {0, 3, 4, 4}, {5, 2, 23, 100}};
    const int64_t *shape = x_shapes[_i / 2];
    const uint32_t dtype = _i % 2 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    const int64_t plane = shape[2] * shape[3], channels = shape[1];
    const double unit = tolerance_of(dtype);
    double totals[4] = {0}, moments[4] = {0};
    struct lab lab;
    struct lab_tensor x, mean, scale, grad;
    struct fake_call call;

    ck_assert(lab_open(&lab, 2, NULL));
    lab_tensor_init(&lab, &x, dtype, 4, shape, LAB_CONTIGUOUS, -9, 9);
    lab_tensor_init(&lab, &mean, dtype, 1, shape + 1, LAB_CONTIGUOUS, -3, 4);
    lab_tensor_init(&lab, &scale, dtype, 1, shape + 1, LAB_CONTIGUOUS, -3, 4);
    lab_tensor_init(&lab, &grad, dtype, 4, shape, LAB_CONTIGUOUS, -4, 4);
    fake_call_init(&call, &lab.host, "batch_norm_backward");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &mean.view);
    fake_call_view(&call, &scale.view);
    fake_call_view(&call, &grad.view);
    fake_call_result(&call, dtype, 4, shape);
    fake_call_result(&call, dtype, 1, shape + 1);
    fake_call_result(&call, dtype, 1, shape + 1);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_norm_entries), HOB_OK);
    for (int64_t i = 0; i < hob_view_count(&x.view); i++) {
        const int64_t c = i / plane % channels;
        const double g = lab_get_at(&grad.view, i);

        totals[c] += g;
        moments[c] += g * (lab_get_at(&x.view, i) - lab_get_at(&mean.view, c));
        ck_assert(lab_near(lab_get_at(&call.results[0].view, i),
                           g * lab_get_at(&scale.view, c), unit));
    }
    /* Sums of terms up to 4 and 52. */
    for (int64_t c = 0; c < channels; c++) {
        const double terms = sqrt((double)(shape[0] * plane) + 1);

        ck_assert(fabs(lab_get_at(&call.results[1].view, c) - totals[c]) <=
                  unit * 4 * terms);
        ck_assert(fabs(lab_get_at(&call.results[2].view, c) - moments[c]) <=
                  unit * 52 * terms);
    }
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&mean);
    lab_tensor_release(&scale);
    lab_tensor_release(&grad);
    lab_close(&lab);
}
END_TEST

/* A norm of X, weight and bias, or without them; group_norm if GROUPS. */
static void check_norm(struct lab *lab, const int64_t *shape, uint32_t dtype,
                       enum lab_layout layout, int64_t groups, int plain)
{
    const int64_t *width = groups ? shape + 1 : shape + 2;
    const int64_t places = groups ? shape[2] : 1;
    const int64_t count = shape[0] * shape[1] * shape[2];
    const int64_t n = groups ? shape[1] * shape[2] / groups : shape[2];
    struct lab_tensor x, w, b;
    struct fake_call call;

    lab_tensor_init(lab, &x, dtype, 3, shape, layout, -9, 9);
    lab_tensor_init(lab, &w, dtype, 1, width, LAB_REVERSED, -3, 3);
    lab_tensor_init(lab, &b, dtype, 1, width, LAB_GAPS, -3, 3);
    fake_call_init(&call, &lab->host, groups ? "group_norm" : "rms_norm");
    fake_call_view(&call, &x.view);
    if (groups)
        fake_call_value(&call, hob_i64(groups));
    for (int i = 0; i < (groups ? 2 : 1); i++)
        if (plain)
            fake_call_value(&call, hob_none());
        else
            fake_call_view(&call, i ? &b.view : &w.view);
    fake_call_value(&call, hob_f64(1e-3));
    fake_call_result(&call, dtype, 3, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_norm_entries), HOB_OK);
    for (int64_t i = 0; i < count; i++) {
        const int64_t first = i / n * n, c = i / places % *width;
        double sum = 0, squares = 0, wanted;

        for (int64_t j = first; j < first + n; j++) {
            sum += lab_get_at(&x.view, j) / (double)n;
            squares += pow(lab_get_at(&x.view, j), 2) / (double)n;
        }
        wanted = lab_get_at(&x.view, i);
        if (groups)
            wanted = (wanted - sum) / sqrt(squares - sum * sum + 1e-3);
        else
            wanted /= sqrt(squares + 1e-3);
        if (!plain)
            wanted = wanted * lab_get_at(&w.view, c) +
                     (groups ? lab_get_at(&b.view, c) : 0);
        ck_assert_msg(lab_near(lab_get_at(&call.results[0].view, i), wanted,
                               tolerance_of(dtype)),
                      "%s %s at %d: %.9g, not %.9g", call.call.op_name,
                      hob_dtype_name(dtype), (int)i,
                      lab_get_at(&call.results[0].view, i), wanted);
    }
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&w);
    lab_tensor_release(&b);
}

START_TEST(test_rms_and_group_norm_equal_f64)
{
    static const int64_t x_shapes[][3] = {
        {1, 1, 1}, {3, 4, 70}, {2, 6, 33}, {0, 4, 3}, {2, 4, 0}};

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;

        if (!lab_open(&lab, 2, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++)
            for (int plain = 0; plain < 2; plain++) {
                const int64_t channels = x_shapes[_i][1];

                for (int layout = 0; layout < LAB_LAYOUT_COUNT_; layout++)
                    check_norm(&lab, x_shapes[_i], dtypes[d],
                               (enum lab_layout)layout, 0, plain);
                /* Its entry asks for contiguous arguments. */
                for (int64_t groups = 1; groups <= channels; groups++)
                    if (channels % groups == 0)
                        check_norm(&lab, x_shapes[_i], dtypes[d],
                                   groups % 2 ? LAB_CONTIGUOUS : LAB_MISALIGNED,
                                   groups, plain);
            }
        lab_close(&lab);
    }
}
END_TEST

/* The gradients of a norm over the last of SHAPE, row by row in f64. */
struct norm_grads {
    double *x, *weight, *bias;
};

static void norm_grads_row(struct norm_grads *out, const double *x,
                           const double *w, const double *g, int64_t n,
                           int is_centred)
{
    double mean = 0, squares = 0, inverse, h_mean = 0, hn_mean = 0;

    for (int64_t i = 0; is_centred && i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        squares += pow(x[i] - mean, 2) / (double)n;
    inverse = 1 / sqrt(squares + 1e-3);
    for (int64_t i = 0; i < n; i++) {
        const double normal = (x[i] - mean) * inverse;

        out->weight[i] += g[i] * normal;
        out->bias[i] += g[i];
        h_mean += is_centred ? g[i] * w[i] / (double)n : 0;
        hn_mean += g[i] * w[i] * normal / (double)n;
    }
    for (int64_t i = 0; i < n; i++)
        out->x[i] = inverse *
                    (g[i] * w[i] - h_mean - (x[i] - mean) * inverse * hn_mean);
}

static void check_norm_backward(struct lab *lab, const int64_t *shape,
                                uint32_t dtype, enum lab_layout layout,
                                int is_centred, int plain)
{
    const int64_t n = shape[2], rows = shape[0] * shape[1];
    const double unit = tolerance_of(dtype);
    struct lab_tensor x, w, g;
    struct fake_call call;
    struct norm_grads wanted = {calloc((size_t)(rows * n + 1), 8),
                                calloc((size_t)n + 1, 8),
                                calloc((size_t)n + 1, 8)};
    double *in, *weight, *grad, *first = wanted.x;

    lab_tensor_init(lab, &x, dtype, 3, shape, layout, -9, 9);
    lab_tensor_init(lab, &w, dtype, 1, &n, LAB_REVERSED, plain ? 1 : -3,
                    plain ? 1 : 3);
    lab_tensor_init(lab, &g, dtype, 3, shape, LAB_GAPS, -4, 4);
    in = lab_dense(&x.view);
    weight = lab_dense(&w.view);
    grad = lab_dense(&g.view);
    fake_call_init(&call, &lab->host,
                   is_centred ? "layer_norm_backward" : "rms_norm_backward");
    fake_call_view(&call, &x.view);
    if (plain)
        fake_call_value(&call, hob_none());
    else
        fake_call_view(&call, &w.view);
    fake_call_view(&call, &g.view);
    fake_call_value(&call, hob_f64(1e-3));
    fake_call_result(&call, dtype, 3, shape);
    fake_call_result(&call, dtype, 1, &n);
    if (is_centred)
        fake_call_result(&call, dtype, 1, &n);
    ck_assert_int_eq(lab_run(lab, &call, &flex_norm_entries), HOB_OK);
    for (int64_t r = 0; r < rows; r++, wanted.x += n)
        norm_grads_row(&wanted, in + r * n, weight, grad + r * n, n,
                       is_centred);
    wanted.x = first;
    for (int64_t i = 0; i < rows * n; i++)
        ck_assert_msg(lab_near(lab_get_at(&call.results[0].view, i),
                               wanted.x[i], unit * 10),
                      "%s %s d_x at %d: %.9g, not %.9g", call.call.op_name,
                      hob_dtype_name(dtype), (int)i,
                      lab_get_at(&call.results[0].view, i), wanted.x[i]);
    /* Sums over all rows of terms up to 8. */
    for (int64_t i = 0; i < n; i++) {
        const double tolerance = unit * 8 * sqrt((double)rows + 1);

        ck_assert(lab_near(lab_get_at(&call.results[1].view, i),
                           wanted.weight[i], tolerance));
        ck_assert(!is_centred || lab_near(lab_get_at(&call.results[2].view, i),
                                          wanted.bias[i], tolerance));
    }
    free(wanted.x);
    free(wanted.weight);
    free(wanted.bias);
    free(in);
    free(weight);
    free(grad);
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&w);
    lab_tensor_release(&g);
}

START_TEST(test_norm_backward_equals_f64)
{
    static const int64_t x_shapes[][3] = {{1, 1, 1}, {3, 4, 70}, {2, 50, 33},
                                          {0, 4, 3}, {2, 4, 0},  {1, 2, 1500}};

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;

        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++)
            for (int layout = 0; layout < LAB_LAYOUT_COUNT_; layout++)
                check_norm_backward(&lab, x_shapes[_i], dtypes[d],
                                    (enum lab_layout)layout, (layout + d) % 2,
                                    (layout + isa) % 3 == 0);
        lab_close(&lab);
    }
}
END_TEST

/* A million equal terms: 2^-24 of each sum would be lost one by one. */
START_TEST(test_softmax_of_a_long_row)
{
    const int64_t n = 1000003;
    struct lab lab;
    struct lab_tensor x;
    struct fake_call call;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 1, &n, LAB_CONTIGUOUS, 0, 0);
    fake_call_init(&call, &lab.host, "log_softmax");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_i64(0));
    fake_call_result(&call, HOB_DTYPE_F32, 1, &n);
    lab_set_at(&x.view, n - 1, -1);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_softmax_entries), HOB_OK);
    ck_assert(lab_near(lab_get_at(&call.results[0].view, 0),
                       -log((double)(n - 1) + exp(-1)), 1e-7));
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("softmax");
    TCase *tc = tcase_create("rows");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_softmax_equals_f64, 0, SHAPES);
    tcase_add_test(tc, test_softmax_extremes);
    tcase_add_test(tc, test_softmax_of_a_long_row);
    tcase_add_loop_test(tc, test_cross_entropy_equals_f64, 0, 4);
    tcase_add_loop_test(tc, test_cross_entropy_names_bad_target, 0, 2);
    tcase_add_test(tc, test_cross_entropy_of_nothing_is_nan);
    tcase_add_test(tc, test_layer_norm_of_huge_numbers);
    tcase_add_loop_test(tc, test_layer_norm_of_large_means, 0, 4);
    tcase_add_loop_test(tc, test_batch_norm_equals_f64, 0, 4);
    tcase_add_loop_test(tc, test_batch_norm_backward_equals_f64, 0, 8);
    tcase_add_loop_test(tc, test_rms_and_group_norm_equal_f64, 0, 5);
    tcase_add_loop_test(tc, test_norm_backward_equals_f64, 0, 6);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
