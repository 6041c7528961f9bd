/* SPDX-License-Identifier: Apache-2.0 */
#include "splits.h"

#include "texts.h"

#include <inttypes.h>

enum {
    SOME_PROCESSORS = 64,
    MOST_SPLITS = 64,
    /* The least length of a split. */
    SPLIT_LEAST = 256
};

static const struct cube_program sum_program = {
    .name = "matmul_sum",
    .text = cube_text_matmul_sum,
    .buffers = {{"out", CUBE_WRITTEN}, {"part", 0}},
    .params = {{"count", CUBE_INDEX, 0}, {"splits", CUBE_INDEX, 0}},
};

int64_t cube_processors(const struct cube_device *device)
{
    return device->limits.processors ? device->limits.processors
                                     : SOME_PROCESSORS;
}

void cube_split(const struct cube_device *device, int64_t tiles, int64_t length,
                int64_t step, int64_t *out_splits, int64_t *out_split_length)
{
    int64_t splits = 2 * cube_processors(device) / tiles;

    if (splits > length / SPLIT_LEAST)
        splits = length / SPLIT_LEAST;
    if (splits > MOST_SPLITS)
        splits = MOST_SPLITS;
    if (splits < 1)
        splits = 1;
    *out_split_length =
        cube_divide_up(cube_divide_up(length, splits), step) * step;
    *out_splits = length ? cube_divide_up(length, *out_split_length) : 1;
}

static uint64_t bytes_of(const struct cube_parts *parts)
{
    return (uint64_t)(parts->count * parts->splits) *
           hob_dtype_size(parts->dtype);
}

hob_status cube_parts_take(struct cube_parts *parts, struct cube_device *device,
                           struct hob_call *call, const struct hob_view *out,
                           uint32_t dtype, int64_t splits)
{
    hob_status status;

    parts->out = out;
    parts->count = hob_view_count(out);
    parts->splits = splits;
    parts->dtype = dtype;
    status = device->runtime->alloc(device, bytes_of(parts), &parts->data);
    if (status)
        return call->host->fail(
            call, status, "%s: no memory for %" PRId64 " parts of the result",
            call->op_name, splits);
    return HOB_OK;
}

static hob_status add_up(const struct cube_parts *parts,
                         struct cube_device *device, struct hob_call *call)
{
    struct cube_job job;

    cube_job_init(&job, device, call, &sum_program);
    cube_job_memory(&job, parts->out->data, parts->out->dtype, parts->count);
    cube_job_memory(&job, parts->data, parts->dtype,
                    parts->count * parts->splits);
    cube_job_i64(&job, parts->count);
    cube_job_i64(&job, parts->splits);
    return cube_job_run(&job,
                        cube_groups(device, parts->count, CUBE_GROUP_SIZE));
}

hob_status cube_parts_add(const struct cube_parts *parts,
                          struct cube_device *device, struct hob_call *call,
                          hob_status status)
{
    if (!status)
        status = add_up(parts, device, call);
    device->runtime->free(device, parts->data, bytes_of(parts));
    return status;
}
