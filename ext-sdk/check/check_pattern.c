/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_pattern.c - an op that takes the place of others gives what they give:
 * the "patterns" of manifests against the op, on the op's own cases.
 */
#include "check.h"

#include <hob/ext/fusion.h>

#include <stdio.h>
#include <string.h>

enum { WHY = 400 };

/* What the names of a pattern stand for in one case. */
struct names {
    const hob_value *tensors[HOB_PATTERN_MAX_NAMES];
    const hob_value *attributes[HOB_PATTERN_MAX_NAMES];
};

/* Nonzero if ARGS, of the op, are such as PATTERN hands it. */
static int bind(const struct hob_pattern *pattern,
                const struct check_args *args, struct names *names)
{
    const struct hob_pattern_node *with = &pattern->nodes[pattern->with];

    memset(names, 0, sizeof(*names));
    for (uint32_t i = 0; i < with->count; i++) {
        const struct hob_pattern_node *at = &pattern->nodes[with->first + i];
        const hob_value *value = &args->values[i];
        const hob_value **name = at->kind == HOB_PATTERN_TENSOR
                                     ? &names->tensors[at->number]
                                     : &names->attributes[at->number];

        if (at->kind == HOB_PATTERN_VALUE) {
            if (!hob_pattern_is_same_value(&at->value, value))
                return 0;
            continue;
        }
        if ((at->kind == HOB_PATTERN_TENSOR) != (value->tag == HOB_TAG_TENSOR))
            return 0;
        if (!*name)
            *name = value;
        if (!hob_pattern_is_same_value(*name, value))
            return 0;
    }
    for (uint32_t i = 0; i < pattern->tensors; i++)
        if (!names->tensors[i])
            return 0;
    for (uint32_t i = 0; i < pattern->attributes; i++)
        if (!names->attributes[i])
            return 0;
    return 1;
}

/* The result of node INDEX; the scope's error tensor if an op fails. */
static hob_tensor *evaluate(struct check_lab *lab, hob_scope *scope,
                            const struct hob_pattern *pattern,
                            const struct names *names, uint32_t index)
{
    const struct hob_pattern_node *node = &pattern->nodes[index];
    hob_value args[HOB_MAX_PARAMS];

    for (uint32_t i = 0; i < node->count; i++) {
        const struct hob_pattern_node *at = &pattern->nodes[node->first + i];

        if (at->kind == HOB_PATTERN_OP)
            args[i] = hob_value_tensor(
                evaluate(lab, scope, pattern, names, node->first + i));
        else if (at->kind == HOB_PATTERN_TENSOR)
            args[i] = *names->tensors[at->number];
        else if (at->kind == HOB_PATTERN_ATTRIBUTE)
            args[i] = *names->attributes[at->number];
        else
            args[i] = at->value;
    }
    return lab->runtime->host.call1(scope, node->op, args, node->count);
}

/* What the ops of PATTERN give for ONE; 0 if they are for no such case. */
static int run_ops(struct check_lab *lab, const struct hob_pattern *pattern,
                   const struct check_case *one, struct check_outcome *out)
{
    hob_scope *scope = hob_scope_open(lab->runtime);
    hob_error error = HOB_ERROR_INIT;
    struct check_args args;
    struct names names;
    int is_for = 0;

    memset(out, 0, sizeof(*out));
    out->written = -1;
    check_tell_case(lab, one, 0);
    if (scope &&
        !check_args_make(lab, scope, lab->device, one, &args, &error) &&
        bind(pattern, &args, &names)) {
        hob_tensor *result = evaluate(lab, scope, pattern, &names, 0);

        out->count = 1;
        out->status = hob_scope_error(scope, NULL);
        if (!out->status)
            check_outcome_read(out, 0, result);
        is_for = !out->status;
    }
    hob_error_release(&error);
    hob_scope_close(scope);
    return is_for;
}

static int compare(struct check_lab *lab, const struct hob_pattern *pattern,
                   const struct check_case *one)
{
    struct check_outcome wanted, got;
    char why[WHY];
    int is_for = run_ops(lab, pattern, one, &wanted);

    if (is_for) {
        check_call(lab, lab->device, one, 0, &got);
        /* Where metadata differs nothing is replaced. */
        if (!got.status && check_same_metas(&got, &wanted, 1, why, WHY) &&
            !check_near(lab, &got, &wanted, why, sizeof(why)))
            check_found(lab->child, CHECK_PATTERN, "in place of %s, %s",
                        pattern->replace, why);
        check_outcome_release(&got);
    }
    check_outcome_release(&wanted);
    return is_for;
}

void check_replaces(struct check_lab *lab)
{
    const struct hob_host *host = &lab->runtime->host;
    const struct check_shared *shared = lab->child->shared;
    const struct hob_pattern *pattern;

    for (uint32_t k = 0; (pattern = host->pattern(host, k)) != NULL; k++) {
        int tried = 0;

        if (pattern->nodes[pattern->with].op != lab->op->id ||
            strcmp(pattern->plugin, lab->child->target->id) != 0)
            continue;
        for (uint32_t i = 0; i < shared->plan_count; i++) {
            struct check_plan larger;
            struct check_case one;

            check_case_init(lab, &one, &shared->plans[i]);
            tried |= compare(lab, pattern, &one);
            for (uint32_t d = HOB_DTYPE_F64; d < HOB_DTYPE_QUANT; d++) {
                const struct hob__param *param = &lab->op->signature.params[0];

                if (!check_is_tensor(param) || d == one.dtype[0] ||
                    !(param->mask & HOB_DTYPE_BIT(d)))
                    continue;
                check_case_init(lab, &one, &shared->plans[i]);
                check_case_dtype(lab, &one, 0, d);
                (void)compare(lab, pattern, &one);
            }
            if (shared->plans[i].is_empty ||
                !check_enlarge(lab, &shared->plans[i], &larger))
                continue;
            check_case_init(lab, &one, &larger);
            (void)compare(lab, pattern, &one);
        }
        if (!tried)
            check_note(lab->child, "no case is for the pattern %s",
                       pattern->replace);
    }
}
