/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd.h"

#include "eval/compare.h"
#include "files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 16 };

/* ---- a file of cases ---- */

enum outcome { PASSED, FAILED, SKIPPED };

struct tally {
    uint32_t counts[3];
    cJSON *missing; /* op name -> number of cases that need it */
};

static void count_missing(struct tally *tally, const char *op)
{
    cJSON *count = cJSON_GetObjectItemCaseSensitive(tally->missing, op);

    if (count)
        cJSON_SetNumberValue(count, count->valuedouble + 1);
    else
        cJSON_AddNumberToObject(tally->missing, op, 1);
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

static enum outcome run_case(const cJSON *json, hob_device *device,
                             const struct names *names, char **out_missing,
                             hob_error *error)
{
    struct program program;
    struct run run;
    hob_status status = program_read(json, &program, error);

    if (status)
        return FAILED;
    status = run_program(&program, device, names, &run, out_missing, error);
    if (*out_missing) {
        run_release(&run);
        return SKIPPED;
    }
    if (program.expect == EXPECT_PANIC) {
        /* Some failures show only when the result is looked at. */
        if (!status)
            status = compare_outputs(&program, &run, error);
        run_release(&run);
        return judge_panic(status, device, error) ? FAILED : PASSED;
    }
    if (!status)
        status = compare_outputs(&program, &run, error);
    run_release(&run);
    if (program.expect == EXPECT_MISMATCH) {
        if (status)
            return PASSED;
        hob_error_set(error, HOB_ERR_RANGE,
                      "the result is as given, a difference was expected");
        return FAILED;
    }
    return status ? FAILED : PASSED;
}

static void run_line(const char *where, const char *line, size_t size,
                     hob_device *device, const struct names *names,
                     const char *only, struct tally *tally)
{
    hob_error error = HOB_ERROR_INIT;
    cJSON *json = NULL;
    char *missing = NULL;
    enum outcome outcome = FAILED;
    const cJSON *id;

    if (json_parse(where, line, size, &json, &error)) {
        printf("FAILED %s\n", error.message);
    } else {
        id = cJSON_GetObjectItemCaseSensitive(json, "id");
        if (only && (!cJSON_IsString(id) || !strstr(id->valuestring, only)))
            goto out;
        outcome = run_case(json, device, names, &missing, &error);
        if (outcome == FAILED)
            printf("FAILED %s: %s\n",
                   cJSON_IsString(id) ? id->valuestring : where,
                   error.message ? error.message : "no message");
        else if (outcome == SKIPPED)
            count_missing(tally, missing);
    }
    tally->counts[outcome]++;
out:
    free(missing);
    hob_error_release(&error);
    cJSON_Delete(json);
}

static int print_tally(struct tally *tally)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, tally->missing)
        printf("not there yet: %s (%d cases)\n", item->string, item->valueint);
    printf("%" PRIu32 " passed, %" PRIu32 " failed, %" PRIu32 " skipped\n",
           tally->counts[PASSED], tally->counts[FAILED],
           tally->counts[SKIPPED]);
    cJSON_Delete(tally->missing);
    return tally->counts[FAILED] ? EXIT_FAILED : EXIT_DONE;
}

static int run_cases(const struct cmd *cmd, hob_device *device,
                     const char *path, const char *names_path,
                     const char *only)
{
    hob_error error = HOB_ERROR_INIT;
    struct names names = {NULL};
    struct tally tally = {{0, 0, 0}, cJSON_CreateObject()};
    char *text = NULL;
    size_t size = 0;
    uint32_t number = 0;
    hob_status status = file_load(path, &text, &size, &error);

    if (!status && names_path)
        status = names_load(names_path, &names, &error);
    if (status) {
        free(text);
        cJSON_Delete(tally.missing);
        return cmd_failed(cmd, &error);
    }
    for (char *line = text; line < text + size;) {
        char *end = memchr(line, '\n', (size_t)(text + size - line));
        size_t length = end ? (size_t)(end - line) : strlen(line);
        char where[512];

        number++;
        snprintf(where, sizeof(where), "%s, line %" PRIu32, path, number);
        if (length)
            run_line(where, line, length, device, names.root ? &names : NULL,
                     only, &tally);
        line += length + 1;
    }
    free(text);
    names_release(&names);
    return print_tally(&tally);
}

/* ---- one program ---- */

/* What to show and compare: the outputs, else the last step's results. */
static cJSON *wanted_names(const struct program *program)
{
    cJSON *names = cJSON_CreateArray();
    const cJSON *output;
    const cJSON *last = NULL;

    cJSON_ArrayForEach(output, program->outputs) cJSON_AddItemToArray(
        names, cJSON_Duplicate(
                   cJSON_GetObjectItemCaseSensitive(output, "value"), 1));
    if (cJSON_GetArraySize(names))
        return names;
    cJSON_ArrayForEach(output, program->steps) last =
        cJSON_GetArrayItem(output, 0);
    if (cJSON_IsArray(last)) {
        cJSON_Delete(names);
        return cJSON_Duplicate(last, 1);
    }
    if (cJSON_IsString(last))
        cJSON_AddItemToArray(names, cJSON_Duplicate(last, 1));
    return names;
}

/* Add the values of RUN, and its gradients, to OUT. */
static hob_status collect(const struct program *program,
                          const struct run *run, const cJSON *names,
                          cJSON *out, hob_error *error)
{
    const cJSON *inputs = run->grads ? program->inputs : NULL;
    const cJSON *name;
    const cJSON *input;

    cJSON_ArrayForEach(name, names)
    {
        hob_tensor *tensor = cJSON_IsString(name)
                                 ? run_find(run, name->valuestring)
                                 : NULL;
        cJSON *json = tensor ? tensor_to_json(tensor, error) : NULL;

        if (!json)
            return tensor ? error->status
                          : hob_error_set(error, HOB_ERR_FORMAT,
                                          "an output names a value that "
                                          "there is not");
        cJSON_AddItemToObject(out, name->valuestring, json);
    }
    cJSON_ArrayForEach(input, inputs)
    {
        const cJSON *of = cJSON_GetObjectItemCaseSensitive(input, "name");
        hob_tensor *grad = NULL;
        char key[128];

        if (!cJSON_IsTrue(
                cJSON_GetObjectItemCaseSensitive(input, "requires_grad")))
            continue;
        if (hob_grad(run->scope, run_find(run, of->valuestring), run->grads,
                     &grad, error))
            return error->status;
        snprintf(key, sizeof(key), "grad(%s)", of->valuestring);
        cJSON_AddItemToObject(out, key,
                              grad ? tensor_to_json(grad, error)
                                   : cJSON_CreateNull());
    }
    return HOB_OK;
}

static void print_values(const cJSON *values)
{
    const cJSON *value;

    cJSON_ArrayForEach(value, values)
    {
        char *shape = cJSON_PrintUnformatted(
            cJSON_GetObjectItemCaseSensitive(value, "shape"));
        char *data = cJSON_PrintUnformatted(
            cJSON_GetObjectItemCaseSensitive(value, "data"));
        const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(value, "dtype");

        if (cJSON_IsString(dtype))
            printf("%s: %s%s = %s\n", value->string, dtype->valuestring,
                   shape ? shape : "", data ? data : "");
        else
            printf("%s: none\n", value->string);
        cJSON_free(shape);
        cJSON_free(data);
    }
}

/* Run on DEVICES, all of which stay open until the values are compared. */
static hob_status run_on_devices(const struct program *program,
                                 hob_device **devices, uint32_t count,
                                 const struct names *names, cJSON *out,
                                 hob_error *error)
{
    struct tolerance tolerance = program->tolerance;
    struct run runs[MAX_DEVICES];
    cJSON *wanted = wanted_names(program);
    char *missing = NULL;
    uint32_t done = 0;
    const cJSON *name;
    hob_status status = HOB_OK;

    for (; done < count && !status; done++) {
        cJSON *values = cJSON_AddObjectToObject(
            out, hob_device_name(devices[done]));

        status = run_program(program, devices[done], names, &runs[done],
                             &missing, error);
        free(missing);
        missing = NULL;
        if (!status)
            status = collect(program, &runs[done], wanted, values, error);
        if (!status)
            status = compare_outputs(program, &runs[done], error);
    }
    for (uint32_t i = 1; i < done && !status; i++)
        cJSON_ArrayForEach(name, wanted)
        {
            hob_tensor *first = run_find(&runs[0], name->valuestring);
            hob_tensor *other = run_find(&runs[i], name->valuestring);

            if (!status && first && other)
                status = compare_tensors(name->valuestring, first, other,
                                         &tolerance, error);
        }
    while (done)
        run_release(&runs[--done]);
    cJSON_Delete(wanted);
    return status;
}

static int run_file(const struct cmd *cmd, hob_device **devices,
                    uint32_t count, const char *path, const char *names_path,
                    int as_json)
{
    hob_error error = HOB_ERROR_INIT;
    struct names names = {NULL};
    struct program program;
    cJSON *json = NULL;
    cJSON *out = cJSON_CreateObject();
    const cJSON *values;
    hob_status status = json_load(path, &json, &error);

    if (!status)
        status = program_read(json, &program, &error);
    if (!status && names_path)
        status = names_load(names_path, &names, &error);
    if (!status)
        status = run_on_devices(&program, devices, count,
                                names.root ? &names : NULL, out, &error);
    if (as_json) {
        cmd_print_json(out);
    } else {
        cJSON_ArrayForEach(values, out)
        {
            if (count > 1)
                printf("%s\n", values->string);
            print_values(values);
        }
        cJSON_Delete(out);
    }
    names_release(&names);
    cJSON_Delete(json);
    return status ? cmd_failed(cmd, &error) : EXIT_DONE;
}

int cmd_eval(const struct cmd *cmd, int argc, char **argv)
{
    int as_json = cmd_flag(&argc, argv, "--json");
    const char *cases = cmd_value(&argc, argv, "--cases");
    const char *names = cmd_value(&argc, argv, "--names");
    const char *only = cmd_value(&argc, argv, "--only");
    const char *specs[MAX_DEVICES] = {NULL};
    hob_device *devices[MAX_DEVICES] = {NULL};
    hob_error error = HOB_ERROR_INIT;
    hob_runtime *runtime;
    uint32_t count = 0;
    int code = EXIT_DONE;

    while (count < MAX_DEVICES &&
           (specs[count] = cmd_value(&argc, argv, "--device")))
        count++;
    if (cases ? argc != 0 || count > 1 : argc != 1)
        return cmd_usage(cmd);
    if (!count)
        count = 1; /* a NULL spec is the default device */
    runtime = cmd_runtime(cmd);
    if (!runtime)
        return EXIT_FAILED;
    for (uint32_t i = 0; i < count && code == EXIT_DONE; i++)
        if (hob_device_open(runtime, specs[i], &devices[i], &error))
            code = cmd_failed(cmd, &error);
    if (code == EXIT_DONE)
        code = cases ? run_cases(cmd, devices[0], cases, names, only)
                     : run_file(cmd, devices, count, argv[0], names, as_json);
    for (uint32_t i = 0; i < count; i++)
        hob_device_unref(devices[i]);
    return cmd_close(cmd, runtime, code);
}
