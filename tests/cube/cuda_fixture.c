/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda_fixture.h"
#include "hob_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct fake_host cuda_host;
struct ccu_instance *cuda_instance;
char cuda_logged[4096];

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;

static void log_write(const struct hob_host *table, int32_t severity,
                      const char *format, ...)
{
    va_list list;
    size_t used;

    (void)table;
    (void)severity;
    pthread_mutex_lock(&log_lock);
    used = strlen(cuda_logged);
    va_start(list, format);
    vsnprintf(cuda_logged + used, sizeof(cuda_logged) - used, format, list);
    va_end(list);
    pthread_mutex_unlock(&log_lock);
}

void cuda_setup(void)
{
    fake_cuda_reset();
    fake_host_init(&cuda_host, 2);
    cuda_host.table.log_write = log_write;
    cuda_logged[0] = '\0';
    cuda_instance = ccu_instance_new(&cuda_host.table);
    ck_assert_ptr_nonnull(cuda_instance);
    cuda_instance->find = fake_cuda_find;
}

void cuda_teardown(void)
{
    ccu_instance_free(cuda_instance);
    ck_assert_uint_eq(cuda_host.live_blocks, 0);
    ck_assert(fake_cuda_is_clean());
}

struct ccu_device *cuda_open_device(uint32_t ordinal, const char *options)
{
    void *opened = NULL;
    char *message = NULL;

    ck_assert_msg(
        !ccu_device_open(cuda_instance, ordinal, options, &opened, &message),
        "%s", message);
    ck_assert_ptr_null(message);
    return opened;
}

hob_status cuda_launch(struct ccu_device *device, void *kernel, void *to,
                       int count, const char *op_name, char **out_message)
{
    const struct fake_params params = {(ccu_address)(uintptr_t)to, count, 3};
    const struct cube_launch work = {.op_name = op_name,
                                     .groups = 7,
                                     .params = &params,
                                     .param_bytes = sizeof(params)};

    return ccu_runtime.launch(&device->cube, kernel, &work, out_message);
}
