/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of random ops, and of random views, under fusion: what comes out is
 * what they give one by one.
 */
#include "fusion_fixture.h"
#include "hob_check.h"
#include "test_device.h"
#include "op_fixture.h"

#include <hob/hob.h>

#include <math.h>
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

/* ---- that it is right ---- */

enum { MOST = 24, SHAPES = 6 };

/* The last dimension may become short: some ops are taken into groups then. */
static int64_t shapes[SHAPES][3] = {{4, 6, 33}, {1, 6, 33}, {4, 1, 33},
                                    {4, 6, 1},  {1, 1, 33}, {4, 1, 1}};

static void set_last(int64_t size)
{
    for (int i = 0; i < SHAPES; i++)
        if (shapes[i][2] != 1)
            shapes[i][2] = size;
}

static uint32_t below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)((op_random(state) + 1) / 2 * limit);
}

/* One op of a random program on VALUES, COUNT of them. */
static hob_tensor *random_op(hob_scope *where, hob_tensor **values, int count,
                             uint64_t *state)
{
    hob_tensor *x = values[(int)((op_random(state) + 1) / 2 * count)];
    hob_tensor *y = values[(int)((op_random(state) + 1) / 2 * count)];
    const int32_t rank = hob_tensor_rank(x);
    const int64_t last[] = {-1, -2};

    switch ((int)((op_random(state) + 1) * 15.5)) {
    case 0:
        return hob_add(where, x, y);
    case 1:
        return hob_mul(where, x, y);
    case 2:
        return hob_sub(where, x, y);
    case 3:
        return hob_maximum(where, x, y);
    case 4:
        return hob_tanh(where, x);
    case 5:
        return hob_sigmoid(where, x);
    case 6:
        return hob_relu(where, x);
    case 7:
        return hob_mul_scalar(where, x, hob_f64(0.75));
    case 8:
        return hob_clamp(where, x, hob_f64(-0.5), hob_none());
    case 9:
        return hob_where(where, hob_greater(where, x, y), x, y);
    case 10:
        return hob_mean_dim(where, x, rank - 1);
    case 11:
        return hob_max_dim(where, x, -1);
    case 12:
        return hob_sum_dims(where, hob_mul_scalar(where, x, hob_f64(0.05)),
                            last, 2);
    case 13:
        return hob_cast(where, hob_cast(where, x, HOB_DTYPE_F64),
                        HOB_DTYPE_F32);
    case 14:
        return hob_silu(where, x);
    case 15:
        return op_random(state) > 0 ? hob_softmax(where, x, rank - 1)
                                    : hob_log_softmax(where, x, -1);
    case 16:
        return hob_swap_dims(where, hob_swap_dims(where, x, 0, 1), 0, 1);
    case 17:
        return hob_flip(where, x, (const int64_t[]){2}, 1);
    case 18:
        return hob_add(where, x,
                       hob_full(where, shapes[0], 3, hob_f64(0.25),
                                hob_tensor_device(x), HOB_DTYPE_F32));
    case 19:
        return hob_layer_norm(where, x, NULL, NULL, 1e-3);
    case 20:
        return hob_hard_sigmoid(where, x, 0.2, 0.5);
    case 21:
        return hob_mask_fill(where, x, hob_less(where, x, y), hob_f64(0.1));
    case 22:
        return hob_mul(where, x, hob_mean(where, x));
    case 23:
        return hob_prelu(where, x,
                         fusion_numbers(where, hob_tensor_device(x),
                                        (const int64_t[]){1}, 1, 4));
    case 24:
        x = hob_permute(where, hob_mul_scalar(where, x, hob_f64(0.5)),
                        (const int64_t[]){2, 0, 1}, 3);
        x = hob_permute(where, hob_tanh(where, x), (const int64_t[]){1, 2, 0},
                        3);
        return hob_abs(where, x);
    case 25:
        return hob_sum_dim(where, hob_mul_scalar(where, x, hob_f64(0.05)), 0);
    case 26:
        return hob_mean_dims(where, x, (const int64_t[]){0, 2}, 2);
    case 27: {
        const int64_t *sizes = hob_tensor_shape(x);
        const int64_t shape[] = {sizes[0], sizes[1], sizes[2]};
        const int64_t joined[] = {shape[0] * shape[1], shape[2]};

        x = hob_reshape(where, hob_neg(where, x), joined, 2);
        return hob_reshape(where, hob_abs(where, x), shape, 3);
    }
    case 28: /* the last row of all, or column */
        x = hob_slice(where, hob_sigmoid(where, x), (const int64_t[]){0, -1}, 2,
                      (const int64_t[]){4, 6}, 2, (const int64_t[]){1, -1}, 2);
        return hob_neg(where, x);
    case 29: {
        const int64_t *c = &hob_tensor_shape(x)[1];
        const int64_t of[] = {1, 2, 3, 6}, groups = of[below(state, 4)];
        hob_tensor *w = fusion_numbers(where, hob_tensor_device(x), c, 1, 5);

        return hob_group_norm(where, x, *c % groups ? 1 : groups, w,
                              groups == 2 ? w : NULL, 1e-3);
    }
    default:
        x = hob_unsqueeze(where, hob_relu(where, x), 1);
        return hob_squeeze(where, hob_neg(where, x), (const int64_t[]){1}, 1);
    }
}

/* ---- views ---- */

/* A value of VALUES that X can be added to, as it has its elements, though
 * maybe under more dimensions; X itself if there is none soon. */
static hob_tensor *partner(hob_tensor *x, hob_tensor **values, int count,
                           uint64_t *state)
{
    const int32_t rank = hob_tensor_rank(x);

    for (int tries = 0; tries < 12; tries++) {
        hob_tensor *y = values[below(state, (uint32_t)count)];
        const int32_t more = hob_tensor_rank(y) - rank;
        int fits = hob_tensor_count(x) == hob_tensor_count(y);

        for (int32_t i = more < 0 ? -more : 0; i < rank && fits; i++)
            fits = hob_tensor_shape(x)[i] == hob_tensor_shape(y)[more + i];
        if (fits)
            return y;
    }
    return x;
}

/* A range of X in each dimension, by steps of either sign. */
static hob_tensor *random_range(hob_scope *where, hob_tensor *x,
                                uint64_t *state)
{
    static const int64_t by[] = {1, 1, 2, -1, -2};
    int64_t starts[HOB_MAX_RANK], ends[HOB_MAX_RANK], steps[HOB_MAX_RANK];
    const uint32_t rank = (uint32_t)hob_tensor_rank(x);

    for (uint32_t i = 0; i < rank; i++) {
        const uint32_t size = (uint32_t)hob_tensor_shape(x)[i];

        starts[i] = below(state, size / 2 + 1) * (size > 1);
        ends[i] = size - below(state, size / 2);
        steps[i] = by[below(state, 5)];
    }
    return hob_slice(where, x, starts, rank, ends, rank, steps, rank);
}

/* Two dimensions of X as one, or an even one as two. */
static hob_tensor *random_reshape(hob_scope *where, hob_tensor *x,
                                  uint64_t *state)
{
    const uint32_t rank = (uint32_t)hob_tensor_rank(x);
    const uint32_t at = below(state, rank);
    int64_t shape[HOB_MAX_RANK + 1];
    const int64_t *from = hob_tensor_shape(x);
    uint32_t count = 0;

    for (uint32_t i = 0; i < rank; i++) {
        shape[count++] = from[i];
        if (i == at && from[i] % 2 == 0 && rank < 5) {
            shape[count - 1] = 2;
            shape[count++] = from[i] / 2;
        } else if (i == at && i + 1 < rank) {
            shape[count - 1] *= from[++i];
        }
    }
    return hob_reshape(where, x, shape, count);
}

/* One op of a program of views on VALUES, COUNT of them, mostly the latest. */
static hob_tensor *random_view(hob_scope *where, hob_tensor **values, int count,
                               uint64_t *state)
{
    hob_tensor *x = values[count - 1 - (int)below(state, 4)];
    const uint32_t rank = (uint32_t)hob_tensor_rank(x);
    const int64_t dim = below(state, rank);

    switch (below(state, 14)) {
    case 0:
    case 1:
    case 2:
        return hob_add(where, x, partner(x, values, count, state));
    case 3:
        return hob_mul(where, partner(x, values, count, state),
                       hob_tanh(where, x));
    case 4:
        return hob_tanh(where, x);
    case 5:
        return hob_neg(where, x);
    case 6:
        return random_range(where, x, state);
    case 7:
    case 8:
        return random_reshape(where, x, state);
    case 9:
        return hob_swap_dims(where, x, dim, below(state, rank));
    case 10:
        return hob_flip(where, x, &dim, 1);
    case 11:
        return rank < 5 ? hob_unsqueeze(where, x, below(state, rank))
                        : hob_sigmoid(where, x);
    case 12:
        return hob_tensor_shape(x)[dim] == 1 && rank > 1
                   ? hob_squeeze(where, x, &dim, 1)
                   : hob_abs(where, x);
    default:
        return rank < 5 ? hob_unsqueeze(where, x, 0) : hob_relu(where, x);
    }
}

/* ---- programs ---- */

typedef hob_tensor *op_maker(hob_scope *, hob_tensor **, int, uint64_t *);

/* How the inputs of a program lie: that is none of what its plan depends on. */
enum lie { ROW_MAJOR, COLUMN_MAJOR, WITH_GAPS, TURNED_ROUND, LIES };

static hob_tensor *lying(hob_scope *where, hob_device *device,
                         const int64_t *shape, uint64_t seed, enum lie lie)
{
    const int64_t back[] = {2, 1, 0}, dims[] = {0, 2}, steps[] = {1, 1, 2};
    const int64_t starts[] = {0, 1, 1};
    int64_t sizes[3], ends[3];
    hob_tensor *x;

    for (int i = 0; i < 3; i++) {
        sizes[i] = lie == COLUMN_MAJOR ? shape[2 - i] : shape[i];
        if (lie == WITH_GAPS)
            sizes[i] = starts[i] + steps[i] * shape[i];
        ends[i] = sizes[i];
    }
    x = fusion_numbers(where, device, sizes, 3, seed);
    switch (lie) {
    case COLUMN_MAJOR:
        return hob_permute(where, x, back, 3);
    case WITH_GAPS:
        return hob_slice(where, x, starts, 3, ends, 3, steps, 3);
    case TURNED_ROUND:
        return hob_flip(where, x, dims, 2);
    default:
        return x;
    }
}

/* The program SEED of what MAKE makes on DEVICE, its inputs as LIE says; its
 * values are VALUES. */
static int random_program(hob_scope *where, hob_device *device, uint64_t seed,
                          op_maker *make, enum lie lie, hob_tensor **values)
{
    uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    int count = 0;

    for (; count < SHAPES; count++)
        values[count] = lying(where, device, shapes[count],
                              seed * 10 + (uint64_t)count, lie);
    for (int i = 0; i < 4; i++)
        (void)op_random(&state);
    for (; count < MOST; count++)
        values[count] = make(where, values, count, &state);
    return count;
}

static void check_same(hob_tensor *got, hob_tensor *want, uint64_t seed, int at)
{
    const int64_t count = hob_tensor_count(want);
    double *a = malloc((size_t)count * sizeof(*a));
    double *b = malloc((size_t)count * sizeof(*b));
    hob_error error = HOB_ERROR_INIT;

    ck_assert_int_eq(hob_tensor_count(got), count);
    ck_assert_hob_ok(hob_read_f64(got, a, count, &error));
    ck_assert_hob_ok(hob_read_f64(want, b, count, &error));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs(a[i] - b[i]) <= 2e-5 * fmax(1, fabs(b[i])),
                      "program %d, value %d, element %d: %.9g, not %.9g",
                      (int)seed, at, (int)i, a[i], b[i]);
    free(a);
    free(b);
}

/* Program NUMBER of what MAKE makes, its inputs as LIE says. */
static void check_program(uint64_t number, op_maker *make, enum lie lie)
{
    hob_scope *inner = hob_scope_child(f.scope);
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *got[MOST], *want[MOST];
    uint64_t state = number + 99;

    set_last(number % 2 ? 13 : 33);
    random_program(inner, f.lazy, number, make, lie, got);
    random_program(inner, f.plain, number, make, lie, want);
    /* All at once, one after the other, or some of them. */
    fusion_forget(&f);
    if (number % 3 == 0)
        ck_assert_hob_ok(hob_eval(got + SHAPES, MOST - SHAPES, &error));
    for (int i = MOST - 1; i >= SHAPES; i--)
        if (number % 3 != 2 || op_random(&state) > 0)
            check_same(got[i], want[i], number, i);
        else
            fusion_forget(&f);
    fusion_forget(&f);
    ck_assert_hob_ok(hob_scope_error(inner, &error));
    hob_scope_close(inner);
    fusion_forget(&f);
}

/* Programs from FIRST on, of what MAKE makes. */
static void check_programs(uint64_t first, op_maker *make)
{
    for (uint64_t number = first; number < first + 20; number++)
        check_program(number, make, ROW_MAJOR);
}

/* The same again, in windows that are known by then but for how their inputs
 * lie: as before, otherwise, and once more as at first. */
static void check_again(uint64_t first, op_maker *make)
{
    struct hob_fusion_stats before = HOB_FUSION_STATS_INIT, after = before;
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_fusion_report(f.lazy, &before, &error));
    for (uint64_t number = first; number < first + 4; number++)
        for (int i = 0; i <= LIES + 1; i++)
            check_program(3 * number, make,
                          (enum lie)(i && i <= LIES ? i - 1 : ROW_MAJOR));
    ck_assert_hob_ok(hob_fusion_report(f.lazy, &after, &error));
    ck_assert_uint_gt(after.plan_hits, before.plan_hits + 8);
}

START_TEST(test_fusion_of_random_programs)
{
    check_programs(1 + 20 * (uint64_t)_i, random_op);
}
END_TEST

START_TEST(test_fusion_of_random_views)
{
    check_programs(1 + 20 * (uint64_t)_i, random_view);
}
END_TEST

START_TEST(test_fusion_of_random_programs_again)
{
    check_again(1000 + 4 * (uint64_t)_i, random_op);
}
END_TEST

START_TEST(test_fusion_of_random_views_again)
{
    check_again(1000 + 4 * (uint64_t)_i, random_view);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion random");
    TCase *tc = tcase_create("random");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_fusion_of_random_programs, 0, 10);
    tcase_add_loop_test(tc, test_fusion_of_random_views, 0, 10);
    tcase_add_loop_test(tc, test_fusion_of_random_programs_again, 0, 10);
    tcase_add_loop_test(tc, test_fusion_of_random_views_again, 0, 10);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
