/* SPDX-License-Identifier: Apache-2.0 */
#include "matrices.h"

#include <hob/types.h>

#include <string.h>

enum { SIDE = 16, MOST_PRODUCTS = 128 };

void cvk_matrices_note(struct cvk_matrix_extensions *extensions,
                       const char *name)
{
    if (!strcmp(name, VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME))
        extensions->matrices = 1;
    if (!strcmp(name, VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME))
        extensions->bfloat16 = 1;
}

void *cvk_matrices_chain(struct cvk_matrix_features *features,
                         const struct cvk_matrix_extensions *extensions,
                         void *next)
{
    memset(features, 0, sizeof(*features));
    features->matrices.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    features->bfloat16.sType =
        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
    if (extensions->matrices) {
        features->matrices.pNext = next;
        next = &features->matrices;
    }
    if (extensions->bfloat16) {
        features->bfloat16.pNext = next;
        next = &features->bfloat16;
    }
    return next;
}

/* The dtype of PRODUCT's factors where kernels can use it, else 0. */
static uint32_t dtype_of(const VkCooperativeMatrixPropertiesKHR *product)
{
    if (product->MSize != SIDE || product->NSize != SIDE ||
        product->KSize != SIDE || product->scope != VK_SCOPE_SUBGROUP_KHR ||
        product->AType != product->BType ||
        product->CType != VK_COMPONENT_TYPE_FLOAT32_KHR ||
        product->ResultType != VK_COMPONENT_TYPE_FLOAT32_KHR)
        return 0;
    if (product->AType == VK_COMPONENT_TYPE_FLOAT16_KHR)
        return HOB_DTYPE_BIT(HOB_DTYPE_F16);
    if (product->AType == VK_COMPONENT_TYPE_BFLOAT16_KHR)
        return HOB_DTYPE_BIT(HOB_DTYPE_BF16);
    return 0;
}

uint32_t cvk_matrices_read(const struct cvk_instance_api *api,
                           VkPhysicalDevice handle,
                           const struct cvk_matrix_features *features)
{
    VkCooperativeMatrixPropertiesKHR products[MOST_PRODUCTS];
    uint32_t count = MOST_PRODUCTS, dtypes = 0;
    VkResult result;

    if (!features->matrices.cooperativeMatrix ||
        !api->GetPhysicalDeviceCooperativeMatrixPropertiesKHR)
        return 0;
    memset(products, 0, sizeof(products));
    for (uint32_t i = 0; i < MOST_PRODUCTS; i++)
        products[i].sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR;
    result = api->GetPhysicalDeviceCooperativeMatrixPropertiesKHR(
        handle, &count, products);
    if (result != VK_SUCCESS && result != VK_INCOMPLETE)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        dtypes |= dtype_of(&products[i]);
    if (!features->bfloat16.shaderBFloat16Type ||
        !features->bfloat16.shaderBFloat16CooperativeMatrix)
        dtypes &= ~HOB_DTYPE_BIT(HOB_DTYPE_BF16);
    return dtypes;
}
