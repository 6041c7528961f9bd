/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boundary.c - where a call enters: everything is checked here, once.
 *
 * In order: bind the arguments (defaults, tags), look at the tensors (errors,
 * moves, kinds, dtypes, devices), place the call on a device, check scalars,
 * reserve random numbers, infer. The layers below rely on all of it.
 */
#include "boundary.h"

#include "again.h"
#include "error.h"
#include "known.h"
#include "lazy.h"
#include "process.h"
#include "recording.h"

#include <hob/ops.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Random ops get the range of counters that they may use. */
static void reserve_random(struct hob_call *call, hob_scope *scope)
{
    hob_value *seed = &call->args[call->arg_count - 2];
    hob_value *offset = &call->args[call->arg_count - 1];
    const struct hob_meta *meta = &call->metas[0];
    uint64_t blocks = 1;
    uint64_t seed_bits;
    uint64_t offset_bits;

    if (seed->tag != HOB_TAG_ABSENT && offset->tag != HOB_TAG_ABSENT)
        return;
    for (uint32_t i = 0; i < meta->rank; i++)
        blocks *= (uint64_t)meta->shape[i];
    hob__generator_reserve(scope->generator, blocks, &seed_bits, &offset_bits);
    *seed = hob_i64((int64_t)seed_bits);
    *offset = hob_i64((int64_t)offset_bits);
}

/* ---- the call ---- */

static hob_status refuse_fork(struct hob_call *call)
{
    hob_error why = HOB_ERROR_INIT;
    hob_status status = hob__runtime_after_fork(call->core->runtime, &why);

    if (status)
        hob__call_fail(call, status, "%s", hob__error_text(&why));
    hob_error_release(&why);
    return status;
}

static hob_status check_room(struct hob_call *call, uint32_t capacity)
{
    if (call->ret_count <= capacity)
        return HOB_OK;
    return hob__call_fail(call, HOB_ERR_ARGUMENT,
                          "it has %u results, the caller has room for "
                          "%" PRIu32,
                          (unsigned)call->ret_count, capacity);
}

/* What is asked of each call, known or not, once its tensors are in order. */
static inline hob_status check_here(struct hob_call *call)
{
    return hob__recording_here(call->core->runtime) ? hob__recording_see(call)
                                                    : HOB_OK;
}

/* CALL with ARGS is KNOWN, which may know more now: what the call's base says.
 * What is bound as it is given is so with its scalars. */
static inline hob_status take_known(struct hob_call *call,
                                    const hob_value *args, uint32_t arg_count,
                                    struct hob__known_call *known)
{
    hob_status status = HOB_OK;

    if (known->is_bound)
        for (uint32_t i = 0; i < arg_count; i++)
            call->args[i] = args[i];
    else
        status = hob__bind(call, args, arg_count);
    if (!status && !known->is_bound)
        status = hob__check_scalars(call);
    if (call->core->served == HOB__SERVED_UNASKED &&
        atomic_load_explicit(&call->device->at[0]->routes[call->op],
                             memory_order_relaxed))
        hob__known_keep(call, known);
    if (status || known->last_use)
        hob__settle_moves(call);
    return status ? status : check_here(call);
}

/* CALL with ARGS is not known. If an argument must be dequantized first, the
 * rest is for other calls. */
static hob_status look_into(struct hob_call *call, const hob_value *args,
                            uint32_t arg_count, struct hob__known_call *known,
                            struct hob__results *results)
{
    hob_status status = hob__bind(call, args, arg_count);

    if (status)
        hob__settle_moves(call);
    else
        status = hob__see_tensors(call);
    if (status || call->core->quantized)
        return status;
    if (!call->device)
        status = hob__place(call);
    if (!status && call->device->runtime != call->core->runtime)
        status = hob__call_fail(call, HOB_ERR_DEVICE,
                                "the tensors belong to another runtime than "
                                "the scope");
    if (!status)
        status = check_here(call);
    if (!status)
        status = hob__check_scalars(call);
    if (!status)
        status = hob__infer(call, results);
    if (!status)
        hob__known_keep(call, known);
    return status;
}

static hob_status run(struct hob_call *call, const hob_value *args,
                      uint32_t arg_count, struct hob__known_call *known,
                      struct hob__results *results, hob_tensor **out,
                      uint32_t out_capacity)
{
    hob_scope *scope = call->scope;
    hob_status status;

    if (scope->depth > HOB__CALL_DEPTH)
        return hob__call_fail(call, HOB_ERR_PLUGIN,
                              "more than %d calls within each other: does the "
                              "op call itself?",
                              HOB__CALL_DEPTH);
    if (hob__process_forks() !=
        atomic_load_explicit(&scope->runtime->forks, memory_order_relaxed)) {
        status = refuse_fork(call);
        if (status)
            return status;
    }
    if (call->device) {
        status = take_known(call, args, arg_count, known);
    } else {
        status = look_into(call, args, arg_count, known, results);
        if (!status && call->core->quantized)
            return hob__call_quantized(call, out, out_capacity);
    }
    if (!status)
        status = check_room(call, out_capacity);
    if (status)
        return status;
    if (call->core->op->flags & HOB__OP_RANDOM) {
        reserve_random(call, scope);
        call->core->kind = 0;
    }
    if (call->core->op->flags & HOB__OP_DYNAMIC)
        call->flags |= HOB_CALL_DYNAMIC;
    if (call->device->depth <= scope->level)
        return hob__walk(call, call->device->depth);
    /* The layers above the scope's level do not see the call. */
    status = hob__settle_arguments(call, scope->level);
    return status ? status : hob__walk(call, scope->level);
}

/* MESSAGE without the name of its op in front: kernels and inference begin
 * with it, and so does the diagnostic that the message becomes part of. */
static const char *without_name(const char *message, const char *name)
{
    size_t size = strlen(name);

    if (!strncmp(message, name, size) && !strncmp(message + size, ": ", 2))
        return message + size + 2;
    return message;
}

/* The call failed: make the scope's failure of it and tell the policy. */
static hob_tensor *report(struct hob_call *call, hob_status status)
{
    hob_scope *scope = call->scope;
    struct hob__failure *failure = call->core->cause;

    if (failure) { /* told before, when it happened */
        hob__failure_ref(failure);
        return hob__scope_failure(scope, failure);
    }
    failure = hob__failure_new(
        status, call->op_name, call->core->index,
        without_name(hob__error_text(call->core->error), call->op_name));
    return hob__scope_raise(scope, failure);
}

static hob_status adopt_results(struct hob_call *call, hob_tensor **out)
{
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < call->ret_count; i++) {
        out[i] = call->rets[i].u.tensor;
        call->rets[i].u.tensor = NULL;
        if (!out[i])
            continue;
        if (!status)
            status = hob__scope_adopt(call->scope, out[i]);
        else
            hob__tensor_unref(out[i]);
    }
    if (status)
        hob__call_fail(call, status, "no memory for the scope's list");
    return status;
}

hob_status hob__call(hob_scope *scope, uint32_t id, const hob_value *args,
                     uint32_t arg_count, hob_tensor **out,
                     uint32_t out_capacity, uint32_t *out_count,
                     hob_value *out_plains, uint32_t plain_capacity)
{
    const struct hob__registry *registry = &scope->runtime->registry;
    hob_value values[HOB_MAX_PARAMS];
    hob_error error = HOB_ERROR_INIT;
    struct hob__results results;
    struct hob_call_state state;
    struct hob_call call;
    struct hob__known_call known;
    const struct hob__op *op;
    hob_status status;

    *out_count = 0;
    if (!id || id >= registry->op_count) {
        hob_tensor *failed = hob__scope_fail(
            scope, HOB_ERR_NOT_FOUND,
            "there is no op with the number %" PRIu32
            " in this runtime: the extension that declares it is not "
            "installed (see hob ops)",
            id);
        for (uint32_t i = 0; i < out_capacity; i++)
            out[i] = failed;
        for (uint32_t i = 0; i < plain_capacity; i++)
            out_plains[i] = hob_value_make(HOB_TAG_ABSENT, 0);
        return HOB_ERR_NOT_FOUND;
    }
    op = &registry->ops[id];
    if (hob__known_find(scope->runtime, op, args, arg_count, &results,
                        &known) &&
        known.device->has_again && !plain_capacity &&
        op->signature.result_count <= out_capacity &&
        hob__again(scope, op, args, arg_count, &known, &results, out)) {
        *out_count = op->signature.result_count;
        return HOB_OK;
    }
    state.op = op;
    state.runtime = scope->runtime;
    state.error = &error;
    state.cause = NULL;
    state.given = args;
    state.given_count = arg_count;
    state.moved = 0;
    state.may_reuse = 0;
    state.quantized = 0;
    state.index = ++scope->calls;
    state.levels = known.levels;
    state.device_param = known.device_param;
    state.served = known.served;
    state.kind = known.kind;
    call.host = &scope->runtime->host;
    call.op = id;
    call.flags = 0;
    call.scope = scope;
    call.device = known.device;
    call.level = 0;
    call.arg_count = op->signature.param_count;
    call.ret_count = op->signature.result_count;
    call.args = values;
    call.rets = results.rets;
    call.metas = results.metas;
    call.plains = results.plains;
    call.plain_count = op->signature.plain_count;
    call.reserved[0] = call.reserved[1] = call.reserved[2] = 0;
    call.stream = NULL;
    call.workspace = NULL;
    call.prepared = NULL;
    call.op_name = op->name;
    call.core = &state;
    state.expected = results.expected;
    results.heap = NULL;
    hob__blank_rets(&call);

    scope->depth++;
    status = run(&call, args, arg_count, &known, &results, out, out_capacity);
    scope->depth--;
    if (!status && !state.quantized)
        status = adopt_results(&call, out);
    if ((uint32_t)status >= HOB_STATUS_COUNT_) /* some plugin's own number */
        status = HOB_ERR_PLUGIN;
    if (state.moved)
        hob__bury_moved(&call);
    if (status) {
        hob_tensor *failed = report(&call, status);

        for (uint32_t i = 0; i < out_capacity; i++)
            out[i] = failed;
    }
    for (uint32_t i = 0; i < plain_capacity; i++)
        out_plains[i] = !status && i < call.plain_count
                            ? results.plains[i]
                            : hob_value_make(HOB_TAG_ABSENT, 0);
    if (results.heap)
        free(results.heap);
    /* A call that succeeded another way may have left a message as well. */
    if (error.message)
        hob_error_release(&error);
    *out_count = call.ret_count;
    return status;
}
