/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_pairs_tmpl.h - windows of 2 x 2 side by side, the common pooling: two
 * rows are read from where they lie and become one row of results in registers,
 * in the order in which the general loops join them. Included by pool_tmpl.h.
 */

/* Whether POOL is that. */
static inline int NAME(has_pairs)(const struct flex_pool *pool)
{
    for (int i = 0; i < 2; i++)
        if (pool->size[i] != 2 || pool->stride[i] != 2 || pool->padding[i] ||
            pool->dilation[i] != 1 || 2 * pool->out[i] > pool->in[i])
            return 0;
    return 1;
}

/* The same with at least a vector of windows in a row. */
static inline int NAME(is_pairs)(const struct flex_pool *pool)
{
    return NAME(has_pairs)(pool) && pool->out[1] >= NAME(lanes);
}

/* The elements of A, then B, in even and in odd places. */
static inline __attribute__((always_inline)) void
NAME(part)(NAME(vector) a, NAME(vector) b, NAME(vector) * even,
           NAME(vector) * odd)
{
#if LANES == 2
    *even = __builtin_shufflevector(a, b, 0, 2);
    *odd = __builtin_shufflevector(a, b, 1, 3);
#elif LANES == 4
    *even = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    *odd = __builtin_shufflevector(a, b, 1, 3, 5, 7);
#elif LANES == 8
    *even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    *odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    *even = __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20,
                                    22, 24, 26, 28, 30);
    *odd = __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21,
                                   23, 25, 27, 29, 31);
#endif
}

/* A vector of windows, of which the first is at IN. */
static inline __attribute__((always_inline)) void
NAME(pairs_vector)(const int is_max, const TYPE *in, int64_t width, TYPE *out)
{
    const TYPE *below = in + width;
    NAME(vector) even, odd;

    NAME(part)
    (NAME(join)(is_max, NAME(load)(in), NAME(load)(below)),
     NAME(join)(is_max, NAME(load)(in + LANES), NAME(load)(below + LANES)),
     &even, &odd);
    even = NAME(join)(is_max, even, odd);
    if (!is_max)
        even *= (TYPE)0.25;
    NAME(store)(out, even);
}

static inline __attribute__((always_inline)) void
NAME(pairs)(const int is_max, const struct flex_pool *pool, int64_t planes,
            const TYPE *in, TYPE *out)
{
    const int64_t width = pool->in[1], last = pool->out[1] - NAME(lanes);

    for (int64_t n = 0; n < planes; n++, in += pool->in[0] * width)
        for (int64_t y = 0; y < pool->out[0]; y++, out += pool->out[1]) {
            const TYPE *row = in + 2 * y * width;

            for (int64_t i = 0; i < last; i += NAME(lanes))
                NAME(pairs_vector)(is_max, row + 2 * i, width, out + i);
            /* The last vector overlaps the one before. */
            NAME(pairs_vector)(is_max, row + 2 * last, width, out + last);
        }
}

/* X at place AT, where it is greater than *BEST or the first NaN. */
static inline __attribute__((always_inline)) void
NAME(take_larger)(NAME(vector) x, NAME(bits) at, NAME(vector) * best,
                  NAME(bits) * place)
{
    const NAME(bits) take =
        (NAME(bits))(x > *best) |
        ((NAME(bits))(x != x) & (NAME(bits))(*best == *best));

    *best = NAME(select)(take, x, *best);
    *place = (at & take) | (*place & ~take);
}

/* A vector of windows, of which the first is at place FIRST of the plane at IN:
 * maxima and their places. */
static inline void NAME(pairs_index_vector)(const TYPE *in, int64_t first,
                                            int64_t width, TYPE *out,
                                            BITS *places)
{
    const TYPE *top = in + first, *below = top + width;
    NAME(bits) at, place;
    NAME(vector) best, x, even, odd;

    for (int i = 0; i < LANES; i++)
        at[i] = (BITS)(2 * i);
    at += (BITS)first;
    place = at;
    NAME(part)(NAME(load)(top), NAME(load)(top + LANES), &best, &x);
    NAME(take_larger)(x, at + 1, &best, &place);
    NAME(part)(NAME(load)(below), NAME(load)(below + LANES), &even, &odd);
    NAME(take_larger)(even, at + (BITS)width, &best, &place);
    NAME(take_larger)(odd, at + (BITS)(width + 1), &best, &place);
    NAME(store)(out, best);
    *(NAME(bits_at) *)places = place;
}

static void NAME(pairs_index)(const struct flex_pool *pool, int64_t planes,
                              const TYPE *in, TYPE *out, BITS *places)
{
    const int64_t width = pool->in[1], last = pool->out[1] - NAME(lanes);

    for (int64_t n = 0; n < planes; n++, in += pool->in[0] * width)
        for (int64_t y = 0; y < pool->out[0]; y++) {
            const int64_t row = 2 * y * width;

            for (int64_t i = 0; i < last; i += NAME(lanes))
                NAME(pairs_index_vector)
            (in, row + 2 * i, width, out + i, places + i);
            NAME(pairs_index_vector)
            (in, row + 2 * last, width, out + last, places + last);
            out += pool->out[1];
            places += pool->out[1];
        }
}
