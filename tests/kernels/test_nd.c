/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates at positions in every dtype and layout, in place too, and
 * decompositions that are large enough for several threads. Small integers:
 * exact in every dtype.
 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

enum { ASSIGN, ADD, MUL, MIN, MAX, UPDATES };

static double update_of(int update, double x, double value, uint32_t dtype)
{
    int is_bool = dtype == HOB_DTYPE_BOOL;

    switch (update) {
    case ADD:
        return is_bool ? x != 0 || value != 0 : x + value;
    case MUL:
        return lab_round(dtype, x * value);
    case MIN:
        return x < value ? x : value;
    case MAX:
        return x > value ? x : value;
    default:
        return value;
    }
}

/* The row-major index of AT in SHAPE. */
static int64_t flat(uint32_t rank, const int64_t *shape, const int64_t *at)
{
    int64_t index = 0;

    for (uint32_t i = 0; i < rank; i++)
        index = index * shape[i] + at[i];
    return index;
}

static void compare(const struct fake_call *call, const double *wanted)
{
    const struct hob_view *out = &call->results[0].view;

    for (int64_t i = 0; i < hob_view_count(out); i++)
        ck_assert_msg(lab_get_at(out, i) == lab_round(out->dtype, wanted[i]),
                      "%s %s element %d: %g, not %g", call->call.op_name,
                      hob_dtype_name(out->dtype), (int)i, lab_get_at(out, i),
                      wanted[i]);
}

/* One call of OP; WANTED holds x's elements and gets those of the result. */
struct trial {
    struct lab *lab;
    const char *op;
    int update, in_place;
    uint32_t dtype;
    struct lab_tensor x, indices, value;
    double *wanted;
};

static void trial_open(struct trial *trial, enum lab_layout layout,
                       uint32_t x_rank, const int64_t *x_shape,
                       uint32_t index_rank, const int64_t *index_shape,
                       uint32_t value_rank, const int64_t *value_shape,
                       int64_t most)
{
    const int64_t high = trial->dtype == HOB_DTYPE_BOOL ? 1 : 3;

    lab_tensor_init(trial->lab, &trial->x, trial->dtype, x_rank, x_shape,
                    trial->in_place ? LAB_CONTIGUOUS : layout,
                    trial->dtype == HOB_DTYPE_BOOL ? 0 : -3, high);
    lab_tensor_init(trial->lab, &trial->value, trial->dtype, value_rank,
                    value_shape, layout,
                    trial->dtype == HOB_DTYPE_BOOL ? 0 : -3, high);
    lab_tensor_init(
        trial->lab, &trial->indices, layout % 2 ? HOB_DTYPE_I64 : HOB_DTYPE_I32,
        index_rank, index_shape,
        (enum lab_layout)((layout + 2) % LAB_LAYOUT_COUNT_), 0, most);
    trial->wanted = lab_dense(&trial->x.view);
}

static void trial_close(struct trial *trial, int64_t dim)
{
    struct fake_call call;

    fake_call_init(&call, &trial->lab->host, trial->op);
    fake_call_view(&call, &trial->x.view);
    fake_call_view(&call, &trial->indices.view);
    fake_call_view(&call, &trial->value.view);
    if (strcmp(trial->op, "scatter_nd") != 0)
        fake_call_value(&call, hob_i64(dim));
    fake_call_value(&call, hob_i64(trial->update));
    if (trial->in_place)
        fake_call_result_in_place(&call, 0);
    else
        fake_call_result(&call, trial->dtype, trial->x.view.rank,
                         trial->x.view.shape);
    ck_assert_int_eq(lab_run(trial->lab, &call, &flex_scatter_entries), HOB_OK);
    compare(&call, trial->wanted);
    fake_call_release(&call);
    free(trial->wanted);
    lab_tensor_release(&trial->x);
    lab_tensor_release(&trial->indices);
    lab_tensor_release(&trial->value);
}

static void put(struct trial *trial, const int64_t *at, int64_t from)
{
    const struct hob_view *x = &trial->x.view;
    double *to = &trial->wanted[flat(x->rank, x->shape, at)];

    *to = update_of(trial->update, *to, lab_get_at(&trial->value.view, from),
                    trial->dtype);
}

static void try_scatter(struct trial *trial, enum lab_layout layout)
{
    const int64_t shape[] = {5, 3, 70}, small[] = {7, 2, 61};
    int64_t at[3];

    trial->op = "scatter";
    trial_open(trial, layout, 3, shape, 3, small, 3, small, shape[0] - 1);
    for (int64_t i = 0; i < small[0] * small[1] * small[2]; i++) {
        lab_position(3, small, i, at);
        at[0] = (int64_t)lab_get_at(&trial->indices.view, i);
        put(trial, at, i);
    }
    trial_close(trial, -3);
}

static void try_select(struct trial *trial, enum lab_layout layout)
{
    const int64_t shape[] = {3, 5, 70}, picked[] = {3, 7, 70}, count = 7;
    int64_t at[3];

    trial->op = "select_assign";
    trial_open(trial, layout, 3, shape, 1, &count, 3, picked, shape[1] - 1);
    for (int64_t i = 0; i < picked[0] * picked[1] * picked[2]; i++) {
        lab_position(3, picked, i, at);
        at[1] = (int64_t)lab_get_at(&trial->indices.view, at[1]);
        put(trial, at, i);
    }
    trial_close(trial, 1);
}

static void try_nd(struct trial *trial, enum lab_layout layout)
{
    const int64_t shape[] = {3, 4, 35}, rows[] = {2, 5, 2};
    const int64_t value[] = {2, 5, 35};
    int64_t at[3];

    trial->op = "scatter_nd";
    trial_open(trial, layout, 3, shape, 3, rows, 3, value, 2);
    for (int64_t i = 0; i < value[0] * value[1] * value[2]; i++) {
        int64_t row = i / value[2];

        at[0] = (int64_t)lab_get_at(&trial->indices.view, 2 * row);
        at[1] = (int64_t)lab_get_at(&trial->indices.view, 2 * row + 1);
        at[2] = i % value[2];
        put(trial, at, i);
    }
    trial_close(trial, 0);
}

START_TEST(test_nd_updates_equal_naive)
{
    struct lab lab;

    ck_assert(lab_open(&lab, 3, NULL));
    for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (int l = 0; l < LAB_LAYOUT_COUNT_; l++)
            for (int in_place = 0; in_place < 2; in_place++) {
                struct trial trial = {.lab = &lab,
                                      .update = _i,
                                      .in_place = in_place,
                                      .dtype = dtype};

                try_scatter(&trial, (enum lab_layout)l);
                try_select(&trial, (enum lab_layout)l);
                try_nd(&trial, (enum lab_layout)l);
            }
    lab_close(&lab);
}
END_TEST

START_TEST(test_nd_gather_equals_naive)
{
    const int64_t shape[] = {4, 3, 2, 9}, rows[] = {6, 2, 2};
    const int64_t out[] = {6, 2, 2, 9};
    struct lab lab;

    ck_assert(lab_open(&lab, 3, NULL));
    for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (int l = 0; l < LAB_LAYOUT_COUNT_; l++) {
            struct lab_tensor x, indices;
            struct fake_call call;
            double wanted[6 * 2 * 2 * 9];
            int64_t at[4];

            lab_tensor_init(&lab, &x, dtype, 4, shape, (enum lab_layout)l,
                            dtype == HOB_DTYPE_BOOL ? 0 : -9,
                            dtype == HOB_DTYPE_BOOL ? 1 : 9);
            lab_tensor_init(&lab, &indices, HOB_DTYPE_U8, 3, rows,
                            (enum lab_layout)((l + 1) % LAB_LAYOUT_COUNT_), 0,
                            2);
            for (int64_t i = 0; i < 6 * 2 * 2 * 9; i++) {
                lab_position(4, out, i, at);
                at[0] = (int64_t)lab_get_at(&indices.view, i / 18 * 2);
                at[1] = (int64_t)lab_get_at(&indices.view, i / 18 * 2 + 1);
                wanted[i] = lab_get(&x.view, at);
            }
            fake_call_init(&call, &lab.host, "gather_nd");
            fake_call_view(&call, &x.view);
            fake_call_view(&call, &indices.view);
            fake_call_result(&call, dtype, 4, out);
            ck_assert_int_eq(lab_run(&lab, &call, &flex_index_entries), HOB_OK);
            compare(&call, wanted);
            fake_call_release(&call);
            lab_tensor_release(&x);
            lab_tensor_release(&indices);
        }
    lab_close(&lab);
}
END_TEST

/* ---- decompositions ---- */

/* Element I, J of the product of two results' matrices. */
static double product_at(const struct hob_view *a, const struct hob_view *b,
                         int64_t i, int64_t j)
{
    const int64_t k = a->shape[1], n = b->shape[1];
    const double *left = a->data, *right = b->data;
    double sum = 0;

    for (int64_t c = 0; c < k; c++)
        sum += left[i * k + c] * right[c * n + j];
    return sum;
}

/* In rows of threads: 260 columns are several pieces. */
START_TEST(test_nd_large_decompositions)
{
    const int64_t m = 300, n = 260;
    const int64_t shape[] = {m, n}, left[] = {m, n}, right[] = {n, n};
    const int64_t square[] = {m, m};
    struct lab lab;
    struct lab_tensor x;
    struct fake_call call;

    ck_assert(lab_open(&lab, 3, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_F64, 2, shape,
                    _i ? LAB_TRANSPOSED : LAB_REVERSED, -9, 9);
    fake_call_init(&call, &lab.host, "qr");
    fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_bool(1));
    fake_call_result(&call, HOB_DTYPE_F64, 2, left);
    fake_call_result(&call, HOB_DTYPE_F64, 2, right);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_decompose_entries), HOB_OK);
    for (int64_t i = 0; i < m; i += 7)
        for (int64_t j = 0; j < n; j += 3)
            ck_assert(lab_near(
                product_at(&call.results[0].view, &call.results[1].view, i, j),
                lab_get_at(&x.view, i * n + j), 1e-12));
    fake_call_release(&call);

    fake_call_init(&call, &lab.host, "lu");
    fake_call_view(&call, &x.view);
    fake_call_result(&call, HOB_DTYPE_F64, 2, square);
    fake_call_result(&call, HOB_DTYPE_F64, 2, left);
    fake_call_result(&call, HOB_DTYPE_F64, 2, right);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_decompose_entries), HOB_OK);
    for (int64_t i = 0; i < m; i++) {
        int64_t row = 0; /* of L U that P takes to row i */

        while (lab_get_at(&call.results[0].view, i * m + row) == 0)
            row++;
        for (int64_t j = i % 3; j < n && i % 7 == 0; j += 3)
            ck_assert(lab_near(product_at(&call.results[1].view,
                                          &call.results[2].view, row, j),
                               lab_get_at(&x.view, i * n + j), 1e-11));
    }
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nd");
    TCase *tc = tcase_create("nd");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_nd_updates_equal_naive, 0, UPDATES);
    tcase_add_test(tc, test_nd_gather_equals_naive);
    tcase_add_loop_test(tc, test_nd_large_decompositions, 0, 2);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
