/* SPDX-License-Identifier: Apache-2.0 */
#include "expression.h"

#include "program.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Maps are read with cJSON, which limits their depth; so may this recurse. */
typedef hob_status form_fn(const cJSON *form,
                           const struct expression_scope *scope,
                           cJSON **out_value, hob_error *error);

static const cJSON *member(const cJSON *form, const char *key)
{
    return cJSON_GetObjectItemCaseSensitive(form, key);
}

/* ---- parts that are numbers or lists ---- */

static hob_status number_value(const cJSON *expression,
                               const struct expression_scope *scope,
                               double *out_number, hob_error *error)
{
    cJSON *value = NULL;
    hob_status status = expression_value(expression, scope, &value, error);

    if (!status && !number_from_json(value, out_number))
        status = hob_error_set(error, HOB_ERR_FORMAT,
                               "a map of names needs a number here");
    cJSON_Delete(value);
    return status;
}

/* A number that is whole and small, as dimensions and ranks are. */
static hob_status index_value(const cJSON *expression,
                              const struct expression_scope *scope,
                              int32_t *out_index, hob_error *error)
{
    double number = 0;
    hob_status status = number_value(expression, scope, &number, error);

    if (!status && !(fabs(number) <= INT16_MAX && number == floor(number)))
        status =
            hob_error_set(error, HOB_ERR_RANGE,
                          "%g is no dimension and no count of them", number);
    *out_index = status ? 0 : (int32_t)number;
    return status;
}

static hob_status list_value(const cJSON *expression,
                             const struct expression_scope *scope,
                             cJSON **out_list, hob_error *error)
{
    hob_status status = expression_value(expression, scope, out_list, error);

    if (!status && !cJSON_IsArray(*out_list)) {
        cJSON_Delete(*out_list);
        *out_list = NULL;
        status = hob_error_set(error, HOB_ERR_FORMAT,
                               "a map of names needs a list here");
    }
    return status;
}

static hob_status find_tensor(const cJSON *argument,
                              const struct expression_scope *scope,
                              hob_tensor **out_tensor, hob_error *error)
{
    *out_tensor = scope->find(scope->context, argument);
    return *out_tensor ? HOB_OK
                       : hob_error_set(error, HOB_ERR_FORMAT,
                                       "a map of names asks for an argument "
                                       "that there is not");
}

/* ---- forms ---- */

/* LIST, or column COLUMN of a list of lists; null elements become FILL. */
static cJSON *take_column(const cJSON *list, int column, const cJSON *fill)
{
    cJSON *out = cJSON_CreateArray();
    const cJSON *row;

    cJSON_ArrayForEach(row, list)
    {
        const cJSON *item = column < 0 ? row : cJSON_GetArrayItem(row, column);
        const cJSON *from = item && !cJSON_IsNull(item) ? item : fill;

        cJSON_AddItemToArray(out, from ? cJSON_Duplicate(from, 1)
                                       : cJSON_CreateNull());
    }
    return out;
}

/* {"attr": NAME}, with "default", "list", "column" and "null". */
static hob_status form_attr(const cJSON *form,
                            const struct expression_scope *scope,
                            cJSON **out_value, hob_error *error)
{
    const cJSON *name = member(form, "attr");
    const cJSON *column = member(form, "column");
    const cJSON *initial = member(form, "default");
    const cJSON *value =
        cJSON_IsString(name) ? member(scope->attrs, name->valuestring) : NULL;

    if (!value || cJSON_IsNull(value))
        return initial ? expression_value(initial, scope, out_value, error)
                       : HOB_OK;
    if (cJSON_IsArray(value) && member(form, "null")) {
        *out_value =
            take_column(value, cJSON_IsNumber(column) ? column->valueint : -1,
                        member(form, "null"));
        return HOB_OK;
    }
    if (cJSON_IsTrue(member(form, "list")) && !cJSON_IsArray(value)) {
        *out_value = cJSON_CreateArray();
        cJSON_AddItemToArray(*out_value, cJSON_Duplicate(value, 1));
        return HOB_OK;
    }
    *out_value = cJSON_Duplicate(value, 1);
    return HOB_OK;
}

static hob_status form_shape(const cJSON *form,
                             const struct expression_scope *scope,
                             cJSON **out_value, hob_error *error)
{
    hob_tensor *tensor;
    hob_status status =
        find_tensor(member(form, "shape"), scope, &tensor, error);

    if (status)
        return status;
    *out_value = cJSON_CreateArray();
    for (int32_t i = 0; i < hob_tensor_rank(tensor); i++)
        cJSON_AddItemToArray(
            *out_value,
            cJSON_CreateNumber((double)hob_tensor_shape(tensor)[i]));
    return HOB_OK;
}

static hob_status form_rank(const cJSON *form,
                            const struct expression_scope *scope,
                            cJSON **out_value, hob_error *error)
{
    hob_tensor *tensor;
    hob_status status =
        find_tensor(member(form, "rank"), scope, &tensor, error);

    if (!status)
        *out_value = cJSON_CreateNumber(hob_tensor_rank(tensor));
    return status;
}

static hob_status form_dtype(const cJSON *form,
                             const struct expression_scope *scope,
                             cJSON **out_value, hob_error *error)
{
    hob_tensor *tensor;
    hob_status status =
        find_tensor(member(form, "dtype"), scope, &tensor, error);

    if (!status)
        *out_value =
            cJSON_CreateString(hob_dtype_name(hob_tensor_dtype(tensor)));
    return status;
}

/* Dimension EXPRESSION of TENSOR, counted from the front. */
static hob_status dim_value(const cJSON *expression,
                            const struct expression_scope *scope,
                            const hob_tensor *tensor, int32_t *out_dim,
                            hob_error *error)
{
    int32_t rank = hob_tensor_rank(tensor);
    int32_t dim = 0;
    hob_status status = index_value(expression, scope, &dim, error);

    if (status)
        return status;
    if (dim < -rank || dim >= rank)
        return hob_error_set(error, HOB_ERR_RANGE,
                             "dimension %" PRId32
                             " is out of range for rank %" PRId32,
                             dim, rank);
    *out_dim = dim + (dim < 0 ? rank : 0);
    return HOB_OK;
}

/* {"item": "value"} or {"item": "number"}, of the "each" of now. */
static hob_status form_item(const cJSON *form,
                            const struct expression_scope *scope,
                            cJSON **out_value, hob_error *error)
{
    const cJSON *what = member(form, "item");

    if (!scope->item)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "\"item\" is for rules with \"each\"");
    *out_value = cJSON_IsString(what) && !strcmp(what->valuestring, "number")
                     ? cJSON_CreateNumber(scope->number)
                     : cJSON_Duplicate(scope->item, 1);
    return HOB_OK;
}

/* {"dim": D, "of": ARGUMENT}: D counted from the front. */
static hob_status form_dim(const cJSON *form,
                           const struct expression_scope *scope,
                           cJSON **out_value, hob_error *error)
{
    hob_tensor *tensor;
    int32_t dim = 0;
    hob_status status = find_tensor(member(form, "of"), scope, &tensor, error);

    if (!status)
        status = dim_value(member(form, "dim"), scope, tensor, &dim, error);
    if (!status)
        *out_value = cJSON_CreateNumber(dim);
    return status;
}

/* {"size": ARGUMENT, "along": D} */
static hob_status form_size(const cJSON *form,
                            const struct expression_scope *scope,
                            cJSON **out_value, hob_error *error)
{
    hob_tensor *tensor;
    int32_t dim = 0;
    hob_status status =
        find_tensor(member(form, "size"), scope, &tensor, error);

    if (!status)
        status = dim_value(member(form, "along"), scope, tensor, &dim, error);
    if (!status)
        *out_value = cJSON_CreateNumber((double)hob_tensor_shape(tensor)[dim]);
    return status;
}

/* {"cat": [A, B, ...]}: one list; a part that is no list is one element. */
static hob_status form_cat(const cJSON *form,
                           const struct expression_scope *scope,
                           cJSON **out_value, hob_error *error)
{
    const cJSON *part;

    *out_value = cJSON_CreateArray();
    cJSON_ArrayForEach(part, member(form, "cat"))
    {
        cJSON *value = NULL;
        hob_status status = expression_value(part, scope, &value, error);

        if (status)
            return status;
        if (!cJSON_IsArray(value)) {
            cJSON_AddItemToArray(*out_value, value);
            continue;
        }
        while (cJSON_GetArraySize(value))
            cJSON_AddItemToArray(*out_value,
                                 cJSON_DetachItemFromArray(value, 0));
        cJSON_Delete(value);
    }
    return HOB_OK;
}

/* {"repeat": VALUE, "times": N}: a list; none for a negative N. */
static hob_status form_repeat(const cJSON *form,
                              const struct expression_scope *scope,
                              cJSON **out_value, hob_error *error)
{
    cJSON *value = NULL;
    int32_t times = 0;
    hob_status status =
        index_value(member(form, "times"), scope, &times, error);

    if (!status)
        status = expression_value(member(form, "repeat"), scope, &value, error);
    if (!status) {
        *out_value = cJSON_CreateArray();
        for (int i = 0; i < times && i < HOB_MAX_RANK; i++)
            cJSON_AddItemToArray(*out_value, cJSON_Duplicate(value, 1));
    }
    cJSON_Delete(value);
    return status;
}

/* {"part": LIST, "from": I, "to": J}: elements I to J - 1. */
static hob_status form_part(const cJSON *form,
                            const struct expression_scope *scope,
                            cJSON **out_value, hob_error *error)
{
    const cJSON *to = member(form, "to");
    cJSON *list = NULL;
    int32_t first = 0;
    int32_t end = 0;
    hob_status status = list_value(member(form, "part"), scope, &list, error);

    if (!status && member(form, "from"))
        status = index_value(member(form, "from"), scope, &first, error);
    end = cJSON_GetArraySize(list);
    if (!status && to)
        status = index_value(to, scope, &end, error);
    if (!status) {
        *out_value = cJSON_CreateArray();
        for (int i = first < 0 ? 0 : first;
             i < end && i < cJSON_GetArraySize(list); i++)
            cJSON_AddItemToArray(
                *out_value, cJSON_Duplicate(cJSON_GetArrayItem(list, i), 1));
    }
    cJSON_Delete(list);
    return status;
}

/* {"pairs": LIST}: a list of lists as one list, the last of them first, as
 * padding is written; any other list as it is. */
static hob_status form_pairs(const cJSON *form,
                             const struct expression_scope *scope,
                             cJSON **out_value, hob_error *error)
{
    const cJSON *pair, *item;
    cJSON *list = NULL;
    hob_status status = list_value(member(form, "pairs"), scope, &list, error);

    if (status || !cJSON_IsArray(cJSON_GetArrayItem(list, 0))) {
        *out_value = list;
        return status;
    }
    *out_value = cJSON_CreateArray();
    for (int i = cJSON_GetArraySize(list); i--;) {
        pair = cJSON_GetArrayItem(list, i);
        cJSON_ArrayForEach(item, pair)
            cJSON_AddItemToArray(*out_value, cJSON_Duplicate(item, 1));
    }
    cJSON_Delete(list);
    return HOB_OK;
}

static double combine(char what, double a, double b)
{
    switch (what) {
    case 'a':
        return a + b;
    case 's':
        return a - b;
    case 'm':
        return a * b;
    case 'd':
        return a / b;
    case 'p':
        return pow(a, b);
    default:
        return floor(a / b);
    }
}

/* {"add": LIST}: all elements, from the left; "sub", "mul" and so on. */
static hob_status form_arithmetic(const cJSON *form,
                                  const struct expression_scope *scope,
                                  cJSON **out_value, hob_error *error)
{
    const cJSON *item;
    cJSON *list = NULL;
    double total = form->child->string[0] == 'm' ? 1 : 0; /* of no elements */
    int first = 1;
    hob_status status = list_value(form->child, scope, &list, error);

    cJSON_ArrayForEach(item, list)
    {
        double number;

        if (!number_from_json(item, &number)) {
            status = hob_error_set(error, HOB_ERR_FORMAT,
                                   "\"%s\" takes numbers", form->child->string);
            break;
        }
        total = first ? number : combine(form->child->string[0], total, number);
        first = 0;
    }
    if (!status)
        *out_value = cJSON_CreateNumber(total);
    cJSON_Delete(list);
    return status;
}

static const struct form {
    const char *key;
    form_fn *value;
} forms[] = {{"attr", form_attr},      {"shape", form_shape},
             {"rank", form_rank},      {"dtype", form_dtype},
             {"dim", form_dim},        {"size", form_size},
             {"cat", form_cat},        {"repeat", form_repeat},
             {"part", form_part},      {"pairs", form_pairs},
             {"add", form_arithmetic}, {"sub", form_arithmetic},
             {"mul", form_arithmetic}, {"div", form_arithmetic},
             {"pow", form_arithmetic}, {"floordiv", form_arithmetic},
             {"item", form_item}};

static hob_status object_value(const cJSON *form,
                               const struct expression_scope *scope,
                               cJSON **out_value, hob_error *error)
{
    const char *key = form->child ? form->child->string : "";

    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++)
        if (!strcmp(forms[i].key, key))
            return forms[i].value(form, scope, out_value, error);
    return hob_error_set(error, HOB_ERR_FORMAT,
                         "a map of names has no form \"%s\"", key);
}

hob_status expression_value(const cJSON *expression,
                            const struct expression_scope *scope,
                            cJSON **out_value, hob_error *error)
{
    const cJSON *item;
    hob_status status = HOB_OK;

    *out_value = NULL;
    if (cJSON_IsObject(expression)) {
        status = object_value(expression, scope, out_value, error);
    } else if (cJSON_IsArray(expression)) {
        *out_value = cJSON_CreateArray();
        cJSON_ArrayForEach(item, expression)
        {
            cJSON *value = NULL;

            status = expression_value(item, scope, &value, error);
            if (status)
                break;
            cJSON_AddItemToArray(*out_value,
                                 value ? value : cJSON_CreateNull());
        }
    } else {
        *out_value = cJSON_Duplicate(expression, 1);
    }
    if (status) {
        cJSON_Delete(*out_value);
        *out_value = NULL;
    }
    return status;
}
