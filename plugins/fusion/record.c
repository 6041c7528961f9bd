/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.c - what the layer does with a call: it makes a node of it, and hands
 * out handles that wait.
 *
 * Not of an op whose result sizes depend on data, nor of one that is not
 * declared to run here: the core settles the arguments of those, and they run
 * below at once.
 */
#include "node.h"

#include <hob/ops.h>

#include <stdlib.h>
#include <string.h>

/*
 * A handle that does not wait and was no input yet has no tensor one level
 * down: an alias, one for each input of the call. Making one may run ops, so it
 * is not done under the lock; mostly there is nothing to make.
 */
struct aliases {
    hob_tensor **of; /* that nobody has taken yet; NULL: none is needed */
    uint32_t count;
    hob_tensor *few[HOB_MAX_PARAMS];
};

/* Let VALUE, or where that is NULL a leaf, keep the ALIAS of HANDLE for the
 * next time; without memory the input has it for itself. */
static void keep_alias_locked(struct fu_layer *layer, struct fu_input *input,
                              hob_tensor *handle, hob_tensor **alias)
{
    if (input->value) {
        input->value->tensor = *alias;
    } else {
        input->value = fu_leaf_new_locked(layer, *alias);
        if (!input->value) {
            input->tensor = *alias;
            return;
        }
        layer->host->set_state(handle, layer->level,
                               fu_settled_word(input->value));
    }
    *alias = NULL;
}

/* What is read of VALUE: of a reshape to the same shape, which backward rules
 * make that serve all ranks, what it is of. So it parts no group, and is
 * dropped with its handle. */
static inline struct fu_value *behind(struct fu_value *value)
{
    const struct fu_node *node = value->node;

    while (node->op == HOB_OP_RESHAPE && node->state == FU_NODE_PENDING &&
           node->inputs[0].value) {
        struct fu_value *of = node->inputs[0].value;

        if (of->dtype != value->dtype || of->scheme != value->scheme ||
            of->rank != value->rank ||
            memcmp(of->shape, value->shape, of->rank * sizeof(int64_t)) != 0)
            break;
        value = of;
        node = of->node;
    }
    return value;
}

/* Let INPUT be what WORD leads to. Whether that is there: a handle that does
 * not wait may have none. */
static inline int read_word_locked(struct fu_input *input, void *word)
{
    struct fu_value *value = fu_value_of(word);

    input->tensor = NULL;
    input->value = fu_is_settled(word) ? value : behind(value);
    return !fu_is_settled(word) || value->tensor;
}

/* Whether INPUT of a node, which is HANDLE, is there; else ALIAS is needed. The
 * node has it for itself where the handle IS_MOVED, or is not of the stack of
 * DEVICE: it will lead to nothing. */
static inline int find_input_locked(struct fu_layer *layer,
                                    struct fu_input *input, hob_tensor *handle,
                                    const hob_device *device, int is_moved,
                                    hob_tensor **alias)
{
    void *word = layer->host->state(handle, layer->level);

    input->tensor = NULL;
    input->value = NULL;
    if (word && read_word_locked(input, word) &&
        (!fu_is_settled(word) || !is_moved))
        return 1;
    if (!alias || !*alias)
        return 0;
    if (is_moved || layer->host->tensor_device(handle) != device) {
        input->value = NULL;
        input->tensor = *alias;
    } else {
        keep_alias_locked(layer, input, handle, alias);
    }
    return 1;
}

/* The bytes of elements that INPUT, whose handle is moved, has. */
static uint64_t held_by(const struct fu_input *input)
{
    const hob_tensor *tensor = fu_tensor_of(input);

    return tensor ? (uint64_t)hob_tensor_count(tensor) *
                        hob_dtype_size(hob_tensor_dtype(tensor))
                  : 0;
}

/* Find what NODE of CALL reads. Whether all of it is there. */
static inline int find_inputs_locked(struct fu_layer *layer,
                                     const struct hob_call *call,
                                     struct fu_node *node, hob_tensor **alias)
{
    struct fu_input *input = node->inputs;
    int is_complete = 1;

    for (uint32_t i = 0; i < call->arg_count; i++) {
        const hob_value *arg = &call->args[i];

        if (arg->tag == HOB_TAG_TENSOR) {
            const int is_moved = arg->flags & HOB_VALUE_MOVE;

            is_complete &= find_input_locked(layer, input, arg->u.tensor,
                                             call->device, is_moved, alias);
            if (is_moved)
                node->held += held_by(input);
            input++;
            alias += alias != NULL;
        }
        for (uint32_t k = 0; arg->tag == HOB_TAG_TENSORS && k < arg->count;
             k++, input++, alias += alias != NULL)
            is_complete &= find_input_locked(layer, input, arg->u.tensors[k],
                                             call->device, 0, alias);
    }
    return is_complete;
}

/* The tensors that ARG is, of which it returns how many. */
static uint32_t tensors_of(const hob_value *arg, hob_tensor *const **out)
{
    if (arg->tag == HOB_TAG_TENSOR) {
        *out = &arg->u.tensor;
        return 1;
    }
    *out = arg->u.tensors;
    return arg->tag == HOB_TAG_TENSORS ? arg->count : 0;
}

/* An alias of each handle of CALL that does not wait and has none. */
static hob_status make_aliases(const struct fu_layer *layer,
                               const struct hob_call *call,
                               struct aliases *aliases)
{
    hob_tensor **alias;

    if (!aliases->of) {
        aliases->of = aliases->few;
        if (aliases->count > HOB_MAX_PARAMS)
            aliases->of = malloc(aliases->count * sizeof(hob_tensor *));
        if (!aliases->of)
            return HOB_ERR_MEMORY;
        memset(aliases->of, 0, aliases->count * sizeof(hob_tensor *));
    }
    alias = aliases->of;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        hob_tensor *const *handles;
        const uint32_t count = tensors_of(&call->args[i], &handles);

        for (uint32_t k = 0; k < count; k++, alias++) {
            if (*alias || fu_waits_for(layer, handles[k]))
                continue;
            *alias = layer->host->alias(handles[k], layer->level - 1);
            if (!*alias)
                return HOB_ERR_MEMORY;
        }
    }
    return HOB_OK;
}

/* Drop those that nobody took. */
static void drop_aliases(const struct fu_layer *layer, struct aliases *aliases)
{
    if (!aliases->of)
        return;
    for (uint32_t i = 0; i < aliases->count; i++)
        layer->host->tensor_unref(aliases->of[i]);
    if (aliases->of != aliases->few)
        free(aliases->of);
}

/* A node of CALL in *OUT_NODE; NULL without memory, or as long as aliases are
 * needed: then *OUT_MISSING says how many inputs there are. */
static inline void
try_node_locked(struct fu_layer *layer, const struct hob_call *call,
                const struct hob_call_origin *origin, struct aliases *aliases,
                struct fu_node **out_node, uint32_t *out_missing)
{
    struct fu_kind *kind = fu_kind_of_locked(layer, call, origin);
    struct fu_node *node =
        kind ? fu_node_new_locked(layer, kind, origin->scope, origin->index)
             : NULL;

    *out_missing = 0;
    if (node && find_inputs_locked(layer, call, node, aliases->of)) {
        for (uint32_t i = 0; aliases->of && i < aliases->count; i++)
            if (node->inputs[i].tensor)
                aliases->of[i] = NULL;
        fu_node_link_locked(layer, node, kind);
    } else if (node) {
        *out_missing = node->input_count;
        fu_node_give_locked(layer, node);
        node = NULL;
    }
    if (kind && !node)
        fu_kind_unref_locked(layer, kind);
    *out_node = node;
}

/* Make the node of CALL: on failure nothing has happened. */
static hob_status make_node(struct fu_layer *layer, const struct hob_call *call,
                            const struct hob_call_origin *origin,
                            struct fu_node **out_node)
{
    struct aliases aliases;
    hob_status status = HOB_OK;
    uint32_t missing;

    aliases.of = NULL;
    aliases.count = 0;
    do {
        fu_lock(&layer->lock);
        try_node_locked(layer, call, origin, &aliases, out_node, &missing);
        fu_unlock(&layer->lock);
        if (missing) {
            aliases.count = missing;
            status = make_aliases(layer, call, &aliases);
        } else if (!*out_node) {
            status = HOB_ERR_MEMORY;
        }
    } while (missing && !status);
    drop_aliases(layer, &aliases);
    return status;
}

/* The handles of results from FIRST on will never be. */
static void leave(struct fu_layer *layer, struct fu_node *node,
                  const struct hob_call *call, uint32_t first)
{
    struct fu_garbage garbage;

    fu_garbage_init(&garbage, layer->host);
    fu_lock(&layer->lock);
    node->refs++;
    for (uint32_t i = first; i < call->ret_count; i++)
        if (call->metas[i].dtype != HOB_DTYPE_NONE) {
            fu_value_leave_locked(layer, &node->values[i], &garbage);
            fu_node_unref_locked(layer, node);
        }
    fu_node_unref_locked(layer, node);
    fu_unlock(&layer->lock);
    fu_garbage_empty(&garbage);
}

/* What is put off grows without an end: run it now. A failure is told as that
 * of any evaluation. */
static void evaluate_early(struct fu_layer *layer, struct fu_node *node)
{
    fu_lock(&layer->lock);
    for (uint32_t i = 0; i < node->ret_count; i++) {
        struct fu_value *value = &node->values[i];

        if (value->handles)
            (void)fu_evaluate_locked(layer, &value, 1);
    }
    fu_unlock(&layer->lock);
}

/* The same where more elements wait than the limit says, for which nobody but
 * what is put off has a use. What a flush leaves does not count again. */
static void evaluate_held(struct fu_layer *layer)
{
    int is_over;

    if (!layer->held_limit)
        return;
    fu_lock(&layer->lock);
    if (layer->held_still > layer->held)
        layer->held_still = layer->held;
    is_over = layer->held - layer->held_still > layer->held_limit;
    fu_unlock(&layer->lock);
    if (!is_over)
        return;
    (void)fu_flush(layer, NULL);
    fu_lock(&layer->lock);
    layer->held_still = layer->held;
    fu_unlock(&layer->lock);
}

static hob_status no_memory(const struct fu_layer *layer, struct hob_call *call)
{
    return layer->host->fail(call, HOB_ERR_MEMORY,
                             "fusion has no memory to record the call");
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

/* ---- calls like earlier ones ---- */

/* Whether the inputs of NODE can be those that WORDS lead to. A handle that
 * another thread has filled just now may have had its word read before. */
static inline int take_words_locked(struct fu_node *node, void *const *words)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if ((!fu_is_settled(words[i]) && !fu_value_of(words[i])->handles) ||
            !read_word_locked(&node->inputs[i], words[i]))
            return 0;
    return 1;
}

int32_t fu_again(void *instance, const struct hob_again *call, void **out_words)
{
    struct fu_layer *layer = (struct fu_layer *)instance;
    struct fu_node *node = NULL;
    struct fu_kind *kind;
    uint32_t depth = 0;

    fu_lock(&layer->lock);
    kind = fu_kind_find_locked(layer, call->kind);
    /* What becomes of a view depends on what it is of. */
    if (kind && kind->node.fuse != HOB_FUSE_VIEW)
        node = fu_node_new_locked(layer, kind, call->scope, call->index);
    if (node && !take_words_locked(node, call->words)) {
        fu_node_give_locked(layer, node);
        node = NULL;
    }
    if (node) {
        kind->refs++;
        fu_node_link_locked(layer, node, kind);
        depth = node->depth;
        for (uint32_t i = 0; i < call->ret_count; i++) {
            out_words[i] = fu_word(&node->values[i]);
            atomic_store_explicit(&node->values[i].handle, call->rets[i],
                                  memory_order_relaxed);
        }
    }
    fu_unlock(&layer->lock);
    if (layer->depth_limit && depth > layer->depth_limit)
        evaluate_early(layer, node);
    return node != NULL;
}

/* ---- other calls ---- */

int32_t fu_call(void *instance, struct hob_call *call,
                const struct hob_op_impl *impl, hob_status *out_status)
{
    struct fu_layer *layer = (struct fu_layer *)instance;
    struct hob_call_origin origin = {.struct_size = sizeof(origin)};
    int32_t verdict;

    (void)impl; /* an extension's own rule would be impl->layer */
    if (call->flags & HOB_CALL_DYNAMIC)
        return HOB_LAYER_PASS;
    layer->host->call_origin(call, &origin);
    verdict = fu_judge(layer, call, &origin);
    if (verdict == HOB_LAYER_DONE)
        *out_status = record(layer, call, &origin);
    return verdict;
}
