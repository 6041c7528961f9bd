/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contiguous, cast, full and arange, at every level, in every layout.
 */
#include "flex_case.h"

#include "flex/move.h"
#include "hob_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct fake_host host;

static void setup(void)
{
    fake_host_init(&host, 2);
}

static const struct shape_case {
    uint32_t rank;
    int64_t shape[HOB_MAX_RANK];
} shape_cases[] = {
    {0, {0}},          {1, {1}},
    {1, {1000}},       {1, {0}},
    {2, {67, 131}},    {2, {1, 9}},
    {2, {700, 800}},   {3, {5, 40, 33}},
    {4, {3, 4, 5, 6}}, {8, {2, 1, 3, 2, 1, 2, 3, 2}},
    {2, {3, 2000}},    {3, {4, 2, 1001}},
    {3, {70, 3, 130}},
};

enum { SHAPES = sizeof(shape_cases) / sizeof(shape_cases[0]) };

static void fill_bits(const struct hob_view *view, uint64_t *state)
{
    for (int64_t i = 0; i < hob_view_count(view); i++)
        flex_case_set_int(view->dtype, flex_case_at(view, i),
                          view->dtype == HOB_DTYPE_BOOL
                              ? flex_case_next(state) & 1
                              : flex_case_next(state));
}

static void check_copy(struct flex_device *device, const struct hob_view *x,
                       uint64_t seed)
{
    const struct hob_entry *entry = &flex_copy_entries.entries[0];
    struct fake_call fake;
    const struct hob_view *out;

    fake_call_init(&fake, &host, entry->op);
    fake_call_view(&fake, x);
    fake_call_result(&fake, x->dtype, x->rank, x->shape);
    ck_assert_int_eq(fake_call_run(&fake, entry, device), HOB_OK);
    ck_assert(fake_tensor_intact(&fake.results[0]));
    out = &fake.results[0].view;
    for (int64_t i = 0; i < hob_view_count(x); i++)
        if (flex_case_get_int(x->dtype, flex_case_at(out, i)) !=
            flex_case_get_int(x->dtype, flex_case_at(x, i)))
            ck_abort_msg("%s rank %d seed %" PRIu64 " element %" PRId64,
                         hob_dtype_name(x->dtype), x->rank, seed, i);
    fake_call_release(&fake);
}

/* Any order of dimensions of a row-major tensor, some of them reversed. */
static void shuffle(struct hob_view *view, uint64_t *state)
{
    for (uint32_t i = view->rank; i-- > 1;) {
        uint32_t j = (uint32_t)(flex_case_next(state) % (i + 1));
        int64_t size = view->shape[i], stride = view->strides[i];

        view->shape[i] = view->shape[j];
        view->strides[i] = view->strides[j];
        view->shape[j] = size;
        view->strides[j] = stride;
    }
    for (uint32_t i = 0; i < view->rank; i++) {
        if (flex_case_next(state) % 3 || view->shape[i] == 0)
            continue;
        view->data =
            (char *)view->data + (view->shape[i] - 1) * view->strides[i] *
                                     (int64_t)hob_dtype_size(view->dtype);
        view->strides[i] = -view->strides[i];
    }
    fake_view_flags(view);
}

START_TEST(test_contiguous_copies_any_layout)
{
    static const uint32_t dtypes[] = {HOB_DTYPE_F64, HOB_DTYPE_F32,
                                      HOB_DTYPE_F16, HOB_DTYPE_BOOL};
    const struct shape_case *shape_case = &shape_cases[_i];
    struct flex_device *devices[FLEX_ISA_COUNT_] = {NULL};

    for (uint32_t isa = 0; isa < FLEX_ISA_COUNT_; isa++)
        if (flex_case_has(isa))
            devices[isa] = flex_case_open(&host, isa);
    for (uint32_t d = 0; d < 4; d++) {
        for (uint32_t l = 0; l < FLEX_LAYOUT_COUNT_ + 8; l++) {
            int shuffled = l >= FLEX_LAYOUT_COUNT_;
            uint64_t seed = flex_case_seed(), state = seed;
            struct flex_device *device = devices[seed % FLEX_ISA_COUNT_];
            struct flex_case_tensor x;

            device = device ? device : devices[FLEX_ISA_BASE];
            device->l3_bytes = seed & 64 ? 0 : 1 << 25; /* 0: past caches */

            flex_case_tensor_init(
                &x, dtypes[d], shape_case->rank, shape_case->shape,
                shuffled ? FLEX_LAYOUT_DENSE : (enum flex_layout)l);
            fill_bits(&x.view, &state);
            if (shuffled)
                shuffle(&x.view, &state);
            check_copy(device, &x.view, seed);
            flex_case_tensor_release(&x);
        }
    }
    for (uint32_t isa = 0; isa < FLEX_ISA_COUNT_; isa++)
        if (devices[isa])
            flex_case_close(devices[isa]);
}
END_TEST

/* Transposes of bytes whose sides end anywhere, at and off cache lines: each
 * byte of the memory around the result stays. */
static void check_transpose(const struct flex_move_kernels *kernels,
                            uint32_t kind, int64_t rows, int64_t columns,
                            int64_t gap, int by_pages, int past)
{
    enum { GUARD = 256, PAGE = 4096 };
    const int64_t size = INT64_C(1) << kind;
    const int64_t in_column = by_pages ? PAGE : (rows + 3) * size;
    const int64_t out_row = (columns + gap) * size;
    const int64_t in_bytes = columns * in_column;
    const int64_t out_bytes = rows * out_row + GUARD;
    uint64_t seed = flex_case_seed(), state = seed;
    unsigned char *in = aligned_alloc(64, (size_t)(in_bytes + 63) / 64 * 64);
    unsigned char *out = aligned_alloc(64, (size_t)(out_bytes + 63) / 64 * 64);
    const int64_t start = size * (int64_t)(1 + seed % 8);

    ck_assert(in && out);
    for (int64_t i = 0; i < in_bytes; i++)
        in[i] = (unsigned char)(flex_case_next(&state) >> 8);
    memset(out, 0xa5, (size_t)out_bytes);
    kernels->transpose[kind](out + start, out_row, in, in_column, rows, columns,
                             past);
    for (int64_t at = 0; at < out_bytes; at++) {
        const int64_t i = at < start ? rows : (at - start) / out_row;
        const int64_t j = at < start ? 0 : (at - start) % out_row / size;
        const int inside = i < rows && j < columns;

        if (out[at] != (inside
                            ? in[j * in_column + i * size + (at - start) % size]
                            : 0xa5))
            ck_abort_msg("size %d, %d x %d, gap %d, past %d, byte %d, seed "
                         "%" PRIu64,
                         (int)size, (int)rows, (int)columns, (int)gap, past,
                         (int)at, seed);
    }
    free(in);
    free(out);
}

START_TEST(test_transpose_of_all_sizes)
{
    static const int64_t sides[] = {1, 2, 3, 4, 15, 64, 70, 200};
    const struct flex_move_kernels *kernels;
    struct flex_device *device;

    if (!flex_case_has((uint32_t)_i))
        return;
    device = flex_case_open(&host, (uint32_t)_i);
    kernels = flex_move_kernels(device);
    for (uint32_t kind = 0; kind < 4; kind++)
        for (uint32_t i = 0; i < 8; i++)
            for (uint32_t j = 0; j < 8; j++)
                for (int past = 0; past < 2; past++) {
                    check_transpose(kernels, kind, sides[i], sides[j], 0, 0,
                                    past);
                    for (int by_pages = 0; by_pages < 2; by_pages++)
                        check_transpose(kernels, kind, sides[i], sides[j],
                                        64 - sides[j] % 64, by_pages, past);
                }
    flex_case_close(device);
}
END_TEST

/* ---- cast ---- */

/* What X becomes: floats truncate and stop at the bounds, integers wrap. */
static uint64_t int_of(uint32_t from, uint32_t to, long double x, uint64_t bits)
{
    unsigned char element[8] = {0};
    uint32_t width = hob_dtype_size(to) * 8;
    int has_sign = (HOB_DTYPE_BIT(to) & HOB_MASK_SIGNED) != 0;
    long double high = ldexpl(1, (int)width - has_sign);
    long double low = has_sign ? -high : 0;

    if (HOB_DTYPE_BIT(from) & HOB_MASK_FLOAT) {
        x = truncl(x);
        if (x != x)
            bits = 0;
        else if (x >= high)
            bits = has_sign ? (UINT64_C(1) << (width - 1)) - 1 : ~UINT64_C(0);
        else if (x < low)
            bits = has_sign ? ~UINT64_C(0) << (width - 1) : 0;
        else
            bits = x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
    }
    flex_case_set_int(to, element, bits);
    return flex_case_get_int(to, element);
}

/* Half a unit of TO at most, so the nearest or one of two. */
static int good_float(uint32_t to, long double x, const void *p)
{
    long double got = flex_case_get(to, p);

    return flex_case_ulps(to, got, x) <= 0.5;
}

static const double cast_values[] = {0,
                                     -0.0,
                                     1,
                                     -1,
                                     0.5,
                                     -0.5,
                                     1.5,
                                     -2.5,
                                     127,
                                     128,
                                     -128,
                                     -129,
                                     255,
                                     256,
                                     32767.5,
                                     65504,
                                     65519,
                                     65520,
                                     -70000,
                                     2147483647,
                                     2147483648.0,
                                     -2147483649.0,
                                     4294967295.0,
                                     4294967296.0,
                                     9.2e18,
                                     9.3e18,
                                     1.8446744073709552e19,
                                     -1e19,
                                     1e30,
                                     -1e30,
                                     1e300,
                                     NAN,
                                     INFINITY,
                                     -INFINITY,
                                     5.96e-8,
                                     2.98e-8,
                                     2.99e-8,
                                     1e-40,
                                     6.1035e-5,
                                     1.0009765625,
                                     1.00048828125,
                                     1.000488281251,
                                     2049,
                                     16777217,
                                     9007199254740993.0};

static void check_cast(struct flex_device *device, uint32_t from, uint32_t to)
{
    enum { COUNT = 1501 };
    const int64_t shape = COUNT;
    uint64_t seed = flex_case_seed(), state = seed;
    struct flex_case_tensor x;
    struct fake_call fake;

    flex_case_tensor_init(&x, from, 1, &shape, FLEX_LAYOUT_STEPS);
    for (int64_t i = 0; i < COUNT; i++) {
        void *p = flex_case_at(&x.view, i);
        uint64_t bits = flex_case_next(&state);

        if (from == HOB_DTYPE_BOOL)
            flex_case_set_int(from, p, bits & 1);
        else if (!(HOB_DTYPE_BIT(from) & HOB_MASK_FLOAT))
            flex_case_set_int(from, p, bits >> (bits & 63));
        else
            flex_case_set(
                from, p,
                i < (int64_t)(sizeof(cast_values) / sizeof(double))
                    ? cast_values[i]
                    : ldexp((double)(int64_t)bits, -(int)(bits % 100)));
    }
    fake_call_init(&fake, &host, "cast");
    fake_call_view(&fake, &x.view);
    fake_call_value(&fake, hob_value_dtype(to));
    fake_call_result(&fake, to, 1, &shape);
    ck_assert_int_eq(
        fake_call_run(&fake, &flex_cast_entries.entries[0], device), HOB_OK);
    ck_assert(fake_tensor_intact(&fake.results[0]));
    for (int64_t i = 0; i < COUNT; i++) {
        const void *in = flex_case_at(&x.view, i);
        const void *out = flex_case_at(&fake.results[0].view, i);
        long double number = flex_case_get(from, in);
        int good =
            HOB_DTYPE_BIT(to) & HOB_MASK_FLOAT ? good_float(to, number, out)
            : to == HOB_DTYPE_BOOL
                ? flex_case_get_int(to, out) == (number != 0)
                : flex_case_get_int(to, out) ==
                      int_of(from, to, number, flex_case_get_int(from, in));

        if (!good)
            ck_abort_msg("%s: %s %.17Lg gives %s %.17Lg, seed %" PRIu64,
                         device->kernels->name, hob_dtype_name(from), number,
                         hob_dtype_name(to), flex_case_get(to, out), seed);
    }
    fake_call_release(&fake);
    flex_case_tensor_release(&x);
}

START_TEST(test_cast_of_all_pairs)
{
    struct flex_device *device;

    if (!flex_case_has((uint32_t)_i))
        return;
    device = flex_case_open(&host, (uint32_t)_i);
    if (_i & 1)
        device->l3_bytes = 0; /* results go past the caches */
    for (uint32_t from = 1; from <= HOB_DTYPE_BOOL; from++)
        for (uint32_t to = 1; to <= HOB_DTYPE_BOOL; to++)
            check_cast(device, from, to);
    flex_case_close(device);
}
END_TEST

/* ---- creation ---- */

START_TEST(test_full_in_every_dtype)
{
    struct flex_device *device = flex_case_open(&host, FLEX_ISA_BASE);
    const int64_t shape[2] = {3, 500};

    for (uint32_t dtype = 1; dtype <= HOB_DTYPE_BOOL; dtype++) {
        struct fake_call fake;

        fake_call_init(&fake, &host, "full");
        fake_call_value(&fake, hob_value_i64s(shape, 2));
        fake_call_value(&fake, hob_i64(1));
        fake_call_value(&fake, hob_none());
        fake_call_value(&fake, hob_value_dtype(dtype));
        fake_call_result(&fake, dtype, 2, shape);
        ck_assert_int_eq(
            fake_call_run(&fake, &flex_create_entries.entries[0], device),
            HOB_OK);
        ck_assert(fake_tensor_intact(&fake.results[0]));
        for (int64_t i = 0; i < 1500; i++)
            if (flex_case_get(dtype, flex_case_at(&fake.results[0].view, i)) !=
                1)
                ck_abort_msg("%s", hob_dtype_name(dtype));
        fake_call_release(&fake);
    }
    flex_case_close(device);
}
END_TEST

START_TEST(test_arange_counts_down_too)
{
    struct flex_device *device = flex_case_open(&host, FLEX_ISA_BASE);
    const int64_t count = 2500;
    struct fake_call fake;

    fake_call_init(&fake, &host, "arange");
    fake_call_value(&fake, hob_i64(7));
    fake_call_value(&fake, hob_i64(7 - 3 * count));
    fake_call_value(&fake, hob_i64(-3));
    fake_call_value(&fake, hob_none());
    fake_call_value(&fake, hob_value_dtype(HOB_DTYPE_I32));
    fake_call_result(&fake, HOB_DTYPE_I32, 1, &count);
    ck_assert_int_eq(
        fake_call_run(&fake, &flex_create_entries.entries[1], device), HOB_OK);
    for (int64_t i = 0; i < count; i++)
        if (((int32_t *)fake.results[0].view.data)[i] != 7 - 3 * i)
            ck_abort_msg("element %" PRId64, i);
    fake_call_release(&fake);
    flex_case_close(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("flex copy");
    TCase *cases = tcase_create("copy");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(cases, setup, NULL);
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, test_contiguous_copies_any_layout, 0, SHAPES);
    tcase_add_loop_test(cases, test_transpose_of_all_sizes, 0, FLEX_ISA_COUNT_);
    tcase_add_loop_test(cases, test_cast_of_all_pairs, 0, FLEX_ISA_COUNT_);
    tcase_add_test(cases, test_full_in_every_dtype);
    tcase_add_test(cases, test_arange_counts_down_too);
    suite_add_tcase(suite, cases);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
