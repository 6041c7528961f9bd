/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON Schemas have the keys that the readers know, and no others.
 *
 * A reader's keys are a list of strings in its source; that is where they are
 * taken from, so a key that is added there and not in the schema fails here.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "hob_check.h"

#include "json.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 64, FILE_MAX = 1 << 20, DEPTH_MAX = 64 };

static const struct rule {
    const char *schema;
    const char *place;  /* of the object with the keys, "/" between names */
    const char *source; /* a file, or all C files of a folder, with a star */
    const char *list;   /* the list is the first behind this text */
    const char *second_source;
    const char *second_list;
} rules[] = {
    {"plugin", "properties", "core/src/manifest.c", "hob_status read_all(",
     "ext-sdk/gen/*.c", "manifest_keys[]"},
    {"plugin", "properties/abi/properties", "core/src/manifest.c",
     "hob_status read_abi(", NULL, NULL},
    {"plugin", "properties/backend/properties", "core/src/manifest_parts.c",
     "hob_status hob__reader_backend(", NULL, NULL},
    {"plugin", "properties/decorator/properties", "core/src/manifest_parts.c",
     "hob_status hob__reader_decorator(", NULL, NULL},
    {"plugin", "properties/requires/properties", "core/src/manifest_parts.c",
     "hob_status hob__reader_requires(", NULL, NULL},
    {"plugin", "$defs/variant/properties", "core/src/manifest_parts.c",
     "hob_status read_variant(", NULL, NULL},
    {"plugin", "$defs/op/properties", "core/src/manifest_ops.c",
     "hob_status read_op(", "ext-sdk/gen/*.c", "extension_keys[]"},
    {"plugin", "$defs/selector_when/properties", "core/src/manifest_ops.c",
     "hob_status read_selector(", "ext-sdk/gen/*.c", "selector_keys[]"},
    {"plugin", "$defs/implementation/properties", "ext-sdk/gen/*.c",
     " impl_keys[]", NULL, NULL},
    {"plugin", "$defs/implements/properties", "ext-sdk/gen/*.c",
     "implements_keys[]", NULL, NULL},
    {"plugin", "$defs/backward/properties", "ext-sdk/gen/*.c",
     "backward_keys[]", NULL, NULL},
    {"plugin", "$defs/expressed/properties", "ext-sdk/gen/*.c", "infer_keys[]",
     NULL, NULL},
    {"plugin", "$defs/tensor_result/properties", "ext-sdk/gen/*.c",
     "result_keys[]", NULL, NULL},
    {"plugin", "$defs/plain_result/properties", "ext-sdk/gen/*.c",
     "plain_keys[]", NULL, NULL},
    {"config", "properties", "core/src/conf*.c", "hob_status read_member(",
     NULL, NULL},
    {"config", "properties/plugins/properties", "core/src/conf*.c",
     "hob_status read_plugins_member(", NULL, NULL},
    {"config", "$defs/plugin/properties", "core/src/conf*.c",
     "hob_status read_plugin_member(", NULL, NULL},
};

struct keys {
    char *names[KEYS_MAX];
    uint32_t count;
};

static bool has(const struct keys *keys, const char *name)
{
    for (uint32_t i = 0; i < keys->count; i++) {
        if (!strcmp(keys->names[i], name))
            return true;
    }
    return false;
}

static void add(struct keys *keys, const char *name, size_t length)
{
    char *copy = strndup(name, length);

    ck_assert_ptr_nonnull(copy);
    if (!strcmp(copy, "$schema") || has(keys, copy)) {
        free(copy);
        return;
    }
    ck_assert_uint_lt(keys->count, KEYS_MAX);
    keys->names[keys->count++] = copy;
}

static void release(struct keys *keys)
{
    for (uint32_t i = 0; i < keys->count; i++)
        free(keys->names[i]);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(FILE_MAX);
    size_t size;

    ck_assert_msg(file != NULL, "%s cannot be opened", path);
    ck_assert_ptr_nonnull(text);
    size = fread(text, 1, FILE_MAX - 1, file);
    text[size] = '\0';
    (void)fclose(file);
    return text;
}

/* Read the one of the files PATTERN that has TEXT in it. */
static char *find_file(const char *pattern, const char *text)
{
    const char *dir = getenv("HOB_TEST_SRCDIR");
    char name[1024], *found = NULL;
    glob_t files;

    (void)snprintf(name, sizeof(name), "%s/../%s", dir ? dir : ".", pattern);
    ck_assert_msg(!glob(name, 0, NULL, &files), "there is no %s", name);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *content = read_file(files.gl_pathv[i]);

        if (!found && strstr(content, text))
            found = content;
        else
            free(content);
    }
    globfree(&files);
    ck_assert_msg(found != NULL, "\"%s\" is nowhere in %s", text, pattern);
    return found;
}

/* The strings behind BEFORE, up to END. */
static void read_strings(struct keys *keys, const char *at, const char *before,
                         const char *end)
{
    while ((at = strstr(at, before)) != NULL && at < end) {
        size_t length;

        at += strlen(before);
        length = strcspn(at, "\"");
        add(keys, at, length);
        at += length + 1;
    }
}

/* The list that comes first behind LIST, or, in a function without one, what
 * it compares the key with. */
static void read_list(struct keys *keys, const char *source, const char *list)
{
    char *text = find_file(source, list), *at = strstr(text, list), *end, *from;

    end = strstr(at, "\n}\n");
    from = strstr(at, "[] = {");
    if (from && (!end || from < end)) {
        end = strstr(from, "};");
        ck_assert_ptr_nonnull(end);
        read_strings(keys, from, "\"", end);
    } else {
        ck_assert_ptr_nonnull(end);
        read_strings(keys, at, "strcmp(key, \"", end);
    }
    free(text);
}

static void read_schema(struct keys *keys, const char *schema,
                        const char *place)
{
    static const struct hob__json_limits limits = {FILE_MAX, DEPTH_MAX};
    struct hob__json_doc *doc = NULL;
    const struct hob__json_value *value, *key;
    hob_error error = HOB_ERROR_INIT;
    char path[64], name[64], *text;
    hob_status st;

    (void)snprintf(path, sizeof(path), "manifests/%s.schema.json", schema);
    text = find_file(path, "");
    st = hob__json_parse(path, text, strlen(text), &limits, &doc, NULL, &error);
    ck_assert_msg(!st, "%s", error.message);
    value = hob__json_root(doc);
    while (*place && value) {
        size_t length = strcspn(place, "/");

        (void)snprintf(name, sizeof(name), "%.*s", (int)length, place);
        value = hob__json_member(doc, value, name);
        place += length + (place[length] == '/');
    }
    ck_assert_msg(value != NULL, "%s has no %s", path, name);
    for (key = hob__json_first(doc, value); key; key = hob__json_next(doc, key))
        add(keys, hob__json_key(doc, key), strlen(hob__json_key(doc, key)));
    hob__json_free(doc);
    free(text);
}

START_TEST(test_schema_has_the_keys_of_the_readers)
{
    const struct rule *rule = &rules[_i];
    struct keys known = {{NULL}, 0}, written = {{NULL}, 0};

    read_list(&known, rule->source, rule->list);
    if (rule->second_source)
        read_list(&known, rule->second_source, rule->second_list);
    read_schema(&written, rule->schema, rule->place);
    ck_assert_uint_gt(known.count, 1);
    for (uint32_t i = 0; i < known.count; i++)
        ck_assert_msg(has(&written, known.names[i]),
                      "%s.schema.json, %s: \"%s\" of %s is missing",
                      rule->schema, rule->place, known.names[i], rule->source);
    for (uint32_t i = 0; i < written.count; i++)
        ck_assert_msg(has(&known, written.names[i]),
                      "%s.schema.json, %s: nobody reads \"%s\"", rule->schema,
                      rule->place, written.names[i]);
    release(&known);
    release(&written);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("schema");
    TCase *tc = tcase_create("schema");
    SRunner *runner;
    int failed;

    tcase_add_loop_test(tc, test_schema_has_the_keys_of_the_readers, 0,
                        sizeof(rules) / sizeof(rules[0]));
    suite_add_tcase(suite, tc);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
