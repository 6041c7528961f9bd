/* SPDX-License-Identifier: Apache-2.0 */
#include "flag.h"

#include "launch.h"

hob_status cube_flag_begin(struct cube_flag *flag, struct cube_device *device,
                           struct hob_call *call)
{
    static const uint32_t none = CUBE_FLAG_NONE;
    const struct cube_runtime *runtime = device->runtime;
    hob_status st = HOB_OK;

    flag->data = NULL;
    flag->is_idle = 0;
    if (runtime->flag_later)
        st = runtime->flag_later(device, call->op_name, &flag->data);
    flag->is_later = flag->data != NULL;
    if (flag->is_later)
        return HOB_OK;
    if (!st)
        st = runtime->alloc(device, sizeof(none), &flag->data);
    if (st)
        return cube_fail(device, call, st, NULL);
    st = runtime->upload(device, flag->data, &none, sizeof(none));
    if (!st)
        return HOB_OK;
    runtime->free(device, flag->data, sizeof(none));
    return cube_fail(device, call, st, NULL);
}

hob_status cube_flag_begin_idle(struct cube_flag *flag,
                                struct cube_device *device,
                                struct hob_call *call)
{
    hob_status st =
        device->runtime->alloc(device, sizeof(uint32_t), &flag->data);

    flag->is_later = 0;
    flag->is_idle = 1;
    return st ? cube_fail(device, call, st, NULL) : HOB_OK;
}

hob_status cube_flag_end(struct cube_flag *flag, struct cube_device *device,
                         struct hob_call *call, hob_status st,
                         uint32_t *out_value)
{
    const struct cube_runtime *runtime = device->runtime;

    *out_value = CUBE_FLAG_NONE;
    if (flag->is_later)
        return st;
    if (!st && !flag->is_idle) {
        st = runtime->download(device, out_value, flag->data,
                               sizeof(*out_value));
        if (st)
            st = cube_fail(device, call, st, NULL);
    }
    runtime->free(device, flag->data, sizeof(*out_value));
    return st;
}
