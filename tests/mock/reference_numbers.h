/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reference_numbers.h - single elements of any dtype, for the reference
 * backend: read into a double or 64-bit integer, rounded once when stored.
 */
#ifndef REFERENCE_NUMBERS_H
#define REFERENCE_NUMBERS_H

#include <hob/ext/plugin.h>

/* F holds floats; U integers and bool, as 64-bit two's complement. */
struct number {
    double f;
    uint64_t u;
};

static inline int is_float(uint32_t dtype)
{
    return (HOB_DTYPE_BIT(dtype) & HOB_MASK_FLOAT) != 0;
}

static inline int is_signed(uint32_t dtype)
{
    return (HOB_DTYPE_BIT(dtype) & HOB_MASK_SIGNED) != 0;
}

/* Read element OFFSET, counted from VIEW's data. */
struct number number_load(const struct hob_view *view, int64_t offset);

/* Store NUMBER as element OFFSET. Floats round to nearest even, integers keep
 * their low bits, bool is 0 or 1. */
void number_store(const struct hob_view *view, int64_t offset,
                  struct number number);

/* NUMBER of dtype FROM in dtype TO: floats are cut toward zero and saturate,
 * NaN becomes 0, and anything but 0 is true. */
struct number number_cast(struct number number, uint32_t from, uint32_t to);

/* A scalar argument in DTYPE. */
struct number number_scalar(const hob_value *value, uint32_t dtype);

/* Less than, equal to or more than 0; no order with NaN, which gives 2. */
int number_compare(struct number a, struct number b, uint32_t dtype);

#endif
