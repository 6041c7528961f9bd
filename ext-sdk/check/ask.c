/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask.c - whether infer accepts a plan: a call with tensors that have no
 * elements, after which nothing else of the op runs.
 */
#include "search.h"

#include "dispatch.h"

#include <stdio.h>
#include <string.h>

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

int check_infer_accepts(struct check_lab *lab, const struct check_plan *plan,
                        char *refusal, size_t size)
{
    hob_scope *scope = hob_scope_open(lab->runtime);
    hob_tensor *out[HOB_MAX_RESULTS];
    hob_error error = HOB_ERROR_INIT;
    struct check_args args;
    struct check_case one;
    uint32_t count = 0;
    hob_status status;

    atomic_fetch_add(&lab->child->shared->steps, 1);
    check_case_init(lab, &one, plan);
    check_case_text(lab, &one, lab->child->shared->sample,
                    sizeof(lab->child->shared->sample));
    status = make_blanks(lab, &one, &args);
    if (!status)
        status = check_invoke(lab, scope, &args, out, &count, NULL);
    if (status && scope) {
        (void)hob_scope_error(scope, &error);
        (void)snprintf(refusal, size, "%s",
                       error.message ? error.message : "out of memory");
        hob_error_release(&error);
    }
    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
        for (uint32_t k = 0; k < CHECK_LIST_MAX; k++)
            hob__tensor_unref(args.tensors[i][k]);
    hob_scope_close(scope);
    return !status;
}

static int accepts(struct check_lab *lab, const struct check_plan *plan)
{
    char refusal[8];
    int accepted;

    check_force(lab, CHECK_PROBE);
    accepted = (lab->op->flags & HOB__OP_DYNAMIC) ||
               check_infer_accepts(lab, plan, refusal, sizeof(refusal));
    check_force(lab, CHECK_AS_ROUTED);
    return accepted;
}

/* PLAN with its small sizes exchanged for those of LARGER, up to MOST elements
 * a tensor, into OUT; whether infer accepts it, or would if attributes that
 * are the same number grew with them. */
static int enlarge(struct check_lab *lab, const struct check_plan *plan,
                   const int64_t *larger, int64_t most, struct check_plan *out)
{

    *out = *plan;
    for (uint32_t i = 0; i < lab->op->signature.param_count; i++)
        for (uint32_t k = 0; k < out->args[i].count; k++) {
            int64_t count = 1;

            for (uint32_t d = 0; d < out->args[i].rank[k]; d++) {
                int64_t *size = &out->args[i].shape[k][d];

                *size = *size <= 5 ? larger[*size] : *size;
                count *= *size;
            }
            if (count > most)
                return 0;
        }
    if (accepts(lab, out))
        return 1;
    for (uint32_t i = 0; i < lab->op->signature.param_count; i++) {
        struct check_attr *attr = &out->args[i].attr;

        if (attr->tag == HOB_TAG_I64 && attr->i64 > 1 && attr->i64 <= 5)
            attr->i64 = larger[attr->i64];
    }
    return accepts(lab, out);
}

int check_enlarge(struct check_lab *lab, const struct check_plan *plan,
                  struct check_plan *out)
{
    /* Odd, beyond a vector, beyond a vector and a half. */
    static const int64_t larger[] = {0, 1, 7, 17, 33, 9};

    return enlarge(lab, plan, larger, INT64_C(1) << 17, out);
}

int check_enlarge_much(struct check_lab *lab, const struct check_plan *plan,
                       struct check_plan *out)
{
    /* Enough elements for several threads, whatever the rank. */
    static const int64_t larger[][6] = {{0, 1, 20011, 40009, 30011, 50021},
                                        {0, 1, 211, 307, 259, 401},
                                        {0, 1, 31, 47, 37, 53},
                                        {0, 1, 13, 17, 19, 15}};

    for (uint32_t i = 0; i < 4; i++)
        if (enlarge(lab, plan, larger[i], INT64_C(1) << 17, out))
            return 1;
    return 0;
}
