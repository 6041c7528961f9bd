/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table_tmpl.h - all kernels and their table. Included once by each
 * kernels_<isa>.c, which is compiled for that instruction set and defines
 * TABLE, TABLE_NAME and TABLE_ISA.
 */
#include "fold_wide.h"
#include "kernels.h"
#include "math_f32.h"
#include "math_f64.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* The loops over the C library's functions cannot become vectors. */
#ifdef __clang__
#pragma clang diagnostic ignored "-Wpass-failed"
#endif

#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)

/* ---- elementwise ---- */

#define T double
#define M(name) name
#define V(name) name##_f64
#define SUFFIX(name) PASTE(map_, name, _f64)
#include "map_float_tmpl.h"

#define T float
#define M(name) name##f
#define V(name) name##_f32
#define SUFFIX(name) PASTE(map_, name, _f32)
#include "map_float_tmpl.h"

#define T int64_t
#define U uint64_t
#define W uint64_t
#define SIGNED 1
#define NEGATIVE(x) ((x) < 0)
#define SUFFIX(name) PASTE(map_, name, _i64)
#include "map_int_tmpl.h"

#define T int32_t
#define U uint32_t
#define W uint32_t
#define SIGNED 1
#define NEGATIVE(x) ((x) < 0)
#define SUFFIX(name) PASTE(map_, name, _i32)
#include "map_int_tmpl.h"

#define T int16_t
#define U uint16_t
#define W uint32_t
#define SIGNED 1
#define NEGATIVE(x) ((x) < 0)
#define SUFFIX(name) PASTE(map_, name, _i16)
#include "map_int_tmpl.h"

#define T int8_t
#define U uint8_t
#define W uint32_t
#define SIGNED 1
#define NEGATIVE(x) ((x) < 0)
#define SUFFIX(name) PASTE(map_, name, _i8)
#include "map_int_tmpl.h"

#define T uint64_t
#define U uint64_t
#define W uint64_t
#define SIGNED 0
#define NEGATIVE(x) 0
#define SUFFIX(name) PASTE(map_, name, _u64)
#include "map_int_tmpl.h"

#define T uint32_t
#define U uint32_t
#define W uint32_t
#define SIGNED 0
#define NEGATIVE(x) 0
#define SUFFIX(name) PASTE(map_, name, _u32)
#include "map_int_tmpl.h"

#define T uint16_t
#define U uint16_t
#define W uint32_t
#define SIGNED 0
#define NEGATIVE(x) 0
#define SUFFIX(name) PASTE(map_, name, _u16)
#include "map_int_tmpl.h"

#define T uint8_t
#define U uint8_t
#define W uint32_t
#define SIGNED 0
#define NEGATIVE(x) 0
#define SUFFIX(name) PASTE(map_, name, _u8)
#include "map_int_tmpl.h"

#define OP sin
#define EXPR sin_f32(x, 0)
#include "map_trig.h"
#define OP cos
#define EXPR sin_f32(x, 1)
#include "map_trig.h"
#define OP tan
#define EXPR tan_f32(x)
#include "map_trig.h"

/* bool: bytes of 0 and 1. */
#define T uint8_t
#define R uint8_t
#define SUFFIX(name) PASTE(map_, name, _bool)
#define OP equal
#define EXPR a[i] == b[i]
#include "map_loop.h"
#define OP not_equal
#define EXPR a[i] != b[i]
#include "map_loop.h"
#define OP and
#define EXPR a[i] & b[i]
#include "map_loop.h"
#define OP or
#define EXPR a[i] | b[i]
#include "map_loop.h"
#define OP xor
#define EXPR a[i] ^ b[i]
#include "map_loop.h"
#define OP not
#define EXPR a[i] ^ 1
#include "map_loop.h"
#undef T
#undef R
#undef SUFFIX

/* where: by the size of the element alone. */

#define T uint8_t
#define R uint8_t
#define FIRST uint8_t
#define SUFFIX(name) PASTE(map_, name, _8)
#define OP where
#define EXPR a[i] ? b[i] : c[i]
#include "map_loop.h"
#undef T
#undef R
#undef SUFFIX

#define T uint16_t
#define R uint16_t
#define FIRST uint8_t
#define SUFFIX(name) PASTE(map_, name, _16)
#define OP where
#define EXPR a[i] ? b[i] : c[i]
#include "map_loop.h"
#undef T
#undef R
#undef SUFFIX

#define T uint32_t
#define R uint32_t
#define FIRST uint8_t
#define SUFFIX(name) PASTE(map_, name, _32)
#define OP where
#define EXPR a[i] ? b[i] : c[i]
#include "map_loop.h"
#undef T
#undef R
#undef SUFFIX

#define T uint64_t
#define R uint64_t
#define FIRST uint8_t
#define SUFFIX(name) PASTE(map_, name, _64)
#define OP where
#define EXPR a[i] ? b[i] : c[i]
#include "map_loop.h"
#undef T
#undef R
#undef SUFFIX

/* ---- casts ---- */

#include "cast_all_tmpl.h"

/* ---- folds and scans ---- */

/* Columns that argmax takes through some rows at a time. */
enum { ARG_STRIP = 64 };
/* Elements that a search looks at before it asks whether one was a hit. */
enum { FIND_PIECE = 256 };

#define T double
#define ACC double
#define WIDE wide_f64
#define WIDEN widen_f64
#define LEAST -INFINITY
#define GREATEST INFINITY
#define IS_NAN(x) ((x) != (x))
#define NAN_VALUE NAN
#define SUFFIX(name) PASTE(fold_, name, _f64)
#include "fold_tmpl.h"

#define T float
#define ACC double
#define WIDE wide_f64
#define WIDEN widen_f32
#define LEAST -INFINITY
#define GREATEST INFINITY
#define IS_NAN(x) ((x) != (x))
#define NAN_VALUE NAN
#define SUFFIX(name) PASTE(fold_, name, _f32)
#include "fold_tmpl.h"

#define T int64_t
#define ACC uint64_t
#define WIDE wide_u64
#define WIDEN widen_u64
#define LEAST INT64_MIN
#define GREATEST INT64_MAX
#define IS_NAN(x) 0
#define NAN_VALUE 0
#define SUFFIX(name) PASTE(fold_, name, _i64)
#include "fold_tmpl.h"

#define T int32_t
#define ACC uint64_t
#define WIDE wide_u64
#define WIDEN widen_i32
#define LEAST INT32_MIN
#define GREATEST INT32_MAX
#define IS_NAN(x) 0
#define NAN_VALUE 0
#define SUFFIX(name) PASTE(fold_, name, _i32)
#include "fold_tmpl.h"

#define T int16_t
#define ACC uint64_t
#define LEAST INT16_MIN
#define GREATEST INT16_MAX
#define IS_NAN(x) 0
#define NAN_VALUE 0
#define SUFFIX(name) PASTE(fold_, name, _i16)
#include "fold_tmpl.h"

#define T int8_t
#define ACC uint64_t
#define LEAST INT8_MIN
#define GREATEST INT8_MAX
#define IS_NAN(x) 0
#define NAN_VALUE 0
#define SUFFIX(name) PASTE(fold_, name, _i8)
#include "fold_tmpl.h"

#define T uint64_t
#define ACC uint64_t
#define WIDE wide_u64
#define WIDEN widen_u64
#define LEAST 0
#define GREATEST UINT64_MAX
#define IS_NAN(x) 0
#define NAN_VALUE 0
#define SUFFIX(name) PASTE(fold_, name, _u64)
#include "fold_tmpl.h"

#define T uint32_t
#define ACC uint64_t
#define WIDE wide_u64
#define WIDEN widen_u32
#define LEAST 0
#define GREATEST UINT32_MAX
#define IS_NAN(x) 0
#define NAN_VALUE 0
#define SUFFIX(name) PASTE(fold_, name, _u32)
#include "fold_tmpl.h"

#define T uint16_t
#define ACC uint64_t
#define LEAST 0
#define GREATEST UINT16_MAX
#define IS_NAN(x) 0
#define NAN_VALUE 0
#define SUFFIX(name) PASTE(fold_, name, _u16)
#include "fold_tmpl.h"

#define T uint8_t
#define ACC uint64_t
#define LEAST 0
#define GREATEST UINT8_MAX
#define IS_NAN(x) 0
#define NAN_VALUE 0
#define SUFFIX(name) PASTE(fold_, name, _u8)
#include "fold_tmpl.h"

#define T uint8_t
#define SUFFIX(name) PASTE(fold_, name, _bool)
#include "truth_tmpl.h"
#undef T
#undef SUFFIX

/* ---- the table ---- */

/* D(f, d) is kernel f of dtype d; the lists are the dtypes that have it. */
#define D(upper, f, lower) [HOB_DTYPE_##upper] = PASTE(f, _, lower)
#define FLOATS(f)                                                              \
    {                                                                          \
        D(F64, f, f64), D(F32, f, f32)                                         \
    }
#define INTS(f)                                                                \
    {                                                                          \
        D(I64, f, i64), D(I32, f, i32), D(I16, f, i16), D(I8, f, i8),          \
            D(U64, f, u64), D(U32, f, u32), D(U16, f, u16), D(U8, f, u8)       \
    }
#define NUMS(f)                                                                \
    {                                                                          \
        D(F64, f, f64), D(F32, f, f32), D(I64, f, i64), D(I32, f, i32),        \
            D(I16, f, i16), D(I8, f, i8), D(U64, f, u64), D(U32, f, u32),      \
            D(U16, f, u16), D(U8, f, u8)                                       \
    }
#define INTS_BOOL(f)                                                           \
    {                                                                          \
        D(I64, f, i64), D(I32, f, i32), D(I16, f, i16), D(I8, f, i8),          \
            D(U64, f, u64), D(U32, f, u32), D(U16, f, u16), D(U8, f, u8),      \
            D(BOOL, f, bool)                                                   \
    }
#define NUMS_BOOL(f)                                                           \
    {                                                                          \
        D(F64, f, f64), D(F32, f, f32), D(I64, f, i64), D(I32, f, i32),        \
            D(I16, f, i16), D(I8, f, i8), D(U64, f, u64), D(U32, f, u32),      \
            D(U16, f, u16), D(U8, f, u8), D(BOOL, f, bool)                     \
    }
/* A dtype's place for where and for any and all, by size. */
#define SIZES(f)                                                               \
    {                                                                          \
        [HOB_DTYPE_F64] = f##_64, [HOB_DTYPE_F32] = f##_32,                    \
        [HOB_DTYPE_F16] = f##_16, [HOB_DTYPE_BF16] = f##_16,                   \
        [HOB_DTYPE_I64] = f##_64, [HOB_DTYPE_I32] = f##_32,                    \
        [HOB_DTYPE_I16] = f##_16, [HOB_DTYPE_I8] = f##_8,                      \
        [HOB_DTYPE_U64] = f##_64, [HOB_DTYPE_U32] = f##_32,                    \
        [HOB_DTYPE_U16] = f##_16, [HOB_DTYPE_U8] = f##_8,                      \
        [HOB_DTYPE_BOOL] = f##_8                                               \
    }
/* The row of casts to one dtype. */
#define CASTS(to)                                                              \
    {                                                                          \
        [HOB_DTYPE_F64] = cast_##to##_f64, [HOB_DTYPE_F32] = cast_##to##_f32,  \
        [HOB_DTYPE_F16] = cast_##to##_f16,                                     \
        [HOB_DTYPE_BF16] = cast_##to##_bf16,                                   \
        [HOB_DTYPE_I64] = cast_##to##_i64, [HOB_DTYPE_I32] = cast_##to##_i32,  \
        [HOB_DTYPE_I16] = cast_##to##_i16, [HOB_DTYPE_I8] = cast_##to##_i8,    \
        [HOB_DTYPE_U64] = cast_##to##_u64, [HOB_DTYPE_U32] = cast_##to##_u32,  \
        [HOB_DTYPE_U16] = cast_##to##_u16, [HOB_DTYPE_U8] = cast_##to##_u8,    \
        [HOB_DTYPE_BOOL] = cast_##to##_bool                                    \
    }

const struct flex_kernels TABLE = {
    .name = TABLE_NAME,
    .isa = TABLE_ISA,
    .map =
        {
            [FLEX_MAP_ADD] = NUMS(map_add),
            [FLEX_MAP_SUB] = NUMS(map_sub),
            [FLEX_MAP_MUL] = NUMS(map_mul),
            [FLEX_MAP_DIV] = NUMS(map_div),
            [FLEX_MAP_REMAINDER] = NUMS(map_remainder),
            [FLEX_MAP_POW] = NUMS(map_pow),
            [FLEX_MAP_MAXIMUM] = NUMS(map_maximum),
            [FLEX_MAP_MINIMUM] = NUMS(map_minimum),
            [FLEX_MAP_NEG] = NUMS(map_neg),
            [FLEX_MAP_ABS] = NUMS(map_abs),
            [FLEX_MAP_SQUARE] = NUMS(map_square),
            [FLEX_MAP_SIGN] = NUMS(map_sign),
            [FLEX_MAP_CLAMP] = NUMS(map_clamp),
            [FLEX_MAP_GREATER] = NUMS(map_greater),
            [FLEX_MAP_GREATER_EQUAL] = NUMS(map_greater_equal),
            [FLEX_MAP_LESS] = NUMS(map_less),
            [FLEX_MAP_LESS_EQUAL] = NUMS(map_less_equal),
            [FLEX_MAP_ATAN2] = FLOATS(map_atan2),
            [FLEX_MAP_HYPOT] = FLOATS(map_hypot),
            [FLEX_MAP_RECIP] = FLOATS(map_recip),
            [FLEX_MAP_RECIP_SQUARE] = FLOATS(map_recip_square),
            [FLEX_MAP_SQRT] = FLOATS(map_sqrt),
            [FLEX_MAP_EXP] = FLOATS(map_exp),
            [FLEX_MAP_LOG] = FLOATS(map_log),
            [FLEX_MAP_LOG1P] = FLOATS(map_log1p),
            [FLEX_MAP_ERF] = FLOATS(map_erf),
            [FLEX_MAP_TANH] = FLOATS(map_tanh),
            [FLEX_MAP_SIN] = FLOATS(map_sin),
            [FLEX_MAP_COS] = FLOATS(map_cos),
            [FLEX_MAP_TAN] = FLOATS(map_tan),
            [FLEX_MAP_SINH] = FLOATS(map_sinh),
            [FLEX_MAP_COSH] = FLOATS(map_cosh),
            [FLEX_MAP_ASIN] = FLOATS(map_asin),
            [FLEX_MAP_ACOS] = FLOATS(map_acos),
            [FLEX_MAP_ATAN] = FLOATS(map_atan),
            [FLEX_MAP_ASINH] = FLOATS(map_asinh),
            [FLEX_MAP_ACOSH] = FLOATS(map_acosh),
            [FLEX_MAP_ATANH] = FLOATS(map_atanh),
            [FLEX_MAP_FLOOR] = FLOATS(map_floor),
            [FLEX_MAP_CEIL] = FLOATS(map_ceil),
            [FLEX_MAP_ROUND] = FLOATS(map_round),
            [FLEX_MAP_TRUNC] = FLOATS(map_trunc),
            [FLEX_MAP_RELU] = FLOATS(map_relu),
            [FLEX_MAP_GELU] = FLOATS(map_gelu),
            [FLEX_MAP_SIGMOID] = FLOATS(map_sigmoid),
            [FLEX_MAP_RELU_BACKWARD] = FLOATS(map_relu_backward),
            [FLEX_MAP_GELU_BACKWARD] = FLOATS(map_gelu_backward),
            [FLEX_MAP_SIGMOID_BACKWARD] = FLOATS(map_sigmoid_backward),
            [FLEX_MAP_SILU] = FLOATS(map_silu),
            [FLEX_MAP_SILU_BACKWARD] = FLOATS(map_silu_backward),
            [FLEX_MAP_MISH] = FLOATS(map_mish),
            [FLEX_MAP_MISH_BACKWARD] = FLOATS(map_mish_backward),
            [FLEX_MAP_SOFTPLUS] = FLOATS(map_softplus),
            [FLEX_MAP_SOFTPLUS_BACKWARD] = FLOATS(map_softplus_backward),
            [FLEX_MAP_LOG_SIGMOID] = FLOATS(map_log_sigmoid),
            [FLEX_MAP_LOG_SIGMOID_BACKWARD] = FLOATS(map_log_sigmoid_backward),
            [FLEX_MAP_ELU] = FLOATS(map_elu),
            [FLEX_MAP_ELU_BACKWARD] = FLOATS(map_elu_backward),
            [FLEX_MAP_CELU] = FLOATS(map_celu),
            [FLEX_MAP_CELU_BACKWARD] = FLOATS(map_celu_backward),
            [FLEX_MAP_SELU] = FLOATS(map_selu),
            [FLEX_MAP_SELU_BACKWARD] = FLOATS(map_selu_backward),
            [FLEX_MAP_GLU] = FLOATS(map_glu),
            [FLEX_MAP_SOFTSIGN] = FLOATS(map_softsign),
            [FLEX_MAP_SOFTSIGN_BACKWARD] = FLOATS(map_softsign_backward),
            [FLEX_MAP_LEAKY_RELU] = FLOATS(map_leaky_relu),
            [FLEX_MAP_LEAKY_RELU_BACKWARD] = FLOATS(map_leaky_relu_backward),
            [FLEX_MAP_HARD_SIGMOID] = FLOATS(map_hard_sigmoid),
            [FLEX_MAP_HARD_SWISH] = FLOATS(map_hard_swish),
            [FLEX_MAP_HARD_SWISH_BACKWARD] = FLOATS(map_hard_swish_backward),
            [FLEX_MAP_IS_NAN] = FLOATS(map_is_nan),
            [FLEX_MAP_IS_INF] = FLOATS(map_is_inf),
            [FLEX_MAP_EQUAL] = NUMS_BOOL(map_equal),
            [FLEX_MAP_NOT_EQUAL] = NUMS_BOOL(map_not_equal),
            [FLEX_MAP_AND] = INTS_BOOL(map_and),
            [FLEX_MAP_OR] = INTS_BOOL(map_or),
            [FLEX_MAP_XOR] = INTS_BOOL(map_xor),
            [FLEX_MAP_NOT] = INTS_BOOL(map_not),
            [FLEX_MAP_LEFT_SHIFT] = INTS(map_left_shift),
            [FLEX_MAP_RIGHT_SHIFT] = INTS(map_right_shift),
            [FLEX_MAP_WHERE] = SIZES(map_where),
        },
    .cast =
        {
            [HOB_DTYPE_F64] = CASTS(f64),
            [HOB_DTYPE_F32] = CASTS(f32),
            [HOB_DTYPE_F16] = CASTS(f16),
            [HOB_DTYPE_BF16] = CASTS(bf16),
            [HOB_DTYPE_I64] = CASTS(i64),
            [HOB_DTYPE_I32] = CASTS(i32),
            [HOB_DTYPE_I16] = CASTS(i16),
            [HOB_DTYPE_I8] = CASTS(i8),
            [HOB_DTYPE_U64] = CASTS(u64),
            [HOB_DTYPE_U32] = CASTS(u32),
            [HOB_DTYPE_U16] = CASTS(u16),
            [HOB_DTYPE_U8] = CASTS(u8),
            [HOB_DTYPE_BOOL] = CASTS(bool),
        },
    .load_f32 =
        {
            [HOB_DTYPE_F16] = cast_f32_f16,
            [HOB_DTYPE_BF16] = cast_f32_bf16,
        },
    .store_f32 =
        {
            [HOB_DTYPE_F16] = cast_f16_f32,
            [HOB_DTYPE_BF16] = cast_bf16_f32,
        },
    .fold =
        {
            [FLEX_FOLD_SUM] = NUMS(fold_sum),
            [FLEX_FOLD_PROD] = NUMS(fold_prod),
            [FLEX_FOLD_MAX] = NUMS(fold_max),
            [FLEX_FOLD_MIN] = NUMS(fold_min),
            [FLEX_FOLD_ANY] = NUMS_BOOL(fold_any),
            [FLEX_FOLD_ALL] = NUMS_BOOL(fold_all),
        },
    .fold_rows =
        {
            [FLEX_FOLD_SUM] = NUMS(fold_sum_rows),
            [FLEX_FOLD_PROD] = NUMS(fold_prod_rows),
            [FLEX_FOLD_MAX] = NUMS(fold_max_rows),
            [FLEX_FOLD_MIN] = NUMS(fold_min_rows),
            [FLEX_FOLD_ANY] = NUMS_BOOL(fold_any_rows),
            [FLEX_FOLD_ALL] = NUMS_BOOL(fold_all_rows),
        },
    .find = NUMS(fold_find),
    .arg_rows = {NUMS(fold_argmax_rows), NUMS(fold_argmin_rows)},
    .scan = {NUMS(fold_cumsum), NUMS(fold_cumprod), NUMS(fold_cummax),
             NUMS(fold_cummin)},
    .scan_rows = {NUMS(fold_cumsum_rows), NUMS(fold_cumprod_rows),
                  NUMS(fold_cummax_rows), NUMS(fold_cummin_rows)},
};

#undef PASTE
#undef PASTE_
#undef D
#undef FLOATS
#undef INTS
#undef NUMS
#undef INTS_BOOL
#undef NUMS_BOOL
#undef SIZES
#undef CASTS
#undef TABLE
#undef TABLE_NAME
#undef TABLE_ISA
