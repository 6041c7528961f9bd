// SPDX-License-Identifier: Apache-2.0
//
// conv_pack.cu - planes and weights with channels last, as conv_sm90 and
// conv_weight_sm90 want them: halves as they are, f32 as PARTS of bf16.
//
// Planes whose places lie one after the other are turned by tiles of 64 by 64
// in shared memory. All else is read element by element.

enum {
    TILE = 64,
    // Words from a channel of a tile to the next. Where eight channels are read
    // at once, lanes with channel 32 and on are 4 banks further.
    PITCH = TILE / 2 + 1
};

INLINE int word_of(int channel, int pair)
{
    return channel * PITCH + channel / 32 * 4 + pair;
}

static_assert(TILE * PITCH + 4 == CONV_PACK_WORDS, "the host takes as much");

// ---- elements ----

// X as they are packed. Of f32 the first part is x but for its low bits, the
// next one what is missing, and so on; the last is rounded. 24 bits are three
// parts. None is 0 unless x is, and all of an infinite x are infinite, so that
// an infinite number times x is what it should be; all of NaN are NaN.
#if PARTS == 1
INLINE void split(u16 x, u16 (&parts)[PARTS]) { parts[0] = x; }
#else
INLINE void split(float x, u16 (&parts)[PARTS])
{
    const u32 least = 0x80; // the least normal one
    const u32 bits = __float_as_uint(x), sign = bits >> 16 & 0x8000;
    float rest = x;

    if ((bits & 0x7fffffff) >= 0x7f800000) {
#pragma unroll
        for (int p = 0; p < PARTS; p++)
            parts[p] = bits << 9 ? 0x7fc0 : bits >> 16;
        return;
    }
#pragma unroll
    for (int p = 0; p < PARTS; p++) {
        const u32 part = p < PARTS - 1 ? __float_as_uint(rest) >> 16
                                       : pack(rest, 0) & 0xffff;

        rest -= __uint_as_float(part << 16);
        parts[p] = x != 0 && !(part & 0x7fff) ? sign | least : part;
    }
}
#endif

// ---- by tiles ----

// VECTOR places at once of CHANNEL, from PLACE on, to shared memory.
#if PARTS == 1
template <int VECTOR>
INLINE void read_tile(const conv_pack &job, u32 *tile, int image, int channel0,
                      int place0)
{
    const int plane = job.sizes[0] * job.sizes[1];
    enum { PER_ROW = TILE / VECTOR };

#pragma unroll 4
    for (int i = 0; i < TILE * PER_ROW / GROUP_SIZE; i++) {
        const int at = i * GROUP_SIZE + threadIdx.x;
        const int c = at / PER_ROW, p = at % PER_ROW * VECTOR;
        const u16 *from = (const u16 *)job.from + image * job.image +
                          (channel0 + c) * job.channel + place0 + p;
        const bool is_there = channel0 + c < job.channels && place0 + p < plane;

        if (VECTOR == 8) {
            const uint4 v =
                is_there ? *(const uint4 *)from : make_uint4(0, 0, 0, 0);

            tile[word_of(c, p / 2)] = v.x;
            tile[word_of(c, p / 2 + 1)] = v.y;
            tile[word_of(c, p / 2 + 2)] = v.z;
            tile[word_of(c, p / 2 + 3)] = v.w;
        } else if (VECTOR == 4) {
            const uint2 v = is_there ? *(const uint2 *)from : make_uint2(0, 0);

            tile[word_of(c, p / 2)] = v.x;
            tile[word_of(c, p / 2 + 1)] = v.y;
        } else if (VECTOR == 2) {
            tile[word_of(c, p / 2)] = is_there ? *(const u32 *)from : 0;
        } else {
            ((u16 *)tile)[2 * word_of(c, 0) + p] = is_there ? *from : 0;
        }
    }
}
#else
template <int VECTOR>
INLINE void read_tile(const conv_pack &job, u32 *tile, int image, int channel0,
                      int place0)
{
    const int plane = job.sizes[0] * job.sizes[1];
    enum { PER_ROW = TILE / VECTOR };

#pragma unroll 4
    for (int i = 0; i < TILE * PER_ROW / GROUP_SIZE; i++) {
        const int at = i * GROUP_SIZE + threadIdx.x;
        const int c = at / PER_ROW, place = at % PER_ROW * VECTOR;
        const float *from = (const float *)job.from + image * job.image +
                            (channel0 + c) * job.channel + place0 + place;
        float4 v = make_float4(0, 0, 0, 0);
        u16 x[PARTS], y[PARTS], z[PARTS], w[PARTS];

        if (channel0 + c < job.channels && place0 + place < plane) {
            if (VECTOR == 4)
                v = *(const float4 *)from;
            else if (VECTOR == 2)
                *(float2 *)&v = *(const float2 *)from;
            else
                v.x = *from;
        }
        split(v.x, x);
        split(v.y, y);
        split(v.z, z);
        split(v.w, w);
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            u32 *to = tile + p * CONV_PACK_WORDS + word_of(c, place / 2);

            if (VECTOR == 1)
                ((u16 *)to)[place % 2] = x[p];
            else
                to[0] = x[p] | y[p] << 16;
            if (VECTOR == 4)
                to[1] = z[p] | w[p] << 16;
        }
    }
}
#endif

INLINE void read_any_tile(const conv_pack &job, u32 *tile, int image,
                          int channel, int place)
{
#if PARTS == 1
    if (job.vector == 8) {
        read_tile<8>(job, tile, image, channel, place);
        return;
    }
#endif
    if (job.vector == 4)
        read_tile<4>(job, tile, image, channel, place);
    else if (job.vector == 2)
        read_tile<2>(job, tile, image, channel, place);
    else
        read_tile<1>(job, tile, image, channel, place);
}

INLINE void turn_tile(const conv_pack &job, u32 *tile, int task)
{
    const int plane = job.sizes[0] * job.sizes[1];
    const int channel0 = task % job.tiles_channels * TILE;
    const int place0 = task / job.tiles_channels % job.tiles_places * TILE;
    const int image = task / job.tiles_channels / job.tiles_places;
    const int c = threadIdx.x % 8 * 8, pair = threadIdx.x / 8;
    const int place = place0 + 2 * pair;
    u32 v[PARTS][8];
    u16 *to;

    read_any_tile(job, tile, image, channel0, place0);
    __syncthreads();
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            v[p][i] = tile[p * CONV_PACK_WORDS + word_of(c + i, pair)];
    __syncthreads();
    if (channel0 + c >= job.pitch)
        return;
    to =
        (u16 *)job.to + ((i64)image * plane + place) * job.pitch + channel0 + c;
#pragma unroll
    for (int p = 0; p < PARTS; p++, to += job.part) {
        u32 low[4], high[4];

#pragma unroll
        for (int i = 0; i < 4; i++) {
            low[i] = __byte_perm(v[p][2 * i], v[p][2 * i + 1], 0x5410);
            high[i] = __byte_perm(v[p][2 * i], v[p][2 * i + 1], 0x7632);
        }
        if (place < plane)
            *(uint4 *)to = make_uint4(low[0], low[1], low[2], low[3]);
        if (place + 1 < plane)
            *(uint4 *)(to + job.pitch) =
                make_uint4(high[0], high[1], high[2], high[3]);
    }
}

// ---- element by element ----

// Eight numbers one after the other, beginning with number 8 UNIT.
INLINE void gather(const conv_pack &job, i64 unit)
{
    i64 rest = 8 * unit;
    int c = (int)(rest % job.pitch), x, y, image;
    u16 v[8][PARTS];

    rest /= job.pitch;
    x = (int)(rest % job.sizes[1]);
    rest /= job.sizes[1];
    y = (int)(rest % job.sizes[0]);
    image = (int)(rest / job.sizes[0]);
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int from = x + job.first;
        number element = 0;

        if (c < job.channels && (u32)from < (u32)job.width)
            element = ((const number *)
                           job.from)[image * job.image + c * job.channel +
                                     y * job.step[0] + from * job.step[1]];
        split(element, v[i]);
        if (++c == job.pitch) {
            c = 0;
            if (++x == job.sizes[1]) {
                x = 0;
                if (++y == job.sizes[0]) {
                    y = 0;
                    image++;
                }
            }
        }
    }
#pragma unroll
    for (int p = 0; p < PARTS; p++)
        *(uint4 *)((u16 *)job.to + p * job.part + 8 * unit) =
            make_uint4(v[0][p] | v[1][p] << 16, v[2][p] | v[3][p] << 16,
                       v[4][p] | v[5][p] << 16, v[6][p] | v[7][p] << 16);
}

INLINE void run(const conv_pack &job, u32 *tile, int group)
{
    const i64 units =
        (i64)job.images * job.sizes[0] * job.sizes[1] * job.pitch / 8;

    if (job.vector) {
        turn_tile(job, tile, group);
    } else {
        const i64 unit = (i64)group * GROUP_SIZE + threadIdx.x;

        if (unit < units)
            gather(job, unit);
    }
}

extern "C" __global__ void __launch_bounds__(GROUP_SIZE, 4)
    conv_pack(const __grid_constant__ conv_packs jobs)
{
    // None of its own: what a launch may ask for is all that there is.
    extern __shared__ u32 tile[];

    for (int at = blockIdx.x; at < jobs.pack[0].groups + jobs.pack[1].groups;
         at += gridDim.x) {
        const bool is_second = at >= jobs.pack[0].groups;

        run(jobs.pack[is_second], tile,
            is_second ? at - jobs.pack[0].groups : at);
    }
}
