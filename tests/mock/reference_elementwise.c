/* SPDX-License-Identifier: Apache-2.0 */
#include "reference_backend.h"
#include "reference_numbers.h"
#include "reference_places.h"

#include <hob/ops.h>

#include <math.h>

/* ---- floats ---- */

/* With the sign of the divisor; exact, since fmod is. */
static double float_remainder(double a, double b)
{
    double r = fmod(a, b);

    if (r == 0)
        return copysign(0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static double float_result(uint32_t op, double a, double b)
{
    switch (op) {
    case HOB_OP_ADD:
        return a + b;
    case HOB_OP_SUB:
        return a - b;
    case HOB_OP_MUL:
        return a * b;
    case HOB_OP_DIV:
        return a / b;
    case HOB_OP_REMAINDER:
        return float_remainder(a, b);
    case HOB_OP_POW:
        return pow(a, b);
    case HOB_OP_ATAN2:
        return atan2(a, b);
    case HOB_OP_SQRT:
        return sqrt(a);
    case HOB_OP_EXP:
        return exp(a);
    case HOB_OP_LOG:
        return log(a);
    case HOB_OP_ERF:
        return erf(a);
    case HOB_OP_TANH:
        return tanh(a);
    case HOB_OP_SIN:
        return sin(a);
    case HOB_OP_COS:
        return cos(a);
    default: /* HOB_OP_FLOOR */
        return floor(a);
    }
}

/* ---- integers: 64 bits, of which the store keeps the low ones ---- */

static uint64_t int_divide(uint64_t a, uint64_t b, uint32_t dtype)
{
    if (!is_signed(dtype))
        return a / b;
    return b == UINT64_MAX ? 0 - a : (uint64_t)((int64_t)a / (int64_t)b);
}

static uint64_t int_remainder(uint64_t a, uint64_t b, uint32_t dtype)
{
    int64_t r;

    if (!is_signed(dtype))
        return a % b;
    r = b == UINT64_MAX ? 0 : (int64_t)a % (int64_t)b;
    return (uint64_t)(r && (r < 0) != ((int64_t)b < 0) ? r + (int64_t)b : r);
}

static uint64_t int_power(uint64_t a, uint64_t b, uint32_t dtype)
{
    uint64_t power = 1;

    if (is_signed(dtype) && (int64_t)b < 0)
        return a == 1 ? 1 : a != UINT64_MAX ? 0 : b & 1 ? a : 1;
    for (; b; b >>= 1, a *= a)
        if (b & 1)
            power *= a;
    return power;
}

static uint64_t int_shift_right(uint64_t a, uint32_t amount, uint32_t dtype)
{
    uint64_t shifted = a >> amount;

    if (is_signed(dtype) && a >> 63 && amount)
        shifted |= UINT64_MAX << (64 - amount);
    return shifted;
}

/* 0 for a division by zero. */
static int int_result(uint32_t op, uint64_t a, uint64_t b, uint32_t dtype,
                      uint64_t *out)
{
    uint32_t amount = (uint32_t)b & (8 * hob_dtype_size(dtype) - 1);

    switch (op) {
    case HOB_OP_ADD:
        *out = a + b;
        return 1;
    case HOB_OP_SUB:
        *out = a - b;
        return 1;
    case HOB_OP_MUL:
        *out = a * b;
        return 1;
    case HOB_OP_DIV:
        *out = b ? int_divide(a, b, dtype) : 0;
        return b != 0;
    case HOB_OP_REMAINDER:
        *out = b ? int_remainder(a, b, dtype) : 0;
        return b != 0;
    case HOB_OP_POW:
        *out = int_power(a, b, dtype);
        return a || !is_signed(dtype) || (int64_t)b >= 0;
    case HOB_OP_BITWISE_AND:
        *out = a & b;
        return 1;
    case HOB_OP_BITWISE_LEFT_SHIFT:
        *out = a << amount;
        return 1;
    default: /* HOB_OP_BITWISE_RIGHT_SHIFT */
        *out = int_shift_right(a, amount, dtype);
        return 1;
    }
}

/* ---- the kernels ---- */

hob_status reference_elementwise(void *device, struct hob_call *call)
{
    const struct hob_view *a = hob_arg_view(call, 0);
    const struct hob_view *b = call->arg_count > 1 ? hob_arg_view(call, 1) : a;
    const struct hob_view *out = hob_ret_view(call, 0);
    int64_t count = hob_view_count(out), index[HOB_MAX_RANK];

    (void)device;
    for (int64_t i = 0; i < count; i++) {
        struct number x, y, z = {0, 0};
        place_index(out, i, index);
        x = number_load(a, place_offset(a, index, out->rank));
        y = number_load(b, place_offset(b, index, out->rank));
        if (call->op == HOB_OP_EQUAL)
            z.u = number_compare(x, y, a->dtype) == 0;
        else if (call->op == HOB_OP_GREATER)
            z.u = number_compare(x, y, a->dtype) == 1;
        else if (is_float(a->dtype))
            z.f = float_result(call->op, x.f, y.f);
        else if (!int_result(call->op, x.u, y.u, a->dtype, &z.u))
            return call->host->fail(call, HOB_ERR_RANGE, "%s: division by zero",
                                    call->op_name);
        number_store(out, place_offset(out, index, out->rank), z);
    }
    return HOB_OK;
}

hob_status reference_where(void *device, struct hob_call *call)
{
    const struct hob_view *out = hob_ret_view(call, 0);
    int64_t count = hob_view_count(out), index[HOB_MAX_RANK];

    (void)device;
    for (int64_t i = 0; i < count; i++) {
        const struct hob_view *view = hob_arg_view(call, 0);
        place_index(out, i, index);
        view = number_load(view, place_offset(view, index, out->rank)).u
                   ? hob_arg_view(call, 1)
                   : hob_arg_view(call, 2);
        number_store(out, place_offset(out, index, out->rank),
                     number_load(view, place_offset(view, index, out->rank)));
    }
    return HOB_OK;
}

/* cast, and contiguous, which keeps the dtype. */
hob_status reference_copy(void *device, struct hob_call *call)
{
    const struct hob_view *x = hob_arg_view(call, 0);
    const struct hob_view *out = hob_ret_view(call, 0);
    int64_t count = hob_view_count(out);

    (void)device;
    for (int64_t i = 0; i < count; i++)
        number_store(out, place_flat(out, i),
                     number_cast(number_load(x, place_flat(x, i)), x->dtype,
                                 out->dtype));
    return HOB_OK;
}
