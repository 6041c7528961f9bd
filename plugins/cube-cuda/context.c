/* SPDX-License-Identifier: Apache-2.0 */
/*
 * context.c - the device's context, and failures: which op they are of, and
 * when they end the device.
 */
#include "device.h"

#include <hob/ext/message.h>

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

static void lose(struct ccu_device *device, const char *what, int result);

int ccu_enter(struct ccu_device *device)
{
    struct CUctx_st *current = NULL;
    int result;

    if (!device->driver->context_current(&current) &&
        current == device->context)
        return 0;
    result = device->driver->context_push(device->context);
    /* Somebody reset it, say. What follows must not be another's context's. */
    if (result)
        lose(device, "cuCtxPushCurrent", result);
    return !result;
}

void ccu_leave(struct ccu_device *device, int is_pushed)
{
    struct CUctx_st *popped;

    if (is_pushed)
        (void)device->driver->context_pop(&popped);
}

hob_status ccu_say_result(struct ccu_device *device, char **out_message,
                          const char *what, int result)
{
    char text[CCU_REASON / 2];

    ccu_result_text(device->driver, result, text, sizeof(text));
    return hob_say(device->cube.host, out_message,
                   result == CCU_OUT_OF_MEMORY ? HOB_ERR_MEMORY
                                               : HOB_ERR_DEVICE,
                   "%s: %s: %s", device->name, what, text);
}

/* Whether a context is of no use any more after RESULT: the driver answers the
 * same to every later call. */
static int is_fatal(int result)
{
    return result == CCU_ECC || result == CCU_ILLEGAL_ADDRESS ||
           result == CCU_LAUNCH_TIMEOUT || result == CCU_ASSERT ||
           (result >= CCU_STACK_ERROR && result <= CCU_LAUNCH_FAILED) ||
           result == CCU_CONTAINED || result == CCU_UNKNOWN;
}

/* Mark DEVICE lost, unless it is. */
static void lose(struct ccu_device *device, const char *what, int result)
{
    char text[CCU_REASON / 2];
    int is_first;

    ccu_result_text(device->driver, result, text, sizeof(text));
    pthread_mutex_lock(&device->lock);
    is_first = !atomic_load(&device->is_lost);
    if (is_first) {
        snprintf(device->lost, sizeof(device->lost),
                 "%s is lost: %s: %s; since the last wait it was asked for %s",
                 device->name, what, text,
                 device->ops.used ? device->ops.text : "no op");
        /* From here on the text stays as it is. */
        atomic_store(&device->is_lost, 1);
    }
    pthread_mutex_unlock(&device->lock);
    if (is_first && device->cube.host->log_write)
        device->cube.host->log_write(device->cube.host, 3, "%s", device->lost);
}

hob_status ccu_check(struct ccu_device *device, const char *what, int result,
                     char **out_message)
{
    if (!result)
        return HOB_OK;
    if (is_fatal(result))
        lose(device, what, result);
    if (atomic_load(&device->is_lost))
        return hob_say(device->cube.host, out_message, HOB_ERR_DEVICE, "%s",
                       device->lost);
    return ccu_say_result(device, out_message, what, result);
}

hob_status ccu_check_lost(struct ccu_device *device, char **out_message)
{
    return atomic_load(&device->is_lost)
               ? hob_say(device->cube.host, out_message, HOB_ERR_DEVICE, "%s",
                         device->lost)
               : HOB_OK;
}

/* Remember that OP_NAME's work is asked for. */
static void note_op(struct ccu_device *device, const char *op_name)
{
    atomic_fetch_add(&device->asking, 1);
    atomic_fetch_add(&device->asked, 1);
    if (op_name == atomic_load(&device->op_name))
        return;
    pthread_mutex_lock(&device->lock);
    device->op_name = op_name;
    cube_names_add(&device->ops, op_name);
    pthread_mutex_unlock(&device->lock);
}

hob_status ccu_begin_without(struct ccu_device *device, const char *op_name,
                             char **out_message)
{
    const hob_status status = ccu_check_lost(device, out_message);

    if (!status && !ccu_is_recording(device))
        note_op(device, op_name);
    return status;
}

hob_status ccu_begin(struct ccu_device *device, const char *op_name,
                     int *out_is_pushed, char **out_message)
{
    hob_status status;

    *out_is_pushed = ccu_enter(device);
    status = ccu_begin_without(device, op_name, out_message);
    if (status)
        ccu_leave(device, *out_is_pushed);
    return status;
}

hob_status ccu_end(struct ccu_device *device, int is_pushed, hob_status status,
                   char **out_message)
{
    if (ccu_is_recording(device)) {
        ccu_leave(device, is_pushed);
        return status;
    }
    atomic_fetch_sub(&device->asking, 1);
    if (!status && device->options.is_blocking)
        status = ccu_wait(device, out_message);
    ccu_leave(device, is_pushed);
    return status;
}

hob_status ccu_wait(struct ccu_device *device, char **out_message)
{
    uint64_t asked;
    hob_status status;
    int is_quiet;

    asked = atomic_load(&device->asked);
    is_quiet = !atomic_load(&device->asking);
    status =
        ccu_check(device, "waiting",
                  device->driver->stream_wait(device->stream), out_message);
    if (status)
        return status;
    pthread_mutex_lock(&device->lock);
    /* What another thread asks for meanwhile may not have been waited for: it
     * has counted by now, or finds no name that is its own. */
    atomic_store(&device->op_name, NULL);
    if (is_quiet && asked == atomic_load(&device->asked))
        cube_names_clear(&device->ops);
    pthread_mutex_unlock(&device->lock);
    return HOB_OK;
}
