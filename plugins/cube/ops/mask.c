/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask.c - mask_select: how many elements each group has, running sums of
 * those, then the elements. Reading the whole number, which is the size of the
 * result, waits for the device.
 */
#include "../cube.h"
#include "../move.h"
#include "../scan.h"
#include "../texts.h"

#include <inttypes.h>

enum { ITEMS = 8, PART = CUBE_GROUP_SIZE * ITEMS };

static const struct cube_program program = {
    .name = "mask_select",
    .text = cube_text_mask,
    .buffers = {{"out", CUBE_WRITTEN},
                {"x", 0},
                {"mask", 0},
                {"counts", CUBE_WRITTEN}},
    .params = {{"count", CUBE_INDEX, 0},
               {"items", CUBE_INDEX, 0},
               CUBE_SPACE_PARAMS,
               CUBE_OPERAND_PARAMS("x"),
               CUBE_OPERAND_PARAMS("mask")},
    .shared = {{"scratch", "int", "2 * GROUP_SIZE"}},
    .constants = {"RANK", "COUNTING", "ITEMS"},
    .flags = CUBE_SPACES,
};

struct run {
    struct cube_space space; /* operands x, mask */
    int64_t parts;
    struct hob_view counts;
};

/* Count elements where OUT is NULL, else put them there. */
static hob_status launch(struct cube_device *device, struct hob_call *call,
                         const struct run *run, const struct hob_view *out)
{
    struct cube_job job;

    cube_job_init(&job, device, call, &program);
    if (out) {
        cube_job_memory(&job, out->data, run->space.dtypes[0], out->shape[0]);
        cube_job_operand(&job, &run->space, 0);
    } else {
        cube_job_absent(&job);
        cube_job_absent(&job);
    }
    cube_job_operand(&job, &run->space, 1);
    cube_job_memory(&job, run->counts.data, run->counts.dtype, run->parts);
    cube_job_i64(&job, run->space.count);
    cube_job_i64(&job, run->parts);
    cube_job_space(&job, &run->space);
    cube_job_strides(&job, &run->space, 0);
    cube_job_strides(&job, &run->space, 1);
    cube_job_constant(&job, (int32_t)run->space.rank);
    cube_job_constant(&job, out == NULL);
    cube_job_constant(&job, ITEMS);
    return cube_job_run(&job, cube_groups(device, run->parts, 1));
}

/* Wait for how many elements there are. */
static hob_status read_total(struct cube_device *device, struct hob_call *call,
                             const struct run *run, int64_t *out_total)
{
    const uint32_t size = hob_dtype_size(run->counts.dtype);
    const char *last =
        (const char *)run->counts.data + (run->parts - 1) * (int64_t)size;
    int32_t narrow = 0;
    hob_status st;

    if (size == 8)
        st = device->runtime->download(device, out_total, last, size);
    else {
        st = device->runtime->download(device, &narrow, last, size);
        *out_total = narrow;
    }
    return st ? cube_fail(device, call, st, NULL) : HOB_OK;
}

static hob_status run_parts(struct cube_device *device, struct hob_call *call,
                            const struct run *run)
{
    struct hob_meta meta = {.dtype = hob_arg_view(call, 0)->dtype, .rank = 1};
    hob_status st = launch(device, call, run, NULL);

    if (!st)
        st = cube_scan_run(device, call, CUBE_SCAN_SUM, &run->counts,
                           &run->counts, 0);
    if (!st)
        st = read_total(device, call, run, &meta.shape[0]);
    if (!st)
        st = call->host->result(call, 0, &meta);
    return st ? st : launch(device, call, run, hob_ret_view(call, 0));
}

static hob_status mask_select(void *opened, struct hob_call *call)
{
    struct cube_device *device = opened;
    const struct hob_view *x = hob_arg_view(call, 0);
    struct hob_meta meta = {.dtype = x->dtype, .rank = 1};
    struct run run;
    uint64_t bytes;
    hob_status st;

    cube_space_init(&run.space, x->rank, x->shape);
    cube_space_add(&run.space, x);
    cube_space_add(&run.space, hob_arg_view(call, 1));
    if (run.space.count == 0)
        return call->host->result(call, 0, &meta);
    cube_space_collapse(&run.space);
    run.space.dtypes[0] = cube_bits_dtype(hob_dtype_size(x->dtype));
    run.parts = (run.space.count + PART - 1) / PART;
    run.counts = (struct hob_view){
        .dtype = run.space.count > INT32_MAX ? HOB_DTYPE_I64 : HOB_DTYPE_I32,
        .rank = 1,
        .shape = {run.parts},
        .strides = {1},
    };
    bytes = (uint64_t)run.parts * hob_dtype_size(run.counts.dtype);
    st = device->runtime->alloc(device, bytes, &run.counts.data);
    if (st)
        return call->host->fail(call, st,
                                "%s: no memory to count %" PRId64 " elements",
                                call->op_name, run.space.count);
    st = run_parts(device, call, &run);
    device->runtime->free(device, run.counts.data, bytes);
    return st;
}

static const uint32_t mask_masks[] = {HOB_MASK_ANY, HOB_MASK_BOOL};

static const struct hob_entry entries[] = {
    {
        .op = "mask_select",
        .signature = "(x: Any, mask: Bool) -> x",
        .dtypes = mask_masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_DYNAMIC,
        .execute = mask_select,
    },
};

const struct cube_entries cube_mask_entries = {entries, sizeof(entries) /
                                                            sizeof(entries[0])};
