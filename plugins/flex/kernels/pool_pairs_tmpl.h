/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_pairs_tmpl.h - windows of 2 x 2 side by side, the common pooling: two
 * rows are read from where they lie and become one row of results in registers,
 * in the order in which the general loops join them. Included by pool_tmpl.h.
 */

/* Whether POOL is that, with at least a vector of windows in a row. */
static inline int NAME(is_pairs)(const struct flex_pool *pool)
{
    for (int i = 0; i < 2; i++)
        if (pool->size[i] != 2 || pool->stride[i] != 2 || pool->padding[i] ||
            pool->dilation[i] != 1 || 2 * pool->out[i] > pool->in[i])
            return 0;
    return pool->out[1] >= NAME(lanes);
}

/* A vector of windows, of which the first is at IN. */
static inline __attribute__((always_inline)) void
NAME(pairs_vector)(const int is_max, const TYPE *in, int64_t width, TYPE *out)
{
    const TYPE *below = in + width;
    const NAME(vector) a =
        NAME(join)(is_max, NAME(load)(in), NAME(load)(below));
    const NAME(vector) b =
        NAME(join)(is_max, NAME(load)(in + LANES), NAME(load)(below + LANES));
#if LANES == 2
    const NAME(vector) even = __builtin_shufflevector(a, b, 0, 2);
    const NAME(vector) odd = __builtin_shufflevector(a, b, 1, 3);
#elif LANES == 4
    const NAME(vector) even = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    const NAME(vector) odd = __builtin_shufflevector(a, b, 1, 3, 5, 7);
#elif LANES == 8
    const NAME(vector) even =
        __builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14);
    const NAME(vector) odd =
        __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15);
#else
    const NAME(vector) even = __builtin_shufflevector(
        a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const NAME(vector) odd = __builtin_shufflevector(
        a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
#endif
    NAME(vector) x = NAME(join)(is_max, even, odd);

    if (!is_max)
        x *= (TYPE)0.25;
    NAME(store)(out, x);
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
