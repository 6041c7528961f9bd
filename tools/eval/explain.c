/* SPDX-License-Identifier: Apache-2.0 */
#include "explain.h"

#include <inttypes.h>
#include <stdio.h>

/* By enum hob_fusion_why. */
static const char *const reasons[] = {"asked for", "read outside the group",
                                      "dear and still held", "computed before"};

/* By enum hob_fusion_refusal. */
static const char *const refusals[] = {
    "",
    "its value is held or asked for",
    "another op reads its value too",
    "an attribute is not the pattern's",
    "the arguments do not fit, or the result would be another",
    "no kernel for these dtypes here"};

static const char *reason(uint32_t why)
{
    return why < sizeof(reasons) / sizeof(reasons[0]) ? reasons[why] : "?";
}

/* What took the place of other ops, or why it did not. */
static void note_pattern(cJSON *kernel, const struct hob_fusion_event *event)
{
    char text[200];
    const uint32_t refusal = event->refusal;

    if (!event->pattern)
        return;
    cJSON_AddStringToObject(kernel, "pattern", event->pattern);
    if (!refusal)
        return;
    snprintf(text, sizeof(text), "%s (call %" PRIu64 "): %s", event->refused_op,
             event->refused_call,
             refusal < sizeof(refusals) / sizeof(refusals[0])
                 ? refusals[refusal]
                 : "?");
    cJSON_AddStringToObject(kernel, "refused", text);
}

static void note(void *context, const struct hob_fusion_event *event)
{
    cJSON *kernel = cJSON_CreateObject();
    cJSON *stored = cJSON_AddArrayToObject(kernel, "stored");

    cJSON_AddStringToObject(kernel, "name", event->name);
    cJSON_AddBoolToObject(kernel, "group", (int)event->is_group);
    cJSON_AddNumberToObject(kernel, "ops", event->op_count);
    cJSON_AddNumberToObject(kernel, "inputs", event->input_count);
    cJSON_AddNumberToObject(kernel, "in_place", event->in_place);
    cJSON_AddNumberToObject(kernel, "read_bytes", (double)event->read_bytes);
    cJSON_AddNumberToObject(kernel, "written_bytes",
                            (double)event->written_bytes);
    cJSON_AddNumberToObject(kernel, "saved_bytes", (double)event->saved_bytes);
    for (uint32_t i = 0; i < event->value_count; i++) {
        cJSON *value = cJSON_CreateObject();

        cJSON_AddStringToObject(value, "op", event->values[i].op);
        cJSON_AddNumberToObject(value, "bytes", (double)event->values[i].bytes);
        cJSON_AddStringToObject(value, "why", reason(event->values[i].why));
        cJSON_AddItemToArray(stored, value);
    }
    note_pattern(kernel, event);
    cJSON_AddItemToArray(
        cJSON_GetObjectItemCaseSensitive((cJSON *)context, "kernels"), kernel);
}

hob_status explain_begin(hob_device *device, cJSON *out, hob_error *error)
{
    if (!cJSON_AddArrayToObject(out, "kernels"))
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory");
    return hob_fusion_watch(device, note, out, error);
}

void explain_end(hob_device *device, cJSON *out)
{
    struct hob_fusion_stats stats = HOB_FUSION_STATS_INIT;
    const struct {
        const char *name;
        const uint64_t *number;
    } sums[] = {{"recorded", &stats.recorded},
                {"single", &stats.single},
                {"groups", &stats.groups},
                {"grouped", &stats.grouped},
                {"declined", &stats.declined},
                {"weak", &stats.weak},
                {"replaced", &stats.replaced},
                {"read_bytes", &stats.read_bytes},
                {"written_bytes", &stats.written_bytes},
                {"saved_bytes", &stats.saved_bytes},
                {"programs", &stats.programs},
                {"program_hits", &stats.program_hits},
                {"plan_hits", &stats.plan_hits},
                {"compiled", &stats.compiled},
                {"disk_hits", &stats.disk_hits},
                {"compile_ns", &stats.compile_ns},
                {"not_ready", &stats.not_ready}};

    if (hob_fusion_watch(device, NULL, NULL, NULL) ||
        hob_fusion_report(device, &stats, NULL))
        return;
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++)
        cJSON_AddNumberToObject(out, sums[i].name, (double)*sums[i].number);
}

static double number(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static const char *text(const cJSON *object, const char *name)
{
    const char *value =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return value ? value : "?";
}

static void print_kernel(const cJSON *kernel)
{
    const cJSON *value;

    if (cJSON_GetObjectItemCaseSensitive(kernel, "refused")) {
        printf("  not     %s for %s: %s\n", text(kernel, "name"),
               text(kernel, "pattern"), text(kernel, "refused"));
        return;
    }
    if (!cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(kernel, "group"))) {
        printf("  op      %s\n", text(kernel, "name"));
        return;
    }
    printf("  kernel  %s: %.0f ops, %.0f inputs; read %.0f, written %.0f, "
           "saved %.0f bytes\n",
           text(kernel, "name"), number(kernel, "ops"),
           number(kernel, "inputs"), number(kernel, "read_bytes"),
           number(kernel, "written_bytes"), number(kernel, "saved_bytes"));
    cJSON_ArrayForEach(value,
                       cJSON_GetObjectItemCaseSensitive(kernel, "stored"))
        printf("          stores %s (%.0f bytes): %s\n", text(value, "op"),
               number(value, "bytes"), text(value, "why"));
    if (cJSON_GetObjectItemCaseSensitive(kernel, "pattern"))
        printf("          in place of %s\n", text(kernel, "pattern"));
    if (number(kernel, "in_place") > 0)
        printf("          %.0f of them over an input\n",
               number(kernel, "in_place"));
}

void explain_print(const cJSON *all)
{
    const cJSON *one, *kernel;

    cJSON_ArrayForEach(one, all)
    {
        /* A device without fusion was not watched: that is the error. */
        if (!cJSON_HasObjectItem(one, "recorded"))
            continue;
        printf("on %s\n", one->string);
        cJSON_ArrayForEach(kernel,
                           cJSON_GetObjectItemCaseSensitive(one, "kernels"))
            print_kernel(kernel);
        printf("  %.0f ops put off: %.0f in %.0f kernels of groups, %.0f "
               "alone; %.0f bytes saved\n",
               number(one, "recorded"), number(one, "grouped"),
               number(one, "groups"), number(one, "single"),
               number(one, "saved_bytes"));
        if (number(one, "replaced") > 0)
            printf("  %.0f ops in whose place another ran\n",
                   number(one, "replaced"));
        printf("  %.0f programs, found again %.0f times; %.0f kernels "
               "compiled in %.1f ms, %.0f found on disk; %.0f groups "
               "declined\n",
               number(one, "programs"), number(one, "program_hits"),
               number(one, "compiled"), number(one, "compile_ns") * 1e-6,
               number(one, "disk_hits"), number(one, "declined"));
    }
}
