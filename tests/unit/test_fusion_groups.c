/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of ops that fusion runs as one kernel: that there are some, and what
 * they store and save.
 */
#include "fusion_fixture.h"
#include "hob_check.h"
#include "test_device.h"

#include <hob/hob.h>

#include <math.h>
#include <stddef.h>
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

/* ---- what is one kernel ---- */

START_TEST(test_fusion_chain_is_one_kernel)
{
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, matrix, 2, 1);
    hob_tensor *y = hob_exp(f.scope, hob_neg(f.scope, hob_square(f.scope, x)));
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_str_eq(f.seen.name[0], "square+neg+exp");
    ck_assert_uint_eq(f.seen.ops[0], 3);
    ck_assert_uint_eq(f.seen.inputs[0], 1);
    ck_assert_uint_eq(f.seen.values[0], 1);
    ck_assert_uint_eq(f.seen.why[0], HOB_FUSION_ASKED);
    ck_assert_uint_eq(f.seen.read[0], BYTES);
    ck_assert_uint_eq(f.seen.written[0], BYTES);
    ck_assert_uint_eq(f.seen.saved[0], 4 * BYTES); /* two written and read */
}
END_TEST

START_TEST(test_fusion_lone_ops_run_as_they_are)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, matrix, 2, 1);
    hob_tensor *y = hob_exp(f.scope, hob_swap_dims(f.scope, x, 0, 1));

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(f.seen.groups, 0);
    ck_assert_int_eq(f.seen.singles, 1); /* a view of what is there is no op */
}
END_TEST

/* Two results and a dear op between: nothing is computed twice. */
START_TEST(test_fusion_stores_what_others_read)
{
    hob_error error = HOB_ERROR_INIT;
    const int64_t square[] = {40, 40};
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, square, 2, 1);
    hob_tensor *h = hob_relu(f.scope, hob_add_scalar(f.scope, x, hob_f64(0.5)));
    hob_tensor *m = hob_matmul(f.scope, h, h);
    hob_tensor *y[2];

    y[0] = hob_tanh(f.scope, hob_mul(f.scope, m, h));
    y[1] = hob_add(f.scope, m, m);
    ck_assert_hob_ok(hob_eval(y, 2, &error));
    ck_assert_int_eq(f.seen.groups, 2);
    ck_assert_int_eq(f.seen.singles, 1); /* the product */
    ck_assert_str_eq(f.seen.name[0], "add_scalar+relu");
    ck_assert_uint_eq(f.seen.why[0], HOB_FUSION_READ);
    ck_assert_uint_eq(f.seen.values[1], 2);
    ck_assert_uint_eq(f.seen.inputs[1], 2);
}
END_TEST

START_TEST(test_fusion_constants_are_no_tensors)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, matrix, 2, 1);
    hob_tensor *two =
        hob_full(f.scope, matrix, 2, hob_i64(2), f.lazy, HOB_DTYPE_F32);
    hob_tensor *y = hob_mul(f.scope, x, two);

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_uint_eq(f.seen.read[0], BYTES + 4);
}
END_TEST

/* Nor where there is nothing else to read. */
START_TEST(test_fusion_constants_alone)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *two =
        hob_full(f.scope, matrix, 2, hob_i64(2), f.lazy, HOB_DTYPE_F32);
    hob_tensor *one = hob_ones(f.scope, matrix, 2, f.lazy, HOB_DTYPE_F32);
    hob_tensor *y = hob_sub(f.scope, hob_mul(f.scope, two, two), one);
    double data[BYTES / 4];

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_uint_eq(f.seen.ops[0], 2);
    ck_assert_uint_eq(f.seen.read[0], 8);
    ck_assert_uint_eq(f.seen.written[0], BYTES);
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
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, matrix, 2, 1);
    hob_tensor *held = hob_square(f.scope, x);
    hob_tensor *y = hob_exp(f.scope, held);
    hob_tensor *z = hob_log1p(f.scope, held);
    hob_tensor *w = hob_sqrt(f.scope, held);
    struct hob_fusion_stats report = HOB_FUSION_STATS_INIT;

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    ck_assert_uint_eq(f.seen.values[0], 2); /* z and w read it, too */
    fusion_forget(&f);
    ck_assert_hob_ok(hob_eval(&z, 1, &error));
    ck_assert_int_eq(f.seen.groups, 0);
    ck_assert_hob_ok(hob_eval(&w, 1, &error));
    fusion_forget(&f);
    held = hob_square(f.scope, x);
    y = hob_exp(f.scope, held);
    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_uint_eq(f.seen.values[0], 1);
    z = hob_neg(f.scope, held);
    ck_assert_hob_ok(hob_eval(&z, 1, &error));
    ck_assert_int_eq(f.seen.groups, 2);
    ck_assert_uint_eq(f.seen.values[1], 2);
    fusion_forget(&f);
    w = hob_abs(f.scope, held);
    ck_assert_hob_ok(hob_eval(&w, 1, &error));
    ck_assert_int_eq(f.seen.groups, 0); /* abs alone */
    ck_assert_hob_ok(hob_fusion_report(f.lazy, &report, &error));
    ck_assert_uint_eq(report.weak, 1);
    ck_assert_uint_ge(report.programs, 2);
    ck_assert_uint_eq(report.declined, 0);
}
END_TEST

START_TEST(test_fusion_writes_over_what_is_dead)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *slot = NULL;

    hob_assign(f.scope, &slot, fusion_numbers(f.scope, f.lazy, matrix, 2, 1));
    for (int i = 0; i < 2; i++) {
        hob_scope *step = hob_scope_child(f.scope);

        hob_assign(f.scope, &slot,
                   hob_mul_scalar(step, hob_add_scalar(step, slot, hob_i64(1)),
                                  hob_f64(0.5)));
        hob_scope_close(step);
    }
    ck_assert_int_eq(f.seen.groups, 2);
    ck_assert_uint_eq(f.seen.in_place[1], 1);
    ck_assert_hob_ok(hob_eval(&slot, 1, &error));
}
END_TEST

START_TEST(test_fusion_programs_are_found_again)
{
    hob_error error = HOB_ERROR_INIT;
    struct hob_fusion_stats report = HOB_FUSION_STATS_INIT;

    for (int64_t i = 1; i < 9; i++) {
        const int64_t shape[] = {10 * i};
        hob_tensor *x = fusion_numbers(f.scope, f.lazy, shape, 1, 3);

        x = hob_exp(f.scope, hob_mul_scalar(f.scope, x, hob_i64(i)));
        ck_assert_hob_ok(hob_eval(&x, 1, &error));
    }
    ck_assert_hob_ok(hob_fusion_report(f.lazy, &report, &error));
    ck_assert_uint_eq(report.groups, 8);
    ck_assert_uint_eq(report.programs, 1); /* of all sizes and numbers */
    ck_assert_uint_eq(report.program_hits, 7);
    ck_assert_int_eq(hob_fusion_report(f.plain, &report, &error),
                     HOB_ERR_DEVICE);
    hob_error_release(&error);
}
END_TEST

/* Programs of other versions know more of a report than we do, or less. */
START_TEST(test_fusion_report_has_the_size_that_is_asked)
{
    struct {
        struct hob_fusion_stats stats;
        uint64_t more;
    } larger = {.more = 1};
    struct hob_fusion_stats shorter;
    hob_error error = HOB_ERROR_INIT;

    larger.stats.struct_size = sizeof(larger);
    ck_assert_hob_ok(hob_fusion_report(f.lazy, &larger.stats, &error));
    ck_assert_uint_eq(larger.stats.struct_size, sizeof(larger));
    ck_assert_uint_eq(larger.more, 0);
    memset(&shorter, 0x5a, sizeof(shorter));
    shorter.struct_size = offsetof(struct hob_fusion_stats, groups);
    ck_assert_hob_ok(hob_fusion_report(f.lazy, &shorter, &error));
    ck_assert_uint_eq(shorter.recorded, larger.stats.recorded);
    ck_assert_uint_eq(shorter.groups, UINT64_C(0x5a5a5a5a5a5a5a5a));
    shorter.struct_size = 0;
    ck_assert_hob_fails(hob_fusion_report(f.lazy, &shorter, &error),
                        HOB_ERR_ARGUMENT, "HOB_FUSION_STATS_INIT");
}
END_TEST

/* a and b go through ops that are no group's, and meet crosswise: no group may
 * need what needs itself, also where one has taken in another. */
START_TEST(test_fusion_groups_form_no_circle)
{
    const int64_t three = 3;
    const double expected[3] = {60, 105, 162};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *a, *b, *c, *left, *right, *rows, *s, *t;
    double got[3];

    rows = hob_arange(f.scope, 0, 3, 1, f.lazy, HOB_DTYPE_I64);
    a = hob_neg(f.scope, hob_from_f64(f.scope, f.lazy,
                                      (const double[]){1, 2, 3}, &three, 1));
    s = hob_select(f.scope, a, rows, 0);
    b = hob_neg(f.scope, hob_from_f64(f.scope, f.lazy,
                                      (const double[]){4, 5, 6}, &three, 1));
    t = hob_select(f.scope, b, rows, 0);
    c = hob_neg(f.scope, hob_from_f64(f.scope, f.lazy,
                                      (const double[]){7, 8, 9}, &three, 1));
    left = hob_add(f.scope, hob_add(f.scope, b, c), s);
    right = hob_add(f.scope, t, a);
    ck_assert_hob_ok(
        hob_read_f64(hob_mul(f.scope, left, right), got, 3, &error));
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
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, matrix, 2, 1);
    hob_tensor *y[VALUES];
    struct hob_fusion_stats report = HOB_FUSION_STATS_INIT;

    for (int i = 0; i < VALUES; i++)
        y[i] = hob_add_scalar(f.scope, i ? y[i - 1] : x, hob_f64(1));
    ck_assert_hob_ok(hob_eval(y, VALUES, &error));
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_int_eq(f.seen.groups, 4);
    for (int i = 0; i < f.seen.groups; i++)
        ck_assert_uint_eq(f.seen.values[i], f.seen.ops[i]);
    ck_assert_hob_ok(hob_fusion_report(f.lazy, &report, &error));
    ck_assert_uint_eq(report.declined, 0);
    for (int i = 0; i < VALUES; i++)
        check_scaled(y[i], x, 1, i + 1);
}
END_TEST

/* Two numbers each: 64 fit a program. What others read is stored as well. */
START_TEST(test_fusion_splits_many_numbers)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = fusion_numbers(f.scope, f.lazy, matrix, 2, 1);
    hob_tensor *y = x;
    hob_tensor *first = NULL;

    for (int i = 0; i < 2 * VALUES; i++) {
        y = hob_clamp(f.scope, y, hob_f64(-100 - i), hob_f64(100 + i));
        if (!i)
            first = y;
    }
    y = hob_add(f.scope, y, first);
    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_int_ge(f.seen.groups, 2);
    check_scaled(y, x, 2, 0);
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
    tcase_add_test(tc, test_fusion_lone_ops_run_as_they_are);
    tcase_add_test(tc, test_fusion_stores_what_others_read);
    tcase_add_test(tc, test_fusion_constants_are_no_tensors);
    tcase_add_test(tc, test_fusion_constants_alone);
    tcase_add_test(tc, test_fusion_computes_nothing_more_than_twice);
    tcase_add_test(tc, test_fusion_writes_over_what_is_dead);
    tcase_add_test(tc, test_fusion_programs_are_found_again);
    tcase_add_test(tc, test_fusion_report_has_the_size_that_is_asked);
    tcase_add_test(tc, test_fusion_groups_form_no_circle);
    tcase_add_test(tc, test_fusion_splits_many_values);
    tcase_add_test(tc, test_fusion_splits_many_numbers);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
