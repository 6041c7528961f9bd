/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_cuda.h - CUDA's driver, NVRTC and cuBLASLt (of f32 and f64) as functions
 * of a test: device memory is host memory, a kernel runs when it is launched,
 * and any function can be made to fail. What a driver would hold is counted.
 */
#ifndef FAKE_CUDA_H
#define FAKE_CUDA_H

#include <cube-cuda/driver.h>

enum {
    FAKE_CUDA_DEVICES = 2,
    FAKE_CUDA_PROCESSORS = 4, /* of each */
    FAKE_CUDA_SHARED_MOST = 227 * 1024,
    FAKE_CUDA_MAP_RANK = 5,
    FAKE_CUDA_WALK_RANK = 4
};

/* What a tensor map is here; the innermost dimension comes first. */
struct fake_map {
    const void *data;
    uint64_t strides[FAKE_CUDA_MAP_RANK]; /* in bytes */
    uint32_t sizes[FAKE_CUDA_MAP_RANK];
    uint16_t box[FAKE_CUDA_MAP_RANK];
    int type;
};

/* And one that walks through places: the width comes first. */
struct fake_walk {
    const void *data;
    uint32_t sizes[FAKE_CUDA_WALK_RANK];
    uint64_t strides[FAKE_CUDA_WALK_RANK - 1]; /* in bytes */
    int low[2], high[2];                       /* corners of the box */
    uint16_t steps[2];
    uint16_t places, type;
};

/* Several threads may call at once. What is current is each thread's own. */

struct fake_cuda {
    int devices;         /* that there are; at most FAKE_CUDA_DEVICES */
    const char *_Atomic missing; /* a function that is not there, or NULL */
    const char *_Atomic failing; /* one that answers RESULT, or NULL */
    _Atomic int result;
    _Atomic int skip;    /* how many of its calls succeed first */
    int major;           /* compute capability of all devices */
    size_t memory_bytes; /* of each device; alloc fails beyond */

    /* What is held now. */
    _Atomic int contexts, streams, events, pools, modules, programs, pins,
        blocks;
    _Atomic int depth;    /* contexts pushed */
    _Atomic size_t bytes; /* taken from pools */
    _Atomic int calls_alloc, calls_free, waits;
    _Atomic int handles, layouts;     /* of cuBLASLt; layouts and their like */
    _Atomic int heuristics, products; /* asked for so far */
    _Atomic int graphs;               /* written down, or ready to launch */
    _Atomic int overlapping; /* launches that may start early */
    _Atomic int peer_copies, pools_open; /* between devices; for others */
    _Atomic int event_waits;   /* of a stream for an event */
    _Atomic int waits_between; /* of a stream for another device's event */
    _Atomic int graph_launches, copies; /* of the latter those on a device */
    int has_no_kernel;        /* the heuristic finds none */
    _Atomic int lost[FAKE_CUDA_DEVICES]; /* the sticky result of each */
    _Atomic unsigned int groups, group_size;
    const char *_Atomic kernel;       /* of the last launch; it lasts as long */
    _Atomic unsigned int shared_most; /* what a function was allowed */
    _Atomic int is_tied; /* the last program was for one architecture alone */
    int has_old_nvrtc;   /* it knows three options */
    _Atomic int nvrtc_options; /* of the last program */
    /* Called by each launch in the kernel's place, or NULL. */
    void (*launching)(void **parameters);
    void *nvrtc; /* a library to take NVRTC's functions from, or NULL */
    void (*waiting)(void); /* called by each wait for a stream, or NULL */
    _Atomic size_t workspace_bytes; /* what the last heuristic was offered */
};

/* The one that the functions work on. */
extern struct fake_cuda fake_cuda;

/* Two devices, everything there, nothing held. */
void fake_cuda_reset(void);
/* What is to be given to struct ccu_instance. */
ccu_any_fn fake_cuda_find(const char *name);
/* What another library does: make DEVICE's context this thread's current one;
 * -1: none. The other tells which is. */
void fake_cuda_make_current(int device);
int fake_cuda_current(void);
/* Nonzero if nothing is held. */
int fake_cuda_is_clean(void);

/* The parameters of the only kernel there is: to[i] += step. With a COUNT
 * below 0 it lowers the flag TO to -COUNT - 1. Its cubin is the text of the
 * source. A source with "error" in it does not compile, one with "crash" loses
 * the device. */
struct fake_params {
    ccu_address to;
    int count;
    int step;
};

#endif
