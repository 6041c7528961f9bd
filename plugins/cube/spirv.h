/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spirv.h - make a SPIR-V module compute what its kernel says.
 *
 * A driver may contract products and sums and may assume that there is no NaN.
 * In the dialect neither holds, and GLSL can say so only variable by variable.
 *
 * Types of cooperative matrices are spelled in GLSL by GL_EXT_spirv_intrinsics,
 * whose older versions have no types as operands: a number stands for that of
 * the elements (kernels/matrix.cube), and becomes the type here.
 */
#ifndef CUBE_SPIRV_H
#define CUBE_SPIRV_H

#include <stdint.h>

/* That number. */
enum cube_spirv_element { CUBE_SPIRV_F32, CUBE_SPIRV_F16, CUBE_SPIRV_BF16 };

/* What a device can promise, each a sum of the widths 16, 32, 64 for which it
 * can (VkPhysicalDeviceFloatControlsProperties). */
struct cube_float_controls {
    uint32_t nan_preserve;    /* shaderSignedZeroInfNanPreserve.. */
    uint32_t denorm_preserve; /* shaderDenormPreserve.. */
    uint32_t nearest_even;    /* shaderRoundingModeRTE.. */
};

/*
 * The module WORDS with each floating-point operation marked NoContraction,
 * with CONTROLS asked for, with the types of matrices' elements, and without
 * names. SPIR-V 1.4
 * or later. The result is freed with free(); NULL without memory or where WORDS
 * are no module.
 */
uint32_t *cube_spirv_exact(const uint32_t *words, uint64_t word_count,
                           const struct cube_float_controls *controls,
                           uint64_t *out_word_count);

#endif
