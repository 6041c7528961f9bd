/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Registered optimisations: an extension's op takes the place of a pattern of
 * ops where nothing else wants what is inside, and says why where it does not.
 * What comes out is that of loops in double either way.
 */
#include "hob_check.h"
#include "test_device.h"
#include "pattern.h"
#include "runtime.h"

#include <hob/ext/plugin.h>
#include <hob/hob.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 5, INNER = 7, COLUMNS = 3, MOST = ROWS * INNER };

static hob_runtime *runtime;
static hob_device *lazy;
static hob_scope *scope;
static hob_error error;
static int runs; /* of kernels of the extension */

/* ---- the extension ---- */

/* relu(x w + b) */
static hob_status run_dense(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0),
                          *w = hob_arg_view(call, 1);
    const float *a = x->data, *b = w->data, *bias = hob_arg_view(call, 2)->data;
    float *out = hob_ret_view(call, 0)->data;
    const int64_t inner = w->shape[0], columns = w->shape[1];

    (void)device;
    runs++;
    for (int64_t i = 0; i < hob_view_count(x) / inner; i++)
        for (int64_t j = 0; j < columns; j++) {
            float sum = bias[j];

            for (int64_t k = 0; k < inner; k++)
                sum += a[i * inner + k] * b[k * columns + j];
            out[i * columns + j] = sum > 0 ? sum : 0;
        }
    return HOB_OK;
}

/* factor x + y, or its magnitude */
static void axpy(const struct hob_call *call, int is_magnitude)
{
    const float *x = hob_arg_view(call, 0)->data;
    const float *y = hob_arg_view(call, 1)->data;
    const hob_value *factor = &call->args[2];
    float *out = hob_ret_view(call, 0)->data;

    runs++;
    for (int64_t i = 0; i < hob_view_count(hob_ret_view(call, 0)); i++) {
        out[i] = (float)(factor->tag == HOB_TAG_F64 ? factor->u.f64
                                                    : (double)factor->u.i64) *
                     x[i] +
                 y[i];
        if (is_magnitude)
            out[i] = fabsf(out[i]);
    }
}

static hob_status run_axpy(void *device, struct hob_call *call)
{
    (void)device;
    axpy(call, 0);
    return HOB_OK;
}

static hob_status run_magnitude(void *device, struct hob_call *call)
{
    (void)device;
    axpy(call, 1);
    return HOB_OK;
}

static hob_status run_never(void *device, struct hob_call *call)
{
    (void)device;
    return (call->host->fail)(call, HOB_ERR_INTERNAL, "this kernel only fails");
}

/* One dimension fewer than the ops give. */
static hob_status infer_wrong(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    out->rank = 1;
    out->shape[0] = hob_view_count(x);
    return HOB_OK;
}

#define DENSE "(x: Float, w: Float, b: Float) -> x"
#define AXPY "(x: Float, y: Float, factor: scalar) -> x"
#define ONE "(x: Float) -> x"

static const uint32_t f32_only[] = {HOB_DTYPE_BIT(HOB_DTYPE_F32),
                                    HOB_DTYPE_BIT(HOB_DTYPE_F32),
                                    HOB_DTYPE_BIT(HOB_DTYPE_F32)};

static const struct hob_entry entries[] = {
    {"px.dense", DENSE, f32_only, 3, HOB_ENTRY_CONTIGUOUS, NULL, run_dense},
    {"px.axpy", AXPY, f32_only, 2, HOB_ENTRY_CONTIGUOUS, NULL, run_axpy},
    {"px.wrong", ONE, f32_only, 1, 0, NULL, run_never},
    {"px.fails", ONE, f32_only, 1, 0, NULL, run_never},
    {"px.magnitude", AXPY, f32_only, 2, HOB_ENTRY_CONTIGUOUS, NULL,
     run_magnitude},
};

#define IMPL(index)                                                            \
    static const struct hob_op_impl impl_##index = {.selector = "flex",        \
                                                    .entry = &entries[index]}
IMPL(0);
IMPL(1);
IMPL(2);
IMPL(3);
IMPL(4);
#undef IMPL

static const struct hob_extension_op ops[] = {
    {"px.dense", DENSE, NULL, NULL, &impl_0, 1, 0, NULL, 0, 0},
    {"px.axpy", AXPY, NULL, NULL, &impl_1, 1, 0, NULL, 0, 0},
    {"px.wrong", ONE, infer_wrong, NULL, &impl_2, 1, 0, NULL, 0, 0},
    {"px.fails", ONE, NULL, NULL, &impl_3, 1, 0, NULL, 0, 0},
    {"px.magnitude", AXPY, NULL, NULL, &impl_4, 1, 0, NULL, 0, 0},
};

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD, .op_count = sizeof(ops) / sizeof(ops[0]),
    .ops = ops};

static const struct hob_plugin plugin = {HOB_PLUGIN_INIT_HEAD, .id = "px",
                                         .version = "1.0.0",
                                         .extension = &extension};

static const struct hob_plugin *plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}

#define OP(name, signature, infer)                                             \
    "{\"op\":\"" name "\",\"signature\":\"" signature "\",\"infer\":\"" infer  \
    "\",\"backends\":[\"flex\"],\"implementations\":{\"flex\":"                \
    "{\"kernel\":true}}}"
#define PATTERN(replace, with)                                                 \
    "{\"replace\":\"" replace "\",\"with\":\"" with "\"}"

/* The smaller pattern comes first and must lose where the larger one fits; the
 * last one is of an op that is not there, which is no reason to refuse the
 * rest. */
/* clang-format off */
static const char manifest[] =
    "{\"manifest_version\":1,\"id\":\"px\",\"version\":\"1.0.0\","
    "\"kind\":\"extension\",\"abi\":{\"major\":0,\"required_minor\":2,"
    "\"built_minor\":2},\"namespace\":\"px\",\"ops\":["
    OP("dense", DENSE, "linear") ","
    OP("axpy", AXPY, "same") ","
    OP("wrong", ONE, "function") ","
    OP("fails", ONE, "same") ","
    OP("magnitude", AXPY, "same")
    "],\"patterns\":["
    PATTERN("relu(linear(x, w, b))", "px.dense(x, w, b)") ","
    PATTERN("relu(add(matmul(x, w), b))", "px.dense(x, w, b)") ","
    PATTERN("add(mul_scalar(x, $a), y)", "px.axpy(x, y, $a)") ","
    PATTERN("abs(add(mul_scalar(x, $a), y))", "px.magnitude(x, y, $a)") ","
    PATTERN("abs(add(x, y))", "px.magnitude(x, y, 1)") ","
    PATTERN("sub_scalar(mul(x, x), 1)", "px.fails(x)") ","
    PATTERN("floor(abs(x))", "px.wrong(x)") ","
    PATTERN("relu(acme.elsewhere(x))", "px.fails(x)") "]}";
/* clang-format on */

/* ---- the fixture ---- */

/* What was told since the last time. */
static struct {
    int replaced, refused, groups, singles;
    char name[64], pattern[64], refused_op[64];
    uint32_t ops, inputs, refusal;
    uint64_t saved;
} seen;

static void watch(void *context, const struct hob_fusion_event *event)
{
    (void)context;
    if (!event->op_count) {
        seen.refused++;
        seen.refusal = event->refusal;
        snprintf(seen.refused_op, sizeof(seen.refused_op), "%s",
                 event->refused_op);
    } else if (event->pattern) {
        seen.replaced++;
        seen.ops = event->op_count;
        seen.inputs = event->input_count;
        seen.saved = event->saved_bytes;
        snprintf(seen.name, sizeof(seen.name), "%s", event->name);
        snprintf(seen.pattern, sizeof(seen.pattern), "%s", event->pattern);
    } else if (event->is_group) {
        seen.groups++;
    } else {
        seen.singles++;
    }
}

static void setup(void)
{
    const struct hob_static_plugin px = {manifest, plugin_entry};
    struct hob_runtime_options options = test_options();

    options.static_plugins = &px;
    options.static_plugin_count = 1;
    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "fusion(flex)", &lazy, &error));
    ck_assert_hob_ok(hob_fusion_watch(lazy, watch, NULL, &error));
    scope = hob_scope_open(runtime);
    runs = 0;
    memset(&seen, 0, sizeof(seen));
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(lazy);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* Element I of input SEED: exact in f32, and so is what is made of it. */
static double element(int seed, int64_t i)
{
    return (double)((i * 5 + seed * 3) % 17 - 8) / 8;
}

static hob_tensor *made(hob_device *device, int seed, const int64_t *shape,
                        int32_t rank)
{
    float data[MOST];
    int64_t count = 1;

    for (int32_t i = 0; i < rank; i++)
        count *= shape[i];
    ck_assert_int_le(count, MOST);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)element(seed, i);
    return hob_from_f32(scope, device, data, shape, rank);
}

static const int64_t x_shape[] = {ROWS, INNER}, w_shape[] = {INNER, COLUMNS},
                     b_shape[] = {COLUMNS}, y_shape[] = {ROWS, COLUMNS};

static double product(int64_t i, int64_t j)
{
    double sum = 0;

    for (int64_t k = 0; k < INNER; k++)
        sum += element(1, i * INNER + k) * element(2, k * COLUMNS + j);
    return sum;
}

/* TENSOR is the product, plus input 3 as a bias of COLUMNS or of ROWS times
 * as many, clipped at 0 if IS_CLIPPED. */
static void check(hob_tensor *tensor, int64_t bias_rows, int is_clipped)
{
    double data[ROWS * COLUMNS];

    ck_assert_hob_ok(hob_read_f64(tensor, data, ROWS * COLUMNS, &error));
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLUMNS; j++) {
            double want = product(i, j);

            if (bias_rows)
                want += element(3, i % bias_rows * COLUMNS + j);
            if (is_clipped && want < 0)
                want = 0;
            ck_assert_double_eq(data[i * COLUMNS + j], want);
        }
}

/* The ops of the larger pattern, one by one. */
struct layer {
    hob_tensor *product, *sum, *out;
};

static struct layer layer_of(hob_device *device, const int64_t *bias_shape,
                             int32_t bias_rank)
{
    struct layer l;

    l.product = hob_matmul(scope, made(device, 1, x_shape, 2),
                           made(device, 2, w_shape, 2));
    l.sum = hob_add(scope, l.product, made(device, 3, bias_shape, bias_rank));
    l.out = hob_relu(scope, l.sum);
    return l;
}

static void expect_refusal(uint32_t refusal, const char *op)
{
    ck_assert_int_eq(seen.replaced, 0);
    ck_assert_int_eq(seen.refused, 1);
    ck_assert_uint_eq(seen.refusal, refusal);
    ck_assert_str_eq(seen.refused_op, op);
    ck_assert_int_eq(runs, 0);
}

/* ---- it takes the place ---- */

START_TEST(test_fusion_pattern_takes_the_place)
{
    struct hob_fusion_stats stats = HOB_FUSION_STATS_INIT;
    struct layer l = layer_of(lazy, b_shape, 1);

    check(l.out, 1, 1);
    ck_assert_int_eq(runs, 1);
    ck_assert_int_eq(seen.replaced, 1);
    ck_assert_int_eq(seen.refused, 0);
    ck_assert_int_eq(seen.groups + seen.singles, 0);
    ck_assert_str_eq(seen.name, "px.dense");
    ck_assert_str_eq(seen.pattern, "relu(add(matmul(x, w), b))");
    ck_assert_uint_eq(seen.ops, 3);
    ck_assert_uint_eq(seen.inputs, 3);
    ck_assert_uint_eq(seen.saved, 2 * 2 * ROWS * COLUMNS * 4);
    ck_assert_hob_ok(hob_fusion_report(lazy, &stats, &error));
    ck_assert_uint_eq(stats.replaced, 3);
    ck_assert_uint_eq(stats.weak, 2); /* the scope has the others */
}
END_TEST

/* The scope may still ask for what was inside: it is computed then, and the
 * second time it is kept. */
START_TEST(test_fusion_pattern_inside_is_there)
{
    struct layer l = layer_of(lazy, b_shape, 1);

    check(l.out, 1, 1);
    check(l.product, 0, 0);
    check(l.sum, 1, 0);
    check(l.out, 1, 1);
    ck_assert_int_eq(runs, 1);
}
END_TEST

/* What reads the result, and what makes the arguments, is as ever. */
START_TEST(test_fusion_pattern_among_others)
{
    hob_tensor *x = hob_neg(scope, hob_neg(scope, made(lazy, 1, x_shape, 2)));
    hob_tensor *w = hob_abs(scope, made(lazy, 2, w_shape, 2));
    hob_tensor *b =
        hob_exp(scope, hob_zeros(scope, b_shape, 1, lazy, HOB_DTYPE_F32));
    hob_tensor *y = hob_relu(scope, hob_linear(scope, x, w, b));
    hob_tensor *z = hob_add(scope, hob_square(scope, y), b);
    double data[ROWS * COLUMNS];

    ck_assert_hob_ok(hob_read_f64(z, data, ROWS * COLUMNS, &error));
    ck_assert_int_eq(runs, 1);
    ck_assert_int_eq(seen.replaced, 1);
    for (int64_t i = 0; i < ROWS; i++)
        for (int64_t j = 0; j < COLUMNS; j++) {
            double sum = 1;

            for (int64_t k = 0; k < INNER; k++)
                sum += element(1, i * INNER + k) *
                       fabs(element(2, k * COLUMNS + j));
            sum = sum > 0 ? sum : 0;
            ck_assert_double_eq(data[i * COLUMNS + j], sum * sum + 1);
        }
}
END_TEST

/* A value that the pattern names goes along; 3 and 3.0 are one. */
START_TEST(test_fusion_pattern_takes_attributes)
{
    hob_tensor *x = made(lazy, 1, x_shape, 2), *y = made(lazy, 2, x_shape, 2);
    hob_tensor *sum =
        hob_add(scope, hob_mul_scalar(scope, x, hob_f64(0.75)), y);
    double data[ROWS * INNER];

    ck_assert_hob_ok(hob_read_f64(sum, data, ROWS * INNER, &error));
    ck_assert_int_eq(runs, 1);
    for (int64_t i = 0; i < ROWS * INNER; i++)
        ck_assert_double_eq(data[i], 0.75 * element(1, i) + element(2, i));
}
END_TEST

/* ---- it does not ---- */

START_TEST(test_fusion_pattern_leaves_what_is_held)
{
    hob_scope *outer = hob_scope_open(runtime);
    struct layer l = layer_of(lazy, b_shape, 1);

    (void)hob_keep(outer, l.product);
    check(l.out, 1, 1);
    expect_refusal(HOB_FUSION_HELD, "matmul");
    check(l.product, 0, 0);
    hob_scope_close(outer);
}
END_TEST

START_TEST(test_fusion_pattern_leaves_what_is_asked_for)
{
    struct layer l = layer_of(lazy, b_shape, 1);

    ck_assert_hob_ok(hob_eval((hob_tensor *[]){l.out, l.sum}, 2, &error));
    expect_refusal(HOB_FUSION_HELD, "add");
    check(l.out, 1, 1);
    check(l.sum, 1, 0);
}
END_TEST

START_TEST(test_fusion_pattern_leaves_what_others_read)
{
    struct layer l = layer_of(lazy, b_shape, 1);
    hob_tensor *other = hob_neg(scope, hob_neg(scope, l.product));

    check(l.out, 1, 1);
    expect_refusal(HOB_FUSION_SHARED, "matmul");
    check(other, 0, 0);
}
END_TEST

/* px.dense wants a vector: a bias for each element is another sum. */
START_TEST(test_fusion_pattern_asks_inference)
{
    struct layer l = layer_of(lazy, y_shape, 2);

    check(l.out, ROWS, 1);
    expect_refusal(HOB_FUSION_UNFIT, "relu");
}
END_TEST

/* x + y of other shapes broadcasts, px.axpy has the shape of x. */
START_TEST(test_fusion_pattern_compares_shapes)
{
    hob_tensor *x = made(lazy, 1, b_shape, 1), *y = made(lazy, 2, y_shape, 2);
    hob_tensor *sum = hob_add(scope, hob_mul_scalar(scope, x, hob_f64(2)), y);
    double data[ROWS * COLUMNS];

    ck_assert_hob_ok(hob_read_f64(sum, data, ROWS * COLUMNS, &error));
    expect_refusal(HOB_FUSION_UNFIT, "add");
    for (int64_t i = 0; i < ROWS * COLUMNS; i++)
        ck_assert_double_eq(data[i],
                            2 * element(1, i % COLUMNS) + element(2, i));
}
END_TEST

START_TEST(test_fusion_pattern_compares_ranks)
{
    hob_tensor *y = hob_floor(scope, hob_abs(scope, made(lazy, 1, x_shape, 2)));

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    expect_refusal(HOB_FUSION_UNFIT, "floor");
}
END_TEST

START_TEST(test_fusion_pattern_compares_attributes)
{
    hob_tensor *x = made(lazy, 1, x_shape, 2);
    hob_tensor *y = hob_sub_scalar(scope, hob_mul(scope, x, x), hob_f64(2));
    double first;

    ck_assert_hob_ok(hob_item(
        hob_slice(scope, hob_reshape(scope, y, (int64_t[]){ROWS * INNER}, 1),
                  (int64_t[]){0}, 1, (int64_t[]){1}, 1, NULL, 0),
        &first, &error));
    expect_refusal(HOB_FUSION_DIFFERS, "sub_scalar");
    ck_assert_double_eq(first, element(1, 0) * element(1, 0) - 2);
}
END_TEST

START_TEST(test_fusion_pattern_needs_a_kernel)
{
    hob_tensor *x = hob_cast(scope, made(lazy, 1, x_shape, 2), HOB_DTYPE_F64);
    hob_tensor *y = hob_add(scope, hob_mul_scalar(scope, x, hob_f64(2)), x);

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    expect_refusal(HOB_FUSION_NO_KERNEL, "add");
}
END_TEST

/* Where the largest may not be taken, a smaller one inside of it is, and one
 * that ends where it does. */
START_TEST(test_fusion_pattern_tries_the_smaller)
{
    hob_scope *outer = hob_scope_open(runtime);
    hob_tensor *x = made(lazy, 1, x_shape, 2), *y = made(lazy, 2, x_shape, 2);
    hob_tensor *scaled = hob_mul_scalar(scope, x, hob_f64(-0.75));
    hob_tensor *sum = hob_add(scope, scaled, y);
    hob_tensor *out = hob_abs(scope, sum);
    hob_tensor *held = hob_keep(outer, _i ? scaled : sum);
    double data[ROWS * INNER];

    ck_assert_hob_ok(hob_read_f64(out, data, ROWS * INNER, &error));
    ck_assert_int_eq(seen.refused, _i ? 1 : 2);
    ck_assert_uint_eq(seen.refusal, HOB_FUSION_HELD);
    ck_assert_int_eq(seen.replaced, 1);
    ck_assert_str_eq(seen.name, _i ? "px.magnitude" : "px.axpy");
    ck_assert_uint_eq(seen.ops, 2);
    ck_assert_int_eq(runs, 1);
    for (int64_t i = 0; i < ROWS * INNER; i++)
        ck_assert_double_eq(data[i],
                            fabs(-0.75 * element(1, i) + element(2, i)));
    ck_assert_hob_ok(hob_read_f64(held, data, ROWS * INNER, &error));
    for (int64_t i = 0; i < ROWS * INNER; i++)
        ck_assert_double_eq(data[i],
                            -0.75 * element(1, i) + !_i * element(2, i));
    ck_assert_int_eq(runs, 1);
    hob_scope_close(outer);
}
END_TEST

/* One name is one tensor. */
START_TEST(test_fusion_pattern_compares_tensors)
{
    hob_tensor *x = made(lazy, 1, x_shape, 2), *z = made(lazy, 2, x_shape, 2);
    hob_tensor *y = hob_sub_scalar(scope, hob_mul(scope, x, z), hob_f64(1));

    ck_assert_hob_ok(hob_eval(&y, 1, &error));
    ck_assert_int_eq(seen.replaced + seen.refused, 0);
    ck_assert_int_eq(seen.groups, 1);
}
END_TEST

/* What fails in place of others fails with a name of its own. */
START_TEST(test_fusion_pattern_fails)
{
    hob_tensor *x = made(lazy, 1, x_shape, 2);
    hob_tensor *y = hob_sub_scalar(scope, hob_mul(scope, x, x), hob_f64(1));
    hob_tensor *z = hob_neg(scope, x);

    ck_assert_int_eq(hob_eval(&y, 1, &error), HOB_ERR_INTERNAL);
    ck_assert_ptr_nonnull(strstr(error.message, "px.fails"));
    ck_assert_ptr_nonnull(strstr(error.message, "only fails"));
    hob_error_release(&error);
    ck_assert_hob_ok(hob_eval(&z, 1, &error));
}
END_TEST

/* Below autodiff it is replaced as well, and gradients are as they were. */
START_TEST(test_fusion_pattern_below_autodiff)
{
    double gradient[2][INNER * COLUMNS];

    for (int i = 0; i < 2; i++) {
        hob_device *device;
        hob_grads *grads;
        hob_tensor *w, *y, *dw;

        ck_assert_hob_ok(hob_device_open(
            runtime, i ? "autodiff(fusion(flex))" : "autodiff(flex)", &device,
            &error));
        ck_assert(!i || !hob_fusion_watch(device, watch, NULL, &error));
        w = hob_require_grad(scope, made(device, 2, w_shape, 2));
        y = hob_relu(scope,
                     hob_add(scope,
                             hob_matmul(scope, made(device, 1, x_shape, 2), w),
                             made(device, 3, b_shape, 1)));
        check(hob_detach(scope, y), 1, 1);
        ck_assert_int_eq(runs, i);
        ck_assert_int_eq(seen.replaced, i);
        ck_assert_hob_ok(
            hob_backward(scope, hob_sum(scope, y), 0, &grads, &error));
        ck_assert_hob_ok(hob_grad(scope, w, grads, &dw, &error));
        ck_assert_hob_ok(
            hob_read_f64(dw, gradient[i], INNER * COLUMNS, &error));
        hob_grads_free(grads);
        hob_device_unref(device);
    }
    ck_assert_mem_eq(gradient[0], gradient[1], sizeof(gradient[0]));
}
END_TEST

/* ---- texts ---- */

static const struct bad_text {
    const char *replace, *with, *message;
} bad_texts[] = {
    {"relu", "px.fails(x)", "column 5: '(' expected"},
    {"relu(x)", "px.fails(x)", "at least two ops"},
    {"relu(abs(x)", "px.fails(x)", "column 12: ',' or ')'"},
    {"relu(abs(x)) y", "px.fails(x)", "column 14: nothing more"},
    {"relu(abs(x, y))", "px.fails(x)", "so many arguments"},
    {"relu(abs())", "px.fails(x)", "an argument is missing"},
    {"relu(nothing(x))", "px.fails(x)", "there is no op nothing"},
    {"relu(abs(x))", "px.fails(y)", "column 10: \"replace\" has no such name"},
    {"relu(abs(x))", "px.fails(abs(x))", "\"with\" is one op"},
    {"relu(mul_scalar(x, y))", "px.fails(x)", "column 20: true or false"},
    {"add(sum_dim(x, $a), mul_scalar(x, $a))", "px.fails(x)",
     "another type elsewhere"},
    {"sum(max_dim_with_indices(x, 0))", "px.fails(x)", "one tensor"},
    {"relu(random_bernoulli(x, 0.5))", "px.fails(x)", "draws numbers"},
    {"relu(cat(x, 0))", "px.fails(x)", "a list of tensors"},
    {"sum(argwhere(x))", "px.fails(x)", "depend on data"},
};

START_TEST(test_fusion_pattern_texts)
{
    const struct bad_text *bad = &bad_texts[_i];
    struct hob_pattern *pattern = (void *)1;

    ck_assert_int_ne(hob__pattern_read(&runtime->registry, bad->replace,
                                       bad->with, &pattern, &error),
                     HOB_OK);
    ck_assert_ptr_null(pattern);
    ck_assert_msg(strstr(error.message, bad->message), "%s: got \"%s\"",
                  bad->replace, error.message);
    hob_error_release(&error);
}
END_TEST

START_TEST(test_fusion_pattern_order)
{
    const struct hob_host *host = &runtime->host;
    uint32_t count = 0;

    while (host->pattern(host, count)) {
        const struct hob_pattern *one = host->pattern(host, count++);

        ck_assert_str_eq(one->plugin, "px");
        ck_assert(count == 1 ||
                  one->op_count <= host->pattern(host, count - 2)->op_count);
    }
    ck_assert_uint_eq(count, 7); /* of eight */
    ck_assert_uint_eq(host->pattern(host, 0)->op_count, 3);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion pattern");
    TCase *tc = tcase_create("fusion pattern");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_fusion_pattern_takes_the_place);
    tcase_add_test(tc, test_fusion_pattern_inside_is_there);
    tcase_add_test(tc, test_fusion_pattern_among_others);
    tcase_add_test(tc, test_fusion_pattern_takes_attributes);
    tcase_add_test(tc, test_fusion_pattern_leaves_what_is_held);
    tcase_add_test(tc, test_fusion_pattern_leaves_what_is_asked_for);
    tcase_add_test(tc, test_fusion_pattern_leaves_what_others_read);
    tcase_add_test(tc, test_fusion_pattern_asks_inference);
    tcase_add_test(tc, test_fusion_pattern_compares_shapes);
    tcase_add_test(tc, test_fusion_pattern_compares_ranks);
    tcase_add_test(tc, test_fusion_pattern_compares_attributes);
    tcase_add_test(tc, test_fusion_pattern_needs_a_kernel);
    tcase_add_loop_test(tc, test_fusion_pattern_tries_the_smaller, 0, 2);
    tcase_add_test(tc, test_fusion_pattern_compares_tensors);
    tcase_add_test(tc, test_fusion_pattern_fails);
    tcase_add_test(tc, test_fusion_pattern_below_autodiff);
    tcase_add_loop_test(tc, test_fusion_pattern_texts, 0,
                        sizeof(bad_texts) / sizeof(bad_texts[0]));
    tcase_add_test(tc, test_fusion_pattern_order);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
