// SPDX-License-Identifier: Apache-2.0
//
// conv_tile.cu - a tile of TILE_M rows by TILE_N places of a convolution. One
// thread brings 64 channels of a tap at a time to a ring; each warpgroup has 64
// rows of the tile and all places or, if there are fewer rows than warpgroups,
// some of them.

enum {
    GROUPS = GROUP_SIZE / WARPGROUP, // and a warp that brings tiles
    DOWN = TILE_M / 64,
    COLUMNS = TILE_N * DOWN / GROUPS,
    A_BYTES = TILE_M * ROW_BYTES,
    B_BYTES = TILE_N * ROW_BYTES,
    STAGE_BYTES = PARTS * (A_BYTES + B_BYTES),
    FULL = STAGES * STAGE_BYTES,
    EMPTY = FULL + 8 * STAGES
};

static_assert(EMPTY + 8 * STAGES <= CONV_SHARED_BYTES, "too large");

INLINE int places_of(const conv_params &job)
{
    return job.images * job.sizes[0] * job.sizes[1];
}

// ---- copies ----

// All that tile ROW and the places from FROM on are made of.
INLINE void bring(const conv_params &job, const tensor_map *rows,
                  const place_maps &places, int row, const place &from,
                  u32 shared, ring &at)
{
    for (int y = 0; y < job.taps[0]; y++)
        for (int x = 0; x < job.taps[1]; x++) {
            const int tap =
                job.tap_first + y * job.tap_step[0] + x * job.tap_step[1];

            for (int c = 0; c < job.chunks; c++) {
                const u32 to = shared + at.stage * STAGE_BYTES;
                const u32 full = shared + FULL + 8 * at.stage;

                barrier_wait(shared + EMPTY + 8 * at.stage, at.phase ^ 1);
                barrier_expect(full, STAGE_BYTES);
#pragma unroll
                for (int p = 0; p < PARTS; p++) {
                    const int matrix[3] = {0, 0, p};

                    copy_box(to + p * A_BYTES, rows,
                             (tap * job.chunks + c) * SLAB_ELEMENTS, row,
                             matrix, full);
                    copy_places(to + PARTS * A_BYTES + p * B_BYTES,
                                &places.of[p], c * SLAB_ELEMENTS, from,
                                x * job.pace[1], y * job.pace[0], full);
                }
                advance(at);
            }
        }
}

// ---- products ----

// Where a warpgroup's part of a tile begins in the first stage.
INLINE u32 tile_a(u32 shared, int group)
{
    return shared + group % DOWN * 64 * ROW_BYTES;
}

INLINE u32 tile_b(u32 shared, int group)
{
    return shared + PARTS * A_BYTES + group / DOWN * COLUMNS * ROW_BYTES;
}

INLINE void multiply(float (&d)[COLUMNS / 2], u32 a, u32 b)
{
    u32 adds = PARTS == 1;

    product_begin();
#pragma unroll
    for (int order = PARTS - 1; order >= 0; order--)
#pragma unroll
        for (int p = 0; p <= order; p++) {
            const u64 left = rows_descriptor(a + p * A_BYTES);
            const u64 right = rows_descriptor(b + (order - p) * B_BYTES);

#pragma unroll
            for (int k = 0; k < 4; k++) {
                product<COLUMNS>::multiply(d, left + 2 * k, right + 2 * k,
                                           adds);
                adds = 1;
            }
        }
    product_commit();
}

// D = the product of what was brought for one tile; A and B are where the
// warpgroup has its parts.
INLINE void consume(const conv_params &job, float (&d)[COLUMNS / 2], u32 a,
                    u32 b, u32 shared, ring &at)
{
    consume(d, job.taps[0] * job.taps[1] * job.chunks, STAGE_BYTES,
            shared + FULL, shared + EMPTY, at,
            [=](float (&values)[COLUMNS / 2], u32 stage) {
                multiply(values, a + stage, b + stage);
            });
}

// ---- results ----

INLINE void read_bias(const conv_params &job, int row, float (&bias)[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++)
        bias[r] =
            job.bias && row + 8 * r < job.rows
                ? load((const number *)job.bias + (row + 8 * r) * job.bias_step)
                : 0;
}

INLINE i64 offset_of(const conv_params &job, const place &at)
{
    return job.out_first + at.image * job.out_image +
           at.q[0] * job.out_step[0] + at.q[1] * job.out_step[1];
}
