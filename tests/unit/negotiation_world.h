/* SPDX-License-Identifier: Apache-2.0 */
/*
 * negotiation_world.h - a plugin in which one table is of another version.
 *
 * hob-abi lists the members of every table from the headers. All bytes that
 * are not set here are 0x5a, also those of members that come later. Each table
 * lies in memory of exactly its size, so that a sanitizer sees a byte read too
 * much.
 */
#ifndef HOB_TEST_NEGOTIATION_WORLD_H
#define HOB_TEST_NEGOTIATION_WORLD_H

#include "plugin.h"

#include <hob/ext/autodiff.h>
#include <hob/ext/capture.h>
#include <hob/ext/cube.h>
#include <hob/ext/flex.h>
#include <hob/ext/fusion.h>
#include <hob/ext/plugin.h>

#include "unit/abi_layout.h"
#include "hob_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define SIGNATURE "(x: Float) -> x"

/* What the loader copies: tables, then elements of their lists. */
enum table {
    PLUGIN,
    BACKEND,
    DECORATOR,
    EXTENSION,
    ENTRY,
    OP,
    IMPL,
    BACKWARD,
    TABLE_COUNT
};

static const char *const table_names[TABLE_COUNT] = {
    "hob_plugin", "hob_backend",      "hob_decorator", "hob_extension",
    "hob_entry",  "hob_extension_op", "hob_op_impl",   "hob_backward"};

/* A plugin that is everything at once; lists have two elements. */
struct world {
    struct hob_plugin plugin;
    struct hob_backend backend;
    struct hob_decorator decorator;
    struct hob_extension extension;
    struct hob_entry entries[2];
    struct hob_extension_op ops[2];
    struct hob_op_impl impls[2];
    struct hob_backward backward;
    void *blocks[TABLE_COUNT]; /* the same, as big as asked for */
};

static const struct abi_struct *find_struct(enum table table)
{
    for (size_t i = 0; i < COUNT(abi_structs); i++)
        if (!strcmp(abi_structs[i].name, table_names[table]))
            return &abi_structs[i];
    ck_abort_msg("no struct %s", table_names[table]);
    return NULL;
}

/* The least that the header promises: up to its last required member. */
static uint32_t least_size(enum table table)
{
    const struct abi_struct *what = find_struct(table);
    uint32_t least = 0;

    for (uint32_t i = what->first; i < what->first + what->count; i++) {
        const struct abi_member *member = &abi_members[i];

        if (member->is_required)
            least = member->offset + member->size;
    }
    ck_assert_uint_gt(least, 0);
    return least;
}

static void *table_of(struct world *world, enum table table)
{
    void *const tables[TABLE_COUNT] = {
        &world->plugin, &world->backend, &world->decorator, &world->extension,
        world->entries, world->ops,      world->impls,      &world->backward};

    return tables[table];
}

static int list_length(enum table table)
{
    return table == ENTRY || table == OP || table == IMPL ? 2 : 1;
}

static void set_names(struct world *world)
{
    static const char *const names[2] = {"demo.square", "demo.cube"};
    static const char *const selectors[2] = {"flex", "autodiff"};

    world->backward.struct_size = sizeof(world->backward);
    for (int i = 0; i < 2; i++) {
        world->entries[i].op = names[i];
        world->entries[i].signature = SIGNATURE;
        world->impls[i].selector = selectors[i];
        world->ops[i].name = names[i];
        world->ops[i].signature = SIGNATURE;
        world->ops[i].impl_count = 2;
    }
}

static void make_world(struct world *world, uint16_t major, uint16_t required,
                       uint16_t built)
{
    memset(world, 0x5a, sizeof(*world));
    memset(world->blocks, 0, sizeof(world->blocks));
    world->plugin.magic = HOB_PLUGIN_MAGIC;
    world->plugin.struct_size = sizeof(world->plugin);
    world->plugin.abi_major = major;
    world->plugin.abi_minor_built = built;
    world->plugin.abi_minor_required = required;
    world->plugin.sanitizers = 0;
    world->plugin.id = "mock";
    world->plugin.version = "1.0.0";
    world->plugin.parts = NULL;
    world->backend.struct_size = sizeof(world->backend);
    world->backend.entry_size = sizeof(world->entries[0]);
    world->backend.entry_count = 2;
    world->decorator.struct_size = sizeof(world->decorator);
    world->extension.struct_size = sizeof(world->extension);
    world->extension.op_size = sizeof(world->ops[0]);
    world->extension.impl_size = sizeof(world->impls[0]);
    world->extension.entry_size = sizeof(world->entries[0]);
    world->extension.op_count = 2;
    world->extension.implements_count = 0;
    set_names(world);
}

/* Can a reader find out that a table has SIZE bytes? Elements of lists do not
 * say it, and of a plugin's table the head must be there. */
static bool is_readable(const struct abi_struct *what, uint32_t size)
{
    if (!strcmp(what->name, "hob_plugin"))
        return size >= offsetof(struct hob_plugin, id);
    return !what->is_table || size >= sizeof(uint32_t);
}

/* The table as a version has it that knows SIZE bytes. */
static void *resize(const void *full, uint32_t full_size, uint32_t size,
                    int count)
{
    char *block = malloc((size_t)size * (size_t)count);

    ck_assert_ptr_nonnull(block);
    memset(block, 0xee, (size_t)size * (size_t)count);
    for (int i = 0; i < count; i++)
        memcpy(block + (size_t)i * size,
               (const char *)full + (size_t)i * full_size,
               size < full_size ? size : full_size);
    return block;
}

/* Set a member of BLOCK if it is there; pointers and sizes alike. */
static void patch(void *block, uint32_t block_size, size_t offset,
                  const void *value, size_t size)
{
    if (offset + size <= block_size)
        memcpy((char *)block + offset, value, size);
}

#define PATCH(block, size, type, member, value)                                \
    patch(block, size, offsetof(struct type, member), &(value),                \
          sizeof(((struct type *)NULL)->member))

/* Lay WORLD out, all tables as we know them except TABLE, which has SIZE. */
static const struct hob_plugin *lay_out(struct world *world, enum table table,
                                        uint32_t size)
{
    uint32_t sizes[TABLE_COUNT];
    void **blocks = world->blocks;

    for (int i = 0; i < TABLE_COUNT; i++) {
        sizes[i] = i == (int)table ? size : find_struct(i)->size;
        blocks[i] = resize(table_of(world, i), find_struct(i)->size, sizes[i],
                           list_length(i));
    }
    PATCH(blocks[PLUGIN], sizes[PLUGIN], hob_plugin, struct_size,
          sizes[PLUGIN]);
    PATCH(blocks[PLUGIN], sizes[PLUGIN], hob_plugin, backend, blocks[BACKEND]);
    PATCH(blocks[PLUGIN], sizes[PLUGIN], hob_plugin, decorator,
          blocks[DECORATOR]);
    PATCH(blocks[PLUGIN], sizes[PLUGIN], hob_plugin, extension,
          blocks[EXTENSION]);
    PATCH(blocks[BACKEND], sizes[BACKEND], hob_backend, struct_size,
          sizes[BACKEND]);
    PATCH(blocks[BACKEND], sizes[BACKEND], hob_backend, entries, blocks[ENTRY]);
    PATCH(blocks[BACKEND], sizes[BACKEND], hob_backend, entry_size,
          sizes[ENTRY]);
    PATCH(blocks[DECORATOR], sizes[DECORATOR], hob_decorator, struct_size,
          sizes[DECORATOR]);
    PATCH(blocks[EXTENSION], sizes[EXTENSION], hob_extension, struct_size,
          sizes[EXTENSION]);
    PATCH(blocks[EXTENSION], sizes[EXTENSION], hob_extension, ops, blocks[OP]);
    PATCH(blocks[EXTENSION], sizes[EXTENSION], hob_extension, implements,
          blocks[OP]);
    PATCH(blocks[EXTENSION], sizes[EXTENSION], hob_extension, op_size,
          sizes[OP]);
    PATCH(blocks[EXTENSION], sizes[EXTENSION], hob_extension, impl_size,
          sizes[IMPL]);
    PATCH(blocks[EXTENSION], sizes[EXTENSION], hob_extension, entry_size,
          sizes[ENTRY]);
    PATCH(blocks[BACKWARD], sizes[BACKWARD], hob_backward, struct_size,
          sizes[BACKWARD]);
    for (int i = 0; i < 2; i++) {
        char *op = (char *)blocks[OP] + (size_t)i * sizes[OP];
        char *impl = (char *)blocks[IMPL] + (size_t)i * sizes[IMPL];
        char *entry = (char *)blocks[ENTRY] + (size_t)i * sizes[ENTRY];

        PATCH(op, sizes[OP], hob_extension_op, impls, blocks[IMPL]);
        PATCH(impl, sizes[IMPL], hob_op_impl, entry, entry);
        PATCH(impl, sizes[IMPL], hob_op_impl, backward, blocks[BACKWARD]);
    }
    return blocks[PLUGIN];
}

static void release(struct world *world)
{
    for (int i = 0; i < TABLE_COUNT; i++)
        free(world->blocks[i]);
}

/* Members that point at other tables: the copy points at the host's. */
static bool is_link(const struct abi_member *member)
{
    static const char *const links[] = {
        "hob_plugin.backend",     "hob_plugin.decorator",
        "hob_plugin.extension",   "hob_backend.entries",
        "hob_extension.ops",      "hob_extension.implements",
        "hob_extension_op.impls", "hob_op_impl.entry",
        "hob_op_impl.backward",
    };
    char name[100];

    (void)snprintf(name, sizeof(name), "%s.%s", member->table, member->name);
    for (size_t i = 0; i < COUNT(links); i++)
        if (!strcmp(links[i], name))
            return true;
    return false;
}

/* Functions for which the host stands in (NEG-5). */
static bool has_stub(const struct abi_member *member)
{
    static const char *const stubs[] = {
        "hob_plugin.open",
        "hob_plugin.close",
        "hob_backend.device_info",
        "hob_backend.sync",
        "hob_backend.interface",
        "hob_decorator.state_release",
        "hob_decorator.state_retain",
        "hob_decorator.interface",
    };
    char name[100];

    (void)snprintf(name, sizeof(name), "%s.%s", member->table, member->name);
    for (size_t i = 0; i < COUNT(stubs); i++)
        if (!strcmp(stubs[i], name))
            return true;
    return false;
}

static bool is_zero(const void *memory, size_t size)
{
    const unsigned char *bytes = memory;

    for (size_t i = 0; i < size; i++)
        if (bytes[i])
            return false;
    return true;
}

/* COPY holds of FULL what lies in its first SIZE bytes, and zeros or stubs. */
static void check_copy(enum table table, const void *full, const void *copy,
                       uint32_t size)
{
    const struct abi_struct *what = find_struct(table);

    for (uint32_t i = what->first; i < what->first + what->count; i++) {
        const struct abi_member *member = &abi_members[i];
        const char *is = (const char *)copy + member->offset;
        const char *was = (const char *)full + member->offset;
        const bool known = member->offset + member->size <= size;

        if (!strcmp(member->name, "struct_size") ||
            (known && strlen(member->name) > 5 &&
             !strcmp(member->name + strlen(member->name) - 5, "_size")))
            continue;
        if (known && is_link(member))
            ck_assert_msg(!is_zero(is, member->size), "%s.%s is lost",
                          member->table, member->name);
        else if (known)
            ck_assert_msg(!memcmp(is, was, member->size),
                          "%s.%s is not as it was", member->table,
                          member->name);
        else if (has_stub(member))
            ck_assert_msg(!is_zero(is, member->size) &&
                              memcmp(is, was, member->size) != 0,
                          "%s.%s has no stub", member->table, member->name);
        else
            ck_assert_msg(is_zero(is, member->size),
                          "%s.%s is not zero with %u bytes", member->table,
                          member->name, size);
    }
}

/* All copies of PLUGIN are as WORLD, TABLE having had SIZE bytes. */
static void check_plugin(struct world *world, const struct hob__plugin *plugin,
                         enum table table, uint32_t size)
{
    uint32_t sizes[TABLE_COUNT];

    for (int i = 0; i < TABLE_COUNT; i++)
        sizes[i] = i == (int)table ? size : find_struct(i)->size;
    check_copy(PLUGIN, &world->plugin, &plugin->table, sizes[PLUGIN]);
    check_copy(BACKEND, &world->backend, &plugin->backend, sizes[BACKEND]);
    check_copy(DECORATOR, &world->decorator, &plugin->decorator,
               sizes[DECORATOR]);
    check_copy(EXTENSION, &world->extension, &plugin->extension,
               sizes[EXTENSION]);
    for (int i = 0; i < 2; i++) {
        const struct hob_extension_op *op = &plugin->extension.ops[i];

        check_copy(ENTRY, &world->entries[i], &plugin->backend.entries[i],
                   sizes[ENTRY]);
        check_copy(OP, &world->ops[i], op, sizes[OP]);
        for (uint32_t k = 0; k < op->impl_count; k++) {
            const struct hob_op_impl *impl = &op->impls[k];

            check_copy(IMPL, &world->impls[k], impl, sizes[IMPL]);
            if (impl->entry)
                check_copy(ENTRY, &world->entries[k], impl->entry,
                           sizes[ENTRY]);
            if (impl->backward)
                check_copy(BACKWARD, &world->backward, impl->backward,
                           sizes[BACKWARD]);
        }
    }
}

#endif
