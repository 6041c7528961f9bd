/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels for ops that somebody else declares: which of several serves, and
 * what hob_runtime_op_support() says of them. Each kernel writes a number of
 * its own.
 */
#include "../support/hob_check.h"
#include "../support/static_plugins.h"

#include <hob/ext/plugin.h>
#include <hob/hob.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { HOME = 1, NEAR = 2, WIDE = 3, BODY = 14 }; /* the body doubles 7 */

static hob_error error = HOB_ERROR_INIT;
static hob_runtime *runtime;

/* ---- the extensions ---- */

static hob_status write_number(struct hob_call *call, float number)
{
    *(float *)hob_ret_view(call, 0)->data = number;
    return HOB_OK;
}

static hob_status home_kernel(void *device, struct hob_call *call)
{
    (void)device;
    return write_number(call, HOME);
}

static hob_status near_kernel(void *device, struct hob_call *call)
{
    (void)device;
    return write_number(call, NEAR);
}

static hob_status wide_kernel(void *device, struct hob_call *call)
{
    (void)device;
    return write_number(call, WIDE);
}

static hob_status body(hob_scope *inner, const struct hob_call *call,
                       hob_tensor **out)
{
    hob_tensor *x = call->args[0].u.tensor;

    out[0] = hob_add(inner, x, x);
    return hob_scope_host(inner)->scope_status(inner);
}

#define X_TO_X "(x: Float) -> x"
#define ADD "(lhs: Num, rhs: Num) -> lhs"
#define TWO "(x: Float, y: Float) -> x"

static const struct hob_entry home_f = {
    .op = "home.f", .signature = X_TO_X, .execute = home_kernel};
static const struct hob_entry near_f = {
    .op = "home.f", .signature = X_TO_X, .execute = near_kernel};
static const struct hob_entry near_g = {
    .op = "home.g", .signature = X_TO_X, .execute = near_kernel};
static const struct hob_entry near_add = {
    .op = "add", .signature = ADD, .execute = near_kernel};
static const struct hob_entry near_h = {
    .op = "home.h", .signature = TWO, .execute = near_kernel};
static const struct hob_entry wide_f = {
    .op = "home.f", .signature = X_TO_X, .execute = wide_kernel};
static const struct hob_entry wide_g = {
    .op = "home.g", .signature = X_TO_X, .execute = wide_kernel};

static const struct hob_op_impl impls[] = {
    {.selector = "calc", .entry = &home_f},
    {.selector = "calc", .entry = &near_f},
    {.selector = "calc", .entry = &near_g},
    {.selector = "calc", .entry = &near_add},
    {.selector = "calc", .entry = &near_h},
    {.selector = "*", .entry = &wide_f},
    {.selector = "*", .entry = &wide_g}};

static const struct hob_extension_op home_ops[] = {
    {.name = "home.f",
     .signature = X_TO_X,
     .body = body,
     .impls = &impls[0],
     .impl_count = 1},
    {.name = "home.g", .signature = X_TO_X, .body = body},
    {.name = "home.h", .signature = X_TO_X, .body = body}};
static const struct hob_extension_op near_ops[] = {
    {.name = "home.f",
     .signature = X_TO_X,
     .impls = &impls[1],
     .impl_count = 1},
    {.name = "home.g",
     .signature = X_TO_X,
     .impls = &impls[2],
     .impl_count = 1},
    {.name = "add", .signature = ADD, .impls = &impls[3], .impl_count = 1},
    {.name = "home.h", .signature = TWO, .impls = &impls[4], .impl_count = 1}};
static const struct hob_extension_op wide_ops[] = {{.name = "home.f",
                                                    .signature = X_TO_X,
                                                    .impls = &impls[5],
                                                    .impl_count = 1},
                                                   {.name = "home.g",
                                                    .signature = X_TO_X,
                                                    .impls = &impls[6],
                                                    .impl_count = 1}};

static const struct hob_extension home_table = {HOB_EXTENSION_INIT_HEAD,
                                                .op_count = 3, .ops = home_ops};
static const struct hob_extension near_table = {
    HOB_EXTENSION_INIT_HEAD, .implements_count = 4, .implements = near_ops};
static const struct hob_extension wide_table = {
    HOB_EXTENSION_INIT_HEAD, .implements_count = 2, .implements = wide_ops};

static const struct hob_plugin home = {HOB_PLUGIN_INIT_HEAD, .id = "home",
                                       .version = "1.0.0",
                                       .extension = &home_table};
static const struct hob_plugin near = {HOB_PLUGIN_INIT_HEAD, .id = "near",
                                       .version = "1.0.0",
                                       .extension = &near_table};
static const struct hob_plugin wide = {HOB_PLUGIN_INIT_HEAD, .id = "wide",
                                       .version = "1.0.0",
                                       .extension = &wide_table};

static const struct hob_plugin *home_entry(const struct hob_host *host)
{
    (void)host;
    return &home;
}

static const struct hob_plugin *near_entry(const struct hob_host *host)
{
    (void)host;
    return &near;
}

static const struct hob_plugin *wide_entry(const struct hob_host *host)
{
    (void)host;
    return &wide;
}

#define HEAD(id)                                                               \
    "{\"manifest_version\":1,\"id\":\"" id "\",\"version\":\"1.0.0\","         \
    "\"kind\":\"extension\",\"abi\":{\"major\":0,\"required_minor\":2,"        \
    "\"built_minor\":2},\"namespace\":\"" id "\","
#define OP(name)                                                               \
    "{\"op\":\"" name "\",\"signature\":\"" X_TO_X "\",\"infer\":\"same\","    \
    "\"body\":true,\"backends\":[\"*\"]}"
#define IMPL(op, selector, signature)                                          \
    "{\"op\":\"" op "\",\"selector\":\"" selector                              \
    "\",\"signature\":\"" signature "\"}"

static const struct hob_static_plugin extensions[] = {
    {HEAD("home") "\"ops\":[" OP("f") "," OP("g") "," OP("h") "]}", home_entry},
    {HEAD("near") "\"ops\":[],\"implements\":[" IMPL(
         "home.f", "calc",
         X_TO_X) "," IMPL("home.g", "calc",
                          X_TO_X) "," IMPL("add", "calc",
                                           ADD) "," IMPL("home.h", "calc",
                                                         TWO) "]}",
     near_entry},
    {HEAD("wide") "\"ops\":[],\"implements\":[" IMPL(
         "home.f", "*", X_TO_X) "," IMPL("home.g", "*", X_TO_X) "]}",
     wide_entry}};

#undef IMPL
#undef OP
#undef HEAD

/* ---- the fixture ---- */

static void open_runtime(const char *config)
{
    struct hob_static_plugin all[32];
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    uint32_t count = test_static_plugin_count;

    ck_assert_uint_le(count + 3, 32);
    memcpy(all, test_static_plugins, count * sizeof(all[0]));
    memcpy(all + count, extensions, sizeof(extensions));
    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.static_plugins = all;
    options.static_plugin_count = count + 3;
    options.config = config;
    options.threads = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
}

static void teardown(void)
{
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    hob_error_release(&error);
}

/* What op NAME of 7 (and 7) gives on the device that SPEC names. */
static float call(const char *name, const char *spec)
{
    const int is_add = !strcmp(name, "add");
    const float seven = 7;
    hob_scope *scope = hob_scope_open(runtime);
    hob_device *device = NULL;
    hob_value args[2];
    hob_tensor *result = NULL;
    uint32_t op = 0, count = 0;
    float number = 0;

    ck_assert_hob_ok(hob_device_open(runtime, spec, &device, &error));
    ck_assert_hob_ok(hob_op_find(runtime, name, &op, &error));
    args[0] = hob_value_tensor(hob_from_f32(scope, device, &seven, NULL, 0));
    args[1] = args[0];
    ck_assert_int_eq(
        hob_call_op(scope, op, args, is_add ? 2 : 1, &result, 1, &count),
        HOB_OK);
    ck_assert_hob_ok(hob_read_f32(result, &number, 1, &error));
    hob_scope_close(scope);
    hob_device_unref(device);
    return number;
}

/* ---- tests ---- */

#define NEAR_FIRST "{\"plugins\":{\"near\":{\"priority\":5}}}"
#define WIDE_FIRST "{\"plugins\":{\"wide\":{\"priority\":900}}}"
#define NEAR_OFF "{\"plugins\":{\"disabled\":[\"near\"]}}"

static const struct order {
    const char *config;
    const char *op;
    const char *device;
    int expected;
} orders[] = {
    /* The declarer's own, then, among equals, a higher priority. */
    {NULL, "home.f", "calc", HOME},
    {NEAR_FIRST, "home.f", "calc", NEAR},
    /* A backend's own name goes before "*", whatever the priorities. */
    {WIDE_FIRST, "home.f", "calc", HOME},
    {WIDE_FIRST, "home.g", "calc", NEAR},
    {NULL, "home.f", "other", WIDE},
    {NEAR_OFF, "home.g", "calc", WIDE},
    /* A built-in op: the backend's own kernel, unless told otherwise. */
    {NULL, "add", "calc", 14},
    {NEAR_FIRST, "add", "calc", NEAR},
    /* One for another signature is not used. */
    {NULL, "home.h", "calc", BODY},
};

START_TEST(test_implements_order)
{
    const struct order *order = &orders[_i];

    open_runtime(order->config);
    ck_assert_float_eq(call(order->op, order->device), (float)order->expected);
}
END_TEST

/* Why it is not used is told, to people who look for it. */
START_TEST(test_implements_misfit_is_logged)
{
    char text[1024] = "";
    FILE *file = tmpfile();

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
    open_runtime(NULL);
    (void)call("home.h", "calc");
    rewind(file);
    ck_assert_uint_gt(fread(text, 1, sizeof(text) - 1, file), 0);
    fclose(file);
    ck_assert_msg(strstr(text, "SIGNATURE(home.h): the entry of near is for "
                               "\"" TWO "\", the op is \"" X_TO_X
                               "\" (y is not declared): not used"),
                  "%s", text);
}
END_TEST

struct wanted {
    const char *selector;
    const char *how; /* what was said */
};

static int find_support(void *context, const struct hob_op_support *support)
{
    struct wanted *wanted = context;

    if (strcmp(support->selector, wanted->selector) != 0)
        return 0;
    wanted->how = support->how;
    return 1;
}

static const struct told {
    const char *op;
    const char *selector;
    const char *how;
} tolds[] = {
    {"home.f", "calc", "kernel"},  {"home.g", "calc", "kernel"},
    {"home.f", "other", "kernel"}, {"home.h", "other", "body"},
    {"home.h", "calc", "body"},    {"reshape", "calc", "view"},
    {"add", "idle", "passes on"},  {"home.f", "idle", "passes on"},
    {"home.f", "greedy", "body"},
};

START_TEST(test_implements_is_told)
{
    const struct told *told = &tolds[_i];
    struct wanted wanted = {told->selector, "nothing"};
    uint32_t op = 0;

    open_runtime(NULL);
    ck_assert_hob_ok(hob_op_find(runtime, told->op, &op, &error));
    ck_assert_hob_ok(
        hob_runtime_op_support(runtime, op, find_support, &wanted, &error));
    ck_assert_str_eq(wanted.how, told->how);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("implements");
    TCase *tc = tcase_create("implements");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, test_implements_order, 0,
                        sizeof(orders) / sizeof(orders[0]));
    tcase_add_test(tc, test_implements_misfit_is_logged);
    tcase_add_loop_test(tc, test_implements_is_told, 0,
                        sizeof(tolds) / sizeof(tolds[0]));
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
