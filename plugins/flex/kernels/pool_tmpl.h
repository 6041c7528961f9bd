/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_tmpl.h - pooling of one type. Included by pool_isa.h with TYPE, BITS
 * (integers of the same size) and NAME(x) defined.
 */

#include "vector_tmpl.h"

/* A where MASK is set, else B. */
static inline NAME(vector)
    NAME(select)(NAME(bits) mask, NAME(vector) a, NAME(vector) b)
{
    return (NAME(vector))(((NAME(bits))a & mask) | ((NAME(bits))b & ~mask));
}

/* NaN wins and stays. */
static inline NAME(vector) NAME(larger)(NAME(vector) best, NAME(vector) x)
{
    return NAME(select)((NAME(bits))(x > best) | (NAME(bits))(x != x), x, best);
}

static inline __attribute__((always_inline)) NAME(vector)
    NAME(join)(const int is_max, NAME(vector) a, NAME(vector) b)
{
    if (is_max)
        return NAME(larger)(a, b);
    return a + b;
}

/* COUNT elements, at most a vector. */
static inline NAME(vector) NAME(load_some)(const TYPE *p, int64_t count)
{
    TYPE all[NAME(lanes)] = {0};

    if (count == NAME(lanes))
        return NAME(load)(p);
    for (int64_t i = 0; i < count; i++)
        all[i] = p[i];
    return NAME(load)(all);
}

/* The windows of row Y have their taps FIRST .. LAST - 1 inside the plane. */
static inline void NAME(taps)(const struct flex_pool *pool, int64_t y,
                              int64_t *first, int64_t *last)
{
    const int64_t at = y * pool->stride[0] - pool->padding[0];
    const int64_t step = pool->dilation[0];
    const int64_t end =
        at < pool->in[0] ? (pool->in[0] - 1 - at) / step + 1 : 0;

    *first = at < 0 ? (-at + step - 1) / step : 0;
    *last = end < pool->size[0] ? end : pool->size[0];
}

/* One vector of LANES elements: the reduction of TAPS rows STEP apart. Sums
 * are taken 16 by 16. */
static inline __attribute__((always_inline)) NAME(vector)
    NAME(reduce)(const int is_max, const TYPE *in, int64_t step, int64_t taps,
                 int64_t lanes)
{
    NAME(vector) total = NAME(load_some)(in, lanes);
    int64_t t = 1;

    while (t < taps) {
        const int64_t end = t + 16 < taps ? t + 16 : taps;
        NAME(vector) part = NAME(load_some)(in + t * step, lanes);
        for (t++; t < end; t++) {
            const NAME(vector) x = NAME(load_some)(in + t * step, lanes);
            part = NAME(join)(is_max, part, x);
        }
        total = NAME(join)(is_max, total, part);
    }
    return total;
}

/* The rows under windows of row Y as one, at ROW. */
static inline __attribute__((always_inline)) void
NAME(reduce_rows)(const int is_max, const struct flex_pool *pool, int64_t y,
                  const TYPE *in, TYPE *row)
{
    const int64_t width = pool->in[1];
    const int64_t step = pool->dilation[0] * width;
    int64_t first, last, x = 0;

    NAME(taps)(pool, y, &first, &last);
    if (first >= last) {
        for (; x < width; x++)
            row[x] = is_max ? -(TYPE)INFINITY : 0;
        return;
    }
    in += (y * pool->stride[0] - pool->padding[0]) * width + first * step;
    for (; x + NAME(lanes) <= width; x += NAME(lanes))
        NAME(store)
    (row + x, NAME(reduce)(is_max, in + x, step, last - first, NAME(lanes)));
    if (x == width)
        return;
    if (x > 0) { /* the last vector overlaps the one before */
        x = width - NAME(lanes);
        NAME(store)
        (row + x,
         NAME(reduce)(is_max, in + x, step, last - first, NAME(lanes)));
    } else {
        NAME(vector)
        rest = NAME(reduce)(is_max, in, step, last - first, width);
        for (int i = 0; i < width; i++)
            row[i] = rest[i];
    }
}

/* ROW's elements sorted by their remainder modulo the stride, at LINE. What is
 * too much of one remainder is overwritten by the next. */
static inline void NAME(sort)(const struct flex_pool *pool, const TYPE *row,
                              TYPE *line)
{
    const int64_t stride = pool->stride[1], extent = flex_pool_extent(pool);
    const int64_t count = (extent + stride - 1) / stride;

    for (int64_t r = 0; r < stride && r < extent; r++, line += count)
        if (stride == 2)
            for (int64_t i = 0; i < count; i += NAME(lanes))
                NAME(store)(line + i, NAME(load_even)(row + 2 * i + r));
        else
            for (int64_t i = 0; i < count; i++)
                line[i] = row[i * stride + r];
}

/* Buffers of a call, cut from its scratch. */
struct NAME(space) {
    TYPE *row;              /* padded */
    TYPE *line;             /* sorted: the same if the stride is 1 */
    int64_t line_step;      /* between lines, of max_index */
    int64_t *lines;         /* where the row of each tap is, of max_index */
    int64_t *offsets;       /* of each tap in a line */
    TYPE *counts;           /* of each window of a mean along the width */
    BITS *columns, *firsts; /* of max_index, see there */
};

static inline struct NAME(space)
    NAME(space)(const struct flex_pool *pool, int64_t lines, TYPE fill,
                void *scratch)
{
    const int64_t length = flex_pool_row(pool), extent = flex_pool_extent(pool);
    const int64_t stride = pool->stride[1];
    const int64_t count = (extent + stride - 1) / stride;
    struct NAME(space) space = {.lines = scratch, .line_step = length};

    space.offsets = space.lines + pool->size[0];
    space.row = (TYPE *)(space.offsets + pool->size[1]);
    space.line = stride == 1 && lines == 1 ? space.row : space.row + length;
    space.counts = space.row + (lines + 1) * length;
    space.columns = (BITS *)(void *)space.counts;
    space.firsts = space.columns + pool->out[1] + FLEX_POOL_SLACK;
    for (int64_t i = 0; i < (lines + 1) * length; i++)
        space.row[i] = fill;
    for (int64_t k = 0; k < pool->size[1]; k++) {
        const int64_t at = k * pool->dilation[1];
        space.offsets[k] = at % stride * count + at / stride;
    }
    return space;
}

/* Elements that a window of the mean counts along AXIS. */
static inline int64_t NAME(count)(const struct flex_pool *pool, int axis,
                                  int64_t i)
{
    const int64_t start = i * pool->stride[axis] - pool->padding[axis];
    const int64_t room = pool->in[axis] + pool->padding[axis];
    /* The overhang of ceil_mode never counts. */
    const int64_t end =
        start + pool->size[axis] < room ? start + pool->size[axis] : room;
    const int64_t low = start > 0 ? start : 0;
    const int64_t high = end < pool->in[axis] ? end : pool->in[axis];

    if (pool->count_padding)
        return end - start;
    return high > low ? high - low : 0;
}

static inline void NAME(count_all)(const struct flex_pool *pool, TYPE *out)
{
    for (int64_t i = 0; i < pool->out[1] + FLEX_POOL_SLACK; i++)
        out[i] = i < pool->out[1] ? (TYPE)NAME(count)(pool, 1, i) : 1;
}

/* Store X, the vector at OUT, of which only what lies before END is there. */
static inline void NAME(store_before)(TYPE *out, const TYPE *end,
                                      NAME(vector) x)
{
    if (end - out >= NAME(lanes)) {
        NAME(store)(out, x);
        return;
    }
    for (int i = 0; i < end - out; i++)
        out[i] = x[i];
}

#include "pool_pairs_tmpl.h"

/* Planes by windows, rows first; what is too much of a row is overwritten by
 * the next. */
static inline __attribute__((always_inline)) void
NAME(planes)(const int is_max, const struct flex_pool *pool, int64_t planes,
             const TYPE *in, TYPE *out, void *scratch)
{
    const struct NAME(space) space =
        NAME(space)(pool, 1, is_max ? -(TYPE)INFINITY : 0, scratch);
    const TYPE *end = out + planes * pool->out[0] * pool->out[1];
    const int64_t taps = pool->size[1];

    if (!is_max)
        NAME(count_all)(pool, space.counts);
    for (int64_t n = 0; n < planes; n++, in += pool->in[0] * pool->in[1])
        for (int64_t y = 0; y < pool->out[0]; y++, out += pool->out[1]) {
            const TYPE height = (TYPE)NAME(count)(pool, 0, y);

            NAME(reduce_rows)
            (is_max, pool, y, in, space.row + pool->padding[1]);
            if (pool->stride[1] > 1)
                NAME(sort)(pool, space.row, space.line);
            for (int64_t i = 0; i < pool->out[1]; i += NAME(lanes)) {
                const TYPE *at = space.line + i;
                NAME(vector) x = NAME(load)(at + space.offsets[0]);
                for (int64_t k = 1; k < taps;) {
                    const int64_t last = k + 16 < taps ? k + 16 : taps;
                    NAME(vector) part = NAME(load)(at + space.offsets[k]);
                    for (k++; k < last; k++) {
                        const NAME(vector) next =
                            NAME(load)(at + space.offsets[k]);
                        part = NAME(join)(is_max, part, next);
                    }
                    x = NAME(join)(is_max, x, part);
                }
                if (!is_max)
                    x /= height * NAME(load)(space.counts + i);
                NAME(store_before)(out + i, end, x);
            }
        }
}

static void NAME(max)(const struct flex_pool *pool, int64_t planes,
                      const void *in, void *out, void *scratch)
{
    if (NAME(is_pairs)(pool))
        NAME(pairs)(1, pool, planes, in, out);
    else
        NAME(planes)(1, pool, planes, in, out, scratch);
}

static void NAME(mean)(const struct flex_pool *pool, int64_t planes,
                       const void *in, void *out, void *scratch)
{
    if (NAME(is_pairs)(pool))
        NAME(pairs)(0, pool, planes, in, out);
    else
        NAME(planes)(0, pool, planes, in, out, scratch);
}

/* Sort row Y of the plane at IN into its line. */
static inline void NAME(keep_row)(const struct flex_pool *pool,
                                  const struct NAME(space) * space, int64_t y,
                                  const TYPE *in)
{
    TYPE *line = space->line + y % flex_pool_lines(pool) * space->line_step;
    TYPE *row = pool->stride[1] > 1 ? space->row : line;
    TYPE *to = row + pool->padding[1];

    in += y * pool->in[1];
    if (pool->in[1] < NAME(lanes)) {
        memcpy(to, in, (size_t)pool->in[1] * sizeof(TYPE));
    } else { /* the last vector overlaps the one before */
        const int64_t last = pool->in[1] - NAME(lanes);
        for (int64_t x = 0; x < last; x += NAME(lanes))
            NAME(store)(to + x, NAME(load)(in + x));
        NAME(store)(to + last, NAME(load)(in + last));
    }
    if (pool->stride[1] > 1)
        NAME(sort)(pool, row, line);
}

/* The taps of a row of windows that lie inside the plane. */
struct NAME(window_row) {
    int64_t top; /* the row of tap 0 */
    int64_t first, last;
};

/* A vector of windows, I and following. */
static inline void NAME(index_vector)(const struct flex_pool *pool,
                                      const struct NAME(space) * space,
                                      const struct NAME(window_row) * window,
                                      int64_t i, NAME(vector) * out_best,
                                      NAME(bits) * out_index)
{
    const NAME(bits) columns = *(const NAME(bits_at) *)(space->columns + i);
    NAME(vector) best = (NAME(vector)){0} - (TYPE)INFINITY;
    NAME(bits) index = *(const NAME(bits_at) *)(space->firsts + i);
    int64_t row = window->top + window->first * pool->dilation[0];

    index += (BITS)(row * pool->in[1]);
    for (int64_t k = window->first; k < window->last; k++) {
        const TYPE *line = space->line + space->lines[k] + i;
        for (int64_t t = 0; t < pool->size[1]; t++) {
            const NAME(vector) x = NAME(load)(line + space->offsets[t]);
            const NAME(bits) take =
                (NAME(bits))(x > best) |
                ((NAME(bits))(x != x) & (NAME(bits))(best == best));
            const NAME(bits) at =
                columns + (BITS)(row * pool->in[1] + t * pool->dilation[1]);
            best = NAME(select)(take, x, best);
            index = (at & take) | (index & ~take);
        }
        row += pool->dilation[0];
    }
    *out_best = best;
    *out_index = index;
}

static void NAME(max_index_any)(const struct flex_pool *pool, int64_t planes,
                                const TYPE *in, TYPE *out, BITS *places,
                                void *scratch)
{
    const struct NAME(space) space =
        NAME(space)(pool, flex_pool_lines(pool), -(TYPE)INFINITY, scratch);
    const TYPE *end = out + planes * pool->out[0] * pool->out[1];
    const BITS *places_end = places + (end - out);

    for (int64_t i = 0; i < pool->out[1]; i++) {
        const int64_t start = i * pool->stride[1] - pool->padding[1];
        const int64_t step = pool->dilation[1];
        space.columns[i] = (BITS)start;
        space.firsts[i] =
            (BITS)(start < 0 ? start + (-start + step - 1) / step * step
                             : start);
    }
    for (int64_t n = 0; n < planes; n++, in += pool->in[0] * pool->in[1]) {
        int64_t kept = 0; /* rows of the plane that are or were in lines */

        for (int64_t y = 0; y < pool->out[0]; y++) {
            struct NAME(window_row)
                window = {.top = y * pool->stride[0] - pool->padding[0]};
            int64_t need =
                window.top + pool->dilation[0] * (pool->size[0] - 1) + 1;

            need = need < pool->in[0] ? need : pool->in[0];
            if (kept < need - flex_pool_lines(pool))
                kept = need - flex_pool_lines(pool);
            for (; kept < need; kept++)
                NAME(keep_row)(pool, &space, kept, in);
            NAME(taps)(pool, y, &window.first, &window.last);
            for (int64_t k = window.first; k < window.last; k++)
                space.lines[k] = (window.top + k * pool->dilation[0]) %
                                 flex_pool_lines(pool) * space.line_step;
            for (int64_t i = 0; i < pool->out[1]; i += NAME(lanes)) {
                NAME(vector) best;
                NAME(bits) index;

                NAME(index_vector)(pool, &space, &window, i, &best, &index);
                NAME(store_before)(out + i, end, best);
                if (places_end - (places + i) >= NAME(lanes))
                    *(NAME(bits_at) *)(places + i) = index;
                else
                    for (int64_t j = i; places + j < places_end; j++)
                        places[j] = index[j - i];
            }
            out += pool->out[1];
            places += pool->out[1];
        }
    }
}

static void NAME(max_index)(const struct flex_pool *pool, int64_t planes,
                            const void *in, void *out, void *indices,
                            void *scratch)
{
    if (NAME(is_pairs)(pool))
        NAME(pairs_index)(pool, planes, in, out, indices);
    else
        NAME(max_index_any)(pool, planes, in, out, indices, scratch);
}

/* The opposite of sort: ROW's first elements from LINE. */
static inline void NAME(unsort)(const struct flex_pool *pool,
                                const TYPE *restrict line, TYPE *restrict row)
{
    const int64_t stride = pool->stride[1];
    const int64_t columns = pool->padding[1] + pool->in[1];
    const int64_t count = (columns + stride - 1) / stride;

    if (stride == 2)
        for (int64_t i = 0; i < count; i++) {
            row[2 * i] = line[i];
            row[2 * i + 1] = line[count + i];
        }
    else
        for (int64_t r = 0; r < stride && r < columns; r++)
            for (int64_t i = 0; i < count; i++)
                row[i * stride + r] = line[r * count + i];
}

/* What the windows of one row give to each column, sorted, at LINE: SHARES,
 * one a window, lie between zeros. */
static inline void NAME(spread_shares)(const struct flex_pool *pool,
                                       const TYPE *shares, TYPE *line)
{
    const int64_t stride = pool->stride[1], size = pool->size[1];
    const int64_t columns = pool->padding[1] + pool->in[1];
    const int64_t count = (columns + stride - 1) / stride;

    for (int64_t r = 0; r < stride && r < columns; r++, line += count) {
        const int64_t taps = r < size ? (size - r + stride - 1) / stride : 0;

        for (int64_t i = 0; i < count; i += NAME(lanes)) {
            NAME(vector) sum = (NAME(vector)){0};
            for (int64_t k = 0; k < taps; k++)
                sum += NAME(load)(shares + i - k);
            NAME(store)(line + i, sum);
        }
    }
}

static void NAME(mean_back)(const struct flex_pool *pool, int64_t planes,
                            const void *in_planes, void *out_planes,
                            void *scratch)
{
    const struct NAME(space) space = NAME(space)(pool, 2, 0, scratch);
    const int64_t width = pool->in[1];
    const TYPE *grad = in_planes;
    TYPE *out = out_planes;
    TYPE *row = pool->stride[1] > 1 ? space.row : space.line;
    TYPE *shares = space.line + space.line_step + pool->size[1];

    NAME(count_all)(pool, space.counts);
    for (int64_t n = 0; n < planes; n++, out += pool->in[0] * width) {
        memset(out, 0, (size_t)(pool->in[0] * width) * sizeof(TYPE));
        for (int64_t y = 0; y < pool->out[0]; y++, grad += pool->out[1]) {
            const TYPE height = (TYPE)NAME(count)(pool, 0, y);
            int64_t first, last;

            NAME(taps)(pool, y, &first, &last);
            for (int64_t i = 0; i < pool->out[1]; i++)
                shares[i] = grad[i] / (height * space.counts[i]);
            NAME(spread_shares)(pool, shares, space.line);
            if (pool->stride[1] > 1)
                NAME(unsort)(pool, space.line, row);
            for (int64_t k = first; k < last; k++) {
                TYPE *restrict to =
                    out + (y * pool->stride[0] - pool->padding[0] + k) * width;
                const TYPE *restrict from = row + pool->padding[1];
                for (int64_t x = 0; x < width; x++)
                    to[x] += from[x];
            }
        }
    }
}

#include "pool_max_back_tmpl.h"

#undef TYPE
#undef BITS
#undef LANES
#undef NARROW_LANES
#undef NAME
