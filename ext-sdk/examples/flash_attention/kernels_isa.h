/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels_isa.h - both computing types for one instruction set. Included by
 * kernels.c with LEVEL(x), TARGET, VECTOR_BYTES and TILE, which end here.
 */

#define TYPE float
#define BITS int32_t
#define NAME(x) LEVEL(f32_##x)
#define MAGIC (0x1.8p23f + 127)
#define SHIFT 23
#define LOWEST -126
#define DEGREE 7
#include "kernels_tmpl.h"
#undef TYPE
#undef BITS
#undef NAME
#undef MAGIC
#undef SHIFT
#undef LOWEST
#undef DEGREE

#define TYPE double
#define BITS int64_t
#define NAME(x) LEVEL(f64_##x)
#define MAGIC (0x1.8p52 + 1023)
#define SHIFT 52
#define LOWEST -1022
#define DEGREE 13
#include "kernels_tmpl.h"
#undef TYPE
#undef BITS
#undef NAME
#undef MAGIC
#undef SHIFT
#undef LOWEST
#undef DEGREE

#undef LEVEL
#undef TARGET
#undef VECTOR_BYTES
#undef TILE
