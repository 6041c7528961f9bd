/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_loader - opening Hob with 200 manifests (C26).
 *
 * What "hob plugins" does: open a runtime, visit the report, close. No library
 * may be opened for it; the files mapped into this process are counted before
 * and after.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "harness.h"

#include <hob/hob.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MANIFESTS = 200 };

struct job {
    char folder[64];
    uint32_t records;
    int bad;
};

static const char manifest[] =
    "{\"manifest_version\": 1, \"id\": \"bench.m%d\", \"version\": \"1.0.0\",\n"
    " \"kind\": \"extension\", \"name\": \"Number %d\",\n"
    " \"abi\": {\"major\": 0, \"required_minor\": 2, \"built_minor\": 2},\n"
    " \"library\": \"m%d.so\", \"namespace\": \"m%d\",\n"
    " \"ops\": [{\"op\": \"double\", \"signature\": \"(x: Float) -> x\",\n"
    "   \"infer\": \"same\", \"body\": true, \"uses\": [\"add\"],\n"
    "   \"backends\": [\"*\"], \"doc\": \"x + x\"}]}\n";

/* Write the manifests, each with an empty file for its library. */
static int make_folder(struct job *job)
{
    strcpy(job->folder, "/tmp/hob-bench-XXXXXX");
    if (!mkdtemp(job->folder))
        return 1;
    for (int i = 0; i < MANIFESTS; i++) {
        char path[128];
        FILE *file;

        (void)snprintf(path, sizeof(path), "%s/m%d.json", job->folder, i);
        file = fopen(path, "w");
        if (!file)
            return 1;
        fprintf(file, manifest, i, i, i, i);
        if (fclose(file))
            return 1;
        (void)snprintf(path, sizeof(path), "%s/m%d.so", job->folder, i);
        file = fopen(path, "w");
        if (!file || fclose(file))
            return 1;
    }
    return 0;
}

static void remove_folder(const struct job *job)
{
    for (int i = 0; i < MANIFESTS; i++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "%s/m%d.json", job->folder, i);
        (void)unlink(path);
        (void)snprintf(path, sizeof(path), "%s/m%d.so", job->folder, i);
        (void)unlink(path);
    }
    (void)rmdir(job->folder);
}

static int count_record(void *context, const struct hob_plugin_record *record)
{
    struct job *job = context;

    job->records++;
    if (strcmp(record->severity, "error") == 0) {
        if (!job->bad)
            fprintf(stderr, "%s: %s: %s\n",
                    record->manifest ? record->manifest : "?", record->reason,
                    record->detail ? record->detail : "");
        job->bad = 1;
    }
    return 0;
}

static void open_and_list(void *context, uint64_t repeats)
{
    struct job *job = context;
    const char *paths[1];

    paths[0] = job->folder;
    for (uint64_t i = 0; i < repeats; i++) {
        struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
        hob_runtime *runtime = NULL;
        hob_error error = HOB_ERROR_INIT;

        options.policy = HOB_POLICY_REPORT;
        options.plugin_paths = paths;
        options.plugin_path_count = 1;
        options.exclusive = 1;
        job->records = 0;
        if (hob_runtime_open(&options, &runtime, &error)) {
            fprintf(stderr, "%s\n", error.message);
            hob_error_release(&error);
            job->bad = 1;
            return;
        }
        hob_runtime_report(runtime, count_record, job);
        if (hob_runtime_close(runtime, &error))
            job->bad = 1;
        hob_error_release(&error);
    }
}

/* How many executable mappings this process has. */
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

int main(void)
{
    struct job job = {.bad = 0};
    struct bench_result result;
    char note[64];
    int before;

    if (make_folder(&job)) {
        perror(job.folder);
        return 1;
    }
    before = mapped_count();
    open_and_list(&job, 1);
    if (job.records < MANIFESTS) {
        fprintf(stderr, "only %u records\n", (unsigned)job.records);
        job.bad = 1;
    }
    result = bench_run(open_and_list, &job, 1, 0);
    (void)snprintf(note, sizeof(note), "%u records, %d libraries opened",
                   (unsigned)job.records, mapped_count() - before);
    bench_print("open, list 200 manifests, close", result, "us", note);
    remove_folder(&job);
    return job.bad;
}
