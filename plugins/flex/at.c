/* SPDX-License-Identifier: Apache-2.0 */
#include "at.h"

#include <hob/types.h>

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

#define T int8_t
#define W uint32_t
#define IS_NAN(x) 0
#define SUFFIX(name) name##_i8
#include "at_update_tmpl.h"
#define T int16_t
#define W uint32_t
#define IS_NAN(x) 0
#define SUFFIX(name) name##_i16
#include "at_update_tmpl.h"
#define T int32_t
#define W uint32_t
#define IS_NAN(x) 0
#define SUFFIX(name) name##_i32
#include "at_update_tmpl.h"
#define T int64_t
#define W uint64_t
#define IS_NAN(x) 0
#define SUFFIX(name) name##_i64
#include "at_update_tmpl.h"
#define T uint8_t
#define W uint32_t
#define IS_NAN(x) 0
#define SUFFIX(name) name##_u8
#include "at_update_tmpl.h"
#define T uint16_t
#define W uint32_t
#define IS_NAN(x) 0
#define SUFFIX(name) name##_u16
#include "at_update_tmpl.h"
#define T uint32_t
#define W uint32_t
#define IS_NAN(x) 0
#define SUFFIX(name) name##_u32
#include "at_update_tmpl.h"
#define T uint64_t
#define W uint64_t
#define IS_NAN(x) 0
#define SUFFIX(name) name##_u64
#include "at_update_tmpl.h"
#define T float
#define W float
#define IS_NAN(x) ((x) != (x))
#define SUFFIX(name) name##_f32
#include "at_update_tmpl.h"
#define T double
#define W double
#define IS_NAN(x) ((x) != (x))
#define SUFFIX(name) name##_f64
#include "at_update_tmpl.h"

typedef void (*update_fn)(const struct flex_at *at, const int64_t *indices,
                          int64_t n, enum flex_at_update update, const char *in,
                          int64_t in_step);

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

void flex_at_update(const struct flex_at *at, const int64_t *indices, int64_t n,
                    uint32_t dtype, enum flex_at_update update, const void *in,
                    int64_t in_step)
{
    static const update_fn table[HOB_DTYPE_COUNT_] = {
        [HOB_DTYPE_I8] = update_i8,   [HOB_DTYPE_I16] = update_i16,
        [HOB_DTYPE_I32] = update_i32, [HOB_DTYPE_I64] = update_i64,
        [HOB_DTYPE_U8] = update_u8,   [HOB_DTYPE_U16] = update_u16,
        [HOB_DTYPE_U32] = update_u32, [HOB_DTYPE_U64] = update_u64,
        [HOB_DTYPE_F32] = update_f32, [HOB_DTYPE_F64] = update_f64,
        [HOB_DTYPE_BOOL] = update_u8,
    };

    /* Of 0 and 1, "or" is the greater and "and" the lesser. */
    if (dtype == HOB_DTYPE_BOOL)
        update = update == FLEX_AT_ADD || update == FLEX_AT_MAX ? FLEX_AT_MAX
                                                                : FLEX_AT_MIN;
    table[dtype](at, indices, n, update, in, in_step);
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
