/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fused_job.c - one run of a plan: operands as loops, and scalars in their
 * dtypes.
 */
#include "fused.h"

#include "move.h"

#include <string.h>

/* OPERAND as ORDER goes through it. */
static void operand_loop(struct flex_loop *loop,
                         const struct fused_order *order,
                         const struct hob_fused_operand *operand,
                         uint32_t dtype)
{
    const int64_t size = hob_dtype_size(dtype);
    struct hob_view view;
    char *data = operand->data;

    view.dtype = (uint8_t)dtype;
    view.rank = (uint8_t)order->rank;
    for (uint32_t i = 0; i < order->rank; i++) {
        const int64_t stride = operand->strides[order->from[i]];

        view.shape[i] = order->shape[i];
        view.strides[i] = order->flip[i] ? -stride : stride;
        if (order->flip[i])
            data += (order->shape[i] - 1) * stride * size;
    }
    view.data = data;
    flex_loop_init(loop, &view);
}

/* ROW OPERAND over the first RANK dimensions of a run, its rows. */
static void row_loop(struct flex_loop *loop, const struct hob_fused_run *run,
                     const struct hob_fused_operand *operand, uint32_t rank,
                     uint32_t dtype)
{
    struct hob_view view;

    view.dtype = (uint8_t)dtype;
    view.rank = (uint8_t)rank;
    view.data = operand->data;
    memcpy(view.shape, run->shape, rank * sizeof(int64_t));
    memcpy(view.strides, operand->strides, rank * sizeof(int64_t));
    flex_loop_init(loop, &view);
}

static enum fused_walk walk_of(const struct flex_loop *loop)
{
    if (flex_loop_dense(loop))
        return FUSED_DENSE;
    return loop->rank == 1 && loop->strides[0] == 0 ? FUSED_UNIFORM
                                                    : FUSED_STRIDED;
}

/* ---- operands ---- */

/* Whether each row reads the same elements of IN, one after the other. */
static int is_vector(const struct fused_job *job,
                     const struct fused_job_input *in)
{
    const struct flex_loop *loop = &in->loop;

    return !in->is_row && loop->rank == 2 && loop->strides[0] == 0 &&
           loop->strides[1] == 1 && loop->shape[1] == job->n;
}

static void init_inputs(struct fused_job *job,
                        const struct hob_fused_program *program,
                        const struct fused_order *order,
                        const struct hob_fused_run *run)
{
    const struct flex_kernels *kernels = job->device->kernels;

    job->slot_bytes = job->plan->slot_bytes;
    for (uint32_t i = 0; i < program->input_count; i++) {
        struct fused_job_input *in = &job->in[i];
        const uint32_t dtype = program->inputs[i].dtype;

        in->is_row = program->inputs[i].kind == HOB_FUSED_ROW;
        in->is_single = 0;
        in->skips = 0;
        in->dtype = (uint8_t)dtype;
        in->load = kernels->load_f32[dtype];
        if (in->is_row)
            row_loop(&in->loop, run, &run->inputs[i],
                     (uint32_t)program->rank - program->row_rank, dtype);
        else
            operand_loop(&in->loop, order, &run->inputs[i], dtype);
        in->walk = (uint8_t)walk_of(&in->loop);
        if (job->plan->vectors >> i & 1 && is_vector(job, in)) {
            in->walk = FUSED_VECTOR;
            in->length = job->n;
        } else if (job->plan->channels >> i & 1 && !in->is_row) {
            in->walk = (uint8_t)fused_channels_walk(in);
        }
        in->vector = in->loop.data;
        if (in->walk == FUSED_STRIDED && job->way == FUSED_BY_ELEMENTS)
            in->skips = (uint8_t)flex_loop_is_parted(&in->loop);
        job->skips |= in->skips;
        if (in->is_row || in->walk == FUSED_VECTOR ||
            in->walk == FUSED_CHANNELS ||
            (in->walk == FUSED_DENSE && !in->load))
            continue;
        in->offset = job->slot_bytes;
        job->slot_bytes += job->plan->values[i].size;
        in->stored = job->slot_bytes;
        if (in->load && in->walk != FUSED_DENSE)
            job->slot_bytes += in->loop.size;
    }
}

/* The inputs, by bit, that output OUT lies over. */
static uint32_t lies_over(const struct hob_fused_program *program,
                          const struct hob_fused_run *run, uint32_t out)
{
    uint32_t inputs = 0;

    for (uint32_t i = 0; i < program->input_count; i++)
        if (run->inputs[i].data == run->outputs[out].data)
            inputs |= 1u << i;
    return inputs;
}

static void init_outputs(struct fused_job *job,
                         const struct hob_fused_program *program,
                         const struct fused_order *order,
                         const struct hob_fused_run *run)
{
    const struct fused_plan *plan = job->plan;
    uint64_t bytes = 0;
    int past;

    for (uint32_t i = 0; i < program->output_count; i++) {
        struct fused_job_output *out = &job->out[i];

        out->dtype = plan->outputs[i].dtype;
        out->store = job->device->kernels->store_f32[out->dtype];
        if (plan->outputs[i].is_row)
            row_loop(&out->loop, run, &run->outputs[i],
                     (uint32_t)program->rank - program->row_rank, out->dtype);
        else
            operand_loop(&out->loop, order, &run->outputs[i], out->dtype);
        out->is_dense = walk_of(&out->loop) == FUSED_DENSE;
        bytes += (uint64_t)out->loop.count * out->loop.size;
    }
    past = flex_goes_past(job->device, bytes);
    for (uint32_t i = 0; i < program->output_count; i++) {
        const struct fused_output *planned = &plan->outputs[i];
        struct fused_job_output *out = &job->out[i];
        const uint32_t over = lies_over(program, run, i);

        out->is_past = past && !over && !planned->is_row;
        out->is_direct = !planned->is_row && !out->store &&
                         plan->values[planned->value].kind == FUSED_SLOT &&
                         !(over & planned->later) &&
                         (!out->is_past || planned->is_chained);
        out->is_far = out->is_dense && !out->is_past && !over &&
                      !planned->is_row && bytes > job->device->l2_bytes;
    }
}

/* ---- scalars ---- */

static void init_cells(struct fused_job *job, const struct hob_fused_run *run)
{
    const struct fused_plan *plan = job->plan;

    for (uint32_t i = 0; i < plan->cell_count; i++) {
        const struct fused_cell *cell = &plan->cells[i];
        hob_value scalar = run->scalars[cell->scalar];
        flex_cast_fn load = job->device->kernels->load_f32[cell->dtype];
        uint64_t stored = 0;

        if (scalar.tag == HOB_TAG_ABSENT && cell->bound)
            scalar = flex_scalar_bound(cell->dtype, cell->bound == 2);
        flex_scalar_store(&scalar, cell->dtype, &stored);
        job->cells[i] = stored;
        if (load)
            load(&job->cells[i], &stored, 1);
        job->powers[i] = flex_scalar_f64(&scalar);
    }
}

/* ---- links ---- */

static void init_links(struct fused_job *job)
{
    const struct fused_plan *plan = job->plan;

    memcpy(job->links, plan->links, plan->link_count * sizeof(job->links[0]));
    for (uint32_t i = 0; i < plan->link_count; i++) {
        struct flex_link *link = &job->links[i];
        const struct fused_value *value = &plan->values[link->value];

        if (link->link >= FLEX_LINK_ONE)
            continue; /* no operand */
        if (link->link == FLEX_LINK_STORE) {
            for (uint32_t k = 0; k < plan->output_count; k++)
                if (plan->outputs[k].value == link->value &&
                    job->out[k].is_past && job->out[k].is_direct)
                    link->link = FLEX_LINK_PAST;
        } else if (value->kind == FUSED_INPUT) {
            link->is_single = job->in[link->value].is_single;
        } else if (value->kind == FUSED_EXPANDED) {
            link->is_single = job->group <= 1 && job->way != FUSED_BY_COLUMNS &&
                              job->places == 1;
        }
    }
}

hob_status fused_job_init(struct fused_job *job,
                          const struct fused_kernel *kernel,
                          const struct fused_plan *plan,
                          const struct fused_order *order,
                          const struct hob_fused_run *run)
{
    const struct hob_fused_program *program = &kernel->program;
    hob_status st;

    job->device = kernel->device;
    job->plan = plan;
    job->failed = 0;
    job->kept = NULL;
    job->skips = 0;
    job->row = 0;
    job->period = 0;
    job->group = 0;
    job->places = 1;
    job->lanes = 1;
    job->pitch = 1;
    job->way = order->way;
    job->rows = order->rows;
    job->n = order->n;
    job->batches = order->batches;
    job->outer = order->outer;
    job->inner = order->inner;
    job->side = job->rows / job->batches;
    job->count = job->rows * job->n;
    init_inputs(job, program, order, run);
    init_outputs(job, program, order, run);
    init_cells(job, run);
    st = fused_job_cut(job);
    if (st)
        return st;
    init_links(job);
    return HOB_OK;
}
