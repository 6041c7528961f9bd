/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All casts. Floats truncate toward zero into integers; what lies outside the
 * integer's range gives its nearest bound and NaN gives 0. Integers wrap. An
 * f16 or bf16 is rounded once, whatever it comes from.
 */
#define CAST_NAME_(to, from) cast_##to##_##from
#define CAST_NAME(to, from) CAST_NAME_(to, from)

/* LOW and HIGH bound the values, exact in any float type; HIGH is out. The
 * conversion itself only sees values that fit. */
#define FLOAT_TO_INT(type, least, greatest, low, high, x)                      \
    (LOAD(x) >= (high) ? (type)(greatest)                                      \
     : LOAD(x) < (low) ? (type)(least)                                         \
     : LOAD(x) == LOAD(x)                                                      \
         ? (type)(LOAD(x) >= (low) && LOAD(x) < (high) ? LOAD(x) : 0)          \
         : (type)0)
#define WRAP_TO_INT(type, least, greatest, low, high, x) (type)(x)

/* The lowest 10 bits of a large integer become one: 53 bits are left, odd if
 * bits were lost, so a later rounding goes the right way. */
static inline double wide_of_i64(int64_t x)
{
    int64_t odd =
        (x & ~INT64_C(0x3ff)) | ((x & INT64_C(0x3ff)) ? INT64_C(0x400) : 0);
    int small = x < INT64_C(0x20000000000000) && x > -INT64_C(0x20000000000000);

    return (double)(small ? x : odd);
}

static inline double wide_of_u64(uint64_t x)
{
    uint64_t odd =
        (x & ~UINT64_C(0x7ff)) | ((x & UINT64_C(0x7ff)) ? UINT64_C(0x800) : 0);

    return (double)(x < UINT64_C(0x20000000000000) ? x : odd);
}

#define FROM double
#define FROM_NAME f64
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f64(x)
#define TO_BF16(x) flex_bf16_of_f64(x)
#define TO_INT FLOAT_TO_INT
#include "cast_from_tmpl.h"
#define FROM float
#define FROM_NAME f32
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f32(x)
#define TO_BF16(x) flex_bf16_of_f32(x)
#define TO_INT FLOAT_TO_INT
#include "cast_from_tmpl.h"
#define FROM uint16_t
#define FROM_NAME f16
#define LOAD(x) flex_f32_of_f16(x)
#define TO_F16(x) (x)
#define TO_BF16(x) flex_bf16_of_f32(LOAD(x))
#define TO_INT FLOAT_TO_INT
#include "cast_from_tmpl.h"
#define FROM uint16_t
#define FROM_NAME bf16
#define LOAD(x) flex_f32_of_bf16(x)
#define TO_F16(x) flex_f16_of_f32(LOAD(x))
#define TO_BF16(x) (x)
#define TO_INT FLOAT_TO_INT
#include "cast_from_tmpl.h"

#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f64(wide_of_i64(x))
#define TO_BF16(x) flex_bf16_of_f64(wide_of_i64(x))
#define TO_INT WRAP_TO_INT
#define FROM int64_t
#define FROM_NAME i64
#include "cast_from_tmpl.h"
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f64(wide_of_u64(x))
#define TO_BF16(x) flex_bf16_of_f64(wide_of_u64(x))
#define TO_INT WRAP_TO_INT
#define FROM uint64_t
#define FROM_NAME u64
#include "cast_from_tmpl.h"
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f64(x)
#define TO_BF16(x) flex_bf16_of_f64(x)
#define TO_INT WRAP_TO_INT
#define FROM int32_t
#define FROM_NAME i32
#include "cast_from_tmpl.h"
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f64(x)
#define TO_BF16(x) flex_bf16_of_f64(x)
#define TO_INT WRAP_TO_INT
#define FROM uint32_t
#define FROM_NAME u32
#include "cast_from_tmpl.h"
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f32(x)
#define TO_BF16(x) flex_bf16_of_f32(x)
#define TO_INT WRAP_TO_INT
#define FROM int16_t
#define FROM_NAME i16
#include "cast_from_tmpl.h"
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f32(x)
#define TO_BF16(x) flex_bf16_of_f32(x)
#define TO_INT WRAP_TO_INT
#define FROM int8_t
#define FROM_NAME i8
#include "cast_from_tmpl.h"
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f32(x)
#define TO_BF16(x) flex_bf16_of_f32(x)
#define TO_INT WRAP_TO_INT
#define FROM uint16_t
#define FROM_NAME u16
#include "cast_from_tmpl.h"
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f32(x)
#define TO_BF16(x) flex_bf16_of_f32(x)
#define TO_INT WRAP_TO_INT
#define FROM uint8_t
#define FROM_NAME u8
#include "cast_from_tmpl.h"
#define LOAD(x) (x)
#define TO_F16(x) flex_f16_of_f32(x)
#define TO_BF16(x) flex_bf16_of_f32(x)
#define TO_INT WRAP_TO_INT
#define FROM uint8_t
#define FROM_NAME bool
#include "cast_from_tmpl.h"

#undef CAST_NAME
#undef CAST_NAME_
#undef FLOAT_TO_INT
#undef WRAP_TO_INT
