/* SPDX-License-Identifier: Apache-2.0 */
/*
 * peer.c - copies on a device and between two.
 *
 * Between two, the copy is asked of the stream that it writes for. It waits
 * there for what was asked of the other one, which waits for the copy before
 * it does anything more: the elements may be given back at once.
 */
#include "device.h"

#include <stdatomic.h>

static hob_status copy_within(struct ccu_device *device, ccu_address to,
                              ccu_address from, uint64_t bytes)
{
    const int is_pushed = ccu_enter(device);
    hob_status status = ccu_check_lost(device, NULL);

    if (!status)
        status = ccu_check(
            device, "cuMemcpyDtoDAsync",
            device->driver->copy(to, from, (size_t)bytes, ccu_stream(device)),
            NULL);
    ccu_leave(device, is_pushed);
    return status;
}

/* Let SECOND's stream wait for what FIRST's has been asked for. */
static hob_status order(struct ccu_device *first, struct ccu_device *second)
{
    const struct ccu_driver *driver = first->driver;
    struct CUevent_st *event = NULL;
    int is_pushed = ccu_enter(first);
    int result = driver->event_create(&event, CCU_EVENT_DISABLE_TIMING);
    hob_status status;

    if (!result)
        result = driver->event_record(event, first->stream);
    status = ccu_check(first, "a copy between devices", result, NULL);
    ccu_leave(first, is_pushed);
    is_pushed = ccu_enter(second);
    if (!status)
        status = ccu_check(second, "a copy between devices",
                           driver->stream_wait_event(second->stream, event, 0),
                           NULL);
    /* The driver keeps it for as long as it is waited for. */
    if (event)
        (void)driver->event_destroy(event);
    ccu_leave(second, is_pushed);
    return status;
}

/* Let OTHER read and write DEVICE's pool, once. Where it cannot, the driver
 * copies by way of the host. */
static void open_pool(struct ccu_device *device, const struct ccu_device *other)
{
    const uint64_t bit = UINT64_C(1) << (other->ordinal % 64);
    const struct ccu_access access = {
        CCU_LOCATION_DEVICE, other->physical->handle, CCU_ACCESS_READ_WRITE};
    int can = 0, is_pushed;

    if (atomic_fetch_or(&device->peers, bit) & bit)
        return;
    is_pushed = ccu_enter(device);
    if (!device->driver->can_access(&can, other->physical->handle,
                                    device->physical->handle) &&
        can)
        (void)device->driver->pool_access(device->memory.pool, &access, 1);
    ccu_leave(device, is_pushed);
}

static hob_status copy_between(struct ccu_device *device, ccu_address to,
                               struct ccu_device *other, ccu_address from,
                               uint64_t bytes)
{
    hob_status status;
    int is_pushed;

    if (ccu_is_recording(device))
        return ccu_refuse(device, "copies from another device");
    if (ccu_is_recording(other))
        return ccu_refuse(other, "copies to another device");
    status = ccu_check_lost(device, NULL);
    if (!status)
        status = ccu_check_lost(other, NULL);
    if (status)
        return status;
    open_pool(device, other);
    open_pool(other, device);
    status = order(other, device);
    if (status)
        return status;
    is_pushed = ccu_enter(device);
    status = ccu_check(device, "cuMemcpyPeerAsync",
                       device->driver->copy_peer(to, device->context, from,
                                                 other->context, (size_t)bytes,
                                                 device->stream),
                       NULL);
    ccu_leave(device, is_pushed);
    return status ? status : order(device, other);
}

hob_status ccu_device_copy(void *opened, void *data, void *from_opened,
                           const void *from_data, uint64_t bytes)
{
    const ccu_address to = (ccu_address)(uintptr_t)data;
    const ccu_address from = (ccu_address)(uintptr_t)from_data;

    return opened == from_opened
               ? copy_within(opened, to, from, bytes)
               : copy_between(opened, to, from_opened, from, bytes);
}
