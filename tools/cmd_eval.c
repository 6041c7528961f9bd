/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_eval.c - hob eval: run a program on a device, or compare several.
 */
#include "cmd_bisect.h"
#include "cmd_cases.h"
#include "eval/compare.h"
#include "eval/explain.h"
#include "eval/stats.h"
#include "files.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 16, SHOWN_ELEMENTS = 1000 };

/* What to show and compare: the outputs, else the last step's results. */
static cJSON *wanted_names(const struct program *program)
{
    cJSON *names = cJSON_CreateArray();
    const cJSON *output;
    const cJSON *last = NULL;

    cJSON_ArrayForEach(output, program->outputs) cJSON_AddItemToArray(
        names,
        cJSON_Duplicate(cJSON_GetObjectItemCaseSensitive(output, "value"), 1));
    if (cJSON_GetArraySize(names))
        return names;
    cJSON_ArrayForEach(output, program->steps) if (cJSON_IsArray(output)) last =
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
static hob_status collect(const struct program *program, const struct run *run,
                          const cJSON *names, cJSON *out, hob_error *error)
{
    const cJSON *inputs = run->grads ? program->inputs : NULL;
    const cJSON *name;
    const cJSON *input;

    cJSON_ArrayForEach(name, names)
    {
        hob_tensor *tensor =
            cJSON_IsString(name) ? run_find(run, name->valuestring) : NULL;
        cJSON *json = tensor ? tensor_to_json(tensor, error) : NULL;

        if (cJSON_IsNull(name)) /* dropped by the last step */
            continue;
        if (!tensor && cJSON_IsString(name) &&
            run_is_absent(run, name->valuestring))
            json = cJSON_CreateNull();
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
        cJSON *json;
        char key[128];

        if (!cJSON_IsTrue(
                cJSON_GetObjectItemCaseSensitive(input, "requires_grad")))
            continue;
        if (hob_grad(run->scope, run_find(run, of->valuestring), run->grads,
                     &grad, error))
            return error->status;
        snprintf(key, sizeof(key), "grad(%s)", of->valuestring);
        json = grad ? tensor_to_json(grad, error) : cJSON_CreateNull();
        if (!json)
            return error->status ? error->status : HOB_ERR_MEMORY;
        cJSON_AddItemToObject(out, key, json);
    }
    return HOB_OK;
}

/* Of very large tensors people see the beginning. */
static void print_data(const cJSON *data)
{
    const cJSON *item;
    int count = 0;

    printf("[");
    cJSON_ArrayForEach(item, data)
    {
        char *text;

        if (count == SHOWN_ELEMENTS) {
            printf(",... %d more", cJSON_GetArraySize(data) - count);
            break;
        }
        text = cJSON_PrintUnformatted(item);
        printf("%s%s", count++ ? "," : "", text ? text : "?");
        cJSON_free(text);
    }
    printf("]\n");
}

static void print_values(const cJSON *values)
{
    const cJSON *value;

    cJSON_ArrayForEach(value, values)
    {
        char *shape = cJSON_PrintUnformatted(
            cJSON_GetObjectItemCaseSensitive(value, "shape"));
        const cJSON *data = cJSON_GetObjectItemCaseSensitive(value, "data");
        const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(value, "dtype");

        if (cJSON_IsString(dtype)) {
            printf("%s: %s%s = ", value->string, dtype->valuestring,
                   shape ? shape : "");
            print_data(data);
        } else {
            printf("%s: none\n", value->string);
        }
        cJSON_free(shape);
    }
}

/* Run on DEVICES, all of which stay open until the values are compared. With
 * STATS add to it what each run took of memory, with KERNELS what ran. */
static hob_status run_on_devices(const struct program *program,
                                 hob_device **devices, uint32_t count,
                                 const struct names *names, cJSON *out,
                                 cJSON *stats, cJSON *kernels,
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
        cJSON *values =
            cJSON_AddObjectToObject(out, hob_device_name(devices[done]));
        struct hob_memory_stats before;
        cJSON *told = kernels ? cJSON_AddObjectToObject(
                                    kernels, hob_device_name(devices[done]))
                              : NULL;

        memset(&runs[done], 0, sizeof(runs[done]));
        if (told)
            status = explain_begin(devices[done], told, error);
        if (status) {
            done++;
            break;
        }
        stats_begin(devices[done], &before);
        status = run_program(program, devices[done], names, &runs[done],
                             &missing, error);
        if (stats)
            cJSON_AddItemToObject(stats, hob_device_name(devices[done]),
                                  stats_end(devices[done], &before));
        free(missing);
        missing = NULL;
        if (!status)
            status = collect(program, &runs[done], wanted, values, error);
        if (!status)
            status = compare_outputs(program, &runs[done], error);
        if (told)
            explain_end(devices[done], told);
    }
    for (uint32_t i = 1; i < done && !status; i++)
        cJSON_ArrayForEach(name, wanted)
        {
            const char *key = cJSON_GetStringValue(name);
            hob_tensor *first = key ? run_find(&runs[0], key) : NULL;
            hob_tensor *other = key ? run_find(&runs[i], key) : NULL;

            if (!status && first && other)
                status = compare_tensors(name->valuestring, first, other,
                                         &tolerance, error);
        }
    while (done)
        run_release(&runs[--done]);
    cJSON_Delete(wanted);
    return status;
}

/* A program that expects a failure, or a difference, on each device. */
static hob_status judge_on_devices(const struct program *program,
                                   hob_device **devices, uint32_t count,
                                   const struct names *names, cJSON *out,
                                   hob_error *error)
{
    const char *word = program->expect == EXPECT_PANIC ? "failed, as expected"
                                                       : "differs, as expected";

    for (uint32_t i = 0; i < count; i++) {
        char *missing = NULL;
        enum outcome outcome =
            judge_program(program, devices[i], names, &missing, error);

        free(missing);
        if (outcome != PASSED)
            return error_at(error, "%s", hob_device_name(devices[i]));
        hob_error_release(error);
        cJSON_AddStringToObject(out, hob_device_name(devices[i]), word);
    }
    return HOB_OK;
}

static void print_devices(cJSON *out, cJSON *stats, cJSON *kernels,
                          uint32_t count, int as_json)
{
    const cJSON *values;

    if (as_json) {
        if (stats)
            cJSON_AddItemToObject(out, "memory", stats);
        if (kernels)
            cJSON_AddItemToObject(out, "fusion", kernels);
        cmd_print_json(out);
        return;
    }
    cJSON_ArrayForEach(values, out)
    {
        if (cJSON_IsString(values)) {
            printf("%s: %s\n", values->string, values->valuestring);
            continue;
        }
        if (count > 1)
            printf("%s\n", values->string);
        print_values(values);
    }
    stats_print(stats);
    explain_print(kernels);
    cJSON_Delete(kernels);
    cJSON_Delete(stats);
    cJSON_Delete(out);
}

/* The command line of hob eval. */
struct call {
    const char *tolerance; /* its text, or NULL */
    double rel;
    int bisect;
    const char *cases;
    const char *names;
    const char *only;
    const char *layout_name; /* or NULL */
    enum layout layout;
    const char *devices[MAX_DEVICES];
    uint32_t device_count;
    int stats;
    int explain;
    int as_json;
};

/* Run the file PATH as CALL says; COUNT devices are open. */
static int run_file(const struct cmd *cmd, const struct call *call,
                    hob_device **devices, const char *path,
                    const struct names *names)
{
    uint32_t count = call->device_count;
    hob_error error = HOB_ERROR_INIT;
    struct program program;
    cJSON *json = NULL;
    cJSON *out = cJSON_CreateObject();
    cJSON *stats = call->stats ? cJSON_CreateObject() : NULL;
    cJSON *kernels = call->explain ? cJSON_CreateObject() : NULL;
    char *folder = file_folder(path);
    int code = EXIT_DONE;
    hob_status status = json_load(path, &json, &error);

    if (!status) {
        status = program_read(json, &program, &error);
        program.folder = folder;
        if (call->layout_name)
            program.layout = call->layout;
        if (call->tolerance)
            program.tolerance =
                (struct tolerance){TOLERANCE_APPROX, call->rel, call->rel};
        if (!status && call->bisect)
            status = run_bisect(&program, devices, names, call->as_json, &code,
                                &error);
        else if (!status)
            status = program.expect == EXPECT_VALUES
                         ? run_on_devices(&program, devices, count, names, out,
                                          stats, kernels, &error)
                         : judge_on_devices(&program, devices, count, names,
                                            out, &error);
        if (status)
            error_at(&error, "%s", path);
    }
    if (cJSON_GetArraySize(out)) {
        print_devices(out, stats, kernels, count, call->as_json);
    } else {
        cJSON_Delete(kernels);
        cJSON_Delete(stats);
        cJSON_Delete(out);
    }
    cJSON_Delete(json);
    free(folder);
    return status ? cmd_failed(cmd, &error) : code;
}

static int is_empty(const char *value)
{
    return value && !*value;
}

/* Read the number of --tolerance; returns -1 if it is none. */
static int read_tolerance(struct call *call)
{
    char *end = NULL;

    if (!call->tolerance)
        return 0;
    call->rel = strtod(call->tolerance, &end);
    return end == call->tolerance || *end || !isfinite(call->rel) ||
                   call->rel < 0
               ? -1
               : 0;
}

/* Returns -1 if the call is wrong. */
static int read_call(struct call *call, int *argc, char **argv)
{
    memset(call, 0, sizeof(*call));
    call->as_json = cmd_flag(argc, argv, "--json");
    call->cases = cmd_value(argc, argv, "--cases");
    call->names = cmd_value(argc, argv, "--names");
    call->only = cmd_value(argc, argv, "--only");
    call->tolerance = cmd_value(argc, argv, "--tolerance");
    call->layout_name = cmd_value(argc, argv, "--layout");
    call->bisect = cmd_flag(argc, argv, "--bisect");
    call->stats = cmd_flag(argc, argv, "--stats");
    call->explain = cmd_flag(argc, argv, "--explain");
    while (call->device_count < MAX_DEVICES) {
        const char *spec = cmd_value(argc, argv, "--device");

        if (!spec)
            break;
        if (is_empty(spec))
            return -1;
        call->devices[call->device_count++] = spec;
    }
    if (is_empty(call->cases) || is_empty(call->names) || is_empty(call->only))
        return -1;
    if (call->cases ? *argc != 0 || call->device_count > 1 : *argc != 1)
        return -1;
    if (call->layout_name) {
        call->layout = layout_from_name(call->layout_name);
        if (call->layout == LAYOUT_COUNT_) {
            fprintf(stderr, "hob eval: --layout must be " LAYOUT_NAMES "\n");
            return -1;
        }
    }
    if (read_tolerance(call) || (call->cases && call->tolerance) ||
        (call->bisect && (call->cases || call->device_count != 2)) ||
        ((call->stats || call->explain) && (call->cases || call->bisect)))
        return -1;
    if (*argc && argv[0][0] == '-' && argv[0][1]) /* "-" is a file */
        return -1;
    if (!call->device_count)
        call->device_count = 1; /* a NULL spec is the default device */
    return 0;
}

static int run_call(const struct cmd *cmd, hob_runtime *runtime,
                    const struct call *call, const char *path)
{
    hob_device *devices[MAX_DEVICES] = {NULL};
    hob_error error = HOB_ERROR_INIT;
    struct names names = {NULL};
    hob_status status = HOB_OK;
    int code = EXIT_FAILED;

    if (call->names)
        status = names_load(call->names, &names, &error);
    for (uint32_t i = 0; i < call->device_count && !status; i++)
        status =
            hob_device_open(runtime, call->devices[i], &devices[i], &error);
    if (status)
        cmd_failed(cmd, &error);
    else if (call->cases)
        code = run_cases(
            cmd,
            &(struct cases){.path = call->cases,
                            .device = devices[0],
                            .names = names.root ? &names : NULL,
                            .only = call->only,
                            .layout = call->layout_name ? &call->layout : NULL,
                            .as_json = call->as_json});
    else
        code = run_file(cmd, call, devices, path, names.root ? &names : NULL);
    for (uint32_t i = 0; i < call->device_count; i++)
        hob_device_unref(devices[i]);
    names_release(&names);
    return code;
}

int cmd_eval(const struct cmd *cmd, int argc, char **argv)
{
    struct call call;
    hob_runtime *runtime;

    if (read_call(&call, &argc, argv))
        return cmd_usage(cmd, argc, argv, call.cases ? 0 : 1);
    runtime = cmd_runtime(cmd);
    if (!runtime)
        return EXIT_FAILED;
    return cmd_close(cmd, runtime, run_call(cmd, runtime, &call, argv[0]));
}
