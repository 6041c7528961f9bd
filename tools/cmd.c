/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_COLUMNS = 8 };

int cmd_usage(const struct cmd *cmd, int argc, char **argv, int words)
{
    for (int i = 0; i < argc; i++)
        if (i >= words || (argv[i][0] == '-' && argv[i][1])) {
            fprintf(stderr, "hob %s: \"%s\" is not understood\n", cmd->name,
                    argv[i]);
            break;
        }
    fprintf(stderr, "usage: hob %s %s\n", cmd->name, cmd->usage);
    return EXIT_USAGE;
}

int cmd_failed(const struct cmd *cmd, hob_error *error)
{
    fprintf(stderr, "hob %s: %s\n", cmd->name,
            error->message ? error->message : hob_status_name(error->status));
    hob_error_release(error);
    return EXIT_FAILED;
}

hob_runtime *cmd_runtime(const struct cmd *cmd)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime = NULL;

    options.policy = HOB_POLICY_REPORT;
    if (hob_runtime_open(&options, &runtime, &error)) {
        cmd_failed(cmd, &error);
        return NULL;
    }
    return runtime;
}

int cmd_close(const struct cmd *cmd, hob_runtime *runtime, int code)
{
    hob_error error = HOB_ERROR_INIT;

    if (hob_runtime_close(runtime, &error))
        return cmd_failed(cmd, &error);
    return code;
}

static void remove_args(int *argc, char **argv, int at, int count)
{
    memmove(&argv[at], &argv[at + count],
            (size_t)(*argc - at - count) * sizeof(*argv));
    *argc -= count;
}

int cmd_flag(int *argc, char **argv, const char *name)
{
    for (int i = 0; i < *argc; i++)
        if (!strcmp(argv[i], name)) {
            remove_args(argc, argv, i, 1);
            return 1;
        }
    return 0;
}

const char *cmd_value(int *argc, char **argv, const char *name)
{
    size_t size = strlen(name);

    for (int i = 0; i < *argc; i++) {
        const char *value;

        if (strncmp(argv[i], name, size))
            continue;
        if (argv[i][size] == '=') {
            value = argv[i] + size + 1;
            remove_args(argc, argv, i, 1);
            return value;
        }
        if (argv[i][size])
            continue;
        value = i + 1 < *argc ? argv[i + 1] : "";
        remove_args(argc, argv, i, i + 1 < *argc ? 2 : 1);
        return value;
    }
    return NULL;
}

int cmd_print_json(cJSON *json)
{
    char *text = cJSON_Print(json);

    puts(text ? text : "null");
    cJSON_free(text);
    cJSON_Delete(json);
    return text ? EXIT_DONE : EXIT_FAILED;
}

void table_init(struct table *table, uint32_t column_count)
{
    memset(table, 0, sizeof(*table));
    table->column_count = column_count;
}

void table_add(struct table *table, const char *cell)
{
    if (table->cell_count == table->capacity) {
        uint32_t capacity = table->capacity ? table->capacity * 2 : 64;
        char **cells = realloc(table->cells, capacity * sizeof(*cells));

        if (!cells)
            return;
        table->cells = cells;
        table->capacity = capacity;
    }
    table->cells[table->cell_count] = strdup(cell && *cell ? cell : "-");
    if (!table->cells[table->cell_count])
        return;
    hob__text_plain(table->cells[table->cell_count++]);
}

/* Characters, not bytes: those that do not continue one. */
static size_t text_width(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

void table_print(struct table *table)
{
    size_t widths[MAX_COLUMNS] = {0};

    for (uint32_t i = 0; i < table->cell_count; i++) {
        size_t width = text_width(table->cells[i]);

        if (width > widths[i % table->column_count])
            widths[i % table->column_count] = width;
    }
    for (uint32_t i = 0; i < table->cell_count; i++) {
        uint32_t column = i % table->column_count;
        size_t gap = widths[column] + 2 - text_width(table->cells[i]);

        if (column + 1 == table->column_count)
            printf("%s\n", table->cells[i]);
        else
            printf("%s%*s", table->cells[i], (int)gap, "");
        free(table->cells[i]);
    }
    free(table->cells);
}
