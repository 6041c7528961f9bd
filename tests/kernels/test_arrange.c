/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pad, roll, triu and tril in every dtype and layout, im2col and col2im in
 * every float dtype. Small integers: exact.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

enum { CONSTANT, REFLECT, EDGE };

static int64_t flat(uint32_t rank, const int64_t *shape, const int64_t *at)
{
    int64_t index = 0;

    for (uint32_t i = 0; i < rank; i++)
        index = index * shape[i] + at[i];
    return index;
}

static int low_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_BOOL ? 0 : -4;
}

static int high_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_BOOL ? 1 : 4;
}

/* Every element of the result is x's at what FROM makes of its position, or
 * OTHER where that answers 0. */
static void compare(struct fake_call *call, const struct hob_view *x,
                    int (*from)(const struct fake_call *call, int64_t *at),
                    double other)
{
    const struct hob_view *out = &call->results[0].view;

    for (int64_t i = 0; i < hob_view_count(out); i++) {
        int64_t at[HOB_MAX_RANK];
        double wanted = other, got = lab_get_at(out, i);

        lab_position(out->rank, out->shape, i, at);
        if (from(call, at))
            wanted = lab_get(x, at);
        ck_assert_msg(lab_near(got, wanted, 0), "%s %s element %d: %g, not %g",
                      call->call.op_name, hob_dtype_name(out->dtype), (int)i,
                      got, wanted);
    }
}

/* ---- pad ---- */

static const struct pad_case {
    int64_t shape[4];
    int64_t padding[8];
    uint32_t count;
} pads[] = {
    {{2, 3, 4, 5}, {0}, 0},
    {{2, 3, 4, 5}, {1, 2}, 2},
    {{2, 3, 4, 5}, {0, 0, 3, 1}, 4},
    {{2, 3, 4, 5}, {2, 0, 0, 3, 1, 1, 1, 0}, 8},
    {{3, 2, 1, 90}, {3, 70}, 2},
    {{2, 2, 2, 2}, {1, 1, 1, 1, 1, 1, 1, 1}, 8},
    /* Only for a constant. */
    {{2, 3, 4, 5}, {-1, 2, 5, -3}, 4},
    {{2, 3, 4, 5}, {-2, -3, 1, 1}, 4},
    {{2, 0, 4, 5}, {1, 1, 0, 0, 2, 1}, 6},
};

enum { PADS = sizeof(pads) / sizeof(pads[0]), PADS_OF_ALL = 6 };

static int from_pad(const struct fake_call *call, int64_t *at)
{
    const struct hob_view *x = hob_arg_view(&call->call, 0);
    const hob_value *padding = &call->args[1];
    const int64_t mode = call->args[2].u.i64;

    for (uint32_t i = 0; i < padding->count / 2; i++) {
        const int64_t n = x->shape[x->rank - 1 - i];
        int64_t *p = &at[x->rank - 1 - i];

        *p -= padding->u.i64s[2 * i];
        if (mode == CONSTANT && (*p < 0 || *p >= n))
            return 0;
        if (mode == REFLECT)
            *p = *p < 0 ? -*p : *p >= n ? 2 * n - 2 - *p : *p;
        else if (mode == EDGE)
            *p = *p < 0 ? 0 : *p >= n ? n - 1 : *p;
    }
    return 1;
}

static int reflects(const struct pad_case *c)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->padding[i] && c->padding[i] >= c->shape[3 - i / 2])
            return 0;
    return 1;
}

static void try_pad(struct lab *lab, const struct pad_case *c, int mode,
                    uint32_t dtype, enum lab_layout layout)
{
    struct lab_tensor x;
    struct fake_call call;
    int64_t shape[4];

    memcpy(shape, c->shape, sizeof(shape));
    for (uint32_t i = 0; i < c->count; i++)
        shape[3 - i / 2] += c->padding[i];
    lab_tensor_init(lab, &x, dtype, 4, c->shape, layout, low_of(dtype),
                    high_of(dtype));
    fake_call_init(&call, &lab->host, "pad");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_value_i64s(c->padding, c->count));
    fake_call_value(&call, hob_i64(mode));
    fake_call_value(&call, hob_i64(1));
    fake_call_result(&call, dtype, 4, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_arrange_entries), HOB_OK);
    compare(&call, &x.view, from_pad, 1);
    fake_call_release(&call);
    lab_tensor_release(&x);
}

START_TEST(test_arrange_pads)
{
    struct lab lab;

    ck_assert(lab_open(&lab, 2, NULL));
    for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (int l = 0; l < LAB_LAYOUT_COUNT_; l++)
            for (int mode = CONSTANT; mode <= EDGE; mode++)
                if (mode == CONSTANT ||
                    (_i < PADS_OF_ALL && (mode == EDGE || reflects(&pads[_i]))))
                    try_pad(&lab, &pads[_i], mode, dtype, (enum lab_layout)l);
    lab_close(&lab);
}
END_TEST

/* ---- roll ---- */

static int from_roll(const struct fake_call *call, int64_t *at)
{
    const struct hob_view *x = hob_arg_view(&call->call, 0);

    for (uint32_t i = 0; i < call->args[2].count; i++) {
        const int64_t given = call->args[2].u.i64s[i];
        const int64_t dim = given < 0 ? given + x->rank : given;
        const int64_t n = x->shape[dim];

        at[dim] = ((at[dim] - call->args[1].u.i64s[i] % n) % n + n) % n;
    }
    return 1;
}

START_TEST(test_arrange_rolls)
{
    static const struct {
        int64_t shifts[3], dims[3];
        uint32_t count;
    } rolls[] = {
        {{0}, {0}, 0},
        {{1}, {2}, 1},
        {{-2, 3}, {0, -2}, 2},
        {{5, -5, 7}, {1, 1, 0}, 3},
        {{INT64_MAX, INT64_MIN + 1, INT64_MAX}, {2, 2, 1}, 3},
    };
    const int64_t shape[3] = {3, 4, 65};
    struct lab lab;

    ck_assert(lab_open(&lab, 2, NULL));
    for (size_t k = 0; k < sizeof(rolls) / sizeof(rolls[0]); k++)
        for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
            for (int l = 0; l < LAB_LAYOUT_COUNT_; l++) {
                struct lab_tensor x;
                struct fake_call call;

                lab_tensor_init(&lab, &x, dtype, 3, shape, (enum lab_layout)l,
                                low_of(dtype), high_of(dtype));
                fake_call_init(&call, &lab.host, "roll");
                fake_call_view(&call, &x.view);
                fake_call_value(
                    &call, hob_value_i64s(rolls[k].shifts, rolls[k].count));
                fake_call_value(&call,
                                hob_value_i64s(rolls[k].dims, rolls[k].count));
                fake_call_result(&call, dtype, 3, shape);
                ck_assert_int_eq(lab_run(&lab, &call, &flex_arrange_entries),
                                 HOB_OK);
                compare(&call, &x.view, from_roll, 0);
                fake_call_release(&call);
                lab_tensor_release(&x);
            }
    lab_close(&lab);
}
END_TEST

/* ---- triangles ---- */

static int from_triu(const struct fake_call *call, int64_t *at)
{
    return (long double)at[2] - (long double)at[1] >=
           (long double)call->args[1].u.i64;
}

static int from_tril(const struct fake_call *call, int64_t *at)
{
    return (long double)at[2] - (long double)at[1] <=
           (long double)call->args[1].u.i64;
}

START_TEST(test_arrange_triangles)
{
    static const int64_t diagonals[] = {0,  1,  -1,        3,
                                        -4, 99, INT64_MAX, INT64_MIN};
    static const int64_t shapes[][3] = {{2, 5, 7}, {3, 6, 4}, {1, 1, 1}};
    const int64_t *shape = shapes[_i];
    struct lab lab;

    ck_assert(lab_open(&lab, 2, NULL));
    for (size_t k = 0; k < sizeof(diagonals) / sizeof(diagonals[0]); k++)
        for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
            for (int l = 0; l < 2 * LAB_LAYOUT_COUNT_; l++) {
                struct lab_tensor x;
                struct fake_call call;

                lab_tensor_init(&lab, &x, dtype, 3, shape,
                                (enum lab_layout)(l / 2), low_of(dtype),
                                high_of(dtype));
                fake_call_init(&call, &lab.host, l % 2 ? "triu" : "tril");
                fake_call_view(&call, &x.view);
                fake_call_value(&call, hob_i64(diagonals[k]));
                fake_call_result(&call, dtype, 3, shape);
                ck_assert_int_eq(lab_run(&lab, &call, &flex_arrange_entries),
                                 HOB_OK);
                compare(&call, &x.view, l % 2 ? from_triu : from_tril, 0);
                fake_call_release(&call);
                lab_tensor_release(&x);
            }
    lab_close(&lab);
}
END_TEST

/* ---- columns ---- */

static const struct columns_case {
    int64_t plane[2], size[2], stride[2], padding[2], dilation[2];
} columns[] = {
    {{1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {{5, 6}, {3, 2}, {1, 1}, {1, 1}, {1, 1}},
    {{7, 9}, {2, 3}, {2, 3}, {0, 2}, {1, 1}},
    {{8, 70}, {3, 3}, {1, 1}, {2, 2}, {2, 3}},
    {{4, 4}, {2, 2}, {3, 3}, {3, 3}, {1, 1}},
};

enum { COLUMNS = sizeof(columns) / sizeof(columns[0]), N = 2, C = 3 };

static int64_t windows(const struct columns_case *c, int axis)
{
    return (c->plane[axis] + 2 * c->padding[axis] -
            c->dilation[axis] * (c->size[axis] - 1) - 1) /
               c->stride[axis] +
           1;
}

/* Element I of a plane's columns as one of the plane; -1 in the padding. */
static int64_t met(const struct columns_case *c, int64_t i)
{
    const int64_t shape[4] = {c->size[0], c->size[1], windows(c, 0),
                              windows(c, 1)};
    int64_t at[4], place[2];

    lab_position(4, shape, i, at);
    for (int axis = 0; axis < 2; axis++) {
        place[axis] = at[2 + axis] * c->stride[axis] - c->padding[axis] +
                      at[axis] * c->dilation[axis];
        if (place[axis] < 0 || place[axis] >= c->plane[axis])
            return -1;
    }
    return flat(2, c->plane, place);
}

static void end_columns(struct fake_call *call, const struct columns_case *c)
{
    fake_call_value(call, hob_value_i64s(c->size, 2));
    fake_call_value(call, hob_value_i64s(c->stride, 2));
    fake_call_value(call, hob_value_i64s(c->padding, 2));
    fake_call_value(call, hob_value_i64s(c->dilation, 2));
}

static void try_columns(struct lab *lab, const struct columns_case *c,
                        uint32_t dtype, enum lab_layout layout)
{
    const int64_t each =
        c->size[0] * c->size[1] * windows(c, 0) * windows(c, 1);
    const int64_t area = c->plane[0] * c->plane[1];
    const int64_t planes[4] = {N, C, c->plane[0], c->plane[1]};
    const int64_t matrix[3] = {N, C * c->size[0] * c->size[1],
                               windows(c, 0) * windows(c, 1)};
    struct lab_tensor x, y;
    struct fake_call call, back;
    double *sums = calloc((size_t)(N * C * area), sizeof(*sums));

    lab_tensor_init(lab, &x, dtype, 4, planes, layout, -4, 4);
    lab_tensor_init(lab, &y, dtype, 3, matrix, layout, -4, 4);
    /* im2col wants x contiguous: the core sees to that. */
    if (!(x.view.flags & HOB_VIEW_CONTIGUOUS)) {
        lab_tensor_release(&x);
        lab_tensor_init(lab, &x, dtype, 4, planes, LAB_MISALIGNED, -4, 4);
    }
    fake_call_init(&call, &lab->host, "im2col");
    fake_call_view(&call, &x.view);
    end_columns(&call, c);
    fake_call_result(&call, dtype, 3, matrix);
    ck_assert_int_eq(lab_run(lab, &call, &flex_columns_entries), HOB_OK);
    fake_call_init(&back, &lab->host, "col2im");
    fake_call_view(&back, &y.view);
    fake_call_value(&back, hob_value_i64s(c->plane, 2));
    end_columns(&back, c);
    fake_call_result(&back, dtype, 4, planes);
    ck_assert_int_eq(lab_run(lab, &back, &flex_columns_entries), HOB_OK);
    for (int64_t i = 0; i < N * C * each; i++) {
        const int64_t at = met(c, i % each);
        const double wanted =
            at < 0 ? 0 : lab_get_at(&x.view, i / each * area + at);

        ck_assert(lab_near(lab_get_at(&call.results[0].view, i), wanted, 0));
        if (at >= 0)
            sums[i / each * area + at] += lab_get_at(&y.view, i);
    }
    for (int64_t i = 0; i < N * C * area; i++)
        ck_assert(lab_near(lab_get_at(&back.results[0].view, i), sums[i], 0));
    free(sums);
    fake_call_release(&call);
    fake_call_release(&back);
    lab_tensor_release(&x);
    lab_tensor_release(&y);
}

START_TEST(test_arrange_columns)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;

        if (lab_open(&lab, 2, lab_isas[isa]))
            for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16;
                 dtype++)
                for (int l = 0; l < LAB_LAYOUT_COUNT_; l++)
                    try_columns(&lab, &columns[_i], dtype, (enum lab_layout)l);
        lab_close(&lab);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arrange");
    TCase *tc = tcase_create("arrange");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_arrange_pads, 0, PADS);
    tcase_add_test(tc, test_arrange_rolls);
    tcase_add_loop_test(tc, test_arrange_triangles, 0, 3);
    tcase_add_loop_test(tc, test_arrange_columns, 0, COLUMNS);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
