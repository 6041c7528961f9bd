/* SPDX-License-Identifier: Apache-2.0 */
#include "move.h"

#include <string.h>

/* Bytes gathered at a time before they go past the caches. */
enum { BLOCK_BYTES = 4096 };

/* One copy, its dimensions sorted by the result's strides and collapsed. */
struct move {
    const struct flex_move_kernels *kernels;
    char *out;
    const char *in;
    int64_t size;  /* of an element; strides are in bytes too */
    uint32_t kind; /* the kernels' index: size = 1 << kind */
    uint32_t rank;
    uint32_t split; /* dimension whose parts go to threads */
    int past;       /* the result goes past the caches */
    int64_t count;
    int64_t shape[HOB_MAX_RANK];
    int64_t out_strides[HOB_MAX_RANK];
    int64_t in_strides[HOB_MAX_RANK];
};

const struct flex_move_kernels *
flex_move_kernels(const struct flex_device *device)
{
    return FLEX_BY_ISA(device->isa, &flex_move);
}

void flex_row_major(struct hob_view *out)
{
    int64_t stride = 1;

    for (uint32_t i = out->rank; i-- > 0;) {
        out->strides[i] = stride;
        stride *= out->shape[i];
    }
}

/* ---- describing ---- */

/* Insert a dimension so that the result's strides fall. Ties keep the order,
 * as dimensions of none do not count. */
static void add_dimension(struct move *move, int64_t size, int64_t out_stride,
                          int64_t in_stride)
{
    uint32_t at = move->rank;

    move->count *= size;
    if (size == 1)
        return;
    if (out_stride < 0 && size > 0) {
        move->out += (size - 1) * out_stride;
        move->in += (size - 1) * in_stride;
        out_stride = -out_stride;
        in_stride = -in_stride;
    }
    for (; at > 0 && move->out_strides[at - 1] < out_stride; at--) {
        move->shape[at] = move->shape[at - 1];
        move->out_strides[at] = move->out_strides[at - 1];
        move->in_strides[at] = move->in_strides[at - 1];
    }
    move->shape[at] = size;
    move->out_strides[at] = out_stride;
    move->in_strides[at] = in_stride;
    move->rank++;
}

/* Merge neighbours that both sides walk as one. */
static void collapse(struct move *move)
{
    uint32_t last = 0;

    for (uint32_t i = 1; i < move->rank; i++) {
        const int64_t size = move->shape[i];

        if (move->out_strides[last] == size * move->out_strides[i] &&
            move->in_strides[last] == size * move->in_strides[i])
            move->shape[last] *= size;
        else
            move->shape[++last] = size;
        move->out_strides[last] = move->out_strides[i];
        move->in_strides[last] = move->in_strides[i];
    }
    if (move->rank)
        move->rank = last + 1;
}

static void move_begin(struct move *move, const struct flex_device *device,
                       void *out, const void *in, uint32_t size)
{
    move->kernels = flex_move_kernels(device);
    move->out = out;
    move->in = in;
    move->size = size;
    move->kind = (uint32_t)__builtin_ctz(size);
    move->rank = 0;
    move->split = 0;
    move->past = 0;
    move->count = 1;
}

static void move_init(struct move *move, const struct flex_device *device,
                      const struct hob_view *out, const struct hob_view *in)
{
    move_begin(move, device, out->data, in->data, hob_dtype_size(in->dtype));
    for (uint32_t i = 0; i < in->rank; i++)
        add_dimension(move, in->shape[i], out->strides[i] * move->size,
                      in->strides[i] * move->size);
    collapse(move);
}

/* ---- planes ---- */

/* Elements IN_STRIDE apart to contiguous OUT. */
static void gather_run(const struct move *move, char *out, const char *in,
                       int64_t in_stride, int64_t count)
{
    _Alignas(FLEX_ALIGN) char block[BLOCK_BYTES];
    const int64_t most = BLOCK_BYTES / move->size;

    if (!move->past) {
        move->kernels->gather[move->kind](out, in, in_stride, count);
        return;
    }
    for (int64_t i = 0; i < count; i += most) {
        const int64_t n = count - i < most ? count - i : most;

        if (i == 0 || in_stride != 0)
            move->kernels->gather[move->kind](block, in + i * in_stride,
                                              in_stride, n);
        move->kernels->stream(out + i * move->size, block, n * move->size);
    }
}

/* Runs of BYTES: as one instruction each where they are short. */
static void copy_runs(const struct move *move, char *out, int64_t out_row,
                      const char *in, int64_t in_row, int64_t rows,
                      int64_t bytes)
{
    enum { LONG = 1024 };

    if (bytes == 4)
        for (int64_t i = 0; i < rows; i++)
            memcpy(out + i * out_row, in + i * in_row, 4);
    else if (bytes == 8)
        for (int64_t i = 0; i < rows; i++)
            memcpy(out + i * out_row, in + i * in_row, 8);
    else if (bytes == 16)
        for (int64_t i = 0; i < rows; i++)
            memcpy(out + i * out_row, in + i * in_row, 16);
    else if (move->past && bytes >= LONG)
        for (int64_t i = 0; i < rows; i++)
            move->kernels->stream(out + i * out_row, in + i * in_row, bytes);
    else if (bytes < LONG)
        move->kernels->runs(out, out_row, in, in_row, rows, bytes);
    else
        for (int64_t i = 0; i < rows; i++)
            memcpy(out + i * out_row, in + i * in_row, (size_t)bytes);
}

/* Rows along NEAR, columns along the innermost dimension. */
static void move_plane(const struct move *move, uint32_t near, char *out,
                       const char *in)
{
    const uint32_t inner = move->rank - 1;
    const int64_t out_column = move->out_strides[inner];
    const int64_t in_column = move->in_strides[inner];
    const int64_t columns = move->shape[inner];
    const int64_t rows = near == inner ? 1 : move->shape[near];
    const int64_t out_row = near == inner ? 0 : move->out_strides[near];
    const int64_t in_row = near == inner ? 0 : move->in_strides[near];
    const int dense = out_column == move->size;

    if (dense && in_column == move->size)
        copy_runs(move, out, out_row, in, in_row, rows, columns * move->size);
    else if (dense && near != inner && in_row == move->size)
        move->kernels->transpose[move->kind](out, out_row, in, in_column, rows,
                                             columns, move->past);
    else if (dense && (near == inner || flex_magnitude(in_row) == 0 ||
                       flex_magnitude(in_row) >= flex_magnitude(in_column)))
        for (int64_t i = 0; i < rows; i++)
            gather_run(move, out + i * out_row, in + i * in_row, in_column,
                       columns);
    else
        move->kernels->plane[move->kind](out, out_row, out_column, in, in_row,
                                         in_column, rows, columns);
}

/* The dimension that makes a plane with the innermost: for runs the next, else
 * the one along which IN is nearest; the innermost itself if it is alone. */
static uint32_t near_dimension(const struct move *move)
{
    const uint32_t inner = move->rank - 1;
    uint32_t best = inner ? inner - 1 : 0;

    if (flex_magnitude(move->in_strides[inner]) <= move->size)
        return best;
    for (uint32_t i = 0; i < inner; i++)
        if (move->in_strides[i] && flex_magnitude(move->in_strides[i]) <
                                       flex_magnitude(move->in_strides[best]))
            best = i;
    return best;
}

/* All of MOVE on this thread, plane by plane. */
static void move_planes(const struct move *move)
{
    const uint32_t inner = move->rank - 1;
    int64_t index[HOB_MAX_RANK] = {0};
    char *out = move->out;
    const char *in = move->in;
    int64_t planes;
    uint32_t near;

    if (move->count == 0)
        return;
    if (move->rank == 0) {
        memcpy(out, in, (size_t)move->size);
        return;
    }
    near = near_dimension(move);
    planes = move->count / move->shape[inner];
    if (near != inner)
        planes /= move->shape[near];
    while (planes-- > 0) {
        move_plane(move, near, out, in);
        for (uint32_t i = inner; i-- > 0;) {
            if (i == near)
                continue;
            out += move->out_strides[i];
            in += move->in_strides[i];
            if (++index[i] < move->shape[i])
                break;
            out -= move->shape[i] * move->out_strides[i];
            in -= move->shape[i] * move->in_strides[i];
            index[i] = 0;
        }
    }
    if (move->past)
        move->kernels->fence();
}

/* ---- threads ---- */

static void move_part(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    struct move part = *(const struct move *)context;

    (void)worker;
    part.out += first * part.out_strides[part.split];
    part.in += first * part.in_strides[part.split];
    part.count = part.count / part.shape[part.split] * (last - first);
    part.shape[part.split] = last - first;
    move_planes(&part);
}

static void move_run(struct flex_device *device, struct move *move)
{
    /* Sizes from which a dimension makes good pieces, and what they are
     * multiples of where it is a side of the squares of a transpose. */
    enum { ENOUGH = 16, SQUARE = 64 };
    const uint32_t inner = move->rank - 1;
    int64_t grain;

    if (move->count < 2 * FLEX_GRAIN_CHEAP) {
        move_planes(move);
        return;
    }
    for (uint32_t i = 1; i < move->rank; i++)
        if (move->shape[move->split] < ENOUGH &&
            move->shape[i] > move->shape[move->split])
            move->split = i;
    /* Rows of a transpose are read from one end to the other. */
    if (move->past && move->split != inner &&
        move->split == near_dimension(move) &&
        move->in_strides[move->split] == move->size &&
        move->shape[inner] >= ENOUGH * SQUARE / 4)
        move->split = inner;
    grain = FLEX_GRAIN_CHEAP / (move->count / move->shape[move->split]);
    if (grain > SQUARE / 2 || move->split == inner ||
        move->split == near_dimension(move))
        grain = (grain + SQUARE - 1) / SQUARE * SQUARE;
    flex_parallel(device, move->shape[move->split], grain < 1 ? 1 : grain,
                  move_part, move);
}

/* ---- public ---- */

void flex_move(struct flex_device *device, const struct hob_view *out,
               const struct hob_view *in)
{
    struct move move;

    move_init(&move, device, out, in);
    move.past =
        flex_goes_past(device, (uint64_t)move.count * (uint64_t)move.size);
    move_run(device, &move);
}

void flex_move_here(struct flex_device *device, const struct hob_view *out,
                    const struct hob_view *in, uint64_t result_bytes)
{
    struct move move;

    move_init(&move, device, out, in);
    move.past = flex_goes_past(device, result_bytes);
    move_planes(&move);
}

void flex_move_dense(struct flex_device *device, void *out,
                     const struct hob_view *in)
{
    struct hob_view view = *in;

    view.data = out;
    flex_row_major(&view);
    flex_move(device, &view, in);
}

int flex_loop_skips(const struct flex_loop *loop)
{
    enum { SHORT = 16 };
    const uint32_t inner = loop->rank - 1;
    int nearer = 0;

    if (loop->rank < 2)
        return 0;
    for (uint32_t i = 0; i < inner; i++)
        nearer |= loop->strides[i] && flex_magnitude(loop->strides[i]) <
                                          flex_magnitude(loop->strides[inner]);
    return nearer || loop->shape[inner] < SHORT;
}

int flex_loop_is_parted(const struct flex_loop *loop)
{
    const uint32_t inner = loop->rank - 1;

    if (loop->rank == 0 || loop->count < FLEX_BLOCK)
        return 0;
    if (loop->strides[inner] == 0 && loop->shape[inner] >= FLEX_RUN_LEAST)
        return 0;
    return !(loop->rank == 2 && loop->strides[0] == 0) && flex_loop_skips(loop);
}

/* COUNT elements from FIRST on of LOOP's dimensions from DIM on: first and
 * last row in part, those between as a whole. ROW is the size of one. */
static void move_rows(struct flex_device *device, const struct flex_loop *loop,
                      uint32_t dim, int64_t row, const char *in, int64_t first,
                      int64_t count, char *out)
{
    const int64_t size = loop->size;
    const int64_t step = loop->strides[dim] * size;
    const int64_t below =
        dim + 1 < loop->rank ? row / loop->shape[dim + 1] : row;
    int64_t whole;

    if (row > 1 && first % row) {
        int64_t n = row - first % row < count ? row - first % row : count;

        move_rows(device, loop, dim + 1, below, in + first / row * step,
                  first % row, n, out);
        first += n;
        count -= n;
        out += n * size;
    }
    whole = count / row;
    if (whole) {
        struct move move;
        int64_t stride = size;

        move_begin(&move, device, out, in + first / row * step, (uint32_t)size);
        for (uint32_t i = loop->rank; i-- > dim;) {
            const int64_t n = i == dim ? whole : loop->shape[i];

            add_dimension(&move, n, stride, loop->strides[i] * size);
            stride *= n;
        }
        collapse(&move);
        move_planes(&move);
    }
    if (count % row)
        move_rows(device, loop, dim + 1, below,
                  in + (first / row + whole) * step, 0, count % row,
                  out + whole * row * size);
}

void flex_move_range(struct flex_device *device, const struct flex_loop *loop,
                     int64_t first, int64_t count, void *out)
{
    if (count <= 0)
        return;
    if (loop->rank == 0)
        memcpy(out, loop->data, loop->size);
    else
        move_rows(device, loop, 0, loop->count / loop->shape[0], loop->data,
                  first, count, out);
}
