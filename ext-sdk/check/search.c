/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - finding arguments that an op accepts.
 *
 * Nothing says which shapes fit but the op's own infer. So plans are drawn at
 * random, each shape often made from an earlier one, and infer is asked with
 * tensors that have no elements: some microseconds a plan. What it accepts is
 * then run once. Example shapes of "x-check" come first.
 */
#include "check.h"

#include "dispatch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    NO_GATE = -1,
    GENERAL_MAX = 12, /* plans of the first, unconstrained search */
    COVERED_MAX = 22, /* and with those that cover what it missed */
    GENERAL_TRIES = 30000,
    USUAL_TRIES = 3000, /* before unusual dtypes are tried */
    COVER_TRIES = 3000
};

/* What a drawn plan must have; param -1: nothing. */
struct demand {
    int param;
    int present;
    int value; /* of an enum or bool, the count of a list; -1: any */
};

struct search {
    struct check_lab *lab;
    uint64_t random;
    int vary_dtypes;
    /* "operand.Dense.x" is there if enum operand is Dense. */
    int gate[HOB_MAX_PARAMS];
    int gate_value[HOB_MAX_PARAMS];
    char refusal[600]; /* what the last refusal said */
    uint64_t keys[CHECK_PLANS_MAX];
};

static uint32_t below(struct search *search, uint32_t count)
{
    return (uint32_t)(check_random(&search->random) % count);
}

/* ---- gates: fields of the variants of an enum type ---- */

static void find_gate(struct search *search,
                      const struct hob__signature *signature, uint32_t param)
{
    const char *name = signature->params[param].name;

    search->gate[param] = NO_GATE;
    for (uint32_t e = 0; e < signature->param_count; e++) {
        const struct hob__param *tag = &signature->params[e];
        size_t size = strlen(tag->name);

        if (tag->type != HOB__TYPE_ENUM || strncmp(name, tag->name, size) ||
            name[size] != '.')
            continue;
        for (uint32_t v = 0; v < tag->enumerator_count; v++) {
            size_t more = strlen(tag->enumerators[v]);

            if (!strncmp(name + size + 1, tag->enumerators[v], more) &&
                name[size + 1 + more] == '.') {
                search->gate[param] = (int)e; /* the innermost counts */
                search->gate_value[param] = (int)v;
            }
        }
    }
}

/* ---- drawing ---- */

static int64_t draw_size(struct search *search)
{
    static const int64_t sizes[] = {2, 3, 4, 5, 3, 2, 1};

    return sizes[below(search, sizeof(sizes) / sizeof(sizes[0]))];
}

static void draw_shape(struct search *search, uint8_t *rank, int64_t *shape)
{
    *rank = (uint8_t)below(search, 5);
    for (uint32_t d = 0; d < *rank; d++)
        shape[d] = draw_size(search);
}

static void set_last(uint8_t *rank, int64_t *shape, int64_t size)
{
    *rank = 1;
    shape[0] = size;
}

/* SHAPE made from one that is there, as the arguments of ops often are. */
static void derive_shape(struct search *search, uint8_t from_rank,
                         const int64_t *from, uint8_t *rank, int64_t *shape)
{
    uint32_t at = from_rank ? below(search, from_rank) : 0;
    int64_t last = from_rank ? from[from_rank - 1] : 1;

    *rank = from_rank;
    memcpy(shape, from, HOB_MAX_RANK * sizeof(*shape));
    switch (below(search, 12)) {
    case 0: /* one size new, as the columns of a matrix */
        if (from_rank)
            shape[at] = draw_size(search);
        break;
    case 1: /* one size 1: broadcast */
        if (from_rank)
            shape[at] = 1;
        break;
    case 2: /* without the first dimension */
        if (from_rank)
            memmove(shape, shape + 1, --*rank * sizeof(*shape));
        break;
    case 3: /* without the last */
        *rank -= from_rank > 0;
        break;
    case 4:
    case 5: /* a vector along one dimension, most often the last */
        set_last(rank, shape, below(search, 3) && from_rank ? last : from[at]);
        break;
    case 6: /* a matrix that the last dimension fits */
        *rank = 2;
        shape[0] = last;
        shape[1] = draw_size(search);
        break;
    case 7: /* the last two exchanged */
        if (from_rank > 1) {
            shape[from_rank - 1] = from[from_rank - 2];
            shape[from_rank - 2] = last;
        }
        break;
    case 8:
        *rank = 0;
        break;
    default:
        break;
    }
}

/* A shape before this one, of the parameters up to PARAM; NULL if none. */
static const struct check_arg *
earlier(struct search *search, const struct check_plan *plan, uint32_t param)
{
    const struct hob__signature *signature = &search->lab->op->signature;
    const struct check_arg *found = NULL;
    uint32_t seen = 0;

    for (uint32_t i = 0; i < param; i++)
        if (check_is_tensor(&signature->params[i]) && plan->args[i].present &&
            !below(search, ++seen))
            found = &plan->args[i];
    return found;
}

static void draw_tensor(struct search *search, struct check_plan *plan,
                        uint32_t param, uint32_t style)
{
    struct check_arg *arg = &plan->args[param];
    const struct check_arg *from = earlier(search, plan, param);

    for (uint32_t k = 0; k < arg->count; k++) {
        if (k && below(search, 4)) { /* items of a list are mostly alike */
            arg->rank[k] = arg->rank[0];
            memcpy(arg->shape[k], arg->shape[0], sizeof(arg->shape[0]));
        } else if (!from || style == 0) {
            draw_shape(search, &arg->rank[k], arg->shape[k]);
        } else if (style == 1) {
            arg->rank[k] = from->rank[0];
            memcpy(arg->shape[k], from->shape[0], sizeof(from->shape[0]));
        } else {
            derive_shape(search, from->rank[0], from->shape[0], &arg->rank[k],
                         arg->shape[k]);
        }
    }
}

static void set_default(const struct hob__param *param, struct check_attr *attr)
{
    const hob_value *value = &param->value;

    attr->tag = value->tag;
    attr->count =
        (uint8_t)(value->count < HOB_MAX_RANK ? value->count : HOB_MAX_RANK);
    attr->i64 = value->u.i64;
    attr->f64 = value->tag == HOB_TAG_F64 ? value->u.f64 : 0;
    if (value->tag == HOB_TAG_I64S && attr->count)
        memcpy(attr->i64s, value->u.i64s, attr->count * sizeof(int64_t));
    if (value->tag == HOB_TAG_F64S && attr->count)
        memcpy(attr->f64s, value->u.f64s, attr->count * sizeof(double));
    if (value->tag == HOB_TAG_STR)
        (void)snprintf(attr->str, sizeof(attr->str), "%s", value->u.str);
}

static void draw_list(struct search *search, struct check_attr *attr)
{
    static const int64_t lists[][4] = {{0},       {1, 0},    {1, 1},
                                       {1, 2},    {2, 2, 3}, {2, 0, 1},
                                       {2, 1, 0}, {2, 1, 1}, {3, 2, 1, 3}};
    const int64_t *list = lists[below(search, sizeof(lists) / sizeof(*lists))];

    attr->count = (uint8_t)list[0];
    for (uint32_t i = 0; i < attr->count; i++) {
        attr->i64s[i] = list[i + 1];
        attr->f64s[i] = 0.5 * (double)list[i + 1] + 0.5;
    }
}

static void draw_attribute(struct search *search, uint32_t param,
                           struct check_attr *attr)
{
    static const int64_t numbers[] = {0, 1, -1, 2, 3};
    static const double reals[] = {0.5, 1, 2, 0, -1};
    static const char *const texts[] = {"", "a", "none", "mean"};
    static const uint8_t dtypes[] = {HOB_DTYPE_F32, HOB_DTYPE_F64,
                                     HOB_DTYPE_I32, HOB_DTYPE_I64};
    const struct check_hint *hint = &search->lab->hints->params[param];
    const struct hob__param *type = &search->lab->op->signature.params[param];

    if (hint->value_count) {
        *attr = hint->values[below(search, hint->value_count)];
        return;
    }
    if ((type->flags & HOB__PARAM_DEFAULT) && below(search, 2)) {
        set_default(type, attr);
        return;
    }
    attr->i64 = numbers[below(search, 5)];
    attr->f64 = reals[below(search, 5)];
    switch (type->type) {
    case HOB__TYPE_F64:
        attr->tag = HOB_TAG_F64;
        break;
    case HOB__TYPE_BOOL:
        attr->tag = HOB_TAG_BOOL;
        attr->i64 = below(search, 2);
        break;
    case HOB__TYPE_STR:
        attr->tag = HOB_TAG_STR;
        (void)snprintf(attr->str, sizeof(attr->str), "%s",
                       texts[below(search, 4)]);
        break;
    case HOB__TYPE_DTYPE:
        attr->tag = HOB_TAG_DTYPE;
        attr->i64 = dtypes[below(search, 4)];
        break;
    case HOB__TYPE_DEVICE:
        attr->tag = HOB_TAG_DEVICE;
        break;
    case HOB__TYPE_SHAPE:
    case HOB__TYPE_I64S:
        attr->tag = HOB_TAG_I64S;
        draw_list(search, attr);
        break;
    case HOB__TYPE_F64S:
        attr->tag = HOB_TAG_F64S;
        draw_list(search, attr);
        break;
    case HOB__TYPE_ENUM:
        attr->tag = HOB_TAG_ENUM;
        attr->i64 =
            type->enumerator_count ? below(search, type->enumerator_count) : 0;
        break;
    default:
        attr->tag = HOB_TAG_I64;
    }
}

/* Whether PARAM is there, in PLAN whose enums are drawn. */
static int draw_presence(struct search *search, const struct check_plan *plan,
                         uint32_t param, const struct demand *demand)
{
    const struct hob__param *type = &search->lab->op->signature.params[param];
    int gate = search->gate[param];

    if (type->flags & HOB__PARAM_HIDDEN)
        return 0;
    if (gate != NO_GATE)
        return plan->args[gate].present &&
               plan->args[gate].attr.i64 == search->gate_value[param];
    if (demand->param == (int)param)
        return demand->present;
    return !(type->flags & HOB__PARAM_OPTIONAL) || below(search, 10) < 7;
}

static void draw_attributes(struct search *search, struct check_plan *plan,
                            const struct demand *demand)
{
    const struct hob__signature *signature = &search->lab->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        struct check_arg *arg = &plan->args[i];

        if (check_is_tensor(&signature->params[i]))
            continue;
        arg->present = (uint8_t)draw_presence(search, plan, i, demand);
        if (!arg->present)
            continue;
        draw_attribute(search, i, &arg->attr);
        if (demand->param == (int)i && demand->value >= 0)
            arg->attr.i64 = demand->value;
    }
}

/* Some kernels take other dtypes than the first of their kind. */
static void draw_dtypes(struct search *search, struct check_plan *plan)
{
    const struct hob__signature *signature = &search->lab->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        uint32_t mask = signature->params[i].mask;
        uint32_t dtype = HOB_DTYPE_F64 + below(search, HOB_DTYPE_BOOL);

        for (uint32_t k = 0; k < i; k++)
            if (check_is_tensor(&signature->params[k]) &&
                signature->params[k].mask == mask)
                dtype = plan->dtype[k];
        if (check_is_tensor(&signature->params[i]) &&
            (mask & HOB_DTYPE_BIT(dtype)))
            plan->dtype[i] = (uint8_t)dtype;
    }
}

static void draw(struct search *search, const struct demand *demand,
                 struct check_plan *plan)
{
    const struct hob__signature *signature = &search->lab->op->signature;
    uint32_t style = below(search, 4);

    memset(plan, 0, sizeof(*plan));
    draw_attributes(search, plan, demand);
    if (search->vary_dtypes)
        draw_dtypes(search, plan);
    for (uint32_t i = 0; i < signature->param_count; i++) {
        struct check_arg *arg = &plan->args[i];

        if (!check_is_tensor(&signature->params[i]))
            continue;
        arg->present = (uint8_t)draw_presence(search, plan, i, demand);
        if (!arg->present)
            continue;
        arg->count = 1;
        if (signature->params[i].type == HOB__TYPE_TENSORS)
            arg->count = (uint8_t)(demand->param == (int)i && demand->value > 0
                                       ? demand->value
                                       : 1 + (int)below(search, 3));
        draw_tensor(search, plan, i, style);
    }
}

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
static int infer_accepts(struct search *search, const struct check_plan *plan)
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
static uint64_t key_of(const struct search *search,
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
static int runs(struct search *search, struct check_plan *plan)
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
static int offer(struct search *search, const struct check_plan *plan,
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
static void complete_example(struct search *search, struct check_plan *plan)
{
    const struct hob__signature *signature = &search->lab->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];
        struct check_arg *arg = &plan->args[i];

        if (check_is_tensor(param) || (param->flags & HOB__PARAM_HIDDEN))
            continue;
        if (search->lab->hints->params[i].value_count) {
            arg->present = 1;
            draw_attribute(search, i, &arg->attr);
        } else if (param->flags & HOB__PARAM_DEFAULT) {
            arg->present = 1;
            set_default(param, &arg->attr);
        } else if (!(param->flags & HOB__PARAM_OPTIONAL)) {
            arg->present = 1;
            draw_attribute(search, i, &arg->attr);
        }
    }
    for (uint32_t i = 0; i < signature->param_count; i++) {
        int gate = search->gate[i];

        /* A field that is given says which variant it is. */
        if (gate != NO_GATE && plan->args[i].present &&
            check_is_tensor(&signature->params[i]))
            plan->args[gate].attr.i64 = search->gate_value[i];
    }
}

static void take_examples(struct search *search)
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

static void draw_many(struct search *search, const struct demand *demand,
                      uint32_t limit, uint32_t tries)
{
    struct check_shared *shared = search->lab->child->shared;
    struct check_plan plan;

    for (uint32_t i = 0; i < tries && shared->plan_count < limit; i++) {
        if (i == USUAL_TRIES && !shared->plan_count)
            search->vary_dtypes = 1;
        draw(search, demand, &plan);
        if (offer(search, &plan, limit) && demand->param >= 0)
            return;
    }
}

static int is_covered(const struct search *search, const struct demand *demand)
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

static void cover(struct search *search, int param, int present, int value)
{
    struct demand demand = {param, present, value};

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
static void cover_all(struct search *search)
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
            search->gate[i] == NO_GATE) {
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
    struct search *search = calloc(1, sizeof(*search));
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
static void empty_size(struct search *search, const struct check_plan *plan,
                       int64_t size)
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
    static const struct demand nothing = {-1, 0, -1};
    struct check_shared *shared = lab->child->shared;
    struct search *search = calloc(1, sizeof(*search));
    uint32_t full;

    if (!search)
        return;
    search->lab = lab;
    search->random = lab->child->options->seed;
    for (uint32_t i = 0; i < lab->op->signature.param_count; i++)
        find_gate(search, &lab->op->signature, i);
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
