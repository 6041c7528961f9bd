/* SPDX-License-Identifier: Apache-2.0 */
#include "bisect.h"

#include "../files.h"
#include "compare.h"

#include <stdlib.h>
#include <string.h>

/* A bisection under way. */
struct bisect {
    const struct names *names; /* or NULL */
    hob_device *second;
    struct run a;      /* the whole program, on the first device */
    const cJSON *step; /* now */
    int number;        /* of the step, from 1 */
    cJSON *inputs;     /* [{"name", "dtype", "shape"}] of the step */
    cJSON *difference; /* the first; NULL until it is found */
};

static cJSON *shape_to_json(const int64_t *shape, int32_t rank)
{
    cJSON *json = cJSON_CreateArray();

    for (int32_t i = 0; i < rank; i++)
        cJSON_AddItemToArray(json, cJSON_CreateNumber((double)shape[i]));
    return json;
}

static cJSON *describe(const char *name, const hob_tensor *tensor)
{
    cJSON *json = cJSON_CreateObject();

    cJSON_AddStringToObject(json, "name", name);
    cJSON_AddStringToObject(json, "dtype",
                            hob_dtype_name(hob_tensor_dtype(tensor)));
    cJSON_AddItemToObject(
        json, "shape",
        shape_to_json(hob_tensor_shape(tensor), hob_tensor_rank(tensor)));
    return json;
}

/* Bring the values that NAMES names (a text, or a list of these) to B. A name
 * that there is not is left for the step to complain of. */
static hob_status bring(struct bisect *bisect, struct run *b,
                        const cJSON *names, hob_error *error)
{
    hob_tensor *tensor;
    const cJSON *name;
    hob_status status = HOB_OK;

    if (!cJSON_IsString(names)) {
        cJSON_ArrayForEach(name, names) if (!status) status =
            bring(bisect, b, name, error);
        return status;
    }
    tensor = run_find(&bisect->a, names->valuestring);
    if (!tensor)
        return HOB_OK;
    cJSON_AddItemToArray(bisect->inputs, describe(names->valuestring, tensor));
    tensor = hob_to_device(b->scope, tensor, bisect->second);
    status = hob_scope_error(b->scope, error);
    return status ? status : run_bind(b, names->valuestring, tensor, error);
}

/* Begin the description of a difference at RESULT, a name or NULL. */
static cJSON *found(struct bisect *bisect, const char *result)
{
    const cJSON *op = cJSON_GetArrayItem(bisect->step, 1);
    const cJSON *attributes = cJSON_GetArrayItem(bisect->step, 3);
    cJSON *json = cJSON_CreateObject();

    bisect->difference = json;
    cJSON_AddNumberToObject(json, "step", bisect->number);
    cJSON_AddStringToObject(json, "op",
                            cJSON_IsString(op) ? op->valuestring : "?");
    cJSON_AddItemToObject(json, "inputs", bisect->inputs);
    bisect->inputs = NULL;
    cJSON_AddItemToObject(json, "attributes",
                          attributes ? cJSON_Duplicate(attributes, 1)
                                     : cJSON_CreateObject());
    if (result)
        cJSON_AddStringToObject(json, "result", result);
    return json;
}

/* The step failed on one device only: that is a difference, too. */
static void found_failure(struct bisect *bisect, const hob_device *device,
                          hob_error *why)
{
    cJSON *json = found(bisect, NULL);

    cJSON_AddStringToObject(json, "failed_on", hob_device_name(device));
    cJSON_AddStringToObject(json, "message", why->message ? why->message : "");
    hob_error_release(why);
}

/* Position AT, flat, as an index in each dimension. */
static cJSON *index_to_json(const hob_tensor *tensor, int64_t at)
{
    int64_t index[HOB_MAX_RANK];

    for (int32_t i = hob_tensor_rank(tensor); i-- > 0;) {
        index[i] = at % hob_tensor_shape(tensor)[i];
        at /= hob_tensor_shape(tensor)[i];
    }
    return shape_to_json(index, hob_tensor_rank(tensor));
}

static hob_status compare_result(struct bisect *bisect, const struct run *b,
                                 const char *name, hob_error *error)
{
    hob_tensor *mine = run_find(&bisect->a, name);
    hob_tensor *other = run_find(b, name);
    struct gap gap = {0, 0, 0, "", ""};
    hob_status status;
    cJSON *json;

    if (!mine || !other)
        return HOB_OK;
    status =
        compare_widest(mine, other, &bisect->a.program->tolerance, &gap, error);
    if (status || !gap.differing)
        return status;
    json = found(bisect, name);
    cJSON_AddItemToObject(json, "first", describe(name, mine));
    cJSON_AddItemToObject(json, "second", describe(name, other));
    if (gap.differing < 0) /* their dtypes or shapes do */
        return HOB_OK;
    cJSON_AddNumberToObject(json, "elements", (double)hob_tensor_count(mine));
    cJSON_AddNumberToObject(json, "differing", (double)gap.differing);
    cJSON_AddItemToObject(json, "index", index_to_json(mine, gap.at));
    cJSON_AddRawToObject(json, "first_value", gap.left);
    cJSON_AddRawToObject(json, "second_value", gap.right);
    cJSON_AddItemToObject(json, "largest_difference",
                          number_to_json(gap.distance));
    return HOB_OK;
}

/* Compare all results of the step. */
static hob_status compare_step(struct bisect *bisect, const struct run *b,
                               hob_error *error)
{
    const cJSON *result = cJSON_GetArrayItem(bisect->step, 0);
    const cJSON *name;
    hob_status status = HOB_OK;

    if (cJSON_IsString(result))
        return compare_result(bisect, b, result->valuestring, error);
    cJSON_ArrayForEach(name, result) if (!status && !bisect->difference &&
                                         cJSON_IsString(name)) status =
        compare_result(bisect, b, name->valuestring, error);
    return status;
}

/* Run the step on both devices. *OUT_ENDED: it failed on both. */
static hob_status take_step(struct bisect *bisect, int *out_ended,
                            hob_error *error)
{
    struct run b;
    hob_error why = HOB_ERROR_INIT;
    char *missing = NULL;
    hob_status on_a;
    hob_status on_b;
    hob_status status = run_open(bisect->a.program, bisect->second, &b, error);

    if (!status) /* first: the step may give a name anew */
        status = bring(bisect, &b, cJSON_GetArrayItem(bisect->step, 2), error);
    if (status)
        goto out;
    hob_seed(bisect->a.scope, (uint64_t)bisect->number);
    hob_seed(b.scope, (uint64_t)bisect->number);
    on_a = run_item(&bisect->a, bisect->step, bisect->number, bisect->names,
                    &missing, error);
    if (missing) {
        status = on_a;
        goto out;
    }
    on_b = run_item(&b, bisect->step, bisect->number, bisect->names, &missing,
                    &why);
    if (on_a && on_b) {
        *out_ended = 1;
        status = on_a;
    } else if (on_a) {
        found_failure(bisect, bisect->a.device, error);
    } else if (on_b) {
        found_failure(bisect, bisect->second, &why);
    } else {
        status = compare_step(bisect, &b, error);
    }
out:
    hob_error_release(&why);
    free(missing);
    run_release(&b);
    return status;
}

hob_status bisect_program(const struct program *original, hob_device *first,
                          hob_device *second, const struct names *names,
                          cJSON **out_difference, hob_error *error)
{
    struct program program = *original;
    struct bisect bisect;
    char *missing = NULL;
    int ended = 0;
    hob_status status;

    memset(&bisect, 0, sizeof(bisect));
    program.backward = NULL; /* so no input is tracked */
    bisect.names = names;
    bisect.second = second;
    status = run_open(&program, first, &bisect.a, error);
    if (!status)
        status = run_inputs(&bisect.a, error);
    cJSON_ArrayForEach(bisect.step, program.steps)
    {
        if (status || bisect.difference)
            break;
        bisect.number++;
        cJSON_Delete(bisect.inputs);
        bisect.inputs = cJSON_CreateArray();
        status = cJSON_IsObject(bisect.step)
                     ? run_item(&bisect.a, bisect.step, bisect.number, names,
                                &missing, error)
                     : take_step(&bisect, &ended, error);
        if (!status)
            run_forget(&bisect.a, bisect.step, bisect.number);
    }
    /* A program that ends in a failure, on both: as it says it does. */
    if (ended && program.expect == EXPECT_PANIC) {
        hob_error_release(error);
        status = HOB_OK;
    }
    free(missing);
    cJSON_Delete(bisect.inputs);
    run_release(&bisect.a);
    *out_difference = bisect.difference;
    return status;
}
