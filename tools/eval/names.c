/* SPDX-License-Identifier: Apache-2.0 */
#include "names.h"

#include "../files.h"
#include "expression.h"
#include "program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hob_status names_load(const char *path, struct names *names, hob_error *error)
{
    hob_status status = json_load(path, &names->root, error);

    if (!status && !cJSON_IsObject(names->root)) {
        names_release(names);
        status = hob_error_set(error, HOB_ERR_FORMAT,
                               "%s: a map of names is one JSON object", path);
    }
    return status;
}

void names_release(struct names *names)
{
    cJSON_Delete(names->root);
    names->root = NULL;
}

static const cJSON *member(const cJSON *json, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(json, key);
}

/* What "each" goes over; NULL in other rules. */
static const cJSON *each_list(const struct translation *t)
{
    const cJSON *name = member(t->rule, "each");

    return cJSON_IsString(name)
               ? member(cJSON_GetArrayItem(t->step, 3), name->valuestring)
               : NULL;
}

int translation_count(const struct translation *t)
{
    const cJSON *steps = member(t->rule, "steps");

    if (member(t->rule, "each"))
        return cJSON_GetArraySize(each_list(t));
    return steps ? cJSON_GetArraySize(steps) : 1;
}

/* ---- arguments ---- */

/* The name that step INDEX of the rule gives its result. */
static cJSON *result_name(const struct translation *t, int index)
{
    const cJSON *result = cJSON_GetArrayItem(t->step, 0);
    const cJSON *first =
        cJSON_IsArray(result) ? cJSON_GetArrayItem(result, 0) : result;
    const cJSON *item;
    char name[256];
    int place = 0;

    /* "results" says which steps make the foreign step's results. */
    cJSON_ArrayForEach(item, member(t->rule, "results"))
    {
        if (cJSON_IsNumber(item) && item->valueint == index &&
            cJSON_IsArray(result) && place < cJSON_GetArraySize(result))
            return cJSON_Duplicate(cJSON_GetArrayItem(result, place), 1);
        place++;
    }
    if (!place && index + 1 == translation_count(t))
        return cJSON_Duplicate(result, 1);
    snprintf(name, sizeof(name), "%s%%%d",
             cJSON_IsString(first) ? first->valuestring : "value", index);
    return cJSON_CreateString(name);
}

/* 0 is the foreign step's first argument, "%0" the rule's first result. */
static cJSON *argument_name(const struct translation *t, const cJSON *item)
{
    const cJSON *given = cJSON_GetArrayItem(t->step, 2);

    if (cJSON_IsNumber(item)) {
        given = cJSON_GetArrayItem(given, item->valueint);
        return given ? cJSON_Duplicate(given, 1) : cJSON_CreateNull();
    }
    if (cJSON_IsString(item) && item->valuestring[0] == '%')
        return result_name(t, atoi(item->valuestring + 1));
    return NULL;
}

static hob_tensor *find_argument(const void *context, const cJSON *argument)
{
    const struct translation *t = context;
    cJSON *name = argument_name(t, argument);
    hob_tensor *tensor =
        cJSON_IsString(name) ? t->find(t->values, name->valuestring) : NULL;

    cJSON_Delete(name);
    return tensor;
}

static hob_status make_arguments(const struct translation *t, int index,
                                 const cJSON *wanted, cJSON *out,
                                 hob_error *error)
{
    const cJSON *item;

    if (member(t->rule, "each") && index) { /* a chain */
        cJSON_AddItemToArray(out, result_name(t, index - 1));
        return HOB_OK;
    }
    if (!wanted) { /* all of them */
        cJSON_ArrayForEach(item, cJSON_GetArrayItem(t->step, 2))
            cJSON_AddItemToArray(out, cJSON_Duplicate(item, 1));
        return HOB_OK;
    }
    cJSON_ArrayForEach(item, wanted)
    {
        cJSON *name = argument_name(t, item);

        if (!name)
            return hob_error_set(error, HOB_ERR_FORMAT,
                                 "a rule's \"args\" hold numbers and \"%%N\"");
        cJSON_AddItemToArray(out, name);
    }
    return HOB_OK;
}

/* ---- choosing a rule ---- */

static int fits_attributes(const cJSON *rule, const cJSON *attrs)
{
    const cJSON *condition;

    cJSON_ArrayForEach(condition, member(rule, "when"))
    {
        const cJSON *value = member(attrs, condition->string);

        /* A null condition means: absent, or null. */
        if (cJSON_IsNull(condition) ? value && !cJSON_IsNull(value)
                                    : !cJSON_Compare(value, condition, 1))
            return 0;
    }
    return 1;
}

/* "dtypes" lists those of the arguments; null stands for any. */
static int fits_dtypes(const struct translation *t)
{
    const cJSON *wanted;
    int i = 0;

    cJSON_ArrayForEach(wanted, member(t->rule, "dtypes"))
    {
        cJSON *number = cJSON_CreateNumber(i++);
        hob_tensor *tensor = find_argument(t, number);

        cJSON_Delete(number);
        if (cJSON_IsString(wanted) &&
            (!tensor || strcmp(wanted->valuestring,
                               hob_dtype_name(hob_tensor_dtype(tensor)))))
            return 0;
    }
    return 1;
}

int names_choose(const struct names *names, const cJSON *step,
                 names_find_fn *find, const void *values, struct translation *t)
{
    const cJSON *name = cJSON_GetArrayItem(step, 1);
    const cJSON *entry =
        cJSON_IsString(name) ? member(names->root, name->valuestring) : NULL;
    const cJSON *attrs = cJSON_GetArrayItem(step, 3);

    t->step = step;
    t->find = find;
    t->values = values;
    t->rule = cJSON_IsArray(entry) ? entry->child : entry;
    while (t->rule && !(fits_attributes(t->rule, attrs) && fits_dtypes(t)))
        t->rule = cJSON_IsArray(entry) ? t->rule->next : NULL;
    return t->rule != NULL;
}

/* ---- steps ---- */

static hob_status make_attributes(const struct expression_scope *scope,
                                  const cJSON *wanted, cJSON *out,
                                  hob_error *error)
{
    const cJSON *source;

    cJSON_ArrayForEach(source, wanted)
    {
        cJSON *value = NULL;
        hob_status status = expression_value(source, scope, &value, error);

        if (status)
            return status;
        if (value)
            cJSON_AddItemToObject(out, source->string, value);
    }
    return HOB_OK;
}

/* "rank" of a step: what the result must have. Absent attributes: any. */
static hob_status read_rank(const struct expression_scope *scope,
                            const cJSON *wanted, int32_t *out_rank,
                            hob_error *error)
{
    cJSON *value = NULL;
    double number = -1;
    hob_status status = HOB_OK;

    if (wanted)
        status = expression_value(wanted, scope, &value, error);
    if (!status && value &&
        (!number_from_json(value, &number) ||
         !(number >= 0 && number <= HOB_MAX_RANK && number == floor(number))))
        status =
            hob_error_set(error, HOB_ERR_FORMAT,
                          "a rule's \"rank\" must be 0 to %d", HOB_MAX_RANK);
    *out_rank = status ? -1 : (int32_t)number;
    cJSON_Delete(value);
    return status;
}

hob_status translation_step(const struct translation *t, int index,
                            cJSON **out_step, int32_t *out_rank,
                            hob_error *error)
{
    const struct expression_scope scope = {
        cJSON_GetArrayItem(t->step, 3), find_argument, t,
        cJSON_GetArrayItem(each_list(t), index), index};
    const cJSON *steps = member(t->rule, "steps");
    const cJSON *rule = steps ? cJSON_GetArrayItem(steps, index) : t->rule;
    const cJSON *op = member(rule, "op");
    cJSON *args;
    cJSON *attrs;
    hob_status status;

    *out_step = NULL;
    *out_rank = -1;
    if (!cJSON_IsString(op))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "the map's rule for \"%s\" needs \"op\", the "
                             "name of one of Hob's",
                             cJSON_GetArrayItem(t->step, 1)->valuestring);
    *out_step = cJSON_CreateArray();
    args = cJSON_CreateArray();
    attrs = cJSON_CreateObject();
    cJSON_AddItemToArray(*out_step, result_name(t, index));
    cJSON_AddItemToArray(*out_step, cJSON_CreateString(op->valuestring));
    cJSON_AddItemToArray(*out_step, args);
    cJSON_AddItemToArray(*out_step, attrs);
    status = make_arguments(t, index, member(rule, "args"), args, error);
    if (!status)
        status = make_attributes(&scope, member(rule, "attrs"), attrs, error);
    /* What is promised of a chain holds at its end. */
    if (!status &&
        (!member(t->rule, "each") || index + 1 == translation_count(t)))
        status = read_rank(&scope, member(rule, "rank"), out_rank, error);
    if (status) {
        cJSON_Delete(*out_step);
        *out_step = NULL;
    }
    return status;
}
