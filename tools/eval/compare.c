/* SPDX-License-Identifier: Apache-2.0 */
#include "compare.h"

#include "../files.h"
#include "array.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A quantized tensor is read and compared as the f32 that it stands for. */
static uint32_t number_dtype(const hob_tensor *tensor)
{
    uint32_t dtype = hob_tensor_dtype(tensor);

    return dtype == HOB_DTYPE_QUANT ? HOB_DTYPE_F32 : dtype;
}

/* The elements of a tensor in the widest type of their kind. */
struct elements {
    int is_float;
    int64_t count;
    double *floats;    /* if is_float */
    int64_t *integers; /* otherwise; u64 as its bits */
};

static void elements_release(struct elements *elements)
{
    free(elements->floats);
    free(elements->integers);
}

static hob_status read_elements(hob_tensor *tensor, struct elements *out,
                                hob_error *error)
{
    hob_status status = hob_tensor_status(tensor, error);

    memset(out, 0, sizeof(*out));
    if (status)
        return status;
    out->count = hob_tensor_count(tensor);
    out->is_float = (HOB_MASK_FLOAT & HOB_DTYPE_BIT(number_dtype(tensor))) != 0;
    if (out->is_float)
        out->floats = calloc((size_t)out->count + 1, sizeof(double));
    else
        out->integers = calloc((size_t)out->count + 1, sizeof(int64_t));
    if (!out->floats && !out->integers)
        return hob_error_set(error, HOB_ERR_MEMORY,
                             "no memory to read a tensor");
    if (out->is_float)
        return hob_read_f64(tensor, out->floats, out->count, error);
    if (hob_tensor_dtype(tensor) == HOB_DTYPE_U64)
        return hob_read(tensor, out->integers, (uint64_t)out->count * 8, error);
    return hob_read_i64(tensor, out->integers, out->count, error);
}

/*
 * NUMBER as a tensor of DTYPE would hold it, ties to even. A float of BITS
 * significant bits whose least exponent is LEAST has the quantum
 * 2^max(exponent - BITS, LEAST).
 */
static double rounded(double number, uint32_t dtype)
{
    int bits = dtype == HOB_DTYPE_F16 ? 11 : 8;
    int least = dtype == HOB_DTYPE_F16 ? -24 : -133;
    int exponent;
    double quantum;

    if (dtype == HOB_DTYPE_F32)
        return (double)(float)number;
    if ((dtype != HOB_DTYPE_F16 && dtype != HOB_DTYPE_BF16) ||
        !isfinite(number) || number == 0)
        return number;
    (void)frexp(number, &exponent);
    quantum = ldexp(1, exponent - bits > least ? exponent - bits : least);
    number = nearbyint(number / quantum) * quantum;
    if (dtype == HOB_DTYPE_F16 && fabs(number) > 65504)
        return number < 0 ? -INFINITY : INFINITY;
    return number;
}

static int close_enough(double is, double should, uint32_t dtype,
                        const struct tolerance *tolerance)
{
    double distance;

    should = rounded(should, dtype);
    if (isnan(is) || isnan(should))
        return isnan(is) && isnan(should);
    if (is == should)
        return 1;
    if (tolerance->kind == TOLERANCE_NONE)
        return 1;
    if (tolerance->kind == TOLERANCE_EXACT || isinf(is) || isinf(should))
        return 0;
    distance = fabs(is - should);
    return distance <= tolerance->abs ||
           distance <= tolerance->rel * fmax(fabs(is), fabs(should));
}

/* Element I of ELEMENTS against JSON; describes a difference in ERROR. */
static hob_status check_element(const char *name,
                                const struct elements *elements, int64_t i,
                                const cJSON *json, uint32_t dtype,
                                const struct tolerance *tolerance,
                                hob_error *error)
{
    double number = NAN;
    int64_t integer = 0;

    if (elements->is_float) {
        if (number_from_json(json, &number) &&
            close_enough(elements->floats[i], number, dtype, tolerance))
            return HOB_OK;
        return hob_error_set(error, HOB_ERR_RANGE,
                             "%s[%" PRId64 "] is %.9g, expected %.9g", name, i,
                             elements->floats[i], number);
    }
    if (integer_from_json(json, &integer) && elements->integers[i] == integer)
        return HOB_OK;
    return hob_error_set(error, HOB_ERR_RANGE,
                         dtype == HOB_DTYPE_U64 ? "%s[%" PRId64 "] is %" PRIu64
                                                  ", expected %" PRIu64
                                                : "%s[%" PRId64 "] is %" PRId64
                                                  ", expected %" PRId64,
                         name, i, elements->integers[i], integer);
}

static void shape_text(const int64_t *shape, int32_t rank, char *text,
                       size_t size)
{
    int used = snprintf(text, size, "[");

    for (int32_t i = 0; i < rank; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%" PRId64,
                         i ? "," : "", shape[i]);
    snprintf(text + used, size - (size_t)used, "]");
}

/* Rank 0 and shape [1] are taken as equal: not everybody has rank 0. */
static hob_status check_shape(const char *name, hob_tensor *tensor,
                              const cJSON *json, hob_error *error)
{
    int64_t want[HOB_MAX_RANK];
    char is_text[160];
    char want_text[160];
    int32_t want_rank = 0;
    int32_t rank = hob_tensor_rank(tensor);
    const int64_t *shape = hob_tensor_shape(tensor);
    int same;
    hob_status status = shape_from_json(json, want, &want_rank, error);

    if (status)
        return status;
    same = rank == want_rank;
    for (int32_t i = 0; i < rank && same; i++)
        same = shape[i] == want[i];
    if (same || (rank == 0 && want_rank == 1 && want[0] == 1))
        return HOB_OK;
    shape_text(shape, rank, is_text, sizeof(is_text));
    shape_text(want, want_rank, want_text, sizeof(want_text));
    return hob_error_set(error, HOB_ERR_SHAPE,
                         "%s has the shape %s, expected %s", name, is_text,
                         want_text);
}

static hob_status check_data(const char *name, hob_tensor *tensor,
                             const cJSON *wanted,
                             const struct tolerance *tolerance,
                             hob_error *error)
{
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(wanted, "data");
    const cJSON *index = cJSON_GetObjectItemCaseSensitive(wanted, "index");
    uint32_t dtype = number_dtype(tensor);
    struct elements elements;
    const cJSON *item;
    int64_t i = 0;
    hob_status status;

    if (!data || cJSON_IsNull(data))
        return HOB_OK;
    status = read_elements(tensor, &elements, error);
    if (!status && index && !cJSON_IsNull(index)) {
        item = cJSON_IsArray(data) ? cJSON_GetArrayItem(data, 0) : data;
        if (!integer_from_json(index, &i) || i < 0 || i >= elements.count)
            status = hob_error_set(error, HOB_ERR_RANGE,
                                   "\"index\" must be one of the %" PRId64
                                   " elements of %s",
                                   elements.count, name);
        else
            status = check_element(name, &elements, i, item, dtype, tolerance,
                                   error);
    } else if (!status && cJSON_GetArraySize(data) != elements.count) {
        status = hob_error_set(error, HOB_ERR_SHAPE,
                               "%s has %" PRId64 " elements, expected %d", name,
                               elements.count, cJSON_GetArraySize(data));
    } else if (!status) {
        cJSON_ArrayForEach(item, data)
        {
            status = check_element(name, &elements, i++, item, dtype, tolerance,
                                   error);
            if (status)
                break;
        }
    }
    elements_release(&elements);
    return status;
}

static hob_status check_one(const char *name, hob_tensor *tensor,
                            const cJSON *wanted,
                            const struct tolerance *general, hob_error *error)
{
    const cJSON *dtype = cJSON_GetObjectItemCaseSensitive(wanted, "dtype");
    const cJSON *shape = cJSON_GetObjectItemCaseSensitive(wanted, "shape");
    struct tolerance tolerance = *general;
    hob_status status = tolerance_read(wanted, &tolerance, error);

    if (!status && cJSON_IsString(dtype) &&
        strcmp(dtype->valuestring, hob_dtype_name(hob_tensor_dtype(tensor))) &&
        strcmp(dtype->valuestring, hob_dtype_name(number_dtype(tensor))))
        status = hob_error_set(error, HOB_ERR_DTYPE, "%s is %s, expected %s",
                               name, hob_dtype_name(hob_tensor_dtype(tensor)),
                               dtype->valuestring);
    if (!status && shape && !cJSON_IsNull(shape) &&
        !cJSON_GetObjectItemCaseSensitive(wanted, "index"))
        status = check_shape(name, tensor, shape, error);
    if (!status)
        status = check_data(name, tensor, wanted, &tolerance, error);
    return status;
}

hob_status compare_tensors(const char *name, hob_tensor *a, hob_tensor *b,
                           const struct tolerance *tolerance, hob_error *error)
{
    struct elements left;
    struct elements right = {0, 0, NULL, NULL};
    hob_status status = read_elements(a, &left, error);

    if (!status)
        status = read_elements(b, &right, error);
    if (!status &&
        (number_dtype(a) != number_dtype(b) || left.count != right.count))
        status = hob_error_set(error, HOB_ERR_SHAPE,
                               "%s: dtypes or sizes differ", name);
    for (int64_t i = 0; !status && i < left.count; i++) {
        int same = left.is_float ? close_enough(left.floats[i], right.floats[i],
                                                number_dtype(a), tolerance)
                                 : left.integers[i] == right.integers[i];

        if (!same && left.is_float)
            status = hob_error_set(error, HOB_ERR_RANGE,
                                   "%s[%" PRId64 "] is %.9g and %.9g", name, i,
                                   left.floats[i], right.floats[i]);
        else if (!same)
            status =
                hob_error_set(error, HOB_ERR_RANGE,
                              "%s[%" PRId64 "] is %" PRId64 " and %" PRId64,
                              name, i, left.integers[i], right.integers[i]);
    }
    elements_release(&left);
    elements_release(&right);
    return status;
}

/* TENSOR against the elements in the file of OUTPUT. */
static hob_status compare_file(const struct program *program,
                               const struct run *run, const char *name,
                               hob_tensor *tensor, const cJSON *output,
                               hob_error *error)
{
    struct tolerance tolerance = program->tolerance;
    hob_tensor *expected = NULL;
    hob_status status = tolerance_read(output, &tolerance, error);

    if (!status)
        status = array_load(run, output, &expected, error);
    if (status)
        return error_at(error, "output %s", name);
    return compare_tensors(name, tensor, expected, &tolerance, error);
}

static hob_status compare_output(const struct program *program,
                                 const struct run *run, const cJSON *output,
                                 hob_error *error)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(output, "value");
    const cJSON *other = cJSON_GetObjectItemCaseSensitive(output, "equal_to");
    hob_tensor *tensor =
        cJSON_IsString(value) ? run_find(run, value->valuestring) : NULL;
    hob_status status;

    if (!tensor && cJSON_IsString(value) &&
        run_is_absent(run, value->valuestring))
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "output %s: it is absent, the op did not give it",
                             value->valuestring);
    if (!tensor)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "an output names a value that there is not");
    if (cJSON_IsString(other) && run_find(run, other->valuestring))
        return compare_tensors(value->valuestring, tensor,
                               run_find(run, other->valuestring),
                               &program->tolerance, error);
    status = check_one(value->valuestring, tensor, output, &program->tolerance,
                       error);
    if (!status && cJSON_GetObjectItemCaseSensitive(output, "npy"))
        status = compare_file(program, run, value->valuestring, tensor, output,
                              error);
    return status;
}

static hob_status compare_gradient(const struct program *program,
                                   const struct run *run, const cJSON *wanted,
                                   hob_error *error)
{
    const cJSON *of = cJSON_GetObjectItemCaseSensitive(wanted, "of");
    hob_tensor *leaf =
        cJSON_IsString(of) ? run_find(run, of->valuestring) : NULL;
    hob_tensor *grad = NULL;
    char name[128];
    hob_status status;

    if (!leaf)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "a gradient is of a value that there is not");
    snprintf(name, sizeof(name), "grad(%s)", of->valuestring);
    status = hob_grad(run->scope, leaf, run->grads, &grad, error);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(wanted, "none"))) {
        /* Asking for what was never tracked is an error of the scope. */
        if (status)
            hob_scope_clear_error(run->scope);
        hob_error_release(error);
        return grad && !status
                   ? hob_error_set(error, HOB_ERR_RANGE,
                                   "%s is there, none was expected", name)
                   : HOB_OK;
    }
    if (status)
        return status;
    if (!grad)
        return hob_error_set(error, HOB_ERR_RANGE, "%s: none reached it", name);
    return check_one(name, grad, wanted, &program->tolerance, error);
}

hob_status compare_outputs(const struct program *program, const struct run *run,
                           hob_error *error)
{
    const cJSON *grads = run->grads ? program->grads : NULL;
    const cJSON *item;
    hob_status status;

    cJSON_ArrayForEach(item, program->outputs)
    {
        status = compare_output(program, run, item, error);
        if (status)
            return status;
    }
    cJSON_ArrayForEach(item, grads)
    {
        status = compare_gradient(program, run, item, error);
        if (status)
            return status;
    }
    return HOB_OK;
}

/* The shortest text that reads back as the same number of DTYPE. */
static cJSON *float_to_json(double number, uint32_t dtype)
{
    char text[48];
    int digits = dtype == HOB_DTYPE_F64 ? 15 : dtype == HOB_DTYPE_F32 ? 6 : 3;

    if (isnan(number))
        return cJSON_CreateString("nan");
    if (isinf(number))
        return cJSON_CreateString(number < 0 ? "-inf" : "inf");
    do
        snprintf(text, sizeof(text), "%.*g", digits, number);
    while (digits++ < 17 && rounded(strtod(text, NULL), dtype) != number);
    return cJSON_CreateRaw(text);
}

static cJSON *integer_to_json(int64_t number, uint32_t dtype)
{
    char text[32];

    if (dtype == HOB_DTYPE_BOOL)
        return cJSON_CreateBool(number != 0);
    if (number > (dtype == HOB_DTYPE_U64 ? -1 : -(INT64_C(1) << 53)) &&
        number < INT64_C(1) << 53)
        return cJSON_CreateNumber((double)number);
    if (dtype == HOB_DTYPE_U64)
        snprintf(text, sizeof(text), "%" PRIu64, (uint64_t)number);
    else
        snprintf(text, sizeof(text), "%" PRId64, number);
    return cJSON_CreateString(text);
}

cJSON *number_to_json(double number)
{
    return float_to_json(number, HOB_DTYPE_F64);
}

static cJSON *element_to_json(const struct elements *elements, int64_t i,
                              uint32_t dtype)
{
    return elements->is_float ? float_to_json(elements->floats[i], dtype)
                              : integer_to_json(elements->integers[i], dtype);
}

/* How far apart element I of A and B is; negative: near enough. */
static double distance_at(const struct elements *a, const struct elements *b,
                          int64_t i, uint32_t dtype,
                          const struct tolerance *tolerance)
{
    double distance;

    if (!a->is_float)
        return a->integers[i] == b->integers[i] ? -1
               : dtype == HOB_DTYPE_U64
                   ? fabs((double)(uint64_t)a->integers[i] -
                          (double)(uint64_t)b->integers[i])
                   : fabs((double)a->integers[i] - (double)b->integers[i]);
    if (close_enough(a->floats[i], b->floats[i], dtype, tolerance))
        return -1;
    distance = fabs(a->floats[i] - b->floats[i]);
    return isnan(distance) ? INFINITY : distance; /* NaN against a number */
}

/* Element I as JSON text; SIZE is enough for any number. */
static void element_text(const struct elements *elements, int64_t i,
                         uint32_t dtype, char *text, size_t size)
{
    cJSON *json = element_to_json(elements, i, dtype);

    if (!json || !cJSON_PrintPreallocated(json, text, (int)size, 0))
        snprintf(text, size, "null");
    cJSON_Delete(json);
}

static int same_shape(const hob_tensor *a, const hob_tensor *b)
{
    return hob_tensor_rank(a) == hob_tensor_rank(b) &&
           !memcmp(hob_tensor_shape(a), hob_tensor_shape(b),
                   (size_t)hob_tensor_rank(a) * sizeof(int64_t));
}

hob_status compare_widest(hob_tensor *a, hob_tensor *b,
                          const struct tolerance *tolerance,
                          struct gap *out_gap, hob_error *error)
{
    uint32_t dtype = hob_tensor_dtype(a);
    struct elements left;
    struct elements right = {0, 0, NULL, NULL};
    hob_status status = read_elements(a, &left, error);

    memset(out_gap, 0, sizeof(*out_gap));
    if (!status)
        status = read_elements(b, &right, error);
    if (!status && (dtype != hob_tensor_dtype(b) || !same_shape(a, b))) {
        out_gap->differing = -1;
        goto out;
    }
    for (int64_t i = 0; !status && i < left.count; i++) {
        double distance = distance_at(&left, &right, i, dtype, tolerance);

        if (distance < 0)
            continue;
        if (!out_gap->differing++ || distance > out_gap->distance) {
            out_gap->at = i;
            out_gap->distance = distance;
        }
    }
    if (out_gap->differing) {
        element_text(&left, out_gap->at, dtype, out_gap->left,
                     sizeof(out_gap->left));
        element_text(&right, out_gap->at, dtype, out_gap->right,
                     sizeof(out_gap->right));
    }
out:
    elements_release(&left);
    elements_release(&right);
    return status;
}

cJSON *tensor_to_json(hob_tensor *tensor, hob_error *error)
{
    struct elements elements;
    cJSON *json = NULL;
    cJSON *shape;
    cJSON *data;
    uint32_t dtype = number_dtype(tensor);

    if (read_elements(tensor, &elements, error)) {
        elements_release(&elements);
        return NULL;
    }
    json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "dtype",
                            hob_dtype_name(hob_tensor_dtype(tensor)));
    shape = cJSON_AddArrayToObject(json, "shape");
    for (int32_t i = 0; i < hob_tensor_rank(tensor); i++)
        cJSON_AddItemToArray(
            shape, cJSON_CreateNumber((double)hob_tensor_shape(tensor)[i]));
    data = cJSON_AddArrayToObject(json, "data");
    for (int64_t i = 0; i < elements.count; i++)
        cJSON_AddItemToArray(data, element_to_json(&elements, i, dtype));
    elements_release(&elements);
    return json;
}
