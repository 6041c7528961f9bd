/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interface "fused.compute" of the CPU backend: programs by hand and at
 * random, at every instruction set and on one thread and two, against the ops
 * called one by one. Maps must give the same bits.
 */
#include "fused_case.h"
#include "hob_check.h"
#include "test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NONE = HOB_FUSED_NONE, THREADS = 2 };

static const char *const isas[] = {"base", "v2", "v3", "v4"};
enum { ISAS = sizeof(isas) / sizeof(isas[0]) };

static hob_runtime *runtime;
static hob_scope *scope;

static void setup(void)
{
    struct hob_runtime_options options = test_options();
    hob_error error = HOB_ERROR_INIT;

    options.threads = THREADS;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    hob_scope_close(scope);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* Flex at level ISA on so many THREADS; 0 if it is not to be had. */
static int open_side(const char *isa, int threads, struct fused_side *out)
{
    char spec[64];
    hob_error error = HOB_ERROR_INIT;
    hob_device *device;

    snprintf(spec, sizeof(spec), "flex{isa=%s,threads=%d}", isa, threads);
    if (hob_device_open(runtime, spec, &device, &error)) {
        hob_error_release(&error);
        return 0;
    }
    *out = fused_side_of(scope, device);
    ck_assert_ptr_nonnull(out->fused);
    ck_assert_uint_eq(out->fused->struct_size, sizeof(*out->fused));
    return 1;
}

/* Run C on SIDES[0] and SIDES[1]: the same bytes, those of the reference. */
static void check_case(struct fused_case *c, struct fused_side *sides)
{
    uint64_t bytes, other_bytes;
    char *one, *other;

    ck_assert_int_eq(fused_case_run(c, &sides[1]), HOB_OK);
    other = fused_case_bytes(c, &other_bytes);
    ck_assert_int_eq(fused_case_run(c, &sides[0]), HOB_OK);
    one = fused_case_bytes(c, &bytes);
    ck_assert_uint_eq(bytes, other_bytes);
    ck_assert_msg(memcmp(one, other, bytes) == 0,
                  "threads change the result of\n%s", c->text);
    free(one);
    free(other);
    fused_case_check(c, &sides[0], runtime);
}

static uint64_t seed_of(int round)
{
    const char *text = getenv("HOB_TEST_SEED");

    return (text ? strtoull(text, NULL, 0) : UINT64_C(0x5eed)) * 1000003 +
           (uint64_t)round;
}

static void check_random(const char *isa, struct fused_wish wish, int rounds)
{
    struct fused_side sides[2];

    if (!open_side(isa, 1, &sides[0]))
        return;
    ck_assert(open_side(isa, THREADS, &sides[1]));
    /* There a round takes five times as long, and without them all are run. */
    if (HOB_BUILD_SANITIZERS)
        rounds = (rounds + 2) / 3;
    for (int round = 0; round < rounds; round++) {
        struct fused_case c;

        wish.seed = seed_of(round);
        fused_case_random(&c, &sides[0], &wish);
        check_case(&c, sides);
        fused_case_release(&c);
    }
    hob_device_unref(sides[0].device);
    hob_device_unref(sides[1].device);
}

START_TEST(test_fused_random_maps)
{
    check_random(isas[_i], (struct fused_wish){.steps_most = 12}, 150);
    check_random(isas[_i],
                 (struct fused_wish){.steps_most = HOB_FUSED_MAX_STEPS}, 20);
    check_random(isas[_i], (struct fused_wish){.steps_most = 10, .is_large = 1},
                 8);
}
END_TEST

START_TEST(test_fused_random_rows)
{
    check_random(isas[_i], (struct fused_wish){.steps_most = 12, .has_rows = 1},
                 150);
    check_random(
        isas[_i],
        (struct fused_wish){.steps_most = HOB_FUSED_MAX_STEPS, .has_rows = 1},
        20);
    check_random(
        isas[_i],
        (struct fused_wish){.steps_most = 10, .has_rows = 1, .is_large = 1}, 8);
    check_random(
        isas[_i],
        (struct fused_wish){.steps_most = 8, .has_rows = 1, .is_empty_row = 1},
        20);
}
END_TEST

/* ---- by hand ---- */

#define F32 HOB_DTYPE_F32
#define ONE(op, dtype, a)                                                      \
    fused_case_step(&c, op, dtype, a, NONE, NONE, 0, NULL, 0)
#define TWO(op, dtype, a, b)                                                   \
    fused_case_step(&c, op, dtype, a, b, NONE, 0, NULL, 0)

/* Run C, made on a space of [rows, n], at all levels; releases it. */
static void check_everywhere(struct fused_case *c)
{
    for (int i = 0; i < ISAS; i++) {
        struct fused_side sides[2];

        if (!open_side(isas[i], 1, &sides[0]))
            continue;
        ck_assert(open_side(isas[i], THREADS, &sides[1]));
        check_case(c, sides);
        hob_device_unref(sides[0].device);
        hob_device_unref(sides[1].device);
    }
    fused_case_release(c);
}

/* Rows in a block, a row a block, blocks of a row; few long rows. */
static const int64_t row_shapes[][2] = {
    {37, 1}, {500, 3},    {100, 65},  {7, 1024},   {3, 5000}, {2, 40000},
    {1, 7},  {1, 300000}, {1030, 70}, {5, 270001}, {70000, 2}};
enum { ROW_SHAPES = sizeof(row_shapes) / sizeof(row_shapes[0]) };

static const int64_t along_shapes[][2] = {{37, 1},   {500, 3}, {100, 65},
                                          {7, 1024}, {1, 7},   {1030, 70},
                                          {3, 2048}, {9, 17}};
enum { ALONG_SHAPES = sizeof(along_shapes) / sizeof(along_shapes[0]) };

/* Let OPERAND's rows lie side by side. */
static void as_columns(struct hob_fused_operand *operand, int64_t rows)
{
    operand->strides[0] = 1;
    operand->strides[1] = rows;
}

static void softmax_of(hob_dtype dtype, const int64_t *shape, int is_columns)
{
    struct fused_case c;
    uint32_t x, most, shifted, power, sum, out;

    fused_case_begin(&c, 1, 2, 1, shape);
    x = fused_case_input(&c, dtype, 0, 0);
    most = ONE(HOB_OP_MAX_DIM, dtype, x);
    shifted = TWO(HOB_OP_SUB, dtype, x, most);
    power = ONE(HOB_OP_EXP, dtype, shifted);
    sum = ONE(HOB_OP_SUM_DIM, dtype, power);
    out = TWO(HOB_OP_DIV, dtype, power, sum);
    fused_case_output(&c, out, 0, -1);
    fused_case_output(&c, most, 0, -1);
    fused_case_output(&c, sum, 0, -1);
    if (is_columns) {
        as_columns(&c.in[0], shape[0]);
        as_columns(&c.out[0], shape[0]);
    }
    check_everywhere(&c);
}

START_TEST(test_fused_softmax)
{
    for (int is_columns = 0; is_columns < 2; is_columns++) {
        softmax_of(HOB_DTYPE_F32, row_shapes[_i], is_columns);
        softmax_of(HOB_DTYPE_BF16, row_shapes[_i], is_columns);
        softmax_of(HOB_DTYPE_F64, row_shapes[_i], is_columns);
    }
}
END_TEST

/* Ops along rows as steps: what comes before and after, with vectors that are
 * the same for all rows or values of a step, and without. */
static void norms_of(hob_dtype dtype, const int64_t *shape, int is_columns)
{
    static const hob_value epsilon[] = {{.tag = HOB_TAG_F64, .u.f64 = 1e-3}};
    const uint32_t ops[] = {HOB_OP_LAYER_NORM, HOB_OP_RMS_NORM,
                            HOB_OP_LAYER_NORM, HOB_OP_SOFTMAX,
                            HOB_OP_LOG_SOFTMAX};

    for (int i = 0; i < 5; i++) {
        struct fused_case c;
        uint32_t x, y, w = NONE, b = NONE, out;

        fused_case_begin(&c, 8 + (uint64_t)i, 2, 1, shape);
        x = fused_case_input(&c, dtype, 0, 0);
        y = fused_case_input(&c, dtype, 0, 0);
        if (i < 2)
            w = fused_case_input(&c, dtype, 0, 0);
        if (i % 2 == 0 && i < 4)
            b = fused_case_input(&c, dtype, 0, 0);
        for (uint32_t k = y + 1; k < c.program.input_count; k++)
            c.in[k].strides[0] = 0;
        x = TWO(HOB_OP_ADD, dtype, x, y);
        out = fused_case_step(&c, ops[i], dtype, x, w, b, 0, epsilon, i < 3);
        fused_case_output(&c, out, 0, is_columns ? -1 : (int)y);
        fused_case_output(&c, ONE(HOB_OP_SUM_DIM, dtype, out), 0, -1);
        fused_case_output(&c, ONE(HOB_OP_NEG, dtype, out), 0, -1);
        if (is_columns) {
            as_columns(&c.in[0], shape[0]);
            as_columns(&c.out[0], shape[0]);
        }
        check_everywhere(&c);
    }
}

START_TEST(test_fused_ops_along_rows)
{
    for (int is_columns = 0; is_columns < 2; is_columns++) {
        norms_of(HOB_DTYPE_F32, along_shapes[_i], is_columns);
        norms_of(HOB_DTYPE_BF16, along_shapes[_i], is_columns);
        norms_of(HOB_DTYPE_F64, along_shapes[_i], is_columns);
    }
}
END_TEST

/* Rows that no block has room for are left to the ops. */
START_TEST(test_fused_leaves_long_rows)
{
    const int64_t shape[2] = {3, 1 << 22};
    struct fused_side side;
    struct fused_case c;
    uint32_t x;

    ck_assert(open_side("base", 1, &side));
    fused_case_begin(&c, 9, 2, 1, shape);
    x = fused_case_input(&c, F32, 0, 0);
    fused_case_output(&c, ONE(HOB_OP_SOFTMAX, F32, ONE(HOB_OP_NEG, F32, x)), 0,
                      -1);
    ck_assert_int_eq(fused_case_run(&c, &side), HOB_ERR_UNSUPPORTED);
    ck_assert_uint_eq(
        side.fused->body_cost(side.instance, HOB_OP_SOFTMAX, F32, shape[1]),
        HOB_FUSED_NEVER);
    fused_case_release(&c);
    hob_device_unref(side.device);
}
END_TEST

/* An early result lies over the input, which a later pass reads. */
START_TEST(test_fused_output_over_an_input_of_a_later_pass)
{
    struct fused_case c;
    uint32_t x, doubled, sum, out;

    fused_case_begin(&c, 2, 2, 1, row_shapes[_i]);
    x = fused_case_input(&c, F32, 0, 0);
    doubled = TWO(HOB_OP_ADD, F32, x, x);
    sum = ONE(HOB_OP_SUM_DIM, F32, doubled);
    out = TWO(HOB_OP_MUL, F32, x, sum);
    fused_case_output(&c, doubled, 0, (int)x);
    fused_case_output(&c, sum, 0, -1);
    fused_case_output(&c, out, 0, -1);
    check_everywhere(&c);
}
END_TEST

/* [batches, outer, rows, inner] in memory, of which rows are reduced over outer
 * and inner: columns of a matrix, few and many, in one block and in several;
 * channels of images; the middle of three dimensions. */
static const int64_t parts[][4] = {
    {1, 1000, 64, 1}, {1, 150, 2100, 1}, {1, 40000, 3, 1}, {1, 9, 5000, 1},
    {1, 70003, 1, 1}, {1, 1030, 47, 1},  {1, 6, 64, 49},   {1, 2, 3, 20000},
    {5, 11, 7, 1},    {3, 20, 9, 13},    {1, 257, 130, 2}, {2, 33, 3000, 1},
    {40, 50, 8, 1},   {2, 3, 2, 9000}};
enum { PARTS = sizeof(parts) / sizeof(parts[0]) };

/* Let OPERAND over [batches, rows, outer, inner] lie like that. */
static void lie_apart(struct hob_fused_operand *operand, const int64_t *sizes)
{
    operand->strides[3] = 1;
    operand->strides[1] = sizes[3];
    operand->strides[2] = sizes[2] * sizes[3];
    operand->strides[0] = sizes[1] * sizes[2] * sizes[3];
}

/* What comes before, beside and after reductions, and, where FOLLOWS, what
 * needs their results for each element. */
static void parts_of(hob_dtype dtype, const int64_t *sizes, int follows)
{
    const int64_t shape[] = {sizes[0], sizes[2], sizes[1], sizes[3]};
    struct fused_case c;
    uint32_t x, y, row, h, sum, most;

    fused_case_begin(&c, 11, 4, 2, shape);
    x = fused_case_input(&c, dtype, 0, 0);
    y = fused_case_input(&c, dtype, 0, 0);
    row = fused_case_input(&c, dtype, 1, 1);
    h = TWO(HOB_OP_RELU_BACKWARD, dtype, x, y);
    h = TWO(HOB_OP_ADD, dtype, h, row);
    fused_case_output(&c, h, 0, -1);
    lie_apart(&c.out[0], sizes);
    sum = ONE(HOB_OP_SUM_DIM, dtype, h);
    most = ONE(HOB_OP_MAX_DIM, dtype, ONE(HOB_OP_ABS, dtype, x));
    fused_case_output(&c, sum, 0, -1);
    fused_case_output(&c, most, 1, -1);
    fused_case_output(&c, ONE(HOB_OP_MEAN_DIM, dtype, x), 0, -1);
    fused_case_output(&c, TWO(HOB_OP_MUL, dtype, sum, row), 0, -1);
    if (follows) {
        h = TWO(HOB_OP_DIV, dtype, h, most);
        fused_case_output(&c, h, 0, -1);
        fused_case_output(&c, ONE(HOB_OP_SUM_DIM, dtype, h), 0, -1);
        lie_apart(&c.out[5], sizes);
    }
    lie_apart(&c.in[0], sizes);
    lie_apart(&c.in[1], sizes);
    check_everywhere(&c);
}

START_TEST(test_fused_rows_that_lie_apart)
{
    for (int follows = 0; follows < 2; follows++) {
        parts_of(HOB_DTYPE_F32, parts[_i], follows);
        parts_of(HOB_DTYPE_BF16, parts[_i], follows);
        parts_of(HOB_DTYPE_F64, parts[_i], follows);
    }
}
END_TEST

/* A value for each row is summed over it: as often as it has elements. */
START_TEST(test_fused_reduces_values_of_rows)
{
    const int64_t shape[2] = {11, 600};
    struct fused_side side;
    struct fused_case c;
    uint32_t x, sum, most;

    ck_assert(open_side("base", 1, &side));
    fused_case_begin(&c, 3, 2, 1, shape);
    x = fused_case_input(&c, HOB_DTYPE_I32, 1, 0);
    sum = ONE(HOB_OP_SUM_DIM, HOB_DTYPE_I32, x);
    most = ONE(HOB_OP_MAX_DIM, HOB_DTYPE_I32, sum);
    fused_case_output(&c, most, 0, -1);
    ck_assert_int_eq(fused_case_run(&c, &side), HOB_OK);
    for (int64_t i = 0; i < shape[0]; i++)
        ck_assert_int_eq(((const int32_t *)c.out[0].data)[i],
                         (int32_t)(600u * ((const uint32_t *)c.in[0].data)[i]));
    fused_case_release(&c);
    hob_device_unref(side.device);
}
END_TEST

/* Two ops in one link would be one rounding less: 1 + 2^-12 squared less its
 * rounded value. And -0 stays where a sum would lose it. */
START_TEST(test_fused_contracts_nothing)
{
    const int64_t shape[1] = {64};
    const hob_value factor[1] = {hob_f64(1 + 0x1p-12)};
    const hob_value less[1] = {hob_f64(-(1 + 0x1p-11))};
    const hob_value zero[1] = {hob_f64(-0.0)};

    for (int i = 0; i < ISAS; i++) {
        struct fused_side side;
        struct fused_case c;
        uint32_t x, h;

        if (!open_side(isas[i], 1, &side))
            continue;
        fused_case_begin(&c, 4, 1, 0, shape);
        x = fused_case_input(&c, F32, 0, 0);
        for (int k = 0; k < 64; k++)
            ((float *)(void *)c.in_memory[0].first)[k] = 1 + 0x1p-12f;
        h = fused_case_step(&c, HOB_OP_MUL_SCALAR, F32, x, NONE, NONE, 0,
                            factor, 1);
        h = fused_case_step(&c, HOB_OP_ADD_SCALAR, F32, h, NONE, NONE, 0, less,
                            1);
        fused_case_output(&c, h, 0, -1);
        h = fused_case_step(&c, HOB_OP_ADD_SCALAR, F32, h, NONE, NONE, 0, zero,
                            1);
        h = fused_case_step(&c, HOB_OP_MUL_SCALAR, F32, h, NONE, NONE, 0, zero,
                            1);
        fused_case_output(&c, h, 0, -1);
        ck_assert_int_eq(fused_case_run(&c, &side), HOB_OK);
        for (int k = 0; k < 64; k++) {
            ck_assert_float_eq(((const float *)c.out[0].data)[k], 0);
            ck_assert(signbit(((const float *)c.out[1].data)[k]));
        }
        fused_case_release(&c);
        hob_device_unref(side.device);
    }
}
END_TEST

/* A program whose result is A, or 1.25 of it, by OP with B by FIRST, a step
 * with a number: links have that as a part. WAY says which comes first, what
 * else reads that step, and what B is. */
static void check_aside(struct fused_side *sides, hob_dtype dtype,
                        uint32_t first, uint32_t op, uint32_t way)
{
    const int64_t shape[2] = {5, 67};
    const hob_value number[1] = {hob_f64(1 + 0x1p-10)};
    const hob_value scale[1] = {hob_f64(1.25)};
    const uint64_t seed = 1000 * op + 10 * first + way;
    struct fused_case c;
    uint32_t a, b, held, part;

    fused_case_begin(&c, seed, 2, 0, shape);
    a = fused_case_input(&c, dtype, 0, 0);
    b = fused_case_input(&c, dtype, 0, way & 2 ? 1 : 0);
    held = fused_case_step(&c, HOB_OP_MUL_SCALAR, dtype, a, NONE, NONE, 0,
                           scale, 1);
    part = fused_case_step(&c, first, dtype, way & 4 ? held : b, NONE, NONE, 0,
                           number, 1);
    a = way & 1 ? fused_case_step(&c, op, dtype, part, held, NONE, 0, NULL, 0)
                : fused_case_step(&c, op, dtype, held, part, NONE, 0, NULL, 0);
    a = fused_case_step(&c, HOB_OP_RELU, dtype, a, NONE, NONE, 0, NULL, 0);
    if (way & 8) /* it is wanted again */
        a = fused_case_step(&c, HOB_OP_SUB, dtype, a, part, NONE, 0, NULL, 0);
    fused_case_output(&c, a, 0, -1);
    if (way & 16)
        fused_case_output(&c, part, 0, -1);
    check_case(&c, sides);
    fused_case_release(&c);
}

START_TEST(test_fused_steps_aside)
{
    static const uint8_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64,
                                     HOB_DTYPE_BF16};
    static const uint32_t firsts[] = {HOB_OP_ADD_SCALAR, HOB_OP_SUB_SCALAR,
                                      HOB_OP_MUL_SCALAR, HOB_OP_RSUB_SCALAR};
    static const uint32_t ops[] = {HOB_OP_ADD, HOB_OP_SUB, HOB_OP_MUL,
                                   HOB_OP_DIV};
    enum { WAYS = 32 };
    struct fused_side sides[2];

    if (!open_side(isas[_i], 1, &sides[0]))
        return;
    ck_assert(open_side(isas[_i], THREADS, &sides[1]));
    for (uint32_t k = 0; k < 3 * 4 * 4; k++)
        for (uint32_t way = 0; way < WAYS; way++)
            check_aside(sides, (hob_dtype)dtypes[k % 3], firsts[k / 3 % 4],
                        ops[k / 12], way);
    hob_device_unref(sides[0].device);
    hob_device_unref(sides[1].device);
}
END_TEST

/* ---- failures ---- */

/* What is no program, or none for flex. */
START_TEST(test_fused_refuses)
{
    const int64_t shape[1] = {4};
    struct fused_side side;
    struct fused_case c;
    void *kernel = &side;
    char *message = NULL;

    ck_assert(open_side("base", 1, &side));
    fused_case_begin(&c, 5, 1, 0, shape);
    fused_case_input(&c, HOB_DTYPE_I32, 0, 0);
    fused_case_input(&c, F32, 0, 0);
    /* An integer may be divided by zero: that op must fail, not the group. */
    TWO(HOB_OP_DIV, HOB_DTYPE_I32, 0, 0);
    fused_case_output(&c, 2, 0, -1);
    ck_assert_int_eq(
        side.fused->compile(side.instance, &c.program, &kernel, &message),
        HOB_ERR_UNSUPPORTED);
    ck_assert_ptr_null(kernel);
    ck_assert_ptr_null(message);
    c.steps[0].op = HOB_OP_MATMUL;
    ck_assert_int_eq(
        side.fused->compile(side.instance, &c.program, &kernel, &message),
        HOB_ERR_UNSUPPORTED);
    c.steps[0].op = HOB_OP_ADD;
    c.steps[0].args[1] = 2; /* its own result */
    ck_assert_int_eq(
        side.fused->compile(side.instance, &c.program, &kernel, &message),
        HOB_ERR_UNSUPPORTED);
    fused_case_release(&c);
    hob_device_unref(side.device);
}
END_TEST

/* So many elements that their partial sums have no room; one is read. */
START_TEST(test_fused_says_that_memory_is_short)
{
    const int64_t shape[1] = {INT64_C(1) << 58};
    const int64_t one[1] = {1};
    struct hob_fused_run run = {.struct_size = sizeof(run), .name = "sum"};
    struct fused_side side;
    struct fused_case c;
    char *message = NULL;
    void *kernel;

    ck_assert(open_side("base", THREADS, &side));
    fused_case_begin(&c, 6, 1, 1, one);
    fused_case_input(&c, F32, 0, 0);
    ONE(HOB_OP_SUM, F32, 0);
    fused_case_output(&c, 1, 0, -1);
    c.in[0].strides[0] = 0;
    run.inputs = c.in;
    run.outputs = c.out;
    run.shape[0] = shape[0];
    ck_assert_int_eq(
        side.fused->compile(side.instance, &c.program, &kernel, &message),
        HOB_OK);
    ck_assert_int_eq(side.fused->run(side.instance, kernel, &run, &message),
                     HOB_ERR_MEMORY);
    ck_assert_ptr_nonnull(message);
    ck_assert_str_eq(message, "sum: no memory for values of a row");
    side.host->mem_free(side.host, message);
    run.shape[0] = 4; /* it can be used again */
    ck_assert_int_eq(side.fused->run(side.instance, kernel, &run, &message),
                     HOB_OK);
    side.fused->release(side.instance, kernel);
    fused_case_release(&c);
    hob_device_unref(side.device);
}
END_TEST

#undef F32
#undef ONE
#undef TWO

int main(void)
{
    Suite *suite = suite_create("fused");
    TCase *tc = tcase_create("flex");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    if (getenv("HOB_TEST_PLUGIN_DIR") && test_device_is_flex()) {
        tcase_add_loop_test(tc, test_fused_random_maps, 0, ISAS);
        tcase_add_loop_test(tc, test_fused_random_rows, 0, ISAS);
        tcase_add_loop_test(tc, test_fused_softmax, 0, ROW_SHAPES);
        tcase_add_loop_test(tc, test_fused_output_over_an_input_of_a_later_pass,
                            0, ROW_SHAPES);
        tcase_add_loop_test(tc, test_fused_ops_along_rows, 0, ALONG_SHAPES);
        tcase_add_loop_test(tc, test_fused_rows_that_lie_apart, 0, PARTS);
        tcase_add_test(tc, test_fused_leaves_long_rows);
        tcase_add_test(tc, test_fused_reduces_values_of_rows);
        tcase_add_test(tc, test_fused_contracts_nothing);
        tcase_add_loop_test(tc, test_fused_steps_aside, 0, ISAS);
        tcase_add_test(tc, test_fused_refuses);
        tcase_add_test(tc, test_fused_says_that_memory_is_short);
    }
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
