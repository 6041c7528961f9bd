/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm_tile_tmpl.h - one element type's tile kernels. Included by
 * gemm_tile_isa.h with TYPE, NAME(x), HEIGHT and, for the two types that have
 * epilogues, IS_FLOAT and BITS defined; gemm_skinny_tmpl.h follows and ends
 * them.
 */

typedef TYPE NAME(vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));
/* The same at any address. */
typedef TYPE NAME(vector_at)
    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(1)));
/* Four elements at any address. */
typedef TYPE NAME(quad)
    __attribute__((vector_size(4 * sizeof(TYPE)), may_alias, aligned(1)));
#if IS_FLOAT
/* What a comparison of two vectors yields. */
typedef BITS NAME(bits) __attribute__((vector_size(VECTOR_BYTES)));
#endif

enum {
    NAME(lanes) = VECTOR_BYTES / sizeof(TYPE),
    NAME(width) = 2 * VECTOR_BYTES / sizeof(TYPE)
};

/* Finish one vector of a tile, at C, whose sums are SUM. */
static inline __attribute__((always_inline)) void
NAME(finish)(const struct flex_gemm_tile *tile, const TYPE *bias, TYPE *c,
             NAME(vector) sum)
{
#if IS_FLOAT
    if (tile->scaled)
        sum *= (TYPE)tile->alpha;
#endif
    if (tile->accumulate)
        sum += *(const NAME(vector_at) *)c;
#if IS_FLOAT
    if (bias)
        sum += *(const NAME(vector_at) *)bias;
    if (tile->relu) /* written so that NaN stays NaN */
        sum = (NAME(vector))((NAME(bits))sum & ~(sum <= 0));
#else
    (void)bias;
#endif
    *(NAME(vector_at) *)c = sum;
}

/* Copy COUNT elements, a few. */
static inline __attribute__((always_inline)) void
NAME(copy_few)(TYPE *to, const TYPE *from, int64_t count)
{
    int64_t i = 0;

    for (; i + 4 <= count; i += 4)
        *(NAME(quad) *)(to + i) = *(const NAME(quad) *)(from + i);
    if (i < count && count >= 4) /* the last quad overlaps the one before */
        *(NAME(quad) *)(to + count - 4) =
            *(const NAME(quad) *)(from + count - 4);
    else
        for (; i < count; i++)
            to[i] = from[i];
}

/* Finish a tile whose columns fill no vector, and whose SUMS are two vectors a
 * row: in a row of full width, of which what counts comes from C and goes
 * there. */
static __attribute__((noinline)) void
NAME(finish_narrow)(const struct flex_gemm_tile *tile, int height,
                    const NAME(vector) * sums)
{
    TYPE row[NAME(width)] __attribute__((aligned(64))) = {0};
    TYPE bias[NAME(width)] __attribute__((aligned(64))) = {0};
    TYPE *c = tile->c;

    if (tile->bias)
        NAME(copy_few)(bias, tile->bias, tile->columns);
    for (int i = 0; i < height; i++) {
        if (tile->accumulate)
            NAME(copy_few)(row, c, tile->columns);
        for (int j = 0; j < 2; j++)
            NAME(finish)
        (tile, tile->bias ? bias + j * NAME(lanes) : NULL,
         row + j * NAME(lanes), sums[2 * i + j]);
        NAME(copy_few)(c, row, tile->columns);
        c += tile->c_stride;
    }
}

/*
 * The tile of HEIGHT rows and one or two VECTORS of columns, constants at every
 * place of inlining, so all sums stay in registers. Rows of A (IS_ROWS) are
 * read through a pointer to every fourth, which leaves offsets that an
 * instruction can hold.
 */
static inline __attribute__((always_inline)) void
NAME(tile)(const int height, const int vectors, const int is_rows,
           int64_t depth, const TYPE *a, const TYPE *b,
           const struct flex_gemm_tile *tile)
{
    NAME(vector) sums[HEIGHT][2];
    const int64_t a_stride = tile->a_stride;
    const int64_t b_stride = tile->b_stride;
    const char *next = tile->next;
    const TYPE *fourth[4];

#pragma GCC unroll 14
    for (int i = 0; i < height; i++) {
        const TYPE *c = (const TYPE *)tile->c + i * tile->c_stride;
        sums[i][0] = sums[i][1] = (NAME(vector)){0};
        if (tile->fetch) {
            __builtin_prefetch(c, 1, 3);
            __builtin_prefetch(c + tile->columns - 1, 1, 3);
        }
    }
#pragma GCC unroll 4
    for (int i = 0; 4 * i < height; i++)
        fourth[i] = a + 4 * i * a_stride;
    for (int64_t k = 0; k < depth; k++) {
        NAME(vector) from_b[2];
#pragma GCC unroll 2
        for (int j = 0; j < vectors; j++)
            from_b[j] = *(const NAME(vector_at) *)(b + j * NAME(lanes));
        __builtin_prefetch(next, 0, 2);
        next += 64;
#pragma GCC unroll 14
        for (int i = 0; i < height; i++) {
            const TYPE factor =
                is_rows ? fourth[i / 4][i % 4 * a_stride] : a[i];
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++)
                sums[i][j] += factor * from_b[j];
        }
#pragma GCC unroll 4
        for (int i = 0; 4 * i < height; i++)
            fourth[i]++;
        a += a_stride;
        b += b_stride;
    }
    if (tile->columns == vectors * NAME(lanes) && tile->plain) {
        TYPE *c = tile->c;
#pragma GCC unroll 14
        for (int i = 0; i < height; i++) {
#pragma GCC unroll 2
            for (int j = 0; j < vectors; j++)
                *(NAME(vector_at) *)(c + j * NAME(lanes)) = sums[i][j];
            c += tile->c_stride;
        }
    } else if (tile->columns == vectors * NAME(lanes)) {
        TYPE *c = tile->c;
#pragma GCC unroll 14
        for (int i = 0; i < height; i++) {
            const TYPE *bias = tile->bias;
            NAME(finish)(tile, bias, c, sums[i][0]);
            if (vectors > 1)
                NAME(finish)
            (tile, bias ? bias + NAME(lanes) : NULL, c + NAME(lanes),
             sums[i][1]);
            c += tile->c_stride;
        }
    } else {
        NAME(vector) rows[2 * HEIGHT]; /* so that SUMS need no memory */
#pragma GCC unroll 14
        for (int i = 0; i < height; i++) {
            rows[2 * i] = sums[i][0];
            rows[2 * i + 1] = sums[i][1];
        }
        NAME(finish_narrow)(tile, height, rows);
    }
}

static void NAME(pack_rows)(int64_t depth, int64_t columns, const void *in,
                            int64_t stride, void *out)
{
    const TYPE *from = in;
    TYPE *to = out;

    for (int64_t k = 0; k < depth; k++) {
        if (columns == NAME(width)) {
            *(NAME(vector_at) *)to = *(const NAME(vector_at) *)from;
            *(NAME(vector_at) *)(to + NAME(lanes)) =
                *(const NAME(vector_at) *)(from + NAME(lanes));
        } else {
            *(NAME(vector_at) *)to = (NAME(vector)){0};
            *(NAME(vector_at) *)(to + NAME(lanes)) = (NAME(vector)){0};
            NAME(copy_few)(to, from, columns);
        }
        from += stride;
        to += NAME(width);
    }
}

/* COUNT rows of WIDTH elements, STRIDE apart, close together. */
static void NAME(pack_close)(int64_t count, int64_t width, const void *in,
                             int64_t stride, void *out)
{
    const TYPE *from = in;
    TYPE *to = out;

    for (int64_t k = 0; k < count; k++) {
        NAME(copy_few)(to, from, width);
        from += stride;
        to += width;
    }
}

/* Turn a square of 4 x 4 elements; the strides are between its rows. */
static inline __attribute__((always_inline)) void
NAME(turn_square)(const TYPE *in, int64_t in_stride, TYPE *out,
                  int64_t out_stride)
{
    const NAME(quad) a = *(const NAME(quad) *)in;
    const NAME(quad) b = *(const NAME(quad) *)(in + in_stride);
    const NAME(quad) c = *(const NAME(quad) *)(in + 2 * in_stride);
    const NAME(quad) d = *(const NAME(quad) *)(in + 3 * in_stride);
    const NAME(quad) ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    const NAME(quad) ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const NAME(quad) cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    const NAME(quad) cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);

    *(NAME(quad) *)out = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(NAME(quad) *)(out + out_stride) =
        __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(NAME(quad) *)(out + 2 * out_stride) =
        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(NAME(quad) *)(out + 3 * out_stride) =
        __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}

static void NAME(pack_columns)(int64_t depth, int64_t columns, const void *in,
                               int64_t stride, void *out)
{
    const TYPE *from = in;
    TYPE *to = out;
    int64_t columns4 = columns / 4 * 4;

    for (int64_t k = 0; k < depth; k += 4) {
        int64_t j = 0;
        if (k + 4 <= depth)
            for (; j < columns4; j += 4)
                NAME(turn_square)
        (from + j * stride + k, stride, to + k * NAME(width) + j, NAME(width));
        for (; j < NAME(width); j++)
            for (int64_t i = k; i < k + 4 && i < depth; i++)
                to[i * NAME(width) + j] =
                    j < columns ? from[j * stride + i] : 0;
    }
}

/* One function a height, width and layout, for the table. */
#define VARIANT(name, h, vectors, is_rows)                                     \
    static void NAME(name)(int64_t depth, const void *a, const void *b,        \
                           const struct flex_gemm_tile *tile)                  \
    {                                                                          \
        NAME(tile)(h, vectors, is_rows, depth, a, b, tile);                    \
    }
#define INSTANCE(h)                                                            \
    VARIANT(rows_##h, h, 2, 1)                                                 \
    VARIANT(columns_##h, h, 2, 0)                                              \
    VARIANT(narrow_rows_##h, h, 1, 1)                                          \
    VARIANT(narrow_columns_##h, h, 1, 0)
INSTANCE(1)
INSTANCE(2)
INSTANCE(3)
INSTANCE(4)
INSTANCE(5)
INSTANCE(6)
#if HEIGHT > 6
INSTANCE(7)
INSTANCE(8)
INSTANCE(9)
INSTANCE(10)
INSTANCE(11)
INSTANCE(12)
INSTANCE(13)
INSTANCE(14)
#endif
#undef INSTANCE
#undef VARIANT
