/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create.c - results whose shape is an argument.
 */
#include "infer.h"
#include "util.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Fail unless DTYPE, that of a result, lies in MASK, which WHAT describes. */
static hob_status check_kind(struct hob_call *call, uint32_t dtype,
                             uint32_t mask, const char *what)
{
    if (dtype < HOB_DTYPE_COUNT_ && (HOB_DTYPE_BIT(dtype) & mask))
        return HOB_OK;
    return call->host->fail(call, HOB_ERR_DTYPE,
                            "%s: dtype is %s; it must be %s", call->op_name,
                            hob_dtype_name(dtype), what);
}

/* The least and greatest value of an integer dtype; bool is 0..1. */
static void int_range(uint32_t dtype, int64_t *out_least, uint64_t *out_most)
{
    uint32_t bits = 8 * hob_dtype_size(dtype);

    *out_least = 0;
    *out_most = dtype == HOB_DTYPE_BOOL ? 1 : UINT64_MAX >> (64 - bits);
    if (HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED) {
        *out_most >>= 1;
        *out_least = -(int64_t)*out_most - 1;
    }
}

/* Whether VALUE can be an element of integer or bool DTYPE, exactly. */
static int fits_int(const hob_value *value, uint32_t dtype)
{
    int64_t least;
    uint64_t most;

    int_range(dtype, &least, &most);
    switch (value->tag) {
    case HOB_TAG_U64:
        return value->u.u64 <= most;
    case HOB_TAG_F64:
        /* 2^64 is exact as a double where MOST is rounded up to it. */
        return value->u.f64 == floor(value->u.f64) &&
               value->u.f64 >= (double)least &&
               (most > (UINT64_C(1) << 53) ? value->u.f64 < (double)most
                                           : value->u.f64 <= (double)most);
    default:
        return value->u.i64 < 0 ? value->u.i64 >= least
                                : (uint64_t)value->u.i64 <= most;
    }
}

hob_status hob__infer_shape(struct hob_call *call, struct hob_meta *out)
{
    uint32_t count;
    const int64_t *shape = hob__attr_list(call, 0, &count);

    if (count > HOB_MAX_RANK)
        return call->host->fail(
            call, HOB_ERR_SHAPE,
            "%s: shape %s has %u dimensions; at most %d are possible",
            call->op_name, hob__list_text(shape, count).text, (unsigned)count,
            HOB_MAX_RANK);
    out->rank = (uint8_t)count;
    if (count)
        memcpy(out->shape, shape, count * sizeof(shape[0]));
    return hob__infer_check(call, out);
}

hob_status hob__infer_full(struct hob_call *call, struct hob_meta *out)
{
    const hob_value *value = &call->args[1];
    hob_status st = hob__infer_shape(call, out);

    if (st || (HOB_DTYPE_BIT(out->dtype) & HOB_MASK_FLOAT) ||
        fits_int(value, out->dtype))
        return st;
    if (value->tag == HOB_TAG_F64)
        return call->host->fail(
            call, HOB_ERR_RANGE, "%s: value %.17g does not fit %s",
            call->op_name, value->u.f64, hob_dtype_name(out->dtype));
    if (value->tag == HOB_TAG_U64)
        return call->host->fail(
            call, HOB_ERR_RANGE, "%s: value %" PRIu64 " does not fit %s",
            call->op_name, value->u.u64, hob_dtype_name(out->dtype));
    return call->host->fail(
        call, HOB_ERR_RANGE, "%s: value %" PRId64 " does not fit %s",
        call->op_name, value->u.i64, hob_dtype_name(out->dtype));
}

hob_status hob__infer_arange(struct hob_call *call, struct hob_meta *out)
{
    int64_t start = hob__attr_i64(call, 0), end = hob__attr_i64(call, 1);
    int64_t step = hob__attr_i64(call, 2), least, last;
    uint64_t span, stride, count, most;
    hob_status st =
        check_kind(call, out->dtype, HOB_MASK_NUM, "a float or an integer");

    if (st)
        return st;
    if (step == 0)
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: step is 0; it must be positive or "
                                "negative",
                                call->op_name);
    /* Unsigned: the distance of two i64 need not fit one. */
    span = step > 0 ? (uint64_t)end - (uint64_t)start
                    : (uint64_t)start - (uint64_t)end;
    stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (step > 0 ? end <= start : end >= start)
        span = 0;
    count = span / stride + (span % stride != 0);
    if (count > INT64_MAX)
        return call->host->fail(call, HOB_ERR_SHAPE,
                                "%s: %" PRId64 " to %" PRId64 " by %" PRId64
                                " has more than 2^63 elements",
                                call->op_name, start, end, step);
    out->rank = 1;
    out->shape[0] = (int64_t)count;
    if (count && (HOB_DTYPE_BIT(out->dtype) & HOB_MASK_INT)) {
        hob_value ends[2];
        last = (int64_t)((uint64_t)start + (count - 1) * (uint64_t)step);
        ends[0] = hob_i64(start);
        ends[1] = hob_i64(last);
        int_range(out->dtype, &least, &most);
        if (!fits_int(&ends[0], out->dtype) || !fits_int(&ends[1], out->dtype))
            return call->host->fail(call, HOB_ERR_RANGE,
                                    "%s: %" PRId64 " to %" PRId64
                                    " does not fit %s, which holds "
                                    "%" PRId64 " to %" PRIu64,
                                    call->op_name, start, last,
                                    hob_dtype_name(out->dtype), least, most);
    }
    return hob__infer_check(call, out);
}

hob_status hob__infer_random_uniform(struct hob_call *call,
                                     struct hob_meta *out)
{
    double low = call->args[1].u.f64, high = call->args[2].u.f64;
    hob_status st =
        check_kind(call, out->dtype, HOB_MASK_NUM, "a float or an integer");

    if (st)
        return st;
    /* Also false for NaN. */
    if (!(low <= high) || !isfinite(low) || !isfinite(high))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: low is %g, high is %g; both must be "
                                "finite and low not above high",
                                call->op_name, low, high);
    return hob__infer_shape(call, out);
}

hob_status hob__infer_random_normal(struct hob_call *call, struct hob_meta *out)
{
    double mean = call->args[1].u.f64, deviation = call->args[2].u.f64;
    hob_status st =
        check_kind(call, out->dtype, HOB_MASK_NUM, "a float or an integer");

    if (st)
        return st;
    if (!(deviation >= 0) || !isfinite(deviation) || !isfinite(mean))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: mean is %g, std is %g; both must be "
                                "finite and std not negative",
                                call->op_name, mean, deviation);
    return hob__infer_shape(call, out);
}

hob_status hob__infer_random_bernoulli(struct hob_call *call,
                                       struct hob_meta *out)
{
    double probability = call->args[1].u.f64;

    if (!(probability >= 0 && probability <= 1))
        return call->host->fail(call, HOB_ERR_RANGE,
                                "%s: probability is %g; it must be in 0..1",
                                call->op_name, probability);
    return hob__infer_shape(call, out);
}
