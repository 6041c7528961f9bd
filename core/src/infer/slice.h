/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slice.h - one range of a slice, resolved. Inference, views and tests read
 * the rules from here, once.
 */
#ifndef HOB__INFER_SLICE_H
#define HOB__INFER_SLICE_H

#include <stdint.h>

/* Elements FIRST, FIRST + STEP, ... : COUNT of them. */
struct hob__range {
    int64_t first;
    int64_t count;
    int64_t step; /* not 0 */
};

/*
 * Resolve START..END by STEP over SIZE elements. Negative positions count
 * from the end, then both are clamped to 0..SIZE; a reversed range is empty.
 * A negative STEP takes the same range and walks it from its end. STEP is not
 * 0.
 */
struct hob__range hob__range_resolve(int64_t start, int64_t end, int64_t step,
                                     int64_t size);

#endif
