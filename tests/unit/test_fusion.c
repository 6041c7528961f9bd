/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decorator fusion: what is put off, when it is computed, and that nothing
 * is left of it. That results are right is the business of the tests of ops,
 * which run on fusion(flex) as well.
 */
#include "dlpack_layout.h"
#include "hob_check.h"
#include "mock/reference_backend.h"
#include "runtime.h"
#include "test_device.h"

#include <hob/hob.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *plain, *lazy, *tracked, *endless;
static hob_status told;
static char told_text[256];
static int told_count;

static void keep_told(void *context, hob_status status, const char *op,
                      const char *message)
{
    (void)context;
    (void)op;
    told = status;
    told_count++;
    snprintf(told_text, sizeof(told_text), "%s", message);
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
    struct hob_static_plugin reference = {reference_backend_manifest,
                                          hob_plugin_entry_reference};
    struct hob_runtime_options options = test_options();
    hob_error error = HOB_ERROR_INIT;

    options.on_panic = keep_told;
    options.static_plugins = &reference;
    options.static_plugin_count = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    plain = device_open("flex");
    lazy = device_open("fusion(flex)");
    tracked = device_open("autodiff(fusion(flex))");
    endless = device_open("fusion{depth=0}(flex)");
    scope = hob_scope_open(runtime);
    told_count = 0;
}

static void teardown(void)
{
    hob_error error = HOB_ERROR_INIT;

    hob_scope_close(scope);
    hob_device_unref(plain);
    hob_device_unref(lazy);
    hob_device_unref(tracked);
    hob_device_unref(endless);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

enum { COUNT = 1000 };

/* 0, 1, 2, .. on DEVICE, owned by WHERE. */
static hob_tensor *ramp(hob_scope *where, hob_device *device)
{
    static float data[COUNT];
    const int64_t shape = COUNT;

    for (int i = 0; i < COUNT; i++)
        data[i] = (float)i;
    return hob_from_f32(where, device, data, &shape, 1);
}

/* TENSOR's elements are FACTOR * i + OFFSET. */
static void check_ramp(hob_tensor *tensor, double factor, double offset)
{
    static double data[COUNT];
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_read_f64(tensor, data, COUNT, &error));
    for (int i = 0; i < COUNT; i++)
        ck_assert_double_eq(data[i], factor * i + offset);
}

static uint64_t blocks(void)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_device_memory(plain, &stats, &error));
    return stats.block_count;
}

static uint64_t in_use(void)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    hob_error error = HOB_ERROR_INIT;

    ck_assert_hob_ok(hob_device_memory(plain, &stats, &error));
    return stats.in_use_bytes;
}

/* ---- when ---- */

START_TEST(test_fusion_computes_what_is_read_and_no_more)
{
    hob_tensor *x = ramp(scope, lazy);
    hob_tensor *unread = hob_exp(scope, x);
    hob_tensor *y = hob_add_scalar(scope, x, hob_i64(1));
    uint64_t before = blocks();
    hob_tensor *z = hob_mul(scope, y, y);

    ck_assert_int_eq(hob_tensor_shape(z)[0], COUNT);
    ck_assert_int_eq(hob_tensor_dtype(z), HOB_DTYPE_F32);
    ck_assert_uint_eq(blocks(), before);
    check_ramp(y, 1, 1);
    ck_assert_uint_eq(blocks(), before + 1);
    check_ramp(y, 1, 1);
    ck_assert_uint_eq(blocks(), before + 1);
    (void)unread;
}
END_TEST

/* A tensor that outlives its scope is computed when that is closed; what does
 * not is never. */
START_TEST(test_fusion_computes_what_outlives_its_scope)
{
    hob_tensor *x = ramp(scope, lazy);
    hob_scope *step = hob_scope_child(scope);
    hob_tensor *kept, *dropped;
    uint64_t before = blocks();

    kept = hob_keep(scope, hob_mul_scalar(step, x, hob_i64(3)));
    dropped = hob_exp(step, hob_exp(step, x));
    (void)dropped;
    ck_assert_uint_eq(blocks(), before);
    hob_scope_close(step);
    ck_assert_uint_eq(blocks(), before + 1);
    check_ramp(kept, 3, 0);
    ck_assert_uint_eq(blocks(), before + 1);
}
END_TEST

/* What a scope leaves to one that is inside another waits for that one's end,
 * however much that has got since. */
START_TEST(test_fusion_leaves_to_the_scope_around)
{
    hob_scope *step = hob_scope_child(scope), *inside = hob_scope_child(step);
    hob_tensor *x = ramp(scope, lazy), *kept;
    uint64_t before;

    kept = hob_keep(step, hob_add(inside, x, x));
    for (int i = 0; i < COUNT; i++)
        (void)hob_zeros(step, NULL, 0, plain, HOB_DTYPE_F32);
    before = blocks();
    hob_scope_close(inside);
    ck_assert_uint_eq(blocks(), before);
    (void)hob_keep(scope, kept);
    hob_scope_close(step);
    ck_assert_uint_gt(blocks(), before);
    check_ramp(kept, 2, 0);
}
END_TEST

START_TEST(test_fusion_computes_at_sync_and_eval)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = ramp(scope, lazy);
    hob_tensor *pair[2];
    const uint64_t bytes = COUNT * sizeof(float);
    uint64_t before = in_use();

    pair[0] = hob_add_scalar(scope, x, hob_i64(1));
    pair[1] = hob_add_scalar(scope, x, hob_i64(2));
    ck_assert_hob_ok(hob_eval(pair, 2, &error));
    ck_assert_uint_eq(in_use(), before + 2 * bytes);
    ck_assert_hob_ok(hob_eval(pair, 2, &error)); /* has nothing to do */
    ck_assert_hob_ok(hob_eval(&x, 1, &error));
    ck_assert_hob_ok(hob_eval(NULL, 0, &error));
    pair[0] = hob_mul_scalar(scope, pair[0], hob_i64(2));
    ck_assert_hob_ok(hob_device_sync(lazy, &error));
    ck_assert_uint_eq(in_use(), before + 3 * bytes);
    check_ramp(pair[0], 2, 2);
}
END_TEST

/* An assigned parameter is computed in place of the old one. */
START_TEST(test_fusion_updates_in_place)
{
    hob_tensor *slot = NULL;
    hob_scope *first = hob_scope_child(scope);
    uint64_t before, bytes;

    hob_assign(scope, &slot, ramp(first, lazy));
    hob_scope_close(first);
    before = blocks();
    bytes = in_use();
    for (int i = 0; i < 5; i++) {
        hob_scope *step = hob_scope_child(scope);

        hob_assign(scope, &slot,
                   hob_add_scalar(step, hob_mul_scalar(step, slot, hob_i64(1)),
                                  hob_i64(1)));
        hob_scope_close(step);
    }
    check_ramp(slot, 1, 5);
    ck_assert_uint_eq(blocks(), before);
    ck_assert_uint_eq(in_use(), bytes);
}
END_TEST

/* However often a tensor is an input, there is one more handle of it. */
START_TEST(test_fusion_has_one_handle_of_an_input)
{
    hob_scope *first = hob_scope_open(runtime);
    hob_scope *step = hob_scope_open(runtime);
    const int64_t before = hob__slab_live(&runtime->tensors);
    hob_tensor *x = ramp(first, lazy);
    hob_tensor *sums[10];

    for (int i = 0; i < 10; i++)
        sums[i] = hob_add(step, x, x);
    ck_assert_int_eq(hob__slab_live(&runtime->tensors), before + 12);
    hob_scope_close(first); /* what is put off still has it */
    check_ramp(sums[9], 2, 0);
    check_ramp(hob_add(step, sums[9], sums[9]), 4, 0);
    hob_scope_close(step);
    ck_assert_int_eq(hob__slab_live(&runtime->tensors), before);
}
END_TEST

/* Lists, shapes, devices, optional tensors: all is as it was. */
START_TEST(test_fusion_keeps_arguments)
{
    hob_tensor *parts[4] = {NULL};
    int64_t sizes[] = {400, 600}, dims[] = {0};
    hob_tensor *x = ramp(scope, lazy);
    hob_tensor *y = hob_flip(scope, x, dims, 1);
    hob_tensor *list[2];
    hob_tensor *z;
    uint32_t count = 0;
    double at;
    hob_error error = HOB_ERROR_INIT;

    hob_split_sizes(scope, y, sizes, 2, 0, parts, 4, &count);
    ck_assert_uint_eq(count, 2);
    sizes[0] = sizes[1] = dims[0] = -1; /* the program's again */
    list[0] = parts[1];
    list[1] = parts[0];
    z = hob_cat(scope, list, 2, 0);
    list[0] = list[1] = NULL;
    z = hob_slice(scope, z, (const int64_t[]){600}, 1, (const int64_t[]){601},
                  1, (const int64_t[]){1}, 1);
    ck_assert_hob_ok(hob_item(z, &at, &error));
    ck_assert_double_eq(at, COUNT - 1);
}
END_TEST

/* ---- failures ---- */

START_TEST(test_fusion_tells_a_failure_once)
{
    const int64_t shape = 3;
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x =
        hob_from_i32(scope, lazy, (const int32_t[]){1, 2, 3}, &shape, 1);
    hob_tensor *good = hob_add(scope, x, x);
    hob_tensor *zero = hob_sub(scope, x, x);
    hob_tensor *bad = hob_div(scope, x, zero);
    hob_tensor *worse = hob_add(scope, bad, x);
    double one[3];

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    ck_assert_int_eq(hob_read_f64(worse, one, 3, &error), HOB_ERR_RANGE);
    ck_assert_ptr_nonnull(
        strstr(error.message, "div (call 3): division by zero"));
    hob_error_release(&error);
    ck_assert_int_eq(told_count, 1);
    ck_assert_ptr_nonnull(strstr(told_text, "div (call 3): division by zero"));
    ck_assert_hob_ok(hob_read_f64(good, one, 3, &error));
    ck_assert_double_eq(one[2], 6);
    /* It is an error tensor like any other. */
    ck_assert_int_eq(hob_read_f64(bad, one, 3, &error), HOB_ERR_RANGE);
    hob_error_release(&error);
    ck_assert_int_eq(hob_tensor_status(bad, NULL), HOB_ERR_RANGE);
    ck_assert_ptr_null(hob_tensor_device(bad));
    (void)hob_add(scope, bad, x);
    ck_assert_int_eq(hob_scope_error(scope, NULL), HOB_ERR_RANGE);
    hob_scope_clear_error(scope);
    ck_assert_int_eq(told_count, 1);
}
END_TEST

START_TEST(test_fusion_tells_at_the_call_what_can_be_told)
{
    hob_error error = HOB_ERROR_INIT;

    (void)hob_matmul(
        scope, ramp(scope, lazy),
        hob_reshape(scope, ramp(scope, lazy), (const int64_t[]){10, 100}, 2));
    ck_assert_int_eq(hob_scope_error(scope, &error), HOB_ERR_SHAPE);
    hob_error_release(&error);
    hob_scope_clear_error(scope);
}
END_TEST

/* ---- handles ---- */

START_TEST(test_fusion_moves_and_tombstones)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = hob_add_scalar(scope, ramp(scope, lazy), hob_i64(1));
    hob_tensor *y = hob_mul_scalar(scope, hob_move(scope, x), hob_i64(2));

    (void)hob_exp(scope, x);
    ck_assert_int_eq(hob_scope_error(scope, &error), HOB_ERR_STATE);
    hob_error_release(&error);
    hob_scope_clear_error(scope);
    check_ramp(y, 2, 2);
}
END_TEST

START_TEST(test_fusion_to_other_devices)
{
    hob_tensor *x = hob_add_scalar(scope, ramp(scope, lazy), hob_i64(1));
    hob_tensor *below = hob_to_device(scope, x, plain);
    hob_tensor *other = hob_to_device(scope, x, endless);
    hob_tensor *above = hob_to_device(scope, x, tracked);
    hob_tensor *y = hob_add(scope, above, x);
    struct hob_dlpack_managed *managed = NULL;
    hob_error error = HOB_ERROR_INIT;

    check_ramp(below, 1, 1);
    check_ramp(other, 1, 1);
    ck_assert_hob_ok(hob_dlpack_export(y, &managed, &error));
    ck_assert_float_eq(((const float *)managed->tensor.data)[7], 16);
    managed->deleter(managed);
}
END_TEST

/* Layers below have their say about what is computed later. */
START_TEST(test_fusion_around_autodiff)
{
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = device_open("fusion(autodiff(flex))");
    hob_tensor *x = hob_require_grad(
        scope, hob_mul_scalar(scope, ramp(scope, device), hob_i64(2)));
    hob_tensor *y = hob_mul(scope, x, x);
    hob_tensor *total = hob_sum(scope, y);
    hob_tensor *dx = NULL;
    hob_grads *grads = NULL;

    ck_assert_int_eq(hob_is_tracked(y), 1);
    ck_assert_int_eq(hob_is_tracked(hob_exp(scope, ramp(scope, device))), 0);
    ck_assert_hob_ok(hob_backward(scope, total, 0, &grads, &error));
    ck_assert_hob_ok(hob_grad(scope, x, grads, &dx, &error));
    check_ramp(dx, 4, 0);
    hob_grads_free(grads);
    hob_device_unref(device);
}
END_TEST

START_TEST(test_fusion_twice)
{
    hob_device *device = device_open("fusion(fusion{depth=7}(flex))");
    hob_tensor *x = ramp(scope, device);
    uint64_t before = blocks();

    x = hob_add_scalar(scope, x, hob_i64(1));
    x = hob_add_scalar(scope, x, hob_i64(1));
    ck_assert_uint_eq(blocks(), before);
    check_ramp(x, 1, 2);
    hob_device_unref(device);
}
END_TEST

START_TEST(test_fusion_under_autodiff)
{
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = hob_require_grad(scope, ramp(scope, tracked));
    uint64_t before = blocks();
    hob_tensor *dx = NULL;
    hob_grads *grads = NULL;

    ck_assert_hob_ok(hob_backward(scope, hob_sum(scope, hob_mul(scope, x, x)),
                                  0, &grads, &error));
    ck_assert_hob_ok(hob_grad(scope, x, grads, &dx, &error));
    ck_assert_uint_eq(blocks(), before);
    check_ramp(dx, 2, 0);
    hob_grads_free(grads);
}
END_TEST

/* ---- sizes ---- */

enum { MANY = 1000000 };

START_TEST(test_fusion_of_a_million_ops)
{
    hob_error error = HOB_ERROR_INIT;
    const int64_t shape = 2;
    double at[2];
    hob_tensor *x =
        hob_from_f64(scope, endless, (const double[]){0, 1}, &shape, 1);

    /* Recorded and dropped, or evaluated: never by recursion. */
    for (int round = 0; round < 2; round++) {
        hob_scope *inner = hob_scope_child(scope);
        hob_tensor *y = x;

        for (int i = 0; i < MANY; i++)
            y = i ? hob_add_scalar(inner, hob_move(inner, y), hob_i64(1))
                  : hob_add_scalar(inner, y, hob_i64(1));
        if (round) {
            ck_assert_hob_ok(hob_read_f64(y, at, 2, &error));
            ck_assert_double_eq(at[1], MANY + 1);
        }
        hob_scope_close(inner);
    }
}
END_TEST

/* A limit keeps a chain from growing without an end. */
START_TEST(test_fusion_limits_depth)
{
    hob_device *device = device_open("fusion{depth=10}(flex)");
    hob_tensor *x = ramp(scope, device);
    uint64_t before = blocks();

    for (int i = 0; i < 10; i++)
        x = hob_add_scalar(scope, x, hob_i64(1));
    ck_assert_uint_eq(blocks(), before);
    x = hob_add_scalar(scope, x, hob_i64(1));
    ck_assert_uint_gt(blocks(), before);
    check_ramp(x, 1, 11);
    hob_device_unref(device);
}
END_TEST

/* Nor does another one let elements pile up that nobody else has any more. */
START_TEST(test_fusion_limits_bytes)
{
    enum { TIMES = 100, LIMIT = 25 * COUNT * 4 };
    hob_device *device = device_open(_i ? "fusion{bytes=100000}(flex)"
                                        : "fusion{bytes=0}(flex)");
    hob_tensor *sums[TIMES];
    uint64_t most = 0, before = in_use();

    for (int i = 0; i < TIMES; i++) {
        hob_tensor *x = ramp(scope, device);

        sums[i] = hob_sum(scope, hob_move(scope, x));
        most = in_use() - before > most ? in_use() - before : most;
    }
    if (_i)
        ck_assert_uint_le(most, LIMIT + 2 * COUNT * 4);
    else
        ck_assert_uint_ge(most, TIMES * COUNT * 4);
    for (int i = 0; i < TIMES; i++) {
        hob_error error = HOB_ERROR_INIT;
        double sum;

        ck_assert_hob_ok(hob_read_f64(sums[i], &sum, 1, &error));
        ck_assert_double_eq(sum, COUNT * (COUNT - 1) / 2);
    }
    /* But the sums, which a handle need not hold. */
    ck_assert_uint_le(in_use(), before + TIMES * sizeof(float));
    hob_device_unref(device);
}
END_TEST

/* More kinds of calls than a layer keeps, each twice, and all wait at once: a
 * kind that gave its place to another is its nodes' still. */
START_TEST(test_fusion_calls_that_are_alike_in_all_but_a_number)
{
    enum { KINDS = 1500 };
    static hob_tensor *sums[2 * KINDS];
    const float one[2] = {1, 2};
    const int64_t shape[1] = {2};
    hob_error error = HOB_ERROR_INIT;
    hob_tensor *x = hob_from_f32(scope, lazy, one, shape, 1);

    for (int i = 0; i < 2 * KINDS; i++)
        sums[i] = hob_add_scalar(scope, x, hob_f64(i % KINDS));
    for (int i = 0; i < 2 * KINDS; i++) {
        float values[2];

        ck_assert_hob_ok(hob_read_f32(sums[i], values, 2, &error));
        ck_assert_float_eq(values[0], (float)(1 + i % KINDS));
        ck_assert_float_eq(values[1], (float)(2 + i % KINDS));
    }
}
END_TEST

START_TEST(test_fusion_refuses_bad_options)
{
    static const char *const specs[] = {
        "fusion{depth=x}(flex)",  "fusion{depth=-1}(flex)",
        "fusion{depth=-0}(flex)", "fusion{depth=5 6}(flex)",
        "fusion{depth=}(flex)",   "fusion{depth=5x}(flex)",
        "fusion{bytes=-1}(flex)", "fusion{bytes=1g}(flex)"};
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        ck_assert_int_eq(test_device_open(runtime, specs[i], &device, &error),
                         HOB_ERR_ARGUMENT);
        ck_assert_ptr_nonnull(strstr(error.message, " is a number"));
        hob_error_release(&error);
    }
}
END_TEST

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 200 };

struct shared {
    hob_tensor *tensors[ROUNDS];
    hob_tensor *given[ROUNDS]; /* with elements from the beginning */
    int failed;
};

/* Uses what another thread made, in part just now. */
static void *use(void *opaque)
{
    struct shared *shared = opaque;
    hob_scope *own = hob_scope_open(runtime);
    double data[COUNT];

    for (int i = 0; i < ROUNDS; i++) {
        hob_tensor *x = shared->tensors[i];
        hob_tensor *y =
            hob_add(own, shared->given[i], hob_mul_scalar(own, x, hob_i64(2)));

        if (i % 3 == 0 && hob_read_f64(x, data, COUNT, NULL))
            shared->failed = 1;
        if (hob_read_f64(y, data, COUNT, NULL) ||
            data[5] != 5 + 2 * (5 + i + 1.0))
            shared->failed = 1;
    }
    hob_scope_close(own);
    return NULL;
}

START_TEST(test_fusion_of_several_threads)
{
    struct shared shared[THREADS];
    pthread_t threads[THREADS];
    hob_tensor *x = ramp(scope, lazy);

    memset(shared, 0, sizeof(shared));
    for (int i = 0; i < ROUNDS; i++) {
        hob_tensor *given = ramp(scope, lazy);

        x = hob_add_scalar(scope, x, hob_i64(1));
        for (int k = 0; k < THREADS; k++) {
            shared[k].tensors[i] = x;
            shared[k].given[i] = given;
        }
    }
    for (int k = 0; k < THREADS; k++)
        ck_assert_int_eq(pthread_create(&threads[k], NULL, use, &shared[k]), 0);
    for (int k = 0; k < THREADS; k++) {
        ck_assert_int_eq(pthread_join(threads[k], NULL), 0);
        ck_assert_int_eq(shared[k].failed, 0);
    }
}
END_TEST

/* A copy to another base has no gradient: what is put off above the autodiff
 * is refused as it would be without that. */
START_TEST(test_fusion_tracked_to_another_base)
{
    hob_device *above = device_open("fusion(autodiff(flex))");
    hob_device *other = device_open("reference");
    hob_tensor *x = hob_require_grad(scope, ramp(scope, above));
    hob_tensor *y = hob_to_device(scope, hob_neg(scope, x), other);
    hob_error error = HOB_ERROR_INIT;

    ck_assert_int_eq(hob_tensor_status(y, NULL), HOB_ERR_UNSUPPORTED);
    ck_assert_hob_fails(hob_scope_error(scope, &error), HOB_ERR_UNSUPPORTED,
                        "hob_detach() it first");
    hob_scope_clear_error(scope);
    y = hob_to_device(scope, hob_neg(scope, hob_detach(scope, x)), other);
    check_ramp(y, -1, 0);
    hob_device_unref(above);
    hob_device_unref(other);
}
END_TEST

/* ---- forks ---- */

/* What a child may not do it is told, whichever way it asks; 0 if so. */
static int ask_in_child(hob_tensor *waiting, hob_tensor *computed)
{
    static double data[COUNT];
    hob_error error = HOB_ERROR_INIT;

    if (hob_read_f64(waiting, data, COUNT, &error) != HOB_ERR_FORKED)
        return 1;
    if (!strstr(error.message, "fork"))
        return 2;
    hob_error_release(&error);
    if (hob_eval(&waiting, 1, NULL) != HOB_ERR_FORKED)
        return 3;
    if (hob_device_sync(lazy, NULL) != HOB_ERR_FORKED)
        return 4;
    if (hob_tensor_status(hob_exp(scope, waiting), NULL) != HOB_ERR_FORKED)
        return 5;
    /* What is there can be read, unless it is in memory of a device whose
     * driver refuses a fork. */
    if (test_device_is_flex() &&
        (hob_read_f64(computed, data, COUNT, NULL) || data[9] != 10))
        return 6;
    hob_scope_close(scope);
    return 0;
}

struct busy {
    hob_tensor *from;
    volatile int is_over;
};

/* Keeps the layer's lock taken most of the time. */
static void *stay_busy(void *context)
{
    struct busy *busy = context;
    hob_scope *own = hob_scope_open(runtime);

    while (!__atomic_load_n(&busy->is_over, __ATOMIC_RELAXED))
        (void)hob_neg(own, busy->from);
    hob_scope_close(own);
    return NULL;
}

/* Even if another thread had the layer's lock just then. */
START_TEST(test_fusion_refuses_in_a_forked_child)
{
    hob_tensor *x = ramp(scope, lazy);
    hob_tensor *computed = hob_add_scalar(scope, x, hob_i64(1));
    hob_tensor *y = hob_add(scope, hob_mul(scope, x, x), x);
    struct busy busy = {.from = x};
    pthread_t thread;

    check_ramp(computed, 1, 1);
    ck_assert_int_eq(pthread_create(&thread, NULL, stay_busy, &busy), 0);
    for (int i = 0; i < 20; i++) {
        pid_t child = fork();
        int code = 0;

        ck_assert_int_ge(child, 0);
        if (!child) {
            alarm(10);
            _exit(ask_in_child(y, computed));
        }
        ck_assert_int_eq(waitpid(child, &code, 0), child);
        ck_assert(WIFEXITED(code));
        ck_assert_int_eq(WEXITSTATUS(code), 0);
    }
    __atomic_store_n(&busy.is_over, 1, __ATOMIC_RELAXED);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    check_ramp(hob_sub(scope, y, hob_mul(scope, x, x)), 1, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion");
    TCase *tc = tcase_create("fusion");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_fusion_computes_what_is_read_and_no_more);
    tcase_add_test(tc, test_fusion_computes_what_outlives_its_scope);
    tcase_add_test(tc, test_fusion_leaves_to_the_scope_around);
    tcase_add_test(tc, test_fusion_computes_at_sync_and_eval);
    tcase_add_test(tc, test_fusion_updates_in_place);
    tcase_add_test(tc, test_fusion_has_one_handle_of_an_input);
    tcase_add_test(tc, test_fusion_keeps_arguments);
    tcase_add_test(tc, test_fusion_tells_a_failure_once);
    tcase_add_test(tc, test_fusion_tells_at_the_call_what_can_be_told);
    tcase_add_test(tc, test_fusion_moves_and_tombstones);
    tcase_add_test(tc, test_fusion_to_other_devices);
    tcase_add_test(tc, test_fusion_around_autodiff);
    tcase_add_test(tc, test_fusion_under_autodiff);
    tcase_add_test(tc, test_fusion_twice);
    tcase_add_test(tc, test_fusion_of_a_million_ops);
    tcase_add_test(tc, test_fusion_limits_depth);
    tcase_add_loop_test(tc, test_fusion_limits_bytes, 0, 2);
    tcase_add_test(tc, test_fusion_calls_that_are_alike_in_all_but_a_number);
    tcase_add_test(tc, test_fusion_refuses_bad_options);
    tcase_add_test(tc, test_fusion_of_several_threads);
    tcase_add_test(tc, test_fusion_tracked_to_another_base);
    tcase_add_test(tc, test_fusion_refuses_in_a_forked_child);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
