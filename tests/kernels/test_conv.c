/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d and its gradients on small integers: exact, so equal to the naive
 * sums.
 */
#include "flex_lab.h"
#include "hob_check.h"

static const struct conv_case {
    int64_t x[4], weight[4]; /* n c h w; out in/groups kh kw */
    int64_t stride[2], padding[2], dilation[2];
    uint32_t list; /* numbers in the attribute lists */
    int64_t groups;
} cases[] = {
    {{1, 1, 1, 1}, {1, 1, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 0, 1},
    {{2, 3, 7, 9}, {4, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}, 2, 1},
    {{2, 3, 7, 9}, {5, 3, 3, 2}, {2, 2}, {1, 1}, {1, 1}, 1, 1},
    {{1, 4, 9, 8}, {6, 2, 3, 3}, {2, 1}, {1, 2}, {1, 1}, 2, 2},
    {{3, 2, 11, 10}, {3, 2, 3, 2}, {1, 3}, {2, 3}, {2, 3}, 2, 1},
    {{2, 6, 8, 13}, {6, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, 6},
    {{2, 6, 8, 13}, {12, 1, 3, 5}, {2, 1}, {0, 4}, {1, 2}, 2, 6},
    {{2, 6, 8, 13}, {6, 1, 3, 3}, {1, 2}, {1, 1}, {1, 1}, 2, 6},
    {{2, 5, 6, 7}, {8, 5, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 2, 1},
    {{2, 6, 6, 7}, {8, 3, 1, 1}, {2, 2}, {1, 1}, {1, 1}, 2, 2},
    {{1, 2, 3, 3}, {2, 2, 5, 5}, {1, 1}, {2, 2}, {1, 1}, 2, 1},
    {{9, 2, 5, 5}, {3, 2, 2, 2}, {1, 1}, {0, 0}, {1, 1}, 2, 1},
    {{1, 40, 60, 61}, {16, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, 1},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

static const uint32_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                  HOB_DTYPE_BF16};

static void result_shape(const struct conv_case *c, int64_t *out)
{
    out[0] = c->x[0];
    out[1] = c->weight[0];
    for (int i = 0; i < 2; i++)
        out[2 + i] = (c->x[2 + i] + 2 * c->padding[i] -
                      c->dilation[i] * (c->weight[2 + i] - 1) - 1) /
                         c->stride[i] +
                     1;
}

static void add_attributes(struct fake_call *call, const struct conv_case *c)
{
    fake_call_value(call, hob_value_i64s(c->stride, c->list));
    fake_call_value(call, hob_value_i64s(c->padding, c->list));
    fake_call_value(call, hob_value_i64s(c->dilation, c->list));
    fake_call_value(call, hob_i64(c->groups));
}

/* Call FN for every product of the convolution: the indices of x, weight and
 * result whose product it is. */
typedef void (*term_fn)(double *to, const double *a, const double *b, int64_t x,
                        int64_t w, int64_t y);

static void each_term(const struct conv_case *c, term_fn fn, double *to,
                      const double *a, const double *b)
{
    int64_t o[4];
    const int64_t *x = c->x, *w = c->weight;

    result_shape(c, o);
    for (int64_t n = 0; n < o[0]; n++)
        for (int64_t k = 0; k < o[1]; k++)
            for (int64_t i = 0; i < o[2]; i++)
                for (int64_t j = 0; j < o[3]; j++)
                    for (int64_t q = 0; q < w[1] * w[2] * w[3]; q++) {
                        int64_t ci = q / (w[2] * w[3]);
                        int64_t ky = q / w[3] % w[2], kx = q % w[3];
                        int64_t y = i * c->stride[0] - c->padding[0] +
                                    ky * c->dilation[0];
                        int64_t z = j * c->stride[1] - c->padding[1] +
                                    kx * c->dilation[1];
                        int64_t channel = k / (o[1] / c->groups) * w[1] + ci;
                        if (y < 0 || y >= x[2] || z < 0 || z >= x[3])
                            continue;
                        fn(to, a, b,
                           ((n * x[1] + channel) * x[2] + y) * x[3] + z,
                           k * w[1] * w[2] * w[3] + q,
                           ((n * o[1] + k) * o[2] + i) * o[3] + j);
                    }
}

static void forward_term(double *to, const double *a, const double *b,
                         int64_t x, int64_t w, int64_t y)
{
    to[y] += a[x] * b[w];
}

static void x_term(double *to, const double *a, const double *b, int64_t x,
                   int64_t w, int64_t y)
{
    to[x] += a[w] * b[y];
}

static void weight_term(double *to, const double *a, const double *b, int64_t x,
                        int64_t w, int64_t y)
{
    to[w] += a[x] * b[y];
}

static void compare(const struct fake_call *call, const double *wanted,
                    int number)
{
    const struct hob_view *out = &call->results[0].view;

    for (int64_t i = 0; i < hob_view_count(out); i++) {
        double got = lab_get_at(out, i);
        ck_assert_msg(got == lab_round(out->dtype, wanted[i]),
                      "%s, case %d, %s, element %d: %g, not %g",
                      call->call.op_name, number, hob_dtype_name(out->dtype),
                      (int)i, got, wanted[i]);
    }
}

static void check_forward(struct lab *lab, const struct conv_case *c,
                          uint32_t dtype, enum lab_layout layout)
{
    struct lab_tensor x, w, bias;
    struct fake_call call;
    int64_t shape[4];
    double *a, *b, *wanted;

    result_shape(c, shape);
    lab_tensor_init(lab, &x, dtype, 4, c->x, layout, -2, 2);
    lab_tensor_init(lab, &w, dtype, 4, c->weight, layout, -2, 2);
    lab_tensor_init(lab, &bias, dtype, 1, c->weight, LAB_GAPS, -9, 9);
    a = lab_dense(&x.view);
    b = lab_dense(&w.view);
    fake_call_init(&call, &lab->host, "conv2d");
    fake_call_view(&call, &x.view);
    fake_call_view(&call, &w.view);
    if (layout == LAB_MISALIGNED)
        fake_call_value(&call, hob_none());
    else
        fake_call_view(&call, &bias.view);
    add_attributes(&call, c);
    fake_call_result(&call, dtype, 4, shape);
    ck_assert_int_eq(lab_run(lab, &call, &flex_conv_entries), HOB_OK);
    wanted = lab_dense(&call.results[0].view);
    for (int64_t i = 0; i < hob_view_count(&call.results[0].view); i++)
        wanted[i] =
            layout == LAB_MISALIGNED
                ? 0
                : lab_get_at(&bias.view, i / (shape[2] * shape[3]) % shape[1]);
    each_term(c, forward_term, wanted, a, b);
    compare(&call, wanted, (int)(c - cases));
    free(a);
    free(b);
    free(wanted);
    fake_call_release(&call);
    lab_tensor_release(&x);
    lab_tensor_release(&w);
    lab_tensor_release(&bias);
}

static void check_backward(struct lab *lab, const struct conv_case *c,
                           uint32_t dtype, enum lab_layout layout, int of_x)
{
    struct lab_tensor other, grad;
    struct fake_call call;
    int64_t shape[4];
    const int64_t *result = of_x ? c->x : c->weight;
    double *a, *b, *wanted;

    result_shape(c, shape);
    lab_tensor_init(lab, &other, dtype, 4, of_x ? c->weight : c->x, layout, -2,
                    2);
    lab_tensor_init(lab, &grad, dtype, 4, shape, layout, -1, 1);
    a = lab_dense(&other.view);
    b = lab_dense(&grad.view);
    fake_call_init(&call, &lab->host,
                   of_x ? "conv2d_x_backward" : "conv2d_weight_backward");
    if (of_x) {
        fake_call_value(&call, hob_value_i64s(c->x, 4));
        fake_call_view(&call, &other.view);
    } else {
        fake_call_view(&call, &other.view);
        fake_call_value(&call, hob_value_i64s(c->weight, 4));
    }
    fake_call_view(&call, &grad.view);
    add_attributes(&call, c);
    fake_call_result(&call, dtype, 4, result);
    ck_assert_int_eq(lab_run(lab, &call, &flex_conv_entries), HOB_OK);
    wanted = calloc((size_t)hob_view_count(&call.results[0].view), 8);
    each_term(c, of_x ? x_term : weight_term, wanted, a, b);
    compare(&call, wanted, (int)(c - cases));
    free(a);
    free(b);
    free(wanted);
    fake_call_release(&call);
    lab_tensor_release(&other);
    lab_tensor_release(&grad);
}

START_TEST(test_conv2d_equals_naive)
{
    for (int isa = 0; lab_isas[isa]; isa++) {
        struct lab lab;
        if (!lab_open(&lab, 3, lab_isas[isa]))
            continue;
        for (int d = 0; d < 4; d++) {
            enum lab_layout layout =
                (enum lab_layout)((_i + d + isa) % LAB_LAYOUT_COUNT_);
            if (_i == CASES - 1 && (isa != 2 || d > 1))
                continue; /* large: once is enough */
            check_forward(&lab, &cases[_i], dtypes[d], layout);
            check_backward(&lab, &cases[_i], dtypes[d], layout, 1);
            check_backward(&lab, &cases[_i], dtypes[d], layout, 0);
        }
        lab_close(&lab);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv");
    TCase *tc = tcase_create("conv");

    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_conv2d_equals_naive, 0, CASES);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
