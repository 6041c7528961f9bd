/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The error of elementwise functions, in units of the result's last place (of
 * f32's smallest number, where the result is below the normal ones).
 *
 * f32: every STRIDE-th of all 2^32 arguments against the C library's f64, at
 * every level of instruction set. HOB_TEST_ULP_STRIDE=1 tries all; that takes
 * some minutes a function, CK_RUN_CASE=log runs one alone, and
 * HOB_TEST_VERBOSE=1 tells the errors found. f64, and functions of two
 * arguments: random ones, against long double.
 */
#include "elementwise_reference.h"
#include "flex_case.h"
#include "hob_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum { STRIDE = 40009, MANY = 512, PAIRS = 40000 };

/* F32 as plugins/flex/README.md states them; F64 is the C library's. FUSED, if
 * not 0, is that of f32 where products are fused, from x86-64-v3 on. */
static const struct bound {
    const char *name;
    enum flex_map map;
    double f32, f64, fused;
} bounds[] = {
    {"exp", FLEX_MAP_EXP, 0.9, 1, 0},
    {"log", FLEX_MAP_LOG, 0.51, 1, 0},
    {"log1p", FLEX_MAP_LOG1P, 0.51, 1, 0},
    {"erf", FLEX_MAP_ERF, 0.51, 1.5, 0},
    {"tanh", FLEX_MAP_TANH, 0.51, 2.5, 0},
    {"sin", FLEX_MAP_SIN, 0.51, 1, 0},
    {"cos", FLEX_MAP_COS, 0.51, 1, 0},
    {"tan", FLEX_MAP_TAN, 0.51, 1, 0},
    {"sinh", FLEX_MAP_SINH, 0.51, 2.5, 0},
    {"cosh", FLEX_MAP_COSH, 0.51, 2, 0},
    {"asin", FLEX_MAP_ASIN, 0.51, 1, 0},
    {"acos", FLEX_MAP_ACOS, 0.51, 1, 0},
    {"atan", FLEX_MAP_ATAN, 0.51, 1, 0},
    {"asinh", FLEX_MAP_ASINH, 0.51, 2.5, 0},
    {"acosh", FLEX_MAP_ACOSH, 0.51, 2.5, 0},
    {"atanh", FLEX_MAP_ATANH, 0.51, 2.5, 0},
    {"sqrt", FLEX_MAP_SQRT, 0.5, 0.5, 0},
    {"gelu", FLEX_MAP_GELU, 0.51, 4, 4},
    {"sigmoid", FLEX_MAP_SIGMOID, 0.51, 3, 2.1},
    {"pow", FLEX_MAP_POW, 0.51, 1, 0},
    {"atan2", FLEX_MAP_ATAN2, 0.51, 1, 0},
    {"hypot", FLEX_MAP_HYPOT, 0.51, 1, 0},
};

enum { BOUNDS = sizeof(bounds) / sizeof(bounds[0]) };

/* The worst so far. */
struct worst {
    double ulps;
    double x, y;
};

static void note(struct worst *worst, double ulps, double x, double y)
{
    if (!(ulps <= worst->ulps))
        *worst = (struct worst){ulps, x, y};
}

static void check(const struct bound *bound, uint32_t dtype,
                  const struct flex_kernels *kernels, const struct worst *worst)
{
    const double single = bound->fused > 0 && kernels->isa >= FLEX_ISA_V3
                              ? bound->fused
                              : bound->f32;
    const double allowed = dtype == HOB_DTYPE_F32 ? single : bound->f64;

    if (getenv("HOB_TEST_VERBOSE"))
        printf("%s %s %s: %.4f ulp at %a, %a\n", bound->name,
               hob_dtype_name(dtype), kernels->name, worst->ulps, worst->x,
               worst->y);
    ck_assert_msg(worst->ulps <= allowed, "%s %s %s: %g ulp at %a, %a",
                  kernels->name, bound->name, hob_dtype_name(dtype),
                  worst->ulps, worst->x, worst->y);
}

/* The MANY arguments IN at all levels. */
static void run_f32(const struct bound *bound,
                    const struct reference *reference, const float *in,
                    struct worst *worst)
{
    double wanted[MANY];

    for (uint32_t i = 0; i < MANY; i++) {
        long double x[3] = {in[i], 0, 0};

        wanted[i] = reference_float_quick(reference, x);
    }
    for (uint32_t level = 0; level < FLEX_ISA_COUNT_; level++) {
        const struct flex_kernels *kernels = flex_kernels_find(level);
        float out[MANY];

        if (!kernels)
            continue;
        kernels->map[bound->map][HOB_DTYPE_F32](out, in, NULL, NULL, MANY);
        for (uint32_t i = 0; i < MANY; i++)
            if (out[i] != (float)wanted[i]) /* not the nearest */
                note(&worst[level],
                     flex_case_ulps(HOB_DTYPE_F32, out[i], wanted[i]),
                     (double)in[i], 0);
    }
}

static void all_f32(const struct bound *bound)
{
    const struct reference *reference = reference_find(bound->name);
    const char *text = getenv("HOB_TEST_ULP_STRIDE");
    const uint64_t stride = text ? strtoull(text, NULL, 10) : STRIDE;
    struct worst worst[FLEX_ISA_COUNT_] = {{0}};

    ck_assert_uint_ge(stride, 1);
    for (uint64_t first = 0; first < UINT64_C(0x100000000);
         first += stride * MANY) {
        float in[MANY];

        for (uint32_t i = 0; i < MANY; i++) {
            uint32_t bits = (uint32_t)(first + i * stride);

            memcpy(&in[i], &bits, sizeof(bits));
        }
        run_f32(bound, reference, in, worst);
    }
    for (uint32_t level = 0; level < FLEX_ISA_COUNT_; level++)
        if (flex_kernels_find(level))
            check(bound, HOB_DTYPE_F32, flex_kernels_find(level),
                  &worst[level]);
}

/* Of any sign and of a magnitude about 2^-RANGE to 2^RANGE, often near 1 or a
 * small integer. */
static double random_number(uint64_t *state, int range)
{
    const uint64_t bits = flex_case_next(state);
    const double fraction = ldexp((double)(bits >> 11), -53) + 0.5;
    const double sign = bits & 1 ? -1 : 1;

    switch (bits >> 1 & 3) {
    case 0:
        return sign * (double)(bits >> 8 & 31);
    case 1:
        return sign * fraction;
    default:
        return sign *
               ldexp(fraction,
                     (int)((bits >> 3 & 255) % 121) * range / 60 - range);
    }
}

static void random_numbers(const struct bound *bound, uint32_t dtype,
                           uint64_t seed)
{
    const struct reference *reference = reference_find(bound->name);

    for (uint32_t level = 0; level < FLEX_ISA_COUNT_; level++) {
        const struct flex_kernels *kernels = flex_kernels_find(level);
        /* f64 is the C library's at every level. */
        const int is_wanted = kernels && (dtype == HOB_DTYPE_F32 ||
                                          kernels == flex_kernels_best());
        struct worst worst = {0};
        uint64_t state = seed;

        for (int n = 0; is_wanted && n < PAIRS; n++) {
            double x = random_number(&state, 20), y = random_number(&state, 6);
            float single[3] = {(float)x, (float)y, 0};
            double both[3] = {x, y, 0};
            long double at[3] = {x, y, 0}, wanted, got;

            if (dtype == HOB_DTYPE_F32) {
                at[0] = single[0];
                at[1] = single[1];
                kernels->map[bound->map][dtype](&single[2], &single[0],
                                                &single[1], NULL, 1);
                got = single[2];
            } else {
                kernels->map[bound->map][dtype](&both[2], &both[0], &both[1],
                                                NULL, 1);
                got = both[2];
            }
            wanted = reference_float(reference, at);
            /* Below the normal numbers f64 is not measured. */
            if (dtype == HOB_DTYPE_F64 && fabsl(wanted) < 0x1p-1000L)
                continue;
            note(&worst, flex_case_ulps(dtype, got, wanted), (double)at[0],
                 (double)at[1]);
        }
        if (is_wanted)
            check(bound, dtype, kernels, &worst);
    }
}

START_TEST(test_ulp_within_bound)
{
    const struct bound *bound = &bounds[_i];
    const uint64_t seed = flex_case_seed();

    if (reference_find(bound->name)->arity == 1)
        all_f32(bound);
    else
        random_numbers(bound, HOB_DTYPE_F32, seed);
    random_numbers(bound, HOB_DTYPE_F64, seed + 1);
}
END_TEST

/* C11, F.10.4.4: the arguments for which pow has a rule of its own. */
START_TEST(test_ulp_pow_follows_c)
{
    static const float values[] = {
        0,         -0.0f, 1,        -1,        0.5f,    -0.5f,  2,
        -2,        3,     -3,       2.5f,      1e30f,   1e-30f, INFINITY,
        -INFINITY, NAN,   16777215, -16777217, 8388609, 3e38f};
    enum { VALUES = sizeof(values) / sizeof(values[0]) };

    for (uint32_t level = 0; level < FLEX_ISA_COUNT_; level++)
        for (int i = 0; flex_kernels_find(level) && i < VALUES * VALUES; i++) {
            const float x = values[i / VALUES], y = values[i % VALUES];
            const float wanted = (float)pow((double)x, (double)y);
            float got;

            flex_kernels_find(level)->map[FLEX_MAP_POW][HOB_DTYPE_F32](
                &got, &x, &y, NULL, 1);
            /* Near a tie f64 rounds twice: to the neighbour at worst. */
            ck_assert_msg((isnan(got) && isnan(wanted)) ||
                              (!signbit(got) == !signbit(wanted) &&
                               (got == wanted || fabsf(got - wanted) <=
                                                     1.2e-7f * fabsf(wanted))),
                          "pow(%g, %g) is %.9g, not %.9g", (double)x, (double)y,
                          (double)got, (double)wanted);
        }
}
END_TEST

/* What remainder is of fmod's result, which is exact. */
static float remainder_by_c(float a, float b)
{
    const float r = fmodf(a, b);

    if (r == 0)
        return copysignf(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

/* Where all quotients are moderate they are what is computed with; one that is
 * not takes its neighbours along to fmod. */
START_TEST(test_ulp_remainder_is_exact)
{
    enum { COUNT = 64 * 40 + 7 };
    static const float apart[] = {INFINITY, NAN, 0, 1e30f, 0x1p28f, 0x1p-149f};
    float a[COUNT], b[COUNT], out[COUNT];
    uint64_t state = flex_case_seed();

    for (int i = 0; i < COUNT; i++) {
        const int piece = i / 64;
        const double span = ldexp(1, piece % 27);

        b[i] = (float)random_number(&state, piece % 3 ? 3 : 20);
        b[i] = b[i] == 0 ? -7 : b[i];
        a[i] = (float)(random_number(&state, 0) * (double)b[i] * span);
        /* At a multiple, and just beside one. */
        if (i % 3 == 0)
            a[i] = b[i] * (float)floor(span * 0.7);
        if (i % 6 == 0)
            a[i] = nextafterf(a[i], i % 12 ? INFINITY : -INFINITY);
        if (piece >= 34 && i % 64 == piece)
            (piece % 2 ? a : b)[i] = apart[piece - 34];
    }
    for (uint32_t level = 0; level < FLEX_ISA_COUNT_; level++) {
        if (!flex_kernels_find(level))
            continue;
        flex_kernels_find(level)->map[FLEX_MAP_REMAINDER][HOB_DTYPE_F32](
            out, a, b, NULL, COUNT);
        for (int i = 0; i < COUNT; i++) {
            const float wanted = remainder_by_c(a[i], b[i]);

            ck_assert_msg(isnan(wanted) ? isnan(out[i])
                                        : memcmp(&wanted, &out[i], 4) == 0,
                          "element %d: remainder(%a, %a) is %a, not %a", i,
                          (double)a[i], (double)b[i], (double)out[i],
                          (double)wanted);
        }
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("ulp");
    TCase *rules = tcase_create("rules");

    for (int i = 0; i < BOUNDS; i++) {
        TCase *tc = tcase_create(bounds[i].name);

        tcase_set_timeout(tc, 7200);
        tcase_add_loop_test(tc, test_ulp_within_bound, i, i + 1);
        suite_add_tcase(suite, tc);
    }
    tcase_add_test(rules, test_ulp_pow_follows_c);
    tcase_add_test(rules, test_ulp_remainder_is_exact);
    suite_add_tcase(suite, rules);
    return hob_check_main(suite);
}
