/* SPDX-License-Identifier: Apache-2.0 */
#include "map.h"

#include "move.h"

#include <inttypes.h>
#include <string.h>

enum {
    OPERANDS = 3,
    WIDEST = 8,
    /* Elements of an operand that are brought together at a time. */
    PART = 1 << 17
};

/* What all pieces of a call share. */
struct map_run {
    struct flex_device *device;
    flex_map_fn fn;
    flex_cast_fn load[OPERANDS]; /* to f32; NULL: as stored */
    flex_cast_fn store;          /* from f32; NULL: as computed */
    struct flex_loop out;
    struct flex_loop in[OPERANDS];
    const void *fixed[OPERANDS]; /* FLEX_BLOCK equal elements; NULL: a view */
    int skips[OPERANDS];         /* brought together in parts first */
    uint32_t count;
    int past;       /* the result goes past the caches */
    int64_t row;    /* blocks end at multiples of it; 0: anywhere */
    int64_t period; /* blocks are a multiple of it long; 0: of any length */
    int64_t bad;    /* the least index without a result, atomic; INT64_MAX */
};

/* Blocks of one operand: as stored, and in f32. */
struct block {
    _Alignas(FLEX_ALIGN) unsigned char stored[FLEX_BLOCK * WIDEST];
    _Alignas(FLEX_ALIGN) float single[FLEX_BLOCK];
    /* What the block holds: COUNT elements of a broadcast operand from KEY on,
     * which may well be those of the next block. */
    int64_t key, held;
};

/* What one thread has of a piece. */
struct piece {
    struct block blocks[OPERANDS + 1]; /* the last is the result's */
    const char *part[OPERANDS];        /* operands brought together, or NULL */
    int64_t first;                     /* the part's first element */
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
                                 int64_t first, int64_t n, struct piece *piece)
{
    const struct flex_loop *loop = &run->in[i];
    struct block *block = &piece->blocks[i];
    const void *data;
    int64_t key;

    if (i >= run->count)
        return NULL;
    if (run->fixed[i])
        return run->fixed[i];
    if (piece->part[i]) {
        data = piece->part[i] + (first - piece->first) * (int64_t)loop->size;
    } else {
        key = flex_loop_repeat_key(loop, first, n);
        if (key < 0 || key != block->key || n > block->held) {
            data = flex_loop_fetch(loop, first, n, block->stored);
            block->key = data == block->stored ? key : -1;
            block->held = n;
        } else {
            data = block->stored;
        }
    }
    if (!run->load[i])
        return data;
    run->load[i](block->single, data, n);
    return block->single;
}

/* Elements FIRST .. FIRST + N - 1, N <= FLEX_BLOCK. */
static int64_t map_block(struct map_run *run, int64_t first, int64_t n,
                         struct piece *piece)
{
    const void *in[OPERANDS];
    struct block *own = &piece->blocks[OPERANDS];
    const uint32_t size = run->out.size;
    const int dense = flex_loop_dense(&run->out);
    char *out = run->out.data + first * (int64_t)size;
    void *stored = dense && !run->past ? (void *)out : (void *)own->stored;
    void *computed = run->store ? (void *)own->single : stored;
    int64_t bad;

    for (uint32_t i = 0; i < OPERANDS; i++)
        in[i] = operand_block(run, i, first, n, piece);
    bad = run->fn(computed, in[0], in[1], in[2], n);
    if (bad >= 0)
        return first + bad;
    if (run->store)
        run->store(stored, computed, n);
    if (run->past)
        flex_move_kernels(run->device)->stream(out, stored, n * (int64_t)size);
    else if (!dense)
        flex_loop_scatter(&run->out, first, n, stored);
    return -1;
}

/* Elements FIRST .. LAST - 1, block by block; nonzero if all have results. */
static int map_blocks(struct map_run *run, int64_t first, int64_t last,
                      struct piece *piece)
{
    const int64_t most =
        run->period ? FLEX_BLOCK - FLEX_BLOCK % run->period : FLEX_BLOCK;

    while (first < last) {
        int64_t n = last - first < most ? last - first : most;
        int64_t bad;

        if (run->row && n > run->row - first % run->row)
            n = run->row - first % run->row;
        bad = map_block(run, first, n, piece);
        if (bad >= 0) {
            note_bad(run, bad);
            return 0;
        }
        first += n;
    }
    if (run->past)
        flex_move_kernels(run->device)->fence();
    return 1;
}

/* Bring N elements from FIRST on of the operands that skip together; without
 * memory for it they are fetched by blocks. */
static void begin_part(const struct map_run *run, int64_t first, int64_t n,
                       struct piece *piece)
{
    piece->first = first;
    for (uint32_t i = 0; i < run->count; i++) {
        char *part;

        if (!run->skips[i])
            continue;
        part = flex_scratch_take(run->device, (uint64_t)n * run->in[i].size);
        if (part)
            flex_move_range(run->device, &run->in[i], first, n, part);
        piece->part[i] = part;
    }
}

static void end_part(const struct map_run *run, int64_t n, struct piece *piece)
{
    for (uint32_t i = 0; i < run->count; i++) {
        flex_scratch_give(run->device, (void *)(uintptr_t)piece->part[i],
                          (uint64_t)n * run->in[i].size);
        piece->part[i] = NULL;
    }
}

static void map_piece(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    struct map_run *run = context;
    const int skips = run->skips[0] | run->skips[1] | run->skips[2];
    struct piece piece;
    int good = 1;

    (void)worker;
    for (uint32_t i = 0; i < OPERANDS; i++) {
        piece.part[i] = NULL;
        piece.blocks[i].key = -1;
    }
    if (!skips) {
        map_blocks(run, first, last, &piece);
        return;
    }
    while (first < last && good) {
        const int64_t n = last - first < PART ? last - first : PART;

        begin_part(run, first, n, &piece);
        good = map_blocks(run, first, first + n, &piece);
        end_part(run, n, &piece);
        first += n;
    }
}

/* Cheap elements are cut finely, so that no thread waits for long for the last
 * piece, once there are enough of them to be worth a thread. */
enum { CHEAP_PIECE = 1 << 14, CHEAP_LEAST = 6 * CHEAP_PIECE };

static int64_t grain_of(enum flex_map map, int64_t count)
{
    int dear = (map >= FLEX_MAP_EXP && map <= FLEX_MAP_ATANH) ||
               map == FLEX_MAP_POW || map == FLEX_MAP_ATAN2 ||
               map == FLEX_MAP_HYPOT || map == FLEX_MAP_GELU ||
               map == FLEX_MAP_SIGMOID || map == FLEX_MAP_GELU_BACKWARD ||
               map == FLEX_MAP_REMAINDER ||
               (map >= FLEX_MAP_SILU && map <= FLEX_MAP_GLU);

    if (dear)
        return FLEX_GRAIN_DEAR;
    return count < CHEAP_LEAST ? count : CHEAP_PIECE;
}

/* Choose where blocks end. Inside one row of an operand that is dense there
 * is no need of a copy, and one that repeats short rows may keep its copy. */
static void choose_blocks(struct map_run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        const struct flex_loop *loop = &run->in[i];
        int64_t inner;

        if (run->fixed[i] || loop->rank < 2 || run->skips[i])
            continue;
        inner = loop->shape[loop->rank - 1];
        if (inner < FLEX_RUN_LEAST && loop->rank == 2 && loop->strides[0] == 0)
            run->period = inner;
        else if (inner >= FLEX_RUN_LEAST && (run->row == 0 || inner < run->row))
            run->row = inner;
    }
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

    run.device = device;
    run.fn = own ? own : kernels->map[map][HOB_DTYPE_F32];
    run.store = !own && out->dtype == dtype ? kernels->store_f32[dtype] : NULL;
    run.count = count;
    run.bad = INT64_MAX;
    run.row = 0;
    run.period = 0;
    flex_loop_init(&run.out, out);
    /* Not where, whose loads under a mask wait for stores to a block. */
    run.past = map != FLEX_MAP_WHERE && flex_loop_dense(&run.out) &&
               flex_goes_past(device, (uint64_t)run.out.count * run.out.size);
    for (uint32_t i = 0; i < count; i++) {
        const struct hob_view *view = operands[i].view;

        run.load[i] = own ? NULL : kernels->load_f32[dtype];
        run.fixed[i] = NULL;
        run.skips[i] = 0;
        if (view) {
            flex_loop_broadcast(&run.in[i], view, out->rank, out->shape);
            run.skips[i] = flex_loop_is_parted(&run.in[i]);
            /* In place the lines are in the cache already. */
            run.past = run.past && view->data != out->data;
        } else
            fix_operand(&run, i, &operands[i], hob_dtype_size(dtype),
                        run.out.count, &fixed[i]);
    }
    for (uint32_t i = count; i < OPERANDS; i++)
        run.skips[i] = 0;
    choose_blocks(&run);
    flex_parallel(device, run.out.count, grain_of(map, run.out.count),
                  map_piece, &run);
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
