/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel.c - a call's kernel: whether it serves, its plan, its run.
 */
#include "base.h"

#include "error.h"
#include "recording.h"
#include "runtime.h"

#include <inttypes.h>
#include <string.h>

/* Nothing to compute: no kernel ever sees an empty launch. */
static int all_empty(const struct hob_call *call)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        if (call->rets[i].u.tensor && call->rets[i].u.tensor->view.storage)
            return 0;
    return call->ret_count > 0;
}

/* What is left marked as moved is the kernel's to write to. */
static void settle_consumed(struct hob_call *call, uint32_t consumes)
{
    for (uint32_t i = 0; i < call->arg_count; i++)
        if ((call->args[i].flags & HOB_VALUE_MOVE) &&
            !(consumes >> i & 1 && hob__is_ours(call, i)))
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

/* Whether ENTRY is for the dtypes of CALL's arguments. */
static int takes_dtypes(const struct hob_call *call,
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

/* The first argument that the kernel of ROUTE was not written for and that is
 * given, not as its default; -1 if there is none. */
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

int hob__kernel_serves(const struct hob_call *call,
                       const struct hob__route *route, int *out_unknown)
{
    const int unknown = route->entry ? unknown_argument(call, route) : -1;

    if (out_unknown)
        *out_unknown = unknown;
    return route->entry && unknown < 0 && takes_dtypes(call, route->entry);
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
    struct hob__temporaries temporaries;
    hob_status status = HOB_OK;

    temporaries.used = 0;
    if (entry->flags & HOB_ENTRY_CONTIGUOUS)
        status = hob__make_contiguous(call, &temporaries);
    if (!status && !(call->flags & HOB_CALL_DYNAMIC))
        status = hob__allocate_results(call, route);
    if (!status && ((call->flags & HOB_CALL_DYNAMIC) || !all_empty(call)))
        status = execute(call, route, plan);
    for (uint32_t i = 0; i < call->ret_count && !status; i++)
        if (!call->rets[i].u.tensor && hob__is_due(call, i))
            status = hob__call_fail(call, HOB_ERR_PLUGIN,
                                    "the kernel on %s made no result %" PRIu32,
                                    call->device->at[0]->name, i);
    if (temporaries.used)
        hob__drop_temporaries(call, &temporaries);
    if (status)
        hob__drop_rets(call);
    else if (route->range && !hob__recording_here(call->core->runtime))
        route->range(call);
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

hob_status hob__run_entry(struct hob_call *call, struct hob__route *route)
{
    struct hob__recording *recording = hob__recording_here(call->core->runtime);

    return recording && recording->script.use
               ? run_in_script(call, route, &recording->script)
               : run_kernel(call, route);
}
