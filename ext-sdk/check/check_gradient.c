/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_gradient.c - gradients against finite differences.
 *
 * The loss is the sum of all float results, each element times a weight, or
 * one result alone, whose gradient then is ones and that of the others absent.
 * Differences are of two steps, extrapolated (Richardson), and of a third
 * that is much smaller; where they disagree there is a kink, and the element
 * is passed over.
 */
#include "check.h"

#include "error.h"

#include <hob/autodiff.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY = 400, ELEMENTS_MAX = 24, INPUTS_MAX = 16 };
enum { LOSS_WEIGHTED = -1 }; /* else the number of the only result */

/* A float tensor argument. */
struct input {
    uint32_t param, item;
    int64_t count;
};

struct trial {
    struct check_lab *lab;
    struct check_case one;
    struct input inputs[INPUTS_MAX];
    uint32_t input_count;
    int loss;
    double step, tolerance;
    /* By input: the slopes of up to ELEMENTS_MAX elements; NaN: a kink. */
    double slopes[INPUTS_MAX][ELEMENTS_MAX];
};

/* The element that is the I-th looked at of COUNT. */
static int64_t element_at(int64_t count, int64_t i)
{
    return count <= ELEMENTS_MAX ? i : i * count / ELEMENTS_MAX;
}

static int64_t elements_of(const struct input *input)
{
    return input->count < ELEMENTS_MAX ? input->count : ELEMENTS_MAX;
}

/* Weight AT of result INDEX: not all alike, so that a transposed gradient
 * shows. */
static double weight(const struct trial *trial, uint32_t index, int64_t at)
{
    uint64_t state = 77 + index * 1000 + (uint64_t)at;

    if (trial->loss != LOSS_WEIGHTED)
        return (int)index == trial->loss;
    return 0.5 + check_uniform(&state);
}

static int is_float(uint32_t dtype)
{
    return (HOB_MASK_FLOAT & HOB_DTYPE_BIT(dtype)) != 0;
}

/* ---- the loss without autodiff ---- */

static double loss_of(const struct trial *trial,
                      const struct check_outcome *outcome)
{
    double loss = 0;

    for (uint32_t r = 0; r < outcome->count; r++) {
        uint32_t dtype = outcome->metas[r].dtype;
        uint32_t size = hob_dtype_size(dtype);

        if (!outcome->data[r] || !is_float(dtype))
            continue;
        for (uint64_t i = 0; i < outcome->bytes[r] / size; i++)
            loss +=
                weight(trial, r, (int64_t)i) *
                check_decode(dtype, (const char *)outcome->data[r] + i * size);
    }
    return loss;
}

static double loss_at(struct trial *trial, const struct input *input,
                      int64_t at, double bump)
{
    struct check_case one = trial->one;
    struct check_outcome outcome;
    double loss;

    one.bump_param = (int)input->param;
    one.bump_item = (int)input->item;
    one.bump_at = at;
    one.bump = bump;
    check_call(trial->lab, trial->lab->base, &one, 0, &outcome);
    loss = outcome.status ? NAN : loss_of(trial, &outcome);
    check_outcome_release(&outcome);
    return loss;
}

static double difference(struct trial *trial, const struct input *input,
                         int64_t at, double step)
{
    return (loss_at(trial, input, at, step) -
            loss_at(trial, input, at, -step)) /
           (2 * step);
}

static double slope_at(struct trial *trial, const struct input *input,
                       int64_t at)
{
    double wide = difference(trial, input, at, trial->step);
    double half = difference(trial, input, at, trial->step / 2);
    double narrow = difference(trial, input, at, trial->step / 16);
    double near = 30 * trial->tolerance * (1 + fabs(half));

    if (!(fabs(wide - half) <= near && fabs(narrow - half) <= near))
        return NAN;
    return (4 * half - wide) / 3;
}

/* Returns whether any slope is worth comparing. */
static int find_slopes(struct trial *trial)
{
    int found = 0;

    for (uint32_t i = 0; i < trial->input_count; i++)
        for (int64_t k = 0; k < elements_of(&trial->inputs[i]); k++) {
            int64_t at = element_at(trial->inputs[i].count, k);

            trial->slopes[i][k] = slope_at(trial, &trial->inputs[i], at);
            found |= trial->slopes[i][k] == trial->slopes[i][k];
        }
    return found;
}

/* ---- the loss with autodiff ---- */

/* Constant weights of RESULT on its device. */
static hob_tensor *weights_like(const struct trial *trial, hob_scope *scope,
                                hob_tensor *result, uint32_t index)
{
    int64_t count = hob_tensor_count(result);
    double *values = calloc((size_t)count + 1, sizeof(*values));
    hob_tensor *tensor = NULL;

    for (int64_t i = 0; values && i < count; i++)
        values[i] = weight(trial, index, i);
    if (values)
        tensor =
            hob_from_f64(scope, hob_tensor_device(result), values,
                         hob_tensor_shape(result), hob_tensor_rank(result));
    free(values);
    return tensor ? hob_cast(scope, tensor, hob_tensor_dtype(result)) : NULL;
}

/* The tensor to call hob_backward() on; NULL if no gradient flows to it. */
static hob_tensor *total(const struct trial *trial, hob_scope *scope,
                         hob_tensor *const *out, uint32_t count)
{
    hob_tensor *sum = NULL;

    for (uint32_t r = 0; r < count; r++) {
        hob_tensor *part;

        if (!out[r] || !is_float(hob_tensor_dtype(out[r])) ||
            !hob_is_tracked(out[r]))
            continue;
        if (trial->loss != LOSS_WEIGHTED && (int)r != trial->loss)
            continue;
        if (trial->loss != LOSS_WEIGHTED)
            return out[r];
        part = weights_like(trial, scope, out[r], r);
        part = part ? hob_sum(scope, hob_mul(scope, out[r], part)) : NULL;
        sum = sum && part ? hob_add(scope, sum, part) : part;
    }
    return sum;
}

static void compare_grad(struct trial *trial, const struct input *input,
                         const double *slopes, hob_tensor *grad,
                         const char *where)
{
    const struct hob__param *param =
        &trial->lab->op->signature.params[input->param];
    double *values = calloc((size_t)input->count + 1, sizeof(*values));
    hob_error error = HOB_ERROR_INIT;

    if (values && grad && hob_read_f64(grad, values, input->count, &error)) {
        check_found(trial->lab->child, CHECK_GRADIENT,
                    "on %s, the gradient of %s cannot be read: %s", where,
                    param->name, hob__error_text(&error));
        hob_error_release(&error);
        free(values);
        return;
    }
    for (int64_t k = 0; values && k < elements_of(input); k++) {
        int64_t at = element_at(input->count, k);
        double wanted = slopes[k];

        if (wanted != wanted ||
            fabs(values[at] - wanted) <= trial->tolerance * (1 + fabs(wanted)))
            continue;
        check_found(trial->lab->child, CHECK_GRADIENT,
                    "on %s, the gradient of %s[%lld] is %.9g%s, finite "
                    "differences give %.9g",
                    where, param->name, (long long)at, values[at],
                    grad ? "" : " (none arrived)", wanted);
        break;
    }
    free(values);
}

static void read_grads(struct trial *trial, hob_scope *scope,
                       hob_tensor *const *leaves, const hob_grads *grads,
                       const char *where)
{
    for (uint32_t i = 0; i < trial->input_count; i++) {
        hob_error error = HOB_ERROR_INIT;
        hob_tensor *grad = NULL;

        if (!leaves[i])
            continue;
        if (grads && hob_grad(scope, leaves[i], grads, &grad, &error))
            check_found(trial->lab->child, CHECK_GRADIENT, "on %s: %s", where,
                        hob__error_text(&error));
        else
            compare_grad(trial, &trial->inputs[i], trial->slopes[i], grad,
                         where);
        hob_error_release(&error);
    }
}

/* Results with a history are as without one. */
static void compare_forward(struct trial *trial, hob_scope *scope,
                            hob_tensor *const *out, uint32_t count,
                            const char *where)
{
    struct check_outcome wanted;

    check_call(trial->lab, trial->lab->base, &trial->one, 0, &wanted);
    for (uint32_t r = 0; r < count && r < wanted.count; r++) {
        struct check_outcome got;
        struct check_outcome only;
        hob_error error = HOB_ERROR_INIT;
        hob_tensor *plain = out[r] ? hob_detach(scope, out[r]) : NULL;
        char why[WHY];

        memset(&got, 0, sizeof(got));
        memset(&only, 0, sizeof(only));
        got.count = only.count = 1;
        got.present[0] = plain != NULL;
        only.present[0] = wanted.present[r];
        only.metas[0] = wanted.metas[r];
        only.data[0] = wanted.data[r];
        only.bytes[0] = wanted.bytes[r];
        if (plain && !hob__tensor_check(plain, &error)) {
            got.metas[0] = hob__tensor_meta(plain);
            if (hob__meta_bytes(&got.metas[0], &got.bytes[0]))
                got.bytes[0] = 0;
            got.data[0] = got.bytes[0] ? malloc(got.bytes[0]) : NULL;
            if (got.data[0] &&
                hob__tensor_download(plain, got.data[0], got.bytes[0], &error))
                got.status = HOB_ERR_INTERNAL;
        }
        if (!check_same_metas(&got, &only, 1, why, sizeof(why)))
            check_found(trial->lab->child, CHECK_METADATA,
                        "with tracked arguments on %s, result %u: %s", where, r,
                        why);
        else if (!check_near(trial->lab, &got, &only, why, sizeof(why)))
            check_found(trial->lab->child, CHECK_LAYERS,
                        "with tracked arguments on %s, result %u: %s", where, r,
                        why);
        hob_error_release(&error);
        free(got.data[0]);
    }
    check_outcome_release(&wanted);
}

/* Call the op with the inputs of bits PATTERN tracked and go back. */
static void check_pattern(struct trial *trial, hob_device *device,
                          uint32_t pattern, const char *where)
{
    struct check_lab *lab = trial->lab;
    hob_scope *scope = hob_scope_open(lab->runtime);
    hob_tensor *out[HOB_MAX_RESULTS] = {NULL}, *leaves[INPUTS_MAX] = {NULL};
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    hob_tensor *loss = NULL;
    struct check_args args;
    uint32_t count = 0;
    hob_status status;

    check_tell_case(lab, &trial->one, 0);
    status = check_args_make(lab, scope, device, &trial->one, &args, &error);
    for (uint32_t i = 0; i < trial->input_count && !status; i++) {
        const struct input *input = &trial->inputs[i];
        hob_tensor **slot = &args.tensors[input->param][input->item];

        if (!(pattern & (UINT32_C(1) << i)))
            continue;
        leaves[i] = hob_require_grad(scope, *slot);
        *slot = leaves[i];
        if (lab->op->signature.params[input->param].type == HOB__TYPE_TENSOR)
            args.values[input->param] = hob_value_tensor(leaves[i]);
    }
    if (!status)
        status = check_invoke(lab, scope, &args, out, &count, NULL);
    if (!status) {
        compare_forward(trial, scope, out, count, where);
        loss = total(trial, scope, out, count);
    }
    if (!status && loss)
        status = hob_backward(scope, loss, 0, &grads, &error);
    if (status && !error.message)
        (void)hob_scope_error(scope, &error);
    if (status)
        check_found(lab->child, CHECK_GRADIENT, "on %s, it fails: %s", where,
                    hob__error_text(&error));
    else
        read_grads(trial, scope, leaves, grads, where);
    hob_error_release(&error);
    hob_grads_free(grads);
    hob_scope_close(scope);
}

static void check_patterns(struct trial *trial, hob_device *device,
                           const char *where)
{
    uint32_t all = (UINT32_C(1) << trial->input_count) - 1;

    check_pattern(trial, device, all, where);
    if (trial->input_count <= 4) {
        for (uint32_t pattern = 1; pattern < all; pattern++)
            check_pattern(trial, device, pattern, where);
        return;
    }
    for (uint32_t i = 0; i < trial->input_count; i++) {
        check_pattern(trial, device, UINT32_C(1) << i, where);
        check_pattern(trial, device, all & ~(UINT32_C(1) << i), where);
    }
}

/* ---- the check ---- */

static void use_f32_step(struct trial *trial)
{
    trial->step = 0x1p-6;
    trial->tolerance = 1e-2;
}

/* Make TRIAL's case and its inputs in f64, or in f32 where that is all. */
static int prepare(struct trial *trial, struct check_lab *lab,
                   const struct check_plan *plan)
{
    const struct hob__signature *signature = &lab->op->signature;
    struct check_outcome outcome;

    memset(trial, 0, sizeof(*trial));
    trial->lab = lab;
    trial->loss = LOSS_WEIGHTED;
    check_case_init(lab, &trial->one, plan);
    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct check_arg *arg = &plan->args[i];

        if (!check_is_tensor(&signature->params[i]) || !arg->present ||
            !(signature->params[i].mask & HOB_DTYPE_BIT(HOB_DTYPE_F64)))
            continue;
        check_case_dtype(lab, &trial->one, i, HOB_DTYPE_F64);
        for (uint32_t k = 0; k < arg->count; k++) {
            struct input *input = &trial->inputs[trial->input_count];

            if (trial->input_count == INPUTS_MAX)
                return 0;
            input->param = i;
            input->item = k;
            input->count = 1;
            for (uint32_t d = 0; d < arg->rank[k]; d++)
                input->count *= arg->shape[k][d];
            trial->input_count++;
        }
    }
    trial->step = 1e-4;
    trial->tolerance = 1e-5;
    check_call(lab, lab->base, &trial->one, 0, &outcome);
    if (check_is_refusal(outcome.status)) { /* no f64 here */
        for (uint32_t i = 0; i < trial->input_count; i++)
            check_case_dtype(lab, &trial->one, trial->inputs[i].param,
                             HOB_DTYPE_F32);
        use_f32_step(trial);
    }
    check_outcome_release(&outcome);
    return trial->input_count > 0;
}

/* How many results are float; a narrow one needs a wide step. */
static int float_results(struct trial *trial)
{
    struct check_outcome outcome;
    int floats = 0;

    check_call(trial->lab, trial->lab->base, &trial->one, 0, &outcome);
    for (uint32_t r = 0; !outcome.status && r < outcome.count; r++) {
        uint32_t dtype = outcome.metas[r].dtype;

        if (!outcome.present[r] || !is_float(dtype))
            continue;
        floats++;
        if (dtype == HOB_DTYPE_F32)
            use_f32_step(trial);
        else if (dtype != HOB_DTYPE_F64) /* too coarse for differences */
            floats = INT32_MIN;
    }
    check_outcome_release(&outcome);
    return floats > 0 ? floats : 0;
}

static void check_plan_gradient(struct trial *trial, struct check_lab *lab,
                                const struct check_plan *plan,
                                hob_device *const *devices,
                                const char *const *names, uint32_t count)
{
    int results;

    if (plan->is_empty || !prepare(trial, lab, plan))
        return;
    results = float_results(trial);
    if (!results || !find_slopes(trial))
        return;
    for (uint32_t d = 0; d < count; d++)
        if (devices[d])
            check_patterns(trial, devices[d], names[d]);
    /* One result alone: the gradients of the others are absent. */
    for (int r = 0; r < (int)lab->op->signature.result_count && devices[0];
         r++) {
        trial->loss = r;
        if (find_slopes(trial))
            check_pattern(trial, devices[0],
                          (UINT32_C(1) << trial->input_count) - 1, names[0]);
    }
}

void check_gradients(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    struct trial *trial = calloc(1, sizeof(*trial));
    hob_device *devices[2] = {NULL, NULL};
    char texts[2][2 * CHECK_NAME];
    const char *names[2] = {texts[0], texts[1]};

    if (trial && !lab->hints->no_gradients && check_lists_autodiff(lab)) {
        for (uint32_t d = 0; d < 2; d++) {
            (void)snprintf(texts[d], sizeof(texts[d]),
                           d ? "autodiff{checkpoint=balanced}(%s)"
                             : "autodiff(%s)",
                           lab->child->device);
            devices[d] = check_lab_device(lab, texts[d]);
        }
        for (uint32_t i = 0; i < shared->plan_count; i++)
            check_plan_gradient(trial, lab, &shared->plans[i], devices, names,
                                2);
    }
    hob_device_unref(devices[0]);
    hob_device_unref(devices[1]);
    free(trial);
}
