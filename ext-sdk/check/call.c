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

static void read_result(struct check_outcome *outcome, uint32_t index,
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

static void run_op(struct check_lab *lab, hob_scope *scope,
                   struct check_args *args, uint32_t how,
                   struct check_outcome *outcome)
{
    hob_tensor *out[HOB_MAX_RESULTS] = {NULL};
    hob_error error = HOB_ERROR_INIT;
    struct mode mode = mode_now();
    uint32_t count = 0;

    if (how & CHECK_ARM) {
        atomic_store(&lab->memory->requests, 0);
        atomic_store(&lab->memory->is_armed, 1);
    }
    outcome->status = hob_call_op(scope, lab->op->id, args->values,
                                  lab->op->signature.param_count, out,
                                  HOB_MAX_RESULTS, &count);
    atomic_store(&lab->memory->is_armed, 0);
    check_mode(lab, mode, (how & CHECK_QUIET) != 0);
    if (outcome->status) {
        (void)hob_scope_error(scope, &error);
        (void)snprintf(outcome->message, sizeof(outcome->message), "%s",
                       hob__error_text(&error));
        hob_error_release(&error);
        return;
    }
    outcome->count = count;
    for (uint32_t i = 0; i < count; i++)
        read_result(outcome, i, out[i]);
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
    atomic_fetch_add(&lab->child->shared->runs, 1);
    if (!(how & CHECK_QUIET)) {
        check_case_text(lab, one, lab->child->shared->sample,
                        sizeof(lab->child->shared->sample));
        memory->broken[0] = '\0';
    }
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

/* ---- comparing ---- */

int check_same_metas(const struct check_outcome *a,
                     const struct check_outcome *b, int is_strict, char *why,
                     size_t size)
{
    char first[HOB__META_TEXT], second[HOB__META_TEXT];

    for (uint32_t i = 0; i < a->count; i++) {
        struct hob_meta have = a->metas[i], want = b->metas[i];

        /* The other side may have been computed in f64. */
        if (!is_strict && (HOB_MASK_FLOAT & HOB_DTYPE_BIT(want.dtype)) &&
            (HOB_MASK_FLOAT & HOB_DTYPE_BIT(have.dtype)))
            want.dtype = have.dtype;
        if (a->present[i] != b->present[i]) {
            (void)snprintf(why, size, "result %u is %s, not %s", i,
                           a->present[i] ? "there" : "absent",
                           b->present[i] ? "there" : "absent");
            return 0;
        }
        if (have.dtype == want.dtype && have.rank == want.rank &&
            !memcmp(have.shape, want.shape, have.rank * sizeof(int64_t)))
            continue;
        (void)snprintf(why, size, "result %u is %s, not %s", i,
                       hob__meta_text(&have, first, sizeof(first)),
                       hob__meta_text(&b->metas[i], second, sizeof(second)));
        return 0;
    }
    return 1;
}

/* Both failed in the same way, or both came to something: go on comparing. */
static int same_status(const struct check_outcome *a,
                       const struct check_outcome *b, char *why, size_t size)
{
    if (a->status == b->status && a->count == b->count)
        return 1;
    if (a->status)
        (void)snprintf(why, size, "it fails with %s: %s",
                       hob_status_name(a->status), a->message);
    else
        (void)snprintf(why, size, "it succeeds, else it fails with %s: %s",
                       hob_status_name(b->status), b->message);
    return 0;
}

static int is_nan(double value)
{
    return value != value;
}

int check_same(const struct check_outcome *a, const struct check_outcome *b,
               char *why, size_t size)
{
    if (!same_status(a, b, why, size) || !check_same_metas(a, b, 1, why, size))
        return 0;
    for (uint32_t i = 0; i < a->count; i++) {
        uint32_t dtype = a->metas[i].dtype, width = hob_dtype_size(dtype);

        for (uint64_t at = 0; a->data[i] && at < a->bytes[i]; at += width) {
            const char *x = (const char *)a->data[i] + at;
            const char *y = (const char *)b->data[i] + at;

            if (!memcmp(x, y, width) || (is_nan(check_decode(dtype, x)) &&
                                         is_nan(check_decode(dtype, y))))
                continue;
            (void)snprintf(why, size,
                           "element %llu of result %u is %.9g, "
                           "not %.9g",
                           (unsigned long long)(at / width), i,
                           check_decode(dtype, x), check_decode(dtype, y));
            return 0;
        }
    }
    return 1;
}

double check_tolerance(const struct check_lab *lab, uint32_t dtype)
{
    /* Sizes are small, so sums are short: some tens of roundings. A body in
     * a narrow dtype rounds after each of its ops. */
    static const double defaults[HOB_DTYPE_COUNT_] = {[HOB_DTYPE_F64] = 1e-10,
                                                      [HOB_DTYPE_F32] = 2e-5,
                                                      [HOB_DTYPE_F16] = 1e-2,
                                                      [HOB_DTYPE_BF16] = 8e-2};

    return lab->hints->tolerance[dtype] > 0 ? lab->hints->tolerance[dtype]
                                            : defaults[dtype];
}

static double magnitude(const struct check_outcome *outcome, uint32_t index)
{
    uint32_t dtype = outcome->metas[index].dtype;
    uint32_t width = hob_dtype_size(dtype);
    double most = 1;

    for (uint64_t at = 0; outcome->data[index] && at < outcome->bytes[index];
         at += width) {
        double value =
            check_decode(dtype, (const char *)outcome->data[index] + at);
        double size = value < 0 ? -value : value;

        if (size > most && size < 1e300)
            most = size;
    }
    return most;
}

static int near_result(const struct check_lab *lab,
                       const struct check_outcome *got,
                       const struct check_outcome *wanted, uint32_t index,
                       char *why, size_t size)
{
    uint32_t dtype = got->metas[index].dtype;
    uint32_t other = wanted->metas[index].dtype;
    uint32_t width = hob_dtype_size(dtype), other_width = hob_dtype_size(other);
    double tolerance = check_tolerance(lab, dtype) * magnitude(wanted, index);
    uint64_t count = got->data[index] ? got->bytes[index] / width : 0;

    for (uint64_t i = 0; i < count; i++) {
        double x =
            check_decode(dtype, (const char *)got->data[index] + i * width);
        double y = check_decode(other, (const char *)wanted->data[index] +
                                           i * other_width);
        double distance = x > y ? x - y : y - x;

        if (x == y || (is_nan(x) && is_nan(y)) || distance <= tolerance)
            continue;
        (void)snprintf(why, size,
                       "element %llu of result %u is %.9g, not %.9g "
                       "(tolerance %.2g)",
                       (unsigned long long)i, index, x, y, tolerance);
        return 0;
    }
    return 1;
}

int check_near(const struct check_lab *lab, const struct check_outcome *got,
               const struct check_outcome *wanted, char *why, size_t size)
{
    if (!same_status(got, wanted, why, size) ||
        !check_same_metas(got, wanted, 0, why, size))
        return 0;
    for (uint32_t i = 0; i < got->count; i++)
        if (!near_result(lab, got, wanted, i, why, size))
            return 0;
    return 1;
}

/* ---- failures ---- */

int check_is_refusal(hob_status status)
{
    return status == HOB_ERR_ARGUMENT || status == HOB_ERR_SHAPE ||
           status == HOB_ERR_DTYPE || status == HOB_ERR_RANGE ||
           status == HOB_ERR_UNSUPPORTED;
}

void check_failure(struct check_lab *lab, const struct check_outcome *outcome,
                   const char *where)
{
    /* How the core fills in for a plugin that said nothing (base.c,
     * boundary.c, dispatch.c). */
    static const char *const silent[] = {
        "failed without a message", "failed with HOB_", "failed with ?",
        "cannot be prepared: HOB_", "cannot be prepared: ?"};
    const char *text = outcome->message;

    if (!outcome->status)
        return;
    for (uint32_t i = 0; i < sizeof(silent) / sizeof(silent[0]); i++)
        if (strstr(text, silent[i])) {
            check_found(lab->child, CHECK_NO_MESSAGE, "%s: %s", where, text);
            return;
        }
    if (strstr(text, "inferred was"))
        check_found(lab->child, CHECK_METADATA, "%s: %s", where, text);
    else if (!check_is_refusal(outcome->status))
        check_found(lab->child, CHECK_FAILS, "%s: %s: %s", where,
                    hob_status_name(outcome->status), text);
}
