/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_overhead - what a call costs beside its work (C7, C25).
 *
 * One-element adds through the public API, results released with their scope
 * every 256 calls: on flex, through an idle autodiff, and recorded by it; and
 * a built-in op against an extension's op with the same kernel.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "harness.h"
#include "null_plugin.h"

#include <hob/hob.h>

#include <stdio.h>
#include <stdlib.h>

enum { CALLS_A_SCOPE = 256 };

struct job {
    hob_scope *scope;
    hob_tensor *lhs;
    hob_tensor *rhs;
    struct hob_op_ref ref; /* of bench.add */
};

static void add_builtin(void *context, uint64_t repeats)
{
    struct job *job = context;

    while (repeats) {
        hob_scope *scope = hob_scope_child(job->scope);
        uint64_t calls = repeats < CALLS_A_SCOPE ? repeats : CALLS_A_SCOPE;

        for (uint64_t i = 0; i < calls; i++)
            (void)hob_add(scope, job->lhs, job->rhs);
        hob_scope_close(scope);
        repeats -= calls;
    }
}

static void add_extension(void *context, uint64_t repeats)
{
    struct job *job = context;

    while (repeats) {
        hob_scope *scope = hob_scope_child(job->scope);
        uint64_t calls = repeats < CALLS_A_SCOPE ? repeats : CALLS_A_SCOPE;

        for (uint64_t i = 0; i < calls; i++)
            (void)bench_add(scope, &job->ref, job->lhs, job->rhs);
        hob_scope_close(scope);
        repeats -= calls;
    }
}

/* Measure FN on the device called SPEC; COUNT elements, tracked or not. */
static int measure(hob_runtime *runtime, const char *name, const char *spec,
                   bench_fn fn, int64_t count, int tracked)
{
    struct job job = {.ref = {"bench.add", 0}};
    hob_error error = HOB_ERROR_INIT;
    hob_device *device = NULL;
    float *data = malloc((size_t)count * sizeof(*data));
    hob_status st = hob_device_open(runtime, spec, &device, &error);

    if (!data)
        st = hob_error_set(&error, HOB_ERR_MEMORY, "out of memory");
    if (st)
        goto out;
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)(rand() % 1000) / 1000.0f;
    job.scope = hob_scope_open(runtime);
    job.lhs = hob_from_f32(job.scope, device, data, &count, 1);
    job.rhs = hob_from_f32(job.scope, device, data, &count, 1);
    if (tracked)
        job.lhs = hob_require_grad(job.scope, job.lhs);
    fn(&job, 1);
    st = hob_scope_error(job.scope, &error);
    if (!st)
        bench_print(name, bench_run(fn, &job, 0, 101), "ns", spec);

out:
    if (st)
        fprintf(stderr, "%s: %s\n", name, error.message);
    hob_error_release(&error);
    hob_scope_close(job.scope);
    hob_device_unref(device);
    free(data);
    return st != HOB_OK;
}

int main(void)
{
    struct hob_runtime_options options = HOB_RUNTIME_OPTIONS_INIT;
    hob_runtime *runtime = NULL;
    hob_error error = HOB_ERROR_INIT;
    int bad = 0;

    options.policy = HOB_POLICY_REPORT;
    options.static_plugins = null_plugins;
    options.static_plugin_count = 2;
    if (hob_runtime_open(&options, &runtime, &error)) {
        fprintf(stderr, "%s\n", error.message);
        hob_error_release(&error);
        return 1;
    }
    bad |= measure(runtime, "add, 1 element", "flex", add_builtin, 1, 0);
    bad |= measure(runtime, "add, 1 element, autodiff idle", "autodiff(flex)",
                   add_builtin, 1, 0);
    bad |= measure(runtime, "add, 1 element, autodiff records",
                   "autodiff(flex)", add_builtin, 1, 1);
    bad |= measure(runtime, "add, 1000 elements", "flex", add_builtin, 1000, 0);
    bad |=
        measure(runtime, "add, 10000 elements", "flex", add_builtin, 10000, 0);
    bad |= measure(runtime, "add, 100000 elements", "flex", add_builtin, 100000,
                   0);
    /* Twice, for they are compared to a few nanoseconds. */
    for (int i = 0; i < 2; i++) {
        bad |= measure(runtime, "built-in op, null kernel", "null", add_builtin,
                       1, 0);
        bad |= measure(runtime, "extension op, null kernel", "null",
                       add_extension, 1, 0);
    }
    if (hob_runtime_close(runtime, &error)) {
        fprintf(stderr, "%s\n", error.message);
        bad = 1;
    }
    hob_error_release(&error);
    return bad;
}
