/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runtime.h - one opened Hob: loader, registry, devices, threads.
 */
#ifndef HOB__RUNTIME_H
#define HOB__RUNTIME_H

#include "device.h"
#include "known_table.h"
#include "loader.h"
#include "pool.h"
#include "random.h"
#include "registry.h"
#include "slab.h"
#include "tensor.h"

#include <hob/runtime.h>

#include <pthread.h>

struct hob__recording;

/* An opened plugin of this runtime. */
struct hob__instance {
    struct hob_host host; /* first: what the plugin's open gets; its log_write
                           * names the plugin */
    struct hob__instance *next; /* opened before this one */
    const struct hob__plugin *plugin;
    void *instance;
};

struct hob_runtime {
    struct hob_host host; /* &host is the table; host.runtime is this */
    uint32_t serial;      /* unique in the process */
    atomic_uint forks;    /* hob__process_forks() when it was last alright */
    uint32_t policy;      /* enum hob_policy */
    uint32_t debug;
    hob_panic_fn on_panic;
    void *on_panic_context;
    struct hob__loader *loader;
    struct hob__registry registry;
    struct hob__known known;
    struct hob__pool *pool;
    struct hob__generator *generator; /* of scopes without their own */
    hob_tensor *no_memory; /* the error tensor when there is none to make */
    pthread_mutex_t lock;  /* devices, instances */
    hob_device *devices;
    hob_device *_Atomic lazy_devices; /* whose top layer puts work off */
    struct hob__instance *instances; /* latest first */
    struct hob__slab tensors;        /* handles, but for error tensors */
    atomic_int_fast64_t live_scopes;
    atomic_int_fast64_t live_grads;
    atomic_uintptr_t recorder; /* the thread that records a step; 0: none */
    struct hob__recording *recording; /* its own; see recording.h */
    pthread_mutex_t record_lock;      /* held by that thread */
};

/*
 * Open CANDIDATE's library and its instance in RUNTIME, once. Fails as
 * hob__loader_load() does, or with the plugin's own status and message.
 */
HOB_MUST_CHECK hob_status hob__runtime_instance(
    hob_runtime *runtime, const struct hob__candidate *candidate,
    const struct hob__instance **out_instance, hob_error *error);

/*
 * This process is a fork of the one that opened RUNTIME. HOB_OK if every
 * plugin that is open can go on here, and was told; else HOB_ERR_FORKED.
 */
HOB_MUST_CHECK hob_status hob__runtime_after_fork(hob_runtime *runtime,
                                                  hob_error *error);

/* Say why there is no op NAME: HOB_ERR_NOT_FOUND. */
hob_status hob__op_missing(const hob_runtime *runtime, const char *name,
                           hob_error *error);

/* Fill RUNTIME's host table. */
void hob__host_init(hob_runtime *runtime);

/* The same for the plugin of INSTANCE, which begins with that table. */
void hob__host_init_instance(hob_runtime *runtime,
                             struct hob__instance *instance);

/* Tell FAILURE to RUNTIME's policy: returns, or aborts the process. */
void hob__panic(hob_runtime *runtime, const struct hob__failure *failure);

#endif
