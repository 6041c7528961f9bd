// SPDX-License-Identifier: Apache-2.0
//
// conv_sm90.cu - convolutions, and their gradients with respect to x, on tensor
// cores, as products of weights [row, tap, channel] and planes that lie with
// channels last. Planes come to shared memory by copies that walk through
// places as a convolution does (im2col), so nothing is unfolded in memory.
//
// VECTOR places lie together in the result: 8, 4, 2, 1.

// ---- copies ----

INLINE void produce(const conv_params &job, const tensor_map *rows,
                    const place_maps &places, u32 shared)
{
    ring at = {0, 0};

    for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
        const int row = task % job.tiles_rows * TILE_M;
        const place from = place_of(job, task / job.tiles_rows * TILE_N);

        bring(job, rows, places, row, from, shared, at);
    }
}

// ---- results ----

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
        const int at = column + i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
        number *to =
            (number *)job.result + offset_of(job, place_of(job, at));

#pragma unroll
        for (int r = 0; r < 2; r++)
            if (at < end && row + 8 * r < job.rows)
                store(to + (row + 8 * r) * job.out_row,
                      d[i / 2 * 4 + 2 * r + i % 2] + bias[r]);
    }
}
#elif PARTS > 1
INLINE void store(const conv_params &job, const float (&d)[COLUMNS / 2],
                  int row, int column)
{
    const int end = places_of(job);
    float bias[2];

    read_bias(job, row, bias);
#pragma unroll
    for (int i = 0; i < COLUMNS / 8; i++) {
        const int at = column + 8 * i + threadIdx.x % 4 * 2;
        float *to = (float *)job.result + offset_of(job, place_of(job, at));

#pragma unroll
        for (int r = 0; r < 2; r++)
            if (at < end && row + 8 * r < job.rows)
                *(float2 *)(to + (row + 8 * r) * job.out_row) =
                    make_float2(d[4 * i + 2 * r] + bias[r],
                                d[4 * i + 2 * r + 1] + bias[r]);
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
              const __grid_constant__ place_maps places,
              const __grid_constant__ conv_params job)
{
    extern __shared__ __align__(1024) u8 memory[];
    const u32 shared = shared_address(memory);
    const int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);

    barriers_start(shared, FULL, EMPTY, GROUPS);
    if (group == GROUPS) {
        if (threadIdx.x == GROUPS * WARPGROUP)
            produce(job, &rows, places, shared);
    } else {
        const u32 a = tile_a(shared, group), b = tile_b(shared, group);
        ring at = {0, 0};
        float d[COLUMNS / 2];

        for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
            consume(job, d, a, b, shared, at);
            store(job, d,
                  task % job.tiles_rows * TILE_M + group % DOWN * 64 +
                      own_row(),
                  task / job.tiles_rows * TILE_N + group / DOWN * COLUMNS);
        }
    }
}
