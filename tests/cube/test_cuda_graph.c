/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings of the CUDA runtime on a driver of the test's own: what becomes
 * a graph, whose memory it is, what is refused, and that failures leave nothing
 * behind.
 */
#include "cuda_fixture.h"
#include "hob_check.h"

#include <cube/cube.h>
#include <cube/flag.h>

#include <hob/ext/capture.h>

#include <pthread.h>
#include <string.h>

enum { COUNT = 3 };
enum { BYTES = COUNT * sizeof(int) };

static struct ccu_device *device;
static void *kernel, *waiting; /* the latter waits for the one before it */
static char *message;

static void *make_kernel(uint32_t waits)
{
    const struct cube_source source = {
        .name = "add",
        .text = "KERNEL",
        .bytes = 6,
        .group_size = 128,
        .param_bytes = sizeof(struct fake_params),
        .waits = waits};
    void *binary = NULL, *made = NULL;
    uint64_t bytes = 0;

    ck_assert(!ccu_runtime.compile(&device->cube, &source, &binary, &bytes,
                                   &message));
    ck_assert(!ccu_runtime.kernel_open(&device->cube, &source, binary, bytes,
                                       &made, &message));
    cuda_host.table.mem_free(&cuda_host.table, binary);
    return made;
}

static void setup(void)
{
    cuda_setup();
    device = cuda_open_device(0, NULL);
    kernel = make_kernel(0);
    waiting = make_kernel(1);
}

static void teardown(void)
{
    ccu_runtime.kernel_close(&device->cube, kernel);
    ccu_runtime.kernel_close(&device->cube, waiting);
    ccu_device_close(device);
    cuda_teardown();
}

static void begin(void)
{
    ck_assert_int_eq(ccu_capture.begin(device, &message), HOB_OK);
    ck_assert_ptr_null(message);
}

static void *end(void)
{
    void *graph = NULL;

    ck_assert_msg(!ccu_capture.end(device, 1, &graph, &message), "%s", message);
    ck_assert_ptr_nonnull(graph);
    return graph;
}

/* Nothing comes of it, and the message says WORDS. */
static void end_badly(hob_status status, const char *words)
{
    void *graph = &graph;

    ck_assert_int_eq(ccu_capture.end(device, 1, &graph, &message), status);
    ck_assert_ptr_null(graph);
    ck_assert_ptr_nonnull(message);
    ck_assert_msg(strstr(message, words) != NULL, "\"%s\" does not say \"%s\"",
                  message, words);
    cuda_host.table.mem_free(&cuda_host.table, message);
}

static void *take(uint64_t bytes)
{
    void *data = NULL;

    ck_assert_int_eq(ccu_device_alloc(device, bytes, &data), HOB_OK);
    return data;
}

static void *take_ints(const int *values)
{
    void *data = take(BYTES);

    ck_assert_int_eq(ccu_device_upload(device, data, values, BYTES), HOB_OK);
    return data;
}

static void run(void *to)
{
    ck_assert_int_eq(cuda_launch(device, kernel, to, COUNT, "add", &message),
                     HOB_OK);
}

static void check_ints(void *data, int a, int b, int c)
{
    int values[COUNT];

    ck_assert_int_eq(ccu_device_download(device, values, data, BYTES), HOB_OK);
    ck_assert_int_eq(values[0], a);
    ck_assert_int_eq(values[1], b);
    ck_assert_int_eq(values[2], c);
}

static void replay(void *graph)
{
    ck_assert_int_eq(ccu_capture.replay(device, graph, &message), HOB_OK);
}

/* ---- what becomes a graph ---- */

START_TEST(test_graph_replays)
{
    const int first[COUNT] = {1, 2, 3};
    void *x = take_ints(first), *y = take(BYTES), *graph;

    begin();
    run(x);
    ck_assert_int_eq(ccu_device_copy(device, y, device, x, BYTES), HOB_OK);
    run(x);
    graph = end();
    check_ints(x, 1, 2, 3); /* nothing was done yet */
    replay(graph);
    check_ints(x, 7, 8, 9);
    check_ints(y, 4, 5, 6);
    replay(graph);
    check_ints(y, 10, 11, 12);
    ck_assert_int_eq(fake_cuda.graph_launches, 2);
    ccu_capture.graph_free(device, graph);
    ck_assert_int_eq(fake_cuda.graphs, 0);
    ccu_device_free(device, x, BYTES);
    ccu_device_free(device, y, BYTES);
}
END_TEST

/* What is thrown away is never done. */
START_TEST(test_graph_is_dropped)
{
    const int first[COUNT] = {1, 2, 3};
    void *x = take_ints(first), *graph = x;

    begin();
    run(x);
    ccu_device_free(device, take(100), 100);
    ck_assert_int_eq(ccu_capture.end(device, 0, &graph, &message), HOB_OK);
    ck_assert_ptr_null(graph);
    check_ints(x, 1, 2, 3);
    ck_assert_int_eq(fake_cuda.graphs, 0);
    ccu_device_free(device, x, BYTES);
}
END_TEST

/* Kernels that can are told to start early, recorded or not. */
START_TEST(test_graph_overlaps)
{
    const int first[COUNT] = {1, 2, 3};
    void *x = take_ints(first), *graph;

    for (int is_recorded = 0; is_recorded < 2; is_recorded++) {
        if (is_recorded)
            begin();
        ck_assert_int_eq(
            cuda_launch(device, kernel, x, COUNT, "add", &message), HOB_OK);
        ck_assert_int_eq(
            cuda_launch(device, waiting, x, COUNT, "add", &message), HOB_OK);
        ck_assert_int_eq(fake_cuda.overlapping, is_recorded + 1);
    }
    graph = end();
    replay(graph);
    check_ints(x, 13, 14, 15);
    ccu_capture.graph_free(device, graph);
    ccu_device_free(device, x, BYTES);
}
END_TEST

/* They are started without a context, where the driver can; in the end they do
 * the same. */
START_TEST(test_graph_launches_without_a_context)
{
    static const char *const missing[] = {
        NULL, "cuLibraryLoadData", "cuLibraryGetKernel", "cuLibraryUnload"};
    const int first[COUNT] = {1, 2, 3};

    for (int i = 0; i < 4; i++) {
        struct ccu_instance *instance = ccu_instance_new(&cuda_host.table);
        struct ccu_device *here = device;
        void *opened = NULL, *x, *early;

        ck_assert_ptr_nonnull(instance);
        instance->find = fake_cuda_find;
        fake_cuda.missing = missing[i];
        ck_assert(!ccu_device_open(instance, 0, NULL, &opened, &message));
        fake_cuda.missing = NULL;
        device = opened;
        x = take_ints(first);
        early = make_kernel(1);
        fake_cuda_make_current(-1);
        fake_cuda.failing = i ? NULL : "cuCtxPushCurrent_v2";
        fake_cuda.result = 1;
        ck_assert_int_eq(cuda_launch(device, early, x, COUNT, "add", &message),
                         HOB_OK);
        fake_cuda.failing = NULL;
        check_ints(x, 4, 5, 6);
        ccu_runtime.kernel_close(&device->cube, early);
        ccu_device_free(device, x, BYTES);
        ccu_device_close(device);
        ccu_instance_free(instance);
        device = here;
    }
}
END_TEST

/* ---- memory ---- */

START_TEST(test_graph_owns_its_memory)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    void *outer = take(1000), *inner, *again, *graph, *after;

    begin();
    inner = take(1000);
    ccu_device_free(device, inner, 1000);
    again = take(900); /* of the same class of sizes */
    ck_assert_ptr_eq(again, inner);
    ccu_device_free(device, again, 900);
    /* What was there before goes where it came from. */
    ccu_device_free(device, outer, 1000);
    graph = end();
    after = take(1000);
    ck_assert_ptr_eq(after, outer);
    ccu_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.in_use_bytes, 2000);
    outer = take(1000);
    ck_assert_ptr_ne(outer, inner);
    ccu_capture.graph_free(device, graph);
    ccu_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.in_use_bytes, 2000);
    again = take(1000);
    ck_assert_ptr_eq(again, inner);
    ccu_device_free(device, again, 1000);
    ccu_device_free(device, after, 1000);
    ccu_device_free(device, outer, 1000);
}
END_TEST

START_TEST(test_graph_leaves_nothing_behind)
{
    void *left;

    begin();
    left = take(5000);
    end_badly(HOB_ERR_UNSUPPORTED, "leaves 1 tensors behind");
    /* It is a block as any other now. */
    ccu_device_free(device, left, 5000);
    ck_assert_ptr_eq(take(5000), left);
    ccu_device_free(device, left, 5000);
}
END_TEST

START_TEST(test_graph_without_memory)
{
    const uint64_t most = (uint64_t)60 << 20;
    void *held[4], *more = NULL;

    for (int i = 0; i < 4; i++)
        held[i] = take(most);
    begin();
    ck_assert_int_eq(ccu_device_alloc(device, most, &more), HOB_ERR_MEMORY);
    ck_assert_ptr_null(more);
    ccu_capture.graph_free(device, end());
    for (int i = 0; i < 4; i++)
        ccu_device_free(device, held[i], most);
}
END_TEST

/* ---- refusals, failures ---- */

START_TEST(test_graph_refuses)
{
    static const char *const words[] = {"reads elements",
                                        "copies elements from the host",
                                        "waits for the device"};
    int values[COUNT] = {0};
    void *x = take_ints(values);
    hob_status status;

    begin();
    status = _i == 0   ? ccu_device_download(device, values, x, BYTES)
             : _i == 1 ? ccu_device_upload(device, x, values, BYTES)
                       : ccu_device_sync(device);
    ck_assert_int_eq(status, HOB_ERR_STATE);
    run(x);
    end_badly(HOB_ERR_UNSUPPORTED, words[_i]);
    /* The next one is not this one's business. */
    begin();
    run(x);
    ccu_capture.graph_free(device, end());
    check_ints(x, 0, 0, 0);
    ccu_device_free(device, x, BYTES);
}
END_TEST

static const char *const failing[] = {
    "cuStreamCreate", "cuStreamBeginCapture_v2", "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags"};

START_TEST(test_graph_fails)
{
    void *graph = NULL;
    hob_status status;

    fake_cuda.failing = failing[_i];
    fake_cuda.result = CCU_OUT_OF_MEMORY;
    status = ccu_capture.begin(device, &message);
    if (!status) {
        ccu_device_free(device, take(100), 100);
        status = ccu_capture.end(device, 1, &graph, &message);
    }
    ck_assert_int_eq(status, HOB_ERR_MEMORY);
    ck_assert_ptr_null(graph);
    ck_assert_ptr_nonnull(message);
    cuda_host.table.mem_free(&cuda_host.table, message);
    fake_cuda.failing = NULL;
    begin();
    ccu_capture.graph_free(device, end());
}
END_TEST

/* A replay that crashes ends the device, and is named. */
START_TEST(test_graph_loses_the_device)
{
    void *graph;

    begin();
    graph = end();
    replay(graph);
    fake_cuda.failing = "cuGraphLaunch";
    fake_cuda.result = CCU_LAUNCH_FAILED;
    ck_assert_int_eq(ccu_capture.replay(device, graph, &message),
                     HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(message, "a recorded step"));
    cuda_host.table.mem_free(&cuda_host.table, message);
    fake_cuda.failing = NULL;
    ck_assert_int_eq(ccu_capture.begin(device, &message), HOB_ERR_DEVICE);
    cuda_host.table.mem_free(&cuda_host.table, message);
    ccu_capture.graph_free(device, graph);
}
END_TEST

/* ---- checks of elements ---- */

/* Two ops that check, of which the second lowers its flag to 4. */
static void *record_checks(void)
{
    struct cube_flag flags[2];
    struct hob_call calls[2] = {{.op_name = "gather"}, {.op_name = "select"}};
    uint32_t bad = 0;
    void *graph;

    begin();
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(cube_flag_begin(&flags[i], &device->cube, &calls[i]),
                         HOB_OK);
    ck_assert_ptr_ne(flags[0].data, flags[1].data);
    ck_assert_int_eq(
        cuda_launch(device, kernel, flags[1].data, -5, "select", &message),
        HOB_OK);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(
            cube_flag_end(&flags[i], &device->cube, &calls[i], HOB_OK, &bad),
            HOB_OK);
        ck_assert_uint_eq(bad, CUBE_FLAG_NONE);
    }
    graph = end();
    return graph;
}

/* Told once, by whoever waits; another replay tells it again. */
START_TEST(test_graph_checks)
{
    void *graph = record_checks();

    ck_assert_int_eq(ccu_device_sync(device), HOB_OK);
    for (int i = 0; i < 2; i++) {
        replay(graph);
        cuda_logged[0] = '\0';
        ck_assert_int_eq(ccu_device_sync(device), HOB_ERR_RANGE);
        ck_assert_ptr_nonnull(strstr(cuda_logged, "select"));
        ck_assert_ptr_nonnull(strstr(cuda_logged, "refused element 4"));
        ck_assert_ptr_null(strstr(cuda_logged, "gather"));
        ck_assert_int_eq(ccu_device_sync(device), HOB_OK);
    }
    ccu_capture.graph_free(device, graph);
    ck_assert_int_eq(ccu_device_sync(device), HOB_OK);
}
END_TEST

/* ---- threads ---- */

static void *other_thread(void *context)
{
    (void)context;
    ck_assert_int_eq(ccu_is_recording(device), 0);
    fake_cuda_make_current(-1);
    for (int i = 0; i < 20; i++) {
        const int first[COUNT] = {1, 2, 3};
        void *x = take_ints(first);

        run(x);
        check_ints(x, 4, 5, 6);
        ck_assert_int_eq(ccu_device_sync(device), HOB_OK);
        ccu_device_free(device, x, BYTES);
    }
    return NULL;
}

/* Another thread's work is done at once. */
START_TEST(test_graph_of_one_thread)
{
    void *x = take(BYTES), *graph;
    pthread_t thread;

    begin();
    ck_assert_int_eq(pthread_create(&thread, NULL, other_thread, NULL), 0);
    run(x);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    graph = end();
    ccu_capture.graph_free(device, graph);
    ccu_device_free(device, x, BYTES);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("CUDA graphs");
    TCase *tc = tcase_create("graphs");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_graph_replays);
    tcase_add_test(tc, test_graph_is_dropped);
    tcase_add_test(tc, test_graph_overlaps);
    tcase_add_test(tc, test_graph_launches_without_a_context);
    tcase_add_test(tc, test_graph_owns_its_memory);
    tcase_add_test(tc, test_graph_leaves_nothing_behind);
    tcase_add_test(tc, test_graph_without_memory);
    tcase_add_loop_test(tc, test_graph_refuses, 0, 3);
    tcase_add_loop_test(tc, test_graph_fails, 0,
                        sizeof(failing) / sizeof(failing[0]));
    tcase_add_test(tc, test_graph_loses_the_device);
    tcase_add_test(tc, test_graph_checks);
    tcase_add_test(tc, test_graph_of_one_thread);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
