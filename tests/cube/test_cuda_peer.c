/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two CUDA devices in one runtime, on a driver of the test's own:
 * hob_to_device() copies from one to the other, and nothing else moves.
 */
#include "cuda_fixture.h"
#include "hob_check.h"

#include <cube/compute.h>
#include <cube/cube.h>

#include <hob/hob.h>

#include <string.h>

enum { COUNT = 1000 };

static hob_runtime *runtime;
static hob_device *devices[2];
static hob_scope *scope;
static hob_error error;
static struct cube_tables *tables;

static hob_status open_instance(const struct hob_host *host,
                                const char *options, void **out_instance,
                                char **out_message)
{
    struct ccu_instance *instance = ccu_instance_new(host);

    (void)options;
    (void)out_message;
    instance->find = fake_cuda_find;
    *out_instance = instance;
    return HOB_OK;
}

static void close_instance(void *instance)
{
    ccu_instance_free(instance);
}

static const struct hob_plugin *entry(const struct hob_host *host)
{
    (void)host;
    return &tables->plugin;
}

/* The plugin's tables but for its instance, which has the fake driver. */
static void make_tables(void)
{
    const struct hob_backend backend = {HOB_BACKEND_INIT_HEAD,
                                        .device_count = ccu_device_count,
                                        .device_info = ccu_device_info,
                                        .device_open = ccu_device_open,
                                        .device_close = ccu_device_close,
                                        .alloc = ccu_device_alloc,
                                        .free = ccu_device_free,
                                        .upload = ccu_device_upload,
                                        .download = ccu_device_download,
                                        .sync = ccu_device_sync,
                                        .copy = ccu_device_copy};
    const struct hob_plugin plugin = {HOB_PLUGIN_INIT_HEAD, .id = "cube-cuda",
                                      .version = "0.1.0", .open = open_instance,
                                      .close = close_instance};

    tables = cube_tables_new(&plugin, &backend, NULL);
    ck_assert_ptr_nonnull(tables);
}

static void setup(void)
{
    const struct hob_static_plugin plugin = {
        "{\"manifest_version\": 1, \"id\": \"cube-cuda\", \"version\": "
        "\"0.1.0\", \"kind\": \"backend\", \"abi\": {\"major\": 0, "
        "\"required_minor\": 2, \"built_minor\": 2}, \"backend\": "
        "{\"selector\": \"cube-cuda\", \"family\": \"cube\", \"runtime\": "
        "\"cuda\"}}",
        entry};
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;

    fake_cuda_reset();
    make_tables();
    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.static_plugins = &plugin;
    options.static_plugin_count = 1;
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "cube-cuda:0", &devices[0], &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "cube-cuda:1", &devices[1], &error));
    scope = hob_scope_open(runtime);
}

static void teardown(void)
{
    hob_scope_close(scope);
    hob_device_unref(devices[0]);
    hob_device_unref(devices[1]);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
    ck_assert(fake_cuda_is_clean());
    free(tables);
}

static hob_tensor *numbers(int device, float first)
{
    const int64_t count = COUNT;
    float data[COUNT];

    for (int i = 0; i < COUNT; i++)
        data[i] = first + (float)i;
    return hob_from_f32(scope, devices[device], data, &count, 1);
}

static void check_numbers(hob_tensor *tensor, float first)
{
    float data[COUNT];

    ck_assert_hob_ok(hob_read_f32(tensor, data, COUNT, &error));
    for (int i = 0; i < COUNT; i++)
        ck_assert_float_eq(data[i], first + (float)i);
}

/* Both ways, each in the order of both devices, and the pools are opened to one
 * another once. */
START_TEST(test_peer_copies)
{
    hob_tensor *here = numbers(0, 1), *there, *back;

    there = hob_to_device(scope, here, devices[1]);
    ck_assert_ptr_eq(hob_tensor_device(there), devices[1]);
    ck_assert_int_eq(fake_cuda.peer_copies, 1);
    ck_assert_int_eq(fake_cuda.waits_between, 2);
    check_numbers(there, 1);
    back = hob_to_device(scope, there, devices[0]);
    ck_assert_ptr_eq(hob_tensor_device(back), devices[0]);
    check_numbers(back, 1);
    ck_assert_int_eq(fake_cuda.peer_copies, 2);
    ck_assert_int_eq(fake_cuda.waits_between, 4);
    ck_assert_int_eq(fake_cuda.pools_open, 2);
    /* The events of copies are gone; those of pinned memory stay. */
    ck_assert_int_eq(fake_cuda.events, fake_cuda.pins);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

START_TEST(test_peer_copies_nothing)
{
    const int64_t none = 0;
    hob_tensor *empty = hob_from_f32(scope, devices[0], NULL, &none, 1);

    empty = hob_to_device(scope, empty, devices[1]);
    ck_assert_int_eq(hob_tensor_count(empty), 0);
    ck_assert_ptr_eq(hob_tensor_device(empty), devices[1]);
    ck_assert_int_eq(fake_cuda.peer_copies, 0);
}
END_TEST

static const char *const failing[] = {"cuEventCreate", "cuEventRecord",
                                      "cuStreamWaitEvent", "cuMemcpyPeerAsync"};

START_TEST(test_peer_copy_fails)
{
    hob_tensor *here = numbers(0, 1);

    fake_cuda.failing = failing[_i];
    fake_cuda.result = CCU_OUT_OF_MEMORY;
    (void)hob_to_device(scope, here, devices[1]);
    fake_cuda.failing = NULL;
    ck_assert_hob_fails(hob_scope_error(scope, &error), HOB_ERR_MEMORY,
                        "copying 4000 bytes from cube-cuda to cube-cuda:1");
    hob_scope_clear_error(scope);
    check_numbers(hob_to_device(scope, here, devices[1]), 1);
}
END_TEST

/* That the pools cannot be opened is no failure: the driver has another way. */
START_TEST(test_peer_without_access)
{
    fake_cuda.failing = _i ? "cuMemPoolSetAccess" : "cuDeviceCanAccessPeer";
    fake_cuda.result = 217; /* CUDA_ERROR_PEER_ACCESS_UNSUPPORTED */
    check_numbers(hob_to_device(scope, numbers(1, 5), devices[0]), 5);
    ck_assert_int_eq(fake_cuda.pools_open, 0);
    ck_assert_hob_ok(hob_scope_error(scope, &error));
}
END_TEST

/* A device that is lost says so; the other goes on. */
START_TEST(test_peer_is_lost)
{
    hob_tensor *here = numbers(0, 1), *there = numbers(1, 2);

    fake_cuda.lost[0] = CCU_ILLEGAL_ADDRESS;
    (void)hob_to_device(scope, here, devices[1]);
    ck_assert_hob_fails(hob_scope_error(scope, &error), HOB_ERR_DEVICE,
                        "to_device");
    hob_scope_clear_error(scope);
    check_numbers(there, 2);
}
END_TEST

/* Nothing moves by itself. */
START_TEST(test_peer_ops_do_not_mix)
{
    hob_tensor *here = numbers(0, 1), *there = numbers(1, 1);

    (void)hob_add(scope, here, there);
    ck_assert_hob_fails(hob_scope_error(scope, &error), HOB_ERR_DEVICE,
                        "argument lhs is on cube-cuda and argument rhs on "
                        "cube-cuda:1: nothing moves by itself; bring one over "
                        "with hob_to_device()");
    hob_scope_clear_error(scope);
    ck_assert_int_eq(fake_cuda.peer_copies, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("CUDA peers");
    TCase *tc = tcase_create("peers");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_peer_copies);
    tcase_add_test(tc, test_peer_copies_nothing);
    tcase_add_loop_test(tc, test_peer_copy_fails, 0,
                        sizeof(failing) / sizeof(failing[0]));
    tcase_add_loop_test(tc, test_peer_without_access, 0, 2);
    tcase_add_test(tc, test_peer_is_lost);
    tcase_add_test(tc, test_peer_ops_do_not_mix);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
