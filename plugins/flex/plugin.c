/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin.c - the entry of the CPU backend and its tables.
 */
#include "flex.h"

#include <stdlib.h>
#include <string.h>

static const struct flex_entries *const families[] = {
    &flex_elementwise_entries, &flex_cast_entries,       &flex_create_entries,
    &flex_random_entries,      &flex_copy_entries,       &flex_reduce_entries,
    &flex_arg_entries,         &flex_scan_entries,       &flex_matmul_entries,
    &flex_conv_entries,        &flex_pool_entries,       &flex_softmax_entries,
    &flex_loss_entries,        &flex_norm_entries,       &flex_index_entries,
    &flex_scatter_entries,     &flex_sort_entries,       &flex_cat_entries,
    &flex_optim_entries,       &flex_decompose_entries,  &flex_quant_entries,
    &flex_attention_entries,   &flex_activation_entries, &flex_resize_entries,
    &flex_grid_sample_entries, &flex_ctc_entries,        &flex_fft_entries,
    &flex_deform_conv_entries, &flex_arrange_entries,    &flex_columns_entries,
};

/* The tables as the core reads them: constant once made. C cannot join the
 * families' arrays at compile time, so the first entry does. */
struct tables {
    struct hob_plugin plugin;
    struct hob_backend backend;
    struct hob_entry entries[];
};

static hob_status flex_open(const struct hob_host *host, const char *options,
                            void **out_instance, char **out_message)
{
    struct flex_instance *instance = host->mem_alloc(host, sizeof(*instance));

    (void)options; /* they are those of the devices */
    (void)out_message;
    *out_instance = instance;
    if (!instance)
        return HOB_ERR_MEMORY;
    instance->host = host;
    return HOB_OK;
}

static void flex_close(void *opened)
{
    struct flex_instance *instance = opened;

    instance->host->mem_free(instance->host, instance);
}

static hob_status flex_alloc(void *device, uint64_t bytes, void **out_data)
{
    *out_data = flex_memory_take(((struct flex_device *)device)->memory, bytes);
    return *out_data ? HOB_OK : HOB_ERR_MEMORY;
}

static void flex_free(void *device, void *data, uint64_t bytes)
{
    flex_memory_give(((struct flex_device *)device)->memory, data, bytes);
}

static void flex_stats(void *device, struct hob_memory_stats *out)
{
    flex_memory_stats(((struct flex_device *)device)->memory, out);
}

static void flex_reset_peak(void *device)
{
    flex_memory_reset_peak(((struct flex_device *)device)->memory);
}

static void flex_trim(void *device)
{
    flex_memory_trim(((struct flex_device *)device)->memory);
}

/* Both directions: device memory is host memory. */
static hob_status flex_upload(void *device, void *data, const void *host_data,
                              uint64_t bytes)
{
    (void)device;
    if (bytes)
        memcpy(data, host_data, (size_t)bytes);
    return HOB_OK;
}

static hob_status flex_download(void *device, void *host_data, const void *data,
                                uint64_t bytes)
{
    return flex_upload(device, host_data, data, bytes);
}

static const struct hob_backend backend_head = {
    HOB_BACKEND_INIT_HEAD,
    .device_count = flex_device_count,
    .device_info = flex_device_info,
    .device_open = flex_device_open,
    .device_close = flex_device_close,
    .alloc = flex_alloc,
    .free = flex_free,
    .upload = flex_upload,
    .download = flex_download,
    .interface = flex_device_interface,
    .memory_stats = flex_stats,
    .memory_reset_peak = flex_reset_peak,
    .memory_trim = flex_trim,
    .flags = HOB_BACKEND_HOST_MEMORY,
};

static const struct hob_plugin plugin_head = {
    HOB_PLUGIN_INIT_HEAD, .id = "flex",        .version = "0.1.0",
    .open = flex_open,    .close = flex_close,
};

/* Kept by the process; see host->process_shared. */
static void *make_tables(void)
{
    const uint32_t family_count = sizeof(families) / sizeof(families[0]);
    uint32_t count = 0;
    struct tables *tables;

    for (uint32_t i = 0; i < family_count; i++)
        count += families[i]->count;
    tables = malloc(sizeof(*tables) + count * sizeof(tables->entries[0]));
    if (!tables)
        return NULL;
    count = 0;
    for (uint32_t i = 0; i < family_count; i++) {
        memcpy(&tables->entries[count], families[i]->entries,
               families[i]->count * sizeof(tables->entries[0]));
        count += families[i]->count;
    }
    tables->plugin = plugin_head;
    tables->backend = backend_head;
    tables->backend.entries = tables->entries;
    tables->backend.entry_count = count;
    tables->plugin.backend = &tables->backend;
    return tables;
}

HOB_EXPORT const struct hob_plugin *
hob_plugin_entry(const struct hob_host *host)
{
    struct tables *tables = host->process_shared("flex.tables", make_tables);

    return tables ? &tables->plugin : NULL;
}
