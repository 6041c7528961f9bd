/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opening.c - C26: how long it takes to be ready.
 *
 * What loads libraries does so in a fork of a process that has none of them,
 * once a run, because a library stays mapped. n: 0 plugins.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"
#include "null_plugin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PLUGINS };

/* ---- opening a runtime with manifests that name libraries ---- */

struct folder {
    char path[64];
    uint32_t records;
};

static const char manifest[] =
    "{\"manifest_version\": 1, \"id\": \"bench.m%d\", \"version\": \"1.0.0\",\n"
    " \"kind\": \"extension\", \"name\": \"Number %d\",\n"
    " \"abi\": {\"major\": 0, \"required_minor\": 2, \"built_minor\": 2},\n"
    " \"library\": \"m%d.so\", \"namespace\": \"m%d\",\n"
    " \"ops\": [{\"op\": \"double\", \"signature\": \"(x: Float) -> x\",\n"
    "   \"infer\": \"same\", \"body\": true, \"uses\": [\"add\"],\n"
    "   \"backends\": [\"*\"], \"doc\": \"x + x\"}]}\n";

/* Manifest I, with an empty file for its library. */
static int write_manifest(const struct folder *folder, int i)
{
    char path[128];
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/m%d.so", folder->path, i);
    file = fopen(path, "w");
    if (!file || fclose(file))
        return 0;
    (void)snprintf(path, sizeof(path), "%s/m%d.json", folder->path, i);
    file = fopen(path, "w");
    if (!file)
        return 0;
    (void)fprintf(file, manifest, i, i, i, i);
    return !fclose(file);
}

static hob_status folder_open(struct bench_job *job)
{
    struct folder *folder = calloc(1, sizeof(*folder));

    job->state = folder;
    if (!folder)
        return HOB_ERR_MEMORY;
    strcpy(folder->path, "/tmp/hob-bench-XXXXXX");
    if (!mkdtemp(folder->path))
        return hob_error_set(&job->error, HOB_ERR_IO, "/tmp: not writable");
    for (int i = 0; i < (int)job->c->n[PLUGINS]; i++)
        if (!write_manifest(folder, i))
            return hob_error_set(&job->error, HOB_ERR_IO, "%s: not writable",
                                 folder->path);
    return HOB_OK;
}

static void folder_close(struct bench_job *job)
{
    struct folder *folder = job->state;

    for (int i = 0; folder && i < (int)job->c->n[PLUGINS]; i++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/m%d.json", folder->path, i);
        (void)unlink(path);
        (void)snprintf(path, sizeof(path), "%s/m%d.so", folder->path, i);
        (void)unlink(path);
    }
    if (folder)
        (void)rmdir(folder->path);
    free(folder);
}

static int count_record(void *context, const struct hob_plugin_record *record)
{
    struct folder *folder = context;

    /* An error would be counted by nobody and seen. */
    folder->records += strcmp(record->severity, "error") != 0;
    return 0;
}

/* What "hob plugins" does: open, visit the report, close. */
static void folder_run(struct bench_job *job, uint64_t repeats)
{
    struct folder *folder = job->state;
    const char *paths[1];

    paths[0] = folder->path;
    for (uint64_t i = 0; i < repeats && !job->error.status; i++) {
        struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
        hob_runtime *runtime = NULL;

        options.policy = HOB_POLICY_REPORT;
        options.plugin_paths = paths;
        options.plugin_path_count = job->c->n[PLUGINS] ? 1 : 0;
        options.exclusive = 1;
        /* One that is linked in, or there would be none to complain of. */
        options.static_plugins = null_plugins;
        options.static_plugin_count = 2;
        folder->records = 0;
        if (hob_runtime_open(&options, &runtime, &job->error))
            return;
        hob_runtime_report(runtime, count_record, folder);
        if (hob_runtime_close(runtime, &job->error))
            return;
    }
}

/* How many files with code are mapped into this process. */
static int mapped_count(void)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    int count = 0;

    while (file && fgets(line, sizeof(line), file))
        count += strstr(line, " r-xp ") != NULL;
    if (file)
        (void)fclose(file);
    return count;
}

/* The plugins that were found, and the libraries that were opened. */
static hob_status folder_check(struct bench_job *job, double *out)
{
    const struct folder *folder = job->state;
    const int before = mapped_count();

    folder_run(job, 1);
    out[0] = folder->records >= job->c->n[PLUGINS];
    out[1] = mapped_count() - before;
    return job->error.status;
}

static double folder_at(const struct bench_case *c,
                        const struct bench_array *in, int64_t i)
{
    (void)c;
    (void)in;
    return i == 0;
}

/* ---- from nothing to a result ---- */

/* 1 + 2 by the built-in op, or relu(1 * 1 + 1) by the extension. */
static hob_status first_result(struct bench_job *job, int is_extension,
                               double *out)
{
    static const int64_t shape[2] = {1, 1};
    const float one = 1;
    hob_runtime *runtime = NULL;
    hob_device *device = NULL;
    hob_scope *scope = NULL;
    hob_tensor *x, *result;
    hob_status st = bench_open(job, "flex", &runtime, &device);

    if (st)
        goto out;
    scope = hob_scope_open(runtime);
    x = hob_from_f32(scope, device, &one, shape, 2);
    if (is_extension) {
        const hob_value args[] = {
            hob_value_tensor(x), hob_value_tensor(x),
            hob_value_tensor(hob_from_f32(scope, device, &one, shape, 1))};

        result = bench_call(scope, "nn.linear_relu", args, 3);
    } else {
        result = hob_add(scope, x, x);
    }
    st = hob_item(result, out, &job->error);

out:
    hob_scope_close(scope);
    hob_device_unref(device);
    if (hob_runtime_close(runtime, NULL) && !st)
        st = HOB_ERR_BUSY;
    return st;
}

/* The same in a fork, whose exit code is the result, or 100 and the status. */
static hob_status in_fork(struct bench_job *job, int is_extension, double *out)
{
    const pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        double value = 0;
        const hob_status st = first_result(job, is_extension, &value);

        _exit(st ? 100 + (int)st : (int)value);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
        return hob_error_set(&job->error, HOB_ERR_INTERNAL, "it died");
    if (WEXITSTATUS(status) >= 100)
        return hob_error_set(&job->error,
                             (hob_status)(WEXITSTATUS(status) - 100),
                             "no first result");
    *out = WEXITSTATUS(status);
    return HOB_OK;
}

static void built_in_run(struct bench_job *job, uint64_t repeats)
{
    double result;

    for (uint64_t i = 0; i < repeats && !job->error.status; i++)
        (void)in_fork(job, 0, &result);
}

static hob_status built_in_check(struct bench_job *job, double *out)
{
    return in_fork(job, 0, out);
}

static void extension_run(struct bench_job *job, uint64_t repeats)
{
    double result;

    for (uint64_t i = 0; i < repeats && !job->error.status; i++)
        (void)in_fork(job, 1, &result);
}

static hob_status extension_check(struct bench_job *job, double *out)
{
    return in_fork(job, 1, out);
}

static double two_at(const struct bench_case *c, const struct bench_array *in,
                     int64_t i)
{
    (void)c;
    (void)in;
    (void)i;
    return 2;
}

/* ---- Python ---- */

/* Run STATEMENTS in a process of their own; IS_QUIET: no complaints. */
static hob_status run_python(struct bench_job *job, const char *statements,
                             int is_quiet)
{
    const pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        if (is_quiet && !freopen("/dev/null", "w", stderr))
            _exit(127);
        (void)execl("/usr/bin/python3", "python3", "-c", statements,
                    (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
        return hob_error_set(&job->error, HOB_ERR_UNSUPPORTED, "not installed");
    return HOB_OK;
}

static hob_status python_open(struct bench_job *job)
{
    return run_python(job, "import torch", 1);
}

static void python_run(struct bench_job *job, uint64_t repeats)
{
    for (uint64_t i = 0; i < repeats && !job->error.status; i++)
        (void)run_python(job,
                         "import torch\n"
                         "x = torch.ones(1, 1)\n"
                         "exit(int((x + x).item()) != 2)",
                         0);
}

static hob_status python_check(struct bench_job *job, double *out)
{
    python_run(job, 1);
    *out = 2;
    return job->error.status;
}

/* ---- the table ---- */

#define MANIFESTS(label, count, most_ns)                                       \
    {                                                                          \
        .id = "C26", .name = label, .n = {count},                              \
        .program = {.open = folder_open,                                       \
                    .check = folder_check,                                     \
                    .run = folder_run,                                         \
                    .close = folder_close},                                    \
        .at = folder_at, .is_exact = 1, .out_count = 2, .is_serial = 1,        \
        .target = {                                                            \
            .ns = most_ns                                                      \
        }                                                                      \
    }

static const struct bench_case cases[] = {
    MANIFESTS("open and close, nothing to load", 0, 1e6),
    MANIFESTS("open, list 20 manifests, close", 20, 20 * 150e3),
    MANIFESTS("open, list 200 manifests, close", 200, 200 * 150e3),
    {.id = "C26",
     .name = "from a fork to the first result of flex",
     .program = {.check = built_in_check, .run = built_in_run},
     .at = two_at,
     .is_exact = 1,
     .out_count = 1,
     .is_serial = 1,
     .is_once = 1,
     .target = {.ns = 5e6},
     .note = "fork, open, load flex, add, read, close; libraries are in the "
             "page cache"},
    {.id = "C26",
     .name = "the same with an extension's op",
     .program = {.check = extension_check, .run = extension_run},
     .ways = {{.who = "flex alone", .run = built_in_run, .is_base = 1}},
     .at = two_at,
     .is_exact = 1,
     .out_count = 1,
     .is_serial = 1,
     .is_once = 1,
     .target = {.above_base_ns = 150e3},
     .note = "nn.linear_relu, loaded for the call"},
    {.id = "C26",
     .name = "the first result, beside python3 and import torch",
     .program = {.check = built_in_check, .run = built_in_run},
     .ways = {{.who = "python3, import torch",
               .open = python_open,
               .check = python_check,
               .run = python_run}},
     .at = two_at,
     .is_exact = 1,
     .out_count = 1,
     .is_serial = 1,
     .is_once = 1,
     .run_seconds = 1.5,
     .target = {.peer = 10}},
};

const struct bench_family bench_opening = {cases,
                                           sizeof(cases) / sizeof(cases[0])};
