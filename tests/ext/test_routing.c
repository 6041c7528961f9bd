/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where calls of an extension go: structs and enums as inputs, several
 * backends, decorators, features, gradients by hand. The extension is
 * routing.json and routing.c, its glue that of the generator. Its panics are
 * golden files.
 */
#include "routing.h"
#include "routing_ops.h"

#include "golden.h"
#include "hob_check.h"
#include "mock/reference_backend.h"
#include "plain_backend.h"
#include "tmp_dir.h"

#undef fail /* a macro of check.h */

#include <hob/hob.h>

/* ---- the fixture ---- */

static char *manifest; /* routing.json, perhaps changed */
static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *reference;
static hob_device *flex;
static hob_device *tracking; /* autodiff(flex) */
static hob_error error;

static void stay_silent(void *context, hob_status status, const char *op,
                        const char *message)
{
    (void)context;
    (void)status;
    (void)op;
    (void)message;
}

static char *read_manifest(void)
{
    const char *root = getenv("HOB_TEST_SRCDIR");
    char path[4096];
    char *text = calloc(1, 65536);
    FILE *file;

    ck_assert_ptr_nonnull(text);
    snprintf(path, sizeof(path), "%s/ext/routing.json", root ? root : ".");
    file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s cannot be read", path);
    ck_assert_uint_lt(fread(text, 1, 65535, file), 65535);
    fclose(file);
    return text;
}

static hob_device *open_device(const char *spec)
{
    hob_device *device = NULL;

    ck_assert_hob_ok(hob_device_open(runtime, spec, &device, &error));
    hob_device_unref(device); /* it lives as long as the runtime */
    return device;
}

/* A runtime with the extension, flex, and PLUGINS of the linked-in ones. */
static void open_runtime(const char *config, uint32_t plugins)
{
    const struct hob_static_plugin linked[] = {
        {manifest, route_entry},
        {reference_backend_manifest, hob_plugin_entry_reference},
        plain_backends[0]};
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    const char *path = getenv("HOB_TEST_PLUGIN_DIR");

    options.policy = HOB_POLICY_REPORT;
    options.on_panic = stay_silent;
    options.plugin_paths = &path;
    options.plugin_path_count = 1;
    options.exclusive = 1;
    options.static_plugins = linked;
    options.static_plugin_count = plugins;
    options.config = config;
    options.threads = 2;
    options.debug = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    flex = open_device("flex");
    tracking = open_device("autodiff(flex)");
    reference = plugins > 1 ? open_device("reference") : NULL;
    scope = hob_scope_open(runtime);
    memset(&route_counts, 0, sizeof(route_counts));
}

static void setup(void)
{
    manifest = read_manifest();
    open_runtime(NULL, 3);
}

/* Also that nothing is left: closing fails while a tensor lives. */
static void teardown(void)
{
    hob_scope_close(scope);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    free(manifest);
}

/* The same with other plugins or another config. */
static void reopen(const char *config, uint32_t plugins)
{
    hob_scope_close(scope);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    open_runtime(config, plugins);
}

/* ---- tensors ---- */

static hob_tensor *vector(hob_device *device, float a, float b)
{
    return hob_from_f32(scope, device, (float[]){a, b}, (int64_t[]){2}, 1);
}

static void check_vector(hob_tensor *tensor, float a, float b)
{
    float out[2] = {0, 0};

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    ck_assert_hob_ok(hob_read_f32(tensor, out, 2, &error));
    ck_assert_float_eq(out[0], a);
    ck_assert_float_eq(out[1], b);
}

static hob_tensor *gradient_of(hob_grads *grads, hob_tensor *leaf)
{
    hob_tensor *gradient = NULL;

    ck_assert_hob_ok(hob_grad(scope, leaf, grads, &gradient, &error));
    ck_assert_ptr_nonnull(gradient);
    return gradient;
}

static hob_grads *backward(hob_tensor *tensor)
{
    hob_grads *grads = NULL;

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    ck_assert_hob_ok(hob_backward(scope, tensor, 0, &grads, &error));
    return grads;
}

static struct route_operand dense(hob_tensor *tensor)
{
    return (struct route_operand){.variant = ROUTE_OPERAND_DENSE,
                                  .u.dense = tensor};
}

static struct route_operand empty(void)
{
    return (struct route_operand){.variant = ROUTE_OPERAND_EMPTY};
}

/* ---- routing ---- */

static const char *const every[] = {"flex", "reference", "autodiff(flex)",
                                    "autodiff(reference)",
                                    "autodiff{checkpoint=balanced}(flex)"};
enum { EVERY = sizeof(every) / sizeof(every[0]) };

START_TEST(test_routing_enum_input_runs_on_selected_backend)
{
    hob_device *device = open_device(every[_i]);
    struct route_operand operand = dense(vector(device, 2, 3));
    hob_tensor *out = route_unwrap(scope, &operand);

    check_vector(out, 2, 3);
    ck_assert_ptr_eq(hob_tensor_device(out), device);
}
END_TEST

START_TEST(test_routing_mixed_input_selects_backend_from_bare_tensor)
{
    hob_device *device = open_device(every[_i]);
    struct route_operand operand = empty();
    hob_tensor *out = route_blend(scope, &operand, vector(device, 2, 3));

    check_vector(out, 2, 3);
    ck_assert_ptr_eq(hob_tensor_device(out), device);
}
END_TEST

/* The first autodiff must not take every backend's calls for one. */
START_TEST(test_routing_autodiff_dispatches_to_each_concrete_backend)
{
    hob_tensor *on_flex = hob_require_grad(scope, vector(tracking, 1, 2));
    hob_tensor *on_reference = hob_require_grad(
        scope, vector(open_device("autodiff(reference)"), 3, 4));
    hob_grads *grads;

    for (int i = 0; i < 2; i++) {
        hob_tensor *x = i ? on_flex : on_reference;
        hob_tensor *out = route_double(scope, x);

        check_vector(out, i ? 2 : 6, i ? 4 : 8);
        /* Without a backward by hand the body is differentiated. */
        grads = backward(out);
        check_vector(gradient_of(grads, x), 2, 2);
        hob_grads_free(grads);
    }
    /* Untracked, each kernel runs where its tensor is. */
    check_vector(route_double(scope, hob_detach(scope, on_flex)), 2, 4);
    ck_assert_int_eq(atomic_load(&route_counts.flex), 1);
    check_vector(route_double(scope, hob_detach(scope, on_reference)), 6, 8);
    ck_assert_int_eq(atomic_load(&route_counts.reference), 1);
    ck_assert_int_eq(atomic_load(&route_counts.flex), 1);
}
END_TEST

START_TEST(test_routing_op_without_tensors_runs_on_its_backend)
{
    hob_tensor *out = route_load(scope, 2);

    check_vector(out, 0, 1);
    ck_assert_ptr_eq(hob_tensor_device(out), reference);
    ck_assert_int_eq(atomic_load(&route_counts.reference), 1);
}
END_TEST

/* ---- structs, enums and several of them ---- */

START_TEST(test_routing_struct_input_propagates_gradients)
{
    hob_device *device = open_device(every[2 + _i / 2]);
    struct route_pair pair = {hob_require_grad(scope, vector(device, 2, 3)),
                              hob_require_grad(scope, vector(device, 4, 5))};
    hob_tensor *out = _i % 2 ? route_mul_pair_turned(scope, &pair)
                             : route_mul_pair(scope, &pair);
    hob_grads *grads = backward(out);

    check_vector(hob_detach(scope, out), 8, 15);
    check_vector(gradient_of(grads, pair.x), 4, 5);
    check_vector(gradient_of(grads, pair.y), 2, 3);
    ck_assert_int_eq(atomic_load(&route_counts.saved_count), 2);
    hob_grads_free(grads);
}
END_TEST

/* A plain field beside a tracked one is a constant: nothing is saved for its
 * gradient, and it may be on the device below. */
START_TEST(test_routing_plain_inputs_are_constants)
{
    hob_device *other = _i ? tracking : flex;
    struct route_pair pair = {hob_require_grad(scope, vector(tracking, 2, 3)),
                              vector(other, 4, 5)};
    hob_grads *grads = backward(route_mul_pair(scope, &pair));

    check_vector(gradient_of(grads, pair.x), 4, 5);
    ck_assert_int_eq(atomic_load(&route_counts.saved_count), 1);
    hob_grads_free(grads);
    grads = backward(route_mul_pair_turned(scope, &pair));
    check_vector(gradient_of(grads, pair.x), 4, 5);
    ck_assert_int_eq(atomic_load(&route_counts.saved_count), 2);
    hob_grads_free(grads);
}
END_TEST

START_TEST(test_routing_struct_and_scalar)
{
    hob_device *device = open_device(every[_i]);
    struct route_pair pair = {vector(device, 2, 3), vector(device, 4, 5)}, out;

    ck_assert_int_eq(route_scale_pair(scope, &pair, 0.5, &out), HOB_OK);
    check_vector(out.x, 1, 1.5f);
    check_vector(out.y, 2, 2.5f);
}
END_TEST

START_TEST(test_routing_bare_tensor_and_struct)
{
    struct route_pair pair = {vector(flex, 2, 3), vector(flex, 4, 5)};
    hob_tensor *z = hob_require_grad(scope, vector(tracking, 10, 20));
    hob_tensor *out = route_add_pair(scope, z, &pair);
    hob_grads *grads;

    check_vector(out, 16, 28);
    grads = backward(out);
    check_vector(gradient_of(grads, z), 1, 1);
    hob_grads_free(grads);
}
END_TEST

START_TEST(test_routing_two_structs)
{
    struct route_pair a = {vector(flex, 2, 3), vector(flex, 4, 5)};
    struct route_pair b = {vector(tracking, 10, 20),
                           hob_require_grad(scope, vector(tracking, 1, 2))};
    hob_tensor *out = route_dot_pairs(scope, &a, &b);
    hob_grads *grads = backward(out);

    check_vector(hob_detach(scope, out), 24, 70);
    check_vector(gradient_of(grads, b.y), 4, 5);
    hob_grads_free(grads);
    /* The same struct twice. */
    check_vector(route_dot_pairs(scope, &a, &a), 20, 34);
}
END_TEST

START_TEST(test_routing_several_results)
{
    hob_device *device = open_device(every[_i]);
    hob_tensor *size = NULL, *sign = NULL;
    int64_t count = 0, signs[2] = {9, 9};

    ck_assert_int_eq(
        route_split(scope, vector(device, -2, 3), &size, &sign, &count),
        HOB_OK);
    check_vector(size, 2, 3);
    ck_assert_hob_ok(hob_read_i64(sign, signs, 2, &error));
    ck_assert_int_eq(signs[0], 1);
    ck_assert_int_eq(signs[1], 0);
    ck_assert_int_eq(count, 2);
}
END_TEST

START_TEST(test_routing_nested_types)
{
    hob_device *device = open_device(every[_i]);
    hob_tensor *x = vector(device, 2, 3), *more[3];
    struct route_nest nest = {.scaled = {{x, vector(device, 4, 5)}, 10},
                              .operand = dense(vector(device, 100, 200)),
                              .rows = 2};
    struct route_scaled out;

    if (_i >= 2)
        x = nest.scaled.pair.x = hob_require_grad(scope, x);
    more[0] = more[2] = x;
    more[1] = nest.scaled.pair.y;
    ck_assert_int_eq(route_rescale(scope, &nest.scaled, &out), HOB_OK);
    check_vector(out.pair.x, 20, 30);
    check_vector(out.pair.y, 40, 50);
    ck_assert_double_eq(out.factor, 1);
    /* What came out goes in again. */
    ck_assert_int_eq(route_rescale(scope, &out, &out), HOB_OK);
    check_vector(out.pair.y, 40, 50);
    check_vector(route_weigh(scope, &nest, more + 1, 1), 328, 570);
    nest.operand = empty();
    check_vector(route_weigh(scope, &nest, more, 3), 140, 188);
    if (_i >= 2) {
        hob_grads *grads = backward(route_weigh(scope, &nest, more, 3));

        check_vector(gradient_of(grads, x), 26, 26);
        hob_grads_free(grads);
    }
}
END_TEST

START_TEST(test_routing_enum_results)
{
    hob_device *device = open_device(every[_i]);
    hob_tensor *x = vector(device, 2, 3);
    struct route_operand out;

    ck_assert_int_eq(route_classify(scope, x, &out), HOB_OK);
    ck_assert_int_eq(out.variant, ROUTE_OPERAND_DENSE);
    check_vector(out.u.dense, -2, -3);
    ck_assert_int_eq(route_classify(scope, hob_unsqueeze(scope, x, 0), &out),
                     HOB_OK);
    ck_assert_int_eq(out.variant, ROUTE_OPERAND_SPARSE);
    check_vector(out.u.sparse.values, 4, 9);
    ck_assert_int_eq(hob_tensor_dtype(out.u.sparse.indices), HOB_DTYPE_I32);
    /* A variant with tensors is an input again. */
    check_vector(route_unwrap(scope, &out), 4, 9);
    ck_assert_int_eq(route_classify(scope, hob_sum(scope, x), &out), HOB_OK);
    ck_assert_int_eq(out.variant, ROUTE_OPERAND_EMPTY);
}
END_TEST

/* ---- gradients ---- */

/* Slots are those of the tensors: absent ones have one, lists one an item. */
START_TEST(test_routing_needs_grad_flags)
{
    struct route_pair pair = {hob_require_grad(scope, vector(tracking, 1, 2)),
                              vector(flex, 3, 4)};
    hob_tensor *at = hob_from_i64(scope, flex, (int64_t[]){1}, NULL, 0);
    hob_tensor *list[2] = {vector(tracking, 5, 6),
                           hob_require_grad(scope, vector(tracking, 7, 8))};
    static const int wanted[] = {1, 0, 0, 0, 0, 1};
    hob_grads *grads = backward(route_watch(scope, &pair, NULL, at, list, 2));

    ck_assert_int_eq(atomic_load(&route_counts.input_count), 6);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(atomic_load(&route_counts.needs_gradient[i]),
                         wanted[i]);
    check_vector(gradient_of(grads, pair.x), 1, 1);
    check_vector(gradient_of(grads, list[1]), 1, 1);
    hob_grads_free(grads);
}
END_TEST

/* The device's strategy reaches an extension's backward: the kernel runs again
 * under balanced, and only there. */
START_TEST(test_routing_checkpointing)
{
    hob_device *device = open_device(_i ? "autodiff{checkpoint=balanced}(flex)"
                                        : "autodiff(flex)");
    struct route_pair pair = {hob_require_grad(scope, vector(device, 1, 2)),
                              hob_require_grad(scope, vector(device, 3, 4))};
    hob_tensor *sum;
    int64_t count = 0;
    hob_grads *grads;

    ck_assert_int_eq(route_cheap(scope, &pair, &sum, &count), HOB_OK);
    ck_assert_int_eq(count, 2);
    ck_assert_int_eq(atomic_load(&route_counts.flex), 1);
    grads = backward(hob_mul(scope, sum, sum));
    check_vector(gradient_of(grads, pair.x), 8, 12);
    check_vector(gradient_of(grads, pair.y), 8, 12);
    hob_grads_free(grads);
    ck_assert_int_eq(atomic_load(&route_counts.flex), _i ? 2 : 1);
}
END_TEST

/* A gradient by hand is made of ops, so it has a gradient in its turn: that of
 * x * y by x is y, and of this by y 1. */
START_TEST(test_routing_gradients_of_gradients)
{
    hob_device *above = open_device("autodiff(autodiff(flex))");
    hob_tensor *y = hob_require_grad(scope, vector(tracking, 4, 5));
    struct route_pair pair = {hob_require_grad(scope, vector(above, 2, 3)),
                              hob_to_device(scope, y, above)};
    hob_grads *grads = backward(route_mul_pair(scope, &pair));
    hob_tensor *dx = gradient_of(grads, pair.x);

    hob_grads_free(grads);
    check_vector(hob_detach(scope, dx), 4, 5);
    grads = backward(dx);
    check_vector(gradient_of(grads, y), 1, 1);
    hob_grads_free(grads);
}
END_TEST

/* ---- features ---- */

static const char features[] =
    "{\"plugins\": {\"test.routing\": {\"features\": {\"%s\": %s}}}}";

/* Once as the program's own config, once as a file. */
START_TEST(test_routing_features_switch_selectors)
{
    struct tmp_dir dir;
    char config[256];
    FILE *file;

    snprintf(config, sizeof(config), features, "gated", "true");
    reopen(config, 3);
    check_vector(route_gated(scope, 2), 0, 1);

    tmp_dir_make(&dir);
    file = fopen(tmp_path(&dir, "hob.json"), "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, features, "fast", "true");
    fclose(file);
    ck_assert_int_eq(setenv("HOB_CONFIG", dir.file, 1), 0);
    reopen(NULL, 3);
    ck_assert_int_eq(unsetenv("HOB_CONFIG"), 0);
    check_vector(route_quick(scope, vector(flex, 2, 3)), 4, 6);
    ck_assert_int_eq(atomic_load(&route_counts.flex), 1);
    check_vector(route_quick(scope, vector(reference, 2, 3)), 4, 6);
    ck_assert_int_eq(atomic_load(&route_counts.reference), 1);
    tmp_dir_remove(&dir);
}
END_TEST

/* What the manifest lists more than the library has. */
static void list_more(void)
{
    static const char more[] =
        "\"backends\": [\"reference\", {\"selector\": \"flex\", "
        "\"when\": \"feature:fast\"}],";
    static const char old[] = "\"backends\": [\"reference\"],";
    char *text = calloc(1, strlen(manifest) + sizeof(more));
    char *at = strstr(strstr(manifest, "\"hollow\""), old);

    ck_assert(text && at);
    memcpy(text, manifest, (size_t)(at - manifest));
    strcat(strcat(text, more), at + sizeof(old) - 1);
    free(manifest);
    manifest = text;
}

START_TEST(test_routing_unmet_selectors_need_no_implementation)
{
    list_more();
    reopen(NULL, 3);
    check_vector(route_hollow(scope, vector(reference, 2, 3)), 2, 3);
}
END_TEST

/* ---- panics ---- */

static void no_tensor(void)
{
    struct route_operand operand = empty();

    (void)route_unwrap(scope, &operand);
}

static void gated(void)
{
    (void)route_gated(scope, 2);
}

static void condition(void)
{
    (void)route_quick(scope, vector(flex, 2, 3));
}

static void absent_backend(void)
{
    reopen(NULL, 1);
    (void)route_load(scope, 2);
}

static void unlisted(void)
{
    struct route_pair pair = {vector(open_device("plain"), 2, 3),
                              vector(open_device("plain"), 2, 3)};

    (void)route_mul_pair(scope, &pair);
}

static void mixed_devices(void)
{
    struct route_pair pair = {vector(flex, 2, 3), vector(reference, 4, 5)};

    (void)route_mul_pair(scope, &pair);
}

static void strategies(void)
{
    struct route_operand operand =
        dense(vector(open_device("autodiff{checkpoint=balanced}(flex)"), 1, 2));

    (void)route_blend(scope, &operand, vector(tracking, 2, 3));
}

static void mixed_dtypes(void)
{
    struct route_pair pair = {
        vector(flex, 2, 3), hob_cast(scope, vector(flex, 2, 3), HOB_DTYPE_F64)};

    (void)route_mul_pair(scope, &pair);
}

static void missing_field(void)
{
    struct route_nest nest = {.scaled = {.pair = {.x = vector(flex, 2, 3)}},
                              .operand = empty()};

    (void)route_weigh(scope, &nest, NULL, 0);
}

static void missing_struct(void)
{
    struct route_pair out;

    (void)route_scale_pair(scope, NULL, 2, &out);
    /* Whoever goes on sees what failed. */
    ck_assert(hob_scope_host(scope)->tensor_is_error(out.x));
    ck_assert(hob_scope_host(scope)->tensor_is_error(out.y));
}

static void no_such_variant(void)
{
    struct route_operand operand = {.variant = (enum route_operand_variant)7};

    (void)route_blend(scope, &operand, vector(flex, 2, 3));
}

static void wrong_kind(void)
{
    hob_tensor *x = vector(flex, 2, 3);
    struct route_operand operand = {.variant = ROUTE_OPERAND_SPARSE,
                                    .u.sparse = {x, x}};

    (void)route_unwrap(scope, &operand);
}

static void refused(void)
{
    char config[256];

    list_more();
    snprintf(config, sizeof(config), features, "fast", "true");
    reopen(config, 3);
    (void)route_hollow(scope, vector(reference, 2, 3));
}

static const struct panic {
    const char *name;
    void (*cause)(void);
} panics[] = {{"ext_no_tensor", no_tensor},
              {"ext_gated", gated},
              {"ext_condition", condition},
              {"ext_absent_backend", absent_backend},
              {"ext_unlisted", unlisted},
              {"ext_mixed_devices", mixed_devices},
              {"ext_strategies", strategies},
              {"ext_mixed_dtypes", mixed_dtypes},
              {"ext_missing_field", missing_field},
              {"ext_missing_struct", missing_struct},
              {"ext_no_such_variant", no_such_variant},
              {"ext_wrong_kind", wrong_kind},
              {"ext_refused", refused}};

/* Where plugins were searched is another place on each machine. */
static void cut_search(char *text)
{
    static const char searched[] = "\nsearched:";
    char *at = strstr(text, searched);

    if (at)
        at[sizeof(searched) - 1] = '\0';
}

START_TEST(test_routing_panics)
{
    panics[_i].cause();
    ck_assert_msg(hob_scope_error(scope, &error) != HOB_OK, "%s did not fail",
                  panics[_i].name);
    cut_search(error.message);
    golden_compare(panics[_i].name, error.message);
    hob_error_release(&error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("routing");
    TCase *tcase = tcase_create("routing");

    if (!getenv("HOB_TEST_PLUGIN_DIR")) {
        puts("skipped: HOB_TEST_PLUGIN_DIR does not say where flex is");
        return 77;
    }
    tcase_add_checked_fixture(tcase, setup, teardown);
    tcase_add_loop_test(tcase, test_routing_enum_input_runs_on_selected_backend,
                        0, EVERY);
    tcase_add_loop_test(
        tcase, test_routing_mixed_input_selects_backend_from_bare_tensor, 0,
        EVERY);
    tcase_add_test(tcase,
                   test_routing_autodiff_dispatches_to_each_concrete_backend);
    tcase_add_test(tcase, test_routing_op_without_tensors_runs_on_its_backend);
    tcase_add_loop_test(tcase, test_routing_struct_input_propagates_gradients,
                        0, 2 * (EVERY - 2));
    tcase_add_loop_test(tcase, test_routing_plain_inputs_are_constants, 0, 2);
    tcase_add_loop_test(tcase, test_routing_struct_and_scalar, 0, EVERY);
    tcase_add_test(tcase, test_routing_bare_tensor_and_struct);
    tcase_add_test(tcase, test_routing_two_structs);
    tcase_add_loop_test(tcase, test_routing_several_results, 0, EVERY);
    tcase_add_loop_test(tcase, test_routing_nested_types, 0, EVERY);
    tcase_add_loop_test(tcase, test_routing_enum_results, 0, EVERY);
    tcase_add_test(tcase, test_routing_needs_grad_flags);
    tcase_add_loop_test(tcase, test_routing_checkpointing, 0, 2);
    tcase_add_test(tcase, test_routing_gradients_of_gradients);
    tcase_add_test(tcase, test_routing_features_switch_selectors);
    tcase_add_test(tcase, test_routing_unmet_selectors_need_no_implementation);
    tcase_add_loop_test(tcase, test_routing_panics, 0,
                        sizeof(panics) / sizeof(panics[0]));
    suite_add_tcase(suite, tcase);
    return hob_check_main(suite);
}
