/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv2d and its gradients with sizes beside the edges of tiles, few and many
 * channels, strides, dilations, single taps: in f16 and bf16, for which GPUs
 * have kernels of their own, and in f32, which they compute of parts. The truth
 * is plain loops in f64; numbers are odd thirty-seconds, which all three hold,
 * or have all bits of f32.
 */
#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What is special: a bias, planes with channels last, an infinite element of x,
 * numbers of f32 alone, an infinite element of the gradient, which no gradient
 * of weights is asked for: it meets what is around x, too. */
enum { BIAS = 1, TURNED = 2, INFINITE = 4, WHOLE = 8, STEEP = 16 };

static const struct shape {
    int64_t x[4], weight[4];
    int64_t step[2], padding[2], dilation[2], groups;
    uint32_t options;
} shapes[] = {
    {{1, 64, 8, 8}, {64, 64, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, INFINITE},
    {{2, 24, 9, 12}, {40, 24, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, BIAS},
    {{2, 40, 17, 13}, {130, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, 0},
    {{2, 72, 9, 10}, {70, 72, 3, 5}, {2, 1}, {1, 2}, {1, 1}, 1, BIAS},
    {{2, 33, 16, 13}, {16, 33, 3, 2}, {2, 3}, {2, 0}, {1, 2}, 1, INFINITE},
    {{1, 50, 15, 14}, {33, 50, 4, 3}, {1, 2}, {3, 2}, {1, 3}, 1, 0},
    {{2, 3, 21, 23}, {64, 3, 7, 7}, {2, 2}, {3, 3}, {1, 1}, 1, BIAS | INFINITE},
    {{2, 16, 10, 11}, {20, 16, 3, 3}, {3, 3}, {0, 1}, {1, 1}, 1, 0},
    {{1, 130, 7, 7}, {150, 130, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, 0},
    {{2, 64, 8, 12}, {72, 64, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, 0},
    {{2, 64, 7, 7}, {40, 64, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, BIAS},
    {{2, 64, 7, 8}, {40, 64, 1, 1}, {2, 2}, {0, 0}, {1, 1}, 1, 0},
    {{2, 64, 9, 16}, {48, 64, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, TURNED},
    {{2, 20, 5, 9}, {36, 20, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, TURNED | BIAS},
    {{2, 64, 4, 9}, {16, 64, 1, 1}, {1, 1}, {0, 0}, {1, 1}, 1, TURNED},
    {{9, 17, 15, 15}, {16, 17, 1, 3}, {1, 1}, {0, 1}, {1, 1}, 1, 0},
    {{2, 8, 9, 11}, {16, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 2, BIAS},
    {{2, 8, 9, 11}, {8, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 8, 0},
    {{2, 40, 17, 13}, {130, 40, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, WHOLE | BIAS},
    {{2, 72, 9, 10}, {70, 72, 3, 5}, {2, 1}, {1, 2}, {1, 1}, 1, WHOLE},
    {{2, 72, 16, 14}, {40, 72, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, 0},
    {{4, 140, 17, 15}, {70, 140, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, WHOLE},
    {{1, 70, 30, 22}, {150, 70, 2, 3}, {2, 2}, {0, 2}, {2, 1}, 1, WHOLE},
    {{2, 70, 9, 8}, {300, 70, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, INFINITE},
    /* places for large tiles of the portable kernel */
    {{8, 4, 34, 34}, {40, 4, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, WHOLE | BIAS},
    /* and for so many processors that f32 is taken in parts */
    {{4, 16, 27, 27}, {40, 16, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, WHOLE | BIAS},
    {{4, 16, 27, 27}, {24, 16, 2, 3}, {1, 1}, {1, 2}, {1, 1}, 1, INFINITE},
    {{4, 20, 27, 28}, {200, 20, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, WHOLE},
    {{6, 3, 34, 35}, {80, 3, 7, 7}, {2, 2}, {3, 3}, {1, 1}, 1, WHOLE | BIAS},
    {{4, 16, 27, 27},
     {16, 16, 3, 3},
     {1, 1},
     {1, 1},
     {1, 1},
     1,
     TURNED | STEEP},
    {{2, 3, 21, 23}, {64, 3, 7, 7}, {2, 2}, {3, 3}, {1, 1}, 1, WHOLE},
    {{4, 4, 12, 9}, {24, 4, 5, 3}, {2, 1}, {1, 2}, {1, 2}, 1, STEEP},
    {{2, 1, 19, 33}, {40, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 1, STEEP},
    {{3, 6, 11, 8}, {12, 6, 3, 4}, {3, 1}, {0, 3}, {2, 1}, 2, 0},
    {{1, 2, 14, 15}, {20, 2, 2, 2}, {4, 2}, {0, 0}, {1, 1}, 1, WHOLE},
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

struct trial {
    const struct shape *of;
    int64_t weight[4], out_shape[4]; /* as the ops have them */
    double *x, *w, *bias, *grad;
    double *out, *d_x, *d_w;
};

static int64_t count_of(const int64_t *shape)
{
    return shape[0] * shape[1] * shape[2] * shape[3];
}

static double *room(int64_t count)
{
    double *out = calloc((size_t)count, sizeof(*out));

    ck_assert_ptr_nonnull(out);
    return out;
}

/* None of them 0, so that what is infinite stays so. */
static double *numbers(int64_t count, uint64_t *state, int whole)
{
    double *out = room(count);

    for (int64_t i = 0; i < count; i++)
        out[i] = whole ? (double)(float)op_random(state)
                       : (floor(op_random(state) * 16) * 2 + 1) / 32;
    return out;
}

/* Place Y, X of channel M of image N: all that it adds up, and adds to. */
static void reference_place(struct trial *t, int64_t n, int64_t m, int64_t y,
                            int64_t x)
{
    const struct shape *of = t->of;
    const int64_t *s = t->weight;
    const int64_t first = m / (s[0] / of->groups) * s[1];
    const int64_t to =
        ((n * s[0] + m) * t->out_shape[2] + y) * t->out_shape[3] + x;

    t->out[to] = of->options & BIAS ? t->bias[m] : 0;
    for (int64_t k = 0; k < s[1] * s[2] * s[3]; k++) {
        const int64_t c = first + k / s[2] / s[3];
        const int64_t iy = y * of->step[0] - of->padding[0] +
                           k / s[3] % s[2] * of->dilation[0];
        const int64_t ix =
            x * of->step[1] - of->padding[1] + k % s[3] * of->dilation[1];
        const int64_t from =
            ((n * of->x[1] + c) * of->x[2] + iy) * of->x[3] + ix;
        const int64_t tap = m * s[1] * s[2] * s[3] + k;

        if (iy < 0 || ix < 0 || iy >= of->x[2] || ix >= of->x[3])
            continue;
        t->out[to] += t->x[from] * t->w[tap];
        t->d_x[from] += t->grad[to] * t->w[tap];
        t->d_w[tap] += t->grad[to] * t->x[from];
    }
}

static void reference(struct trial *t)
{
    for (int64_t n = 0; n < t->out_shape[0]; n++)
        for (int64_t m = 0; m < t->out_shape[1]; m++)
            for (int64_t y = 0; y < t->out_shape[2]; y++)
                for (int64_t x = 0; x < t->out_shape[3]; x++)
                    reference_place(t, n, m, y, x);
}

static void trial_init(struct trial *t, const struct shape *of)
{
    const int whole = (of->options & WHOLE) != 0;
    uint64_t state = 11 + of->options;

    *t = (struct trial){.of = of};
    t->out_shape[0] = of->x[0];
    t->out_shape[1] = t->weight[0] = of->weight[0];
    t->weight[1] = of->weight[1] / of->groups;
    for (int i = 2; i < 4; i++) {
        t->weight[i] = of->weight[i];
        t->out_shape[i] = (of->x[i] + 2 * of->padding[i - 2] -
                           of->dilation[i - 2] * (of->weight[i] - 1) - 1) /
                              of->step[i - 2] +
                          1;
    }
    t->x = numbers(count_of(of->x), &state, whole);
    t->w = numbers(count_of(t->weight), &state, whole);
    t->bias = numbers(of->weight[0], &state, whole);
    t->grad = numbers(count_of(t->out_shape), &state, whole);
    t->out = room(count_of(t->out_shape));
    t->d_x = room(count_of(of->x));
    t->d_w = room(count_of(t->weight));
    if (of->options & INFINITE)
        t->x[count_of(of->x) / 3] = (double)INFINITY;
    if (of->options & STEEP)
        t->grad[count_of(t->out_shape) / 2] = -(double)INFINITY;
    reference(t);
}

static void trial_release(struct trial *t)
{
    double *const all[] = {t->x,   t->w,   t->bias, t->grad,
                           t->out, t->d_x, t->d_w};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
}

/* NUMBERS, in memory with channels last if they are TURNED. */
static hob_tensor *planes(const double *numbers, hob_dtype dtype,
                          const int64_t *shape, int turned)
{
    static const int64_t last[] = {0, 2, 3, 1}, back[] = {0, 3, 1, 2};
    hob_tensor *x = op_tensor(&f, dtype, numbers, shape, 4);

    if (!turned)
        return x;
    x = hob_contiguous(f.scope, hob_permute(f.scope, x, last, 4));
    return hob_permute(f.scope, x, back, 4);
}

static void check(int shape, const char *what, hob_dtype dtype,
                  hob_tensor *tensor, const double *expected, int64_t count,
                  int64_t products)
{
    /* Sums of up to 1e3 products are rounded once, and are not near 0 so often
     * that an absolute error of some ulps of 4 would hide one; what f32 has
     * rounded on the way is some ulps of 16, and of more products by as much
     * more as their sum grows. */
    const double grown = products > 1000 ? sqrt((double)products / 1000) : 1;
    const double tolerance = dtype == HOB_DTYPE_F32   ? 3e-5 * grown
                             : dtype == HOB_DTYPE_F16 ? 1e-3
                                                      : 8e-3;
    char text[128];

    snprintf(text, sizeof(text), "%s %s, shape %d", what, hob_dtype_name(dtype),
             shape);
    op_check(&f, text, tensor, expected, count, tolerance);
}

static void run(const struct trial *t, hob_dtype dtype)
{
    const struct shape *of = t->of;
    const int shape = (int)(of - shapes);
    const int turned = (of->options & TURNED) != 0;
    hob_tensor *x = planes(t->x, dtype, of->x, turned);
    hob_tensor *w = planes(t->w, dtype, t->weight, 0);
    hob_tensor *grad = planes(t->grad, dtype, t->out_shape, turned);
    hob_tensor *bias = of->options & BIAS
                           ? op_vector(&f, dtype, t->bias, of->weight[0])
                           : NULL;

    check(shape, "conv2d", dtype,
          hob_conv2d(f.scope, x, w, bias, of->step, 2, of->padding, 2,
                     of->dilation, 2, of->groups),
          t->out, count_of(t->out_shape), count_of(t->weight) / of->weight[0]);
    check(shape, "d_x", dtype,
          hob_conv2d_x_backward(f.scope, of->x, 4, w, grad, of->step, 2,
                                of->padding, 2, of->dilation, 2, of->groups),
          t->d_x, count_of(of->x), count_of(t->weight) / t->weight[1]);
    if (of->options & STEEP)
        return;
    check(shape, "d_weight", dtype,
          hob_conv2d_weight_backward(f.scope, x, t->weight, 4, grad, of->step,
                                     2, of->padding, 2, of->dilation, 2,
                                     of->groups),
          t->d_w, count_of(t->weight), count_of(t->out_shape) / of->weight[0]);
}

START_TEST(test_conv_of_halves)
{
    struct trial t;

    op_fixture_open(&f, 1);
    if (!f.device)
        return;
    trial_init(&t, &shapes[_i]);
    if (!(t.of->options & WHOLE)) {
        run(&t, HOB_DTYPE_BF16);
        run(&t, HOB_DTYPE_F16);
    }
    run(&t, HOB_DTYPE_F32);
    trial_release(&t);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("conv_halves");
    TCase *tc = tcase_create("device");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_conv_of_halves, 0, SHAPES);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
