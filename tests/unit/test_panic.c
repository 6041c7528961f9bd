/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text of every panic is a golden file, tests/golden/<name>.txt, because
 * people act on it. HOB_TEST_UPDATE=1 writes the files anew: read the diff.
 */
#include "../support/golden.h"
#include "../support/hob_check.h"
#include "../support/static_plugins.h"

#include <hob/hob.h>

static hob_error error = HOB_ERROR_INIT;
static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *calc;

static void setup(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.static_plugins = test_static_plugins;
    options.static_plugin_count = test_static_plugin_count;
    options.threads = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(hob_device_open(runtime, "calc", &calc, &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(calc);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

static hob_device *open_device(const char *spec)
{
    hob_device *device = NULL;

    ck_assert_hob_ok(hob_device_open(runtime, spec, &device, &error));
    hob_device_unref(device);
    return device;
}

static hob_tensor *tensor_of(hob_device *device, hob_dtype dtype,
                             const int64_t *shape, int32_t rank)
{
    static const char zeros[4096];

    return hob_from_data(scope, device, dtype, zeros, shape, rank);
}

static hob_tensor *call_by_name(const char *name, const hob_value *args,
                                uint32_t count)
{
    uint32_t op = 0;

    ck_assert_hob_ok(hob_op_find(runtime, name, &op, &error));
    return hob_scope_host(scope)->call1(scope, op, args, count);
}

/* ---- one function a panic ---- */

static const int64_t two_three[] = {2, 3};
static const int64_t four_five[] = {4, 5};

static void unlisted_backend(void)
{
    hob_value x =
        hob_value_tensor(tensor_of(calc, HOB_DTYPE_F32, two_three, 2));

    (void)call_by_name("t.only_other", &x, 1);
}

static void no_routing_tensor(void)
{
    hob_value args[] = {hob_none(), hob_i64(3)};

    (void)call_by_name("t.make", args, 2);
}

static void mixed_bases(void)
{
    hob_tensor *a = tensor_of(calc, HOB_DTYPE_F32, two_three, 2);
    hob_tensor *b =
        tensor_of(open_device("other"), HOB_DTYPE_F32, two_three, 2);

    (void)hob_add(scope, a, b);
}

static void conflicting_options(void)
{
    hob_device *a = open_device("idle{mode=a}(calc)");
    hob_device *b = open_device("idle{mode=b}(calc)");

    (void)hob_add(scope, tensor_of(a, HOB_DTYPE_F32, two_three, 2),
                  tensor_of(b, HOB_DTYPE_F32, two_three, 2));
}

static void mixed_dtypes(void)
{
    (void)hob_add(scope, tensor_of(calc, HOB_DTYPE_F32, two_three, 2),
                  tensor_of(calc, HOB_DTYPE_I32, two_three, 2));
}

static void wrong_kind(void)
{
    (void)hob_exp(scope, tensor_of(calc, HOB_DTYPE_I32, two_three, 2));
}

static void bad_shapes(void)
{
    (void)hob_add(scope, tensor_of(calc, HOB_DTYPE_F32, two_three, 2),
                  tensor_of(calc, HOB_DTYPE_F32, four_five, 2));
}

static void bad_matmul(void)
{
    (void)hob_matmul(scope, tensor_of(calc, HOB_DTYPE_F32, two_three, 2),
                     tensor_of(calc, HOB_DTYPE_F32, four_five, 2));
}

static void unsupported_dtype(void)
{
    (void)hob_add(scope, tensor_of(calc, HOB_DTYPE_F64, two_three, 2),
                  tensor_of(calc, HOB_DTYPE_F64, two_three, 2));
}

static void missing_kernel(void)
{
    (void)hob_exp(scope, tensor_of(calc, HOB_DTYPE_F32, two_three, 2));
}

static void no_rule(void)
{
    (void)hob_exp(scope, tensor_of(open_device("greedy(calc)"), HOB_DTYPE_F32,
                                   two_three, 2));
}

static void moved_tensor(void)
{
    hob_tensor *x = tensor_of(calc, HOB_DTYPE_F32, two_three, 2);
    hob_tensor *y = tensor_of(calc, HOB_DTYPE_F32, two_three, 2);

    (void)hob_add(scope, hob_move(scope, x), y);
    (void)hob_add(scope, y, x);
}

static void scalar_range(void)
{
    (void)hob_add_scalar(scope, tensor_of(calc, HOB_DTYPE_U8, two_three, 2),
                         hob_i64(300));
}

static void missing_argument(void)
{
    (void)hob_add(scope, tensor_of(calc, HOB_DTYPE_F32, two_three, 2), NULL);
}

static void unknown_op(void)
{
    (void)hob_scope_host(scope)->call1(scope, 60000, NULL, 0);
}

static void too_large(void)
{
    int64_t shape[] = {INT64_C(1) << 40, INT64_C(1) << 40};

    (void)hob_ones(scope, shape, 2, calc, HOB_DTYPE_F32);
}

/* A device that is not there is an error of hob_device_open(), not a panic;
 * its text is what people read all the same. */
static void refused_plugin(void)
{
    hob_error why = HOB_ERROR_INIT;
    hob_device *device = NULL;

    ck_assert_int_ne(hob_device_open(runtime, "broken", &device, &why), HOB_OK);
    (void)hob_scope_host(scope)->scope_fail(scope, why.status, "%s",
                                            why.message);
    hob_error_release(&why);
}

static void missing_body(void)
{
    hob_value x =
        hob_value_tensor(tensor_of(calc, HOB_DTYPE_F32, two_three, 2));

    (void)call_by_name("hollow.op", &x, 1);
}

static const struct panic {
    const char *name;
    void (*cause)(void);
} panics[] = {{"unlisted_backend", unlisted_backend},
              {"no_routing_tensor", no_routing_tensor},
              {"mixed_bases", mixed_bases},
              {"conflicting_options", conflicting_options},
              {"mixed_dtypes", mixed_dtypes},
              {"wrong_kind", wrong_kind},
              {"bad_shapes", bad_shapes},
              {"bad_matmul", bad_matmul},
              {"unsupported_dtype", unsupported_dtype},
              {"missing_kernel", missing_kernel},
              {"no_rule", no_rule},
              {"moved_tensor", moved_tensor},
              {"scalar_range", scalar_range},
              {"missing_argument", missing_argument},
              {"unknown_op", unknown_op},
              {"refused_plugin", refused_plugin},
              {"missing_body", missing_body},
              {"too_large", too_large}};

START_TEST(test_panic_says_what_the_golden_file_says)
{
    panics[_i].cause();
    ck_assert_msg(hob_scope_error(scope, &error) != HOB_OK, "%s did not fail",
                  panics[_i].name);
    golden_compare(panics[_i].name, error.message);
    hob_error_release(&error);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("panic");
    TCase *tc = tcase_create("panic");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_panic_says_what_the_golden_file_says, 0,
                        sizeof(panics) / sizeof(panics[0]));
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
