/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.c - a node runs as the call that it was, one level down.
 */
#include "fusion.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The inputs of a node as tensors, some of them taken. */
struct arguments {
    hob_value args[HOB_MAX_PARAMS];
    hob_tensor **tensors; /* one an input; references of our own where taken */
    uint8_t *taken;
    void *heap;
    hob_tensor *few_tensors[HOB_MAX_PARAMS];
    uint8_t few_taken[HOB_MAX_PARAMS];
};

static hob_status reserve(struct arguments *arguments, uint32_t count)
{
    arguments->heap = NULL;
    arguments->tensors = arguments->few_tensors;
    arguments->taken = arguments->few_taken;
    if (count <= HOB_MAX_PARAMS)
        return HOB_OK;
    arguments->heap = malloc(count * (sizeof(hob_tensor *) + 1));
    if (!arguments->heap)
        return HOB_ERR_MEMORY;
    arguments->tensors = (hob_tensor **)arguments->heap;
    arguments->taken = (uint8_t *)(arguments->tensors + count);
    return HOB_OK;
}

/* Whether INPUT of a node is the last who wants its elements, so that the op
 * may write over them; they become OUT's. */
static int take_locked(struct fu_input *input, hob_tensor **out)
{
    struct fu_value *value = input->value;

    if (!value) {
        *out = input->tensor;
        input->tensor = NULL;
        return 1;
    }
    *out = value->tensor;
    if (!fu_is_last_reader_locked(input))
        return 0;
    value->tensor = NULL;
    return 1;
}

/*
 * The tensors of a list are borrowed: moving those would need a flag in each.
 * They are a reference of the node's, which is claimed.
 */
static void collect(struct fu_layer *layer, struct fu_node *node,
                    struct arguments *arguments)
{
    uint32_t at = 0;

    fu_lock(&layer->lock);
    for (uint32_t i = 0; i < node->arg_count; i++) {
        hob_value *arg = &arguments->args[i];

        *arg = node->args[i];
        if (arg->tag == HOB_TAG_TENSOR) {
            arguments->taken[at] = (uint8_t)take_locked(
                &node->inputs[at], &arguments->tensors[at]);
            arg->u.tensor = arguments->tensors[at];
            arg->flags = arguments->taken[at] ? HOB_VALUE_MOVE : 0;
            at++;
        } else if (arg->tag == HOB_TAG_TENSORS) {
            arg->u.tensors = arguments->tensors + at;
            for (uint32_t k = 0; k < arg->count; k++, at++) {
                arguments->taken[at] = 0;
                arguments->tensors[at] = fu_tensor_of(&node->inputs[at]);
            }
        }
    }
    fu_unlock(&layer->lock);
}

static void release(const struct fu_layer *layer, const struct fu_node *node,
                    struct arguments *arguments)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (arguments->taken[i])
            layer->host->tensor_unref(arguments->tensors[i]);
    free(arguments->heap);
}

/* A tensor that says that there was no memory to run NODE. */
static void no_memory(struct fu_layer *layer, hob_scope *scope,
                      const struct fu_node *node, hob_tensor **out)
{
    for (uint32_t i = 0; i < node->ret_count; i++)
        out[i] = layer->host->scope_fail(scope, HOB_ERR_MEMORY,
                                         "fusion has no memory to run a call");
}

/* "f32[2,3]" into TEXT. */
static const char *meta_text(char *text, size_t size, uint32_t dtype,
                             uint32_t rank, const int64_t *shape)
{
    size_t used = (size_t)snprintf(text, size, "%s[", hob_dtype_name(dtype));

    for (uint32_t i = 0; i < rank && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64,
                                 i ? "," : "", shape[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
    return text;
}

hob_tensor *fu_check_meta(const struct fu_layer *layer, hob_scope *scope,
                          const struct fu_node *node, uint32_t index,
                          hob_tensor *made)
{
    const struct fu_value *value = &node->values[index];
    const struct hob_view *view = hob_tensor_view(made);
    char said[200], came[200];

    if (layer->host->tensor_is_error(made) ||
        (view->dtype == value->dtype && view->rank == value->rank &&
         view->scheme == value->scheme &&
         !memcmp(view->shape, value->shape, view->rank * sizeof(int64_t))))
        return made;
    return layer->host->scope_fail(
        scope, HOB_ERR_PLUGIN,
        "%s (call %" PRIu64 "): result %" PRIu32 " was inferred to be %s and "
        "came out as %s: a bug of whoever declares the op",
        layer->host->op_name(layer->host, node->op), node->index, index,
        meta_text(said, sizeof(said), value->dtype, value->rank, value->shape),
        meta_text(came, sizeof(came), view->dtype, view->rank, view->shape));
}

void fu_replay(struct fu_layer *layer, struct fu_node *node, hob_tensor **out)
{
    const struct hob_host *host = layer->host;
    struct hob_scope_frame frame;
    struct arguments arguments;
    hob_value plains[HOB_MAX_RESULTS];
    uint32_t count = 0;
    hob_scope *scope = host->scope_begin(layer->below, &frame);

    if (reserve(&arguments, node->input_count)) {
        no_memory(layer, scope, node, out);
    } else {
        collect(layer, node, &arguments);
        (void)host->replay(scope, node->index, node->op, arguments.args,
                           node->arg_count, out, node->ret_count, &count,
                           plains, node->plain_count);
        release(layer, node, &arguments);
    }
    for (uint32_t i = 0; i < node->ret_count; i++)
        if (out[i]) {
            out[i] = fu_check_meta(layer, scope, node, i, out[i]);
            host->tensor_ref(out[i]);
        }
    host->scope_leave(scope);
}
