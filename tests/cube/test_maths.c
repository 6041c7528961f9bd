/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_maths.c - the functions of kernels/maths.cube and its like on a device
 * are as exact as they are said to be, in units of the result's last place.
 *
 * f32: every STRIDE-th of all numbers against the C library's f64; f64: at
 * random against long double. It runs on cube-vulkan:0 unless HOB_TEST_DEVICE
 * names another; where that does not open it is skipped.
 */
#include "hob_check.h"
#include "test_device.h"

#include <hob/ext/plugin.h>
#include <hob/hob.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRIDE = 400009, SINGLES = 10738, DOUBLES = 6000, PAIRS = 9000 };

static hob_runtime *runtime;
static hob_device *device;
static hob_scope *scope;

/* No assertions: it is used outside of tests too. */
static int open_device(void)
{
    struct hob_runtime_options options = test_options();
    hob_error error = HOB_ERROR_INIT;

    if (!getenv("HOB_TEST_DEVICE"))
        setenv("HOB_TEST_DEVICE", "cube-vulkan:0", 1);
    options.threads = 1;
    if (hob_runtime_open(&options, &runtime, &error) ||
        test_device_open(runtime, "flex", &device, &error)) {
        printf("skipped: %s\n", error.message ? error.message : "no device");
        return 0;
    }
    scope = hob_scope_open(runtime);
    return 1;
}

static void setup(void)
{
    ck_assert(open_device());
}

static void teardown(void)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    hob_scope_close(scope);
    hob_device_unref(device);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* ---- units of the last place ---- */

static long double ulps(double got, long double truth, int digits, int least,
                        long double most)
{
    long double magnitude = fabsl(truth);
    int exponent;

    if (isnan(truth) || isnan(got))
        return isnan(truth) && isnan(got) ? 0 : HUGE_VALL;
    if (magnitude > most || isinf(got))
        return isinf(got) && magnitude > most * (1 - ldexpl(1, -digits)) &&
                       (got > 0) == (truth > 0)
                   ? 0
                   : HUGE_VALL;
    frexpl(magnitude, &exponent);
    if (magnitude == 0 || exponent < least)
        exponent = least;
    return fabsl((long double)got - truth) / ldexpl(1, exponent - digits);
}

static long double ulps_f32(double got, long double truth)
{
    return ulps(got, truth, FLT_MANT_DIG, FLT_MIN_EXP, FLT_MAX);
}

static long double ulps_f64(double got, long double truth)
{
    return ulps(got, truth, DBL_MANT_DIG, DBL_MIN_EXP, DBL_MAX);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t x = *state += UINT64_C(0x9e3779b97f4a7c15);

    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* ---- functions of one number ---- */

static long double sigmoid_of(long double x)
{
    return 1 / (1 + expl(-x));
}

/* The bounds are those at the tops of maths.cube and maths64.cube. */
static const struct unary {
    const char *name;
    hob_tensor *(*op)(hob_scope *scope, hob_tensor *x);
    long double (*truth)(long double x);
    double f32, f64;
} unaries[] = {
    {"sqrt", hob_sqrt, sqrtl, 0.51, 0.51},
    {"floor", hob_floor, floorl, 0, 0},
    {"ceil", hob_ceil, ceill, 0, 0},
    {"trunc", hob_trunc, truncl, 0, 0},
    {"round", hob_round, rintl, 0, 0},
    {"exp", hob_exp, expl, 1.0, 0.9},
    {"log", hob_log, logl, 0.8, 0.8},
    {"log1p", hob_log1p, log1pl, 0.9, 1.0},
    {"sin", hob_sin, sinl, 1.5, 0.9},
    {"cos", hob_cos, cosl, 1.5, 0.9},
    {"tan", hob_tan, tanl, 3.2, 2.1},
    {"asin", hob_asin, asinl, 1.7, 1.4},
    {"acos", hob_acos, acosl, 1.1, 1.1},
    {"atan", hob_atan, atanl, 1.9, 1.7},
    {"sinh", hob_sinh, sinhl, 2.2, 2.0},
    {"cosh", hob_cosh, coshl, 2.2, 1.5},
    {"tanh", hob_tanh, tanhl, 2.5, 2.5},
    {"asinh", hob_asinh, asinhl, 1.6, 1.7},
    {"acosh", hob_acosh, acoshl, 1.8, 1.5},
    {"atanh", hob_atanh, atanhl, 1.9, 2.0},
    {"erf", hob_erf, erfl, 1.2, 1.1},
    {"sigmoid", hob_sigmoid, sigmoid_of, 2.2, 2.1},
};

/* Devices need not keep subnormal numbers of f32 (NVIDIA's has them only in
 * CUDA): what is below this may be lost of a result, and of a step to it. */
static double lost_f32(void)
{
    const int64_t one = 1;
    const double x = FLT_MIN, half = 0.5;
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *t;
    double got;

    t = hob_mul(scope,
                hob_cast(scope, hob_from_f64(scope, device, &x, &one, 1),
                         HOB_DTYPE_F32),
                hob_cast(scope, hob_from_f64(scope, device, &half, &one, 1),
                         HOB_DTYPE_F32));
    ck_assert_hob_ok(hob_read_f64(t, &got, 1, &error));
    ck_assert(got == 0 || got == x * half);
    return got == 0 ? FLT_MIN : 0;
}

static void check_unary(const struct unary *unary, hob_dtype dtype,
                        const double *x, int64_t count)
{
    double *got = malloc((size_t)count * sizeof(*got));
    const int is_single = dtype == HOB_DTYPE_F32;
    const double lost = is_single ? lost_f32() : 0;
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *t;

    ck_assert_ptr_nonnull(got);
    t = hob_from_f64(scope, device, x, &count, 1);
    t = unary->op(scope, hob_cast(scope, t, dtype));
    ck_assert_hob_ok(hob_read_f64(t, got, count, &error));
    for (int64_t i = 0; i < count; i++) {
        const long double truth = unary->truth((long double)x[i]);
        const long double off =
            is_single ? ulps_f32(got[i], truth) : ulps_f64(got[i], truth);

        ck_assert_msg(off <= (is_single ? unary->f32 : unary->f64) ||
                          fabsl(got[i] - truth) < lost,
                      "%s %s of %.17g is %.17g, not %.21Lg: %.3Lf ulp",
                      unary->name, hob_dtype_name(dtype), x[i], got[i], truth,
                      off);
    }
    free(got);
}

START_TEST(test_maths_unary_f32)
{
    static double x[SINGLES];

    for (uint32_t i = 0; i < SINGLES; i++) {
        const uint32_t bits = i * STRIDE;
        float single;

        memcpy(&single, &bits, sizeof(single));
        /* Devices may take subnormal numbers for 0. */
        x[i] = fabsf(single) < FLT_MIN ? 0 : (double)single;
    }
    check_unary(&unaries[_i], HOB_DTYPE_F32, x, SINGLES);
}
END_TEST

/* Half of them of any size, half of those that occur. */
static double random_f64(uint64_t *state, int is_common)
{
    uint64_t bits = next_random(state);
    double x;

    if (is_common)
        bits = (bits & UINT64_C(0x800fffffffffffff)) | (1013 + bits % 20) << 52;
    memcpy(&x, &bits, sizeof(x));
    return fabs(x) < DBL_MIN ? 0 : x;
}

START_TEST(test_maths_unary_f64)
{
    static double x[DOUBLES];
    uint64_t state = 1;

    for (uint32_t i = 0; i < DOUBLES; i++)
        x[i] = random_f64(&state, i % 2);
    check_unary(&unaries[_i], HOB_DTYPE_F64, x, DOUBLES);
}
END_TEST

/* ---- functions of two numbers ---- */

static long double quotient(long double x, long double y)
{
    return x / y;
}

static const struct binary {
    const char *name;
    hob_tensor *(*op)(hob_scope *scope, hob_tensor *x, hob_tensor *y);
    long double (*truth)(long double x, long double y);
    double f32, f64;
} binaries[] = {
    {"div", hob_div, quotient, 0.51, 0.51},
    {"pow", hob_pow, powl, 1.1, 1.2},
    {"atan2", hob_atan2, atan2l, 1.9, 1.8},
    {"hypot", hob_hypot, hypotl, 0.9, 0.9},
};

static const double specials[] = {
    0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, 1e9, NAN, -1e9, INFINITY, -INFINITY};
enum { SPECIALS = sizeof(specials) / sizeof(specials[0]) };

START_TEST(test_maths_binary)
{
    static double x[PAIRS], y[PAIRS], got[PAIRS];
    const struct binary *binary = &binaries[_i / 2];
    const hob_dtype dtype = _i % 2 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    const int64_t count = PAIRS;
    hob_error error = HOB_ERROR_INIT;
    uint64_t state = 7;
    hob_tensor *a, *b;

    for (int i = 0; i < PAIRS; i++) {
        x[i] = i < SPECIALS * SPECIALS ? specials[i % SPECIALS]
                                       : random_f64(&state, 1);
        y[i] = i < SPECIALS * SPECIALS ? specials[i / SPECIALS]
                                       : random_f64(&state, 1);
        if (i % 2 && i > SPECIALS * SPECIALS) {
            x[i] = fabs(x[i]);
            y[i] = rint(y[i]);
        }
        if (dtype == HOB_DTYPE_F32) {
            x[i] = (double)(float)x[i];
            y[i] = (double)(float)y[i];
        }
    }
    a = hob_cast(scope, hob_from_f64(scope, device, x, &count, 1), dtype);
    b = hob_cast(scope, hob_from_f64(scope, device, y, &count, 1), dtype);
    ck_assert_hob_ok(hob_read_f64(binary->op(scope, a, b), got, count, &error));
    for (int i = 0; i < PAIRS; i++) {
        const long double truth =
            binary->truth((long double)x[i], (long double)y[i]);
        const int is_tiny =
            fabsl(truth) < (dtype == HOB_DTYPE_F32 ? FLT_MIN : DBL_MIN);
        const long double off = dtype == HOB_DTYPE_F32
                                    ? ulps_f32(got[i], truth)
                                    : ulps_f64(got[i], truth);

        if (is_tiny && fabs(got[i]) < 2e-38)
            continue; /* as above */
        ck_assert_msg(
            off <= (dtype == HOB_DTYPE_F32 ? binary->f32 : binary->f64),
            "%s %s of %.17g and %.17g is %.17g, not %.21Lg: %.3Lf ulp",
            binary->name, hob_dtype_name(dtype), x[i], y[i], got[i], truth,
            off);
    }
}
END_TEST

/* In a process of its own: drivers start threads. */
static int has_device(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        const int is_open = open_device();

        fflush(stdout);
        _exit(!is_open);
    }
    return child > 0 && waitpid(child, &status, 0) == child &&
           WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- gelu of halves, which has functions of its own ---- */

static const struct {
    hob_dtype dtype;
    int digits, least; /* as DBL_MANT_DIG and DBL_MIN_EXP */
} halves[] = {{HOB_DTYPE_F16, 11, -13}, {HOB_DTYPE_BF16, 8, -125}};

/* Every f16 or bf16: what its 16 BITS say. */
static float half_of(hob_dtype dtype, uint32_t bits)
{
    const uint32_t wide = bits << 16;
    const int exponent = (int)(bits >> 10 & 31);
    const float fraction = (float)(bits & 1023);
    float y;

    if (dtype == HOB_DTYPE_BF16) {
        memcpy(&y, &wide, sizeof(y));
        return y;
    }
    y = exponent == 31 ? (bits & 1023 ? NAN : INFINITY)
        : exponent     ? ldexpf(1024 + fraction, exponent - 25)
                       : ldexpf(fraction, -24);
    return bits >> 15 ? -y : y;
}

static long double normal_below(long double x)
{
    return erfcl(-x * sqrtl(0.5L)) / 2;
}

static long double gelu_of(long double x)
{
    return x == -INFINITY ? -0.0L : x * normal_below(x);
}

static long double slope_of(long double x)
{
    const long double density = expl(-x * x / 2) / sqrtl(2 * acosl(-1));

    return normal_below(x) + (isinf(x) ? 0 : x * density);
}

/* All halves: gelu within 0.52 units of the last place, its slope too where it
 * is not the rest of two near ones; where it or a factor of it is below the
 * least f32 it may be 0. */
START_TEST(test_maths_gelu_of_halves)
{
    enum { COUNT = 1 << 16 };
    const hob_dtype dtype = halves[_i].dtype;
    const int64_t count = COUNT;
    static float x[COUNT], y[COUNT], slope[COUNT];
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *t, *ones;

    for (uint32_t i = 0; i < COUNT; i++)
        x[i] = half_of(dtype, i);
    t = hob_cast(scope, hob_from_data(scope, device, HOB_DTYPE_F32, x, &count, 1),
                 dtype);
    ones = hob_ones(scope, &count, 1, device, dtype);
    ck_assert_hob_ok(hob_read(
        hob_cast(scope, hob_gelu(scope, t), HOB_DTYPE_F32), y, sizeof(y),
        &error));
    ck_assert_hob_ok(hob_read(
        hob_cast(scope, hob_gelu_backward(scope, t, ones), HOB_DTYPE_F32),
        slope, sizeof(slope), &error));
    for (uint32_t i = 0; i < COUNT; i++) {
        const long double truth = gelu_of(x[i]), steep = slope_of(x[i]);
        const int digits = halves[_i].digits, least = halves[_i].least;

        if (isnan(x[i])) {
            ck_assert(isnan(y[i]) && isnan(slope[i]));
        } else if (fabsl(truth) <= FLT_MIN ||
                   (y[i] == 0 && normal_below(x[i]) <= FLT_MIN)) {
            ck_assert_msg(fabsf(y[i]) <= FLT_MIN, "gelu(%g) is %g", x[i], y[i]);
        } else {
            const long double off =
                ulps(y[i], truth, digits, least, HUGE_VALL);

            ck_assert_msg(isinf(x[i]) ? y[i] == x[i] : off <= 0.52L,
                          "gelu(%.9g) is %.9g, %Lg off", x[i], y[i], off);
        }
        if (!isnan(x[i]))
            ck_assert_msg(fabsl(slope[i] - steep) <=
                              0.51L * ldexpl(fabsl(steep), 1 - digits) + 8e-6L,
                          "slope(%.9g) is %.9g, not %.9Lg", x[i], slope[i],
                          steep);
    }
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *one, *two;
    SRunner *runner;
    int failed;

    if (HOB_BUILD_SANITIZERS) {
        printf("skipped: drivers are not run in a sanitized process\n");
        return 77;
    }
    if (!has_device())
        return 77;
    suite = suite_create("maths");
    one = tcase_create("one");
    two = tcase_create("two");
    runner = srunner_create(suite);
    tcase_add_checked_fixture(one, setup, teardown);
    tcase_add_loop_test(one, test_maths_unary_f32, 0,
                        sizeof(unaries) / sizeof(unaries[0]));
    tcase_add_loop_test(one, test_maths_unary_f64, 0,
                        sizeof(unaries) / sizeof(unaries[0]));
    suite_add_tcase(suite, one);
    tcase_add_loop_test(one, test_maths_gelu_of_halves, 0, 2);
    tcase_add_checked_fixture(two, setup, teardown);
    tcase_add_loop_test(two, test_maths_binary, 0,
                        2 * sizeof(binaries) / sizeof(binaries[0]));
    suite_add_tcase(suite, two);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
