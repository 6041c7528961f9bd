/* SPDX-License-Identifier: Apache-2.0 */
/*
 * expression.h - values that a map of names computes; see docs/EVAL.md.
 *
 * Numbers, texts, booleans and null stand for themselves, a list for the list
 * of its values. An object is a form, named by its first key: "attr" takes an
 * attribute of the foreign step, "shape" the shape of an argument, "add" adds.
 */
#ifndef TOOLS_EVAL_EXPRESSION_H
#define TOOLS_EVAL_EXPRESSION_H

#include <hob/hob.h>

#include <cjson/cJSON.h>

/* What an expression may look at. */
struct expression_scope {
    const cJSON *attrs; /* of the foreign step */
    /* The tensor that ARGUMENT, 0 or "%0", stands for; NULL if there is none.
     */
    hob_tensor *(*find)(const void *context, const cJSON *argument);
    const void *context; /* for FIND */
    const cJSON *item;   /* in an "each" rule, the element of now; else NULL */
    int number;          /* which one, from 0 */
};

/*
 * The value of EXPRESSION, which the caller frees with cJSON_Delete().
 * *OUT_VALUE is NULL, with HOB_OK, for an attribute that is absent or null and
 * has no default. Fails with HOB_ERR_FORMAT if the expression is wrong,
 * HOB_ERR_RANGE if a dimension is out of range.
 */
HOB_MUST_CHECK hob_status expression_value(const cJSON *expression,
                                           const struct expression_scope *scope,
                                           cJSON **out_value, hob_error *error);

#endif
