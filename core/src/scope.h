/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scope.h - what a scope is inside.
 *
 * A scope is a list of owned handles, a level at which its ops start, a
 * generator and the first error. Program scopes live on the heap; the scopes
 * of layers and bodies live in a frame on the stack (scope_enter) and never
 * panic: their error goes up with the call.
 */
#ifndef HOB__SCOPE_H
#define HOB__SCOPE_H

#include "random.h"
#include "tensor.h"

#include <hob/scope.h>

enum hob__scope_flags {
    HOB__SCOPE_INNER = 1,    /* inside a call: errors are passed up */
    HOB__SCOPE_FRAME = 2,    /* lives in a hob_scope_frame */
    HOB__SCOPE_GENERATOR = 4 /* owns its generator */
};

/* Calls within each other before it must be an op that calls itself. */
enum { HOB__CALL_DEPTH = 64 };

/* Handles that fit into the scope itself, before it asks for memory. */
enum { HOB__SCOPE_INLINE = 8 };

struct hob_scope {
    struct hob_scope_head head; /* first: the inline functions read it */
    hob_runtime *runtime;
    hob_scope *parent;
    hob_scope *child; /* the latest program scope in it */
    hob_scope *older; /* siblings of a program scope */
    hob_scope *newer;
    int32_t level; /* ops start here or lower */
    uint32_t flags;
    uint64_t calls; /* ops called in it */
    uint32_t depth; /* calls in progress, in it and around it */
    struct hob__generator *generator;
    struct hob__failure *failure; /* the first error */
    hob_tensor *error_tensor;     /* owned */
    hob_tensor **owned;
    uint32_t owned_count;
    uint32_t owned_capacity;
    hob_tensor *owned_inline[HOB__SCOPE_INLINE];
};

/* What hob__scope_adopt() does where SCOPE's list is full. */
HOB_MUST_CHECK hob_status hob__scope_adopt_more(hob_scope *scope,
                                                hob_tensor *tensor);

/* TENSOR says that SCOPE, which owns it, has it at INDEX of its list: the
 * latest owner, as an earlier one is mostly inside of it and about to go. */
static inline void hob__scope_mark(hob_tensor *tensor, hob_scope *scope,
                                   uint32_t index)
{
    atomic_store_explicit(&tensor->owner_index, index, memory_order_relaxed);
    atomic_store_explicit(&tensor->owner, scope, memory_order_relaxed);
}

/* Whether SCOPE, which this thread uses, owns TENSOR and is marked in it; then
 * *OUT_INDEX is its place in the list. */
static inline int hob__scope_is_marked(const hob_scope *scope,
                                       const hob_tensor *tensor,
                                       uint32_t *out_index)
{
    const uint32_t index =
        atomic_load_explicit(&tensor->owner_index, memory_order_relaxed);

    *out_index = index;
    return atomic_load_explicit(&tensor->owner, memory_order_relaxed) ==
               scope &&
           index < scope->owned_count && scope->owned[index] == tensor;
}

/* Let SCOPE, whose list has room, own TENSOR. */
static inline void hob__scope_put(hob_scope *scope, hob_tensor *tensor)
{
    const uint32_t count = scope->owned_count++;

    hob__scope_mark(tensor, scope, count);
    scope->owned[count] = tensor;
}

/*
 * Let SCOPE own TENSOR, taking the caller's reference. Fails with
 * HOB_ERR_MEMORY, and the reference is given back then.
 */
HOB_MUST_CHECK static inline hob_status hob__scope_adopt(hob_scope *scope,
                                                         hob_tensor *tensor)
{
    if (scope->owned_count == scope->owned_capacity)
        return hob__scope_adopt_more(scope, tensor);
    hob__scope_put(scope, tensor);
    return HOB_OK;
}

/* The program's scope that SCOPE, which calls an op, is in; NULL: none. */
static inline const hob_scope *hob__scope_of_program(const hob_scope *scope)
{
    while (scope && (scope->flags & HOB__SCOPE_FRAME))
        scope = scope->parent;
    return scope;
}

/* Give back SCOPE's reference to TENSOR, if it has one. */
void hob__scope_disown(hob_scope *scope, hob_tensor *tensor);

/* Keep FAILURE if SCOPE has none yet and return SCOPE's error tensor. Takes
 * the caller's reference. With NULL the failure is the one that SCOPE has. */
hob_tensor *hob__scope_failure(hob_scope *scope, struct hob__failure *failure);

/* The same for a FAILURE that the policy was not told of yet. NULL stands for
 * one that there was no memory to describe. */
hob_tensor *hob__scope_raise(hob_scope *scope, struct hob__failure *failure);

/*
 * Make a failure of STATUS and a formatted message outside an op, tell the
 * policy, and return SCOPE's error tensor.
 */
hob_tensor *hob__scope_fail(hob_scope *scope, hob_status status,
                            const char *format, ...) HOB_PRINTF(3, 4);

/*
 * TENSOR is an error tensor or a tombstone: return SCOPE's error tensor. A
 * first cause is passed on and told nobody again; the use of a tombstone is a
 * failure of its own.
 */
hob_tensor *hob__scope_pass(hob_scope *scope, const hob_tensor *tensor);

hob_scope *hob__scope_enter(hob_scope *parent, struct hob_scope_frame *frame,
                            int32_t level);
void hob__scope_leave(hob_scope *scope);

#endif
