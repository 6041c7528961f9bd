/* SPDX-License-Identifier: Apache-2.0 */
#include "plan.h"

#include "device.h"

#include <stdlib.h>
#include <string.h>

/* Numbers of cuBLASLt's and CUDA's enumerations, as documented. */
enum {
    COMPUTE_32F = 68,
    COMPUTE_64F = 70,
    COMPUTE_32F_FAST_TF32 = 77,

    R_32F = 0,
    R_64F = 1,
    R_16F = 2,
    R_16BF = 14,

    DESC_TRANSA = 3,
    DESC_TRANSB = 4,
    DESC_EPILOGUE = 7,
    DESC_BIAS_POINTER = 8,
    DESC_AUX_POINTER = 11,
    DESC_AUX_STRIDE = 12,
    LAYOUT_BATCH_COUNT = 5,
    LAYOUT_BATCH_OFFSET = 6,
    PREFERENCE_WORKSPACE = 1,
    PREFERENCE_ALIGNMENT = 5, /* of a, then b, c, d */

    NOT_SUPPORTED = 15
};

void ccu_plan_free(struct ccu_blas *blas, struct ccu_plan *plan)
{
    void *layouts[3];

    if (!plan)
        return;
    layouts[0] = plan->a;
    layouts[1] = plan->b;
    layouts[2] = plan->c;
    for (int i = 0; i < 3; i++)
        if (layouts[i])
            (void)blas->cublas.layout_destroy(layouts[i]);
    if (plan->desc)
        (void)blas->cublas.desc_destroy(plan->desc);
    free(plan);
}

static int type_of(uint32_t dtype)
{
    switch (dtype) {
    case HOB_DTYPE_F64:
        return R_64F;
    case HOB_DTYPE_F16:
        return R_16F;
    case HOB_DTYPE_BF16:
        return R_16BF;
    default:
        return R_32F;
    }
}

/* A layout of COUNT matrices of ROWS by COLUMNS, column-major. */
static int layout_init(struct ccu_blas *blas, void **out, const struct ccu_key *key,
                       int64_t rows, int64_t columns, int64_t stride,
                       int64_t batch)
{
    const int32_t count = (int32_t)key->count;
    int result =
        blas->cublas.layout_create(out, type_of(key->dtype), (uint64_t)rows,
                                   (uint64_t)columns, stride);

    if (result)
        *out = NULL;
    if (!result && count > 1)
        result = blas->cublas.layout_set(*out, LAYOUT_BATCH_COUNT, &count,
                                         sizeof(count));
    if (!result && count > 1)
        result = blas->cublas.layout_set(*out, LAYOUT_BATCH_OFFSET, &batch,
                                         sizeof(batch));
    return result;
}

static int plan_layouts(struct ccu_blas *blas, struct ccu_plan *plan)
{
    const struct ccu_key *key = &plan->key;
    int result;

    /* Row-major b (k x n) is its n x k; transposed it lies as k x n. */
    result = layout_init(blas, &plan->b, key, key->is_b_turned ? key->k : key->n,
                         key->is_b_turned ? key->n : key->k, key->b_stride,
                         key->b_batch);
    if (!result)
        result =
            layout_init(blas, &plan->a, key, key->is_a_turned ? key->m : key->k,
                        key->is_a_turned ? key->k : key->m, key->a_stride,
                        key->a_batch);
    if (!result)
        result = layout_init(blas, &plan->c, key, key->n, key->m, key->n,
                             key->c_batch);
    return result;
}

/* What the library calls EPILOGUE. Our columns are its rows, along which it
 * takes a bias to lie. */
static int32_t epilogue_of(uint32_t epilogue)
{
    enum {
        DEFAULT = 1,
        RELU = 2,
        BIAS = 4,
        RELU_SLOPE = 8,
        BIAS_GRAD = 16,
        GELU = 32,
        GELU_SLOPE = 64,
        AUX = 128,
        BIAS_GRAD_A = 256
    };
    static const int32_t numbers[][2] = {
        {CCU_BIAS, BIAS},
        {CCU_RELU, RELU},
        {CCU_GELU_TANH, GELU},
        {CCU_SUM_B, BIAS_GRAD_A},
        {CCU_KEEP, AUX},
        {CCU_RELU_SLOPE, RELU_SLOPE | AUX},
        {CCU_GELU_TANH_SLOPE, GELU_SLOPE | AUX},
        {CCU_SUM_C, BIAS_GRAD},
    };
    int32_t number = 0;

    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        if (epilogue & (uint32_t)numbers[i][0])
            number |= numbers[i][1];
    return number ? number : DEFAULT;
}

int ccu_plan_set_pointers(const struct ccu_blas *blas,
                          const struct ccu_plan *plan,
                          const struct ccu_product *product)
{
    int result = 0;

    if (plan->key.epilogue & CCU_WITH_BIAS)
        result = blas->cublas.desc_set(plan->desc, DESC_BIAS_POINTER,
                                       &product->bias, sizeof(product->bias));
    if (!result && (plan->key.epilogue & CCU_WITH_AUX))
        result = blas->cublas.desc_set(plan->desc, DESC_AUX_POINTER,
                                       &product->aux, sizeof(product->aux));
    return result;
}

static int plan_desc(struct ccu_device *device, struct ccu_plan *plan,
                     const struct ccu_product *product)
{
    struct ccu_blas *blas = &device->blas;
    const struct ccu_key *key = &plan->key;
    const int32_t b_op = key->is_b_turned, a_op = key->is_a_turned;
    const int32_t epilogue = epilogue_of(key->epilogue);
    const int is_double = key->dtype == HOB_DTYPE_F64;
    const int is_fast =
        key->dtype == HOB_DTYPE_F32 && device->options.has_tf32;
    int result = blas->cublas.desc_create(
        &plan->desc,
        is_double ? COMPUTE_64F
                  : (is_fast ? COMPUTE_32F_FAST_TF32 : COMPUTE_32F),
        is_double ? R_64F : R_32F);

    if (result)
        plan->desc = NULL;
    if (!result)
        result = blas->cublas.desc_set(plan->desc, DESC_TRANSA, &b_op,
                                       sizeof(b_op));
    if (!result)
        result = blas->cublas.desc_set(plan->desc, DESC_TRANSB, &a_op,
                                       sizeof(a_op));
    if (!result && key->epilogue)
        result = blas->cublas.desc_set(plan->desc, DESC_EPILOGUE, &epilogue,
                                       sizeof(epilogue));
    if (!result && (key->epilogue & CCU_WITH_AUX))
        result =
            blas->cublas.desc_set(plan->desc, DESC_AUX_STRIDE, &key->aux_stride,
                                  sizeof(key->aux_stride));
    return result ? result : ccu_plan_set_pointers(blas, plan, product);
}

/* Ask which kernel is best. */
static int plan_choose(struct ccu_blas *blas, struct ccu_plan *plan)
{
    const struct ccu_key *key = &plan->key;
    const uint32_t alignments[] = {1u << key->b_alignment,
                                   1u << key->a_alignment,
                                   1u << key->c_alignment,
                                   1u << key->c_alignment};
    const uint64_t workspace = key->has_workspace ? CCU_WORKSPACE_BYTES : 0;
    void *preference = NULL;
    int found = 0;
    int result = blas->cublas.preference_create(&preference);

    if (result)
        return result;
    result = blas->cublas.preference_set(preference, PREFERENCE_WORKSPACE,
                                         &workspace, sizeof(workspace));
    for (int i = 0; i < 4 && !result; i++)
        result = blas->cublas.preference_set(
            preference, PREFERENCE_ALIGNMENT + i, &alignments[i],
            sizeof(alignments[i]));
    if (!result)
        result = blas->cublas.heuristic(blas->handle, plan->desc, plan->b,
                                        plan->a, plan->c, plan->c, preference,
                                        1, &plan->heuristic, &found);
    (void)blas->cublas.preference_destroy(preference);
    plan->is_there = !result && found > 0 && !plan->heuristic.state;
    return result == NOT_SUPPORTED ? 0 : result;
}

static struct ccu_plan *plan_new(struct ccu_device *device,
                                 const struct ccu_key *key,
                                 const struct ccu_product *product)
{
    struct ccu_blas *blas = &device->blas;
    struct ccu_plan *plan = calloc(1, sizeof(*plan));

    if (!plan)
        return NULL;
    plan->key = *key;
    if (plan_layouts(blas, plan) || plan_desc(device, plan, product) ||
        plan_choose(blas, plan)) {
        ccu_plan_free(blas, plan);
        return NULL;
    }
    return plan;
}

/* FNV-1a by words. */
static uint32_t hash_of(const struct ccu_key *key)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    uint64_t words[sizeof(*key) / 8];

    memcpy(words, key, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        hash = (hash ^ words[i]) * UINT64_C(1099511628211);
    return (uint32_t)(hash ^ hash >> 32) % CCU_PLANS;
}

static uint8_t alignment_of(const void *data, int64_t stride, int64_t batch,
                            uint32_t size)
{
    const uint64_t bits = (uint64_t)(uintptr_t)data |
                          (uint64_t)stride * size | (uint64_t)batch * size |
                          256u;
    uint8_t power = 0;

    while (!(bits >> power & 1))
        power++;
    return power;
}

static struct ccu_key key_of(const struct ccu_product *product)
{
    const uint32_t size = hob_dtype_size(product->dtype);
    struct ccu_key key;

    memset(&key, 0, sizeof(key));
    key.m = product->m;
    key.n = product->n;
    key.k = product->k;
    key.count = product->count;
    key.dtype = product->dtype;
    key.is_a_turned =
        !(product->a.column == 1 && product->a.row >= product->k);
    key.is_b_turned =
        !(product->b.column == 1 && product->b.row >= product->n);
    key.a_stride = key.is_a_turned ? product->a.column : product->a.row;
    key.b_stride = key.is_b_turned ? product->b.column : product->b.row;
    if (product->count > 1) {
        key.a_batch = product->a.batch;
        key.b_batch = product->b.batch;
        key.c_batch = product->c_batch;
    }
    key.a_alignment =
        alignment_of(product->a.data, key.a_stride, key.a_batch, size);
    key.b_alignment =
        alignment_of(product->b.data, key.b_stride, key.b_batch, size);
    key.c_alignment = alignment_of(product->c, key.n, key.c_batch, size);
    key.epilogue = (uint8_t)product->epilogue;
    if (product->epilogue & CCU_WITH_BIAS)
        key.bias_alignment = alignment_of(product->bias, 0, 0, size);
    if (product->epilogue & CCU_WITH_AUX) {
        key.aux_stride = product->aux_stride;
        key.aux_alignment = alignment_of(product->aux, 0, 0, size);
    }
    return key;
}

const struct ccu_plan *ccu_plan_find(struct ccu_device *device,
                                     const struct ccu_product *product)
{
    struct ccu_blas *blas = &device->blas;
    struct ccu_key key = key_of(product);
    struct ccu_plan **slot, *plan;

    key.has_workspace = blas->workspace != 0;
    slot = &blas->plans[hash_of(&key)];
    if (*slot && !memcmp(&(*slot)->key, &key, sizeof(key)))
        return (*slot)->is_there ? *slot : NULL;
    plan = plan_new(device, &key, product);
    if (!plan)
        return NULL;
    ccu_plan_free(blas, *slot);
    *slot = plan;
    return plan->is_there ? plan : NULL;
}
