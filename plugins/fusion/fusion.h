/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fusion.h - one fusion layer of one device stack, and its graph.
 *
 * A recorded call is a node; each of its results is a value. The handle of a
 * result carries a state word that leads to the value, and nothing else leads
 * to a node but the nodes that read its values. There are no queues:
 *
 *   handle --word--> value in node --input--> value in node --> ...
 *                                  \-input--> tensor one level down
 *
 * A handle that has its elements leads to a value as well once it was an input:
 * that keeps the tensor one level down for the next time. What was made
 * elsewhere has a node without inputs, a leaf, for that.
 *
 * - A value is wanted while a handle waits for it or a node that is still to
 *   run reads it. A node of which no value is wanted is dropped, and so is
 *   what only it wanted; by a list, never by recursion.
 * - Evaluating claims nodes; who needs what another thread runs waits for it,
 *   and holds no claim meanwhile.
 * - A value that was computed keeps its tensor while it is wanted. A handle
 *   is filled when it is used: from then on it is as any other, and carries
 *   the settled word of the same value only because another thread may have
 *   read the old one just before.
 *
 * All of a graph is under its layer's lock. No op runs, and no tensor is given
 * back, while it is held.
 */
#ifndef HOB_FUSION_LAYER_H
#define HOB_FUSION_LAYER_H

#include "lock.h"
#include "pool.h"

#include <hob/ext/fusion.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

/* Whether the table FUSED of a backend, which may be an older one, has MEMBER,
 * a function. */
#define FU_HAS(fused, member)                                                  \
    ((fused)->struct_size >= offsetof(struct hob_fused_compute, member) +      \
                                 sizeof((fused)->member) &&                    \
     (fused)->member)

struct fu_node;

/* A result of a recorded call. */
struct fu_value {
    struct fu_node *node; /* whose memory this is in */
    hob_tensor *tensor;   /* one level down, once it is computed and wanted;
                             an error tensor where its op failed */
    uint32_t handles;     /* that wait for it */
    uint32_t settled;     /* that have its elements: they may be used again */
    uint32_t users;       /* inputs of nodes that are still to run */
    /* The handle that was made with it, while that is the only one that there
     * has been. It is there while HANDLES is 1. */
    hob_tensor *_Atomic handle;
    uint8_t dtype; /* its metadata, as inferred; NONE: it is absent */
    uint8_t rank;
    uint16_t reserved;
    uint32_t scheme;
    int64_t *shape; /* in the node's memory */
};

/* What a node reads: a value, or, where its call took the handle, a tensor one
 * level down of its own. */
struct fu_input {
    struct fu_value *value; /* NULL: tensor */
    hob_tensor *tensor;
};

/* The tensor that INPUT reads; NULL until it is computed. */
static inline hob_tensor *fu_tensor_of(const struct fu_input *input)
{
    return input->value ? input->value->tensor : input->tensor;
}

/* Whether the node that has INPUT is the last who wants its elements. */
static inline int fu_is_last_reader_locked(const struct fu_input *input)
{
    const struct fu_value *value = input->value;

    return !value || (!value->handles && value->users < 2 && !value->settled);
}

enum fu_node_state {
    FU_NODE_PENDING,
    FU_NODE_RUNNING, /* claimed by the thread RUNNER */
    FU_NODE_DONE     /* or dropped: it has no inputs any more */
};

struct fu_kind;

/* One allocation; behind the struct: values, inputs. */
struct fu_node {
    struct fu_node *next;  /* in its list of pending ones, or of dead ones */
    struct fu_node **link; /* what points at this in the former */
    uint64_t order;        /* of recording: greater than its inputs' */
    uint64_t index;        /* of the call in its scope, for messages */
    uint64_t stamp;        /* of the evaluation that has found it */
    uint64_t held;         /* bytes of its inputs that were given to it */
    const void *scope;     /* the program's scope that it was recorded in */
    pthread_t runner;
    uint32_t refs;   /* state words, inputs that lead here, evaluations */
    uint32_t wanted; /* its values that are */
    uint32_t op;
    uint32_t depth; /* pending nodes on the longest way to it */
    uint32_t bytes; /* of the allocation */
    uint16_t arg_count;
    uint16_t plain_count;
    uint32_t input_count;
    uint32_t ret_count;
    uint32_t slot;           /* in the window of the evaluation that runs it */
    uint8_t state;           /* enum fu_node_state */
    uint8_t fuse;            /* enum hob_fuse */
    uint8_t is_asked;        /* the evaluation that runs it is for its values */
    uint8_t is_computed : 1; /* once, in a group that did not store it */
    uint8_t is_inherited : 1; /* it was recorded in a scope that has ended */
    struct fu_value *values;
    struct fu_input *inputs; /* its tensor arguments, lists laid flat */
    const hob_value *args;   /* without tensors; the tags and counts stay */
    struct fu_kind *kind;    /* has the args and shapes; NULL: it is a leaf */
};

/*
 * What the nodes of calls that are alike have in common, so that recording one
 * more copies a node instead of making it. Behind the struct: values, args,
 * their payloads, shapes. A layer keeps some; nodes hold theirs.
 */
struct fu_kind {
    uint64_t number; /* of calls, see struct hob_call_origin; 0: of just one */
    uint32_t refs;   /* nodes, the layer's table */
    uint32_t bytes;  /* of the allocation */
    uint32_t word_count;
    uint64_t *words; /* what is in the key of a window of it, once it was in
                        one; or NULL (see kept.c) */
    struct fu_node node;
    struct fu_value *values;
};

/* A place in a layer's table of kinds. */
struct fu_kind_slot {
    atomic_uint_least64_t number; /* read without the lock, too; 0: none */
    struct fu_kind *kind;
};
enum { FU_KINDS = 512 };

/* Pending nodes are found by their scope, in as many lists. */
enum { FU_LISTS = 64 };

enum { FU_PATTERN_OPS = 1024 };

struct fu_layer {
    const struct hob_host *host;
    hob_device *below; /* borrowed: the core keeps it */
    int32_t level;
    uint32_t depth_limit; /* of what is put off; 0: none */
    uint64_t held_limit;  /* likewise of held */
    struct fu_lock lock;  /* all that follows, and all nodes; who sleeps on it
                             waits for some node to run */
    uint64_t order;       /* of the latest node */
    uint64_t stamp;       /* of the latest evaluation */
    uint64_t held;        /* by nodes, as far as they say */
    uint64_t held_still;  /* after the latest flush for that reason */
    struct fu_pool pool;
    struct fu_window *windows; /* with their plans, the latest first */
    uint32_t window_count;
    struct fu_node *pending[FU_LISTS];
    struct fu_kind_slot kinds[FU_KINDS];
    /* What the base offers, if the layer is right above it; else NULL. */
    const struct hob_fused_compute *fused;
    void *fused_instance;
    struct fu_kernels *kernels;          /* has a lock of its own */
    const struct hob_pattern **patterns; /* registered optimisations */
    uint32_t pattern_count;
    uint64_t pattern_ops[FU_PATTERN_OPS / 64]; /* theirs, by op's remainder */
    struct hob_fusion_stats counts;
    hob_fusion_watch_fn watch; /* or NULL */
    void *watch_context;
};

/*
 * State words. The settled one differs from the one that waits in its lowest
 * bit, which is free: values are aligned to pointers.
 */
static inline void *fu_word(struct fu_value *value)
{
    return value;
}

static inline void *fu_settled_word(struct fu_value *value)
{
    return (char *)value + 1;
}

static inline int fu_is_settled(const void *word)
{
    return ((uintptr_t)word & 1) != 0;
}

static inline struct fu_value *fu_value_of(void *word)
{
    return (struct fu_value *)(void *)((char *)word - fu_is_settled(word));
}

/* The value that TENSOR's handle waits for; NULL if it has its elements. */
static inline struct fu_value *fu_waits_for(const struct fu_layer *layer,
                                            const hob_tensor *tensor)
{
    void *word = layer->host->state(tensor, layer->level);

    return word && !fu_is_settled(word) ? (struct fu_value *)word : NULL;
}

static inline int fu_is_wanted(const struct fu_value *value)
{
    return value->handles || value->users;
}

/* Node INDEX of PATTERN. */
static inline const struct hob_pattern_node *
fu_pattern_node(const struct hob_pattern *pattern, uint32_t index)
{
    return (const struct hob_pattern_node
                *)(const void *)((const char *)pattern->nodes +
                                 (size_t)index * pattern->node_size);
}

/* ---- graph.c ---- */

/* Tensors to give back once the lock is not held. */
struct fu_garbage {
    const struct hob_host *host;
    hob_tensor **tensors;
    size_t count, capacity;
    hob_tensor *few[16];
};

static inline void fu_garbage_init(struct fu_garbage *garbage,
                                   const struct hob_host *host)
{
    garbage->host = host;
    garbage->tensors = garbage->few;
    garbage->count = 0;
    garbage->capacity = sizeof(garbage->few) / sizeof(garbage->few[0]);
}

void fu_garbage_burn(struct fu_garbage *garbage);

/* Without the lock. */
static inline void fu_garbage_empty(struct fu_garbage *garbage)
{
    if (garbage->count)
        fu_garbage_burn(garbage);
}

/* A leaf with TENSOR, which it takes, for one handle that has its elements.
 * NULL without memory, and nothing is taken. */
struct fu_value *fu_leaf_new_locked(struct fu_layer *layer, hob_tensor *tensor);

/* One handle fewer waits for VALUE: it died, or was filled. */
void fu_value_leave_locked(struct fu_layer *layer, struct fu_value *value,
                           struct fu_garbage *garbage);
/* One handle fewer has the elements of VALUE. */
void fu_value_forget_locked(struct fu_value *value, struct fu_garbage *garbage);
/* The COUNT handles with the state words WORDS end; takes the lock. */
void fu_handles_end(struct fu_layer *layer, void *const *words, uint32_t count);
/* Give back a reference to NODE. */
void fu_node_unref_locked(struct fu_layer *layer, struct fu_node *node);
/* Take NODE out of the list of its scope. */
void fu_node_unlink_locked(struct fu_node *node);
/* NODE, which is not pending, needs its inputs no longer. */
void fu_inputs_drop_locked(struct fu_layer *layer, struct fu_node *node,
                           struct fu_garbage *garbage);

/* NODE, which was claimed, has not run: it is pending as before. */
void fu_node_resume_locked(struct fu_layer *layer, struct fu_node *node,
                           struct fu_garbage *garbage);

/* NODE, which is pending, counts as recorded in SCOPE from now on. */
void fu_node_inherit_locked(struct fu_layer *layer, struct fu_node *node,
                            const void *scope);

/* ---- kinds.c ---- */

/* Whether calls with NUMBER were recorded. */
static inline int fu_kind_is_known(const struct fu_layer *layer,
                                   uint64_t number)
{
    return number &&
           atomic_load_explicit(&layer->kinds[number % FU_KINDS].number,
                                memory_order_relaxed) == number;
}

/* The kind of CALL, kept for the next one if it has a number. Who has no node
 * for it lets it go. NULL without memory. */
struct fu_kind *fu_kind_new_locked(struct fu_layer *layer,
                                   const struct hob_call *call,
                                   const struct hob_call_origin *origin);
void fu_kind_unref_locked(struct fu_layer *layer, struct fu_kind *kind);
/* Keep WORDS, COUNT of them, with KIND, if there is memory. */
void fu_kind_keep_words(struct fu_kind *kind, const uint64_t *words,
                        size_t count);
/* Empty LAYER's table. */
void fu_kinds_release(struct fu_layer *layer);

/* The kind of calls with NUMBER; NULL if none was recorded. */
static inline struct fu_kind *fu_kind_find_locked(const struct fu_layer *layer,
                                                  uint64_t number)
{
    struct fu_kind *kind = layer->kinds[number % FU_KINDS].kind;

    return number && kind && kind->number == number ? kind : NULL;
}

static inline struct fu_kind *
fu_kind_of_locked(struct fu_layer *layer, const struct hob_call *call,
                  const struct hob_call_origin *origin)
{
    struct fu_kind *kind = fu_kind_find_locked(layer, origin->kind);

    if (!kind)
        return fu_kind_new_locked(layer, call, origin);
    kind->refs++;
    return kind;
}

/* ---- judge.c ---- */

/* What becomes of CALL: HOB_LAYER_DONE, it is recorded. */
int32_t fu_judge(const struct fu_layer *layer, const struct hob_call *call,
                 const struct hob_call_origin *origin);

/* ---- record.c ---- */

int32_t fu_call(void *layer, struct hob_call *call,
                const struct hob_op_impl *impl, hob_status *out_status);
int32_t fu_again(void *layer, const struct hob_again *call, void **out_words);

/* ---- evaluate.c ---- */

/*
 * Compute the COUNT values ASKED, and what they need. They and the nodes stay,
 * because the caller's handles lead to them. Afterwards each has its tensor,
 * unless nobody wants it any more. The lock is let go meanwhile.
 */
hob_status fu_evaluate_locked(struct fu_layer *layer, struct fu_value **asked,
                              size_t count);

/* ---- settle.c: members of the decorator ---- */

hob_status fu_settle(void *layer, hob_tensor *const *tensors, uint32_t count);
hob_status fu_flush(void *layer, const void *scope);

/* NODE, which this thread runs, has the results RETS, whose references are
 * taken where somebody wants them and left otherwise. */
void fu_publish(struct fu_layer *layer, struct fu_node *node,
                hob_tensor **rets);

/* ---- kernels.c ---- */

struct fu_kernels;

struct fu_kernels *fu_kernels_new(struct fu_layer *layer);
void fu_kernels_free(struct fu_kernels *kernels); /* accepts NULL */

struct fu_kernel;

/*
 * The kernel for PROGRAM, compiled if there is none yet; NULL if the backend
 * does not want such a one, or without memory. It stays while it is in use:
 * give it back.
 */
struct fu_kernel *fu_kernel_get(struct fu_kernels *kernels,
                                const struct hob_fused_program *program);
/* A kernel in use is used again, without being looked for. */
void fu_kernel_again(struct fu_kernels *kernels);
/* How many programs were compiled, and found again. */
void fu_kernels_count(struct fu_kernels *kernels, uint64_t *out_programs,
                      uint64_t *out_hits);
void *fu_kernel_compiled(const struct fu_kernel *kernel);
/* "mul+add+relu": the ops of its steps, as far as there is room. */
const char *fu_kernel_name(const struct fu_kernel *kernel);
void fu_kernel_give(struct fu_kernels *kernels, struct fu_kernel *kernel);

/* ---- inspect.c ---- */

extern const struct hob_fusion_inspect fu_inspect;

/* ---- replay.c ---- */

/* Run NODE, which is claimed, one level down: OUT are its results, each a
 * reference of the caller, error tensors where it failed. */
void fu_replay(struct fu_layer *layer, struct fu_node *node, hob_tensor **out);

/* The handles that wait were given the metadata that was inferred: MADE, result
 * INDEX of NODE, must be that. Returns it, or an error tensor of SCOPE. */
hob_tensor *fu_check_meta(const struct fu_layer *layer, hob_scope *scope,
                          const struct fu_node *node, uint32_t index,
                          hob_tensor *made);

#endif
