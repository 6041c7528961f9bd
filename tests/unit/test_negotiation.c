/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins of other versions (NEG-3 to NEG-6; cases 53, 54, 56 and 58): each
 * table once as every older version that could have been, cut behind each
 * member, and as newer ones, with more behind.
 */
#include "../support/hob_check.h"
#include "loader_fixture.h"
#include "negotiation_world.h"
#include "static_plugins.h"
#include "hob_check.h"

#include <hob/hob.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct loader_fixture fix;

static void setup(void)
{
    fixture_setup(&fix);
}

static void teardown(void)
{
    fixture_teardown(&fix);
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

/* ---- interfaces: tables that a layer offers by name ---- */

static const void *offered; /* by the layer below */

static hob_status open_layer(void *instance, hob_device *below, int32_t level,
                             const char *options, void **out_layer,
                             char **out_message)
{
    (void)instance;
    (void)below;
    (void)level;
    (void)options;
    (void)out_message;
    *out_layer = NULL;
    return HOB_OK;
}

static void close_layer(void *layer)
{
    (void)layer;
}

static int32_t pass(void *layer, struct hob_call *call,
                    const struct hob_op_impl *impl, hob_status *out_status)
{
    (void)layer;
    (void)call;
    (void)impl;
    (void)out_status;
    return HOB_LAYER_PASS;
}

static const void *offer(void *layer, const char *name, uint32_t version)
{
    (void)layer;
    (void)version;
    return strcmp(name, HOB_AUTODIFF_INTERFACE) ? NULL : offered;
}

static hob_status answer_inner(void *layer, hob_scope *scope,
                               hob_tensor *tensor, hob_tensor **out)
{
    (void)layer;
    (void)scope;
    *out = tensor;
    return HOB_OK;
}

static const struct hob_plugin *offering_entry(const struct hob_host *host)
{
    static const struct hob_decorator decorator = {.struct_size =
                                                       sizeof(decorator),
                                                   .layer_open = open_layer,
                                                   .layer_close = close_layer,
                                                   .call = pass,
                                                   .interface = offer};
    static const struct hob_plugin plugin = {
        HOB_PLUGIN_INIT_HEAD, .id = "offering", .version = "1.0.0",
        .decorator = &decorator};

    (void)host;
    return &plugin;
}

/* One that is shorter than its version is none; a longer one serves. */
START_TEST(test_negotiation_interface_sizes)
{
    const struct hob_static_plugin statics[] = {
        test_static_plugins[0],
        {"{\"manifest_version\":1,\"id\":\"offering\",\"version\":\"1.0.0\","
         "\"kind\":\"decorator\",\"abi\":{\"major\":0,\"required_minor\":2},"
         "\"decorator\":{\"selector\":\"offering\"},\"unlisted\":\"pass\"}",
         offering_entry}};
    const struct hob_autodiff_interface full = {.inner = answer_inner};
    const uint32_t least =
        offsetof(struct hob_autodiff_interface, grads_free) + sizeof(void *);
    const uint32_t sizes[] = {8,
                              offsetof(struct hob_autodiff_interface, inner),
                              least - 1,
                              least,
                              sizeof(full),
                              sizeof(struct abi_newer_hob_autodiff_interface)};
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    const float one = 1;
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime = NULL;
    hob_device *device = NULL;

    options.policy = HOB_POLICY_REPORT;
    options.exclusive = 1;
    options.static_plugins = statics;
    options.static_plugin_count = COUNT(statics);
    ck_assert_hob_ok(hob_runtime_open(&options, &runtime, &error));
    ck_assert_hob_ok(
        hob_device_open(runtime, "offering(calc)", &device, &error));
    for (size_t i = 0; i < COUNT(sizes); i++) {
        hob_scope *scope = hob_scope_open(runtime);
        hob_tensor *tensor = hob_from_f32(scope, device, &one, NULL, 0);
        void *table = resize(&full, sizeof(full), sizes[i], 1);

        memcpy(table, &sizes[i], sizeof(sizes[i]));
        offered = table;
        ck_assert_int_eq(hob_inner(scope, tensor) == tensor, sizes[i] >= least);
        ck_assert_int_eq(hob_scope_error(scope, NULL),
                         sizes[i] >= least ? HOB_OK : HOB_ERR_DEVICE);
        hob_scope_close(scope);
        free(table);
    }
    hob_device_unref(device);
    ck_assert_hob_ok(hob_runtime_close(runtime, &error));
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
    tc = tcase_create("interfaces");
    tcase_add_test(tc, test_negotiation_interface_sizes);
    suite_add_tcase(suite, tc);
    return hob_check_main(suite);
}
