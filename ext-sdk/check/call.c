/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call.c - one call in the lab, and what came of it.
 */
#include "check.h"

#include "error.h"

#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* ---- the thread's floating-point mode ---- */

struct mode {
    int rounding;
    uint32_t control; /* flush to zero and masks, without the sticky flags */
};

static struct mode mode_now(void)
{
    struct mode mode = {fegetround(), 0};

#if defined(__x86_64__)
    mode.control = _mm_getcsr() & ~UINT32_C(0x3f);
#endif
    return mode;
}

static void check_mode(struct check_lab *lab, struct mode before, int is_quiet)
{
    struct mode after = mode_now();

    if (after.rounding == before.rounding && after.control == before.control)
        return;
    if (!is_quiet)
        check_found(lab->child, CHECK_FP_MODE,
                    "after the call the thread's rounding mode is %d, not %d, "
                    "and its control register %#x, not %#x",
                    after.rounding, before.rounding, (unsigned)after.control,
                    (unsigned)before.control);
    (void)fesetround(before.rounding);
#if defined(__x86_64__)
    _mm_setcsr(before.control);
#endif
}

/* ---- the bytes of arguments ---- */

struct watch {
    unsigned char *bytes[HOB_MAX_PARAMS][CHECK_LIST_MAX];
    uint64_t size[HOB_MAX_PARAMS][CHECK_LIST_MAX];
};

/* The whole memory behind TENSOR, gaps included; the caller frees it. */
static unsigned char *storage_bytes(hob_tensor *tensor, uint64_t *out_size)
{
    const struct hob_storage *storage = tensor->view.storage;
    unsigned char *bytes;

    *out_size = storage ? storage->bytes : 0;
    bytes = malloc(*out_size ? *out_size : 1);
    if (bytes && *out_size &&
        storage->base->backend->download(storage->base->instance, bytes,
                                         storage->data, *out_size)) {
        free(bytes);
        bytes = NULL;
    }
    return bytes;
}

static void watch_take(struct watch *watch, const struct check_args *args)
{
    memset(watch, 0, sizeof(*watch));
    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
        for (uint32_t k = 0; k < CHECK_LIST_MAX; k++)
            if (args->tensors[i][k])
                watch->bytes[i][k] =
                    storage_bytes(args->tensors[i][k], &watch->size[i][k]);
}

/* The parameter whose bytes changed, or -1; frees WATCH's copies. */
static int watch_compare(struct watch *watch, const struct check_args *args)
{
    int changed = -1;

    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
        for (uint32_t k = 0; k < CHECK_LIST_MAX; k++) {
            uint64_t size = 0;
            unsigned char *now;

            if (!watch->bytes[i][k])
                continue;
            now = storage_bytes(args->tensors[i][k], &size);
            if (changed < 0 && now && memcmp(now, watch->bytes[i][k], size))
                changed = (int)i;
            free(now);
            free(watch->bytes[i][k]);
        }
    return changed;
}

/* ---- results ---- */

void check_outcome_read(struct check_outcome *outcome, uint32_t index,
                        hob_tensor *tensor)
{
    hob_error error = HOB_ERROR_INIT;
    uint64_t bytes = 0;

    outcome->present[index] = tensor != NULL;
    if (!tensor || outcome->status)
        return;
    outcome->status = hob__tensor_check(tensor, &error);
    if (!outcome->status) {
        outcome->metas[index] = hob__tensor_meta(tensor);
        outcome->status = hob__meta_bytes(&outcome->metas[index], &bytes);
    }
    if (!outcome->status && bytes) {
        outcome->data[index] = malloc(bytes);
        outcome->status = outcome->data[index]
                              ? hob__tensor_download(
                                    tensor, outcome->data[index], bytes, &error)
                              : HOB_ERR_MEMORY;
    }
    outcome->bytes[index] = bytes;
    if (outcome->status)
        (void)snprintf(outcome->message, sizeof(outcome->message),
                       "result %u cannot be read: %s", index,
                       hob__error_text(&error));
    hob_error_release(&error);
}

void check_outcome_release(struct check_outcome *outcome)
{
    for (uint32_t i = 0; i < HOB_MAX_RESULTS; i++)
        free(outcome->data[i]);
    memset(outcome, 0, sizeof(*outcome));
}

void check_tell_case(struct check_lab *lab, const struct check_case *one,
                     uint32_t how)
{
    struct check_shared *shared = lab->child->shared;

    atomic_fetch_add(&shared->runs, 1);
    atomic_fetch_add(&shared->steps, 1);
    if (how & CHECK_QUIET)
        return;
    check_case_text(lab, one, shared->sample, sizeof(shared->sample));
    shared->now_plan = *one->plan;
    shared->now = *one;
    shared->has_now = 1;
    lab->memory->broken[0] = '\0';
}

void check_arm(struct check_lab *lab, uint32_t how)
{
    if (!(how & CHECK_ARM))
        return;
    atomic_store(&lab->memory->requests, 0);
    atomic_store(&lab->memory->is_armed, 1);
}

void check_disarm(struct check_lab *lab)
{
    atomic_store(&lab->memory->is_armed, 0);
}

hob_status check_invoke(struct check_lab *lab, hob_scope *scope,
                        const struct check_args *args, hob_tensor **out,
                        uint32_t *out_count, hob_value *plains)
{
    return lab->runtime->host.callv(
        scope, lab->op->id, args->values, lab->op->signature.param_count, out,
        HOB_MAX_RESULTS, out_count, plains, plains ? HOB_MAX_RESULTS : 0);
}

static void run_op(struct check_lab *lab, hob_scope *scope,
                   struct check_args *args, uint32_t how,
                   struct check_outcome *outcome)
{
    hob_tensor *out[HOB_MAX_RESULTS] = {NULL};
    hob_error error = HOB_ERROR_INIT;
    struct mode mode = mode_now();
    uint32_t count = 0;

    check_arm(lab, how);
    outcome->status =
        check_invoke(lab, scope, args, out, &count, outcome->plains);
    check_disarm(lab);
    check_mode(lab, mode, (how & CHECK_QUIET) != 0);
    if (outcome->status) {
        (void)hob_scope_error(scope, &error);
        (void)snprintf(outcome->message, sizeof(outcome->message), "%s",
                       hob__error_text(&error));
        hob_error_release(&error);
        return;
    }
    outcome->count = count;
    outcome->plain_count = lab->op->signature.plain_count;
    for (uint32_t i = 0; i < count; i++)
        check_outcome_read(outcome, i, out[i]);
}

static void move_all(hob_scope *scope, const struct check_args *args)
{
    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
        for (uint32_t k = 0; k < CHECK_LIST_MAX; k++)
            if (args->tensors[i][k])
                (void)hob_move(scope, args->tensors[i][k]);
}

void check_call(struct check_lab *lab, hob_device *device,
                const struct check_case *one, uint32_t how,
                struct check_outcome *outcome)
{
    hob_scope *scope = hob_scope_open(lab->runtime);
    struct check_memory *memory = lab->memory;
    hob_error error = HOB_ERROR_INIT;
    struct check_args args;
    struct watch watch;

    memset(outcome, 0, sizeof(*outcome));
    outcome->written = -1;
    check_tell_case(lab, one, how);
    outcome->status =
        scope ? check_args_make(lab, scope, device, one, &args, &error)
              : HOB_ERR_MEMORY;
    if (outcome->status) {
        (void)snprintf(outcome->message, sizeof(outcome->message), "%s",
                       hob__error_text(&error));
        hob_error_release(&error);
        goto out;
    }
    if (how & CHECK_WATCH)
        watch_take(&watch, &args);
    if (how & CHECK_MOVE)
        move_all(scope, &args);
    if (how & CHECK_SEAL)
        check_memory_seal(memory, 1);
    run_op(lab, scope, &args, how, outcome);
    if (how & CHECK_SEAL)
        check_memory_seal(memory, 0);
    if (how & CHECK_WATCH)
        outcome->written = watch_compare(&watch, &args);
    if (!(how & CHECK_QUIET))
        check_memory_verify(memory);
out:
    hob_scope_close(scope);
    if (!(how & CHECK_QUIET) && memory->broken[0])
        check_found(lab->child, CHECK_OUT_OF_BOUNDS, "%s", memory->broken);
}
