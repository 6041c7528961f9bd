/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include <inttypes.h>
#include <string.h>

enum { OPERANDS = 3, WIDEST = 8, ROW_LEAST = 256 };

/* What all pieces of a call share. */
struct map_run {
    flex_map_fn fn;
    flex_cast_fn load[OPERANDS]; /* to f32; NULL: as stored */
    flex_cast_fn store;          /* from f32; NULL: as computed */
    struct flex_loop out;
    struct flex_loop in[OPERANDS];
    const void *fixed[OPERANDS]; /* FLEX_BLOCK equal elements; NULL: a view */
    uint32_t count;
    int64_t row; /* blocks end at multiples of it; 0: anywhere */
    int64_t bad; /* the least index without a result, atomic; INT64_MAX */
};

/* Blocks of one operand: as stored, and in f32. */
struct block {
    _Alignas(FLEX_ALIGN) unsigned char stored[FLEX_BLOCK * WIDEST];
    _Alignas(FLEX_ALIGN) float single[FLEX_BLOCK];
};

static void note_bad(struct map_run *run, int64_t index)
{
    int64_t seen = __atomic_load_n(&run->bad, __ATOMIC_RELAXED);

    while (index < seen &&
           !__atomic_compare_exchange_n(&run->bad, &seen, index, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
}

static const void *operand_block(const struct map_run *run, uint32_t i,
                                 int64_t first, int64_t n, struct block *block)
{
    const void *data;

    if (i >= run->count)
        return NULL;
    if (run->fixed[i])
        return run->fixed[i];
    data = flex_loop_fetch(&run->in[i], first, n, block->stored);
    if (!run->load[i])
        return data;
    run->load[i](block->single, data, n);
    return block->single;
}

/* Elements FIRST .. FIRST + N - 1, N <= FLEX_BLOCK. */
static int64_t map_block(struct map_run *run, int64_t first, int64_t n,
                         struct block *blocks)
{
    const void *in[OPERANDS];
    struct block *own = &blocks[OPERANDS];
    int dense = flex_loop_dense(&run->out);
    void *stored = dense ? (void *)(run->out.data + first * run->out.size)
                         : (void *)own->stored;
    void *computed = run->store ? (void *)own->single : stored;
    int64_t bad;

    for (uint32_t i = 0; i < OPERANDS; i++)
        in[i] = operand_block(run, i, first, n, &blocks[i]);
    bad = run->fn(computed, in[0], in[1], in[2], n);
    if (bad >= 0)
        return first + bad;
    if (run->store)
        run->store(stored, computed, n);
    if (!dense)
        flex_loop_scatter(&run->out, first, n, stored);
    return -1;
}

static void map_piece(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    struct map_run *run = context;
    struct block blocks[OPERANDS + 1];

    (void)worker;
    while (first < last) {
        int64_t n = last - first < FLEX_BLOCK ? last - first : FLEX_BLOCK;
        int64_t bad;

        if (run->row && n > run->row - first % run->row)
            n = run->row - first % run->row;
        bad = map_block(run, first, n, blocks);
        if (bad >= 0) {
            note_bad(run, bad);
            return;
        }
        first += n;
    }
}

static int64_t grain_of(enum flex_map map)
{
    int dear = (map >= FLEX_MAP_EXP && map <= FLEX_MAP_ATANH) ||
               map == FLEX_MAP_POW || map == FLEX_MAP_ATAN2 ||
               map == FLEX_MAP_HYPOT || map == FLEX_MAP_GELU ||
               map == FLEX_MAP_SIGMOID || map == FLEX_MAP_GELU_BACKWARD ||
               map == FLEX_MAP_REMAINDER ||
               (map >= FLEX_MAP_SILU && map <= FLEX_MAP_GLU);

    return dear ? FLEX_GRAIN_DEAR : FLEX_GRAIN_CHEAP;
}

/* Rows of operands that are not dense: a block inside one row needs no copy
 * where the row itself is dense. */
static int64_t row_of(const struct map_run *run)
{
    int64_t row = 0;

    for (uint32_t i = 0; i < run->count; i++) {
        const struct flex_loop *loop = &run->in[i];
        int64_t inner;

        if (run->fixed[i] || loop->rank < 2)
            continue;
        inner = loop->shape[loop->rank - 1];
        if (inner >= ROW_LEAST && (row == 0 || inner < row))
            row = inner;
    }
    return row;
}

/* Fill BLOCK with operand I's scalar in the dtype computed in. */
static void fix_operand(struct map_run *run, uint32_t i,
                        const struct flex_operand *operand, uint32_t size,
                        int64_t count, struct block *block)
{
    int64_t n = count < FLEX_BLOCK ? count : FLEX_BLOCK;
    uint64_t single = 0;

    if (run->load[i]) {
        if (operand->is_wide)
            single = operand->scalar;
        else
            run->load[i](&single, &operand->scalar, 1);
        flex_copy_strided(block->stored, 1, &single, 0, n, sizeof(float));
    } else {
        flex_copy_strided(block->stored, 1, &operand->scalar, 0, n, size);
    }
    run->fixed[i] = block->stored;
}

hob_status flex_map_run(struct flex_device *device, struct hob_call *call,
                        enum flex_map map, uint32_t dtype,
                        const struct hob_view *out,
                        const struct flex_operand *operands, uint32_t count)
{
    const struct flex_kernels *kernels = device->kernels;
    struct map_run run;
    struct block fixed[OPERANDS];
    flex_map_fn own = kernels->map[map][dtype];

    run.fn = own ? own : kernels->map[map][HOB_DTYPE_F32];
    run.store = !own && out->dtype == dtype ? kernels->store_f32[dtype] : NULL;
    run.count = count;
    run.bad = INT64_MAX;
    flex_loop_init(&run.out, out);
    for (uint32_t i = 0; i < count; i++) {
        const struct hob_view *view = operands[i].view;

        run.load[i] = own ? NULL : kernels->load_f32[dtype];
        run.fixed[i] = NULL;
        if (view)
            flex_loop_broadcast(&run.in[i], view, out->rank, out->shape);
        else
            fix_operand(&run, i, &operands[i], hob_dtype_size(dtype),
                        run.out.count, &fixed[i]);
    }
    run.row = row_of(&run);
    flex_parallel(device, run.out.count, grain_of(map), map_piece, &run);
    if (run.bad != INT64_MAX)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: division by zero at element %" PRId64
                                "; mask the zeros out of the divisor first",
                                call->op_name, run.bad);
    return HOB_OK;
}

void flex_operand_scalar(struct flex_operand *operand, const hob_value *scalar,
                         uint32_t dtype)
{
    operand->view = NULL;
    operand->scalar = 0;
    operand->is_wide = 0;
    flex_scalar_store(scalar, dtype, &operand->scalar);
}

void flex_operand_wide(struct flex_operand *operand, double scalar,
                       uint32_t dtype)
{
    hob_value value = hob_f64(scalar);

    flex_operand_scalar(operand, &value,
                        dtype == HOB_DTYPE_F64 ? dtype : HOB_DTYPE_F32);
    operand->is_wide = 1;
}
