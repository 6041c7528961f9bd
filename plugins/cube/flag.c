/* SPDX-License-Identifier: Apache-2.0 */
#include "flag.h"

#include "launch.h"

#include <sched.h>

/* The number of a flag that is the caller's now. */
static uint32_t take(struct cube_device *device)
{
    for (;;) {
        uint64_t taken = atomic_load(&device->flags_taken);
        uint32_t number = 0;

        while (number < CUBE_FLAGS && taken >> number & 1)
            number++;
        if (number == CUBE_FLAGS)
            sched_yield();
        else if (atomic_compare_exchange_weak(&device->flags_taken, &taken,
                                              taken | UINT64_C(1) << number))
            return number;
    }
}

static void give(struct cube_device *device, uint32_t number)
{
    atomic_fetch_and(&device->flags_taken, ~(UINT64_C(1) << number));
}

hob_status cube_flag_begin(struct cube_flag *flag, struct cube_device *device,
                           struct hob_call *call)
{
    const struct cube_runtime *runtime = device->runtime;
    uint32_t *host = NULL;
    void *data;
    hob_status st = HOB_OK;

    flag->data = NULL;
    flag->host = NULL;
    flag->is_idle = 0;
    if (runtime->flag_later)
        st = runtime->flag_later(device, call->op_name, &flag->data);
    if (!st && !flag->data)
        st = runtime->flags(device, &host, &data);
    if (st)
        return cube_fail(device, call, st, NULL);
    if (host) {
        flag->number = take(device);
        flag->host = &host[flag->number];
        flag->data = (uint32_t *)data + flag->number;
    }
    return HOB_OK;
}

hob_status cube_flag_begin_idle(struct cube_flag *flag,
                                struct cube_device *device,
                                struct hob_call *call)
{
    void *data;
    hob_status st = device->runtime->flags(device, &flag->host, &data);

    if (st)
        return cube_fail(device, call, st, NULL);
    flag->data = (uint32_t *)data + CUBE_FLAGS;
    flag->host = NULL;
    flag->is_idle = 1;
    return HOB_OK;
}

hob_status cube_flag_end(struct cube_flag *flag, struct cube_device *device,
                         struct hob_call *call, hob_status st,
                         uint32_t *out_value)
{
    hob_status waited;

    *out_value = CUBE_FLAG_NONE;
    if (!flag->host)
        return st;
    /* What was launched may write to it even if something else failed. */
    waited = device->runtime->wait(device);
    if (!st && waited)
        st = cube_fail(device, call, waited, NULL);
    if (!st)
        *out_value = *(volatile uint32_t *)flag->host;
    *(volatile uint32_t *)flag->host = CUBE_FLAG_NONE;
    give(device, flag->number);
    return st;
}
