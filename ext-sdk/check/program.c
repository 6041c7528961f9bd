/* SPDX-License-Identifier: Apache-2.0 */
/*
 * program.c - the case that ran last as a program for "hob eval", so that a
 * finding can be looked at, sent and replayed without the checker.
 */
#include "check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_MAX = 512 }; /* more is no text for people */

static void put_number(struct hob__text *out, double value)
{
    if (isnan(value))
        hob__text_puts(out, "\"nan\"");
    else if (isinf(value))
        hob__text_puts(out, value > 0 ? "\"inf\"" : "\"-inf\"");
    else
        hob__text_printf(out, "%.17g", value);
}

static int64_t elements_of(const struct check_arg *arg, uint32_t item)
{
    int64_t count = 1;

    for (uint32_t d = 0; d < arg->rank[item]; d++)
        count *= arg->shape[item][d];
    return count;
}

static void put_input(const struct check_lab *lab, const struct check_case *one,
                      uint32_t param, uint32_t item, const char *before,
                      struct hob__text *out)
{
    const struct check_arg *arg = &one->plan->args[param];
    int64_t count = elements_of(arg, item);
    double *values = calloc((size_t)count + 1, sizeof(*values));

    if (!values)
        return;
    check_case_values(lab, one, param, item, values, count);
    hob__text_printf(
        out, "%s{\"name\": \"%s_%" PRIu32 "\", \"dtype\": \"%s\", \"shape\": [",
        before, lab->op->signature.params[param].name, item,
        hob_dtype_name(one->dtype[param]));
    for (uint32_t d = 0; d < arg->rank[item]; d++)
        hob__text_printf(out, "%s%" PRId64, d ? ", " : "", arg->shape[item][d]);
    hob__text_puts(out, "], \"data\": [");
    for (int64_t i = 0; i < count; i++) {
        hob__text_puts(out, i ? ", " : "");
        if (one->dtype[param] == HOB_DTYPE_BOOL)
            hob__text_puts(out, values[i] != 0 ? "true" : "false");
        else
            put_number(out, values[i]);
    }
    hob__text_puts(out, "]}");
    free(values);
}

static void put_attribute(const struct hob__param *param,
                          const struct check_attr *attr, struct hob__text *out)
{
    switch (attr->tag) {
    case HOB_TAG_F64:
        put_number(out, attr->f64);
        break;
    case HOB_TAG_BOOL:
        hob__text_puts(out, attr->i64 ? "true" : "false");
        break;
    case HOB_TAG_STR:
        hob__text_json(out, attr->str);
        break;
    case HOB_TAG_DTYPE:
        hob__text_json(out, hob_dtype_name((uint32_t)attr->i64));
        break;
    case HOB_TAG_ENUM:
        hob__text_json(out,
                       attr->i64 >= 0 && attr->i64 < param->enumerator_count
                           ? param->enumerators[attr->i64]
                           : "?");
        break;
    case HOB_TAG_I64S:
    case HOB_TAG_F64S:
        hob__text_puts(out, "[");
        for (uint32_t i = 0; i < attr->count; i++) {
            hob__text_puts(out, i ? ", " : "");
            if (attr->tag == HOB_TAG_F64S)
                put_number(out, attr->f64s[i]);
            else
                hob__text_printf(out, "%" PRId64, attr->i64s[i]);
        }
        hob__text_puts(out, "]");
        break;
    default:
        hob__text_printf(out, "%" PRId64, attr->i64);
    }
}

/* Names of the tensors in order, null where one is absent. */
static void put_names(const struct check_lab *lab, const struct check_case *one,
                      struct hob__text *out)
{
    const struct hob__signature *signature = &lab->op->signature;
    const char *before = "";

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct check_arg *arg = &one->plan->args[i];

        if (!check_is_tensor(&signature->params[i]))
            continue;
        if (!arg->present || one->unmake == i + 1) {
            hob__text_printf(out, "%snull", before);
            before = ", ";
        }
        for (uint32_t k = 0;
             arg->present && one->unmake != i + 1 && k < arg->count; k++) {
            hob__text_printf(out, "%s\"%s_%" PRIu32 "\"", before,
                             signature->params[i].name, k);
            before = ", ";
        }
    }
}

static void put_attributes(const struct check_lab *lab,
                           const struct check_case *one, struct hob__text *out)
{
    const struct hob__signature *signature = &lab->op->signature;
    const char *before = "";

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct check_arg *arg = &one->plan->args[i];

        if (check_is_tensor(&signature->params[i]) || !arg->present ||
            arg->attr.tag == HOB_TAG_DEVICE ||
            arg->attr.tag == HOB_TAG_ABSENT || one->unmake == i + 1)
            continue;
        hob__text_printf(out, "%s\"%s\": ", before, signature->params[i].name);
        put_attribute(&signature->params[i], &arg->attr, out);
        before = ", ";
    }
}

void check_program(const struct check_lab *lab, struct hob__text *out)
{
    const struct check_shared *shared = lab->child->shared;
    const struct hob__signature *signature = &lab->op->signature;
    struct check_case one = shared->now;
    const char *before = "{\"inputs\": [";
    int64_t total = 0;

    one.plan = &shared->now_plan;
    for (uint32_t i = 0; i < signature->param_count; i++)
        for (uint32_t k = 0; k < one.plan->args[i].count; k++)
            total += elements_of(&one.plan->args[i], k);
    if (!shared->has_now || total > ELEMENTS_MAX)
        return;
    for (uint32_t i = 0; i < signature->param_count; i++)
        for (uint32_t k = 0; one.plan->args[i].present && one.unmake != i + 1 &&
                             k < one.plan->args[i].count;
             k++) {
            put_input(lab, &one, i, k, before, out);
            before = ", ";
        }
    if (before[0] == '{')
        hob__text_puts(out, before);
    hob__text_puts(out, "], \"program\": [[[");
    for (uint32_t r = 0; r < signature->result_count; r++)
        hob__text_printf(out, "%s\"result_%" PRIu32 "\"", r ? ", " : "", r);
    hob__text_printf(out, "], \"%s\", [", lab->op->name);
    put_names(lab, &one, out);
    hob__text_puts(out, "], {");
    put_attributes(lab, &one, out);
    hob__text_puts(out, "}]]}");
}
