/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels_tmpl.h - the kernels of one computing type and instruction set.
 * Included by kernels.c with TYPE, BITS (the integer of its size), NAME(x),
 * TARGET (an attribute or nothing), VECTOR_BYTES, TILE, and MAGIC, SHIFT,
 * LOWEST and DEGREE for exp2.
 */

typedef TYPE NAME(vector) __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef BITS NAME(bits) __attribute__((vector_size(VECTOR_BYTES), may_alias));
/* Four elements at any address. */
typedef TYPE NAME(quad) __attribute__((vector_size(4 * sizeof(TYPE)), may_alias,
                                       aligned(sizeof(TYPE))));

enum { NAME(half) = VECTOR_BYTES / sizeof(TYPE), NAME(lanes) = 2 * NAME(half) };

/* ---- loading and storing ---- */

/* Elements COLUMN .. COLUMN + COUNT - 1 of row ROW of FROM. */
TARGET static void NAME(read)(TYPE *out, const struct flash_matrix *from,
                              int64_t row, int64_t column, int64_t count)
{
    const int64_t step = from->column;
    const void *in = from->data + (row * from->row + column * step) *
                                      (int64_t)hob_dtype_size(from->dtype);
    const float *f32 = in;
    const double *f64 = in;
    const uint16_t *half = in;

    switch (from->dtype) {
    case HOB_DTYPE_F64:
        for (int64_t i = 0; i < count; i++)
            out[i] = (TYPE)f64[i * step];
        break;
    case HOB_DTYPE_F32:
        if (step == 1) /* the same, for the compiler to use vectors */
            for (int64_t i = 0; i < count; i++)
                out[i] = f32[i];
        else
            for (int64_t i = 0; i < count; i++)
                out[i] = f32[i * step];
        break;
    case HOB_DTYPE_F16:
        if (step == 1)
            for (int64_t i = 0; i < count; i++)
                out[i] = from_f16(half[i]);
        else
            for (int64_t i = 0; i < count; i++)
                out[i] = from_f16(half[i * step]);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            out[i] = from_bf16(half[i * step]);
    }
}

TARGET static void NAME(write)(const struct flash_matrix *to, int64_t row,
                               int64_t column, const TYPE *in, int64_t count)
{
    const int64_t step = to->column;
    void *out = to->data + (row * to->row + column * step) *
                               (int64_t)hob_dtype_size(to->dtype);
    float *f32 = out;
    double *f64 = out;
    uint16_t *half = out;

    switch (to->dtype) {
    case HOB_DTYPE_F64:
        for (int64_t i = 0; i < count; i++)
            f64[i * step] = in[i];
        break;
    case HOB_DTYPE_F32:
        for (int64_t i = 0; i < count; i++)
            f32[i * step] = (float)in[i];
        break;
    case HOB_DTYPE_F16:
        for (int64_t i = 0; i < count; i++)
            half[i * step] = to_f16((float)in[i]);
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            half[i * step] = to_bf16((float)in[i]);
    }
}

TARGET static void NAME(load_block)(void *block, int64_t stride,
                                    const struct flash_matrix *from,
                                    int64_t rows, int64_t columns,
                                    double factor)
{
    const int64_t padded = (rows + TILE - 1) / TILE * TILE;
    TYPE *out = block;

    for (int64_t i = 0; i < rows; i++, out += stride) {
        NAME(read)(out, from, i, 0, columns);
        if (factor != 1)
            for (int64_t j = 0; j < columns; j++)
                out[j] *= (TYPE)factor;
        for (int64_t j = columns; j < stride; j++)
            out[j] = 0;
    }
    memset(out, 0, (size_t)((padded - rows) * stride) * sizeof(*out));
}

TARGET static void NAME(store_block)(const struct flash_matrix *to,
                                     const void *block, int64_t stride,
                                     int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        NAME(write)(to, i, 0, (const TYPE *)block + i * stride, columns);
}

/* Exchange rows and columns of 4 x 4 elements. */
TARGET static inline __attribute__((always_inline)) void
NAME(turn)(TYPE *out, int64_t out_stride, const TYPE *in, int64_t in_stride)
{
    NAME(quad) rows[4], pairs[4];

    for (int i = 0; i < 4; i++)
        rows[i] = *(const NAME(quad) *)(in + i * in_stride);
    /* Two columns of rows i and i + 2, then all four rows of each column. */
    for (int i = 0; i < 2; i++) {
        pairs[2 * i] =
            __builtin_shufflevector(rows[i], rows[i + 2], 0, 4, 1, 5);
        pairs[2 * i + 1] =
            __builtin_shufflevector(rows[i], rows[i + 2], 2, 6, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        *(NAME(quad) *)(out + 2 * i * out_stride) =
            __builtin_shufflevector(pairs[i], pairs[i + 2], 0, 4, 1, 5);
        *(NAME(quad) *)(out + (2 * i + 1) * out_stride) =
            __builtin_shufflevector(pairs[i], pairs[i + 2], 2, 6, 3, 7);
    }
}

TARGET static void NAME(load_panel)(void *panel,
                                    const struct flash_matrix *from,
                                    int64_t rows, int64_t columns,
                                    double factor)
{
    TYPE *out = panel;
    TYPE piece[4 * PIECE];

    if (rows < NAME(lanes))
        memset(out, 0, (size_t)(columns * NAME(lanes)) * sizeof(*out));
    for (int64_t i = 0; i < rows; i += 4, out += 4)
        for (int64_t j = 0; j < columns; j += PIECE) {
            const int64_t count = columns - j < PIECE ? columns - j : PIECE;
            TYPE *to = out + j * NAME(lanes);

            if (i + 4 > rows)
                memset(piece, 0, sizeof(piece));
            for (int64_t r = 0; r < 4 && i + r < rows; r++) {
                NAME(read)(piece + r * PIECE, from, i + r, j, count);
                for (int64_t c = 0; c < count; c++)
                    piece[r * PIECE + c] *= (TYPE)factor;
            }
            for (int64_t c = 0; c + 4 <= count; c += 4)
                NAME(turn)(to + c * NAME(lanes), NAME(lanes), piece + c, PIECE);
            for (int64_t c = count / 4 * 4; c < count; c++)
                for (int64_t r = 0; r < 4; r++)
                    to[c * NAME(lanes) + r] = piece[r * PIECE + c];
        }
}

TARGET static void NAME(store_panel)(const struct flash_matrix *to,
                                     const void *panel, int64_t rows,
                                     int64_t columns, const void *factors,
                                     const uint8_t *dead)
{
    const TYPE *in = panel, *factor = factors;
    TYPE piece[4 * PIECE];

    for (int64_t i = 0; i < rows; i += 4, in += 4)
        for (int64_t j = 0; j < columns; j += PIECE) {
            const int64_t count = columns - j < PIECE ? columns - j : PIECE;

            /* The panel has room for a multiple of 4 rows. */
            for (int64_t c = 0; c < count; c += 4)
                NAME(turn)
            (piece + c, PIECE, in + (j + c) * NAME(lanes), NAME(lanes));
            for (int64_t r = 0; r < 4 && i + r < rows; r++) {
                TYPE *row = piece + r * PIECE;

                for (int64_t c = 0; c < count; c++)
                    row[c] *= factor[i + r];
                if (dead && dead[i + r])
                    memset(row, 0, sizeof(*row) * PIECE);
                NAME(write)(to, i + r, j, row, count);
            }
        }
}

TARGET static int NAME(is_finite)(const void *block, int64_t stride,
                                  int64_t rows)
{
    const TYPE *in = block;
    int wrong = 0;

    /* x - x is NaN for what is infinite or NaN. */
    for (int64_t i = 0; i < rows * stride; i++)
        wrong |= !(in[i] - in[i] == 0);
    return !wrong;
}

TARGET static double NAME(row_dot)(const struct flash_matrix *a,
                                   const struct flash_matrix *b, int64_t row,
                                   int64_t columns)
{
    TYPE left[PIECE], right[PIECE], sum = 0;

    for (int64_t j = 0; j < columns; j += PIECE) {
        const int64_t count = columns - j < PIECE ? columns - j : PIECE;

        NAME(read)(left, a, row, j, count);
        NAME(read)(right, b, row, j, count);
        for (int64_t c = 0; c < count; c++)
            sum += left[c] * right[c];
    }
    return sum;
}

/* ---- products ---- */

/*
 * TILE rows of a product, whose sums stay in registers. ROW and COLUMN, the
 * strides of A, are constants where one of them is 1.
 */
TARGET static inline __attribute__((always_inline)) void
NAME(tile)(TYPE *out, const TYPE *a, const int64_t row, const int64_t column,
           int64_t depth, const TYPE *b, const int adds, const TYPE *factors)
{
    NAME(vector) *to = (NAME(vector) *)out;
    NAME(vector) sums[TILE][2];

#pragma GCC unroll 8
    for (int i = 0; i < TILE; i++) {
        sums[i][0] = adds ? to[2 * i] : (NAME(vector)){0};
        sums[i][1] = adds ? to[2 * i + 1] : (NAME(vector)){0};
        if (adds && factors) {
            sums[i][0] *= ((const NAME(vector) *)factors)[0];
            sums[i][1] *= ((const NAME(vector) *)factors)[1];
        }
    }
    for (int64_t k = 0; k < depth; k++) {
        const NAME(vector) low = ((const NAME(vector) *)b)[0];
        const NAME(vector) high = ((const NAME(vector) *)b)[1];

#pragma GCC unroll 8
        for (int i = 0; i < TILE; i++) {
            const TYPE factor = a[i * row];

            sums[i][0] += factor * low;
            sums[i][1] += factor * high;
        }
        a += column;
        b += NAME(lanes);
    }
#pragma GCC unroll 8
    for (int i = 0; i < TILE; i++) {
        to[2 * i] = sums[i][0];
        to[2 * i + 1] = sums[i][1];
    }
}

TARGET static void NAME(multiply)(void *panel, const void *a, int64_t stride,
                                  int64_t rows, int64_t depth, const void *b)
{
    for (int64_t i = 0; i < rows; i += TILE)
        NAME(tile)
    ((TYPE *)panel + i * NAME(lanes), (const TYPE *)a + i * stride, stride, 1,
     depth, b, 0, NULL);
}

TARGET static void NAME(multiply_add)(void *panel, const void *a,
                                      int64_t stride, int64_t rows,
                                      int64_t depth, const void *b)
{
    for (int64_t i = 0; i < rows; i += TILE)
        NAME(tile)
    ((TYPE *)panel + i * NAME(lanes), (const TYPE *)a + i * stride, stride, 1,
     depth, b, 1, NULL);
}

TARGET static void NAME(multiply_turned)(void *panel, const void *a,
                                         int64_t stride, int64_t rows,
                                         int64_t depth, const void *b,
                                         const void *factors)
{
    for (int64_t i = 0; i < rows; i += TILE)
        NAME(tile)
    ((TYPE *)panel + i * NAME(lanes), (const TYPE *)a + i, 1, stride, depth, b,
     1, factors);
}

/* ---- what is hidden ---- */

TARGET static void NAME(hide)(void *scores, int64_t rows, int64_t columns,
                              const uint8_t *mask, int64_t mask_row,
                              int64_t mask_column)
{
    TYPE *score = scores;

    for (int64_t j = 0; j < columns; j++, mask += mask_column) {
        for (int64_t i = 0; i < rows; i++) {
            uint64_t eight;

            /* Most masks hide long runs or nothing: look at 8 at once. */
            if (mask_row == 1 && i + 8 <= rows) {
                memcpy(&eight, mask + i, sizeof(eight));
                if (!eight) {
                    i += 7;
                    continue;
                }
            }
            if (mask[i * mask_row])
                score[i * NAME(lanes) + j] = -INFINITY;
        }
    }
}

TARGET static void NAME(hide_stairs)(void *scores, int64_t rows, int64_t column)
{
    TYPE *score = scores;

    for (int64_t i = 0; i < rows; i++, column++, score += NAME(lanes))
        for (int64_t j = 0; j < column && j < NAME(lanes); j++)
            score[j] = -INFINITY;
}

/* ---- weights ---- */

TARGET static inline __attribute__((always_inline)) NAME(vector)
    NAME(pick)(NAME(bits) which, NAME(vector) yes, NAME(vector) no)
{
    return (NAME(vector))((which & (NAME(bits))yes) |
                          (~which & (NAME(bits))no));
}

/*
 * 2^x for x <= 0 and NaN; 0 below the normal numbers. With x = n + r, |r| <=
 * 1/2: adding MAGIC rounds x to n and leaves n + bias in the low bits, which
 * become an exponent; 2^r is its Taylor series.
 */
TARGET static inline __attribute__((always_inline)) NAME(vector)
    NAME(exp2)(NAME(vector) x)
{
    const NAME(vector) y = x + (TYPE)MAGIC;
    const NAME(vector) r = x - (y - (TYPE)MAGIC);
    NAME(vector) power = (NAME(vector)){0} + (TYPE)exp2_series[DEGREE];

#pragma GCC unroll 16
    for (int i = DEGREE - 1; i >= 0; i--)
        power = power * r + (TYPE)exp2_series[i];
    power *= (NAME(vector))((NAME(bits))y << SHIFT);
    return (NAME(vector))((NAME(bits))power & ~(x < (TYPE)LOWEST));
}

/* The greatest of ROWS vectors, two apart, and BEFORE; NaN is passed over. */
TARGET static inline __attribute__((always_inline)) NAME(vector)
    NAME(greatest)(const NAME(vector) * score, int64_t rows,
                   NAME(vector) before)
{
    NAME(vector) tops[4] = {before, before, before, before};
    int64_t i = 0;

    for (; i + 4 <= rows; i += 4)
#pragma GCC unroll 4
        for (int c = 0; c < 4; c++)
            tops[c] = NAME(pick)(score[2 * (i + c)] > tops[c],
                                 score[2 * (i + c)], tops[c]);
    for (; i < rows; i++)
        tops[0] = NAME(pick)(score[2 * i] > tops[0], score[2 * i], tops[0]);
    tops[0] = NAME(pick)(tops[1] > tops[0], tops[1], tops[0]);
    tops[2] = NAME(pick)(tops[3] > tops[2], tops[3], tops[2]);
    return NAME(pick)(tops[2] > tops[0], tops[2], tops[0]);
}

TARGET static void NAME(softmax_step)(void *scores, int64_t rows, void *max,
                                      void *sum, void *factors)
{
    for (int h = 0; h < 2; h++) {
        NAME(vector) *score = (NAME(vector) *)scores + h;
        const NAME(vector) before = ((NAME(vector) *)max)[h];
        const NAME(vector) top = NAME(greatest)(score, rows, before);
        /* Nothing but -inf so far: all weights are 0. */
        const NAME(vector) base =
            NAME(pick)(top == (TYPE)-INFINITY, (NAME(vector)){0}, top);
        const NAME(vector) factor = NAME(exp2)(before - base);
        NAME(vector) total = ((NAME(vector) *)sum)[h] * factor;

        for (int64_t i = 0; i < rows; i++) {
            const NAME(vector) x = score[2 * i];
            const NAME(vector) weight = NAME(exp2)(x - base);

            total += weight;
            score[2 * i] =
                NAME(pick)(x == (TYPE)-INFINITY, -(NAME(vector)){0}, weight);
        }
        ((NAME(vector) *)max)[h] = top;
        ((NAME(vector) *)sum)[h] = total;
        ((NAME(vector) *)factors)[h] = factor;
    }
}

TARGET static void NAME(add)(void *a, const void *b, int64_t rows)
{
    for (int64_t i = 0; i < 2 * rows; i++)
        ((NAME(vector) *)a)[i] += ((const NAME(vector) *)b)[i];
}

TARGET static void NAME(slopes)(void *weights, void *d_weights, int64_t rows,
                                const void *factors, const void *delta)
{
    const int64_t padded = (rows + TILE - 1) / TILE * TILE;
    const NAME(vector) none = {0};
    NAME(vector) *weight = weights, *d_weight = d_weights;

    for (int64_t i = 0; i < 2 * rows; i++) {
        const NAME(vector) x = weight[i];
        const NAME(bits) hidden =
            (NAME(bits))(x == 0) & ((NAME(bits))x < 0); /* -0 */

        weight[i] = x * ((const NAME(vector) *)factors)[i % 2];
        d_weight[i] = NAME(pick)(
            hidden, none,
            weight[i] * (d_weight[i] - ((const NAME(vector) *)delta)[i % 2]));
    }
    for (int64_t i = 2 * rows; i < 2 * padded; i++)
        weight[i] = d_weight[i] = none;
}

static const struct flash_kernels NAME(kernels) = {
    .lanes = NAME(lanes),
    .tile = TILE,
    .size = sizeof(TYPE),
    .load_block = NAME(load_block),
    .store_block = NAME(store_block),
    .load_panel = NAME(load_panel),
    .store_panel = NAME(store_panel),
    .is_finite = NAME(is_finite),
    .row_dot = NAME(row_dot),
    .multiply = NAME(multiply),
    .multiply_add = NAME(multiply_add),
    .multiply_turned = NAME(multiply_turned),
    .hide = NAME(hide),
    .hide_stairs = NAME(hide_stairs),
    .softmax_step = NAME(softmax_step),
    .add = NAME(add),
    .slopes = NAME(slopes),
};
