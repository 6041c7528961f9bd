/* SPDX-License-Identifier: Apache-2.0 */
/*
 * range.h - what is known of the integers in a storage without reading them.
 *
 * A device that computes apart from the host can tell a bad index only by
 * waiting for it. Most indices are known to be good before: they were uploaded,
 * and looked at then, or picked or cast from such, or are places that a
 * maximum or a sort gave. So a storage carries a range, as a word: all of its
 * elements, as the integers that they were made as, are in it. Who may write to
 * a storage takes the range away first.
 */
#ifndef HOB__RANGE_H
#define HOB__RANGE_H

#include "storage.h"

enum { HOB__RANGE_UNKNOWN = 0 };

/* Of COUNT integers or bools of DTYPE at DATA; of what is no such thing, or too
 * many to look at, nothing is known. */
uint64_t hob__range_of(uint32_t dtype, const void *data, uint64_t count);

/* Say what is known of CALL's results, after its kernel has run. */
typedef void (*hob__range_fn)(struct hob_call *call);
/* How op OP does that; NULL: not at all. */
hob__range_fn hob__range_rule(uint32_t op);

/* host->arg_range */
int32_t hob__arg_range(const struct hob_call *call, uint32_t index,
                       int64_t *out_low, int64_t *out_high);

#endif
