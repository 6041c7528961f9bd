/* SPDX-License-Identifier: Apache-2.0 */
/*
 * move_isa.h - the moves of one instruction set. Included by move_base.c,
 * move_v2.c, move_v3.c and move_v4.c with TABLE defined.
 */
#include "move.h"

#include <string.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

/* Bytes of a cache line, which is what a store past the caches fills; the most
 * lines of a row that a transpose past the caches writes at a time; bytes of a
 * page. */
enum { LINE = 64, TILE = 4, PAGE = 4096 };

#if defined(__AVX512F__)
enum { VECTOR = 64 };
#elif defined(__AVX2__)
enum { VECTOR = 32 };
#else
enum { VECTOR = 16 };
#endif
/* At any address. */
typedef uint8_t vector __attribute__((vector_size(VECTOR), aligned(1)));

/* One line; OUT is aligned to it. */
static inline void stream_line(char *out, const char *in)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)out, _mm512_loadu_si512((const void *)in));
#elif defined(__AVX2__)
    for (int i = 0; i < LINE; i += 32)
        _mm256_stream_si256(
            (__m256i *)(void *)(out + i),
            _mm256_loadu_si256((const __m256i *)(const void *)(in + i)));
#elif defined(__SSE2__)
    for (int i = 0; i < LINE; i += 16)
        _mm_stream_si128(
            (__m128i *)(void *)(out + i),
            _mm_loadu_si128((const __m128i *)(const void *)(in + i)));
#else
    memcpy(out, in, LINE);
#endif
}

/* Stores past the caches are weakly ordered: without this another thread may
 * be told that this memory is done before it is. */
static void fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

static void expect(const void *out, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i += LINE)
        __builtin_prefetch((const char *)out + i, 1, 3);
}

static void stream(void *out, const void *in, int64_t bytes)
{
    char *to = out;
    const char *from = in;
    int64_t head = (int64_t)(-(uintptr_t)out & (LINE - 1));

    if (head > bytes)
        head = bytes;
    memcpy(to, from, (size_t)head);
    for (; head + LINE <= bytes; head += LINE)
        stream_line(to + head, from + head);
    memcpy(to + head, from + head, (size_t)(bytes - head));
}

/* The last vector overlaps the one before. */
static void runs(void *out, int64_t out_row, const void *in, int64_t in_row,
                 int64_t rows, int64_t bytes)
{
    char *to = out;
    const char *from = in;

    if (bytes < VECTOR) {
        for (int64_t i = 0; i < rows; i++)
            memcpy(to + i * out_row, from + i * in_row, (size_t)bytes);
        return;
    }
    for (int64_t i = 0; i < rows; i++, to += out_row, from += in_row) {
        for (int64_t at = 0; at < bytes - VECTOR; at += VECTOR)
            *(vector *)(void *)(to + at) =
                *(const vector *)(const void *)(from + at);
        *(vector *)(void *)(to + bytes - VECTOR) =
            *(const vector *)(const void *)(from + bytes - VECTOR);
    }
}

#define LOW_2 0, 2
#define HIGH_2 1, 3
#define LOW_4 0, 4, 1, 5
#define HIGH_4 2, 6, 3, 7
#define LOW_8 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8 4, 12, 5, 13, 6, 14, 7, 15
#define LOW_16 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31

#define T uint8_t
#define SUFFIX(name) name##_8
#define SIDE 16
#define LOW LOW_16
#define HIGH HIGH_16
#include "move_tmpl.h"

#define T uint16_t
#define SUFFIX(name) name##_16
#if defined(__AVX512BW__)
#define SIDE 16
#define LOW LOW_16
#define HIGH HIGH_16
#else
#define SIDE 8
#define LOW LOW_8
#define HIGH HIGH_8
#endif
#include "move_tmpl.h"

#define T uint32_t
#define SUFFIX(name) name##_32
#if defined(__AVX512F__)
#define SIDE 16
#define LOW LOW_16
#define HIGH HIGH_16
#elif defined(__AVX2__)
#define SIDE 8
#define LOW LOW_8
#define HIGH HIGH_8
#else
#define SIDE 4
#define LOW LOW_4
#define HIGH HIGH_4
#endif
#include "move_tmpl.h"

#define T uint64_t
#define SUFFIX(name) name##_64
#if defined(__AVX512F__)
#define SIDE 8
#define LOW LOW_8
#define HIGH HIGH_8
#elif defined(__AVX2__)
#define SIDE 4
#define LOW LOW_4
#define HIGH HIGH_4
#else
#define SIDE 2
#define LOW LOW_2
#define HIGH HIGH_2
#endif
#include "move_tmpl.h"

const struct flex_move_kernels TABLE = {
    .stream = stream,
    .fence = fence,
    .expect = expect,
    .runs = runs,
    .gather = {gather_8, gather_16, gather_32, gather_64},
    .transpose = {transpose_8, transpose_16, transpose_32, transpose_64},
    .plane = {plane_8, plane_16, plane_32, plane_64},
};
