/* SPDX-License-Identifier: Apache-2.0 */
#include "library.h"

#include <cube/background.h>

#include <stdio.h>

static void *run(void *context)
{
    struct ccu_library *library = context;

    if (!cube_background_begin()) {
        snprintf(library->problem, sizeof(library->problem),
                 "the process is about to end");
        return NULL;
    }
    library->open(library->device);
    cube_background_end();
    return NULL;
}

hob_status ccu_library_init(struct ccu_library *library,
                            struct ccu_device *device,
                            ccu_library_open_fn *open)
{
    if (pthread_mutex_init(&library->lock, NULL))
        return HOB_ERR_MEMORY;
    library->has_lock = 1;
    library->device = device;
    library->open = open;
    cube_background_watch();
    library->has_thread = !pthread_create(&library->thread, NULL, run, library);
    if (!library->has_thread)
        run(library);
    return HOB_OK;
}

void ccu_library_wait_locked(struct ccu_library *library)
{
    if (library->has_thread)
        (void)pthread_join(library->thread, NULL);
    library->has_thread = 0;
}

void ccu_library_wait(struct ccu_library *library)
{
    pthread_mutex_lock(&library->lock);
    ccu_library_wait_locked(library);
    pthread_mutex_unlock(&library->lock);
}

void ccu_library_release(struct ccu_library *library)
{
    if (!library->has_lock)
        return;
    ccu_library_wait(library);
    pthread_mutex_destroy(&library->lock);
}
