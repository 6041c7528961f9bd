/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_tmpl.h - one type's inner loops of convolution. Included by
 * conv_isa.h with TYPE, BITS, LANES and NAME(x) defined.
 */

#include "vector_tmpl.h"

enum { NAME(width) = 2 * NAME(lanes) };

/* A vector of in[0], in[2] .. and nothing that lies behind the last. */
static inline NAME(vector) NAME(load_even)(const TYPE *in)
{
    const NAME(vector) a = NAME(load)(in), b = NAME(load)(in + LANES - 1);

#if LANES == 2
    return __builtin_shufflevector(a, b, 0, 3);
#elif LANES == 4
    return __builtin_shufflevector(a, b, 0, 2, 5, 7);
#elif LANES == 8
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 9, 11, 13, 15);
#else
    return __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21,
                                   23, 25, 27, 29, 31);
#endif
}

/* Every second element of IN, COUNT of them. */
static inline void NAME(copy_even)(int64_t count, const TYPE *in, TYPE *out)
{
    int64_t i = 0;

    if (count < LANES) {
        for (; i < count; i++)
            out[i] = in[2 * i];
        return;
    }
    for (; i + LANES < count; i += LANES)
        NAME(store)(out + i, NAME(load_even)(in + 2 * i));
    i = count - LANES; /* the last vector overlaps the one before */
    NAME(store)(out + i, NAME(load_even)(in + 2 * i));
}

/* One row, exactly: its last vector overlaps the one before. */
static inline void NAME(copy)(int64_t count, const TYPE *in, TYPE *out)
{
    int64_t i = 0;

    if (count < NAME(lanes)) {
        for (; i < count; i++)
            out[i] = in[i];
        return;
    }
    for (; i + NAME(lanes) < count; i += NAME(lanes))
        NAME(store)(out + i, NAME(load)(in + i));
    NAME(store)
    (out + count - NAME(lanes), NAME(load)(in + count - NAME(lanes)));
}

static void NAME(pad)(const struct flex_conv_pad *job, const void *in,
                      void *out)
{
    const TYPE *from = in;
    TYPE *restrict to = out;

    for (int64_t y = 0; y < job->rows; y++) {
        TYPE *restrict at = to + job->before;
        for (int64_t i = 0; i < job->before; i++)
            to[i] = 0;
        if (job->step == 1)
            NAME(copy)(job->count, from, at);
        else if (job->step == 2)
            NAME(copy_even)(job->count, from, at);
        else
            for (int64_t i = 0; i < job->count; i++)
                at[i] = from[i * job->step];
        at += job->count;
        for (int64_t i = 0; i < job->behind; i++)
            at[i] = 0;
        from += job->in_row;
        to += job->out_row;
    }
}

static void NAME(spread)(int64_t count, const void *in, int64_t step, void *out)
{
    const TYPE *from = in;
    TYPE *to = out;

    for (int64_t i = 0; i < count; i++)
        to[i * step] = from[i];
}

/* Pieces are copied by whole vectors: what is too much of one is overwritten
 * by the next, the last one's by the next row, or lies in the slack. */
static void NAME(pack)(int64_t depth, const int64_t *rows, const void *strip,
                       const struct flex_conv_pieces *pieces, void *out)
{
    const TYPE *from = strip;
    TYPE *to = out;

    if (pieces->count == 1) {
        from += pieces->offset[0];
        for (int64_t k = 0; k < depth; k++, to += NAME(width)) {
            const TYPE *row = from + rows[k];
            NAME(store)(to, NAME(load)(row));
            NAME(store)(to + NAME(lanes), NAME(load)(row + NAME(lanes)));
        }
    } else if (pieces->count == 2) {
        const int32_t column = pieces->column[1];
        const int64_t first = pieces->offset[0], second = pieces->offset[1];

        /* One of the two is no longer than a vector. */
        for (int64_t k = 0; k < depth; k++, to += NAME(width)) {
            const TYPE *row = from + rows[k];
            NAME(store)(to, NAME(load)(row + first));
            if (column > NAME(lanes)) {
                NAME(store)
                (to + NAME(lanes), NAME(load)(row + first + NAME(lanes)));
                NAME(store)(to + column, NAME(load)(row + second));
            } else {
                NAME(store)(to + column, NAME(load)(row + second));
                NAME(store)
                (to + column + NAME(lanes),
                 NAME(load)(row + second + NAME(lanes)));
            }
        }
    } else {
        for (int64_t k = 0; k < depth; k++, to += NAME(width)) {
            const TYPE *row = from + rows[k];
            for (int32_t i = 0; i < pieces->count; i++) {
                const int32_t column = pieces->column[i];
                const TYPE *piece = row + pieces->offset[i];
                NAME(store)(to + column, NAME(load)(piece));
                if (pieces->column[i + 1] - column > NAME(lanes))
                    NAME(store)
                (to + column + NAME(lanes), NAME(load)(piece + NAME(lanes)));
            }
        }
    }
}

static void NAME(lines)(const struct flex_conv_lines *job, int64_t row_count,
                        const int64_t *rows, const void *strip, void *out,
                        int64_t out_row)
{
    for (int64_t k = 0; k < row_count; k++) {
        const TYPE *from = (const TYPE *)strip + rows[k];
        TYPE *to = (TYPE *)out + k * out_row;

        for (int64_t n = 0; n < job->count[0]; n++)
            for (int64_t z = 0; z < job->count[1]; z++) {
                const TYPE *at = from + n * job->step[0] + z * job->step[1];
                for (int64_t y = 0; y < job->count[2]; y++) {
                    for (int64_t x = 0; x < job->columns; x += NAME(lanes))
                        NAME(store)(to + x, NAME(load)(at + x));
                    to += job->columns;
                    at += job->step[2];
                }
            }
    }
}

static void NAME(turn)(int64_t rows, int64_t columns, int64_t parts,
                       const void *in, int64_t in_row, int64_t part, void *out,
                       int64_t out_row)
{
    TYPE block[FLEX_CONV_TURN][FLEX_CONV_TURN];
    const TYPE *from = in;
    TYPE *to = out;

    for (int64_t i = 0; i < rows; i++, from += in_row) {
        for (int64_t j = 0; j < columns; j++)
            block[i][j] = from[j];
        for (int64_t k = 1; k < parts; k++)
            for (int64_t j = 0; j < columns; j++)
                block[i][j] += from[k * part + j];
    }
    for (int64_t j = 0; j < columns; j++, to += out_row)
        for (int64_t i = 0; i < rows; i++)
            to[i] = block[i][j];
}

/* VECTORS vectors of a row of HEIGHT planes, PLANE apart; AT is where they
 * begin in the strip. */
static inline __attribute__((always_inline)) void
NAME(direct_part)(const int height, const int vectors,
                  const struct flex_conv_direct *job, const int64_t taps,
                  const TYPE *at, TYPE *out, int64_t plane)
{
    const TYPE *weights = job->weights;
    NAME(vector) sums[FLEX_CONV_DIRECT_HEIGHT][4];

#pragma GCC unroll 4
    for (int j = 0; j < height; j++)
#pragma GCC unroll 4
        for (int i = 0; i < vectors; i++)
            sums[j][i] = (NAME(vector)){0} + (TYPE)job->bias[j];
#pragma GCC unroll 9
    for (int64_t t = 0; t < taps; t++) {
        const TYPE *from = at + job->offsets[t];
        NAME(vector) x[4];

#pragma GCC unroll 4
        for (int i = 0; i < vectors; i++)
            x[i] = NAME(load)(from + i * NAME(lanes));
#pragma GCC unroll 4
        for (int j = 0; j < height; j++) {
            const TYPE weight = weights[t * height + j];
#pragma GCC unroll 4
            for (int i = 0; i < vectors; i++)
                sums[j][i] += weight * x[i];
        }
    }
#pragma GCC unroll 4
    for (int j = 0; j < height; j++)
#pragma GCC unroll 4
        for (int i = 0; i < vectors; i++)
            NAME(store)(out + j * plane + i * NAME(lanes), sums[j][i]);
}

/* Row after row, by whole vectors: what one writes too much is overwritten by
 * the next, except at the end. */
static inline __attribute__((always_inline)) void
NAME(direct_rows)(const int height, const struct flex_conv_direct *job,
                  const int64_t taps)
{
    /* Sums must stay in 16 registers, or 32 of the widest. */
    enum { MOST = 4 * NAME(lanes) };
    const int block = (VECTOR_BYTES == 64 || height == 1 ? 4 : 2) * NAME(lanes);
    const TYPE *strip = job->strip;
    TYPE *out = job->out;
    const TYPE *end = out + job->rows * job->columns;

    for (int64_t y = 0; y < job->rows; y++) {
        for (int64_t x = 0; x < job->columns; x += block) {
            const int64_t left = job->columns - x;
            const int64_t count = left < block ? left : block;
            const int64_t vectors = (count + NAME(lanes) - 1) / NAME(lanes);
            TYPE edge[FLEX_CONV_DIRECT_HEIGHT * MOST];
            const int is_edge = end - (out + x) < vectors * NAME(lanes);
            TYPE *to = is_edge ? edge : out + x;
            const int64_t plane = is_edge ? MOST : job->plane;

            if (vectors == 4)
                NAME(direct_part)
            (height, 4, job, taps, strip + x, to, plane);
            else if (vectors == 3)
                NAME(direct_part)(height, 3, job, taps, strip + x, to, plane);
            else if (vectors == 2)
                NAME(direct_part)(height, 2, job, taps, strip + x, to, plane);
            else NAME(direct_part)(height, 1, job, taps, strip + x, to, plane);
            for (int64_t j = 0; is_edge && j < height; j++)
                for (int64_t i = 0; i < count; i++)
                    out[j * job->plane + x + i] = edge[j * MOST + i];
        }
        out += job->columns;
        strip += job->strip_row;
    }
}

static void NAME(direct)(const struct flex_conv_direct *job)
{
    if (job->height == 4)
        NAME(direct_rows)(4, job, job->taps);
    else if (job->height == 3)
        NAME(direct_rows)(3, job, job->taps);
    else if (job->height == 2)
        NAME(direct_rows)(2, job, job->taps);
    else if (job->taps == 9)
        NAME(direct_rows)(1, job, 9);
    else
        NAME(direct_rows)(1, job, job->taps);
}

/* TAPS, at most 9, taps at once, so that GRAD is read once for all. */
static inline __attribute__((always_inline)) void
NAME(direct_dots)(const struct flex_conv_direct *job, const int taps,
                  const TYPE *grad, const int64_t *offsets, double *sums)
{
    const int64_t whole = job->columns / NAME(lanes) * NAME(lanes);
    const TYPE *strip = job->strip;
    NAME(vector) sum[9];
    NAME(bits) mask; /* of what is left of a row */

    for (int i = 0; i < NAME(lanes); i++)
        mask[i] = whole + i < job->columns ? -1 : 0;
#pragma GCC unroll 9
    for (int t = 0; t < taps; t++)
        sum[t] = (NAME(vector)){0};
    for (int64_t y = 0; y < job->rows; y++) {
        for (int64_t x = 0; x < whole; x += NAME(lanes)) {
            const NAME(vector) g = NAME(load)(grad + x);
#pragma GCC unroll 9
            for (int t = 0; t < taps; t++)
                sum[t] += g * NAME(load)(strip + x + offsets[t]);
        }
        if (whole < job->columns) {
            TYPE rest[NAME(lanes)] = {0};
            NAME(vector) g;

            for (int64_t i = whole; i < job->columns; i++)
                rest[i - whole] = grad[i];
            g = NAME(load)(rest);
            /* What lies behind the row may be NaN. */
#pragma GCC unroll 9
            for (int t = 0; t < taps; t++)
                sum[t] += g * (NAME(vector))((NAME(bits))NAME(load)(
                                                 strip + whole + offsets[t]) &
                                             mask);
        }
        grad += job->columns;
        strip += job->strip_row;
    }
#pragma GCC unroll 9
    for (int t = 0; t < taps; t++) {
        double total = 0;
        for (int i = 0; i < NAME(lanes); i++)
            total += (double)sum[t][i];
        sums[t] += total;
    }
}

static void NAME(direct_weight)(const struct flex_conv_direct *job,
                                const void *grad, double *sums)
{
    int64_t t = 0;

    for (; t + 9 <= job->taps; t += 9)
        NAME(direct_dots)(job, 9, grad, job->offsets + t, sums + t);
    for (; t + 3 <= job->taps; t += 3)
        NAME(direct_dots)(job, 3, grad, job->offsets + t, sums + t);
    for (; t < job->taps; t++)
        NAME(direct_dots)(job, 1, grad, job->offsets + t, sums + t);
}

#undef TYPE
#undef BITS
#undef LANES
#undef NAME
