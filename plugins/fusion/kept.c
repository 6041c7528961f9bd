/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept.c - windows that were planned before.
 *
 * A plan follows from what the nodes are, what they read of each other and who
 * wants their values: that is the key, in words that are compared in full. A
 * layer keeps some windows with their plans; one that is in use is not among
 * them, so two threads with the same nodes have two.
 */
#include "groups.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_WINDOWS = 8 };

/* A key in the making. */
struct words {
    uint64_t *to, *at;
    size_t room;
    int failed; /* no memory, or too much to tell apart */
    uint64_t few[1024];
};

/* What is read that is made elsewhere, by what identifies it. */
struct outside {
    const void *keys[3 * FU_WINDOW];
    uint32_t count;
};

/* Let there be room for COUNT more words. */
static void reserve(struct words *words, size_t count)
{
    const size_t used = (size_t)(words->at - words->to);
    const int is_few = words->to == words->few;
    uint64_t *more;

    if (used + count <= words->room)
        return;
    more = realloc(is_few ? NULL : words->to,
                   2 * (used + count) * sizeof(uint64_t));
    if (!more) {
        words->failed = 1;
        return;
    }
    if (is_few)
        memcpy(more, words->few, used * sizeof(uint64_t));
    words->to = more;
    words->at = more + used;
    words->room = 2 * (used + count);
}

/* ---- what a plan follows from: each function returns where it ended ---- */

static inline uint64_t *put_shape(uint64_t *at, uint32_t dtype, uint32_t scheme,
                                  uint32_t rank, const int64_t *shape)
{
    *at++ = dtype | (uint64_t)rank << 8 | (uint64_t)scheme << 32;
    for (uint32_t i = 0; i < rank; i++)
        *at++ = (uint64_t)shape[i];
    return at;
}

/* What an I64 is if it may be a dimension; all others are alike. */
static uint64_t dim_of(int64_t number)
{
    return number >= -HOB_MAX_RANK && number < HOB_MAX_RANK ? (uint64_t)number
                                                            : HOB_MAX_RANK;
}

/* A plan does not depend on numbers, which may differ in each step of a
 * program: IN_FULL where they are of an op in a pattern, which may name any, or
 * say what its rows are. */
static uint64_t *put_arg(uint64_t *at, const hob_value *arg, int in_full)
{
    *at++ = arg->tag | (uint64_t)arg->count << 32;
    switch (arg->tag) {
    case HOB_TAG_ABSENT:
    case HOB_TAG_TENSOR:
    case HOB_TAG_TENSORS:
        return at;
    case HOB_TAG_F64:
    case HOB_TAG_U64:
        *at = in_full ? arg->u.u64 : 0;
        return at + 1;
    case HOB_TAG_I64:
        *at = in_full ? arg->u.u64 : dim_of(arg->u.i64);
        return at + 1;
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        memcpy(at, arg->u.i64s, arg->count * sizeof(int64_t));
        return at + arg->count;
    case HOB_TAG_STR:
        at[arg->count / 8] = 0;
        memcpy(at, arg->u.str, arg->count);
        return at + arg->count / 8 + 1;
    default:
        *at = arg->u.u64;
        return at + 1;
    }
}

/* The number, from 1, of what KEY identifies; 0: there are too many. */
static uint32_t number_of(struct outside *outside, const void *key)
{
    for (uint32_t i = outside->count; i > 0; i--)
        if (outside->keys[i - 1] == key)
            return i;
    if (outside->count == sizeof(outside->keys) / sizeof(outside->keys[0]))
        return 0;
    outside->keys[outside->count++] = key;
    return outside->count;
}

static uint64_t *put_input(uint64_t *at, struct words *words,
                           struct outside *outside,
                           struct fu_node *const *nodes, uint32_t count,
                           const struct fu_input *input)
{
    const struct fu_value *value = input->value;
    struct fu_seen seen;
    uint32_t number;

    if (value && !value->tensor && value->node->slot < count &&
        nodes[value->node->slot] == value->node) {
        *at++ = (uint64_t)(value - value->node->values) << 32 |
                (uint64_t)value->node->slot << 1 | 1;
        return at;
    }
    seen = fu_see(input);
    number = number_of(outside, fu_key_of(input));
    words->failed |= !number;
    *at++ = (uint64_t)number << 1;
    return put_shape(at, seen.dtype,
                     value ? value->scheme
                           : hob_tensor_view(input->tensor)->scheme,
                     seen.rank, seen.shape);
}

/* What KIND is, of LAYER's: found once for calls that have a number. */
static uint64_t *put_kind(uint64_t *at, struct fu_kind *kind,
                          const struct fu_layer *layer)
{
    const struct fu_node *node = &kind->node;
    const uint32_t op = node->op % FU_PATTERN_OPS;
    const int in_full = (int)(layer->pattern_ops[op / 64] >> (op % 64) & 1) ||
                        fu_has_rows(node->op);
    uint64_t *const begin = at;

    *at++ =
        node->op | (uint64_t)node->fuse << 32 | (uint64_t)node->arg_count << 48;
    *at++ = node->input_count | (uint64_t)node->ret_count << 32;
    for (uint32_t i = 0; i < node->arg_count; i++)
        at = put_arg(at, &node->args[i], in_full);
    for (uint32_t i = 0; i < node->ret_count; i++) {
        const struct fu_value *value = &kind->values[i];

        at = put_shape(at, value->dtype, value->scheme, value->rank,
                       value->shape);
    }
    if (kind->number)
        fu_kind_keep_words(kind, begin, (size_t)(at - begin));
    return at;
}

static void put_node(struct words *words, struct outside *outside,
                     struct fu_node *const *nodes, uint32_t count,
                     const struct fu_node *node, const struct fu_layer *layer)
{
    struct fu_kind *kind = node->kind;
    uint64_t *at;

    /* A kind has its arguments in full, and the shapes of its results. */
    reserve(words, 3 + kind->bytes / 8 + 2 * node->ret_count +
                       (size_t)node->input_count * (2 + HOB_MAX_RANK));
    if (words->failed)
        return;
    at = words->at;
    if (kind->words) {
        memcpy(at, kind->words, kind->word_count * sizeof(uint64_t));
        at += kind->word_count;
    } else {
        at = put_kind(at, kind, layer);
    }
    *at++ = (uint64_t)node->is_asked | (uint64_t)node->is_computed << 1;
    for (uint32_t i = 0; i < node->input_count; i++)
        at = put_input(at, words, outside, nodes, count, &node->inputs[i]);
    for (uint32_t i = 0; i < node->ret_count; i++)
        *at++ = node->values[i].handles | (uint64_t)node->values[i].users << 32;
    words->at = at;
}

static void make_key_locked(const struct fu_layer *layer, struct words *words,
                            struct fu_node *const *nodes, uint32_t count)
{
    struct outside outside;

    outside.count = 0;
    words->to = words->at = words->few;
    words->room = sizeof(words->few) / sizeof(words->few[0]);
    words->failed = 0;
    for (uint32_t i = 0; i < count && !words->failed; i++)
        put_node(words, &outside, nodes, count, nodes[i], layer);
}

static size_t count_of(const struct words *words)
{
    return (size_t)(words->at - words->to);
}

/* ---- the windows of a layer, the latest first ---- */

static int is_like(const struct fu_window *window, const struct words *words)
{
    return window->key && !words->failed &&
           window->key_count == count_of(words) &&
           !memcmp(window->key, words->to,
                   window->key_count * sizeof(uint64_t));
}

/* Take out the window with the plan for WORDS; else the one that was not used
 * for longest, if there are enough. */
static struct fu_window *take_locked(struct fu_layer *layer,
                                     const struct words *words)
{
    struct fu_window **link = &layer->windows, *window;

    while (*link && !is_like(*link, words) &&
           ((*link)->next || layer->window_count < MOST_WINDOWS))
        link = &(*link)->next;
    window = *link;
    if (!window)
        return NULL;
    *link = window->next;
    layer->window_count--;
    return window;
}

void fu_window_forget(struct fu_window *window)
{
    free(window->key);
    window->key = NULL;
}

/* WINDOW is to have the plan for WORDS. */
static void set_key(struct fu_window *window, const struct words *words)
{
    const size_t bytes = count_of(words) * sizeof(uint64_t);

    fu_window_forget(window);
    if (words->failed)
        return;
    window->key = malloc(bytes);
    if (!window->key)
        return;
    memcpy(window->key, words->to, bytes);
    window->key_count = count_of(words);
}

struct fu_window *fu_window_take(struct fu_layer *layer,
                                 struct fu_node *const *nodes, uint32_t count)
{
    struct fu_window *window;
    struct words words;
    int is_known;

    for (uint32_t i = 0; i < count; i++)
        nodes[i]->slot = i;
    fu_lock(&layer->lock);
    make_key_locked(layer, &words, nodes, count);
    window = take_locked(layer, &words);
    is_known = window && is_like(window, &words);
    layer->counts.plan_hits += (uint64_t)is_known;
    fu_unlock(&layer->lock);
    if (!window)
        window = fu_window_new(layer);
    if (is_known) {
        for (uint32_t i = 0; i < count; i++)
            window->items[i].node = nodes[i];
    } else if (window) {
        fu_window_fill(window, nodes, count);
        set_key(window, &words);
    }
    if (words.to != words.few)
        free(words.to);
    return window;
}

void fu_window_give(struct fu_window *window)
{
    struct fu_layer *layer = window->layer;

    fu_lock(&layer->lock);
    if (layer->window_count < MOST_WINDOWS) {
        window->next = layer->windows;
        layer->windows = window;
        layer->window_count++;
        window = NULL;
    }
    fu_unlock(&layer->lock);
    fu_window_free(window);
}
