/* SPDX-License-Identifier: Apache-2.0 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "plugin_lists.h"

#include "text.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* What every version of an element has: up to its last required member. */
enum {
    ENTRY_SIZE_MIN = sizeof(struct hob_entry),
    OP_SIZE_MIN = offsetof(struct hob_extension_op, infer),
    IMPL_SIZE_MIN = offsetof(struct hob_op_impl, entry),
    BACKWARD_SIZE_MIN = sizeof(struct hob_backward)
};

hob_status hob__plugin_lacks(const struct hob__plugin_checking *checking,
                             const char *member)
{
    *checking->out_reason = HOB__REASON_REQUIRED_FN;
    return hob_error_set(checking->error, HOB_ERR_PLUGIN,
                         "%s: member %s is NULL", checking->path, member);
}

hob_status hob__plugin_too_short(const struct hob__plugin_checking *checking,
                                 const char *what, uint32_t size,
                                 uint32_t least)
{
    *checking->out_reason = HOB__REASON_SIZE;
    return hob_error_set(checking->error, HOB_ERR_PLUGIN,
                         "%s: %s has %" PRIu32 " bytes, at least %" PRIu32
                         " are needed",
                         checking->path, what, size, least);
}

static hob_status no_memory(const struct hob__plugin_checking *checking)
{
    return hob_error_set(checking->error, HOB_ERR_MEMORY, "%s: out of memory",
                         checking->path);
}

/* "WHERE.MEMBER is NULL" for a path that is made of pieces. */
static hob_status lacks_in(const struct hob__plugin_checking *checking,
                           const char *where, const char *member)
{
    struct hob__text text = HOB__TEXT_INIT;
    hob_status st;

    hob__text_printf(&text, "%s.%s", where, member);
    st = hob__plugin_lacks(checking, text.data ? text.data : member);
    hob__text_release(&text);
    return st;
}

/* Element 0..COUNT-1 of LIST, each SIZE bytes as the plugin knows them, as
 * OWN_SIZE bytes each. LIST may be aligned for smaller elements than ours. */
static void *copy_list(const struct hob__plugin_checking *checking,
                       const void *list, uint32_t count, uint32_t size,
                       size_t own_size)
{
    char *copy = hob__arena_array(checking->copies, count, own_size);

    for (uint32_t i = 0; copy && i < count; i++)
        memcpy(copy + i * own_size, (const char *)list + (size_t)i * size,
               size < own_size ? size : own_size);
    return copy;
}

/* WHERE: as in "backend.entries[3]". */
static hob_status check_entry(const struct hob__plugin_checking *checking,
                              const struct hob_entry *entry, const char *where)
{
    if (!entry->op)
        return lacks_in(checking, where, "op");
    if (!entry->signature)
        return lacks_in(checking, where, "signature");
    if (!entry->execute)
        return lacks_in(checking, where, "execute");
    return HOB_OK;
}

hob_status hob__plugin_copy_entries(const struct hob__plugin_checking *checking,
                                    struct hob_backend *backend)
{
    char where[40];
    hob_status st = HOB_OK;

    if (!backend->entry_count)
        return HOB_OK;
    if (!backend->entries)
        return hob__plugin_lacks(checking, "backend.entries");
    if (backend->entry_size < ENTRY_SIZE_MIN)
        return hob__plugin_too_short(checking, "an entry (backend.entry_size)",
                                     backend->entry_size, ENTRY_SIZE_MIN);
    backend->entries =
        copy_list(checking, backend->entries, backend->entry_count,
                  backend->entry_size, sizeof(struct hob_entry));
    if (!backend->entries)
        return no_memory(checking);
    for (uint32_t i = 0; i < backend->entry_count && !st; i++) {
        (void)snprintf(where, sizeof(where), "backend.entries[%" PRIu32 "]", i);
        st = check_entry(checking, &backend->entries[i], where);
    }
    return st;
}

/* A backward says its own size. */
static hob_status copy_backward(const struct hob__plugin_checking *checking,
                                const struct hob_backward **backward,
                                const char *where)
{
    uint32_t size = (*backward)->struct_size;
    struct hob__text text = HOB__TEXT_INIT;
    hob_status st;

    if (size < BACKWARD_SIZE_MIN) {
        hob__text_printf(&text, "%s.backward", where);
        st = hob__plugin_too_short(checking,
                                   text.data ? text.data : "a backward", size,
                                   BACKWARD_SIZE_MIN);
        hob__text_release(&text);
        return st;
    }
    *backward = copy_list(checking, *backward, 1, size, sizeof(**backward));
    if (!*backward)
        return no_memory(checking);
    return (*backward)->backward
               ? HOB_OK
               : lacks_in(checking, where, "backward.backward");
}

static hob_status copy_impl(const struct hob__plugin_checking *checking,
                            const struct hob_extension *extension,
                            struct hob_op_impl *impl, const char *where)
{
    struct hob__text text = HOB__TEXT_INIT;
    hob_status st = HOB_OK;

    if (!impl->selector)
        return lacks_in(checking, where, "selector");
    if (impl->entry) {
        impl->entry = copy_list(checking, impl->entry, 1, extension->entry_size,
                                sizeof(*impl->entry));
        if (!impl->entry)
            return no_memory(checking);
        hob__text_printf(&text, "%s.entry", where);
        st = check_entry(checking, impl->entry, text.data ? text.data : where);
        hob__text_release(&text);
    }
    if (!st && impl->backward)
        st = copy_backward(checking, &impl->backward, where);
    return st;
}

static hob_status copy_op(const struct hob__plugin_checking *checking,
                          const struct hob_extension *extension,
                          struct hob_extension_op *op, const char *where)
{
    struct hob_op_impl *impls;
    char inner[100];
    hob_status st = HOB_OK;

    if (!op->name)
        return lacks_in(checking, where, "name");
    if (!op->signature)
        return lacks_in(checking, where, "signature");
    if (!op->impl_count)
        return HOB_OK;
    if (!op->impls)
        return lacks_in(checking, where, "impls");
    impls = copy_list(checking, op->impls, op->impl_count, extension->impl_size,
                      sizeof(*impls));
    op->impls = impls;
    if (!impls)
        return no_memory(checking);
    for (uint32_t i = 0; i < op->impl_count && !st; i++) {
        (void)snprintf(inner, sizeof(inner), "%s.impls[%" PRIu32 "]", where, i);
        st = copy_impl(checking, extension, &impls[i], inner);
    }
    return st;
}

/* LIST: its name in struct hob_extension. */
static hob_status copy_op_list(const struct hob__plugin_checking *checking,
                               const struct hob_extension *extension,
                               const char *list, uint32_t count,
                               const struct hob_extension_op **ops)
{
    struct hob_extension_op *copy;
    char where[60];
    hob_status st = HOB_OK;

    if (!count)
        return HOB_OK;
    (void)snprintf(where, sizeof(where), "extension.%s", list);
    if (!*ops)
        return hob__plugin_lacks(checking, where);
    copy = copy_list(checking, *ops, count, extension->op_size, sizeof(*copy));
    *ops = copy;
    if (!copy)
        return no_memory(checking);
    for (uint32_t i = 0; i < count && !st; i++) {
        (void)snprintf(where, sizeof(where), "extension.%s[%" PRIu32 "]", list,
                       i);
        st = copy_op(checking, extension, &copy[i], where);
    }
    return st;
}

hob_status hob__plugin_copy_ops(const struct hob__plugin_checking *checking,
                                struct hob_extension *extension)
{
    const struct size {
        const char *what;
        uint32_t size;
        uint32_t least;
    } sizes[] = {{"an op (extension.op_size)", extension->op_size, OP_SIZE_MIN},
                 {"an implementation (extension.impl_size)",
                  extension->impl_size, IMPL_SIZE_MIN},
                 {"an entry (extension.entry_size)", extension->entry_size,
                  ENTRY_SIZE_MIN}};
    hob_status st = HOB_OK;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && !st; i++) {
        if (sizes[i].size < sizes[i].least)
            st = hob__plugin_too_short(checking, sizes[i].what, sizes[i].size,
                                       sizes[i].least);
    }
    if (!st)
        st = copy_op_list(checking, extension, "ops", extension->op_count,
                          &extension->ops);
    if (!st)
        st = copy_op_list(checking, extension, "implements",
                          extension->implements_count, &extension->implements);
    return st;
}
