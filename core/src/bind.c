/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bind.c - arguments against their signature: defaults, types, scalars.
 */
#include "boundary.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *type_text(const struct hob__param *param)
{
    static const char *const texts[] = {"",
                                        "a tensor",
                                        "a list of tensors",
                                        "a scalar",
                                        "an f64",
                                        "an i64",
                                        "a bool",
                                        "a string",
                                        "a dtype",
                                        "a shape",
                                        "a device",
                                        "a list of i64",
                                        "a list of f64",
                                        "an enumerator",
                                        "a value of an extension type"};

    return texts[param->type];
}

/* Whether VALUE fits PARAM; numbers are converted to the type on the way. */
static int bind_attribute(const struct hob__param *param, hob_value *value)
{
    switch (param->type) {
    case HOB__TYPE_SCALAR:
        return value->tag >= HOB_TAG_I64 && value->tag <= HOB_TAG_BOOL;
    case HOB__TYPE_F64:
        if (value->tag == HOB_TAG_I64)
            *value = hob_f64((double)value->u.i64);
        else if (value->tag == HOB_TAG_U64)
            *value = hob_f64((double)value->u.u64);
        return value->tag == HOB_TAG_F64;
    case HOB__TYPE_I64:
        if (value->tag == HOB_TAG_U64 && value->u.u64 <= INT64_MAX)
            value->tag = HOB_TAG_I64;
        return value->tag == HOB_TAG_I64;
    case HOB__TYPE_BOOL:
        if (value->tag == HOB_TAG_I64)
            *value = hob_bool(value->u.i64 != 0);
        return value->tag == HOB_TAG_BOOL;
    case HOB__TYPE_STR:
        return value->tag == HOB_TAG_STR && value->u.str;
    case HOB__TYPE_DTYPE:
        return value->tag == HOB_TAG_DTYPE && value->u.i64 > HOB_DTYPE_NONE &&
               value->u.i64 < HOB_DTYPE_COUNT_;
    case HOB__TYPE_DEVICE:
        return value->tag == HOB_TAG_DEVICE && value->u.device;
    case HOB__TYPE_SHAPE:
    case HOB__TYPE_I64S:
        return value->tag == HOB_TAG_I64S && (value->u.i64s || !value->count);
    case HOB__TYPE_F64S:
        return value->tag == HOB_TAG_F64S && (value->u.f64s || !value->count);
    case HOB__TYPE_ENUM:
        return value->tag == HOB_TAG_ENUM && value->u.i64 >= 0 &&
               value->u.i64 < param->enumerator_count;
    default:
        return 0;
    }
}

/* What a value of another type than the parameter's is. */
static const char *tag_text(uint8_t tag)
{
    static const char *const texts[] = {
        "absent",       "a tensor",      "a list of tensors",
        "an i64",       "a u64",         "an f64",
        "a bool",       "a string",      "a dtype",
        "a device",     "a list of i64", "a list of f64",
        "an enumerator"};

    return tag < sizeof(texts) / sizeof(texts[0]) ? texts[tag]
                                                  : "a value of no known tag";
}

static hob_status bind_one(struct hob_call *call,
                           const struct hob__param *param, hob_value *value)
{
    const char *given;

    if (value->tag == HOB_TAG_ABSENT) {
        if (param->flags & HOB__PARAM_DEFAULT)
            *value = param->value;
        else if (!(param->flags & (HOB__PARAM_OPTIONAL | HOB__PARAM_HIDDEN)))
            return hob__call_fail(call, HOB_ERR_ARGUMENT,
                                  "argument %s is missing: give %s",
                                  param->name, type_text(param));
        else
            value->count = param->type == HOB__TYPE_TENSOR;
        return HOB_OK;
    }
    if (param->type == HOB__TYPE_TENSOR) {
        if (value->tag == HOB_TAG_TENSOR && value->u.tensor)
            return HOB_OK;
    } else if (param->type == HOB__TYPE_TENSORS) {
        if (value->tag == HOB_TAG_TENSORS && value->count && value->u.tensors)
            return HOB_OK;
        if (value->tag == HOB_TAG_TENSORS)
            return hob__call_fail(call, HOB_ERR_ARGUMENT,
                                  "argument %s is an empty list: give at "
                                  "least one tensor",
                                  param->name);
    } else if (bind_attribute(param, value)) {
        return HOB_OK;
    }
    if (param->type == HOB__TYPE_ENUM && value->tag == HOB_TAG_ENUM)
        return hob__call_fail(
            call, HOB_ERR_ARGUMENT,
            "argument %s must be an enumerator, 0 (%s) to %d "
            "(%s), not %" PRId64,
            param->name, param->enumerators[0], param->enumerator_count - 1,
            param->enumerators[param->enumerator_count - 1], value->u.i64);
    if (param->type == HOB__TYPE_DTYPE && value->tag == HOB_TAG_DTYPE)
        return hob__call_fail(call, HOB_ERR_ARGUMENT,
                              "argument %s must be a dtype, not number %" PRId64
                              " of an enum that ends at %d",
                              param->name, value->u.i64, HOB_DTYPE_COUNT_ - 1);
    given = tag_text(value->tag);
    /* Else it is of the type, but without its content. */
    if (strcmp(given, type_text(param)) != 0)
        return hob__call_fail(call, HOB_ERR_ARGUMENT,
                              "argument %s must be %s, not %s", param->name,
                              type_text(param), given);
    return hob__call_fail(call, HOB_ERR_ARGUMENT, "argument %s must be %s",
                          param->name, type_text(param));
}

/* The fields of an enum's variant are there if, and only if, it says so. */
static hob_status check_variants(struct hob_call *call)
{
    const struct hob__signature *signature = &call->core->op->signature;

    for (uint32_t i = 0; i < signature->param_count; i++) {
        const struct hob__param *param = &signature->params[i];
        const struct hob__param *owner;
        const hob_value *tag;
        int there = call->args[i].tag != HOB_TAG_ABSENT;
        int chosen;

        if (param->tag_param == HOB__NO_TAG)
            continue;
        owner = &signature->params[param->tag_param];
        tag = &call->args[param->tag_param];
        chosen = tag->tag == HOB_TAG_ENUM && tag->u.i64 == param->variant;
        if (there && !chosen)
            return hob__call_fail(
                call, HOB_ERR_ARGUMENT, "argument %s is given, but %s is %s",
                param->name, owner->name,
                tag->tag == HOB_TAG_ENUM ? owner->enumerators[tag->u.i64]
                                         : "absent");
        if (chosen && !there && (param->flags & HOB__PARAM_NEEDED))
            return hob__call_fail(call, HOB_ERR_ARGUMENT,
                                  "argument %s is missing: %s is %s, so give "
                                  "%s",
                                  param->name, owner->name,
                                  owner->enumerators[param->variant],
                                  type_text(param));
    }
    return HOB_OK;
}

hob_status hob__bind(struct hob_call *call, const hob_value *args,
                     uint32_t arg_count)
{
    const struct hob__param *params = call->core->op->signature.params;
    const uint32_t count = call->core->op->signature.param_count;
    hob_status status = HOB_OK;

    if (arg_count > count)
        status = hob__call_fail(call, HOB_ERR_ARGUMENT,
                                "%" PRIu32 " arguments were given, it takes "
                                "%" PRIu32,
                                arg_count, count);
    /* To the end in any case: what is moved is consumed on failure too. */
    for (uint32_t i = 0; i < count; i++) {
        const struct hob__param *param = &params[i];
        hob_value value = hob_none();

        if (i < arg_count)
            value = args[i];
        /* The common case first: a tensor where one is due. */
        if (value.tag != HOB_TAG_TENSOR || !value.u.tensor ||
            param->type != HOB__TYPE_TENSOR) {
            if (!status)
                status = bind_one(call, param, &value);
        }
        call->args[i] = value;
    }
    if (!status && call->core->op->has_variants)
        status = check_variants(call);
    return status;
}

/* ---- scalars ---- */

static const int64_t int_min[HOB_DTYPE_COUNT_] = {[HOB_DTYPE_I64] = INT64_MIN,
                                                  [HOB_DTYPE_I32] = INT32_MIN,
                                                  [HOB_DTYPE_I16] = INT16_MIN,
                                                  [HOB_DTYPE_I8] = INT8_MIN};
static const uint64_t int_max[HOB_DTYPE_COUNT_] = {
    [HOB_DTYPE_I64] = INT64_MAX,  [HOB_DTYPE_I32] = INT32_MAX,
    [HOB_DTYPE_I16] = INT16_MAX,  [HOB_DTYPE_I8] = INT8_MAX,
    [HOB_DTYPE_U64] = UINT64_MAX, [HOB_DTYPE_U32] = UINT32_MAX,
    [HOB_DTYPE_U16] = UINT16_MAX, [HOB_DTYPE_U8] = UINT8_MAX,
    [HOB_DTYPE_BOOL] = 1};

/* Make VALUE an I64 or U64 that DTYPE, an integer or bool, can hold. */
static int fit_integer(hob_value *value, uint32_t dtype)
{
    if (value->tag == HOB_TAG_F64) {
        double number = value->u.f64;

        if (!(number >= -9223372036854775808.0 &&
              number < 18446744073709551616.0) ||
            number != floor(number))
            return 0;
        if (number < 9223372036854775808.0)
            *value = hob_i64((int64_t)number);
        else
            *value = hob_u64((uint64_t)number);
    }
    if (value->tag == HOB_TAG_U64)
        return value->u.u64 <= int_max[dtype];
    return value->u.i64 < 0 ? value->u.i64 >= int_min[dtype]
                            : (uint64_t)value->u.i64 <= int_max[dtype];
}

/* The greatest finite values; a number that rounds beyond does not fit. */
static const double float_max[HOB_DTYPE_COUNT_] = {[HOB_DTYPE_F64] = DBL_MAX,
                                                   [HOB_DTYPE_F32] = FLT_MAX,
                                                   [HOB_DTYPE_F16] = 65504.0,
                                                   [HOB_DTYPE_BF16] =
                                                       3.3895313892515355e38};
/* Half the distance to what would come next: ties go to infinity. */
static const double float_half_step[HOB_DTYPE_COUNT_] = {
    [HOB_DTYPE_F32] = 1.0141204801825835e31, /* 2^103 */
    [HOB_DTYPE_F16] = 16.0,
    [HOB_DTYPE_BF16] = 6.6461399789245794e35}; /* 2^119 */

/* Infinities and NaN fit every float; a finite scalar must stay finite. */
static int fit_float(const hob_value *value, uint32_t dtype)
{
    double number = value->tag == HOB_TAG_F64   ? value->u.f64
                    : value->tag == HOB_TAG_U64 ? (double)value->u.u64
                                                : (double)value->u.i64;

    if (dtype == HOB_DTYPE_F64 || !isfinite(number))
        return 1;
    return fabs(number) < float_max[dtype] + float_half_step[dtype];
}

static hob_status scalar_fails(struct hob_call *call, const char *name,
                               const hob_value *value, uint32_t dtype)
{
    const char *dtype_name = hob_dtype_name(dtype);

    if (value->tag == HOB_TAG_F64)
        return hob__call_fail(call, HOB_ERR_RANGE,
                              "scalar %s = %.17g does not fit %s: cast the "
                              "tensor first",
                              name, value->u.f64, dtype_name);
    if (value->tag == HOB_TAG_U64)
        return hob__call_fail(call, HOB_ERR_RANGE,
                              "scalar %s = %" PRIu64 " does not fit %s: cast "
                              "the tensor first",
                              name, value->u.u64, dtype_name);
    return hob__call_fail(call, HOB_ERR_RANGE,
                          "scalar %s = %" PRId64 " does not fit %s: cast the "
                          "tensor first",
                          name, value->u.i64, dtype_name);
}

uint32_t hob__value_dtype(const hob_value *value)
{
    if (value->tag == HOB_TAG_TENSOR)
        return value->u.tensor->view.dtype;
    if (value->tag == HOB_TAG_TENSORS)
        return value->u.tensors[0]->view.dtype;
    return value->tag == HOB_TAG_DTYPE ? (uint32_t)value->u.i64
                                       : HOB_DTYPE_NONE;
}

hob_status hob__fit_scalars(struct hob_call *call)
{
    const struct hob__op *op = call->core->op;
    uint32_t dtype;

    dtype = hob__value_dtype(&call->args[op->scalar_like]);
    /* It may be absent, as a field of a variant is: the next tensor then. */
    for (uint32_t i = 0; !dtype && i < call->arg_count; i++)
        if (call->args[i].tag == HOB_TAG_TENSOR ||
            call->args[i].tag == HOB_TAG_TENSORS)
            dtype = hob__value_dtype(&call->args[i]);
    if (!dtype)
        return HOB_OK;
    for (uint32_t i = 0; i < call->arg_count; i++) {
        hob_value *value = &call->args[i];

        if (op->signature.params[i].type != HOB__TYPE_SCALAR ||
            value->tag == HOB_TAG_ABSENT)
            continue;
        if (!((HOB_MASK_FLOAT & HOB_DTYPE_BIT(dtype))
                  ? fit_float(value, dtype)
                  : fit_integer(value, dtype)))
            return scalar_fails(call, op->signature.params[i].name, value,
                                dtype);
    }
    return HOB_OK;
}
