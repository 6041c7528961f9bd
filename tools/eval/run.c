/* SPDX-License-Identifier: Apache-2.0 */
#include "run.h"

#include "../files.h"
#include "input.h"
#include "signature.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- bindings ---- */

hob_tensor *run_find(const struct run *run, const char *name)
{
    for (uint32_t i = run->count; i--;)
        if (!strcmp(run->bindings[i].name, name))
            return run->bindings[i].tensor;
    return NULL;
}

int run_is_absent(const struct run *run, const char *name)
{
    for (uint32_t i = run->count; i--;)
        if (!strcmp(run->bindings[i].name, name))
            return !run->bindings[i].tensor;
    return 0;
}

/* TENSOR may be NULL: a result that is absent this time. */
static hob_status bind_value(struct run *run, const char *name,
                             hob_tensor *tensor, hob_error *error)
{
    struct binding *grown =
        realloc(run->bindings, (run->count + 1) * sizeof(*grown));

    if (grown)
        run->bindings = grown;
    if (!grown || !(grown[run->count].name = strdup(name)))
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for \"%s\"",
                             name);
    if (tensor)
        hob_tensor_ref(tensor);
    grown[run->count++].tensor = tensor;
    return HOB_OK;
}

/* Let go what is called NAME, if a step after NUMBER does not use it. */
static void forget(struct run *run, const char *name, int number)
{
    uint32_t i = run->count;

    if (uses_last(&run->uses, name) > number)
        return;
    while (i && strcmp(run->bindings[i - 1].name, name) != 0)
        i--;
    if (!i)
        return;
    free(run->bindings[--i].name);
    hob_tensor_unref(run->bindings[i].tensor);
    memmove(&run->bindings[i], &run->bindings[i + 1],
            (--run->count - i) * sizeof(run->bindings[0]));
}

/* The same for all that NAMES, a name or a list of such, names. */
static void forget_all(struct run *run, const cJSON *names, int number)
{
    const cJSON *item;

    if (cJSON_IsString(names))
        forget(run, names->valuestring, number);
    else
        cJSON_ArrayForEach(item, names) forget_all(run, item, number);
}

/* ---- inputs ---- */

static hob_status make_input(struct run *run, const cJSON *input,
                             hob_error *error)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(input, "name");
    hob_tensor *tensor;

    if (!cJSON_IsString(name))
        return hob_error_set(error, HOB_ERR_FORMAT, "an input needs \"name\"");
    tensor = input_make(run, input, error);
    return tensor ? bind_value(run, name->valuestring, tensor, error)
                  : error->status;
}

/* ---- steps ---- */

/* Memory of one step's arguments. */
struct arguments {
    hob_value values[HOB_MAX_PARAMS];
    void *owned[HOB_MAX_PARAMS];
};

static void arguments_release(struct arguments *arguments)
{
    for (uint32_t i = 0; i < HOB_MAX_PARAMS; i++)
        free(arguments->owned[i]);
}

static hob_status list_value(const cJSON *json, int as_integers,
                             struct arguments *arguments, uint32_t index,
                             const char *name, hob_error *error)
{
    uint32_t count =
        cJSON_IsArray(json) ? (uint32_t)cJSON_GetArraySize(json) : 1;
    int64_t *numbers = calloc(count + 1, sizeof(*numbers));
    int ok = numbers != NULL;

    arguments->owned[index] = numbers;
    for (uint32_t i = 0; i < count && ok; i++) {
        const cJSON *item =
            cJSON_IsArray(json) ? cJSON_GetArrayItem(json, (int)i) : json;

        ok = as_integers
                 ? integer_from_json(item, &numbers[i])
                 : number_from_json(item, &((double *)(void *)numbers)[i]);
    }
    if (!ok)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "attribute \"%s\" must be a list of numbers",
                             name);
    arguments->values[index] =
        as_integers ? hob_value_i64s(numbers, count)
                    : hob_value_f64s((const double *)(void *)numbers, count);
    return HOB_OK;
}

static int scalar_value(const cJSON *json, hob_value *out)
{
    double number;
    int64_t integer;

    if (cJSON_IsBool(json))
        *out = hob_bool(cJSON_IsTrue(json));
    else if (integer_from_json(json, &integer))
        /* A text of digits beyond i64 is read as the bits of an u64. */
        *out = integer < 0 && cJSON_IsString(json) && *json->valuestring != '-'
                   ? hob_u64((uint64_t)integer)
                   : hob_i64(integer);
    else if (number_from_json(json, &number))
        *out = hob_f64(number);
    else
        return 0;
    return 1;
}

static int enum_value(const struct hob__param *param, const cJSON *json,
                      hob_value *out)
{
    for (uint32_t i = 0; cJSON_IsString(json) && i < param->enumerator_count;
         i++)
        if (!strcmp(param->enumerators[i], json->valuestring)) {
            *out = hob_value_enum(i);
            return 1;
        }
    return 0;
}

/* What an attribute must be in JSON, for messages. */
static const char *wanted_type(const struct hob__param *param)
{
    switch (param->type) {
    case HOB__TYPE_SCALAR:
        return "a number or a boolean";
    case HOB__TYPE_F64:
        return "a number";
    case HOB__TYPE_I64:
        return "an integer";
    case HOB__TYPE_BOOL:
        return "true or false";
    case HOB__TYPE_STR:
        return "a text";
    case HOB__TYPE_DTYPE:
        return "the name of a dtype, as in \"f32\"";
    case HOB__TYPE_ENUM:
        return "one of the words that hob ops shows";
    default:
        return "of a type that JSON has: this one can only be given in C";
    }
}

static hob_status attribute_value(const struct run *run,
                                  const struct hob__param *param,
                                  const cJSON *json,
                                  struct arguments *arguments, uint32_t index,
                                  hob_error *error)
{
    hob_value *out = &arguments->values[index];
    double number;
    int64_t integer;
    int ok = 0;

    if (param->type == HOB__TYPE_DEVICE) {
        *out = hob_value_device(run->device);
        return HOB_OK;
    }
    if (!json || cJSON_IsNull(json))
        return HOB_OK; /* absent: the core says if it is needed */
    switch (param->type) {
    case HOB__TYPE_SCALAR:
        ok = scalar_value(json, out);
        break;
    case HOB__TYPE_F64:
        ok = number_from_json(json, &number);
        *out = hob_f64(ok ? number : 0);
        break;
    case HOB__TYPE_I64:
        ok = integer_from_json(json, &integer);
        *out = hob_i64(ok ? integer : 0);
        break;
    case HOB__TYPE_BOOL:
        ok = cJSON_IsBool(json);
        *out = hob_bool(cJSON_IsTrue(json));
        break;
    case HOB__TYPE_STR:
        ok = cJSON_IsString(json);
        *out = hob_value_str(ok ? json->valuestring : NULL);
        break;
    case HOB__TYPE_DTYPE:
        ok = cJSON_IsString(json) && dtype_from_name(json->valuestring);
        *out = hob_value_dtype(ok ? dtype_from_name(json->valuestring) : 0);
        break;
    case HOB__TYPE_ENUM:
        ok = enum_value(param, json, out);
        break;
    case HOB__TYPE_SHAPE:
    case HOB__TYPE_I64S:
        return list_value(json, 1, arguments, index, param->name, error);
    case HOB__TYPE_F64S:
        return list_value(json, 0, arguments, index, param->name, error);
    default:
        break;
    }
    return ok ? HOB_OK
              : hob_error_set(error, HOB_ERR_FORMAT,
                              "attribute \"%s\" must be %s", param->name,
                              wanted_type(param));
}

/* The value that ITEM names; NULL, with a message, if there is none. */
static hob_tensor *argument_tensor(const struct run *run, const cJSON *item,
                                   hob_error *error)
{
    hob_tensor *tensor =
        cJSON_IsString(item) ? run_find(run, item->valuestring) : NULL;

    if (!tensor && cJSON_IsString(item) &&
        run_is_absent(run, item->valuestring))
        hob_error_set(error, HOB_ERR_FORMAT,
                      "\"%s\" is a result that is absent", item->valuestring);
    else if (!tensor)
        hob_error_set(error, HOB_ERR_FORMAT, "there is no value \"%s\"",
                      cJSON_IsString(item) ? item->valuestring : "?");
    return tensor;
}

/* The COUNT values that NAMES has from FIRST on, as one argument. */
static hob_status list_argument(const struct run *run, const cJSON *names,
                                int first, int count,
                                struct arguments *arguments, uint32_t index,
                                hob_error *error)
{
    hob_tensor **tensors = calloc((size_t)count + 1, sizeof(*tensors));

    arguments->owned[index] = tensors;
    if (!tensors)
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a list");
    for (int i = 0; i < count; i++) {
        tensors[i] =
            argument_tensor(run, cJSON_GetArrayItem(names, first + i), error);
        if (!tensors[i])
            return HOB_ERR_FORMAT;
    }
    arguments->values[index] = hob_value_tensors(tensors, (uint32_t)count);
    return HOB_OK;
}

static hob_status make_arguments(const struct run *run,
                                 const struct hob__signature *signature,
                                 const cJSON *step, struct arguments *arguments,
                                 hob_error *error)
{
    const cJSON *names = cJSON_GetArrayItem(step, 2);
    const cJSON *attrs = cJSON_GetArrayItem(step, 3);
    int given = cJSON_GetArraySize(names);
    int left = signature->tensor_count;
    int next = 0;
    hob_status status = HOB_OK;

    for (uint32_t i = 0; i < signature->param_count && !status; i++) {
        const struct hob__param *param = &signature->params[i];

        arguments->values[i] = hob_none();
        if (param->type == HOB__TYPE_TENSORS &&
            cJSON_IsArray(cJSON_GetArrayItem(names, next))) {
            const cJSON *list = cJSON_GetArrayItem(names, next++);

            left--;
            status = list_argument(run, list, 0, cJSON_GetArraySize(list),
                                   arguments, i, error);
        } else if (param->type == HOB__TYPE_TENSORS) {
            /* All names that later tensor parameters leave. */
            int count = given - next - --left;

            status = list_argument(run, names, next, count > 0 ? count : 0,
                                   arguments, i, error);
            next += count;
        } else if (param->type == HOB__TYPE_TENSOR) {
            const cJSON *item = cJSON_GetArrayItem(names, next++);

            left--;
            if (!item || cJSON_IsNull(item))
                continue;
            arguments->values[i] =
                hob_value_tensor(argument_tensor(run, item, error));
            if (!arguments->values[i].u.tensor)
                status = HOB_ERR_FORMAT;
        } else {
            status = attribute_value(
                run, param,
                cJSON_GetObjectItemCaseSensitive(attrs, param->name), arguments,
                i, error);
        }
    }
    if (!status && next < given)
        status =
            hob_error_set(error, HOB_ERR_FORMAT,
                          "%d tensors are given, the op takes %d", given, next);
    return status;
}

/* An attribute that the op does not have is never dropped silently. */
static hob_status check_attributes(const struct hob__signature *signature,
                                   const cJSON *step, hob_error *error)
{
    const cJSON *attributes = cJSON_GetArrayItem(step, 3);
    const cJSON *attribute;

    if (attributes && !cJSON_IsObject(attributes))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "the attributes of a step are an object, as in "
                             "{\"dim\": 0}");
    cJSON_ArrayForEach(attribute, attributes)
    {
        uint32_t i = 0;

        while (i < signature->param_count &&
               strcmp(signature->params[i].name, attribute->string))
            i++;
        if (i == signature->param_count)
            return hob_error_set(error, HOB_ERR_FORMAT,
                                 "the op has no attribute \"%s\"",
                                 attribute->string);
    }
    return HOB_OK;
}

static hob_status bind_results(struct run *run, const cJSON *result,
                               hob_tensor **tensors, uint32_t count,
                               hob_error *error)
{
    hob_status status = HOB_OK;

    /* An optional result may be absent: its name stands for nothing. */
    if (cJSON_IsString(result) && count)
        return bind_value(run, result->valuestring, tensors[0], error);
    if (cJSON_IsString(result))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "\"%s\": the op gave no result",
                             result->valuestring);
    if ((uint32_t)cJSON_GetArraySize(result) > count)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "%d results are named, the op has %" PRIu32,
                             cJSON_GetArraySize(result), count);
    for (int i = 0; i < cJSON_GetArraySize(result) && !status; i++) {
        const cJSON *name = cJSON_GetArrayItem(result, i);

        if (cJSON_IsString(name))
            status = bind_value(run, name->valuestring, tensors[i], error);
    }
    return status;
}

static hob_status call_step(struct run *run, const char *name, uint32_t id,
                            const cJSON *step, hob_error *error)
{
    const char *text = hob_op_signature(hob_device_runtime(run->device), id);
    struct hob__signature signature;
    struct arguments arguments;
    const cJSON *names = cJSON_GetArrayItem(step, 0);
    /* A list of results may be longer than any signature. */
    uint32_t room = HOB_MAX_RESULTS + (uint32_t)cJSON_GetArraySize(names);
    hob_tensor **tensors = calloc(room, sizeof(*tensors));
    const char *message = "";
    uint32_t count = 0;
    int column = 0;
    hob_status status;

    if (!tensors)
        return hob_error_set(error, HOB_ERR_MEMORY, "%s: no memory", name);
    if (!text || hob__signature_parse(text, &signature, &column, &message)) {
        free(tensors);
        return hob_error_set(error, HOB_ERR_INTERNAL,
                             "%s: its signature cannot be read: %s", name,
                             message);
    }
    memset(&arguments, 0, sizeof(arguments));
    status = make_arguments(run, &signature, step, &arguments, error);
    if (!status)
        status = check_attributes(&signature, step, error);
    if (!status) {
        status = hob_call_op(run->scope, id, arguments.values,
                             signature.param_count, tensors, room, &count);
        if (status)
            hob_scope_error(run->scope, error);
        else
            status = bind_results(run, names, tensors, count, error);
    }
    free(tensors);
    arguments_release(&arguments);
    hob__signature_release(&signature);
    return status;
}

static hob_status run_own_step(struct run *run, const cJSON *step,
                               char **out_missing, hob_error *error)
{
    const cJSON *name = cJSON_GetArrayItem(step, 1);
    uint32_t id = 0;
    hob_status status;

    if (!cJSON_IsString(name))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "a step is [result, op, [arguments], "
                             "{attributes}]");
    /* What only the decorators above know; the API has no op for it. */
    if (!strcmp(name->valuestring, "detach")) {
        hob_tensor *tensor = argument_tensor(
            run, cJSON_GetArrayItem(cJSON_GetArrayItem(step, 2), 0), error);

        if (!tensor)
            return HOB_ERR_FORMAT;
        tensor = hob_detach(run->scope, tensor);
        status = hob_scope_error(run->scope, error);
        return status ? status
                      : bind_results(run, cJSON_GetArrayItem(step, 0), &tensor,
                                     1, error);
    }
    status = hob_op_find(hob_device_runtime(run->device), name->valuestring,
                         &id, error);
    if (status) {
        free(*out_missing);
        *out_missing = strdup(name->valuestring);
        return status;
    }
    return call_step(run, name->valuestring, id, step, error);
}

static hob_tensor *find_value(const void *values, const char *name)
{
    return run_find(values, name);
}

/*
 * The rank that the map promises for what STEP made; -1: any. Rank 0 passes
 * for 1, as it does when shapes are compared.
 */
static hob_status check_rank(const struct run *run, const cJSON *step,
                             int32_t rank, hob_error *error)
{
    const cJSON *name = cJSON_GetArrayItem(step, 0);
    hob_tensor *tensor =
        cJSON_IsString(name) ? run_find(run, name->valuestring) : NULL;

    if (rank < 0 || !tensor || hob_tensor_rank(tensor) == rank ||
        (rank == 1 && hob_tensor_rank(tensor) == 0))
        return HOB_OK;
    return hob_error_set(error, HOB_ERR_SHAPE,
                         "%s has %" PRId32 " dimensions, %" PRId32
                         " are wanted",
                         name->valuestring, hob_tensor_rank(tensor), rank);
}

static hob_status run_translated(struct run *run,
                                 const struct translation *translation,
                                 char **out_missing, hob_error *error)
{
    hob_status status = HOB_OK;

    for (int i = 0; i < translation_count(translation) && !status; i++) {
        cJSON *step = NULL;
        int32_t rank;

        status = translation_step(translation, i, &step, &rank, error);
        if (!status)
            status = run_own_step(run, step, out_missing, error);
        if (!status)
            status = check_rank(run, step, rank, error);
        cJSON_Delete(step);
    }
    return status;
}

/* A name without a rule may be one of Hob's. */
static hob_status run_step(struct run *run, const cJSON *step,
                           const struct names *names, char **out_missing,
                           hob_error *error)
{
    struct translation translation;

    return names && names_choose(names, step, find_value, run, &translation)
               ? run_translated(run, &translation, out_missing, error)
               : run_own_step(run, step, out_missing, error);
}

static hob_status run_backward(struct run *run, const char *of,
                               hob_error *error)
{
    hob_tensor *tensor = run_find(run, of);

    if (!tensor)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "backward: there is no value \"%s\"", of);
    return hob_backward(run->scope, tensor, 0, &run->grads, error);
}

hob_status run_open(const struct program *program, hob_device *device,
                    struct run *run, hob_error *error)
{
    memset(run, 0, sizeof(*run));
    run->program = program;
    run->device = device;
    run->scope = hob_scope_open(hob_device_runtime(device));
    if (!run->scope || hob_scope_generator(run->scope, 0))
        return hob_error_set(error, HOB_ERR_MEMORY, "no memory for a scope");
    return HOB_OK;
}

hob_status run_bind(struct run *run, const char *name, hob_tensor *tensor,
                    hob_error *error)
{
    return bind_value(run, name, tensor, error);
}

hob_status run_inputs(struct run *run, hob_error *error)
{
    const cJSON *item;
    int number = 0;

    if (uses_make(run->program, &run->uses, error))
        return error->status;
    cJSON_ArrayForEach(item, run->program->inputs)
    {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "name");

        number++;
        if (make_input(run, item, error))
            return error_at(error, "input %d (%s)", number,
                            cJSON_IsString(name) ? name->valuestring : "?");
    }
    return HOB_OK;
}

hob_status run_item(struct run *run, const cJSON *item, int number,
                    const struct names *names, char **out_missing,
                    hob_error *error)
{
    int is_input = cJSON_IsObject(item);
    hob_scope *whole = run->scope;
    const struct hob_host *host = hob_scope_host(whole);
    struct hob_scope_frame frame;
    hob_status status;
    const cJSON *what = is_input
                            ? cJSON_GetObjectItemCaseSensitive(item, "name")
                            : cJSON_GetArrayItem(item, 1);

    /* What the step makes on its way goes with it; bindings hold the rest. It
     * is no scope of a program, whose end would compute what was put off. */
    run->scope = host->scope_enter(whole, &frame, -1);
    status = is_input ? make_input(run, item, error)
                      : run_step(run, item, names, out_missing, error);
    host->scope_leave(run->scope);
    run->scope = whole;
    return status ? error_at(error, "step %d (%s%s)", number,
                             is_input ? "input " : "",
                             cJSON_IsString(what) ? what->valuestring : "?")
                  : HOB_OK;
}

void run_forget(struct run *run, const cJSON *item, int number)
{
    if (!cJSON_IsArray(item))
        return;
    forget_all(run, cJSON_GetArrayItem(item, 2), number);
    forget_all(run, cJSON_GetArrayItem(item, 0), number);
}

hob_status run_program(const struct program *program, hob_device *device,
                       const struct names *names, struct run *run,
                       char **out_missing, hob_error *error)
{
    const cJSON *item;
    int number = 0;
    hob_status status = run_open(program, device, run, error);

    *out_missing = NULL;
    if (!status)
        status = run_inputs(run, error);
    cJSON_ArrayForEach(item, program->steps)
    {
        if (!status)
            status = run_item(run, item, ++number, names, out_missing, error);
        /* What nobody looks at may never be computed, and not fail. */
        if (!status && program->expect != EXPECT_PANIC)
            run_forget(run, item, number);
    }
    if (!status && program->backward)
        status = run_backward(run, program->backward, error);
    for (uint32_t i = 0;
         i < run->count && !status && program->expect == EXPECT_PANIC; i++)
        if (run->bindings[i].tensor)
            status = hob_eval(&run->bindings[i].tensor, 1, error);
    return status;
}

void run_release(struct run *run)
{
    for (uint32_t i = 0; i < run->count; i++) {
        free(run->bindings[i].name);
        hob_tensor_unref(run->bindings[i].tensor);
    }
    free(run->bindings);
    uses_release(&run->uses);
    hob_grads_free(run->grads);
    hob_scope_close(run->scope);
    memset(run, 0, sizeof(*run));
}
