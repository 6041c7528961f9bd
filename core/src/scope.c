/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

#include "error.h"
#include "lazy.h"
#include "runtime.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(struct hob_scope) <= sizeof(struct hob_scope_frame),
               "a scope must fit into the frame that plugins reserve");

static void scope_init(hob_scope *scope, hob_runtime *runtime,
                       hob_scope *parent, int32_t level, uint32_t flags)
{
    scope->head.host = &runtime->host;
    scope->runtime = runtime;
    scope->parent = parent;
    scope->child = NULL;
    scope->older = NULL;
    scope->newer = NULL;
    scope->level = level;
    scope->flags = flags;
    scope->calls = 0;
    scope->depth = parent ? parent->depth : 0;
    scope->generator = parent ? parent->generator : runtime->generator;
    scope->failure = NULL;
    scope->error_tensor = NULL;
    scope->owned = scope->owned_inline;
    scope->owned_count = 0;
    scope->owned_capacity = HOB__SCOPE_INLINE;
}

static int is_owner(const hob_scope *scope, hob_tensor *tensor)
{
    return atomic_load_explicit(&tensor->owner, memory_order_relaxed) == scope;
}

static void release_owned(hob_scope *scope)
{
    hob_tensor *ends[HOB__ENDS];
    uint32_t count = 0;

    /* Backwards, so that results go before what they were made from. */
    while (scope->owned_count) {
        hob_tensor *tensor = scope->owned[--scope->owned_count];

        if (is_owner(scope, tensor))
            hob__scope_mark(tensor, NULL, 0);
        if (hob__refs_drop(&tensor->refs))
            ends[count++] = tensor;
        if (count == HOB__ENDS || !scope->owned_count) {
            hob__tensors_end(ends, count);
            count = 0;
        }
    }
    if (scope->owned != scope->owned_inline)
        free(scope->owned);
    scope->owned = scope->owned_inline;
    scope->owned_capacity = HOB__SCOPE_INLINE;
    if (scope->error_tensor)
        hob__tensor_unref(scope->error_tensor);
    hob__failure_unref(scope->failure);
    if (scope->flags & HOB__SCOPE_GENERATOR)
        hob__generator_unref(scope->generator);
}

static hob_status grow(hob_scope *scope)
{
    uint32_t capacity = scope->owned_capacity * 2;
    int is_inline = scope->owned == scope->owned_inline;
    hob_tensor **owned =
        realloc(is_inline ? NULL : scope->owned, capacity * sizeof(*owned));

    if (!owned)
        return HOB_ERR_MEMORY;
    if (is_inline)
        memcpy(owned, scope->owned_inline, sizeof(scope->owned_inline));
    scope->owned = owned;
    scope->owned_capacity = capacity;
    return HOB_OK;
}

hob_status hob__scope_adopt_more(hob_scope *scope, hob_tensor *tensor)
{
    if (grow(scope)) {
        hob__tensor_unref(tensor);
        return HOB_ERR_MEMORY;
    }
    return hob__scope_adopt(scope, tensor);
}

void hob__scope_disown(hob_scope *scope, hob_tensor *tensor)
{
    uint32_t index;
    hob_tensor *last;

    if (!hob__scope_is_marked(scope, tensor, &index))
        for (index = scope->owned_count; index--;)
            if (scope->owned[index] == tensor)
                break;
    if (index >= scope->owned_count)
        return;
    last = scope->owned[--scope->owned_count];
    scope->owned[index] = last;
    if (is_owner(scope, last))
        hob__scope_mark(last, scope, index);
    if (is_owner(scope, tensor))
        hob__scope_mark(tensor, NULL, 0);
    hob__tensor_unref(tensor);
}

hob_tensor *hob__scope_failure(hob_scope *scope, struct hob__failure *failure)
{
    if (failure && !scope->failure)
        scope->failure = failure;
    else
        hob__failure_unref(failure);
    if (!scope->error_tensor && scope->failure)
        scope->error_tensor = hob__tensor_error(scope->failure);
    return scope->error_tensor ? scope->error_tensor
                               : scope->runtime->no_memory;
}

hob_tensor *hob__scope_raise(hob_scope *scope, struct hob__failure *failure)
{
    if (!failure) { /* the policy holds without memory, too */
        failure = scope->runtime->no_memory->failure;
        hob__failure_ref(failure);
    }
    if (!(scope->flags & HOB__SCOPE_INNER))
        hob__panic(scope->runtime, failure);
    return hob__scope_failure(scope, failure);
}

static hob_tensor *scope_failv(hob_scope *scope, hob_status status,
                               const char *format, va_list args)
{
    hob_error error = HOB_ERROR_INIT;
    struct hob__failure *failure;

    hob__error_setv(&error, status, format, args);
    failure = hob__failure_new(status, NULL, 0, hob__error_text(&error));
    hob_error_release(&error);
    return hob__scope_raise(scope, failure);
}

hob_tensor *hob__scope_fail(hob_scope *scope, hob_status status,
                            const char *format, ...)
{
    va_list args;
    hob_tensor *tensor;

    va_start(args, format);
    tensor = scope_failv(scope, status, format, args);
    va_end(args);
    return tensor;
}

hob_tensor *hob__scope_pass(hob_scope *scope, const hob_tensor *tensor)
{
    hob_error why = HOB_ERROR_INIT;
    hob_tensor *failed;
    hob_status status;

    if (tensor->flags & HOB__TENSOR_ERROR) {
        if (tensor->failure)
            hob__failure_ref(tensor->failure);
        return hob__scope_failure(scope, tensor->failure);
    }
    status = hob__tensor_check(tensor, &why);
    failed = hob__scope_fail(scope, status, "%s", hob__error_text(&why));
    hob_error_release(&why);
    return failed;
}

hob_scope *hob__scope_enter(hob_scope *parent, struct hob_scope_frame *frame,
                            int32_t level)
{
    hob_scope *scope = (hob_scope *)(void *)frame;

    scope_init(scope, parent->runtime, parent,
               level >= 0 ? level : parent->level,
               HOB__SCOPE_INNER | HOB__SCOPE_FRAME);
    return scope;
}

hob_scope *hob__scope_begin(hob_device *device, struct hob_scope_frame *frame)
{
    hob_scope *scope = (hob_scope *)(void *)frame;

    scope_init(scope, device->runtime, NULL, device->depth, HOB__SCOPE_FRAME);
    return scope;
}

void hob__scope_leave(hob_scope *scope)
{
    hob_scope *parent = scope->parent;

    /* A layer's own scope: its failure is its parent's, for the message. */
    if (scope->failure && parent && (parent->flags & HOB__SCOPE_INNER) &&
        !parent->failure) {
        hob__failure_ref(scope->failure);
        parent->failure = scope->failure;
    }
    release_owned(scope);
}

/* ---- public ---- */

static hob_scope *scope_new(hob_runtime *runtime, hob_scope *parent,
                            int32_t level)
{
    hob_scope *scope = malloc(sizeof(*scope));

    if (!scope)
        return NULL;
    scope_init(scope, runtime, parent, level,
               parent ? parent->flags & HOB__SCOPE_INNER : 0);
    if (parent) {
        scope->older = parent->child;
        if (parent->child)
            parent->child->newer = scope;
        parent->child = scope;
    }
    atomic_fetch_add_explicit(&runtime->live_scopes, 1, memory_order_relaxed);
    return scope;
}

hob_scope *hob_scope_open(hob_runtime *runtime)
{
    return scope_new(runtime, NULL, INT_MAX);
}

hob_scope *hob_scope_child(hob_scope *parent)
{
    return scope_new(parent->runtime, parent, parent->level);
}

static void unlink_child(hob_scope *scope)
{
    if (scope->newer)
        scope->newer->older = scope->older;
    else if (scope->parent && scope->parent->child == scope)
        scope->parent->child = scope->older;
    if (scope->older)
        scope->older->newer = scope->newer;
}

static void close_one(hob_scope *scope)
{
    hob_runtime *runtime = scope->runtime;

    unlink_child(scope);
    release_owned(scope);
    hob__flush_scope(runtime, scope);
    free(scope);
    atomic_fetch_sub_explicit(&runtime->live_scopes, 1, memory_order_relaxed);
}

void hob_scope_close(hob_scope *scope)
{
    hob_scope *at = scope;
    hob_scope *parent;

    if (!scope)
        return;
    /* Iterative, because programs can nest scopes without a limit. */
    for (;;) {
        while (at->child)
            at = at->child;
        parent = at->parent;
        close_one(at);
        if (at == scope)
            break;
        at = parent;
    }
}

void hob_assign(hob_scope *owner, hob_tensor **slot, hob_tensor *tensor)
{
    hob_tensor *old = *slot;

    if (old == tensor)
        return;
    if (tensor->flags & (HOB__TENSOR_ERROR | HOB__TENSOR_MOVED)) {
        (void)hob__scope_pass(owner, tensor); /* the slot keeps its tensor */
        return;
    }
    hob__tensor_ref(tensor);
    if (hob__scope_adopt(owner, tensor)) {
        /* Nothing has changed: the old tensor stays in its slot. */
        hob__scope_fail(owner, HOB_ERR_MEMORY,
                        "assign: no memory to keep the new tensor");
        return;
    }
    *slot = tensor;
    if (old)
        hob__scope_disown(owner, old);
}

hob_status hob_scope_error(const hob_scope *scope, hob_error *error)
{
    if (scope->failure && scope->error_tensor)
        return hob__tensor_check(scope->error_tensor, error);
    if (scope->failure)
        return hob_error_set(error, scope->failure->status, "%s",
                             scope->failure->message);
    return HOB_OK;
}

void hob_scope_clear_error(hob_scope *scope)
{
    hob_tensor *tensor = scope->error_tensor;

    hob__failure_unref(scope->failure);
    scope->failure = NULL;
    scope->error_tensor = NULL;
    if (!tensor)
        return;
    /* The program may still hold it: it lives until the scope closes. Without
     * memory for that it is never freed, rather than under the program. */
    hob__tensor_ref(tensor);
    if (!hob__scope_adopt(scope, tensor))
        hob__tensor_unref(tensor);
}
