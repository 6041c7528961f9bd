/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h - pooling of whole planes, one table an instruction set and type.
 *
 * The rows of a window are reduced to one first, into a padded buffer whose
 * columns are then sorted by their remainder modulo the stride, so that what
 * neighbouring windows read at one tap lies side by side.
 */
#ifndef FLEX_KERNELS_POOL_H
#define FLEX_KERNELS_POOL_H

#include <stdint.h>

/* Elements that loops may touch behind a buffer. */
enum { FLEX_POOL_SLACK = 64 };

/* Index 0 is the height, 1 the width. */
struct flex_pool {
    int64_t size[2], stride[2], padding[2], dilation[2];
    int64_t in[2];         /* the plane that windows lie over */
    int64_t out[2];        /* how many windows */
    int32_t count_padding; /* in the divisor of a mean */
};

/* Elements that windows reach along the width, padding included. */
static inline int64_t flex_pool_extent(const struct flex_pool *pool)
{
    return (pool->out[1] - 1) * pool->stride[1] +
           pool->dilation[1] * (pool->size[1] - 1) + 1;
}

/* Elements of a padded row, sorted by remainders or not. */
static inline int64_t flex_pool_row(const struct flex_pool *pool)
{
    const int64_t extent = flex_pool_extent(pool);
    const int64_t covered = pool->padding[1] + pool->in[1];

    return (extent > covered ? extent : covered) + pool->stride[1] +
           pool->size[1] + FLEX_POOL_SLACK;
}

/* How many rows max_index keeps. */
static inline int64_t flex_pool_lines(const struct flex_pool *pool)
{
    const int64_t reach = pool->dilation[0] * (pool->size[0] - 1) + 1;

    return reach < pool->in[0] ? reach : pool->in[0];
}

/* Bytes of scratch, enough for any of the kernels. */
static inline int64_t flex_pool_bytes(const struct flex_pool *pool,
                                      int with_indices)
{
    const int64_t rows = with_indices ? 1 + flex_pool_lines(pool) : 3;

    return 8 * (rows * flex_pool_row(pool) + pool->size[0] + pool->size[1] +
                2 * (pool->out[1] + FLEX_POOL_SLACK));
}

struct flex_pool_kernels {
    /* PLANES planes; NaN wins, padding is -inf. */
    void (*max)(const struct flex_pool *pool, int64_t planes, const void *in,
                void *out, void *scratch);
    /* The same and each maximum's place in its plane, the first of equals, the
     * first NaN: int32_t for f32, whose planes must be smaller than 2^31
     * elements, int64_t for f64. */
    void (*max_index)(const struct flex_pool *pool, int64_t planes,
                      const void *in, void *out, void *indices, void *scratch);
    void (*mean)(const struct flex_pool *pool, int64_t planes, const void *in,
                 void *out, void *scratch);
    /* From windows to planes. */
    void (*mean_back)(const struct flex_pool *pool, int64_t planes,
                      const void *in, void *out, void *scratch);
    /* GRAD where max_index finds the maxima of IN, else 0; 0 if POOL is not
     * one that this is written for: nothing has been done then. */
    int (*max_back)(const struct flex_pool *pool, int64_t planes,
                    const void *in, const void *grad, void *out);
};

enum { FLEX_POOL_F32, FLEX_POOL_F64, FLEX_POOL_TYPE_COUNT_ };

extern const struct flex_pool_kernels
    flex_pool_kernels_base[FLEX_POOL_TYPE_COUNT_];
extern const struct flex_pool_kernels
    flex_pool_kernels_v2[FLEX_POOL_TYPE_COUNT_];
extern const struct flex_pool_kernels
    flex_pool_kernels_v3[FLEX_POOL_TYPE_COUNT_];
extern const struct flex_pool_kernels
    flex_pool_kernels_v4[FLEX_POOL_TYPE_COUNT_];

#endif
