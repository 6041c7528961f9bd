// SPDX-License-Identifier: Apache-2.0
//
// attention_slopes.cu - how slopes of scores go from the kernel that makes them
// to the one that multiplies them by keys: rounded to ELEMENT, in units of 64
// keys and 64 queries, for each unit of keys one after the other.
//
// A warpgroup that has keys as rows stores a unit as it lies in its registers,
// 16 bytes a thread at a time: piece number v is of queries 16 v and on, which
// are what warp v of a warpgroup that has queries as rows multiplies.

enum { UNIT = 64, UNIT_BYTES = UNIT * UNIT * 2 };

INLINE int units(int rows)
{
    return (rows + UNIT - 1) / UNIT;
}

// The unit of KEY and QUERY, multiples of UNIT.
INLINE u8 *unit_of(const attention_params &job, int batch, int key, int query)
{
    const i64 row = (i64)(batch - job.first) * units(job.key_end - job.key) +
                    (key - job.key) / UNIT;

    return (u8 *)job.slopes +
           (row * units(job.queries) + query / UNIT) * UNIT_BYTES;
}

INLINE void put_unit(u8 *unit, const u32 (&w)[UNIT / 4])
{
    uint4 *to = (uint4 *)unit + threadIdx.x % WARPGROUP;

#pragma unroll
    for (int v = 0; v < UNIT / 16; v++)
        to[v * WARPGROUP] =
            make_uint4(w[4 * v], w[4 * v + 1], w[4 * v + 2], w[4 * v + 3]);
}

// The other way round, as a factor of products.
INLINE void take_unit(const u8 *unit, u32 (&w)[UNIT / 4])
{
    const uint4 *from = (const uint4 *)unit +
                        threadIdx.x % WARPGROUP / 32 * WARPGROUP +
                        threadIdx.x % 32;

#pragma unroll
    for (int i = 0; i < UNIT / 16; i++) {
        const uint4 four = from[i * 32];

        w[4 * i] = turn(four.x);
        w[4 * i + 1] = turn(four.z);
        w[4 * i + 2] = turn(four.y);
        w[4 * i + 3] = turn(four.w);
    }
}
