/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Vulkan runtime on a driver that does what a test wants: devices of all
 * kinds, missing functions, failures of every call, memory that runs out,
 * devices that are lost; and whether all work waits for what it must.
 */
#include "fake_host.h"
#include "fake_vulkan.h"
#include "tmp_dir.h"
#include "hob_check.h"

#include <cube-vulkan/device.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_host host;
static void *(*host_alloc)(const struct hob_host *table, uint64_t bytes);
static uint32_t alloc_count, alloc_fails_at; /* 0: none does */
static char logged[4096];
static struct cvk_instance *instance;
static struct cube_device *device;
static char *message;

static void *counted_alloc(const struct hob_host *table, uint64_t bytes)
{
    return ++alloc_count == alloc_fails_at ? NULL : host_alloc(table, bytes);
}

static void log_write(const struct hob_host *table, int32_t severity,
                      const char *format, ...)
{
    va_list list;

    (void)table;
    (void)severity;
    va_start(list, format);
    vsnprintf(logged, sizeof(logged), format, list);
    va_end(list);
}

static void forget_message(void)
{
    host.table.mem_free(&host.table, message);
    message = NULL;
}

static void begin(VkPhysicalDeviceType type)
{
    fake_vulkan_reset(type);
    fake_host_init(&host, 1);
    host_alloc = host.table.mem_alloc;
    host.table.mem_alloc = counted_alloc;
    host.table.log_write = log_write;
    alloc_count = alloc_fails_at = 0;
    logged[0] = '\0';
    instance = cvk_instance_new(&host.table);
    ck_assert_ptr_nonnull(instance);
    instance->get = fake_vulkan_get;
}

static hob_status open_device(uint32_t ordinal)
{
    void *opened = NULL;
    hob_status status =
        cvk_device_open(instance, ordinal, NULL, &opened, &message);

    device = opened;
    ck_assert_int_eq(!status, device != NULL);
    return status;
}

static void end(void)
{
    if (device)
        cvk_device_close(device);
    device = NULL;
    cvk_instance_free(instance);
    forget_message();
    ck_assert_uint_eq(host.live_blocks, 0);
    ck_assert_int_eq(fake_vulkan.live, 0);
    ck_assert_uint_eq(fake_vulkan.held_bytes, 0);
}

#define ck_assert_says(part)                                                   \
    ck_assert_msg(message &&strstr(message, part), "not \"%s\": %s", part,     \
                  message)

/* ---- which devices there are ---- */

START_TEST(test_devices_are_in_order)
{
    static const VkPhysicalDeviceType types[FAKE_DEVICES] = {
        VK_PHYSICAL_DEVICE_TYPE_CPU,
        VK_PHYSICAL_DEVICE_TYPE_OTHER,
        VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU,
        VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
        VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
        VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU};
    static const char *const names[FAKE_DEVICES] = {
        "Fake 5", "Fake 4", "Fake 2", "Fake 0", "Fake 1", "Fake 3"};
    uint32_t count = 0;

    begin(VK_PHYSICAL_DEVICE_TYPE_CPU);
    fake_vulkan.device_count = FAKE_DEVICES;
    for (uint32_t i = 0; i < FAKE_DEVICES; i++)
        fake_vulkan.devices[i].type = types[i];
    fake_vulkan.devices[3].lacks = "timelineSemaphore 8Bit";
    ck_assert_int_eq(cvk_device_count(instance, &count), HOB_OK);
    ck_assert_uint_eq(count, FAKE_DEVICES);
    for (uint32_t i = 0; i < FAKE_DEVICES; i++) {
        struct hob_device_info info;

        ck_assert_int_eq(cvk_device_info(instance, i, &info),
                         i == 5 ? HOB_ERR_UNSUPPORTED : HOB_OK);
        ck_assert_str_eq(info.name, names[i]);
        ck_assert_uint_eq(info.memory_bytes, 32 << 20);
    }
    ck_assert_int_eq(open_device(5), HOB_ERR_UNSUPPORTED);
    ck_assert_says("Fake 3 cannot be used; it lacks timelineSemaphore, "
                   "storageBuffer8BitAccess");
    forget_message();
    ck_assert_int_eq(open_device(6), HOB_ERR_DEVICE);
    ck_assert_says("there is no device 6; Vulkan has 6");
    end();
}
END_TEST

static const struct lacking {
    const char *lacks;
    const char *message;
    uint32_t version;
} lackings[] = {
    {"bufferDeviceAddress", "it lacks bufferDeviceAddress", 0},
    {"timelineSemaphore", "it lacks timelineSemaphore", 0},
    {"8Bit", "it lacks storageBuffer8BitAccess", 0},
    {"16Bit", "it lacks storageBuffer16BitAccess", 0},
    {"subgroup", "it lacks basic, arithmetic, ballot and shuffle", 0},
    {"queue", "it lacks a queue for compute", 0},
    {NULL, "it lacks Vulkan 1.2 (its driver has 1.1)", VK_API_VERSION_1_1},
};

START_TEST(test_what_a_device_lacks_is_said)
{
    const struct lacking *lacking = &lackings[_i];

    begin(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    fake_vulkan.devices[0].lacks = lacking->lacks;
    fake_vulkan.devices[0].version = lacking->version;
    ck_assert_int_eq(open_device(0), HOB_ERR_UNSUPPORTED);
    ck_assert_says(lacking->message);
    end();
}
END_TEST

START_TEST(test_optional_features_are_limits)
{
    begin(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    fake_vulkan.devices[0].groups = UINT32_MAX;
    ck_assert_int_eq(open_device(0), HOB_OK);
    ck_assert_uint_eq(device->limits.has_i64, 1);
    ck_assert_uint_eq(device->limits.has_f64, 0);
    ck_assert_uint_eq(device->limits.has_f16, 0);
    ck_assert_uint_eq(device->limits.groups, INT32_MAX);
    ck_assert_uint_eq(device->limits.subgroup_size, 32);
    ck_assert_uint_eq(device->limits.param_bytes, 128);
    end();
}
END_TEST

START_TEST(test_no_driver_is_said)
{
    uint32_t count = 1;

    begin(VK_PHYSICAL_DEVICE_TYPE_CPU);
    if (_i == 0)
        fake_vulkan_fail("vkCreateInstance", 1, VK_ERROR_INCOMPATIBLE_DRIVER);
    else if (_i == 1)
        fake_vulkan_fail("vkEnumeratePhysicalDevices", 1,
                         VK_ERROR_INITIALIZATION_FAILED);
    else
        fake_vulkan.device_count = 0;
    ck_assert_int_eq(cvk_device_count(instance, &count), HOB_OK);
    ck_assert_uint_eq(count, 0);
    ck_assert_int_eq(open_device(0), HOB_ERR_DEVICE);
    ck_assert_says(_i == 0   ? "no driver that works (vkCreateInstance: "
                               "VK_ERROR_INCOMPATIBLE_DRIVER); install"
                   : _i == 1 ? "VK_ERROR_INITIALIZATION_FAILED"
                             : "install the GPU's driver");
    end();
}
END_TEST

START_TEST(test_validation_needs_its_layer)
{
    void *opened = &opened;

    begin(VK_PHYSICAL_DEVICE_TYPE_CPU);
    ck_assert_int_eq(cvk_device_open(instance, 0, "{\"validation\": \"yes\"}",
                                     &opened, &message),
                     HOB_ERR_DEVICE);
    ck_assert_ptr_null(opened);
    ck_assert_says("VK_LAYER_KHRONOS_validation is not installed");
    end();
}
END_TEST

static const struct bad_options {
    const char *text;
    const char *message;
} bad_options[] = {
    {"[]", "not a JSON object"},
    {"{\"cache\": \"/tmp\"}", "unknown option \"cache\""},
    {"{\"cache_dir\": \"here\"}", "option \"cache_dir\" must be the absolute"},
    {"{\"cache_limit\": \"some\"}", "\"cache_limit\" must be a number"},
    {"{\"cache_limit\": \"1234567890\"}", "must be a number of at most 9"},
    {"{\"dump_dir\": 3}", "option \"dump_dir\" must be the absolute"},
    {"{\"validation\": \"maybe\"}", "must be \"yes\" or \"no\""},
    {"{\"validation\" \"yes\"}", "no \":\" after option"},
    {"{\"dump_dir\": \"/a\\u0041\"}", "must be the absolute path"},
    {"{validation: 1}", "malformed at"},
};

START_TEST(test_bad_options_are_named)
{
    void *opened = &opened;

    begin(VK_PHYSICAL_DEVICE_TYPE_CPU);
    ck_assert_int_eq(
        cvk_device_open(instance, 0, bad_options[_i].text, &opened, &message),
        HOB_ERR_ARGUMENT);
    ck_assert_ptr_null(opened);
    ck_assert_says(bad_options[_i].message);
    end();
}
END_TEST

/* ---- cooperative matrices ---- */

/* What the driver multiplies, of matrices of SIDES, and what comes of it. */
static const struct matrices {
    VkComponentTypeKHR factors, sums;
    uint32_t m, n, k;
    VkScopeKHR scope;
    uint32_t dtypes;
} matrices[] = {
    {VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR, 16, 16, 16,
     VK_SCOPE_SUBGROUP_KHR, HOB_DTYPE_BIT(HOB_DTYPE_F16)},
    {VK_COMPONENT_TYPE_BFLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR, 16, 16, 16,
     VK_SCOPE_SUBGROUP_KHR, HOB_DTYPE_BIT(HOB_DTYPE_BF16)},
    {VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT16_KHR, 16, 16, 16,
     VK_SCOPE_SUBGROUP_KHR, 0},
    {VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR, 16, 8, 16,
     VK_SCOPE_SUBGROUP_KHR, 0},
    {VK_COMPONENT_TYPE_FLOAT16_KHR, VK_COMPONENT_TYPE_FLOAT32_KHR, 16, 16, 16,
     (VkScopeKHR)2, 0}, /* of a workgroup */
};
enum { MATRICES = sizeof(matrices) / sizeof(matrices[0]) };

static VKAPI_ATTR VkResult VKAPI_CALL
list_matrices(VkPhysicalDevice handle, uint32_t *count,
              VkCooperativeMatrixPropertiesKHR *out)
{
    const struct matrices *one = (const struct matrices *)handle;

    ck_assert_uint_ge(*count, 1);
    ck_assert_int_eq(out[0].sType,
                     VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR);
    *count = 1;
    out[0].MSize = one->m;
    out[0].NSize = one->n;
    out[0].KSize = one->k;
    out[0].AType = out[0].BType = one->factors;
    out[0].CType = out[0].ResultType = one->sums;
    out[0].scope = one->scope;
    return VK_SUCCESS;
}

START_TEST(test_matrices_that_kernels_can_use)
{
    struct cvk_instance_api api = {0};
    struct cvk_matrix_features features = {0};
    VkPhysicalDevice handle = (VkPhysicalDevice)&matrices[_i];

    ck_assert_uint_eq(cvk_matrices_read(&api, handle, &features), 0);
    features.matrices.cooperativeMatrix = VK_TRUE;
    features.bfloat16.shaderBFloat16Type = VK_TRUE;
    ck_assert_uint_eq(cvk_matrices_read(&api, handle, &features), 0);
    api.GetPhysicalDeviceCooperativeMatrixPropertiesKHR = list_matrices;
    ck_assert_uint_eq(cvk_matrices_read(&api, handle, &features),
                      matrices[_i].dtypes & ~HOB_DTYPE_BIT(HOB_DTYPE_BF16));
    features.bfloat16.shaderBFloat16CooperativeMatrix = VK_TRUE;
    ck_assert_uint_eq(cvk_matrices_read(&api, handle, &features),
                      matrices[_i].dtypes);
}
END_TEST

/* ---- the driver's cache ---- */

/* Run a command of the shell on FOLDER, which is $d there. */
static void shell(const char *folder, const char *command)
{
    char text[512];

    snprintf(text, sizeof(text), "d=%s; %s", folder, command);
    ck_assert_int_eq(system(text), 0);
}

static void open_with_cache(const char *folder, uint8_t uuid)
{
    static const uint32_t words[] = {0x07230203, 0, 0, 0, 0};
    struct cube_source source = {
        .name = "add", .text = "", .group_size = 64, .param_bytes = 128};
    void *opened = NULL, *kernel = NULL;
    char options[512];

    begin(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    fake_vulkan.devices[0].uuid = uuid;
    snprintf(options, sizeof(options), "{\"cache_dir\": \"%s\"}", folder);
    ck_assert_int_eq(cvk_device_open(instance, 0, options, &opened, &message),
                     HOB_OK);
    device = opened;
    ck_assert_int_eq(device->runtime->kernel_open(device, &source, words,
                                                  sizeof(words), &kernel,
                                                  &message),
                     HOB_OK);
    device->runtime->kernel_close(device, kernel);
}

START_TEST(test_what_the_driver_compiled_is_kept)
{
    struct tmp_dir folder;

    tmp_dir_make(&folder);
    open_with_cache(folder.path, 1);
    ck_assert_uint_eq(fake_vulkan.cache_bytes, 0);
    end();
    open_with_cache(folder.path, 1);
    ck_assert_uint_eq(fake_vulkan.cache_bytes, 100);
    end();
    open_with_cache(folder.path, 2); /* another driver */
    ck_assert_uint_eq(fake_vulkan.cache_bytes, 0);
    end();
    shell(folder.path, "for f in $d/cube-vulkan/*; do printf x | "
                       "dd of=$f bs=1 seek=150 conv=notrunc status=none; done");
    open_with_cache(folder.path, 1);
    ck_assert_uint_eq(fake_vulkan.cache_bytes, 0);
    end();
    open_with_cache("/nonexistent", 1);
    ck_assert_uint_eq(fake_vulkan.cache_bytes, 0);
    end();
    shell(folder.path, "rm -r -f $d");
}
END_TEST

/* ---- missing functions ---- */

static const char *const functions[] = {
#define NAME(name) "vk" #name,
#define CVK_GLOBAL NAME
#define CVK_INSTANCE NAME
#define CVK_DEVICE NAME
#include <cube-vulkan/symbols.def>
#undef NAME
};

enum { FUNCTIONS = sizeof(functions) / sizeof(functions[0]) };

START_TEST(test_a_missing_function_is_named)
{
    begin(VK_PHYSICAL_DEVICE_TYPE_CPU);
    fake_vulkan.missing = functions[_i];
    ck_assert_int_eq(open_device(0), HOB_ERR_DEVICE);
    ck_assert_says(functions[_i]);
    if (!strcmp(functions[_i], "vkDestroyInstance"))
        fake_vulkan_drop(fake_vulkan.instance);
    if (!strcmp(functions[_i], "vkDestroyDevice"))
        fake_vulkan_drop(fake_vulkan.device);
    end();
}
END_TEST

/* ---- work to do ---- */

static void *take(uint64_t bytes)
{
    void *data = NULL;

    ck_assert_int_eq(device->runtime->alloc(device, bytes, &data), HOB_OK);
    return data;
}

static hob_status open_kernel(void **out_kernel)
{
    static const uint32_t words[] = {0x07230203, 0, 0, 0, 0};
    struct cube_source source = {
        .name = "add", .text = "", .group_size = 64, .param_bytes = 128};

    forget_message();
    return device->runtime->kernel_open(device, &source, words, sizeof(words),
                                        out_kernel, &message);
}

/* to = a + scale * b, of COUNT floats; the parameters lie in memory if they
 * are more than the device takes. */
static hob_status add(void *kernel, void *to, void *a, void *b, int32_t count,
                      float scale, uint32_t param_bytes)
{
    const uint32_t bytes = 4u * (uint32_t)count;
    struct cube_range ranges[] = {
        {to, bytes, 1, 0}, {a, bytes, 0, 0}, {b, bytes, 0, 0}};
    struct {
        struct fake_params params;
        char rest[1024];
    } block;
    struct cube_launch launch = {.op_name = "add",
                                 .groups = 3,
                                 .range_count = 3,
                                 .ranges = ranges,
                                 .params = &block,
                                 .param_bytes = param_bytes};

    memset(&block, 0, sizeof(block));
    block.params = (struct fake_params){(uintptr_t)to, (uintptr_t)a,
                                        (uintptr_t)b, count, scale};
    forget_message();
    return device->runtime->launch(device, kernel, &launch, &message);
}

/* Everything once: HOB_OK if nothing failed, and then the result is right. */
static hob_status work_once(void)
{
    enum { COUNT = 30000, LAUNCHES = 120 };
    const struct cube_runtime *runtime = device->runtime;
    float values[COUNT], got[COUNT];
    void *kernel = NULL, *x = NULL, *y = NULL;
    hob_status status = open_kernel(&kernel);

    for (int i = 0; i < COUNT; i++)
        values[i] = (float)i;
    if (!status)
        status = runtime->alloc(device, sizeof(values), &x);
    if (!status)
        status = runtime->alloc(device, sizeof(values), &y);
    if (!status)
        status = runtime->upload(device, x, values, sizeof(values));
    if (!status)
        status = add(kernel, y, x, x, COUNT, 0, 600);
    if (!status)
        status = runtime->upload(device, x, values, 4 * 1000);
    for (int i = 0; i < LAUNCHES && !status; i++)
        status = add(kernel, y, y, x, COUNT, 1, 40);
    if (!status)
        status = runtime->wait(device);
    if (!status)
        status = runtime->download(device, got, y, sizeof(got));
    for (int i = 0; i < COUNT && !status; i++)
        ck_assert_float_eq(got[i], (float)i * (LAUNCHES + 1));
    runtime->free(device, x, sizeof(values));
    runtime->free(device, y, sizeof(values));
    runtime->kernel_close(device, kernel);
    return status;
}

static const VkPhysicalDeviceType both_types[] = {
    VK_PHYSICAL_DEVICE_TYPE_CPU, VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU};

/* Let call 1, 2, ... of all that is done fail. */
START_TEST(test_every_call_may_fail)
{
    static const VkResult results[] = {VK_ERROR_DEVICE_LOST,
                                       VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                       VK_ERROR_OUT_OF_HOST_MEMORY};
    const VkResult result = results[_i / 2];
    uint32_t at, good = 0, bad = 0;

    for (at = 1;; at++) {
        hob_status status;

        begin(both_types[_i % 2]);
        fake_vulkan.is_slow = 1;
        fake_vulkan_fail(NULL, at, result);
        status = open_device(0);
        if (!status)
            status = work_once();
        if (status)
            bad++;
        else
            good++;
        if (status && result == VK_ERROR_DEVICE_LOST && device &&
            ((struct cvk_device *)device)->queue.is_lost)
            ck_assert_int_eq(work_once(), HOB_ERR_DEVICE);
        if (fake_vulkan.calls < at) { /* all calls have been tried */
            ck_assert_int_eq(status, HOB_OK);
            end();
            break;
        }
        end();
    }
    ck_assert_uint_gt(bad, 20);
    ck_assert_uint_gt(good, 0);
}
END_TEST

/* The same for memory of the host's. */
START_TEST(test_every_block_may_be_refused)
{
    uint32_t at;

    for (at = 1;; at++) {
        hob_status status;

        begin(both_types[_i]);
        alloc_count = 0;
        alloc_fails_at = at;
        status = open_device(0);
        if (!status)
            status = work_once();
        ck_assert_msg(!status ||
                          (status == HOB_ERR_MEMORY && alloc_count >= at),
                      "block %u: status %d", at, (int)status);
        if (alloc_count < at) {
            end();
            break;
        }
        alloc_fails_at = 0;
        if (device) /* the device still works */
            ck_assert_int_eq(work_once(), HOB_OK);
        end();
    }
    ck_assert_uint_gt(at, 6);
}
END_TEST

/* ---- lost devices ---- */

START_TEST(test_a_lost_device_names_the_op)
{
    static const char *const calls[] = {"vkQueueSubmit", "vkWaitSemaphores",
                                        "vkGetSemaphoreCounterValue"};
    const struct cube_runtime *runtime;
    struct cube_device *lost, *other;
    void *kernel = NULL, *x;
    float value = 1, got = 0;

    /* Others are looked at until they are done. */
    begin(strcmp(calls[_i], "vkWaitSemaphores") == 0
              ? VK_PHYSICAL_DEVICE_TYPE_CPU
              : VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    fake_vulkan.device_count = 2;
    fake_vulkan.is_slow = 1;
    ck_assert_int_eq(open_device(1), HOB_OK);
    other = device;
    ck_assert_int_eq(open_device(0), HOB_OK);
    lost = device;
    runtime = device->runtime;
    ck_assert_int_eq(open_kernel(&kernel), HOB_OK);
    x = take(4);
    ck_assert_int_eq(runtime->upload(device, x, &value, 4), HOB_OK);
    fake_vulkan_fail(calls[_i], 1, VK_ERROR_DEVICE_LOST);
    for (int i = 0; i < 40; i++)
        if (add(kernel, x, x, x, 1, 1, 40))
            break;
    ck_assert_int_eq(runtime->download(device, &got, x, 4), HOB_ERR_DEVICE);
    /* Whatever is asked for from now on. */
    ck_assert_int_eq(add(kernel, x, x, x, 1, 1, 40), HOB_ERR_DEVICE);
    ck_assert_says("cube-vulkan:0 (Fake 0) is lost: vk");
    ck_assert_says(calls[_i]);
    ck_assert_says("VK_ERROR_DEVICE_LOST");
    ck_assert_says(" launches (add); nothing runs on it");
    ck_assert_str_eq(logged, message);
    ck_assert_int_eq(runtime->upload(device, x, &value, 4), HOB_ERR_DEVICE);
    ck_assert_int_eq(runtime->wait(device), HOB_ERR_DEVICE);
    ck_assert_int_eq(runtime->alloc(device, 4, &x), HOB_ERR_DEVICE);
    ck_assert_ptr_null(x);
    ck_assert_int_eq(open_kernel(&x), HOB_ERR_DEVICE);
    runtime->kernel_close(device, kernel);
    /* The other one does not notice. */
    device = other;
    ck_assert_int_eq(work_once(), HOB_OK);
    cvk_device_close(lost);
    /* Nor what is opened anew. */
    ck_assert_int_eq(open_device(0), HOB_OK);
    ck_assert_int_eq(work_once(), HOB_OK);
    cvk_device_close(device);
    device = other;
    end();
}
END_TEST

/* ---- memory ---- */

START_TEST(test_memory_that_runs_out)
{
    enum { BLOCKS = 64, BYTES = 1 << 20 };
    const struct cube_runtime *runtime;
    void *blocks[BLOCKS], *large;
    int count = 0;

    begin(both_types[_i]);
    ck_assert_int_eq(open_device(0), HOB_OK);
    runtime = device->runtime;
    while (count < BLOCKS && !runtime->alloc(device, BYTES, &blocks[count]))
        count++;
    /* 32 MiB, less what the runtime itself needs. */
    ck_assert_int_ge(count, 24);
    ck_assert_int_le(count, 32);
    ck_assert_ptr_null(blocks[count]);
    ck_assert_msg(strstr(logged, "no memory for 1048576 bytes") &&
                      strstr(logged, "bytes are in use") &&
                      strstr(logged, "free in one piece"),
                  "%s", logged);
    ck_assert_int_eq(runtime->alloc(device, UINT64_C(33) << 20, &large),
                     HOB_ERR_MEMORY);
    /* What is given back is one piece again, over chunks' borders by trim. */
    for (int i = 0; i < count; i++)
        runtime->free(device, blocks[i], BYTES);
    ck_assert_int_eq(runtime->alloc(device, UINT64_C(24) << 20, &large),
                     HOB_OK);
    runtime->free(device, large, UINT64_C(24) << 20);
    cvk_device_trim(device);
    ck_assert_int_eq(work_once(), HOB_OK);
    end();
}
END_TEST

/* For use_and_free(). */
static void *used_kernel, *used;
enum { USED = 1000 };

static void use_and_free(void)
{
    ck_assert_int_eq(add(used_kernel, used, used, used, USED, 1, 40), HOB_OK);
    device->runtime->free(device, used, USED * sizeof(float));
}

/* What another thread uses and lets go of while a trim waits is still used by
 * the device after that. */
START_TEST(test_trim_leaves_what_is_freed_meanwhile)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    const float values[USED] = {0};
    void *other;

    begin(VK_PHYSICAL_DEVICE_TYPE_CPU); /* which waits without looking */
    fake_vulkan.is_slow = 1;
    ck_assert_int_eq(open_device(0), HOB_OK);
    ck_assert_int_eq(open_kernel(&used_kernel), HOB_OK);
    used = take(sizeof(values));
    other = take(sizeof(values));
    ck_assert_int_eq(
        device->runtime->upload(device, used, values, sizeof(values)), HOB_OK);
    ck_assert_int_eq(add(used_kernel, other, used, used, USED, 1, 40), HOB_OK);
    device->runtime->free(device, other, sizeof(values));
    fake_vulkan.meanwhile = use_and_free;
    cvk_device_trim(device);
    ck_assert_ptr_null(fake_vulkan.meanwhile);
    cvk_device_memory_stats(device, &stats);
    ck_assert_uint_gt(stats.reserved_bytes, 0);
    ck_assert_int_eq(device->runtime->wait(device), HOB_OK);
    cvk_device_trim(device);
    cvk_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.reserved_bytes, 0);
    device->runtime->kernel_close(device, used_kernel);
    end();
}
END_TEST

/* More than the driver gives at a time is refused before it is asked, and the
 * core can say how much that is. */
START_TEST(test_the_most_of_a_block_is_told)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    void *data = NULL;
    uint64_t asked;

    begin(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    fake_vulkan.devices[0].alloc_bytes = 1 << 20;
    ck_assert_int_eq(open_device(0), HOB_OK);
    cvk_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.block_most, 1 << 20);
    asked = stats.system_count;
    ck_assert_int_eq(cvk_device_alloc(device, (1 << 20) + 1, &data),
                     HOB_ERR_MEMORY);
    ck_assert_ptr_null(data);
    cvk_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.system_count, asked);
    ck_assert_int_eq(cvk_device_alloc(device, 1 << 20, &data), HOB_OK);
    cvk_device_free(device, data, 1 << 20);
    end();
}
END_TEST

START_TEST(test_memory_is_accounted_for)
{
    enum { BLOCKS = 400, ROUNDS = 20000 };
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    const struct cube_runtime *runtime;
    struct {
        char *data;
        uint64_t bytes;
    } blocks[BLOCKS];
    uint64_t seed = 1, in_use = 0, peak = 0, taken = 0;

    begin(VK_PHYSICAL_DEVICE_TYPE_CPU);
    fake_vulkan.devices[0].memory_bytes = UINT64_C(256) << 20;
    ck_assert_int_eq(open_device(0), HOB_OK);
    runtime = device->runtime;
    memset(blocks, 0, sizeof(blocks));
    for (int round = 0; round < ROUNDS; round++) {
        uint32_t i, k;
        void *data;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        i = (uint32_t)(seed >> 33) % BLOCKS;
        if (blocks[i].data) {
            /* Nobody has written to it in between. */
            ck_assert_int_eq(blocks[i].data[0], (char)i);
            ck_assert_int_eq(blocks[i].data[blocks[i].bytes - 1], (char)i);
            runtime->free(device, blocks[i].data, blocks[i].bytes);
            in_use -= blocks[i].bytes;
            blocks[i].data = NULL;
            continue;
        }
        k = (uint32_t)(seed >> 20) % 19;
        blocks[i].bytes = (seed >> 40) % (UINT64_C(2) << k) + 1;
        data = take(blocks[i].bytes);
        ck_assert_uint_eq((uintptr_t)data % CVK_MEMORY_GRAIN, 0);
        blocks[i].data = data;
        blocks[i].data[0] = (char)i;
        blocks[i].data[blocks[i].bytes - 1] = (char)i;
        in_use += blocks[i].bytes;
        peak = in_use > peak ? in_use : peak;
        taken++;
        cvk_device_memory_stats(device, &stats);
        ck_assert_uint_eq(stats.in_use_bytes, in_use);
        ck_assert_uint_eq(stats.peak_bytes, peak);
        ck_assert_uint_eq(stats.block_count, taken);
        ck_assert_uint_le(stats.in_use_bytes + stats.padding_bytes,
                          stats.reserved_bytes);
        ck_assert_uint_lt(stats.padding_bytes, BLOCKS * CVK_MEMORY_GRAIN);
    }
    cvk_device_reset_peak(device);
    cvk_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.peak_bytes, in_use);
    ck_assert_uint_le(stats.system_count, 8);
    for (int i = 0; i < BLOCKS; i++)
        runtime->free(device, blocks[i].data, blocks[i].bytes);
    cvk_device_trim(device);
    cvk_device_memory_stats(device, &stats);
    ck_assert_uint_eq(stats.in_use_bytes, 0);
    ck_assert_uint_eq(stats.padding_bytes, 0);
    ck_assert_uint_eq(stats.reserved_bytes, 0);
    end();
}
END_TEST

/* ---- order ---- */

/* Random launches and copies on few tensors, beside the same on the host. The
 * driver runs them as late as it may. */
START_TEST(test_work_is_in_order)
{
    enum { TENSORS = 6, COUNT = 70, STEPS = 3000 };
    const struct cube_runtime *runtime;
    float expected[TENSORS][COUNT], got[COUNT];
    char *tensors[TENSORS];
    void *kernel = NULL;
    uint64_t seed = (uint64_t)_i + 1;

    begin(both_types[_i % 2]);
    fake_vulkan.is_slow = _i / 2;
    ck_assert_int_eq(open_device(0), HOB_OK);
    runtime = device->runtime;
    ck_assert_int_eq(open_kernel(&kernel), HOB_OK);
    memset(expected, 0, sizeof(expected));
    for (int i = 0; i < TENSORS; i++) {
        tensors[i] = take(sizeof(got));
        ck_assert_int_eq(
            runtime->upload(device, tensors[i], expected[i], sizeof(got)),
            HOB_OK);
    }
    for (int step = 0; step < STEPS; step++) {
        int to, a, b, what;

        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        to = (int)(seed >> 33) % TENSORS;
        a = (int)(seed >> 36) % TENSORS;
        b = (int)(seed >> 39) % TENSORS;
        what = (int)(seed >> 42) % 100;
        if (what < 5) { /* a part of it, from the host */
            for (int i = 0; i < COUNT; i++)
                got[i] = (float)((step * 31 + i) % 17);
            memcpy(expected[to] + 7, got, 4 * 50);
            ck_assert_int_eq(
                runtime->upload(device, tensors[to] + 28, got, 4 * 50), HOB_OK);
        } else if (what < 7) {
            ck_assert_int_eq(
                runtime->download(device, got, tensors[to], sizeof(got)),
                HOB_OK);
            ck_assert_mem_eq(got, expected[to], sizeof(got));
        } else if (what < 10) { /* memory that others still use */
            void *fresh;

            runtime->free(device, tensors[to], sizeof(got));
            fresh = take(sizeof(got));
            tensors[to] = fresh;
            ck_assert_int_eq(
                runtime->upload(device, tensors[to], expected[a], sizeof(got)),
                HOB_OK);
            memmove(expected[to], expected[a], sizeof(got));
        } else {
            ck_assert_int_eq(add(kernel, tensors[to], tensors[a], tensors[b],
                                 COUNT, 0.5f, what < 50 ? 40 : 600),
                             HOB_OK);
            for (int i = 0; i < COUNT; i++) {
                expected[to][i] = expected[a][i] + 0.5f * expected[b][i];
                if (expected[to][i] > 1e30f)
                    expected[to][i] = 0;
            }
        }
        if (expected[to][0] > 1e20f || expected[to][8] > 1e20f) {
            memset(expected[to], 0, sizeof(got));
            ck_assert_int_eq(
                runtime->upload(device, tensors[to], expected[to], sizeof(got)),
                HOB_OK);
        }
    }
    for (int i = 0; i < TENSORS; i++) {
        ck_assert_int_eq(
            runtime->download(device, got, tensors[i], sizeof(got)), HOB_OK);
        ck_assert_mem_eq(got, expected[i], sizeof(got));
        runtime->free(device, tensors[i], sizeof(got));
    }
    ck_assert_uint_eq(fake_vulkan.races, 0);
    ck_assert_uint_le(fake_vulkan.max_dispatches, CVK_BATCH_LAUNCHES);
    runtime->kernel_close(device, kernel);
    end();
}
END_TEST

START_TEST(test_only_what_must_waits)
{
    enum { PAIRS = 20 };
    void *kernel = NULL, *from[PAIRS], *to[PAIRS];

    begin(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    fake_vulkan.is_slow = 1;
    ck_assert_int_eq(open_device(0), HOB_OK);
    ck_assert_int_eq(open_kernel(&kernel), HOB_OK);
    for (int i = 0; i < PAIRS; i++) {
        from[i] = take(400);
        to[i] = take(400);
    }
    for (int i = 0; i < PAIRS; i++) /* one input, many outputs: no barrier */
        ck_assert_int_eq(add(kernel, to[i], from[0], from[1], 100, 1, 40),
                         HOB_OK);
    ck_assert_uint_eq(fake_vulkan.barriers, 0);
    for (int i = 0; i < PAIRS; i++) /* all of them after one barrier */
        ck_assert_int_eq(add(kernel, from[i], to[i], to[i], 100, 1, 40),
                         HOB_OK);
    ck_assert_uint_eq(fake_vulkan.barriers, 1);
    /* An idle device got its first launches at once. */
    ck_assert_uint_ge(fake_vulkan.batches, 1);
    ck_assert_int_eq(device->runtime->wait(device), HOB_OK);
    ck_assert_uint_eq(fake_vulkan.races, 0);
    ck_assert_uint_eq(fake_vulkan.dispatches, 2 * PAIRS);
    for (int i = 0; i < PAIRS; i++) {
        device->runtime->free(device, from[i], 400);
        device->runtime->free(device, to[i], 400);
    }
    device->runtime->kernel_close(device, kernel);
    end();
}
END_TEST

START_TEST(test_sizes_of_launches)
{
    struct cube_launch launch = {.op_name = "add"};
    void *kernel = NULL;

    begin(VK_PHYSICAL_DEVICE_TYPE_CPU);
    ck_assert_int_eq(open_device(0), HOB_OK);
    ck_assert_int_eq(open_kernel(&kernel), HOB_OK);
    ck_assert_int_eq(device->runtime->launch(device, kernel, &launch, &message),
                     HOB_OK);
    ck_assert_uint_eq(fake_vulkan.dispatches, 0);
    launch.groups = 65536;
    ck_assert_int_eq(device->runtime->launch(device, kernel, &launch, &message),
                     HOB_ERR_ARGUMENT);
    ck_assert_says("65536 groups are more than the 65535");
    ck_assert_uint_eq(fake_vulkan.dispatches, 0);
    device->runtime->kernel_close(device, kernel);
    end();
}
END_TEST

/* More ranges than the runtime keeps apart: they still order the work. */
START_TEST(test_launches_with_many_ranges)
{
    enum { RANGES = CVK_HAZARDS + 40, BYTES = 4 * RANGES };
    struct cube_range ranges[RANGES];
    struct fake_params params;
    struct cube_launch launch = {.op_name = "cat",
                                 .groups = 1,
                                 .range_count = RANGES,
                                 .ranges = ranges,
                                 .params = &params,
                                 .param_bytes = sizeof(params)};
    void *kernel = NULL;
    char *x, *y;

    begin(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    fake_vulkan.is_slow = 1;
    ck_assert_int_eq(open_device(0), HOB_OK);
    ck_assert_int_eq(open_kernel(&kernel), HOB_OK);
    x = take(BYTES);
    y = take(BYTES);
    params = (struct fake_params){(uintptr_t)y, (uintptr_t)x, (uintptr_t)x,
                                  RANGES - 1, 1};
    for (int i = 1; i < RANGES; i++)
        ranges[i] = (struct cube_range){x + 4 * (i - 1), 4, 0, 0};
    ranges[0] = (struct cube_range){y, BYTES - 4, 1, 0};
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(
            device->runtime->launch(device, kernel, &launch, &message), HOB_OK);
    ck_assert_int_eq(add(kernel, x, y, y, RANGES - 1, 1, 40), HOB_OK);
    ck_assert_int_eq(device->runtime->wait(device), HOB_OK);
    ck_assert_uint_eq(fake_vulkan.races, 0);
    device->runtime->free(device, x, BYTES);
    device->runtime->free(device, y, BYTES);
    device->runtime->kernel_close(device, kernel);
    end();
}
END_TEST

/* ---- staging ---- */

static const uint64_t staged_bytes[] = {
    1,
    CVK_SMALL_BYTES,
    CVK_SMALL_BYTES + 1,
    CVK_FIRST_BYTES,
    CVK_FIRST_BYTES + 1,
    CVK_SLOT_BYTES,
    CVK_SLOT_BYTES + 3,
    (uint64_t)CVK_SLOTS *CVK_SLOT_BYTES + 5,
    (uint64_t)2 * CVK_SLOTS *CVK_SLOT_BYTES - 1,
};

/* Elements go up and down unharmed, however late the driver copies them. */
START_TEST(test_staging_of_all_sizes)
{
    const uint64_t bytes = staged_bytes[_i];
    const struct cube_runtime *runtime;
    char *values = malloc(bytes), *got = malloc(bytes);
    void *x, *y;

    begin(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    fake_vulkan.devices[0].memory_bytes = UINT64_C(512) << 20;
    fake_vulkan.is_slow = 1;
    ck_assert_int_eq(open_device(0), HOB_OK);
    runtime = device->runtime;
    x = take(bytes);
    y = take(bytes);
    for (uint64_t i = 0; i < bytes; i++)
        values[i] = (char)(i * 2654435761u >> 13);
    ck_assert_int_eq(runtime->upload(device, x, values, bytes), HOB_OK);
    for (uint64_t i = 0; i < bytes; i++)
        values[i] = (char)~values[i];
    ck_assert_int_eq(runtime->upload(device, y, values, bytes), HOB_OK);
    memset(got, 0, bytes);
    ck_assert_int_eq(runtime->download(device, got, y, bytes), HOB_OK);
    ck_assert_int_eq(memcmp(got, values, bytes), 0);
    ck_assert_int_eq(runtime->download(device, got, x, bytes), HOB_OK);
    for (uint64_t i = 0; i < bytes; i++)
        got[i] = (char)~got[i];
    ck_assert_int_eq(memcmp(got, values, bytes), 0);
    ck_assert_uint_eq(fake_vulkan.races, 0);
    runtime->free(device, x, bytes);
    runtime->free(device, y, bytes);
    free(values);
    free(got);
    end();
}
END_TEST

/* A copy that is larger than all before it waits for them. */
START_TEST(test_staging_grows)
{
    enum { SMALL = CVK_FIRST_BYTES, LARGE = CVK_FIRST_BYTES + 5 };
    static char small[SMALL], large[LARGE], got[LARGE];
    const struct cube_runtime *runtime;
    void *x, *y;

    begin(VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU);
    fake_vulkan.devices[0].memory_bytes = UINT64_C(512) << 20;
    fake_vulkan.is_slow = 1;
    ck_assert_int_eq(open_device(0), HOB_OK);
    runtime = device->runtime;
    x = take(SMALL);
    y = take(LARGE);
    memset(small, 3, SMALL);
    memset(large, 5, LARGE);
    ck_assert_int_eq(runtime->upload(device, x, small, SMALL), HOB_OK);
    ck_assert_int_eq(runtime->upload(device, y, large, LARGE), HOB_OK);
    ck_assert_int_eq(runtime->download(device, got, x, SMALL), HOB_OK);
    ck_assert_int_eq(memcmp(got, small, SMALL), 0);
    ck_assert_int_eq(runtime->download(device, got, y, LARGE), HOB_OK);
    ck_assert_int_eq(memcmp(got, large, LARGE), 0);
    ck_assert_uint_eq(fake_vulkan.races, 0);
    runtime->free(device, x, SMALL);
    runtime->free(device, y, LARGE);
    end();
}
END_TEST

#undef ck_assert_says

#define COUNT_OF(list) ((int)(sizeof(list) / sizeof((list)[0])))

int main(void)
{
    Suite *suite = suite_create("vulkan faults");
    TCase *tc = tcase_create("faults");
    SRunner *runner;
    int failed;

    tcase_set_timeout(tc, 20);
    tcase_add_test(tc, test_devices_are_in_order);
    tcase_add_loop_test(tc, test_what_a_device_lacks_is_said, 0,
                        COUNT_OF(lackings));
    tcase_add_test(tc, test_optional_features_are_limits);
    tcase_add_loop_test(tc, test_no_driver_is_said, 0, 3);
    tcase_add_test(tc, test_validation_needs_its_layer);
    tcase_add_loop_test(tc, test_bad_options_are_named, 0,
                        COUNT_OF(bad_options));
    tcase_add_loop_test(tc, test_matrices_that_kernels_can_use, 0, MATRICES);
    tcase_add_test(tc, test_what_the_driver_compiled_is_kept);
    tcase_add_loop_test(tc, test_a_missing_function_is_named, 0, FUNCTIONS);
    tcase_add_loop_test(tc, test_every_call_may_fail, 0, 6);
    tcase_add_loop_test(tc, test_every_block_may_be_refused, 0, 2);
    tcase_add_loop_test(tc, test_a_lost_device_names_the_op, 0, 3);
    tcase_add_loop_test(tc, test_memory_that_runs_out, 0, 2);
    tcase_add_test(tc, test_trim_leaves_what_is_freed_meanwhile);
    tcase_add_test(tc, test_the_most_of_a_block_is_told);
    tcase_add_test(tc, test_memory_is_accounted_for);
    tcase_add_loop_test(tc, test_work_is_in_order, 0, 4);
    tcase_add_test(tc, test_only_what_must_waits);
    tcase_add_test(tc, test_sizes_of_launches);
    tcase_add_test(tc, test_launches_with_many_ranges);
    tcase_add_test(tc, test_staging_grows);
    tcase_add_loop_test(tc, test_staging_of_all_sizes, 0,
                        COUNT_OF(staged_bytes));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? 1 : 0;
}
