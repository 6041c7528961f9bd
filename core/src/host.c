/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - the host table: thin functions over the core's modules.
 */
#include "dispatch.h"
#include "error.h"
#include "boundary.h"
#include "lazy.h"
#include "pattern.h"
#include "pool.h"
#include "process.h"
#include "runtime.h"

#include <hob/tensor.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Alignment of host memory: a cache line and any vector. */
enum { ALIGNMENT = 64 };

static hob_tensor *host_call1(hob_scope *scope, uint32_t op,
                              const hob_value *args, uint32_t arg_count)
{
    hob_tensor *out = NULL;
    uint32_t count;

    /* On failure OUT is the scope's error tensor, which says it all. */
    (void)hob__call(scope, op, args, arg_count, &out, 1, &count, NULL, 0);
    return out;
}

static uint32_t host_op_id(hob_scope *scope, struct hob_op_ref *ref)
{
    const hob_runtime *runtime = scope->runtime;
    uint64_t cache = __atomic_load_n(&ref->cache, __ATOMIC_RELAXED);
    const struct hob__op *op;
    uint32_t id;

    if (cache >> 32 == runtime->serial)
        return (uint32_t)cache;
    op = hob__registry_find(&runtime->registry, ref->name);
    id = op ? op->id : UINT32_MAX;
    if (!op && !scope->failure) { /* the call that follows has no name */
        hob_error error = HOB_ERROR_INIT;

        (void)hob__op_missing(runtime, ref->name, &error);
        (void)hob__scope_fail(scope, HOB_ERR_NOT_FOUND, "%s",
                              hob__error_text(&error));
        hob_error_release(&error);
    }
    if (op)
        __atomic_store_n(&ref->cache, (uint64_t)runtime->serial << 32 | id,
                         __ATOMIC_RELAXED);
    return id;
}

static hob_status host_scope_status(const hob_scope *scope)
{
    return scope->failure ? scope->failure->status : HOB_OK;
}

static hob_tensor *host_keep(hob_scope *outer, hob_tensor *tensor)
{
    hob__tensor_ref(tensor);
    if (hob__scope_adopt(outer, tensor))
        return hob__scope_fail(outer, HOB_ERR_MEMORY,
                               "keep: no memory for the scope's list");
    return tensor;
}

static hob_tensor *host_move(hob_scope *scope, hob_tensor *tensor)
{
    (void)scope;
    /* With other references about, another thread may be reading the flags;
     * the move would come to nothing anyway. */
    if (!(tensor->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED)) &&
        atomic_load_explicit(&tensor->refs, memory_order_acquire) == 1)
        hob__tensor_flag(tensor, HOB__TENSOR_LAST_USE);
    return tensor;
}

static int32_t host_is_error(const hob_tensor *tensor)
{
    return (tensor->flags & HOB__TENSOR_ERROR) != 0;
}

static hob_tensor *host_alias(hob_tensor *tensor, int32_t level)
{
    int32_t depth = tensor->device->depth;
    int32_t at = level < depth ? level : depth;

    if (hob__tensor_settle(tensor, at, NULL))
        return NULL;
    return hob__tensor_share(tensor, tensor->device->at[at], at);
}

static hob_tensor *host_lift(hob_tensor *tensor, hob_device *device)
{
    return hob__tensor_share(tensor, device, tensor->device->depth);
}

static void *host_state(const hob_tensor *tensor, int32_t level)
{
    return hob__tensor_state(tensor, level);
}

static void host_set_state(hob_tensor *tensor, int32_t level, void *state)
{
    hob__tensor_set_state(tensor, level, state);
}

static hob_status host_next(struct hob_call *call)
{
    return hob__walk_below(call);
}

static hob_status host_body(struct hob_call *call)
{
    const struct hob__route *route =
        hob__route_get(call->device->at[call->level], call->core->op);

    if (!route->body)
        return hob__call_fail(call, HOB_ERR_UNSUPPORTED,
                              "the op has no body for %s",
                              call->device->at[call->level]->selector);
    return hob__run_body(call, route->body, call->level);
}

static void host_parallel_for(const struct hob_host *host, int64_t count,
                              int64_t grain, hob_range_fn fn, void *context)
{
    hob__pool_for(host->runtime->pool, count, grain, fn, context);
}

static uint32_t host_thread_count(const struct hob_host *host)
{
    return hob__pool_threads(host->runtime->pool);
}

static void *host_mem_alloc(const struct hob_host *host, uint64_t bytes)
{
    (void)host;
    if (bytes > (uint64_t)INT64_MAX - ALIGNMENT)
        return NULL;
    bytes = (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return aligned_alloc(ALIGNMENT, bytes ? bytes : ALIGNMENT);
}

static void host_mem_free(const struct hob_host *host, void *memory)
{
    (void)host;
    free(memory);
}

static void log_as(const struct hob_host *host, int32_t severity,
                   const char *module, const char *format, va_list args)
{
    hob_error text = HOB_ERROR_INIT;

    if (!host->runtime->loader)
        return;
    hob__error_setv(&text, HOB_ERR_INTERNAL, format, args);
    hob__log_write(hob__loader_log(host->runtime->loader),
                   (enum hob__severity)severity, module, "%s",
                   hob__error_text(&text));
    hob_error_release(&text);
}

/* Of the host of a call, which is everybody's. */
static void host_log(const struct hob_host *host, int32_t severity,
                     const char *format, ...)
{
    va_list args;

    va_start(args, format);
    log_as(host, severity, "plugin", format, args);
    va_end(args);
}

/* Of the host that a plugin was opened with, which begins its instance. */
static void instance_log(const struct hob_host *host, int32_t severity,
                         const char *format, ...)
{
    const struct hob__instance *instance = (const void *)host;
    char module[80]; /* an id has at most 64 characters */
    va_list args;

    (void)snprintf(module, sizeof(module), "plugin:%s",
                   instance->plugin->manifest->id);
    va_start(args, format);
    log_as(host, severity, module, format, args);
    va_end(args);
}

static const void *host_interface(hob_device *device, const char *name,
                                  uint32_t version, void **out_instance)
{
    for (int32_t k = device->depth; k >= 0; k--) {
        const hob_device *layer = device->at[k];
        const void *table = NULL;

        if (layer->decorator && layer->decorator->interface)
            table = layer->decorator->interface(layer->instance, name, version);
        else if (!layer->decorator && layer->backend->interface)
            table = layer->backend->interface(layer->instance, name, version);
        if (table) {
            *out_instance = layer->instance;
            return table;
        }
    }
    *out_instance = NULL;
    return NULL;
}

static hob_status host_read(hob_tensor *tensor, void *out_data, uint64_t bytes,
                            char **out_message)
{
    hob_error why = HOB_ERROR_INIT;
    hob_status status = hob_read(tensor, out_data, bytes, &why);
    const char *text = hob__error_text(&why);

    *out_message = status ? host_mem_alloc(NULL, strlen(text) + 1) : NULL;
    if (*out_message)
        strcpy(*out_message, text);
    hob_error_release(&why);
    return status;
}

static const char *host_op_signature(const struct hob_host *host, uint32_t op)
{
    return hob_op_signature(host->runtime, op);
}

static const char *host_op_name(const struct hob_host *host, uint32_t op)
{
    const struct hob__registry *registry = &host->runtime->registry;

    return op && op < registry->op_count ? registry->ops[op].name : NULL;
}

void hob__host_init(hob_runtime *runtime)
{
    struct hob_host *host = &runtime->host;

    host->struct_size = sizeof(*host);
    host->abi_major = HOB_ABI_MAJOR;
    host->abi_minor = HOB_ABI_MINOR;
    host->version = hob_version();
    host->call1 = host_call1;
    host->calln = hob_call_op;
    host->callv = hob__call;
    host->op_id = host_op_id;
    host->scope_enter = hob__scope_enter;
    host->scope_leave = hob__scope_leave;
    host->scope_status = host_scope_status;
    host->scope_fail = hob__scope_fail;
    host->keep = host_keep;
    host->move = host_move;
    host->tensor_ref = hob__tensor_ref;
    host->tensor_unref = hob__tensor_unref;
    host->tensor_device = hob_tensor_device;
    host->tensor_is_error = host_is_error;
    host->alias = host_alias;
    host->lift = host_lift;
    host->state = host_state;
    host->set_state = host_set_state;
    host->next = host_next;
    host->body = host_body;
    host->fail = hob__call_fail;
    host->result = hob__call_result;
    host->parallel_for = host_parallel_for;
    host->thread_count = host_thread_count;
    host->mem_alloc = host_mem_alloc;
    host->mem_free = host_mem_free;
    host->log_write = host_log;
    host->interface = host_interface;
    host->process_shared = hob__process_shared;
    host->runtime = runtime;
    host->read = host_read;
    host->op_signature = host_op_signature;
    host->call_origin = hob__call_origin;
    host->defer = hob__defer;
    host->fill = hob__fill;
    host->scope_begin = hob__scope_begin;
    host->replay = hob__replay;
    host->op_name = host_op_name;
    host->tensor_new = hob__tensor_new;
    host->is_last = hob__is_last;
    host->is_held = hob__is_held;
    host->pattern = hob__pattern_get;
    host->foresee = hob__foresee;
    host->heir = hob__heir;
    host->arg_range = hob__arg_range;
    host->eval = hob__eval;
}

void hob__host_init_instance(hob_runtime *runtime,
                             struct hob__instance *instance)
{
    instance->host = runtime->host;
    instance->host.log_write = instance_log;
}
