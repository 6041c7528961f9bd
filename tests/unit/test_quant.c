/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantized tensors: the formats against a backend that tries all codes, the
 * scales against formulas in double, and what every other op does with them.
 */
#include "hob_check.h"
#include "test_device.h"
#include "op_fixture.h"

#include <hob/ext/quant.h>

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static struct op_fixture f;
static hob_error error;

static void teardown(void)
{
    hob_error_release(&error);
    op_fixture_close(&f);
}

static int on_device(int which)
{
    op_fixture_open(&f, which);
    return f.device != NULL;
}

/* X with the scheme of one scale for all, or BLOCK. */
static hob_tensor *quantized(hob_tensor *x, uint32_t value, int64_t block)
{
    return hob_quantize_dynamic(
        f.scope, x, (enum hob_quantize_dynamic_value)(value - 1), &block,
        block != 0, HOB_DTYPE_F32, 0, HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
        HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
}

static hob_tensor *propagating(hob_tensor *x)
{
    return hob_quantize_dynamic(f.scope, x, HOB_QUANTIZE_DYNAMIC_VALUE_Q4S,
                                NULL, 0, HOB_DTYPE_F16, 0,
                                HOB_QUANTIZE_DYNAMIC_PROPAGATION_PROPAGATE,
                                HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
}

static hob_tensor *scales_of(hob_tensor *x, hob_tensor **out_global)
{
    hob_tensor *scales = NULL;

    *out_global = NULL;
    hob_quantized_scales(f.scope, x, &scales, out_global);
    return scales;
}

/* The scope failed with STATUS and a message with PART; forget it. */
static void check_fails(hob_status status, const char *part)
{
    ck_assert_hob_fails(op_failure(&f, &error), status, part);
}

/* ---- formats ---- */

enum { MOST = 5000 };

/* Numbers of several magnitudes, with zeros, ties and a few special ones. */
static void fill(double *data, int64_t count, uint64_t seed, int specials)
{
    for (int64_t i = 0; i < count; i++) {
        data[i] = op_random(&seed) * (i % 3 ? 4.0 : 0.03);
        if (i % 7 == 3)
            data[i] = nearbyint(data[i] * 2) / 2; /* ties with some scales */
        if (i % 11 == 5)
            data[i] = i % 2 ? 0.0 : -0.0;
        if (specials && i % 13 == 6)
            data[i] = i % 3 == 0 ? NAN : i % 3 == 1 ? INFINITY : -INFINITY;
    }
}

static const struct shape {
    int32_t rank;
    int64_t sizes[4];
} shapes[] = {{0, {0}},    {1, {1}},        {1, {7}},       {2, {5, 33}},
              {2, {3, 1}}, {3, {2, 3, 65}}, {2, {2, 2049}}, {4, {2, 1, 3, 5}},
              {2, {0, 5}}, {2, {4, 0}},     {1, {4099}}};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static int64_t count_of(const struct shape *shape)
{
    int64_t count = 1;

    for (int32_t i = 0; i < shape->rank; i++)
        count *= shape->sizes[i];
    return count;
}

static void same_bits(const char *what, hob_tensor *a, hob_tensor *b)
{
    static double left[MOST], right[MOST];
    int64_t count = hob_tensor_count(a);

    ck_assert_msg(count == hob_tensor_count(b), "%s: sizes", what);
    ck_assert_msg(hob_tensor_dtype(a) == hob_tensor_dtype(b), "%s: dtypes",
                  what);
    op_read(&f, a, left, count);
    op_read(&f, b, right, count);
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg((isnan(left[i]) && isnan(right[i])) ||
                          (left[i] == right[i] &&
                           !signbit(left[i]) == !signbit(right[i])),
                      "%s: element %" PRId64 " is %.17g and %.17g", what, i,
                      left[i], right[i]);
}

/* X and X_THERE, of another backend, quantized with equal scales are equal,
 * and so are the numbers that come back. */
static void check_format(const char *what, hob_device *there, hob_tensor *x,
                         uint32_t value, const int64_t *block,
                         uint32_t block_count, hob_dtype scale_dtype,
                         int global)
{
    hob_tensor *own_global, *other_global;
    hob_tensor *q = hob_quantize_dynamic(
        f.scope, x, (enum hob_quantize_dynamic_value)(value - 1), block,
        block_count, scale_dtype, global,
        HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
        HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
    hob_tensor *scales = scales_of(q, &own_global);
    hob_tensor *other = hob_quantize(
        f.scope, hob_to_device(f.scope, x, there),
        hob_to_device(f.scope, scales, there),
        own_global ? hob_to_device(f.scope, own_global, there) : NULL,
        (enum hob_quantize_value)(value - 1), block, block_count,
        HOB_QUANTIZE_PROPAGATION_INHIBIT);
    hob_tensor *moved = hob_to_device(f.scope, q, there);

    /* The scales are those of the body, which the reference runs. */
    same_bits(what, scales,
              scales_of(hob_quantize_dynamic(
                            f.scope, hob_to_device(f.scope, x, there),
                            (enum hob_quantize_dynamic_value)(value - 1), block,
                            block_count, scale_dtype, global,
                            HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
                            HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX),
                        &other_global));
    if (global)
        same_bits(what, own_global, other_global);
    ck_assert_int_eq(hob_tensor_dtype(q), HOB_DTYPE_QUANT);
    ck_assert(!own_global == !global);
    same_bits(what, hob_quantized_values(f.scope, q),
              hob_quantized_values(f.scope, other));
    same_bits(what, scales, scales_of(other, &other_global));
    /* All parts travel between backends, and both read them alike. */
    same_bits(what, hob_dequantize(f.scope, q, HOB_DTYPE_F32),
              hob_dequantize(f.scope, moved, HOB_DTYPE_F32));
    same_bits(what, hob_dequantize(f.scope, q, hob_tensor_dtype(x)),
              hob_dequantize(f.scope, other, hob_tensor_dtype(x)));
    same_bits(what, hob_dequantize(f.scope, q, HOB_DTYPE_F32),
              hob_cast(f.scope, hob_dequantize(f.scope, q, HOB_DTYPE_F64),
                       HOB_DTYPE_F32));
}

START_TEST(test_quant_formats_equal_the_reference)
{
    static const hob_dtype scale_dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F16,
                                             HOB_DTYPE_BF16};
    static const struct {
        uint32_t count;
        int64_t sizes[3];
    } blocks[] = {{0, {0}},    {1, {1}},    {1, {3}},       {1, {32}},
                  {1, {5000}}, {1, {0}},    {2, {2, 16}},   {2, {0, 1}},
                  {2, {4, 0}}, {2, {1, 7}}, {3, {2, 2, 1}}, {3, {0, 1, 4}}};
    enum { BLOCKS = sizeof(blocks) / sizeof(blocks[0]) };
    static double data[MOST];
    const struct shape *shape = &shapes[_i];
    hob_device *there = NULL;
    char what[128];

    if (!on_device(1))
        return;
    ck_assert_hob_ok(hob_device_open(f.runtime, "reference", &there, &error));
    for (uint32_t n = 0; n < 9 * BLOCKS * 3; n++) {
        uint32_t value = n % 9 + 1;
        uint32_t b = n / 9 % BLOCKS;
        hob_dtype scale_dtype = scale_dtypes[n / (9 * BLOCKS)];
        hob_dtype dtype = (hob_dtype)(HOB_DTYPE_F64 + n % 4);
        int64_t count = count_of(shape);
        hob_tensor *x;

        /* A third or a ninth of all for each shape, others for the next. */
        if ((n + n / 9 + (uint32_t)_i) % (test_device_is_slow() ? 9 : 3) ||
            (blocks[b].count > 1 && blocks[b].count > (uint32_t)shape->rank))
            continue;
        snprintf(what, sizeof(what), "format %u of %s, block %d, scales %s",
                 value, hob_dtype_name(dtype), (int)b,
                 hob_dtype_name(scale_dtype));
        fill(data, count, UINT64_C(88172645463325252) + n, n % 5 == 4);
        x = op_tensor(&f, dtype, data, shape->sizes, shape->rank);
        if (shape->rank > 1 && n % 2) /* strided too */
            x = hob_flip(f.scope, hob_swap_dims(f.scope, x, 0, 1),
                         (const int64_t[]){0}, 1);
        check_format(what, there, x, value, blocks[b].sizes, blocks[b].count,
                     scale_dtype, n % 3 == 1);
    }
    hob_device_unref(there);
}
END_TEST

/* Half the width of the ranges, and the step between neighbours near 0. */
START_TEST(test_quant_scales_are_the_greatest_magnitude_by_the_range)
{
    static const double halves[] = {127, 127.5, 7, 7.5, 1, 1.5, 448, 57344, 6};
    double data[2 * 37], got[2 * 37], scales[2 * 5];
    const int64_t shape[] = {2, 37};
    hob_tensor *global;

    if (!on_device(_i))
        return;
    fill(data, 74, 77, 0);
    for (uint32_t value = 1; value <= 9; value++) {
        hob_tensor *q =
            quantized(op_tensor(&f, HOB_DTYPE_F64, data, shape, 2), value, 8);

        op_read(&f, scales_of(q, &global), scales, 10);
        op_read(&f, hob_dequantize(f.scope, q, HOB_DTYPE_F64), got, 74);
        for (int r = 0; r < 2; r++)
            for (int b = 0; b < 5; b++) {
                double most = 0;
                double scale = scales[r * 5 + b];

                for (int c = b * 8; c < b * 8 + 8 && c < 37; c++)
                    most = fmax(most, fabs(data[r * 37 + c]));
                ck_assert_double_eq_tol(scale, most / halves[value - 1],
                                        most * 1e-7);
                /* Integers lie half a step away, at most; in the lopsided
                 * ranges the upper end half a step more. */
                for (int c = b * 8; c < b * 8 + 8 && c < 37 && value <= 6; c++)
                    ck_assert_double_le(
                        fabs(got[r * 37 + c] - data[r * 37 + c]),
                        scale * 0.500001);
            }
    }
}
END_TEST

START_TEST(test_quant_mean_of_magnitudes)
{
    const double data[] = {1, -3, 2, 0.5, -1, 4, 10};
    double scales[3];
    hob_tensor *global;
    hob_tensor *q;

    if (!on_device(_i))
        return;
    q = hob_quantize_dynamic(f.scope, op_vector(&f, HOB_DTYPE_F32, data, 7),
                             HOB_QUANTIZE_DYNAMIC_VALUE_Q2S,
                             (const int64_t[]){3}, 1, HOB_DTYPE_F32, 0,
                             HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
                             HOB_QUANTIZE_DYNAMIC_CALIBRATION_ABSMEAN);
    op_read(&f, scales_of(q, &global), scales, 3);
    ck_assert_double_eq_tol(scales[0], 2, 1e-6);
    ck_assert_double_eq_tol(scales[1], 5.5 / 3, 1e-6);
    ck_assert_double_eq_tol(scales[2], 10, 1e-6); /* a block of one */
    op_check(&f, "mean", hob_quantized_values(f.scope, q),
             (const double[]){0, -1, 1, 0, -1, 1, 1}, 7, 0);
    /* 0.5 of its scale is a tie: 1/2 goes to 0, as do even codes. */
}
END_TEST

START_TEST(test_quant_lies_in_memory_as_documented)
{
    const double q4[] = {1, -1, 7, -7, 2}, q2[] = {1, 0, -1, -1, 1, -1};
    const double one = 1;
    hob_tensor *scales;
    const unsigned char *bytes;
    hob_tensor *q;

    /* A GPU's memory is not to be looked at. */
    if ((_i > 0 && !test_device_is_flex()) || !on_device(_i))
        return;
    scales = op_tensor(&f, HOB_DTYPE_F32, &one, NULL, 0);
    q = hob_quantize(f.scope, op_vector(&f, HOB_DTYPE_F32, q4, 5), scales, NULL,
                     HOB_QUANTIZE_VALUE_Q4S, NULL, 0,
                     HOB_QUANTIZE_PROPAGATION_INHIBIT);
    ck_assert_hob_ok(hob_eval(&q, 1, NULL));
    bytes = hob_tensor_view(q)->data;
    ck_assert_uint_eq(bytes[0], 0xf1);
    ck_assert_uint_eq(bytes[1], 0x97);
    ck_assert_uint_eq(bytes[2] & 15, 2);
    ck_assert_mem_eq(bytes + 16, &(float){1}, 4);
    q = hob_quantize(f.scope, op_vector(&f, HOB_DTYPE_F32, q2, 6), scales, NULL,
                     HOB_QUANTIZE_VALUE_Q2S, NULL, 0,
                     HOB_QUANTIZE_PROPAGATION_INHIBIT);
    ck_assert_hob_ok(hob_eval(&q, 1, NULL));
    bytes = hob_tensor_view(q)->data;
    ck_assert_uint_eq(bytes[0], 0xf1); /* 01 00 11 11, low bits first */
    ck_assert_uint_eq(bytes[1] & 15, 13);
}
END_TEST

START_TEST(test_quant_of_what_is_not_finite_and_of_zeros)
{
    const double data[] = {NAN, INFINITY, -INFINITY, 2, -1};
    const double zeros[] = {0, 0, 0, 3, 0, 0};
    hob_tensor *x, *q;

    if (!on_device(_i))
        return;
    x = op_vector(&f, HOB_DTYPE_F32, data, 5);
    op_check(&f, "q8s", quantized(x, HOB_QUANT_Q8S, 0),
             (const double[]){0, 2, -2, 2, -1}, 5, 0.01);
    op_check(&f, "e4m3", quantized(x, HOB_QUANT_E4M3, 0),
             (const double[]){NAN, 2, -2, 2, -1}, 5, 1e-6);
    op_check(&f, "e2m1", quantized(x, HOB_QUANT_E2M1, 0),
             (const double[]){0, 2, -2, 2, -1}, 5, 1e-6);
    /* A block of zeros has the scale 0. */
    q = quantized(op_vector(&f, HOB_DTYPE_F32, zeros, 6), HOB_QUANT_Q8S, 2);
    op_check(&f, "zeros", q, zeros, 6, 1e-6);
    q = hob_quantize_dynamic(f.scope, op_vector(&f, HOB_DTYPE_F16, zeros, 3),
                             HOB_QUANTIZE_DYNAMIC_VALUE_Q4S,
                             (const int64_t[]){2}, 1, HOB_DTYPE_F16, 1,
                             HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
                             HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
    op_check(&f, "zeros of a global scale", q, zeros, 3, 0);
}
END_TEST

START_TEST(test_quant_from_its_parts)
{
    double data[3 * 21], scale_data[] = {0.5, 0.25, 2};
    const int64_t shape[] = {3, 21}, column[] = {3, 1};
    hob_tensor *values, *scales, *global, *q, *again;

    if (!on_device(_i))
        return;
    fill(data, 63, 99, 0);
    for (uint32_t value = 1; value <= 9; value++) {
        q = quantized(op_tensor(&f, HOB_DTYPE_F32, data, shape, 2), value, 5);
        scales = scales_of(q, &global);
        again = hob_quantized_from(
            f.scope, hob_quantized_values(f.scope, q), scales, global,
            (enum hob_quantized_from_value)(value - 1), (const int64_t[]){5}, 1,
            HOB_QUANTIZED_FROM_PROPAGATION_INHIBIT);
        same_bits("parts", q, again);
    }
    /* One scale a row: a block of the whole row. */
    for (int i = 0; i < 63; i++)
        data[i] = i % 15 - 7;
    values = op_tensor(&f, HOB_DTYPE_I8, data, shape, 2);
    scales = op_tensor(&f, HOB_DTYPE_F32, scale_data, column, 2);
    q = hob_quantized_from(f.scope, values, scales, NULL,
                           HOB_QUANTIZED_FROM_VALUE_Q4S, (const int64_t[]){0},
                           1, HOB_QUANTIZED_FROM_PROPAGATION_INHIBIT);
    for (int i = 0; i < 63; i++)
        data[i] *= scale_data[i / 21];
    op_check(&f, "rows", q, data, 63, 0);
}
END_TEST

START_TEST(test_quant_refuses_bad_arguments)
{
    const double data[] = {1, 2, 3, 4}, bad[] = {1, -1};
    hob_tensor *x, *one, *two;

    if (!on_device(1))
        return;
    x = op_vector(&f, HOB_DTYPE_F32, data, 4);
    one = op_vector(&f, HOB_DTYPE_F32, data, 1);
    two = op_vector(&f, HOB_DTYPE_F32, bad, 2);
    hob_quantize(f.scope, x, two, NULL, HOB_QUANTIZE_VALUE_Q8S, NULL, 0,
                 HOB_QUANTIZE_PROPAGATION_INHIBIT);
    check_fails(HOB_ERR_SHAPE, "scales are f32[2]; for q8s[4] they must");
    hob_quantize(f.scope, x, two, NULL, HOB_QUANTIZE_VALUE_Q8S,
                 (const int64_t[]){2}, 1, HOB_QUANTIZE_PROPAGATION_INHIBIT);
    check_fails(HOB_ERR_RANGE, "scale 1 is -1");
    hob_quantize(f.scope, x, two, NULL, HOB_QUANTIZE_VALUE_Q8S,
                 (const int64_t[]){-1}, 1, HOB_QUANTIZE_PROPAGATION_INHIBIT);
    check_fails(HOB_ERR_RANGE, "block is [-1]; it must be the size");
    hob_quantize(f.scope, x, two, NULL, HOB_QUANTIZE_VALUE_Q8S,
                 (const int64_t[]){2, 2}, 2, HOB_QUANTIZE_PROPAGATION_INHIBIT);
    check_fails(HOB_ERR_SHAPE, "block [2,2] has more dimensions than f32[4]");
    hob_quantize(f.scope,
                 hob_reshape(f.scope,
                             hob_expand(f.scope, x, (const int64_t[]){9, 4}, 2),
                             (const int64_t[]){6, 6}, 2),
                 two, NULL, HOB_QUANTIZE_VALUE_Q8S, (const int64_t[]){3, 6}, 2,
                 HOB_QUANTIZE_PROPAGATION_INHIBIT);
    check_fails(HOB_ERR_RANGE, "block is [3,6]; it must be");
    hob_quantize(f.scope, x, hob_cast(f.scope, one, HOB_DTYPE_F64), NULL,
                 HOB_QUANTIZE_VALUE_Q8S, NULL, 0,
                 HOB_QUANTIZE_PROPAGATION_INHIBIT);
    check_fails(HOB_ERR_DTYPE, "scales cannot be f64");
    hob_quantize(f.scope, x, one, two, HOB_QUANTIZE_VALUE_Q8S, NULL, 0,
                 HOB_QUANTIZE_PROPAGATION_INHIBIT);
    check_fails(HOB_ERR_SHAPE, "global_scale is f32[2]");
    hob_quantized_from(f.scope, hob_cast(f.scope, x, HOB_DTYPE_I8), one, NULL,
                       HOB_QUANTIZED_FROM_VALUE_Q2F, NULL, 0,
                       HOB_QUANTIZED_FROM_PROPAGATION_INHIBIT);
    check_fails(HOB_ERR_RANGE, "value 1 is 2, which is no code of q2f");
    hob_quantized_from(f.scope, hob_cast(f.scope, x, HOB_DTYPE_I32), one, NULL,
                       HOB_QUANTIZED_FROM_VALUE_Q8S, NULL, 0,
                       HOB_QUANTIZED_FROM_PROPAGATION_INHIBIT);
    check_fails(HOB_ERR_DTYPE, "codes are i8");
    hob_dequantize(f.scope, x, HOB_DTYPE_F32);
    check_fails(HOB_ERR_DTYPE, "must be Quantized: use hob_quantize_dynamic");
    hob_dequantize(f.scope, quantized(x, HOB_QUANT_Q8S, 0), HOB_DTYPE_I32);
    check_fails(HOB_ERR_DTYPE, "dtype is i32");
    /* 1e30 / 127 is no f16. */
    hob_quantize_dynamic(f.scope, hob_mul_scalar(f.scope, x, hob_f64(1e30)),
                         HOB_QUANTIZE_DYNAMIC_VALUE_Q8S, NULL, 0, HOB_DTYPE_F16,
                         0, HOB_QUANTIZE_DYNAMIC_PROPAGATION_INHIBIT,
                         HOB_QUANTIZE_DYNAMIC_CALIBRATION_MINMAX);
    check_fails(HOB_ERR_RANGE, "scale 0 is inf");
}
END_TEST

/* ---- other ops ---- */

static const int64_t shape_3x4[] = {3, 4};
static const double data_3x4[] = {0, -1, 2.5, 3, 4, -5, 6, 7, -8, 9, 0.3, 11};

static hob_tensor *make_3x4(void)
{
    return op_tensor(&f, HOB_DTYPE_F32, data_3x4, shape_3x4, 2);
}

START_TEST(test_quant_arithmetic_gives_floats_unless_it_propagates)
{
    hob_tensor *x, *q, *p, *y;

    if (!on_device(_i))
        return;
    x = make_3x4();
    q = quantized(x, HOB_QUANT_Q8S, 0);
    p = propagating(x);
    y = hob_add(f.scope, q, p);
    same_bits("add", y,
              hob_add(f.scope, hob_dequantize(f.scope, q, HOB_DTYPE_F32),
                      hob_dequantize(f.scope, p, HOB_DTYPE_F32)));
    y = hob_add(f.scope, p, q); /* the first argument's scheme counts */
    ck_assert_int_eq(hob_tensor_dtype(y), HOB_DTYPE_QUANT);
    ck_assert_uint_eq(hob_tensor_view(y)->scheme, hob_tensor_view(p)->scheme);
    y = hob_exp(f.scope, hob_mul_scalar(f.scope, p, hob_f64(0.1)));
    ck_assert_uint_eq(hob_tensor_view(y)->scheme, hob_tensor_view(p)->scheme);
    /* Integers and truths are plain in any case, and so is a cast. */
    ck_assert_int_eq(hob_tensor_dtype(hob_argmax(f.scope, p, 1, HOB_DTYPE_I64)),
                     HOB_DTYPE_I64);
    ck_assert_int_eq(
        hob_tensor_dtype(hob_greater_scalar(f.scope, p, hob_f64(1))),
        HOB_DTYPE_BOOL);
    ck_assert_int_eq(hob_tensor_dtype(hob_cast(f.scope, p, HOB_DTYPE_F16)),
                     HOB_DTYPE_F16);
    ck_assert_int_eq(hob_tensor_dtype(hob_cast(f.scope, q, HOB_DTYPE_I32)),
                     HOB_DTYPE_I32);
}
END_TEST

START_TEST(test_quant_takes_the_dtype_of_the_float_beside_it)
{
    hob_tensor *x, *q, *y;

    if (!on_device(_i))
        return;
    x = make_3x4();
    q = quantized(x, HOB_QUANT_Q8S, 2);
    for (uint32_t d = HOB_DTYPE_F64; d <= HOB_DTYPE_BF16; d++) {
        hob_tensor *w =
            hob_swap_dims(f.scope, hob_cast(f.scope, x, (hob_dtype)d), 0, 1);

        y = hob_matmul(f.scope, w, q);
        ck_assert_int_eq(hob_tensor_dtype(y), (int)d);
        y = hob_matmul(f.scope, q, w);
        ck_assert_int_eq(hob_tensor_dtype(y), (int)d);
    }
    y = hob_cat(f.scope,
                (hob_tensor *[]){hob_cast(f.scope, x, HOB_DTYPE_F16), q, q}, 3,
                0);
    ck_assert_uint_eq(hob_tensor_view(y)->scheme, hob_tensor_view(q)->scheme);
    ck_assert_int_eq(hob_tensor_shape(y)[0], 9);
}
END_TEST

/* Ops that move elements leave every code as it is, where one scale covers
 * them all: here it is not what they would be quantized with. */
START_TEST(test_quant_moved_elements_do_not_change)
{
    static const int64_t order[] = {1, 0}, flat[] = {2, 6}, wide[] = {2, 3, 4};
    static const int64_t starts[] = {2, 0}, ends[] = {0, 4}, steps[] = {-1, 3};
    const double scale = 0.125, index_data[] = {2, 0};
    hob_tensor *codes, *scales, *q, *index, *global, *moved[10], *want[10];
    hob_tensor *parts[2];
    uint32_t count;
    int n = 0;

    if (!on_device(_i))
        return;
    codes = hob_cast(f.scope, make_3x4(), HOB_DTYPE_I8);
    scales = op_tensor(&f, HOB_DTYPE_F32, &scale, NULL, 0);
    index = op_vector(&f, HOB_DTYPE_I32, index_data, 2);
    q = hob_quantized_from(f.scope, codes, scales, NULL,
                           HOB_QUANTIZED_FROM_VALUE_Q8F, NULL, 0,
                           HOB_QUANTIZED_FROM_PROPAGATION_PROPAGATE);
    for (int k = 0; k < 2; k++) {
        hob_tensor *x = k ? codes : q;
        hob_tensor **out = k ? want : moved;

        n = 0;
        out[n++] = hob_permute(f.scope, x, order, 2);
        out[n++] = hob_reshape(f.scope, x, flat, 2);
        out[n++] = hob_flip(f.scope, x, order, 2);
        out[n++] = hob_expand(f.scope, x, wide, 3);
        out[n++] = hob_unsqueeze(f.scope, x, 1);
        out[n++] = hob_slice(f.scope, x, starts, 2, ends, 2, steps, 2);
        out[n++] = hob_select(f.scope, x, index, 0);
        out[n++] = hob_repeat_dim(f.scope, x, 1, 3);
        ck_assert_int_eq(hob_split(f.scope, x, 2, 0, parts, 2, &count), HOB_OK);
        ck_assert_uint_eq(count, 2);
        out[n++] = parts[0];
        out[n++] = parts[1];
    }
    for (int i = 0; i < n; i++) {
        char what[32];

        snprintf(what, sizeof(what), "op %d", i);
        ck_assert_msg(hob_tensor_view(moved[i])->scheme ==
                          hob_tensor_view(q)->scheme,
                      "%s: the scheme", what);
        same_bits(what, hob_quantized_values(f.scope, moved[i]), want[i]);
        same_bits(what, scales_of(moved[i], &global), scales);
    }
}
END_TEST

/* ---- moved blocks ---- */

enum { MOVES = 21 };

/* Move X [4, 6, 8] in one of many ways: results into OUT, how many is
 * returned. */
static uint32_t move_blocks(int which, hob_tensor *x, hob_tensor **out)
{
    const int64_t order[] = {2, 0, 1}, axes[] = {-1, 0}, one[] = {1};
    const double index_data[] = {3, 0, 3};
    hob_tensor *index = op_vector(&f, HOB_DTYPE_I64, index_data, 3);
    hob_scope *s = f.scope;
    uint32_t count = 1;

#define SLICE(b0, b1, b2, e0, e1, e2, s0, s1, s2)                              \
    hob_slice(s, x, (const int64_t[]){b0, b1, b2}, 3,                          \
              (const int64_t[]){e0, e1, e2}, 3, (const int64_t[]){s0, s1, s2}, \
              3)
#define SHAPE(...)                                                             \
    (const int64_t[]){__VA_ARGS__},                                            \
        sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)
    switch (which) {
    case 0:
        out[0] = hob_permute(s, x, order, 3);
        break;
    case 1:
        out[0] = hob_swap_dims(s, x, -1, 0);
        break;
    case 2:
        out[0] = hob_move_dims(s, x, one, 1, (const int64_t[]){-1}, 1);
        break;
    case 3:
        out[0] = hob_reshape(s, x, SHAPE(24, 8));
        break;
    case 4:
        out[0] = hob_reshape(s, x, SHAPE(4, 6, 2, 4));
        break;
    case 5:
        out[0] = hob_reshape(s, x, SHAPE(192));
        break;
    case 6:
        out[0] = hob_unsqueeze(s, x, 1);
        break;
    case 7:
        out[0] = hob_squeeze(s, SLICE(1, 0, 0, 2, 6, 8, 1, 1, 1), SHAPE(0));
        break;
    case 8:
        out[0] = hob_flip(s, x, axes, 2);
        break;
    case 9:
        out[0] = hob_expand(s, hob_unsqueeze(s, x, 1), SHAPE(3, 4, 5, 6, 8));
        break;
    case 10:
        out[0] = hob_repeat_dim(s, x, 1, 3);
        break;
    case 11:
        out[0] = hob_repeat(s, x, SHAPE(2, 1, 2));
        break;
    case 12:
        out[0] = SLICE(2, 0, 4, 4, 6, 8, 1, 1, 1);
        break;
    case 13:
        out[0] = SLICE(1, 1, 5, 4, 6, 7, 2, -1, 1);
        break;
    case 14:
        out[0] = hob_select(s, x, index, 0);
        break;
    case 15:
        out[0] = hob_select(s, x, index, -1);
        break;
    case 16:
        ck_assert_int_eq(hob_split(s, x, 2, 0, out, 4, &count), HOB_OK);
        break;
    case 17:
        ck_assert_int_eq(
            hob_split_sizes(s, x, SHAPE(4, 1, 3), -1, out, 4, &count), HOB_OK);
        break;
    case 18:
        ck_assert_int_eq(hob_chunk(s, x, 2, 1, out, 4, &count), HOB_OK);
        break;
    case 19:
        out[0] = hob_roll(s, x, SHAPE(1, 3), axes, 2);
        break;
    default:
        out[0] = hob_contiguous(s, x);
    }
#undef SLICE
#undef SHAPE
    return count;
}

/* Which of the moves must not change a number, by the sizes of the blocks. */
static const struct {
    uint32_t count;
    int64_t block[3];
    const char *exact; /* a letter a move: 'x', or '.' if it may */
} moved_blocks[] = {
    {0, {0}, "xxxxxxxxxxxxxxxxxxxxx"},
    {1, {1}, "xxxxxxxxxxxxxxxxxxxxx"},
    {1, {4}, "xxxxxxxxxxxxxxx.xxx.x"},
    {1, {5}, "...x..xx..x..xx.xxx.x"},
    {2, {2, 4}, "xxxxx.xxxxxxx.x.xx..x"},
    {3, {2, 2, 8}, "xxx.x.xxxxxxx..xxx..x"},
    {3, {0, 1, 1}, "xxx.x.xxxxxxxxxxxxxxx"},
    {3, {1, 0, 0}, "xxx.xxxxxxxxxxxxxxxxx"},
    {3, {0, 2, 0}, "xxx.x.xxxxxxx.xxxx.xx"},
};
enum { MOVED_BLOCKS = sizeof(moved_blocks) / sizeof(moved_blocks[0]) };

/* Codes and scales at random: quantizing anew would change them. */
static hob_tensor *random_blocks(const int64_t *block, uint32_t count)
{
    const int64_t shape[] = {4, 6, 8};
    double codes[192], numbers[192];
    int64_t sizes[3], scales = 1;
    uint64_t seed = UINT64_C(0x9e3779b97f4a7c15);

    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t at = i + count - 3; /* wraps where there is none */
        int64_t size = i + count < 3 ? 1 : block[at];

        size = !size || size > shape[i] ? shape[i] : size;
        sizes[i] = (shape[i] + size - 1) / size;
        scales *= sizes[i];
    }
    for (int64_t i = 0; i < 192; i++)
        codes[i] = floor(op_random(&seed) * 6);
    for (int64_t i = 0; i < scales; i++)
        numbers[i] = 1.5 + op_random(&seed);
    return hob_quantized_from(
        f.scope, op_tensor(&f, HOB_DTYPE_I8, codes, shape, 3),
        op_tensor(&f, HOB_DTYPE_F32, numbers, sizes, count ? 3 : 0), NULL,
        HOB_QUANTIZED_FROM_VALUE_Q8S, block, count,
        HOB_QUANTIZED_FROM_PROPAGATION_INHIBIT);
}

START_TEST(test_quant_moved_blocks_do_not_change)
{
    const int64_t *block = moved_blocks[_i / 2].block;
    const uint32_t count = moved_blocks[_i / 2].count;
    hob_tensor *x, *moved[4], *want[4];

    if (!on_device(_i % 2))
        return;
    x = random_blocks(block, count);
    for (int which = 0; which < MOVES; which++) {
        const uint32_t n = move_blocks(which, x, moved);

        ck_assert_uint_eq(
            move_blocks(which, hob_dequantize(f.scope, x, HOB_DTYPE_F32), want),
            n);
        for (uint32_t i = 0; i < n; i++) {
            char what[64];
            static double got[MOST], numbers[MOST];
            int64_t size = hob_tensor_count(want[i]);

            snprintf(what, sizeof(what), "blocks %d, move %d, result %u",
                     _i / 2, which, i);
            ck_assert_msg(hob_tensor_dtype(moved[i]) == HOB_DTYPE_QUANT, "%s",
                          what);
            if (moved_blocks[_i / 2].exact[which] == 'x') {
                same_bits(what,
                          hob_dequantize(f.scope, moved[i], HOB_DTYPE_F32),
                          want[i]);
                continue;
            }
            op_read(&f, moved[i], got, size);
            op_read(&f, want[i], numbers, size);
            for (int64_t k = 0; k < size; k++)
                ck_assert_double_eq_tol(got[k], numbers[k], 0.1);
        }
    }
}
END_TEST

START_TEST(test_quant_kept_with_new_scales)
{
    hob_tensor *x, *q, *y, *where;

    if (!on_device(_i))
        return;
    x = make_3x4();
    q = quantized(x, HOB_QUANT_Q8S, 3);                /* 3 and 1 of a row */
    y = hob_flip(f.scope, q, (const int64_t[]){1}, 1); /* blocks are others */
    ck_assert_uint_eq(hob_tensor_view(y)->scheme, hob_tensor_view(q)->scheme);
    op_check(&f, "flip", hob_flip(f.scope, y, (const int64_t[]){1}, 1),
             data_3x4, 12, 0.05);
    y = hob_abs(f.scope, q);
    ck_assert_int_eq(hob_tensor_dtype(y), HOB_DTYPE_QUANT);
    hob_sort_with_indices(f.scope, q, 1, 0, HOB_DTYPE_I32, &y, &where);
    ck_assert_int_eq(hob_tensor_dtype(y), HOB_DTYPE_QUANT);
    ck_assert_int_eq(hob_tensor_dtype(where), HOB_DTYPE_I32);
    y = hob_max(f.scope, q); /* rank 0: a row of one */
    ck_assert_int_eq(hob_tensor_dtype(y), HOB_DTYPE_QUANT);
    op_check(&f, "max", y, (const double[]){11}, 1, 1e-5);
}
END_TEST

START_TEST(test_quant_errors_name_the_op)
{
    hob_tensor *x, *q;

    if (!on_device(_i))
        return;
    x = make_3x4();
    q = quantized(x, HOB_QUANT_Q8S, 0);
    hob_add(f.scope, q,
            hob_slice(f.scope, x, (const int64_t[]){0}, 1, (const int64_t[]){2},
                      1, (const int64_t[]){1}, 1));
    check_fails(HOB_ERR_SHAPE, "add (call ");
    hob_gather(f.scope, x, q, 0);
    check_fails(HOB_ERR_DTYPE, "indices is f32[3,4], it must be Int");
    hob_select(f.scope, q, hob_reshape(f.scope, q, (const int64_t[]){12}, 1),
               0);
    check_fails(HOB_ERR_DTYPE, "indices is f32[12], it must be Int");
    hob_bitwise_not(f.scope, q);
    check_fails(HOB_ERR_DTYPE, "x is f32[3,4], it must be Int");
    /* An error tensor beside it passes its own cause on. */
    x = hob_reshape(f.scope, x, (const int64_t[]){5}, 1);
    hob_scope_clear_error(f.scope);
    hob_add(f.scope, q, x);
    check_fails(HOB_ERR_SHAPE, "reshape (call ");
}
END_TEST

START_TEST(test_quant_arguments_can_be_moved)
{
    hob_tensor *x, *q, *y;

    if (!on_device(_i))
        return;
    x = make_3x4();
    q = quantized(x, HOB_QUANT_Q8S, 0);
    y = hob_add(f.scope, hob_move(f.scope, q), hob_move(f.scope, x));
    op_check(&f, "add", y,
             (const double[]){0, -2, 5, 6, 8, -10, 12, 14, -16, 18, 0.6, 22},
             12, 0.1);
    hob_neg(f.scope, q);
    check_fails(HOB_ERR_STATE, "moved into add");
    hob_neg(f.scope, x);
    check_fails(HOB_ERR_STATE, "moved into add");
    q = quantized(make_3x4(), HOB_QUANT_Q4S, 0);
    y = hob_cat(f.scope, (hob_tensor *[]){hob_move(f.scope, q)}, 1, 0);
    op_check(&f, "cat", hob_sub(f.scope, y, y), (const double[12]){0}, 12, 0);
    hob_neg(f.scope, q);
    check_fails(HOB_ERR_STATE, "moved into cat");
}
END_TEST

/* ---- layers, reading, saving ---- */

START_TEST(test_quant_is_a_constant_to_autodiff)
{
    hob_device *tracking = NULL;
    hob_tensor *x, *q, *y, *p, *dx = NULL;
    hob_grads *grads = NULL;

    if (!on_device(1))
        return;
    ck_assert_hob_ok(
        test_device_open(f.runtime, "autodiff(flex)", &tracking, &error));
    x = hob_require_grad(f.scope, hob_to_device(f.scope, make_3x4(), tracking));
    q = quantized(hob_swap_dims(f.scope, x, 0, 1), HOB_QUANT_Q8S, 3);
    ck_assert(!hob_is_tracked(q)); /* it detaches */
    ck_assert(!hob_is_tracked(hob_dequantize(f.scope, q, HOB_DTYPE_F32)));
    y = hob_matmul(f.scope, x, q);
    ck_assert(hob_is_tracked(y));
    ck_assert_hob_ok(
        hob_backward(f.scope, hob_sum(f.scope, y), 0, &grads, &error));
    ck_assert_hob_ok(hob_grad(f.scope, x, grads, &dx, &error));
    y = hob_sum_dim(f.scope, hob_dequantize(f.scope, q, HOB_DTYPE_F32), 1);
    same_bits("gradient", dx,
              hob_expand(f.scope, hob_swap_dims(f.scope, y, 0, 1),
                         (const int64_t[]){3, 4}, 2));
    /* A result that propagates is quantized, so nothing flows through it. */
    p = propagating(x);
    ck_assert(!hob_is_tracked(hob_mul(f.scope, p, x)));
    ck_assert(
        hob_is_tracked(hob_mul(f.scope, quantized(x, HOB_QUANT_Q4S, 0), x)));
    hob_require_grad(f.scope, q);
    check_fails(HOB_ERR_DTYPE, "quant");
    hob_grads_free(grads);
    hob_device_unref(tracking);
}
END_TEST

START_TEST(test_quant_is_read_as_numbers_and_saved_as_none)
{
    float floats[12];
    int64_t whole[12];
    unsigned char raw[64];
    hob_tensor *q;
    struct hob_named_tensor item = {"q", NULL};
    struct hob_dlpack_managed *managed = NULL;

    if (!on_device(_i))
        return;
    q = quantized(make_3x4(), HOB_QUANT_Q4F, 3);
    ck_assert_hob_ok(hob_read_f32(q, floats, 12, &error));
    for (int i = 0; i < 12; i++)
        ck_assert_double_eq_tol((double)floats[i], data_3x4[i], 1.0);
    same_bits("read", hob_dequantize(f.scope, q, HOB_DTYPE_F32),
              hob_from_f32(f.scope, f.device, floats, shape_3x4, 2));
    ck_assert_hob_ok(hob_read_i64(q, whole, 12, &error));
    ck_assert_hob_fails(hob_read_f32(q, floats, 11, &error), HOB_ERR_ARGUMENT,
                        "q4f/3[3,4] has 12 elements");
    ck_assert_hob_fails(hob_read(q, raw, 64, &error), HOB_ERR_DTYPE,
                        "q4f/3[3,4] is quantized: take its numbers with "
                        "hob_dequantize()");
    ck_assert_hob_fails(hob_npy_save("/nonexistent/x.npy", q, &error),
                        HOB_ERR_DTYPE, "quantized");
    ck_assert_hob_fails(hob_dlpack_export(q, &managed, &error),
                        HOB_ERR_UNSUPPORTED, "dequantize it");
    item.tensor = q;
    ck_assert_hob_fails(
        hob_safetensors_save("/nonexistent/x", &item, 1, NULL, 0, &error),
        HOB_ERR_UNSUPPORTED, "dequantize it");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("quant");
    TCase *tc = tcase_create("quant");

    tcase_set_timeout(tc, 120);
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, test_quant_formats_equal_the_reference, 0, SHAPES);
    tcase_add_loop_test(
        tc, test_quant_scales_are_the_greatest_magnitude_by_the_range, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_quant_mean_of_magnitudes, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_quant_lies_in_memory_as_documented, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_quant_of_what_is_not_finite_and_of_zeros, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_quant_from_its_parts, 0, OP_DEVICE_COUNT);
    tcase_add_test(tc, test_quant_refuses_bad_arguments);
    tcase_add_loop_test(
        tc, test_quant_arithmetic_gives_floats_unless_it_propagates, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_quant_takes_the_dtype_of_the_float_beside_it,
                        0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_quant_moved_elements_do_not_change, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_quant_moved_blocks_do_not_change, 0,
                        2 * MOVED_BLOCKS);
    tcase_add_loop_test(tc, test_quant_kept_with_new_scales, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_quant_errors_name_the_op, 0, OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_quant_arguments_can_be_moved, 0, OP_DEVICE_COUNT);
    tcase_add_test(tc, test_quant_is_a_constant_to_autodiff);
    tcase_add_loop_test(tc, test_quant_is_read_as_numbers_and_saved_as_none, 0,
                        OP_DEVICE_COUNT);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
