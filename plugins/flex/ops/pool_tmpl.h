/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_tmpl.h - pooling of one plane, for TYPE. Included by pool.c with TYPE
 * and NAME(x) defined.
 */

/*
 * Maxima of windows, without positions: first the rows of a window are
 * reduced to one (by vectors), then its columns. ROW holds in[1] elements.
 */
static void NAME(max_plane)(const struct pool *pool, const TYPE *x, TYPE *out,
                            TYPE *row)
{
    const struct flex_window *w = &pool->window;

    for (int64_t y = 0; y < w->out[0]; y++, out += w->out[1]) {
        int is_first = 1;

        for (int64_t ky = 0; ky < w->size[0]; ky++) {
            int64_t at = y * w->stride[0] + ky * w->dilation[0] - w->padding[0];
            if (at < 0 || at >= w->in[0])
                continue;
            if (is_first)
                memcpy(row, x + at * w->in[1], (size_t)w->in[1] * sizeof(TYPE));
            else
                pool->kernels->max(row, x + at * w->in[1], w->in[1]);
            is_first = 0;
        }
        for (int64_t i = 0; i < w->out[1]; i++) {
            TYPE best = -(TYPE)INFINITY;
            int64_t at = i * w->stride[1] - w->padding[1];

            for (int64_t kx = 0; kx < w->size[1] && !is_first; kx++) {
                int64_t column = at + kx * w->dilation[1];
                if (column < 0 || column >= w->in[1])
                    continue;
                /* NaN wins and stays. */
                if (!(row[column] <= best) && best == best)
                    best = row[column];
            }
            out[i] = best;
        }
    }
}

/* Maxima and their positions; the first of equals, the first NaN. */
static void NAME(max_index_plane)(const struct pool *pool, const TYPE *x,
                                  TYPE *out, int64_t *indices)
{
    const struct flex_window *w = &pool->window;

    for (int64_t y = 0; y < w->out[0]; y++)
        for (int64_t i = 0; i < w->out[1]; i++) {
            TYPE best = -(TYPE)INFINITY;
            int64_t found = -1;

            for (int64_t ky = 0; ky < w->size[0]; ky++) {
                int64_t row =
                    y * w->stride[0] + ky * w->dilation[0] - w->padding[0];
                if (row < 0 || row >= w->in[0])
                    continue;
                for (int64_t kx = 0; kx < w->size[1]; kx++) {
                    int64_t column =
                        i * w->stride[1] + kx * w->dilation[1] - w->padding[1];
                    int64_t at = row * w->in[1] + column;
                    if (column < 0 || column >= w->in[1])
                        continue;
                    if (found < 0 || (!(x[at] <= best) && best == best)) {
                        best = x[at];
                        found = at;
                    }
                }
            }
            *out++ = best;
            *indices++ = found;
        }
}

/* The window of output (y, i): its bounds in the plane and its divisor. */
static TYPE NAME(average_window)(const struct pool *pool, int64_t y, int64_t i,
                                 int64_t low[2], int64_t high[2])
{
    const struct flex_window *w = &pool->window;
    const int64_t position[2] = {y, i};
    TYPE padded = 1, inside = 1;

    for (int axis = 0; axis < 2; axis++) {
        int64_t start = position[axis] * w->stride[axis] - w->padding[axis];
        int64_t end = start + w->size[axis];
        /* Declared padding counts, the overhang of ceil_mode does not. */
        if (end > w->in[axis] + w->padding[axis])
            end = w->in[axis] + w->padding[axis];
        padded *= (TYPE)(end - start);
        low[axis] = start < 0 ? 0 : start;
        high[axis] = end > w->in[axis] ? w->in[axis] : end;
        if (high[axis] < low[axis])
            high[axis] = low[axis];
        inside *= (TYPE)(high[axis] - low[axis]);
    }
    return pool->count_include_pad ? padded : inside;
}

static void NAME(average_plane)(const struct pool *pool, const TYPE *x,
                                TYPE *out)
{
    const struct flex_window *w = &pool->window;

    for (int64_t y = 0; y < w->out[0]; y++)
        for (int64_t i = 0; i < w->out[1]; i++) {
            int64_t low[2], high[2];
            TYPE divisor = NAME(average_window)(pool, y, i, low, high);
            TYPE sum = 0;

            for (int64_t row = low[0]; row < high[0]; row++)
                for (int64_t c = low[1]; c < high[1]; c++)
                    sum += x[row * w->in[1] + c];
            *out++ = sum / divisor;
        }
}

static void NAME(average_back_plane)(const struct pool *pool, const TYPE *grad,
                                     TYPE *out)
{
    const struct flex_window *w = &pool->window;

    memset(out, 0, (size_t)(w->in[0] * w->in[1]) * sizeof(TYPE));
    for (int64_t y = 0; y < w->out[0]; y++)
        for (int64_t i = 0; i < w->out[1]; i++) {
            int64_t low[2], high[2];
            TYPE divisor = NAME(average_window)(pool, y, i, low, high);
            TYPE share = *grad++ / divisor;

            for (int64_t row = low[0]; row < high[0]; row++)
                for (int64_t c = low[1]; c < high[1]; c++)
                    out[row * w->in[1] + c] += share;
        }
}

/* grad added at the positions, which are checked. */
static void NAME(max_back_plane)(const struct pool *pool, const TYPE *grad,
                                 const int64_t *indices, TYPE *out)
{
    const int64_t count = pool->window.out[0] * pool->window.out[1];

    memset(out, 0,
           (size_t)(pool->window.in[0] * pool->window.in[1]) * sizeof(TYPE));
    for (int64_t i = 0; i < count; i++)
        out[indices[i]] += grad[i];
}

#undef TYPE
#undef NAME
