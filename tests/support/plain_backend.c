/* SPDX-License-Identifier: Apache-2.0 */
#include "plain_backend.h"

#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 64 };

static hob_status device_count(void *instance, uint32_t *out_count)
{
    (void)instance;
    *out_count = 1;
    return HOB_OK;
}

static hob_status device_info(void *instance, uint32_t ordinal,
                              struct hob_device_info *out)
{
    (void)instance;
    (void)ordinal;
    memset(out, 0, sizeof(*out));
    strcpy(out->name, "host memory");
    return HOB_OK;
}

static hob_status device_open(void *instance, uint32_t ordinal,
                              const char *options, void **out_device,
                              char **out_message)
{
    (void)instance;
    (void)ordinal;
    (void)options;
    (void)out_message;
    *out_device = malloc(1); /* leaks show a device that was not closed */
    return *out_device ? HOB_OK : HOB_ERR_MEMORY;
}

static void device_close(void *device)
{
    free(device);
}

static hob_status memory_alloc(void *device, uint64_t bytes, void **out_data)
{
    (void)device;
    if (bytes > UINT64_C(1) << 40)
        return HOB_ERR_MEMORY;
    *out_data =
        aligned_alloc(ALIGNMENT, (size_t)(bytes / ALIGNMENT + 1) * ALIGNMENT);
    return *out_data ? HOB_OK : HOB_ERR_MEMORY;
}

static void memory_free(void *device, void *data, uint64_t bytes)
{
    (void)device;
    (void)bytes;
    free(data);
}

static hob_status upload(void *device, void *data, const void *host_data,
                         uint64_t bytes)
{
    (void)device;
    memcpy(data, host_data, (size_t)bytes);
    return HOB_OK;
}

static hob_status download(void *device, void *host_data, const void *data,
                           uint64_t bytes)
{
    (void)device;
    memcpy(host_data, data, (size_t)bytes);
    return HOB_OK;
}

static hob_status contiguous(void *device, struct hob_call *call)
{
    const struct hob_view *in = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    uint32_t size = hob_dtype_size(in->dtype);
    int64_t count = hob_view_count(in);

    (void)device;
    for (int64_t flat = 0; flat < count; flat++) {
        int64_t rest = flat;
        int64_t at = 0;

        for (uint32_t dim = in->rank; dim-- > 0; rest /= in->shape[dim])
            at += rest % in->shape[dim] * in->strides[dim];
        memcpy((char *)out->data + flat * size,
               (const char *)in->data + at * size, size);
    }
    return HOB_OK;
}

static const uint32_t any_dtype[] = {HOB_MASK_ANY};
static const struct hob_entry entries[] = {
    {
        .op = "contiguous",
        .signature = "(x: Any) -> x",
        .dtypes = any_dtype,
        .dtype_count = 1,
        .execute = contiguous,
    },
};

static const struct hob_backend plain_backend = {
    HOB_BACKEND_INIT_HEAD,        .entry_count = 1,
    .entries = entries,           .device_count = device_count,
    .device_info = device_info,   .device_open = device_open,
    .device_close = device_close, .alloc = memory_alloc,
    .free = memory_free,          .upload = upload,
    .download = download,         .flags = HOB_BACKEND_HOST_MEMORY,
};

static const struct hob_backend apart_backend = {
    HOB_BACKEND_INIT_HEAD,        .entry_count = 1,
    .entries = entries,           .device_count = device_count,
    .device_info = device_info,   .device_open = device_open,
    .device_close = device_close, .alloc = memory_alloc,
    .free = memory_free,          .upload = upload,
    .download = download,
};

static const struct hob_plugin plain_plugin = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "plain",
    .version = "1.0.0",
    .backend = &plain_backend,
};

static const struct hob_plugin apart_plugin = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "apart",
    .version = "1.0.0",
    .backend = &apart_backend,
};

static const struct hob_plugin *plain_entry(const struct hob_host *host)
{
    (void)host;
    return &plain_plugin;
}

static const struct hob_plugin *apart_entry(const struct hob_host *host)
{
    (void)host;
    return &apart_plugin;
}

const struct hob_static_plugin plain_backends[2] = {
    {"{\"manifest_version\": 1, \"id\": \"plain\", \"version\": \"1.0.0\","
     " \"kind\": \"backend\","
     " \"abi\": {\"major\": 0, \"required_minor\": 2, \"built_minor\": 2},"
     " \"backend\": {\"selector\": \"plain\"}}",
     plain_entry},
    {"{\"manifest_version\": 1, \"id\": \"apart\", \"version\": \"1.0.0\","
     " \"kind\": \"backend\","
     " \"abi\": {\"major\": 0, \"required_minor\": 2, \"built_minor\": 2},"
     " \"backend\": {\"selector\": \"apart\"}}",
     apart_entry},
};

hob_status plain_runtime_open(hob_runtime **out_runtime, hob_error *error)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;

    options.policy = HOB_POLICY_REPORT;
    options.static_plugins = plain_backends;
    options.static_plugin_count = 2;
    options.exclusive = 1;
    options.threads = 1;
    return hob_runtime_open(&options, out_runtime, error);
}
