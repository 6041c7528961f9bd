/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backward.c - a call with all its float arguments tracked, and back.
 */
#include "check.h"

#include "error.h"

#include <hob/autodiff.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_float(uint32_t dtype)
{
    return (HOB_MASK_FLOAT & HOB_DTYPE_BIT(dtype)) != 0;
}

int check_lists_autodiff(const struct check_lab *lab)
{
    const struct hob__manifest_op *manifest = lab->op->manifest;

    if (lab->child->op->is_free)
        return 0;
    if (!lab->op->is_extension) /* built-in ops hold everywhere */
        return !lab->child->op->is_foreign;
    for (uint32_t i = 0; manifest && i < manifest->selector_count; i++)
        if ((!strcmp(manifest->selectors[i].name, "autodiff") ||
             !strcmp(manifest->selectors[i].name, "*")) &&
            hob__loader_condition(lab->runtime->loader, lab->op->candidate,
                                  &manifest->selectors[i]))
            return 1;
    return 0;
}

hob_device *check_autodiff_device(struct check_lab *lab)
{
    char name[2 * CHECK_NAME];
    hob_device *device = NULL;

    (void)snprintf(name, sizeof(name), "autodiff(%s)", lab->child->device);
    if (lab->hints->no_gradients || !check_lists_autodiff(lab) ||
        hob_device_open(lab->runtime, name, &device, NULL))
        return NULL;
    return device;
}

/* Make the float arguments leaves. Returns how many there are. */
static uint32_t track(const struct check_lab *lab, hob_scope *scope,
                      struct check_args *args, hob_tensor **leaves)
{
    const struct hob__signature *signature = &lab->op->signature;
    uint32_t count = 0;

    for (uint32_t i = 0; i < signature->param_count; i++)
        for (uint32_t k = 0; k < CHECK_LIST_MAX; k++) {
            hob_tensor **slot = &args->tensors[i][k];

            if (!*slot || !is_float(hob_tensor_dtype(*slot)) ||
                count == HOB_MAX_RESULTS)
                continue;
            *slot = leaves[count++] = hob_require_grad(scope, *slot);
            if (signature->params[i].type == HOB__TYPE_TENSOR)
                args->values[i] = hob_value_tensor(*slot);
        }
    return count;
}

/* The sum of all tracked results; NULL if there is none. */
static hob_tensor *sum_all(hob_scope *scope, hob_tensor *const *out,
                           uint32_t count)
{
    hob_tensor *sum = NULL;

    for (uint32_t r = 0; r < count; r++) {
        hob_tensor *part;

        if (!out[r] || !is_float(hob_tensor_dtype(out[r])) ||
            !hob_is_tracked(out[r]))
            continue;
        part = hob_cast(scope, hob_sum(scope, out[r]), HOB_DTYPE_F64);
        sum = sum ? hob_add(scope, sum, part) : part;
    }
    return sum;
}

static void read_grad(hob_scope *scope, hob_tensor *leaf,
                      const hob_grads *grads, uint32_t index,
                      struct check_outcome *outcome, hob_error *error)
{
    hob_tensor *grad = NULL;
    hob_status status = hob_grad(scope, leaf, grads, &grad, error);

    outcome->present[index] = grad != NULL;
    if (!status && grad) {
        outcome->metas[index] = hob__tensor_meta(grad);
        status =
            hob__meta_bytes(&outcome->metas[index], &outcome->bytes[index]);
    }
    if (!status && grad && outcome->bytes[index]) {
        outcome->data[index] = malloc(outcome->bytes[index]);
        status = outcome->data[index]
                     ? hob__tensor_download(grad, outcome->data[index],
                                            outcome->bytes[index], error)
                     : HOB_ERR_MEMORY;
    }
    if (status)
        outcome->status = status;
}

void check_backward(struct check_lab *lab, hob_device *device,
                    const struct check_case *one, uint32_t how,
                    struct check_outcome *outcome)
{
    hob_scope *scope = hob_scope_open(lab->runtime);
    hob_tensor *out[HOB_MAX_RESULTS] = {NULL}, *leaves[HOB_MAX_RESULTS];
    hob_error error = HOB_ERROR_INIT;
    hob_grads *grads = NULL;
    hob_tensor *loss = NULL;
    struct check_args args;
    uint32_t count = 0, inputs = 0;

    memset(outcome, 0, sizeof(*outcome));
    outcome->written = -1;
    check_tell_case(lab, one, how);
    outcome->status =
        scope ? check_args_make(lab, scope, device, one, &args, &error)
              : HOB_ERR_MEMORY;
    if (!outcome->status)
        inputs = track(lab, scope, &args, leaves);
    check_arm(lab, how);
    if (!outcome->status)
        outcome->status = check_invoke(lab, scope, &args, out, &count, NULL);
    if (!outcome->status)
        loss = sum_all(scope, out, count);
    if (!outcome->status && loss)
        outcome->status = hob_backward(scope, loss, 0, &grads, &error);
    check_disarm(lab);
    for (uint32_t i = 0; i < inputs && !outcome->status && grads; i++)
        read_grad(scope, leaves[i], grads, i, outcome, &error);
    if (outcome->status && !error.message && scope)
        (void)hob_scope_error(scope, &error);
    (void)snprintf(outcome->message, sizeof(outcome->message), "%s",
                   hob__error_text(&error));
    outcome->count = outcome->status || !grads ? 0 : inputs;
    hob_error_release(&error);
    hob_grads_free(grads);
    hob_scope_close(scope);
}
