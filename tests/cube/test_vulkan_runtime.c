/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Vulkan runtime on the first device that there is, through the same table
 * that kernels use: compiling, launching, order, copies, memory. Skipped where
 * no driver is found, and in a sanitized build, which drivers do not bear.
 */
#include "fake_host.h"
#include "hob_check.h"

#include <cube-vulkan/device.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fake_host host;
static struct cvk_instance *instance;
static struct cube_device *device;
static const struct cube_runtime *runtime;

static void open_instance(void)
{
    fake_host_init(&host, 1);
    instance = cvk_instance_new(&host.table);
    instance->compiler_path = getenv("HOB_TEST_GLSLANG");
}

static void setup(void)
{
    void *opened = NULL;
    char *message = NULL;

    open_instance();
    ck_assert_ptr_nonnull(instance);
    ck_assert_msg(!cvk_device_open(instance, 0, getenv("HOB_TEST_OPTIONS"),
                                   &opened, &message),
                  "%s", message);
    device = opened;
    runtime = device->runtime;
}

static void teardown(void)
{
    cvk_device_close(device);
    cvk_instance_free(instance);
    ck_assert_uint_eq(host.live_blocks, 0);
}

/* ---- kernels ---- */

#define PRELUDE                                                                \
    "#version 460\n"                                                           \
    "#extension GL_EXT_buffer_reference : require\n"                           \
    "layout(local_size_x = 64) in;\n"                                          \
    "layout(buffer_reference, std430, buffer_reference_align = 4) "            \
    "buffer floats { float at[]; };\n"

struct add_params {
    uint64_t out, a, b;
    int32_t count;
    float scale;
};

static const char add_text[] =
    PRELUDE "layout(push_constant) uniform params {\n"
            "    floats to; floats a; floats b; int count; float scale;\n"
            "};\n"
            "void main() {\n"
            "    for (uint i = gl_GlobalInvocationID.x; i < count;\n"
            "         i += gl_NumWorkGroups.x * 64)\n"
            "        to.at[i] = a.at[i] + scale * b.at[i];\n"
            "}\n";

/* The same with its parameters in memory. */
static const char far_text[] =
    PRELUDE "layout(buffer_reference, std430) buffer block {\n"
            "    floats to; floats a; floats b; int count; float scale;\n"
            "};\n"
            "layout(push_constant) uniform params { block far; };\n"
            "void main() {\n"
            "    for (uint i = gl_GlobalInvocationID.x; i < far.count;\n"
            "         i += gl_NumWorkGroups.x * 64)\n"
            "        far.to.at[i] = far.a.at[i] + far.scale * far.b.at[i];\n"
            "}\n";

static struct cube_source source_of(const char *name, const char *text,
                                    uint32_t param_bytes)
{
    struct cube_source source = {.name = name,
                                 .text = text,
                                 .bytes = strlen(text),
                                 .group_size = 64,
                                 .param_bytes = param_bytes};

    return source;
}

static void *make_kernel(const struct cube_source *source)
{
    void *binary = NULL, *kernel = NULL;
    char *message = NULL;
    uint64_t bytes = 0;

    ck_assert_msg(!runtime->compile(device, source, &binary, &bytes, &message),
                  "%s", message);
    ck_assert_msg(
        !runtime->kernel_open(device, source, binary, bytes, &kernel, &message),
        "%s", message);
    host.table.mem_free(&host.table, binary);
    return kernel;
}

/* to = a + scale * b, of COUNT floats. */
static hob_status launch_add(void *kernel, void *to, void *a, void *b,
                             int32_t count, float scale, uint32_t param_bytes,
                             char **out_message)
{
    struct cube_range ranges[] = {{to, 4u * (uint32_t)count, 1, 0},
                                  {a, 4u * (uint32_t)count, 0, 0},
                                  {b, 4u * (uint32_t)count, 0, 0}};
    struct {
        struct add_params params;
        char rest[1024];
    } block;
    struct cube_launch launch = {.op_name = "add",
                                 .groups = 7,
                                 .range_count = 3,
                                 .ranges = ranges,
                                 .params = &block,
                                 .param_bytes = param_bytes};

    memset(&block, 0, sizeof(block));
    block.params = (struct add_params){(uintptr_t)to, (uintptr_t)a,
                                       (uintptr_t)b, count, scale};
    return runtime->launch(device, kernel, &launch, out_message);
}

static void *take(uint64_t bytes)
{
    void *data = NULL;

    ck_assert_int_eq(runtime->alloc(device, bytes, &data), HOB_OK);
    ck_assert_uint_eq((uintptr_t)data % 64, 0);
    return data;
}

static void *take_floats(int32_t count, float first, float step)
{
    float *values = malloc(4u * (size_t)count);
    void *data = take(4u * (uint64_t)count);

    for (int32_t i = 0; i < count; i++)
        values[i] = first + step * (float)i;
    ck_assert_int_eq(
        runtime->upload(device, data, values, 4u * (uint64_t)count), HOB_OK);
    free(values);
    return data;
}

/* check writes each assertion to a file, so not one an element. */
static void expect_floats(const float *got, int count, float first, float step,
                          int period)
{
    int wrong = -1;

    for (int i = count; i-- > 0;)
        if (got[i] != first + step * (float)(i % period))
            wrong = i;
    ck_assert_msg(wrong < 0, "element %d of %d is %g", wrong, count,
                  (double)got[wrong < 0 ? 0 : wrong]);
}

START_TEST(test_runtime_adds)
{
    enum { COUNT = 100003 };
    struct cube_source source =
        source_of("add", add_text, sizeof(struct add_params));
    void *kernel = make_kernel(&source);
    void *a = take_floats(COUNT, 1, 1), *b = take_floats(COUNT, 5, -2);
    void *to = take(4 * COUNT);
    float *got = malloc(4 * COUNT);
    char *message = NULL;

    ck_assert_msg(!launch_add(kernel, to, a, b, COUNT, 3,
                              sizeof(struct add_params), &message),
                  "%s", message);
    ck_assert_int_eq(runtime->download(device, got, to, 4 * COUNT), HOB_OK);
    expect_floats(got, COUNT, 16, -5, COUNT);
    free(got);
    runtime->free(device, a, 4 * COUNT);
    runtime->free(device, b, 4 * COUNT);
    runtime->free(device, to, 4 * COUNT);
    runtime->kernel_close(device, kernel);
}
END_TEST

/* Each launch reads what the one before it wrote, over several batches, with
 * memory that is given back and taken again in between. */
START_TEST(test_runtime_keeps_order)
{
    enum { COUNT = 5000, LAUNCHES = 1000 };
    const char *text = _i ? far_text : add_text;
    const uint32_t param_bytes = _i ? 600 : sizeof(struct add_params);
    struct cube_source source = source_of("add", text, param_bytes);
    void *kernel = make_kernel(&source);
    void *x = take_floats(COUNT, 0, 0), *one = take_floats(COUNT, 1, 0);
    float got[COUNT];

    for (int i = 0; i < LAUNCHES; i++) {
        void *next = take(4 * COUNT);

        ck_assert_int_eq(
            launch_add(kernel, next, x, one, COUNT, 1, param_bytes, NULL),
            HOB_OK);
        runtime->free(device, x, 4 * COUNT);
        x = next;
    }
    ck_assert_int_eq(runtime->download(device, got, x, 4 * COUNT), HOB_OK);
    expect_floats(got, COUNT, LAUNCHES, 0, COUNT);
    runtime->free(device, x, 4 * COUNT);
    runtime->free(device, one, 4 * COUNT);
    runtime->kernel_close(device, kernel);
}
END_TEST

/* Uploads lie in order with launches, whatever their size and place. */
START_TEST(test_runtime_uploads_in_order)
{
    static const int32_t counts[] = {1, 3, 1000, 17000, 5000001};
    const int32_t count = counts[_i];
    struct cube_source source =
        source_of("add", add_text, sizeof(struct add_params));
    void *kernel = make_kernel(&source);
    float *x = take_floats(count + 8, 1, 0), *y = take_floats(count, 0, 0);
    float *values = malloc(4u * (size_t)(count + 8));

    for (int i = 0; i < count + 8; i++)
        values[i] = (float)(i % 1000) + 0.5f;
    /* y = x + 0 y, then x is written anew, then y = y + 2 x. */
    ck_assert_int_eq(launch_add(kernel, y, x + 1, y, count, 0,
                                sizeof(struct add_params), NULL),
                     HOB_OK);
    ck_assert_int_eq(
        runtime->upload(device, x + 1, values, 4u * (uint64_t)count), HOB_OK);
    ck_assert_int_eq(launch_add(kernel, y, y, x + 1, count, 2,
                                sizeof(struct add_params), NULL),
                     HOB_OK);
    memset(values, 0, 4u * (size_t)count);
    ck_assert_int_eq(runtime->download(device, values, y, 4u * (uint64_t)count),
                     HOB_OK);
    expect_floats(values, count, 2, 2, 1000);
    ck_assert_int_eq(
        runtime->download(device, values, x, 4u * (uint64_t)(count + 8)),
        HOB_OK);
    ck_assert_float_eq(values[0], 1);
    ck_assert_float_eq(values[count + 1], 1);
    free(values);
    runtime->free(device, x, 4u * (uint64_t)(count + 8));
    runtime->free(device, y, 4u * (uint64_t)count);
    runtime->kernel_close(device, kernel);
}
END_TEST

START_TEST(test_runtime_reports_errors_of_kernels)
{
    struct cube_source source =
        source_of("bad", "#version 460\nvoid main() {", 0);
    void *binary = &source;
    char *message = NULL;
    uint64_t bytes = 1;

    ck_assert_int_eq(
        runtime->compile(device, &source, &binary, &bytes, &message),
        HOB_ERR_INTERNAL);
    ck_assert_ptr_null(binary);
    ck_assert_uint_eq(bytes, 0);
    ck_assert_msg(message && strstr(message, "kernel bad cannot be compiled") &&
                      strstr(message, "syntax error"),
                  "%s", message);
    host.table.mem_free(&host.table, message);
}
END_TEST

START_TEST(test_runtime_sizes_of_launches)
{
    struct cube_source source =
        source_of("add", add_text, sizeof(struct add_params));
    void *kernel = make_kernel(&source);
    float *x = take_floats(64, 1, 0);
    struct add_params params = {(uintptr_t)x, (uintptr_t)x, (uintptr_t)x, 64,
                                1};
    struct cube_range range = {x, 256, 1, 0};
    struct cube_launch launch = {.op_name = "add",
                                 .range_count = 1,
                                 .ranges = &range,
                                 .params = &params,
                                 .param_bytes = sizeof(params)};
    char *message = NULL;
    float got[64];

    ck_assert_int_eq(runtime->launch(device, kernel, &launch, &message),
                     HOB_OK);
    launch.groups = device->limits.groups;
    ck_assert_uint_ge(launch.groups, 65535);
    if (launch.groups == 65535) /* else it takes long */
        ck_assert_int_eq(runtime->launch(device, kernel, &launch, &message),
                         HOB_OK);
    else
        params.count = 64;
    launch.groups = device->limits.groups + 1;
    ck_assert_int_eq(runtime->launch(device, kernel, &launch, &message),
                     HOB_ERR_ARGUMENT);
    ck_assert_msg(message && strstr(message, "groups are more than the"), "%s",
                  message);
    host.table.mem_free(&host.table, message);
    ck_assert_int_eq(runtime->download(device, got, x, 256), HOB_OK);
    ck_assert_float_ge(got[0], 1);
    runtime->free(device, x, 256);
    runtime->kernel_close(device, kernel);
}
END_TEST

START_TEST(test_runtime_refuses_what_is_not_its_own)
{
    char bytes[16];
    void *data = take(16);

    ck_assert_int_eq(runtime->upload(device, bytes, bytes, 16),
                     HOB_ERR_ARGUMENT);
    ck_assert_int_eq(runtime->download(device, bytes, NULL, 16),
                     HOB_ERR_ARGUMENT);
    ck_assert_int_eq(runtime->upload(device, data, bytes, UINT64_C(1) << 40),
                     HOB_ERR_ARGUMENT);
    ck_assert_int_eq(runtime->upload(device, bytes, bytes, 0), HOB_OK);
    runtime->free(device, data, 16);
    runtime->free(device, NULL, 16);
}
END_TEST

START_TEST(test_runtime_refuses_too_much_memory)
{
    void *data = &data;
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;

    ck_assert_int_eq(
        runtime->alloc(device, device->limits.alloc_bytes + 1, &data),
        HOB_ERR_MEMORY);
    ck_assert_ptr_null(data);
    ck_assert_int_eq(runtime->alloc(device, UINT64_MAX, &data), HOB_ERR_MEMORY);
    cvk_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.in_use_bytes, 0);
}
END_TEST

/* ---- threads ---- */

struct worker {
    pthread_t thread;
    void *kernel;
    float start;
    int is_right;
};

static void *work(void *context)
{
    enum { COUNT = 3000, LAUNCHES = 150 };
    struct worker *worker = context;
    float values[COUNT];
    void *x, *one;
    int is_right = 1;

    if (runtime->alloc(device, sizeof(values), &x) ||
        runtime->alloc(device, sizeof(values), &one))
        return NULL;
    for (int i = 0; i < COUNT; i++)
        values[i] = worker->start;
    is_right &= !runtime->upload(device, x, values, sizeof(values));
    for (int i = 0; i < COUNT; i++)
        values[i] = 1;
    is_right &= !runtime->upload(device, one, values, sizeof(values));
    for (int i = 0; i < LAUNCHES; i++) {
        void *next = NULL;

        is_right &= !runtime->alloc(device, sizeof(values), &next);
        is_right &= !launch_add(worker->kernel, next, x, one, COUNT, 1,
                                sizeof(struct add_params), NULL);
        runtime->free(device, x, sizeof(values));
        x = next;
    }
    is_right &= !runtime->download(device, values, x, sizeof(values));
    for (int i = 0; i < COUNT; i++)
        is_right &= values[i] == worker->start + LAUNCHES;
    runtime->free(device, x, sizeof(values));
    runtime->free(device, one, sizeof(values));
    worker->is_right = is_right;
    return NULL;
}

START_TEST(test_runtime_is_for_several_threads)
{
    enum { WORKERS = 4 };
    struct cube_source source =
        source_of("add", add_text, sizeof(struct add_params));
    struct worker workers[WORKERS];
    void *kernel = make_kernel(&source);

    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.kernel = kernel, .start = 1000.0f * i};
        ck_assert_int_eq(
            pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        ck_assert_int_eq(workers[i].is_right, 1);
    }
    runtime->kernel_close(device, kernel);
}
END_TEST

/* ---- the process' one world ---- */

/* As the core does it, for one key. */
static void *once_a_process(const char *key, void *(*make)(void))
{
    static void *made;

    (void)key;
    if (!made)
        made = make();
    return made;
}

/* Each opening of a driver costs a process what closing does not give back, so
 * there is one, whatever comes and goes. A child opens its own. */
START_TEST(test_drivers_stay_open)
{
    struct fake_host other;
    struct cvk_instance *instances[2];
    const struct cvk_world *world;
    int status = 0;
    pid_t child;

    fake_host_init(&other, 1);
    other.table.process_shared = once_a_process;
    instances[0] = cvk_instance_new(&other.table);
    world = cvk_instance_world(instances[0], 0);
    ck_assert_ptr_nonnull(world);
    ck_assert_uint_ge(world->count, 1);
    cvk_instance_free(instances[0]);
    for (int i = 0; i < 2; i++) {
        instances[i] = cvk_instance_new(&other.table);
        ck_assert_ptr_eq(cvk_instance_world(instances[i], 0), world);
    }
    child = fork();
    if (child == 0) {
        struct cvk_instance *mine = cvk_instance_new(&other.table);

        _exit(cvk_instance_world(mine, 0) == world);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cvk_instance_free(instances[0]);
    cvk_instance_free(instances[1]);
    ck_assert_uint_eq(other.live_blocks, 0);
}
END_TEST

/* ---- is there a device? ---- */

/* In a process of its own: drivers start threads. */
static int has_device(void)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0) {
        struct hob_device_info info;
        uint32_t count = 0;

        open_instance();
        if (cvk_device_count(instance, &count) || !count) {
            printf("skipped: %s\n", cvk_instance_world(instance, 0)->problem);
            fflush(stdout);
            _exit(1);
        }
        cvk_device_info(instance, 0, &info);
        printf("on %s\n", info.name);
        fflush(stdout);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child &&
           WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void)
{
    Suite *suite;
    TCase *tc, *order;
    SRunner *runner;
    int failed;

    if (HOB_BUILD_SANITIZERS) {
        printf("skipped: drivers are not run in a sanitized process\n");
        return 77;
    }
    if (!has_device())
        return 77;
    suite = suite_create("vulkan runtime");
    tc = tcase_create("runtime");
    order = tcase_create("order");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_checked_fixture(order, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_set_timeout(order, 30);
    tcase_add_test(tc, test_drivers_stay_open);
    tcase_add_test(tc, test_runtime_adds);
    tcase_add_loop_test(order, test_runtime_keeps_order, 0, 2);
    tcase_add_loop_test(tc, test_runtime_uploads_in_order, 0, 5);
    tcase_add_test(tc, test_runtime_reports_errors_of_kernels);
    tcase_add_test(tc, test_runtime_sizes_of_launches);
    tcase_add_test(tc, test_runtime_refuses_what_is_not_its_own);
    tcase_add_test(tc, test_runtime_refuses_too_much_memory);
    tcase_add_test(tc, test_runtime_is_for_several_threads);
    suite_add_tcase(suite, tc);
    suite_add_tcase(suite, order);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
