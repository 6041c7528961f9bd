// SPDX-License-Identifier: Apache-2.0
//
// conv_places.cu - what the kernels of convolutions share: places of planes,
// copies of them, and the loop over what a ring brings.
//
// PARTS is 1 for halves. A number of f32 is the sum of PARTS of bf16, conv_pack
// has made them: planes of each have a map, and rows are a matrix for each.
// Products of parts that matter are added up on tensor cores from the least to
// the greatest, over one stage of the ring; these sums, which are short because
// such units cut what they add, are added up in f32.

// What lies in the tensors of a call.
#if PARTS == 1
typedef u16 number;
#else
typedef float number;

INLINE float load(const float *from) { return *from; }
INLINE void store(float *to, float x) { *to = x; }
#endif

// Of planes, a map for each part.
struct place_maps {
    tensor_map of[PARTS];
};

// Place q of an image's plane.
struct place {
    int image, q[2];
    int from[2]; // what it is in the plane that is copied
};

INLINE place place_of(const conv_params &job, int number)
{
    const int line = (u32)number / (u32)job.sizes[1];
    place at;

    at.q[1] = number - line * job.sizes[1];
    at.image = (u32)line / (u32)job.sizes[0];
    at.q[0] = line - at.image * job.sizes[0];
    at.from[0] = job.first[0] + at.q[0] * job.step[0];
    at.from[1] = job.first[1] + at.q[1] * job.step[1];
    return at;
}

// Channels from CHANNEL on of the places from FROM on, each moved by X and Y,
// as many as MAP says; places outside of a plane are 0.
INLINE void copy_places(u32 to, const tensor_map *map, int channel,
                        const place &from, int x, int y, u32 barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::"
        "complete_tx::bytes [%0], [%1, {%2, %3, %4, %5}], [%6], {%7, %8};" ::
            "r"(to),
        "l"(map), "r"(channel), "r"(from.from[1]), "r"(from.from[0]),
        "r"(from.image), "r"(barrier), "h"((u16)x), "h"((u16)y)
        : "memory");
}

// The first of the thread's two rows in a product of 64 rows, the other being 8
// below.
INLINE int own_row()
{
    return threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4;
}

INLINE bool is_first_of_group()
{
    return threadIdx.x % WARPGROUP == 0;
}

// Barriers of a ring: one thread fills stages, READERS read them.
INLINE void barriers_start(u32 shared, int full, int empty, int readers)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrier_init(shared + full + 8 * i, 1);
            barrier_init(shared + empty + 8 * i, readers);
        }
        barriers_ready();
    }
    __syncthreads();
}

// D = what MULTIPLY(values, offset) adds up over STEPS stages of a ring, OFFSET
// being where a stage begins, FULL and EMPTY its barriers.
template <int COUNT, typename MULTIPLY>
INLINE void consume(float (&d)[COUNT], int steps, int stage_bytes, u32 full,
                    u32 empty, ring &at, MULTIPLY multiply)
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        d[i] = 0;
#if PARTS == 1
    u32 done = 0;

    pin(d);
#pragma unroll 4
    for (int i = 0; i < steps; i++) {
        const u32 now = at.stage;

        barrier_wait(full + 8 * now, at.phase);
        multiply(d, now * stage_bytes);
        product_wait<1>();
        if (i > 0 && is_first_of_group())
            barrier_arrive(empty + 8 * done);
        done = now;
        advance(at);
    }
    product_wait<0>();
    pin(d);
    if (steps > 0 && is_first_of_group())
        barrier_arrive(empty + 8 * done);
#else
    for (int i = 0; i < steps; i++) {
        float sum[COUNT];

        barrier_wait(full + 8 * at.stage, at.phase);
        multiply(sum, at.stage * stage_bytes);
        product_wait<0>();
        pin(sum);
        if (is_first_of_group())
            barrier_arrive(empty + 8 * at.stage);
#pragma unroll
        for (int k = 0; k < COUNT; k++)
            d[k] += sum[k];
        advance(at);
    }
#endif
}
