/* SPDX-License-Identifier: Apache-2.0 */
#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

/* Each loop test opens its own device; a missing one leaves nothing to do. */
static int on_device(int which)
{
    op_fixture_open(&f, which);
    return f.device != NULL;
}

enum { COUNT_OF_SPECIALS = 38 };
static const double specials[COUNT_OF_SPECIALS] = {
    0.0,    -0.0,    1e-300, -1e-300,  1e-30,     -1e-30,  1e-8, -1e-8,
    1e-4,   -1e-4,   0.25,   -0.25,    0.5,       -0.5,    0.75, -0.75,
    0.9999, -0.9999, 1.0,    -1.0,     1.0001,    -1.0001, 1.5,  -1.5,
    2.5,    -2.5,    3.5,    -3.5,     10.25,     -10.25,  50.0, -50.0,
    1e6,    -1e6,    1e15,   INFINITY, -INFINITY, NAN};

static double negative(double x)
{
    return -x;
}

static double reciprocal(double x)
{
    return 1 / x;
}

static double sign_of(double x)
{
    return (x > 0) - (x < 0);
}

static double squared(double x)
{
    return x * x;
}

static double relu_of(double x)
{
    return x <= 0 ? 0 : x;
}

static double sigmoid_of(double x)
{
    return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x));
}

static double gelu_of(double x)
{
    return x == -INFINITY ? -0.0 : x * (0.5 * (1 + erf(x * M_SQRT1_2)));
}

typedef hob_tensor *(*unary_fn)(hob_scope *, hob_tensor *);

/* SIGNED zeros are part of what the op promises. */
static const struct unary {
    const char *name;
    unary_fn op;
    double (*truth)(double);
    int signed_zero;
} unaries[] = {
    {"neg", hob_neg, negative, 1},
    {"abs", hob_abs, fabs, 1},
    {"sign", hob_sign, sign_of, 1},
    {"square", hob_square, squared, 0},
    {"recip", hob_recip, reciprocal, 1},
    {"sqrt", hob_sqrt, sqrt, 1},
    {"exp", hob_exp, exp, 0},
    {"log", hob_log, log, 0},
    {"log1p", hob_log1p, log1p, 1},
    {"erf", hob_erf, erf, 0},
    {"tanh", hob_tanh, tanh, 0},
    {"sin", hob_sin, sin, 0},
    {"cos", hob_cos, cos, 0},
    {"sinh", hob_sinh, sinh, 0},
    {"cosh", hob_cosh, cosh, 0},
    {"asin", hob_asin, asin, 0},
    {"acos", hob_acos, acos, 0},
    {"atan", hob_atan, atan, 0},
    {"asinh", hob_asinh, asinh, 1},
    {"acosh", hob_acosh, acosh, 0},
    {"atanh", hob_atanh, atanh, 1},
    {"floor", hob_floor, floor, 1},
    {"ceil", hob_ceil, ceil, 1},
    {"round", hob_round, nearbyint, 1},
    {"trunc", hob_trunc, trunc, 1},
    {"relu", hob_relu, relu_of, 0},
    {"gelu", hob_gelu, gelu_of, 0},
    {"sigmoid", hob_sigmoid, sigmoid_of, 0},
};

/*
 * In each float dtype, on inputs rounded to it. The bound is some units in
 * the last place, relative beyond 1 and absolute below; f16 and bf16 are
 * computed in f32 and rounded once.
 */
static void check_unary(const struct unary *unary, hob_dtype dtype,
                        double bound, double limit)
{
    double in[COUNT_OF_SPECIALS], expected[COUNT_OF_SPECIALS];
    double got[COUNT_OF_SPECIALS];
    char what[64];
    hob_tensor *x = op_vector(&f, dtype, specials, COUNT_OF_SPECIALS);
    hob_tensor *y = unary->op(f.scope, x);

    snprintf(what, sizeof(what), "%s %s", unary->name, hob_dtype_name(dtype));
    op_read(&f, x, in, COUNT_OF_SPECIALS);
    op_read(&f, y, got, COUNT_OF_SPECIALS);
    for (int i = 0; i < COUNT_OF_SPECIALS; i++) {
        expected[i] = unary->truth(in[i]);
        /* Beyond the dtype the result is infinite. */
        if (fabs(expected[i]) > limit)
            expected[i] = copysign(INFINITY, expected[i]);
        if (unary->signed_zero && expected[i] == 0 && got[i] == 0)
            ck_assert_msg(!signbit(expected[i]) == !signbit(got[i]),
                          "%s of %g: the sign of zero", what, in[i]);
    }
    op_check(&f, what, y, expected, COUNT_OF_SPECIALS, bound);
}

START_TEST(test_bodies_unary_functions)
{
    if (!on_device(_i))
        return;
    for (size_t i = 0; i < sizeof(unaries) / sizeof(unaries[0]); i++) {
        check_unary(&unaries[i], HOB_DTYPE_F64, 4e-15, 1.7976931348623157e308);
        check_unary(&unaries[i], HOB_DTYPE_F32, 1e-6, 3.4028235677973366e38);
        check_unary(&unaries[i], HOB_DTYPE_F16, 1e-3, 65519);
        check_unary(&unaries[i], HOB_DTYPE_BF16, 8e-3, 3.39e38);
    }
}
END_TEST

START_TEST(test_bodies_keep_small_numbers_accurate)
{
    /* Relative here: near 0 these cancel if composed carelessly. */
    static const struct unary accurate[] = {
        {"log1p", hob_log1p, log1p, 0},
        {"sinh", hob_sinh, sinh, 0},
        {"asinh", hob_asinh, asinh, 0},
        {"atanh", hob_atanh, atanh, 0},
        {"asin", hob_asin, asin, 0},
        {"tan", hob_tan, tan, 0},
        {"sigmoid", hob_sigmoid, sigmoid_of, 0}};
    double x[] = {1e-12, -1e-12, 1e-7, -1e-7, 1e-3, -1e-3, 0.1, -0.1, 0.4};

    if (!on_device(_i))
        return;
    for (size_t k = 0; k < sizeof(accurate) / sizeof(accurate[0]); k++) {
        double got[9];
        op_read(&f, accurate[k].op(f.scope, op_vector(&f, HOB_DTYPE_F64, x, 9)),
                got, 9);
        for (int i = 0; i < 9; i++) {
            double e = accurate[k].truth(x[i]);
            ck_assert_msg(fabs(got[i] - e) <= 4e-15 * fabs(e),
                          "%s(%g) is %.17g, not %.17g", accurate[k].name, x[i],
                          got[i], e);
        }
    }
}
END_TEST

START_TEST(test_bodies_binary_functions_on_all_pairs)
{
    enum { N = COUNT_OF_SPECIALS };
    static double most[N * N], least[N * N], length[N * N], less[N * N];
    static double greater_equal[N * N], differs[N * N];
    int64_t column[] = {N, 1};
    hob_tensor *a, *b;

    if (!on_device(_i))
        return;
    a = op_tensor(&f, HOB_DTYPE_F64, specials, column, 2);
    b = op_vector(&f, HOB_DTYPE_F64, specials, N);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            double x = specials[i], y = specials[j];
            int nan = isnan(x) || isnan(y);
            most[i * N + j] = nan ? NAN : x > y ? x : y;
            least[i * N + j] = nan ? NAN : x < y ? x : y;
            length[i * N + j] = hypot(x, y);
            less[i * N + j] = x < y;
            greater_equal[i * N + j] = x >= y;
            differs[i * N + j] = x != y;
        }
    op_check(&f, "maximum", hob_maximum(f.scope, a, b), most, N * N, 0);
    op_check(&f, "minimum", hob_minimum(f.scope, a, b), least, N * N, 0);
    op_check(&f, "hypot", hob_hypot(f.scope, a, b), length, N * N, 4e-15);
    op_check(&f, "less", hob_less(f.scope, a, b), less, N * N, 0);
    op_check(&f, "greater_equal", hob_greater_equal(f.scope, a, b),
             greater_equal, N * N, 0);
    op_check(&f, "not_equal", hob_not_equal(f.scope, a, b), differs, N * N, 0);
}
END_TEST

START_TEST(test_bodies_scalars_and_clamp)
{
    double x[] = {-2, -1, 0, 1, 2, 3, NAN}, y[7];
    hob_tensor *t;

    if (!on_device(_i))
        return;
    t = op_vector(&f, HOB_DTYPE_F32, x, 7);
    for (int i = 0; i < 7; i++)
        y[i] = 5 - x[i];
    op_check(&f, "rsub", hob_rsub_scalar(f.scope, t, hob_i64(5)), y, 7, 0);
    for (int i = 0; i < 7; i++)
        y[i] = pow(x[i], -2);
    op_check(&f, "pow -2", hob_pow_scalar(f.scope, t, hob_i64(-2)), y, 7, 1e-6);
    for (int i = 0; i < 7; i++)
        y[i] = 1;
    op_check(&f, "pow 0", hob_pow_scalar(f.scope, t, hob_f64(0)), y, 7, 0);
    for (int i = 0; i < 7; i++)
        y[i] = x[i] < -1 ? -1 : x[i] > 2 ? 2 : x[i];
    op_check(&f, "clamp", hob_clamp(f.scope, t, hob_i64(-1), hob_i64(2)), y, 7,
             0);
    for (int i = 0; i < 6; i++)
        y[i] = 4; /* min wins */
    y[6] = NAN;
    op_check(&f, "clamp crossed", hob_clamp(f.scope, t, hob_i64(4), hob_i64(1)),
             y, 7, 0);
    op_check(&f, "clamp open", hob_clamp(f.scope, t, hob_none(), hob_none()), x,
             7, 0);
}
END_TEST

/* N wrapped to the width of DTYPE, as a double. */
static double wrap(uint64_t n, hob_dtype dtype)
{
    uint32_t bits = 8 * hob_dtype_size(dtype);
    uint64_t low = bits < 64 ? n & ((UINT64_C(1) << bits) - 1) : n;

    if (!(HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED) || !(low >> (bits - 1)))
        return (double)low;
    return -(double)((bits < 64 ? UINT64_C(1) << bits : 0) - low);
}

static void check_integers(hob_dtype dtype)
{
    enum { N = 6 };
    uint32_t bits = 8 * hob_dtype_size(dtype);
    int is_signed = (HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED) != 0;
    int64_t numbers[N] = {0, 1, 5, 100, -1, 0}, column[] = {N, 1};
    double either[N * N], one[N * N], not [N], sign[N], x[N];
    hob_tensor *a, *b;

    /* The least signed number; as an unsigned one, the upper half. In f64 all
     * of these are exact up to 53 bits: -1 of u64 is left out. */
    numbers[5] = (int64_t)(UINT64_C(1) << (bits - 1));
    if (bits == 64 && !is_signed)
        numbers[4] = 7;
    for (int i = 0; i < N; i++)
        x[i] = wrap((uint64_t)numbers[i], dtype);
    a = op_tensor(&f, dtype, x, column, 2);
    b = op_vector(&f, dtype, x, N);
    for (int i = 0; i < N; i++) {
        not [i] = wrap(~(uint64_t)numbers[i], dtype);
        sign[i] = sign_of(x[i]);
        for (int j = 0; j < N; j++) {
            either[i * N + j] =
                wrap((uint64_t)numbers[i] | (uint64_t)numbers[j], dtype);
            one[i * N + j] =
                wrap((uint64_t)numbers[i] ^ (uint64_t)numbers[j], dtype);
        }
    }
    op_check(&f, "or", hob_bitwise_or(f.scope, a, b), either, N * N, 0);
    op_check(&f, "xor", hob_bitwise_xor(f.scope, a, b), one, N * N, 0);
    op_check(&f, "sign", hob_sign(f.scope, b), sign, N, 0);
    op_check(&f, "not", hob_bitwise_not(f.scope, b), not, N, 0);
    for (int i = 0; i < N; i++)
        not [i] = wrap(0 - (uint64_t)numbers[i], dtype);
    op_check(&f, "neg", hob_neg(f.scope, b), not, N, 0);
    for (int i = 0; is_signed && i < N; i++)
        not [i] = x[i] < 0 ? wrap(0 - (uint64_t)numbers[i], dtype) : x[i];
    op_check(&f, "abs", hob_abs(f.scope, b), is_signed ? not : x, N, 0);
    not [0] = is_signed ? 5 : 0;
    op_check(&f, "argmin", hob_argmin(f.scope, b, 0, HOB_DTYPE_NONE), not, 1,
             0);
    not [0] = x[is_signed ? 5 : 0];
    op_check(&f, "min", hob_min(f.scope, b), not, 1, 0);
}

START_TEST(test_bodies_integers_wrap_at_their_width)
{
    if (!on_device(_i))
        return;
    for (int dtype = HOB_DTYPE_I64; dtype <= HOB_DTYPE_U8; dtype++)
        check_integers((hob_dtype)dtype);
}
END_TEST

START_TEST(test_bodies_logic_is_that_of_c)
{
    double x[] = {0, 0, 1, 1}, y[] = {0, 1, 0, 1};
    double both[] = {0, 0, 0, 1}, either[] = {0, 1, 1, 1}, one[] = {0, 1, 1, 0};
    double not [] = {1, 1, 0, 0};
    hob_tensor *a, *b;

    if (!on_device(_i))
        return;
    a = op_vector(&f, HOB_DTYPE_BOOL, x, 4);
    b = op_vector(&f, HOB_DTYPE_BOOL, y, 4);
    op_check(&f, "and", hob_logical_and(f.scope, a, b), both, 4, 0);
    op_check(&f, "or", hob_logical_or(f.scope, a, b), either, 4, 0);
    op_check(&f, "xor", hob_logical_xor(f.scope, a, b), one, 4, 0);
    op_check(&f, "not", hob_logical_not(f.scope, a), not, 4, 0);
    op_check(&f, "mask_fill",
             hob_mask_fill(f.scope, op_vector(&f, HOB_DTYPE_I32, x, 4), a,
                           hob_i64(-7)),
             (double[]){0, 0, -7, -7}, 4, 0);
}
END_TEST

START_TEST(test_bodies_reductions_of_wide_and_empty)
{
    static double x[1024];
    double y[4] = {NAN, 0, 3, -1}, wide[] = {100, 100, 100, 103};
    int64_t empty[] = {3, 0};
    hob_tensor *none, *t;

    if (!on_device(_i))
        return;
    for (int i = 0; i < 1024; i++)
        x[i] = i;
    op_check(&f, "mean f16",
             hob_mean(f.scope, op_vector(&f, HOB_DTYPE_F16, x, 1024)),
             (double[]){511.5}, 1, 0);
    op_check(&f, "mean i8",
             hob_mean(f.scope, op_vector(&f, HOB_DTYPE_I8, wide, 4)),
             (double[]){100}, 1, 0);
    t = op_vector(&f, HOB_DTYPE_F32, y, 4);
    op_check(&f, "max", hob_max(f.scope, t), (double[]){NAN}, 1, 0);
    op_check(&f, "min", hob_min(f.scope, t), (double[]){NAN}, 1, 0);
    op_check(&f, "argmin", hob_argmin(f.scope, t, 0, HOB_DTYPE_NONE),
             (double[]){0}, 1, 0);
    op_check(&f, "any", hob_any(f.scope, t), (double[]){1}, 1, 0);
    op_check(&f, "all", hob_all(f.scope, t), (double[]){0}, 1, 0);
    none = op_tensor(&f, HOB_DTYPE_F32, x, empty, 2);
    op_check(&f, "sum", hob_sum(f.scope, none), (double[]){0}, 1, 0);
    op_check(&f, "prod", hob_prod(f.scope, none), (double[]){1}, 1, 0);
    op_check(&f, "mean", hob_mean(f.scope, none), (double[]){NAN}, 1, 0);
    op_check(&f, "mean_dim", hob_mean_dim(f.scope, none, 1),
             (double[]){NAN, NAN, NAN}, 3, 0);
    op_check(&f, "any", hob_any(f.scope, none), (double[]){0}, 1, 0);
    op_check(&f, "all_dim", hob_all_dim(f.scope, none, -1), (double[]){1, 1, 1},
             3, 0);
    op_check(&f, "max_dim", hob_max_dim(f.scope, none, 0), x, 0, 0);
    op_check(&f, "softmax", hob_softmax(f.scope, none, 1), x, 0, 0);
    (void)hob_max(f.scope, none);
    op_check_fails(&f, "max of nothing", HOB_ERR_SHAPE);
}
END_TEST

START_TEST(test_bodies_put_tensors_together)
{
    double x[] = {1, 2, 3, 4, 5, 6};
    int64_t shape[] = {2, 3}, narrow[] = {2, 1};
    hob_tensor *a, *list[3], *values, *indices;

    if (!on_device(_i))
        return;
    a = op_tensor(&f, HOB_DTYPE_I16, x, shape, 2);
    list[0] = a;
    list[1] = op_tensor(&f, HOB_DTYPE_I16, x, narrow, 2);
    list[2] = hob_flip(f.scope, a, (int64_t[]){1}, 1);
    op_check(&f, "cat", hob_cat(f.scope, list, 3, -1),
             (double[]){1, 2, 3, 1, 3, 2, 1, 4, 5, 6, 2, 6, 5, 4}, 14, 0);
    list[1] = list[2];
    op_check(&f, "stack", hob_stack(f.scope, list, 2, -1),
             (double[]){1, 3, 2, 2, 3, 1, 4, 6, 5, 5, 6, 4}, 12, 0);
    op_check(&f, "repeat", hob_repeat_dim(f.scope, a, 1, 2),
             (double[]){1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}, 12, 0);
    op_check(&f, "repeat 0", hob_repeat_dim(f.scope, a, 0, 0), x, 0, 0);
    indices = op_vector(&f, HOB_DTYPE_I64, (double[]){2, 0, 2}, 3);
    op_check(&f, "select", hob_select(f.scope, a, indices, 1),
             (double[]){3, 1, 3, 6, 4, 6}, 6, 0);
    op_check(&f, "select_add", hob_select_add(f.scope, a, indices, a, 1),
             (double[]){3, 2, 7, 9, 5, 16}, 6, 0);
    values = NULL;
    ck_assert_int_eq(hob_topk_with_indices(f.scope, a, 2, 1, HOB_DTYPE_NONE,
                                           &values, &indices),
                     HOB_OK);
    op_check(&f, "topk", values, (double[]){3, 2, 6, 5}, 4, 0);
    op_check(&f, "topk indices", indices, (double[]){2, 1, 2, 1}, 4, 0);
    op_check(
        &f, "sort",
        hob_sort(f.scope,
                 op_vector(&f, HOB_DTYPE_F32, (double[]){2, NAN, -1, 0}, 4), 0,
                 1),
        (double[]){NAN, 2, 0, -1}, 4, 0);
    (void)hob_select(f.scope, a, op_vector(&f, HOB_DTYPE_I32, (double[]){3}, 1),
                     1);
    op_check_fails(&f, "select out of range", HOB_ERR_RANGE);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bodies");
    TCase *tc = tcase_create("devices");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_bodies_unary_functions, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_keep_small_numbers_accurate, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_binary_functions_on_all_pairs, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_scalars_and_clamp, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_integers_wrap_at_their_width, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_logic_is_that_of_c, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_reductions_of_wide_and_empty, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_bodies_put_tensors_together, 0,
                        OP_DEVICE_COUNT);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
