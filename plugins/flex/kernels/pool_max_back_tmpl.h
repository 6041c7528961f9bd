/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool_max_back_tmpl.h - the gradient of max pooling by windows of 2 x 2 side
 * by side, the common one: two rows of elements and one of gradients become
 * two of gradients in registers. Included by pool_tmpl.h.
 */

/* The even and the odd elements of two vectors, and how they come together. */
#if LANES == 2
#define EVEN 0, 2
#define ODD 1, 3
#define LOW 0, 2
#define HIGH 1, 3
#elif LANES == 4
#define EVEN 0, 2, 4, 6
#define ODD 1, 3, 5, 7
#define LOW 0, 4, 1, 5
#define HIGH 2, 6, 3, 7
#elif LANES == 8
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14
#define ODD 1, 3, 5, 7, 9, 11, 13, 15
#define LOW 0, 8, 1, 9, 2, 10, 3, 11
#define HIGH 4, 12, 5, 13, 6, 14, 7, 15
#else
#define EVEN 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30
#define ODD 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31
#define LOW 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#endif

/* Where X is to be taken for BEST: as max_index does, by larger(). */
static inline NAME(bits) NAME(takes)(NAME(vector) best, NAME(vector) x)
{
    return (NAME(bits))(x > best) |
           ((NAME(bits))(x != x) & (NAME(bits))(best == best));
}

/* GRAD where MASK is set, else 0. */
static inline NAME(vector) NAME(keep)(NAME(bits) mask, NAME(vector) grad)
{
    return (NAME(vector))((NAME(bits))grad & mask);
}

/* A vector of windows, of which the first is at IN and OUT. */
static inline __attribute__((always_inline)) void
NAME(max_back_vector)(const TYPE *in, const TYPE *grad, int64_t width,
                      TYPE *out)
{
    const NAME(vector) top = NAME(load)(in), top2 = NAME(load)(in + LANES);
    const NAME(vector) low = NAME(load)(in + width);
    const NAME(vector) low2 = NAME(load)(in + width + LANES);
    const NAME(vector) g = NAME(load)(grad);
    const NAME(vector) a = __builtin_shufflevector(top, top2, EVEN);
    const NAME(vector) b = __builtin_shufflevector(top, top2, ODD);
    const NAME(vector) c = __builtin_shufflevector(low, low2, EVEN);
    const NAME(vector) d = __builtin_shufflevector(low, low2, ODD);
    const NAME(bits) take_b = NAME(takes)(a, b);
    NAME(vector) best = NAME(select)(take_b, b, a);
    const NAME(bits) take_c = NAME(takes)(best, c);
    best = NAME(select)(take_c, c, best);
    const NAME(bits) take_d = NAME(takes)(best, d);
    const NAME(vector) at_a = NAME(keep)(~(take_b | take_c | take_d), g);
    const NAME(vector) at_b = NAME(keep)(take_b & ~(take_c | take_d), g);
    const NAME(vector) at_c = NAME(keep)(take_c & ~take_d, g);
    const NAME(vector) at_d = NAME(keep)(take_d, g);

    NAME(store)(out, __builtin_shufflevector(at_a, at_b, LOW));
    NAME(store)(out + LANES, __builtin_shufflevector(at_a, at_b, HIGH));
    NAME(store)(out + width, __builtin_shufflevector(at_c, at_d, LOW));
    NAME(store)(out + width + LANES, __builtin_shufflevector(at_c, at_d, HIGH));
}

/* COUNT windows, fewer than a vector, and nothing besides them. */
static void NAME(max_back_some)(const TYPE *in, const TYPE *grad, int64_t width,
                                int64_t count, TYPE *out)
{
    TYPE rows[4 * LANES] = {0}, shares[LANES] = {0}, made[4 * LANES];

    for (int64_t i = 0; i < 2 * count; i++) {
        rows[i] = in[i];
        rows[2 * LANES + i] = in[width + i];
    }
    for (int64_t i = 0; i < count; i++)
        shares[i] = grad[i];
    NAME(max_back_vector)(rows, shares, 2 * LANES, made);
    for (int64_t i = 0; i < 2 * count; i++) {
        out[i] = made[i];
        out[width + i] = made[2 * LANES + i];
    }
}

static int NAME(max_back)(const struct flex_pool *pool, int64_t planes,
                          const void *in_planes, const void *grad_planes,
                          void *out_planes)
{
    const int64_t width = pool->in[1], size = pool->in[0] * width;
    const int64_t wide = pool->out[1] / LANES * LANES,
                  rest = pool->out[1] - wide;
    const TYPE *in = in_planes, *grad = grad_planes;
    TYPE *out = out_planes;
    /* How much is left. A vector may read that far and write what follows its
     * row, which is written after it. */
    int64_t left = planes * size;
    int64_t grads_left = planes * pool->out[0] * pool->out[1];

    if (!NAME(has_pairs)(pool))
        return 0;
    for (int64_t n = 0; n < planes;
         n++, in += size, out += size, left -= size) {
        for (int64_t y = 0; y < pool->out[0]; y++, grad += pool->out[1]) {
            const TYPE *from = in + 2 * y * width;
            TYPE *to = out + 2 * y * width;

            /* First, for it writes over the beginning of the second row. */
            if (rest && grads_left >= wide + LANES &&
                left >= (2 * y + 1) * width + 2 * (wide + LANES)) {
                NAME(max_back_vector)
                (from + 2 * wide, grad + wide, width, to + 2 * wide);
            } else if (rest) {
                NAME(max_back_some)
                (from + 2 * wide, grad + wide, width, rest, to + 2 * wide);
            }
            for (int64_t i = 0; i < wide; i += LANES) {
                NAME(max_back_vector)
                (from + 2 * i, grad + i, width, to + 2 * i);
            }
            for (int64_t x = 2 * pool->out[1]; x < width; x++)
                to[x] = to[width + x] = 0;
            grads_left -= pool->out[1];
        }
        for (int64_t i = 2 * pool->out[0] * width; i < size; i++)
            out[i] = 0;
    }
    return 1;
}

#undef EVEN
#undef ODD
#undef LOW
#undef HIGH
