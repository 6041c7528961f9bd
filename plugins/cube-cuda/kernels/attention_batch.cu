// SPDX-License-Identifier: Apache-2.0
//
// attention_batch.cu - what the kernels of attention share: who computes what,
// what is hidden from whom, and products of a block and a tile.
//
// The first warpgroup of a group brings tiles, each of the others computes for
// EACH times 64 rows of a block, of WIDTH elements each. IS_CAUSAL is 0 or 1.
// MASK is 0: there is none, 1: there is one, 2: there is one whose columns 2 i
// and 2 i + 1 can be read at once.

enum { GROUPS = GROUP_SIZE / WARPGROUP - 1, BLOCK = 64 * EACH * GROUPS };

// A task: a block of rows of a batch entry.
struct place {
    int batch, row; // the first one
    int lead[ATTENTION_LEAD];
};

INLINE place place_of(const attention_params &job, int task, bool from_last)
{
    const int block = task % job.blocks;
    place at;
    int rest;

    at.batch = job.first + task / job.blocks;
    at.row = (from_last ? job.blocks - 1 - block : block) * BLOCK;
    rest = at.batch;
#pragma unroll
    for (int i = ATTENTION_LEAD - 1; i >= 0; i--) {
        at.lead[i] = rest % job.lead[i];
        rest /= job.lead[i];
    }
    return at;
}

// Where OPERAND has the batch entry of AT.
INLINE void lead_of(const attention_params &job, const place &at, int operand,
                    int (&out)[ATTENTION_LEAD])
{
#pragma unroll
    for (int i = 0; i < ATTENTION_LEAD; i++)
        out[i] = job.moves >> (ATTENTION_LEAD * operand + i) & 1 ? at.lead[i]
                                                                 : 0;
}

// The first of the thread's two rows in a product of 64 rows, the other being 8
// below, and the first of its columns.
INLINE int own_row()
{
    return threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
}

INLINE int own_column()
{
    return threadIdx.x % 4 * 2;
}

INLINE bool is_first_of_group()
{
    return threadIdx.x % WARPGROUP == 0;
}

// How many keys the queries before END see.
INLINE int keys_seen(const attention_params &job, int end)
{
    return IS_CAUSAL ? max(min(job.keys, end + job.offset), 0) : job.keys;
}

INLINE const u8 *mask_at(const attention_params &job, const place &at,
                         i64 query, i64 key)
{
    return job.mask + at.lead[0] * job.mask_lead[0] +
           at.lead[1] * job.mask_lead[1] + at.lead[2] * job.mask_lead[2] +
           query * job.mask_row + key * job.mask_column;
}

// Put the rows of a product, times FACTORS, into a result of END rows a batch
// entry, of which ROW is the thread's first.
template <int COUNT>
INLINE void store_rows(void *result, const float (&from)[COUNT],
                       const float (&factors)[2], int batch, int row, int end)
{
#pragma unroll
    for (int r = 0; r < 2; r++) {
        u32 *to = (u32 *)result + ((i64)batch * end + row + 8 * r) * COUNT +
                  own_column() / 2;

        if (row + 8 * r >= end)
            continue;
#pragma unroll
        for (int i = 0; i < COUNT / 4; i++)
            to[4 * i] = pack(from[4 * i + 2 * r] * factors[r],
                             from[4 * i + 2 * r + 1] * factors[r]);
    }
}

// ---- products of a block and a tile ----

// s = a b^T, a of a block's rows and b a tile of ROWS rows.
template <int ROWS>
INLINE void multiply_rows(float (&s)[ROWS / 2], u32 block, u32 tile)
{
    const u64 a = rows_descriptor(block), b = rows_descriptor(tile);

#pragma unroll
    for (int i = 0; i < WIDTH / 16; i++)
        product<ROWS>::multiply(
            s, a + (i / 4 * (BLOCK * ROW_BYTES) + i % 4 * 32) / 16,
            b + (i / 4 * (ROWS * ROW_BYTES) + i % 4 * 32) / 16, i > 0);
}

// o += p b, b a tile of ROWS rows.
template <int ROWS>
INLINE void multiply_tile(float (&o)[WIDTH / 2], const u32 (&p)[ROWS / 4],
                          u32 tile)
{
    const u64 b = turned_descriptor(tile, ROWS * ROW_BYTES);

#pragma unroll
    for (int i = 0; i < ROWS / 16; i++)
        product<WIDTH>::multiply_turned(o, &p[4 * i],
                                        b + i * 16 * ROW_BYTES / 16);
}
