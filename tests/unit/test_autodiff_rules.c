/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every backward rule against central finite differences in f64.
 *
 * The loss of a case is the sum of its result times fixed weights, so that a
 * gradient that lands on the wrong element shows. A step of 1e-5 leaves an
 * error near 1e-10 from the third derivative and 1e-11 from rounding; 2e-6
 * relative to 1 + |gradient| is far above both. Second derivatives are the
 * same differences of first derivatives, on autodiff(autodiff(flex)). Where
 * another device is told, its gradients meet differences taken on flex: on it
 * they would be thousands of launches that show nothing of its rules.
 */
#include "autodiff_cases.h"

#include <hob/hob.h>

#include "hob_check.h"
#include "test_device.h"

#include <math.h>
#include <stdio.h>

static const double step = 1e-5;
static const double tolerance = 2e-6;

/* ---- running a case ---- */

static hob_runtime *runtime;
static hob_device *truth;    /* flex: values, of which differences are taken */
static hob_device *slopes;   /* autodiff(flex): gradients, likewise */
static hob_device *saving;   /* autodiff(flex) of the device that is told */
static hob_device *balanced; /* the same, recomputing */
static hob_device *twice;    /* autodiff(autodiff(flex)) */
static hob_error error;

static void setup(void)
{
    struct hob_runtime_options options = test_options();

    if (runtime)
        return;
    options.threads = 1;
    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "flex", &truth, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "autodiff(flex)", &slopes, &error));
    ck_assert_hob_ok(
        test_device_open(runtime, "autodiff(flex)", &saving, &error));
    ck_assert_hob_ok(test_device_open(
        runtime, "autodiff{checkpoint=balanced}(flex)", &balanced, &error));
    ck_assert_hob_ok(
        test_device_open(runtime, "autodiff(autodiff(flex))", &twice, &error));
}

static void teardown(void)
{
    if (test_device_is_kept())
        return;
    hob_device_unref(twice);
    hob_device_unref(balanced);
    hob_device_unref(saving);
    hob_device_unref(slopes);
    hob_device_unref(truth);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    runtime = NULL;
}

static uint64_t seed;

/* Numbers that look random and stay the same: a 64-bit LCG (Knuth). */
static double draw(double low, double high)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return low + (high - low) * (double)(seed >> 11) / 9007199254740992.0;
}

struct values {
    uint32_t count; /* of inputs */
    int64_t sizes[MAX_IN];
    double data[MAX_IN][MAX_COUNT];
};

static void fill(struct values *values, const struct row *row)
{
    seed = 42;
    values->count = 0;
    for (uint32_t i = 0; row->in[i].rank >= 0; i++) {
        const struct input *in = &row->in[i];

        values->sizes[i] = 1;
        for (int32_t k = 0; k < in->rank; k++)
            values->sizes[i] *= in->shape[k];
        ck_assert_int_le(values->sizes[i], MAX_COUNT);
        for (int64_t k = 0; k < values->sizes[i]; k++)
            values->data[i][k] = draw(in->low, in->high);
        values->count++;
    }
}

static void make_inputs(hob_scope *scope, hob_device *device,
                        const struct row *row, const struct values *values,
                        hob_tensor **out)
{
    for (uint32_t i = 0; i < values->count; i++)
        out[i] = hob_from_f64(scope, device, values->data[i], row->in[i].shape,
                              row->in[i].rank);
}

static hob_tensor *apply(hob_scope *scope, const struct row *row,
                         hob_tensor *const *in)
{
    return row->unary    ? row->unary(scope, in[0])
           : row->binary ? row->binary(scope, in[0], in[1])
                         : row->fn(scope, in);
}

/* The sum of TENSOR times weights that differ from element to element. */
static hob_tensor *weigh(hob_scope *scope, hob_tensor *tensor)
{
    static const double pattern[] = {1, -0.5, 2, 0.25, -1.5, 0.75, 1.25};
    double weights[1024];
    int64_t count = hob_tensor_count(tensor);

    ck_assert_int_le(count, 1024);
    for (int64_t i = 0; i < count; i++)
        weights[i] = pattern[i % 7] + 0.01 * (double)i;
    return hob_sum(scope,
                   hob_mul(scope, tensor,
                           hob_from_f64(scope, hob_tensor_device(tensor),
                                        weights, hob_tensor_shape(tensor),
                                        hob_tensor_rank(tensor))));
}

static void check_scope(hob_scope *scope, const char *name)
{
    hob_status status = hob_scope_error(scope, &error);

    ck_assert_msg(!status, "%s: %s", name, error.message);
}

static double loss_at(const struct row *row, const struct values *values)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *in[MAX_IN];
    double loss = 0;

    make_inputs(scope, truth, row, values, in);
    ck_assert_hob_ok(
        hob_item(weigh(scope, apply(scope, row, in)), &loss, &error));
    hob_scope_close(scope);
    return loss;
}

/* The gradients on DEVICE by one backward. */
static void gradients(const struct row *row, const struct values *values,
                      hob_device *device, struct values *out)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *in[MAX_IN];
    hob_tensor *grad;
    hob_grads *grads = NULL;

    *out = *values;
    make_inputs(scope, device, row, values, in);
    for (uint32_t i = 0; i < values->count; i++)
        in[i] = hob_require_grad(scope, in[i]);
    grad = weigh(scope, apply(scope, row, in));
    check_scope(scope, row->name);
    if (hob_is_tracked(grad))
        ck_assert_hob_ok(hob_backward(scope, grad, 0, &grads, &error));
    for (uint32_t i = 0; i < values->count; i++) {
        grad = NULL;
        if (grads)
            ck_assert_hob_ok(hob_grad(scope, in[i], grads, &grad, &error));
        if (grad) {
            ck_assert_int_eq(hob_tensor_rank(grad), row->in[i].rank);
            ck_assert_mem_eq(hob_tensor_shape(grad), row->in[i].shape,
                             (size_t)row->in[i].rank * sizeof(int64_t));
            ck_assert_int_eq(
                hob_tensor_device(grad) == hob_device_below(device), 1);
            ck_assert_hob_ok(
                hob_read_f64(grad, out->data[i], values->sizes[i], &error));
        } else {
            memset(out->data[i], 0, sizeof(out->data[i]));
        }
    }
    hob_grads_free(grads);
    hob_scope_close(scope);
}

static void compare(const struct row *row, uint32_t input, int64_t element,
                    double got, double want)
{
    ck_assert_msg(fabs(got - want) <= tolerance * (1 + fabs(want)),
                  "%s: d input %u [%d] is %.12g, by differences %.12g",
                  row->name, input, (int)element, got, want);
}

static void check_first(const struct row *row, hob_device *device)
{
    struct values at, shifted, grads;

    fill(&at, row);
    gradients(row, &at, device, &grads);
    for (uint32_t i = 0; i < at.count; i++)
        for (int64_t k = 0; k < at.sizes[i]; k++) {
            double up, down;

            shifted = at;
            shifted.data[i][k] = at.data[i][k] + step;
            up = loss_at(row, &shifted);
            shifted.data[i][k] = at.data[i][k] - step;
            down = loss_at(row, &shifted);
            compare(row, i, k, grads.data[i][k], (up - down) / (2 * step));
        }
}

START_TEST(test_rules_equal_differences)
{
    check_first(&rows[_i], saving);
}
END_TEST

/* The strategy changes what is kept, not one bit of the results. */
START_TEST(test_rules_balanced_equals_none)
{
    struct values at, kept, again;

    fill(&at, &rows[_i]);
    gradients(&rows[_i], &at, saving, &kept);
    gradients(&rows[_i], &at, balanced, &again);
    for (uint32_t i = 0; i < at.count; i++)
        ck_assert_msg(!memcmp(kept.data[i], again.data[i],
                              (size_t)at.sizes[i] * sizeof(double)),
                      "%s: gradient %u differs", rows[_i].name, i);
}
END_TEST

/* Sum of weights times the gradients, as weigh() has it, of flat data. */
static double weigh_gradients(const struct row *row,
                              const struct values *values)
{
    static const double pattern[] = {1, -0.5, 2, 0.25, -1.5, 0.75, 1.25};
    struct values grads;
    double total = 0;

    gradients(row, values, slopes, &grads);
    for (uint32_t i = 0; i < values->count; i++)
        for (int64_t k = 0; k < values->sizes[i]; k++)
            total += grads.data[i][k] * (pattern[k % 7] + 0.01 * (double)k);
    return total;
}

/* The gradients of weigh_gradients() by two backwards; zeros where the first
 * gradient does not depend on the inputs. */
static void second_gradients(const struct row *row, const struct values *values,
                             struct values *out)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *low[MAX_IN], *high[MAX_IN];
    hob_tensor *total = NULL;
    hob_tensor *loss, *grad;
    hob_grads *first = NULL;
    hob_grads *second = NULL;

    *out = *values;
    for (uint32_t i = 0; i < values->count; i++)
        memset(out->data[i], 0, sizeof(out->data[i]));
    make_inputs(scope, saving, row, values, low);
    for (uint32_t i = 0; i < values->count; i++) {
        low[i] = hob_require_grad(scope, low[i]);
        high[i] = hob_require_grad(scope, hob_to_device(scope, low[i], twice));
    }
    loss = weigh(scope, apply(scope, row, high));
    check_scope(scope, row->name);
    ck_assert_hob_ok(hob_backward(scope, loss, 0, &first, &error));
    for (uint32_t i = 0; i < values->count; i++) {
        ck_assert_hob_ok(hob_grad(scope, high[i], first, &grad, &error));
        if (!grad)
            continue;
        grad = weigh(scope, grad);
        total = total ? hob_add(scope, total, grad) : grad;
    }
    check_scope(scope, row->name);
    if (total && hob_is_tracked(total))
        ck_assert_hob_ok(hob_backward(scope, total, 0, &second, &error));
    for (uint32_t i = 0; second && i < values->count; i++) {
        ck_assert_hob_ok(hob_grad(scope, low[i], second, &grad, &error));
        if (grad)
            ck_assert_hob_ok(
                hob_read_f64(grad, out->data[i], values->sizes[i], &error));
    }
    hob_grads_free(second);
    hob_grads_free(first);
    hob_scope_close(scope);
}

START_TEST(test_rules_second_derivatives)
{
    const struct row *row = &rows[_i];
    struct values at, shifted, grads;

    fill(&at, row);
    second_gradients(row, &at, &grads);
    for (uint32_t i = 0; i < at.count; i++)
        for (int64_t k = 0; k < at.sizes[i]; k++) {
            double up, down;

            shifted = at;
            shifted.data[i][k] = at.data[i][k] + step;
            up = weigh_gradients(row, &shifted);
            shifted.data[i][k] = at.data[i][k] - step;
            down = weigh_gradients(row, &shifted);
            compare(row, i, k, grads.data[i][k], (up - down) / (2 * step));
        }
}
END_TEST

/* Far out these are constant or straight, so nothing is left of their second
 * derivatives, and NaN is no limit. */
static const char *const straight[] = {
    "mish", "softsign", "silu", "softplus", "log_sigmoid", "sigmoid",
    "tanh", "gelu",     "elu",  "celu",     "selu",        "hard_swish"};

START_TEST(test_rules_second_derivatives_far_out)
{
    static const double far[] = {INFINITY, -INFINITY, 1000, -1000};
    struct values at, grads;
    int found = 0;

    for (size_t r = 0; r < ROWS; r++) {
        if (strcmp(rows[r].name, straight[_i]) != 0)
            continue;
        found = 1;
        fill(&at, &rows[r]);
        for (int64_t k = 0; k < at.sizes[0]; k++)
            at.data[0][k] = far[k % 4];
        second_gradients(&rows[r], &at, &grads);
        for (int64_t k = 0; k < at.sizes[0]; k++)
            ck_assert_msg(fabs(grads.data[0][k]) < 1e-5, "%s'' of %g: %g",
                          straight[_i], at.data[0][k], grads.data[0][k]);
    }
    ck_assert_msg(found, "no row of %s", straight[_i]);
}
END_TEST

/* ---- where differences cannot tell: ties, kinks, zeros ---- */

static hob_tensor *k_cummax(hob_scope *s, hob_tensor *const *in)
{
    return hob_cummax(s, in[0], 0);
}

static hob_tensor *k_cummin(hob_scope *s, hob_tensor *const *in)
{
    return hob_cummin(s, in[0], 0);
}

static hob_tensor *k_scatter(hob_scope *s, hob_tensor *const *in,
                             enum hob_scatter_update update)
{
    hob_tensor *at =
        ints(s, in[0], (const int64_t[]){0, 0, 1}, (const int64_t[]){3}, 1);

    return hob_scatter(s, in[0], at, in[1], 0, update);
}

static hob_tensor *k_assign(hob_scope *s, hob_tensor *const *in)
{
    return k_scatter(s, in, HOB_SCATTER_UPDATE_ASSIGN);
}

static hob_tensor *k_mul(hob_scope *s, hob_tensor *const *in)
{
    return k_scatter(s, in, HOB_SCATTER_UPDATE_MUL);
}

static hob_tensor *k_max(hob_scope *s, hob_tensor *const *in)
{
    return k_scatter(s, in, HOB_SCATTER_UPDATE_MAX);
}

static hob_tensor *k_min(hob_scope *s, hob_tensor *const *in)
{
    return k_scatter(s, in, HOB_SCATTER_UPDATE_MIN);
}

static hob_tensor *k_norm(hob_scope *s, hob_tensor *const *in)
{
    return hob_norm(s, in[0], 2);
}

static hob_tensor *k_norm_3(hob_scope *s, hob_tensor *const *in)
{
    return hob_norm(s, in[0], 3);
}

static hob_tensor *k_std(hob_scope *s, hob_tensor *const *in)
{
    return hob_std(s, in[0], 1);
}

static hob_tensor *k_median(hob_scope *s, hob_tensor *const *in)
{
    return hob_median(s, in[0]);
}

static hob_tensor *k_det(hob_scope *s, hob_tensor *const *in)
{
    return hob_det(s, hob_reshape(s, in[0], (const int64_t[]){3, 3}, 2));
}

static hob_tensor *k_qr(hob_scope *s, hob_tensor *const *in)
{
    hob_tensor *q, *r;

    (void)hob_qr(s, hob_reshape(s, in[0], (const int64_t[]){2, 2}, 2), 1, &q,
                 &r);
    return r;
}

/* The gradient of the sum of FN. Of the second input there may be none, and
 * of qr, which is no function at 0, a gradient that is finite is enough. */
static const struct kink {
    const char *name;
    case_fn fn;
    int64_t counts[2];
    double in[2][9], grads[2][9];
} kinks[] = {
    {"cummax ties", k_cummax, {4}, {{1, 3, 3, 2}}, {{1, 1, 2, 0}}},
    {"cummin ties", k_cummin, {4}, {{2, 2, 3, 2}}, {{1, 2, 0, 1}}},
    {"cummax NaN", k_cummax, {4}, {{1, NAN, 5, 2}}, {{1, 3, 0, 0}}},
    {"the last one stays",
     k_assign,
     {3, 3},
     {{1, 2, 3}, {4, 5, 6}},
     {{0, 0, 1}, {0, 1, 1}}},
    {"a zero in x", k_mul, {2, 3}, {{0, 2}, {3, 4, 5}}, {{12, 5}, {0, 0, 2}}},
    {"a zero in value",
     k_mul,
     {2, 3},
     {{7, 2}, {0, 4, 5}},
     {{0, 5}, {28, 0, 2}}},
    {"two zeros", k_mul, {2, 3}, {{7, 0}, {0, 0, 0}}, {{0, 0}, {0, 0, 0}}},
    {"three maxima",
     k_max,
     {2, 3},
     {{2, 5}, {2, 2, 4}},
     {{1. / 3, 1}, {1. / 3, 1. / 3, 0}}},
    {"two minima", k_min, {2, 3}, {{2, 5}, {1, 1, 4}}, {{0, 0}, {0.5, 0.5, 1}}},
    {"norm of 0", k_norm, {3}, {{0, 0, 0}}, {{0, 0, 0}}},
    {"3-norm of 0", k_norm_3, {3}, {{0, 0, 0}}, {{0, 0, 0}}},
    {"std of equals", k_std, {3}, {{2, 2, 2}}, {{0, 0, 0}}},
    {"median of equals", k_median, {4}, {{2, 1, 1, 2}}, {{0, 0, 1, 0}}},
    {"det, a column of 0",
     k_det,
     {9},
     {{0, 1, 2, 0, 3, 4, 0, 5, 7}},
     {{1, 0, 0, 3, 0, 0, -2, 0, 0}}},
    {"det, rank 1",
     k_det,
     {9},
     {{1, 2, 3, 2, 4, 6, 3, 6, 9}},
     {{0, 0, 0, 0, 0, 0, 0, 0, 0}}},
    {"qr of 0", k_qr, {4}, {{0, 0, 0, 0}}, {{0, 0, 0, 0}}},
};

static void check_kink(const struct kink *kink, hob_device *device)
{
    hob_scope *scope = hob_scope_open(runtime);
    hob_tensor *in[2] = {NULL}, *grad = NULL;
    hob_grads *grads = NULL;

    for (int i = 0; i < 2; i++)
        if (kink->counts[i])
            in[i] =
                hob_require_grad(scope, hob_from_f64(scope, device, kink->in[i],
                                                     &kink->counts[i], 1));
    ck_assert_hob_ok(hob_backward(scope, hob_sum(scope, kink->fn(scope, in)), 0,
                                  &grads, &error));
    for (int i = 0; i < 2; i++) {
        double got[9];

        if (!in[i])
            continue;
        ck_assert_hob_ok(hob_grad(scope, in[i], grads, &grad, &error));
        ck_assert_hob_ok(hob_read_f64(grad, got, kink->counts[i], &error));
        for (int64_t k = 0; k < kink->counts[i] && kink->fn != k_qr; k++)
            ck_assert_msg(fabs(got[k] - kink->grads[i][k]) <= 1e-12,
                          "%s: gradient %d [%d] is %g, not %g", kink->name, i,
                          (int)k, got[k], kink->grads[i][k]);
        for (int64_t k = 0; k < kink->counts[i]; k++)
            ck_assert_msg(isfinite(got[k]), "%s: gradient %d [%d] is %g",
                          kink->name, i, (int)k, got[k]);
    }
    hob_grads_free(grads);
    hob_scope_close(scope);
}

START_TEST(test_rules_at_ties_and_zeros)
{
    check_kink(&kinks[_i], saving);
    check_kink(&kinks[_i], balanced);
}
END_TEST

/* Every op that yields floats of floats has a row here or a reason below. */
static const char *const without_row[] = {
    "conv2d_x_backward", "conv2d_weight_backward", /* conv2d, twice */
    "max_pool2d_backward", "avg_pool2d_backward",  /* the pools, twice */
    "max_pool2d_x_backward",                       /* likewise */
    "cross_entropy_backward",                      /* likewise */
    "attention_backward", "attention_delta",       /* attention, twice */
    "layer_norm_backward",                         /* layer_norm, twice */
    "rms_norm_backward",                           /* likewise */
    "batch_norm_backward",                         /* batch_norm, twice */
    /* Nothing flows through quantized tensors: test_quant.c. */
    "quantize", "quantize_dynamic", "dequantize", "quantized_values",
    "quantized_scales", "quantized_from",
    "matmul_quantized", /* likewise, with its gradient */
};

static int has_row(const char *name)
{
    for (uint32_t i = 0; i < ROWS; i++)
        if (!strcmp(rows[i].name, name))
            return 1;
    for (size_t i = 0; i < sizeof(without_row) / sizeof(without_row[0]); i++)
        if (!strcmp(without_row[i], name))
            return 1;
    return 0;
}

static int check_op(void *context, const struct hob_op_record *record)
{
    const char *arrow = strstr(record->signature, ") -> ");
    int takes_floats = strstr(record->signature, ": Float") ||
                       strstr(record->signature, ": Num") ||
                       strstr(record->signature, ": Any") ||
                       strstr(record->signature, "[Any]");
    int gives_floats = arrow && strcmp(arrow + 5, "Bool") != 0 &&
                       strcmp(arrow + 5, "Quantized") != 0 &&
                       strcmp(arrow + 5, "index_dtype") != 0 &&
                       strcmp(arrow + 5, "[index_dtype]") != 0;

    (void)context;
    if (takes_floats && gives_floats)
        ck_assert_msg(has_row(record->name), "no gradient test for %s",
                      record->name);
    return 0;
}

START_TEST(test_rules_cover_every_op)
{
    hob_runtime_ops(runtime, check_op, NULL);
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *tc;

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        puts("skipped: HOB_TEST_PLUGIN_DIR does not name the plugins");
        return 77;
    }
    suite = suite_create("autodiff_rules");
    tc = tcase_create("rules");
    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_rules_equal_differences, 0, ROWS);
    tcase_add_loop_test(tc, test_rules_balanced_equals_none, 0, ROWS);
    tcase_add_loop_test(tc, test_rules_second_derivatives, 0, ROWS);
    tcase_add_loop_test(tc, test_rules_second_derivatives_far_out, 0,
                        sizeof(straight) / sizeof(straight[0]));
    tcase_add_loop_test(tc, test_rules_at_ties_and_zeros, 0,
                        sizeof(kinks) / sizeof(kinks[0]));
    tcase_add_test(tc, test_rules_cover_every_op);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
