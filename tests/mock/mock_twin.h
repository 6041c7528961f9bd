/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock_twin.h - a plugin with a library inside that other plugins have inside
 * too, in another version: all of its names are exported, its options register
 * themselves when it is loaded, and it ends the process if one is there
 * already, as well-known libraries do. TWIN is 1 or 2.
 */
#include "mock.h"

#include <string.h>

HOB_EXPORT extern const char *twin_options[4 * TWIN];
HOB_EXPORT extern uint32_t twin_count;
HOB_EXPORT uint32_t twin_answer(void);

const char *twin_options[4 * TWIN];
uint32_t twin_count;

/* Of no meaning but to be this library's own. */
uint32_t twin_answer(void)
{
    return 10 * TWIN + twin_count;
}

__attribute__((constructor)) static void twin_register(void)
{
    for (uint32_t i = 0; i < twin_count; i++)
        if (!strcmp(twin_options[i], "twin-option"))
            abort();
    twin_options[twin_count++] = "twin-option";
}

static hob_status twin_device_count(void *instance, uint32_t *out_count)
{
    (void)instance;
    *out_count = twin_answer();
    return HOB_OK;
}

static const struct hob_backend backend = {
    HOB_BACKEND_INIT_HEAD,
    .device_count = twin_device_count,
    .device_open = mock_device_open,
    .device_close = mock_device_close,
    .alloc = mock_alloc,
    .free = mock_free,
    .upload = mock_upload,
    .download = mock_download,
};

static const struct hob_plugin table = {
    HOB_PLUGIN_INIT_HEAD,
    .id = TWIN == 1 ? "twin-1" : "twin-2",
    .version = "1.0.0",
    .backend = &backend,
};

const struct hob_plugin *hob_plugin_entry(const struct hob_host *host)
{
    (void)host;
    return &table;
}
