/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA runtime under several threads, beside other users of CUDA, and when
 * something fails half way. A build with ThreadSanitizer finds more here.
 */
#include "cuda_fixture.h"
#include "hob_check.h"

#include <cube-cuda/product.h>
#include <cube/cube.h>
#include <cube/fuse/fuse.h>

#include <hob/ops.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* NULL if that failed. Called by several threads, so it asserts nothing. */
static void *make_kernel(struct ccu_device *device, const char *text)
{
    const struct cube_source source = {.name = "add",
                                       .text = text,
                                       .bytes = strlen(text),
                                       .group_size = 128,
                                       .param_bytes =
                                           sizeof(struct fake_params)};
    void *binary = NULL, *kernel = NULL;
    char *message = NULL;
    uint64_t bytes = 0;

    if (!ccu_runtime.compile(&device->cube, &source, &binary, &bytes, &message))
        (void)ccu_runtime.kernel_open(&device->cube, &source, binary, bytes,
                                      &kernel, &message);
    cuda_host.table.mem_free(&cuda_host.table, binary);
    cuda_host.table.mem_free(&cuda_host.table, message);
    return kernel;
}

/* ---- products ---- */

enum { SIDE = 4, AREA = SIDE * SIDE };

/* TO = FROM * FROM by the entry, for CALLER, who has the message. */
static hob_status multiply_on(struct ccu_device *device,
                              struct fake_host *caller, void *from, void *to)
{
    const int64_t shape[2] = {SIDE, SIDE};
    struct hob_entry entry = cube_matmul_entries.entries[0];
    struct hob_view view = {.data = from,
                            .dtype = HOB_DTYPE_F32,
                            .rank = 2,
                            .shape = {SIDE, SIDE},
                            .strides = {SIDE, 1}};
    struct fake_call fake;
    hob_status status;

    fake_view_flags(&view);
    fake_call_init(&fake, caller, "matmul");
    fake_call_view(&fake, &view);
    fake_call_view(&fake, &view);
    fake_call_result(&fake, HOB_DTYPE_F32, 2, shape);
    status = fake_call_run(&fake, &entry, device);
    if (!status)
        memcpy(to, fake.results[0].view.data, AREA * sizeof(float));
    fake_call_release(&fake);
    return status;
}

static hob_status multiply(struct ccu_device *device, void *from, void *to)
{
    return multiply_on(device, &cuda_host, from, to);
}

/* ---- several threads ---- */

enum { THREADS = 3, ROUNDS = 40 };

struct worker {
    pthread_t thread;
    struct ccu_device *device;
    uint32_t number;
    int bad;
};

/* Numbers up, a kernel that adds 3 to each, numbers down. */
static int add_round(struct worker *worker, void *kernel, uint32_t round)
{
    const int count = 100 + (int)(round * 37 + worker->number * 1009) % 5000;
    const uint64_t bytes = (uint64_t)count * sizeof(int);
    int *numbers = malloc(bytes), bad = 0;
    char *message = NULL;
    void *data = NULL;

    for (int i = 0; i < count; i++)
        numbers[i] = i * 7 + (int)worker->number;
    if (ccu_device_alloc(worker->device, bytes, &data) ||
        ccu_device_upload(worker->device, data, numbers, bytes) ||
        cuda_launch(worker->device, kernel, data, count, "add", &message) ||
        ccu_device_download(worker->device, numbers, data, bytes))
        bad++;
    for (int i = 0; i < count; i++)
        bad += numbers[i] != i * 7 + (int)worker->number + 3;
    ccu_device_free(worker->device, data, bytes);
    free(numbers);
    return bad;
}

/* The square of NUMBER + 1 times the unit matrix. */
static int multiply_round(struct worker *worker)
{
    const float factor = (float)(worker->number + 1);
    struct fake_host caller;
    float from[AREA] = {0}, to[AREA];
    int bad = 0;

    fake_host_init(&caller, 1);
    for (int i = 0; i < SIDE; i++)
        from[i * SIDE + i] = factor;
    if (multiply_on(worker->device, &caller, from, to))
        return 1;
    for (int i = 0; i < AREA; i++)
        bad += to[i] != (i % (SIDE + 1) ? 0 : factor * factor);
    return bad;
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    void *kernel = make_kernel(worker->device, "KERNEL");

    if (!kernel || strcmp(ccu_runtime.identity(&worker->device->cube),
                          "nvrtc 13.0, sm_90"))
        worker->bad++;
    for (uint32_t round = 0; round < ROUNDS && !worker->bad; round++) {
        worker->bad += add_round(worker, kernel, round);
        worker->bad += multiply_round(worker);
        worker->bad += ccu_device_sync(worker->device) != HOB_OK;
        ccu_device_memory_stats(worker->device, &stats);
        if (round % 8 == worker->number)
            ccu_device_trim(worker->device);
    }
    if (kernel)
        ccu_runtime.kernel_close(&worker->device->cube, kernel);
    return NULL;
}

START_TEST(test_cuda_threads_do_all_at_once)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    struct worker workers[THREADS];

    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.device = device, .number = i};
        ck_assert(!pthread_create(&workers[i].thread, NULL, work, &workers[i]));
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        ck_assert(!pthread_join(workers[i].thread, NULL));
        ck_assert_int_eq(workers[i].bad, 0);
    }
    ck_assert_int_eq(fake_cuda.products, THREADS * ROUNDS);
    ccu_device_memory_stats(device, &stats);
    /* But for the room to multiply in. */
    ck_assert_uint_eq(stats.in_use_bytes, CCU_WORKSPACE_BYTES);
    ccu_device_close(device);
}
END_TEST

/* The libraries may still be on their way when a device goes. */
START_TEST(test_cuda_closes_at_once)
{
    for (int i = 0; i < 50; i++)
        ccu_device_close(cuda_open_device(0, NULL));
}
END_TEST

/* ---- fused kernels ---- */

static const struct hob_fused_compute *const fused = &cube_fused_compute;

/* relu of f32, as a program. */
static void *compile_relu(struct ccu_device *device)
{
    static const struct hob_fused_input input = {HOB_DTYPE_F32, HOB_FUSED_FULL,
                                                 0};
    static const struct hob_fused_step step = {
        .op = HOB_OP_RELU,
        .dtype = HOB_DTYPE_F32,
        .args = {0, HOB_FUSED_NONE, HOB_FUSED_NONE}};
    static const uint8_t output = 1;
    static const struct hob_fused_program program = {.struct_size =
                                                         sizeof(program),
                                                     .step_size = sizeof(step),
                                                     .rank = 1,
                                                     .input_count = 1,
                                                     .output_count = 1,
                                                     .step_count = 1,
                                                     .inputs = &input,
                                                     .steps = &step,
                                                     .outputs = &output};
    char *message = NULL;
    void *kernel;

    setenv("XDG_CACHE_HOME", "/dev/null", 1);
    ck_assert_int_eq(fused->compile(device, &program, &kernel, &message),
                     HOB_OK);
    return kernel;
}

/* Run KERNEL on 4 numbers at DATA. What the fake kernel takes for a count and
 * a step, 4 and 3, is where the fused one is told to write. */
static hob_status run_fused(struct ccu_device *device, void *kernel, void *data,
                            char **out_message)
{
    const struct hob_fused_operand input = {data, {1}};
    const struct hob_fused_operand output = {
        (void *)(uintptr_t)(UINT64_C(3) << 32 | 4), {1}};
    const struct hob_fused_run run = {.struct_size = sizeof(run),
                                      .shape = {4},
                                      .inputs = &input,
                                      .outputs = &output,
                                      .name = "relu"};

    return fused->run(device, kernel, &run, out_message);
}

START_TEST(test_cuda_fuses)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    void *kernel = compile_relu(device), *data = NULL;
    int numbers[4] = {1, 2, 3, 4};
    char *message = NULL;
    hob_status st;

    ck_assert_int_eq(ccu_device_alloc(device, sizeof(numbers), &data), HOB_OK);
    ck_assert_int_eq(ccu_device_upload(device, data, numbers, sizeof(numbers)),
                     HOB_OK);
    st = run_fused(device, kernel, data, &message);
    ck_assert(st == HOB_OK || st == HOB_ERR_BUSY);
    if (st) {
        fused->set_waits(device, 1);
        ck_assert_int_eq(run_fused(device, kernel, data, &message), HOB_OK);
    }
    ck_assert_ptr_null(message);
    ck_assert_int_eq(
        ccu_device_download(device, numbers, data, sizeof(numbers)), HOB_OK);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(numbers[i], i + 4);
    ck_assert_uint_eq(fake_cuda.group_size, 256);
    ck_assert_uint_eq(fake_cuda.groups, 1);
    ck_assert_int_eq(fake_cuda.modules, 1);
    fused->release(device, kernel);
    ccu_device_free(device, data, sizeof(numbers));
    ccu_device_close(device);
}
END_TEST

/* Compilers may be anywhere when a kernel, or the device, goes. */
START_TEST(test_cuda_closes_with_compilers)
{
    for (int i = 0; i < 50; i++) {
        struct ccu_device *device = cuda_open_device(0, NULL);
        void *kernel = compile_relu(device);
        char *message = NULL;
        const hob_status st = run_fused(device, kernel, NULL, &message);

        ck_assert(st == HOB_ERR_BUSY);
        if (i % 2)
            fused->release(device, kernel);
        ccu_device_close(device);
    }
}
END_TEST

/* Without a compiler the ops run one by one, on what kernels there are. */
START_TEST(test_cuda_fuses_nothing_without_nvrtc)
{
    struct ccu_device *device;
    char *message = NULL;
    void *kernel;

    fake_cuda.missing = "nvrtcCompileProgram";
    device = cuda_open_device(0, NULL);
    kernel = compile_relu(device);
    fused->set_waits(device, 1);
    ck_assert_int_eq(run_fused(device, kernel, NULL, &message),
                     HOB_ERR_UNSUPPORTED);
    ck_assert_ptr_null(message);
    ck_assert_ptr_nonnull(strstr(cuda_logged, "is run one by one"));
    fused->release(device, kernel);
    ccu_device_close(device);
}
END_TEST

/* ---- beside others ---- */

START_TEST(test_cuda_gives_the_context_back)
{
    struct ccu_device *device;
    void *data = NULL;

    fake_cuda_make_current(1);
    device = cuda_open_device(0, NULL);
    ck_assert_int_eq(fake_cuda_current(), 1);
    ck_assert_int_eq(ccu_device_alloc(device, 64, &data), HOB_OK);
    ck_assert_int_eq(fake_cuda_current(), 1);
    ccu_device_free(device, data, 64);
    ccu_device_close(device);
    ck_assert_int_eq(fake_cuda_current(), 1);
}
END_TEST

/* A context that somebody destroyed is the end of the device: nothing is done
 * in the context that happens to be current. */
START_TEST(test_cuda_context_is_gone)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    float numbers[AREA] = {0};
    void *data = NULL;

    fake_cuda_make_current(1);
    fake_cuda.failing = "cuCtxPushCurrent_v2";
    fake_cuda.result = 709; /* CUDA_ERROR_CONTEXT_IS_DESTROYED */
    ck_assert_ptr_null(make_kernel(device, "KERNEL"));
    ck_assert_int_eq(fake_cuda.modules, 0);
    ck_assert_int_eq(ccu_device_alloc(device, 64, &data), HOB_ERR_DEVICE);
    ck_assert_int_eq(fake_cuda.blocks, 0);
    ck_assert_int_eq(multiply(device, numbers, numbers), HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(cuda_logged, "cube-cuda:0 is lost"));
    ck_assert_ptr_nonnull(strstr(cuda_logged, "cuCtxPushCurrent"));
    fake_cuda.failing = NULL;
    ccu_device_close(device);
}
END_TEST

/* ---- failures half way ---- */

START_TEST(test_cuda_lost_device_multiplies_no_more)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    float numbers[AREA] = {0};

    fake_cuda.failing = "cublasLtMatmul";
    fake_cuda.result = 13;
    ck_assert_int_eq(multiply(device, numbers, numbers), HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(cuda_host.message, "cuBLASLt: status 13"));
    /* The same, but the driver says that it is worse. */
    ck_assert_int_eq(ccu_device_sync(device), HOB_OK);
    fake_cuda.lost[0] = CCU_ILLEGAL_ADDRESS;
    ck_assert_int_eq(multiply(device, numbers, numbers), HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(cuda_host.message, "asked for matmul"));
    fake_cuda.failing = NULL;
    ck_assert_int_eq(multiply(device, numbers, numbers), HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(cuda_host.message, "cube-cuda:0 is lost"));
    ccu_device_close(device);
}
END_TEST

START_TEST(test_cuda_blocking_waits_for_products)
{
    struct ccu_device *device = cuda_open_device(0, "{\"blocking\": \"yes\"}");
    float numbers[AREA] = {0};

    ck_assert_int_eq(multiply(device, numbers, numbers), HOB_OK);
    ck_assert_int_eq(fake_cuda.waits, 1);
    ccu_device_close(device);
}
END_TEST

/* Without room to multiply in, kernels are chosen that need none; once there is
 * room, those that are chosen always. */
START_TEST(test_cuda_workspace_comes_later)
{
    const uint64_t most = (uint64_t)240 << 20;
    struct ccu_device *device = cuda_open_device(0, NULL);
    float numbers[AREA] = {0};
    void *held = NULL;

    ck_assert_int_eq(ccu_device_alloc(device, most, &held), HOB_OK);
    ck_assert_int_eq(multiply(device, numbers, numbers), HOB_OK);
    ck_assert_uint_eq(fake_cuda.workspace_bytes, 0);
    ccu_device_free(device, held, most);
    ck_assert_int_eq(multiply(device, numbers, numbers), HOB_OK);
    ck_assert_uint_eq(fake_cuda.workspace_bytes, CCU_WORKSPACE_BYTES);
    ck_assert_int_eq(fake_cuda.heuristics, 2);
    ccu_device_close(device);
}
END_TEST

/* What the lists keep is given back for it. */
START_TEST(test_cuda_workspace_takes_from_the_lists)
{
    const uint64_t each = (uint64_t)60 << 20;
    struct ccu_device *device = cuda_open_device(0, NULL);
    float numbers[AREA] = {0};
    void *held[4];

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(ccu_device_alloc(device, each, &held[i]), HOB_OK);
    for (int i = 0; i < 4; i++)
        ccu_device_free(device, held[i], each);
    ck_assert_int_eq(multiply(device, numbers, numbers), HOB_OK);
    ck_assert_uint_eq(fake_cuda.workspace_bytes, CCU_WORKSPACE_BYTES);
    ccu_device_close(device);
}
END_TEST

/* A slot is not free before the device has said so. */
START_TEST(test_cuda_failed_wait_frees_no_slot)
{
    const uint64_t bytes = (uint64_t)CCU_SLOTS * CCU_SLOT_BYTES;
    struct ccu_device *device = cuda_open_device(0, NULL);
    char *numbers = calloc(bytes, 1);
    void *data = NULL;

    ck_assert_int_eq(ccu_device_alloc(device, bytes, &data), HOB_OK);
    ck_assert_int_eq(ccu_device_upload(device, data, numbers, bytes), HOB_OK);
    fake_cuda.result = CCU_OUT_OF_MEMORY;
    fake_cuda.failing = "cuEventSynchronize";
    ck_assert_int_eq(ccu_device_upload(device, data, numbers, 64),
                     HOB_ERR_MEMORY);
    for (int i = 0; i < CCU_SLOTS; i++)
        ck_assert_uint_eq(device->staging.up.slots[i].used, CCU_SLOT_BYTES);
    fake_cuda.failing = NULL;
    ck_assert_int_eq(ccu_device_upload(device, data, numbers, 64), HOB_OK);
    ccu_device_free(device, data, bytes);
    ccu_device_close(device);
    free(numbers);
}
END_TEST

static struct ccu_device *waiting_device;
static void *waiting_kernel;
static char *waiting_message;

/* As another thread might, while one waits. */
static void launch_meanwhile(void)
{
    fake_cuda.waiting = NULL;
    (void)cuda_launch(waiting_device, waiting_kernel, NULL, 0, "gather",
                      &waiting_message);
}

START_TEST(test_cuda_wait_forgets_only_what_it_waited_for)
{
    char *message = NULL;

    waiting_device = cuda_open_device(0, NULL);
    waiting_kernel = make_kernel(waiting_device, "crash");
    ck_assert_ptr_nonnull(waiting_kernel);
    fake_cuda.waiting = launch_meanwhile;
    ck_assert_int_eq(ccu_device_sync(waiting_device), HOB_OK);
    ck_assert_int_eq(
        cuda_launch(waiting_device, waiting_kernel, NULL, 0, "add", &message),
        HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(message);
    ck_assert_ptr_nonnull(strstr(message, "asked for gather, add"));
    cuda_host.table.mem_free(&cuda_host.table, message);
    ccu_runtime.kernel_close(&waiting_device->cube, waiting_kernel);
    ccu_device_close(waiting_device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("CUDA threads");
    TCase *tc = tcase_create("threads");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, cuda_setup, cuda_teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, test_cuda_threads_do_all_at_once);
    tcase_add_test(tc, test_cuda_closes_at_once);
    tcase_add_test(tc, test_cuda_fuses);
    tcase_add_test(tc, test_cuda_closes_with_compilers);
    tcase_add_test(tc, test_cuda_fuses_nothing_without_nvrtc);
    tcase_add_test(tc, test_cuda_gives_the_context_back);
    tcase_add_test(tc, test_cuda_context_is_gone);
    tcase_add_test(tc, test_cuda_lost_device_multiplies_no_more);
    tcase_add_test(tc, test_cuda_blocking_waits_for_products);
    tcase_add_test(tc, test_cuda_workspace_comes_later);
    tcase_add_test(tc, test_cuda_workspace_takes_from_the_lists);
    tcase_add_test(tc, test_cuda_failed_wait_frees_no_slot);
    tcase_add_test(tc, test_cuda_wait_forgets_only_what_it_waited_for);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
