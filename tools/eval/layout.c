/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#include <hob/ops.h>

#include <math.h>
#include <string.h>

static const char *const names[LAYOUT_COUNT_] = {
    "contiguous", "reversed", "transposed", "gaps", "offset"};

enum layout layout_from_name(const char *name)
{
    uint32_t i = 0;

    while (i < LAYOUT_COUNT_ && strcmp(names[i], name) != 0)
        i++;
    return (enum layout)i;
}

hob_status layout_read(const cJSON *json, enum layout *layout, hob_error *error)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "layout");
    enum layout read;

    if (!item)
        return HOB_OK;
    read = cJSON_IsString(item) ? layout_from_name(item->valuestring)
                                : LAYOUT_COUNT_;
    if (read == LAYOUT_COUNT_)
        return hob_error_set(error, HOB_ERR_FORMAT,
                             "\"layout\" must be " LAYOUT_NAMES);
    *layout = read;
    return HOB_OK;
}

/* X copied in another order of memory: flipped and flipped back. */
static hob_tensor *reversed(hob_scope *scope, hob_tensor *x)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t dims[HOB_MAX_RANK];

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i;
    x = hob_contiguous(scope, hob_flip(scope, x, dims, rank));
    return hob_flip(scope, x, dims, rank);
}

static hob_tensor *transposed(hob_scope *scope, hob_tensor *x)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    int64_t dims[HOB_MAX_RANK];

    for (uint32_t i = 0; i < rank; i++)
        dims[i] = rank - 1 - i;
    x = hob_contiguous(scope, hob_permute(scope, x, dims, rank));
    return hob_permute(scope, x, dims, rank);
}

/* A tensor of what no op may read: NaN, or a number that hardly is right. */
static hob_tensor *filler(hob_scope *scope, const hob_tensor *like,
                          const int64_t *shape, uint32_t rank)
{
    hob_dtype dtype = hob_tensor_dtype(like);
    uint32_t bit = HOB_DTYPE_BIT(dtype);

    return hob_full(scope, shape, rank,
                    bit & HOB_MASK_FLOAT  ? hob_f64(NAN)
                    : bit & HOB_MASK_BOOL ? hob_i64(1)
                                          : hob_i64(77),
                    hob_tensor_device(like), dtype);
}

static hob_tensor *with_gaps(hob_scope *scope, hob_tensor *x)
{
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    const int64_t last = rank, zeros[HOB_MAX_RANK] = {0};
    int64_t ends[HOB_MAX_RANK];
    hob_tensor *both[2] = {x, filler(scope, x, hob_tensor_shape(x), rank)};

    if (rank == HOB_MAX_RANK) /* no room for the dimension of the gaps */
        return x;
    for (uint32_t i = 0; i < rank; i++)
        ends[i] = INT64_MAX;
    ends[rank] = 1;
    x = hob_stack(scope, both, 2, last);
    x = hob_slice(scope, x, zeros, rank + 1, ends, rank + 1, NULL, 0);
    return hob_squeeze(scope, x, &last, 1);
}

static hob_tensor *with_offset(hob_scope *scope, hob_tensor *x)
{
    const int64_t one = 1, end = INT64_MAX;
    int64_t shape[HOB_MAX_RANK], count = 1;
    uint32_t rank = (uint32_t)hob_tensor_rank(x);
    hob_tensor *both[2];

    for (uint32_t i = 0; i < rank; i++)
        count *= shape[i] = hob_tensor_shape(x)[i];
    both[0] = filler(scope, x, &one, 1);
    both[1] = hob_reshape(scope, x, &count, 1);
    x = hob_cat(scope, both, 2, 0);
    x = hob_slice(scope, x, &one, 1, &end, 1, NULL, 0);
    return hob_reshape(scope, x, shape, rank);
}

hob_tensor *layout_apply(hob_scope *scope, hob_tensor *x, enum layout layout)
{
    switch (layout) {
    case LAYOUT_REVERSED:
        return reversed(scope, x);
    case LAYOUT_TRANSPOSED:
        return transposed(scope, x);
    case LAYOUT_GAPS:
        return with_gaps(scope, x);
    case LAYOUT_OFFSET:
        return with_offset(scope, x);
    default:
        return x;
    }
}
