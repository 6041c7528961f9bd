/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_list.c - hob plugins, why, devices, ops: what a runtime reports.
 */
#include "cmd.h"
#include "text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- plugins ---- */

struct plugin_list {
    cJSON *json; /* NULL: a table */
    struct table table;
    int show_all; /* what was shadowed or disabled too */
    uint32_t count;
    uint32_t hidden;
};

static void add_text(cJSON *json, const char *key, const char *text)
{
    if (text)
        cJSON_AddStringToObject(json, key, text);
    else
        cJSON_AddNullToObject(json, key);
}

static cJSON *plugin_json(const struct hob_plugin_record *record)
{
    cJSON *json = cJSON_CreateObject();
    char time_ns[24];

    snprintf(time_ns, sizeof(time_ns), "%" PRIu64, record->time_ns);
    add_text(json, "id", record->id);
    add_text(json, "version", record->version);
    add_text(json, "kind", record->kind);
    add_text(json, "selector", record->selector);
    add_text(json, "state", record->state);
    add_text(json, "reason", record->reason);
    add_text(json, "severity", record->severity);
    add_text(json, "detail", record->detail);
    add_text(json, "hint", record->hint);
    add_text(json, "rule", record->rule);
    add_text(json, "manifest", record->manifest);
    add_text(json, "manifest_real", record->manifest_real);
    add_text(json, "library", record->library);
    /* Nanoseconds since 1970 do not fit into the double of a number here. */
    cJSON_AddRawToObject(json, "time_ns", time_ns);
    return json;
}

static int visit_plugin(void *context, const struct hob_plugin_record *record)
{
    struct plugin_list *list = context;
    int is_quiet =
        !strcmp(record->state, "SHADOWED") || !strcmp(record->state, "SKIPPED");
    int is_fine = !strcmp(record->reason, "OK");

    list->count++;
    if (list->json) {
        cJSON_AddItemToArray(list->json, plugin_json(record));
        return 0;
    }
    if (is_quiet && !list->show_all) {
        list->hidden++;
        return 0;
    }
    table_add(&list->table, record->id);
    table_add(&list->table, record->version);
    table_add(&list->table, record->kind);
    table_add(&list->table, record->state);
    table_add(&list->table, record->rule);
    if (is_fine) {
        table_add(&list->table, record->manifest);
    } else {
        char *text = NULL;
        size_t size = 0;
        FILE *stream = open_memstream(&text, &size);

        if (stream) {
            fprintf(stream, "%s: %s", record->reason,
                    record->detail ? record->detail : record->manifest);
            fclose(stream);
        }
        table_add(&list->table, text);
        free(text);
    }
    return 0;
}

int cmd_plugins(const struct cmd *cmd, int argc, char **argv)
{
    struct plugin_list list;
    hob_runtime *runtime;

    memset(&list, 0, sizeof(list));
    list.show_all = cmd_flag(&argc, argv, "--all");
    if (cmd_flag(&argc, argv, "--json"))
        list.json = cJSON_CreateArray();
    if (argc) {
        cJSON_Delete(list.json);
        return cmd_usage(cmd, argc, argv, 0);
    }
    runtime = cmd_runtime(cmd);
    if (!runtime) {
        cJSON_Delete(list.json);
        return EXIT_FAILED;
    }
    table_init(&list.table, 6);
    if (!list.json) {
        static const char *const head[] = {"ID",    "VERSION", "KIND",
                                           "STATE", "RULE",    "WHERE OR WHY"};

        for (size_t i = 0; i < sizeof(head) / sizeof(head[0]); i++)
            table_add(&list.table, head[i]);
    }
    hob_runtime_report(runtime, visit_plugin, &list);
    if (list.json) {
        cmd_print_json(list.json);
    } else {
        if (!list.count)
            printf("No plugin was found. hob why PLUGIN lists the places "
                   "that were searched.\n");
        table_print(&list.table);
        if (list.hidden)
            printf("%" PRIu32 " shadowed or for other platforms: --all shows "
                   "them\n",
                   list.hidden);
    }
    return cmd_close(cmd, runtime, EXIT_DONE);
}

/* ---- devices ---- */

struct device_list {
    cJSON *json;
    struct table table;
    uint32_t count;
};

static int visit_device(void *context, const struct hob_device_record *record)
{
    struct device_list *list = context;
    char memory[32] = "-";

    list->count++;
    if (list->json) {
        cJSON *json = cJSON_CreateObject();

        add_text(json, "device", record->spec);
        add_text(json, "hardware", record->hardware);
        cJSON_AddNumberToObject(json, "memory_bytes",
                                (double)record->memory_bytes);
        add_text(json, "plugin", record->plugin);
        add_text(json, "problem", record->problem);
        cJSON_AddItemToArray(list->json, json);
        return 0;
    }
    if (record->memory_bytes)
        snprintf(memory, sizeof(memory), "%.1f GiB",
                 (double)record->memory_bytes / 1073741824.0);
    table_add(&list->table, record->spec);
    table_add(&list->table, record->plugin);
    table_add(&list->table, memory);
    table_add(&list->table,
              record->problem ? record->problem : record->hardware);
    return 0;
}

/* What stands around a device, for people: devices themselves are above. */
static int print_decorator(void *context,
                           const struct hob_plugin_record *record)
{
    uint32_t *count = context;

    if (!record->selector || !record->kind ||
        strcmp(record->kind, "decorator") != 0 ||
        strcmp(record->reason, "OK") != 0)
        return 0;
    printf("%s%s", (*count)++ ? ", " : "decorators: ", record->selector);
    return 0;
}

static void print_decorators(hob_runtime *runtime)
{
    uint32_t count = 0;

    hob_runtime_report(runtime, print_decorator, &count);
    if (count)
        printf(" (as in %s; hob why NAME tells the options)\n",
               "autodiff(flex)");
}

static void print_default(const struct cmd *cmd, hob_runtime *runtime)
{
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;

    if (hob_device_open(runtime, NULL, &device, &error))
        printf("default: none (%s)\n",
               error.message ? error.message : "no message");
    else
        printf("default: %s\n", hob_device_name(device));
    hob_device_unref(device);
    hob_error_release(&error);
    (void)cmd;
}

int cmd_devices(const struct cmd *cmd, int argc, char **argv)
{
    struct device_list list;
    hob_runtime *runtime;

    memset(&list, 0, sizeof(list));
    if (cmd_flag(&argc, argv, "--json"))
        list.json = cJSON_CreateArray();
    if (argc) {
        cJSON_Delete(list.json);
        return cmd_usage(cmd, argc, argv, 0);
    }
    runtime = cmd_runtime(cmd);
    if (!runtime) {
        cJSON_Delete(list.json);
        return EXIT_FAILED;
    }
    table_init(&list.table, 4);
    if (!list.json) {
        table_add(&list.table, "DEVICE");
        table_add(&list.table, "PLUGIN");
        table_add(&list.table, "MEMORY");
        table_add(&list.table, "HARDWARE OR PROBLEM");
    }
    hob_runtime_devices(runtime, visit_device, &list);
    if (list.json) {
        cmd_print_json(list.json);
    } else {
        table_print(&list.table);
        print_decorators(runtime);
        print_default(cmd, runtime);
    }
    return cmd_close(cmd, runtime, EXIT_DONE);
}

/* ---- ops ---- */

static int add_support(void *context, const struct hob_op_support *support)
{
    cJSON *json = cJSON_CreateObject();

    add_text(json, "selector", support->selector);
    add_text(json, "how", support->how);
    if (*support->dtypes)
        add_text(json, "dtypes", support->dtypes);
    cJSON_AddItemToArray(context, json);
    return 0;
}

static int print_support(void *context, const struct hob_op_support *support)
{
    (void)context;
    printf("%-11s %s%s%s\n", support->selector, support->how,
           *support->dtypes ? ": " : "", support->dtypes);
    return 0;
}

/* Who computes the one op that was asked for; libraries are opened. */
static hob_status tell_support(hob_runtime *runtime, const char *name,
                               cJSON *json, hob_error *error)
{
    uint32_t id;
    hob_status status = hob_op_find(runtime, name, &id, error);
    cJSON *list;

    if (status || !json)
        return status ? status
                      : hob_runtime_op_support(runtime, id, print_support, NULL,
                                               error);
    list = cJSON_CreateArray();
    cJSON_AddItemToObject(cJSON_GetArrayItem(json, 0), "support", list);
    return hob_runtime_op_support(runtime, id, add_support, list, error);
}

/* The same for every op of the array JSON. */
static hob_status tell_all(hob_runtime *runtime, cJSON *json, hob_error *error)
{
    cJSON *op;
    hob_status status = HOB_OK;

    cJSON_ArrayForEach(op, json)
    {
        cJSON *list = cJSON_CreateArray();

        cJSON_AddItemToObject(op, "support", list);
        status = hob_runtime_op_support(
            runtime,
            (uint32_t)cJSON_GetObjectItemCaseSensitive(op, "id")->valuedouble,
            add_support, list, error);
        if (status)
            break;
    }
    return status;
}

struct op_list {
    cJSON *json;
    struct table table;
    const char *only; /* NULL: all */
    uint32_t count;
};

static cJSON *op_json(const struct hob_op_record *record)
{
    cJSON *json = cJSON_CreateObject();

    add_text(json, "op", record->name);
    cJSON_AddNumberToObject(json, "id", record->id);
    add_text(json, "family", record->family);
    add_text(json, "signature", record->signature);
    add_text(json, "flat", record->flat);
    add_text(json, "fuse", record->fuse);
    add_text(json, "selectors", record->selectors);
    cJSON_AddBoolToObject(json, "body", record->has_body != 0);
    add_text(json, "doc", record->doc);
    return json;
}

static int visit_op(void *context, const struct hob_op_record *record)
{
    struct op_list *list = context;

    if (list->only && strcmp(list->only, record->name))
        return 0;
    list->count++;
    if (list->json) {
        cJSON_AddItemToArray(list->json, op_json(record));
    } else if (list->only) {
        char *doc = strdup(record->doc ? record->doc : "");

        if (doc)
            hob__text_plain(doc);
        printf("%s%s\n\n%s\n\n", record->name, record->signature,
               doc ? doc : "");
        free(doc);
        printf("family      %s\nnumber      %" PRIu32 "\nfuse        %s\n"
               "selectors   %s\nbody        %s\n",
               record->family, record->id, record->fuse, record->selectors,
               record->has_body ? "yes" : "no");
        /* What a program for hob eval, or a kernel, sees of its types. */
        if (strcmp(record->flat, record->signature) != 0)
            printf("flat       %s\n", record->flat);
    } else {
        table_add(&list->table, record->name);
        table_add(&list->table, record->family);
        table_add(&list->table, record->has_body ? "body" : "");
        table_add(&list->table, record->signature);
    }
    return 0;
}

int cmd_ops(const struct cmd *cmd, int argc, char **argv)
{
    hob_error error = HOB_ERROR_INIT;
    struct op_list list;
    hob_runtime *runtime;
    int code = EXIT_DONE, every;

    memset(&list, 0, sizeof(list));
    if (cmd_flag(&argc, argv, "--json"))
        list.json = cJSON_CreateArray();
    every = cmd_flag(&argc, argv, "--support");
    list.only = argc == 1 ? argv[0] : NULL;
    if (argc > 1 || (every && (!list.json || list.only)) ||
        (argc == 1 && argv[0][0] == '-')) {
        cJSON_Delete(list.json);
        return cmd_usage(cmd, argc, argv, 1);
    }
    runtime = cmd_runtime(cmd);
    if (!runtime) {
        cJSON_Delete(list.json);
        return EXIT_FAILED;
    }
    table_init(&list.table, 4);
    if (!list.json && !list.only) {
        table_add(&list.table, "OP");
        table_add(&list.table, "FAMILY");
        table_add(&list.table, "BODY");
        table_add(&list.table, "SIGNATURE");
    }
    hob_runtime_ops(runtime, visit_op, &list);
    if ((list.only && tell_support(runtime, list.only, list.json, &error)) ||
        (every && tell_all(runtime, list.json, &error))) {
        cJSON_Delete(list.json);
        code = cmd_failed(cmd, &error);
    } else if (list.json) {
        cmd_print_json(list.json);
    } else {
        table_print(&list.table);
    }
    return cmd_close(cmd, runtime, code);
}
