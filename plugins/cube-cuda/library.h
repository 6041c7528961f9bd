/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library.h - a library that takes long to open: a thread of its own does that
 * from the opening of the device on, and who needs it first waits.
 */
#ifndef CCU_LIBRARY_H
#define CCU_LIBRARY_H

#include "driver.h"

#include <hob/status.h>

#include <pthread.h>

struct ccu_device;

/* Opens the library of DEVICE, or says in its PROBLEM why not. */
typedef void ccu_library_open_fn(struct ccu_device *device);

struct ccu_library {
    struct ccu_device *device; /* borrowed, outlives this */
    ccu_library_open_fn *open;
    pthread_t thread;
    pthread_mutex_t lock; /* held while the thread is waited for */
    uint32_t has_lock;
    uint32_t has_thread; /* it runs, and was not waited for */
    char problem[CCU_REASON];
};

/* Begin to have OPEN open LIBRARY, which is all zero; without a thread it is
 * opened at once. Fails with HOB_ERR_MEMORY. */
hob_status ccu_library_init(struct ccu_library *library,
                            struct ccu_device *device,
                            ccu_library_open_fn *open);
/* Afterwards all is as OPEN left it. */
void ccu_library_wait(struct ccu_library *library);
void ccu_library_wait_locked(struct ccu_library *library);
/* Wait, and end what ccu_library_init() made, if it was called. */
void ccu_library_release(struct ccu_library *library);

#endif
