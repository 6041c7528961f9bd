/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hob_checkpoint(): gradients are those of plain calls, less is kept, and
 * whatever a segment does wrong is said.
 *
 * Each test ends with hob_runtime_close(), which fails while anything lives,
 * and with a count of the contexts that were released.
 */
#include <hob/hob.h>

#include "hob_check.h"
#include "test_device.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>

enum { LAYERS = 12, WIDTH = 5, BATCH = 3, THREADS = 4, ROUNDS = 50 };

static hob_runtime *runtime;
static hob_device *flex;
static hob_device *saving;   /* autodiff(flex) */
static hob_device *balanced; /* the same, recomputing */
static hob_device *twice;    /* autodiff(autodiff(flex)) */
static hob_device *lazy;     /* fusion(autodiff(flex)) */
static hob_device *over;     /* autodiff(fusion(flex)) */
static hob_scope *scope;
static hob_error error;
static int given, released; /* contexts */

static void setup(void)
{
    struct hob_runtime_options options = test_options();

    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "flex", &flex, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "autodiff(flex)", &saving, &error));
    ck_assert_hob_ok(hob_device_open(
        runtime, "autodiff{checkpoint=balanced}(flex)", &balanced, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "autodiff(autodiff(flex))", &twice, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "fusion(autodiff(flex))", &lazy, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "autodiff(fusion(flex))", &over, &error));
    scope = hob_scope_open(runtime);
    given = released = 0;
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(over);
    hob_device_unref(lazy);
    hob_device_unref(twice);
    hob_device_unref(balanced);
    hob_device_unref(saving);
    hob_device_unref(flex);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    ck_assert_int_eq(released, given);
}

static hob_device *device_of(int which)
{
    return which ? balanced : saving;
}

static void expect_error(hob_status status, const char *part)
{
    ck_assert_hob_fails(hob_scope_error(scope, &error), status, part);
    hob_scope_clear_error(scope);
}

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

/* All elements of the gradient of LEAF, whose presence is asserted. */
static void read_grad(hob_tensor *leaf, const hob_grads *grads, double *out)
{
    hob_tensor *grad = NULL;

    ck_assert_hob_ok(hob_grad(scope, leaf, grads, &grad, &error));
    ck_assert_ptr_nonnull(grad);
    ck_assert_int_eq(hob_tensor_count(grad), hob_tensor_count(leaf));
    ck_assert_hob_ok(hob_read_f64(grad, out, hob_tensor_count(grad), &error));
}

static double grad_of(hob_tensor *leaf, const hob_grads *grads)
{
    double data[64];

    read_grad(leaf, grads, data);
    return data[0];
}

static hob_grads *backward(hob_tensor *tensor, uint32_t flags)
{
    hob_grads *grads = NULL;

    ck_assert_hob_ok(hob_backward(scope, tensor, flags, &grads, &error));
    return grads;
}

/* ---- segments ---- */

/* What a segment is to do. */
struct plan {
    int calls; /* so far */
    int inner; /* layers of a segment within, whose plan is the next; or 0 */
    int is_random; /* some elements of each layer become 0 */
};

static void release(void *context)
{
    (void)context;
    released++;
}

/* One result of COUNT inputs, by hob_checkpoint(). */
static hob_tensor *run(hob_scope *in, hob_segment_fn segment, void *context,
                       hob_tensor *const *inputs, uint32_t count)
{
    hob_tensor *out = NULL;

    __atomic_add_fetch(&given, 1, __ATOMIC_RELAXED);
    (void)hob_checkpoint(in, segment, context, release, inputs, count, &out, 1);
    return out;
}

/* tanh(h w + b), or nearly. */
static hob_tensor *layer(hob_scope *in, const struct plan *plan, hob_tensor *h,
                         hob_tensor *w, hob_tensor *b)
{
    hob_tensor *y = hob_add(in, hob_matmul(in, h, w), b);

    if (plan->is_random) {
        hob_tensor *mask = hob_random_bernoulli(
            in, hob_tensor_shape(y), (uint32_t)hob_tensor_rank(y), 0.7,
            hob_tensor_device(y), hob_tensor_dtype(y));

        y = hob_mul(in, y, mask);
    }
    return hob_tanh(in, y);
}

static hob_status layers(hob_scope *in, void *context,
                         hob_tensor *const *inputs, uint32_t count,
                         hob_tensor **out, uint32_t out_count);

/* The layers of INPUTS: h, then w and b by turns; in segments of STEP. */
static hob_tensor *in_segments(hob_scope *in, struct plan *plan, int step,
                               hob_tensor *const *inputs, uint32_t count)
{
    hob_tensor *some[1 + 2 * LAYERS];
    hob_tensor *h = inputs[0];

    for (uint32_t at = 1; at < count; at += 2 * (uint32_t)step) {
        uint32_t size = 2 * (uint32_t)step;

        size = size < count - at ? size : count - at;
        some[0] = h;
        memcpy(some + 1, inputs + at, size * sizeof(*some));
        h = run(in, layers, plan, some, size + 1);
    }
    return h;
}

static hob_status layers(hob_scope *in, void *context,
                         hob_tensor *const *inputs, uint32_t count,
                         hob_tensor **out, uint32_t out_count)
{
    struct plan *plan = context;
    hob_tensor *h = inputs[0];

    ck_assert_uint_eq(out_count, 1);
    __atomic_add_fetch(&plan->calls, 1, __ATOMIC_RELAXED);
    if (plan->inner) {
        struct plan *inside = plan + 1;

        h = in_segments(in, inside, plan->inner, inputs, count);
    } else {
        for (uint32_t i = 1; i < count; i += 2)
            h = layer(in, plan, h, inputs[i], inputs[i + 1]);
    }
    out[0] = h;
    return HOB_OK;
}

/* ---- gradients ---- */

/* h, then w and b of all layers, on DEVICE, those of TRACKED leaves. */
static void make_inputs(hob_device *device, hob_dtype dtype, uint32_t tracked,
                        hob_tensor **out)
{
    const int64_t shapes[3][2] = {{BATCH, WIDTH}, {WIDTH, WIDTH}, {1, WIDTH}};

    hob_seed(scope, 7);
    for (int i = 0; i < 1 + 2 * LAYERS; i++) {
        out[i] = hob_random_normal(scope, shapes[i ? 2 - i % 2 : 0], 2, 0, 0.6,
                                   device, dtype);
        if (tracked >> i & 1)
            out[i] = hob_require_grad(scope, out[i]);
    }
}

enum { GRADS = 1 + 2 * LAYERS, MAX_GRAD = WIDTH * WIDTH };

static void gradients(hob_tensor *const *inputs, uint32_t tracked,
                      hob_tensor *end, double out[GRADS][MAX_GRAD])
{
    hob_grads *grads = backward(hob_sum(scope, hob_square(scope, end)), 0);

    for (int i = 0; i < GRADS; i++)
        if (tracked >> i & 1)
            read_grad(inputs[i], grads, out[i]);
    hob_grads_free(grads);
}

/* Everything tracked; everything but h; two weights of the middle. */
static const uint32_t tracked_sets[] = {(1u << GRADS) - 1, (1u << GRADS) - 2,
                                        1u << 9 | 1u << 13};

static void compare(hob_device *device, hob_dtype dtype, uint32_t tracked,
                    struct plan *plan, int step)
{
    static double want[GRADS][MAX_GRAD], got[GRADS][MAX_GRAD];
    struct plan plain = {.is_random = plan->is_random | plan[1].is_random};
    hob_tensor *inputs[GRADS], *end = NULL;

    memset(want, 0, sizeof(want));
    memset(got, 0, sizeof(got));
    make_inputs(device, dtype, tracked, inputs);
    hob_seed(scope, 11);
    ck_assert_int_eq(layers(scope, &plain, inputs, GRADS, &end, 1), HOB_OK);
    gradients(inputs, tracked, end, want);
    hob_seed(scope, 11);
    end = in_segments(scope, plan, step, inputs, GRADS);
    hob_seed(scope, 12345); /* what comes later is not what was drawn */
    gradients(inputs, tracked, end, got);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    ck_assert_mem_eq(want, got, sizeof(want));
    ck_assert_double_ne(want[9][0], 0);
}

START_TEST(test_checkpoint_gradients_are_those_of_plain_calls)
{
    static const int steps[] = {1, 3, 5, LAYERS};
    const uint32_t tracked = tracked_sets[_i / 4 % 3];

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        struct plan plan[2] = {{0}};

        compare(device_of(_i % 2), _i / 2 % 2 ? HOB_DTYPE_F32 : HOB_DTYPE_F64,
                tracked, plan, steps[i]);
        /* Each segment twice, but where nothing was tracked. */
        if (tracked & 1)
            ck_assert_int_eq(plan->calls,
                             2 * ((LAYERS + steps[i] - 1) / steps[i]));
    }
}
END_TEST

START_TEST(test_checkpoint_draws_the_same_numbers_again)
{
    for (int step = 1; step <= LAYERS; step += 4) {
        struct plan plan[2] = {{.is_random = 1}};

        compare(device_of(_i), HOB_DTYPE_F64, tracked_sets[0], plan, step);
    }
}
END_TEST

START_TEST(test_checkpoint_nests)
{
    for (int inner = 1; inner <= 3; inner++) {
        struct plan plan[3] = {{.inner = inner}, {.is_random = 1}};

        compare(device_of(_i), HOB_DTYPE_F64, tracked_sets[0], plan, 4);
        ck_assert_int_eq(plan[0].calls, 2 * 3);
        /* First; in the outer one's second run; in their own. */
        ck_assert_int_eq(plan[1].calls, 3 * 3 * ((4 + inner - 1) / inner));
    }
}
END_TEST

/* One weight for all: sums of sums, so the last bits may differ. */
START_TEST(test_checkpoint_shared_weight)
{
    struct plan plan = {0};
    hob_tensor *all[GRADS], *inputs[GRADS], *end = NULL;
    double want[MAX_GRAD], got[MAX_GRAD];
    hob_grads *grads;

    make_inputs(device_of(_i), HOB_DTYPE_F64, 1u << 1, all);
    for (int i = 0; i < GRADS; i++)
        inputs[i] = i ? all[2 - i % 2] : all[0];
    (void)layers(scope, &plan, inputs, GRADS, &end, 1);
    grads = backward(end, 0);
    read_grad(all[1], grads, want);
    hob_grads_free(grads);
    grads = backward(in_segments(scope, &plan, 4, inputs, GRADS), 0);
    read_grad(all[1], grads, got);
    hob_grads_free(grads);
    for (int i = 0; i < WIDTH * WIDTH; i++)
        ck_assert_double_eq_tol(got[i], want[i], 1e-12 * (1 + fabs(want[i])));
}
END_TEST

/* OUT: x^3 as x * x^2, x itself, its largest element's place, x once more. */
static hob_status many_results(hob_scope *in, void *context,
                               hob_tensor *const *inputs, uint32_t count,
                               hob_tensor **out, uint32_t out_count)
{
    (void)context;
    ck_assert_uint_eq(out_count, 4);
    ck_assert_uint_eq(count, 2);
    out[0] = hob_mul(in, inputs[0], hob_square(in, inputs[0]));
    out[1] = inputs[0];
    out[2] = hob_argmax(in, inputs[0], 0, HOB_DTYPE_NONE);
    out[3] = hob_select(in, inputs[0], inputs[1], 0);
    return HOB_OK;
}

START_TEST(test_checkpoint_results_of_all_sorts)
{
    const int64_t places[] = {2, 2}, two = 2;
    hob_tensor *x = leaf_on(device_of(_i), 2, 3);
    hob_tensor *inputs[2] = {
        x, hob_from_i64(scope, device_of(_i), places, &two, 1)};
    hob_tensor *out[4];
    hob_grads *grads;
    double grad[3];

    given++;
    ck_assert_int_eq(
        hob_checkpoint(scope, many_results, NULL, release, inputs, 2, out, 4),
        HOB_OK);
    ck_assert_int_eq(hob_is_tracked(out[2]), 0);
    ck_assert_int_ne(hob_is_tracked(out[1]), 0);
    ck_assert_ptr_ne(out[1], x);
    grads = backward(
        hob_add(scope, hob_sum(scope, out[0]),
                hob_add(scope, hob_sum(scope, out[1]), hob_sum(scope, out[3]))),
        0);
    read_grad(x, grads, grad);
    ck_assert_double_eq(grad[0], 3 * 4 + 1);
    ck_assert_double_eq(grad[2], 3 * 16 + 1 + 2);
    hob_grads_free(grads);
}
END_TEST

/* Some results unused; the walk begins at one that is a mere input. */
START_TEST(test_checkpoint_backward_from_a_result)
{
    const int64_t places[] = {2, 2}, two = 2;
    hob_tensor *x = leaf_on(device_of(_i), 2, 3);
    hob_tensor *inputs[2] = {
        x, hob_from_i64(scope, device_of(_i), places, &two, 1)};
    hob_tensor *out[4];
    hob_grads *grads;

    (void)hob_checkpoint(scope, many_results, NULL, NULL, inputs, 2, out, 4);
    grads = backward(out[1], 0);
    ck_assert_double_eq(grad_of(x, grads), 1);
    hob_grads_free(grads);
}
END_TEST

START_TEST(test_checkpoint_second_derivative)
{
    const int64_t places[] = {2, 2}, two = 2;
    hob_tensor *low = leaf_on(saving, 2, 3);
    hob_tensor *x = hob_require_grad(scope, hob_to_device(scope, low, twice));
    hob_tensor *inputs[2] = {x, hob_from_i64(scope, flex, places, &two, 1)};
    hob_tensor *out[4], *grad;
    hob_grads *first, *second;

    (void)hob_checkpoint(scope, many_results, NULL, NULL, inputs, 2, out, 4);
    ck_assert_ptr_eq(hob_tensor_device(out[0]), twice);
    first = backward(out[0], 0);
    ck_assert_hob_ok(hob_grad(scope, x, first, &grad, &error));
    ck_assert_ptr_eq(hob_tensor_device(grad), saving);
    second = backward(grad, 0);
    ck_assert_double_eq(grad_of(low, second), 6 * 2);
    hob_grads_free(second);
    hob_grads_free(first);
}
END_TEST

/* ---- what is not recorded ---- */

START_TEST(test_checkpoint_is_a_plain_call_where_nothing_is_tracked)
{
    struct plan plan = {0};
    hob_tensor *inputs[GRADS], *end;
    hob_scope *quiet;

    make_inputs(_i ? saving : flex, HOB_DTYPE_F64, 0, inputs);
    end = in_segments(scope, &plan, 4, inputs, GRADS);
    ck_assert_int_eq(hob_is_tracked(end), 0);
    make_inputs(saving, HOB_DTYPE_F64, tracked_sets[0], inputs);
    quiet = hob_no_grad(scope, saving);
    end = in_segments(quiet, &plan, 4, inputs, GRADS);
    ck_assert_int_eq(hob_is_tracked(end), 0);
    hob_scope_close(quiet);
    ck_assert_int_eq(plan.calls, 6);
    ck_assert_int_eq(released, given); /* at once */
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

static hob_status constant(hob_scope *in, void *context,
                           hob_tensor *const *inputs, uint32_t count,
                           hob_tensor **out, uint32_t out_count)
{
    (void)inputs;
    (void)count;
    for (uint32_t i = 0; i < out_count; i++)
        out[i] = hob_mul_scalar(in, context, hob_f64(2));
    return HOB_OK;
}

START_TEST(test_checkpoint_without_inputs)
{
    hob_tensor *x = vector(saving, 2, 3), *out = NULL;

    ck_assert_int_eq(hob_checkpoint(scope, constant, x, NULL, NULL, 0, &out, 1),
                     HOB_OK);
    ck_assert_int_eq(hob_is_tracked(out), 0);
    ck_assert_int_eq(hob_checkpoint(scope, constant, x, NULL, &x, 1, NULL, 0),
                     HOB_OK);
}
END_TEST

/* A constant result on a device further down; no gradient comes of it. */
START_TEST(test_checkpoint_constant_result)
{
    hob_tensor *x = leaf_on(saving, 2, 3), *y = vector(flex, 1, 3);
    hob_tensor *out = run(scope, constant, y, &x, 1), *grad = x;
    hob_grads *grads;

    ck_assert_ptr_eq(hob_tensor_device(out), saving);
    grads = backward(hob_mul(scope, out, x), 0);
    ck_assert_double_eq(grad_of(x, grads), 2);
    hob_grads_free(grads);
    grads = backward(run(scope, constant, y, &x, 1), 0);
    ck_assert_hob_ok(hob_grad(scope, x, grads, &grad, &error));
    ck_assert_ptr_null(grad);
    hob_grads_free(grads);
}
END_TEST

/* ---- memory ---- */

enum { DEEP = 64, ROWS = 64, COLUMNS = 48 };

/* sin of sin of ..., with nothing but the graph to hold what is between. */
static hob_status deep_layers(hob_scope *in, void *context,
                              hob_tensor *const *inputs, uint32_t count,
                              hob_tensor **out, uint32_t out_count)
{
    const int *layer_count = context;
    hob_tensor *h = inputs[0], *kept = NULL;

    (void)count;
    (void)out_count;
    for (int i = 0; i < *layer_count; i++) {
        hob_scope *own = hob_scope_child(in);

        hob_assign(in, &kept, hob_sin(own, h));
        h = kept;
        hob_scope_close(own);
    }
    out[0] = h;
    return HOB_OK;
}

/* Peak bytes beyond the start of DEEP layers in segments of STEP (0: none). */
static uint64_t peak_of(hob_device *device, int step)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    hob_scope *own = hob_scope_child(scope);
    hob_tensor *x =
        hob_require_grad(own, hob_ones(own, shape, 2, device, HOB_DTYPE_F32));
    hob_tensor *h = x, *kept = NULL;
    hob_grads *grads;
    uint64_t before;

    ck_assert_hob_ok(hob_device_reset_peak(device, &error));
    ck_assert_hob_ok(hob_device_memory(device, &stats, &error));
    before = stats.in_use_bytes;
    for (int done = 0; done < DEEP; done += step ? step : DEEP) {
        hob_scope *part = hob_scope_child(own);

        if (step) {
            h = run(part, deep_layers, &step, &h, 1);
        } else {
            int all = DEEP;

            (void)deep_layers(part, &all, &h, 1, &h, 1);
        }
        hob_assign(own, &kept, h);
        h = kept;
        hob_scope_close(part);
    }
    grads = backward(h, 0);
    ck_assert_hob_ok(hob_grad(own, x, grads, &kept, &error));
    ck_assert_ptr_nonnull(kept);
    hob_grads_free(grads);
    ck_assert_hob_ok(hob_device_memory(device, &stats, &error));
    hob_scope_close(own);
    return stats.peak_bytes - before;
}

/*
 * sin keeps its input. Plain, all inputs but the first, and the end; then a
 * gradient comes and one is in work. In segments of 8: the ends of 8 segments
 * (of which the first begins with what is there), the 8 layers of one, its
 * gradients.
 */
START_TEST(test_checkpoint_takes_memory_by_the_square_root)
{
    const uint64_t one = sizeof(float) * ROWS * COLUMNS;

    ck_assert_uint_ge(peak_of(saving, 0), DEEP * one);
    ck_assert_uint_le(peak_of(saving, 0), (DEEP + 3) * one * 105 / 100);
    ck_assert_uint_le(peak_of(saving, 8), (8 + 8 + 3) * one * 105 / 100);
    ck_assert_uint_le(peak_of(saving, 4), (16 + 4 + 3) * one * 105 / 100);
    ck_assert_uint_le(peak_of(balanced, 8), (8 + 8 + 3) * one * 105 / 100);
}
END_TEST

enum { SEGMENT = 8 };

static hob_status products(hob_scope *in, void *context,
                           hob_tensor *const *inputs, uint32_t count,
                           hob_tensor **out, uint32_t out_count)
{
    hob_tensor *h = inputs[0], *kept = NULL;

    (void)context;
    (void)count;
    (void)out_count;
    for (int i = 0; i < SEGMENT; i++) {
        hob_scope *own = hob_scope_child(in);

        hob_assign(in, &kept, hob_matmul(own, h, inputs[1]));
        h = kept;
        hob_scope_close(own);
    }
    out[0] = h;
    return HOB_OK;
}

/* What is put off of one segment's gradients keeps what it was computed again
 * for: not while the next one runs again. Of each layer that is what goes in,
 * and the gradient, until the products for the weight's are there. */
START_TEST(test_checkpoint_over_a_layer_that_puts_off)
{
    const uint64_t one = sizeof(float) * ROWS * COLUMNS;
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    hob_tensor *w = hob_mul_scalar(
        scope,
        hob_ones(scope, (int64_t[]){COLUMNS, COLUMNS}, 2, over, HOB_DTYPE_F32),
        hob_f64(1.0 / COLUMNS));
    hob_tensor *x =
        hob_ones(scope, (int64_t[]){ROWS, COLUMNS}, 2, over, HOB_DTYPE_F32);
    hob_tensor *inputs[2] = {x, hob_require_grad(scope, w)}, *kept = NULL;
    hob_grads *grads;
    double got[COLUMNS * COLUMNS];

    for (int done = 0; done < DEEP; done += SEGMENT) {
        hob_scope *part = hob_scope_child(scope);

        hob_assign(scope, &kept, run(part, products, NULL, inputs, 2));
        inputs[0] = kept;
        hob_scope_close(part);
    }
    ck_assert_hob_ok(hob_device_reset_peak(over, &error));
    grads = backward(hob_sum(scope, inputs[0]), 0);
    ck_assert_hob_ok(hob_grad(scope, inputs[1], grads, &kept, &error));
    hob_grads_free(grads);
    ck_assert_hob_ok(
        hob_read_f64(kept, got, (uint64_t)(COLUMNS * COLUMNS), &error));
    for (int i = 0; i < COLUMNS * COLUMNS; i++)
        ck_assert_double_eq_tol(got[i], DEEP * ROWS, 1e-3 * DEEP * ROWS);
    ck_assert_hob_ok(hob_device_memory(over, &stats, &error));
    ck_assert_uint_le(stats.peak_bytes,
                      (DEEP / SEGMENT + 2 * SEGMENT + 6) * one);
}
END_TEST

/* ---- life ---- */

START_TEST(test_checkpoint_graph_is_consumed_or_retained)
{
    struct plan plan = {0};
    hob_tensor *inputs[GRADS], *end;
    hob_grads *grads;
    double first[MAX_GRAD], second[MAX_GRAD], third[MAX_GRAD];

    make_inputs(device_of(_i), HOB_DTYPE_F64, tracked_sets[0], inputs);
    end = in_segments(scope, &plan, 4, inputs, GRADS);
    grads = backward(end, HOB_BACKWARD_RETAIN);
    read_grad(inputs[3], grads, first);
    hob_grads_free(grads);
    ck_assert_int_eq(released, 0);
    grads = backward(end, HOB_BACKWARD_RETAIN);
    read_grad(inputs[3], grads, second);
    hob_grads_free(grads);
    grads = backward(end, 0);
    read_grad(inputs[3], grads, third);
    hob_grads_free(grads);
    ck_assert_mem_eq(first, second, sizeof(double) * WIDTH * WIDTH);
    ck_assert_mem_eq(first, third, sizeof(double) * WIDTH * WIDTH);
    ck_assert_int_eq(released, 3); /* with the graph, not the handles */
    ck_assert_int_eq(plan.calls, 4 * 3);
    ck_assert_hob_fails(hob_backward(scope, end, 0, &grads, &error),
                        HOB_ERR_STATE, "result of checkpoint");
}
END_TEST

START_TEST(test_checkpoint_unused_graphs_are_freed)
{
    struct plan plan = {0};
    hob_tensor *inputs[GRADS];

    make_inputs(device_of(_i), HOB_DTYPE_F64, tracked_sets[0], inputs);
    for (int i = 0; i < ROUNDS; i++) {
        hob_scope *step = hob_scope_child(scope);

        (void)hob_exp(step, in_segments(step, &plan, 4, inputs, GRADS));
        ck_assert_int_eq(released, 3 * i);
        hob_scope_close(step);
        ck_assert_int_eq(released, 3 * (i + 1));
    }
}
END_TEST

/* Moves its inputs, and leaves scopes open. */
static hob_status careless(hob_scope *in, void *context,
                           hob_tensor *const *inputs, uint32_t count,
                           hob_tensor **out, uint32_t out_count)
{
    hob_scope *child = hob_scope_child(hob_scope_child(in));

    (void)context;
    (void)count;
    (void)out_count;
    out[0] = hob_square(child, hob_exp(child, hob_move(child, inputs[0])));
    return HOB_OK;
}

START_TEST(test_checkpoint_inputs_are_only_lent)
{
    hob_device *devices[] = {flex, saving, balanced};
    hob_tensor *x = vector(devices[_i], 0, 3), *y;
    double data[3];
    hob_grads *grads;

    if (_i)
        x = hob_require_grad(scope, x);
    y = run(scope, careless, NULL, &x, 1);
    ck_assert_hob_ok(hob_read_f64(x, data, 3, &error));
    ck_assert_double_eq(data[1], 1);
    ck_assert_hob_ok(hob_read_f64(y, data, 3, &error));
    ck_assert_double_eq_tol(data[1], exp(2), 1e-12);
    if (!_i)
        return;
    grads = backward(y, 0);
    ck_assert_double_eq(grad_of(x, grads), 2);
    hob_grads_free(grads);
    ck_assert_hob_ok(hob_read_f64(x, data, 3, &error));
    ck_assert_double_eq(data[1], 1);
}
END_TEST

/* An input that is cheap to compute again and whose own sources are gone by
 * the time that the segment runs again. */
START_TEST(test_checkpoint_input_is_a_replayed_result)
{
    struct plan plan = {0};
    hob_scope *step = hob_scope_child(scope);
    hob_tensor *inputs[GRADS], *end;
    hob_grads *grads;
    double want[MAX_GRAD], got[MAX_GRAD];

    make_inputs(balanced, HOB_DTYPE_F64, tracked_sets[0], inputs);
    (void)layers(step, &plan,
                 (hob_tensor *[]){hob_exp(step, inputs[0]), inputs[1],
                                  inputs[2], inputs[3], inputs[4]},
                 5, &end, 1);
    grads = backward(end, 0);
    read_grad(inputs[1], grads, want);
    hob_grads_free(grads);
    end = in_segments(scope, &plan, 1,
                      (hob_tensor *[]){hob_exp(step, inputs[0]), inputs[1],
                                       inputs[2], inputs[3], inputs[4]},
                      5);
    hob_scope_close(step);
    grads = backward(end, 0);
    read_grad(inputs[1], grads, got);
    hob_grads_free(grads);
    ck_assert_mem_eq(want, got, sizeof(double) * WIDTH * WIDTH);
}
END_TEST

/* ---- threads ---- */

struct walker {
    pthread_t thread;
    hob_tensor *leaf, *end;
    double grad[MAX_GRAD];
};

static void *walk(void *context)
{
    struct walker *walker = context;

    for (int i = 0; i < ROUNDS; i++) {
        hob_scope *own = hob_scope_open(runtime);
        hob_grads *grads = NULL;
        hob_tensor *grad = NULL;
        double data[MAX_GRAD] = {0};

        if (hob_backward(own, walker->end, HOB_BACKWARD_RETAIN, &grads, NULL) ||
            hob_grad(own, walker->leaf, grads, &grad, NULL) || !grad ||
            hob_read_f64(grad, data, hob_tensor_count(grad), NULL) ||
            (i && memcmp(data, walker->grad, sizeof(data)) != 0))
            walker->leaf = NULL;
        memcpy(walker->grad, data, sizeof(data));
        hob_grads_free(grads);
        hob_scope_close(own);
        if (!walker->leaf)
            break;
    }
    return NULL;
}

START_TEST(test_checkpoint_threads_walk_one_graph)
{
    struct walker walkers[THREADS];
    struct plan plan = {.is_random = 1};
    hob_tensor *inputs[GRADS], *end;

    make_inputs(device_of(_i), HOB_DTYPE_F64, tracked_sets[0], inputs);
    end = in_segments(scope, &plan, 4, inputs, GRADS);
    for (int i = 0; i < THREADS; i++) {
        walkers[i].leaf = inputs[5];
        walkers[i].end = end;
        ck_assert_int_eq(
            pthread_create(&walkers[i].thread, NULL, walk, &walkers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_join(walkers[i].thread, NULL), 0);
        ck_assert_ptr_nonnull(walkers[i].leaf);
        ck_assert_mem_eq(walkers[i].grad, walkers[0].grad,
                         sizeof(double) * WIDTH * WIDTH);
    }
}
END_TEST

/* ---- failures ---- */

enum fault {
    NO_FAULT,
    NO_RESULT,
    BARE_STATUS,
    FAILING_OP,
    FOREIGN_RESULT,
    OTHER_SHAPE,
    OTHER_DTYPE,
    OTHER_DRAWS,
    MORE_DRAWS,
    CAPTURED
};

struct faulty {
    enum fault at[2]; /* in the first run, in the second */
    int calls;
    hob_tensor *captured;
};

static void draw(hob_scope *in, int64_t size)
{
    (void)hob_random_uniform(in, &size, 1, 0, 1, flex, HOB_DTYPE_F32);
}

static hob_status faulty(hob_scope *in, void *context,
                         hob_tensor *const *inputs, uint32_t count,
                         hob_tensor **out, uint32_t out_count)
{
    struct faulty *plan = context;
    enum fault fault = plan->at[plan->calls++ != 0];
    const int64_t none = 0;

    (void)count;
    (void)out_count;
    draw(in, fault == OTHER_DRAWS ? 1000 : 8);
    if (fault == MORE_DRAWS)
        draw(in, 8);
    out[0] = hob_exp(in, inputs[0]);
    switch (fault) {
    case NO_RESULT:
        out[0] = NULL;
        break;
    case BARE_STATUS:
        return HOB_ERR_IO;
    case FAILING_OP:
        out[0] =
            hob_add(in, inputs[0],
                    hob_zeros(in, &none, 1, flex, hob_tensor_dtype(out[0])));
        break;
    case FOREIGN_RESULT:
    case CAPTURED:
        out[0] = hob_exp(in, plan->captured);
        break;
    case OTHER_SHAPE:
        out[0] = hob_sum(in, out[0]);
        break;
    case OTHER_DTYPE:
        out[0] = hob_cast(in, out[0], HOB_DTYPE_F32);
        break;
    default:
        break;
    }
    return HOB_OK;
}

static const struct {
    enum fault fault;
    hob_status first, second;
    const char *message;
} faults[] = {
    {NO_RESULT, HOB_ERR_ARGUMENT, HOB_ERR_ARGUMENT, "made no result 0"},
    {BARE_STATUS, HOB_ERR_IO, HOB_ERR_IO, "without a message"},
    {FAILING_OP, HOB_ERR_SHAPE, HOB_ERR_SHAPE, "3"},
    {FOREIGN_RESULT, HOB_ERR_DEVICE, HOB_ERR_DEVICE, "inputs are on"},
    {OTHER_SHAPE, HOB_OK, HOB_ERR_ARGUMENT, "the same each time"},
    {OTHER_DTYPE, HOB_OK, HOB_ERR_ARGUMENT, "the same each time"},
    {OTHER_DRAWS, HOB_OK, HOB_ERR_ARGUMENT, "other random numbers"},
    {MORE_DRAWS, HOB_OK, HOB_ERR_ARGUMENT, "other random numbers"},
    {CAPTURED, HOB_ERR_ARGUMENT, HOB_OK, "not among the inputs"},
};

START_TEST(test_checkpoint_faults_of_the_first_run)
{
    hob_device *other = faults[_i].fault == FOREIGN_RESULT ? balanced : saving;
    struct faulty plan = {.at = {faults[_i].fault}};
    hob_tensor *x = leaf_on(saving, 0, 3), *out;

    plan.captured = leaf_on(other, 0, 3);
    out = run(scope, faulty, &plan, &x, 1);
    ck_assert_int_eq(hob_tensor_status(out, NULL), faults[_i].first);
    if (!faults[_i].first)
        return;
    ck_assert_int_eq(released, 1);
    expect_error(faults[_i].first, faults[_i].message);
}
END_TEST

START_TEST(test_checkpoint_faults_of_the_second_run)
{
    hob_device *other = faults[_i].fault == FOREIGN_RESULT ? balanced : saving;
    struct faulty plan = {.at = {NO_FAULT, faults[_i].fault}};
    hob_tensor *x = leaf_on(saving, 0, 3), *out;
    hob_grads *grads = NULL;

    plan.captured = leaf_on(other, 0, 3);
    out = hob_sin(scope, run(scope, faulty, &plan, &x, 1));
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    if (!faults[_i].second)
        return;
    ck_assert_hob_fails(hob_backward(scope, out, 0, &grads, &error),
                        faults[_i].second, faults[_i].message);
    ck_assert_ptr_null(grads);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
    ck_assert_int_eq(released, 1); /* the graph is consumed, come what may */
}
END_TEST

/* A failed op of a segment tells its message, and the call's place in it. */
START_TEST(test_checkpoint_says_which_op_failed)
{
    struct faulty plan = {.at = {FAILING_OP}};
    hob_tensor *x = leaf_on(saving, 0, 3);

    (void)run(scope, faulty, &plan, &x, 1);
    expect_error(HOB_ERR_SHAPE, "checkpoint: ");
    plan.calls = 0;
    (void)run(scope, faulty, &plan, &x, 1);
    expect_error(HOB_ERR_SHAPE, "add");
}
END_TEST

START_TEST(test_checkpoint_refuses_inputs)
{
    struct plan plan = {0};
    hob_tensor *inputs[3], *out;

    inputs[0] = leaf_on(saving, 0, 3);
    inputs[1] = leaf_on(balanced, 0, 3);
    inputs[2] = inputs[0];
    out = run(scope, layers, &plan, inputs, 3);
    ck_assert_int_eq(hob_tensor_status(out, NULL), HOB_ERR_DEVICE);
    expect_error(HOB_ERR_DEVICE, "balanced");
    /* The cause of an error tensor is passed on. */
    inputs[1] = out;
    out = run(scope, layers, &plan, inputs, 3);
    ck_assert_hob_fails(hob_tensor_status(out, &error), HOB_ERR_DEVICE,
                        "balanced");
    hob_scope_clear_error(scope);
    inputs[1] = vector(flex, 0, 3);
    (void)hob_exp(scope, hob_move(scope, inputs[1]));
    out = run(scope, layers, &plan, inputs, 3);
    ck_assert_int_eq(hob_tensor_status(out, NULL), HOB_ERR_STATE);
    expect_error(HOB_ERR_STATE, "exp");
    ck_assert_int_eq(plan.calls, 0);
    ck_assert_int_eq(released, 3);
}
END_TEST

/* One layer tracks an input; a tensor that a layer above it tracks is used. */
START_TEST(test_checkpoint_captured_above)
{
    struct faulty plan = {.at = {CAPTURED}};
    hob_tensor *x = leaf_on(saving, 0, 3), *out;
    hob_tensor *inputs[2] = {x, vector(twice, 0, 3)};

    plan.captured = leaf_on(twice, 0, 3);
    out = run(scope, faulty, &plan, inputs, 2);
    ck_assert_int_eq(hob_tensor_status(out, NULL), HOB_ERR_ARGUMENT);
    expect_error(HOB_ERR_ARGUMENT, "not among the inputs");
}
END_TEST

static hob_status square(hob_scope *in, void *context,
                         hob_tensor *const *inputs, uint32_t count,
                         hob_tensor **out, uint32_t out_count)
{
    struct plan *plan = context;

    (void)out_count;
    plan->calls++;
    out[0] = hob_square(in, inputs[count - 1]);
    return HOB_OK;
}

/* A layer above the autodiff has put an input off, and puts results off: what
 * is tracked is as it would be without that layer. */
START_TEST(test_checkpoint_below_a_layer_that_puts_off)
{
    struct plan plan = {0};
    hob_tensor *x = leaf_on(lazy, 1, 3);
    hob_tensor *inputs[2] = {vector(lazy, 1, 3),
                             hob_mul_scalar(scope, x, hob_i64(3))};
    hob_tensor *y = run(scope, square, &plan, inputs, 2);
    hob_grads *grads;
    double got[3];

    ck_assert(hob_is_tracked(y));
    ck_assert_int_eq(plan.calls, 1);
    grads = backward(hob_sum(scope, y), 0);
    ck_assert_int_eq(plan.calls, 2);
    read_grad(x, grads, got);
    for (int i = 0; i < 3; i++)
        ck_assert_double_eq(got[i], 18.0 * (1 + i));
    hob_grads_free(grads);
}
END_TEST

START_TEST(test_checkpoint_captured_below_a_layer_that_puts_off)
{
    struct faulty plan = {.at = {CAPTURED}};
    hob_tensor *x = hob_neg(scope, leaf_on(lazy, 0, 3)), *out;

    plan.captured = hob_neg(scope, leaf_on(lazy, 0, 3));
    out = run(scope, faulty, &plan, &x, 1);
    ck_assert_int_eq(hob_tensor_status(out, NULL), HOB_ERR_ARGUMENT);
    expect_error(HOB_ERR_ARGUMENT, "not among the inputs");
}
END_TEST

int main(void)
{
    const int fault_count = sizeof(faults) / sizeof(faults[0]);
    Suite *suite;
    TCase *tc;

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        puts("skipped: HOB_TEST_PLUGIN_DIR does not name the plugins");
        return 77;
    }
    suite = suite_create("checkpoint");
    tc = tcase_create("checkpoint");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_checkpoint_gradients_are_those_of_plain_calls,
                        0, 12);
    tcase_add_loop_test(tc, test_checkpoint_draws_the_same_numbers_again, 0, 2);
    tcase_add_loop_test(tc, test_checkpoint_nests, 0, 2);
    tcase_add_loop_test(tc, test_checkpoint_shared_weight, 0, 2);
    tcase_add_loop_test(tc, test_checkpoint_results_of_all_sorts, 0, 2);
    tcase_add_loop_test(tc, test_checkpoint_backward_from_a_result, 0, 2);
    tcase_add_test(tc, test_checkpoint_second_derivative);
    tcase_add_loop_test(
        tc, test_checkpoint_is_a_plain_call_where_nothing_is_tracked, 0, 2);
    tcase_add_test(tc, test_checkpoint_without_inputs);
    tcase_add_test(tc, test_checkpoint_constant_result);
    tcase_add_test(tc, test_checkpoint_takes_memory_by_the_square_root);
    tcase_add_test(tc, test_checkpoint_over_a_layer_that_puts_off);
    tcase_add_loop_test(tc, test_checkpoint_graph_is_consumed_or_retained, 0,
                        2);
    tcase_add_loop_test(tc, test_checkpoint_unused_graphs_are_freed, 0, 2);
    tcase_add_loop_test(tc, test_checkpoint_inputs_are_only_lent, 0, 3);
    tcase_add_test(tc, test_checkpoint_input_is_a_replayed_result);
    tcase_add_loop_test(tc, test_checkpoint_threads_walk_one_graph, 0, 2);
    tcase_add_loop_test(tc, test_checkpoint_faults_of_the_first_run, 0,
                        fault_count);
    tcase_add_loop_test(tc, test_checkpoint_faults_of_the_second_run, 0,
                        fault_count);
    tcase_add_test(tc, test_checkpoint_says_which_op_failed);
    tcase_add_test(tc, test_checkpoint_refuses_inputs);
    tcase_add_test(tc, test_checkpoint_captured_above);
    tcase_add_test(tc, test_checkpoint_below_a_layer_that_puts_off);
    tcase_add_test(tc, test_checkpoint_captured_below_a_layer_that_puts_off);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
