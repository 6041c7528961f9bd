// SPDX-License-Identifier: Apache-2.0
//
// attention_sm90.cu - attention on tensor cores, as in "FlashAttention-3" (Shah
// and others 2024).
//
// A group takes a block of queries at a time. One thread brings tiles of KEYS
// keys and values to a ring in shared memory, the last ones first. Of each 64
// queries a warpgroup keeps the sum of weighted values in registers. While it
// makes weights of the scores of a tile, the product of the values before with
// their weights goes on, and so do the products of the other warpgroups: they
// take turns.
//
// WIDTH is 64 or 128, of keys and of values.

enum {
    SLABS = WIDTH / SLAB_ELEMENTS,
    QUERY_BYTES = SLABS * BLOCK * ROW_BYTES,
    KEY_BYTES = SLABS * KEYS * ROW_BYTES,
    // Places in shared memory; barriers of the ring are there once a stage.
    QUERY_AT = 0,
    KEY_AT = QUERY_BYTES,
    VALUE_AT = KEY_AT + STAGES * KEY_BYTES,
    QUERY_FULL = VALUE_AT + STAGES * KEY_BYTES,
    QUERY_EMPTY = QUERY_FULL + 8,
    KEY_FULL = QUERY_EMPTY + 8,
    KEY_EMPTY = KEY_FULL + 8 * STAGES,
    VALUE_FULL = KEY_EMPTY + 8 * STAGES,
    VALUE_EMPTY = VALUE_FULL + 8 * STAGES,
    // The first of the hardware's own barriers by which warpgroups take turns;
    // number 0 is that of __syncthreads.
    TURNS = 1,
    FEW = GROUPS == 2 ? 24 : 32, // registers
    MANY = GROUPS == 2 ? 240 : 160
};

static_assert(VALUE_EMPTY + 8 * STAGES <= ATTENTION_SHARED_BYTES, "too large");

INLINE int tiles_of(const attention_params &job, const place &at)
{
    return (keys_seen(job, at.row + BLOCK) + KEYS - 1) / KEYS;
}

// ---- copies ----

INLINE void bring_block(u32 shared, const tensor_map *map, int row,
                        const int (&lead)[ATTENTION_LEAD], u32 parity)
{
    barrier_wait(shared + QUERY_EMPTY, parity);
    barrier_expect(shared + QUERY_FULL, QUERY_BYTES);
    copy_tile<SLABS, BLOCK>(shared + QUERY_AT, map, row, lead,
                            shared + QUERY_FULL);
}

// A tile to the place of the ring TO, with its barriers FULL and EMPTY.
INLINE void bring_tile(u32 to, u32 full, u32 empty, const tensor_map *map,
                       int row, const int (&lead)[ATTENTION_LEAD], ring &at)
{
    barrier_wait(empty + 8 * at.stage, at.phase ^ 1);
    barrier_expect(full + 8 * at.stage, KEY_BYTES);
    copy_tile<SLABS, KEYS>(to + at.stage * KEY_BYTES, map, row, lead,
                           full + 8 * at.stage);
    advance(at);
}

INLINE void produce(const attention_params &job, const tensor_map *query,
                    const tensor_map *key, const tensor_map *value, u32 shared)
{
    ring keys = {0, 0}, values = {0, 0};
    u32 parity = 1;

    for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
        const place at = place_of(job, task, IS_CAUSAL);
        const int tiles = tiles_of(job, at);
        int lead[ATTENTION_LEAD], value_lead[ATTENTION_LEAD];

        if (!tiles)
            continue;
        lead_of(job, at, ATTENTION_QUERY, lead);
        bring_block(shared, query, at.row, lead, parity);
        parity ^= 1;
        lead_of(job, at, ATTENTION_KEY, lead);
        lead_of(job, at, ATTENTION_VALUE, value_lead);
        // Values are wanted one tile later.
        for (int i = tiles - 1; i >= -1; i--) {
            if (i >= 0)
                bring_tile(shared + KEY_AT, shared + KEY_FULL,
                           shared + KEY_EMPTY, key, i * KEYS, lead, keys);
            if (i < tiles - 1)
                bring_tile(shared + VALUE_AT, shared + VALUE_FULL,
                           shared + VALUE_EMPTY, value, (i + 1) * KEYS,
                           value_lead, values);
        }
    }
}

// ---- weights ----

// A warpgroup and what it keeps.
struct worker {
    u32 shared;
    u32 query; // its queries in shared memory
    int number;
    ring keys, values;
    u32 parity; // of QUERY_FULL
    // Of the block:
    place at;
    int row;       // the thread's first query
    float most[2]; // the greatest scores of its rows
    float sum[2];  // of the weights in its columns
};

// Bit 2 i + c: the mask hides column 8 i + c of the thread's from its row R, in
// the tile that begins with key FIRST.
INLINE u32 masked(const attention_params &job, const worker &me, int r,
                  int first)
{
    const int query = me.row + 8 * r, key = first + own_column();
    const u8 *mask = mask_at(job, me.at, query, key);
    u32 bits = 0;

    if (query >= job.queries)
        return 0;
#pragma unroll
    for (int i = 0; i < KEYS / 8; i++) {
        u32 pair = 0;

        if (MASK == 2) {
            if (key + 8 * i < job.keys)
                pair = *(const u16 *)(mask + 8 * i);
            pair = (pair | pair >> 7) & 3;
        } else {
            if (key + 8 * i < job.keys)
                pair = mask[8 * i * job.mask_column];
            if (key + 8 * i + 1 < job.keys)
                pair |= mask[(8 * i + 1) * job.mask_column] << 1;
        }
        bits |= pair << 2 * i;
    }
    return bits;
}

// Scores that keys from FIRST on must not have become -inf.
INLINE void hide(float (&s)[KEYS / 2], const attention_params &job,
                 const worker &me, int first, const u32 (&bits)[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int end =
            keys_seen(job, me.row + 8 * r + 1) - first - own_column();

#pragma unroll
        for (int i = 0; i < KEYS / 4; i++)
            if (i / 2 * 8 + i % 2 >= end || (MASK && bits[r] >> i & 1))
                s[i / 2 * 4 + 2 * r + i % 2] = -INF_F32;
    }
}

// Scores become weights; what was added up before is to be scaled by FACTORS.
INLINE void weigh(float (&s)[KEYS / 2], worker &me, float scale,
                  float (&factors)[2])
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        float most = me.most[r], sum = 0, base;

#pragma unroll
        for (int i = 0; i < KEYS / 8; i++)
            most = fmaxf(most, fmaxf(s[4 * i + 2 * r], s[4 * i + 2 * r + 1]));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
        most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
        // Nothing was seen yet: all weights become 0.
        base = most == -INF_F32 ? 0 : most * scale;
        factors[r] = power_of_2(__fmaf_rn(me.most[r], scale, -base));
        me.most[r] = most;
#pragma unroll
        for (int i = 0; i < KEYS / 4; i++) {
            float &x = s[i / 2 * 4 + 2 * r + i % 2];

            x = power_of_2(__fmaf_rn(x, scale, -base));
            sum += x;
        }
        me.sum[r] = __fmaf_rn(me.sum[r], factors[r], sum);
    }
}

// ---- a block ----

INLINE void give_turn(int number)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(TURNS + number), "n"(2 * WARPGROUP)
                 : "memory");
}

INLINE void my_turn(const worker &me)
{
    asm volatile("bar.sync %0, %1;" ::"r"(TURNS + me.number),
                 "n"(2 * WARPGROUP)
                 : "memory");
}

INLINE void next_turn(const worker &me)
{
    give_turn(me.number + 1 == GROUPS ? 0 : me.number + 1);
}

INLINE void wait_for_keys(const worker &me)
{
    barrier_wait(me.shared + KEY_FULL + 8 * me.keys.stage, me.keys.phase);
}

INLINE u32 keys_of(const worker &me)
{
    return me.shared + KEY_AT + me.keys.stage * KEY_BYTES;
}

INLINE void give_keys(worker &me)
{
    if (is_first_of_group())
        barrier_arrive(me.shared + KEY_EMPTY + 8 * me.keys.stage);
    advance(me.keys);
}

INLINE void wait_for_values(const worker &me)
{
    barrier_wait(me.shared + VALUE_FULL + 8 * me.values.stage,
                 me.values.phase);
}

INLINE u32 values_of(const worker &me)
{
    return me.shared + VALUE_AT + me.values.stage * KEY_BYTES;
}

INLINE void give_values(worker &me)
{
    if (is_first_of_group())
        barrier_arrive(me.shared + VALUE_EMPTY + 8 * me.values.stage);
    advance(me.values);
}

// Scale of the scores, for exponentials to base 2.
INLINE float scale_of(const attention_params &job)
{
    return job.scale * LOG2_E;
}

INLINE void read_mask(const attention_params &job, const worker &me, int first,
                      u32 (&bits)[2])
{
    bits[0] = bits[1] = 0;
    if (!MASK)
        return;
    bits[0] = masked(job, me, 0, first);
    bits[1] = job.mask_row ? masked(job, me, 1, first) : bits[0];
}

// The first tile, to weights p.
INLINE void start(const attention_params &job, worker &me, u32 (&p)[KEYS / 4],
                  int first)
{
    float s[KEYS / 2], factors[2];
    u32 bits[2];

    wait_for_keys(me);
    product_begin();
    multiply_rows<KEYS>(s, me.query, keys_of(me));
    product_commit();
    read_mask(job, me, first, bits);
    product_wait<0>();
    pin(s);
    give_keys(me);
    hide(s, job, me, first, bits);
    weigh(s, me, scale_of(job), factors);
    pack_all(p, s);
}

// A further tile, and the values of the one before, which has weights p.
template <bool HIDES>
INLINE void step(const attention_params &job, worker &me, u32 (&p)[KEYS / 4],
                 float (&o)[WIDTH / 2], int first)
{
    float s[KEYS / 2], factors[2];
    u32 bits[2];

    wait_for_keys(me);
    my_turn(me);
    pin(o);
    pin(p);
    product_begin();
    multiply_rows<KEYS>(s, me.query, keys_of(me));
    product_commit();
    wait_for_values(me);
    multiply_tile<KEYS>(o, p, values_of(me));
    product_commit();
    next_turn(me);
    if (HIDES)
        read_mask(job, me, first, bits);
    product_wait<1>();
    pin(s);
    give_keys(me);
    if (HIDES)
        hide(s, job, me, first, bits);
    weigh(s, me, scale_of(job), factors);
    product_wait<0>();
    pin(o);
    pin(p);
    give_values(me);
    pack_all(p, s);
#pragma unroll
    for (int i = 0; i < WIDTH / 2; i++)
        o[i] *= factors[i / 2 % 2];
}

INLINE void finish(worker &me, u32 (&p)[KEYS / 4], float (&o)[WIDTH / 2])
{
    if (is_first_of_group())
        barrier_arrive(me.shared + QUERY_EMPTY);
    wait_for_values(me);
    pin(o);
    pin(p);
    product_begin();
    multiply_tile<KEYS>(o, p, values_of(me));
    product_commit();
    product_wait<0>();
    pin(o);
    give_values(me);
}

// Divide by the sums of weights. Where that is 0, all is hidden, which makes 0,
// or all scores are -inf, which makes NaN as in softmax.
INLINE void store(const attention_params &job, const worker &me,
                  const float (&o)[WIDTH / 2])
{
    const bool hides = IS_CAUSAL || MASK;
    float factors[2];

#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int query = me.row + 8 * r;
        float sum = me.sum[r], lse;

        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        factors[r] = sum == 0 ? (hides ? 0 : NAN_F32) : __fdividef(1, sum);
        lse = sum == 0 ? (hides ? -INF_F32 : NAN_F32)
                       : (me.most[r] * scale_of(job) + __log2f(sum)) * LN_2;
        if (own_column() == 0 && query < job.queries)
            job.lse[(i64)me.at.batch * job.queries + query] = lse;
    }
    store_rows(job.results[0], o, factors, me.at.batch, me.row, job.queries);
}

INLINE void consume(const attention_params &job, worker &me)
{
    const int first_row = me.at.row + 64 * me.number;
    // Tiles that the warpgroup sees as a whole.
    const int whole = MASK ? 0 : keys_seen(job, first_row + 1) / KEYS;
    int i = tiles_of(job, me.at) - 1;
    float o[WIDTH / 2];
    u32 p[KEYS / 4];

    me.row = first_row + own_row();
    me.most[0] = me.most[1] = -INF_F32;
    me.sum[0] = me.sum[1] = 0;
#pragma unroll
    for (int k = 0; k < WIDTH / 2; k++)
        o[k] = 0;
    if (i >= 0) {
        barrier_wait(me.shared + QUERY_FULL, me.parity);
        me.parity ^= 1;
        start(job, me, p, i * KEYS);
        for (i--; i >= whole; i--)
            step<true>(job, me, p, o, i * KEYS);
        for (; i >= 0; i--)
            step<false>(job, me, p, o, i * KEYS);
        finish(me, p, o);
    }
    store(job, me, o);
}

INLINE void barriers_start(u32 shared)
{
    if (threadIdx.x == 0) {
        barrier_init(shared + QUERY_FULL, 1);
        barrier_init(shared + QUERY_EMPTY, GROUPS);
        for (int i = 0; i < STAGES; i++) {
            barrier_init(shared + KEY_FULL + 8 * i, 1);
            barrier_init(shared + KEY_EMPTY + 8 * i, GROUPS);
            barrier_init(shared + VALUE_FULL + 8 * i, 1);
            barrier_init(shared + VALUE_EMPTY + 8 * i, GROUPS);
        }
        barriers_ready();
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(GROUP_SIZE, 1)
    attention_sm90(const __grid_constant__ tensor_map query,
                   const __grid_constant__ tensor_map key,
                   const __grid_constant__ tensor_map value,
                   const __grid_constant__ attention_params job)
{
    extern __shared__ __align__(1024) u8 memory[];
    const u32 shared = shared_address(memory);
    const int number = __shfl_sync(~0u, threadIdx.x / WARPGROUP, 0);

    barriers_start(shared);
    if (number == 0) {
        registers_decrease<FEW>();
        if (threadIdx.x == 0)
            produce(job, &query, &key, &value, shared);
    } else {
        worker me = {shared, shared + QUERY_AT + (number - 1) * 64 * ROW_BYTES,
                     number - 1};

        registers_increase<MANY>();
        // The first turn is the first warpgroup's.
        if (number == GROUPS)
            give_turn(0);
        for (int task = blockIdx.x; task < job.tasks; task += gridDim.x) {
            me.at = place_of(job, task, IS_CAUSAL);
            consume(job, me);
        }
    }
}
