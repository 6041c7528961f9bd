/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups with reductions over rows, and with softmax and norms, which go along
 * them.
 */
#include "fusion_fixture.h"
#include "hob_check.h"
#include "test_device.h"

#include <hob/hob.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct fusion_fixture f;

static void setup(void)
{
    fusion_open(&f);
}

static void teardown(void)
{
    fusion_close(&f);
}

static const int64_t matrix[] = {33, 130};
enum { BYTES = 33 * 130 * 4 };

/* Rows of a softmax stay in the kernel; broadcasts are read once a row. */
START_TEST(test_fusion_row_reductions_are_in_the_kernel)
{
    const int64_t column[] = {33, 1};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, matrix, 2, 1);
    hob_tensor *scale = fusion_numbers(f.scope, f.lazy, column, 2, 2);
    hob_tensor *scaled = hob_mul(f.scope, x, scale);
    hob_tensor *e = hob_exp(
        f.scope, hob_sub(f.scope, scaled, hob_max_dim(f.scope, scaled, 1)));
    hob_tensor *y = hob_div(f.scope, e, hob_sum_dim(f.scope, e, -1));

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_uint_eq(f.seen.ops[0], 6);
    ck_assert_uint_eq(f.seen.inputs[0], 2);
    /* The scope holds both reductions, which are dear. */
    ck_assert_uint_eq(f.seen.written[0], BYTES + 2 * 33 * 4);
    ck_assert_uint_eq(f.seen.why[0], HOB_FUSION_DEAR);
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
        hob_device *device = i ? f.plain : f.lazy;
        hob_tensor *x = fusion_numbers(f.scope, device, shape, 2, 1);
        hob_tensor *a = hob_mul(
            f.scope,
            hob_softmax(f.scope, hob_mul_scalar(f.scope, x, hob_f64(5)), -1),
            x);
        hob_tensor *b = hob_neg(f.scope, hob_log_softmax(f.scope, x, 1));

        ck_assert_hob_ok(hob_read_f64(a, i ? want[0] : got[0], 7 * 13, &error));
        ck_assert_hob_ok(hob_read_f64(b, i ? want[1] : got[1], 7 * 13, &error));
    }
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 7 * 13; k++)
            ck_assert_double_eq_tol(got[i][k], want[i][k], 4e-6);
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_int_eq(f.seen.groups, 2);
    ck_assert_str_eq(f.seen.name[0],
                     "mul_scalar+max_dim+sub+exp+sum_dim+div+mul");
    ck_assert_str_eq(f.seen.name[1], "max_dim+sub+exp+sum_dim+log+sub+neg");
    ck_assert_uint_eq(f.seen.ops[0], 3);
    ck_assert_uint_eq(f.seen.inputs[0], 1);
}
END_TEST

START_TEST(test_fusion_softmax_alone_is_the_backends)
{
    const int64_t shape[] = {7, 13};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, shape, 2, 1);
    hob_tensor *y[2];

    y[0] = hob_softmax(f.scope, x, -1);
    y[1] = hob_exp(f.scope, hob_softmax(f.scope, x, 0)); /* not along rows */
    ck_assert_hob_ok(hob_eval(y, 2, &error));
    ck_assert_int_eq(f.seen.groups, 0);
    ck_assert_int_eq(f.seen.singles, 3);
}
END_TEST

/* Longer rows fill no block of flex. */
START_TEST(test_fusion_softmax_stays_out_where_it_costs)
{
    const int64_t shape[] = {3, 5000};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, shape, 2, 1);
    hob_tensor *y = hob_softmax(
        f.scope, hob_mul_scalar(f.scope, hob_neg(f.scope, x), hob_f64(5)), -1);

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    if (test_device_is_flex()) {
        ck_assert_str_eq(f.seen.name[0], "neg+mul_scalar");
        ck_assert_int_eq(f.seen.singles, 1);
    }
}
END_TEST

/* The op that ROUND chooses on X, with WEIGHT and BIAS, between two others. */
static hob_tensor *along_rows(int round, hob_tensor *x, hob_tensor *weight,
                              hob_tensor *bias)
{
    hob_tensor *h = hob_add(f.scope, x, hob_square(f.scope, x));

    switch (round % 4) {
    case 0:
        h = hob_layer_norm(f.scope, h, weight, bias, 1e-3);
        break;
    case 1:
        h = hob_rms_norm(f.scope, h, weight, 1e-3);
        break;
    case 2:
        h = hob_layer_norm(f.scope, h, NULL, bias, 1e-3);
        break;
    default:
        h = hob_log_softmax(f.scope, h, -1);
        break;
    }
    return hob_mul(f.scope, hob_move(f.scope, h), x);
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
        hob_device *device = i ? f.plain : f.lazy;
        const hob_dtype dtype = is_half ? HOB_DTYPE_BF16 : HOB_DTYPE_F32;
        hob_tensor *x = hob_cast(
            f.scope, fusion_numbers(f.scope, device, shape, 3, 1), dtype);
        hob_tensor *w = hob_cast(
            f.scope, fusion_numbers(f.scope, device, &length, 1, 2), dtype);
        hob_tensor *b = hob_cast(
            f.scope, fusion_numbers(f.scope, device, &length, 1, 3), dtype);
        hob_tensor *there[] = {x, w, b};

        ck_assert_hob_ok(hob_eval(there, 3, &error));
        fusion_forget(&f);
        out[i] = malloc((size_t)count * sizeof(float));
        ck_assert_ptr_nonnull(out[i]);
        x = along_rows(_i, x, w, b);
        ck_assert_hob_ok(hob_eval(&x, 1, &error));
        if (i == 0 && (is_bits || !is_half)) {
            ck_assert_int_eq(f.seen.singles, 0);
            ck_assert_int_eq(f.seen.groups, 1);
            ck_assert_uint_eq(f.seen.ops[0], 4);
            ck_assert_uint_eq(f.seen.inputs[0], 1 + vectors);
            ck_assert_uint_eq(f.seen.values[0], 1);
            ck_assert_uint_eq(
                f.seen.read[0],
                size * (uint64_t)(count + (int64_t)vectors * length));
            ck_assert_uint_eq(f.seen.written[0], size * (uint64_t)count);
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

/* ---- groups of channels ---- */

struct channels {
    int64_t shape[4];
    uint32_t rank;
    int64_t groups;
};

static const struct channels channels[] = {
    {{3, 6, 5, 7}, 4, 3},   {{3, 6, 5, 7}, 4, 6}, {{2, 6, 5, 7}, 4, 1},
    {{5, 12}, 2, 4},        {{1, 4, 1, 9}, 4, 2}, {{2, 6, 67}, 3, 2},
    {{2, 4, 33, 65}, 4, 2}, {{3, 8, 1, 1}, 4, 2}, {{2, 1, 9}, 3, 1},
};
enum { CHANNELS = sizeof(channels) / sizeof(channels[0]) };

/* relu(group_norm(2 x, weight, bias) + x), by x of f64. */
static void normalize(const struct channels *is, const double *x,
                      const double *weight, const double *bias, double *out)
{
    const int64_t c = is->shape[1], each = c / is->groups;
    int64_t places = 1;

    for (uint32_t i = 2; i < is->rank; i++)
        places *= is->shape[i];
    for (int64_t row = 0; row < is->shape[0] * is->groups; row++) {
        const int64_t from = row * each * places, n = each * places;
        double mean = 0, square = 0;

        for (int64_t i = from; i < from + n; i++)
            mean += 2 * x[i] / (double)n;
        for (int64_t i = from; i < from + n; i++)
            square += (2 * x[i] - mean) * (2 * x[i] - mean) / (double)n;
        for (int64_t i = from; i < from + n; i++) {
            const int64_t channel = i / places % c;
            double y = (2 * x[i] - mean) / sqrt(square + 1e-3);

            y = y * (weight ? weight[channel] : 1) +
                (bias ? bias[channel] : 0) + x[i];
            out[i] = y > 0 ? y : 0;
        }
    }
}

static int64_t row_of(const struct channels *is)
{
    int64_t row = is->shape[1] / is->groups;

    for (uint32_t i = 2; i < is->rank; i++)
        row *= is->shape[i];
    return row;
}

/* The same as ops on DEVICE; HAS says which of IN, x, weight and bias, are
 * there. The inputs' elements go to VALUES. */
static void run_channels(const struct channels *is, hob_dtype dtype,
                         uint32_t has, hob_device *device, double **values,
                         double *out)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *in[3], *y;

    for (uint32_t i = 0; i < 3; i++) {
        in[i] = fusion_numbers(f.scope, device, i ? is->shape + 1 : is->shape,
                               i ? 1 : is->rank, i + 1);
        in[i] = hob_cast(f.scope, in[i], dtype);
    }
    ck_assert_hob_ok(hob_eval(in, 3, &error));
    for (uint32_t i = 0; i < 3; i++)
        ck_assert_hob_ok(
            hob_read_f64(in[i], values[i], hob_tensor_count(in[i]), &error));
    fusion_forget(&f);
    y = hob_group_norm(f.scope, hob_mul_scalar(f.scope, in[0], hob_f64(2)),
                       is->groups, has & 1 ? in[1] : NULL,
                       has & 2 ? in[2] : NULL, 1e-3);
    y = hob_relu(f.scope, hob_add(f.scope, hob_move(f.scope, y), in[0]));
    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_hob_ok(hob_read_f64(y, out, hob_tensor_count(y), &error));
}

/* All of it is one kernel, which reads a number a channel where it is used, but
 * for rows that fill no block of flex. */
static void check_channels_seen(const struct channels *is, hob_dtype dtype,
                                int64_t count, uint32_t vectors)
{
    ck_assert_int_eq(f.seen.groups, 1);
    if (test_device_is_flex() &&
        row_of(is) * (dtype == HOB_DTYPE_F32 ? 4 : 8) > 1 << 15) {
        ck_assert_int_eq(f.seen.singles, 2);
        ck_assert_str_eq(f.seen.name[0], "add+relu");
        return;
    }
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_uint_eq(f.seen.ops[0], 4);
    ck_assert_uint_eq(f.seen.inputs[0], 1 + vectors);
    ck_assert_uint_eq(f.seen.read[0],
                      hob_dtype_size(dtype) *
                          (uint64_t)(count + vectors * is->shape[1]));
}

static void check_channels(const struct channels *is, hob_dtype dtype,
                           uint32_t has)
{
    const double off = dtype == HOB_DTYPE_F64   ? 1e-11
                       : dtype == HOB_DTYPE_F32 ? 2e-5
                                                : 0.05;
    const uint32_t vectors = (has & 1) + (has >> 1);
    const int64_t count = is->shape[0] * is->groups * row_of(is);
    double *values = malloc((size_t)(5 * count) * sizeof(double));
    double *in[] = {values, values + count, values + 2 * count};
    double *got = values + 3 * count, *want = values + 4 * count;

    ck_assert_ptr_nonnull(values);
    run_channels(is, dtype, has, f.plain, in, want);
    run_channels(is, dtype, has, f.lazy, in, got);
    check_channels_seen(is, dtype, count, vectors);
    if (test_device_is_flex() && row_of(is) > 16) /* by the op's own kernel */
        ck_assert_mem_eq(got, want, (size_t)count * sizeof(double));
    normalize(is, in[0], has & 1 ? in[1] : NULL, has & 2 ? in[2] : NULL, want);
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq_tol(got[i], want[i], off * fmax(1, want[i]));
    free(values);
}

/* Another number of groups is another plan. */
START_TEST(test_fusion_group_norms_join_others)
{
    static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64,
                                       HOB_DTYPE_BF16};
    const uint32_t has = (uint32_t)(_i % CHANNELS + _i / CHANNELS) % 4;
    struct channels is = channels[_i % CHANNELS];

    check_channels(&is, dtypes[_i / CHANNELS], has);
    is.groups = 1;
    check_channels(&is, dtypes[_i / CHANNELS], has);
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
    hob_scope *own = hob_scope_open(f.runtime);
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
    ck_assert_hob_ok(hob_fusion_watch(f.lazy, NULL, NULL, &error)); /* alone */
    for (int i = 0; i < 2 * ROUNDS; i++) {
        hob_device *device = i < ROUNDS ? f.plain : f.lazy;
        const uint64_t seed = 4 * (uint64_t)(i % ROUNDS) + 1;
        hob_tensor *x =
            along_rows(i, fusion_numbers(f.scope, device, shape, 2, seed),
                       fusion_numbers(f.scope, device, &length, 1, seed + 1),
                       fusion_numbers(f.scope, device, &length, 1, seed + 2));

        if (i < ROUNDS)
            ck_assert_hob_ok(hob_read_f64(turned(f.scope, x), shared->want[i],
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

int main(void)
{
    Suite *suite = suite_create("fusion rows");
    TCase *tc = tcase_create("rows");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_fusion_row_reductions_are_in_the_kernel);
    tcase_add_test(tc, test_fusion_softmax_joins_others);
    tcase_add_test(tc, test_fusion_softmax_alone_is_the_backends);
    tcase_add_test(tc, test_fusion_softmax_stays_out_where_it_costs);
    tcase_add_loop_test(tc, test_fusion_norms_join_others, 0, 24);
    tcase_add_loop_test(tc, test_fusion_group_norms_join_others, 0,
                        3 * CHANNELS);
    tcase_add_test(tc, test_fusion_of_rows_by_several_threads);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
