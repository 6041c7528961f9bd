/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device says of its memory, and giving it back.
 */
#include "hob_check.h"
#include "op_fixture.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { REFERENCE = 0, FLEX = 1 }; /* devices of op_fixture.h */

static struct op_fixture f;

static void teardown(void)
{
    op_fixture_close(&f);
}

/* Each test opens its own device; a missing one leaves nothing to do. */
static int on_device(int which)
{
    op_fixture_open(&f, which);
    return f.device != NULL;
}

static struct hob_memory_stats stats_of(hob_device *device)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_device_sync(device, &error)); /* what was put off */
    ck_assert_hob_ok(hob_device_memory(device, &stats, &error));
    return stats;
}

/* A scope's tensors are counted, come back with it, and wait to be trimmed;
 * a decorated device speaks of its base. */
START_TEST(test_device_memory_follows_tensors)
{
    const int64_t shape = 1000;
    const uint64_t bytes = 4000;
    struct hob_memory_stats before, now;
    hob_error error = HOB_ERROR_INIT;
    hob_scope *scope;

    if (!on_device(_i))
        return;
    scope = hob_scope_child(f.scope);
    (void)hob_zeros(scope, &shape, 1, f.device, HOB_DTYPE_F32);
    before = stats_of(f.device);
    for (int i = 0; i < 10; i++)
        (void)hob_zeros(scope, &shape, 1, f.device, HOB_DTYPE_F32);
    now = stats_of(f.device);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    ck_assert_uint_eq(now.in_use_bytes, before.in_use_bytes + 10 * bytes);
    ck_assert_uint_eq(now.block_count, before.block_count + 10);
    ck_assert_uint_ge(now.peak_bytes, now.in_use_bytes);
    ck_assert_uint_ge(now.reserved_bytes, now.in_use_bytes + now.padding_bytes);
    hob_scope_close(scope);
    now = stats_of(f.device);
    ck_assert_uint_eq(now.in_use_bytes, before.in_use_bytes - bytes);
    ck_assert_uint_ge(now.peak_bytes, before.in_use_bytes + 10 * bytes);
    ck_assert_hob_ok(hob_device_reset_peak(f.device, &error));
    ck_assert_uint_eq(stats_of(f.device).peak_bytes, now.in_use_bytes);
    ck_assert_uint_ge(now.reserved_bytes, 11 * bytes);
    ck_assert_hob_ok(hob_device_trim(f.device, &error));
    now = stats_of(f.device);
    ck_assert_uint_eq(now.reserved_bytes, now.in_use_bytes + now.padding_bytes);
}
END_TEST

/* The same loop for ever: the system is asked for memory the first time. So
 * small that one thread computes, as what several need depends on their time.
 * Where gradients are recorded, half of the graphs are never walked. */
START_TEST(test_device_memory_is_used_again)
{
    const int64_t shape[2] = {20, 20};
    hob_error error = HOB_ERROR_INIT;
    struct hob_memory_stats before, now;

    if (!on_device(_i))
        return;
    for (int round = 0; round < 100; round++) {
        hob_scope *scope = hob_scope_child(f.scope);
        hob_tensor *x = hob_ones(scope, shape, 2, f.device, HOB_DTYPE_F32);
        hob_grads *grads = NULL;

        if (_i == OP_DEVICE_TRACKED)
            x = hob_require_grad(scope, x);
        for (int i = 0; i < 10; i++)
            x = hob_matmul(scope, hob_tanh(scope, x), x);
        x = hob_sum(scope, x);
        if (_i == OP_DEVICE_TRACKED && round % 2 == 0)
            ck_assert_hob_ok(hob_backward(scope, x, 0, &grads, &error));
        ck_assert_hob_ok(hob_eval(&x, 1, &error)); /* fusion would do nothing */
        hob_grads_free(grads);
        ck_assert_hob_ok(hob_scope_error(scope, &error));
        hob_scope_close(scope);
        now = stats_of(f.device);
        if (round == 0)
            before = now;
        ck_assert_uint_eq(now.in_use_bytes, before.in_use_bytes);
    }
    ck_assert_uint_gt(now.block_count, before.block_count);
    ck_assert_uint_eq(now.system_count, before.system_count);
    ck_assert_uint_eq(now.reserved_bytes, before.reserved_bytes);
    ck_assert_uint_eq(now.peak_bytes, before.peak_bytes);
}
END_TEST

/* ---- in place ---- */

enum { SIDE = 128 };

static hob_tensor *in_softmax(hob_scope *s, hob_tensor *x)
{
    return hob_softmax(s, x, 1);
}

static hob_tensor *in_layer_norm(hob_scope *s, hob_tensor *x)
{
    return hob_layer_norm(s, x, NULL, NULL, 1e-5);
}

static hob_tensor *in_rms_norm(hob_scope *s, hob_tensor *x)
{
    return hob_rms_norm(s, x, NULL, 1e-5);
}

static hob_tensor *in_silu(hob_scope *s, hob_tensor *x)
{
    return hob_silu(s, x);
}

static hob_tensor *row, *zero_index; /* what some ops need besides */

static hob_tensor *in_slice_assign(hob_scope *s, hob_tensor *x)
{
    const int64_t one = 1, two = 2;

    return hob_slice_assign(s, x, row, &one, 1, &two, 1, NULL, 0);
}

static hob_tensor *in_select_add(hob_scope *s, hob_tensor *x)
{
    return hob_select_add(s, x, zero_index, row, 0);
}

/* Whose kernels can write over an argument do so where it is moved: there is
 * never a second tensor of that size. */
START_TEST(test_device_memory_results_take_what_is_moved)
{
    static const struct {
        const char *name;
        hob_tensor *(*run)(hob_scope *s, hob_tensor *x);
    } ops[] = {{"softmax", in_softmax},
               {"layer_norm", in_layer_norm},
               {"rms_norm", in_rms_norm},
               {"silu", in_silu},
               {"slice_assign", in_slice_assign},
               {"select_add", in_select_add}};
    const int64_t shape[2] = {SIDE, SIDE}, row_shape[2] = {1, SIDE}, one = 1;
    const uint64_t bytes = SIDE * SIDE * sizeof(float);
    hob_error error = HOB_ERROR_INIT;

    if (!on_device(1))
        return;
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        hob_scope *scope = hob_scope_child(f.scope);
        hob_tensor *x = hob_random_uniform(scope, shape, 2, -1, 1, f.device,
                                           HOB_DTYPE_F32);
        static double kept[SIDE * SIDE];
        hob_tensor *y;
        uint64_t before;

        row = hob_ones(scope, row_shape, 2, f.device, HOB_DTYPE_F32);
        zero_index = hob_zeros(scope, &one, 1, f.device, HOB_DTYPE_I64);
        y = ops[i].run(scope, x);
        op_read(&f, y, kept, SIDE * SIDE);
        (void)ops[i].run(scope, hob_move(scope, hob_add(scope, x, x)));
        before = stats_of(f.device).in_use_bytes;
        x = hob_mul_scalar(scope, x, hob_f64(1)); /* one of its own */
        ck_assert_hob_ok(hob_device_reset_peak(f.device, &error));
        y = ops[i].run(scope, hob_move(scope, x));
        ck_assert_msg(stats_of(f.device).peak_bytes < before + 2 * bytes,
                      "%s: beside what is moved there is a result",
                      ops[i].name);
        op_check(&f, ops[i].name, y, kept, SIDE * SIDE, 0);
        ck_assert_hob_ok(hob_scope_error(scope, &error));
        hob_scope_close(scope);
    }
}
END_TEST

/* ---- training ---- */

enum { LAYERS = 32, WIDTH = 64, SQUARE = WIDTH * WIDTH * 4 };

/* Bytes that a forward pass keeps, and the peak of forward and backward. */
struct kept {
    uint64_t forward;
    uint64_t peak;
};

/* LAYERS times gelu(x @ w), x and w being SQUARE bytes each, on autodiff with
 * OPTIONS; what is let go is let go at once. */
static struct kept train(const char *options)
{
    const int64_t shape[2] = {WIDTH, WIDTH};
    hob_tensor *weights[LAYERS];
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;
    hob_scope *scope = hob_scope_child(f.scope);
    hob_grads *grads = NULL;
    hob_tensor *x = NULL;
    struct hob_memory_stats before, after;
    struct kept kept;
    char spec[64];

    (void)snprintf(spec, sizeof(spec), "autodiff%s(flex)", options);
    ck_assert_hob_ok(hob_device_open(f.runtime, spec, &device, &error));
    for (int i = 0; i < LAYERS; i++) {
        hob_tensor *ones = hob_ones(scope, shape, 2, device, HOB_DTYPE_F32);

        weights[i] = hob_require_grad(
            scope, hob_mul_scalar(scope, ones, hob_f64(1.0 / WIDTH)));
    }
    hob_assign(scope, &x, hob_ones(scope, shape, 2, device, HOB_DTYPE_F32));
    ck_assert_hob_ok(hob_device_reset_peak(device, &error));
    before = stats_of(device);
    for (int i = 0; i < LAYERS; i++) {
        hob_scope *inner = hob_scope_child(scope);

        hob_assign(scope, &x,
                   hob_gelu(inner, hob_matmul(inner, x, weights[i])));
        hob_scope_close(inner);
    }
    kept.forward = stats_of(device).in_use_bytes - before.in_use_bytes;
    ck_assert_hob_ok(hob_backward(scope, hob_sum(scope, x), 0, &grads, &error));
    after = stats_of(device);
    kept.peak = after.peak_bytes - before.in_use_bytes;
    /* A gradient each, and the last x: the graph is gone. */
    ck_assert_uint_le(after.in_use_bytes - before.in_use_bytes,
                      (LAYERS + 2) * SQUARE);
    hob_grads_free(grads);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    hob_scope_close(scope);
    ck_assert_uint_lt(stats_of(device).in_use_bytes, before.in_use_bytes);
    hob_device_unref(device);
    return kept;
}

/* matmul needs its argument and gelu its own, which is what is kept: nothing
 * twice. Where cheap ops are run again it is the first alone. */
START_TEST(test_device_memory_of_training)
{
    struct kept plain, balanced;

    if (!on_device(FLEX))
        return;
    plain = train("");
    balanced = train("{checkpoint=balanced}");
    ck_assert_uint_le(plain.forward, 2 * LAYERS * SQUARE);
    ck_assert_uint_le(balanced.forward, (LAYERS + 1) * SQUARE);
    /* Gradients on their way, and what a product packs. */
    ck_assert_uint_le(plain.peak, plain.forward + 10 * SQUARE);
    ck_assert_uint_le(balanced.peak, balanced.forward + 10 * SQUARE);
}
END_TEST

/* Callers that were built with another version of the struct. */
START_TEST(test_device_memory_of_other_versions)
{
    struct {
        struct hob_memory_stats stats;
        uint64_t more[2];
    } larger = {.stats = HOB_MEMORY_STATS_INIT, .more = {1, 2}};
    struct hob_memory_stats shorter;
    const int64_t shape = 1000;
    hob_tensor *zeros;
    hob_error error = HOB_ERROR_INIT;

    if (!on_device(FLEX))
        return;
    zeros = hob_zeros(f.scope, &shape, 1, f.device, HOB_DTYPE_F32);
    ck_assert_hob_ok(hob_eval(&zeros, 1, &error));
    larger.stats.struct_size = sizeof(larger);
    ck_assert_hob_ok(hob_device_memory(f.device, &larger.stats, &error));
    ck_assert_uint_eq(larger.stats.struct_size, sizeof(larger));
    ck_assert_uint_ge(larger.stats.in_use_bytes, 4000);
    ck_assert_uint_eq(larger.more[0], 0);
    ck_assert_uint_eq(larger.more[1], 0);
    memset(&shorter, 0x5a, sizeof(shorter));
    shorter.struct_size = offsetof(struct hob_memory_stats, peak_bytes);
    ck_assert_hob_ok(hob_device_memory(f.device, &shorter, &error));
    ck_assert_uint_eq(shorter.in_use_bytes, larger.stats.in_use_bytes);
    ck_assert_uint_eq(shorter.peak_bytes, UINT64_C(0x5a5a5a5a5a5a5a5a));
    shorter.struct_size = 0;
    ck_assert_hob_fails(hob_device_memory(f.device, &shorter, &error),
                        HOB_ERR_ARGUMENT, "HOB_MEMORY_STATS_INIT");
}
END_TEST

/* A backend without an account, as one that was built before there was any. */
START_TEST(test_device_memory_without_account)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    hob_error error = HOB_ERROR_INIT;

    op_fixture_open(&f, REFERENCE);
    ck_assert_hob_fails(hob_device_memory(f.device, &stats, &error),
                        HOB_ERR_UNSUPPORTED, "reference keeps no account");
    ck_assert_hob_fails(hob_device_reset_peak(f.device, &error),
                        HOB_ERR_UNSUPPORTED, "reference keeps no peak");
    ck_assert_hob_fails(hob_device_trim(f.device, &error), HOB_ERR_UNSUPPORTED,
                        "reference keeps no free memory");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device memory");
    TCase *tc = tcase_create("device memory");

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_loop_test(tc, test_device_memory_follows_tensors, FLEX,
                        OP_DEVICE_TRACKED + 1);
    tcase_add_test(tc, test_device_memory_results_take_what_is_moved);
    tcase_add_loop_test(tc, test_device_memory_is_used_again, FLEX,
                        OP_DEVICE_TRACKED + 1);
    tcase_add_test(tc, test_device_memory_of_training);
    tcase_add_test(tc, test_device_memory_of_other_versions);
    tcase_add_test(tc, test_device_memory_without_account);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
