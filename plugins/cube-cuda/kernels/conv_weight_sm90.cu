// SPDX-License-Identifier: Apache-2.0
//
// conv_weight_sm90.cu - gradients of convolutions with respect to weights, as
// products of gradients [place, row] and of places as each tap meets them, both
// with channels last. Columns are slabs of 64 channels, tap after tap. The sum
// over places is cut into splits; conv_finish adds their parts in order.
//
// A group makes tiles of TILE_M rows by TILE_N columns over 64 places at a
// time, with warpgroups as in conv_sm90.cu.
//
// IS_POINT: of single taps that meet each place. Then both operands are planes
// [image, channel, place] as they are.

enum {
    GROUPS = GROUP_SIZE / WARPGROUP, // and a warp that brings tiles
    DOWN = TILE_M / 64,
    COLUMNS = TILE_N * DOWN / GROUPS,
    STEP = 64, // places
    SLAB_BYTES = STEP * ROW_BYTES,
    SLABS_A = DOWN,
    SLABS_B = TILE_N / SLAB_ELEMENTS,
    A_BYTES = SLABS_A * SLAB_BYTES,
    B_BYTES = SLABS_B * SLAB_BYTES,
    STAGE_BYTES = PARTS * (A_BYTES + B_BYTES),
    FULL = STAGES * STAGE_BYTES,
    EMPTY = FULL + 8 * STAGES
};

static_assert(EMPTY + 8 * STAGES <= CONV_SHARED_BYTES, "too large");

// A task: a tile, and steps of a split.
struct part {
    int row, slab; // the first ones
    int split, step, end;
};

INLINE int slabs_of(const conv_params &job)
{
    return job.taps[0] * job.taps[1] * job.chunks;
}

INLINE part part_of(const conv_params &job, int task)
{
    const int tiles = (slabs_of(job) + SLABS_B - 1) / SLABS_B;
    const int rest = task / job.tiles_rows;
    part at;

    at.row = task % job.tiles_rows * TILE_M;
    at.slab = rest % tiles * SLABS_B;
    at.split = rest / tiles;
    at.step = at.split * job.split_steps;
    at.end = min(at.step + job.split_steps, job.steps);
    return at;
}

#if IS_POINT
INLINE void bring(const conv_params &job, const tensor_map *rows,
                  const place_maps &places, const part &at, int slabs, int step,
                  u32 to, u32 full)
{
    const int image = step / job.image_steps;
    const int place = (step - image * job.image_steps) * STEP;
    const int batch[3] = {0, 0, image};

    barrier_expect(full, STAGE_BYTES);
    copy_box(to, rows, place, at.row, batch, full);
    copy_box(to + A_BYTES, &places.of[0], place, at.slab * SLAB_ELEMENTS, batch,
             full);
}
#else
INLINE void bring(const conv_params &job, const tensor_map *rows,
                  const place_maps &places, const part &at, int slabs, int step,
                  u32 to, u32 full)
{
    const place from = place_of(job, step * STEP);

    barrier_expect(full, PARTS * (A_BYTES + slabs * SLAB_BYTES));
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        const int matrix[3] = {0, 0, p};

        for (int i = 0; i < SLABS_A; i++)
            copy_box(to + p * A_BYTES + i * SLAB_BYTES, rows,
                     at.row + i * SLAB_ELEMENTS, step * STEP, matrix, full);
    }
    for (int i = 0; i < slabs; i++) {
        const int tap = (at.slab + i) / job.chunks;
        const int y = tap / job.taps[1], x = tap - y * job.taps[1];

#pragma unroll
        for (int p = 0; p < PARTS; p++)
            copy_places(to + PARTS * A_BYTES + p * B_BYTES + i * SLAB_BYTES,
                        &places.of[p],
                        (at.slab + i - tap * job.chunks) * SLAB_ELEMENTS, from,
                        x * job.pace[1], y * job.pace[0], full);
    }
}
#endif

INLINE void produce(const conv_params &job, const tensor_map *rows,
                    const place_maps &places, u32 shared)
{
    ring at = {0, 0};

    for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
        const part part = part_of(job, task);
        const int slabs = min(SLABS_B, slabs_of(job) - part.slab);

        for (int step = part.step; step < part.end; step++) {
            barrier_wait(shared + EMPTY + 8 * at.stage, at.phase ^ 1);
            bring(job, rows, places, part, slabs, step,
                  shared + at.stage * STAGE_BYTES,
                  shared + FULL + 8 * at.stage);
            advance(at);
        }
    }
}

INLINE void multiply(float (&d)[COLUMNS / 2], u32 a, u32 b)
{
#if IS_POINT
    const u64 left = rows_descriptor(a), right = rows_descriptor(b);
#else
    u32 adds = PARTS == 1;
#endif

    product_begin();
#if IS_POINT
#pragma unroll
    for (int k = 0; k < STEP / 16; k++)
        product<COLUMNS>::multiply(d, left + 2 * k, right + 2 * k, 1);
#else
#pragma unroll
    for (int order = PARTS - 1; order >= 0; order--)
#pragma unroll
        for (int p = 0; p <= order; p++) {
            const u64 left = turned_descriptor(a + p * A_BYTES, SLAB_BYTES);
            const u64 right =
                turned_descriptor(b + (order - p) * B_BYTES, SLAB_BYTES);

#pragma unroll
            for (int k = 0; k < STEP / 16; k++) {
                product<COLUMNS>::multiply_columns(
                    d, left + k * 16 * ROW_BYTES / 16,
                    right + k * 16 * ROW_BYTES / 16, adds);
                adds = 1;
            }
        }
#endif
    product_commit();
}

INLINE void store(const conv_params &job, const float (&d)[COLUMNS / 2],
                  int split, int row, int column)
{
    const int columns = slabs_of(job) * SLAB_ELEMENTS;

#pragma unroll
    for (int r = 0; r < 2; r++) {
        float *to = (float *)job.result +
                    ((i64)split * job.rows + row + 8 * r) * columns;

        if (row + 8 * r >= job.rows)
            continue;
#pragma unroll
        for (int i = 0; i < COLUMNS / 8; i++)
            if (column + 8 * i < columns)
                *(float2 *)(to + column + 8 * i) =
                    make_float2(d[4 * i + 2 * r], d[4 * i + 2 * r + 1]);
    }
}

extern "C" __global__ void __launch_bounds__(GROUP_SIZE, BLOCKS)
    conv_weight_sm90(const __grid_constant__ tensor_map rows,
                     const __grid_constant__ place_maps places,
                     const __grid_constant__ conv_params job)
{
    extern __shared__ __align__(1024) u8 memory[];
    const u32 shared = shared_address(memory);
    const int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);
    const u32 a = shared + group % DOWN * SLAB_BYTES;
    const u32 b = shared + PARTS * A_BYTES +
                  group / DOWN * (COLUMNS / SLAB_ELEMENTS) * SLAB_BYTES;

    barriers_start(shared, FULL, EMPTY, GROUPS);
    if (group == GROUPS) {
        if (threadIdx.x == GROUPS * WARPGROUP)
            produce(job, &rows, places, shared);
    } else {
        ring at = {0, 0};
        float d[COLUMNS / 2];

        for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
            const part part = part_of(job, task);

            consume(d, part.end - part.step, STAGE_BYTES, shared + FULL,
                    shared + EMPTY, at,
                    [=](float (&values)[COLUMNS / 2], u32 stage) {
                        multiply(values, a + stage, b + stage);
                    });
            store(job, d, part.split, part.row + group % DOWN * 64 + own_row(),
                  part.slab * SLAB_ELEMENTS + group / DOWN * COLUMNS +
                      threadIdx.x % 4 * 2);
        }
    }
}
