/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sgd_step, and adam_step against algorithm 1 of Kingma and Ba in f64. f32
 * agrees to a few units of the last place, halves to one rounding of each
 * stream.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

static const uint32_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                  HOB_DTYPE_BF16};
static const double tolerances[] = {1e-6, 1e-14, 1e-3, 8e-3};

static void check_step(struct lab *lab, int d, int64_t n, int in_place,
                       enum lab_layout layout, int64_t step)
{
    const double lr = 0.1, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
    const double decay = step % 2 ? 0.01 : 0;
    const int64_t shape[2] = {n, 3};
    struct lab_tensor in[4];
    double *before[4];
    struct fake_call call;

    fake_call_init(&call, &lab->host, "adam_step");
    for (int i = 0; i < 4; i++) {
        lab_tensor_init(lab, &in[i], dtypes[d], 2, shape,
                        in_place && i != 1 ? LAB_CONTIGUOUS : layout,
                        i == 3 ? 1 : -8, 8); /* v far from epsilon */
        before[i] = lab_dense(&in[i].view);
        fake_call_view(&call, &in[i].view);
    }
    fake_call_value(&call, hob_i64(step));
    fake_call_value(&call, hob_f64(lr));
    fake_call_value(&call, hob_f64(beta1));
    fake_call_value(&call, hob_f64(beta2));
    fake_call_value(&call, hob_f64(epsilon));
    fake_call_value(&call, hob_f64(decay));
    for (int i = 0; i < 3; i++) {
        static const uint32_t from[] = {0, 2, 3};
        if (in_place)
            fake_call_result_in_place(&call, from[i]);
        else
            fake_call_result(&call, dtypes[d], 2, shape);
    }
    ck_assert_int_eq(lab_run(lab, &call, &flex_optim_entries), HOB_OK);
    for (int64_t i = 0; i < 3 * n; i++) {
        double g = before[1][i];
        double m = beta1 * before[2][i] + (1 - beta1) * g;
        double v = beta2 * before[3][i] + (1 - beta2) * g * g;
        double m_hat = m / (1 - pow(beta1, (double)step));
        double v_hat = v / (1 - pow(beta2, (double)step));
        double p = before[0][i] * (1 - lr * decay) -
                   lr * m_hat / (sqrt(v_hat) + epsilon);
        ck_assert_msg(
            lab_near(lab_get_at(&call.results[0].view, i), p, tolerances[d]),
            "%s: %.9g, not %.9g", hob_dtype_name(dtypes[d]),
            lab_get_at(&call.results[0].view, i), p);
        ck_assert(
            lab_near(lab_get_at(&call.results[1].view, i), m, tolerances[d]));
        ck_assert(
            lab_near(lab_get_at(&call.results[2].view, i), v, tolerances[d]));
    }
    fake_call_release(&call);
    for (int i = 0; i < 4; i++) {
        free(before[i]);
        lab_tensor_release(&in[i]);
    }
}

/* IN_PLACE: 1 over the parameter, 2 over the gradient, which is one of the
 * same dtype, shape and layout. */
static void check_sgd(struct lab *lab, int d, int64_t n, int in_place,
                      enum lab_layout layout, double decay)
{
    const double lr = 0.1;
    const int64_t shape[2] = {n, 3};
    struct lab_tensor in[2];
    double *before[2];
    struct fake_call call;

    fake_call_init(&call, &lab->host, "sgd_step");
    for (int i = 0; i < 2; i++) {
        lab_tensor_init(lab, &in[i], dtypes[d], 2, shape,
                        in_place == i + 1 ? LAB_CONTIGUOUS : layout, -8, 8);
        before[i] = lab_dense(&in[i].view);
        fake_call_view(&call, &in[i].view);
    }
    fake_call_value(&call, hob_f64(lr));
    fake_call_value(&call, hob_f64(decay));
    if (in_place)
        fake_call_result_in_place(&call, (uint32_t)in_place - 1);
    else
        fake_call_result(&call, dtypes[d], 2, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_optim_entries), HOB_OK);
    for (int64_t i = 0; i < 3 * n; i++) {
        double p = before[0][i] - lr * (before[1][i] + decay * before[0][i]);

        ck_assert_msg(
            lab_near(lab_get_at(&call.results[0].view, i), p, tolerances[d]),
            "%s: %.9g, not %.9g", hob_dtype_name(dtypes[d]),
            lab_get_at(&call.results[0].view, i), p);
    }
    fake_call_release(&call);
    for (int i = 0; i < 2; i++) {
        free(before[i]);
        lab_tensor_release(&in[i]);
    }
}

START_TEST(test_sgd_step_equals_f64)
{
    static const int64_t counts[] = {0, 1, 5, 341, 1000, 90000};

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++)
            for (int in_place = 0; in_place < 3; in_place++) {
                if (counts[_i] == 90000 && (d != 0 || isa < 2))
                    continue;
                check_sgd(&lab, d, counts[_i], in_place, LAB_CONTIGUOUS, 0);
                check_sgd(&lab, d, counts[_i], in_place, LAB_TRANSPOSED, 0.01);
            }
        lab_close(&lab);
    }
}
END_TEST

START_TEST(test_adam_step_equals_f64)
{
    static const int64_t counts[] = {0, 1, 5, 341, 1000, 40000};

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++)
            for (int in_place = 0; in_place < 2; in_place++) {
                if (counts[_i] == 40000 && (d != 0 || isa < 2))
                    continue;
                check_step(&lab, d, counts[_i], in_place, LAB_CONTIGUOUS, 1);
                check_step(&lab, d, counts[_i], in_place, LAB_TRANSPOSED, 7);
            }
        lab_close(&lab);
    }
}
END_TEST

/* A gradient of 0 and moments M and V that few steps would make denormal: both
 * are 0 then, the parameter is what it was, unless EPSILON is so small that
 * they count. */
static void check_decayed(struct lab *lab, int d, double m, double v,
                          double epsilon, int is_dropped)
{
    const double values[4] = {1, 0, m, v}, beta1 = 0.9, beta2 = 0.999;
    const int64_t shape[1] = {19};
    struct lab_tensor in[4];
    struct fake_call call;

    fake_call_init(&call, &lab->host, "adam_step");
    for (int i = 0; i < 4; i++) {
        lab_tensor_init(lab, &in[i], dtypes[d], 1, shape, LAB_CONTIGUOUS, 0, 0);
        for (int64_t k = 0; k < shape[0]; k++)
            lab_set_at(&in[i].view, k, values[i]);
        fake_call_view(&call, &in[i].view);
    }
    fake_call_value(&call, hob_i64(1000));
    fake_call_value(&call, hob_f64(0.1));
    fake_call_value(&call, hob_f64(beta1));
    fake_call_value(&call, hob_f64(beta2));
    fake_call_value(&call, hob_f64(epsilon));
    fake_call_value(&call, hob_f64(0));
    for (int i = 0; i < 3; i++)
        fake_call_result(&call, dtypes[d], 1, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_optim_entries), HOB_OK);
    for (int64_t i = 0; i < shape[0]; i++) {
        const double got[3] = {lab_get_at(&call.results[0].view, i),
                               lab_get_at(&call.results[1].view, i),
                               lab_get_at(&call.results[2].view, i)};

        if (is_dropped) {
            ck_assert(got[0] == 1);
            ck_assert(got[1] == 0);
            ck_assert(got[2] == 0);
        } else if (isnan(m)) {
            ck_assert(isnan(got[0]) && isnan(got[1]));
        } else {
            ck_assert(fabs(got[1] - beta1 * m) <= 1e-6 * fabs(m) + 2e-45);
            ck_assert(fabs(got[2] - beta2 * v) <= 1e-6 * v + 2e-45);
        }
    }
    fake_call_release(&call);
    for (int i = 0; i < 4; i++)
        lab_tensor_release(&in[i]);
}

START_TEST(test_adam_step_keeps_nothing_denormal)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        check_decayed(&lab, 0, 1.2e-38, 1.2e-38, 1e-8, 1);
        check_decayed(&lab, 0, -1e-44, 1e-40, 1e-8, 1);
        check_decayed(&lab, 0, 1e-30, 1e-30, 1e-8, 0);
        check_decayed(&lab, 0, NAN, 1e-30, 1e-8, 0);
        check_decayed(&lab, 0, -1e-39, 1e-40, 0, 0);
        check_decayed(&lab, 0, 1e-36, 1e-37, 1e-12, 0);
        check_decayed(&lab, 1, 1e-308, -0.0, 1e-8, 1);
        check_decayed(&lab, 1, 1e-300, 1e-300, 1e-8, 0);
        lab_close(&lab);
    }
}
END_TEST

/* A gradient whose square is infinite leaves the parameter alone; one that is
 * infinite or NaN makes it NaN. The neighbours are what they are without it,
 * and an element is the same number in every place. */
START_TEST(test_adam_step_of_extremes)
{
    static const double extremes[] = {3e38, -1e25, INFINITY, NAN};
    const int64_t shape[1] = {37};

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        struct lab_tensor in[4];
        struct fake_call call;
        double usual = 0;

        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        fake_call_init(&call, &lab.host, "adam_step");
        for (int i = 0; i < 4; i++) {
            lab_tensor_init(&lab, &in[i], HOB_DTYPE_F32, 1, shape,
                            LAB_CONTIGUOUS, 0, 0);
            for (int64_t k = 0; k < shape[0]; k++)
                lab_set_at(&in[i].view, k, i ? 0.7 : 1);
            fake_call_view(&call, &in[i].view);
        }
        for (int k = 0; k < 4; k++)
            lab_set_at(&in[1].view, 9 * k, extremes[k]);
        fake_call_value(&call, hob_i64(3));
        fake_call_value(&call, hob_f64(0.1));
        fake_call_value(&call, hob_f64(0.9));
        fake_call_value(&call, hob_f64(0.999));
        fake_call_value(&call, hob_f64(1e-8));
        fake_call_value(&call, hob_f64(0));
        for (int i = 0; i < 3; i++)
            fake_call_result(&call, HOB_DTYPE_F32, 1, shape);
        ck_assert_int_eq(lab_run(&lab, &call, &flex_optim_entries), HOB_OK);
        usual = lab_get_at(&call.results[0].view, 1);
        ck_assert(fabs(usual - 1) > 0.01);
        for (int64_t k = 0; k < shape[0]; k++) {
            const double got = lab_get_at(&call.results[0].view, k);

            if (k % 9)
                ck_assert(got == usual);
            else if (k < 18)
                ck_assert(got == 1);
            else if (k < 36)
                ck_assert(isnan(got));
        }
        fake_call_release(&call);
        for (int i = 0; i < 4; i++)
            lab_tensor_release(&in[i]);
        lab_close(&lab);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("optim");
    TCase *tc = tcase_create("optim");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_sgd_step_equals_f64, 0, 6);
    tcase_add_loop_test(tc, test_adam_step_equals_f64, 0, 6);
    tcase_add_test(tc, test_adam_step_keeps_nothing_denormal);
    tcase_add_test(tc, test_adam_step_of_extremes);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
