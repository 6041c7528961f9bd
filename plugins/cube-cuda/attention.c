/* SPDX-License-Identifier: Apache-2.0 */
#include "attention.h"

#include "attention_job.h"
#include "texts.h"

#include <cube/cube.h>

#include <stddef.h>
#include <string.h>

/* CUDA's enumerations, as documented. */
enum {
    TYPE_F16 = 6, /* CUtensorMapDataType */
    TYPE_BF16 = 9,
    SWIZZLE_128B = 3,
    PROMOTION_128B = 2,
    RANK = ATTENTION_LEAD + 2,
    SLAB_ELEMENTS = 64, /* as in sm90.cu */
    WARPGROUP = 128
};

static const char forward_op[] = "attention";
static const char backward_op[] = "attention_backward";

#define COMMON                                                                 \
    .libraries = {cube_text_attention_params, cube_text_sm90,                  \
                  cube_text_attention_batch},                                  \
    .symbols = {"ELEMENT"}, .flags = CUBE_TIED, .language = CUBE_ONLY_CUDA

static const struct cube_program forward_program = {
    .name = "attention_sm90",
    .text = cube_text_attention_sm90,
    .constants = {"WIDTH", "KEYS", "STAGES", "IS_CAUSAL", "MASK"},
    COMMON,
};

static const struct cube_program backward_program = {
    .name = "attention_backward_sm90",
    .text = cube_text_attention_backward_sm90,
    .constants = {"WIDTH", "TILE", "STAGES", "IS_CAUSAL", "MASK", "KEYS_STAY"},
    COMMON,
};

#undef COMMON

/* What a kernel is given. */
struct block {
    struct ccu_tensor_map maps[ATTENTION_MAPS];
    struct attention_params params;
};

/* How a kernel is cut. */
struct tiling {
    int32_t block, tile, stages; /* rows; stages of the ring */
};

/* Rows that a processor walks through, in blocks of BLOCK one after another. */
static int64_t rows_in_turn(const struct ccu_attention *job, int64_t block)
{
    const int64_t processors = job->device->cube.limits.processors;
    const int64_t blocks =
        (job->rows[ATTENTION_QUERY] + block - 1) / block * job->batches;

    return (blocks + processors - 1) / processors * block;
}

/* A third warpgroup makes rows of 64 faster by a seventh, unless smaller blocks
 * fill the processors better. */
static struct tiling forward_tiling(const struct ccu_attention *job)
{
    const int is_large =
        job->width == 64 && (job->is_causal || 7 * rows_in_turn(job, 192) <=
                                                   8 * rows_in_turn(job, 128));

    return (struct tiling){is_large ? 192 : 128, 128, 2};
}

/* Sums of two gradients leave no room for a third warpgroup. */
static struct tiling backward_tiling(int64_t width, int keys_stay)
{
    return (struct tiling){width == 64 && !keys_stay ? 192 : 128, 64, 3};
}

/* ---- launching ---- */

/* The map of operand INDEX, copied in boxes of ROWS rows. */
static hob_status map_operand(const struct ccu_attention *job, uint32_t index,
                              int32_t rows, struct ccu_tensor_map *out,
                              char **out_message)
{
    static const uint32_t steps[RANK] = {1, 1, 1, 1, 1};
    const struct hob_view *view = job->views[index];
    const uint32_t box[RANK] = {SLAB_ELEMENTS, (uint32_t)rows, 1, 1, 1};
    const uint64_t row_bytes = (uint64_t)job->row_strides[index] * 2;
    uint64_t sizes[RANK] = {(uint64_t)job->width, (uint64_t)job->rows[index]};
    uint64_t strides[RANK - 1] = {row_bytes};

    /* The innermost comes first here. */
    for (uint32_t k = 0; k < ATTENTION_LEAD; k++) {
        const int64_t stride = job->strides[index][ATTENTION_LEAD - 1 - k];

        sizes[2 + k] =
            stride ? (uint64_t)job->params.lead[ATTENTION_LEAD - 1 - k] : 1;
        strides[1 + k] = stride ? (uint64_t)stride * 2 : row_bytes;
    }
    return ccu_check(job->device, "cuTensorMapEncodeTiled",
                     job->device->driver->tensor_map(
                         out,
                         view->dtype == HOB_DTYPE_F16 ? TYPE_F16 : TYPE_BF16,
                         RANK, view->data, sizes, strides, box, steps, 0,
                         SWIZZLE_128B, PROMOTION_128B, 0),
                     out_message);
}

/* Cut JOB as TILING says, and map its operands. */
static hob_status fill_block(struct ccu_attention *job,
                             const struct tiling *tiling, int keys_stay,
                             struct block *out, char **out_message)
{
    const int64_t rows = job->rows[keys_stay ? ATTENTION_KEY : ATTENTION_QUERY];
    const int is_pushed = ccu_enter(job->device);
    hob_status status = HOB_OK;

    job->params.blocks = (int)((rows + tiling->block - 1) / tiling->block);
    job->params.tasks = (int)(job->params.blocks * job->batches);
    memset(out, 0, sizeof(*out));
    out->params = job->params;
    for (uint32_t i = 0; i < job->maps && !status; i++) {
        const int is_key = i == ATTENTION_KEY || i == ATTENTION_VALUE;

        status = map_operand(job, i,
                             is_key == keys_stay ? tiling->block : tiling->tile,
                             &out->maps[i], out_message);
    }
    ccu_leave(job->device, is_pushed);
    return status;
}

/* Launch VARIANT on a group for each task or, if it IS_PERSISTENT, for each
 * processor. */
static hob_status launch(struct ccu_attention *job, const char *op_name,
                         struct cube_variant *variant,
                         const struct tiling *tiling, int keys_stay,
                         int is_persistent, char **out_message)
{
    struct cube_device *cube = &job->device->cube;
    uint16_t places[ATTENTION_MAPS + 1];
    struct block block;
    struct cube_launch launch = {.op_name = op_name,
                                 .params = &block,
                                 .param_bytes = sizeof(block),
                                 .place_count = job->maps + 1,
                                 .places = places,
                                 .shared_bytes = ATTENTION_SHARED_BYTES};
    const struct cube_kernel *kernel;
    hob_status status = fill_block(job, tiling, keys_stay, &block, out_message);

    if (status)
        return status;
    for (uint32_t i = 0; i < job->maps; i++)
        places[i] = (uint16_t)(i * sizeof(block.maps[0]));
    places[job->maps] = offsetof(struct block, params);
    launch.groups = (uint32_t)job->params.tasks;
    if (is_persistent && launch.groups > cube->limits.processors)
        launch.groups = cube->limits.processors;
    if (launch.groups > cube->limits.groups)
        launch.groups = cube->limits.groups;
    variant->group_size = (uint32_t)(tiling->block / 64 + 1) * WARPGROUP;
    variant->symbols[0] =
        job->views[0]->dtype == HOB_DTYPE_F16 ? "\"f16\"" : "\"bf16\"";
    status = cube_kernels_get(cube->kernels, variant, &kernel, out_message);
    return status ? status
                  : cube->runtime->launch(cube, kernel->handle, &launch,
                                          out_message);
}

static void set_constants(const struct ccu_attention *job,
                          const struct tiling *tiling,
                          struct cube_variant *variant)
{
    variant->constants[0] = (int32_t)job->width;
    variant->constants[1] = tiling->tile;
    variant->constants[2] = tiling->stages;
    variant->constants[3] = job->is_causal;
    variant->constants[4] = job->mask_kind;
}

static hob_status run_forward(struct ccu_attention *job,
                              const struct hob_call *call, char **out_message)
{
    const struct tiling tiling = forward_tiling(job);
    struct cube_variant variant;

    cube_variant_init(&variant, &forward_program);
    set_constants(job, &tiling, &variant);
    job->params.results[0] = hob_ret_view(call, 0)->data;
    job->params.lse = hob_ret_view(call, 1)->data;
    /* Blocks of unlike length are better handed out as groups come free. */
    return launch(job, call->op_name, &variant, &tiling, 0, !job->is_causal,
                  out_message);
}

static hob_status run_backward(struct ccu_attention *job,
                               const struct hob_call *call, int keys_stay,
                               char **out_message)
{
    const struct tiling tiling = backward_tiling(job->width, keys_stay);
    struct cube_variant variant;

    cube_variant_init(&variant, &backward_program);
    set_constants(job, &tiling, &variant);
    variant.constants[5] = keys_stay;
    for (uint32_t i = 0; i < 3; i++)
        job->params.results[i] = hob_ret_view(call, i)->data;
    job->params.lse = hob_arg_view(call, 5)->data;
    job->params.delta = hob_arg_view(call, 6)->data;
    return launch(job, call->op_name, &variant, &tiling, keys_stay, keys_stay,
                  out_message);
}

/* ---- entries ---- */

static int take_forward(struct ccu_attention *job, void *device,
                        const struct hob_call *call)
{
    return ccu_attention_take(job, device, call, NULL, 5);
}

static int take_backward(struct ccu_attention *job, void *device,
                         const struct hob_call *call)
{
    const struct hob_view *lse = hob_arg_view(call, 5);
    const struct hob_view *delta = hob_arg_view(call, 6);

    return lse->dtype == HOB_DTYPE_F32 && delta->dtype == HOB_DTYPE_F32 &&
           cube_is_contiguous(lse) && cube_is_contiguous(delta) &&
           !cube_arg_i64(call, 11) &&
           ccu_attention_take(job, device, call, hob_arg_view(call, 7), 8);
}

static hob_status prepare_portable(void *device, const struct hob_call *call,
                                   struct hob_prepare *out, const char *op)
{
    const struct hob_entry *entry = cube_entry_find(op);

    return entry->prepare ? entry->prepare(device, call, out) : HOB_OK;
}

static hob_status prepare(void *device, const struct hob_call *call,
                          struct hob_prepare *out)
{
    struct ccu_attention job;

    return take_forward(&job, device, call)
               ? HOB_OK
               : prepare_portable(device, call, out, forward_op);
}

static hob_status prepare_backward(void *device, const struct hob_call *call,
                                   struct hob_prepare *out)
{
    struct ccu_attention job;

    return take_backward(&job, device, call)
               ? HOB_OK
               : prepare_portable(device, call, out, backward_op);
}

static hob_status attention(void *opened, struct hob_call *call)
{
    struct ccu_device *device = opened;
    struct ccu_attention job;
    char *message = NULL;
    hob_status status;

    if (!take_forward(&job, device, call))
        return cube_entry_find(forward_op)->execute(device, call);
    status = run_forward(&job, call, &message);
    return status ? cube_fail(&device->cube, call, status, message) : HOB_OK;
}

static hob_status attention_backward(void *opened, struct hob_call *call)
{
    struct ccu_device *device = opened;
    struct ccu_attention job;
    char *message = NULL;
    hob_status status;

    if (!take_backward(&job, device, call))
        return cube_entry_find(backward_op)->execute(device, call);
    status = run_backward(&job, call, 0, &message);
    if (!status)
        status = run_backward(&job, call, 1, &message);
    return status ? cube_fail(&device->cube, call, status, message) : HOB_OK;
}

void ccu_attention_install(struct hob_entry *entries, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!strcmp(entries[i].op, forward_op)) {
            entries[i].prepare = prepare;
            entries[i].execute = attention;
        } else if (!strcmp(entries[i].op, backward_op)) {
            entries[i].prepare = prepare_backward;
            entries[i].execute = attention_backward;
        }
}
