/* SPDX-License-Identifier: Apache-2.0 */
#include "copy.h"

#include "map.h"

/* Elements are moved as integers of their size, so that NaN keeps its bits. */
static uint32_t moved_as(uint32_t dtype)
{
    switch (hob_dtype_size(dtype)) {
    case 1:
        return HOB_DTYPE_U8;
    case 2:
        return HOB_DTYPE_U16;
    case 4:
        return HOB_DTYPE_U32;
    default:
        return HOB_DTYPE_U64;
    }
}

hob_status cube_copy(struct cube_device *device, struct hob_call *call,
                     const struct hob_view *to, const struct hob_view *from)
{
    static const struct cube_map copy = {"map_copy", CUBE_CHECK_NONE, 0};
    struct hob_view in = *from, out = *to;
    struct cube_operand operand = {.view = &in};

    in.dtype = out.dtype = (uint8_t)moved_as(from->dtype);
    return cube_map_run(device, call, &copy, &out, &operand, 1);
}

static hob_status contiguous(void *device, struct hob_call *call)
{
    return cube_copy(device, call, hob_ret_view(call, 0),
                     hob_arg_view(call, 0));
}

static const uint32_t any_mask[] = {HOB_MASK_ANY};

static const struct hob_entry entries[] = {
    {
        .op = "contiguous",
        .signature = "(x: Any) -> x",
        .dtypes = any_mask,
        .dtype_count = 1,
        .execute = contiguous,
    },
};

const struct cube_entries cube_copy_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
