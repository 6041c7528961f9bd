/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base.c - the last hop: views, kernels, allocation, reuse.
 *
 * This is the only place that knows of storage. A call arrives validated and
 * inferred; what leaves are handles that carry the whole stack of its device.
 */
#include "dispatch.h"

#include "error.h"
#include "lazy.h"
#include "recording.h"
#include "runtime.h"
#include "view.h"

#include <hob/ops.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Row-major copies of arguments that live for one call. */
struct temporaries {
    hob_tensor *copies[HOB_MAX_PARAMS]; /* of single tensors */
    hob_tensor **lists[HOB_MAX_PARAMS]; /* of lists: own array of handles */
    hob_value saved[HOB_MAX_PARAMS];    /* the arguments as they came */
    uint32_t used;                      /* bit i: parameter i is replaced */
};

static hob_status run_entry(struct hob_call *call, struct hob__route *route);

/* ---- row-major copies ---- */

/* Copy TENSOR by the base's own kernel for "contiguous". */
static hob_status copy_contiguous(struct hob_call *call, hob_tensor *tensor,
                                  hob_tensor **out_copy)
{
    hob_runtime *runtime = tensor->device->runtime;
    hob_device *base = tensor->device->at[0];
    const struct hob__op *op = &runtime->registry.ops[HOB_OP_CONTIGUOUS];
    struct hob__route *route = hob__route_get(base, op);
    struct hob_call_state state = *call->core;
    struct hob_meta meta = hob__tensor_meta(tensor);
    hob_value arg = hob_value_tensor(tensor);
    hob_value ret = hob_value_make(HOB_TAG_TENSOR, 1);
    struct hob_call copy = *call;
    uint64_t bytes;
    hob_status status;

    *out_copy = NULL;
    state.moved = 0;
    state.may_reuse = 0;
    state.bytes = &bytes;
    status = hob__meta_bytes(&meta, &bytes);
    if (status)
        return hob__call_fail(call, status,
                              "a row-major copy is larger than any memory");
    /* One that wants row-major arguments itself would come back here. */
    if (!route->entry || (route->entry->flags & HOB_ENTRY_CONTIGUOUS))
        return hob__call_fail(call, HOB_ERR_PLUGIN,
                              "%s cannot copy strided tensors: it supplies no "
                              "kernel for contiguous that takes them, which "
                              "every backend must",
                              base->name);
    state.op = op;
    copy.op = HOB_OP_CONTIGUOUS;
    copy.op_name = op->name;
    copy.flags = 0;
    copy.device = base;
    copy.args = &arg;
    copy.arg_count = 1;
    copy.rets = &ret;
    copy.ret_count = 1;
    copy.metas = &meta;
    copy.plain_count = 0;
    copy.workspace = NULL;
    copy.prepared = NULL;
    copy.core = &state;
    status = run_entry(&copy, route);
    *out_copy = ret.u.tensor;
    return status;
}

static int is_contiguous(const hob_tensor *tensor)
{
    return (tensor->view.flags & HOB_VIEW_CONTIGUOUS) != 0;
}

static hob_status replace_list(struct hob_call *call, uint32_t index,
                               struct temporaries *temporaries)
{
    const hob_value *value = &temporaries->saved[index];
    hob_tensor **list = calloc(value->count, sizeof(*list));
    hob_status status = list ? HOB_OK : HOB_ERR_MEMORY;

    temporaries->lists[index] = list;
    for (uint32_t k = 0; k < value->count && !status; k++) {
        hob_tensor *tensor = value->u.tensors[k];

        if (is_contiguous(tensor)) {
            hob__tensor_ref(tensor);
            list[k] = tensor;
        } else {
            status = copy_contiguous(call, tensor, &list[k]);
        }
    }
    call->args[index].u.tensors = list;
    return status;
}

static int needs_copy(const hob_value *value)
{
    if (value->tag == HOB_TAG_TENSOR)
        return !is_contiguous(value->u.tensor);
    if (value->tag == HOB_TAG_TENSORS)
        for (uint32_t k = 0; k < value->count; k++)
            if (!is_contiguous(value->u.tensors[k]))
                return 1;
    return 0;
}

static hob_status make_contiguous(struct hob_call *call,
                                  struct temporaries *temporaries)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < call->arg_count && !status; i++) {
        if (!needs_copy(&call->args[i]))
            continue;
        temporaries->saved[i] = call->args[i];
        temporaries->copies[i] = NULL;
        temporaries->lists[i] = NULL;
        temporaries->used |= UINT32_C(1) << i;
        if (call->args[i].tag == HOB_TAG_TENSORS) {
            status = replace_list(call, i, temporaries);
        } else {
            status = copy_contiguous(call, call->args[i].u.tensor,
                                     &temporaries->copies[i]);
            call->args[i] = hob_value_tensor(temporaries->copies[i]);
            call->args[i].flags |= HOB_VALUE_MOVE; /* nobody else has it */
            call->core->may_reuse = 1;
        }
    }
    return status;
}

static void drop_temporaries(struct hob_call *call,
                             struct temporaries *temporaries)
{
    for (uint32_t i = 0; temporaries->used; i++, temporaries->used >>= 1) {
        if (!(temporaries->used & 1))
            continue;
        call->args[i] = temporaries->saved[i];
        hob__tensor_unref(temporaries->copies[i]);
        for (uint32_t k = 0;
             temporaries->lists[i] && k < temporaries->saved[i].count; k++)
            hob__tensor_unref(temporaries->lists[i][k]);
        free(temporaries->lists[i]);
    }
}

/* ---- results ---- */

static int same_shape(const struct hob_view *view, const struct hob_meta *meta)
{
    if (view->dtype != meta->dtype || view->rank != meta->rank ||
        view->scheme != meta->scheme)
        return 0;
    return !memcmp(view->shape, meta->shape, meta->rank * sizeof(int64_t));
}

static int shares_storage(const struct hob_call *call, uint32_t index)
{
    const struct hob_storage *storage =
        call->args[index].u.tensor->view.storage;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];

        if (i == index)
            continue;
        if (value->tag == HOB_TAG_TENSOR &&
            value->u.tensor->view.storage == storage)
            return 1;
        if (value->tag == HOB_TAG_TENSORS)
            for (uint32_t k = 0; k < value->count; k++)
                if (value->u.tensors[k]->view.storage == storage)
                    return 1;
    }
    return 0;
}

/* Whether argument INDEX may be written over: its last use, the only reference
 * to handle and storage, memory of our own. */
static int is_ours(const struct hob_call *call, uint32_t index)
{
    const hob_value *value = &call->args[index];
    const hob_tensor *tensor = value->u.tensor;
    struct hob_storage *storage;

    if (value->tag != HOB_TAG_TENSOR || !(value->flags & HOB_VALUE_MOVE) ||
        !tensor->view.storage || (tensor->view.flags & HOB_VIEW_READ_ONLY))
        return 0;
    storage = tensor->view.storage;
    return atomic_load_explicit(&tensor->refs, memory_order_acquire) == 1 &&
           atomic_load_explicit(&storage->refs, memory_order_acquire) == 1 &&
           hob__storage_is_ours(storage) && !shares_storage(call, index);
}

/* Whether result META may be written over argument INDEX: ours, and the same
 * elements. */
static int can_reuse(const struct hob_call *call, uint32_t index,
                     const struct hob_meta *meta)
{
    return index < call->arg_count && is_ours(call, index) &&
           is_contiguous(call->args[index].u.tensor) &&
           same_shape(&call->args[index].u.tensor->view, meta);
}

/* The argument whose memory result INDEX may take, or -1. */
static int reusable_argument(const struct hob_call *call,
                             const struct hob__route *route, uint32_t index)
{
    const struct hob__op *op = call->core->op;

    if (!call->core->may_reuse || !(route->entry->flags & HOB_ENTRY_IN_PLACE))
        return -1;
    for (uint32_t i = 0; i < route->alias_count; i++)
        if (route->aliases[i][0] == index &&
            can_reuse(call, route->aliases[i][1], &call->metas[index]))
            return route->aliases[i][1];
    for (uint32_t i = 0; i < op->decl->alias_count; i++)
        if (op->decl->aliases[i].result == index &&
            can_reuse(call, op->decl->aliases[i].param, &call->metas[index]))
            return op->decl->aliases[i].param;
    if (op->fuse != HOB__FUSE_ELEMENTWISE || index)
        return -1;
    for (uint32_t i = 0; i < call->arg_count; i++)
        if (can_reuse(call, i, &call->metas[index]))
            return (int)i;
    return -1;
}

static hob_status no_result_memory(struct hob_call *call, hob_status status,
                                   const struct hob_meta *meta)
{
    const hob_device *base = call->device->at[0];
    char text[HOB__META_TEXT], what[HOB__META_TEXT + 16];
    char refusal[HOB__REFUSAL_TEXT];
    uint64_t bytes = 0;

    if (hob__meta_bytes(meta, &bytes))
        return hob__call_fail(call, HOB_ERR_SHAPE,
                              "a result %s is larger than any memory",
                              hob__meta_text(meta, text, sizeof(text)));
    snprintf(what, sizeof(what), "the result %s",
             hob__meta_text(meta, text, sizeof(text)));
    return hob__call_fail(call, status, "%s",
                          hob__storage_refusal(base, what, bytes, refusal));
}

static hob_status allocate_results(struct hob_call *call,
                                   const struct hob__route *route)
{
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob_meta *meta = &call->metas[i];
        hob_tensor *tensor = NULL;
        hob_status status = HOB_OK;
        int reuse;

        if (!hob__is_due(call, i))
            continue;
        reuse = reusable_argument(call, route, i);
        if (reuse >= 0) {
            const struct hob_view *view = &call->args[reuse].u.tensor->view;

            tensor = hob__tensor_blank(call->device, meta);
            if (tensor) {
                hob__storage_ref(view->storage);
                tensor->view.storage = view->storage;
                tensor->view.data = view->data;
            } else {
                status = HOB_ERR_MEMORY;
            }
        } else {
            status = hob__tensor_alloc(call->device, meta, call->core->bytes[i],
                                       &tensor);
        }
        if (status)
            return no_result_memory(call, status, meta);
        call->rets[i].u.tensor = tensor;
    }
    return HOB_OK;
}

hob_status hob__call_result(struct hob_call *call, uint32_t index,
                            const struct hob_meta *meta)
{
    hob_tensor *tensor = NULL;
    uint64_t bytes = 0;
    hob_status status;

    if (index >= call->ret_count || call->rets[index].u.tensor)
        return hob__call_fail(call, HOB_ERR_PLUGIN,
                              "the kernel asked for result %" PRIu32
                              " twice, or there is none: a bug of its author",
                              index);
    if (!hob__meta_is_sound(meta))
        return hob__call_fail(call, HOB_ERR_PLUGIN,
                              "the kernel asked for result %" PRIu32
                              " with the rank %u and the dtype number %u: a "
                              "bug of its author",
                              index, (unsigned)meta->rank,
                              (unsigned)meta->dtype);
    status = hob__meta_bytes(meta, &bytes);
    if (!status)
        status = hob__tensor_alloc(call->device, meta, bytes, &tensor);
    if (status)
        return no_result_memory(call, status, meta);
    call->rets[index].u.tensor = tensor;
    return HOB_OK;
}

/* Nothing to compute: no kernel ever sees an empty launch. */
static int all_empty(const struct hob_call *call)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        if (call->rets[i].u.tensor && call->rets[i].u.tensor->view.storage)
            return 0;
    return call->ret_count > 0;
}

/* ---- kernels ---- */

int hob__entry_serves(const struct hob_call *call,
                      const struct hob_entry *entry)
{
    const struct hob__signature *signature = &call->core->op->signature;
    uint32_t tensor = 0;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];
        uint32_t dtype;

        if (signature->params[i].type != HOB__TYPE_TENSOR &&
            signature->params[i].type != HOB__TYPE_TENSORS)
            continue;
        if (tensor >= entry->dtype_count)
            return 1;
        if (value->tag != HOB_TAG_ABSENT) {
            dtype = value->tag == HOB_TAG_TENSOR
                        ? value->u.tensor->view.dtype
                        : value->u.tensors[0]->view.dtype;
            if (!(entry->dtypes[tensor] & HOB_DTYPE_BIT(dtype)))
                return 0;
        }
        tensor++;
    }
    return 1;
}

/* What is left marked as moved is the kernel's to write to. */
static void settle_consumed(struct hob_call *call, uint32_t consumes)
{
    for (uint32_t i = 0; i < call->arg_count; i++)
        if ((call->args[i].flags & HOB_VALUE_MOVE) &&
            !(consumes >> i & 1 && is_ours(call, i)))
            call->args[i].flags &= (uint8_t)~HOB_VALUE_MOVE;
}

static int is_equal(const hob_value *a, const hob_value *b)
{
    int is_list = a->tag == HOB_TAG_I64S || a->tag == HOB_TAG_F64S;

    if (a->tag != b->tag || (is_list && a->count != b->count))
        return 0;
    if (a->tag == HOB_TAG_STR)
        return !strcmp(a->u.str, b->u.str);
    if (is_list)
        return !a->count ||
               !memcmp(a->u.i64s, b->u.i64s, a->count * sizeof(a->u.i64s[0]));
    return a->u.u64 == b->u.u64; /* a double by its bits */
}

/* The first argument that the kernel was not written for and that is given,
 * not as its default; -1 if there is none. */
static int unknown_argument(const struct hob_call *call,
                            const struct hob__route *route)
{
    const struct hob__signature *signature = &call->core->op->signature;

    for (uint32_t i = route->params; i < signature->param_count; i++)
        if (call->args[i].tag != HOB_TAG_ABSENT &&
            !is_equal(&call->args[i], &signature->params[i].value))
            return (int)i;
    return -1;
}

static hob_status execute(struct hob_call *call, const struct hob__route *route,
                          const struct hob_prepare *plan)
{
    const hob_device *base = call->device->at[0];
    hob_status status = HOB_OK;

    call->workspace = NULL;
    call->prepared = plan->prepared;
    if (call->core->may_reuse)
        settle_consumed(call, route->consumes);
    if (plan->workspace_bytes) {
        status = base->backend->alloc(base->instance, plan->workspace_bytes,
                                      &call->workspace);
        if (status)
            return hob__call_fail(call, status,
                                  "no memory on %s for %" PRIu64
                                  " bytes of workspace",
                                  base->name, plan->workspace_bytes);
    }
    status = route->entry->execute(route->entry_instance, call);
    /* It may have written over its arguments: too late for the body. */
    if (status == HOB_ERR_UNSUPPORTED)
        status = hob__call_fail(
            call, HOB_ERR_PLUGIN, "the kernel on %s gave up in execute%s%s",
            base->name, call->core->error->message ? ": " : "",
            call->core->error->message ? call->core->error->message : "");
    if (status && !call->core->error->status)
        hob__call_fail(call, status, "the kernel on %s failed with %s",
                       base->name, hob_status_name(status));
    if (call->workspace)
        base->backend->free(base->instance, call->workspace,
                            plan->workspace_bytes);
    return status;
}

static hob_status run_planned(struct hob_call *call,
                              const struct hob__route *route,
                              const struct hob_prepare *plan)
{
    const struct hob_entry *entry = route->entry;
    struct temporaries temporaries;
    hob_status status = HOB_OK;

    temporaries.used = 0;
    if (entry->flags & HOB_ENTRY_CONTIGUOUS)
        status = make_contiguous(call, &temporaries);
    if (!status && !(call->flags & HOB_CALL_DYNAMIC))
        status = allocate_results(call, route);
    if (!status && ((call->flags & HOB_CALL_DYNAMIC) || !all_empty(call)))
        status = execute(call, route, plan);
    for (uint32_t i = 0; i < call->ret_count && !status; i++)
        if (!call->rets[i].u.tensor && hob__is_due(call, i))
            status = hob__call_fail(call, HOB_ERR_PLUGIN,
                                    "the kernel on %s made no result %" PRIu32,
                                    call->device->at[0]->name, i);
    if (temporaries.used)
        drop_temporaries(call, &temporaries);
    if (status)
        hob__drop_rets(call);
    return status;
}

/* Ask the kernel for its plan, or find the one that it gave before. */
static hob_status prepare(struct hob_call *call, struct hob__route *route,
                          struct hob_prepare *plan,
                          struct hob__prepared **out_kept)
{
    const struct hob_entry *entry = route->entry;
    pthread_mutex_t *lock = &call->core->runtime->registry.lock;
    hob_status status;

    if (entry->flags & HOB_ENTRY_KEEP) {
        *out_kept = hob__prepared_find(&route->kept, lock, call);
        if (*out_kept)
            return HOB_OK;
    }
    status = entry->prepare(route->entry_instance, call, plan);
    if (status && !call->core->error->status)
        hob__call_fail(call, status, "the kernel on %s cannot be prepared: %s",
                       call->device->at[0]->name, hob_status_name(status));
    if (!status && entry->flags & HOB_ENTRY_KEEP)
        *out_kept = hob__prepared_keep(&route->kept, lock, call, plan);
    return status;
}

static hob_status run_kernel(struct hob_call *call, struct hob__route *route)
{
    struct hob__prepared *kept = NULL;
    struct hob_prepare plan;
    hob_status status = HOB_OK;

    plan.struct_size = sizeof(plan);
    plan.reserved = 0;
    plan.workspace_bytes = 0;
    plan.prepared = NULL;
    plan.release = NULL;
    if (route->entry->prepare) {
        status = prepare(call, route, &plan, &kept);
        if (status)
            return status;
    }
    status = run_planned(call, route, kept ? hob__prepared_plan(kept) : &plan);
    if (kept)
        hob__prepared_give(kept);
    else if (plan.prepared && plan.release)
        plan.release(plan.prepared);
    return status;
}

/* The kernel's call, as a part of a step that is checked. */
static hob_status run_in_script(struct hob_call *call, struct hob__route *route,
                                struct hob__script *script)
{
    hob_status status;

    if (script->use == HOB__SCRIPT_FOLLOW)
        return hob__script_follow(script, call);
    script->depth++;
    status = run_kernel(call, route);
    if (--script->depth || (status && status != HOB_ERR_UNSUPPORTED))
        return status;
    if (hob__script_write(script, call, status != HOB_OK)) {
        hob__drop_rets(call);
        return HOB_ERR_MEMORY;
    }
    return status;
}

static hob_status run_entry(struct hob_call *call, struct hob__route *route)
{
    struct hob__recording *recording = hob__recording_here(call->core->runtime);

    return recording && recording->script.use
               ? run_in_script(call, route, &recording->script)
               : run_kernel(call, route);
}

/* ---- views ---- */

static hob_status try_view(struct hob_call *call, hob_tensor *source,
                           hob_tensor **out_tensor)
{
    hob_tensor *tensor = hob__tensor_blank(call->device, &call->metas[0]);
    hob_status status;

    *out_tensor = NULL;
    if (!tensor)
        return hob__call_fail(call, HOB_ERR_MEMORY,
                              "no memory for a tensor handle");
    tensor->view.data = source->view.data;
    status = call->core->op->decl->view(call, &source->view, &tensor->view);
    if (status) {
        tensor->view.data = NULL;
        hob__tensor_unref(tensor);
        return status;
    }
    tensor->view.flags |= source->view.flags & HOB_VIEW_READ_ONLY;
    hob__storage_ref(source->view.storage);
    tensor->view.storage = source->view.storage;
    *out_tensor = tensor;
    return HOB_OK;
}

static hob_status run_view(struct hob_call *call)
{
    hob_tensor *source = call->args[0].u.tensor;
    hob_tensor *copy = NULL;
    hob_status status = try_view(call, source, &call->rets[0].u.tensor);

    if (status != HOB_ERR_UNSUPPORTED)
        return status;
    status = copy_contiguous(call, source, &copy);
    if (!status)
        status = try_view(call, copy, &call->rets[0].u.tensor);
    hob__tensor_unref(copy);
    return status;
}

static hob_status share_argument(struct hob_call *call)
{
    hob_tensor *tensor =
        hob__tensor_share(call->args[0].u.tensor, call->device, 0);

    call->rets[0].u.tensor = tensor;
    return tensor ? HOB_OK
                  : hob__call_fail(call, HOB_ERR_MEMORY,
                                   "no memory for a tensor handle");
}

/* ---- the hop ---- */

/* "f64 f32" of MASK into TEXT. */
static const char *mask_text(uint32_t mask, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (uint32_t d = HOB_DTYPE_F64; d < HOB_DTYPE_COUNT_; d++) {
        const char *name = hob_dtype_name(d);

        if ((mask & HOB_DTYPE_BIT(d)) && used + strlen(name) + 2 < size) {
            if (used)
                text[used++] = ' ';
            memcpy(text + used, name, strlen(name) + 1);
            used += strlen(name);
        }
    }
    return text;
}

static hob_status wrong_dtype(struct hob_call *call,
                              const struct hob_entry *entry)
{
    const struct hob__signature *signature = &call->core->op->signature;
    char text[128];
    uint32_t tensor = 0;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *value = &call->args[i];
        const hob_tensor *seen;

        if (signature->params[i].type != HOB__TYPE_TENSOR &&
            signature->params[i].type != HOB__TYPE_TENSORS)
            continue;
        if (value->tag != HOB_TAG_ABSENT && tensor < entry->dtype_count) {
            seen = value->tag == HOB_TAG_TENSOR ? value->u.tensor
                                                : value->u.tensors[0];
            if (!(entry->dtypes[tensor] & HOB_DTYPE_BIT(seen->view.dtype)))
                return hob__call_fail(
                    call, HOB_ERR_DTYPE,
                    "%s computes %s for %s, not %s (argument %s): cast with "
                    "hob_cast()",
                    call->device->at[0]->name, call->op_name,
                    mask_text(entry->dtypes[tensor], text, sizeof(text)),
                    hob_dtype_name(seen->view.dtype),
                    signature->params[i].name);
        }
        tensor++;
    }
    return hob__call_fail(call, HOB_ERR_UNSUPPORTED,
                          "%s does not compute %s for these arguments",
                          call->device->at[0]->name, call->op_name);
}

hob_status hob__base(struct hob_call *call)
{
    const struct hob__op *op = call->core->op;
    struct hob__route *route;
    int unknown;

    if (op->decl->view)
        return run_view(call);
    if (op->id == HOB_OP_CONTIGUOUS && is_contiguous(call->args[0].u.tensor))
        return share_argument(call);
    route = hob__route_get(call->device->at[0], op);
    if (route->status)
        return hob__call_fail(call, route->status, "%s", route->message);
    if (!route->entry)
        return route->body ? hob__run_body(call, route->body, 0)
                           : hob__diagnose_unlisted(call, route);
    unknown = unknown_argument(call, route);
    if (unknown >= 0 && !route->body)
        return hob__call_fail(
            call, HOB_ERR_UNSUPPORTED,
            "the kernel on %s does not know %s, which has come later: leave "
            "it at its default, or install a newer version of the plugin",
            call->device->at[0]->name, op->signature.params[unknown].name);
    if (unknown < 0 && hob__entry_serves(call, route->entry)) {
        hob_status status = run_entry(call, route);

        if (status != HOB_ERR_UNSUPPORTED || !route->body)
            return status;
        hob_error_release(call->core->error);
    }
    if (route->body)
        return hob__run_body(call, route->body, 0);
    return wrong_dtype(call, route->entry);
}

hob_status hob__contiguous(hob_tensor *tensor, hob_tensor **out_tensor,
                           hob_error *error)
{
    struct hob_call_state state;
    struct hob_call call;
    hob_error why = HOB_ERROR_INIT;
    hob_status status;

    *out_tensor = NULL;
    status = hob__tensor_settle(tensor, 0, error);
    if (!status)
        status = hob__tensor_check(tensor, error);
    if (status)
        return status;
    if (is_contiguous(tensor)) {
        hob__tensor_ref(tensor);
        *out_tensor = tensor;
        return HOB_OK;
    }
    memset(&state, 0, sizeof(state));
    memset(&call, 0, sizeof(call));
    state.runtime = tensor->device->runtime;
    state.error = &why;
    call.host = &state.runtime->host;
    call.core = &state;
    call.device = tensor->device;
    status = copy_contiguous(&call, tensor, out_tensor);
    if (status)
        hob_error_set(error, status, "%s", hob__error_text(&why));
    hob_error_release(&why);
    return status;
}
