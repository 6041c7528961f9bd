/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matmul of f16 and bf16, for which GPUs have kernels of their own: sizes
 * beside the edges of tiles, long sums, batches, and operands in each layout.
 * Numbers are sixteenths below 1 and sums are short enough for f32 to hold
 * them, in any order: a result is the exact sum, rounded once.
 */
#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const struct shape {
    int64_t batches; /* of the left operand; the right one has one */
    int64_t m, n, k;
} shapes[] = {
    {1, 16, 16, 16},   {1, 9, 17, 33},      {1, 64, 64, 64},
    {1, 65, 63, 31},   {1, 130, 250, 104},  {1, 257, 129, 72},
    {1, 40, 40, 4096}, {2, 200, 300, 40},   {3, 33, 40, 7},
    {1, 3, 70, 100},   {1, 1500, 3060, 40}, {1, 1531, 2983, 24},
};
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* How an operand lies: in rows, in columns, behind one more element, with gaps
 * between elements. */
enum layout { ROWS, COLUMNS, BEHIND, GAPS, LAYOUTS };

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

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
        out[i] = floor(op_random(state) * 16) / 16;
    return out;
}

/* NUMBERS as [BATCHES, ROWS, COLUMNS] in LAYOUT. */
static hob_tensor *laid(const double *numbers, hob_dtype dtype, int64_t batches,
                        int64_t rows, int64_t columns, enum layout layout)
{
    const int64_t shape[] = {batches, rows, columns};
    const int64_t starts[] = {0, 0, layout == BEHIND};
    const int64_t ends[] = {batches, rows,
                            layout == GAPS ? 2 * columns : columns + 1};
    const int64_t steps[] = {1, 1, layout == GAPS ? 2 : 1};
    hob_tensor *x = op_tensor(&f, dtype, numbers, shape, 3);
    hob_tensor *both[2] = {x, x};

    switch (layout) {
    case COLUMNS:
        x = hob_contiguous(f.scope, hob_swap_dims(f.scope, x, 1, 2));
        return hob_swap_dims(f.scope, x, 1, 2);
    case BEHIND:
        both[0] = hob_zeros(f.scope, (const int64_t[]){batches, rows, 1}, 3,
                            f.device, dtype);
        x = hob_cat(f.scope, both, 2, 2);
        return hob_slice(f.scope, x, starts, 3, ends, 3, steps, 3);
    case GAPS:
        x = hob_stack(f.scope, both, 2, 3);
        x = hob_reshape(f.scope, x,
                        (const int64_t[]){batches, rows, 2 * columns}, 3);
        return hob_slice(f.scope, x, starts, 3, ends, 3, steps, 3);
    default:
        return x;
    }
}

static void multiply(const struct shape *of, const double *a, const double *b,
                     double *out)
{
    for (int64_t i = 0; i < of->batches * of->m; i++)
        for (int64_t k = 0; k < of->k; k++)
            for (int64_t j = 0; j < of->n; j++)
                out[i * of->n + j] += a[i * of->k + k] * b[k * of->n + j];
}

/* One assertion for all elements: there are millions. */
static void check_equal(const char *what, hob_tensor *tensor,
                        const double *expected, int64_t count)
{
    double *got = room(count);
    int64_t i = 0;

    op_read(&f, tensor, got, count);
    while (i < count && got[i] == expected[i])
        i++;
    ck_assert_msg(i == count, "%s: element %d is %.9g, not %.9g", what, (int)i,
                  i < count ? got[i] : 0, i < count ? expected[i] : 0);
    free(got);
}

/* EXPECTED as DTYPE holds it. */
static void round_all(double *expected, int64_t count, hob_dtype dtype)
{
    hob_tensor *x = op_vector(&f, HOB_DTYPE_F64, expected, count);

    op_read(&f, hob_cast(f.scope, x, dtype), expected, count);
}

static void run(const struct shape *of, hob_dtype dtype, enum layout left,
                enum layout right)
{
    const int64_t count = of->batches * of->m * of->n;
    uint64_t state = 5 + dtype;
    double *a = sixteenths(of->batches * of->m * of->k, &state);
    double *b = sixteenths(of->k * of->n, &state);
    double *expected = room(count);
    char what[96];

    multiply(of, a, b, expected);
    round_all(expected, count, dtype);
    snprintf(what, sizeof(what), "%s [%d,%d,%d]@[%d,%d] layouts %d %d",
             hob_dtype_name(dtype), (int)of->batches, (int)of->m, (int)of->k,
             (int)of->k, (int)of->n, (int)left, (int)right);
    check_equal(what,
                hob_matmul(f.scope,
                           laid(a, dtype, of->batches, of->m, of->k, left),
                           laid(b, dtype, 1, of->k, of->n, right)),
                expected, count);
    free(a);
    free(b);
    free(expected);
}

START_TEST(test_matmul_of_halves)
{
    const struct shape *of = &shapes[_i];

    op_fixture_open(&f, 1);
    if (!f.device)
        return;
    run(of, HOB_DTYPE_BF16, ROWS, ROWS);
    run(of, HOB_DTYPE_F16, COLUMNS, COLUMNS);
    run(of, HOB_DTYPE_BF16, (enum layout)(_i % LAYOUTS),
        (enum layout)((_i + 1) % LAYOUTS));
    if (of->m * of->n > 1 << 20)
        return;
    run(of, HOB_DTYPE_F16, BEHIND, GAPS);
    run(of, HOB_DTYPE_F16, ROWS, COLUMNS);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("matmul_halves");
    TCase *tc = tcase_create("device");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_matmul_of_halves, 0, SHAPES);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
