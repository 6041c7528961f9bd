/* SPDX-License-Identifier: Apache-2.0 */
#include "fuse.h"

#include "../ops/optim.h"
#include "describe.h"
#include "product.h"
#include "steps.h"
#include "store.h"

#include <hob/ext/message.h>
#include <hob/ops.h>

static struct cube_fusion *fusion_of(void *instance)
{
    return cube_kernels_fusion(((struct cube_device *)instance)->kernels);
}

static int32_t supports(void *instance, const struct hob_fused_step *step,
                        const uint8_t *arg_dtypes)
{
    const struct cube_device *device = instance;

    return fuse_step_fits(&device->limits, step, arg_dtypes);
}

static hob_status compile(void *instance,
                          const struct hob_fused_program *program,
                          void **out_kernel, char **out_message)
{
    struct cube_device *device = instance;
    struct fuse_plan plan;
    const char *reason;
    hob_status status =
        fuse_plan_init(&plan, &device->limits, program, &reason);

    *out_kernel = NULL;
    if (reason)
        return hob_say(device->host, out_message, status,
                       "%s: a program cannot be fused: %s", device->name,
                       reason);
    if (status)
        return status;
    *out_kernel = fuse_store_take(fusion_of(instance), &plan);
    return *out_kernel ? HOB_OK : HOB_ERR_MEMORY;
}

static void release(void *instance, void *kernel)
{
    fuse_store_give(fusion_of(instance), kernel);
}

/* Scalars that integers have no result for are the ops' own to report. */
static int has_results(const struct fuse_plan *plan,
                       const struct hob_fused_run *run)
{
    for (uint32_t i = 0; i < plan->number_count; i++) {
        const struct fuse_number *number = &plan->numbers[i];
        const struct hob_fused_step *step = &plan->program.steps[number->step];
        const uint32_t check = cube_map_op_find(step->op)->map.check;
        int64_t scalar;

        if (check == CUBE_CHECK_NONE ||
            (HOB_DTYPE_BIT(step->dtype) & HOB_MASK_FLOAT))
            continue;
        scalar = cube_scalar_i64(fuse_scalar(number, run), step->dtype);
        if (check == CUBE_CHECK_DIVISOR
                ? scalar == 0
                : scalar < 0 &&
                      (HOB_DTYPE_BIT(step->dtype) & HOB_MASK_SIGNED) != 0)
            return 0;
    }
    return 1;
}

static hob_status run(void *instance, void *kernel,
                      const struct hob_fused_run *run, char **out_message)
{
    struct cube_device *device = instance;
    struct fuse_entry *entry = kernel;
    const struct fuse_version *version;
    struct fuse_layout layout;
    struct cube_job job;
    hob_status status;

    if (!has_results(&entry->plan, run))
        return HOB_ERR_UNSUPPORTED;
    status = fuse_layout_init(&layout, &entry->plan, device, run);
    if (status || !layout.groups)
        return status;
    status =
        fuse_store_get(fusion_of(instance), entry, &layout.class, &version);
    if (status)
        return status;
    cube_job_init(&job, device, NULL, &version->program);
    fuse_fill(&job, &entry->plan, &layout, run);
    job.variant = version->variant;
    return cube_job_launch(&job, version->kernel, layout.groups,
                           run->name ? run->name : "fused", out_message);
}

static hob_status run_product(void *instance, void *kernel,
                              const struct hob_fused_run *run,
                              const struct hob_fused_product *product,
                              char **out_message)
{
    struct fuse_entry *entry = kernel;

    return fuse_product_run(instance, &entry->plan.program, run, product,
                            out_message);
}

static void set_waits(void *instance, int32_t waits)
{
    fuse_store_wait(fusion_of(instance), waits);
}

static void stats(void *instance, struct hob_fused_stats *out)
{
    fuse_store_stats(fusion_of(instance), out);
}

/* On an H200 the kernel of softmax moves 3.7 to 4.1 TB/s where a program of its
 * steps moves 2.3 to 3.2, those of norms 4.0 and 3.9: see
 * bench/results/2026-11-30-h200.md. Beside rows of up to 4096 one op less over
 * the elements is worth that; of 16384, where few rows are in work at a time,
 * it is not always; nor are halves, whose kernels keep them packed. The kernel
 * of group_norm reads one element at a time: its steps are no dearer. */
static uint32_t body_cost(void *instance, uint32_t op, uint32_t dtype,
                          int64_t row)
{
    enum { LONGEST = 4096, SOFTMAX = 30, NORM = 5 };

    (void)instance;
    if (op == HOB_OP_GROUP_NORM)
        return 0;
    if (dtype != HOB_DTYPE_F32 || row > LONGEST)
        return HOB_FUSED_NEVER;
    return op == HOB_OP_LAYER_NORM || op == HOB_OP_RMS_NORM ? NORM : SOFTMAX;
}

#define COMMON                                                                 \
    .struct_size = sizeof(struct hob_fused_compute),                           \
    .version = HOB_FUSED_COMPUTE_VERSION, .supports = supports,                \
    .compile = compile, .release = release, .run = run,                        \
    .set_waits = set_waits, .stats = stats, .body_cost = body_cost,            \
    .run_updates = cube_updates_run

const struct hob_fused_compute cube_fused_compute = {COMMON};
const struct hob_fused_compute cube_fused_products = {COMMON, .run_product =
                                                                  run_product};
#undef COMMON
