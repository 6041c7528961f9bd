/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_tmpl.h - one type's inner loops of convolution. Included by
 * conv_isa.h with what vector_tmpl.h needs defined.
 */

#include "vector_tmpl.h"

enum { NAME(width) = 2 * NAME(lanes) };

/* Copies of COUNT elements, exactly: by vectors, of which the last overlaps the
 * one before. Every element of IN, and every second one. */
static inline void NAME(copy)(int64_t count, const TYPE *in, TYPE *out)
{
    int64_t i = 0;

    if (count >= NAME(lanes)) {
        for (; i + NAME(lanes) < count; i += NAME(lanes))
            NAME(store)(out + i, NAME(load)(in + i));
        i = count - NAME(lanes);
        NAME(store)(out + i, NAME(load)(in + i));
    } else if (count >= NAME(narrow_lanes)) {
        for (; i + NAME(narrow_lanes) < count; i += NAME(narrow_lanes))
            memcpy(out + i, in + i, 16);
        i = count - NAME(narrow_lanes);
        memcpy(out + i, in + i, 16);
    } else {
        for (; i < count; i++)
            out[i] = in[i];
    }
}

static inline void NAME(copy_even)(int64_t count, const TYPE *in, TYPE *out)
{
    int64_t i = 0;

    if (count >= NAME(lanes)) {
        for (; i + NAME(lanes) < count; i += NAME(lanes))
            NAME(store)(out + i, NAME(load_even)(in + 2 * i));
        i = count - NAME(lanes);
        NAME(store)(out + i, NAME(load_even)(in + 2 * i));
    } else if (count >= NAME(narrow_lanes)) {
        for (; i + NAME(narrow_lanes) < count; i += NAME(narrow_lanes))
            NAME(narrow_even)(in + 2 * i, out + i);
        i = count - NAME(narrow_lanes);
        NAME(narrow_even)(in + 2 * i, out + i);
    } else {
        for (; i < count; i++)
            out[i] = in[2 * i];
    }
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

/* Nonzero if no piece is longer than a vector. */
static inline int NAME(are_short)(const struct flex_conv_pieces *pieces)
{
    for (int32_t i = 0; i < pieces->count; i++)
        if (pieces->column[i + 1] - pieces->column[i] > NAME(lanes))
            return 0;
    return 1;
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
    } else if (NAME(are_short)(pieces)) {
        for (int64_t k = 0; k < depth; k++, to += NAME(width)) {
            const TYPE *row = from + rows[k];
            for (int32_t i = 0; i < pieces->count; i++)
                NAME(store)
            (to + pieces->column[i], NAME(load)(row + pieces->offset[i]));
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

/* ROWS, at most 4, rows of one plane at 3 x 3 taps, the strip's rows being as
 * far apart as those of the output: each of them is read once for three. */
static inline __attribute__((always_inline)) void
NAME(direct_square)(const int rows, const struct flex_conv_direct *job,
                    const TYPE *strip, const int64_t offsets[3],
                    const TYPE weights[9], TYPE *out)
{
    for (int64_t from = 0; from < job->columns; from += NAME(lanes)) {
        /* The last vector overlaps the one before. */
        const int64_t last = job->columns - NAME(lanes);
        const int64_t x = from < last ? from : last;
        NAME(vector) sums[4];

#pragma GCC unroll 4
        for (int y = 0; y < rows; y++)
            sums[y] = (NAME(vector)){0} + (TYPE)job->bias[0];
#pragma GCC unroll 6
        for (int r = 0; r < rows + 2; r++)
#pragma GCC unroll 3
            for (int kx = 0; kx < 3; kx++) {
                const NAME(vector) in =
                    NAME(load)(strip + r * job->strip_row + x + offsets[kx]);
#pragma GCC unroll 3
                for (int ky = 0; ky < 3; ky++)
                    if (r >= ky && r - ky < rows)
                        sums[r - ky] += weights[3 * ky + kx] * in;
            }
#pragma GCC unroll 4
        for (int y = 0; y < rows; y++)
            NAME(store)(out + y * job->columns + x, sums[y]);
    }
}

/* Returns 0 if the taps of JOB are no such square. */
static inline int NAME(direct_squares)(const struct flex_conv_direct *job)
{
    const TYPE *weights = job->weights;
    const int64_t *t = job->offsets;
    const int64_t step = t[3] - t[0], rest = job->rows % 4;
    const int is_turned = step < 0; /* the taps run upwards */
    const int64_t offsets[3] = {t[is_turned * 6], t[is_turned * 6 + 1],
                                t[is_turned * 6 + 2]};
    const TYPE *strip = job->strip;
    TYPE *out = job->out;
    TYPE w[9];

    if (job->columns < NAME(lanes) ||
        (step != job->strip_row && step != -job->strip_row))
        return 0;
    for (int i = 0; i < 6; i++)
        if (t[i + 3] - t[i] != step)
            return 0;
    for (int i = 0; i < 9; i++)
        w[i] = weights[is_turned ? (2 - i / 3) * 3 + i % 3 : i];
    for (int64_t y = 0; y + 4 <= job->rows; y += 4) {
        NAME(direct_square)(4, job, strip, offsets, w, out);
        strip += 4 * job->strip_row;
        out += 4 * job->columns;
    }
    if (rest == 3)
        NAME(direct_square)(3, job, strip, offsets, w, out);
    else if (rest == 2)
        NAME(direct_square)(2, job, strip, offsets, w, out);
    else if (rest == 1)
        NAME(direct_square)(1, job, strip, offsets, w, out);
    return 1;
}

static void NAME(direct)(const struct flex_conv_direct *job)
{
    if (job->height == 1 && job->taps == 9 && NAME(direct_squares)(job))
        return;
    if (job->height == 4)
        NAME(direct_rows)(4, job, job->taps);
    else if (job->height == 3)
        NAME(direct_rows)(3, job, job->taps);
    else if (job->height == 2)
        NAME(direct_rows)(2, job, job->taps);
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
#undef NARROW_LANES
#undef NAME
