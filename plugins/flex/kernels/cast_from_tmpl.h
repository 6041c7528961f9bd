/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Casts from one type to all: FROM is its storage, FROM_NAME its name, LOAD(x)
 * gives the value of type VALUE, WIDE(x) an f64 that rounds to shorter floats
 * as x itself would; FROM_FLOAT is 1 or 0.
 */
#define TO double
#define TO_NAME f64
#define STORE(x) (double)LOAD(x)
#include "cast_tmpl.h"
#define TO float
#define TO_NAME f32
#define STORE(x) (float)LOAD(x)
#include "cast_tmpl.h"
#define TO uint16_t
#define TO_NAME f16
#define STORE(x) TO_F16(x)
#include "cast_tmpl.h"
#define TO uint16_t
#define TO_NAME bf16
#define STORE(x) TO_BF16(x)
#include "cast_tmpl.h"
#define TO uint8_t
#define TO_NAME bool
#define STORE(x) LOAD(x) != 0
#include "cast_tmpl.h"

#define TO int64_t
#define TO_NAME i64
#define STORE(x) TO_INT(int64_t, INT64_MIN, INT64_MAX, -0x1p63, 0x1p63, x)
#include "cast_tmpl.h"
#define TO int32_t
#define TO_NAME i32
#define STORE(x) TO_INT(int32_t, INT32_MIN, INT32_MAX, -0x1p31, 0x1p31, x)
#include "cast_tmpl.h"
#define TO int16_t
#define TO_NAME i16
#define STORE(x) TO_INT(int16_t, INT16_MIN, INT16_MAX, -0x1p15, 0x1p15, x)
#include "cast_tmpl.h"
#define TO int8_t
#define TO_NAME i8
#define STORE(x) TO_INT(int8_t, INT8_MIN, INT8_MAX, -0x1p7, 0x1p7, x)
#include "cast_tmpl.h"
#define TO uint64_t
#define TO_NAME u64
#define STORE(x) TO_INT(uint64_t, 0, UINT64_MAX, 0, 0x1p64, x)
#include "cast_tmpl.h"
#define TO uint32_t
#define TO_NAME u32
#define STORE(x) TO_INT(uint32_t, 0, UINT32_MAX, 0, 0x1p32, x)
#include "cast_tmpl.h"
#define TO uint16_t
#define TO_NAME u16
#define STORE(x) TO_INT(uint16_t, 0, UINT16_MAX, 0, 0x1p16, x)
#include "cast_tmpl.h"
#define TO uint8_t
#define TO_NAME u8
#define STORE(x) TO_INT(uint8_t, 0, UINT8_MAX, 0, 0x1p8, x)
#include "cast_tmpl.h"

#undef FROM
#undef FROM_NAME
#undef LOAD
#undef TO_F16
#undef TO_BF16
#undef TO_INT
