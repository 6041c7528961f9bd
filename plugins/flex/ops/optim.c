/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optim.c - adam_step in one pass over its seven streams, also on a product,
 * whose parts it reads as they are made; sgd_step over three.
 */
#include "fused.h"
#include "gemm.h"
#include "rows.h"

#include <hob/ops.h>

#include <float.h>
#include <math.h>

enum { PARAM, GRAD, M, V, INPUTS };

struct step {
    struct flex_device *device;
    const struct flex_row_kernels *kernels;
    struct flex_loop in[INPUTS];
    char *out[3]; /* param, m, v: contiguous */
    uint32_t dtype;
    struct flex_adam adam; /* of SGD, keep and rate */
};

/* Block FIRST .. FIRST + N - 1 of input I in the computing type. */
static const void *fetch(const struct step *step, int i, int64_t first,
                         int64_t n, char *raw, char *wide)
{
    const void *in = flex_loop_fetch(&step->in[i], first, n, raw);

    if (!step->device->kernels->load_f32[step->dtype])
        return in;
    step->device->kernels->load_f32[step->dtype](wide, in, n);
    return wide;
}

static void step_range(void *context, int64_t first, int64_t last,
                       uint32_t worker)
{
    const struct step *step = context;
    const uint32_t size = hob_dtype_size(step->dtype);
    const flex_cast_fn store = step->device->kernels->store_f32[step->dtype];
    _Alignas(FLEX_ALIGN) char raw[INPUTS][FLEX_BLOCK * 8];
    _Alignas(FLEX_ALIGN) char wide[INPUTS][FLEX_BLOCK * 4];

    (void)worker;
    for (int64_t i = first; i < last; i += FLEX_BLOCK) {
        int64_t n = last - i < FLEX_BLOCK ? last - i : FLEX_BLOCK;
        const void *in[INPUTS];
        void *out[3];

        for (int k = 0; k < INPUTS; k++)
            in[k] = fetch(step, k, i, n, raw[k], wide[k]);
        for (int k = 0; k < 3; k++)
            out[k] = store ? (void *)raw[k] : step->out[k] + i * size;
        step->kernels->adam(store ? wide[PARAM] : out[0],
                            store ? wide[M] : out[1], store ? wide[V] : out[2],
                            in[PARAM], in[GRAD], in[M], in[V], n, &step->adam);
        if (!store)
            continue;
        store(step->out[0] + i * size, wide[PARAM], n);
        store(step->out[1] + i * size, wide[M], n);
        store(step->out[2] + i * size, wide[V], n);
    }
}

enum { NOW = 10 }; /* argument of adam_step */

/* The step's number and the rate: those in NOW, if it is there. */
static void read_now(const hob_value *args, const struct hob_view *now,
                     double *out_step, double *out_rate)
{
    *out_step = (double)args[4].u.i64;
    *out_rate = args[5].u.f64;
    if (!now)
        return;
    if (now->dtype == HOB_DTYPE_F64) {
        const double *numbers = now->data;

        *out_step = numbers[0];
        *out_rate = numbers[now->strides[0]];
    } else {
        const float *numbers = now->data;

        *out_step = (double)numbers[0];
        *out_rate = (double)numbers[now->strides[0]];
    }
}

/*
 * Moments of DTYPE below 4096 times the least normal number are taken for 0, as
 * their multiples are not to be denormal either; but only where v, gathered
 * from such squares, has a root that is lost in the rounding of epsilon. A step
 * then changes by LEAST / epsilon of the rate at most, 5e-27 of it in f32 with
 * the usual epsilon: only a parameter that is 0, or nearly, could tell.
 */
static double least_moment(const struct flex_adam *adam, uint32_t dtype)
{
    const int is_f64 = dtype == HOB_DTYPE_F64;
    const double least = 0x1p12 * (is_f64 ? DBL_MIN : (double)FLT_MIN);
    const double root = sqrt(least / (1 - adam->beta2)) * adam->correction;

    return root < adam->epsilon * (is_f64 ? DBL_EPSILON : (double)FLT_EPSILON)
               ? least
               : 0;
}

static void adam_init(struct flex_adam *adam, uint32_t dtype,
                      const hob_value *args, const struct hob_view *now)
{
    double count, lr;
    const double beta1 = args[6].u.f64;
    const double beta2 = args[7].u.f64;

    read_now(args, now, &count, &lr);
    *adam = (struct flex_adam){.keep = 1 - lr * args[9].u.f64,
                               .rate = lr / (1 - pow(beta1, count)),
                               .beta1 = beta1,
                               .beta2 = beta2,
                               .correction = 1 / sqrt(1 - pow(beta2, count)),
                               .epsilon = args[8].u.f64};
    adam->least = least_moment(adam, dtype);
}

static hob_status adam_step(void *instance, struct hob_call *call)
{
    struct flex_device *device = instance;
    struct step step = {.device = device,
                        .dtype = hob_arg_view(call, 0)->dtype};

    adam_init(&step.adam, step.dtype, call->args,
              call->arg_count <= NOW || call->args[NOW].tag == HOB_TAG_ABSENT
                  ? NULL
                  : hob_arg_view(call, NOW));
    step.kernels = flex_row_kernels(device, step.dtype);
    for (uint32_t i = 0; i < INPUTS; i++)
        flex_loop_init(&step.in[i], hob_arg_view(call, i));
    for (uint32_t i = 0; i < 3; i++)
        step.out[i] = hob_ret_view(call, i)->data;
    flex_parallel(device, step.in[PARAM].count, FLEX_GRAIN_CHEAP / 4,
                  step_range, &step);
    return HOB_OK;
}

static void sgd_range(void *context, int64_t first, int64_t last,
                      uint32_t worker)
{
    const struct step *step = context;
    const uint32_t size = hob_dtype_size(step->dtype);
    const flex_cast_fn store = step->device->kernels->store_f32[step->dtype];
    _Alignas(FLEX_ALIGN) char raw[2][FLEX_BLOCK * 8];
    _Alignas(FLEX_ALIGN) char wide[2][FLEX_BLOCK * 4];

    (void)worker;
    for (int64_t i = first; i < last; i += FLEX_BLOCK) {
        int64_t n = last - i < FLEX_BLOCK ? last - i : FLEX_BLOCK;
        const void *param = fetch(step, PARAM, i, n, raw[PARAM], wide[PARAM]);
        const void *grad = fetch(step, GRAD, i, n, raw[GRAD], wide[GRAD]);
        char *out = step->out[0] + i * size;

        step->kernels->sgd(store ? wide[PARAM] : out, param, grad,
                           step->adam.keep, step->adam.rate, n);
        if (store)
            store(out, wide[PARAM], n);
    }
}

static hob_status sgd_step(void *instance, struct hob_call *call)
{
    struct flex_device *device = instance;
    const double lr = flex_arg_f64(call, 2);
    struct step step = {
        .device = device,
        .dtype = hob_arg_view(call, 0)->dtype,
        .out = {hob_ret_view(call, 0)->data},
        .adam = {.keep = 1 - lr * flex_arg_f64(call, 3), .rate = lr}};

    step.kernels = flex_row_kernels(device, step.dtype);
    flex_loop_init(&step.in[PARAM], hob_arg_view(call, 0));
    flex_loop_init(&step.in[GRAD], hob_arg_view(call, 1));
    flex_parallel(device, step.in[PARAM].count, FLEX_GRAIN_CHEAP, sgd_range,
                  &step);
    return HOB_OK;
}

/* ---- on a product ---- */

/* One run. */
struct update {
    const struct flex_row_kernels *kernels;
    struct flex_adam adam;
    const char *param, *m, *v;
    char *out[3];
    int64_t columns;
    uint32_t size;
};

/* N elements from AT on, whose gradient is at GRAD. */
static void update_part(const struct update *update, int64_t at,
                        const char *grad, int64_t n)
{
    const int64_t from = at * update->size;

    update->kernels->adam(update->out[0] + from, update->out[1] + from,
                          update->out[2] + from, update->param + from, grad,
                          update->m + from, update->v + from, n, &update->adam);
}

static void update_block(void *context, void *block, int64_t first_row,
                         int64_t rows, int64_t first_column, int64_t columns,
                         int64_t ldc)
{
    const struct update *update = context;

    if (columns == update->columns && columns == ldc) {
        update_part(update, first_row * columns, block, rows * columns);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        update_part(update, (first_row + r) * update->columns + first_column,
                    (const char *)block + r * ldc * update->size, columns);
}

hob_status flex_run_update(void *instance, const struct hob_fused_update *run)
{
    struct flex_device *device = instance;
    const struct hob_view *param = run->views[PARAM];
    struct update update = {.kernels = flex_row_kernels(device, param->dtype),
                            .param = param->data,
                            .columns = param->shape[param->rank - 1],
                            .size = hob_dtype_size(param->dtype)};
    struct flex_gemm hooks = {.struct_size = sizeof(hooks),
                              .epilogue = update_block,
                              .epilogue_context = &update};
    struct hob_view product = *run->outs[0];

    if (run->op != HOB_OP_ADAM_STEP || run->gradient != GRAD)
        return HOB_ERR_UNSUPPORTED;
    adam_init(&update.adam, param->dtype, run->args,
              run->arg_count > NOW ? run->views[NOW] : NULL);
    update.m = run->views[M]->data;
    update.v = run->views[V]->data;
    for (int i = 0; i < 3; i++)
        update.out[i] = run->outs[i]->data;
    product.data = NULL;
    hooks.reads[0] = update.param;
    hooks.reads[1] = update.m;
    hooks.reads[2] = update.v;
    return flex_product(device, run->lhs, run->rhs, NULL, &product, &hooks);
}

static const uint32_t masks[] = {HOB_MASK_FLOAT, HOB_MASK_FLOAT, HOB_MASK_FLOAT,
                                 HOB_MASK_FLOAT, HOB_MASK_FLOAT};

static const struct hob_entry entries[] = {
    {
        .op = "adam_step",
        .signature =
            "(param: Float, grad: Float, m: Float, v: Float, step: i64, "
            "lr: f64, beta1: f64 = 0.9, beta2: f64 = 0.999, "
            "epsilon: f64 = 1e-8, weight_decay: f64 = 0, now: Any?) "
            "-> (param, m, v)",
        .dtypes = masks,
        .dtype_count = 5,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = adam_step,
    },
    {
        .op = "sgd_step",
        .signature = "(param: Float, grad: Float, lr: f64, "
                     "weight_decay: f64 = 0) -> param",
        .dtypes = masks,
        .dtype_count = 2,
        .flags = HOB_ENTRY_IN_PLACE,
        .execute = sgd_step,
    },
};

const struct flex_entries flex_optim_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
