/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins of other versions (NEG-3 to NEG-6; cases 53, 54, 56 and 58).
 *
 * hob-abi lists the members of every table from the headers. Here each table
 * is made once as every older version that could have been, cut behind each
 * member, and as newer ones, with more behind; each lies in memory of exactly
 * its size, so that a sanitizer sees a byte read too much. All bytes that this
 * test does not set are 0x5a, also those of members that come later.
 */
#include "../support/hob_check.h"
#include "loader_fixture.h"
#include "plugin.h"

#include <hob/ext/autodiff.h>
#include <hob/ext/flex.h>
#include <hob/ext/plugin.h>

#include "unit/abi_layout.h"

#include <check.h>
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

static struct loader_fixture fix;

static void setup(void)
{
    fixture_setup(&fix);
}

static void teardown(void)
{
    fixture_teardown(&fix);
}

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

/* Check WORLD with TABLE of SIZE bytes against HOST; *MESSAGE is static. */
static enum hob__reason check(struct world *world, enum table table,
                              uint32_t size,
                              const struct hob__plugin_host *host,
                              const char **out_message)
{
    static char message[512];
    static struct hob__manifest manifest = {
        .id = "mock", .version = "1.0.0", .kind = HOB__KIND_EXTENSION};
    const struct hob_plugin *laid = lay_out(world, table, size);
    struct hob__plugin plugin = {.manifest = &manifest};
    struct hob__text notes = HOB__TEXT_INIT;
    hob_error error = HOB_ERROR_INIT;
    enum hob__reason reason;
    hob_status st =
        hob__plugin_check(laid, "x.so", host, &plugin, &notes, &reason, &error);

    ck_assert_int_eq(st, reason ? HOB_ERR_PLUGIN : HOB_OK);
    if (!st)
        check_plugin(world, &plugin, table, size);
    else
        ck_assert(is_zero(&plugin.table, sizeof(plugin.table)) &&
                  is_zero(&plugin.copies, sizeof(plugin.copies)));
    (void)snprintf(message, sizeof(message), "%s",
                   error.message ? error.message : "");
    *out_message = message;
    hob_error_release(&error);
    hob__text_release(&notes);
    hob__plugin_release(&plugin);
    release(world);
    return reason;
}

static void expect(enum table table, uint32_t size, enum hob__reason is,
                   enum hob__reason want, const char *message)
{
    ck_assert_msg(is == want, "%s of %u bytes: %s, not %s: %s",
                  table_names[table], size, hob__reason_name(is),
                  hob__reason_name(want), message);
}

/* A world of ABI 1.BUILT that needs 1.2, TABLE of SIZE bytes, a host 1.3. */
static const char *expect_check(enum table table, uint32_t size, uint16_t built,
                                enum hob__reason want)
{
    const struct hob__plugin_host host = {1, 3, 0};
    const char *message = NULL;
    enum hob__reason reason;
    struct world world;

    make_world(&world, 1, 2, built);
    if (table == EXTENSION) /* an older one has no such list */
        world.extension.implements_count = 0;
    reason = check(&world, table, size, &host, &message);
    expect(table, size, reason, want, message);
    return message;
}

/* Every older version: what is too short for the required members is refused
 * with its size, the rest serves. */
START_TEST(test_negotiation_older_tables)
{
    const struct abi_struct *what = find_struct(_i);
    const uint32_t least = least_size(_i);
    uint32_t served = 0;

    for (uint32_t i = what->first; i < what->first + what->count; i++) {
        const uint32_t size = abi_members[i].offset + abi_members[i].size;
        const char *message;
        char text[100];

        if (!is_readable(what, size))
            continue;
        message = expect_check(
            _i, size, 2, size < least ? HOB__REASON_SIZE : HOB__REASON_OK);
        served += size >= least;
        (void)snprintf(text, sizeof(text),
                       "has %u bytes, at least %u are needed", size, least);
        ck_assert_msg(size >= least || strstr(message, text),
                      "got \"%s\", not \"%s\"", message, text);
    }
    ck_assert_uint_ge(served, 1);
}
END_TEST

/* One byte decides. */
START_TEST(test_negotiation_least_size)
{
    const uint32_t least = least_size(_i);

    (void)expect_check(_i, least - 1, 2, HOB__REASON_SIZE);
    (void)expect_check(_i, least, 2, HOB__REASON_OK);
}
END_TEST

/* Newer ones are taken and their tails ignored; so are odd sizes. */
START_TEST(test_negotiation_newer_tables)
{
    const struct abi_struct *what = find_struct(_i);
    const uint32_t sizes[] = {what->size, what->size + 1, what->size + 3,
                              what->newer_size, 4096};

    ck_assert_uint_gt(what->newer_size, what->size);
    for (size_t i = 0; i < COUNT(sizes); i++)
        (void)expect_check(_i, sizes[i], 9, HOB__REASON_OK);
}
END_TEST

/* Check a world in which the pointer or size at OFFSET of TABLE, of SIZE bytes,
 * is zero. The plugin is to be released. */
static enum hob__reason check_without(enum table table, uint32_t offset,
                                      uint32_t size, struct hob__plugin *plugin,
                                      char *message, size_t message_size)
{
    static const struct hob__plugin_host host = {1, 3, 0};
    static struct hob__manifest manifest = {
        .id = "mock", .version = "1.0.0", .kind = HOB__KIND_EXTENSION};
    struct hob__text notes = HOB__TEXT_INIT;
    hob_error error = HOB_ERROR_INIT;
    const struct hob_plugin *laid;
    enum hob__reason reason;
    struct world world;
    hob_status st;

    memset(plugin, 0, sizeof(*plugin));
    plugin->manifest = &manifest;
    make_world(&world, 1, 2, 2);
    laid = lay_out(&world, table, find_struct(table)->size);
    memset((char *)world.blocks[table] + offset, 0, size);
    st =
        hob__plugin_check(laid, "x.so", &host, plugin, &notes, &reason, &error);
    ck_assert_int_eq(st, reason ? HOB_ERR_PLUGIN : HOB_OK);
    (void)snprintf(message, message_size, "%s",
                   error.message ? error.message : "");
    hob_error_release(&error);
    hob__text_release(&notes);
    release(&world);
    return reason;
}

/* What must follow when MEMBER is zero? */
static enum hob__reason reason_without(const struct abi_member *member)
{
    const size_t length = strlen(member->name);

    if (!strcmp(member->table, "hob_plugin") &&
        !strcmp(member->name, "extension"))
        return HOB__REASON_KIND_MISMATCH;
    if (!member->is_required)
        return HOB__REASON_OK;
    return length > 5 && !strcmp(member->name + length - 5, "_size")
               ? HOB__REASON_SIZE
               : HOB__REASON_REQUIRED_FN;
}

/* What the headers call required is; what they do not may be NULL. */
START_TEST(test_negotiation_required_members)
{
    const struct abi_struct *what = find_struct(_i);

    for (uint32_t i = what->first; i < what->first + what->count; i++) {
        const struct abi_member *member = &abi_members[i];
        const enum hob__reason want = reason_without(member);
        struct hob__plugin plugin;
        enum hob__reason reason;
        char message[512];

        /* Two are lists that a count says are there: see below. */
        if (!member->is_required &&
            (!member->is_pointer || !strcmp(member->name, "entries") ||
             !strcmp(member->name, "impls")))
            continue;
        reason = check_without(_i, member->offset, member->size, &plugin,
                               message, sizeof(message));
        expect(_i, what->size, reason, want, member->name);
        if (want)
            ck_assert_msg(strstr(message, member->name), "%s: got \"%s\"",
                          member->name, message);
        else if (has_stub(member))
            ck_assert_msg(
                !is_zero((_i == PLUGIN    ? (char *)&plugin.table
                          : _i == BACKEND ? (char *)&plugin.backend
                                          : (char *)&plugin.decorator) +
                             member->offset,
                         member->size),
                "%s has no stub", member->name);
        hob__plugin_release(&plugin);
    }
}
END_TEST

static const struct missing {
    enum table table;
    uint32_t offset;
    const char *message;
} missing[] = {
    {BACKEND, offsetof(struct hob_backend, entries),
     "member backend.entries is NULL"},
    {OP, offsetof(struct hob_extension_op, impls),
     "member extension.ops[0].impls is NULL"},
    {ENTRY, offsetof(struct hob_entry, execute),
     "member backend.entries[0].execute is NULL"},
    {IMPL, offsetof(struct hob_op_impl, selector),
     "member extension.ops[0].impls[0].selector is NULL"},
    {BACKWARD, offsetof(struct hob_backward, backward),
     "member extension.ops[0].impls[0].backward.backward is NULL"},
};

/* The message leads to the member. */
START_TEST(test_negotiation_names_the_member)
{
    const struct missing *row = &missing[_i];
    struct hob__plugin plugin;
    char message[512];

    ck_assert_int_eq(check_without(row->table, row->offset, sizeof(void *),
                                   &plugin, message, sizeof(message)),
                     HOB__REASON_REQUIRED_FN);
    ck_assert_msg(strstr(message, row->message), "got \"%s\"", message);
}
END_TEST

/* The rule as the documents say it, for every pair of small numbers. */
START_TEST(test_negotiation_versions)
{
    const uint32_t host_major = (uint32_t)_i / 5, host_minor = (uint32_t)_i % 5;
    const struct hob__plugin_host host = {host_major, host_minor, 0};

    for (uint32_t n = 0; n < 3 * 6 * 6; n++) {
        const uint32_t major = n / 36, required = n / 6 % 6, built = n % 6;
        enum hob__reason want = HOB__REASON_OK, reason;
        char text[100];
        const char *message = NULL;
        struct world world;

        if (major != host_major)
            want = HOB__REASON_MAJOR;
        else if (required > host_minor) /* it needs what we do not have */
            want = HOB__REASON_MINOR;
        else if (!major && built != host_minor) /* all may change before 1.0 */
            want = HOB__REASON_MINOR;
        make_world(&world, (uint16_t)major, (uint16_t)required,
                   (uint16_t)built);
        reason =
            check(&world, PLUGIN, sizeof(struct hob_plugin), &host, &message);
        ck_assert_msg(reason == want,
                      "host %u.%u, plugin %u.%u needs .%u: %s, not %s",
                      host_major, host_minor, major, built, required,
                      hob__reason_name(reason), hob__reason_name(want));
        (void)snprintf(text, sizeof(text),
                       "made for ABI %u.%u (needs %u.%u), this Hob has %u.%u",
                       major, built, major, required, host_major, host_minor);
        ck_assert(!want || strstr(message, text));
    }
}
END_TEST

/* Case 54: what needs a newer host is refused before anything of it is read
 * but the head, and before any call. */
START_TEST(test_negotiation_case_54_reads_the_head_only)
{
    const struct hob__plugin_host host = {1, 3, 0};
    const struct hob_plugin full = {.magic = HOB_PLUGIN_MAGIC,
                                    .struct_size = sizeof(full),
                                    .abi_major = 1,
                                    .abi_minor_built = 9,
                                    .abi_minor_required = 4};
    /* As far as a check of versions may look. */
    const uint32_t head = offsetof(struct hob_plugin, reserved0);
    void *block = resize(&full, sizeof(full), head, 1);
    struct hob__plugin plugin = {.manifest = NULL};
    enum hob__reason reason;

    ck_assert_int_eq(
        hob__plugin_check(block, "x.so", &host, &plugin, NULL, &reason, NULL),
        HOB_ERR_PLUGIN);
    ck_assert_int_eq(reason, HOB__REASON_MINOR);
    free(block);
}
END_TEST

/* ---- through the loader ---- */

/* What the entry below returns (a checked test is a process of its own). */
static const struct hob_plugin *entry_table;
static const struct hob_host *entry_host;

static const struct hob_plugin *entry(const struct hob_host *host)
{
    entry_host = host;
    return entry_table;
}

static const char manifest_text[] =
    "{\"manifest_version\": 1, \"id\": \"mock\", \"version\": \"1.0.0\","
    " \"kind\": \"extension\", \"abi\": {\"major\": 0, \"required_minor\": 2},"
    " \"library\": \"unused.so\", \"namespace\": \"demo\", \"ops\": ["
    "{\"op\": \"square\", \"signature\": \"" SIGNATURE "\","
    " \"infer\": \"same\", \"backends\": [\"flex\"]},"
    "{\"op\": \"cube\", \"signature\": \"" SIGNATURE "\","
    " \"infer\": \"same\", \"backends\": [\"flex\"]}]}";

static const struct hob__loader_static linked_in = {
    manifest_text, sizeof(manifest_text) - 1, "mock", entry};

static enum hob__reason load(struct world *world, enum table table,
                             uint32_t size)
{
    static const struct hob_host host = {.struct_size = sizeof(host),
                                         .abi_minor = HOB_ABI_MINOR};
    const struct hob__plugin *plugin = NULL;
    const struct hob__record *record;
    hob_error error = HOB_ERROR_INIT;
    hob_status st;

    hob__loader_close(fix.loader);
    fix.loader = NULL;
    entry_host = NULL;
    entry_table = lay_out(world, table, size);
    fixture_open(&fix);
    st = hob__loader_load(fix.loader, hob__loader_get(fix.loader, 0), &host,
                          &plugin, &error);
    record = fixture_record(&fix, 0);
    ck_assert_ptr_eq(entry_host, &host);
    ck_assert_int_eq(st, record->reason ? HOB_ERR_PLUGIN : HOB_OK);
    ck_assert_int_eq(record->state,
                     st ? HOB__STATE_REFUSED : HOB__STATE_LOADED);
    if (!st)
        check_plugin(world, plugin, table, size);
    hob_error_release(&error);
    release(world);
    return record->reason;
}

/* The same from end to end, with the ABI that this core has. An op without
 * its body or implementations is refused for that. */
START_TEST(test_negotiation_through_the_loader)
{
    const struct abi_struct *what = find_struct(_i);
    const uint32_t least = least_size(_i);
    uint32_t size;
    struct world world;

    fix.options.statics = &linked_in;
    fix.options.static_count = 1;
    for (uint32_t i = what->first; i < what->first + what->count; i++) {
        enum hob__reason want = HOB__REASON_OK;

        size = abi_members[i].offset + abi_members[i].size;
        if (!is_readable(what, size))
            continue;
        if (size < least)
            want = HOB__REASON_SIZE;
        else if (_i == OP && size <= offsetof(struct hob_extension_op, body))
            want = HOB__REASON_NO_IMPLEMENTATION;
        make_world(&world, HOB_ABI_MAJOR, HOB_ABI_MINOR, HOB_ABI_MINOR);
        expect(_i, size, load(&world, _i, size), want, "loaded");
    }
    make_world(&world, HOB_ABI_MAJOR, HOB_ABI_MINOR, HOB_ABI_MINOR);
    size = what->newer_size;
    expect(_i, size, load(&world, _i, size), HOB__REASON_OK, "loaded");
    make_world(&world, HOB_ABI_MAJOR, HOB_ABI_MINOR, HOB_ABI_MINOR + 1);
    expect(_i, size, load(&world, _i, size), HOB__REASON_MINOR, "loaded");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("negotiation");
    TCase *tc = tcase_create("negotiation");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_negotiation_older_tables, 0, TABLE_COUNT);
    tcase_add_loop_test(tc, test_negotiation_least_size, 0, TABLE_COUNT);
    tcase_add_loop_test(tc, test_negotiation_newer_tables, 0, TABLE_COUNT);
    tcase_add_loop_test(tc, test_negotiation_required_members, 0, TABLE_COUNT);
    tcase_add_loop_test(tc, test_negotiation_names_the_member, 0,
                        COUNT(missing));
    tcase_add_loop_test(tc, test_negotiation_versions, 0, 15);
    tcase_add_test(tc, test_negotiation_case_54_reads_the_head_only);
    tcase_add_loop_test(tc, test_negotiation_through_the_loader, 0,
                        TABLE_COUNT);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
