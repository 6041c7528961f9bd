/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h - one opened device: its context, its stream and all its parts.
 *
 * The context is the device's primary one, which is shared with CUDA's other
 * users in the process. It is made current for the length of a call, and what
 * was current before is so again afterwards.
 */
#ifndef CCU_DEVICE_H
#define CCU_DEVICE_H

#include "blas.h"
#include "graph.h"
#include "instance.h"
#include "memory.h"
#include "nvrtc.h"
#include "options.h"
#include "staging.h"

#include <cube/kernels.h>
#include <cube/names.h>
#include <cube/runtime.h>
#include <hob/ext/message.h>

struct ccu_device {
    struct cube_device cube; /* first: a pointer to it is one to the whole */
    struct ccu_instance *instance;       /* borrowed, outlives this */
    const struct ccu_physical *physical; /* the same */
    const struct ccu_driver *driver;     /* the same */
    struct CUctx_st *context;
    struct CUstream_st *stream; /* all work but recordings, in order */
    struct ccu_options options;
    struct ccu_memory memory;
    struct ccu_staging staging;
    struct ccu_compiler compiler;
    struct ccu_blas blas;
    struct ccu_recorder recorder;
    pthread_mutex_t lock; /* of what follows */
    uint32_t has_lock;
    uint32_t ordinal;
    _Atomic uint64_t peers; /* ordinals that may use this one's memory */
    _Atomic uint32_t is_lost;
    const char *_Atomic op_name; /* of the last launch; only compared */
    _Atomic uint64_t asked;      /* launches so far */
    _Atomic uint32_t asking;     /* threads that launch just now */
    struct ccu_graph *checked;   /* graphs with checks of elements */
    uint32_t *_Atomic flags;     /* pinned; made on first need */
    struct cube_names ops;       /* since the last wait */
    char lost[2 * CCU_REASON];   /* why */
    char name[40];               /* as in "cube-cuda:0" */
    char identity[128];
};

/* Make DEVICE's context current; the answer is for ccu_leave(). A device whose
 * context cannot be is lost. */
int ccu_enter(struct ccu_device *device);
void ccu_leave(struct ccu_device *device, int is_pushed);

/*
 * What the driver answered to WHAT, as a status. A failure after which the
 * context is of no use any more marks DEVICE lost, with the names of the ops
 * that may have caused it.
 */
hob_status ccu_check(struct ccu_device *device, const char *what, int result,
                     char **out_message);
/* HOB_OK, or HOB_ERR_DEVICE and why DEVICE is lost. */
hob_status ccu_check_lost(struct ccu_device *device, char **out_message);
/*
 * Around each request of work for OP_NAME: a lost device refuses, and the name
 * is kept for what ccu_check() says. ccu_begin() makes the context current, and
 * ccu_end(), which is called if it succeeded, with STATUS of the request, waits
 * if the device is a blocking one and gives the context back.
 */
hob_status ccu_begin(struct ccu_device *device, const char *op_name,
                     int *out_is_pushed, char **out_message);
hob_status ccu_end(struct ccu_device *device, int is_pushed, hob_status status,
                   char **out_message);
/* ccu_begin() for requests that need no context; ccu_end() with 0 then. */
hob_status ccu_begin_without(struct ccu_device *device, const char *op_name,
                             char **out_message);
/* ccu_memory_take(), once more after a trim where the driver has no more. */
int ccu_take(struct ccu_device *device, uint64_t bytes,
             ccu_address *out_address);
/* WHAT of the driver's failed with RESULT: hob_say() with the status that
 * RESULT stands for. */
hob_status ccu_say_result(struct ccu_device *device, char **out_message,
                          const char *what, int result);
/* Wait for all work. */
hob_status ccu_wait(struct ccu_device *device, char **out_message);

/* As in struct cube_runtime. */
hob_status ccu_flags(struct cube_device *device, uint32_t **out_host,
                     void **out_data);
hob_status ccu_runtime_wait(struct cube_device *device);

/* ---- as in struct hob_backend ---- */

hob_status ccu_device_open(void *instance, uint32_t ordinal,
                           const char *options, void **out_device,
                           char **out_message);
void ccu_device_close(void *device);
hob_status ccu_device_alloc(void *device, uint64_t bytes, void **out_data);
void ccu_device_free(void *device, void *data, uint64_t bytes);
hob_status ccu_device_upload(void *device, void *data, const void *host_data,
                             uint64_t bytes);
hob_status ccu_device_download(void *device, void *host_data, const void *data,
                               uint64_t bytes);
hob_status ccu_device_copy(void *device, void *data, void *from_device,
                           const void *from_data, uint64_t bytes);
hob_status ccu_device_sync(void *device);
void ccu_device_memory_stats(void *device, struct hob_memory_stats *out);
void ccu_device_reset_peak(void *device);
void ccu_device_trim(void *device);

/* The runtime of every device; see cube/runtime.h. */
extern const struct cube_runtime ccu_runtime;

#endif
