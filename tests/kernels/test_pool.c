/* SPDX-License-Identifier: Apache-2.0 */
#include "flex_lab.h"
#include "hob_check.h"

#include <math.h>

static const struct pool_case {
    int64_t x[4];
    int64_t size[2], stride[2], padding[2], dilation[2];
    uint32_t stride_list; /* 0: the stride is the kernel's size */
    int ceil;
} cases[] = {
    {{1, 1, 1, 1}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 0, 0},
    {{2, 3, 8, 10}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0},
    {{2, 3, 9, 71}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 2, 0},
    {{3, 2, 4, 32}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 1},
    {{3, 2, 9, 77}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 2, 0},
    {{2, 9, 14, 14}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0},
    {{5, 3, 4, 2}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0},
    {{1, 2, 3, 64}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 0, 0},
    {{2, 3, 7, 9}, {3, 2}, {2, 1}, {1, 1}, {1, 1}, 2, 0},
    {{2, 3, 7, 9}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 2, 1},
    {{1, 2, 6, 5}, {2, 2}, {3, 3}, {0, 0}, {1, 1}, 2, 1},
    {{1, 2, 5, 5}, {2, 2}, {2, 2}, {1, 1}, {1, 1}, 2, 1},
    {{2, 2, 9, 11}, {3, 2}, {1, 2}, {1, 2}, {2, 3}, 2, 0},
    {{2, 2, 9, 11}, {2, 3}, {3, 2}, {1, 2}, {2, 1}, 2, 1},
    {{33, 7, 12, 13}, {3, 3}, {2, 2}, {1, 1}, {1, 1}, 2, 0},
    {{2, 2, 5, 70}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, 2, 1},
    {{2, 2, 6, 69}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, 0},
    {{2, 1, 7, 75}, {3, 4}, {2, 3}, {1, 2}, {2, 2}, 2, 0},
    {{1, 2, 40, 43}, {37, 39}, {3, 2}, {3, 2}, {1, 1}, 2, 0},
    {{1, 2, 9, 40}, {2, 2}, {5, 6}, {0, 0}, {1, 1}, 2, 1},
    {{2, 2, 1, 33}, {1, 3}, {1, 2}, {0, 1}, {1, 1}, 2, 1},
    {{1, 2, 30, 1}, {3, 1}, {2, 1}, {1, 0}, {1, 1}, 2, 0},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static const uint32_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                  HOB_DTYPE_BF16};

/* With CEIL a last window may hang over, if it begins inside the input or
 * the padding before it (as in PyTorch). */
static int64_t windows(const struct pool_case *c, int axis, int dilated)
{
    int64_t dilation = dilated ? c->dilation[axis] : 1;
    int64_t extent = dilation * (c->size[axis] - 1) + 1;
    int64_t stride = c->stride[axis];
    int64_t in = c->x[2 + axis];
    int64_t room = in + 2 * c->padding[axis] - extent;
    int64_t count = (c->ceil ? room + stride - 1 : room) / stride + 1;

    if (c->ceil && (count - 1) * stride >= in + c->padding[axis])
        count--;
    return count;
}

static void attributes(struct fake_call *call, const struct pool_case *c)
{
    fake_call_value(call, hob_value_i64s(c->size, 2));
    fake_call_value(call, hob_value_i64s(c->stride, c->stride_list));
    fake_call_value(call, hob_value_i64s(c->padding, 2));
}

/* The maximum of a window and its place; the first of equals, first NaN. */
static double window_max(const struct pool_case *c, const double *plane,
                         int64_t y, int64_t x, int64_t *at)
{
    double best = -(double)INFINITY;

    *at = -1;
    for (int64_t ky = 0; ky < c->size[0]; ky++)
        for (int64_t kx = 0; kx < c->size[1]; kx++) {
            int64_t i = y * c->stride[0] - c->padding[0] + ky * c->dilation[0];
            int64_t j = x * c->stride[1] - c->padding[1] + kx * c->dilation[1];
            double v;
            if (i < 0 || i >= c->x[2] || j < 0 || j >= c->x[3])
                continue;
            v = plane[i * c->x[3] + j];
            if (*at < 0 || v > best || (isnan(v) && !isnan(best))) {
                best = v;
                *at = i * c->x[3] + j;
            }
        }
    return best;
}

static void check_max(struct lab *lab, const struct pool_case *c,
                      uint32_t dtype, enum lab_layout layout, int with_indices)
{
    const int64_t shape[4] = {c->x[0], c->x[1], windows(c, 0, 1),
                              windows(c, 1, 1)};
    const uint32_t index_dtype =
        dtype == HOB_DTYPE_F16 ? HOB_DTYPE_I64 : HOB_DTYPE_I32;
    const int64_t plane = c->x[2] * c->x[3];
    struct lab_tensor x, grad;
    struct fake_call call, back;
    double *in, *gradient;

    lab_tensor_init(lab, &x, dtype, 4, c->x, layout, -4, 4);
    if (plane > 40) {
        for (int64_t i = 0; i < 40; i++) /* whole windows of it */
            if (dtype != HOB_DTYPE_F32 || i % 8)
                lab_set_at(&x.view, i, -(double)INFINITY);
        lab_set_at(&x.view, 17, (double)NAN);
        lab_set_at(&x.view, 18, (double)NAN);
    }
    in = lab_dense(&x.view);
    fake_call_init(&call, &lab->host,
                   with_indices ? "max_pool2d_with_indices" : "max_pool2d");
    fake_call_view(&call, &x.view);
    attributes(&call, c);
    fake_call_value(&call, hob_value_i64s(c->dilation, 2));
    fake_call_value(&call, hob_bool(c->ceil));
    if (with_indices)
        fake_call_value(&call, hob_value_dtype(index_dtype));
    fake_call_result(&call, dtype, 4, shape);
    if (with_indices)
        fake_call_result(&call, index_dtype, 4, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_pool_entries), HOB_OK);
    for (int64_t i = 0; i < hob_view_count(&call.results[0].view); i++) {
        int64_t at[4], found;
        double wanted;
        lab_position(4, shape, i, at);
        wanted = window_max(c, in + (at[0] * c->x[1] + at[1]) * plane, at[2],
                            at[3], &found);
        ck_assert_msg(lab_near(lab_get_at(&call.results[0].view, i), wanted, 0),
                      "%s %s case %d element %d: %g, not %g", call.call.op_name,
                      hob_dtype_name(dtype), (int)(c - cases), (int)i,
                      lab_get_at(&call.results[0].view, i), wanted);
        if (with_indices)
            ck_assert_int_eq((int64_t)lab_get_at(&call.results[1].view, i),
                             found);
    }
    if (with_indices) {
        lab_tensor_init(lab, &grad, dtype, 4, shape, layout, -2, 2);
        gradient = calloc((size_t)(c->x[0] * c->x[1] * plane), 8);
        fake_call_init(&back, &lab->host, "max_pool2d_backward");
        fake_call_value(&back, hob_value_i64s(c->x, 4));
        fake_call_view(&back, &grad.view);
        fake_call_view(&back, &call.results[1].view);
        fake_call_result(&back, dtype, 4, c->x);
        ck_assert_int_eq(lab_run(lab, &back, &flex_pool_entries), HOB_OK);
        for (int64_t i = 0; i < hob_view_count(&grad.view); i++)
            gradient[i / (shape[2] * shape[3]) * plane +
                     (int64_t)lab_get_at(&call.results[1].view, i)] +=
                lab_get_at(&grad.view, i);
        for (int64_t i = 0; i < hob_view_count(&back.results[0].view); i++)
            ck_assert_double_eq(lab_get_at(&back.results[0].view, i),
                                lab_round(dtype, gradient[i]));
        free(gradient);
        fake_call_release(&back);
        lab_tensor_release(&grad);
    }
    free(in);
    fake_call_release(&call);
    lab_tensor_release(&x);
}

/* The gradient from what was pooled: at the places of window_max(). Values are
 * few, so most windows have ties. */
static void check_max_from_x(struct lab *lab, const struct pool_case *c,
                             uint32_t dtype, enum lab_layout layout)
{
    const int64_t shape[4] = {c->x[0], c->x[1], windows(c, 0, 1),
                              windows(c, 1, 1)};
    const int64_t plane = c->x[2] * c->x[3];
    const int64_t count = c->x[0] * c->x[1] * plane;
    struct lab_tensor x, grad;
    struct fake_call call;
    double *in, *gradient = calloc((size_t)count, 8);

    lab_tensor_init(lab, &x, dtype, 4, c->x, layout, -4, 4);
    lab_tensor_init(lab, &grad, dtype, 4, shape, layout, -2, 2);
    for (int64_t i = 0; i < count; i++) {
        double v = floor(lab_get_at(&x.view, i) / 2);
        lab_set_at(&x.view, i, i % 13 == 5 ? (double)NAN : v);
    }
    for (int64_t i = 0; i < count && i < 21; i++)
        if (i % 4 != 3)
            lab_set_at(&x.view, i, -(double)INFINITY);
    in = lab_dense(&x.view);
    fake_call_init(&call, &lab->host, "max_pool2d_x_backward");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &grad.view);
    attributes(&call, c);
    fake_call_value(&call, hob_value_i64s(c->dilation, 2));
    fake_call_value(&call, hob_bool(c->ceil));
    fake_call_result(&call, dtype, 4, c->x);
    ck_assert_int_eq(lab_run(lab, &call, &flex_pool_entries), HOB_OK);
    for (int64_t i = 0; i < hob_view_count(&grad.view); i++) {
        int64_t at[4], found;
        lab_position(4, shape, i, at);
        (void)window_max(c, in + (at[0] * c->x[1] + at[1]) * plane, at[2],
                         at[3], &found);
        gradient[(at[0] * c->x[1] + at[1]) * plane + found] +=
            lab_get_at(&grad.view, i);
    }
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(lab_get_at(&call.results[0].view, i) ==
                          lab_round(dtype, gradient[i]),
                      "%s case %d element %d: %g, not %g",
                      hob_dtype_name(dtype), (int)(c - cases), (int)i,
                      lab_get_at(&call.results[0].view, i), gradient[i]);
    free(in);
    free(gradient);
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&grad);
}

/* The window of (y, x): its bounds in the plane; returns its divisor. */
static double bounds(const struct pool_case *c, int include, const int64_t *at,
                     int64_t low[2], int64_t high[2])
{
    double padded = 1, inside = 1;

    for (int i = 0; i < 2; i++) {
        int64_t start = at[i] * c->stride[i] - c->padding[i];
        int64_t end = start + c->size[i];
        if (end > c->x[2 + i] + c->padding[i])
            end = c->x[2 + i] + c->padding[i];
        padded *= (double)(end - start);
        low[i] = start > 0 ? start : 0;
        high[i] = end < c->x[2 + i] ? end : c->x[2 + i];
        inside *= (double)(high[i] - low[i]);
    }
    return include ? padded : inside;
}

static void check_average(struct lab *lab, const struct pool_case *c,
                          uint32_t dtype, enum lab_layout layout, int include)
{
    const int64_t shape[4] = {c->x[0], c->x[1], windows(c, 0, 0),
                              windows(c, 1, 0)};
    const int64_t plane = c->x[2] * c->x[3];
    /* Sums are exact; a division rounds, then the dtype does. */
    const double tolerance = dtype == HOB_DTYPE_F64   ? 1e-15
                             : dtype == HOB_DTYPE_F32 ? 1e-6
                             : dtype == HOB_DTYPE_F16 ? 1e-3
                                                      : 8e-3;
    struct lab_tensor x, grad;
    struct fake_call call, back;
    double *in, *gradient = calloc((size_t)(c->x[0] * c->x[1] * plane), 8);

    lab_tensor_init(lab, &x, dtype, 4, c->x, layout, -4, 4);
    lab_tensor_init(lab, &grad, dtype, 4, shape, layout, -4, 4);
    in = lab_dense(&x.view);
    fake_call_init(&call, &lab->host, "avg_pool2d");
    fake_call_view(&call, &x.view);
    attributes(&call, c);
    fake_call_value(&call, hob_bool(include));
    fake_call_value(&call, hob_bool(c->ceil));
    fake_call_result(&call, dtype, 4, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_pool_entries), HOB_OK);
    fake_call_init(&back, &lab->host, "avg_pool2d_backward");
    fake_call_value(&back, hob_value_i64s(c->x, 4));
    fake_call_view(&back, &grad.view);
    attributes(&back, c);
    fake_call_value(&back, hob_bool(include));
    fake_call_value(&back, hob_bool(c->ceil));
    fake_call_result(&back, dtype, 4, c->x);
    ck_assert_int_eq(lab_run(lab, &back, &flex_pool_entries), HOB_OK);
    for (int64_t i = 0; i < hob_view_count(&call.results[0].view); i++) {
        int64_t at[4], low[2], high[2], base;
        double sum = 0, divisor;
        lab_position(4, shape, i, at);
        base = (at[0] * c->x[1] + at[1]) * plane;
        divisor = bounds(c, include, at + 2, low, high);
        for (int64_t y = low[0]; y < high[0]; y++)
            for (int64_t z = low[1]; z < high[1]; z++) {
                sum += in[base + y * c->x[3] + z];
                gradient[base + y * c->x[3] + z] +=
                    lab_get_at(&grad.view, i) / divisor;
            }
        ck_assert(lab_near(lab_get_at(&call.results[0].view, i), sum / divisor,
                           tolerance));
    }
    for (int64_t i = 0; i < hob_view_count(&back.results[0].view); i++)
        ck_assert(lab_near(lab_get_at(&back.results[0].view, i), gradient[i],
                           tolerance * 4));
    free(in);
    free(gradient);
    fake_call_release(&call);
    fake_call_release(&back);
    lab_tensor_release(&x);
    lab_tensor_release(&grad);
}

START_TEST(test_pool_equals_naive)
{
    const struct pool_case *c = &cases[_i];

    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 2, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++) {
            enum lab_layout layout =
                (enum lab_layout)((_i + d + isa) % LAB_LAYOUT_COUNT_);
            check_max(&lab, c, dtypes[d], layout, 0);
            check_max(&lab, c, dtypes[d], layout, 1);
            check_max_from_x(&lab, c, dtypes[d], layout);
            check_average(&lab, c, dtypes[d], layout, 0);
            check_average(&lab, c, dtypes[d], layout, 1);
        }
        lab_close(&lab);
    }
}
END_TEST

START_TEST(test_max_pool_backward_names_bad_index)
{
    struct lab lab;
    struct lab_tensor grad, indices;
    struct fake_call call;
    const int64_t shape[4] = {1, 2, 2, 2}, x[4] = {1, 2, 3, 3};

    ck_assert(lab_open(&lab, 1, NULL));
    lab_tensor_init(&lab, &grad, HOB_DTYPE_F32, 4, shape, LAB_CONTIGUOUS, 1, 1);
    lab_tensor_init(&lab, &indices, HOB_DTYPE_I32, 4, shape, LAB_CONTIGUOUS, 0,
                    8);
    lab_set_at(&indices.view, 6, 9);
    fake_call_init(&call, &lab.host, "max_pool2d_backward");
    fake_call_value(&call, hob_value_i64s(x, 4));
    fake_call_view(&call, &grad.view);
    fake_call_view(&call, &indices.view);
    fake_call_result(&call, HOB_DTYPE_F32, 4, x);
    ck_assert_int_eq(lab_run(&lab, &call, &flex_pool_entries), HOB_ERR_RANGE);
    ck_assert_ptr_nonnull(strstr(lab.host.message, "indices[0, 1, 1, 0] is 9"));
    fake_call_release(&call);
    lab_tensor_release(&grad);
    lab_tensor_release(&indices);
    lab_close(&lab);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pool");
    TCase *tc = tcase_create("pool");

    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_pool_equals_naive, 0, CASES);
    tcase_add_test(tc, test_max_pool_backward_names_bad_index);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
