/* SPDX-License-Identifier: Apache-2.0 */
#include "at.h"

#include <hob/types.h>

/* Integers wrap, so signed ones are added as unsigned. */
#define T uint8_t
#define SUFFIX(name) name##_8
#include "at_tmpl.h"
#define T uint16_t
#define SUFFIX(name) name##_16
#include "at_tmpl.h"
#define T uint32_t
#define SUFFIX(name) name##_32
#include "at_tmpl.h"
#define T uint64_t
#define SUFFIX(name) name##_64
#include "at_tmpl.h"

static void add_f32(const struct flex_at *at, const int64_t *indices, int64_t n,
                    const char *in, int64_t in_step)
{
    for (int64_t i = 0; i < n; i++)
        *(float *)(void *)(at->data + i * at->step_bytes +
                           indices[i] * at->dim_bytes) +=
            *(const float *)(const void *)(in + i * in_step);
}

static void add_f64(const struct flex_at *at, const int64_t *indices, int64_t n,
                    const char *in, int64_t in_step)
{
    for (int64_t i = 0; i < n; i++)
        *(double *)(void *)(at->data + i * at->step_bytes +
                            indices[i] * at->dim_bytes) +=
            *(const double *)(const void *)(in + i * in_step);
}

void flex_at_take(const struct flex_at *at, const int64_t *indices, int64_t n,
                  uint32_t size, void *out)
{
    if (size == 1)
        take_8(at, indices, n, out);
    else if (size == 2)
        take_16(at, indices, n, out);
    else if (size == 4)
        take_32(at, indices, n, out);
    else
        take_64(at, indices, n, out);
}

void flex_at_put(const struct flex_at *at, const int64_t *indices, int64_t n,
                 uint32_t size, const void *in, int64_t in_step)
{
    if (size == 1)
        put_8(at, indices, n, in, in_step);
    else if (size == 2)
        put_16(at, indices, n, in, in_step);
    else if (size == 4)
        put_32(at, indices, n, in, in_step);
    else
        put_64(at, indices, n, in, in_step);
}

void flex_at_add(const struct flex_at *at, const int64_t *indices, int64_t n,
                 uint32_t dtype, const void *in, int64_t in_step)
{
    const uint32_t size = hob_dtype_size(dtype);

    if (dtype == HOB_DTYPE_F32)
        add_f32(at, indices, n, in, in_step);
    else if (dtype == HOB_DTYPE_F64)
        add_f64(at, indices, n, in, in_step);
    else if (size == 1)
        add_8(at, indices, n, in, in_step);
    else if (size == 2)
        add_16(at, indices, n, in, in_step);
    else if (size == 4)
        add_32(at, indices, n, in, in_step);
    else
        add_64(at, indices, n, in, in_step);
}

int64_t flex_at_strip(int64_t n, int64_t extent, uint32_t size,
                      uint64_t cache_bytes)
{
    enum { LINE = 64 };
    const int64_t slice_bytes = n * (int64_t)size;
    int64_t strip;

    if (extent <= 0 || slice_bytes <= LINE ||
        slice_bytes <= (int64_t)(cache_bytes / (uint64_t)extent))
        return n;
    strip = (int64_t)(cache_bytes / (uint64_t)extent) & ~(int64_t)(LINE - 1);
    return (strip < LINE ? LINE : strip) / size;
}
