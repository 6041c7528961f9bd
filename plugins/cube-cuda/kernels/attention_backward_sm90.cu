// SPDX-License-Identifier: Apache-2.0
//
// attention_backward_sm90.cu - the gradients of attention on tensor cores, by a
// launch with KEYS_STAY 0 and one with 1, so that nothing is added up across
// groups and results repeat bit by bit.
//
// A group takes a block, of queries or of keys, at a time. One thread brings
// tiles of TILE rows of the other kind to a ring in shared memory. With p the
// weights, made anew by means of lse, g the gradient and w the slopes of the
// scores, a warpgroup keeps in registers for each 64 rows:
//
//   queries stay:  p = exp(q k^T - lse), w = p (g v^T - delta): the sum of w k
//   keys stay:     the same turned: the sums of p^T g and w^T q
//
// WIDTH is 64 or 128, of keys and of values.

enum {
    SLABS = WIDTH / SLAB_ELEMENTS,
    BLOCK_BYTES = SLABS * BLOCK * ROW_BYTES,
    TILE_BYTES = SLABS * TILE * ROW_BYTES,
    // Places in shared memory. Each of the two kinds of rows has two tensors:
    // queries with the gradient, keys with values. Barriers of the ring are
    // there once a stage.
    BLOCK_AT = 0,
    TILE_AT = 2 * BLOCK_BYTES,
    KNOWN_AT = TILE_AT + STAGES * 2 * TILE_BYTES, // lse and delta of a tile
    KNOWN_BYTES = KEYS_STAY ? 2 * TILE * 4 : 0,
    BLOCK_FULL = KNOWN_AT + STAGES * KNOWN_BYTES,
    BLOCK_EMPTY = BLOCK_FULL + 8,
    FIRST_FULL = BLOCK_EMPTY + 8,
    SECOND_FULL = FIRST_FULL + 8 * STAGES,
    TILE_EMPTY = SECOND_FULL + 8 * STAGES,
    KNOWN_FULL = TILE_EMPTY + 8 * STAGES,
    KNOWN_EMPTY = KNOWN_FULL + 8 * STAGES,
    FEW = GROUPS == 2 ? 24 : 32, // registers
    MANY = GROUPS == 2 ? 240 : 160,

    FIRST_OF_BLOCK = KEYS_STAY ? ATTENTION_KEY : ATTENTION_QUERY,
    SECOND_OF_BLOCK = KEYS_STAY ? ATTENTION_VALUE : ATTENTION_GRAD,
    FIRST_OF_TILE = KEYS_STAY ? ATTENTION_QUERY : ATTENTION_KEY,
    SECOND_OF_TILE = KEYS_STAY ? ATTENTION_GRAD : ATTENTION_VALUE
};

static_assert(KNOWN_EMPTY + 8 * STAGES <= ATTENTION_SHARED_BYTES, "too large");

// Tiles that have to do with the block of AT: from FIRST, before END.
INLINE void tiles_of(const attention_params &job, const place &at, int &first,
                     int &end)
{
    first = IS_CAUSAL && KEYS_STAY ? max(at.row - job.offset, 0) / TILE : 0;
    end = KEYS_STAY ? job.queries : keys_seen(job, at.row + BLOCK);
    end = (end + TILE - 1) / TILE;
}

// Blocks that have to do with most come first.
INLINE place task_of(const attention_params &job, int task)
{
    return place_of(job, task, IS_CAUSAL && !KEYS_STAY);
}

// ---- copies ----

INLINE void bring_block(const attention_params &job, const place &at,
                        const tensor_map *first, const tensor_map *second,
                        u32 shared, u32 parity)
{
    int lead[ATTENTION_LEAD];

    barrier_wait(shared + BLOCK_EMPTY, parity);
    barrier_expect(shared + BLOCK_FULL, 2 * BLOCK_BYTES);
    lead_of(job, at, FIRST_OF_BLOCK, lead);
    copy_tile<SLABS, BLOCK>(shared + BLOCK_AT, first, at.row, lead,
                            shared + BLOCK_FULL);
    lead_of(job, at, SECOND_OF_BLOCK, lead);
    copy_tile<SLABS, BLOCK>(shared + BLOCK_AT + BLOCK_BYTES, second, at.row,
                            lead, shared + BLOCK_FULL);
}

INLINE void produce(const attention_params &job, const tensor_map *block_first,
                    const tensor_map *block_second, const tensor_map *first,
                    const tensor_map *second, u32 shared)
{
    ring now = {0, 0};
    u32 parity = 1;

    for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
        const place at = task_of(job, task);
        int first_lead[ATTENTION_LEAD], second_lead[ATTENTION_LEAD];
        int i, end;

        tiles_of(job, at, i, end);
        if (i >= end)
            continue;
        bring_block(job, at, block_first, block_second, shared, parity);
        parity ^= 1;
        lead_of(job, at, FIRST_OF_TILE, first_lead);
        lead_of(job, at, SECOND_OF_TILE, second_lead);
        for (; i < end; i++) {
            const u32 to = shared + TILE_AT + now.stage * 2 * TILE_BYTES;
            const u32 first_full = shared + FIRST_FULL + 8 * now.stage;
            const u32 second_full = shared + SECOND_FULL + 8 * now.stage;

            barrier_wait(shared + TILE_EMPTY + 8 * now.stage, now.phase ^ 1);
            barrier_expect(first_full, TILE_BYTES);
            copy_tile<SLABS, TILE>(to, first, i * TILE, first_lead,
                                   first_full);
            barrier_expect(second_full, TILE_BYTES);
            copy_tile<SLABS, TILE>(to + TILE_BYTES, second, i * TILE,
                                   second_lead, second_full);
            advance(now);
        }
    }
}

// What is known of QUERY: lse for exponentials to base 2, and delta. Of queries
// that are not there, or that nothing is seen of, all weights become 0.
INLINE float2 known_of(const attention_params &job, int batch, int query)
{
    const i64 row = (i64)batch * job.queries + query;
    float2 known = {INF_F32, 0};

    if (query >= job.queries)
        return known;
    known.x = job.lse[row] * LOG2_E;
    known.y = job.delta[row];
    if ((IS_CAUSAL || MASK) && known.x == -INF_F32)
        known.x = INF_F32;
    return known;
}

// A warp of its own brings that for the tiles of queries.
INLINE void produce_known(const attention_params &job, u32 shared, u8 *memory)
{
    ring now = {0, 0};

    for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
        const place at = task_of(job, task);
        int i, end;

        for (tiles_of(job, at, i, end); i < end; i++) {
            float *to = (float *)(memory + KNOWN_AT + now.stage * KNOWN_BYTES);

            barrier_wait(shared + KNOWN_EMPTY + 8 * now.stage, now.phase ^ 1);
            for (int k = threadIdx.x % 32; k < TILE; k += 32) {
                const float2 known = known_of(job, at.batch, i * TILE + k);

                to[k] = known.x;
                to[TILE + k] = known.y;
            }
            barrier_arrive(shared + KNOWN_FULL + 8 * now.stage);
            advance(now);
        }
    }
}

// ---- a block ----

// A warpgroup and what it keeps.
struct worker {
    u32 shared;
    const u8 *memory; // the same
    int number;
    ring now;
    u32 parity; // of BLOCK_FULL
    // Of the block:
    place at;
    int first_row, row; // of the warpgroup, of the thread
    u32 before;         // what to arrive at when the last products are done; 0
};

INLINE u32 tile_of(const worker &me)
{
    return me.shared + TILE_AT + me.now.stage * 2 * TILE_BYTES;
}

INLINE u32 rows_of(const worker &me)
{
    return me.shared + BLOCK_AT + me.number * 64 * ROW_BYTES;
}

// The products that read the tile before are done.
INLINE void give_tile_before(worker &me)
{
    if (me.before && is_first_of_group())
        barrier_arrive(me.before);
    me.before = 0;
}

// Ask for s = a b^T of the first tensors, then of the second.
INLINE void begin_tile(worker &me, float (&s)[TILE / 2],
                       float (&slope)[TILE / 2])
{
    barrier_wait(me.shared + FIRST_FULL + 8 * me.now.stage, me.now.phase);
    product_begin();
    multiply_rows<TILE>(s, rows_of(me), tile_of(me));
    product_commit();
    barrier_wait(me.shared + SECOND_FULL + 8 * me.now.stage, me.now.phase);
    multiply_rows<TILE>(slope, rows_of(me) + BLOCK_BYTES,
                        tile_of(me) + TILE_BYTES);
    product_commit();
}

INLINE void end_tile(worker &me)
{
    me.before = me.shared + TILE_EMPTY + 8 * me.now.stage;
    advance(me.now);
}

INLINE bool is_hidden(const attention_params &job, const place &at, int query,
                      int key)
{
    return key >= keys_seen(job, query + 1) ||
           (MASK && query < job.queries && *mask_at(job, at, query, key));
}

// Scores of hidden keys in the tile of rows FIRST and on become -inf.
INLINE void hide(float (&s)[TILE / 2], const attention_params &job,
                 const worker &me, int first)
{
#pragma unroll
    for (int k = 0; k < TILE / 2; k++) {
        const int row = me.row + k / 2 % 2 * 8;
        const int column = first + k / 4 * 8 + own_column() + k % 2;

        if (KEYS_STAY ? is_hidden(job, me.at, column, row)
                      : is_hidden(job, me.at, row, column))
            s[k] = -INF_F32;
    }
}

INLINE bool hides(const attention_params &job, const worker &me, int first)
{
    const int query = KEYS_STAY ? first : me.first_row;
    const int end = KEYS_STAY ? me.first_row + 64 : first + TILE;

    return MASK || end > keys_seen(job, query + 1);
}

template <int COUNT> INLINE void clear(float (&values)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        values[i] = 0;
}

INLINE void wait_for_block(worker &me)
{
    barrier_wait(me.shared + BLOCK_FULL, me.parity);
    me.parity ^= 1;
}

INLINE void end_block(worker &me)
{
    product_wait<0>();
    if (me.before && is_first_of_group())
        barrier_arrive(me.shared + BLOCK_EMPTY);
    give_tile_before(me);
}

// ---- queries stay ----

INLINE void queries_tile(const attention_params &job, worker &me, int first,
                         const float2 (&known)[2], float (&o)[WIDTH / 2],
                         u32 (&w)[TILE / 4])
{
    const u32 tile = tile_of(me);
    float s[TILE / 2], slope[TILE / 2];

    begin_tile(me, s, slope);
    product_wait<1>();
    pin(s);
    give_tile_before(me);
    if (hides(job, me, first))
        hide(s, job, me, first);
#pragma unroll
    for (int k = 0; k < TILE / 2; k++)
        s[k] = power_of_2(__fmaf_rn(s[k], job.scale * LOG2_E,
                                    -known[k / 2 % 2].x));
    product_wait<0>();
    pin(slope);
    pin(o);
    pin(w);
#pragma unroll
    for (int k = 0; k < TILE / 2; k++)
        s[k] *= slope[k] - known[k / 2 % 2].y;
    pack_all(w, s);
    pin(w);
    product_begin();
    multiply_tile<TILE>(o, w, tile);
    product_commit();
    end_tile(me);
}

INLINE void queries_block(const attention_params &job, worker &me)
{
    const float factors[2] = {job.scale, job.scale};
    const float2 known[2] = {known_of(job, me.at.batch, me.row),
                             known_of(job, me.at.batch, me.row + 8)};
    float o[WIDTH / 2];
    u32 w[TILE / 4];
    int i, end;

    clear(o);
    tiles_of(job, me.at, i, end);
    if (i < end)
        wait_for_block(me);
    for (; i < end; i++)
        queries_tile(job, me, i * TILE, known, o, w);
    end_block(me);
    pin(o);
    store_rows(job.results[0], o, factors, me.at.batch, me.row, job.queries);
}

// ---- keys stay ----

// Scores to weights, by the lse of columns.
INLINE void weigh_columns(float (&s)[TILE / 2], float scale, const float *lse)
{
#pragma unroll
    for (int k = 0; k < TILE / 8; k++) {
        const float2 two = *(const float2 *)(lse + 8 * k);

        s[4 * k] = power_of_2(__fmaf_rn(s[4 * k], scale, -two.x));
        s[4 * k + 1] = power_of_2(__fmaf_rn(s[4 * k + 1], scale, -two.y));
        s[4 * k + 2] = power_of_2(__fmaf_rn(s[4 * k + 2], scale, -two.x));
        s[4 * k + 3] = power_of_2(__fmaf_rn(s[4 * k + 3], scale, -two.y));
    }
}

// Weights to slopes of scores, by the delta of columns.
INLINE void slopes_of_columns(float (&s)[TILE / 2],
                              const float (&slope)[TILE / 2],
                              const float *delta)
{
#pragma unroll
    for (int k = 0; k < TILE / 8; k++) {
        const float2 two = *(const float2 *)(delta + 8 * k);

        s[4 * k] *= slope[4 * k] - two.x;
        s[4 * k + 1] *= slope[4 * k + 1] - two.y;
        s[4 * k + 2] *= slope[4 * k + 2] - two.x;
        s[4 * k + 3] *= slope[4 * k + 3] - two.y;
    }
}

// Products are of the whole warpgroup, so one thread knows when they are done;
// what a warp has read itself it says itself.
INLINE void give_known(const worker &me)
{
    __syncwarp();
    if (threadIdx.x % 32 == 0)
        barrier_arrive(me.shared + KNOWN_EMPTY + 8 * me.now.stage);
}

INLINE void keys_tile(const attention_params &job, worker &me, int first,
                      float (&d_key)[WIDTH / 2], float (&d_value)[WIDTH / 2],
                      u32 (&w)[TILE / 4])
{
    const u32 tile = tile_of(me);
    const float *known =
        (const float *)(me.memory + KNOWN_AT + me.now.stage * KNOWN_BYTES) +
        own_column();
    float s[TILE / 2], slope[TILE / 2];
    u32 p[TILE / 4];

    begin_tile(me, s, slope);
    barrier_wait(me.shared + KNOWN_FULL + 8 * me.now.stage, me.now.phase);
    product_wait<1>();
    pin(s);
    pin(d_key);
    pin(w);
    give_tile_before(me);
    if (hides(job, me, first))
        hide(s, job, me, first);
    weigh_columns(s, job.scale * LOG2_E, known);
    pack_all(p, s);
    pin(p);
    pin(d_value);
    product_begin();
    multiply_tile<TILE>(d_value, p, tile + TILE_BYTES);
    product_commit();
    product_wait<1>();
    pin(slope);
    slopes_of_columns(s, slope, known + TILE);
    give_known(me);
    pack_all(w, s);
    product_wait<0>();
    pin(d_value);
    pin(p);
    pin(d_key);
    pin(w);
    product_begin();
    multiply_tile<TILE>(d_key, w, tile);
    product_commit();
    end_tile(me);
}

INLINE void keys_block(const attention_params &job, worker &me)
{
    const float scales[2] = {job.scale, job.scale}, ones[2] = {1, 1};
    float d_key[WIDTH / 2], d_value[WIDTH / 2];
    u32 w[TILE / 4];
    int i, end;

    clear(d_key);
    clear(d_value);
    tiles_of(job, me.at, i, end);
    if (i < end)
        wait_for_block(me);
    for (; i < end; i++)
        keys_tile(job, me, i * TILE, d_key, d_value, w);
    end_block(me);
    pin(d_key);
    pin(d_value);
    store_rows(job.results[1], d_key, scales, me.at.batch, me.row, job.keys);
    store_rows(job.results[2], d_value, ones, me.at.batch, me.row, job.keys);
}

// ---- the kernel ----

INLINE void barriers_start(u32 shared)
{
    if (threadIdx.x == 0) {
        barrier_init(shared + BLOCK_FULL, 1);
        barrier_init(shared + BLOCK_EMPTY, GROUPS);
        for (int i = 0; i < STAGES; i++) {
            barrier_init(shared + FIRST_FULL + 8 * i, 1);
            barrier_init(shared + SECOND_FULL + 8 * i, 1);
            barrier_init(shared + TILE_EMPTY + 8 * i, GROUPS);
            barrier_init(shared + KNOWN_FULL + 8 * i, 32);
            barrier_init(shared + KNOWN_EMPTY + 8 * i, 4 * GROUPS);
        }
        barriers_ready();
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(GROUP_SIZE, 1)
    attention_backward_sm90(const __grid_constant__ tensor_map query,
                            const __grid_constant__ tensor_map key,
                            const __grid_constant__ tensor_map value,
                            const __grid_constant__ tensor_map grad,
                            const __grid_constant__ attention_params job)
{
    extern __shared__ __align__(1024) u8 memory[];
    const u32 shared = shared_address(memory);
    const int number = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);

    barriers_start(shared);
    if (number == 0) {
        registers_decrease<FEW>();
        if (threadIdx.x == 0) {
            if (KEYS_STAY)
                produce(job, &key, &value, &query, &grad, shared);
            else
                produce(job, &query, &grad, &key, &value, shared);
        }
        if (KEYS_STAY && threadIdx.x / 32 == 1)
            produce_known(job, shared, memory);
    } else {
        worker me = {shared, memory, number - 1};

        registers_increase<MANY>();
        for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
            me.at = task_of(job, task);
            me.first_row = me.at.row + 64 * me.number;
            me.row = me.first_row + own_row();
            if (KEYS_STAY)
                keys_block(job, me);
            else
                queries_block(job, me);
        }
    }
}
