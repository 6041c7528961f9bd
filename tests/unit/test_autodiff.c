/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What autodiff promises about graphs: their life, their errors, the use of
 * memory, levels and threads. The rules are tested in test_autodiff_rules.c.
 *
 * Each test ends with hob_runtime_close(), which fails while anything lives:
 * so each is a leak test, too.
 */
#include "storage.h"

#include <hob/hob.h>

#include "hob_check.h"
#include "test_device.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { CHAIN = 1000000, THREADS = 4, ROUNDS = 200 };

static hob_runtime *runtime;
static hob_device *flex;
static hob_device *saving;   /* autodiff(flex) */
static hob_device *balanced; /* the same, recomputing */
static hob_device *twice;    /* autodiff(autodiff(flex)) */
static hob_scope *scope;
static hob_error error;

static void setup(void)
{
    struct hob_runtime_options options = test_options();

    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(test_device_open(runtime, "flex", &flex, &error));
    ck_assert_hob_ok(
        test_device_open(runtime, "autodiff(flex)", &saving, &error));
    ck_assert_hob_ok(test_device_open(
        runtime, "autodiff{checkpoint=balanced}(flex)", &balanced, &error));
    ck_assert_hob_ok(
        test_device_open(runtime, "autodiff(autodiff(flex))", &twice, &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(twice);
    hob_device_unref(balanced);
    hob_device_unref(saving);
    hob_device_unref(flex);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* A vector on DEVICE: FIRST, FIRST + 1, ... */
static hob_tensor *vector(hob_device *device, double first, int64_t count)
{
    double data[16];

    for (int64_t i = 0; i < count; i++)
        data[i] = first + (double)i;
    return hob_from_f64(scope, device, data, &count, 1);
}

static hob_tensor *leaf_on(hob_device *device, double first, int64_t count)
{
    return hob_require_grad(scope, vector(device, first, count));
}

static hob_grads *backward(hob_tensor *tensor, uint32_t flags)
{
    hob_grads *grads = NULL;

    ck_assert_hob_ok(hob_backward(scope, tensor, flags, &grads, &error));
    return grads;
}

/* Element 0 of the gradient of LEAF, whose presence is asserted. */
static double grad_of(hob_tensor *leaf, const hob_grads *grads)
{
    hob_tensor *grad = NULL;
    double data[16];

    ck_assert_hob_ok(hob_grad(scope, leaf, grads, &grad, &error));
    ck_assert_ptr_nonnull(grad);
    ck_assert_hob_ok(hob_read_f64(grad, data, hob_tensor_count(grad), &error));
    return data[0];
}

static void expect_error(hob_status status, const char *part)
{
    ck_assert_hob_fails(hob_scope_error(scope, &error), status, part);
    hob_scope_clear_error(scope);
}

/* ---- leaves and history ---- */

START_TEST(test_autodiff_grads_are_of_one_layer)
{
    hob_tensor *x = leaf_on(saving, 2, 3);
    hob_tensor *foreign = leaf_on(balanced, 2, 3);
    hob_grads *grads = backward(hob_sum(scope, x), 0);
    hob_tensor *grad = x;

    ck_assert_hob_fails(hob_grad(scope, foreign, grads, &grad, &error),
                        HOB_ERR_ARGUMENT, "of another autodiff");
    ck_assert_ptr_null(grad);
    hob_grads_free(grads);
}
END_TEST

START_TEST(test_autodiff_leaf_has_a_gradient)
{
    hob_tensor *x = leaf_on(saving, 2, 3);
    hob_tensor *y = hob_sum(scope, hob_square(scope, x));
    hob_grads *grads;

    ck_assert_int_ne(hob_is_tracked(x), 0);
    ck_assert_int_ne(hob_is_tracked(y), 0);
    grads = backward(y, 0);
    ck_assert_double_eq(grad_of(x, grads), 4);
    hob_grads_free(grads);
}
END_TEST

START_TEST(test_autodiff_untracked_tensors_cost_nothing)
{
    hob_tensor *x = vector(saving, 2, 3);
    hob_tensor *y = hob_exp(scope, x);
    hob_grads *grads = NULL;

    ck_assert_int_eq(hob_is_tracked(x), 0);
    ck_assert_int_eq(hob_is_tracked(y), 0);
    ck_assert_hob_fails(hob_backward(scope, y, 0, &grads, &error),
                        HOB_ERR_ARGUMENT, "not tracked");
    ck_assert_ptr_null(grads);
}
END_TEST

START_TEST(test_autodiff_backward_of_a_leaf_is_ones)
{
    hob_tensor *x = leaf_on(saving, 2, 3);
    hob_grads *grads = backward(x, 0);

    ck_assert_double_eq(grad_of(x, grads), 1);
    hob_grads_free(grads);
    hob_grads_free(NULL);
}
END_TEST

START_TEST(test_autodiff_require_grad_refuses)
{
    hob_tensor *x = leaf_on(saving, 2, 3);

    ck_assert_ptr_eq(hob_require_grad(scope, x), x); /* it is one already */
    hob_require_grad(scope, hob_exp(scope, x));
    expect_error(HOB_ERR_STATE, "result of exp");
    hob_require_grad(scope, hob_arange(scope, 0, 3, 1, saving, HOB_DTYPE_NONE));
    expect_error(HOB_ERR_DTYPE, "i32");
    hob_require_grad(scope, vector(flex, 0, 3));
    expect_error(HOB_ERR_DEVICE, "open the device as \"autodiff(");
}
END_TEST

START_TEST(test_autodiff_detach_and_inner_end_history)
{
    hob_tensor *x = leaf_on(saving, 2, 3);
    hob_tensor *y = hob_square(scope, x);
    hob_tensor *cut = hob_detach(scope, y);
    hob_tensor *below = hob_inner(scope, y);
    double data[3];
    hob_grads *grads;

    ck_assert_int_eq(hob_is_tracked(cut), 0);
    ck_assert_ptr_eq(hob_tensor_device(cut), saving);
    ck_assert_ptr_eq(hob_tensor_device(below), flex);
    ck_assert_hob_ok(hob_read_f64(below, data, 3, &error));
    ck_assert_double_eq(data[2], 16);
    /* x * detach(x^2): the detached side is a constant. */
    grads = backward(hob_mul(scope, x, cut), 0);
    ck_assert_double_eq(grad_of(x, grads), 4);
    hob_grads_free(grads);
    /* A detached tensor may become a leaf of its own. */
    ck_assert_int_ne(hob_is_tracked(hob_require_grad(scope, cut)), 0);
}
END_TEST

START_TEST(test_autodiff_no_grad_records_nothing)
{
    hob_tensor *x = leaf_on(saving, 2, 3);
    hob_scope *quiet = hob_no_grad(scope, saving);
    hob_tensor *y = hob_exp(quiet, x);

    ck_assert_int_eq(hob_is_tracked(y), 0);
    hob_scope_close(quiet);
}
END_TEST

START_TEST(test_autodiff_integers_carry_no_gradient)
{
    hob_tensor *x = leaf_on(saving, 2, 3);

    ck_assert_int_eq(hob_is_tracked(hob_argmax(scope, x, 0, HOB_DTYPE_NONE)),
                     0);
    ck_assert_int_eq(hob_is_tracked(hob_greater_scalar(scope, x, hob_f64(2))),
                     0);
    ck_assert_int_eq(hob_is_tracked(hob_cast(scope, x, HOB_DTYPE_I64)), 0);
    ck_assert_int_ne(hob_is_tracked(hob_cast(scope, x, HOB_DTYPE_F32)), 0);
}
END_TEST

/* ---- grads ---- */

START_TEST(test_autodiff_grad_tells_leaves_apart)
{
    hob_tensor *x = leaf_on(saving, 2, 3);
    hob_tensor *other = leaf_on(saving, 5, 3);
    hob_tensor *y = hob_square(scope, x);
    hob_grads *grads = backward(y, 0);
    hob_tensor *grad = x;

    ck_assert_hob_ok(hob_grad(scope, other, grads, &grad, &error));
    ck_assert_ptr_null(grad); /* none reached it */
    ck_assert_hob_fails(hob_grad(scope, y, grads, &grad, &error),
                        HOB_ERR_ARGUMENT, "result of square");
    ck_assert_hob_fails(
        hob_grad(scope, vector(saving, 0, 2), grads, &grad, &error),
        HOB_ERR_ARGUMENT, "not tracked");
    hob_grads_free(grads);
}
END_TEST

START_TEST(test_autodiff_gradients_add_up)
{
    hob_tensor *x = leaf_on(saving, 3, 2);
    hob_tensor *y = hob_add(scope, hob_mul(scope, x, x),
                            hob_add(scope, x, hob_add(scope, x, x)));
    hob_grads *grads = backward(y, 0);

    ck_assert_double_eq(grad_of(x, grads), 2 * 3 + 3);
    hob_grads_free(grads);
}
END_TEST

/* x0^0: by the exponent's slope 0, by the base's 0. */
START_TEST(test_autodiff_pow_of_zero_has_no_nan)
{
    hob_tensor *base = leaf_on(saving, 0, 1);
    hob_tensor *exponent = leaf_on(saving, 0, 1);
    hob_grads *grads = backward(hob_pow(scope, base, exponent), 0);

    ck_assert_double_eq(grad_of(base, grads), 0);
    ck_assert_double_eq(grad_of(exponent, grads), 0);
    hob_grads_free(grads);
}
END_TEST

/* Of equal elements the first is chosen, whole and along a dimension. */
START_TEST(test_autodiff_extreme_goes_to_one_element)
{
    const double data[] = {1, 5, 5, 0};
    const int64_t shape[] = {4};
    hob_tensor *x =
        hob_require_grad(scope, hob_from_f64(scope, saving, data, shape, 1));
    hob_grads *grads = backward(hob_max(scope, x), 0);
    hob_tensor *grad;
    double got[4];

    ck_assert_hob_ok(hob_grad(scope, x, grads, &grad, &error));
    ck_assert_hob_ok(hob_read_f64(grad, got, 4, &error));
    ck_assert_double_eq(got[1], 1);
    ck_assert_double_eq(got[2], 0);
    hob_grads_free(grads);
}
END_TEST

START_TEST(test_autodiff_empty_tensors)
{
    const int64_t shape[] = {0, 3};
    hob_tensor *x = hob_require_grad(
        scope, hob_zeros(scope, shape, 2, saving, HOB_DTYPE_F64));
    hob_tensor *y = hob_mul(scope, x, vector(saving, 1, 3));
    hob_grads *grads;
    hob_tensor *grad;

    y = hob_add(scope, hob_sum(scope, y), hob_prod(scope, x));
    grads = backward(y, 0);
    ck_assert_hob_ok(hob_grad(scope, x, grads, &grad, &error));
    ck_assert_int_eq(hob_tensor_count(grad), 0);
    ck_assert_int_eq(hob_tensor_rank(grad), 2);
    hob_grads_free(grads);
}
END_TEST

/* What a rule saved is not written over by the last use of its tensor. */
START_TEST(test_autodiff_move_keeps_saved_elements)
{
    hob_tensor *x = leaf_on(saving, 2, 3);
    hob_tensor *y = hob_exp(scope, x); /* saves its result */
    hob_tensor *z = hob_mul_scalar(scope, hob_move(scope, y), hob_f64(10));
    hob_grads *grads = backward(hob_move(scope, z), 0);

    ck_assert_double_eq_tol(grad_of(x, grads), 10 * exp(2), 1e-9);
    hob_grads_free(grads);
}
END_TEST

/* add hands one gradient to both of its inputs, whose rules would write over
 * one of their own; and one of them is kept. */
START_TEST(test_autodiff_shared_gradients_are_not_written_over)
{
    hob_tensor *x = leaf_on(_i ? balanced : saving, -4, 12);
    hob_tensor *y = leaf_on(_i ? balanced : saving, -7, 12);
    hob_tensor *z = leaf_on(_i ? balanced : saving, 0, 12), *grad = NULL;
    hob_tensor *sum = hob_add(scope, hob_relu(scope, hob_relu(scope, x)),
                              hob_sin(scope, hob_relu(scope, y)));
    hob_tensor *leaves[] = {x, y, z};
    hob_grads *grads = backward(hob_add(scope, sum, z), 0);
    double got[3][12];

    for (int k = 0; k < 3; k++) {
        ck_assert_hob_ok(hob_grad(scope, leaves[k], grads, &grad, &error));
        ck_assert_hob_ok(hob_read_f64(grad, got[k], 12, &error));
    }
    for (int i = 0; i < 12; i++) {
        ck_assert_double_eq(got[0][i], i > 4);
        ck_assert_double_eq_tol(got[1][i], i > 7 ? cos(i - 7) : 0, 1e-12);
        ck_assert_double_eq(got[2][i], 1);
    }
    hob_grads_free(grads);
}
END_TEST

/* ---- consuming ---- */

START_TEST(test_autodiff_second_backward_is_an_error)
{
    hob_tensor *x = leaf_on(saving, 2, 3);
    hob_tensor *y = hob_square(scope, x);
    hob_tensor *z = hob_exp(scope, y);
    hob_grads *grads = backward(z, 0);

    hob_grads_free(grads);
    ck_assert_hob_fails(hob_backward(scope, z, 0, &grads, &error),
                        HOB_ERR_STATE, "HOB_BACKWARD_RETAIN");
    ck_assert_ptr_null(grads);
    /* A new end on a consumed graph: the same. */
    ck_assert_hob_fails(
        hob_backward(scope, hob_sum(scope, y), 0, &grads, &error),
        HOB_ERR_STATE, "result of square");
    /* The leaf is still good. */
    grads = backward(hob_square(scope, x), 0);
    ck_assert_double_eq(grad_of(x, grads), 4);
    hob_grads_free(grads);
}
END_TEST

START_TEST(test_autodiff_retain_allows_another)
{
    hob_tensor *x = leaf_on(_i ? balanced : saving, 2, 3);
    hob_tensor *y = hob_sum(scope, hob_exp(scope, hob_square(scope, x)));
    hob_grads *first = backward(y, HOB_BACKWARD_RETAIN);
    hob_grads *second = backward(y, HOB_BACKWARD_RETAIN);
    hob_grads *third = backward(y, 0);

    ck_assert_double_eq(grad_of(x, first), grad_of(x, second));
    ck_assert_double_eq(grad_of(x, first), grad_of(x, third));
    hob_grads_free(first);
    hob_grads_free(second);
    hob_grads_free(third);
    ck_assert_hob_fails(hob_backward(scope, y, 0, &first, &error),
                        HOB_ERR_STATE, "consumed");
    ck_assert_hob_fails(hob_backward(scope, y, 8, &first, &error),
                        HOB_ERR_ARGUMENT, "0x8");
}
END_TEST

START_TEST(test_autodiff_unused_graphs_are_freed)
{
    hob_tensor *x = leaf_on(_i ? balanced : saving, 2, 3);

    for (int i = 0; i < ROUNDS; i++) {
        hob_scope *step = hob_scope_child(scope);
        hob_tensor *y = hob_exp(step, hob_mul(step, x, x));

        y = hob_sum(step, hob_relu(step, hob_add(step, y, x)));
        ck_assert_int_ne(hob_is_tracked(y), 0);
        hob_scope_close(step); /* without a backward */
    }
}
END_TEST

/* ---- what is kept ---- */

/* Whether something besides TENSOR's handle holds its elements. What a lazy
 * device has put off reads them too, until it has run. */
static int is_saved(hob_tensor *tensor)
{
    ck_assert_hob_ok(hob_device_sync(hob_tensor_device(tensor), &error));
    ck_assert_hob_ok(hob_eval(&tensor, 1, &error));
    return atomic_load(&hob_tensor_view(tensor)->storage->refs) > 1;
}

/* Matrix products are dear and stay; what is between them is computed again.
 * The chain's ends see to it that all of it is needed. */
START_TEST(test_autodiff_balanced_saves_dear_results_only)
{
    const int64_t square[] = {3, 3};
    hob_tensor *x =
        hob_reshape(scope, vector(_i ? balanced : saving, -4, 9), square, 2);
    hob_tensor *w = hob_require_grad(scope, x);
    hob_tensor *dear = hob_matmul(scope, x, w);
    hob_tensor *cheap[4];
    hob_grads *grads;

    if (strchr(test_device(), '(')) {
        printf("skipped: a layer below keeps handles of its own\n");
        return;
    }
    cheap[0] = hob_tanh(scope, dear);
    cheap[1] = hob_mul(scope, cheap[0], cheap[0]);
    cheap[2] = hob_exp(scope, cheap[1]);
    cheap[3] = hob_relu(scope, hob_sub_scalar(scope, cheap[2], hob_f64(1)));
    x = hob_matmul(scope, cheap[3], w);
    for (int i = 0; i < 4; i++)
        if (i != 1) /* exp saves its result, not its input */
            ck_assert_int_eq(is_saved(cheap[i]), !_i);
    ck_assert_int_eq(is_saved(cheap[1]), 0);
    ck_assert_int_eq(is_saved(dear), _i);
    grads = backward(x, 0);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(is_saved(cheap[i]), 0);
    ck_assert_int_eq(is_saved(dear), 0);
    hob_grads_free(grads);
}
END_TEST

/* Nobody needs the elements of x + x: not even balanced keeps x for it, once
 * nobody can come to need it. */
START_TEST(test_autodiff_balanced_keeps_nothing_for_nobody)
{
    hob_tensor *x = leaf_on(balanced, 1, 3);
    hob_tensor *dear = hob_cumsum(scope, x, 0);
    hob_scope *step = hob_scope_child(scope);
    hob_tensor *sum = hob_add(step, dear, dear);
    hob_tensor *end = hob_sum(scope, sum);
    hob_grads *grads;

    ck_assert_int_ne(is_saved(dear), 0);
    hob_scope_close(step);
    ck_assert_int_eq(is_saved(dear), 0);
    grads = backward(end, 0);
    ck_assert_double_eq(grad_of(x, grads), 6);
    hob_grads_free(grads);
}
END_TEST

/* A walk that fails half-way lets go of what it has computed again, though
 * nobody else has the nodes any more. */
START_TEST(test_autodiff_balanced_fails_cleanly_on_the_way)
{
    hob_scope *step = hob_scope_child(scope);
    hob_tensor *x = leaf_on(balanced, 1, 3);
    hob_tensor *used = hob_cumsum(scope, hob_cumsum(scope, x, 0), 0);
    hob_tensor *late = x;
    hob_tensor *end;
    hob_grads *grads = backward(hob_sum(scope, used), 0);

    hob_grads_free(grads);
    for (int i = 0; i < 4; i++)
        late = hob_cumsum(step, late, 0);
    /* Its rule asks for exp(x), which is cheap, and for it alone. */
    late = hob_mul(step, hob_exp(step, x), late);
    end = hob_keep(scope, hob_sum(step, hob_add(step, late, used)));
    hob_scope_close(step);
    ck_assert_hob_fails(hob_backward(scope, end, 0, &grads, &error),
                        HOB_ERR_STATE, "consumed");
    ck_assert_ptr_null(grads);
}
END_TEST

/* matmul keeps a side only for the other's gradient. */
START_TEST(test_autodiff_saves_only_what_is_tracked)
{
    const int64_t square[] = {3, 3};
    hob_tensor *x = hob_reshape(scope, vector(saving, -4, 9), square, 2);
    hob_tensor *constant = hob_exp(scope, x);
    hob_tensor *w = hob_exp(scope, hob_require_grad(scope, x));
    hob_tensor *alone = hob_neg(scope, w); /* neg keeps nothing */

    hob_matmul(scope, constant, alone);
    ck_assert_int_ne(is_saved(constant), 0);
    ck_assert_int_eq(is_saved(alone), 0);
}
END_TEST

/* ---- depth, threads, levels ---- */

START_TEST(test_autodiff_million_nodes)
{
    hob_device *device = _i ? balanced : saving;
    hob_tensor *x = leaf_on(device, 1, 1);
    hob_tensor *y = x;
    hob_grads *grads;
    /* The graph is the host's: one of a device with slow launches, or of slow
     * code with large frames, need only be deeper than a stack. */
    const int length =
        test_device_is_flex() && !HOB_BUILD_SANITIZERS ? CHAIN : CHAIN / 20;

    hob_tensor_ref(y);
    for (int i = 0; i < length; i++) {
        hob_scope *step = hob_scope_child(scope);
        hob_tensor *next =
            i % 2 ? hob_mul_scalar(step, y, hob_f64(1))
                  : hob_mul(step, y, hob_detach(step, hob_div(step, y, y)));

        hob_tensor_ref(next);
        hob_tensor_unref(y);
        y = next;
        hob_scope_close(step);
    }
    grads = backward(y, HOB_BACKWARD_RETAIN);
    ck_assert_double_eq(grad_of(x, grads), 1);
    hob_grads_free(grads);
    grads = backward(y, 0);
    ck_assert_double_eq(grad_of(x, grads), 1);
    hob_grads_free(grads);
    hob_tensor_unref(y);
}
END_TEST

START_TEST(test_autodiff_second_derivative)
{
    hob_tensor *low = leaf_on(saving, 2, 3);
    hob_tensor *x = hob_require_grad(scope, hob_to_device(scope, low, twice));
    hob_tensor *cube = hob_mul(scope, x, hob_mul(scope, x, x));
    hob_grads *first = backward(cube, 0);
    hob_grads *second;
    hob_tensor *grad;

    ck_assert_double_eq(grad_of(x, first), 3 * 2 * 2);
    ck_assert_hob_ok(hob_grad(scope, x, first, &grad, &error));
    ck_assert_ptr_eq(hob_tensor_device(grad), saving);
    ck_assert_int_ne(hob_is_tracked(grad), 0);
    second = backward(grad, 0);
    ck_assert_double_eq(grad_of(low, second), 6 * 2);
    hob_grads_free(second);
    hob_grads_free(first);
}
END_TEST

/* One thread's part of a sum: its own graph on the shared leaf. */
struct part {
    pthread_t thread;
    hob_device *device;
    hob_tensor *x; /* a reference of its own */
    hob_tensor *y; /* likewise, made by the thread */
};

static void *build(void *context)
{
    struct part *part = context;

    for (int i = 0; i < ROUNDS; i++) {
        hob_scope *own = hob_scope_open(runtime);
        hob_tensor *y = hob_sin(own, hob_mul(own, part->x, part->x));

        hob_tensor_unref(part->y);
        part->y = hob_exp(own, y);
        hob_tensor_ref(part->y);
        hob_scope_close(own);
    }
    return NULL;
}

START_TEST(test_autodiff_threads_build_one_graph)
{
    struct part parts[THREADS];
    hob_tensor *x = leaf_on(_i ? balanced : saving, 2, 3);
    hob_tensor *total = hob_mul_scalar(scope, x, hob_f64(0));
    double want = THREADS * exp(sin(4.0)) * cos(4.0) * 4;
    hob_grads *grads;

    for (int i = 0; i < THREADS; i++) {
        parts[i].x = x;
        parts[i].y = NULL;
        hob_tensor_ref(x);
        ck_assert_int_eq(
            pthread_create(&parts[i].thread, NULL, build, &parts[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(parts[i].thread, NULL);
        total = hob_add(scope, total, parts[i].y);
        hob_tensor_unref(parts[i].x);
        hob_tensor_unref(parts[i].y);
    }
    grads = backward(total, 0);
    ck_assert_double_eq_tol(grad_of(x, grads), want, 1e-9);
    hob_grads_free(grads);
}
END_TEST

/* Each thread walks the same graph, keeping it. */
static void *walk(void *context)
{
    struct part *part = context;

    for (int i = 0; i < ROUNDS; i++) {
        hob_scope *own = hob_scope_open(runtime);
        hob_grads *grads = NULL;
        hob_tensor *grad = NULL;

        if (hob_backward(own, part->y, HOB_BACKWARD_RETAIN, &grads, NULL) ||
            hob_grad(own, part->x, grads, &grad, NULL) || !grad)
            part->device = NULL;
        hob_grads_free(grads);
        hob_scope_close(own);
    }
    return NULL;
}

START_TEST(test_autodiff_threads_walk_one_graph)
{
    struct part parts[THREADS];
    hob_tensor *x = leaf_on(_i ? balanced : saving, 2, 3);
    hob_tensor *y = hob_exp(scope, hob_sin(scope, hob_mul(scope, x, x)));

    y = hob_matmul(scope, hob_unsqueeze(scope, y, 0),
                   hob_unsqueeze(scope, hob_relu(scope, y), 1));
    for (int i = 0; i < THREADS; i++) {
        parts[i].x = x;
        parts[i].y = y;
        parts[i].device = saving;
        hob_tensor_ref(x);
        hob_tensor_ref(y);
        ck_assert_int_eq(
            pthread_create(&parts[i].thread, NULL, walk, &parts[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(parts[i].thread, NULL);
        ck_assert_ptr_nonnull(parts[i].device);
        hob_tensor_unref(parts[i].x);
        hob_tensor_unref(parts[i].y);
    }
}
END_TEST

/* ---- options ---- */

START_TEST(test_autodiff_options_are_checked)
{
    hob_device *device = NULL;

    ck_assert_hob_fails(test_device_open(runtime,
                                        "autodiff{checkpoint=all}(flex)",
                                        &device, &error),
                        HOB_ERR_ARGUMENT, "balanced");
    ck_assert_hob_fails(
        test_device_open(runtime, "autodiff{depth=3}(flex)", &device, &error),
        HOB_ERR_ARGUMENT, "depth");
    ck_assert_ptr_null(device);
}
END_TEST

/* Two strategies over one base do not mix. */
START_TEST(test_autodiff_strategies_do_not_join)
{
    hob_tensor *sum =
        hob_add(scope, leaf_on(saving, 0, 2), leaf_on(balanced, 0, 2));

    ck_assert_int_ne(hob_tensor_status(sum, NULL), HOB_OK);
    expect_error(HOB_ERR_DEVICE, "balanced");
}
END_TEST

int main(void)
{
    Suite *suite;
    TCase *tc;

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        puts("skipped: HOB_TEST_PLUGIN_DIR does not name the plugins");
        return 77;
    }
    suite = suite_create("autodiff");
    tc = tcase_create("autodiff");
    tcase_set_timeout(tc, 300);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_autodiff_leaf_has_a_gradient);
    tcase_add_test(tc, test_autodiff_untracked_tensors_cost_nothing);
    tcase_add_test(tc, test_autodiff_backward_of_a_leaf_is_ones);
    tcase_add_test(tc, test_autodiff_require_grad_refuses);
    tcase_add_test(tc, test_autodiff_detach_and_inner_end_history);
    tcase_add_test(tc, test_autodiff_no_grad_records_nothing);
    tcase_add_test(tc, test_autodiff_integers_carry_no_gradient);
    tcase_add_test(tc, test_autodiff_grad_tells_leaves_apart);
    tcase_add_test(tc, test_autodiff_gradients_add_up);
    tcase_add_test(tc, test_autodiff_pow_of_zero_has_no_nan);
    tcase_add_test(tc, test_autodiff_extreme_goes_to_one_element);
    tcase_add_test(tc, test_autodiff_empty_tensors);
    tcase_add_test(tc, test_autodiff_move_keeps_saved_elements);
    tcase_add_loop_test(
        tc, test_autodiff_shared_gradients_are_not_written_over, 0, 2);
    tcase_add_test(tc, test_autodiff_second_backward_is_an_error);
    tcase_add_loop_test(tc, test_autodiff_retain_allows_another, 0, 2);
    tcase_add_loop_test(tc, test_autodiff_unused_graphs_are_freed, 0, 2);
    tcase_add_loop_test(tc, test_autodiff_balanced_saves_dear_results_only, 0,
                        2);
    tcase_add_test(tc, test_autodiff_balanced_keeps_nothing_for_nobody);
    tcase_add_test(tc, test_autodiff_balanced_fails_cleanly_on_the_way);
    tcase_add_test(tc, test_autodiff_grads_are_of_one_layer);
    tcase_add_test(tc, test_autodiff_saves_only_what_is_tracked);
    tcase_add_loop_test(tc, test_autodiff_million_nodes, 0, 2);
    tcase_add_test(tc, test_autodiff_second_derivative);
    tcase_add_loop_test(tc, test_autodiff_threads_build_one_graph, 0, 2);
    tcase_add_loop_test(tc, test_autodiff_threads_walk_one_graph, 0, 2);
    tcase_add_test(tc, test_autodiff_options_are_checked);
    tcase_add_test(tc, test_autodiff_strategies_do_not_join);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
