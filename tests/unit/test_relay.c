/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hundreds of ops that depend on one another and are asked for without waiting:
 * large and small ones take turns, and memory that one has left is the next
 * one's. A device that starts work while earlier work ends shows here whether
 * it waits where it has to. Numbers are small integers, so the truth is exact.
 */
#include "hob_check.h"
#include "op_fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 331, COLUMNS = 300, COUNT = ROWS * COLUMNS, STEPS = 240 };

/* What numbers are counted by: sums of two and a bit are exact in f32. */
static const double modulus = 251;

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

/* ---- the steps by ops ---- */

static hob_tensor *turned(hob_scope *scope, hob_tensor *x)
{
    const int64_t count = COUNT;

    x = hob_contiguous(scope, hob_swap_dims(scope, x, 0, 1));
    x = hob_reshape(scope, x, &count, 1);
    return hob_reshape(scope, x, (int64_t[]){ROWS, COLUMNS}, 2);
}

/* Two large ones with one of a single element between them. */
static hob_tensor *raised(hob_scope *scope, hob_tensor *x)
{
    hob_tensor *most = hob_max(scope, x);

    return hob_add(scope, x, hob_reshape(scope, most, (int64_t[]){1, 1}, 2));
}

static hob_tensor *step(hob_scope *scope, hob_tensor *x, int number)
{
    switch (number % 4) {
    case 0:
        x = hob_mul_scalar(scope, x, hob_f64(3));
        x = hob_add_scalar(scope, x, hob_f64(number % 7));
        break;
    case 1:
        x = hob_add(scope, x, hob_flip(scope, x, (int64_t[]){0, 1}, 2));
        break;
    case 2:
        return turned(scope, x);
    default:
        x = raised(scope, x);
    }
    return hob_remainder_scalar(scope, x, hob_f64(modulus));
}

/* ---- and by hand ---- */

static void reference_step(double *x, double *scratch, int number)
{
    double most = 0;

    memcpy(scratch, x, COUNT * sizeof(*x));
    for (int i = 0; i < COUNT; i++)
        most = fmax(most, x[i]);
    for (int i = 0; i < COUNT; i++)
        switch (number % 4) {
        case 0:
            x[i] = fmod(3 * x[i] + number % 7, modulus);
            break;
        case 1:
            x[i] = fmod(scratch[i] + scratch[COUNT - 1 - i], modulus);
            break;
        case 2:
            x[i] = scratch[i % ROWS * COLUMNS + i / ROWS];
            break;
        default:
            x[i] = fmod(x[i] + most, modulus);
        }
}

START_TEST(test_relay)
{
    double *x = calloc(COUNT, sizeof(*x)), *y = calloc(COUNT, sizeof(*y));
    hob_scope *last = NULL; /* which has the tensor that goes around */
    hob_tensor *relay;

    ck_assert(x && y);
    op_fixture_open(&f, 1);
    if (f.device) {
        for (int i = 0; i < COUNT; i++)
            x[i] = (double)(i % 251);
        relay = op_tensor(&f, HOB_DTYPE_F32, x, (int64_t[]){ROWS, COLUMNS}, 2);
        for (int i = 0; i < STEPS; i++) {
            hob_scope *next = hob_scope_child(f.scope);
            hob_scope *inside = hob_scope_child(next);

            relay = hob_keep(next, step(inside, relay, i));
            hob_scope_close(inside);
            if (last)
                hob_scope_close(last);
            last = next;
            reference_step(x, y, i);
        }
        op_check(&f, "the last step", relay, x, COUNT, 0);
        hob_scope_close(last);
    }
    free(x);
    free(y);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("relay");
    TCase *tc = tcase_create("device");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_relay);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
