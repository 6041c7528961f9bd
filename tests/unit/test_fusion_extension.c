/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops of extensions on fusion: each runs as its declaration says - put off
 * whole, as its body, by a layer of its own, or at once.
 */
#include "hob_check.h"

#include <hob/ext/plugin.h>
#include <hob/hob.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT = 777 };

static hob_runtime *runtime;
static hob_device *lazy;
static hob_scope *scope;
static hob_error error;
static int kernels, bodies, layers; /* runs */
static int inferences;              /* of fx.fickle */

/* ---- the extension ---- */

/* 2 x */
static hob_status run_kernel(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const float *from = x->data;
    float *to = hob_ret_view(call, 0)->data;

    (void)device;
    kernels++;
    for (int64_t i = 0; i < hob_view_count(x); i++)
        to[i] = 2 * from[i];
    return HOB_OK;
}

/* x * x + x */
static hob_status run_body(hob_scope *inner, const struct hob_call *call,
                           hob_tensor **out)
{
    hob_tensor *x = call->args[0].u.tensor;

    bodies++;
    out[0] = hob_add(inner, hob_mul(inner, x, x), x);
    return hob_scope_host(inner)->scope_status(inner);
}

static hob_status run_layer(void *instance, struct hob_call *call)
{
    (void)instance;
    layers++;
    return call->host->next(call);
}

/* One element more than the body makes. */
static hob_status infer_wrong(struct hob_call *call, struct hob_meta *out)
{
    const struct hob_view *x = hob_arg_view(call, 0);

    out->dtype = x->dtype;
    out->rank = 1;
    out->shape[0] = x->shape[0] + 1;
    return HOB_OK;
}

/* Another size each time. */
static hob_status infer_fickle(struct hob_call *call, struct hob_meta *out)
{
    out->dtype = hob_arg_view(call, 0)->dtype;
    out->rank = 1;
    out->shape[0] = ++inferences;
    return HOB_OK;
}

static hob_status run_nothing(void *device, struct hob_call *call)
{
    (void)device;
    (void)call;
    return HOB_OK;
}

#define X_TO_X "(x: Float) -> x"
#define X_TO_F32 "(x: Float) -> f32"

static const struct hob_entry entry = {
    .op = "fx.twice", .signature = X_TO_X, .execute = run_kernel};
static const struct hob_entry entry_apart = {
    .op = "fx.apart", .signature = X_TO_X, .execute = run_kernel};
static const struct hob_entry entry_own = {
    .op = "fx.own", .signature = X_TO_X, .execute = run_kernel};

static const struct hob_entry entry_fickle = {
    .op = "fx.fickle", .signature = X_TO_F32, .execute = run_nothing};

static const struct hob_op_impl impl_twice = {.selector = "flex",
                                              .entry = &entry};
static const struct hob_op_impl impl_apart = {.selector = "flex",
                                              .entry = &entry_apart};
static const struct hob_op_impl impl_fickle = {.selector = "flex",
                                               .entry = &entry_fickle};
static const struct hob_op_impl impls_own[] = {
    {.selector = "flex", .entry = &entry_own},
    {.selector = "fusion", .layer = run_layer}};

static const struct hob_extension_op ops[] = {
    {.name = "fx.twice",
     .signature = X_TO_X,
     .impls = &impl_twice,
     .impl_count = 1},
    {.name = "fx.apart",
     .signature = X_TO_X,
     .impls = &impl_apart,
     .impl_count = 1},
    {.name = "fx.own",
     .signature = X_TO_X,
     .impls = impls_own,
     .impl_count = 2},
    {.name = "fx.square", .signature = X_TO_X, .body = run_body},
    {.name = "fx.whole", .signature = X_TO_X, .body = run_body},
    {.name = "fx.wrong",
     .signature = X_TO_F32,
     .infer = infer_wrong,
     .body = run_body},
    {.name = "fx.fickle",
     .signature = X_TO_F32,
     .infer = infer_fickle,
     .impls = &impl_fickle,
     .impl_count = 1}};

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD, .op_count = sizeof(ops) / sizeof(ops[0]),
    .ops = ops};

static const struct hob_plugin plugin = {HOB_PLUGIN_INIT_HEAD, .id = "fx",
                                         .version = "1.0.0",
                                         .extension = &extension};

static const struct hob_plugin *plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &plugin;
}

#define OP(name, signature, infer, rest)                                       \
    "{\"op\":\"" name "\",\"signature\":\"" signature "\",\"infer\":\"" infer  \
    "\"," rest "}"
#define KERNEL "\"flex\":{\"kernel\":true}"

/* clang-format off */
static const char manifest[] =
    "{\"manifest_version\":1,\"id\":\"fx\",\"version\":\"1.0.0\","
    "\"kind\":\"extension\",\"abi\":{\"major\":0,\"required_minor\":2,"
    "\"built_minor\":2},\"namespace\":\"fx\",\"ops\":["
    OP("twice", X_TO_X, "same",
       "\"backends\":[\"flex\",\"fusion\"],\"implementations\":{" KERNEL "}")
    ","
    OP("apart", X_TO_X, "same",
       "\"backends\":[\"flex\"],\"implementations\":{" KERNEL "}")
    ","
    OP("own", X_TO_X, "same",
       "\"backends\":[\"flex\",\"fusion\"],\"implementations\":{" KERNEL
       ",\"fusion\":{\"layer\":true}}")
    ","
    OP("square", X_TO_X, "same",
       "\"fuse\":\"inline\",\"body\":true,\"backends\":[\"*\"]")
    ","
    OP("whole", X_TO_X, "same", "\"body\":true,\"backends\":[\"*\"]")
    ","
    OP("wrong", X_TO_F32, "function", "\"body\":true,\"backends\":[\"*\"]")
    ","
    OP("fickle", X_TO_F32, "function",
       "\"backends\":[\"flex\",\"fusion\"],\"implementations\":{" KERNEL "}")
    "]}";
/* clang-format on */

/* ---- the fixture ---- */

static char kernel_name[128]; /* of the latest group */

static void watch(void *context, const struct hob_fusion_event *event)
{
    (void)context;
    if (event->is_group)
        snprintf(kernel_name, sizeof(kernel_name), "%s", event->name);
}

static void setup(void)
{
    const struct hob_static_plugin fx = {manifest, plugin_entry};
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    const char *path = getenv("HOB_TEST_PLUGIN_DIR");

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.static_plugins = &fx;
    options.static_plugin_count = 1;
    options.plugin_paths = &path;
    options.plugin_path_count = 1;
    options.threads = 2;
    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "fusion(flex)", &lazy, &error));
    ck_assert_hob_ok(hob_fusion_watch(lazy, watch, NULL, &error));
    scope = hob_scope_open(runtime);
    kernels = bodies = layers = inferences = 0;
    kernel_name[0] = '\0';
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(lazy);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

/* i / 8, which was put off. */
static hob_tensor *eighths(void)
{
    static float data[COUNT];
    const int64_t shape = COUNT;

    for (int i = 0; i < COUNT; i++)
        data[i] = (float)i;
    return hob_mul_scalar(scope, hob_from_f32(scope, lazy, data, &shape, 1),
                          hob_f64(0.125));
}

static hob_tensor *call(const char *name, hob_tensor *x)
{
    hob_value arg = hob_value_tensor(x);
    hob_tensor *result = NULL;
    uint32_t op = 0, count = 0;

    ck_assert_hob_ok(hob_op_find(runtime, name, &op, &error));
    (void)hob_call_op(scope, op, &arg, 1, &result, 1, &count);
    return result;
}

/* TENSOR is -(a x x + b x). */
static void check(hob_tensor *tensor, double a, double b)
{
    static double data[COUNT];

    ck_assert_hob_ok(hob_read_f64(tensor, data, COUNT, &error));
    for (int i = 0; i < COUNT; i++) {
        const double x = i * 0.125; /* exact in f32, like all that follows */

        ck_assert_double_eq(data[i], -(a * x * x + b * x));
    }
}

/* ---- tests ---- */

START_TEST(test_fusion_extension_op_is_put_off)
{
    hob_tensor *y = hob_neg(scope, call("fx.twice", eighths()));

    ck_assert_int_eq(kernels, 0);
    ck_assert_int_eq(hob_tensor_shape(y)[0], COUNT); /* as inferred */
    check(y, 0, 2);
    ck_assert_int_eq(kernels, 1);
}
END_TEST

/* With an inline rule the body's ops are what is put off, and fused. */
START_TEST(test_fusion_extension_body_is_inlined)
{
    hob_tensor *y = hob_neg(scope, call("fx.square", eighths()));

    ck_assert_int_eq(bodies, 1);
    check(y, 1, 1);
    ck_assert_int_eq(bodies, 1);
    ck_assert_str_eq(kernel_name, "mul_scalar+mul+add+neg");
}
END_TEST

/* Without one the op waits, and its body runs one level down. */
START_TEST(test_fusion_extension_body_is_put_off)
{
    hob_tensor *y = hob_neg(scope, call("fx.whole", eighths()));

    ck_assert_int_eq(bodies, 0);
    check(y, 1, 1);
    ck_assert_int_eq(bodies, 1);
}
END_TEST

START_TEST(test_fusion_extension_layer_of_its_own)
{
    hob_tensor *y = call("fx.own", eighths());

    ck_assert_int_eq(layers, 1);
    ck_assert_int_eq(kernels, 1);
    check(hob_neg(scope, y), 0, 2);
    ck_assert_int_eq(layers, 1);
}
END_TEST

/* What does not list fusion runs at once, on what its arguments wait for. */
START_TEST(test_fusion_extension_unlisted_runs_at_once)
{
    hob_tensor *y = hob_neg(scope, call("fx.apart", eighths()));

    ck_assert_int_eq(kernels, 1);
    check(y, 0, 2);
    ck_assert_int_eq(kernels, 1);
}
END_TEST

/* Handles were given what was inferred, so it must come out as that. */
START_TEST(test_fusion_extension_wrong_inference)
{
    static double data[COUNT + 1];
    hob_tensor *y = call("fx.wrong", eighths());
    hob_tensor *z = hob_neg(scope, y);
    char want[64];

    ck_assert_int_eq(hob_tensor_shape(z)[0], COUNT + 1);
    ck_assert_int_eq(hob_tensor_status(z, NULL), HOB_OK);
    ck_assert_int_eq(hob_read_f64(z, data, COUNT + 1, &error), HOB_ERR_PLUGIN);
    ck_assert_ptr_nonnull(strstr(error.message, "fx.wrong (call "));
    ck_assert_ptr_nonnull(strstr(error.message, "result 0"));
    snprintf(want, sizeof(want), "f32[%d]", COUNT);
    ck_assert_ptr_nonnull(strstr(error.message, want));
    snprintf(want, sizeof(want), "f32[%d]", COUNT + 1);
    ck_assert_ptr_nonnull(strstr(error.message, want));
    hob_error_release(&error);
    ck_assert_int_eq(hob_eval(&y, 1, NULL), HOB_ERR_PLUGIN);
}
END_TEST

/* So must an op that runs as another thing than it was inferred to be, which
 * only the layer can see. */
START_TEST(test_fusion_extension_other_metadata)
{
    double data;
    hob_tensor *y = call("fx.fickle", eighths());

    ck_assert_int_eq(hob_tensor_shape(y)[0], 1);
    ck_assert_int_eq(hob_read_f64(y, &data, 1, &error), HOB_ERR_PLUGIN);
    ck_assert_ptr_nonnull(strstr(error.message, "fx.fickle (call "));
    ck_assert_ptr_nonnull(strstr(error.message, "result 0"));
    ck_assert_ptr_nonnull(strstr(error.message, "inferred to be f32[1]"));
    ck_assert_ptr_nonnull(strstr(error.message, "came out as f32[2]"));
    hob_error_release(&error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("fusion extension");
    TCase *tc = tcase_create("fusion extension");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        fprintf(stderr, "skipped: HOB_TEST_PLUGIN_DIR names no plugins\n");
        return 77;
    }
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_fusion_extension_op_is_put_off);
    tcase_add_test(tc, test_fusion_extension_body_is_inlined);
    tcase_add_test(tc, test_fusion_extension_body_is_put_off);
    tcase_add_test(tc, test_fusion_extension_layer_of_its_own);
    tcase_add_test(tc, test_fusion_extension_unlisted_runs_at_once);
    tcase_add_test(tc, test_fusion_extension_wrong_inference);
    tcase_add_test(tc, test_fusion_extension_other_metadata);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
