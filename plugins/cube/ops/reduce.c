/* SPDX-License-Identifier: Apache-2.0 */
#include "fold.h"

#include <inttypes.h>

/* ---- what has no result ---- */

static int64_t length_of(const struct hob_view *x, uint32_t dims)
{
    int64_t length = 1;

    for (uint32_t i = 0; i < x->rank; i++)
        if (dims >> i & 1)
            length *= x->shape[i];
    return length;
}

static int is_undefined(const struct cube_fold *fold)
{
    const int is_float = (HOB_DTYPE_BIT(fold->x.dtype) & HOB_MASK_FLOAT) != 0;

    return length_of(&fold->x, fold->dims) == 0 &&
           (fold->kind == CUBE_FOLD_MAX || fold->kind == CUBE_FOLD_MIN ||
            (fold->is_mean && !is_float));
}

/* ---- drivers ---- */

static void fold_init(struct cube_fold *fold, struct cube_device *device,
                      struct hob_call *call, uint32_t kind, uint32_t is_mean)
{
    fold->device = device;
    fold->call = call;
    fold->x = *hob_arg_view(call, 0);
    fold->kind = kind;
    fold->is_mean = is_mean;
    fold->values = hob_ret_view(call, 0);
    fold->indices = NULL;
}

static hob_status run_whole(struct cube_device *device, struct hob_call *call,
                            uint32_t kind, uint32_t is_mean)
{
    struct cube_fold fold;

    fold_init(&fold, device, call, kind, is_mean);
    fold.dims = (1u << fold.x.rank) - 1;
    if (is_undefined(&fold))
        return device->host->fail(call, HOB_ERR_SHAPE,
                                  "%s: the tensor is empty; there is no result "
                                  "of no %s elements",
                                  call->op_name, hob_dtype_name(fold.x.dtype));
    return cube_fold_run(&fold);
}

static hob_status run_dim(struct cube_device *device, struct hob_call *call,
                          uint32_t kind, uint32_t is_mean)
{
    const int64_t dim = cube_arg_i64(call, 1);
    struct cube_fold fold;

    fold_init(&fold, device, call, kind, is_mean);
    fold.dims = 1u << cube_dim(dim, fold.x.rank);
    if (is_undefined(&fold) && hob_view_count(fold.values) > 0)
        return device->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: dimension %" PRId64 " is empty; there is no result of no %s "
            "elements",
            call->op_name, dim, hob_dtype_name(fold.x.dtype));
    return cube_fold_run(&fold);
}

/* Several dimensions at once. The bodies say what empty ones are. */
static hob_status run_dims(struct cube_device *device, struct hob_call *call,
                           uint32_t kind, uint32_t is_mean)
{
    const hob_value *dims = &call->args[1];
    struct cube_fold fold;

    fold_init(&fold, device, call, kind, is_mean);
    fold.dims = 0;
    for (uint32_t i = 0; i < dims->count; i++)
        fold.dims |= 1u << cube_dim(dims->u.i64s[i], fold.x.rank);
    if (is_undefined(&fold) && hob_view_count(fold.values) > 0)
        return device->host->fail(call, HOB_ERR_SHAPE,
                                  "%s: a dimension is empty; there is no "
                                  "result of no %s elements",
                                  call->op_name, hob_dtype_name(fold.x.dtype));
    return cube_fold_run(&fold);
}

static hob_status run_arg(struct cube_device *device, struct hob_call *call,
                          uint32_t kind, uint32_t has_values)
{
    const int64_t dim = cube_arg_i64(call, 1);
    struct cube_fold fold;
    int64_t length;

    fold_init(&fold, device, call, kind, 0);
    fold.dims = 1u << cube_dim(dim, fold.x.rank);
    fold.indices = hob_ret_view(call, has_values ? 1 : 0);
    if (!has_values)
        fold.values = NULL;
    length = length_of(&fold.x, fold.dims);
    if (hob_view_count(fold.indices) == 0)
        return HOB_OK;
    if (length == 0)
        return device->host->fail(call, HOB_ERR_SHAPE,
                                  "%s: dimension %" PRId64
                                  " is empty; it has no extreme element",
                                  call->op_name, dim);
    if (length > INT32_MAX)
        return device->host->fail(call, HOB_ERR_RANGE,
                                  "%s: dimension %" PRId64 " has %" PRId64
                                  " elements, more than %s counts",
                                  call->op_name, dim, length, device->name);
    return cube_fold_run(&fold);
}

/* ---- entries ---- */

static const uint32_t num_mask[] = {HOB_MASK_NUM};
static const uint32_t float_mask[] = {HOB_MASK_FLOAT};
static const uint32_t any_mask[] = {HOB_MASK_ANY};

#define WHOLE "(x: Num) -> x"
#define DIM "(x: Num, dim: i64) -> x"
#define DIMS "(x: Num, dims: [i64]) -> x"
#define INDEX "(x: Num, dim: i64, index_dtype: dtype = i32) -> index_dtype"
#define BOTH "(x: Num, dim: i64, index_dtype: dtype = i32) -> (x, index_dtype)"

/* X(op, driver, kind, mean or with values, signature, masks) */
#define REDUCTIONS                                                             \
    X(sum, run_whole, SUM, 0, WHOLE, num_mask)                                 \
    X(sum_dim, run_dim, SUM, 0, DIM, num_mask)                                 \
    X(sum_dims, run_dims, SUM, 0, DIMS, num_mask)                              \
    X(mean, run_whole, SUM, 1, WHOLE, num_mask)                                \
    X(mean_dim, run_dim, SUM, 1, DIM, num_mask)                                \
    X(mean_dims, run_dims, SUM, 1, "(x: Float, dims: [i64]) -> x", float_mask) \
    X(prod, run_whole, PRODUCT, 0, WHOLE, num_mask)                            \
    X(prod_dim, run_dim, PRODUCT, 0, DIM, num_mask)                            \
    X(max, run_whole, MAX, 0, WHOLE, num_mask)                                 \
    X(max_dim, run_dim, MAX, 0, DIM, num_mask)                                 \
    X(max_dims, run_dims, MAX, 0, DIMS, num_mask)                              \
    X(min, run_whole, MIN, 0, WHOLE, num_mask)                                 \
    X(min_dim, run_dim, MIN, 0, DIM, num_mask)                                 \
    X(min_dims, run_dims, MIN, 0, DIMS, num_mask)                              \
    X(any, run_whole, ANY, 0, "(x: Any) -> Bool", any_mask)                    \
    X(any_dim, run_dim, ANY, 0, "(x: Any, dim: i64) -> Bool", any_mask)        \
    X(all, run_whole, ALL, 0, "(x: Any) -> Bool", any_mask)                    \
    X(all_dim, run_dim, ALL, 0, "(x: Any, dim: i64) -> Bool", any_mask)        \
    X(argmax, run_arg, ARG_MAX, 0, INDEX, num_mask)                            \
    X(argmin, run_arg, ARG_MIN, 0, INDEX, num_mask)                            \
    X(max_dim_with_indices, run_arg, ARG_MAX, 1, BOTH, num_mask)               \
    X(min_dim_with_indices, run_arg, ARG_MIN, 1, BOTH, num_mask)

/* Trampolines, as in elementwise.c. */
#define X(op, driver, kind, how, signature, mask)                              \
    static hob_status execute_##op(void *device, struct hob_call *call)        \
    {                                                                          \
        return driver(device, call, CUBE_FOLD_##kind, how);                    \
    }
REDUCTIONS
#undef X

#define X(name, driver, kind, how, text, mask)                                 \
    {                                                                          \
        .op = #name,                                                           \
        .signature = text,                                                     \
        .dtypes = mask,                                                        \
        .dtype_count = 1,                                                      \
        .execute = execute_##name,                                             \
    },
static const struct hob_entry entries[] = {REDUCTIONS};
#undef X
#undef REDUCTIONS

const struct cube_entries cube_reduce_entries = {
    entries, sizeof(entries) / sizeof(entries[0])};
