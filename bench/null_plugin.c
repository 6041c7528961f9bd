/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "null_plugin.h"

#include <hob/ext/plugin.h>

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
    *out_device = malloc(1);
    return *out_device ? HOB_OK : HOB_ERR_MEMORY;
}

static void device_close(void *device)
{
    free(device);
}

static hob_status memory_alloc(void *device, uint64_t bytes, void **out_data)
{
    (void)device;
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

static hob_status add_one(void *device, struct hob_call *call)
{
    float *out = hob_ret_view(call, 0)->data;
    const float *lhs = hob_arg_view(call, 0)->data;
    const float *rhs = hob_arg_view(call, 1)->data;

    (void)device;
    *out = *lhs + *rhs;
    return HOB_OK;
}

static const uint32_t floats[] = {HOB_DTYPE_BIT(HOB_DTYPE_F32),
                                  HOB_DTYPE_BIT(HOB_DTYPE_F32)};

static const struct hob_entry entries[] = {{
    .op = "add",
    .signature = "(lhs: Num, rhs: Num) -> lhs",
    .dtypes = floats,
    .dtype_count = 2,
    .execute = add_one,
}};

static const struct hob_backend backend = {
    HOB_BACKEND_INIT_HEAD,        .entry_count = 1,
    .entries = entries,           .device_count = device_count,
    .device_info = device_info,   .device_open = device_open,
    .device_close = device_close, .alloc = memory_alloc,
    .free = memory_free,          .upload = upload,
    .download = download,         .flags = HOB_BACKEND_HOST_MEMORY,
};

static const struct hob_plugin backend_plugin = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "null",
    .version = "1.0.0",
    .backend = &backend,
};

static const struct hob_entry extension_entry = {
    .op = "bench.add",
    .signature = "(lhs: Num, rhs: Num) -> lhs",
    .dtypes = floats,
    .dtype_count = 2,
    .execute = add_one,
};

static const struct hob_op_impl impls[] = {
    {.selector = "null", .entry = &extension_entry},
};

static const struct hob_extension_op ops[] = {{
    .name = "bench.add",
    .signature = "(lhs: Num, rhs: Num) -> lhs",
    .impls = impls,
    .impl_count = 1,
}};

static const struct hob_extension extension = {
    HOB_EXTENSION_INIT_HEAD,
    .op_count = 1,
    .ops = ops,
};

static const struct hob_plugin extension_plugin = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "bench.ops",
    .version = "1.0.0",
    .extension = &extension,
};

static const struct hob_plugin *backend_entry(const struct hob_host *host)
{
    (void)host;
    return &backend_plugin;
}

static const struct hob_plugin *
extension_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &extension_plugin;
}

const struct hob_static_plugin null_plugins[2] = {
    {"{\"manifest_version\": 1, \"id\": \"null\", \"version\": \"1.0.0\","
     " \"kind\": \"backend\","
     " \"abi\": {\"major\": 0, \"required_minor\": 2, \"built_minor\": 2},"
     " \"backend\": {\"selector\": \"null\"}}",
     backend_entry},
    {"{\"manifest_version\": 1, \"id\": \"bench.ops\", \"version\": \"1.0.0\","
     " \"kind\": \"extension\","
     " \"abi\": {\"major\": 0, \"required_minor\": 2, \"built_minor\": 2},"
     " \"namespace\": \"bench\","
     " \"ops\": [{\"op\": \"add\","
     " \"signature\": \"(lhs: Num, rhs: Num) -> lhs\","
     " \"infer\": \"broadcast\", \"backends\": [\"null\"],"
     " \"implementations\": {\"null\": {\"kernel\": true}},"
     " \"doc\": \"lhs + rhs\"}]}",
     extension_plugin_entry},
};
