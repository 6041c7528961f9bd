/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fashion.c - train a classifier on the 60,000 images of Fashion-MNIST.
 *
 * The hidden layers are nn.linear_relu, an op of an extension that Hob loads
 * at run time; everything else is built in. The same seed gives the same
 * numbers, whatever the number of threads.
 */
#include "job.h"

#include <stdio.h>
#include <string.h>

/* Errors are reported once, by main, not by the runtime. */
static void stay_silent(void *context, hob_status status, const char *op,
                        const char *message)
{
    (void)context;
    (void)status;
    (void)op;
    (void)message;
}

static hob_status job_open(struct job *job, const struct options *options,
                           hob_error *error)
{
    struct hob_runtime_options runtime = HOB_RUNTIME_OPTIONS_INIT;
    uint32_t op;
    hob_status st;

    memset(job, 0, sizeof(*job));
    job->options = options;
    runtime.policy = HOB_POLICY_REPORT;
    runtime.on_panic = stay_silent;
    st = hob_runtime_open(&runtime, &job->runtime, error);
    if (st)
        return st;
    st = hob_device_open(job->runtime, options->device, &job->device, error);
    if (st)
        return st;
    if (hob_op_find(job->runtime, "nn.linear_relu", &op, NULL))
        return hob_error_set(
            error, HOB_ERR_NOT_FOUND,
            "the extension with the op nn.linear_relu is not installed; run "
            "make in ext-sdk/examples/linear_relu, then \"hob install\" its "
            "build folder");
    job->root = hob_scope_open(job->runtime);
    if (!job->root)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a scope");
    return HOB_OK;
}

/* Returns ST, or what closing failed with. */
static hob_status job_close(struct job *job, hob_status st, hob_error *error)
{
    hob_status closed;

    hob_scope_close(job->root);
    hob_device_unref(job->device);
    closed = hob_runtime_close(job->runtime, st ? NULL : error);
    return st ? st : closed;
}

int main(int argc, char **argv)
{
    struct options options;
    struct data data = {.count = 0};
    struct job job = {.root = NULL};
    hob_error error = HOB_ERROR_INIT;
    hob_status st;
    int code = options_parse(&options, argc, argv);

    if (code >= 0)
        return code;
    /* The data first: what is missing there is known at once. */
    st = data_read(options.data, "t10k", &data, &error);
    if (!st)
        st = job_open(&job, &options, &error);
    if (!st)
        st = options.classify < 0 ? job_train(&job, &data, &error)
                                  : job_classify(&job, &data, &error);
    st = job_close(&job, st, &error);
    data_release(&data);
    if (!st && (fflush(stdout) || ferror(stdout)))
        st = hob_error_set(&error, HOB_ERR_IO, "cannot write the output");
    if (st)
        fprintf(stderr, "fashion: %s\n", error.message);
    hob_error_release(&error);
    return st ? 1 : 0;
}
