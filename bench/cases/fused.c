/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused.c - C8's and C9's chain as a program of the interface "fused.compute",
 * without the decorator that writes such programs: what a backend makes of it.
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <hob/ext/fusion.h>

#include <stdlib.h>
#include <string.h>

struct fused {
    hob_runtime *runtime;
    hob_device *device;
    hob_scope *scope;
    const struct hob_fused_compute *compute;
    void *instance, *kernel;
    float *out;
    struct hob_fused_operand operands[2]; /* what goes in; what comes out */
    hob_value scalars[8];
    struct hob_fused_run run;
};

/* relu((x * s0 + s1) * (x - s2) / s3 + s4) * s5: register 0 is x. */
static const double scalars[] = {1.1, 0.1, 0.5, 1.7, 0.25, 2};
static const struct hob_fused_input inputs[] = {{.dtype = HOB_DTYPE_F32}};
static const uint8_t outputs[] = {8};

#define STEP(name, a, b, at, count)                                            \
    {                                                                          \
        .op = HOB_OP_##name, .dtype = HOB_DTYPE_F32,                           \
        .args = {a, b, HOB_FUSED_NONE}, .scalar = at, .scalar_count = count    \
    }
static const struct hob_fused_step steps[] = {
    STEP(MUL_SCALAR, 0, HOB_FUSED_NONE, 0, 1),
    STEP(ADD_SCALAR, 1, HOB_FUSED_NONE, 1, 1),
    STEP(SUB_SCALAR, 0, HOB_FUSED_NONE, 2, 1),
    STEP(MUL, 2, 3, 0, 0),
    STEP(DIV_SCALAR, 4, HOB_FUSED_NONE, 3, 1),
    STEP(ADD_SCALAR, 5, HOB_FUSED_NONE, 4, 1),
    STEP(RELU, 6, HOB_FUSED_NONE, 0, 0),
    STEP(MUL_SCALAR, 7, HOB_FUSED_NONE, 5, 1),
};
#undef STEP

enum {
    STEPS = sizeof(steps) / sizeof(steps[0]),
    SCALARS = sizeof(scalars) / sizeof(scalars[0])
};

static const struct hob_fused_program program = {
    .struct_size = sizeof(program),
    .step_size = sizeof(steps[0]),
    .rank = 1,
    .input_count = 1,
    .output_count = 1,
    .step_count = STEPS,
    .scalar_count = SCALARS,
    .inputs = inputs,
    .steps = steps,
    .outputs = outputs,
};

hob_status bench_fused_open(struct bench_job *job)
{
    const size_t bytes = (size_t)job->c->out_count * sizeof(float);
    struct fused *fused = calloc(1, sizeof(*fused));
    char *message;
    hob_status st;

    job->state = fused;
    if (!fused)
        return HOB_ERR_MEMORY;
    fused->out = aligned_alloc(64, (bytes + 63) / 64 * 64);
    if (!fused->out)
        return HOB_ERR_MEMORY;
    memset(fused->out, 0, bytes);
    st = bench_open(job, "flex", &fused->runtime, &fused->device);
    if (st)
        return st;
    fused->scope = hob_scope_open(fused->runtime);
    fused->compute =
        hob_scope_host(fused->scope)
            ->interface(fused->device, HOB_FUSED_COMPUTE,
                        HOB_FUSED_COMPUTE_VERSION, &fused->instance);
    if (!fused->compute)
        return HOB_ERR_UNSUPPORTED;
    for (int i = 0; i < SCALARS; i++)
        fused->scalars[i] = hob_f64(scalars[i]);
    fused->operands[0].data = job->in[0].data;
    fused->operands[1].data = fused->out;
    for (int i = 0; i < 2; i++)
        fused->operands[i].strides[0] = 1;
    fused->run.struct_size = sizeof(fused->run);
    fused->run.shape[0] = job->c->out_count;
    fused->run.inputs = &fused->operands[0];
    fused->run.outputs = &fused->operands[1];
    fused->run.scalars = fused->scalars;
    fused->run.name = "chain";
    return fused->compute->compile(fused->instance, &program, &fused->kernel,
                                   &message);
}

void bench_fused_run(struct bench_job *job, uint64_t repeats)
{
    struct fused *fused = job->state;
    char *message;

    for (uint64_t i = 0; i < repeats && !job->error.status; i++)
        job->error.status = fused->compute->run(fused->instance, fused->kernel,
                                                &fused->run, &message);
}

hob_status bench_fused_check(struct bench_job *job, double *out)
{
    const struct fused *fused = job->state;

    bench_fused_run(job, 1);
    for (int64_t i = 0; i < job->c->out_count; i++)
        out[i] = (double)fused->out[i];
    return job->error.status;
}

void bench_fused_close(struct bench_job *job)
{
    struct fused *fused = job->state;

    if (!fused)
        return;
    if (fused->kernel)
        fused->compute->release(fused->instance, fused->kernel);
    hob_scope_close(fused->scope);
    hob_device_unref(fused->device);
    if (hob_runtime_close(fused->runtime, NULL))
        job->error.status = HOB_ERR_BUSY;
    free(fused->out);
    free(fused);
}
