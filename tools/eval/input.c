/* SPDX-License-Identifier: Apache-2.0 */
#include "input.h"

#include "array.h"

#include <inttypes.h>
#include <stdlib.h>

/* Say whether DTYPE has INTEGER; of u64 it is the bits. */
static int fits_dtype(int64_t integer, uint32_t dtype)
{
    static const struct {
        uint32_t dtype;
        int64_t least;
        int64_t most;
    } ranges[] = {{HOB_DTYPE_I32, INT32_MIN, INT32_MAX},
                  {HOB_DTYPE_I16, INT16_MIN, INT16_MAX},
                  {HOB_DTYPE_I8, INT8_MIN, INT8_MAX},
                  {HOB_DTYPE_U32, 0, UINT32_MAX},
                  {HOB_DTYPE_U16, 0, UINT16_MAX},
                  {HOB_DTYPE_U8, 0, UINT8_MAX},
                  {HOB_DTYPE_BOOL, 0, 1}};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        if (ranges[i].dtype == dtype)
            return integer >= ranges[i].least && integer <= ranges[i].most;
    return 1;
}

/* Say whether JSON, which was read as INTEGER, lies in the other half of the
 * 64 bits than DTYPE: negative for u64, above the greatest for i64. */
static int wraps(const cJSON *json, int64_t integer, uint32_t dtype)
{
    int is_negative = cJSON_IsString(json)
                          ? json->valuestring[0] == '-'
                          : cJSON_IsNumber(json) && integer < 0;

    return (dtype == HOB_DTYPE_U64 && is_negative && integer) ||
           (dtype == HOB_DTYPE_I64 && !is_negative && integer < 0);
}

/* Element INDEX of DATA, of DTYPE, from JSON. Floats go through f64. */
static int put_element(void *data, size_t index, uint32_t dtype,
                       const cJSON *json)
{
    double number;
    int64_t integer;

    if (dtype == HOB_DTYPE_F64 || (HOB_MASK_FLOAT & HOB_DTYPE_BIT(dtype))) {
        if (!number_from_json(json, &number))
            return 0;
        ((double *)data)[index] = number;
        return 1;
    }
    if (!integer_from_json(json, &integer) || !fits_dtype(integer, dtype) ||
        wraps(json, integer, dtype))
        return 0;
    ((int64_t *)data)[index] = integer;
    return 1;
}

/* Say whether COUNT is the product of SHAPE. */
static int check_count(int64_t count, const int64_t *shape, int32_t rank,
                       hob_error *error)
{
    uint64_t product = 1;
    int is_empty = 0;

    for (int32_t k = 0; k < rank; k++) {
        is_empty |= !shape[k];
        if (shape[k])
            product = product > UINT64_MAX / (uint64_t)shape[k]
                          ? UINT64_MAX
                          : product * (uint64_t)shape[k];
    }
    if (is_empty)
        product = 0;
    if (product == (uint64_t)count)
        return 1;
    hob_error_set(error, HOB_ERR_FORMAT,
                  "\"data\" has %" PRId64 " elements, its \"shape\" %s%" PRIu64,
                  count, product == UINT64_MAX ? "at least " : "", product);
    return 0;
}

/* Data are made in the widest dtype of their kind, then cast. */
static hob_tensor *make_tensor(struct run *run, const cJSON *data,
                               uint32_t dtype, const int64_t *shape,
                               int32_t rank, hob_error *error)
{
    int is_float = (HOB_MASK_FLOAT & HOB_DTYPE_BIT(dtype)) != 0;
    size_t count = (size_t)cJSON_GetArraySize(data);
    int64_t *numbers = malloc((count + 1) * sizeof(*numbers));
    hob_tensor *tensor = NULL;
    const cJSON *item;
    size_t i = 0;

    if (!numbers) {
        hob_error_set(error, HOB_ERR_MEMORY, "no memory for \"data\"");
        goto out;
    }
    if (!check_count((int64_t)count, shape, rank, error))
        goto out;
    cJSON_ArrayForEach(item, data)
    {
        if (!put_element(numbers, i++, dtype, item)) {
            hob_error_set(error, HOB_ERR_FORMAT,
                          "element %zu of \"data\" is no %s", i - 1,
                          hob_dtype_name(dtype));
            goto out;
        }
    }
    tensor = is_float
                 ? hob_from_f64(run->scope, run->device,
                                (const double *)(void *)numbers, shape, rank)
                 : hob_from_i64(run->scope, run->device, numbers, shape, rank);
    if (dtype != HOB_DTYPE_F64 && dtype != HOB_DTYPE_I64)
        tensor = hob_cast(run->scope, tensor, (hob_dtype)dtype);
    if (hob_scope_error(run->scope, error))
        tensor = NULL;
out:
    free(numbers);
    return tensor;
}

static hob_tensor *make_elements(struct run *run, const cJSON *input,
                                 uint32_t dtype, hob_error *error)
{
    const cJSON *data = cJSON_GetObjectItemCaseSensitive(input, "data");
    const cJSON *npy = cJSON_GetObjectItemCaseSensitive(input, "npy");
    int64_t shape[HOB_MAX_RANK];
    int32_t rank = 0;
    hob_tensor *tensor = NULL;

    if (!npy == !data) {
        hob_error_set(error, HOB_ERR_FORMAT,
                      "an input needs either \"data\" or \"npy\"");
        return NULL;
    }
    if (npy)
        return array_load(run, input, &tensor, error) ? NULL : tensor;
    if (shape_from_json(cJSON_GetObjectItemCaseSensitive(input, "shape"), shape,
                        &rank, error))
        return NULL;
    return make_tensor(run, data, dtype, shape, rank, error);
}

hob_tensor *input_make(struct run *run, const cJSON *input, hob_error *error)
{
    const cJSON *dtype_name = cJSON_GetObjectItemCaseSensitive(input, "dtype");
    const cJSON *wants =
        cJSON_GetObjectItemCaseSensitive(input, "requires_grad");
    uint32_t dtype = cJSON_IsString(dtype_name)
                         ? dtype_from_name(dtype_name->valuestring)
                         : HOB_DTYPE_NONE;
    enum layout layout = run->program->layout;
    hob_tensor *tensor;

    if (!cJSON_IsString(dtype_name)) {
        hob_error_set(error, HOB_ERR_FORMAT,
                      "an input needs \"dtype\", as in \"f32\"");
        return NULL;
    }
    if (!dtype) {
        hob_error_set(error, HOB_ERR_FORMAT,
                      "there is no dtype \"%s\": EVAL.md lists them",
                      dtype_name->valuestring);
        return NULL;
    }
    if (layout_read(input, &layout, error))
        return NULL;
    tensor = make_elements(run, input, dtype, error);
    if (tensor)
        tensor = layout_apply(run->scope, tensor, layout);
    if (tensor && cJSON_IsTrue(wants) && run->program->backward)
        tensor = hob_require_grad(run->scope, tensor);
    return hob_scope_error(run->scope, error) ? NULL : tensor;
}
