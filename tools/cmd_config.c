/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_config.c - hob config and hob why: texts that the core makes.
 */
#include "cmd.h"
#include "text.h"

#include <stdio.h>
#include <string.h>

static void print_list(const char *title, const cJSON *list)
{
    const cJSON *item;

    printf("%s\n", title);
    if (!cJSON_GetArraySize(list))
        printf("  none\n");
    cJSON_ArrayForEach(item, list)
    {
        if (cJSON_IsString(item))
            printf("  %s\n", item->valuestring);
    }
}

/* Take out of ITEM, what is said of one plugin, what is not said. */
static void drop_unsaid(cJSON *item)
{
    cJSON *next;

    for (cJSON *child = item->child; child; child = next) {
        next = child->next;
        if (cJSON_IsNull(child) || (cJSON_IsObject(child) && !child->child) ||
            (cJSON_IsFalse(child) && !strcmp(child->string, "locked")))
            cJSON_Delete(cJSON_DetachItemViaPointer(item, child));
    }
}

static void print_note(const cJSON *note)
{
    static const char *const keys[] = {"where", "reason", "detail", "hint"};
    const char *severity = cJSON_GetStringValue(
        cJSON_GetObjectItemCaseSensitive(note, "severity"));

    if (!severity || !strcmp(severity, "debug"))
        return;
    printf("note");
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++) {
        const char *text = cJSON_GetStringValue(
            cJSON_GetObjectItemCaseSensitive(note, keys[i]));

        if (text && *text)
            printf(": %s", text);
    }
    putchar('\n');
}

static void print_config(cJSON *config)
{
    cJSON *plugins = cJSON_GetObjectItemCaseSensitive(config, "plugins");
    cJSON *item;

    print_list("read, in this order:",
               cJSON_GetObjectItemCaseSensitive(config, "files"));
    print_list("devices, the first that opens wins:",
               cJSON_GetObjectItemCaseSensitive(config, "device"));
    printf("plugins:\n");
    cJSON_ArrayForEach(item, plugins)
    {
        char *text;

        if (cJSON_IsObject(item))
            drop_unsaid(item);
        text = cJSON_PrintUnformatted(item);
        if (!cJSON_IsArray(item) || cJSON_GetArraySize(item))
            printf("  %s: %s\n", item->string, text ? text : "?");
        cJSON_free(text);
    }
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(config, "notes"))
        print_note(item);
}

int cmd_config(const struct cmd *cmd, int argc, char **argv)
{
    int as_json = cmd_flag(&argc, argv, "--json");
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime;
    cJSON *config;
    char *text = NULL;
    int code = EXIT_DONE;

    if (argc)
        return cmd_usage(cmd, argc, argv, 0);
    runtime = cmd_runtime(cmd);
    if (!runtime)
        return EXIT_FAILED;
    if (hob_runtime_config(runtime, &text, &error)) {
        code = cmd_failed(cmd, &error);
    } else {
        config = cJSON_Parse(text);
        if (as_json) {
            cmd_print_json(config);
        } else {
            print_config(config);
            cJSON_Delete(config);
        }
    }
    hob_text_free(text);
    return cmd_close(cmd, runtime, code);
}

struct why {
    const char *id;
    cJSON *records;
    uint32_t count;
};

static int visit_record(void *context, const struct hob_plugin_record *record)
{
    struct why *why = context;
    cJSON *json;

    if ((!record->id || strcmp(record->id, why->id)) &&
        (!record->selector || strcmp(record->selector, why->id)))
        return 0;
    why->count++;
    json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "id", record->id ? record->id : "");
    cJSON_AddStringToObject(json, "state", record->state);
    cJSON_AddStringToObject(json, "reason", record->reason);
    cJSON_AddStringToObject(json, "detail",
                            record->detail ? record->detail : "");
    cJSON_AddStringToObject(json, "hint", record->hint ? record->hint : "");
    cJSON_AddStringToObject(json, "rule", record->rule);
    cJSON_AddStringToObject(json, "manifest", record->manifest);
    cJSON_AddItemToArray(why->records, json);
    return 0;
}

static int visit_place(void *context, const char *rule, const char *path,
                       const char *outcome)
{
    cJSON *json = cJSON_CreateObject();

    cJSON_AddStringToObject(json, "rule", rule);
    cJSON_AddStringToObject(json, "path", path ? path : "");
    cJSON_AddStringToObject(json, "outcome", outcome);
    cJSON_AddItemToArray(context, json);
    return 0;
}

int cmd_why(const struct cmd *cmd, int argc, char **argv)
{
    int as_json = cmd_flag(&argc, argv, "--json");
    hob_error error = HOB_ERROR_INIT;
    struct why why = {argc == 1 ? argv[0] : NULL, NULL, 0};
    hob_runtime *runtime;
    char *text = NULL;
    int code = EXIT_DONE;

    if (argc != 1 || argv[0][0] == '-')
        return cmd_usage(cmd, argc, argv, 1);
    runtime = cmd_runtime(cmd);
    if (!runtime)
        return EXIT_FAILED;
    why.records = cJSON_CreateArray();
    hob_runtime_report(runtime, visit_record, &why);
    if (as_json) {
        cJSON *json = cJSON_CreateObject();
        cJSON *places = cJSON_CreateArray();

        hob_runtime_searched(runtime, visit_place, places);
        cJSON_AddItemToObject(json, "records", why.records);
        cJSON_AddItemToObject(json, "searched", places);
        cmd_print_json(json);
    } else {
        cJSON_Delete(why.records);
        if (hob_plugin_why(runtime, argv[0], &text, &error)) {
            code = cmd_failed(cmd, &error);
        } else {
            hob__text_plain(text);
            fputs(text, stdout);
        }
    }
    hob_text_free(text);
    if (code == EXIT_DONE && !why.count)
        code = EXIT_FAILED; /* there is no such plugin */
    return cmd_close(cmd, runtime, code);
}
