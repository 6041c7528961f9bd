/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_bisect.c - hob eval --bisect: the first step that two devices do
 * differently, for people or as JSON.
 */
#include "cmd_bisect.h"

#include "eval/bisect.h"

#include <stdio.h>

/* One member of a difference, as text without quotes around words. */
static void print_member(const cJSON *json, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    char *text = cJSON_PrintUnformatted(item);

    printf("%s", cJSON_IsString(item) ? item->valuestring : text ? text : "?");
    cJSON_free(text);
}

/* "name: f32[2,3]" */
static void print_value(const cJSON *json)
{
    print_member(json, "name");
    printf(": ");
    print_member(json, "dtype");
    print_member(json, "shape");
    printf("\n");
}

/* What bisect_program() found, for people. */
static void print_difference(const cJSON *json, hob_device **devices)
{
    const cJSON *inputs = cJSON_GetObjectItemCaseSensitive(json, "inputs");
    const cJSON *input;

    printf("step ");
    print_member(json, "step");
    printf(" (");
    print_member(json, "op");
    printf(") is the first that differs\n");
    cJSON_ArrayForEach(input, inputs)
    {
        printf("  input ");
        print_value(input);
    }
    printf("  attributes ");
    print_member(json, "attributes");
    printf("\n");
    if (cJSON_GetObjectItemCaseSensitive(json, "failed_on")) {
        printf("  it failed on ");
        print_member(json, "failed_on");
        printf(" only: ");
        print_member(json, "message");
        printf("\n");
        return;
    }
    printf("  on %s ", hob_device_name(devices[0]));
    print_value(cJSON_GetObjectItemCaseSensitive(json, "first"));
    printf("  on %s ", hob_device_name(devices[1]));
    print_value(cJSON_GetObjectItemCaseSensitive(json, "second"));
    if (!cJSON_GetObjectItemCaseSensitive(json, "index"))
        return;
    printf("  widest at ");
    print_member(json, "index");
    printf(": ");
    print_member(json, "first_value");
    printf(" and ");
    print_member(json, "second_value");
    printf(", a difference of ");
    print_member(json, "largest_difference");
    printf("; ");
    print_member(json, "differing");
    printf(" of ");
    print_member(json, "elements");
    printf(" elements differ\n");
}

hob_status run_bisect(const struct program *program, hob_device **devices,
                      const struct names *names, int as_json, int *out_code,
                      hob_error *error)
{
    cJSON *difference = NULL;
    hob_status status = bisect_program(program, devices[0], devices[1], names,
                                       &difference, error);

    if (status) {
        cJSON_Delete(difference);
        return status;
    }
    *out_code = difference ? EXIT_FAILED : EXIT_DONE;
    if (as_json) {
        if (!difference)
            difference = cJSON_CreateObject();
        cmd_print_json(difference);
        return HOB_OK;
    }
    if (difference)
        print_difference(difference, devices);
    else
        printf("no step differs\n");
    cJSON_Delete(difference);
    return HOB_OK;
}
