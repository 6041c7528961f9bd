/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that an extension brings for GPUs: in portable code, in the language
 * of one runtime, for the wrong one, and broken ones. The extension is gpu.json
 * and gpu.c.
 *
 * Families are tested with linked-in backends. What needs a GPU runs on
 * cube-vulkan:0 unless HOB_TEST_DEVICE names another; where that does not open
 * it is skipped.
 */
#include "gpu.h"
#include "gpu_ops.h"

#include "golden.h"
#include "hob_check.h"
#include "plain_backend.h"
#include "test_device.h"

#undef fail /* a macro of check.h */

#include <hob/hob.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char manifest[16384];
static hob_runtime *runtime;
static hob_scope *scope;
static hob_device *device;
static hob_error error;

static void stay_silent(void *context, hob_status status, const char *op,
                        const char *message)
{
    (void)context;
    (void)status;
    (void)op;
    (void)message;
}

/* No assertions: it is used outside of tests too. */
static int read_manifest(void)
{
    const char *root = getenv("HOB_TEST_SRCDIR");
    char path[4096];
    size_t bytes = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/ext/gpu.json", root ? root : ".");
    file = fopen(path, "r");
    if (file) {
        bytes = fread(manifest, 1, sizeof(manifest) - 1, file);
        fclose(file);
    }
    return bytes > 0 && bytes < sizeof(manifest) - 1;
}

static hob_status open_runtime(const struct hob_static_plugin *linked,
                               uint32_t count)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.on_panic = stay_silent;
    options.plugin_paths = test_device_paths(&options.plugin_path_count);
    options.exclusive = 1;
    options.static_plugins = linked;
    options.static_plugin_count = count;
    options.threads = 1;
    return hob_runtime_open(&options, &runtime, &error);
}

/* What was wrong, once. */
static const char *failure(void)
{
    static char text[4096];

    hob_error_release(&error);
    (void)hob_scope_error(scope, &error);
    snprintf(text, sizeof(text), "%s", error.message ? error.message : "");
    hob_error_release(&error);
    hob_scope_clear_error(scope);
    return text;
}

/* ---- families, without a GPU ---- */

static struct hob_plugin twins[2];

static const struct hob_plugin *entry_of(int which)
{
    twins[which] = *plain_backends[0].entry(NULL);
    twins[which].id = which ? "twin-right" : "twin-left";
    return &twins[which];
}

static const struct hob_plugin *left_entry(const struct hob_host *host)
{
    (void)host;
    return entry_of(0);
}

static const struct hob_plugin *right_entry(const struct hob_host *host)
{
    (void)host;
    return entry_of(1);
}

#define TWIN(name, runtime)                                                    \
    "{\"manifest_version\": 1, \"id\": \"" name "\", \"version\": \"1.0.0\","  \
    " \"kind\": \"backend\","                                                  \
    " \"abi\": {\"major\": 0, \"required_minor\": 2, \"built_minor\": 2},"     \
    " \"backend\": {\"selector\": \"" name "\", \"family\": \"twin\","         \
    " \"runtime\": \"" runtime "\"}}"

static void twins_setup(void)
{
    const struct hob_static_plugin linked[] = {
        {manifest, gpu_entry},
        {TWIN("twin-left", "left"), left_entry},
        {TWIN("twin-right", "right"), right_entry}};

    ck_assert(read_manifest());
    ck_assert_hob_ok(open_runtime(linked, 3));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(device);
    device = NULL;
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
}

static float first_of(hob_tensor *tensor)
{
    float value = 0;

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    ck_assert_hob_ok(hob_read_f32(tensor, &value, 1, &error));
    return value;
}

START_TEST(test_gpu_family_selectors)
{
    const char *const specs[] = {"twin-left", "twin-right"};
    const float zero = 0;

    ck_assert_hob_ok(hob_device_open(runtime, specs[_i], &device, &error));
    /* The runtime's own kernel comes before its family's. */
    ck_assert_float_eq(
        first_of(gpu_place(scope, hob_from_f32(scope, device, &zero, NULL, 0))),
        _i ? 1 : 2);
    (void)gpu_on_left(scope, hob_from_f32(scope, device, &zero, NULL, 0));
    if (_i)
        golden_compare("ext_other_runtime", failure());
    else
        ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

START_TEST(test_gpu_family_on_another_backend)
{
    const float zero = 0;

    ck_assert_hob_ok(hob_device_open(runtime, "flex", &device, &error));
    (void)gpu_place(scope, hob_from_f32(scope, device, &zero, NULL, 0));
    golden_compare("ext_other_family", failure());
}
END_TEST

/* ---- on a GPU ---- */

static int open_device(void)
{
    const struct hob_static_plugin linked[] = {{manifest, gpu_entry}};

    if (!getenv("HOB_TEST_DEVICE"))
        setenv("HOB_TEST_DEVICE", "cube-vulkan:0", 1);
    if (strncmp(test_device(), "cube-", 5) != 0) {
        printf("skipped: %s is no GPU\n", test_device());
        return 0;
    }
    if (!read_manifest() || open_runtime(linked, 1) ||
        hob_device_open(runtime, test_device(), &device, &error)) {
        printf("skipped: %s\n", error.message ? error.message : "no device");
        return 0;
    }
    scope = hob_scope_open(runtime);
    return 1;
}

static void setup(void)
{
    ck_assert(open_device());
}

static int is_cuda(void)
{
    return strncmp(test_device(), "cube-cuda", 9) == 0;
}

/* Multiples of 1/4 that every dtype has. */
static hob_tensor *ramp(int64_t count)
{
    float *values = malloc((size_t)(count + 1) * sizeof(*values));
    hob_tensor *x;

    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(i % 61 - 30) / 4;
    x = hob_from_f32(scope, device, values, &count, 1);
    free(values);
    return x;
}

static void check_ramp(hob_tensor *tensor, int64_t count, double factor)
{
    double *got = malloc((size_t)(count + 1) * sizeof(*got));

    ck_assert_hob_ok(hob_scope_error(scope, &error));
    ck_assert_int_eq(hob_tensor_count(tensor), count);
    ck_assert_hob_ok(hob_read_f64(tensor, got, count, &error));
    for (int64_t i = 0; i < count; i++)
        ck_assert_double_eq(got[i], factor * (double)(i % 61 - 30) / 4);
    free(got);
}

static const int64_t counts[] = {0, 1, 257, 100003};
enum { COUNTS = sizeof(counts) / sizeof(counts[0]) };

START_TEST(test_gpu_portable)
{
    static const hob_dtype dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F16,
                                       HOB_DTYPE_BF16, HOB_DTYPE_F64};

    for (size_t d = 0; d < sizeof(dtypes) / sizeof(dtypes[0]); d++)
        check_ramp(
            gpu_scale(scope, hob_cast(scope, ramp(counts[_i]), dtypes[d]), 0.5),
            counts[_i], 0.5);
    /* A view is made contiguous first. */
    check_ramp(
        hob_flip(scope,
                 gpu_scale(scope,
                           hob_flip(scope, ramp(counts[_i]), (int64_t[]){0}, 1),
                           3),
                 (int64_t[]){0}, 1),
        counts[_i], 3);
}
END_TEST

START_TEST(test_gpu_sums)
{
    enum { ROWS = 5, COLUMNS = 61 * 3 };
    hob_tensor *x =
        hob_reshape(scope, ramp(ROWS * COLUMNS), (int64_t[]){ROWS, COLUMNS}, 2);
    double got[ROWS];

    /* A row is three times -7.5 .. 7.5. */
    ck_assert_hob_ok(
        hob_read_f64(gpu_sums(scope, hob_add_scalar(scope, x, hob_f64(1))), got,
                     ROWS, &error));
    for (int i = 0; i < ROWS; i++)
        ck_assert_double_eq(got[i], COLUMNS);
}
END_TEST

START_TEST(test_gpu_own_language)
{
    check_ramp(gpu_twice(scope, ramp(counts[_i])), counts[_i], 2);
    if (!is_cuda())
        check_ramp(gpu_words(scope, ramp(counts[_i])), counts[_i], 2);
}
END_TEST

/* The op's kernel is of the other runtime: by what the op lists, and by what
 * the extension launches. */
START_TEST(test_gpu_other_runtime)
{
    (void)gpu_foreign(scope, ramp(3));
    golden_compare(is_cuda() ? "gpu_glsl_on_cuda" : "gpu_cuda_on_vulkan",
                   failure());
    if (is_cuda())
        (void)gpu_words(scope, ramp(3));
    else
        (void)gpu_on_cuda(scope, ramp(3));
    golden_compare(is_cuda() ? "gpu_vulkan_op_on_cuda"
                             : "gpu_cuda_op_on_vulkan",
                   failure());
}
END_TEST

static const char *const broken[GPU_BROKEN_COUNT] = {
    [GPU_DOES_NOT_COMPILE] = "no_such_word",
    [GPU_ONE_BUFFER] = "kernel gpu_scale has 2 buffers, the launch 1",
    [GPU_NO_NUMBER] = "kernel gpu_scale has 2 parameters, the launch 2, and no "
                      "list of them",
    [GPU_FLOAT_FOR_INTEGER] = "parameter count of kernel gpu_scale is an "
                              "integer, the number a float",
    [GPU_TOO_LARGE] = "parameter count of kernel gpu_scale has a type that the "
                      "number does not fit",
    [GPU_ARRAY] = "parameter alpha of kernel gpu_scale is one number, not an "
                  "array",
    [GPU_BAD_WIDTH] = "buffer x of kernel gpu_scale has vectors of 3 elements",
    [GPU_BAD_GROUP] = "kernel gpu_scale wants groups of 1048576 invocations",
    [GPU_BAD_NAME] = "kernel gpu_bad_name: a buffer has no C name: \"x y\"",
    [GPU_BAD_SPIRV] = "kernel gpu_bad_spirv: the code is no SPIR-V",
    [GPU_NO_KERNEL] = "a launch without a kernel",
    [GPU_CHANGED] = "kernel gpu_scale: the description is another one than "
                    "before",
};

START_TEST(test_gpu_broken)
{
    const char *text;

    (void)gpu_broken(scope, ramp(3), _i);
    text = failure();
    ck_assert_msg(strncmp(text, "gpu.broken", 10) == 0 &&
                      strstr(text, broken[_i]),
                  "%s", text);
    if (_i == GPU_DOES_NOT_COMPILE) /* with the compiler's line */
        ck_assert_msg(strstr(text, "kernel gpu_does_not_compile") &&
                          (strstr(text, ":3:") || strstr(text, "(3)")),
                      "%s", text);
    /* The device goes on. */
    check_ramp(gpu_scale(scope, ramp(3), 2), 3, 2);
}
END_TEST

static Suite *gpu_suite(int has_device)
{
    Suite *suite = suite_create("gpu");
    TCase *tc = tcase_create("families");

    tcase_add_checked_fixture(tc, twins_setup, teardown);
    tcase_add_loop_test(tc, test_gpu_family_selectors, 0, 2);
    tcase_add_test(tc, test_gpu_family_on_another_backend);
    suite_add_tcase(suite, tc);
    if (!has_device)
        return suite;
    tc = tcase_create("device");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, test_gpu_portable, 0, COUNTS);
    tcase_add_test(tc, test_gpu_sums);
    tcase_add_loop_test(tc, test_gpu_own_language, 0, COUNTS);
    tcase_add_test(tc, test_gpu_other_runtime);
    tcase_add_loop_test(tc, test_gpu_broken, 0, GPU_BROKEN_COUNT);
    suite_add_tcase(suite, tc);
    return suite;
}

/* In a process of its own: drivers start threads. */
static int has_device(void)
{
    int status = 0;
    pid_t child;

    if (HOB_BUILD_SANITIZERS) {
        printf("skipped: drivers are not run in a sanitized process\n");
        return 0;
    }
    fflush(stdout);
    child = fork();
    if (child == 0) {
        const int is_open = open_device();

        fflush(stdout);
        _exit(!is_open);
    }
    return child > 0 && waitpid(child, &status, 0) == child &&
           WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void)
{
    return hob_check_main(gpu_suite(has_device()));
}
