/* SPDX-License-Identifier: Apache-2.0 */
/*
 * grid_sample, its gradients and affine_grid in every float dtype, layout and
 * instruction set, against sums in long double. Places are eighths, so that
 * even bf16 holds them and all agree where one element ends and the next
 * begins.
 */
#include "flex_lab.h"
#include "grid_places.h"
#include "hob_check.h"

#include <math.h>

/* Samples, channels, plane, grid. */
static const struct grid_case {
    int64_t n, c, h, w, oh, ow;
} cases[] = {
    {1, 1, 1, 1, 1, 1},    {2, 3, 5, 7, 4, 3},     {3, 1, 1, 9, 8, 1},
    {1, 17, 6, 2, 20, 31}, {2, 9, 13, 16, 1, 257}, {1, 2, 3, 3, 0, 5},
    {2, 0, 3, 3, 2, 2},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static double tolerance_of(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-13
           : dtype == HOB_DTYPE_F32 ? 1e-5
           : dtype == HOB_DTYPE_F16 ? 0x1p-9
                                    : 0x1p-6;
}

struct trial {
    const struct grid_case *c;
    const struct grid_ways *ways;
    uint32_t dtype;
    struct lab_tensor x, grid, grad;
    double *values, *places, *grads;
};

static void trial_open(struct lab *lab, struct trial *t, enum lab_layout layout)
{
    const struct grid_case *c = t->c;
    const int64_t x[4] = {c->n, c->c, c->h, c->w};
    const int64_t grid[4] = {c->n, c->oh, c->ow, 2};
    const int64_t grad[4] = {c->n, c->c, c->oh, c->ow};

    lab_tensor_init(lab, &t->x, t->dtype, 4, x, layout, -8, 8);
    lab_tensor_init(lab, &t->grid, t->dtype, 4, grid,
                    (enum lab_layout)((layout + 1) % LAB_LAYOUT_COUNT_), -30,
                    30);
    if (t->grid.view.strides[0]) /* not one element many times */
        for (int64_t i = 0; i < hob_view_count(&t->grid.view); i++)
            lab_set_at(&t->grid.view, i, lab_get_at(&t->grid.view, i) / 8);
    lab_tensor_init(lab, &t->grad, t->dtype, 4, grad,
                    (enum lab_layout)((layout + 2) % LAB_LAYOUT_COUNT_), -4, 4);
    t->values = lab_dense(&t->x.view);
    t->places = lab_dense(&t->grid.view);
    t->grads = lab_dense(&t->grad.view);
}

static void trial_close(struct trial *t)
{
    free(t->values);
    free(t->places);
    free(t->grads);
    lab_tensor_release(&t->x);
    lab_tensor_release(&t->grid);
    lab_tensor_release(&t->grad);
}

static void add_ways(struct fake_call *call, const struct grid_ways *ways)
{
    fake_call_value(call, hob_i64(ways->is_nearest));
    fake_call_value(call, hob_i64(ways->padding));
    fake_call_value(call, hob_bool(ways->corners));
}

static void compare(const struct lab *lab, const struct trial *t,
                    const struct hob_view *view, const char *what,
                    const long double *wanted)
{
    for (int64_t i = 0; i < hob_view_count(view); i++) {
        double got = lab_get_at(view, i);

        ck_assert_msg(
            fabsl(got - wanted[i]) <=
                (16 + fabsl(wanted[i])) * tolerance_of(t->dtype),
            "%s %s %s case %d nearest %d padding %d corners %d element "
            "%d: %.9g, not %.9Lg",
            lab->device->kernels->name, what, hob_dtype_name(t->dtype),
            (int)(t->c - cases), t->ways->is_nearest, t->ways->padding,
            t->ways->corners, (int)i, got, wanted[i]);
    }
}

static void forward(struct lab *lab, struct trial *t)
{
    const struct grid_case *c = t->c;
    const int64_t shape[4] = {c->n, c->c, c->oh, c->ow};
    const int64_t m = c->oh * c->ow;
    long double *wanted = calloc((size_t)(c->n * c->c * m) + 1, 16);
    struct fake_call call;

    for (int64_t i = 0; i < c->n * c->c * m; i++) {
        const int64_t plane = i / m, at = plane / c->c * m + i % m;
        struct grid_corner corners[4];
        int count = grid_corners(t->ways, c->h, c->w, t->places[2 * at],
                                 t->places[2 * at + 1], corners);

        for (int k = 0; k < count; k++)
            wanted[i] += corners[k].weight *
                         t->values[plane * c->h * c->w + corners[k].at];
    }
    fake_call_init(&call, &lab->host, "grid_sample");
    fake_call_view(&call, &t->x.view);
    fake_call_view(&call, &t->grid.view);
    add_ways(&call, t->ways);
    fake_call_result(&call, t->dtype, 4, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_grid_sample_entries), HOB_OK);
    compare(lab, t, &call.results[0].view, "forward", wanted);
    free(wanted);
    fake_call_release(&call);
}

static void backward(struct lab *lab, struct trial *t)
{
    const struct grid_case *c = t->c;
    const int64_t area = c->h * c->w, m = c->oh * c->ow;
    long double *d_x = calloc((size_t)(c->n * c->c * area) + 1, 16);
    long double *d_grid = calloc((size_t)(c->n * m * 2) + 1, 16);
    struct fake_call call;

    for (int64_t i = 0; i < c->n * c->c * m; i++) {
        const int64_t plane = i / m, at = plane / c->c * m + i % m;
        struct grid_corner corners[4];
        int count = grid_corners(t->ways, c->h, c->w, t->places[2 * at],
                                 t->places[2 * at + 1], corners);

        for (int k = 0; k < count; k++) {
            const int64_t element = plane * area + corners[k].at;

            d_x[element] += corners[k].weight * t->grads[i];
            d_grid[2 * at] +=
                corners[k].by_x * t->values[element] * t->grads[i];
            d_grid[2 * at + 1] +=
                corners[k].by_y * t->values[element] * t->grads[i];
        }
    }
    fake_call_init(&call, &lab->host, "grid_sample_backward");
    fake_call_view(&call, &t->x.view);
    fake_call_view(&call, &t->grid.view);
    fake_call_view(&call, &t->grad.view);
    add_ways(&call, t->ways);
    fake_call_result(&call, t->dtype, 4, t->x.view.shape);
    fake_call_result(&call, t->dtype, 4, t->grid.view.shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_grid_sample_entries), HOB_OK);
    compare(lab, t, &call.results[0].view, "d_x", d_x);
    compare(lab, t, &call.results[1].view, "d_grid", d_grid);
    free(d_x);
    free(d_grid);
    fake_call_release(&call);
}

START_TEST(test_grid_sample_equals_sums)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        int turn = _i + isa;

        if (lab_open(&lab, 2, lab_isas[isa]))
            for (int k = 0; k < 12; k++)
                for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16;
                     dtype++) {
                    const struct grid_ways ways = {k % 2, k / 2 % 3, k / 6};
                    struct trial t = {
                        .c = &cases[_i], .ways = &ways, .dtype = dtype};

                    trial_open(&lab, &t,
                               (enum lab_layout)(turn++ % LAB_LAYOUT_COUNT_));
                    forward(&lab, &t);
                    backward(&lab, &t);
                    trial_close(&t);
                }
        lab_close(&lab);
    }
}
END_TEST

/* Each place times each of three random matrices. */
START_TEST(test_affine_grid_equals_products)
{
    static const int64_t planes[][2] = {{1, 1}, {3, 1}, {5, 37}, {0, 4}};
    const int64_t h = planes[_i][0], w = planes[_i][1];
    const int64_t shape[3] = {3, 2, 3}, size[4] = {3, 7, h, w};
    const int64_t grid[4] = {3, h, w, 2};

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;

        if (lab_open(&lab, 2, lab_isas[isa]))
            for (uint32_t dtype = HOB_DTYPE_F64; dtype <= HOB_DTYPE_BF16;
                 dtype++)
                for (int l = 0; l < 2 * LAB_LAYOUT_COUNT_; l++) {
                    struct lab_tensor theta;
                    struct fake_call call;
                    const int corners = l % 2;

                    lab_tensor_init(&lab, &theta, dtype, 3, shape,
                                    (enum lab_layout)(l / 2), -4, 4);
                    fake_call_init(&call, &lab.host, "affine_grid");
                    fake_call_view(&call, &theta.view);
                    fake_call_value(&call, hob_value_i64s(size, 4));
                    fake_call_value(&call, hob_bool(corners));
                    fake_call_result(&call, dtype, 4, grid);
                    ck_assert_int_eq(
                        lab_run(&lab, &call, &flex_grid_sample_entries),
                        HOB_OK);
                    for (int64_t i = 0; i < 3 * h * w * 2; i++) {
                        const int64_t n = i / 2 / w / h, k = i % 2;
                        const int64_t at[2] = {i / 2 % w, i / 2 / w % h};
                        double wanted =
                            lab_get_at(&theta.view, n * 6 + k * 3 + 2);

                        for (int j = 0; j < 2; j++) {
                            const int64_t count = j ? h : w;
                            const double place =
                                count < 2 ? 0
                                : corners ? 2.0 * (double)at[j] /
                                                    (double)(count - 1) -
                                                1
                                          : (2.0 * (double)at[j] + 1) /
                                                    (double)count -
                                                1;

                            wanted += place * lab_get_at(&theta.view,
                                                         n * 6 + k * 3 + j);
                        }
                        ck_assert(lab_near(lab_get_at(&call.results[0].view, i),
                                           wanted, tolerance_of(dtype)));
                    }
                    fake_call_release(&call);
                    lab_tensor_release(&theta);
                }
        lab_close(&lab);
    }
}
END_TEST

/* Far away, infinite and no number at all: nothing outside is read. */
START_TEST(test_grid_sample_of_wild_places)
{
    static const double wild[] = {1e30, -1e30, INFINITY, -(double)INFINITY,
                                  NAN};
    const int64_t x_shape[4] = {1, 1, 2, 3}, grid_shape[4] = {1, 5, 5, 2};
    const int64_t shape[4] = {1, 1, 5, 5};

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;

        if (lab_open(&lab, 1, lab_isas[isa]))
            for (int k = 0; k < 12; k++) {
                const struct grid_ways ways = {k % 2, k / 2 % 3, k / 6};
                struct lab_tensor x, grid, grad;
                struct fake_call call;

                lab_tensor_init(&lab, &x, HOB_DTYPE_F32, 4, x_shape,
                                LAB_CONTIGUOUS, 1, 9);
                lab_tensor_init(&lab, &grid, HOB_DTYPE_F32, 4, grid_shape,
                                LAB_CONTIGUOUS, 0, 0);
                lab_tensor_init(&lab, &grad, HOB_DTYPE_F32, 4, shape,
                                LAB_CONTIGUOUS, 1, 9);
                for (int i = 0; i < 25; i++) {
                    lab_set_at(&grid.view, 2 * i, wild[i % 5]);
                    lab_set_at(&grid.view, 2 * i + 1, wild[i / 5]);
                }
                fake_call_init(&call, &lab.host, "grid_sample");
                fake_call_view(&call, &x.view);
                fake_call_view(&call, &grid.view);
                add_ways(&call, &ways);
                fake_call_result(&call, HOB_DTYPE_F32, 4, shape);
                ck_assert_int_eq(
                    lab_run(&lab, &call, &flex_grid_sample_entries), HOB_OK);
                for (int64_t i = 0; i < 25; i++) {
                    double got = lab_get_at(&call.results[0].view, i);

                    ck_assert(isnan(got) || (got >= 0 && got <= 9));
                    if (!ways.is_nearest && (i % 5 == 4 || i / 5 == 4))
                        ck_assert(isnan(got));
                }
                fake_call_release(&call);
                fake_call_init(&call, &lab.host, "grid_sample_backward");
                fake_call_view(&call, &x.view);
                fake_call_view(&call, &grid.view);
                fake_call_view(&call, &grad.view);
                add_ways(&call, &ways);
                fake_call_result(&call, HOB_DTYPE_F32, 4, x_shape);
                fake_call_result(&call, HOB_DTYPE_F32, 4, grid_shape);
                ck_assert_int_eq(
                    lab_run(&lab, &call, &flex_grid_sample_entries), HOB_OK);
                fake_call_release(&call);
                lab_tensor_release(&x);
                lab_tensor_release(&grid);
                lab_tensor_release(&grad);
            }
        lab_close(&lab);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("grid_sample");
    TCase *tc = tcase_create("grid_sample");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_grid_sample_equals_sums, 0, CASES);
    tcase_add_loop_test(tc, test_affine_grid_equals_products, 0, 4);
    tcase_add_test(tc, test_grid_sample_of_wild_places);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
