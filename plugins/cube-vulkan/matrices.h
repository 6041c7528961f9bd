/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matrices.h - cooperative matrices: which a device has, and asking for them.
 *
 * Kernels want products of 16 by 16 by 16 of a subgroup, of f16 or bf16 with
 * sums in f32 (cube/kernels/matrix.cube).
 */
#ifndef CVK_MATRICES_H
#define CVK_MATRICES_H

#include "loader.h"

/* Which extensions a device has. */
struct cvk_matrix_extensions {
    uint32_t matrices; /* VK_KHR_cooperative_matrix */
    uint32_t bfloat16; /* VK_KHR_shader_bfloat16 */
};

/* Note it if NAME is one of them. */
void cvk_matrices_note(struct cvk_matrix_extensions *extensions,
                       const char *name);

/* What is asked of a device. */
struct cvk_matrix_features {
    VkPhysicalDeviceCooperativeMatrixFeaturesKHR matrices;
    VkPhysicalDeviceShaderBfloat16FeaturesKHR bfloat16;
};

/* Fill FEATURES in for what there is of EXTENSIONS, in front of NEXT; returns
 * the first of the chain. */
void *cvk_matrices_chain(struct cvk_matrix_features *features,
                         const struct cvk_matrix_extensions *extensions,
                         void *next);
/* The dtypes, HOB_DTYPE_BIT, of which HANDLE multiplies matrices; FEATURES are
 * those it has. */
uint32_t cvk_matrices_read(const struct cvk_instance_api *api,
                           VkPhysicalDevice handle,
                           const struct cvk_matrix_features *features);

#endif
