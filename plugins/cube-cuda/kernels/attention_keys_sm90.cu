// SPDX-License-Identifier: Apache-2.0
//
// attention_keys_sm90.cu - the gradients of keys and values in attention, on
// tensor cores, and slopes of scores for the gradient of queries.
//
// A group takes a block of keys and values at a time. One thread brings tiles
// of TILE queries and gradients to a ring in shared memory. With p the weights,
// made anew by means of lse, g the gradient and w the slopes of the scores, a
// warpgroup keeps in registers for each 64 keys:
//
//   p = exp(k q^T - lse), w = p (v g^T - delta): the sums of p g and w q
//
// Nothing is added up across groups, so results repeat bit by bit.
//
// WIDTH is 64 or 128, of keys and of values; TILE is that of a unit of slopes.

enum {
    SLABS = WIDTH / SLAB_ELEMENTS,
    BLOCK_BYTES = SLABS * BLOCK * ROW_BYTES,
    TILE_BYTES = SLABS * TILE * ROW_BYTES,
    KNOWN_BYTES = 2 * TILE * 4, // lse and delta of a tile
    // Places in shared memory: keys, values, then for each stage queries and
    // gradients. Barriers of the ring are there once a stage.
    BLOCK_AT = 0,
    TILE_AT = 2 * BLOCK_BYTES,
    KNOWN_AT = TILE_AT + STAGES * 2 * TILE_BYTES,
    BLOCK_FULL = KNOWN_AT + STAGES * KNOWN_BYTES,
    BLOCK_EMPTY = BLOCK_FULL + 8,
    QUERY_FULL = BLOCK_EMPTY + 8, // and what is known
    GRAD_FULL = QUERY_FULL + 8 * STAGES,
    TILE_EMPTY = GRAD_FULL + 8 * STAGES,
    FEW = 24, // registers
    MANY = 240
};

static_assert(TILE == UNIT, "a tile of queries is a unit of slopes");
static_assert(TILE_EMPTY + 8 * STAGES <= ATTENTION_SHARED_BYTES, "too large");

// A task: a block of the keys of a batch entry.
INLINE place task_of(const attention_params &job, int task)
{
    place at = place_of(job, task, false);

    at.row += job.key;
    return at;
}

// Tiles that have to do with the block of AT: from FIRST, before END.
INLINE void tiles_of(const attention_params &job, const place &at, int &first,
                     int &end)
{
    first = IS_CAUSAL ? max(at.row - job.offset, 0) / TILE : 0;
    end = (job.queries + TILE - 1) / TILE;
}

// ---- copies ----

INLINE void bring_block(const attention_params &job, const place &at,
                        const tensor_map *key, const tensor_map *value,
                        u32 shared, u32 parity)
{
    int lead[ATTENTION_LEAD];

    barrier_wait(shared + BLOCK_EMPTY, parity);
    barrier_expect(shared + BLOCK_FULL, 2 * BLOCK_BYTES);
    lead_of(job, at, ATTENTION_KEY, lead);
    copy_tile<SLABS, BLOCK>(shared + BLOCK_AT, key, at.row, lead,
                            shared + BLOCK_FULL);
    lead_of(job, at, ATTENTION_VALUE, lead);
    copy_tile<SLABS, BLOCK>(shared + BLOCK_AT + BLOCK_BYTES, value, at.row,
                            lead, shared + BLOCK_FULL);
}

INLINE void produce(const attention_params &job, const tensor_map *query,
                    const tensor_map *key, const tensor_map *value,
                    const tensor_map *grad, u32 shared)
{
    ring now = {0, 0};
    u32 parity = 1;

    for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
        const place at = task_of(job, task);
        const float *known =
            job.known + (i64)at.batch * units(job.queries) * 2 * TILE;
        int query_lead[ATTENTION_LEAD], grad_lead[ATTENTION_LEAD];
        int i, end;

        tiles_of(job, at, i, end);
        if (i >= end)
            continue;
        bring_block(job, at, key, value, shared, parity);
        parity ^= 1;
        lead_of(job, at, ATTENTION_QUERY, query_lead);
        lead_of(job, at, ATTENTION_GRAD, grad_lead);
        for (; i < end; i++) {
            const u32 to = shared + TILE_AT + now.stage * 2 * TILE_BYTES;
            const u32 query_full = shared + QUERY_FULL + 8 * now.stage;
            const u32 grad_full = shared + GRAD_FULL + 8 * now.stage;

            barrier_wait(shared + TILE_EMPTY + 8 * now.stage, now.phase ^ 1);
            barrier_expect(query_full, TILE_BYTES + KNOWN_BYTES);
            copy_tile<SLABS, TILE>(to, query, i * TILE, query_lead, query_full);
            copy_bytes(shared + KNOWN_AT + now.stage * KNOWN_BYTES,
                       known + i * 2 * TILE, KNOWN_BYTES, query_full);
            barrier_expect(grad_full, TILE_BYTES);
            copy_tile<SLABS, TILE>(to + TILE_BYTES, grad, i * TILE, grad_lead,
                                   grad_full);
            advance(now);
        }
    }
}

// ---- a tile ----

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

// The products that read the tile before are done, and the thread has read what
// is known of its queries. Each thread says so itself: that a warp's first one
// could for all after __syncwarp() compute-sanitizer does not see.
INLINE void give_tile_before(worker &me)
{
    if (me.before)
        barrier_arrive(me.before);
    me.before = 0;
}

// Ask for s = k q^T, then for slope = v g^T.
INLINE void begin_tile(worker &me, float (&s)[TILE / 2],
                       float (&slope)[TILE / 2])
{
    barrier_wait(me.shared + QUERY_FULL + 8 * me.now.stage, me.now.phase);
    product_begin();
    multiply_rows<TILE>(s, rows_of(me), tile_of(me));
    product_commit();
    barrier_wait(me.shared + GRAD_FULL + 8 * me.now.stage, me.now.phase);
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

// Scores of keys that are hidden from queries FIRST and on become -inf.
INLINE void hide(float (&s)[TILE / 2], const attention_params &job,
                 const worker &me, int first)
{
#pragma unroll
    for (int k = 0; k < TILE / 2; k++) {
        const int key = me.row + k / 2 % 2 * 8;
        const int query = first + k / 4 * 8 + own_column() + k % 2;

        if (is_hidden(job, me.at, query, key))
            s[k] = -INF_F32;
    }
}

INLINE bool hides(const attention_params &job, const worker &me, int first)
{
    return MASK || me.first_row + 64 > keys_seen(job, first + 1);
}

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

INLINE void add_tile(const attention_params &job, worker &me, int first,
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
    pack_all(w, s);
    if (me.first_row < job.keys)
        put_unit(unit_of(job, me.at.batch, me.first_row, first), w);
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

// ---- a block ----

template <int COUNT> INLINE void clear(float (&values)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        values[i] = 0;
}

INLINE void consume(const attention_params &job, worker &me)
{
    const float scales[2] = {job.scale, job.scale}, ones[2] = {1, 1};
    float d_key[WIDTH / 2], d_value[WIDTH / 2];
    u32 w[TILE / 4];
    int i, end;

    me.first_row = me.at.row + 64 * me.number;
    me.row = me.first_row + own_row();
    clear(d_key);
    clear(d_value);
    tiles_of(job, me.at, i, end);
    if (i < end) {
        barrier_wait(me.shared + BLOCK_FULL, me.parity);
        me.parity ^= 1;
    }
    for (; i < end; i++)
        add_tile(job, me, i * TILE, d_key, d_value, w);
    product_wait<0>();
    if (me.before && is_first_of_group())
        barrier_arrive(me.shared + BLOCK_EMPTY);
    give_tile_before(me);
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
            barrier_init(shared + QUERY_FULL + 8 * i, 1);
            barrier_init(shared + GRAD_FULL + 8 * i, 1);
            barrier_init(shared + TILE_EMPTY + 8 * i, GROUPS * WARPGROUP);
        }
        barriers_ready();
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(GROUP_SIZE, 1)
    attention_keys_sm90(const __grid_constant__ tensor_map query,
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
        if (threadIdx.x == 0)
            produce(job, &query, &key, &value, &grad, shared);
    } else {
        worker me = {shared, memory, number - 1};

        registers_increase<MANY>();
        for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
            me.at = task_of(job, task);
            consume(job, me);
        }
    }
}
