/* SPDX-License-Identifier: Apache-2.0 */
#include "blas.h"

#include "device.h"
#include "plan.h"

#include <hob/ext/message.h>

#include <stdio.h>

/* ---- the library ---- */

static void open_library(struct ccu_device *device)
{
    struct ccu_blas *blas = &device->blas;
    const int is_pushed = ccu_enter(device);

    if (ccu_cublas_open(&blas->cublas, device->instance->find,
                        device->options.cublas_dir, blas->library.problem)) {
        const int result = blas->cublas.create(&blas->handle);

        if (result) {
            blas->handle = NULL;
            snprintf(blas->library.problem, sizeof(blas->library.problem),
                     "cuBLASLt cannot be started (status %d)", result);
        }
    }
    if (!blas->handle && device->cube.host->log_write)
        device->cube.host->log_write(device->cube.host, 1,
                                     "%s: matrix products are slower: %s",
                                     device->name, blas->library.problem);
    ccu_leave(device, is_pushed);
}

hob_status ccu_blas_init(struct ccu_device *device)
{
    return ccu_library_init(&device->blas.library, device, open_library);
}

void ccu_blas_release(struct ccu_device *device)
{
    struct ccu_blas *blas = &device->blas;

    if (!blas->library.has_lock)
        return;
    ccu_library_wait(&blas->library);
    for (int i = 0; i < CCU_PLANS; i++)
        ccu_plan_free(blas, blas->plans[i]);
    if (blas->handle)
        (void)blas->cublas.destroy(blas->handle);
    if (blas->workspace)
        ccu_memory_give(&device->memory, blas->workspace, CCU_WORKSPACE_BYTES);
    ccu_library_release(&blas->library);
}

/* ---- products ---- */

int ccu_blas_takes_dtype(uint32_t dtype)
{
    return dtype == HOB_DTYPE_F32 || dtype == HOB_DTYPE_F64 ||
           dtype == HOB_DTYPE_F16 || dtype == HOB_DTYPE_BF16;
}

int ccu_blas_takes(const struct ccu_matrix *matrix, int64_t rows,
                   int64_t columns)
{
    return (matrix->column == 1 && matrix->row >= columns) ||
           (matrix->row == 1 && matrix->column >= rows);
}

static int run_locked(struct ccu_device *device, const struct ccu_plan *plan,
                      const struct ccu_product *product)
{
    static const float one = 1.0f, zero = 0.0f;
    static const double one64 = 1.0, zero64 = 0.0;
    const int is_double = product->dtype == HOB_DTYPE_F64;
    struct ccu_blas *blas = &device->blas;
    const int result = ccu_plan_set_pointers(blas, plan, product);

    if (result)
        return result;
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
                  : hob_say(device->cube.host, out_message, HOB_ERR_DEVICE,
                            "%s: cuBLASLt: status %d", device->name, result);
}

/* Wait for the library and for memory; 0 if cuBLASLt is not to be had. */
static int ready_locked(struct ccu_device *device)
{
    ccu_library_wait_locked(&device->blas.library);
    if (!device->blas.handle)
        return 0;
    need_workspace_locked(device);
    return 1;
}

int ccu_blas_has(struct ccu_device *device, const struct ccu_product *product)
{
    struct ccu_blas *blas = &device->blas;
    int has;

    if (!blas->library.has_lock || product->count > INT32_MAX)
        return 0;
    pthread_mutex_lock(&blas->library.lock);
    has = ready_locked(device) && ccu_plan_find(device, product);
    pthread_mutex_unlock(&blas->library.lock);
    return has;
}

hob_status ccu_blas_multiply(struct ccu_device *device,
                             const struct ccu_product *product,
                             char **out_message)
{
    struct ccu_blas *blas = &device->blas;
    const struct ccu_plan *plan = NULL;
    int result = 0;

    if (!blas->library.has_lock || product->count > INT32_MAX)
        return HOB_ERR_UNSUPPORTED;
    pthread_mutex_lock(&blas->library.lock);
    if (ready_locked(device))
        plan = ccu_plan_find(device, product);
    if (plan)
        result = run_locked(device, plan, product);
    pthread_mutex_unlock(&blas->library.lock);
    if (result)
        return failed(device, result, out_message);
    return plan ? HOB_OK : HOB_ERR_UNSUPPORTED;
}
