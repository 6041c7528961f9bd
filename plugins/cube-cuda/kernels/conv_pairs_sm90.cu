// SPDX-License-Identifier: Apache-2.0
//
// conv_pairs_sm90.cu - gradients of convolutions with strides of 2 with respect
// to x: a product for each remainder of places of x modulo 2, as conv_sm90
// makes them. A task makes the two that differ along x alone, so that
// neighbours are stored together: as one if VECTOR is 2. All have as many
// places as the one that has most.

struct pair_maps {
    place_maps of[4];
};

INLINE void produce(const conv_pairs &jobs, const tensor_map *rows,
                    const pair_maps &maps, u32 shared)
{
    ring at = {0, 0};

    for (int task = blockIdx.x; task < jobs.of[0].tasks; task += gridDim.x) {
        const int tile = task / 2, tiles_rows = jobs.of[0].tiles_rows;

        for (int x = 0; x < 2; x++) {
            const int rest = task % 2 * 2 + x;
            const conv_params &job = jobs.of[rest];

            bring(job, rows, maps.of[rest], tile % tiles_rows * TILE_M,
                  place_of(job, tile / tiles_rows * TILE_N), shared, at);
        }
    }
}

INLINE void store_pair(number *to, float a, float b, bool has_b)
{
#if VECTOR == 2 && PARTS > 1
    *(float2 *)to = make_float2(a, b);
#elif VECTOR == 2
    *(u32 *)to = pack(a, b);
#else
    store(to, a);
    if (has_b)
        store(to + 1, b);
#endif
}

INLINE void store(const conv_params &job, int width,
                  const float (&a)[COLUMNS / 2], const float (&b)[COLUMNS / 2],
                  int row, int column)
{
    const int end = places_of(job);

#pragma unroll
    for (int i = 0; i < COLUMNS / 4; i++) {
        const int at = column + i / 2 * 8 + threadIdx.x % 4 * 2 + i % 2;
        const place to = place_of(job, at);
        number *result = (number *)job.result + offset_of(job, to);

#pragma unroll
        for (int r = 0; r < 2; r++)
            if (at < end && to.q[0] < job.kept[0] && row + 8 * r < job.rows) {
                const int k = i / 2 * 4 + 2 * r + i % 2;

                store_pair(result + (row + 8 * r) * job.out_row, a[k], b[k],
                           to.q[1] < width);
            }
    }
}

extern "C" __global__ void __launch_bounds__(GROUP_SIZE, BLOCKS)
    conv_pairs_sm90(const __grid_constant__ tensor_map rows,
                    const __grid_constant__ pair_maps maps,
                    const __grid_constant__ conv_pairs jobs)
{
    extern __shared__ __align__(1024) u8 memory[];
    const u32 shared = shared_address(memory);
    const int group = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);

    barriers_start(shared, FULL, EMPTY, GROUPS);
    if (group == GROUPS) {
        if (threadIdx.x == GROUPS * WARPGROUP)
            produce(jobs, &rows, maps, shared);
    } else {
        const u32 a = tile_a(shared, group), b = tile_b(shared, group);
        ring at = {0, 0};
        float even[COLUMNS / 2], odd[COLUMNS / 2];

        for (int task = blockIdx.x; task < jobs.of[0].tasks;
             task += gridDim.x) {
            const int tile = task / 2, tiles_rows = jobs.of[0].tiles_rows;
            const conv_params &job = jobs.of[task % 2 * 2];

            consume(job, even, a, b, shared, at);
            consume(jobs.of[task % 2 * 2 + 1], odd, a, b, shared, at);
            store(job, jobs.of[task % 2 * 2 + 1].kept[1], even, odd,
                  tile % tiles_rows * TILE_M + group % DOWN * 64 + own_row(),
                  tile / tiles_rows * TILE_N + group / DOWN * COLUMNS);
        }
    }
}
