/* SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The largest integer up to which a double counts one by one. */
static const double exact_limit = 9007199254740992.0;

uint32_t dtype_from_name(const char *name)
{
    for (uint32_t d = HOB_DTYPE_F64; d < HOB_DTYPE_QUANT; d++)
        if (!strcmp(hob_dtype_name(d), name))
            return d;
    return HOB_DTYPE_NONE;
}

int number_from_json(const cJSON *json, double *out_number)
{
    static const struct {
        const char *text;
        double number;
    } words[] = {{"nan", NAN}, {"inf", INFINITY}, {"-inf", -INFINITY}};
    char *end = NULL;

    if (cJSON_IsNumber(json)) {
        *out_number = json->valuedouble;
        return 1;
    }
    if (cJSON_IsBool(json)) {
        *out_number = cJSON_IsTrue(json);
        return 1;
    }
    if (!cJSON_IsString(json))
        return 0;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (!strcmp(json->valuestring, words[i].text)) {
            *out_number = words[i].number;
            return 1;
        }
    *out_number = strtod(json->valuestring, &end);
    return end != json->valuestring && !*end;
}

int integer_from_json(const cJSON *json, int64_t *out_number)
{
    char *end = NULL;

    if (cJSON_IsString(json)) {
        const char *text = json->valuestring;

        errno = 0;
        *out_number = *text == '-' ? strtoll(text, &end, 10)
                                   : (int64_t)strtoull(text, &end, 10);
        return end != text && !*end && !errno;
    }
    if (cJSON_IsBool(json)) {
        *out_number = cJSON_IsTrue(json);
        return 1;
    }
    if (!cJSON_IsNumber(json) || fabs(json->valuedouble) > exact_limit ||
        json->valuedouble != floor(json->valuedouble))
        return 0;
    *out_number = (int64_t)json->valuedouble;
    return 1;
}

hob_status shape_from_json(const cJSON *json, int64_t out_shape[HOB_MAX_RANK],
                           int32_t *out_rank, hob_error *error)
{
    const cJSON *item;

    *out_rank = 0;
    if (!cJSON_IsArray(json))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "\"shape\" must be an array of integers");
    cJSON_ArrayForEach(item, json)
    {
        if (*out_rank == HOB_MAX_RANK)
            return hob_error_set(error, HOB_ERR_FORMAT,
                                 "\"shape\" has more than %d dimensions",
                                 HOB_MAX_RANK);
        if (!integer_from_json(item, &out_shape[(*out_rank)++]) ||
            out_shape[*out_rank - 1] < 0)
            return hob_error_set(error, HOB_ERR_FORMAT,
                                 "\"shape\" must hold integers of 0 or more");
    }
    return HOB_OK;
}

hob_status tolerance_read(const cJSON *json, struct tolerance *tolerance,
                          hob_error *error)
{
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(json, "tolerance");
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(member, "kind");
    const cJSON *rel = cJSON_GetObjectItemCaseSensitive(member, "rel");
    const cJSON *abs_item = cJSON_GetObjectItemCaseSensitive(member, "abs");

    if (!member)
        return HOB_OK;
    if (!cJSON_IsString(kind))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "\"tolerance\" needs a \"kind\": exact, approx "
                             "or none");
    if (!strcmp(kind->valuestring, "exact"))
        tolerance->kind = TOLERANCE_EXACT;
    else if (!strcmp(kind->valuestring, "approx"))
        tolerance->kind = TOLERANCE_APPROX;
    else if (!strcmp(kind->valuestring, "none"))
        tolerance->kind = TOLERANCE_NONE;
    else
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "tolerance kind \"%s\": use exact, approx or "
                             "none",
                             kind->valuestring);
    tolerance->rel = cJSON_IsNumber(rel) ? rel->valuedouble : 0;
    tolerance->abs = cJSON_IsNumber(abs_item) ? abs_item->valuedouble : 0;
    return HOB_OK;
}

static hob_status read_expect(const cJSON *json, struct program *program,
                              hob_error *error)
{
    const cJSON *expect = cJSON_GetObjectItemCaseSensitive(json, "expect");

    program->expect = EXPECT_VALUES;
    if (!expect || cJSON_IsNull(expect))
        return HOB_OK;
    if (cJSON_IsString(expect) && !strcmp(expect->valuestring, "panic"))
        program->expect = EXPECT_PANIC;
    else if (cJSON_IsString(expect) && !strcmp(expect->valuestring, "mismatch"))
        program->expect = EXPECT_MISMATCH;
    else
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "\"expect\" must be \"panic\" or \"mismatch\"");
    return HOB_OK;
}

/* An array member, or NULL where it may be absent. */
static hob_status read_array(const cJSON *json, const char *name, int needed,
                             const cJSON **out_array, hob_error *error)
{
    *out_array = cJSON_GetObjectItemCaseSensitive(json, name);
    if (cJSON_IsNull(*out_array))
        *out_array = NULL;
    if (*out_array ? cJSON_IsArray(*out_array) : !needed)
        return HOB_OK;
    return hob_error_set(error, HOB_ERR_FORMAT, "\"%s\" must be an array",
                         name);
}

hob_status program_read(const cJSON *json, struct program *program,
                        hob_error *error)
{
    const cJSON *id = cJSON_GetObjectItemCaseSensitive(json, "id");
    const cJSON *backward = cJSON_GetObjectItemCaseSensitive(json, "backward");
    const cJSON *of = cJSON_GetObjectItemCaseSensitive(backward, "of");
    hob_status status;

    memset(program, 0, sizeof(*program));
    if (!cJSON_IsObject(json))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "a program is one JSON object");
    program->id = cJSON_IsString(id) ? id->valuestring : "program";
    status = read_array(json, "inputs", 0, &program->inputs, error);
    if (!status)
        status = read_array(json, "program", 1, &program->steps, error);
    if (!status)
        status = read_array(json, "outputs", 0, &program->outputs, error);
    if (!status)
        status = read_array(json, "grads", 0, &program->grads, error);
    if (!status)
        status = tolerance_read(json, &program->tolerance, error);
    if (!status)
        status = read_expect(json, program, error);
    if (!status)
        status = layout_read(json, &program->layout, error);
    if (status)
        return status;
    if (backward && !cJSON_IsNull(backward)) {
        if (!cJSON_IsString(of))
            return hob_error_set(error, HOB_ERR_FORMAT,
                                 "\"backward\" needs \"of\": the name of the "
                                 "value to differentiate");
        program->backward = of->valuestring;
    }
    return HOB_OK;
}
