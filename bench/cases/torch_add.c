/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_add.c - PyTorch from C++ as a way of C7 and C25 (peer_torch_add.cpp).
 */
#ifdef HAVE_CONFIG_H
#include <config.h>
#endif

#include "cases.h"

#include <dlfcn.h>
#include <stdlib.h>

struct torch {
    void *(*open)(float lhs, float rhs, int is_tracked);
    double (*run)(void *context, uint64_t repeats);
    void (*close)(void *context);
    void *context;
};

hob_status bench_torch_add_open(struct bench_job *job)
{
    const char *path = getenv("HOB_BENCH_TORCH_ADD");
    struct torch *torch = calloc(1, sizeof(*torch));
    void *library = path && torch ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;

    job->state = torch;
    if (!library)
        return hob_error_set(&job->error, HOB_ERR_UNSUPPORTED,
                             "not built: libtorch-dev and g++ are needed");
    *(void **)&torch->open = dlsym(library, "bench_torch_open");
    *(void **)&torch->run = dlsym(library, "bench_torch_run");
    *(void **)&torch->close = dlsym(library, "bench_torch_close");
    if (!torch->open || !torch->run || !torch->close)
        return hob_error_set(&job->error, HOB_ERR_UNSUPPORTED,
                             "%s lacks a function", path);
    torch->context =
        torch->open(bench_f32(&job->in[0])[0], bench_f32(&job->in[1])[0],
                    job->way->is_tracked);
    return HOB_OK;
}

hob_status bench_torch_add_check(struct bench_job *job, double *out)
{
    const struct torch *torch = job->state;

    *out = torch->run(torch->context, 1);
    return HOB_OK;
}

void bench_torch_add_run(struct bench_job *job, uint64_t repeats)
{
    const struct torch *torch = job->state;

    (void)torch->run(torch->context, repeats);
}

void bench_torch_add_close(struct bench_job *job)
{
    struct torch *torch = job->state;

    if (torch && torch->context)
        torch->close(torch->context);
    free(torch); /* the library stays: it has threads */
}
