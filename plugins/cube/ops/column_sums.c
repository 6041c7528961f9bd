/* SPDX-License-Identifier: Apache-2.0 */
#include "column_sums.h"

#include "../splits.h"
#include "../texts.h"

#include <inttypes.h>

enum {
    ROWS_FEW = 1024, /* one launch does them */
    ACROSS_LEAST = 8,
    ACROSS_USUAL = 32,
    STEPS_LEAST = 4, /* rows of each invocation, in a part */
    GROUPS = 4,      /* for each processor */
    GROUP_LEAST = 64
};

static const struct cube_program program = {
    .name = "column_sums",
    .text = cube_text_column_sums,
    .buffers = {{"out", CUBE_WRITTEN}, {"out_2", CUBE_WRITTEN}, {"x", 0}},
    .params = {{"rows", CUBE_INDEX, 0},
               {"columns", CUBE_INDEX, 0},
               {"step", CUBE_INDEX, 0},
               {"apart", CUBE_INDEX, 0},
               {"parts", CUBE_INDEX, 0},
               {"part_rows", CUBE_INDEX, 0}},
    .shared = {{"lanes", "ACCUM", "GROUP_SIZE * WIDE"}},
    .constants = {"ACROSS", "WIDE", "PAIR"},
    .symbols = {"ACCUM"},
};

/* One launch: OUT[i] row-major, parts x columns. */
struct pass {
    const void *data;
    uint32_t dtype, out_dtype;
    const void *out[2];
    int64_t rows, columns, step, apart;
    int64_t parts, part_rows;
    uint32_t across, along, wide;
};

static int64_t blocks_of(const struct pass *pass)
{
    return cube_divide_up(pass->columns, (int64_t)pass->across * pass->wide);
}

/* How many columns and rows a group does at a time: the more columns, the more
 * of a row is read at once, the fewer, the more groups there are. */
static void shape_group(struct pass *pass, int64_t groups)
{
    const uint32_t wide = 16 / hob_dtype_size(pass->dtype);
    const int64_t all = pass->columns | pass->step | pass->apart;
    uint32_t most;

    pass->wide =
        (uintptr_t)pass->data % 16 == 0 && all % (int64_t)wide == 0 ? wide : 1;
    most = cube_power_from(cube_divide_up(pass->columns, pass->wide),
                           CUBE_GROUP_SIZE);
    pass->across = most < ACROSS_USUAL ? most : ACROSS_USUAL;
    while (pass->rows <= ROWS_FEW && pass->across > ACROSS_LEAST &&
           blocks_of(pass) < groups)
        pass->across /= 2;
    pass->along = cube_power_from(pass->rows / STEPS_LEAST,
                                  CUBE_GROUP_SIZE / pass->across);
    while (pass->across * pass->along < CUBE_GROUP_SIZE &&
           pass->across < most && blocks_of(pass) > groups)
        pass->across *= 2;
    while (pass->across * pass->along < GROUP_LEAST)
        pass->along *= 2;
}

static void split(struct pass *pass, const struct cube_device *device)
{
    const int64_t groups = cube_processors(device) * GROUPS;

    shape_group(pass, groups);
    pass->parts = 1;
    if (pass->rows > ROWS_FEW) {
        const int64_t most = pass->rows / (pass->along * STEPS_LEAST);

        pass->parts = cube_divide_up(groups, blocks_of(pass));
        if (pass->parts > most)
            pass->parts = most;
    }
    pass->part_rows = cube_divide_up(pass->rows, pass->parts);
    if (pass->part_rows)
        pass->parts = cube_divide_up(pass->rows, pass->part_rows);
}

static hob_status launch(const struct pass *pass, struct cube_device *device,
                         struct hob_call *call)
{
    const int is_pair = pass->out[1] != NULL;
    const int64_t cells = pass->parts * pass->columns;
    struct cube_job job;

    cube_job_init(&job, device, call, &program);
    job.variant.group_size = pass->across * pass->along;
    cube_job_memory(&job, pass->out[0], pass->out_dtype, cells);
    if (is_pair)
        cube_job_memory(&job, pass->out[1], pass->out_dtype, cells);
    else
        cube_job_absent(&job);
    cube_job_memory(&job, pass->data, pass->dtype,
                    pass->rows ? (pass->rows - 1) * pass->step + pass->columns +
                                     is_pair * pass->apart
                               : 0);
    job.variant.widths[2] = (uint8_t)pass->wide;
    cube_job_i64(&job, pass->rows);
    cube_job_i64(&job, pass->columns);
    cube_job_i64(&job, pass->step);
    cube_job_i64(&job, pass->apart);
    cube_job_i64(&job, pass->parts);
    cube_job_i64(&job, pass->part_rows);
    cube_job_reach(&job, (pass->rows + pass->part_rows + CUBE_GROUP_SIZE) *
                             pass->step);
    cube_job_constant(&job, (int32_t)pass->across);
    cube_job_constant(&job, (int32_t)pass->wide);
    cube_job_constant(&job, is_pair);
    cube_job_symbol(&job, pass->dtype == HOB_DTYPE_F64 ? "double" : "float");
    return cube_job_run(&job, blocks_of(pass) * pass->parts * (1 + is_pair));
}

/* The parts of FIRST to memory, then their sums to where it writes. */
static hob_status run_twice(struct pass *first, struct cube_device *device,
                            struct hob_call *call)
{
    const uint32_t dtype =
        first->dtype == HOB_DTYPE_F64 ? HOB_DTYPE_F64 : HOB_DTYPE_F32;
    /* The second matrix begins at a vector's address. */
    const int64_t cells = cube_divide_up(first->parts * first->columns, 4) * 4;
    const uint64_t bytes =
        (uint64_t)cells * hob_dtype_size(dtype) * (first->out[1] ? 2 : 1);
    struct pass second = {.dtype = dtype,
                          .out_dtype = first->out_dtype,
                          .out = {first->out[0], first->out[1]},
                          .rows = first->parts,
                          .columns = first->columns,
                          .step = first->columns,
                          .apart = cells};
    void *memory;
    hob_status st = device->runtime->alloc(device, bytes, &memory);

    if (st)
        return cube_fail(device, call, st, NULL);
    first->out_dtype = dtype;
    first->out[0] = second.data = memory;
    if (first->out[1])
        first->out[1] =
            (const char *)memory + (uint64_t)cells * hob_dtype_size(dtype);
    st = launch(first, device, call);
    split(&second, device);
    if (!st)
        st = launch(&second, device, call);
    device->runtime->free(device, memory, bytes);
    return st;
}

hob_status cube_column_sums(struct cube_device *device, struct hob_call *call,
                            const struct cube_column_sums *sums)
{
    struct pass pass = {.data = sums->data,
                        .dtype = sums->dtype,
                        .out_dtype = sums->sums[0]->dtype,
                        .out = {sums->sums[0]->data,
                                sums->sums[1] ? sums->sums[1]->data : NULL},
                        .rows = sums->rows,
                        .columns = sums->columns,
                        .step = sums->step,
                        .apart = sums->apart};

    split(&pass, device);
    return pass.parts > 1 ? run_twice(&pass, device, call)
                          : launch(&pass, device, call);
}

static uint64_t parts_bytes(const struct cube_column_sums *sums)
{
    return 2 * (uint64_t)sums->apart * hob_dtype_size(sums->dtype);
}

hob_status cube_column_sums_open(struct cube_device *device,
                                 struct hob_call *call,
                                 struct cube_column_sums *sums)
{
    /* The second matrix begins at a line of its own. */
    const int64_t line = 256 / hob_dtype_size(sums->dtype);
    char *memory = NULL;
    hob_status st;

    sums->step = sums->columns;
    sums->apart = cube_divide_up(sums->rows * sums->columns, line) * line;
    st = device->runtime->alloc(device, parts_bytes(sums),
                                (void **)(void *)&memory);
    if (st)
        return call->host->fail(call, st,
                                "%s: no memory for %" PRIu64 " bytes of sums",
                                call->op_name, parts_bytes(sums));
    sums->data = sums->parts[0] = memory;
    sums->parts[1] = memory + parts_bytes(sums) / 2;
    return HOB_OK;
}

hob_status cube_column_sums_close(struct cube_device *device,
                                  struct hob_call *call,
                                  const struct cube_column_sums *sums,
                                  hob_status status)
{
    if (!status)
        status = cube_column_sums(device, call, sums);
    device->runtime->free(device, sums->parts[0], parts_bytes(sums));
    return status;
}
