/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - finding arguments that an op accepts.
 *
 * Nothing says which shapes fit but the op's own infer. So plans are drawn at
 * random, each shape often made from an earlier one, and infer is asked with
 * tensors that have no elements: some microseconds a plan. What it accepts is
 * then run once. Example shapes of "x-check" come first.
 */
#include "search.h"

#include "dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GENERAL_MAX = 12, /* plans of the first, unconstrained search */
    COVERED_MAX = 22, /* and with those that cover what it missed */
    GENERAL_TRIES = 30000,
    USUAL_TRIES = 3000, /* before unusual dtypes are tried */
    COVER_TRIES = 3000
};

/* ---- asking infer ---- */

static hob_status make_blanks(struct check_lab *lab,
                              const struct check_case *one,
                              struct check_args *args)
{
    const struct hob__signature *signature = &lab->op->signature;
    hob_error error = HOB_ERROR_INIT;
    struct check_case bare = *one;
    struct check_plan plan = *one->plan;
    hob_status status;

    for (uint32_t i = 0; i < signature->param_count; i++)
        if (check_is_tensor(&signature->params[i]))
            plan.args[i].present = 0;
    bare.plan = &plan;
    status = check_args_make(lab, NULL, lab->base, &bare, args, &error);
    hob_error_release(&error);
    for (uint32_t i = 0; i < signature->param_count && !status; i++) {
        const struct check_arg *arg = &one->plan->args[i];

        if (!check_is_tensor(&signature->params[i]) || !arg->present)
            continue;
        for (uint32_t k = 0; k < arg->count; k++) {
            struct hob_meta meta = {.dtype = one->dtype[i],
                                    .rank = arg->rank[k]};

            memcpy(meta.shape, arg->shape[k], sizeof(meta.shape));
            args->tensors[i][k] = hob__tensor_blank(lab->base, &meta);
            if (!args->tensors[i][k])
                return HOB_ERR_MEMORY;
        }
        args->values[i] = signature->params[i].type == HOB__TYPE_TENSORS
                              ? hob_value_tensors(args->tensors[i], arg->count)
                              : hob_value_tensor(args->tensors[i][0]);
    }
    return status;
}

/* Whether infer accepts PLAN; REFUSAL gets what it says otherwise. */
static int infer_accepts(struct check_search *search,
                         const struct check_plan *plan)
{
    struct check_lab *lab = search->lab;
    hob_scope *scope = hob_scope_open(lab->runtime);
    hob_tensor *out[HOB_MAX_RESULTS];
    hob_error error = HOB_ERROR_INIT;
    struct check_args args;
    struct check_case one;
    uint32_t count = 0;
    hob_status status;

    check_case_init(lab, &one, plan);
    check_case_text(lab, &one, lab->child->shared->sample,
                    sizeof(lab->child->shared->sample));
    status = make_blanks(lab, &one, &args);
    if (!status)
        status = hob_call_op(scope, lab->op->id, args.values,
                             lab->op->signature.param_count, out,
                             HOB_MAX_RESULTS, &count);
    if (status && scope) {
        (void)hob_scope_error(scope, &error);
        (void)snprintf(search->refusal, sizeof(search->refusal), "%s",
                       error.message ? error.message : "out of memory");
        hob_error_release(&error);
    }
    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
        for (uint32_t k = 0; k < CHECK_LIST_MAX; k++)
            hob__tensor_unref(args.tensors[i][k]);
    hob_scope_close(scope);
    return !status;
}

/* ---- keeping ---- */

static uint64_t mix(uint64_t key, uint64_t value)
{
    return (key ^ value) * UINT64_C(0x100000001b3) + (value >> 7);
}

/* Plans of one key test the same: presence, ranks, sizes 1 and 0, values. */
static uint64_t key_of(const struct check_search *search,
                       const struct check_plan *plan)
{
    const struct hob__signature *signature = &search->lab->op->signature;
    uint64_t key = 1;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct check_arg *arg = &plan->args[i];

        key = mix(key, arg->present);
        if (!check_is_tensor(&signature->params[i])) {
            key = mix(key, (uint64_t)arg->attr.i64 + arg->attr.count);
            key = mix(key, (uint64_t)(int64_t)(arg->attr.f64 * 16));
            continue;
        }
        for (uint32_t k = 0; arg->present && k < arg->count; k++) {
            key = mix(key, arg->rank[k] + 10u);
            for (uint32_t d = 0; d < arg->rank[k]; d++)
                key = mix(key, arg->shape[k][d] < 2 ? (uint64_t)arg->shape[k][d]
                                                    : 2);
        }
    }
    return key;
}

static int has_nan(const struct check_outcome *outcome)
{
    for (uint32_t i = 0; i < outcome->count; i++) {
        uint32_t dtype = outcome->metas[i].dtype, size = hob_dtype_size(dtype);

        for (uint64_t at = 0; outcome->data[i] && at < outcome->bytes[i];
             at += size) {
            double x = check_decode(dtype, (const char *)outcome->data[i] + at);

            if (x != x)
                return 1;
        }
    }
    return 0;
}

/* Run PLAN once. A refusal by kernel and body counts as one by infer. */
static int runs(struct check_search *search, struct check_plan *plan)
{
    struct check_lab *lab = search->lab;
    struct check_outcome outcome;
    struct check_case one;
    int nan, refused;

    check_force(lab, CHECK_AS_ROUTED);
    check_case_init(lab, &one, plan);
    check_call(lab, lab->base, &one, 0, &outcome);
    refused = check_is_refusal(outcome.status);
    if (refused)
        (void)snprintf(search->refusal, sizeof(search->refusal), "%s",
                       outcome.message);
    nan = !outcome.status && has_nan(&outcome);
    check_outcome_release(&outcome);
    if (refused && lab->route.body && lab->route.entry) {
        check_force(lab, CHECK_BODY);
        check_call(lab, lab->base, &one, 0, &outcome);
        refused = check_is_refusal(outcome.status);
        check_outcome_release(&outcome);
    } else if (nan) { /* a logarithm, a root: try where they have values */
        plan->is_positive = 1;
        check_call(lab, lab->base, &one, 0, &outcome);
        if (has_nan(&outcome))
            plan->is_positive = 0;
        check_outcome_release(&outcome);
    }
    check_force(lab, CHECK_PROBE);
    return !refused;
}

/* Keep PLAN if it is accepted and new. Returns whether it was accepted, now
 * or before. */
static int offer(struct check_search *search, const struct check_plan *plan,
                 uint32_t limit)
{
    struct check_shared *shared = search->lab->child->shared;
    uint64_t key = key_of(search, plan);
    struct check_plan *kept = &shared->plans[shared->plan_count];

    if (shared->plan_count >= limit)
        return 0;
    for (uint32_t i = 0; i < shared->plan_count; i++)
        if (search->keys[i] == key)
            return 1;
    if (!(search->lab->op->flags & HOB__OP_DYNAMIC) &&
        !infer_accepts(search, plan))
        return 0;
    *kept = *plan;
    if (!runs(search, kept))
        return 0;
    search->keys[shared->plan_count++] = key;
    return 1;
}

/* ---- the search ---- */

/* Fill what the example leaves open. */
static void complete_example(struct check_search *search,
                             struct check_plan *plan)
{
    const struct hob__signature *signature = &search->lab->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];
        struct check_arg *arg = &plan->args[i];

        if (check_is_tensor(param) || (param->flags & HOB__PARAM_HIDDEN))
            continue;
        if (search->lab->hints->params[i].value_count) {
            arg->present = 1;
            check_draw_attribute(search, i, &arg->attr);
        } else if (param->flags & HOB__PARAM_DEFAULT) {
            arg->present = 1;
            check_set_default(param, &arg->attr);
        } else if (!(param->flags & HOB__PARAM_OPTIONAL)) {
            arg->present = 1;
            check_draw_attribute(search, i, &arg->attr);
        }
    }
    for (uint32_t i = 0; i < signature->param_count; i++) {
        int gate = search->gate[i];

        /* A field that is given says which variant it is. */
        if (gate != CHECK_NO_GATE && plan->args[i].present &&
            check_is_tensor(&signature->params[i]))
            plan->args[gate].attr.i64 = search->gate_value[i];
    }
}

static void take_examples(struct check_search *search)
{
    const struct check_hints *hints = search->lab->hints;

    for (uint32_t i = 0; i < hints->shape_count; i++) {
        struct check_plan plan;
        int accepted = 0;

        /* Attributes that are open are drawn again and again. */
        for (uint32_t tries = 0; tries < 200 && !accepted; tries++) {
            plan = hints->shapes[i];
            complete_example(search, &plan);
            accepted = offer(search, &plan, CHECK_PLANS_MAX);
        }
        if (!accepted)
            check_found(search->lab->child, CHECK_X_CHECK,
                        "example %u of \"shapes\" is refused: %s", i,
                        search->refusal);
    }
}

static void draw_many(struct check_search *search,
                      const struct check_demand *demand, uint32_t limit,
                      uint32_t tries)
{
    struct check_shared *shared = search->lab->child->shared;
    struct check_plan plan;

    for (uint32_t i = 0; i < tries && shared->plan_count < limit; i++) {
        if (i == USUAL_TRIES && !shared->plan_count)
            search->vary_dtypes = 1;
        check_draw(search, demand, &plan);
        if (offer(search, &plan, limit) && demand->param >= 0)
            return;
    }
}

static int is_covered(const struct check_search *search,
                      const struct check_demand *demand)
{
    const struct check_shared *shared = search->lab->child->shared;

    for (uint32_t i = 0; i < shared->plan_count; i++) {
        const struct check_arg *arg = &shared->plans[i].args[demand->param];
        int64_t value =
            check_is_tensor(&search->lab->op->signature.params[demand->param])
                ? arg->count
                : arg->attr.i64;

        if (arg->present == demand->present &&
            (demand->value < 0 || value == demand->value))
            return 1;
    }
    return 0;
}

static void cover(struct check_search *search, int param, int present,
                  int value)
{
    struct check_demand demand = {param, present, value};

    if (!is_covered(search, &demand))
        draw_many(search, &demand, COVERED_MAX, COVER_TRIES);
    if (!is_covered(search, &demand) && value >= 0)
        check_note(search->lab->child,
                   "%s: no accepted case with %s = %d was found: not checked",
                   search->lab->op->name,
                   search->lab->op->signature.params[param].name, value);
}

/* What the general search happened to miss: each optional parameter there
 * and absent, each enumerator, both truths, lists of each length. */
static void cover_all(struct check_search *search)
{
    const struct hob__signature *signature = &search->lab->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];
        int count = param->type == HOB__TYPE_ENUM   ? param->enumerator_count
                    : param->type == HOB__TYPE_BOOL ? 2
                                                    : 0;

        if (search->lab->hints->params[i].value_count ||
            (param->flags & HOB__PARAM_HIDDEN))
            continue;
        if ((param->flags & HOB__PARAM_OPTIONAL) &&
            search->gate[i] == CHECK_NO_GATE) {
            cover(search, (int)i, 1, -1);
            cover(search, (int)i, 0, -1);
        }
        for (int v = 0; v < count; v++)
            cover(search, (int)i, 1, v);
        for (int n = 1; param->type == HOB__TYPE_TENSORS && n <= 3; n++)
            cover(search, (int)i, 1, n);
    }
}

int check_enlarge(struct check_lab *lab, const struct check_plan *plan,
                  struct check_plan *out)
{
    /* Odd, beyond a vector, beyond a vector and a half. */
    static const int64_t larger[] = {0, 1, 7, 17, 33, 9};
    const struct hob__signature *signature = &lab->op->signature;
    struct check_search *search = calloc(1, sizeof(*search));
    int accepted = 0;

    *out = *plan;
    for (uint32_t i = 0; i < signature->param_count; i++)
        for (uint32_t k = 0; k < out->args[i].count; k++)
            for (uint32_t d = 0; d < out->args[i].rank[k]; d++)
                if (out->args[i].shape[k][d] <= 5)
                    out->args[i].shape[k][d] = larger[out->args[i].shape[k][d]];
    if (search) {
        search->lab = lab;
        check_force(lab, CHECK_PROBE);
        accepted =
            lab->op->flags & HOB__OP_DYNAMIC ? 1 : infer_accepts(search, out);
        check_force(lab, CHECK_AS_ROUTED);
    }
    free(search);
    return accepted;
}

/* PLAN with every size SIZE made 0. */
static void empty_size(struct check_search *search,
                       const struct check_plan *plan, int64_t size)
{
    const struct hob__signature *signature = &search->lab->op->signature;
    struct check_plan empty = *plan;

    empty.is_empty = 1;
    for (uint32_t i = 0; i < signature->param_count; i++)
        for (uint32_t k = 0; k < empty.args[i].count; k++)
            for (uint32_t d = 0; d < empty.args[i].rank[k]; d++)
                if (empty.args[i].shape[k][d] == size)
                    empty.args[i].shape[k][d] = 0;
    (void)offer(search, &empty, CHECK_PLANS_MAX);
}

void check_search(struct check_lab *lab)
{
    static const struct check_demand nothing = {-1, 0, -1};
    struct check_shared *shared = lab->child->shared;
    struct check_search *search = calloc(1, sizeof(*search));
    uint32_t full;

    if (!search)
        return;
    search->lab = lab;
    search->random = lab->child->options->seed;
    check_find_gates(search);
    shared->plan_count = 0;
    check_force(lab, CHECK_PROBE);
    take_examples(search);
    draw_many(search, &nothing, GENERAL_MAX, GENERAL_TRIES);
    if (shared->plan_count)
        cover_all(search);
    full = shared->plan_count;
    for (uint32_t i = 0; i < full; i++)
        for (int64_t size = 2; size <= 5; size++)
            empty_size(search, &shared->plans[i], size);
    shared->sample[0] = '\0';
    if (!full)
        check_found(lab->child, CHECK_NO_CASE, "%d tries; the last refusal: %s",
                    GENERAL_TRIES, search->refusal);
    free(search);
}
