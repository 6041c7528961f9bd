/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.h - recorded work as CUDA graphs: the interface "capture" of
 * hob/ext/capture.h.
 *
 * A thread that records works on a stream of its own, which the driver writes
 * down instead of doing its work; other threads go on with the device's. The
 * memory that it takes becomes the graph's. Checks of elements (cube/flag.h)
 * cannot be read then: their flags lie in memory of the host that the device
 * can write to, and who waits for the device looks there.
 */
#ifndef CCU_GRAPH_H
#define CCU_GRAPH_H

#include "driver.h"

#include <cube/runtime.h>

#include <hob/ext/plugin.h>

#include <pthread.h>
#include <stdatomic.h>

struct ccu_device;
struct ccu_graph;

enum { CCU_CHECKS = 4096, CCU_OP_NAME = 64 };

/* What a device needs to record. */
struct ccu_recorder {
    _Atomic uintptr_t thread; /* that records; 0: none */
    pthread_mutex_t lock;     /* held by that thread */
    uint32_t has_lock;
    struct CUstream_st *stream; /* made on first need */
    struct ccu_graph *graph;    /* on its way */
    char refused[CCU_REASON];   /* why it will not become one */
};

hob_status ccu_recorder_init(struct ccu_device *device);
/* All graphs are gone. */
void ccu_recorder_release(struct ccu_device *device);

/* Whether this thread records on DEVICE. */
int ccu_is_recording(const struct ccu_device *device);
/* The stream for work of this thread. */
struct CUstream_st *ccu_stream(const struct ccu_device *device);
/* Note that this thread, which records, has asked for what cannot be: WHY, as
 * in "reads elements". Returns the status to answer with. */
hob_status ccu_refuse(struct ccu_device *device, const char *why);

/* Memory for the thread that records: the driver's answer. */
int ccu_graph_take(struct ccu_device *device, uint64_t bytes,
                   ccu_address *out_address);
/* Whether ADDRESS is the recording's; then it is free for it again. */
int ccu_graph_give(struct ccu_device *device, ccu_address address);

/* As in struct cube_runtime. */
hob_status ccu_flag_later(struct cube_device *device, const char *op_name,
                          void **out_data);
/* DEVICE was waited for: HOB_ERR_RANGE if a check of a replay has failed,
 * once, and a line for the log. */
hob_status ccu_look_at_checks(struct ccu_device *device);

/* The interface; its device is a struct ccu_device. */
extern const struct hob_capture_interface ccu_capture;

#endif
