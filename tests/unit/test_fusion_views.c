/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups with views in the middle: strides of what is read.
 */
#include "fusion_fixture.h"
#include "hob_check.h"
#include "test_device.h"

#include <hob/hob.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Views that part elementwise ops, by ROUND, of which there are ROUNDS: X is
 * [33, 130]. *OUT_OPS is how many ops there are. */
enum { ROUNDS = 14 };

static hob_tensor *across_views(int round, hob_tensor *x, uint32_t *out_ops)
{
    const int64_t with_ones[] = {33, 1, 130, 1}, turned[] = {130, 1, 33};
    const int64_t axes[] = {2, 3, 0, -3}, dims[] = {3, 1, 2};
    const int64_t heads[] = {33, 10, 13}, planes[] = {3, 11, 130};
    const int64_t stack[] = {1, 33, 130};
    const int64_t order[] = {1, 0, 2}, all = 33 * 130;
    hob_tensor *h = hob_mul_scalar(f.scope, hob_exp(f.scope, x), hob_f64(0.25));

    *out_ops = 4;
    switch (round) {
    case 0:
        h = hob_swap_dims(f.scope, h, 0, -1);
        break;
    case 1:
        h = hob_reshape(f.scope, h, with_ones, 4);
        break;
    case 2: /* several views */
        h = hob_permute(f.scope, hob_reshape(f.scope, h, with_ones, 4), axes,
                        4);
        h = hob_squeeze(f.scope, h, dims, 1);
        h = hob_add(
            f.scope, h,
            fusion_numbers(f.scope, hob_tensor_device(x), turned, 3, 9));
        *out_ops = 7;
        break;
    case 3: /* there and back, with something in between */
        h = hob_sub(
            f.scope, hob_swap_dims(f.scope, h, 0, 1),
            fusion_numbers(f.scope, hob_tensor_device(x), turned + 1, 1, 9));
        h = hob_swap_dims(f.scope, hob_relu(f.scope, h), 1, 0);
        *out_ops = 7;
        break;
    case 4:
        h = hob_unsqueeze(f.scope, hob_swap_dims(f.scope, h, 0, 1), 1);
        *out_ops = 5;
        break;
    case 5: /* heads */
        h = hob_reshape(f.scope, h, heads, 3);
        h = hob_add(
            f.scope, hob_permute(f.scope, h, order, 3),
            fusion_numbers(f.scope, hob_tensor_device(x), heads + 2, 1, 9));
        *out_ops = 6;
        break;
    case 6: /* one dimension of two */
        h = hob_reshape(f.scope, h, &all, 1);
        break;
    case 7: /* of a group that is turned, then, and reads another value */
        h = hob_reshape(f.scope, hob_swap_dims(f.scope, h, 0, 1), &all, 1);
        h = hob_mul(f.scope, h,
                    fusion_numbers(f.scope, hob_tensor_device(x), &all, 1, 9));
        *out_ops = 6;
        break;
    case 8:
        h = hob_flip(f.scope, h, dims + 1, 1);
        break;
    case 9: /* every third of some, from the end, and of one row in two */
        h = hob_slice(f.scope, h, (const int64_t[]){1, 5}, 2,
                      (const int64_t[]){INT64_MAX, -7}, 2,
                      (const int64_t[]){2, -3}, 2);
        break;
    case 10: /* one row of three, of eleven */
        h = hob_slice(f.scope, hob_reshape(f.scope, h, planes, 3), dims + 1, 1,
                      dims + 2, 1, NULL, 0);
        h = hob_squeeze(f.scope, h, (const int64_t[]){0}, 1);
        *out_ops = 6;
        break;
    case 11: /* split otherwise than joined */
        h = hob_reshape(f.scope, hob_relu(f.scope, h), planes, 3);
        h = hob_reshape(f.scope, hob_neg(f.scope, h), heads, 3);
        *out_ops = 7;
        break;
    case 12: /* of a value that has more dimensions than its group began with */
        h = hob_add(f.scope, h,
                    fusion_numbers(f.scope, hob_tensor_device(x), stack, 3, 9));
        h = hob_slice(f.scope, h, (const int64_t[]){0, 2, 5}, 3,
                      (const int64_t[]){1, 30, 100}, 3,
                      (const int64_t[]){1, 3, 2}, 3);
        h = hob_squeeze(f.scope, h, (const int64_t[]){0}, 1);
        *out_ops = 6;
        break;
    default: /* a range of a range of a part, turned */
        h = hob_reshape(f.scope, h, heads, 3);
        h = hob_slice(f.scope, h, (const int64_t[]){3, 2, 1}, 3,
                      (const int64_t[]){30, 9, 12}, 3, NULL, 0);
        h = hob_swap_dims(f.scope, h, 0, 2);
        h = hob_slice(f.scope, h, (const int64_t[]){2}, 1, (const int64_t[]){9},
                      1, (const int64_t[]){4}, 1);
        *out_ops = 7;
        break;
    }
    return hob_neg(f.scope, h);
}

/* They are strides of what is read: nothing is computed for them or stored. */
START_TEST(test_fusion_views_are_strides)
{
    double got[BYTES / 4], want[BYTES / 4];
    hob_error error = HOB_ERROR_INIT;
    uint32_t ops;
    hob_tensor *y =
        across_views(_i, fusion_numbers(f.scope, f.lazy, matrix, 2, 1), &ops);
    const int64_t count = hob_tensor_count(y);

    ck_assert_int_gt(count, 0);
    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(f.seen.groups, 1);
    ck_assert_int_eq(f.seen.singles, 0);
    ck_assert_uint_eq(f.seen.ops[0], ops);
    ck_assert_uint_eq(f.seen.values[0], 1);
    ck_assert_uint_eq(f.seen.written[0], 4 * (uint64_t)count);
    ck_assert_hob_ok(hob_read_f64(y, got, count, &error));
    y = across_views(_i, fusion_numbers(f.scope, f.plain, matrix, 2, 1), &ops);
    ck_assert_hob_ok(hob_read_f64(y, want, count, &error));
    ck_assert_mem_eq(got, want, (size_t)count * sizeof(got[0]));
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
        hob_device *device = i ? f.plain : f.lazy;
        hob_tensor *x = fusion_numbers(f.scope, device, square, 2, 1);
        hob_tensor *y = fusion_numbers(f.scope, device, square, 2, 2);
        hob_tensor *h = hob_square(f.scope, x);
        hob_tensor *both = hob_add(f.scope, h, hob_swap_dims(f.scope, h, 0, 1));
        hob_tensor *two = hob_neg(
            f.scope, hob_swap_dims(f.scope, hob_mul(f.scope, x, y), 0, 1));
        hob_tensor *turned = hob_swap_dims(f.scope, hob_tanh(f.scope, y), 0, 1);
        hob_tensor *all = hob_add(
            f.scope, hob_add(f.scope, both, two),
            hob_sub(
                f.scope, hob_mul_scalar(f.scope, turned, hob_f64(3)),
                hob_select(f.scope, x,
                           hob_arange(f.scope, 0, 40, 1, device, HOB_DTYPE_I64),
                           0)));

        ck_assert_hob_ok(hob_read_f64(all, i ? want : got, 1600, &error));
        all = hob_abs(f.scope, turned);
        ck_assert_hob_ok(hob_read_f64(all, i ? want : got, 1600, &error));
        ck_assert_hob_ok(hob_read_f64(both, i ? want : got, 1600, &error));
        ck_assert_hob_ok(hob_read_f64(two, i ? want : got, 1600, &error));
        if (i)
            ck_assert_mem_eq(got, want, sizeof(got));
    }
}
END_TEST

/* What is computed in part is never given out: of a group that no program has
 * room for the ops run one by one, and what is held can be had. */
START_TEST(test_fusion_of_a_range_is_not_split)
{
    enum { VALUES = 12 };
    double got[33 * 13], want[33 * 13], whole[2][BYTES / 4];
    hob_error error = HOB_ERROR_INIT;

    for (int i = 0; i < 2; i++) {
        hob_tensor *x =
            fusion_numbers(f.scope, i ? f.plain : f.lazy, matrix, 2, 1);
        hob_tensor *h = hob_square(f.scope, x), *y[VALUES];

        y[0] = hob_slice(f.scope, h, (const int64_t[]){0, 100}, 2,
                         (const int64_t[]){33, 113}, 2, NULL, 0);
        for (int k = 0; k < VALUES; k++)
            y[k] = hob_add_scalar(f.scope, y[k ? k - 1 : 0], hob_f64(1));
        ck_assert_hob_ok(hob_eval(y, VALUES, &error));
        for (int k = 0; k < VALUES; k++) {
            ck_assert_hob_ok(
                hob_read_f64(y[k], i ? want : got, 33 * 13, &error));
            ck_assert(i == 0 || want[0] >= k);
        }
        ck_assert_hob_ok(hob_read_f64(h, whole[i], BYTES / 4, &error));
    }
    ck_assert_mem_eq(got, want, sizeof(got));
    ck_assert_mem_eq(whole[0], whole[1], sizeof(whole[0]));
}
END_TEST

/* A sum of matrices, seen otherwise, and the sum of that with what is made
 * later: what waits for that is more than what the group saves, but it must
 * stay one, as nobody makes the view. */
static hob_tensor *waiting_view(hob_device *device)
{
    const int64_t heads[] = {33, 10, 13};
    hob_tensor *x = fusion_numbers(f.scope, device, matrix, 2, 3);
    hob_tensor *sums[6], *h;

    for (int i = 0; i < 6; i++)
        sums[i] = hob_cumsum(f.scope,
                             hob_mul_scalar(f.scope, x, hob_f64(0.01 * i)), 0);
    h = sums[0];
    for (int i = 1; i < 6; i++)
        h = hob_add(f.scope, hob_move(f.scope, h), hob_move(f.scope, sums[i]));
    h = hob_reshape(f.scope, hob_move(f.scope, h), heads, 3);
    return hob_add(f.scope, hob_move(f.scope, h),
                   hob_cumsum(f.scope, hob_reshape(f.scope, x, heads, 3), 1));
}

START_TEST(test_fusion_of_a_view_is_not_parted)
{
    hob_tensor *pair[2] = {waiting_view(f.plain), waiting_view(f.lazy)};
    hob_error error = HOB_ERROR_INIT;
    float elements[2][BYTES / 4];
    uint32_t most = 0;

    fusion_forget(&f);
    for (int i = 0; i < 2; i++)
        ck_assert_hob_ok(hob_read(pair[i], elements[i], BYTES, &error));
    ck_assert_mem_eq(elements[0], elements[1], BYTES);
    for (int i = 0; i < f.seen.groups; i++)
        most = f.seen.ops[i] > most ? f.seen.ops[i] : most;
    ck_assert_uint_eq(most, 7); /* all the sums, and what parts them */
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion views");
    TCase *tc = tcase_create("views");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_fusion_views_are_strides, 0, ROUNDS);
    tcase_add_test(tc, test_fusion_views_that_stay);
    tcase_add_test(tc, test_fusion_of_a_range_is_not_split);
    tcase_add_test(tc, test_fusion_of_a_view_is_not_parted);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
