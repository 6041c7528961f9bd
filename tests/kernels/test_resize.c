/* SPDX-License-Identifier: Apache-2.0 */
/*
 * interpolate, adaptive_avg_pool and their gradients in every float dtype,
 * layout and instruction set, against dense matrices of weights in long
 * double.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

enum mode { NEAREST, EXACT, BILINEAR, BICUBIC, LANCZOS, AVERAGE, MODES };

/* Heights, then widths, before and after. */
static const struct resize_case {
    int64_t in[2], out[2];
} cases[] = {
    {{1, 1}, {1, 1}},   {{1, 7}, {5, 1}},     {{5, 6}, {9, 13}},
    {{4, 4}, {8, 8}},   {{8, 8}, {4, 4}},     {{7, 5}, {7, 11}},
    {{7, 5}, {12, 5}},  {{19, 23}, {3, 2}},   {{2, 3}, {41, 67}},
    {{3, 40}, {17, 9}}, {{71, 90}, {1, 1}},   {{6, 6}, {6, 6}},
    {{1, 2}, {50, 1}},  {{33, 34}, {35, 18}},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]), PLANES = 3 };

static long double cubic(long double d)
{
    const long double a = -0.75L;

    d = fabsl(d);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    return d < 2 ? ((a * d - 5 * a) * d + 8 * a) * d - 4 * a : 0;
}

static long double lanczos(long double d)
{
    const long double pi = 3.14159265358979323846L;

    if (d == 0)
        return 1;
    return fabsl(d) < 3
               ? 3 * sinl(pi * d) * sinl(pi * d / 3) / (pi * pi * d * d)
               : 0;
}

/* How much of element J is in result I, before lanczos is scaled. */
static void add_weights(long double *row, enum mode mode, int corners,
                        int64_t in, int64_t out, int64_t i)
{
    long double at =
        corners
            ? out > 1 ? (long double)(i * (in - 1)) / (long double)(out - 1) : 0
            : ((long double)(2 * i + 1) * (long double)in) /
                      (long double)(2 * out) -
                  0.5L;
    int64_t first = (int64_t)floorl(at), last;

    if (mode == NEAREST || mode == EXACT) {
        row[mode == EXACT ? (2 * i + 1) * in / (2 * out) : i * in / out] = 1;
        return;
    }
    if (mode == AVERAGE) {
        first = i * in / out;
        last = ((i + 1) * in + out - 1) / out;
        for (int64_t j = first; j < last; j++)
            row[j] = 1 / (long double)(last - first);
        return;
    }
    for (int64_t j = first - 2; j <= first + 3; j++) {
        long double d = at - (long double)j;
        long double weight = mode == BILINEAR  ? fmaxl(1 - fabsl(d), 0)
                             : mode == BICUBIC ? cubic(d)
                                               : lanczos(d);

        if (mode != LANCZOS)
            row[j < 0 ? 0 : j >= in ? in - 1 : j] += weight;
        else if (j >= 0 && j < in)
            row[j] += weight;
    }
}

/* [out, in] */
static long double *matrix(enum mode mode, int corners, int64_t in, int64_t out)
{
    long double *m = calloc((size_t)(in * out), sizeof(*m));

    ck_assert_ptr_nonnull(m);
    for (int64_t i = 0; i < out; i++) {
        long double sum = 0;

        add_weights(m + i * in, mode, corners, in, out, i);
        for (int64_t j = 0; j < in; j++)
            sum += m[i * in + j];
        for (int64_t j = 0; j < in; j++)
            m[i * in + j] /= sum;
    }
    return m;
}

/* Element (Y, X) of A plane B^T, or A^T plane B, for A [oh, ih], B [ow, iw]. */
static long double wanted_at(const struct resize_case *c, int is_backward,
                             const long double *a, const long double *b,
                             const double *plane, int64_t y, int64_t x)
{
    const int64_t h = is_backward ? c->out[0] : c->in[0];
    const int64_t w = is_backward ? c->out[1] : c->in[1];
    long double sum = 0;

    for (int64_t i = 0; i < h; i++) {
        const long double down =
            is_backward ? a[i * c->in[0] + y] : a[y * c->in[0] + i];

        for (int64_t j = 0; j < w && down != 0; j++) {
            const long double across =
                is_backward ? b[j * c->in[1] + x] : b[x * c->in[1] + j];

            if (across != 0)
                sum += down * across * plane[i * w + j];
        }
    }
    return sum;
}

static double tolerance_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-13
           : dtype == HOB_DTYPE_F32 ? 3e-6
           : dtype == HOB_DTYPE_F16 ? 0x1p-10
                                    : 0x1p-7;
}

static void try_case(struct lab *lab, const struct resize_case *c,
                     enum mode mode, int corners, int is_backward,
                     uint32_t dtype, enum lab_layout layout)
{
    const int64_t *from = is_backward ? c->out : c->in;
    const int64_t *to = is_backward ? c->in : c->out;
    const int64_t x_shape[4] = {PLANES, 1, from[0], from[1]};
    const int64_t shape[4] = {PLANES, 1, to[0], to[1]};
    const char *name =
        mode == AVERAGE
            ? is_backward ? "adaptive_avg_pool_backward" : "adaptive_avg_pool"
        : is_backward ? "interpolate_backward"
                      : "interpolate";
    long double *a = matrix(mode, corners, c->in[0], c->out[0]);
    long double *b = matrix(mode, corners, c->in[1], c->out[1]);
    struct lab_tensor x;
    struct fake_call call;
    double *dense;

    lab_tensor_init(lab, &x, dtype, 4, x_shape, layout, -8, 8);
    dense = lab_dense(&x.view);
    fake_call_init(&call, &lab->host, name);
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_value_i64s(to, 2));
    if (mode != AVERAGE) {
        fake_call_value(&call, hob_i64(mode));
        fake_call_value(&call, hob_bool(corners));
    }
    fake_call_result(&call, dtype, 4, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_resize_entries), HOB_OK);
    for (int64_t i = 0; i < PLANES * to[0] * to[1]; i++) {
        int64_t at[4];
        long double wanted;
        double got = lab_get_at(&call.results[0].view, i);

        lab_position(4, shape, i, at);
        wanted = wanted_at(c, is_backward, a, b,
                           dense + at[0] * from[0] * from[1], at[2], at[3]);
        /* Sums of many gradients: relative to the largest. */
        ck_assert_msg(fabsl(got - wanted) <=
                          (8 + fabsl(wanted)) * tolerance_of(dtype),
                      "%s %s %s case %d mode %d corners %d element %d: %.9g, "
                      "not %.9Lg",
                      lab->device->kernels->name, name, hob_dtype_name(dtype),
                      (int)(c - cases), mode, corners, (int)i, got, wanted);
    }
    free(a);
    free(b);
    free(dense);
    fake_call_release(&call);
    lab_tensor_release(&x);
}

START_TEST(test_resize_equals_matrices)
{
    const struct resize_case *c = &cases[_i];

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        int turn = _i + isa;

        if (lab_open(&lab, 2, lab_isas[isa]))
            for (int mode = 0; mode < MODES; mode++)
                for (int k = 0; k < 4; k++)
                    for (uint32_t dtype = HOB_DTYPE_F64;
                         dtype <= HOB_DTYPE_BF16; dtype++)
                        try_case(&lab, c, (enum mode)mode,
                                 k > 1 && mode != AVERAGE, k % 2, dtype,
                                 (enum lab_layout)(turn++ % LAB_LAYOUT_COUNT_));
        lab_close(&lab);
    }
}
END_TEST

/* What a result does not read does not reach it, nor in the gradient. */
START_TEST(test_resize_keeps_nan_where_it_is)
{
    const int64_t shape[4] = {1, 1, 6, 40}, size[2] = {12, 80};
    const int64_t back[2] = {3, 20};
    struct lab lab;

    ck_assert(lab_open(&lab, 1, NULL));
    for (int mode = NEAREST; mode < AVERAGE; mode++)
        for (int is_backward = 0; is_backward < 2; is_backward++) {
            const int64_t *to = is_backward ? back : size;
            const int64_t made[4] = {1, 1, to[0], to[1]};
            const int64_t reach = mode == BILINEAR  ? 1
                                  : mode == BICUBIC ? 2
                                  : mode == LANCZOS ? 3
                                                    : 1;
            struct lab_tensor x;
            struct fake_call call;
            int found = 0;

            lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 4, shape, LAB_CONTIGUOUS,
                            1, 2);
            lab_set_at(&x.view, 3 * 40 + 20, NAN);
            fake_call_init(&call, &lab.host,
                           is_backward ? "interpolate_backward"
                                       : "interpolate");
            fake_call_view(&call, &x.view);
            fake_call_value(&call, hob_value_i64s(to, 2));
            fake_call_value(&call, hob_i64(mode));
            fake_call_value(&call, hob_bool(0));
            fake_call_result(&call, HOB_DTYPE_F32, 4, made);
            ck_assert_int_eq(lab_run(&lab, &call, &flex_resize_entries),
                             HOB_OK);
            for (int64_t i = 0; i < to[0] * to[1]; i++) {
                const int64_t scale = is_backward ? 1 : 2;
                const int64_t x_at = is_backward ? 10 : 40;
                const int is_nan = isnan(lab_get_at(&call.results[0].view, i));

                found |= is_nan;
                ck_assert(!is_nan ||
                          llabs(i % to[1] - x_at) <= scale * (reach + 1));
            }
            ck_assert(found);
            fake_call_release(&call);
            lab_tensor_release(&x);
        }
    lab_close(&lab);
}
END_TEST

/* 100,000 tenths in f32 lose nothing. */
START_TEST(test_resize_of_a_large_window)
{
    const int64_t shape[3] = {1, 200, 500}, size[2] = {1, 1};
    const int64_t made[3] = {1, 1, 1};
    struct lab_tensor x;
    struct fake_call call;
    struct lab lab;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 3, shape, LAB_CONTIGUOUS, 0, 0);
    for (int64_t i = 0; i < 100000; i++)
        lab_set_at(&x.view, i, 0.1);
    fake_call_init(&call, &lab.host, "adaptive_avg_pool");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_value_i64s(size, 2));
    fake_call_result(&call, HOB_DTYPE_F32, 3, made);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_resize_entries), HOB_OK);
    ck_assert(lab_near(lab_get_at(&call.results[0].view, 0), 0.1, 2e-8));
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("resize");
    TCase *tc = tcase_create("resize");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_resize_equals_matrices, 0, CASES);
    tcase_add_test(tc, test_resize_keeps_nan_where_it_is);
    tcase_add_test(tc, test_resize_of_a_large_window);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
