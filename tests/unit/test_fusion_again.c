/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that fusion records as it did one like them: what they give is what
 * they give elsewhere, and what may not be recorded so is not.
 */
#include "hob_check.h"
#include "lazy.h"
#include "runtime.h"
#include "test_device.h"

#include <hob/fusion.h>
#include <hob/hob.h>

#include <string.h>

enum { COUNT = 6, ROUNDS = 4 };

static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *plain, *lazy, *tracked;

/* The layer's own, and how often it has put a call off. */
static struct hob_decorator real, counting;
static int taken;

static int32_t count_again(void *layer, const struct hob_again *call,
                           void **out_words)
{
    const int32_t done = real.again(layer, call, out_words);

    taken += done != 0;
    return done;
}

/* A layer made when the origin of a call had no number gets no more of it than
 * it has room for. */
static void ask_as_older(const struct hob_call *call)
{
    struct hob_call_origin origin;

    memset(&origin, 0xa5, sizeof(origin));
    origin.struct_size = offsetof(struct hob_call_origin, kind);
    hob__call_origin(call, &origin);
    ck_assert_uint_eq(origin.struct_size,
                      offsetof(struct hob_call_origin, kind));
    ck_assert_uint_ne(origin.index, UINT64_C(0xa5a5a5a5a5a5a5a5));
    ck_assert_uint_eq(origin.kind, UINT64_C(0xa5a5a5a5a5a5a5a5));
}

/* The number of the latest call that the layer was asked for. */
static uint64_t kind;

static int32_t note_kind(void *layer, struct hob_call *call,
                         const struct hob_op_impl *impl, hob_status *out_status)
{
    struct hob_call_origin origin = {.struct_size = sizeof(origin)};

    ask_as_older(call);
    hob__call_origin(call, &origin);
    kind = origin.kind;
    return real.call(layer, call, impl, out_status);
}

static hob_device *device_open(const char *spec)
{
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;

    ck_assert_hob_ok(test_device_open(runtime, spec, &device, &error));
    return device;
}

static void setup(void)
{
    struct hob_runtime_options options = test_options();
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    plain = device_open("flex");
    lazy = device_open("fusion(flex)");
    tracked = device_open("autodiff(fusion(flex))");
    scope = hob_scope_open(runtime);
    real = *lazy->decorator;
    counting = real;
    counting.again = count_again;
    counting.call = note_kind;
    /* Room in the list of the scope, which other calls make. */
    for (int i = 0; i < 40; i++)
        (void)hob_zeros(scope, NULL, 0, plain, HOB_DTYPE_F32);
    lazy->decorator = &counting;
    taken = 0;
}

static void teardown(void)
{
    hob_error error = HOB_ERROR_INIT;

    hob_scope_close(scope);
    hob_device_unref(plain);
    hob_device_unref(lazy);
    hob_device_unref(tracked);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* 2 x 3 numbers from FIRST on. */
static hob_tensor *make(hob_scope *where, hob_device *device, float first)
{
    static const int64_t shape[] = {2, 3};
    float data[COUNT];

    for (int i = 0; i < COUNT; i++)
        data[i] = first + (float)i;
    return hob_from_f32(where, device, data, shape, 2);
}

/* ---- what is put off ---- */

static hob_tensor *add(hob_tensor *x, hob_tensor *y)
{
    return hob_add(scope, x, y);
}

static hob_tensor *scale(hob_tensor *x, hob_tensor *y)
{
    (void)y;
    return hob_mul_scalar(scope, x, hob_f64(1.5));
}

static hob_tensor *join(hob_tensor *x, hob_tensor *y)
{
    return hob_cat(scope, (hob_tensor *[]){x, y, x}, 3, 1);
}

static hob_tensor *rows(hob_tensor *x, hob_tensor *y)
{
    return hob_sub(scope, hob_add(scope, x, y), hob_mul(scope, y, y));
}

static const struct {
    hob_tensor *(*call)(hob_tensor *x, hob_tensor *y);
    int calls;
} calls[] = {{add, 1}, {scale, 1}, {join, 1}, {rows, 3}};

/* The first call of each makes what its inputs lead to, so the second one is
 * the first that can be like it. */
START_TEST(test_again_gives_what_the_first_call_gives)
{
    hob_tensor *x = make(scope, lazy, 1), *y = make(scope, lazy, 10);
    hob_tensor *want =
        calls[_i].call(make(scope, plain, 1), make(scope, plain, 10));
    const size_t count = (size_t)hob_tensor_count(want);
    double want_data[3 * COUNT], data[3 * COUNT];
    hob_tensor *got[ROUNDS];
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_read_f64(want, want_data, count, &error));
    for (int i = 0; i < ROUNDS; i++) {
        taken = 0;
        got[i] = calls[_i].call(x, y);
        ck_assert_int_eq(taken, i ? calls[_i].calls : 0);
        ck_assert_int_eq(hob__tensor_lazy(got[i]), 1);
    }
    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_int_eq(hob_tensor_count(got[i]), count);
        ck_assert_hob_ok(hob_read_f64(got[i], data, count, &error));
        ck_assert_int_eq(memcmp(data, want_data, count * sizeof(double)), 0);
    }
    /* And of what has its elements by now. */
    taken = 0;
    got[0] = hob_add(scope, got[0], got[1]);
    got[1] = hob_add(scope, got[0], got[1]);
    ck_assert_int_eq(taken, 1);
    ck_assert_hob_ok(hob_read_f64(got[1], data, count, &error));
    for (size_t k = 0; k < count; k++)
        ck_assert_double_eq(data[k], 3 * want_data[k]);
}
END_TEST

/* Under an idle autodiff, and where a scope leaves that out. */
START_TEST(test_again_below_a_layer_that_is_idle)
{
    hob_tensor *x = make(scope, tracked, 1);
    hob_scope *in = _i ? hob_no_grad(scope, tracked) : hob_scope_child(scope);
    hob_error error = HOB_ERROR_INIT;
    double data[COUNT];

    if (_i)
        x = hob_require_grad(scope, x);
    for (int i = 0; i < ROUNDS; i++) {
        hob_tensor *y = hob_add(in, hob_add(in, x, x), x);

        ck_assert_ptr_eq(hob_tensor_device(y), tracked);
        ck_assert_hob_ok(hob_read_f64(y, data, COUNT, &error));
        for (int k = 0; k < COUNT; k++)
            ck_assert_double_eq(data[k], 3 * (1 + k));
    }
    ck_assert_int_gt(taken, ROUNDS);
    hob_scope_close(in);
}
END_TEST

/* What autodiff tracks is its own to see, each time. */
START_TEST(test_again_is_not_asked_of_what_is_tracked)
{
    hob_tensor *x = make(scope, tracked, 1);
    hob_error error = HOB_ERROR_INIT;
    double data[COUNT];

    x = hob_require_grad(scope, x);
    for (int i = 0; i < ROUNDS; i++) {
        hob_tensor *loss, *grad;
        hob_grads *grads;

        taken = 0;
        loss = hob_sum(scope, hob_mul(scope, x, x));
        ck_assert_int_eq(taken, 0);
        ck_assert_hob_ok(hob_backward(scope, loss, 0, &grads, &error));
        ck_assert_hob_ok(hob_grad(scope, x, grads, &grad, &error));
        hob_grads_free(grads);
        ck_assert_hob_ok(hob_read_f64(grad, data, COUNT, &error));
        for (int k = 0; k < COUNT; k++)
            ck_assert_double_eq(data[k], 2 * (1 + k));
    }
}
END_TEST

/* What a call reads is found as it was the first time: a reshape to the same
 * shape parts nothing. */
START_TEST(test_again_reads_what_the_first_call_reads)
{
    static const int64_t shape[] = {2, 3};
    hob_tensor *x = make(scope, lazy, 1);
    struct hob_fusion_stats before = HOB_FUSION_STATS_INIT, after = before;
    hob_error error = HOB_ERROR_INIT;
    uint64_t first = 0;
    double data[COUNT];

    for (int i = 0; i < ROUNDS; i++) {
        hob_scope *in = hob_scope_child(scope);
        hob_tensor *same = hob_reshape(in, hob_add(in, x, x), shape, 2);
        hob_tensor *y = hob_neg(in, same);

        ck_assert_hob_ok(hob_fusion_report(lazy, &before, &error));
        ck_assert_hob_ok(hob_read_f64(y, data, COUNT, &error));
        ck_assert_hob_ok(hob_fusion_report(lazy, &after, &error));
        ck_assert_double_eq(data[1], -4);
        first = i ? first : after.written_bytes - before.written_bytes;
        ck_assert_uint_eq(after.written_bytes - before.written_bytes, first);
        hob_scope_close(in);
    }
    ck_assert_int_eq(taken, 2 * (ROUNDS - 1));
}
END_TEST

/* A layer that leaves the arguments as they are leaves the call its number. */
START_TEST(test_again_numbers_reach_lower_layers)
{
    hob_tensor *x = make(scope, tracked, 1);
    uint64_t last = 0;

    x = hob_require_grad(scope, x);
    for (int i = 0; i < ROUNDS; i++) {
        (void)hob_add(scope, x, x);
        ck_assert_uint_ne(kind, 0);
        ck_assert(!i || kind == last);
        last = kind;
    }
    (void)hob_mul(scope, x, x);
    ck_assert_uint_ne(kind, 0);
    ck_assert_uint_ne(kind, last);
}
END_TEST

/* ---- what is not ---- */

START_TEST(test_again_views_are_made_at_once)
{
    static const int64_t order[] = {1, 0};
    hob_tensor *x = make(scope, lazy, 1);
    hob_tensor *waits = hob_add(scope, x, x);

    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_int_eq(hob__tensor_lazy(hob_permute(scope, waits, order, 2)),
                         1);
        ck_assert_int_eq(hob__tensor_lazy(hob_permute(scope, x, order, 2)), 0);
    }
    ck_assert_int_eq(taken, 0);
}
END_TEST

START_TEST(test_again_numbers_are_drawn_each_time)
{
    static const int64_t shape[] = {2, 3};
    double data[ROUNDS][COUNT];
    hob_error error = HOB_ERROR_INIT;

    for (int i = 0; i < ROUNDS; i++) {
        hob_tensor *x =
            hob_random_uniform(scope, shape, 2, 0, 1, lazy, HOB_DTYPE_F32);

        ck_assert_hob_ok(hob_read_f64(x, data[i], COUNT, &error));
        ck_assert(!i || memcmp(data[i], data[i - 1], sizeof(data[i])));
    }
    ck_assert_int_eq(taken, 0);
}
END_TEST

START_TEST(test_again_moves_are_seen_each_time)
{
    hob_tensor *x = make(scope, lazy, 1);
    hob_error error = HOB_ERROR_INIT;

    for (int i = 0; i < ROUNDS; i++) {
        hob_tensor *y = hob_add(scope, x, x);

        taken = 0;
        (void)hob_neg(scope, hob_move(scope, y));
        ck_assert_int_eq(taken, 0);
        ck_assert_hob_fails(hob_tensor_status(y, &error), HOB_ERR_STATE,
                            "moved into neg");
    }
}
END_TEST

/* More inputs than are looked for; they must not be cut off either. */
START_TEST(test_again_of_long_lists)
{
    enum { MOST = 40 };
    hob_tensor *list[MOST];
    hob_error error = HOB_ERROR_INIT;
    double data[MOST * COUNT];

    for (int i = 0; i < MOST; i++)
        list[i] = make(scope, lazy, (float)(i * COUNT));
    for (int i = 0; i < ROUNDS; i++)
        for (uint32_t count = 30; count <= MOST; count++) {
            hob_tensor *y = hob_cat(scope, list, count, 0);

            ck_assert_int_eq(hob_tensor_count(y), count * COUNT);
            ck_assert_hob_ok(hob_read_f64(y, data, count * COUNT, &error));
            for (uint32_t k = 0; k < count * COUNT; k++)
                ck_assert_double_eq(data[k], k);
        }
    ck_assert_int_gt(taken, 0);
}
END_TEST

/* Each call counts, in a scope whose list grows meanwhile, and what fails is
 * told with its number. */
START_TEST(test_again_counts_calls)
{
    static const int64_t order[] = {1, 0};
    hob_scope *in = hob_scope_open(runtime);
    hob_tensor *x = make(in, lazy, 1), *y = make(in, lazy, 1);
    hob_error error = HOB_ERROR_INIT;

    y = hob_permute(in, y, order, 2);
    for (int i = 0; i < 99; i++)
        (void)hob_add(in, x, x);
    ck_assert_int_gt(taken, 80);
    (void)hob_add(in, x, y);
    ck_assert_hob_fails(hob_scope_error(in, &error), HOB_ERR_SHAPE,
                        "add (call 101)");
    hob_scope_close(in);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion_again");
    TCase *tc = tcase_create("again");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_again_gives_what_the_first_call_gives, 0,
                        sizeof(calls) / sizeof(calls[0]));
    tcase_add_loop_test(tc, test_again_below_a_layer_that_is_idle, 0, 2);
    tcase_add_test(tc, test_again_is_not_asked_of_what_is_tracked);
    tcase_add_test(tc, test_again_reads_what_the_first_call_reads);
    tcase_add_test(tc, test_again_numbers_reach_lower_layers);
    tcase_add_test(tc, test_again_views_are_made_at_once);
    tcase_add_test(tc, test_again_numbers_are_drawn_each_time);
    tcase_add_test(tc, test_again_moves_are_seen_each_time);
    tcase_add_test(tc, test_again_of_long_lists);
    tcase_add_test(tc, test_again_counts_calls);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
