/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd_doctor.c - hob doctor: try all that is found, say what to do.
 *
 * Each finding is one line: how it stands, what it is about, what was found;
 * and where something can be done, a second line with that. Libraries are
 * opened and each device computes, so what is fine here works in a program.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cmd.h"
#include "doctor/findings.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

struct doctor {
    hob_runtime *runtime;
    struct findings findings;
    uint32_t usable;  /* plugins */
    uint32_t devices; /* that compute */
    uint32_t failed;  /* that do not */
    double since_ms;  /* when the device at hand was begun with */
    char first[128];  /* the spec of the first device that computes, or "" */
};

/* The text at KEY of JSON; "" if there is none. */
static const char *text_of(const cJSON *json, const char *key)
{
    const char *text =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, key));

    return text ? text : "";
}

static const char *message_of(const hob_error *error)
{
    return error->message ? error->message : hob_status_name(error->status);
}

/* ---- what is installed ---- */

static void see_version(struct doctor *doctor)
{
    if (strcmp(hob_version(), PACKAGE_VERSION) != 0)
        findings_add(
            &doctor->findings, PROBLEM, "hob",
            "Two installations are mixed: look at PATH and LD_LIBRARY_PATH.",
            "this is hob %s, but the library that it found is libhob %s",
            PACKAGE_VERSION, hob_version());
    else
        findings_add(&doctor->findings, FINE, "hob", NULL,
                     "%s, plugin ABI %d.%d", hob_version(), HOB_ABI_MAJOR,
                     HOB_ABI_MINOR);
}

/* Say so of each folder in VALUE, a list with colons, that is not searched. */
static void see_folders(struct doctor *doctor, const char *name,
                        const char *value)
{
    char folder[PATH_MAX];

    while (*value) {
        size_t length = strcspn(value, ":");
        struct stat about;

        (void)snprintf(folder, sizeof(folder), "%.*s", (int)length, value);
        if (length && folder[0] != '/')
            findings_add(&doctor->findings, PROBLEM, name,
                         "Write the whole path, from / on.",
                         "\"%s\" is a relative path, which is not searched",
                         folder);
        else if (length && stat(folder, &about) != 0)
            findings_add(&doctor->findings, PROBLEM, name,
                         "Make the folder, or take it out of the variable.",
                         "\"%s\" is not there", folder);
        value += length + (value[length] == ':');
    }
}

/* The variables that are set: easily forgotten, and they go before files. */
static void see_environment(struct doctor *doctor)
{
    static const char *const names[] = {
        "HOB_DEVICE",          "HOB_CONFIG",       "HOB_PLUGIN_PATH",
        "HOB_ADD_PLUGIN_PATH", "HOB_PLUGINS_ONLY", "HOB_PLUGINS_DISABLE",
        "HOB_PLUGIN_TRUST",    "HOB_LOG"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);

        if (value)
            findings_add(&doctor->findings, FINE, names[i], NULL,
                         "is set to \"%s\"", value);
        if (value && strstr(names[i], "PLUGIN_PATH"))
            see_folders(doctor, names[i], value);
    }
}

/* A remark of the configuration; "debug" is what is as usual. A pattern may be
 * for plugins that are not installed yet. */
static void see_note(struct doctor *doctor, const cJSON *note)
{
    const char *severity = text_of(note, "severity");
    const char *reason = text_of(note, "reason");
    int works = !strcmp(severity, "info") || !strcmp(reason, "PATTERN_UNUSED");

    if (!strcmp(severity, "debug"))
        return;
    findings_add(&doctor->findings, works ? NOTE : PROBLEM,
                 text_of(note, "where"), text_of(note, "hint"), "%s: %s",
                 reason, text_of(note, "detail"));
}

static void see_config(struct doctor *doctor)
{
    hob_error error = HOB_ERROR_INIT;
    char *text = NULL;
    const cJSON *files;
    const cJSON *item;
    cJSON *config;

    if (hob_runtime_config(doctor->runtime, &text, &error)) {
        findings_add(&doctor->findings, PROBLEM, "config", NULL, "%s",
                     message_of(&error));
        hob_error_release(&error);
        return;
    }
    config = cJSON_Parse(text);
    hob_text_free(text);
    files = cJSON_GetObjectItemCaseSensitive(config, "files");
    if (!cJSON_GetArraySize(files))
        findings_add(&doctor->findings, FINE, "config", NULL,
                     "there is no file; the defaults hold");
    cJSON_ArrayForEach(item, files)
        findings_add(&doctor->findings, FINE, "config", NULL, "%s was read",
                     cJSON_IsString(item) ? item->valuestring : "a file");
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(config, "notes"))
        see_note(doctor, item);
    cJSON_Delete(config);
}

/* ---- plugins ---- */

static int ignore_support(void *context, const struct hob_op_support *support)
{
    (void)context;
    (void)support;
    return 0;
}

struct op_list {
    char family[128]; /* of the op before */
    uint32_t *ids;    /* one op of each extension */
    uint32_t count;
};

static int pick_op(void *context, const struct hob_op_record *record)
{
    struct op_list *list = context;
    uint32_t *ids;

    if (record->id < HOB_OP_COUNT_ || !strcmp(record->family, list->family))
        return 0;
    ids = realloc(list->ids, (list->count + 1) * sizeof(*ids));
    if (!ids)
        return 1;
    (void)snprintf(list->family, sizeof(list->family), "%s", record->family);
    list->ids = ids;
    list->ids[list->count++] = record->id;
    return 0;
}

/* Open every library: what is wrong with one shows in its record. */
static void open_plugins(struct doctor *doctor)
{
    struct op_list list = {"", NULL, 0};

    hob_runtime_ops(doctor->runtime, pick_op, &list);
    (void)!hob_runtime_op_support(doctor->runtime, HOB_OP_ADD, ignore_support,
                                  NULL, NULL);
    for (uint32_t i = 0; i < list.count; i++)
        (void)!hob_runtime_op_support(doctor->runtime, list.ids[i],
                                      ignore_support, NULL, NULL);
    free(list.ids);
}

static int see_plugin(void *context, const struct hob_plugin_record *record)
{
    struct doctor *doctor = context;
    const char *about = record->id ? record->id : record->manifest;

    if (!strcmp(record->reason, "OK")) {
        doctor->usable++;
        findings_add(&doctor->findings, FINE, about, NULL, "%s %s, %s",
                     record->kind, record->version, record->manifest);
    } else if (strcmp(record->severity, "debug") != 0) {
        findings_add(&doctor->findings,
                     strcmp(record->severity, "info") ? PROBLEM : NOTE, about,
                     record->hint, "%s, %s: %s", record->state, record->reason,
                     record->detail ? record->detail : record->manifest);
    }
    return 0;
}

static int count_place(void *context, const char *rule, const char *path,
                       const char *outcome)
{
    (void)rule;
    (void)path;
    (void)outcome;
    ++*(uint32_t *)context;
    return 0;
}

static void see_plugins(struct doctor *doctor)
{
    uint32_t places = 0;

    open_plugins(doctor);
    hob_runtime_report(doctor->runtime, see_plugin, doctor);
    hob_runtime_searched(doctor->runtime, count_place, &places);
    if (!doctor->usable)
        findings_add(
            &doctor->findings, PROBLEM, "plugins",
            "Install Hob's own plugins beside it, or name their folder in "
            "HOB_PLUGIN_PATH; hob why flex lists the places.",
            "none can be used; %" PRIu32 " %s searched", places,
            places == 1 ? "place was" : "places were");
}

/* ---- devices ---- */

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Open SPEC and add there: so many numbers that they need a block of memory. */
static hob_status compute(struct doctor *doctor, const char *spec,
                          hob_device **out_device, hob_error *error)
{
    enum { COUNT = 1000 };
    const int64_t shape = COUNT;
    float twos[COUNT];
    float sums[COUNT] = {0};
    hob_scope *scope;
    hob_tensor *x;
    hob_status status =
        hob_device_open(doctor->runtime, spec, out_device, error);

    if (status)
        return status;
    scope = hob_scope_open(doctor->runtime);
    if (!scope)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a scope");
    for (int i = 0; i < COUNT; i++)
        twos[i] = 2;
    x = hob_from_f32(scope, *out_device, twos, &shape, 1);
    status = hob_read_f32(hob_add(scope, x, x), sums, COUNT, error);
    for (int i = 0; i < COUNT && !status; i++)
        if (sums[i] != 4)
            status = hob_error_set(error, HOB_ERR_INTERNAL, "2 + 2 is %g there",
                                   (double)sums[i]);
    hob_scope_close(scope);
    return status;
}

static int see_device(void *context, const struct hob_device_record *record)
{
    struct doctor *doctor = context;
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;

    if (record->problem) {
        findings_add(&doctor->findings, NOTE, record->spec, NULL,
                     "cannot be opened: %s", record->problem);
        return 0;
    }
    if (compute(doctor, record->spec, &device, &error)) {
        doctor->failed++;
        findings_add(
            &doctor->findings, PROBLEM, record->spec,
            "hob config shows what it is given, hob why NAME the plugin's "
            "files; HOB_LOG=debug tells more.",
            "does not compute: %s", message_of(&error));
    } else {
        findings_add(&doctor->findings, FINE, record->spec, NULL,
                     "%s, %.1f GiB: opened, first result after %.1f ms",
                     record->hardware ? record->hardware : "unnamed",
                     (double)record->memory_bytes / 1073741824.0,
                     now_ms() - doctor->since_ms);
        if (!doctor->devices++)
            (void)snprintf(doctor->first, sizeof(doctor->first), "%s",
                           record->spec);
    }
    doctor->since_ms = now_ms();
    hob_error_release(&error);
    hob_device_unref(device);
    return 0;
}

/* Let each decorator that has a rule for add stand around the first device
 * and add there. The others pass it on; they may do something else, as write
 * files, that a look at things should not. */
static int see_decorator(void *context, const struct hob_op_support *support)
{
    struct doctor *doctor = context;
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;
    char spec[300];

    if (support->is_backend || strcmp(support->how, "rule") != 0)
        return 0;
    (void)snprintf(spec, sizeof(spec), "%s(%s)", support->selector,
                   doctor->first);
    if (compute(doctor, spec, &device, &error))
        findings_add(&doctor->findings, PROBLEM, spec, NULL,
                     "does not compute: %s", message_of(&error));
    else
        findings_add(&doctor->findings, FINE, spec, NULL, "computes");
    hob_error_release(&error);
    hob_device_unref(device);
    return 0;
}

static void see_default(struct doctor *doctor)
{
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;
    char advice[400];
    char *text = NULL;
    cJSON *config = NULL;
    int is_named;

    (void)snprintf(advice, sizeof(advice),
                   "Set \"device\" in hob.json, or HOB_DEVICE=%s.",
                   doctor->first);
    if (!hob_runtime_config(doctor->runtime, &text, NULL))
        config = cJSON_Parse(text);
    hob_text_free(text);
    is_named = cJSON_GetArraySize(
                   cJSON_GetObjectItemCaseSensitive(config, "device")) > 0;
    if (!hob_device_open(doctor->runtime, NULL, &device, &error))
        findings_add(&doctor->findings, FINE, "default device", NULL, "%s",
                     hob_device_name(device));
    else
        findings_add(&doctor->findings, is_named ? PROBLEM : NOTE,
                     "default device", advice, "%s",
                     is_named
                         ? message_of(&error)
                         : "none is named; programs must say which they want");
    cJSON_Delete(config);
    hob_error_release(&error);
    hob_device_unref(device);
}

static void see_devices(struct doctor *doctor)
{
    doctor->since_ms = now_ms();
    hob_runtime_devices(doctor->runtime, see_device, doctor);
    if (!doctor->devices) {
        findings_add(
            &doctor->findings, doctor->failed ? NOTE : PROBLEM, "devices",
            "hob plugins tells which backends are there, hob why NAME why one "
            "is not used; flex is the one for the processor.",
            "no device computes");
        return;
    }
    (void)!hob_runtime_op_support(doctor->runtime, HOB_OP_ADD, see_decorator,
                                  doctor, NULL);
    see_default(doctor);
}

/* ---- the machine ---- */

static void see_threads(struct doctor *doctor)
{
    hob_scope *scope = hob_scope_open(doctor->runtime);
    const struct hob_host *host = scope ? hob_scope_host(scope) : NULL;

    if (host)
        findings_add(&doctor->findings, FINE, "threads", NULL,
                     "%" PRIu32 " compute", host->thread_count(host));
    hob_scope_close(scope);
}

/* The number behind KEY in /proc/meminfo, in GiB; negative if there is none. */
static double meminfo_gib(const char *key)
{
    FILE *file = fopen("/proc/meminfo", "r");
    char line[128];
    double gib = -1;
    size_t size = strlen(key);

    while (file && gib < 0 && fgets(line, sizeof(line), file))
        if (!strncmp(line, key, size) && line[size] == ':')
            gib = strtod(line + size + 1, NULL) / 1048576.0; /* of kB */
    if (file)
        fclose(file);
    return gib;
}

static void see_memory(struct doctor *doctor)
{
    struct hob_memory_stats stats = HOB_MEMORY_STATS_INIT;
    double total = meminfo_gib("MemTotal");
    double available = meminfo_gib("MemAvailable");
    hob_device *device = NULL;

    if (total > 0 && available >= 0)
        findings_add(&doctor->findings, available < total / 20 ? NOTE : FINE,
                     "memory",
                     available < total / 20 ? "End what needs memory." : NULL,
                     "%.1f of %.1f GiB are available", available, total);
    if (!*doctor->first ||
        hob_device_open(doctor->runtime, doctor->first, &device, NULL))
        return;
    if (!hob_device_memory(device, &stats, NULL))
        findings_add(&doctor->findings, FINE, "memory", NULL,
                     "%s counts: %" PRIu64 " blocks so far, at most %" PRIu64
                     " bytes in use, %" PRIu64 " bytes held",
                     doctor->first, stats.block_count, stats.peak_bytes,
                     stats.reserved_bytes);
    hob_device_unref(device);
}

static void see_huge_pages(struct doctor *doctor)
{
    FILE *file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
    char modes[128];

    if (file && fgets(modes, sizeof(modes), file) && strstr(modes, "[never]"))
        findings_add(&doctor->findings, NOTE, "huge pages",
                     "As root: echo madvise > "
                     "/sys/kernel/mm/transparent_hugepage/enabled",
                     "are switched off: large tensors take longer to make");
    if (file)
        fclose(file);
}

static void examine(struct doctor *doctor)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_error error = HOB_ERROR_INIT;

    options.policy = HOB_POLICY_REPORT;
    see_version(doctor);
    see_environment(doctor);
    if (hob_runtime_open(&options, &doctor->runtime, &error)) {
        findings_add(
            &doctor->findings, PROBLEM, "config",
            "Correct the place that is named; nothing works before that.", "%s",
            message_of(&error));
        hob_error_release(&error);
        return;
    }
    see_config(doctor);
    see_devices(doctor); /* before their libraries are open: they are timed */
    see_plugins(doctor);
    see_threads(doctor);
    see_memory(doctor);
    see_huge_pages(doctor);
}

int cmd_doctor(const struct cmd *cmd, int argc, char **argv)
{
    int as_json = cmd_flag(&argc, argv, "--json");
    struct doctor doctor;
    int code;

    if (argc)
        return cmd_usage(cmd, argc, argv, 0);
    memset(&doctor, 0, sizeof(doctor));
    findings_init(&doctor.findings);
    examine(&doctor);
    code = doctor.findings.problem_count ? EXIT_FAILED : EXIT_DONE;
    if (as_json) {
        cmd_print_json(doctor.findings.list);
    } else {
        findings_print(&doctor.findings);
        findings_release(&doctor.findings);
    }
    return doctor.runtime ? cmd_close(cmd, doctor.runtime, code) : code;
}
