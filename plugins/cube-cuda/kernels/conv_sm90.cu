// SPDX-License-Identifier: Apache-2.0
//
// conv_sm90.cu - convolutions, and their gradients with respect to x, on tensor
// cores, as products of weights [row, tap, channel] and planes that lie with
// channels last. Planes come to shared memory by copies that walk through
// places as a convolution does (im2col), so nothing is unfolded in memory.
//
// A group makes tiles of TILE_M rows by TILE_N places. One thread brings 64
// channels of a tap at a time to a ring; each warpgroup has 64 rows of the tile
// and all places or, if there are fewer rows than warpgroups, some of them.
//
// VECTOR places lie together in the result: 8, 4, 2, 1.

enum {
    GROUPS = GROUP_SIZE / WARPGROUP, // and a warp that brings tiles
    DOWN = TILE_M / 64,
    COLUMNS = TILE_N * DOWN / GROUPS,
    A_BYTES = TILE_M * ROW_BYTES,
    STAGE_BYTES = A_BYTES + TILE_N * ROW_BYTES,
    FULL = STAGES * STAGE_BYTES,
    EMPTY = FULL + 8 * STAGES
};

static_assert(EMPTY + 8 * STAGES <= CONV_SHARED_BYTES, "too large");

INLINE int places_of(const conv_params &job)
{
    return job.images * job.sizes[0] * job.sizes[1];
}

// ---- copies ----

INLINE void produce(const conv_params &job, const tensor_map *rows,
                    const tensor_map *places, u32 shared)
{
    const int none[3] = {0, 0, 0};
    ring at = {0, 0};

    for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
        const int row = task % job.tiles_rows * TILE_M;
        const place from = place_of(job, task / job.tiles_rows * TILE_N);

        for (int y = 0; y < job.taps[0]; y++)
            for (int x = 0; x < job.taps[1]; x++) {
                const int tap =
                    job.tap_first + y * job.tap_step[0] + x * job.tap_step[1];

                for (int c = 0; c < job.chunks; c++) {
                    const u32 to = shared + at.stage * STAGE_BYTES;
                    const u32 full = shared + FULL + 8 * at.stage;

                    barrier_wait(shared + EMPTY + 8 * at.stage, at.phase ^ 1);
                    barrier_expect(full, STAGE_BYTES);
                    copy_box(to, rows, (tap * job.chunks + c) * SLAB_ELEMENTS,
                             row, none, full);
                    copy_places(to + A_BYTES, places, c * SLAB_ELEMENTS, from,
                                x * job.pace[1], y * job.pace[0], full);
                    advance(at);
                }
            }
    }
}

// ---- products ----

INLINE void multiply(float (&d)[COLUMNS / 2], u32 a, u32 b)
{
    const u64 left = rows_descriptor(a), right = rows_descriptor(b);

    product_begin();
#pragma unroll
    for (int k = 0; k < 4; k++)
        product<COLUMNS>::multiply(d, left + 2 * k, right + 2 * k, 1);
    product_commit();
}

INLINE void consume(const conv_params &job, float (&d)[COLUMNS / 2], u32 shared,
                    int group, ring &at)
{
    const int steps = job.taps[0] * job.taps[1] * job.chunks;
    const u32 a = shared + group % DOWN * 64 * ROW_BYTES;
    const u32 b = shared + A_BYTES + group / DOWN * COLUMNS * ROW_BYTES;
    u32 done = 0;

#pragma unroll
    for (int i = 0; i < COLUMNS / 2; i++)
        d[i] = 0;
    pin(d);
    for (int i = 0; i < steps; i++) {
        const u32 now = at.stage;

        barrier_wait(shared + FULL + 8 * now, at.phase);
        multiply(d, a + now * STAGE_BYTES, b + now * STAGE_BYTES);
        product_wait<1>();
        if (i > 0 && is_first_of_group())
            barrier_arrive(shared + EMPTY + 8 * done);
        done = now;
        advance(at);
    }
    product_wait<0>();
    pin(d);
    if (steps > 0 && is_first_of_group())
        barrier_arrive(shared + EMPTY + 8 * done);
}

// ---- results ----

INLINE void read_bias(const conv_params &job, int row, float (&bias)[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++)
        bias[r] =
            job.bias && row + 8 * r < job.rows
                ? load((const u16 *)job.bias + (row + 8 * r) * job.bias_step)
                : 0;
}

INLINE i64 offset_of(const conv_params &job, const place &at)
{
    return job.out_first + at.image * job.out_image +
           at.q[0] * job.out_step[0] + at.q[1] * job.out_step[1];
}

#if VECTOR == 1
// The places of four lanes follow one another, so that they share sectors.
INLINE void store(const conv_params &job, const float (&d)[COLUMNS / 2],
                  int row, int column)
{
    const int end = places_of(job);
    float bias[2];

    read_bias(job, row, bias);
#pragma unroll
    for (int i = 0; i < COLUMNS / 4; i++) {
        const int number = column + i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
        u16 *to = (u16 *)job.result + offset_of(job, place_of(job, number));

#pragma unroll
        for (int r = 0; r < 2; r++)
            if (number < end && row + 8 * r < job.rows)
                store(to + (row + 8 * r) * job.out_row,
                      d[i / 2 * 4 + 2 * r + i % 2] + bias[r]);
    }
}
#else
// Of four lanes side by side lane t has V[i], number t of row i; it gets all of
// row t.
INLINE void turn(u32 (&v)[4])
{
    const bool odd = threadIdx.x & 1, high = threadIdx.x & 2;
    u32 a = odd ? v[0] : v[1], b = odd ? v[2] : v[3];

    a = __shfl_xor_sync(~0u, a, 1);
    b = __shfl_xor_sync(~0u, b, 1);
    v[0] = odd ? a : v[0];
    v[1] = odd ? v[1] : a;
    v[2] = odd ? b : v[2];
    v[3] = odd ? v[3] : b;
    a = __shfl_xor_sync(~0u, high ? v[0] : v[2], 2);
    b = __shfl_xor_sync(~0u, high ? v[1] : v[3], 2);
    v[0] = high ? a : v[0];
    v[1] = high ? b : v[1];
    v[2] = high ? v[2] : a;
    v[3] = high ? v[3] : b;
}

// V, eight numbers, to places from PLACE on of ROW.
INLINE void store_eight(const conv_params &job, const u32 (&v)[4], int row,
                        const i64 (&to)[8 / VECTOR], int left)
{
    u16 *result = (u16 *)job.result + row * job.out_row;

#pragma unroll
    for (int i = 0; i < 8 / VECTOR; i++) {
        u16 *at = result + to[i];

        if (i * VECTOR >= left)
            return;
#if VECTOR == 8
        *(uint4 *)at = make_uint4(v[0], v[1], v[2], v[3]);
#elif VECTOR == 4
        *(uint2 *)at = make_uint2(v[2 * i], v[2 * i + 1]);
#else
        *(u32 *)at = v[i];
#endif
    }
}

INLINE void store(const conv_params &job, const float (&d)[COLUMNS / 2],
                  int row, int column)
{
    const int end = places_of(job);
    float bias[2];

    read_bias(job, row, bias);
#pragma unroll
    for (int j = 0; j < COLUMNS / 32; j++) {
        const int first = column + 32 * j + 8 * (threadIdx.x % 4);
        i64 to[8 / VECTOR];

#pragma unroll
        for (int i = 0; i < 8 / VECTOR; i++)
            to[i] = offset_of(job, place_of(job, first + i * VECTOR));
#pragma unroll
        for (int r = 0; r < 2; r++) {
            u32 v[4];

#pragma unroll
            for (int i = 0; i < 4; i++)
                v[i] = pack(d[16 * j + 4 * i + 2 * r] + bias[r],
                            d[16 * j + 4 * i + 2 * r + 1] + bias[r]);
            turn(v);
            if (row + 8 * r < job.rows)
                store_eight(job, v, row + 8 * r, to, end - first);
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(GROUP_SIZE, BLOCKS)
    conv_sm90(const __grid_constant__ tensor_map rows,
              const __grid_constant__ tensor_map places,
              const __grid_constant__ conv_params job)
{
    extern __shared__ __align__(1024) u8 memory[];
    const u32 shared = shared_address(memory);
    const int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);

    barriers_start(shared, FULL, EMPTY, GROUPS);
    if (group == GROUPS) {
        if (threadIdx.x == GROUPS * WARPGROUP)
            produce(job, &rows, &places, shared);
    } else {
        ring at = {0, 0};
        float d[COLUMNS / 2];

        for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
            consume(job, d, shared, group, at);
            store(job, d,
                  task % job.tiles_rows * TILE_M + group % DOWN * 64 +
                      own_row(),
                  task / job.tiles_rows * TILE_N + group / DOWN * COLUMNS);
        }
    }
}
