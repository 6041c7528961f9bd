/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention and its gradients in f16 and bf16 with rows of 64 and 128 elements,
 * for which GPUs have kernels of their own: lengths beside the edges of tiles,
 * each mask, heads between rows. The truth is plain loops in f64; numbers are
 * sixteenths, which both dtypes hold.
 */
#include "hob_check.h"
#include "op_fixture.h"

#include <hob/ext/plugin.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* What hides: keys later than the query, some keys, some pairs. */
enum { CAUSAL = 1, MASK_KEYS = 2, MASK_PAIRS = 4 };

enum { BATCHES = 2, HEADS = 3, LEAD = BATCHES * HEADS };

static const struct shape {
    int64_t s, t, d;
    uint32_t options;
} shapes[] = {
    {1, 1, 64, 0},
    {64, 128, 64, 0},
    {63, 129, 64, CAUSAL},
    {130, 70, 128, CAUSAL}, /* the first queries see nothing */
    {1, 300, 128, 0},
    {70, 200, 128, MASK_KEYS},
    {200, 131, 64, MASK_PAIRS},
    {129, 257, 128, CAUSAL | MASK_KEYS},
    {193, 64, 64, CAUSAL | MASK_PAIRS},
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

struct trial {
    struct shape of;
    double scale;
    double *q, *k, *v, *mask, *grad;
    double *out, *lse, *delta, *d_q, *d_k, *d_v;
};

static double *room(int64_t count)
{
    double *out = calloc((size_t)count, sizeof(*out));

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

static int is_hidden(const struct trial *x, int64_t lead, int64_t i, int64_t j)
{
    const struct shape *of = &x->of;
    const int64_t batch = lead / HEADS;

    return ((of->options & CAUSAL) && j > i + of->t - of->s) ||
           ((of->options & MASK_KEYS) && x->mask[batch * of->t + j] != 0) ||
           ((of->options & MASK_PAIRS) && x->mask[i * of->t + j] != 0);
}

static double dot(const double *a, const double *b, int64_t count)
{
    double sum = 0;

    for (int64_t c = 0; c < count; c++)
        sum += a[c] * b[c];
    return sum;
}

/* to += factor from */
static void add_scaled(double *to, const double *from, double factor,
                       int64_t count)
{
    for (int64_t c = 0; c < count; c++)
        to[c] += factor * from[c];
}

/* Query I of entry LEAD: its weights into P. */
static void weigh(struct trial *x, int64_t lead, int64_t i, double *p)
{
    const struct shape *of = &x->of;
    const int64_t row = lead * of->s + i;
    double most = -(double)INFINITY, sum = 0;

    for (int64_t j = 0; j < of->t; j++) {
        p[j] = is_hidden(x, lead, i, j)
                   ? -(double)INFINITY
                   : x->scale * dot(&x->q[row * of->d],
                                    &x->k[(lead * of->t + j) * of->d], of->d);
        most = fmax(most, p[j]);
    }
    for (int64_t j = 0; j < of->t; j++) {
        p[j] = isinf(p[j]) ? 0 : exp(p[j] - most);
        sum += p[j];
    }
    for (int64_t j = 0; j < of->t; j++)
        p[j] /= sum > 0 ? sum : 1;
    x->lse[row] = sum > 0 ? most + log(sum) : -(double)INFINITY;
}

static void reference_row(struct trial *x, int64_t lead, int64_t i, double *p)
{
    const int64_t row = lead * x->of.s + i, d = x->of.d;
    const double *g = &x->grad[row * d];

    weigh(x, lead, i, p);
    for (int64_t j = 0; j < x->of.t; j++)
        add_scaled(&x->out[row * d], &x->v[(lead * x->of.t + j) * d], p[j], d);
    x->delta[row] = dot(&x->out[row * d], g, d);
    for (int64_t j = 0; j < x->of.t; j++) {
        const int64_t key = (lead * x->of.t + j) * d;
        const double slope =
            p[j] * (dot(g, &x->v[key], d) - x->delta[row]) * x->scale;

        add_scaled(&x->d_v[key], g, p[j], d);
        add_scaled(&x->d_q[row * d], &x->k[key], slope, d);
        add_scaled(&x->d_k[key], &x->q[row * d], slope, d);
    }
}

static void trial_init(struct trial *x, const struct shape *of)
{
    const int64_t queries = LEAD * of->s * of->d, keys = LEAD * of->t * of->d;
    uint64_t state = 11 + of->options;
    double *p = room(of->t);

    *x = (struct trial){.of = *of};
    x->scale = of->options & CAUSAL ? 0.0625 : 1 / sqrt((double)of->d);
    x->q = sixteenths(queries, &state);
    x->k = sixteenths(keys, &state);
    x->v = sixteenths(keys, &state);
    x->grad = sixteenths(queries, &state);
    x->mask = room(of->t * (of->s + BATCHES));
    for (int64_t i = 0; i < of->t * (of->s + BATCHES); i++)
        x->mask[i] = op_random(&state) > 0.2;
    x->out = room(queries);
    x->lse = room(LEAD * of->s);
    x->delta = room(LEAD * of->s);
    x->d_q = room(queries);
    x->d_k = room(keys);
    x->d_v = room(keys);
    for (int64_t lead = 0; lead < LEAD; lead++)
        for (int64_t i = 0; i < of->s; i++)
            reference_row(x, lead, i, p);
    free(p);
}

static void trial_release(struct trial *x)
{
    double *const all[] = {x->q,   x->k,     x->v,   x->mask, x->grad, x->out,
                           x->lse, x->delta, x->d_q, x->d_k,  x->d_v};

    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]);
}

/* NUMBERS as [BATCHES, HEADS, ROWS, COLUMNS], in memory with heads between rows
 * if they are MIXED. */
static hob_tensor *laid(const double *numbers, hob_dtype dtype, int64_t rows,
                        int64_t columns, int mixed)
{
    const int64_t shape[] = {BATCHES, HEADS, rows, columns};
    hob_tensor *x = op_tensor(&f, dtype, numbers, shape, 4);

    if (!mixed)
        return x;
    x = hob_contiguous(f.scope, hob_swap_dims(f.scope, x, 1, 2));
    return hob_swap_dims(f.scope, x, 1, 2);
}

static hob_tensor *laid_mask(const struct trial *x)
{
    const int64_t keys[] = {BATCHES, 1, 1, x->of.t};
    const int64_t pairs[] = {x->of.s, x->of.t};

    if (x->of.options & MASK_KEYS)
        return op_tensor(&f, HOB_DTYPE_BOOL, x->mask, keys, 4);
    if (x->of.options & MASK_PAIRS)
        return op_tensor(&f, HOB_DTYPE_BOOL, x->mask, pairs, 2);
    return NULL;
}

static void check(const struct trial *x, const char *what, hob_dtype dtype,
                  hob_tensor *tensor, const double *expected, int64_t rows,
                  double tolerance)
{
    char text[128];

    snprintf(text, sizeof(text), "%s %s [%d,%d,%d] options %u", what,
             hob_dtype_name(dtype), (int)x->of.s, (int)x->of.t, (int)x->of.d,
             (unsigned)x->of.options);
    op_check(&f, text, tensor, expected, LEAD * rows * x->of.d, tolerance);
}

static void run(const struct trial *x, hob_dtype dtype, int mixed)
{
    const struct shape *of = &x->of;
    const int causal = (of->options & CAUSAL) != 0;
    const hob_scalar scale =
        of->options & CAUSAL ? hob_f64(x->scale) : hob_none();
    /* Weights are rounded to the dtype, and sums of them and of slopes have
     * numbers of up to 2; a gradient is of three factors. */
    const double tolerance = dtype == HOB_DTYPE_F16 ? 3e-3 : 2.4e-2;
    hob_tensor *q = laid(x->q, dtype, of->s, of->d, mixed);
    hob_tensor *k = laid(x->k, dtype, of->t, of->d, mixed);
    hob_tensor *v = laid(x->v, dtype, of->t, of->d, !mixed);
    hob_tensor *grad = laid(x->grad, dtype, of->s, of->d, !mixed);
    hob_tensor *lse = laid(x->lse, HOB_DTYPE_F32, of->s, 1, 0);
    hob_tensor *delta = laid(x->delta, HOB_DTYPE_F32, of->s, 1, 0);
    hob_tensor *mask = laid_mask(x), *d_q, *d_k, *d_v, *d_bias;

    check(
        x, "attention", dtype,
        hob_attention(f.scope, q, k, v, mask, NULL, scale, hob_none(), causal),
        x->out, of->s, tolerance);
    ck_assert_int_eq(hob_attention_backward(
                         f.scope, q, k, v, mask, NULL, lse, delta, grad, scale,
                         hob_none(), causal, 0, &d_q, &d_k, &d_v, &d_bias),
                     HOB_OK);
    check(x, "d_query", dtype, d_q, x->d_q, of->s, 4 * tolerance);
    check(x, "d_key", dtype, d_k, x->d_k, of->t, 4 * tolerance);
    check(x, "d_value", dtype, d_v, x->d_v, of->t, 4 * tolerance);
}

START_TEST(test_attention_of_halves)
{
    struct trial x;

    /* Loops of 10^8 steps; a few of the shapes have each kind of mask. */
    if (HOB_BUILD_SANITIZERS && _i % 3 != 2)
        return;
    op_fixture_open(&f, 1);
    if (!f.device)
        return;
    trial_init(&x, &shapes[_i]);
    run(&x, HOB_DTYPE_BF16, 0);
    run(&x, HOB_DTYPE_BF16, 1);
    run(&x, HOB_DTYPE_F16, _i % 2);
    trial_release(&x);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("attention_halves");
    TCase *tc = tcase_create("device");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_attention_of_halves, 0, SHAPES);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
