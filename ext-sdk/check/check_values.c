/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_values.c - what a call computes: kernel against body, the same again,
 * other layouts, under decorators, extreme values.
 */
#include "check.h"

#include <stdio.h>
#include <string.h>

enum { WHY = 400, PLAN_STEP = 4 };

/* ---- kernel and body ---- */

/* The truth for ONE: the body, in f64 where it can. 0 if there is none. */
static int reference(struct check_lab *lab, const struct check_case *one,
                     struct check_outcome *out)
{
    struct check_case wide = *one;

    if (!lab->route.body)
        return 0;
    check_force(lab, CHECK_BODY);
    wide.as_f64 = 1;
    check_call(lab, lab->base, &wide, 0, out);
    if (out->status) {
        check_outcome_release(out);
        check_call(lab, lab->base, one, 0, out);
    }
    check_force(lab, CHECK_AS_ROUTED);
    return 1;
}

static void compare(struct check_lab *lab, const struct check_case *one,
                    const struct check_outcome *got)
{
    struct check_outcome wanted;
    char why[WHY];

    if (!reference(lab, one, &wanted)) {
        check_failure(lab, got, "the kernel");
        return;
    }
    if (got->status == HOB_ERR_DTYPE && strstr(got->message, "in its body"))
        check_found(lab->child, CHECK_FAILS,
                    "infer accepts the dtype, the body does not: %s",
                    got->message);
    else if (got->status && wanted.status)
        check_failure(lab, got, "the call");
    else if (got->status && lab->route.entry)
        check_found(lab->child, CHECK_FAILS,
                    "the kernel fails where the body does not: %s",
                    got->message);
    else if (got->status)
        check_failure(lab, got, "the body");
    else if (!wanted.status &&
             !check_same_metas(got, &wanted, 0, why, sizeof(why)))
        check_found(lab->child, CHECK_METADATA, "against the body, %s", why);
    else if (!wanted.status && lab->route.entry &&
             !check_near(lab, got, &wanted, why, sizeof(why)))
        check_found(lab->child, CHECK_DISAGREES, "%s", why);
    check_outcome_release(&wanted);
}

static void check_once(struct check_lab *lab, const struct check_case *one)
{
    struct check_outcome first, second;
    char why[WHY];

    check_force(lab, CHECK_AS_ROUTED);
    check_call(lab, lab->device, one, 0, &first);
    check_call(lab, lab->device, one, 0, &second);
    if (!lab->child->op->is_free &&
        !check_same(&second, &first, why, sizeof(why)))
        check_found(lab->child, CHECK_NOT_DETERMINISTIC, "called again, %s",
                    why);
    check_outcome_release(&second);
    if (!lab->child->op->is_free && lab->device == lab->base)
        compare(lab, one, &first);
    check_outcome_release(&first);
}

/* What infer says against what is there in the end. */
static void check_inferred(struct check_lab *lab, const struct check_case *one)
{
    struct check_outcome inferred, made;
    char why[WHY];

    if (lab->op->flags & HOB__OP_DYNAMIC)
        return;
    check_force(lab, CHECK_PROBE);
    check_call(lab, lab->device, one, 0, &inferred);
    check_force(lab, CHECK_AS_ROUTED);
    check_call(lab, lab->device, one, 0, &made);
    if (!inferred.status && !made.status &&
        (made.count != inferred.count ||
         !check_same_metas(&made, &inferred, 1, why, sizeof(why))))
        check_found(lab->child, CHECK_METADATA, "against infer, %s",
                    made.count == inferred.count ? why
                                                 : "the number of results "
                                                   "differs");
    check_outcome_release(&inferred);
    check_outcome_release(&made);
}

/* Call DO_IT for PLAN in each dtype of each kind of its parameters. */
static void each_dtype(struct check_lab *lab, const struct check_plan *plan,
                       void (*do_it)(struct check_lab *,
                                     const struct check_case *))
{
    const struct hob__signature *signature = &lab->op->signature;
    uint32_t done = 0; /* masks differ in these bits' sum: one each */
    struct check_case one;

    check_case_init(lab, &one, plan);
    do_it(lab, &one);
    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];

        if (!check_is_tensor(param) || !plan->args[i].present ||
            (done & (UINT32_C(1) << (param->mask % 31))))
            continue;
        done |= UINT32_C(1) << (param->mask % 31);
        for (uint32_t d = HOB_DTYPE_F64; d < HOB_DTYPE_QUANT; d++) {
            check_case_init(lab, &one, plan);
            if (!(param->mask & HOB_DTYPE_BIT(d)) || d == one.dtype[i])
                continue;
            check_case_dtype(lab, &one, i, d);
            do_it(lab, &one);
        }
    }
}

void check_values(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    struct check_plan larger;
    struct check_case one;

    for (uint32_t i = 0; i < shared->plan_count; i++) {
        const struct check_plan *plan = &shared->plans[i];

        check_case_init(lab, &one, plan);
        check_inferred(lab, &one);
        if (i % PLAN_STEP == 2 || shared->plan_count < PLAN_STEP) {
            each_dtype(lab, plan, check_once);
        } else {
            check_case_init(lab, &one, plan);
            check_once(lab, &one);
        }
        if (i % 2 || plan->is_empty || !check_enlarge(lab, plan, &larger))
            continue;
        check_case_init(lab, &one, &larger);
        check_once(lab, &one);
    }
}

/* ---- layouts ---- */

static void set_layout(const struct check_lab *lab, struct check_case *one,
                       int only, uint8_t layout)
{
    const struct hob__signature *signature = &lab->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        int chosen = check_is_tensor(&signature->params[i]) &&
                     (only < 0 || only == (int)i);

        one->layout[i] = chosen ? layout : CHECK_CONTIGUOUS;
        /* Where a stride is 0 the values repeat, in memory of any layout. */
        one->repeat[i] = chosen && layout == CHECK_EXPANDED;
    }
}

static void check_layout(struct check_lab *lab, const struct check_plan *plan,
                         int only, uint8_t layout)
{
    struct check_outcome got, wanted;
    struct check_case one;
    char why[WHY];

    check_case_init(lab, &one, plan);
    set_layout(lab, &one, only, layout);
    check_call(lab, lab->device, &one, 0, &got);
    memset(one.layout, 0, sizeof(one.layout));
    check_call(lab, lab->device, &one, 0, &wanted);
    set_layout(lab, &one, only, layout);
    check_case_text(lab, &one, lab->child->shared->sample,
                    sizeof(lab->child->shared->sample));
    if (!check_near(lab, &got, &wanted, why, sizeof(why)))
        check_found(lab->child, CHECK_LAYOUT, "against a contiguous copy, %s",
                    why);
    check_outcome_release(&got);
    check_outcome_release(&wanted);
}

void check_layouts(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    const struct hob__signature *signature = &lab->op->signature;

    for (uint32_t i = 0; i < shared->plan_count; i++) {
        if (shared->plans[i].is_empty || lab->child->op->is_free)
            continue;
        for (uint8_t layout = 1; layout < CHECK_LAYOUT_COUNT_; layout++) {
            check_layout(lab, &shared->plans[i], -1, layout);
            for (uint32_t p = 0; p < signature->param_count; p++)
                if (check_is_tensor(&signature->params[p]) &&
                    shared->plans[i].args[p].present)
                    check_layout(lab, &shared->plans[i], (int)p, layout);
        }
    }
}

/* ---- decorators ---- */

/* The same call on DEVICE, whose name is NAME, and on the base. */
static void check_same_on(struct check_lab *lab, const struct check_case *one,
                          hob_device *device, const char *name)
{
    struct check_outcome got, wanted;
    char why[WHY];

    check_call(lab, lab->base, one, 0, &wanted);
    check_call(lab, device, one, 0, &got);
    if (!got.status && !wanted.status &&
        !check_same_metas(&got, &wanted, 1, why, sizeof(why)))
        check_found(lab->child, CHECK_METADATA, "on %s, %s", name, why);
    else if (!check_near(lab, &got, &wanted, why, sizeof(why)))
        check_found(lab->child, CHECK_LAYERS, "on %s, %s", name, why);
    check_outcome_release(&got);
    check_outcome_release(&wanted);
}

static void check_layer(struct check_lab *lab, const char *selector)
{
    const struct check_shared *shared = lab->child->shared;
    char name[2 * CHECK_NAME];
    hob_device *device;

    (void)snprintf(name, sizeof(name), "%s(%s)", selector, lab->child->device);
    device = check_lab_device(lab, name);
    for (uint32_t i = 0; device && i < shared->plan_count; i++) {
        struct check_case one;

        check_case_init(lab, &one, &shared->plans[i]);
        check_same_on(lab, &one, device, name);
    }
    hob_device_unref(device);
}

static void check_decorated(struct check_lab *lab, const struct check_case *one)
{
    check_same_on(lab, one, lab->device, lab->child->device);
}

/* The op under the decorator that is to be proven, and autodiff on top. */
static void check_decorator(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;

    for (uint32_t i = 0; i < shared->plan_count; i++)
        each_dtype(lab, &shared->plans[i], check_decorated);
    check_layer(lab, "autodiff");
}

void check_layers(struct check_lab *lab)
{
    const struct hob__manifest_op *manifest = lab->op->manifest;
    struct hob__loader *loader = lab->runtime->loader;

    if (lab->device != lab->base && !lab->child->op->is_free)
        check_decorator(lab);
    if (!manifest || lab->child->op->is_free)
        return;
    for (uint32_t i = 0; i < manifest->selector_count; i++) {
        const struct hob__manifest_selector *one = &manifest->selectors[i];

        if (hob__loader_find(loader, HOB__KIND_DECORATOR, one->name) &&
            hob__loader_condition(loader, lab->op->candidate, one))
            check_layer(lab, one->name);
    }
}

/* ---- NaN, infinities, indices out of range ---- */

static void check_extreme(struct check_lab *lab, const struct check_case *given)
{
    struct check_outcome outcome;
    struct check_case one = *given;

    for (uint8_t special = 1; special <= 2; special++)
        for (uint32_t round = 0; round < 3; round++) {
            one.special = special;
            one.seed = given->seed + round;
            lab->memory->fence =
                round ? CHECK_FENCE_BEHIND : CHECK_FENCE_BEFORE;
            check_call(lab, lab->device, &one, 0, &outcome);
            check_failure(lab, &outcome, "with extreme values");
            check_outcome_release(&outcome);
        }
}

void check_extremes(struct check_lab *lab)
{
    const struct check_shared *shared = lab->child->shared;
    struct check_case one;

    for (uint32_t i = 0; i < shared->plan_count; i++) {
        if (i % PLAN_STEP == 2 || shared->plan_count < PLAN_STEP) {
            each_dtype(lab, &shared->plans[i], check_extreme);
            continue;
        }
        check_case_init(lab, &one, &shared->plans[i]);
        check_extreme(lab, &one);
    }
}
