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

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    GENERAL_MAX = 12, /* plans of the first, unconstrained search */
    COVERED_MAX = 22, /* and with those that cover what it missed */
    EMPTY_MAX = 8,    /* and with a size of 0 */
    GENERAL_TRIES = 20000,
    HARD_TRIES = 150000,
    POOL_POOR = 6,
    COVER_TRIES = 3000
};

/* ---- keeping ---- */

static uint64_t mix(uint64_t key, uint64_t value)
{
    return (key ^ value) * UINT64_C(0x100000001b3) + (value >> 7);
}

/* Numbers the sizes of a plan in order of appearance. */
struct symbols {
    int64_t sizes[64];
    uint32_t count;
};

static uint64_t symbol_of(struct symbols *symbols, int64_t size)
{
    uint32_t i = 0;

    if (size < 2)
        return (uint64_t)size;
    while (i < symbols->count && symbols->sizes[i] != size)
        i++;
    if (i == symbols->count && i < 64)
        symbols->sizes[symbols->count++] = size;
    return i + 2;
}

static uint64_t key_of_attr(const struct check_attr *attr, uint64_t key)
{
    key = mix(key, attr->tag);
    if (attr->tag == HOB_TAG_F64)
        return mix(key, (uint64_t)(int64_t)(attr->f64 * 16));
    if (attr->tag == HOB_TAG_STR)
        return mix(key, (uint64_t)attr->str[0] + 256u * strlen(attr->str));
    if (attr->tag == HOB_TAG_DEVICE)
        return key;
    if (attr->tag != HOB_TAG_I64S && attr->tag != HOB_TAG_F64S)
        return mix(key, (uint64_t)attr->i64);
    for (uint32_t i = 0; i < attr->count; i++)
        key = mix(key, (uint64_t)attr->i64s[i] +
                           (uint64_t)(int64_t)(attr->f64s[i] * 16));
    return mix(key, attr->count);
}

/* How many shapes of PLAN are like the one of some tensor before. */
static int repeated_shapes(const struct hob__signature *signature,
                           const struct check_plan *plan)
{
    int repeated = 0;

    for (uint32_t i = 0; i < signature->param_count; i++)
        for (uint32_t k = 0; k < i && plan->args[i].present; k++)
            if (check_is_tensor(&signature->params[i]) &&
                check_is_tensor(&signature->params[k]) &&
                plan->args[k].present &&
                plan->args[i].rank[0] == plan->args[k].rank[0] &&
                !memcmp(plan->args[i].shape[0], plan->args[k].shape[0],
                        plan->args[i].rank[0] * sizeof(int64_t))) {
                repeated++;
                break;
            }
    return repeated;
}

/*
 * Work out CHOICE's keys. Plans of one key test the same: presence, ranks,
 * which sizes are alike, attributes.
 */
static void make_keys(const struct check_search *search,
                      struct check_choice *choice)
{
    const struct hob__signature *signature = &search->lab->op->signature;
    const struct check_plan *plan = &choice->plan;
    struct symbols symbols;
    uint64_t attributes = 1, shapes = 1, ranks = 1;

    symbols.count = 0;
    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct check_arg *arg = &plan->args[i];

        shapes = mix(shapes, arg->present + 2u * plan->dtype[i]);
        ranks = mix(ranks, arg->present);
        if (arg->present && !check_is_tensor(&signature->params[i]))
            attributes = key_of_attr(&arg->attr, attributes);
        if (!arg->present || !check_is_tensor(&signature->params[i]))
            continue;
        for (uint32_t k = 0; k < arg->count; k++) {
            ranks = mix(ranks, arg->rank[k] + 10u);
            shapes = mix(shapes, arg->rank[k] + 10u);
            for (uint32_t d = 0; d < arg->rank[k]; d++)
                shapes = mix(shapes, symbol_of(&symbols, arg->shape[k][d]));
        }
    }
    choice->ranks = ranks;
    choice->shapes = shapes;
    choice->key = mix(shapes, attributes);
    choice->variety = 2 * (int)symbols.count - repeated_shapes(signature, plan);
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

static void tell_accepted(struct check_lab *lab, const struct check_plan *plan)
{
    struct check_child *child = lab->child;
    struct check_case one;
    char text[1024];
    int used = snprintf(text, sizeof(text), "%s on %s: ", child->op->name,
                        child->device);

    check_case_init(lab, &one, plan);
    if (used > 0 && (size_t)used < sizeof(text))
        check_case_text(lab, &one, text + used, sizeof(text) - (size_t)used);
    check_accepted(child, text);
}

/* Run PLAN and keep it if it can be. */
static int keep(struct check_search *search, const struct check_plan *plan,
                uint64_t key, uint32_t limit)
{
    struct check_shared *shared = search->lab->child->shared;
    struct check_plan *kept = &shared->plans[shared->plan_count];

    if (shared->plan_count >= limit)
        return 0;
    *kept = *plan;
    if (!runs(search, kept))
        return 0;
    search->keys[shared->plan_count++] = key;
    return 1;
}

static int infer_accepts(struct check_search *search,
                         const struct check_plan *plan)
{
    return (search->lab->op->flags & HOB__OP_DYNAMIC) ||
           check_infer_accepts(search->lab, plan, search->refusal,
                               sizeof(search->refusal));
}

/* Keep PLAN if it is accepted and new. Returns whether it was accepted, now
 * or before. */
static int offer(struct check_search *search, const struct check_plan *plan,
                 uint32_t limit)
{
    struct check_shared *shared = search->lab->child->shared;
    struct check_choice *choice = &search->scratch;

    choice->plan = *plan;
    make_keys(search, choice);
    for (uint32_t i = 0; i < shared->plan_count; i++)
        if (search->keys[i] == choice->key)
            return 1;
    return infer_accepts(search, plan) &&
           keep(search, plan, choice->key, limit);
}

/* ---- choosing among what infer accepts ---- */

/* Whether the pool has CHOICE, or enough of its shapes. */
static int is_known(const struct check_search *search,
                    const struct check_choice *choice)
{
    int alike = 0;

    for (uint32_t i = 0; i < search->pool_count; i++) {
        if (search->pool[i].key == choice->key)
            return 1;
        alike += search->pool[i].shapes == choice->shapes;
    }
    return alike > 1 && search->lab->op->signature.tensor_count;
}

/* A plan of the pool with one of its sizes exchanged for another wherever it
 * stands, in attributes too: where few shapes fit, that most likely does. */
static void draw_from_pool(struct check_search *search, struct check_plan *plan)
{
    uint64_t random = check_random(&search->random);
    int64_t from = 1 + (int64_t)(random % 5);
    int64_t to = 1 + (int64_t)(random / 8 % 5);
    int first_only = random >> 40 & 1; /* two that are alike by chance */

    *plan = search->pool[random / 64 % search->pool_count].plan;
    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++) {
        struct check_arg *arg = &plan->args[i];

        if (arg->attr.tag == HOB_TAG_I64 && arg->attr.i64 == from)
            arg->attr.i64 = to;
        for (uint32_t k = 0; k < arg->count; k++)
            for (uint32_t d = 0; d < arg->rank[k]; d++)
                if (arg->shape[k][d] == from && !(first_only && d))
                    arg->shape[k][d] = to;
    }
}

/* Draw until the pool is full or the tries are over. */
static void fill_pool(struct check_search *search)
{
    static const struct check_demand nothing = {-1, 0, -1};

    for (uint32_t i = 0; i < GENERAL_TRIES && search->pool_count < CHECK_POOL;
         i++) {
        struct check_choice *choice = &search->pool[search->pool_count];

        if (i % 2 && search->pool_count)
            draw_from_pool(search, &choice->plan);
        else
            check_draw(search, &nothing, &choice->plan);
        make_keys(search, choice);
        choice->is_taken = 0;
        if (!is_known(search, choice) && infer_accepts(search, &choice->plan))
            search->pool_count++;
    }
}

/* Many different sizes show mistaken dimensions; many ranks show the rest. */
static int worth(const struct check_search *search,
                 const struct check_choice *choice)
{
    int worth = choice->variety;

    for (uint32_t i = 0; i < search->pool_count; i++)
        if (search->pool[i].is_taken && search->pool[i].ranks == choice->ranks)
            worth -= 4;
    return worth;
}

static void take_from_pool(struct check_search *search)
{
    const struct check_shared *shared = search->lab->child->shared;

    for (uint32_t n = 0;
         n < search->pool_count && shared->plan_count < GENERAL_MAX; n++) {
        struct check_choice *best = NULL;

        for (uint32_t i = 0; i < search->pool_count; i++) {
            struct check_choice *one = &search->pool[i];

            if (!one->is_taken &&
                (!best || worth(search, one) > worth(search, best)))
                best = one;
        }
        best->is_taken = 1;
        (void)keep(search, &best->plan, best->key, GENERAL_MAX);
    }
}

/* ---- the search ---- */

static void choose_variant(struct check_plan *plan,
                           const struct hob__param *field)
{
    struct check_arg *tag = &plan->args[field->tag_param];

    tag->present = 1;
    tag->attr.tag = HOB_TAG_ENUM;
    tag->attr.i64 = field->variant;
}

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
    for (uint32_t i = signature->param_count; i--;) {
        const struct hob__param *param = &signature->params[i];

        /* A field that is given says which variant it is. */
        if (param->tag_param != HOB__NO_TAG && plan->args[i].present &&
            check_is_tensor(param))
            choose_variant(plan, param);
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

/* Draw until a plan that meets DEMAND is accepted. */
static void draw_for(struct check_search *search,
                     const struct check_demand *demand)
{
    const struct check_shared *shared = search->lab->child->shared;
    struct check_plan plan;

    for (uint32_t i = 0; i < COVER_TRIES && shared->plan_count < COVERED_MAX;
         i++) {
        check_draw(search, demand, &plan);
        if (offer(search, &plan, COVERED_MAX))
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
        draw_for(search, &demand);
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
            param->tag_param == HOB__NO_TAG) {
            cover(search, (int)i, 1, -1);
            cover(search, (int)i, 0, -1);
        }
        for (int v = 0; v < count; v++)
            cover(search, (int)i, 1, v);
        for (int n = 1; param->type == HOB__TYPE_TENSORS && n <= 3; n++)
            cover(search, (int)i, 1, n);
    }
}

/* PLAN with every size SIZE made 0. */
static void empty_size(struct check_search *search,
                       const struct check_plan *plan, int64_t size,
                       uint32_t limit)
{
    const struct hob__signature *signature = &search->lab->op->signature;
    struct check_plan empty = *plan;

    empty.is_empty = 1;
    for (uint32_t i = 0; i < signature->param_count; i++)
        for (uint32_t k = 0; k < empty.args[i].count; k++)
            for (uint32_t d = 0; d < empty.args[i].rank[k]; d++)
                if (empty.args[i].shape[k][d] == size)
                    empty.args[i].shape[k][d] = 0;
    (void)offer(search, &empty, limit);
}

static int64_t elements_of(const struct check_plan *plan)
{
    int64_t total = plan->is_empty ? INT32_MAX : 0; /* those last */

    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
        for (uint32_t k = 0; plan->args[i].present && k < plan->args[i].count;
             k++) {
            int64_t count = 1;

            for (uint32_t d = 0; d < plan->args[i].rank[k]; d++)
                count *= plan->args[i].shape[k][d];
            total += count;
        }
    return total;
}

/* Small plans first, so that a finding is told with a small case. */
static int compare_plans(const void *a, const void *b)
{
    int64_t left = elements_of(a), right = elements_of(b);

    return left < right ? -1 : left > right;
}

void check_search(struct check_lab *lab)
{
    struct check_shared *shared = lab->child->shared;
    struct check_search *search = calloc(1, sizeof(*search));
    uint32_t full;

    if (!search)
        return;
    search->lab = lab;
    search->random = lab->child->options->seed;
    shared->plan_count = 0;
    check_force(lab, CHECK_PROBE);
    take_examples(search);
    fill_pool(search);
    take_from_pool(search);
    if (!shared->plan_count) { /* perhaps in other dtypes */
        search->vary_dtypes = 1;
        search->pool_count = 0;
        fill_pool(search);
        take_from_pool(search);
    }
    if (shared->plan_count)
        cover_all(search);
    full = shared->plan_count;
    for (uint32_t i = 0; i < full; i++)
        for (int64_t size = 2; size <= 5; size++)
            empty_size(search, &shared->plans[i], size, full + EMPTY_MAX);
    qsort(shared->plans, shared->plan_count, sizeof(shared->plans[0]),
          compare_plans);
    for (uint32_t i = 0; i < shared->plan_count; i++)
        tell_accepted(lab, &shared->plans[i]);
    shared->sample[0] = '\0';
    if (!full && !lab->op->is_extension)
        check_note(lab->child, "%s: not checked: no arguments were found",
                   lab->op->name);
    else if (!full && strstr(search->refusal, "did not set out["))
        check_found(lab->child, CHECK_METADATA, "%s", search->refusal);
    else if (!full)
        check_found(lab->child, CHECK_NO_CASE, "%d tries; the last refusal: %s",
                    GENERAL_TRIES, search->refusal);
    free(search);
}
