/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conv_isa.h - the inner loops of convolution of one instruction set.
 * Included by conv_base.c (whatever the compiler assumes) and _v2.c, _v3.c,
 * _v4.c, with VECTOR_BYTES and TABLE defined. VECTOR_BYTES is that of the
 * tiles of gemm_tile_isa.h, whose panels `pack` fills.
 */
#include "conv.h"

#include <string.h>

#define TYPE float
#define BITS int32_t
#define LANES (VECTOR_BYTES / 4)
#define NARROW_LANES 4
#define NAME(x) f32_##x
#include "conv_tmpl.h"

#define TYPE double
#define BITS int64_t
#define LANES (VECTOR_BYTES / 8)
#define NARROW_LANES 2
#define NAME(x) f64_##x
#include "conv_tmpl.h"

#include "conv_winograd_tmpl.h"

#define TYPE_ENTRY(t)                                                          \
    .lanes = t##_lanes, .pad = t##_pad, .spread = t##_spread,                  \
    .pack = t##_pack, .lines = t##_lines, .turn = t##_turn,                    \
    .direct = t##_direct, .direct_weight = t##_direct_weight

const struct flex_conv_kernels TABLE[FLEX_CONV_TYPE_COUNT_] = {
    [FLEX_CONV_F32] = {TYPE_ENTRY(f32), .winograd_weight = winograd_weight,
                       .winograd_input = winograd_input,
                       .winograd_output = winograd_output},
    [FLEX_CONV_F64] = {TYPE_ENTRY(f64)},
};

#undef TYPE_ENTRY
