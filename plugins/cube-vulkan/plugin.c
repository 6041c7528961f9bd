/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.c - the entry of the Vulkan backend and its tables.
 */
#include "device.h"

#include <cube/cube.h>
#include <cube/interface.h>

static hob_status plugin_open(const struct hob_host *host, const char *options,
                              void **out_instance, char **out_message)
{
    (void)options; /* they are those of the devices */
    (void)out_message;
    *out_instance = cvk_instance_new(host);
    return *out_instance ? HOB_OK : HOB_ERR_MEMORY;
}

static void plugin_close(void *instance)
{
    cvk_instance_free(instance);
}

static const struct hob_backend backend_head = {
    HOB_BACKEND_INIT_HEAD,
    .device_count = cvk_device_count,
    .device_info = cvk_device_info,
    .device_open = cvk_device_open,
    .device_close = cvk_device_close,
    .alloc = cvk_device_alloc,
    .free = cvk_device_free,
    .upload = cvk_device_upload,
    .download = cvk_device_download,
    .sync = cvk_device_sync,
    .interface = cube_interface_find,
    .memory_stats = cvk_device_memory_stats,
    .memory_reset_peak = cvk_device_reset_peak,
    .memory_trim = cvk_device_trim,
};

static const struct hob_plugin plugin_head = {
    HOB_PLUGIN_INIT_HEAD, .id = "cube-vulkan",   .version = "0.1.0",
    .open = plugin_open,  .close = plugin_close,
};

/* Kept by the process; see host->process_shared. */
static void *make_tables(void)
{
    return cube_tables_new(&plugin_head, &backend_head, NULL);
}

HOB_EXPORT const struct hob_plugin *
hob_plugin_entry(const struct hob_host *host)
{
    struct cube_tables *tables =
        host->process_shared("cube-vulkan.tables", make_tables);

    return tables ? &tables->plugin : NULL;
}
