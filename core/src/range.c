/* SPDX-License-Identifier: Apache-2.0 */
#include "range.h"

#include "dispatch.h"
#include "tensor.h"

#include <hob/ops.h>

/* More are not worth looking at: it takes as long as to copy them. */
enum { MOST_LOOKED_AT = 1 << 18 };

/* ---- the word: the least number, and one more than the greatest ---- */

static uint64_t range_make(int64_t low, int64_t high)
{
    if (low > high || low < INT32_MIN || high >= INT32_MAX)
        return HOB__RANGE_UNKNOWN;
    return (uint64_t)(uint32_t)(int32_t)(high + 1) << 32 |
           (uint32_t)(int32_t)low;
}

/* Nonzero if RANGE is one. */
static int range_read(uint64_t range, int64_t *out_low, int64_t *out_high)
{
    *out_low = (int32_t)(uint32_t)range;
    *out_high = (int64_t)(int32_t)(uint32_t)(range >> 32) - 1;
    return range != HOB__RANGE_UNKNOWN;
}

/* The same as integers of DTYPE; unknown if they have not room for all. */
static uint64_t range_in(uint32_t dtype, int64_t low, int64_t high)
{
    const uint64_t bit = HOB_DTYPE_BIT(dtype);
    const uint32_t size = hob_dtype_size(dtype);

    if (!(bit & HOB_MASK_INT))
        return HOB__RANGE_UNKNOWN;
    if (bit & HOB_MASK_UNSIGNED ? low < 0
                                : size < 4 && low < -(1 << (8 * size - 1)))
        return HOB__RANGE_UNKNOWN;
    if (size < 4 && high >> (8 * size - !(bit & HOB_MASK_UNSIGNED)))
        return HOB__RANGE_UNKNOWN;
    return range_make(low, high);
}

/* ---- of what is given ---- */

#define LEAST_AND_GREATEST(type)                                               \
    do {                                                                       \
        const type *at = data;                                                 \
        type least = at[0], greatest = at[0];                                  \
                                                                               \
        for (uint64_t i = 1; i < count; i++) {                                 \
            least = at[i] < least ? at[i] : least;                             \
            greatest = at[i] > greatest ? at[i] : greatest;                    \
        }                                                                      \
        low = (int64_t)least;                                                  \
        high = (int64_t)greatest;                                              \
    } while (0)

uint64_t hob__range_of(uint32_t dtype, const void *data, uint64_t count)
{
    int64_t low, high;

    if (!count || count > MOST_LOOKED_AT / hob_dtype_size(dtype))
        return HOB__RANGE_UNKNOWN;
    switch (dtype) {
    case HOB_DTYPE_I64:
        LEAST_AND_GREATEST(int64_t);
        break;
    case HOB_DTYPE_I32:
        LEAST_AND_GREATEST(int32_t);
        break;
    case HOB_DTYPE_I16:
        LEAST_AND_GREATEST(int16_t);
        break;
    case HOB_DTYPE_I8:
        LEAST_AND_GREATEST(int8_t);
        break;
    case HOB_DTYPE_U64: /* above INT64_MAX: low > high, or negative */
        LEAST_AND_GREATEST(uint64_t);
        if (low < 0 || high < 0)
            return HOB__RANGE_UNKNOWN;
        break;
    case HOB_DTYPE_U32:
        LEAST_AND_GREATEST(uint32_t);
        break;
    case HOB_DTYPE_U16:
        LEAST_AND_GREATEST(uint16_t);
        break;
    case HOB_DTYPE_U8:
        LEAST_AND_GREATEST(uint8_t);
        break;
    default:
        return HOB__RANGE_UNKNOWN;
    }
    return range_make(low, high);
}

/* Of TENSOR, which is there: its storage may have more elements than it. */
static uint64_t range_of_tensor(const hob_tensor *tensor)
{
    const struct hob_storage *storage = tensor->view.storage;

    if (!storage ||
        (atomic_load_explicit(&storage->flags, memory_order_acquire) &
         HOB__STORAGE_EXPORTED))
        return HOB__RANGE_UNKNOWN;
    return storage->range;
}

int32_t hob__arg_range(const struct hob_call *call, uint32_t index,
                       int64_t *out_low, int64_t *out_high)
{
    const hob_value *arg = &call->args[index];

    return index < call->arg_count && arg->tag == HOB_TAG_TENSOR &&
           range_read(range_of_tensor(arg->u.tensor), out_low, out_high);
}

/* ---- of what is made ---- */

static void say(struct hob_call *call, uint32_t index, int64_t low,
                int64_t high)
{
    const hob_tensor *tensor = call->rets[index].u.tensor;

    if (tensor && tensor->view.storage)
        tensor->view.storage->range = range_in(tensor->view.dtype, low, high);
}

/* The elements of the first result are some of the first argument's. */
static void some_of_first(struct hob_call *call)
{
    int64_t low, high;

    if (hob__arg_range(call, 0, &low, &high))
        say(call, 0, low, high);
}

static void some_of_list(struct hob_call *call)
{
    const hob_value *list = &call->args[0];
    int64_t low = INT64_MAX, high = INT64_MIN;

    for (uint32_t i = 0; i < list->count; i++) {
        int64_t least, greatest;

        if (!hob_tensor_count(list->u.tensors[i]))
            continue;
        if (!range_read(range_of_tensor(list->u.tensors[i]), &least, &greatest))
            return;
        low = least < low ? least : low;
        high = greatest > high ? greatest : high;
    }
    say(call, 0, low, high);
}

static void cast(struct hob_call *call)
{
    if (call->args[0].u.tensor->view.dtype == HOB_DTYPE_BOOL)
        say(call, 0, 0, 1);
    else
        some_of_first(call);
}

/* Result INDEX is places along the dimension that argument ARG is. */
static void places(struct hob_call *call, uint32_t index, uint32_t arg)
{
    const struct hob_view *x = &call->args[0].u.tensor->view;
    const int64_t dim = call->args[arg].u.i64;

    say(call, index, 0, x->shape[dim < 0 ? dim + x->rank : dim] - 1);
}

static void places_along_1(struct hob_call *call)
{
    places(call, 0, 1);
}

static void places_along_2(struct hob_call *call)
{
    places(call, 0, 2);
}

static void values_and_places_along_1(struct hob_call *call)
{
    some_of_first(call);
    places(call, 1, 1);
}

static void values_and_places_along_2(struct hob_call *call)
{
    some_of_first(call);
    places(call, 1, 2);
}

static void places_in_plane(struct hob_call *call)
{
    const struct hob_view *x = &call->args[0].u.tensor->view;

    say(call, 1, 0, x->shape[2] * x->shape[3] - 1);
}

/* The integer that SCALAR is; zero if it is none, or a large one. */
static int scalar_read(const hob_value *scalar, int64_t *out)
{
    if (scalar->tag == HOB_TAG_F64) {
        if (!(scalar->u.f64 > INT32_MIN && scalar->u.f64 < INT32_MAX))
            return 0;
        *out = (int64_t)scalar->u.f64;
        return (double)*out == scalar->u.f64;
    }
    *out = scalar->u.i64;
    return (scalar->tag == HOB_TAG_I64 || scalar->tag == HOB_TAG_U64) &&
           *out > INT32_MIN && *out < INT32_MAX;
}

static void full(struct hob_call *call)
{
    int64_t number;

    if (scalar_read(&call->args[1], &number))
        say(call, 0, number, number);
}

static void zeros(struct hob_call *call)
{
    say(call, 0, 0, 0);
}

static void ones(struct hob_call *call)
{
    say(call, 0, 1, 1);
}

static void arange(struct hob_call *call)
{
    const hob_tensor *tensor = call->rets[0].u.tensor;
    const int64_t start = call->args[0].u.i64, step = call->args[2].u.i64;
    int64_t way, last;

    if (tensor &&
        !__builtin_mul_overflow(tensor->view.shape[0] - 1, step, &way) &&
        !__builtin_add_overflow(start, way, &last))
        say(call, 0, step < 0 ? last : start, step < 0 ? start : last);
}

/* With the sign of the divisor. */
static void remainder_scalar(struct hob_call *call)
{
    int64_t number;

    if (scalar_read(&call->args[1], &number) && number > 0)
        say(call, 0, 0, number - 1);
}

/* Where both bounds are given: they may be what makes indices good. */
static void clamp(struct hob_call *call)
{
    int64_t low, high;

    if (scalar_read(&call->args[1], &low) && scalar_read(&call->args[2], &high))
        say(call, 0, low, high);
}

hob__range_fn hob__range_rule(uint32_t op)
{
    switch (op) {
    case HOB_OP_CONTIGUOUS:
    case HOB_OP_FLIP:
    case HOB_OP_GATHER:
    case HOB_OP_MASK_SELECT:
    case HOB_OP_MAX:
    case HOB_OP_MAX_DIM:
    case HOB_OP_MIN:
    case HOB_OP_MIN_DIM:
    case HOB_OP_REPEAT_DIM:
    case HOB_OP_SELECT:
    case HOB_OP_SORT:
    case HOB_OP_TOPK:
        return some_of_first;
    case HOB_OP_CAT:
    case HOB_OP_STACK:
        return some_of_list;
    case HOB_OP_CAST:
        return cast;
    case HOB_OP_ARGMAX:
    case HOB_OP_ARGMIN:
    case HOB_OP_ARGSORT:
        return places_along_1;
    case HOB_OP_ARGTOPK:
        return places_along_2;
    case HOB_OP_MAX_DIM_WITH_INDICES:
    case HOB_OP_MIN_DIM_WITH_INDICES:
    case HOB_OP_SORT_WITH_INDICES:
        return values_and_places_along_1;
    case HOB_OP_TOPK_WITH_INDICES:
        return values_and_places_along_2;
    case HOB_OP_MAX_POOL2D_WITH_INDICES:
        return places_in_plane;
    case HOB_OP_FULL:
        return full;
    case HOB_OP_ZEROS:
        return zeros;
    case HOB_OP_ONES:
        return ones;
    case HOB_OP_ARANGE:
        return arange;
    case HOB_OP_REMAINDER_SCALAR:
        return remainder_scalar;
    case HOB_OP_CLAMP:
        return clamp;
    default:
        return NULL;
    }
}
