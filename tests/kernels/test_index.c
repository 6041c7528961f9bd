/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indexing, cat and slice_assign on small integers: exact in every dtype.
 */
#include "flex_lab.h"
#include "hob_check.h"

static const int64_t shapes[][4] = {
    {1, 1, 1, 1},  {2, 3, 4, 5},   {3, 1, 2, 70}, {2, 5, 1, 3},
    {40, 3, 2, 1}, {2, 1, 1, 1100}}; /* rows of several blocks of indices */

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static int64_t count_of(const int64_t *shape)
{
    return shape[0] * shape[1] * shape[2] * shape[3];
}

/* Row-major index of AT in SHAPE. */
static int64_t flat(const int64_t *shape, const int64_t *at)
{
    int64_t index = 0;

    for (int i = 0; i < 4; i++)
        index = index * shape[i] + at[i];
    return index;
}

/* All results equal WANTED as the dtype holds it. */
static void compare(const struct fake_call *call, const double *wanted)
{
    const struct hob_view *out = &call->results[0].view;

    for (int64_t i = 0; i < hob_view_count(out); i++)
        ck_assert_msg(lab_get_at(out, i) == lab_round(out->dtype, wanted[i]),
                      "%s %s element %d: %g, not %g", call->call.op_name,
                      hob_dtype_name(out->dtype), (int)i, lab_get_at(out, i),
                      wanted[i]);
}

static void check_gather(struct lab *lab, const int64_t *shape, int dim,
                         uint32_t dtype, enum lab_layout layout)
{
    int64_t small[4], at[4];
    struct lab_tensor x, indices;
    struct fake_call call;
    double *wanted;

    for (int i = 0; i < 4; i++)
        small[i] = i == dim ? shape[i] + 2 : (shape[i] + 1) / 2;
    lab_tensor_init(lab, &x, dtype, 4, shape, layout, -5, 5);
    lab_tensor_init(
        lab, &indices, layout % 2 ? HOB_DTYPE_I64 : HOB_DTYPE_I32, 4, small,
        (enum lab_layout)((layout + 3) % LAB_LAYOUT_COUNT_), 0, shape[dim] - 1);
    fake_call_init(&call, &lab->host, "gather");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &indices.view);
    fake_call_value(&call, hob_i64(dim % 2 ? dim - 4 : dim));
    fake_call_result(&call, dtype, 4, small);
    ck_assert_int_eq(lab_run(lab, &call, &flex_index_entries), HOB_OK);
    wanted = calloc((size_t)count_of(small), 8);
    for (int64_t i = 0; i < count_of(small); i++) {
        lab_position(4, small, i, at);
        at[dim] = (int64_t)lab_get_at(&indices.view, i);
        wanted[i] = lab_get(&x.view, at);
    }
    compare(&call, wanted);
    free(wanted);
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&indices);
}

static void check_scatter(struct lab *lab, const int64_t *shape, int dim,
                          uint32_t dtype, enum lab_layout layout, int in_place)
{
    int64_t small[4], at[4];
    struct lab_tensor x, indices, value;
    struct fake_call call;
    double *wanted;

    for (int i = 0; i < 4; i++)
        small[i] = i == dim ? shape[i] + 2 : (shape[i] + 1) / 2;
    lab_tensor_init(lab, &x, dtype, 4, shape,
                    in_place ? LAB_CONTIGUOUS : layout, -5, 5);
    lab_tensor_init(lab, &value, dtype, 4, small, layout, -5, 5);
    lab_tensor_init(lab, &indices, HOB_DTYPE_I32, 4, small,
                    (enum lab_layout)((layout + 2) % LAB_LAYOUT_COUNT_), 0,
                    shape[dim] - 1);
    wanted = lab_dense(&x.view);
    for (int64_t i = 0; i < count_of(small); i++) {
        lab_position(4, small, i, at);
        at[dim] = (int64_t)lab_get_at(&indices.view, i);
        wanted[flat(shape, at)] += lab_get_at(&value.view, i);
    }
    fake_call_init(&call, &lab->host, "scatter_add");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &indices.view);
    fake_call_view(&call, &value.view);
    fake_call_value(&call, hob_i64(dim));
    if (in_place)
        fake_call_result_in_place(&call, 0);
    else
        fake_call_result(&call, dtype, 4, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_scatter_entries), HOB_OK);
    compare(&call, wanted);
    free(wanted);
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&indices);
    lab_tensor_release(&value);
}

static void check_select(struct lab *lab, const int64_t *shape, int dim,
                         uint32_t dtype, enum lab_layout layout, int64_t count)
{
    int64_t picked[4], at[4];
    struct lab_tensor x, indices, value;
    struct fake_call call, add;
    double *wanted;

    memcpy(picked, shape, sizeof(picked));
    picked[dim] = count;
    lab_tensor_init(lab, &x, dtype, 4, shape, layout, -5, 5);
    lab_tensor_init(lab, &value, dtype, 4, picked, layout, -5, 5);
    lab_tensor_init(lab, &indices, HOB_DTYPE_I32, 1, &count, LAB_REVERSED, 0,
                    shape[dim] - 1);
    fake_call_init(&call, &lab->host, "select");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &indices.view);
    fake_call_value(&call, hob_i64(dim - 4));
    fake_call_result(&call, dtype, 4, picked);
    ck_assert_int_eq(lab_run(lab, &call, &flex_index_entries), HOB_OK);
    wanted = calloc((size_t)count_of(picked) + 1, 8);
    for (int64_t i = 0; i < count_of(picked); i++) {
        lab_position(4, picked, i, at);
        at[dim] = (int64_t)lab_get_at(&indices.view, at[dim]);
        wanted[i] = lab_get(&x.view, at);
    }
    compare(&call, wanted);
    free(wanted);

    if (dtype != HOB_DTYPE_BOOL) {
        fake_call_init(&add, &lab->host, "select_add");
        fake_call_view(&add, &x.view);
        fake_call_view(&add, &indices.view);
        fake_call_view(&add, &value.view);
        fake_call_value(&add, hob_i64(dim));
        fake_call_result(&add, dtype, 4, shape);
        ck_assert_int_eq(lab_run(lab, &add, &flex_scatter_entries), HOB_OK);
        wanted = lab_dense(&x.view);
        for (int64_t i = 0; i < count_of(picked); i++) {
            lab_position(4, picked, i, at);
            at[dim] = (int64_t)lab_get_at(&indices.view, at[dim]);
            wanted[flat(shape, at)] += lab_get_at(&value.view, i);
        }
        compare(&add, wanted);
        free(wanted);
        fake_call_release(&add);
    }
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&indices);
    lab_tensor_release(&value);
}

START_TEST(test_index_equals_naive)
{
    const int64_t *shape = shapes[_i];
    struct lab lab;

    ck_assert(lab_open(&lab, 3, NULL));
    if (shape[3] == 70)
        lab.device->l2_bytes = 0; /* runs in strips of a cache line */
    if (shape[3] == 1100)
        lab.device->l3_bytes = 0; /* slices go past the caches */
    for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (int dim = 0; dim < 4; dim++)
            for (int l = 0; l < LAB_LAYOUT_COUNT_; l++) {
                enum lab_layout layout = (enum lab_layout)l;
                if (dtype == HOB_DTYPE_BOOL && layout != LAB_GAPS)
                    continue;
                check_gather(&lab, shape, dim, dtype, layout);
                check_select(&lab, shape, dim, dtype, layout, l == 3 ? 0 : 7);
                if (dtype == HOB_DTYPE_BOOL)
                    continue;
                check_scatter(&lab, shape, dim, dtype, layout, 0);
                check_scatter(&lab, shape, dim, dtype, layout, 1);
            }
    lab_close(&lab);
}
END_TEST

/* f16 additions of many duplicates are made in f32: 3,000 ones are 3,000. */
START_TEST(test_embedding_backward_adds_in_f32)
{
    const int64_t weight[2] = {3, 70}, shape[3] = {50, 60, 70};
    struct lab lab;
    struct lab_tensor w, indices, grad;
    struct fake_call call, back;

    ck_assert(lab_open(&lab, 2, NULL));
    lab_tensor_init(&lab, &w, HOB_DTYPE_F16, 2, weight, LAB_TRANSPOSED, -9, 9);
    lab_tensor_init(&lab, &indices, HOB_DTYPE_I64, 2, shape, LAB_TRANSPOSED, 1,
                    1);
    lab_tensor_init(&lab, &grad, HOB_DTYPE_F16, 3, shape, LAB_CONTIGUOUS, 1, 1);
    fake_call_init(&call, &lab.host, "embedding");
    fake_call_view(&call, &w.view);
    fake_call_view(&call, &indices.view);
    fake_call_result(&call, HOB_DTYPE_F16, 3, shape);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_index_entries), HOB_OK);
    for (int64_t i = 0; i < hob_view_count(&grad.view); i++)
        ck_assert_double_eq(lab_get_at(&call.results[0].view, i),
                            lab_get_at(&w.view, 70 + i % 70));
    fake_call_init(&back, &lab.host, "embedding_backward");
    fake_call_view(&back, &w.view);
    fake_call_view(&back, &indices.view);
    fake_call_view(&back, &grad.view);
    fake_call_result(&back, HOB_DTYPE_F16, 2, weight);
    ck_assert_int_eq(lab_run(&lab, &back, &flex_scatter_entries), HOB_OK);
    for (int64_t i = 0; i < 210; i++)
        ck_assert_double_eq(lab_get_at(&back.results[0].view, i),
                            i / 70 == 1 ? 3000 : 0);
    fake_call_release(&call);
    fake_call_release(&back);
    lab_tensor_release(&w);
    lab_tensor_release(&indices);
    lab_tensor_release(&grad);
    lab_close(&lab);
}
END_TEST

START_TEST(test_index_names_bad_index)
{
    static const double bad[] = {3, -1};
    static const char *const texts[] = {"indices[1, 2] is 3, outside of 0..2",
                                        "indices[1, 2] is -1, outside of 0..2"};
    const int64_t shape[2] = {2, 3};
    struct lab lab;
    struct lab_tensor x, indices;
    struct fake_call call;

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 2, shape, LAB_CONTIGUOUS, 0, 1);
    lab_tensor_init(&lab, &indices, HOB_DTYPE_I32, 2, shape, LAB_CONTIGUOUS, 0,
                    2);
    lab_set_at(&indices.view, 5, bad[_i]);
    fake_call_init(&call, &lab.host, "gather");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &indices.view);
    fake_call_value(&call, hob_i64(1));
    fake_call_result(&call, HOB_DTYPE_F32, 2, shape);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_index_entries), HOB_ERR_RANGE);
    ck_assert_msg(strstr(lab.host.message, texts[_i]) != NULL, "%s",
                  lab.host.message);
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&indices);
    lab_close(&lab);
}
END_TEST

/* Of several, on several threads: the first. Indices of either size, where rows
 * are long enough for them to be read on the way. */
START_TEST(test_index_names_first_bad_index)
{
    const int64_t shape[2] = {40, 3000};
    const int is_scatter = _i % 2;
    struct lab lab;
    struct lab_tensor x, indices;
    struct fake_call call;

    ck_assert(lab_open(&lab, 3, NULL));
    lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 2, shape, LAB_CONTIGUOUS, 0, 1);
    lab_tensor_init(&lab, &indices, _i / 2 ? HOB_DTYPE_I64 : HOB_DTYPE_I32, 2,
                    shape, LAB_CONTIGUOUS, 0, 2999);
    lab_set_at(&indices.view, 17 * 3000 + 1029, 3000);
    lab_set_at(&indices.view, 17 * 3000 + 1030, -1);
    lab_set_at(&indices.view, 39 * 3000, -7);
    fake_call_init(&call, &lab.host, is_scatter ? "scatter_add" : "gather");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &indices.view);
    if (is_scatter)
        fake_call_view(&call, &x.view);
    fake_call_value(&call, hob_i64(1));
    fake_call_result(&call, HOB_DTYPE_F32, 2, shape);
    ck_assert_int_eq(
        lab_run(&lab, &call,
                is_scatter ? &flex_scatter_entries : &flex_index_entries),
        HOB_ERR_RANGE);
    ck_assert_msg(strstr(lab.host.message,
                         "indices[17, 1029] is 3000, outside of 0..2999"),
                  "%s", lab.host.message);
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&indices);
    lab_close(&lab);
}
END_TEST

START_TEST(test_mask_select_picks_in_order)
{
    static const uint32_t dtypes[] = {HOB_DTYPE_F64, HOB_DTYPE_F32,
                                      HOB_DTYPE_BF16, HOB_DTYPE_I8,
                                      HOB_DTYPE_BOOL};
    const int64_t shape[3] = {30, 7, 11};
    const int64_t masks[][3] = {{30, 7, 11}, {7, 11}, {7, 1}, {1}};
    static const uint32_t ranks[] = {3, 2, 2, 1};

    for (int d = 0; d < 5; d++)
        for (int l = 0; l < LAB_LAYOUT_COUNT_; l++) {
            struct lab lab;
            struct lab_tensor x, mask;
            struct fake_call call;
            const uint32_t rank = ranks[_i];
            int64_t found = 0, at[3];

            ck_assert(lab_open(&lab, 1, NULL));
            lab_tensor_init(&lab, &x, dtypes[d], 3, shape, (enum lab_layout)l,
                            -9, 9);
            lab_tensor_init(&lab, &mask, HOB_DTYPE_BOOL, rank, masks[_i],
                            (enum lab_layout)l, 0, 1);
            fake_call_init(&call, &lab.host, "mask_select");
            fake_call_view(&call, &x.view);
            fake_call_view(&call, &mask.view);
            fake_call_result_dynamic(&call);
            ck_assert_int_eq(lab_run(&lab, &call, &flex_index_entries), HOB_OK);
            for (int64_t i = 0; i < hob_view_count(&x.view); i++) {
                lab_position(3, shape, i, at);
                for (uint32_t k = 0; k < rank; k++)
                    at[k] = masks[_i][k] == 1 ? 0 : at[k + 3 - rank];
                if (lab_get(&mask.view, at) == 0)
                    continue;
                ck_assert_double_eq(lab_get_at(&call.results[0].view, found++),
                                    lab_get_at(&x.view, i));
            }
            ck_assert_int_eq(call.results[0].view.rank, 1);
            ck_assert_int_eq(call.results[0].view.shape[0], found);
            fake_call_release(&call);
            lab_tensor_release(&x);
            lab_tensor_release(&mask);
            lab_close(&lab);
        }
}
END_TEST

/* 2..8 by -2 takes 7, 5, 3; ranges are clamped; a huge step takes one. */
START_TEST(test_slice_assign_writes_ranges)
{
    static const struct {
        int64_t starts[2], ends[2], steps[2];
        uint32_t step_count;
        int64_t first[2], count[2];
    } rows[] = {
        {{2, 0}, {8, 5}, {-2, 1}, 2, {7, 0}, {3, 5}},
        {{-4, 1}, {100, -1}, {1, 1}, 0, {6, 1}, {4, 3}},
        {{0, 0}, {10, 5}, {INT64_MAX, INT64_MIN}, 2, {0, 4}, {1, 1}},
        {{5, 0}, {5, 5}, {1, 1}, 2, {5, 0}, {0, 5}},
        {{0, 0}, {10, 5}, {-1, -1}, 2, {9, 4}, {10, 5}},
    };
    const int64_t shape[2] = {10, 5};

    for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (int way = 0; way < 3; way++) {
            struct lab lab;
            struct lab_tensor x, value;
            struct fake_call call;
            double *wanted;
            const int whole = rows[_i].count[0] == 10;

            ck_assert(lab_open(&lab, 2, NULL));
            lab_tensor_init(&lab, &x, dtype, 2, shape,
                            way == 1 ? LAB_CONTIGUOUS : LAB_TRANSPOSED, 0, 5);
            lab_tensor_init(&lab, &value, dtype, 2, rows[_i].count,
                            way == 2 ? LAB_CONTIGUOUS : LAB_GAPS, 0, 5);
            wanted = lab_dense(&x.view);
            for (int64_t i = 0; i < hob_view_count(&value.view); i++) {
                int64_t at[2], to = 0;
                lab_position(2, rows[_i].count, i, at);
                for (int k = 0; k < 2; k++) {
                    int64_t step =
                        rows[_i].step_count && at[k] ? rows[_i].steps[k] : 1;
                    to = to * shape[k] + rows[_i].first[k] + at[k] * step;
                }
                wanted[to] = lab_get_at(&value.view, i);
            }
            fake_call_init(&call, &lab.host, "slice_assign");
            fake_call_view(&call, &x.view);
            fake_call_view(&call, &value.view);
            fake_call_value(&call, hob_value_i64s(rows[_i].starts, 2));
            fake_call_value(&call, hob_value_i64s(rows[_i].ends, 2));
            fake_call_value(
                &call, hob_value_i64s(rows[_i].steps, rows[_i].step_count));
            if (way == 1)
                fake_call_result_in_place(&call, 0);
            else if (way == 2 && whole) /* over the value */
                fake_call_result_in_place(&call, 1);
            else
                fake_call_result(&call, dtype, 2, shape);
            ck_assert_int_eq(lab_run(&lab, &call, &flex_scatter_entries),
                             HOB_OK);
            compare(&call, wanted);
            free(wanted);
            fake_call_release(&call);
            lab_tensor_release(&x);
            lab_tensor_release(&value);
            lab_close(&lab);
        }
}
END_TEST

START_TEST(test_cat_joins)
{
    const int64_t *shape = shapes[_i];

    for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BOOL; dtype++)
        for (int dim = 0; dim < 4; dim++) {
            struct lab lab;
            struct lab_tensor parts[LAB_LAYOUT_COUNT_];
            hob_tensor *list[LAB_LAYOUT_COUNT_];
            struct fake_call call;
            int64_t total[4], begin = 0;

            ck_assert(lab_open(&lab, 2, NULL));
            memcpy(total, shape, sizeof(total));
            total[dim] = 0;
            for (int l = 0; l < LAB_LAYOUT_COUNT_; l++) {
                int64_t part[4];
                memcpy(part, shape, sizeof(part));
                part[dim] = l == 2 ? 0 : shape[dim] + l % 3;
                total[dim] += part[dim];
                lab_tensor_init(&lab, &parts[l], dtype, 4, part,
                                (enum lab_layout)l, 0, 5);
                list[l] = (hob_tensor *)(void *)&parts[l].view;
            }
            fake_call_init(&call, &lab.host, "cat");
            fake_call_value(&call, hob_value_tensors(list, LAB_LAYOUT_COUNT_));
            fake_call_value(&call, hob_i64(dim - 4));
            fake_call_result(&call, dtype, 4, total);
            ck_assert_int_eq(lab_run(&lab, &call, &flex_cat_entries), HOB_OK);
            for (int l = 0; l < LAB_LAYOUT_COUNT_; l++) {
                for (int64_t i = 0; i < hob_view_count(&parts[l].view); i++) {
                    int64_t at[4];
                    lab_position(4, parts[l].view.shape, i, at);
                    at[dim] += begin;
                    ck_assert_double_eq(lab_get(&call.results[0].view, at),
                                        lab_get_at(&parts[l].view, i));
                }
                begin += parts[l].view.shape[dim];
                lab_tensor_release(&parts[l]);
            }
            fake_call_release(&call);
            lab_close(&lab);
        }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("index");
    TCase *tc = tcase_create("index");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_index_equals_naive, 0, SHAPES);
    tcase_add_test(tc, test_embedding_backward_adds_in_f32);
    tcase_add_loop_test(tc, test_index_names_first_bad_index, 0, 4);
    tcase_add_loop_test(tc, test_index_names_bad_index, 0, 2);
    tcase_add_loop_test(tc, test_mask_select_picks_in_order, 0, 4);
    tcase_add_loop_test(tc, test_slice_assign_writes_ranges, 0, 5);
    tcase_add_loop_test(tc, test_cat_joins, 0, SHAPES);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
