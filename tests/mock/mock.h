/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mock.h - functions from which mock plugins make their tables.
 *
 * They do nothing and succeed. A mock leaves out or spoils one of them.
 */
#ifndef HOB_TEST_MOCK_H
#define HOB_TEST_MOCK_H

#include <hob/ext/plugin.h>

#include <stdlib.h>

static inline hob_status mock_device_count(void *instance, uint32_t *out_count)
{
    (void)instance;
    *out_count = 1;
    return HOB_OK;
}

static inline hob_status mock_device_open(void *instance, uint32_t ordinal,
                                          const char *options,
                                          void **out_device, char **out_message)
{
    (void)instance;
    (void)ordinal;
    (void)options;
    (void)out_message;
    *out_device = NULL;
    return HOB_OK;
}

static inline void mock_device_close(void *device)
{
    (void)device;
}

static inline hob_status mock_alloc(void *device, uint64_t bytes,
                                    void **out_data)
{
    (void)device;
    *out_data = malloc(bytes);
    return *out_data ? HOB_OK : HOB_ERR_MEMORY;
}

static inline void mock_free(void *device, void *data, uint64_t bytes)
{
    (void)device;
    (void)bytes;
    free(data);
}

static inline hob_status mock_upload(void *device, void *data,
                                     const void *host_data, uint64_t bytes)
{
    (void)device;
    (void)data;
    (void)host_data;
    (void)bytes;
    return HOB_OK;
}

static inline hob_status mock_download(void *device, void *host_data,
                                       const void *data, uint64_t bytes)
{
    (void)device;
    (void)host_data;
    (void)data;
    (void)bytes;
    return HOB_OK;
}

static inline hob_status mock_execute(void *device, struct hob_call *call)
{
    (void)device;
    (void)call;
    return HOB_OK;
}

static inline hob_status
mock_body(hob_scope *scope, const struct hob_call *call, hob_tensor **out)
{
    (void)scope;
    (void)call;
    *out = NULL;
    return HOB_OK;
}

/* All that a backend must have; the mock adds struct_size and entries. */
#define MOCK_BACKEND_INIT                                                      \
    HOB_BACKEND_INIT_HEAD,                                                     \
        .device_count = mock_device_count, .device_open = mock_device_open,    \
        .device_close = mock_device_close, .alloc = mock_alloc,                \
        .free = mock_free, .upload = mock_upload, .download = mock_download

#endif
