/* SPDX-License-Identifier: Apache-2.0 */
#include "hob_check.h"
#include "op_fixture.h"
#include "test_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/*
 * attention and attention_backward against plain loops in f64: all options,
 * widths and lengths on both sides of a tile, views of any strides. Numbers are
 * sixteenths, so that f16 and bf16 hold them; a tolerance is some units of the
 * dtype's last place, as sums of some hundred products need.
 */
enum { MASK = 1, BIAS = 2, CAP = 4, CAUSAL = 8, OPTIONS = 16 };

static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64, HOB_DTYPE_F16,
                                   HOB_DTYPE_BF16};

enum { DTYPES = sizeof(dtypes) / sizeof(dtypes[0]) };

static double tolerance_of(hob_dtype dtype)
{
    return dtype == HOB_DTYPE_F64   ? 1e-12
           : dtype == HOB_DTYPE_F32 ? 1e-5
           : dtype == HOB_DTYPE_F16 ? 2e-3
                                    : 1.6e-2;
}

/* Lead, queries, keys, width of keys, width of values; which options. */
static const struct shape {
    int64_t lead, s, t, d, e;
    uint32_t options; /* a bit for each combination */
} shapes[] = {
    {2, 5, 7, 3, 4, 0x8117},
    {1, 1, 1, 1, 1, 0x8001},
    {3, 33, 31, 8, 5, 0x0240},
    {2, 3, 0, 2, 2, 0x0101},
    {0, 3, 3, 2, 2, 0x0001},
    {2, 0, 4, 2, 3, 0x0100},
    {1, 7, 6, 0, 3, 0x0001},
    {2, 6, 5, 4, 0, 0x0100},
    {1, 40, 70, 64, 64, 0x0101},
    {2, 70, 40, 36, 100, 0x0100},
    {1, 35, 66, 130, 20, 0x0001},
    {1, 5, 9, 140, 150, 0x0001},
    {1, 9, 12, 300, 4, 0x0001},
    /* Rows enough for the largest tiles of a GPU. */
    {70, 130, 75, 12, 48, 0x0100},
    {70, 70, 75, 8, 100, 0x0001},
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

/* The arguments of a call and what must come of it. */
struct trial {
    struct shape of;
    uint32_t options;
    double scale, cap;
    double *q, *k, *v, *mask, *bias, *grad;
    double *out, *lse, *delta;
    double *d_q, *d_k, *d_v, *d_scores;
};

static double *room(int64_t count)
{
    double *out = calloc((size_t)count + 1, sizeof(*out));

    ck_assert_ptr_nonnull(out);
    return out;
}

static double *sixteenths(int64_t count, uint64_t *state)
{
    double *out = room(count);

    for (int64_t i = 0; i < count; i++)
        out[i] = floor(op_random(state) * 32) / 16;
    return out;
}

/* Together with causal the mask hides whole rows; causal alone does where
 * there are more queries than keys. */
static int is_hidden(const struct trial *x, int64_t b, int64_t i, int64_t j)
{
    return ((x->options & CAUSAL) && j > i + x->of.t - x->of.s) ||
           ((x->options & MASK) && x->mask[b * x->of.t + j] != 0);
}

static double score_of(const struct trial *x, int64_t b, int64_t i, int64_t j,
                       double *out_slope)
{
    const struct shape *of = &x->of;
    double sum = 0;

    for (int64_t c = 0; c < of->d; c++)
        sum += x->q[(b * of->s + i) * of->d + c] *
               x->k[(b * of->t + j) * of->d + c];
    sum *= x->scale;
    *out_slope = 1;
    if (x->options & CAP) {
        const double t = tanh(sum / x->cap);

        *out_slope = 1 - t * t;
        sum = x->cap * t;
    }
    return x->options & BIAS ? sum + x->bias[i * of->t + j] : sum;
}

/* Row I of batch entry B: weights P and the slopes of their scores' caps. */
static void weigh(struct trial *x, int64_t b, int64_t i, double *p,
                  double *slopes)
{
    double most = -(double)INFINITY, sum = 0;

    for (int64_t j = 0; j < x->of.t; j++) {
        p[j] = is_hidden(x, b, i, j) ? -(double)INFINITY
                                     : score_of(x, b, i, j, &slopes[j]);
        most = p[j] > most ? p[j] : most;
    }
    for (int64_t j = 0; j < x->of.t; j++) {
        p[j] = isinf(p[j]) ? 0 : exp(p[j] - most);
        sum += p[j];
    }
    for (int64_t j = 0; j < x->of.t; j++)
        p[j] /= sum > 0 ? sum : 1;
    x->lse[b * x->of.s + i] = sum > 0 ? most + log(sum) : -(double)INFINITY;
}

static void reference_row(struct trial *x, int64_t b, int64_t i, double *p,
                          double *slopes)
{
    const struct shape *of = &x->of;
    const int64_t row = b * of->s + i;
    const double *g = &x->grad[row * of->e];

    weigh(x, b, i, p, slopes);
    for (int64_t c = 0; c < of->e; c++) {
        double *to = &x->out[row * of->e + c];

        for (int64_t j = 0; j < of->t; j++)
            *to += p[j] * x->v[(b * of->t + j) * of->e + c];
        x->delta[row] += *to * g[c];
    }
    for (int64_t j = 0; j < of->t; j++) {
        const int64_t key = b * of->t + j;
        double slope = -x->delta[row];

        for (int64_t c = 0; c < of->e; c++) {
            slope += g[c] * x->v[key * of->e + c];
            x->d_v[key * of->e + c] += p[j] * g[c];
        }
        slope *= p[j];
        x->d_scores[row * of->t + j] = slope;
        slope *= slopes[j] * x->scale;
        for (int64_t c = 0; p[j] != 0 && c < of->d; c++) {
            x->d_q[row * of->d + c] += slope * x->k[key * of->d + c];
            x->d_k[key * of->d + c] += slope * x->q[row * of->d + c];
        }
    }
}

static void trial_init(struct trial *x, const struct shape *of,
                       uint32_t options)
{
    const int64_t rows = of->lead * of->s, keys = of->lead * of->t;
    uint64_t state = 7 + options;
    double *p = room(of->t), *slopes = room(of->t);

    *x = (struct trial){.of = *of, .options = options, .cap = 1.5};
    x->scale = options & CAUSAL ? 0.375 : of->d ? 1 / sqrt((double)of->d) : 1;
    x->q = sixteenths(rows * of->d, &state);
    x->k = sixteenths(keys * of->d, &state);
    x->v = sixteenths(keys * of->e, &state);
    x->mask = room(keys);
    for (int64_t i = 0; i < keys; i++)
        x->mask[i] = op_random(&state) > 0;
    x->bias = sixteenths(of->s * of->t, &state);
    x->grad = sixteenths(rows * of->e, &state);
    x->out = room(rows * of->e);
    x->lse = room(rows);
    x->delta = room(rows);
    x->d_q = room(rows * of->d);
    x->d_k = room(keys * of->d);
    x->d_v = room(keys * of->e);
    x->d_scores = room(rows * of->t);
    for (int64_t b = 0; b < of->lead; b++)
        for (int64_t i = 0; i < of->s; i++)
            reference_row(x, b, i, p, slopes);
    free(p);
    free(slopes);
}

static void trial_release(struct trial *x)
{
    double *const all[] = {x->q,    x->k,   x->v,       x->mask,  x->bias,
                           x->grad, x->out, x->lse,     x->delta, x->d_q,
                           x->d_k,  x->d_v, x->d_scores};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
}

/* Numbers [LEAD, ROWS, COLUMNS] in one of four layouts: dense, rows and columns
 * or rows and leads exchanged in memory, or at an odd address. */
static hob_tensor *laid(const double *numbers, hob_dtype dtype, int64_t lead,
                        int64_t rows, int64_t columns, uint32_t layout)
{
    const int64_t shape[] = {lead, rows, columns};
    const int64_t count = lead * rows * columns;
    hob_tensor *x = op_tensor(&f, dtype, numbers, shape, 3), *before;

    switch (layout % 4) {
    case 1:
        x = hob_contiguous(f.scope, hob_swap_dims(f.scope, x, 1, 2));
        return hob_swap_dims(f.scope, x, 1, 2);
    case 2:
        x = hob_contiguous(f.scope, hob_swap_dims(f.scope, x, 0, 1));
        return hob_swap_dims(f.scope, x, 0, 1);
    case 3: /* what lies before it is of an odd length */
        before = hob_zeros(f.scope, (int64_t[]){1}, 1, f.device, dtype);
        x = hob_reshape(f.scope, x, (int64_t[]){count}, 1);
        x = hob_cat(f.scope, (hob_tensor *[]){before, x}, 2, 0);
        x = hob_slice(f.scope, x, (int64_t[]){1}, 1, (int64_t[]){count + 1}, 1,
                      NULL, 0);
        return hob_reshape(f.scope, x, shape, 3);
    default:
        return x;
    }
}

static hob_tensor *laid_mask(const struct trial *x)
{
    const int64_t shape[] = {x->of.lead, 1, x->of.t};

    return x->options & MASK ? op_tensor(&f, HOB_DTYPE_BOOL, x->mask, shape, 3)
                             : NULL;
}

static hob_tensor *laid_bias(const struct trial *x, hob_dtype dtype)
{
    const int64_t shape[] = {x->of.s, x->of.t};

    return x->options & BIAS ? op_tensor(&f, dtype, x->bias, shape, 2) : NULL;
}

static hob_scalar scale_of(const struct trial *x)
{
    return x->options & CAUSAL ? hob_f64(x->scale) : hob_none();
}

static hob_scalar cap_of(const struct trial *x)
{
    return x->options & CAP ? hob_f64(x->cap) : hob_none();
}

static void check(const struct trial *x, const char *what, hob_dtype dtype,
                  hob_tensor *tensor, const double *expected, int64_t count,
                  double tolerance)
{
    char text[128];

    snprintf(text, sizeof(text), "%s %s [%d,%d,%d,%d,%d] options %u", what,
             hob_dtype_name(dtype), (int)x->of.lead, (int)x->of.s, (int)x->of.t,
             (int)x->of.d, (int)x->of.e, (unsigned)x->options);
    op_check(&f, text, tensor, expected, count, tolerance);
}

static void run_forward(const struct trial *x, hob_dtype dtype, uint32_t layout)
{
    const struct shape *of = &x->of;
    hob_tensor *q = laid(x->q, dtype, of->lead, of->s, of->d, layout);
    hob_tensor *k = laid(x->k, dtype, of->lead, of->t, of->d, layout + 1);
    hob_tensor *v = laid(x->v, dtype, of->lead, of->t, of->e, layout / 2);

    check(x, "attention", dtype,
          hob_attention(f.scope, q, k, v, laid_mask(x), laid_bias(x, dtype),
                        scale_of(x), cap_of(x), (x->options & CAUSAL) != 0),
          x->out, of->lead * of->s * of->e, tolerance_of(dtype));
}

static void run_backward(const struct trial *x, hob_dtype dtype,
                         uint32_t layout)
{
    const struct shape *of = &x->of;
    const hob_dtype wide =
        dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    const int wants_bias = (x->options & BIAS) != 0;
    /* Sums of products of three numbers of up to 2. */
    const double tolerance = tolerance_of(dtype) * 10;
    hob_tensor *d_q, *d_k, *d_v, *d_bias;
    hob_status st = hob_attention_backward(
        f.scope, laid(x->q, dtype, of->lead, of->s, of->d, layout),
        laid(x->k, dtype, of->lead, of->t, of->d, layout + 1),
        laid(x->v, dtype, of->lead, of->t, of->e, layout + 2), laid_mask(x),
        laid_bias(x, dtype), laid(x->lse, wide, of->lead, of->s, 1, 0),
        laid(x->delta, wide, of->lead, of->s, 1, 0),
        laid(x->grad, dtype, of->lead, of->s, of->e, layout + 3), scale_of(x),
        cap_of(x), (x->options & CAUSAL) != 0, wants_bias, &d_q, &d_k, &d_v,
        &d_bias);

    ck_assert_int_eq(st, HOB_OK);
    check(x, "d_query", dtype, d_q, x->d_q, of->lead * of->s * of->d,
          tolerance);
    check(x, "d_key", dtype, d_k, x->d_k, of->lead * of->t * of->d, tolerance);
    check(x, "d_value", dtype, d_v, x->d_v, of->lead * of->t * of->e,
          tolerance);
    if (wants_bias)
        check(x, "d_bias", dtype, d_bias, x->d_scores, of->lead * of->s * of->t,
              tolerance);
}

/* Halves are for no options and all of them. A GPU's compiler takes a second
 * for each kernel, so f16 and bf16 take turns there; where it takes more, all
 * but f32 are for the first shapes and the first of several tiles. */
static int is_left_out(uint32_t shape, uint32_t options, uint32_t d)
{
    const int is_of_most = options % (OPTIONS - 1) != 0;

    if (d >= 1 && test_device_is_slow() &&
        (is_of_most || (shape > 1 && shape != 8)))
        return 1;
    return d >= 2 &&
           (is_of_most || (!test_device_is_flex() && shape % 2 != d % 2));
}

/* Large shapes are for the kernels of a GPU. Those take its compiler long, and
 * fusion calls them as they are: there the first few do. */
static int is_for(int which, uint32_t shape)
{
    enum { REFERENCE, BACKEND, FUSION }; /* as op_fixture_open() has them */

    if (test_device_is_flex())
        return shapes[shape].lead <= 8;
    if (which == FUSION)
        return shape < 3;
    return which == BACKEND || shapes[shape].lead <= 8;
}

/* Test number _i is a shape on one of the devices. */
START_TEST(test_attention_equals_loops)
{
    const struct shape *shape = &shapes[_i % SHAPES];

    op_fixture_open(&f, _i / SHAPES);
    if (!f.device || !is_for(_i / SHAPES, (uint32_t)_i % SHAPES))
        return;
    for (uint32_t options = 0; options < OPTIONS; options++) {
        struct trial x;

        if (!(shape->options >> options & 1))
            continue;
        trial_init(&x, shape, options);
        for (uint32_t d = 0; d < DTYPES; d++) {
            if (is_left_out((uint32_t)_i % SHAPES, options, d))
                continue;
            run_forward(&x, dtypes[d], options + d);
            run_backward(&x, dtypes[d], options + d + 1);
        }
        trial_release(&x);
    }
}
END_TEST

/* ---- delta ---- */

/* Rows of one vector and of many, of odd lengths, none, and NaN. */
START_TEST(test_attention_delta_equals_loops)
{
    static const int64_t sizes[][3] = {{1, 1, 1},   {3, 5, 7},  {2, 70, 64},
                                       {2, 3, 520}, {4, 9, 16}, {2, 3, 0},
                                       {0, 3, 4},   {5, 4, 1}};
    uint64_t state = 3;

    op_fixture_open(&f, _i);
    if (!f.device)
        return;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
        for (uint32_t d = 0; d < DTYPES; d++) {
            const int64_t *n = sizes[s], rows = n[0] * n[1];
            const int64_t count = rows * n[2];
            double *a = sixteenths(count, &state);
            double *b = sixteenths(count, &state), *sums = room(rows);

            if (count)
                a[count - 1] = NAN;
            for (int64_t i = 0; i < count; i++)
                sums[i / n[2]] += a[i] * b[i];
            for (uint32_t layout = 0; layout < 4; layout++)
                op_check(&f, "delta",
                         hob_attention_delta(
                             f.scope,
                             laid(a, dtypes[d], n[0], n[1], n[2], layout),
                             laid(b, dtypes[d], n[0], n[1], n[2], s % 4)),
                         sums, rows, 1e-5);
            free(a);
            free(b);
            free(sums);
        }
}
END_TEST

/* It is f32 for halves; what has no rows, or differs, is refused. */
START_TEST(test_attention_delta_checks)
{
    hob_tensor *x, *y;

    op_fixture_open(&f, _i);
    if (!f.device)
        return;
    x = hob_ones(f.scope, (int64_t[]){3, 4}, 2, f.device, HOB_DTYPE_BF16);
    y = hob_attention_delta(f.scope, x, x);
    ck_assert_int_eq(hob_tensor_dtype(y), HOB_DTYPE_F32);
    ck_assert_int_eq(hob_tensor_rank(y), 2);
    ck_assert_int_eq(hob_tensor_shape(y)[1], 1);
    (void)hob_attention_delta(f.scope, x, hob_swap_dims(f.scope, x, 0, 1));
    op_check_fails(&f, "delta of two shapes", HOB_ERR_SHAPE);
    x = hob_sum(f.scope, x);
    (void)hob_attention_delta(f.scope, x, x);
    op_check_fails(&f, "delta of no rows", HOB_ERR_SHAPE);
}
END_TEST

/* ---- what is not finite ---- */

/* 1, but for the elements AT .. AT + RUN - 1, which are VALUE. */
static hob_tensor *ones_but(int64_t rows, int64_t columns, int64_t at,
                            int64_t run, double value)
{
    double *numbers = room(rows * columns);
    hob_tensor *x;

    for (int64_t i = 0; i < rows * columns; i++)
        numbers[i] = i >= at && i < at + run ? value : 1;
    x = op_tensor(&f, HOB_DTYPE_F32, numbers, (int64_t[]){rows, columns}, 2);
    free(numbers);
    return x;
}

/* Elements FROM .. END - 1 of X are all WANTED, NaN being itself. */
static void all_are(const double *x, int64_t from, int64_t end, double wanted)
{
    for (int64_t i = from; i < end; i++)
        ck_assert_msg(isnan(wanted) ? isnan(x[i]) : fabs(x[i] - wanted) < 1e-6,
                      "element %d is %g, not %g", (int)i, x[i], wanted);
}

/* 200 keys are several tiles of any kernel. What is hidden weighs 0, and 0
 * times infinity is NaN, as the product of the body has it. */
START_TEST(test_attention_of_infinite_values)
{
    enum { S = 200, D = 4 };
    static double got[S * D];
    hob_tensor *ones, *wild;

    op_fixture_open(&f, _i);
    if (!f.device)
        return;
    ones = ones_but(S, D, 0, 0, 0);
    wild = ones_but(S, D, (S - 1) * D + 1, 1, INFINITY);
    op_read(&f,
            hob_attention(f.scope, ones, ones, wild, NULL, NULL, hob_none(),
                          hob_none(), 1),
            got, S * D);
    for (int64_t i = 0; i < S; i++) {
        all_are(got, i * D, i * D + 1, 1);
        all_are(got, i * D + 2, i * D + D, 1);
        if (i < S - 1)
            all_are(got, i * D + 1, i * D + 2, NAN);
    }
    ck_assert(got[(S - 1) * D + 1] == INFINITY);
    /* NaN in one query stays in its row. */
    op_read(&f,
            hob_attention(f.scope, ones_but(S, D, 70 * D, 1, NAN), ones, ones,
                          NULL, NULL, hob_none(), hob_none(), 1),
            got, S * D);
    all_are(got, 0, 70 * D, 1);
    all_are(got, 70 * D, 71 * D, NAN);
    all_are(got, 71 * D, S * D, 1);
}
END_TEST

/* Without a mask a row of -inf is NaN, as in a softmax; with one it is 0. */
START_TEST(test_attention_of_infinite_scores)
{
    enum { S = 3, T = 5 };
    double got[S * 2];
    hob_tensor *q, *k, *v, *bias, *mask;

    op_fixture_open(&f, _i);
    if (!f.device)
        return;
    q = ones_but(S, 2, 0, 0, 0);
    k = ones_but(T, 2, 0, 0, 0);
    v = ones_but(T, 2, 0, 0, 0);
    bias = ones_but(S, T, T, T, -INFINITY);
    mask = hob_zeros(f.scope, (int64_t[]){T}, 1, f.device, HOB_DTYPE_BOOL);
    op_read(
        &f,
        hob_attention(f.scope, q, k, v, NULL, bias, hob_none(), hob_none(), 0),
        got, S * 2);
    all_are(got, 0, 2, 1);
    all_are(got, 2, 4, NAN);
    all_are(got, 4, 6, 1);
    op_read(
        &f,
        hob_attention(f.scope, q, k, v, mask, bias, hob_none(), hob_none(), 0),
        got, S * 2);
    all_are(got, 0, 2, 1);
    all_are(got, 2, 4, 0);
    all_are(got, 4, 6, 1);
}
END_TEST

/* Scores of a million: shifted by their maximum. */
START_TEST(test_attention_of_large_scores)
{
    enum { T = 100 };
    double got[3];

    op_fixture_open(&f, _i);
    if (!f.device)
        return;
    op_read(&f,
            hob_attention(f.scope, ones_but(1, 1, 0, 1, 1000),
                          ones_but(T, 1, 61, 1, 1100),
                          ones_but(T, 3, 61 * 3, 3, 5), NULL, NULL, hob_none(),
                          hob_none(), 0),
            got, 3);
    all_are(got, 0, 3, 5);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bodies_attention");
    TCase *tc = tcase_create("devices");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_attention_equals_loops, 0,
                        SHAPES * OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_attention_of_infinite_values, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_attention_of_infinite_scores, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_attention_of_large_scores, 0, OP_DEVICE_COUNT);
    suite_add_tcase(suite, tc);
    tc = tcase_create("delta");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_attention_delta_equals_loops, 0,
                        OP_DEVICE_COUNT);
    tcase_add_loop_test(tc, test_attention_delta_checks, 0, OP_DEVICE_COUNT);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
