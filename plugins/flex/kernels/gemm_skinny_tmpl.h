/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_skinny_tmpl.h - products of few rows by a matrix that is read once, as
 * it lies. Included by gemm_tile_isa.h after gemm_tile_tmpl.h for one type.
 */

/* The sum of the lanes: of halves, then of their halves. */
static inline __attribute__((always_inline)) TYPE NAME(lane_sum)(NAME(vector) v)
{
    TYPE lanes[NAME(lanes)] __attribute__((aligned(64)));

    *(NAME(vector) *)lanes = v;
    for (int step = NAME(lanes) / 2; step > 0; step /= 2)
        for (int i = 0; i < step; i++)
            lanes[i] += lanes[i + step];
    return lanes[0];
}

/*
 * sums[i][0 .. WIDE vectors] += a[0 .. DEEP - 1][i] * in[0 .. DEEP - 1][..].
 * Several rows of the matrix at a time, so that the sums are loaded and stored
 * the less often; two vectors of each, so that an element of A is. The rows
 * end soon, so the processor fetches little ahead by itself: the next ones are
 * asked for.
 */
static inline __attribute__((always_inline)) void
NAME(stream_columns)(const int rows, const int deep, const int wide,
                     const TYPE *a, const TYPE *in, int64_t stride, TYPE *sums,
                     int64_t sum_stride)
{
    NAME(vector) b[4][2];

#pragma GCC unroll 4
    for (int k = 0; k < deep; k++)
#pragma GCC unroll 2
        for (int j = 0; j < wide; j++) {
            const TYPE *at = in + k * stride + j * NAME(lanes);
            b[k][j] = *(const NAME(vector_at) *)at;
            __builtin_prefetch(at + deep * stride, 0, 3);
        }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++) {
        NAME(vector) sum[2];
#pragma GCC unroll 2
        for (int j = 0; j < wide; j++)
            sum[j] = *(const NAME(vector_at) *)(sums + i * sum_stride +
                                                j * NAME(lanes));
#pragma GCC unroll 4
        for (int k = 0; k < deep; k++) {
            const TYPE factor = a[k * rows + i];
#pragma GCC unroll 2
            for (int j = 0; j < wide; j++)
                sum[j] += factor * b[k][j];
        }
#pragma GCC unroll 2
        for (int j = 0; j < wide; j++)
            *(NAME(vector_at) *)(sums + i * sum_stride + j * NAME(lanes)) =
                sum[j];
    }
}

/* The same for all COLUMNS. A is packed: a[k * ROWS + i]; rows of sums are
 * SUM_STRIDE apart. */
static inline __attribute__((always_inline)) void
NAME(stream_rows)(const int rows, const int deep, int64_t columns,
                  const TYPE *a, const TYPE *in, int64_t stride, TYPE *sums,
                  int64_t sum_stride)
{
    int64_t j = 0;

    for (; j + NAME(width) <= columns; j += NAME(width))
        NAME(stream_columns)
    (rows, deep, 2, a, in + j, stride, sums + j, sum_stride);
    for (; j + NAME(lanes) <= columns; j += NAME(lanes))
        NAME(stream_columns)
    (rows, deep, 1, a, in + j, stride, sums + j, sum_stride);
    for (; j < columns; j++)
        for (int i = 0; i < rows; i++)
            for (int k = 0; k < deep; k++)
                sums[i * sum_stride + j] +=
                    a[k * rows + i] * in[k * stride + j];
}

static inline __attribute__((always_inline)) void
NAME(skinny_rows)(const int rows, int64_t depth, int64_t columns, const TYPE *a,
                  const TYPE *in, int64_t stride, TYPE *sums,
                  int64_t sum_stride)
{
    int64_t k = 0;

    for (; k + 4 <= depth; k += 4)
        NAME(stream_rows)
    (rows, 4, columns, a + k * rows, in + k * stride, stride, sums, sum_stride);
    for (; k < depth; k++)
        NAME(stream_rows)
    (rows, 1, columns, a + k * rows, in + k * stride, stride, sums, sum_stride);
}

/*
 * sums[i][j] += the dot product of row i of A (a[i * a_stride ..]) and column
 * j of the matrix, which is contiguous at in[j * stride ..]; for WIDE columns
 * at a time, so that each vector of A that is loaded serves them all.
 */
static inline __attribute__((always_inline)) void
NAME(dot_columns)(const int rows, const int wide, int64_t depth, const TYPE *a,
                  int64_t a_stride, const TYPE *in, int64_t stride, TYPE *sums,
                  int64_t sum_stride)
{
    NAME(vector) acc[8][2];
    int64_t k = 0;

#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
        acc[i][0] = acc[i][1] = (NAME(vector)){0};
    for (; k + NAME(lanes) <= depth; k += NAME(lanes)) {
        NAME(vector) b[2];
#pragma GCC unroll 2
        for (int j = 0; j < wide; j++) {
            b[j] = *(const NAME(vector_at) *)(in + j * stride + k);
            __builtin_prefetch(in + (j + wide) * stride + k, 0, 3);
        }
#pragma GCC unroll 8
        for (int i = 0; i < rows; i++) {
            const NAME(vector) va =
                *(const NAME(vector_at) *)(a + i * a_stride + k);
#pragma GCC unroll 2
            for (int j = 0; j < wide; j++)
                acc[i][j] += va * b[j];
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 2
        for (int j = 0; j < wide; j++) {
            TYPE rest = 0;
            for (int64_t l = k; l < depth; l++)
                rest += a[i * a_stride + l] * in[j * stride + l];
            sums[i * sum_stride + j] += NAME(lane_sum)(acc[i][j]) + rest;
        }
}

static inline __attribute__((always_inline)) void
NAME(skinny_columns)(const int rows, int64_t depth, int64_t columns,
                     const TYPE *a, int64_t a_stride, const TYPE *in,
                     int64_t stride, TYPE *sums, int64_t sum_stride)
{
    int64_t j = 0;

    /* With 16 registers, two columns of up to 6 rows. */
    if (HEIGHT > 6 || rows <= 6)
        for (; j + 2 <= columns; j += 2)
            NAME(dot_columns)
    (rows, 2, depth, a, a_stride, in + j * stride, stride, sums + j,
     sum_stride);
    for (; j < columns; j++)
        NAME(dot_columns)
    (rows, 1, depth, a, a_stride, in + j * stride, stride, sums + j,
     sum_stride);
}

#define INSTANCE(r)                                                            \
    static void NAME(stream_##r)(                                              \
        int64_t depth, int64_t columns, const void *a, const void *in,         \
        int64_t stride, void *sums, int64_t sum_stride)                        \
    {                                                                          \
        NAME(skinny_rows)(r, depth, columns, a, in, stride, sums, sum_stride); \
    }                                                                          \
    static void NAME(dot_##r)(int64_t depth, int64_t columns, const void *a,   \
                              int64_t a_stride, const void *in,                \
                              int64_t stride, void *sums, int64_t sum_stride)  \
    {                                                                          \
        NAME(skinny_columns)                                                   \
        (r, depth, columns, a, a_stride, in, stride, sums, sum_stride);        \
    }
INSTANCE(1)
INSTANCE(2)
INSTANCE(3)
INSTANCE(4)
INSTANCE(5)
INSTANCE(6)
INSTANCE(7)
INSTANCE(8)
#undef INSTANCE

#undef TYPE
#undef BITS
#undef NAME
#undef IS_FLOAT
