/* SPDX-License-Identifier: Apache-2.0 */
#include "io_fixture.h"

#include <math.h>

static struct io_fixture io;
static hob_error error;

static void setup(void)
{
    io_fixture_make(&io);
}

static void teardown(void)
{
    hob_error_release(&error);
    io_fixture_end(&io);
}

/* The device of a loop test: host memory, then memory apart. */
static hob_device *device_of(int i)
{
    return i ? io.apart : io.device;
}

START_TEST(test_host_data_round_trip_of_each_dtype)
{
    for (int dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_U8; dtype++) {
        const int64_t shape[2] = {3, 5};
        uint32_t size = hob_dtype_size((uint32_t)dtype);
        unsigned char in[15 * 8];
        unsigned char out[15 * 8];
        hob_tensor *tensor;

        for (size_t i = 0; i < sizeof(in); i++)
            in[i] = (unsigned char)(i * 7 + 1);
        tensor = hob_from_data(io.scope, device_of(_i), (hob_dtype)dtype, in,
                               shape, 2);
        ck_assert_int_eq(hob_tensor_dtype(tensor), dtype);
        ck_assert_int_eq(hob_tensor_rank(tensor), 2);
        ck_assert_int_eq(hob_tensor_count(tensor), 15);
        ck_assert_hob_ok(hob_read(tensor, out, 15 * size, &error));
        ck_assert_mem_eq(in, out, 15 * size);
        ck_assert_hob_fails(hob_read(tensor, out, 15 * size - 1, &error),
                            HOB_ERR_ARGUMENT, "bytes");
    }
}
END_TEST

START_TEST(test_host_data_typed_makers)
{
    const float f32[2] = {1.5f, -2.0f};
    const double f64[2] = {1e300, -0.0};
    const int32_t i32[2] = {INT32_MIN, 7};
    const int64_t i64[2] = {INT64_MIN, INT64_MAX};
    const int64_t shape[1] = {2};
    double got[2];
    int64_t whole[2];

    ck_assert_hob_ok(hob_read_f64(
        hob_from_f32(io.scope, device_of(_i), f32, shape, 1), got, 2, &error));
    ck_assert_double_eq(got[0], 1.5);
    ck_assert_hob_ok(hob_read_f64(
        hob_from_f64(io.scope, device_of(_i), f64, shape, 1), got, 2, &error));
    ck_assert_double_eq(got[0], 1e300);
    ck_assert(signbit(got[1]));
    ck_assert_hob_ok(
        hob_read_i64(hob_from_i32(io.scope, device_of(_i), i32, shape, 1),
                     whole, 2, &error));
    ck_assert_int_eq(whole[0], INT32_MIN);
    ck_assert_hob_ok(
        hob_read_i64(hob_from_i64(io.scope, device_of(_i), i64, shape, 1),
                     whole, 2, &error));
    ck_assert_mem_eq(whole, i64, sizeof(i64));
}
END_TEST

START_TEST(test_host_data_reads_16_bit_floats)
{
    const uint16_t f16[3] = {0x3c00, 0x0001, 0xfc00};
    const uint16_t bf16[3] = {0x3f80, 0xc2f7, 0x0001};
    const int64_t shape[1] = {3};
    float got[3];

    ck_assert_hob_ok(hob_read_f32(
        hob_from_data(io.scope, device_of(_i), HOB_DTYPE_F16, f16, shape, 1),
        got, 3, &error));
    ck_assert_float_eq(got[0], 1.0f);
    ck_assert_float_eq(got[1], 0x1p-24f);
    ck_assert_float_eq(got[2], -INFINITY);
    ck_assert_hob_ok(hob_read_f32(
        hob_from_data(io.scope, device_of(_i), HOB_DTYPE_BF16, bf16, shape, 1),
        got, 3, &error));
    ck_assert_float_eq(got[0], 1.0f);
    ck_assert_float_eq(got[1], -123.5f);
}
END_TEST

START_TEST(test_host_data_wide_integers)
{
    const uint64_t u64[2] = {UINT64_MAX, UINT64_C(1) << 63};
    /* Rounds up as an f32; by way of a double it would round down, which is
     * what valgrind does: so this is compared to the machine at hand. */
    const int64_t tie[1] = {(INT64_C(1) << 54) + (INT64_C(1) << 30) + 1};
    const int64_t two[1] = {2};
    const int64_t one[1] = {1};
    hob_tensor *wide =
        hob_from_data(io.scope, io.device, HOB_DTYPE_U64, u64, two, 1);
    double got[2];
    int64_t whole[2];
    volatile int64_t machine = tie[0]; /* converted at run time */
    float narrow;

    ck_assert_hob_ok(hob_read_f64(wide, got, 2, &error));
    ck_assert_double_eq(got[0], 0x1p64);
    ck_assert_hob_fails(hob_read_i64(wide, whole, 2, &error), HOB_ERR_RANGE,
                        "element 0");
    ck_assert_hob_ok(hob_read_f32(
        hob_from_i64(io.scope, io.device, tie, one, 1), &narrow, 1, &error));
    ck_assert_float_eq(narrow, (float)machine);
}
END_TEST

static const struct not_whole {
    double number;
    hob_status status;
    int64_t whole;
} not_wholes[] = {
    {2.9, HOB_OK, 2},
    {-2.9, HOB_OK, -2},
    {-0x1p63, HOB_OK, INT64_MIN},
    {0x1p63, HOB_ERR_RANGE, 0},
    {NAN, HOB_ERR_RANGE, 0},
    {-INFINITY, HOB_ERR_RANGE, 0},
};

START_TEST(test_host_data_reads_floats_as_integers)
{
    const struct not_whole *row = &not_wholes[_i];
    hob_tensor *tensor =
        hob_from_f64(io.scope, io.device, &row->number, NULL, 0);
    int64_t whole = 0;

    ck_assert_int_eq(hob_read_i64(tensor, &whole, 1, &error), row->status);
    if (!row->status)
        ck_assert_int_eq(whole, row->whole);
}
END_TEST

START_TEST(test_host_data_item)
{
    const double number = 6.25;
    const int64_t ones[3] = {1, 1, 1};
    const int64_t two[1] = {2};
    const float pair[2] = {1, 2};
    double got = 0;

    ck_assert_hob_ok(hob_item(
        hob_from_f64(io.scope, device_of(_i), &number, NULL, 0), &got, &error));
    ck_assert_double_eq(got, 6.25);
    ck_assert_hob_ok(hob_item(
        hob_from_f64(io.scope, device_of(_i), &number, ones, 3), &got, &error));
    ck_assert_hob_fails(
        hob_item(hob_from_f32(io.scope, device_of(_i), pair, two, 1), &got,
                 &error),
        HOB_ERR_ARGUMENT, "f32[2] has 2 elements, the buffer is for 1");
}
END_TEST

START_TEST(test_host_data_empty)
{
    const int64_t shape[3] = {2, 0, 3};
    hob_tensor *tensor = hob_from_f32(io.scope, device_of(_i), NULL, shape, 3);

    ck_assert_hob_ok(hob_tensor_status(tensor, &error));
    ck_assert_int_eq(hob_tensor_count(tensor), 0);
    ck_assert_hob_ok(hob_read(tensor, NULL, 0, &error));
    ck_assert_hob_ok(hob_read_f32(tensor, NULL, 0, &error));
}
END_TEST

START_TEST(test_host_data_bools_become_0_or_1)
{
    const unsigned char in[4] = {0, 1, 2, 255};
    const int64_t shape[1] = {4};
    unsigned char out[4];

    ck_assert_hob_ok(hob_read(
        hob_from_data(io.scope, device_of(_i), HOB_DTYPE_BOOL, in, shape, 1),
        out, 4, &error));
    ck_assert_mem_eq(out, "\0\1\1\1", 4);
}
END_TEST

START_TEST(test_host_data_reads_views_in_order)
{
    const float data[6] = {0, 1, 2, 3, 4, 5};
    const int64_t shape[2] = {2, 3};
    const int64_t axes[2] = {1, 0};
    hob_tensor *tensor = hob_from_f32(io.scope, device_of(_i), data, shape, 2);
    float got[6];

    ck_assert_hob_ok(
        hob_read_f32(hob_permute(io.scope, tensor, axes, 2), got, 6, &error));
    ck_assert_float_eq(got[1], 3.0f);
    ck_assert_float_eq(got[2], 1.0f);
    ck_assert_hob_ok(
        hob_read(hob_flip(io.scope, tensor, axes, 2), got, 24, &error));
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(got[i], (float)(5 - i));
}
END_TEST

/* A view of one element can, as a copy, be larger than any memory: a buffer
 * of the wrong size is refused before that. */
START_TEST(test_host_data_checks_sizes_before_it_copies)
{
    const float one = 1;
    const int64_t shape[2] = {1, 1};
    const int64_t large[2] = {INT64_C(1) << 30, INT64_C(1) << 30};
    hob_tensor *tensor = hob_expand(
        io.scope, hob_from_f32(io.scope, device_of(_i), &one, shape, 2), large,
        2);
    float got;

    ck_assert_hob_fails(hob_read(tensor, &got, sizeof(got), &error),
                        HOB_ERR_ARGUMENT, "the buffer 4");
    ck_assert_hob_fails(hob_read_f32(tensor, &got, 1, &error), HOB_ERR_ARGUMENT,
                        "the buffer is for 1");
    ck_assert_hob_fails(hob_item(tensor, &(double){0}, &error),
                        HOB_ERR_ARGUMENT, "the buffer is for 1");
}
END_TEST

static const struct bad_shape {
    hob_dtype dtype;
    int32_t rank;
    int64_t shape[2];
    hob_status status;
    const char *message;
} bad_shapes[] = {
    {HOB_DTYPE_F32, -1, {1}, HOB_ERR_SHAPE, "rank -1"},
    {HOB_DTYPE_F32, 9, {1}, HOB_ERR_SHAPE, "rank 9"},
    {HOB_DTYPE_F32, 1, {-2}, HOB_ERR_SHAPE, "-2 of dimension 0"},
    {HOB_DTYPE_F64, 2, {INT64_MAX, 2}, HOB_ERR_SHAPE, "larger than any"},
    {HOB_DTYPE_F64, 2, {0, INT64_MAX}, HOB_ERR_SHAPE, "larger than any"},
    {HOB_DTYPE_U8, 1, {INT64_C(1) << 50}, HOB_ERR_MEMORY, "no memory"},
    {HOB_DTYPE_NONE, 1, {1}, HOB_ERR_DTYPE, "none"},
    {HOB_DTYPE_QUANT, 1, {1}, HOB_ERR_DTYPE, "quant"},
    {(hob_dtype)99, 1, {1}, HOB_ERR_DTYPE, "99"},
};

START_TEST(test_host_data_rejects)
{
    const struct bad_shape *bad = &bad_shapes[_i];
    const double data[16] = {0};
    hob_tensor *tensor = hob_from_data(io.scope, io.device, bad->dtype, data,
                                       bad->shape, bad->rank);
    float got;

    ck_assert_hob_fails(hob_tensor_status(tensor, &error), bad->status,
                        bad->message);
    ck_assert_hob_fails(hob_scope_error(io.scope, &error), bad->status,
                        bad->message);
    /* Reading it reports the first cause. */
    ck_assert_hob_fails(hob_read_f32(tensor, &got, 1, &error), bad->status,
                        bad->message);
    hob_scope_clear_error(io.scope);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("host_data");
    TCase *tc = tcase_create("host_data");

    suite_add_tcase(suite, tc);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_host_data_round_trip_of_each_dtype, 0, 2);
    tcase_add_loop_test(tc, test_host_data_typed_makers, 0, 2);
    tcase_add_loop_test(tc, test_host_data_reads_16_bit_floats, 0, 2);
    tcase_add_test(tc, test_host_data_wide_integers);
    tcase_add_loop_test(tc, test_host_data_reads_floats_as_integers, 0,
                        sizeof(not_wholes) / sizeof(not_wholes[0]));
    tcase_add_loop_test(tc, test_host_data_item, 0, 2);
    tcase_add_loop_test(tc, test_host_data_empty, 0, 2);
    tcase_add_loop_test(tc, test_host_data_bools_become_0_or_1, 0, 2);
    tcase_add_loop_test(tc, test_host_data_reads_views_in_order, 0, 2);
    tcase_add_loop_test(tc, test_host_data_checks_sizes_before_it_copies, 0, 2);
    tcase_add_loop_test(tc, test_host_data_rejects, 0,
                        sizeof(bad_shapes) / sizeof(bad_shapes[0]));
    return hob_check_main(suite);
}
