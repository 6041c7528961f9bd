/* SPDX-License-Identifier: Apache-2.0 */
#include "indices.h"

#include "space.h"
#include "texts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct cube_program program = {
    .name = "outside",
    .text = cube_text_outside,
    .buffers = {{"indices", 0}, {"bad", CUBE_WRITTEN | CUBE_ATOMIC}},
    .params = {{"count", CUBE_INDEX, 0},
               {"size", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("indices")},
    .constants = {"RANK"},
    .flags = CUBE_SPACES,
};

/* "3, 0" and the offset of element NUMBER of VIEW. */
static int64_t locate(const struct hob_view *view, int64_t number, char *text,
                      size_t text_size)
{
    int64_t at[HOB_MAX_RANK], offset = 0;
    size_t used = 0;

    for (uint32_t i = view->rank; i-- > 0;) {
        at[i] = number % view->shape[i];
        number /= view->shape[i];
        offset += at[i] * view->strides[i];
    }
    text[0] = '\0';
    for (uint32_t i = 0; i < view->rank && used < text_size; i++)
        used += (size_t)snprintf(text + used, text_size - used, "%s%" PRId64,
                                 i ? ", " : "", at[i]);
    return offset;
}

/* The integer of DTYPE whose bytes are at BYTES. */
static int64_t integer_of(const unsigned char *bytes, uint32_t dtype)
{
    const uint32_t size = hob_dtype_size(dtype);
    const uint32_t drop = 64 - 8 * size;
    uint64_t bits = 0;

    for (uint32_t i = size; i-- > 0;)
        bits = bits << 8 | bytes[i];
    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED)
        return (int64_t)(bits << drop) >> drop;
    return (int64_t)bits;
}

hob_status cube_indices_fail(struct cube_device *device, struct hob_call *call,
                             const struct hob_view *indices, int64_t number,
                             int64_t size)
{
    const uint32_t bytes = hob_dtype_size(indices->dtype);
    unsigned char element[8];
    char text[HOB_MAX_RANK * 24];
    const int64_t offset = locate(indices, number, text, sizeof(text));
    hob_status st = device->runtime->download(
        device, element, (const char *)indices->data + offset * (int64_t)bytes,
        bytes);

    if (st)
        return cube_fail(device, call, st, NULL);
    return call->host->fail(
        call, HOB_ERR_RANGE,
        "%s: indices[%s] is %" PRId64 ", outside of 0..%" PRId64
        " (negative indices do not count from the end)",
        call->op_name, text, integer_of(element, indices->dtype), size - 1);
}

static hob_status launch(struct cube_device *device, struct hob_call *call,
                         const struct hob_view *indices, int64_t size,
                         const struct cube_flag *flag)
{
    struct cube_space space;
    struct cube_job job;

    cube_space_init(&space, indices->rank, indices->shape);
    cube_space_add(&space, indices);
    cube_space_collapse(&space);
    cube_job_init(&job, device, call, &program);
    cube_job_operand(&job, &space, 0);
    cube_job_memory(&job, flag->data, HOB_DTYPE_U32, 1);
    cube_job_i64(&job, space.count);
    cube_job_i64(&job, size);
    cube_job_reach(&job, size);
    cube_job_space(&job, &space);
    cube_job_strides(&job, &space, 0);
    cube_job_constant(&job, (int32_t)space.rank);
    return cube_job_run(&job,
                        cube_groups(device, space.count, CUBE_GROUP_SIZE));
}

/* Whether all elements of argument ARG of CALL are known to be indices of a
 * dimension of SIZE. */
static int are_known(const struct hob_call *call, uint32_t arg, int64_t size)
{
    int64_t low, high;

    return call->host->arg_range(call, arg, &low, &high) && low >= 0 &&
           high < size;
}

hob_status cube_indices_flag(struct cube_flag *flag, struct cube_device *device,
                             struct hob_call *call, uint32_t arg, int64_t size)
{
    return are_known(call, arg, size) ? cube_flag_begin_idle(flag, device, call)
                                      : cube_flag_begin(flag, device, call);
}

hob_status cube_indices_begin(struct cube_flag *flag,
                              struct cube_device *device, struct hob_call *call,
                              uint32_t arg, const struct hob_view *indices,
                              int64_t size)
{
    hob_status st = cube_indices_flag(flag, device, call, arg, size);

    if (st || flag->is_idle)
        return st;
    st = launch(device, call, indices, size, flag);
    return st ? cube_indices_end(flag, device, call, st, indices, size)
              : HOB_OK;
}

hob_status cube_indices_end(struct cube_flag *flag, struct cube_device *device,
                            struct hob_call *call, hob_status st,
                            const struct hob_view *indices, int64_t size)
{
    uint32_t bad;

    st = cube_flag_end(flag, device, call, st, &bad);
    return st || bad == CUBE_FLAG_NONE
               ? st
               : cube_indices_fail(device, call, indices, bad, size);
}
