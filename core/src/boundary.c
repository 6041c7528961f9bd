/* SPDX-License-Identifier: Apache-2.0 */
/*
 * boundary.c - where a call enters: everything is checked here, once.
 *
 * In order: bind the arguments (defaults, tags), look at the tensors (errors,
 * moves, kinds, dtypes, devices), place the call on a device, check scalars,
 * reserve random numbers, infer. The layers below rely on all of it.
 */
#include "boundary.h"

#include "error.h"
#include "lazy.h"
#include "process.h"
#include "recording.h"

#include <hob/ops.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors ---- */

/* A short name of parameter INDEX's tensor, as in "rhs: f32[2,3] on flex". */
static const char *tensor_text(const hob_tensor *tensor, char *text,
                               size_t size)
{
    struct hob_meta meta = hob__tensor_meta(tensor);

    return hob__meta_text(&meta, text, size);
}

static hob_status mixed_devices(struct hob_call *call, uint32_t index,
                                const hob_tensor *tensor)
{
    const struct hob__signature *signature = &call->core->op->signature;
    const hob_device *a = call->device;
    const hob_device *b = tensor->device;
    const char *first = signature->params[call->core->device_param].name;
    const char *second = signature->params[index].name;

    if (a->runtime != b->runtime)
        return hob__call_fail(call, HOB_ERR_DEVICE,
                              "arguments %s and %s belong to two runtimes: "
                              "read one and make it again in the other",
                              first, second);
    if (a->at[0] == b->at[0])
        return hob__call_fail(
            call, HOB_ERR_DEVICE,
            "argument %s is on %s and argument %s on %s: neither stack "
            "contains the other, layers with different options cannot be "
            "joined; bring one over with hob_to_device()",
            first, a->name, second, b->name);
    return hob__call_fail(call, HOB_ERR_DEVICE,
                          "argument %s is on %s and argument %s on %s: "
                          "nothing moves by itself; bring one over with "
                          "hob_to_device()",
                          first, a->name, second, b->name);
}

/* The first parameter of the kind of INDEX that is there before it. */
static uint32_t partner_of(const struct hob_call *call, uint32_t index)
{
    const struct hob__op *op = call->core->op;
    uint32_t other = op->partner[index];

    if (other == HOB__NO_PARTNER || call->args[other].tag != HOB_TAG_ABSENT)
        return other;
    for (uint32_t i = other + 1; i < index; i++)
        if ((call->args[i].tag == HOB_TAG_TENSOR ||
             call->args[i].tag == HOB_TAG_TENSORS) &&
            op->signature.params[i].mask == op->signature.params[index].mask)
            return i;
    return HOB__NO_PARTNER;
}

static hob_status check_dtype(struct hob_call *call, uint32_t index,
                              const hob_tensor *tensor)
{
    const struct hob__op *op = call->core->op;
    const struct hob__param *param = &op->signature.params[index];
    const hob_tensor *partner;
    uint32_t other = partner_of(call, index);
    char text[HOB__META_TEXT];
    char other_text[HOB__META_TEXT];

    if (!(param->mask & HOB_DTYPE_BIT(tensor->view.dtype))) {
        if (tensor->view.dtype == HOB_DTYPE_QUANT) {
            call->core->quantized = 1; /* it will be dequantized */
            return HOB_OK;
        }
        return hob__call_fail(
            call, HOB_ERR_DTYPE, "argument %s is %s, it must be %s: use %s",
            param->name, tensor_text(tensor, text, sizeof(text)), param->kind,
            param->mask == HOB_DTYPE_BIT(HOB_DTYPE_QUANT)
                ? "hob_quantize_dynamic()"
                : "hob_cast()");
    }
    if (other == HOB__NO_PARTNER || call->core->quantized)
        return HOB_OK;
    partner = call->args[other].tag == HOB_TAG_TENSORS
                  ? call->args[other].u.tensors[0]
                  : call->args[other].u.tensor;
    if (partner->view.dtype == tensor->view.dtype)
        return HOB_OK;
    return hob__call_fail(
        call, HOB_ERR_DTYPE,
        "argument %s is %s and argument %s is %s: there is no implicit "
        "promotion; cast one with hob_cast(scope, %s, HOB_DTYPE_...)",
        op->signature.params[other].name,
        tensor_text(partner, other_text, sizeof(other_text)), param->name,
        tensor_text(tensor, text, sizeof(text)), param->name);
}

/* An argument that carries a failure: the call ends with the same one. */
static hob_status dead_tensor(struct hob_call *call, const char *name,
                              hob_tensor *tensor)
{
    hob_error why = HOB_ERROR_INIT;
    hob_status status;

    if (tensor->flags & HOB__TENSOR_ERROR) {
        call->core->cause = tensor->failure;
        return tensor->failure ? tensor->failure->status : HOB_ERR_MEMORY;
    }
    status = hob__tensor_check(tensor, &why);
    hob__call_fail(call, status, "argument %s cannot be used: %s", name,
                   hob__error_text(&why));
    hob_error_release(&why);
    return status;
}

static hob_status see_tensor(struct hob_call *call, uint32_t index,
                             hob_tensor *tensor)
{
    hob_device *joined;

    if (tensor->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED))
        return dead_tensor(call, call->core->op->signature.params[index].name,
                           tensor);
    if (!call->device) {
        call->device = tensor->device;
        call->core->device_param = (uint8_t)index;
    } else if (call->device != tensor->device) {
        joined = hob__device_join(call->device, tensor->device);
        if (!joined)
            return mixed_devices(call, index, tensor);
        if (call->device != joined)
            call->core->device_param = (uint8_t)index;
        call->device = joined;
    }
    return check_dtype(call, index, tensor);
}

static hob_status see_tensors(struct hob_call *call)
{
    hob_status status = HOB_OK;
    uint32_t any_last_use = 0;
    uint32_t levels = 0;

    for (uint32_t i = 0; i < call->arg_count && !status; i++) {
        const hob_value *value = &call->args[i];

        if (value->tag == HOB_TAG_TENSOR) {
            any_last_use |= (value->flags & HOB_VALUE_MOVE) |
                            (value->u.tensor->flags & HOB__TENSOR_LAST_USE);
            levels |= hob__tensor_levels(value->u.tensor);
            status = see_tensor(call, i, value->u.tensor);
        } else if (value->tag == HOB_TAG_TENSORS) {
            for (uint32_t k = 0; k < value->count && !status; k++) {
                if (!value->u.tensors[k])
                    status = hob__call_fail(
                        call, HOB_ERR_ARGUMENT,
                        "item %" PRIu32 " of argument %s is NULL", k,
                        call->core->op->signature.params[i].name);
                else
                    status = see_tensor(call, i, value->u.tensors[k]);
                if (value->u.tensors[k]) {
                    any_last_use |=
                        value->u.tensors[k]->flags & HOB__TENSOR_LAST_USE;
                    levels |= hob__tensor_levels(value->u.tensors[k]);
                }
                /* Items share one dtype. */
                if (!status && k && !call->core->quantized &&
                    value->u.tensors[k]->view.dtype !=
                        value->u.tensors[0]->view.dtype)
                    status = hob__call_fail(
                        call, HOB_ERR_DTYPE,
                        "item %" PRIu32 " of argument %s is %s, item 0 is "
                        "%s: cast one with hob_cast()",
                        k, call->core->op->signature.params[i].name,
                        hob_dtype_name(value->u.tensors[k]->view.dtype),
                        hob_dtype_name(value->u.tensors[0]->view.dtype));
            }
        }
    }
    call->core->levels = levels;
    /* After a failure there may be moves among what was not looked at. */
    if (any_last_use || status)
        hob__settle_moves(call);
    return status;
}

/* ---- the device of a call without tensors ---- */

static hob_status place(struct hob_call *call)
{
    const struct hob__op *op = call->core->op;
    const struct hob__manifest_op *manifest = op->manifest;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        if (call->args[i].tag != HOB_TAG_DEVICE)
            continue;
        call->device = call->args[i].u.device;
        if (call->device->runtime != call->core->runtime)
            return hob__call_fail(call, HOB_ERR_DEVICE,
                                  "device %s belongs to another runtime",
                                  call->device->name);
        return HOB_OK;
    }
    if (manifest && manifest->selector_count == 1 &&
        strcmp(manifest->selectors[0].name, "*")) {
        hob_error why = HOB_ERROR_INIT;
        hob_status status =
            hob_device_open(call->core->runtime, manifest->selectors[0].name,
                            &call->device, &why);

        if (status)
            hob__call_fail(call, status, "%s", hob__error_text(&why));
        hob_error_release(&why);
        if (!status) /* it lives as long as the runtime */
            hob_device_unref(call->device);
        return status;
    }
    return hob__call_fail(call, HOB_ERR_ARGUMENT,
                          "no tensor input to select a backend from: give it "
                          "a tensor or a device");
}

/* ---- inference ---- */

static void preset_dtypes(const struct hob_call *call, struct hob_meta *metas)
{
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob__result *result = hob__result_of(call, i);

        metas[i].rank = 0;
        metas[i].reserved0 = 0;
        metas[i].scheme = 0;
        if (result->flags & HOB__PARAM_OPTIONAL) /* absent, unless inferred */
            metas[i].dtype = HOB_DTYPE_NONE;
        else if (result->source == HOB__RESULT_DTYPE)
            metas[i].dtype = result->dtype;
        else if (result->source == HOB__RESULT_INFERRED)
            metas[i].dtype = HOB_DTYPE_NONE;
        else
            metas[i].dtype =
                (uint8_t)hob__value_dtype(&call->args[result->param]);
        if (metas[i].dtype == HOB_DTYPE_QUANT &&
            call->args[result->param].tag == HOB_TAG_TENSOR)
            metas[i].scheme = call->args[result->param].u.tensor->view.scheme;
    }
}

/* The results that are no tensors, as zeros of their types. */
static void preset_plains(const struct hob_call *call)
{
    static const uint8_t tags[] = {[HOB__TYPE_F64] = HOB_TAG_F64,
                                   [HOB__TYPE_I64] = HOB_TAG_I64,
                                   [HOB__TYPE_BOOL] = HOB_TAG_BOOL,
                                   [HOB__TYPE_DTYPE] = HOB_TAG_DTYPE,
                                   [HOB__TYPE_ENUM] = HOB_TAG_ENUM};
    const struct hob__signature *signature = &call->core->op->signature;

    for (uint32_t i = 0; i < call->plain_count; i++)
        call->plains[i] = hob_value_make(tags[signature->plains[i].type], 1);
}

/* Where the results belong to variants, they must be those of one variant. */
static hob_status check_result_variants(struct hob_call *call)
{
    const struct hob__signature *signature = &call->core->op->signature;

    for (uint32_t i = 0; i < call->plain_count; i++)
        if (signature->plains[i].type == HOB__TYPE_ENUM &&
            (call->plains[i].u.i64 < 0 ||
             call->plains[i].u.i64 >= signature->plains[i].enumerator_count))
            return hob__call_fail(
                call, HOB_ERR_PLUGIN,
                "its inference gave %s the enumerator %" PRId64
                ", there are %u: a bug of whoever declares the op",
                signature->plains[i].name ? signature->plains[i].name : "it",
                call->plains[i].u.i64,
                (unsigned)signature->plains[i].enumerator_count);
    for (uint32_t i = 0; i < call->ret_count; i++) {
        const struct hob__result *result = &signature->results[i];
        int there = call->metas[i].dtype != HOB_DTYPE_NONE;
        int chosen = result->tag_plain == HOB__NO_TAG ||
                     call->plains[result->tag_plain].u.i64 == result->variant;

        if ((there && !chosen) ||
            (!there && chosen &&
             (result->flags &
              (result->tag_plain == HOB__NO_TAG ? 0 : HOB__PARAM_NEEDED))))
            return hob__call_fail(
                call, HOB_ERR_PLUGIN,
                "its inference says that result %s is %s, which is not what "
                "the variant that it chose has: a bug of whoever declares the "
                "op",
                result->name, there ? "there" : "absent");
    }
    return HOB_OK;
}

static hob_infer_fn find_infer(struct hob_call *call, hob_status *out_status)
{
    const struct hob__op *op = call->core->op;
    hob_error why = HOB_ERROR_INIT;
    const struct hob_extension_op *table;

    *out_status = HOB_OK;
    if (op->decl->infer)
        return op->decl->infer;
    *out_status = hob__op_load(call->core->runtime, op, &why);
    if (*out_status)
        hob__call_fail(call, *out_status, "%s", hob__error_text(&why));
    hob_error_release(&why);
    table = atomic_load(&op->table);
    return table ? table->infer : NULL;
}

static hob_status infer_failed(struct hob_call *call, hob_status status)
{
    return call->core->error->status
               ? status
               : hob__call_fail(
                     call, status,
                     "its inference of shapes failed without a message");
}

/*
 * Where the results of a call are described. There is room for what any
 * signature can name; a list may need more.
 */
struct results {
    hob_value rets[HOB_MAX_RESULTS];
    struct hob_meta metas[HOB_MAX_RESULTS];
    uint64_t bytes[HOB_MAX_RESULTS];
    hob_value plains[HOB_MAX_RESULTS];
    void *heap; /* NULL: the arrays above were enough */
};

static void blank_rets(struct hob_call *call)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        call->rets[i] = hob_value_make(HOB_TAG_TENSOR, 1);
}

/* Ask how long the list of results is, and make room for it. */
static hob_status size_list(struct hob_call *call, hob_infer_fn fn,
                            struct results *results)
{
    size_t count;
    hob_status status;

    call->ret_count = 0;
    status = fn(call, NULL);
    if (status)
        return status;
    count = call->ret_count;
    if (count > HOB_MAX_RESULTS) {
        results->heap =
            malloc(count * (sizeof(hob_value) + sizeof(struct hob_meta) +
                            sizeof(uint64_t)));
        if (!results->heap) {
            call->ret_count = 0;
            return hob__call_fail(call, HOB_ERR_MEMORY,
                                  "no memory for a list of %zu results", count);
        }
        call->rets = results->heap;
        call->metas = (struct hob_meta *)(void *)(call->rets + count);
        call->core->bytes = (uint64_t *)(uintptr_t)(call->metas + count);
    }
    blank_rets(call);
    return HOB_OK;
}

static hob_status infer(struct hob_call *call, struct results *results)
{
    const struct hob__op *op = call->core->op;
    char text[HOB__META_TEXT];
    hob_status status = HOB_OK;
    hob_infer_fn fn = op->decl->infer;
    struct hob_meta *metas;

    if (!fn)
        fn = find_infer(call, &status);
    if (fn && op->signature.results[0].is_list) {
        status = size_list(call, fn, results);
        if (status)
            return infer_failed(call, status);
    }
    metas = (struct hob_meta *)(uintptr_t)call->metas; /* ours */
    preset_dtypes(call, metas);
    if (call->plain_count)
        preset_plains(call);
    if (!fn && (op->flags & HOB__OP_DYNAMIC))
        return HOB_OK;
    if (!fn)
        return status ? status
                      : hob__call_fail(call, HOB_ERR_PLUGIN,
                                       "its extension supplies no inference "
                                       "of shapes");
    status = fn(call, metas);
    if (status)
        return infer_failed(call, status);
    if (call->plain_count) {
        status = check_result_variants(call);
        if (status)
            return status;
    }
    for (uint32_t i = 0; i < call->ret_count; i++) {
        if (!hob__is_due(call, i))
            continue;
        if (metas[i].dtype == HOB_DTYPE_NONE)
            return hob__call_fail(call, HOB_ERR_PLUGIN,
                                  "its inference did not set out[%" PRIu32
                                  "].dtype, and the signature gives only a "
                                  "kind: a bug of whoever declares the op",
                                  i);
        if (!hob__meta_is_sound(&metas[i]))
            return hob__call_fail(call, HOB_ERR_PLUGIN,
                                  "its inference of shapes gave result %" PRIu32
                                  " the rank %u and the dtype number %u: a bug "
                                  "of whoever declares the op",
                                  i, (unsigned)metas[i].rank,
                                  (unsigned)metas[i].dtype);
        if (hob__meta_bytes(&metas[i], &call->core->bytes[i]))
            return hob__call_fail(
                call, HOB_ERR_SHAPE,
                "result %" PRIu32 " would be %s, larger than any memory", i,
                hob__meta_text(&metas[i], text, sizeof(text)));
    }
    return HOB_OK;
}

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

static hob_status run(struct hob_call *call, const hob_value *args,
                      uint32_t arg_count, struct results *results,
                      hob_tensor **out, uint32_t out_capacity)
{
    hob_scope *scope = call->scope;
    hob_status status = HOB_OK;

    if (scope->depth > HOB__CALL_DEPTH)
        return hob__call_fail(call, HOB_ERR_PLUGIN,
                              "more than %d calls within each other: does the "
                              "op call itself?",
                              HOB__CALL_DEPTH);
    if (hob__process_forks() !=
        atomic_load_explicit(&scope->runtime->forks, memory_order_relaxed))
        status = refuse_fork(call);
    if (!status) {
        status = hob__bind(call, args, arg_count);
        if (status)
            hob__settle_moves(call);
    }
    if (!status)
        status = see_tensors(call);
    if (!status && call->core->quantized) /* other calls do the rest */
        return hob__call_quantized(call, out, out_capacity);
    if (!status && !call->device)
        status = place(call);
    if (!status && call->device->runtime != scope->runtime)
        status = hob__call_fail(call, HOB_ERR_DEVICE,
                                "the tensors belong to another runtime than "
                                "the scope");
    if (!status && hob__recording_here(scope->runtime))
        status = hob__recording_see(call);
    if (!status)
        status = hob__check_scalars(call);
    if (!status)
        status = infer(call, results);
    if (!status)
        status = check_room(call, out_capacity);
    if (status)
        return status;
    if (call->core->op->flags & HOB__OP_RANDOM)
        reserve_random(call, scope);
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
    struct results results;
    struct hob_call_state state;
    struct hob_call call;
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
    state.op = &registry->ops[id];
    state.runtime = scope->runtime;
    state.error = &error;
    state.cause = NULL;
    state.moved = 0;
    state.may_reuse = 0;
    state.quantized = 0;
    state.index = ++scope->calls;
    state.device_param = 0;
    call.host = &scope->runtime->host;
    call.op = id;
    call.flags = 0;
    call.scope = scope;
    call.device = NULL;
    call.level = 0;
    call.arg_count = state.op->signature.param_count;
    call.ret_count = state.op->signature.result_count;
    call.args = values;
    call.rets = results.rets;
    call.metas = results.metas;
    call.plains = results.plains;
    call.plain_count = state.op->signature.plain_count;
    memset(call.reserved, 0, sizeof(call.reserved));
    call.stream = NULL;
    call.workspace = NULL;
    call.prepared = NULL;
    call.op_name = state.op->name;
    call.core = &state;
    state.bytes = results.bytes;
    results.heap = NULL;
    blank_rets(&call);

    scope->depth++;
    status = run(&call, args, arg_count, &results, out, out_capacity);
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
    free(results.heap);
    /* A call that succeeded another way may have left a message as well. */
    if (error.message)
        hob_error_release(&error);
    *out_count = call.ret_count;
    return status;
}

/* ---- what a call would give ---- */

/* A tensor like META that has no elements: inference looks at its view. */
static void imagine(hob_tensor *tensor, const struct hob_meta *meta)
{
    struct hob_view *view = &tensor->view;
    int64_t stride = 1;

    memset(view, 0, sizeof(*view));
    view->dtype = meta->dtype;
    view->rank = meta->rank;
    view->scheme = meta->scheme;
    view->flags = HOB_VIEW_CONTIGUOUS;
    for (uint32_t k = meta->rank; k--;) {
        view->shape[k] = meta->shape[k];
        view->strides[k] = stride;
        stride *= meta->shape[k];
    }
}

/* Bind ARGS with tensors of TENSORS in place of what METAS tell of. */
static hob_status imagine_args(struct hob_call *call, const hob_value *args,
                               uint32_t arg_count, hob_tensor *tensors,
                               const struct hob_meta *metas)
{
    hob_value bound[HOB_MAX_PARAMS];
    hob_status status;

    if (arg_count > HOB_MAX_PARAMS)
        return HOB_ERR_ARGUMENT;
    for (uint32_t i = 0; i < arg_count; i++) {
        bound[i] = args[i];
        if (args[i].tag == HOB_TAG_TENSORS)
            return HOB_ERR_UNSUPPORTED;
        if (args[i].tag != HOB_TAG_TENSOR)
            continue;
        imagine(&tensors[i], metas++);
        bound[i].u.tensor = &tensors[i];
        bound[i].flags = 0;
    }
    status = hob__bind(call, bound, arg_count);
    for (uint32_t i = 0; i < call->arg_count && !status; i++)
        if (call->args[i].tag == HOB_TAG_TENSOR)
            status = check_dtype(call, i, call->args[i].u.tensor);
    return status;
}

hob_status hob__foresee(hob_device *device, uint32_t id, const hob_value *args,
                        uint32_t arg_count, const struct hob_meta *metas,
                        struct hob_meta *out)
{
    hob_device *base = device->at[0];
    const struct hob__registry *registry = &device->runtime->registry;
    const struct hob__op *op = &registry->ops[id];
    const struct hob__route *route;
    hob_tensor tensors[HOB_MAX_PARAMS];
    hob_value values[HOB_MAX_PARAMS];
    hob_error error = HOB_ERROR_INIT;
    struct results results = {.heap = NULL};
    struct hob_call_state state = {.op = op,
                                   .runtime = device->runtime,
                                   .error = &error,
                                   .bytes = results.bytes};
    struct hob_call call = {.host = &device->runtime->host,
                            .op = id,
                            .device = base,
                            .arg_count = op->signature.param_count,
                            .ret_count = op->signature.result_count,
                            .args = values,
                            .rets = results.rets,
                            .metas = results.metas,
                            .plains = results.plains,
                            .plain_count = op->signature.plain_count,
                            .op_name = op->name,
                            .core = &state};
    hob_status status;

    if (op->signature.result_count != 1 || op->signature.results[0].is_list ||
        (op->flags & HOB__OP_DYNAMIC))
        return HOB_ERR_UNSUPPORTED;
    blank_rets(&call);
    status = imagine_args(&call, args, arg_count, tensors, metas);
    if (!status && state.quantized)
        status = HOB_ERR_UNSUPPORTED;
    if (!status)
        status = hob__check_scalars(&call);
    if (!status)
        status = infer(&call, &results);
    if (!status) {
        *out = results.metas[0];
        route = hob__route_get(base, op);
        if (route->status || !route->entry ||
            !hob__entry_serves(&call, route->entry))
            status = HOB_ERR_UNSUPPORTED;
    }
    hob_error_release(&error);
    return status;
}
