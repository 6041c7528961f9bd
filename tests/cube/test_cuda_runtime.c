/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA runtime on a driver of the test's own: what it does when something
 * is missing, fails or is lost, and that nothing is left behind. Kernels are
 * run on real devices by the op tests.
 */
#include "cuda_fixture.h"
#include "hob_check.h"

#include <cube-cuda/product.h>
#include <cube/cube.h>
#include <cube/flag.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Opening must fail with STATUS and say WORDS. */
static void refuse(uint32_t ordinal, const char *options, hob_status status,
                   const char *words)
{
    void *opened = NULL;
    char *message = NULL;

    ck_assert_int_eq(
        ccu_device_open(cuda_instance, ordinal, options, &opened, &message),
        status);
    ck_assert_ptr_null(opened);
    ck_assert_ptr_nonnull(message);
    ck_assert_msg(strstr(message, words) != NULL, "\"%s\" does not say \"%s\"",
                  message, words);
    cuda_host.table.mem_free(&cuda_host.table, message);
}

static struct cube_source source_of(const char *text)
{
    struct cube_source source = {.name = "add",
                                 .text = text,
                                 .bytes = strlen(text),
                                 .group_size = 128,
                                 .param_bytes = sizeof(struct fake_params)};

    return source;
}

static void *make_kernel(struct ccu_device *device, const char *text)
{
    const struct cube_source source = source_of(text);
    void *binary = NULL, *kernel = NULL;
    char *message = NULL;
    uint64_t bytes = 0;

    ck_assert_msg(!ccu_runtime.compile(&device->cube, &source, &binary, &bytes,
                                       &message),
                  "%s", message);
    ck_assert_msg(!ccu_runtime.kernel_open(&device->cube, &source, binary,
                                           bytes, &kernel, &message),
                  "%s", message);
    cuda_host.table.mem_free(&cuda_host.table, binary);
    return kernel;
}

/* ---- opening ---- */

START_TEST(test_cuda_tells_its_devices)
{
    struct hob_device_info info;
    uint32_t count = 0;

    ck_assert_int_eq(ccu_device_count(cuda_instance, &count), HOB_OK);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(ccu_device_info(cuda_instance, 1, &info), HOB_OK);
    ck_assert_str_eq(info.name, "Fake 1");
    ck_assert_uint_eq(info.memory_bytes, (uint64_t)256 << 20);
    ck_assert_int_eq(ccu_device_info(cuda_instance, 2, &info), HOB_ERR_DEVICE);
    refuse(2, NULL, HOB_ERR_DEVICE, "there is no device 2");
}
END_TEST

START_TEST(test_cuda_without_devices)
{
    uint32_t count = 1;

    fake_cuda.devices = 0;
    ck_assert_int_eq(ccu_device_count(cuda_instance, &count), HOB_OK);
    ck_assert_uint_eq(count, 0);
    refuse(0, NULL, HOB_ERR_DEVICE, "sees no device");
}
END_TEST

/* Then not even the driver is opened, here the machine's. */
START_TEST(test_cuda_hidden_devices)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    char *before = visible ? strdup(visible) : NULL;
    uint32_t count = 1;

    cuda_instance->find = NULL;
    ck_assert_int_eq(setenv("CUDA_VISIBLE_DEVICES", "", 1), 0);
    ck_assert_int_eq(ccu_device_count(cuda_instance, &count), HOB_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_ptr_null(cuda_instance->driver.init);
    refuse(0, NULL, HOB_ERR_DEVICE, "CUDA_VISIBLE_DEVICES is empty");
    if (before)
        (void)setenv("CUDA_VISIBLE_DEVICES", before, 1);
    else
        (void)unsetenv("CUDA_VISIBLE_DEVICES");
    free(before);
}
END_TEST

START_TEST(test_cuda_refuses_old_devices)
{
    fake_cuda.major = 6;
    refuse(0, NULL, HOB_ERR_UNSUPPORTED, "lacks compute capability 7.0");
}
END_TEST

START_TEST(test_cuda_reads_options)
{
    refuse(0, "{\"blocking\": \"perhaps\"}", HOB_ERR_ARGUMENT,
           "\"yes\" or \"no\"");
    refuse(0, "{\"nvrtc_dir\": \"lib\"}", HOB_ERR_ARGUMENT, "absolute path");
    refuse(0, "{\"fast\": \"yes\"}", HOB_ERR_ARGUMENT, "unknown option");
    refuse(0, "{\"blocking\" \"yes\"}", HOB_ERR_ARGUMENT, "no \":\"");
    refuse(0, "[]", HOB_ERR_ARGUMENT, "not a JSON object");
    ccu_device_close(cuda_open_device(
        0, "{\"blocking\": \"yes\", \"nvrtc_dir\": \"/a\\\\b\"}"));
}
END_TEST

/* Each function of the driver that is missing is named. */
static const char *const driver_names[] = {
#define CCU_DRIVER(member, name, parameters) #name,
#include <cube-cuda/symbols.def>
};
enum { DRIVER_NAMES = sizeof(driver_names) / sizeof(driver_names[0]) };

START_TEST(test_cuda_without_a_function)
{
    fake_cuda.missing = driver_names[_i];
    refuse(0, NULL, HOB_ERR_DEVICE, driver_names[_i]);
}
END_TEST

/* Whatever the opening calls may fail. */
static const char *const opening[] = {
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuStreamCreate",
    "cuMemPoolCreate",
    "cuMemPoolSetAttribute",
    "cuCtxPushCurrent_v2",
};
enum { OPENING = sizeof(opening) / sizeof(opening[0]) };

START_TEST(test_cuda_opening_fails)
{
    void *opened = NULL;
    char *message = NULL;

    fake_cuda.failing = opening[_i];
    fake_cuda.result = 999;
    ck_assert_int_ne(ccu_device_open(cuda_instance, 0, NULL, &opened, &message),
                     HOB_OK);
    ck_assert_ptr_null(opened);
    ck_assert_ptr_nonnull(message);
    cuda_host.table.mem_free(&cuda_host.table, message);
}
END_TEST

/* ---- memory ---- */

START_TEST(test_cuda_sizes_of_blocks)
{
    uint64_t before = 0;
    uint32_t before_class = 0;

    for (uint64_t bytes = 0; bytes < (uint64_t)200 << 20;
         bytes = bytes * 33 / 32 + 1) {
        uint32_t class, again;
        const uint64_t size = ccu_memory_size(bytes, &class);

        ck_assert_uint_ge(size, bytes);
        ck_assert_uint_eq(size % CCU_MEMORY_GRAIN, 0);
        ck_assert_uint_le(size - bytes, bytes / 8 + CCU_MEMORY_GRAIN);
        ck_assert_uint_eq(ccu_memory_size(size, &again), size);
        ck_assert_uint_eq(class, again);
        /* One size a class, one class a size. */
        if (bytes && class < CCU_MEMORY_CLASSES)
            ck_assert_int_eq(size == before, class == before_class);
        before = size;
        before_class = class;
    }
}
END_TEST

START_TEST(test_cuda_memory_is_used_again)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    void *first = NULL, *second = NULL;

    ck_assert_int_eq(ccu_device_alloc(device, 1000, &first), HOB_OK);
    ccu_device_free(device, first, 1000);
    ck_assert_int_eq(ccu_device_alloc(device, 1001, &second), HOB_OK);
    ck_assert_ptr_eq(first, second);
    ck_assert_int_eq(fake_cuda.calls_alloc, 1);
    ccu_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.in_use_bytes, 1001);
    ck_assert_uint_eq(stats.peak_bytes, 1001);
    ck_assert_uint_eq(stats.padding_bytes, 23);
    ck_assert_uint_eq(stats.reserved_bytes, 1024);
    ck_assert_uint_eq(stats.block_count, 2);
    ck_assert_uint_eq(stats.system_count, 1);
    ccu_device_free(device, second, 1001);
    ccu_device_free(device, NULL, 0);
    ccu_device_reset_peak(device);
    ccu_device_trim(device);
    ccu_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.reserved_bytes, 0);
    ck_assert_uint_eq(stats.peak_bytes, 0);
    ccu_device_close(device);
}
END_TEST

/* Lists do not hold what the driver could make other blocks of; what a step
 * has used at once stays where it is. */
START_TEST(test_cuda_lists_do_not_grow)
{
    enum { BLOCKS = 4 };
    const uint64_t sizes_of[] = {(uint64_t)8 << 20, (uint64_t)9 << 20};
    struct ccu_device *device = cuda_open_device(0, NULL);
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    void *held[BLOCKS], *small = NULL;

    ck_assert_int_eq(ccu_device_alloc(device, 1000, &small), HOB_OK);
    ccu_device_free(device, small, 1000);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++)
            ck_assert_int_eq(
                ccu_device_alloc(device, sizes_of[round], &held[i]), HOB_OK);
        for (int i = 0; i < BLOCKS; i++)
            ccu_device_free(device, held[i], sizes_of[round]);
    }
    ccu_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.peak_bytes, BLOCKS * sizes_of[1]);
    ck_assert_uint_le(stats.reserved_bytes,
                      stats.peak_bytes + stats.peak_bytes / 16);
    ck_assert_uint_eq(stats.system_count, 1 + 2 * BLOCKS);
    /* The same again costs no call, and small blocks were kept. */
    for (int i = 0; i < BLOCKS; i++)
        ck_assert_int_eq(ccu_device_alloc(device, sizes_of[1], &held[i]),
                         HOB_OK);
    ck_assert_int_eq(ccu_device_alloc(device, 1000, &small), HOB_OK);
    ck_assert_int_eq(fake_cuda.calls_alloc, 1 + 2 * BLOCKS);
    ccu_device_free(device, small, 1000);
    for (int i = 0; i < BLOCKS; i++)
        ccu_device_free(device, held[i], sizes_of[1]);
    ccu_device_close(device);
}
END_TEST

START_TEST(test_cuda_out_of_memory)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    const uint64_t most = (uint64_t)60 << 20;
    void *held[4], *more = NULL;

    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(ccu_device_alloc(device, most, &held[i]), HOB_OK);
    ck_assert_int_eq(ccu_device_alloc(device, most, &more), HOB_ERR_MEMORY);
    ck_assert_ptr_null(more);
    ck_assert_ptr_nonnull(strstr(cuda_logged, "no memory for 62914560 bytes"));
    ck_assert_ptr_nonnull(strstr(cuda_logged, "251658240 bytes are in use"));
    /* What another size keeps is given back for this one. */
    ccu_device_free(device, held[0], most);
    ck_assert_int_eq(ccu_device_alloc(device, most / 2, &more), HOB_OK);
    for (int i = 1; i < 4; i++)
        ccu_device_free(device, held[i], most);
    ccu_device_free(device, more, most / 2);
    ck_assert_int_eq(ccu_device_alloc(device, (uint64_t)1 << 40, &more),
                     HOB_ERR_MEMORY);
    ccu_device_close(device);
}
END_TEST

/* ---- copies ---- */

static const uint64_t sizes[] = {0,
                                 1,
                                 63,
                                 4097,
                                 CCU_SLOT_BYTES - 1,
                                 CCU_SLOT_BYTES,
                                 CCU_SLOT_BYTES + 1,
                                 5 * CCU_SLOT_BYTES + 77};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

START_TEST(test_cuda_copies)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    const uint64_t bytes = sizes[_i];
    unsigned char *from = malloc(bytes + 1), *to = calloc(bytes + 1, 1);
    void *data = NULL;

    for (uint64_t i = 0; i < bytes; i++)
        from[i] = (unsigned char)(i * 2654435761u >> 13);
    ck_assert_int_eq(ccu_device_alloc(device, bytes, &data), HOB_OK);
    /* More small ones than there are slots. */
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(ccu_device_upload(device, data, from, bytes), HOB_OK);
    ck_assert_int_eq(ccu_device_download(device, to, data, bytes), HOB_OK);
    ck_assert(!memcmp(from, to, bytes));
    ccu_device_free(device, data, bytes);
    ccu_device_close(device);
    free(from);
    free(to);
}
END_TEST

/* Large downloads go aside, in a stream that waits for the device's. */
START_TEST(test_cuda_large_downloads_go_aside)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    char *memory = calloc(CCU_ASIDE_BYTES, 1);
    void *data = NULL;

    ck_assert_int_eq(ccu_device_alloc(device, CCU_ASIDE_BYTES, &data), HOB_OK);
    ck_assert_int_eq(
        ccu_device_download(device, memory, data, CCU_ASIDE_BYTES - 1), HOB_OK);
    ck_assert_int_eq(fake_cuda.event_waits, 0);
    ck_assert_int_eq(fake_cuda.streams, 1);
    for (int i = 1; i <= 2; i++) {
        ck_assert_int_eq(
            ccu_device_download(device, memory, data, CCU_ASIDE_BYTES), HOB_OK);
        ck_assert_int_eq(fake_cuda.event_waits, i);
        ck_assert_int_eq(fake_cuda.streams, 2);
    }
    ccu_device_free(device, data, CCU_ASIDE_BYTES);
    ccu_device_close(device);
    free(memory);
}
END_TEST

static const char *const copying[] = {"cuMemHostAlloc", "cuEventCreate",
                                      "cuEventSynchronize",
                                      "cuMemcpyHtoDAsync_v2",
                                      "cuMemcpyDtoHAsync_v2", "cuEventRecord",
                                      "cuStreamCreate", "cuStreamWaitEvent"};
enum { COPYING = sizeof(copying) / sizeof(copying[0]) };

START_TEST(test_cuda_copies_fail)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    const uint64_t bytes = 3 * CCU_SLOT_BYTES;
    char *memory = calloc(bytes, 1);
    hob_status up, down;
    void *data = NULL;

    ck_assert_int_eq(ccu_device_alloc(device, bytes, &data), HOB_OK);
    fake_cuda.failing = copying[_i];
    fake_cuda.result = CCU_OUT_OF_MEMORY;
    up = ccu_device_upload(device, data, memory, bytes);
    down = ccu_device_download(device, memory, data, bytes);
    ck_assert(up || down);
    /* Such a failure is not the end of the device. */
    fake_cuda.failing = NULL;
    ck_assert_int_eq(ccu_device_upload(device, data, memory, bytes), HOB_OK);
    ck_assert_int_eq(ccu_device_download(device, memory, data, bytes), HOB_OK);
    ccu_device_free(device, data, bytes);
    ccu_device_close(device);
    free(memory);
}
END_TEST

/* ---- kernels ---- */

START_TEST(test_cuda_runs_kernels)
{
    struct ccu_device *device = cuda_open_device(1, NULL);
    void *kernel = make_kernel(device, "KERNEL");
    const int from[3] = {1, 2, 3};
    int to[3] = {0, 0, 0};
    char *message = NULL;
    void *data = NULL;

    ck_assert_int_eq(ccu_device_alloc(device, sizeof(from), &data), HOB_OK);
    ck_assert_int_eq(ccu_device_upload(device, data, from, sizeof(from)),
                     HOB_OK);
    ck_assert_int_eq(cuda_launch(device, kernel, data, 3, "add", &message),
                     HOB_OK);
    ck_assert_uint_eq(fake_cuda.groups, 7);
    ck_assert_uint_eq(fake_cuda.group_size, 128);
    ck_assert_int_eq(ccu_device_sync(device), HOB_OK);
    ck_assert_int_eq(ccu_device_download(device, to, data, sizeof(to)),
                     HOB_OK);
    ck_assert_int_eq(to[2], 6);
    ck_assert_str_eq(ccu_runtime.identity(&device->cube), "nvrtc 13.0, sm_90");
    ccu_device_free(device, data, sizeof(from));
    ccu_runtime.kernel_close(&device->cube, kernel);
    ccu_device_close(device);
}
END_TEST

START_TEST(test_cuda_says_what_does_not_compile)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    const struct cube_source source = source_of("error");
    char *message = NULL;
    void *binary = NULL;
    uint64_t bytes = 0;

    ck_assert_int_eq(ccu_runtime.compile(&device->cube, &source, &binary,
                                         &bytes, &message),
                     HOB_ERR_INTERNAL);
    ck_assert_ptr_nonnull(message);
    ck_assert_ptr_nonnull(strstr(message, "kernel add"));
    ck_assert_ptr_nonnull(strstr(message, "line 7"));
    cuda_host.table.mem_free(&cuda_host.table, message);
    ccu_device_close(device);
}
END_TEST

static const char *const compiling[] = {
    "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetCUBINSize",
    "nvrtcGetCUBIN"};
enum { COMPILING = sizeof(compiling) / sizeof(compiling[0]) };

/* Options that only make it faster are left out where NVRTC knows them not. */
START_TEST(test_cuda_compiles_with_an_old_nvrtc)
{
    const struct cube_source source = {.name = "add",
                                       .text = "KERNEL",
                                       .bytes = 6,
                                       .group_size = 32,
                                       .waits = 1};
    struct ccu_device *device = cuda_open_device(0, NULL);
    char *message = NULL;

    for (int is_old = 0; is_old < 2; is_old++) {
        fake_cuda.has_old_nvrtc = is_old;
        for (int i = 0; i < 2; i++) {
            void *binary = NULL;
            uint64_t bytes = 0;

            ck_assert_int_eq(ccu_runtime.compile(&device->cube, &source,
                                                 &binary, &bytes, &message),
                             HOB_OK);
            ck_assert_int_eq(fake_cuda.nvrtc_options, is_old ? 3 : 5);
            cuda_host.table.mem_free(&cuda_host.table, binary);
        }
    }
    ccu_device_close(device);
}
END_TEST

START_TEST(test_cuda_compiling_fails)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    const struct cube_source source = source_of("KERNEL");
    char *message = NULL;
    void *binary = NULL;
    uint64_t bytes = 0;

    fake_cuda.failing = compiling[_i];
    fake_cuda.result = 5;
    ck_assert_int_ne(ccu_runtime.compile(&device->cube, &source, &binary,
                                         &bytes, &message),
                     HOB_OK);
    ck_assert_ptr_null(binary);
    cuda_host.table.mem_free(&cuda_host.table, message);
    ccu_device_close(device);
}
END_TEST

/* Without NVRTC a device opens; what needs a kernel says what is missing. */
START_TEST(test_cuda_without_nvrtc)
{
    const struct cube_source source = source_of("KERNEL");
    struct ccu_device *device;
    char *message = NULL;
    void *binary = NULL;
    uint64_t bytes = 0;

    fake_cuda.missing = "nvrtcGetCUBIN";
    device = cuda_open_device(0, NULL);
    ck_assert_int_eq(ccu_runtime.compile(&device->cube, &source, &binary,
                                         &bytes, &message),
                     HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(message);
    ck_assert_ptr_nonnull(strstr(message, "nvrtcGetCUBIN"));
    cuda_host.table.mem_free(&cuda_host.table, message);
    ccu_device_close(device);
}
END_TEST

/* A kernel that fails ends its device, with its op's name; not the other. */
START_TEST(test_cuda_loses_a_device)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    struct ccu_device *other = cuda_open_device(1, NULL);
    void *kernel = make_kernel(device, "crash");
    char *message = NULL;
    void *data = NULL;

    ck_assert_int_eq(cuda_launch(device, kernel, NULL, 0, "gather", &message),
                     HOB_OK);
    ck_assert_int_eq(ccu_device_sync(device), HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(strstr(cuda_logged, "cube-cuda:0 is lost"));
    ck_assert_ptr_nonnull(strstr(cuda_logged, "asked for gather"));
    ck_assert_int_eq(cuda_launch(device, kernel, NULL, 0, "add", &message),
                     HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(message);
    ck_assert_ptr_nonnull(strstr(message, "CUDA_ERROR_ILLEGAL_ADDRESS"));
    ck_assert_ptr_nonnull(strstr(message, "asked for gather"));
    ck_assert_ptr_null(strstr(message, "add"));
    cuda_host.table.mem_free(&cuda_host.table, message);
    ck_assert_int_eq(ccu_device_alloc(device, 1, &data), HOB_ERR_DEVICE);
    ck_assert_int_eq(ccu_device_alloc(other, 1, &data), HOB_OK);
    ck_assert_int_eq(ccu_device_sync(other), HOB_OK);
    ccu_device_free(other, data, 1);
    ccu_runtime.kernel_close(&device->cube, kernel);
    ccu_device_close(other);
    ccu_device_close(device);
}
END_TEST

/* With blocking=yes it is the very op that fails. */
START_TEST(test_cuda_blocking_names_the_op)
{
    struct ccu_device *device = cuda_open_device(0, "{\"blocking\": \"yes\"}");
    void *good = make_kernel(device, "KERNEL");
    void *bad = make_kernel(device, "crash");
    char *message = NULL;

    ck_assert_int_eq(cuda_launch(device, good, NULL, 0, "add", &message),
                     HOB_OK);
    ck_assert_int_eq(cuda_launch(device, bad, NULL, 0, "gather", &message),
                     HOB_ERR_DEVICE);
    ck_assert_ptr_nonnull(message);
    ck_assert_ptr_nonnull(strstr(message, "asked for gather"));
    ck_assert_ptr_null(strstr(message, "add"));
    cuda_host.table.mem_free(&cuda_host.table, message);
    ccu_runtime.kernel_close(&device->cube, good);
    ccu_runtime.kernel_close(&device->cube, bad);
    ccu_device_close(device);
}
END_TEST

/* ---- products ---- */

enum { MOST = 2 * 3 * 8 * 9 };

/* A view of SHAPE whose dimensions lie in ORDER, from the outermost. */
static struct hob_view view_of(void *data, uint32_t dtype, uint32_t rank,
                               const int64_t *shape, const uint32_t *order,
                               int64_t gap)
{
    struct hob_view view = {.data = data,
                            .dtype = (uint8_t)dtype,
                            .rank = (uint8_t)rank};
    int64_t stride = 1;

    for (uint32_t i = rank; i-- > 0;) {
        view.shape[order[i]] = shape[order[i]];
        view.strides[order[i]] = stride;
        stride *= shape[order[i]] + (i + 1 == rank ? gap : 0);
    }
    fake_view_flags(&view);
    return view;
}

static const struct {
    int64_t lhs[4], rhs[4];
    uint32_t lhs_order[4], rhs_order[4];
    int64_t gap;
    int products; /* what cuBLASLt is asked for */
} layouts[] = {
    {{1, 1, 5, 7}, {1, 1, 7, 6}, {0, 1, 2, 3}, {0, 1, 2, 3}, 0, 1},
    {{1, 1, 5, 7}, {1, 1, 7, 6}, {0, 1, 3, 2}, {0, 1, 2, 3}, 0, 1},
    {{1, 1, 5, 7}, {1, 1, 7, 6}, {0, 1, 2, 3}, {0, 1, 3, 2}, 2, 1},
    {{1, 1, 5, 7}, {1, 1, 7, 6}, {0, 1, 3, 2}, {0, 1, 3, 2}, 1, 1},
    {{1, 1, 1, 7}, {1, 1, 7, 6}, {0, 1, 3, 2}, {0, 1, 2, 3}, 0, 1},
    {{1, 1, 5, 1}, {1, 1, 1, 6}, {0, 1, 2, 3}, {0, 1, 3, 2}, 3, 1},
    {{1, 1, 5, 7}, {1, 1, 7, 1}, {0, 1, 2, 3}, {0, 1, 2, 3}, 0, 1},
    {{2, 3, 4, 5}, {2, 3, 5, 6}, {0, 1, 2, 3}, {0, 1, 2, 3}, 0, 1},
    {{2, 3, 4, 5}, {1, 1, 5, 6}, {0, 1, 2, 3}, {0, 1, 2, 3}, 0, 1},
    {{2, 3, 4, 5}, {1, 3, 5, 6}, {0, 1, 2, 3}, {0, 1, 3, 2}, 0, 2},
    {{2, 3, 4, 5}, {2, 1, 5, 6}, {1, 0, 2, 3}, {0, 1, 2, 3}, 0, 2},
};
enum { LAYOUTS = sizeof(layouts) / sizeof(layouts[0]) };

static double number_at(const struct hob_view *view, const int64_t *place)
{
    int64_t at = 0;

    for (uint32_t i = 0; i < view->rank; i++)
        at += view->shape[i] == 1 ? 0 : place[i] * view->strides[i];
    return view->dtype == HOB_DTYPE_F64 ? ((const double *)view->data)[at]
                                        : ((const float *)view->data)[at];
}

static void check_product(const struct hob_view *lhs,
                          const struct hob_view *rhs,
                          const struct hob_view *out)
{
    for (int64_t i = 0; i < hob_view_count(out); i++) {
        int64_t place[4], left[4], right[4], rest = i;
        double sum = 0;

        for (uint32_t d = 4; d-- > 0;) {
            place[d] = rest % out->shape[d];
            rest /= out->shape[d];
        }
        for (int64_t k = 0; k < lhs->shape[3]; k++) {
            memcpy(left, place, sizeof(left));
            memcpy(right, place, sizeof(right));
            left[3] = right[2] = k;
            sum += number_at(lhs, left) * number_at(rhs, right);
        }
        ck_assert_double_eq_tol(number_at(out, place), sum, 1e-5);
    }
}

static void run_product(int index, uint32_t dtype, int products)
{
    struct ccu_device *device = cuda_open_device(0, NULL);
    struct hob_entry entry = cube_matmul_entries.entries[0];
    const int64_t *a = layouts[index].lhs, *b = layouts[index].rhs;
    const int64_t shape[4] = {a[0] > b[0] ? a[0] : b[0],
                              a[1] > b[1] ? a[1] : b[1], a[2], b[3]};
    static double memory[2][MOST];
    struct hob_view views[2];
    struct fake_call fake;

    for (int i = 0; i < MOST; i++)
        for (int side = 0; side < 2; side++) {
            const double value = (i * 7 + side * 5) % 11 - 5;

            if (dtype == HOB_DTYPE_F64)
                memory[side][i] = value;
            else
                ((float *)memory[side])[i] = (float)value;
        }
    views[0] = view_of(memory[0], dtype, 4, a, layouts[index].lhs_order,
                       layouts[index].gap);
    views[1] = view_of(memory[1], dtype, 4, b, layouts[index].rhs_order,
                       layouts[index].gap);
    for (int again = 0; again < 2; again++) {
        fake_call_init(&fake, &cuda_host, "matmul");
        fake_call_view(&fake, &views[0]);
        fake_call_view(&fake, &views[1]);
        fake_call_result(&fake, dtype, 4, shape);
        ck_assert_int_eq(fake_call_run(&fake, &entry, device), HOB_OK);
        ck_assert(fake_tensor_intact(&fake.results[0]));
        check_product(&views[0], &views[1], &fake.results[0].view);
        fake_call_release(&fake);
    }
    /* The second time its plan is there. */
    ck_assert_int_eq(fake_cuda.products, 2 * products);
    ck_assert_int_eq(fake_cuda.heuristics, 1);
    ccu_device_close(device);
}

START_TEST(test_cuda_multiplies)
{
    run_product(_i, HOB_DTYPE_F32, layouts[_i].products);
}
END_TEST

START_TEST(test_cuda_multiplies_f64)
{
    run_product(_i, HOB_DTYPE_F64, layouts[_i].products);
}
END_TEST

static const char *const multiplying[] = {
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtCreate"};
enum { MULTIPLYING = sizeof(multiplying) / sizeof(multiplying[0]) };

/* What cuBLASLt cannot do is for the portable kernel. */
START_TEST(test_cuda_products_fail)
{
    struct ccu_device *device;
    static float memory[2 * 4];
    const struct ccu_matrix matrix = {memory, 2, 1, 4};
    struct ccu_product product = {.dtype = HOB_DTYPE_F32,
                                  .m = 2,
                                  .n = 2,
                                  .k = 2,
                                  .count = 2,
                                  .a = matrix,
                                  .b = matrix,
                                  .c = memory,
                                  .c_batch = 4};
    char *message = NULL;
    int is_pushed;

    if (_i < MULTIPLYING)
        fake_cuda.failing = multiplying[_i];
    fake_cuda.result = 13;
    fake_cuda.has_no_kernel = 1;
    device = cuda_open_device(0, NULL);
    is_pushed = ccu_enter(device);
    ck_assert_int_eq(ccu_blas_multiply(device, &product, &message),
                     HOB_ERR_UNSUPPORTED);
    ck_assert_ptr_null(message);
    ck_assert_int_eq(fake_cuda.products, 0);
    ccu_leave(device, is_pushed);
    ccu_device_close(device);
}
END_TEST

/* ---- checks of elements ---- */

/* Two calls that check at a time, the second of which lowers its flag to 4;
 * nothing is copied. */
START_TEST(test_cuda_flags)
{
    struct hob_call call = {.op_name = "gather", .host = &cuda_host.table};
    struct ccu_device *device = cuda_open_device(0, NULL);
    void *kernel = make_kernel(device, "add");
    struct cube_flag flags[2];
    char *message = NULL;
    uint32_t bad;

    for (int round = 0; round < 3; round++) {
        const int waits = fake_cuda.waits;

        for (int i = 0; i < 2; i++)
            ck_assert_int_eq(cube_flag_begin(&flags[i], &device->cube, &call),
                             HOB_OK);
        ck_assert_ptr_ne(flags[0].data, flags[1].data);
        ck_assert_int_eq(
            cuda_launch(device, kernel, flags[1].data, -5, "gather", &message),
            HOB_OK);
        for (int i = 0; i < 2; i++) {
            ck_assert_int_eq(
                cube_flag_end(&flags[i], &device->cube, &call, HOB_OK, &bad),
                HOB_OK);
            ck_assert_uint_eq(bad, i ? 4 : CUBE_FLAG_NONE);
        }
        ck_assert_int_eq(fake_cuda.waits, waits + 2);
    }
    /* A call that failed: what it lowered is not the next one's. */
    ck_assert_int_eq(cube_flag_begin(&flags[0], &device->cube, &call), HOB_OK);
    ck_assert_int_eq(
        cuda_launch(device, kernel, flags[0].data, -5, "gather", &message),
        HOB_OK);
    ck_assert_int_eq(
        cube_flag_end(&flags[0], &device->cube, &call, HOB_ERR_MEMORY, &bad),
        HOB_ERR_MEMORY);
    ck_assert_uint_eq(bad, CUBE_FLAG_NONE);
    ck_assert_int_eq(cube_flag_begin(&flags[0], &device->cube, &call), HOB_OK);
    ck_assert_int_eq(
        cube_flag_end(&flags[0], &device->cube, &call, HOB_OK, &bad), HOB_OK);
    ck_assert_uint_eq(bad, CUBE_FLAG_NONE);
    ck_assert_int_eq(cube_flag_begin(&flags[1], &device->cube, &call), HOB_OK);
    fake_cuda.failing = "cuStreamSynchronize";
    fake_cuda.result = CCU_ILLEGAL_ADDRESS;
    ck_assert_int_eq(
        cube_flag_end(&flags[1], &device->cube, &call, HOB_OK, &bad),
        HOB_ERR_DEVICE);
    fake_cuda.failing = NULL;
    ccu_runtime.kernel_close(&device->cube, kernel);
    ccu_device_close(device);
}
END_TEST

START_TEST(test_cuda_flags_without_memory)
{
    struct hob_call call = {.op_name = "gather", .host = &cuda_host.table};
    struct ccu_device *device = cuda_open_device(0, NULL);
    struct cube_flag flag;
    uint32_t bad;

    fake_cuda.failing = "cuMemHostAlloc";
    fake_cuda.result = CCU_OUT_OF_MEMORY;
    ck_assert_int_eq(cube_flag_begin(&flag, &device->cube, &call),
                     HOB_ERR_MEMORY);
    ck_assert_ptr_nonnull(strstr(cuda_host.message, "gather"));
    fake_cuda.failing = NULL;
    ck_assert_int_eq(cube_flag_begin(&flag, &device->cube, &call), HOB_OK);
    ck_assert_int_eq(cube_flag_end(&flag, &device->cube, &call, HOB_OK, &bad),
                     HOB_OK);
    ccu_device_close(device);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("CUDA runtime");
    TCase *tc = tcase_create("runtime");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(tc, cuda_setup, cuda_teardown);
    tcase_add_test(tc, test_cuda_tells_its_devices);
    tcase_add_test(tc, test_cuda_without_devices);
    tcase_add_test(tc, test_cuda_hidden_devices);
    tcase_add_test(tc, test_cuda_refuses_old_devices);
    tcase_add_test(tc, test_cuda_reads_options);
    tcase_add_loop_test(tc, test_cuda_without_a_function, 0, DRIVER_NAMES);
    tcase_add_loop_test(tc, test_cuda_opening_fails, 0, OPENING);
    tcase_add_test(tc, test_cuda_sizes_of_blocks);
    tcase_add_test(tc, test_cuda_memory_is_used_again);
    tcase_add_test(tc, test_cuda_lists_do_not_grow);
    tcase_add_test(tc, test_cuda_out_of_memory);
    tcase_add_loop_test(tc, test_cuda_copies, 0, SIZES);
    tcase_add_test(tc, test_cuda_large_downloads_go_aside);
    tcase_add_loop_test(tc, test_cuda_copies_fail, 0, COPYING);
    tcase_add_test(tc, test_cuda_runs_kernels);
    tcase_add_test(tc, test_cuda_says_what_does_not_compile);
    tcase_add_test(tc, test_cuda_compiles_with_an_old_nvrtc);
    tcase_add_loop_test(tc, test_cuda_compiling_fails, 0, COMPILING);
    tcase_add_test(tc, test_cuda_without_nvrtc);
    tcase_add_test(tc, test_cuda_loses_a_device);
    tcase_add_test(tc, test_cuda_blocking_names_the_op);
    tcase_add_loop_test(tc, test_cuda_multiplies, 0, LAYOUTS);
    tcase_add_loop_test(tc, test_cuda_multiplies_f64, 0, LAYOUTS);
    tcase_add_loop_test(tc, test_cuda_products_fail, 0, MULTIPLYING + 1);
    tcase_add_test(tc, test_cuda_flags);
    tcase_add_test(tc, test_cuda_flags_without_memory);
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
