/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_host.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD_BYTE = 0xa5, ALIGN = 64 };

static struct fake_host *fake_of(const struct hob_host *table)
{
    return (struct fake_host *)(uintptr_t)table;
}

static void *fake_alloc(const struct hob_host *host, uint64_t bytes)
{
    void *memory = NULL;

    if (bytes > SIZE_MAX / 2 ||
        posix_memalign(&memory, ALIGN, bytes ? (size_t)bytes : 1))
        return NULL;
    __atomic_add_fetch(&fake_of(host)->live_blocks, 1, __ATOMIC_RELAXED);
    return memory;
}

static void fake_free(const struct hob_host *host, void *memory)
{
    if (memory)
        __atomic_sub_fetch(&fake_of(host)->live_blocks, 1, __ATOMIC_RELAXED);
    free(memory);
}

static hob_status fake_fail(struct hob_call *call, hob_status status,
                            const char *format, ...)
{
    struct fake_host *host = fake_of(call->host);
    va_list list;

    va_start(list, format);
    vsnprintf(host->message, sizeof(host->message), format, list);
    va_end(list);
    return status;
}

/* Nothing is known of what is in a tensor. */
static int32_t fake_arg_range(const struct hob_call *call, uint32_t index,
                              int64_t *out_low, int64_t *out_high)
{
    (void)call;
    (void)index;
    (void)out_low;
    (void)out_high;
    return 0;
}

/* Pieces of GRAIN; out of order where there is more than one worker, so that
 * a kernel which counts on an order is found out. */
static void fake_parallel_for(const struct hob_host *table, int64_t count,
                              int64_t grain, hob_range_fn fn, void *context)
{
    uint32_t workers = fake_of(table)->workers;
    int64_t pieces;

    if (grain < 1)
        grain = 1;
    pieces = (count + grain - 1) / grain;
    for (int64_t i = 0; i < pieces; i++) {
        int64_t piece = workers > 1 ? pieces - 1 - i : i;
        int64_t first = piece * grain;
        int64_t last = first + grain < count ? first + grain : count;

        fn(context, first, last, (uint32_t)(i % workers));
    }
}

static uint32_t fake_thread_count(const struct hob_host *table)
{
    return fake_of(table)->workers;
}

static hob_status fake_result(struct hob_call *call, uint32_t index,
                              const struct hob_meta *meta)
{
    /* call is the first member of struct fake_call. */
    struct fake_call *fake = (struct fake_call *)(void *)call;

    if (index >= call->ret_count)
        return HOB_ERR_INTERNAL;
    fake_tensor_init(&fake->results[index], meta->dtype, meta->rank,
                     meta->shape, 0);
    fake->metas[index] = *meta;
    fake->rets[index] =
        hob_value_tensor((hob_tensor *)(void *)&fake->results[index].view);
    return HOB_OK;
}

void fake_host_init(struct fake_host *host, uint32_t workers)
{
    memset(host, 0, sizeof(*host));
    host->table.struct_size = sizeof(host->table);
    host->table.abi_major = HOB_ABI_MAJOR;
    host->table.abi_minor = HOB_ABI_MINOR;
    host->table.version = "0";
    host->table.mem_alloc = fake_alloc;
    host->table.mem_free = fake_free;
    host->table.fail = fake_fail;
    host->table.arg_range = fake_arg_range;
    host->table.result = fake_result;
    host->table.parallel_for = fake_parallel_for;
    host->table.thread_count = fake_thread_count;
    host->workers = workers ? workers : 1;
}

void fake_view_flags(struct hob_view *view)
{
    int64_t expected = 1;
    int contiguous = 1, injective = 1;

    for (uint32_t i = view->rank; i-- > 0;) {
        if (view->shape[i] != 1 && view->strides[i] != expected)
            contiguous = 0;
        if (view->shape[i] > 1 && view->strides[i] == 0)
            injective = 0;
        expected *= view->shape[i];
    }
    if (expected == 0)
        contiguous = injective = 1;
    view->flags = (uint16_t)((contiguous ? HOB_VIEW_CONTIGUOUS : 0) |
                             (injective ? HOB_VIEW_INJECTIVE : 0));
}

void fake_tensor_init(struct fake_tensor *tensor, uint32_t dtype, uint32_t rank,
                      const int64_t *shape, uint32_t offset)
{
    struct hob_view *view = &tensor->view;
    int64_t stride = 1;
    void *block = NULL;
    size_t total;

    memset(tensor, 0, sizeof(*tensor));
    view->dtype = (uint8_t)dtype;
    view->rank = (uint8_t)rank;
    for (uint32_t i = rank; i-- > 0;) {
        view->shape[i] = shape[i];
        view->strides[i] = stride;
        stride *= shape[i] ? shape[i] : 1;
    }
    tensor->bytes = (uint64_t)hob_view_count(view) * hob_dtype_size(dtype);
    total = (size_t)tensor->bytes + 2 * FAKE_GUARD_BYTES + offset;
    if (posix_memalign(&block, ALIGN, total))
        abort(); /* a test program without memory cannot go on */
    memset(block, GUARD_BYTE, total);
    tensor->block = block;
    view->data = tensor->block + FAKE_GUARD_BYTES + offset;
    fake_view_flags(view);
}

void fake_tensor_release(struct fake_tensor *tensor)
{
    free(tensor->block);
    tensor->block = NULL;
}

int fake_tensor_intact(const struct fake_tensor *tensor)
{
    const char *data = tensor->view.data;
    int intact = 1;

    if (!tensor->block)
        return 1;
    for (const char *p = tensor->block; p < data; p++)
        intact &= (unsigned char)*p == GUARD_BYTE;
    for (uint32_t i = 0; i < FAKE_GUARD_BYTES; i++)
        intact &= (unsigned char)data[tensor->bytes + i] == GUARD_BYTE;
    return intact;
}

void fake_call_init(struct fake_call *fake, struct fake_host *host,
                    const char *op_name)
{
    memset(fake, 0, sizeof(*fake));
    fake->host = host;
    fake->call.host = &host->table;
    fake->call.args = fake->args;
    fake->call.rets = fake->rets;
    fake->call.metas = fake->metas;
    fake->call.op_name = op_name;
    host->message[0] = '\0';
}

void fake_call_value(struct fake_call *fake, hob_value value)
{
    fake->args[fake->call.arg_count++] = value;
}

void fake_call_view(struct fake_call *fake, const struct hob_view *view)
{
    struct fake_tensor *tensor = &fake->arg_tensors[fake->call.arg_count];

    tensor->view = *view;
    fake_view_flags(&tensor->view);
    fake_call_value(fake,
                    hob_value_tensor((hob_tensor *)(void *)&tensor->view));
}

void fake_call_result(struct fake_call *fake, uint32_t dtype, uint32_t rank,
                      const int64_t *shape)
{
    uint32_t index = fake->call.ret_count++;
    struct fake_tensor *tensor = &fake->results[index];
    struct hob_meta *meta = &fake->metas[index];

    fake_tensor_init(tensor, dtype, rank, shape, 0);
    meta->dtype = (uint8_t)dtype;
    meta->rank = (uint8_t)rank;
    memcpy(meta->shape, tensor->view.shape, sizeof(meta->shape));
    fake->rets[index] = hob_value_tensor((hob_tensor *)(void *)&tensor->view);
}

void fake_call_result_in_place(struct fake_call *fake, uint32_t index)
{
    uint32_t at = fake->call.ret_count++;
    struct fake_tensor *tensor = &fake->results[at];
    struct hob_meta *meta = &fake->metas[at];

    tensor->view = fake->arg_tensors[index].view;
    meta->dtype = tensor->view.dtype;
    meta->rank = tensor->view.rank;
    memcpy(meta->shape, tensor->view.shape, sizeof(meta->shape));
    fake->rets[at] = hob_value_tensor((hob_tensor *)(void *)&tensor->view);
}

void fake_call_result_dynamic(struct fake_call *fake)
{
    fake->call.ret_count++;
    fake->call.flags |= HOB_CALL_DYNAMIC;
}

hob_status fake_call_run(struct fake_call *fake, const struct hob_entry *entry,
                         void *device)
{
    struct hob_prepare prepare;
    hob_status status = HOB_OK;

    memset(&prepare, 0, sizeof(prepare));
    prepare.struct_size = sizeof(prepare);
    /* There are no results yet. */
    fake->call.rets = NULL;
    if (entry->prepare)
        status = entry->prepare(device, &fake->call, &prepare);
    fake->call.rets = fake->rets;
    if (status)
        return status;
    fake->call.prepared = prepare.prepared;
    fake->call.workspace =
        prepare.workspace_bytes
            ? fake_alloc(fake->call.host, prepare.workspace_bytes)
            : NULL;
    status = entry->execute(device, &fake->call);
    fake_free(fake->call.host, fake->call.workspace);
    fake->call.workspace = NULL;
    if (prepare.prepared && prepare.release)
        prepare.release(prepare.prepared);
    fake->call.prepared = NULL;
    return status;
}

void fake_call_release(struct fake_call *fake)
{
    for (uint32_t i = 0; i < fake->call.ret_count; i++)
        fake_tensor_release(&fake->results[i]);
}

const struct hob_entry *fake_entry_find(const struct hob_entry *entries,
                                        uint32_t count, const char *op)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(entries[i].op, op) == 0)
            return &entries[i];
    return NULL;
}
