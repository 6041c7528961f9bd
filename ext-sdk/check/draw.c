/* SPDX-License-Identifier: Apache-2.0 */
/*
 * draw.c - a plan at random.
 */
#include "search.h"

#include <stdio.h>
#include <string.h>

static uint32_t below(struct check_search *search, uint32_t count)
{
    return (uint32_t)(check_random(&search->random) % count);
}

/* ---- drawing ---- */

static int64_t draw_size(struct check_search *search)
{
    static const int64_t sizes[] = {2, 3, 4, 5, 3, 2, 1};

    return sizes[below(search, sizeof(sizes) / sizeof(sizes[0]))];
}

static void draw_shape(struct check_search *search, uint8_t *rank,
                       int64_t *shape)
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
static void derive_shape(struct check_search *search, uint8_t from_rank,
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
    case 9:
        *rank = 0;
        break;
    default:
        break;
    }
}

/* A size of some tensor before PARAM, or a new one. */
static int64_t pick_size(struct check_search *search,
                         const struct check_plan *plan, uint32_t param)
{
    const struct hob__signature *signature = &search->lab->op->signature;
    int64_t size = draw_size(search);
    uint32_t seen = 0;

    if (!below(search, 5))
        return size;
    for (uint32_t i = 0; i < param; i++)
        for (uint32_t d = 0; check_is_tensor(&signature->params[i]) &&
                             plan->args[i].present && d < plan->args[i].rank[0];
             d++)
            if (!below(search, ++seen))
                size = plan->args[i].shape[0][d];
    return size;
}

/* A shape before this one, of the parameters up to PARAM; NULL if none. */
static const struct check_arg *earlier(struct check_search *search,
                                       const struct check_plan *plan,
                                       uint32_t param)
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

static void draw_tensor(struct check_search *search, struct check_plan *plan,
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
        } else if (!below(search, 3)) { /* as a mask [rows, columns] */
            arg->rank[k] = (uint8_t)(1 + below(search, 3));
            for (uint32_t d = 0; d < arg->rank[k]; d++)
                arg->shape[k][d] = pick_size(search, plan, param);
        } else {
            derive_shape(search, from->rank[0], from->shape[0], &arg->rank[k],
                         arg->shape[k]);
        }
    }
}

void check_set_default(const struct hob__param *param, struct check_attr *attr)
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

static void draw_list(struct check_search *search, struct check_attr *attr)
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

void check_draw_attribute(struct check_search *search, uint32_t param,
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
        check_set_default(type, attr);
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
static int draw_presence(struct check_search *search,
                         const struct check_plan *plan, uint32_t param,
                         const struct check_demand *demand)
{
    const struct hob__param *type = &search->lab->op->signature.params[param];
    const struct check_arg *tag =
        type->tag_param == HOB__NO_TAG ? NULL : &plan->args[type->tag_param];

    if (type->flags & HOB__PARAM_HIDDEN)
        return 0;
    /* A field of an enum's variant. */
    if (tag && (!tag->present || tag->attr.i64 != type->variant))
        return 0;
    if (tag && (type->flags & HOB__PARAM_NEEDED))
        return 1;
    if (demand->param == (int)param)
        return demand->present;
    return !(type->flags & HOB__PARAM_OPTIONAL) || below(search, 10) < 7;
}

static void draw_attributes(struct check_search *search,
                            struct check_plan *plan,
                            const struct check_demand *demand)
{
    const struct hob__signature *signature = &search->lab->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        struct check_arg *arg = &plan->args[i];

        if (check_is_tensor(&signature->params[i]))
            continue;
        arg->present = (uint8_t)draw_presence(search, plan, i, demand);
        if (!arg->present)
            continue;
        check_draw_attribute(search, i, &arg->attr);
        if (demand->param == (int)i && demand->value >= 0)
            arg->attr.i64 = demand->value;
    }
}

/* Some kernels take other dtypes than the first of their kind. */
static void draw_dtypes(struct check_search *search, struct check_plan *plan)
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

/* Numbers and shapes among the attributes are often those of a tensor. */
static void relate_attributes(struct check_search *search,
                              struct check_plan *plan)
{
    const struct hob__signature *signature = &search->lab->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        struct check_attr *attr = &plan->args[i].attr;
        uint8_t type = signature->params[i].type;
        const struct check_arg *from;

        if (!plan->args[i].present || below(search, 3) ||
            search->lab->hints->params[i].value_count)
            continue;
        if (type == HOB__TYPE_I64)
            attr->i64 = pick_size(search, plan, signature->param_count);
        if (type != HOB__TYPE_SHAPE && type != HOB__TYPE_I64S)
            continue;
        from = earlier(search, plan, signature->param_count);
        if (!from)
            continue;
        attr->count = from->rank[0];
        memcpy(attr->i64s, from->shape[0], sizeof(attr->i64s));
    }
}

void check_draw(struct check_search *search, const struct check_demand *demand,
                struct check_plan *plan)
{
    const struct hob__signature *signature = &search->lab->op->signature;
    uint32_t style = below(search, 8); /* 0 and 1 are special */

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
    relate_attributes(search, plan);
}
