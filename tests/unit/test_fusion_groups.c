/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of ops that fusion runs as one kernel: that there are some, what they
 * store and save, and that what comes out is what the ops give one by one, on
 * programs of random ops too.
 */
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <hob/hob.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *plain, *lazy;

/* The kernels since the last time. */
static struct {
    int groups, singles;
    char name[16][128];
    uint32_t ops[16], inputs[16], values[16], in_place[16], why[16];
    uint64_t read[16], written[16], saved[16];
} seen;

static void watch(void *context, const struct hob_fusion_event *event)
{
    int at = seen.groups;

    (void)context;
    if (!event->is_group) {
        seen.singles++;
        return;
    }
    if (at == 16) /* random programs look at none */
        return;
    snprintf(seen.name[at], sizeof(seen.name[at]), "%s", event->name);
    seen.ops[at] = event->op_count;
    seen.inputs[at] = event->input_count;
    seen.values[at] = event->value_count;
    seen.in_place[at] = event->in_place;
    seen.why[at] = event->values[0].why;
    seen.read[at] = event->read_bytes;
    seen.written[at] = event->written_bytes;
    seen.saved[at] = event->saved_bytes;
    seen.groups++;
}

static void forget(void)
{
    memset(&seen, 0, sizeof(seen));
}

static void setup(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.plugin_paths = test_device_paths(&options.plugin_path_count);
    options.threads = 2;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(test_device_open(runtime, "flex", &plain, &error));
    ck_assert_hob_ok(test_device_open(runtime, "fusion(flex)", &lazy, &error));
    ck_assert_hob_ok(hob_fusion_watch(lazy, watch, NULL, &error));
    scope = hob_scope_open(runtime);
    test_device_wait(scope, lazy);
    forget();
}

static void teardown(void)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    hob_scope_close(scope);
    hob_device_unref(plain);
    hob_device_unref(lazy);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* Numbers of a few sizes, the same on both devices. */
static hob_tensor *numbers(hob_scope *where, hob_device *device,
                           const int64_t *shape, int32_t rank, uint64_t seed)
{
    int64_t count = 1;
    float *data;
    hob_tensor *tensor;

    for (int32_t i = 0; i < rank; i++)
        count *= shape[i];
    data = malloc((size_t)count * sizeof(*data) + 1);
    ck_assert_ptr_nonnull(data);
    seed = seed * 2 + 1;
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)op_random(&seed);
    tensor = hob_from_f32(where, device, data, shape, rank);
    free(data);
    return tensor;
}

static const int64_t matrix[] = {33, 130};
enum { BYTES = 33 * 130 * 4 };

/* ---- what is one kernel ---- */

START_TEST(test_fusion_chain_is_one_kernel)
{
    hob_tensor *x = numbers(scope, lazy, matrix, 2, 1);
    hob_tensor *y = hob_exp(scope, hob_neg(scope, hob_square(scope, x)));
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(seen.groups, 1);
    ck_assert_int_eq(seen.singles, 0);
    ck_assert_str_eq(seen.name[0], "square+neg+exp");
    ck_assert_uint_eq(seen.ops[0], 3);
    ck_assert_uint_eq(seen.inputs[0], 1);
    ck_assert_uint_eq(seen.values[0], 1);
    ck_assert_uint_eq(seen.why[0], HOB_FUSION_ASKED);
    ck_assert_uint_eq(seen.read[0], BYTES);
    ck_assert_uint_eq(seen.written[0], BYTES);
    ck_assert_uint_eq(seen.saved[0], 4 * BYTES); /* two written and read */
}
END_TEST

/* Rows of a softmax stay in the kernel; broadcasts are read once a row. */
START_TEST(test_fusion_row_reductions_are_in_the_kernel)
{
    const int64_t column[] = {33, 1};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = numbers(scope, lazy, matrix, 2, 1);
    hob_tensor *scale = numbers(scope, lazy, column, 2, 2);
    hob_tensor *scaled = hob_mul(scope, x, scale);
    hob_tensor *e =
        hob_exp(scope, hob_sub(scope, scaled, hob_max_dim(scope, scaled, 1)));
    hob_tensor *y = hob_div(scope, e, hob_sum_dim(scope, e, -1));

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(seen.groups, 1);
    ck_assert_int_eq(seen.singles, 0);
    ck_assert_uint_eq(seen.ops[0], 6);
    ck_assert_uint_eq(seen.inputs[0], 2);
    /* The scope holds both reductions, which are dear. */
    ck_assert_uint_eq(seen.written[0], BYTES + 2 * 33 * 4);
    ck_assert_uint_eq(seen.why[0], HOB_FUSION_DEAR);
}
END_TEST

/* A softmax that saves bytes beside others is steps of the kernel; alone it is
 * the backend's own. Rows of 13 are short enough for all backends. */
START_TEST(test_fusion_softmax_joins_others)
{
    const int64_t shape[] = {7, 13};
    hob_error error = HOB_ERROR_INIT;
    double got[2][7 * 13], want[2][7 * 13];

    for (int i = 0; i < 2; i++) {
        hob_device *device = i ? plain : lazy;
        hob_tensor *x = numbers(scope, device, shape, 2, 1);
        hob_tensor *a = hob_mul(
            scope, hob_softmax(scope, hob_mul_scalar(scope, x, hob_f64(5)), -1),
            x);
        hob_tensor *b = hob_neg(scope, hob_log_softmax(scope, x, 1));

        ck_assert_hob_ok(hob_read_f64(a, i ? want[0] : got[0], 7 * 13, &error));
        ck_assert_hob_ok(hob_read_f64(b, i ? want[1] : got[1], 7 * 13, &error));
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 7 * 13; k++)
            ck_assert_double_eq_tol(got[i][k], want[i][k], 4e-6);
    ck_assert_int_eq(seen.singles, 0);
    ck_assert_int_eq(seen.groups, 2);
    ck_assert_str_eq(seen.name[0],
                     "mul_scalar+max_dim+sub+exp+sum_dim+div+mul");
    ck_assert_str_eq(seen.name[1], "max_dim+sub+exp+sum_dim+log+sub+neg");
    ck_assert_uint_eq(seen.ops[0], 3);
    ck_assert_uint_eq(seen.inputs[0], 1);
}
END_TEST

START_TEST(test_fusion_softmax_alone_is_the_backends)
{
    const int64_t shape[] = {7, 13};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = numbers(scope, lazy, shape, 2, 1);
    hob_tensor *y[2];

    y[0] = hob_softmax(scope, x, -1);
    y[1] = hob_exp(scope, hob_softmax(scope, x, 0)); /* not along rows */
    ck_assert_hob_ok(hob_eval(y, 2, &error));
    ck_assert_int_eq(seen.groups, 0);
    ck_assert_int_eq(seen.singles, 3);
}
END_TEST

/* Longer rows fill no block of flex. */
START_TEST(test_fusion_softmax_stays_out_where_it_costs)
{
    const int64_t shape[] = {3, 5000};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = numbers(scope, lazy, shape, 2, 1);
    hob_tensor *y = hob_softmax(
        scope, hob_mul_scalar(scope, hob_neg(scope, x), hob_f64(5)), -1);

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    if (test_device_is_flex()) {
        ck_assert_str_eq(seen.name[0], "neg+mul_scalar");
        ck_assert_int_eq(seen.singles, 1);
    }
}
END_TEST

/* The op that ROUND chooses on X, with WEIGHT and BIAS, between two others. */
static hob_tensor *along_rows(int round, hob_tensor *x, hob_tensor *weight,
                              hob_tensor *bias)
{
    hob_tensor *h = hob_add(scope, x, hob_square(scope, x));

    switch (round % 4) {
    case 0:
        h = hob_layer_norm(scope, h, weight, bias, 1e-3);
        break;
    case 1:
        h = hob_rms_norm(scope, h, weight, 1e-3);
        break;
    case 2:
        h = hob_layer_norm(scope, h, NULL, bias, 1e-3);
        break;
    default:
        h = hob_log_softmax(scope, h, -1);
        break;
    }
    return hob_mul(scope, hob_move(scope, h), x);
}

/* What goes along rows is in the kernel of what is before and after, and reads
 * its vectors once. flex has its own kernel there, and gives its bits; the
 * steps of GPUs add up in another order, and they leave halves alone. */
START_TEST(test_fusion_norms_join_others)
{
    const int64_t lengths[] = {130, 13, 257}, length = lengths[_i % 3];
    const int64_t shape[] = {3, 11, length}, count = 33 * length;
    const int is_half = _i >= 12, is_bits = test_device_is_flex();
    const uint64_t size = is_half ? 2 : 4;
    const uint64_t vectors = (uint64_t[]){2, 1, 1, 0}[_i % 4];
    float *out[2];
    hob_error error = HOB_ERROR_INIT;

    for (int i = 0; i < 2; i++) {
        hob_device *device = i ? plain : lazy;
        const hob_dtype dtype = is_half ? HOB_DTYPE_BF16 : HOB_DTYPE_F32;
        hob_tensor *x =
            hob_cast(scope, numbers(scope, device, shape, 3, 1), dtype);
        hob_tensor *w =
            hob_cast(scope, numbers(scope, device, &length, 1, 2), dtype);
        hob_tensor *b =
            hob_cast(scope, numbers(scope, device, &length, 1, 3), dtype);
        hob_tensor *there[] = {x, w, b};

        ck_assert_hob_ok(hob_eval(there, 3, &error));
        forget();
        out[i] = malloc((size_t)count * sizeof(float));
        ck_assert_ptr_nonnull(out[i]);
        x = along_rows(_i, x, w, b);
        ck_assert_hob_ok(hob_eval(&x, 1, &error));
        if (i == 0 && (is_bits || !is_half)) {
            ck_assert_int_eq(seen.singles, 0);
            ck_assert_int_eq(seen.groups, 1);
            ck_assert_uint_eq(seen.ops[0], 4);
            ck_assert_uint_eq(seen.inputs[0], 1 + vectors);
            ck_assert_uint_eq(seen.values[0], 1);
            ck_assert_uint_eq(
                seen.read[0],
                size * (uint64_t)(count + (int64_t)vectors * length));
            ck_assert_uint_eq(seen.written[0], size * (uint64_t)count);
        }
        ck_assert_hob_ok(hob_read_f32(x, out[i], count, &error));
    }
    if (is_bits && length > 16)
        ck_assert_mem_eq(out[0], out[1], (size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++)
        ck_assert_float_eq_tol(out[0][i], out[1][i],
                               (is_half ? 0x1p-7F : 0x1p-18F) *
                                   fmaxf(1, fabsf(out[1][i])));
    free(out[0]);
    free(out[1]);
}
END_TEST

/* Views that part elementwise ops, by ROUND: X is [33, 130], and what comes of
 * it has as many elements. *OUT_OPS is how many ops there are. */
static hob_tensor *across_views(int round, hob_tensor *x, uint32_t *out_ops)
{
    const int64_t with_ones[] = {33, 1, 130, 1}, turned[] = {130, 1, 33};
    const int64_t axes[] = {2, 3, 0, -3}, dims[] = {3};
    hob_tensor *h = hob_mul_scalar(scope, hob_exp(scope, x), hob_f64(0.25));

    *out_ops = 4;
    switch (round) {
    case 0:
        h = hob_swap_dims(scope, h, 0, -1);
        break;
    case 1:
        h = hob_reshape(scope, h, with_ones, 4);
        break;
    case 2: /* several views */
        h = hob_permute(scope, hob_reshape(scope, h, with_ones, 4), axes, 4);
        h = hob_squeeze(scope, h, dims, 1);
        h = hob_add(scope, h,
                    numbers(scope, hob_tensor_device(x), turned, 3, 9));
        *out_ops = 7;
        break;
    case 3: /* there and back, with something in between */
        h = hob_sub(scope, hob_swap_dims(scope, h, 0, 1),
                    numbers(scope, hob_tensor_device(x), turned + 1, 1, 9));
        h = hob_swap_dims(scope, hob_relu(scope, h), 1, 0);
        *out_ops = 7;
        break;
    default:
        h = hob_unsqueeze(scope, hob_swap_dims(scope, h, 0, 1), 1);
        *out_ops = 5;
        break;
    }
    return hob_neg(scope, h);
}

/* They are strides of what is read: nothing is computed for them or stored. */
START_TEST(test_fusion_views_are_strides)
{
    double got[BYTES / 4], want[BYTES / 4];
    hob_error error = HOB_ERROR_INIT;
    uint32_t ops;
    hob_tensor *y = across_views(_i, numbers(scope, lazy, matrix, 2, 1), &ops);

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(seen.groups, 1);
    ck_assert_int_eq(seen.singles, 0);
    ck_assert_uint_eq(seen.ops[0], ops);
    ck_assert_uint_eq(seen.values[0], 1);
    ck_assert_uint_eq(seen.written[0], BYTES);
    ck_assert_hob_ok(hob_read_f64(y, got, BYTES / 4, &error));
    y = across_views(_i, numbers(scope, plain, matrix, 2, 1), &ops);
    ck_assert_hob_ok(hob_read_f64(y, want, BYTES / 4, &error));
    ck_assert_mem_eq(got, want, sizeof(got));
}
END_TEST

/* Not where the value is read otherwise too, by the shape alone alike; nor
 * where two values would be read across memory in its place. What is held stays
 * to be had. */
START_TEST(test_fusion_views_that_stay)
{
    const int64_t square[] = {40, 40};
    double got[1600], want[1600];
    hob_error error = HOB_ERROR_INIT;

    for (int i = 0; i < 2; i++) {
        hob_device *device = i ? plain : lazy;
        hob_tensor *x = numbers(scope, device, square, 2, 1);
        hob_tensor *y = numbers(scope, device, square, 2, 2);
        hob_tensor *h = hob_square(scope, x);
        hob_tensor *both = hob_add(scope, h, hob_swap_dims(scope, h, 0, 1));
        hob_tensor *two =
            hob_neg(scope, hob_swap_dims(scope, hob_mul(scope, x, y), 0, 1));
        hob_tensor *turned = hob_swap_dims(scope, hob_tanh(scope, y), 0, 1);
        hob_tensor *all =
            hob_add(scope, hob_add(scope, both, two),
                    hob_sub(scope, hob_mul_scalar(scope, turned, hob_f64(3)),
                            hob_select(scope, x,
                                       hob_arange(scope, 0, 40, 1, device,
                                                  HOB_DTYPE_I64),
                                       0)));

        ck_assert_hob_ok(hob_read_f64(all, i ? want : got, 1600, &error));
        all = hob_abs(scope, turned);
        ck_assert_hob_ok(hob_read_f64(all, i ? want : got, 1600, &error));
        ck_assert_hob_ok(hob_read_f64(both, i ? want : got, 1600, &error));
        ck_assert_hob_ok(hob_read_f64(two, i ? want : got, 1600, &error));
        if (i)
            ck_assert_mem_eq(got, want, sizeof(got));
    }
}
END_TEST

START_TEST(test_fusion_lone_ops_run_as_they_are)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = numbers(scope, lazy, matrix, 2, 1);
    hob_tensor *y = hob_exp(scope, hob_swap_dims(scope, x, 0, 1));

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(seen.groups, 0);
    ck_assert_int_eq(seen.singles, 1); /* a view of what is there is no op */
}
END_TEST

/* Two results and a dear op between: nothing is computed twice. */
START_TEST(test_fusion_stores_what_others_read)
{
    hob_error error = HOB_ERROR_INIT;
    const int64_t square[] = {40, 40};
    hob_tensor *x = numbers(scope, lazy, square, 2, 1);
    hob_tensor *h = hob_relu(scope, hob_add_scalar(scope, x, hob_f64(0.5)));
    hob_tensor *m = hob_matmul(scope, h, h);
    hob_tensor *y[2];

    y[0] = hob_tanh(scope, hob_mul(scope, m, h));
    y[1] = hob_add(scope, m, m);
    ck_assert_hob_ok(hob_eval(y, 2, &error));
    ck_assert_int_eq(seen.groups, 2);
    ck_assert_int_eq(seen.singles, 1); /* the product */
    ck_assert_str_eq(seen.name[0], "add_scalar+relu");
    ck_assert_uint_eq(seen.why[0], HOB_FUSION_READ);
    ck_assert_uint_eq(seen.values[1], 2);
    ck_assert_uint_eq(seen.inputs[1], 2);
}
END_TEST

START_TEST(test_fusion_constants_are_no_tensors)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = numbers(scope, lazy, matrix, 2, 1);
    hob_tensor *two =
        hob_full(scope, matrix, 2, hob_i64(2), lazy, HOB_DTYPE_F32);
    hob_tensor *y = hob_mul(scope, x, two);

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(seen.groups, 1);
    ck_assert_int_eq(seen.singles, 0);
    ck_assert_uint_eq(seen.read[0], BYTES + 4);
}
END_TEST

/* Nor where there is nothing else to read. */
START_TEST(test_fusion_constants_alone)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *two =
        hob_full(scope, matrix, 2, hob_i64(2), lazy, HOB_DTYPE_F32);
    hob_tensor *one = hob_ones(scope, matrix, 2, lazy, HOB_DTYPE_F32);
    hob_tensor *y = hob_sub(scope, hob_mul(scope, two, two), one);
    double data[BYTES / 4];

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(seen.groups, 1);
    ck_assert_int_eq(seen.singles, 0);
    ck_assert_uint_eq(seen.ops[0], 2);
    ck_assert_uint_eq(seen.read[0], 8);
    ck_assert_uint_eq(seen.written[0], BYTES);
    ck_assert_hob_ok(hob_read_f64(y, data, BYTES / 4, &error));
    for (int i = 0; i < BYTES / 4; i++)
        ck_assert_double_eq(data[i], 3);
}
END_TEST

/* What is cheap and held, but was not asked for, is left; the second time it
 * is computed it is stored. */
START_TEST(test_fusion_computes_nothing_more_than_twice)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = numbers(scope, lazy, matrix, 2, 1);
    hob_tensor *held = hob_square(scope, x);
    hob_tensor *y = hob_exp(scope, held);
    hob_tensor *z = hob_log1p(scope, held);
    hob_tensor *w = hob_sqrt(scope, held);
    struct hob_fusion_stats report = HOB_FUSION_STATS_INIT;

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(seen.groups, 1);
    ck_assert_uint_eq(seen.values[0], 2); /* z and w read it, too */
    forget();
    ck_assert_hob_ok(hob_eval(&z, 1, &error));
    ck_assert_int_eq(seen.groups, 0);
    ck_assert_hob_ok(hob_eval(&w, 1, &error));
    forget();
    held = hob_square(scope, x);
    y = hob_exp(scope, held);
    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_uint_eq(seen.values[0], 1);
    z = hob_neg(scope, held);
    ck_assert_hob_ok(hob_eval(&z, 1, &error));
    ck_assert_int_eq(seen.groups, 2);
    ck_assert_uint_eq(seen.values[1], 2);
    forget();
    w = hob_abs(scope, held);
    ck_assert_hob_ok(hob_eval(&w, 1, &error));
    ck_assert_int_eq(seen.groups, 0); /* abs alone */
    ck_assert_hob_ok(hob_fusion_report(lazy, &report, &error));
    ck_assert_uint_eq(report.weak, 1);
    ck_assert_uint_ge(report.programs, 2);
    ck_assert_uint_eq(report.declined, 0);
}
END_TEST

START_TEST(test_fusion_writes_over_what_is_dead)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *slot = NULL;

    hob_assign(scope, &slot, numbers(scope, lazy, matrix, 2, 1));
    for (int i = 0; i < 2; i++) {
        hob_scope *step = hob_scope_child(scope);

        hob_assign(scope, &slot,
                   hob_mul_scalar(step, hob_add_scalar(step, slot, hob_i64(1)),
                                  hob_f64(0.5)));
        hob_scope_close(step);
    }
    ck_assert_int_eq(seen.groups, 2);
    ck_assert_uint_eq(seen.in_place[1], 1);
    ck_assert_hob_ok(hob_eval(&slot, 1, &error));
}
END_TEST

START_TEST(test_fusion_programs_are_found_again)
{
    hob_error error = HOB_ERROR_INIT;
    struct hob_fusion_stats report = HOB_FUSION_STATS_INIT;

    for (int64_t i = 1; i < 9; i++) {
        const int64_t shape[] = {10 * i};
        hob_tensor *x = numbers(scope, lazy, shape, 1, 3);

        x = hob_exp(scope, hob_mul_scalar(scope, x, hob_i64(i)));
        ck_assert_hob_ok(hob_eval(&x, 1, &error));
    }
    ck_assert_hob_ok(hob_fusion_report(lazy, &report, &error));
    ck_assert_uint_eq(report.groups, 8);
    ck_assert_uint_eq(report.programs, 1); /* of all sizes and numbers */
    ck_assert_uint_eq(report.program_hits, 7);
    ck_assert_int_eq(hob_fusion_report(plain, &report, &error), HOB_ERR_DEVICE);
    hob_error_release(&error);
}
END_TEST

/* a and b go through ops that are no group's, and meet crosswise: no group may
 * need what needs itself, also where one has taken in another. */
START_TEST(test_fusion_groups_form_no_circle)
{
    const int64_t three = 3;
    const double expected[3] = {60, 105, 162};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *a, *b, *c, *f, *g, *rows, *s, *t;
    double got[3];

    rows = hob_arange(scope, 0, 3, 1, lazy, HOB_DTYPE_I64);
    a = hob_neg(
        scope, hob_from_f64(scope, lazy, (const double[]){1, 2, 3}, &three, 1));
    s = hob_select(scope, a, rows, 0);
    b = hob_neg(
        scope, hob_from_f64(scope, lazy, (const double[]){4, 5, 6}, &three, 1));
    t = hob_select(scope, b, rows, 0);
    c = hob_neg(
        scope, hob_from_f64(scope, lazy, (const double[]){7, 8, 9}, &three, 1));
    f = hob_add(scope, hob_add(scope, b, c), s);
    g = hob_add(scope, t, a);
    ck_assert_hob_ok(hob_read_f64(hob_mul(scope, f, g), got, 3, &error));
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(got[i], expected[i]);
}
END_TEST

/* ---- more than a program has room for ---- */

enum { VALUES = 20 };

static void check_scaled(hob_tensor *got, hob_tensor *x, double a, double b)
{
    const int64_t count = hob_tensor_count(x);
    double *want = malloc((size_t)count * sizeof(*want));
    double *is = malloc((size_t)count * sizeof(*is));
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_read_f64(x, want, count, &error));
    ck_assert_hob_ok(hob_read_f64(got, is, count, &error));
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq_tol(is[i], a * want[i] + b,
                                1e-5 * (1 + fabs(a * want[i] + b)));
    free(want);
    free(is);
}

/* All values of a chain are asked for: 8 fit a program. */
START_TEST(test_fusion_splits_many_values)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = numbers(scope, lazy, matrix, 2, 1);
    hob_tensor *y[VALUES];
    struct hob_fusion_stats report = HOB_FUSION_STATS_INIT;

    for (int i = 0; i < VALUES; i++)
        y[i] = hob_add_scalar(scope, i ? y[i - 1] : x, hob_f64(1));
    ck_assert_hob_ok(hob_eval(y, VALUES, &error));
    ck_assert_int_eq(seen.singles, 0);
    ck_assert_int_eq(seen.groups, 4);
    for (int i = 0; i < seen.groups; i++)
        ck_assert_uint_eq(seen.values[i], seen.ops[i]);
    ck_assert_hob_ok(hob_fusion_report(lazy, &report, &error));
    ck_assert_uint_eq(report.declined, 0);
    for (int i = 0; i < VALUES; i++)
        check_scaled(y[i], x, 1, i + 1);
}
END_TEST

/* Two numbers each: 64 fit a program. What others read is stored as well. */
START_TEST(test_fusion_splits_many_numbers)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = numbers(scope, lazy, matrix, 2, 1);
    hob_tensor *y = x;
    hob_tensor *first = NULL;

    for (int i = 0; i < 2 * VALUES; i++) {
        y = hob_clamp(scope, y, hob_f64(-100 - i), hob_f64(100 + i));
        if (!i)
            first = y;
    }
    y = hob_add(scope, y, first);
    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(seen.singles, 0);
    ck_assert_int_ge(seen.groups, 2);
    check_scaled(y, x, 2, 0);
}
END_TEST

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 60, ROWS = 5, LENGTH = 33 };

/* What one thread has put off and all read, and what comes of it. */
struct shared {
    hob_tensor *rows[ROUNDS];
    double want[ROUNDS][ROWS * LENGTH];
    _Atomic int failed;
};

/* H with a view in the middle of what is done to it. */
static hob_tensor *turned(hob_scope *where, hob_tensor *h)
{
    h = hob_swap_dims(where, hob_mul_scalar(where, h, hob_f64(0.5)), 0, 1);
    return hob_neg(where, h);
}

static void *use_rows(void *opaque)
{
    struct shared *shared = opaque;
    hob_scope *own = hob_scope_open(runtime);
    double got[ROWS * LENGTH];

    for (int i = 0; i < ROUNDS; i++) {
        hob_scope *step = hob_scope_child(own);
        hob_tensor *y = turned(step, shared->rows[i]);

        if (hob_read_f64(y, got, ROWS * LENGTH, NULL))
            shared->failed = 1;
        for (int k = 0; k < ROWS * LENGTH; k++)
            if (!(fabs(got[k] - shared->want[i][k]) <=
                  (test_device_is_flex() ? 0 : 1e-5)))
                shared->failed = 1;
        hob_scope_close(step);
    }
    hob_scope_close(own);
    return NULL;
}

/* Norms and softmax that are put off by one thread are computed by whichever
 * needs them first, beside others that want the same. */
START_TEST(test_fusion_of_rows_by_several_threads)
{
    const int64_t shape[] = {ROWS, LENGTH}, length = LENGTH;
    struct shared *shared = calloc(1, sizeof(*shared));
    pthread_t threads[THREADS];
    hob_error error = HOB_ERROR_INIT;

    ck_assert_ptr_nonnull(shared);
    ck_assert_hob_ok(hob_fusion_watch(lazy, NULL, NULL, &error)); /* alone */
    for (int i = 0; i < 2 * ROUNDS; i++) {
        hob_device *device = i < ROUNDS ? plain : lazy;
        const uint64_t seed = 4 * (uint64_t)(i % ROUNDS) + 1;
        hob_tensor *x =
            along_rows(i, numbers(scope, device, shape, 2, seed),
                       numbers(scope, device, &length, 1, seed + 1),
                       numbers(scope, device, &length, 1, seed + 2));

        if (i < ROUNDS)
            ck_assert_hob_ok(hob_read_f64(turned(scope, x), shared->want[i],
                                          ROWS * LENGTH, &error));
        else
            shared->rows[i - ROUNDS] = x;
    }
    for (int k = 0; k < THREADS; k++)
        ck_assert_int_eq(pthread_create(&threads[k], NULL, use_rows, shared),
                         0);
    for (int k = 0; k < THREADS; k++)
        ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
    ck_assert_int_eq(shared->failed, 0);
    free(shared);
}
END_TEST

/* ---- that it is right ---- */

enum { MOST = 24, SHAPES = 6 };

/* The last dimension may become short: some ops are taken into groups then. */
static int64_t shapes[SHAPES][3] = {{4, 5, 33}, {1, 5, 33}, {4, 1, 33},
                                    {4, 5, 1},  {1, 1, 33}, {4, 1, 1}};

static void set_last(int64_t size)
{
    for (int i = 0; i < SHAPES; i++)
        if (shapes[i][2] != 1)
            shapes[i][2] = size;
}

/* One op of a random program on VALUES, COUNT of them. */
static hob_tensor *random_op(hob_scope *where, hob_tensor **values, int count,
                             uint64_t *state)
{
    hob_tensor *x = values[(int)((op_random(state) + 1) / 2 * count)];
    hob_tensor *y = values[(int)((op_random(state) + 1) / 2 * count)];
    const int32_t rank = hob_tensor_rank(x);
    const int64_t last[] = {-1, -2};

    switch ((int)((op_random(state) + 1) * 13)) {
    case 0:
        return hob_add(where, x, y);
    case 1:
        return hob_mul(where, x, y);
    case 2:
        return hob_sub(where, x, y);
    case 3:
        return hob_maximum(where, x, y);
    case 4:
        return hob_tanh(where, x);
    case 5:
        return hob_sigmoid(where, x);
    case 6:
        return hob_relu(where, x);
    case 7:
        return hob_mul_scalar(where, x, hob_f64(0.75));
    case 8:
        return hob_clamp(where, x, hob_f64(-0.5), hob_none());
    case 9:
        return hob_where(where, hob_greater(where, x, y), x, y);
    case 10:
        return hob_mean_dim(where, x, rank - 1);
    case 11:
        return hob_max_dim(where, x, -1);
    case 12:
        return hob_sum_dims(where, hob_mul_scalar(where, x, hob_f64(0.05)),
                            last, 2);
    case 13:
        return hob_cast(where, hob_cast(where, x, HOB_DTYPE_F64),
                        HOB_DTYPE_F32);
    case 14:
        return hob_silu(where, x);
    case 15:
        return op_random(state) > 0 ? hob_softmax(where, x, rank - 1)
                                    : hob_log_softmax(where, x, -1);
    case 16:
        return hob_swap_dims(where, hob_swap_dims(where, x, 0, 1), 0, 1);
    case 17:
        return hob_flip(where, x, (const int64_t[]){2}, 1);
    case 18:
        return hob_add(where, x,
                       hob_full(where, shapes[0], 3, hob_f64(0.25),
                                hob_tensor_device(x), HOB_DTYPE_F32));
    case 19:
        return hob_layer_norm(where, x, NULL, NULL, 1e-3);
    case 20:
        return hob_hard_sigmoid(where, x, 0.2, 0.5);
    case 21:
        return hob_mask_fill(where, x, hob_less(where, x, y), hob_f64(0.1));
    case 22:
        return hob_mul(where, x, hob_mean(where, x));
    case 23:
        return hob_prelu(
            where, x,
            numbers(where, hob_tensor_device(x), (const int64_t[]){1}, 1, 4));
    case 24:
        x = hob_permute(where, hob_mul_scalar(where, x, hob_f64(0.5)),
                        (const int64_t[]){2, 0, 1}, 3);
        x = hob_permute(where, hob_tanh(where, x), (const int64_t[]){1, 2, 0},
                        3);
        return hob_abs(where, x);
    default:
        x = hob_unsqueeze(where, hob_relu(where, x), 1);
        return hob_squeeze(where, hob_neg(where, x), (const int64_t[]){1}, 1);
    }
}

/* The program SEED on DEVICE; its values are VALUES. */
static int random_program(hob_scope *where, hob_device *device, uint64_t seed,
                          hob_tensor **values)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    int count = 0;

    for (; count < SHAPES; count++)
        values[count] = numbers(where, device, shapes[count], 3,
                                seed * 10 + (uint64_t)count);
    for (int i = 0; i < 4; i++)
        (void)op_random(&state);
    for (; count < MOST; count++)
        values[count] = random_op(where, values, count, &state);
    return count;
}

static void check_same(hob_tensor *got, hob_tensor *want, uint64_t seed, int at)
{
    const int64_t count = hob_tensor_count(want);
    double *a = malloc((size_t)count * sizeof(*a));
    double *b = malloc((size_t)count * sizeof(*b));
    hob_error error = HOB_ERROR_INIT;

    ck_assert_int_eq(hob_tensor_count(got), count);
    ck_assert_hob_ok(hob_read_f64(got, a, count, &error));
    ck_assert_hob_ok(hob_read_f64(want, b, count, &error));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(a[i] - b[i]) <= 2e-5 * fmax(1, fabs(b[i])),
                      "program %d, value %d, element %d: %.9g, not %.9g",
                      (int)seed, at, (int)i, a[i], b[i]);
    free(a);
    free(b);
}

START_TEST(test_fusion_of_random_programs)
{
    hob_error error = HOB_ERROR_INIT;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        const uint64_t number = seed + 20 * (uint64_t)_i;
        hob_scope *inner = hob_scope_child(scope);
        hob_tensor *got[MOST], *want[MOST];
        uint64_t state = number + 99;

        set_last(number % 2 ? 13 : 33);
        random_program(inner, lazy, number, got);
        random_program(inner, plain, number, want);
        /* All at once, one after the other, or some of them. */
        forget();
        if (number % 3 == 0)
            ck_assert_hob_ok(hob_eval(got + SHAPES, MOST - SHAPES, &error));
        for (int i = MOST - 1; i >= SHAPES; i--)
            if (number % 3 != 2 || op_random(&state) > 0)
                check_same(got[i], want[i], number, i);
            else
                forget();
        forget();
        ck_assert_hob_ok(hob_scope_error(inner, &error));
        hob_scope_close(inner);
        forget();
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion groups");
    TCase *tc = tcase_create("groups");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_fusion_chain_is_one_kernel);
    tcase_add_test(tc, test_fusion_row_reductions_are_in_the_kernel);
    tcase_add_test(tc, test_fusion_softmax_joins_others);
    tcase_add_test(tc, test_fusion_softmax_alone_is_the_backends);
    tcase_add_test(tc, test_fusion_softmax_stays_out_where_it_costs);
    tcase_add_loop_test(tc, test_fusion_norms_join_others, 0, 24);
    tcase_add_loop_test(tc, test_fusion_views_are_strides, 0, 5);
    tcase_add_test(tc, test_fusion_views_that_stay);
    tcase_add_test(tc, test_fusion_lone_ops_run_as_they_are);
    tcase_add_test(tc, test_fusion_stores_what_others_read);
    tcase_add_test(tc, test_fusion_constants_are_no_tensors);
    tcase_add_test(tc, test_fusion_constants_alone);
    tcase_add_test(tc, test_fusion_computes_nothing_more_than_twice);
    tcase_add_test(tc, test_fusion_writes_over_what_is_dead);
    tcase_add_test(tc, test_fusion_programs_are_found_again);
    tcase_add_test(tc, test_fusion_groups_form_no_circle);
    tcase_add_test(tc, test_fusion_splits_many_values);
    tcase_add_test(tc, test_fusion_splits_many_numbers);
    suite_add_tcase(suite, tc);
    tc = tcase_create("threads");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_fusion_of_rows_by_several_threads);
    suite_add_tcase(suite, tc);
    tc = tcase_create("random");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_fusion_of_random_programs, 0, 10);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
