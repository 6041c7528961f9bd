/* SPDX-License-Identifier: Apache-2.0 */
#include "match.h"

#include <string.h>

/* A pattern laid over nodes. */
struct binding {
    const struct fu_window *window;
    const struct hob_pattern *pattern;
    uint32_t match; /* that the nodes are of; 0: of none */
    const struct fu_input *tensors[HOB_PATTERN_MAX_NAMES];
    const hob_value *attributes[HOB_PATTERN_MAX_NAMES];
    uint16_t members[HOB_PATTERN_MAX_OPS]; /* the last op first */
    uint32_t count;
    const struct fu_node *refused; /* whose attribute differs; or NULL */
};

/* ---- inputs ---- */

/* Whether two inputs are the same tensor. */
static int is_same_tensor(const struct fu_input *a, const struct fu_input *b)
{
    const struct hob_view *x, *y;

    if (!fu_tensor_of(a) || !fu_tensor_of(b))
        return a->value == b->value;
    x = hob_tensor_view(fu_tensor_of(a));
    y = hob_tensor_view(fu_tensor_of(b));
    return x->data == y->data && x->dtype == y->dtype && x->rank == y->rank &&
           x->scheme == y->scheme &&
           !memcmp(x->shape, y->shape, x->rank * sizeof(int64_t)) &&
           !memcmp(x->strides, y->strides, x->rank * sizeof(int64_t));
}

/* ---- laying a pattern over nodes ---- */

/* The item of the window that makes what INPUT reads; NULL: none does. */
static const struct fu_item *item_of(const struct fu_window *window,
                                     const struct fu_input *input)
{
    const struct fu_node *node = input->value ? input->value->node : NULL;

    return node && !input->value->tensor && node->slot < window->count &&
                   window->items[node->slot].node == node
               ? &window->items[node->slot]
               : NULL;
}

static int bind_tensor(struct binding *b, uint32_t name,
                       const struct fu_input *input)
{
    if (!b->tensors[name])
        b->tensors[name] = input;
    return is_same_tensor(b->tensors[name], input);
}

/* What differs in an attribute alone is worth telling, so the ops are looked at
 * to the end. */
static void bind_attribute(struct binding *b, const struct hob_pattern_node *at,
                           const hob_value *arg, const struct fu_node *node)
{
    if (at->kind == HOB_PATTERN_ATTRIBUTE && !b->attributes[at->number])
        b->attributes[at->number] = arg;
    if (!hob_pattern_is_same_value(at->kind == HOB_PATTERN_ATTRIBUTE
                                       ? b->attributes[at->number]
                                       : &at->value,
                                   arg))
        b->refused = node;
}

/* Nonzero if ITEM's node and what it reads are the ops of node AT. The depth is
 * that of the pattern. */
static int bind(struct binding *b, uint32_t index, const struct fu_item *item)
{
    const struct hob_pattern_node *at = fu_pattern_node(b->pattern, index);
    const struct fu_node *node = item->node;
    uint32_t input = 0;

    if (node->op != at->op || node->arg_count != at->count ||
        node->ret_count != 1 || item->match != b->match ||
        b->count == HOB_PATTERN_MAX_OPS)
        return 0;
    b->members[b->count++] = (uint16_t)(item - b->window->items);
    for (uint32_t i = 0; i < at->count; i++) {
        const struct hob_pattern_node *wanted =
            fu_pattern_node(b->pattern, at->first + i);
        const hob_value *arg = &node->args[i];
        const struct fu_item *maker;

        if (arg->tag == HOB_TAG_TENSORS)
            return 0;
        if (arg->tag != HOB_TAG_TENSOR) {
            if (wanted->kind < HOB_PATTERN_ATTRIBUTE)
                return 0; /* an absent tensor */
            bind_attribute(b, wanted, arg, node);
            continue;
        }
        if (wanted->kind == HOB_PATTERN_TENSOR) {
            if (!bind_tensor(b, wanted->number, &node->inputs[input++]))
                return 0;
            continue;
        }
        if (wanted->kind != HOB_PATTERN_OP)
            return 0; /* a tensor that is absent in the pattern */
        maker = item_of(b->window, &node->inputs[input++]);
        if (!maker || !bind(b, at->first + i, maker))
            return 0;
    }
    return 1;
}

/* The arguments of the op that takes the place; tensors where TENSORS says so,
 * else their metadata alone. */
static void make_args(const struct binding *b, hob_value *args,
                      struct hob_meta *metas)
{
    const struct hob_pattern_node *with =
        fu_pattern_node(b->pattern, b->pattern->with);

    for (uint32_t i = 0; i < with->count; i++) {
        const struct hob_pattern_node *at =
            fu_pattern_node(b->pattern, with->first + i);

        if (at->kind == HOB_PATTERN_VALUE) {
            args[i] = at->value;
        } else if (at->kind == HOB_PATTERN_ATTRIBUTE) {
            args[i] = *b->attributes[at->number];
        } else {
            const struct fu_input *input = b->tensors[at->number];
            const struct fu_seen seen = fu_see(input);

            args[i] = hob_value_make(HOB_TAG_TENSOR, 1);
            args[i].u.tensor = fu_tensor_of(input);
            if (!metas)
                continue;
            memset(metas, 0, sizeof(*metas));
            metas->dtype = (uint8_t)seen.dtype;
            metas->rank = (uint8_t)seen.rank;
            metas->scheme = input->value
                                ? input->value->scheme
                                : hob_tensor_view(input->tensor)->scheme;
            memcpy(metas->shape, seen.shape, seen.rank * sizeof(int64_t));
            metas++;
        }
    }
}

/* Whether the op that takes the place gives here what VALUE is. */
static uint32_t foresee(const struct binding *b, const struct fu_value *value)
{
    const struct fu_layer *layer = b->window->layer;
    const struct hob_pattern_node *with =
        fu_pattern_node(b->pattern, b->pattern->with);
    hob_value args[HOB_MAX_PARAMS];
    struct hob_meta metas[HOB_MAX_PARAMS], out;
    hob_status status;

    make_args(b, args, metas);
    status = layer->host->foresee(layer->below, with->op, args, with->count,
                                  metas, &out);
    if (status)
        return status == HOB_ERR_UNSUPPORTED ? HOB_FUSION_NO_KERNEL
                                             : HOB_FUSION_UNFIT;
    return out.dtype == value->dtype && out.rank == value->rank &&
                   out.scheme == value->scheme &&
                   !memcmp(out.shape, value->shape, out.rank * sizeof(int64_t))
               ? HOB_FUSION_REPLACED
               : HOB_FUSION_UNFIT;
}

static void refuse(struct fu_window *window, uint32_t match,
                   const struct fu_node *node, uint32_t refusal)
{
    window->matches[match].refusal = (uint8_t)refusal;
    window->matches[match].refused = node;
}

static int was_tried(const struct fu_window *window, uint32_t root,
                     const struct hob_pattern *pattern)
{
    for (uint32_t i = 0; i < window->match_count; i++)
        if (window->matches[i].root == root &&
            window->matches[i].pattern == pattern)
            return 1;
    return 0;
}

/* Nonzero if PATTERN is for ITEM and what it reads, whatever else is in the
 * way. */
static int try_pattern(struct fu_window *window, struct fu_item *item,
                       const struct hob_pattern *pattern)
{
    struct binding b = {.window = window, .pattern = pattern};
    struct fu_match *match = &window->matches[window->match_count];
    const uint32_t root = (uint32_t)(item - window->items);
    uint32_t refusal;

    if (!bind(&b, 0, item) || was_tried(window, root, pattern))
        return 0;
    match->pattern = pattern;
    match->root = (uint16_t)root;
    match->group = FU_WINDOW;
    match->refusal = HOB_FUSION_REPLACED;
    refusal =
        b.refused ? HOB_FUSION_DIFFERS : foresee(&b, &item->node->values[0]);
    if (refusal)
        refuse(window, window->match_count, b.refused ? b.refused : item->node,
               refusal);
    window->match_count++;
    for (uint32_t i = 0; i < b.count && !refusal; i++)
        window->items[b.members[i]].match = (uint16_t)window->match_count;
    return !refusal;
}

void fu_match_find(struct fu_window *window)
{
    const struct fu_layer *layer = window->layer;

    for (uint32_t i = layer->pattern_count ? window->count : 0; i-- > 0;) {
        struct fu_item *item = &window->items[i];

        for (uint32_t k = 0; k < layer->pattern_count &&
                             window->match_count < FU_WINDOW && !item->match;
             k++)
            if (layer->patterns[k]->nodes[0].op == item->node->op &&
                try_pattern(window, item, layer->patterns[k]))
                break;
    }
}

/* ---- who else wants what is inside ---- */

/* Why VALUE, inside of a pattern, must be there; 0 if nobody minds. */
static uint32_t wanted_locked(const struct fu_layer *layer,
                              const struct fu_value *value)
{
    const struct fu_node *node = value->node;

    if (value->users > 1)
        return HOB_FUSION_SHARED;
    if (node->is_asked || value->handles > 1 ||
        (value->handles && (node->is_computed || !value->handle ||
                            layer->host->is_held(value->handle))))
        return HOB_FUSION_HELD;
    return 0;
}

static int check_one_locked(struct fu_window *window, uint32_t index)
{
    uint32_t refusal = 0;

    for (uint32_t i = 0; i < window->count && !refusal; i++) {
        const struct fu_item *item = &window->items[i];

        if (item->match != index + 1 || i == window->matches[index].root)
            continue;
        refusal = wanted_locked(window->layer, &item->node->values[0]);
        if (refusal)
            refuse(window, index, item->node, refusal);
    }
    for (uint32_t i = 0; i < window->count && refusal; i++)
        if (window->items[i].match == index + 1)
            window->items[i].match = 0;
    return refusal != 0;
}

int fu_match_check_locked(struct fu_window *window)
{
    int some = 0;

    for (uint32_t i = 0; i < window->match_count; i++)
        if (!window->matches[i].refusal)
            some |= check_one_locked(window, i);
    return some;
}

void fu_match_settle(struct fu_window *window, struct fu_item *item)
{
    const uint32_t root = window->matches[item->match - 1].root;

    item->class = FU_OTHER;
    item->is_stored = item == &window->items[root];
    item->stays = !item->is_stored && item->node->values[0].handles;
    item->why = item->node->is_asked ? HOB_FUSION_ASKED : HOB_FUSION_READ;
}

void fu_match_tell(const struct fu_window *window)
{
    const struct fu_layer *layer = window->layer;
    const struct hob_host *host = layer->host;

    for (uint32_t i = 0; i < window->match_count && layer->watch; i++) {
        const struct fu_match *match = &window->matches[i];
        struct hob_fusion_event event = {
            .struct_size = sizeof(event),
            .pattern = match->pattern->replace,
            .refusal = match->refusal,
        };

        if (!match->refusal)
            continue;
        event.name = host->op_name(
            host, fu_pattern_node(match->pattern, match->pattern->with)->op);
        event.refused_op = host->op_name(host, match->refused->op);
        event.refused_call = match->refused->index;
        layer->watch(layer->watch_context, &event);
    }
}

/* ---- running ---- */

static void tell_run(const struct fu_window *window, const struct binding *b)
{
    const struct fu_layer *layer = window->layer;
    const struct hob_host *host = layer->host;
    const struct fu_item *root = &window->items[b->members[0]];
    const struct fu_value *made = &root->node->values[0];
    struct hob_fusion_value value = {
        .op = host->op_name(host, root->node->op),
        .call = root->node->index,
        .bytes = fu_bytes(fu_see_value(made)),
        .why = root->why,
    };
    struct hob_fusion_event event = {
        .struct_size = sizeof(event),
        .is_group = 1,
        .name = host->op_name(
            host, fu_pattern_node(b->pattern, b->pattern->with)->op),
        .op_count = b->count,
        .input_count = b->pattern->tensors,
        .value_count = 1,
        .values = &value,
        .written_bytes = value.bytes,
        .pattern = b->pattern->replace,
    };

    if (!layer->watch)
        return;
    for (uint32_t i = 0; i < b->pattern->tensors; i++)
        event.read_bytes += fu_bytes(fu_see(b->tensors[i]));
    for (uint32_t i = 1; i < b->count; i++)
        event.saved_bytes +=
            2 * fu_bytes(fu_see_value(
                    &window->items[b->members[i]].node->values[0]));
    layer->watch(layer->watch_context, &event);
}

int fu_match_run(struct fu_window *window, uint32_t index)
{
    struct fu_layer *layer = window->layer;
    const struct hob_host *host = layer->host;
    const struct fu_match *match =
        &window->matches[window->groups[index].match - 1];
    struct binding b = {.window = window,
                        .pattern = match->pattern,
                        .match = window->groups[index].match};
    const struct hob_pattern_node *with =
        fu_pattern_node(b.pattern, b.pattern->with);
    struct fu_item *root = &window->items[match->root];
    struct hob_scope_frame frame;
    struct fu_made made = {.value = &root->node->values[0]};
    hob_value args[HOB_MAX_PARAMS];
    hob_scope *scope;
    uint32_t count = 0;

    if (!bind(&b, 0, root))
        return 1;
    make_args(&b, args, NULL);
    for (uint32_t i = 0; i < with->count; i++)
        if (args[i].tag == HOB_TAG_TENSOR &&
            (!args[i].u.tensor || host->tensor_is_error(args[i].u.tensor)))
            return 1; /* what reads it fails, op by op */
    scope = host->scope_begin(layer->below, &frame);
    (void)host->replay(scope, root->node->index, with->op, args, with->count,
                       &made.tensor, 1, &count, NULL, 0);
    made.tensor = fu_check_meta(layer, scope, root->node, 0, made.tensor);
    host->tensor_ref(made.tensor);
    host->scope_leave(scope);
    if (!host->tensor_is_error(made.tensor))
        tell_run(window, &b);
    fu_lock(&layer->lock);
    layer->counts.replaced += b.count;
    fu_unlock(&layer->lock);
    fu_members_publish(window, index, &made, 1);
    host->tensor_unref(made.tensor);
    return 0;
}
