/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_cases.c - hob eval --cases: a file of programs, one a line.
 */
#include "cmd_cases.h"

#include "eval/compare.h"
#include "files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tally {
    uint32_t counts[3]; /* by enum outcome */
    cJSON *failures;    /* [{"id", "message"}] */
    cJSON *missing;     /* op name -> number of cases that need it */
};

static void count_missing(struct tally *tally, const char *op)
{
    cJSON *count = cJSON_GetObjectItemCaseSensitive(tally->missing, op);

    if (count)
        cJSON_SetNumberValue(count, count->valuedouble + 1);
    else
        cJSON_AddNumberToObject(tally->missing, op, 1);
}

static void add_failure(struct tally *tally, const char *id,
                        const char *message, int as_json)
{
    cJSON *failure = cJSON_CreateObject();

    cJSON_AddStringToObject(failure, "id", id);
    cJSON_AddStringToObject(failure, "message",
                            message ? message : "no message");
    cJSON_AddItemToArray(tally->failures, failure);
    if (!as_json)
        printf("FAILED %s: %s\n", id, message ? message : "no message");
}

/* A program that should panic: it must fail and leave the runtime usable. */
static hob_status judge_panic(hob_status status, hob_device *device,
                              hob_error *error)
{
    hob_scope *scope;
    hob_tensor *one;
    hob_status after;

    if (!status)
        return hob_error_set(error, HOB_ERR_RANGE,
                             "it succeeded, a failure was expected");
    hob_error_release(error);
    scope = hob_scope_open(hob_device_runtime(device));
    one = hob_ones(scope, NULL, 0, device, HOB_DTYPE_F32);
    after = hob_tensor_status(hob_add(scope, one, one), error);
    hob_scope_close(scope);
    return after;
}

enum outcome judge_program(const struct program *program, hob_device *device,
                           const struct names *names, char **out_missing,
                           hob_error *error)
{
    struct run run;
    hob_status status =
        run_program(program, device, names, &run, out_missing, error);
    int has_run;

    if (*out_missing) {
        run_release(&run);
        return SKIPPED;
    }
    has_run = !status;
    if (has_run) /* some failures show only when results are looked at */
        status = compare_outputs(program, &run, error);
    run_release(&run);
    if (program->expect == EXPECT_PANIC)
        return judge_panic(status, device, error) ? FAILED : PASSED;
    if (program->expect == EXPECT_VALUES || !has_run)
        return status ? FAILED : PASSED;
    if (!status) /* EXPECT_MISMATCH */
        hob_error_set(error, HOB_ERR_RANGE,
                      "the result is as given, a difference was expected");
    return status ? PASSED : FAILED;
}

/* FOLDER is where the arrays lie that the programs name. */
static void run_line(const struct cases *cases, const char *folder,
                     uint32_t number, const char *line, size_t size,
                     struct tally *tally)
{
    hob_error error = HOB_ERROR_INIT;
    struct program program;
    cJSON *json = NULL;
    char *missing = NULL;
    enum outcome outcome = FAILED;
    char where[32];
    const cJSON *id;
    const char *name = where;

    snprintf(where, sizeof(where), "line %" PRIu32, number);
    if (!json_parse(cases->path, number, line, size, &json, &error)) {
        id = cJSON_GetObjectItemCaseSensitive(json, "id");
        name = cJSON_IsString(id) ? id->valuestring : where;
        if (cases->only && !strstr(name, cases->only))
            goto out;
        if (!program_read(json, &program, &error)) {
            program.folder = folder;
            if (cases->layout)
                program.layout = *cases->layout;
            outcome = judge_program(&program, cases->device, cases->names,
                                    &missing, &error);
        }
    } else if (cases->only) {
        goto out;
    }
    tally->counts[outcome]++;
    if (outcome == FAILED)
        add_failure(tally, name, error.message, cases->as_json);
    else if (outcome == SKIPPED)
        count_missing(tally, missing);
out:
    free(missing);
    hob_error_release(&error);
    cJSON_Delete(json);
}

static void print_tally(struct tally *tally, int as_json)
{
    const cJSON *item;
    cJSON *json;

    if (as_json) {
        json = cJSON_CreateObject();
        cJSON_AddNumberToObject(json, "passed", tally->counts[PASSED]);
        cJSON_AddNumberToObject(json, "failed", tally->counts[FAILED]);
        cJSON_AddNumberToObject(json, "skipped", tally->counts[SKIPPED]);
        cJSON_AddItemToObject(json, "failures", tally->failures);
        cJSON_AddItemToObject(json, "missing", tally->missing);
        tally->failures = NULL;
        tally->missing = NULL;
        cmd_print_json(json);
        return;
    }
    cJSON_ArrayForEach(item, tally->missing)
        printf("not there yet: %s (%d cases)\n", item->string, item->valueint);
    printf("%" PRIu32 " passed, %" PRIu32 " failed, %" PRIu32 " skipped\n",
           tally->counts[PASSED], tally->counts[FAILED],
           tally->counts[SKIPPED]);
}

int run_cases(const struct cmd *cmd, const struct cases *cases)
{
    char *folder = file_folder(cases->path);
    hob_error error = HOB_ERROR_INIT;
    struct tally tally = {{0, 0, 0}, NULL, NULL};
    char *text = NULL;
    size_t size = 0;
    uint32_t number = 0;

    if (!folder)
        hob_error_set(&error, HOB_ERR_MEMORY, "%s: no memory to read it",
                      cases->path);
    if (!folder || file_load(cases->path, &text, &size, &error)) {
        free(folder);
        return cmd_failed(cmd, &error);
    }
    tally.failures = cJSON_CreateArray();
    tally.missing = cJSON_CreateObject();
    for (char *line = text; line < text + size;) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        size_t length =
            end ? (size_t)(end - line) : (size_t)(text + size - line);

        number++;
        if (length)
            run_line(cases, folder, number, line, length, &tally);
        line += length + 1;
    }
    free(text);
    free(folder);
    print_tally(&tally, cases->as_json);
    cJSON_Delete(tally.failures);
    cJSON_Delete(tally.missing);
    return tally.counts[FAILED] ? EXIT_FAILED : EXIT_DONE;
}
