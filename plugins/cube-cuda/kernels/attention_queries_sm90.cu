// SPDX-License-Identifier: Apache-2.0
//
// attention_queries_sm90.cu - the gradient of queries in attention, on tensor
// cores: the product of the slopes of scores, which attention_keys_sm90 left in
// memory, and keys.
//
// A group takes a block of queries at a time. One thread brings tiles of TILE
// keys, and the units of slopes that belong to them, to a ring in shared
// memory. Slopes are read once, so memory sets the pace.
//
// WIDTH is 64 or 128; TILE is that of a unit.

enum {
    SLABS = WIDTH / SLAB_ELEMENTS,
    KEY_BYTES = SLABS * TILE * ROW_BYTES,
    // Places in shared memory; barriers of the ring are there once a stage.
    KEY_AT = 0,
    SLOPES_AT = STAGES * KEY_BYTES,
    SLOPE_BYTES = EACH * GROUPS * UNIT_BYTES,
    FULL = SLOPES_AT + STAGES * SLOPE_BYTES,
    EMPTY = FULL + 8 * STAGES,
    FEW = 24, // registers
    MANY = 240
};

static_assert(TILE == UNIT, "a tile of keys is a unit of slopes");
static_assert(EMPTY + 8 * STAGES <= ATTENTION_SHARED_BYTES, "too large");

// Tiles of the launch's keys that the queries before END see.
INLINE int tiles_of(const attention_params &job, int end)
{
    const int keys = min(keys_seen(job, end), job.key_end) - job.key;

    return (max(keys, 0) + TILE - 1) / TILE;
}

INLINE void produce(const attention_params &job, const tensor_map *key,
                    u32 shared)
{
    ring now = {0, 0};

    for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
        const place at = place_of(job, task, IS_CAUSAL);
        const int tiles = tiles_of(job, at.row + BLOCK);
        const u32 bytes =
            min(EACH * GROUPS, units(job.queries - at.row)) * UNIT_BYTES;
        int lead[ATTENTION_LEAD];

        lead_of(job, at, ATTENTION_KEY, lead);
        for (int i = 0; i < tiles; i++) {
            const u32 full = shared + FULL + 8 * now.stage;

            barrier_wait(shared + EMPTY + 8 * now.stage, now.phase ^ 1);
            barrier_expect(full, KEY_BYTES + bytes);
            copy_bytes(shared + SLOPES_AT + now.stage * SLOPE_BYTES,
                       unit_of(job, at.batch, job.key + i * TILE, at.row),
                       bytes, full);
            copy_tile<SLABS, TILE>(shared + KEY_AT + now.stage * KEY_BYTES, key,
                                   job.key + i * TILE, lead, full);
            advance(now);
        }
    }
}

// A warpgroup and what it keeps.
struct worker {
    u32 shared;
    const u8 *memory; // the same
    int number;
    ring now;
    u32 before; // what to arrive at when the last product is done; 0
};

// Each thread for what it has read itself, as in attention_keys_sm90.cu.
INLINE void give_tile_before(worker &me)
{
    if (me.before)
        barrier_arrive(me.before);
    me.before = 0;
}

INLINE void wait_for_tile(const worker &me)
{
    barrier_wait(me.shared + FULL + 8 * me.now.stage, me.now.phase);
}

INLINE void end_tile(worker &me)
{
    me.before = me.shared + EMPTY + 8 * me.now.stage;
    advance(me.now);
}

// Tile number I, of which each 64 queries see those before SEEN.
INLINE void add_tile(worker &me, int i, const int (&seen)[EACH],
                     float (&o)[EACH][WIDTH / 2], u32 (&w)[TILE / 4])
{
    const u8 *slopes = me.memory + SLOPES_AT + me.now.stage * SLOPE_BYTES +
                       me.number * EACH * UNIT_BYTES;
    u32 next[TILE / 4];

    wait_for_tile(me);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        take_unit(slopes + k * UNIT_BYTES, next);
        product_wait<0>();
        pin(o[k ? k - 1 : EACH - 1]);
        pin(w);
        if (k == 0)
            give_tile_before(me);
        // Units that are hidden as a whole were not made.
#pragma unroll
        for (int j = 0; j < TILE / 4; j++)
            w[j] = !IS_CAUSAL || i < seen[k] ? next[j] : 0;
        pin(w);
        pin(o[k]);
        product_begin();
        multiply_tile<TILE>(o[k], w,
                            me.shared + KEY_AT + me.now.stage * KEY_BYTES);
        product_commit();
    }
    end_tile(me);
}

// The thread's place for row ROW among job.sums; columns are 8 apart.
INLINE float2 *sums_of(const attention_params &job, int batch, int row)
{
    return (float2 *)job.sums +
           (((i64)(batch - job.first) * job.queries + row) * WIDTH +
            own_column()) /
               2;
}

// Begin with what launches for the keys before have left.
INLINE void take_sums(const attention_params &job, float (&o)[WIDTH / 2],
                      int batch, int row)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const float2 *from = sums_of(job, batch, row + 8 * r);
        const bool has = job.key > 0 && row + 8 * r < job.queries;

#pragma unroll
        for (int i = 0; i < WIDTH / 8; i++) {
            const float2 two = has ? from[4 * i] : make_float2(0, 0);

            o[4 * i + 2 * r] = two.x;
            o[4 * i + 2 * r + 1] = two.y;
        }
    }
}

INLINE void leave_sums(const attention_params &job, const float (&o)[WIDTH / 2],
                       int batch, int row)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float2 *to = sums_of(job, batch, row + 8 * r);

        if (row + 8 * r >= job.queries)
            continue;
#pragma unroll
        for (int i = 0; i < WIDTH / 8; i++)
            to[4 * i] = make_float2(o[4 * i + 2 * r], o[4 * i + 2 * r + 1]);
    }
}

INLINE void consume(const attention_params &job, worker &me, const place &at)
{
    const float factors[2] = {job.scale, job.scale};
    const int first = at.row + me.number * EACH * UNIT;
    const int tiles = tiles_of(job, at.row + BLOCK);
    float o[EACH][WIDTH / 2];
    u32 w[TILE / 4];
    int seen[EACH];

#pragma unroll
    for (int k = 0; k < EACH; k++) {
        seen[k] = tiles_of(job, first + (k + 1) * UNIT);
        take_sums(job, o[k], at.batch, first + k * UNIT + own_row());
    }
    for (int i = 0; i < tiles; i++)
        add_tile(me, i, seen, o, w);
    product_wait<0>();
    give_tile_before(me);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const int row = first + k * UNIT + own_row();

        pin(o[k]);
        if (job.key_end < job.keys)
            leave_sums(job, o[k], at.batch, row);
        else
            store_rows(job.results[0], o[k], factors, at.batch, row,
                       job.queries);
    }
}

INLINE void barriers_start(u32 shared)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(shared + FULL + 8 * i, 1);
            barrier_init(shared + EMPTY + 8 * i, GROUPS * WARPGROUP);
        }
        barriers_ready();
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(GROUP_SIZE, 1)
    attention_queries_sm90(const __grid_constant__ tensor_map key,
                           const __grid_constant__ attention_params job)
{
    extern __shared__ __align__(1024) u8 memory[];
    const u32 shared = shared_address(memory);
    const int number = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);

    barriers_start(shared);
    if (number == 0) {
        registers_decrease<FEW>();
        if (threadIdx.x == 0)
            produce(job, &key, shared);
    } else {
        worker me = {shared, memory, number - 1};

        registers_increase<MANY>();
        for (int task = blockIdx.x; task < job.tasks; task += gridDim.x)
            consume(job, me, place_of(job, task, IS_CAUSAL));
    }
}
