/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - what the layer does with a call: it makes a node of it, and hands
 * out handles that wait.
 *
 * Not of an op whose result sizes depend on data, nor of one that is not
 * declared to run here: the core settles the arguments of those, and they run
 * below at once.
 */
#include "fusion.h"

#include <hob/ops.h>

#include <stdlib.h>

/* The tensors of a call, laid flat. */
struct argument {
    hob_tensor *handle;
    hob_tensor *alias; /* of it, one level down, that nobody has taken yet */
    int is_own;        /* the handle will lead to nothing: it is taken, or not
                          of this stack */
};

struct found {
    struct argument *arguments;
    struct fu_input *inputs;
    uint32_t count;
    void *heap;
    struct argument few_arguments[HOB_MAX_PARAMS];
    struct fu_input few_inputs[HOB_MAX_PARAMS];
};

static uint32_t count_tensors(const struct hob_call *call)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < call->arg_count; i++)
        if (call->args[i].tag == HOB_TAG_TENSOR)
            count++;
        else if (call->args[i].tag == HOB_TAG_TENSORS)
            count += call->args[i].count;
    return count;
}

static hob_status reserve(struct found *found, uint32_t count)
{
    found->count = 0;
    found->heap = NULL;
    found->arguments = found->few_arguments;
    found->inputs = found->few_inputs;
    if (count <= HOB_MAX_PARAMS)
        return HOB_OK;
    found->heap =
        malloc(count * (sizeof(*found->arguments) + sizeof(*found->inputs)));
    if (!found->heap)
        return HOB_ERR_MEMORY;
    found->arguments = (struct argument *)found->heap;
    found->inputs = (struct fu_input *)(void *)(found->arguments + count);
    return HOB_OK;
}

static void add(const struct fu_layer *layer, struct found *found,
                const struct hob_call *call, hob_tensor *handle, int is_taken)
{
    struct argument *argument = &found->arguments[found->count++];

    argument->handle = handle;
    argument->alias = NULL;
    argument->is_own =
        is_taken || layer->host->tensor_device(handle) != call->device;
}

static hob_status list_tensors(const struct fu_layer *layer,
                               struct found *found, const struct hob_call *call)
{
    hob_status status = reserve(found, count_tensors(call));

    for (uint32_t i = 0; i < call->arg_count && !status; i++) {
        const hob_value *arg = &call->args[i];

        if (arg->tag == HOB_TAG_TENSOR)
            add(layer, found, call, arg->u.tensor,
                (arg->flags & HOB_VALUE_MOVE) != 0);
        else if (arg->tag == HOB_TAG_TENSORS)
            for (uint32_t k = 0; k < arg->count; k++)
                add(layer, found, call, arg->u.tensors[k], 0);
    }
    return status;
}

/* Let VALUE, or where that is NULL a leaf, keep the alias of ARGUMENT for the
 * next time; without memory the input has it for itself. */
static struct fu_input keep_alias_locked(struct fu_layer *layer,
                                         struct argument *argument,
                                         struct fu_value *value)
{
    struct fu_input input = {value, NULL};

    if (!value) {
        input.value = fu_leaf_new_locked(layer, argument->alias);
        if (!input.value) {
            input.tensor = argument->alias;
            return input;
        }
        layer->host->set_state(argument->handle, layer->level,
                               fu_settled_word(input.value));
    } else {
        value->tensor = argument->alias;
    }
    argument->alias = NULL;
    return input;
}

/* Find what the node of a call reads. Whether each is there; for the others an
 * alias is needed. */
static int find_inputs_locked(struct fu_layer *layer, struct found *found)
{
    int is_complete = 1;

    for (uint32_t i = 0; i < found->count; i++) {
        struct argument *argument = &found->arguments[i];
        struct fu_input *input = &found->inputs[i];
        void *word = layer->host->state(argument->handle, layer->level);
        struct fu_value *value = word ? fu_value_of(word) : NULL;

        input->value = value;
        input->tensor = NULL;
        if (value &&
            (!fu_is_settled(word) || (value->tensor && !argument->is_own)))
            continue;
        if (!argument->alias) {
            is_complete = 0;
        } else if (argument->is_own) {
            input->value = NULL;
            input->tensor = argument->alias;
        } else {
            *input = keep_alias_locked(layer, argument, value);
        }
    }
    return is_complete;
}

/* An alias of each handle that does not wait and has none. */
static hob_status make_aliases(const struct fu_layer *layer,
                               struct found *found)
{
    for (uint32_t i = 0; i < found->count; i++) {
        struct argument *argument = &found->arguments[i];

        if (argument->alias || fu_waits_for(layer, argument->handle))
            continue;
        argument->alias =
            layer->host->alias(argument->handle, layer->level - 1);
        if (!argument->alias)
            return HOB_ERR_MEMORY;
    }
    return HOB_OK;
}

static void forget(const struct fu_layer *layer, struct found *found,
                   int is_taken)
{
    for (uint32_t i = 0; i < found->count; i++)
        if (found->arguments[i].alias && !(is_taken && found->inputs[i].tensor))
            layer->host->tensor_unref(found->arguments[i].alias);
    free(found->heap);
}

static hob_status no_memory(const struct fu_layer *layer, struct hob_call *call)
{
    return layer->host->fail(call, HOB_ERR_MEMORY,
                             "fusion has no memory to record the call");
}

/* Make the node of CALL: on failure nothing has happened. */
static hob_status make_node(struct fu_layer *layer, const struct hob_call *call,
                            const struct hob_call_origin *origin,
                            struct fu_node **out_node)
{
    struct found found;
    hob_status status = list_tensors(layer, &found, call);
    int is_complete = 0;

    *out_node = NULL;
    while (!status && !is_complete) {
        pthread_mutex_lock(&layer->lock);
        is_complete = find_inputs_locked(layer, &found);
        if (is_complete)
            *out_node = fu_node_new_locked(layer, call, origin, found.inputs,
                                           found.count);
        pthread_mutex_unlock(&layer->lock);
        if (is_complete && !*out_node)
            status = HOB_ERR_MEMORY;
        else if (!is_complete)
            status = make_aliases(layer, &found);
    }
    forget(layer, &found, *out_node != NULL);
    return status;
}

/* The handles of results from FIRST on will never be. */
static void leave(struct fu_layer *layer, struct fu_node *node,
                  const struct hob_call *call, uint32_t first)
{
    struct fu_garbage garbage;

    fu_garbage_init(&garbage, layer->host);
    pthread_mutex_lock(&layer->lock);
    node->refs++;
    for (uint32_t i = first; i < call->ret_count; i++)
        if (call->metas[i].dtype != HOB_DTYPE_NONE) {
            fu_value_leave_locked(layer, &node->values[i], &garbage);
            fu_node_unref_locked(layer, node);
        }
    fu_node_unref_locked(layer, node);
    pthread_mutex_unlock(&layer->lock);
    fu_garbage_empty(&garbage);
}

/* What is put off grows without an end: run it now. A failure is told as that
 * of any evaluation. */
static void evaluate_early(struct fu_layer *layer, struct fu_node *node)
{
    pthread_mutex_lock(&layer->lock);
    for (uint32_t i = 0; i < node->ret_count; i++) {
        struct fu_value *value = &node->values[i];

        if (value->handles)
            (void)fu_evaluate_locked(layer, &value, 1);
    }
    pthread_mutex_unlock(&layer->lock);
}

/* The same where more elements wait than the limit says, for which nobody but
 * what is put off has a use. What a flush leaves does not count again. */
static void evaluate_held(struct fu_layer *layer)
{
    int is_over;

    if (!layer->held_limit)
        return;
    pthread_mutex_lock(&layer->lock);
    if (layer->held_still > layer->held)
        layer->held_still = layer->held;
    is_over = layer->held - layer->held_still > layer->held_limit;
    pthread_mutex_unlock(&layer->lock);
    if (!is_over)
        return;
    (void)fu_flush(layer, NULL);
    pthread_mutex_lock(&layer->lock);
    layer->held_still = layer->held;
    pthread_mutex_unlock(&layer->lock);
}

static hob_status record(struct fu_layer *layer, struct hob_call *call,
                         const struct hob_call_origin *origin)
{
    struct fu_node *node;
    hob_status status = make_node(layer, call, origin, &node);
    uint32_t depth;
    int is_holding;

    if (status)
        return no_memory(layer, call);
    /* Once a handle is out, the node is the program's to drop. */
    depth = node->depth;
    is_holding = node->held != 0;
    for (uint32_t i = 0; i < call->ret_count; i++) {
        if (call->metas[i].dtype == HOB_DTYPE_NONE)
            continue;
        status = layer->host->defer(call, i, fu_word(&node->values[i]));
        if (status) {
            leave(layer, node, call, i);
            return no_memory(layer, call);
        }
        atomic_store_explicit(&node->values[i].handle, call->rets[i].u.tensor,
                              memory_order_relaxed);
    }
    if (layer->depth_limit && depth > layer->depth_limit)
        evaluate_early(layer, node);
    if (is_holding)
        evaluate_held(layer);
    return HOB_OK;
}

/* Whether CALL, of an op that is declared inline, is better taken as it is: a
 * program can have it as a step, or nothing is fused here at all. */
static int is_taken_whole(const struct fu_layer *layer,
                          const struct hob_call *call)
{
    struct hob_fused_step step = {
        .op = (uint16_t)call->op,
        .dtype = call->metas[0].dtype,
        .args = {HOB_FUSED_NONE, HOB_FUSED_NONE, HOB_FUSED_NONE}};
    uint8_t dtypes[3];
    uint32_t count = 0;

    if (!layer->fused)
        return 1;
    if (call->op > UINT16_MAX || call->ret_count != 1)
        return 0;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *arg = &call->args[i];

        if (arg->tag == HOB_TAG_ENUM)
            step.variant = (uint16_t)arg->u.i64;
        if (arg->tag == HOB_TAG_F64)
            step.scalar_count++;
        if (arg->tag != HOB_TAG_TENSOR)
            continue;
        if (count == 2)
            return 0;
        dtypes[count] = (uint8_t)hob_tensor_dtype(arg->u.tensor);
        step.args[count] = (uint8_t)count;
        count++;
    }
    /* Those that broadcast in their own way are not alike step by step. */
    if (!count || (count > 1 && call->op != HOB_OP_ACTIVATION_BACKWARD))
        return 0;
    return layer->fused->supports(layer->fused_instance, &step, dtypes);
}

/* Whether CALL has a result at all: a list of results may be empty. */
static int has_result(const struct hob_call *call)
{
    for (uint32_t i = 0; i < call->ret_count; i++)
        if (call->metas[i].dtype != HOB_DTYPE_NONE)
            return 1;
    return 0;
}

/* Whether CALL is a view of what is there: that moves nothing, and is made as
 * soon as it is noted. A reshape may have to copy. */
static int is_view_of_elements(const struct fu_layer *layer,
                               const struct hob_call *call)
{
    for (uint32_t i = 0; i < call->arg_count; i++)
        if (call->args[i].tag == HOB_TAG_TENSORS ||
            (call->args[i].tag == HOB_TAG_TENSOR &&
             (fu_waits_for(layer, call->args[i].u.tensor) ||
              hob_tensor_dtype(call->args[i].u.tensor) == HOB_DTYPE_QUANT)))
            return 0;
    return call->op != HOB_OP_RESHAPE;
}

int32_t fu_call(void *instance, struct hob_call *call,
                const struct hob_op_impl *impl, hob_status *out_status)
{
    struct fu_layer *layer = (struct fu_layer *)instance;
    struct hob_call_origin origin;

    (void)impl; /* an extension's own rule would be impl->layer */
    if ((call->flags & HOB_CALL_DYNAMIC) || !has_result(call))
        return HOB_LAYER_PASS;
    layer->host->call_origin(call, &origin);
    if (origin.fuse == HOB_FUSE_UNLISTED ||
        (origin.fuse == HOB_FUSE_INLINE && !is_taken_whole(layer, call)))
        return HOB_LAYER_NO_RULE;
    if (origin.fuse == HOB_FUSE_VIEW && is_view_of_elements(layer, call))
        return HOB_LAYER_PASS;
    *out_status = record(layer, call, &origin);
    return HOB_LAYER_DONE;
}
