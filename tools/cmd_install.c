/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_install.c - hob install, remove, enable and disable.
 */
#include "cmd.h"

#include <hob/install.h>

#include <stdio.h>
#include <string.h>

/* Take --user and --system out of ARGV; -1 if both are there. */
static int take_where(int *argc, char **argv)
{
    int user = cmd_flag(argc, argv, "--user");
    int system = cmd_flag(argc, argv, "--system");

    if (user && system)
        return -1;
    return user     ? HOB_INSTALL_USER
           : system ? HOB_INSTALL_SYSTEM
                    : HOB_INSTALL_DEFAULT;
}

/* Tell of ERROR and free it. An argument that cannot be meant, or that root has
 * left out, is a wrong call. */
static int failed(const struct cmd *cmd, hob_error *error)
{
    const int is_usage = error->status == HOB_ERR_ARGUMENT;
    const int code = cmd_failed(cmd, error);

    return is_usage ? EXIT_USAGE : code;
}

static const char *text_of(const cJSON *json, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);

    return cJSON_IsString(item) ? item->valuestring : "-";
}

static void print_done(const char *verb, char *text, int as_json)
{
    cJSON *json = cJSON_Parse(text);
    const cJSON *file = cJSON_GetObjectItemCaseSensitive(json, "disabled_by");
    const char *hidden;

    hob_text_free(text);
    if (as_json) {
        cmd_print_json(json);
        return;
    }
    printf("%s %s %s\n  %s\n  %s\n", verb, text_of(json, "id"),
           text_of(json, "version"), text_of(json, "manifest"),
           text_of(json, "library"));
    if (cJSON_IsString(file))
        printf("but %s disables it: hob enable %s\n", file->valuestring,
               text_of(json, "id"));
    hidden = text_of(json, "hidden_by");
    if (strcmp(hidden, "-") != 0)
        printf("but %s names other folders to look in: unset it, or add "
               "this one\n",
               hidden);
    cJSON_Delete(json);
}

int cmd_install(const struct cmd *cmd, int argc, char **argv)
{
    hob_error error = HOB_ERROR_INIT;
    int as_json = cmd_flag(&argc, argv, "--json");
    int where = take_where(&argc, argv);
    char *text = NULL;

    if (where < 0 || argc != 1 || argv[0][0] == '-')
        return cmd_usage(cmd, argc, argv, 1);
    if (hob_install(argv[0], (uint32_t)where, &text, &error))
        return failed(cmd, &error);
    print_done("installed", text, as_json);
    return EXIT_DONE;
}

int cmd_remove(const struct cmd *cmd, int argc, char **argv)
{
    hob_error error = HOB_ERROR_INIT;
    int as_json = cmd_flag(&argc, argv, "--json");
    int where = take_where(&argc, argv);
    char *text = NULL;

    if (where < 0 || argc != 1 || argv[0][0] == '-')
        return cmd_usage(cmd, argc, argv, 1);
    if (hob_remove(argv[0], (uint32_t)where, &text, &error))
        return failed(cmd, &error);
    print_done("removed", text, as_json);
    return EXIT_DONE;
}

static void print_switched(const char *id, int enabled, char *text, int as_json)
{
    cJSON *json = cJSON_Parse(text);
    const char *file = text_of(json, "file");
    const char *word = enabled ? "enabled" : "disabled";
    const cJSON *other =
        cJSON_GetObjectItemCaseSensitive(json, "overridden_by");

    hob_text_free(text);
    if (as_json) {
        cmd_print_json(json);
        return;
    }
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(json, "changed")))
        printf("%s %s\n  %s\n", word, id, file);
    else
        printf("%s is %s already: nothing was changed\n", id, word);
    if (cJSON_IsString(other))
        printf("but %s has it the other way, and counts more\n",
               other->valuestring);
    cJSON_Delete(json);
}

static int switch_plugin(const struct cmd *cmd, int argc, char **argv,
                         int enabled)
{
    hob_error error = HOB_ERROR_INIT;
    int as_json = cmd_flag(&argc, argv, "--json");
    int where = take_where(&argc, argv);
    char *text = NULL;
    hob_status st;

    if (where < 0 || argc != 1 || argv[0][0] == '-')
        return cmd_usage(cmd, argc, argv, 1);
    st = enabled ? hob_enable(argv[0], (uint32_t)where, &text, &error)
                 : hob_disable(argv[0], (uint32_t)where, &text, &error);
    if (st)
        return failed(cmd, &error);
    print_switched(argv[0], enabled, text, as_json);
    return EXIT_DONE;
}

int cmd_enable(const struct cmd *cmd, int argc, char **argv)
{
    return switch_plugin(cmd, argc, argv, 1);
}

int cmd_disable(const struct cmd *cmd, int argc, char **argv)
{
    return switch_plugin(cmd, argc, argv, 0);
}
