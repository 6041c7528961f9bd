/* SPDX-License-Identifier: Apache-2.0 */
#include "blas.h"

#include "device.h"

#include <cube/message.h>

#include <stdio.h>
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
    LAYOUT_BATCH_COUNT = 5,
    LAYOUT_BATCH_OFFSET = 6,
    PREFERENCE_WORKSPACE = 1,
    PREFERENCE_ALIGNMENT = 5, /* of a, then b, c, d */

    NOT_SUPPORTED = 15
};

/* cublasLtMatmulHeuristicResult_t */
struct heuristic {
    uint64_t algorithm[8];
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

/*
 * What is asked of cuBLASLt, all that its choice depends on. It is
 * column-major: our row-major c is its n x m matrix, b comes first.
 */
struct key {
    int64_t m, n, k, count;
    int64_t a_stride, b_stride; /* from one row, or column, to the next */
    int64_t a_batch, b_batch, c_batch;
    uint32_t dtype;
    uint8_t is_a_turned, is_b_turned;
    uint8_t a_alignment, b_alignment, c_alignment; /* powers of two */
    uint8_t has_workspace;
    uint8_t reserved[6];
};

struct ccu_plan {
    struct key key;
    void *desc;
    void *a, *b, *c; /* layouts */
    struct heuristic heuristic;
    uint32_t is_there; /* there is a kernel */
};

/* ---- the library ---- */

static void *open_library(void *opened)
{
    struct ccu_device *device = opened;
    struct ccu_blas *blas = &device->blas;
    const int is_pushed = ccu_enter(device);

    if (ccu_cublas_open(&blas->cublas, device->instance->find,
                        device->options.cublas_dir, blas->problem)) {
        const int result = blas->cublas.create(&blas->handle);

        if (result) {
            blas->handle = NULL;
            snprintf(blas->problem, sizeof(blas->problem),
                     "cuBLASLt cannot be started (status %d)", result);
        }
    }
    if (!blas->handle && device->cube.host->log_write)
        device->cube.host->log_write(device->cube.host, 1,
                                     "%s: matrix products are slower: %s",
                                     device->name, blas->problem);
    ccu_leave(device, is_pushed);
    return NULL;
}

static void wait_for_library_locked(struct ccu_blas *blas)
{
    if (blas->has_thread)
        (void)pthread_join(blas->thread, NULL);
    blas->has_thread = 0;
}

hob_status ccu_blas_init(struct ccu_device *device)
{
    struct ccu_blas *blas = &device->blas;

    if (pthread_mutex_init(&blas->lock, NULL))
        return HOB_ERR_MEMORY;
    blas->has_lock = 1;
    blas->has_thread =
        !pthread_create(&blas->thread, NULL, open_library, device);
    if (!blas->has_thread)
        open_library(device);
    return HOB_OK;
}

/* ---- plans ---- */

static void plan_free(struct ccu_blas *blas, struct ccu_plan *plan)
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
static int layout_init(struct ccu_blas *blas, void **out, const struct key *key,
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
    const struct key *key = &plan->key;
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

static int plan_desc(struct ccu_device *device, struct ccu_plan *plan)
{
    struct ccu_blas *blas = &device->blas;
    const struct key *key = &plan->key;
    const int32_t b_op = key->is_b_turned, a_op = key->is_a_turned;
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
    return result;
}

/* Ask which kernel is best. */
static int plan_choose(struct ccu_blas *blas, struct ccu_plan *plan)
{
    const struct key *key = &plan->key;
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
                                 const struct key *key)
{
    struct ccu_blas *blas = &device->blas;
    struct ccu_plan *plan = calloc(1, sizeof(*plan));

    if (!plan)
        return NULL;
    plan->key = *key;
    if (plan_layouts(blas, plan) || plan_desc(device, plan) ||
        plan_choose(blas, plan)) {
        plan_free(blas, plan);
        return NULL;
    }
    return plan;
}

/* FNV-1a by words. */
static uint32_t hash_of(const struct key *key)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    uint64_t words[sizeof(*key) / 8];

    memcpy(words, key, sizeof(words));
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        hash = (hash ^ words[i]) * UINT64_C(1099511628211);
    return (uint32_t)(hash ^ hash >> 32) % CCU_PLANS;
}

/* One plan a hash: a newer one takes the place of an older. */
static const struct ccu_plan *plan_locked(struct ccu_device *device,
                                          const struct key *key)
{
    struct ccu_blas *blas = &device->blas;
    struct ccu_plan **slot = &blas->plans[hash_of(key)];
    struct ccu_plan *plan;

    if (*slot && !memcmp(&(*slot)->key, key, sizeof(*key)))
        return *slot;
    plan = plan_new(device, key);
    if (!plan)
        return NULL;
    plan_free(blas, *slot);
    *slot = plan;
    return plan;
}

void ccu_blas_release(struct ccu_device *device)
{
    struct ccu_blas *blas = &device->blas;

    if (!blas->has_lock)
        return;
    wait_for_library_locked(blas);
    for (int i = 0; i < CCU_PLANS; i++)
        plan_free(blas, blas->plans[i]);
    if (blas->handle)
        (void)blas->cublas.destroy(blas->handle);
    if (blas->workspace)
        ccu_memory_give(&device->memory, blas->workspace, CCU_WORKSPACE_BYTES);
    pthread_mutex_destroy(&blas->lock);
}

/* ---- products ---- */

int ccu_blas_takes(const struct ccu_matrix *matrix, int64_t rows,
                   int64_t columns)
{
    return (matrix->column == 1 && matrix->row >= columns) ||
           (matrix->row == 1 && matrix->column >= rows);
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

static struct key key_of(const struct ccu_product *product)
{
    const uint32_t size = hob_dtype_size(product->dtype);
    struct key key;

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
    return key;
}

static int run_locked(struct ccu_device *device, const struct ccu_plan *plan,
                      const struct ccu_product *product)
{
    static const float one = 1.0f, zero = 0.0f;
    static const double one64 = 1.0, zero64 = 0.0;
    const int is_double = product->dtype == HOB_DTYPE_F64;
    struct ccu_blas *blas = &device->blas;

    return blas->cublas.matmul(
        blas->handle, plan->desc, is_double ? (const void *)&one64 : &one,
        product->b.data, plan->b, product->a.data, plan->a,
        is_double ? (const void *)&zero64 : &zero, product->c, plan->c,
        product->c, plan->c, plan->heuristic.algorithm,
        (void *)(uintptr_t)blas->workspace,
        blas->workspace ? CCU_WORKSPACE_BYTES : 0, ccu_stream(device));
}

/* Memory to work in, taken with the first product; while there is none, kernels
 * that need none are chosen. */
static void need_workspace_locked(struct ccu_device *device)
{
    struct ccu_blas *blas = &device->blas;

    if (!blas->workspace &&
        ccu_take(device, CCU_WORKSPACE_BYTES, &blas->workspace))
        blas->workspace = 0;
}

/* The library answered RESULT; the driver knows better if the device is lost.
 */
static hob_status failed(struct ccu_device *device, int result,
                         char **out_message)
{
    const hob_status status = ccu_wait(device, out_message);

    return status ? status
                  : cube_say(device->cube.host, out_message, HOB_ERR_DEVICE,
                             "%s: cuBLASLt: status %d", device->name, result);
}

hob_status ccu_blas_multiply(struct ccu_device *device,
                             const struct ccu_product *product,
                             char **out_message)
{
    struct ccu_blas *blas = &device->blas;
    struct key key = key_of(product);
    const struct ccu_plan *plan = NULL;
    hob_status status = HOB_ERR_UNSUPPORTED;
    int result = 0;

    if (!blas->has_lock || product->count > INT32_MAX)
        return status;
    pthread_mutex_lock(&blas->lock);
    wait_for_library_locked(blas);
    if (blas->handle) {
        need_workspace_locked(device);
        key.has_workspace = blas->workspace != 0;
        plan = plan_locked(device, &key);
    }
    if (plan && plan->is_there) {
        result = run_locked(device, plan, product);
        status = HOB_OK;
    }
    pthread_mutex_unlock(&blas->lock);
    return result ? failed(device, result, out_message) : status;
}
