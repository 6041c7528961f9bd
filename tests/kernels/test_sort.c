/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sort and topk against a stable insertion sort of doubles, for every layout
 * and dimension.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7},   {2, 33, 3},
                                    {2, 0, 3}, {1, 4, 900}, {700, 1, 2}};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* Nonzero if A must stand after B, ascending: NaN last, -0 equal to +0. */
static int after(double a, double b)
{
    if (isnan(b))
        return 0;
    return isnan(a) || a > b;
}

static void sort_naive(const double *x, int64_t n, int64_t step, int descending,
                       int64_t *order)
{
    for (int64_t i = 0; i < n; i++) {
        int64_t j = i;
        for (; j > 0; j--) {
            double left = x[order[j - 1] * step], own = x[i * step];
            if (descending ? !after(own, left) : !after(left, own))
                break;
            order[j] = order[j - 1];
        }
        order[j] = i;
    }
}

/* A few specials among the floats. */
static void sprinkle(struct lab *lab, const struct hob_view *view)
{
    static const double specials[] = {
        (double)NAN, -(double)NAN,     -0.0,
        0.0,         (double)INFINITY, -(double)INFINITY};
    const int64_t count = hob_view_count(view);

    for (int64_t i = 0; i < count / 4; i++)
        lab_set_at(view, lab_random(lab, 0, count - 1),
                   specials[lab_random(lab, 0, 5)]);
}

static void check_sort(struct lab *lab, const int64_t *shape, int64_t dim,
                       uint32_t dtype, enum lab_layout layout, int descending,
                       int64_t k)
{
    const uint32_t axis = (uint32_t)(dim < 0 ? dim + 3 : dim);
    const uint32_t index_dtype = descending ? HOB_DTYPE_I32 : HOB_DTYPE_I64;
    const int64_t n = shape[axis];
    int64_t out[3], step = 1;
    int64_t *order = calloc((size_t)n + 1, sizeof(*order));
    struct lab_tensor x;
    struct fake_call call;
    double *in;

    memcpy(out, shape, sizeof(out));
    if (k >= 0)
        out[axis] = k;
    for (uint32_t i = axis + 1; i < 3; i++)
        step *= shape[i];
    lab_tensor_init(lab, &x, dtype, 3, shape, layout, -50, 50);
    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT)
        sprinkle(lab, &x.view);
    in = lab_dense(&x.view);
    fake_call_init(&call, &lab->host,
                   k >= 0 ? "topk_with_indices" : "sort_with_indices");
    fake_call_view(&call, &x.view);
    if (k >= 0)
        fake_call_value(&call, hob_i64(k));
    fake_call_value(&call, hob_i64(dim));
    if (k < 0)
        fake_call_value(&call, hob_bool(descending));
    fake_call_value(&call, hob_value_dtype(index_dtype));
    fake_call_result(&call, dtype, 3, out);
    fake_call_result(&call, index_dtype, 3, out);
    ck_assert_int_eq(lab_run(lab, &call, &flex_sort_entries), HOB_OK);
    for (int64_t r = 0; n && r < hob_view_count(&x.view) / n; r++) {
        int64_t first = r / step * step * n + r % step;
        int64_t out_first = r / step * step * out[axis] + r % step;
        sort_naive(in + first, n, step, descending, order);
        for (int64_t i = 0; i < out[axis]; i++) {
            double got =
                lab_get_at(&call.results[0].view, out_first + i * step);
            double wanted = in[first + order[i] * step];
            ck_assert_msg(lab_get_at(&call.results[1].view,
                                     out_first + i * step) == (double)order[i],
                          "%s %s layout %d dim %d: position %d of row %d",
                          call.call.op_name, hob_dtype_name(dtype), layout,
                          (int)dim, (int)i, (int)r);
            ck_assert(lab_near(got, wanted, 0));
            ck_assert_int_eq(signbit(got) != 0, signbit(wanted) != 0);
        }
    }
    free(in);
    free(order);
    fake_call_release(&call);
    lab_tensor_release(&x);
}

START_TEST(test_sort_equals_naive)
{
    struct lab lab;

    ck_assert(lab_open(&lab, 2, NULL));
    for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_U8; dtype++)
        for (int64_t dim = -1; dim < 2; dim++)
            for (int l = 0; l < LAB_LAYOUT_COUNT_; l++) {
                int64_t n = shapes[_i][dim < 0 ? 2 : dim];
                if (_i == SHAPES - 1 && l != LAB_GAPS)
                    continue; /* the naive sort is slow */
                check_sort(&lab, shapes[_i], dim, dtype, (enum lab_layout)l,
                           l % 2, -1);
                check_sort(&lab, shapes[_i], dim, dtype, (enum lab_layout)l, 1,
                           n < 3   ? n
                           : l % 2 ? 3
                                   : n - 1);
                /* The heap with a bound, at the ends of its range. */
                for (int64_t k = 1; n >= 256 && k <= 16; k += 15)
                    check_sort(&lab, shapes[_i], dim, dtype, (enum lab_layout)l,
                               1, k);
            }
    lab_close(&lab);
}
END_TEST

/* The ops with one result agree with those with two. */
START_TEST(test_sort_single_results)
{
    static const char *const names[] = {"sort", "argsort", "topk", "argtopk"};
    const int64_t shape[2] = {5, 40}, taken[2] = {5, 6};
    struct lab lab;
    struct lab_tensor x;
    struct fake_call one, two;
    const int is_topk = _i >= 2;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 2, shape, LAB_REVERSED, -9, 9);
    fake_call_init(&two, &lab.host,
                   is_topk ? "topk_with_indices" : "sort_with_indices");
    fake_call_init(&one, &lab.host, names[_i]);
    for (int i = 0; i < 2; i++) {
        struct fake_call *call = i ? &two : &one;
        fake_call_view(call, &x.view);
        if (is_topk)
            fake_call_value(call, hob_i64(6));
        fake_call_value(call, hob_i64(1));
        if (!is_topk)
            fake_call_value(call, hob_bool(1));
        if (i || _i % 2)
            fake_call_value(call, hob_value_dtype(HOB_DTYPE_I32));
    }
    fake_call_result(&one, _i % 2 ? HOB_DTYPE_I32 : HOB_DTYPE_F32, 2,
                     is_topk ? taken : shape);
    fake_call_result(&two, HOB_DTYPE_F32, 2, is_topk ? taken : shape);
    fake_call_result(&two, HOB_DTYPE_I32, 2, is_topk ? taken : shape);
    ck_assert_int_eq(lab_run(&lab, &one, &flex_sort_entries), HOB_OK);
    ck_assert_int_eq(lab_run(&lab, &two, &flex_sort_entries), HOB_OK);
    ck_assert_mem_eq(one.results[0].view.data, two.results[_i % 2].view.data,
                     (size_t)(4 * hob_view_count(&one.results[0].view)));
    fake_call_release(&one);
    fake_call_release(&two);
    lab_tensor_release(&x);
    lab_close(&lab);
}
END_TEST

START_TEST(test_sort_in_place)
{
    const int64_t n = 100;
    struct lab lab;
    struct lab_tensor x;
    struct fake_call call;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_I32, 1, &n, LAB_CONTIGUOUS, -99, 99);
    fake_call_init(&call, &lab.host, "sort");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_i64(0));
    fake_call_value(&call, hob_bool(0));
    fake_call_result_in_place(&call, 0);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_sort_entries), HOB_OK);
    for (int64_t i = 1; i < n; i++)
        ck_assert(lab_get_at(&x.view, i - 1) <= lab_get_at(&x.view, i));
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_close(&lab);
}
END_TEST

/* 64-bit integers beyond the precision of a double keep their order. */
START_TEST(test_sort_of_large_integers)
{
    const int64_t n = 70;
    struct lab lab;
    struct lab_tensor x;
    struct fake_call call;
    int64_t *p;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_I64, 1, &n, LAB_CONTIGUOUS, 0, 0);
    p = x.view.data;
    for (int64_t i = 0; i < n; i++)
        p[i] = i % 2 ? INT64_MAX - i : INT64_MIN + i;
    fake_call_init(&call, &lab.host, "sort");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_i64(0));
    fake_call_value(&call, hob_bool(0));
    fake_call_result(&call, HOB_DTYPE_I64, 1, &n);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_sort_entries), HOB_OK);
    p = call.results[0].view.data;
    for (int64_t i = 1; i < n; i++)
        ck_assert(p[i - 1] < p[i]);
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sort");
    TCase *tc = tcase_create("sort");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_sort_equals_naive, 0, SHAPES);
    tcase_add_loop_test(tc, test_sort_single_results, 0, 4);
    tcase_add_test(tc, test_sort_in_place);
    tcase_add_test(tc, test_sort_of_large_integers);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
