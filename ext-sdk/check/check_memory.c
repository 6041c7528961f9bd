/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_memory.c - what a call does to memory: arguments, garbage, bounds,
 * what stays behind, and what happens when there is none.
 */
#include "check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WHY = 400, FAILURES_MAX = 100, REPEATS = 8 };

/* ---- arguments ---- */

static void check_written(struct check_lab *lab, const struct check_case *one)
{
    struct check_outcome outcome;

    check_call(lab, lab->device, one, CHECK_WATCH | CHECK_SEAL, &outcome);
    if (outcome.written >= 0)
        check_found(lab->child, CHECK_ARGUMENT_WRITTEN,
                    "the call changed argument %s",
                    lab->op->signature.params[outcome.written].name);
    check_outcome_release(&outcome);
}

/* The last use of an argument lets the core give its memory to a result. */
static void check_moved(struct check_lab *lab, const struct check_case *one)
{
    struct check_outcome moved, kept;
    char why[WHY];

    check_call(lab, lab->device, one, 0, &kept);
    check_call(lab, lab->device, one, CHECK_MOVE, &moved);
    if (!check_same(&moved, &kept, why, sizeof(why)))
        check_found(lab->child, CHECK_IN_PLACE,
                    "with arguments used for the last time, %s", why);
    check_outcome_release(&moved);
    check_outcome_release(&kept);
}

void check_arguments(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    struct check_case one;

    for (uint32_t i = 0; i < shared->plan_count; i++) {
        check_case_init(lab, &one, &shared->plans[i]);
        if (!lab->child->op->is_free)
            check_moved(lab, &one);
    }
    lab->memory->fence = CHECK_FENCE_BEHIND;
    for (uint32_t i = 0; i < shared->plan_count; i++) {
        check_case_init(lab, &one, &shared->plans[i]);
        check_written(lab, &one);
        for (uint32_t p = 0; p < HOB_MAX_PARAMS; p++)
            one.layout[p] = CHECK_STEPPED;
        check_written(lab, &one);
    }
}

/* ---- garbage and bounds ---- */

static void check_garbage(struct check_lab *lab, const struct check_case *one)
{
    static const uint8_t fills[] = {0x00, 0xff, 0x42};
    struct check_outcome first, other;
    char why[WHY];

    lab->memory->fill = fills[0];
    check_call(lab, lab->device, one, 0, &first);
    for (uint32_t i = 1; i < sizeof(fills); i++) {
        lab->memory->fill = fills[i];
        check_call(lab, lab->device, one, 0, &other);
        if (!lab->child->op->is_free &&
            !check_same(&other, &first, why, sizeof(why)))
            check_found(lab->child, CHECK_GARBAGE,
                        "with results and workspace full of %#x at first, "
                        "not of 0, %s",
                        fills[i], why);
        check_outcome_release(&other);
    }
    check_outcome_release(&first);
}

static void check_buffer(struct check_lab *lab, const struct check_plan *plan)
{
    struct check_outcome outcome;
    struct check_case one;

    check_case_init(lab, &one, plan);
    check_garbage(lab, &one);
    for (uint32_t p = 0; p < lab->op->signature.param_count; p++)
        if (check_is_tensor(&lab->op->signature.params[p]) &&
            (lab->op->signature.params[p].mask & HOB_DTYPE_BIT(HOB_DTYPE_F64)))
            check_case_dtype(lab, &one, p, HOB_DTYPE_F64);
    check_garbage(lab, &one);
    /* Fences end the process at the first touch: last. */
    for (uint8_t layout = 0; layout < 2 * CHECK_LAYOUT_COUNT_; layout++) {
        check_case_init(lab, &one, plan);
        memset(one.layout, layout / 2, sizeof(one.layout));
        lab->memory->fence =
            layout % 2 ? CHECK_FENCE_BEFORE : CHECK_FENCE_BEHIND;
        check_call(lab, lab->device, &one, 0, &outcome);
        check_outcome_release(&outcome);
    }
    lab->memory->fence = CHECK_NO_FENCE;
}

void check_buffers(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    struct check_plan larger;

    for (uint32_t i = 0; i < shared->plan_count; i++) {
        check_buffer(lab, &shared->plans[i]);
        if (!shared->plans[i].is_empty &&
            check_enlarge(lab, &shared->plans[i], &larger))
            check_buffer(lab, &larger);
    }
}

/* ---- what stays ---- */

struct counts {
    int64_t of[4];
};

static const char *const count_names[] = {
    "tensor handles", "blocks of the device", "blocks of host->mem_alloc",
    "blocks of malloc"};

static struct counts count_now(struct check_lab *lab)
{
    struct counts now = {{hob__slab_live(&lab->runtime->tensors),
                          lab->memory->live_blocks,
                          atomic_load(&lab->memory->live_host),
                          atomic_load(&lab->memory->live_heap)}};

    return now;
}

/* Report what grew by at least LEAST in TIMES calls. Caches may grow. */
static void check_growth(struct check_lab *lab, const struct counts *before,
                         int64_t least, int times, const char *when)
{
    struct counts after = count_now(lab);

    for (uint32_t i = 0; i < 4; i++)
        if (after.of[i] - before->of[i] >= least)
            check_found(lab->child, CHECK_LEAK,
                        "%d calls%s left %" PRId64 " %s", times, when,
                        after.of[i] - before->of[i], count_names[i]);
}

static void call_times(struct check_lab *lab, hob_device *device,
                       const struct check_case *one, int times,
                       check_call_fn *call)
{
    struct check_outcome outcome;

    for (int i = 0; i < times; i++) {
        call(lab, device, one, 0, &outcome);
        check_outcome_release(&outcome);
    }
}

static void check_leak(struct check_lab *lab, hob_device *device,
                       const struct check_case *one, const char *when,
                       check_call_fn *call)
{
    struct counts before;

    call_times(lab, device, one, 3, call);
    before = count_now(lab);
    call_times(lab, device, one, REPEATS, call);
    check_growth(lab, &before, REPEATS, REPEATS, when);
}

void check_leaks(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    hob_device *autodiff = check_autodiff_device(lab);
    struct check_case one;

    for (uint32_t i = 0; i < shared->plan_count; i++) {
        check_case_init(lab, &one, &shared->plans[i]);
        check_leak(lab, lab->device, &one, "", check_call);
        if (autodiff)
            check_leak(lab, autodiff, &one, " with backward", check_backward);
        one.special = 2; /* most likely a failure, where there are indices */
        check_leak(lab, lab->device, &one, " with extreme values", check_call);
    }
    hob_device_unref(autodiff);
}

/* ---- no memory ---- */

/* Whether the N-th request was made, and failed. */
static int fail_nth(struct check_lab *lab, hob_device *device,
                    const struct check_case *one, uint64_t n,
                    const struct check_outcome *wanted, check_call_fn *call)
{
    struct check_outcome outcome;
    struct counts before;
    char why[WHY];
    int failed = 0;

    for (int i = 0; i < 3; i++) {
        if (i == 1)
            before = count_now(lab);
        lab->memory->fail_at = n;
        call(lab, device, one, CHECK_ARM, &outcome);
        lab->memory->fail_at = 0;
        failed = atomic_load(&lab->memory->requests) >= n;
        if (failed && !outcome.status &&
            !check_same(&outcome, wanted, why, sizeof(why)))
            check_found(lab->child, CHECK_ALLOC_FAILURE,
                        "allocation %" PRIu64 " of the call failed, the call "
                        "did not, and %s",
                        n, why);
        else if (failed && outcome.status &&
                 strstr(outcome.message, "failed without a message"))
            check_failure(lab, &outcome, "with a failed allocation");
        check_outcome_release(&outcome);
        if (!failed)
            return 0;
    }
    check_growth(lab, &before, 2, 2, " in which an allocation failed");
    return failed;
}

static void fail_each(struct check_lab *lab, hob_device *device,
                      const struct check_case *one, check_call_fn *call)
{
    struct check_outcome wanted;
    uint64_t n = 1;

    call_times(lab, device, one, 2, call);
    call(lab, device, one, 0, &wanted);
    while (!wanted.status && n <= FAILURES_MAX &&
           fail_nth(lab, device, one, n, &wanted, call))
        n++;
    check_outcome_release(&wanted);
}

void check_allocations(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    hob_device *autodiff = check_autodiff_device(lab);
    struct check_case one;

    for (uint32_t i = 0; i < shared->plan_count; i++) {
        check_case_init(lab, &one, &shared->plans[i]);
        fail_each(lab, lab->device, &one, check_call);
        if (autodiff)
            fail_each(lab, autodiff, &one, check_backward);
    }
    hob_device_unref(autodiff);
}
