// SPDX-License-Identifier: Apache-2.0
//
// sm90.cu - what compute capability 9.0 has beyond CUDA C: products by groups
// of four warps (wgmma), copies of tiles that one thread asks for (TMA), and
// barriers that count bytes. See the chapters of the PTX ISA on wgmma, tensor
// copies and mbarrier.
//
// Tiles lie in shared memory as the copies write them with a swizzle of 128
// bytes: slabs of 64 elements a row, a row being 128 bytes, whose 16-byte piece
// number i is at place i ^ (row % 8). Slabs begin at multiples of 1024 bytes.
//
// ELEMENT is "f16" or "bf16", STAGES the length of a ring of tiles.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

#define INLINE static __device__ __forceinline__

#define INF_F32 __int_as_float(0x7f800000)
#define NAN_F32 __int_as_float(0x7fc00000)
#define LOG2_E 1.44269504f
#define LN_2 0.693147181f

enum { ROW_BYTES = 128, SLAB_ELEMENTS = 64, WARPGROUP = 128 };

// A CUtensorMap.
struct __align__(64) tensor_map {
    u64 words[16];
};

// ---- barriers in shared memory, by address ----

INLINE u32 shared_address(const void *pointer)
{
    return (u32)__cvta_generic_to_shared(pointer);
}

INLINE void barrier_init(u32 barrier, u32 count)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
                 "r"(count)
                 : "memory");
}

// After the initializations, before the copies.
INLINE void barriers_ready()
{
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Arrive, and have copies of BYTES bytes be waited for.
INLINE void barrier_expect(u32 barrier, u32 bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     barrier),
                 "r"(bytes)
                 : "memory");
}

INLINE void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier)
                 : "memory");
}

// Until the phase of PARITY is over.
INLINE void barrier_wait(u32 barrier, u32 parity)
{
    asm volatile("{\n"
                 ".reg .pred over;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
                 "@!over bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

// A stage of a ring of tiles, and the parity of its barriers there.
struct ring {
    u32 stage, phase;
};

INLINE void advance(ring &at)
{
    if (++at.stage == STAGES) {
        at.stage = 0;
        at.phase ^= 1;
    }
}

// ---- registers: what one warpgroup gives up others take ----

template <int COUNT> INLINE void registers_decrease()
{
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <int COUNT> INLINE void registers_increase()
{
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// ---- copies ----

// To shared memory at TO the box of MAP that begins at element X of row Y of
// batch entry AT; what is outside of the tensor becomes 0.
INLINE void copy_box(u32 to, const tensor_map *map, int x, int y,
                     const int (&at)[3], u32 barrier)
{
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::"
        "complete_tx::bytes [%0], [%1, {%2, %3, %4, %5, %6}], [%7];" ::"r"(to),
        "l"(map), "r"(x), "r"(y), "r"(at[2]), "r"(at[1]), "r"(at[0]),
        "r"(barrier)
        : "memory");
}

// SLABS slabs of ROWS rows.
template <int SLABS, int ROWS>
INLINE void copy_tile(u32 to, const tensor_map *map, int row,
                      const int (&at)[3], u32 barrier)
{
    for (int i = 0; i < SLABS; i++)
        copy_box(to + i * ROWS * ROW_BYTES, map, SLAB_ELEMENTS * i, row, at,
                 barrier);
}

// BYTES bytes, a multiple of 16 like the addresses.
INLINE void copy_bytes(u32 to, const void *from, u32 bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
                 "bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

// ---- products ----

// A tile as an operand, with swizzle; K goes along its rows.
INLINE u64 rows_descriptor(u32 address)
{
    return (u64)((address & 0x3ffff) >> 4) | (u64)1 << 16 |
           (u64)(8 * ROW_BYTES >> 4) << 32 | (u64)1 << 62;
}

// The same where each row is one of K; slabs are SLAB bytes apart.
INLINE u64 turned_descriptor(u32 address, u32 slab)
{
    return (u64)((address & 0x3ffff) >> 4) | (u64)(slab >> 4) << 16 |
           (u64)(8 * ROW_BYTES >> 4) << 32 | (u64)1 << 62;
}

INLINE void product_begin()
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}

INLINE void product_commit()
{
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Until at most PENDING of those committed are under way.
template <int PENDING> INLINE void product_wait()
{
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Uses of VALUES, which a product writes or reads meanwhile, stay on their side
// of this.
template <int COUNT> INLINE void pin(float (&values)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+f"(values[i])::"memory");
}

template <int COUNT> INLINE void pin(u32 (&values)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT; i++)
        asm volatile("" : "+r"(values[i])::"memory");
}

#define PLACES_8(d, i)                                                         \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]),                \
        "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define PLACES_16(d, i) PLACES_8(d, i), PLACES_8(d, i + 8)
#define PLACES_32(d) PLACES_16(d, 0), PLACES_16(d, 16)
#define PLACES_64(d) PLACES_32(d), PLACES_16(d, 32), PLACES_16(d, 48)
#define PLACES_128(d)                                                          \
    PLACES_64(d), PLACES_16(d, 64), PLACES_16(d, 80), PLACES_16(d, 96),        \
        PLACES_16(d, 112)
#define NUMBERS_32                                                             \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, "                            \
    "%11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, "                  \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define NUMBERS_64                                                             \
    NUMBERS_32                                                                 \
    ", "                                                                       \
    "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, "                  \
    "%43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, "                  \
    "%54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define NUMBERS_128                                                            \
    NUMBERS_64                                                                 \
    ", "                                                                       \
    "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, "                  \
    "%75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, "                  \
    "%86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, "                  \
    "%97, %98, %99, %100, %101, %102, %103, %104, %105, %106, "                \
    "%107, %108, %109, %110, %111, %112, %113, %114, %115, %116, "             \
    "%117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define PRODUCT(n)                                                             \
    "wgmma.mma_async.sync.aligned.m64n" #n "k16.f32." ELEMENT "." ELEMENT
// The predicate adds from operand k; closed by a brace.
#define IF_ADDS(k)                                                             \
    "{\n.reg .pred adds;\nsetp.ne.b32 adds, %" #k ", 0;\n"
//
// d is 64 x N. Thread t of the warpgroup has row t / 32 * 16 + t % 32 / 4, the
// row 8 below, and of each 8 columns number t % 4 * 2 and the next: d[4 i] and
// d[4 i + 1] are of the first row and columns 8 i and on, d[4 i + 2] and
// d[4 i + 3] of the second.
//
// multiply(): d = a b or, if it ADDS, d += a b, over 16 of K; a and b are tiles
// with K along the rows. multiply_turned(): d += a b, four registers of a from
// what d of another product is when packed, b a tile whose rows are of K.
// multiply_columns(): the same as multiply() where the rows of both are of K.
//
template <int N> struct product;

template <> struct product<64> {
    static __device__ __forceinline__ void multiply(float (&d)[32], u64 a,
                                                    u64 b, u32 adds)
    {
        asm volatile(IF_ADDS(34)
                     PRODUCT(64) " {" NUMBERS_32 "}, %32, %33, adds, 1, 1, "
                     "0, 0;\n"
                     "}"
                     : PLACES_32(d)
                     : "l"(a), "l"(b), "r"(adds));
    }

    static __device__ __forceinline__ void
    multiply_turned(float (&d)[32], const u32 *a, u64 b)
    {
        asm volatile(PRODUCT(64) " {" NUMBERS_32
                     "}, {%32, %33, %34, %35}, %36, 1, 1, 1, 1;"
                     : PLACES_32(d)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    }

    static __device__ __forceinline__ void
    multiply_columns(float (&d)[32], u64 a, u64 b, u32 adds)
    {
        asm volatile(IF_ADDS(34)
                     PRODUCT(64) " {" NUMBERS_32 "}, %32, %33, adds, 1, 1, "
                     "1, 1;\n"
                     "}"
                     : PLACES_32(d)
                     : "l"(a), "l"(b), "r"(adds));
    }
};

template <> struct product<128> {
    static __device__ __forceinline__ void multiply(float (&d)[64], u64 a,
                                                    u64 b, u32 adds)
    {
        asm volatile(IF_ADDS(66)
                     PRODUCT(128) " {" NUMBERS_64 "}, %64, %65, adds, 1, 1, "
                     "0, 0;\n"
                     "}"
                     : PLACES_64(d)
                     : "l"(a), "l"(b), "r"(adds));
    }

    static __device__ __forceinline__ void
    multiply_turned(float (&d)[64], const u32 *a, u64 b)
    {
        asm volatile(PRODUCT(128) " {" NUMBERS_64
                     "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
                     : PLACES_64(d)
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
    }

    static __device__ __forceinline__ void
    multiply_columns(float (&d)[64], u64 a, u64 b, u32 adds)
    {
        asm volatile(IF_ADDS(66)
                     PRODUCT(128) " {" NUMBERS_64 "}, %64, %65, adds, 1, 1, "
                     "1, 1;\n"
                     "}"
                     : PLACES_64(d)
                     : "l"(a), "l"(b), "r"(adds));
    }
};

template <> struct product<256> {
    static __device__ __forceinline__ void multiply(float (&d)[128], u64 a,
                                                    u64 b, u32 adds)
    {
        asm volatile(IF_ADDS(130)
                     PRODUCT(256) " {" NUMBERS_128 "}, %128, %129, adds, 1, 1, "
                     "0, 0;\n"
                     "}"
                     : PLACES_128(d)
                     : "l"(a), "l"(b), "r"(adds));
    }
};

// ---- numbers ----

INLINE float power_of_2(float x)
{
    float y;

    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

INLINE u32 pack(float low, float high)
{
    u32 packed;

    asm("cvt.rn." ELEMENT "x2.f32 %0, %1, %2;"
        : "=r"(packed)
        : "f"(high), "f"(low));
    return packed;
}

template <int COUNT>
INLINE void pack_all(u32 (&to)[COUNT / 2], const float (&from)[COUNT])
{
#pragma unroll
    for (int i = 0; i < COUNT / 2; i++)
        to[i] = pack(from[2 * i], from[2 * i + 1]);
}

// Eight rows of eight elements, a quarter of a row to a thread, with rows and
// columns exchanged.
INLINE u32 turn(u32 pair)
{
    u32 turned;

    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;"
                 : "=r"(turned)
                 : "r"(pair));
    return turned;
}

INLINE float load(const u16 *from)
{
    float x;

    asm("cvt.f32." ELEMENT " %0, %1;" : "=f"(x) : "h"(*from));
    return x;
}

INLINE void store(u16 *to, float x)
{
    u16 rounded;

    asm("cvt.rn." ELEMENT ".f32 %0, %1;" : "=h"(rounded) : "f"(x));
    *to = rounded;
}
