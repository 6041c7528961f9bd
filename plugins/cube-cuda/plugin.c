/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.c - the entry of the CUDA backend and its tables.
 */
#include "attention.h"
#include "conv.h"
#include "device.h"
#include "linear.h"
#include "product.h"

#include <cube/cube.h>
#include <cube/interface.h>

#include <hob/ext/capture.h>

#include <string.h>

static hob_status ccu_open(const struct hob_host *host, const char *options,
                           void **out_instance, char **out_message)
{
    (void)options; /* they are those of the devices */
    (void)out_message;
    *out_instance = ccu_instance_new(host);
    return *out_instance ? HOB_OK : HOB_ERR_MEMORY;
}

static void ccu_close(void *instance)
{
    ccu_instance_free(instance);
}

static const void *ccu_interface(void *device, const char *name,
                                 uint32_t version)
{
    if (!strcmp(name, HOB_CAPTURE_INTERFACE))
        return version == HOB_CAPTURE_INTERFACE_VERSION ? &ccu_capture : NULL;
    return cube_interface_find(device, name, version);
}

static const struct hob_backend backend_head = {
    HOB_BACKEND_INIT_HEAD,
    .device_count = ccu_device_count,
    .device_info = ccu_device_info,
    .device_open = ccu_device_open,
    .device_close = ccu_device_close,
    .alloc = ccu_device_alloc,
    .free = ccu_device_free,
    .upload = ccu_device_upload,
    .download = ccu_device_download,
    .sync = ccu_device_sync,
    .interface = ccu_interface,
    .memory_stats = ccu_device_memory_stats,
    .memory_reset_peak = ccu_device_reset_peak,
    .memory_trim = ccu_device_trim,
    .copy = ccu_device_copy,
};

static const struct hob_plugin plugin_head = {
    HOB_PLUGIN_INIT_HEAD, .id = "cube-cuda",  .version = "0.1.0",
    .open = ccu_open,     .close = ccu_close,
};

/* Kept by the process; see host->process_shared. */
static void *make_tables(void)
{
    struct cube_tables *tables = cube_tables_new(&plugin_head, &backend_head, &ccu_linear_entries);

    if (tables) {
        ccu_attention_install(tables->entries, tables->backend.entry_count);
        ccu_conv_install(tables->entries, tables->backend.entry_count);
    }
    return tables;
}

HOB_EXPORT const struct hob_plugin *
hob_plugin_entry(const struct hob_host *host)
{
    struct cube_tables *tables =
        host->process_shared("cube-cuda.tables", make_tables);

    return tables ? &tables->plugin : NULL;
}
