/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cuda.h - CUDA's driver and NVRTC as functions of a test: device memory
 * is host memory, a kernel runs when it is launched, and any function can be
 * made to fail. What a driver would hold is counted.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <cube-cuda/driver.h>

enum { FAKE_CUDA_DEVICES = 2 };

struct fake_cuda {
    int devices;         /* that there are; at most FAKE_CUDA_DEVICES */
    const char *missing; /* a function that is not there, or NULL */
    const char *failing; /* one that answers RESULT, or NULL */
    int result;
    int skip;            /* how many of its calls succeed first */
    int major;           /* compute capability of all devices */
    size_t memory_bytes; /* of each device; alloc fails beyond */

    /* What is held now. */
    int contexts, streams, events, pools, modules, programs, pins, blocks;
    int depth;      /* contexts pushed */
    size_t bytes;   /* taken from pools */
    int calls_alloc, calls_free, waits;
    int lost[FAKE_CUDA_DEVICES]; /* the sticky result of each */
    unsigned int groups, group_size;
};

/* The one that the functions work on. */
extern struct fake_cuda fake_cuda;

/* Two devices, everything there, nothing held. */
void fake_cuda_reset(void);
/* What is to be given to struct ccu_instance. */
ccu_any_fn fake_cuda_find(const char *name);
/* Nonzero if nothing is held. */
int fake_cuda_is_clean(void);

/* The parameters of the only kernel there is: to[i] += step. Its cubin is the
 * text of the source. A source with "error" in it does not compile, one with
 * "crash" loses the device. */
struct fake_params {
    ccu_address to;
    int count;
    int step;
};

#endif
