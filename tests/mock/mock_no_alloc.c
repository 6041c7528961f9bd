/* SPDX-License-Identifier: Apache-2.0 */
/* Its backend lacks a required member. */
#include "mock.h"

static const struct hob_backend backend = {
    HOB_BACKEND_INIT_HEAD,
    .device_count = mock_device_count,
    .device_open = mock_device_open,
    .device_close = mock_device_close,
    .free = mock_free,
    .upload = mock_upload,
    .download = mock_download,
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD,
    .id = "mock",
    .version = "1.0.0",
    .backend = &backend,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
